//! Tables that are small or made at once: what `threads`, `loaders`, `leaks`, `waste` and other commands tell, as rows.
//!
//! Most are [`Small`]: all rows are made when the first is read, and kept. [`threads`] makes its rows thread by thread, since a
//! dump can hold a million threads.

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
    Batch, Cell, Chunk, Context, Definition, Key, Kind, Lookup, Names, Operator, Question, Table, Values,
    Wanted,
};

use rows::Rows;

/// Makes all rows of a table.
pub(super) type Make = fn(&Context<'_>, &mut Rows) -> io::Result<()>;

/// A table whose rows are made at once.
struct Small<'a> {
    context: Arc<Context<'a>>,
    definition: Definition,
    make: Make,
    made: OnceLock<Result<Batch, (io::ErrorKind, String)>>,
    /// By column: the rows of each value, for joins.
    rows_of: Vec<OnceLock<RowsOf>>,
}

/// The rows of each value of a column.
type RowsOf = FxHashMap<Key, Vec<usize>>;

/// Rows of one value, about.
const ROWS_OF_VALUE: f64 = 8.0;

/// About how many rows a table has whose rows are not made yet.
const USUAL_ROWS: u64 = 100;

/// A table whose rows `make` makes.
pub(super) fn open<'a>(
    context: &Arc<Context<'a>>,
    definition: Definition,
    make: Make,
) -> Box<dyn Table + 'a> {
    let rows_of = definition.columns.iter().map(|_| OnceLock::new()).collect();
    Box::new(Small { context: context.clone(), definition, make, made: OnceLock::new(), rows_of })
}

impl Small<'_> {
    /// The rows that have a value in a column, one chunk each.
    fn find(&self, column: usize, key: &Key) -> io::Result<Vec<Chunk>> {
        let made = self.made()?;
        let Some(rows_of) = self.rows_of.get(column) else { return Ok(Vec::new()) };
        let rows_of = rows_of.get_or_init(|| {
            let mut rows_of = RowsOf::default();
            for row in 0..made.rows {
                let key = match made.cell(row, column) {
                    Cell::Integer(value) => Key::Integer(value),
                    Cell::Text(text) => Key::Text(text.to_owned()),
                    Cell::Null | Cell::Real(_) => continue,
                };
                rows_of.entry(key).or_default().push(row);
            }
            rows_of
        });
        let rows = rows_of.get(key).map(Vec::as_slice).unwrap_or_default();
        Ok(rows.iter().map(|row| Chunk::Rows(*row..*row + 1)).collect())
    }

    fn made(&self) -> Result<&Batch, io::Error> {
        let made = once(&self.made, || {
            let mut rows = Rows::new(&self.definition.columns);
            let made = (self.make)(&self.context, &mut rows);
            made.map(|()| rows.finish()).map_err(|error| (error.kind(), error.to_string()))
        });
        made.as_ref().map_err(|(kind, text)| io::Error::new(*kind, text.clone()))
    }
}

/// What `cell` holds, made if it is empty. No lock is held meanwhile, unlike in `OnceLock::get_or_init`: what is made here
/// runs on all cores, and a thread that waits for the others may be given a job that wants the same.
fn once<T>(cell: &OnceLock<T>, make: impl Fn() -> T) -> &T {
    if cell.get().is_none() {
        // Another thread may have been faster; both made the same.
        let _ = cell.set(make());
    }
    cell.get_or_init(make)
}

impl Table for Small<'_> {
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
        // What tables are joined by: objects, classes, serial numbers of traces.
        let is_key = |kind: Kind, name: &str| matches!(kind, Kind::Id | Kind::Name) || name == "trace";
        let columns = self.definition.columns.iter().enumerate();
        let keys = columns.filter(|(_, column)| is_key(column.kind, &column.name));
        keys.map(|(column, _)| Lookup { column, operator: Operator::Equal, rows: ROWS_OF_VALUE }).collect()
    }

    fn names(&self, column: usize) -> Names {
        match self.made().ok().and_then(|batch| batch.columns.get(column)) {
            Some(Values::Names { names, .. }) => names.clone(),
            _ => Names::default(),
        }
    }

    fn chunks(&self, question: &Question) -> io::Result<Vec<Chunk>> {
        match question {
            Question::Of(column, _, key) => self.find(*column, key),
            // Made here, not when rows are read: that runs on all cores, and who reads may be one of several threads that
            // wait for one another's turn.
            _ => Ok(vec![Chunk::Rows(0..self.made()?.rows)]),
        }
    }

    fn read(&self, chunk: &Chunk, wanted: Wanted, batch: &mut Batch) -> io::Result<()> {
        let Chunk::Rows(rows) = chunk else { return Ok(()) };
        let made = self.made()?;
        let rows = rows.start.min(made.rows)..rows.end.min(made.rows);
        for (at, from) in made.columns.iter().enumerate().filter(|(at, _)| wanted.has(*at)) {
            rows::copy(from, rows.clone(), batch.column(at));
        }
        batch.rows += rows.len();
        Ok(())
    }
}
