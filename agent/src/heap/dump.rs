//! A heap dump over JVM TI.
//!
//! 1. Threads are suspended, so that all walks see the same heap. Classes and threads are registered,
//!    stacks are read.
//! 2. A walk from an array of all class objects, but not beyond them, reports statics, constants and signers.
//!    CLASS DUMPs are written.
//! 3. A walk from the roots writes each object as it is visited: HotSpot reports all references of an object
//!    consecutively, that to its class object first. A referent without an ID is assigned one, with its size.
//! 4. An iteration over the heap finds objects that were not visited: those referenced only from instance
//!    fields of class objects (which JVM TI does not report), and unreachable ones. They are fetched by their
//!    tags, put into an array, and walked from there. Fillers, which are also reported, are not objects.

use rustc_hash::{FxHashMap, FxHashSet};

use hprof_format::heap_binary as binary;

use super::before::HeapDumpInput;
use super::fields::{ClassData, Layout, Layouts, field_bytes};
use super::records::SubRecordBuffer;
use super::roots::Roots;
use super::write::Writer;
use crate::jvm::walk::{
    PrimitiveBytes, Reference, ReferenceKind, TagSlot as Place, Visitor, WalkControl, bytes_of,
};
use crate::jvm::{Jni, MAX_REFERENCES, Ref};
use crate::messages::complain;
use crate::output::serial;
use crate::state::AgentState;
use crate::tags::{Epoch, Ids, Tag};

/// Counts of written and missing objects of a heap dump.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeapDumpCounts {
    /// Number of objects, including class objects.
    pub objects: u64,
    /// Total size of the objects in bytes.
    pub bytes: u64,
    /// Number of objects that the walk from the roots did not visit.
    pub beyond: u64,
    /// Number of unvisited objects that could not be fetched and are missing from the dump.
    pub lost: u64,
    /// Number of objects that were visited again after they had been written. The dump omits references from the second visit.
    pub late: u64,
    /// Number of arrays that are truncated because they are larger than the format's 4 GiB.
    pub cut: u64,
}

/// Maximum number of tags per call: `GetObjectsWithTags` compares each tag in the JVM with each requested tag.
const MAX_TAGS: usize = 4096;

/// Part of the heap that is being walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Class objects only.
    Classes,
    /// Objects that are reachable from the roots.
    Roots,
    /// Objects that the walk from the roots did not visit.
    Beyond,
}

/// Object whose references are currently reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Current {
    None,
    /// Object that is not written: a class object, or one of the agent's own arrays.
    Silent(u64),
    /// Instance: object ID, class ID, and start of the fields in the buffer.
    Instance(u64, u64, usize),
    /// Array: object ID, start of the elements in the buffer, and number of elements.
    Array(u64, usize, u32),
    /// Array that is written in parts: object ID, index of the next element, and number of elements.
    LargeArray(u64, u32, u32),
    /// Array of primitive values whose elements have not been reported yet: object ID, class ID and trace number.
    Primitive(u64, u64, u32),
}

impl Current {
    fn id(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Silent(id)
            | Self::Instance(id, ..)
            | Self::Array(id, ..)
            | Self::LargeArray(id, ..)
            | Self::Primitive(id, ..) => id,
        }
    }
}

/// Visitor that writes objects as they are visited.
pub struct DumpWriter<'a, 's> {
    ids: &'a Ids,
    layouts: &'a Layouts,
    roots: Roots<'a>,
    /// Writer of the format of the dump.
    pub writer: Writer<'a, 's>,
    epoch: Epoch,
    stage: Stage,
    /// ID of the class object of `java.lang.Class`.
    class_class: u64,
    /// IDs of the class objects of fillers.
    fillers: Vec<u64>,
    /// First object ID that is assigned in this dump.
    first: u64,
    /// IDs of the agent's own arrays, which are not written.
    hidden: FxHashSet<u64>,
    /// Lengths of object arrays that were referenced but not visited yet, by object ID.
    lengths: FxHashMap<u64, u32>,
    classes: FxHashMap<u64, ClassData>,
    current: Current,
    /// Marks of unvisited objects: their tags without an ID, which differ by trace, or tags with an ID.
    unvisited: FxHashSet<i64>,
    /// Counts of written and missing objects.
    pub counts: HeapDumpCounts,
}

