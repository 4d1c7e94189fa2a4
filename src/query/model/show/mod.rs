//! A single object: its class, sizes, fields or elements, and referrers.
//!
//! For a binary dump; `profile::text::show` does the same for a text report.

mod class;
mod data;

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::{Dump, ObjectGraph};
use hprof_values::{BasicType, ObjectId, TraceSerial, be_value};

use crate::objects::collections::{self, Collections};
use crate::objects::hiding;
use crate::objects::meaning::{Meaning, ThrowableStack};
use crate::objects::reader::{Bits, ClassObject, Instance, ObjectReader, ObjectRecord, PrimitiveArray};
use crate::paths::steps::View;

pub use class::{ClassCandidate, ClassFound, DeclaredField, ShownClass, find_class};
pub use data::{Data, TextForm};

/// An object, without its elements if it is an array.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ShownObject {
    /// Object ID.
    pub object: ObjectId,
    /// Kind of the object.
    pub kind: ObjectKind,
    /// Class in Java source form.
    pub class: Option<String>,
    /// Object ID of the class object of its class.
    pub class_object: Option<ObjectId>,
    /// Short text that identifies the object within its class.
    pub label: Option<String>,
    /// Shallow size.
    pub shallow_bytes: Option<u64>,
    /// Retained size; `None` in texts, and if it is unreachable.
    pub retained_bytes: Option<u64>,
    /// Serial number of its allocation trace.
    pub trace: TraceSerial,
    /// Length of an array.
    pub length: Option<u64>,
    /// Fields; for a class object, its references and static fields.
    pub fields: Vec<ShownPart>,
    /// Roots that refer to it.
    pub roots: Vec<RootShown>,
    /// Contents, if it is a known collection.
    pub contents: Option<Contents>,
    /// Meaning, if its class is known.
    pub value: Option<Meaning>,
    /// Stack trace, if it is a Throwable.
    pub stack: Option<ThrowableStack>,
    /// Immediate dominator.
    pub dominator: Option<Dominator>,
    /// Loader of its class; for a class object, of the class that it represents.
    pub loader: Option<ShownLoader>,
    /// Details of the class, for a class object.
    pub of_class: Option<ShownClass>,
}

/// Immediate dominator of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dominator {
    /// Only the roots.
    Roots,
    /// An object.
    Object(ReferencedObject),
}

/// A class loader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShownLoader {
    /// The boot loader, which is not an object.
    Boot,
    /// An object.
    Object(ReferencedObject),
}

/// Contents of a collection.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    /// Kind of the collection.
    pub kind: collections::CollectionKind,
    /// Number of elements according to the collection, if it stores one.
    pub size: Option<u64>,
    /// The requested elements.
    pub entries: Vec<ContentEntry>,
    /// `true` if more elements follow.
    pub has_more: bool,
}

/// An element of a collection, or an entry of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct ContentEntry {
    /// Index in the order of the collection, from 0.
    pub index: u64,
    /// Key, in maps.
    pub key: Option<ShownValue>,
    /// Element, or value of a map.
    pub value: ShownValue,
}

/// Kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObjectKind {
    /// An instance.
    #[default]
    Instance,
    /// An array of references.
    ObjectArray,
    /// An array of primitives.
    PrimitiveArray,
    /// A class object.
    ClassObject,
}

impl ObjectKind {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::ObjectArray => "object_array",
            Self::PrimitiveArray => "primitive_array",
            Self::ClassObject => "class",
        }
    }
}

/// A field, an element, or another reference of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownPart {
    /// Name of the field, `[index]`, or `<super>`, `<loader>` and similar.
    pub name: String,
    /// Class that declares the field.
    pub class: Option<String>,
    /// Type of the value.
    pub kind: BasicType,
    /// Value of the field or element.
    pub value: ShownValue,
}

/// Value of a field or element.
#[derive(Debug, Clone, PartialEq)]
pub enum ShownValue {
    /// `boolean`
    Boolean(bool),
    /// `byte`, `short`, `int`, `long`
    Integer(i64),
    /// `char`
    Char(u16),
    /// `float`
    Float(f32),
    /// `double`
    Double(f64),
    /// A reference; `None` for null.
    Reference(Option<ReferencedObject>),
    /// A number that is hidden.
    Hidden,
}

