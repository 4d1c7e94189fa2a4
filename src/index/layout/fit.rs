//! Which layout a dump's JVM had, by the distances between its objects, or by the sizes that its classes state.
//!
//! Object ids of HotSpot are addresses: the distance from an object to the next bounds its size from above, and in a
//! compacted heap the smallest distance of a class is its size. Each layout that a JVM can have is tried against those
//! smallest distances, of classes and of short arrays. A layout that asks for more bytes than there were is refuted;
//! of the others the one that explains most is taken.
//!
//! Writers that state real sizes (`Object` > 0: Android) need no distances for instances. The HPROF agent states them in
//! ALLOC SITES; its ids are numbers, not addresses. The layout is then fitted to the stated sizes.

use crate::hprof::{IdSize, Version};

use super::measured;
use super::object_layout::{FieldCounts, Layout, Packing, Shape, hidden_fields};
use crate::index::model::summary::{ClassNumber, Summary};
use crate::index::model::tables::ClassKind;

/// Where a layout comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Fitted to the distances between objects.
    Distances,
    /// Fitted to the sizes that class dumps or ALLOC SITES state.
    StatedSizes,
    /// Nothing to fit to: the most common layout is assumed.
    Assumed,
    /// Given by the user.
    Given,
}

/// The layout that was chosen, and what speaks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Fit {
    /// The layout.
    #[serde(flatten)]
    pub layout: Layout,
    /// Where it comes from.
    pub source: Source,
    /// Whether instance sizes are those that class dumps state.
    pub sizes_stated: bool,
    /// What speaks for it.
    pub evidence: Evidence,
}

/// How a layout agrees with what was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Evidence {
    /// Classes whose instances have neighbours (or stated sizes).
    pub classes: u64,
    /// Those for which the layout says exactly the smallest distance (or the stated size).
    pub classes_exact: u64,
    /// Those for which it says more than there was: the layout cannot be right for them.
    pub classes_refuting: u64,
    /// Kinds and lengths of short arrays that have neighbours.
    pub arrays: u64,
    /// Those for which the layout says exactly the smallest distance.
    pub arrays_exact: u64,
    /// Those for which it says more than there was.
    pub arrays_refuting: u64,
}

impl Evidence {
    fn score(&self) -> i64 {
        let exact = self.classes_exact + self.arrays_exact;
        let refuting = self.classes_refuting + self.arrays_refuting;
        i64::try_from(exact).unwrap_or(i64::MAX).saturating_sub_unsigned(refuting.saturating_mul(4))
    }
}

/// The shapes of all classes under a layout.
pub(crate) struct Shapes {
    shapes: Vec<Shape>,
}

impl Shapes {
    /// Lays out all classes. Classes whose superclass is missing are laid out as if it were java.lang.Object.
    pub(crate) fn new(summary: &Summary, own: &[FieldCounts], layout: &Layout) -> Self {
        let header = Shape::of_header(layout);
        let none = FieldCounts::default();
        let shapes = summary.class_table().derive(|class, above| {
            above.unwrap_or(&header).extend(layout, own.get(class.0 as usize).unwrap_or(&none))
        });
        Self { shapes }
    }

    /// The size of a class's instances by the layout.
    pub(crate) fn size(&self, layout: &Layout, class: usize) -> u64 {
        let shape = self.shapes.get(class);
        layout.instance_size(shape.map_or(u64::from(layout.header_bytes), |shape| shape.end))
    }
}

/// The own fields of each class, hidden ones of the JVM included, for a packing.
pub(crate) fn own_fields(summary: &Summary, packing: Packing, word_bytes: u8) -> Vec<FieldCounts> {
    (summary.classes().iter())
        .map(|class| {
            let mut counts = FieldCounts::default();
            for (_, kind) in summary.fields(class) {
                counts.add(kind);
            }
            let name = summary.class_name(class);
            if class.loader.get() == 0 && name.starts_with("java.") {
                let declares = |field: &str| summary.fields(class).any(|(name, _)| name == field);
                hidden_fields(name, packing, word_bytes, &mut counts, declares);
            }
            counts
        })
        .collect()
}

/// Whether class dumps state real sizes: only then is an instance of java.lang.Object larger than nothing.
pub(crate) fn states_sizes(summary: &Summary) -> bool {
    let mut objects = summary.classes().iter().filter(|class| {
        class.is_dumped() && class.super_id.get() == 0 && summary.is_named(class, "java.lang.Object")
    });
    objects.any(|class| class.stated_size.get() > 0)
}

