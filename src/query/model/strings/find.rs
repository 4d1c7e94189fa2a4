//! Parallel search for all Strings and their characters.
//!
//! Records are read in the order of the dump, each block of objects at most twice: first those with Strings, then those
//! with their arrays. Looking up a single array would take a walk over half a block, and a heap contains millions. Each
//! String takes 16 bytes between the passes, and 32 in the end.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use regex::Regex;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::objects::reader::{Characters, Instance, ObjectReader, ObjectVisitor, PrimitiveArray};
use hprof_base::parallel;
use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, chunks};
use hprof_index::layout::object_layout::Layout;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::array_contents::MissingContents;
use hprof_index::objects::object_table::BLOCK;
use hprof_index::objects::strings::{StringFields, StringPart};
use hprof_index::storage::scratch::{Array, ScratchStack};
use hprof_values::ObjectId;

use super::contents::{self, Hashes, StringEncoding};
use super::{STRING, StringQuery, StringSearchContext};

/// Minimum number of objects per chunk of a thread.
const CHUNK: u32 = 1 << 16;
/// Maximum number of chunks.
const MAX_CHUNKS: u32 = 1 << 10;
/// Number of shares of the Strings, by hash.
pub(super) const SHARES: usize = 256;
/// Number of Strings of a share that are moved to the scratch arena at a time.
const SHARE_TOP: usize = 1 << 11;

/// A String and its reference to an array.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct FoundString {
    /// Object index of the array.
    array: u32,
    /// Object index of the String.
    string: u32,
    part: StringPart,
}

/// A String with readable characters.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct StringItem {
    pub(super) hash: u64,
    /// Offset of the array's record, shifted left by two, and the [`StringEncoding`].
    place: u64,
    /// Size of the array in bytes; 0 if it counts for another String.
    pub(super) array_bytes: u64,
    /// Object index.
    pub(super) string: u32,
    /// Length in UTF-16 units.
    pub(super) length: u32,
}

impl StringItem {
    /// Returns the location and encoding of the characters; for a part of an array, the location of the array.
    pub(super) fn place(&self) -> u64 {
        self.place
    }

    /// Returns whether the characters are certainly the same: all of one array.
    pub(super) fn is_at_place_of(&self, other: &Self) -> bool {
        self.place == other.place && self.place & 3 != StringEncoding::Part as u64
    }

    /// Creates a String of which only the location is known.
    #[cfg(test)]
    pub(super) fn of_test(form: StringEncoding, at: usize, string: u32) -> Self {
        Self { hash: 0, place: (at as u64) << 2 | form as u64, array_bytes: 0, string, length: 0 }
    }

    /// Returns the characters; `None` only if the dump has changed since.
    pub(super) fn characters<'a>(&self, objects: &ObjectReader<'a>) -> Option<Characters<'a>> {
        contents::characters_at(objects, self.place, ObjectIndex(self.string))
    }
}

/// Strings that match a query, and the number of unreadable ones.
#[derive(Debug, Default)]
pub(super) struct FoundStrings {
    /// Strings by a part of their hash, unordered.
    pub(super) shares: Vec<Array<StringItem>>,
    /// Number of Strings without characters: `value` is null, not an array of characters, or not in the dump. 0 if
    /// texts or lengths are filtered, which these do not have.
    pub(super) unreadable: u64,
}

/// Search for Strings, with the state shared by its threads.
struct StringSearch<'s, 'a> {
    objects: &'s ObjectReader<'a>,
    graph: &'a ObjectGraph,
    question: &'s StringQuery,
    layout: &'s Layout,
    seed: u64,
    /// Contents that the dump lacks.
    missing: MissingContents,
    /// Fields of String classes, by class number.
    fields: Vec<Option<StringFields>>,
}

