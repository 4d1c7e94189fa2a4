//! Flattened objects (JEP 401): value objects whose fields are part of the object or array that refers to them.
//!
//! HotSpot dumps each as an instance with a number as its ID: 1, 2, ..., except multiples of the alignment of objects, which
//! addresses are (`FlatObjectDumper` in its `heapDumper.cpp`). A null is 0. Each has one referrer, which is neither a static
//! field nor a GC root. No record states that an object is flattened.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{HeapVisitor, Instance, ObjectArray, PrimitiveArray, RootRecord};
use hprof_values::{BasicType, IdSize, ObjectId, be_id, be_ids};

use super::tallies::{FlatIds, ScanResult};
use super::task::Task;
use crate::model::measurements::{Lengths, OBJECT_LENGTHS};
use crate::model::summary::{ClassIds, Summary};
use crate::model::tables::{FlatArrayRow, FlatClassRow, FlatFieldRow};
use crate::records::chunks::{self, Plan};
use crate::records::source::DumpBytes;
use crate::storage::allowance::bytes;
use crate::storage::id_map::IdMap;
use crate::storage::memory::NoMemory;

/// Smallest and largest alignment of objects in HotSpot (`-XX:ObjectAlignmentInBytes`).
const ALIGNMENTS: std::ops::RangeInclusive<u32> = 3..=8;

impl FlatIds {
    /// Finds the flattened objects of a dump that has IDs that are not multiples of 8; `None` if there are none, as in dumps of
    /// agents, which number all objects.
    ///
    /// # Errors
    /// [`NoMemory`]: a bit is needed for each object.
    pub(crate) fn find(task: &Task<'_>, scan: &ScanResult) -> Result<Option<Self>, NoMemory> {
        if scan.id_bits.trailing_zeros() >= *ALIGNMENTS.start() {
            return Ok(None);
        }
        let instances = scan.tallies.values().filter(|tally| tally.lengths.is_none());
        let instances: u64 = instances.map(|tally| tally.objects).sum();
        // If all instances were flattened, one number in eight would be missing.
        let limit = instances + instances / 7 + 8;
        let words = usize::try_from(limit / 64 + 1).unwrap_or(usize::MAX);
        task.allowance.take(bytes::<AtomicU64>(words))?;
        let marks: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let none = || LowIds { marks: &marks, limit, other_bits: 0, lowest_other: u64::MAX };
        let found = task.chunks.par_iter().fold(none, |mut found, chunk| {
            chunks::walk(task.bytes, task.id_size, task.known, chunk, &mut found, |_, _| {});
            found
        });
        let all = found.reduce(none, |one, other| LowIds {
            other_bits: one.other_bits | other.other_bits,
            lowest_other: one.lowest_other.min(other.lowest_other),
            ..one
        });
        let found = all.last_flat().map(|last| Self { last, other_bits: all.other_bits });
        task.allowance.give_back(bytes::<AtomicU64>(words));
        Ok(found)
    }
}

/// Visitor that marks the low IDs of instances.
struct LowIds<'m> {
    marks: &'m [AtomicU64],
    /// Highest ID that is marked.
    limit: u64,
    /// Bitwise OR of the IDs of arrays, class objects, and instances above the limit.
    other_bits: u64,
    /// Lowest ID of an array, a class object or a GC root.
    lowest_other: u64,
}

impl LowIds<'_> {
    fn add_other(&mut self, ObjectId(id): ObjectId) {
        self.other_bits |= id;
        self.lowest_other = self.lowest_other.min(id);
    }

    fn is_marked(&self, id: u64) -> bool {
        let word = usize::try_from(id / 64).ok().and_then(|word| self.marks.get(word));
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (id % 64) & 1 != 0)
    }

    /// Returns the highest ID of a flattened object.
    fn last_flat(&self) -> Option<u64> {
        if self.other_bits == 0 {
            return None;
        }
        let mut alignments = ALIGNMENTS.take_while(|bits| *bits <= self.other_bits.trailing_zeros());
        alignments.find_map(|bits| self.last_for(1 << bits))
    }

    /// Returns the highest marked ID that is not a multiple of an alignment, if nearly all lower ones are marked too, but no
    /// multiple of the alignment.
    fn last_for(&self, alignment: u64) -> Option<u64> {
        let mut downwards = (1..=self.limit).rev();
        let last = downwards.find(|id| id % alignment != 0 && self.is_marked(*id))?;
        let (mut multiples, mut others) = (0, 0u64);
        for id in 1..=last {
            let count = if id % alignment == 0 { &mut multiples } else { &mut others };
            *count += u64::from(self.is_marked(id));
        }
        let expected = last - last / alignment;
        // The next number would be a flattened object too. Damaged dumps lack some.
        (multiples == 0
            && !self.is_marked(last + 1)
            && others >= expected - expected / 16
            && last < self.lowest_other)
            .then_some(last)
    }
}

