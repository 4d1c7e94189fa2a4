//! The Strings of a heap: what they say, which say the same, and who holds those.
//!
//! Texts are not kept: a String is 32 bytes here, the hash of its text and where it stands in the dump. Texts that have
//! the same hash are compared, so that none is counted for another. Rows with their texts are made when they are asked
//! for, by [`Reader`].

mod contents;
mod find;
pub mod holders;

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::RangeInclusive;

use rayon::prelude::*;
use regex::Regex;

use crate::index::ObjectGraph;
use crate::index::sizes::Sizes;
use crate::index::summary::Summary;

use super::objects::{Characters, Objects};
use find::Item;
use holders::{ClassObjects, Holder};

/// The class whose objects are looked at.
pub const STRING: &str = "java.lang.String";

/// Which Strings are asked for, and in which order.
#[derive(Debug, Clone)]
pub struct Question {
    /// Whose text matches this.
    pub pattern: Option<Regex>,
    /// Of these lengths, in UTF-16 units.
    pub lengths: RangeInclusive<u64>,
    /// Only reachable ones.
    pub live: bool,
    /// What a row is.
    pub rows: Rows,
    /// The order of the rows.
    pub sort_by: SortBy,
    /// How many rows are kept; all by default.
    pub top: Option<usize>,
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// A String.
    Strings,
    /// A text that several Strings have.
    Duplicates,
}

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortBy {
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
    /// Strings without a text: their `value` is null, or no array of characters, or not in the dump.
    pub unreadable: u64,
    /// Rows before `top` was taken.
    pub rows: u64,
}

/// Strings of the same text, in one share.
#[derive(Debug, Clone, Copy)]
struct Group {
    /// The share.
    share: u32,
    /// The place of the first one in it; the others follow by address.
    start: u32,
    /// How many.
    count: u32,
    /// The first object.
    first: u32,
    /// UTF-16 units.
    length: u32,
    /// Bytes of all.
    bytes: u64,
    /// Bytes of all but the first.
    wasted: u64,
}

/// The Strings that were found, in order, without their texts.
#[derive(Debug, Default)]
pub struct Answer {
    /// Figures of all that were asked for.
    pub totals: Totals,
    shares: Vec<Vec<Item>>,
    /// The rows.
    groups: Vec<Group>,
}

impl Answer {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The first row behind those from `start` on that are made together: up to `rows`, with texts of about `characters`,
    /// if each is cut to `most`.
    pub fn chunk(&self, start: usize, rows: usize, characters: usize, most: usize) -> usize {
        let mut left = characters;
        let groups = self.groups.iter().skip(start).take(rows);
        let fit = groups.take_while(|group| {
            let fits = left > 0;
            left = left.saturating_sub((group.length as usize).min(most));
            fits
        });
        start.saturating_add(fit.count())
    }
}

/// Characters of the longest text that is shown; what is longer is always cut.
pub const LONGEST: usize = 1 << 24;

/// A String, or a text that several have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Object id; of the first copy.
    pub id: u64,
    /// The text, or its beginning.
    pub text: String,
    /// Whether `text` is not all of it.
    pub is_cut: bool,
    /// UTF-16 units: what `String.length()` says.
    pub length: u64,
    /// Strings with this text; 1 where rows are Strings.
    pub count: u64,
    /// What the String itself takes.
    pub shallow_bytes: u64,
    /// What would be freed with the String; 0 if it is unreachable.
    pub retained_bytes: u64,
    /// Bytes of all copies and their arrays; an array that several Strings share counts for the first of them.
    pub total_bytes: u64,
    /// Bytes of all copies but the first.
    pub wasted_bytes: u64,
    /// Who refers to most of the copies that were looked at; only of duplicates.
    pub holders: Vec<Holder>,
    /// How many copies were looked at for `holders`.
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
        let classes = summary.numbered_classes().filter(|(_, class)| summary.class_name(class) == STRING);
        let mut all: Vec<u64> = classes.map(|(number, _)| sizes.instance(number).0).collect();
        all.dedup();
        let same = if let [size] = *all { Some(size) } else { None };
        Self { sizes, same }
    }

    #[inline(always)]
    fn of(&self, graph: &ObjectGraph, string: u32) -> u64 {
        self.same
            .unwrap_or_else(|| graph.objects.class(string).map_or(0, |class| self.sizes.instance(class).0))
    }
}

