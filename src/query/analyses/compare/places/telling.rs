//! Selection of informative map keys: the others are omitted, and everything under them is one place.
//!
//! A row for each key is useful where keys are few and distinguish things: the caches of a registry, by name. For sixty
//! sessions by ID, each key has a sixtieth of what the map holds, and no row has the whole. The selection is made per
//! place, for all its maps in all dumps together, so it is the same in each dump.
//!
//! Places are processed from the top down, as merging maps can merge the maps in them.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::aligned::{AlignedPlaces, PlaceFigures};
use super::growth::is_most;
use super::keyed::{MAX_KEYS, min_keyed_bytes};
use super::labels::{PlaceLabel, Pool, Via};
use hprof_base::naming::stable_names;
use hprof_base::sorting::SortRows;

/// Maximum number of names shown regardless of the size under them.
const HANDFUL: usize = 8;
/// Maximum number of visits of places, as a multiple of their number. Places nested in similar ones are found one after
/// another; at the limit, the remaining ones stay at their place.
const MAX_VISITS: usize = 16;
/// Maximum number of keys that are shown because most of the size or the change is under them.
const FEW: usize = 3;

/// Keys of the maps at one place.
#[derive(Default)]
struct PlaceKeys {
    /// By key and dump: number of objects and their retained size.
    of: FxHashMap<Arc<str>, Vec<(u64, u64)>>,
    /// By dump: retained size of the values whose keys were not read.
    others: Vec<u64>,
}

/// Places that are merged into one.
struct MergedPlace {
    parent: Option<usize>,
    label: u32,
    members: Vec<u32>,
}

impl AlignedPlaces {
    /// Returns the places without uninformative keys, and for each place its new index; `None` if there are no keys.
    pub fn telling(&self) -> Option<(Self, Vec<u32>)> {
        if !self.labels.iter().any(|label| matches!(label.via, Via::ValueOf(_))) {
            return None;
        }
        let mut labels: Pool<PlaceLabel> = Pool::new();
        for label in &self.labels {
            // Each label occurs once, and its index does not change.
            labels.number(label.clone());
        }
        let mut without_key = |label: &PlaceLabel| match label.via {
            Via::ValueOf(_) => labels.number(PlaceLabel { via: Via::Value, ..label.clone() }),
            _ => labels.number(label.clone()),
        };
        let unkeyed: Vec<u32> = self.labels.iter().map(&mut without_key).collect();
        let groups = PlaceMerger::new(self, &unkeyed, &labels.all);
        Some(groups.into_aligned_places(labels.all))
    }

    /// Returns, for each dump, the smallest retained size of a map whose keys are read.
    fn min_keyed_bytes(&self) -> Vec<u64> {
        self.reachable_bytes.iter().map(|bytes| min_keyed_bytes(*bytes)).collect()
    }

    /// Returns the keys of the values at places below one; `None` if none has a key.
    fn keys_of(&self, below: &[u32]) -> Option<PlaceKeys> {
        let has_key = |place: &u32| matches!(self.label(*place).via, Via::ValueOf(_));
        if !below.iter().any(has_key) {
            return None;
        }
        let mut keys = PlaceKeys { others: vec![0; self.dumps()], ..PlaceKeys::default() };
        for place in below {
            let figures = (0..self.dumps()).map(|dump| self.figures(dump, *place));
            match &self.label(*place).via {
                Via::ValueOf(key) => {
                    let of = keys.of.entry(key.clone()).or_insert_with(|| vec![(0, 0); self.dumps()]);
                    for (sum, figures) in of.iter_mut().zip(figures) {
                        sum.0 = sum.0.saturating_add(figures.objects);
                        sum.1 = sum.1.saturating_add(figures.retained_bytes);
                    }
                }
                Via::Value => {
                    for (sum, figures) in keys.others.iter_mut().zip(figures) {
                        *sum = sum.saturating_add(figures.retained_bytes);
                    }
                }
                _ => {}
            }
        }
        Some(keys)
    }
}

