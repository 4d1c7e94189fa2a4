//! The body of a HEAP DUMP or HEAP DUMP SEGMENT: every sub-record, field by field.
//!
//! Each method returns the start of its sub-record, relative to the start of the body. Nothing is
//! checked: wrong counts are written with the `_stating` methods or with [`HeapWriter::raw`].

use super::basic::{Elements, IdSize, Root, Type, Value};
use super::sink::Sink;

/// Start of a sub-record: offset of its tag from the start of the heap record's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubAt(pub u64);

/// A sub-record that was written, relative to the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) tag: u8,
    pub(super) id: u64,
    pub(super) at: u64,
    pub(super) len: u64,
}

/// Contents of a CLASS DUMP. `..Default::default()` fills fields that do not matter to a test.
#[derive(Debug, Clone, Default)]
pub struct ClassDump<'a> {
    /// ID of the class object.
    pub id: u64,
    /// Stack trace serial number.
    pub trace: u32,
    /// ID of the superclass, 0 for none.
    pub superclass: u64,
    /// ID of the class loader.
    pub loader: u64,
    /// ID of the signers.
    pub signers: u64,
    /// ID of the protection domain.
    pub domain: u64,
    /// The two reserved IDs.
    pub reserved: [u64; 2],
    /// Stated instance size in bytes.
    pub instance_size: u32,
    /// (constant-pool index, value)
    pub constants: &'a [(u16, Value)],
    /// (string ID of the name, value)
    pub statics: &'a [(u64, Value)],
    /// (string ID of the name, type), without those of the superclass
    pub fields: &'a [(u64, Type)],
}

/// Writer for the sub-records of one heap record.
#[derive(Debug, Clone)]
pub struct HeapWriter {
    sink: Sink,
    marks: Vec<Mark>,
}

impl HeapWriter {
    /// Creates an empty body.
    pub fn new(id_size: IdSize) -> Self {
        Self { sink: Sink::new(id_size), marks: Vec::new() }
    }

    /// Returns the number of bytes so far: the start of the next sub-record.
    pub fn len(&self) -> u64 {
        self.sink.len()
    }

