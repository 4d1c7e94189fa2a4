//! Data that is needed about a dump before its values are mapped: the fields of classes, and the kept names.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use hprof_index::storage::id_map::{IdMap, IdSet};
use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{self, HeapVisitor};
use hprof_parser::record::{BodyReader, RECORD_HEADER, Record, tag};
use hprof_parser::{Header, mutf8};
use hprof_values::{BasicType, IdSize, ObjectId, names};

use super::counters::{CounterFields, CounterHolders};
use super::families::ClassFamily;
use super::kept::{KeptReason, KeptValues};
use super::renames::{ClassRenames, NameRecords, SymbolUse};
use super::stream::{DumpBytes, LargeArray, RecordSink, read_records};
use hprof_base::naming::pattern::ClassPattern;
use hprof_base::parallel;
use hprof_model::objects::hiding::fields::{FieldTreatment, holds_counter, instance_rules, treatment};

/// Fields that a class itself declares, without inherited ones.
#[derive(Debug, Default)]
pub(super) struct ClassFields {
    /// Primitive fields whose values are replaced.
    pub(super) changes: Vec<FieldChange>,
    /// References that `heap_texts` follows: offset and name.
    pub(super) references: Vec<(u32, Box<str>)>,
    /// Offsets of references to kept counters.
    pub(super) counters: Vec<u32>,
    /// Rules about the class's instances, one bit each.
    pub(super) rules: u32,
    /// Size of the fields in bytes.
    pub(super) bytes: u32,
    /// Nearest superclass with fields.
    pub(super) above: Option<ObjectId>,
}

/// Primitive field whose values are replaced.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldChange {
    /// Offset among the fields that the class declares.
    pub(super) start: u32,
    pub(super) kind: BasicType,
    pub(super) treatment: FieldTreatment,
    /// Number of the field, so that its values are mapped differently from the values of other fields.
    pub(super) field: u32,
}

/// Data about a dump that is needed to map its values.
#[derive(Debug)]
pub struct Plan {
    pub(super) header: Header,
    pub(super) classes: IdMap<ObjectId, ClassFields>,
    /// Uses of the symbols that are names.
    pub(super) symbols: IdMap<u64, SymbolUse>,
    /// Names of classes by class object, in Java source form; for the treatment of statics.
    pub(super) class_names: IdMap<ObjectId, String>,
    /// Hashes of the names of primitive fields and their classes, by field number.
    pub(super) field_hashes: Vec<u64>,
    /// Names of static fields.
    pub(super) static_names: IdMap<u64, String>,
    /// Lowest and highest object ID of each part of the file.
    pub(super) ranges: Vec<IdRange>,
    /// Texts of the symbols that are names, with the new names of classes, and their uses.
    pub(super) texts: Vec<(Vec<u8>, SymbolUse)>,
    pub(super) renames: Arc<ClassRenames>,
    /// Classes of threads and thread groups.
    pub(super) thread_classes: IdSet<ObjectId>,
    /// Classes whose instances refer to kept counters.
    pub(super) holders: IdSet<ObjectId>,
    /// Counters to which static fields refer.
    pub(super) static_counters: Vec<ObjectId>,
    /// Parts of the file with instances of threads and holders of counters.
    pub(super) watched_ranges: Vec<Range<u64>>,
    /// Name of the class and of the field for each numeric field and static field of the JDK and of Android.
    #[cfg(test)]
    pub(super) numeric_fields: Vec<(String, String)>,
    /// Object that `java.lang.System.props` refers to.
    pub(super) props: Option<ObjectId>,
}

/// Lowest and highest ID of the objects in a part of the file.
#[derive(Debug, Clone)]
pub(super) struct IdRange {
    pub(super) bytes: Range<u64>,
    pub(super) ids: (u64, u64),
}

impl CounterHolders for Plan {
    fn id_size(&self) -> IdSize {
        self.header.id_size
    }

    fn static_counters(&self) -> &[ObjectId] {
        &self.static_counters
    }

    fn counter_ranges(&self) -> &[Range<u64>] {
        &self.watched_ranges
    }

    fn has_holders(&self) -> bool {
        !self.holders.is_empty()
    }

    fn is_holder(&self, class: ObjectId) -> bool {
        self.holders.contains(&class)
    }

