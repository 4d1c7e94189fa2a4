//! Names in a query: what they mean, and the values of fields, attributes and properties.

pub(super) mod attributes;
pub(super) mod builtins;
mod constants;
pub(super) mod fields;
pub(super) mod lookups;
pub(super) mod patterns;
pub(super) mod properties;
pub(super) mod resolve;
