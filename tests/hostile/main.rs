//! Dumps that nobody wrote, in a process that watches each allocation. All tests here count against its limit: those
//! that take more memory themselves are `hostile_*` in `tests/reading` and `tests/commands`.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

mod bytes;
mod flight;
#[path = "../kit/mod.rs"]
mod kit;
