//! `threads`: the threads of a heap dump or, with `--started`, of a recording.

mod groups;
mod heap;
mod locks;
mod started;

use crate::cli::prelude::*;
use hprof_index::Error;
use hprof_input::file::TextFile;
use hprof_query::naming::object_id::object_id;
use hprof_query::objects::selection::ThreadPattern;
use hprof_query::recordings::started_threads;
use hprof_query::threads::{
    ThreadGrouping, ThreadKind, ThreadOrder, ThreadQuery, ThreadScope, ThreadState, Threads,
};
use hprof_report::stacks::thread_dump::Locals;
use hprof_values::ObjectId;

use super::Outcome;
use super::shared::color::ColorArg;
use super::shared::keys::{Keyword, keys};
use super::shared::limit::{DEFAULT_TOP, limit};
use super::shared::messages;
use super::shared::recording::RecordedInput;
use super::shared::session::AnswerSource;
use super::shared::unreachable::{self, ReachableScope};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli threads heap.hprof --thread 'http-*' --stack --locals
  hprof-cli threads heap.hprof --state blocked,waiting --stack --depth 5
  hprof-cli threads heap.hprof --group --locals
  hprof-cli threads heap.hprof --locks
  hprof-cli threads heap.hprof --format text > threads.txt
  hprof-cli threads java.hprof.txt --started --thread 'pool-*' --sort serial";

/// Mark of a thread that ran into an OutOfMemoryError.
const OUT_OF_MEMORY: &str = "OutOfMemoryError";

/// Default number of innermost frames of a group in a table.
const DEFAULT_DEPTH_OF_GROUPS: usize = 3;

/// Default number of rows in a table of started threads.
const DEFAULT_TOP_STARTED: usize = 50;

/// Value of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadsFormat {
    /// A format that all commands have.
    Rows(OutputFormat),
    /// The format of a thread dump.
    ThreadDump,
}

/// Values of `--format`.
const FORMAT: &[Keyword<ThreadsFormat>] = &[
    ("table", ThreadsFormat::Rows(OutputFormat::Rows(Format::Table)), "Human-readable table"),
    ("json", ThreadsFormat::Rows(OutputFormat::Rows(Format::Json)), "One JSON document"),
    (
        "csv",
        ThreadsFormat::Rows(OutputFormat::Rows(Format::Csv)),
        "Comma-separated values with a header line",
    ),
    ("markdown", ThreadsFormat::Rows(OutputFormat::Markdown), "Markdown, to paste into a ticket"),
    ("text", ThreadsFormat::ThreadDump, "Thread dump in the format of jstack"),
];

/// An order of the threads of a heap dump, and of a recording: not every value of `--sort` applies to both.
type ThreadsOrder = (Option<ThreadOrder>, Option<started_threads::StartedThreadOrder>);

/// Values of `--sort`.
const SORT: &[Keyword<ThreadsOrder>] = &[
    ("retained", (Some(ThreadOrder::Retained), None), "Largest retained size first"),
    ("name", (Some(ThreadOrder::Name), Some(started_threads::StartedThreadOrder::Name)), "By name"),
    (
        "state",
        (Some(ThreadOrder::State), None),
        "By state: NEW, RUNNABLE, BLOCKED, WAITING, TIMED_WAITING, TERMINATED",
    ),
    ("address", (Some(ThreadOrder::Address), None), "By object ID"),
    ("serial", (None, Some(started_threads::StartedThreadOrder::Serial)), "By serial number, with --started"),
];

/// List threads with their stacks and locals
///
/// Lists all Thread objects of the heap dump, including virtual threads and threads that have not
/// started or have ended. Dumps of JDK 21 and older contain no stacks of unmounted virtual threads.
/// --format text prints live threads like jstack, with nid=0 and without monitor owners, which a heap
/// dump does not contain. --locks lists who owns locks and who waits for them; monitors are inferred from
/// the stacks. --started lists the threads that a profiler recorded (START THREAD records,
/// or THREAD START lines of a text report). Builds the index on first use.
#[derive(Debug, clap::Args)]
pub(crate) struct ThreadsArgs {
    #[command(flatten)]
    input: RecordedInput,

    /// List the threads recorded by a profiler, with their groups and whether they ended
    #[arg(long, help_heading = "Output", conflicts_with_all = ["state", "virtual", "platform", "stack", "depth", "locals"])]
    started: bool,

    /// Only threads whose name contains THREAD or matches it with `*`, or with this object ID
    #[arg(long, value_name = "THREAD", help_heading = "Filter")]
    thread: Option<ThreadPattern>,

    /// Only threads in these states: new, runnable, blocked, waiting, timed-waiting, terminated
    #[arg(long, value_name = "STATE,...", value_delimiter = ',', value_parser = state, help_heading = "Filter")]
    state: Vec<ThreadState>,

    /// Only virtual threads
    #[arg(long, help_heading = "Filter")]
    r#virtual: bool,

