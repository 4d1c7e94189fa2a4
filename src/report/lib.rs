//! Renderers of results as text.
//!
//! * [`escape`] makes text from a dump harmless; every renderer uses it.
//! * `column` declares the columns of a result, [`value`] the values of cells; [`answer`] writes a result in each
//!   format: [`json`], [`csv`], [`table`]; [`fit`] fits texts to the width of the terminal, [`ink`] colours them.
//!   [`chunked`] writes results of millions of rows with all threads.
//! * [`grid`] is a result for a page, which [`html`] renders; [`screen`] is one for a terminal that scrolls.
//! * [`tables`] writes the tables of a dump for other engines: Parquet, CSV, NDJSON.
//! * [`tree`] draws trees and bars; `flamegraph`, `folded` and `speedscope` are stacks as pictures.
//! * [`picture`] draws trees of memory as SVG for pages: treemaps and icicles.
//! * [`ci`] writes the results of `check` for CI servers and code hosts.
//! * [`markdown`] escapes texts for tickets.
//! * [`findings`] contains the words of `doctor`.
//! * [`hprof_text`] writes the text report of the HPROF agent.
//!
//! Renderers do not write to the terminal, but to the [`std::io::Write`] that they are given.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod aligned;
pub mod answer;
pub mod chunked;
pub mod ci;
pub mod column;
pub mod csv;
pub mod findings;
pub mod fit;
pub mod grid;
pub mod hprof_text;
pub mod html;
mod in_order;
pub mod ink;
pub mod json;
mod layout;
mod line;
pub mod markdown;
pub mod number;
pub mod picture;
mod rows;
pub mod screen;
mod section;
pub mod stacks;
pub mod stream;
pub mod table;
mod table_column;
pub mod tables;
pub mod tree;
pub mod value;
pub mod window;

pub(crate) use hprof_format::digits;
pub use hprof_format::escape;

/// Formats of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// One document.
    Json,
    /// A header line, then one line per row.
    Csv,
}
