//! The Strings of a heap: what they say, which say the same, and who holds those.
//!
//! Texts are not kept: a String is 32 bytes here, the hash of its text and where it stands in the dump. Texts that have
//! the same hash are compared, so that none is counted for another. Rows with their texts are made when they are asked
//! for, by [`StringReader`].

pub(crate) mod contents;
mod find;
pub mod holders;
mod matching;
mod same;

use std::cmp::Ordering;
use std::io;
use std::ops::RangeInclusive;

use rayon::prelude::*;
use regex::Regex;

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::Summary;
use hprof_index::storage::id_map::{IdMap, IdSet};
use hprof_index::storage::scratch::{Array, ScratchArena};
use hprof_parser::ObjectId;

use super::objects::reader::{Characters, ObjectReader};
use contents::random_seed;
use find::StringItem;
use holders::Holder;
pub(crate) use matching::{Copies, DumpSide, matched};

/// The class whose objects are looked at.
pub const STRING: &str = "java.lang.String";

/// Which Strings are asked for, and in which order.
#[derive(Debug, Clone)]
pub struct StringQuery {
    /// Whose text matches this.
    pub pattern: Option<Regex>,
    /// Of these lengths, in UTF-16 units.
    pub lengths: RangeInclusive<u64>,
    /// Only reachable ones.
    pub live: bool,
    /// What a row is.
    pub rows: StringRows,
    /// The order of the rows.
    pub sort_by: StringOrder,
    /// Number of rows are kept; all by default.
    pub top: Option<usize>,
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringRows {
    /// A String.
    Strings,
    /// A text that several Strings have.
    Duplicates,
}

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringOrder {
    /// Most bytes first.
    Bytes,
    /// Most copies first.
    Count,
    /// Longest first.
    Length,
    /// Most bytes wasted first.
    Wasted,
    /// By address; of the first copy.
    Address,
    /// By text, as `String.compareTo` has it.
    Text,
}

/// Figures of all Strings that are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Strings.
    pub strings: u64,
    /// Different texts.
    pub distinct: u64,
    /// Texts that several Strings have.
    pub duplicated: u64,
    /// UTF-16 units of all of them.
    pub characters: u64,
    /// Bytes of Strings and their arrays; an array that several share counts once.
    pub bytes: u64,
    /// Bytes that all copies but the first of each text take.
    pub wasted_bytes: u64,
    /// Strings without a text: their `value` is null, or no array of characters, or not in the dump. None if texts or
    /// lengths are asked for.
    pub unreadable: u64,
    /// Rows before `top` was taken.
    pub rows: u64,
}

/// Strings of the same text, in one share.
#[derive(Debug, Clone, Copy)]
struct EqualStrings {
    /// The share.
    share: u32,
    /// The place of the first one in it; the others follow by address.
    start: u32,
    /// Number of them.
    count: u32,
    /// The first object.
    first: ObjectIndex,
    /// UTF-16 units.
    length: u32,
    /// The place in the share of the first String of this text, which other rows may have; once rows are sorted by text,
    /// the text's place in that order.
    text: u32,
    /// Bytes of all.
    bytes: u64,
    /// Bytes of all but the first.
    wasted: u64,
}

/// The Strings that were found, in order, without their texts.
#[derive(Debug, Default)]
pub struct StringReport {
    /// Figures of all that were asked for.
    pub totals: Totals,
    shares: Vec<Array<StringItem>>,
    /// The rows.
    groups: Vec<EqualStrings>,
}

impl StringReport {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

/// Characters of the longest text that is shown; what is longer is always cut.
pub const LONGEST: usize = 1 << 24;

/// A String, or a text that several have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringRow {
    /// Object ID; of the first copy.
    pub id: ObjectId,
    /// The text, or its beginning.
    pub text: String,
    /// `true` if `text` is not all of it.
    pub is_cut: bool,
    /// UTF-16 units: what `String.length()` says.
    pub length: u64,
    /// Strings with this text; 1 where rows are Strings.
    pub count: u64,
    /// What the String itself takes.
    pub shallow_bytes: u64,
    /// What would be freed with the String; `None` if it is unreachable.
    pub retained_bytes: Option<u64>,
    /// Bytes of all copies and their arrays; an array that several Strings share counts for the first of them.
    pub total_bytes: u64,
    /// Bytes of all copies but the first.
    pub wasted_bytes: u64,
    /// Who refers to most of the copies that were looked at; only of duplicates.
    pub holders: Vec<Holder>,
    /// Number of copies were looked at for `holders`.
    pub sampled: u64,
}

