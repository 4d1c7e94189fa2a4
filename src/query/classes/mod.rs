//! Queries about classes: the histogram, the hierarchy, class loaders, and class patterns.

mod accessor_loaders;
pub mod hierarchy;
pub mod histogram;
pub mod loader_sets;
pub mod loaders;
pub mod pattern;
pub mod suggestions;
pub mod text_histogram;
