//! Credentials in a heap, recognized by the form of texts and by their holders.
//!
//! One pass over the arrays of bytes and chars searches all texts for the keywords of the rules, and only around
//! these for their expressions. The same pass finds names, such as `spring.datasource.password`, whose values are
//! looked up through the referrers of the names. A pass over the instances of known classes, and of those with fields
//! of such names, reads their fields. `docs/secrets.md` describes the rules.

mod arrays;
mod from_name;
mod held;
mod values;

use std::collections::hash_map::Entry;

use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};

use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_values::{ObjectId, names};

use crate::waste;
use hprof_base::sorting::SortRows;
use hprof_model::objects::reader::ObjectReader;
use hprof_model::strings::contents::random_seed;

use hprof_model::secret_rules::rules::is_like;
pub use hprof_model::secret_rules::rules::{SecretLevel, SecretRule, SecretRules};
use hprof_model::secret_rules::search::{TextFinding, TextSearch};
use values::{HeldValue, KnownValue};

/// Maximum number of referrers of an array that are examined.
const MAX_REFERRERS: usize = 64;

/// Maximum number of rows, and of candidates from fields and names.
const MAX_ROWS: usize = 1 << 16;

/// Query for credentials.
#[derive(Debug, Clone, Copy)]
pub struct SecretQuery {
    /// `true` to return the values. Otherwise they are in memory only while a rule examines them.
    pub with_values: bool,
    /// Seed of the hashes of values; rows of two dumps can be compared if both have the same seed.
    pub(crate) seed: u64,
}

impl SecretQuery {
    /// Creates a query.
    pub fn new(with_values: bool) -> Self {
        Self { with_values, seed: random_seed() }
    }
}

/// A credential that was found in a heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRow {
    /// Number of the rule ([`SecretRules::rules`]).
    pub rule: usize,
    /// ID of the rule.
    pub id: String,
    /// Object that contains the text: a String, a builder or an array. Of objects with equal values, a reachable one is chosen,
    /// and among these the one with the lowest ID.
    pub object: ObjectId,
    /// Class of the object.
    pub class: String,
    /// Class and field of the program that hold the object, skipping arrays and collections of the JDK. `None` if only a
    /// thread's stack or another GC root holds it, or if nothing does.
    pub holder: Option<String>,
    /// Number of objects with an equal value.
    pub copies: u64,
    /// `true` if the object is reachable.
    pub is_reachable: bool,
    /// The value with its middle hidden: beginning and end if it is long enough.
    pub masked: String,
    /// Number of characters of the value; for a key, number of bytes.
    pub length: u64,
    /// The value, if requested; a key is in hexadecimal digits.
    pub value: Option<String>,
    /// Hash of the value.
    pub hash: u64,
    /// Offset of the value in the text.
    start: u32,
}

/// Result of the search for credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// Credentials, by rule and object.
    pub rows: Vec<SecretRow>,
    /// Number of findings beyond the limits, which only an unusual dump exceeds.
    pub omitted: u64,
}

/// A value that was found by a rule about fields or names.
#[derive(Debug)]
struct SecretCandidate {
    /// Number of the rule; `None` if it depends on the holder.
    rule: Option<usize>,
    /// Object that has the value.
    object: ObjectIndex,
    value: KnownValue,
    /// Object whose holder is reported: an entry of a map, or the object with the field.
    from: ObjectIndex,
    /// Class and field, if they belong to the program.
    holder: Option<String>,
    /// `true` if only a name indicates that the value is secret.
    is_general: bool,
}

/// Value of a finding, by how it was found.
#[derive(Debug)]
enum Source {
    Text(TextFinding),
    Held(KnownValue),
}

/// Equal values that one rule found, with the one that is shown.
#[derive(Debug)]
struct Group {
    rule: usize,
    /// Number of distinct objects that have the value.
    copies: u64,
    /// `true` if the shown object is unreachable.
    is_unreachable: bool,
    object: ObjectIndex,
    from: ObjectIndex,
    holder: Option<String>,
    source: Source,
}

