//! `trend`: growth over three or more dumps or class histograms, or of a running JVM.

mod histograms;
mod series;

use std::sync::Arc;

use crate::cli::jvm::ProcessArgs;
use crate::cli::prelude::*;
use crate::cli::shared::class_histogram::CountedHistogram;
use crate::cli::shared::frameworks::FrameworksArgs;
use crate::cli::shared::heap_columns::heap_trend;
use crate::cli::shared::recording::{RecordedInput, RecordedProfile, UNREAD};
use hprof_index::Heap;
use hprof_index::layout::sizes::Sizes;
use hprof_query::compare::Growth;
use hprof_query::compare::classes::{ClassCensus, ClassDiffGrouping, ComparedNames, ComparedQuery};
use hprof_query::compare::places::DumpPlaces;
use hprof_query::compare::trend::{self, Least, TrendFilter, TrendRow};
use hprof_query::dictionary::{ComparedValue, Name};
use hprof_query::naming::pattern::ClassPattern;
use hprof_query::objects::condition::size;
use hprof_query::recordings::profile::flight::heap::HeapOverTime;
use hprof_report::escape;
use hprof_report::json::DumpHeader;
use hprof_report::number::{format_signed, signed_bytes};
use hprof_report::value::list;

use super::place_lines;
use crate::cli::shared::several::{DumpOutcome, SeveralInput};
use histograms::{RoundsSummary, TrendMember};
use series::SeriesArgs;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli trend monday.hprof tuesday.hprof wednesday.hprof
  hprof-cli trend heap-*.hprof --group-by class
  hprof-cli trend heap-*.hprof --all --min-change 1MiB
  hprof-cli trend 4711 --every 60s --for 10m    # without a dump: the JVM counts
  hprof-cli trend 4711 --live --every 5m --output rounds.txt
  hprof-cli trend rounds.txt
  hprof-cli trend heap-*.hprof --format json | jq '.rows[] | select(.grows == \"every_step\")'";

/// Milliseconds per hour.
const HOUR_MS: f64 = 3_600_000.0;

/// Grouping of the objects whose growth is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrendGroupBy {
    Place,
    Classes(ClassDiffGrouping),
}

/// Values of `--group-by`.
const GROUP_BY: &[Keyword<TrendGroupBy>] = &[
    (
        "place",
        TrendGroupBy::Place,
        "Places in the program: chains of fields, from static fields and threads down",
    ),
    ("class", TrendGroupBy::Classes(ClassDiffGrouping::Class), "Classes, by name and class loader"),
    ("package", TrendGroupBy::Classes(ClassDiffGrouping::Package), "Packages"),
    ("loader", TrendGroupBy::Classes(ClassDiffGrouping::Loader), "Class loaders"),
];

/// Property by which the dumps are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DumpOrder {
    Time,
    Given,
}

/// Values of `--order`.
const ORDER: &[Keyword<DumpOrder>] = &[
    ("time", DumpOrder::Time, "By the times in their headers"),
    ("given", DumpOrder::Given, "As given on the command line"),
];

/// Show what grows from dump to dump
///
/// Compares three or more dumps of a program, in the order of the times in their headers. Shows what grows from each
/// dump to the next, and what grew and then stopped. What rises and falls is not a leak and is omitted unless --all is
/// given. Places are those of `diff --group-by place`, compared by retained size; classes are compared by shallow
/// bytes. The exit code is 1 if nothing grows. Recordings of Flight Recorder (.jfr) among the files add evidence:
/// whether the heap used after collections grew.
///
/// Without dumps: the JVM of a process ID counts its objects every --every (`histo PID`), until --for has passed, Ctrl-C
/// is pressed, or the process ends. A class is growing if it grew in each of at least five rounds, steadily or for long,
/// and garbage was collected in this time. By default, garbage is counted, too: that costs the program the shortest
/// time, and takes more rounds if its garbage lives long. With --live, the JVM collects garbage before each round, so
/// that only reachable objects are counted: the better choice wherever the program can stand still for a full
/// collection. The files of --output, and class histograms of jmap and jcmd, are compared in the same way.
#[derive(Debug, clap::Args)]
#[command(mut_arg("dump", |dump| dump
    .value_name("DUMP|TEXT|PID")
    .help(
        "Heap dumps in HPROF format: plain, compressed with gzip or zstd, or each the only dump in a tar or zip archive; one \
         of them can be `-` for standard input. Or class histograms of jmap or jcmd, or the process ID of a running JVM"
    )))]
