//! Rows of a table, column by column.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::column_names::ColumnNames;
use super::definition::{Column, ColumnType, Wanted};
use hprof_parser::ObjectId;

/// A cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// Nothing.
    Null,
    /// A whole number, truth (0 or 1), or an object ID.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// A text.
    Text(&'a str),
}

/// The values of a column.
#[derive(Debug, Clone, Default)]
pub enum Values {
    /// It is not wanted.
    #[default]
    Absent,
    /// Integers, truths, object IDs.
    Integers {
        /// The values; 0 where there is none.
        values: Vec<i64>,
        /// Whether there is one; empty if all are.
        valid: Vec<bool>,
    },
    /// Floating-point numbers.
    Reals {
        /// The values; 0 where there is none.
        values: Vec<f64>,
        /// Whether there is one; empty if all are.
        valid: Vec<bool>,
    },
    /// Texts.
    Texts {
        /// All texts, one after another.
        text: String,
        /// Where each ends.
        ends: Vec<usize>,
        /// Whether there is one; empty if all are.
        valid: Vec<bool>,
    },
    /// Texts of few different values.
    Names {
        /// The values.
        names: ColumnNames,
        /// Which of them; [`NO_NAME`] for none.
        numbers: Vec<u32>,
        /// The numbers of names, for those that are added as texts.
        known: FxHashMap<String, u32>,
    },
}

/// No name.
pub const NO_NAME: u32 = u32::MAX;

impl Values {
    fn new(kind: ColumnType, names: &ColumnNames) -> Self {
        match kind {
            ColumnType::Integer | ColumnType::Boolean | ColumnType::Id => {
                Self::Integers { values: Vec::new(), valid: Vec::new() }
            }
            ColumnType::Real => Self::Reals { values: Vec::new(), valid: Vec::new() },
            ColumnType::Text => Self::Texts { text: String::new(), ends: Vec::new(), valid: Vec::new() },
            ColumnType::Name => {
                Self::Names { names: names.clone(), numbers: Vec::new(), known: FxHashMap::default() }
            }
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Absent => {}
            Self::Integers { values, valid } => {
                values.clear();
                valid.clear();
            }
            Self::Reals { values, valid } => {
                values.clear();
                valid.clear();
            }
            Self::Texts { text, ends, valid } => {
                // One long text must not keep its memory.
                text.clear();
                text.shrink_to(1 << 20);
                ends.clear();
                valid.clear();
            }
            Self::Names { numbers, .. } => numbers.clear(),
        }
    }

    /// Adds a whole number, truth or object ID.
    #[inline]
    pub fn integer(&mut self, value: Option<i64>) {
        if let Self::Integers { values, valid } = self {
            mark(valid, values.len(), value.is_some());
            values.push(value.unwrap_or_default());
        }
    }

