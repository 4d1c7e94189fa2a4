//! The stage `summary`: all that is known of a dump without looking at single objects.
//!
//! Facts only. Sizes follow from them by [`crate::layout::sizes`], for the fitted layout or any other.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use super::class_table::ClassTable;
use super::problem::{Account, Problem, ProblemKind, Severity};
use super::tables::*;
use super::text_pool::{self, TextPool};
use crate::layout::measurements::PRIMITIVE_LENGTHS;
use crate::storage::column::Column;
use crate::storage::id_map::IdMap;
use hprof_parser::{BasicType, IdSize, ObjectId, RootKind, Version};

pub use super::tables::ClassNumber;

/// Id of a class object -> class number.
pub(crate) type ClassIds = IdMap<ObjectId, ClassNumber>;

/// The tables of a summary. Every column is a section of the stage's file.
#[derive(Debug, Default)]
pub struct Tables {
    pub(crate) facts: Column<FactsRow>,
    pub(crate) classes: Column<ClassRow>,
    pub(crate) fields: Column<FieldRow>,
    pub(crate) statics: Column<StaticRow>,
    pub(crate) text_ends: Column<TextRow>,
    pub(crate) text_bytes: Column<u8>,
    pub(crate) object_lengths: Column<ObjectLengthRow>,
    pub(crate) elements: Column<ElementsRow>,
    pub(crate) primitive_lengths: Column<CountRow>,
    pub(crate) short_arrays: Column<DistanceRow>,
    pub(crate) class_distances: Column<ClassDistanceRow>,
    pub(crate) stack_chunks: Column<StackChunkRow>,
    pub(crate) roots: Column<RootRow>,
    pub(crate) strings: Column<PlaceRow>,
    pub(crate) frames: Column<PlaceRow>,
    pub(crate) traces: Column<PlaceRow>,
    pub(crate) loads: Column<LoadRow>,
    /// `START THREAD` and `END THREAD` records, and GC roots of threads.
    pub threads: Column<ThreadRow>,
    pub(crate) segments: Column<SegmentRow>,
    pub(crate) records: Column<RecordRow>,
    pub(crate) loaders: Column<LoaderRow>,
    pub(crate) properties: Column<PairRow>,
    pub(crate) heaps: Column<PairRow>,
    pub(crate) problems: Column<ProblemRow>,
    pub(crate) account: Column<AccountRow>,
    pub(crate) heap_dumps: Column<HeapDumpRow>,
}

/// All that is known of a dump without looking at single objects.
#[derive(Debug)]
pub struct Summary {
    tables: Tables,
    facts: FactsRow,
    class_table: OnceLock<ClassTable>,
    /// Whether what objects hold is not told: texts, numbers, names of threads and loaders.
    hides_values: bool,
    /// What was computed from it.
    derived: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// System properties that say which JVM it was, and nothing of its user.
const PUBLIC_PROPERTIES: &[&str] = &[
    "java.class.version",
    "java.runtime.name",
    "java.runtime.version",
    "java.specification.version",
    "java.vendor",
    "java.version",
    "java.vm.info",
    "java.vm.name",
    "java.vm.vendor",
    "java.vm.version",
    "os.arch",
    "os.name",
    "sun.arch.data.model",
];

impl Summary {
    /// A summary of these tables; `None` if they do not belong together.
    pub(crate) fn new(tables: Tables) -> Option<Self> {
        let facts = *tables.facts.first()?;
        tables.account.first()?;
        let numbers_fit = u32::try_from(tables.classes.len()).is_ok_and(|classes| classes < NONE);
        let lengths_fit = tables.primitive_lengths.len() == 8 * (PRIMITIVE_LENGTHS + 1);
        (numbers_fit && lengths_fit && matches!(facts.id_bytes, 4 | 8) && facts.version < 4)
            .then(|| Self::of(tables, facts))
    }

    /// A summary of tables that were made together.
    pub(crate) fn of(tables: Tables, facts: FactsRow) -> Self {
        Self { tables, facts, class_table: OnceLock::new(), hides_values: false, derived: OnceLock::new() }
    }

    /// What is computed from the summary alone, once: of the first type that is asked for. Another type is made each time.
    pub(crate) fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        match self.derived.get() {
            Some(known) => known.clone().downcast().unwrap_or_else(|_| Arc::new(make())),
            None => {
                let made = Arc::new(make());
                // Another thread may have been faster: both made the same.
                let _ = self.derived.set(made.clone());
                made
            }
        }
    }