    /// Returns `true` if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.sink.is_empty()
    }

    /// Returns the bytes so far.
    pub fn sink(&self) -> &Sink {
        &self.sink
    }

    pub(super) fn marks(&self) -> &[Mark] {
        &self.marks
    }

    fn sub(&mut self, tag: u8, id: u64, fill: impl FnOnce(&mut Sink)) -> SubAt {
        let at = self.sink.len();
        self.sink.u1(tag);
        fill(&mut self.sink);
        self.marks.push(Mark { tag, id, at, len: self.sink.len() - at });
        SubAt(at)
    }

    /// Writes a root of any kind.
    pub fn root(&mut self, object: u64, root: Root) -> SubAt {
        self.sub(root.tag(), object, |out| {
            out.id(object);
            match root {
                Root::Unknown
                | Root::StickyClass
                | Root::MonitorUsed
                | Root::InternedString
                | Root::Finalizing
                | Root::Debugger
                | Root::ReferenceCleanup
                | Root::VmInternal
                | Root::Unreachable => {}
                Root::JniGlobal { reference } => {
                    out.id(reference);
                }
                Root::JniLocal { thread, frame } | Root::JavaFrame { thread, frame } => {
                    out.u4(thread).raw(&frame.to_be_bytes());
                }
                Root::NativeStack { thread } | Root::ThreadBlock { thread } => {
                    out.u4(thread);
                }
                Root::ThreadObject { thread, trace } => {
                    out.u4(thread).u4(trace);
                }
                Root::JniMonitor { thread, depth } => {
                    out.u4(thread).u4(depth);
                }
            }
        })
    }

    /// Writes Android's HEAP DUMP INFO (0xFE): the following objects belong to this heap.
    pub fn heap_info(&mut self, heap: u32, name: u64) -> SubAt {
        self.sub(0xFE, name, |out| {
            out.u4(heap).id(name);
        })
    }

    /// Writes CLASS DUMP (0x20).
    ///
    /// # Panics
    /// If there are more than 65,535 constants, statics or fields.
    pub fn class_dump(&mut self, class: &ClassDump<'_>) -> SubAt {
        let count = |n: usize| u16::try_from(n).expect("a class counts its members in two bytes");
        self.sub(0x20, class.id, |out| {
            out.id(class.id).u4(class.trace).id(class.superclass).id(class.loader);
            out.id(class.signers).id(class.domain).id(class.reserved[0]).id(class.reserved[1]);
            out.u4(class.instance_size);
            out.u2(count(class.constants.len()));
            for (index, value) in class.constants {
                out.u2(*index).u1(value.ty().code());
                value.put(out);
            }
            out.u2(count(class.statics.len()));
            for (name, value) in class.statics {
                out.id(*name).u1(value.ty().code());
                value.put(out);
            }
            out.u2(count(class.fields.len()));
            for (name, ty) in class.fields {
                out.id(*name).u1(ty.code());
            }
        })
    }

    /// Writes INSTANCE DUMP (0x21). Values: the class's own fields, then its superclass's, and so on.
    pub fn instance(&mut self, id: u64, trace: u32, class: u64, values: &[Value]) -> SubAt {
        let mut body = Sink::new(self.sink.id_size());
        for value in values {
            value.put(&mut body);
        }
        let len = u32::try_from(body.len()).expect("field bytes are counted in four bytes");
        self.sub(0x21, id, |out| {
            out.id(id).u4(trace).id(class).u4(len).append(&body);
        })
    }

    /// Writes INSTANCE DUMP (0x21) with any bytes, and any stated length.
    pub fn instance_stating(&mut self, id: u64, trace: u32, class: u64, stated: u32, bytes: &[u8]) -> SubAt {
        self.sub(0x21, id, |out| {
            out.id(id).u4(trace).id(class).u4(stated).raw(bytes);
        })
    }

    /// Writes OBJECT ARRAY DUMP (0x22); `class` is the array's class, not that of its elements.
    pub fn object_array(&mut self, id: u64, trace: u32, class: u64, elements: &[u64]) -> SubAt {
        let count = u32::try_from(elements.len()).expect("more elements than a Java array can have");
        self.object_array_stating(id, trace, class, count, elements)
    }

    /// Writes OBJECT ARRAY DUMP (0x22) with any stated number of elements.
    pub fn object_array_stating(
        &mut self,
        id: u64,
        trace: u32,
        class: u64,
        stated: u32,
        elements: &[u64],
    ) -> SubAt {
        self.sub(0x22, id, |out| {
            out.id(id).u4(trace).u4(stated).id(class);
            for element in elements {
                out.id(*element);
            }
        })
    }

    /// Writes OBJECT ARRAY DUMP (0x22) of nulls, as a hole.
    pub fn null_array(&mut self, id: u64, trace: u32, class: u64, count: u32) -> SubAt {
        self.sub(0x22, id, |out| {
            let element = u64::from(out.id_size().bytes());
            out.id(id).u4(trace).u4(count).id(class).hole(u64::from(count) * element);
        })
    }

    /// Writes PRIMITIVE ARRAY DUMP (0x23), or Android's without data (0xC3) for [`Elements::NoData`].
    pub fn prim_array(&mut self, id: u64, trace: u32, elements: &Elements) -> SubAt {
        let tag = if matches!(elements, Elements::NoData(..)) { 0xC3 } else { 0x23 };
        self.sub(tag, id, |out| {
            out.id(id).u4(trace).u4(elements.count()).u1(elements.ty().code());
            elements.put(out);
        })
    }

    /// Writes PRIMITIVE ARRAY DUMP (0x23) with any element type, any stated number of elements, any
    /// bytes.
    pub fn prim_array_stating(
        &mut self,
        id: u64,
        trace: u32,
        stated: u32,
        type_code: u8,
        bytes: &[u8],
    ) -> SubAt {
        self.sub(0x23, id, |out| {
            out.id(id).u4(trace).u4(stated).u1(type_code).raw(bytes);
        })
    }

    /// Writes unchanged bytes: unknown tags, truncated sub-records, anything.
    pub fn raw(&mut self, bytes: &[u8]) -> SubAt {
        let at = self.sink.len();
        self.sink.raw(bytes);
        SubAt(at)
    }

    /// Appends all sub-records of another body.
    pub fn append(&mut self, other: &Self) -> SubAt {
        let base = self.sink.len();
        self.marks.extend(other.marks.iter().map(|m| Mark { at: base + m.at, ..*m }));
        self.sink.append(&other.sink);
        SubAt(base)
    }
}
