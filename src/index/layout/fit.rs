//! Inference of a JVM's object layout from the distances between objects, or from the sizes that classes
//! state.
//!
//! Object IDs of HotSpot are addresses: the distance from an object to the next is an upper bound of its
//! size, and in a compacted heap the smallest distance of a class is its size. Each layout that a JVM can
//! have is compared with those smallest distances, of classes and of short arrays. A layout that requires
//! more bytes than a distance is refuted; of the others the one that explains most distances is chosen.
//!
//! Writers that state real sizes (`Object` > 0: Android) need no distances for instances. The HPROF agent
//! states sizes in ALLOC SITES; its IDs are numbers, not addresses. The layout is then fitted to the stated
//! sizes.

use hprof_parser::Version;
use hprof_values::{BasicType, IdSize};

use super::flattened;
use super::measured;
use super::object_layout::{FieldCounts, FieldsEnd, Layout, Packing, hidden_fields};
use crate::model::summary::{ClassNumber, Summary};
use crate::model::tables::{ClassKind, ClassRow};

/// Origin of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LayoutSource {
    /// Fitted to the distances between objects.
    Distances,
    /// Fitted to the sizes that class dumps or ALLOC SITES state.
    StatedSizes,
    /// Assumed to be the most common layout: nothing to fit to.
    Assumed,
    /// Given by the user.
    Given,
}

/// The layout of a dump's JVM, with its evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct FittedLayout {
    /// Chosen layout.
    #[serde(flatten)]
    pub layout: Layout,
    /// Origin of the layout.
    #[serde(rename = "layout_source")]
    pub source: LayoutSource,
    /// `true` if instance sizes are those that class dumps state.
    #[serde(rename = "is_size_stated")]
    pub sizes_stated: bool,
    /// Agreement with the measurements.
    pub evidence: Evidence,
}

/// Agreement of a layout with the measurements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Evidence {
    /// Classes with a smallest distance (or stated size).
    pub classes: u64,
    /// Classes whose smallest distance (or stated size) equals the size by the layout.
    pub classes_exact: u64,
    /// Classes whose smallest distance is less than the size by the layout: they refute it.
    pub classes_refuting: u64,
    /// Kinds and lengths of short arrays with a smallest distance.
    pub arrays: u64,
    /// Kinds and lengths whose smallest distance equals the size by the layout.
    pub arrays_exact: u64,
    /// Kinds and lengths whose smallest distance is less than the size by the layout.
    pub arrays_refuting: u64,
}

impl Evidence {
    fn score(&self) -> i64 {
        let exact = self.classes_exact + self.arrays_exact;
        let refuting = self.classes_refuting + self.arrays_refuting;
        i64::try_from(exact).unwrap_or(i64::MAX).saturating_sub_unsigned(refuting.saturating_mul(4))
    }
}

/// End and gaps of the fields of each class under a layout.
pub struct Shapes {
    shapes: Vec<FieldsEnd>,
}

impl Shapes {
    /// Lays out all classes. Classes whose superclass is missing are laid out as if it were java.lang.Object.
    pub fn new(summary: &Summary, own: &[FieldCounts], layout: &Layout) -> Self {
        let header = FieldsEnd::of_header(layout);
        let none = FieldCounts::default();
        let shapes = summary.class_table().derive(|class, above| {
            above.unwrap_or(&header).extend(layout, own.get(class.0 as usize).unwrap_or(&none))
        });
        Self { shapes }
    }

    /// Returns the instance size of a class by the layout.
    pub fn size(&self, layout: &Layout, class: usize) -> u64 {
        let shape = self.shapes.get(class);
        layout.instance_size(shape.map_or(u64::from(layout.header_bytes), |shape| shape.end))
    }
}

/// Returns the fields that each class declares, including hidden ones of the JVM, for a packing.
pub fn own_fields(summary: &Summary, packing: Packing, word_bytes: u8) -> Vec<FieldCounts> {
    let mut own = declared_fields(summary, packing, word_bytes);
    flattened::flatten_fields(summary, &mut own);
    own
}

/// Returns the fields that each class declares, with those of flattened objects as references.
pub(crate) fn declared_fields(summary: &Summary, packing: Packing, word_bytes: u8) -> Vec<FieldCounts> {
    summary.classes().iter().map(|class| own_fields_of(summary, class, packing, word_bytes)).collect()
}

