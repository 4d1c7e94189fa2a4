//! Fields that hold credentials: of known classes, and those whose names indicate credentials.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_index::graph::numbers::{ObjectIndex, chunks};
use hprof_index::model::summary::ClassNumber;
use hprof_index::objects::object_table::BLOCK;
use hprof_values::{BasicType, names};

use super::values::{self, HeldValue, KnownValue};
use super::{MAX_ROWS, SecretCandidate, SecretQuery, from_name};
use hprof_base::parallel;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::reader::{FieldPlace, ObjectReader, ObjectRecord};
use hprof_model::secret_rules::rules::{HeldRule, SecretRules, is_like};

/// Maximum number of fields of a class, including inherited ones, and of static fields, that are examined.
const MAX_FIELDS: usize = 1 << 12;
/// Maximum number of fields with a rule of a class and its superclasses.
const MAX_HELD: usize = 256;
/// Maximum number of fields with a rule of all classes.
const MAX_ALL: usize = 1 << 20;
/// Number of objects per chunk.
const CHUNK: u32 = 1 << 16;
/// Maximum number of findings of a chunk.
const MAX_FOUND: usize = 1 << 13;
/// Number of chunks for each thread that are read before their findings are merged.
const BATCH: usize = 2;
/// Lengths of symmetric keys in bytes.
const KEY_LENGTHS: [usize; 5] = [16, 24, 32, 48, 64];

/// A field of the instances of a class for which there is a rule.
#[derive(Debug, Clone, Copy)]
struct HeldField<'n> {
    place: FieldPlace,
    /// Number of the rule about the field.
    rule: usize,
    of: &'n NamedField<'n>,
}

/// A field that a class declares, and whose name is in a rule.
#[derive(Debug)]
struct NamedField<'a> {
    /// Location in an instance of the class.
    place: FieldPlace,
    field: &'a str,
    /// Names of class and field.
    name: String,
    /// `true` if the class belongs to the JDK.
    is_of_jdk: bool,
}

/// Rules by class and field, each of which is looked up once.
struct FieldRules<'r, 'a> {
    objects: &'r ObjectReader<'a>,
    rules: &'r SecretRules,
    /// Numbers of the rules that name a field, and whether its name indicates a credential.
    of_name: FxHashMap<&'a str, (Vec<usize>, bool)>,
    /// By class: for each rule, `true` if it names the class or a superclass.
    of_class: FxHashMap<ClassNumber, Arc<[bool]>>,
}

