//! Columns: the one declaration of what an answer holds, from which all formats are made.
//!
//! A command declares its columns once, in the order of JSON and CSV: key, type, meaning and value of each, and its title
//! if it is shown in tables. Tables, CSV, JSON and the reference in `docs/json-schema.md` come from the same list, so they
//! cannot disagree.

use std::borrow::Cow;

use super::escape;
use super::ink::Ink;
use super::number::grouped;
use super::value::{Value, list};

/// The type of a column's values.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `string`
    Text,
    /// `id`: an object ID.
    Id,
    /// `integer`: a count or a size in bytes.
    Integer,
    /// `signed`: an integer that may be negative.
    Signed,
    /// `number`: with a fraction.
    Float,
    /// `boolean`
    Boolean,
    /// `time`: RFC 3339.
    Time,
    /// A record with these fields; with any if none are declared.
    Record(Vec<Field>),
    /// A list of records with these fields.
    Records(Vec<Field>),
    /// A list of values of one type.
    List(Box<Kind>),
    /// One of several types; which, is said in words.
    Any,
}

/// What the reference says of a key.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The JSON key, which is the title in CSV. A dot nests: `total.rows`.
    pub key: Cow<'static, str>,
    /// The type.
    pub kind: Kind,
    /// The meaning: shape, unit, what is counted.
    pub meaning: &'static str,
    /// When it is `null`, if it can be.
    pub null: Option<&'static str>,
}

impl Field {
    /// A field that is never `null`.
    pub fn new(key: impl Into<Cow<'static, str>>, kind: Kind, meaning: &'static str) -> Self {
        Self { key: key.into(), kind, meaning, null: None }
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
    /// Its cells are abbreviated: names. Columns of a lower priority are shortened first.
    Shorten {
        /// From 0.
        priority: u8,
    },
    /// Its cells lose their ends: texts. Priorities are those of [`Fit::Shorten`].
    Cut {
        /// From 0.
        priority: u8,
    },
    /// Its lines are broken: sentences, and what is copied.
    Wrap,
}

type Make<'c, R, T> = Box<dyn for<'r> Fn(&'r R) -> T + Send + Sync + 'c>;
type MakeValue<'c, R> = Box<dyn for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c>;

/// A column of rows `R`.
pub struct Column<'c, R> {
    /// `None` of a column that is in tables only.
    field: Option<Field>,
    header: Header,
    /// Whether the column is in tables.
    is_shown: bool,
    value: MakeValue<'c, R>,
    csv: Option<MakeValue<'c, R>>,
    cell: Option<Make<'c, R, String>>,
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

impl<'c, R> Column<'c, R> {
    /// A column of JSON and CSV. Tables show it if it gets a [`Column::header`].
    pub fn new(
        key: impl Into<Cow<'static, str>>,
        kind: Kind,
        meaning: &'static str,
        value: impl for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c,
    ) -> Self {
        let align = match &kind {
            Kind::Integer | Kind::Signed | Kind::Float => Align::Right,
            _ => Align::Left,
        };
        let mut header = Header::new("", align, Fit::Whole);
        let field = Field::new(key, kind, meaning);
        if field.key.ends_with("retained_bytes") {
            header.ink = Ink::Bold;
        }
        let field = Some(field);
        Self { field, header, is_shown: false, value: Box::new(value), csv: None, cell: None }
    }

    /// A column of tables only: what is put together out of others, such as a share or a bar.
    pub fn table(
        title: impl Into<Cow<'static, str>>,
        align: Align,
        cell: impl Fn(&R) -> String + Send + Sync + 'c,
    ) -> Self {
        let header = Header::new(title, align, Fit::Whole);
        let cell: Option<Make<'c, R, String>> = Some(Box::new(cell));
        Self { field: None, header, is_shown: true, value: Box::new(|_| Value::Null), csv: None, cell }
    }

    /// A record by declared columns, or `null`; see [`Column::new`].
    pub fn record<T: 'c>(
        key: impl Into<Cow<'static, str>>,
        meaning: &'static str,
        columns: Columns<'c, T>,
        of: fn(&R) -> Option<T>,
    ) -> Self
    where
        R: 'c,
    {
        let kind = Kind::Record(columns.fields());
        Self::new(key, kind, meaning, move |row| of(row).map_or(Value::Null, |of| columns.record(&of)))
    }

    /// A list of records by declared columns; see [`Column::new`].
    pub fn records<T: 'c>(
        key: impl Into<Cow<'static, str>>,
        meaning: &'static str,
        columns: Columns<'c, T>,
        of: fn(&R) -> &[T],
    ) -> Self
    where
        R: 'c,
    {
        let kind = Kind::Records(columns.fields());
        Self::new(key, kind, meaning, move |row| list(of(row).iter().map(|of| columns.record(of))))
    }

