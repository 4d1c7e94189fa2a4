//! Shallow sizes of all objects of a dump, for a layout.
//!
//! * Arrays: base, element size and alignment of the layout.
//! * Instances: the size that the class dump or ALLOC SITES states, where the writer states real sizes;
//!   otherwise the size by the layout, lowered to the smallest distance if that is less (the object cannot be
//!   larger), raised to it where a compacted heap shows the same larger distance again and again (fields that
//!   the JVM adds and no dump contains).
//! * Class objects: the instance part of java.lang.Class, which is fitted to the distances of class objects,
//!   followed by the class's static fields.
//! * In a dump made from a text report, every object has the size that the text states.
//! * StackChunk: the instance part, fitted likewise, followed by the stack, whose size is a field.

use hprof_values::BasicType;

use super::fit::{self, FittedLayout, LayoutSource, STACK_CHUNK, Shapes};
use super::flattened::{self, FlatArrayClass};
use super::measured;
use super::object_layout::{FieldCounts, Layout, LayoutOverride, align_up, statics_bytes};
use crate::model::measurements::Lengths;
use crate::model::summary::{ClassNumber, Summary};
use crate::model::tables::{ClassKind, ClassRow};

/// Origin of the size of a class's instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SizeSource {
    /// Computed by the layout; no distance was measured.
    Model,
    /// Computed by the layout and equal to the smallest distance.
    Confirmed,
    /// Smallest distance, which is less than the size by the layout or regularly more.
    Observed,
    /// Stated by the class dump or by ALLOC SITES.
    Stated,
}

/// Shallow sizes of all objects.
#[derive(Debug, Clone)]
pub struct Sizes {
    /// Layout, with its evidence.
    pub fit: FittedLayout,
    /// Instance size and its origin, by class number.
    instances: Vec<(u64, SizeSource)>,
    /// Size of the class object, by class number; 0 if the class is not dumped.
    class_objects: Vec<u64>,
    /// Total size of all objects of the class, by class number.
    totals: Vec<u64>,
    /// Size of the instance part of a StackChunk.
    stack_chunk_base: u64,
    /// Classes of arrays with flattened elements, ascending.
    flat_arrays: Vec<FlatArrayClass>,
}

impl Sizes {
    /// Computes sizes by the best layout, or by the user's overrides. Sizes by the best layout are computed
    /// once per summary.
    pub fn new(summary: &Summary, given: Option<&LayoutOverride>) -> Self {
        match given {
            None => (*summary.get_or_compute(|| Self::compute(summary, None))).clone(),
            Some(_) => Self::compute(summary, given),
        }
    }

    fn compute(summary: &Summary, given: Option<&LayoutOverride>) -> Self {
        let mut fit = fit::fit(summary);
        if let Some(given) = given {
            fit.layout = given.apply(fit.layout);
            fit.source = LayoutSource::Given;
        }
        let layout = fit.layout;
        let own = fit::own_fields(summary, layout.packing, layout.word_bytes);
        let shapes = Shapes::new(summary, &own, &layout);
        if given.is_some() {
            fit.evidence = fit::weigh(summary, &layout, fit.sizes_stated);
        }
        let mut sizes = Self {
            fit,
            instances: Vec::new(),
            class_objects: Vec::new(),
            totals: Vec::new(),
            stack_chunk_base: 0,
            flat_arrays: Vec::new(),
        };
        if !summary.tables().flat_arrays.is_empty() {
            let declared = fit::declared_fields(summary, layout.packing, layout.word_bytes);
            sizes.flat_arrays = flattened::flat_arrays(summary, &declared, &layout);
        }
        sizes.size_instances(summary, &shapes, given.is_some());
        sizes.size_class_objects(summary);
        sizes.size_stack_chunks(summary, &shapes);
        sizes.sum_up(summary);
        sizes
    }

    /// Returns the layout.
    pub fn layout(&self) -> &Layout {
        &self.fit.layout
    }

    /// Returns the size of an instance of a class and its origin. For StackChunk, the size is that of the
    /// fields only.
    pub fn instance(&self, class: ClassNumber) -> (u64, SizeSource) {
        self.instances.get(class.0 as usize).copied().unwrap_or((0, SizeSource::Model))
    }

    /// Returns the size of the class object of a class.
    pub fn class_object(&self, class: ClassNumber) -> u64 {
        self.class_objects.get(class.0 as usize).copied().unwrap_or(0)
    }

    /// Returns the total size of all objects of a class; for java.lang.Class, of all class objects.
    pub fn total(&self, class: ClassNumber) -> u64 {
        self.totals.get(class.0 as usize).copied().unwrap_or(0)
    }

    /// Returns the size of an array with flattened elements; `None` if the class has no such arrays.
    pub fn flat_array(&self, class: ClassNumber, length: u32) -> Option<u64> {
        let at = self.flat_arrays.binary_search_by_key(&class, |arrays| arrays.class).ok()?;
        Some(self.flat_arrays.get(at)?.size(self.layout(), length.into()))
    }

