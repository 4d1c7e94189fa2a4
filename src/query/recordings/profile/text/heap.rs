//! HEAP DUMP of a text report, counted while it is read.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::{TextClass, TextError, TextHeap, display_names};
use crate::profile::{Origin, Site, Sites};
use hprof_base::sorting::SortRows;
use hprof_index::storage::id_map::{IdMap, IdSet};
use hprof_input::file::TextFile;
use hprof_input::text_events::visit_events;
use hprof_parser::text::TextEvent;
use hprof_parser::text::event::{ClassReference, TextArray, TextObject};
use hprof_values::{ObjectId, TraceSerial};

/// Counts objects by class, and by class and trace.
#[derive(Debug, Default)]
pub(super) struct HeapCounter {
    heap: TextHeap,
    date: Option<String>,
    classes: Vec<Class>,
    /// Class number by object ID of the class object.
    by_id: IdMap<ObjectId, u32>,
    /// Number of the array class by object ID of the class object of its elements.
    by_element: IdMap<ObjectId, u32>,
    /// Number of a class without a known class object, by name as stored in the file.
    by_name: HashMap<Vec<u8>, u32>,
    /// Number of an array class without a known class object, by name of the element class.
    by_element_name: HashMap<Vec<u8>, u32>,
    /// Number of objects and bytes, by class number and trace.
    sites: IdMap<(u32, TraceSerial), (u64, u64)>,
    /// Class number of each class loader, by object ID of the loader.
    loaders: IdMap<ObjectId, Option<u32>>,
    /// Class of the last CLS line.
    class: Option<u32>,
    /// Trace of all CLS lines, as long as all lines have the same trace.
    class_trace: ClassTrace,
    /// Sum of the bytes in all lines.
    bytes: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ClassTrace {
    #[default]
    None,
    One(TraceSerial),
    Several,
}

#[derive(Debug)]
struct Class {
    /// Name as stored in the file.
    name: Vec<u8>,
    id: Option<ObjectId>,
    loader: Option<ObjectId>,
    /// `true` if `name` is the name of the element class.
    of_elements: bool,
    objects: u64,
    bytes: u64,
}

impl Class {
    fn java_name(&self) -> String {
        let name = display_names::class(&self.name);
        if self.of_elements { name + "[]" } else { name }
    }
}

/// Kind of name by which a line identifies a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClassNaming {
    Itself,
    /// By the name of the element class, as the agent of JDK 1.2 to 1.4 identifies array classes.
    ByElements,
}

impl HeapCounter {
    pub(super) fn new(objects: u64, bytes: u64, date: Option<String>) -> Self {
        let heap =
            TextHeap { stated_objects: Some(objects), stated_bytes: Some(bytes), ..TextHeap::default() };
        Self { heap, date, ..Self::default() }
    }

    pub(super) fn root(&mut self) {
        self.heap.roots += 1;
    }

    pub(super) fn class(&mut self, id: ObjectId, name: &[u8], trace: TraceSerial) {
        self.heap.class_objects += 1;
        self.class_trace = match self.class_trace {
            ClassTrace::None => ClassTrace::One(trace),
            ClassTrace::One(one) if one == trace => ClassTrace::One(one),
            ClassTrace::One(_) | ClassTrace::Several => ClassTrace::Several,
        };
        let number = self.number(name, Some(id), ClassNaming::Itself);
        if let Some(class) = self.classes.get_mut(number as usize) {
            // For the boot loader there is no line.
            class.loader = class.loader.or(Some(ObjectId::NULL));
        }
        self.class = Some(number);
    }

    pub(super) fn class_reference(&mut self, what: ClassReference<'_>, object: ObjectId) {
        if what == ClassReference::Loader
            && let Some(class) = self.class.and_then(|class| self.classes.get_mut(class as usize))
        {
            class.loader = Some(object);
            self.loaders.entry(object).or_default();
        }
    }

    #[inline]
    pub(super) fn object(&mut self, object: &TextObject<'_>) {
        self.heap.instances += 1;
        let class = self.number(object.class, object.class_object, ClassNaming::Itself);
        self.count(class, object.trace, object.size);
        if !self.loaders.is_empty()
            && let Some(known) = self.loaders.get_mut(&object.object)
        {
            *known = Some(class);
        }
    }

