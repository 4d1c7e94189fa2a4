//! The error for a file that is neither a recording nor a heap dump.

use std::path::Path;

use hprof_parser::sniff::FileKind;

/// Error if commands for recordings cannot read a file.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {contents}{}: {}", mismatch_text(*is_flight), looks.describe())]
pub(crate) struct NotRecorded {
    path: String,
    /// Prefix of the description, for a compressed file.
    contents: String,
    /// `true` if the file is named as a recording of Flight Recorder.
    is_flight: bool,
    looks: FileKind,
}

const fn mismatch_text(is_flight: bool) -> &'static str {
    if is_flight { "not a recording of Flight Recorder" } else { "neither a recording nor a heap dump" }
}

/// Returns whether a file is named `.jfr`, ignoring the extension of a compression.
fn is_named_flight(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name).ends_with(".jfr")
}

impl NotRecorded {
    /// Creates the error for a file; `path` is its path as a text.
    pub(super) fn new(file: &Path, path: String, contents: String, looks: FileKind) -> Self {
        Self { path, contents, is_flight: is_named_flight(file), looks }
    }

    /// Returns the apparent kind of the file.
    pub(super) const fn looks(&self) -> FileKind {
        self.looks
    }

    /// Returns advice, unless the advice about the apparent kind of the file applies.
    pub(super) const fn advice(&self) -> Option<&'static str> {
        match self.looks {
            FileKind::Text | FileKind::Other | FileKind::Json if self.is_flight => {
                Some("make one with: jcmd PID JFR.dump filename=FILE.jfr")
            }
            FileKind::Text => Some(
                "name a recording of Flight Recorder (.jfr), or a text report or binary of the HPROF agent",
            ),
            _ => None,
        }
    }
}
