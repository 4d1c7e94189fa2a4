//! Commands about a dump as a whole.

mod account;
pub(crate) mod doctor;
mod explained;
pub(crate) mod index;
pub(crate) mod info;
mod next;
pub(crate) mod overview;
mod overview_findings;
pub(crate) mod recover;
pub(crate) mod redact;
pub(crate) mod secrets;
