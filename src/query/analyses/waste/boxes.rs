//! Boxes of primitive values: their sizes, the boxes in the JVM's caches, and boxes that the caches could replace.

use super::WasteSearch;
use super::findings::{FindingSink, PartKey, PartSum, Saving};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_index::storage::id_map::IdSet;
use hprof_model::objects::reader::{Bits, FieldPlace};
use hprof_values::{BasicType, ObjectId, RootKind};

/// Box classes with the type of their value.
const BOXES: [(&str, BasicType); 8] = [
    ("java.lang.Boolean", BasicType::Boolean),
    ("java.lang.Byte", BasicType::Byte),
    ("java.lang.Short", BasicType::Short),
    ("java.lang.Character", BasicType::Char),
    ("java.lang.Integer", BasicType::Int),
    ("java.lang.Long", BasicType::Long),
    ("java.lang.Float", BasicType::Float),
    ("java.lang.Double", BasicType::Double),
];

/// Classes whose static fields hold the caches, or arrays of cached objects.
const CACHES: [&str; 6] = [
    "java.lang.Boolean",
    "java.lang.Byte$ByteCache",
    "java.lang.Short$ShortCache",
    "java.lang.Character$CharacterCache",
    "java.lang.Integer$IntegerCache",
    "java.lang.Long$LongCache",
];

/// A box class, with the sizes that determine its saving.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoxClass {
    pub(super) value: FieldPlace,
    /// Size of a box in bytes.
    pub(super) bytes: u64,
    /// Size of a value minus the size of a reference, in bytes.
    pub(super) growth: u64,
}

impl BoxClass {
    pub(super) fn for_class(search: &WasteSearch<'_>, class: ClassNumber) -> Option<Self> {
        let summary = search.dump.summary;
        let name = summary.class_name(summary.class(class)?);
        let (_, element) = BOXES.iter().find(|(known, _)| *known == name)?;
        let mut slots = search.dump.objects.slots(class);
        let value = slots.find(|slot| slot.name == "value" && slot.kind == *element)?.place;
        let layout = search.sizes.layout();
        let growth = layout.value_bytes(*element).saturating_sub(layout.value_bytes(BasicType::Object));
        Some(Self { value, bytes: search.sizes.instance(class).0, growth })
    }

    /// Examines a box, and adds its saving to the findings.
    pub(super) fn look(
        &self,
        search: &WasteSearch<'_>,
        (object, class): (ObjectIndex, ClassNumber),
        value: Bits,
        sink: &mut FindingSink,
    ) {
        let bytes = self.saving(search, object);
        if bytes == 0 {
            return;
        }
        sink.push(Saving::new(object, bytes), Some(PartKey::Class(class)), (0, 0));
        if is_in_range(value) {
            sink.parts.entry(PartKey::Cached).or_default().add(PartSum { count: 1, bytes, filled: (0, 0) });
        }
    }

    /// Returns the saving of a box, if the value replaces the reference in each object that refers to the box.
    fn saving(&self, search: &WasteSearch<'_>, object: ObjectIndex) -> u64 {
        if self.growth == 0 {
            return self.bytes;
        }
        let graph = search.dump.graph;
        let referrers = graph.referrers(object).filter(|from| search.reachable.contains(*from));
        // With more referrers, nothing would be saved.
        let enough = usize::try_from(self.bytes / self.growth).unwrap_or(usize::MAX);
        let referrers = referrers.take(enough).count() as u64;
        self.bytes.saturating_sub(self.growth.saturating_mul(referrers))
    }
}

/// Returns whether `valueOf` returns the same box for a value each time.
fn is_in_range(value: Bits) -> bool {
    match value.kind {
        BasicType::Boolean => true,
        BasicType::Char => value.bits <= 127,
        _ => value.integer().is_some_and(|value| (-128..=127).contains(&value)),
    }
}

/// Returns the boxes in the JVM's caches: in static fields, and, with class data sharing, in arrays for classes that
/// are not initialized yet, within an array that a JNI global refers to.
pub(super) fn cached_boxes(search: &WasteSearch<'_>) -> IdSet<u32> {
    let summary = search.dump.summary;
    let mut cached = IdSet::default();
    let elements = |array: ObjectIndex| {
        let ids = search.dump.objects.ids(array).into_iter().flatten();
        ids.filter_map(|id| search.dump.graph.objects.addresses.index_of(id))
    };
    let mut seen = IdSet::default();
    let mut take = |held: ObjectIndex| {
        if seen.insert(held.0) {
            cached.insert(held.0);
            cached.extend(elements(held).map(|object| object.0));
        }
    };
    let is_of_boxes = |object: &ObjectIndex| {
        let class = search.class(*object).and_then(|class| summary.class(class));
        let element = class.and_then(|class| summary.class_name(class).strip_suffix("[]"));
        element.is_some_and(|element| BOXES.iter().any(|(name, _)| *name == element))
            && search.dump.graph.referrers(*object).single_target().is_some()
    };
    let globals = search.dump.graph.roots.rows.iter().filter(|root| root.kind == RootKind::JniGlobal);
    let globals: IdSet<u32> = globals.map(|root| root.object.0).collect();
    globals
        .into_iter()
        .flat_map(|global| elements(ObjectIndex(global)))
        .filter(is_of_boxes)
        .for_each(&mut take);
    for (_, row) in summary.numbered_classes() {
        if row.loader.get() != 0 || !CACHES.contains(&summary.class_name(row)) {
            continue;
        }
        for (_, kind, value) in summary.statics(row) {
            let held = search.dump.graph.objects.addresses.index_of(ObjectId(value));
            if let Some(held) = held.filter(|_| kind == BasicType::Object) {
                take(held);
            }
        }
    }
    cached
}
