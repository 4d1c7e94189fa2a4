//! Heaps made for a test: what refers to what is written down beside, so that a test can walk over it.

use std::collections::BTreeMap;

use hprof_writer::{
    ClassId, Elements, HeapModel, Jdk, ObjectId, Options, Root, StackFrame, Type, Value as Field,
};

use crate::kit::dump::Dump;

/// A reference to an object, and its strength.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    Strong(u64),
    /// The referent of a Reference.
    Referent(u64),
}

impl Edge {
    pub fn target(self) -> u64 {
        let (Self::Strong(to) | Self::Referent(to)) = self;
        to
    }
}

/// A heap. All classes of the boot loader are roots.
pub struct Heaped {
    pub model: HeapModel,
    pub jdk: Jdk,
    /// By object ID, without references to classes.
    pub edges: BTreeMap<u64, Vec<Edge>>,
    /// Roots that are no locals, without those that are classes.
    pub roots: Vec<u64>,
    /// Locals of threads.
    pub locals: Vec<u64>,
    array_list: Option<ClassId>,
}

impl Heaped {
    pub fn new() -> Self {
        let mut model = HeapModel::default();
        let jdk = Jdk::add_to(&mut model);
        Self { model, jdk, edges: BTreeMap::new(), roots: Vec::new(), locals: Vec::new(), array_list: None }
    }

    /// Adds a class with `references` references.
    pub fn class(&mut self, name: &str, references: usize) -> ClassId {
        self.class_below(name, self.jdk.object, references)
    }

    pub fn class_below(&mut self, name: &str, above: ClassId, references: usize) -> ClassId {
        let names: Vec<String> = (0..references).map(|number| format!("field{number}")).collect();
        let fields: Vec<(&str, Type)> = names.iter().map(|name| (name.as_str(), Type::Object)).collect();
        self.model.class(name, Some(above), &fields)
    }

    fn refer(&mut self, from: u64, to: impl IntoIterator<Item = ObjectId>) {
        let edges = to.into_iter().filter(|to| *to != ObjectId::NULL).map(|to| Edge::Strong(to.0));
        self.edges.entry(from).or_default().extend(edges);
    }

    /// An instance whose first fields are these.
    pub fn instance(&mut self, class: ClassId, held: &[ObjectId]) -> ObjectId {
        let object = self.model.instance_with(class, &[]);
        for (number, to) in held.iter().enumerate() {
            self.model.set_field(object, &format!("field{number}"), *to);
        }
        self.refer(object.0, held.iter().copied());
        object
    }

    /// Adds a `byte[]` of `shallow` bytes, a multiple of 8.
    pub fn bytes(&mut self, shallow: u64) -> ObjectId {
        self.model.prim_array(Elements::Zeros(Type::Byte, u32::try_from(shallow - 16).unwrap()))
    }

    /// An `Object[]`.
    pub fn array(&mut self, held: &[ObjectId]) -> ObjectId {
        let array = self.model.object_array(self.jdk.object_array, held);
        self.refer(array.0, held.iter().copied());
        array
    }

    /// Fills an `Object[]`.
    pub fn fill(&mut self, array: ObjectId, held: &[ObjectId]) {
        self.model.set_elements(array, held);
        self.edges.remove(&array.0);
        self.refer(array.0, held.iter().copied());
    }

    /// Sets the referent of a Reference.
    pub fn set_referent(&mut self, reference: ObjectId, referent: ObjectId) {
        self.model.set_field(reference, "referent", referent);
        self.edges.entry(reference.0).or_default().push(Edge::Referent(referent.0));
    }

    /// Sets a field.
    pub fn set(&mut self, object: ObjectId, field: &str, value: ObjectId) {
        self.model.set_field(object, field, value);
        self.refer(object.0, [value]);
    }

    /// Adds `count` objects of a class with one reference, each with a `byte[]`; all have the same size, and together
    /// they take `all` bytes.
    pub fn many(&mut self, class: ClassId, count: u64, all: u64) -> Vec<ObjectId> {
        let each = all / count / 8 * 8;
        (0..count)
            .map(|_| {
                let held = self.bytes(each - 16);
                self.instance(class, &[held])
            })
            .collect()
    }

    pub fn root(&mut self, object: ObjectId) {
        self.model.root(object, Root::JniGlobal { reference: 0x7f00 });
        self.roots.push(object.0);
    }

    /// A class with a static field that holds an object.
    pub fn holder(&mut self, class: &str, field: &str, held: ObjectId) -> ClassId {
        let class = self.model.class_with_statics(class, Some(self.jdk.object), &[], &[(field, held.into())]);
        self.refer(class.0, [held]);
        class
    }

    /// A `java.util.ArrayList`.
    pub fn list(&mut self, held: &[ObjectId]) -> ObjectId {
        let fields = [("elementData", Type::Object), ("size", Type::Int)];
        let (model, object) = (&mut self.model, self.jdk.object);
        let class = *(self.array_list)
            .get_or_insert_with(|| model.class("java.util.ArrayList", Some(object), &fields));
        let array = self.array(held);
        let size = i32::try_from(held.len()).unwrap();
        let list = self.model.instance_with(class, &[("size", Field::Int(size))]);
        self.set(list, "elementData", array);
        list
    }

    /// The thread `main`, in a method of a class; asleep.
    pub fn main_thread(&mut self, class: ClassId) -> ObjectId {
        let jdk = self.jdk.clone();
        let state = self.model.instance_with(jdk.field_holder, &[("threadStatus", Field::Int(0x291))]);
        let name = jdk.string(&mut self.model, "main");
        let fields = [("name", Field::from(name)), ("holder", Field::from(state))];
        let thread = self.model.instance_with(jdk.thread, &fields);
        let trace = self.model.trace(1, &[StackFrame::new(class, "main", "Main.java", 10)]);
        self.model.root(thread, Root::ThreadObject { thread: 1, trace });
        thread
    }

    /// A thread that is a root, without a name.
    pub fn thread(&mut self, class: ClassId, thread: u32) -> ObjectId {
        let object = self.model.instance_with(class, &[]);
        let trace = self.model.trace(thread, &[]);
        self.model.root(object, Root::ThreadObject { thread, trace });
        self.roots.push(object.0);
        object
    }

    pub fn local(&mut self, thread: u32, object: ObjectId) {
        self.model.root(object, Root::JavaFrame { thread, frame: -1 });
        self.locals.push(object.0);
    }

    pub fn dump(&mut self) -> Dump {
        self.model.root_boot_classes();
        let boot = self.model.classes().iter().filter(|class| class.loader == 0);
        self.roots.extend(boot.map(|class| class.id.0));
        Dump::written(&self.model.write(&Options::hotspot()))
    }
}
