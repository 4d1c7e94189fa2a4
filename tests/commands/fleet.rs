//! The questions of docs/fleet.md, asked by DuckDB of exported samples; and over the dumps of a small fleet whose contents are
//! known.
//!
//! DuckDB is a Python module: `pip install duckdb`. Where it is missing these tests say NOT RUN and pass.

// Skipped tests are reported.
#![allow(clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::kit::texts::sample_path;

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns whether a program runs successfully with these arguments.
fn runs(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

fn has_duckdb() -> bool {
    let has = runs("python3", &["-c", "import duckdb"]);
    if !has {
        eprintln!("NOT RUN: no Python module duckdb");
    }
    has
}

fn try_python(script: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("python3");
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(in_repository(script)).args(arguments);
    command.output().expect("python3 runs")
}

fn python(script: &str, arguments: &[&str]) -> Output {
    let output = try_python(script, arguments);
    assert!(
        output.status.success(),
        "{script} {arguments:?}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn export(dumps: &[&str], lake: &str, options: &[&str]) {
    let mut export = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    export
        .arg("export")
        .env("XDG_DATA_HOME", format!("{lake}-key"))
        .args(dumps)
        .args(["--output-dir", lake, "--index-dir", &format!("{lake}-index")])
        .args(options);
    let output = export.output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Counts the answered questions about a lake.
fn count_answers(lake: &str) -> usize {
    let output = python("examples/fleet.py", &[lake]);
    let answers = String::from_utf8(output.stdout).unwrap();
    answers.lines().filter(|line| line.ends_with(" s)")).count()
}

#[test]
fn tables_say_what_commands_say() {
    if !has_duckdb() {
        return;
    }
    let work = tempfile::tempdir().unwrap();
    let work = work.path().to_str().unwrap();
    let samples =
        ["jdk/jdk17.hprof.zst", "jdk/jdk25-compact.hprof.zst", "agent/sites.hprof.zst", "leaks/s5.hprof.zst"];
    let samples = samples.map(|sample| sample_path(sample).to_str().unwrap().to_owned());
    let program = env!("CARGO_BIN_EXE_hprof-cli");
    let options = ["--program", program, "--engines", "duckdb", "--objects", "40", "--work", work];
    python("docs/fleet/same.py", &[&samples.each_ref().map(String::as_str)[..], &options].concat());
    // All questions can be asked of these dumps, though they are no fleet.
    let lake = format!("{work}/all");
    export(&samples.each_ref().map(String::as_str), &lake, &[]);
    assert_eq!(count_answers(&lake), 30);
}

/// A CSV file states no types, and JSON those of values only: columns that are empty, tables without a row, and texts that look
/// like numbers are what the schema says.
#[test]
fn all_formats_have_the_types_of_the_schema() {
    if !has_duckdb() {
        return;
    }
    let work = tempfile::tempdir().unwrap();
    let work = work.path().to_str().unwrap();
    let sample = sample_path("agent/sites.hprof.zst").to_str().unwrap().to_owned();
    for format in ["csv", "ndjson"] {
        // Nothing has a label, and most tables have no row: the sample is a recording without a heap dump.
        let lake = format!("{work}/{format}");
        export(&[&sample], &lake, &["--format", format]);
        assert_eq!(count_answers(&lake), 30, "{format}");
        let lake = format!("{work}/{format}-releases");
        for (name, release) in [("a", "release=1.10"), ("b", "release=1.1")] {
            export(&[&sample], &lake, &["--format", format, "--name", name, "--label", release]);
        }
        let output = python("examples/fleet.py", &[&lake, "--question", "1"]);
        let answer = String::from_utf8(output.stdout).unwrap();
        let rows: Vec<&str> = answer.lines().skip(3).collect();
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.split_whitespace().take(3).collect()).collect();
        assert_eq!(rows, [["None", "1.1", "1"], ["None", "1.10", "1"]], "{format}: {answer}");
    }
    // Files of one format are not passed over for those of another.
    let lake = format!("{work}/csv");
    export(&[&sample], &lake, &["--format", "ndjson", "--name", "other"]);
    let output = try_python("examples/fleet.py", &[&lake]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("several formats: csv, ndjson"), "{said}");
}

#[test]
#[ignore = "starts 50 JVMs"]
fn a_fleet_of_fifty_dumps() {
    if !has_duckdb() {
        return;
    }
    if !runs("javac", &["-version"]) {
        eprintln!("NOT RUN: no javac");
        return;
    }
    let work = tempfile::tempdir().unwrap();
    let dumps = work.path().join("dumps");
    let (dumps, work) = (dumps.to_str().unwrap(), work.path().to_str().unwrap());
    python("docs/fleet/make_dumps.py", &[dumps]);
    let program = env!("CARGO_BIN_EXE_hprof-cli");
    // Spark too, if installed.
    let output = python("docs/fleet/check.py", &[dumps, "--program", program, "--work", work]);
    eprint!("{}", String::from_utf8_lossy(&output.stdout));
}
