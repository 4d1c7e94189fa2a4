//! HEAP DUMP of a text report.

use std::io::{self, Write};
use std::ops::Range;

use hprof_format::heap_text::{self, ClassReference};

use super::ReportHeap;
use super::date::ctime;
use crate::digits::{Integer, push_decimal, push_hex};
use crate::escape;
use crate::in_order::{Text, in_order};
use hprof_index::Progress;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::objects::record_plan::{ClassPlan, RecordPlans};
use hprof_index::scan::file_order::{Classes, OrderedChunks};
use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{HeapVisitor, Instance, ObjectArray, PrimitiveArray, RootRecord};
use hprof_query::histogram;
use hprof_query::recordings::profile::rfc3339;
use hprof_values::{BasicType, IdSize, ObjectId, RootKind, be_id, be_ids};

/// Writes the HEAP DUMP section.
pub(super) fn write(
    report: &ReportHeap<'_>,
    out: &mut (dyn Write + Send),
    progress: &dyn Progress,
) -> io::Result<()> {
    let ReportHeap { summary, sizes, bytes } = *report;
    let (mut objects, mut size) = (0u64, 0u64);
    for (number, class) in summary.numbered_classes() {
        objects += histogram::instances(summary, number, class);
        size = size.saturating_add(sizes.total(number));
    }
    let facts = summary.facts();
    let date = rfc3339(facts.created_ms.get(), facts.time_us.get());
    out.write_all(heap_text::begin(objects, size, &ctime(date.as_deref())).as_bytes())?;
    let plans = RecordPlans::new(summary, sizes);
    let texts = ClassTexts::new(summary, &plans);
    let classes = Classes::new(summary);
    let chunks = OrderedChunks::new(bytes, summary, &classes);
    let walk = chunks.walker();
    progress.begin("writing objects", chunks.bytes());
    let written = in_order(chunks, out, |chunk, text| {
        let mut formatter = Formatter {
            bytes,
            id_size: summary.id_size(),
            summary,
            plans: &plans,
            texts: &texts,
            text,
            elements: chunk.elements.clone(),
            last: (ObjectId::NULL, None),
            levels: Vec::new(),
        };
        walk.chunk(&chunk, &mut formatter);
        progress.advance(chunk.bytes());
        Ok(())
    });
    progress.end();
    written?;
    out.write_all(heap_text::END.as_bytes())
}

/// Texts that the lines for a class's objects have in common.
#[derive(Debug, Default)]
struct ClassText {
    /// Text from the object ID to the trace, such as ` (sz=24, trace=`; empty for classes whose objects vary in size.
    before_trace: Vec<u8>,
    /// Text from the class name to the end of the line, such as `java.lang.String@7f0)`.
    name: Vec<u8>,
    /// Ranges in `names` for the fields with references that the class itself declares.
    fields: Vec<Range<u32>>,
}

/// Common texts of all classes.
struct ClassTexts {
    /// Texts by class number.
    classes: Vec<ClassText>,
    /// Names of fields, each as `\tname\t`, with a second trailing tab after names of up to seven bytes.
    names: Vec<u8>,
}

impl ClassTexts {
    fn new(summary: &Summary, plans: &RecordPlans<'_>) -> Self {
        let mut names = FieldNamePool::default();
        let classes = (summary.numbered_classes())
            .map(|(number, class)| {
                let name = escape::text(summary.class_name(class)).into_owned();
                let id = class.id.get();
                let mut text =
                    ClassText { name: format!("{name}@{id:x})\n").into_bytes(), ..ClassText::default() };
                let references = summary.fields(class).filter(|(_, kind)| *kind == BasicType::Object);
                text.fields.extend(references.map(|(name, _)| names.name(name)));
                if let Some(plan) = plans.plan(number).filter(|plan| plans.has_one_size(plan)) {
                    text.before_trace = format!(" (sz={}, trace=", plan.size).into_bytes();
                }
                text
            })
            .collect();
        Self { classes, names: names.bytes }
    }

    fn class(&self, class: Option<ClassNumber>) -> Option<&ClassText> {
        class.and_then(|class| self.classes.get(class.0 as usize))
    }
}

/// Collector of field names. Equal names are stored once.
#[derive(Default)]
struct FieldNamePool {
    bytes: Vec<u8>,
    known: rustc_hash::FxHashMap<String, Range<u32>>,
}

impl FieldNamePool {
    fn name(&mut self, name: &str) -> Range<u32> {
        if let Some(range) = self.known.get(name) {
            return range.clone();
        }
        let end = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let start = end(&self.bytes);
        heap_text::field_name(&mut self.bytes, &escape::text(name));
        let range = start..end(&self.bytes);
        self.known.insert(name.to_owned(), range.clone());
        range
    }
}

