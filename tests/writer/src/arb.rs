//! A description of a dump in which every value is legal, for property tests.
//!
//! A generator need not know which classes and objects exist: references and classes are [`Pick`]s, taken
//! modulo the number of candidates, and smaller numbers mean simpler values, so that shrinking works on
//! the plain data. The strategies are defined with the tests.

use super::basic::{Elements, Root, Type, Value};
use super::class::{ClassId, ObjectId};
use super::emit::Options;
use super::expected::Expected;
use super::layout::Layout;
use super::model::{HeapModel, StackFrame};
use super::writer::Written;

/// A choice among candidates.
///
/// As a reference: 0 is null; then, modulo their number plus one, the objects, the classes and one unused
/// address. As a class: modulo their number, 0 being `java.lang.Object`.
pub type Pick = u64;

/// Unused address, for dangling references. Below every address a model assigns.
const NOWHERE: u64 = 0xDEAD_BEE8;

/// A dump.
#[derive(Debug, Clone)]
pub struct ArbDump {
    /// Form of the dump.
    pub options: Options,
    /// Layout, which determines the distances of addresses.
    pub layout: Layout,
    /// Classes other than `java.lang.Object` and `java.lang.Class`, which always exist.
    pub classes: Vec<ArbClass>,
    /// Objects. Classes get their addresses with their first instance.
    pub objects: Vec<ArbObject>,
    /// Roots; duplicates are allowed.
    pub roots: Vec<ArbRoot>,
    /// Stack traces, with serial numbers from 1.
    pub traces: Vec<ArbTrace>,
}

/// A class.
#[derive(Debug, Clone, PartialEq)]
pub struct ArbClass {
    /// Name in Java source form, by default `arb.C` and its number. Names may repeat; they should not end
    /// in `[]`.
    pub name: Option<String>,
    /// Superclass, among `java.lang.Object` and the classes before it.
    pub superclass: Pick,
    /// Types of the instance fields, named `f0` and so on.
    pub fields: Vec<Type>,
    /// Static fields, named `s0` and so on.
    pub statics: Vec<ArbValue>,
    /// Constant pool.
    pub constants: Vec<ArbValue>,
    /// Class loader.
    pub loader: Pick,
    /// Number of LOAD CLASS records.
    pub loads: u8,
    /// Number of CLASS DUMP sub-records.
    pub dumps: u8,
}

impl Default for ArbClass {
    /// Returns a class without members, with the superclass `java.lang.Object`, loaded and dumped once.
    fn default() -> Self {
        Self {
            name: None,
            superclass: 0,
            fields: Vec::new(),
            statics: Vec::new(),
            constants: Vec::new(),
            loader: 0,
            loads: 1,
            dumps: 1,
        }
    }
}

/// A typed value: the lowest bits, or, for a reference, the pick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArbValue {
    /// The type.
    pub ty: Type,
    /// The bits or the pick.
    pub bits: u64,
}

/// An object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArbObject {
    /// Kind of the object.
    pub kind: ArbObjectKind,
    /// Number of alignment units left free after it.
    pub gap: u16,
    /// Stack trace: 0 for none, otherwise modulo the traces.
    pub trace: u32,
}

/// Kind of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArbObjectKind {
    /// An instance.
    Instance {
        /// Class of the instance.
        class: Pick,
        /// Bits or picks for its fields in the dump's order. Missing ones are 0, excess ones unused.
        values: Vec<u64>,
    },
    /// An array of references.
    ObjectArray {
        /// Class of the elements.
        element: Pick,
        /// Elements.
        elements: Vec<Pick>,
    },
    /// A primitive array.
    PrimArray {
        /// Element type; [`Type::Object`] means `long`.
        ty: Type,
        /// Values, of which the lowest bits are the elements.
        bits: Vec<u64>,
    },
    /// Android's primitive array without data.
    NoData {
        /// Element type; [`Type::Object`] means `long`.
        ty: Type,
        /// Original number of elements.
        count: u16,
    },
}

