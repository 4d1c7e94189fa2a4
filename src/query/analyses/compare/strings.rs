//! Comparison of Strings by text, for texts with more copies than before.
//!
//! A row is a text that several Strings of one dump have; the other dump may have one such String, or none. Texts are not
//! stored: a `StringCensus` has 32 bytes per String, as [`hprof_model::strings`] has, and texts are compared in place, in both
//! dumps.

use std::cmp::Reverse;
use std::io;

use hprof_base::sorting::SortRows;
use hprof_index::Dump;
use hprof_model::strings::{
    self, DumpSide, DuplicateText, StringOrder, StringQuery, StringReader, StringReport, StringRows,
    StringSearchContext, StringTotals,
};

use hprof_base::change::{Change, Status};

/// Strings of one dump, by text.
#[derive(Debug)]
pub struct StringCensus {
    answer: StringReport,
    basis: StringSearchContext,
}

/// Selection of rows by change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// All texts.
    All,
    /// Texts that differ between the dumps.
    Changed,
}

/// Row of a comparison of Strings: a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringChange {
    /// Status of the row: new, gone, changed or the same.
    pub status: Status,
    /// Number of Strings with the text.
    pub count: Change,
    /// Size of these Strings with their arrays; an array that several Strings share counts with the first of them.
    pub total_bytes: Change,
    place: RowSource,
}

/// Dump from which the text of a row is read: the new dump if it has the text, otherwise the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowSource {
    Old(usize),
    New(usize),
}

/// Result of comparing the Strings of two dumps.
#[derive(Debug)]
pub struct StringComparison {
    /// Rows, largest growth of the copies' size first.
    pub rows: Vec<StringChange>,
    /// Number of selected rows before `top` was applied.
    pub matching: u64,
    /// Number of rows that differ between the dumps.
    pub changed: u64,
    /// Totals over all Strings of the old dump and of the new one.
    pub totals: [StringTotals; 2],
    old: StringReport,
    new: StringReport,
}

/// Shown part of the text of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The text, or its beginning.
    pub text: String,
    /// `true` if `text` is only the beginning.
    pub is_cut: bool,
    /// Length of the complete text in UTF-16 units.
    pub length: u64,
}

impl StringCensus {
    /// Reads the Strings of a dump; `other` is the census of the other dump, if it was read already.
    ///
    /// # Errors
    /// If neither memory nor disk has space for a few numbers per String.
    pub fn new(dump: Dump<'_>, other: Option<&Self>) -> io::Result<Self> {
        let basis = other.map_or_else(|| StringSearchContext::new(dump.graph), |other| other.basis.clone());
        let question = StringQuery {
            pattern: None,
            lengths: 0..=u64::MAX,
            live: false,
            rows: StringRows::Duplicates,
            sort_by: StringOrder::Address,
            top: None,
        };
        let answer = strings::strings_on(&basis, &dump, &question)?;
        Ok(Self { answer, basis })
    }

    /// Matches the texts of an old dump and a new one. Ties are in the order of the first copies.
    ///
    /// # Errors
    /// If neither memory nor disk has space for a few numbers per text.
    pub fn compare(
        old: (Self, Dump<'_>),
        new: (Self, Dump<'_>),
        keep: Keep,
        top: Option<usize>,
    ) -> io::Result<StringComparison> {
        let ((old, before), (new, after)) = (old, new);
        let (before, after) = (before.objects, after.objects);
        let is_kept = |copies: &DuplicateText| keep == Keep::All || status(copies) != Status::Same;
        let order = |a: &DuplicateText, b: &DuplicateText| {
            let growth = |copies: &DuplicateText| Reverse((bytes(copies).delta(), count(copies).delta()));
            growth(a).cmp(&growth(b)).then_with(|| a.order().cmp(&b.order()))
        };
        let top = top.unwrap_or(usize::MAX);
        let keep_first = |all: &mut Vec<DuplicateText>| {
            if top > 0 && top < all.len() {
                all.select_nth_unstable_by(top - 1, order);
            }
            all.truncate(top);
        };
        // Limits each share like the total.
        let reduce = |copies: &mut dyn Iterator<Item = DuplicateText>| {
            let mut kept: Vec<DuplicateText> = copies.filter(is_kept).collect();
            let matching = kept.len() as u64;
            let changed = kept.iter().filter(|copies| status(copies) != Status::Same).count() as u64;
            keep_first(&mut kept);
            (kept, matching, changed)
        };
        let (mut all, mut matching, mut changed) = (Vec::new(), 0, 0);
        let found = strings::match_texts(&old.basis, (&old.answer, &before), (&new.answer, &after), reduce)?;
        for (kept, matching_of_share, changed_of_share) in found {
            all.extend(kept);
            matching += matching_of_share;
            changed += changed_of_share;
        }
        keep_first(&mut all);
        all.sort_rows_by(order);
        let mut places = (0, 0);
        let rows = all.iter().map(|copies| {
            let next = if copies.is_in_new() { &mut places.1 } else { &mut places.0 };
            let place = if copies.is_in_new() { RowSource::New(*next) } else { RowSource::Old(*next) };
            *next += 1;
            StringChange { status: status(copies), count: count(copies), total_bytes: bytes(copies), place }
        });
        let rows = rows.collect();
        let totals = [old.answer.totals, new.answer.totals];
        let only_old = all.iter().filter(|copies| !copies.is_in_new());
        let (old, new) =
            (old.answer.of_copies(only_old, DumpSide::Old), new.answer.of_copies(all.iter(), DumpSide::New));
        Ok(StringComparison { rows, matching, changed, totals, old, new })
    }
}

fn count(copies: &DuplicateText) -> Change {
    let [old, new] = copies.counts();
    Change { old, new }
}

fn bytes(copies: &DuplicateText) -> Change {
    let [old, new] = copies.bytes();
    Change { old, new }
}

fn status(copies: &DuplicateText) -> Status {
    let (count, bytes) = (count(copies), bytes(copies));
    Status::from_presence(count.old > 0, count.new > 0, count.delta() == 0 && bytes.delta() == 0)
}

/// Reader of the texts of rows.
#[derive(Debug)]
pub struct ChangeReader<'a> {
    old: StringReader<'a>,
    new: StringReader<'a>,
}

impl<'a> ChangeReader<'a> {
    /// Creates a reader of the result's texts, which are truncated to `most` characters.
    pub fn new(found: &'a StringComparison, old: Dump<'a>, new: Dump<'a>, most: usize) -> Self {
        let reader = |dump: Dump<'a>, answer: &'a StringReport| {
            StringReader::new(&dump, answer, (StringRows::Strings, most))
        };
        Self { old: reader(old, &found.old), new: reader(new, &found.new) }
    }

    /// Returns the text of a row.
    pub fn text(&self, row: &StringChange) -> Text {
        let found = match row.place {
            RowSource::Old(number) => self.old.row(number),
            RowSource::New(number) => self.new.row(number),
        };
        let (text, is_cut, length) = found.map(|row| (row.text, row.is_cut, row.length)).unwrap_or_default();
        Text { text, is_cut, length }
    }
}
