//! Running a query: which rows there are, and what is in them.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use rayon::prelude::*;
use roaring::RoaringBitmap;
use rustc_hash::FxHashSet;

use crate::query::preorder::parts;
use crate::query::retained::retained_set;

use super::code::{Code, Found};
use super::error::{QueryError, Wrong};
use super::evaluate::{Evaluator, Row};
use super::group::{has_aggregate, not_grouped};
use super::resolve::{Ask, Objects, Resolver};
use super::scan::PART;
use super::tree::{Expression, Item, Node, Select, Union};
use super::value::{Key, Value};
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

    /// An expression, or that of the column of this name.
    fn named<'s>(&'s self, node: &'s Node) -> &'s Node {
        let Expression::Name(name) = &node.expression else { return node };
        let mut items = self.items.iter().flatten();
        items.find(|item| item.name == *name).map_or(node, |item| &item.node)
    }
}

/// A row with what it is sorted by.
struct Sorted<T> {
    keys: Box<[Value]>,
    row: T,
}

fn sort<T: Send>(rows: &mut Vec<Sorted<T>>, order: &[(&Node, bool)], most: Option<usize>) {
    let compare = |a: &Sorted<T>, b: &Sorted<T>| {
        let keys = a.keys.iter().zip(&b.keys).zip(order);
        let orders = keys.map(|((a, b), (_, descending))| if *descending { b.order(a) } else { a.order(b) });
        orders.fold(Ordering::Equal, Ordering::then)
    };
    // Stable: what is equal stays in address order.
    rows.par_sort_by(compare);
    rows.truncate(most.unwrap_or(usize::MAX));
}

struct Asking<'r, 'a>(&'r Evaluator<'a>);

impl Ask for Asking<'_, '_> {
    fn objects(&self, query: &Union) -> Result<RoaringBitmap, Wrong> {
        let mut all = RoaringBitmap::new();
        for select in &query.selects {
            let found = self.0.found(select)?;
            if !found.values.is_empty() {
                return Err(Wrong::new(
                    select.at,
                    "this query is selected from, so it must give objects: SELECT * or SELECT OBJECTS",
                ));
            }
            all |= found.objects;
        }
        Ok(all)
    }

    fn found(&self, query: &Union) -> Result<Found, Wrong> {
        let mut all = Found::default();
        for select in &query.selects {
            let found = self.0.found(select)?;
            all.objects |= found.objects;
            all.values.extend(found.values);
        }
        Ok(all)
    }
}

/// Asks nothing: for expressions whose queries were answered before.
struct Nothing;

impl Ask for Nothing {
    fn objects(&self, _: &Union) -> Result<RoaringBitmap, Wrong> {
        Ok(RoaringBitmap::new())
    }
    fn found(&self, query: &Union) -> Result<Found, Wrong> {
        let at = query.selects.first().map_or(0, |select| select.at);
        Err(Wrong::new(at, "a query inside another stands behind FROM or in WHERE"))
    }
}

impl<'a> Evaluator<'a> {
    /// Runs a query. `most` is how many rows will be shown, if not all: of what is sorted no more are kept.
    ///
    /// # Errors
    /// If a name in the query means nothing in the dump.
    pub fn run(&self, query: &Query, most: Option<usize>) -> Result<Answer, QueryError> {
        self.union(&query.tree, &query.text, most).map_err(|wrong| wrong.locate(&query.text))
    }

    fn union(&self, union: &Union, text: &str, most: Option<usize>) -> Result<Answer, Wrong> {
        let mut answer = Answer { columns: None, parts: Vec::new() };
        for (number, select) in union.selects.iter().enumerate() {
            let columns = match select.shape()? {
                Shape::Columns(items) if !select.is_retained => Some(names(items)),
                _ => None,
            };
            if number == 0 {
                answer.columns = columns;
            } else if answer.columns.as_ref().map(Vec::len) != columns.as_ref().map(Vec::len) {
                return Err(Wrong::new(
                    select.at,
                    "all parts of a UNION must have the same number of columns, or all objects",
                ));
            }
            let part = self.select(select, text, most, number)?;
            match (answer.parts.last_mut(), part) {
                // Objects of several parts are one set, in address order.
                (
                    Some(Part { rows: Rows::Set(all), has_items: false, .. }),
                    Part { rows: Rows::Set(set), has_items: false, .. },
                ) if answer.columns.is_none() => {
                    *all |= set;
                }
                (_, part) => answer.parts.push(part),
            }
        }
        Ok(answer)
    }

