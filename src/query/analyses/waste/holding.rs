//! Attribution of objects to the fields that hold them, one field for each object.
//!
//! This is a field of one of the program's classes, or a static field, that refers to the object. If there is none, it is such
//! a field further up the dominator tree, starting at the first object that refers to the object, and skipping arrays and
//! collections of the JDK.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::WasteSearch;
use super::fields::{self, FieldGroupBy, FieldLabel, FieldSum, NOTHING, ReferredBy, Sums};
use super::findings::{Findings, Reachable, Saving};
use super::kind::WasteEffect;
use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::ClassKind;
use hprof_index::objects::object_table::BLOCK;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::reader::{FieldPlace, ObjectRecord};
use hprof_model::strings::holders;
use hprof_values::{BasicType, ObjectId, names};

/// Number of objects per chunk.
const CHUNK: usize = 1 << 15;
/// Number of first steps up the tree whose results are cached, in addition to every `REMEMBERED`th.
const FIRST_STEPS: usize = 4;
/// Interval of further steps up the tree whose results are cached.
const REMEMBERED: usize = 16;
/// Minimum number of referrers of an object whose result is cached.
const MANY_REFERRERS: usize = 16;
/// Maximum number of objects in a thread's cache.
const MAX_KNOWN: usize = 1 << 20;
/// Number of objects that a thread's cache can always contain.
const MIN_KNOWN: usize = 1 << 16;
/// Size of a cached object in bytes, in a half-full table and including the old table while it grows.
const KNOWN_BYTES: u64 = 96;
/// Maximum number of fields of a class that are searched, including inherited ones.
const MAX_FIELDS: usize = 1 << 12;
/// Maximum number of objects among which the nearest field is searched.
const MAX_NEAREST: usize = 1 << 10;
/// Maximum number of referrers of each of these objects that are examined.
const MAX_REFERRERS: usize = 64;

/// Returns the fields that hold the findings, or groups of these fields.
pub(super) fn fields(
    search: &WasteSearch<'_>,
    frees: WasteEffect,
    findings: &Findings,
    group_by: FieldGroupBy,
) -> Vec<FieldSum> {
    let mut sums = Sums::default();
    match frees {
        WasteEffect::Unreachable => {}
        WasteEffect::OfClass => {
            for ((class, number), sum) in &findings.fields {
                add(&mut sums, FieldLabel { class: *class, by: ReferredBy::Field(*number) }, *sum);
            }
        }
        _ => sums = attribute(search, findings),
    }
    fields::field_sums(search, sums, group_by)
}

fn add(sums: &mut Sums, label: FieldLabel, (count, bytes): (u64, u64)) {
    let sum = sums.entry(label).or_default();
    *sum = (sum.0 + count, sum.1.saturating_add(bytes));
}

fn attribute(search: &WasteSearch<'_>, findings: &Findings) -> Sums {
    let climber = Climber::new(search);
    let pool: Mutex<Vec<HoldingCache>> = Mutex::default();
    let chunks: Vec<&[Saving]> = findings.savings.iter().flat_map(|savings| savings.chunks(CHUNK)).collect();
    let sums = |savings: &&[Saving]| {
        let known = pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut known = known.unwrap_or_default();
        let mut sums = Sums::default();
        let mut held: Vec<HeldWaste> = Vec::with_capacity(savings.len());
        for saving in savings.iter() {
            match climber.holder(ObjectIndex(saving.object), &mut known) {
                Some((holder, target)) => {
                    held.push(HeldWaste { holder: holder.0, target: target.0, bytes: saving.bytes })
                }
                None => add(&mut sums, NOTHING, (1, saving.bytes)),
            }
        }
        held.sort_unstable_by_key(|held| (held.holder, held.target));
        climber.read(&held, &mut known, &mut sums);
        pool.lock().unwrap_or_else(PoisonError::into_inner).push(known);
        sums
    };
    chunks.par_iter().map(sums).reduce(Sums::default, |mut all, some| {
        some.into_iter().for_each(|(label, sum)| add(&mut all, label, sum));
        all
    })
}

