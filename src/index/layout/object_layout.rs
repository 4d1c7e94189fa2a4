//! Object layout of a JVM: header, references, packing of fields, alignment.
//!
//! A [`Layout`] computes the size of a class from its fields and those of its superclasses, as HotSpot does.
//! [`super::fit`] determines the layout of a dump's JVM.
//!
//! Sources: JDK 8-14 `ClassFileParser::layout_fields` (classFileParser.cpp); JDK 15 and later
//! `FieldLayoutBuilder::compute_regular_layout` and `FieldLayout::add` (fieldLayoutBuilder.cpp);
//! `arrayOopDesc::base_offset_in_bytes` (arrayOop.hpp); injected fields: `*_INJECTED_FIELDS`
//! (javaClasses.hpp).

use std::fmt;
use std::str::FromStr;

use hprof_values::BasicType;

/// Packing of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    /// JDK 14 and older: the fields of a class are sorted by size, the largest first and references last. Only the gap before
    /// the first 8-byte field is filled with smaller fields. The fields of a subclass start at a multiple of the reference
    /// size.
    Classic,
    /// JDK 15 and later: fields fill all gaps, including those of superclasses.
    Dense,
}

/// Layout of objects in a JVM's heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Layout {
    /// Size of a reference in an object, in bytes: 4 (compressed) or 8.
    pub reference_bytes: u8,
    /// Size of an object's header, in bytes: 8 (compact, or a 32-bit JVM), 12 or 16.
    pub header_bytes: u8,
    /// Offset of an array's first element, for elements of up to 4 bytes.
    pub array_base_bytes: u8,
    /// Alignment of objects: 8 to 256 in HotSpot; 1 where sizes are not rounded (Android).
    pub alignment_bytes: u16,
    /// Size of a machine word, in bytes: 4 or 8.
    pub word_bytes: u8,
    /// Packing of fields.
    pub packing: Packing,
}

impl Layout {
    /// 64-bit HotSpot with the common options: compressed references and class pointers.
    pub const COMMON: Self = Self {
        reference_bytes: 4,
        header_bytes: 12,
        array_base_bytes: 16,
        alignment_bytes: 8,
        word_bytes: 8,
        packing: Packing::Dense,
    };

    /// A 32-bit JVM.
    pub const BITS_32: Self = Self {
        reference_bytes: 4,
        header_bytes: 8,
        array_base_bytes: 12,
        alignment_bytes: 8,
        word_bytes: 4,
        packing: Packing::Classic,
    };

    /// Android: class dumps state the sizes of instances; sizes of arrays are not rounded either.
    pub const ANDROID: Self = Self { alignment_bytes: 1, ..Self::BITS_32 };

    /// Returns the size of a value of `kind` in an object, in bytes.
    pub const fn value_bytes(&self, kind: BasicType) -> u64 {
        match kind {
            BasicType::Object => self.reference_bytes as u64,
            BasicType::Boolean | BasicType::Byte => 1,
            BasicType::Char | BasicType::Short => 2,
            BasicType::Float | BasicType::Int => 4,
            BasicType::Double | BasicType::Long => 8,
        }
    }

    /// Rounds a size up to the alignment of objects.
    pub const fn align(&self, bytes: u64) -> u64 {
        align_up(bytes, self.alignment_bytes as u64)
    }

    /// Returns the offset of the first element in an array of this element type, in bytes.
    pub const fn array_base(&self, element: BasicType) -> u64 {
        let base = self.array_base_bytes as u64;
        if self.value_bytes(element) == 8 { align_up(base, 8) } else { base }
    }

    /// Returns the size of an array in bytes.
    pub const fn array_size(&self, element: BasicType, length: u64) -> u64 {
        self.align(self.array_base(element).saturating_add(length.saturating_mul(self.value_bytes(element))))
    }

    /// Returns the size in bytes of an instance whose fields end at `end`.
    pub fn instance_size(&self, end: u64) -> u64 {
        self.align(align_up(end, u64::from(self.word_bytes)))
    }
}

