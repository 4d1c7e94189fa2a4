//! Execution of a query: selection of the rows, and of the values that they show.

use std::cell::RefCell;
use std::sync::{Arc, PoisonError};

use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};

use hprof_index::graph::numbers::ObjectIndex;
use hprof_model::dominators::retained_of_set::retained_set;

use super::code::{Code, QuerySet, ValueTable};
use super::error::{OqlError, QueryError};
use super::evaluate::Evaluator;
use super::group::{RowGroups, has_aggregate, not_grouped};
use super::kept;
use super::lexer;
use super::lists::SetItems;
use super::names::resolve::{NameScope, Resolver};
use super::selected::{Objects, QueryContext, SubqueryEvaluator};
use super::sort::RowOrder;
use super::source::{MAX_ROWS, too_many};
use super::tree::{Expression, ExpressionNode, Select, SelectItem, SelectSource, Union};
use super::value::ExpressionValue;
use super::{OqlResult, Query, SelectResult, SelectRows};

/// Shape of the rows of a SELECT.
enum RowShape<'q> {
    /// Rows are the selected objects.
    Objects,
    /// Rows are objects that an expression returns.
    Given,
    /// Rows have columns with values.
    Columns(&'q [SelectItem]),
}

impl Select {
    fn shape(&self) -> Result<RowShape<'_>, OqlError> {
        let Some(items) = &self.items else { return Ok(RowShape::Objects) };
        match items.as_slice() {
            [item] if self.is_row(&item.node) => Ok(RowShape::Objects),
            [_] if self.is_objects => Ok(RowShape::Given),
            _ if self.is_objects => Err(OqlError::new(self.at, "SELECT OBJECTS takes only one expression")),
            items => Ok(RowShape::Columns(items)),
        }
    }

    fn is_row(&self, node: &ExpressionNode) -> bool {
        matches!(&node.expression, Expression::Name(name) if self.from.alias.as_ref() == Some(name))
    }

    /// Returns the expression of the column that a node names, possibly in quotes, or the node itself.
    fn resolve_alias<'s>(&'s self, node: &'s ExpressionNode) -> &'s ExpressionNode {
        let (Expression::Name(name) | Expression::Text(name)) = &node.expression else { return node };
        let mut items = self.items.iter().flatten();
        items.find(|item| item.name == *name).map_or(node, |item| &item.node)
    }
}

/// Evaluator of the queries nested in a query with this text.
///
/// Each nested query is evaluated once, however often its expression is resolved: for the column, the group, the order.
pub(super) struct SubqueryRunner<'r, 'o, 'a> {
    evaluator: &'r Evaluator<'o, 'a>,
    around: QueryContext<'r>,
    /// Results by start offset of the nested query.
    found: RefCell<FxHashMap<usize, Arc<QuerySet>>>,
    values: RefCell<FxHashMap<usize, ExpressionValue>>,
}

impl<'r, 'o, 'a> SubqueryRunner<'r, 'o, 'a> {
    pub(super) fn new(evaluator: &'r Evaluator<'o, 'a>, around: QueryContext<'r>) -> Self {
        Self { evaluator, around, found: RefCell::default(), values: RefCell::default() }
    }

    fn find(&self, query: &Union) -> Result<QuerySet, OqlError> {
        let answer = self.evaluator.union(query, self.around, None)?;
        let mut found = QuerySet::new(self.evaluator.kept.room(self.evaluator.dump.graph));
        if answer.columns.is_none() {
            found.objects = self.evaluator.objects_of_parts(&answer.parts);
            return Ok(found);
        }
        for row in one_column(&answer, query)?.flat_map(|part| part.values(self.evaluator)) {
            if let Some(value) = row.into_iter().next() {
                self.evaluator.find(&mut found, value).map_err(kept::scratch_error(place(query)))?;
            }
            if found.values.len() > MAX_ROWS {
                return Err(too_many(place(query)));
            }
        }
        Ok(found)
    }

