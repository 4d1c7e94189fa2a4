//! Construction of the class table from CLASS DUMPs, LOAD CLASSes and the counts of the scan.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::storage::allowance::{Allowance, bytes as bytes_of, map_bytes};
use crate::storage::human_bytes::plural;
use crate::storage::id_map::{IdMap, IdSet};
use crate::storage::memory::NoMemory;

use hprof_parser::mutf8;
use hprof_parser::record::{BodyReader, LoadClass, Record};
use hprof_values::{BasicType, IdSize, ObjectId, TraceSerial, names};

use super::find_objects::{FoundObject, Lookup};
use super::tallies::{ScanResult, Tally};
use crate::model::class_table::ClassTable;
use crate::model::measurements::{Distance, Lengths, PRIMITIVE_LENGTHS};
use crate::model::problem::{Problem, ProblemKind};
use crate::model::summary::{ClassIds, Summary, Tables};
use crate::model::tables::*;
use crate::model::text_pool::TextPool;
use crate::objects::fields::Fields;
use crate::objects::reader::{self, ClassObject, Instance, record_at};
use crate::records::top_level::Contents;

/// Size of the longest name that a class file can contain, in bytes; longer ones are truncated.
const MAX_NAME: usize = 65_535;
/// Memory for a class in all tables made of classes, in bytes: its row twice while the table grows, its
/// entry in the map of IDs, a placeholder name, and its rows in the summary.
const CLASS_BYTES: u64 = 400;

/// Returns the bytes of a STRING record; empty if it does not exist.
pub(crate) fn raw_bytes<'a>(bytes: &'a [u8], id_size: IdSize, contents: &Contents, id: u64) -> &'a [u8] {
    let record = contents.string(id).and_then(|at| Record::at(bytes, usize::try_from(at).ok()?));
    let text = record.and_then(|record| BodyReader::new(bytes, id_size).string(&record).ok());
    text.map_or(&[], |(_, text)| text.get(..MAX_NAME).unwrap_or(text))
}

/// Returns the decoded text of a STRING record; empty if it does not exist.
pub(crate) fn raw_name<'a>(bytes: &'a [u8], id_size: IdSize, contents: &Contents, id: u64) -> Cow<'a, str> {
    mutf8::decode(raw_bytes(bytes, id_size, contents, id))
}

/// Returns `true` if only arrays state the class.
fn has_only_arrays(tally: &Tally) -> bool {
    tally.lengths.as_ref().is_some_and(|lengths| lengths.count() == tally.objects)
}

/// Builder of the class table, with the texts of names.
pub(crate) struct ClassRowBuilder<'a> {
    bytes: &'a [u8],
    id_size: IdSize,
    contents: &'a Contents,
    texts: TextPool,
    /// String ID -> text number of a field's name.
    field_names: IdMap<u64, u32>,
    /// String ID -> text number of a class's name.
    class_names: IdMap<u64, u32>,
    rows: Vec<ClassRow>,
    fields: Vec<FieldRow>,
    statics: Vec<StaticRow>,
    numbers: IdMap<ObjectId, u32>,
    /// Class numbers of array classes by the ID of their elements' class, where arrays state that (JVMPI).
    element_arrays: IdMap<ObjectId, u32>,
    java_lang_class: u32,
    class_objects: u64,
    unnamed: u64,
    missing: u64,
    deviant: u64,
}

impl<'a> ClassRowBuilder<'a> {
    pub(crate) fn new(bytes: &'a [u8], id_size: IdSize, contents: &'a Contents) -> Self {
        let mut texts = TextPool::default();
        // Text 0 is the empty text.
        texts.add("");
        Self {
            bytes,
            id_size,
            contents,
            texts,
            field_names: IdMap::default(),
            class_names: IdMap::default(),
            rows: Vec::new(),
            fields: Vec::new(),
            statics: Vec::new(),
            numbers: IdMap::default(),
            element_arrays: IdMap::default(),
            java_lang_class: NONE,
            class_objects: 0,
            unnamed: 0,
            missing: 0,
            deviant: 0,
        }
    }

