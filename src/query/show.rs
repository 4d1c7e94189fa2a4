//! One object: its class, its sizes, its fields or elements, what refers to it.
//!
//! Of a binary dump; `profile::text::show` answers the same of a text report.

use crate::hprof::class_dump::ClassDump;
use crate::hprof::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use crate::hprof::{BasicType, IdSize};
use crate::index::ObjectGraph;
use crate::index::summary::Summary;

use super::collections::{self, Collections};
use super::objects::{Bits, Objects};
use super::path_view::View;

/// An object, without its elements if it is an array.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shown {
    /// Object id.
    pub object: u64,
    /// What it is.
    pub kind: Kind,
    /// Its class in Java source form.
    pub class: Option<String>,
    /// Object id of its class's class object.
    pub class_object: Option<u64>,
    /// A few words that tell it from others of its class.
    pub label: Option<String>,
    /// What it takes itself.
    pub shallow_bytes: Option<u64>,
    /// What it retains; `None` in texts, and if no root leads to it.
    pub retained_bytes: Option<u64>,
    /// Serial number of the trace where it was allocated.
    pub trace: u32,
    /// Elements of an array.
    pub length: Option<u64>,
    /// Its fields, or what a class object refers to and its static fields.
    pub fields: Vec<Part>,
    /// Why it is a root.
    pub roots: Vec<RootShown>,
    /// What it holds, if it is a collection that is known.
    pub contents: Option<Contents>,
}

/// What a collection holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    /// What the collection is.
    pub kind: collections::Kind,
    /// How many elements it says it has, if it says so.
    pub size: Option<u64>,
    /// The elements that were asked for.
    pub entries: Vec<ContentEntry>,
}

/// An element of a collection.
#[derive(Debug, Clone, PartialEq)]
pub struct ContentEntry {
    /// Its place, from 0, in the order of the collection.
    pub index: u64,
    /// The key, in maps.
    pub key: Option<Value>,
    /// The element, or the value.
    pub value: Value,
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
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

impl Kind {
    /// The name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::ObjectArray => "object array",
            Self::PrimitiveArray => "primitive array",
            Self::ClassObject => "class object",
        }
    }
}

/// A field, an element, or what else an object holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Name of the field, `[index]`, or `<super>`, `<loader>` and the like.
    pub name: String,
    /// The class that declares the field.
    pub class: Option<String>,
    /// The type.
    pub kind: BasicType,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
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
    Reference(Option<Referred>),
}

/// An object that is referred to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referred {
    /// Object id.
    pub object: u64,
    /// Its class, if it is in the dump.
    pub class: Option<String>,
    /// Its label.
    pub label: Option<String>,
}

/// Why an object is a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootShown {
    /// The kind of root.
    pub kind: crate::hprof::RootKind,
    /// The thread that it belongs to: its name, or its serial number.
    pub thread: Option<String>,
    /// The frame in which it lies, or the frame's number.
    pub frame: Option<String>,
}

/// An object that refers to the one that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referrer {
    /// Object id.
    pub object: u64,
    /// Its class.
    pub class: Option<String>,
    /// Its label.
    pub label: Option<String>,
    /// How it refers: `next`, `[5]`.
    pub reference: Option<String>,
}

impl Value {
    /// A value of `kind` at the start of `bytes`; an id of a reference that `refer` describes.
    fn read(
        bytes: &[u8],
        kind: BasicType,
        id_size: IdSize,
        refer: impl FnOnce(u64) -> Referred,
    ) -> Option<Self> {
        let len = kind.dump_bytes(id_size);
        let bits = bytes.get(..len)?.iter().fold(0u64, |bits, byte| (bits << 8) | u64::from(*byte));
        Some(Self::of_bits(bits, kind, refer))
    }

    #[allow(clippy::cast_possible_truncation)] // The upper bits of smaller types are zero.
    fn of_bits(bits: u64, kind: BasicType, refer: impl FnOnce(u64) -> Referred) -> Self {
        match kind {
            BasicType::Object => Self::Reference((bits != 0).then(|| refer(bits))),
            BasicType::Boolean => Self::Boolean(bits != 0),
            BasicType::Char => Self::Char(bits as u16),
            BasicType::Float => Self::Float(f32::from_bits(bits as u32)),
            BasicType::Double => Self::Double(f64::from_bits(bits)),
            BasicType::Byte => Self::Integer((bits as u8).cast_signed().into()),
            BasicType::Short => Self::Integer((bits as u16).cast_signed().into()),
            BasicType::Int => Self::Integer((bits as u32).cast_signed().into()),
            BasicType::Long => Self::Integer(bits.cast_signed()),
        }
    }
}

/// Shows objects of a binary dump.
pub struct Shower<'a> {
    summary: &'a Summary,
    graph: &'a ObjectGraph,
    bytes: &'a [u8],
    view: View<'a>,
}

