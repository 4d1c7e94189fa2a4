//! The result of `export`: the written tables as rows.

use std::sync::Arc;

use crate::cli::prelude::*;
use crate::cli::shared::color::ColorArg;
use crate::cli::shared::several::DumpOutcome;
use hprof_index::Heap;
use hprof_index::storage::human_bytes::HumanBytes;
use hprof_report::json;
use hprof_report::number::format_count;

/// An exported table of a dump, as a row of the result.
pub(super) struct ExportedTable {
    pub(super) dump: String,
    pub(super) table: String,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) parts: u64,
}

/// Result of exporting a dump.
pub(super) struct ExportedDump {
    pub(super) one: DumpOutcome,
    pub(super) name: String,
    /// Reason why the dump was not exported.
    pub(super) error: Option<String>,
    pub(super) rows: Vec<ExportedTable>,
}

/// Result of exporting all dumps.
pub(super) struct ExportResult {
    pub(super) to: String,
    pub(super) dumps: Vec<ExportedDump>,
    /// The last dump that could be read.
    pub(super) heap: Option<Arc<Heap>>,
}

impl AnswerSource for ExportResult {
    fn header(&self) -> json::DumpHeader<'_> {
        match (self.dumps.as_slice(), &self.heap) {
            ([_], Some(heap)) => heap.header(),
            (dumps, _) => {
                let path = dumps.first().map(|dump| dump.one.path.as_str()).unwrap_or_default();
                json::DumpHeader { path: path.into(), ..json::DumpHeader::default() }
            }
        }
    }

    fn is_damaged(&self) -> bool {
        self.dumps.iter().any(|dump| dump.one.damaged == Some(true))
    }
}

/// Shows the written files.
pub(super) fn show(
    cx: &RunContext,
    exported: &ExportResult,
    format: Format,
    color: ColorArg,
) -> anyhow::Result<()> {
    let rows = || exported.dumps.iter().flat_map(|dump| &dump.rows);
    let mut answer = Answer::new(columns(), rows()).with_summary(&summary_columns(), &exported);
    if format == Format::Table {
        let (all_rows, all_bytes) =
            rows().fold((0u64, 0u64), |(rows, bytes), row| (rows + row.rows, bytes + row.bytes));
        let dumps = exported.dumps.iter().filter(|dump| dump.error.is_none()).count();
        let line = format!(
            "{} rows of {} in {}: {}",
            group_digits(all_rows),
            format_count(dumps as u64, "dump"),
            exported.to,
            HumanBytes(all_bytes)
        );
        answer =
            answer.with_section_below(Section::Line(String::new())).with_section_below(Section::Line(line));
    }
    exported.show_as(cx, "export", format, cx.style(color), answer)?;
    Ok(())
}

fn columns<'a>() -> Columns<'a, &'a ExportedTable> {
    Columns::new([
        Column::new(names::DUMP, |row: &&ExportedTable| row.dump.as_str().into())
            .header("dump")
            .fit(Fit::Middle { priority: 0 }),
        Column::new(names::TABLE, |row: &&ExportedTable| row.table.as_str().into())
            .header("table")
            .fit(Fit::Shorten { priority: 1 }),
        Column::new(names::ROWS, |row: &&ExportedTable| row.rows.into()).header("rows"),
        Column::new(names::FILE_BYTES, |row: &&ExportedTable| row.bytes.into()).header("bytes"),
        Column::new(names::FILES, |row: &&ExportedTable| row.parts.into()).header("parts"),
    ])
}

fn summary_columns<'a>() -> Columns<'a, &'a ExportResult> {
    let more = [
        Column::new(names::NAME, |dump: &ExportedDump| dump.name.as_str().into()),
        Column::new(names::ERROR, |dump: &ExportedDump| dump.error.as_deref().into())
            .or_null("it was exported"),
    ];
    let dumps = Columns::new(DumpOutcome::columns(|dump: &ExportedDump| &dump.one).into_iter().chain(more));
    Columns::new([
        Column::new(names::TO, |exported: &&ExportResult| exported.to.as_str().into()),
        Column::records(names::DUMPS, dumps, |exported: &&'a ExportResult| &exported.dumps),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "export",
        variant: "",
        about: "A row is a table of a dump. The option is `--report json` or `--report csv`: `--format` is that of the \
                tables.",
        rows: columns().fields(),
        summary: summary_columns().fields(),
    }]
}
