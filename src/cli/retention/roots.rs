//! `roots`: the GC roots and their retained sizes.

use hprof_index::model::summary::Summary;
use hprof_index::objects::gc_roots::Roots;
use hprof_query::objects::label::Labels;
use hprof_query::objects::selection::ThreadPattern;
use hprof_query::paths::root_report::{self, KindRow, RootQuery, RootRow, RootThread};
use hprof_query::threads::frames::Frames;
use hprof_query::threads::{self, Threads};
use hprof_values::RootKind;

use crate::cli::prelude::*;
use crate::cli::shared::limit::DEFAULT_TOP_OBJECTS;
use crate::cli::shared::object_columns::{self, NamedObject};
use crate::cli::shared::unreachable::{self, ReachableScope};
use crate::cli::shared::{facts, messages, object};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli roots heap.hprof
  hprof-cli roots heap.hprof --kind jni-global
  hprof-cli roots heap.hprof --thread main --top 0
  hprof-cli roots heap.hprof --format json | jq '.counts_by_kind'";

/// Maximum width of a thread's name in a table.
const THREAD_WIDTH: usize = 28;

/// List the GC roots
///
/// Shows the kind, the object and the retained size of each root. Roots that belong to a thread (locals and JNI locals)
/// are listed too, although their objects count as retained by the thread. Builds the index on first use.
#[derive(Debug, clap::Args)]
pub(crate) struct RootsArgs {
    #[command(flatten)]
    input: Input,

    /// Only these kinds of roots: jni-global, java-frame, sticky-class, thread-object, ...
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', value_parser = kind, help_heading = "Filter")]
    kind: Vec<RootKind>,

    /// Only threads whose name contains THREAD or matches it with `*`, or with this object ID
    #[arg(long, value_name = "THREAD", help_heading = "Filter")]
    thread: Option<ThreadPattern>,

    #[command(flatten)]
    top: Top<DEFAULT_TOP_OBJECTS>,

    #[command(flatten)]
    output: Output,
}

/// Parses a kind of root: `jni-global`, or in the form of output, `JNI global`.
pub(super) fn kind(text: &str) -> Result<RootKind, String> {
    let option = |kind: RootKind| kind.name().to_lowercase().replace(' ', "-");
    let wanted = text.to_lowercase().replace([' ', '_'], "-");
    let found = RootKind::ALL.into_iter().find(|kind| option(*kind) == wanted);
    found.ok_or_else(|| format!("kinds are {}", RootKind::ALL.map(option).join(", ")))
}

pub(crate) fn run(cx: &RunContext, args: &RootsArgs) -> anyhow::Result<Outcome> {
    let question = RootQuery {
        kinds: args.kind.clone(),
        thread: args.thread.clone(),
        top: args.top.rows(args.output.format()),
    };
    let (session, found) = Session::ask(cx, &args.input, |dump| {
        let (labels, frames) = (Labels::new(dump), Frames::new(dump));
        Ok(root_report::roots(dump.graph, &labels, &frames, &question))
    })?;
    let (summary, roots) = (session.heap.summary(), &session.graph.roots);
    let whole = session.graph.tree.reachable_bytes();
    let lines = found.rows.iter().map(|row| RootLine { row, class: object::class_name(summary, row.class) });
    let answer = Answer::new(columns(Some(summary), whole), lines)
        .with_summary(&summary_columns(), &RootsSummary { found: &found, roots })
        .matching(found.total, "roots")
        .if_empty(NoRows::Nothing);
    let answer = if found.total == 0 {
        answer
    } else {
        let kinds = Section::table(&kinds(whole), found.kinds.iter().copied());
        answer.with_section_above(kinds).with_section_above(Section::Line(String::new()))
    };
    let rows = session.show(cx, "roots", &args.output, answer)?;
    if !args.input.quiet {
        notes(cx, roots);
        nothing(cx, args, &session, &found)?;
    }
    unreachable::note(cx, &session, &args.input, ReachableScope::Reachable);
    Ok(session.outcome(rows > 0))
}

/// Prints a note why there are no rows.
fn nothing(
    cx: &RunContext,
    args: &RootsArgs,
    session: &Session,
    found: &root_report::RootReport,
) -> anyhow::Result<()> {
    if found.total > 0 {
        return Ok(());
    }
    let Some(thread) = &args.thread else {
        cx.emit("note", if args.kind.is_empty() { NONE } else { "the dump contains no root of these kinds" });
        return Ok(());
    };
    let question = threads::ThreadQuery::for_name(thread.clone());
    let threads = Threads::new(&session.dump()?).find(&question);
    if threads.matching == 0 {
        messages::about_no_thread(cx, &session.graph, &threads, Some(thread));
    } else {
        let of_kinds = if args.kind.is_empty() { "" } else { " of these kinds" };
        cx.emit("note", &format!("the dump contains no root{of_kinds} of a matching thread"));
    }
    Ok(())
}

