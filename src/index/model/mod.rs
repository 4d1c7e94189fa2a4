//! What is known of a dump without looking at single objects: its summary, its tables, its problems.

pub mod class_table;
pub(crate) mod dangling;
pub mod problem;
pub mod summary;
pub mod tables;
pub(crate) mod text_pool;