/// Finds the Strings that match a query.
pub(super) fn find<'a>(
    objects: &ObjectReader<'a>,
    question: &StringQuery,
    basis: &StringSearchContext,
) -> io::Result<FoundStrings> {
    let (summary, graph) = (objects.summary, objects.graph);
    let sizes = Sizes::new(summary, None);
    let classes = summary.numbered_classes();
    let fields = classes
        .map(|(number, class)| {
            (summary.is_named(class, STRING)).then(|| StringFields::for_class(summary, number))?
        })
        .collect();
    let missing = summary.missing_contents();
    let (layout, seed) = (sizes.layout(), basis.seed);
    let search = StringSearch { objects, graph, question, layout, seed, missing, fields };
    let count = graph.objects.len();
    let size = CHUNK.max((count / MAX_CHUNKS).next_multiple_of(BLOCK));
    let all = chunks(0..count, size);
    let room = &basis.room;
    let strings = |chunk: Range<u32>| {
        let (found, unreadable) = search.strings(chunk);
        Ok((room.copy(&found)?, unreadable))
    };
    let found: Vec<(Array<FoundString>, u64)> = parallel::try_map(&all, strings)?;
    let unreadable: u64 = found.iter().map(|(_, unreadable)| unreadable).sum();
    let shares: Vec<Mutex<ScratchStack<StringItem>>> =
        (0..SHARES).map(|_| Mutex::new(ScratchStack::with_top(room, SHARE_TOP))).collect();
    let unreadable_arrays = parallel::try_map(&all, |chunk| {
        let mut here: Vec<FoundString> = Vec::new();
        for (found, _) in &found {
            let start = found.partition_point(|found| found.array < chunk.start);
            let end = found.partition_point(|found| found.array < chunk.end);
            here.extend_from_slice(found.get(start..end).unwrap_or_default());
        }
        let (items, unreadable) = search.arrays(here);
        for (share, items) in shares.iter().zip(items) {
            let mut share = share.lock().unwrap_or_else(PoisonError::into_inner);
            items.into_iter().try_for_each(|item| share.push(item))?;
        }
        Ok(unreadable)
    })?;
    let unreadable_arrays: u64 = unreadable_arrays.into_iter().sum();
    drop(found);
    let shares = (shares.into_par_iter())
        .map(|share| share.into_inner().unwrap_or_else(PoisonError::into_inner).into_array())
        .collect::<io::Result<_>>()?;
    let asks_for_texts = question.pattern.is_some() || question.lengths != (0..=u64::MAX);
    Ok(FoundStrings { shares, unreadable: if asks_for_texts { 0 } else { unreadable + unreadable_arrays } })
}

impl<'a> StringSearch<'_, 'a> {
    /// Returns the Strings of a chunk, by their arrays, and the number of those without one.
    fn strings(&self, chunk: Range<u32>) -> (Vec<FoundString>, u64) {
        let mut strings = StringCollector { search: self, found: Vec::new(), ids: Vec::new() };
        let mut count = 0;
        for block in chunk.start / BLOCK..chunk.end.div_ceil(BLOCK) {
            let first = block * BLOCK;
            let wanted = self.strings_of_block(first..first.saturating_add(BLOCK).min(chunk.end));
            if wanted != 0 {
                count += u64::from(wanted.count_ones());
                self.objects.visit_block(ObjectIndex(first), wanted, &mut strings);
            }
        }
        let StringCollector { mut found, ids, .. } = strings;
        let mut indices = Vec::with_capacity(ids.len());
        self.graph.objects.addresses.finder().find(&ids, |index| indices.push(index));
        // Removes Strings whose arrays are not in the dump.
        let mut indices = indices.into_iter();
        found.retain_mut(|found| match indices.next().flatten() {
            Some(array) => {
                found.array = array.0;
                true
            }
            None => false,
        });
        let unreadable = count.saturating_sub(found.len() as u64);
        found.sort_unstable_by_key(|found| (found.array, found.string));
        (found, unreadable)
    }

    /// Returns the objects of a block that are matching Strings, regardless of their texts; one bit each.
    fn strings_of_block(&self, block: Range<u32>) -> u64 {
        let objects = &self.graph.objects;
        let width = usize::from(objects.class_bytes.max(1));
        let start = block.start as usize * width;
        let rows = objects.classes.rows(start..start + block.len() * width).unwrap_or_default();
        let mut wanted = 0;
        for (bit, number) in rows.chunks_exact(width).enumerate() {
            let number = number.iter().rev().fold(0usize, |number, byte| (number << 8) | usize::from(*byte));
            let is_string = self.fields.get(number).is_some_and(Option::is_some);
            wanted |= u64::from(is_string) << bit;
        }
        if self.question.live {
            for (bit, object) in (0..BLOCK).zip(block) {
                if wanted & (1 << bit) != 0
                    && self.graph.tree.reachable_position(ObjectIndex(object)).is_none()
                {
                    wanted &= !(1 << bit);
                }
            }
        }
        wanted
    }

    /// Returns the Strings of these arrays, by hash, and the number of those without characters.
    fn arrays(&self, mut found: Vec<FoundString>) -> (Vec<Vec<StringItem>>, u64) {
        // Of Strings that share an array the first one is counted with it.
        found.sort_unstable_by_key(|found| (found.array, found.string));
        let mut arrays = StringArrayReader {
            search: self,
            found: &found,
            pattern: self.question.pattern.clone(),
            buffer: String::new(),
            items: vec![Vec::new(); SHARES],
            unreadable: 0,
        };
        for of_block in found.chunk_by(|a, b| a.array / BLOCK == b.array / BLOCK) {
            let Some(first) = of_block.first().map(|found| found.array / BLOCK * BLOCK) else { continue };
            let wanted = of_block.iter().fold(0, |wanted, found| wanted | 1 << (found.array - first));
            self.objects.visit_block(ObjectIndex(first), wanted, &mut arrays);
        }
        // Strings whose `value` is not an array.
        let unreadable = arrays.unreadable + arrays.found.len() as u64;
        (arrays.items, unreadable)
    }
}