/// Rounds up to a multiple of `to`, a power of two.
pub(crate) const fn align_up(bytes: u64, to: u64) -> u64 {
    bytes.saturating_add(to - 1) & !(to - 1)
}

/// Number of fields of each size that a class itself declares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FieldCounts {
    pub(crate) references: u32,
    pub(crate) eights: u32,
    pub(crate) fours: u32,
    pub(crate) twos: u32,
    pub(crate) ones: u32,
    /// `@Contended`: the class's fields are padded by 128 bytes before and after.
    pub(crate) padded_class: bool,
    /// `@Contended` group: number of 8-byte and 4-byte fields in it; the group is padded by 128 bytes before and after.
    pub(crate) padded_group: Option<(u32, u32)>,
    /// Old JVMs lay out some classes with references first and without filling the gap.
    pub(crate) references_first: bool,
}

impl FieldCounts {
    /// Adds one field.
    pub(crate) fn add(&mut self, kind: BasicType) {
        let count = self.count_of(kind);
        *count = count.saturating_add(1);
    }

    fn count_of(&mut self, kind: BasicType) -> &mut u32 {
        match kind {
            BasicType::Object => &mut self.references,
            BasicType::Double | BasicType::Long => &mut self.eights,
            BasicType::Float | BasicType::Int => &mut self.fours,
            BasicType::Char | BasicType::Short => &mut self.twos,
            BasicType::Boolean | BasicType::Byte => &mut self.ones,
        }
    }

    /// Adds the fields of `other`.
    pub(crate) fn add_all(&mut self, other: &Self) {
        self.references = self.references.saturating_add(other.references);
        self.eights = self.eights.saturating_add(other.eights);
        self.fours = self.fours.saturating_add(other.fours);
        self.twos = self.twos.saturating_add(other.twos);
        self.ones = self.ones.saturating_add(other.ones);
    }

    /// Returns the total size of the fields in bytes.
    pub(crate) fn bytes(&self, layout: &Layout) -> u64 {
        [
            (self.references, u64::from(layout.reference_bytes)),
            (self.eights, 8),
            (self.fours, 4),
            (self.twos, 2),
            (self.ones, 1),
        ]
        .into_iter()
        .fold(0, |sum, (count, bytes)| sum + u64::from(count) * bytes)
    }

    /// Removes one field.
    pub fn remove(&mut self, kind: BasicType) {
        let count = self.count_of(kind);
        *count = count.saturating_sub(1);
    }

    /// Moves fields of these kinds into a `@Contended` group.
    fn pad_group(&mut self, kinds: impl Iterator<Item = BasicType>) {
        let (mut eights, mut fours) = (0, 0);
        for kind in kinds {
            match kind {
                BasicType::Long => eights += 1,
                _ => fours += 1,
            }
        }
        if eights + fours > 0 {
            self.eights = self.eights.saturating_sub(eights);
            self.fours = self.fours.saturating_sub(fours);
            self.padded_group = Some((eights, fours));
        }
    }

    fn is_empty(&self) -> bool {
        self.references | self.eights | self.fours | self.twos | self.ones == 0 && self.padded_group.is_none()
    }
}

/// End and gaps of a class's fields: where a subclass continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldsEnd {
    /// End offset of the last field (exclusive).
    pub(crate) end: u64,
    /// Gaps: offset and size in bytes, ascending.
    gaps: Vec<(u64, u64)>,
}

/// `ContendedPaddingWidth` of HotSpot.
const PADDING: u64 = 128;

impl FieldsEnd {
    /// Returns the shape of an object with only a header, which java.lang.Object extends.
    pub(crate) fn of_header(layout: &Layout) -> Self {
        Self { end: u64::from(layout.header_bytes), gaps: Vec::new() }
    }

    /// Returns the shape of a class that declares the fields `own`, with `self` as the shape of its
    /// superclass.
    pub(crate) fn extend(&self, layout: &Layout, own: &FieldCounts) -> Self {
        match layout.packing {
            Packing::Classic => self.extend_classic(layout, own),
            Packing::Dense => self.extend_dense(layout, own),
        }
    }

