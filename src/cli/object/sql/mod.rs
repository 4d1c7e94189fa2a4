//! `sql`: queries in SQL, over the tables of a dump.

mod columns;
mod complete;
mod shell;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;

use hprof_index::storage::memory;
use hprof_index::{Heap, ObjectGraph};
use hprof_query::sql::{self, Cell, Dump, ErrorKind, Limits, MAX_ATTACHED, MAX_LEN, Row, SqlError};
use hprof_report::Format;
use hprof_report::answer::{Answer, Declared};
use hprof_report::json;

use crate::cli::Outcome;
use crate::cli::shared::args::{Input, Output};
use crate::cli::shared::context::RunContext;
use crate::cli::shared::limit::Top;
use crate::cli::shared::query_text;
use crate::cli::shared::session::{KEPT, Session, Source};

pub(crate) const EXAMPLES: &str = r#"Examples:
  hprof-cli sql heap.hprof 'SELECT class, count(*), sum(shallow_bytes) FROM objects GROUP BY 1 ORDER BY 3 DESC'
  hprof-cli sql heap.hprof 'SELECT object, path(object) FROM objects WHERE retained_bytes >= 100000000'
  hprof-cli sql heap.hprof 'SELECT text(user), lastAccess FROM "com.acme.Session" ORDER BY 2 LIMIT 10'
  hprof-cli sql new.hprof --attach old=old.hprof 'SELECT n.name, n.instances - o.instances AS more
      FROM classes n JOIN old.classes o USING (name) ORDER BY more DESC'
  hprof-cli sql heap.hprof"#;

/// Rows of a table when nothing is said.
const DEFAULT_TOP: usize = 25;
/// Bytes of rows that are made before anything is shown; [`KEPT`] rows with long texts would take more.
const KEPT_BYTES: usize = 16 << 20;
/// Memory of SQLite in any case: it works with less, but not well.
const LEAST_MEMORY: u64 = 32 << 20;

/// Query the dump as SQL tables
///
/// Tables: classes, objects, refs, roots, strings, arrays, fields and more, and one for each class by its name in
/// double quotes: "com.acme.Session" has its fields as columns. Functions beside SQLite's own: text(object),
/// value(object, 'a.b'), path(object), size(object), class_of(object), dominates(a, b); `name GLOB 'com.acme.**'` takes class patterns.
///
/// Without QUERY on a terminal it is a shell. docs/sql.md is the reference. Builds the index on first use.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Query to run: one SELECT [default: a shell on a terminal, else stdin]
    #[arg(value_name = "QUERY", help_heading = "Filter")]
    query: Option<String>,

    /// Read the query from FILE; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "query", help_heading = "Filter")]
    file: Option<PathBuf>,

    /// Another dump, whose tables are NAME.classes and so on; may be repeated
    #[arg(long, value_name = "NAME=DUMP", help_heading = "Input", value_parser = attachment)]
    attach: Vec<(String, PathBuf)>,

    /// How long the query may take, for example 10min; 0 for any time
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = "Filter", value_parser = time_limit)]
    time_limit: TimeLimit,

    #[command(flatten)]
    top: Top<DEFAULT_TOP>,

    #[command(flatten)]
    output: Output,
}

/// A time, or any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimeLimit(Option<Duration>);

fn time_limit(text: &str) -> Result<TimeLimit, String> {
    if text == "0" {
        return Ok(TimeLimit(None));
    }
    let wrong = || "a time is expected, such as 90s or 10min; 0 is any time".to_owned();
    let duration: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    let duration = Duration::try_from(duration).map_err(|_| wrong())?;
    Ok(TimeLimit(Some(duration).filter(|duration| !duration.is_zero())))
}

/// Schemas that SQLite has already.
const TAKEN: [&str; 2] = ["main", "temp"];

fn attachment(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("NAME=DUMP is expected, such as old=monday.hprof")?;
    let is_plain = |name: &str| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.chars().next().is_none_or(|first| first.is_ascii_digit())
    };
    if !is_plain(name) || TAKEN.iter().any(|taken| taken.eq_ignore_ascii_case(name)) {
        return Err(format!(
            "a name is letters, digits and _, begins with a letter, and is not {}",
            TAKEN.join(" or ")
        ));
    }
    if path.is_empty() {
        return Err("the name is followed by the path of a dump: NAME=DUMP".to_owned());
    }
    Ok((name.to_owned(), path.into()))
}