    /// Adds all classes: dumped ones in file order, then those that are only loaded, then those that only
    /// objects refer to.
    ///
    /// # Errors
    /// [`NoMemory`]: each object of a file may refer to a class of its own.
    pub(crate) fn add_classes(&mut self, scan: &ScanResult, allowance: &Allowance) -> Result<(), NoMemory> {
        let loaded = self.contents.class_loads.len();
        allowance.take(map_bytes::<LoadClass>(loaded))?;
        let ids = scan.class_dumps.len() + loaded + scan.tallies.len();
        allowance.take(bytes_of::<ObjectId>(ids))?;
        let dumped = scan.class_dumps.iter().map(|(_, id)| *id);
        let loads_ids = self.contents.class_loads.iter().map(|load| load.id);
        let mut all: Vec<ObjectId> = Vec::with_capacity(ids);
        all.extend(dumped.chain(loads_ids).chain(scan.tallies.keys().copied()));
        all.sort_unstable();
        all.dedup();
        allowance.take(CLASS_BYTES.saturating_mul(all.len() as u64))?;
        let loads: IdMap<ObjectId, LoadClass> =
            self.contents.class_loads.iter().map(|load| (load.id, *load)).collect();
        for (offset, id) in &scan.class_dumps {
            if !self.numbers.contains_key(id) {
                self.add_dumped(
                    *offset,
                    scan.tallies.get(id),
                    loads.get(id).map(|load| (load.serial, load.name)),
                );
            }
        }
        self.class_objects = self.rows.len() as u64;
        for id in all {
            // The class of arrays without a class is added later.
            let is_later = id.is_null() && scan.tallies.get(&id).is_some_and(has_only_arrays);
            if !is_later && !self.numbers.contains_key(&id) {
                let load = loads.get(&id).map(|load| (load.serial, load.name));
                self.add_undumped(id, scan.tallies.get(&id), load);
            }
        }
        self.add_element_arrays(scan);
        self.add_primitive_arrays(scan);
        self.link();
        self.add_site_sizes();
        allowance.give_back(map_bytes::<LoadClass>(loaded).saturating_add(bytes_of::<ObjectId>(ids)));
        Ok(())
    }

    /// Sets instance sizes from ALLOC SITES: the HPROF agent queries the JVM for the size of each object
    /// that it counts there (JVMTI `GetObjectSize`), while its class dumps state only the fields.
    ///
    /// The agent counts a class's own class object among its instances, at the site of the class's trace;
    /// that site is skipped. Of several others the smallest size is used.
    fn add_site_sizes(&mut self) {
        let reader = BodyReader::new(self.bytes, self.id_size);
        let mut sizes: IdMap<u32, u32> = IdMap::default();
        let class_traces: IdMap<u32, TraceSerial> =
            self.rows.iter().map(|row| (row.serial.get(), row.trace.into())).collect();
        for offset in &self.contents.alloc_sites {
            let record = usize::try_from(*offset).ok().and_then(|at| Record::at(self.bytes, at));
            let Some(Ok(sites)) = record.map(|record| reader.alloc_sites(&record)) else {
                continue;
            };
            for site in sites.sites().filter(|site| site.array.is_none() && site.allocated_instances > 0) {
                let (bytes, instances) = (site.allocated_bytes, site.allocated_instances);
                let of_class = class_traces.get(&site.class_serial) == Some(&site.trace);
                if !of_class && bytes % instances == 0 && (bytes / instances) % 8 == 0 {
                    let size = sizes.entry(site.class_serial).or_insert(u32::MAX);
                    *size = (*size).min(bytes / instances);
                }
            }
        }
        let java_lang_class = self.java_lang_class;
        for (number, row) in (0u32..).zip(&mut self.rows) {
            // Class objects vary in size.
            if row.kind == ClassKind::Instance.code() && row.serial.get() != 0 && number != java_lang_class {
                row.site_size = sizes.get(&row.serial.get()).copied().unwrap_or(0).into();
            }
        }
    }

    fn next_number(&self) -> u32 {
        u32::try_from(self.rows.len()).unwrap_or(NONE)
    }

    fn push(&mut self, row: ClassRow) {
        // There is no class with ID 0.
        if let Some(id) = ObjectId::from(row.id).non_null() {
            self.numbers.insert(id, self.next_number());
        }
        self.rows.push(row);
    }

    fn intern_class_name(&mut self, id: ObjectId, load: Option<(u32, u64)>) -> u32 {
        let string = load.map_or(0, |(_, name)| name);
        if let Some(number) = load.and_then(|_| self.class_names.get(&string)) {
            return *number;
        }
        let name = raw_name(self.bytes, self.id_size, self.contents, string);
        match load.filter(|_| !name.is_empty()) {
            Some(_) => {
                let number = self.texts.add(&names::java_class_name(&name));
                self.class_names.insert(string, number);
                number
            }
            None => {
                self.unnamed += 1;
                self.texts.add(&format!("<class {id:#x}>"))
            }
        }
    }

