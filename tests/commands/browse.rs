//! `browse` in a terminal: in tmux, where it is installed; elsewhere these tests say NOT RUN and pass.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Returns whether a program is installed.
fn runs(program: &str, option: &str) -> bool {
    let status = Command::new(program).arg(option).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn a_terminal_shows_the_culprits_of_five_leaks_and_is_restored() {
    if !runs("tmux", "-V") || !runs("python3", "--version") {
        let why =
            "NOT RUN: browse in a terminal: tmux and python3 are needed: apt-get install tmux python3\n";
        // Not by a macro: what passes would not be shown.
        std::io::stderr().write_all(why.as_bytes()).unwrap();
        return;
    }
    let root = env!("CARGO_MANIFEST_DIR");
    let walk = Command::new("python3")
        .arg(format!("{root}/docs/browse/tmux.py"))
        .args([env!("CARGO_BIN_EXE_hprof-cli"), &format!("{root}/samples/leaks")])
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&walk.stdout), String::from_utf8_lossy(&walk.stderr));
    assert!(walk.status.success(), "{out}{err}");
}