/// A referenced object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferencedObject {
    /// Object ID.
    pub object: ObjectId,
    /// Class, if it is in the dump.
    pub class: Option<String>,
    /// Label of the object.
    pub label: Option<String>,
}

/// A GC root that refers to the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootShown {
    /// Kind of root.
    pub kind: hprof_values::RootKind,
    /// Thread of the root: its name, or its serial number.
    pub thread: Option<String>,
    /// Frame of the root, or the index of the frame.
    pub frame: Option<String>,
}

/// A referrer of the object shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referrer {
    /// Object ID.
    pub object: ObjectId,
    /// Class of the object.
    pub class: Option<String>,
    /// Label of the object.
    pub label: Option<String>,
    /// Name of the reference: `next`, `[5]`.
    pub reference: Option<String>,
}

impl ShownValue {
    /// Creates a value; `refer` converts an object ID.
    fn new(value: Bits, refer: impl FnOnce(ObjectId) -> ReferencedObject) -> Self {
        match value.kind {
            BasicType::Object => Self::Reference(ObjectId(value.bits).non_null().map(refer)),
            BasicType::Boolean => Self::Boolean(value.bits != 0),
            BasicType::Float => Self::Float(value.as_float()),
            BasicType::Double => Self::Double(f64::from_bits(value.bits)),
            BasicType::Char => {
                Self::Char(value.integer().and_then(|unit| u16::try_from(unit).ok()).unwrap_or(0))
            }
            _ => Self::Integer(value.integer().unwrap_or(0)),
        }
    }
}

/// Reader of the details of objects in a binary dump.
pub struct Shower<'a> {
    objects: ObjectReader<'a>,
    view: View<'a>,
}

impl<'a> Shower<'a> {
    /// Creates a reader for objects that `view` describes.
    pub fn new(dump: &Dump<'a>, view: View<'a>) -> Self {
        Self { objects: dump.objects, view }
    }

