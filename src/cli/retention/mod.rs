//! Commands about retained memory and its holders.

pub(crate) mod dominators;
pub(crate) mod leaks;
pub(crate) mod paths_to_root;
pub(crate) mod places;
pub(crate) mod retained;
pub(crate) mod roots;
pub(crate) mod waste;
