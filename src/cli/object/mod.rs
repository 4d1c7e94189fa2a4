//! Commands about single objects.

pub(crate) mod instances;
pub(crate) mod oql;
pub(crate) mod refs;
pub(crate) mod show;
pub(crate) mod strings;
