//! Strings of a heap: their texts, duplicates, and the holders of those.
//!
//! Texts are not stored: each String takes 32 bytes, the hash of its text and its location in the dump. Texts with the same
//! hash are compared, so that none counts for another. `StringReader` makes rows with their texts on demand.

pub mod contents;
mod find;
pub mod holders;
mod keyed_hash;
mod matching;
mod same;

pub use keyed_hash::TextKey;

use std::cmp::Ordering;
use std::io;
use std::ops::RangeInclusive;

use rayon::prelude::*;
use regex::Regex;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::Summary;
use hprof_index::storage::id_map::{IdMap, IdSet};
use hprof_index::storage::scratch::{Array, ScratchArena};
use hprof_index::storage::scratch_table::ScratchVec;
use hprof_index::{Dump, ObjectGraph};
use hprof_values::ObjectId;

use super::objects::hiding;
use super::objects::reader::{Characters, ObjectReader};
use contents::random_seed;
use find::StringItem;
use holders::Holder;
pub use matching::{DumpSide, DuplicateText, match_texts};

/// Class of the objects that are read.
pub const STRING: &str = "java.lang.String";

/// Query for Strings.
#[derive(Debug, Clone)]
pub struct StringQuery {
    /// Pattern that the text must match.
    pub pattern: Option<Regex>,
    /// Lengths in UTF-16 units.
    pub lengths: RangeInclusive<u64>,
    /// `true` for reachable Strings only.
    pub live: bool,
    /// Subject of a row.
    pub rows: StringRows,
    /// Order of the rows.
    pub sort_by: StringOrder,
    /// Maximum number of rows; all by default.
    pub top: Option<usize>,
}

/// Subject of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringRows {
    /// A String.
    Strings,
    /// A text that several Strings have.
    Duplicates,
}

/// Order of the rows of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringOrder {
    /// By bytes, descending.
    Bytes,
    /// By number of copies, descending.
    Count,
    /// By length, descending.
    Length,
    /// By wasted bytes, descending.
    Wasted,
    /// By object ID; of the first copy.
    Address,
    /// By text, like `String.compareTo`.
    Text,
}

/// Totals over the matching Strings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StringTotals {
    /// Number of Strings.
    pub strings: u64,
    /// Number of distinct texts.
    pub distinct: u64,
    /// Number of texts that several Strings have.
    pub duplicated: u64,
    /// Number of UTF-16 units.
    pub characters: u64,
    /// Size of Strings and their arrays in bytes; a shared array counts once.
    pub bytes: u64,
    /// Size in bytes of all copies except the first of each text.
    pub wasted_bytes: u64,
    /// Number of Strings without a text: their `value` is null, not an array of characters, or not in the dump. 0 if
    /// texts or lengths are filtered.
    pub unreadable: u64,
    /// Number of rows before `top` was applied.
    pub rows: u64,
}

/// Strings of the same text, in one share.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct EqualStrings {
    /// Number of the share.
    share: u32,
    /// Position of the first String in the share; the others follow by object ID.
    start: u32,
    /// Number of Strings.
    count: u32,
    /// Object index of the first String.
    first: u32,
    /// Length in UTF-16 units.
    length: u32,
    /// Position in the share of the first String of this text, which other rows may have; after sorting by text, the rank of
    /// the text.
    text: u32,
    /// Size of all Strings of the row in bytes.
    bytes: u64,
    /// Size of all Strings of the row except the first in bytes.
    wasted: u64,
}

/// Matching Strings in order, without their texts.
#[derive(Debug, Default)]
pub struct StringReport {
    /// Totals over all matching Strings.
    pub totals: StringTotals,
    shares: Vec<Array<StringItem>>,
    /// Rows: up to one for each String.
    groups: StoredRows,
}

/// Storage of the rows of a result.
#[derive(Debug)]
enum StoredRows {
    Few(Vec<EqualStrings>),
    /// In the scratch arena.
    All(Array<EqualStrings>),
}

impl Default for StoredRows {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl StringReport {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.groups().len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.groups().is_empty()
    }

    fn groups(&self) -> &[EqualStrings] {
        match &self.groups {
            StoredRows::Few(rows) => rows,
            StoredRows::All(rows) => rows,
        }
    }
}

