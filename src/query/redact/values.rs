//! Mapping of the values in sub-records.

use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{HeapVisitor, Instance, PrimitiveArray};
use hprof_values::{BasicType, IdSize, ObjectId, be_u16, be_value};

use super::RedactOptions;
use super::bytes::BLOCK;
use super::contents::{BlockChain, ContentMapping};
use super::counters::KeptCounters;
use super::counts::RedactCounts;
use super::kept::KeptValues;
use super::plan::{FieldChange, Plan, field_hash};
use hprof_model::objects::hiding::fields::{FieldTreatment, treatment};

/// Keys, plan and kept values for mapping the values of a dump.
#[derive(Debug)]
pub(super) struct Mapping<'a> {
    pub(super) plan: &'a Plan,
    pub(super) kept: &'a KeptValues,
    pub(super) contents: ContentMapping,
    /// Offsets of the fields of the plan, by number.
    offsets: Vec<u64>,
    pub(super) options: &'a RedactOptions,
    pub(super) counters: KeptCounters,
}

impl<'a> Mapping<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        kept: &'a KeptValues,
        options: &'a RedactOptions,
        contents: ContentMapping,
    ) -> Self {
        let offsets = plan.field_hashes.iter().map(|hash| contents.offset(*hash)).collect();
        Self { plan, kept, contents, offsets, options, counters: kept.counters.clone() }
    }

    /// Returns the treatment of a field of an object to whose class these rules apply.
    #[inline(always)]
    fn treatment(&self, treatment: FieldTreatment, id: ObjectId, rules: u32) -> FieldTreatment {
        match treatment {
            FieldTreatment::Counter if self.counters.contains(id) => FieldTreatment::Stays,
            _ => treatment.in_instance(rules, self.options.strict_numbers),
        }
    }

    /// Replaces the contents of an array, or its next blocks.
    pub(super) fn array(
        &self,
        kind: BasicType,
        chain: &mut BlockChain,
        data: &mut [u8],
        counts: &mut RedactCounts,
    ) {
        let reason = |data: &[u8]| self.kept.reason(kind, data);
        let mut result = None;
        for block in data.chunks_mut(BLOCK) {
            let treatment = self.contents.array(self.kept, kind, chain, block);
            result = Some(result.unwrap_or(treatment));
        }
        let result = result.unwrap_or(super::contents::Treatment::Nothing);
        counts.array(result, if result == super::contents::Treatment::Kept { reason(data) } else { None });
    }

    /// Returns a number for an object if the image of its contents depends on the object, otherwise 0.
    #[inline(always)]
    pub(super) fn holder(&self, id: ObjectId) -> u64 {
        if self.options.break_equality { self.contents.holder(id.0) } else { 0 }
    }

    /// Replaces the value of an instance or static field. `offset` is the offset of the field from the plan, `holder` the
    /// number of the object.
    fn replace_value(
        &self,
        kind: BasicType,
        treatment: FieldTreatment,
        (offset, holder): (u64, u64),
        data: &mut [u8],
        counts: &mut RedactCounts,
    ) {
        // A type has one size whatever that of identifiers is; references are not mapped.
        let Some(bits) = be_value(data, 0, kind, IdSize::Eight) else { return };
        if bits == 0 {
            return;
        }
        let mapped = match treatment {
            FieldTreatment::Reference => return,
            // A boolean is 0 or 1, whatever else the byte may hold.
            FieldTreatment::Stays if kind == BasicType::Boolean => {
                counts.numbers_kept += 1;
                1
            }
            FieldTreatment::Stays | FieldTreatment::Finer | FieldTreatment::InInstances(_) => {
                counts.numbers_kept += 1;
                return;
            }
            FieldTreatment::MarkedHash if is_negative(kind, bits) => {
                counts.hashes_mapped += 1;
                return;
            }
            FieldTreatment::Hash | FieldTreatment::MarkedHash => {
                counts.hashes_mapped += 1;
                self.contents.hash(kind, bits, holder)
            }
            FieldTreatment::Counter
            | FieldTreatment::Boxed
            | FieldTreatment::Boolean
            | FieldTreatment::Mapped => {
                counts.numbers_mapped += 1;
                match treatment {
                    FieldTreatment::Boxed => self.contents.box_value(kind, bits, holder),
                    // The only other value is false.
                    _ if kind == BasicType::Boolean => 0,
                    // It may be the size of a queue. A negative number means unknown; any other would be wrong.
                    FieldTreatment::Counter if kind == BasicType::Int && self.counters.has_more => {
                        let sign = 1 << 31;
                        let image = self.contents.number(kind, bits | sign, offset ^ holder);
                        if self.options.zero { u64::from(u32::MAX) } else { image }
                    }
                    _ if self.options.zero => 0,
                    _ => self.contents.number(kind, bits, offset ^ holder),
                }
            }
        };
        let bytes = mapped.to_be_bytes();
        let size = kind.dump_bytes(IdSize::Eight);
        for (to, from) in data.iter_mut().zip(bytes.iter().skip(bytes.len() - size)) {
            *to = *from;
        }
    }
}

