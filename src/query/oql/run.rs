//! Running a query: which rows there are, and what is in them.

use std::cell::RefCell;
use std::sync::Arc;

use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::dominators::retained::retained_set;
use hprof_index::graph::numbers::ObjectIndex;

use super::code::{Code, Found, Table};
use super::error::{QueryError, Wrong};
use super::evaluate::{Evaluator, Row};
use super::group::{has_aggregate, not_grouped};
use super::lexer;
use super::resolve::{Names, Resolver};
use super::selected::{Around, Ask, Objects};
use super::sort::{Sorted, sort};
use super::source::{MAX_ROWS, too_many};
use super::tree::{Expression, Item, Node, Select, Union};
use super::value::Value;
use super::{Answer, Part, Query, Rows};

/// What the rows of a SELECT are.
enum Shape<'q> {
    /// The objects themselves.
    Objects,
    /// The objects that an expression gives.
    Given,
    /// Values.
    Columns(&'q [Item]),
}

impl Select {
    fn shape(&self) -> Result<Shape<'_>, Wrong> {
        let Some(items) = &self.items else { return Ok(Shape::Objects) };
        match items.as_slice() {
            [item] if self.is_row(&item.node) => Ok(Shape::Objects),
            [_] if self.is_objects => Ok(Shape::Given),
            _ if self.is_objects => Err(Wrong::new(self.at, "SELECT OBJECTS takes one item")),
            items => Ok(Shape::Columns(items)),
        }
    }

    fn is_row(&self, node: &Node) -> bool {
        matches!(&node.expression, Expression::Name(name) if self.from.alias.as_ref() == Some(name))
    }

    /// An expression, or that of the column of this name, which may be in quotes.
    fn named<'s>(&'s self, node: &'s Node) -> &'s Node {
        let (Expression::Name(name) | Expression::Text(name)) = &node.expression else { return node };
        let mut items = self.items.iter().flatten();
        items.find(|item| item.name == *name).map_or(node, |item| &item.node)
    }
}

/// Answers the queries inside a query.
///
/// Each is asked once, however often its expression is resolved: for the column, the group, the order.
pub(super) struct Asking<'r, 'o, 'a> {
    evaluator: &'r Evaluator<'o, 'a>,
    around: Around<'r>,
    /// Answers, by where their queries start.
    found: RefCell<FxHashMap<usize, Arc<Found>>>,
    values: RefCell<FxHashMap<usize, Value>>,
}

impl<'r, 'o, 'a> Asking<'r, 'o, 'a> {
    pub(super) fn new(evaluator: &'r Evaluator<'o, 'a>, around: Around<'r>) -> Self {
        Self { evaluator, around, found: RefCell::default(), values: RefCell::default() }
    }

    fn find(&self, query: &Union) -> Result<Found, Wrong> {
        let answer = self.evaluator.union(query, self.around, None)?;
        let mut found = Found::default();
        if answer.columns.is_none() {
            found.objects = self.evaluator.objects_of_parts(&answer.parts);
            return Ok(found);
        }
        for row in one_column(&answer, query)?.flat_map(|part| part.values(self.evaluator)) {
            if let Some(value) = row.into_iter().next() {
                self.evaluator.find(&mut found, value);
            }
            if found.values.len() > MAX_ROWS {
                return Err(too_many(place(query)));
            }
        }
        Ok(found)
    }

    fn ask(&self, query: &Union) -> Result<Value, Wrong> {
        let answer = self.evaluator.union(query, self.around, None)?;
        let max = self.evaluator.bound.unwrap_or(MAX_ROWS);
        let most = max + 1;
        let mut values: Vec<Value> = if answer.columns.is_none() {
            let objects = self.evaluator.objects_of_parts(&answer.parts);
            objects.iter().take(most).map(ObjectIndex).map(Value::Object).collect()
        } else {
            let rows = one_column(&answer, query)?.flat_map(|part| part.values(self.evaluator));
            rows.filter_map(|row| row.into_iter().next()).take(most).collect()
        };
        if values.len() > max {
            return Err(too_many(place(query)));
        }
        Ok(match values.len() {
            0 => Value::Null,
            1 => values.pop().unwrap_or(Value::Null),
            _ => Value::Many(values.into()),
        })
    }
}

