//! Objects by index: their IDs, classes, records, references and roots.

pub mod address_index;
pub(crate) mod class_objects;
pub(crate) mod describer;
pub mod fields;
pub mod gc_roots;
pub(crate) mod id_set;
pub mod object_graph;
pub mod object_table;
pub(crate) mod placing;
pub mod reader;
pub mod record;
pub mod record_plan;
pub(crate) mod reference_model;
pub mod strings;