    fn ask(&self, query: &Union) -> Result<ExpressionValue, OqlError> {
        let answer = self.evaluator.union(query, self.around, None)?;
        let max = self.evaluator.bound.unwrap_or(MAX_ROWS);
        let most = max + 1;
        let objects;
        let found: Box<dyn Iterator<Item = ExpressionValue> + '_> = if answer.columns.is_none() {
            objects = self.evaluator.objects_of_parts(&answer.parts);
            Box::new(objects.iter().map(ObjectIndex).map(ExpressionValue::Object))
        } else {
            let rows = one_column(&answer, query)?.flat_map(|part| part.values(self.evaluator));
            Box::new(rows.filter_map(|row| row.into_iter().next()))
        };
        let mut values = Vec::new();
        for value in found.take(most) {
            // Counted twice: they are moved once, to shared storage.
            self.evaluator.keep(place(query), 2 * value.bytes())?;
            values.push(value);
        }
        if values.len() > max {
            return Err(too_many(place(query)));
        }
        Ok(match values.len() {
            0 => ExpressionValue::Null,
            1 => values.pop().unwrap_or(ExpressionValue::Null),
            _ => ExpressionValue::from_values(values),
        })
    }
}

/// Returns the start offset of a query in the text.
fn place(query: &Union) -> usize {
    query.selects.first().map_or(0, |select| select.at)
}

impl SubqueryEvaluator for SubqueryRunner<'_, '_, '_> {
    fn rows(&self, query: &Union) -> Result<Objects, OqlError> {
        let answer = self.evaluator.union(query, self.around, None)?;
        let Some(columns) = answer.columns else {
            return Ok(Objects::Set(self.evaluator.objects_of_parts(&answer.parts)));
        };
        let mut rows: Vec<Box<[ExpressionValue]>> = Vec::new();
        for values in answer.parts.iter().flat_map(|part| part.values(self.evaluator)) {
            let before = rows.len();
            self.evaluator.flatten(values, &mut rows);
            // A growing vector temporarily exists twice.
            let bytes = |row: &[ExpressionValue]| {
                let values = row.iter().map(ExpressionValue::bytes).sum::<u64>();
                values + 16 + 2 * size_of::<Box<[ExpressionValue]>>() as u64
            };
            let bytes = rows.iter().skip(before).map(|row| bytes(row)).sum();
            self.evaluator.keep(place(query), bytes)?;
            if rows.len() > MAX_ROWS {
                return Err(too_many(place(query)));
            }
        }
        Ok(ValueTable { columns: Some(columns), rows }.into())
    }

    fn query_set(&self, query: &Union) -> Result<Arc<QuerySet>, OqlError> {
        if let Some(found) = self.found.borrow().get(&place(query)) {
            return Ok(found.clone());
        }
        let found = Arc::new(self.find(query)?);
        self.found.borrow_mut().insert(place(query), found.clone());
        Ok(found)
    }

    fn value(&self, query: &Union) -> Result<ExpressionValue, OqlError> {
        if let Some(value) = self.values.borrow().get(&place(query)) {
            return Ok(value.clone());
        }
        let value = self.ask(query)?;
        self.values.borrow_mut().insert(place(query), value.clone());
        Ok(value)
    }

    fn bound(&self, name: &str) -> Option<ExpressionValue> {
        self.around.bindings?.binding(name).map(|value| value.0)
    }
}

/// Returns the SELECT results of a result with a single column.
fn one_column<'p>(
    answer: &'p OqlResult,
    query: &Union,
) -> Result<impl Iterator<Item = &'p SelectResult>, OqlError> {
    if answer.columns.as_ref().is_some_and(|columns| columns.len() != 1) {
        return Err(OqlError::new(
            place(query),
            "a query in an expression must return objects or one column, not several",
        ));
    }
    Ok(answer.parts.iter())
}

