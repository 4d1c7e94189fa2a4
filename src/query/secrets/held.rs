//! Fields that hold credentials: of known classes, and those whose names say so.

use std::ops::Range;

use rustc_hash::FxHashMap;

use hprof_index::graph::numbers::{ObjectIndex, chunks};
use hprof_index::model::summary::ClassNumber;
use hprof_index::objects::object_table::BLOCK;
use hprof_parser::{BasicType, names};

use super::rules::{HeldRule, SecretRules, is_like};
use super::values::{self, HeldValue, KnownValue};
use super::{Candidate, SecretQuery, from_name};
use crate::objects::class_set::ClassSet;
use crate::objects::reader::{FieldPlace, ObjectReader, Record};
use crate::parallel;

/// Maximum number of fields of a class, with those of its superclasses, and of static fields, that are looked at.
const MAX_FIELDS: usize = 1 << 12;
/// Maximum number of superclasses.
const MAX_SUPERCLASSES: usize = 64;
/// Number of objects per chunk, and maximum number of findings of one.
const CHUNK: u32 = 1 << 16;
const MAX_FOUND: usize = 1 << 13;
/// Numbers of bytes of symmetric keys.
const KEY_LENGTHS: [usize; 5] = [16, 24, 32, 48, 64];

/// A field of the instances of a class for which there is a rule.
#[derive(Debug, Clone)]
struct HeldField {
    place: FieldPlace,
    /// Number of the rule.
    rule: usize,
    /// Class and name.
    name: String,
    /// `true` if the class is one of the JDK.
    is_of_jdk: bool,
}

/// Rules by class and field, each looked up once.
struct FieldRules<'r, 'a> {
    objects: &'r ObjectReader<'a>,
    rules: &'r SecretRules,
    /// Numbers of the rules that name a field, and whether its name says so.
    of_name: FxHashMap<&'a str, (Vec<usize>, bool)>,
    /// Numbers of the rules that match a class by its name, and whether those about names of fields apply.
    of_class: FxHashMap<ClassNumber, Vec<bool>>,
}

impl<'a> FieldRules<'_, 'a> {
    /// Returns the number of the rule about a field of the instances of `class`, which `declaring` declares.
    fn rule(&mut self, class: ClassNumber, declaring: ClassNumber, field: &'a str) -> Option<usize> {
        let rules = self.rules;
        let (named, says_so) = self.of_name.entry(field).or_insert_with(|| {
            let named = rules
                .held
                .iter()
                .enumerate()
                .filter(|(_, rule)| rule.fields.iter().any(|name| name == field));
            let says_so = rules.names.as_ref().is_some_and(|names| names.contain(field.as_bytes()));
            (named.map(|(number, _)| number).collect(), says_so)
        });
        if named.is_empty() && !*says_so {
            return None;
        }
        let summary = self.objects.summary;
        let matching = self.of_class.entry(class).or_insert_with(|| {
            let table = summary.class_table();
            let mut matching = vec![false; rules.held.len()];
            let above = std::iter::successors(Some(class), |class| table.superclass_with_fields(*class));
            for class in above.take(MAX_SUPERCLASSES) {
                let Some(row) = summary.class(class) else { continue };
                let name = summary.class_name(row);
                for (is_it, rule) in matching.iter_mut().zip(&rules.held) {
                    *is_it |= rule.classes.iter().any(|pattern| is_like(pattern, name));
                }
            }
            matching
        });
        let is_it = |number: &usize| matching.get(*number) == Some(&true);
        named.iter().copied().find(is_it).or_else(|| {
            let declaring = summary.class_name(summary.class(declaring)?);
            let is_excepted = || rules.names.as_ref().is_some_and(|names| names.except_class(declaring));
            let general = rules.held.iter().position(|rule| rule.fields.is_empty())?;
            (*says_so && is_it(&general) && !is_excepted()).then_some(general)
        })
    }
}

