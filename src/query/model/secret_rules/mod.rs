//! Rules by which credentials are recognized, and the search for them in a text.

pub mod keywords;
pub mod kind;
pub mod mask;
pub mod rules;
pub mod search;
pub mod view;