impl<'o, 'a> Evaluator<'o, 'a> {
    /// Runs a query. `most` is the number of rows that will be shown, if not all of them; of sorted rows, no more are stored.
    ///
    /// # Errors
    /// If a name in the query does not exist in the dump.
    pub fn run(&self, query: &Query, most: Option<usize>) -> Result<OqlResult, QueryError> {
        self.lookups.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.union(&query.tree, QueryContext { text: &query.text, bindings: None }, most)
            .and_then(|answer| self.settle(&answer).map(|()| answer))
            .map_err(|wrong| wrong.locate(&query.text))
    }

    /// Returns the error in which the evaluation of rows after [`Self::run`] ended, if any: lists that take too much memory
    /// or time.
    ///
    /// # Errors
    /// If there is one.
    pub fn check(&self, query: &Query) -> Result<(), QueryError> {
        self.kept.check().map_err(|wrong| wrong.locate(&query.text))
    }

    fn union(
        &self,
        union: &Union,
        around: QueryContext<'_>,
        most: Option<usize>,
    ) -> Result<OqlResult, OqlError> {
        let mut answer = OqlResult { columns: None, parts: Vec::new() };
        // The rows of several parts may be the same objects: their number is known only when all parts are computed.
        let most = most.filter(|_| union.selects.len() == 1);
        for (number, select) in union.selects.iter().enumerate() {
            let (columns, part) = self.select(select, around, most)?;
            if number == 0 {
                answer.columns = columns;
            } else if answer.columns.as_ref().map(Vec::len) != columns.as_ref().map(Vec::len) {
                return Err(OqlError::new(
                    select.at,
                    "all parts of a UNION must return objects, or the same number of columns",
                ));
            }
            match (answer.parts.last_mut(), part) {
                // Objects of several parts are one set, in address order.
                (
                    Some(SelectResult { rows: SelectRows::Set(all), items: None, .. }),
                    SelectResult { rows: SelectRows::Set(set), items: None, .. },
                ) if answer.columns.is_none() => {
                    *all |= set;
                }
                (_, part) => answer.parts.push(part),
            }
        }
        Ok(answer)
    }

