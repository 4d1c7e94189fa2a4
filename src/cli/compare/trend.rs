//! `trend`: what grows from dump to dump.

use std::sync::Arc;

use crate::cli::Outcome;
use crate::cli::shared::args::{Input, Output};
use crate::cli::shared::context::RunContext;
use crate::cli::shared::keys::{Key, keys};
use crate::cli::shared::limit::Top;
use crate::cli::shared::session::{Session, Source};
use hprof_index::Heap;
use hprof_index::layout::sizes::Sizes;
use hprof_query::classes::pattern::ClassPattern;
use hprof_query::compare::Growth;
use hprof_query::compare::classes::{Census, GroupBy, Question};
use hprof_query::compare::places::Places;
use hprof_query::compare::trend::{self, Least, Row, Which};
use hprof_query::dictionary::{Name, Side, names};
use hprof_query::objects::condition::size;
use hprof_report::Format;
use hprof_report::answer::{Answer, Declared, Section};
use hprof_report::column::{Align, Column, Columns, Fit};
use hprof_report::json::Dump;
use hprof_report::number::{human_bytes, signed, signed_bytes};
use hprof_report::value::{Value, list};

use super::diff::places_of;
use super::place_lines;
use crate::cli::shared::several::{OneDump, SeveralInput};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli trend monday.hprof tuesday.hprof wednesday.hprof
  hprof-cli trend heap-*.hprof --group-by class
  hprof-cli trend heap-*.hprof --all --min-change 1MiB
  hprof-cli trend heap-*.hprof --format json | jq '.rows[] | select(.grows == \"every_step\")'";

/// Milliseconds of an hour.
const HOUR_MS: f64 = 3_600_000.0;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Place,
    Classes(GroupBy),
}

/// The words of `--group-by`.
const GROUP_BY: &[Key<By>] = &[
    ("place", By::Place, "Where in the program: by which fields, from static fields and threads down"),
    ("class", By::Classes(GroupBy::Class), "Classes, by name and class loader"),
    ("package", By::Classes(GroupBy::Package), "Packages"),
    ("loader", By::Classes(GroupBy::Loader), "Class loaders"),
];

/// The order of dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Time,
    Given,
}

/// The words of `--order`.
const ORDER: &[Key<Order>] =
    &[("time", Order::Time, "By the times in their headers"), ("given", Order::Given, "As they are given")];

/// Show what grows from dump to dump
///
/// Compares three or more dumps of a program, in the order of the times in their headers: what grows in every
/// step, and what has grown and stopped. What rises and falls is no leak, and left out; --all shows it too.
/// Places are those of `diff --group-by place`: what they retain counts; of classes the shallow bytes count. The exit code is 1 if
/// nothing grows.
#[derive(Debug, clap::Args)]
#[command(override_usage = "hprof-cli trend [OPTIONS] <DUMP> <DUMP> <DUMP>...")]
pub(crate) struct Args {
    #[command(flatten)]
    input: SeveralInput,

    /// The order of the dumps
    #[arg(long, value_name = "ORDER", value_parser = keys(ORDER), default_value = "time", help_heading = "Input")]
    order: Order,

    /// Group rows by this key: what is compared
    #[arg(
        long,
        alias = "by",
        value_name = "KEY",
        value_parser = keys(GROUP_BY),
        default_value = "place",
        help_heading = "Output"
    )]
    group_by: By,

    /// Only classes that match PATTERN; with --group-by class, package, loader
    #[arg(long = "class", value_name = "PATTERN", help_heading = "Filter")]
    patterns: Vec<ClassPattern>,

    /// Leave out smaller changes, from the first dump to the last, for example 1MiB [default: a thousandth of the largest
    /// heap if it grows in every step, else a hundredth]
    #[arg(long, value_name = "SIZE", value_parser = size::parse, help_heading = "Filter")]
    min_change: Option<u64>,

    /// Leave nothing out: also show what rises and falls
    #[arg(long, help_heading = "Filter")]
    all: bool,

    #[command(flatten)]
    top: Top,

    #[command(flatten)]
    output: Output<true>,
}

/// The dumps, when they have been read.
struct Dumps {
    all: Vec<OneDump>,
    /// What the last one says.
    last: LastDump,
    is_damaged: bool,
}

/// The newest dump, of which JSON says most.
enum LastDump {
    Heap(Arc<Heap>),
    Session(Box<Session>),
}

impl Source for Dumps {
    fn dump(&self) -> Dump<'_> {
        match &self.last {
            LastDump::Heap(heap) => heap.dump(),
            LastDump::Session(session) => session.dump(),
        }
    }

    fn is_damaged(&self) -> bool {
        self.is_damaged
    }
}