    fn counter_fields(&self, class: ObjectId) -> Option<CounterFields<'_>> {
        let ClassFields { counters, bytes, above, .. } = self.classes.get(&class)?;
        Some(CounterFields { counters, bytes: *bytes, above: *above })
    }
}

impl Plan {
    /// Reads a dump, or its start. Classes that one of the patterns matches are renamed.
    ///
    /// # Errors
    /// Errors of reading; [`io::ErrorKind::InvalidData`] if it is not a dump.
    pub fn read(from: DumpBytes<'_>, renamed: &[ClassPattern]) -> io::Result<Self> {
        let mut builder = PlanBuilder::new();
        read_records(from, &mut builder)?;
        builder.finish(renamed)
    }

    /// Returns the new names of classes.
    pub fn renames(&self) -> &ClassRenames {
        &self.renames
    }

    /// Returns the size of identifiers.
    pub(super) fn id_size(&self) -> IdSize {
        self.header.id_size
    }

    /// Adds the names of classes, fields and frames to the kept texts.
    pub(super) fn add_names(&self, kept: &mut KeptValues, thread_names: bool) {
        for name in ["app", "platform", "bootstrap"] {
            kept.add(name, KeptReason::LoaderName);
        }
        for (text, used) in &self.texts {
            match used {
                SymbolUse::Class => {
                    kept.add_name(text, KeptReason::ClassName);
                    let dotted: Vec<u8> =
                        text.iter().map(|byte| if *byte == b'/' { b'.' } else { *byte }).collect();
                    kept.add_name(&dotted, KeptReason::ClassName);
                }
                SymbolUse::Field => kept.add_name(text, KeptReason::FieldName),
                SymbolUse::Frame => kept.add_name(text, KeptReason::FrameName),
                SymbolUse::Thread if thread_names => {}
                SymbolUse::Thread => kept.add_name(text, KeptReason::ThreadName),
            }
        }
    }
}

/// A class as read from its record.
#[derive(Default)]
struct RawClass {
    above: ObjectId,
    fields: Vec<(u64, BasicType)>,
}

/// Builder of a [`Plan`], which reads the records of the dump.
struct PlanBuilder {
    header: Option<Header>,
    strings: IdMap<u64, Box<[u8]>>,
    symbols: IdMap<u64, SymbolUse>,
    /// Names of classes and texts of frames, in the order of the records that use them.
    order: Vec<(u64, SymbolUse)>,
    /// Symbols of the names of loaded classes, by serial number.
    serials: IdMap<u64, u64>,
    /// Source files of frames and serial numbers of the frames' classes. Pairs that were already added are skipped.
    sources: Vec<(u64, u32)>,
    seen_sources: FxHashSet<(u64, u32)>,
    loads: IdMap<ObjectId, u64>,
    #[cfg(test)]
    numeric_statics: Vec<(ObjectId, u64)>,
    classes: IdMap<ObjectId, RawClass>,
    statics: IdSet<u64>,
    /// References in static fields that are followed: class, symbol of the field, object.
    references: Vec<(ObjectId, u64, ObjectId)>,
    ranges: Vec<IdRange>,
    thread_classes: ClassFamily,
    /// Classes whose instances hold kept counters.
    holders: ClassFamily,
    /// Classes of threads and of holders of counters.
    watched: IdSet<ObjectId>,
    watched_ranges: Vec<Range<u64>>,
}

impl PlanBuilder {
    fn new() -> Self {
        Self {
            header: None,
            strings: IdMap::default(),
            symbols: IdMap::default(),
            order: Vec::new(),
            serials: IdMap::default(),
            sources: Vec::new(),
            seen_sources: FxHashSet::default(),
            loads: IdMap::default(),
            #[cfg(test)]
            numeric_statics: Vec::new(),
            classes: IdMap::default(),
            statics: IdSet::default(),
            references: Vec::new(),
            ranges: Vec::new(),
            thread_classes: ClassFamily::from_names(&THREADS),
            holders: ClassFamily::default(),
            watched: IdSet::default(),
            watched_ranges: Vec::new(),
        }
    }

