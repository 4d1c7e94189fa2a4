//! Texts of two dumps, matched: the number of Strings in each that have a text.
//!
//! Only texts that occur several times in one of the dumps are considered. In the other dump they are looked up by
//! hash, which has the same seed in both ([`super::StringSearchContext`]), and compared.

use std::cmp::Reverse;
use std::io;

use rayon::prelude::*;

use crate::objects::reader::{Characters, ObjectReader};
use hprof_index::storage::scratch::Array;

use super::{
    EqualStrings, Grouping, StoredRows, StringBytes, StringReport, StringRows, StringSearchContext, contents,
};

/// A text that several Strings of one of two dumps have.
#[derive(Debug, Clone, Copy)]
pub struct DuplicateText {
    old: Option<EqualStrings>,
    new: Option<EqualStrings>,
}

impl DuplicateText {
    /// Returns the number of Strings with this text in the old and the new dump.
    pub fn counts(&self) -> [u64; 2] {
        [self.old, self.new].map(|group| group.map_or(0, |group| group.count.into()))
    }

    /// Returns the size of these Strings and their arrays in bytes.
    pub fn bytes(&self) -> [u64; 2] {
        [self.old, self.new].map(|group| group.map_or(0, |group| group.bytes))
    }

    /// Returns a key that is unique to the text: the first Strings. Those of the new dump come first.
    pub fn order(&self) -> impl Ord + use<> {
        let first = |group: Option<EqualStrings>| group.map(|group| Reverse(group.first));
        (Reverse(first(self.new)), Reverse(first(self.old)))
    }

    /// Returns whether the text occurs in the new dump.
    pub fn is_in_new(&self) -> bool {
        self.new.is_some()
    }
}

/// Returns the texts that occur several times in one of two dumps, within the limits of both results; unordered. Both
/// results must be of duplicates, with this [`super::StringSearchContext`]. `reduce` is called for the texts of each share.
///
/// # Errors
/// If neither memory nor disk has space for a few numbers for each text.
pub fn match_texts<T: Send>(
    basis: &StringSearchContext,
    (old, old_objects): (&StringReport, &ObjectReader<'_>),
    (new, new_objects): (&StringReport, &ObjectReader<'_>),
    reduce: impl Fn(&mut dyn Iterator<Item = DuplicateText>) -> T + Sync,
) -> io::Result<Vec<T>> {
    let (old, new) = (DumpTexts::new(basis, old, old_objects)?, DumpTexts::new(basis, new, new_objects)?);
    let shares = u32::try_from(old.answer.shares.len().max(new.answer.shares.len())).unwrap_or(u32::MAX);
    let found = (0..shares)
        .into_par_iter()
        .map(|share| {
            let in_new = new
                .of_share(share)
                .iter()
                .map(|group| DuplicateText { old: old.find(&new, group), new: Some(*group) });
            // Texts that occur several times in both already have a row.
            let only_old = old.of_share(share).iter().filter_map(|group| {
                let copies = DuplicateText { old: Some(*group), new: new.find(&old, group) };
                copies.new.is_none_or(|new| new.count == 1).then_some(copies)
            });
            reduce(&mut in_new.chain(only_old))
        })
        .collect();
    Ok(found)
}

impl StringReport {
    /// Returns the texts of one dump as a result, in the given order; see [`DuplicateText::is_in_new`].
    pub fn of_copies<'c>(self, copies: impl Iterator<Item = &'c DuplicateText>, which: DumpSide) -> Self {
        let group = |copies: &DuplicateText| match which {
            DumpSide::Old => copies.old,
            DumpSide::New => copies.new,
        };
        Self { groups: StoredRows::Few(copies.filter_map(group).collect()), ..self }
    }
}

/// One of two compared dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpSide {
    /// The old dump.
    Old,
    /// The new dump.
    New,
}

/// Result of a String query for one of two dumps, with its texts.
struct DumpTexts<'s, 'a> {
    answer: &'s StringReport,
    grouping: Grouping<'s, 'a>,
    /// Texts that several Strings have, by share and position.
    groups: Array<EqualStrings>,
}

impl<'s, 'a> DumpTexts<'s, 'a> {
    fn new(
        basis: &StringSearchContext,
        answer: &'s StringReport,
        objects: &'s ObjectReader<'a>,
    ) -> io::Result<Self> {
        let sizes = StringBytes::new(objects.summary);
        let mut groups = basis.room.copy(answer.groups())?;
        groups.par_sort_unstable_by_key(|group| (group.share, group.start));
        Ok(Self { answer, grouping: Grouping { objects, sizes, rows: StringRows::Duplicates }, groups })
    }

    /// Returns the texts that several Strings of a share have.
    fn of_share(&self, share: u32) -> &[EqualStrings] {
        let start = self.groups.partition_point(|group| group.share < share);
        let end = self.groups.partition_point(|group| group.share <= share);
        self.groups.get(start..end).unwrap_or_default()
    }

    /// Finds the Strings that have a text of another dump.
    fn find(&self, of: &DumpTexts<'_, '_>, group: &EqualStrings) -> Option<EqualStrings> {
        let wanted = super::item(&of.answer.shares, group)?;
        let text = wanted.characters(of.grouping.objects)?;
        let items = self.answer.shares.get(group.share as usize)?;
        let mut at = items.partition_point(|item| item.hash < wanted.hash);
        // Nearly always a hash has one text.
        loop {
            let item = items.get(at).filter(|item| item.hash == wanted.hash)?;
            let here = self.group(group.share, at)?;
            let is_same = |here: Characters<'_>| contents::same(&here, &text);
            if item.characters(self.grouping.objects).is_some_and(is_same) {
                return Some(here);
            }
            at += here.count as usize;
        }
    }

    /// Returns the Strings of the text whose first one is at a position of a share.
    fn group(&self, share: u32, at: usize) -> Option<EqualStrings> {
        let start = u32::try_from(at).ok()?;
        match self.groups.binary_search_by_key(&(share, start), |group| (group.share, group.start)) {
            Ok(known) => self.groups.get(known).copied(),
            Err(_) => {
                let one = self.answer.shares.get(share as usize)?.get(at..=at)?;
                Some(self.grouping.group(share, (start, start), one))
            }
        }
    }
}
