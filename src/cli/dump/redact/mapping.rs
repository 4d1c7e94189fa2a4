//! The file with the old names of renamed classes, next to a redacted dump.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::json;

use hprof_query::redact::ClassRenames;

use super::{WhatGoes, with_suffix};
use crate::cli::shared::output::file::{OldFile, OutFile, OverwritePolicy};

/// Suffix of the file's name, appended to the name of the redacted dump.
pub(crate) const SUFFIX: &str = ".classes.json";

/// Returns the contents of the file.
pub(crate) fn text(what: &WhatGoes, renames: &ClassRenames) -> String {
    let patterns: Vec<&str> = what.classes.iter().map(|pattern| pattern.text()).collect();
    format!("{:#}\n", json!({ "classes": renames.old_names(), "patterns": patterns }))
}

/// Returns the path of the file that belongs to a redacted dump.
pub(crate) fn path(output: &Path) -> PathBuf {
    with_suffix(output, SUFFIX)
}

/// The file with old class names, while the redaction runs. Only its owner may read it.
pub(crate) enum ClassMapping {
    /// Classes are to be renamed.
    New(OutFile),
    /// Classes are not renamed, and the file of the replaced dump exists.
    Old(OldFile),
    None,
}

impl ClassMapping {
    /// Creates the file if classes are to be renamed. Otherwise finds the file of a replaced dump, which has to be removed.
    pub(crate) fn create(
        what: &WhatGoes,
        output: &Path,
        inputs: &[&Path],
        existing: OverwritePolicy,
    ) -> anyhow::Result<Self> {
        let path = path(output);
        if !what.classes.is_empty() {
            return Ok(Self::New(OutFile::create_private(&path, inputs, existing)?));
        }
        Self::find_old(output, existing)
    }

    /// Finds the file with old class names of the dump that is replaced.
    pub(crate) fn find_old(output: &Path, existing: OverwritePolicy) -> anyhow::Result<Self> {
        let path = path(output);
        let Some(old) = OldFile::find(&path) else { return Ok(Self::None) };
        ensure!(
            existing == OverwritePolicy::Replace,
            "cannot write {}: {} already exists, for another dump; use another name, or --force to remove it",
            output.display(),
            path.display()
        );
        Ok(Self::Old(old))
    }

    /// Writes the old and new class names.
    pub(crate) fn write(self, what: &WhatGoes, renames: &ClassRenames) -> anyhow::Result<Self> {
        let Self::New(mut file) = self else { return Ok(self) };
        let written = file.write_all(text(what, renames).as_bytes());
        written.with_context(|| format!("cannot write {}", file.path().display()))?;
        file.commit()?;
        Ok(Self::None)
    }

    /// Removes the file with old class names of a dump that was replaced.
    pub(crate) fn remove_old(self) -> anyhow::Result<()> {
        let Self::Old(old) = self else { return Ok(()) };
        old.remove()
    }
}
