//! A heap read the plain way, for tests: every reference of every object, by the reference model, and walks over them.
//! It knows of no index and no dominator tree; of the library it takes the decoder of sub-records and the class names.

use std::collections::{HashMap, HashSet};

use hprof_index::model::summary::Summary;
use hprof_index::{Heap, Quiet};
use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray, RootRecord};
use hprof_values::{BasicType, IdSize, RootKind};

/// A heap read the plain way: every reference of every object.
pub struct Naive {
    numbers: HashMap<u64, usize>,
    /// All objects, ascending.
    pub ids: Vec<u64>,
    edges: Vec<Vec<usize>>,
    roots: Vec<usize>,
}

/// All sub-records, as they come.
#[derive(Default)]
struct Records {
    classes: HashMap<u64, (u64, Vec<BasicType>)>,
    references: HashMap<u64, Vec<u64>>,
    fields: HashMap<u64, (u64, Vec<u8>)>,
    primitives: Vec<(u64, BasicType)>,
    roots: Vec<RootRecord>,
}

impl<'a> HeapVisitor<'a> for Records {
    fn instance(&mut self, record: Instance<'a>) {
        self.fields.insert(record.id.0, (record.class.0, record.fields.to_vec()));
    }
    fn object_array(&mut self, record: ObjectArray<'a>) {
        let width = record.elements.len() / record.length.max(1) as usize;
        let mut references = vec![record.class.0];
        references.extend(record.elements.chunks(width.max(1)).map(number));
        self.references.insert(record.id.0, references);
    }
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        self.primitives.push((record.id.0, record.element));
    }
    fn class(&mut self, record: ClassDump<'a>) {
        let statics = record.statics().filter(|field| field.kind == BasicType::Object);
        let mut references = vec![record.super_class.0, record.loader.0];
        references.extend(statics.map(|field| field.value));
        self.references.insert(record.id.0, references);
        let fields = record.fields().map(|field| field.kind).collect();
        self.classes.insert(record.id.0, (record.super_class.0, fields));
    }
    fn root(&mut self, _: usize, root: RootRecord) {
        self.roots.push(root);
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

impl Naive {
    /// Reads a dump.
    pub fn read(heap: &Heap) -> Self {
        let (summary, bytes) = (heap.summary(), heap.bytes(&Quiet).unwrap());
        let id_size = summary.id_size();
        let mut records = Records::default();
        for segment in summary.segments() {
            let (start, end) = (segment.start.get() as usize, segment.end.get() as usize);
            heap::walk(bytes, id_size, start, end, end, &mut records);
        }
        let named = |name: &str| {
            let mut classes = summary.classes().iter().filter(|class| class.is_dumped());
            classes.find(|class| summary.class_name(class) == name).map_or(0, |class| class.id.get())
        };
        let java_lang_class = named("java.lang.Class");
        for class in records.classes.keys() {
            records.references.get_mut(class).unwrap().push(java_lang_class);
        }
        for (id, element) in &records.primitives {
            let class = named(&format!("{}[]", element.java_name()));
            records.references.insert(*id, vec![class]);
        }
        for (id, (class, fields)) in &records.fields {
            let references = fields_of(&records.classes, *class, fields, id_size);
            records.references.insert(*id, references);
        }
        let mut ids: Vec<u64> = records.references.keys().copied().collect();
        ids.sort_unstable();
        let numbers: HashMap<u64, usize> = ids.iter().copied().zip(0..).collect();
        let find = |ids: &[u64]| ids.iter().filter_map(|id| numbers.get(id).copied()).collect();
        let edges = ids.iter().map(|id| find(&records.references[id])).collect();
        let mut naive = Self { numbers, ids, edges, roots: Vec::new() };
        naive.take_roots(&records, summary);
        naive
    }

    fn take_roots(&mut self, records: &Records, summary: &Summary) {
        let threads: HashMap<u32, usize> = (records.roots.iter())
            .filter(|root| root.kind == RootKind::ThreadObject)
            .filter_map(|root| Some((root.thread?, *self.numbers.get(&root.id.0)?)))
            .collect();
        let mut sticky = false;
        for root in records.roots.iter().filter(|root| root.kind != RootKind::Unreachable) {
            sticky |= root.kind == RootKind::StickyClass;
            let Some(object) = self.numbers.get(&root.id.0).copied() else { continue };
            let thread = root.thread.and_then(|thread| threads.get(&thread).copied());
            use RootKind::{JavaFrame, JniLocal, NativeStack, ThreadBlock};
            match (root.kind, thread) {
                (JavaFrame | JniLocal | NativeStack | ThreadBlock, Some(thread)) => {
                    self.edges[thread].push(object)
                }
                _ => self.roots.push(object),
            }
        }
        if !sticky {
            let boot = summary.classes().iter().filter(|class| class.is_dumped() && class.loader.get() == 0);
            self.roots.extend(boot.filter_map(|class| self.numbers.get(&class.id.get())));
        }
    }

    /// Returns the objects reachable from the roots without passing through these.
    pub fn reached(&self, without: &HashSet<u64>) -> Vec<bool> {
        let mut reached: Vec<bool> = self.ids.iter().map(|id| without.contains(id)).collect();
        let mut stack = self.roots.clone();
        while let Some(object) = stack.pop() {
            if !std::mem::replace(&mut reached[object], true) {
                stack.extend(&self.edges[object]);
            }
        }
        for (reached, id) in reached.iter_mut().zip(&self.ids) {
            *reached &= !without.contains(id);
        }
        reached
    }

    /// The number of objects that are reachable, and not without these; and what they take.
    pub fn retained(&self, set: &HashSet<u64>, sizes: &HashMap<u64, u64>) -> (u64, u64) {
        let without = self.reached(set);
        let lost = self.ids.iter().zip(without).filter(|(_, reached)| !reached);
        // Only reachable objects have a size here.
        let sizes: Vec<u64> = lost.filter_map(|(id, _)| sizes.get(id).copied()).collect();
        (sizes.len() as u64, sizes.iter().sum())
    }
}

/// The references of an instance, its class first.
fn fields_of(
    classes: &HashMap<u64, (u64, Vec<BasicType>)>,
    class: u64,
    fields: &[u8],
    id_size: IdSize,
) -> Vec<u64> {
    let mut references = vec![class];
    let (mut rest, mut class) = (fields, class);
    while let Some((above, kinds)) = classes.get(&class) {
        for kind in kinds {
            let Some((value, after)) = rest.split_at_checked(kind.dump_bytes(id_size)) else {
                return references;
            };
            rest = after;
            if *kind == BasicType::Object {
                references.push(number(value));
            }
        }
        class = *above;
    }
    references
}
