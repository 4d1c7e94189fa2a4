//! The stage `dominators` on disk.

use std::io;

use rayon::prelude::*;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::graph::order::{Order, Weights};
use super::graph::tree::Tree;
use super::graph::tree_columns::Columns;
use super::packed::{self, Packed};
use super::store::format::{StageFile, StageWriter, Unusable};

/// Number of sections.
pub(crate) const SECTIONS: u32 = 10;

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct TreeFacts {
    /// Bytes of a shallow size of 1.
    unit: U64,
    /// Shallow bytes of all reachable objects.
    reachable_bytes: U64,
    /// Number of objects.
    objects: U32,
    /// Reachable ones.
    reachable: U32,
    /// Bits of a packed number.
    width: U32,
}

/// Writes all sections.
pub(crate) fn write<W: io::Write + io::Seek>(
    order: &Order<'_>,
    weights: &Weights,
    writer: &mut StageWriter<W>,
) -> io::Result<()> {
    let objects = u32::try_from(order.nodes.len()).unwrap_or(u32::MAX);
    let width = packed::width(objects);
    pack(writer, 1, &order.nodes, width)?;
    pack(writer, 2, &order.positions, width)?;
    let columns = Columns::new(order, weights);
    writer.rows::<u8>(3, &columns.ends)?;
    writer.rows(4, &columns.ends_apart)?;
    writer.rows::<u8>(5, &columns.sizes)?;
    writer.rows(6, &columns.sizes_apart)?;
    writer.rows(7, &columns.blocks)?;
    let [first, second] = &columns.least;
    writer.rows(8, first)?;
    writer.rows(9, second)?;
    let tree = Tree {
        reachable: order.reachable,
        unit: weights.unit,
        sizes: columns.sizes.into(),
        sizes_apart: columns.sizes_apart.into(),
        blocks: columns.blocks.into(),
        ..Tree::default()
    };
    let facts = TreeFacts {
        unit: weights.unit.into(),
        reachable_bytes: tree.reachable_bytes().into(),
        objects: objects.into(),
        reachable: order.reachable.into(),
        width: width.into(),
    };
    writer.rows(10, &[facts])
}

/// Writes a packed column.
fn pack<W: io::Write + io::Seek>(
    writer: &mut StageWriter<W>,
    id: u32,
    numbers: &[u32],
    width: u32,
) -> io::Result<()> {
    // Whole words: 64 numbers fill a whole number of them.
    const PART: usize = 1 << 16;
    const WAVE: usize = 1 << 22;
    let mut section = writer.begin(id, size_of::<U64>())?;
    for wave in numbers.chunks(WAVE) {
        let parts: Vec<Vec<U64>> = wave.par_chunks(PART).map(|part| packed::pack(part, width)).collect();
        for part in &parts {
            section.append(part.as_bytes())?;
        }
    }
    // So that two words can always be read.
    section.append(U64::new(0).as_bytes())?;
    section.append(U64::new(0).as_bytes())?;
    section.end()
}

fn facts(file: &StageFile) -> Result<TreeFacts, Unusable> {
    file.column::<TreeFacts>(10)?.first().copied().ok_or(Unusable::Damaged)
}

/// Reads how many objects are reachable, and their shallow bytes.
pub(crate) fn read_reachable(file: &StageFile) -> Result<(u64, u64), Unusable> {
    facts(file).map(|facts| (u64::from(facts.reachable.get()), facts.reachable_bytes.get()))
}

/// Reads all sections; they are checked as they are read.
pub(crate) fn read(file: &StageFile) -> Result<Tree, Unusable> {
    let facts = facts(file)?;
    let width = facts.width.get();
    let tree = Tree {
        reachable: facts.reachable.get(),
        objects: facts.objects.get(),
        unit: facts.unit.get(),
        order: Packed::new(file.lazy(1)?, width).ok_or(Unusable::Damaged)?,
        positions: Packed::new(file.lazy(2)?, width).ok_or(Unusable::Damaged)?,
        ends: file.lazy(3)?,
        ends_apart: file.lazy(4)?,
        sizes: file.lazy(5)?,
        sizes_apart: file.lazy(6)?,
        blocks: file.lazy(7)?,
        least: [file.lazy(8)?, file.lazy(9)?],
    };
    let fits = tree.reachable <= tree.objects && tree.sizes.len() == tree.objects as usize;
    if fits { Ok(tree) } else { Err(Unusable::Damaged) }
}