impl<'a, 's> DumpWriter<'a, 's> {
    /// Creates a writer for a dump with the next epoch.
    pub fn new(
        state: &'a AgentState,
        layouts: &'a Layouts,
        roots: Roots<'a>,
        writer: Writer<'a, 's>,
        epoch: Epoch,
    ) -> Self {
        Self {
            ids: &state.ids,
            layouts,
            class_class: roots.class_class,
            fillers: state.fillers(),
            roots,
            writer,
            epoch,
            stage: Stage::Classes,
            first: state.ids.next(8),
            hidden: FxHashSet::default(),
            lengths: FxHashMap::default(),
            classes: FxHashMap::default(),
            current: Current::None,
            unvisited: FxHashSet::default(),
            counts: HeapDumpCounts::default(),
        }
    }

    /// Writes the entire heap dump. The caller must have suspended the threads.
    ///
    /// # Errors
    /// Errors of JVM TI.
    pub fn run(
        &mut self,
        state: &AgentState,
        jni: &Jni<'_>,
        classes: &[Ref<'_>],
        before: &HeapDumpInput<'_>,
    ) -> crate::jvm::Result<()> {
        let jvmti = state.jvmti;
        if let Some(array) = self.hidden_array(state, jni, classes, before) {
            jvmti.follow(Some(array), self)?;
            jni.delete(array);
        } else {
            complain("the Java heap is full: static fields are not in the heap dump");
        }
        self.finish_object();
        self.write_classes();
        self.write_primitive_classes(&before.primitives);
        // The agent's own references would be roots in the walk.
        for class in classes {
            jni.delete(*class);
        }
        self.stage = Stage::Roots;
        jvmti.follow(None, self)?;
        self.finish_object();
        jvmti.iterate(self)?;
        self.write_unvisited(state, jni, before)
    }

    /// Writes objects that the walk from the roots did not visit.
    fn write_unvisited(
        &mut self,
        state: &AgentState,
        jni: &Jni<'_>,
        before: &HeapDumpInput<'_>,
    ) -> crate::jvm::Result<()> {
        let mut tags: Vec<_> = std::mem::take(&mut self.unvisited).into_iter().collect();
        if tags.is_empty() {
            return Ok(());
        }
        if state.collector.is_stuck() && self.counts.beyond > MAX_REFERENCES as u64 {
            // At the end of the JVM, unvisited objects are garbage that is not worth a reference for each object.
            self.counts.lost = self.counts.beyond;
            return Ok(());
        }
        tags.sort_unstable();
        let count = usize::try_from(self.counts.beyond).unwrap_or(usize::MAX);
        let walked = jni.frame(count.min(1 << 24), |jni| {
            let objects = state.jvmti.objects_with_tags(jni, &tags)?;
            self.counts.lost = self.counts.beyond.saturating_sub(objects.len() as u64);
            let Some(array) = self.hidden_array(state, jni, &objects, before) else {
                self.counts.lost = self.counts.beyond;
                return Ok(());
            };
            self.stage = Stage::Beyond;
            state.jvmti.follow(Some(array), self)?;
            self.finish_object();
            Ok(())
        });
        walked.unwrap_or_else(|| {
            self.counts.lost = self.counts.beyond;
            Ok(())
        })
    }

    /// Creates an array of the agent, which is omitted from dumps. `None` if there is not enough memory.
    fn hidden_array<'j>(
        &mut self,
        state: &AgentState,
        jni: &Jni<'j>,
        objects: &[Ref<'_>],
        before: &HeapDumpInput<'_>,
    ) -> Option<Ref<'j>> {
        /// Reserve of free memory, which is more than the size of ZGC's pages for small objects (2 MiB).
        const MARGIN: u64 = 8 << 20;
        // If memory is short, a thread would wait forever for a collection.
        if state.collector.is_stuck()
            && before.free.is_none_or(|free| free < MARGIN + 8 * objects.len() as u64)
        {
            return None;
        }
        let array = jni.object_array(before.object, objects)?;
        // The ID is for the minimum size, to leave the smallest possible gap in the IDs.
        let id = self.ids.next(8);
        self.hidden.insert(id);
        state.jvmti.set_tag(array, Tag::default().with_id(id).0).ok()?;
        Some(array)
    }