/// Where a query starts.
fn place(query: &Union) -> usize {
    query.selects.first().map_or(0, |select| select.at)
}

impl Ask for Asking<'_, '_, '_> {
    fn rows(&self, query: &Union) -> Result<Objects, Wrong> {
        let answer = self.evaluator.union(query, self.around, None)?;
        let Some(columns) = answer.columns else {
            return Ok(Objects::Set(self.evaluator.objects_of_parts(&answer.parts)));
        };
        let mut rows = Vec::new();
        for values in answer.parts.iter().flat_map(|part| part.values(self.evaluator)) {
            self.evaluator.flatten(values, &mut rows);
            if rows.len() > MAX_ROWS {
                return Err(too_many(place(query)));
            }
        }
        Ok(Table { columns: Some(columns), rows }.into())
    }

    fn found(&self, query: &Union) -> Result<Arc<Found>, Wrong> {
        if let Some(found) = self.found.borrow().get(&place(query)) {
            return Ok(found.clone());
        }
        let found = Arc::new(self.find(query)?);
        self.found.borrow_mut().insert(place(query), found.clone());
        Ok(found)
    }

    fn value(&self, query: &Union) -> Result<Value, Wrong> {
        if let Some(value) = self.values.borrow().get(&place(query)) {
            return Ok(value.clone());
        }
        let value = self.ask(query)?;
        self.values.borrow_mut().insert(place(query), value.clone());
        Ok(value)
    }

    fn bound(&self, name: &str) -> Option<Value> {
        self.around.bindings?.binding(name).map(|value| value.0)
    }
}

/// The parts of an answer that has one column.
fn one_column<'p>(answer: &'p Answer, query: &Union) -> Result<impl Iterator<Item = &'p Part>, Wrong> {
    if answer.columns.as_ref().is_some_and(|columns| columns.len() != 1) {
        return Err(Wrong::new(
            place(query),
            "a query inside an expression gives objects or one column, not several",
        ));
    }
    Ok(answer.parts.iter())
}

impl<'o, 'a> Evaluator<'o, 'a> {
    /// Runs a query. `most` is how many rows will be shown, if not all: of what is sorted no more are kept.
    ///
    /// # Errors
    /// If a name in the query means nothing in the dump.
    pub fn run(&self, query: &Query, most: Option<usize>) -> Result<Answer, QueryError> {
        self.union(&query.tree, Around { text: &query.text, bindings: None }, most)
            .map_err(|wrong| wrong.locate(&query.text))
    }

    fn union(&self, union: &Union, around: Around<'_>, most: Option<usize>) -> Result<Answer, Wrong> {
        let mut answer = Answer { columns: None, parts: Vec::new() };
        // The rows of several parts may be the same objects: how many there are is known when all are there.
        let most = most.filter(|_| union.selects.len() == 1);
        for (number, select) in union.selects.iter().enumerate() {
            let (columns, part) = self.select(select, around, most)?;
            if number == 0 {
                answer.columns = columns;
            } else if answer.columns.as_ref().map(Vec::len) != columns.as_ref().map(Vec::len) {
                return Err(Wrong::new(
                    select.at,
                    "all parts of a UNION must have the same number of columns, or all objects",
                ));
            }
            match (answer.parts.last_mut(), part) {
                // Objects of several parts are one set, in address order.
                (
                    Some(Part { rows: Rows::Set(all), items: None, .. }),
                    Part { rows: Rows::Set(set), items: None, .. },
                ) if answer.columns.is_none() => {
                    *all |= set;
                }
                (_, part) => answer.parts.push(part),
            }
        }
        Ok(answer)
    }