/// Maximum number of characters shown; longer texts are always truncated.
pub const LONGEST: usize = 1 << 24;

/// A String, or a text that several have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringRow {
    /// Object ID; of the first copy.
    pub id: ObjectId,
    /// Text, or its beginning.
    pub text: String,
    /// `true` if `text` is truncated.
    pub is_cut: bool,
    /// Length in UTF-16 units: the result of `String.length()`.
    pub length: u64,
    /// Number of Strings with this text; 1 if rows are Strings.
    pub count: u64,
    /// Shallow size of the String in bytes.
    pub shallow_bytes: u64,
    /// Retained size of the String in bytes; `None` if it is unreachable.
    pub retained_bytes: Option<u64>,
    /// Size of all copies and their arrays in bytes; a shared array counts for its first String.
    pub total_bytes: u64,
    /// Size of all copies except the first in bytes.
    pub wasted_bytes: u64,
    /// Objects that refer to most of the examined copies; for duplicates only.
    pub holders: Vec<Holder>,
    /// Number of copies examined for `holders`.
    pub sampled: u64,
}

/// Sizes of String objects.
#[derive(Debug)]
struct StringBytes {
    sizes: Sizes,
    /// Common size, if all have the same.
    same: Option<u64>,
}

impl StringBytes {
    fn new(summary: &Summary) -> Self {
        let sizes = Sizes::new(summary, None);
        let classes = summary.numbered_classes().filter(|(_, class)| summary.is_named(class, STRING));
        let mut all: Vec<u64> = classes.map(|(number, _)| sizes.instance(number).0).collect();
        all.dedup();
        let same = if let [size] = *all { Some(size) } else { None };
        Self { sizes, same }
    }

    #[inline(always)]
    fn bytes_of(&self, graph: &ObjectGraph, string: ObjectIndex) -> u64 {
        self.same
            .unwrap_or_else(|| graph.objects.class(string).map_or(0, |class| self.sizes.instance(class).0))
    }
}

/// State shared by searches whose results can be matched by text.
#[derive(Debug, Clone)]
pub struct StringSearchContext {
    /// Hash seed.
    seed: u64,
    room: ScratchArena,
}

impl StringSearchContext {
    /// Creates a basis with a scratch arena next to the index of this graph: one memory budget for all searches.
    pub fn new(graph: &ObjectGraph) -> Self {
        Self { seed: random_seed(), room: graph.room() }
    }
}

/// Finds the Strings of a dump that match a query.
///
/// # Errors
/// If there is neither memory nor disk space for a few numbers for each String.
pub fn strings(dump: &Dump<'_>, question: &StringQuery) -> io::Result<StringReport> {
    let mut answer = strings_on(&StringSearchContext::new(dump.graph), dump, question)?;
    if answer.is_empty() {
        answer.shares.clear();
    }
    Ok(answer)
}

/// Finds Strings like [`strings`], for comparison by [`match_texts`].
pub fn strings_on(
    basis: &StringSearchContext,
    dump: &Dump<'_>,
    question: &StringQuery,
) -> io::Result<StringReport> {
    let objects = dump.objects;
    let found = find::find(&objects, question, basis)?;
    let search = Grouping { objects: &objects, sizes: StringBytes::new(dump.summary), rows: question.rows };
    let room = &basis.room;
    let counted: Vec<(Array<StringItem>, CountedShare)> = (0u32..)
        .zip(found.shares)
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|(number, mut share)| {
            let (mut groups, mut totals) = search.groups(number, &mut share);
            totals.rows = groups.len() as u64;
            // Of each share no more than of all.
            if let Some(order) = Grouping::order(question).filter(|_| question.top.is_some()) {
                keep_first(&mut groups, question.top, order);
            }
            Ok((share, (room.copy(&groups)?, totals)))
        })
        .collect::<io::Result<_>>()?;
    let mut totals = StringTotals { unreadable: found.unreadable, ..StringTotals::default() };
    let count = counted.iter().map(|(_, (groups, _))| groups.len()).sum();
    let (mut groups, mut shares) = (room.array::<EqualStrings>(count)?, Vec::with_capacity(counted.len()));
    let mut start = 0;
    for (share, (some, of_share)) in counted {
        if let Some(place) = groups.get_mut(start..start + some.len()) {
            place.copy_from_slice(&some);
        }
        start += some.len();
        totals.add(&of_share);
        shares.push(share);
    }
    let shown = search.sort(&mut groups, &shares, question, room)?;
    if shown < groups.len() {
        groups = room.copy(groups.get(..shown).unwrap_or_default())?;
    }
    Ok(StringReport { totals, shares, groups: StoredRows::All(groups) })
}

