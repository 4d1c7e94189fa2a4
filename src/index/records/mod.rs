//! The records of a dump, and its heap dump in chunks.
//!
//! * `record_walk` walks over the top-level records, past damaged regions (`search_budget` bounds the searches), and
//!   notes in `top_level` what there is.
//! * `chunks` divides the heap dump into chunks, for which it needs a `preview` of the classes.
//! * `source` has the bytes of a dump.
//!
//! Nothing here knows of single objects.

pub(crate) mod chunks;
pub(crate) mod error;
pub(crate) mod preview;
pub(crate) mod record_walk;
mod search_budget;
pub(crate) mod source;
pub(crate) mod top_level;
