//! Definition of a kind of waste, and the passes in which kinds are found.
//!
//! Each kind has a definition in a file of [`super::kinds`]. Names, help, explanations and the order of the totals
//! are read from it, and the passes call its search.

use std::hash::{Hash, Hasher};

use super::WasteSearch;
use super::collection_look::{CollectionLook, FewElements};
use super::equal::Shares;
use super::findings::{FindingSink, Findings, Parts, Saving};
use super::plan::Plans;
use super::visited::{VisitedArray, VisitedTable};
use super::votes::Votes;
use hprof_index::storage::scratch::Array;

/// Definition of a kind of waste. Kinds are compared by name, and ordered as in [`super::KINDS`].
#[derive(Debug)]
pub struct WasteKind {
    /// Name in output; options use kebab-case.
    pub name: &'static str,
    /// Description in a few words.
    pub summary: &'static str,
    /// Definition of the waste, and of the bytes that would be freed.
    pub meaning: &'static str,
    /// Cases in which this waste is harmless.
    pub harmless: &'static str,
    /// Remedy.
    pub remedy: &'static str,
    pub(super) frees: WasteEffect,
    /// `true` if single objects are wasted, so that a sample of the heap is enough for an estimate.
    pub(super) is_sampled: bool,
    pub(super) finds: WasteFinder,
}

/// Effect of fixing a kind of waste on the objects found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WasteEffect {
    /// Frees the objects, and `other` with each.
    Objects,
    /// Frees the objects, but saves less than their size: their contents move into their referrers.
    Unboxed,
    /// Frees the objects with everything that they retain.
    Retained,
    /// Frees the objects in [`Findings::freed`].
    Listed,
    /// Shrinks the objects, or parts that belong to them.
    Part,
    /// Shrinks all instances of the classes in [`Findings::shrinks`].
    OfClass,
    /// Frees all unreachable objects.
    Unreachable,
}

/// Function that examines an array.
type LookAtArray = fn(&VisitedArray<'_, '_>, &mut FindingSink);
/// Function that examines the table of a collection.
type LookAtTable = fn(&VisitedTable<'_, '_>, &mut FindingSink);
/// Function that examines a collection.
type CollectionExaminer = fn(&CollectionLook<'_, '_>, &FewElements, &mut FindingSink);

/// How a kind is found. Functions of the passes are called for each object of a heap, from all threads.
#[derive(Debug, Clone, Copy)]
pub(super) enum WasteFinder {
    /// By each non-empty primitive array, except arrays of Strings.
    PrimitiveArrays(LookAtArray),
    /// By each non-empty array of references with at most one non-null element, except tables of collections.
    ReferenceArrays(LookAtArray),
    /// By the table of each non-empty collection.
    Tables(LookAtTable),
    /// By each collection with few elements.
    Collections(CollectionExaminer),
    /// After the passes, from the data that they collected, or from other data.
    AfterPasses(fn(&WasteSearch<'_>, &mut Passes) -> std::io::Result<Findings>),
}

/// Data that the passes collect for kinds that are found after them.
pub(super) struct Passes {
    pub(super) plans: Plans,
    /// Boxes, ascending.
    pub(super) boxes: Vec<(Array<Saving>, Parts)>,
    /// Votes on the values of fields.
    pub(super) votes: Votes,
    /// Strings, divided into shares by hash.
    pub(super) texts: Shares,
    /// Other primitive arrays, divided into shares by hash.
    pub(super) contents: Shares,
    /// Arrays of length 0, ascending.
    pub(super) zero_length: Vec<Array<Saving>>,
}

impl WasteKind {
    /// Returns whether the kind consists of reachable objects.
    pub fn is_of_reachable(&self) -> bool {
        self.frees != WasteEffect::Unreachable
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

/// A kind with its findings.
pub(super) struct KindFindings {
    pub(super) kind: &'static WasteKind,
    pub(super) findings: Findings,
}

/// Functions that the passes call, each with the position of its kind in [`super::KINDS`].
#[derive(Default)]
pub(super) struct Hooks {
    pub(super) primitive_arrays: Vec<(usize, LookAtArray)>,
    pub(super) reference_arrays: Vec<(usize, LookAtArray)>,
    pub(super) tables: Vec<(usize, LookAtTable)>,
    pub(super) collections: Vec<(usize, CollectionExaminer)>,
}
