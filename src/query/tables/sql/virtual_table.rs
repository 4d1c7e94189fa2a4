//! Tables of a dump as virtual tables of SQLite.
//!
//! All `unsafe` code of SQL is here: two unsafe impls, for types that begin with the fields of SQLite, and a memory
//! limit.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::io;
use std::sync::Arc;

use rusqlite::ffi;
use rusqlite::types::Value;
use rusqlite::vtab::{
    Context, CreateVTab, DistinctMode, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConnection,
    VTabCursor, VTabKind,
};

use super::ahead::ChunkReader;
use super::dump::{SqlDump, TableNumber};
use super::guard::{INTERRUPTED, QueryDeadline};
use crate::{
    Batch, Cell, ColumnSet, ColumnType, Definition, List, Lookup, LookupKey, Operator, PreparedData,
    TableChunk, TableQuery,
};

/// State shared by virtual tables.
#[derive(Debug, Clone)]
pub(super) struct TableData {
    /// Dump.
    pub(super) dump: Arc<SqlDump>,
    /// Deadline of the query: SQLite checks only between two rows.
    pub(super) clock: Arc<QueryDeadline>,
}

/// Module of the virtual tables; their argument is the number of the table, see [`argument`].
pub(super) const MODULE: &Module<'static, VirtualTable> = &Module::read_only_module();

/// Returns the argument of a virtual table.
pub(super) fn argument(table: TableNumber) -> String {
    match table {
        TableNumber::Fixed(number) => format!("fixed {number}"),
        TableNumber::OfClass(number) => format!("class {number}"),
    }
}

/// Second argument of a virtual table that is a placeholder for a missing one.
pub(super) const NONE: &str = "none";

fn read_argument(argument: &[u8]) -> Option<TableNumber> {
    let (kind, number) = std::str::from_utf8(argument).ok()?.split_once(' ')?;
    let number = number.parse().ok()?;
    match kind {
        "fixed" => Some(TableNumber::Fixed(number)),
        "class" => Some(TableNumber::OfClass(number)),
        _ => None,
    }
}

/// Returns a name quoted for SQL.
pub fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\"").replace('\0', "\u{fffd}"))
}

/// Returns the declaration of a table. Its name is ignored.
pub(super) fn declaration(name: &str, definition: &Definition) -> String {
    let column = |column: &crate::Column| format!("{} {}", quoted_name(&column.name), column.kind.sql_type());
    let columns: Vec<String> = definition.columns.iter().map(column).collect();
    format!("CREATE TABLE {}({})", quoted_name(name), columns.join(", "))
}

/// Limits the memory of SQLite in this process: allocations beyond it fail.
#[allow(unsafe_code)]
pub(super) fn limit_memory(bytes: u64) {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    // SAFETY: Takes any number, on any thread. PRAGMA hard_heap_limit could only lower it, permanently.
    unsafe { ffi::sqlite3_hard_heap_limit64(bytes) };
}

/// A virtual table.
#[repr(C)]
pub(super) struct VirtualTable {
    /// Fields of SQLite; they have to come first.
    base: ffi::sqlite3_vtab,
    shared: TableData,
    number: TableNumber,
    /// Name of the missing table for which this one is a placeholder.
    none: Option<String>,
    kinds: Vec<ColumnType>,
    rows: f64,
    lookups: Vec<Lookup>,
    orders: Vec<usize>,
}

/// Strategy for finding rows, passed from `best_index` to `filter`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Plan {
    wanted: ColumnSet,
    how: ScanKind,
}

/// Access path of a table scan.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ScanKind {
    All,
    OrderedBy(usize),
    Of(usize, Operator),
}

impl Plan {
    fn to_text(self) -> String {
        let (how, column) = match self.how {
            ScanKind::All => ("all", 0),
            ScanKind::OrderedBy(column) => ("ordered", column),
            ScanKind::Of(column, Operator::Equal) => ("equal", column),
            ScanKind::Of(column, Operator::AtLeast) => ("least", column),
        };
        format!("{how} {column} {}", self.wanted.0)
    }

