//! The definition of a kind of comparison of `diff`.
//!
//! Each kind has a definition in the file that implements it. `--group-by`, its help, the options that a kind accepts and
//! the reference are derived from the definition.

use crate::cli::prelude::*;
use hprof_report::column::JsonField;

use super::DiffArgs;

/// A kind of comparison. Kinds are ordered as in [`super::KINDS`].
#[derive(Debug)]
pub(super) struct DiffKind {
    /// Value of `--group-by`.
    pub(super) name: &'static str,
    /// Description in a few words.
    pub(super) summary: &'static str,
    /// Meaning of a row, and remarks, in Markdown.
    pub(super) about: &'static str,
    /// Noun for rows, in the plural.
    pub(super) unit: &'static str,
    /// Options that this kind accepts, of those that only some kinds accept.
    pub(super) options: &'static [&'static str],
    /// Compares two files and shows the result.
    pub(super) compare: fn(&RunContext, &DiffArgs) -> anyhow::Result<Outcome>,
    /// Returns the JSON keys of a row.
    pub(super) rows: fn() -> Vec<JsonField>,
    /// Returns the JSON keys in addition to the rows.
    pub(super) summary_fields: fn() -> Vec<JsonField>,
}

impl DiffKind {
    /// Returns the schema of the result, for the reference.
    pub(super) fn row_schema(&self) -> ResultSchema {
        ResultSchema {
            command: "diff",
            variant: format!("`--group-by {}`", self.name).leak(),
            about: self.about,
            rows: (self.rows)(),
            summary: (self.summary_fields)(),
        }
    }
}