    /// Texts; see [`Column::new`].
    pub fn text(
        key: impl Into<Cow<'static, str>>,
        meaning: &'static str,
        value: impl for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c,
    ) -> Self {
        Self::new(key, Kind::Text, meaning, value)
    }

    /// Counts and sizes; see [`Column::new`].
    pub fn integer(
        key: impl Into<Cow<'static, str>>,
        meaning: &'static str,
        value: impl for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c,
    ) -> Self {
        Self::new(key, Kind::Integer, meaning, value)
    }

    /// Object IDs; see [`Column::new`].
    pub fn id(
        key: impl Into<Cow<'static, str>>,
        meaning: &'static str,
        value: impl for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c,
    ) -> Self {
        Self::new(key, Kind::Id, meaning, value)
    }

    /// Truth values; see [`Column::new`].
    pub fn boolean(
        key: impl Into<Cow<'static, str>>,
        meaning: &'static str,
        value: impl for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c,
    ) -> Self {
        Self::new(key, Kind::Boolean, meaning, value)
    }

    /// When the value is `null`.
    pub fn or_null(mut self, when: &'static str) -> Self {
        if let Some(field) = &mut self.field {
            field.null = Some(when);
        }
        self
    }

    /// Shows the column in tables: numbers on the right, with their thousands apart.
    pub fn header(mut self, title: impl Into<Cow<'static, str>>) -> Self {
        self.header.title = escaped(title.into());
        self.is_shown = true;
        self
    }

    /// Takes the column out of tables.
    pub fn hidden(mut self) -> Self {
        self.is_shown = false;
        self
    }

    /// The column's place in tables, where it is another than in JSON. Those without one come last, in their order.
    pub fn place(mut self, place: usize) -> Self {
        self.header.place = place;
        self
    }

    /// On which side the cells of a table stand.
    pub fn align(mut self, align: Align) -> Self {
        self.header.align = align;
        self
    }

    /// What happens to cells that are too wide.
    pub fn fit(mut self, fit: Fit) -> Self {
        self.header.fit = fit;
        self
    }

    /// What tables show instead of the value.
    pub fn cell(mut self, cell: impl Fn(&R) -> String + Send + Sync + 'c) -> Self {
        self.cell = Some(Box::new(cell));
        self
    }

    /// What CSV has instead of the value.
    pub fn csv(mut self, value: impl for<'r> Fn(&'r R) -> Value<'r> + Send + Sync + 'c) -> Self {
        self.csv = Some(Box::new(value));
        self
    }

    /// The value for a row.
    pub fn value<'r>(&self, row: &'r R) -> Value<'r> {
        (self.value)(row)
    }

    pub(super) fn csv_value<'r>(&self, row: &'r R) -> Value<'r> {
        self.csv.as_ref().unwrap_or(&self.value)(row)
    }

    /// The type of [`Column::csv_value`]: what CSV has instead of a record is one cell.
    pub(super) fn csv_kind(&self) -> &Kind {
        match &self.field {
            Some(field) if self.csv.is_none() => &field.kind,
            _ => &Kind::Any,
        }
    }

    /// The cell of a table, not escaped yet.
    pub(super) fn table_cell(&self, row: &R) -> String {
        if let Some(cell) = &self.cell {
            return cell(row);
        }
        plain(&(self.value)(row))
    }

    /// Whether its cells are texts, not numbers.
    pub(super) fn is_text(&self) -> bool {
        self.header.align == Align::Left
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.field.as_ref().map(|field| field.key.as_ref())
    }
}