    fn of_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let how = words.next()?;
        let column = words.next()?.parse().ok()?;
        let wanted = ColumnSet(words.next()?.parse().ok()?);
        let how = match how {
            "all" => ScanKind::All,
            "ordered" => ScanKind::OrderedBy(column),
            "equal" => ScanKind::Of(column, Operator::Equal),
            "least" => ScanKind::Of(column, Operator::AtLeast),
            _ => return None,
        };
        Some(Self { wanted, how })
    }
}

/// Cost of finding the first row by a lookup, in rows of a sequential read.
const LOOKUP_COST: f64 = 4.0;
/// Cost factor of reading all rows in an order other than that of the table: less than SQLite's sort.
const ORDER_COST: f64 = 1.5;

// SAFETY: The type is `repr(C)` and begins with `sqlite3_vtab`, which only SQLite writes.
#[allow(unsafe_code)]
unsafe impl<'vtab> VTab<'vtab> for VirtualTable {
    type Aux = TableData;
    type Cursor = TableCursor;

    fn connect(
        _: &mut VTabConnection,
        aux: Option<&TableData>,
        _: &[u8],
        _: &[u8],
        name: &[u8],
        arguments: &[&[u8]],
    ) -> rusqlite::Result<(Cow<'static, CStr>, Self)> {
        let wrong = || rusqlite::Error::ModuleError("no such table in the dump".to_owned());
        let shared = aux.ok_or_else(wrong)?.clone();
        let number = arguments.first().and_then(|argument| read_argument(argument)).ok_or_else(wrong)?;
        let (declaration, kinds, rows, lookups, orders) = (shared.dump)
            .table(number, |table| {
                let definition = table.definition();
                let kinds = definition.columns.iter().map(|column| column.kind).collect();
                // Counts of a dump are far below the precision of a float.
                #[allow(clippy::cast_precision_loss)]
                let rows = table.rows() as f64;
                let declaration = declaration(&String::from_utf8_lossy(name), definition);
                (declaration, kinds, rows, table.lookups(), table.orders())
            })
            .ok_or_else(wrong)?;
        let none = arguments.get(1).is_some_and(|argument| *argument == NONE.as_bytes());
        let none = none.then(|| String::from_utf8_lossy(name).into_owned());
        let declaration = CString::new(declaration)?;
        let base = ffi::sqlite3_vtab::default();
        Ok((Cow::Owned(declaration), Self { base, shared, number, none, kinds, rows, lookups, orders }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> rusqlite::Result<bool> {
        if let Some(name) = &self.none {
            return Err(rusqlite::Error::ModuleError(format!("no such table: {name}")));
        }
        let mut best: Option<(usize, Lookup)> = None;
        for (at, constraint) in info.constraints().enumerate() {
            let Ok(column) = usize::try_from(constraint.column()) else { continue };
            let operator = match constraint.operator() {
                IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ => Operator::Equal,
                IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GE
                | IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GT => Operator::AtLeast,
                _ => continue,
            };
            let found =
                self.lookups.iter().find(|known| known.column == column && known.operator == operator);
            let Some(lookup) = found.filter(|_| constraint.is_usable()) else { continue };
            // Tables compare texts exactly.
            if info.collation(at)? != "BINARY" {
                continue;
            }
            if best.is_none_or(|(_, best)| lookup.rows < best.rows) {
                best = Some((at, *lookup));
            }
        }
        let (how, rows, cost, is_ordered) = match best {
            Some((at, lookup)) => {
                let mut usage = info.constraint_usage(at);
                usage.set_argv_index(1);
                // More rows than the matching ones may be read.
                usage.set_omit(false);
                let rows = lookup.rows.clamp(1.0, self.rows.max(1.0));
                (ScanKind::Of(lookup.column, lookup.operator), rows, rows + LOOKUP_COST, false)
            }
            None => match self.order(info) {
                Some(column) => (ScanKind::OrderedBy(column), self.rows, self.rows * ORDER_COST, true),
                None => (ScanKind::All, self.rows, self.rows, false),
            },
        };
        let plan = Plan { wanted: ColumnSet(info.col_used()), how };
        info.set_idx_str(&plan.to_text());
        info.set_order_by_consumed(is_ordered);
        info.set_estimated_cost(cost.max(1.0));
        // Saturates, as intended.
        #[allow(clippy::cast_possible_truncation)]
        info.set_estimated_rows((rows as i64).max(1));
        Ok(true)
    }

    fn open(&'vtab mut self) -> rusqlite::Result<TableCursor> {
        Ok(TableCursor {
            base: ffi::sqlite3_vtab_cursor::default(),
            shared: self.shared.clone(),
            number: self.number,
            kinds: self.kinds.clone(),
            reader: None,
            prepared: None,
            chunk: None,
            wanted: None,
            batch: Batch::default(),
            row: 0,
            before: 0,
        })
    }
}

impl CreateVTab<'_> for VirtualTable {
    const KIND: VTabKind = VTabKind::Default;
}

impl VirtualTable {
    /// Returns the column by which rows should be ordered or grouped, if the table can provide that.
    fn order(&self, info: &IndexInfo) -> Option<usize> {
        let mut orders = info.order_bys();
        let order = orders.next().filter(|_| info.num_of_order_by() == 1)?;
        // GROUP BY and DISTINCT only need rows of equal values to be adjacent.
        let any = matches!(info.distinct(), DistinctMode::Grouped | DistinctMode::Distinct);
        let column = usize::try_from(order.column()).ok()?;
        (self.orders.contains(&column) && (any || !order.is_order_by_desc())).then_some(column)
    }
}

/// Cursor over the rows of a query.
#[repr(C)]
pub(super) struct TableCursor {
    /// Fields of SQLite; they have to come first.
    base: ffi::sqlite3_vtab_cursor,
    shared: TableData,
    number: TableNumber,
    kinds: Vec<ColumnType>,
    reader: Option<ChunkReader>,
    /// Data that speeds up reading. Kept when the cursor is filtered again: a join does so for each row of another table.
    prepared: Option<PreparedData>,
    chunk: Option<TableChunk>,
    /// Columns of the batch; they may differ between two plans for the same table.
    wanted: Option<ColumnSet>,
    batch: Batch,
    row: usize,
    /// Number of rows in the chunks already read.
    before: i64,
}

/// Converts a read error to an SQLite error: the dump cannot be read, or the thread that reads ahead noticed the deadline.
#[cold]
fn read_error(error: &io::Error) -> rusqlite::Error {
    if error.kind() == io::ErrorKind::Interrupted {
        return interrupt_error();
    }
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(error.to_string()))
}

/// Returns SQLite's own error for an interrupted query.
#[cold]
fn interrupt_error() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), Some(INTERRUPTED.to_owned()))
}

