//! `diff` and `trend`: three moments of a program that grows, against the JVM's own histograms and what it planted, and
//! heaps made so that each rule of places decides.

mod growth;
mod hidden;
mod keys;
mod places;

use std::process::{Command, Output};

use serde_json::Value;

use crate::kit::dump::Dump;
use crate::kit::texts::sample_path;

/// A dump of `samples/leaks`.
pub fn moment(number: u32) -> Dump {
    Dump::sample(sample_path(&format!("leaks/s7-t{number}.hprof.zst")).as_ref())
}

/// Runs a command on several dumps.
pub fn run(command: &str, dumps: &[&Dump], arguments: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    process.arg(command).args(dumps.iter().map(|dump| &dump.path)).args(arguments);
    process.arg("-q").arg("--index-dir").arg(dir.path()).output().unwrap()
}

/// The same as JSON: exit code and document.
pub fn json(command: &str, dumps: &[&Dump], arguments: &[&str]) -> (i32, Value) {
    let output = run(command, dumps, &[arguments, &["--format", "json"]].concat());
    let document = serde_json::from_slice(&output.stdout);
    (output.status.code().unwrap(), document.unwrap_or_else(|error| panic!("{error}: {output:?}")))
}

pub fn rows(document: &Value) -> &[Value] {
    document["rows"].as_array().unwrap()
}

/// The labels of a row.
pub fn place(row: &Value) -> Vec<&str> {
    row["place"].as_array().unwrap().iter().map(|label| label.as_str().unwrap()).collect()
}

/// The figures of both dumps.
pub fn change(row: &Value, key: &str) -> (u64, u64) {
    let figure = |side: &str| row[format!("{key}_{side}")].as_u64().unwrap();
    let delta = i128::from(figure("new")) - i128::from(figure("old"));
    assert_eq!(i128::from(row[format!("{key}_delta")].as_i64().unwrap()), delta, "{row}");
    (figure("old"), figure("new"))
}