pub(crate) struct TrendArgs {
    #[command(flatten)]
    input: SeveralInput,

    #[command(flatten)]
    process: ProcessArgs,

    #[command(flatten)]
    series: SeriesArgs,

    #[command(flatten)]
    frameworks: FrameworksArgs,

    /// Order of the dumps
    #[arg(long, value_name = "ORDER", value_parser = keys(ORDER), default_value = "time", help_heading = "Input")]
    order: DumpOrder,

    /// Group rows by KEY, which also selects what to compare [default: place, or class without dumps]
    #[arg(long, value_name = "KEY", value_parser = keys(GROUP_BY), help_heading = "Output")]
    group_by: Option<TrendGroupBy>,

    /// Only classes that match PATTERN; with --group-by class, package, loader
    #[arg(long = "class", value_name = "PATTERN", help_heading = "Filter")]
    patterns: Vec<ClassPattern>,

    /// Omit changes smaller than SIZE from the first dump to the last, for example 1MiB [default: a thousandth of the
    /// largest heap if it grows from each dump to the next, else a hundredth; a ten-thousandth for class histograms]
    #[arg(long, value_name = "SIZE", value_parser = size::parse, help_heading = "Filter")]
    min_change: Option<u64>,

    /// Omit nothing: also show what rises and falls
    #[arg(long, help_heading = "Filter")]
    all: bool,

    #[command(flatten)]
    top: Top,

    #[command(flatten)]
    output: Output,
}

/// The dumps that were read.
struct TrendDumps {
    all: Vec<DumpOutcome>,
    /// The newest dump.
    last: LastDump,
    is_damaged: bool,
}

/// The newest dump, which JSON describes in most detail, with or without its graph.
enum LastDump {
    Histogram(Box<CountedHistogram>),
    Heap(Arc<Heap>),
    Session(Box<Session>),
}

impl AnswerSource for TrendDumps {
    fn header(&self) -> DumpHeader<'_> {
        match &self.last {
            LastDump::Histogram(counted) => counted.header(),
            LastDump::Heap(heap) => heap.header(),
            LastDump::Session(session) => session.header(),
        }
    }

    fn is_damaged(&self) -> bool {
        self.is_damaged
    }
}

/// The dumps, the rows, and the minimum size of a row.
struct TrendResult {
    source: TrendDumps,
    rows: Vec<TrendRow>,
    least: Least,
    group_by: TrendGroupBy,
    /// Facts about class histograms; `None` for dumps.
    rounds: Option<RoundsSummary>,
}

pub(crate) fn run(cx: &RunContext, args: &TrendArgs) -> anyhow::Result<Outcome> {
    let (mut recordings, mut members) = (Vec::new(), Vec::new());
    for input in args.input.inputs() {
        if let Some(process) = TrendMember::process(cx, &input)? {
            members.push(process);
            continue;
        }
        match RecordedInput::open_heap_of_flight(cx, &input)? {
            Some(recorded) => recordings.push(recorded),
            None => members.push(TrendMember::new(cx, input)?),
        }
    }
    if let [TrendMember::Process(input, pid)] = &members[..] {
        let series::Series { result, end } = series::take(cx, args, input, *pid)?;
        let outcome = show(cx, args, result, &recordings)?;
        return end.map_or(Ok(outcome), Err);
    }
    args.series.check_unused()?;
    if !members.iter().any(|member| matches!(member, TrendMember::Process(..))) {
        args.process.check_unused()?;
    }
    let result = if members.iter().any(|member| member.counts_of().is_some()) {
        histograms::compare(cx, args, members)?
    } else {
        anyhow::ensure!(!args.series.live, "--live is for running JVMs; omit it");
        compare_dumps(cx, args, members)?
    };
    show(cx, args, result, &recordings)
}

