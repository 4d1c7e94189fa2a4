//! Tests of rewritten classes in JVMs: they pass verification, behave as before, and call the tracker as often as they should.
//!
//! If no `javac` is found, these tests print NOT RUN to stderr and pass. `HPROF_AGENT_JDKS` is a list of home directories,
//! separated by `:`, of the JDKs to use instead of the one of `javac` on the path.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr, clippy::cast_possible_truncation)]

mod assembled;
mod jdk;
mod modules;
mod programs;