/// Visitor that collects Strings.
struct StringCollector<'v, 's, 'a> {
    search: &'v StringSearch<'s, 'a>,
    found: Vec<FoundString>,
    /// IDs of the arrays.
    ids: Vec<ObjectId>,
}

impl<'a> ObjectVisitor<'a> for StringCollector<'_, '_, 'a> {
    #[inline(always)]
    fn instance(&mut self, object: ObjectIndex, record: Instance<'a>) {
        let search = self.search;
        let class = search.graph.objects.class(object);
        let fields = class.and_then(|class| search.fields.get(class.0 as usize)?.as_ref());
        let read = fields.and_then(|fields| fields.read(record.fields, search.objects.summary.id_size()));
        if let Some((id, part)) = read {
            self.ids.push(id);
            self.found.push(FoundString { array: 0, string: object.0, part });
        }
    }
}

/// Visitor that reads the arrays of Strings.
struct StringArrayReader<'v, 's, 'a> {
    search: &'v StringSearch<'s, 'a>,
    /// Strings of the next array and of later ones.
    found: &'v [FoundString],
    pattern: Option<Regex>,
    buffer: String,
    items: Vec<Vec<StringItem>>,
    unreadable: u64,
}

impl StringArrayReader<'_, '_, '_> {
    /// Returns the next String of an array.
    #[inline(always)]
    fn next_of(&mut self, array: ObjectIndex) -> Option<FoundString> {
        while let Some((first, rest)) = self.found.split_first()
            && first.array <= array.0
        {
            self.found = rest;
            if first.array == array.0 {
                return Some(*first);
            }
            // Its `value` is not an array.
            self.unreadable += 1;
        }
        None
    }
}

/// Returns the hash of a text, if it matches.
#[inline(always)]
fn hash_of_wanted(
    search: &StringSearch<'_, '_>,
    pattern: Option<&Regex>,
    characters: &Characters<'_>,
    buffer: &mut String,
) -> Option<u64> {
    let is_wanted = search.question.lengths.contains(&(characters.len() as u64))
        && pattern.is_none_or(|pattern| contents::matches(pattern, characters, buffer));
    is_wanted.then(|| contents::hash(characters, search.seed))
}

impl<'a> ObjectVisitor<'a> for StringArrayReader<'_, '_, 'a> {
    #[inline(always)]
    fn primitive_array(&mut self, object: ObjectIndex, record: PrimitiveArray<'a>) {
        let mut array_bytes = self.search.layout.array_size(record.element, record.length.into());
        // Many may share an array: it is read once.
        let mut hashes = Hashes::new(record.length);
        while let Some(found) = self.next_of(object) {
            let Some((form, characters)) = StringEncoding::decode(found.part, &record, self.search.missing)
            else {
                self.unreadable += 1;
                continue;
            };
            let hash = hashes.get(form, &characters, || {
                hash_of_wanted(self.search, self.pattern.as_ref(), &characters, &mut self.buffer)
            });
            let Some(hash) = hash else {
                self.unreadable += 1;
                continue;
            };
            let Some(hash) = hash else { continue };
            let item = StringItem {
                hash,
                place: record.offset << 2 | form as u64,
                array_bytes: std::mem::take(&mut array_bytes),
                string: found.string,
                // Arrays are never longer.
                length: u32::try_from(characters.len()).unwrap_or(u32::MAX),
            };
            if let Some(items) = self.items.get_mut(usize::try_from(hash >> 56).unwrap_or(0)) {
                items.push(item);
            }
        }
    }
}
