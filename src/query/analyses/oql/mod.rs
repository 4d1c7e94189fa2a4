//! OQL: the query languages of Eclipse MAT, jhat and VisualVM, over the graph.
//!
//! `lexer` and `parser` convert a text to a [`Query`]. An [`Evaluator`] resolves its names against the dump (`source`,
//! `names`) to `code`, finds the rows with all cores (`scan`), groups and sorts them if requested (`run`, `group`,
//! `sort`), and computes the cells of each row on demand (`OqlResult::rows`). Expressions are evaluated in `evaluate`,
//! `names`, `methods` and `lists`; what jhat and VisualVM have beside MAT is in `script`. The reference is `docs/oql.md`.

mod bound;
mod builtins;
mod chains;
mod code;
mod error;
mod evaluate;
mod group;
mod kept;
mod lexer;
mod lists;
mod methods;
mod names;
mod parameters;
mod parser;
mod run;
mod scan;
mod script;
mod selected;
mod sort;
mod source;
mod texts;
mod tree;
mod value;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::storage::scratch::Array;
use hprof_values::ObjectId;
use std::sync::Arc;

use roaring::RoaringBitmap;

use hprof_model::objects::label::MAX_CHARS;

use self::code::{Code, ValueTable};
use self::evaluate::EvaluatedRow;
use self::group::RowGroups;
use self::value::ExpressionValue;

pub(crate) use bound::BoundExpression;
pub use error::QueryError;
pub use evaluate::Evaluator;
pub use parser::KEYWORDS;
pub(crate) use selected::{Bindings, BoundValue};

/// Maximum length of a query in bytes.
pub const MAX_LEN: usize = 1 << 20;
/// Maximum number of elements of a list shown in a cell.
const SHOWN: usize = 100;

/// A parsed query, which can be run by an [`Evaluator`].
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

/// Result of a query: rows that are objects or have columns.
#[derive(Debug)]
pub struct OqlResult {
    /// Column names; `None` if rows are objects.
    pub columns: Option<Vec<String>>,
    parts: Vec<SelectResult>,
}

/// Result of one SELECT.
#[derive(Debug)]
struct SelectResult {
    rows: SelectRows,
    /// Expressions that are shown for each row; `None` if the row itself is shown.
    items: Option<Vec<Code>>,
    /// `true` if the item returns objects, each of which becomes a row.
    is_objects: bool,
    /// `true` if an object becomes a row only once.
    is_distinct: bool,
    /// Maximum number of rows.
    limit: Option<usize>,
    /// Table to which the rows belong, if they are not objects.
    table: Option<Arc<ValueTable>>,
    /// Groups, if the rows are numbers of groups.
    groups: Option<RowGroups>,
}

/// Rows of a [`SelectResult`].
#[derive(Debug)]
enum SelectRows {
    /// Object indices or row numbers, in ascending order.
    Set(RoaringBitmap),
    /// Object indices or row numbers in this order, and the total number of rows, including rows that are not shown.
    List(Array<u32>, usize),
}

/// A row of a query's result.
#[derive(Debug, Clone, PartialEq)]
pub enum OqlRow {
    /// The row is an object.
    Object(ObjectRow),
    /// One cell per column.
    Cells(Vec<OqlValue>),
}

/// Origin of the values of a row.
enum Origin<'s> {
    /// An object that is the row.
    Object(ObjectIndex),
    /// A row of a SELECT's source, by number.
    Number(&'s SelectResult, u32),
}

/// A row that is an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRow {
    /// Object ID.
    pub object: ObjectId,
    /// Name of the class.
    pub class: Option<String>,
    /// Short text that identifies the object.
    pub label: Option<String>,
    /// Shallow size.
    pub shallow_bytes: Option<u64>,
    /// Retained size; `None` if the object is unreachable.
    pub retained_bytes: Option<u64>,
}

/// A value in a cell of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum OqlValue {
    /// Null.
    Null,
    /// A boolean.
    Boolean(bool),
    /// A whole number.
    Whole(i64),
    /// A `float`.
    Float(f32),
    /// A `double`.
    Double(f64),
    /// A text or a character.
    Text(String),
    /// An object: ID, class, label.
    Object(ObjectId, Option<String>, Option<String>),
    /// A key and its value.
    Entry(Box<(OqlValue, OqlValue)>),
    /// A list: its length, and the first values.
    List(u64, Vec<OqlValue>),
}

