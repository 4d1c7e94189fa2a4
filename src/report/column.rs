//! Columns: the single declaration of a result, from which all formats are made.
//!
//! A command declares its columns once, in the order of JSON and CSV: key, type, meaning and value of each. A table lists the
//! keys that it shows, in its order, with title and appearance. Tables, CSV, JSON and the reference in `docs/json-schema.md`
//! are generated from the same columns, so they cannot disagree.

use std::borrow::Cow;

pub use hprof_query::dictionary::{ColumnKey, ValueKind};

use super::escape;
use super::ink::Ink;
use super::number::group_digits;
pub use super::table_column::{Align, CellTarget, Fit, TableColumn};
use super::table_column::{GetBranch, MakeCell};
use super::tree::Branch;
use super::value::{Value, list};

/// A declared key of JSON, also the title in CSV.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonField {
    /// Key: a name of the dictionary. A dot nests: `total.rows`.
    pub key: ColumnKey,
    /// Fields of a record, or of each record of a list; empty if the dump determines them.
    pub fields: Vec<JsonField>,
    /// Condition under which it is `null`, if it can be.
    pub null: Option<&'static str>,
}

impl JsonField {
    /// Creates a field that is never `null`.
    pub fn new(key: impl Into<ColumnKey>) -> Self {
        Self::with_fields(key, Vec::new())
    }

    /// Creates a record, or a list of records, with these fields.
    pub fn with_fields(key: impl Into<ColumnKey>, fields: Vec<Self>) -> Self {
        Self { key: key.into(), fields, null: None }
    }

    /// Returns the fields of a record; empty if the dump determines them.
    pub(super) fn record(&self) -> Option<&[Self]> {
        (self.key.kind == ValueKind::Record).then_some(&self.fields)
    }

    /// Marks the field as `null` under a condition.
    pub fn or_null(self, when: &'static str) -> Self {
        Self { null: Some(when), ..self }
    }
}

type MakeValue<'c, R> = Box<dyn for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c>;

/// A column of rows `R`.
pub struct Column<'c, R> {
    declaration: Declaration,
    making: Making<'c, R>,
}

/// Properties of a column that do not depend on its rows.
#[derive(Debug)]
pub(super) struct Declaration {
    /// `None` for a column that only tables have.
    field: Option<JsonField>,
    pub(super) header: Header,
    /// `true` if tables show the column.
    is_shown: bool,
    /// `true` if CSV has another value.
    has_csv: bool,
    /// `true` if its cells are drawn with characters.
    pub(super) is_drawn: bool,
    /// `true` if its cells begin with the lines of a tree.
    pub(super) is_tree: bool,
}

/// Functions that compute the column of a row.
struct Making<'c, R> {
    value: MakeValue<'c, R>,
    csv: Option<MakeValue<'c, R>>,
    cell: Option<MakeCell<'c, R, String>>,
    branch: Option<GetBranch<'c, R>>,
    target: Option<MakeCell<'c, R, Option<CellTarget>>>,
}

/// Title and appearance of a column in a table.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) title: Cow<'static, str>,
    pub(super) align: Align,
    pub(super) fit: Fit,
    pub(super) ink: Ink,
}

impl Header {
    pub(super) fn new(title: impl Into<Cow<'static, str>>, align: Align, fit: Fit) -> Self {
        Self { title: escaped(title.into()), align, fit, ink: Ink::Plain }
    }
}

