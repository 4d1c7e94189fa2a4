//! The HPROF agent for JDK 11 and later, with the options and formats of JDK 8's agent, over JVM TI.
//!
//! A JVM loads it with `-agentpath:.../libhprof_agent.so=OPTIONS`, or while it runs;
//! [`hprof_format::AGENT_USAGE`] lists the options, and docs/agent.md describes what they record.
//! Modules:
//!
//! | module | contents |
//! |---|---|
//! | `jvm` | JVM TI and JNI; the only `unsafe` |
//! | `start` | options, capabilities, output; start of a recording |
//! | `agent` | events and their handling |
//! | `state` | state shared by the parts |
//! | `record` | recorded data: sites, traces, classes, threads, samples, monitors |
//! | `heap` | walks: counts of live objects, and heap dumps |
//! | `output` | files, sockets, and the records or lines in them |
//! | `rewrite` | instrumentation of class files |
//! | `collector` | requested garbage collections |
//! | `commands`, `control` | commands to the agent, including commands over a socket |
//! | `dumps` | writing of dumps |
//! | `stop` | end of a recording, after which another can begin |

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]
// The JVM calls the library; no other crate uses its items.
#![allow(unreachable_pub)]

pub mod agent;
mod collector;
mod commands;
mod control;
mod dumps;
mod heap;
mod jvm;
mod messages;
mod names;
pub mod options;
mod output;
mod record;
pub mod rewrite;
mod start;
mod state;
mod stop;
mod suspended;
mod tags;
mod tracker;