    fn visit_class(&mut self, class: SeenClass) {
        for (name, _) in &class.raw.fields {
            self.uses(*name, SymbolUse::Field);
        }
        if self.holds_counters(&class) {
            self.holders.add(class.id);
        }
        for (name, kind, value) in class.statics {
            self.uses(name, SymbolUse::Field);
            self.statics.insert(name);
            #[cfg(test)]
            if !matches!(kind, BasicType::Object | BasicType::Boolean) {
                self.numeric_statics.push((class.id, name));
            }
            let is_wanted = || self.strings.get(&name).is_some_and(|name| STATICS.contains(&&**name));
            if kind == BasicType::Object && is_wanted() {
                self.references.push((class.id, name, ObjectId(value)));
            }
        }
        self.thread_classes.extends(class.id, class.raw.above);
        self.holders.extends(class.id, class.raw.above);
        // Readers use the first of several.
        self.classes.entry(class.id).or_insert(class.raw);
    }

    /// Returns `true` if a class declares a field with a kept counter; classes whose names are unknown declare none.
    fn holds_counters(&self, class: &SeenClass) -> bool {
        let text = |id: u64| self.strings.get(&id).map(|bytes| mutf8::decode(bytes));
        let Some(name) = self.loads.get(&class.id).and_then(|id| text(*id)) else { return false };
        let mut references = class.raw.fields.iter().filter(|(_, kind)| *kind == BasicType::Object);
        references.any(|(field, _)| text(*field).is_some_and(|field| holds_counter(&name, &field)))
    }

    fn uses(&mut self, symbol: u64, used: SymbolUse) {
        let before = self.symbols.insert(symbol, used);
        if let Some(before) = before.filter(|before| *before <= used) {
            self.symbols.insert(symbol, before);
        } else if matches!(used, SymbolUse::Class | SymbolUse::Frame) {
            self.order.push((symbol, used));
        }
    }

    fn finish(mut self, renamed: &[ClassPattern]) -> io::Result<Plan> {
        let sources = self.sources.iter();
        let sources =
            sources.filter_map(|(source, class)| Some((*source, *self.serials.get(&(*class).into())?)));
        let sources: Vec<(u64, u64)> = sources.collect();
        let records = NameRecords { strings: &self.strings, order: &self.order, sources: &sources };
        let renames = ClassRenames::new(renamed, &records, &mut self.symbols);
        let header = self.header.ok_or(io::ErrorKind::InvalidData)?;
        let text = |id: u64| self.strings.get(&id).map(|bytes| mutf8::decode(bytes).into_owned());
        let name = |class: ObjectId| self.loads.get(&class).and_then(|id| text(*id)).unwrap_or_default();
        let mut classes: IdMap<ObjectId, ClassFields> = IdMap::default();
        let mut class_names = IdMap::default();
        #[cfg(test)]
        let mut numeric_fields = Vec::new();
        let mut field_hashes = Vec::new();
        for (id, raw) in &self.classes {
            let class = name(*id);
            let mut fields = ClassFields::default();
            for (field, kind) in &raw.fields {
                let name = text(*field).unwrap_or_default();
                let hash = field_hash(&class, &name);
                let treatment = treatment(&class, &name, *kind);
                if treatment == FieldTreatment::Reference {
                    if holds_counter(&class, &name) {
                        fields.counters.push(fields.bytes);
                    }
                    if FOLLOWED.contains(&name.as_str()) {
                        fields.references.push((fields.bytes, name.into()));
                    }
                } else {
                    #[cfg(test)]
                    if is_of_platform(&class) && *kind != BasicType::Boolean {
                        numeric_fields.push((class.clone(), name));
                    }
                    let field = u32::try_from(field_hashes.len()).unwrap_or(u32::MAX);
                    field_hashes.push(hash);
                    fields.changes.push(FieldChange { start: fields.bytes, kind: *kind, treatment, field });
                }
                let bytes = u32::try_from(kind.dump_bytes(header.id_size)).unwrap_or(u32::MAX);
                fields.bytes = fields.bytes.saturating_add(bytes);
            }
            fields.rules = instance_rules(&class);
            class_names.insert(*id, class);
            classes.insert(*id, fields);
        }
        #[cfg(test)]
        for (class, field) in &self.numeric_statics {
            let class = name(*class);
            if is_of_platform(&class) {
                numeric_fields.extend(text(*field).map(|field| (class, field)));
            }
        }
        // Links to superclasses without fields are followed once each: those of a class are set when it is reached.
        let above: Vec<(ObjectId, Option<ObjectId>)> =
            self.classes.iter().map(|(id, raw)| (*id, self.above_with_fields(raw.above))).collect();
        for (id, above) in above {
            if let Some(fields) = classes.get_mut(&id) {
                fields.above = above;
            }
        }
        // If the name of a class came after its instances, any part may contain some.
        let holders = classes.iter().filter(|(_, fields)| !fields.counters.is_empty());
        let late: Vec<_> =
            holders.map(|(id, _)| *id).filter(|id| !self.holders.classes.contains(id)).collect();
        if !late.is_empty() {
            self.watched_ranges = self.ranges.iter().map(|range| range.bytes.clone()).collect();
            late.into_iter().for_each(|class| self.holders.add(class));
        }
        let static_names = self.statics.iter().filter_map(|id| Some((*id, text(*id)?))).collect();
        let texts = self.symbols.iter();
        let renamed = |id| renames.symbol(id).or_else(|| self.strings.get(&id).map(|text| &**text));
        let texts = texts.filter_map(|(id, used)| Some((renamed(*id)?.to_vec(), *used))).collect();
        let system = self.references.iter().find(|(class, field, _)| {
            names::java_class_name(&name(*class)) == "java.lang.System"
                && text(*field).is_some_and(|field| field == "props")
        });
        let props = system.map(|(_, _, object)| *object);
        let is_counter = |class, field| text(field).is_some_and(|field| holds_counter(&name(class), &field));
        let counters = self.references.iter().filter(|(class, field, _)| is_counter(*class, *field));
        let static_counters = counters.map(|(_, _, object)| *object).collect();
        Ok(Plan {
            header,
            classes,
            class_names,
            field_hashes,
            static_names,
            texts,
            props,
            symbols: self.symbols,
            ranges: self.ranges,
            thread_classes: self.thread_classes.classes,
            renames: Arc::new(renames),
            holders: self.holders.classes,
            static_counters,
            watched_ranges: self.watched_ranges,
            #[cfg(test)]
            numeric_fields,
        })
    }

