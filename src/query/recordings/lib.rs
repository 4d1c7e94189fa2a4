//! Queries about profiler recordings: allocation sites, traces, samples, times and monitors.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod allocation_sites;
pub mod class_histograms;
pub mod compare;
pub mod cpu;
pub mod cputime;
mod facts;
#[cfg(test)]
mod hostile_keys;
pub mod monitors;
pub mod profile;
pub mod sites;
pub mod stack_filter;
pub mod stack_owners;
pub mod stacks;
pub mod started_threads;
pub mod summary;
pub mod text_histogram;
pub mod traces;