    fn field_name(&mut self, id: u64) -> u32 {
        if let Some(number) = self.field_names.get(&id) {
            return *number;
        }
        let name = raw_name(self.bytes, self.id_size, self.contents, id);
        let number = self.texts.add(&name);
        self.field_names.insert(id, number);
        number
    }

    fn add_dumped(&mut self, offset: usize, tally: Option<&Tally>, load: Option<(u32, u64)>) {
        // The scan has read it completely.
        let record = record_at(self.bytes, self.id_size, offset as u64);
        let Some(reader::ObjectRecord::Class(ClassObject(class))) = record else { return };
        let first_field = u32::try_from(self.fields.len()).unwrap_or(NONE);
        let first_static = u32::try_from(self.statics.len()).unwrap_or(NONE);
        for field in class.fields() {
            let name = self.field_name(field.name).into();
            self.fields.push(FieldRow { name, kind: field.kind.code() });
        }
        for field in class.statics() {
            let name = self.field_name(field.name).into();
            self.statics.push(StaticRow { value: field.value.into(), name, kind: field.kind.code() });
        }
        // The file stores their numbers as u2.
        let count = |from: u32, to: usize| u16::try_from(to - from as usize).unwrap_or(u16::MAX);
        let name = self.intern_class_name(class.id, load);
        let row = ClassRow {
            super_id: class.super_class.into(),
            loader: class.loader.into(),
            signers: class.signers.into(),
            protection_domain: class.protection_domain.into(),
            offset: (offset as u64).into(),
            stated_size: class.instance_size.into(),
            trace: class.trace.into(),
            first_field: first_field.into(),
            first_static: first_static.into(),
            fields: count(first_field, self.fields.len()).into(),
            statics: count(first_static, self.statics.len()).into(),
            flags: 1,
            ..self.row(class.id, name, tally, load)
        };
        self.push(row);
    }

    fn add_undumped(&mut self, id: ObjectId, tally: Option<&Tally>, load: Option<(u32, u64)>) {
        let name = self.intern_class_name(id, load);
        let row = self.row(id, name, tally, load);
        if row.objects.get() > 0 {
            self.missing += 1;
        }
        self.push(row);
    }

    /// Creates the part of a row that does not depend on a CLASS DUMP.
    fn row(&mut self, id: ObjectId, name: u32, tally: Option<&Tally>, load: Option<(u32, u64)>) -> ClassRow {
        let text = crate::model::text_pool::text(&self.texts.ends, &self.texts.bytes, name);
        let is_named = load.is_some() && !text.starts_with('<');
        let arrays = tally.and_then(|tally| tally.lengths.as_deref()).map_or(0, Lengths::count);
        let is_element = (is_named || id.is_null()) && arrays > 0 && !text.ends_with("[]");
        let is_array = text.ends_with("[]") || arrays > 0 && !is_element;
        // Arrays that state the class of their elements are not instances of it.
        let objects = tally.map_or(0, |tally| tally.objects);
        let objects = if is_element { objects.saturating_sub(arrays) } else { objects };
        let primitive =
            BasicType::PRIMITIVES.into_iter().find(|kind| text.strip_suffix("[]") == Some(kind.java_name()));
        let kind = match primitive {
            Some(element) => ClassKind::PrimitiveArray(element),
            None if is_array => ClassKind::ObjectArray,
            None => ClassKind::Instance,
        };
        let distance = tally.map_or_else(Distance::default, |tally| tally.distance);
        ClassRow {
            id: id.into(),
            objects: objects.into(),
            deviant: tally.map_or(0, |tally| tally.mismatched).into(),
            name: name.into(),
            super_class: NONE.into(),
            serial: load.map_or(0, |(serial, _)| serial).into(),
            distance_min: distance.min.into(),
            distance_hits: distance.hits.into(),
            distance_seen: distance.seen.into(),
            kind: kind.code(),
            flags: if load.is_some() { 2 } else { 0 },
            ..ClassRow::default()
        }
    }

