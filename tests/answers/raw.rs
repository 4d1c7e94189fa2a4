//! The references of a dump as a plain list, read without the index: what tests compare the graph with.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray, RootRecord};
use hprof_parser::record::{BodyReader, Record, tag};
use hprof_parser::{Header, mutf8};
use hprof_values::{BasicType, IdSize, RootKind, names};

/// A reference: what it is called, whether it is the referent of a Reference, and what it refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub label: String,
    pub is_referent: bool,
    pub to: u64,
}

impl Reference {
    /// Returns whether it is a reference from a thread to a local.
    fn is_of_stack(&self) -> bool {
        RootKind::ALL.iter().any(|kind| is_of_stack(*kind) && self.label == format!("<{}>", kind.name()))
    }
}

#[derive(Debug, Clone, Default)]
struct Class {
    super_class: u64,
    fields: Vec<(String, BasicType)>,
}

/// All objects, what they refer to, and the roots.
#[derive(Debug, Default)]
pub struct Raw {
    /// Object id -> class id.
    pub class_of: BTreeMap<u64, u64>,
    /// Class id -> name.
    pub names: HashMap<u64, String>,
    /// Object ID -> references to objects in the dump.
    pub references: HashMap<u64, Vec<Reference>>,
    /// Root objects and their kinds.
    pub roots: BTreeMap<u64, Vec<RootKind>>,
    classes: HashMap<u64, Class>,
    locals: Vec<(u32, RootKind, u64)>,
    threads: HashMap<u32, u64>,
}

/// Finds classes first, as instances may come before.
struct Classes<'r> {
    raw: &'r mut Raw,
    strings: &'r HashMap<u64, String>,
}

impl<'a> HeapVisitor<'a> for Classes<'_> {
    fn class(&mut self, record: ClassDump<'a>) {
        let fields = record.fields().map(|field| (self.strings[&field.name].clone(), field.kind)).collect();
        let mut references = Vec::new();
        let mut add = |label: &str, to| {
            references.push(Reference { label: label.to_owned(), is_referent: false, to });
        };
        add("<super>", record.super_class.0);
        add("<loader>", record.loader.0);
        for field in record.statics().filter(|field| field.kind == BasicType::Object) {
            add(&self.strings[&field.name], field.value);
        }
        self.raw.classes.insert(record.id.0, Class { super_class: record.super_class.0, fields });
        self.raw.references.insert(record.id.0, references);
        self.raw.class_of.insert(record.id.0, 0);
    }

    fn root(&mut self, _: usize, root: RootRecord) {
        if root.kind == RootKind::Unreachable {
            return;
        }
        if root.kind == RootKind::ThreadObject {
            self.raw.threads.insert(root.thread.unwrap(), root.id.0);
        }
        if is_of_stack(root.kind) {
            self.raw.locals.push((root.thread.unwrap(), root.kind, root.id.0));
        }
        self.raw.roots.entry(root.id.0).or_default().push(root.kind);
    }
}

struct Objects<'r> {
    raw: &'r mut Raw,
    id_size: IdSize,
    by_name: &'r HashMap<String, u64>,
}

impl Objects<'_> {
    fn id(&self, bytes: &[u8]) -> u64 {
        bytes.iter().take(self.id_size.bytes()).fold(0, |id, byte| (id << 8) | u64::from(*byte))
    }

    fn is_reference(&self, class: u64) -> bool {
        self.raw.names.get(&class).is_some_and(|name| name == "java.lang.ref.Reference")
    }
}

