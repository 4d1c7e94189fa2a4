//! The file with the old names of renamed classes, beside a redacted dump.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::json;

use hprof_query::dump::redact::ClassRenames;

use super::{RedactArgs, with_suffix};
use crate::cli::shared::context::RunContext;
use crate::cli::shared::output::file::{Existing, OutFile};

/// Returns the path of the file that belongs to a redacted dump.
pub(crate) fn path(output: &Path) -> PathBuf {
    with_suffix(output, ".classes.json")
}

/// The file while it is written: only its owner may read it.
pub(super) struct ClassMapping(OutFile);

impl ClassMapping {
    /// Creates the file if classes are to be renamed.
    pub(super) fn create(
        args: &RedactArgs,
        output: &Path,
        inputs: &[&Path],
        existing: Existing,
    ) -> anyhow::Result<Option<Self>> {
        if args.what.classes.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self(OutFile::create_private(&path(output), inputs, existing)?)))
    }

    /// Writes the names, and says which patterns match nothing.
    pub(super) fn finish(
        mut self,
        cx: &RunContext,
        args: &RedactArgs,
        renames: &ClassRenames,
    ) -> anyhow::Result<()> {
        if !args.quiet {
            for pattern in renames.unmatched() {
                cx.say("note", &format!("--classes {pattern}: no class of the dump matches"));
            }
        }
        let patterns: Vec<&str> = args.what.classes.iter().map(|pattern| pattern.text()).collect();
        let text = json!({ "classes": renames.old_names(), "patterns": patterns });
        let written = self.0.write_all(format!("{text:#}\n").as_bytes());
        written.with_context(|| format!("cannot write {}", self.0.path().display()))?;
        self.0.commit()
    }
}
