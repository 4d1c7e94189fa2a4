//! Several dumps that are opened with the same options.

use std::path::{Path, PathBuf};

use crate::cli::shared::args::Input;
use crate::cli::shared::output;
use crate::cli::shared::session::AnswerSource;
use hprof_query::dictionary::{names, nulls};
use hprof_report::column::Column;
use hprof_report::json::DumpHeader;
use hprof_report::value::Value;

/// Dumps on the command line.
#[derive(Debug, clap::Args)]
#[command(mut_arg("dump", |dump| dump
    .index(1)
    .value_name("DUMP")
    .help(
        "Heap dumps in HPROF format: plain, compressed with gzip or zstd, or each the only dump in a tar or zip \
         archive; one of them can be `-` for standard input"
    )))]
pub(crate) struct SeveralInput {
    #[command(flatten)]
    first: Input,

    /// More dumps
    #[arg(index = 2, value_name = "DUMP", value_hint = clap::ValueHint::FilePath, help_heading = "Input", hide = true)]
    more: Vec<PathBuf>,
}

impl SeveralInput {
    /// Returns an input for each dump, in the given order.
    pub(crate) fn inputs(&self) -> Vec<Input> {
        let more = self.more.iter().map(|path: &PathBuf| self.first.with_dump(path as &Path));
        std::iter::once(self.first.clone()).chain(more).collect()
    }

    /// Returns whether `--quiet` was given.
    pub(crate) fn quiet(&self) -> bool {
        self.first.quiet
    }
}

/// A dump in the list of dumps of a JSON document.
#[derive(Debug, Clone)]
pub(crate) struct DumpOutcome {
    pub(crate) path: String,
    pub(crate) created_ms: u64,
    pub(crate) damaged: Option<bool>,
}

impl DumpOutcome {
    /// Creates the entry for an open file.
    pub(crate) fn from_source(source: &impl AnswerSource, created_ms: u64) -> Self {
        let DumpHeader { path, is_damaged: damaged, .. } = source.header();
        Self { path: path.into_owned(), created_ms, damaged }
    }

    /// Creates the entry for a file that could not be read.
    pub(crate) fn unread(path: &Path) -> Self {
        Self { path: path.to_string_lossy().into_owned(), created_ms: 0, damaged: None }
    }

    /// Returns the columns for an entry: path, time, and whether the dump is damaged.
    pub(crate) fn columns<'c, R: 'c>(one: fn(&R) -> &Self) -> [Column<'c, R>; 3] {
        [
            Column::new(names::PATH, move |row: &R| Value::from(&*one(row).path)),
            Column::new(names::CREATED, move |row: &R| output::timestamp(one(row).created_ms).into())
                .or_null(nulls::UNSTATED),
            Column::new(names::IS_DAMAGED, move |row: &R| one(row).damaged.into()).or_null("it was not read"),
        ]
    }
}
