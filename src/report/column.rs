//! Columns of a result, declared once for all formats.
//!
//! A command declares its columns once, in the order of JSON and CSV: key, type, meaning and value of each column. A table
//! lists the keys that it shows, in its own order, with title and appearance. Tables, CSV, JSON and the reference in
//! `docs/json-schema.md` are generated from the same columns, so they cannot disagree.

use std::borrow::Cow;

pub use hprof_query::dictionary::{ColumnKey, ValueKind};

use super::escape;
use super::ink::Ink;
use super::number::group_digits;
pub use super::table_column::{Align, CellTarget, Fit, TableColumn};
use super::table_column::{GetBranch, MakeCell};
use super::tree::Branch;
use super::value::{Value, list};

/// Declared key of a JSON object, also used as the title in CSV.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonField {
    /// Key from the dictionary of names. A dot means nesting: `total.rows`.
    pub key: ColumnKey,
    /// Fields of a record, or of the records of a list; empty if the dump determines them.
    pub fields: Vec<JsonField>,
    /// Condition under which the value is `null`; `None` if it never is.
    pub null: Option<&'static str>,
}

impl JsonField {
    /// Creates a field that is never `null`.
    pub fn new(key: impl Into<ColumnKey>) -> Self {
        Self::with_fields(key, Vec::new())
    }

    /// Creates a field whose value is a record, or a list of records, with the given fields.
    pub fn with_fields(key: impl Into<ColumnKey>, fields: Vec<Self>) -> Self {
        Self { key: key.into(), fields, null: None }
    }

    /// Returns the fields if the value is a record; an empty slice if the dump determines them.
    pub(super) fn record(&self) -> Option<&[Self]> {
        (self.key.kind == ValueKind::Record).then_some(&self.fields)
    }

    /// Marks the field as `null` under a condition.
    pub fn or_null(self, when: &'static str) -> Self {
        Self { null: Some(when), ..self }
    }
}

type MakeValue<'c, R> = Box<dyn for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c>;

/// Column of a result with rows of type `R`.
pub struct Column<'c, R> {
    declaration: Declaration,
    making: Making<'c, R>,
}

/// Properties of a column that do not depend on its rows.
#[derive(Debug)]
pub(super) struct Declaration {
    /// Declared key; `None` for a column that only tables have.
    field: Option<JsonField>,
    pub(super) header: Header,
    /// `true` if tables show the column.
    is_shown: bool,
    /// `true` if CSV has a different value than JSON.
    has_csv: bool,
    /// `true` if the cells are pictures drawn with characters.
    pub(super) is_drawn: bool,
    /// `true` if the cells begin with the lines of a tree.
    pub(super) is_tree: bool,
}

/// Functions that compute a column's value and its appearance for a row.
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
    /// Creates the declaration of a column in JSON and CSV.
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

    /// Creates the declaration of a column in tables only.
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

    /// Returns the fields of a record column, each of which has a CSV cell; `None` if the column has one cell.
    pub(super) fn csv_record(&self) -> Option<&[JsonField]> {
        self.field.as_ref().filter(|_| !self.has_csv).and_then(JsonField::record)
    }

    /// Returns whether the cells are text, not numbers.
    pub(super) fn is_text(&self) -> bool {
        self.header.align == Align::Left
    }
}

impl<'c, R> Column<'c, R> {
    /// Creates a column of JSON and CSV. Tables show it if it gets a [`Column::header`] (in the order of the columns), or if
    /// [`Columns::table`] lists it.
    pub fn new(
        key: impl Into<ColumnKey>,
        value: impl for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c,
    ) -> Self {
        Self::with_fields(key, Vec::new(), value)
    }

    /// Creates a column whose value is a record, or a list of records, with the given fields; see [`Column::new`].
    pub fn with_fields(
        key: impl Into<ColumnKey>,
        fields: Vec<JsonField>,
        value: impl for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c,
    ) -> Self {
        let value: MakeValue<'c, R> = Box::new(value);
        Self::from_boxed(key, fields, value)
    }

    /// Creates a column from a boxed function: compiled once for each type of rows, not for each of a thousand columns.
    fn from_boxed(key: impl Into<ColumnKey>, fields: Vec<JsonField>, value: MakeValue<'c, R>) -> Self {
        let making = Making { value, csv: None, cell: None, branch: None, target: None };
        Self { declaration: Declaration::new(JsonField::with_fields(key, fields)), making }
    }

    /// Creates a column in tables only, for values derived from other columns, such as a share or a bar.
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

