//! Rows of a table, column by column.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::column_names::ColumnNames;
use super::definition::{Column, ColumnSet, ColumnType};
use hprof_base::fact::FactValue;
use hprof_values::ObjectId;

/// A borrowed value of a table cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// Null.
    Null,
    /// An integer, a boolean (0 or 1), or an object ID.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// A text.
    Text(&'a str),
}

/// Values of a column.
#[derive(Debug, Clone, Default)]
pub enum Values {
    /// Column that is not requested: ignores added values.
    #[default]
    Absent,
    /// Integers, booleans or object IDs.
    Integers {
        /// Values; 0 for null.
        values: Vec<i64>,
        /// Validity by row; empty if all are valid.
        valid: Vec<bool>,
    },
    /// Floating-point numbers.
    Reals {
        /// Values; 0 for null.
        values: Vec<f64>,
        /// Validity by row; empty if all are valid.
        valid: Vec<bool>,
    },
    /// Texts.
    Texts {
        /// All texts, concatenated.
        text: String,
        /// End of each text.
        ends: Vec<usize>,
        /// Validity by row; empty if all are valid.
        valid: Vec<bool>,
    },
    /// Texts with few distinct values.
    Names {
        /// Distinct values.
        names: ColumnNames,
        /// Number of each row's value; [`NO_NAME`] for null.
        numbers: Vec<u32>,
        /// Numbers of the values that were added as texts.
        known: FxHashMap<String, u32>,
    },
}

/// Number that stands for null in [`Values::Names`].
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
                // Releases the memory of a long text.
                text.clear();
                text.shrink_to(1 << 20);
                ends.clear();
                valid.clear();
            }
            Self::Names { numbers, .. } => numbers.clear(),
        }
    }

    /// Adds the value of a fact. A class is added as its class number.
    pub fn fact(&mut self, value: &FactValue<'_>) {
        match value {
            FactValue::Null => self.null(),
            FactValue::Boolean(value) => self.boolean(Some(*value)),
            FactValue::Integer(value) => self.count(Some(*value)),
            FactValue::Signed(value) => self.integer(Some(*value)),
            FactValue::Float(value) => self.real(Some(*value)),
            FactValue::Id(id) => self.id(Some(*id)),
            FactValue::Text(text) => self.text(Some(text)),
            FactValue::Class(class) => self.name(Some(class.0)),
        }
    }

    /// Adds null.
    fn null(&mut self) {
        match self {
            Self::Absent => {}
            Self::Integers { .. } => self.integer(None),
            Self::Reals { .. } => self.real(None),
            Self::Texts { .. } => self.text(None),
            Self::Names { .. } => self.name(None),
        }
    }

    /// Adds an integer, boolean or object ID.
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

    /// Adds a boolean.
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

    /// Adds a text. In a column of names it becomes one of the distinct values.
    pub fn text(&mut self, value: Option<&str>) {
        match self {
            Self::Texts { text, ends, valid } => {
                mark(valid, ends.len(), value.is_some());
                text.push_str(value.unwrap_or_default());
                ends.push(text.len());
            }
            Self::Names { .. } => {
                let number = value.and_then(|value| self.number(value));
                self.name(number);
            }
            _ => {}
        }
    }

    /// Returns the number of a text in a column of names, adding the text to the distinct values. Readers that know which rows
    /// have the same text call this once for all of these rows.
    pub fn number(&mut self, value: &str) -> Option<u32> {
        let Self::Names { names, known, .. } = self else { return None };
        if known.is_empty() {
            let all = names.iter().map(str::to_owned).zip(0u32..);
            known.extend(all);
        }
        if let Some(number) = known.get(value) {
            return Some(*number);
        }
        let number = u32::try_from(names.len()).ok()?;
        Arc::make_mut(names).push(value);
        known.insert(value.to_owned(), number);
        Some(number)
    }

    /// Removes the distinct values of a column of names if the column has no rows and they are longer than `max_bytes`: a
    /// reader of ever new names accumulates them.
    pub(super) fn forget_names(&mut self, max_bytes: usize) {
        if let Self::Names { names, known, .. } = self
            && names.bytes() > max_bytes
        {
            *names = ColumnNames::default();
            *known = FxHashMap::default();
        }
    }

    /// Adds a name by its number in [`Values::Names`].
    #[inline]
    pub fn name(&mut self, number: Option<u32>) {
        if let Self::Names { numbers, .. } = self {
            numbers.push(number.unwrap_or(NO_NAME));
        }
    }

    /// Returns the value of a row.
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

/// Records the validity of the value at `at`.
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
    /// Number of rows.
    pub rows: usize,
    /// Values by column.
    pub columns: Vec<Values>,
    /// Number of each row: unique in the table, and the same for every query. SQL uses it to identify rows found by
    /// two lookups. A table whose rows correspond to those of a chunk may leave it empty: then it is the number of
    /// the object, or of the row in the list.
    pub row_numbers: Vec<i64>,
    /// Returned by [`Self::column`] for a missing column.
    nowhere: Values,
}

impl Batch {
    /// Creates an empty batch of these columns. `names` returns the initial values of the columns of names, by column.
    pub fn new(columns: &[Column], wanted: ColumnSet, names: impl Fn(usize) -> ColumnNames) -> Self {
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

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.row_numbers.clear();
        self.columns.iter_mut().for_each(Values::clear);
    }

    /// Returns a column to add to; a missing column ignores values.
    #[inline]
    pub fn column(&mut self, at: usize) -> &mut Values {
        self.columns.get_mut(at).unwrap_or(&mut self.nowhere)
    }

    /// Returns the value of a row.
    #[inline]
    pub fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        self.columns.get(column).map_or(Cell::Null, |values| values.cell(row))
    }
}