    fn write_classes(&mut self) {
        let mut classes: Vec<_> = (self.layouts.by_id.iter())
            .filter_map(|(id, layout)| Some((layout.class.as_ref()?.serial, *id, layout)))
            .collect();
        classes.sort_unstable_by_key(|(serial, ..)| *serial);
        for (_, id, layout) in classes {
            let data = self.classes.remove(&id).unwrap_or_default();
            self.writer.class(id, layout, &data);
            self.counts.objects += 1;
        }
    }

    /// Writes the class objects of primitive types as instances of `java.lang.Class`, as in HotSpot's dumps. JVM TI does not
    /// report the contents of their fields.
    fn write_primitive_classes(&mut self, ids: &[u64]) {
        let Some(layout) = self.layouts.by_id.get(&self.class_class) else { return };
        let bytes = layout.bytes;
        for id in ids {
            let length = u32::try_from(bytes).unwrap_or(u32::MAX);
            let record = &mut self.writer.record;
            binary::instance(record, *id, serial(0), self.class_class, length);
            record.resize(record.len() + bytes, 0);
            self.counts.objects += 1;
            self.writer.finish();
        }
    }

    /// Returns the ID of the referent of a reference or root, assigning one if it has none.
    #[inline]
    fn id_of(&mut self, reference: &Reference<'_>) -> u64 {
        let mut tag = Tag(reference.tag.get());
        if tag.id() == 0 {
            // Objects that were marked as not visited have an epoch but no ID.
            tag = tag.with_epoch(Epoch::default()).with_id(self.ids.next(reference.size));
            reference.tag.set(tag.0);
        }
        let id = tag.id();
        if tag.epoch() != self.epoch {
            if let Some(length) = reference.length
                && self.layout(reference.class).is_some_and(Layout::is_object_array)
            {
                self.lengths.insert(id, length);
            }
            self.writer.record_size(id, reference.size);
        }
        id
    }