/// Sizes of String objects.
#[derive(Debug)]
struct StringBytes {
    sizes: Sizes,
    /// If they all have the same.
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
    fn of(&self, graph: &ObjectGraph, string: ObjectIndex) -> u64 {
        self.same
            .unwrap_or_else(|| graph.objects.class(string).map_or(0, |class| self.sizes.instance(class).0))
    }
}

/// What searches have in common whose answers can be matched by text.
#[derive(Debug, Clone)]
pub(crate) struct Basis {
    /// Of hashes.
    seed: u64,
    room: ScratchArena,
}

impl Basis {
    /// With room beside the index of this graph: one memory budget for all searches.
    pub(crate) fn new(graph: &ObjectGraph) -> Self {
        Self { seed: random_seed(), room: graph.room() }
    }
}

/// Finds Strings.
///
/// # Errors
/// If there is neither memory nor disk space for a few numbers for each String.
pub fn strings(
    summary: &Summary,
    graph: &ObjectGraph,
    bytes: &[u8],
    question: &StringQuery,
) -> io::Result<StringReport> {
    let mut answer = strings_on(&Basis::new(graph), summary, graph, bytes, question)?;
    if answer.groups.is_empty() {
        answer.shares.clear();
    }
    Ok(answer)
}

/// As [`strings`], for [`matched`].
pub(crate) fn strings_on(
    basis: &Basis,
    summary: &Summary,
    graph: &ObjectGraph,
    bytes: &[u8],
    question: &StringQuery,
) -> io::Result<StringReport> {
    let objects = ObjectReader::new(summary, graph, bytes);
    let found = find::find(&objects, bytes, question, basis)?;
    let search = Grouping { objects: &objects, sizes: StringBytes::new(summary), rows: question.rows };
    let (shares, counted): (Vec<Array<StringItem>>, Vec<Counted>) = (0u32..)
        .zip(found.shares)
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|(number, mut share)| {
            let counted = search.groups(number, &mut share);
            (share, counted)
        })
        .unzip();
    let mut totals = Totals { unreadable: found.unreadable, ..Totals::default() };
    let mut groups = Vec::with_capacity(counted.iter().map(|(groups, _)| groups.len()).sum());
    for (some, of_share) in counted {
        groups.extend(some);
        totals.add(&of_share);
    }
    totals.rows = groups.len() as u64;
    search.sort(&mut groups, &shares, question);
    Ok(StringReport { totals, shares, groups })
}

/// The rows of a share, and its figures.
type Counted = (Vec<EqualStrings>, Totals);

impl Totals {
    fn add(&mut self, other: &Self) {
        self.strings += other.strings;
        self.distinct += other.distinct;
        self.duplicated += other.duplicated;
        self.characters += other.characters;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.wasted_bytes = self.wasted_bytes.saturating_add(other.wasted_bytes);
    }
}

/// What putting the same texts together needs.
struct Grouping<'s, 'a> {
    objects: &'s ObjectReader<'a>,
    sizes: StringBytes,
    rows: StringRows,
}