/// Rows of a share, and its totals.
type CountedShare = (Array<EqualStrings>, StringTotals);

impl StringTotals {
    fn add(&mut self, other: &Self) {
        self.strings += other.strings;
        self.rows += other.rows;
        self.distinct += other.distinct;
        self.duplicated += other.duplicated;
        self.characters += other.characters;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.wasted_bytes = self.wasted_bytes.saturating_add(other.wasted_bytes);
    }
}

/// Context for grouping equal texts.
struct Grouping<'s, 'a> {
    objects: &'s ObjectReader<'a>,
    sizes: StringBytes,
    rows: StringRows,
}

impl Grouping<'_, '_> {
    /// Sorts the Strings of a share by hash and object ID, and makes the rows.
    fn groups(&self, number: u32, share: &mut [StringItem]) -> (Vec<EqualStrings>, StringTotals) {
        share.par_sort_unstable_by_key(|item| (item.hash, item.string));
        let (mut groups, mut totals, mut counts) = (Vec::new(), StringTotals::default(), Vec::new());
        let mut start = 0u32;
        for mut same_hash in share.chunk_by_mut(|a, b| a.hash == b.hash) {
            same::by_text(same_hash, &mut counts, |item| item.characters(self.objects));
            for count in &counts {
                let Some((same, others)) = same_hash.split_at_mut_checked(*count) else { break };
                same_hash = others;
                let group = self.group(number, (start, start), same);
                totals.strings += u64::from(group.count);
                totals.distinct += 1;
                totals.duplicated += u64::from(group.count > 1);
                totals.characters += u64::from(group.length) * u64::from(group.count);
                totals.bytes = totals.bytes.saturating_add(group.bytes);
                totals.wasted_bytes = totals.wasted_bytes.saturating_add(group.wasted);
                match self.rows {
                    StringRows::Duplicates if group.count > 1 => groups.push(group),
                    StringRows::Duplicates => {}
                    StringRows::Strings => {
                        let rows = (start..).zip(same.chunks(1));
                        groups.extend(rows.map(|(at, one)| self.group(number, (start, at), one)));
                    }
                }
                start = start.saturating_add(group.count);
            }
        }
        (groups, totals)
    }

    /// Returns the row of Strings of the same text, which are at `start` of their share; all with this text are at
    /// `text`.
    fn group(&self, share: u32, (text, start): (u32, u32), same: &[StringItem]) -> EqualStrings {
        let bytes = |item: &StringItem| {
            item.array_bytes.saturating_add(self.sizes.bytes_of(self.objects.graph, ObjectIndex(item.string)))
        };
        let own = same.first().map_or(0, bytes);
        let all = same.iter().fold(0u64, |sum, item| sum.saturating_add(bytes(item)));
        EqualStrings {
            share,
            start,
            // The number of objects fits.
            count: u32::try_from(same.len()).unwrap_or(u32::MAX),
            first: same.first().map_or(0, |item| item.string),
            length: same.first().map_or(0, |item| item.length),
            text,
            bytes: all,
            wasted: all.saturating_sub(own),
        }
    }

    /// Returns the order of rows, unless rows are ordered by their texts.
    fn order(question: &StringQuery) -> Option<impl Fn(&EqualStrings, &EqualStrings) -> Ordering + Sync> {
        let sort_by = question.sort_by;
        let order = move |a: &EqualStrings, b: &EqualStrings| {
            let by_key = match sort_by {
                StringOrder::Bytes => b.bytes.cmp(&a.bytes),
                StringOrder::Count => b.count.cmp(&a.count),
                StringOrder::Length => b.length.cmp(&a.length),
                StringOrder::Wasted => b.wasted.cmp(&a.wasted),
                StringOrder::Address | StringOrder::Text => Ordering::Equal,
            };
            by_key.then(a.first.cmp(&b.first))
        };
        (sort_by != StringOrder::Text).then_some(order)
    }

