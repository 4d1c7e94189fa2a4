//! Columns: the one declaration of what an answer holds, from which all formats are made.
//!
//! A command declares its columns once, in the order of JSON and CSV: key, type, meaning and value of each, and its title
//! if it is shown in tables. Tables, CSV, JSON and the reference in `docs/json-schema.md` come from the same list, so they
//! cannot disagree.

use std::borrow::Cow;

use hprof_parser::ObjectId;
pub use hprof_query::dictionary::{ColumnKey, ValueKind};

use super::escape;
use super::ink::Ink;
use super::number::grouped;
use super::value::{Value, list};

/// What a cell stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellTarget {
    /// An object.
    Object(ObjectId),
    /// A class: its name, and its class object where the row says it.
    Class(String, Option<ObjectId>),
    /// An answer: the path of its page below that of the dump, whose parts are encoded.
    Page(String),
}

/// A declared key of JSON, which is the title in CSV.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonField {
    /// The key: a name of the dictionary. A dot nests: `total.rows`.
    pub key: ColumnKey,
    /// The fields of a record, or of each record of a list; none if they are the dump's.
    pub fields: Vec<JsonField>,
    /// When it is `null`, if it can be.
    pub null: Option<&'static str>,
}

impl JsonField {
    /// A field that is never `null`.
    pub fn of(key: impl Into<ColumnKey>) -> Self {
        Self::nested(key, Vec::new())
    }

    /// A record, or a list of records, with these fields.
    pub fn nested(key: impl Into<ColumnKey>, fields: Vec<Self>) -> Self {
        Self { key: key.into(), fields, null: None }
    }

    /// The fields of a record; none if they are the dump's.
    pub(super) fn record(&self) -> Option<&[Self]> {
        (self.key.kind == ValueKind::Record).then_some(&self.fields)
    }

    /// The same, `null` when this is so.
    pub fn or_null(self, when: &'static str) -> Self {
        Self { null: Some(when), ..self }
    }
}

/// The side of a column on which its texts stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Texts.
    Left,
    /// Numbers.
    Right,
}

/// What happens to a column of a table that is too wide for the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fit {
    /// It stays as it is: numbers, IDs.
    #[default]
    Whole,
    /// It is left out before anything is shortened: what can be done without. The lowest priority goes first.
    Secondary {
        /// From 0.
        priority: u8,
    },
    /// Its cells are names, which are shortened. Columns of a lower priority are shortened first.
    Shorten {
        /// From 0.
        priority: u8,
    },
    /// Its cells lose their ends: texts. Priorities are those of [`Fit::Shorten`].
    Cut {
        /// From 0.
        priority: u8,
    },
    /// Its cells lose their middle: names of files, of which both ends tell. Priorities are those of [`Fit::Shorten`].
    Middle {
        /// From 0.
        priority: u8,
    },
    /// Its lines are broken: sentences, and what is copied.
    Wrap,
}

type MakeCell<'c, R, T> = Box<dyn for<'r> Fn(&'r R) -> T + Send + Sync + 'c>;
type MakeValue<'c, R> = Box<dyn for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c>;

/// A column of rows `R`.
pub struct Column<'c, R> {
    declaration: Declaration,
    making: Making<'c, R>,
}

/// What is known of a column whatever its rows are.
#[derive(Debug)]
pub(super) struct Declaration {
    /// `None` of a column that is in tables only.
    field: Option<JsonField>,
    pub(super) header: Header,
    /// Whether the column is in tables.
    is_shown: bool,
    /// Whether CSV has something else than the value.
    has_csv: bool,
    /// Whether its cells are drawn with characters.
    pub(super) is_drawn: bool,
}

/// How a column is made of a row.
struct Making<'c, R> {
    value: MakeValue<'c, R>,
    csv: Option<MakeValue<'c, R>>,
    cell: Option<MakeCell<'c, R, String>>,
    target: Option<MakeCell<'c, R, Option<CellTarget>>>,
}

/// A column's place in a table.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) title: Cow<'static, str>,
    pub(super) align: Align,
    pub(super) fit: Fit,
    pub(super) ink: Ink,
    place: usize,
}

impl Header {
    pub(super) fn new(title: impl Into<Cow<'static, str>>, align: Align, fit: Fit) -> Self {
        Self { title: escaped(title.into()), align, fit, ink: Ink::Plain, place: usize::MAX }
    }
}

