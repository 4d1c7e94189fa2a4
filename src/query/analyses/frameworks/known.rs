//! Rules that apply to the classes of a dump, and the descriptions of its objects.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;

use super::fact::FrameworkFact;
use super::rules::{FrameworkRule, FrameworkSentence, FrameworkVerdict, Frameworks, Naming, THIS};
use super::template::Template;
use crate::oql::{Bindings, BoundExpression, BoundValue, Evaluator};
use hprof_model::objects::reader::ObjectReader;

/// Maximum number of elements of a list that an expression reads.
const MAX_ELEMENTS: usize = 1 << 18;
/// Maximum number of objects that are listed for a rule.
const MAX_INSTANCES: usize = 1000;
/// Maximum number of objects that are listed for a rule whose objects share a name.
const MAX_OF_MANY: usize = 1 << 16;
/// Maximum number of objects whose retained size a sentence explains.
const MAX_RETAINED: usize = MAX_ELEMENTS;
/// Maximum number of objects of a rule whose entries are examined.
const MAX_WITH_ENTRIES: usize = 1 << 13;
/// Maximum number of elements of a list that are shown in a fact.
const MAX_LISTED: usize = 5;
/// Maximum number of characters of a text in a fact.
const MAX_TEXT: usize = 1000;

/// Number of a framework rule that applies to a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameworkRuleId(u32);

/// Description of an object by the rule of its class.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameworkDescription {
    /// Name of the framework.
    pub framework: Arc<str>,
    /// Class of the rule.
    pub class: String,
    /// Name of the object.
    pub called: Option<String>,
    /// Names and values of the facts, in the order of the rule.
    pub facts: Vec<(String, FrameworkFact)>,
    /// Sentence of the rule whose condition holds.
    pub text: Option<String>,
    /// Verdict of that sentence.
    pub verdict: Option<FrameworkVerdict>,
    /// Objects whose combined retained size the sentence explains: the object itself, unless the rule specifies others.
    pub retains: Vec<ObjectIndex>,
}

impl FrameworkDescription {
    /// Returns whether the object holds content that the program is meant to hold.
    pub fn is_content(&self) -> bool {
        matches!(self.verdict, Some(FrameworkVerdict::Content | FrameworkVerdict::Healthy))
    }
}

/// Framework rules that apply to the classes of a dump.
#[derive(Debug)]
pub struct KnownFrameworks<'o, 'a> {
    evaluator: Evaluator<'o, 'a>,
    rules: Vec<Arc<FrameworkRule>>,
    /// Rule by class number; empty if no rules apply.
    of_class: Vec<Option<FrameworkRuleId>>,
    passed: Vec<bool>,
}

/// Facts about an object, each of which is evaluated on first use.
struct Facts<'k, 'o, 'a> {
    known: &'k KnownFrameworks<'o, 'a>,
    rule: &'k FrameworkRule,
    object: ObjectIndex,
    values: Vec<OnceCell<BoundValue>>,
}

