//! Reading Java heap dumps (HPROF), fast and exactly.
//!
//! This is the library behind the command line `hprof-cli`. Data flows one way, and so do imports:
//!
//! dump file → [`hprof`] (bytes → records) → [`index`] (records → columns, in memory and on disk) → [`query`]
//! (questions → plain results) → [`report`] (results → text, tables, JSON, CSV) → [`cli`].
//!
//! ```no_run
//! use hprof_cli::index::layout::sizes::Sizes;
//! use hprof_cli::index::{Heap, Options, Quiet};
//! use hprof_cli::query::classes::histogram::{Question, histogram};
//!
//! # fn main() -> Result<(), hprof_cli::index::Error> {
//! let heap = Heap::open("heap.hprof".as_ref(), &Options::default(), &Quiet)?;
//! let sizes = Sizes::new(heap.summary(), None);
//! for row in histogram(heap.summary(), &sizes, &Question::default()).rows.iter().take(10) {
//!     println!("{:>12} {:>14} {}", row.instances, row.shallow_bytes, row.name);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! `docs/ARCHITECTURE.md` tells where things live and why.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod cli;
pub mod fuzz;
pub mod hprof;
pub mod index;
pub mod input;
pub mod progress;
pub mod query;
pub mod report;
