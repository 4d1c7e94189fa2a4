//! The stages `references` and `referrers` on disk: adjacency lists.

use std::io;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::graph::adjacency::{AdjacencyLists, EncodedLists, GROUP};
use crate::graph::stitcher::Stitcher;
use crate::model::dangling::MissingObjects;
use crate::storage::scratch::{Array, ScratchArena};
use crate::storage::store::format::{SectionWriter, StageFile, StageWriter, Unusable};

/// Number of sections.
pub(crate) const SECTIONS: u32 = 3;

/// Scalar values of a stage of adjacency lists.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct AdjacencyFacts {
    /// Number of edges.
    edges: U64,
    /// Number of objects.
    objects: U32,
    /// Number of dangling references; 0 in `referrers`.
    missing_references: U64,
    /// Number of distinct missing objects.
    missing_objects: U64,
    /// 1 if `missing_objects` is a lower bound.
    missing_more: u8,
}

/// Writes all sections. `fill` passes the lists of all objects, in order.
pub(crate) fn write<W: io::Write + io::Seek, T>(
    arena: &ScratchArena,
    objects: u32,
    writer: &mut StageWriter<W>,
    fill: impl FnOnce(&mut AdjacencyWriter<'_, W>) -> io::Result<T>,
) -> io::Result<T> {
    let groups = arena.zeroed_array::<U64>(objects.div_ceil(GROUP) as usize + 1)?;
    let mut rows = AdjacencyWriter {
        groups: GroupWriter { bytes: writer.begin(1, 1)?, ends: groups, next: 1, at: 0 },
        edges: 0,
        stitcher: Stitcher::default(),
        missing: MissingObjects::default(),
    };
    let filled = fill(&mut rows)?;
    let AdjacencyWriter { mut groups, edges, mut stitcher, missing } = rows;
    stitcher.finish(|bytes, lengths| groups.put(bytes, lengths))?;
    let GroupWriter { bytes, ends: groups, .. } = groups;
    bytes.end()?;
    writer.rows::<U64>(2, &groups)?;
    let facts = AdjacencyFacts {
        edges: edges.into(),
        objects: objects.into(),
        missing_references: missing.references.into(),
        missing_objects: missing.objects.into(),
        missing_more: u8::from(missing.more),
    };
    writer.rows(3, &[facts])?;
    Ok(filled)
}

/// Writer for adjacency lists.
pub(crate) struct AdjacencyWriter<'w, W> {
    groups: GroupWriter<'w, W>,
    edges: u64,
    stitcher: Stitcher,
    /// Dangling references: they are in no list, as their objects are missing from the dump.
    pub(crate) missing: MissingObjects,
}

impl<W: io::Write + io::Seek> AdjacencyWriter<'_, W> {
    /// Writes the next lists.
    pub(crate) fn append(&mut self, lists: &EncodedLists) -> io::Result<()> {
        self.edges += lists.edges;
        self.stitcher.append(lists, |bytes, lengths| self.groups.put(bytes, lengths))
    }
}

/// Writer for whole groups and their ends.
struct GroupWriter<'w, W> {
    bytes: SectionWriter<'w, W>,
    ends: Array<U64>,
    /// Next group without an end.
    next: usize,
    at: u64,
}

impl<W: io::Write + io::Seek> GroupWriter<'_, W> {
    fn put(&mut self, bytes: &[u8], lengths: &[u64]) -> io::Result<()> {
        let ends = self.ends.get_mut(self.next..self.next + lengths.len());
        let ends = ends.ok_or_else(|| io::Error::other("internal error: more rows than objects"))?;
        self.next += lengths.len();
        for (end, length) in ends.iter_mut().zip(lengths) {
            self.at += length;
            *end = self.at.into();
        }
        self.bytes.append(bytes)
    }
}

/// Reads the counts of dangling references.
pub(crate) fn read_missing(file: &StageFile) -> Result<MissingObjects, Unusable> {
    let facts = *file.column::<AdjacencyFacts>(3)?.first().ok_or(Unusable::Damaged)?;
    Ok(MissingObjects {
        references: facts.missing_references.get(),
        objects: facts.missing_objects.get(),
        more: facts.missing_more != 0,
    })
}

/// Reads all sections; blocks are checked when they are read.
pub(crate) fn read(file: &StageFile) -> Result<AdjacencyLists, Unusable> {
    let facts = *file.column::<AdjacencyFacts>(3)?.first().ok_or(Unusable::Damaged)?;
    let lists = AdjacencyLists {
        groups: file.checked_column(2)?,
        bytes: file.checked_column(1)?,
        objects: facts.objects.get(),
        edges: facts.edges.get(),
    };
    if lists.groups.len() != lists.objects.div_ceil(GROUP) as usize + 1 {
        return Err(Unusable::Damaged);
    }
    Ok(lists)
}