impl<'a> HeapVisitor<'a> for Objects<'_> {
    fn instance(&mut self, record: Instance<'a>) {
        let mut references = Vec::new();
        let (mut class, mut at) = (record.class.0, 0);
        while let Some(known) = self.raw.classes.get(&class) {
            for (name, kind) in &known.fields {
                if *kind == BasicType::Object && at < record.fields.len() {
                    let is_referent = name == "referent" && self.is_reference(class);
                    let to = self.id(&record.fields[at..]);
                    references.push(Reference { label: name.clone(), is_referent, to });
                }
                at += kind.dump_bytes(self.id_size);
            }
            class = known.super_class;
        }
        self.raw.class_of.insert(record.id.0, record.class.0);
        self.raw.references.insert(record.id.0, references);
    }

    fn object_array(&mut self, record: ObjectArray<'a>) {
        let slots = record.elements.chunks_exact(self.id_size.bytes()).enumerate();
        let references = slots
            .map(|(slot, id)| Reference { label: format!("[{slot}]"), is_referent: false, to: self.id(id) })
            .collect();
        self.raw.class_of.insert(record.id.0, record.class.0);
        self.raw.references.insert(record.id.0, references);
    }

    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        let name = format!("{}[]", record.element.java_name());
        self.raw.class_of.insert(record.id.0, self.by_name.get(&name).copied().unwrap_or(0));
        self.raw.references.insert(record.id.0, Vec::new());
    }
}

impl Raw {
    /// Reads all of a dump that holds one heap dump.
    pub fn read(bytes: &[u8]) -> Self {
        let header = Header::parse(bytes).unwrap();
        let reader = BodyReader::new(bytes, header.id_size);
        let (mut strings, mut loads, mut segments) = (HashMap::new(), Vec::new(), Vec::new());
        let mut at = header.len;
        while let Some(record) = Record::at(bytes, at) {
            match record.tag {
                tag::STRING => {
                    let (id, text) = reader.string(&record).unwrap();
                    strings.insert(id, mutf8::decode(text).into_owned());
                }
                tag::LOAD_CLASS => loads.push(reader.load_class(&record).unwrap()),
                tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT => segments.push(record),
                _ => {}
            }
            at = usize::try_from(record.end()).unwrap();
        }
        let mut raw = Self::default();
        for load in loads {
            raw.names.insert(load.id.0, names::java_class_name(&strings[&load.name]));
        }
        for segment in &segments {
            let (start, end) = (segment.body_offset(), usize::try_from(segment.end()).unwrap());
            let mut classes = Classes { raw: &mut raw, strings: &strings };
            assert!(heap::walk(bytes, header.id_size, start, end, end, &mut classes).error.is_none());
        }
        let by_name: HashMap<String, u64> =
            (raw.classes.keys()).filter_map(|id| Some((raw.names.get(id)?.clone(), *id))).collect();
        for segment in &segments {
            let (start, end) = (segment.body_offset(), usize::try_from(segment.end()).unwrap());
            let mut objects = Objects { raw: &mut raw, id_size: header.id_size, by_name: &by_name };
            assert!(heap::walk(bytes, header.id_size, start, end, end, &mut objects).error.is_none());
        }
        let class = by_name.get("java.lang.Class").copied().unwrap_or(0);
        for id in raw.classes.keys() {
            raw.class_of.insert(*id, class);
        }
        for (thread, kind, id) in std::mem::take(&mut raw.locals) {
            if let Some(thread) = raw.threads.get(&thread)
                && let Some(references) = raw.references.get_mut(thread)
            {
                let label = format!("<{}>", kind.name());
                references.push(Reference { label, is_referent: false, to: id });
            }
        }
        let there: BTreeSet<u64> = raw.class_of.keys().copied().collect();
        for (id, references) in &mut raw.references {
            let class = raw.class_of[id];
            references.push(Reference { label: "<class>".to_owned(), is_referent: false, to: class });
            references.retain(|reference| there.contains(&reference.to));
        }
        raw.roots.retain(|id, _| there.contains(id));
        raw
    }

    /// The references from one object to another.
    pub fn between(&self, from: u64, to: u64) -> Vec<&Reference> {
        self.references[&from].iter().filter(|reference| reference.to == to).collect()
    }

