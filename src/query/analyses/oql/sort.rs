//! Processing of the rows found: sorting, removing duplicates, collecting their objects.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;
use std::ops::{ControlFlow, Range};

use rayon::prelude::*;
use roaring::RoaringBitmap;
use rustc_hash::FxHashSet;

use super::SelectRows;
use super::code::{Code, ValueTable};
use super::error::OqlError;
use super::evaluate::{EvaluatedRow, Evaluator};
use super::group::RowGroups;
use super::kept;
use super::scan::CHUNK;
use super::selected::Objects;
use super::value::ExpressionValue;
use hprof_base::parallel;
use hprof_index::graph::numbers;
use hprof_index::storage::scratch::Array;
use hprof_index::storage::scratch_table::KeyTable;

/// Sort keys of a row. A single key, the usual case, takes no memory of its own.
#[derive(Debug)]
enum SortKeys {
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

/// A row with its sort keys.
struct KeyedRow {
    keys: SortKeys,
    /// Number of the row; rows with equal keys remain in this order.
    number: u32,
}

impl KeyedRow {
    fn order(&self, other: &Self, downwards: &[bool]) -> Ordering {
        let keys = self.keys.values().iter().zip(other.keys.values()).zip(downwards);
        let mut orders = keys.map(|((a, b), downwards)| if *downwards { b.order(a) } else { a.order(b) });
        let order = orders.find(|order| *order != Ordering::Equal);
        order.unwrap_or(Ordering::Equal).then(self.number.cmp(&other.number))
    }

    fn bytes(&self) -> u64 {
        let beside = |value: &ExpressionValue| value.bytes() - size_of::<ExpressionValue>() as u64;
        let keys = match &self.keys {
            SortKeys::One(value) => beside(value),
            SortKeys::More(values) => 16 + values.iter().map(ExpressionValue::bytes).sum::<u64>(),
        };
        size_of::<Self>() as u64 + keys
    }
}

/// Sorts rows, and truncates them to `most`.
fn sort(rows: &mut Vec<KeyedRow>, downwards: &[bool], most: Option<usize>) {
    let most = most.unwrap_or(usize::MAX);
    if most < rows.len() {
        // The other rows are dropped, and not sorted.
        if let Some(last) = most.checked_sub(1) {
            rows.select_nth_unstable_by(last, |a, b| a.order(b, downwards));
        }
        rows.truncate(most);
    }
    rows.par_sort_unstable_by(|a, b| a.order(b, downwards));
}

/// Order of the rows of a SELECT.
pub(super) struct RowOrder<'r> {
    pub(super) codes: &'r [Code],
    /// `true` for a descending order, by expression.
    pub(super) downwards: &'r [bool],
    /// Maximum number of rows.
    pub(super) most: Option<usize>,
    /// Offset of the query.
    pub(super) at: usize,
}

/// Function that receives rows until it returns a break.
type RowVisitor<'v> = &'v mut dyn FnMut(KeyedRow) -> ControlFlow<()>;

/// Rows to be sorted. Their keys are evaluated in chunks, and again for single rows if they do not fit into memory.
struct SortedRows<'s> {
    chunks: Vec<Range<u32>>,
    /// Calls a function with the rows of a chunk, until the function returns a break.
    each: &'s (dyn Fn(Range<u32>, RowVisitor<'_>) + Sync),
    one: &'s dyn Fn(u32) -> SortKeys,
}

/// Sorted row numbers, in the scratch arena.
type SortedRun = Array<u32>;

/// First row of a sorted run that is not merged yet.
struct RunHead<'d> {
    row: KeyedRow,
    run: usize,
    next: usize,
    downwards: &'d [bool],
}

impl PartialEq for RunHead<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RunHead<'_> {}

impl PartialOrd for RunHead<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The first row is the greatest, since [`BinaryHeap`] returns the greatest.
impl Ord for RunHead<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.row.order(&self.row, self.downwards)
    }
}

