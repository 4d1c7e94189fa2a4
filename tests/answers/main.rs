//! Answers about the objects in a dump: sizes, dominators, paths, values, Strings, threads, queries; compared with
//! naive implementations, the JVM's and Eclipse MAT's own figures, and the behaviour of the dumped program.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

mod areas;
mod ascending_ids;
mod class_loaders;
mod collections;
mod compare;
mod compared_kinds;
mod dominators;
mod frameworks;
mod graph_properties;
mod held_by_fields;
mod jvm_truth;
mod kept_overview;
mod kept_places;
#[path = "../kit/mod.rs"]
mod kit;
mod labels;
mod leaks;
mod look;
mod mat_oracle;
mod merged_dominators;
mod naive;
mod oql;
mod paths;
mod raw;
mod small_tables;
mod sorted_instances;
#[cfg(feature = "sql")]
mod sql;
mod strings;
mod tables;
mod thread_groups;
mod threads;
mod values;
mod waste;