/// Returns, for each object, class and field that hold it: the nearest field of the program, as in [`fields()`]. For an
/// unreachable object, the first field that refers to it. `None` if only a thread's stack or another GC root holds the object,
/// or if nothing does.
pub(crate) fn held_by(dump: &Dump<'_>, objects: &[ObjectIndex]) -> Vec<Option<String>> {
    let search = WasteSearch::new(dump, Reachable::new(dump.graph));
    let climber = Climber::new(&search);
    let holder = |known: &mut HoldingCache, object: &ObjectIndex| {
        if !search.reachable.contains(*object) {
            let first = holders::holders(&search.dump.objects, &[*object]).into_iter().next()?;
            return Some(match first.field {
                Some(field) if field != "[]" => format!("{}.{field}", first.class),
                _ => first.class,
            });
        }
        let (holder, target) = climber.field_above(*object, known)?;
        let mut sums = Sums::default();
        climber.read(&[HeldWaste { holder: holder.0, target: target.0, bytes: 0 }], known, &mut sums);
        fields::field_sums(&search, sums, FieldGroupBy::Field).pop()?.name()
    };
    let of_chunk = |objects: &[ObjectIndex]| -> Vec<Option<String>> {
        let mut known = HoldingCache::default();
        objects.iter().map(|object| holder(&mut known, object)).collect()
    };
    objects.par_chunks(CHUNK).flat_map_iter(of_chunk).collect()
}

/// An object that holds another, and the bytes attributed to it.
struct HeldWaste {
    holder: u32,
    target: u32,
    bytes: u64,
}

/// Cache of a thread while it searches holders.
#[derive(Debug, Default)]
struct HoldingCache {
    /// Holders by object: of the object itself, or of the object that it is a part of.
    up: FxHashMap<u32, Up>,
    /// Locations of references in instances, and the fields, by class.
    places: FxHashMap<ClassNumber, Vec<(FieldPlace, FieldLabel)>>,
    /// Reused buffer: objects on the path, the referrer of each, and the number of examined referrers.
    steps: Vec<(ObjectIndex, Option<ObjectIndex>, usize)>,
}

/// First referrer of each kind of an object.
#[derive(Debug, Clone, Copy, Default)]
struct Referrers {
    /// A referrer with a field to which waste is attributed.
    end: Option<ObjectIndex>,
    /// Another instance.
    instance: Option<ObjectIndex>,
    array: Option<ObjectIndex>,
    /// A thread: objects on its stack are not in a field.
    thread: Option<ObjectIndex>,
    /// Number of examined referrers.
    looked: usize,
}

impl Referrers {
    fn first(&self) -> Option<ObjectIndex> {
        let both = self.instance.into_iter().chain(self.array);
        both.min().or(self.thread)
    }
}

/// Holders further up: the field to which waste is attributed, and the first field of the JDK on the path, each with the object
/// that it holds.
#[derive(Debug, Clone, Copy, Default)]
struct Up {
    end: Option<(ObjectIndex, ObjectIndex)>,
    instance: Option<(ObjectIndex, ObjectIndex)>,
}

/// Search for the fields that hold objects, up the dominator tree.
struct Climber<'s, 'a> {
    search: &'s WasteSearch<'a>,
    /// By class number: `true` if instances belong to the program.
    of_program: Vec<bool>,
    is_array: Vec<bool>,
    threads: ClassSet,
    loaders: ClassSet,
    /// Maximum number of objects in a thread's cache.
    max_known: usize,
    /// By class number: `true` if the class belongs to the program and inherits references from a class of the JDK.
    extends_jdk: Vec<bool>,
    java_lang_class: Option<ClassNumber>,
}

