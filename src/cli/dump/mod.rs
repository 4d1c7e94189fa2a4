//! Commands about a dump as a whole.

mod account;
pub(crate) mod doctor;
mod explained;
mod found_overview;
pub(crate) mod index;
pub(crate) mod info;
mod next;
pub(crate) mod overview;
pub(crate) mod recover;
pub(crate) mod redact;
pub(crate) mod secrets;
