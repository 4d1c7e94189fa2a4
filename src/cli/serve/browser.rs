//! Opening a URL in the user's browser.

use std::process::{Command, Stdio};

use crate::cli::shared::context::RunContext;

/// Programs that open a URL, by operating system.
const OPENERS: &[&str] = if cfg!(target_os = "macos") {
    &["open"]
} else if cfg!(windows) {
    &["explorer"]
} else {
    &["xdg-open", "wslview", "gio"]
};

/// Opens a URL, if a suitable program exists. Other users can read the URL on the program's command line.
pub(super) fn open(cx: &RunContext, url: &str) {
    let is_open = OPENERS.iter().any(|program| {
        let mut command = Command::new(program);
        if *program == "gio" {
            command.arg("open");
        }
        let opened =
            command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        // A thread must wait for the end of the program.
        opened.is_ok_and(|mut child| std::thread::Builder::new().spawn(move || child.wait()).is_ok())
    });
    if !is_open {
        cx.emit("note", "cannot find a program that opens a browser; open the address yourself");
    }
}
