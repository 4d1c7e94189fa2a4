//! A profile from a text report (`java.hprof.txt`).
//!
//! A file may hold several runs, one behind the other: the agent appends. [`read`] reads one of them in one pass. What it
//! keeps of a HEAP DUMP is a count for each class, and for each class and trace: nothing for each object.

mod display_names;
mod heap;
mod rankings;
mod run;
pub mod show;

use std::io;

use super::Profile;
use hprof_input::file::TextFile;
use hprof_parser::ObjectId;
use hprof_parser::text::{TextEvent, TextReader};

/// What a text report holds.
#[derive(Debug, Clone, Default)]
pub struct TextReport {
    /// What was recorded, of the run that was asked for.
    pub profile: Profile,
    /// The HEAP DUMP, if the run has one; the last of several.
    pub heap: Option<TextHeap>,
    /// The run that was read, from 1.
    pub run: u32,
    /// Runs in the file.
    pub runs: u32,
    /// Lines that could not be understood, in all runs.
    pub not_understood: u64,
    /// The first of them.
    pub malformed: Vec<Malformed>,
}

/// A line that could not be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Line number, from 1.
    pub line: u64,
    /// What was expected.
    pub expected: &'static str,
    /// The line's start.
    pub text: String,
}

/// What the HEAP DUMP of a text report counts up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextHeap {
    /// Objects, as its first line states.
    pub stated_objects: Option<u64>,
    /// Bytes, as its first line states.
    pub stated_bytes: Option<u64>,
    /// Classes and array types of which there are objects, or a CLS.
    pub classes: Vec<TextClass>,
    /// ROOT lines.
    pub roots: u64,
    /// CLS lines.
    pub class_objects: u64,
    /// OBJ lines.
    pub instances: u64,
    /// ARR lines.
    pub arrays: u64,
}

/// A class in the HEAP DUMP of a text report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextClass {
    /// Name in Java source form.
    pub name: String,
    /// Object ID of the class object, if the text names it.
    pub class_object: Option<ObjectId>,
    /// Object ID of the loader, if there is a CLS: 0 for the boot loader.
    pub loader: Option<ObjectId>,
    /// The class of the loader, if it is in the text ([`find_loaders`]).
    pub loader_class: Option<String>,
    /// Objects.
    pub instances: u64,
    /// Their bytes.
    pub shallow_bytes: u64,
}

/// Why a text report could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// There are fewer runs.
    #[error("there is no run {asked}: the file contains {}", number_of_runs(*.runs))]
    NoSuchRun {
        /// The run that was asked for.
        asked: u32,
        /// Runs in the file.
        runs: u32,
    },
}

fn number_of_runs(runs: u32) -> String {
    match runs {
        0 => "none".to_owned(),
        1 => "one".to_owned(),
        more => more.to_string(),
    }
}

/// Lines that could not be understood which are kept.
const KEPT: usize = 32;
/// Bytes of them that are kept.
const KEPT_BYTES: usize = 100;

/// Reads a text report: of several runs the one asked for, from 1, or the last.
///
/// # Errors
/// If it cannot be read, or holds no such run.
pub fn read(file: &TextFile, run: Option<u32>) -> Result<TextReport, TextError> {
    let mut report = TextReport::default();
    let mut kept = (0, run::ProfileRun::default());
    report.runs = walk(file, |number, line, event| {
        if let TextEvent::Malformed { expected, text } = event {
            report.not_understood += 1;
            if report.malformed.len() < KEPT {
                let start = text.get(..text.len().min(KEPT_BYTES)).unwrap_or_default();
                report.malformed.push(Malformed { line, expected, text: display_names::text(start) });
            }
        }
        if run.is_none_or(|run| run == number) {
            if kept.0 != number {
                kept = (number, run::ProfileRun::default());
            }
            kept.1.take(event);
        }
    })?;
    if run.is_some_and(|run| run == 0 || run > report.runs) {
        return Err(TextError::NoSuchRun { asked: run.unwrap_or(0), runs: report.runs });
    }
    report.run = kept.0;
    (report.profile, report.heap) = kept.1.finish();
    Ok(report)
}

/// Finds out what classes the loaders have that stand behind their classes in the file. [`read`] has found the others.
///
/// # Errors
/// If the file cannot be read.
pub fn find_loaders(file: &TextFile, report: &mut TextReport) -> Result<(), TextError> {
    if let Some(heap) = &mut report.heap {
        heap::find_loaders(file, report.run, heap)?;
    }
    Ok(())
}

/// Goes over all events with the number of the run that they belong to, and the line number; gives the number of runs.
///
/// A compressed file that ends too early or is damaged ends with a malformed line.
fn walk(file: &TextFile, mut take: impl FnMut(u32, u64, TextEvent<'_>)) -> Result<u32, TextError> {
    let mut input = file.reader()?;
    let mut reader = TextReader::new(&mut *input);
    let (mut run, mut has_calls, mut last_line) = (0, false, 0);
    loop {
        match reader.next_event() {
            Ok(Some((line, event))) => {
                last_line = line;
                let begins = match &event {
                    TextEvent::Nothing | TextEvent::Malformed { .. } => false,
                    TextEvent::Header { .. } => true,
                    TextEvent::CallsBegin => has_calls || run == 0,
                    TextEvent::Call { .. } => {
                        has_calls = true;
                        run == 0
                    }
                    _ => run == 0,
                };
                if begins {
                    run += 1;
                    has_calls = false;
                }
                take(run, line, event);
            }
            Ok(None) => return Ok(run),
            // Not the system, but what unpacks.
            Err(error) if error.raw_os_error().is_none() => {
                let expected = "more data of a compressed file that is truncated or damaged";
                let text = error.to_string();
                take(run, last_line + 1, TextEvent::Malformed { expected, text: text.as_bytes() });
                return Ok(run);
            }
            Err(error) => return Err(error.into()),
        }
    }
}
