//! Rows of SELECT without FROM, and queries of the objects of a row.

use std::sync::Arc;

use roaring::RoaringBitmap;

use hprof_index::graph::numbers::ObjectIndex;

use super::collected::ListCollector;
use crate::oql::code::{AppliedCode, Code, ListCode, ValueTable};
use crate::oql::error::OqlError;
use crate::oql::evaluate::{EvaluatedRow, Evaluator};
use crate::oql::group::children;
use crate::oql::names::resolve::{NameFrame, NameScope, Resolver};
use crate::oql::run::names;
use crate::oql::selected::SubqueryEvaluator;
use crate::oql::tree::{
    Aggregate, Expression, ExpressionNode, ListFunction, Select, SelectItem, SelectSource, Union,
};
use crate::oql::value::{ExpressionValue, List, Record};
use crate::oql::{SelectResult, SelectRows};

impl Evaluator<'_, '_> {
    /// Returns the column names and the rows of a SELECT without FROM: one row, or one for each item of a list.
    pub(in crate::oql) fn expression_rows(
        &self,
        select: &Select,
        items: &[SelectItem],
        ask: &dyn SubqueryEvaluator,
    ) -> Result<(Option<Vec<String>>, SelectResult), OqlError> {
        let mut resolver = Resolver::new(self, select, NameScope::Nothing, ask);
        let codes: Vec<Code> =
            items.iter().map(|item| resolver.code(&item.node)).collect::<Result<_, _>>()?;
        if !resolver.aggregates.is_empty() {
            return Err(OqlError::new(select.at, "without FROM there are no rows to count; count a list"));
        }
        let row = EvaluatedRow::new(u32::MAX, &[], None);
        let mut values: Vec<ExpressionValue> = codes.iter().map(|code| self.value(code, &row)).collect();
        self.kept.check()?;
        if values.len() != 1 {
            return Ok(table(names(items), vec![values.into()]));
        }
        let value = values.pop().unwrap_or(ExpressionValue::Null);
        let value = match value {
            // Class objects and roots.
            ExpressionValue::List(List::Classes | List::Roots, _) => {
                let mut collector = ListCollector::new(self, select.at);
                let mut items = self.items_of(&value).into_iter().flatten();
                items.all(|item| collector.push(item));
                self.kept.check()?;
                collector.finish()
            }
            value => value,
        };
        let objects = |set: RoaringBitmap| (None, SelectResult::from_rows(SelectRows::Set(set)));
        match &value {
            ExpressionValue::Null => Ok(objects(RoaringBitmap::new())),
            ExpressionValue::Object(object) => Ok(objects(
                [object.0].into_iter().filter(|object| self.is_meant(ObjectIndex(*object))).collect(),
            )),
            ExpressionValue::Objects(set) if !self.live => Ok(objects((**set).clone())),
            ExpressionValue::Objects(set) => {
                Ok(objects(set.iter().filter(|object| self.is_meant(ObjectIndex(*object))).collect()))
            }
            value => self.value_rows(select, items, value),
        }
    }

    /// Returns a row for each item of a list, or one for another value. Records have a column for each of their values.
    fn value_rows(
        &self,
        select: &Select,
        items: &[SelectItem],
        value: &ExpressionValue,
    ) -> Result<(Option<Vec<String>>, SelectResult), OqlError> {
        let values: Box<dyn Iterator<Item = ExpressionValue> + '_> = match value.is_listed() {
            true => Box::new(self.items_of(value).into_iter().flatten()),
            false => Box::new(std::iter::once(value.clone())),
        };
        let mut rows: Vec<Box<[ExpressionValue]>> = Vec::new();
        let mut record: Option<Arc<Record>> = None;
        for value in values {
            self.keep(select.at, value.bytes() + 2 * size_of::<Box<[ExpressionValue]>>() as u64 + 16)?;
            match value {
                ExpressionValue::Record(found)
                    if rows.is_empty() || record.as_ref().is_some_and(|known| known.names == found.names) =>
                {
                    rows.push(found.values.clone());
                    record.get_or_insert(found);
                }
                value => {
                    let width = record.as_ref().map_or(1, |known| known.names.len());
                    let rest = std::iter::repeat_n(ExpressionValue::Null, width.saturating_sub(1));
                    rows.push(std::iter::once(value).chain(rest).collect());
                }
            }
        }
        let columns = match record {
            Some(record) => distinct_names(&record.names),
            None => names(items),
        };
        Ok(table(columns, rows))
    }
}

