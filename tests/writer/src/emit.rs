//! Writing a model as a dump, in the forms that real writers use.
//!
//! [`Options`] determines order and form; the contents of the dump depend only on the model.

use std::collections::BTreeMap;

use super::basic::{IdSize, Type, Version};
use super::class::ClassId;
use super::heap::{ClassDump, HeapWriter};
use super::model::{Body, HeapModel, Item};
use super::names::{NameStyle, modified_utf8};
use super::writer::{
    AllocSite, AllocSites, DumpWriter, HeapTag, StartThread, StatedLength, Written, agent_cutoff,
};

/// The order of sub-records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// Classes, objects, roots: HotSpot.
    ClassesFirst,
    /// Roots, objects, classes: an instance's layout is known only after the instance was read.
    ClassesLast,
    /// In the order in which they were added to the model.
    AsAdded,
    /// In an order that depends on this seed; strings and LOAD CLASS records are shuffled too.
    Shuffled(u64),
}

/// Position relative to the heap records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Before.
    First,
    /// After.
    Last,
}

/// Presence of HEAP DUMP END after segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndRecord {
    /// Present.
    Written,
    /// Missing.
    Missing,
}

/// Records before, between and after heap records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Between {
    /// Nothing.
    Nothing,
    /// HEAP DUMP SEGMENT records of length 0 (nothing, for a single HEAP DUMP).
    EmptySegments,
    /// One record of each kind unrelated to the heap, in turn.
    OtherRecords,
}

/// Instance size that CLASS DUMP states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstanceSize {
    /// Sum of the field sizes as dumped, including superclasses: HotSpot since JDK 7. 0 for
    /// `java.lang.Object`.
    FieldBytes,
    /// The real size: JDK 6, the agent, ART.
    Real,
}

/// Form of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Version in the header; it has no other effect.
    pub version: Version,
    /// Identifier size.
    pub id_size: IdSize,
    /// Time stamp of the header.
    pub created_ms: u64,
    /// Maximum size of segments in bytes (a larger object gets its own); `None`: one HEAP DUMP record.
    pub segment_bytes: Option<usize>,
    /// Order of sub-records.
    pub order: Order,
    /// Position of strings.
    pub strings: Place,
    /// Position of LOAD CLASS, STACK FRAME and STACK TRACE records.
    pub loads: Place,
    /// Length that heap records state.
    pub heap_length: StatedLength,
    /// Presence of HEAP DUMP END after segments; it never follows a single HEAP DUMP.
    pub end: EndRecord,
    /// Records between heap records.
    pub between: Between,
    /// Style of class names.
    pub names: NameStyle,
    /// Meaning of instance sizes.
    pub instance_size: InstanceSize,
    /// ID of the first string. Two models in one file need separate ranges.
    pub first_string: u64,
    /// Serial number of the first class. As for strings.
    pub first_class_serial: u32,
    /// ID of the first stack frame. As for strings.
    pub first_frame: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self::hotspot()
    }
}

impl Options {
    /// Returns the form of current 64-bit HotSpot.
    pub fn hotspot() -> Self {
        Self {
            version: Version::V1_0_2,
            id_size: IdSize::Eight,
            created_ms: 1_700_000_000_000,
            segment_bytes: Some(1 << 20),
            order: Order::ClassesFirst,
            strings: Place::First,
            loads: Place::First,
            heap_length: StatedLength::Real,
            end: EndRecord::Written,
            between: Between::Nothing,
            names: NameStyle::HotSpot,
            instance_size: InstanceSize::FieldBytes,
            first_string: 0x4560_0000,
            first_class_serial: 1,
            first_frame: 1,
        }
    }

    /// Returns the form of JDK 6: one HEAP DUMP record, real instance sizes.
    pub fn jdk6() -> Self {
        let instance_size = InstanceSize::Real;
        Self { version: Version::V1_0_1, segment_bytes: None, instance_size, ..Self::hotspot() }
    }

    /// Returns the form of the HPROF agent: one HEAP DUMP record, 4-byte IDs, source names.
    pub fn agent() -> Self {
        Self { id_size: IdSize::Four, names: NameStyle::Source, order: Order::AsAdded, ..Self::jdk6() }
    }

    /// Returns the form of Android.
    pub fn android() -> Self {
        Self { version: Version::V1_0_3, segment_bytes: Some(64 << 10), ..Self::agent() }
    }
}

/// A small generator of numbers for shuffling (splitmix64).
struct Shuffler(u64);

impl Shuffler {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = usize::try_from(self.next() % (i as u64 + 1)).expect("at most i");
            items.swap(i, j);
        }
    }
}

/// Distinct strings by content.
struct Strings {
    first: u64,
    ids: BTreeMap<Vec<u8>, u64>,
}

impl Strings {
    fn id(&mut self, bytes: Vec<u8>) -> u64 {
        let next = self.first + 8 * self.ids.len() as u64;
        *self.ids.entry(bytes).or_insert(next)
    }

    fn text(&mut self, text: &str) -> u64 {
        self.id(modified_utf8(text))
    }
}