impl<'a> FieldRules<'_, 'a> {
    /// Returns whether a rule names a field, or its name indicates a credential.
    fn is_named(&mut self, field: &'a str) -> bool {
        let (named, says_so) = self.rules_of_name(field);
        *says_so || !named.is_empty()
    }

    fn rules_of_name(&mut self, field: &'a str) -> &(Vec<usize>, bool) {
        let rules = self.rules;
        self.of_name.entry(field).or_insert_with(|| {
            let named = rules
                .held
                .iter()
                .enumerate()
                .filter(|(_, rule)| rule.fields.iter().any(|name| name == field));
            let says_so = rules.names.as_ref().is_some_and(|names| names.contain(field.as_bytes()));
            (named.map(|(number, _)| number).collect(), says_so)
        })
    }

    /// Returns, by rule, whether the rule names the class or one of its superclasses with fields. Each class is examined once,
    /// even in a long chain of superclasses.
    fn of_class(&mut self, class: ClassNumber) -> Arc<[bool]> {
        if let Some(known) = self.of_class.get(&class) {
            return known.clone();
        }
        let (summary, rules) = (self.objects.summary, self.rules);
        let (mut way, mut above) = (vec![class], None);
        while let Some(next) =
            way.last().and_then(|class| summary.class_table().superclass_with_fields(*class))
        {
            above = self.of_class.get(&next).cloned();
            if above.is_some() {
                break;
            }
            way.push(next);
        }
        let mut matching = above.unwrap_or_else(|| rules.held.iter().map(|_| false).collect());
        for class in way.into_iter().rev() {
            let name = summary.class(class).map_or("", |row| summary.class_name(row));
            let is_it = |rule: &HeldRule| rule.classes.iter().any(|pattern| is_like(pattern, name));
            if rules.held.iter().zip(&*matching).any(|(rule, is_above)| !is_above && is_it(rule)) {
                let both = rules.held.iter().zip(&*matching).map(|(rule, is_above)| *is_above || is_it(rule));
                matching = both.collect();
            }
            self.of_class.insert(class, matching.clone());
        }
        matching
    }

    /// Returns the number of the rule about a field that `declaring` declares, for instances of `class`.
    fn rule(&mut self, class: ClassNumber, declaring: ClassNumber, field: &'a str) -> Option<usize> {
        if !self.is_named(field) {
            return None;
        }
        let matching = self.of_class(class);
        let (summary, rules) = (self.objects.summary, self.rules);
        let (named, says_so) = self.rules_of_name(field);
        let is_it = |number: &usize| matching.get(*number) == Some(&true);
        named.iter().copied().find(is_it).or_else(|| {
            let declaring = summary.class_name(summary.class(declaring)?);
            let is_excepted = || rules.names.as_ref().is_some_and(|names| names.except_class(declaring));
            let general = rules.held.iter().position(|rule| rule.fields.is_empty())?;
            (*says_so && is_it(&general) && !is_excepted()).then_some(general)
        })
    }

    /// Returns the fields that each class declares and whose names are in rules.
    fn named_fields(&mut self) -> FxHashMap<ClassNumber, Vec<NamedField<'a>>> {
        let (objects, mut declared) = (self.objects, FxHashMap::<_, Vec<_>>::default());
        for (number, class) in objects.summary.numbered_classes() {
            let own = objects.slots(number).take_while(|slot| slot.class == number).take(MAX_FIELDS);
            for slot in own.filter(|slot| slot.kind == BasicType::Object) {
                if self.is_named(slot.name) {
                    let class_name = objects.summary.class_name(class);
                    declared.entry(number).or_default().push(NamedField {
                        place: slot.place,
                        field: slot.name,
                        name: format!("{class_name}.{}", slot.name),
                        is_of_jdk: names::is_of_jdk(class_name),
                    });
                }
            }
        }
        declared
    }

    /// Returns, for each class with instances, the fields with a rule; and the number of classes of which not all fields were
    /// examined.
    fn of_instances<'n>(
        &mut self,
        declared: &'n FxHashMap<ClassNumber, Vec<NamedField<'a>>>,
    ) -> (FxHashMap<ClassNumber, Vec<HeldField<'n>>>, u64) {
        let summary = self.objects.summary;
        let table = summary.class_table();
        // The nearest class with such a field, from a class upwards: chains of classes without are skipped.
        let nearest =
            table.derive(
                |class, above: Option<&Option<ClassNumber>>| {
                    if declared.contains_key(&class) { Some(class) } else { above.copied().flatten() }
                },
            );
        let nearest = |class: ClassNumber| nearest.get(class.0 as usize).copied().flatten();
        let (mut fields, mut count, mut cut) = (FxHashMap::<_, Vec<_>>::default(), 0, 0);
        for (number, _) in summary.numbered_classes().filter(|(_, class)| class.objects.get() > 0) {
            let (mut declaring, mut left) = (nearest(number), MAX_HELD.min(MAX_ALL - count));
            while let Some(class) = declaring {
                let below = table.bytes(number).saturating_sub(table.bytes(class));
                for of in declared.get(&class).into_iter().flatten().take(left) {
                    let rule = self.rule(number, class, of.field);
                    if let Some((rule, place)) = rule.zip(of.place.offset_by(below)) {
                        fields.entry(number).or_default().push(HeldField { place, rule, of });
                        count += 1;
                    }
                    left -= 1;
                }
                declaring = table.superclass(class).and_then(nearest);
                if left == 0 {
                    cut += u64::from(declaring.is_some());
                    break;
                }
            }
        }
        (fields, cut)
    }
}

