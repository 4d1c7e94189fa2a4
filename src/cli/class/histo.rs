//! `histo`: the class histogram.

use crate::cli::jvm::{CountedObjects, ProcessArgs, process_id};
use crate::cli::prelude::*;
use crate::cli::shared::args::LayoutArgs;
use crate::cli::shared::class_histogram::{self, CountedHistogram};
use crate::cli::shared::commands::quoted_path;
use crate::cli::shared::recording::{RecordedFile, RecordedInput, RecordedProfile};
use crate::cli::shared::spool;
use crate::cli::shared::unreachable::{self, ReachableScope};
use crate::cli::shared::{messages, object};
use hprof_index::{Heap, Quiet};
use hprof_input::file::TextFile;
use hprof_query::histogram::{
    self, Histogram, HistogramGroupBy, HistogramOrder, HistogramQuery, HistogramRow, HistogramTotals, Scope,
    With,
};
use hprof_query::naming::object_id::object_id;
use hprof_query::objects::heaps;
use hprof_query::objects::selection::{Selection, SelectionKind};
use hprof_query::recordings::profile::text;
use hprof_query::recordings::text_histogram;
use hprof_report::value::id;
use hprof_values::ObjectId;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli histo heap.hprof
  hprof-cli histo heap.hprof 'com.acme.**' --sort instances
  hprof-cli histo heap.hprof --group-by package --top 10
  hprof-cli histo heap.hprof --retained --live
  hprof-cli histo heap.hprof --retained-by 0x7c00012a8
  hprof-cli histo 4711                          # without a dump: the JVM counts
  hprof-cli histo saved-by-jmap.txt
  hprof-cli histo heap.hprof --format json | jq '.rows[0]'";

/// Advice if a pattern is the name of a file.
const ONE_DUMP: &str = "histo takes one dump, then class patterns";

/// Values of `--sort`.
const SORT: &[Keyword<HistogramOrder>] = &[
    ("bytes", HistogramOrder::Bytes, "Most bytes first"),
    ("instances", HistogramOrder::Instances, "Most instances first"),
    ("retained", HistogramOrder::Retained, "Most retained bytes first; implies --retained"),
    ("class", HistogramOrder::Name, "By class name"),
];

/// Values of `--group-by`.
const GROUP_BY: &[Keyword<HistogramGroupBy>] = &[
    (
        "class",
        HistogramGroupBy::Class,
        "Class; classes of the same name from different class loaders get separate rows",
    ),
    ("package", HistogramGroupBy::Package, "Package"),
    ("loader", HistogramGroupBy::Loader, "Class loader"),
];

/// Count instances and bytes by class
///
/// Counts all objects in the dump, including unreachable ones; --live counts only reachable objects. Sizes are shallow
/// sizes in the layout of the JVM (see `info`). Percentages are of the whole heap, or of the reachable heap with
/// --live, regardless of the classes selected. For a text report, counts the objects in its HEAP DUMP section, with the
/// sizes stated there. --live and --retained need the reference graph, which is built on first use.
///
/// Without a dump: for a process ID, the JVM counts its objects (`GC.class_histogram -all`), while the program's threads
/// stand still; with --live, it collects garbage first, which takes longer. A class histogram that `jmap -histo` or
/// `jcmd PID GC.class_histogram` has printed is read from a file. It has no objects and no class loaders.
#[derive(Debug, clap::Args)]
#[command(mut_arg("dump", |dump| dump
    .index(1)
    .value_name("DUMP|TEXT|PID")
    .help(
        "HPROF binary, text report of the HPROF agent (java.hprof.txt), or class histogram of jmap or jcmd; plain or \
         compressed with gzip or zstd. Or the process ID of a running JVM; a file of this name is preferred"
    )))]
pub(crate) struct HistoArgs {
    #[command(flatten)]
    input: RecordedInput,

    #[command(flatten)]
    process: ProcessArgs,

    /// Only classes that match PATTERN, for example `java.util.HashMap$Node`, `byte[]`, `com.acme.**`, `*Cache`;
    /// or the object ID of a class object
    #[arg(index = 2, value_name = "PATTERN", help_heading = "Filter")]
    patterns: Vec<Selection>,

    /// Only reachable objects; a running JVM collects garbage first
    #[arg(long, conflicts_with_all = ["unreachable", "layout"], help_heading = "Filter")]
    live: bool,