    fn graph(&self) -> &'a ObjectGraph {
        self.objects.graph
    }

    fn id_of(&self, object: ObjectIndex) -> Option<ObjectId> {
        self.graph().objects.addresses.id_of(object)
    }

    fn refer(&self, id: ObjectId) -> ReferencedObject {
        let step = self.graph().objects.addresses.index_of(id).map(|object| self.view.step(object, None));
        let (class, label) = step.map_or((None, None), |step| (step.class, step.label));
        ReferencedObject { object: id, class, label }
    }

    /// Returns a value. A number is hidden if values are hidden, unless it `is_shown`.
    fn value(&self, value: Bits, is_shown: impl FnOnce() -> bool) -> ShownValue {
        if value.kind != BasicType::Object && self.view.hides_values() && !is_shown() {
            return ShownValue::Hidden;
        }
        ShownValue::new(value, |id| self.refer(id))
    }

    /// Returns the details of an object.
    pub fn show(&self, object: ObjectIndex) -> ShownObject {
        let step = self.view.step(object, None);
        let tree = &self.graph().tree;
        let position = tree.reachable_position(object);
        let mut shown = ShownObject {
            object: step.id,
            class: step.class,
            class_object: self.graph().class_object_of(object).and_then(|class| self.id_of(class)),
            label: step.label,
            shallow_bytes: Some(step.shallow_bytes),
            retained_bytes: position.map(|at| tree.retained_bytes(at)),
            roots: self.roots(object),
            dominator: position.map(|at| self.dominator(at)),
            loader: self.loader(object),
            ..ShownObject::default()
        };
        // Omits the fields of a record that cannot be read; the damage is reported for the dump.
        let Some(record) = self.objects.record(object) else { return shown };
        shown.trace = record.trace();
        shown.length = record.length().map(Into::into);
        match record {
            ObjectRecord::Instance(record) => {
                shown.kind = ObjectKind::Instance;
                shown.fields = self.instance(object, &record);
            }
            ObjectRecord::ObjectArray(_) => shown.kind = ObjectKind::ObjectArray,
            ObjectRecord::PrimitiveArray(_) => shown.kind = ObjectKind::PrimitiveArray,
            ObjectRecord::Class(record) => {
                shown.kind = ObjectKind::ClassObject;
                shown.fields = self.class_object(object, &record);
                shown.of_class = self.class(object);
            }
        }
        shown
    }

    /// Returns the meaning of an instance of a known class, in at most `most` characters; and for a Throwable its
    /// stack, up to `frames` frames.
    pub fn meaning(
        &self,
        object: ObjectIndex,
        characters: usize,
        frames: usize,
    ) -> (Option<Meaning>, Option<ThrowableStack>) {
        match self.objects.record(object) {
            Some(ObjectRecord::Instance(_)) => {
                let meaning = match self.view.hides_values() {
                    false => self.view.meanings().meaning(object, characters),
                    true => self
                        .objects
                        .string(object)
                        .map(|text| Meaning { text: hiding::text(&text, characters, true), is_cut: false }),
                };
                (meaning, self.view.meanings().stack(object, frames))
            }
            _ => (None, None),
        }
    }

    fn dominator(&self, position: TreePosition) -> Dominator {
        let tree = &self.graph().tree;
        let above = tree.dominator(position).and_then(|above| self.id_of(tree.object_at(above)?));
        above.map_or(Dominator::Roots, |id| Dominator::Object(self.refer(id)))
    }

    fn loader(&self, object: ObjectIndex) -> Option<ShownLoader> {
        let class = self.view.edges.class_of_class_object(object).or(self.graph().objects.class(object))?;
        let class = self.objects.summary.class(class).filter(|class| class.is_dumped())?;
        Some(self.loader_of(class.loader.into()))
    }

    fn loader_of(&self, id: ObjectId) -> ShownLoader {
        if id.is_null() { ShownLoader::Boot } else { ShownLoader::Object(self.refer(id)) }
    }

    fn instance(&self, object: ObjectIndex, record: &Instance<'a>) -> Vec<ShownPart> {
        let summary = self.objects.summary;
        let class = self.graph().objects.class(object);
        let slots = class.into_iter().flat_map(|class| self.objects.slots(class));
        // A record that is too short has fewer fields.
        let values = slots.map_while(|slot| Some((slot, self.objects.value(record.fields, &slot)?)));
        let parts = values.map(|(slot, value)| ShownPart {
            name: slot.name.to_owned(),
            class: summary.class(slot.class).map(|class| summary.class_name(class).to_owned()),
            kind: slot.kind,
            value: self
                .value(value, || class.is_some_and(|class| hiding::is_slot_shown(summary, class, &slot))),
        });
        parts.collect()
    }

    fn class_object(&self, object: ObjectIndex, record: &ClassObject<'a>) -> Vec<ShownPart> {
        let summary = self.objects.summary;
        let mut parts = Vec::new();
        for (name, id) in [
            (SUPER, record.superclass()),
            (LOADER, record.loader()),
            (SIGNERS, record.signers()),
            (DOMAIN, record.protection_domain()),
        ] {
            if !id.is_null() {
                let value = ShownValue::Reference(Some(self.refer(id)));
                parts.push(ShownPart { name: name.to_owned(), class: None, kind: BasicType::Object, value });
            }
        }
        let number = self.view.edges.class_of_class_object(object);
        if let Some((number, class)) = number.and_then(|number| Some((number, summary.class(number)?))) {
            parts.extend(summary.statics(class).map(|(name, kind, bits)| ShownPart {
                name: name.to_owned(),
                class: Some(summary.class_name(class).to_owned()),
                kind,
                value: self.value(Bits { kind, bits }, || hiding::is_shown(summary, number, name, kind)),
            }));
        }
        parts.extend(record.constants().map(|(index, value)| ShownPart {
            name: constant_name(index.into()),
            class: None,
            kind: value.kind,
            value: self.value(value, || false),
        }));
        parts
    }

    fn roots(&self, object: ObjectIndex) -> Vec<RootShown> {
        let roots = self.view.edges.roots.of_object(object).filter(|root| !root.is_assumed);
        roots
            .map(|root| RootShown {
                kind: root.kind,
                thread: root.thread_serial.map(|serial| self.view.thread(serial, root.thread)),
                frame: self.view.frame(root),
            })
            .collect()
    }

    /// Returns the contents of a known collection: the elements from `start` up to `end` (exclusive).
    pub fn contents(&self, object: ObjectIndex, start: u64, end: u64) -> Option<Contents> {
        let collections = Collections::new(&self.objects);
        let collection = collections.collection(object)?;
        let (skip, count) = (start, end.saturating_sub(start));
        let mut entries =
            (0..).zip(collections.entries(&collection)).skip(usize::try_from(skip).unwrap_or(usize::MAX));
        let asked =
            entries.by_ref().take(usize::try_from(count).unwrap_or(usize::MAX)).map(|(index, entry)| {
                let key = entry.key.map(|key| self.value(key, || false));
                ContentEntry { index, key, value: self.value(entry.value, || false) }
            });
        let asked = asked.collect();
        let has_more = entries.next().is_some();
        Some(Contents { kind: collection.kind, size: collection.size, entries: asked, has_more })
    }

    /// Returns the elements of an array from `start` to `end` (exclusive), computed lazily.
    pub fn elements(
        &self,
        object: ObjectIndex,
        start: u64,
        end: u64,
    ) -> impl Iterator<Item = ShownPart> + '_ {
        let (kind, bytes) = match self.objects.record(object) {
            Some(ObjectRecord::ObjectArray(record)) => (BasicType::Object, record.elements),
            Some(ObjectRecord::PrimitiveArray(PrimitiveArray {
                element, elements: Some(elements), ..
            })) => (element, elements),
            _ => (BasicType::Byte, [].as_slice()),
        };
        let id_size = self.objects.summary.id_size();
        let first = usize::try_from(start).unwrap_or(usize::MAX);
        let count = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
        let rows = bytes.chunks_exact(kind.dump_bytes(id_size)).skip(first).take(count);
        (start..).zip(rows).filter_map(move |(index, element)| {
            let value = self.value(Bits { kind, bits: be_value(element, 0, kind, id_size)? }, || false);
            Some(ShownPart { name: format!("[{index}]"), class: None, kind, value })
        })
    }

    /// Iterates over the referrers of an object after the first few. Instances that refer to it as their class are
    /// skipped.
    pub fn referrers(&self, object: ObjectIndex, first: usize) -> impl Iterator<Item = Referrer> + '_ {
        self.graph().referrers(object).skip(first).map(move |from| {
            let step = self.view.step(from, None);
            let reference = self.view.edges.holding(from, object).to_string();
            Referrer {
                object: step.id,
                class: step.class,
                label: step.label,
                reference: Some(reference).filter(|text| !text.is_empty()),
            }
        })
    }
}

