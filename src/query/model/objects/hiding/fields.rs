//! Numeric fields that keep their values because a result needs them, and the treatment of all others.

use std::collections::HashMap;
use std::sync::LazyLock;

use hprof_values::{BasicType, names};

use crate::framework_rules::numbers;
use crate::objects::bound_names::is_bound;

/// List of the fields that keep their values, with the commands that need them.
const LIST: &str = include_str!("kept_fields.txt");

/// A rule of the list: fields of a class that keep their values.
#[derive(Debug)]
pub struct KeptField {
    /// Class that declares the fields.
    pub class: &'static str,
    /// Names of fields.
    pub fields: Vec<&'static str>,
    /// Classes in whose instances the fields keep their values; all if empty.
    pub instances: Vec<&'static str>,
    /// Kind of the numbers that the rule keeps.
    pub kind: KeptKind,
    /// Commands whose results need the numbers.
    pub commands: &'static str,
    /// Part of the result that depends on the numbers.
    pub answer: &'static str,
}

/// Kind of the numbers that a rule of the list keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptKind {
    /// Numbers without which a result is wrong.
    Needed,
    /// Numbers without which a result is only less precise.
    Finer,
    /// Numbers in the counters to which the fields refer.
    Held,
}

/// All rules of the list, with indices.
#[derive(Debug, Default)]
pub struct FieldList {
    /// The rules.
    pub kept: Vec<KeptField>,
    /// Indices of the rules about the fields that a class declares.
    by_class: HashMap<&'static str, Vec<usize>>,
    /// Indices of the rules that apply only to instances of some classes.
    of_instances: Vec<usize>,
    /// Names of fields that are read only to show their values.
    pub shown: Vec<&'static str>,
}

impl FieldList {
    /// Returns the rules about fields that a class declares, with their numbers.
    fn of_class(&self, class: &str) -> impl Iterator<Item = (usize, &KeptField)> {
        let rules = self.by_class.get(class).into_iter().flatten();
        rules.filter_map(|number| Some((*number, self.kept.get(*number)?)))
    }
}

/// The list.
pub static FIELDS: LazyLock<FieldList> = LazyLock::new(|| {
    let mut list = FieldList::default();
    for line in LIST.lines() {
        let mut parts = line.split('|').map(str::trim);
        let mut words = parts.next().unwrap_or_default().split_whitespace();
        let kind = match words.next() {
            Some("stay") => KeptKind::Needed,
            Some("finer") => KeptKind::Finer,
            Some("held") => KeptKind::Held,
            Some("shown") => {
                list.shown.extend(words.next().into_iter().flat_map(|names| names.split(',')));
                continue;
            }
            _ => continue,
        };
        let (Some(class), Some(fields)) = (words.next(), words.next()) else { continue };
        let instances = if words.next() == Some("in") { words.next() } else { None };
        list.by_class.entry(class).or_default().push(list.kept.len());
        if instances.is_some() {
            list.of_instances.push(list.kept.len());
        }
        list.kept.push(KeptField {
            class,
            fields: fields.split(',').collect(),
            instances: instances.into_iter().flat_map(|names| names.split(',')).collect(),
            kind,
            commands: parts.next().unwrap_or_default(),
            answer: parts.next().unwrap_or_default(),
        });
    }
    list
});

/// Returns `true` if a number that the analyses read is the same in a redacted dump, or is read only to show it.
pub fn is_known(class: &str, field: &str) -> bool {
    let treatment = treatment(class, field, BasicType::Int);
    FIELDS.shown.contains(&field)
        || !matches!(treatment, FieldTreatment::Mapped | FieldTreatment::Hash | FieldTreatment::MarkedHash)
}

/// Treatment of the number in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldTreatment {
    /// A reference.
    Reference,
    /// A number that a result needs: it is kept.
    Stays,
    /// A number that only makes a result more precise.
    Finer,
    /// A number that is kept in instances of some classes ([`instance_rules`]); the number of the rule.
    InInstances(u8),
    /// A counter of `java.util.concurrent.atomic`: it is kept if a field of the list holds it.
    Counter,
    /// A boolean: `waste` reports whether it is equal in all objects.
    Boolean,
    /// A cached hash.
    Hash,
    /// A cached hash; negative ones are marks.
    MarkedHash,
    /// The value of a box.
    Boxed,
    /// Any other number.
    Mapped,
}

impl FieldTreatment {
    /// Returns the treatment in an instance of a class with these rules: [`Self::Stays`] or [`Self::Mapped`] if it depends on
    /// the class, or on `is_strict`, which maps numbers that only make results more precise.
    #[inline(always)]
    pub fn in_instance(self, rules: u32, is_strict: bool) -> Self {
        let stays = match self {
            Self::Finer | Self::Boolean => !is_strict,
            Self::InInstances(rule) => rules >> rule & 1 == 1 && !(is_strict && is_finer(rule)),
            _ => return self,
        };
        if stays { Self::Stays } else { Self::Mapped }
    }
}

/// Classes whose instances are boxes.
const BOXES: [&str; 8] = [
    "java.lang.Boolean",
    "java.lang.Byte",
    "java.lang.Character",
    "java.lang.Short",
    "java.lang.Integer",
    "java.lang.Long",
    "java.lang.Float",
    "java.lang.Double",
];
/// Classes of counters that a field may hold, and their fields.
const COUNTERS: [(&str, &str); 3] = [
    ("java.util.concurrent.atomic.AtomicInteger", "value"),
    ("java.util.concurrent.atomic.AtomicLong", "value"),
    ("java.util.concurrent.atomic.Striped64", "base"),
];

