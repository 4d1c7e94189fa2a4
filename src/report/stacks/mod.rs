//! Stacks as pictures, and in formats of other tools.

pub mod flamegraph;
pub mod folded;
pub mod speedscope;
pub mod thread_dump;
