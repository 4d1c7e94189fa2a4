//! The agent in JVMs: what it records, against what the programs do and what the JVM says of itself. And heap dumps that
//! are taken of JVMs.
//!
//! Tests need a JDK: that of `$HPROF_AGENT_JDKS` (homes, separated by colons), or `java` and `javac` on the path. Where there
//! is none they say NOT RUN and pass.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::print_stderr
)]

#[cfg(target_os = "linux")]
mod again;
#[cfg(target_os = "linux")]
mod capture;
mod control;
mod cpu;
#[cfg(target_os = "linux")]
mod doors;
mod dump;
#[path = "../reports/grammar/mod.rs"]
mod grammar;
#[cfg(target_os = "linux")]
mod histograms;
mod kit;
mod life;
mod live;
#[cfg(target_os = "linux")]
mod memory;
mod monitor;
#[allow(dead_code)]
#[path = "../kit/process.rs"]
mod process;
mod report;
mod sites;
mod text;
#[cfg(target_os = "linux")]
mod via;
