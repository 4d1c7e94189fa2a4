//! Queries about what keeps objects alive: GC roots and shortest paths from them.

pub mod beyond_frames;
mod facts;
pub mod forest;
pub mod merged;
pub mod root_report;
pub(crate) mod search;
pub mod shortest;
pub(crate) mod starts;
pub mod steps;

pub use search::Budget;