/// Finds the values of fields.
pub(super) fn find(
    objects: &ObjectReader<'_>,
    rules: &SecretRules,
    query: SecretQuery,
) -> (Vec<Candidate>, u64) {
    let (summary, graph) = (objects.summary, objects.graph);
    let mut of = FieldRules { objects, rules, of_name: FxHashMap::default(), of_class: FxHashMap::default() };
    let mut fields: FxHashMap<ClassNumber, Vec<HeldField>> = FxHashMap::default();
    let mut found = Vec::new();
    for (number, class) in summary.numbered_classes() {
        for slot in objects.slots(number).take(MAX_FIELDS) {
            if slot.kind != BasicType::Object || class.objects.get() == 0 {
                continue;
            }
            if let Some(rule) = of.rule(number, slot.class, slot.name) {
                let declaring = summary.class(slot.class).map_or("", |row| summary.class_name(row));
                fields.entry(number).or_default().push(HeldField {
                    place: slot.place,
                    rule,
                    name: format!("{declaring}.{}", slot.name),
                    is_of_jdk: names::is_of_jdk(declaring),
                });
            }
        }
        for (name, kind, value) in summary.statics(class).take(MAX_FIELDS) {
            if kind != BasicType::Object {
                continue;
            }
            let rule = of.rule(number, number, name);
            let target = rule.and_then(|_| values::object_of(objects, value));
            if let (Some(rule), Some(target), Some(from)) = (rule, target, graph.class_object(number)) {
                let holder = format!("{}.{name}", summary.class_name(class));
                found.extend(candidate((objects, rules, query), rule, (from, target), &holder, false));
            }
        }
    }
    let classes: Vec<ClassNumber> = fields.keys().copied().collect();
    let set = ClassSet::of(summary, &classes);
    if set.is_empty() {
        return (found, 0);
    }
    let mut omitted = 0;
    let chunk = |chunk: Range<u32>| {
        let (mut found, mut omitted) = (Vec::new(), 0);
        for (first, wanted) in set.blocks(graph, ObjectIndex(chunk.start)..ObjectIndex(chunk.end)) {
            let mut held: Vec<(ObjectIndex, &HeldField, ObjectIndex)> = Vec::new();
            objects.records_of_block(first, wanted, |object, record| {
                let Some(Record::Instance(record)) = record else { return };
                let class = graph.objects.class(object);
                for field in class.and_then(|class| fields.get(&class)).into_iter().flatten() {
                    let value = objects.value_at(record.fields, field.place);
                    if let Some(target) = value.and_then(|value| objects.object(value)) {
                        held.push((object, field, target));
                    }
                }
            });
            for (object, field, target) in held {
                let from = (object, target);
                let one = candidate((objects, rules, query), field.rule, from, &field.name, field.is_of_jdk);
                match one {
                    Some(_) if found.len() >= MAX_FOUND => omitted += 1,
                    one => found.extend(one),
                }
            }
        }
        (found, omitted)
    };
    let all = chunks(0..graph.objects.len(), CHUNK.next_multiple_of(BLOCK));
    for (some, more) in parallel::map(&all, chunk) {
        found.extend(some);
        omitted += more;
    }
    (found, omitted)
}

/// Returns whether a value is like a symmetric key: random bytes, as many as keys have.
fn is_key(objects: &ObjectReader<'_>, object: ObjectIndex, value: &HeldValue) -> bool {
    let class = objects.graph.objects.class(object).and_then(|class| objects.summary.class(class));
    let HeldValue::Key(bytes) = value else { return false };
    let mut seen = [false; 256];
    bytes.iter().for_each(|byte| seen.get_mut(usize::from(*byte)).into_iter().for_each(|seen| *seen = true));
    let distinct = seen.into_iter().filter(|seen| *seen).count();
    class.is_some_and(|class| objects.summary.is_named(class, "byte[]"))
        && KEY_LENGTHS.contains(&bytes.len())
        && distinct * 8 >= bytes.len() * 5
}

/// Returns the value of a field, if it may be a credential.
fn candidate(
    (objects, rules, query): (&ObjectReader<'_>, &SecretRules, SecretQuery),
    rule: usize,
    (from, target): (ObjectIndex, ObjectIndex),
    holder: &str,
    is_of_jdk: bool,
) -> Option<Candidate> {
    let of: &HeldRule = rules.held.get(rule)?;
    let (object, value) = values::value(objects, target, of.kind)?;
    if let HeldValue::Text(text) = &value {
        let is_general = of.fields.is_empty();
        let field = holder.rsplit('.').next().unwrap_or_default();
        if !from_name::is_value(rules, field, text, is_general) {
            return None;
        }
    } else if of.fields.is_empty() && !is_key(objects, object, &value) {
        return None;
    }
    let number = rules.texts.len() + rule;
    let is_general = of.fields.is_empty();
    Some(Candidate {
        rule: Some(number),
        object,
        value: KnownValue::of(&value, query),
        from,
        holder: (!is_of_jdk).then(|| holder.to_owned()),
        is_general,
    })
}