    fn select(&self, select: &Select, text: &str, most: Option<usize>, number: usize) -> Result<Part, Wrong> {
        let set = |set| Part { rows: Rows::Set(set), has_items: false, select: number, limit: None };
        let limit = select.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        if select.is_retained {
            return Ok(set(retained_set(self.graph, &self.found(select)?.objects)));
        }
        let shape = select.shape()?;
        let is_grouped =
            !select.group.is_empty() || select.items.iter().flatten().any(|item| has_aggregate(&item.node));
        if is_grouped {
            return self.grouped(select, text, number);
        }
        let is_listed = select.is_distinct && !matches!(shape, Shape::Objects);
        let early =
            select.limit.filter(|_| select.order.is_empty() && !is_listed && !matches!(shape, Shape::Given));
        let (rows, order, items) = self.rows(select, early)?;
        if let (Shape::Given, true, true) = (&shape, select.is_distinct, select.order.is_empty()) {
            let mut objects = self.given(&rows, items.first());
            if let Some(limit) = limit {
                objects = objects.iter().take(limit).collect();
            }
            return Ok(set(objects));
        }
        let rows = if order.is_empty() {
            Rows::Set(rows)
        } else {
            let nodes: Vec<(&Node, bool)> = select.order.iter().map(|(node, down)| (node, *down)).collect();
            // What gives other rows, or fewer, may not be cut now.
            let is_final = !is_listed && !matches!(shape, Shape::Given);
            let cut = if is_final { limit.into_iter().chain(most).min() } else { None };
            let all = usize::try_from(rows.len()).unwrap_or(usize::MAX);
            Rows::List(self.sorted(&rows, &order, &nodes, cut), all)
        };
        let columns = matches!(shape, Shape::Columns(_));
        if is_listed && columns {
            return Ok(Part {
                rows: Rows::Values(self.distinct(&rows, &items, limit)),
                has_items: false,
                select: number,
                limit: None,
            });
        }
        let has_items = !matches!(shape, Shape::Objects);
        Ok(Part { rows, has_items, select: number, limit })
    }

    /// The objects that a SELECT is about, what they are sorted by, and its items.
    #[allow(clippy::type_complexity)]
    fn rows(
        &self,
        select: &Select,
        limit: Option<u64>,
    ) -> Result<(RoaringBitmap, Vec<Code<'a>>, Vec<Code<'a>>), Wrong> {
        let ask = Asking(self);
        let source = self.source(&select.from, &ask)?;
        let classes = self.row_classes(&source);
        let mut resolver = Resolver {
            evaluator: self,
            select,
            classes: Some(&classes),
            ask: &Nothing,
            aggregates: Vec::new(),
        };
        let items: Vec<Code<'a>> =
            select.items.iter().flatten().map(|item| resolver.code(&item.node)).collect::<Result<_, _>>()?;
        let order: Vec<Code<'a>> = (select.order.iter())
            .map(|(node, _)| resolver.code(select.named(node)))
            .collect::<Result<_, _>>()?;
        // Items are resolved again for each row that is shown: no query is in them. The condition is asked once, here.
        resolver.ask = &ask;
        let condition = select.condition.as_ref().map(|node| resolver.code(node)).transpose()?;
        if !resolver.aggregates.is_empty() {
            return Err(Wrong::new(
                select.at,
                "aggregates stand in SELECT and ORDER BY of a query that groups, not in WHERE",
            ));
        }
        Ok((self.matching(source, condition.as_ref(), limit), order, items))
    }

