//! GROUP BY and aggregates.

use std::collections::hash_map::Entry;
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;

use super::code::{Aggregated, Code};
use super::evaluate::{EvaluatedRow, Evaluator};
use super::selected::Objects;
use super::tree::{Aggregate, Expression, ExpressionNode, StepName};
use super::value::{ExpressionValue, GroupKey};
use crate::parallel;

/// An aggregate during evaluation.
#[derive(Debug, Clone, Default)]
struct AggregateSum {
    count: u64,
    /// Number of values that are numbers.
    numbers: u64,
    whole: i128,
    double: f64,
    is_double: bool,
    /// Minimum or maximum so far, and the value by which it is ordered.
    extreme: Option<(ExpressionValue, ExpressionValue)>,
}

impl AggregateSum {
    /// Adds a value; `order` returns the value by which it is ordered.
    fn add(
        &mut self,
        what: Aggregate,
        value: ExpressionValue,
        order: impl FnOnce(&ExpressionValue) -> ExpressionValue,
    ) {
        if value == ExpressionValue::Null {
            return;
        }
        self.count += 1;
        self.numbers += u64::from(value.double().is_some());
        match (value.whole(), value.double()) {
            (Some(whole), _) => self.whole += i128::from(whole),
            (None, Some(double)) => (self.double, self.is_double) = (self.double + double, true),
            (None, None) => {}
        }
        if matches!(what, Aggregate::Min | Aggregate::Max) {
            let order = order(&value);
            self.extreme = extreme(what, self.extreme.take(), Some((order, value)));
        }
    }

    fn merge(&mut self, what: Aggregate, other: Self) {
        self.count += other.count;
        self.numbers += other.numbers;
        self.whole = self.whole.saturating_add(other.whole);
        self.double += other.double;
        self.is_double |= other.is_double;
        self.extreme = extreme(what, self.extreme.take(), other.extreme);
    }

    #[allow(clippy::cast_precision_loss)]
    fn value(&self, what: Aggregate) -> ExpressionValue {
        let sum = self.whole as f64 + self.double;
        match what {
            Aggregate::Count => {
                i64::try_from(self.count).map_or(ExpressionValue::Null, ExpressionValue::Whole)
            }
            Aggregate::Min | Aggregate::Max => {
                self.extreme.as_ref().map_or(ExpressionValue::Null, |(_, value)| value.clone())
            }
            _ if self.numbers == 0 => ExpressionValue::Null,
            Aggregate::Sum if self.is_double => ExpressionValue::Double(sum),
            Aggregate::Sum => {
                i64::try_from(self.whole).map_or(ExpressionValue::Double(sum), ExpressionValue::Whole)
            }
            Aggregate::Average => ExpressionValue::Double(sum / self.numbers as f64),
        }
    }
}

/// Returns the smaller or the greater of two values; the first if they are equal.
fn extreme(
    what: Aggregate,
    a: Option<(ExpressionValue, ExpressionValue)>,
    b: Option<(ExpressionValue, ExpressionValue)>,
) -> Option<(ExpressionValue, ExpressionValue)> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let order = b.0.order(&a.0);
            let is_b = if what == Aggregate::Max { order.is_gt() } else { order.is_lt() };
            Some(if is_b { b } else { a })
        }
        (a, b) => a.or(b),
    }
}

/// A group: its first object, and its aggregates.
pub(super) struct GroupedRow {
    pub(super) first: u32,
    pub(super) aggregates: Vec<ExpressionValue>,
}

type GroupSums = FxHashMap<Box<[GroupKey]>, (u32, Vec<AggregateSum>)>;

impl<'a> Evaluator<'_, 'a> {
    /// Groups objects, in the order of the first object of each group.
    pub(super) fn groups(
        &self,
        source: &Objects,
        condition: Option<&Code>,
        keys: &[Code],
        of: &[Aggregated],
    ) -> Vec<GroupedRow> {
        let with_records =
            condition.is_some() || !keys.is_empty() || of.iter().any(|aggregate| aggregate.of.is_some());
        let chunk = |range| {
            let mut groups = GroupSums::default();
            // Without keys, nothing has to be looked up.
            let mut only: Option<(u32, Vec<AggregateSum>)> = None;
            self.each_row(source, range, with_records, |row| {
                if condition.is_some_and(|condition| !self.holds(condition, &row)) {
                    return ControlFlow::Continue(());
                }
                let first = || (row.number, vec![AggregateSum::default(); of.len()]);
                let (_, sums) = if keys.is_empty() {
                    only.get_or_insert_with(first)
                } else {
                    groups
                        .entry(keys.iter().map(|code| self.value(code, &row).key()).collect())
                        .or_insert_with(first)
                };
                self.add(&row, of, sums);
                ControlFlow::Continue(())
            });
            groups.extend(only.map(|only| (Box::default(), only)));
            groups
        };
        let all = self.chunks_of(source);
        let mut merged = GroupSums::default();
        // In batches: the groups of all chunks at once would take a multiple of the memory. In order: sums of fractions
        // are the same each time.
        for batch in all.chunks(rayon::current_num_threads().saturating_mul(16).max(1)) {
            let found: Vec<GroupSums> = parallel::map(batch, chunk);
            for (key, (first, sums)) in found.into_iter().flatten() {
                match merged.entry(key) {
                    Entry::Vacant(place) => {
                        place.insert((first, sums));
                    }
                    Entry::Occupied(mut place) => {
                        for ((sum, other), aggregate) in place.get_mut().1.iter_mut().zip(sums).zip(of) {
                            sum.merge(aggregate.what, other);
                        }
                    }
                }
            }
        }
        // Aggregates without rows still result in one row.
        if merged.is_empty() && keys.is_empty() {
            merged.insert(Box::default(), (u32::MAX, vec![AggregateSum::default(); of.len()]));
        }
        let group = |(first, sums): (u32, Vec<AggregateSum>)| {
            let aggregates = sums.iter().zip(of).map(|(sum, aggregate)| sum.value(aggregate.what)).collect();
            GroupedRow { first, aggregates }
        };
        let mut groups: Vec<GroupedRow> = merged.into_values().map(group).collect();
        groups.sort_unstable_by_key(|group| group.first);
        groups
    }

    fn add(&self, row: &EvaluatedRow<'_, 'a>, of: &[Aggregated], sums: &mut [AggregateSum]) {
        for (sum, aggregate) in sums.iter_mut().zip(of) {
            let value =
                aggregate.of.as_ref().map_or(ExpressionValue::Boolean(true), |code| self.value(code, row));
            sum.add(aggregate.what, value, |value| self.order_of(value));
        }
    }
}

/// Returns whether an expression contains an aggregate.
pub(super) fn has_aggregate(node: &ExpressionNode) -> bool {
    matches!(node.expression, Expression::Aggregate(..)) || children(node).into_iter().any(has_aggregate)
}

/// Returns a part of an expression that is not the same for all rows of a group, if there is one.
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
        _ => Vec::new(),
    }
}
