//! GROUP BY and aggregates.

use std::io;
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::code::{Code, CodeAggregate};
use super::error::OqlError;
use super::evaluate::{EvaluatedRow, Evaluator};
use super::kept;
use super::scan::CHUNK;
use super::selected::Objects;
use super::tree::{Aggregate, Expression, ExpressionNode, StepName};
use super::value::ExpressionValue;
use hprof_base::parallel;
use hprof_index::objects::object_table::BLOCK;
use hprof_index::storage::scratch::ReservedMemory;
use hprof_index::storage::scratch_table::{KeyTable, ScratchVec};

/// Sums and counts of an aggregate over the rows of a group.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct AggregateSum {
    count: u64,
    /// Number of values that are numbers.
    numbers: u64,
    /// Sum of the whole numbers: an [`i128`] in native byte order.
    whole: [u8; 16],
    double: f64,
    /// 1 if a value has a fraction.
    is_double: u64,
}

/// Minimum or maximum so far: its sort value, and the value itself.
type Extreme = Option<(ExpressionValue, ExpressionValue)>;

impl AggregateSum {
    fn whole_sum(&self) -> i128 {
        i128::from_ne_bytes(self.whole)
    }

    pub(super) fn add(&mut self, value: &ExpressionValue) {
        self.count += 1;
        self.numbers += u64::from(value.double().is_some());
        match (value.integer(), value.double()) {
            (Some(whole), _) => self.whole = (self.whole_sum() + i128::from(whole)).to_ne_bytes(),
            (None, Some(double)) => (self.double, self.is_double) = (self.double + double, 1),
            (None, None) => {}
        }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.numbers += other.numbers;
        self.whole = self.whole_sum().saturating_add(other.whole_sum()).to_ne_bytes();
        self.double += other.double;
        self.is_double |= other.is_double;
    }

    #[allow(clippy::cast_precision_loss)]
    pub(super) fn value(&self, what: Aggregate, extreme: Option<&Extreme>) -> ExpressionValue {
        let sum = self.whole_sum() as f64 + self.double;
        match what {
            Aggregate::Count => {
                i64::try_from(self.count).map_or(ExpressionValue::Null, ExpressionValue::Whole)
            }
            Aggregate::Min | Aggregate::Max => {
                extreme.and_then(Option::as_ref).map_or(ExpressionValue::Null, |(_, value)| value.clone())
            }
            _ if self.numbers == 0 => ExpressionValue::Null,
            Aggregate::Sum if self.is_double != 0 => ExpressionValue::Double(sum),
            Aggregate::Sum => {
                i64::try_from(self.whole_sum()).map_or(ExpressionValue::Double(sum), ExpressionValue::Whole)
            }
            Aggregate::Average => ExpressionValue::Double(sum / self.numbers as f64),
        }
    }
}

/// Returns the smaller or the greater of two values; the first if they are equal.
fn extreme(what: Aggregate, a: Extreme, b: Extreme) -> Extreme {
    match (a, b) {
        (Some(a), Some(b)) => {
            let order = b.0.order(&a.0);
            let is_b = if what == Aggregate::Max { order.is_gt() } else { order.is_lt() };
            Some(if is_b { b } else { a })
        }
        (a, b) => a.or(b),
    }
}

fn is_extreme(aggregate: &CodeAggregate) -> bool {
    matches!(aggregate.what, Aggregate::Min | Aggregate::Max)
}

fn extreme_bytes(extreme: &Extreme) -> u64 {
    let values = extreme.as_ref().map_or(0, |(order, value)| order.bytes() + value.bytes());
    values.max(size_of::<Extreme>() as u64)
}

/// Groups of the rows of a chunk, in the order of their first rows.
#[derive(Default)]
struct ChunkGroups {
    places: FxHashMap<u128, usize>,
    /// Hash of the key, and number of the first row, by group.
    firsts: Vec<(u128, u32)>,
    /// Sums, by group and aggregate.
    sums: Vec<AggregateSum>,
    /// Extremes, by group and aggregate; empty if no aggregate is a minimum or maximum.
    extremes: Vec<Extreme>,
    /// Approximate size of the extremes in bytes.
    extreme_bytes: u64,
}

/// Groups of the rows of a query, in the order of their first rows.
#[derive(Debug)]
pub(super) struct RowGroups {
    kinds: Vec<Aggregate>,
    firsts: ScratchVec<u32>,
    /// Sums, by group and aggregate.
    sums: ScratchVec<AggregateSum>,
    /// Extremes, by group and aggregate; empty if no aggregate is a minimum or maximum.
    extremes: Vec<Extreme>,
    /// Memory that is reserved for the extremes.
    reserved: ReservedMemory,
}

