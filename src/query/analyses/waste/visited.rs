//! Arrays and tables, as the kinds of waste examine them.

use super::WasteSearch;
use super::collection_look::CollectionLook;
use super::findings::{PartKey, Saving};
use super::instances::ArrayHolder;
use super::plan::Plans;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_model::objects::collections::usage::Usage;
use hprof_values::BasicType;

/// A non-empty array that is visited.
#[derive(Clone, Copy)]
pub(super) struct VisitedArray<'v, 'a> {
    pub(super) search: &'v WasteSearch<'a>,
    pub(super) plans: &'v Plans,
    pub(super) object: ObjectIndex,
    pub(super) class: ClassNumber,
    pub(super) element: BasicType,
    /// Number of elements.
    pub(super) length: u64,
    /// Shallow size in bytes.
    pub(super) bytes: u64,
    pub(super) elements: &'v [u8],
    /// Uses of the array that instances state.
    pub(super) held: &'v [ArrayHolder],
    /// `false` if elements were removed from the dump.
    pub(super) has_contents: bool,
    /// `true` for a primitive array of at least two elements, all of which are equal.
    pub(super) is_constant: bool,
    /// Number of non-null references in the array: zero or one.
    pub(super) references: u64,
}

impl VisitedArray<'_, '_> {
    /// Returns a saving of this number of bytes by the array.
    pub(super) fn saving(&self, bytes: u64) -> Saving {
        Saving::new(self.object, bytes)
    }

    pub(super) fn part(&self) -> Option<PartKey> {
        Some(PartKey::Class(self.class))
    }
}

/// The table of a non-empty collection that is visited.
#[derive(Clone, Copy)]
pub(super) struct VisitedTable<'v, 'a> {
    pub(super) search: &'v WasteSearch<'a>,
    pub(super) look: &'v CollectionLook<'v, 'a>,
    pub(super) object: ObjectIndex,
    /// The collection.
    pub(super) collection: ObjectIndex,
    pub(super) class: ClassNumber,
    pub(super) usage: &'v Usage,
    /// Number of slots of the table.
    pub(super) length: u64,
    pub(super) ids: &'v [u8],
    /// Number of elements of the collection.
    pub(super) elements: u64,
    /// Load factor, if its class has one.
    pub(super) load: f32,
}
