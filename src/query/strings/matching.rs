//! Texts of two answers, matched: how many Strings of each dump have a text.
//!
//! Only texts that several Strings of one of the dumps have are looked at. In the other dump they are looked up by their
//! hash, which both answers have made with one seed ([`super::Basis`]), and compared there.

use std::cmp::Reverse;

use rayon::prelude::*;

use crate::objects::reader::{Characters, ObjectReader};

use super::{EqualStrings, Grouping, StringBytes, StringReport, StringRows, contents};

/// A text that several Strings of one of two dumps have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copies {
    old: Option<EqualStrings>,
    new: Option<EqualStrings>,
}

impl Copies {
    /// How many Strings have it, in the old dump and the new one.
    pub(crate) fn counts(&self) -> [u64; 2] {
        [self.old, self.new].map(|group| group.map_or(0, |group| group.count.into()))
    }

    /// What these take with their arrays.
    pub(crate) fn bytes(&self) -> [u64; 2] {
        [self.old, self.new].map(|group| group.map_or(0, |group| group.bytes))
    }

    /// What tells it from all others: the first Strings. Those of the new dump come first.
    pub(crate) fn order(&self) -> impl Ord + use<> {
        let first = |group: Option<EqualStrings>| group.map(|group| Reverse(group.first));
        (Reverse(first(self.new)), Reverse(first(self.old)))
    }

    /// Returns whether the new dump has it.
    pub(crate) fn is_in_new(&self) -> bool {
        self.new.is_some()
    }
}

/// The texts that several Strings of one of two dumps have, as far as they are kept; in no order. Both answers are of
/// duplicates, and of one [`super::Basis`].
pub(crate) fn matched(
    (old, old_objects): (&StringReport, &ObjectReader<'_>),
    (new, new_objects): (&StringReport, &ObjectReader<'_>),
    is_kept: impl Fn(&Copies) -> bool + Sync,
) -> Vec<Copies> {
    let (old, new) = (DumpTexts::new(old, old_objects), DumpTexts::new(new, new_objects));
    let shares = u32::try_from(old.answer.shares.len().max(new.answer.shares.len())).unwrap_or(u32::MAX);
    (0..shares)
        .into_par_iter()
        .flat_map_iter(|share| {
            let in_new = new
                .of_share(share)
                .iter()
                .map(|group| Copies { old: old.find(&new, group), new: Some(*group) });
            // Of those that both have several times a row was made already.
            let only_old = old.of_share(share).iter().filter_map(|group| {
                let copies = Copies { old: Some(*group), new: new.find(&old, group) };
                copies.new.is_none_or(|new| new.count == 1).then_some(copies)
            });
            in_new.chain(only_old).filter(&is_kept).collect::<Vec<_>>()
        })
        .collect()
}

impl StringReport {
    /// The texts of one dump as an answer, in the order given; see [`Copies::is_in_new`].
    pub(crate) fn of_copies<'c>(self, copies: impl Iterator<Item = &'c Copies>, which: DumpSide) -> Self {
        let group = |copies: &Copies| match which {
            DumpSide::Old => copies.old,
            DumpSide::New => copies.new,
        };
        Self { groups: copies.filter_map(group).collect(), ..self }
    }
}

/// One of two dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DumpSide {
    Old,
    New,
}

/// The texts of a dump.
struct DumpTexts<'s, 'a> {
    answer: &'s StringReport,
    grouping: Grouping<'s, 'a>,
    /// Those that several Strings have, by share and place.
    groups: Vec<EqualStrings>,
}

impl<'s, 'a> DumpTexts<'s, 'a> {
    fn new(answer: &'s StringReport, objects: &'s ObjectReader<'a>) -> Self {
        let sizes = StringBytes::new(objects.summary);
        let mut groups = answer.groups.clone();
        groups.par_sort_unstable_by_key(|group| (group.share, group.start));
        Self { answer, grouping: Grouping { objects, sizes, rows: StringRows::Duplicates }, groups }
    }

    /// Those that several Strings of a share have.
    fn of_share(&self, share: u32) -> &[EqualStrings] {
        let start = self.groups.partition_point(|group| group.share < share);
        let end = self.groups.partition_point(|group| group.share <= share);
        self.groups.get(start..end).unwrap_or_default()
    }

    /// The Strings that have a text of another dump.
    fn find(&self, of: &DumpTexts<'_, '_>, group: &EqualStrings) -> Option<EqualStrings> {
        let wanted = super::item(&of.answer.shares, group)?;
        let text = wanted.characters(of.grouping.objects)?;
        let items = self.answer.shares.get(group.share as usize)?;
        let mut at = items.partition_point(|item| item.hash < wanted.hash);
        // Nearly always there is one text of a hash.
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

    /// The Strings of the text that stands at a place of a share, of which it is the first.
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