/// A root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArbRoot {
    /// Target of the root.
    pub target: Pick,
    /// Kind of the root.
    pub root: Root,
}

/// A stack trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArbTrace {
    /// Serial number of the thread.
    pub thread: u32,
    /// (class, line)
    pub frames: Vec<(Pick, i32)>,
}

impl ArbDump {
    /// Creates a dump without additional classes and objects.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            layout: Layout::COMPRESSED,
            classes: Vec::new(),
            objects: Vec::new(),
            roots: Vec::new(),
            traces: Vec::new(),
        }
    }

    /// Returns the heap that it describes.
    pub fn model(&self) -> HeapModel {
        Builder::new(self).build()
    }

    /// Writes the dump, and returns the expected results of reading it.
    pub fn write(&self) -> (Written, Expected) {
        let model = self.model();
        (model.write(&self.options), model.expected())
    }
}

/// Converts picks to IDs: first everything gets an address, then values are filled in.
struct Builder<'a> {
    arb: &'a ArbDump,
    model: HeapModel,
    object_class: ClassId,
    class_class: ClassId,
    /// Class IDs by index in `arb.classes`.
    classes: Vec<Option<ClassId>>,
    objects: Vec<ObjectId>,
    /// Possible targets of references, once everything has an address.
    targets: Vec<u64>,
}

impl<'a> Builder<'a> {
    fn new(arb: &'a ArbDump) -> Self {
        let mut model = HeapModel::new(arb.layout);
        let object_class = model.class("java.lang.Object", None, &[]);
        let class_class = model.class("java.lang.Class", Some(object_class), &[]);
        let classes = vec![None; arb.classes.len()];
        Self { arb, model, object_class, class_class, classes, objects: Vec::new(), targets: Vec::new() }
    }

    fn build(mut self) -> HeapModel {
        for object in &self.arb.objects {
            let id = self.add_object(object);
            self.objects.push(id);
        }
        for index in 0..self.arb.classes.len() {
            self.class(index);
        }
        self.targets.extend(self.objects.iter().map(|o| o.0));
        self.targets.extend([self.object_class.0, self.class_class.0]);
        self.targets.extend(self.classes.iter().flatten().map(|c| c.0));
        self.targets.push(NOWHERE);
        for index in 0..self.arb.classes.len() {
            self.fill_class(index);
        }
        for (index, object) in self.arb.objects.iter().enumerate() {
            self.fill_object(self.objects[index], &object.kind);
        }
        for root in &self.arb.roots {
            let target = self.reference(root.target);
            self.model.root(ObjectId(target), root.root);
        }
        for (number, trace) in self.arb.traces.iter().enumerate() {
            let mut frames = Vec::new();
            for (pick, line) in &trace.frames {
                frames.push(StackFrame::new(
                    self.pick_class(*pick),
                    &format!("m{number}"),
                    "Arb.java",
                    *line,
                ));
            }
            self.model.trace(trace.thread, &frames);
        }
        self.model
    }

    /// Returns the class with an index in the description; adds it if it does not exist yet.
    fn class(&mut self, index: usize) -> ClassId {
        if let Some(known) = self.classes[index] {
            return known;
        }
        let arb = &self.arb.classes[index];
        let superclass = match modulo(arb.superclass, index + 1) {
            0 => self.object_class,
            earlier => self.class(earlier - 1),
        };
        let name = arb.name.clone().unwrap_or_else(|| format!("arb.C{index}"));
        let field_names: Vec<String> = (0..arb.fields.len()).map(|i| format!("f{i}")).collect();
        let fields: Vec<(&str, Type)> =
            field_names.iter().map(String::as_str).zip(arb.fields.iter().copied()).collect();
        let static_names: Vec<String> = (0..arb.statics.len()).map(|i| format!("s{i}")).collect();
        let statics: Vec<(&str, Value)> =
            static_names.iter().map(String::as_str).zip(arb.statics.iter().map(|s| s.ty.zero())).collect();
        let id = self.model.class_with_statics(&name, Some(superclass), &fields, &statics);
        let def = self.model.class_mut(id);
        def.loads = arb.loads.into();
        def.dumps = arb.dumps.into();
        self.classes[index] = Some(id);
        id
    }