impl TableData {
    /// Returns an error if the query has to end: reading a chunk takes as long as many rows.
    fn check_deadline(&self) -> rusqlite::Result<()> {
        if self.clock.is_over() { Err(interrupt_error()) } else { Ok(()) }
    }
}

impl TableCursor {
    /// Reads chunks until there is a row.
    #[cold]
    fn refill(&mut self) -> rusqlite::Result<()> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        while self.row >= self.batch.rows {
            self.before = self.before.saturating_add_unsigned(self.batch.rows as u64);
            self.row = 0;
            // Many chunks may contain no matching row.
            self.shared.check_deadline()?;
            self.chunk =
                reader.next(&mut self.batch, &mut self.prepared).map_err(|error| read_error(&error))?;
            if self.chunk.is_none() {
                self.batch.rows = 0;
                self.reader = None;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the table query of a scan; `None` if no row can match.
    fn question(&self, how: ScanKind, arguments: &Filters<'_>) -> rusqlite::Result<Option<TableQuery>> {
        let (column, operator) = match how {
            ScanKind::All => return Ok(Some(TableQuery::All)),
            ScanKind::OrderedBy(column) => return Ok(Some(TableQuery::OrderedBy(column))),
            ScanKind::Of(column, operator) => (column, operator),
        };
        let is_text = matches!(self.kinds.get(column), Some(ColumnType::Text | ColumnType::Name));
        // Values are compared as SQLite does, by the affinity of the column; for other values all rows are read.
        let key = match (arguments.get::<Value>(0)?, is_text) {
            (Value::Null, _) => return Ok(None),
            (Value::Integer(number), false) => LookupKey::Integer(number),
            (Value::Integer(number), true) => LookupKey::Text(number.to_string()),
            (Value::Text(text), true) => LookupKey::Text(text),
            (Value::Text(text), false) => match text.trim().parse() {
                Ok(number) => LookupKey::Integer(number),
                Err(_) => return Ok(Some(TableQuery::All)),
            },
            (Value::Real(_) | Value::Blob(_), _) => return Ok(Some(TableQuery::All)),
        };
        Ok(Some(TableQuery::Of(column, operator, key)))
    }

    /// Returns the row number within the chunk.
    fn row_number(&self) -> i64 {
        if let Some(number) = self.batch.row_numbers.get(self.row) {
            return *number;
        }
        let of_list = |list: &List, range: &std::ops::Range<usize>| {
            let object = list.part(range.start.saturating_add(self.row)..range.end).next()?;
            (range.len() == self.batch.rows).then_some(i64::from(object.0))
        };
        let found = match &self.chunk {
            Some(TableChunk::Rows(rows)) if rows.len() == self.batch.rows => {
                i64::try_from(rows.start.saturating_add(self.row)).ok()
            }
            Some(TableChunk::Objects(objects))
                if objects.end.0.saturating_sub(objects.start.0) as usize == self.batch.rows =>
            {
                Some(i64::from(objects.start.0).saturating_add_unsigned(self.row as u64))
            }
            Some(TableChunk::Listed(list, range)) => of_list(list, range),
            _ => None,
        };
        found.unwrap_or_else(|| self.before.saturating_add_unsigned(self.row as u64))
    }
}

// SAFETY: The type is `repr(C)` and begins with `sqlite3_vtab_cursor`, which only SQLite writes.
#[allow(unsafe_code)]
unsafe impl VTabCursor for TableCursor {
    fn filter(&mut self, _: c_int, plan: Option<&str>, arguments: &Filters<'_>) -> rusqlite::Result<()> {
        let wrong =
            || rusqlite::Error::ModuleError("unexpected constraint on a table; this is a bug".to_owned());
        let Plan { wanted, how } = plan.and_then(Plan::of_text).ok_or_else(wrong)?;
        (self.row, self.before, self.batch.rows, self.chunk, self.reader) = (0, 0, 0, None, None);
        let Some(question) = self.question(how, arguments)? else { return Ok(()) };
        // Creates lists of objects.
        self.shared.check_deadline()?;
        let dump = &self.shared.dump;
        if self.wanted != Some(wanted) {
            self.batch = dump.table(self.number, |table| table.batch(wanted)).ok_or_else(wrong)?;
            self.wanted = Some(wanted);
        }
        let chunks = dump.chunks(self.number, &question).map_err(|error| read_error(&error))?;
        let TableData { dump, clock } = self.shared.clone();
        self.reader = Some(ChunkReader::new(dump, clock, self.number, wanted, chunks));
        self.refill()
    }

    #[inline]
    fn next(&mut self) -> rusqlite::Result<()> {
        self.row += 1;
        if self.row < self.batch.rows { Ok(()) } else { self.refill() }
    }

    #[inline]
    fn eof(&self) -> bool {
        self.row >= self.batch.rows
    }

    #[inline]
    fn column(&self, context: &mut Context, column: c_int) -> rusqlite::Result<()> {
        let column = usize::try_from(column).unwrap_or(usize::MAX);
        match self.batch.cell(self.row, column) {
            Cell::Null => Ok(()),
            Cell::Integer(value) => context.set_result(value),
            Cell::Real(value) => context.set_result(value),
            Cell::Text(value) => context.set_result(value),
        }
    }

    fn rowid(&self) -> rusqlite::Result<i64> {
        Ok(self.row_number())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read_as_they_are_written() {
        for how in [
            ScanKind::All,
            ScanKind::OrderedBy(3),
            ScanKind::Of(1, Operator::Equal),
            ScanKind::Of(63, Operator::AtLeast),
        ] {
            for wanted in [ColumnSet(0), ColumnSet(5), ColumnSet::ALL] {
                let plan = Plan { wanted, how };
                assert_eq!(Plan::of_text(&plan.to_text()), Some(plan));
            }
        }
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted_name("a\"b; DROP TABLE x"), "\"a\"\"b; DROP TABLE x\"");
    }
}