impl Grouping<'_, '_> {
    /// Puts the Strings of a share in the order of hash and address, and makes the rows.
    fn groups(&self, number: u32, share: &mut [StringItem]) -> (Vec<EqualStrings>, Totals) {
        share.par_sort_unstable_by_key(|item| (item.hash, item.string));
        let (mut groups, mut totals, mut counts) = (Vec::new(), Totals::default(), Vec::new());
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

    /// The row of Strings of the same text, which stand at `start` of their share; all that have it stand at `text`.
    fn group(&self, share: u32, (text, start): (u32, u32), same: &[StringItem]) -> EqualStrings {
        let bytes = |item: &StringItem| {
            item.array_bytes.saturating_add(self.sizes.of(self.objects.graph, ObjectIndex(item.string)))
        };
        let own = same.first().map_or(0, bytes);
        let all = same.iter().fold(0u64, |sum, item| sum.saturating_add(bytes(item)));
        EqualStrings {
            share,
            start,
            // There are fewer objects than that.
            count: u32::try_from(same.len()).unwrap_or(u32::MAX),
            first: same.first().map_or(ObjectIndex(0), |item| ObjectIndex(item.string)),
            length: same.first().map_or(0, |item| item.length),
            text,
            bytes: all,
            wasted: all.saturating_sub(own),
        }
    }

    /// Puts rows in order and keeps the first.
    fn sort(&self, groups: &mut Vec<EqualStrings>, shares: &[Array<StringItem>], question: &StringQuery) {
        let top = question.top.unwrap_or(usize::MAX);
        if question.sort_by == StringOrder::Text {
            self.number_texts(groups, shares, top);
        }
        let order = |a: &EqualStrings, b: &EqualStrings| {
            let by_key = match question.sort_by {
                StringOrder::Bytes => b.bytes.cmp(&a.bytes),
                StringOrder::Count => b.count.cmp(&a.count),
                StringOrder::Length => b.length.cmp(&a.length),
                StringOrder::Wasted => b.wasted.cmp(&a.wasted),
                StringOrder::Address => Ordering::Equal,
                StringOrder::Text => a.text.cmp(&b.text),
            };
            by_key.then(a.first.cmp(&b.first))
        };
        if top == 0 {
            groups.clear();
        } else if top < groups.len() {
            groups.select_nth_unstable_by(top - 1, order);
            groups.truncate(top);
        }
        groups.par_sort_unstable_by(order);
    }

    /// Numbers the texts of rows in their order: the first `top` of them, the others are behind. Each text is compared
    /// once for all rows that have it, which are side by side.
    fn number_texts(&self, groups: &mut [EqualStrings], shares: &[Array<StringItem>], top: usize) {
        // Where the rows of each text start, and how many there are.
        let mut start = 0u32;
        let mut texts: Vec<(u32, u32)> = (groups.chunk_by(|a, b| (a.share, a.text) == (b.share, b.text)))
            .map(|rows| {
                // There are fewer objects than that.
                let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
                let text = (start, count);
                start = start.saturating_add(count);
                text
            })
            .collect();
        let text = |(start, _): &(u32, u32)| {
            let item = groups.get(*start as usize).and_then(|group| item(shares, group));
            item.and_then(|item| item.characters(self.objects))
        };
        let order = |a: &(u32, u32), b: &(u32, u32)| same::order(text(a).as_ref(), text(b).as_ref());
        if top > 0 && top < texts.len() {
            texts.select_nth_unstable_by(top - 1, order);
            texts.truncate(top);
        }
        texts.par_sort_unstable_by(order);
        groups.iter_mut().for_each(|group| group.text = u32::MAX);
        for ((start, count), number) in texts.into_iter().zip(0..) {
            let rows = groups.iter_mut().skip(start as usize).take(count as usize);
            rows.for_each(|group| group.text = number);
        }
    }
}

/// The first String of a row.
fn item<'s>(shares: &'s [Array<StringItem>], group: &EqualStrings) -> Option<&'s StringItem> {
    shares.get(group.share as usize)?.get(group.start as usize)
}

/// Characters of texts that are shown again as those of other Strings which share the array, beside as many as the dump
/// has bytes: a file in which thousands of Strings share one long array would have an answer without end.
const SHARED: u64 = 1 << 24;
/// Texts up to this length are always shown, and so much of those that are cut since they were shown before.
const ALWAYS: u32 = 256;