/// Reference from a class object to its superclass.
pub const SUPER: &str = "<super>";
/// Reference from a class object to its loader.
pub const LOADER: &str = "<loader>";
/// Reference from a class object to its signers.
pub const SIGNERS: &str = "<signers>";
/// Reference from a class object to its protection domain.
pub const DOMAIN: &str = "<protection domain>";

/// Returns the name of an entry of a class's constant pool.
pub fn constant_name(index: u64) -> String {
    format!("<constant {index}>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_type() {
        let refer = |object| ReferencedObject { object, class: None, label: None };
        let value = |kind, bits| ShownValue::new(Bits { kind, bits }, refer);
        assert_eq!(value(BasicType::Byte, 0xff), ShownValue::Integer(-1));
        assert_eq!(value(BasicType::Short, 0x8000), ShownValue::Integer(-32768));
        assert_eq!(value(BasicType::Int, 0xffff_fffe), ShownValue::Integer(-2));
        assert_eq!(value(BasicType::Long, u64::MAX), ShownValue::Integer(-1));
        assert_eq!(value(BasicType::Char, 0x41), ShownValue::Char(0x41));
        assert_eq!(value(BasicType::Char, 0xd800), ShownValue::Char(0xd800));
        assert_eq!(value(BasicType::Float, 0x3f80_0000), ShownValue::Float(1.0));
        assert_eq!(value(BasicType::Double, 0xbff0_0000_0000_0000), ShownValue::Double(-1.0));
        assert_eq!(value(BasicType::Boolean, 1), ShownValue::Boolean(true));
        assert_eq!(value(BasicType::Object, 0), ShownValue::Reference(None));
        assert_eq!(value(BasicType::Object, 9), ShownValue::Reference(Some(refer(ObjectId(9)))));
    }
}
