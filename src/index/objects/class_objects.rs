//! Mapping of classes to class objects and back.

use super::address_index::AddressIndex;
use crate::graph::numbers::ObjectIndex;
use crate::model::summary::{ClassNumber, Summary};
use crate::model::tables::NONE;
use hprof_values::ObjectId;

/// The class object of each class, and the class of each class object.
#[derive(Debug)]
pub(crate) struct ClassObjects {
    /// Object index of the class object, or NONE, by class number.
    by_class: Vec<u32>,
    /// Class objects and their classes, ascending.
    by_object: Vec<(ObjectIndex, ClassNumber)>,
}

impl ClassObjects {
    pub(crate) fn new(summary: &Summary, addresses: &AddressIndex) -> Self {
        let index = |id: ObjectId| addresses.index_of(id).map_or(NONE, |object| object.0);
        let classes = summary.classes().iter();
        let by_class: Vec<u32> =
            classes.map(|class| if class.is_dumped() { index(class.id.into()) } else { NONE }).collect();
        let mut by_object: Vec<(ObjectIndex, ClassNumber)> = (0u32..)
            .zip(&by_class)
            .filter(|(_, object)| **object != NONE)
            .map(|(class, object)| (ObjectIndex(*object), ClassNumber(class)))
            .collect();
        by_object.sort_unstable();
        Self { by_class, by_object }
    }

    /// Returns the object index of each class object, or NONE, by class number.
    pub(crate) fn by_class(&self) -> &[u32] {
        &self.by_class
    }

    /// Returns the class object of a class.
    pub(crate) fn class_object(&self, class: ClassNumber) -> Option<ObjectIndex> {
        self.by_class.get(class.0 as usize).copied().filter(|object| *object != NONE).map(ObjectIndex)
    }

    /// Returns the class of a class object.
    pub(crate) fn class(&self, object: ObjectIndex) -> Option<ClassNumber> {
        let at = self.by_object.binary_search_by_key(&object, |(object, _)| *object).ok()?;
        self.by_object.get(at).map(|(_, class)| *class)
    }
}