    /// The names of the columns, and the rows. Rows without columns are objects.
    fn select(
        &self,
        select: &Select,
        around: Around<'_>,
        most: Option<usize>,
    ) -> Result<(Option<Vec<String>>, Part), Wrong> {
        let plain = |rows| Part {
            rows,
            items: None,
            is_objects: false,
            is_distinct: false,
            limit: None,
            table: None,
        };
        let limit = select.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let shape = select.shape()?;
        let ask = Asking::new(self, around);
        let source = self.source(select, &ask)?;
        let (source, condition) = if select.is_retained {
            // The rows are what the objects retain that were found.
            (self.retained(select, &source, &ask)?, None)
        } else {
            (source, select.condition.as_ref())
        };
        let classes = self.row_classes(&source);
        let names = Names::of(&source, &classes);
        let is_grouped =
            !select.group.is_empty() || select.items.iter().flatten().any(|item| has_aggregate(&item.node));
        if is_grouped {
            let Shape::Columns(items) = shape else {
                return Err(Wrong::new(select.at, "a query that groups shows columns: SELECT key, count(*)"));
            };
            let rows = self.grouped(select, items, condition, &ask, &source, names)?;
            return Ok((Some(self::names(items)), plain(Rows::Values(rows))));
        }
        // Early if the first rows that are found are those that are wanted.
        let is_listed = select.is_distinct && (source.table().is_some() || !matches!(shape, Shape::Objects));
        let is_early = select.order.is_empty() && !is_listed && !matches!(shape, Shape::Given);
        let mut resolver = Resolver::new(self, select, names, &ask);
        let mut items: Vec<Code> = (select.items.iter().flatten())
            .map(|item| resolver.code(&item.node))
            .collect::<Result<_, _>>()?;
        let order: Vec<Code> = (select.order.iter())
            .map(|(node, _)| resolver.code(select.named(node)))
            .collect::<Result<_, _>>()?;
        let condition = condition.map(|node| resolver.condition(node)).transpose()?;
        if !resolver.aggregates.is_empty() {
            return Err(aggregates_in_where(select));
        }
        let found = self.matching(&source, condition.as_ref(), select.limit.filter(|_| is_early));
        // What is selected from a table has its columns.
        let mut columns = match shape {
            Shape::Columns(items) => Some(self::names(items)),
            Shape::Objects | Shape::Given => None,
        };
        if let (Shape::Objects, Some(table)) = (&shape, source.table()) {
            let alias = select.from.alias.as_deref().unwrap_or("value");
            columns = Some(table.columns.clone().unwrap_or_else(|| vec![alias.to_owned()]));
            items = (0..columns.as_ref().map_or(0, Vec::len)).map(Code::Column).collect();
        }
        let is_given = matches!(shape, Shape::Given);
        let table = source.table().cloned();
        let rest = source.only(found);
        if is_given && select.is_distinct && order.is_empty() {
            let mut objects = self.given(&rest, items.first());
            if let Some(limit) = limit {
                objects = objects.iter().take(limit).collect();
            }
            return Ok((None, plain(Rows::Set(objects))));
        }
        let is_distinct = select.is_distinct && columns.is_some();
        // What gives other rows, or fewer, may not be cut now.
        let is_final = !is_distinct && !is_given;
        let cut = if is_final { limit.into_iter().chain(most).min() } else { None };
        let rows = self.cut(&rest, &order, select, cut);
        if is_distinct {
            let rows = self.distinct(&rest, &rows, &items, limit);
            let items = Some(items);
            return Ok((columns, Part { rows, items, is_objects: false, is_distinct, limit, table }));
        }
        let items = Some(items).filter(|_| columns.is_some() || is_given);
        // Rows that were cut already are all there are: those of a UNION may join them.
        let limit = limit.filter(|_| !is_early);
        let is_distinct = select.is_distinct;
        Ok((columns, Part { rows, items, is_objects: is_given, is_distinct, limit, table }))
    }