    /// Only unreachable objects
    #[arg(long, conflicts_with_all = ["retained", "layout"], help_heading = "Filter")]
    unreachable: bool,

    /// Only the retained set of this object: the object itself and everything that would be freed with it
    #[arg(long, value_name = "OBJECT", value_parser = object_id,
        conflicts_with_all = ["live", "unreachable", "heap", "retained", "layout"], help_heading = "Filter")]
    retained_by: Option<ObjectId>,

    /// Only objects in this heap of an Android dump: `app`, `zygote`, `image` (listed by `info`)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["retained", "layout"], help_heading = "Filter")]
    heap: Option<String>,

    /// Also show retained sizes, from the dominator tree
    #[arg(long, conflicts_with = "layout", help_heading = "Output")]
    retained: bool,

    /// Sort order [default: bytes, or retained with --retained]
    #[arg(long, value_name = "KEY", value_parser = keys(SORT), help_heading = "Output")]
    sort: Option<HistogramOrder>,

    #[command(flatten)]
    top: Top,

    /// Group rows by KEY
    #[arg(long, value_name = "KEY", value_parser = keys(GROUP_BY), default_value = "class", help_heading = "Output")]
    group_by: HistogramGroupBy,

    #[command(flatten)]
    layout: LayoutArgs,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(cx: &RunContext, args: &HistoArgs) -> anyhow::Result<Outcome> {
    let sort_by =
        args.sort.unwrap_or(if args.retained { HistogramOrder::Retained } else { HistogramOrder::Bytes });
    let without = [
        ("--unreachable", args.unreachable),
        ("--layout", args.layout.is_given()),
        ("--heap", args.heap.is_some()),
        ("--retained-by", args.retained_by.is_some()),
    ];
    for (flag, is_given) in without {
        anyhow::ensure!(
            !is_given || !args.shows_retained(),
            "--sort retained cannot be used with {flag}, which has no retained sizes; omit one of them"
        );
    }
    let mut question = HistogramQuery {
        group_by: args.group_by,
        sort_by,
        top: args.top.rows(args.output.format()),
        ..HistogramQuery::default()
    };
    if let Some(counted) = class_counts(cx, args)? {
        return count_classes(cx, args, &counted, question);
    }
    let text = args.input.open_text(cx)?;
    let asked = if text.is_some() {
        args.patterns.clone()
    } else {
        args.input.input.resolve_selections(cx, &args.patterns)?
    };
    for selection in asked {
        match selection.what {
            SelectionKind::Object(id) => question.class_objects.push(id),
            SelectionKind::Classes(pattern) => question.patterns.push(pattern),
        }
    }
    if let Some((file, recorded)) = text {
        let needs_binary = args.graph_options().into_iter().chain([("--live", args.live)]);
        for (flag, is_given) in needs_binary {
            anyhow::ensure!(
                !is_given,
                "{flag} needs a binary dump, and {} is a text report; omit {flag}",
                file.path().display()
            );
        }
        let (recorded, histogram) = ask_text(cx, args, &file, recorded, &question)?;
        return show(cx, args, &recorded, &histogram);
    }
    let scope = match (args.live, args.unreachable) {
        (true, _) => Scope::Reachable,
        (false, true) => Scope::Unreachable,
        (false, false) => Scope::All,
    };
    let with = if args.shows_retained() { With::Retained } else { With::Counts };
    if let Some(object) = args.retained_by {
        return count_retained(cx, args, object, &question);
    }
    if (scope, with) == (Scope::All, With::Counts) && args.heap.is_none() {
        let heap = args.input.input.open(cx)?;
        let sizes = args.layout.sizes(&heap);
        let histogram = histogram::histogram(heap.summary(), &sizes, &question);
        let outcome = show(cx, args, &heap, &histogram)?;
        args.notes(cx, &heap, &histogram, &question);
        return Ok(outcome);
    }
    let (session, histogram) = Session::ask_graph(cx, &args.input.input, |dump| {
        Ok(match &args.heap {
            Some(name) => {
                let objects = heaps::objects_of(name, &dump.with_records(&Quiet)?)?;
                histogram::histogram_within(dump, &question, scope, &objects)
            }
            None => histogram::histogram_of(dump, &question, scope, with),
        })
    })?;
    let outcome = show(cx, args, &session, &histogram)?;
    args.notes(cx, &session.heap, &histogram, &question);
    match scope {
        Scope::All if with == With::Retained => {
            unreachable::note(cx, &session, &args.input.input, ReachableScope::RetainedSizes);
        }
        Scope::Reachable => unreachable::note(cx, &session, &args.input.input, ReachableScope::Reachable),
        Scope::Unreachable => unreachable::note_filler(cx, &session, args.input.input.quiet),
        Scope::All => {}
    }
    Ok(outcome)
}

