//! `sql`: SQL queries over the tables of a dump.

mod columns;
mod complete;
mod dot_commands;
mod shell;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;

use hprof_index::storage::memory;
use hprof_index::{Heap, ObjectGraph};
use hprof_query::frameworks::Frameworks;
use hprof_query::recordings::profile::flight::FlightFile;
use hprof_query::sql::{
    self, ErrorKind, MAX_ATTACHED, MAX_LEN, SqlDump, SqlError, SqlLimits, SqlRow, SqlValue,
};
use hprof_report::json;

use crate::cli::prelude::*;
use crate::cli::shared::frameworks::FrameworksArgs;
use crate::cli::shared::hiding;
use crate::cli::shared::query_text;
use crate::cli::shared::recording::RecordedInput;
use crate::cli::shared::session::KEPT;

pub(crate) const EXAMPLES: &str = r#"Examples:
  hprof-cli sql heap.hprof 'SELECT class, count(*), sum(shallow_bytes) FROM objects GROUP BY 1 ORDER BY 3 DESC'
  hprof-cli sql heap.hprof 'SELECT object, path(object) FROM objects WHERE retained_bytes >= 100000000'
  hprof-cli sql heap.hprof 'SELECT text(user), lastAccess FROM "com.acme.Session" ORDER BY 2 LIMIT 10'
  hprof-cli sql new.hprof --attach old=old.hprof 'SELECT n.class, n.instances - o.instances AS more
      FROM classes n JOIN old.classes o USING (class) ORDER BY more DESC'
  hprof-cli sql heap.hprof '.schema objects'
  hprof-cli sql heap.hprof"#;

/// Default number of rows in a table.
const DEFAULT_TOP: usize = 25;
/// Maximum size in bytes of the rows that are computed before anything is shown; [`KEPT`] rows with long texts would take
/// more.
const KEPT_BYTES: usize = 16 << 20;
/// Minimum memory for SQLite in bytes: it works with less, but slowly.
const LEAST_MEMORY: u64 = 32 << 20;

/// Query the dump as SQL tables
///
/// Tables: classes, objects, refs, roots, strings, arrays, fields and more, and one for each class, named after it in
/// double quotes; the columns of "com.acme.Session" are the fields of that class. Functions in addition to SQLite's:
/// text(object), value(object, 'a.b'), path(object), size(object), class_of(object), dominates(a, b);
/// `name GLOB 'com.acme.**'` takes class patterns.
///
/// On a terminal, starts a shell if QUERY is missing. docs/sql.md is the reference. Builds the index on first use.
#[derive(Debug, clap::Args)]
#[command(arg = hiding::no_values())]
pub(crate) struct SqlArgs {
    #[command(flatten)]
    input: Input,

    /// Query to run: one SELECT, or .tables or .schema [default: a shell on a terminal, else stdin]
    #[arg(value_name = "QUERY", help_heading = "Filter")]
    query: Option<String>,

    /// Read the query from FILE; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "query", help_heading = "Filter")]
    file: Option<PathBuf>,

    /// Another dump to query, with tables NAME.classes and so on; may be repeated
    #[arg(long, value_name = "NAME=DUMP", help_heading = "Input", value_parser = attachment)]
    attach: Vec<(String, PathBuf)>,

    /// Recording of Flight Recorder (.jfr) of the same process: adds the tables jfr_events and allocation_sites
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    recording: Option<PathBuf>,

    #[command(flatten)]
    frameworks: FrameworksArgs,

    /// Maximum duration of the query, for example 10min; 0 for no limit
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = "Filter", value_parser = time_limit)]
    time_limit: TimeLimit,

    #[command(flatten)]
    top: Top<DEFAULT_TOP>,

    #[command(flatten)]
    output: Output,
}

/// Value of the option for a time limit: a duration, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimeLimit(Option<Duration>);

fn time_limit(text: &str) -> Result<TimeLimit, String> {
    if text == "0" {
        return Ok(TimeLimit(None));
    }
    let wrong = || "expected a time such as 90s or 10min, or 0 for no limit".to_owned();
    let duration: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    let duration = Duration::try_from(duration).map_err(|_| wrong())?;
    Ok(TimeLimit(Some(duration).filter(|duration| !duration.is_zero())))
}

