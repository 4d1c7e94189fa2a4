//! Conversion of visited objects to binary records or lines of text.

use hprof_format::{escape, heap_binary as binary, heap_text as text};
use rustc_hash::FxHashMap;

use super::fields::{ClassData, Layout, Layouts, field_bytes};
use super::records::SubRecordBuffer;
use crate::names;
use crate::output::sections::basic_type;
use crate::record::traces::FIRST_SERIAL;

/// String IDs of field names in binary dumps.
pub type FieldNames = FxHashMap<String, u64>;

/// Format of a heap dump.
pub enum HeapFormat {
    /// Binary records, with the string IDs of field names.
    Binary(FieldNames),
    /// Lines of text, with the sizes of referenced or written objects by object ID.
    Text(FxHashMap<u64, u64>),
}

/// Writer of the objects of a heap dump.
pub struct Writer<'a, 's> {
    out: SubRecordBuffer<'s>,
    format: HeapFormat,
    /// Record under construction, in the binary format.
    pub record: Vec<u8>,
    layouts: &'a Layouts,
}

impl<'a, 's> Writer<'a, 's> {
    /// Creates a writer without output yet.
    pub fn new(out: SubRecordBuffer<'s>, format: HeapFormat, layouts: &'a Layouts) -> Self {
        Self { out, format, record: Vec::new(), layouts }
    }

    /// Returns `true` if it writes binary records.
    pub fn is_binary(&self) -> bool {
        matches!(self.format, HeapFormat::Binary(_))
    }

    /// Stores the size of an object for the text format.
    #[inline]
    pub fn record_size(&mut self, id: u64, size: u64) {
        if let HeapFormat::Text(sizes) = &mut self.format {
            sizes.insert(id, size);
        }
    }

    /// Ends the output; `whole` is `true` if it is complete.
    pub fn end(self, whole: bool) -> super::records::RecordTarget<'s> {
        self.out.end(whole)
    }

    /// Ends the current record, and writes it in the format of the dump.
    pub fn finish(&mut self) {
        match &mut self.format {
            HeapFormat::Binary(_) => self.out.bytes.extend_from_slice(&self.record),
            HeapFormat::Text(sizes) => object_text(&mut self.out.bytes, &self.record, sizes, self.layouts),
        }
        self.record.clear();
        self.out.record();
    }

    /// Ends the header of a large record; `bytes` bytes follow through [`Self::part`].
    pub fn begin_large(&mut self, bytes: u32) {
        let head = u32::try_from(self.record.len()).unwrap_or(0);
        self.out.large(head.saturating_add(bytes));
        self.out.part(&self.record);
        self.record.clear();
    }

    /// Appends bytes to a large record.
    pub fn part(&mut self, bytes: &[u8]) {
        self.out.part(bytes);
    }

    /// Ends a large record.
    pub fn finish_large(&mut self) {
        self.record.clear();
    }

    /// Writes a root.
    pub fn root(&mut self, id: u64, root: binary::Root) {
        match &self.format {
            HeapFormat::Binary(_) => binary::root(&mut self.out.bytes, id, root),
            HeapFormat::Text(_) => {
                let name;
                let kind = match root {
                    // JVMTI has no roots of these kinds but the first.
                    binary::Root::Unknown | binary::Root::Other(_) | binary::Root::JniMonitor(..) => {
                        text::RootLine::Unknown
                    }
                    binary::Root::NativeStack(thread) => text::RootLine::NativeStack(thread),
                    binary::Root::ThreadBlock(thread) => text::RootLine::ThreadBlock(thread),
                    binary::Root::JniGlobal(reference) => text::RootLine::JniGlobal(reference, FIRST_SERIAL),
                    binary::Root::JniLocal(thread, frame) => text::RootLine::JniLocal(thread, frame),
                    binary::Root::JavaFrame(thread, frame) => text::RootLine::JavaFrame(thread, frame),
                    binary::Root::MonitorUsed => text::RootLine::BusyMonitor,
                    binary::Root::Thread(thread, trace) => text::RootLine::Thread(thread, trace),
                    binary::Root::StickyClass => match self.layouts.by_id.get(&id).and_then(name_of) {
                        Some(class) => {
                            name = class;
                            text::RootLine::SystemClass(&name)
                        }
                        // A root of this kind that is not a class.
                        None => text::RootLine::Unknown,
                    },
                };
                text::root(&mut self.out.bytes, id, kind);
            }
        }
        self.out.record();
    }

    /// Writes a class object with the contents of its static fields.
    pub fn class(&mut self, id: u64, layout: &Layout, data: &ClassData) {
        match &self.format {
            HeapFormat::Binary(names) => {
                let class = binary::Class {
                    object: id,
                    trace: FIRST_SERIAL,
                    super_class: layout.super_class,
                    loader: layout.loader,
                    signers: data.signers,
                    protection_domain: data.protection_domain,
                    instance_size: u32::try_from(layout.bytes).unwrap_or(u32::MAX),
                };
                let name_id = |name: &str| names.get(name).copied().unwrap_or(0);
                let zero = [0; 8];
                let statics: Vec<_> = (layout.declared.iter().enumerate())
                    .filter(|(_, field)| field.is_static)
                    .map(|(at, field)| {
                        let length = field_bytes(field.kind);
                        let value = data.statics.get(&at).filter(|(_, bytes)| *bytes == length);
                        let bytes = value.map_or(&zero, |(bytes, _)| bytes);
                        binary::Static {
                            name: name_id(&field.name),
                            kind: basic_type(field.kind),
                            value: bytes.get(..length).unwrap_or_default(),
                        }
                    })
                    .collect();
                let fields: Vec<_> = (layout.declared.iter())
                    .filter(|field| !field.is_static)
                    .map(|field| (name_id(&field.name), basic_type(field.kind)))
                    .collect();
                binary::class(&mut self.out.bytes, &class, &data.constants, statics.into_iter(), &fields);
            }
            HeapFormat::Text(_) => {
                let out = &mut self.out.bytes;
                let name = name_of(layout).unwrap_or_default();
                text::class(out, id, &name, FIRST_SERIAL);
                text::class_reference(out, text::ClassReference::Super, layout.super_class);
                text::class_reference(out, text::ClassReference::Loader, layout.loader);
                text::class_reference(out, text::ClassReference::Signers, data.signers);
                text::class_reference(out, text::ClassReference::Domain, data.protection_domain);
                for (at, field) in layout.declared.iter().enumerate() {
                    if field.is_static && basic_type(field.kind) == 2 {
                        let value = data.statics.get(&at).map_or(0, |(bytes, _)| u64::from_be_bytes(*bytes));
                        let name = escape::text(&field.name);
                        text::class_reference(out, text::ClassReference::Static(&name), value);
                    }
                }
                for (index, object) in &data.constants {
                    text::class_reference(out, text::ClassReference::Constant(u32::from(*index)), *object);
                }
            }
        }
        self.out.record();
    }
}