/// Returns the fields that one class declares, including hidden ones of the JVM.
fn own_fields_of(summary: &Summary, class: &ClassRow, packing: Packing, word_bytes: u8) -> FieldCounts {
    let mut counts = FieldCounts::default();
    for (_, kind) in summary.raw_fields(class) {
        counts.add(kind);
    }
    if class.loader.get() == 0 && summary.raw_class_name(class).starts_with(b"java.") {
        let declares = |field: &str| summary.raw_fields(class).any(|(name, _)| name == field.as_bytes());
        hidden_fields(summary.class_name(class), packing, word_bytes, &mut counts, declares);
    }
    counts
}

/// Returns `true` if class dumps state real sizes: only then is the size of a java.lang.Object greater than
/// 0.
pub(crate) fn states_sizes(summary: &Summary) -> bool {
    if summary.is_from_text() {
        return true;
    }
    let mut objects = summary.classes().iter().filter(|class| {
        class.is_dumped() && class.super_id.get() == 0 && summary.is_named(class, "java.lang.Object")
    });
    objects.any(|class| class.stated_size.get() > 0)
}

/// Returns the layout that explains most measurements of a dump.
pub(crate) fn fit(summary: &Summary) -> FittedLayout {
    let sizes_stated = states_sizes(summary);
    if summary.version() == Version::V1_0_3 {
        let evidence = Evidence::default();
        let source = if sizes_stated { LayoutSource::StatedSizes } else { LayoutSource::Assumed };
        return FittedLayout { layout: Layout::ANDROID, source, sizes_stated, evidence };
    }
    if summary.is_from_text() {
        // Sizes are arbitrary, and no fields with values are known.
        let layout = Layout { alignment_bytes: 1, ..Layout::COMMON };
        let (source, evidence) = (LayoutSource::StatedSizes, Evidence::default());
        return FittedLayout { layout, source, sizes_stated, evidence };
    }
    let sites = summary.classes().iter().any(|class| class.site_size.get() > 0);
    let measured = LayoutMeasurements::new(summary, sizes_stated);
    let source = match (measured.is_empty(), sizes_stated || sites) {
        (true, _) => LayoutSource::Assumed,
        (false, true) => LayoutSource::StatedSizes,
        (false, false) => LayoutSource::Distances,
    };
    // Ties go to the first: common layouts come first, and the packing of the JVM's own version before the
    // other.
    let mut best: Option<(i64, FittedLayout)> = None;
    let mut known: Vec<((Packing, u8), Vec<FieldCounts>)> = Vec::new();
    for layout in candidates(summary) {
        let key = (layout.packing, layout.word_bytes);
        if !known.iter().any(|(other, _)| *other == key) {
            let fields_of = |class| own_fields_of(summary, class, layout.packing, layout.word_bytes);
            known.push((key, measured.classes.iter().map(|known| fields_of(known.class)).collect()));
        }
        let own = known.iter().find(|(other, _)| *other == key).map_or(&[][..], |(_, own)| own);
        let best_score = best.map(|(score, _)| score);
        if let Some(evidence) = measured.weigh(&layout, own, best_score) {
            best = Some((evidence.score(), FittedLayout { layout, source, sizes_stated, evidence }));
        }
    }
    best.map_or(
        FittedLayout {
            layout: Layout::COMMON,
            source: LayoutSource::Assumed,
            sizes_stated,
            evidence: Evidence::default(),
        },
        |(_, fit)| fit,
    )
}

/// Evaluates one layout against the measurements.
pub(crate) fn weigh(summary: &Summary, layout: &Layout, sizes_stated: bool) -> Evidence {
    let measured = LayoutMeasurements::new(summary, sizes_stated);
    let fields_of =
        |known: &FittedClass| own_fields_of(summary, known.class, layout.packing, layout.word_bytes);
    let own: Vec<FieldCounts> = measured.classes.iter().map(fields_of).collect();
    measured.weigh(layout, &own, None).unwrap_or_default()
}

/// Measurements with which layouts are compared. They are collected whenever a dump is opened, so classes
/// without measurements are left out.
struct LayoutMeasurements<'s> {
    /// Classes of known size and all their superclasses; superclasses come before their subclasses.
    classes: Vec<FittedClass<'s>>,
    /// Number of classes with a size.
    sizes: usize,
    /// Short arrays: element type, length and smallest distance.
    arrays: Vec<(BasicType, u64, u64)>,
}

/// A class of known size, or a superclass of one.
struct FittedClass<'s> {
    class: &'s ClassRow,
    /// Position of the superclass in the list.
    above: Option<usize>,
    /// Stated size, or smallest distance of its instances.
    bytes: Option<u64>,
}