    /// Creates a column whose value is a record with the given columns, or `null`; see [`Column::new`].
    pub fn record<T: 'c>(key: impl Into<ColumnKey>, columns: Columns<'c, T>, of: fn(&R) -> Option<T>) -> Self
    where
        R: 'c,
    {
        let fields = columns.fields();
        Self::with_fields(key, fields, move |row| of(row).map_or(Value::Null, |of| columns.record(&of)))
    }

    /// Creates a column whose value is a list of records with the given columns; see [`Column::new`].
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

    /// Shows the column in tables with this title. Numbers are right-aligned, with thousands separators.
    pub fn header(mut self, title: impl Into<Cow<'static, str>>) -> Self {
        self.declaration.show(title.into());
        self
    }

    /// Sets the alignment of the column in tables.
    pub fn align(mut self, align: Align) -> Self {
        self.declaration.header.align = align;
        self
    }

    /// Sets how tables fit cells that are too wide.
    pub fn fit(mut self, fit: Fit) -> Self {
        self.declaration.header.fit = fit;
        self
    }

    /// Sets the function for the text that tables show instead of the value.
    pub fn cell(mut self, cell: impl Fn(&R) -> String + Send + Sync + 'c) -> Self {
        self.making.cell = Some(Box::new(cell));
        self
    }

    /// Begins the column's cells in tables with the lines of a tree.
    pub fn tree(mut self, branch: impl for<'r> Fn(&'r R) -> &'r Branch + Send + Sync + 'c) -> Self {
        self.declaration.is_tree = true;
        self.making.branch = Some(Box::new(branch));
        self
    }

    /// Sets the function for the value in CSV, if it differs from the value in JSON.
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

/// Columns of a result with rows of type `R`, in the order of JSON and CSV.
pub struct Columns<'c, R> {
    schema: Schema,
    makings: Vec<Making<'c, R>>,
}

/// Columns of a result without the type of its rows: everything that renderers need in addition to the [`super::rows::Cells`]
/// of a row.
pub(super) struct Schema {
    columns: Vec<Declaration>,
    /// Indexes of the columns that tables show, in the order of the table.
    shown: Vec<usize>,
    /// Keys of JSON and CSV, nested at dots.
    keys: Vec<(Cow<'static, str>, KeyNode)>,
}

/// Value of a key in the tree of nested keys.
pub(super) enum KeyNode {
    /// Value of a column, by index.
    Value(usize),
    /// Record of the columns whose keys continue after a dot.
    Record(Vec<(Cow<'static, str>, KeyNode)>),
}

impl<R> std::fmt::Debug for Columns<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.schema.columns.fmt(f)
    }
}

impl<'c, R> Columns<'c, R> {
    /// Creates columns in the order of JSON and CSV.
    pub fn new(columns: impl IntoIterator<Item = Column<'c, R>>) -> Self {
        let (mut declarations, mut makings) = (Vec::new(), Vec::new());
        for Column { declaration, making } in columns {
            declarations.push(declaration);
            makings.push(making);
        }
        Self { schema: Schema::new(declarations), makings }
    }

    /// Shows exactly the given columns in tables, in this order.
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

    /// Stops nesting at dots in keys, for keys chosen by the user.
    pub fn flat(mut self) -> Self {
        self.schema.flatten();
        self
    }

    /// Returns the fields that the reference describes.
    pub fn fields(&self) -> Vec<JsonField> {
        self.schema.fields()
    }

    /// Returns a row as a single value: a record, nested where keys have dots.
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

    /// Returns the value of a column, by index.
    #[inline]
    pub(super) fn value<'r>(&self, at: usize, row: &'r R) -> Value<'r> {
        let Some(making) = self.makings.get(at) else { return Value::Null };
        (making.value)(row)
    }

    /// Returns the CSV value of a column, by index.
    #[inline]
    pub(super) fn csv_value<'r>(&self, at: usize, row: &'r R) -> Value<'r> {
        let Some(making) = self.makings.get(at) else { return Value::Null };
        making.csv.as_ref().unwrap_or(&making.value)(row)
    }

    /// Returns the text that tables show instead of the value of a column, by index; `None` if they show the value.
    #[inline]
    pub(super) fn cell(&self, at: usize, row: &R) -> Option<String> {
        Some(self.makings.get(at)?.cell.as_ref()?(row))
    }

    /// Returns the row's position in the tree shown by a column, by index; `None` if the column shows no tree.
    pub(super) fn branch<'r>(&self, at: usize, row: &'r R) -> Option<&'r Branch> {
        Some(self.makings.get(at)?.branch.as_ref()?(row))
    }

    /// Returns the link target of a column's cell, by index; `None` if the column does not define targets.
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

    /// Returns the index of the column with this key.
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

    /// Returns the keys of a row, nested at dots.
    pub(super) fn keys(&self) -> &[(Cow<'static, str>, KeyNode)] {
        &self.keys
    }

    /// Returns the columns of JSON and CSV with their indexes.
    pub(super) fn programs(&self) -> impl Iterator<Item = (usize, &Declaration)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.field.is_some())
    }

    /// Returns the columns of tables with their indexes, in the order of the table.
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

/// Inserts a column into nested keys. Each dot of its key opens a record.
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