    /// Whether a class has this name.
    pub fn is_named(&self, class: &ClassRow, name: &str) -> bool {
        self.raw_class_name(class) == name.as_bytes()
    }

    /// The same, from which no values are told: dumps hold secrets.
    pub(crate) fn hiding_values(self, hides_values: bool) -> Self {
        Self { hides_values, ..self }
    }

    /// Whether what objects hold is not told.
    pub(crate) fn hides_values(&self) -> bool {
        self.hides_values
    }

    /// Adds what was read from objects by means of the class table. `texts` are those of the summary, and those that
    /// the new rows name.
    pub(crate) fn with_objects(
        mut self,
        loaders: Vec<LoaderRow>,
        properties: Vec<PairRow>,
        texts: TextPool,
    ) -> Self {
        self.tables.loaders = loaders.into();
        self.tables.properties = properties.into();
        self.tables.text_ends = texts.ends.into();
        self.tables.text_bytes = texts.bytes.into();
        self
    }

    /// The tables from which everything else is computed.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The numbers that stand alone.
    pub fn facts(&self) -> &FactsRow {
        &self.facts
    }

    /// The format's version.
    pub fn version(&self) -> Version {
        match self.facts.version {
            0 => Version::V1_0,
            1 => Version::V1_0_1,
            2 => Version::V1_0_2,
            _ => Version::V1_0_3,
        }
    }

    /// The size of identifiers.
    pub fn id_size(&self) -> IdSize {
        if self.facts.id_bytes == 4 { IdSize::Four } else { IdSize::Eight }
    }

    /// The classes, by class number.
    pub fn classes(&self) -> &[ClassRow] {
        &self.tables.classes
    }

    /// All class numbers with their rows.
    pub fn numbered_classes(&self) -> impl Iterator<Item = (ClassNumber, &ClassRow)> {
        (0..).map(ClassNumber).zip(self.classes())
    }

    /// One class.
    #[inline]
    pub fn class(&self, number: ClassNumber) -> Option<&ClassRow> {
        self.tables.classes.get(number.0 as usize)
    }

    /// Who extends whom, made when it is asked for first.
    pub fn class_table(&self) -> &ClassTable {
        self.class_table.get_or_init(|| {
            let classes = self.classes();
            let id_size = self.id_size();
            let bytes =
                |class| self.raw_fields(class).map(|(_, kind)| kind.dump_bytes(id_size)).sum::<usize>();
            ClassTable::new(
                classes.iter().map(|class| class.super_class.get()).collect(),
                // A class has at most 65,535 fields.
                classes.iter().map(|class| u32::try_from(bytes(class)).unwrap_or(u32::MAX)).collect(),
            )
        })
    }

    /// The class numbers of all classes that have a class object.
    pub(crate) fn class_ids(&self) -> ClassIds {
        let ids = self.numbered_classes().map(|(number, class)| (ObjectId::from(class.id), number));
        ids.filter(|(id, _)| !id.is_null()).collect()
    }

    /// A class's name in Java source form.
    pub fn class_name(&self, class: &ClassRow) -> &str {
        self.text(class.name.get())
    }

    /// The same, but for comparing names: as bytes.
    pub(crate) fn raw_class_name(&self, class: &ClassRow) -> &[u8] {
        self.raw_text(class.name.get())
    }

    /// The text with this number.
    pub fn text(&self, number: u32) -> &str {
        text_pool::text(&self.tables.text_ends, &self.tables.text_bytes, number)
    }

    /// The instance fields that a class declares: name and type.
    pub fn fields(&self, class: &ClassRow) -> impl Iterator<Item = (&str, BasicType)> {
        let rows = self.field_rows(class).iter();
        rows.filter_map(|row| Some((self.text(row.name.get()), BasicType::from_code(row.kind)?)))
    }

    /// The same, but for comparing names: as bytes.
    pub fn raw_fields(&self, class: &ClassRow) -> impl Iterator<Item = (&[u8], BasicType)> {
        let rows = self.field_rows(class).iter();
        rows.filter_map(|row| Some((self.raw_text(row.name.get()), BasicType::from_code(row.kind)?)))
    }

