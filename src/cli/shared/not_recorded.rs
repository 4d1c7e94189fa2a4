//! The error of a file that is neither a recording nor a heap dump.

use std::path::Path;

use hprof_parser::sniff::FileKind;

/// Error of a file that commands for recordings cannot read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {contents}{}: {}", mismatch_text(*is_flight), looks.describe())]
pub(crate) struct NotRecorded {
    path: String,
    /// Start of the description of what is in a compressed file.
    contents: String,
    /// `true` if the file is named as a recording of Flight Recorder.
    is_flight: bool,
    looks: FileKind,
}

const fn mismatch_text(is_flight: bool) -> &'static str {
    if is_flight { "not a recording of Flight Recorder" } else { "neither a recording nor a heap dump" }
}

/// Returns whether a file is named `.jfr`, apart from a compression.
fn is_named_flight(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name).ends_with(".jfr")
}

impl NotRecorded {
    /// Creates the error of a file with the text of its path.
    pub(super) fn new(file: &Path, path: String, contents: String, looks: FileKind) -> Self {
        Self { path, contents, is_flight: is_named_flight(file), looks }
    }

    /// Returns the apparent format.
    pub(super) const fn looks(&self) -> FileKind {
        self.looks
    }

    /// Returns advice, if it is not that of the apparent format.
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
