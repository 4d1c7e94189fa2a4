//! The first reading of a text: classes, their fields, and sizes.

use std::collections::HashSet;

use super::TextDumpError;
use super::class_names::{ElementType, element_type};
use super::classes::{ClassIndex, Classes, FieldName};
use super::stated_sizes::StatedSizes;
use crate::file::TextFile;
use crate::text_events::{NoSuchRun, visit_events};
use hprof_parser::text::TextEvent;
use hprof_parser::text::event::{ClassReference, TextArray, TextObject};
use hprof_values::{IdSize, ObjectId};

/// Bytes of an ID in the dump.
const ID: u64 = 8;
/// Maximum number of fields of all instances, for each line of the text. Real heaps have fewer than ten.
const SLOTS_PER_LINE: u64 = 256;

/// Largest size of an object: sums of sizes must not overflow.
const MAX_SIZE: u64 = 1 << 40;

/// Result of the first reading.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Number of the run, from 1.
    pub(super) run: u32,
    /// Number of runs in the file.
    pub(super) runs: u32,
    /// Time of the header, milliseconds since 1970, as if the text stated it in UTC.
    pub(super) created_ms: u64,
    pub(super) classes: Classes,
    pub(super) heap_dumps: Vec<HeapDumpSurvey>,
    /// Size of the heap dumps in bytes.
    pub(super) expected_bytes: u64,
    /// Number of lines of the run that could not be parsed.
    pub(super) malformed_lines: u64,
}

/// A heap dump of the run.
#[derive(Debug)]
pub(super) struct HeapDumpSurvey {
    /// Sizes that class dumps do not state.
    pub(super) sizes: StatedSizes,
    /// Classes that have instances but no CLS line.
    pub(super) undefined: Vec<ClassIndex>,
    /// `true` if there are no roots, classes and objects.
    pub(super) is_empty: bool,
}

impl Survey {
    /// Reads a run, from 1; the last one by default.
    pub(super) fn new(file: &TextFile, run: Option<u32>) -> Result<Self, TextDumpError> {
        let mut surveyor = Surveyor::default();
        let runs = visit_events(file, |number, _, event| {
            if run.is_none_or(|run| run == number) {
                if surveyor.survey.run != number {
                    surveyor = Surveyor::default();
                    surveyor.survey.run = number;
                }
                surveyor.take(&event);
            }
        })
        .map_err(TextDumpError::Read)?;
        NoSuchRun::check(run, runs)?;
        surveyor.finish(runs)
    }
}

/// Heap dump of which lines are being read.
#[derive(Debug, Default)]
struct OpenHeapDump {
    /// Sizes of single objects.
    sizes: StatedSizes,
    stated_objects: u64,
    stated_bytes: u64,
    objects: u64,
    bytes: u64,
    roots: u64,
    /// Object IDs of CLS lines.
    class_objects: Vec<u64>,
    /// Classes of OBJ lines.
    used: HashSet<ClassIndex>,
    /// Classes of CLS lines.
    defined: HashSet<ClassIndex>,
}

/// Visitor of the first reading.
#[derive(Debug, Default)]
struct Surveyor {
    survey: Survey,
    heap: Option<OpenHeapDump>,
    /// Class of the last OBJ line.
    instance: Option<ClassIndex>,
    /// Fields below the last OBJ line.
    fields: Vec<FieldName>,
    /// Class of the last CLS line.
    class: Option<ClassIndex>,
    /// Length of the last array, and bytes of an element.
    array: Option<(u64, u64)>,
    lines: u64,
}

impl Surveyor {
    fn take(&mut self, event: &TextEvent<'_>) {
        self.lines += 1;
        match event {
            TextEvent::Field { name, object } => {
                self.survey.classes.see_id(*object);
                if self.instance.is_some() {
                    let name = self.survey.classes.field_name(name);
                    self.fields.push(name);
                }
            }
            TextEvent::Element { index, object } => {
                self.survey.classes.see_id(*object);
                if let Some((length, _)) = &mut self.array {
                    // Those beyond the stated length are appended.
                    *length = length.saturating_add(u64::from(*index >= *length));
                }
            }
            TextEvent::Malformed { text, .. } => {
                self.survey.malformed_lines += 1;
                if !matches!(text, [b' ' | b'\t', ..]) {
                    self.end_entry();
                }
            }
            TextEvent::Header { created, .. } => {
                let text = created.map(String::from_utf8_lossy);
                let millis = text.and_then(|text| hprof_parser::text::millis(&text));
                self.survey.created_ms = millis.and_then(|millis| u64::try_from(millis).ok()).unwrap_or(0);
            }
            TextEvent::HeapBegin { objects, bytes, .. } => {
                self.end_heap();
                let (stated_objects, stated_bytes) = (*objects, *bytes);
                self.heap = Some(OpenHeapDump { stated_objects, stated_bytes, ..OpenHeapDump::default() });
            }
            TextEvent::Root(root) => {
                self.end_entry();
                self.survey.classes.see_id(root.object);
                self.in_heap(|heap| heap.roots += 1);
                self.survey.expected_bytes += 25;
            }
            TextEvent::Class { object, name, .. } => self.class_line(*object, name),
            TextEvent::ClassReference { what, object } => {
                self.survey.classes.see_id(*object);
                self.survey.expected_bytes += 25;
                match what {
                    ClassReference::Super => {
                        if let Some(class) = self.class.and_then(|class| self.survey.classes.get_mut(class)) {
                            class.super_class = object.0;
                        }
                    }
                    ClassReference::Static(name) => _ = self.survey.classes.field_name(name),
                    _ => {}
                }
            }
            TextEvent::Object(object) => self.object_line(object),
            TextEvent::Array(array) => self.array_line(array),
            TextEvent::HeapEnd => self.end_heap(),
            // Another thread of the JVM may have written this line: the entry continues after it.
            _ => {}
        }
    }

