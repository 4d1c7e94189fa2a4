//! `mcp`: both eras of the protocol, every tool, and what they never tell.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

mod clients;
mod driver;
#[allow(dead_code)] // Tests of commands use all of it.
#[path = "../kit/evil.rs"]
mod evil;
mod fuzz;
mod hostile;
mod limits;
mod plan;
mod planted;
#[allow(dead_code)] // As above.
#[path = "../kit/random.rs"]
mod random;
mod tools;
mod values;