    /// Sorts rows up to the first `top`, and returns the number of these.
    fn sort(
        &self,
        groups: &mut [EqualStrings],
        shares: &[Array<StringItem>],
        question: &StringQuery,
        room: &ScratchArena,
    ) -> io::Result<usize> {
        let top = question.top.unwrap_or(usize::MAX);
        Ok(match Self::order(question) {
            Some(order) => sort_first(groups, top, order),
            None => {
                self.number_texts(groups, shares, top, room)?;
                sort_first(groups, top, |a, b| a.text.cmp(&b.text).then(a.first.cmp(&b.first)))
            }
        })
    }

    /// Numbers the texts in the order of the rows: the first `top` of them, with the others after them. Each text is
    /// compared once for all its rows, which are adjacent.
    fn number_texts(
        &self,
        groups: &mut [EqualStrings],
        shares: &[Array<StringItem>],
        top: usize,
        room: &ScratchArena,
    ) -> io::Result<()> {
        // Start and number of the rows of each text.
        let mut start = 0u32;
        let mut texts = ScratchVec::<[u32; 2]>::new(room);
        for rows in groups.chunk_by(|a, b| (a.share, a.text) == (b.share, b.text)) {
            // The number of objects fits.
            let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
            texts.push([start, count])?;
            start = start.saturating_add(count);
        }
        let text = |[start, _]: &[u32; 2]| {
            let item = groups.get(*start as usize).and_then(|group| item(shares, group));
            item.and_then(|item| item.characters(self.objects))
        };
        let order = |a: &[u32; 2], b: &[u32; 2]| same::order(text(a).as_ref(), text(b).as_ref());
        let shown = sort_first(texts.as_mut_slice(), top.max(1), order);
        groups.iter_mut().for_each(|group| group.text = u32::MAX);
        for ([start, count], number) in texts.as_slice().iter().take(shown).zip(0..) {
            let (start, count) = (*start, *count);
            let rows = groups.iter_mut().skip(start as usize).take(count as usize);
            rows.for_each(|group| group.text = number);
        }
        Ok(())
    }
}

/// Sorts the first `top` elements of an order to the front, and returns their number.
fn sort_first<T: Send>(all: &mut [T], top: usize, order: impl Fn(&T, &T) -> Ordering + Sync) -> usize {
    let Some(last) = top.checked_sub(1) else { return 0 };
    if top < all.len() {
        all.select_nth_unstable_by(last, &order);
    }
    let shown = top.min(all.len());
    all.get_mut(..shown).unwrap_or_default().par_sort_unstable_by(order);
    shown
}

/// Keeps the first `top` elements of an order, without order.
fn keep_first<T>(all: &mut Vec<T>, top: Option<usize>, order: impl Fn(&T, &T) -> Ordering) {
    let top = top.unwrap_or(usize::MAX);
    if top > 0 && top < all.len() {
        all.select_nth_unstable_by(top - 1, order);
    }
    all.truncate(top);
}

/// Returns the first String of a row.
fn item<'s>(shares: &'s [Array<StringItem>], group: &EqualStrings) -> Option<&'s StringItem> {
    shares.get(group.share as usize)?.get(group.start as usize)
}

/// Number of characters that may be shown repeatedly for Strings that share an array, in addition to the length of the
/// dump. Without this limit, a file in which thousands of Strings share one long array would produce an endless result.
const SHARED: u64 = 1 << 24;
/// Number of characters that are always shown, including texts truncated because they were shown before.
const ALWAYS: u32 = 256;

/// Reader of the rows of a result, with their texts.
#[derive(Debug)]
pub struct StringReader<'a> {
    objects: ObjectReader<'a>,
    answer: &'a StringReport,
    rows: StringRows,
    most: usize,
    /// Truncated length of the text, by row, where it is less than `most`.
    cut: IdMap<usize, u32>,
}