    /// Returns the size of a StackChunk with a stack of `words` words.
    pub fn stack_chunk(&self, words: u32) -> u64 {
        self.layout().align(self.stack_chunk_base.saturating_add(stack_bytes(self.layout(), words)))
    }

    /// Returns the number of classes with instances by origin of their size, in the order of [`SizeSource`].
    pub fn sources(&self, summary: &Summary) -> [u64; 4] {
        let mut counts = [0; 4];
        for (number, class) in summary.numbered_classes() {
            if class.kind() == ClassKind::Instance
                && class.objects.get() > 0
                && let Some(count) = counts.get_mut(self.instance(number).1 as usize)
            {
                *count += 1;
            }
        }
        counts
    }

    fn size_instances(&mut self, summary: &Summary, shapes: &Shapes, given: bool) {
        let layout = self.fit.layout;
        let compact = is_compacted(summary, &layout, shapes);
        self.instances = (summary.numbered_classes())
            .map(|(ClassNumber(number), class)| {
                let model = shapes.size(&layout, number as usize);
                if self.fit.sizes_stated && class.is_dumped() {
                    return (u64::from(class.stated_size.get()), SizeSource::Stated);
                }
                if class.site_size.get() > 0 && !given {
                    return (u64::from(class.site_size.get()), SizeSource::Stated);
                }
                let distance = measured::distance(class);
                let min = u64::from(distance.min);
                if given || distance.seen == 0 || fit::is_of_varying_size(summary, class) {
                    return (model, SizeSource::Model);
                }
                match min.cmp(&model) {
                    std::cmp::Ordering::Equal => (model, SizeSource::Confirmed),
                    std::cmp::Ordering::Less => (min, SizeSource::Observed),
                    std::cmp::Ordering::Greater if compact && distance.hits >= 3 && distance.seen >= 4 => {
                        (min, SizeSource::Observed)
                    }
                    std::cmp::Ordering::Greater => (model, SizeSource::Model),
                }
            })
            .collect();
    }

    fn size_class_objects(&mut self, summary: &Summary) {
        if summary.is_from_text() {
            let size = |class: &ClassRow| summary.stated_size(class.id.into()).unwrap_or(0);
            self.class_objects = summary.classes().iter().map(size).collect();
            return;
        }
        let layout = self.fit.layout;
        let java_lang_class = summary.java_lang_class();
        let model = java_lang_class.map_or(0, |class| self.instance(class).0);
        let statics: Vec<u64> =
            summary.classes().iter().map(|class| statics_of(summary, &layout, class)).collect();
        // The part before the statics: the smallest distance of a class object, minus its statics.
        let word = u64::from(layout.word_bytes);
        let measured = (summary.class_distances())
            .filter_map(|(class, bytes)| bytes.checked_sub(align_up(*statics.get(class.0 as usize)?, word)))
            .filter(|base| *base >= u64::from(layout.header_bytes))
            .min();
        let base = match measured {
            Some(base) if !self.fit.sizes_stated => base,
            _ => model,
        };
        self.class_objects = (summary.classes().iter().zip(&statics))
            .map(|(class, statics)| match class.is_dumped() {
                true if self.fit.sizes_stated => base,
                true => layout.align(align_up(base.saturating_add(*statics), word)),
                false => 0,
            })
            .collect();
        // Class objects of primitive types are dumped as instances: they have no statics.
        if let (Some(class), false) = (java_lang_class, self.fit.sizes_stated)
            && let Some(size) = self.instances.get_mut(class.0 as usize)
        {
            size.0 = layout.align(align_up(base, word));
        }
    }

    fn size_stack_chunks(&mut self, summary: &Summary, shapes: &Shapes) {
        let layout = self.fit.layout;
        let measured = (summary.stack_chunks().iter())
            .filter(|row| row.distance.seen.get() > 0)
            .filter_map(|row| {
                u64::from(row.distance.min.get()).checked_sub(stack_bytes(&layout, row.words.get()))
            })
            .filter(|base| *base >= u64::from(layout.header_bytes))
            .min();
        let modelled = || {
            let mut classes = summary.numbered_classes();
            let found = classes.find(|(_, class)| summary.is_named(class, STACK_CHUNK));
            found.map_or(0, |(number, _)| shapes.size(&layout, number.0 as usize) + 24)
        };
        self.stack_chunk_base = measured.unwrap_or_else(modelled);
    }

