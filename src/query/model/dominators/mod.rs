//! Queries on the dominator tree: retained sizes and retained objects.

pub mod areas;
pub(crate) mod avoiding_walk;
pub mod class_counts;
pub mod class_pass;
pub mod counted_ranges;
pub mod holder_field;
pub mod merged_by_class;
pub mod preorder;
pub mod reachable_rows;
pub mod retained_of_class;
pub mod retained_of_many_sets;
pub mod retained_of_set;
pub mod retained_of_set_search;
pub mod tree_nodes;
