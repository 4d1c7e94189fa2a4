//! Graphs of objects: rows of references, and what dominates what. Nothing here knows of dumps.

pub mod rows;
pub mod tree;