    fn sum_up(&mut self, summary: &Summary) {
        let layout = self.fit.layout;
        if summary.is_from_text() {
            self.add_stated(summary);
            return self.add_class_objects(summary);
        }
        self.totals = (summary.numbered_classes())
            .map(|(number, class)| match class.kind() {
                ClassKind::Instance if fit::is_of_varying_size(summary, class) => {
                    let chunks = summary.stack_chunks().iter();
                    chunks
                        .map(|row| row.instances.get().saturating_mul(self.stack_chunk(row.words.get())))
                        .fold(0, u64::saturating_add)
                }
                ClassKind::Instance => class.objects.get().saturating_mul(self.instance(number).0),
                ClassKind::ObjectArray => 0,
                ClassKind::PrimitiveArray(element) => {
                    array_bytes(&layout, element, &summary.primitive_lengths(element))
                }
            })
            .collect();
        for (class, lengths) in measured::object_lengths(summary) {
            if let Some(total) = self.totals.get_mut(class.0 as usize) {
                *total = total.saturating_add(array_bytes(&layout, BasicType::Object, &lengths));
            }
        }
        // Flattened objects take space in their holders.
        for (class, objects) in summary.flat_objects() {
            let size = self.instance(class).0;
            if let Some(total) = self.totals.get_mut(class.0 as usize) {
                *total = total.saturating_sub(objects.saturating_mul(size));
            }
        }
        for arrays in &self.flat_arrays {
            if let Some(total) = self.totals.get_mut(arrays.class.0 as usize) {
                let sum = i128::from(*total) + arrays.difference(&layout);
                *total = u64::try_from(sum.max(0)).unwrap_or(u64::MAX);
            }
        }
        self.add_class_objects(summary);
    }

    /// Adds up stated sizes: those of single objects, and for all other instances that of their class.
    fn add_stated(&mut self, summary: &Summary) {
        let mut others: Vec<u64> = (summary.classes().iter())
            .map(|class| if class.kind() == ClassKind::Instance { class.objects.get() } else { 0 })
            .collect();
        self.totals = vec![0; others.len()];
        for row in summary.tables().stated_totals.iter() {
            let class = row.class.get() as usize;
            if let (Some(total), Some(others)) = (self.totals.get_mut(class), others.get_mut(class)) {
                *total = row.bytes.get();
                *others = others.saturating_sub(row.objects.get());
            }
        }
        for ((total, others), (size, _)) in self.totals.iter_mut().zip(others).zip(&self.instances) {
            *total = total.saturating_add(others.saturating_mul(*size));
        }
    }

    fn add_class_objects(&mut self, summary: &Summary) {
        let class_objects = self.class_objects.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
        let java_lang_class = summary.java_lang_class().map(|class| class.0 as usize);
        if let Some(total) = java_lang_class.and_then(|class| self.totals.get_mut(class)) {
            *total = total.saturating_add(class_objects);
        }
    }
}

/// Returns the size of the part of a StackChunk after the fields: the stack, and a bitmap with one bit for
/// each possible reference (`InstanceStackChunkKlass::instance_size` and `gc_data_size` of HotSpot).
fn stack_bytes(layout: &Layout, words: u32) -> u64 {
    let words = u64::from(words);
    let word_bytes = u64::from(layout.word_bytes);
    let bits = words * (word_bytes / u64::from(layout.reference_bytes)).max(1);
    (words + bits.div_ceil(word_bytes * 8)) * word_bytes
}

/// Returns the size of a class's static fields, without the JVM's pseudo fields, which are stored elsewhere.
///
/// HotSpot dumps those after the real ones: `<resolved_references>`, `<signers>` and others in angle
/// brackets, which cannot occur in the name of a Java field; JDK 8 also dumps a last one called `init_lock`.
fn statics_of(summary: &Summary, layout: &Layout, class: &ClassRow) -> u64 {
    let mut counts = FieldCounts::default();
    let mut init_lock = false;
    for (name, kind, _) in summary.raw_statics(class).filter(|(name, ..)| !name.starts_with(b"<")) {
        counts.add(kind);
        init_lock = name == b"init_lock" && kind == BasicType::Object;
    }
    counts.references -= u32::from(init_lock);
    statics_bytes(layout, &counts)
}

/// Returns `true` if the heap is compacted: nearly all instances have a direct neighbor.
fn is_compacted(summary: &Summary, layout: &Layout, shapes: &Shapes) -> bool {
    let (mut classes, mut ratios) = (0.0, 0.0);
    for (ClassNumber(number), class) in summary.numbered_classes() {
        let distance = measured::distance(class);
        let by_model = u64::from(distance.min) == shapes.size(layout, number as usize);
        if class.kind() == ClassKind::Instance && distance.seen >= 4 {
            classes += 1.0;
            ratios += if by_model { f64::from(distance.hits) / f64::from(distance.seen) } else { 0.0 };
        }
    }
    ratios >= classes * 0.95
}

/// Returns the total size of all arrays of these lengths.
fn array_bytes<const N: usize>(layout: &Layout, element: BasicType, lengths: &Lengths<N>) -> u64 {
    measured::array_bytes(layout, layout.array_base(element), layout.value_bytes(element), lengths)
}