/// Compares dumps.
fn compare_dumps(
    cx: &RunContext,
    args: &TrendArgs,
    members: Vec<TrendMember>,
) -> anyhow::Result<TrendResult> {
    let given: Vec<Input> = members
        .into_iter()
        .filter_map(|member| match member {
            TrendMember::Dump(input) => Some(input),
            TrendMember::Process(..) | TrendMember::Counted(_) => None,
        })
        .collect();
    let dumps = given.len();
    anyhow::ensure!(
        dumps > 2,
        "trend compares three or more dumps, and {dumps} were given; `hprof-cli diff` compares two"
    );
    let group_by = args.group_by.unwrap_or(TrendGroupBy::Place);
    anyhow::ensure!(
        args.patterns.is_empty() || group_by != TrendGroupBy::Place,
        "--class cannot be used with --group-by place; omit it, or use --group-by class"
    );
    let inputs = order_inputs(cx, args, given)?;
    let which = if args.all { TrendFilter::All } else { TrendFilter::Growing };
    match group_by {
        TrendGroupBy::Place => by_place(cx, args, &inputs, which),
        TrendGroupBy::Classes(group_by) => by_class(cx, args, &inputs, which, group_by),
    }
}

/// Shows the result in each of its formats, and returns the outcome.
fn show(
    cx: &RunContext,
    args: &TrendArgs,
    result: TrendResult,
    recordings: &[RecordedProfile],
) -> anyhow::Result<Outcome> {
    let TrendResult { mut source, rows, least, group_by, rounds } = result;
    source.is_damaged |= recordings.iter().any(AnswerSource::is_damaged);
    let hours = hours(&source.all);
    let shown = rows.iter().take(args.top.rows(args.output.format()).unwrap_or(usize::MAX));
    let lines = shown.map(|row| TrendLine { row, hours });
    let summary = TrendSummary {
        dumps: &source.all,
        recordings: recordings.iter().collect(),
        least,
        hours,
        rounds: rounds.as_ref(),
    };
    let what = match (args.all, &rounds) {
        (true, _) => "has changed",
        (false, None) => "grew at every step, or grew and then stopped,",
        (false, Some(_)) => "grew in every round, beyond its ups and downs,",
    };
    let nothing = format!("nothing {what} by {} or more (--min-change)", human_bytes(least.growing));
    let width = place_lines::width(cx, &args.output);
    let mut answer = Answer::new(columns(group_by, width), lines)
        .with_summary(&summary_columns(), &summary)
        .matching(rows.len() as u64, "rows")
        .if_empty(args.output.no_rows(nothing.clone()));
    if args.output.format() == Format::Table {
        let conclusion = rounds.as_ref().map(|rounds| rounds.conclusion(&rows, hours));
        let text = std::iter::once(headline(&summary)).chain(conclusion).collect::<Vec<_>>().join("\n");
        answer = answer
            .with_section_above(Section::Text(text))
            .with_lines_below(|line: &TrendLine<'_>| place_lines::lines(&line.row.text, width));
    }
    source.show(cx, "trend", &args.output, answer)?;
    if !args.input.quiet() {
        if rows.is_empty() {
            cx.emit("note", &nothing);
        }
        rounds
            .and_then(|rounds| rounds.advice(!rows.is_empty()))
            .iter()
            .for_each(|note| cx.emit("note", note));
    }
    Ok(source.outcome(!rows.is_empty()))
}

/// Returns the dumps in the requested order, with the times in their headers.
fn order_inputs(cx: &RunContext, args: &TrendArgs, inputs: Vec<Input>) -> anyhow::Result<Vec<(Input, u64)>> {
    let mut dumps = Vec::new();
    for input in inputs {
        // Notes about the dump are printed when it is read.
        let heap = input.open_quietly(cx)?;
        dumps.push((input, heap.summary().facts().created_ms.get()));
    }
    sort_by_time(cx, args, &mut dumps, |(_, created)| *created);
    Ok(dumps)
}

/// Sorts dumps by their times, unless they are compared in the order given.
fn sort_by_time<T>(cx: &RunContext, args: &TrendArgs, dumps: &mut [T], created_ms: impl Fn(&T) -> u64) {
    if args.order != DumpOrder::Time {
        return;
    }
    if dumps.iter().any(|dump| created_ms(dump) == 0) {
        if !args.input.quiet() {
            cx.emit("note", "not all dumps contain a time; they are compared in the order given");
        }
    } else {
        dumps.sort_by_key(created_ms);
    }
}

fn by_place(
    cx: &RunContext,
    args: &TrendArgs,
    inputs: &[(Input, u64)],
    which: TrendFilter,
) -> anyhow::Result<TrendResult> {
    let (mut places, mut all, mut last): (Vec<DumpPlaces>, _, _) = (Vec::new(), Vec::new(), None);
    let mut is_damaged = false;
    let frameworks = args.frameworks.rules(cx)?;
    for (input, created) in inputs {
        let (session, found) =
            Session::ask(cx, input, |dump| Ok(DumpPlaces::with_frameworks(dump, &frameworks, None)?))?;
        is_damaged |= session.is_damaged();
        all.push(DumpOutcome::from_source(&session, *created));
        places.push(found);
        last = Some(session);
    }
    let last = last.ok_or_else(|| anyhow::anyhow!("no dump was given"))?;
    let (rows, least) = trend::places(&places, which, args.min_change);
    let source = TrendDumps { all, last: LastDump::Session(Box::new(last)), is_damaged };
    Ok(TrendResult { source, rows, least, group_by: TrendGroupBy::Place, rounds: None })
}

fn by_class(
    cx: &RunContext,
    args: &TrendArgs,
    inputs: &[(Input, u64)],
    which: TrendFilter,
    group_by: ClassDiffGrouping,
) -> anyhow::Result<TrendResult> {
    let question = ComparedQuery { group_by, patterns: args.patterns.clone(), names: ComparedNames::Dumps };
    let (mut censuses, mut all, mut last) = (Vec::new(), Vec::new(), None);
    let mut is_damaged = false;
    for (input, created) in inputs {
        let heap = input.open(cx)?;
        is_damaged |= heap.is_damaged();
        all.push(DumpOutcome::from_source(&heap, *created));
        censuses.push(ClassCensus::new(heap.summary(), &Sizes::new(heap.summary(), None), &question));
        last = Some(heap);
    }
    let last = last.ok_or_else(|| anyhow::anyhow!("no dump was given"))?;
    let (rows, least) = trend::classes(&censuses, which, args.min_change);
    let source = TrendDumps { all, last: LastDump::Heap(last), is_damaged };
    Ok(TrendResult { source, rows, least, group_by: TrendGroupBy::Classes(group_by), rounds: None })
}

/// Returns the hours from the first dump to the last, if both have a time.
fn hours(dumps: &[DumpOutcome]) -> Option<f64> {
    let (first, last) = (dumps.first()?.created_ms, dumps.last()?.created_ms);
    #[allow(clippy::cast_precision_loss)]
    let hours = last.checked_sub(first).filter(|_| first > 0)? as f64 / HOUR_MS;
    (hours > 0.0).then_some(hours)
}

fn headline(summary: &TrendSummary<'_>) -> String {
    let names: Vec<String> = summary.dumps.iter().map(|dump| file_name(&dump.path)).collect();
    let time = match summary.hours {
        Some(hours) if hours >= 1.0 => format!(", {hours:.1} hours"),
        Some(hours) if hours * 60.0 >= 1.0 => format!(", {:.1} minutes", hours * 60.0),
        Some(hours) => format!(", {:.1} seconds", hours * 3600.0),
        None => String::new(),
    };
    let count = summary.dumps.len();
    let dumps = match (&summary.rounds, &names[..]) {
        // Of one process.
        (Some(_), [first, others @ ..]) if others.iter().all(|name| name == first) => {
            format!("{count} class histograms{time}: {first}")
        }
        (Some(_), _) => format!("{count} class histograms and dumps{time}: {}", names.join(", ")),
        (None, _) => format!("{count} dumps{time}: {}", names.join(", ")),
    };
    let recordings = summary.recordings.iter().map(|recorded| {
        let trend = recorded.heap_over_time().and_then(HeapOverTime::trend);
        let none = if recorded.is_damaged() { UNREAD } else { "no collections" }.to_owned();
        let says = trend.map_or(none, |trend| escape::text(&trend.to_string()).into_owned());
        format!("{}: {says}", file_name(recorded.path()))
    });
    std::iter::once(dumps).chain(recordings).collect::<Vec<_>>().join("\n")
}

/// Returns the name of a file, escaped: it may contain line ends, which separate the lines of a headline.
fn file_name(path: &str) -> String {
    escape::text(path.rsplit('/').next().unwrap_or(path)).into_owned()
}

/// A row, and the time span of the dumps.
struct TrendLine<'a> {
    row: &'a TrendRow,
    hours: Option<f64>,
}