impl<'o, 'a> KnownFrameworks<'o, 'a> {
    /// Selects the rules whose classes are in the dump.
    pub fn new(dump: &'o Dump<'a>, frameworks: &Frameworks) -> Self {
        let summary = dump.summary;
        let mut wanted: FxHashMap<&str, Vec<&Arc<FrameworkRule>>> = FxHashMap::default();
        for rule in &frameworks.rules {
            wanted.entry(&rule.class).or_default().push(rule);
        }
        let names: FxHashSet<&str> = frameworks.passed.iter().map(|name| &**name).collect();
        let beginnings: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix('*')).collect();
        let is_passed =
            |name: &str| names.contains(name) || beginnings.iter().any(|start| name.starts_with(start));
        let mut rules: Vec<Arc<FrameworkRule>> = Vec::new();
        let (mut own, mut passed) = (Vec::new(), Vec::new());
        for (number, class) in summary.numbered_classes() {
            let name = summary.class_name(class);
            passed.push(is_passed(name));
            let rule =
                wanted.get(name).and_then(|of| of.iter().find(|rule| applies(&dump.objects, number, rule)));
            own.push(rule.map(|rule| {
                let at = rules.iter().position(|known| Arc::ptr_eq(known, rule)).unwrap_or_else(|| {
                    rules.push(Arc::clone(rule));
                    rules.len() - 1
                });
                FrameworkRuleId(u32::try_from(at).unwrap_or(u32::MAX))
            }));
        }
        summary.class_table().add_subclasses(&mut passed);
        let of_class = if rules.is_empty() { Vec::new() } else { summary.class_table().inherit(&own) };
        let evaluator = Evaluator::new(dump).with_max_elements(MAX_ELEMENTS);
        Self { evaluator, rules, of_class, passed }
    }

    /// Returns the rule for the instances of a class.
    pub fn rule_of(&self, class: ClassNumber) -> Option<FrameworkRuleId> {
        self.of_class.get(class.0 as usize).copied().flatten()
    }

    /// Returns `true` if instances of a class are only parts of other objects: nodes, segments, wrappers.
    pub fn is_passed(&self, class: ClassNumber) -> bool {
        self.passed.get(class.0 as usize).copied().unwrap_or(false)
    }

    /// Returns the reachable objects with a rule that retain at least `least` bytes (together, if many share the rule's name),
    /// or whose rule can report a leak or explains other objects. Of each rule, the 1,000 objects that retain the most are
    /// returned (65,536 if many share the rule's name), in address order.
    pub fn instances(&self, least: u64) -> Vec<ObjectIndex> {
        let summary = self.evaluator.summary();
        let mut classes = summary.numbered_classes();
        if !classes.any(|(number, row)| row.objects.get() > 0 && self.rule_of(number).is_some()) {
            return Vec::new();
        }
        let marks: Vec<bool> = self.of_class.iter().map(Option::is_some).collect();
        let graph = self.evaluator.graph();
        let mut of_rule: Vec<Vec<(Reverse<u64>, ObjectIndex)>> = vec![Vec::new(); self.rules.len()];
        let mut sums = vec![0u64; self.rules.len()];
        let mut with_entries = vec![MAX_WITH_ENTRIES; self.rules.len()];
        for object in self.evaluator.objects_of_classes(marks) {
            let Some(bytes) = graph.tree.retained_bytes_of(object) else { continue };
            let Some((id, rule)) = self.rule(object) else { continue };
            let mut bytes = bytes;
            if bytes < least
                && rule.entries.is_some()
                && let Some(left @ 1..) = with_entries.get_mut(id.0 as usize)
            {
                *left -= 1;
                let entries = self.entries(object).and_then(|(of, _)| graph.tree.retained_bytes_of(of));
                bytes = bytes.max(entries.unwrap_or(0));
            }
            if (bytes >= least || rule.is_of_many || rule.is_always_described())
                && let Some(found) = of_rule.get_mut(id.0 as usize)
                && let Some(sum) = sums.get_mut(id.0 as usize)
            {
                *sum = sum.saturating_add(bytes);
                found.push((Reverse(bytes), object));
                // Limits memory to twice the number of objects returned.
                let most = rule.max_instances();
                if found.len() >= 2 * most {
                    found.sort_unstable();
                    found.truncate(most);
                }
            }
        }
        let mut all: Vec<ObjectIndex> = Vec::new();
        for ((mut found, sum), rule) in of_rule.into_iter().zip(sums).zip(&self.rules) {
            if sum >= least || rule.is_always_described() {
                found.sort_unstable();
                all.extend(found.into_iter().take(rule.max_instances()).map(|(_, object)| object));
            }
        }
        all.sort_unstable();
        all
    }

    /// Returns the name of an object.
    pub fn name_of(&self, object: ObjectIndex) -> Option<String> {
        let (_, rule) = self.rule(object)?;
        Some(self.facts(object, rule).fill(rule.called.as_ref()?))
    }

    /// Returns whether an object is described no matter how little it retains.
    pub fn is_always_described(&self, object: ObjectIndex) -> bool {
        self.rule(object).is_some_and(|(_, rule)| rule.is_always_described())
    }

    /// Returns whether the rule of an object has a fact with this name.
    pub(crate) fn has_fact(&self, object: ObjectIndex, name: &str) -> bool {
        self.rule(object).is_some_and(|(_, rule)| rule.facts.iter().any(|(fact, _)| fact == name))
    }

    /// Returns whether the condition of one of the sentences of an object's rule holds.
    pub fn has_sentence(&self, object: ObjectIndex) -> bool {
        self.rule(object).is_some_and(|(_, rule)| self.sentence(rule, &self.facts(object, rule)).is_some())
    }

    fn sentence<'k>(
        &self,
        rule: &'k FrameworkRule,
        facts: &Facts<'_, 'o, 'a>,
    ) -> Option<&'k FrameworkSentence> {
        let holds = |when: &BoundExpression| self.evaluator.evaluate(when, facts).is_true();
        rule.says.iter().find(|says| says.when.as_ref().is_none_or(holds))
    }

    /// Returns the meaning of the names that an object's rule gives.
    pub fn naming(&self, object: ObjectIndex) -> Naming {
        match self.rule(object).and_then(|(_, rule)| Some((rule, rule.called.as_ref()?))) {
            Some((rule, _)) if rule.is_of_many => Naming::Many,
            Some((_, called)) if called.source().contains('{') => Naming::One,
            _ => Naming::Generic,
        }
    }

    /// Returns the collection that contains the entries of an object; and the word for an entry, if the keys of the collection
    /// are names.
    pub fn entries(&self, object: ObjectIndex) -> Option<(ObjectIndex, Option<&str>)> {
        let (_, rule) = self.rule(object)?;
        let value = self.evaluator.evaluate(rule.entries.as_ref()?, &self.facts(object, rule));
        Some((self.evaluator.object_of(&value)?, rule.named_entries.as_deref()))
    }

    /// Returns the description of an object by its rule.
    pub fn describe(&self, object: ObjectIndex) -> Option<FrameworkDescription> {
        let (_, rule) = self.rule(object)?;
        let facts = self.facts(object, rule);
        let says = self.sentence(rule, &facts);
        let retains = says.and_then(|says| says.retains.as_ref()).map(|retains| {
            let mut objects =
                self.evaluator.objects_in(&self.evaluator.evaluate(retains, &facts), MAX_RETAINED);
            objects.sort_unstable();
            objects.dedup();
            objects
        });
        Some(FrameworkDescription {
            framework: rule.framework.clone(),
            class: rule.class.clone(),
            called: rule.called.as_ref().map(|called| facts.fill(called)),
            facts: rule.facts.iter().map(|(name, _)| (name.clone(), facts.fact(name))).collect(),
            text: says.map(|says| facts.fill(&says.text)),
            verdict: says.and_then(|says| says.verdict),
            retains: retains.filter(|objects| !objects.is_empty()).unwrap_or_else(|| vec![object]),
        })
    }

    fn rule(&self, object: ObjectIndex) -> Option<(FrameworkRuleId, &FrameworkRule)> {
        let id = self.rule_of(self.evaluator.graph().objects.class(object)?)?;
        Some((id, self.rules.get(id.0 as usize)?))
    }

    fn facts<'k>(&'k self, object: ObjectIndex, rule: &'k FrameworkRule) -> Facts<'k, 'o, 'a> {
        Facts { known: self, rule, object, values: vec![OnceCell::new(); rule.facts.len()] }
    }

    /// Converts a value to a fact.
    fn fact(&self, value: &BoundValue) -> FrameworkFact {
        let text = |value: &BoundValue| {
            let found = self.evaluator.text_of(value);
            found.or_else(|| self.evaluator.class_name_of(value)).map(cut)
        };
        let number = value.truth().map(FrameworkFact::Bool);
        let number = number.or_else(|| value.integer().map(FrameworkFact::Whole));
        if let Some(number) = number.or_else(|| value.double().map(FrameworkFact::Double)) {
            return number;
        }
        let Some(mut items) = self.evaluator.items(value, MAX_LISTED + 1) else {
            return match text(value) {
                Some(text) if self.evaluator.is_hidden_text(&text) => FrameworkFact::Hidden,
                text => text.map_or(FrameworkFact::Null, FrameworkFact::Text),
            };
        };
        let is_cut = items.len() > MAX_LISTED;
        items.truncate(MAX_LISTED);
        let mut texts: Vec<String> = items.iter().filter_map(text).collect();
        texts.extend(is_cut.then(|| "…".to_owned()));
        FrameworkFact::Text(cut(texts.join(", ")))
    }
}

