//! Duplicates: Strings of one text, arrays of one content.
//!
//! Candidates have the same 64-bit hash, and contents are compared, so that nothing is counted by mistake. The
//! candidates are in shares by the upper bits of their hashes: one share fits into the cache while it is sorted.

use std::io;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::findings::{Findings, Frees, Largest, NO_OBJECT, Parts, Saving, keep_largest};
use super::{WasteKind, WasteSearch};
use crate::objects::object_set::Bits;
use crate::objects::reader::{Characters, Record};
use crate::strings::contents;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::storage::id_map::IdSet;
use hprof_index::storage::prefetch::prefetch;
use hprof_index::storage::scratch::{Array, ScratchArena, ScratchStack};
use hprof_parser::BasicType;

/// Number of shares of the contents, by hash.
const SHARES: usize = 256;
/// Number of items of a share that are moved to the scratch arena at a time.
const SHARE_TOP: usize = 1 << 9;
/// Maximum number of groups of equal objects that are kept as examples.
const MAX_GROUPS: usize = 100;
/// Prefetch distance in items.
const AHEAD: usize = 16;
/// Minimum size in bytes of contents that are compared once per place.
const LONG: u64 = 1 << 10;

/// A String or an array, and the place of its content.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct ContentItem {
    pub(super) hash: u64,
    /// Offset of the array's record, shifted left by two, and the form of a text.
    pub(super) place: u64,
    /// Size of the array in bytes, and [`SHARED`].
    pub(super) bytes: u64,
    pub(super) object: u32,
    /// Object index of the array.
    pub(super) array: u32,
}

/// Flag for an array that counts for an earlier String.
pub(super) const SHARED: u64 = 1 << 63;

impl ContentItem {
    /// Returns the bytes freed together with the object: those of the array, if it counts for this one.
    fn bytes(&self) -> u64 {
        if self.bytes & SHARED == 0 { self.bytes } else { 0 }
    }

    fn is_long(&self) -> bool {
        self.bytes & !SHARED > LONG
    }

    /// Returns whether all items at this place are equal.
    fn is_whole(&self) -> bool {
        self.place & 3 != contents::StringEncoding::Part as u64
    }
}

/// Items by a part of their hash.
pub(super) struct Shares(Vec<Mutex<ScratchStack<ContentItem>>>);

impl Shares {
    pub(super) fn new(room: &ScratchArena) -> Self {
        Self((0..SHARES).map(|_| Mutex::new(ScratchStack::with_top(room, SHARE_TOP))).collect())
    }

    /// Moves items into the shares.
    pub(super) fn put(&self, items: &mut Vec<ContentItem>) -> io::Result<()> {
        items.sort_unstable_by_key(|item| item.hash >> 56);
        for some in items.chunk_by(|a, b| a.hash >> 56 == b.hash >> 56) {
            let share = some.first().and_then(|item| self.0.get(usize::try_from(item.hash >> 56).ok()?));
            let Some(share) = share else { continue };
            let mut share = share.lock().unwrap_or_else(PoisonError::into_inner);
            some.iter().try_for_each(|item| share.push(*item))?;
        }
        items.clear();
        Ok(())
    }

    fn into_arrays(self) -> io::Result<Vec<Array<ContentItem>>> {
        let arrays = self.0.into_par_iter();
        arrays.map(|share| share.into_inner().unwrap_or_else(PoisonError::into_inner).into_array()).collect()
    }
}

/// Contents of arrays or texts, to be compared.
trait Content: Sync {
    /// Content that was read.
    type Read<'r>
    where
        Self: 'r;

    fn read(&self, item: &ContentItem) -> Option<Self::Read<'_>>;
    fn same(a: &Self::Read<'_>, b: &Self::Read<'_>) -> bool;
    /// Returns the saving of an item.
    fn saving(&self, item: &ContentItem) -> Saving;
}

struct StringTexts<'v, 'a>(&'v WasteSearch<'a>);

impl<'v, 'a> Content for StringTexts<'v, 'a> {
    type Read<'r>
        = Characters<'a>
    where
        Self: 'r;

    fn read(&self, item: &ContentItem) -> Option<Characters<'a>> {
        contents::characters_at(&self.0.objects, item.place, ObjectIndex(item.object))
    }

    fn same(a: &Characters<'_>, b: &Characters<'_>) -> bool {
        contents::same(a, b)
    }

    fn saving(&self, item: &ContentItem) -> Saving {
        let class = self.0.class(ObjectIndex(item.object));
        let own = class.map_or(0, |class| self.0.sizes.instance(class).0);
        let other = if item.bytes & SHARED == 0 { item.array } else { NO_OBJECT };
        Saving { bytes: own.saturating_add(item.bytes()), object: item.object, other }
    }
}

struct Arrays<'v, 'a>(&'v WasteSearch<'a>);