/// Formatter of heap dump sub-records.
struct Formatter<'a, 't, 's, 'o> {
    bytes: &'a [u8],
    id_size: IdSize,
    summary: &'a Summary,
    plans: &'a RecordPlans<'a>,
    texts: &'a ClassTexts,
    text: &'t mut Text<'s, 'o>,
    /// Range of elements, if the chunk is a part of a long array.
    elements: Option<Range<u32>>,
    /// Class that was looked up last, by object ID of its class object.
    last: (ObjectId, Option<ClassNumber>),
    /// Class of an instance and its superclasses, each with the bytes of its fields.
    levels: Vec<(&'a ClassText, &'a ClassPlan, &'a [u8])>,
}

impl Formatter<'_, '_, '_, '_> {
    #[inline(always)]
    fn class_number(&mut self, id: ObjectId) -> Option<ClassNumber> {
        if self.last.0 != id {
            self.last = (id, self.plans.class(id));
        }
        self.last.1
    }

    #[inline(always)]
    fn put(&mut self, text: &[u8]) {
        self.text.made.extend_from_slice(text);
    }

    #[inline(always)]
    fn hex(&mut self, id: ObjectId) {
        push_hex(&mut self.text.made, id.0);
    }

    #[inline(always)]
    fn decimal(&mut self, number: impl Integer) {
        push_decimal(&mut self.text.made, number);
    }

    /// Writes the end of the line from the class name on.
    #[inline(always)]
    fn end_of_class(&mut self, text: Option<&ClassText>, id: ObjectId) {
        match text {
            Some(text) => self.put(&text.name),
            None => heap_text::end_of_class(&mut self.text.made, UNKNOWN, id.0),
        }
    }

    /// Writes a line for a reference of a class object, unless it is null.
    fn reference(&mut self, reference: ClassReference<'_>, id: ObjectId) {
        heap_text::class_reference(&mut self.text.made, reference, id.0);
        self.text.limit();
    }

    fn class_name(&self, class: Option<ClassNumber>) -> String {
        let class = class.and_then(|class| self.summary.class(class));
        class.map_or(UNKNOWN.to_owned(), |class| escape::text(self.summary.class_name(class)).into_owned())
    }
}

const UNKNOWN: &str = "<unknown class>";

impl<'a> HeapVisitor<'a> for Formatter<'a, '_, '_, '_> {
    #[inline(always)]
    fn instance(&mut self, record: Instance<'a>) {
        let class = self.class_number(record.class);
        let (texts, plan) = (self.texts, class.and_then(|class| self.plans.plan(class)));
        let text = texts.class(class);
        self.put(b"OBJ ");
        self.hex(record.id);
        match text.map(|text| text.before_trace.as_slice()).filter(|text| !text.is_empty()) {
            Some(text) => self.put(text),
            None => {
                let size = plan.map_or(0, |plan| self.plans.instance(plan, &record));
                self.put(b" (sz=");
                self.decimal(size);
                self.put(b", trace=");
            }
        }
        self.decimal(record.trace.0);
        self.put(b", class=");
        self.end_of_class(text, record.class);
        // The fields of the topmost superclass come first, as in the agent's output.
        if let Some(plan) = plan {
            let levels = self.plans.levels(plan, record.fields);
            self.levels.extend(
                levels.filter_map(|(plan, fields)| Some((texts.class(Some(plan.class))?, plan, fields))),
            );
        }
        while let Some((text, plan, fields)) = self.levels.pop() {
            for (at, name) in plan.references.iter().zip(&text.fields) {
                let Some(value) = be_id(fields, *at as usize, self.id_size) else { break };
                if let Some(value) = ObjectId(value).non_null() {
                    self.put(texts.names.get(name.start as usize..name.end as usize).unwrap_or_default());
                    heap_text::target(&mut self.text.made, value.0);
                    self.text.limit();
                }
            }
        }
        self.text.limit();
    }

    #[inline(always)]
    fn object_array(&mut self, record: ObjectArray<'a>) {
        let wanted = self.elements.clone().unwrap_or(0..record.length);
        if wanted.start == 0 {
            // The class that the record states: of JVMPI's dumps that of the elements, as in JVMPI's texts.
            let class = self.class_number(record.class);
            let size = self.plans.object_array(&record);
            heap_text::array(&mut self.text.made, record.id.0, size, record.trace.0, record.length);
            self.end_of_class(self.texts.class(class), record.class);
            self.text.limit();
        }
        let width = self.id_size.bytes();
        let bytes = wanted.start as usize * width..wanted.end as usize * width;
        let elements = record.elements.get(bytes).unwrap_or_default();
        for (index, id) in (wanted.start..).zip(be_ids(elements, self.id_size)) {
            if let Some(value) = id.non_null() {
                heap_text::element(&mut self.text.made, index, value.0);
            }
        }
    }

    #[inline(always)]
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        let size = self.plans.primitive_array(&record);
        let text = &mut self.text.made;
        heap_text::array(text, record.id.0, size, record.trace.0, record.length);
        heap_text::end_of_primitive(text, record.element.java_name());
    }

