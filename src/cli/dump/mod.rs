//! Commands about a dump as a whole.

mod account;
pub(crate) mod doctor;
pub(crate) mod index;
pub(crate) mod info;
mod next;
pub(crate) mod overview;
