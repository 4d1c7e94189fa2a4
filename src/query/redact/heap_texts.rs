//! Kept texts of a file: names of threads, and properties that identify the JVM.

use hprof_index::model::summary::PUBLIC_PROPERTIES;
use hprof_index::storage::id_map::{IdMap, IdSet};
use hprof_parser::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use hprof_values::names::java_class_name;
use hprof_values::{BasicType, ObjectId, be_id, be_ids};

use super::RedactOptions;
use super::kept::{KeptReason, KeptValues};
use super::plan::Plan;

/// Maximum number of objects of one kind that are looked up.
const MAX_OBJECTS: usize = 200_000;
/// Maximum number of linked nodes in a bucket.
const MAX_LINKS: usize = 64;

/// Classes that declare the names of threads and of their groups.
const THREAD_CLASSES: [&str; 2] = ["java.lang.Thread", "java.lang.ThreadGroup"];

/// Adds these texts to the kept values.
pub(super) fn add(kept: &mut KeptValues, plan: &Plan, options: &RedactOptions, bytes: &[u8]) {
    let lookup = Lookup { plan, bytes };
    if !options.thread_names {
        let names = lookup.thread_names();
        for text in lookup.texts(&names).into_values() {
            kept.add(&text, KeptReason::ThreadName);
        }
    }
    for (key, value) in lookup.properties().unwrap_or_default() {
        kept.add(&key, KeptReason::Property);
        kept.add(&value, KeptReason::Property);
    }
}