/// Finds credentials.
pub fn secrets(dump: &Dump<'_>, rules: &SecretRules, query: SecretQuery) -> Secrets {
    let objects = dump.objects;
    let (held, mut omitted) = held::find(&objects, rules, query);
    let mut all = Groups {
        objects,
        query,
        is_key: rules.texts.iter().map(|rule| rule.is_key).collect(),
        groups: FxHashMap::default(),
        seen: FxHashSet::default(),
        of_array: (None, FxHashSet::default()),
        with_secrets: RoaringBitmap::new(),
        omitted: 0,
    };
    // A value found by its class is not reported again because of its form, nor because of a name.
    let (general, explicit): (Vec<_>, Vec<_>) = held.into_iter().partition(|held| held.is_general);
    let held: FxHashSet<(u32, u64)> = explicit.iter().map(|held| (held.object.0, held.value.hash)).collect();
    let search = TextSearch::new(rules, query.seed);
    let texts = arrays::read(&objects, &search, |finding| all.add_text(finding, &held));
    omitted += texts.omitted;
    explicit.into_iter().for_each(|candidate| all.add_held(candidate));
    let known = all.with_secrets.clone();
    let is_new = |candidate: &SecretCandidate| !known.contains(candidate.object.0);
    general.into_iter().filter(is_new).for_each(|candidate| all.add_held(candidate));
    let (mut named, unnamed) = from_name::find(&objects, rules, query, &texts.names);
    omitted += unnamed;
    named.retain(is_new);
    // Finds the holders of all values at once.
    let mut groups: Vec<&mut Group> =
        all.groups.values_mut().filter(|group| group.holder.is_none()).collect();
    let from: Vec<ObjectIndex> =
        groups.iter().map(|group| group.from).chain(named.iter().map(|named| named.from)).collect();
    let mut holders = waste::held_by(dump, &from).into_iter();
    // Fields of the JDK are not informative, except those in rules.
    let is_known = |pattern: &String, held: &str| pattern != "*" && is_like(pattern, held);
    let says = |held: &String| {
        !names::is_of_jdk(held)
            || rules.named.iter().any(|rule| rule.holders.iter().any(|pattern| is_known(pattern, held)))
    };
    for (group, holder) in groups.iter_mut().zip(holders.by_ref()) {
        group.holder = holder.filter(says);
    }
    for (mut candidate, holder) in named.into_iter().zip(holders) {
        let held = holder.as_deref().unwrap_or_default();
        let is_it = |pattern: &String| is_like(pattern, held);
        let number = rules.named.iter().position(|rule| rule.holders.iter().any(is_it));
        let Some(number) = number else { continue };
        candidate.rule = Some(rules.texts.len() + rules.held.len() + number);
        candidate.holder = holder.filter(says);
        all.add_held(candidate);
    }
    let ids: Vec<&str> = rules.rules().map(|rule| rule.id.as_str()).collect();
    let mut rows: Vec<SecretRow> = all.groups.values().filter_map(|group| all.row(group, &ids)).collect();
    rows.sort_rows_by_key(|row| (row.id.clone(), row.object, row.length, row.start));
    Secrets { rows, omitted: omitted + all.omitted }
}

/// Findings, grouped by rule and value.
struct Groups<'a> {
    objects: ObjectReader<'a>,
    query: SecretQuery,
    /// For each rule about texts: `true` if it finds keys.
    is_key: Vec<bool>,
    groups: FxHashMap<(usize, u64), Group>,
    /// Rules, values and objects of candidates that are counted.
    seen: FxHashSet<(usize, u64, u32)>,
    /// The array examined last, and rules and values already counted for it.
    of_array: (Option<u32>, FxHashSet<(usize, u64)>),
    /// Objects with a secret.
    with_secrets: RoaringBitmap,
    /// Number of findings beyond [`MAX_ROWS`].
    omitted: u64,
}

