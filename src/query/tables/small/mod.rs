//! Tables that are small or produced at once: the results of `threads`, `loaders`, `leaks`, `waste` and other
//! commands, as rows.
//!
//! Most are [`SmallTable`]: all rows are produced when the first is read, and cached. [`threads`] produces its rows thread
//! by thread, since a dump can contain a million threads.

pub(super) mod allocation_sites;
pub(super) mod dumps;
pub(super) mod loaders;
pub(super) mod places;
pub(super) mod recorded;
mod rows;
pub(super) mod suspects;
pub(super) mod threads;
pub(super) mod waste;

use std::io;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::{
    Batch, Cell, ColumnNames, ColumnSet, ColumnType, Definition, Lookup, LookupKey, Operator, Table,
    TableChunk, TableContext, TableQuery, Values,
};

/// Function that adds all rows of a table.
pub(super) type MakeRows = fn(&TableContext<'_>, &mut Batch) -> io::Result<()>;

/// A table whose rows are produced at once.
struct SmallTable<'a> {
    context: Arc<TableContext<'a>>,
    definition: Definition,
    make: MakeRows,
    made: OnceLock<Result<Batch, (io::ErrorKind, String)>>,
    /// Row numbers by value, for each column; for joins.
    rows_of: Vec<OnceLock<RowsOf>>,
}

/// Row numbers by value of a column.
type RowsOf = FxHashMap<LookupKey, Vec<usize>>;

/// Approximate number of rows with the same value.
const ROWS_OF_VALUE: f64 = 8.0;

/// Approximate number of rows of a table before they are produced.
const USUAL_ROWS: u64 = 100;

/// Opens a table with the rows that `make` adds.
pub(super) fn open<'a>(
    context: &Arc<TableContext<'a>>,
    definition: Definition,
    make: MakeRows,
) -> Box<dyn Table + 'a> {
    let rows_of = definition.columns.iter().map(|_| OnceLock::new()).collect();
    Box::new(SmallTable { context: context.clone(), definition, make, made: OnceLock::new(), rows_of })
}

impl SmallTable<'_> {
    /// Returns a chunk for each row with the given value in a column.
    fn find(&self, column: usize, key: &LookupKey) -> io::Result<Vec<TableChunk>> {
        let made = self.cached_batch()?;
        let Some(rows_of) = self.rows_of.get(column) else { return Ok(Vec::new()) };
        let rows_of = rows_of.get_or_init(|| {
            let mut rows_of = RowsOf::default();
            for row in 0..made.rows {
                let key = match made.cell(row, column) {
                    Cell::Integer(value) => LookupKey::Integer(value),
                    Cell::Text(text) => LookupKey::Text(text.to_owned()),
                    Cell::Null | Cell::Real(_) => continue,
                };
                rows_of.entry(key).or_default().push(row);
            }
            rows_of
        });
        let rows = rows_of.get(key).map(Vec::as_slice).unwrap_or_default();
        Ok(rows.iter().map(|row| TableChunk::Rows(*row..*row + 1)).collect())
    }

    fn cached_batch(&self) -> Result<&Batch, io::Error> {
        let made = once(&self.made, || {
            let columns = &self.definition.columns;
            let mut rows = Batch::new(columns, ColumnSet::ALL, |_| ColumnNames::default());
            let made = (self.make)(&self.context, &mut rows);
            made.map(|()| rows).map_err(|error| (error.kind(), error.to_string()))
        });
        made.as_ref().map_err(|(kind, text)| io::Error::new(*kind, text.clone()))
    }
}

/// Returns the value of `cell`, computing it if empty. No lock is held meanwhile, unlike in `OnceLock::get_or_init`:
/// the computation uses all cores, and a thread that waits for the others may be given a job that needs the same value.
fn once<T>(cell: &OnceLock<T>, make: impl Fn() -> T) -> &T {
    if cell.get().is_none() {
        // Another thread may have been faster; both results are the same.
        let _ = cell.set(make());
    }
    cell.get_or_init(make)
}

impl Table for SmallTable<'_> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn rows(&self) -> u64 {
        match self.made.get() {
            Some(Ok(batch)) => batch.rows as u64,
            _ => USUAL_ROWS,
        }
    }

    fn lookups(&self) -> Vec<Lookup> {
        // Columns for joins: objects, classes, serial numbers of traces.
        let is_key = |kind: ColumnType, name: &str| {
            matches!(kind, ColumnType::Id | ColumnType::Name) || name == "trace"
        };
        let columns = self.definition.columns.iter().enumerate();
        let keys = columns.filter(|(_, column)| is_key(column.kind, &column.name));
        keys.map(|(column, _)| Lookup { column, operator: Operator::Equal, rows: ROWS_OF_VALUE }).collect()
    }

    fn names(&self, column: usize) -> ColumnNames {
        match self.cached_batch().ok().and_then(|batch| batch.columns.get(column)) {
            Some(Values::Names { names, .. }) => names.clone(),
            _ => ColumnNames::default(),
        }
    }

    fn chunks(&self, question: &TableQuery) -> io::Result<Vec<TableChunk>> {
        match question {
            TableQuery::Of(column, _, key) => self.find(*column, key),
            // Produced here, not when rows are read: the computation uses all cores, and the reader may be one of
            // several threads that wait for each other.
            _ => Ok(vec![TableChunk::Rows(0..self.cached_batch()?.rows)]),
        }
    }

    fn read(&self, chunk: &TableChunk, wanted: ColumnSet, batch: &mut Batch) -> io::Result<()> {
        let TableChunk::Rows(rows) = chunk else { return Ok(()) };
        let made = self.cached_batch()?;
        let rows = rows.start.min(made.rows)..rows.end.min(made.rows);
        for (at, from) in made.columns.iter().enumerate().filter(|(at, _)| wanted.has(*at)) {
            rows::copy(from, rows.clone(), batch.column(at));
        }
        batch.rows += rows.len();
        Ok(())
    }
}