fn escaped(title: Cow<'static, str>) -> Cow<'static, str> {
    match title {
        Cow::Borrowed(title) => escape::text(title),
        Cow::Owned(title) => Cow::Owned(escape::text(&title).into_owned()),
    }
}

impl Declaration {
    /// Creates a column of JSON and CSV.
    fn new(field: JsonField) -> Self {
        let align = match field.key.kind {
            ValueKind::Integer | ValueKind::Signed | ValueKind::Float => Align::Right,
            _ => Align::Left,
        };
        let mut header = Header::new("", align, Fit::Whole);
        if field.key.text.ends_with("retained_bytes") {
            header.ink = Ink::Bold;
        }
        Self { field: Some(field), header, is_shown: false, has_csv: false, is_drawn: false, is_tree: false }
    }

    /// Creates a column of tables only.
    fn table(title: Cow<'static, str>, align: Align) -> Self {
        let header = Header::new(title, align, Fit::Whole);
        Self { field: None, header, is_shown: true, has_csv: false, is_drawn: false, is_tree: false }
    }

    fn show(&mut self, title: Cow<'static, str>) {
        self.header.title = escaped(title);
        self.is_shown = true;
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.field.as_ref().map(|field| field.key.text.as_ref())
    }

    /// Returns the fields of the record that have a CSV cell each; `None` if there is one cell.
    pub(super) fn csv_record(&self) -> Option<&[JsonField]> {
        self.field.as_ref().filter(|_| !self.has_csv).and_then(JsonField::record)
    }

    /// Returns whether its cells are text, not numbers.
    pub(super) fn is_text(&self) -> bool {
        self.header.align == Align::Left
    }
}

impl<'c, R> Column<'c, R> {
    /// Creates a column of JSON and CSV. Tables show it if it gets a [`Column::header`], in the order of columns, or if
    /// [`Columns::table`] lists it.
    pub fn new(
        key: impl Into<ColumnKey>,
        value: impl for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c,
    ) -> Self {
        Self::with_fields(key, Vec::new(), value)
    }

    /// Creates a record, or a list of records, with these fields; see [`Column::new`].
    pub fn with_fields(
        key: impl Into<ColumnKey>,
        fields: Vec<JsonField>,
        value: impl for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c,
    ) -> Self {
        let value: MakeValue<'c, R> = Box::new(value);
        Self::from_boxed(key, fields, value)
    }

    /// Compiled once for each type of rows, not for each of a thousand columns.
    fn from_boxed(key: impl Into<ColumnKey>, fields: Vec<JsonField>, value: MakeValue<'c, R>) -> Self {
        let making = Making { value, csv: None, cell: None, branch: None, target: None };
        Self { declaration: Declaration::new(JsonField::with_fields(key, fields)), making }
    }

    /// Creates a column of tables only: for values derived from others, such as a share or a bar.
    pub fn table(
        title: impl Into<Cow<'static, str>>,
        align: Align,
        cell: impl Fn(&R) -> String + Send + Sync + 'c,
    ) -> Self {
        let cell: MakeCell<'c, R, String> = Box::new(cell);
        let making = Making {
            value: Box::new(|_| Value::Null),
            csv: None,
            cell: Some(cell),
            branch: None,
            target: None,
        };
        Self { declaration: Declaration::table(title.into(), align), making }
    }

    /// Creates a record by declared columns, or `null`; see [`Column::new`].
    pub fn record<T: 'c>(key: impl Into<ColumnKey>, columns: Columns<'c, T>, of: fn(&R) -> Option<T>) -> Self
    where
        R: 'c,
    {
        let fields = columns.fields();
        Self::with_fields(key, fields, move |row| of(row).map_or(Value::Null, |of| columns.record(&of)))
    }

    /// Creates a list of records by declared columns; see [`Column::new`].
    pub fn records<T: 'c>(key: impl Into<ColumnKey>, columns: Columns<'c, T>, of: fn(&R) -> &[T]) -> Self
    where
        R: 'c,
    {
        let fields = columns.fields();
        Self::with_fields(key, fields, move |row| list(of(row).iter().map(|of| columns.record(of))))
    }

    /// Sets the condition under which the value is `null`.
    pub fn or_null(mut self, when: &'static str) -> Self {
        if let Some(field) = &mut self.declaration.field {
            field.null = Some(when);
        }
        self
    }

    /// Shows the column in tables: numbers right-aligned, with thousands separators.
    pub fn header(mut self, title: impl Into<Cow<'static, str>>) -> Self {
        self.declaration.show(title.into());
        self
    }

    /// Sets the alignment in tables.
    pub fn align(mut self, align: Align) -> Self {
        self.declaration.header.align = align;
        self
    }

    /// Sets the treatment of cells that are too wide.
    pub fn fit(mut self, fit: Fit) -> Self {
        self.declaration.header.fit = fit;
        self
    }

    /// Sets the text that tables show instead of the value.
    pub fn cell(mut self, cell: impl Fn(&R) -> String + Send + Sync + 'c) -> Self {
        self.making.cell = Some(Box::new(cell));
        self
    }

    /// Marks a column whose cells begin with the lines of a tree.
    pub fn tree(mut self, branch: impl for<'r> Fn(&'r R) -> &'r Branch + Send + Sync + 'c) -> Self {
        self.declaration.is_tree = true;
        self.making.branch = Some(Box::new(branch));
        self
    }

    /// Sets the value for CSV.
    pub fn csv(mut self, value: impl for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c) -> Self {
        self.declaration.has_csv = true;
        self.making.csv = Some(Box::new(value));
        self
    }
}