/// Finds Strings.
pub fn strings(summary: &Summary, graph: &ObjectGraph, bytes: &[u8], question: &Question) -> Answer {
    let objects = Objects::new(summary, graph, bytes);
    // Whoever writes a dump cannot make texts collide. No answer depends on the seed.
    let seed = RandomState::new().build_hasher().finish();
    let found = find::find(&objects, bytes, question, seed);
    let search = Grouping { objects: &objects, sizes: StringBytes::new(summary), rows: question.rows };
    let (mut shares, counted): (Vec<Vec<Item>>, Vec<Counted>) = (0u32..)
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
    if groups.is_empty() {
        shares.clear();
    }
    Answer { totals, shares, groups }
}

/// The rows of a share, and its figures.
type Counted = (Vec<Group>, Totals);

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
    objects: &'s Objects<'a>,
    sizes: StringBytes,
    rows: Rows,
}

impl Grouping<'_, '_> {
    /// Puts the Strings of a share in the order of hash and address, and makes the rows.
    fn groups(&self, number: u32, share: &mut [Item]) -> (Vec<Group>, Totals) {
        share.par_sort_unstable_by_key(|item| (item.hash, item.string));
        let (mut groups, mut totals) = (Vec::new(), Totals::default());
        let mut start = 0u32;
        for same_hash in share.chunk_by_mut(|a, b| a.hash == b.hash) {
            let differ = self.sort_different(same_hash);
            let same_text = |a: &Item, b: &Item| !differ || self.compare(a, b) == Ordering::Equal;
            for same in same_hash.chunk_by(same_text) {
                let group = self.group(number, start, same);
                totals.strings += u64::from(group.count);
                totals.distinct += 1;
                totals.duplicated += u64::from(group.count > 1);
                totals.characters += u64::from(group.length) * u64::from(group.count);
                totals.bytes = totals.bytes.saturating_add(group.bytes);
                totals.wasted_bytes = totals.wasted_bytes.saturating_add(group.wasted);
                match self.rows {
                    Rows::Duplicates if group.count > 1 => groups.push(group),
                    Rows::Duplicates => {}
                    Rows::Strings => {
                        groups.extend(
                            (start..).zip(same.chunks(1)).map(|(at, one)| self.group(number, at, one)),
                        );
                    }
                }
                start = start.saturating_add(group.count);
            }
        }
        (groups, totals)
    }

    /// The row of Strings of the same text, which stand at `start` of their share.
    fn group(&self, share: u32, start: u32, same: &[Item]) -> Group {
        let bytes =
            |item: &Item| item.array_bytes.saturating_add(self.sizes.of(self.objects.graph, item.string));
        let own = same.first().map_or(0, bytes);
        let all = same.iter().fold(0u64, |sum, item| sum.saturating_add(bytes(item)));
        Group {
            share,
            start,
            // There are fewer objects than that.
            count: u32::try_from(same.len()).unwrap_or(u32::MAX),
            first: same.first().map_or(0, |item| item.string),
            length: same.first().map_or(0, |item| item.length),
            bytes: all,
            wasted: all.saturating_sub(own),
        }
    }

    /// If there are different texts among those of the same hash, puts them in order.
    fn sort_different(&self, same_hash: &mut [Item]) -> bool {
        let Some((first, others)) = same_hash.split_first() else { return false };
        if others.is_empty() {
            return false;
        }
        let text = |item: &Item| item.characters(self.objects);
        let first = text(first);
        let is_same = |item: &Item| match (&first, text(item)) {
            (Some(a), Some(b)) => contents::same(a, &b),
            (None, None) => true,
            _ => false,
        };
        let differ = !others.iter().all(is_same);
        if differ {
            same_hash.sort_by(|a, b| self.compare(a, b).then(a.string.cmp(&b.string)));
        }
        differ
    }