    #[inline]
    fn layout(&self, class: i64) -> Option<&'a Layout> {
        self.layouts.by_id.get(&Tag(class).id())
    }

    fn is_visited(&self, tag: Tag) -> bool {
        tag.id() != 0 && tag.epoch() == self.epoch
    }

    /// Starts an object whose references will be reported.
    fn begin_object(&mut self, place: &Place, class: i64) {
        self.finish_object();
        let tag = Tag(place.get());
        let id = tag.id();
        if self.hidden.contains(&id) {
            self.current = Current::Silent(id);
            return;
        }
        if self.stage == Stage::Classes {
            self.current = Current::Silent(id);
            return;
        }
        if self.is_visited(tag) {
            self.counts.late += 1;
            self.current = Current::Silent(id);
            return;
        }
        place.set(tag.with_epoch(self.epoch).0);
        let class = Tag(class).id();
        let Some(layout) = self.layouts.by_id.get(&class).filter(|_| class != self.class_class) else {
            self.current = Current::Silent(id);
            return;
        };
        let trace = serial(tag.trace());
        self.counts.objects += 1;
        self.current = match layout.element() {
            None => {
                binary::instance(
                    &mut self.writer.record,
                    id,
                    trace,
                    class,
                    u32::try_from(layout.bytes).unwrap_or(u32::MAX),
                );
                let start = self.writer.record.len();
                self.writer.record.resize(start + layout.bytes, 0);
                Current::Instance(id, class, start)
            }
            Some(b'L' | b'[') => {
                let length = self.lengths.remove(&id).unwrap_or(0);
                // Lengths in the format have four bytes.
                let most = u32::MAX / 8 - 8;
                if length > most {
                    self.counts.cut += 1;
                }
                let length = length.min(most);
                binary::object_array(&mut self.writer.record, id, trace, length, class);
                let start = self.writer.record.len();
                if SubRecordBuffer::is_large(length as usize * 8) && self.writer.is_binary() {
                    self.writer.begin_large(length * 8);
                    Current::LargeArray(id, 0, length)
                } else {
                    self.writer.record.resize(start + length as usize * 8, 0);
                    Current::Array(id, start, length)
                }
            }
            Some(_) => Current::Primitive(id, class, trace),
        };
    }

    /// Ends the current object, all of whose references have been reported.
    fn finish_object(&mut self) {
        match std::mem::replace(&mut self.current, Current::None) {
            Current::None | Current::Silent(_) => {}
            Current::Instance(..) | Current::Array(..) => self.writer.finish(),
            Current::LargeArray(_, next, length) => {
                self.zeros(length.saturating_sub(next));
                self.writer.finish_large();
            }
            // The JVM does not report the elements of empty arrays.
            Current::Primitive(id, class, trace) => self.primitive(id, class, trace, &[]),
        }
    }

    fn zeros(&mut self, elements: u32) {
        let zeros = [0; 4096];
        let mut left = elements as usize * 8;
        while left > 0 {
            let part = left.min(zeros.len());
            self.writer.part(zeros.get(..part).unwrap_or_default());
            left -= part;
        }
    }

    fn primitive(&mut self, id: u64, class: u64, trace: u32, bytes: &[u8]) {
        let element = self.layouts.by_id.get(&class).and_then(Layout::element).unwrap_or(b'B');
        let width = bytes_of(element);
        // Lengths in the format have four bytes.
        let most = (u32::MAX as usize - 64) / width * width;
        if bytes.len() > most {
            self.counts.cut += 1;
        }
        let bytes = bytes.get(..most).unwrap_or(bytes);
        let length = u32::try_from(bytes.len() / width).unwrap_or(u32::MAX);
        let code = crate::output::sections::basic_type(element);
        binary::primitive_array(&mut self.writer.record, id, trace, length, code);
        if !self.writer.is_binary() {
            self.writer.finish();
        } else if SubRecordBuffer::is_large(bytes.len()) {
            self.writer.begin_large(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
            let mut part = Vec::with_capacity(1 << 16);
            for chunk in bytes.chunks(1 << 16) {
                part.clear();
                push_big_endian(&mut part, chunk, width);
                self.writer.part(&part);
            }
            self.writer.finish_large();
        } else {
            push_big_endian(&mut self.writer.record, bytes, width);
            self.writer.finish();
        }
    }

    /// Stores a reported reference in the record of the current object.
    fn put(&mut self, kind: ReferenceKind, id: u64) {
        match (self.current, kind) {
            (Current::Instance(_, class, start), ReferenceKind::Field(number)) => {
                let slot = self.layouts.by_id.get(&class).and_then(|layout| layout.slot(number));
                if let Some(slot) = slot {
                    overwrite(&mut self.writer.record, start + slot.offset, &id.to_be_bytes());
                }
            }
            (Current::Array(_, start, length), ReferenceKind::Element(index)) => {
                if let Some(index) = u32::try_from(index).ok().filter(|index| *index < length) {
                    overwrite(&mut self.writer.record, start + index as usize * 8, &id.to_be_bytes());
                }
            }
            (Current::LargeArray(array, next, length), ReferenceKind::Element(index)) => {
                if let Some(index) = u32::try_from(index).ok().filter(|index| (next..length).contains(index))
                {
                    self.zeros(index - next);
                    self.writer.part(&id.to_be_bytes());
                    self.current = Current::LargeArray(array, index + 1, length);
                }
            }
            _ => {}
        }
    }

    fn class_reference(&mut self, class: u64, kind: ReferenceKind, id: u64) {
        let data = self.classes.entry(class).or_default();
        match kind {
            ReferenceKind::Signers => data.signers = id,
            ReferenceKind::ProtectionDomain => data.protection_domain = id,
            ReferenceKind::ConstantPool(index) => {
                if let Ok(index) = u16::try_from(index) {
                    data.constants.push((index, id));
                }
            }
            ReferenceKind::StaticField(number) => {
                if let Some(at) = self.layouts.by_id.get(&class).and_then(|layout| layout.declared_at(number))
                {
                    data.statics.insert(at, (id.to_be_bytes(), 8));
                }
            }
            _ => {}
        }
    }
}