impl<'s, 'a> Climber<'s, 'a> {
    fn new(search: &'s WasteSearch<'a>) -> Self {
        let summary = search.dump.summary;
        let is_array = summary.classes().iter().map(|row| row.kind() != ClassKind::Instance);
        let is_program = |row| !names::is_of_jdk(summary.class_name(row));
        let of_program =
            summary.classes().iter().map(|row| row.kind() == ClassKind::Instance && is_program(row));
        let jdk_references = summary.class_table().derive(|class, above: Option<&bool>| {
            let row = summary.class(class).filter(|row| !is_program(row));
            let mut fields = row.into_iter().flat_map(|row| summary.raw_fields(row));
            above.copied().unwrap_or(false) || fields.any(|(_, kind)| kind == BasicType::Object)
        });
        let extends_jdk = summary.classes().iter().zip(jdk_references);
        let extends_jdk = extends_jdk.map(|(row, references)| references && is_program(row));
        // All caches together are a small part of the memory: most goes to arrays in the arena.
        let share = search.room.remaining_bytes() / 16 / rayon::current_num_threads().max(1) as u64;
        let max_known = usize::try_from(share / KNOWN_BYTES).unwrap_or(MAX_KNOWN);
        Self {
            search,
            max_known: max_known.clamp(MIN_KNOWN, MAX_KNOWN),
            threads: ClassSet::of_name_and_below(summary, "java.lang.Thread"),
            loaders: ClassSet::of_name_and_below(summary, "java.lang.ClassLoader"),
            extends_jdk: extends_jdk.collect(),
            of_program: of_program.collect(),
            is_array: is_array.collect(),
            java_lang_class: summary.java_lang_class(),
        }
    }

    /// Returns the referrers of an object. A static field takes precedence.
    fn referrers(&self, object: ObjectIndex) -> Referrers {
        let mut found = Referrers::default();
        for from in self.search.dump.graph.referrers(object) {
            if from == object || !self.search.reachable.contains(from) {
                continue;
            }
            let class = self.search.class(from);
            let is = |known: &[bool]| class.is_some_and(|class| known.get(class.0 as usize) == Some(&true));
            found.looked += 1;
            if is(&self.of_program) && found.end.is_none() && self.is_by_own_field(from, object) {
                found.end = Some(from);
            } else if class.is_some_and(|class| self.threads.contains(class)) {
                found.thread.get_or_insert(from);
            } else if class == self.java_lang_class
                && self.search.dump.graph.class_of_class_object(from).is_some()
            {
                if !self.is_by_class_only(from, object) {
                    found.end = Some(from);
                    return found;
                }
            } else if is(&self.is_array) {
                found.array.get_or_insert(from);
            } else {
                found.instance.get_or_insert(from);
            }
        }
        found
    }

    /// Returns whether a class object refers to its class loader, or to another class object, and by no static field.
    fn is_by_class_only(&self, from: ObjectIndex, object: ObjectIndex) -> bool {
        let graph = self.search.dump.graph;
        let Some(class) = graph.class_of_class_object(from) else { return false };
        let is_loader = self.search.class(object).is_some_and(|class| self.loaders.contains(class));
        if !is_loader && graph.class_of_class_object(object).is_none() {
            return false;
        }
        let id = self.search.id(object);
        let row = self.search.dump.summary.class(class);
        let mut statics =
            row.into_iter().flat_map(|row| self.search.dump.summary.statics(row)).take(MAX_FIELDS);
        !statics.any(|(_, kind, value)| kind == BasicType::Object && ObjectId(value) == id)
    }

    /// Returns whether an instance of a program's class refers to an object by a field that a class of the program declares,
    /// rather than by a field of the JDK class that it extends.
    fn is_by_own_field(&self, from: ObjectIndex, object: ObjectIndex) -> bool {
        let class = self.search.class(from);
        let Some(class) = class.filter(|class| self.extends_jdk.get(class.0 as usize) == Some(&true)) else {
            return true;
        };
        let (summary, id) = (self.search.dump.summary, self.search.id(object));
        let Some(fields) = self.search.dump.objects.instance(from) else { return true };
        let mut slots = self
            .search
            .dump
            .objects
            .slots(class)
            .take(MAX_FIELDS)
            .filter(|slot| slot.kind == BasicType::Object);
        slots.any(|slot| {
            self.search.dump.objects.value(fields, &slot).is_some_and(|value| value.bits == id.0)
                && summary.class(slot.class).is_some_and(|row| !names::is_of_jdk(summary.class_name(row)))
        })
    }