/// State of merging places, from the top down.
struct PlaceMerger<'a> {
    aligned: &'a AlignedPlaces,
    /// By label number: number of the label without its key.
    unkeyed: &'a [u32],
    /// By label number: `true` if it names only JDK classes.
    is_of_jdk: Vec<bool>,
    /// Groups of merged places; parents come before their children.
    all: Vec<MergedPlace>,
    /// By divided group: number of groups that existed before it was divided.
    before: Vec<usize>,
    /// Index of the group of each place.
    group_of: Vec<usize>,
    /// Places merged into one above them because they are nested in a similar one.
    nested: FxHashSet<u32>,
    /// By place: `true` if some objects below it belong to a place above it.
    is_nesting: Vec<bool>,
}

impl<'a> PlaceMerger<'a> {
    fn new(aligned: &'a AlignedPlaces, unkeyed: &'a [u32], labels: &[PlaceLabel]) -> Self {
        let mut groups = Self {
            aligned,
            unkeyed,
            is_of_jdk: labels.iter().map(PlaceLabel::is_of_jdk).collect(),
            all: Vec::new(),
            before: Vec::new(),
            group_of: vec![usize::MAX; aligned.parents.len()],
            nested: FxHashSet::default(),
            is_nesting: aligned.is_nesting.clone(),
        };
        for place in &aligned.top {
            let group = groups.all.len();
            groups.all.push(MergedPlace {
                parent: None,
                label: groups.label_of(*place),
                members: Vec::new(),
            });
            groups.put(*place, group);
        }
        let mut left = aligned.parents.len().saturating_mul(MAX_VISITS);
        let mut next = 0;
        while next < groups.all.len() {
            let below = groups.children(next);
            left = left.saturating_sub(below.len());
            let below = groups.unmerged_places(below);
            let above = groups.nested_in(next, &below).filter(|_| left > 0);
            next = match above {
                Some((above, places)) => groups.nest(above, places),
                None => groups.divide(next, below),
            };
        }
        groups
    }

    fn label_of(&self, place: u32) -> u32 {
        self.aligned.label_of.get(place as usize).copied().unwrap_or(u32::MAX)
    }

    fn put(&mut self, place: u32, group: usize) {
        if let (Some(of), Some(to)) = (self.group_of.get_mut(place as usize), self.all.get_mut(group)) {
            *of = group;
            to.members.push(place);
        }
    }

    /// Returns the places immediately below the places of a group.
    fn children(&self, group: usize) -> Vec<u32> {
        let members = self.all.get(group).map_or(&[][..], |group| &group.members);
        members.iter().flat_map(|place| self.aligned.children(*place)).copied().collect()
    }

    /// Returns the given places that are not merged into a place above, with their label numbers without uninformative keys.
    fn unmerged_places(&self, below: Vec<u32>) -> Vec<(u32, u32)> {
        let told = self.aligned.keys_of(&below).map(|keys| keys.telling(&self.aligned.min_keyed_bytes()));
        let label = |place: u32| match (&self.aligned.label(place).via, &told) {
            (Via::ValueOf(key), Some(told)) if !told.contains(key) => {
                self.unkeyed.get(self.label_of(place) as usize).copied().unwrap_or(u32::MAX)
            }
            _ => self.label_of(place),
        };
        let below = below.into_iter().filter(|place| !self.nested.contains(place));
        below.map(|place| (place, label(place))).collect()
    }

    /// Returns the places without keys that are nested in a group above, and the highest such group.
    fn nested_in(&self, group: usize, below: &[(u32, u32)]) -> Option<(usize, Vec<u32>)> {
        let lost = below.iter().filter(|(place, label)| *label != self.label_of(*place));
        let nested: Vec<(usize, u32)> =
            lost.filter_map(|(place, label)| Some((self.same_label_above(group, *label)?, *place))).collect();
        let above = nested.iter().map(|(above, _)| *above).min()?;
        let places = nested.into_iter().filter(|(at, _)| *at == above).map(|(_, place)| place);
        Some((above, places.collect()))
    }

