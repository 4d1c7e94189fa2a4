//! Graphs of objects: rows of references, and what dominates what. Nothing here knows of dumps.
//!
//! [`rows`] holds references compressed. `transpose` turns them around. Dominators come in steps: `peel` takes off the
//! leaves, `core` numbers what is left, `depth_first` walks it, `semi_nca` finds its dominators, `leaves` those of the
//! leaves, `order` puts the tree in preorder; `dominators` runs all of that. [`tree`] is the tree as it is kept.
//!
//! The algorithms index arrays that they have made themselves by numbers that they have made themselves; what comes from
//! a file is checked where it is decoded ([`rows::Targets`]).
#![allow(clippy::indexing_slicing)]

pub mod adjacency;
mod core;
mod depth_first;
pub(crate) mod dominators;
mod leaves;
pub(crate) mod links;
pub(crate) mod order;
mod peel;
pub(crate) mod referrers;
mod semi_nca;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
pub(crate) mod transpose;
pub mod tree;
pub(crate) mod tree_columns;