    fn above_with_fields(&self, mut class: ObjectId) -> Option<ObjectId> {
        // Chains of classes in real programs are short; a cycle ends the search.
        for _ in 0..MAX_DEPTH {
            let raw = self.classes.get(&class)?;
            if !raw.fields.is_empty() {
                return Some(class);
            }
            class = raw.above;
        }
        None
    }
}

#[cfg(test)]
fn is_of_platform(class: &str) -> bool {
    ["java", "jdk/", "sun/", "android", "libcore"].iter().any(|start| class.starts_with(start))
}

/// Maximum number of consecutive superclasses without fields that are skipped.
const MAX_DEPTH: usize = 1 << 10;
/// Returns a hash of the names of a class and its field; for the same key it is the same in all dumps of a program.
pub(super) fn field_hash(class: &str, field: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(format!("{class}\0{field}").as_bytes())
}

/// Names of the classes of threads and thread groups. The agent and Android write names in Java source form.
const THREADS: [&[u8]; 4] =
    [b"java/lang/Thread", b"java/lang/ThreadGroup", b"java.lang.Thread", b"java.lang.ThreadGroup"];
/// Names of static fields whose references are followed.
const STATICS: [&[u8]; 3] = [b"props", b"reservedMemory", b"RESERVED_MEMORY"];
/// Names of the instance fields by which texts are found.
const FOLLOWED: [&str; 9] = ["name", "map", "table", "key", "val", "value", "next", "first", "props"];

impl RecordSink for PlanBuilder {
    fn header(&mut self, header: &Header, _: &[u8]) -> io::Result<()> {
        self.header = Some(*header);
        Ok(())
    }

