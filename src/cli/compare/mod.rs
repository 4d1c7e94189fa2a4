//! Commands that compare dumps.

pub(crate) mod check;
pub(crate) mod diff;
mod pair;
mod place_lines;
pub(crate) mod trend;
