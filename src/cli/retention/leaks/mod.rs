//! `leaks`: leak suspects in sentences, with evidence.

pub(crate) mod allocated;
mod beside;
mod claim;
mod columns;
mod facts;
mod loaders;
mod markdown;
mod parts;
mod screen;
pub(crate) mod words;

use hprof_query::dump::unreachable::{Filler, Unreachable};
use hprof_query::heap_facts::{self, HeapFacts};
use hprof_query::leaks::heap_places::HeapPlaces;
use hprof_query::leaks::{self, DEFAULT_THRESHOLD, LeakEvidence, Leaks};
use hprof_report::table::Style;

use crate::cli::prelude::*;
use crate::cli::shared::beside_recording::{BesideRecording, ComparedRecording, RecordingArg};
use crate::cli::shared::color::ColorArg;
use crate::cli::shared::commands;
use crate::cli::shared::frameworks::FrameworksArgs;
use crate::cli::shared::output;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli leaks heap.hprof
  hprof-cli leaks heap.hprof --threshold 5
  hprof-cli leaks heap.hprof --recording recording.jfr
  hprof-cli leaks heap.hprof --format markdown > ticket.md
  hprof-cli leaks heap.hprof --format json | jq -r '.rows[0].sentence'";

/// Value of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaksFormat {
    /// A format that all commands have.
    Rows(Format),
    /// Markdown, to paste into a ticket.
    Markdown,
}

/// Values of `--format`.
const FORMAT: &[Keyword<LeaksFormat>] = &[
    ("table", LeaksFormat::Rows(Format::Table), "Human-readable text"),
    ("json", LeaksFormat::Rows(Format::Json), "One JSON document with all evidence"),
    ("csv", LeaksFormat::Rows(Format::Csv), "Comma-separated values with a header line"),
    ("markdown", LeaksFormat::Markdown, "Markdown, to paste into a ticket"),
];

/// Find leak suspects and show the evidence
///
/// A suspect is an object that no other object dominates and that retains more than --threshold percent of the
/// reachable heap, or all such objects of one class if together they retain more. Each is followed down to its
/// accumulation point, as in Eclipse MAT. The verdict is `accumulation` if at least 80 percent of what is retained
/// there is in many children of one class, in chains or trees of one class, in one buffer, or in many similar threads
/// or class loaders; otherwise it is `holder`: different parts. Containers within holders are suspects, too, and so is
/// what a framework rule calls a leak. What the program is meant to hold, such as a cache within its bound, is
/// `content`. The exit code is 1 if nothing accumulates, or only what makes up less than 1 percent of all objects.
/// Builds the index on first use.
#[derive(Debug, clap::Args)]
pub(crate) struct LeaksArgs {
    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    frameworks: FrameworksArgs,

    #[command(flatten)]
    recording: RecordingArg,

    /// Report objects that retain more than this percentage of the reachable heap
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = DEFAULT_THRESHOLD,
        value_parser = clap::value_parser!(u8).range(1..=100),
        help_heading = "Filter"
    )]
    threshold: u8,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        value_parser = keys(FORMAT),
        default_value = "table",
        help_heading = "Output"
    )]
    format: LeaksFormat,

    /// When to use color; `auto` respects NO_COLOR
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    color: ColorArg,
}

/// Suspects and other findings that the command shows.
struct LeaksReport {
    leaks: Leaks,
    facts: HeapFacts,
    /// Shallow size in bytes of unreachable objects, and of all objects.
    unreachable: (u64, u64),
    /// `true` if more than a tenth of the unreachable bytes may be filler.
    has_filler: bool,
    /// `true` if part of the dump is missing.
    is_damaged: bool,
    recording: Option<ComparedRecording>,
}

pub(crate) fn run(cx: &RunContext, args: &LeaksArgs) -> anyhow::Result<Outcome> {
    let frameworks = args.frameworks.rules(cx)?;
    let recording = args.recording.read(cx, &args.input)?;
    let (session, told) = Session::ask(cx, &args.input, |dump| {
        let unreachable = Unreachable::new(dump.summary, dump.graph);
        let Filler(filler) = Filler::new(dump.summary, dump.graph);
        let places = HeapPlaces::new(dump, &frameworks, args.threshold)?;
        let mut leaks = leaks::leaks(dump, args.threshold, &places, LeakEvidence::All)?;
        let add = |recording: &BesideRecording| recording.add_to(&mut leaks, cx, dump);
        let recording = recording.as_ref().map(add);
        Ok(LeaksReport {
            leaks,
            facts: heap_facts::facts(dump),
            unreachable: (unreachable.bytes, unreachable.all_bytes),
            has_filler: filler.shallow_bytes > unreachable.bytes / 10,
            is_damaged: dump.summary.is_damaged(),
            recording,
        })
    })?;
    told.recording.iter().for_each(|recording| recording.warn(cx));
    let style = cx.style(args.color);
    match args.format {
        LeaksFormat::Rows(format) => {
            cx.for_each_format(format, |cx, format| show(cx, &session, &told, &args.input, (format, style)))?;
        }
        LeaksFormat::Markdown => {
            let mut out = cx.writer();
            markdown::write(&mut out, &session, &told)?;
            output::finish_if(out, session.check())?;
        }
    }
    let outcome = session.outcome(!told.leaks.conclusions.is_empty());
    Ok(ComparedRecording::outcome(told.recording.as_ref(), outcome))
}

/// Shows suspects as rows; in place of a table, as text.
fn show(
    cx: &RunContext,
    session: &Session,
    told: &LeaksReport,
    input: &Input,
    (format, style): (Format, Style),
) -> anyhow::Result<()> {
    let is_table = format == Format::Table;
    let rows = (0..told.leaks.suspects.len()).filter(|_| !is_table);
    let rows = rows.filter_map(|at| columns::SuspectLine::new(told, at));
    let mut answer = Answer::new(columns::columns(), rows)
        .with_summary(&beside::columns(), &told)
        .if_empty(NoRows::Nothing);
    if is_table {
        let next = screen::next(told, input);
        let width = style.width.map_or(usize::MAX, usize::from);
        answer = screen::sections(session, told).into_iter().fold(answer, Answer::with_section_above);
        answer = answer.with_section_below(Section::Unwrapped(commands::lines(&next, width)));
    }
    session.show_as(cx, "leaks", format, style, answer)?;
    Ok(())
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "leaks",
        variant: "",
        about: "A row is a suspect: an object that only GC roots dominate and that retains more than `--threshold` percent of \
                the reachable bytes, or all other such objects of a class together; those that retain most first. After these \
                come those that rules about frameworks find, and those within holders (`rule`). Rows of `rule` `mat` are what \
                Eclipse MAT says; the verdict on each that is more than a holder is in a row after them. The exit \
                code is 1 if no `verdict` is `accumulation`, or only of what is less than 1 percent of all objects.",
        rows: columns::columns().fields(),
        summary: beside::columns().fields(),
    }]
}
