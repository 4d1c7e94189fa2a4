//! Messages to stderr, as stdout belongs to the program. The requester of a command receives its messages, too.

use std::cell::RefCell;
use std::io::Write;

thread_local! {
    /// Messages of the current thread; `None` if they are not collected.
    static HEARD: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Writes a message as a line to stderr.
pub fn write_message(message: &str) {
    // A closed stderr is not an error.
    let _ = writeln!(std::io::stderr(), "{message}");
    add_messages([message.to_owned()]);
}

/// Writes an error message with the prefix `HPROF: `.
pub fn complain(message: &str) {
    write_message(&format!("HPROF: {message}"));
}

/// Calls `run`. Returns its result and the messages that the current thread wrote meanwhile.
pub fn listen<T>(run: impl FnOnce() -> T) -> (T, Vec<String>) {
    HEARD.set(Some(Vec::new()));
    let result = run();
    (result, HEARD.take().unwrap_or_default())
}

/// Adds messages that another thread of the agent wrote to the collected messages of the current thread.
pub fn add_messages(messages: impl IntoIterator<Item = String>) {
    let _ = HEARD.try_with(|heard| {
        if let Some(heard) = &mut *heard.borrow_mut() {
            heard.extend(messages);
        }
    });
}
