//! Reports as text: those of the HPROF agent, read and written, and the grammar that both have to follow.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

mod agent_texts;
mod convert;
mod convert_files;
mod grammar;
#[path = "../kit/mod.rs"]
mod kit;
mod report_grammar;
mod round_trip;
mod side_by_side;
mod text_dumps;
mod text_objects;
mod text_reports;
