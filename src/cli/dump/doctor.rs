//! `doctor`: what is wrong with a dump, what it means, and what to do.

use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};

use crate::index::Error;
use crate::index::model::problem::{Account, Severity};
use crate::input::file::TextFile;
use crate::query::dump::doctor::{self, Diagnosis, Extent, Finding};
use crate::report::table::{Align, Builder, counted, grouped, human_bytes};
use crate::report::{Format, csv, findings};

use crate::cli::Outcome;
use crate::cli::shared::args::Output;
use crate::cli::shared::recording::{RecordedFile, RecordedInput};
use crate::cli::shared::session::Source;
use crate::cli::shared::{messages, output};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli doctor heap.hprof
  hprof-cli doctor heap.hprof --quick
  hprof-cli doctor heap.hprof --format json | jq '.rows[] | {kind, text, advice}'";

/// What is wrong with a dump: what was read and what is lost, what that means for the answers, and what to do
///
/// Reads the whole dump and builds what the index lacks, as objects that are referred to and not there are found only with
/// all references read. Text reports are taken too.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: RecordedInput,

    /// Do not look for objects that are referred to and not in the dump: that needs no index of the graph
    #[arg(long, help_heading = "Input")]
    quick: bool,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let input = &args.input.input;
    if TextFile::open(input.path()).map_err(Error::from)?.is_some() {
        return text(args);
    }
    let without_graph = || -> anyhow::Result<_> {
        let heap = input.open_records()?;
        let diagnosis = doctor::doctor(&heap, None);
        Ok((heap, diagnosis))
    };
    let (heap, diagnosis) = if args.quick {
        without_graph()?
    } else {
        match input.with_graph(|heap, graph| Ok(doctor::doctor(heap, Some(graph)))) {
            Ok((heap, _, diagnosis)) => (heap, diagnosis),
            // What can be said without the graph is wanted most when there can be none.
            Err(error) if needs_no_graph(&error) => {
                messages::line("note", &format!("without looking for missing objects: {error:#}"));
                without_graph()?
            }
            Err(error) => return Err(error),
        }
    };
    let Diagnosis { extent, findings } = &diagnosis;
    write(args, heap.summary().is_damaged(), Some(extent), findings, |out, rows, more| {
        output::json(out, "doctor", &heap, rows, more)
    })
}

