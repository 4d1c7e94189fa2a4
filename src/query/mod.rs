//! Questions to an opened heap, answered as plain data: no text, no terminal.
//!
//! One file a question. Renderers are in [`crate::report`].

mod bits;
pub mod cpu;
pub mod cputime;
pub mod dominators;
pub mod edges;
pub mod every;
pub mod frames;
pub mod histogram;
pub mod info;
pub mod label;
pub mod live;
pub mod merged_paths;
pub mod monitors;
pub mod near;
mod path_search;
pub mod path_view;
pub mod paths;
pub mod pattern;
pub mod percent;
pub mod preorder;
pub mod profile;
pub mod recorded;
pub mod retained;
pub mod root_index;
pub mod roots;
pub mod select;
pub mod show;
pub mod sites;
pub mod stack_filter;
pub mod started_threads;
pub mod stacks;
pub mod strength;
pub mod text_histogram;
pub mod traces;