/// Computes the histogram of an object's retained set.
fn count_retained(
    cx: &RunContext,
    args: &HistoArgs,
    object: ObjectId,
    question: &HistogramQuery,
) -> anyhow::Result<Outcome> {
    let (session, histogram) = Session::ask_graph(cx, &args.input.input, |dump| {
        let index = dump.graph.objects.addresses.index_of(object);
        let top = index.and_then(|index| dump.graph.tree.reachable_position(index));
        Ok(top.map(|top| histogram::histogram_below(dump, question, top)).ok_or(index))
    })?;
    match histogram {
        Ok(histogram) => show(cx, args, &session, &histogram),
        Err(index) => {
            match index {
                Some(_) => args.input.note(cx, &format!("{object:#x} is unreachable: it retains nothing")),
                None => messages::about_no_object(cx, session.heap.path(), &session.graph, object),
            }
            Ok(session.outcome(false))
        }
    }
}

impl HistoArgs {
    /// Returns whether to show retained sizes.
    fn shows_retained(&self) -> bool {
        self.retained || self.sort == Some(HistogramOrder::Retained)
    }

    /// Prints notes: why there are no rows, and patterns without a match.
    fn notes(&self, cx: &RunContext, heap: &Heap, histogram: &Histogram, question: &HistogramQuery) {
        if self.input.input.quiet {
            return;
        }
        let summary = heap.summary();
        let classes = || summary.classes().iter().map(|class| summary.class_name(class));
        let mut unmatched = messages::about_patterns(cx, &question.patterns, ONE_DUMP, classes);
        for id in &question.class_objects {
            if !summary.classes().iter().any(|class| class.class_object() == Some(*id)) {
                unmatched += 1;
                let path = quoted_path(spool::original_path(heap.path()));
                self.input.note(cx, &format!(
                    "{id:#x} is not a class object in the dump; `hprof-cli show {path} {id:#x}` shows what it is"
                ));
            }
        }
        if histogram.total.rows == 0 && unmatched < self.patterns.len() {
            let what = match (self.live, self.unreachable) {
                (true, _) => "reachable object",
                (false, true) => "unreachable object",
                (false, false) => "object",
            };
            cx.emit("note", &format!("no {what} of the matching classes"));
        } else if histogram.total.rows == 0 && self.patterns.is_empty() && self.unreachable {
            cx.emit("note", "no unreachable objects");
        }
    }

    /// Returns the options that a class histogram cannot answer, and whether they were given.
    fn object_options(&self) -> Vec<(&'static str, bool)> {
        let by_loader = ("--group-by loader", self.group_by == HistogramGroupBy::Loader);
        self.graph_options().into_iter().chain([by_loader]).collect()
    }

    /// Returns the options that need single objects, except `--live`, and whether they were given.
    fn graph_options(&self) -> [(&'static str, bool); 6] {
        [
            ("--unreachable", self.unreachable),
            ("--retained", self.retained),
            ("--sort retained", self.shows_retained()),
            ("--heap", self.heap.is_some()),
            ("--retained-by", self.retained_by.is_some()),
            ("--layout", self.layout.is_given()),
        ]
    }
}

/// Returns the class histogram of a process or a file; `None` if the file is a dump or a text report.
fn class_counts(cx: &RunContext, args: &HistoArgs) -> anyhow::Result<Option<CountedHistogram>> {
    let input = &args.input.input;
    let run = args.input.run();
    let Some(pid) = process_id(cx, input)? else {
        args.process.check_unused()?;
        let Some(counted) = class_histogram::read(cx, input, run)? else { return Ok(None) };
        counted.ensure_unneeded(&[("--live", args.live)])?;
        counted.ensure_unneeded(&args.object_options())?;
        return Ok(Some(counted));
    };
    anyhow::ensure!(run.is_none(), "{pid} is a process, which contains no runs; omit --run");
    // Before the program's threads stand still.
    match args.object_options().into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(class_histogram::needs_objects(option, &pid.to_string())),
        None => Ok(Some(args.process.count(cx, input, pid, CountedObjects::new(args.live))?)),
    }
}