impl OqlResult {
    /// Returns the number of rows, if it is known before they are computed.
    pub fn total(&self) -> Option<u64> {
        let count = |part: &SelectResult| {
            let count = match &part.rows {
                SelectRows::Set(set) => set.len(),
                SelectRows::List(_, all) => *all as u64,
            };
            (!part.is_objects).then(|| part.limit.map_or(count, |limit| count.min(limit as u64)))
        };
        if self.columns.is_none() && self.parts.len() > 1 {
            // An object found by several SELECTs is one row.
            let has_objects = |part: &SelectResult| part.items.is_none();
            let objects = self.parts.iter().flat_map(|part| part.numbers().take(part.max_rows()));
            return self.parts.iter().all(has_objects).then(|| objects.collect::<RoaringBitmap>().len());
        }
        self.parts.iter().map(count).sum()
    }

    /// Returns the rows of the result, computed lazily.
    pub fn rows<'s>(&'s self, evaluator: &'s Evaluator<'_, '_>) -> impl Iterator<Item = OqlRow> + 's {
        self.rows_from(evaluator, 0)
    }

    /// Returns the rows after the first `first` rows, which are not computed. The rows are computed lazily.
    pub fn rows_from<'s>(
        &'s self,
        evaluator: &'s Evaluator<'_, '_>,
        first: usize,
    ) -> impl Iterator<Item = OqlRow> + 's {
        let is_union = self.columns.is_none() && self.parts.len() > 1;
        let mut seen = RoaringBitmap::new();
        let origins = self.parts.iter().flat_map(move |part| part.origins(evaluator));
        // Duplicates of earlier rows are not computed.
        let origins = origins.filter(move |origin| match origin {
            Origin::Object(object) => !is_union || seen.insert(object.0),
            Origin::Number(..) => true,
        });
        let cells = |values: &[ExpressionValue]| values.iter().map(|value| evaluator.cell(value)).collect();
        origins.skip(first).map(move |origin| match origin {
            Origin::Object(object) => OqlRow::Object(evaluator.object(object)),
            Origin::Number(part, number) => OqlRow::Cells(cells(&part.values_of(evaluator, number))),
        })
    }
}

impl SelectResult {
    /// Creates a result of rows that are objects.
    fn from_rows(rows: SelectRows) -> Self {
        Self {
            rows,
            items: None,
            is_objects: false,
            is_distinct: false,
            limit: None,
            table: None,
            groups: None,
        }
    }

    /// Returns the maximum number of rows.
    fn max_rows(&self) -> usize {
        self.limit.unwrap_or(usize::MAX)
    }

    fn origins<'s>(&'s self, evaluator: &'s Evaluator<'_, '_>) -> Box<dyn Iterator<Item = Origin<'s>> + 's> {
        match &self.rows {
            _ if self.is_objects => Box::new(self.objects(evaluator).map(Origin::Object)),
            _ if self.items.is_none() => Box::new(self.objects(evaluator).map(Origin::Object)),
            _ => Box::new(self.numbers().map(|number| Origin::Number(self, number)).take(self.max_rows())),
        }
    }

    /// Returns the rows by number.
    fn numbers(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match &self.rows {
            SelectRows::Set(set) => Box::new(set.iter()),
            SelectRows::List(list, _) => Box::new(list.iter().copied()),
        }
    }

    /// Returns the objects that are rows, or that the only item returns for each row.
    fn objects<'s>(&'s self, evaluator: &'s Evaluator<'_, '_>) -> Box<dyn Iterator<Item = ObjectIndex> + 's> {
        let Some(items) = &self.items else {
            return Box::new(self.numbers().map(ObjectIndex).take(self.max_rows()));
        };
        let given = self.numbers().flat_map(move |number| {
            let row = EvaluatedRow::new(number, &[], self.table.as_deref());
            let values = items.iter().map(|item| evaluator.value(item, &row)).collect::<Vec<_>>();
            let given = values.into_iter().flat_map(|value| evaluator.objects_of(value));
            given.filter(|object| evaluator.is_meant(*object))
        });
        let mut seen = RoaringBitmap::new();
        Box::new(given.filter(move |object| !self.is_distinct || seen.insert(object.0)).take(self.max_rows()))
    }

    /// Returns the values that are shown for each row.
    fn values<'s>(
        &'s self,
        evaluator: &'s Evaluator<'_, '_>,
    ) -> Box<dyn Iterator<Item = Box<[ExpressionValue]>> + 's> {
        let rows = self.numbers().map(move |number| self.values_of(evaluator, number));
        Box::new(rows.take(self.max_rows()))
    }

    /// Returns the values that are shown for a row of the source.
    fn values_of(&self, evaluator: &Evaluator<'_, '_>, number: u32) -> Box<[ExpressionValue]> {
        let (number, aggregates) =
            self.groups.as_ref().map_or((number, Vec::new()), |groups| groups.get(number));
        let row = EvaluatedRow::new(number, &aggregates, self.table.as_deref());
        self.items.iter().flatten().map(|item| evaluator.value(item, &row)).collect()
    }
}