impl<'a> StringReader<'a> {
    /// Creates a reader of the rows of `answer`, with texts truncated to `most` characters.
    pub fn new(dump: &Dump<'a>, answer: &'a StringReport, (rows, most): (StringRows, usize)) -> Self {
        let most = most.min(LONGEST);
        let cut = cut_shared(answer, most, SHARED.saturating_add(dump.bytes().len() as u64));
        Self { objects: dump.objects, answer, rows, most, cut }
    }

    /// Returns the end (exclusive) of the rows from `start` on that are made together: up to `rows`, with texts of
    /// about `characters`.
    pub fn chunk(&self, start: usize, rows: usize, characters: usize) -> usize {
        let mut left = characters;
        let groups = self.answer.groups().iter().enumerate().skip(start).take(rows);
        let fit = groups.take_while(|(row, group)| {
            let fits = left > 0;
            left = left.saturating_sub((group.length as usize).min(self.most_of(*row)));
            fits
        });
        start.saturating_add(fit.count())
    }

    /// Returns the maximum number of characters shown of this row's text.
    fn most_of(&self, row: usize) -> usize {
        self.cut.get(&row).map_or(self.most, |cut| *cut as usize)
    }

    /// Returns the row of this number.
    pub fn row(&self, number: usize) -> Option<StringRow> {
        let group = self.answer.groups().get(number)?;
        let item = item(&self.answer.shares, group)?;
        let graph = self.objects.graph;
        let (text, is_cut) = match item.characters(&self.objects) {
            Some(characters) if self.objects.summary.hides_values() => {
                (hiding::mask_text(&characters), false)
            }
            Some(characters) => text(&characters, self.most_of(number)),
            None => (String::new(), false),
        };
        let tree = &graph.tree;
        let reachable = tree.reachable_position(ObjectIndex(group.first));
        let sample = match self.rows {
            StringRows::Strings => Vec::new(),
            StringRows::Duplicates => self.sample(group),
        };
        Some(StringRow {
            id: graph.objects.addresses.id_of(ObjectIndex(group.first)).unwrap_or_default(),
            text,
            is_cut,
            length: group.length.into(),
            count: group.count.into(),
            shallow_bytes: tree
                .position(ObjectIndex(group.first))
                .map_or(0, |position| tree.shallow_bytes(position)),
            retained_bytes: reachable.map(|position| tree.retained_bytes(position)),
            total_bytes: group.bytes,
            wasted_bytes: group.wasted,
            holders: holders::holders(&self.objects, &sample),
            sampled: sample.len() as u64,
        })
    }

    /// Returns a sample of the copies of a text, far apart.
    fn sample(&self, group: &EqualStrings) -> Vec<ObjectIndex> {
        let start = group.start as usize;
        let share = self.answer.shares.get(group.share as usize);
        let copies = share.and_then(|share| share.get(start..start.checked_add(group.count as usize)?));
        let copies = copies.unwrap_or_default();
        let step = copies.len().div_ceil(holders::SAMPLE).max(1);
        copies.iter().step_by(step).map(|item| ObjectIndex(item.string)).collect()
    }
}

/// Returns the rows with long texts of arrays that an earlier row also has, once more than `left` characters of those
/// are shown, with the number of characters to which they are truncated.
fn cut_shared(answer: &StringReport, most: usize, mut left: u64) -> IdMap<usize, u32> {
    let (mut shown, mut cut) = (IdSet::default(), IdMap::default());
    for (row, group) in answer.groups().iter().enumerate() {
        let length = u32::try_from(most).unwrap_or(u32::MAX).min(group.length);
        if length <= ALWAYS {
            continue;
        }
        // Other encodings of an array, and parts of it, count as the same location here.
        let Some(place) = item(&answer.shares, group).map(|item| item.place() >> 2) else { continue };
        if shown.insert(place) {
            continue;
        }
        match left.checked_sub(length.into()) {
            Some(rest) => left = rest,
            None => {
                cut.insert(row, ALWAYS);
            }
        }
    }
    cut
}

/// Returns a text up to `most` characters, and whether it is truncated.
fn text(characters: &Characters<'_>, most: usize) -> (String, bool) {
    let text = characters.text(most);
    let is_cut = most < characters.len() && char::decode_utf16(characters.units()).nth(most).is_some();
    (text, is_cut)
}
