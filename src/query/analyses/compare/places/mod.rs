//! Places: locations in a program that hold objects, with names that mean the same in every dump of it.
//!
//! The dominator tree, merged by label: objects are at the same place if their dominators are at the same place, refer
//! to them by the same field, and the objects are of the same class. `static SESSIONS of com.acme.Server` →
//! `java.util.concurrent.ConcurrentHashMap` → `com.acme.Session.attributes` → `java.util.ArrayList` is a place; eight
//! thousand lists can be there. No object ID, array index or address is part of a label.
//!
//! - The internals of a JDK collection, its table and its nodes, are at the place of the collection. The elements are
//!   at places below it, keys and values of a map at different ones. The values of small maps that hold much have
//!   their keys in their labels, if these are Strings, numbers or enum constants, and few and informative
//!   ([`AlignedPlaces::telling`]).
//! - The same applies to the nodes and arrays of any other container (`structures`).
//! - Objects that reference one another by a field of their own class (nodes of a list) are at one place; if the same
//!   labels recur below each other (nested documents), they are the same place.
//! - A class object is at a place at the top, with the name of the class, whatever dominates it. Numbers and addresses
//!   in names of generated classes, and digits in names of threads, are ignored (`stable_names`).
//! - A field does not dominate an object that a thread's stack references as well. If a single object other than
//!   threads refers to it, that one is considered its holder: a running method does not move a cache.
//!
//! LeakCanary's Shark compares trees of shortest paths in this way (`ObjectGrowthDetector`), Eclipse MAT dominator
//! trees in its `leakhunter2`. Memory: 8 bytes per object while a dump is read, and the places, which are few.

mod adopted;
mod aligned;
mod change;
mod facts;
mod find;
mod growth;
mod held_by;
mod kept;
mod keyed;
mod labels;
mod large;
mod named;
mod nodes;
mod one_heap;
mod structures;
mod subtree;
mod telling;
mod traits;
mod tree;
mod words;

use std::io;

use serde::{Deserialize, Serialize};

use hprof_index::Dump;
use hprof_index::graph::numbers::TreePosition;
use hprof_values::ObjectId;

use crate::frameworks::Frameworks;

use find::Extent;
use kept::StoredPlaces;
use structures::PlaceStructure;

pub use aligned::{AlignedPlaces, PlaceFigures};
pub use change::{Changes, MapAbove, PlaceChange, least_of};
pub use facts::PlaceEntry;
pub use growth::{explaining_places, explaining_places_of};
pub use labels::{PlaceLabel, Via};
pub use one_heap::{ExplainedHeap, ExplainedPlace, OneHeap, PlaceElements, library};

/// A place of one dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpPlace {
    /// Index of the parent place; `None` at the top.
    pub parent: Option<u32>,
    /// Index of the place's label in [`DumpPlaces::labels`].
    pub label: u32,
    /// Number of objects at the place.
    pub objects: u64,
    /// Shallow size of the objects, including the parts of collections.
    pub own_bytes: u64,
    /// Retained size of the objects.
    pub retained_bytes: u64,
    /// Retained size of the largest object.
    pub largest_bytes: u64,
    /// Number of the objects that another object of the place immediately dominates, as in a chain.
    pub following: u64,
    /// `true` if some objects below the place belong to a place above it. Then its retained size includes the objects nested in
    /// that place.
    pub is_nesting: bool,
    /// ID of one of the objects: the first in the dominator tree, in which large objects come first.
    #[serde(with = "hprof_base::kept::object_id")]
    pub example: ObjectId,
}

impl DumpPlace {
    fn figures(&self) -> PlaceFigures {
        let Self { objects, own_bytes, retained_bytes, largest_bytes, following, example, .. } = *self;
        PlaceFigures { objects, own_bytes, retained_bytes, largest_bytes, following, example }
    }
}

/// The places of one dump. They do not borrow from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpPlaces {
    /// Places; each comes after its parent.
    pub places: Vec<DumpPlace>,
    /// By place, the large objects there, none of which dominates another; at most 65,536, and only from
    /// [`DumpPlaces::of_large`]. Top-level objects and objects that share a name are included regardless of size.
    pub members: Vec<Vec<TreePosition>>,
    /// Labels of the places.
    pub labels: Vec<PlaceLabel>,
    /// Structures of containers. When places are aligned, their nodes and arrays are moved to the places of their headers.
    pub(crate) structures: Vec<PlaceStructure>,
    /// Bytes of all reachable objects.
    pub reachable_bytes: u64,
    /// Number of reachable objects.
    pub reachable_objects: u64,
    /// `true` if there were too many distinct places. Objects at places beyond the limit are counted at the parent place.
    pub is_cut: bool,
    /// `true` if keys of maps and names of threads are hidden.
    #[serde(skip)]
    pub hides_values: bool,
}

impl DumpPlaces {
    /// Removes the structures, so that the nodes and arrays of containers keep their own places.
    pub fn without_structures(mut self) -> Self {
        self.structures = Vec::new();
        self
    }

    /// Finds the places of all objects of a dump.
    ///
    /// # Errors
    /// If there is neither memory nor disk space for a number for each object.
    pub fn new(dump: &Dump<'_>) -> io::Result<Self> {
        find::places(dump, Extent::All, None)
    }

    /// Finds the places of a dump, with objects named by rules about frameworks. If `tops` is given, finds only the places of
    /// these objects and of the objects that they dominate. No top may dominate another.
    ///
    /// # Errors
    /// If there is neither memory nor disk space for a number for each object.
    pub fn with_frameworks(
        dump: &Dump<'_>,
        frameworks: &Frameworks,
        tops: Option<&[TreePosition]>,
    ) -> io::Result<Self> {
        find::places(dump, tops.map_or(Extent::All, Extent::Below), Some(frameworks))
    }

    /// Finds the places of the objects that retain at least `least` bytes, and of the objects that they immediately dominate,
    /// with objects named by rules about frameworks. Objects that smaller ones dominate have no places of their own, not even
    /// class objects; `own_bytes` contains only the shallow size of the smaller ones. The result is stored in the index.
    ///
    /// # Errors
    /// If there is neither memory nor disk space for a number for each object.
    pub fn of_large(dump: &Dump<'_>, frameworks: &Frameworks, least: u64) -> io::Result<Self> {
        let kept = StoredPlaces::new(dump, frameworks, least);
        if let Some(places) = kept.read() {
            return Ok(places);
        }
        let places = find::places(dump, Extent::Large(least.max(1)), Some(frameworks))?;
        kept.write(&places);
        Ok(places)
    }
}
