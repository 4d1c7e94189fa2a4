//! Rules about frameworks that are compiled in, and the numeric fields that they compute with.

pub mod bundled;
pub mod numbers;