fn is_negative(kind: BasicType, bits: u64) -> bool {
    kind == BasicType::Int && bits >> 31 == 1
}

/// Visitor that maps the values of sub-records in a copy of them.
pub(super) struct Mapper<'m> {
    pub(super) mapping: &'m Mapping<'m>,
    /// Copy of the sub-records.
    pub(super) out: &'m mut [u8],
    /// Offset of the copy's start in the visited bytes.
    pub(super) start: usize,
    pub(super) counts: RedactCounts,
}

/// Copy of sub-records, addressed by offsets in the visited bytes.
struct Out<'o> {
    bytes: &'o mut [u8],
    start: usize,
}

impl Out<'_> {
    #[inline(always)]
    fn part(&mut self, start: usize, end: usize) -> &mut [u8] {
        self.bytes.get_mut(start - self.start..end - self.start).unwrap_or_default()
    }
}

impl<'a> HeapVisitor<'a> for Mapper<'_> {
    fn instance(&mut self, record: Instance<'a>) {
        let (mapping, plan) = (self.mapping, self.mapping.plan);
        let counts = &mut self.counts;
        let mut out = Out { bytes: self.out, start: self.start };
        let mut at = record.end - record.fields.len();
        let mut class = plan.classes.get(&record.class);
        if class.is_none() {
            out.part(at, record.end).fill(0);
            counts.unknown_instances += 1;
            return;
        }
        let holder = mapping.holder(record.id);
        let rules = class.map_or(0, |class| class.rules);
        while let Some(fields) = class.filter(|_| at < record.end) {
            for FieldChange { start, kind, treatment, field } in &fields.changes {
                let from = at + *start as usize;
                let to = from + kind.dump_bytes(IdSize::Eight);
                if to <= record.end {
                    let offset = mapping.offsets.get(*field as usize).copied().unwrap_or_default();
                    let treatment = mapping.treatment(*treatment, record.id, rules);
                    mapping.replace_value(*kind, treatment, (offset, holder), out.part(from, to), counts);
                } else if from < record.end {
                    out.part(from, record.end).fill(0);
                }
            }
            at = at.saturating_add(fields.bytes as usize);
            class = fields.above.and_then(|above| plan.classes.get(&above));
            if fields.bytes == 0 && fields.above.is_none() {
                break;
            }
        }
        // Bytes that no class declares, or whose class is missing.
        if at < record.end {
            let rest = out.part(at, record.end);
            counts.unknown_instances += u64::from(rest.iter().any(|byte| *byte != 0));
            rest.fill(0);
        }
    }

    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        let Some(elements) = record.elements else { return };
        let chain = BlockChain::new(record.length.into(), elements.len() as u64);
        let mut chain = chain.of_holder(self.mapping.holder(record.id));
        let mut out = Out { bytes: self.out, start: self.start };
        let data = out.part(record.end - elements.len(), record.end);
        self.mapping.array(record.element, &mut chain, data, &mut self.counts);
    }

    fn class(&mut self, record: ClassDump<'a>) {
        let (mapping, plan) = (self.mapping, self.mapping.plan);
        let (id_size, w) = (plan.id_size(), plan.id_size().bytes());
        let class = plan.class_names.get(&record.id).map_or("", String::as_str);
        let holder = mapping.holder(record.id);
        let counts = &mut self.counts;
        let mut out = Out { bytes: self.out, start: self.start };
        let out = out.part(record.offset, record.offset + record.len);
        // Two identifiers are reserved.
        if let Some(reserved) = out.get_mut(5 + 5 * w..5 + 7 * w) {
            reserved.fill(0);
        }
        // The constant pool, then the statics: counts, and entries with a type and a value.
        let constants_at = 9 + 7 * w;
        let mut at = constants_at + 2;
        for constant in record.constants() {
            let size = constant.kind.dump_bytes(id_size);
            if constant.kind != BasicType::Object {
                let value = out.get_mut(at + 3..at + 3 + size).unwrap_or_default();
                let offset = mapping.contents.offset(field_hash(class, "constant"));
                mapping.replace_value(constant.kind, FieldTreatment::Mapped, (offset, holder), value, counts);
            }
            at += 3 + size;
        }
        debug_assert!(be_u16(out, at).is_some());
        at += 2;
        for field in record.statics() {
            let size = field.kind.dump_bytes(id_size);
            if field.kind != BasicType::Object {
                let name = plan.static_names.get(&field.name).map_or("", String::as_str);
                let treatment = treatment(class, name, field.kind);
                let treatment = treatment.in_instance(0, mapping.options.strict_numbers);
                let value = out.get_mut(at + w + 1..at + w + 1 + size).unwrap_or_default();
                let offset = mapping.contents.offset(field_hash(class, name));
                mapping.replace_value(field.kind, treatment, (offset, holder), value, counts);
            }
            at += w + 1 + size;
        }
    }
}
