//! `doctor`: damage in a dump, its effect on results, and what to do about it.

use crate::cli::prelude::*;
use crate::cli::shared::recording::{RecordedFile, RecordedInput};
use hprof_index::Error;
use hprof_index::model::problem::Severity;
use hprof_input::file::TextFile;
use hprof_query::dump::doctor::{self, Diagnosis, Extent, Finding};
use hprof_report::findings;

use crate::cli::shared::advice;
use hprof_report::table::TableBuilder;

use super::account::{self, extent_lines};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli doctor heap.hprof
  hprof-cli doctor heap.hprof --quick
  hprof-cli doctor heap.hprof --format json | jq '.rows[] | {kind, text, advice}'";

/// Diagnose damage in a dump and its effect on answers
///
/// Reports damaged regions, truncation and dangling references, which answers they affect, and what to
/// do. Reads the whole dump; dangling references need the reference graph, which is built once, unless
/// --quick skips them. Text reports are checked for lines that cannot be parsed.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    input: RecordedInput,

    /// Skip dangling references, which require the reference graph
    #[arg(long, help_heading = "Input")]
    quick: bool,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(cx: &RunContext, args: &DoctorArgs) -> anyhow::Result<Outcome> {
    let input = &args.input.input;
    if TextFile::open(input.path()).map_err(Error::from)?.is_some() {
        return text(cx, args);
    }
    let without_graph = || -> anyhow::Result<_> {
        let heap = input.open_records(cx)?;
        let diagnosis = doctor::doctor(&heap, None);
        Ok((heap, diagnosis))
    };
    let (heap, diagnosis) = if args.quick {
        without_graph()?
    } else {
        match Session::ask_graph(cx, input, |dump| Ok(doctor::doctor(dump.heap, Some(dump.graph)))) {
            Ok((session, diagnosis)) => (session.heap, diagnosis),
            // Results that need no graph are most useful when the graph cannot be built.
            Err(error) if needs_no_graph(&error) => {
                cx.emit("note", &format!("dangling references are not counted: {error:#}"));
                without_graph()?
            }
            Err(error) => return Err(error),
        }
    };
    let Diagnosis { extent, findings } = &diagnosis;
    show(cx, &heap, args, Some(extent), findings)
}

/// Shows the findings.
fn show(
    cx: &RunContext,
    source: &impl AnswerSource,
    args: &DoctorArgs,
    extent: Option<&Extent>,
    findings: &[Finding],
) -> anyhow::Result<Outcome> {
    let damaged = source.is_damaged();
    let mut table = TableBuilder::pairs::<&str, &str>([]);
    table.row(["verdict", verdict(damaged, findings)]);
    if let Some(extent) = extent {
        extent_lines(extent, &mut |key, value| table.row([key, &value]));
    }
    finding_lines(findings, &mut |key, value| table.row([key, value]));
    let answer = Answer::new(columns(), findings)
        .with_summary(&summary_columns(), &DoctorSummary { verdict: verdict_name(damaged, findings), extent })
        .instead_of_table(table);
    source.show(cx, "doctor", &args.output, answer)?;
    Ok(source.outcome(true))
}

/// Returns whether only building the graph failed: because of too little disk space or memory, or too many objects.
fn needs_no_graph(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(
            Error::WriteIndex { .. }
                | Error::TooManyObjects { .. }
                | Error::NoMemory { .. }
                | Error::NoDisk { .. }
        )
    )
}

/// Diagnoses a text report: lists the lines that could not be parsed.
fn text(cx: &RunContext, args: &DoctorArgs) -> anyhow::Result<Outcome> {
    let Some((_, recorded)) = args.input.open_text(cx)? else {
        anyhow::bail!(
            "{} changed while it was read; run this again when it is complete",
            args.input.input.path().display()
        );
    };
    let mut found = Vec::new();
    if let RecordedFile::Text { report, .. } = &recorded.file {
        if let Some(first) = report.malformed.first() {
            let text = format!(
                "{} lines cannot be parsed; the first is line {}: expected {}, found {:?}",
                group_digits(report.not_understood),
                first.line,
                first.expected,
                first.text
            );
            found.push(Finding::of_lines(report.not_understood, text));
        }
        if report.runs > 1 {
            found.push(Finding::of_runs(report.runs, report.run));
        }
    }
    show(cx, &recorded, args, None, &found)
}

fn verdict_name(damaged: bool, findings: &[Finding]) -> &'static str {
    match (damaged, findings) {
        (true, _) => "damaged",
        (false, []) => "healthy",
        (false, _) => "odd",
    }
}

fn verdict(damaged: bool, findings: &[Finding]) -> &'static str {
    match verdict_name(damaged, findings) {
        "damaged" => "damaged: part of the file is missing or unreadable; answers cover only the rest",
        "healthy" => "healthy: the file is complete",
        _ => "healthy: the file is complete; see the notes below",
    }
}

/// Keys of the JSON document in addition to its rows.
struct DoctorSummary<'a> {
    verdict: &'static str,
    extent: Option<&'a Extent>,
}

fn summary_columns<'a>() -> Columns<'a, DoctorSummary<'a>> {
    Columns::new([
        Column::new(names::VERDICT, |of: &DoctorSummary<'a>| of.verdict.into()),
        account::column(|of: &DoctorSummary<'a>| of.extent).or_null("for text reports"),
    ])
}

fn columns<'a>() -> Columns<'a, &'a Finding> {
    Columns::new(finding_columns(|row: &&'a Finding| *row))
}

/// Returns the columns of a finding.
pub(super) fn finding_columns<'c, R: 'c>(of: for<'r> fn(&'r R) -> &'r Finding) -> Vec<Column<'c, R>> {
    vec![
        Column::new(names::SEVERITY, move |row: &R| {
            serde_json::to_value(of(row).severity).unwrap_or_default().into()
        }),
        Column::new(names::KIND, move |row: &R| of(row).subject.name().into()),
        Column::new(names::TEXT, move |row: &R| Value::from(&of(row).text)),
        Column::new(names::PROBLEM_COUNT, move |row: &R| of(row).count.into()),
        Column::new(names::OFFSET, move |row: &R| of(row).offset.into()).or_null(nulls::SEVERAL_OFFSETS),
        Column::new(names::SKIPPED_BYTES, move |row: &R| of(row).skipped_bytes.into()),
        Column::new(names::MEANS, move |row: &R| findings::finding_consequence(of(row)).into()),
        Column::new(names::ADVICE, move |row: &R| advice::finding(of(row).subject).into()),
    ]
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "doctor",
        variant: "",
        about: "The findings about a dump, in words. A row is a finding, damage first; similar findings share a row. With `--quick`, references are not read: `dangling_references` of the account comes from an existing index, or is `null`.",
        rows: columns().fields(),
        summary: summary_columns().fields(),
    }]
}

/// Adds table lines for the findings.
pub(super) fn finding_lines<'a>(
    findings: impl IntoIterator<Item = &'a Finding>,
    line: &mut dyn FnMut(&str, &str),
) {
    for finding in findings {
        let mut text = finding.text.clone();
        if let Some(offset) = finding.offset {
            text += &format!(" (at offset {offset:#x})");
        }
        if finding.count > 1 && !matches!(finding.subject, doctor::Subject::LinesNotUnderstood) {
            let bytes = group_digits(finding.skipped_bytes);
            text += &format!("; `info` lists {} such places, {bytes} bytes in total", finding.count);
        }
        let key = if finding.severity == Severity::Damage { "damage" } else { "note" };
        line(key, &text);
        line("  means", &findings::finding_consequence(finding));
        line("  do", advice::finding(finding.subject));
    }
}
