//! What a kind of waste is, and where it is found.
//!
//! Each kind has a definition in a file of [`super::kinds`]. Names, help, explanations and the order of adding up are read from
//! it, and the passes call what it finds.

use std::hash::{Hash, Hasher};

use super::Search;
use super::arrays::{VisitedArray, VisitedTable};
use super::collections::{CollectionLook, FewElements};
use super::equal::Shares;
use super::findings::{Findings, Parts, Saving, Sink};
use super::kinds::KINDS;
use super::kinds::constant_fields::Votes;
use super::plan::Plans;
use hprof_index::storage::scratch::Array;

/// A kind of waste. Kinds are compared by name, and ordered as in [`KINDS`].
#[derive(Debug)]
pub struct WasteKind {
    /// The name in output; options spell it in kebab-case.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// What it is, and what would be freed.
    pub meaning: &'static str,
    /// When it is harmless.
    pub harmless: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
    pub(super) frees: Frees,
    /// Whether it is of single objects, so that a sample of the heap tells of it.
    pub(super) is_sampled: bool,
    pub(super) finds: Finds,
}

/// What becomes of the objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frees {
    /// They are freed, and `other` with them.
    Objects,
    /// They are freed, but less than they take: what they hold moves into those that refer to them.
    Unboxed,
    /// They are freed with all that they retain.
    Retained,
    /// Those in [`Findings::freed`] are freed.
    Listed,
    /// They get smaller, or what belongs to them does.
    Part,
    /// All instances of some classes get smaller, by [`Findings::shrinks`].
    OfClass,
    /// All unreachable objects are freed.
    Unreachable,
}

/// Looks at an array, the table of a collection, a collection.
type LookAtArray = fn(&VisitedArray<'_, '_>, &mut Sink);
type LookAtTable = fn(&VisitedTable<'_, '_>, &mut Sink);
type LookAtCollection = fn(&CollectionLook<'_, '_>, &FewElements, &mut Sink);

/// Where a kind is found. Functions of the passes are called for each object of a heap, from all threads.
#[derive(Debug, Clone, Copy)]
pub(super) enum Finds {
    /// In each primitive array that has elements and is not a String's.
    PrimitiveArrays(LookAtArray),
    /// In each array of references that has elements, at most one of them not null, and is not a collection's.
    ReferenceArrays(LookAtArray),
    /// In the table of each collection that has elements.
    Tables(LookAtTable),
    /// In each collection of few elements.
    Collections(LookAtCollection),
    /// In what the passes have collected, or elsewhere.
    AfterPasses(fn(&Search<'_>, &mut Passes) -> std::io::Result<Findings>),
}

/// What the passes have collected for kinds that are found afterwards.
pub(super) struct Passes {
    pub(super) plans: Plans,
    /// Boxes, ascending.
    pub(super) boxes: Vec<(Array<Saving>, Parts)>,
    /// The values of fields.
    pub(super) votes: Votes,
    /// Strings by a part of their hash.
    pub(super) texts: Shares,
    /// Other primitive arrays, likewise.
    pub(super) contents: Shares,
    /// Arrays of length 0, ascending.
    pub(super) zero_length: Vec<Array<Saving>>,
}

impl WasteKind {
    /// Returns the kind of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        KINDS.into_iter().find(|kind| kind.name == name)
    }

    /// Returns whether it is waste of reachable objects.
    pub fn is_of_reachable(&self) -> bool {
        self.frees != Frees::Unreachable
    }

    /// The place in [`KINDS`].
    fn rank(&self) -> usize {
        KINDS.iter().take_while(|kind| kind.name != self.name).count()
    }
}

impl PartialEq for WasteKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for WasteKind {}

impl Hash for WasteKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Ord for WasteKind {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for WasteKind {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The functions of the passes, each with the place of its kind in [`KINDS`].
#[derive(Default)]
pub(super) struct Hooks {
    pub(super) primitive_arrays: Vec<(usize, LookAtArray)>,
    pub(super) reference_arrays: Vec<(usize, LookAtArray)>,
    pub(super) tables: Vec<(usize, LookAtTable)>,
    pub(super) collections: Vec<(usize, LookAtCollection)>,
}

impl Hooks {
    pub(super) fn new() -> Self {
        let mut hooks = Self::default();
        for (rank, kind) in KINDS.iter().enumerate() {
            match kind.finds {
                Finds::PrimitiveArrays(look) => hooks.primitive_arrays.push((rank, look)),
                Finds::ReferenceArrays(look) => hooks.reference_arrays.push((rank, look)),
                Finds::Tables(look) => hooks.tables.push((rank, look)),
                Finds::Collections(look) => hooks.collections.push((rank, look)),
                Finds::AfterPasses(_) => {}
            }
        }
        hooks
    }
}
