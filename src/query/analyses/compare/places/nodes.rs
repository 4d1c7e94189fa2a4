//! Data of the search for places: open objects, places under construction, and data looked up for objects.

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::tables::NONE;
use hprof_model::objects::collections::CollectionKind;

use super::held_by::HeldBy;
use super::traits::Role;

/// An object that contains the current position; for consecutive objects at one place, the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenObject {
    pub(super) depth: u32,
    pub(super) place: u32,
    pub(super) class: u32,
    pub(super) role: Role,
    /// `true` if it entered the place from above, with no other open object there.
    pub(super) is_first: bool,
    /// Reachable bytes of all objects before, and the part of them that counts elsewhere.
    pub(super) before: u64,
    pub(super) moved_before: u64,
    /// `true` if it is at a place below that of an object other than its dominator.
    pub(super) is_adopted: bool,
    /// Number of places first opened with it since an object that counts elsewhere.
    pub(super) opened: u32,
    /// Place of the last object below, and the keys that identify it: adjacent siblings are usually alike.
    pub(super) last: (u32, u32, u32),
}

/// Destination of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Destination {
    pub(super) place: u32,
    pub(super) role: Role,
    /// `true` if it counts as an object of the place.
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
    /// Kind of collection of its objects.
    pub(super) kind: Option<CollectionKind>,
    pub(super) is_nesting: bool,
    /// Number of open objects of the place since the last object that counts elsewhere.
    pub(super) open: u32,
    /// Level of that object, counted from the top.
    pub(super) level: u32,
    pub(super) objects: u64,
    pub(super) own_bytes: u64,
    pub(super) retained_bytes: u64,
    pub(super) largest_bytes: u64,
    pub(super) following: u64,
    pub(super) example: ObjectIndex,
}

/// Bytes of a visited object.
#[derive(Debug, Clone, Copy)]
pub(super) struct VisitedBytes {
    /// Shallow size.
    pub(super) own: u64,
    /// Shallow size plus the sizes of the objects below it that are not visited.
    pub(super) all: u64,
}

impl VisitedBytes {
    /// Bytes of an object below which all are visited.
    pub(super) fn from_shallow(shallow: u64) -> Self {
        Self { own: shallow, all: shallow }
    }
}

/// Objects of one class with the same holders, counted together.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedObjects {
    pub(super) to: Destination,
    /// `true` if they are at the place of their holder.
    pub(super) is_within: bool,
    /// The first of them.
    pub(super) example: ObjectIndex,
    pub(super) objects: u64,
    pub(super) own_bytes: u64,
    pub(super) retained_bytes: u64,
    pub(super) largest_bytes: u64,
}

/// Data looked up for an object before the pass reaches it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookedUp {
    pub(super) object: u32,
    pub(super) class: u32,
    pub(super) by: HeldBy,
}

impl Default for LookedUp {
    fn default() -> Self {
        Self { object: NONE, class: NONE, by: HeldBy::Unknown }
    }
}

/// An object that dominates others, with the data that determines their places.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlaceDominator {
    pub(super) place: u32,
    pub(super) class: u32,
    pub(super) role: Role,
}