impl<'a> Evaluator<'_, 'a> {
    /// Returns the numbers of the rows of a source, sorted.
    ///
    /// # Errors
    /// If neither memory nor disk has space for the row numbers, or memory is too small for the keys of a few rows.
    pub(super) fn sorted_rows(&self, source: &Objects, order: &RowOrder<'_>) -> Result<SortedRun, OqlError> {
        let keys =
            |row: &EvaluatedRow<'_, 'a>| order.codes.iter().map(|code| self.sort_key(code, row)).collect();
        let each = |range: Range<u32>, visit: RowVisitor<'_>| {
            self.each_row(source, range, true, |row| {
                visit(KeyedRow { keys: keys(&row), number: row.number })
            });
        };
        let table = source.table().map(std::convert::AsRef::as_ref);
        let one = |number| keys(&EvaluatedRow::new(number, &[], table));
        self.sort_rows(&SortedRows { chunks: self.chunks_of(source), each: &each, one: &one }, order)
    }

    /// Returns the numbers of groups, sorted as rows are by [`Self::sorted_rows`].
    pub(super) fn sorted_groups(
        &self,
        groups: &RowGroups,
        table: Option<&ValueTable>,
        order: &RowOrder<'_>,
    ) -> Result<SortedRun, OqlError> {
        let one = |group| {
            let (first, aggregates) = groups.get(group);
            let row = EvaluatedRow::new(first, &aggregates, table);
            order.codes.iter().map(|code| self.sort_key(code, &row)).collect()
        };
        let each = |range: Range<u32>, visit: RowVisitor<'_>| {
            let mut rows = range.map(|number| KeyedRow { keys: one(number), number });
            let _ = rows.try_for_each(visit);
        };
        let chunks = numbers::chunks(0..groups.len(), CHUNK);
        self.sort_rows(&SortedRows { chunks, each: &each, one: &one }, order)
    }

    fn sort_rows(&self, rows: &SortedRows<'_>, order: &RowOrder<'_>) -> Result<SortedRun, OqlError> {
        let RowOrder { downwards, most, at, .. } = *order;
        let room = self.kept.room(self.dump.graph);
        let threads = rayon::current_num_threads().max(1) as u64;
        let (max_bytes, max_chunk_bytes) = (kept::share(room, 4), kept::share(room, 8 * threads));
        let run = |rows: &mut Vec<KeyedRow>| {
            let mut run = room.array::<u32>(rows.len())?;
            run.iter_mut().zip(rows.drain(..)).for_each(|(place, row)| *place = row.number);
            io::Result::Ok(run)
        };
        // Rows that exceed their share of memory become a separate run: only the order of the rows is stored.
        let chunk = |range: Range<u32>| {
            let (mut found, mut runs, mut bytes, mut failed) = (Vec::<KeyedRow>::new(), Vec::new(), 0, None);
            (rows.each)(range, &mut |row| {
                bytes += row.bytes();
                found.push(row);
                if bytes > max_chunk_bytes {
                    bytes = 0;
                    sort(&mut found, downwards, most);
                    match run(&mut found) {
                        Ok(run) => runs.push(run),
                        Err(error) => {
                            failed = Some(error);
                            return ControlFlow::Break(());
                        }
                    }
                }
                ControlFlow::Continue(())
            });
            if most.is_some() {
                sort(&mut found, downwards, most);
            }
            failed.map_or(Ok((found, runs)), Err)
        };
        let (mut all, mut runs): (Vec<KeyedRow>, Vec<SortedRun>) = (Vec::new(), Vec::new());
        // In batches, to limit the memory for rows of unmerged chunks.
        let of_chunk = u64::from(CHUNK) * 2 * size_of::<KeyedRow>() as u64;
        for batch in rows.chunks.chunks(kept::batch(room, of_chunk)) {
            for (found, more) in parallel::try_map(batch, chunk).map_err(kept::scratch_error(at))? {
                runs.extend(more);
                all.extend(found);
            }
            if most.is_some() {
                sort(&mut all, downwards, most);
            }
            if all.iter().map(KeyedRow::bytes).sum::<u64>() > max_bytes {
                sort(&mut all, downwards, most);
                runs.push(run(&mut all).map_err(kept::scratch_error(at))?);
                all.shrink_to(0);
            }
        }
        sort(&mut all, downwards, most);
        let last = run(&mut all).map_err(kept::scratch_error(at))?;
        if runs.is_empty() {
            return Ok(last);
        }
        runs.push(last);
        self.merge_runs(&runs, rows, order)
    }

    /// Merges sorted runs. The keys of a row are evaluated again when it becomes the first row of its run.
    fn merge_runs(
        &self,
        runs: &[SortedRun],
        rows: &SortedRows<'_>,
        order: &RowOrder<'_>,
    ) -> Result<SortedRun, OqlError> {
        let room = self.kept.room(self.dump.graph);
        let count = runs.iter().map(|run| run.len()).sum::<usize>().min(order.most.unwrap_or(usize::MAX));
        let mut merged = room.array::<u32>(count).map_err(kept::scratch_error(order.at))?;
        let max_bytes = kept::share(room, 4);
        let head = |run: usize, at: usize| {
            let number = *runs.get(run)?.get(at)?;
            let row = KeyedRow { keys: (rows.one)(number), number };
            Some(RunHead { row, run, next: at + 1, downwards: order.downwards })
        };
        let is_fitting = |bytes: u64| match bytes <= max_bytes {
            true => Ok(()),
            false => Err(kept::too_much(order.at, "the values of ORDER BY", room)),
        };
        let (mut heads, mut bytes) = (BinaryHeap::new(), 0);
        for first in (0..runs.len()).filter_map(|run| head(run, 0)) {
            bytes += first.row.bytes();
            is_fitting(bytes)?;
            heads.push(first);
        }
        for place in merged.iter_mut() {
            let Some(first) = heads.pop() else { break };
            *place = first.row.number;
            bytes = bytes.saturating_sub(first.row.bytes());
            if let Some(next) = head(first.run, first.next) {
                bytes += next.row.bytes();
                is_fitting(bytes)?;
                heads.push(next);
            }
        }
        Ok(merged)
    }

    /// Returns the sort key of an expression: for an object, its text if it has one.
    fn sort_key(&self, code: &Code, row: &EvaluatedRow<'_, 'a>) -> ExpressionValue {
        self.order_of(&self.value(code, row))
    }

    /// Returns the value by which a value is sorted.
    pub(super) fn order_of(&self, value: &ExpressionValue) -> ExpressionValue {
        match value {
            ExpressionValue::Object(_) => {
                self.text(value).map_or(value.clone(), |text| ExpressionValue::Text(text.into()))
            }
            value => value.clone(),
        }
    }

    /// Returns, of all rows with the same values, the first, in the order of the rows. `at` is the offset of the query.
    ///
    /// # Errors
    /// If neither memory nor disk has space for a hash for each row.
    pub(super) fn distinct(
        &self,
        at: usize,
        source: &Objects,
        rows: &SelectRows,
        items: &[Code],
        limit: Option<usize>,
    ) -> Result<SelectRows, OqlError> {
        let limit = limit.unwrap_or(usize::MAX);
        let room = self.kept.room(self.dump.graph);
        let mut seen = KeyTable::new(room);
        let mut is_new = |key, number| {
            seen.insert(key, number).map_err(kept::scratch_error(at)).map(|known| known.is_none())
        };
        if let SelectRows::List(list, _) = rows {
            let table = source.table().map(std::convert::AsRef::as_ref);
            let mut found = room.array::<u32>(list.len()).map_err(kept::scratch_error(at))?;
            let mut count = 0;
            for number in list.iter() {
                if count >= limit {
                    break;
                }
                if is_new(self.row_key(items, &EvaluatedRow::new(*number, &[], table)), *number)? {
                    if let Some(place) = found.get_mut(count) {
                        *place = *number;
                    }
                    count += 1;
                }
            }
            let found = room.copy(found.get(..count).unwrap_or_default()).map_err(kept::scratch_error(at))?;
            return Ok(SelectRows::List(found, count));
        }
        let chunk = |range| {
            let (mut seen, mut firsts) = (FxHashSet::<u128>::default(), Vec::<(u128, u32)>::new());
            self.each_row(source, range, true, |row| {
                let key = self.row_key(items, &row);
                if seen.insert(key) {
                    firsts.push((key, row.number));
                }
                if firsts.len() >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            firsts
        };
        let chunks = self.chunks_of(source);
        let mut found = RoaringBitmap::new();
        // In batches, to limit the memory for rows of unmerged chunks.
        let of_chunk = u64::from(CHUNK) * size_of::<(u128, u32)>() as u64;
        for batch in chunks.chunks(kept::batch(room, of_chunk)) {
            for (key, number) in parallel::map(batch, chunk).into_iter().flatten() {
                if found.len() < limit as u64 && is_new(key, number)? {
                    // In ascending order.
                    let _ = found.try_push(number);
                }
            }
            if found.len() >= limit as u64 {
                break;
            }
        }
        Ok(SelectRows::Set(found))
    }

    /// Returns the objects that an expression returns for the rows of a source.
    pub(super) fn item_objects(&self, source: &Objects, item: Option<&Code>) -> RoaringBitmap {
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