impl Evaluator<'_, '_> {
    fn object(&self, object: ObjectIndex) -> ObjectRow {
        let tree = &self.dump.graph.tree;
        ObjectRow {
            object: self.dump.graph.objects.addresses.id_of(object).unwrap_or_default(),
            class: self.class_name(object).map(str::to_owned),
            label: self.meanings.short(object, MAX_CHARS).filter(|_| !self.is_hidden(object)),
            shallow_bytes: tree.position(object).map(|at| tree.shallow_bytes(at)),
            retained_bytes: tree.reachable_position(object).map(|at| tree.retained_bytes(at)),
        }
    }

    fn cell(&self, value: &ExpressionValue) -> OqlValue {
        match value {
            value if value.is_listed() => {
                let items = self.items_of(value).into_iter().flatten();
                // Lists of lists, such as paths.
                let cell = |value: ExpressionValue| match &value {
                    ExpressionValue::Many(_) | ExpressionValue::Objects(_) => {
                        let items = self.items_of(&value).into_iter().flatten();
                        let first = items.take(SHOWN).map(|value| self.plain(&value)).collect();
                        OqlValue::List(self.count(&value).unwrap_or(0), first)
                    }
                    value => self.plain(value),
                };
                OqlValue::List(self.count(value).unwrap_or(0), items.take(SHOWN).map(cell).collect())
            }
            value => self.plain(value),
        }
    }

    fn plain(&self, value: &ExpressionValue) -> OqlValue {
        match value {
            ExpressionValue::Null
            | ExpressionValue::List(..)
            | ExpressionValue::Slice(_)
            | ExpressionValue::Many(_)
            | ExpressionValue::Objects(_) => OqlValue::Null,
            ExpressionValue::Record(record) => {
                let text = |name: &str| OqlValue::Text(name.to_owned());
                let values = record.names.iter().zip(&record.values).take(SHOWN);
                let entries =
                    values.map(|(name, value)| OqlValue::Entry(Box::new((text(name), self.plain(value)))));
                OqlValue::List(record.names.len() as u64, entries.collect())
            }
            ExpressionValue::Snapshot => OqlValue::Text("${snapshot}".to_owned()),
            ExpressionValue::SnapshotInfo | ExpressionValue::Field(..) | ExpressionValue::Static(..) => {
                self.text(value).map_or(OqlValue::Null, OqlValue::Text)
            }
            ExpressionValue::Entry(entry) => {
                OqlValue::Entry(Box::new((self.plain(&entry.0), self.plain(&entry.1))))
            }
            ExpressionValue::Boolean(value) => OqlValue::Boolean(*value),
            ExpressionValue::Whole(value) => OqlValue::Whole(*value),
            ExpressionValue::Float(value) => OqlValue::Float(*value),
            ExpressionValue::Double(value) => OqlValue::Double(*value),
            ExpressionValue::Char(unit) => OqlValue::Text(evaluate::character(*unit)),
            ExpressionValue::Text(text) => OqlValue::Text(text.to_string()),
            ExpressionValue::Missing(id) => OqlValue::Object(*id, None, None),
            ExpressionValue::Object(object) => {
                let row = self.object(*object);
                OqlValue::Object(row.object, row.class, row.label)
            }
        }
    }
}
