//! Stacks as pictures, and for other tools.

pub mod flamegraph;
pub mod folded;
pub mod speedscope;
pub mod thread_dump;
