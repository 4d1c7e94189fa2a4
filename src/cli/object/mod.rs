//! Commands about single objects.

pub(crate) mod instances;
pub(crate) mod oql;
pub(crate) mod refs;
pub(crate) mod show;
#[cfg(feature = "sql")]
pub(crate) mod sql;
pub(crate) mod strings;
