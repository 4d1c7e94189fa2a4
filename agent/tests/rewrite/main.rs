//! Rewritten classes in JVMs: they pass verification, do what they did, and call the tracker as often as they should.
//!
//! Where no `javac` is found these tests say NOT RUN on stderr and pass. `HPROF_AGENT_JDKS`, home directories separated
//! by `:`, names others than that of `javac` on the path.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr, clippy::cast_possible_truncation)]

mod assembled;
mod jdk;
mod modules;
mod programs;