const NONE: &str = "the dump contains no GC root";

/// Prints notes about anomalies of the roots.
fn notes(cx: &RunContext, roots: &Roots) {
    let note = |text: &str| cx.emit("note", text);
    if roots.missing_objects > 0 {
        note(&format!(
            "{} roots refer to objects that are not in the dump",
            group_digits(roots.missing_objects)
        ));
    }
    if roots.missing_threads > 0 {
        note(&format!(
            "{} roots belong to threads that are not in the dump; they count as roots without a thread",
            group_digits(roots.missing_threads)
        ));
    }
}

/// A GC root and its class, as a row of the result.
struct RootLine<'a> {
    row: &'a RootRow,
    class: Option<&'a str>,
}

fn named_object<'r>(line: &'r RootLine<'_>) -> NamedObject<'r> {
    NamedObject { id: line.row.id, class: line.class, label: line.row.label.as_deref() }
}

/// Returns the columns for roots. Which columns there are does not depend on `summary`.
fn columns<'a>(summary: Option<&'a Summary>, whole: u64) -> Columns<'a, RootLine<'a>> {
    Columns::new(facts::columns(RootRow::facts(), summary, |line: &RootLine<'a>| line.row)).table([
        TableColumn::new(names::RETAINED_BYTES, "retained"),
        TableColumn::table_only("%", Align::Right, move |line: &RootLine<'a>| {
            percent(line.row.retained_bytes, whole)
        })
        .fit(Fit::Secondary { priority: 0 }),
        TableColumn::new(names::KIND, "kind"),
        TableColumn::new(names::THREAD, "thread")
            .fit(Fit::Cut { priority: 1 })
            .cell(|line: &RootLine<'a>| line.row.thread.as_ref().map(thread_name).unwrap_or_default()),
        TableColumn::new(names::OBJECT, "id"),
        object_columns::description(|line: &RootLine<'a>| {
            let location = line.row.location.as_ref().map(|location| format!(" in {location}"));
            named_object(line).describe_without_id() + &location.unwrap_or_default()
        }),
    ])
}

/// Source of the JSON keys in addition to the rows.
struct RootsSummary<'a> {
    found: &'a root_report::RootReport,
    roots: &'a Roots,
}

fn summary_columns<'a>() -> Columns<'a, RootsSummary<'a>> {
    let each = kinds(0);
    Columns::new([
        Column::with_fields(names::COUNTS_BY_KIND, each.fields(), move |of: &RootsSummary<'a>| {
            of.found.kinds.iter().map(|row| each.record(row)).collect::<Vec<_>>().into()
        }),
        Column::new(names::TOTAL.dot(names::ROWS), |of: &RootsSummary<'a>| of.found.total.into()),
        Column::new(names::MISSING_ROOTS, |of: &RootsSummary<'a>| of.roots.missing_objects.into()),
        Column::new(names::MISSING_THREADS, |of: &RootsSummary<'a>| of.roots.missing_threads.into()),
        Column::new(names::IS_BOOT_LOADER_ASSUMED, |of: &RootsSummary<'a>| {
            of.roots.boot_classes_assumed.into()
        }),
    ])
}

/// Returns the columns for kinds of roots.
fn kinds<'a>(whole: u64) -> Columns<'a, KindRow> {
    let columns = Columns::new([
        Column::new(names::KIND, |row: &KindRow| row.kind.name().into()),
        Column::new(names::ROOT_COUNT, |row: &KindRow| row.roots.into()),
        Column::new(names::OBJECTS, |row: &KindRow| row.objects.into()),
        Column::new(names::RETAINED_BYTES, |row: &KindRow| row.retained_bytes.into()),
    ]);
    columns.table([
        TableColumn::new(names::RETAINED_BYTES, "retained"),
        TableColumn::table_only("%", Align::Right, move |row: &KindRow| percent(row.retained_bytes, whole)),
        TableColumn::new(names::ROOT_COUNT, "roots"),
        TableColumn::new(names::OBJECTS, "objects"),
        TableColumn::new(names::KIND, "kind").fit(Fit::Shorten { priority: 0 }),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "roots",
        variant: "",
        about: "A row is a root, most retained bytes first. Roots that are the same in kind, object, thread and frame are \
                one row.",
        rows: columns(None, 0).fields(),
        summary: summary_columns().fields(),
    }]
}

/// Formats a thread's name for a table.
fn thread_name(thread: &RootThread) -> String {
    match thread.name.as_deref().filter(|name| !name.is_empty()) {
        None => format!("{:#x}", thread.id),
        Some(name) if name.chars().count() <= THREAD_WIDTH => name.to_owned(),
        Some(name) => name.chars().take(THREAD_WIDTH - 1).chain(['…']).collect(),
    }
}
