//! Text reports of the HPROF agent (`java.hprof.txt`): lines in, events out.
//!
//! [`TextReader`] reads what the agents of JDK 1.2 to 8 wrote, and Android's SamplingProfiler, line by line. It holds one
//! line at a time, and knows only of what section it is in. A line that it does not understand is an event of its own
//! ([`TextEvent::Malformed`]); what it says is lost, and nothing else.
//!
//! * [`event`] has the events. Names in them are the file's bytes: [`super::mutf8`] and [`super::names`] make text of them.
//! * `lines` cuts the text into lines, `scan` takes a line apart.
//! * `trace`, `heap`, `tables`, `monitors` and `calls` know the lines of their sections.
//! * [`rfc3339`] reads dates.
//!
//! Lines are read by their structure, not by columns: columns widen when numbers outgrow them, and tabs become spaces
//! when a report is copied from a mail.

mod calls;
mod date;
pub mod event;
mod heap;
mod lines;
mod monitors;
mod reader;
mod scan;
mod serials;
mod tables;
#[cfg(test)]
mod tests;
mod trace;

pub use date::rfc3339;
pub use event::TextEvent;
pub use reader::TextReader;
pub use reader::{END_OF_FILE, is_report};
pub use serials::Serials;
