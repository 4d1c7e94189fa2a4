//! Estimate of the number of objects in a dump without reading all of it.

use rayon::prelude::*;

use crate::records::chunks;
use crate::records::error::ScanError;
use crate::records::preview::Preview;
use crate::records::record_walk;
use crate::records::source::DumpBytes;
use crate::storage::allowance::Allowance;
use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{HeapVisitor, Instance, ObjectArray, PrimitiveArray};

/// Number of chunks sampled, each about a megabyte.
const SAMPLES: usize = 96;

/// Returns the approximate number of objects of a heap dump, extrapolated from a sample of its chunks.
pub(crate) fn objects(source: &DumpBytes<'_>, heap_dump: Option<u32>) -> Result<u64, ScanError> {
    let DumpBytes { bytes, header, .. } = *source;
    let mut contents = record_walk::read(bytes, &header, &Allowance::new(source.memory))?;
    let number = contents.heap_dump_number(heap_dump)?;
    contents.narrow(number);
    let Some(dump) = number.checked_sub(1).and_then(|at| contents.dumps.get(at)) else { return Ok(0) };
    let preview = Preview::read(bytes, header.id_size, &contents, dump);
    let chunks = chunks::guess(bytes, header.id_size, dump, &preview);
    let sample: Vec<_> = chunks.iter().step_by(chunks.len().div_ceil(SAMPLES).max(1)).collect();
    let counted: u64 = (sample.par_iter())
        .map(|chunk| {
            let mut count = Count(0);
            chunks::walk(bytes, header.id_size, &preview, chunk, &mut count, |_, _| {});
            count.0
        })
        .sum();
    let length = |chunk: &chunks::RecordChunk| (chunk.end - chunk.start) as u64;
    let all: u64 = chunks.iter().map(length).sum();
    let looked_at: u64 = sample.iter().map(|chunk| length(chunk)).sum();
    let about = u128::from(counted) * u128::from(all) / u128::from(looked_at.max(1));
    Ok(u64::try_from(about).unwrap_or(u64::MAX))
}

/// Visitor that counts objects.
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
