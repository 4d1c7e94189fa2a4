//! Writing HPROF: text reports (`java.hprof.txt`) and binary records.
//!
//! Shared by the command line and the agent. Lines and columns of the text are those of the HPROF agent
//! of JDK 8, records those of its specification ("HPROF Agent", Binary Dump Format). Reading is
//! implemented in the library.
//!
//! | module | contents |
//! |---|---|
//! | [`text`] | lines and sections of a text report |
//! | [`heap_text`] | lines of its HEAP DUMP |
//! | [`binary`] | records of a binary file |
//! | [`heap_binary`] | sub-records of its heap dump |
//! | [`commands`] | commands to an agent over its socket |
//! | [`date`] | dates as C's `ctime` writes them |
//! | [`digits`] | digits of numbers, appended to bytes |
//! | [`escape`] | escaping of text from a JVM |
//! | [`names`] | class names in Java source form |
//! | [`percent`] | shares as text reports state them |

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod binary;
pub mod commands;
pub mod date;
pub mod digits;
pub mod escape;
pub mod heap_binary;
pub mod heap_text;
pub mod names;
pub mod percent;
pub mod text;

/// Output of the agent for `help`: its options.
pub const AGENT_USAGE: &str = include_str!("usage.txt");

/// System property in which an agent loaded into a running JVM stores its response.
pub const AGENT_ANSWER: &str = "hprof.agent.answer";
