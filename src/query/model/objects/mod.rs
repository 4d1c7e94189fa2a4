//! Queries on single objects: reading, naming and selecting them.

pub mod best;
pub mod bound_names;
pub mod class_set;
pub mod collections;
pub mod condition;
pub mod excluded_fields;
pub mod heaps;
pub mod hiding;
pub mod instances;
pub mod label;
pub(crate) mod largest;
pub mod meaning;
pub mod object_set;
pub mod reference_kind;
pub mod reference_names;
pub mod root_index;
pub mod selection;
pub mod strength;

pub use hprof_index::objects::reader;
