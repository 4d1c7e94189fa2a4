//! Profile from a text report (`java.hprof.txt`).
//!
//! A file may contain several runs, one after the other, because the agent appends to the file. [`read`] reads one of them in
//! one pass. From a HEAP DUMP it stores counts for each class, and for each class and trace, but nothing for single objects.

mod display_names;
mod heap;
mod rankings;
mod run;
pub mod show;

use std::io;
use std::path::Path;

use super::Profile;
use hprof_input::file::{OpenError, TextFile};
use hprof_input::text_events::{NoSuchRun, visit_events};
use hprof_parser::text::TextEvent;
use hprof_values::ObjectId;

/// Contents of a text report.
#[derive(Debug, Clone, Default)]
pub struct TextReport {
    /// Profile of the requested run.
    pub profile: Profile,
    /// HEAP DUMP of the run, if it has any; the last one if it has several.
    pub heap: Option<TextHeap>,
    /// Number of the run, from 1.
    pub run: u32,
    /// Number of runs in the file.
    pub runs: u32,
    /// Number of lines in all runs that could not be parsed.
    pub not_understood: u64,
    /// First malformed lines.
    pub malformed: Vec<MalformedLine>,
}

/// Line that could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedLine {
    /// Line number, from 1.
    pub line: u64,
    /// Description of the expected content.
    pub expected: &'static str,
    /// Beginning of the line.
    pub text: String,
}

/// Counts of objects in the HEAP DUMP of a text report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextHeap {
    /// Number of objects according to the first line.
    pub stated_objects: Option<u64>,
    /// Number of bytes according to the first line.
    pub stated_bytes: Option<u64>,
    /// Classes and array types that have objects or a CLS line.
    pub classes: Vec<TextClass>,
    /// Number of ROOT lines.
    pub roots: u64,
    /// Number of CLS lines.
    pub class_objects: u64,
    /// Number of OBJ lines.
    pub instances: u64,
    /// Number of ARR lines.
    pub arrays: u64,
}

/// Class in the HEAP DUMP of a text report, with its number of objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextClass {
    /// Name in Java source form.
    pub name: String,
    /// Object ID of the class object, if the text contains it.
    pub class_object: Option<ObjectId>,
    /// Object ID of the class loader, if there is a CLS line; 0 for the boot loader.
    pub loader: Option<ObjectId>,
    /// Class of the class loader, if the text contains it ([`resolve_loaders`]).
    pub loader_class: Option<String>,
    /// Number of objects.
    pub instances: u64,
    /// Shallow size of all objects in bytes.
    pub shallow_bytes: u64,
}

/// Error while reading a text report.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The file cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// I/O error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The requested run does not exist.
    #[error(transparent)]
    NoSuchRun(#[from] NoSuchRun),
}

/// Maximum number of malformed lines that are kept.
const KEPT: usize = 32;
/// Maximum number of bytes of a malformed line that are kept.
const KEPT_BYTES: usize = 100;

/// Opens and reads a run of a text report: the given run, from 1, or the last one. `None` if the file is a binary dump.
///
/// # Errors
/// If the file cannot be opened or read, or does not contain the run.
pub fn read(path: &Path, run: Option<u32>) -> Result<Option<(TextFile, TextReport)>, TextError> {
    let Some(file) = TextFile::open(path)? else { return Ok(None) };
    let mut report = TextReport::default();
    let mut kept = (0, run::ProfileRun::default());
    report.runs = visit_events(&file, |number, line, event| {
        if let TextEvent::Malformed { expected, text } = event {
            report.not_understood += 1;
            if report.malformed.len() < KEPT {
                let start = text.get(..text.len().min(KEPT_BYTES)).unwrap_or_default();
                report.malformed.push(MalformedLine { line, expected, text: display_names::text(start) });
            }
        }
        if run.is_none_or(|run| run == number) {
            if kept.0 != number {
                kept = (number, run::ProfileRun::default());
            }
            kept.1.take(event);
        }
    })?;
    NoSuchRun::check(run, report.runs)?;
    report.run = kept.0;
    (report.profile, report.heap) = kept.1.finish();
    Ok(Some((file, report)))
}

/// Finds the classes of class loaders that occur in the file after the classes that they loaded. [`read`] finds the others.
///
/// # Errors
/// If the file cannot be read.
pub fn resolve_loaders(file: &TextFile, report: &mut TextReport) -> Result<(), TextError> {
    if let Some(heap) = &mut report.heap {
        heap::find_loaders(file, report.run, heap)?;
    }
    Ok(())
}
