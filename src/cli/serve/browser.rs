//! Opening the browser.

use std::process::{Command, Stdio};

use crate::cli::shared::context::RunContext;

/// Programs that open an address, by system.
const OPENERS: &[&str] = if cfg!(target_os = "macos") {
    &["open"]
} else if cfg!(windows) {
    &["explorer"]
} else {
    &["xdg-open", "wslview", "gio"]
};

/// Opens an address, if a suitable program exists. Other users can read it on the program's command line.
pub(super) fn open(cx: &RunContext, url: &str) {
    let is_open = OPENERS.iter().any(|program| {
        let mut command = Command::new(program);
        if *program == "gio" {
            command.arg("open");
        }
        let opened =
            command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        // A thread must wait for its end.
        opened.is_ok_and(|mut child| std::thread::Builder::new().spawn(move || child.wait()).is_ok())
    });
    if !is_open {
        cx.emit("note", "no program to open a browser was found; open the address yourself");
    }
}