/// Returns whether the value of a field in an instance of a class describes only the structure of the heap.
pub(crate) fn is_structure(instance: &str, class: &str, field: &str, kind: BasicType) -> bool {
    match treatment(class, field, kind) {
        FieldTreatment::Reference
        | FieldTreatment::Stays
        | FieldTreatment::Finer
        | FieldTreatment::Boolean => true,
        FieldTreatment::InInstances(rule) => instance_rules(instance) >> rule & 1 == 1,
        _ => false,
    }
}

/// Returns the treatment of a field that a class declares.
pub fn treatment(class: &str, field: &str, kind: BasicType) -> FieldTreatment {
    if kind == BasicType::Object {
        return FieldTreatment::Reference;
    }
    let class = names::java_class_name(class);
    let mut rules = FIELDS.of_class(&class);
    let rule = rules.find(|(_, rule)| rule.kind != KeptKind::Held && rule.fields.contains(&field));
    if let Some((number, rule)) = rule {
        let of_instances = FIELDS.of_instances.iter().position(|known| *known == number);
        return match (of_instances.map(u8::try_from), rule.kind) {
            (Some(Ok(number)), _) => FieldTreatment::InInstances(number),
            (_, KeptKind::Finer) => FieldTreatment::Finer,
            _ => FieldTreatment::Stays,
        };
    }
    if numbers::framework(&class, field).is_some() || is_kept_bound(&class, field, kind) {
        FieldTreatment::Stays
    } else if kind == BasicType::Boolean {
        FieldTreatment::Boolean
    } else if COUNTERS.contains(&(&*class, field)) {
        FieldTreatment::Counter
    } else if BOXES.contains(&&*class) && field == "value" {
        FieldTreatment::Boxed
    } else if field == "hash" && class.starts_with("java.util.concurrent.ConcurrentHashMap") {
        FieldTreatment::MarkedHash
    } else if matches!(field, "hash" | "hashCode" | "h") {
        FieldTreatment::Hash
    } else {
        FieldTreatment::Mapped
    }
}

/// Returns whether a number is a bound by its name, in any class outside the JDK: verdicts depend on it.
fn is_kept_bound(class: &str, field: &str, kind: BasicType) -> bool {
    matches!(kind, BasicType::Int | BasicType::Long) && !names::is_of_jdk(class) && is_bound(field)
}

/// Returns the rules about instances of a class, one bit each, numbered as in [`FieldTreatment::InInstances`].
pub fn instance_rules(class: &str) -> u32 {
    static RULES: LazyLock<HashMap<&str, u32>> = LazyLock::new(|| {
        let mut rules = HashMap::new();
        let all = FIELDS.of_instances.iter().filter_map(|rule| FIELDS.kept.get(*rule));
        for (number, rule) in (0..u32::BITS).zip(all) {
            for class in &rule.instances {
                *rules.entry(*class).or_default() |= 1 << number;
            }
        }
        rules
    });
    RULES.get(&*names::java_class_name(class)).copied().unwrap_or_default()
}

/// Returns whether a rule only makes results more precise.
pub(crate) fn is_finer(rule: u8) -> bool {
    let rule = FIELDS.of_instances.get(usize::from(rule)).and_then(|rule| FIELDS.kept.get(*rule));
    rule.is_some_and(|rule| rule.kind == KeptKind::Finer)
}

/// Returns `true` if the counter to which a field refers is kept.
pub fn holds_counter(class: &str, field: &str) -> bool {
    let class = names::java_class_name(class);
    let mut rules = FIELDS.of_class(&class);
    rules.any(|(_, rule)| rule.kind == KeptKind::Held && rule.fields.contains(&field))
        || numbers::holds_counter(&class, field)
}

/// Use of a number that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberNeed {
    /// Commands that use the number.
    pub commands: &'static str,
    /// Part of the result that depends on the number, or the framework whose rules compute with it.
    pub answer: String,
}

/// Returns the use of a number that is kept.
pub fn need(class: &str, field: &str, kind: BasicType) -> Option<NumberNeed> {
    let class = names::java_class_name(class);
    let of = |commands, answer: &str| NumberNeed { commands, answer: answer.to_owned() };
    let mut rules = FIELDS.of_class(&class);
    let rule = rules.find(|(_, rule)| rule.kind != KeptKind::Held && rule.fields.contains(&field));
    if let Some((_, rule)) = rule {
        return Some(of(rule.commands, rule.answer));
    }
    if let Some(framework) = numbers::framework(&class, field) {
        return Some(of("leaks", &format!("rules of {framework}")));
    }
    if is_kept_bound(&class, field, kind) {
        return Some(of("leaks", "fields named like a bound"));
    }
    match treatment(&class, field, kind) {
        FieldTreatment::Counter => {
            Some(of("collections, leaks", "sizes and counts stored in another object"))
        }
        FieldTreatment::Boolean => Some(of("waste", "booleans with the same value in nearly all objects")),
        FieldTreatment::MarkedHash => Some(of("collections", "marks of hash table nodes")),
        _ => None,
    }
}

/// Returns the results that are less precise without the numbers that rules of [`KeptKind::Finer`] keep.
pub fn finer_answers() -> Vec<String> {
    let finer = FIELDS.kept.iter().filter(|rule| rule.kind == KeptKind::Finer);
    let mut answers: Vec<String> = finer.map(|rule| format!("{}: {}", rule.commands, rule.answer)).collect();
    answers.push("waste: booleans with the same value in nearly all objects".to_owned());
    answers.sort_unstable();
    answers.dedup();
    answers
}
