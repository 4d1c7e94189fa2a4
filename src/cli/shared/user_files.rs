//! Child processes of this program that access containers or directories which may belong to others.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use hprof_capture::user_files::{self, Notice, OnNotice};
use hprof_report::escape;

pub(crate) use hprof_capture::user_files::{UserFilesOpener, WORD};

/// Returns the starter of child processes.
pub(crate) fn opener() -> UserFilesOpener {
    UserFilesOpener::itself(on_notice())
}

/// Returns the function that prints notices of child processes.
pub(crate) fn on_notice() -> OnNotice {
    Arc::new(|notice: &Notice| {
        let (kind, text) = notice_text(notice);
        // Written in one call, as other threads write to stderr, too. A closed stderr must not change the result.
        let line = format!("hprof-cli: {kind}: {}\n", escape::text(&text));
        let _ = io::stderr().write_all(line.as_bytes());
    })
}

/// Returns the kind and the text of a notice.
fn notice_text(notice: &Notice) -> (&'static str, String) {
    match notice {
        Notice::Waiting { pid, command, seconds, is_stopped } => {
            let stopped = match is_stopped {
                true => format!("; the process is stopped: kill -CONT {pid} resumes it"),
                false => String::new(),
            };
            let text = format!(
                "process {pid} has not answered `{command}` for {seconds} s{stopped}; Ctrl-C stops waiting, --timeout \
                 sets a limit"
            );
            ("waiting", text)
        }
        Notice::Silent { command, seconds } => (
            "waiting",
            format!(
                "no answer from `{command}` for {seconds} s; Ctrl-C stops waiting, --timeout sets a limit"
            ),
        ),
        Notice::Left { path, why } => ("warning", format!("cannot remove {}: {why}", path.display())),
    }
}

/// Runs as a child process: carries out its task.
pub(crate) fn run() -> ExitCode {
    user_files::run().map_or(ExitCode::from(2), |()| ExitCode::SUCCESS)
}