    /// Adds the classes of arrays that state the class of their elements, or none: JVMPI agents (JDK 1.2 to 1.4) write that.
    /// All others state the array's class, whose name ends with brackets.
    fn add_element_arrays(&mut self, scan: &ScanResult) {
        let mut elements: Vec<(ObjectId, u64)> = (scan.tallies.iter())
            .filter_map(|(id, tally)| Some((*id, tally.lengths.as_ref()?.count())))
            .filter(|(id, arrays)| *arrays > 0 && self.is_element_class(*id))
            .collect();
        elements.sort_unstable();
        let mut arrays_of: HashMap<String, u32> = HashMap::new();
        if !elements.is_empty() {
            for (number, row) in (0u32..).zip(&self.rows) {
                if row.kind == ClassKind::ObjectArray.code() {
                    arrays_of.entry(self.text(row).to_owned()).or_insert(number);
                }
            }
        }
        for (id, arrays) in elements {
            let row = self.numbers.get(&id).and_then(|number| self.rows.get(*number as usize));
            let name = format!("{}[]", row.map_or("<unknown class>", |row| self.text(row)));
            let number = match arrays_of.get(&name) {
                Some(number) => *number,
                None => {
                    let number = self.next_number();
                    let text = self.texts.add(&name);
                    let row = self.row(ObjectId::NULL, text, None, None);
                    self.push(row);
                    arrays_of.insert(name, number);
                    number
                }
            };
            if let Some(row) = self.rows.get_mut(number as usize) {
                row.objects = row.objects.get().saturating_add(arrays).into();
            }
            self.element_arrays.insert(id, number);
        }
    }

    /// Returns `true` if arrays that state this class have elements of it: it is not an array class.
    fn is_element_class(&self, id: ObjectId) -> bool {
        if id.is_null() {
            return true;
        }
        let row = self.numbers.get(&id).and_then(|number| self.rows.get(*number as usize));
        row.is_some_and(|row| row.kind == ClassKind::Instance.code())
    }

    fn text(&self, row: &ClassRow) -> &str {
        crate::model::text_pool::text(&self.texts.ends, &self.texts.bytes, row.name.get())
    }

    /// Assigns the primitive arrays to their classes; classes that the dump does not contain get a row
    /// without a class object.
    fn add_primitive_arrays(&mut self, scan: &ScanResult) {
        for (element, lengths) in BasicType::PRIMITIVES.into_iter().zip(&scan.primitive) {
            let count = lengths.count();
            if count == 0 {
                continue;
            }
            let code = element.code();
            let name = self.texts.add(&format!("{}[]", element.java_name()));
            // Of several (an array class dumped for more than one loader, which is impossible) the first.
            match self.rows.iter_mut().find(|row| row.kind == code && row.name.get() == name) {
                Some(row) => row.objects = (row.objects.get() + count).into(),
                None => {
                    let row = self.row(ObjectId::NULL, name, None, None);
                    self.push(ClassRow { objects: count.into(), ..row });
                }
            }
        }
    }

    /// Sets the superclass of each class, and the class number of java.lang.Class.
    fn link(&mut self) {
        for row in &mut self.rows {
            let above = self.numbers.get(&row.super_id.into()).copied();
            row.super_class = above.unwrap_or(NONE).into();
            row.flags |= u8::from(row.serial.get() != 0) << 1;
        }
        let name = self.texts.add("java.lang.Class");
        let mut candidates: Vec<(bool, u32)> = (0..)
            .zip(&self.rows)
            .filter(|(_, row)| row.name.get() == name)
            .map(|(number, row): (u32, _)| (row.loader.get() != 0, number))
            .collect();
        candidates.sort_unstable();
        self.java_lang_class = match candidates.first() {
            Some((_, number)) => *number,
            None if self.class_objects > 0 => {
                let number = self.next_number();
                let row = self.row(ObjectId::NULL, name, None, None);
                self.push(row);
                number
            }
            None => NONE,
        };
        self.deviant = self.rows.iter().map(|row| row.deviant.get()).sum();
    }

    /// Returns the IDs of the classes with this name and of all their subclasses.
    pub(crate) fn with_subclasses(&self, name: &str) -> IdSet<ObjectId> {
        let text = |row: &ClassRow| {
            crate::model::text_pool::text(&self.texts.ends, &self.texts.bytes, row.name.get())
        };
        let mut wanted: Vec<bool> =
            self.rows.iter().map(|row| row.is_dumped() && text(row) == name).collect();
        let superclasses = self.rows.iter().map(|row| row.super_class.get()).collect();
        ClassTable::new(superclasses, Vec::new()).add_subclasses(&mut wanted);
        let wanted = self.rows.iter().zip(wanted).filter(|(_, is_wanted)| *is_wanted);
        wanted.filter_map(|(row, _)| ObjectId::from(row.id).non_null()).collect()
    }

