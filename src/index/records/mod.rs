//! The records of a dump, and its heap dump in chunks.
//!
//! * `record_walk` walks over the top-level records, past damaged regions (`search_budget` bounds the
//!   searches), and collects their contents in `top_level`.
//! * `chunks` divides the heap dump into chunks, using a `preview` of the classes.
//! * `remains` finds the whole records of damaged files, for copying them.
//! * `stack_records` reads stack traces and their frames.
//! * `source` contains the bytes of a dump.
//!
//! Nothing here depends on single objects.

pub(crate) mod chunks;
pub(crate) mod error;
pub(crate) mod preview;
pub(crate) mod record_walk;
pub mod remains;
mod search_budget;
pub(crate) mod source;
pub mod stack_records;
pub(crate) mod top_level;
