//! Reading of dumps and indexes: complete, damaged, odd, compressed, in archives, hostile; the result is what was
//! written.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

mod archives;
mod damaged;
mod folklore;
mod folklore_files;
#[path = "../../fuzz/bodies/mod.rs"]
mod fuzz_bodies;
mod fuzz_corpus;
mod hostile_index;
mod hostile_index_processes;
mod hostile_time;
#[path = "../kit/mod.rs"]
mod kit;
mod packed;
mod packing;
mod reader_properties;
mod writer_models;
mod writer_records;