/// A LOAD CLASS record to be written.
struct Load {
    serial: u32,
    class: ClassId,
    trace: u32,
    name: u64,
}

/// A STACK FRAME record to be written.
struct Frame {
    id: u64,
    method: u64,
    signature: u64,
    source: u64,
    class_serial: u32,
    line: i32,
}

/// A STACK TRACE record to be written.
struct Trace {
    serial: u32,
    thread: u32,
    frames: Vec<u64>,
}

/// Records other than those of the heap.
struct Tables {
    strings: Vec<(u64, Vec<u8>)>,
    loads: Vec<Load>,
    frames: Vec<Frame>,
    traces: Vec<Trace>,
}

impl Tables {
    fn write_strings(&self, out: &mut DumpWriter) {
        for (id, bytes) in &self.strings {
            out.string_bytes(*id, bytes);
        }
    }

    fn write_loads(&self, out: &mut DumpWriter) {
        for load in &self.loads {
            out.load_class(load.serial, load.class.0, load.trace, load.name);
        }
        for f in &self.frames {
            out.frame(f.id, f.method, f.signature, f.source, f.class_serial, f.line);
        }
        for trace in &self.traces {
            out.trace(trace.serial, trace.thread, &trace.frames);
        }
    }
}

impl HeapModel {
    /// Writes the model as a separate dump.
    pub fn write(&self, options: &Options) -> Written {
        let mut out = DumpWriter::new(options.version, options.id_size).created_ms(options.created_ms);
        self.write_into(&mut out, options);
        out.finish()
    }

    /// Adds the model to a dump that may contain others; the writer's header is kept.
    pub fn write_into(&self, out: &mut DumpWriter, options: &Options) {
        assert_eq!(out.id_size(), options.id_size, "the writer's identifier size");
        let (tables, pieces) = self.encode(options);
        if options.strings == Place::First {
            tables.write_strings(out);
        }
        if options.loads == Place::First {
            tables.write_loads(out);
        }
        write_heap(out, options, &pieces);
        if options.loads == Place::Last {
            tables.write_loads(out);
        }
        if options.strings == Place::Last {
            tables.write_strings(out);
        }
    }

    /// Encodes the records other than those of the heap, and each sub-record separately, in the requested
    /// order.
    fn encode(&self, options: &Options) -> (Tables, Vec<HeapWriter>) {
        let mut strings = Strings { first: options.first_string, ids: BTreeMap::new() };
        let mut loads = self.loads(options, &mut strings);
        let (frames, traces) = self.frames_and_traces(options, &loads, &mut strings);
        // Encoded in the order of adding, so that a string's ID does not depend on the order of writing.
        let mut encoded = Vec::new();
        for item in &self.items {
            encoded.push(self.piece(item, options, &mut strings));
        }
        let pieces = self.ordered(options.order).into_iter().map(|index| encoded[index].clone()).collect();
        let mut strings: Vec<(u64, Vec<u8>)> =
            strings.ids.into_iter().map(|(bytes, id)| (id, bytes)).collect();
        strings.sort();
        if let Order::Shuffled(seed) = options.order {
            Shuffler(!seed).shuffle(&mut strings);
            Shuffler(seed ^ 1).shuffle(&mut loads);
        }
        (Tables { strings, loads, frames, traces }, pieces)
    }

    fn loads(&self, options: &Options, strings: &mut Strings) -> Vec<Load> {
        let mut serial = options.first_class_serial;
        let mut loads = Vec::new();
        for class in &self.classes {
            for _ in 0..class.loads {
                let name = match &class.stored_name {
                    Some(bytes) => strings.id(bytes.clone()),
                    None => strings.text(&options.names.spell(&class.name)),
                };
                loads.push(Load { serial, class: class.id, trace: class.trace, name });
                serial += 1;
            }
        }
        loads
    }

    fn frames_and_traces(
        &self,
        options: &Options,
        loads: &[Load],
        strings: &mut Strings,
    ) -> (Vec<Frame>, Vec<Trace>) {
        let (mut frames, mut traces) = (Vec::new(), Vec::new());
        for trace in &self.traces {
            let mut ids = Vec::new();
            for frame in &trace.frames {
                let id = options.first_frame + frames.len() as u64;
                ids.push(id);
                frames.push(Frame {
                    id,
                    method: strings.text(&frame.method),
                    signature: strings.text(&frame.signature),
                    source: frame.source.as_deref().map_or(0, |source| strings.text(source)),
                    class_serial: loads.iter().find(|l| l.class == frame.class).map_or(0, |l| l.serial),
                    line: frame.line,
                });
            }
            traces.push(Trace { serial: trace.serial, thread: trace.thread, frames: ids });
        }
        (frames, traces)
    }

