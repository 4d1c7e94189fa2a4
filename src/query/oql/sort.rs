//! Processing of the rows found: sorting, removing duplicates, collecting their objects.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use rayon::prelude::*;
use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};

use super::SelectRows;
use super::code::Code;
use super::evaluate::{EvaluatedRow, Evaluator};
use super::selected::Objects;
use super::value::{ExpressionValue, GroupKey};
use crate::parallel;

/// Sort keys of a row. Usually there is one value, which takes no memory of its own.
#[derive(Debug)]
pub(super) enum SortKeys {
    One(ExpressionValue),
    More(Box<[ExpressionValue]>),
}

impl SortKeys {
    fn values(&self) -> &[ExpressionValue] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::More(values) => values,
        }
    }
}

impl FromIterator<ExpressionValue> for SortKeys {
    fn from_iter<I: IntoIterator<Item = ExpressionValue>>(values: I) -> Self {
        let mut values = values.into_iter();
        match (values.next(), values.next()) {
            (Some(value), None) => Self::One(value),
            (first, second) => Self::More(first.into_iter().chain(second).chain(values).collect()),
        }
    }
}

/// Values of a row as a key. A single value takes no memory of its own.
#[derive(Debug, PartialEq, Eq, Hash)]
enum DistinctKey {
    One(GroupKey),
    More(Box<[GroupKey]>),
}

impl FromIterator<GroupKey> for DistinctKey {
    fn from_iter<I: IntoIterator<Item = GroupKey>>(keys: I) -> Self {
        let mut keys = keys.into_iter();
        match (keys.next(), keys.next()) {
            (Some(key), None) => Self::One(key),
            (first, second) => Self::More(first.into_iter().chain(second).chain(keys).collect()),
        }
    }
}

/// A row with its sort keys.
pub(super) struct Sorted<T> {
    pub(super) keys: SortKeys,
    /// Number of the row: equal rows stay in this order.
    pub(super) number: u32,
    pub(super) row: T,
}

/// Sorts rows, and keeps at most `most`.
pub(super) fn sort<T: Send>(rows: &mut Vec<Sorted<T>>, downwards: &[bool], most: Option<usize>) {
    let compare = |a: &Sorted<T>, b: &Sorted<T>| {
        let keys = a.keys.values().iter().zip(b.keys.values()).zip(downwards);
        let mut orders = keys.map(|((a, b), downwards)| if *downwards { b.order(a) } else { a.order(b) });
        let order = orders.find(|order| *order != Ordering::Equal);
        order.unwrap_or(Ordering::Equal).then(a.number.cmp(&b.number))
    };
    let most = most.unwrap_or(usize::MAX);
    if most < rows.len() {
        // The others need no order.
        if let Some(last) = most.checked_sub(1) {
            rows.select_nth_unstable_by(last, compare);
        }
        rows.truncate(most);
    }
    rows.par_sort_unstable_by(compare);
}

impl<'a> Evaluator<'_, 'a> {
    /// Returns the numbers of rows, sorted: at most `most`.
    pub(super) fn sorted(
        &self,
        source: &Objects,
        order: &[Code],
        downwards: &[bool],
        most: Option<usize>,
    ) -> Vec<u32> {
        let chunk = |range| {
            let mut found = Vec::new();
            self.each_row(source, range, true, |row| {
                let keys = order.iter().map(|code| self.sort_key(code, &row)).collect();
                found.push(Sorted { keys, number: row.number, row: () });
                ControlFlow::Continue(())
            });
            if most.is_some() {
                sort(&mut found, downwards, most);
            }
            found
        };
        let mut all: Vec<Sorted<()>> = Vec::new();
        let chunks = self.chunks_of(source);
        // In batches, to limit the memory for rows of unmerged chunks.
        for batch in chunks.chunks(rayon::current_num_threads().saturating_mul(16).max(1)) {
            let found: Vec<Vec<Sorted<()>>> = parallel::map(batch, chunk);
            all.extend(found.into_iter().flatten());
            if most.is_some() {
                sort(&mut all, downwards, most);
            }
        }
        if most.is_none() {
            sort(&mut all, downwards, most);
        }
        all.into_iter().map(|sorted| sorted.number).collect()
    }

    /// Returns the sort key for an expression: for an object its text, if it has one.
    pub(super) fn sort_key(&self, code: &Code, row: &EvaluatedRow<'_, 'a>) -> ExpressionValue {
        self.order_of(&self.value(code, row))
    }

    /// Returns the value by which a value is ordered.
    pub(super) fn order_of(&self, value: &ExpressionValue) -> ExpressionValue {
        match value {
            ExpressionValue::Object(_) => {
                self.text(value).map_or(value.clone(), |text| ExpressionValue::Text(text.into()))
            }
            value => value.clone(),
        }
    }

    /// Returns the first of the rows with the same values, in the order of the rows.
    pub(super) fn distinct(
        &self,
        source: &Objects,
        rows: &SelectRows,
        items: &[Code],
        limit: Option<usize>,
    ) -> SelectRows {
        let limit = limit.unwrap_or(usize::MAX);
        let mut seen: FxHashSet<DistinctKey> = FxHashSet::default();
        let mut found: Vec<u32> = Vec::new();
        let group = |row: &EvaluatedRow<'_, 'a>| {
            items.iter().map(|code| self.value(code, row).key()).collect::<DistinctKey>()
        };
        if let SelectRows::List(list, _) = rows {
            let table = source.table().map(std::convert::AsRef::as_ref);
            let mut numbers = list.iter();
            while found.len() < limit
                && let Some(number) = numbers.next()
            {
                if seen.insert(group(&EvaluatedRow::new(*number, &[], table))) {
                    found.push(*number);
                }
            }
            let all = found.len();
            return SelectRows::List(found, all);
        }
        let chunk = |range| {
            let mut groups: FxHashMap<DistinctKey, u32> = FxHashMap::default();
            self.each_row(source, range, true, |row| {
                groups.entry(group(&row)).or_insert(row.number);
                if groups.len() >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            let mut groups: Vec<(DistinctKey, u32)> = groups.into_iter().collect();
            groups.sort_unstable_by_key(|(_, number)| *number);
            groups
        };
        let chunks = self.chunks_of(source);
        // In batches, to limit the memory for groups of unmerged chunks.
        for batch in chunks.chunks(rayon::current_num_threads().saturating_mul(16).max(1)) {
            let groups: Vec<Vec<(DistinctKey, u32)>> = parallel::map(batch, chunk);
            for (group, number) in groups.into_iter().flatten() {
                if found.len() < limit && seen.insert(group) {
                    found.push(number);
                }
            }
            if found.len() >= limit {
                break;
            }
        }
        // They are in ascending order.
        SelectRows::Set(RoaringBitmap::from_sorted_iter(found).unwrap_or_default())
    }

    /// Returns the objects that an expression returns for some rows.
    pub(super) fn given(&self, source: &Objects, item: Option<&Code>) -> RoaringBitmap {
        let Some(item) = item else { return RoaringBitmap::new() };
        let chunk = |range| {
            let mut found = RoaringBitmap::new();
            self.each_row(source, range, true, |row| {
                let given = self.objects_of(self.value(item, &row)).filter(|object| self.is_meant(*object));
                found.extend(given.map(|object| object.0));
                ControlFlow::Continue(())
            });
            found
        };
        let all = self.chunks_of(source);
        parallel::union(&all, chunk)
    }
}