impl RowGroups {
    /// Returns the number of groups.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.firsts.len()).unwrap_or(u32::MAX)
    }

    /// Returns the first row of a group, and the values of the group's aggregates.
    pub(super) fn get(&self, group: u32) -> (u32, Vec<ExpressionValue>) {
        let (group, width) = (group as usize, self.kinds.len());
        let start = group.saturating_mul(width);
        let sums = self.sums.as_slice().get(start..start.saturating_add(width)).unwrap_or_default();
        let value = |(at, (sum, what)): (usize, (&AggregateSum, &Aggregate))| {
            sum.value(*what, self.extremes.get(start + at))
        };
        let aggregates = sums.iter().zip(&self.kinds).enumerate().map(value).collect();
        (self.firsts.as_slice().get(group).copied().unwrap_or(u32::MAX), aggregates)
    }
}

impl<'a> Evaluator<'_, 'a> {
    /// Groups rows, in the order of the first row of each group. `at` is the offset of the query.
    ///
    /// # Errors
    /// If neither memory nor disk has space for the sums of the groups.
    pub(super) fn groups(
        &self,
        at: usize,
        source: &Objects,
        condition: Option<&Code>,
        keys: &[Code],
        of: &[CodeAggregate],
    ) -> Result<RowGroups, OqlError> {
        let room = self.kept.room(self.dump.graph);
        let width = of.len();
        let with_records =
            condition.is_some() || !keys.is_empty() || of.iter().any(|aggregate| aggregate.of.is_some());
        let has_extremes = of.iter().any(is_extreme);
        let threads = rayon::current_num_threads() as u64;
        let max_extreme_bytes = kept::share(room, 4 * threads.max(1));
        let chunk = |range| {
            let mut groups = ChunkGroups::default();
            self.each_row(source, range, with_records, |row| {
                if condition.is_some_and(|condition| !self.holds(condition, &row)) {
                    return ControlFlow::Continue(());
                }
                // Without keys, nothing has to be looked up.
                let place = if keys.is_empty() {
                    0
                } else {
                    let key = self.row_key(keys, &row);
                    let next = groups.firsts.len();
                    let place = *groups.places.entry(key).or_insert(next);
                    if place == next {
                        groups.firsts.push((key, row.number));
                    }
                    place
                };
                if keys.is_empty() && groups.firsts.is_empty() {
                    groups.firsts.push((0, row.number));
                }
                let start = place * width;
                if groups.sums.len() == start {
                    groups.sums.resize(start + width, AggregateSum::default());
                    groups.extremes.resize(if has_extremes { start + width } else { 0 }, None);
                }
                self.add(&row, of, start, &mut groups);
                if groups.extreme_bytes > max_extreme_bytes {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            });
            groups
        };
        // The size of a group grows with the number of aggregates.
        let size =
            (CHUNK / u32::try_from(width / 4).unwrap_or(u32::MAX).saturating_add(1)).max(BLOCK) / BLOCK;
        let all = self.chunks_of_size(source, size.max(1) * BLOCK);
        let size_of_group = size_of::<(u128, usize)>() * 2
            + size_of::<(u128, u32)>()
            + width * (size_of::<AggregateSum>() + if has_extremes { size_of::<Extreme>() } else { 0 });
        let batch = kept::batch(room, u64::from(size * BLOCK) * size_of_group as u64);
        let mut places = KeyTable::new(room);
        let mut merged = RowGroups {
            kinds: of.iter().map(|aggregate| aggregate.what).collect(),
            firsts: ScratchVec::new(room),
            sums: ScratchVec::new(room),
            extremes: Vec::new(),
            reserved: room.reserve(),
        };
        // In batches: the groups of all chunks at once would take a multiple of the memory. In order: sums of fractions
        // are the same each time.
        for batch in all.chunks(batch) {
            for groups in parallel::map(batch, chunk) {
                if groups.extreme_bytes > max_extreme_bytes {
                    return Err(kept::too_much(at, "the values of min and max", room));
                }
                merged
                    .merge(&mut places, groups)
                    .map_err(kept::scratch_error(at))?
                    .ok_or_else(|| kept::too_much(at, "the values of min and max", room))?;
            }
        }
        // Aggregates without rows still result in one row.
        if merged.firsts.is_empty() && keys.is_empty() {
            merged.firsts.push(u32::MAX).map_err(kept::scratch_error(at))?;
            (0..width)
                .try_for_each(|_| merged.sums.push(AggregateSum::default()))
                .map_err(kept::scratch_error(at))?;
        }
        Ok(merged)
    }

    /// Returns the hash of the values of a row.
    pub(super) fn row_key(&self, codes: &[Code], row: &EvaluatedRow<'_, 'a>) -> u128 {
        match codes {
            [code] => self.kept.hash(&self.value(code, row).key()),
            codes => {
                self.kept.hash(&codes.iter().map(|code| self.value(code, row).key()).collect::<Vec<_>>())
            }
        }
    }

    fn add(&self, row: &EvaluatedRow<'_, 'a>, of: &[CodeAggregate], start: usize, groups: &mut ChunkGroups) {
        for (at, aggregate) in (start..).zip(of) {
            let value =
                aggregate.of.as_ref().map_or(ExpressionValue::Boolean(true), |code| self.value(code, row));
            if value == ExpressionValue::Null {
                continue;
            }
            if let Some(sum) = groups.sums.get_mut(at) {
                sum.add(&value);
            }
            if let Some(known) = groups.extremes.get_mut(at).filter(|_| is_extreme(aggregate)) {
                let one = Some((self.order_of(&value), value));
                groups.extreme_bytes = groups.extreme_bytes.saturating_sub(extreme_bytes(known));
                *known = extreme(aggregate.what, known.take(), one);
                groups.extreme_bytes += extreme_bytes(known);
            }
        }
    }
}