    /// Returns the group above with the same label, by the rule that `tree` uses.
    fn same_label_above(&self, group: usize, label: u32) -> Option<usize> {
        let is_of_jdk = |label: u32| self.is_of_jdk.get(label as usize) == Some(&true);
        let mut at = Some(group);
        let mut between_is_of_jdk = true;
        while let Some((number, above)) = at.and_then(|at| Some((at, self.all.get(at)?))) {
            if above.label == label && above.parent.is_some() {
                return (!is_of_jdk(label) || between_is_of_jdk).then_some(number);
            }
            between_is_of_jdk &= is_of_jdk(above.label);
            at = above.parent;
        }
        None
    }

    /// Moves places to a group above them, which must then be divided again.
    fn nest(&mut self, above: usize, places: Vec<u32>) -> usize {
        for place in places {
            let mut at = self.parent(place);
            while let Some(between) = at.filter(|at| self.group(*at) != above) {
                if let Some(is_nesting) = self.is_nesting.get_mut(between as usize) {
                    *is_nesting = true;
                }
                at = self.parent(between);
            }
            self.nested.insert(place);
            self.put(place, above);
        }
        let before = self.before.get(above).copied().unwrap_or(self.all.len());
        // The members of a removed group are regrouped from the group above.
        for place in self.all.drain(before..).flat_map(|group| group.members) {
            self.nested.remove(&place);
        }
        self.before.truncate(above);
        above
    }

    fn parent(&self, place: u32) -> Option<u32> {
        self.aligned.parents.get(place as usize).copied().flatten()
    }

    fn group(&self, place: u32) -> usize {
        self.group_of.get(place as usize).copied().unwrap_or(usize::MAX)
    }

    /// Groups the places below a group by label.
    fn divide(&mut self, group: usize, below: Vec<(u32, u32)>) -> usize {
        self.before.push(self.all.len());
        let mut known: FxHashMap<u32, usize> = FxHashMap::default();
        for (place, label) in below {
            let at = *known.entry(label).or_insert(self.all.len());
            if at == self.all.len() {
                self.all.push(MergedPlace { parent: Some(group), label, members: Vec::new() });
            }
            self.put(place, at);
        }
        group + 1
    }

    /// Returns the figures of one dump at the places of a group. Places nested in another place of the group count there.
    fn figures(&self, dump: usize, group: &MergedPlace) -> PlaceFigures {
        let figures = group.members.iter().map(|place| {
            let figures = self.aligned.figures(dump, *place);
            let mut above = std::iter::successors(self.parent(*place), |place| self.parent(*place));
            let is_in = !self.nested.is_empty() && above.any(|above| self.group(above) == self.group(*place));
            PlaceFigures { retained_bytes: if is_in { 0 } else { figures.retained_bytes }, ..figures }
        });
        figures.fold(PlaceFigures::default(), PlaceFigures::plus)
    }

    /// Returns one place per group, in the order of the first place of each group, and the new index of each original place.
    fn into_aligned_places(self, labels: Vec<PlaceLabel>) -> (AlignedPlaces, Vec<u32>) {
        let first = |group: &MergedPlace| group.members.iter().min().copied().unwrap_or(u32::MAX);
        // The first place of a group comes before the first of each group below it.
        let mut order: Vec<(u32, usize)> = self.all.iter().map(first).zip(0..).collect();
        order.sort_unstable();
        let mut number_of: Vec<u32> = vec![u32::MAX; self.all.len()];
        for (number, (_, at)) in (0u32..).zip(&order) {
            if let Some(slot) = number_of.get_mut(*at) {
                *slot = number;
            }
        }
        let of = self.aligned;
        let mut joined = AlignedPlaces {
            labels,
            figures: vec![Vec::with_capacity(self.all.len()); of.dumps()],
            reachable_bytes: of.reachable_bytes.clone(),
            hides_values: of.hides_values,
            ..AlignedPlaces::default()
        };
        for group in order.iter().filter_map(|(_, at)| self.all.get(*at)) {
            let parent = group.parent.and_then(|parent| number_of.get(parent).copied());
            joined.parents.push(parent);
            joined.label_of.push(group.label);
            let is_nesting = |place: &u32| self.is_nesting.get(*place as usize) == Some(&true);
            joined.is_nesting.push(group.members.iter().any(is_nesting));
            for (dump, of_dump) in joined.figures.iter_mut().enumerate() {
                let mut figures = self.figures(dump, group);
                // Values under one key can be nested in those under another, but all are part of the place above.
                let above = parent.filter(|_| group.members.len() > 1);
                if let Some(above) = above.and_then(|above| of_dump.get(above as usize)) {
                    figures.retained_bytes = figures.retained_bytes.min(above.retained_bytes);
                }
                of_dump.push(figures);
            }
        }
        let number = |group: &usize| number_of.get(*group).copied().unwrap_or(u32::MAX);
        let told_at = self.group_of.iter().map(number).collect();
        (joined.with_children(), told_at)
    }
}

