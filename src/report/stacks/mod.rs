//! Weighted stacks as flame graphs and in formats of other tools, and threads as a thread dump.

pub mod flamegraph;
pub mod folded;
pub mod speedscope;
pub mod thread_dump;
