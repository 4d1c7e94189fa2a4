//! The result of `redact`: counts of redacted values, and the rows of the proof.

use std::path::Path;

use hprof_query::redact::proof::{KeptNumbers, ProofRow};
use hprof_report::json::DumpHeader;
use hprof_report::number::format_count;
use hprof_report::table::TableBuilder;

use super::manifest::Manifest;
use super::{RedactArgs, RedactionResult, mapping};
use crate::cli::dump::account::exact;
use crate::cli::prelude::*;

/// The redacted dump, as the source file of the result.
pub(super) struct RedactedDump<'a> {
    pub(super) args: &'a RedactArgs,
    pub(super) output: &'a Path,
    pub(super) done: RedactionResult,
    pub(super) output_bytes: u64,
    pub(super) output_hash: String,
    pub(super) manifest: &'a Path,
    /// Rows of the proof; `None` if no proof was requested.
    pub(super) proof: Option<Vec<ProofRow>>,
}

impl RedactedDump<'_> {
    /// Returns the reason why the redacted dump is discarded, if any.
    pub(super) fn unwritten(&self) -> Option<&'static str> {
        if !self.done.redacted.renames.unmatched_patterns().is_empty() {
            return Some("a pattern of --classes matches no class");
        }
        let is_proved = self.proof.iter().flatten().all(ProofRow::is_equal);
        (!is_proved).then_some("the proof failed")
    }

    /// Returns the data for the manifest.
    pub(super) fn manifest(&self) -> Manifest<'_> {
        Manifest {
            input: self.args.file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default(),
            done: &self.done,
            output: self.output,
            output_bytes: self.output_bytes,
            output_hash: &self.output_hash,
            what: &self.args.what,
            proof: self.proof.as_deref(),
        }
    }
}

impl AnswerSource for RedactedDump<'_> {
    fn header(&self) -> DumpHeader<'_> {
        DumpHeader {
            path: self.output.to_string_lossy(),
            file_bytes: Some(self.output_bytes),
            is_damaged: Some(self.is_damaged()),
            ..DumpHeader::default()
        }
    }

    fn is_damaged(&self) -> bool {
        self.done.redacted.is_damaged() || self.done.packed_error.is_some()
    }
}

/// Shows the result.
pub(super) fn show(cx: &RunContext, args: &RedactArgs, result: &RedactedDump<'_>) -> anyhow::Result<()> {
    let mut table = TableBuilder::pairs::<&str, &str>([]);
    table_lines(result, &mut |key, value| table.row([key, value]));
    let rows = result.proof.as_deref().unwrap_or_default();
    let answer =
        Answer::new(columns(), rows).with_summary(&summary_columns(), result).instead_of_table(table);
    result.show(cx, "redact", &args.format, answer)?;
    Ok(())
}

fn table_lines(result: &RedactedDump<'_>, line: &mut dyn FnMut(&str, &str)) {
    let counts = &result.done.redacted.counts;
    let unwritten = result.unwritten();
    if let Some(why) = unwritten {
        line("output", &format!("not written: {why}"));
    } else {
        line("output", &format!("{}, {}", result.output.display(), exact(result.output_bytes)));
        line("manifest", &result.manifest.display().to_string());
    }
    let kept: u64 = counts.arrays_kept.values().sum();
    line(
        "arrays",
        &format!(
            "{}: {} replaced, {} kept as names, {} without values",
            group_digits(counts.arrays),
            group_digits(counts.arrays_mapped + counts.arrays_repeated),
            group_digits(kept),
            group_digits(counts.arrays_without_values)
        ),
    );
    line(
        "numbers",
        &format!(
            "{} replaced, {} kept",
            group_digits(counts.numbers_mapped + counts.hashes_mapped),
            group_digits(counts.numbers_kept)
        ),
    );
    line(
        "symbols",
        &format!(
            "{} replaced, {} kept as names",
            group_digits(counts.symbols_mapped),
            group_digits(counts.symbols_kept)
        ),
    );
    if !result.args.what.classes.is_empty() {
        let count = group_digits(result.done.redacted.renames.old_names().len() as u64);
        let path = mapping::path(result.output);
        let mapping = unwritten.map_or_else(|| format!(", mapping in {}", path.display()), |_| String::new());
        line("classes", &format!("{count} renamed{mapping}"));
    }
    proof_lines(result.proof.as_deref().unwrap_or_default(), line);
    if let Some(offset) = result.done.redacted.end.lost_from {
        line("damage", &format!("everything after offset {offset:#x} is missing"));
    }
    if let Some(error) = &result.done.packed_error {
        line("damage", error);
    }
    if counts.damaged_regions > 0 {
        line("damage", &format!("{} not copied", format_count(counts.damaged_regions, "damaged region")));
    }
    if counts.unknown_instances > 0 {
        let text = format_count(counts.unknown_instances, "instance");
        line(
            "damage",
            &format!("fields of {text} were set to 0: the dump does not contain their class before them"),
        );
    }
}