fn escaped(title: Cow<'static, str>) -> Cow<'static, str> {
    match title {
        Cow::Borrowed(title) => escape::text(title),
        Cow::Owned(title) => Cow::Owned(escape::text(&title).into_owned()),
    }
}

impl Declaration {
    /// A column of JSON and CSV.
    fn new(field: JsonField) -> Self {
        let align = match field.key.kind {
            ValueKind::Integer | ValueKind::Signed | ValueKind::Float => Align::Right,
            _ => Align::Left,
        };
        let mut header = Header::new("", align, Fit::Whole);
        if field.key.text.ends_with("retained_bytes") {
            header.ink = Ink::Bold;
        }
        Self { field: Some(field), header, is_shown: false, has_csv: false, is_drawn: false }
    }

    /// A column of tables only.
    fn table(title: Cow<'static, str>, align: Align) -> Self {
        let header = Header::new(title, align, Fit::Whole);
        Self { field: None, header, is_shown: true, has_csv: false, is_drawn: false }
    }

    fn show(&mut self, title: Cow<'static, str>) {
        self.header.title = escaped(title);
        self.is_shown = true;
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.field.as_ref().map(|field| field.key.text.as_ref())
    }

    /// The fields of the record that CSV has cells for; `None` if it has one cell.
    pub(super) fn csv_record(&self) -> Option<&[JsonField]> {
        self.field.as_ref().filter(|_| !self.has_csv).and_then(JsonField::record)
    }

    /// Whether its cells are texts, not numbers.
    pub(super) fn is_text(&self) -> bool {
        self.header.align == Align::Left
    }
}

impl<'c, R> Column<'c, R> {
    /// A column of JSON and CSV. Tables show it if it gets a [`Column::header`].
    pub fn of(
        key: impl Into<ColumnKey>,
        value: impl for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c,
    ) -> Self {
        Self::nested(key, Vec::new(), value)
    }

    /// A record, or a list of records, with these fields; see [`Column::of`].
    pub fn nested(
        key: impl Into<ColumnKey>,
        fields: Vec<JsonField>,
        value: impl for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c,
    ) -> Self {
        let making = Making { value: Box::new(value), csv: None, cell: None, target: None };
        Self { declaration: Declaration::new(JsonField::nested(key, fields)), making }
    }

    /// A column of tables only: what is put together out of others, such as a share or a bar.
    pub fn table(
        title: impl Into<Cow<'static, str>>,
        align: Align,
        cell: impl Fn(&R) -> String + Send + Sync + 'c,
    ) -> Self {
        let cell: MakeCell<'c, R, String> = Box::new(cell);
        let making = Making { value: Box::new(|_| Value::Null), csv: None, cell: Some(cell), target: None };
        Self { declaration: Declaration::table(title.into(), align), making }
    }

    /// A record by declared columns, or `null`; see [`Column::of`].
    pub fn record<T: 'c>(key: impl Into<ColumnKey>, columns: Columns<'c, T>, of: fn(&R) -> Option<T>) -> Self
    where
        R: 'c,
    {
        let fields = columns.fields();
        Self::nested(key, fields, move |row| of(row).map_or(Value::Null, |of| columns.record(&of)))
    }

    /// A list of records by declared columns; see [`Column::of`].
    pub fn records<T: 'c>(key: impl Into<ColumnKey>, columns: Columns<'c, T>, of: fn(&R) -> &[T]) -> Self
    where
        R: 'c,
    {
        let fields = columns.fields();
        Self::nested(key, fields, move |row| list(of(row).iter().map(|of| columns.record(of))))
    }

    /// When the value is `null`.
    pub fn or_null(mut self, when: &'static str) -> Self {
        if let Some(field) = &mut self.declaration.field {
            field.null = Some(when);
        }
        self
    }

    /// Shows the column in tables: numbers on the right, with their thousands apart.
    pub fn header(mut self, title: impl Into<Cow<'static, str>>) -> Self {
        self.declaration.show(title.into());
        self
    }

    /// Takes the column out of tables.
    pub fn hidden(mut self) -> Self {
        self.declaration.is_shown = false;
        self
    }

    /// The column's place in tables, where it is another than in JSON. Those without one come last, in their order.
    pub fn place(mut self, place: usize) -> Self {
        self.declaration.header.place = place;
        self
    }

    /// On which side the cells of a table stand.
    pub fn align(mut self, align: Align) -> Self {
        self.declaration.header.align = align;
        self
    }

    /// What happens to cells that are too wide.
    pub fn fit(mut self, fit: Fit) -> Self {
        self.declaration.header.fit = fit;
        self
    }

    /// What tables show instead of the value.
    pub fn cell(mut self, cell: impl Fn(&R) -> String + Send + Sync + 'c) -> Self {
        self.making.cell = Some(Box::new(cell));
        self
    }

    /// What a cell leads to on a page, where its type and key do not say it.
    pub fn target(mut self, target: impl Fn(&R) -> Option<CellTarget> + Send + Sync + 'c) -> Self {
        self.making.target = Some(Box::new(target));
        self
    }

    /// Marks a column of bars drawn with characters, instead of which pages have bars of their own.
    pub fn drawn(mut self) -> Self {
        self.declaration.is_drawn = true;
        self
    }

    /// What CSV has instead of the value.
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