    fn raw_text(&self, number: u32) -> &[u8] {
        text_pool::raw_text(&self.tables.text_ends, &self.tables.text_bytes, number)
    }

    fn field_rows(&self, class: &ClassRow) -> &[FieldRow] {
        let first = class.first_field.get() as usize;
        self.tables.fields.get(first..first + usize::from(class.fields.get())).unwrap_or_default()
    }

    /// The static fields of a class: name, type and the value's bits.
    pub fn statics(&self, class: &ClassRow) -> impl Iterator<Item = (&str, BasicType, u64)> {
        let text = |name| std::str::from_utf8(name).unwrap_or("");
        self.raw_statics(class).map(move |(name, kind, value)| (text(name), kind, value))
    }

    /// The same, but for comparing names: as bytes.
    pub(crate) fn raw_statics(&self, class: &ClassRow) -> impl Iterator<Item = (&[u8], BasicType, u64)> {
        let first = class.first_static.get() as usize;
        let rows =
            self.tables.statics.get(first..first + usize::from(class.statics.get())).unwrap_or_default();
        rows.iter().filter_map(|row| {
            Some((self.raw_text(row.name.get()), BasicType::from_code(row.kind)?, row.value.get()))
        })
    }

    /// The boot loader's class of this name.
    pub fn boot_class(&self, name: &str) -> Option<ClassNumber> {
        let mut classes = self.numbered_classes();
        Some(classes.find(|(_, row)| row.loader.get() == 0 && self.is_named(row, name))?.0)
    }

    /// The class number of java.lang.Class.
    pub fn java_lang_class(&self) -> Option<ClassNumber> {
        let number = ClassNumber(self.facts.java_lang_class.get());
        self.class(number).map(|_| number)
    }

    /// Class objects whose distance to the next object is known: class number and bytes.
    pub fn class_distances(&self) -> impl Iterator<Item = (ClassNumber, u64)> {
        self.tables.class_distances.iter().map(|row| (ClassNumber(row.class.get()), row.bytes.get()))
    }

    /// Instances of StackChunk by stack size.
    pub fn stack_chunks(&self) -> &[StackChunkRow] {
        &self.tables.stack_chunks
    }

    /// The GC roots, in file order.
    pub fn roots(&self) -> &[RootRow] {
        &self.tables.roots
    }

    /// Number of roots of each kind that occurs.
    pub fn root_counts(&self) -> Vec<(RootKind, u64)> {
        let mut counts = [0u64; 256];
        for row in self.tables.roots.iter() {
            if let Some(count) = counts.get_mut(usize::from(row.kind)) {
                *count += 1;
            }
        }
        let count = |kind: RootKind| counts.get(usize::from(kind.tag())).copied().unwrap_or(0);
        RootKind::ALL.into_iter().map(|kind| (kind, count(kind))).filter(|(_, count)| *count > 0).collect()
    }

    /// The offset of a STRING record.
    pub fn string_offset(&self, id: u64) -> Option<u64> {
        let at = self.tables.strings.binary_search_by_key(&id, |row| row.id.get()).ok()?;
        self.tables.strings.get(at).map(|row| row.offset.get())
    }

    /// The places of stack frames, ascending by id.
    pub fn frames(&self) -> &[PlaceRow] {
        &self.tables.frames
    }

    /// The places of stack traces, ascending by serial number.
    pub fn traces(&self) -> &[PlaceRow] {
        &self.tables.traces
    }

    /// The class loaders other than the boot loader, ascending by object id.
    pub fn loaders(&self) -> &[LoaderRow] {
        &self.tables.loaders
    }

    /// The name of a loader's class, if the loader is in the dump.
    pub fn loader_class(&self, loader: ObjectId) -> Option<&str> {
        let class = self.class(ClassNumber(self.loader(loader)?.class.get()))?;
        Some(self.class_name(class))
    }

    /// The name that a loader was given, if it was given one: `app`.
    pub fn loader_name(&self, loader: ObjectId) -> Option<&str> {
        Some(self.text(self.loader(loader)?.name.get())).filter(|name| !name.is_empty())
    }

    fn loader(&self, loader: ObjectId) -> Option<&LoaderRow> {
        let at = self.tables.loaders.binary_search_by_key(&loader, |row| row.id.into()).ok()?;
        self.tables.loaders.get(at)
    }

