//! Fields with the same value in nearly all instances of the class that declares them.
//!
//! Candidates are found by majority votes ([`crate::waste::votes`]).

use std::io;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::waste::WasteSearch;
use crate::waste::findings::{Findings, PartKey, PartSum};
use crate::waste::kind::{Passes, WasteEffect, WasteFinder, WasteKind};
use crate::waste::plan::{ComparedField, MIN_INSTANCES, Plans};
use crate::waste::votes::{ONE_OF, Votes};
use hprof_base::parallel;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::layout::fit::{Shapes, own_fields};
use hprof_index::layout::sizes::SizeSource;
use hprof_index::model::summary::ClassNumber;
use hprof_model::objects::reader::{Instance, ObjectVisitor};
use hprof_values::BasicType;

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "constant_fields",
    summary: "Fields with the same value in nearly all instances",
    meaning: "Fields of the program's own classes that are null, zero or equal in at least 99 percent of \
        the instances, for classes with at least 100 instances. Freed: the difference in size if the \
        instances had no such fields, by the JVM's layout and alignment. `ratio` is the remaining part of \
        the instances.",
    harmless: "If the field is filled later, or in other deployments.",
    remedy: "Move fields that are seldom set to an object of their own, or to a subclass. Make a field \
        static if its value is the same everywhere.",
    frees: WasteEffect::OfClass,
    is_sampled: false,
    finds: WasteFinder::AfterPasses(find),
};

/// Maximum number of superclasses whose fields are reported.
const MAX_CLASSES: usize = 1 << 10;

/// Kind of constant value, in the order in which fields are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Same {
    Null,
    Zero,
    Equal,
}

/// A field with a constant value.
#[derive(Debug, Clone, Copy)]
struct Constant {
    field: ComparedField,
    kind: BasicType,
    same: Same,
}

/// Finds the fields, and by how much instances would shrink without them.
fn find(search: &WasteSearch<'_>, passes: &mut Passes) -> io::Result<Findings> {
    let (summary, plans, votes) = (search.dump.summary, &passes.plans, &passes.votes);
    let mut findings = Findings::default();
    let counts = count(search, plans, votes);
    let mut constants: Vec<Constant> = Vec::new();
    for ((field, vote), (limit, count)) in
        plans.fields.iter().zip(&votes.votes).zip(votes.limits.iter().zip(counts))
    {
        let (equal, all) = match vote.pairs {
            // All instances have the winning value.
            0 => (vote.score, vote.score),
            pairs if pairs <= *limit => count.into_inner().unwrap_or_else(PoisonError::into_inner),
            _ => continue,
        };
        if all < MIN_INSTANCES || equal.saturating_mul(ONE_OF) < all.saturating_mul(ONE_OF - 1) {
            continue;
        }
        let row = summary.class(field.class);
        let Some((_, kind)) = row.and_then(|row| summary.raw_fields(row).nth(field.number as usize)) else {
            continue;
        };
        let same = match (vote.candidate, kind) {
            (0, BasicType::Object) => Same::Null,
            (0, _) => Same::Zero,
            _ => Same::Equal,
        };
        constants.push(Constant { field: *field, kind, same });
    }
    let layout = *search.sizes.layout();
    if constants.is_empty() || search.sizes.fit.sizes_stated {
        return Ok(findings);
    }
    // Removed in groups, one after another, to measure the bytes that each frees.
    let mut own = own_fields(summary, layout.packing, layout.word_bytes);
    let instances = &votes.classes;
    let mut shapes = Shapes::new(summary, &own, &layout);
    let mut shrinks = vec![0u64; instances.len()];
    for same in [Same::Null, Same::Zero, Same::Equal] {
        for constant in constants.iter().filter(|constant| constant.same == same) {
            if let Some(own) = own.get_mut(constant.field.class.0 as usize) {
                own.remove(constant.kind);
            }
        }
        let without = Shapes::new(summary, &own, &layout);
        // Shrinkage of the instances, by class. Measured sizes are used where the layout is unknown.
        for (number, _) in summary.numbered_classes() {
            let at = number.0 as usize;
            let count = instances.get(at).copied().unwrap_or(0);
            let is_by_model =
                matches!(search.sizes.instance(number).1, SizeSource::Model | SizeSource::Confirmed);
            if count == 0 || !is_by_model {
                continue;
            }
            let bytes = shapes.size(&layout, at).saturating_sub(without.size(&layout, at));
            if bytes == 0 {
                continue;
            }
            if let Some(shrink) = shrinks.get_mut(at) {
                *shrink += bytes;
            }
            share_out(search, &constants, same, (number, count, bytes), &mut findings);
        }
        shapes = without;
    }
    for (number, (shrink, count)) in (0u32..).zip(shrinks.iter().zip(instances)) {
        if *shrink > 0 {
            let class = ClassNumber(number);
            let bytes = shrink.saturating_mul(*count);
            findings.count += count;
            findings.bytes = findings.bytes.saturating_add(bytes);
            let size = search.sizes.instance(class).0;
            let filled = (size.saturating_sub(*shrink).saturating_mul(*count), size.saturating_mul(*count));
            findings.parts.insert(PartKey::Class(class), PartSum { count: *count, bytes, filled });
        }
    }
    findings.shrinks = shrinks;
    Ok(findings)
}

