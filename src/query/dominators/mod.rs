//! Queries on the dominator tree: retained sizes and the objects behind them.

pub mod all;
pub mod areas;
pub mod class_counts;
pub mod holder;
pub mod jointly;
pub mod listing;
pub mod merged;
pub mod nodes;
pub mod preorder;
pub mod retained;
pub mod retained_sets;
pub(crate) mod walk;
