//! Text reports of the HPROF agent (`java.hprof.txt`): lines in, events out.
//!
//! [`TextReader`] parses the reports of the agents of JDK 1.2 to 8, and of Android's SamplingProfiler, line by line. It stores
//! one line at a time, and the current section. A line that it cannot parse is an event (`TextEvent::Malformed`); only that
//! line is lost.
//!
//! * [`event`] defines the events. Names in them are the file's bytes: [`super::mutf8`] and
//!   [`hprof_values::names`] decode them.
//! * `lines` splits the text into lines, `scan` parses the parts of a line.
//! * `trace`, `heap`, `tables`, `monitors` and `calls` parse the lines of their sections.
//! * [`rfc3339`] and [`millis`] convert dates.
//!
//! Lines are parsed by structure, not by columns: columns widen for large numbers, and tabs become spaces
//! when a report is copied from an e-mail.

mod calls;
mod date;
pub mod event;
mod heap;
pub(crate) mod lines;
mod monitors;
mod reader;
mod scan;
mod serials;
mod tables;
#[cfg(test)]
mod tests;
mod trace;

pub use date::{millis, rfc3339};
pub use event::TextEvent;
pub use reader::TextReader;
pub use reader::{END_OF_FILE, is_report};
pub use serials::Serials;