/// Schema name of the dump that is named first.
const MAIN: &str = "main";
/// Schema names reserved by SQLite.
const TAKEN: [&str; 2] = [MAIN, "temp"];

fn attachment(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("expected NAME=DUMP, for example old=monday.hprof")?;
    let is_plain = |name: &str| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.chars().next().is_none_or(|first| first.is_ascii_digit())
    };
    if !is_plain(name) || TAKEN.iter().any(|taken| taken.eq_ignore_ascii_case(name)) {
        return Err(format!(
            "a name consists of letters, digits and _, begins with a letter, and is not {}",
            TAKEN.join(" or ")
        ));
    }
    if path.is_empty() {
        return Err("expected the path of a dump after the name: NAME=DUMP".to_owned());
    }
    Ok((name.to_owned(), path.into()))
}

pub(crate) fn run(cx: &RunContext, args: &SqlArgs) -> anyhow::Result<Outcome> {
    let query = match (&args.query, &args.file) {
        (Some(query), _) => query.clone(),
        (None, Some(file)) => query_text::read(cx, file, MAX_LEN)?,
        (None, None) if !cx.is_taking() && std::io::stdin().is_terminal() => return shell::run(cx, args),
        (None, None) => query_text::read(cx, std::path::Path::new("-"), MAX_LEN)?,
    };
    if let Some(commands) = dot_commands::lines(&query) {
        return run_dot_commands(cx, args, &commands);
    }
    hiding::note(cx, args.input.quiet);
    let frameworks = args.frameworks.rules(cx)?;
    let recording = recording(cx, args)?;
    let file = recording.as_ref().map(|recording| &recording.file);
    let ask = |opened: &[OpenHeap]| Ok(answer(args, &dumps(args, (&frameworks, file), opened)?, &query));
    let (opened, found) = with_all(cx, &inputs(args)?, Vec::new(), &ask)?;
    let sessions = Sessions::new(args, opened, recording.as_ref())?;
    match found {
        Ok(first) => show(cx, args, &sessions, &query, first),
        Err(error) if error.kind == ErrorKind::Unknown => {
            cx.emit("error", &report_error(cx, &query, error).to_string());
            Ok(sessions.outcome(false))
        }
        Err(error) => Err(report_error(cx, &query, error)),
    }
}

/// Runs commands of the shell that were given instead of a query.
fn run_dot_commands(cx: &RunContext, args: &SqlArgs, commands: &[&str]) -> anyhow::Result<Outcome> {
    anyhow::ensure!(
        args.output.format() == Format::Table && !cx.is_taking(),
        ".tables and .schema are printed as text, without --format; `hprof-cli sql --help` lists the tables"
    );
    let (frameworks, recording) = (args.frameworks.rules(cx)?, recording(cx, args)?);
    let file = recording.as_ref().map(|recording| &recording.file);
    let (_, dumps) =
        with_all(cx, &inputs(args)?, Vec::new(), &|opened| dumps(args, (&frameworks, file), opened))?;
    let mut outcome = Outcome::Fine;
    for command in commands {
        let (name, argument) = dot_commands::parts(command);
        match dot_commands::run(cx, &dumps, (name, argument))? {
            Some(Outcome::Fine) => {}
            Some(other) => outcome = other,
            None => anyhow::bail!(
                "there is no command .{name} outside of the shell; there are .tables and .schema [TABLE]"
            ),
        }
    }
    Ok(outcome)
}

/// Runs the query, and computes the first rows.
fn answer(args: &SqlArgs, dumps: &[Arc<SqlDump>], query: &str) -> Result<First, SqlError> {
    sql::ask(dumps, query, limits(args)).and_then(|found| First::new(args, found))
}

