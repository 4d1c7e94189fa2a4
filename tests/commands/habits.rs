//! Command lines that were written for other tools, and the line of this program that each is answered with.

use std::fs;
use std::process::{Command, Stdio};

/// Files that the lines name; no line is run, so they need no contents.
const FILES: &[&str] = &[
    "heap.hprof",
    "old.hprof",
    "new.hprof",
    "sites.hprof.txt",
    "java.hprof.txt",
    "rec.jfr",
    "old.jfr",
    "fields.txt",
    "q.oql",
];

#[test]
fn lines_of_other_tools_are_answered_with_ours() {
    let dir = tempfile::tempdir().unwrap();
    for file in FILES {
        fs::write(dir.path().join(file), "").unwrap();
    }
    let table = fs::read_to_string("tests/data/habits.txt").unwrap();
    let (mut count, mut wrong) = (0, Vec::new());
    let mut lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    while let Some(line) = lines.next() {
        let hint = lines.next().unwrap().strip_prefix("  ").unwrap();
        count += 1;
        // As a shell splits it.
        let mut shell = Command::new("sh");
        let program = env!("CARGO_BIN_EXE_hprof-cli");
        shell.current_dir(dir.path()).env("NO_COLOR", "1").stdin(Stdio::null());
        let output = shell.args(["-c", &line.replacen("hprof-cli", program, 1)]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let last = said.lines().last().unwrap_or_default();
        let found = last.strip_prefix("hprof-cli: hint: ").unwrap_or(last);
        if output.status.code() != Some(2) || !output.stdout.is_empty() || found != hint {
            wrong.push(format!("{line}\n  {hint}\nfound {:?}:\n{said}", output.status.code()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(count >= 200, "{count}");
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), FILES.len(), "{left:?}");
}
