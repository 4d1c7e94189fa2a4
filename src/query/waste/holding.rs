//! Attributing objects to the fields that hold them: each object to one field.
//!
//! A field of one of the program's classes, or a static field, that refers to the object; else, the way up the dominator tree
//! from the first object that refers to it, past arrays and the JDK's collections, to such a field.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::Search;
use super::fields::{self, By, FieldSum, GroupBy, Label, NOTHING, Sums};
use super::findings::{Findings, Saving};
use super::kind::Frees;
use crate::objects::class_set::ClassSet;
use crate::objects::reader::{Place, Record};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::ClassKind;
use hprof_index::objects::object_table::BLOCK;
use hprof_parser::{BasicType, ObjectId, names};

/// Objects that one thread takes at a time.
const CHUNK: usize = 1 << 15;
/// Steps up the tree that are remembered: the first ones, and each of so many.
const FIRST_STEPS: usize = 4;
const REMEMBERED: usize = 16;
/// Referrers of an object that make it worth remembering.
const MANY_REFERRERS: usize = 16;
/// Objects that a thread remembers.
const MAX_KNOWN: usize = 1 << 20;
/// Fields of a class, with those of its superclasses, that are searched.
const MAX_FIELDS: usize = 1 << 12;

/// The fields that hold what was found, or groups of them.
pub(super) fn fields(search: &Search<'_>, findings: &Findings, group_by: GroupBy) -> Vec<FieldSum> {
    let mut sums = Sums::default();
    match findings.kind.frees {
        Frees::Unreachable => {}
        Frees::OfClass => {
            for ((class, number), sum) in &findings.fields {
                add(&mut sums, Label { class: *class, by: By::Field(*number) }, *sum);
            }
        }
        _ => sums = attribute(search, findings),
    }
    fields::named(search, sums, group_by)
}

fn add(sums: &mut Sums, label: Label, (count, bytes): (u64, u64)) {
    let sum = sums.entry(label).or_default();
    *sum = (sum.0 + count, sum.1.saturating_add(bytes));
}

