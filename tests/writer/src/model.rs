//! A model of a heap: classes, objects and roots, with addresses assigned as by a JVM.
//!
//! Objects get ascending addresses; the distance to the next is the size of the object by the [`Layout`]
//! (or the test). `emit` converts the model to a dump, `expected` computes the expected results of a
//! reader. One model is one heap dump; several models can be written to one file.

use std::collections::BTreeMap;

use super::basic::{Elements, Root, Type, Value};
use super::class::{ClassDef, ClassId, ObjectId};
use super::layout::Layout;

/// First address: in a heap of 512 MiB with compressed references, also valid with four bytes.
const BASE: u64 = 0xE000_0000;

/// A stack frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackFrame {
    /// Class of the method.
    pub class: ClassId,
    /// Name of the method.
    pub method: String,
    /// Signature of the method: `(I)V`.
    pub signature: String,
    /// Source file, if known.
    pub source: Option<String>,
    /// Line number; 0 unknown, -1 unknown location, -2 compiled, -3 native.
    pub line: i32,
}

impl StackFrame {
    /// Creates a frame of `method`, `()V`, in `line` of the class's usual source file.
    pub fn new(class: ClassId, method: &str, source: &str, line: i32) -> Self {
        Self {
            class,
            method: method.to_owned(),
            signature: "()V".to_owned(),
            source: Some(source.to_owned()),
            line,
        }
    }
}

/// A stack trace.
#[derive(Debug, Clone)]
pub(super) struct Trace {
    pub(super) serial: u32,
    pub(super) thread: u32,
    pub(super) frames: Vec<StackFrame>,
}

/// Contents of an object.
#[derive(Debug, Clone)]
pub(super) enum Body {
    Instance { class: ClassId, values: Vec<Value> },
    ObjectArray { class: ClassId, elements: Vec<u64> },
    Primitive(Elements),
}

/// An object other than a class object.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) id: ObjectId,
    pub(super) trace: u32,
    pub(super) size: u64,
    pub(super) body: Body,
}

/// An added item.
#[derive(Debug, Clone)]
pub(super) enum Item {
    Class(usize),
    Object(usize),
    Root(u64, Root),
    HeapInfo(u32, String),
}

/// A heap to be written.
#[derive(Debug, Clone)]
pub struct HeapModel {
    layout: Layout,
    next: u64,
    once_at: Option<u64>,
    once_size: Option<u64>,
    once_trace: Option<u32>,
    next_trace: u32,
    pub(super) items: Vec<Item>,
    pub(super) classes: Vec<ClassDef>,
    pub(super) objects: Vec<Object>,
    pub(super) traces: Vec<Trace>,
    class_index: BTreeMap<ClassId, usize>,
    object_index: BTreeMap<ObjectId, usize>,
    array_classes: BTreeMap<ClassId, ClassId>,
}

impl Default for HeapModel {
    fn default() -> Self {
        Self::new(Layout::COMPRESSED)
    }
}

impl HeapModel {
    /// Creates an empty heap at an address that both identifier sizes can represent.
    pub fn new(layout: Layout) -> Self {
        Self::with_base(layout, BASE)
    }

    /// Creates an empty heap whose first object is at `base`.
    pub fn with_base(layout: Layout, base: u64) -> Self {
        Self {
            layout,
            next: base,
            once_at: None,
            once_size: None,
            once_trace: None,
            next_trace: 1,
            items: Vec::new(),
            classes: Vec::new(),
            objects: Vec::new(),
            traces: Vec::new(),
            class_index: BTreeMap::new(),
            object_index: BTreeMap::new(),
            array_classes: BTreeMap::new(),
        }
    }

    /// Returns the layout that determines sizes.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns the address of the next object.
    pub fn next_address(&self) -> u64 {
        self.once_at.unwrap_or(self.next)
    }

    /// Sets the address of the next class or object; later ones follow it.
    pub fn at(&mut self, address: u64) -> &mut Self {
        self.once_at = Some(address);
        self
    }

    /// Sets the size of the next class or object in bytes.
    pub fn sized(&mut self, bytes: u64) -> &mut Self {
        self.once_size = Some(bytes);
        self
    }

    /// Sets the stack trace serial number of the next class or object.
    pub fn traced(&mut self, serial: u32) -> &mut Self {
        self.once_trace = Some(serial);
        self
    }

    /// Leaves a gap before the next object, like garbage or a region boundary.
    pub fn skip(&mut self, bytes: u64) -> &mut Self {
        self.next += bytes;
        self
    }

