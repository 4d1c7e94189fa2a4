//! The files of a dump that is recovered: mapped, unpacked if they are compressed, and put in order.

use std::path::{Path, PathBuf};

use hprof_index::{Error, Progress, unnamed_copy};
use hprof_input::file::MappedFile;
use hprof_input::packed::Compression;
use hprof_parser::heap::{self, HeapVisitor};
use hprof_parser::record::{RECORD_HEADER, Record, tag};
use hprof_parser::{Header, Version, sniff};
use hprof_values::IdSize;

use super::RecoverError;

/// An input file.
#[derive(Debug)]
pub struct RecoverSource {
    map: MappedFile,
    /// Unpacked bytes of a compressed file, and the error that ended them.
    unpacked: Option<(MappedFile, Option<String>)>,
}

/// Type of a file, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceKind {
    /// Starts with the header of a dump.
    Dump(Header),
    /// Starts with a heap dump segment: `.p0` and so on, which have no header.
    Segment,
    /// Has no bytes.
    Empty,
}

impl RecoverSource {
    /// Opens a file; if it is compressed, unpacks it into a file without a name in the directory `into`.
    ///
    /// # Errors
    /// Fails if it cannot be opened or unpacked.
    pub fn open(path: &Path, into: &Path, progress: &dyn Progress) -> Result<Self, Error> {
        let map = MappedFile::open(path)?;
        let unpacked = match Compression::detect(map.bytes()) {
            Some(compression) => Some(unnamed_copy(&map, compression, into, progress)?),
            None => None,
        };
        Ok(Self { map, unpacked })
    }

    /// Returns the path as given.
    pub fn path(&self) -> &Path {
        self.map.path()
    }

    /// Returns the bytes of the file, still compressed if it is.
    pub fn packed_bytes(&self) -> &[u8] {
        self.map.bytes()
    }

    /// Checks that nobody has written to the file since it was opened.
    ///
    /// # Errors
    /// [`Error::Changed`] or [`Error::Growing`].
    pub fn check_unwritten(&self) -> Result<(), Error> {
        if self.map.was_written() { Err(Error::from_change(&self.map)) } else { Ok(()) }
    }

    /// Returns the bytes, unpacked if the file is compressed.
    pub fn bytes(&self) -> &[u8] {
        self.unpacked.as_ref().map_or(&self.map, |(unpacked, _)| unpacked).bytes()
    }

    /// Returns the error that ended the unpacked bytes early.
    pub fn packed_error(&self) -> Option<&str> {
        self.unpacked.as_ref()?.1.as_deref()
    }

    /// Releases the pages of bytes that were read.
    pub fn give_back(&self, range: std::ops::Range<usize>) {
        self.unpacked.as_ref().map_or(&self.map, |(unpacked, _)| unpacked).give_back(range);
    }

    /// Returns the type of the file, by its first bytes.
    pub(super) fn kind(&self) -> Result<SourceKind, RecoverError> {
        let bytes = self.bytes();
        if bytes.is_empty() {
            return Ok(SourceKind::Empty);
        }
        if Record::at(bytes, 0).is_some_and(|record| record.tag == tag::HEAP_DUMP_SEGMENT) {
            return Ok(SourceKind::Segment);
        }
        let path = || self.path().to_owned();
        let looks = || sniff::sniff(bytes);
        let header =
            Header::parse(bytes).map_err(|error| Error::Format { path: path(), looks: looks(), error })?;
        Ok(SourceKind::Dump(header))
    }

    /// Returns the N of a file name that ends in `.pN`, possibly followed by another extension.
    pub(super) fn segment_number(&self) -> Option<u32> {
        self.segment_name().map(|(_, number)| number)
    }

    /// Returns the path of the file to which the JVM appends this segment, derived from its name.
    pub(super) fn head_path(&self) -> Option<PathBuf> {
        self.segment_name().map(|(name, _)| self.path().with_file_name(name))
    }

    /// Returns the name before `.pN`, and N.
    fn segment_name(&self) -> Option<(&str, u32)> {
        let mut name = self.path().file_name()?.to_str()?;
        for _ in 0..2 {
            let (before, part) = name.rsplit_once('.')?;
            if let Some(number) = part.strip_prefix('p').and_then(|number| number.parse().ok()) {
                return Some((before, number));
            }
            name = before;
        }
        None
    }
}

/// Returns the header for segments of a dump whose own header is missing: that of HotSpot since JDK 22, with
/// the identifier size by which more of the first segment can be read.
pub(super) fn missing_header(segment: &[u8]) -> Header {
    /// Visitor that counts the readable sub-records.
    struct Count(u64);
    impl HeapVisitor<'_> for Count {
        fn go_on(&mut self) -> bool {
            self.0 += 1;
            self.0 < 1000
        }
    }
    let record = Record::at(segment, 0);
    let end = record.and_then(|record| usize::try_from(record.end()).ok()).unwrap_or(segment.len());
    let end = end.min(segment.len());
    let read = |id_size| {
        let mut count = Count(0);
        heap::walk(segment, id_size, RECORD_HEADER, end, end, &mut count);
        count.0
    };
    let id_size = if read(IdSize::Four) > read(IdSize::Eight) { IdSize::Four } else { IdSize::Eight };
    Header { version: Version::V1_0_2, id_size, created_ms: 0, len: 0 }
}

/// Returns the files next to `path` that the JVM wrote for the same dump, `.p0` and so on.
pub(super) fn segments_beside(path: &Path) -> Vec<PathBuf> {
    let file = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".p{number}"));
        PathBuf::from(name)
    };
    // The first ones may be merged already.
    (0..MAX_SEGMENT_FILES).map(file).filter(|path| path.is_file()).collect()
}

/// Maximum number of the segment files that are searched: JVMs use one for each thread that dumps.
const MAX_SEGMENT_FILES: u32 = 256;
