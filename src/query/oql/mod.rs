//! OQL: the query language of Eclipse MAT, over the graph.
//!
//! `lexer` and `parser` make a [`Query`] of a text. An [`Evaluator`] resolves its names against the dump (`source`,
//! `resolve`) to `code`, finds the rows with all cores (`scan`), groups and sorts them if the query says so (`run`,
//! `group`, `sort`), and makes the cells of each row when it is asked for ([`Answer::rows`]). What expressions are is
//! found in `evaluate`, `attributes`, `methods` and `lists`. The reference is `docs/oql.md`.

mod attributes;
mod bound;
mod chains;
mod code;
mod error;
mod evaluate;
mod group;
mod lexer;
mod lists;
mod methods;
mod names;
mod parser;
mod resolve;
mod run;
mod scan;
mod selected;
mod sort;
mod source;
mod stacks;
mod tree;
mod value;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_parser::ObjectId;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::objects::label::MAX_CHARS;

use self::code::{Code, Table};
use self::evaluate::Row as Of;
use self::value::Value;

pub(crate) use bound::BoundExpression;
pub use error::QueryError;
pub use evaluate::Evaluator;
pub(crate) use selected::{Bindings, BoundValue};

/// Bytes of a query.
pub const MAX_LEN: usize = 1 << 20;
/// Elements of a list that are shown in a cell.
const SHOWN: usize = 100;

/// A query that was parsed.
#[derive(Debug, Clone)]
pub struct Query {
    text: String,
    tree: tree::Union,
}

impl std::str::FromStr for Query {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        let tree = parser::parse(text).map_err(|wrong| wrong.locate(text))?;
        Ok(Self { text: text.to_owned(), tree })
    }
}

/// What a query found.
#[derive(Debug)]
pub struct Answer {
    /// The names of the columns; `None` if rows are objects.
    pub columns: Option<Vec<String>>,
    parts: Vec<Part>,
}

/// What one SELECT found.
#[derive(Debug)]
struct Part {
    rows: Rows,
    /// What is shown of each row; `None` if it is the row itself.
    items: Option<Vec<Code>>,
    /// `true` if what the item gives are objects, and each of them is a row.
    is_objects: bool,
    /// `true` if each object is a row once.
    is_distinct: bool,
    /// Rows at most.
    limit: Option<usize>,
    /// The table that rows are of, if they are no objects.
    table: Option<Arc<Table>>,
}

#[derive(Debug)]
enum Rows {
    /// A row each, in address order.
    Set(RoaringBitmap),
    /// A row each, in this order; and how many there are with those that will not be shown.
    List(Vec<u32>, usize),
    /// Rows that are made already.
    Values(Vec<Box<[Value]>>),
}

/// A row.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// An object.
    Object(ObjectRow),
    /// A cell for each column.
    Cells(Vec<Cell>),
}

/// What a row is made of.
enum Origin<'s> {
    /// The object that is the row.
    Object(ObjectIndex),
    /// What a SELECT shows of a row of its source.
    Number(&'s Part, u32),
    Values(&'s [Value]),
}

/// An object that is a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRow {
    /// Object ID.
    pub object: ObjectId,
    /// The name of its class.
    pub class: Option<String>,
    /// A few words that tell it from others.
    pub label: Option<String>,
    /// Shallow size.
    pub shallow_bytes: Option<u64>,
    /// What it retains; `None` if no root leads to it.
    pub retained_bytes: Option<u64>,
}

/// A value of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Null.
    Null,
    /// A truth value.
    Boolean(bool),
    /// A whole number.
    Whole(i64),
    /// A `float`.
    Float(f32),
    /// A `double`.
    Double(f64),
    /// A text or a character.
    Text(String),
    /// An object: id, class, label.
    Object(ObjectId, Option<String>, Option<String>),
    /// A key and its value.
    Entry(Box<(Cell, Cell)>),
    /// Some values: how many, and the first of them.
    List(u64, Vec<Cell>),
}

impl Answer {
    /// How many rows there are, if that is known before they are made.
    pub fn total(&self) -> Option<u64> {
        let count = |part: &Part| {
            let count = match &part.rows {
                Rows::Set(set) => set.len(),
                Rows::List(_, all) => *all as u64,
                Rows::Values(rows) => rows.len() as u64,
            };
            (!part.is_objects).then(|| part.limit.map_or(count, |limit| count.min(limit as u64)))
        };
        if self.columns.is_none() && self.parts.len() > 1 {
            // An object that several parts have is one row.
            let has_objects = |part: &Part| part.items.is_none() && !matches!(part.rows, Rows::Values(_));
            let objects = self.parts.iter().flat_map(|part| part.numbers().take(part.most()));
            return self.parts.iter().all(has_objects).then(|| objects.collect::<RoaringBitmap>().len());
        }
        self.parts.iter().map(count).sum()
    }

    /// The rows, made while they are taken.
    pub fn rows<'s>(&'s self, evaluator: &'s Evaluator<'_, '_>) -> impl Iterator<Item = Row> + 's {
        self.rows_from(evaluator, 0)
    }

