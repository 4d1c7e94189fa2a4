//! The dumps of a server or report, and the options for opening them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value as Json;

use super::document::JsonLookup;
use hprof_query::dictionary::{Name, names};
use hprof_report::html::Links;

/// Kinds of data for which a dump has pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AvailableData {
    pub(crate) heap: bool,
    pub(crate) recording: bool,
    /// Number of objects in the heap, if known.
    pub(crate) objects: u64,
}

impl AvailableData {
    /// Value for a dump that has not been read yet.
    pub(crate) const UNKNOWN: Self = Self { heap: true, recording: false, objects: 0 };
}

/// Kinds of records that only a profiler writes, as counted by `info`.
const RECORDED: &[&str] =
    &["alloc_sites", "cpu_samples", "heap_summaries", "start_threads", "control_settings"];

impl AvailableData {
    /// Determines the kinds of data from the document of `info`.
    pub(crate) fn from_document(document: &Json) -> Self {
        let row = document.row();
        let counted = |of: Name, kind: &str| row.and_then(|row| row.value(of))?.get(kind)?.as_u64();
        let count = |kind: &str| counted(names::RECORDS, kind);
        let of_kind = |kind: &str| counted(names::OBJECTS_BY_KIND, kind);
        let kinds = ["instances", "object_arrays", "primitive_arrays"];
        Self {
            heap: row.and_then(|row| row.number(names::HEAP_DUMPS)).unwrap_or_default() > 0,
            recording: RECORDED.iter().any(|kind| count(kind).unwrap_or_default() > 0),
            objects: kinds.into_iter().filter_map(of_kind).fold(0, u64::saturating_add),
        }
    }
}

/// The dumps of a server or report, and the options that all of their pages use.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// Paths of the dumps; pages number them from 1.
    pub(crate) dumps: Vec<PathBuf>,
    /// Dump to compare with.
    pub(crate) baseline: Option<PathBuf>,
    /// Kinds of data in each dump, once known.
    pub(crate) has: Vec<OnceLock<AvailableData>>,
    /// Options for opening dumps that each command repeats, as words.
    pub(crate) options: Vec<OsString>,
    /// Options for the user's rules about frameworks, as words, for the worker processes of a server.
    #[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "for the processes of a server"))]
    pub(crate) frameworks: Vec<OsString>,
    /// Recording of Flight Recorder that was given with the first dump.
    pub(crate) recording: Option<PathBuf>,
    /// File about the process of the first dump.
    pub(crate) process: Option<PathBuf>,
    /// `true` if the worker processes of a server hide the values of the heap.
    #[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "for the processes of a server"))]
    pub(crate) hides_values: bool,
}

impl Site {
    /// Creates a site of these dumps.
    pub(crate) fn new(dumps: Vec<PathBuf>, baseline: Option<PathBuf>, options: Vec<OsString>) -> Self {
        let has = dumps.iter().map(|_| OnceLock::new()).collect();
        Self {
            dumps,
            baseline,
            has,
            options,
            frameworks: Vec::new(),
            recording: None,
            process: None,
            hides_values: false,
        }
    }

    /// Returns the recording that was given with a dump.
    pub(crate) fn recording_of(&self, dump: &Path) -> Option<&Path> {
        self.recording.as_deref().filter(|_| self.is_first(dump))
    }

    /// Returns the file about the process that was given with a dump.
    pub(crate) fn process_of(&self, dump: &Path) -> Option<&Path> {
        self.process.as_deref().filter(|_| self.is_first(dump))
    }

    /// Returns whether a dump is the first one, to which the files beside it belong.
    fn is_first(&self, dump: &Path) -> bool {
        self.dumps.first().is_some_and(|first| first == dump)
    }

    /// Returns the path of a dump by its number, counted from 1.
    pub(crate) fn dump(&self, number: usize) -> Option<&Path> {
        self.dumps.get(number.checked_sub(1)?).map(PathBuf::as_path)
    }

    /// Returns the displayed name of a dump: the file name.
    pub(crate) fn name(&self, number: usize) -> String {
        let name = self.dump(number).and_then(|path| path.file_name());
        name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Returns the prefix of links to a dump's pages.
    pub(crate) fn links(&self, number: usize) -> Links {
        Links::with_base(format!("/{number}"))
    }
}
