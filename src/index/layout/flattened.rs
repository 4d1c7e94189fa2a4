//! Sizes of objects and arrays that contain flattened objects (JEP 401).
//!
//! A dump does not state how the JVM lays them out: a null marker of one byte is assumed for each flattened field, and for each
//! element of an array in which an element is null; elements are rounded up to a power of two (`ObjArrayKlass` and
//! `FlatArrayKlass` of HotSpot).

use super::measured;
use super::object_layout::{FieldCounts, Layout, align_up};
use crate::model::measurements::{Lengths, OBJECT_LENGTHS};
use crate::model::summary::{ClassNumber, Summary};
use hprof_values::BasicType;

/// Maximum nesting of flattened objects.
const MAX_DEPTH: u32 = 32;

/// Arrays of a class whose elements are flattened.
#[derive(Debug, Clone)]
pub(crate) struct FlatArrayClass {
    pub(crate) class: ClassNumber,
    /// Size of an element in bytes.
    pub(crate) element_bytes: u64,
    lengths: Lengths<OBJECT_LENGTHS>,
}

/// Returns, by class number, whether the size of an instance can only be estimated: flattened objects are part of it, or it is of
/// a class whose objects can be flattened, which HotSpot pads. Empty if nothing is flattened.
pub(crate) fn estimated_classes(summary: &Summary) -> Vec<bool> {
    let tables = summary.tables();
    if summary.facts().last_flat_id.get() == 0 {
        return Vec::new();
    }
    let mut own = vec![false; summary.classes().len()];
    let classes = tables.flat_classes.iter().map(|row| row.class.get());
    for class in classes.chain(tables.flat_fields.iter().map(|row| row.class.get())) {
        if let Some(is_estimated) = own.get_mut(class as usize) {
            *is_estimated = true;
        }
    }
    summary.class_table().derive(|class, above: Option<&bool>| {
        own.get(class.0 as usize) == Some(&true) || above == Some(&true)
    })
}

/// Replaces the references to flattened objects in the fields that each class declares, `own`, by the fields of the objects.
pub(crate) fn flatten_fields(summary: &Summary, own: &mut [FieldCounts]) {
    let rows = &summary.tables().flat_fields;
    if rows.is_empty() {
        return;
    }
    let declared = own.to_vec();
    let mut payloads = Payloads { summary, declared: &declared, known: vec![None; declared.len()] };
    for row in rows.iter() {
        let payload = payloads.payload(ClassNumber(row.value_class.get()), 0);
        if let Some(counts) = own.get_mut(row.class.get() as usize) {
            replace(counts, &payload);
        }
    }
}

/// Replaces a reference by the fields of a flattened object and its null marker.
fn replace(counts: &mut FieldCounts, payload: &FieldCounts) {
    counts.remove(BasicType::Object);
    counts.add_all(payload);
    counts.add(BasicType::Byte);
}

/// Fields of flattened objects by class, inherited and nested ones included.
struct Payloads<'s> {
    summary: &'s Summary,
    /// Fields that each class declares.
    declared: &'s [FieldCounts],
    known: Vec<Option<FieldCounts>>,
}

impl Payloads<'_> {
    fn payload(&mut self, class: ClassNumber, depth: u32) -> FieldCounts {
        let table = self.summary.class_table();
        // Superclasses first: each class adds its own fields to those of the next superclass, once.
        let (mut line, mut counts) = (Vec::new(), FieldCounts::default());
        let mut next = Some(class);
        while let Some(class) = next {
            if let Some(known) = self.known.get(class.0 as usize).copied().flatten() {
                counts = known;
                break;
            }
            line.push(class);
            next = table.superclass_with_fields(class);
        }
        for declaring in line.into_iter().rev() {
            let declared = self.declared.get(declaring.0 as usize).copied().unwrap_or_default();
            counts.add_all(&declared);
            let rows = &self.summary.tables().flat_fields;
            let first = rows.partition_point(|row| row.class.get() < declaring.0);
            let rows = rows.get(first..).unwrap_or_default();
            for row in rows.iter().take_while(|row| row.class.get() == declaring.0) {
                if depth < MAX_DEPTH {
                    let payload = self.payload(ClassNumber(row.value_class.get()), depth + 1);
                    replace(&mut counts, &payload);
                }
            }
            if let Some(known) = self.known.get_mut(declaring.0 as usize) {
                *known = Some(counts);
            }
        }
        counts
    }
}

/// Returns the classes of arrays with flattened elements, ascending; `declared` contains the fields that each class declares.
pub(crate) fn flat_arrays(
    summary: &Summary,
    declared: &[FieldCounts],
    layout: &Layout,
) -> Vec<FlatArrayClass> {
    let mut payloads = Payloads { summary, declared, known: vec![None; declared.len()] };
    let rows = summary.tables().flat_arrays.iter();
    rows.map(|row| {
        let payload = payloads.payload(ClassNumber(row.value_class.get()), 0);
        let bytes = payload.bytes(layout) + u64::from(row.has_null);
        let mut lengths = Lengths { elements: row.elements.get(), ..Lengths::default() };
        for (count, stored) in lengths.by_length.iter_mut().zip(row.lengths.iter().flatten()) {
            *count = stored.get();
        }
        let element_bytes = bytes.max(1).next_power_of_two();
        FlatArrayClass { class: ClassNumber(row.class.get()), element_bytes, lengths }
    })
    .collect()
}

impl FlatArrayClass {
    /// Returns the size of an array of this length in bytes.
    pub(crate) fn size(&self, layout: &Layout, length: u64) -> u64 {
        // Payloads are aligned to 8 bytes.
        let base = align_up(u64::from(layout.array_base_bytes), 8);
        layout.align(base.saturating_add(length.saturating_mul(self.element_bytes)))
    }

    /// Returns by how many bytes all arrays of the class are larger, or smaller, than arrays of references.
    pub(crate) fn difference(&self, layout: &Layout) -> i128 {
        // Padding depends on the length modulo 64 only, for alignments up to 64 elements.
        let (flat, references) = (
            measured::array_bytes(
                layout,
                align_up(u64::from(layout.array_base_bytes), 8),
                self.element_bytes,
                &self.lengths,
            ),
            measured::array_bytes(
                layout,
                layout.array_base(BasicType::Object),
                u64::from(layout.reference_bytes),
                &self.lengths,
            ),
        );
        i128::from(flat) - i128::from(references)
    }
}