impl<R> std::fmt::Debug for Column<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.declaration.fmt(f)
    }
}

/// Formats a value for a table.
pub(super) fn plain(value: &Value<'_>) -> String {
    match value {
        Value::Null => String::new(),
        Value::Boolean(value) => if *value { "yes" } else { "no" }.to_owned(),
        Value::Integer(value) => group_digits(*value),
        Value::Signed(value) => u64::try_from(*value).map_or_else(|_| value.to_string(), group_digits),
        Value::Float(value) => value.to_string(),
        Value::Id(id) => format!("{id:#x}"),
        Value::Text(text) | Value::Verbatim(text) => text.clone().into_owned(),
        Value::List(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Record(values) => values
            .iter()
            .map(|(key, value)| format!("{key}: {}", plain(value)))
            .collect::<Vec<_>>()
            .join(", "),
        Value::LazyList(each) => each.values().map(|value| plain(&value)).collect::<Vec<_>>().join(", "),
    }
}

/// Columns of a result with rows `R`, in the order of JSON and CSV.
pub struct Columns<'c, R> {
    schema: Schema,
    makings: Vec<Making<'c, R>>,
}

/// Columns of a result, regardless of the type of its rows: everything that renderers need besides the
/// [`super::rows::Cells`] of a row.
pub(super) struct Schema {
    columns: Vec<Declaration>,
    /// Columns that tables show, in their order.
    shown: Vec<usize>,
    /// Keys of JSON and CSV.
    keys: Vec<(Cow<'static, str>, KeyNode)>,
}

/// Content of a key of a row.
pub(super) enum KeyNode {
    /// A column, by number.
    Value(usize),
    /// A record of the columns whose keys continue after a dot.
    Record(Vec<(Cow<'static, str>, KeyNode)>),
}

impl<R> std::fmt::Debug for Columns<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.schema.columns.fmt(f)
    }
}

impl<'c, R> Columns<'c, R> {
    /// Creates a list of columns.
    pub fn new(columns: impl IntoIterator<Item = Column<'c, R>>) -> Self {
        let (mut declarations, mut makings) = (Vec::new(), Vec::new());
        for Column { declaration, making } in columns {
            declarations.push(declaration);
            makings.push(making);
        }
        Self { schema: Schema::new(declarations), makings }
    }

    /// Shows these columns in tables, in this order, and no others.
    pub fn table(mut self, shown: impl IntoIterator<Item = TableColumn<'c, R>>) -> Self {
        self.hide_from_tables();
        for TableColumn { key, title, align, fit, cell, branch, target, is_drawn } in shown {
            let known = key.as_ref().and_then(|key| self.schema.position(&key.text));
            debug_assert!(key.is_none() || known.is_some(), "no column has the key of {title:?}");
            let at = known.unwrap_or(self.makings.len());
            if known.is_none() {
                let Column { declaration, making } = Column::table("", Align::Left, |_| String::new());
                self.schema.columns.push(declaration);
                self.makings.push(making);
            }
            let (Some(column), Some(made)) = (self.schema.columns.get_mut(at), self.makings.get_mut(at))
            else {
                continue;
            };
            column.show(title);
            column.header.align = align.unwrap_or(column.header.align);
            column.header.fit = fit;
            column.is_drawn |= is_drawn;
            column.is_tree |= branch.is_some();
            made.cell = cell.or(made.cell.take());
            made.branch = branch.or(made.branch.take());
            made.target = target.or(made.target.take());
            self.schema.shown.push(at);
        }
        self
    }

    /// Ignores dots in keys: the user chose the keys.
    pub fn flat(mut self) -> Self {
        self.schema.flatten();
        self
    }

    /// Returns the fields for the reference.
    pub fn fields(&self) -> Vec<JsonField> {
        self.schema.fields()
    }

    /// Returns the row as one value: a record, nested where keys have dots.
    pub fn record(&self, row: &R) -> Value<'static> {
        record(&self.schema.keys, &|at| self.value(at, row).into_owned())
    }

