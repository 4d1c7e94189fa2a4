//! Commands about classes.

pub(crate) mod classes;
pub(crate) mod histo;
pub(crate) mod loaders;
mod short_path;