/// Chooses the layout.
pub(crate) fn fit(summary: &Summary) -> Fit {
    let sizes_stated = states_sizes(summary);
    if summary.version() == Version::V1_0_3 {
        let evidence = Evidence::default();
        let source = if sizes_stated { Source::StatedSizes } else { Source::Assumed };
        return Fit { layout: Layout::ANDROID, source, sizes_stated, evidence };
    }
    let sites = summary.classes().iter().any(|class| class.site_size.get() > 0);
    // Ties go to the first: the common layouts come first, and the packing of the JVM's own version before the other.
    let mut best: Option<(i64, Fit)> = None;
    let mut known: Vec<((Packing, u8), Vec<FieldCounts>)> = Vec::new();
    for layout in candidates(summary) {
        let key = (layout.packing, layout.word_bytes);
        if !known.iter().any(|(other, _)| *other == key) {
            known.push((key, own_fields(summary, layout.packing, layout.word_bytes)));
        }
        let own = known.iter().find(|(other, _)| *other == key).map_or(&[][..], |(_, own)| own);
        let shapes = Shapes::new(summary, own, &layout);
        let evidence = weigh(summary, &layout, &shapes, sizes_stated);
        let measured = evidence.classes + evidence.arrays > 0;
        let source = match (measured, sizes_stated || sites) {
            (false, _) => Source::Assumed,
            (true, true) => Source::StatedSizes,
            (true, false) => Source::Distances,
        };
        let score = evidence.score();
        if best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, Fit { layout, source, sizes_stated, evidence }));
        }
    }
    best.map_or(
        Fit { layout: Layout::COMMON, source: Source::Assumed, sizes_stated, evidence: Evidence::default() },
        |(_, fit)| fit,
    )
}

/// Weighs one layout against what was measured.
pub(crate) fn weigh(summary: &Summary, layout: &Layout, shapes: &Shapes, sizes_stated: bool) -> Evidence {
    let mut evidence = Evidence::default();
    for (ClassNumber(number), class) in summary.numbered_classes() {
        if class.kind() != ClassKind::Instance || !class.is_dumped() {
            continue;
        }
        let measured = if sizes_stated {
            u64::from(class.stated_size.get())
        } else if class.site_size.get() > 0 {
            u64::from(class.site_size.get())
        } else {
            let distance = measured::distance(class);
            if distance.seen == 0 || is_of_varying_size(summary.class_name(class)) {
                continue;
            }
            u64::from(distance.min)
        };
        let size = shapes.size(layout, number as usize);
        evidence.classes += 1;
        evidence.classes_exact += u64::from(size == measured);
        evidence.classes_refuting += u64::from(size > measured);
    }
    if !sizes_stated {
        for (element, length, distance) in measured::short_arrays(summary).iter() {
            let size = layout.array_size(element, length);
            evidence.arrays += 1;
            evidence.arrays_exact += u64::from(size == u64::from(distance.min));
            evidence.arrays_refuting += u64::from(size > u64::from(distance.min));
        }
    }
    evidence
}

/// Classes whose instances differ in size.
pub(crate) fn is_of_varying_size(class: &str) -> bool {
    class == STACK_CHUNK
}

/// The class of virtual threads' stacks, which lie in its instances behind the fields.
pub(crate) const STACK_CHUNK: &str = "jdk.internal.vm.StackChunk";

/// The layouts that the dump's JVM can have had, the likely ones first.
fn candidates(summary: &Summary) -> Vec<Layout> {
    let classic_first = java_feature_version(summary).is_some_and(|version| version < 15);
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
    // 4-byte ids are a 32-bit JVM's, or the agent's on any.
    match (summary.id_size(), summary.property("sun.arch.data.model")) {
        (_, Some("64")) | (IdSize::Eight, _) => all,
        (IdSize::Four, Some("32")) => bits_32.into(),
        (IdSize::Four, _) => bits_32.into_iter().chain(all).collect(),
    }
}

/// `-XX:ObjectAlignmentInBytes`: what divides all addresses. 8 where ids are no addresses.
fn alignment(summary: &Summary) -> u16 {
    let common = summary.facts().id_bits.get().trailing_zeros();
    if (3..64).contains(&common) { 1 << common.min(8) } else { 8 }
}

/// The feature version of the JVM: 8, 17, ...
pub(crate) fn java_feature_version(summary: &Summary) -> Option<u32> {
    let version = summary.property("java.specification.version")?;
    version.strip_prefix("1.").unwrap_or(version).split('.').next()?.parse().ok()
}