    /// Returns the object whose field holds the given object or an object that contains it as a part; and the object in the
    /// field.
    fn holder(&self, object: ObjectIndex, known: &mut HoldingCache) -> Option<(ObjectIndex, ObjectIndex)> {
        let referrers = self.referrers(object);
        if let Some(end) = referrers.end {
            return Some((end, object));
        }
        let first = referrers.first()?;
        let up = self.climb(first, known);
        let instance = referrers.instance.map(|instance| (instance, object));
        up.end.or(instance).or(up.instance).or(Some((first, object)))
    }

    /// Returns the same as [`Self::holder`] if a field of the program is above the object in the dominator tree. If there is
    /// none, because a thread's stack refers to its collection as well, returns the nearest one by referrers.
    fn field_above(
        &self,
        object: ObjectIndex,
        known: &mut HoldingCache,
    ) -> Option<(ObjectIndex, ObjectIndex)> {
        let held = self.holder(object, known);
        let is_end = |holder: ObjectIndex| {
            let class = self.search.class(holder);
            self.search.dump.graph.class_of_class_object(holder).is_some()
                || class.is_some_and(|class| self.of_program.get(class.0 as usize) == Some(&true))
        };
        if held.is_some_and(|(holder, _)| is_end(holder)) {
            return held;
        }
        self.nearest(object).or(held)
    }

    /// Returns the nearest field of the program, searching referrers breadth first.
    fn nearest(&self, object: ObjectIndex) -> Option<(ObjectIndex, ObjectIndex)> {
        let mut seen: Vec<ObjectIndex> = vec![object];
        let mut known: FxHashSet<ObjectIndex> = seen.iter().copied().collect();
        let mut at = 0;
        while let Some(here) = seen.get(at).copied() {
            at += 1;
            if let Some(end) = self.referrers(here).end {
                return Some((end, here));
            }
            for from in self.search.dump.graph.referrers(here).take(MAX_REFERRERS) {
                let is_thread = self.search.class(from).is_some_and(|class| self.threads.contains(class));
                if seen.len() < MAX_NEAREST
                    && !is_thread
                    && self.search.reachable.contains(from)
                    && known.insert(from)
                {
                    seen.push(from);
                }
            }
        }
        None
    }

    fn climb(&self, from: ObjectIndex, known: &mut HoldingCache) -> Up {
        let mut steps = std::mem::take(&mut known.steps);
        let mut here = from;
        let mut found = loop {
            if let Some(found) = known.up.get(&here.0) {
                break *found;
            }
            let referrers = self.referrers(here);
            steps.push((here, referrers.instance, referrers.looked));
            if let Some(end) = referrers.end {
                break Up { end: Some((end, here)), instance: None };
            }
            match self.search.dominator(here) {
                // Each must be above the previous one: a damaged tree must not cause an endless loop.
                Some(dominator) if self.is_above(dominator, here) => here = dominator,
                _ => break Up::default(),
            }
        };
        if known.up.len() >= self.max_known {
            known.up.clear();
        }
        let class = self.search.class(from);
        let is_array = class.is_some_and(|class| self.is_array.get(class.0 as usize) == Some(&true));
        for (step, (object, instance, looked)) in steps.drain(..).enumerate().rev() {
            // Includes the first field on the path from it.
            found.instance = instance.map(|instance| (instance, object)).or(found.instance);
            // The result for a map's node is used once, that for its table once per node.
            let is_known = step == 0 && is_array
                || (1..=FIRST_STEPS).contains(&step)
                || step > 0 && step % REMEMBERED == 0
                || looked > MANY_REFERRERS;
            if is_known {
                known.up.insert(object.0, found);
            }
        }
        known.steps = steps;
        found
    }

    fn is_above(&self, dominator: ObjectIndex, object: ObjectIndex) -> bool {
        let tree = &self.search.dump.graph.tree;
        tree.reachable_position(dominator) < tree.reachable_position(object)
    }

    /// Adds to `sums` the fields that hold objects. `held` must be in ascending order of the holders.
    fn read(&self, held: &[HeldWaste], known: &mut HoldingCache, sums: &mut Sums) {
        let objects = &self.search.dump.objects;
        for of_block in held.chunk_by(|a, b| a.holder / BLOCK == b.holder / BLOCK) {
            let Some(first) = of_block.first() else { continue };
            let first = first.holder / BLOCK * BLOCK;
            let wanted = of_block.iter().fold(0u64, |wanted, held| wanted | 1 << (held.holder - first));
            let mut rest = of_block;
            objects.records_of_block(ObjectIndex(first), wanted, |holder, record| {
                let count = rest.iter().take_while(|held| held.holder == holder.0).count();
                let (here, after) = rest.split_at_checked(count).unwrap_or_default();
                rest = after;
                self.of_holder(holder, record, here, known, sums);
            });
        }
    }