    /// Returns the columns without the functions for their values.
    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Hides all columns from tables.
    pub(super) fn hide_from_tables(&mut self) {
        self.schema.shown.clear();
    }

    /// Returns the value of a column, by number.
    #[inline]
    pub(super) fn value<'r>(&self, at: usize, row: &'r R) -> Value<'r> {
        let Some(making) = self.makings.get(at) else { return Value::Null };
        (making.value)(row)
    }

    /// Returns the CSV value of a column, by number.
    #[inline]
    pub(super) fn csv_value<'r>(&self, at: usize, row: &'r R) -> Value<'r> {
        let Some(making) = self.makings.get(at) else { return Value::Null };
        making.csv.as_ref().unwrap_or(&making.value)(row)
    }

    /// Returns the text that tables show for a column instead of its value, by number.
    #[inline]
    pub(super) fn cell(&self, at: usize, row: &R) -> Option<String> {
        Some(self.makings.get(at)?.cell.as_ref()?(row))
    }

    /// Returns the position of a row in the tree that a column shows, by number; `None` if it shows none.
    pub(super) fn branch<'r>(&self, at: usize, row: &'r R) -> Option<&'r Branch> {
        Some(self.makings.get(at)?.branch.as_ref()?(row))
    }

    /// Returns the link target of a column's cell, by number; `None` if the column does not set it.
    pub(super) fn target(&self, at: usize, row: &R) -> Option<Option<CellTarget>> {
        Some(self.makings.get(at)?.target.as_ref()?(row))
    }
}

impl Schema {
    fn new(columns: Vec<Declaration>) -> Self {
        let shown =
            columns.iter().enumerate().filter(|(_, column)| column.is_shown).map(|(at, _)| at).collect();
        let mut keys = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            if let Some(field) = &column.field {
                nest(&mut keys, field.key.text.clone(), at);
            }
        }
        Self { shown, columns, keys }
    }

    /// Returns the number of the column with this key.
    fn position(&self, key: &str) -> Option<usize> {
        let found = self.columns.iter().position(|column| column.key() == Some(key));
        debug_assert!(found.is_some(), "no column has the key {key}");
        found
    }

    fn flatten(&mut self) {
        let key = |(at, column): (usize, &Declaration)| {
            Some((column.field.as_ref()?.key.text.clone(), KeyNode::Value(at)))
        };
        self.keys = self.columns.iter().enumerate().filter_map(key).collect();
    }

    fn fields(&self) -> Vec<JsonField> {
        self.columns.iter().filter_map(|column| column.field.clone()).collect()
    }

    /// Returns the keys of a row.
    pub(super) fn keys(&self) -> &[(Cow<'static, str>, KeyNode)] {
        &self.keys
    }

    /// Returns the columns of JSON and CSV, with their numbers.
    pub(super) fn programs(&self) -> impl Iterator<Item = (usize, &Declaration)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.field.is_some())
    }

    /// Returns the columns of tables with their numbers, in their order.
    pub(super) fn table_columns(&self) -> impl Iterator<Item = (usize, &Declaration)> {
        self.shown.iter().filter_map(|at| Some((*at, self.columns.get(*at)?)))
    }
}

fn record(keys: &[(Cow<'static, str>, KeyNode)], of: &dyn Fn(usize) -> Value<'static>) -> Value<'static> {
    let value = |node: &KeyNode| match node {
        KeyNode::Value(at) => of(*at),
        KeyNode::Record(keys) => record(keys, of),
    };
    Value::Record(keys.iter().map(|(key, node)| (key.clone(), value(node))).collect())
}

/// Inserts a column by its key: each dot opens a record.
fn nest(out: &mut Vec<(Cow<'static, str>, KeyNode)>, key: Cow<'static, str>, at: usize) {
    let Some((outer, inner)) = key.split_once('.') else { return out.push((key, KeyNode::Value(at))) };
    let inner = Cow::Owned(inner.to_owned());
    for (known, node) in out.iter_mut() {
        if let KeyNode::Record(keys) = node
            && known == outer
        {
            return nest(keys, inner, at);
        }
    }
    let mut keys = Vec::new();
    nest(&mut keys, inner, at);
    out.push((Cow::Owned(outer.to_owned()), KeyNode::Record(keys)));
}
