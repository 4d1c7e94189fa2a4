//! Graphs: adjacency lists, their transpose, and the dominator tree.
//!
//! * [`adjacency`] stores compressed adjacency lists, `stitcher` joins separately encoded ones; `referrers`
//!   transposes them, by the radix partitioning of `transpose`.
//! * `dominators` computes the dominator tree, in steps: `peel` removes leaf objects, `core` numbers the
//!   nodes that remain, `depth_first` searches them, `semi_nca` finds their dominators, `leaves` attaches the
//!   leaf objects again, `order` puts the tree in preorder.
//! * [`tree`] is the dominator tree as stored in a file; `tree_columns` makes its columns.
//!
//! Nodes are numbers from 0. This module is independent of dumps, classes and files: it imports
//! [`super::storage`] and [`hprof_input::progress`] only.
//!
//! The algorithms index their own arrays by numbers that they computed. Data from a file is checked where
//! it is decoded ([`adjacency::Targets`]).
#![allow(clippy::indexing_slicing)]

pub mod adjacency;
mod core;
mod depth_first;
pub(crate) mod dominators;
pub mod graph_view;
mod leaves;
pub mod numbers;
pub(crate) mod order;
mod peel;
pub(crate) mod referrers;
mod semi_nca;
pub(crate) mod stitcher;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
pub(crate) mod transpose;
pub mod tree;
pub(crate) mod tree_columns;