/// A value as a table shows it.
pub(super) fn plain(value: &Value<'_>) -> String {
    match value {
        Value::Null => String::new(),
        Value::Boolean(value) => if *value { "yes" } else { "no" }.to_owned(),
        Value::Integer(value) => grouped(*value),
        Value::Signed(value) => u64::try_from(*value).map_or_else(|_| value.to_string(), grouped),
        Value::Float(value) => value.to_string(),
        Value::Id(id) => format!("{id:#x}"),
        Value::Text(text) | Value::Verbatim(text) => text.clone().into_owned(),
        Value::List(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Record(values) => values
            .iter()
            .map(|(key, value)| format!("{key}: {}", plain(value)))
            .collect::<Vec<_>>()
            .join(", "),
        Value::Each(each) => each.values().map(|value| plain(&value)).collect::<Vec<_>>().join(", "),
    }
}

/// The columns of an answer whose rows are `R`, in the order of JSON and CSV.
pub struct Columns<'c, R> {
    schema: Schema,
    makings: Vec<Making<'c, R>>,
}

/// The columns of an answer, whatever its rows are: all that renderers need beside the [`super::rows::Cells`] of a row.
pub(super) struct Schema {
    columns: Vec<Declaration>,
    /// Those that tables show, in their order.
    shown: Vec<usize>,
    /// Those of JSON and CSV.
    keys: Vec<(Cow<'static, str>, KeyNode)>,
}

/// What a key of a row stands for.
pub(super) enum KeyNode {
    /// A column, by number.
    Value(usize),
    /// A record of the columns whose keys go on behind a dot.
    Record(Vec<(Cow<'static, str>, KeyNode)>),
}

impl<R> std::fmt::Debug for Columns<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.schema.columns.fmt(f)
    }
}

impl<'c, R> Columns<'c, R> {
    /// These columns.
    pub fn new(columns: impl IntoIterator<Item = Column<'c, R>>) -> Self {
        let (mut declarations, mut makings) = (Vec::new(), Vec::new());
        for Column { declaration, making } in columns {
            declarations.push(declaration);
            makings.push(making);
        }
        Self { schema: Schema::new(declarations), makings }
    }

    /// The same, but dots in keys mean nothing: the user chose the keys.
    pub fn flat(mut self) -> Self {
        self.schema.flatten();
        self
    }

    /// What the reference says of them.
    pub fn fields(&self) -> Vec<JsonField> {
        self.schema.fields()
    }

    /// The row as one value: a record, nested where keys have dots.
    pub fn record(&self, row: &R) -> Value<'static> {
        record(&self.schema.keys, &|at| self.value(at, row).into_owned())
    }

    /// The columns without what makes them of a row.
    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Takes all columns out of tables.
    pub(super) fn hide_from_tables(&mut self) {
        self.schema.shown.clear();
    }

    /// The value of a column, by number.
    #[inline]
    pub(super) fn value<'r>(&self, at: usize, row: &'r R) -> Value<'r> {
        let Some(making) = self.makings.get(at) else { return Value::Null };
        (making.value)(row)
    }

    /// What CSV has of a column, by number.
    #[inline]
    pub(super) fn csv_value<'r>(&self, at: usize, row: &'r R) -> Value<'r> {
        let Some(making) = self.makings.get(at) else { return Value::Null };
        making.csv.as_ref().unwrap_or(&making.value)(row)
    }

    /// What tables show of a column instead of its value, by number.
    #[inline]
    pub(super) fn cell(&self, at: usize, row: &R) -> Option<String> {
        Some(self.makings.get(at)?.cell.as_ref()?(row))
    }

    /// What a cell of a column leads to, by number; `None` if the column does not say it.
    pub(super) fn target(&self, at: usize, row: &R) -> Option<Option<CellTarget>> {
        Some(self.makings.get(at)?.target.as_ref()?(row))
    }
}

impl Schema {
    fn new(columns: Vec<Declaration>) -> Self {
        let mut shown: Vec<(usize, usize)> = (columns.iter().enumerate())
            .filter(|(_, column)| column.is_shown)
            .map(|(at, column)| (column.header.place, at))
            .collect();
        shown.sort_unstable();
        let mut keys = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            if let Some(field) = &column.field {
                nest(&mut keys, field.key.text.clone(), at);
            }
        }
        Self { shown: shown.into_iter().map(|(_, at)| at).collect(), columns, keys }
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

    /// The keys of a row.
    pub(super) fn keys(&self) -> &[(Cow<'static, str>, KeyNode)] {
        &self.keys
    }

    /// The columns of JSON and CSV, with their numbers.
    pub(super) fn programs(&self) -> impl Iterator<Item = (usize, &Declaration)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.field.is_some())
    }

    /// The columns of tables with their numbers, in their order.
    pub(super) fn shown(&self) -> impl Iterator<Item = (usize, &Declaration)> {
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

/// Puts a column where its key says: behind each dot in a record of its own.
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