/// Distributes the shrinkage of a class's instances over the fields in a group.
fn share_out(
    search: &WasteSearch<'_>,
    constants: &[Constant],
    same: Same,
    (class, count, bytes): (ClassNumber, u64, u64),
    findings: &mut Findings,
) {
    let table = search.dump.summary.class_table();
    let mut left = bytes.saturating_mul(count);
    let of_class: Vec<&Constant> = (table.upwards(class).take(MAX_CLASSES))
        .flat_map(|above| {
            let start = constants.partition_point(|constant| constant.field.class < above);
            constants
                .get(start..)
                .unwrap_or_default()
                .iter()
                .take_while(move |constant| constant.field.class == above)
        })
        .filter(|constant| constant.same == same)
        .collect();
    for (more, constant) in (0..of_class.len() as u64).rev().zip(of_class) {
        let part = left.div_ceil(more + 1);
        left -= part;
        let sum = findings.fields.entry((constant.field.class, constant.field.number)).or_default();
        *sum = (sum.0 + count, sum.1.saturating_add(part));
    }
}

/// Counts, for each field that the votes do not decide, the instances with the winning value, and all instances.
fn count(search: &WasteSearch<'_>, plans: &Plans, votes: &Votes) -> Vec<Mutex<(u64, u64)>> {
    let counts: Vec<Mutex<(u64, u64)>> = plans.fields.iter().map(|_| Mutex::default()).collect();
    // Classes whose instances have fields that are still undecided.
    let mut is_wanted = vec![false; plans.of_class.len()];
    for (field, (vote, limit)) in plans.fields.iter().zip(votes.votes.iter().zip(&votes.limits)) {
        if vote.pairs > 0
            && vote.pairs <= *limit
            && let Some(is_wanted) = is_wanted.get_mut(field.class.0 as usize)
        {
            *is_wanted = true;
        }
    }
    if !is_wanted.contains(&true) {
        return counts;
    }
    search.dump.summary.class_table().add_subclasses(&mut is_wanted);
    parallel::for_each(&search.chunks(), |chunk| {
        let fields = FxHashMap::default();
        let mut pass = Counting { search, plans, votes, fields };
        search.walk(chunk, &is_wanted, &mut pass);
        for (number, (equal, all)) in pass.fields {
            if let Some(count) = counts.get(number as usize) {
                let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
                *count = (count.0 + equal, count.1 + all);
            }
        }
    });
    counts
}

/// Visitor that counts values of fields.
struct Counting<'v, 'a> {
    search: &'v WasteSearch<'a>,
    plans: &'v Plans,
    votes: &'v Votes,
    /// By number of the field: instances with the winning value, and all instances.
    fields: FxHashMap<u32, (u64, u64)>,
}

impl<'a> ObjectVisitor<'a> for Counting<'_, 'a> {
    #[inline(always)]
    fn instance(&mut self, object: ObjectIndex, record: Instance<'a>) {
        let Some(class) = self.search.class(object) else { return };
        self.plans.for_each_compared(self.search.dump.summary, class, record.fields, |number, value| {
            if let Some(vote) = self.votes.votes.get(number as usize).filter(|vote| vote.pairs > 0) {
                let (equal, all) = self.fields.entry(number).or_default();
                *equal += u64::from(vote.candidate == value.bits);
                *all += 1;
            }
        });
    }
}
