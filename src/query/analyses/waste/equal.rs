//! Duplicates: Strings with the same text, arrays with the same contents.
//!
//! Candidates have the same 64-bit hash, and contents are compared, so there are no false positives. The candidates are divided
//! into shares by the upper bits of their hashes: one share fits into the cache while it is sorted.

use std::io;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::WasteSearch;
use super::findings::{DuplicateGroup, Saving, keep_largest};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::storage::id_map::IdSet;
use hprof_index::storage::prefetch::prefetch;
use hprof_index::storage::scratch::{Array, ScratchArena, ScratchStack};
use hprof_model::strings::contents;

/// Number of shares of the contents, by hash.
const SHARES: usize = 256;
/// Number of items of a share that are moved to the scratch arena at a time.
const SHARE_TOP: usize = 1 << 9;
/// Maximum number of groups of equal objects that are stored as examples.
const MAX_GROUPS: usize = 100;
/// Prefetch distance in items.
const AHEAD: usize = 16;
/// Minimum size in bytes of contents that are compared only once per record.
const LONG: u64 = 1 << 10;

/// A String or an array, and the location of its contents.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct ContentItem {
    pub(super) hash: u64,
    /// Offset of the array's record, shifted left by two, plus the encoding of a text.
    pub(super) place: u64,
    /// Size of the array in bytes, possibly with the flag [`SHARED`].
    pub(super) bytes: u64,
    pub(super) object: u32,
    /// Object index of the array.
    pub(super) array: u32,
}

/// Flag of an array that counts with an earlier String.
pub(super) const SHARED: u64 = 1 << 63;

impl ContentItem {
    /// Returns the bytes freed together with the object: the size of the array, unless it counts with an earlier String.
    pub(super) fn bytes(&self) -> u64 {
        if self.bytes & SHARED == 0 { self.bytes } else { 0 }
    }

    fn is_long(&self) -> bool {
        self.bytes & !SHARED > LONG
    }

    /// Returns whether the contents are an entire array, not a part of one.
    fn is_whole(&self) -> bool {
        self.place & 3 != contents::StringEncoding::Part as u64
    }
}

/// Items in shares, by the upper bits of their hashes.
#[derive(Default)]
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

/// Kind of contents that can be compared: arrays or texts.
pub(super) trait Content: Sync {
    /// Contents that were read for comparing.
    type Read<'r>
    where
        Self: 'r;

    fn read(&self, item: &ContentItem) -> Option<Self::Read<'_>>;
    fn same(a: &Self::Read<'_>, b: &Self::Read<'_>) -> bool;
    /// Returns the saving of an item.
    fn saving(&self, item: &ContentItem) -> Saving;
}

/// Savings of a share, and its largest groups.
type ShareFindings = (Vec<Saving>, Vec<DuplicateGroup>);

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

/// Returns the savings of equal contents, ascending by object, and the largest groups.
pub(super) fn find_all<C: Content>(
    search: &WasteSearch<'_>,
    content: &C,
    shares: &mut Shares,
) -> io::Result<(Array<Saving>, Vec<DuplicateGroup>)> {
    let room = &search.room;
    let one = |mut share: Array<ContentItem>| {
        let (savings, groups) = find(content, search.dump.bytes(), &mut share);
        Ok((room.copy(&savings)?, groups))
    };
    let found: Vec<_> =
        std::mem::take(shares).into_arrays()?.into_par_iter().map(one).collect::<io::Result<_>>()?;
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