impl<'s> LayoutMeasurements<'s> {
    fn new(summary: &'s Summary, sizes_stated: bool) -> Self {
        let is_estimated = flattened::estimated_classes(summary);
        let bytes_of = |number: ClassNumber, class: &ClassRow| {
            let is_estimated = is_estimated.get(number.0 as usize).copied().unwrap_or(false);
            if class.kind() != ClassKind::Instance || !class.is_dumped() || is_estimated {
                return None;
            }
            if sizes_stated {
                return Some(u64::from(class.stated_size.get()));
            }
            if class.site_size.get() > 0 {
                return Some(u64::from(class.site_size.get()));
            }
            let distance = measured::distance(class);
            let is_known = distance.seen > 0 && !is_of_varying_size(summary, class);
            is_known.then_some(u64::from(distance.min))
        };
        let table = summary.class_table();
        let mut is_needed = vec![false; summary.classes().len()];
        for (number, class) in summary.numbered_classes() {
            let mut line = bytes_of(number, class).is_some().then_some(number);
            // Stop at the first class whose superclasses are already marked.
            while let Some(needed) =
                line.and_then(|class| is_needed.get_mut(class.0 as usize)).filter(|is| !**is)
            {
                *needed = true;
                line = line.and_then(|class| table.superclass(class));
            }
        }
        let mut places = vec![None; is_needed.len()];
        let mut classes = Vec::new();
        for number in table.top_down().filter(|class| is_needed.get(class.0 as usize) == Some(&true)) {
            let Some(class) = summary.class(number) else { continue };
            let above =
                table.superclass(number).and_then(|above| places.get(above.0 as usize).copied().flatten());
            if let Some(place) = places.get_mut(number.0 as usize) {
                *place = Some(classes.len());
            }
            classes.push(FittedClass { class, above, bytes: bytes_of(number, class) });
        }
        let short = measured::short_arrays(summary)
            .map(|(element, length, distance)| (element, length, u64::from(distance.min)));
        let arrays = if sizes_stated { Vec::new() } else { short.collect() };
        let sizes = classes.iter().filter(|known| known.bytes.is_some()).count();
        Self { classes, sizes, arrays }
    }

    /// Returns `true` if there are no measurements.
    fn is_empty(&self) -> bool {
        self.arrays.is_empty() && self.sizes == 0
    }

    /// Evaluates a layout; returns `None` if its score does not exceed `best`. `own` are the fields that each
    /// class of the list declares.
    fn weigh(&self, layout: &Layout, own: &[FieldCounts], best: Option<i64>) -> Option<Evidence> {
        let mut evidence = Evidence::default();
        for (element, length, bytes) in &self.arrays {
            let size = layout.array_size(*element, *length);
            evidence.arrays += 1;
            evidence.arrays_exact += u64::from(size == *bytes);
            evidence.arrays_refuting += u64::from(size > *bytes);
        }
        // Upper bound of the remaining increase of the score.
        let mut left = i64::try_from(self.sizes).unwrap_or(i64::MAX);
        let cannot_win = |evidence: &Evidence, left: i64| {
            best.is_some_and(|best| evidence.score().saturating_add(left) <= best)
        };
        let header = FieldsEnd::of_header(layout);
        let mut shapes: Vec<FieldsEnd> = Vec::with_capacity(self.classes.len());
        for (known, own) in self.classes.iter().zip(own) {
            if cannot_win(&evidence, left) {
                return None;
            }
            let above = known.above.and_then(|above| shapes.get(above)).unwrap_or(&header);
            let shape = above.extend(layout, own);
            if let Some(bytes) = known.bytes {
                left -= 1;
                let size = layout.instance_size(shape.end);
                evidence.classes += 1;
                evidence.classes_exact += u64::from(size == bytes);
                evidence.classes_refuting += u64::from(size > bytes);
            }
            shapes.push(shape);
        }
        (!cannot_win(&evidence, left)).then_some(evidence)
    }
}

/// Returns `true` for classes whose instances differ in size.
pub(crate) fn is_of_varying_size(summary: &Summary, class: &ClassRow) -> bool {
    summary.is_named(class, STACK_CHUNK)
}

/// Class of virtual threads' stacks, which are stored in its instances after the fields.
pub(crate) const STACK_CHUNK: &str = "jdk.internal.vm.StackChunk";