    /// Returns the class number of java.lang.Class, or NONE.
    pub(crate) fn java_lang_class(&self) -> u32 {
        self.java_lang_class
    }

    /// Returns the number of classes with a CLASS DUMP.
    pub(crate) fn class_objects(&self) -> u64 {
        self.class_objects
    }

    /// Returns the problems of the classes.
    pub(crate) fn problems(&self, scan: &ScanResult) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut note = |kind: ProblemKind, count: u64, one: &str, many: &str| {
            if count > 0 {
                problems.push(Problem::note(kind, format!("{count} {}", plural(count, one, many)), None));
            }
        };
        let one = "class has objects but no CLASS DUMP record: its fields are unknown";
        let many = "classes have objects but no CLASS DUMP record: their fields are unknown";
        note(ProblemKind::MissingClasses, self.missing, one, many);
        let (one, many) = ("class has no name in the dump", "classes have no name in the dump");
        note(ProblemKind::UnnamedClasses, self.unnamed, one, many);
        let one = "instance has more or fewer field bytes than its class declares";
        let many = "instances have more or fewer field bytes than their classes declare";
        note(ProblemKind::OddInstances, self.deviant, one, many);
        let repeated = (scan.class_dumps.len() as u64).saturating_sub(self.class_objects);
        let one = "CLASS DUMP record repeats an earlier one of the same class, and is ignored";
        let many = "CLASS DUMP records repeat earlier ones of the same classes, and are ignored";
        note(ProblemKind::RepeatedClasses, repeated, one, many);
        let cut = scan.cut_object_arrays + scan.cut_primitive_arrays;
        let one = "array has the maximum length that HotSpot dumps, and may be truncated";
        let many = "arrays have the maximum length that HotSpot dumps, and may be truncated";
        note(ProblemKind::CutArrays, cut, one, many);
        problems
    }

    /// Fills the tables of classes and of measurements.
    pub(crate) fn tables(&mut self, scan: &ScanResult) -> Tables {
        let number = |id: &ObjectId| self.numbers.get(id).copied();
        let array_number = |id: &ObjectId| self.element_arrays.get(id).copied().or_else(|| number(id));
        let mut lengths: Vec<(u32, Cow<'_, Lengths<64>>)> = (scan.tallies.iter())
            .filter_map(|(id, tally)| Some((array_number(id)?, Cow::Borrowed(tally.lengths.as_deref()?))))
            .collect();
        lengths.sort_by_key(|(class, _)| *class);
        lengths.dedup_by(|(class, more), (known_class, lengths)| {
            let is_same = class == known_class;
            if is_same {
                lengths.to_mut().merge(more);
            }
            is_same
        });
        let elements = lengths.iter().map(|(class, lengths)| ElementsRow {
            elements: lengths.elements.into(),
            class: (*class).into(),
        });
        let mut element_arrays: Vec<ElementArrayRow> = (self.element_arrays.iter())
            .map(|(element, class)| ElementArrayRow { element: (*element).into(), class: (*class).into() })
            .collect();
        element_arrays.sort_unstable_by_key(|row| row.element.get());
        let object_lengths = lengths.iter().flat_map(|(class, lengths)| {
            let counted = (0u8..).zip(&lengths.by_length).filter(|(_, count)| **count > 0);
            counted.map(|(length, count)| ObjectLengthRow {
                count: (*count).into(),
                class: (*class).into(),
                length,
            })
        });
        let primitive_lengths = scan.primitive.iter().flat_map(|lengths: &Lengths<PRIMITIVE_LENGTHS>| {
            let counts = [lengths.elements].into_iter().chain(lengths.by_length);
            counts.map(|count| CountRow { count: count.into() })
        });
        let mut class_distances: Vec<(u32, u64)> = scan
            .class_distances
            .iter()
            .filter_map(|(id, bytes)| Some((number(&ObjectId(*id))?, *bytes)))
            .collect();
        class_distances.sort_unstable();
        let class_distances = (class_distances.into_iter())
            .filter(|(class, _)| self.rows.get(*class as usize).is_some_and(ClassRow::is_dumped))
            .map(|(class, bytes)| ClassDistanceRow { bytes: bytes.into(), class: class.into() });
        Tables {
            classes: self.rows.clone().into(),
            element_arrays: element_arrays.into(),
            elements: elements.collect::<Vec<_>>().into(),
            object_lengths: object_lengths.collect::<Vec<_>>().into(),
            primitive_lengths: primitive_lengths.collect::<Vec<_>>().into(),
            fills: scan.fills.iter().map(FillRow::from).collect::<Vec<_>>().into(),
            short_arrays: (scan.short.distances().iter())
                .map(|distance| DistanceRow::from(*distance))
                .collect::<Vec<_>>()
                .into(),
            class_distances: class_distances.collect::<Vec<_>>().into(),
            stack_chunks: self.stack_chunks(scan).into(),
            fields: std::mem::take(&mut self.fields).into(),
            statics: std::mem::take(&mut self.statics).into(),
            ..Tables::default()
        }
    }

    /// Returns the texts of all names.
    pub(crate) fn into_texts(self) -> TextPool {
        self.texts
    }

    /// Groups the instances of StackChunk by stack size, the field `size`.
    fn stack_chunks(&self, scan: &ScanResult) -> Vec<StackChunkRow> {
        let mut groups: IdMap<u32, (u64, Distance)> = IdMap::default();
        for (offset, bytes) in &scan.stack_chunks {
            let words = match record_at(self.bytes, self.id_size, *offset as u64) {
                Some(reader::ObjectRecord::Instance(chunk)) => self.stack_words(&chunk).unwrap_or(0),
                _ => 0,
            };
            let (instances, distance) = groups.entry(words).or_default();
            *instances += 1;
            if let Some(bytes) = bytes {
                distance.see(*bytes);
            }
        }
        let mut rows: Vec<StackChunkRow> = (groups.into_iter())
            .map(|(words, (instances, distance))| StackChunkRow {
                instances: instances.into(),
                words: words.into(),
                distance: distance.into(),
            })
            .collect();
        rows.sort_unstable_by_key(|row| row.words.get());
        rows
    }

    /// Returns the value of the field `size` of a StackChunk, which the class itself declares.
    fn stack_words(&self, chunk: &Instance<'_>) -> Option<u32> {
        let class = self.rows.get(*self.numbers.get(&chunk.class)? as usize)?;
        let first = class.first_field.get() as usize;
        let mut at = 0;
        for field in self.fields.get(first..first + usize::from(class.fields.get()))? {
            let kind = BasicType::from_code(field.kind)?;
            let name = crate::model::text_pool::text(&self.texts.ends, &self.texts.bytes, field.name.get());
            if name == "size" && kind == BasicType::Int {
                return hprof_values::be_u32(chunk.fields, at);
            }
            at += kind.dump_bytes(self.id_size);
        }
        None
    }
}

