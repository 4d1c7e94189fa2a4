//! Questions to an opened heap, answered as plain data: no text, no terminal.
//!
//! One file a question. Renderers are in [`crate::report`].

pub mod histogram;
pub mod info;
pub mod pattern;
