//! The table of MAT's queries in docs/mat.md: every command in it runs.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::kit::samples;

const DUMP: &str = "samples/jdk/jdk17.hprof.zst";
const OLD: &str = "samples/leaks/s7-t1.hprof.zst";

/// Returns the commands of the page: the first code in each second cell, and the lines of the block under the table.
fn commands(page: &str) -> Vec<String> {
    let part = page.split("\n## MAT's queries\n").nth(1).unwrap();
    let part = part.split("\n## ").next().unwrap();
    let mut found = Vec::new();
    for line in part.lines() {
        if line.starts_with("hprof-cli ") {
            found.push(line.to_owned());
        } else if let Some(cell) = line.strip_prefix("| ").and_then(|row| row.split(" | ").nth(1))
            && let Some(command) = cell.strip_prefix('`').and_then(|cell| cell.split('`').next())
        {
            found.push(command.replace("\\|", "|"));
        }
    }
    found
}

/// Returns the words in capitals that the user gives, for this sample.
fn given(out: &Path) -> Vec<(&'static str, String)> {
    let file = |name: &str| out.join(name).to_str().unwrap().to_owned();
    let texts = [
        ("DUMP", DUMP),
        ("OLD", OLD),
        ("OBJECT", "0xf058b3b0"),
        ("ARRAY", "0xf0000000"),
        ("THREAD", "main"),
        ("CLASS", "java.util.HashMap"),
        ("HOLDER", "java.util.HashMap"),
        ("FIELD", "table"),
        ("REGEX", "java.*"),
        ("KEY", "class"),
    ];
    let texts = texts.map(|(word, text)| (word, text.to_owned())).into_iter();
    texts.chain([("OUT.html", file("out.html")), ("OUT.hprof.gz", file("out.hprof.gz"))]).collect()
}

/// Replaces whole words.
fn filled(command: &str, given: &[(&str, String)]) -> String {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut line = command.to_owned();
    // `FROM OBJECTS OBJECT` has the keyword first.
    for (word, text) in given {
        let mut done = String::new();
        let mut rest = line.as_str();
        while let Some(at) = rest.find(word) {
            let (before, behind) = (&rest[..at], &rest[at + word.len()..]);
            let is_whole = !before.ends_with(is_of_word) && !behind.starts_with(is_of_word);
            done += before;
            done += if is_whole { text } else { word };
            rest = behind;
        }
        line = done + rest;
    }
    line
}

#[test]
fn the_commands_for_mats_queries_run() {
    let indexes = samples::indexes(Path::new(DUMP));
    samples::indexes(Path::new(OLD));
    let (out, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let given = given(out.path());
    let commands = commands(&std::fs::read_to_string("docs/mat.md").unwrap());
    assert!(commands.len() > 65, "{}", commands.len());
    let mut wrong = Vec::new();
    for command in &commands {
        let line = filled(command, &given).replacen("hprof-cli", env!("CARGO_BIN_EXE_hprof-cli"), 1);
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).env("HPROF_CLI_INDEX_DIR", indexes).env("XDG_DATA_HOME", data.path());
        let output = shell.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if !matches!(output.status.code(), Some(0 | 1)) || said.contains("error: ") {
            wrong.push(format!("{line}\n{:?}: {said}", output.status.code()));
        }
        // The next command writes files of these names again.
        for file in std::fs::read_dir(out.path()).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