    /// Returns the strength of the reference to an object's referent: `strong`, `weak`, `soft`, `phantom` or
    /// `finalizer`.
    pub fn strength(&self, object: u64) -> &'static str {
        let mut class = self.class_of[&object];
        loop {
            match self.names.get(&class).map(String::as_str) {
                Some("java.lang.ref.WeakReference") => return "weak",
                Some("java.lang.ref.SoftReference") => return "soft",
                Some("java.lang.ref.PhantomReference") => return "phantom",
                Some("java.lang.ref.FinalReference") => return "finalizer",
                _ => {}
            }
            match self.classes.get(&class) {
                Some(known) => class = known.super_class,
                None => return "strong",
            }
        }
    }

    /// Returns whether a reference from this object is followed if references of these strengths are excluded.
    pub fn is_followed(&self, from: u64, reference: &Reference, excluded: &[&str]) -> bool {
        !reference.is_referent || !excluded.contains(&self.strength(from))
    }

    /// Returns the distances of objects from the nearest root.
    pub fn distances(&self, excluded: &[&str]) -> HashMap<u64, usize> {
        self.distances_from(|_| true, excluded)
    }

    /// Returns the distances of objects from the nearest root of an accepted kind. A thread's stack does not count as
    /// a reference from the thread.
    pub fn distances_from(
        &self,
        wanted: impl Fn(RootKind) -> bool,
        excluded: &[&str],
    ) -> HashMap<u64, usize> {
        let starts = self.starts(wanted);
        let mut distances: HashMap<u64, usize> = starts.iter().map(|id| (*id, 0)).collect();
        let mut queue: VecDeque<u64> = starts.into_iter().collect();
        while let Some(id) = queue.pop_front() {
            let next = distances[&id] + 1;
            for reference in &self.references[&id] {
                if self.is_followed(id, reference, excluded)
                    && !reference.is_of_stack()
                    && !distances.contains_key(&reference.to)
                {
                    distances.insert(reference.to, next);
                    queue.push_back(reference.to);
                }
            }
        }
        distances
    }

    /// Returns the depths of objects in merged paths: the distance from the nearest root that is not a local of a
    /// thread; for objects not reachable from these, from the nearest local.
    pub fn depths(&self, wanted: impl Fn(RootKind) -> bool + Copy, excluded: &[&str]) -> HashMap<u64, usize> {
        let mut depths = self.distances_from(|kind| wanted(kind) && is_of_stack(kind), excluded);
        depths.extend(self.distances_from(|kind| wanted(kind) && !is_of_stack(kind), excluded));
        depths
    }

    /// The roots that have a kind that is wanted.
    pub fn starts(&self, wanted: impl Fn(RootKind) -> bool) -> BTreeSet<u64> {
        let roots = self.roots.iter().filter(|(_, kinds)| kinds.iter().any(|kind| wanted(*kind)));
        roots.map(|(id, _)| *id).collect()
    }

    /// Returns all paths to an object, shortest first: chains without repeated objects or roots in between. A
    /// thread's stack that refers to a root does not make a separate path.
    pub fn all_paths(&self, object: u64, excluded: &[&str]) -> Vec<Vec<u64>> {
        self.all_paths_from(&self.starts(|_| true), object, excluded)
    }

    /// The same from some roots only: others may be in between.
    pub fn all_paths_from(&self, starts: &BTreeSet<u64>, object: u64, excluded: &[&str]) -> Vec<Vec<u64>> {
        let mut holders: HashMap<u64, BTreeSet<u64>> = HashMap::new();
        for (from, references) in &self.references {
            for reference in
                references.iter().filter(|reference| self.is_followed(*from, reference, excluded))
            {
                if !reference.is_of_stack() {
                    holders.entry(reference.to).or_default().insert(*from);
                }
            }
        }
        let mut paths = Vec::new();
        if starts.contains(&object) {
            paths.push(vec![object]);
        }
        let mut open = vec![vec![object]];
        while let Some(chain) = open.pop() {
            for holder in holders.get(chain.last().unwrap()).into_iter().flatten() {
                if chain.contains(holder) {
                    continue;
                }
                let mut longer = chain.clone();
                longer.push(*holder);
                if starts.contains(holder) {
                    longer.reverse();
                    paths.push(longer);
                } else {
                    open.push(longer);
                }
            }
        }
        paths.sort_by_key(|path| (path.len(), path.clone()));
        paths
    }
}

/// Returns whether a root of this kind is on a thread's stack.
pub fn is_of_stack(kind: RootKind) -> bool {
    matches!(kind, RootKind::JavaFrame | RootKind::JniLocal | RootKind::NativeStack | RootKind::ThreadBlock)
}
