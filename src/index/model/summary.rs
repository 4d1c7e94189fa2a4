//! The stage `summary`: all data about a dump that needs no access to single objects.
//!
//! It contains facts only. [`crate::layout::sizes`] computes sizes from them, for the fitted layout or any
//! other.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::array_contents::{ArrayFill, MissingContents};
use super::class_table::ClassTable;
use super::problem::{Account, Problem, ProblemKind, Severity};
use super::tables::*;
use super::text_pool::{self, TextPool};
use crate::model::measurements::{Lengths, PRIMITIVE_LENGTHS, array_kind};
use crate::storage::column::IndexColumn;
use crate::storage::id_map::IdMap;
use hprof_parser::Version;
use hprof_values::{BasicType, IdSize, ObjectId, RootKind};

pub use super::tables::ClassNumber;

/// Class number by the object ID of the class object.
pub(crate) type ClassIds = IdMap<ObjectId, ClassNumber>;

/// Tables of a summary. Every column is a section of the stage's file.
#[derive(Debug, Default)]
pub struct Tables {
    pub(crate) facts: IndexColumn<FactsRow>,
    pub(crate) classes: IndexColumn<ClassRow>,
    pub(crate) fields: IndexColumn<FieldRow>,
    pub(crate) statics: IndexColumn<StaticRow>,
    pub(crate) text_ends: IndexColumn<TextRow>,
    pub(crate) text_bytes: IndexColumn<u8>,
    pub(crate) object_lengths: IndexColumn<ObjectLengthRow>,
    pub(crate) elements: IndexColumn<ElementsRow>,
    pub(crate) primitive_lengths: IndexColumn<CountRow>,
    pub(crate) fills: IndexColumn<FillRow>,
    pub(crate) flat_classes: IndexColumn<FlatClassRow>,
    pub(crate) flat_fields: IndexColumn<FlatFieldRow>,
    pub(crate) flat_arrays: IndexColumn<FlatArrayRow>,
    pub(crate) element_arrays: IndexColumn<ElementArrayRow>,
    pub(crate) stated_sizes: IndexColumn<StatedSizeRow>,
    pub(crate) stated_totals: IndexColumn<StatedTotalRow>,
    pub(crate) short_arrays: IndexColumn<DistanceRow>,
    pub(crate) class_distances: IndexColumn<ClassDistanceRow>,
    pub(crate) stack_chunks: IndexColumn<StackChunkRow>,
    pub(crate) roots: IndexColumn<RootRow>,
    pub(crate) strings: IndexColumn<PlaceRow>,
    pub(crate) frames: IndexColumn<PlaceRow>,
    pub(crate) traces: IndexColumn<PlaceRow>,
    pub(crate) loads: IndexColumn<LoadRow>,
    /// `START THREAD` and `END THREAD` records, and GC roots of threads.
    pub threads: IndexColumn<ThreadRow>,
    pub(crate) segments: IndexColumn<SegmentRow>,
    pub(crate) records: IndexColumn<RecordRow>,
    pub(crate) loaders: IndexColumn<LoaderRow>,
    pub(crate) properties: IndexColumn<PairRow>,
    pub(crate) heaps: IndexColumn<PairRow>,
    pub(crate) problems: IndexColumn<ProblemRow>,
    pub(crate) account: IndexColumn<AccountRow>,
    pub(crate) heap_dumps: IndexColumn<HeapDumpRow>,
}

