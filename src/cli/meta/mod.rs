//! Commands about the program itself.

pub(crate) mod completions;
pub(crate) mod man;
pub(crate) mod version;
