//! How many objects a dump holds, about, without reading all of it.

use rayon::prelude::*;

use super::build_summary::{Source, Unbuilt, number_of};
use super::chunks;
use super::preview::Prelude;
use super::top_level::Contents;
use crate::hprof::class_dump::ClassDump;
use crate::hprof::heap::{HeapVisitor, Instance, ObjectArray, PrimitiveArray};

/// Pieces that are looked at, of a megabyte or so each.
const SAMPLES: usize = 96;

/// Objects of a heap dump, about: those in some pieces, for all of its bytes.
pub(crate) fn objects(source: &Source<'_>, heap_dump: Option<u32>) -> Result<u64, Unbuilt> {
    let Source { bytes, header, .. } = *source;
    let mut contents = Contents::read(bytes, &header);
    let number = number_of(&contents, heap_dump)?;
    contents.narrow(number);
    let Some(dump) = number.checked_sub(1).and_then(|at| contents.dumps.get(at)) else { return Ok(0) };
    let prelude = Prelude::read(bytes, header.id_size, &contents, dump);
    let pieces = chunks::guess(bytes, header.id_size, dump, &prelude);
    let sample: Vec<_> = pieces.iter().step_by(pieces.len().div_ceil(SAMPLES).max(1)).collect();
    let counted: u64 = (sample.par_iter())
        .map(|piece| {
            let mut count = Count(0);
            chunks::walk(bytes, header.id_size, &prelude, piece, &mut count, |_, _| {});
            count.0
        })
        .sum();
    let length = |piece: &chunks::Piece| (piece.end - piece.start) as u64;
    let all: u64 = pieces.iter().map(length).sum();
    let looked_at: u64 = sample.iter().map(|piece| length(piece)).sum();
    let about = u128::from(counted) * u128::from(all) / u128::from(looked_at.max(1));
    Ok(u64::try_from(about).unwrap_or(u64::MAX))
}

/// Counts objects.
struct Count(u64);

impl<'a> HeapVisitor<'a> for Count {
    fn instance(&mut self, _: Instance<'a>) {
        self.0 += 1;
    }
    fn object_array(&mut self, _: ObjectArray<'a>) {
        self.0 += 1;
    }
    fn primitive_array(&mut self, _: PrimitiveArray<'a>) {
        self.0 += 1;
    }
    fn class(&mut self, _: ClassDump<'a>) {
        self.0 += 1;
    }
}
