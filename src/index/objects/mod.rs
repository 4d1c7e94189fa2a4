//! Objects by index: their IDs, classes, records, references and roots.

pub mod address_index;
pub(crate) mod field_values;
pub(crate) mod id_set;
pub mod object_graph;
pub mod object_table;
pub(crate) mod record_size;
pub(crate) mod reference_model;
pub mod roots;