impl<'a> HeapVisitor<'a> for LowIds<'_> {
    fn instance(&mut self, record: Instance<'a>) {
        let ObjectId(id) = record.id;
        match usize::try_from(id / 64).ok().and_then(|word| self.marks.get(word)).filter(|_| id <= self.limit)
        {
            Some(word) => _ = word.fetch_or(1 << (id % 64), Ordering::Relaxed),
            None => self.other_bits |= id,
        }
    }

    fn object_array(&mut self, record: ObjectArray<'a>) {
        self.add_other(record.id);
    }

    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        self.add_other(record.id);
    }

    fn class(&mut self, record: ClassDump<'a>) {
        self.add_other(record.id);
    }

    fn root(&mut self, _: usize, root: RootRecord) {
        if !root.id.is_null() {
            self.lowest_other = self.lowest_other.min(root.id.0);
        }
    }

    fn go_on(&mut self) -> bool {
        self.other_bits.trailing_zeros() >= *ALIGNMENTS.start()
    }
}

/// Tables of flattened objects: how many each class has, and which fields and arrays contain them.
#[derive(Debug, Default)]
pub(crate) struct FlatTables {
    pub(crate) classes: Vec<FlatClassRow>,
    pub(crate) fields: Vec<FlatFieldRow>,
    pub(crate) arrays: Vec<FlatArrayRow>,
}

impl FlatTables {
    /// Reads all objects of a dump whose flattened objects have IDs up to `last`.
    pub(crate) fn new(
        source: &DumpBytes<'_>,
        plan: &Plan,
        summary: &Summary,
        ids: &ClassIds,
        last: u64,
    ) -> Self {
        let references = DeclaredReferences::new(summary);
        let none = || Holders::new(summary, ids, &references, last);
        let holders = plan.chunks.par_iter().fold(none, |mut holders, chunk| {
            plan.walk(source, chunk, &mut holders, |_| {});
            holders
        });
        let holders = holders.reduce(none, Holders::merge);
        let mut samples: Vec<u64> = holders.fields.values().copied().collect();
        samples.extend(holders.arrays.values().map(|array| array.sample));
        samples.sort_unstable();
        let none = || SampleClasses { samples: &samples, found: BTreeMap::new() };
        let classes = plan.chunks.par_iter().fold(none, |mut classes, chunk| {
            plan.walk(source, chunk, &mut classes, |_| {});
            classes
        });
        let classes = classes.reduce(none, |mut one, other| {
            one.found.extend(other.found);
            one
        });
        let number = |class: &ObjectId| Some(ids.get(class)?.0);
        let value_class = |sample: &u64| number(classes.found.get(sample)?);
        let mut counts: Vec<(u32, u64)> =
            holders.classes.iter().filter_map(|(class, objects)| Some((number(class)?, *objects))).collect();
        counts.sort_unstable();
        let fields = holders.fields.iter().filter_map(|((class, field), sample)| {
            let value_class = value_class(sample)?.into();
            Some(FlatFieldRow { class: (*class).into(), field: (*field).into(), value_class })
        });
        let arrays = holders.arrays.iter().filter_map(|(class, array)| {
            Some(FlatArrayRow {
                class: (*class).into(),
                value_class: value_class(&array.sample)?.into(),
                has_null: u8::from(array.has_null),
                elements: array.lengths.elements.into(),
                lengths: std::array::from_fn(|half| {
                    std::array::from_fn(|at| {
                        array.lengths.by_length.get(half * 32 + at).copied().unwrap_or(0).into()
                    })
                }),
            })
        });
        let arrays = arrays.collect();
        let classes = counts.into_iter();
        let classes =
            classes.map(|(class, objects)| FlatClassRow { objects: objects.into(), class: class.into() });
        Self { classes: classes.collect(), fields: fields.collect(), arrays }
    }
}

/// Offsets of the reference fields that each class declares, in the bytes of its own fields; by class number.
struct DeclaredReferences(Vec<Box<[u32]>>);