/// Maximum length of the name of a class loader, in characters: there can be as many loaders as classes.
const MAX_LOADER_NAME: usize = 128;

/// Returns the class loaders of all classes, with the loaders' own classes.
pub(crate) fn loaders(
    summary: &Summary,
    lookup: &Lookup<'_>,
    classes: &ClassIds,
    texts: &mut TextPool,
) -> Vec<LoaderRow> {
    let ids: IdSet<ObjectId> =
        summary.classes().iter().filter_map(|class| ObjectId::from(class.loader).non_null()).collect();
    let found = lookup.find(&ids);
    let class_of = |id: &ObjectId| match found.get(id) {
        Some(FoundObject::Instance { class, .. }) => classes.get(class).map(|number| number.0),
        _ => None,
    };
    let class_loader = summary.boot_class("java.lang.ClassLoader");
    let name_of = |found: &FoundObject<'_>| match found {
        FoundObject::Instance { class, fields } => Fields::new(summary, *classes.get(class)?, fields)
            .superclass_fields(class_loader?)?
            .reference("name"),
        _ => None,
    };
    let names: IdMap<ObjectId, ObjectId> =
        found.iter().filter_map(|(id, found)| Some((*id, name_of(found)?))).collect();
    let names_found = lookup.strings(summary, classes, &names.values().copied().collect(), MAX_LOADER_NAME);
    let mut ids: Vec<ObjectId> = ids.into_iter().collect();
    ids.sort_unstable();
    let mut row = |id: ObjectId| {
        let name = names.get(&id).and_then(|name| names_found.get(name)).filter(|name| !name.is_empty());
        LoaderRow {
            id: id.into(),
            class: class_of(&id).unwrap_or(NONE).into(),
            name: name.map_or(NONE, |name| texts.add(name)).into(),
        }
    };
    ids.into_iter().map(&mut row).collect()
}
