//! Passes over the rows of a SELECT: on all cores, by blocks of objects in address order.

use std::ops::{ControlFlow, Range};

use roaring::RoaringBitmap;

use hprof_base::parallel;
use hprof_index::graph::numbers::{self, ObjectIndex};
use hprof_index::objects::object_table::BLOCK;

use super::code::Code;
use super::evaluate::{EvaluatedRow, Evaluator};
use super::selected::Objects;

/// Number of objects per chunk: as many as a container of the bitmap holds.
pub(super) const CHUNK: u32 = 1 << 16;

impl<'a> Evaluator<'_, 'a> {
    /// Returns a bit mask of the objects in a range, at most one block, that `source` selects.
    fn candidates(&self, source: &Objects, start: u32, count: u32) -> u64 {
        let all = start..start.saturating_add(count);
        let word = match source {
            Objects::Set(set) | Objects::Rows(_, set) => {
                set.range(all).fold(0, |word, object| word | 1 << (object - start))
            }
            Objects::Classes(classes) => {
                let of_objects =
                    self.dump.graph.objects.classes(ObjectIndex(all.start)..ObjectIndex(all.end));
                of_objects.zip(0u32..).fold(0, |word, (class, bit)| {
                    let is = class.and_then(|class| classes.get(class.0 as usize)).copied().unwrap_or(false);
                    word | u64::from(is) << bit
                })
            }
        };
        if word == 0 || !self.live {
            return word;
        }
        let bits = (0..count).filter(|bit| word & (1 << bit) != 0);
        bits.filter(|bit| self.is_meant(ObjectIndex(start + bit))).fold(0, |word, bit| word | 1 << bit)
    }

    /// Calls `visit` for each object in a range that `source` selects, in order. Each record is skipped over only once.
    pub(super) fn each_row(
        &self,
        source: &Objects,
        range: Range<u32>,
        with_records: bool,
        mut visit: impl FnMut(EvaluatedRow<'_, 'a>) -> ControlFlow<()>,
    ) {
        if let Objects::Rows(table, set) = source {
            let mut rows = set.range(range).map(|number| EvaluatedRow::new(number, &[], Some(table)));
            let _ = rows.try_for_each(visit);
            return;
        }
        let mut start = range.start;
        while start < range.end {
            let count = (range.end - start).min(BLOCK);
            let word = self.candidates(source, start, count);
            let mut going = ControlFlow::Continue(());
            if word != 0 && with_records {
                self.dump.objects.records_of_block(ObjectIndex(start), word, |object, record| {
                    if going.is_continue() {
                        going = visit(EvaluatedRow::with_record(object, record));
                    }
                });
            } else {
                let bits = (0..count).filter(|bit| word & (1 << bit) != 0);
                going = bits
                    .map(|bit| start + bit)
                    .try_for_each(|number| visit(EvaluatedRow::new(number, &[], None)));
            }
            if going.is_break() {
                return;
            }
            start += count;
        }
    }

    /// Returns all rows that a source can have, in chunks.
    pub(super) fn chunks_of(&self, source: &Objects) -> Vec<Range<u32>> {
        self.chunks_of_size(source, CHUNK)
    }

    /// Returns all rows that a source can have, in chunks of a given size.
    pub(super) fn chunks_of_size(&self, source: &Objects, size: u32) -> Vec<Range<u32>> {
        let table = source.table().map(|table| u32::try_from(table.rows.len()).unwrap_or(u32::MAX));
        numbers::chunks(0..table.unwrap_or(self.dump.graph.objects.len()), size)
    }

    /// Returns the objects of a source for which a condition holds; if there is a `limit`, the first ones up to that number.
    pub(super) fn matching(
        &self,
        source: &Objects,
        condition: Option<&Code>,
        limit: Option<u64>,
    ) -> RoaringBitmap {
        match (source, condition) {
            (Objects::Set(set), None) if !self.live => return take_first(set.clone(), limit),
            (Objects::Rows(_, set), None) => return take_first(set.clone(), limit),
            _ => {}
        }
        let chunk = |range: Range<u32>| {
            let mut found = RoaringBitmap::new();
            self.each_row(source, range, condition.is_some(), |row| {
                if condition.is_none_or(|condition| self.holds(condition, &row)) {
                    // In order: each number is the largest so far.
                    let _ = found.try_push(row.number);
                    if limit.is_some_and(|limit| found.len() >= limit) {
                        return ControlFlow::Break(());
                    }
                }
                ControlFlow::Continue(())
            });
            found
        };
        let mut found = RoaringBitmap::new();
        let all = self.chunks_of(source);
        // With a limit, batches grow: the first rows may be enough.
        let mut rest = all.as_slice();
        let mut batch = if limit.is_some() { rayon::current_num_threads() } else { rest.len() };
        while !rest.is_empty() {
            let (now, later) = rest.split_at(batch.clamp(1, rest.len()));
            found |= parallel::union(now, chunk);
            if limit.is_some_and(|limit| found.len() >= limit) {
                break;
            }
            (rest, batch) = (later, batch.saturating_mul(2));
        }
        take_first(found, limit)
    }
}

fn take_first(set: RoaringBitmap, limit: Option<u64>) -> RoaringBitmap {
    match limit {
        Some(limit) if limit < set.len() => {
            set.iter().take(usize::try_from(limit).unwrap_or(usize::MAX)).collect()
        }
        _ => set,
    }
}