    #[inline]
    pub(super) fn array(&mut self, array: &TextArray<'_>) {
        self.heap.arrays += 1;
        let named = if array.class.ends_with(b"]") { ClassNaming::Itself } else { ClassNaming::ByElements };
        let class = self.number(array.class, array.class_object, named);
        self.count(class, array.trace, array.size);
    }

    #[inline]
    fn count(&mut self, class: u32, trace: TraceSerial, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some(class) = self.classes.get_mut(class as usize) {
            class.objects += 1;
            class.bytes = class.bytes.saturating_add(bytes);
        }
        let site = self.sites.entry((class, trace)).or_default();
        *site = (site.0 + 1, site.1.saturating_add(bytes));
    }

    /// Returns the number of a class, adding it if it is new. An ID is ignored if it is missing, 0 or belongs to another class.
    #[inline]
    fn number(&mut self, name: &[u8], id: Option<ObjectId>, named: ClassNaming) -> u32 {
        let by_id = if named == ClassNaming::Itself { &self.by_id } else { &self.by_element };
        if let Some(number) = id.and_then(|id| by_id.get(&id))
            && self.classes.get(*number as usize).is_some_and(|class| class.name == name)
        {
            return *number;
        }
        self.other_number(name, id, named)
    }

    fn other_number(&mut self, name: &[u8], id: Option<ObjectId>, named: ClassNaming) -> u32 {
        // The number of classes is below 2^32: each takes more than a byte of memory.
        let next = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
        let of_elements = named == ClassNaming::ByElements;
        let (by_id, by_name) = match named {
            ClassNaming::Itself => (&mut self.by_id, &mut self.by_name),
            ClassNaming::ByElements => (&mut self.by_element, &mut self.by_element_name),
        };
        let id = id.filter(|id| !id.is_null() && !by_id.contains_key(id));
        match id {
            Some(id) => {
                by_id.insert(id, next);
            }
            None => {
                if let Some(number) = by_name.get(name) {
                    return *number;
                }
                by_name.insert(name.to_vec(), next);
            }
        }
        let id = id.filter(|_| !of_elements);
        let class = Class { name: name.to_vec(), id, loader: None, of_elements, objects: 0, bytes: 0 };
        self.classes.push(class);
        next
    }

    /// Returns the counts of the heap, and the allocation sites of its objects.
    pub(super) fn finish(mut self) -> (TextHeap, Option<Sites>) {
        let loader_class = |loader: &ObjectId| {
            let class = self.loaders.get(loader).copied().flatten()?;
            Some(self.classes.get(class as usize)?.java_name())
        };
        let mut rows: Vec<TextClass> = Vec::with_capacity(self.classes.len());
        let mut by_name: HashMap<String, usize> = HashMap::new();
        for class in self.classes.iter().filter(|class| class.id.is_some()) {
            let row = TextClass {
                name: class.java_name(),
                class_object: class.id,
                loader: class.loader,
                loader_class: class.loader.as_ref().and_then(loader_class),
                instances: class.objects,
                shallow_bytes: class.bytes,
            };
            // A name alone means a class of the boot loader: arrays of primitives have nothing else.
            let place = by_name.entry(row.name.clone()).or_insert(rows.len());
            if row.loader == Some(ObjectId::NULL)
                && rows.get(*place).is_some_and(|other| other.loader != Some(ObjectId::NULL))
            {
                *place = rows.len();
            }
            rows.push(row);
        }
        for class in self.classes.iter().filter(|class| class.id.is_none()) {
            let name = class.java_name();
            let place = *by_name.entry(name.clone()).or_insert(rows.len());
            if place == rows.len() {
                rows.push(TextClass { name, ..TextClass::default() });
            }
            if let Some(row) = rows.get_mut(place) {
                row.instances += class.objects;
                row.shallow_bytes = row.shallow_bytes.saturating_add(class.bytes);
            }
        }
        let class_bytes = self.add_class_objects(&mut rows, &by_name);
        let sites = self.sites(class_bytes);
        self.heap.classes = rows;
        (self.heap, sites)
    }