    fn pick_class(&mut self, pick: Pick) -> ClassId {
        match modulo(pick, self.arb.classes.len() + 1) {
            0 => self.object_class,
            index => self.class(index - 1),
        }
    }

    /// Returns the ID that a reference refers to.
    fn reference(&self, pick: Pick) -> u64 {
        pick.checked_sub(1).map_or(0, |pick| self.targets[modulo(pick, self.targets.len())])
    }

    fn value(&self, ty: Type, bits: u64) -> Value {
        match ty {
            Type::Object => Value::Object(self.reference(bits)),
            primitive => primitive.value_of(bits),
        }
    }

    fn add_object(&mut self, object: &ArbObject) -> ObjectId {
        let class = match &object.kind {
            ArbObjectKind::Instance { class, .. } => Some(self.pick_class(*class)),
            ArbObjectKind::ObjectArray { element, .. } => {
                let element = self.pick_class(*element);
                Some(self.model.array_class(element))
            }
            ArbObjectKind::PrimArray { .. } | ArbObjectKind::NoData { .. } => None,
        };
        if !self.arb.traces.is_empty() && object.trace > 0 {
            let traces = u32::try_from(self.arb.traces.len()).expect("few traces");
            self.model.traced((object.trace - 1) % traces + 1);
        }
        let id = match (&object.kind, class) {
            (ArbObjectKind::Instance { .. }, Some(class)) => self.model.instance_with(class, &[]),
            (ArbObjectKind::ObjectArray { elements, .. }, Some(class)) => {
                self.model.object_array(class, &vec![ObjectId::NULL; elements.len()])
            }
            (ArbObjectKind::PrimArray { ty, bits }, _) => {
                self.model.prim_array(Elements::of_bits(primitive(*ty), bits))
            }
            (ArbObjectKind::NoData { ty, count }, _) => {
                self.model.prim_array(Elements::NoData(primitive(*ty), (*count).into()))
            }
            (_, None) => unreachable!("instances and arrays of references have a class"),
        };
        self.model.skip(u64::from(object.gap) * self.arb.layout.alignment);
        id
    }

    fn fill_class(&mut self, index: usize) {
        let arb = &self.arb.classes[index];
        let loader = self.reference(arb.loader);
        let statics: Vec<Value> = arb.statics.iter().map(|s| self.value(s.ty, s.bits)).collect();
        let constants: Vec<Value> = arb.constants.iter().map(|c| self.value(c.ty, c.bits)).collect();
        let id = self.class(index);
        let def = self.model.class_mut(id);
        def.loader = loader;
        for ((_, slot), value) in def.statics.iter_mut().zip(statics) {
            *slot = value;
        }
        def.constants = (1..).zip(constants).collect();
    }

    fn fill_object(&mut self, id: ObjectId, kind: &ArbObjectKind) {
        match kind {
            ArbObjectKind::Instance { class, values } => {
                let class = self.pick_class(*class);
                let mut filled = Vec::new();
                for (i, (_, ty)) in self.model.all_fields(class).into_iter().enumerate() {
                    filled.push(self.value(ty, values.get(i).copied().unwrap_or(0)));
                }
                self.model.set_values(id, &filled);
            }
            ArbObjectKind::ObjectArray { elements, .. } => {
                let filled: Vec<ObjectId> = elements.iter().map(|e| ObjectId(self.reference(*e))).collect();
                self.model.set_elements(id, &filled);
            }
            ArbObjectKind::PrimArray { .. } | ArbObjectKind::NoData { .. } => {}
        }
    }
}

fn modulo(pick: Pick, count: usize) -> usize {
    usize::try_from(pick % count as u64).expect("less than a usize")
}

fn primitive(ty: Type) -> Type {
    if ty == Type::Object { Type::Long } else { ty }
}
