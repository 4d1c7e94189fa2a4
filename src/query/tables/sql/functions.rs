//! SQL functions in addition to SQLite's own.

use std::sync::Arc;

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Error, ToSql};

use super::dump::{FunctionValue, SqlDump};
use super::guard::{INTERRUPTED, QueryDeadline};
use super::{like, real_text};
use hprof_base::naming::pattern::ClassPattern;

/// An SQL function, for help and completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Name.
    pub name: &'static str,
    /// Arguments.
    pub arguments: &'static str,
    /// Meaning.
    pub meaning: &'static str,
}

/// All functions.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "text",
        arguments: "id",
        meaning: "description of an object: the text of a String, the name of a thread",
    },
    Function {
        name: "value",
        arguments: "id, 'a.b'",
        meaning: "value of a field, or of a field of the object that it references",
    },
    Function { name: "class_of", arguments: "id", meaning: "class of an object" },
    Function { name: "size", arguments: "id", meaning: "number of elements of a collection or an array" },
    Function { name: "path", arguments: "id", meaning: "shortest path from a GC root" },
    Function { name: "dominates", arguments: "a, b", meaning: "whether all paths to b lead through a" },
    Function { name: "glob", arguments: "pattern, text", meaning: "class patterns: name GLOB 'com.acme.**'" },
];

impl ToSql for FunctionValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Nothing => ToSqlOutput::Owned(Value::Null),
            Self::Integer(value) => ToSqlOutput::Owned(Value::Integer(*value)),
            Self::Real(value) => ToSqlOutput::Owned(Value::Real(*value)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

/// Returns the argument at `at`, an ID; `None` for null.
fn id(context: &Context<'_>, at: usize) -> rusqlite::Result<Option<i64>> {
    match context.get_raw(at) {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(id) => Ok(Some(id)),
        _ => Err(wrong("expected an object ID: a number such as 0x7f0a10, or a column of IDs")),
    }
}

/// Returns the argument at `at`, a text; `None` for null.
fn text<'c>(context: &'c Context<'_>, at: usize) -> rusqlite::Result<Option<&'c str>> {
    match context.get_raw(at) {
        ValueRef::Null => Ok(None),
        ValueRef::Text(bytes) => {
            std::str::from_utf8(bytes).map(Some).map_err(|_| wrong("an argument is not valid UTF-8"))
        }
        _ => Err(wrong("expected a text as argument")),
    }
}

#[cold]
fn wrong(message: &str) -> Error {
    Error::UserFunctionError(message.into())
}

/// Returns the dump to which a call refers: an additional argument after the first `arguments` names its schema.
fn dump<'d>(
    dumps: &'d [Arc<SqlDump>],
    context: &Context<'_>,
    arguments: usize,
) -> rusqlite::Result<&'d Arc<SqlDump>> {
    let found = if context.len() > arguments {
        let schema = text(context, arguments)?.unwrap_or_default();
        dumps.iter().find(|dump| dump.schema().eq_ignore_ascii_case(schema))
    } else {
        dumps.first()
    };
    found.ok_or_else(|| wrong("the last argument must be the name of an attached dump"))
}

const FLAGS: FunctionFlags = FunctionFlags::SQLITE_UTF8
    .union(FunctionFlags::SQLITE_DETERMINISTIC)
    .union(FunctionFlags::SQLITE_DIRECTONLY);

/// Registers the functions with SQLite.
pub(super) fn register(
    connection: &Connection,
    dumps: &Arc<[Arc<SqlDump>]>,
    clock: &Arc<QueryDeadline>,
) -> rusqlite::Result<()> {
    /// Implementation of an SQL function of one object.
    type Tell = fn(&SqlDump, i64) -> FunctionValue;
    let of_id: [(&str, Tell); 4] = [
        ("text", SqlDump::text),
        ("class_of", SqlDump::class_of),
        ("size", SqlDump::size),
        ("path", SqlDump::path),
    ];
    for (name, tell) in of_id {
        for count in 1..=2 {
            let (dumps, clock) = (dumps.clone(), clock.clone());
            connection.create_scalar_function(name, count, FLAGS, move |context| {
                in_time(&clock)?;
                let dump = dump(&dumps, context, 1)?;
                Ok(id(context, 0)?.map_or(FunctionValue::Nothing, |id| tell(dump, id)))
            })?;
        }
    }
    for count in 2..=3 {
        let (known, time) = (dumps.clone(), clock.clone());
        connection.create_scalar_function("value", count, FLAGS, move |context| {
            in_time(&time)?;
            let dump = dump(&known, context, 2)?;
            Ok(match (id(context, 0)?, text(context, 1)?) {
                (Some(id), Some(path)) => dump.value(id, path),
                _ => FunctionValue::Nothing,
            })
        })?;
        let (known, time) = (dumps.clone(), clock.clone());
        connection.create_scalar_function("dominates", count, FLAGS, move |context| {
            in_time(&time)?;
            let dump = dump(&known, context, 2)?;
            let both = id(context, 0)?.zip(id(context, 1)?);
            Ok(both.and_then(|(dominator, dominated)| dump.dominates(dominator, dominated)))
        })?;
    }
    let time = clock.clone();
    connection.create_scalar_function("glob", 2, FLAGS, move |context| {
        in_time(&time)?;
        let (Some(pattern), Some(name)) = (text(context, 0)?, as_text(context, 1)) else { return Ok(None) };
        check_pattern(pattern)?;
        // Parsed once for all rows.
        let pattern = context.get_or_create_aux(0, |pattern| -> Result<ClassPattern, BoxedError> {
            Ok(pattern.as_str()?.parse()?)
        })?;
        Ok(Some(pattern.matches(&name)))
    })?;
    for count in 2..=3 {
        let clock = clock.clone();
        connection.create_scalar_function("like", count, FLAGS, move |context| {
            in_time(&clock)?;
            let (Some(pattern), Some(name)) = (as_text(context, 0), as_text(context, 1)) else {
                return Ok(None);
            };
            check_pattern(&pattern)?;
            let escape = if count == 3 { text(context, 2)? } else { None };
            let mut characters = escape.unwrap_or_default().chars();
            let escape = characters.next();
            if (count == 3 && escape.is_none()) || characters.next().is_some() {
                return Err(wrong("ESCAPE requires exactly one character"));
            }
            let found = like::matches(&pattern, &name, escape, || clock.is_over());
            found.map(Some).ok_or_else(|| wrong(INTERRUPTED))
        })?;
    }
    Ok(())
}

/// Maximum length of a pattern in bytes.
const MAX_PATTERN: usize = 1000;

fn check_pattern(pattern: &str) -> rusqlite::Result<()> {
    if pattern.len() > MAX_PATTERN { Err(wrong("LIKE or GLOB pattern too complex")) } else { Ok(()) }
}

type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// Returns an argument as a text, converting numbers and blobs; `None` for null.
fn as_text<'c>(context: &'c Context<'_>, at: usize) -> Option<std::borrow::Cow<'c, str>> {
    Some(match context.get_raw(at) {
        ValueRef::Null => return None,
        ValueRef::Integer(value) => value.to_string().into(),
        ValueRef::Real(value) => real_text::format_real(value)?.into(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes),
    })
}

/// Returns an error if the query has to end: a call may take as long as many instructions.
fn in_time(clock: &QueryDeadline) -> rusqlite::Result<()> {
    if clock.is_over() { Err(wrong(INTERRUPTED)) } else { Ok(()) }
}