    /// The JVM's system properties, ascending by key.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &str)> {
        let all =
            self.tables.properties.iter().map(|row| (self.text(row.key.get()), self.text(row.value.get())));
        all.filter(|(key, _)| !self.hides_values || PUBLIC_PROPERTIES.contains(key))
    }

    /// One system property.
    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Android's heaps: number and name.
    pub fn heaps(&self) -> impl Iterator<Item = (u32, &str)> {
        self.tables.heaps.iter().map(|row| (row.key.get(), self.text(row.value.get())))
    }

    /// LOAD CLASS records, in the order of the file.
    pub fn loads(&self) -> &[LoadRow] {
        &self.tables.loads
    }

    /// START THREAD records, in the order of the file.
    pub fn threads(&self) -> &[ThreadRow] {
        &self.tables.threads
    }

    /// What is kept of the records of this tag, in the order of the file: offsets (ALLOC SITES, CPU SAMPLES, HEAP
    /// SUMMARY, CONTROL SETTINGS), or the serial numbers that they hold (UNLOAD CLASS, END THREAD).
    pub fn record_values(&self, tag: u8) -> impl Iterator<Item = u64> {
        self.tables.records.iter().filter(move |row| row.tag == tag).map(|row| row.value.get())
    }

    /// How many records of this tag there are, of those that are kept by place or value only.
    pub fn record_count(&self, tag: u8) -> usize {
        self.tables.records.iter().filter(|row| row.tag == tag).count()
    }

    /// Number of STRING, LOAD CLASS, STACK FRAME, STACK TRACE and START THREAD records, in this order.
    pub fn table_counts(&self) -> [usize; 5] {
        let tables = &self.tables;
        [
            tables.strings.len(),
            tables.loads.len(),
            tables.frames.len(),
            tables.traces.len(),
            tables.threads.len(),
        ]
    }

    /// The heap dumps of the file, the first thousand.
    pub fn heap_dumps(&self) -> &[HeapDumpRow] {
        &self.tables.heap_dumps
    }

    /// The segments of the heap dump that was read.
    pub fn segments(&self) -> &[SegmentRow] {
        &self.tables.segments
    }

    /// What is wrong or odd.
    pub fn problems(&self) -> Vec<Problem> {
        (self.tables.problems.iter())
            .map(|row| Problem {
                severity: if row.severity == 0 { Severity::Note } else { Severity::Damage },
                // Kinds have numbers of this version of the index, so this one is known.
                kind: ProblemKind::from_code(row.kind).unwrap_or(ProblemKind::MorePlaces),
                skipped_bytes: row.skipped_bytes.get(),
                text: self.text(row.text.get()).to_owned(),
                offset: Some(row.offset.get()).filter(|offset| *offset != u64::MAX),
            })
            .collect()
    }

    /// What was read of the dump, and what was not, in numbers.
    pub fn account(&self) -> Account {
        let row = self.tables.account.first().copied().unwrap_or_default();
        // Without a heap dump no class is dumped.
        let any = self.facts.heap_dumps.get() > 0;
        let undumped = || self.classes().iter().filter(move |class| any && !class.is_dumped());
        let instances = undumped().filter(|class| class.kind() == ClassKind::Instance);
        Account {
            file_bytes: self.facts.dump_bytes.get(),
            expected_bytes: Some(row.expected_bytes.get()).filter(|bytes| *bytes != u64::MAX),
            skipped_bytes: row.skipped_bytes.get(),
            lost_records: row.lost_records.get(),
            lost_places: row.lost_places.get(),
            undumped_classes: undumped().filter(|class| class.id.get() != 0).count() as u64,
            objects_without_class: instances.map(|class| class.objects.get()).sum(),
            odd_instances: self.classes().iter().map(|class| class.deviant.get()).sum(),
            empty_segments: row.empty_segments.get(),
            cut_object_arrays: row.cut_object_arrays.get(),
            cut_primitive_arrays: row.cut_primitive_arrays.get(),
            heap_damaged: row.heap_damaged != 0,
        }
    }

    /// Whether part of the dump is missing or unreadable.
    pub fn is_damaged(&self) -> bool {
        self.tables.problems.iter().any(|row| row.severity != 0)
    }
}