    /// As [`Answer::rows`], without the first so many, which are not made.
    pub fn rows_from<'s>(
        &'s self,
        evaluator: &'s Evaluator<'_, '_>,
        first: usize,
    ) -> impl Iterator<Item = Row> + 's {
        let is_union = self.columns.is_none() && self.parts.len() > 1;
        let mut seen = RoaringBitmap::new();
        let origins = self.parts.iter().flat_map(move |part| part.origins(evaluator));
        // Those that are there already are not made.
        let origins = origins.filter(move |origin| match origin {
            Origin::Object(object) => !is_union || seen.insert(object.0),
            Origin::Number(..) | Origin::Values(_) => true,
        });
        let cells = |values: &[Value]| values.iter().map(|value| evaluator.cell(value)).collect();
        origins.skip(first).map(move |origin| match origin {
            Origin::Object(object) => Row::Object(evaluator.object(object)),
            Origin::Number(part, number) => Row::Cells(cells(&part.values_of(evaluator, number))),
            Origin::Values(values) => Row::Cells(cells(values)),
        })
    }
}

impl Part {
    /// Rows at most.
    fn most(&self) -> usize {
        self.limit.unwrap_or(usize::MAX)
    }

    fn origins<'s>(&'s self, evaluator: &'s Evaluator<'_, '_>) -> Box<dyn Iterator<Item = Origin<'s>> + 's> {
        match &self.rows {
            _ if self.is_objects => Box::new(self.objects(evaluator).map(Origin::Object)),
            Rows::Values(rows) => Box::new(rows.iter().map(|row| Origin::Values(row))),
            _ if self.items.is_none() => Box::new(self.objects(evaluator).map(Origin::Object)),
            _ => Box::new(self.numbers().map(|number| Origin::Number(self, number)).take(self.most())),
        }
    }

    /// The rows by number.
    fn numbers(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match &self.rows {
            Rows::Set(set) => Box::new(set.iter()),
            Rows::List(list, _) => Box::new(list.iter().copied()),
            Rows::Values(_) => Box::new(std::iter::empty()),
        }
    }

    /// The objects that are rows, or that the item gives for each.
    fn objects<'s>(&'s self, evaluator: &'s Evaluator<'_, '_>) -> Box<dyn Iterator<Item = ObjectIndex> + 's> {
        let Some(items) = &self.items else {
            return Box::new(self.numbers().map(ObjectIndex).take(self.most()));
        };
        let given = self.numbers().flat_map(move |number| {
            let row = Of::new(number, &[], self.table.as_deref());
            let values = items.iter().map(|item| evaluator.value(item, &row)).collect::<Vec<_>>();
            let given = values.into_iter().flat_map(|value| evaluator.objects_of(value));
            given.filter(|object| evaluator.is_meant(*object))
        });
        let mut seen = RoaringBitmap::new();
        Box::new(given.filter(move |object| !self.is_distinct || seen.insert(object.0)).take(self.most()))
    }

    /// The values that are shown of each row.
    fn values<'s>(&'s self, evaluator: &'s Evaluator<'_, '_>) -> Box<dyn Iterator<Item = Box<[Value]>> + 's> {
        if let Rows::Values(rows) = &self.rows {
            return Box::new(rows.iter().cloned());
        }
        let rows = self.numbers().map(move |number| self.values_of(evaluator, number));
        Box::new(rows.take(self.most()))
    }

    /// The values that are shown of a row of the source.
    fn values_of(&self, evaluator: &Evaluator<'_, '_>, number: u32) -> Box<[Value]> {
        let row = Of::new(number, &[], self.table.as_deref());
        self.items.iter().flatten().map(|item| evaluator.value(item, &row)).collect()
    }
}

impl Evaluator<'_, '_> {
    fn object(&self, object: ObjectIndex) -> ObjectRow {
        let tree = &self.graph.tree;
        ObjectRow {
            object: self.graph.objects.addresses.id_of(object).unwrap_or_default(),
            class: self.class_name(object).map(str::to_owned),
            label: self.meanings.short(object, MAX_CHARS),
            shallow_bytes: tree.position(object).map(|at| tree.shallow_bytes(at)),
            retained_bytes: tree.reachable_position(object).map(|at| tree.retained_bytes(at)),
        }
    }

    fn cell(&self, value: &Value) -> Cell {
        match value {
            Value::List(..) | Value::Slice(_) | Value::Many(_) => {
                let items = self.items_of(value).into_iter().flatten();
                let first = items.take(SHOWN).map(|value| self.plain(&value)).collect();
                Cell::List(self.count(value).unwrap_or(0), first)
            }
            value => self.plain(value),
        }
    }

    fn plain(&self, value: &Value) -> Cell {
        match value {
            Value::Null | Value::List(..) | Value::Slice(_) | Value::Many(_) => Cell::Null,
            Value::Snapshot => Cell::Text("${snapshot}".to_owned()),
            Value::SnapshotInfo | Value::Field(..) | Value::Static(..) => {
                self.text(value).map_or(Cell::Null, Cell::Text)
            }
            Value::Entry(entry) => Cell::Entry(Box::new((self.plain(&entry.0), self.plain(&entry.1)))),
            Value::Boolean(value) => Cell::Boolean(*value),
            Value::Whole(value) => Cell::Whole(*value),
            Value::Float(value) => Cell::Float(*value),
            Value::Double(value) => Cell::Double(*value),
            Value::Char(unit) => Cell::Text(evaluate::character(*unit)),
            Value::Text(text) => Cell::Text(text.to_string()),
            Value::Missing(id) => Cell::Object(*id, None, None),
            Value::Object(object) => {
                let row = self.object(*object);
                Cell::Object(row.object, row.class, row.label)
            }
        }
    }
}
