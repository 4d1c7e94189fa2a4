//! The commands as processes: golden outputs, exit codes, files, little memory, hostile dumps, and processes that are
//! killed.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

mod allocated_in;
#[cfg(unix)]
mod browse;
mod check;
mod class_histograms;
#[cfg(unix)]
mod completions;
#[cfg(unix)]
mod crashes;
#[cfg(unix)]
mod crashes_index;
mod diff_recordings;
mod elsewhere;
mod export;
mod first_answers;
#[cfg(feature = "parquet")]
mod fleet;
mod golden;
#[cfg(all(unix, feature = "sql"))]
mod habits;
mod hostile_compare;
mod hostile_leaks;
mod hostile_look;
mod hostile_names;
#[cfg(unix)]
mod hostile_secrets;
#[cfg(unix)]
mod hostile_size;
mod hostile_waste;
mod imports;
#[cfg(unix)]
mod index_directory;
#[path = "../kit/mod.rs"]
mod kit;
mod larger_than_memory;
mod listen;
mod locks;
mod lost_samples;
mod maker;
#[cfg(all(unix, feature = "sql"))]
mod mat_queries;
mod names;
mod native_memory;
mod options;
mod overview;
mod pipes;
mod places;
mod process_memory;
mod processes;
#[cfg(target_os = "linux")]
mod query_memory;
mod recover;
mod redact;
mod redact_classes;
mod redact_hostile;
mod redact_numbers;
mod redact_proof;
mod report;
mod secrets;
mod secrets_many;
#[cfg(all(unix, feature = "sql"))]
mod sources;
mod sql;
#[cfg(unix)]
mod widths;
#[cfg(all(unix, feature = "sql"))]
mod writes;
