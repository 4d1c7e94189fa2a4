//! What is said of the objects in a dump: sizes, dominators, paths, values, Strings, threads, queries; against naive
//! readings, the JVM's and Eclipse MAT's own figures, and what the dumped program did.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

mod collections;
mod dominators;
mod graph_properties;
mod jvm_truth;
#[path = "../kit/mod.rs"]
mod kit;
mod look;
mod mat_oracle;
mod naive;
mod oql;
mod paths;
mod raw;
mod sorted_instances;
mod strings;
mod threads;
mod values;
