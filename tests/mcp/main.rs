//! `mcp`: both eras of the protocol, every tool, and what they never tell.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

mod driver;
mod planted;
mod tools;
mod values;
