//! A set of class loaders that define the same classes.

use hprof_index::model::summary::ClassNumber;
use hprof_values::ObjectId;

use crate::dominators::retained_of_many_sets::SetRetained;

/// Loaders that define classes of the same names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoaderSet {
    /// Loaders by ascending ID. That is mostly oldest first, since IDs are addresses and some collectors preserve the
    /// order of objects.
    pub loaders: Vec<ObjectId>,
    /// Classes of the first loader, by name, without array classes.
    pub classes: Vec<ClassNumber>,
    /// Number of objects of the classes of all these loaders.
    pub instances: u64,
    /// Shallow size of the objects of the classes of all these loaders.
    pub shallow_bytes: u64,
    /// Size retained together by all loaders, their classes and instances.
    pub retained: SetRetained,
}
