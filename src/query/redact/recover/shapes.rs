//! The structure of the classes of a dump: their names, fields and superclasses.

use hprof_index::remains::{DumpPart, HeapRemains};
use hprof_index::storage::id_map::IdMap;
use hprof_parser::class_dump::ClassDump;
use hprof_values::{BasicType, ObjectId};

/// Maximum number of fields of all classes that are listed.
const MAX_MEMBERS: usize = 4 << 20;

/// The classes of a dump, with the files and records from which they were read.
pub(super) struct DumpClasses<'s, 'a> {
    pub(super) parts: &'s [DumpPart<'a>],
    pub(super) heaps: &'s [HeapRemains],
    pub(super) shapes: Vec<ClassShape<'a>>,
}

impl<'s, 'a> DumpClasses<'s, 'a> {
    /// Reads the classes of all files.
    pub(super) fn new(parts: &'s [DumpPart<'a>], heaps: &'s [HeapRemains]) -> Self {
        Self { parts, heaps, shapes: shapes(parts, heaps) }
    }
}

/// A member of a class: its name, if it is in the dump, its type, and the value of a static field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member<'a> {
    pub(super) string: u64,
    pub(super) name: Option<&'a [u8]>,
    pub(super) kind: BasicType,
    pub(super) value: u64,
}

/// Name, members and superclass of a class.
#[derive(Debug, Clone)]
pub(super) struct ClassShape<'a> {
    pub(super) id: ObjectId,
    pub(super) superclass: Option<usize>,
    pub(super) super_id: ObjectId,
    pub(super) is_of_boot_loader: bool,
    /// Name as stored in the dump.
    pub(super) name: Option<&'a [u8]>,
    /// `true` if arrays have this class.
    pub(super) is_array: bool,
    pub(super) fields: Vec<Member<'a>>,
    pub(super) statics: Vec<Member<'a>>,
    /// Value of the static field `serialVersionUID`.
    pub(super) serial_version: Option<u64>,
    /// `true` if its members are listed.
    pub(super) is_listed: bool,
}

/// Name of the static field that identifies the version of a class.
const SERIAL_VERSION: &[u8] = b"serialVersionUID";

/// Returns the classes of all files without duplicates, in the order of their class dumps.
fn shapes<'a>(parts: &[DumpPart<'a>], heaps: &[HeapRemains]) -> Vec<ClassShape<'a>> {
    let string = |id: u64| parts.iter().find_map(|part| part.string(id));
    let names: IdMap<ObjectId, u64> =
        parts.iter().flat_map(DumpPart::class_loads).map(|load| (load.id, load.name)).collect();
    let mut shapes: Vec<ClassShape<'a>> = Vec::new();
    let mut members = 0;
    let mut numbers: IdMap<ObjectId, usize> = IdMap::default();
    let arrays = |id: &ObjectId| heaps.iter().any(|heap| heap.array_classes.contains(id));
    for (part, heap) in parts.iter().zip(heaps) {
        for class in heap.class_dumps.iter().filter_map(|offset| part.class_dump(*offset)) {
            if class.id.is_null() || numbers.contains_key(&class.id) {
                continue;
            }
            numbers.insert(class.id, shapes.len());
            let name = names.get(&class.id).and_then(|name| string(*name)).filter(|name| !name.is_empty());
            let mut shape = shape(&class, name, arrays(&class.id), &string);
            members += shape.fields.len() + shape.statics.len();
            if members > MAX_MEMBERS {
                (shape.fields, shape.statics, shape.is_listed) = (Vec::new(), Vec::new(), false);
            }
            shapes.push(shape);
        }
    }
    for shape in &mut shapes {
        shape.superclass = numbers.get(&shape.super_id).copied();
    }
    shapes
}

fn shape<'a>(
    class: &ClassDump<'a>,
    name: Option<&'a [u8]>,
    is_array: bool,
    string: &impl Fn(u64) -> Option<&'a [u8]>,
) -> ClassShape<'a> {
    let member = |name, kind, value| Member { string: name, name: string(name), kind, value };
    let mut serial_version = None;
    let mut statics = Vec::new();
    for field in class.statics() {
        let member = member(field.name, field.kind, field.value);
        if member.name == Some(SERIAL_VERSION) {
            serial_version = Some(field.value);
        }
        // Pseudo fields exist depending on the code that has run.
        if !member.name.is_some_and(|name| name.starts_with(b"<")) {
            statics.push(member);
        }
    }
    ClassShape {
        id: class.id,
        superclass: None,
        super_id: class.super_class,
        is_of_boot_loader: class.loader.is_null(),
        name,
        is_array,
        fields: class.fields().map(|field| member(field.name, field.kind, 0)).collect(),
        statics,
        serial_version,
        is_listed: true,
    }
}
