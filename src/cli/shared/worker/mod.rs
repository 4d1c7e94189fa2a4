//! Workers: processes of this program that run queries for another one, which can kill them at any time.
//!
//! | question | where |
//! |---|---|
//! | Which limits does a worker have, and when does it end? | [`terms`] |
//! | How is it started, killed, and read to its end? | [`process`] |
//! | Which messages are there, and how does a worker send them? | [`message`] |
//!
//! `mcp` runs a worker for each command. The workers of `serve` and `browse` handle one query after another: each query is
//! a line on stdin, each message a line on stdout, and a body if it has one. Only the types of queries and messages
//! are defined by these commands.

#[cfg(any(feature = "serve", feature = "browse"))]
mod message;
mod process;
mod terms;

#[cfg(all(test, feature = "browse"))]
pub(crate) use message::WorkerMessage;
#[cfg(any(feature = "serve", feature = "browse"))]
pub(crate) use message::{ProgressReporter, WorkerEvent, WorkerProgress, send};
pub(crate) use process::{OutputLimits, WorkerKiller, WorkerProcess};
#[cfg(any(feature = "serve", feature = "browse"))]
pub(crate) use terms::questions;
pub(crate) use terms::{WorkerTerms, begin, is_worker};
