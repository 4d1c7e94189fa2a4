//! Functions over lists: `map`, `filter`, `sort`, `count` and others. Lists are read item by item where they need not be kept.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use std::sync::atomic;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::storage::scratch_table::KeyTable;

use super::collected::ListCollector;
use crate::oql::builtins::Attribute;
use crate::oql::code::{AppliedCode, Code, ListCode};
use crate::oql::error::OqlError;
use crate::oql::evaluate::{EvaluatedRow, Evaluator};
use crate::oql::group::AggregateSum;
use crate::oql::kept;
use crate::oql::parameters::Parameters;
use crate::oql::tree::{Aggregate, ListFunction};
use crate::oql::value::{ExpressionValue, List};

/// Maximum number of items that the functions of a query read, for a small heap; see [`ITEMS_PER_OBJECT`].
const MAX_ITEMS: u64 = 1 << 28;
/// Number of items that the functions of a query may read for each object of a large heap.
const ITEMS_PER_OBJECT: u64 = 16;
/// Number of items that are counted together.
const COUNTED: u64 = 1024;
/// Default number of items of `top`.
const TOP: usize = 10;

/// Slot of the parameter `it`.
const ITEM: usize = 0;
const INDEX: usize = 1;
const ARRAY: usize = 2;
const RESULT: usize = 3;
/// Slots of `lhs` and `rhs`: an item is compared by the value that the function returns for either.
const COMPARED: [usize; 2] = [4, 5];

/// Receives an item of a list, and its index or name.
type Visit<'v> = dyn FnMut(ExpressionValue, ExpressionValue) -> ControlFlow<()> + 'v;