    fn record(&mut self, record: &Record, body: &[u8]) -> io::Result<()> {
        let Some(header) = self.header else { return Ok(()) };
        // The reader of bodies starts at a record's header.
        let bytes = [&[0; RECORD_HEADER], body].concat();
        let (record, reader) = (Record { offset: 0, ..*record }, BodyReader::new(&bytes, header.id_size));
        match record.tag {
            tag::STRING => {
                if let Ok((id, text)) = reader.string(&record) {
                    self.thread_classes.symbol(id, text);
                    self.strings.insert(id, text.into());
                }
            }
            tag::LOAD_CLASS => {
                if let Ok(load) = reader.load_class(&record) {
                    let name = self.strings.get(&load.name).map(|name| &**name);
                    self.thread_classes.add_loaded(load.id, load.name, name);
                    self.loads.insert(load.id, load.name);
                    self.serials.insert(load.serial.into(), load.name);
                    self.uses(load.name, SymbolUse::Class);
                }
            }
            tag::FRAME => {
                if let Ok(frame) = reader.frame(&record) {
                    for id in [frame.method, frame.signature, frame.source] {
                        self.uses(id, SymbolUse::Frame);
                    }
                    let source = (frame.source, frame.class_serial);
                    if self.seen_sources.insert(source) {
                        self.sources.push(source);
                    }
                }
            }
            tag::START_THREAD => {
                if let Ok(thread) = reader.start_thread(&record) {
                    for id in [thread.name, thread.group, thread.parent_group] {
                        self.uses(id, SymbolUse::Thread);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn head(&mut self, _: &Record) -> io::Result<()> {
        Ok(())
    }

    fn sub_records(&mut self, bytes: &[u8], offset: u64, pieces: &[Range<usize>]) -> io::Result<()> {
        let Some(header) = self.header else { return Ok(()) };
        self.watched.extend(self.thread_classes.added.drain(..).chain(self.holders.added.drain(..)));
        let watched = &self.watched;
        let seen = parallel::map(pieces, |piece| {
            let mut visitor = PlanVisitor { watched, seen: SeenPiece::default() };
            heap::walk(bytes, header.id_size, piece.start, piece.end, piece.end, &mut visitor);
            (piece, visitor.seen)
        });
        // Some classes may be watched, and their instances may follow.
        let has_classes = seen.iter().any(|(_, seen)| !seen.classes.is_empty());
        for (piece, seen) in seen {
            let bytes = offset + piece.start as u64..offset + piece.end as u64;
            if seen.has_watched || has_classes {
                self.watched_ranges.push(bytes.clone());
            }
            if let Some(ids) = seen.ids {
                self.ranges.push(IdRange { bytes, ids });
            }
            seen.heap_names.into_iter().for_each(|name| self.uses(name, SymbolUse::Field));
            seen.classes.into_iter().for_each(|class| self.visit_class(class));
        }
        Ok(())
    }

    fn plain(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn elements(&mut self, _: &LargeArray, _: bool, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn instance_size(&self, class: ObjectId) -> Option<Option<u64>> {
        self.classes.contains_key(&class).then_some(None)
    }

    fn damaged_region(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

/// A class read from a chunk of sub-records, with its static fields: symbol of the name, type, value.
struct SeenClass {
    id: ObjectId,
    raw: RawClass,
    statics: Vec<(u64, BasicType, u64)>,
}

/// Classes and objects found in a chunk of sub-records.
#[derive(Default)]
struct SeenPiece {
    /// Lowest and highest object ID.
    ids: Option<(u64, u64)>,
    has_watched: bool,
    classes: Vec<SeenClass>,
    heap_names: Vec<u64>,
}

/// Visitor of the sub-records of a chunk.
struct PlanVisitor<'p> {
    watched: &'p IdSet<ObjectId>,
    seen: SeenPiece,
}

impl PlanVisitor<'_> {
    #[inline(always)]
    fn see(&mut self, id: ObjectId) {
        let (low, high) = self.seen.ids.unwrap_or((id.0, id.0));
        self.seen.ids = Some((low.min(id.0), high.max(id.0)));
    }
}

impl<'a> HeapVisitor<'a> for PlanVisitor<'_> {
    #[inline(always)]
    fn instance(&mut self, record: heap::Instance<'a>) {
        self.see(record.id);
        self.seen.has_watched = self.seen.has_watched || self.watched.contains(&record.class);
    }
    #[inline(always)]
    fn object_array(&mut self, record: heap::ObjectArray<'a>) {
        self.see(record.id);
    }
    #[inline(always)]
    fn primitive_array(&mut self, record: heap::PrimitiveArray<'a>) {
        self.see(record.id);
    }
    fn class(&mut self, record: ClassDump<'a>) {
        let fields = record.fields().map(|field| (field.name, field.kind)).collect();
        self.seen.classes.push(SeenClass {
            id: record.id,
            raw: RawClass { above: record.super_class, fields },
            statics: record.statics().map(|field| (field.name, field.kind, field.value)).collect(),
        });
    }
    fn heap_info(&mut self, _: usize, _: u32, name: u64) {
        self.seen.heap_names.push(name);
    }
}
