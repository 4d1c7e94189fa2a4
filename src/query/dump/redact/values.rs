//! Mapping of the values in sub-records.

use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{HeapVisitor, Instance, PrimitiveArray};
use hprof_parser::{BasicType, IdSize, ObjectId, be_u16, be_value};

use super::RedactOptions;
use super::contents::{BLOCK, BlockChain, Contents};
use super::counts::RedactCounts;
use super::fields::{FieldTreatment, treatment};
use super::kept::KeptTexts;
use super::plan::Plan;

/// What mapping needs.
#[derive(Debug)]
pub(super) struct Mapping<'a> {
    pub(super) plan: &'a Plan,
    pub(super) kept: &'a KeptTexts,
    pub(super) contents: Contents,
    pub(super) options: &'a RedactOptions,
}

impl Mapping<'_> {
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

    /// Returns what the contents of an object depend on besides themselves.
    pub(super) fn holder(&self, id: ObjectId) -> u64 {
        if self.options.break_equality { self.contents.holder(id.0) } else { 0 }
    }

    /// Replaces the value of a field, or of a static.
    fn value(
        &self,
        kind: BasicType,
        treatment: FieldTreatment,
        holder: u64,
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
            FieldTreatment::Counter if !self.options.strict_numbers => {
                counts.counters_kept += 1;
                return;
            }
            // A boolean is 0 or 1, whatever else the byte may hold.
            FieldTreatment::Stays if kind == BasicType::Boolean => {
                counts.numbers_kept += 1;
                1
            }
            FieldTreatment::Stays => {
                counts.numbers_kept += 1;
                return;
            }
            FieldTreatment::MarkedHash if is_negative(kind, bits) => {
                counts.hashes_mapped += 1;
                return;
            }
            FieldTreatment::Hash | FieldTreatment::MarkedHash => {
                counts.hashes_mapped += 1;
                self.contents.number(kind, bits, false, holder)
            }
            FieldTreatment::Counter | FieldTreatment::Boxed | FieldTreatment::Mapped => {
                counts.numbers_mapped += 1;
                let is_box = treatment == FieldTreatment::Boxed;
                if self.options.zero && !is_box {
                    0
                } else {
                    self.contents.number(kind, bits, is_box, holder)
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

/// Maps the values of sub-records in a copy of them.
pub(super) struct Mapper<'m> {
    pub(super) mapping: &'m Mapping<'m>,
    /// Copy of the sub-records.
    pub(super) out: &'m mut [u8],
    /// Offset of its start in the bytes that are visited.
    pub(super) start: usize,
    pub(super) counts: RedactCounts,
}

impl Mapper<'_> {
    fn out(&mut self, start: usize, end: usize) -> &mut [u8] {
        self.out.get_mut(start - self.start..end - self.start).unwrap_or_default()
    }
}

impl<'a> HeapVisitor<'a> for Mapper<'_> {
    fn instance(&mut self, record: Instance<'a>) {
        let (mapping, plan) = (self.mapping, self.mapping.plan);
        let mut at = record.end - record.fields.len();
        let mut class = plan.classes.get(&record.class);
        if class.is_none() {
            self.out(at, record.end).fill(0);
            self.counts.unknown_instances += 1;
            return;
        }
        let holder = mapping.holder(record.id);
        let mut counts = std::mem::take(&mut self.counts);
        while let Some(fields) = class.filter(|_| at < record.end) {
            for (start, kind, treatment) in &fields.changes {
                let from = at + *start as usize;
                let to = from + kind.dump_bytes(IdSize::Eight);
                if to <= record.end {
                    mapping.value(*kind, *treatment, holder, self.out(from, to), &mut counts);
                } else if from < record.end {
                    self.out(from, record.end).fill(0);
                }
            }
            at = at.saturating_add(fields.bytes as usize);
            class = fields.above.and_then(|above| plan.classes.get(&above));
            if fields.bytes == 0 && fields.above.is_none() {
                break;
            }
        }
        // What no class declares.
        if at < record.end {
            self.out(at, record.end).fill(0);
        }
        self.counts = counts;
    }

    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        let Some(elements) = record.elements else { return };
        let mapping = self.mapping;
        let mut counts = std::mem::take(&mut self.counts);
        let chain = BlockChain::new(record.length.into(), elements.len() as u64);
        let mut chain = chain.of_holder(mapping.holder(record.id));
        let data = self.out(record.end - elements.len(), record.end);
        mapping.array(record.element, &mut chain, data, &mut counts);
        self.counts = counts;
    }

    fn class(&mut self, record: ClassDump<'a>) {
        let (mapping, plan) = (self.mapping, self.mapping.plan);
        let (id_size, w) = (plan.id_size(), plan.id_size().bytes());
        let class = plan.class_names.get(&record.id).map_or("", String::as_str);
        let holder = mapping.holder(record.id);
        let mut counts = std::mem::take(&mut self.counts);
        let out = self.out(record.offset, record.offset + record.len);
        // The constant pool, then the statics: counts, and entries with a type and a value.
        let constants_at = 9 + 7 * w;
        let mut at = constants_at + 2;
        for constant in record.constants() {
            let size = constant.kind.dump_bytes(id_size);
            if constant.kind != BasicType::Object {
                let value = out.get_mut(at + 3..at + 3 + size).unwrap_or_default();
                mapping.value(constant.kind, FieldTreatment::Mapped, holder, value, &mut counts);
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
                let value = out.get_mut(at + w + 1..at + w + 1 + size).unwrap_or_default();
                mapping.value(field.kind, treatment, holder, value, &mut counts);
            }
            at += w + 1 + size;
        }
        self.counts = counts;
    }
}