    /// Returns the column names and the rows of a SELECT. Rows without columns are objects.
    fn select(
        &self,
        select: &Select,
        around: QueryContext<'_>,
        most: Option<usize>,
    ) -> Result<(Option<Vec<String>>, SelectResult), OqlError> {
        let plain = SelectResult::from_rows;
        let limit = select.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let shape = select.shape()?;
        let ask = SubqueryRunner::new(self, around);
        if let SelectSource::Expressions(items) = &select.from.source {
            return self.expression_rows(select, items, &ask);
        }
        let source = self.resolve_from(select, &ask)?;
        let (source, condition) = if select.is_retained {
            // The rows are the objects that the selected objects retain.
            (self.retained_objects(select, &source, &ask)?, None)
        } else {
            (source, select.condition.as_ref())
        };
        let classes = self.row_classes(&source);
        let names = NameScope::for_source(&source, &classes);
        let is_grouped =
            !select.group.is_empty() || select.items.iter().flatten().any(|item| has_aggregate(&item.node));
        if is_grouped {
            let RowShape::Columns(items) = shape else {
                return Err(OqlError::new(
                    select.at,
                    "a query with groups or aggregates must select columns, for example SELECT key, count(*)",
                ));
            };
            let table = source.table().cloned();
            let (rows, groups, codes) =
                self.grouped_rows((select, items, most), condition, &ask, &source, names)?;
            let result =
                SelectResult { items: Some(codes), groups: Some(groups), limit, table, ..plain(rows) };
            return Ok((Some(self::names(items)), result));
        }
        // Applied early if the first rows found are the ones requested.
        let is_listed =
            select.is_distinct && (source.table().is_some() || !matches!(shape, RowShape::Objects));
        let is_early = select.order.is_empty() && !is_listed && !matches!(shape, RowShape::Given);
        let mut resolver = Resolver::new(self, select, names, &ask);
        let mut items: Vec<Code> = (select.items.iter().flatten())
            .map(|item| resolver.code(&item.node))
            .collect::<Result<_, _>>()?;
        let order: Vec<Code> = (select.order.iter())
            .map(|(node, _)| resolver.code(select.resolve_alias(node)))
            .collect::<Result<_, _>>()?;
        let condition = condition.map(|node| resolver.condition(node)).transpose()?;
        if !resolver.aggregates.is_empty() {
            return Err(aggregates_in_where(select));
        }
        let found = self.matching(&source, condition.as_ref(), select.limit.filter(|_| is_early));
        // A selection from a table has the columns of the table.
        let mut columns = match shape {
            RowShape::Columns(items) => Some(self::names(items)),
            RowShape::Objects | RowShape::Given => None,
        };
        if let (RowShape::Objects, Some(table)) = (&shape, source.table()) {
            let alias = select.from.alias.as_deref().unwrap_or("value");
            columns = Some(table.columns.clone().unwrap_or_else(|| vec![alias.to_owned()]));
            items = (0..columns.as_ref().map_or(0, Vec::len)).map(Code::Column).collect();
        }
        let is_given = matches!(shape, RowShape::Given);
        let table = source.table().cloned();
        let rest = source.subset(found);
        if is_given && select.is_distinct && order.is_empty() {
            let mut objects = self.item_objects(&rest, items.first());
            if let Some(limit) = limit {
                objects = objects.iter().take(limit).collect();
            }
            return Ok((None, plain(SelectRows::Set(objects))));
        }
        let is_distinct = select.is_distinct && columns.is_some();
        // Rows that are still to be expanded or merged must not be truncated yet.
        let is_final = !is_distinct && !is_given;
        let cut = if is_final { limit.into_iter().chain(most).min() } else { None };
        let rows = self.cut(&rest, &order, select, cut)?;
        if is_distinct {
            let rows = self.distinct(select.at, &rest, &rows, &items, limit)?;
            return Ok((
                columns,
                SelectResult { items: Some(items), is_distinct, limit, table, ..plain(rows) },
            ));
        }
        let items = Some(items).filter(|_| columns.is_some() || is_given);
        // Rows already truncated are complete: those of a UNION may be added.
        let limit = limit.filter(|_| !is_early);
        let is_distinct = select.is_distinct;
        let result = SelectResult { items, is_objects: is_given, is_distinct, limit, table, ..plain(rows) };
        Ok((columns, result))
    }

    /// Returns the objects that the selected objects retain together.
    fn retained_objects(
        &self,
        select: &Select,
        source: &Objects,
        ask: &dyn SubqueryEvaluator,
    ) -> Result<Objects, OqlError> {
        if source.table().is_some() {
            let text = "AS RETAINED SET needs objects, but FROM returns values";
            return Err(OqlError::new(select.from.at, text));
        }
        let classes = self.row_classes(source);
        let mut resolver = Resolver::new(self, select, NameScope::for_source(source, &classes), ask);
        let condition = select.condition.as_ref().map(|node| resolver.condition(node)).transpose()?;
        if !resolver.aggregates.is_empty() {
            return Err(aggregates_in_where(select));
        }
        let found = self.matching(source, condition.as_ref(), None);
        Ok(Objects::Set(retained_set(self.dump.graph, &found)))
    }

    /// Returns the rows of a source, at most `most`; sorted if the query has an order.
    fn cut(
        &self,
        source: &Objects,
        order: &[Code],
        select: &Select,
        most: Option<usize>,
    ) -> Result<SelectRows, OqlError> {
        let set = match source {
            Objects::Set(set) | Objects::Rows(_, set) => set,
            // The source was narrowed to the rows found before.
            Objects::Classes(_) => return Ok(SelectRows::Set(RoaringBitmap::new())),
        };
        if order.is_empty() {
            return Ok(SelectRows::Set(set.clone()));
        }
        let downwards: Vec<bool> = select.order.iter().map(|(_, down)| *down).collect();
        let order = RowOrder { codes: order, downwards: &downwards, most, at: select.at };
        let all = usize::try_from(set.len()).unwrap_or(usize::MAX);
        Ok(SelectRows::List(self.sorted_rows(source, &order)?, all))
    }

