//! Questions to the dominator tree: what retains how much.

pub mod all;
pub mod class_counts;
pub mod listing;
pub mod preorder;
pub mod retained;
