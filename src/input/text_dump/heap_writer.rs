//! Heap dumps of the second reading: HEAP DUMP SEGMENT records.

use std::collections::HashMap;
use std::io::{self, Write};

use hprof_format::binary::{record_head, tag};
use hprof_format::heap_binary::{self, Class, Root, Static};
use hprof_parser::text::event::{ClassReference, TextArray, TextObject, TextRoot};
use hprof_values::{BasicType, IdSize, ObjectId, RootKind, TraceSerial};

use super::class_names::{ElementType, element_type};
use super::classes::{ClassIndex, Classes, FieldName};
use super::slots::SlotCache;

/// Number of bytes from which on a segment ends after the current object.
const SEGMENT: usize = 1 << 20;
/// Bytes of an ID.
const ID: usize = 8;
const REFERENCE: u8 = BasicType::Object.code();
/// Maximum number of elements of an array whose record fits into a segment.
const MAX_ARRAY_BYTES: u64 = u32::MAX as u64 - 64;

/// Entry of the heap dump of which lines are being read.
#[derive(Debug)]
enum Entry {
    Class { object: ObjectId, trace: TraceSerial, references: ClassReferences },
    Instance { object: ObjectId, trace: TraceSerial, class: ClassIndex },
    Array { object: ObjectId, trace: TraceSerial, class: ClassIndex, length: u64 },
}

/// References of a class object.
#[derive(Debug, Default)]
struct ClassReferences {
    loader: u64,
    signers: u64,
    domain: u64,
    /// String IDs of names, and objects.
    statics: Vec<(u64, u64)>,
    constants: Vec<(u16, u64)>,
}

/// Writer of a heap dump.
#[derive(Debug)]
pub(super) struct HeapWriter<'s> {
    classes: &'s Classes,
    /// String IDs of field names, by number.
    field_strings: Vec<u64>,
    micros: u32,
    segment: Vec<u8>,
    entry: Option<Entry>,
    /// Fields below the OBJ line: names and objects.
    fields: Vec<(FieldName, u64)>,
    /// Elements below the ARR line: indices and objects.
    elements: Vec<(u64, u64)>,
    slots: SlotCache,
    values: Vec<u8>,
    numbers: HashMap<FieldName, u32>,
}

impl<'s> HeapWriter<'s> {
    /// Starts a heap dump, with a CLASS DUMP for each class that has instances but no CLS line, `undefined`.
    pub(super) fn begin(
        classes: &'s Classes,
        undefined: &[ClassIndex],
        field_strings: Vec<u64>,
        micros: u32,
        out: &mut dyn Write,
    ) -> io::Result<Self> {
        let mut writer = Self {
            classes,
            field_strings,
            micros,
            segment: Vec::with_capacity(SEGMENT + (SEGMENT >> 2)),
            entry: None,
            fields: Vec::new(),
            elements: Vec::new(),
            slots: SlotCache::default(),
            values: Vec::new(),
            numbers: HashMap::new(),
        };
        for class in undefined.iter().filter_map(|class| classes.get(*class)) {
            writer.class_dump(ObjectId(class.id), TraceSerial::NONE, &ClassReferences::default());
            writer.flush_from(SEGMENT, out)?;
        }
        Ok(writer)
    }

    pub(super) fn root(&mut self, root: &TextRoot<'_>, out: &mut dyn Write) -> io::Result<()> {
        self.end_entry(out)?;
        let thread = root.thread.unwrap_or(0);
        let frame = root.frame.and_then(|frame| i32::try_from(frame).ok()).unwrap_or(-1);
        let kind = match root.kind {
            RootKind::JniGlobal => Root::JniGlobal(root.reference.unwrap_or(0)),
            RootKind::JniLocal => Root::JniLocal(thread, frame),
            RootKind::JavaFrame => Root::JavaFrame(thread, frame),
            RootKind::NativeStack => Root::NativeStack(thread),
            RootKind::StickyClass => Root::StickyClass,
            RootKind::ThreadBlock => Root::ThreadBlock(thread),
            RootKind::MonitorUsed => Root::MonitorUsed,
            RootKind::ThreadObject => Root::Thread(thread, root.trace.unwrap_or_default().0),
            RootKind::JniMonitor => Root::JniMonitor(thread, frame),
            RootKind::Unknown => Root::Unknown,
            other => Root::Other(other.tag()),
        };
        heap_binary::root(&mut self.segment, root.object.0, kind);
        self.flush_from(SEGMENT, out)
    }