impl<'a> Evaluator<'_, 'a> {
    /// Returns the value of a function over lists.
    pub(in crate::oql) fn list_value(&self, list: &ListCode, row: &EvaluatedRow<'_, 'a>) -> ExpressionValue {
        match list.function {
            ListFunction::Count => self.count_items(list, row),
            ListFunction::Sum => {
                let mut sum = AggregateSum::default();
                let mut is_empty = true;
                let _ = self.each_result(list, row, &mut |_, _, value| {
                    is_empty = false;
                    sum.add(&value);
                    ControlFlow::Continue(())
                });
                if is_empty { ExpressionValue::Whole(0) } else { sum.value(Aggregate::Sum, None) }
            }
            ListFunction::Min | ListFunction::Max => self.extreme_item(list, row),
            ListFunction::Contains => {
                let mut is_contained = false;
                let _ = self.each_result(list, row, &mut |_, _, value| {
                    is_contained = value.is_true();
                    if is_contained { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
                ExpressionValue::Boolean(is_contained)
            }
            _ => {
                let mut collector = ListCollector::new(self, list.at);
                let _ = self.each_list_item(list, row, &mut |item, _| {
                    if collector.push(item) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                });
                if self.kept.is_failed() { ExpressionValue::Null } else { collector.finish() }
            }
        }
    }

    fn count_items(&self, list: &ListCode, row: &EvaluatedRow<'_, 'a>) -> ExpressionValue {
        if let ([of], None) = (list.lists.as_slice(), &list.applied)
            && !matches!(of, Code::List(_))
        {
            let value = self.value(of, row);
            return match &value {
                ExpressionValue::Null => ExpressionValue::Whole(0),
                ExpressionValue::Text(_) => self.attribute(&value, Attribute::Length),
                value if self.is_text(value) => self.attribute(value, Attribute::Length),
                value if self.is_list(value) => self.size(value),
                value => self.no_list(value, list.at),
            };
        }
        let mut count = 0;
        let _ = self.each_result(list, row, &mut |_, _, value| {
            count += i64::from(list.applied.is_none() || value.is_true());
            ControlFlow::Continue(())
        });
        ExpressionValue::Whole(count)
    }

    /// Returns the item with the smallest or the greatest value.
    fn extreme_item(&self, list: &ListCode, row: &EvaluatedRow<'_, 'a>) -> ExpressionValue {
        let is_max = list.function == ListFunction::Max;
        let compared = list.applied.as_ref().and_then(|applied| applied.compared);
        // `max` returns the item for which the comparison with all others holds; so does `min`.
        let is_greatest = match compared {
            None => is_max,
            Some(order) if is_max || !order.is_difference => order.rises,
            Some(order) => !order.rises,
        };
        let mut best: Option<(ExpressionValue, ExpressionValue)> = None;
        let _ = self.each_result(list, row, &mut |item, _, value| {
            if value == ExpressionValue::Null {
                return ControlFlow::Continue(());
            }
            let value = self.order_of(&value);
            let is_better = best.as_ref().is_none_or(|(known, _)| {
                let order = value.order(known);
                if is_greatest { order == Ordering::Greater } else { order == Ordering::Less }
            });
            if is_better {
                best = Some((value, item));
            }
            ControlFlow::Continue(())
        });
        best.map_or(ExpressionValue::Null, |(_, item)| item)
    }

    /// Returns the items of a list in the order of a function's values.
    fn sorted_items(
        &self,
        list: &ListCode,
        row: &EvaluatedRow<'_, 'a>,
        most: Option<usize>,
    ) -> Vec<(ExpressionValue, ExpressionValue)> {
        let compared = list.applied.as_ref().and_then(|applied| applied.compared);
        let is_key = list.applied.is_some() && compared.is_none();
        // `top(list, 'it.size')` has the greatest first.
        let rises = compared.map_or(!(is_key && most.is_some()), |order| order.rises);
        let order = |a: &(ExpressionValue, ExpressionValue), b: &(ExpressionValue, ExpressionValue)| {
            if rises { a.0.order(&b.0) } else { b.0.order(&a.0) }
        };
        let room = self.kept.room(self.dump.graph);
        let mut reserved = room.reserve();
        let mut items: Vec<(ExpressionValue, ExpressionValue)> = Vec::new();
        let _ = self.each_result(list, row, &mut |item, _, value| {
            let value = self.order_of(&value);
            let bytes = 2 * (item.bytes() + value.bytes());
            if most.is_none() && !reserved.take(bytes) {
                self.kept.record(kept::too_much(list.at, "the lists of this query", room));
                return ControlFlow::Break(());
            }
            items.push((value, item));
            if let Some(most) = most
                && items.len() >= most.saturating_mul(2).saturating_add(1024)
            {
                items.sort_by(order);
                items.truncate(most);
            }
            ControlFlow::Continue(())
        });
        items.sort_by(order);
        items.truncate(most.unwrap_or(usize::MAX));
        items
    }

    /// Visits the items that a function over lists returns.
    fn each_list_item(
        &self,
        list: &ListCode,
        row: &EvaluatedRow<'_, 'a>,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let whole =
            |number: usize| i64::try_from(number).map_or(ExpressionValue::Null, ExpressionValue::Whole);
        match list.function {
            ListFunction::Map => self.each_result(list, row, &mut |_, index, value| visit(value, index)),
            ListFunction::Filter => self.each_result(list, row, &mut |item, index, value| {
                if value.is_true() { visit(item, index) } else { ControlFlow::Continue(()) }
            }),
            ListFunction::Unique => {
                let mut seen = KeyTable::new(self.kept.room(self.dump.graph));
                self.each_result(list, row, &mut |item, index, value| match seen
                    .insert(self.kept.hash(&value.key()), 0)
                {
                    Ok(Some(_)) => ControlFlow::Continue(()),
                    Ok(None) => visit(item, index),
                    Err(error) => {
                        self.kept.record_error(&error);
                        ControlFlow::Break(())
                    }
                })
            }
            ListFunction::Sort | ListFunction::Top => {
                let most = (list.function == ListFunction::Top).then(|| {
                    let count = list.lists.get(1).and_then(|code| self.value(code, row).index());
                    count.map_or(TOP, |count| usize::try_from(count).unwrap_or(0))
                });
                let items = self.sorted_items(list, row, most);
                items.into_iter().enumerate().try_for_each(|(index, (_, item))| visit(item, whole(index)))
            }
            ListFunction::Concat => {
                let mut index = 0;
                list.lists.iter().try_for_each(|code| {
                    self.each_item(code, row, list.at, &mut |item, _| {
                        index += 1;
                        visit(item, whole(index - 1))
                    })
                })
            }
            ListFunction::ToArray => match list.lists.first() {
                Some(code) => self.each_item(code, row, list.at, visit),
                None => ControlFlow::Continue(()),
            },
            _ => visit(self.list_value(list, row), ExpressionValue::Whole(0)),
        }
    }

    /// Visits the items of the first list, each with the value of the function; without a function, that is the item.
    fn each_result(
        &self,
        list: &ListCode,
        row: &EvaluatedRow<'_, 'a>,
        visit: &mut dyn FnMut(ExpressionValue, ExpressionValue, ExpressionValue) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(code) = list.lists.first() else { return ControlFlow::Continue(()) };
        let Some(applied) = &list.applied else {
            return self.each_item(code, row, list.at, &mut |item, index| visit(item.clone(), index, item));
        };
        let has = |slot: usize| applied.slots & (1 << slot) != 0;
        let parameters = Parameters::new(row.parameters);
        let inner = row.with_parameters(&parameters);
        if has(ARRAY) {
            parameters.set(ARRAY, self.value(code, row));
        }
        let mut results = has(RESULT).then(Vec::new);
        self.each_item(code, row, list.at, &mut |item, index| {
            parameters.set(ITEM, item.clone());
            if has(INDEX) {
                parameters.set(INDEX, index.clone());
            }
            for slot in COMPARED.into_iter().filter(|slot| has(*slot)) {
                parameters.set(slot, item.clone());
            }
            if let Some(results) = &results {
                // The results so far are copied for each item.
                if !self.read_items(results.len() as u64, list.at) {
                    return ControlFlow::Break(());
                }
                parameters.set(RESULT, ExpressionValue::from_values(results.clone()));
            }
            let value = self.applied_value(applied, &inner);
            if let Some(results) = &mut results {
                match list.function {
                    ListFunction::Map => results.push(value.clone()),
                    _ if value.is_true() => results.push(item.clone()),
                    _ => {}
                }
            }
            visit(item, index, value)
        })
    }

    fn applied_value(&self, applied: &AppliedCode, row: &EvaluatedRow<'_, 'a>) -> ExpressionValue {
        self.value(&applied.body, row)
    }

    /// Visits the items of a list. Lists that functions return are not collected.
    fn each_item(
        &self,
        code: &Code,
        row: &EvaluatedRow<'_, 'a>,
        at: usize,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        if let Code::List(list) = code {
            return self.each_list_item(list, row, visit);
        }
        let value = self.value(code, row);
        let Some(items) = self.items_of(&value) else {
            if value != ExpressionValue::Null {
                self.no_list(&value, at);
            }
            return ControlFlow::Continue(());
        };
        let is_statics = matches!(value, ExpressionValue::List(List::Statics, _));
        let mut read = 0;
        for (number, item) in (0i64..).zip(items) {
            read += 1;
            if read == COUNTED {
                if !self.read_items(read, at) {
                    return ControlFlow::Break(());
                }
                read = 0;
            }
            if is_statics {
                // As in jhat: values, by name.
                let [name, value] =
                    [Attribute::Name, Attribute::Value].map(|what| self.field_attribute(&item, what));
                visit(value, name)?;
            } else {
                visit(item, ExpressionValue::Whole(number))?;
            }
        }
        if self.read_items(read + 1, at) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Records the error for a value that is not a list.
    fn no_list(&self, value: &ExpressionValue, at: usize) -> ExpressionValue {
        let text = format!(
            "{} is not a list: functions over lists need an array, a list or a collection",
            self.kind_name(value)
        );
        self.kept.record(OqlError::new(at, text));
        ExpressionValue::Null
    }

    /// Counts items that functions over lists read. Returns `false`, with an error recorded, if there are too many.
    pub(super) fn read_items(&self, count: u64, at: usize) -> bool {
        let objects = u64::from(self.dump.graph.objects.len());
        let max = MAX_ITEMS.max(objects.saturating_mul(ITEMS_PER_OBJECT));
        let before = self.items_read.fetch_add(count, atomic::Ordering::Relaxed);
        if before.saturating_add(count) > max {
            let text = format!("the lists of this query have more than {max} items in total; select less");
            self.kept.record(OqlError::new(at, text));
        }
        !self.kept.is_failed()
    }

    /// Returns the objects of a list in ascending order.
    pub(super) fn object_list(objects: impl IntoIterator<Item = ObjectIndex>) -> ExpressionValue {
        ExpressionValue::Objects(std::sync::Arc::new(objects.into_iter().map(|object| object.0).collect()))
    }
}