pub(crate) fn run(cx: &RunContext, args: &Args) -> anyhow::Result<Outcome> {
    let query = match (&args.query, &args.file) {
        (Some(query), _) => query.clone(),
        (None, Some(file)) => query_text::read(file, MAX_LEN)?,
        (None, None) if std::io::stdin().is_terminal() => return shell::run(cx, args),
        (None, None) => query_text::read(std::path::Path::new("-"), MAX_LEN)?,
    };
    let (opened, found) =
        with_all(cx, &inputs(args)?, Vec::new(), &|opened| Ok(answer(args, &dumps(args, opened)?, &query)))?;
    let sessions = Sessions::new(args, opened)?;
    match found {
        Ok(first) => show(cx, args, &sessions, &query, first),
        Err(error) if error.kind == ErrorKind::Unknown => {
            cx.say("error", &say(cx, &query, error).to_string());
            Ok(sessions.outcome(false))
        }
        Err(error) => Err(say(cx, &query, error)),
    }
}

/// Asks, and makes the first rows.
fn answer(args: &Args, dumps: &[Arc<Dump>], query: &str) -> Result<First, SqlError> {
    sql::ask(dumps, query, limits(args)).and_then(|found| First::new(args, found))
}

/// The dumps, the first one first.
fn inputs(args: &Args) -> anyhow::Result<Vec<Input>> {
    anyhow::ensure!(args.attach.len() <= MAX_ATTACHED, "--attach takes at most {MAX_ATTACHED} dumps");
    for (at, (name, _)) in args.attach.iter().enumerate() {
        let is_again = args.attach.iter().take(at).any(|(other, _)| other.eq_ignore_ascii_case(name));
        anyhow::ensure!(!is_again, "--attach gives the name {name} to two dumps");
    }
    let others = args.attach.iter().map(|(_, path)| args.input.of(path));
    Ok(std::iter::once(args.input.clone()).chain(others).collect())
}

fn limits(args: &Args) -> Limits {
    let memory = memory::available(args.input.memory_bytes());
    Limits {
        time: args.time_limit.0,
        memory: memory.map(|available| (available.bytes / 2).max(LEAST_MEMORY)),
    }
}

/// A dump that is open.
type Opened = (Arc<Heap>, Arc<ObjectGraph>);

/// Opens dumps and asks them together. One whose index turns out to be damaged is opened and asked again.
fn with_all<T: Send>(
    cx: &RunContext,
    inputs: &[Input],
    opened: Vec<Opened>,
    ask: &(dyn Fn(&[Opened]) -> anyhow::Result<T> + Send + Sync),
) -> anyhow::Result<(Vec<Opened>, T)> {
    let Some((input, rest)) = inputs.split_first() else { return Ok((opened.clone(), ask(&opened)?)) };
    let (_, _, answer) = input.with_shared_graph(cx, |heap, graph| {
        let mut opened = opened.clone();
        opened.push((heap.clone(), graph.clone()));
        with_all(cx, rest, opened, ask)
    })?;
    Ok(answer)
}

/// The tables of opened dumps.
fn dumps(args: &Args, opened: &[Opened]) -> anyhow::Result<Vec<Arc<Dump>>> {
    let names = std::iter::once("main").chain(args.attach.iter().map(|(name, _)| name.as_str()));
    let dump = |(name, (heap, graph)): (&str, &Opened)| {
        let source = sql::Source { schema: name.to_owned(), heap: heap.clone(), graph: graph.clone() };
        Ok(Arc::new(Dump::new(source)?))
    };
    names.zip(opened).map(dump).collect()
}

/// Shows where an error is, and gives it back.
fn say(cx: &RunContext, query: &str, error: SqlError) -> anyhow::Error {
    if let Some((line, column)) = error.line(query) {
        query_text::show_place(cx, line, column);
    }
    error.into()
}

/// The rows that are made while the question is asked, where a damaged index is noticed. Those behind them are made while they
/// are written.
struct First {
    rows: Vec<Row>,
    found: sql::Answer,
}

impl First {
    fn new(args: &Args, mut found: sql::Answer) -> Result<Self, SqlError> {
        let most = made(args);
        let (mut rows, mut left) = (Vec::new(), KEPT_BYTES);
        while rows.len() < most && left > 0 {
            let Some(row) = found.next_row()? else { break };
            left = left.saturating_sub(row_bytes(&row));
            rows.push(row);
        }
        Ok(Self { rows, found })
    }
}