impl<'v, 'a> Content for Arrays<'v, 'a> {
    type Read<'r>
        = (BasicType, &'a [u8])
    where
        Self: 'r;

    fn read(&self, item: &ContentItem) -> Option<(BasicType, &'a [u8])> {
        match self.0.objects.record_at(item.place >> 2)? {
            Record::PrimitiveArray(array) => Some((array.element, array.elements?)),
            _ => None,
        }
    }

    fn same(a: &(BasicType, &[u8]), b: &(BasicType, &[u8])) -> bool {
        a == b
    }

    fn saving(&self, item: &ContentItem) -> Saving {
        Saving { bytes: item.bytes, object: item.object, other: NO_OBJECT }
    }
}

/// Savings of a share, and its largest groups.
type ShareFindings = (Vec<Saving>, Vec<Largest>);

fn find<C: Content>(content: &C, bytes_of_dump: &[u8], share: &mut [ContentItem]) -> ShareFindings {
    share.sort_unstable_by_key(|item| (item.hash, item.object));
    let (mut savings, mut groups) = (Vec::new(), Vec::new());
    let mut others: Vec<ContentItem> = Vec::new();
    let (mut start, mut ahead) = (0, 0);
    for same_hash in share.chunk_by(|a, b| a.hash == b.hash) {
        start += same_hash.len();
        if same_hash.len() < 2 {
            continue;
        }
        // Records are scattered: they are prefetched.
        while ahead < share.len().min(start + AHEAD) {
            let item = share.get(ahead);
            let has_same =
                |other: usize| share.get(other).map(|other| other.hash) == item.map(|item| item.hash);
            if let Some(item) = item.filter(|_| has_same(ahead + 1) || ahead > 0 && has_same(ahead - 1)) {
                prefetch(bytes_of_dump, usize::try_from(item.place >> 2).unwrap_or(usize::MAX));
            }
            ahead += 1;
        }
        let mut left: Vec<ContentItem> = Vec::new();
        let mut items = same_hash;
        // One iteration, unless contents have the same hash by accident.
        while let Some((first, rest)) = items.split_first().filter(|(_, rest)| !rest.is_empty()) {
            let Some(read) = content.read(first) else {
                // The dump has changed since: the item equals nothing, and others are not compared with it.
                items = rest;
                continue;
            };
            let mut seen: IdSet<u64> = IdSet::default();
            let (before, mut bytes) = (savings.len(), 0u64);
            others.clear();
            for item in rest {
                let is_known = item.is_whole()
                    && (item.place == first.place || item.is_long() && seen.contains(&item.place));
                let is_same = is_known || content.read(item).is_some_and(|other| C::same(&read, &other));
                if !is_same {
                    others.push(*item);
                    continue;
                }
                if item.is_long() && item.is_whole() {
                    seen.insert(item.place);
                }
                let saving = content.saving(item);
                bytes = bytes.saturating_add(saving.bytes);
                savings.push(saving);
            }
            if savings.len() > before {
                groups.push((ObjectIndex(first.object), (savings.len() - before) as u64, bytes));
            }
            left.clone_from(&others);
            items = &left;
        }
        if groups.len() > MAX_GROUPS * 100 {
            groups = keep_largest(groups, MAX_GROUPS);
        }
    }
    (savings, keep_largest(groups, MAX_GROUPS))
}

fn find_all<C: Content>(
    content: &C,
    shares: Shares,
    (bytes, room): (&[u8], &ScratchArena),
) -> io::Result<(Array<Saving>, Vec<Largest>)> {
    let one = |mut share: Array<ContentItem>| {
        let (savings, groups) = find(content, bytes, &mut share);
        Ok((room.copy(&savings)?, groups))
    };
    let found: Vec<_> = shares.into_arrays()?.into_par_iter().map(one).collect::<io::Result<_>>()?;
    let mut all = room.array::<Saving>(found.iter().map(|(savings, _)| savings.len()).sum())?;
    let mut at = 0;
    let mut groups = Vec::new();
    for (savings, some) in found {
        if let Some(place) = all.get_mut(at..at + savings.len()) {
            place.copy_from_slice(&savings);
        }
        at += savings.len();
        groups.extend(some);
    }
    all.par_sort_unstable_by_key(|saving| saving.object);
    Ok((all, keep_largest(groups, MAX_GROUPS)))
}

/// Finds Strings of the same text. The first stays; the arrays of the others are freed, if nothing else refers to them.
pub(super) fn strings(search: &WasteSearch<'_>, shares: Shares) -> io::Result<Findings> {
    let (mut savings, groups) = find_all(&StringTexts(search), shares, (search.bytes, &search.room))?;
    let graph = search.graph;
    let mut freed = Bits::new(graph.objects.len());
    for saving in savings.iter() {
        freed.insert(ObjectIndex(saving.object));
    }
    // An array that several Strings share is considered with the first of them.
    savings.par_iter_mut().filter(|saving| saving.other != NO_OBJECT).for_each(|saving| {
        let array = ObjectIndex(saving.other);
        let mut referrers = graph.referrers(array).filter(|from| search.reachable.contains(*from));
        if search.roots.contains(array) || !referrers.all(|from| freed.contains(from)) {
            let class = search.class(ObjectIndex(saving.object));
            saving.bytes = class.map_or(0, |class| search.sizes.instance(class).0);
            saving.other = NO_OBJECT;
        }
    });
    let mut findings = Findings::new(WasteKind::DuplicateStrings, Frees::Objects);
    findings.take(savings, &Parts::default());
    findings.groups = groups;
    Ok(findings)
}

/// Finds arrays of the same content.
pub(super) fn arrays(search: &WasteSearch<'_>, shares: Shares) -> io::Result<Findings> {
    let (savings, groups) = find_all(&Arrays(search), shares, (search.bytes, &search.room))?;
    let class = |object| search.class(object);
    let mut findings = Findings::by_class(WasteKind::DuplicateArrays, Frees::Objects, savings, class);
    findings.groups = groups;
    Ok(findings)
}