    /// Extends the shape as JDK 15 and later do.
    fn extend_dense(&self, layout: &Layout, own: &FieldCounts) -> Self {
        let mut shape = self.clone();
        if own.is_empty() {
            return shape;
        }
        let reference = u64::from(layout.reference_bytes);
        if own.padded_class {
            shape.pad();
        }
        for (count, bytes) in
            [(own.eights, 8), (own.fours, 4), (own.twos, 2), (own.ones, 1), (own.references, reference)]
        {
            for _ in 0..count {
                shape.place(bytes);
            }
        }
        if let Some((eights, fours)) = own.padded_group {
            shape.pad();
            for (count, bytes) in [(eights, 8), (fours, 4)] {
                for _ in 0..count {
                    shape.append(bytes);
                }
            }
        }
        if own.padded_class || own.padded_group.is_some() {
            shape.pad();
        }
        shape
    }

    /// Adds padding. No field is placed before it: gaps are closed.
    fn pad(&mut self) {
        self.gaps.clear();
        self.end = self.end.saturating_add(PADDING);
    }

    /// Places a field in the smallest gap that it fits, the last of equal ones; otherwise at the end.
    fn place(&mut self, bytes: u64) {
        let fit = self
            .gaps
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, (at, len))| align_up(*at, bytes) + bytes <= at + len)
            .min_by_key(|(_, (_, len))| *len)
            .map(|(index, _)| index);
        let Some(index) = fit else {
            return self.append(bytes);
        };
        let (at, len) = self.gaps.remove(index);
        let start = align_up(at, bytes);
        let rest = [(at, start - at), (start + bytes, at + len - start - bytes)];
        for gap in rest.into_iter().rev().filter(|(_, len)| *len > 0) {
            self.gaps.insert(index, gap);
        }
    }

    fn append(&mut self, bytes: u64) {
        let start = align_up(self.end, bytes);
        if start > self.end {
            self.gaps.push((self.end, start - self.end));
        }
        self.end = start + bytes;
    }

    /// Extends the shape as JDK 14 and older do. Gaps are discarded: subclasses do not fill them.
    fn extend_classic(&self, layout: &Layout, own: &FieldCounts) -> Self {
        let reference = u64::from(layout.reference_bytes);
        let FieldCounts { references, eights, fours, twos, ones, .. } = *own;
        let [mut references, mut fours, mut twos, mut ones] = [references, fours, twos, ones].map(u64::from);
        let mut at = self.end;
        if own.padded_class {
            at += PADDING;
        }
        if own.references_first {
            at = align_up(at, reference) + references * reference;
            references = 0;
        }
        if eights > 0 {
            let start = align_up(at, 8);
            let mut gap = start - at;
            if gap > 0 && !own.references_first {
                let fill = |count: &mut u64, bytes: u64, gap: &mut u64| {
                    while *gap >= bytes && *count > 0 {
                        *count -= 1;
                        *gap -= bytes;
                    }
                };
                fill(&mut fours, 4, &mut gap);
                fill(&mut twos, 2, &mut gap);
                fill(&mut ones, 1, &mut gap);
                fill(&mut references, reference, &mut gap);
            }
            at = start + u64::from(eights) * 8;
        }
        if fours > 0 {
            at = align_up(at, 4) + fours * 4;
        }
        if twos > 0 {
            at = align_up(at, 2) + twos * 2;
        }
        at += ones;
        if references > 0 {
            at = align_up(at, reference) + references * reference;
        }
        if let Some((eights, fours)) = own.padded_group {
            at += PADDING;
            if eights > 0 {
                at = align_up(at, 8) + u64::from(eights) * 8;
            }
            at = align_up(at, 4) + u64::from(fours) * 4;
            at += PADDING;
        }
        if own.padded_class {
            at += PADDING;
        }
        Self { end: if own.is_empty() { self.end } else { align_up(at, reference) }, gaps: Vec::new() }
    }
}

