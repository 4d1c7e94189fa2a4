//! Commands about a dump as a whole.

pub(crate) mod doctor;
pub(crate) mod index;
pub(crate) mod info;
