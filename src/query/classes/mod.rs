//! Queries about classes: the histogram, the hierarchy, class loaders, and class patterns.

mod deployments;
pub(crate) mod generated_loaders;
pub mod hierarchy;
pub mod histogram;
mod loader_set;
pub mod loader_sets;
mod loader_states;
pub mod loaders;
pub mod pattern;
pub mod suggestions;
pub mod text_histogram;
