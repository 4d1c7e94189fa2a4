//! Messages on stderr: stdout is the program's. Who asked for something gets those about it as an answer too.

use std::cell::RefCell;
use std::io::Write;

thread_local! {
    /// Messages of this thread, where somebody waits for them.
    static HEARD: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// A message.
pub fn say(message: &str) {
    // A closed stderr is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{message}");
    hear([message.to_owned()]);
}

/// A message about something that went wrong.
pub fn complain(message: &str) {
    say(&format!("HPROF: {message}"));
}

/// What this thread says meanwhile.
pub fn listen<T>(run: impl FnOnce() -> T) -> (T, Vec<String>) {
    HEARD.set(Some(Vec::new()));
    let result = run();
    (result, HEARD.take().unwrap_or_default())
}

/// Messages that another thread of the agent said for this one.
pub fn hear(messages: impl IntoIterator<Item = String>) {
    let _ = HEARD.try_with(|heard| {
        if let Some(heard) = &mut *heard.borrow_mut() {
            heard.extend(messages);
        }
    });
}