impl FrameworkRule {
    fn max_instances(&self) -> usize {
        if self.is_of_many { MAX_OF_MANY } else { MAX_INSTANCES }
    }
}

/// Returns `true` if a class has the fields that a rule requires.
fn applies(objects: &ObjectReader<'_>, class: ClassNumber, rule: &FrameworkRule) -> bool {
    rule.fields.iter().all(|field| objects.slots(class).any(|slot| slot.name == field))
}

fn cut(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(MAX_TEXT) {
        text.truncate(at);
    }
    text
}

impl Facts<'_, '_, '_> {
    fn fact(&self, name: &str) -> FrameworkFact {
        self.binding(name).map_or(FrameworkFact::Null, |value| self.known.fact(&value))
    }

    fn fill(&self, template: &Template) -> String {
        template.fill(&mut |name| self.fact(name))
    }
}

impl Bindings for Facts<'_, '_, '_> {
    fn binding(&self, name: &str) -> Option<BoundValue> {
        if name == THIS {
            return Some(BoundValue::from_object(self.object));
        }
        // Expressions use only facts before their own, so no fact depends on itself.
        let at = self.rule.facts.iter().position(|(known, _)| known == name)?;
        let (_, expression) = self.rule.facts.get(at)?;
        Some(self.values.get(at)?.get_or_init(|| self.known.evaluator.evaluate(expression, self)).clone())
    }
}