fn attribute(search: &Search<'_>, findings: &Findings) -> Sums {
    let climber = Climber::new(search);
    let pool: Mutex<Vec<Known>> = Mutex::default();
    let chunks: Vec<&[Saving]> = findings.savings.iter().flat_map(|savings| savings.chunks(CHUNK)).collect();
    let sums = |savings: &&[Saving]| {
        let known = pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut known = known.unwrap_or_default();
        let mut sums = Sums::default();
        let mut held: Vec<Held> = Vec::with_capacity(savings.len());
        for saving in savings.iter() {
            match climber.holder(ObjectIndex(saving.object), &mut known) {
                Some((holder, target)) => {
                    held.push(Held { holder: holder.0, target: target.0, bytes: saving.bytes })
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

/// An object that holds another, for which so many bytes count.
struct Held {
    holder: u32,
    target: u32,
    bytes: u64,
}

/// What a thread remembers.
#[derive(Debug, Default)]
struct Known {
    /// By object: what holds it, or what it is a part of, and that.
    up: FxHashMap<u32, Up>,
    /// By class: where instances have references, and the fields.
    places: FxHashMap<ClassNumber, Vec<(Place, Label)>>,
    /// Empty but for its memory: objects on the way, what refers to each, how many were looked at.
    steps: Vec<(ObjectIndex, Option<ObjectIndex>, usize)>,
}

/// Those that refer to an object, the first of each kind.
#[derive(Debug, Clone, Copy, Default)]
struct Referrers {
    /// One whose fields are what waste is attributed to.
    end: Option<ObjectIndex>,
    /// Another instance.
    instance: Option<ObjectIndex>,
    array: Option<ObjectIndex>,
    /// A thread: what its stack holds is in no field.
    thread: Option<ObjectIndex>,
    /// How many were looked at.
    looked: usize,
}

impl Referrers {
    fn first(&self) -> Option<ObjectIndex> {
        let both = self.instance.into_iter().chain(self.array);
        both.min().or(self.thread)
    }
}

/// What holds something further up: a field that waste is attributed to, and the first field of the JDK on the way. Each is
/// the holder, and what it holds.
#[derive(Debug, Clone, Copy, Default)]
struct Up {
    end: Option<(ObjectIndex, ObjectIndex)>,
    instance: Option<(ObjectIndex, ObjectIndex)>,
}

struct Climber<'s, 'a> {
    search: &'s Search<'a>,
    /// By class number: whether its instances are the program's own.
    of_program: Vec<bool>,
    is_array: Vec<bool>,
    threads: ClassSet,
    loaders: ClassSet,
    /// By class number: whether it is the program's own, and inherits references from a class of the JDK.
    extends_jdk: Vec<bool>,
    java_lang_class: Option<ClassNumber>,
}

impl<'s, 'a> Climber<'s, 'a> {
    fn new(search: &'s Search<'a>) -> Self {
        let summary = search.summary;
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
        Self {
            search,
            threads: ClassSet::of_name_and_below(summary, "java.lang.Thread"),
            loaders: ClassSet::of_name_and_below(summary, "java.lang.ClassLoader"),
            extends_jdk: extends_jdk.collect(),
            of_program: of_program.collect(),
            is_array: is_array.collect(),
            java_lang_class: summary.java_lang_class(),
        }
    }

    /// Who refers to an object. A static field counts before others.
    fn referrers(&self, object: ObjectIndex) -> Referrers {
        let mut found = Referrers::default();
        for from in self.search.graph.referrers(object) {
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
            } else if class == self.java_lang_class && self.search.graph.class_of_class_object(from).is_some()
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

    /// Whether a class object refers to its class loader, or to another class object, and by no static field.
    fn is_by_class_only(&self, from: ObjectIndex, object: ObjectIndex) -> bool {
        let graph = self.search.graph;
        let Some(class) = graph.class_of_class_object(from) else { return false };
        let is_loader = self.search.class(object).is_some_and(|class| self.loaders.contains(class));
        if !is_loader && graph.class_of_class_object(object).is_none() {
            return false;
        }
        let id = self.search.id(object);
        let row = self.search.summary.class(class);
        let mut statics = row.into_iter().flat_map(|row| self.search.summary.statics(row)).take(MAX_FIELDS);
        !statics.any(|(_, kind, value)| kind == BasicType::Object && ObjectId(value) == id)
    }

    /// Whether an instance of a program's class refers to an object by a field that such a class declares, and not the JDK's class
    /// that it extends.
    fn is_by_own_field(&self, from: ObjectIndex, object: ObjectIndex) -> bool {
        let class = self.search.class(from);
        let Some(class) = class.filter(|class| self.extends_jdk.get(class.0 as usize) == Some(&true)) else {
            return true;
        };
        let (summary, id) = (self.search.summary, self.search.id(object));
        let Some(fields) = self.search.objects.instance(from) else { return true };
        let mut slots =
            self.search.objects.slots(class).take(MAX_FIELDS).filter(|slot| slot.kind == BasicType::Object);
        slots.any(|slot| {
            self.search.objects.value(fields, &slot).is_some_and(|value| value.bits == id.0)
                && summary.class(slot.class).is_some_and(|row| !names::is_of_jdk(summary.class_name(row)))
        })
    }

    /// The object whose field holds another, or holds what that is a part of; and which of the two.
    fn holder(&self, object: ObjectIndex, known: &mut Known) -> Option<(ObjectIndex, ObjectIndex)> {
        let referrers = self.referrers(object);
        if let Some(end) = referrers.end {
            return Some((end, object));
        }
        let first = referrers.first()?;
        let up = self.climb(first, known);
        let instance = referrers.instance.map(|instance| (instance, object));
        up.end.or(instance).or(up.instance).or(Some((first, object)))
    }

    fn climb(&self, from: ObjectIndex, known: &mut Known) -> Up {
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
                // Each is above the one before: a damaged tree must not lead in a circle.
                Some(dominator) if self.is_above(dominator, here) => here = dominator,
                _ => break Up::default(),
            }
        };
        if known.up.len() > MAX_KNOWN {
            known.up.clear();
        }
        let class = self.search.class(from);
        let is_array = class.is_some_and(|class| self.is_array.get(class.0 as usize) == Some(&true));
        for (step, (object, instance, looked)) in steps.drain(..).enumerate().rev() {
            // With the first field on the way from there.
            found.instance = instance.map(|instance| (instance, object)).or(found.instance);
            // What a node of a map leads to is asked once, what its table leads to for each node.
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
        let tree = &self.search.graph.tree;
        tree.reachable_position(dominator) < tree.reachable_position(object)
    }

    /// Reads by which fields objects are held, which ascend by their holders.
    fn read(&self, held: &[Held], known: &mut Known, sums: &mut Sums) {
        let objects = &self.search.objects;
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

    /// By which fields an object holds others, which ascend.
    fn of_holder(
        &self,
        holder: ObjectIndex,
        record: Option<Record<'a>>,
        held: &[Held],
        known: &mut Known,
        sums: &mut Sums,
    ) {
        let (search, addresses) = (self.search, &self.search.graph.objects.addresses);
        let class = search.class(holder).unwrap_or(NOTHING.class);
        let of_class = search.graph.class_of_class_object(holder);
        let object = Label { class: of_class.unwrap_or(class), by: By::Object };
        // What its stack holds is in no field.
        let object = if self.threads.contains(class) { NOTHING } else { object };
        // By target, in the order of `held`: the first field that refers to it.
        let mut labels: Vec<(u32, Label)> = held
            .chunk_by(|a, b| a.target == b.target)
            .filter_map(<[Held]>::first)
            .map(|held| (held.target, object))
            .collect();
        let mut missing = labels.len();
        let mut name = |id: ObjectId, label: Label| {
            let target = id.non_null().and_then(|id| addresses.index_of(id));
            let Some(target) = target else { return false };
            if let Ok(at) = labels.binary_search_by_key(&target.0, |(target, _)| *target)
                && let Some((_, place)) = labels.get_mut(at).filter(|(_, place)| place.by == By::Object)
            {
                *place = label;
                missing -= 1;
            }
            missing == 0
        };
        if let Some(of_class) = of_class {
            let row = search.summary.class(of_class);
            let statics = row.into_iter().flat_map(|row| search.summary.statics(row));
            for (number, (_, kind, value)) in (0u32..).zip(statics) {
                let label = Label { class: of_class, by: By::Static(number) };
                if kind == BasicType::Object && name(ObjectId(value), label) {
                    break;
                }
            }
        } else if let Some(Record::Instance(record)) = record {
            let places = known.places.entry(class).or_insert_with(|| self.places(class));
            for (place, label) in places.iter() {
                let value = place.value(record.fields, search.summary.id_size());
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

    /// Where the instances of a class have references.
    fn places(&self, class: ClassNumber) -> Vec<(Place, Label)> {
        let mut last = (ClassNumber(u32::MAX), 0u32);
        let slots = self.search.objects.slots(class).take(MAX_FIELDS);
        let numbered = slots.map(|slot| {
            last = if last.0 == slot.class { (last.0, last.1 + 1) } else { (slot.class, 0) };
            (slot, Label { class: slot.class, by: By::Field(last.1) })
        });
        let references = numbered.filter(|(slot, _)| slot.kind == BasicType::Object);
        // Fields of the program's classes first.
        let summary = self.search.summary;
        let is_of_jdk =
            |class| summary.class(class).is_some_and(|row| names::is_of_jdk(summary.class_name(row)));
        let (of_jdk, mut all): (Vec<_>, Vec<_>) = references.partition(|(slot, _)| is_of_jdk(slot.class));
        all.extend(of_jdk);
        all.into_iter().map(|(slot, label)| (slot.place, label)).collect()
    }
}