/// Makes rows.
#[derive(Debug)]
pub struct StringReader<'a> {
    objects: ObjectReader<'a>,
    answer: &'a StringReport,
    rows: StringRows,
    most: usize,
    /// By row: to how many characters the text is cut, where that is less than `most`.
    cut: IdMap<usize, u32>,
}

impl<'a> StringReader<'a> {
    /// The rows of `answer`, of which texts are cut to `most` characters.
    pub fn new(
        summary: &'a Summary,
        graph: &'a ObjectGraph,
        bytes: &'a [u8],
        answer: &'a StringReport,
        (rows, most): (StringRows, usize),
    ) -> Self {
        let most = most.min(LONGEST);
        let cut = cut_shared(answer, most, SHARED.saturating_add(bytes.len() as u64));
        Self { objects: ObjectReader::new(summary, graph, bytes), answer, rows, most, cut }
    }

    /// The first row behind those from `start` on that are made together: up to `rows`, with texts of about `characters`.
    pub fn chunk(&self, start: usize, rows: usize, characters: usize) -> usize {
        let mut left = characters;
        let groups = self.answer.groups.iter().enumerate().skip(start).take(rows);
        let fit = groups.take_while(|(row, group)| {
            let fits = left > 0;
            left = left.saturating_sub((group.length as usize).min(self.most_of(*row)));
            fits
        });
        start.saturating_add(fit.count())
    }

    /// Characters of the text of this row that are shown at most.
    fn most_of(&self, row: usize) -> usize {
        self.cut.get(&row).map_or(self.most, |cut| *cut as usize)
    }

    /// The row of this number.
    pub fn row(&self, number: usize) -> Option<StringRow> {
        let group = self.answer.groups.get(number)?;
        let item = item(&self.answer.shares, group)?;
        let graph = self.objects.graph;
        let (text, is_cut) = match item.characters(&self.objects) {
            Some(characters) => text(&characters, self.most_of(number)),
            None => (String::new(), false),
        };
        let tree = &graph.tree;
        let reachable = tree.reachable_position(group.first);
        let sample = match self.rows {
            StringRows::Strings => Vec::new(),
            StringRows::Duplicates => self.sample(group),
        };
        Some(StringRow {
            id: graph.objects.addresses.id_of(group.first).unwrap_or_default(),
            text,
            is_cut,
            length: group.length.into(),
            count: group.count.into(),
            shallow_bytes: tree.position(group.first).map_or(0, |position| tree.shallow_bytes(position)),
            retained_bytes: reachable.map(|position| tree.retained_bytes(position)),
            total_bytes: group.bytes,
            wasted_bytes: group.wasted,
            holders: holders::holders(&self.objects, &sample),
            sampled: sample.len() as u64,
        })
    }

    /// Some copies, far apart.
    fn sample(&self, group: &EqualStrings) -> Vec<ObjectIndex> {
        let start = group.start as usize;
        let share = self.answer.shares.get(group.share as usize);
        let copies = share.and_then(|share| share.get(start..start.checked_add(group.count as usize)?));
        let copies = copies.unwrap_or_default();
        let step = copies.len().div_ceil(holders::SAMPLE).max(1);
        copies.iter().step_by(step).map(|item| ObjectIndex(item.string)).collect()
    }
}

/// Which rows have long texts of arrays that a row before them has too, once more than `left` characters of such are
/// shown; and to how many characters their texts are cut.
fn cut_shared(answer: &StringReport, most: usize, mut left: u64) -> IdMap<usize, u32> {
    let (mut shown, mut cut) = (IdSet::default(), IdMap::default());
    for (row, group) in answer.groups.iter().enumerate() {
        let length = u32::try_from(most).unwrap_or(u32::MAX).min(group.length);
        if length <= ALWAYS {
            continue;
        }
        // Other forms of an array, and parts of it, are the same place here.
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

/// A text up to `most` characters, and whether that is not all.
fn text(characters: &Characters<'_>, most: usize) -> (String, bool) {
    let text = characters.text(most);
    let is_cut = most < characters.len() && char::decode_utf16(characters.units()).nth(most).is_some();
    (text, is_cut)
}
