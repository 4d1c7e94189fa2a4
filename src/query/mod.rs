//! Questions to an opened heap, answered as plain data: no text, no terminal.
//!
//! One file a question. Renderers are in [`crate::report`].

mod bits;
pub mod dominators;
pub mod edges;
pub mod every;
pub mod frames;
pub mod histogram;
pub mod info;
pub mod label;
pub mod live;
pub mod merged_paths;
pub mod near;
mod path_search;
pub mod path_view;
pub mod paths;
pub mod pattern;
pub mod preorder;
pub mod profile;
pub mod retained;
pub mod root_index;
pub mod roots;
pub mod select;
pub mod strength;