/// Returns the result with these rows.
fn table(columns: Vec<String>, rows: Vec<Box<[ExpressionValue]>>) -> (Option<Vec<String>>, SelectResult) {
    let set = (0u32..).take(rows.len()).collect();
    let items = (0..columns.len()).map(Code::Column).collect();
    let table = Arc::new(ValueTable { columns: Some(columns.clone()), rows });
    let result = SelectResult::from_rows(SelectRows::Set(set));
    (Some(columns), SelectResult { items: Some(items), table: Some(table), ..result })
}

/// Returns names that differ from each other, as keys in JSON.
fn distinct_names(names: &[Box<str>]) -> Vec<String> {
    let null = ExpressionNode { start: 0, end: 0, expression: Expression::Null };
    let item = |name: &str| SelectItem { node: null.clone(), name: name.to_owned() };
    self::names(&names.iter().map(|name| item(name)).collect::<Vec<_>>())
}

impl Resolver<'_, '_, '_> {
    /// Resolves a query in an expression whose FROM reads the objects of the row, as in MAT's
    /// `(SELECT c.value FROM OBJECTS ${a}.cells[0:-1] c)`; returns `None` if it does not use the row.
    pub(in crate::oql) fn row_query(&mut self, query: &Union) -> Result<Option<Code>, OqlError> {
        let [select] = query.selects.as_slice() else { return Ok(None) };
        let SelectSource::Value(source) = &select.from.source else { return Ok(None) };
        if !self.is_of_row(source) {
            return Ok(None);
        }
        let is_simple = select.group.is_empty()
            && select.order.is_empty()
            && select.limit.is_none()
            && !select.is_distinct
            && !select.is_retained;
        let item = match select.items.as_deref() {
            None => None,
            Some([item]) if select.from.alias.is_some() || !select.is_objects => Some(&item.node),
            _ => return Err(no_row_query(select.at)),
        };
        if !is_simple {
            return Err(no_row_query(select.at));
        }
        let list = |function, of, body: Option<Code>| {
            let applied = body.map(|body| AppliedCode { slots: 1, body, compared: None });
            Code::List(Box::new(ListCode { function, lists: vec![of], applied, at: select.at }))
        };
        let mut found = self.code(source)?;
        self.frames.push(NameFrame::Query(select.from.alias.clone()));
        let condition = select.condition.as_ref().map(|node| self.condition(node)).transpose();
        let (function, node) = match item.map(|node| &node.expression) {
            Some(Expression::Aggregate(Aggregate::Average, _)) => {
                self.frames.pop();
                return Err(no_row_query(select.at));
            }
            Some(Expression::Aggregate(what, of)) => {
                let function = match what {
                    Aggregate::Count => ListFunction::Count,
                    Aggregate::Sum => ListFunction::Sum,
                    Aggregate::Min => ListFunction::Min,
                    Aggregate::Max | Aggregate::Average => ListFunction::Max,
                };
                (Some(function), of.as_deref())
            }
            _ => (None, item),
        };
        let body = node.map(|node| self.code(node)).transpose();
        self.frames.pop();
        if let Some(condition) = condition? {
            found = list(ListFunction::Filter, found, Some(condition));
        }
        if let Some(body) = body? {
            found = list(ListFunction::Map, found, Some(body));
        }
        Ok(Some(match function {
            Some(function) => list(function, found, None),
            None if matches!(found, Code::List(_)) => found,
            None => list(ListFunction::ToArray, found, None),
        }))
    }

    /// Returns whether an expression reads the row, or a parameter of a function.
    fn is_of_row(&self, node: &ExpressionNode) -> bool {
        match &node.expression {
            Expression::Name(name) => self.is_alias(name) || self.query_depth(name).is_some(),
            Expression::Parameter(..) => true,
            _ => children(node).into_iter().any(|child| self.is_of_row(child)),
        }
    }
}

fn no_row_query(at: usize) -> OqlError {
    let text = "a query of a row's objects can have one column and WHERE; use sort, top or unique for the rest, as in \
                top(filter(list, 'it.size > 3'), 'it.size', 5)";
    OqlError::new(at, text)
}