impl PlaceKeys {
    /// Returns the informative keys. `least` is, for each dump, the minimum retained size of a map whose keys are read.
    fn telling(&self, least: &[u64]) -> FxHashSet<Arc<str>> {
        let none = FxHashSet::default();
        if self.of.len() > MAX_KEYS || !self.are_known(least) || !self.stay() {
            return none;
        }
        let masked: FxHashSet<String> =
            self.of.keys().map(|key| stable_names::fold_hex_numbers(key)).collect();
        // Numbered keys are not names.
        if self.of.len() <= HANDFUL && masked.len() * 2 > self.of.len() {
            return self.of.keys().cloned().collect();
        }
        let heaviest = self.heaviest();
        let are_few = heaviest.len() <= FEW && heaviest.len() * 3 <= self.of.len();
        if are_few { heaviest.into_iter().collect() } else { none }
    }

    /// Returns whether keys were read for most of the retained size of the values, in each dump. Maps that are too small for
    /// their keys to be read do not count.
    fn are_known(&self, least: &[u64]) -> bool {
        self.others.iter().zip(least).enumerate().all(|(dump, (others, least))| {
            let bytes = self.of.values().filter_map(|of| of.get(dump)).map(|(_, bytes)| *bytes);
            let whole = bytes.fold(*others, u64::saturating_add);
            others < least || is_most(whole.saturating_sub(*others), whole)
        })
    }

    /// Returns whether at least half of the keys are in every dump that has any of them.
    fn stay(&self) -> bool {
        let has = |of: &Vec<(u64, u64)>, dump: usize| of.get(dump).is_some_and(|(objects, _)| *objects > 0);
        let dumps: Vec<usize> =
            (0..self.others.len()).filter(|dump| self.of.values().any(|of| has(of, *dump))).collect();
        let common = self.of.values().filter(|of| dumps.iter().all(|dump| has(of, *dump))).count();
        common * 2 >= self.of.len()
    }

    /// Returns the keys under which most of the change is, or most of the size if there is a single dump; largest first.
    fn heaviest(&self) -> Vec<Arc<str>> {
        let weight = |of: &Vec<(u64, u64)>| {
            let bytes = || of.iter().map(|(_, bytes)| *bytes);
            let least = if of.len() > 1 { bytes().min().unwrap_or(0) } else { 0 };
            bytes().max().unwrap_or(0).saturating_sub(least)
        };
        let mut weights: Vec<(u64, &Arc<str>)> = self.of.iter().map(|(key, of)| (weight(of), key)).collect();
        weights.sort_rows_by(|a, b| (Reverse(a.0), a.1).cmp(&(Reverse(b.0), b.1)));
        let whole = weights.iter().fold(0u64, |sum, (weight, _)| sum.saturating_add(*weight));
        let mut sum = 0u64;
        let mut heaviest = Vec::new();
        for (weight, key) in weights {
            if weight == 0 || is_most(sum, whole) {
                break;
            }
            sum = sum.saturating_add(weight);
            heaviest.push(key.clone());
        }
        heaviest
    }
}