impl TrendLine<'_> {
    /// Returns the growth in bytes per hour, rounded.
    fn per_hour(&self) -> Option<i64> {
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
        Some((self.row.delta() as f64 / self.hours?).round() as i64)
    }

    /// Draws the row's sizes as bars scaled to the largest, starting at zero so that a small change looks small.
    fn sparkline(&self) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let most = self.row.bytes.iter().copied().max().unwrap_or(0).max(1);
        let bar = |bytes: &u64| {
            let at = u128::from(*bytes) * 7 / u128::from(most);
            usize::try_from(at).ok().and_then(|at| BARS.get(at)).copied().unwrap_or('█')
        };
        self.row.bytes.iter().map(bar).collect()
    }
}

/// Returns the columns; `width` is the maximum width of a place below its row.
fn columns<'a>(by: TrendGroupBy, width: Option<usize>) -> Columns<'a, TrendLine<'a>> {
    let name = |name: Name| {
        Column::new(name, |line: &TrendLine<'a>| {
            line.row.key.as_ref().map(|key| Value::from(&*key.name)).unwrap_or_default()
        })
    };
    let loader = || {
        Column::new(names::LOADER, |line: &TrendLine<'a>| {
            line.row.key.as_ref().and_then(|key| key.loader.as_deref()).into()
        })
        .or_null(nulls::NO_CLASS_OBJECT)
    };
    let mut columns: Vec<Column<'a, TrendLine<'a>>> = match by {
        TrendGroupBy::Place => vec![
            Column::new(names::PLACE, |line: &TrendLine<'a>| list(line.row.labels.iter())),
            Column::new(names::TEXT, |line: &TrendLine<'a>| Value::from(&*line.row.text)),
        ],
        TrendGroupBy::Classes(ClassDiffGrouping::Package) => vec![name(names::PACKAGE)],
        TrendGroupBy::Classes(ClassDiffGrouping::Loader) => vec![loader()],
        TrendGroupBy::Classes(ClassDiffGrouping::Class | ClassDiffGrouping::Superclass) => {
            vec![name(names::CLASS), loader()]
        }
    };
    columns.extend([
        Column::new(names::GROWS, |line: &TrendLine<'a>| line.row.growth.map(Growth::name).into()),
        Column::new(names::VALUES_BY_DUMP, |line: &TrendLine<'a>| list(line.row.bytes.iter().copied())),
        Column::new(names::OBJECTS_BY_DUMP, |line: &TrendLine<'a>| list(line.row.objects.iter().copied())),
        Column::new(names::BYTES.for_side(ComparedValue::Delta), |line: &TrendLine<'a>| {
            line.row.delta().into()
        }),
        Column::new(names::BYTES_PER_HOUR, |line: &TrendLine<'a>| line.per_hour().into())
            .or_null("the dumps contain no times"),
    ]);
    Columns::new(columns).table(table_columns(by, width))
}

fn table_columns<'a>(by: TrendGroupBy, width: Option<usize>) -> Vec<TableColumn<'a, TrendLine<'a>>> {
    let mut shown = vec![
        TableColumn::new(names::GROWS, "grows").cell(|line: &TrendLine<'a>| {
            line.row.growth.map(|growth| growth.name().replace('_', " ")).unwrap_or_default()
        }),
        TableColumn::table_only("growth", Align::Right, |line: &TrendLine<'a>| {
            signed_bytes(line.row.delta())
        }),
        TableColumn::new(names::BYTES_PER_HOUR, "per hour")
            .cell(|line: &TrendLine<'a>| line.per_hour().map(signed_bytes).unwrap_or_default()),
        TableColumn::table_only("", Align::Left, |line: &TrendLine<'a>| line.sparkline()),
        TableColumn::table_only("bytes", Align::Right, |line: &TrendLine<'a>| {
            let ends = [line.row.bytes.first(), line.row.bytes.last()];
            ends.into_iter().flatten().map(|bytes| human_bytes(*bytes)).collect::<Vec<_>>().join(" -> ")
        }),
        TableColumn::table_only("objects", Align::Right, |line: &TrendLine<'a>| {
            format_signed(line.row.objects_delta())
        }),
    ];
    let name = |name: Name| TableColumn::new(name, name.key).fit(Fit::Shorten { priority: 0 });
    shown.extend(match by {
        TrendGroupBy::Place if width.is_some() => None,
        TrendGroupBy::Place => Some(TableColumn::new(names::TEXT, "place").fit(Fit::Wrap)),
        TrendGroupBy::Classes(ClassDiffGrouping::Package) => Some(name(names::PACKAGE)),
        TrendGroupBy::Classes(ClassDiffGrouping::Loader) => Some(name(names::LOADER)),
        TrendGroupBy::Classes(ClassDiffGrouping::Class | ClassDiffGrouping::Superclass) => {
            Some(name(names::CLASS))
        }
    });
    shown
}

/// Source of the JSON keys in addition to the rows.
struct TrendSummary<'a> {
    dumps: &'a [DumpOutcome],
    recordings: Vec<&'a RecordedProfile>,
    least: Least,
    hours: Option<f64>,
    rounds: Option<&'a RoundsSummary>,
}