/// Writes the answer; `json` writes a document of rows and more.
fn write(
    args: &Args,
    damaged: bool,
    extent: Option<&Extent>,
    findings: &[Finding],
    json: impl FnOnce(&mut dyn Write, Vec<RowOut<'_>>, Value) -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    let mut out = output::stdout();
    match args.output.format() {
        Format::Table => {
            let mut table = Builder::new(&[("", Align::Left), ("", Align::Left)]).wrapping();
            table.row(["verdict", verdict(damaged, findings)]);
            if let Some(extent) = extent {
                extent_lines(extent, &mut |key, value| table.row([key, &value]));
            }
            finding_lines(findings, &mut |key, value| table.row([key, value]));
            table.write(&mut out, output::style(&args.output))?;
        }
        Format::Csv => csv::write_nested(&mut out, rows(findings))?,
        Format::Json => {
            let more = json!({ "verdict": verdict_name(damaged, findings), "account": extent.map(account) });
            json(&mut out, rows(findings), more)?;
        }
    }
    output::finish(out)?;
    Ok(if damaged { Outcome::Damaged } else { Outcome::Fine })
}

/// Whether only the graph could not be built: no room, no memory, too many objects.
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

/// A text report: its lines that were not understood.
fn text(args: &Args) -> anyhow::Result<Outcome> {
    let Some((_, recorded)) = args.input.open_text()? else {
        anyhow::bail!("{} has changed while it was read", args.input.input.path().display());
    };
    let mut found = Vec::new();
    if let RecordedFile::Text { report, .. } = &recorded.file {
        if let Some(first) = report.malformed.first() {
            let text = format!(
                "{} lines were not understood; the first is line {}: {} expected, found {:?}",
                grouped(report.not_understood),
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
    write(args, recorded.is_damaged(), None, &found, |out, rows, more| {
        recorded.json(out, "doctor", rows, more)
    })
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
        "damaged" => "damaged: part of it is missing or unreadable, answers are of the rest",
        "healthy" => "healthy: nothing is missing, and nothing is odd",
        _ => "healthy: nothing of the file is missing; what is odd stands below",
    }
}

#[derive(Serialize)]
struct RowOut<'a> {
    severity: Severity,
    kind: &'a str,
    text: &'a str,
    count: u64,
    offset: Option<u64>,
    skipped_bytes: u64,
    means: &'a str,
    advice: &'a str,
}

fn rows(findings: &[Finding]) -> Vec<RowOut<'_>> {
    let rows = findings.iter().map(|finding| RowOut {
        severity: finding.severity,
        kind: finding.subject.name(),
        text: &finding.text,
        count: finding.count,
        offset: finding.offset,
        skipped_bytes: finding.skipped_bytes,
        means: findings::means(finding.subject),
        advice: findings::advice(finding.subject),
    });
    rows.collect()
}

fn finding_lines(findings: &[Finding], line: &mut dyn FnMut(&str, &str)) {
    for finding in findings {
        let mut text = finding.text.clone();
        if let Some(offset) = finding.offset {
            text += &format!(" (at offset {offset:#x})");
        }
        if finding.count > 1 && !matches!(finding.subject, doctor::Subject::LinesNotUnderstood) {
            let bytes = grouped(finding.skipped_bytes);
            text += &format!("; {} such places are listed by `info`, {bytes} bytes in all", finding.count);
        }
        let key = if finding.severity == Severity::Damage { "damage" } else { "note" };
        line(key, &text);
        line("  means", findings::means(finding.subject));
        line("  do", findings::advice(finding.subject));
    }
}

/// How much of a dump is there, as lines of a table: only what there is to say.
pub(crate) fn extent_lines(extent: &Extent, line: &mut dyn FnMut(&str, String)) {
    account_lines(&extent.account, line);
    match extent.missing {
        None => line("missing objects", "not known: all references have to be read for it".to_owned()),
        Some(missing) if missing.references == 0 => {
            line("missing objects", "none: each object that is referred to is there".to_owned());
        }
        Some(missing) => {
            let at_least = if missing.more { "at least " } else { "" };
            let (objects, references) = (grouped(missing.objects), counted(missing.references, "reference"));
            line("missing objects", format!("{at_least}{objects}, by {references}"));
        }
    }
    line("retained sizes", findings::retained(extent.retained).to_owned());
}

/// What was read and what is lost.
fn account_lines(account: &Account, line: &mut dyn FnMut(&str, String)) {
    let bytes = |bytes: u64| format!("{} ({})", human_bytes(bytes), grouped(bytes));
    let read = account.read_bytes();
    line(
        "read",
        match account.expected_bytes {
            None => format!("{}; how much is missing is not known", bytes(read)),
            Some(expected) if expected == read => format!("all of {}", bytes(expected)),
            Some(expected) => {
                let at_least = if expected > account.file_bytes { "at least " } else { "" };
                format!("{} of {at_least}{}, {}", bytes(read), bytes(expected), share(read, expected))
            }
        },
    );
    let records = "at the top level, with one or more records each";
    let objects = "in the heap dump, with one or more objects or roots each";
    let undumped = "of classes that are not dumped";
    let counts = [
        ("  unreadable", account.skipped_bytes, "byte", "that are there"),
        ("  lost records", account.lost_records, "place", records),
        ("  lost objects", account.lost_places, "place", objects),
        ("  lost classes", account.undumped_classes, "name", undumped),
        ("  odd objects", account.objects_without_class, "instance", undumped),
        (
            "  odd lengths",
            account.odd_instances,
            "instance",
            "with more or fewer bytes than the class declares",
        ),
    ];
    for (key, count, unit, what) in counts.into_iter().filter(|(_, count, ..)| *count > 0) {
        line(key, format!("{} {what}", counted(count, unit)));
    }
}

/// A part of a whole as people say it, never rounded up to all of it.
fn share(part: u64, whole: u64) -> String {
    let per_mille = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}

/// The account of JSON.
pub(crate) fn account(extent: &Extent) -> Value {
    let account = &extent.account;
    json!({
        "read_bytes": account.read_bytes(),
        "expected_bytes": account.expected_bytes,
        "skipped_bytes": account.skipped_bytes,
        "lost_records": account.lost_records,
        "lost_places": account.lost_places,
        "undumped_classes": account.undumped_classes,
        "objects_without_class": account.objects_without_class,
        "odd_instances": account.odd_instances,
        "empty_segments": account.empty_segments,
        "cut_arrays": account.cut_object_arrays + account.cut_primitive_arrays,
        "missing_objects": extent.missing,
        "retained_sizes": extent.retained,
    })
}