    /// Adds class objects as instances of java.lang.Class. No line contains their bytes. They are the difference between the
    /// bytes in the first line and the sum of all other lines, if the first line includes them; in files of the agent it does
    /// not.
    fn add_class_objects(&self, rows: &mut Vec<TextClass>, by_name: &HashMap<String, usize>) -> u64 {
        let heap = &self.heap;
        if heap.class_objects == 0 {
            return 0;
        }
        let all = heap.instances.saturating_add(heap.arrays).saturating_add(heap.class_objects);
        let counted = heap.stated_objects == Some(all);
        let bytes =
            heap.stated_bytes.filter(|_| counted).map_or(0, |stated| stated.saturating_sub(self.bytes));
        let place = by_name.get(CLASS).copied().unwrap_or_else(|| {
            rows.push(TextClass { name: CLASS.to_owned(), ..TextClass::default() });
            rows.len() - 1
        });
        if let Some(row) = rows.get_mut(place) {
            row.instances += heap.class_objects;
            row.shallow_bytes = row.shallow_bytes.saturating_add(bytes);
        }
        bytes
    }

    fn sites(&self, class_bytes: u64) -> Option<Sites> {
        let class_names: Vec<Arc<str>> = self.classes.iter().map(|class| class.java_name().into()).collect();
        let mut rows: Vec<Site> = (self.sites.iter())
            .map(|((class, trace), (objects, bytes))| {
                let name = class_names.get(*class as usize).cloned().unwrap_or_default();
                site(name, *trace, *objects, *bytes)
            })
            .collect();
        if let ClassTrace::One(trace) = self.class_trace
            && class_bytes > 0
        {
            let objects = self.heap.class_objects;
            match rows.iter_mut().find(|row| *row.class == *CLASS && row.trace == trace) {
                Some(row) => {
                    *row = site(
                        CLASS.into(),
                        trace,
                        row.live_instances + objects,
                        row.live_bytes.saturating_add(class_bytes),
                    );
                }
                None => rows.push(site(CLASS.into(), trace, objects, class_bytes)),
            }
        }
        if rows.is_empty() {
            return None;
        }
        rows.sort_rows_by(|a, b| {
            let key = |site: &Site| (Reverse(site.live_bytes), site.trace, site.live_instances);
            let (left, right) = (key(a), key(b));
            left.0.cmp(&right.0).then_with(|| a.class.cmp(&b.class)).then_with(|| left.cmp(&right))
        });
        let mut total = Site::default();
        for row in &rows {
            total.live_bytes = total.live_bytes.saturating_add(row.live_bytes);
            total.live_instances = total.live_instances.saturating_add(row.live_instances);
        }
        (total.allocated_bytes, total.allocated_instances) = (total.live_bytes, total.live_instances);
        let mut sites = Sites {
            origin: Origin::Objects,
            rows,
            total: Some(total),
            event: None,
            by_allocation: false,
            date: self.date.clone(),
        };
        sites.fill_percentages();
        Some(sites)
    }
}

const CLASS: &str = "java.lang.Class";

fn site(class: Arc<str>, trace: TraceSerial, objects: u64, bytes: u64) -> Site {
    Site {
        class,
        trace,
        live_bytes: bytes,
        live_instances: objects,
        allocated_bytes: bytes,
        allocated_instances: objects,
        ..Site::default()
    }
}

/// Searches the whole file for class loaders whose classes are unknown.
pub(super) fn find_loaders(file: &TextFile, run: u32, heap: &mut TextHeap) -> Result<(), TextError> {
    let unknown = |class: &&TextClass| class.loader_class.is_none();
    let wanted: IdSet<ObjectId> =
        heap.classes.iter().filter(unknown).filter_map(|class| class.loader?.non_null()).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let mut found: IdMap<ObjectId, String> = IdMap::default();
    visit_events(file, |number, _, event| match event {
        TextEvent::Object(object) if number == run && wanted.contains(&object.object) => {
            found.insert(object.object, display_names::class(object.class));
        }
        // Only the last HEAP DUMP counts.
        TextEvent::HeapBegin { .. } if number == run => found.clear(),
        _ => {}
    })?;
    for class in &mut heap.classes {
        if class.loader_class.is_none() {
            class.loader_class = class.loader.and_then(|loader| found.get(&loader).cloned());
        }
    }
    Ok(())
}