impl Groups<'_> {
    /// Adds a text finding, unless a rule about a class found the same value in the object (`held`).
    fn add_text(&mut self, finding: TextFinding, held: &FxHashSet<(u32, u64)>) {
        let object = self.owner(ObjectIndex(finding.search_array));
        if held.contains(&(object.0, finding.hash)) {
            return;
        }
        let key = (usize::from(finding.rule), finding.hash);
        // An array has one owner, and its findings are consecutive.
        if self.of_array.0.replace(finding.search_array) != Some(finding.search_array) {
            self.of_array.1.clear();
        }
        let is_first = self.of_array.1.insert(key);
        self.add((key, is_first), (object, object), None, |_| Source::Text(finding));
    }

    fn add_held(&mut self, candidate: SecretCandidate) {
        let SecretCandidate { rule: Some(rule), object, value, from, holder, .. } = candidate else { return };
        let key = (rule, value.hash);
        let is_first = self.seen.insert((rule, value.hash, object.0));
        self.add((key, is_first), (object, from), holder, |_| Source::Held(value));
    }

    fn add(
        &mut self,
        (key, is_first): ((usize, u64), bool),
        (object, from): (ObjectIndex, ObjectIndex),
        holder: Option<String>,
        source: impl FnOnce(()) -> Source,
    ) {
        self.with_secrets.insert(object.0);
        let (rule, is_full) = (key.0, self.groups.len() >= MAX_ROWS);
        let is_unreachable = self.objects.graph.tree.reachable_position(object).is_none();
        let new = |source| Group { rule, copies: 1, is_unreachable, object, from, holder, source };
        match self.groups.entry(key) {
            Entry::Vacant(_) if is_full => self.omitted += 1,
            Entry::Vacant(place) => {
                place.insert(new(source(())));
            }
            Entry::Occupied(mut place) => {
                let group = place.get_mut();
                let copies = group.copies + u64::from(is_first);
                let order = (is_unreachable, object.0, from.0);
                if order < (group.is_unreachable, group.object.0, group.from.0) {
                    *group = new(source(()));
                }
                group.copies = copies;
            }
        }
    }

    /// Returns the String or builder to which an array belongs; the array itself if there is none.
    fn owner(&self, array: ObjectIndex) -> ObjectIndex {
        let graph = self.objects.graph;
        let is_text = |object: &ObjectIndex| {
            let class = graph.objects.class(*object).and_then(|class| self.objects.summary.class(class));
            class.is_some_and(|class| {
                values::TEXT_CLASSES.into_iter().any(|name| self.objects.summary.is_named(class, name))
            })
        };
        let texts = graph.referrers(array).take(MAX_REFERRERS).filter(is_text);
        texts.min_by_key(|text| (graph.tree.reachable_position(*text).is_none(), text.0)).unwrap_or(array)
    }

    /// Returns the row of a group; `None` only if the dump was changed after it was read.
    fn row(&self, group: &Group, ids: &[&str]) -> Option<SecretRow> {
        let (summary, graph) = (self.objects.summary, self.objects.graph);
        let text;
        let (value, start) = match &group.source {
            Source::Text(finding) => {
                text = self.read_value(finding, group.rule)?;
                (&text, finding.start)
            }
            Source::Held(value) => (value, 0),
        };
        let class = graph.objects.class(group.object).and_then(|class| summary.class(class));
        Some(SecretRow {
            rule: group.rule,
            id: ids.get(group.rule).copied().unwrap_or_default().to_owned(),
            object: graph.objects.addresses.id_of(group.object)?,
            class: class.map_or("", |class| summary.class_name(class)).to_owned(),
            holder: group.holder.clone(),
            copies: group.copies,
            is_reachable: !group.is_unreachable,
            masked: value.masked.clone(),
            length: value.length as u64,
            value: value.shown.clone(),
            hash: value.hash,
            start,
        })
    }

    /// Reads the value of a finding again.
    fn read_value(&self, finding: &TextFinding, rule: usize) -> Option<KnownValue> {
        let (_, elements) = self.objects.primitives(ObjectIndex(finding.search_array))?;
        let (start, end) = finding.range();
        let is_key = self.is_key.get(rule) == Some(&true);
        let value = match elements.get(start..end).filter(|_| is_key) {
            Some(bytes) => HeldValue::Key(bytes.to_vec()),
            None => HeldValue::Text(finding.view.text(elements, finding.range())),
        };
        // The hash of the finding: that of the expression's text.
        Some(KnownValue { hash: finding.hash, ..KnownValue::new(&value, self.query) })
    }
}