impl Visitor for DumpWriter<'_, '_> {
    fn reference(&mut self, reference: &Reference<'_>) -> WalkControl {
        let Some(referrer) = reference.referrer else {
            let id = self.id_of(reference);
            if !self.hidden.contains(&id)
                && let Some(root) = self.roots.root(reference, id)
            {
                self.finish_object();
                self.writer.root(id, root);
            }
            return WalkControl::Visit;
        };
        let of = Tag(referrer.get()).id();
        if of != self.current.id() || of == 0 {
            self.begin_object(referrer, reference.referrer_class);
        }
        let from_agent = self.hidden.contains(&of);
        if from_agent && !matches!(reference.kind, ReferenceKind::Element(_)) {
            return WalkControl::Skip;
        }
        let unvisited = !self.is_visited(Tag(reference.tag.get()));
        let id = self.id_of(reference);
        if from_agent {
            return WalkControl::Visit;
        }
        match self.stage {
            Stage::Classes => {
                self.class_reference(of, reference.kind, id);
                WalkControl::Skip
            }
            Stage::Roots => {
                self.put(reference.kind, id);
                WalkControl::Visit
            }
            Stage::Beyond => {
                self.put(reference.kind, id);
                if unvisited { WalkControl::Visit } else { WalkControl::Skip }
            }
        }
    }

    fn field(
        &mut self,
        is_static: bool,
        index: i32,
        object: &Place,
        class: i64,
        value: PrimitiveBytes,
    ) -> WalkControl {
        let of = Tag(object.get()).id();
        if of != self.current.id() || of == 0 {
            self.begin_object(object, class);
        }
        if is_static {
            if self.stage == Stage::Classes
                && let Some(at) = self.layouts.by_id.get(&of).and_then(|layout| layout.declared_at(index))
            {
                self.classes.entry(of).or_default().statics.insert(at, value);
            }
        } else if let Current::Instance(_, class, start) = self.current
            && let Some(slot) = self.layouts.by_id.get(&class).and_then(|layout| layout.slot(index))
        {
            let (bytes, length) = value;
            if length == field_bytes(slot.kind) {
                overwrite(
                    &mut self.writer.record,
                    start + slot.offset,
                    bytes.get(..length).unwrap_or_default(),
                );
            }
        }
        WalkControl::Visit
    }

    fn array(&mut self, object: &Place, _: u8, _: u32, bytes: &[u8]) -> WalkControl {
        let of = Tag(object.get()).id();
        if let Current::Primitive(id, class, trace) = self.current
            && id == of
        {
            self.current = Current::None;
            self.primitive(id, class, trace, bytes);
        }
        WalkControl::Visit
    }

    fn object(&mut self, object: &Place, class: i64, size: u64, _: Option<u32>) -> WalkControl {
        let tag = Tag(object.get());
        let (id, class) = (tag.id(), Tag(class).id());
        if class == self.class_class {
            self.counts.bytes += size;
            return WalkControl::Visit;
        }
        if self.hidden.contains(&id) || self.fillers.contains(&class) {
            return WalkControl::Visit;
        }
        self.counts.bytes += size;
        if !self.is_visited(tag) {
            self.counts.beyond += 1;
            // An ID from an earlier dump is dropped, so that many objects have the same tag and are fetched at a time. An ID
            // from this dump is already used in records.
            let marked = if id < self.first { tag.with_id(0).with_epoch(self.epoch) } else { tag };
            if self.unvisited.len() < MAX_TAGS {
                object.set(marked.0);
                self.unvisited.insert(marked.0);
            }
        }
        WalkControl::Visit
    }
}

fn overwrite(record: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = record.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Appends elements of the given width, converted from native to big-endian byte order.
fn push_big_endian(out: &mut Vec<u8>, elements: &[u8], width: usize) {
    let start = out.len();
    out.extend_from_slice(elements);
    if cfg!(target_endian = "little") && width > 1 {
        for element in out.get_mut(start..).unwrap_or_default().chunks_exact_mut(width) {
            element.reverse();
        }
    }
}