    fn class_line(&mut self, object: ObjectId, name: &[u8]) {
        self.end_entry();
        self.survey.classes.see_id(object);
        let class = self.survey.classes.class(Some(object), name);
        self.class = Some(class);
        self.in_heap(|heap| {
            heap.defined.insert(class);
            heap.class_objects.push(object.0);
        });
        self.survey.expected_bytes += 80;
    }

    fn object_line(&mut self, object: &TextObject<'_>) {
        self.end_entry();
        let classes = &mut self.survey.classes;
        classes.see_id(object.object);
        classes.see_id(object.class_object.unwrap_or_default());
        let class = classes.class(object.class_object, object.class);
        self.instance = Some(class);
        let Some(row) = classes.get_mut(class) else { return };
        row.instances += 1;
        let size = object.size.min(MAX_SIZE);
        let first = *row.size.get_or_insert(u32::try_from(size).unwrap_or(0));
        self.in_heap(|heap| _ = heap.used.insert(class));
        self.count(object.object, size, u64::from(first) == size);
    }

    fn array_line(&mut self, array: &TextArray<'_>) {
        self.end_entry();
        let classes = &mut self.survey.classes;
        classes.see_id(array.object);
        classes.see_id(array.class_object.unwrap_or_default());
        let class = classes.array(array.class_object, array.class);
        let element_bytes = match classes.get(class).map(|row| element_type(&row.name)) {
            Some(ElementType::Primitive(kind)) => kind.dump_bytes(IdSize::Eight) as u64,
            _ => ID,
        };
        self.array = Some((array.length, element_bytes));
        self.count(array.object, array.size.min(MAX_SIZE), false);
    }

    fn count(&mut self, object: ObjectId, bytes: u64, is_usual: bool) {
        self.in_heap(|heap| {
            heap.objects += 1;
            heap.bytes = heap.bytes.saturating_add(bytes);
            if !is_usual {
                heap.sizes.rows.push((object.0, bytes));
            }
        });
    }

    fn in_heap(&mut self, change: impl FnOnce(&mut OpenHeapDump)) {
        if let Some(heap) = &mut self.heap {
            change(heap);
        }
    }

    /// Ends the entry of the last OBJ, ARR or CLS line.
    fn end_entry(&mut self) {
        if let Some(class) = self.instance.take() {
            self.fields.sort_unstable();
            self.survey.classes.see_fields(class, &self.fields);
            self.fields.clear();
        }
        if let Some((length, element_bytes)) = self.array.take() {
            let length = length.min(u64::from(u32::MAX));
            let bytes = (element_bytes * length).min(u64::from(u32::MAX)).saturating_add(25);
            self.survey.expected_bytes = self.survey.expected_bytes.saturating_add(bytes);
        }
        self.class = None;
    }

    /// Ends a heap dump. No line states the size of a class object: if the first line includes class objects, their bytes are
    /// what all others leave of its sum. In files of the agent it does not.
    fn end_heap(&mut self) {
        self.end_entry();
        let Some(heap) = self.heap.take() else { return };
        let is_empty = heap.roots + heap.objects == 0 && heap.class_objects.is_empty();
        let mut undefined: Vec<ClassIndex> = heap.used.difference(&heap.defined).copied().collect();
        undefined.sort_unstable();
        let mut sizes = heap.sizes;
        let count = heap.class_objects.len() as u64;
        if count > 0 && heap.stated_objects == heap.objects + count {
            let bytes = heap.stated_bytes.saturating_sub(heap.bytes);
            let (each, mut rest) = (bytes / count, bytes % count);
            for id in heap.class_objects {
                sizes.rows.push((id, each + u64::from(rest > 0)));
                rest = rest.saturating_sub(1);
            }
        }
        sizes.sort();
        self.survey.heap_dumps.push(HeapDumpSurvey { sizes, undefined, is_empty });
    }

    fn finish(mut self, runs: u32) -> Result<Survey, TextDumpError> {
        self.end_heap();
        let mut survey = self.survey;
        survey.runs = runs;
        survey.classes.finish();
        let slots = |class: &super::classes::TextClass| class.instances.saturating_mul(class.slots);
        let slots = survey.classes.rows().iter().map(slots).fold(0, u64::saturating_add);
        if slots > self.lines.saturating_mul(SLOTS_PER_LINE) {
            return Err(TextDumpError::TooManyFields { slots, lines: self.lines });
        }
        let instances = survey.classes.rows().iter().map(|class| class.instances).sum::<u64>();
        let sizes = survey.heap_dumps.iter().map(|dump| dump.sizes.record_bytes()).sum::<u64>();
        survey.expected_bytes =
            survey.expected_bytes.saturating_add(25 * instances + ID * slots).saturating_add(sizes);
        Ok(survey)
    }
}
