//! Places: locations in a program that hold objects, with names that mean the same in every dump of it.
//!
//! The dominator tree, merged by label: objects are at the same place if their dominators are at the same place, refer
//! to them by the same field, and the objects are of the same class. `static SESSIONS of com.acme.Server` →
//! `java.util.concurrent.ConcurrentHashMap` → `com.acme.Session.attributes` → `java.util.ArrayList` is a place; eight
//! thousand lists can be there. No object ID, array index or address is part of a label.
//!
//! - The internals of a JDK collection, its table and its nodes, are at the place of the collection. The elements are
//!   at places below it, keys of a map at others than values. The values of small maps that hold much have their keys
//!   in their labels, if these are Strings, numbers or enum constants, and few and informative ([`Aligned::telling`]).
//! - Objects that reference one another by a field of their own class (nodes of a list) are at one place; if the same
//!   labels recur below each other (nested documents), they are the same place.
//! - A class object is at a place at the top, with the name of the class, whatever dominates it. Numbers and addresses
//!   in names of generated classes, and digits in names of threads, do not count ([`super::names`]).
//! - A field does not dominate an object that a thread's stack references as well. If a single object other than
//!   threads refers to it, that one is considered its holder: a running method does not move a cache.
//!
//! LeakCanary's Shark compares trees of shortest paths in this way (`ObjectGrowthDetector`), Eclipse MAT dominator
//! trees in its `leakhunter2`. Memory: 8 bytes per object while a dump is read, and the places, which are few.

mod adopted;
mod aligned;
mod change;
mod explain;
mod growth;
mod held_by;
mod keyed;
mod labels;
mod large;
mod named;
mod one;
mod telling;
mod traits;
mod tree;
mod words;

use std::io;

use hprof_index::graph::numbers::TreePosition;
use hprof_index::{Heap, ObjectGraph};
use hprof_parser::ObjectId;

use tree::Extent;

pub use aligned::{Aligned, PlaceFigures};
pub use change::{Changes, MapAbove, PlaceChange, least_of};
pub use explain::{Elements, Explained, elements, explain};
pub use growth::{explained, explained_of};
pub use labels::{Label, Via};
pub use one::OneHeap;

/// Maximum number of objects of a place that are stored.
pub(crate) const MAX_MEMBERS: usize = 1 << 12;

/// A place of one dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpPlace {
    /// Index of the parent place; `None` at the top.
    pub parent: Option<u32>,
    /// Index of its label.
    pub label: u32,
    /// Number of objects at the place.
    pub objects: u64,
    /// Shallow size of the objects, the parts of collections included.
    pub own_bytes: u64,
    /// Retained size of the objects.
    pub retained_bytes: u64,
    /// Retained size of the largest of them.
    pub largest_bytes: u64,
    /// Number of its objects that another one of them dominates, with nothing between: links of a chain.
    pub following: u64,
    /// `true` if objects below it are at a place above it again: then its retained size includes what is nested in that
    /// place.
    pub is_nesting: bool,
    /// One of the objects: the first in the dominator tree, where large ones come first.
    pub example: ObjectId,
}

impl DumpPlace {
    fn figures(&self) -> PlaceFigures {
        let Self { objects, own_bytes, retained_bytes, largest_bytes, following, example, .. } = *self;
        PlaceFigures { objects, own_bytes, retained_bytes, largest_bytes, following, example }
    }
}

/// The places of one dump. They do not borrow from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DumpPlaces {
    /// Places; each comes after its parent.
    pub places: Vec<DumpPlace>,
    /// By place, from [`DumpPlaces::of_large`]: the first large objects at it, at most [`MAX_MEMBERS`].
    pub members: Vec<Vec<TreePosition>>,
    /// Labels of the places.
    pub labels: Vec<Label>,
    /// Bytes of all reachable objects.
    pub reachable_bytes: u64,
    /// Number of reachable objects.
    pub reachable_objects: u64,
    /// `true` if there were too many distinct places: omitted ones are counted with their parent.
    pub is_cut: bool,
    /// `true` if keys of maps and names of threads are hidden.
    pub hides_values: bool,
}

impl DumpPlaces {
    /// Finds the places of a dump; `bytes` are the dump's ([`Heap::bytes`]).
    ///
    /// # Errors
    /// If neither memory nor disk has space for a number per object.
    pub fn new(heap: &Heap, graph: &ObjectGraph, bytes: &[u8]) -> io::Result<Self> {
        tree::places(heap, graph, bytes, Extent::All)
    }

    /// The places of objects that retain at least `least` bytes, and of those that these refer to: what smaller objects
    /// retain is not looked into, and counts as their own.
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub fn of_large(heap: &Heap, graph: &ObjectGraph, bytes: &[u8], least: u64) -> io::Result<Self> {
        tree::places(heap, graph, bytes, Extent::Large(least.max(1)))
    }

    /// The places of some objects and of what they dominate; none of them dominates another.
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub fn below(heap: &Heap, graph: &ObjectGraph, bytes: &[u8], tops: &[TreePosition]) -> io::Result<Self> {
        tree::places(heap, graph, bytes, Extent::Below(tops))
    }
}