/// Calls `line` with the name and the verdict of each row of the proof.
pub(super) fn proof_lines(rows: &[ProofRow], line: &mut dyn FnMut(&str, &str)) {
    for row in rows {
        let is_search = row.what.starts_with("texts") || row.what == "secrets";
        let mut verdict = match (row.differences, is_search) {
            (0, false) if !row.kept.is_empty() => numbers_that_stay(row),
            (0, false) => "equal".to_owned(),
            (0, true) => "nothing found".to_owned(),
            (count, false) => format!("FAILED: {}", format_count(count, "difference")),
            (count, true) => format!("FAILED: {} found", group_digits(count)),
        };
        if row.allowed > 0 {
            let reason = row.reason.unwrap_or_default();
            let allowed = group_digits(row.allowed);
            verdict.push_str(&format!("; {allowed} permitted differences or remaining values: {reason}"));
        }
        line(row.what, &verdict);
    }
}

/// Describes how many numbers and booleans are not redacted.
fn numbers_that_stay(row: &ProofRow) -> String {
    let sum = |is_boolean: bool, word: &str| {
        let kept = || row.kept.iter().filter(|kept| kept.is_boolean == is_boolean);
        let numbers = kept().map(|kept| kept.count).sum();
        format!("{} of {}", format_count(numbers, word), format_count(kept().count() as u64, "field"))
    };
    format!("{} and {} are kept: see docs/redact.md", sum(false, "number"), sum(true, "boolean"))
}

/// Condition under which nothing was written.
const UNWRITTEN: &str = "the proof failed, or a pattern of `--classes` matches no class";

fn summary_columns<'a>() -> Columns<'a, RedactedDump<'a>> {
    let path = |of: &RedactedDump<'a>, path: &Path| -> Value<'a> {
        of.unwritten().is_none().then(|| path.to_string_lossy().into_owned()).into()
    };
    Columns::new([
        Column::new(names::REDACTED_FILE, move |of: &RedactedDump<'a>| path(of, of.output))
            .or_null(UNWRITTEN),
        Column::new(names::REDACTED_BYTES, |of: &RedactedDump<'a>| of.output_bytes.into()),
        Column::new(names::MANIFEST_FILE, move |of: &RedactedDump<'a>| path(of, of.manifest))
            .or_null(UNWRITTEN),
    ])
}

/// Condition under which a row has no `allowed_because`.
const NOTHING_STAYS: &str = "nothing may stay";

pub(super) fn columns<'a>() -> Columns<'a, &'a ProofRow> {
    Columns::new([
        Column::new(names::WHAT, |row: &&'a ProofRow| row.what.into()),
        Column::new(names::IS_EQUAL, |row: &&'a ProofRow| row.is_equal().into()),
        Column::new(names::DIFFERENCES, |row: &&'a ProofRow| row.differences.into()),
        Column::new(names::ALLOWED, |row: &&'a ProofRow| row.allowed.into()),
        Column::new(names::ALLOWED_BECAUSE, |row: &&'a ProofRow| row.reason.into()).or_null(NOTHING_STAYS),
        Column::records(names::KEPT_NUMBERS, kept_numbers(), |row: &&'a ProofRow| &row.kept),
    ])
}

fn kept_numbers<'a>() -> Columns<'a, KeptNumbers> {
    Columns::new([
        Column::new(names::CLASS, |kept: &KeptNumbers| (&kept.class).into()),
        Column::new(names::KEPT_FIELD, |kept: &KeptNumbers| (&kept.field).into()),
        Column::new(names::NUMBERS, |kept: &KeptNumbers| kept.count.into()),
        Column::new(names::IS_BOOLEAN, |kept: &KeptNumbers| kept.is_boolean.into()),
        Column::new(names::NEEDED_BY, |kept: &KeptNumbers| kept.commands.into()),
        Column::new(names::NEEDED_FOR, |kept: &KeptNumbers| (&kept.answer).into()),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "redact",
        variant: "",
        about: "With `--prove` and `--check`, a row is an analysis whose results were compared, or a search for \
                texts. Without them, there are no rows; with `--check`, there are no keys other than `rows`.",
        rows: columns().fields(),
        summary: summary_columns().fields(),
    }]
}