/// Shows a class histogram of a process or a file.
fn count_classes(
    cx: &RunContext,
    args: &HistoArgs,
    counted: &CountedHistogram,
    mut question: HistogramQuery,
) -> anyhow::Result<Outcome> {
    for selection in &args.patterns {
        match &selection.what {
            SelectionKind::Object(id) => anyhow::bail!(
                "{} is a class histogram, which contains no object IDs; select classes by name, not by {id:#x}",
                counted.path()
            ),
            SelectionKind::Classes(pattern) => question.patterns.push(pattern.clone()),
        }
    }
    let histogram = text_histogram::histogram(&counted.histogram.heap, &question);
    if !args.input.input.quiet {
        messages::about_patterns(cx, &question.patterns, ONE_DUMP, || counted.class_names());
    }
    show(cx, args, counted, &histogram)
}

/// Computes the histogram of the HEAP DUMP section of a text report.
fn ask_text(
    cx: &RunContext,
    args: &HistoArgs,
    file: &TextFile,
    mut recorded: RecordedProfile,
    question: &HistogramQuery,
) -> anyhow::Result<(RecordedProfile, Histogram)> {
    let mut histogram = Histogram { rows: Vec::new(), total: HistogramTotals::default(), heap_bytes: 0 };
    if let RecordedFile::Text { report, .. } = &mut recorded.file {
        text::resolve_loaders(file, report)?;
        match &report.heap {
            Some(heap) => {
                histogram = text_histogram::histogram(heap, question);
                if !args.input.input.quiet {
                    let names = || heap.classes.iter().map(|class| class.name.as_str());
                    messages::about_patterns(cx, &question.patterns, ONE_DUMP, names);
                }
            }
            None => args.input.note(
                cx,
                &format!(
                    "{} contains no HEAP DUMP; `hprof-cli sites` shows recorded allocations, if any",
                    file.path().display()
                ),
            ),
        }
    }
    Ok((recorded, histogram))
}

fn show(
    cx: &RunContext,
    args: &HistoArgs,
    source: &impl AnswerSource,
    histogram: &Histogram,
) -> anyhow::Result<Outcome> {
    let total = histogram.total;
    let rows = (1u64..).zip(&histogram.rows).map(|(number, row)| HistogramLine {
        number,
        row,
        heap_bytes: histogram.heap_bytes,
    });
    // The classes of omitted rows are not counted.
    let classes: Option<u64> = (histogram.rows.len() as u64 == total.rows)
        .then(|| histogram.rows.iter().map(|row| row.classes).sum());
    let answer = Answer::new(columns(args.group_by, args.shows_retained()), rows)
        .with_summary(&summary_columns(), &total)
        .matching(total.rows, "rows")
        .if_empty(NoRows::Nothing)
        // Retained sizes of classes do not add up: their retained sets can overlap.
        .total([
            ("instances", group_digits(total.instances)),
            ("bytes", group_digits(total.shallow_bytes)),
            ("%", percent(total.shallow_bytes, histogram.heap_bytes)),
            ("classes", classes.map(group_digits).unwrap_or_default()),
            (title(args.group_by), "total".to_owned()),
        ]);
    let rows = source.show(cx, "histo", &args.output, answer)?;
    Ok(source.outcome(rows > 0))
}

/// A row of the histogram, and the total.
struct HistogramLine<'a> {
    number: u64,
    row: &'a HistogramRow,
    heap_bytes: u64,
}

/// Returns the label of a loader: its class and object ID.
pub(crate) fn loader_label(row: &HistogramRow) -> Option<String> {
    row.loader.as_ref().map(|loader| object::loader(loader.id, loader.class.as_deref()))
}

/// Returns the object ID of the loader; null for the boot loader.
fn loader_object(row: &HistogramRow) -> Value<'static> {
    id(row.loader.as_ref().and_then(|loader| loader.id.non_null()))
}

/// Returns the title of the name column.
pub(crate) fn title(group_by: HistogramGroupBy) -> &'static str {
    match group_by {
        HistogramGroupBy::Class => "class",
        HistogramGroupBy::Package => "package",
        HistogramGroupBy::Loader => "loader",
    }
}

