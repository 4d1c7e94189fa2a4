//! A stage's file: a header, a section table, the sections, with checksums over all three.
//!
//! A foreign, stale or truncated file is recognized from its header and section table, in constant time.
//! Sections are hashed by blocks: a small section is checked when it is read, a large one block by block
//! when a block is first read ([`CheckedColumn`]), so that opening an index of many gigabytes costs
//! nothing. Invalid data is never used: the caller builds the stage again.

use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::identity::Identity;
use super::stage::Stage;
use crate::storage::checked_column::{BLOCK_BYTES, CheckedColumn, Checks};
use crate::storage::column::{ColumnRow, IndexColumn};
use hprof_input::file::MappedFile;

/// Version of the index format, incremented with every change of a row or a section.
pub const FORMAT_VERSION: u32 = 7;

/// Magic bytes at the start of every file.
const MAGIC: [u8; 8] = *b"HPROFIX\n";

/// Header of a stage's file.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct FileHeader {
    magic: [u8; 8],
    format_version: U32,
    stage: U32,
    /// Size of this file.
    file_bytes: U64,
    /// Identity of the dump.
    dump_bytes: U64,
    dump_modified_ns: U64,
    dump_hash: U64,
    /// Requested heap dump; 0 for the default.
    heap_dump: U32,
    sections: U32,
    /// Hash of the section table.
    table_hash: U64,
    /// Hash of the header before this field.
    header_hash: U64,
}

/// Row of the section table.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SectionRow {
    id: U32,
    row_bytes: U32,
    offset: U64,
    bytes: U64,
    /// Hash of the hashes of the section's blocks, which follow its last byte.
    hash: U64,
}

const HEADER_BYTES: usize = size_of::<FileHeader>();
const SECTION_ROW_BYTES: usize = size_of::<SectionRow>();
/// Alignment of sections: a cache line.
const SECTION_ALIGNMENT: u64 = 64;
/// Bytes of a section that are checked before their pages are released.
const CHECKED_BYTES: usize = 8 << 20;
/// Maximum number of sections, more than any stage has.
const MAX_SECTIONS: u32 = 64;

/// Dump and stage to which a file of the index belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileKey {
    pub(crate) stage: Stage,
    pub(crate) identity: Identity,
    /// Requested heap dump; 0 for the default.
    pub(crate) heap_dump: u32,
}

/// Reason why a file of the index cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("the index was created by a different version")]
    Foreign,
    #[error("the index belongs to another dump, or the dump has changed")]
    Stale,
    #[error("the file is truncated or damaged")]
    Damaged,
}

/// A mapped file of a stage.
#[derive(Debug, Clone)]
pub(crate) struct StageFile {
    file: Arc<MappedFile>,
    sections: Vec<SectionRow>,
    damage: Arc<AtomicBool>,
}

impl StageFile {
    /// Opens a mapped file of a stage, after checking its header and section table.
    pub(crate) fn open(file: MappedFile, key: &FileKey) -> Result<Self, Unusable> {
        let bytes = file.bytes();
        let (header, rest) = FileHeader::ref_from_prefix(bytes).map_err(|_| Unusable::Damaged)?;
        if header.magic != MAGIC || header.format_version.get() != FORMAT_VERSION {
            return Err(Unusable::Foreign);
        }
        let hashed = bytes.get(..HEADER_BYTES - 8).unwrap_or_default();
        if xxh3_64(hashed) != header.header_hash.get() || header.file_bytes.get() != bytes.len() as u64 {
            return Err(Unusable::Damaged);
        }
        let identity = Identity {
            len: header.dump_bytes.get(),
            modified_ns: header.dump_modified_ns.get(),
            hash: header.dump_hash.get(),
        };
        if identity != key.identity || header.heap_dump.get() != key.heap_dump {
            return Err(Unusable::Stale);
        }
        if header.stage.get() != key.stage as u32 || header.sections.get() > MAX_SECTIONS {
            return Err(Unusable::Foreign);
        }
        let table =
            rest.get(..header.sections.get() as usize * SECTION_ROW_BYTES).ok_or(Unusable::Damaged)?;
        if xxh3_64(table) != header.table_hash.get() {
            return Err(Unusable::Damaged);
        }
        let sections = <[SectionRow]>::ref_from_bytes(table).map_err(|_| Unusable::Damaged)?.to_vec();
        Ok(Self { file: Arc::new(file), sections, damage: Arc::default() })
    }