    /// Only platform threads
    #[arg(long, conflicts_with = "virtual", help_heading = "Filter")]
    platform: bool,

    /// Only threads that --group, or --group --locals, puts in the same group as the thread with this object ID
    #[arg(long, value_name = "OBJECT", value_parser = group_of, conflicts_with = "started", help_heading = "Filter")]
    group_of: Option<ObjectId>,

    /// Show the stack trace of each row, in a table; other formats always include it
    #[arg(long, help_heading = "Output")]
    stack: bool,

    /// Maximum depth of stack traces: the N innermost frames; 0 for all [default: 0]
    #[arg(long, value_name = "N", help_heading = "Output")]
    depth: Option<usize>,

    /// Show the objects that each frame references; with --group, group by the innermost frame outside the JDK, and show
    /// what its stacks hold by class. JSON and CSV always include them
    #[arg(long, help_heading = "Output")]
    locals: bool,

    /// Group threads with the same stack whose names differ only in numbers, such as pools
    #[arg(long, help_heading = "Output", conflicts_with_all = ["started", "sort"])]
    group: bool,

    /// List locks with their owners and the threads that wait for them, deadlocks first
    #[arg(
        long,
        help_heading = "Output",
        conflicts_with_all = ["started", "group", "group_of", "thread", "state", "virtual", "platform", "stack", "depth", "locals", "sort"]
    )]
    locks: bool,

    /// Sort order [default: retained; with --started, file order]
    #[arg(long, value_name = "KEY", value_parser = keys(SORT), help_heading = "Output")]
    sort: Option<ThreadsOrder>,

    /// Show only the first N rows; 0 for all [default: 30 in a table, 50 with --started, all in other formats]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        value_parser = keys(FORMAT),
        default_value = "table",
        help_heading = "Output"
    )]
    format: ThreadsFormat,

    /// When to use color; `auto` respects NO_COLOR
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    color: ColorArg,
}

/// Parses the object ID of a thread in a group.
fn group_of(text: &str) -> Result<ObjectId, String> {
    object_id(text).map_err(|error| error.to_string())
}

/// Parses a thread state: `timed-waiting`, or as written in Java, `TIMED_WAITING`.
fn state(text: &str) -> Result<ThreadState, String> {
    let option = |state: ThreadState| state.name().to_lowercase().replace('_', "-");
    let wanted = text.to_lowercase().replace('_', "-");
    let found = ThreadState::ALL.into_iter().find(|state| option(*state) == wanted);
    found.ok_or_else(|| format!("states are {}", ThreadState::ALL.map(option).join(", ")))
}

pub(crate) fn run(cx: &RunContext, args: &ThreadsArgs) -> anyhow::Result<Outcome> {
    if args.started { of_recording(cx, args) } else { of_heap(cx, args) }
}

fn of_recording(cx: &RunContext, args: &ThreadsArgs) -> anyhow::Result<Outcome> {
    let ThreadsFormat::Rows(format) = args.format else {
        anyhow::bail!(
            "--format text is a thread dump, which started threads are not; use table, json, csv or markdown"
        )
    };
    let sort_by = args.sort.and_then(|(_, sort)| sort);
    anyhow::ensure!(
        args.sort.is_some() == sort_by.is_some(),
        "started threads are sorted by serial or name; use --sort serial or --sort name"
    );
    let top = limit(args.top, format.of_rows(), DEFAULT_TOP_STARTED);
    let question = started_threads::StartedThreadQuery { name: args.thread.clone(), sort_by, top };
    started::run(cx, &args.input, &question, format, cx.style(args.color))
}