    pub(super) fn class(
        &mut self,
        object: ObjectId,
        trace: TraceSerial,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.end_entry(out)?;
        self.entry = Some(Entry::Class { object, trace, references: ClassReferences::default() });
        Ok(())
    }

    /// Adds a reference of the current class object.
    pub(super) fn class_reference(&mut self, what: ClassReference<'_>, object: ObjectId) {
        let Some(Entry::Class { references, .. }) = &mut self.entry else { return };
        match what {
            // The survey knows it.
            ClassReference::Super => {}
            ClassReference::Loader => references.loader = object.0,
            ClassReference::Signers => references.signers = object.0,
            ClassReference::Domain => references.domain = object.0,
            ClassReference::Static(name) => {
                let name = self.classes.known_field_name(name);
                let string = name.and_then(|name| self.field_strings.get(name.0 as usize));
                references.statics.push((string.copied().unwrap_or(0), object.0));
            }
            ClassReference::Constant(index) => {
                references.constants.push((u16::try_from(index).unwrap_or(u16::MAX), object.0));
            }
        }
    }

    pub(super) fn instance(
        &mut self,
        object: &TextObject<'_>,
        class: ClassIndex,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.end_entry(out)?;
        self.entry = Some(Entry::Instance { object: object.object, trace: object.trace, class });
        Ok(())
    }

    pub(super) fn field(&mut self, name: &[u8], object: ObjectId) {
        if let (Some(Entry::Instance { .. }), Some(name)) = (&self.entry, self.classes.known_field_name(name))
        {
            self.fields.push((name, object.0));
        }
    }

    pub(super) fn array(
        &mut self,
        array: &TextArray<'_>,
        class: ClassIndex,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.end_entry(out)?;
        let (object, trace, length) = (array.object, array.trace, array.length);
        self.entry = Some(Entry::Array { object, trace, class, length });
        Ok(())
    }

    pub(super) fn element(&mut self, index: u64, object: ObjectId) {
        if let Some(Entry::Array { .. }) = self.entry {
            self.elements.push((index, object.0));
        }
    }

    /// Writes the current entry.
    pub(super) fn end_entry(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match self.entry.take() {
            None => return Ok(()),
            Some(Entry::Class { object, trace, references }) => self.class_dump(object, trace, &references),
            Some(Entry::Instance { object, trace, class }) => self.instance_dump(object, trace, class),
            Some(Entry::Array { object, trace, class, length }) => {
                let Some(row) = self.classes.get(class) else { return Ok(()) };
                match element_type(&row.name) {
                    ElementType::Object => self.object_array(object, trace, row.id, length, out)?,
                    ElementType::Primitive(kind) => self.primitive_array(object, trace, kind, length, out)?,
                }
                self.elements.clear();
            }
        }
        self.flush_from(SEGMENT, out)
    }

    fn class_dump(&mut self, object: ObjectId, trace: TraceSerial, references: &ClassReferences) {
        let row = self.classes.of_id(object.0).and_then(|class| self.classes.get(class));
        let class = Class {
            object: object.0,
            trace: trace.0,
            super_class: row.map_or(0, |row| row.super_class),
            loader: references.loader,
            signers: references.signers,
            protection_domain: references.domain,
            instance_size: row.and_then(|row| row.size).unwrap_or(0),
        };
        let values: Vec<(u64, [u8; ID])> =
            references.statics.iter().map(|(name, object)| (*name, object.to_be_bytes())).collect();
        let statics = values.iter().map(|(name, value)| Static { name: *name, kind: REFERENCE, value });
        let mut fields = Vec::new();
        for (name, count) in row.into_iter().flat_map(|row| &row.fields) {
            let string = self.field_strings.get(name.0 as usize).copied().unwrap_or(0);
            fields.extend((0..*count).map(|_| (string, REFERENCE)));
        }
        heap_binary::class(&mut self.segment, &class, &references.constants, statics, &fields);
    }

    fn instance_dump(&mut self, object: ObjectId, trace: TraceSerial, class: ClassIndex) {
        let slots = self.slots.slots(self.classes, class);
        self.values.clear();
        self.values.resize(slots.count as usize * ID, 0);
        self.numbers.clear();
        for (name, target) in self.fields.drain(..) {
            let number = self.numbers.entry(name).or_default();
            let place = slots.position(name, *number).map(|position| position * ID);
            *number += 1;
            if let Some(bytes) = place.and_then(|at| self.values.get_mut(at..at + ID)) {
                bytes.copy_from_slice(&target.to_be_bytes());
            }
        }
        let id = self.classes.get(class).map_or(0, |row| row.id);
        let bytes = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        heap_binary::instance(&mut self.segment, object.0, trace.0, id, bytes);
        self.segment.extend_from_slice(&self.values);
    }