fn columns<'a>(group_by: HistogramGroupBy, retained: bool) -> Columns<'a, HistogramLine<'a>> {
    let name = |key| Column::new(key, |line: &HistogramLine<'a>| Value::from(&*line.row.name));
    let loader = || {
        Column::new(names::LOADER, |line: &HistogramLine<'a>| loader_label(line.row).into())
            .or_null(nulls::NO_CLASS_OBJECT)
    };
    let classes = || Column::new(names::CLASSES, |line: &HistogramLine<'a>| line.row.classes.into());
    let mut columns = match group_by {
        HistogramGroupBy::Class => vec![name(names::CLASS), loader()],
        HistogramGroupBy::Package => vec![name(names::PACKAGE), classes()],
        HistogramGroupBy::Loader => vec![loader(), classes()],
    };
    columns.extend([
        Column::new(names::INSTANCES, |line: &HistogramLine<'a>| line.row.instances.into()),
        Column::new(names::SHALLOW_BYTES, |line: &HistogramLine<'a>| line.row.shallow_bytes.into()),
    ]);
    if retained {
        columns.push(Column::new(names::RETAINED_BYTES, |line: &HistogramLine<'a>| {
            line.row.retained_bytes.into()
        }));
    }
    if group_by != HistogramGroupBy::Package {
        columns.push(
            Column::new(names::LOADER_OBJECT, |line: &HistogramLine<'a>| loader_object(line.row))
                .or_null(nulls::BOOT_LOADER_OR_UNKNOWN),
        );
    }
    if group_by == HistogramGroupBy::Class {
        columns.push(
            Column::new(names::CLASS_OBJECT, |line: &HistogramLine<'a>| id(line.row.class_object))
                .or_null(nulls::NO_CLASS_OBJECT),
        );
    }
    Columns::new(columns).table(table_columns(group_by, retained))
}

fn table_columns<'a>(group_by: HistogramGroupBy, retained: bool) -> Vec<TableColumn<'a, HistogramLine<'a>>> {
    let mut shown = vec![
        TableColumn::table_only("#", Align::Right, |line: &HistogramLine<'a>| line.number.to_string())
            .fit(Fit::Secondary { priority: 0 }),
        TableColumn::new(names::INSTANCES, "instances"),
        TableColumn::new(names::SHALLOW_BYTES, "bytes"),
        TableColumn::table_only("%", Align::Right, |line: &HistogramLine<'a>| {
            percent(line.row.shallow_bytes, line.heap_bytes)
        }),
    ];
    if retained {
        shown.push(TableColumn::new(names::RETAINED_BYTES, "retained"));
    }
    if group_by != HistogramGroupBy::Class {
        shown.push(TableColumn::new(names::CLASSES, "classes"));
    }
    let title = title(group_by);
    let name = match group_by {
        HistogramGroupBy::Class => TableColumn::new(names::CLASS, title),
        HistogramGroupBy::Package => TableColumn::new(names::PACKAGE, title),
        HistogramGroupBy::Loader => {
            TableColumn::new(names::LOADER, title).cell(|line: &HistogramLine<'a>| {
                loader_label(line.row).unwrap_or_else(|| "<no class object>".to_owned())
            })
        }
    };
    shown.push(name.fit(Fit::Shorten { priority: 0 }));
    shown
}

fn summary_columns() -> Columns<'static, HistogramTotals> {
    Columns::new([
        Column::new(names::TOTAL.dot(names::ROWS), |total: &HistogramTotals| total.rows.into()),
        Column::new(names::TOTAL.dot(names::INSTANCES), |total: &HistogramTotals| total.instances.into()),
        Column::new(names::TOTAL.dot(names::SHALLOW_BYTES), |total: &HistogramTotals| {
            total.shallow_bytes.into()
        }),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    let about = |group_by| match group_by {
        HistogramGroupBy::Class => {
            "The default. A row is a class that has objects. With `--live` or `--unreachable`, all counts and sizes, \
             including those in `total`, cover only these objects. A sum of bytes that does not fit in 64 bits is \
             2^64 - 1."
        }
        HistogramGroupBy::Package => "A row is a package.",
        HistogramGroupBy::Loader => "A row is a class loader.",
    };
    let variants = [
        ("`--group-by class`", HistogramGroupBy::Class),
        ("`--group-by package`", HistogramGroupBy::Package),
        ("`--group-by loader`", HistogramGroupBy::Loader),
    ];
    let schema = |(variant, group_by)| ResultSchema {
        command: "histo",
        variant,
        about: about(group_by),
        rows: columns(group_by, true).fields(),
        summary: summary_columns().fields(),
    };
    variants.map(schema).to_vec()
}
