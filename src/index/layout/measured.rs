//! Measurements of a scan as stored in a summary: distances and lengths of arrays.

use super::object_layout::Layout;
use crate::model::measurements::{ARRAY_KINDS, Distance, Lengths, OBJECT_LENGTHS, SHORT, element_of_kind};
use crate::model::summary::{ClassNumber, Summary};
use crate::model::tables::ClassRow;
use hprof_values::BasicType;

/// Returns the distances of a class's instances.
pub fn distance(class: &ClassRow) -> Distance {
    Distance {
        min: class.distance_min.get(),
        hits: class.distance_hits.get(),
        seen: class.distance_seen.get(),
    }
}

/// Returns the lengths of the object arrays of each class, by class number.
pub fn object_lengths(summary: &Summary) -> Vec<(ClassNumber, Lengths<OBJECT_LENGTHS>)> {
    let mut lengths: Vec<(ClassNumber, Lengths<OBJECT_LENGTHS>)> = (summary.tables().elements.iter())
        .map(|row| {
            let lengths = Lengths { elements: row.elements.get(), ..Lengths::default() };
            (ClassNumber(row.class.get()), lengths)
        })
        .collect();
    for row in summary.tables().object_lengths.iter() {
        let at = lengths.binary_search_by_key(&row.class.get(), |(number, _)| number.0);
        let found = at.ok().and_then(|at| lengths.get_mut(at));
        let count = found.and_then(|(_, lengths)| lengths.by_length.get_mut(usize::from(row.length)));
        if let Some(count) = count {
            *count = row.count.get();
        }
    }
    lengths
}

/// Returns the measured distances of short arrays: element type, length, distance.
pub fn short_arrays(summary: &Summary) -> impl Iterator<Item = (BasicType, u64, Distance)> {
    let rows = &*summary.tables().short_arrays;
    let rows = if rows.len() == ARRAY_KINDS * SHORT { rows } else { &[] };
    (rows.iter().enumerate())
        .filter(|(_, row)| row.seen.get() > 0)
        .map(|(at, row)| (element_of_kind(at / SHORT), (at % SHORT) as u64, Distance::from(*row)))
}

/// Returns the total size of all arrays of these lengths, given the offset of their first element and the size of each.
pub(crate) fn array_bytes<const N: usize>(
    layout: &Layout,
    base: u64,
    each: u64,
    lengths: &Lengths<N>,
) -> u64 {
    let mut bytes = lengths.elements.saturating_mul(each);
    for (length, count) in (0u64..).zip(&lengths.by_length) {
        // The padding of an array depends on its length modulo N only, for alignments up to N elements.
        let unpadded = base + length * each;
        bytes = bytes.saturating_add(count.saturating_mul(base + layout.align(unpadded) - unpadded));
    }
    bytes
}