fn summary_columns<'a>() -> Columns<'a, TrendSummary<'a>> {
    Columns::new([
        Column::records(
            names::DUMPS,
            Columns::new(DumpOutcome::columns(|dump: &DumpOutcome| dump)),
            |summary: &TrendSummary<'a>| summary.dumps,
        ),
        Column::records(names::RECORDINGS, recording_columns(), |summary: &TrendSummary<'a>| {
            summary.recordings.as_slice()
        }),
        Column::new(names::MIN_CHANGES.dot(names::EVERY_STEP_BYTES), |summary: &TrendSummary<'a>| {
            summary.least.growing.into()
        }),
        Column::new(names::MIN_CHANGES.dot(names::OTHER_CHANGE_BYTES), |summary: &TrendSummary<'a>| {
            summary.least.others.into()
        }),
        Column::new(names::HOURS, |summary: &TrendSummary<'a>| summary.hours.into())
            .or_null("the dumps contain no times"),
        Column::new(names::ROUNDS_VERDICT, |summary: &TrendSummary<'a>| {
            summary.rounds.map(RoundsSummary::verdict).into()
        })
        .or_null("dumps are compared"),
        Column::new(names::HEAP_MAX_BYTES, |summary: &TrendSummary<'a>| {
            summary.rounds.and_then(|rounds| rounds.heap_max_bytes).into()
        })
        .or_null("dumps are compared, or it is unknown"),
        Column::new(names::HOURS_UNTIL_FULL, |summary: &TrendSummary<'a>| {
            summary.rounds.and_then(|rounds| rounds.hours_until_full).into()
        })
        .or_null("dumps are compared, nothing grows, or the maximum size of the heap is unknown"),
    ])
}

fn recording_columns<'a>() -> Columns<'a, &'a RecordedProfile> {
    Columns::new([
        Column::new(names::PATH, |recorded: &&'a RecordedProfile| recorded.path().into()),
        Column::record(names::HEAP_TREND, heap_trend(), |recorded: &&'a RecordedProfile| {
            recorded.heap_over_time()?.trend()
        })
        .or_null(nulls::NO_HEAP_TREND),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    let schema = |(variant, about, by)| ResultSchema {
        command: "trend",
        variant,
        about,
        rows: columns(by, None).fields(),
        summary: summary_columns().fields(),
    };
    [
        (
            "`--group-by place`",
            "The default. A row is a place; none contains another. The exit code is 1 if there are no rows.",
            TrendGroupBy::Place,
        ),
        ("`--group-by class`", "A row is a class.", TrendGroupBy::Classes(ClassDiffGrouping::Class)),
        ("`--group-by package`", "A row is a package.", TrendGroupBy::Classes(ClassDiffGrouping::Package)),
        (
            "`--group-by loader`",
            "A row is the class loaders of one name.",
            TrendGroupBy::Classes(ClassDiffGrouping::Loader),
        ),
    ]
    .map(schema)
    .to_vec()
}