    fn object_array(
        &mut self,
        object: ObjectId,
        trace: TraceSerial,
        class: u64,
        length: u64,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        // Ascending in texts of the agent; of elements with one index, the last counts.
        let mut elements = std::mem::take(&mut self.elements);
        // Elements beyond the stated length are appended: their indices could make the array arbitrarily long.
        let mut end = length;
        for (index, _) in elements.iter_mut().filter(|(index, _)| *index >= length) {
            *index = end;
            end += 1;
        }
        elements.sort_by_key(|(index, _)| *index);
        let length = end.min(MAX_ARRAY_BYTES / ID as u64);
        let data = length * ID as u64;
        let mut head = Vec::with_capacity(heap_binary::OBJECT_ARRAY_HEAD);
        heap_binary::object_array(&mut head, object.0, trace.0, u32::try_from(length).unwrap_or(0), class);
        let mut array = self.start_array(&head, data, out)?;
        let mut next = 0;
        for same in elements.chunk_by(|one, other| one.0 == other.0) {
            let Some((index, target)) = same.last().filter(|(index, _)| *index < length) else { break };
            array.zeros((index - next) * ID as u64)?;
            array.put(&target.to_be_bytes())?;
            next = index + 1;
        }
        array.zeros((length - next) * ID as u64)?;
        // Its memory is used again.
        self.elements = elements;
        Ok(())
    }

    fn primitive_array(
        &mut self,
        object: ObjectId,
        trace: TraceSerial,
        kind: BasicType,
        length: u64,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let width = kind.dump_bytes(IdSize::Eight) as u64;
        let length = length.min(MAX_ARRAY_BYTES / width);
        let mut head = Vec::with_capacity(heap_binary::PRIMITIVE_ARRAY_HEAD);
        let count = u32::try_from(length).unwrap_or(0);
        heap_binary::primitive_array(&mut head, object.0, trace.0, count, kind.code());
        self.start_array(&head, length * width, out)?.zeros(length * width)
    }

    /// Starts an array with `data` bytes of elements: a long one is written at once, as a segment of its own.
    fn start_array<'w>(
        &'w mut self,
        head: &[u8],
        data: u64,
        out: &'w mut dyn Write,
    ) -> io::Result<ArrayWriter<'w>> {
        if data < SEGMENT as u64 {
            self.segment.extend_from_slice(head);
            return Ok(ArrayWriter::Segment(&mut self.segment));
        }
        self.flush_from(1, out)?;
        let bytes = u32::try_from(head.len() as u64 + data).unwrap_or(u32::MAX);
        out.write_all(&record_head(tag::HEAP_DUMP_SEGMENT, self.micros, bytes))?;
        out.write_all(head)?;
        Ok(ArrayWriter::File(out))
    }

    /// Writes the segment if it has at least `bytes` bytes.
    fn flush_from(&mut self, bytes: usize, out: &mut dyn Write) -> io::Result<()> {
        if self.segment.len() < bytes {
            return Ok(());
        }
        let length = u32::try_from(self.segment.len()).unwrap_or(u32::MAX);
        out.write_all(&record_head(tag::HEAP_DUMP_SEGMENT, self.micros, length))?;
        out.write_all(&self.segment)?;
        self.segment.clear();
        Ok(())
    }

    /// Ends the heap dump. Returns the string IDs of field names.
    pub(super) fn finish(mut self, out: &mut dyn Write) -> io::Result<Vec<u64>> {
        self.end_entry(out)?;
        self.flush_from(1, out)?;
        out.write_all(&record_head(tag::HEAP_DUMP_END, self.micros, 0))?;
        Ok(self.field_strings)
    }
}

/// Destination of an array's elements.
enum ArrayWriter<'w> {
    Segment(&'w mut Vec<u8>),
    File(&'w mut dyn Write),
}

impl ArrayWriter<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Segment(segment) => segment.extend_from_slice(bytes),
            Self::File(out) => out.write_all(bytes)?,
        }
        Ok(())
    }

    fn zeros(&mut self, mut count: u64) -> io::Result<()> {
        const ZEROS: [u8; 4096] = [0; 4096];
        while count > 0 {
            let part = ZEROS.get(..usize::try_from(count).unwrap_or(usize::MAX)).unwrap_or(&ZEROS);
            match self {
                Self::Segment(segment) => segment.extend_from_slice(part),
                Self::File(out) => out.write_all(part)?,
            }
            count -= part.len() as u64;
        }
        Ok(())
    }
}