impl RowGroups {
    /// Adds the groups of a chunk; returns `None` if there is too little memory.
    fn merge(&mut self, places: &mut KeyTable, mut groups: ChunkGroups) -> io::Result<Option<()>> {
        let width = self.kinds.len();
        for (number, (key, first)) in groups.firsts.iter().enumerate() {
            let new = self.len();
            let known = places.insert(*key, new)?;
            let (from, to) = (number * width, known.unwrap_or(new) as usize * width);
            if known.is_none() {
                self.firsts.push(*first)?;
                let sums = groups.sums.get(from..from + width).unwrap_or_default();
                sums.iter().try_for_each(|sum| self.sums.push(*sum))?;
                if !groups.extremes.is_empty() {
                    let extremes = groups.extremes.get_mut(from..from + width).unwrap_or_default();
                    // A growing vector temporarily exists twice.
                    let bytes = extremes.iter().map(extreme_bytes).sum::<u64>();
                    if !self.reserved.take(bytes + (width * size_of::<Extreme>()) as u64) {
                        return Ok(None);
                    }
                    self.extremes.extend(extremes.iter_mut().map(Option::take));
                }
                continue;
            }
            let sums = groups.sums.get(from..from + width).unwrap_or_default();
            for (sum, other) in self.sums.as_mut_slice().iter_mut().skip(to).zip(sums) {
                sum.merge(other);
            }
            let extremes = groups.extremes.get_mut(from..from + width).unwrap_or_default();
            let known = self.extremes.get_mut(to..to + width).unwrap_or_default();
            for ((known, other), what) in known.iter_mut().zip(extremes).zip(&self.kinds) {
                let before = extreme_bytes(known);
                *known = extreme(*what, known.take(), other.take());
                if !self.reserved.take(extreme_bytes(known).saturating_sub(before)) {
                    return Ok(None);
                }
            }
        }
        Ok(Some(()))
    }
}

/// Returns whether an expression contains an aggregate.
pub(super) fn has_aggregate(node: &ExpressionNode) -> bool {
    matches!(node.expression, Expression::Aggregate(..)) || children(node).into_iter().any(has_aggregate)
}

/// Returns a part of an expression that can differ between the rows of a group, if there is one.
pub(super) fn not_grouped<'n>(
    node: &'n ExpressionNode,
    is_key: &dyn Fn(&ExpressionNode) -> bool,
) -> Option<&'n ExpressionNode> {
    if is_key(node) || matches!(node.expression, Expression::Aggregate(..)) {
        return None;
    }
    if matches!(node.expression, Expression::Name(_) | Expression::Row) {
        return Some(node);
    }
    children(node).into_iter().find_map(|child| not_grouped(child, is_key))
}

/// Returns the direct subexpressions.
pub(super) fn children(node: &ExpressionNode) -> Vec<&ExpressionNode> {
    match &node.expression {
        Expression::Path(base, steps) => {
            let mut nodes = vec![&**base];
            for step in steps {
                match &step.what {
                    StepName::Method(_, arguments) => nodes.extend(arguments),
                    StepName::Element(index) => nodes.push(index),
                    StepName::Slice(first, last) => nodes.extend([&**first, &**last]),
                    StepName::Field(_) | StepName::Attribute(_) => {}
                }
            }
            nodes
        }
        Expression::Call(_, of) | Expression::Not(of) | Expression::Negate(of) => vec![of],
        Expression::Aggregate(_, of) => of.iter().map(|of| &**of).collect(),
        Expression::All(of) | Expression::Any(of) | Expression::Coalesce(of) => of.iter().collect(),
        Expression::Compare(left, _, right) => vec![left, right],
        Expression::Arithmetic(first, more) => {
            std::iter::once(&**first).chain(more.iter().map(|(_, node)| node)).collect()
        }
        Expression::Like(of, ..) | Expression::InQuery(of, ..) | Expression::Is(of, ..) => vec![of],
        Expression::In(of, values, _) => std::iter::once(&**of).chain(values).collect(),
        Expression::Choose(of) => of.iter().collect(),
        Expression::Record(values) => values.iter().map(|(_, node)| node).collect(),
        Expression::Array(of) | Expression::Heap(_, of) => of.iter().collect(),
        Expression::Test(of, ..) => vec![of],
        Expression::List(_, lists, applied) => {
            lists.iter().chain(applied.iter().map(|applied| &applied.body)).collect()
        }
        _ => Vec::new(),
    }
}
