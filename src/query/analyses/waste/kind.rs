//! Definition of a kind of waste, and the passes in which kinds are found.
//!
//! Each kind has a definition in a file of [`super::kinds`]. Names, help, explanations and the order of the totals
//! are read from it, and the passes call its search.

use std::hash::{Hash, Hasher};

use super::WasteSearch;
use super::collection_look::{CollectionLook, FewElements};
use super::equal::Shares;
use super::findings::{Findings, Parts, Saving, Sink};
use super::plan::Plans;
use super::visited::{VisitedArray, VisitedTable};
use super::votes::Votes;
use hprof_index::storage::scratch::Array;

/// A kind of waste. Kinds are compared by name, and ordered as in [`super::KINDS`].
#[derive(Debug)]
pub struct WasteKind {
    /// Name in output; options use kebab-case.
    pub name: &'static str,
    /// Description in a few words.
    pub summary: &'static str,
    /// Definition, and the bytes that would be freed.
    pub meaning: &'static str,
    /// Cases in which the waste is harmless.
    pub harmless: &'static str,
    /// Remedy.
    pub remedy: &'static str,
    pub(super) frees: WasteEffect,
    /// `true` if single objects are wasted, so that a sample of the heap is enough for an estimate.
    pub(super) is_sampled: bool,
    pub(super) finds: WasteFinder,
}

/// Effect of a kind on its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WasteEffect {
    /// Frees them, and `other` with them.
    Objects,
    /// Frees them, but saves less than their size: their contents move into their referrers.
    Unboxed,
    /// Frees them with everything that they retain.
    Retained,
    /// Frees the objects in [`Findings::freed`].
    Listed,
    /// Shrinks them, or something that belongs to them.
    Part,
    /// Shrinks all instances of some classes, by [`Findings::shrinks`].
    OfClass,
    /// Frees all unreachable objects.
    Unreachable,
}

/// Functions that examine an array, the table of a collection, and a collection.
type LookAtArray = fn(&VisitedArray<'_, '_>, &mut Sink);
type LookAtTable = fn(&VisitedTable<'_, '_>, &mut Sink);
type LookAtCollection = fn(&CollectionLook<'_, '_>, &FewElements, &mut Sink);

/// Search for a kind. Functions of the passes are called for each object of a heap, from all threads.
#[derive(Debug, Clone, Copy)]
pub(super) enum WasteFinder {
    /// In each non-empty primitive array, except those of Strings.
    PrimitiveArrays(LookAtArray),
    /// In each non-empty array of references with at most one non-null element, except those of collections.
    ReferenceArrays(LookAtArray),
    /// In the table of each non-empty collection.
    Tables(LookAtTable),
    /// In each collection of few elements.
    Collections(LookAtCollection),
    /// After the passes, in the data that they collected, or in other data.
    AfterPasses(fn(&WasteSearch<'_>, &mut Passes) -> std::io::Result<Findings>),
}

/// Data that the passes collect for kinds that are found afterwards.
pub(super) struct Passes {
    pub(super) plans: Plans,
    /// Boxes, ascending.
    pub(super) boxes: Vec<(Array<Saving>, Parts)>,
    /// Votes on the values of fields.
    pub(super) votes: Votes,
    /// Strings by a part of their hash.
    pub(super) texts: Shares,
    /// Other primitive arrays by a part of their hash.
    pub(super) contents: Shares,
    /// Arrays of length 0, ascending.
    pub(super) zero_length: Vec<Array<Saving>>,
}

impl WasteKind {
    /// Returns whether the kind is waste of reachable objects.
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

/// Findings of a kind.
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
    pub(super) collections: Vec<(usize, LookAtCollection)>,
}