impl<'a> Shower<'a> {
    /// Shows objects that `view` describes; `bytes` are the dump's ([`crate::index::Heap::bytes`]).
    pub fn new(summary: &'a Summary, graph: &'a ObjectGraph, bytes: &'a [u8], view: View<'a>) -> Self {
        Self { summary, graph, bytes, view }
    }

    fn record<V: HeapVisitor<'a>>(&self, object: u32, visitor: &mut V) -> Option<()> {
        let id_size = self.summary.id_size();
        let at = usize::try_from(self.graph.objects.offset(self.bytes, id_size, object)?).ok()?;
        heap::visit_one(self.bytes, id_size, at, self.bytes.len(), visitor).ok()?;
        Some(())
    }

    fn id_of(&self, object: u32) -> Option<u64> {
        self.graph.objects.addresses.id_of(object)
    }

    fn refer(&self, id: u64) -> Referred {
        let step = self.graph.objects.addresses.index_of(id).map(|object| self.view.step(object, None));
        let (class, label) = step.map_or((None, None), |step| (step.class, step.label));
        Referred { object: id, class, label }
    }

    /// An object, by object index.
    pub fn show(&self, object: u32) -> Shown {
        let step = self.view.step(object, None);
        let tree = &self.graph.tree;
        let mut shown = Shown {
            object: step.id,
            class: step.class,
            class_object: self.graph.class_object_of(object).and_then(|class| self.id_of(class)),
            label: step.label,
            shallow_bytes: Some(step.shallow_bytes),
            retained_bytes: tree.reachable_position(object).map(|at| tree.retained_bytes(at)),
            roots: self.roots(object),
            ..Shown::default()
        };
        // A record that cannot be read leaves its fields out; the dump says that it is damaged.
        let _ = self.record(object, &mut Describe { shower: self, object, shown: &mut shown });
        shown
    }

    fn roots(&self, object: u32) -> Vec<RootShown> {
        let roots = self.view.edges.roots.of_object(object).filter(|root| !root.is_assumed);
        roots
            .map(|root| RootShown {
                kind: root.kind,
                thread: root.thread_serial.map(|serial| self.view.thread(serial, root.thread)),
                frame: self.view.frame(root),
            })
            .collect()
    }

    /// What an object holds, if it is a collection that is known: the elements from `start` on and before `end`.
    pub fn contents(&self, object: u32, start: u64, end: u64) -> Option<Contents> {
        let objects = Objects::new(self.summary, self.graph, self.bytes);
        let collections = Collections::new(&objects);
        let collection = collections.collection(object)?;
        let (skip, count) = (start, end.saturating_sub(start));
        let entries =
            (0..).zip(collections.entries(&collection)).skip(usize::try_from(skip).unwrap_or(usize::MAX));
        let value = |bits: Bits| Value::of_bits(bits.bits, bits.kind, |id| self.refer(id));
        let entries = entries.take(usize::try_from(count).unwrap_or(usize::MAX)).map(|(index, entry)| {
            ContentEntry { index, key: entry.key.map(value), value: value(entry.value) }
        });
        Some(Contents { kind: collection.kind, size: collection.size, entries: entries.collect() })
    }

    /// The elements of an array, those from `start` on and before `end`, made while they are taken.
    pub fn elements(&self, object: u32, start: u64, end: u64) -> impl Iterator<Item = Part> + '_ {
        let mut found = Elements::default();
        let _ = self.record(object, &mut found);
        let Elements { kind, bytes } = found;
        let id_size = self.summary.id_size();
        let width = kind.dump_bytes(id_size);
        let first = usize::try_from(start).unwrap_or(usize::MAX);
        let count = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
        let rows = bytes.chunks_exact(width).skip(first).take(count);
        (start..).zip(rows).filter_map(move |(index, element)| {
            let value = Value::read(element, kind, id_size, |id| self.refer(id))?;
            Some(Part { name: format!("[{index}]"), class: None, kind, value })
        })
    }

    /// The objects that refer to an object, made while they are taken. Instances that refer to it as their class are
    /// left out.
    pub fn referrers(&self, object: u32) -> impl Iterator<Item = Referrer> + '_ {
        self.graph.referrers(object).map(move |from| {
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

/// Fills in what the record says.
struct Describe<'s, 'a> {
    shower: &'s Shower<'a>,
    object: u32,
    shown: &'s mut Shown,
}

impl Describe<'_, '_> {
    fn part(&mut self, name: &str, class: Option<&str>, kind: BasicType, value: Value) {
        let class = class.map(str::to_owned);
        self.shown.fields.push(Part { name: name.to_owned(), class, kind, value });
    }

    fn reference(&mut self, name: &str, id: u64) {
        if id != 0 {
            let value = Value::Reference(Some(self.shower.refer(id)));
            self.part(name, None, BasicType::Object, value);
        }
    }
}

impl<'a> HeapVisitor<'a> for Describe<'_, 'a> {
    fn instance(&mut self, record: Instance<'a>) {
        let Shower { summary, graph, .. } = *self.shower;
        (self.shown.kind, self.shown.trace) = (Kind::Instance, record.trace);
        let mut class = graph.objects.class(self.object);
        let mut rest = record.fields;
        // A chain longer than there are classes is a cycle.
        for _ in 0..summary.classes().len() {
            let Some(row) = class.and_then(|class| summary.class(class)) else { return };
            for (name, kind) in summary.fields(row) {
                let shower = self.shower;
                let value = Value::read(rest, kind, summary.id_size(), |id| shower.refer(id));
                let Some(value) = value else { return };
                self.part(name, Some(summary.class_name(row)), kind, value);
                rest = rest.get(kind.dump_bytes(summary.id_size())..).unwrap_or_default();
            }
            class = summary.super_class(row);
        }
    }

    fn object_array(&mut self, record: ObjectArray<'a>) {
        (self.shown.kind, self.shown.trace) = (Kind::ObjectArray, record.trace);
        self.shown.length = Some(record.length.into());
    }

    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        (self.shown.kind, self.shown.trace) = (Kind::PrimitiveArray, record.trace);
        self.shown.length = Some(record.length.into());
    }

    fn class(&mut self, record: ClassDump<'a>) {
        (self.shown.kind, self.shown.trace) = (Kind::ClassObject, record.trace);
        self.reference(SUPER, record.super_class);
        self.reference(LOADER, record.loader);
        self.reference(SIGNERS, record.signers);
        self.reference(DOMAIN, record.protection_domain);
        let shower = self.shower;
        let class = shower.view.edges.class_of_class_object(self.object);
        if let Some(class) = class.and_then(|class| shower.summary.class(class)) {
            for (name, kind, bits) in shower.summary.statics(class) {
                let value = Value::of_bits(bits, kind, |id| shower.refer(id));
                self.part(name, Some(shower.summary.class_name(class)), kind, value);
            }
        }
        for constant in record.constants() {
            let value = Value::of_bits(constant.value, constant.kind, |id| shower.refer(id));
            self.part(&constant_name(constant.index.into()), None, constant.kind, value);
        }
    }
}

/// From a class object to its superclass.
pub(super) const SUPER: &str = "<super>";
/// From a class object to its loader.
pub(super) const LOADER: &str = "<loader>";
/// From a class object to its signers.
pub(super) const SIGNERS: &str = "<signers>";
/// From a class object to its protection domain.
pub(super) const DOMAIN: &str = "<protection domain>";

/// An entry of a class's constant pool.
pub(super) fn constant_name(index: u64) -> String {
    format!("<constant {index}>")
}

/// The elements of an array.
struct Elements<'a> {
    kind: BasicType,
    bytes: &'a [u8],
}

