//! Messages on stderr: stdout is the program's.

use std::io::Write;

/// A message.
pub fn say(message: &str) {
    // A closed stderr is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{message}");
}

/// A message about something that went wrong.
pub fn complain(message: &str) {
    say(&format!("HPROF: {message}"));
}