    /// What the objects retain together for which the condition holds.
    fn retained(&self, select: &Select, source: &Objects, ask: &dyn Ask) -> Result<Objects, Wrong> {
        if source.table().is_some() {
            let text = "AS RETAINED SET needs objects, but the selection gives values";
            return Err(Wrong::new(select.from.at, text));
        }
        let classes = self.row_classes(source);
        let mut resolver = Resolver::new(self, select, Names::of(source, &classes), ask);
        let condition = select.condition.as_ref().map(|node| resolver.condition(node)).transpose()?;
        if !resolver.aggregates.is_empty() {
            return Err(aggregates_in_where(select));
        }
        let found = self.matching(source, condition.as_ref(), None);
        Ok(Objects::Set(retained_set(self.graph, &found)))
    }

    /// The rows of a source, sorted if they have to be; then no more than `most`.
    fn cut(&self, source: &Objects, order: &[Code], select: &Select, most: Option<usize>) -> Rows {
        let set = match source {
            Objects::Set(set) | Objects::Rows(_, set) => set,
            // It was narrowed to what was found before.
            Objects::Classes(_) => return Rows::Set(RoaringBitmap::new()),
        };
        if order.is_empty() {
            return Rows::Set(set.clone());
        }
        let downwards: Vec<bool> = select.order.iter().map(|(_, down)| *down).collect();
        let all = usize::try_from(set.len()).unwrap_or(usize::MAX);
        Rows::List(self.sorted(source, order, &downwards, most), all)
    }

    fn grouped(
        &self,
        select: &Select,
        items: &[Item],
        condition: Option<&Node>,
        ask: &Asking<'_, '_, '_>,
        source: &Objects,
        names: Names<'_>,
    ) -> Result<Vec<Box<[Value]>>, Wrong> {
        let keys: Vec<&Node> = select.group.iter().map(|node| select.named(node)).collect();
        let order: Vec<&Node> = select.order.iter().map(|(node, _)| select.named(node)).collect();
        // The same words, whatever is between them.
        let words = |node: &Node| words(ask.around.text.get(node.start..node.end).unwrap_or_default());
        let texts: FxHashSet<Vec<&str>> = keys.iter().map(|node| words(node)).collect();
        let is_key = |node: &Node| texts.contains(&words(node));
        for node in items.iter().map(|item| &item.node).chain(order.iter().copied()) {
            if let Some(wrong) = not_grouped(node, &is_key) {
                return Err(Wrong::new(
                    wrong.start,
                    "not the same for all rows of a group: add it to GROUP BY, or use count, sum, min, max or avg",
                ));
            }
        }
        let mut first = Resolver::new(self, select, names, ask);
        let condition = condition.map(|node| first.condition(node)).transpose()?;
        let key_codes: Vec<Code> = keys.iter().map(|node| first.code(node)).collect::<Result<_, _>>()?;
        if !first.aggregates.is_empty() {
            return Err(Wrong::new(
                select.at,
                "aggregates belong in SELECT and ORDER BY, not in WHERE or GROUP BY",
            ));
        }
        let mut second = Resolver::new(self, select, names, ask);
        let codes: Vec<Code> = items.iter().map(|item| second.code(&item.node)).collect::<Result<_, _>>()?;
        let order_codes: Vec<Code> = order.iter().map(|node| second.code(node)).collect::<Result<_, _>>()?;
        let groups = self.groups(source, condition.as_ref(), &key_codes, &second.aggregates);
        let limit = select.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let table = source.table().map(std::convert::AsRef::as_ref);
        let mut rows: Vec<Sorted<Box<[Value]>>> = groups
            .iter()
            .map(|group| {
                let row = Row::new(group.first, &group.aggregates, table);
                Sorted {
                    keys: order_codes.iter().map(|code| self.sort_key(code, &row)).collect(),
                    number: group.first,
                    row: codes.iter().map(|code| self.value(code, &row)).collect(),
                }
            })
            .collect();
        let downwards: Vec<bool> = select.order.iter().map(|(_, down)| *down).collect();
        sort(&mut rows, &downwards, limit);
        Ok(rows.into_iter().map(|sorted| sorted.row).collect())
    }