/// Returns the size of the static fields in a class object, from the end of java.lang.Class's own fields on,
/// in bytes.
///
/// References come first, then the others by size; the gap before longs stays empty, in new JVMs too
/// (measured on JDK 8 to 25: every class object with a direct neighbor).
pub(crate) fn statics_bytes(layout: &Layout, own: &FieldCounts) -> u64 {
    let references = u64::from(own.references) * u64::from(layout.reference_bytes);
    let longs = if own.eights > 0 { align_up(references, 8) } else { references };
    longs
        + u64::from(own.eights) * 8
        + u64::from(own.fours) * 4
        + u64::from(own.twos) * 2
        + u64::from(own.ones)
}

const INT: BasicType = BasicType::Int;

/// Adds the fields that HotSpot injects into a class of the JDK, and padding that its annotations request.
///
/// A dump contains neither. `declares` returns whether the class declares a field, which distinguishes
/// versions.
pub(crate) fn hidden_fields(
    class: &str,
    packing: Packing,
    word_bytes: u8,
    counts: &mut FieldCounts,
    declares: impl Fn(&str) -> bool,
) {
    let pointer = if word_bytes == 8 { BasicType::Long } else { BasicType::Int };
    let mut add = |kinds: &[BasicType]| kinds.iter().for_each(|kind| counts.add(*kind));
    match class {
        "java.lang.Class" => {
            // klass, array_klass, oop_size, static_oop_field_count; then protection_domain, signers and
            // source_file, of which JDK 25 itself declares two and hides another.
            add(&[pointer, pointer, BasicType::Int, BasicType::Int, BasicType::Object, BasicType::Object]);
            if !declares("signers") {
                add(&[BasicType::Object]);
            }
        }
        "java.lang.ClassLoader" | "java.lang.Module" => add(&[pointer]),
        "java.lang.String" if packing == Packing::Dense => add(&[BasicType::Byte]),
        "java.lang.InternalError" if packing == Packing::Dense => add(&[BasicType::Byte]),
        "java.lang.StackFrameInfo" => add(&[BasicType::Short]),
        "java.lang.invoke.MemberName" if declares("method") => add(&[pointer]),
        "java.lang.invoke.MemberName" => add(&[pointer, pointer]),
        "java.lang.invoke.ResolvedMethodName" if declares("vmholder") => add(&[pointer]),
        "java.lang.invoke.ResolvedMethodName" => add(&[BasicType::Object, pointer]),
        "java.lang.invoke.MethodHandleNatives$CallSiteContext" => add(&[pointer, BasicType::Long]),
        "java.lang.VirtualThread" if declares("onWaitingList") => add(&[pointer]),
        "java.lang.Thread" if declares("holder") => {
            add(&[pointer, BasicType::Int, BasicType::Boolean, BasicType::Short]);
        }
        _ => {}
    }
    let (group, padded_class): (&[(&str, BasicType)], bool) = match class {
        "java.lang.Thread" if !declares("holder") => (
            &[
                ("threadLocalRandomSeed", BasicType::Long),
                ("threadLocalRandomProbe", BasicType::Int),
                ("threadLocalRandomSecondarySeed", BasicType::Int),
            ],
            false,
        ),
        // JDK 8 pads the class, later versions the field.
        "java.util.concurrent.ForkJoinPool" if declares("stealCounter") => (&[], true),
        "java.util.concurrent.ForkJoinPool" => {
            (&[("ctl", BasicType::Long), ("parallelism", BasicType::Int)], false)
        }
        // Up to JDK 16 the class, later versions some fields.
        "java.util.concurrent.ForkJoinPool$WorkQueue" if declares("pool") => (&[], true),
        "java.util.concurrent.ForkJoinPool$WorkQueue" if declares("access") => {
            (&[("top", INT), ("access", INT), ("phase", INT), ("source", INT), ("nsteals", INT)], false)
        }
        "java.util.concurrent.ForkJoinPool$WorkQueue" if declares("parking") => (
            &[
                ("top", INT),
                ("phase", INT),
                ("stackPred", INT),
                ("source", INT),
                ("nsteals", INT),
                ("parking", INT),
            ],
            false,
        ),
        "java.util.concurrent.ForkJoinPool$WorkQueue" => {
            (&[("top", INT), ("source", INT), ("nsteals", INT)], false)
        }
        "java.util.concurrent.SubmissionPublisher$BufferedSubscription" => {
            (&[("demand", BasicType::Long), ("waiting", INT)], true)
        }
        "java.util.concurrent.atomic.Striped64$Cell"
        | "java.util.concurrent.ConcurrentHashMap$CounterCell"
        | "java.util.concurrent.Exchanger$Node"
        | "java.util.concurrent.Exchanger$Slot" => (&[], true),
        _ => (&[], false),
    };
    counts.padded_class = padded_class;
    counts.pad_group(group.iter().filter(|(field, _)| declares(field)).map(|(_, kind)| *kind));
    counts.references_first = matches!(
        class,
        "java.lang.AssertionStatusDirectives"
            | "java.lang.Class"
            | "java.lang.ClassLoader"
            | "java.lang.ref.Reference"
            | "java.lang.ref.SoftReference"
            | "java.lang.StackTraceElement"
            | "java.lang.String"
            | "java.lang.Throwable"
            | "java.lang.Boolean"
            | "java.lang.Character"
            | "java.lang.Float"
            | "java.lang.Double"
            | "java.lang.Byte"
            | "java.lang.Short"
            | "java.lang.Integer"
            | "java.lang.Long"
    );
}