    fn section(&self, id: u32, row_bytes: usize) -> Result<(Range<usize>, Checks), Unusable> {
        let row = self.sections.iter().find(|row| row.id.get() == id).ok_or(Unusable::Damaged)?;
        let (range, checks) = self.checks(row).ok_or(Unusable::Damaged)?;
        let rows_fit = row.row_bytes.get() as usize == row_bytes && range.len().is_multiple_of(row_bytes);
        if rows_fit { Ok((range, checks)) } else { Err(Unusable::Damaged) }
    }

    /// Returns the range of a section, and its hashes if they are valid.
    fn checks(&self, row: &SectionRow) -> Option<(Range<usize>, Checks)> {
        let start = usize::try_from(row.offset.get()).ok()?;
        let end = start.checked_add(usize::try_from(row.bytes.get()).ok()?)?;
        let hashes = (end - start).div_ceil(BLOCK_BYTES).checked_mul(size_of::<U64>())?;
        let hashes = self.file.bytes().get(end..end.checked_add(hashes)?)?;
        (xxh3_64(hashes) == row.hash.get()).then(|| {
            let hashes = <[U64]>::ref_from_bytes(hashes).unwrap_or_default();
            (start..end, Checks::new(hashes.iter().map(|hash| hash.get()).collect()))
        })
    }

    /// Returns a section as a column, after verifying its checksums.
    pub(crate) fn column<T: ColumnRow>(&self, id: u32) -> Result<IndexColumn<T>, Unusable> {
        let (range, checks) = self.section(id, size_of::<T>())?;
        if !self.is_right(&range, &checks) {
            return Err(Unusable::Damaged);
        }
        Ok(IndexColumn::Mapped { file: self.file.clone(), range })
    }

    /// Returns `true` if a whole section is valid. Checks it part by part and releases the pages of a long one: most queries
    /// read few records of a table with millions.
    fn is_right(&self, range: &Range<usize>, checks: &Checks) -> bool {
        let Some(section) = self.file.bytes().get(range.clone()) else { return false };
        if section.len() <= CHECKED_BYTES {
            return checks.all_valid(section);
        }
        (0..section.len()).step_by(CHECKED_BYTES).all(|start| {
            let part = start..section.len().min(start + CHECKED_BYTES);
            let right = checks.are_valid(section, part.start / BLOCK_BYTES..part.end.div_ceil(BLOCK_BYTES));
            self.file.give_back(range.start + part.start..range.start + part.end);
            right
        })
    }

    /// Returns a section as a column whose blocks are checked when they are first read.
    pub(crate) fn checked_column<T: ColumnRow>(&self, id: u32) -> Result<CheckedColumn<T>, Unusable> {
        let (range, checks) = self.section(id, size_of::<T>())?;
        if self.file.bytes().get(range.clone()).is_none() {
            return Err(Unusable::Damaged);
        }
        Ok(CheckedColumn::from_mapped(self.file.clone(), range, checks, self.damage.clone()))
    }

    /// Returns the mark that is set when a damaged block is read: all results since the file was opened
    /// are void.
    pub(crate) fn damage(&self) -> Arc<AtomicBool> {
        self.damage.clone()
    }

    /// Checks all sections of the file.
    pub(crate) fn verify(&self) -> Result<(), Unusable> {
        for row in &self.sections {
            let (range, checks) = self.checks(row).ok_or(Unusable::Damaged)?;
            let bytes = self.file.bytes().get(range).ok_or(Unusable::Damaged)?;
            if !checks.all_valid(bytes) {
                return Err(Unusable::Damaged);
            }
        }
        Ok(())
    }
}

/// Writer of a stage's file, section by section.
pub(crate) struct StageWriter<W> {
    out: W,
    at: u64,
    sections: Vec<SectionRow>,
    planned: u32,
}

impl<W: Write + Seek> StageWriter<W> {
    /// Starts a file with `sections` sections.
    pub(crate) fn new(mut out: W, sections: u32) -> io::Result<Self> {
        let head = HEADER_BYTES + sections as usize * SECTION_ROW_BYTES;
        out.write_all(&vec![0; head])?;
        Ok(Self { out, at: head as u64, sections: Vec::new(), planned: sections })
    }

