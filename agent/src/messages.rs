//! Messages on stderr: stdout belongs to the program. The requester of a command also receives its
//! messages as a response.

use std::cell::RefCell;
use std::io::Write;

thread_local! {
    /// Messages of this thread, if a listener waits for them.
    static HEARD: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Writes a message.
pub fn write_message(message: &str) {
    // A closed stderr is not an error.
    let _ = writeln!(std::io::stderr(), "{message}");
    hear([message.to_owned()]);
}

/// Writes a message about an error.
pub fn complain(message: &str) {
    write_message(&format!("HPROF: {message}"));
}

/// Calls `run`, and returns its result and the messages of this thread meanwhile.
pub fn listen<T>(run: impl FnOnce() -> T) -> (T, Vec<String>) {
    HEARD.set(Some(Vec::new()));
    let result = run();
    (result, HEARD.take().unwrap_or_default())
}

/// Adds messages that another thread of the agent wrote on behalf of this one.
pub fn hear(messages: impl IntoIterator<Item = String>) {
    let _ = HEARD.try_with(|heard| {
        if let Some(heard) = &mut *heard.borrow_mut() {
            heard.extend(messages);
        }
    });
}
