//! Tests of the helper's arguments. The test also makes `cargo test` build the program with the features of dependencies that
//! all of its tests have; `tests/agent` runs it.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::process::Command;

/// Returns the exit code of the helper with these arguments.
fn code(arguments: &[&str]) -> Option<i32> {
    Command::new(env!("CARGO_BIN_EXE_hprof-helper")).args(arguments).output().unwrap().status.code()
}

#[test]
fn it_answers_that_it_runs_and_refuses_what_it_does_not_know() {
    assert_eq!(code(&[hprof_capture::remote::CHECK]), Some(0));
    for unknown in [&[][..], &["--help"], &["nothing"], &[hprof_capture::remote::CHECK, "more"]] {
        assert_eq!(code(unknown), Some(2), "{unknown:?}");
    }
}