impl Default for Elements<'_> {
    fn default() -> Self {
        Self { kind: BasicType::Byte, bytes: &[] }
    }
}

impl<'a> HeapVisitor<'a> for Elements<'a> {
    fn object_array(&mut self, record: ObjectArray<'a>) {
        *self = Self { kind: BasicType::Object, bytes: record.elements };
    }

    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        *self = Self { kind: record.element, bytes: record.elements.unwrap_or_default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_type() {
        let refer = |object| Referred { object, class: None, label: None };
        let read = |bytes: &[u8], kind| Value::read(bytes, kind, IdSize::Four, refer);
        assert_eq!(read(&[0xff], BasicType::Byte), Some(Value::Integer(-1)));
        assert_eq!(read(&[0x80, 0], BasicType::Short), Some(Value::Integer(-32768)));
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xfe, 7], BasicType::Int), Some(Value::Integer(-2)));
        assert_eq!(read(&[0xff; 8], BasicType::Long), Some(Value::Integer(-1)));
        assert_eq!(read(&[0, 0x41], BasicType::Char), Some(Value::Char(0x41)));
        assert_eq!(read(&[0x3f, 0x80, 0, 0], BasicType::Float), Some(Value::Float(1.0)));
        assert_eq!(read(&[0xbf, 0xf0, 0, 0, 0, 0, 0, 0], BasicType::Double), Some(Value::Double(-1.0)));
        assert_eq!(read(&[1], BasicType::Boolean), Some(Value::Boolean(true)));
        assert_eq!(read(&[0; 4], BasicType::Object), Some(Value::Reference(None)));
        assert_eq!(read(&[0, 0, 0, 9], BasicType::Object), Some(Value::Reference(Some(refer(9)))));
        assert_eq!(read(&[0; 3], BasicType::Object), None);
    }
}