/// Data about a dump that needs no access to single objects.
#[derive(Debug)]
pub struct Summary {
    pub(super) tables: Tables,
    facts: FactsRow,
    class_table: OnceLock<ClassTable>,
    missing_contents: OnceLock<MissingContents>,
    /// `true` if values of objects are hidden: strings, numbers, names of threads and loaders.
    hides_values: bool,
    /// Cached results of [`Self::get_or_compute`], of different types.
    derived: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

/// System properties that identify the JVM and reveal nothing about its user.
pub const PUBLIC_PROPERTIES: &[&str] = &[
    "java.class.version",
    "java.runtime.name",
    "java.runtime.version",
    "java.specification.version",
    "java.vendor",
    "java.version",
    // VisualVM's heap library determines the size of references by this.
    "java.vm.compressedOopsMode",
    "java.vm.info",
    "java.vm.name",
    "java.vm.vendor",
    "java.vm.version",
    "os.arch",
    "os.name",
    "sun.arch.data.model",
];

impl Summary {
    /// Creates a summary of these tables; `None` if they are inconsistent.
    pub(crate) fn new(tables: Tables) -> Option<Self> {
        let facts = *tables.facts.first()?;
        tables.account.first()?;
        let numbers_fit = u32::try_from(tables.classes.len()).is_ok_and(|classes| classes < NONE);
        let lengths_fit = tables.primitive_lengths.len() == 8 * (PRIMITIVE_LENGTHS + 1);
        let lengths_fit = lengths_fit && tables.fills.len() == BasicType::PRIMITIVES.len();
        (numbers_fit && lengths_fit && matches!(facts.id_bytes, 4 | 8) && facts.version < 4)
            .then(|| Self::from_tables(tables, facts))
    }

    /// Creates a summary of tables that were made together.
    pub(crate) fn from_tables(tables: Tables, facts: FactsRow) -> Self {
        Self {
            tables,
            facts,
            class_table: OnceLock::new(),
            missing_contents: OnceLock::new(),
            hides_values: false,
            derived: Mutex::default(),
        }
    }

    /// Returns the value of type `T` that `make` computes from the summary alone. It is cached: tables by class cost each query
    /// milliseconds if there are tens of thousands of classes. `T` must be a type that no other caller uses.
    pub fn get_or_compute<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let known = |all: &[Arc<dyn Any + Send + Sync>]| {
            all.iter().find_map(|known| Arc::clone(known).downcast::<T>().ok())
        };
        let locked = || self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known(&locked()) {
            return known;
        }
        // Not locked: `make` may request another type. If another thread is faster, both computed the same value.
        let made = Arc::new(make());
        let mut all = locked();
        known(&all).unwrap_or_else(|| {
            all.push(Arc::clone(&made) as _);
            made
        })
    }

    /// Returns `true` if a class has this name.
    pub fn is_named(&self, class: &ClassRow, name: &str) -> bool {
        self.raw_class_name(class) == name.as_bytes()
    }

    /// Sets whether values of objects are hidden: dumps contain secrets.
    pub(crate) fn hiding_values(self, hides_values: bool) -> Self {
        Self { hides_values, ..self }
    }

    /// Returns `true` if values of objects are hidden.
    pub fn hides_values(&self) -> bool {
        self.hides_values
    }

    /// Adds data read from objects with the class table. `texts` contains the texts of the summary and of the new rows.
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

    /// Adds the tables of flattened objects, which are read with the class table.
    pub(crate) fn with_flat_objects(
        mut self,
        classes: Vec<FlatClassRow>,
        fields: Vec<FlatFieldRow>,
        arrays: Vec<FlatArrayRow>,
    ) -> Self {
        self.tables.flat_classes = classes.into();
        self.tables.flat_fields = fields.into();
        self.tables.flat_arrays = arrays.into();
        self
    }

    /// Adds the sums of stated sizes by class.
    pub(crate) fn with_stated_totals(mut self, totals: Vec<StatedTotalRow>) -> Self {
        self.tables.stated_totals = totals.into();
        self
    }

    /// Returns all tables of the summary.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns the scalar values of the summary.
    pub fn facts(&self) -> &FactsRow {
        &self.facts
    }

    /// Returns the version of the format.
    pub fn version(&self) -> Version {
        match self.facts.version {
            0 => Version::V1_0,
            1 => Version::V1_0_1,
            2 => Version::V1_0_2,
            _ => Version::V1_0_3,
        }
    }

    /// Returns the size of identifiers in the dump.
    pub fn id_size(&self) -> IdSize {
        if self.facts.id_bytes == 4 { IdSize::Four } else { IdSize::Eight }
    }

    /// Returns the classes, by class number.
    pub fn classes(&self) -> &[ClassRow] {
        &self.tables.classes
    }

