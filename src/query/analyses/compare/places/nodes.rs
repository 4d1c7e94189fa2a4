//! Data structures of the search for places: open objects, places under construction, and data looked up for objects.

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::tables::NONE;
use hprof_model::objects::collections::CollectionKind;

use super::held_by::HeldBy;
use super::traits::Role;

/// An object that contains the current position; of consecutive objects at one place, the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenObject {
    pub(super) depth: u32,
    pub(super) place: u32,
    pub(super) class: u32,
    pub(super) role: Role,
    /// `true` if its place had no other open object when it was entered.
    pub(super) is_first: bool,
    /// Reachable bytes of all objects before it.
    pub(super) before: u64,
    pub(super) moved_before: u64,
    /// `true` if its place is below an object other than its dominator.
    pub(super) is_adopted: bool,
    /// Number of places first opened with it since an object that counts elsewhere.
    pub(super) opened: u32,
    /// Place of the last object below it, and the reference and class that identify the place: adjacent siblings are usually
    /// alike.
    pub(super) last: (u32, u32, u32),
}

/// Place and role that an object gets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Destination {
    pub(super) place: u32,
    pub(super) role: Role,
    /// `true` if the object counts as one of the place's objects.
    pub(super) counts: bool,
}

/// A place under construction.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlaceNode {
    pub(super) parent: u32,
    pub(super) via: u32,
    /// Number of the class name, doubled, plus 1 for class objects.
    pub(super) class: u32,
    pub(super) depth: u32,
    pub(super) is_of_jdk: bool,
    /// Kind of collection of the place's objects, if they are collections.
    pub(super) kind: Option<CollectionKind>,
    pub(super) is_nesting: bool,
    /// Number of open objects of the place since the last object that counts elsewhere.
    pub(super) open: u32,
    /// Level at which the place was entered: the number of open objects that count elsewhere.
    pub(super) level: u32,
    pub(super) objects: u64,
    pub(super) own_bytes: u64,
    pub(super) retained_bytes: u64,
    pub(super) largest_bytes: u64,
    pub(super) following: u64,
    pub(super) example: ObjectIndex,
}

/// Sizes of a visited object.
#[derive(Debug, Clone, Copy)]
pub(super) struct VisitedBytes {
    /// Shallow size.
    pub(super) own: u64,
    /// Shallow size plus the sizes of the objects below it that are not visited.
    pub(super) all: u64,
}

impl VisitedBytes {
    /// Returns the sizes of an object below which all objects are visited.
    pub(super) fn from_shallow(shallow: u64) -> Self {
        Self { own: shallow, all: shallow }
    }
}

/// Objects of one class with the same holder, which are counted together.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedObjects {
    pub(super) to: Destination,
    /// `true` if they are at the place of the holder.
    pub(super) is_within: bool,
    /// Object index of the first object.
    pub(super) example: ObjectIndex,
    pub(super) objects: u64,
    pub(super) own_bytes: u64,
    pub(super) retained_bytes: u64,
    pub(super) largest_bytes: u64,
}

/// Data looked up for an object before the pass reaches it.
#[derive(Debug, Clone, Copy)]
pub(super) struct PrefetchedObject {
    pub(super) object: u32,
    pub(super) class: u32,
    pub(super) by: HeldBy,
}

impl Default for PrefetchedObject {
    fn default() -> Self {
        Self { object: NONE, class: NONE, by: HeldBy::Unknown }
    }
}

/// An object that dominates others, with the data that determines the places of these.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlaceDominator {
    pub(super) place: u32,
    pub(super) class: u32,
    pub(super) role: Role,
}
