//! Analyses of a heap: OQL, framework-specific names of objects, containers, waste, credentials, comparison of dumps,
//! leaks, and limits that a dump is checked against.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod check;
pub mod compare;
pub mod containers;
pub mod frameworks;
pub mod leaks;
pub mod oql;
pub mod overview;
pub mod secrets;
pub mod waste;
