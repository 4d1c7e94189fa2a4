//! Connection over the tables of one or several dumps, and tables of single classes created when a query names them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use rusqlite::{Connection, OpenFlags, Statement};
use rustc_hash::FxHashSet;

use super::dump::{SqlDump, TableNumber};
use super::error::{ErrorKind, SqlError};
use super::functions;
use super::guard::{self, QueryDeadline, RefusalMessage, SqlLimits, UnlockFlag};
use super::virtual_table::{self, MODULE, NONE, TableData, quoted_name};
use crate::NoClass;
use hprof_base::naming::suggestions;

/// Schema of the first dump.
const MAIN: &str = "main";

/// Maximum number of tables created for a query: SQLite joins no more than 64.
const MAX_MADE: usize = 256;

/// Tables of classes created for a query: number of the dump and table name.
type CreatedTables = FxHashSet<(usize, String)>;

/// SQLite connection over the tables of one or several dumps.
pub(super) struct SqlConnection {
    pub(super) connection: Connection,
    query: String,
    dumps: Arc<[Arc<SqlDump>]>,
    unlocked: UnlockFlag,
    refused: RefusalMessage,
}

impl SqlConnection {
    /// Opens a connection for a query, over the tables of `dumps` that it may refer to; names without a schema refer to
    /// the first dump.
    pub(super) fn new(
        dumps: &Arc<[Arc<SqlDump>]>,
        query: &str,
        limits: &SqlLimits,
        clock: Arc<QueryDeadline>,
    ) -> Result<Self, SqlError> {
        let refused = RefusalMessage::default();
        let unlocked = UnlockFlag::default();
        if let Some(bytes) = limits.memory {
            virtual_table::limit_memory(bytes);
        }
        // SQL ignores case in names.
        let lower = query.to_ascii_lowercase();
        let made = || -> rusqlite::Result<Connection> {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let mut connection = Connection::open_in_memory_with_flags(flags)?;
            guard::set_up(&connection)?;
            for (number, dump) in dumps.iter().enumerate() {
                let shared = TableData { dump: dump.clone(), clock: clock.clone() };
                connection.create_module(module(number).as_str(), MODULE, Some(shared))?;
                if number > 0 {
                    connection
                        .execute_batch(&format!("ATTACH ':memory:' AS {}", quoted_name(dump.schema())))?;
                }
                for (table, name) in dump.tables_in(&lower) {
                    connection.execute_batch(&creation(number, dump, &name, table))?;
                }
            }
            functions::register(&connection, dumps, &clock)?;
            guard::lock(&mut connection, unlocked.clone(), refused.clone(), clock)?;
            Ok(connection)
        };
        let connection = made().map_err(|error| SqlError::from_sqlite(&error))?;
        Ok(Self { connection, query: query.to_owned(), dumps: dumps.clone(), unlocked, refused })
    }