    /// The order of two texts.
    fn compare(&self, a: &Item, b: &Item) -> Ordering {
        let text = |item: &Item| item.characters(self.objects);
        match (text(a), text(b)) {
            (Some(a), Some(b)) => contents::compare(&a, &b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    }

    /// Puts rows in order and keeps the first.
    fn sort(&self, groups: &mut Vec<Group>, shares: &[Vec<Item>], question: &Question) {
        let by_text = |a: &Group, b: &Group| match (item(shares, a), item(shares, b)) {
            (Some(a), Some(b)) => self.compare(a, b),
            _ => Ordering::Equal,
        };
        let order = |a: &Group, b: &Group| {
            let by_key = match question.sort_by {
                SortBy::Bytes => b.bytes.cmp(&a.bytes),
                SortBy::Count => b.count.cmp(&a.count),
                SortBy::Length => b.length.cmp(&a.length),
                SortBy::Wasted => b.wasted.cmp(&a.wasted),
                SortBy::Address => Ordering::Equal,
                SortBy::Text => by_text(a, b),
            };
            by_key.then(a.first.cmp(&b.first))
        };
        let top = question.top.unwrap_or(usize::MAX);
        if top == 0 {
            groups.clear();
        } else if top < groups.len() {
            groups.select_nth_unstable_by(top - 1, order);
            groups.truncate(top);
        }
        groups.par_sort_unstable_by(order);
    }
}

/// The first String of a row.
fn item<'s>(shares: &'s [Vec<Item>], group: &Group) -> Option<&'s Item> {
    shares.get(group.share as usize)?.get(group.start as usize)
}

/// Makes rows.
#[derive(Debug)]
pub struct Reader<'a> {
    objects: Objects<'a>,
    answer: &'a Answer,
    rows: Rows,
    most: usize,
    classes: ClassObjects,
}

impl<'a> Reader<'a> {
    /// The rows of `answer`, of which texts are cut to `most` characters.
    pub fn new(
        summary: &'a Summary,
        graph: &'a ObjectGraph,
        bytes: &'a [u8],
        answer: &'a Answer,
        (rows, most): (Rows, usize),
    ) -> Self {
        let (classes, most) = (ClassObjects::new(summary, graph), most.min(LONGEST));
        Self { objects: Objects::new(summary, graph, bytes), answer, rows, most, classes }
    }

    /// The row of this number.
    pub fn row(&self, number: usize) -> Option<Row> {
        let group = self.answer.groups.get(number)?;
        let item = item(&self.answer.shares, group)?;
        let graph = self.objects.graph;
        let (text, is_cut) = match item.characters(&self.objects) {
            Some(characters) => text(&characters, self.most),
            None => (String::new(), false),
        };
        let tree = &graph.tree;
        let reachable = tree.reachable_position(group.first);
        let sample = match self.rows {
            Rows::Strings => Vec::new(),
            Rows::Duplicates => self.sample(group),
        };
        Some(Row {
            id: graph.objects.addresses.id_of(group.first).unwrap_or(0),
            text,
            is_cut,
            length: group.length.into(),
            count: group.count.into(),
            shallow_bytes: tree.position(group.first).map_or(0, |position| tree.shallow_bytes(position)),
            retained_bytes: reachable.map_or(0, |position| tree.retained_bytes(position)),
            total_bytes: group.bytes,
            wasted_bytes: group.wasted,
            holders: holders::holders(&self.objects, &self.classes, &sample),
            sampled: sample.len() as u64,
        })
    }

    /// Some copies, far apart.
    fn sample(&self, group: &Group) -> Vec<u32> {
        let start = group.start as usize;
        let share = self.answer.shares.get(group.share as usize);
        let copies = share.and_then(|share| share.get(start..start.checked_add(group.count as usize)?));
        let copies = copies.unwrap_or_default();
        let step = copies.len().div_ceil(holders::SAMPLE).max(1);
        copies.iter().step_by(step).map(|item| item.string).collect()
    }
}

/// A text up to `most` characters, and whether that is not all.
fn text(characters: &Characters<'_>, most: usize) -> (String, bool) {
    let text = characters.text(most);
    let is_cut = most < characters.len() && char::decode_utf16(characters.units()).nth(most).is_some();
    (text, is_cut)
}