    /// Returns all classes with their numbers.
    pub fn numbered_classes(&self) -> impl Iterator<Item = (ClassNumber, &ClassRow)> {
        (0..).map(ClassNumber).zip(self.classes())
    }

    /// Returns the class with this number.
    #[inline]
    pub fn class(&self, number: ClassNumber) -> Option<&ClassRow> {
        self.tables.classes.get(number.0 as usize)
    }

    /// Returns the class hierarchy, which is built on the first call.
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

    /// Returns the lengths of the primitive arrays of a type.
    pub fn primitive_lengths(&self, element: BasicType) -> Lengths<PRIMITIVE_LENGTHS> {
        let mut lengths = Lengths::default();
        let at = array_kind(element).checked_sub(1);
        let start = at.map_or(usize::MAX, |at| at * (PRIMITIVE_LENGTHS + 1));
        let rows = self.tables.primitive_lengths.get(start..).unwrap_or_default();
        if let Some((elements, counts)) = rows.split_first() {
            lengths.elements = elements.count.get();
            for (count, row) in lengths.by_length.iter_mut().zip(counts) {
                *count = row.count.get();
            }
        }
        lengths
    }

    /// Returns which contents of primitive arrays the dump lacks. Inferred on the first call.
    pub fn missing_contents(&self) -> MissingContents {
        *self.missing_contents.get_or_init(|| {
            let strings = self.classes().iter().filter(|class| self.is_named(class, "java.lang.String"));
            let fills: Vec<ArrayFill> = self.tables.fills.iter().map(ArrayFill::from).collect();
            if self.is_from_text() {
                return MissingContents::REMOVED;
            }
            MissingContents::infer(
                &fills,
                |element| self.primitive_lengths(element),
                strings.map(|class| class.objects.get()).sum(),
            )
        })
    }

    /// Returns `true` if an object is flattened: its fields are part of its only referrer (JEP 401).
    pub fn is_flat(&self, ObjectId(id): ObjectId) -> bool {
        id != 0 && id <= self.facts.last_flat_id.get()
    }

    /// Returns the classes of primitive arrays that the dump contains, in the order of [`BasicType::PRIMITIVES`].
    pub(crate) fn primitive_array_classes(&self) -> [Option<ClassNumber>; 8] {
        BasicType::PRIMITIVES.map(|element| {
            let is_of_kind = |class: &ClassRow| class.kind() == ClassKind::PrimitiveArray(element);
            let mut classes = self.numbered_classes();
            classes.find(|(_, class)| is_of_kind(class) && class.objects.get() > 0).map(|(number, _)| number)
        })
    }

    /// Returns the array classes by the class ID that arrays state, where it is that of their elements' class, or 0 (JVMPI).
    pub(crate) fn element_array_classes(&self) -> ClassIds {
        let rows = self.tables.element_arrays.iter();
        rows.map(|row| (row.element.into(), ClassNumber(row.class.get()))).collect()
    }

    /// Returns `true` if the dump was made from a text report, which states the sizes of objects but no values.
    pub fn is_from_text(&self) -> bool {
        self.facts.is_from_text != 0
    }

    /// Returns the size that a dump made from a text report states for an object; `None` if its class states it.
    pub fn stated_size(&self, ObjectId(id): ObjectId) -> Option<u64> {
        let rows: &[StatedSizeRow] = &self.tables.stated_sizes;
        let at = rows.binary_search_by_key(&id, |row| row.id.get()).ok()?;
        rows.get(at).map(|row| row.bytes.get())
    }

    /// Returns the number of flattened objects of each class that has some.
    pub fn flat_objects(&self) -> impl Iterator<Item = (ClassNumber, u64)> {
        self.tables.flat_classes.iter().map(|row| (ClassNumber(row.class.get()), row.objects.get()))
    }

    /// Returns the class numbers of all classes that have a class object.
    pub(crate) fn class_ids(&self) -> ClassIds {
        let ids = self.numbered_classes().map(|(number, class)| (ObjectId::from(class.id), number));
        ids.filter(|(id, _)| !id.is_null()).collect()
    }