impl<R> std::fmt::Debug for Column<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Column")
            .field("field", &self.field)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

/// A value as a table shows it.
fn plain(value: &Value<'_>) -> String {
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
    all: Vec<Column<'c, R>>,
    /// Those that tables show, in their order.
    shown: Vec<usize>,
    /// Those of JSON and CSV.
    keys: Vec<(Cow<'static, str>, Node)>,
}

/// What a key of a row stands for.
pub(super) enum Node {
    /// A column, by number.
    Value(usize),
    /// A record of the columns whose keys go on behind a dot.
    Record(Vec<(Cow<'static, str>, Node)>),
}

impl<R> std::fmt::Debug for Columns<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.all).finish()
    }
}

impl<'c, R> Columns<'c, R> {
    /// These columns.
    pub fn new(columns: impl IntoIterator<Item = Column<'c, R>>) -> Self {
        let all: Vec<Column<'c, R>> = columns.into_iter().collect();
        let mut shown: Vec<(usize, usize)> = (all.iter().enumerate())
            .filter(|(_, column)| column.is_shown)
            .map(|(at, column)| (column.header.place, at))
            .collect();
        shown.sort_unstable();
        let mut keys = Vec::new();
        for (at, column) in all.iter().enumerate() {
            if let Some(field) = &column.field {
                nest(&mut keys, field.key.clone(), at);
            }
        }
        Self { shown: shown.into_iter().map(|(_, at)| at).collect(), all, keys }
    }

    /// The same, but dots in keys mean nothing: the user chose the keys.
    pub fn flat(self) -> Self {
        let key = |(at, column): (usize, &Column<'c, R>)| {
            Some((column.field.as_ref()?.key.clone(), Node::Value(at)))
        };
        Self { keys: self.all.iter().enumerate().filter_map(key).collect(), ..self }
    }

    /// What the reference says of them.
    pub fn fields(&self) -> Vec<Field> {
        self.all.iter().filter_map(|column| column.field.clone()).collect()
    }

    /// The row as one value: a record, nested where keys have dots.
    pub fn record(&self, row: &R) -> Value<'static> {
        self.record_of(&self.keys, row)
    }

    fn record_of(&self, keys: &[(Cow<'static, str>, Node)], row: &R) -> Value<'static> {
        let value = |node: &Node| match node {
            Node::Value(at) => self.value(*at, row).into_owned(),
            Node::Record(keys) => self.record_of(keys, row),
        };
        Value::Record(keys.iter().map(|(key, node)| (key.clone(), value(node))).collect())
    }

    /// The keys of a row.
    pub(super) fn keys(&self) -> &[(Cow<'static, str>, Node)] {
        &self.keys
    }

    /// The value of a column, by number.
    pub(super) fn value<'r>(&self, at: usize, row: &'r R) -> Value<'r> {
        self.all.get(at).map_or(Value::Null, |column| column.value(row))
    }

    /// Takes all columns out of tables.
    pub(super) fn hide_from_tables(&mut self) {
        self.shown.clear();
    }

    /// The columns of JSON and CSV.
    pub(super) fn programs(&self) -> impl Iterator<Item = &Column<'c, R>> {
        self.all.iter().filter(|column| column.field.is_some())
    }

    /// The columns of tables, in their order.
    pub(super) fn shown(&self) -> impl Iterator<Item = (&Header, &Column<'c, R>)> {
        self.shown.iter().filter_map(|at| {
            let column = self.all.get(*at)?;
            Some((&column.header, column))
        })
    }
}

/// Puts a column where its key says: behind each dot in a record of its own.
fn nest(out: &mut Vec<(Cow<'static, str>, Node)>, key: Cow<'static, str>, at: usize) {
    let Some((outer, inner)) = key.split_once('.') else { return out.push((key, Node::Value(at))) };
    let inner = Cow::Owned(inner.to_owned());
    for (known, node) in out.iter_mut() {
        if let Node::Record(keys) = node
            && known == outer
        {
            return nest(keys, inner, at);
        }
    }
    let mut keys = Vec::new();
    nest(&mut keys, inner, at);
    out.push((Cow::Owned(outer.to_owned()), Node::Record(keys)));
}