fn of_heap(cx: &RunContext, args: &ThreadsArgs) -> anyhow::Result<Outcome> {
    let input = &args.input.input;
    if TextFile::open(input.path()).map_err(Error::from)?.is_some() {
        anyhow::bail!(
            "{} is a text report, which has no Thread objects; --started shows the threads that it records, `hprof-cli \
             traces` its stacks",
            input.path().display()
        );
    }
    // Reports an invalid --run.
    args.input.open_text(cx)?;
    let Some(sort_by) = args.sort.map_or(Some(ThreadOrder::default()), |(sort, _)| sort) else {
        anyhow::bail!("only started threads are sorted by serial; add --started, or sort by address")
    };
    let kind = match (args.r#virtual, args.platform) {
        (true, _) => Some(ThreadKind::Virtual),
        (_, true) => Some(ThreadKind::Platform),
        _ => None,
    };
    let (format, which) = match args.format {
        ThreadsFormat::Rows(format) => (format.of_rows(), ThreadScope::All),
        ThreadsFormat::ThreadDump => (Format::Json, ThreadScope::Alive),
    };
    let has_stacks = |format| format != Format::Table || args.stack || args.locals || args.depth.is_some();
    let question = ThreadQuery {
        name: args.thread.clone(),
        states: args.state.clone(),
        kind,
        group_by: if args.locals { ThreadGrouping::Frame } else { ThreadGrouping::Stack },
        group_of: args.group_of,
        sort_by,
        top: limit(args.top, format, DEFAULT_TOP),
        depth: if has_stacks(format) { args.depth.filter(|depth| *depth > 0) } else { Some(0) },
        has_locals: args.locals || format != Format::Table,
        which,
    };
    let locals = if args.locals { Locals::Shown } else { Locals::Hidden };
    if args.locks {
        return of_locks(cx, args);
    }
    if args.group {
        return of_groups(cx, args, question, locals);
    }
    let (session, threads) = heap::ask(cx, input, &question)?;
    match args.format {
        ThreadsFormat::Rows(format) => {
            cx.for_each_format(format.of_rows(), |cx, rows| {
                let stacks = has_stacks(rows).then_some(locals);
                heap::show(cx, &session, &threads, format.with_rows_in(rows), cx.style(args.color), stacks)
            })?;
        }
        ThreadsFormat::ThreadDump => heap::show_text(cx, &session, &threads, locals)?,
    }
    if threads.has_unassigned_stacks && !input.quiet {
        cx.emit("note", "the dump contains stacks, but does not state to which threads they belong");
    }
    let threads = &threads.report;
    if threads.rows.is_empty() && !input.quiet {
        messages::about_no_thread(cx, &session.graph, threads, question.name.as_ref());
    }
    unreachable::note(cx, &session, input, ReachableScope::RetainedSizes);
    Ok(session.outcome(!threads.rows.is_empty()))
}

/// Returns the filters of groups as the query string of the page of threads.
fn filters(args: &ThreadsArgs) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(args.thread.as_ref().map(|name| ("thread", name.to_string())));
    query.extend_pairs(args.state.iter().map(|state| ("state", state.name())));
    query.extend_pairs(args.r#virtual.then_some(("virtual", "1")));
    query.extend_pairs(args.platform.then_some(("platform", "1")));
    // With --locals, the groups differ.
    query.extend_pairs(args.locals.then_some(("locals", "1")));
    query.finish()
}

fn of_groups(
    cx: &RunContext,
    args: &ThreadsArgs,
    question: ThreadQuery,
    locals: Locals,
) -> anyhow::Result<Outcome> {
    let ThreadsFormat::Rows(format) = args.format else {
        anyhow::bail!("--format text is a thread dump, which has no groups; use table, json, csv or markdown")
    };
    let is_short = args.depth.is_none() && !args.stack;
    let depth = match (args.depth, format.of_rows()) {
        (None, Format::Table) if is_short => Some(DEFAULT_DEPTH_OF_GROUPS),
        (depth, _) => depth.filter(|depth| *depth > 0),
    };
    let input = &args.input.input;
    let question = ThreadQuery { depth, ..question };
    let (session, found) = groups::ask(cx, input, &question)?;
    cx.for_each_format(format.of_rows(), |cx, rows| {
        let frames = if is_short { DEFAULT_DEPTH_OF_GROUPS } else { usize::MAX };
        let format = format.with_rows_in(rows);
        groups::show(cx, &session, &found, format, cx.style(args.color), (locals, frames, filters(args)))
    })?;
    if found.rows.is_empty() && !input.quiet {
        let threads = Threads::new(&session.dump()?).find(&question);
        messages::about_no_thread(cx, &session.graph, &threads, question.name.as_ref());
    }
    unreachable::note(cx, &session, input, ReachableScope::RetainedSizes);
    Ok(session.outcome(!found.rows.is_empty()))
}

fn of_locks(cx: &RunContext, args: &ThreadsArgs) -> anyhow::Result<Outcome> {
    let ThreadsFormat::Rows(format) = args.format else {
        anyhow::bail!(
            "--format text is a thread dump, which has no list of locks; use table, json, csv or markdown"
        )
    };
    let input = &args.input.input;
    let (session, found) = locks::ask(cx, input)?;
    cx.for_each_format(format.of_rows(), |cx, rows| {
        let top = limit(args.top, rows, DEFAULT_TOP);
        locks::show(cx, &session, &found, format.with_rows_in(rows), (cx.style(args.color), top))
    })?;
    if !input.quiet {
        locks::notes(cx, &found);
    }
    Ok(session.outcome(!found.rows.is_empty()))
}

/// Returns the column with the number of matching threads.
fn matching<'c, R>(count: impl Fn(&R) -> u64 + Send + Sync + 'c) -> Column<'c, R> {
    Column::new(names::MATCHING.dot(names::ROWS), move |of: &R| count(of).into())
}

/// Returns the column with the number of matching threads that have no row.
fn left_out<'c, R>(count: impl Fn(&R) -> u64 + Send + Sync + 'c) -> Column<'c, R> {
    Column::new(names::LEFT_OUT, move |of: &R| count(of).into())
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![heap::row_schema(), groups::row_schema(), locks::row_schema(), started::row_schema()]
}