    /// Returns the name of a class in Java source form.
    pub fn class_name(&self, class: &ClassRow) -> &str {
        self.text(class.name.get())
    }

    /// Returns the name of a class as bytes, for comparisons.
    pub(crate) fn raw_class_name(&self, class: &ClassRow) -> &[u8] {
        self.raw_text(class.name.get())
    }

    /// Returns the text with this number.
    pub fn text(&self, number: u32) -> &str {
        text_pool::text(&self.tables.text_ends, &self.tables.text_bytes, number)
    }

    /// Returns the instance fields that a class declares: name and type.
    pub fn fields(&self, class: &ClassRow) -> impl Iterator<Item = (&str, BasicType)> {
        let rows = self.field_rows(class).iter();
        rows.filter_map(|row| Some((self.text(row.name.get()), BasicType::from_code(row.kind)?)))
    }

    /// Returns the instance fields that a class declares, with names as bytes, for comparisons.
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

    /// Returns the static fields of a class: name, type and bits of the value.
    pub fn statics(&self, class: &ClassRow) -> impl Iterator<Item = (&str, BasicType, u64)> {
        let text = |name| std::str::from_utf8(name).unwrap_or("");
        self.raw_statics(class).map(move |(name, kind, value)| (text(name), kind, value))
    }

    /// Returns the static fields of a class, with names as bytes, for comparisons.
    pub(crate) fn raw_statics(&self, class: &ClassRow) -> impl Iterator<Item = (&[u8], BasicType, u64)> {
        let first = class.first_static.get() as usize;
        let rows =
            self.tables.statics.get(first..first + usize::from(class.statics.get())).unwrap_or_default();
        rows.iter().filter_map(|row| {
            Some((self.raw_text(row.name.get()), BasicType::from_code(row.kind)?, row.value.get()))
        })
    }

    /// Returns the boot loader's class of this name.
    pub fn boot_class(&self, name: &str) -> Option<ClassNumber> {
        let mut classes = self.numbered_classes();
        Some(classes.find(|(_, row)| row.loader.get() == 0 && self.is_named(row, name))?.0)
    }

    /// Returns the class number of java.lang.Class.
    pub fn java_lang_class(&self) -> Option<ClassNumber> {
        let number = ClassNumber(self.facts.java_lang_class.get());
        self.class(number).map(|_| number)
    }

    /// Returns the class objects with a known distance to the next object: class number and bytes.
    pub fn class_distances(&self) -> impl Iterator<Item = (ClassNumber, u64)> {
        self.tables.class_distances.iter().map(|row| (ClassNumber(row.class.get()), row.bytes.get()))
    }

    /// Returns the counts of StackChunk instances by stack size.
    pub fn stack_chunks(&self) -> &[StackChunkRow] {
        &self.tables.stack_chunks
    }

    /// Returns the GC roots, in file order.
    pub fn roots(&self) -> &[RootRow] {
        &self.tables.roots
    }

    /// Returns the number of roots of each kind that occurs.
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

    /// Returns `true` if the dump has roots for threads, but none for stack frames, JNI globals and sticky classes, as HotSpot's
    /// serviceability agent wrote it (JDK-8390442): objects that only those hold count as unreachable.
    pub fn lacks_roots(&self) -> bool {
        let has = |kind: RootKind| self.tables.roots.iter().any(|row| row.kind == kind.tag());
        !self.is_from_text()
            && has(RootKind::ThreadObject)
            && ![RootKind::JavaFrame, RootKind::JniGlobal, RootKind::StickyClass].into_iter().any(has)
    }

    /// Returns the offset of a STRING record.
    pub fn string_offset(&self, id: u64) -> Option<u64> {
        let at = self.tables.strings.binary_search_by_key(&id, |row| row.id.get()).ok()?;
        self.tables.strings.get(at).map(|row| row.offset.get())
    }

    /// Returns the offsets of STACK FRAME records, ascending by ID.
    pub fn frames(&self) -> &[PlaceRow] {
        &self.tables.frames
    }