    /// Returns the rows of a grouped query, which are numbers of groups; the groups; and the expressions that are shown for
    /// each group. At most `most` rows are shown.
    fn grouped_rows(
        &self,
        (select, items, most): (&Select, &[SelectItem], Option<usize>),
        condition: Option<&ExpressionNode>,
        ask: &SubqueryRunner<'_, '_, '_>,
        source: &Objects,
        names: NameScope<'_>,
    ) -> Result<(SelectRows, RowGroups, Vec<Code>), OqlError> {
        let keys: Vec<&ExpressionNode> = select.group.iter().map(|node| select.resolve_alias(node)).collect();
        let order: Vec<&ExpressionNode> =
            select.order.iter().map(|(node, _)| select.resolve_alias(node)).collect();
        // Compares words, ignoring white space and comments between them.
        let words =
            |node: &ExpressionNode| words(ask.around.text.get(node.start..node.end).unwrap_or_default());
        let texts: FxHashSet<Vec<&str>> = keys.iter().map(|node| words(node)).collect();
        let is_key = |node: &ExpressionNode| texts.contains(&words(node));
        for node in items.iter().map(|item| &item.node).chain(order.iter().copied()) {
            if let Some(wrong) = not_grouped(node, &is_key) {
                return Err(OqlError::new(
                    wrong.start,
                    "the value can differ within a group; add it to GROUP BY, or use count, sum, min, max or avg",
                ));
            }
        }
        let mut first = Resolver::new(self, select, names, ask);
        let condition = condition.map(|node| first.condition(node)).transpose()?;
        let key_codes: Vec<Code> = keys.iter().map(|node| first.code(node)).collect::<Result<_, _>>()?;
        if !first.aggregates.is_empty() {
            return Err(OqlError::new(
                select.at,
                "aggregates are allowed in SELECT and ORDER BY, not in WHERE or GROUP BY",
            ));
        }
        let mut second = Resolver::new(self, select, names, ask);
        let codes: Vec<Code> = items.iter().map(|item| second.code(&item.node)).collect::<Result<_, _>>()?;
        let order_codes: Vec<Code> = order.iter().map(|node| second.code(node)).collect::<Result<_, _>>()?;
        let groups = self.groups(select.at, source, condition.as_ref(), &key_codes, &second.aggregates)?;
        if order_codes.is_empty() {
            return Ok((SelectRows::Set((0..groups.len()).collect()), groups, codes));
        }
        let limit = select.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let downwards: Vec<bool> = select.order.iter().map(|(_, down)| *down).collect();
        let most = limit.into_iter().chain(most).min();
        let order = RowOrder { codes: &order_codes, downwards: &downwards, most, at: select.at };
        let table = source.table().map(std::convert::AsRef::as_ref);
        let rows = self.sorted_groups(&groups, table, &order)?;
        Ok((SelectRows::List(rows, groups.len() as usize), groups, codes))
    }

    /// Reserves memory for values that a query stores.
    pub(super) fn keep(&self, at: usize, bytes: u64) -> Result<(), OqlError> {
        // The lists of rules are short.
        if self.bound.is_some() || self.kept.take(self.dump.graph, bytes) {
            return Ok(());
        }
        Err(kept::too_much(at, "the rows of a nested query", self.kept.room(self.dump.graph)))
    }

    /// Returns the objects that are rows of the given SELECT results, or are contained in their values.
    fn objects_of_parts(&self, parts: &[SelectResult]) -> RoaringBitmap {
        let mut all = RoaringBitmap::new();
        for part in parts {
            match (&part.items, &part.rows) {
                (None, SelectRows::Set(set)) => match part.limit {
                    Some(limit) => all.extend(set.iter().take(limit)),
                    None => all |= set,
                },
                (None, SelectRows::List(list, _)) => {
                    all.extend(list.iter().copied().take(part.limit.unwrap_or(usize::MAX)));
                }
                (Some(items), SelectRows::Set(set)) if part.limit.is_none() && part.groups.is_none() => {
                    let source = match &part.table {
                        Some(table) => Objects::Rows(table.clone(), set.clone()),
                        None => Objects::Set(set.clone()),
                    };
                    for item in items {
                        all |= self.item_objects(&source, Some(item));
                    }
                }
                _ if part.is_objects => all.extend(part.objects(self).map(|object| object.0)),
                _ => {
                    let values = part.values(self).flat_map(<Box<[ExpressionValue]>>::into_iter);
                    all.extend(values.flat_map(|value| self.objects_of(value)).map(|object| object.0));
                }
            }
        }
        all
    }