    /// Finds the fields by which an object holds others. The others must be ascending.
    fn of_holder(
        &self,
        holder: ObjectIndex,
        record: Option<ObjectRecord<'a>>,
        held: &[HeldWaste],
        known: &mut HoldingCache,
        sums: &mut Sums,
    ) {
        let (search, addresses) = (self.search, &self.search.dump.graph.objects.addresses);
        let class = search.class(holder).unwrap_or(NOTHING.class);
        let of_class = search.dump.graph.class_of_class_object(holder);
        let object = FieldLabel { class: of_class.unwrap_or(class), by: ReferredBy::Object };
        // Objects on its stack are in no field.
        let object = if self.threads.contains(class) { NOTHING } else { object };
        // By target, in the order of `held`: the first field that refers to it.
        let mut labels: Vec<(u32, FieldLabel)> = held
            .chunk_by(|a, b| a.target == b.target)
            .filter_map(<[HeldWaste]>::first)
            .map(|held| (held.target, object))
            .collect();
        let mut missing = labels.len();
        let mut name = |id: ObjectId, label: FieldLabel| {
            let target = id.non_null().and_then(|id| addresses.index_of(id));
            let Some(target) = target else { return false };
            if let Ok(at) = labels.binary_search_by_key(&target.0, |(target, _)| *target)
                && let Some((_, place)) =
                    labels.get_mut(at).filter(|(_, place)| place.by == ReferredBy::Object)
            {
                *place = label;
                missing -= 1;
            }
            missing == 0
        };
        if let Some(of_class) = of_class {
            let row = search.dump.summary.class(of_class);
            let statics = row.into_iter().flat_map(|row| search.dump.summary.statics(row));
            for (number, (_, kind, value)) in (0u32..).zip(statics) {
                let label = FieldLabel { class: of_class, by: ReferredBy::Static(number) };
                if kind == BasicType::Object && name(ObjectId(value), label) {
                    break;
                }
            }
        } else if let Some(ObjectRecord::Instance(record)) = record {
            let places = known.places.entry(class).or_insert_with(|| self.places(class));
            for (place, label) in places.iter() {
                let value = place.value(record.fields, search.dump.summary.id_size());
                if value.and_then(|value| value.reference()).is_some_and(|id| name(id, *label)) {
                    break;
                }
            }
        }
        let mut of_target = labels.iter();
        for same_target in held.chunk_by(|a, b| a.target == b.target) {
            let (_, label) = of_target.next().copied().unwrap_or((0, object));
            let bytes = same_target.iter().fold(0, |sum: u64, held| sum.saturating_add(held.bytes));
            add(sums, label, (same_target.len() as u64, bytes));
        }
    }

    /// Returns the locations of references in the instances of a class.
    fn places(&self, class: ClassNumber) -> Vec<(FieldPlace, FieldLabel)> {
        let mut last = (ClassNumber(u32::MAX), 0u32);
        let slots = self.search.dump.objects.slots(class).take(MAX_FIELDS);
        let numbered = slots.map(|slot| {
            last = if last.0 == slot.class { (last.0, last.1 + 1) } else { (slot.class, 0) };
            (slot, FieldLabel { class: slot.class, by: ReferredBy::Field(last.1) })
        });
        let references = numbered.filter(|(slot, _)| slot.kind == BasicType::Object);
        // Fields of the program's classes first.
        let summary = self.search.dump.summary;
        let is_of_jdk =
            |class| summary.class(class).is_some_and(|row| names::is_of_jdk(summary.class_name(row)));
        let (of_jdk, mut all): (Vec<_>, Vec<_>) = references.partition(|(slot, _)| is_of_jdk(slot.class));
        all.extend(of_jdk);
        all.into_iter().map(|(slot, label)| (slot.place, label)).collect()
    }
}
