//! The stage `dominators` on disk.

use std::io;

use rayon::prelude::*;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::graph::order::{OrderedTree, WeightsView};
use crate::graph::tree::{BlockRow, Tree};
use crate::graph::tree_columns::Columns;
use crate::storage::bit_packed::{self, BitPackedColumn, BitPacker};
use crate::storage::scratch::ScratchArena;
use crate::storage::store::format::{StageFile, StageWriter, Unusable};

/// Number of sections.
pub(crate) const SECTIONS: u32 = 14;

/// Scalar values of the stage `dominators`.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct TreeFacts {
    /// Size of a unit of shallow size, in bytes.
    unit: U64,
    /// Total shallow size of all reachable objects, in bytes.
    reachable_bytes: U64,
    /// Number of objects.
    objects: U32,
    /// Number of reachable objects.
    reachable: U32,
}

/// Writes all sections of the stage `dominators`.
pub(crate) fn write<W: io::Write + io::Seek + Send>(
    arena: &ScratchArena,
    order: &OrderedTree,
    weights: WeightsView<'_>,
    writer: &mut StageWriter<W>,
) -> io::Result<()> {
    let objects = u32::try_from(order.nodes.len()).unwrap_or(u32::MAX);
    let (packed, columns) = rayon::join(
        || pack(writer, 1, &order.nodes).and_then(|()| pack(writer, 3, &order.positions)),
        || Columns::new(arena, order, weights),
    );
    packed?;
    let columns = columns?;
    pack(writer, 5, &columns.ends)?;
    pack(writer, 7, &columns.sizes)?;
    writer.rows(9, &columns.ends_apart)?;
    writer.rows(10, &columns.sizes_apart)?;
    writer.rows::<BlockRow>(11, &columns.blocks)?;
    let [first, second] = &columns.least;
    writer.rows(12, first)?;
    writer.rows(13, second)?;
    let facts = TreeFacts {
        unit: weights.unit.into(),
        reachable_bytes: columns.reachable_bytes.into(),
        objects: objects.into(),
        reachable: order.reachable.into(),
    };
    writer.rows(14, &[facts])
}

/// Writes a bit-packed column as two sections, words and frames.
fn pack<W: io::Write + io::Seek + Send, T: Copy + Into<u32> + Sync>(
    writer: &mut StageWriter<W>,
    id: u32,
    numbers: &[T],
) -> io::Result<()> {
    // Whole frames.
    const CHUNK: usize = 1 << 16;
    const CHUNKS_AT_ONCE: usize = 16;
    let mut section = writer.begin(id, size_of::<U64>())?;
    let mut frames = Vec::with_capacity(numbers.len().div_ceil(bit_packed::FRAME_LEN));
    let mut before = 0;
    let mut ready: Vec<BitPacker> = Vec::new();
    for now in numbers.chunks(CHUNKS_AT_ONCE * CHUNK).chain([&[][..]]) {
        // Finished chunks are written while the next ones are packed.
        let (written, packed) = rayon::join(
            || {
                ready.drain(..).try_for_each(|chunk| {
                    frames.extend(chunk.frames_after(before));
                    before += chunk.words.len() as u64;
                    section.append(chunk.words.as_bytes())
                })
            },
            || now.par_chunks(CHUNK).map(BitPacker::pack).collect(),
        );
        written?;
        ready = packed;
    }
    section.end()?;
    writer.rows(id + 1, &frames)
}

fn facts(file: &StageFile) -> Result<TreeFacts, Unusable> {
    file.column::<TreeFacts>(14)?.first().copied().ok_or(Unusable::Damaged)
}

/// Reads the number of reachable objects and their shallow bytes.
pub(crate) fn read_reachable(file: &StageFile) -> Result<(u64, u64), Unusable> {
    facts(file).map(|facts| (u64::from(facts.reachable.get()), facts.reachable_bytes.get()))
}

/// Reads all sections; blocks are checked when they are read.
pub(crate) fn read(file: &StageFile) -> Result<Tree, Unusable> {
    let facts = facts(file)?;
    let packed = |id| {
        Ok::<_, Unusable>(BitPackedColumn {
            words: file.checked_column(id)?,
            frames: file.checked_column(id + 1)?,
        })
    };
    let tree = Tree {
        reachable: facts.reachable.get(),
        objects: facts.objects.get(),
        unit: facts.unit.get(),
        order: packed(1)?,
        positions: packed(3)?,
        ends: packed(5)?,
        sizes: packed(7)?,
        ends_apart: file.checked_column(9)?,
        sizes_apart: file.checked_column(10)?,
        blocks: file.checked_column(11)?,
        least: [file.checked_column(12)?, file.checked_column(13)?],
    };
    let frames = (tree.objects as usize).div_ceil(bit_packed::FRAME_LEN);
    let fits = tree.reachable <= tree.objects && tree.sizes.frames.len() == frames;
    if fits { Ok(tree) } else { Err(Unusable::Damaged) }
}
