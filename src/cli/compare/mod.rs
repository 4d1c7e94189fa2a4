//! Commands that compare dumps.

pub(crate) mod diff;
mod pair;