/// Returns the dumps; the main one is first.
fn inputs(args: &SqlArgs) -> anyhow::Result<Vec<Input>> {
    anyhow::ensure!(args.attach.len() <= MAX_ATTACHED, "--attach takes at most {MAX_ATTACHED} dumps");
    for (at, (name, _)) in args.attach.iter().enumerate() {
        let is_again = args.attach.iter().take(at).any(|(other, _)| other.eq_ignore_ascii_case(name));
        anyhow::ensure!(!is_again, "--attach uses the name {name} for two dumps; use different names");
    }
    let others = args.attach.iter().map(|(_, path)| args.input.with_dump(path));
    Ok(std::iter::once(args.input.clone()).chain(others).collect())
}

fn limits(args: &SqlArgs) -> SqlLimits {
    let memory = memory::available(args.input.memory_bytes());
    SqlLimits {
        time: args.time_limit.0,
        memory: memory.map(|available| (available.bytes / 2).max(LEAST_MEMORY)),
    }
}

/// An open dump: the heap and its graph.
type OpenHeap = (Arc<Heap>, Arc<ObjectGraph>);

/// Opens dumps and queries them together. A dump whose index turns out to be damaged is reopened and queried again.
fn with_all<T: Send>(
    cx: &RunContext,
    inputs: &[Input],
    opened: Vec<OpenHeap>,
    ask: &(dyn Fn(&[OpenHeap]) -> anyhow::Result<T> + Send + Sync),
) -> anyhow::Result<(Vec<OpenHeap>, T)> {
    let Some((input, rest)) = inputs.split_first() else { return Ok((opened.clone(), ask(&opened)?)) };
    let (_, _, answer) = input.with_shared_graph(cx, |heap, graph| {
        let mut opened = opened.clone();
        opened.push((heap.clone(), graph.clone()));
        with_all(cx, rest, opened, ask)
    })?;
    Ok(answer)
}

/// The recording that was given with the dump.
struct OpenRecording {
    file: Arc<FlightFile>,
    is_damaged: bool,
}

/// Opens the recording that was given with the dump, if any.
fn recording(cx: &RunContext, args: &SqlArgs) -> anyhow::Result<Option<OpenRecording>> {
    let Some(path) = &args.recording else { return Ok(None) };
    let (file, is_damaged) = RecordedInput::flight_beside(cx, &args.input, path)?;
    Ok(Some(OpenRecording { file: Arc::new(file), is_damaged }))
}

/// Returns the tables of open dumps.
fn dumps(
    args: &SqlArgs,
    (frameworks, recording): (&Frameworks, Option<&Arc<FlightFile>>),
    opened: &[OpenHeap],
) -> anyhow::Result<Vec<Arc<SqlDump>>> {
    let names = std::iter::once(MAIN).chain(args.attach.iter().map(|(name, _)| name.as_str()));
    let dump = |(name, (heap, graph)): (&str, &OpenHeap)| {
        let (heap, graph, frameworks) = (heap.clone(), graph.clone(), frameworks.clone());
        let recording = recording.filter(|_| name == MAIN).cloned();
        let source = sql::SqlSource { schema: name.to_owned(), heap, graph, frameworks, recording };
        Ok(Arc::new(SqlDump::new(source)?))
    };
    names.zip(opened).map(dump).collect()
}

/// Shows the position of an error and returns the error.
fn report_error(cx: &RunContext, query: &str, error: SqlError) -> anyhow::Error {
    if let Some((line, column)) = error.line(query) {
        query_text::show_place(cx, line, column);
    }
    error.into()
}

/// The first rows, computed while the query runs, when a damaged index can still be noticed, and the query for the rows that
/// are computed while they are written.
struct First {
    rows: Vec<SqlRow>,
    found: sql::SqlResult,
}

impl First {
    fn new(args: &SqlArgs, mut found: sql::SqlResult) -> Result<Self, SqlError> {
        let most = max_first_rows(args);
        let (mut rows, mut left) = (Vec::new(), KEPT_BYTES);
        while rows.len() < most && left > 0 {
            let Some(row) = found.next_row()? else { break };
            left = left.saturating_sub(row_bytes(&row));
            rows.push(row);
        }
        Ok(Self { rows, found })
    }
}