    /// Returns the offsets of STACK TRACE records, ascending by serial number.
    pub fn traces(&self) -> &[PlaceRow] {
        &self.tables.traces
    }

    /// Returns the class loaders other than the boot loader, ascending by object ID.
    pub fn loaders(&self) -> &[LoaderRow] {
        &self.tables.loaders
    }

    /// Returns the name of a loader's class, if the loader is in the dump.
    pub fn loader_class(&self, loader: ObjectId) -> Option<&str> {
        let class = self.class(ClassNumber(self.loader(loader)?.class.get()))?;
        Some(self.class_name(class))
    }

    /// Returns the name given to a loader, if any: `app`.
    pub fn loader_name(&self, loader: ObjectId) -> Option<&str> {
        Some(self.text(self.loader(loader)?.name.get())).filter(|name| !name.is_empty())
    }

    fn loader(&self, loader: ObjectId) -> Option<&LoaderRow> {
        let at = self.tables.loaders.binary_search_by_key(&loader, |row| row.id.into()).ok()?;
        self.tables.loaders.get(at)
    }

    /// Returns the JVM's system properties, ascending by key.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &str)> {
        let all =
            self.tables.properties.iter().map(|row| (self.text(row.key.get()), self.text(row.value.get())));
        all.filter(|(key, _)| !self.hides_values || PUBLIC_PROPERTIES.contains(key))
    }

    /// Returns the value of a system property of the JVM.
    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Returns the feature version of the JVM: 8, 17, ...
    pub fn java_feature_version(&self) -> Option<u32> {
        let version = self.property("java.specification.version")?;
        version.strip_prefix("1.").unwrap_or(version).split('.').next()?.parse().ok()
    }

    /// Returns Android's heaps: number and name.
    pub fn heaps(&self) -> impl Iterator<Item = (u32, &str)> {
        self.tables.heaps.iter().map(|row| (row.key.get(), self.text(row.value.get())))
    }

    /// Returns the LOAD CLASS records, in file order.
    pub fn loads(&self) -> &[LoadRow] {
        &self.tables.loads
    }

    /// Returns the START THREAD records, in file order.
    pub fn threads(&self) -> &[ThreadRow] {
        &self.tables.threads
    }

    /// Returns the stored values of the records with this tag, in file order: offsets (ALLOC SITES, CPU
    /// SAMPLES, HEAP SUMMARY, CONTROL SETTINGS), or the serial numbers that they contain (UNLOAD CLASS, END
    /// THREAD).
    pub fn record_values(&self, tag: u8) -> impl Iterator<Item = u64> {
        self.tables.records.iter().filter(move |row| row.tag == tag).map(|row| row.value.get())
    }

    /// Returns the number of values with this tag in [`Self::record_values`].
    pub fn record_count(&self, tag: u8) -> usize {
        self.tables.records.iter().filter(|row| row.tag == tag).count()
    }

    /// Returns the first thousand heap dumps of the file.
    pub fn heap_dumps(&self) -> &[HeapDumpRow] {
        &self.tables.heap_dumps
    }

    /// Returns the segments of the heap dump that was read.
    pub fn segments(&self) -> &[SegmentRow] {
        &self.tables.segments
    }

    /// Returns the problems and oddities found while reading the dump.
    pub fn problems(&self) -> Vec<Problem> {
        (self.tables.problems.iter())
            .map(|row| Problem {
                severity: if row.severity == 0 { Severity::Note } else { Severity::Damage },
                // Codes of kinds belong to this version of the index, so this one is known.
                kind: ProblemKind::from_code(row.kind).unwrap_or(ProblemKind::MorePlaces),
                skipped_bytes: row.skipped_bytes.get(),
                text: self.text(row.text.get()).to_owned(),
                offset: Some(row.offset.get()).filter(|offset| *offset != u64::MAX),
            })
            .collect()
    }

    /// Returns the totals of read, skipped and damaged data.
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

    /// Returns `true` if part of the dump is missing or unreadable.
    pub fn is_damaged(&self) -> bool {
        self.tables.problems.iter().any(|row| row.severity != 0)
    }
}
