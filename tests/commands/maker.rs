//! Dumps that are made record by record, as large and as odd as a test wants them.

use crate::kit::dump::Dump;
use hprof_writer::{ClassDump, DumpWriter, HeapWriter, IdSize, Root, Type, Value, Version};

// Classes that all have; others go on from `CLASS`.
pub const OBJECT: u64 = 0x1000;
pub const ARRAY: u64 = 0x1200;
pub const CLASS: u64 = 0x10_0000;

/// Address of the first object.
pub const FIRST: u64 = 0x1_0000_0000;
/// Names of fields are numbered from 1, those of classes from here on.
const CLASS_NAMES: u64 = 1000;

/// Makes a dump.
pub struct Maker {
    pub out: DumpWriter,
    pub heap: HeapWriter,
    classes: u32,
    next: u64,
}

impl Maker {
    /// Creates a heap with java.lang.Object, an array of it, and fields of these names, numbered from 1.
    pub fn new(names: &[&str]) -> Self {
        let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
        for (id, name) in (1..CLASS_NAMES).zip(names) {
            out.string(id, name);
        }
        let mut maker = Self { out, heap: HeapWriter::new(IdSize::Eight), classes: 0, next: FIRST };
        maker.class(OBJECT, "java/lang/Object", 0, &[]);
        maker.class(ARRAY, "[Ljava/lang/Object;", OBJECT, &[]);
        maker
    }

    pub fn class(&mut self, id: u64, name: &str, superclass: u64, fields: &[(u64, Type)]) {
        self.class_of(name, &ClassDump { id, superclass, fields, ..ClassDump::default() });
    }

    pub fn class_of(&mut self, name: &str, class: &ClassDump<'_>) {
        self.classes += 1;
        let number = CLASS_NAMES + u64::from(self.classes);
        self.out.string(number, name);
        self.out.load_class(self.classes, class.id, 0, number);
        self.heap.class_dump(class);
    }

    /// The ID of the object that comes next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Reserves the address of an object with `bytes` bytes after its header.
    pub fn place(&mut self, bytes: usize) -> u64 {
        let id = self.next;
        self.next += (bytes as u64 + 16).next_multiple_of(8);
        id
    }

    pub fn instance(&mut self, class: u64, values: &[Value]) -> u64 {
        let id = self.place(48);
        self.heap.instance(id, 0, class, values);
        id
    }

    pub fn array(&mut self, elements: &[u64]) -> u64 {
        self.array_of(ARRAY, elements)
    }

    pub fn array_of(&mut self, class: u64, elements: &[u64]) -> u64 {
        let id = self.place(elements.len() * 8);
        self.heap.object_array(id, 0, class, elements);
        id
    }

    pub fn root(&mut self, object: u64) {
        self.heap.root(object, Root::StickyClass);
    }

    pub fn dump(mut self) -> Dump {
        self.out.heap_segment(&self.heap);
        self.out.heap_dump_end();
        let dump = Dump::at(None);
        self.out.finish().write_file(&dump.path).unwrap();
        dump
    }
}