pub(crate) fn run(cx: &RunContext, args: &Args) -> anyhow::Result<Outcome> {
    let dumps = args.input.len();
    anyhow::ensure!(
        dumps > 2,
        "trend compares three or more dumps, and {dumps} were given; `hprof-cli diff` compares two"
    );
    anyhow::ensure!(
        args.patterns.is_empty() || args.group_by != By::Place,
        "--class has no meaning with --group-by place; omit it, or use --group-by class"
    );
    let inputs = ordered(cx, args)?;
    let which = if args.all { Which::All } else { Which::Growing };
    let (source, rows, least) = match args.group_by {
        By::Place => by_place(cx, args, &inputs, which)?,
        By::Classes(group_by) => by_class(cx, args, &inputs, which, group_by)?,
    };
    let hours = hours(&source.all);
    let shown = rows.iter().take(args.top.rows(args.output.format()).unwrap_or(usize::MAX));
    let lines = shown.map(|row| Line { row, hours });
    let beside = Beside { dumps: &source.all, least, hours };
    let what = if args.all { "has changed" } else { "grows in every step, or has grown and stopped," };
    let nothing = format!("nothing {what} by {} or more (--min-change)", human_bytes(least.growing));
    let width = place_lines::width(cx, &args.output);
    let mut answer = Answer::new(columns(args.group_by, width), lines)
        .beside(&beside_columns(), &beside)
        .matching(rows.len() as u64, "rows")
        .without_rows(args.output.no_rows(nothing.clone()));
    if args.output.format() == Format::Table {
        answer = answer
            .above(Section::Text(headline(&beside)))
            .below(|line: &Line<'_>| place_lines::lines(&line.row.text, width));
    }
    source.show(cx, "trend", &args.output, answer)?;
    if rows.is_empty() && !args.input.quiet() {
        cx.say("note", &nothing);
    }
    Ok(source.outcome(!rows.is_empty()))
}

/// The dumps in the order that is asked for, with the times of their headers.
fn ordered(cx: &RunContext, args: &Args) -> anyhow::Result<Vec<(Input, u64)>> {
    let mut dumps = Vec::new();
    for input in args.input.inputs() {
        // What there is to say of it is said when it is read.
        let heap = input.open_quietly(cx)?;
        dumps.push((input, heap.summary().facts().created_ms.get()));
    }
    if args.order == Order::Time {
        if dumps.iter().any(|(_, created)| *created == 0) {
            if !args.input.quiet() {
                cx.say("note", "not all dumps say when they were made; they are compared in the order given");
            }
        } else {
            dumps.sort_by_key(|(_, created)| *created);
        }
    }
    Ok(dumps)
}

type Found = (Dumps, Vec<Row>, Least);

fn by_place(cx: &RunContext, args: &Args, inputs: &[(Input, u64)], which: Which) -> anyhow::Result<Found> {
    let (mut places, mut all, mut last): (Vec<Places>, _, _) = (Vec::new(), Vec::new(), None);
    let mut is_damaged = false;
    for (input, created) in inputs {
        let (session, found) = Session::ask(cx, input, places_of)?;
        is_damaged |= session.is_damaged();
        all.push(OneDump::of(&session, *created));
        places.push(found);
        last = Some(session);
    }
    let last = last.ok_or_else(|| anyhow::anyhow!("no dump was given"))?;
    let (rows, least) = trend::places(&places, which, args.min_change);
    Ok((Dumps { all, last: LastDump::Session(Box::new(last)), is_damaged }, rows, least))
}

fn by_class(
    cx: &RunContext,
    args: &Args,
    inputs: &[(Input, u64)],
    which: Which,
    group_by: GroupBy,
) -> anyhow::Result<Found> {
    let question = Question { group_by, patterns: args.patterns.clone() };
    let (mut censuses, mut all, mut last) = (Vec::new(), Vec::new(), None);
    let mut is_damaged = false;
    for (input, created) in inputs {
        let heap = input.open(cx)?;
        is_damaged |= heap.is_damaged();
        all.push(OneDump::of(&heap, *created));
        censuses.push(Census::new(heap.summary(), &Sizes::new(heap.summary(), None), &question));
        last = Some(heap);
    }
    let last = last.ok_or_else(|| anyhow::anyhow!("no dump was given"))?;
    let (rows, least) = trend::classes(&censuses, which, args.min_change);
    Ok((Dumps { all, last: LastDump::Heap(last), is_damaged }, rows, least))
}

/// Hours from the first dump to the last, if both say when they were made.
fn hours(dumps: &[OneDump]) -> Option<f64> {
    let (first, last) = (dumps.first()?.created_ms, dumps.last()?.created_ms);
    #[allow(clippy::cast_precision_loss)]
    let hours = last.checked_sub(first).filter(|_| first > 0)? as f64 / HOUR_MS;
    (hours > 0.0).then_some(hours)
}

fn headline(beside: &Beside<'_>) -> String {
    let names: Vec<&str> = beside.dumps.iter().map(|dump| file_name(&dump.path)).collect();
    let time = match beside.hours {
        Some(hours) if hours >= 1.0 => format!(", {hours:.1} hours"),
        Some(hours) if hours * 60.0 >= 1.0 => format!(", {:.1} minutes", hours * 60.0),
        Some(hours) => format!(", {:.1} seconds", hours * 3600.0),
        None => String::new(),
    };
    format!("{} dumps{time}: {}", beside.dumps.len(), names.join(", "))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A row, and the time over which it developed.
struct Line<'a> {
    row: &'a Row,
    hours: Option<f64>,
}

impl Line<'_> {
    /// Bytes an hour, rounded.
    fn per_hour(&self) -> Option<i64> {
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
        Some((self.row.delta() as f64 / self.hours?).round() as i64)
    }

    /// The figures as bars, the largest the highest: from nothing, so that a small change looks small.
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

/// The columns; `width` is that of places below their rows.
fn columns<'a>(by: By, width: Option<usize>) -> Columns<'a, Line<'a>> {
    let in_column = |column: Column<'a, Line<'a>>| if width.is_some() { column.hidden() } else { column };
    let mut columns: Vec<Column<'a, Line<'a>>> = match by {
        By::Place => vec![
            Column::of(names::PLACE, |line: &Line<'a>| list(line.row.labels.iter())),
            in_column(
                Column::of(names::TEXT, |line: &Line<'a>| Value::from(&*line.row.text))
                    .header("place")
                    .fit(Fit::Wrap)
                    .place(9),
            ),
        ],
        By::Classes(group_by) => {
            let name = |name: Name| {
                Column::of(name, |line: &Line<'a>| {
                    line.row.key.as_ref().map(|key| Value::from(&*key.name)).unwrap_or_default()
                })
            };
            let loader = Column::of(names::LOADER, |line: &Line<'a>| {
                line.row.key.as_ref().and_then(|key| key.loader.as_deref()).into()
            })
            .or_null("the class has no class object in the dump");
            let shown = |column: Column<'a, Line<'a>>, title| {
                column.header(title).fit(Fit::Shorten { priority: 0 }).place(9)
            };
            match group_by {
                GroupBy::Package => vec![shown(name(names::PACKAGE), "package")],
                GroupBy::Loader => vec![shown(loader, "loader")],
                GroupBy::Class | GroupBy::Superclass => {
                    vec![shown(name(names::CLASS), "class"), loader]
                }
            }
        }
    };
    columns.extend([
        Column::of(names::GROWS, |line: &Line<'a>| line.row.growth.map(Growth::name).into())
            .header("grows")
            .cell(|line| line.row.growth.map(|growth| growth.name().replace('_', " ")).unwrap_or_default())
            .place(0),
        Column::of(names::VALUES_BY_DUMP, |line: &Line<'a>| list(line.row.bytes.iter().copied())),
        Column::table("", Align::Left, |line: &Line<'a>| line.sparkline()).place(3),
        Column::table("bytes", Align::Right, |line: &Line<'a>| {
            let ends = [line.row.bytes.first(), line.row.bytes.last()];
            ends.into_iter().flatten().map(|bytes| human_bytes(*bytes)).collect::<Vec<_>>().join(" -> ")
        })
        .place(4),
        Column::of(names::OBJECTS_BY_DUMP, |line: &Line<'a>| list(line.row.objects.iter().copied())),
        Column::table("objects", Align::Right, |line: &Line<'a>| signed(line.row.objects_delta())).place(5),
        Column::of(names::BYTES.of(Side::Delta), |line: &Line<'a>| line.row.delta().into()),
        Column::table("growth", Align::Right, |line: &Line<'a>| signed_bytes(line.row.delta())).place(1),
        Column::of(names::BYTES_PER_HOUR, |line: &Line<'a>| line.per_hour().into())
            .or_null("the dumps do not say when they were made")
            .header("per hour")
            .place(2)
            .cell(|line| line.per_hour().map(signed_bytes).unwrap_or_default()),
    ]);
    Columns::new(columns)
}

struct Beside<'a> {
    dumps: &'a [OneDump],
    least: Least,
    hours: Option<f64>,
}

fn beside_columns<'a>() -> Columns<'a, Beside<'a>> {
    Columns::new([
        Column::records(
            names::DUMPS,
            Columns::new(OneDump::columns(|dump: &OneDump| dump)),
            |beside: &Beside<'a>| beside.dumps,
        ),
        Column::of(names::MIN_CHANGES.dot(names::EVERY_STEP_BYTES), |beside: &Beside<'a>| {
            beside.least.growing.into()
        }),
        Column::of(names::MIN_CHANGES.dot(names::OTHER_CHANGE_BYTES), |beside: &Beside<'a>| {
            beside.least.others.into()
        }),
        Column::of(names::HOURS, |beside: &Beside<'a>| beside.hours.into())
            .or_null("the dumps do not say when they were made"),
    ])
}

pub(crate) fn declared() -> Vec<Declared> {
    let declared = |(variant, about, by)| Declared {
        command: "trend",
        variant,
        about,
        rows: columns(by, None).fields(),
        beside: beside_columns().fields(),
    };
    [
        (
            "`--group-by place`",
            "The default. A row is a place; none contains another. The exit code is 1 if there are no rows.",
            By::Place,
        ),
        ("`--group-by class`", "A row is a class.", By::Classes(GroupBy::Class)),
        ("`--group-by package`", "A row is a package.", By::Classes(GroupBy::Package)),
        ("`--group-by loader`", "A row is the class loaders of one name.", By::Classes(GroupBy::Loader)),
    ]
    .map(declared)
    .to_vec()
}