    fn place(&mut self, model_size: u64) -> (u64, u64, u32) {
        let size = self.once_size.take().unwrap_or(model_size);
        let id = self.once_at.take().unwrap_or(self.next);
        let taken =
            self.class_index.contains_key(&ClassId(id)) || self.object_index.contains_key(&ObjectId(id));
        assert!(!taken, "there is an object at {id:#x} already");
        self.next = id + size;
        (id, size, self.once_trace.take().unwrap_or(0))
    }

    /// Adds a class. Names are Java source names: `java.util.HashMap$Node`, `byte[]`.
    pub fn class(&mut self, name: &str, superclass: Option<ClassId>, fields: &[(&str, Type)]) -> ClassId {
        self.class_with_statics(name, superclass, fields, &[])
    }

    /// Adds a class with static fields. Those that refer to later objects: [`HeapModel::class_mut`].
    pub fn class_with_statics(
        &mut self,
        name: &str,
        superclass: Option<ClassId>,
        fields: &[(&str, Type)],
        statics: &[(&str, Value)],
    ) -> ClassId {
        let (id, size, trace) = self.place(ClassDef::mirror_bytes(&self.layout, statics));
        let mut def = ClassDef::new(ClassId(id), name, superclass, fields, size);
        def.statics = statics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        def.trace = trace;
        self.class_index.insert(def.id, self.classes.len());
        self.items.push(Item::Class(self.classes.len()));
        self.classes.push(def);
        ClassId(id)
    }

    /// Returns the class of arrays of `element`; adds it if it does not exist yet.
    pub fn array_class(&mut self, element: ClassId) -> ClassId {
        if let Some(known) = self.array_classes.get(&element) {
            return *known;
        }
        let name = format!("{}[]", self.class_def(element).name);
        let loader = self.class_def(element).loader;
        let top = *self.chain(element).last().expect("a chain begins with the class itself");
        let array = self.class(&name, Some(top), &[]);
        self.class_mut(array).loader = loader;
        self.array_classes.insert(element, array);
        array
    }

    /// Returns the definition of a class.
    pub fn class_def(&self, class: ClassId) -> &ClassDef {
        &self.classes[self.class_index[&class]]
    }

    /// Returns the definition of a class for changes: loader, static fields, constants, numbers of
    /// records.
    pub fn class_mut(&mut self, class: ClassId) -> &mut ClassDef {
        &mut self.classes[self.class_index[&class]]
    }

    /// Returns all added classes, in order.
    pub fn classes(&self) -> &[ClassDef] {
        &self.classes
    }

    /// Returns a class and its superclasses, upwards.
    pub fn chain(&self, class: ClassId) -> Vec<ClassId> {
        std::iter::successors(Some(class), |c| self.class_def(*c).superclass).collect()
    }

    /// Returns the fields of an instance in the order of a dump: the class's own, then its superclass's,
    /// and so on.
    pub fn all_fields(&self, class: ClassId) -> Vec<(String, Type)> {
        self.chain(class).into_iter().flat_map(|c| self.class_def(c).fields.clone()).collect()
    }

    /// Returns the real size of an instance by this model's layout.
    pub fn instance_bytes(&self, class: ClassId) -> u64 {
        let mut chain: Vec<Vec<Type>> = Vec::new();
        for class in self.chain(class) {
            chain.push(self.class_def(class).fields.iter().map(|(_, ty)| *ty).collect());
        }
        let top_first: Vec<&[Type]> = chain.iter().rev().map(Vec::as_slice).collect();
        self.layout.instance_bytes(&top_first)
    }

    fn object(&mut self, model_size: u64, body: Body) -> ObjectId {
        let (id, size, trace) = self.place(model_size);
        let id = ObjectId(id);
        self.object_index.insert(id, self.objects.len());
        self.items.push(Item::Object(self.objects.len()));
        self.objects.push(Object { id, trace, size, body });
        id
    }

    /// Adds an instance, with a value for each of [`HeapModel::all_fields`].
    ///
    /// # Panics
    /// If the values do not match the fields' number and types.
    pub fn instance(&mut self, class: ClassId, values: &[Value]) -> ObjectId {
        self.check_values(class, values);
        self.object(self.instance_bytes(class), Body::Instance { class, values: values.to_vec() })
    }

    /// Adds an instance with values by field name; other fields are zero.
    ///
    /// # Panics
    /// If there is no field of that name and type.
    pub fn instance_with(&mut self, class: ClassId, named: &[(&str, Value)]) -> ObjectId {
        let zeros: Vec<Value> = self.all_fields(class).iter().map(|(_, ty)| ty.zero()).collect();
        let id = self.instance(class, &zeros);
        for (name, value) in named {
            self.set_field(id, name, *value);
        }
        id
    }