/// Finds the values of the fields. Returns them, and the number of findings and of classes with further fields that were
/// omitted because of limits.
pub(super) fn find(
    objects: &ObjectReader<'_>,
    rules: &SecretRules,
    query: SecretQuery,
) -> (Vec<SecretCandidate>, u64) {
    let (summary, graph) = (objects.summary, objects.graph);
    let mut of = FieldRules { objects, rules, of_name: FxHashMap::default(), of_class: FxHashMap::default() };
    let declared = of.named_fields();
    let (fields, mut omitted) = of.of_instances(&declared);
    let mut found = Vec::new();
    let add = |found: &mut Vec<SecretCandidate>, omitted: &mut u64, one: Option<SecretCandidate>| match one {
        Some(_) if found.len() >= MAX_ROWS => *omitted += 1,
        one => found.extend(one),
    };
    for (number, class) in summary.numbered_classes() {
        for (name, kind, value) in summary.statics(class).take(MAX_FIELDS) {
            if kind != BasicType::Object {
                continue;
            }
            let rule = of.rule(number, number, name);
            let target = rule.and_then(|_| values::object_of(objects, value));
            if let (Some(rule), Some(target), Some(from)) = (rule, target, graph.class_object(number)) {
                let holder = format!("{}.{name}", summary.class_name(class));
                let one = candidate((objects, rules, query), rule, (from, target), &holder, false);
                add(&mut found, &mut omitted, one);
            }
        }
    }
    let classes: Vec<ClassNumber> = fields.keys().copied().collect();
    let set = ClassSet::from_classes(summary, &classes);
    if set.is_empty() {
        return (found, omitted);
    }
    let chunk = |chunk: Range<u32>| {
        let (mut found, mut omitted) = (Vec::new(), 0);
        for (first, wanted) in set.blocks(graph, ObjectIndex(chunk.start)..ObjectIndex(chunk.end)) {
            let mut held: Vec<(ObjectIndex, HeldField<'_>, ObjectIndex)> = Vec::new();
            objects.records_of_block(first, wanted, |object, record| {
                let Some(ObjectRecord::Instance(record)) = record else { return };
                let class = graph.objects.class(object);
                for field in class.and_then(|class| fields.get(&class)).into_iter().flatten() {
                    let value = objects.value_at(record.fields, field.place);
                    if let Some(target) = value.and_then(|value| objects.object(value)) {
                        held.push((object, *field, target));
                    }
                }
            });
            for (object, HeldField { rule, of, .. }, target) in held {
                let from = (object, target);
                let one = candidate((objects, rules, query), rule, from, &of.name, of.is_of_jdk);
                match one {
                    Some(_) if found.len() >= MAX_FOUND => omitted += 1,
                    one => found.extend(one),
                }
            }
        }
        (found, omitted)
    };
    let all = chunks(0..graph.objects.len(), CHUNK.next_multiple_of(BLOCK));
    for batch in all.chunks(rayon::current_num_threads().saturating_mul(BATCH).max(1)) {
        for (some, more) in parallel::map(batch, chunk) {
            omitted += more;
            some.into_iter().for_each(|one| add(&mut found, &mut omitted, Some(one)));
        }
    }
    (found, omitted)
}

/// Returns whether a value looks like a symmetric key: random bytes of a typical length.
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

/// Returns the value of a field as a candidate, if it may be a credential.
fn candidate(
    (objects, rules, query): (&ObjectReader<'_>, &SecretRules, SecretQuery),
    rule: usize,
    (from, target): (ObjectIndex, ObjectIndex),
    holder: &str,
    is_of_jdk: bool,
) -> Option<SecretCandidate> {
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
    Some(SecretCandidate {
        rule: Some(number),
        object,
        value: KnownValue::new(&value, query),
        from,
        holder: (!is_of_jdk).then(|| holder.to_owned()),
        is_general,
    })
}