impl fmt::Display for Layout {
    /// Writes the form that [`LayoutOverride`] parses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reference_bytes, header_bytes, array_base_bytes, alignment_bytes, packing, .. } = self;
        let packing = match packing {
            Packing::Classic => "classic",
            Packing::Dense => "dense",
        };
        write!(
            f,
            "reference={reference_bytes},header={header_bytes},array-base={array_base_bytes},alignment={alignment_bytes},packing={packing}"
        )
    }
}

/// Overrides of a `--layout` option: values that it does not contain are those of the fitted layout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LayoutOverride {
    /// Size of a reference, in bytes.
    pub reference_bytes: Option<u8>,
    /// Size of a header, in bytes.
    pub header_bytes: Option<u8>,
    /// Offset of an array's first element.
    pub array_base_bytes: Option<u8>,
    /// Alignment of objects, in bytes.
    pub alignment_bytes: Option<u16>,
    /// Packing of fields.
    pub packing: Option<Packing>,
}

impl LayoutOverride {
    /// Returns `layout` with the overrides. Without an array base of its own, an overridden header determines
    /// it.
    pub fn apply(&self, layout: Layout) -> Layout {
        let header_bytes = self.header_bytes.unwrap_or(layout.header_bytes);
        let usual_base = if header_bytes == layout.header_bytes {
            layout.array_base_bytes
        } else {
            match header_bytes {
                8 => 12,
                12 => 16,
                _ => 24,
            }
        };
        Layout {
            reference_bytes: self.reference_bytes.unwrap_or(layout.reference_bytes),
            header_bytes,
            array_base_bytes: self.array_base_bytes.unwrap_or(usual_base),
            alignment_bytes: self.alignment_bytes.unwrap_or(layout.alignment_bytes),
            word_bytes: layout.word_bytes,
            packing: self.packing.unwrap_or(layout.packing),
        }
    }
}