    /// Adds a row to a table. If a value of the row is a list, adds one row for each element.
    fn flatten(&self, values: Box<[ExpressionValue]>, rows: &mut Vec<Box<[ExpressionValue]>>) {
        let is_list = ExpressionValue::is_listed;
        if !values.iter().any(is_list) {
            rows.push(values);
            return;
        }
        let mut made: Vec<Vec<ExpressionValue>> = vec![Vec::with_capacity(values.len())];
        for value in values {
            if !is_list(&value) {
                made.iter_mut().for_each(|row| row.push(value.clone()));
                continue;
            }
            let most = MAX_ROWS + 1;
            let items: Vec<ExpressionValue> =
                self.items_of(&value).into_iter().flatten().take(most).collect();
            let pairs = made.iter().flat_map(|row| items.iter().map(move |item| (row, item)));
            made = pairs
                .take(most)
                .map(|(row, item)| {
                    let mut row = row.clone();
                    row.push(item.clone());
                    row
                })
                .collect();
        }
        rows.extend(made.into_iter().map(Vec::into_boxed_slice));
    }

    /// Returns the objects in a value: the object itself, the objects in a list, or the object at an address.
    pub(super) fn objects_of(&self, value: ExpressionValue) -> Box<dyn Iterator<Item = ObjectIndex> + '_> {
        match value {
            ExpressionValue::Object(object) => Box::new(std::iter::once(object)),
            ExpressionValue::Whole(number) => Box::new(self.object_of_number(number).into_iter()),
            ExpressionValue::Objects(set) => Box::new(SetItems::new(set)),
            ExpressionValue::Many(values) => {
                let objects = (0..values.len()).filter_map(move |at| match values.get(at)? {
                    ExpressionValue::Object(object) => Some(*object),
                    _ => None,
                });
                Box::new(objects)
            }
            ExpressionValue::Slice(slice) => {
                let objects = self.slice_items(*slice);
                Box::new(objects.filter_map(|value| {
                    if let ExpressionValue::Object(object) = value { Some(object) } else { None }
                }))
            }
            ExpressionValue::List(list, of) => {
                Box::new(self.list(list, of).filter_map(|value| match value {
                    ExpressionValue::Object(object) => Some(object),
                    _ => None,
                }))
            }
            _ => Box::new(std::iter::empty()),
        }
    }
}

fn aggregates_in_where(select: &Select) -> OqlError {
    let text = "aggregates are allowed in SELECT and ORDER BY of a grouped query, not in WHERE";
    OqlError::new(select.at, text)
}

/// Splits the text of a part of a query into words.
fn words(text: &str) -> Vec<&str> {
    match lexer::tokens(text) {
        Ok(tokens) => tokens.iter().filter_map(|token| text.get(token.start..token.end)).collect(),
        Err(_) => vec![text],
    }
}

/// Returns distinct names of the columns, which are keys in JSON.
pub(super) fn names(items: &[SelectItem]) -> Vec<String> {
    let mut seen = FxHashSet::default();
    let mut next: FxHashMap<&str, u32> = FxHashMap::default();
    let mut names = Vec::new();
    for item in items {
        let number = next.entry(&item.name).or_insert(1);
        let mut name = item.name.clone();
        while !seen.insert(name.clone()) {
            *number += 1;
            name = format!("{} {number}", item.name);
        }
        names.push(name);
    }
    names
}
