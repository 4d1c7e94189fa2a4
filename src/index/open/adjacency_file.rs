//! The stages `references` and `referrers` on disk: adjacency lists.

use std::io;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::index::graph::adjacency::{AdjacencyLists, Encoded, GROUP};
use crate::index::graph::stitcher::Stitcher;
use crate::index::model::dangling::MissingObjects;
use crate::index::storage::scratch::{Array, ScratchArena};
use crate::index::storage::store::format::{SectionWriter, StageFile, StageWriter, Unusable};

/// Number of sections.
pub(crate) const SECTIONS: u32 = 3;

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct AdjacencyFacts {
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

/// Writes all sections. `fill` passes the lists of all objects, in order.
pub(crate) fn write<W: io::Write + io::Seek, T>(
    arena: &ScratchArena,
    objects: u32,
    writer: &mut StageWriter<W>,
    fill: impl FnOnce(&mut AdjacencyWriter<'_, W>) -> io::Result<T>,
) -> io::Result<T> {
    let groups = arena.zeroed::<U64>(objects.div_ceil(GROUP) as usize + 1)?;
    let mut rows = AdjacencyWriter {
        bytes: writer.begin(1, 1)?,
        groups,
        next: 1,
        edges: 0,
        at: 0,
        stitcher: Stitcher::default(),
        missing: MissingObjects::default(),
    };
    let filled = fill(&mut rows)?;
    rows.finish()?;
    let AdjacencyWriter { bytes, groups, edges, missing, .. } = rows;
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

/// Adjacency lists that are being written.
pub(crate) struct AdjacencyWriter<'w, W> {
    bytes: SectionWriter<'w, W>,
    groups: Array<U64>,
    /// The group whose end comes next.
    next: usize,
    edges: u64,
    at: u64,
    stitcher: Stitcher,
    /// Dangling references: they are in no list, as their objects are not in the dump.
    pub(crate) missing: MissingObjects,
}

impl<W: io::Write + io::Seek> AdjacencyWriter<'_, W> {
    /// Writes the next lists.
    pub(crate) fn append(&mut self, lists: &Encoded) -> io::Result<()> {
        self.edges += lists.edges;
        let Self { bytes, groups, next, at, stitcher, .. } = self;
        stitcher.append(lists, |part, lengths| put(bytes, groups, next, at, part, lengths))
    }

    /// Writes what is left.
    fn finish(&mut self) -> io::Result<()> {
        let Self { bytes, groups, next, at, stitcher, .. } = self;
        stitcher.finish(|part, lengths| put(bytes, groups, next, at, part, lengths))
    }
}

/// Writes whole groups, and where they end.
fn put<W: io::Write + io::Seek>(
    bytes: &mut SectionWriter<'_, W>,
    groups: &mut [U64],
    next: &mut usize,
    at: &mut u64,
    part: &[u8],
    lengths: &[u64],
) -> io::Result<()> {
    let places = groups.get_mut(*next..*next + lengths.len());
    let places = places.ok_or_else(|| io::Error::other("more rows than objects"))?;
    *next += lengths.len();
    for (place, length) in places.iter_mut().zip(lengths) {
        *at += length;
        *place = (*at).into();
    }
    bytes.append(part)
}

/// Reads what refers to objects that are not in the dump.
pub(crate) fn read_missing(file: &StageFile) -> Result<MissingObjects, Unusable> {
    let facts = *file.column::<AdjacencyFacts>(3)?.first().ok_or(Unusable::Damaged)?;
    Ok(MissingObjects {
        references: facts.missing_references.get(),
        objects: facts.missing_objects.get(),
        more: facts.missing_more != 0,
    })
}

/// Reads all sections; they are checked as they are read.
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
