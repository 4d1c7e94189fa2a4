//! Renderers that write results as text in all formats.
//!
//! * [`escape`] makes text from a dump safe to display; every renderer uses it.
//! * `column` declares the columns of a result, [`value`] the values of cells; [`answer`] writes a result in each
//!   format: [`json`], [`csv`], [`table`]; [`fit`] fits texts to the width of the terminal, [`ink`] colours them.
//!   [`chunked`] writes results of millions of rows with all threads.
//! * [`grid`] is a result for a page, which [`html`] renders; [`screen`] is a result for a terminal that scrolls.
//! * [`tables`] writes the tables of a dump for other engines: Parquet, CSV, NDJSON.
//! * [`tree`] draws trees and bars; `flamegraph`, `folded` and `speedscope` are stacks as pictures.
//! * [`picture`] draws trees of memory as SVG for pages: treemaps and icicles.
//! * [`ci`] writes the results of `check` for CI servers and code hosts.
//! * [`markdown`] escapes texts for tickets.
//! * [`findings`] contains the texts of `doctor`.
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

/// Output formats of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Table for people.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// CSV: a header line, then one line per row.
    Csv,
}