/// Returns the maximum number of rows shown.
fn max_rows(args: &SqlArgs) -> usize {
    args.top.rows(args.output.format()).unwrap_or(usize::MAX)
}

/// Returns the maximum number of rows computed before anything is shown: for a table, one more than it shows, to know
/// whether rows were omitted.
fn max_first_rows(args: &SqlArgs) -> usize {
    let is_table = args.output.format() == Format::Table;
    max_rows(args).saturating_add(is_table.into()).min(KEPT)
}

/// Estimates the memory of a row.
fn row_bytes(row: &SqlRow) -> usize {
    let of_cell = |cell: &SqlValue| {
        size_of::<SqlValue>()
            + match cell {
                SqlValue::Text(text) => text.len(),
                SqlValue::Blob(bytes) => bytes.len(),
                _ => 0,
            }
    };
    row.iter().map(of_cell).sum()
}

/// Source of the result: the queried dumps, and the error that occurred while rows were written, if any.
struct Sessions {
    first: Session,
    others: Vec<(String, Session)>,
    is_recording_damaged: bool,
    failed: Mutex<Option<SqlError>>,
}

impl Sessions {
    fn new(args: &SqlArgs, opened: Vec<OpenHeap>, recording: Option<&OpenRecording>) -> anyhow::Result<Self> {
        let mut sessions = opened.into_iter().map(|(heap, graph)| Session { heap, graph });
        let first = sessions.next().context("no dump was opened")?;
        let names = args.attach.iter().map(|(name, _)| name.clone());
        Ok(Self {
            first,
            others: names.zip(sessions).collect(),
            is_recording_damaged: recording.is_some_and(|recording| recording.is_damaged),
            failed: Mutex::new(None),
        })
    }
}

impl AnswerSource for Sessions {
    fn header(&self) -> json::DumpHeader<'_> {
        self.first.header()
    }

    fn is_damaged(&self) -> bool {
        self.is_recording_damaged
            || self.first.is_damaged()
            || self.others.iter().any(|(_, other)| other.is_damaged())
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

/// Iterator over the rows after the first ones, which are computed on demand.
struct RemainingRows<'s> {
    found: sql::SqlResult,
    sessions: &'s Sessions,
}

impl Iterator for RemainingRows<'_> {
    type Item = SqlRow;

    fn next(&mut self) -> Option<SqlRow> {
        match self.found.next_row() {
            Ok(row) => row,
            Err(error) => {
                // Ends the rows; `check` discards the buffered output, and the run fails with this error.
                *self.sessions.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                None
            }
        }
    }
}

fn show(
    cx: &RunContext,
    args: &SqlArgs,
    sessions: &Sessions,
    query: &str,
    first: First,
) -> anyhow::Result<Outcome> {
    let most = max_rows(args);
    let First { rows: first, found } = first;
    let columns = columns::of_rows(&found.columns, first.get(..most).unwrap_or(&first));
    let summary = columns::SqlSummary::new(&found.columns, &sessions.others);
    let rows = first.into_iter().chain(RemainingRows { found, sessions });
    let answer =
        Answer::new(columns, rows).with_summary(&columns::summary_columns(), &summary).first_of(most, "rows");
    let rows = match sessions.show(cx, "sql", &args.output, answer) {
        Ok(rows) => rows,
        Err(error) => {
            return Err(match error.downcast::<SqlError>() {
                Ok(error) => report_error(cx, query, error),
                Err(error) => error,
            });
        }
    };
    if rows == 0 && !args.input.quiet {
        cx.emit("note", "no rows");
    }
    Ok(sessions.outcome(rows > 0))
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "sql",
        variant: "",
        about: "A row has a key for each column of the query, named as SQLite names it: by `AS`, as it is written, or by its \
                column; a second column of the same name gets `_2`. Columns that contain unchanged object IDs or booleans are shown as such; values computed from them are numbers.",
        rows: columns::of_rows(&[columns::example()], &[]).fields(),
        summary: columns::summary_columns().fields(),
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