impl FromStr for LayoutOverride {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut layout = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) =
                part.split_once('=').ok_or_else(|| format!("expected KEY=VALUE, found '{part}'"))?;
            let number = |allowed: &[u16]| {
                let number = value.parse::<u16>().ok().filter(|number| allowed.contains(number));
                number.ok_or_else(|| format!("{key}={value}: expected one of {allowed:?}"))
            };
            let byte = |allowed: &[u16]| number(allowed).map(|n| u8::try_from(n).unwrap_or(u8::MAX));
            match key {
                "reference" => layout.reference_bytes = Some(byte(&[4, 8])?),
                "header" => layout.header_bytes = Some(byte(&[8, 12, 16])?),
                "array-base" => layout.array_base_bytes = Some(byte(&[12, 16, 20, 24])?),
                "alignment" => {
                    layout.alignment_bytes = Some(number(&[1, 4, 8, 16, 32, 64, 128, 256])?);
                }
                "packing" => {
                    layout.packing = Some(match value {
                        "classic" => Packing::Classic,
                        "dense" => Packing::Dense,
                        _ => return Err(format!("packing={value}: expected classic or dense")),
                    });
                }
                _ => {
                    return Err(format!(
                        "unknown key '{key}': expected reference, header, array-base, alignment or packing"
                    ));
                }
            }
        }
        Ok(layout)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn counts(references: u32, eights: u32, fours: u32, twos: u32, ones: u32) -> FieldCounts {
        FieldCounts { references, eights, fours, twos, ones, ..FieldCounts::default() }
    }

    fn size(layout: &Layout, chain: &[FieldCounts]) -> u64 {
        let shape = chain.iter().fold(FieldsEnd::of_header(layout), |shape, own| shape.extend(layout, own));
        layout.instance_size(shape.end)
    }

    /// Sizes given by JOL (Java Object Layout) and `GC.class_histogram`.
    #[test]
    fn well_known_classes() {
        let common = Layout::COMMON;
        let classic = Layout { packing: Packing::Classic, ..common };
        for layout in [&common, &classic] {
            assert_eq!(size(layout, &[counts(0, 0, 0, 0, 0)]), 16, "Object");
            assert_eq!(size(layout, &[counts(1, 0, 1, 0, 2)]), 24, "String");
            assert_eq!(size(layout, &[counts(0, 1, 0, 0, 0)]), 24, "Long");
            assert_eq!(size(layout, &[counts(0, 0, 1, 0, 0)]), 16, "Integer");
            assert_eq!(size(layout, &[counts(3, 0, 1, 0, 0)]), 32, "HashMap$Node");
        }
    }

    #[test]
    fn a_subclass_fills_gaps_only_in_new_jvms() {
        // class A { byte b; }  class B extends A { int i; byte c; }  class C extends B { long l; short s; Object o; }
        // and the sizes that `GC.class_histogram` of JDK 17, 8 and 25 (compact headers) gives for A, B and C.
        let chain = [counts(0, 0, 0, 0, 1), counts(0, 0, 1, 0, 1), counts(1, 1, 0, 1, 0)];
        let compact = Layout { header_bytes: 8, array_base_bytes: 12, ..Layout::COMMON };
        let classic = Layout { packing: Packing::Classic, ..Layout::COMMON };
        for (layout, sizes) in
            [(Layout::COMMON, [16, 24, 32]), (classic, [16, 24, 40]), (compact, [16, 16, 32])]
        {
            assert_eq!([1, 2, 3].map(|classes| size(&layout, &chain[..classes])), sizes, "{layout}");
        }
    }

    #[test]
    fn arrays() {
        let common = Layout::COMMON;
        assert_eq!(common.array_size(BasicType::Byte, 0), 16);
        assert_eq!(common.array_size(BasicType::Byte, 1), 24);
        assert_eq!(common.array_size(BasicType::Long, 2), 32);
        let compact = Layout { header_bytes: 8, array_base_bytes: 12, ..common };
        assert_eq!(compact.array_size(BasicType::Byte, 4), 16);
        assert_eq!(compact.array_size(BasicType::Long, 1), 24);
        assert_eq!(common.array_size(BasicType::Long, u64::MAX), !7);
    }

    #[test]
    fn overrides_read_what_display_writes() {
        let layout = Layout { reference_bytes: 8, ..Layout::COMMON };
        let read: LayoutOverride = layout.to_string().parse().unwrap();
        assert_eq!(read.apply(Layout::BITS_32), Layout { word_bytes: 4, ..layout });
        assert_eq!("header=16".parse::<LayoutOverride>().unwrap().apply(Layout::COMMON).array_base_bytes, 24);
        for wrong in ["header=9", "x=1", "reference", "packing=loose", "alignment=12"] {
            assert!(wrong.parse::<LayoutOverride>().is_err(), "{wrong}");
        }
    }
}
