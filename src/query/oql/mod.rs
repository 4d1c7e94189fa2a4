//! OQL: the query language of Eclipse MAT, over the graph.
//!
//! `lexer` and `parser` make a [`Query`] of a text. An [`Evaluator`] resolves its names against the dump (`resolve`) to
//! `code`, finds the rows with all cores (`scan`), groups and sorts them if the query says so (`run`, `group`), and
//! makes the cells of each row when it is asked for ([`Answer::rows`]). The reference is `docs/oql.md`.

mod code;
mod error;
mod evaluate;
mod group;
mod lexer;
mod names;
mod parser;
mod resolve;
mod run;
mod scan;
mod tree;
mod value;

use roaring::RoaringBitmap;

use self::evaluate::Row as Of;
use self::value::Value;

pub use error::QueryError;
pub use evaluate::Evaluator;

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
    /// Whether rows are what the items of the SELECT give for these objects.
    has_items: bool,
    /// Which SELECT of the query.
    select: usize,
    /// Rows at most.
    limit: Option<usize>,
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

/// An object that is a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRow {
    /// Object id.
    pub object: u64,
    /// The name of its class.
    pub class: Option<String>,
    /// A few words that tell it from others.
    pub label: Option<String>,
    /// What it takes itself.
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
    Object(u64, Option<String>, Option<String>),
    /// Some values: how many, and the first of them.
    List(u64, Vec<Cell>),
}

impl Answer {
    /// How many rows there are, if that is known before they are made.
    pub fn total(&self, query: &Query) -> Option<u64> {
        let count = |part: &Part| {
            let count = match &part.rows {
                Rows::Set(set) => set.len(),
                Rows::List(_, all) => *all as u64,
                Rows::Values(rows) => rows.len() as u64,
            };
            let flattens = query.tree.selects.get(part.select).is_some_and(|select| select.is_objects);
            let is_known = !part.has_items || !flattens;
            is_known.then(|| part.limit.map_or(count, |limit| count.min(limit as u64)))
        };
        self.parts.iter().map(count).sum()
    }

    /// The rows, made while they are taken.
    pub fn rows<'s>(
        &'s self,
        evaluator: &'s Evaluator<'_>,
        query: &'s Query,
    ) -> impl Iterator<Item = Row> + 's {
        self.parts.iter().flat_map(move |part| part.rows(evaluator, query))
    }
}

impl Part {
    fn rows<'s>(
        &'s self,
        evaluator: &'s Evaluator<'_>,
        query: &'s Query,
    ) -> Box<dyn Iterator<Item = Row> + 's> {
        let objects: Box<dyn Iterator<Item = u32>> = match &self.rows {
            Rows::Set(set) => Box::new(set.iter()),
            Rows::List(list, _) => Box::new(list.iter().copied()),
            Rows::Values(rows) => {
                return Box::new(
                    rows.iter()
                        .map(|row| Row::Cells(row.iter().map(|value| evaluator.cell(value)).collect())),
                );
            }
        };
        let most = self.limit.unwrap_or(usize::MAX);
        let select = query.tree.selects.get(self.select);
        let (Some(select), true) = (select, self.has_items) else {
            return Box::new(objects.map(|object| Row::Object(evaluator.object(object))).take(most));
        };
        let items = evaluator.items(select);
        if select.is_objects {
            let given = objects.flat_map(move |object| {
                let value =
                    items.first().map_or(Value::Null, |item| evaluator.value(item, &Of::new(object, &[])));
                evaluator.objects_of(value)
            });
            return Box::new(given.map(|object| Row::Object(evaluator.object(object))).take(most));
        }
        let cells = move |object| {
            let row = Of::new(object, &[]);
            Row::Cells(items.iter().map(|item| evaluator.cell(&evaluator.value(item, &row))).collect())
        };
        Box::new(objects.map(cells).take(most))
    }
}

impl Evaluator<'_> {
    fn object(&self, object: u32) -> ObjectRow {
        let tree = &self.graph.tree;
        ObjectRow {
            object: self.graph.objects.addresses.id_of(object).unwrap_or(0),
            class: self.class_name(object).map(str::to_owned),
            label: self.labels.label(object),
            shallow_bytes: tree.position(object).map(|at| tree.shallow_bytes(at)),
            retained_bytes: tree.reachable_position(object).map(|at| tree.retained_bytes(at)),
        }
    }

    fn cell(&self, value: &Value) -> Cell {
        match value {
            Value::List(list, of) => {
                let first = self.list(*list, *of).take(SHOWN).map(|value| self.plain(&value)).collect();
                let all = self.list(*list, *of).count() as u64;
                Cell::List(all, first)
            }
            value => self.plain(value),
        }
    }

    fn plain(&self, value: &Value) -> Cell {
        match value {
            Value::Null | Value::List(..) => Cell::Null,
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
