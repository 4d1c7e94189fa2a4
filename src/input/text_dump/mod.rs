//! Binary dumps made from text reports: HEAP DUMP, SITES, CPU SAMPLES, traces and threads of one run.
//!
//! A text contains references, sizes and names, but no values: in the dump, instances have only fields with references, and
//! arrays of primitives are filled with zeros. A text does not state which class declares a field, either: it is declared in
//! the topmost class whose own instances have it (`classes`). Sizes are those that the text states: CLASS DUMP contains the
//! size of the first instance, STATED SIZES (a record of this program, which other readers skip) those of all other objects.
//!
//! The text is read twice: `survey` collects classes and sizes, `dump_writer` writes the records. Memory: the classes, 16
//! bytes for each array and each instance of another size than the first, and the frames of all traces.

mod class_names;
mod classes;
mod dump_writer;
mod heap_writer;
mod slots;
mod stated_sizes;
mod survey;

use std::io::{self, Write};

use super::file::TextFile;
use super::progress::Progress;
use super::text_events::NoSuchRun;
use survey::Survey;

/// What a dump made from a text report contains and lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextDumpOutcome {
    /// Number of runs in the text.
    pub runs: u32,
    /// Number of heap dumps in the run.
    pub heap_dumps: u32,
    /// Number of lines of the run that could not be parsed.
    pub malformed_lines: u64,
    /// Parts of the run that binary dumps cannot contain.
    pub left_out: Vec<&'static str>,
}

/// Error while a dump is made from a text report.
#[derive(Debug, thiserror::Error)]
pub enum TextDumpError {
    /// The text cannot be read.
    #[error(transparent)]
    Read(io::Error),
    /// The dump cannot be written.
    #[error(transparent)]
    Write(io::Error),
    /// The requested run does not exist.
    #[error(transparent)]
    NoSuchRun(#[from] NoSuchRun),
    /// The instances would have far more fields than the text has lines.
    #[error(
        "the instances of the text's {lines} lines would have {slots} fields: its superclasses are damaged or made to fill the disk"
    )]
    TooManyFields {
        /// Number of reference fields of all instances.
        slots: u64,
        /// Number of lines.
        lines: u64,
    },
}

/// A text report that was read once, to be written as a binary dump.
#[derive(Debug)]
pub struct TextDump<'f> {
    file: &'f TextFile,
    survey: Survey,
}

impl<'f> TextDump<'f> {
    /// Reads a run of a text report, from 1; the last one by default.
    ///
    /// # Errors
    /// [`TextDumpError`].
    pub fn read(
        file: &'f TextFile,
        run: Option<u32>,
        progress: &dyn Progress,
    ) -> Result<Self, TextDumpError> {
        progress.begin("reading the text", 0);
        let survey = Survey::new(file, run);
        progress.end();
        Ok(Self { file, survey: survey? })
    }

    /// Returns the size of the heap dumps in bytes.
    pub fn expected_bytes(&self) -> u64 {
        self.survey.expected_bytes
    }

    /// Writes the dump.
    ///
    /// # Errors
    /// [`TextDumpError`].
    pub fn write(
        &self,
        out: &mut dyn Write,
        progress: &dyn Progress,
    ) -> Result<TextDumpOutcome, TextDumpError> {
        progress.begin("converting the text", 0);
        let written = dump_writer::write(self.file, &self.survey, out);
        progress.end();
        written
    }
}