    /// Prepares the query, creating the tables of single classes that it names.
    pub(super) fn prepare(&self) -> Result<Statement<'_>, SqlError> {
        let mut made = CreatedTables::default();
        for _ in 0..MAX_MADE {
            let error = match self.connection.prepare(&self.query) {
                Ok(statement) => return self.check(statement),
                Err(error) => error,
            };
            let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
            let found = SqlError::from_sqlite(&error);
            if let Some(what) = refused {
                return Err(SqlError {
                    kind: ErrorKind::Refused,
                    message: format!("{what} is not allowed"),
                    hint: "a query is a single, read-only SELECT".to_owned(),
                    ..found
                });
            }
            match found.message.strip_prefix("no such table: ") {
                Some(name) if self.make(name, &mut made)? => {}
                Some(name) => return Err(self.no_table(name, &made, &found)),
                None => return Err(self.with_hint(found)),
            }
        }
        Err(SqlError::new(
            ErrorKind::Limit,
            "the query names too many classes",
            "split it into several queries",
        ))
    }

    fn check<'c>(&self, statement: Statement<'c>) -> Result<Statement<'c>, SqlError> {
        if statement.column_count() == 0 {
            let hint = "a query is one SELECT, such as SELECT class, count(*) FROM objects GROUP BY class";
            return Err(SqlError::new(ErrorKind::Wrong, "the query is empty, or not a SELECT", hint));
        }
        if statement.parameter_count() > 0 {
            let message = "the query has parameters, which cannot be given values";
            return Err(SqlError::new(ErrorKind::Wrong, message, "write the values in the query"));
        }
        Ok(statement)
    }

    /// Creates the table of a class, if there is one of this name that is not in `made` yet.
    fn make(&self, name: &str, made: &mut CreatedTables) -> Result<bool, SqlError> {
        for (number, dump, class) in self.meant(name) {
            // SQLite still does not find a table: the name belongs to another dump, or has a dot before it.
            if made.contains(&(number, class.to_owned())) {
                continue;
            }
            let table = match dump.of_class(class) {
                Ok(table) => table,
                Err(NoClass::Unknown { .. }) => continue,
                Err(NoClass::Case { name, by_id }) => {
                    let message =
                        format!("the class name {name} is ambiguous: several names differ only in case");
                    let hint = format!("use the table of one of them: {}", by_id.join(", "));
                    return Err(SqlError::new(ErrorKind::Unknown, message, hint));
                }
            };
            made.insert((number, class.to_owned()));
            let mut sql = creation(number, dump, class, table);
            // SQLite searches a name without a schema in all dumps, but it refers to the first one.
            if let Some(first) = self.dumps.first()
                && !made.contains(&(0, class.to_owned()))
            {
                sql.push(';');
                sql.push_str(&match first.of_class(class) {
                    Ok(table) => {
                        made.insert((0, class.to_owned()));
                        creation(0, first, class, table)
                    }
                    Err(_) => creation_of_none(number, class, table),
                });
            }
            self.unlocked.store(true, Ordering::Relaxed);
            let done = self.connection.execute_batch(&sql);
            self.unlocked.store(false, Ordering::Relaxed);
            return done.map(|()| true).map_err(|error| {
                let error = SqlError::from_sqlite(&error);
                SqlError {
                    message: format!("cannot create a table for the class {class}: {}", error.message),
                    ..error
                }
            });
        }
        Ok(false)
    }

    /// Returns the dumps that a table name may refer to, and the rest of the name: the part before a dot is a schema or a
    /// package.
    fn meant<'n>(&self, name: &'n str) -> impl Iterator<Item = (usize, &Arc<SqlDump>, &'n str)> {
        let all = self.dumps.iter().enumerate();
        all.flat_map(move |(number, dump)| {
            let rest = name
                .split_once('.')
                .filter(|(schema, _)| schema.eq_ignore_ascii_case(schema_of(number, dump)));
            let plain = (number == 0).then_some(name);
            rest.map(|(_, rest)| rest).into_iter().chain(plain).map(move |name| (number, dump, name))
        })
    }

    /// Returns the error for a missing table, with alternatives.
    fn no_table(&self, name: &str, made: &CreatedTables, found: &SqlError) -> SqlError {
        let is_missing = |(number, _, class): &(usize, &Arc<SqlDump>, &str)| {
            !made.contains(&(*number, (*class).to_owned()))
        };
        let meant = self.meant(name).find(is_missing);
        let (dump, wanted) = meant.map_or((self.dumps.first(), name), |(_, dump, name)| (Some(dump), name));
        let definitions = dump.map(|dump| dump.definitions()).unwrap_or_default();
        let tables = definitions.iter().map(|definition| &*definition.name);
        let mut like: Vec<String> =
            suggestions::names_like(wanted, tables.clone()).into_iter().map(str::to_owned).collect();
        let classes = dump.map(|dump| dump.class_names()).unwrap_or_default();
        let names = suggestions::class_names_of(classes.iter(), wanted);
        like.extend(names.into_iter().map(quoted_name));
        let hint = match like.as_slice() {
            [] => format!("the tables are {}, and one for each class", tables.collect::<Vec<_>>().join(", ")),
            like => suggestions::did_you_mean(like.get(..MAX_LIKE).unwrap_or(like)),
        };
        SqlError {
            kind: ErrorKind::Unknown,
            message: format!("no table or class named {wanted}"),
            hint,
            offset: found.offset,
        }
    }

    /// Adds a hint to an error of SQLite.
    fn with_hint(&self, error: SqlError) -> SqlError {
        if let Some(name) = error.message.strip_prefix("no such column: ") {
            let wanted = name.rsplit_once('.').map_or(name, |(_, name)| name);
            let all = self.dumps.iter().flat_map(|dump| dump.definitions());
            let columns: Vec<String> =
                all.flat_map(|table| table.columns).map(|column| column.name.into_owned()).collect();
            let like = suggestions::names_like(wanted, columns.iter().map(String::as_str));
            let hint = match like.as_slice() {
                [] => "text values need single quotes; `.schema TABLE` in the shell lists the columns"
                    .to_owned(),
                like => suggestions::did_you_mean(like),
            };
            return SqlError { message: format!("no column named {name}"), hint, ..error };
        }
        if error.message.starts_with("near \".\"") {
            let hint = "write class names in double quotes: FROM \"com.acme.Session\"".to_owned();
            return SqlError { hint, ..error };
        }
        error
    }
}

/// Maximum number of suggested names.
const MAX_LIKE: usize = 5;

/// Returns the name of the module that provides the tables of a dump.
fn module(number: usize) -> String {
    format!("dump{number}")
}

fn schema_of(number: usize, dump: &SqlDump) -> &str {
    if number == 0 { MAIN } else { dump.schema() }
}

fn creation(number: usize, dump: &SqlDump, name: &str, table: TableNumber) -> String {
    let (schema, name) = (quoted_name(schema_of(number, dump)), quoted_name(name));
    let argument = virtual_table::argument(table);
    format!("CREATE VIRTUAL TABLE IF NOT EXISTS {schema}.{name} USING {}({argument})", module(number))
}

/// Returns the statement that creates a placeholder in the first dump for a class that only another dump has.
fn creation_of_none(number: usize, name: &str, table: TableNumber) -> String {
    let (name, module, argument) = (quoted_name(name), module(number), virtual_table::argument(table));
    format!("CREATE VIRTUAL TABLE IF NOT EXISTS {MAIN}.{name} USING {module}({argument}, {NONE})")
}
