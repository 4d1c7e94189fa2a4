//! Tables of the sizes that a dump made from a text report states (STATED SIZES).

use rayon::prelude::*;

use hprof_parser::heap::{HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use hprof_values::{ObjectId, be_u64};

use crate::model::measurements::array_kind;
use crate::model::summary::{ClassIds, ClassNumber, Summary};
use crate::model::tables::{StatedSizeRow, StatedTotalRow};
use crate::records::chunks::Plan;
use crate::records::source::DumpBytes;
use crate::records::top_level::Contents;
use crate::storage::allowance::{Allowance, bytes};
use crate::storage::memory::NoMemory;

/// Size of a row of the record in bytes.
const ROW: usize = 16;

/// Reads the rows of heap dump `number`, from 1: one for each object, ascending by ID.
///
/// # Errors
/// [`NoMemory`] if they do not fit into memory.
pub(crate) fn rows(
    bytes_of_dump: &[u8],
    contents: &Contents,
    number: usize,
    allowance: &Allowance,
) -> Result<Vec<StatedSizeRow>, NoMemory> {
    let of_dump = contents.stated_sizes.iter().filter(|(dump, _)| *dump as usize == number);
    let parts = of_dump.filter_map(|(_, rows)| bytes_of_dump.get(rows.start..rows.end));
    let count = parts.clone().map(|part| part.len() / ROW).sum();
    allowance.take(bytes::<StatedSizeRow>(count))?;
    let mut rows = Vec::with_capacity(count);
    rows.extend(parts.flat_map(|part| part.chunks_exact(ROW)).map(|row| StatedSizeRow {
        id: be_u64(row, 0).unwrap_or(0).into(),
        bytes: be_u64(row, 8).unwrap_or(0).into(),
    }));
    if !rows.is_sorted_by(|one, other| one.id.get() < other.id.get()) {
        rows.sort_by_key(|row| row.id.get());
        rows.dedup_by_key(|row| row.id.get());
    }
    Ok(rows)
}

/// Adds up the stated sizes by class. Of the records with one of the `repeated` IDs, which ascend, the last counts, unless a class
/// object has the ID.
pub(crate) fn totals(
    source: &DumpBytes<'_>,
    plan: &Plan,
    summary: &Summary,
    ids: &ClassIds,
    repeated: &[u64],
) -> Vec<StatedTotalRow> {
    let (primitive, arrays) = (summary.primitive_array_classes(), summary.element_array_classes());
    let none = || {
        let sums = vec![(0, 0); summary.classes().len()];
        StatedTotals {
            summary,
            ids,
            arrays: &arrays,
            primitive: &primitive,
            repeated,
            sums,
            again: Vec::new(),
        }
    };
    let sums = plan.chunks.par_iter().fold(none, |mut totals, chunk| {
        plan.walk(source, chunk, &mut totals, |_| {});
        totals
    });
    let mut sums = sums.reduce(none, |mut one, other| {
        for ((objects, bytes), (more_objects, more_bytes)) in one.sums.iter_mut().zip(other.sums) {
            *objects += more_objects;
            *bytes = bytes.saturating_add(more_bytes);
        }
        one.again.extend(other.again);
        one
    });
    let mut again = std::mem::take(&mut sums.again);
    again.sort_unstable_by_key(|(id, offset, _)| (*id, std::cmp::Reverse(*offset)));
    again.dedup_by_key(|(id, ..)| *id);
    sums.repeated = &[];
    for (id, _, class) in again.into_iter().filter(|(id, ..)| !ids.contains_key(id)) {
        sums.add(id, 0, class);
    }
    let rows = (0u32..).zip(sums.sums).filter(|(_, (objects, _))| *objects > 0);
    let row = |(class, (objects, bytes)): (u32, (u64, u64))| StatedTotalRow {
        objects: objects.into(),
        bytes: bytes.into(),
        class: class.into(),
    };
    rows.map(row).collect()
}

/// Visitor that adds up stated sizes.
struct StatedTotals<'s> {
    summary: &'s Summary,
    ids: &'s ClassIds,
    /// Array classes by the class ID that arrays state, where it is that of the elements.
    arrays: &'s ClassIds,
    /// Classes of primitive arrays, in the order of `BasicType::PRIMITIVES`.
    primitive: &'s [Option<ClassNumber>; 8],
    /// IDs that several records have, ascending.
    repeated: &'s [u64],
    /// Number of objects and sum of their sizes, by class number.
    sums: Vec<(u64, u64)>,
    /// IDs, offsets and classes of the records with repeated IDs.
    again: Vec<(ObjectId, usize, Option<ClassNumber>)>,
}

impl StatedTotals<'_> {
    fn add(&mut self, object: ObjectId, offset: usize, class: Option<ClassNumber>) {
        if self.repeated.binary_search(&object.0).is_ok() {
            self.again.push((object, offset, class));
            return;
        }
        let place = class.and_then(|class| self.sums.get_mut(class.0 as usize));
        if let (Some((objects, bytes)), Some(size)) = (place, self.summary.stated_size(object)) {
            *objects += 1;
            *bytes = bytes.saturating_add(size);
        }
    }
}

impl<'a> HeapVisitor<'a> for StatedTotals<'_> {
    fn instance(&mut self, record: Instance<'a>) {
        self.add(record.id, record.offset, self.ids.get(&record.class).copied());
    }

    fn object_array(&mut self, record: ObjectArray<'a>) {
        let class = self.arrays.get(&record.class).or_else(|| self.ids.get(&record.class));
        self.add(record.id, record.offset, class.copied());
    }

    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        let at = array_kind(record.element).checked_sub(1);
        self.add(record.id, record.offset, at.and_then(|at| self.primitive.get(at).copied().flatten()));
    }
}
