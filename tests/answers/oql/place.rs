//! Asking queries of samples, as processes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::kit::samples;

/// The dump of the zoo that most queries are asked of.
pub const JDK17: &str = "samples/jdk/jdk17.hprof.zst";

/// Directory for files of queries.
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A file there.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Any command on a sample.
    pub fn cli(&self, command: &str, dump: &str) -> Command {
        let mut cli = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
        cli.args([command, dump]).env("HPROF_CLI_INDEX_DIR", samples::indexes(Path::new(dump)));
        cli
    }

    pub fn command(&self, dump: &str) -> Command {
        self.cli("oql", dump)
    }

    pub fn run(&self, dump: &str, arguments: &[&str]) -> Output {
        self.command(dump).args(arguments).output().unwrap()
    }

    /// Returns the lines of the CSV answer after its header.
    pub fn rows(&self, dump: &str, query: &str) -> Vec<String> {
        let output = self.run(dump, &[query, "--format", "csv"]);
        let text = String::from_utf8(output.stdout).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{query}: {said}");
        text.lines().skip(1).map(str::to_owned).collect()
    }

    pub fn check(&self, dump: &str, queries: &[(&str, &[&str])]) {
        let mut wrong = Vec::new();
        for (query, expected) in queries {
            let rows = self.rows(dump, query);
            if rows != *expected {
                wrong.push(format!("{query}\n  is {rows:?}\n  not {expected:?}"));
            }
        }
        assert!(wrong.is_empty(), "{dump}\n{}", wrong.join("\n"));
    }

    pub fn json(&self, query: &str) -> serde_json::Value {
        let output = self.run(JDK17, &[query, "--format", "json"]);
        serde_json::from_slice(&output.stdout).unwrap()
    }
}