/// Rows that are shown at most.
fn most(args: &Args) -> usize {
    args.top.rows(args.output.format()).unwrap_or(usize::MAX)
}

/// Rows that are made before anything is shown, at most; with the one that says that a table does not show all.
fn made(args: &Args) -> usize {
    let is_table = args.output.format() == Format::Table;
    most(args).saturating_add(is_table.into()).min(KEPT)
}

/// About what a row takes in memory.
fn row_bytes(row: &Row) -> usize {
    let of_cell = |cell: &Cell| {
        size_of::<Cell>()
            + match cell {
                Cell::Text(text) => text.len(),
                Cell::Blob(bytes) => bytes.len(),
                _ => 0,
            }
    };
    row.iter().map(of_cell).sum()
}

/// The dumps that are asked, and what went wrong while rows were written.
struct Sessions {
    first: Session,
    others: Vec<(String, Session)>,
    failed: Mutex<Option<SqlError>>,
}

impl Sessions {
    fn new(args: &Args, opened: Vec<Opened>) -> anyhow::Result<Self> {
        let mut sessions = opened.into_iter().map(|(heap, graph)| Session { heap, graph });
        let first = sessions.next().context("no dump was opened")?;
        let names = args.attach.iter().map(|(name, _)| name.clone());
        Ok(Self { first, others: names.zip(sessions).collect(), failed: Mutex::new(None) })
    }
}

impl Source for Sessions {
    fn dump(&self) -> json::Dump<'_> {
        self.first.dump()
    }

    fn is_damaged(&self) -> bool {
        self.first.is_damaged() || self.others.iter().any(|(_, other)| other.is_damaged())
    }

    fn check(&self) -> anyhow::Result<()> {
        self.first.check()?;
        self.others.iter().try_for_each(|(_, other)| other.check())?;
        match self.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

/// Rows behind the first ones, while they are made.
struct Rest<'s> {
    found: sql::Answer,
    sessions: &'s Sessions,
}

impl Iterator for Rest<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        match self.found.next_row() {
            Ok(row) => row,
            Err(error) => {
                // The rows end; what is in the buffer is thrown away by `check`, and the run ends with the error.
                *self.sessions.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                None
            }
        }
    }
}

fn show(
    cx: &RunContext,
    args: &Args,
    sessions: &Sessions,
    query: &str,
    first: First,
) -> anyhow::Result<Outcome> {
    let most = most(args);
    let First { rows: first, found } = first;
    let columns = columns::of_rows(&found.columns, first.get(..most).unwrap_or(&first));
    let beside = columns::Beside::new(&found.columns, &sessions.others);
    let rows = first.into_iter().chain(Rest { found, sessions });
    let answer = Answer::new(columns, rows).beside(&columns::beside(), &beside).first_of(most, "rows");
    let rows = match sessions.show(cx, "sql", &args.output, answer) {
        Ok(rows) => rows,
        Err(error) => {
            return Err(match error.downcast::<SqlError>() {
                Ok(error) => say(cx, query, error),
                Err(error) => error,
            });
        }
    };
    if rows == 0 && !args.input.quiet {
        cx.say("note", "no rows");
    }
    Ok(sessions.outcome(rows > 0))
}

pub(crate) fn declared() -> Vec<Declared> {
    vec![Declared {
        command: "sql",
        variant: "",
        about: "A row has a key for each column of the query, named as SQLite names it: by `AS`, as it is written, or by its \
                column; a second column of the same name gets `_2`. Columns that hold object IDs or truth unchanged are \
                shown as such; what is computed of them is a number.",
        rows: columns::of_rows(&[columns::example()], &[]).fields(),
        beside: columns::beside().fields(),
    }]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read() {
        assert_eq!(time_limit("0").unwrap(), TimeLimit(None));
        assert_eq!(time_limit("0s").unwrap(), TimeLimit(None));
        assert_eq!(time_limit("90s").unwrap(), TimeLimit(Some(Duration::from_secs(90))));
        assert!(time_limit("-1s").is_err() && time_limit("x").is_err());
        assert_eq!(attachment("old=a=b").unwrap(), ("old".to_owned(), "a=b".into()));
        for wrong in ["old", "=a", "main=a", "TEMP=a", "1a=a", "a b=a", "a="] {
            assert!(attachment(wrong).is_err(), "{wrong}");
        }
    }
}
