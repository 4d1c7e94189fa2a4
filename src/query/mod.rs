//! Questions to an opened heap, answered as plain data: no text, no terminal.
//!
//! One file a question. Renderers are in [`crate::report`].

mod bits;
pub mod collections;
pub mod condition;
pub mod cpu;
pub mod cputime;
pub mod dominators;
pub mod edges;
pub mod every;
pub mod frames;
pub mod hierarchy;
pub mod histogram;
pub mod info;
pub mod instances;
pub mod label;
mod largest;
pub mod live;
pub mod loaders;
pub mod merged_paths;
pub mod monitors;
pub mod near;
pub mod objects;
pub mod oql;
mod path_search;
pub mod path_view;
pub mod paths;
pub mod pattern;
pub mod percent;
pub mod preorder;
pub mod profile;
pub mod recorded;
pub mod refs;
pub mod retained;
pub mod root_index;
pub mod roots;
pub mod select;
pub mod show;
pub mod sites;
pub mod stack_filter;
pub mod stacks;
pub mod started_threads;
pub mod strength;
pub mod strings;
pub mod text_histogram;
pub mod threads;
pub mod traces;