    /// Writes a section of rows.
    pub(crate) fn rows<T: ColumnRow>(&mut self, id: u32, rows: &[T]) -> io::Result<()> {
        self.section(id, size_of::<T>(), [rows.as_bytes()])
    }

    /// Writes a section from several parts.
    pub(crate) fn section<'a>(
        &mut self,
        id: u32,
        row_bytes: usize,
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) -> io::Result<()> {
        let mut section = self.begin(id, row_bytes)?;
        for part in parts {
            section.append(part)?;
        }
        section.end()
    }

    /// Starts a section and returns its writer.
    pub(crate) fn begin(&mut self, id: u32, row_bytes: usize) -> io::Result<SectionWriter<'_, W>> {
        let padding = self.at.next_multiple_of(SECTION_ALIGNMENT) - self.at;
        for _ in 0..padding {
            self.out.write_all(&[0])?;
        }
        self.at += padding;
        let start = self.at;
        Ok(SectionWriter { writer: self, id, row_bytes, start, hasher: BlockHasher::default() })
    }

    /// Writes the header and the section table.
    pub(crate) fn finish(mut self, key: &FileKey) -> io::Result<W> {
        debug_assert_eq!(
            self.sections.len(),
            self.planned as usize,
            "a stage's sections are known beforehand"
        );
        self.sections.resize(self.planned as usize, SectionRow::default());
        let table = self.sections.as_bytes();
        let mut header = FileHeader {
            magic: MAGIC,
            format_version: FORMAT_VERSION.into(),
            stage: (key.stage as u32).into(),
            file_bytes: self.at.into(),
            dump_bytes: key.identity.len.into(),
            dump_modified_ns: key.identity.modified_ns.into(),
            dump_hash: key.identity.hash.into(),
            heap_dump: key.heap_dump.into(),
            sections: self.planned.into(),
            table_hash: xxh3_64(table).into(),
            header_hash: 0.into(),
        };
        let hashed = header.as_bytes().get(..HEADER_BYTES - 8).map(xxh3_64);
        header.header_hash = hashed.unwrap_or(0).into();
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(header.as_bytes())?;
        self.out.write_all(table)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Writer of one section of a stage's file.
pub(crate) struct SectionWriter<'w, W> {
    writer: &'w mut StageWriter<W>,
    id: u32,
    row_bytes: usize,
    start: u64,
    hasher: BlockHasher,
}

impl<W: Write + Seek> SectionWriter<'_, W> {
    /// Writes the next part of the section.
    pub(crate) fn append(&mut self, part: &[u8]) -> io::Result<()> {
        self.hasher.update(part);
        self.writer.out.write_all(part)?;
        self.writer.at += part.len() as u64;
        Ok(())
    }

    /// Writes the hashes of the section.
    pub(crate) fn end(self) -> io::Result<()> {
        let Self { writer, id, row_bytes, start, hasher } = self;
        let bytes = writer.at - start;
        let hashes = hasher.finish();
        writer.out.write_all(hashes.as_bytes())?;
        writer.at += hashes.as_bytes().len() as u64;
        writer.sections.push(SectionRow {
            id: id.into(),
            row_bytes: u32::try_from(row_bytes).unwrap_or(0).into(),
            offset: start.into(),
            bytes: bytes.into(),
            hash: xxh3_64(hashes.as_bytes()).into(),
        });
        Ok(())
    }
}

/// Hasher of a stream of bytes by blocks.
#[derive(Default)]
struct BlockHasher {
    hashes: Vec<U64>,
    state: Box<Xxh3>,
    filled: usize,
}

impl BlockHasher {
    fn update(&mut self, mut part: &[u8]) {
        while !part.is_empty() {
            let (now, rest) = part.split_at(part.len().min(BLOCK_BYTES - self.filled));
            if now.len() == BLOCK_BYTES {
                self.hashes.push(xxh3_64(now).into());
            } else {
                self.state.update(now);
                self.filled += now.len();
                if self.filled == BLOCK_BYTES {
                    self.end_block();
                }
            }
            part = rest;
        }
    }

    fn end_block(&mut self) {
        self.hashes.push(self.state.digest().into());
        self.state.reset();
        self.filled = 0;
    }

    fn finish(mut self) -> Vec<U64> {
        if self.filled > 0 {
            self.end_block();
        }
        self.hashes
    }
}
