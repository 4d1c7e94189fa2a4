//! Names in a query: what they mean, and the values of fields, attributes and properties.

pub(super) mod attributes;
mod constants;
pub(super) mod fields;
pub(super) mod lookups;
mod patterns;
pub(super) mod properties;
pub(super) mod regex_text;
pub(super) mod resolve;