/// Record of an object found by its ID.
#[derive(Debug, Clone, Copy)]
enum FoundObject<'a> {
    Instance(ObjectId, &'a [u8]),
    Objects(&'a [u8]),
    Primitives(BasicType, &'a [u8]),
}

/// Finder of objects by ID; reads only the parts of the file whose ID range contains a wanted ID.
struct Lookup<'a> {
    plan: &'a Plan,
    bytes: &'a [u8],
}

impl<'a> Lookup<'a> {
    fn find(&self, ids: &IdSet<ObjectId>) -> IdMap<ObjectId, FoundObject<'a>> {
        let mut sorted: Vec<ObjectId> = ids.iter().copied().filter(|id| !id.is_null()).collect();
        sorted.sort_unstable();
        let is_in = |ids: (u64, u64)| {
            let at = sorted.partition_point(|id| id.0 < ids.0);
            sorted.get(at).is_some_and(|id| id.0 <= ids.1)
        };
        let mut finder = Finder { ids: &sorted, found: IdMap::default() };
        for range in self.plan.ranges.iter().filter(|range| is_in(range.ids)) {
            let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
            let (start, end) = (at(range.bytes.start), at(range.bytes.end));
            heap::walk(self.bytes, self.plan.id_size(), start, end, end, &mut finder);
        }
        finder.found
    }

    /// Returns the reference in the field `name` of an instance.
    fn reference(&self, class: ObjectId, fields: &[u8], name: &str) -> Option<ObjectId> {
        self.reference_of(class, fields, name, |_| true)
    }

    /// Returns the reference in a field that a given class declares: subclasses may have a field of the same name.
    fn reference_of(
        &self,
        class: ObjectId,
        fields: &[u8],
        name: &str,
        is_declared_by: impl Fn(ObjectId) -> bool,
    ) -> Option<ObjectId> {
        let (mut class, mut at) = (Some(class), 0);
        while let Some((id, declared)) = class.and_then(|id| Some((id, self.plan.classes.get(&id)?))) {
            let field = declared.references.iter().find(|(_, field)| &**field == name && is_declared_by(id));
            if let Some((start, _)) = field {
                return be_id(fields, at + *start as usize, self.plan.id_size()).map(ObjectId);
            }
            at += declared.bytes as usize;
            if at >= fields.len() {
                return None;
            }
            class = declared.above;
        }
        None
    }

    /// Returns the objects with the names of threads: Strings, or arrays of characters.
    fn thread_names(&self) -> IdSet<ObjectId> {
        let mut threads = Threads { lookup: self, names: IdSet::default() };
        for range in &self.plan.watched_ranges {
            let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
            let (start, end) = (at(range.start), at(range.end));
            heap::walk(self.bytes, self.plan.id_size(), start, end, end, &mut threads);
        }
        threads.names
    }

    /// Returns the texts of the given Strings and `char[]`.
    fn texts(&self, strings: &IdSet<ObjectId>) -> IdMap<ObjectId, String> {
        let mut texts = IdMap::default();
        let mut arrays: Vec<(ObjectId, ObjectId)> = Vec::new();
        for (id, found) in self.find(strings) {
            match found {
                FoundObject::Instance(class, fields) => {
                    arrays.extend(self.reference(class, fields, "value").map(|array| (id, array)));
                }
                FoundObject::Primitives(kind, data) => {
                    texts.extend(text(kind, data).map(|text| (id, text)));
                }
                FoundObject::Objects(_) => {}
            }
        }
        let found = self.find(&arrays.iter().map(|(_, array)| *array).collect());
        for (id, array) in arrays {
            if let Some(FoundObject::Primitives(kind, data)) = found.get(&array) {
                texts.extend(text(*kind, data).map(|text| (id, text)));
            }
        }
        texts
    }

    fn instance(&self, id: ObjectId) -> Option<(ObjectId, &'a [u8])> {
        match self.find(&IdSet::from_iter([id])).remove(&id)? {
            FoundObject::Instance(class, fields) => Some((class, fields)),
            _ => None,
        }
    }

    /// Returns the public system properties.
    fn properties(&self) -> Option<Vec<(String, String)>> {
        let (class, props) = self.instance(self.plan.props?)?;
        let map = self.reference(class, props, "map").and_then(|map| self.instance(map));
        let (class, map) = map.unwrap_or((class, props));
        let table = self.reference(class, map, "table")?;
        let FoundObject::Objects(elements) = self.find(&IdSet::from_iter([table])).remove(&table)? else {
            return None;
        };
        let mut level: IdSet<ObjectId> = be_ids(elements, self.plan.id_size()).take(MAX_OBJECTS).collect();
        let mut pairs = Vec::new();
        for _ in 0..MAX_LINKS {
            if level.is_empty() || pairs.len() > MAX_OBJECTS {
                break;
            }
            let mut next = IdSet::default();
            for found in self.find(&level).into_values() {
                let FoundObject::Instance(class, fields) = found else { continue };
                let reference = |name| self.reference(class, fields, name).filter(|id| !id.is_null());
                pairs.extend(reference("key").zip(reference("val").or_else(|| reference("value"))));
                // A tree bin's nodes are linked from `first`.
                next.extend(reference("next"));
                next.extend(reference("first"));
            }
            level = next;
        }
        let texts = self.texts(&pairs.iter().flat_map(|(key, value)| [*key, *value]).collect());
        let pairs = pairs.iter().filter_map(|(key, value)| Some((texts.get(key)?, texts.get(value)?)));
        let public = pairs.filter(|(key, _)| PUBLIC_PROPERTIES.contains(&key.as_str()));
        Some(public.map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

/// Returns the text of the array of a String.
fn text(kind: BasicType, data: &[u8]) -> Option<String> {
    match kind {
        // A `byte[]` can also be UTF-16, but names of threads and properties are Latin-1.
        BasicType::Byte => Some(data.iter().map(|byte| char::from(*byte)).collect()),
        BasicType::Char => {
            let units = data.as_chunks().0.iter().map(|unit| u16::from_be_bytes(*unit));
            char::decode_utf16(units).collect::<Result<_, _>>().ok()
        }
        _ => None,
    }
}

/// Visitor that collects the wanted objects.
struct Finder<'s, 'a> {
    /// Object IDs, ascending.
    ids: &'s [ObjectId],
    found: IdMap<ObjectId, FoundObject<'a>>,
}

impl<'a> Finder<'_, 'a> {
    fn check(&mut self, id: ObjectId, found: FoundObject<'a>) {
        if self.ids.binary_search(&id).is_ok() {
            self.found.insert(id, found);
        }
    }
}

impl<'a> HeapVisitor<'a> for Finder<'_, 'a> {
    fn instance(&mut self, record: Instance<'a>) {
        self.check(record.id, FoundObject::Instance(record.class, record.fields));
    }
    fn object_array(&mut self, record: ObjectArray<'a>) {
        self.check(record.id, FoundObject::Objects(record.elements));
    }
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        if let Some(elements) = record.elements {
            self.check(record.id, FoundObject::Primitives(record.element, elements));
        }
    }
}

/// Visitor that collects the threads and thread groups.
struct Threads<'s, 'a> {
    lookup: &'s Lookup<'a>,
    names: IdSet<ObjectId>,
}

impl<'a> HeapVisitor<'a> for Threads<'_, 'a> {
    fn instance(&mut self, record: Instance<'a>) {
        if self.names.len() < MAX_OBJECTS && self.lookup.plan.thread_classes.contains(&record.class) {
            let names = &self.lookup.plan.class_names;
            let is_theirs = |class| {
                let name = names.get(&class).map(|name| java_class_name(name));
                name.is_some_and(|name| THREAD_CLASSES.contains(&&*name))
            };
            let name = self.lookup.reference_of(record.class, record.fields, "name", is_theirs);
            self.names.extend(name.filter(|name| !name.is_null()));
        }
    }
}
