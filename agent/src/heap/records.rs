//! Output of a heap dump's sub-records as HEAP DUMP SEGMENTs, or as lines of text.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use hprof_format::binary::{record_head, tag};

use crate::output::sink::{Sink, private};

/// Size of a segment in bytes; a larger record has a segment of its own.
const SEGMENT: usize = 1 << 20;

/// Destination of a heap dump while the threads of the program are suspended.
#[derive(Debug)]
pub enum RecordTarget<'s> {
    /// The output file itself.
    Sink(&'s mut Sink),
    /// An unnamed file, for output to a socket. A socket may be slow, so it is written to only when the program runs again.
    Spool(File, Option<io::Error>),
}

impl RecordTarget<'_> {
    fn write(&mut self, bytes: &[u8]) {
        match self {
            Self::Sink(sink) => sink.write(bytes),
            Self::Spool(file, failed) => {
                if failed.is_none() {
                    *failed = file.write_all(bytes).err();
                }
            }
        }
    }
}

/// Creates a temporary file without a name, which is deleted when it is closed.
///
/// # Errors
/// If no file can be created in the directory for temporary files.
pub fn spool() -> io::Result<File> {
    let name = format!("hprof-agent-{}-{:x}", std::process::id(), std::ptr::from_ref(&SEGMENT).addr());
    let path = std::env::temp_dir().join(name);
    let file = private(File::options().create_new(true).read(true).write(true)).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// Copies the contents of a spool file to the output.
///
/// # Errors
/// If the spool file cannot be read.
pub fn unspool(mut file: File, to: &mut Sink) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let mut buffer = vec![0; SEGMENT];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            read => to.write(buffer.get(..read).unwrap_or_default()),
        }
    }
}

/// How sub-records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordForm {
    /// In HEAP DUMP SEGMENT records.
    Segments,
    /// Unchanged, for lines of text.
    Lines,
}

/// Buffered writer of sub-records.
#[derive(Debug)]
pub struct SubRecordBuffer<'s> {
    target: RecordTarget<'s>,
    form: RecordForm,
    micros: u32,
    /// Bytes that have not been written yet.
    pub bytes: Vec<u8>,
}

impl<'s> SubRecordBuffer<'s> {
    /// Creates an empty writer; `micros` is the time in all segments.
    pub fn new(target: RecordTarget<'s>, form: RecordForm, micros: u32) -> Self {
        Self { target, form, micros, bytes: Vec::with_capacity(SEGMENT + (SEGMENT >> 2)) }
    }

    /// Ends a sub-record, and writes the collected bytes if they fill a segment.
    #[inline]
    pub fn record(&mut self) {
        if self.bytes.len() >= SEGMENT {
            self.flush();
        }
    }

    /// Writes the collected bytes as a segment, or unchanged.
    pub fn flush(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        if self.form == RecordForm::Segments {
            let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
            self.target.write(&record_head(tag::HEAP_DUMP_SEGMENT, self.micros, length));
        }
        self.target.write(&self.bytes);
        self.bytes.clear();
    }

    /// Starts a segment for a single record of this length. [`Self::part`] appends the bytes of the record.
    pub fn large(&mut self, length: u32) {
        self.flush();
        if self.form == RecordForm::Segments {
            self.target.write(&record_head(tag::HEAP_DUMP_SEGMENT, self.micros, length));
        }
    }

    /// Appends bytes to a large record.
    pub fn part(&mut self, bytes: &[u8]) {
        self.target.write(bytes);
    }

    /// Returns `true` if a record of this length is written in parts.
    pub fn is_large(length: usize) -> bool {
        length > SEGMENT
    }

    /// Writes HEAP DUMP END if the dump is complete and not text, and returns the target.
    pub fn end(mut self, whole: bool) -> RecordTarget<'s> {
        self.flush();
        if whole && self.form == RecordForm::Segments {
            self.target.write(&record_head(tag::HEAP_DUMP_END, self.micros, 0));
        }
        self.target
    }
}