impl DeclaredReferences {
    fn new(summary: &Summary) -> Self {
        let id_size = summary.id_size();
        let of_class = |class| {
            let mut at = 0u32;
            let starts = summary.raw_fields(class).map(|(_, kind)| {
                let start = at;
                at = at.saturating_add(u32::try_from(kind.dump_bytes(id_size)).unwrap_or(u32::MAX));
                (kind, start)
            });
            starts.filter(|(kind, _)| *kind == BasicType::Object).map(|(_, start)| start).collect()
        };
        Self(summary.classes().iter().map(of_class).collect())
    }
}

/// Flattened arrays of a class.
#[derive(Debug)]
struct FlatArrays {
    /// ID of an element.
    sample: u64,
    has_null: bool,
    lengths: Lengths<OBJECT_LENGTHS>,
}

/// Visitor that finds the fields and arrays that contain flattened objects.
struct Holders<'s> {
    summary: &'s Summary,
    ids: &'s ClassIds,
    references: &'s DeclaredReferences,
    last: u64,
    id_size: IdSize,
    /// Number of flattened objects by class.
    classes: IdMap<ObjectId, u64>,
    /// ID of an object in the field, by class number and number of the field among the reference fields.
    fields: BTreeMap<(u32, u32), u64>,
    /// By class number.
    arrays: BTreeMap<u32, FlatArrays>,
}

impl<'s> Holders<'s> {
    fn new(summary: &'s Summary, ids: &'s ClassIds, references: &'s DeclaredReferences, last: u64) -> Self {
        Self {
            summary,
            ids,
            references,
            last,
            id_size: summary.id_size(),
            classes: IdMap::default(),
            fields: BTreeMap::new(),
            arrays: BTreeMap::new(),
        }
    }

    fn is_flat(&self, id: u64) -> bool {
        id != 0 && id <= self.last
    }

    fn merge(mut self, other: Self) -> Self {
        for (class, objects) in other.classes {
            *self.classes.entry(class).or_default() += objects;
        }
        // The lowest sample, so that the order of the threads does not matter.
        for (field, sample) in other.fields {
            self.fields.entry(field).and_modify(|known| *known = sample.min(*known)).or_insert(sample);
        }
        for (class, array) in other.arrays {
            match self.arrays.get_mut(&class) {
                Some(known) => {
                    known.sample = known.sample.min(array.sample);
                    known.has_null |= array.has_null;
                    known.lengths.merge(&array.lengths);
                }
                None => _ = self.arrays.insert(class, array),
            }
        }
        self
    }
}

impl<'a> HeapVisitor<'a> for Holders<'_> {
    fn instance(&mut self, record: Instance<'a>) {
        if self.is_flat(record.id.0) {
            *self.classes.entry(record.class).or_default() += 1;
        }
        let Some(class) = self.ids.get(&record.class) else { return };
        let table = self.summary.class_table();
        // Each level consumes bytes, so a long chain of superclasses ends with them.
        let mut level = Some(*class);
        let mut start = 0usize;
        while let Some(class) = level.filter(|_| start < record.fields.len()) {
            let declared = self.references.0.get(class.0 as usize).map_or(&[][..], |all| all);
            for (field, at) in (0u32..).zip(declared) {
                let Some(id) = be_id(record.fields, start + *at as usize, self.id_size) else { return };
                if id != 0 && id <= self.last {
                    let sample = self.fields.entry((class.0, field)).or_insert(id);
                    *sample = id.min(*sample);
                }
            }
            start = start.saturating_add(usize::try_from(table.own_field_bytes(class)).unwrap_or(usize::MAX));
            level = table.superclass_with_fields(class);
        }
    }

    fn object_array(&mut self, record: ObjectArray<'a>) {
        let mut ids = be_ids(record.elements, self.id_size);
        let Some(first) = ids.find(|id| !id.is_null()).filter(|id| self.is_flat(id.0)) else { return };
        let Some(class) = self.ids.get(&record.class) else { return };
        let array = self.arrays.entry(class.0).or_insert_with(|| FlatArrays {
            sample: first.0,
            has_null: false,
            lengths: Lengths::default(),
        });
        array.sample = array.sample.min(first.0);
        array.has_null |= be_ids(record.elements, self.id_size).any(ObjectId::is_null);
        array.lengths.see(record.length);
    }
}

/// Visitor that finds the classes of some instances.
struct SampleClasses<'s> {
    /// IDs, ascending.
    samples: &'s [u64],
    found: BTreeMap<u64, ObjectId>,
}

impl<'a> HeapVisitor<'a> for SampleClasses<'_> {
    fn instance(&mut self, record: Instance<'a>) {
        if self.samples.binary_search(&record.id.0).is_ok() {
            self.found.insert(record.id.0, record.class);
        }
    }
}