    fn sorted(
        &self,
        rows: &RoaringBitmap,
        order: &[Code<'a>],
        nodes: &[(&Node, bool)],
        most: Option<usize>,
    ) -> Vec<u32> {
        let source = Objects::Set(rows.clone());
        let part = |range| {
            let mut found = Vec::new();
            self.each_row(&source, range, true, |row| {
                let keys = order.iter().map(|code| self.sort_key(code, &row)).collect();
                found.push(Sorted { keys, row: row.object });
                ControlFlow::Continue(())
            });
            sort(&mut found, nodes, most);
            found
        };
        let all = parts(0..self.graph.objects.len(), PART);
        let found: Vec<Vec<Sorted<u32>>> = all.into_par_iter().map(part).collect();
        let mut found: Vec<Sorted<u32>> = found.into_iter().flatten().collect();
        sort(&mut found, nodes, most);
        found.into_iter().map(|sorted| sorted.row).collect()
    }

    /// What is sorted by: of an object what it says, if it says anything.
    fn sort_key(&self, code: &Code<'a>, row: &Row<'_, 'a>) -> Value {
        match self.value(code, row) {
            value @ Value::Object(_) => self.text(&value).map_or(value, |text| Value::Text(text.into())),
            value => value,
        }
    }

    fn distinct(&self, rows: &Rows, items: &[Code<'a>], limit: Option<usize>) -> Vec<Box<[Value]>> {
        let mut seen: FxHashSet<Box<[Key]>> = FxHashSet::default();
        let mut found = Vec::new();
        let objects: Box<dyn Iterator<Item = u32>> = match rows {
            Rows::Set(set) => Box::new(set.iter()),
            Rows::List(list, _) => Box::new(list.iter().copied()),
            Rows::Values(_) => Box::new(std::iter::empty()),
        };
        for object in objects {
            if limit.is_some_and(|limit| found.len() >= limit) {
                break;
            }
            let row = Row::new(object, &[]);
            let values: Box<[Value]> = items.iter().map(|code| self.value(code, &row)).collect();
            if seen.insert(values.iter().map(Value::key).collect()) {
                found.push(values);
            }
        }
        found
    }

    fn grouped(&self, select: &Select, text: &str, number: usize) -> Result<Part, Wrong> {
        let Shape::Columns(items) = select.shape()? else {
            return Err(Wrong::new(select.at, "a query that groups shows columns: SELECT key, count(*)"));
        };
        let keys: Vec<&Node> = select.group.iter().map(|node| select.named(node)).collect();
        let order: Vec<&Node> = select.order.iter().map(|(node, _)| select.named(node)).collect();
        let slice = |node: &Node| -> String {
            text.get(node.start..node.end)
                .unwrap_or_default()
                .chars()
                .filter(|c| !c.is_whitespace())
                .collect()
        };
        let texts: Vec<String> = keys.iter().map(|node| slice(node)).collect();
        let is_key = |node: &Node| texts.contains(&slice(node));
        for node in items.iter().map(|item| &item.node).chain(order.iter().copied()) {
            if let Some(wrong) = not_grouped(node, &is_key) {
                return Err(Wrong::new(
                    wrong.start,
                    "not the same for all rows of a group: put it in GROUP BY, or into count, sum, min, max or avg",
                ));
            }
        }
        let ask = Asking(self);
        let source = self.source(&select.from, &ask)?;
        let classes = self.row_classes(&source);
        let resolver =
            |classes| Resolver { evaluator: self, select, classes, ask: &ask, aggregates: Vec::new() };
        let mut first = resolver(Some(classes.as_slice()));
        let condition = select.condition.as_ref().map(|node| first.code(node)).transpose()?;
        let key_codes: Vec<Code<'a>> = keys.iter().map(|node| first.code(node)).collect::<Result<_, _>>()?;
        if !first.aggregates.is_empty() {
            return Err(Wrong::new(
                select.at,
                "aggregates stand in SELECT and ORDER BY, not in WHERE or GROUP BY",
            ));
        }
        let mut second = resolver(Some(classes.as_slice()));
        let codes: Vec<Code<'a>> =
            items.iter().map(|item| second.code(&item.node)).collect::<Result<_, _>>()?;
        let order_codes: Vec<Code<'a>> =
            order.iter().map(|node| second.code(node)).collect::<Result<_, _>>()?;
        let groups = self.groups(&source, condition.as_ref(), &key_codes, &second.aggregates);
        let limit = select.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let mut rows: Vec<Sorted<Box<[Value]>>> = groups
            .iter()
            .map(|group| {
                let row = Row::new(group.first, &group.aggregates);
                let values = |codes: &[Code<'a>]| codes.iter().map(|code| self.value(code, &row)).collect();
                Sorted {
                    keys: order_codes.iter().map(|code| self.sort_key(code, &row)).collect(),
                    row: values(&codes),
                }
            })
            .collect();
        let nodes: Vec<(&Node, bool)> = select.order.iter().map(|(node, down)| (node, *down)).collect();
        sort(&mut rows, &nodes, limit);
        let rows = rows.into_iter().map(|sorted| sorted.row).collect();
        Ok(Part { rows: Rows::Values(rows), has_items: false, select: number, limit: None })
    }

    /// What a SELECT inside another query gives.
    fn found(&self, select: &Select) -> Result<Found, Wrong> {
        let shape = select.shape()?;
        let is_grouped =
            !select.group.is_empty() || select.items.iter().flatten().any(|item| has_aggregate(&item.node));
        if is_grouped {
            return Err(Wrong::new(
                select.at,
                "a query inside another gives objects or one column, and does not group",
            ));
        }
        let early = select.limit.filter(|_| select.order.is_empty() && matches!(shape, Shape::Objects));
        let (mut rows, order, items) = self.rows(select, early)?;
        let limit = select.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        if let (Some(limit), false) = (limit, order.is_empty()) {
            let nodes: Vec<(&Node, bool)> = select.order.iter().map(|(node, down)| (node, *down)).collect();
            rows = self.sorted(&rows, &order, &nodes, Some(limit)).into_iter().collect();
        } else if let Some(limit) = limit {
            rows = rows.iter().take(limit).collect();
        }
        let mut found = Found::default();
        match (shape, items.as_slice()) {
            (Shape::Objects, _) => found.objects = rows,
            (Shape::Given, [item]) => found.objects = self.given(&rows, Some(item)),
            (Shape::Columns(_), [item]) => {
                for object in &rows {
                    match self.value(item, &Row::new(object, &[])) {
                        Value::Object(object) => {
                            found.objects.insert(object);
                        }
                        Value::Null => {}
                        list @ Value::List(..) => {
                            found.objects.extend(self.objects_of(list));
                        }
                        value => {
                            found.values.insert(value.key());
                        }
                    }
                }
            }
            _ => {
                return Err(Wrong::new(
                    select.at,
                    "a query inside another gives objects or one column, not several",
                ));
            }
        }
        let result = if select.is_retained {
            Found { objects: retained_set(self.graph, &found.objects), ..found }
        } else {
            found
        };
        Ok(result)
    }

    /// The objects that an expression gives for some objects.
    fn given(&self, rows: &RoaringBitmap, item: Option<&Code<'a>>) -> RoaringBitmap {
        let Some(item) = item else { return RoaringBitmap::new() };
        let source = Objects::Set(rows.clone());
        let part = |range| {
            let mut found = RoaringBitmap::new();
            self.each_row(&source, range, true, |row| {
                found.extend(self.objects_of(self.value(item, &row)));
                ControlFlow::Continue(())
            });
            found
        };
        let all = parts(0..self.graph.objects.len(), PART);
        all.into_par_iter().map(part).reduce(RoaringBitmap::new, |a, b| a | b)
    }

    /// The objects in a value: itself, those of a list, or the one at an address.
    pub(super) fn objects_of(&self, value: Value) -> Box<dyn Iterator<Item = u32> + '_> {
        match value {
            Value::Object(object) => Box::new(std::iter::once(object)),
            Value::List(list, of) => Box::new(self.list(list, of).filter_map(|value| match value {
                Value::Object(object) => Some(object),
                _ => None,
            })),
            Value::Whole(id) => {
                Box::new(self.graph.objects.addresses.index_of(id.cast_unsigned()).into_iter())
            }
            _ => Box::new(std::iter::empty()),
        }
    }

    /// The items of a SELECT, checked before.
    pub(super) fn items(&self, select: &Select) -> Vec<Code<'a>> {
        let mut resolver =
            Resolver { evaluator: self, select, classes: None, ask: &Nothing, aggregates: Vec::new() };
        let codes = select.items.iter().flatten().map(|item| resolver.code(&item.node));
        // What was checked before has no errors now.
        codes.filter_map(Result::ok).collect()
    }
}

/// The names of columns, each once: they are keys in JSON.
fn names(items: &[Item]) -> Vec<String> {
    let mut seen = FxHashSet::default();
    let mut names = Vec::new();
    for item in items {
        let mut name = item.name.clone();
        let mut number = 2u32;
        while !seen.insert(name.clone()) {
            name = format!("{} {number}", item.name);
            number += 1;
        }
        names.push(name);
    }
    names
}