    fn class(&mut self, record: ClassDump<'a>) {
        let number = self.plans.class(record.id);
        // A class that is dumped a second time is not counted again.
        let Some(class) = number.filter(|number| self.plans.is_counted(*number, record.offset)) else {
            return;
        };
        let name = self.class_name(number);
        heap_text::class(&mut self.text.made, record.id.0, &name, record.trace.0);
        self.text.limit();
        self.reference(ClassReference::Super, record.super_class);
        self.reference(ClassReference::Loader, record.loader);
        self.reference(ClassReference::Signers, record.signers);
        self.reference(ClassReference::Domain, record.protection_domain);
        let summary = self.summary;
        for (name, kind, value) in summary.class(class).into_iter().flat_map(|class| summary.statics(class)) {
            if kind == BasicType::Object {
                self.reference(ClassReference::Static(&escape::text(name)), ObjectId(value));
            }
        }
        for constant in record.constants() {
            if constant.kind == BasicType::Object {
                self.reference(ClassReference::Constant(u32::from(constant.index)), ObjectId(constant.value));
            }
        }
    }

    fn root(&mut self, offset: usize, root: RootRecord) {
        let thread = root.thread.unwrap_or(0);
        // The agent prints -1 for no frame.
        let frame = root.frame.unwrap_or(u32::MAX).cast_signed();
        let words;
        let kind = match root.kind {
            RootKind::Unknown => heap_text::RootLine::Unknown,
            RootKind::JniGlobal => {
                let at = offset + 1 + self.id_size.bytes();
                heap_text::RootLine::JniGlobal(be_id(self.bytes, at, self.id_size).unwrap_or(0), 0)
            }
            RootKind::JniLocal => heap_text::RootLine::JniLocal(thread, frame),
            RootKind::JavaFrame => heap_text::RootLine::JavaFrame(thread, frame),
            RootKind::NativeStack => heap_text::RootLine::NativeStack(thread),
            RootKind::StickyClass => {
                words = self.class_name(self.plans.class(root.id));
                heap_text::RootLine::SystemClass(&words)
            }
            RootKind::ThreadBlock => heap_text::RootLine::ThreadBlock(thread),
            RootKind::MonitorUsed => heap_text::RootLine::BusyMonitor,
            RootKind::ThreadObject => heap_text::RootLine::Thread(thread, root.frame.unwrap_or(0)),
            RootKind::JniMonitor => {
                words = format!("<JNI monitor>, thread={thread}, frame={frame}");
                heap_text::RootLine::Other(&words)
            }
            // Root kinds of Android, for which the agent has no names.
            other => {
                words = format!("<{}>", other.name());
                heap_text::RootLine::Other(&words)
            }
        };
        heap_text::root(&mut self.text.made, root.id.0, kind);
        self.text.limit();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hprof_index::layout::sizes::Sizes;
    use hprof_index::{Heap, Options, Quiet};
    use hprof_parser::heap_tag as sub_record;

    fn heap_of(records: &[(u8, Vec<u8>)]) -> String {
        let mut bytes = b"JAVA PROFILE 1.0.2\0\0\0\0\x04\0\0\0\0\0\0\0\0".to_vec();
        for (tag, body) in records {
            bytes.extend_from_slice(&[*tag, 0, 0, 0, 0]);
            bytes.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
            bytes.extend(body);
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dump.hprof");
        std::fs::write(&path, &bytes).unwrap();
        let options = Options { index_dir: Some(dir.path().join("index")), ..Options::default() };
        let heap = Heap::open(&path, &options, &Quiet).unwrap();
        let sizes = Sizes::new(heap.summary(), None);
        let report = ReportHeap { summary: heap.summary(), bytes: &bytes, sizes: &sizes };
        let mut out = Vec::new();
        write(&report, &mut out, &Quiet).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn u4(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
    }

    /// Class objects, the first of which has a field, and each other the previous one as its superclass: inherited fields are
    /// not stored for each class.
    #[test]
    fn a_long_chain_of_classes() {
        const CLASSES: u32 = 20_000;
        let id = |number: u32| if number == 0 { 0 } else { 0x1000 + 16 * number };
        let mut records =
            vec![(1, [u4(&[1]), b"a/B".to_vec()].concat()), (1, [u4(&[2]), b"f".to_vec()].concat())];
        let mut heap = Vec::new();
        for number in 1..=CLASSES {
            records.push((2, u4(&[number, id(number), 0, 1])));
            heap.push(sub_record::CLASS);
            heap.extend(u4(&[id(number), 0, id(number - 1), 0, 0, 0, 0, 0, 4 * number]));
            heap.extend([0, 0, 0, 0, 0, 1]);
            heap.extend(u4(&[2]));
            heap.push(2);
        }
        for number in 0..CLASSES {
            heap.push(sub_record::INSTANCE);
            // Fields of the class itself and of its superclass; the others are missing.
            heap.extend(u4(&[0x1000_0000 + 16 * number, 0, id(CLASSES), 8, 0xa, 0xb]));
        }
        records.push((0x1C, heap));
        let text = heap_of(&records);
        assert_eq!(text.lines().filter(|line| line.starts_with("OBJ ")).count(), CLASSES as usize);
        let last: Vec<_> = text.lines().rev().skip(1).take(2).collect();
        assert_eq!(last, ["\tf\t\ta", "\tf\t\tb"]);
    }
}
