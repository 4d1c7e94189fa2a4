//! The stages `references` and `referrers` on disk: rows.

use std::io;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::index::graph::adjacency::{Encoded, GROUP, Rows};
use crate::index::model::dangling::MissingObjects;
use crate::index::storage::scratch::{Array, Room};
use crate::index::storage::store::format::{SectionWriter, StageFile, StageWriter, Unusable};

/// Number of sections.
pub(crate) const SECTIONS: u32 = 3;

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RowFacts {
    /// Number of edges.
    edges: U64,
    /// Number of objects.
    objects: U32,
    /// References to objects that are not in the dump; 0 in referrers.
    missing_references: U64,
    /// Distinct objects that they name.
    missing_objects: U64,
    /// 1 if there are more of those than were told apart.
    missing_more: u8,
}

/// Writes all sections. `fill` hands over the rows of all objects, in order.
pub(crate) fn write<W: io::Write + io::Seek, T>(
    room: &Room,
    objects: u32,
    writer: &mut StageWriter<W>,
    fill: impl FnOnce(&mut RowsWriter<'_, W>) -> io::Result<T>,
) -> io::Result<T> {
    let groups = room.zeroed::<U64>(objects.div_ceil(GROUP) as usize + 1)?;
    let mut rows = RowsWriter {
        bytes: writer.begin(1, 1)?,
        groups,
        next: 1,
        edges: 0,
        at: 0,
        missing: MissingObjects::default(),
    };
    let filled = fill(&mut rows)?;
    let RowsWriter { bytes, groups, edges, missing, .. } = rows;
    bytes.end()?;
    writer.rows::<U64>(2, &groups)?;
    let facts = RowFacts {
        edges: edges.into(),
        objects: objects.into(),
        missing_references: missing.references.into(),
        missing_objects: missing.objects.into(),
        missing_more: u8::from(missing.more),
    };
    writer.rows(3, &[facts])?;
    Ok(filled)
}

/// Rows that are being written.
pub(crate) struct RowsWriter<'w, W> {
    bytes: SectionWriter<'w, W>,
    groups: Array<U64>,
    /// The group whose end comes next.
    next: usize,
    edges: u64,
    at: u64,
    /// References that are in no row, as their objects are not in the dump.
    pub(crate) missing: MissingObjects,
}

impl<W: io::Write + io::Seek> RowsWriter<'_, W> {
    /// Writes the next rows.
    pub(crate) fn append(&mut self, rows: &Encoded) -> io::Result<()> {
        let mut places = self.groups.iter_mut().skip(self.next);
        self.next += rows.groups.len();
        for length in &rows.groups {
            self.at += length;
            *places.next().ok_or_else(|| io::Error::other("more rows than objects"))? = self.at.into();
        }
        self.edges += rows.edges;
        self.bytes.append(&rows.bytes)
    }
}

/// Reads what refers to objects that are not in the dump.
pub(crate) fn read_missing(file: &StageFile) -> Result<MissingObjects, Unusable> {
    let facts = *file.column::<RowFacts>(3)?.first().ok_or(Unusable::Damaged)?;
    Ok(MissingObjects {
        references: facts.missing_references.get(),
        objects: facts.missing_objects.get(),
        more: facts.missing_more != 0,
    })
}

/// Reads all sections; they are checked as they are read.
pub(crate) fn read(file: &StageFile) -> Result<Rows, Unusable> {
    let facts = *file.column::<RowFacts>(3)?.first().ok_or(Unusable::Damaged)?;
    let rows = Rows {
        groups: file.lazy(2)?,
        bytes: file.lazy(1)?,
        objects: facts.objects.get(),
        edges: facts.edges.get(),
    };
    if rows.groups.len() != rows.objects.div_ceil(GROUP) as usize + 1 {
        return Err(Unusable::Damaged);
    }
    Ok(rows)
}