    /// Adds an array of references; `class` is the array's own class.
    pub fn object_array(&mut self, class: ClassId, elements: &[ObjectId]) -> ObjectId {
        let count = u32::try_from(elements.len()).expect("more elements than a Java array can have");
        let elements = elements.iter().map(|e| e.0).collect();
        self.object(self.layout.array_bytes(Type::Object, count), Body::ObjectArray { class, elements })
    }

    /// Adds a primitive array.
    pub fn prim_array(&mut self, elements: Elements) -> ObjectId {
        self.object(self.layout.array_bytes(elements.ty(), elements.count()), Body::Primitive(elements))
    }

    fn check_values(&self, class: ClassId, values: &[Value]) {
        let name = &self.class_def(class).name;
        let wanted: Vec<Type> = self.all_fields(class).iter().map(|(_, ty)| *ty).collect();
        let given: Vec<Type> = values.iter().map(|v| v.ty()).collect();
        assert_eq!(wanted, given, "values of an instance of {name}");
    }

    fn body_mut(&mut self, object: ObjectId) -> &mut Body {
        let index = *self.object_index.get(&object).unwrap_or_else(|| panic!("no object at {:#x}", object.0));
        &mut self.objects[index].body
    }

    /// Returns the values of an instance, as many as [`HeapModel::all_fields`]; `None` for arrays and
    /// classes.
    pub fn values(&self, object: ObjectId) -> Option<&[Value]> {
        match &self.objects[*self.object_index.get(&object)?].body {
            Body::Instance { values, .. } => Some(values),
            _ => None,
        }
    }

    /// Replaces all values of an instance, for cycles.
    pub fn set_values(&mut self, object: ObjectId, new: &[Value]) {
        let Body::Instance { class, .. } = *self.body_mut(object) else { panic!("not an instance") };
        self.check_values(class, new);
        if let Body::Instance { values, .. } = self.body_mut(object) {
            *values = new.to_vec();
        }
    }

    /// Replaces one value of an instance: that of the first field of this name, own fields first.
    pub fn set_field(&mut self, object: ObjectId, name: &str, new: impl Into<Value>) {
        let new = new.into();
        let Body::Instance { class, .. } = *self.body_mut(object) else { panic!("not an instance") };
        let fields = self.all_fields(class);
        let index = fields
            .iter()
            .position(|(field, ty)| field == name && *ty == new.ty())
            .unwrap_or_else(|| panic!("{} has no field {name} for {new:?}", self.class_def(class).name));
        if let Body::Instance { values, .. } = self.body_mut(object) {
            values[index] = new;
        }
    }

    /// Replaces all elements of an array of references, keeping its length.
    pub fn set_elements(&mut self, object: ObjectId, new: &[ObjectId]) {
        let Body::ObjectArray { elements, .. } = self.body_mut(object) else {
            panic!("not an array of references")
        };
        assert_eq!(elements.len(), new.len(), "an array keeps its length");
        *elements = new.iter().map(|e| e.0).collect();
    }

    /// Adds a root; the object need not exist.
    pub fn root(&mut self, object: impl Into<ObjectId>, root: Root) {
        self.items.push(Item::Root(object.into().0, root));
    }

    /// Makes the classes of the boot loader roots, as HotSpot does: they are never unloaded.
    pub fn root_boot_classes(&mut self) {
        let boot = self.classes.iter().filter(|class| class.loader == 0);
        let roots = boot.map(|class| Item::Root(class.id.0, Root::StickyClass));
        self.items.extend(roots.collect::<Vec<_>>());
    }

    /// Adds Android's HEAP DUMP INFO. It remains before its objects only with
    /// [`Order::AsAdded`](super::Order).
    pub fn heap_info(&mut self, heap: u32, name: &str) {
        self.items.push(Item::HeapInfo(heap, name.to_owned()));
    }

    /// Sets the serial number of the first stack trace, so that two models can share a file.
    pub fn traces_from(&mut self, serial: u32) {
        self.next_trace = serial;
    }

    /// Adds a stack trace, the innermost frame first, and returns its serial number.
    pub fn trace(&mut self, thread: u32, frames: &[StackFrame]) -> u32 {
        let serial = self.next_trace;
        self.next_trace += 1;
        self.traces.push(Trace { serial, thread, frames: frames.to_vec() });
        serial
    }
}