/// Returns the layouts that the dump's JVM may have had, the likely ones first.
fn candidates(summary: &Summary) -> Vec<Layout> {
    let classic_first = summary.java_feature_version().is_some_and(|version| version < 15);
    let packings =
        if classic_first { [Packing::Classic, Packing::Dense] } else { [Packing::Dense, Packing::Classic] };
    let bits_32 = packings.map(|packing| Layout { packing, ..Layout::BITS_32 });
    let alignment_bytes = alignment(summary);
    let mut all = Vec::new();
    // header, array base
    for (header_bytes, array_base_bytes) in [(12, 16), (8, 12), (16, 24), (16, 20)] {
        for reference_bytes in [4, 8] {
            for packing in packings {
                all.push(Layout {
                    reference_bytes,
                    header_bytes,
                    array_base_bytes,
                    alignment_bytes,
                    word_bytes: 8,
                    packing,
                });
            }
        }
    }
    // 4-byte IDs are those of a 32-bit JVM, or of the agent on any JVM.
    match (summary.id_size(), summary.property("sun.arch.data.model")) {
        (_, Some("64")) | (IdSize::Eight, _) => all,
        (IdSize::Four, Some("32")) => bits_32.into(),
        (IdSize::Four, _) => bits_32.into_iter().chain(all).collect(),
    }
}

/// Returns `-XX:ObjectAlignmentInBytes`: the largest power of two that divides all addresses, or 8 where IDs
/// are not addresses.
fn alignment(summary: &Summary) -> u16 {
    let common = summary.facts().id_bits.get().trailing_zeros();
    if (3..64).contains(&common) { 1 << common.min(8) } else { 8 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Heap, Options};
    use hprof_input::progress::Quiet;

    /// Samples with distances and with sizes stated in ALLOC SITES, of 32 and 64 bits.
    const SAMPLES: [&str; 8] = [
        "jdk/jdk8.hprof.zst",
        "jdk/jdk11.hprof.zst",
        "jdk/jdk17-nocoops.hprof.zst",
        "jdk/jdk25-align16-compact.hprof.zst",
        "jdk/jdk25.hprof.zst",
        "agent/all.hprof.zst",
        "public/netbeans-heap_dump.hprof.zst",
        "public/visualvm-small_heap.hprof.zst",
    ];

    /// Computes the evidence for a layout from the shapes of all classes.
    fn naive(summary: &Summary, layout: &Layout, sizes_stated: bool) -> Evidence {
        let own = own_fields(summary, layout.packing, layout.word_bytes);
        let shapes = Shapes::new(summary, &own, layout);
        let mut evidence = Evidence::default();
        for (number, class) in summary.numbered_classes() {
            let distance = measured::distance(class);
            let measured = match class.site_size.get() {
                _ if class.kind() != ClassKind::Instance || !class.is_dumped() => continue,
                _ if sizes_stated => class.stated_size.get(),
                0 if distance.seen == 0 || summary.class_name(class) == STACK_CHUNK => continue,
                0 => distance.min,
                stated => stated,
            };
            let size = shapes.size(layout, number.0 as usize);
            evidence.classes += 1;
            evidence.classes_exact += u64::from(size == u64::from(measured));
            evidence.classes_refuting += u64::from(size > u64::from(measured));
        }
        for (element, length, distance) in measured::short_arrays(summary).filter(|_| !sizes_stated) {
            let size = layout.array_size(element, length);
            evidence.arrays += 1;
            evidence.arrays_exact += u64::from(size == u64::from(distance.min));
            evidence.arrays_refuting += u64::from(size > u64::from(distance.min));
        }
        evidence
    }

    #[test]
    fn what_fits_best_is_what_scores_most_of_all() {
        let dir = tempfile::tempdir().unwrap();
        // A dump that states real sizes.
        let stated = dir.path().join("stated.hprof");
        let options = hprof_writer::Options {
            instance_size: hprof_writer::InstanceSize::Real,
            ..hprof_writer::Options::hotspot()
        };
        std::fs::write(&stated, hprof_writer::examples::zoo().write(&options).bytes()).unwrap();
        // Tests run in the folder of their package.
        let samples = std::path::Path::new("../../samples");
        for sample in SAMPLES.map(|name| samples.join(name)).iter().chain([&stated]) {
            let options = Options { index_dir: Some(dir.path().to_owned()), ..Options::default() };
            let heap = Heap::open(sample, &options, &Quiet).unwrap();
            let (summary, sample) = (heap.summary(), sample.display());
            let fit = fit(summary);
            assert_eq!(fit.sizes_stated, sample.to_string().ends_with("stated.hprof"), "{sample}");
            let all: Vec<(Layout, Evidence)> = (candidates(summary).into_iter())
                .map(|layout| (layout, naive(summary, &layout, fit.sizes_stated)))
                .collect();
            // The first of the highest scores.
            let best = all.iter().rev().max_by_key(|(_, evidence)| evidence.score()).unwrap();
            assert_eq!((fit.layout, fit.evidence), *best, "{sample}");
            assert!(fit.evidence.classes > 0, "{sample}");
            for (layout, evidence) in all {
                assert_eq!(weigh(summary, &layout, fit.sizes_stated), evidence, "{sample}: {layout:?}");
            }
        }
    }
}