    /// The objects that parts of an answer are, or that are in their values.
    fn objects_of_parts(&self, parts: &[Part]) -> RoaringBitmap {
        let mut all = RoaringBitmap::new();
        for part in parts {
            match (&part.items, &part.rows) {
                (None, Rows::Set(set)) => match part.limit {
                    Some(limit) => all.extend(set.iter().take(limit)),
                    None => all |= set,
                },
                (None, Rows::List(list, _)) => {
                    all.extend(list.iter().copied().take(part.limit.unwrap_or(usize::MAX)));
                }
                (Some(items), Rows::Set(set)) if part.limit.is_none() => {
                    let source = match &part.table {
                        Some(table) => Objects::Rows(table.clone(), set.clone()),
                        None => Objects::Set(set.clone()),
                    };
                    for item in items {
                        all |= self.given(&source, Some(item));
                    }
                }
                _ if part.is_objects => all.extend(part.objects(self).map(|object| object.0)),
                _ => {
                    let values = part.values(self).flat_map(<Box<[Value]>>::into_iter);
                    all.extend(values.flat_map(|value| self.objects_of(value)).map(|object| object.0));
                }
            }
        }
        all
    }

    /// A row as one of a table: lists in it are a row for each element.
    fn flatten(&self, values: Box<[Value]>, rows: &mut Vec<Box<[Value]>>) {
        let is_list = |value: &Value| matches!(value, Value::List(..) | Value::Slice(_) | Value::Many(_));
        if !values.iter().any(is_list) {
            rows.push(values);
            return;
        }
        let mut made: Vec<Vec<Value>> = vec![Vec::with_capacity(values.len())];
        for value in values {
            if !is_list(&value) {
                made.iter_mut().for_each(|row| row.push(value.clone()));
                continue;
            }
            let most = MAX_ROWS + 1;
            let items: Vec<Value> = self.items_of(&value).into_iter().flatten().take(most).collect();
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

    /// The objects in a value: itself, those of a list, or the one at an address.
    pub(super) fn objects_of(&self, value: Value) -> Box<dyn Iterator<Item = ObjectIndex> + '_> {
        match value {
            Value::Object(object) => Box::new(std::iter::once(object)),
            Value::Whole(number) => Box::new(self.object_of_number(number).into_iter()),
            Value::Many(values) => {
                let objects = (0..values.len()).filter_map(move |at| match values.get(at)? {
                    Value::Object(object) => Some(*object),
                    _ => None,
                });
                Box::new(objects)
            }
            Value::Slice(slice) => {
                let objects = self.slice_items(*slice);
                Box::new(
                    objects.filter_map(
                        |value| if let Value::Object(object) = value { Some(object) } else { None },
                    ),
                )
            }
            Value::List(list, of) => Box::new(self.list(list, of).filter_map(|value| match value {
                Value::Object(object) => Some(object),
                _ => None,
            })),
            _ => Box::new(std::iter::empty()),
        }
    }
}

fn aggregates_in_where(select: &Select) -> Wrong {
    let text = "aggregates belong in SELECT and ORDER BY of a query that groups, not in WHERE";
    Wrong::new(select.at, text)
}

/// The words of a part of a query.
fn words(text: &str) -> Vec<&str> {
    match lexer::tokens(text) {
        Ok(tokens) => tokens.iter().filter_map(|token| text.get(token.start..token.end)).collect(),
        Err(_) => vec![text],
    }
}

/// The names of columns, each once: they are keys in JSON.
fn names(items: &[Item]) -> Vec<String> {
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