    /// Adds a count or a size.
    #[inline]
    pub fn count(&mut self, value: Option<u64>) {
        self.integer(value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)));
    }

    /// Adds truth.
    #[inline]
    pub fn boolean(&mut self, value: Option<bool>) {
        self.integer(value.map(i64::from));
    }

    /// Adds an object ID.
    #[inline]
    pub fn id(&mut self, id: Option<ObjectId>) {
        self.integer(id.map(|id| id.0.cast_signed()));
    }

    /// Adds a floating-point number.
    #[inline]
    pub fn real(&mut self, value: Option<f64>) {
        if let Self::Reals { values, valid } = self {
            mark(valid, values.len(), value.is_some());
            values.push(value.unwrap_or_default());
        }
    }

    /// Adds a text. Of a column of names it becomes one of the different values.
    pub fn text(&mut self, value: Option<&str>) {
        match self {
            Self::Texts { text, ends, valid } => {
                mark(valid, ends.len(), value.is_some());
                text.push_str(value.unwrap_or_default());
                ends.push(text.len());
            }
            Self::Names { names, numbers, known } => {
                let Some(value) = value else { return numbers.push(NO_NAME) };
                if known.is_empty() {
                    let all = names.iter().map(str::to_owned).zip(0u32..);
                    known.extend(all);
                }
                let number = match known.get(value) {
                    Some(number) => *number,
                    None => {
                        let Ok(number) = u32::try_from(names.len()) else { return numbers.push(NO_NAME) };
                        Arc::make_mut(names).push(value);
                        known.insert(value.to_owned(), number);
                        number
                    }
                };
                numbers.push(number);
            }
            _ => {}
        }
    }

    /// Adds a name by its number in [`Values::Names`].
    #[inline]
    pub fn name(&mut self, number: Option<u32>) {
        if let Self::Names { numbers, .. } = self {
            numbers.push(number.unwrap_or(NO_NAME));
        }
    }

    /// The value of a row.
    #[inline]
    pub fn cell(&self, row: usize) -> Cell<'_> {
        let is_valid = |valid: &Vec<bool>| valid.get(row).copied().unwrap_or(true);
        match self {
            Self::Absent => Cell::Null,
            Self::Integers { values, valid } => match values.get(row) {
                Some(value) if is_valid(valid) => Cell::Integer(*value),
                _ => Cell::Null,
            },
            Self::Reals { values, valid } => match values.get(row) {
                Some(value) if is_valid(valid) => Cell::Real(*value),
                _ => Cell::Null,
            },
            Self::Texts { text, ends, valid } => {
                let start = row.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
                match ends.get(row).and_then(|end| text.get(start..*end)) {
                    Some(text) if is_valid(valid) => Cell::Text(text),
                    _ => Cell::Null,
                }
            }
            Self::Names { names, numbers, .. } => {
                let number = numbers.get(row).and_then(|number| usize::try_from(*number).ok());
                number.and_then(|number| names.get(number)).map_or(Cell::Null, Cell::Text)
            }
        }
    }
}

/// Notes whether the value at `at` is one.
#[inline]
fn mark(valid: &mut Vec<bool>, at: usize, is_valid: bool) {
    if !valid.is_empty() {
        valid.push(is_valid);
    } else if !is_valid {
        valid.resize(at, true);
        valid.push(false);
    }
}

/// Rows of a table.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Rows.
    pub rows: usize,
    /// By column.
    pub columns: Vec<Values>,
    /// By row: a number that no other row of the table has, and which it has in the answer to every question. SQL tells
    /// rows by it that two lookups find. May be left empty by a table whose rows are those of a chunk, one for one: then
    /// it is the number of the object, or of the row in the list.
    pub row_numbers: Vec<i64>,
    /// Stands in for columns that are not there.
    nowhere: Values,
}

impl Batch {
    /// No rows of these columns. `names` says which values the columns of names begin with, by column.
    pub fn new(columns: &[Column], wanted: Wanted, names: impl Fn(usize) -> ColumnNames) -> Self {
        let values = |(at, column): (usize, &Column)| {
            let is_name = column.kind == ColumnType::Name;
            if wanted.has(at) {
                Values::new(column.kind, &if is_name { names(at) } else { ColumnNames::default() })
            } else {
                Values::Absent
            }
        };
        Self {
            rows: 0,
            columns: columns.iter().enumerate().map(values).collect(),
            row_numbers: Vec::new(),
            nowhere: Values::Absent,
        }
    }

    /// Takes all rows out.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.row_numbers.clear();
        self.columns.iter_mut().for_each(Values::clear);
    }

    /// A column, to add to; a column that is not there takes nothing.
    #[inline]
    pub fn column(&mut self, at: usize) -> &mut Values {
        self.columns.get_mut(at).unwrap_or(&mut self.nowhere)
    }

    /// The value of a row.
    #[inline]
    pub fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        self.columns.get(column).map_or(Cell::Null, |values| values.cell(row))
    }
}
