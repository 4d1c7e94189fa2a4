//! The HPROF agent for JDK 11 and later: the options and formats of the agent that JDK 8 had, over JVM TI.
//!
//! A JVM loads it with `-agentpath:.../libhprof_agent.so=OPTIONS`, or while it runs; [`hprof_format::AGENT_USAGE`] lists the options, and
//! docs/agent.md says what they record. The parts:
//!
//! | module | what |
//! |---|---|
//! | `jvm` | JVM TI and JNI; the only `unsafe` |
//! | `start` | options, capabilities, output |
//! | `agent` | events, and what is done at them |
//! | `state` | what the parts share |
//! | `record` | what is recorded while the program runs: sites, traces, classes, threads, samples, monitors |
//! | `heap` | walks: what is alive, and heap dumps |
//! | `output` | files, sockets, and the records or lines in them |
//! | `rewrite` | class files whose methods are measured |
//! | `collector` | garbage collections that are asked for |
//! | `commands`, `control` | what it can be asked for, also over a socket |
//! | `dumps` | what is written, and when |
//! | `stop` | the end of a recording, after which another can begin |

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]
// Nothing here is for other crates: the JVM calls it.
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
