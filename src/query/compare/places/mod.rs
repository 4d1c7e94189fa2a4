//! Places: where in a program objects are held, by names that mean the same in every dump of it.
//!
//! The dominator tree, merged by label: objects are at the same place if their dominators are at the same place, refer to
//! them by the same field, and the objects are of the same class. `static SESSIONS of com.acme.Server` →
//! `java.util.concurrent.ConcurrentHashMap` → `com.acme.Session.attributes` → `java.util.ArrayList` is a place; eight
//! thousand lists can be there. No object ID, array index or address is part of a label.
//!
//! - What a collection of the JDK consists of, its table and its nodes, is at the place of the collection. The elements
//!   are at places below it, keys of a map at others than values. The values of small maps that hold much have their keys
//!   in their labels, if these are Strings, numbers or enum constants, and few that tell something ([`Aligned::telling`]).
//! - Objects that follow one another by a field of their own class (nodes of a list) are at one place; where the same
//!   labels come again below each other (nested documents), they are the same place.
//! - A class object is at a place at the top, with the name of the class, whatever dominates it. Numbers and addresses in names of generated classes, and
//!   digits in names of threads, do not count ([`super::stable_names`]).
//! - What a thread's stack holds too is not dominated by the field that holds it. If a single object other than threads
//!   refers to it, it is taken for being held by that one: a method that runs does not move a cache.
//!
//! LeakCanary's Shark compares trees of shortest paths in this way (`ObjectGrowthDetector`), Eclipse MAT dominator trees in
//! its `leakhunter2`. Memory: 8 bytes an object while a dump is read, and the places, which are few.

mod adopted;
mod aligned;
mod change;
mod growth;
mod held_by;
mod keyed;
mod labels;
mod telling;
mod traits;
mod tree;
mod words;

use std::io;

use hprof_index::{Heap, ObjectGraph};
use hprof_parser::ObjectId;

pub use aligned::{Aligned, PlaceFigures};
pub use change::{Changes, MapAbove, PlaceChange, least_of};
pub use growth::{explained, explained_of};
pub use labels::{Label, Via};

/// A place of one dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpPlace {
    /// The place above, by number; `None` at the top.
    pub parent: Option<u32>,
    /// Index of its label.
    pub label: u32,
    /// Objects at the place.
    pub objects: u64,
    /// Their retained size.
    pub retained_bytes: u64,
    /// `true` if objects below it are at a place above it again: then its retained size includes what is nested in
    /// that.
    pub is_nesting: bool,
    /// One of the objects: the first in the dominator tree, in which large ones come first.
    pub example: ObjectId,
}

/// The places of one dump. They do not borrow from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DumpPlaces {
    /// The places; each comes after that above it.
    pub places: Vec<DumpPlace>,
    /// Labels of the places.
    pub labels: Vec<Label>,
    /// Bytes of all reachable objects.
    pub reachable_bytes: u64,
    /// Reachable objects.
    pub reachable_objects: u64,
    /// `true` if there were too many distinct places: what is left out is counted with the place above.
    pub is_cut: bool,
    /// `true` if keys of maps and names of threads are hidden.
    pub hides_values: bool,
}

impl DumpPlaces {
    /// The places of a dump; `bytes` are the dump's ([`Heap::bytes`]).
    ///
    /// # Errors
    /// If there is neither memory nor disk space for a number for each object.
    pub fn new(heap: &Heap, graph: &ObjectGraph, bytes: &[u8]) -> io::Result<Self> {
        tree::places(heap, graph, bytes)
    }
}