fn name_of(layout: &Layout) -> Option<String> {
    let class = layout.class.as_ref()?;
    Some(escape::text(&names::java_class(&class.signature)).into_owned())
}

fn u8_at(record: &[u8], at: usize) -> u8 {
    record.get(at).copied().unwrap_or(0)
}

fn u32_at(record: &[u8], at: usize) -> u32 {
    record.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
}

fn u64_at(record: &[u8], at: usize) -> u64 {
    record.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes)
}

/// Converts the record of an object to lines of text.
fn object_text(out: &mut Vec<u8>, record: &[u8], sizes: &mut FxHashMap<u64, u64>, layouts: &Layouts) {
    let (id, trace) = (u64_at(record, 1), u32_at(record, 9));
    let size = sizes.remove(&id).unwrap_or(0);
    match u8_at(record, 0) {
        binary::tag::INSTANCE => {
            let class = u64_at(record, 13);
            text::object(out, id, size, trace);
            let name = layouts.by_id.get(&class).and_then(name_of).unwrap_or_default();
            text::end_of_class(out, &name, class);
            // The fields of the topmost superclass come first, as in the old agent's output; in the record they are last.
            let mut chain = Vec::new();
            let (mut next, mut at) = (class, binary::INSTANCE_HEAD);
            while let Some(layout) = layouts.by_id.get(&next) {
                chain.push((layout, at));
                at += (layout.declared.iter())
                    .filter(|field| !field.is_static)
                    .map(|field| field_bytes(field.kind))
                    .sum::<usize>();
                next = layout.super_class;
            }
            for (layout, mut at) in chain.into_iter().rev() {
                for field in layout.declared.iter().filter(|field| !field.is_static) {
                    if basic_type(field.kind) == 2 {
                        let value = u64_at(record, at);
                        if value != 0 {
                            text::field_name(out, &escape::text(&field.name));
                            text::target(out, value);
                        }
                    }
                    at += field_bytes(field.kind);
                }
            }
        }
        binary::tag::OBJECT_ARRAY => {
            let (length, class) = (u32_at(record, 13), u64_at(record, 17));
            text::array(out, id, size, trace, length);
            let name = layouts.by_id.get(&class).and_then(name_of).unwrap_or_default();
            text::end_of_class(out, &name, class);
            for index in 0..length {
                let value = u64_at(record, binary::OBJECT_ARRAY_HEAD + index as usize * 8);
                if value != 0 {
                    text::element(out, index, value);
                }
            }
        }
        _ => {
            let (length, element) = (u32_at(record, 13), u8_at(record, 17));
            text::array(out, id, size, trace, length);
            let name = match element {
                4 => "boolean",
                5 => "char",
                6 => "float",
                7 => "double",
                8 => "byte",
                9 => "short",
                10 => "int",
                _ => "long",
            };
            text::end_of_primitive(out, name);
        }
    }
}