    /// Returns the indices of the items to be written, in order; that of a class that is dumped twice
    /// occurs twice.
    fn ordered(&self, order: Order) -> Vec<usize> {
        let mut indices = Vec::new();
        for (index, item) in self.items.iter().enumerate() {
            let times = if let Item::Class(class) = item { self.classes[*class].dumps } else { 1 };
            indices.extend((0..times).map(|_| index));
        }
        let rank = |index: usize, [classes, objects, roots]: [u8; 3]| match self.items[index] {
            Item::HeapInfo(..) => 0,
            Item::Class(_) => classes,
            Item::Object(_) => objects,
            Item::Root(..) => roots,
        };
        match order {
            Order::AsAdded => {}
            Order::ClassesFirst => indices.sort_by_key(|index| rank(*index, [1, 2, 3])),
            Order::ClassesLast => indices.sort_by_key(|index| rank(*index, [3, 2, 1])),
            Order::Shuffled(seed) => Shuffler(seed).shuffle(&mut indices),
        }
        indices
    }

    fn piece(&self, item: &Item, options: &Options, strings: &mut Strings) -> HeapWriter {
        let mut piece = HeapWriter::new(options.id_size);
        match item {
            Item::Class(index) => {
                let class = &self.classes[*index];
                let mut statics = Vec::new();
                for (name, value) in &class.statics {
                    statics.push((strings.text(name), *value));
                }
                let mut fields = Vec::new();
                for (name, ty) in &class.fields {
                    fields.push((strings.text(name), *ty));
                }
                piece.class_dump(&ClassDump {
                    id: class.id.0,
                    trace: class.trace,
                    superclass: class.superclass.map_or(0, |c| c.0),
                    loader: class.loader,
                    signers: class.signers,
                    domain: class.domain,
                    reserved: class.reserved,
                    instance_size: class.instance_size.unwrap_or_else(|| self.stated_size(class.id, options)),
                    constants: &class.constants,
                    statics: &statics,
                    fields: &fields,
                });
            }
            Item::Object(index) => {
                let object = &self.objects[*index];
                let (id, trace) = (object.id.0, object.trace);
                match &object.body {
                    Body::Instance { class, values } => piece.instance(id, trace, class.0, values),
                    Body::ObjectArray { class, elements } => piece.object_array(id, trace, class.0, elements),
                    Body::Primitive(elements) => piece.prim_array(id, trace, elements),
                };
            }
            Item::Root(object, root) => {
                piece.root(*object, *root);
            }
            Item::HeapInfo(heap, name) => {
                let name = strings.text(name);
                piece.heap_info(*heap, name);
            }
        }
        piece
    }

    fn stated_size(&self, class: ClassId, options: &Options) -> u32 {
        if self.class_def(class).is_array() {
            return 0;
        }
        match options.instance_size {
            InstanceSize::FieldBytes => {
                self.all_fields(class).iter().map(|(_, ty)| ty.bytes(options.id_size)).sum()
            }
            InstanceSize::Real => u32::try_from(self.instance_bytes(class)).expect("a class of sane size"),
        }
    }
}

fn write_heap(out: &mut DumpWriter, options: &Options, pieces: &[HeapWriter]) {
    let mut round = 0;
    write_between(out, options, &mut round);
    let Some(limit) = options.segment_bytes else {
        let mut body = HeapWriter::new(options.id_size);
        for piece in pieces {
            body.append(piece);
        }
        out.heap_record(HeapTag::Dump, options.heap_length, &body);
        write_between(out, options, &mut round);
        return;
    };
    let mut body = HeapWriter::new(options.id_size);
    for piece in pieces {
        if !body.is_empty() && body.len() + piece.len() > limit as u64 {
            out.heap_record(HeapTag::Segment, options.heap_length, &body);
            write_between(out, options, &mut round);
            body = HeapWriter::new(options.id_size);
        }
        body.append(piece);
    }
    if !body.is_empty() {
        out.heap_record(HeapTag::Segment, options.heap_length, &body);
        write_between(out, options, &mut round);
    }
    if options.end == EndRecord::Written {
        out.heap_dump_end();
    }
}

/// Writes records that a reader of the heap must skip. Their serial numbers do not refer to the model.
fn write_between(out: &mut DumpWriter, options: &Options, round: &mut u32) {
    const NOBODY: u32 = 0x00FF_FFF0;
    match options.between {
        Between::Nothing => return,
        Between::EmptySegments => {
            if options.segment_bytes.is_some() {
                out.heap_segment(&HeapWriter::new(options.id_size));
            }
            return;
        }
        Between::OtherRecords => {}
    }
    match *round % 7 {
        0 => out.start_thread(&StartThread { thread: NOBODY, ..StartThread::default() }),
        1 => out.unload_class(NOBODY),
        2 => {
            let site = AllocSite { array: Type::Byte.code(), class_serial: NOBODY, ..AllocSite::default() };
            let cutoff_bits = agent_cutoff(0.0001);
            out.alloc_sites(&AllocSites { cutoff_bits, sites: vec![site], ..AllocSites::default() })
        }
        3 => out.heap_summary(1, 1, 1, 1),
        4 => out.control_settings(0x3, 8),
        5 => out.cpu_samples(10, &[(10, NOBODY)]),
        _ => out.end_thread(NOBODY),
    };
    *round += 1;
}
