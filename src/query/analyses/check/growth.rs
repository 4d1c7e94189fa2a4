//! Growth: figures of a dump compared with the figures of a baseline.

use rustc_hash::FxHashMap;

use super::measure::growth::Growing;
use super::places::{NamedPlaces, PlacesOfDump};
use super::{LeftOut, MeasureDetails, Measurement, Rule};
use crate::compare::places::{AlignedPlaces, explaining_places, least_of};
use hprof_base::change::Change;
use hprof_base::naming::pattern::ClassPattern;
use hprof_base::naming::stable_names;

/// Growth of one dump over one baseline. Results that several rules share are computed once.
#[derive(Debug, Default)]
pub struct BaselineComparison {
    /// Places of both dumps as one tree; created on first use.
    named: Option<NamedPlaces>,
}

impl BaselineComparison {
    /// Returns the increase of a figure over the baseline; percentages refer to the baseline's heap. Both figures must be
    /// measured for this rule, and all calls must be for the same two dumps.
    pub fn growth(&mut self, rule: &Rule, baseline: &Measurement, measured: &Measurement) -> Measurement {
        match (Growing::parse(rule.measure.text()), &baseline.found, &measured.found) {
            (Some(Growing::Place(pattern)), MeasureDetails::Places(old), MeasureDetails::Places(new)) => {
                let growth = match pattern {
                    Some(pattern) => self.of_places(old, new, pattern),
                    None => self.of_any_place(old, new),
                };
                Measurement { left_out: old.left_out().max(new.left_out()), ..growth }
            }
            (Some(Growing::Classes(pattern)), old, MeasureDetails::Classes(new)) => {
                let none = FxHashMap::default();
                let old = if let MeasureDetails::Classes(old) = old { old } else { &none };
                difference(baseline, measured).with(most_grown_class(&pattern, old, new))
            }
            // The baseline had matches.
            (_, old, MeasureDetails::NoMatch { .. }) if !matches!(old, MeasureDetails::NoMatch { .. }) => {
                difference(baseline, measured)
            }
            (_, _, found) => difference(baseline, measured).with(found.clone()),
        }
    }

    /// Returns the places of both dumps as one tree.
    fn named_places(&mut self, old: &PlacesOfDump, new: &PlacesOfDump) -> &NamedPlaces {
        self.named.get_or_insert_with(|| NamedPlaces::new(&[&old.places, &new.places]))
    }

    /// Returns the growth of the places that match a pattern.
    fn of_places(&mut self, old: &PlacesOfDump, new: &PlacesOfDump, pattern: &str) -> Measurement {
        let [before, after] = [old, new].map(|dump| dump.retained_size(pattern));
        let is_unmatched = |measured: &Measurement| matches!(measured.found, MeasureDetails::NoMatch { .. });
        if is_unmatched(&before) && is_unmatched(&after) {
            return difference(&before, &after).with(after.found);
        }
        let mut grown = self.named_places(old, new).matching(pattern, AlignedPlaces::delta);
        grown.retain(|one| one.amount > 0);
        let of = grown.len() as u64;
        // The first, if several are equal.
        let found = match grown.into_iter().rev().max_by_key(|one| one.amount) {
            Some(most) => MeasureDetails::Most { name: most.name, amount: most.amount.unsigned_abs(), of },
            None => MeasureDetails::Nothing,
        };
        difference(&before, &after).with(found)
    }

    /// Returns the growth of the place that grew most; 0 if none grew.
    fn of_any_place(&mut self, old: &PlacesOfDump, new: &PlacesOfDump) -> Measurement {
        let aligned = &self.named_places(old, new).telling;
        let grown =
            aligned.places().map(|place| (aligned.delta(place), place)).filter(|(delta, _)| *delta > 0);
        let whole = old.places.reachable_bytes;
        // The last, if several are equal: the deepest, if one contains the other.
        let Some((amount, place)) = grown.max_by_key(|(delta, _)| *delta) else {
            return Measurement::new(0, whole);
        };
        let explained = explaining_places(aligned, least_of(&[whole, new.places.reachable_bytes]));
        let explains = |one: &u32| *one != place && aligned.path(*one).contains(&place);
        let cause = explained.into_iter().find(|one| explains(one) && aligned.delta(*one) > 0);
        let cause = cause.map(|cause| (aligned.text(cause), aligned.delta(cause).unsigned_abs()));
        let found = MeasureDetails::Grown { place: aligned.text(place), cause };
        Measurement { amount, ..Measurement::new(0, whole) }.with(found)
    }
}

/// Returns the growth of a measurement since the baseline, 0 if it shrank; without findings.
fn difference(baseline: &Measurement, measured: &Measurement) -> Measurement {
    let amount = measured.amount.saturating_sub(baseline.amount);
    Measurement { amount, whole: baseline.whole, found: MeasureDetails::Nothing, left_out: LeftOut::Nothing }
}

/// Returns the name of the class whose objects grew most, if several classes grew.
fn most_grown_class(
    pattern: &ClassPattern,
    old: &FxHashMap<String, u64>,
    new: &FxHashMap<String, u64>,
) -> MeasureDetails {
    // Numbers in names of generated classes differ between runs.
    let mut by_stem: FxHashMap<std::borrow::Cow<'_, str>, Change> = FxHashMap::default();
    for (name, bytes) in old.iter().filter(|(name, _)| pattern.matches(name)) {
        let change = by_stem.entry(stable_names::stem(name)).or_default();
        change.old = change.old.saturating_add(*bytes);
    }
    for (name, bytes) in new.iter().filter(|(name, _)| pattern.matches(name)) {
        let change = by_stem.entry(stable_names::stem(name)).or_default();
        change.new = change.new.saturating_add(*bytes);
    }
    let grown = || by_stem.iter().filter(|(_, change)| change.delta() > 0);
    let of = grown().count() as u64;
    // The first by name, if several are equal.
    let most = grown().max_by(|a, b| a.1.delta().cmp(&b.1.delta()).then_with(|| b.0.cmp(a.0)));
    match most {
        Some((name, change)) if by_stem.len() > 1 => {
            MeasureDetails::Most { name: name.to_string(), amount: change.delta().unsigned_abs(), of }
        }
        _ => MeasureDetails::Nothing,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::check::measure::growth::DEFINITION;
    use crate::check::{Measure, Range, RuleLimits, Severity};
    use crate::compare::places::{DumpPlace, DumpPlaces, PlaceLabel, Via};
    use crate::frameworks::Naming;
    use hprof_values::ObjectId;

    fn label(via: Via, class: &str) -> PlaceLabel {
        PlaceLabel {
            via,
            class: Some(class.into()),
            is_class_object: false,
            called: None,
            naming: Naming::Generic,
            has_sentence: false,
        }
    }

    /// Creates a dump with a map in a static field that has a tenant for each key; each tenant is a map with a cache for each
    /// key.
    fn dump(tenants: &[&str], caches: &[&str], cache_bytes: u64) -> PlacesOfDump {
        let mut places =
            DumpPlaces { reachable_bytes: 1_000_000, reachable_objects: 1, ..DumpPlaces::default() };
        let mut add = |parent, label, retained_bytes| {
            let number = u32::try_from(places.labels.len()).unwrap();
            places.labels.push(label);
            let (objects, example) = (1, ObjectId(1));
            places.places.push(DumpPlace {
                parent,
                label: number,
                objects,
                own_bytes: 0,
                retained_bytes,
                largest_bytes: retained_bytes,
                following: 0,
                is_nesting: false,
                example,
            });
            Some(number)
        };
        let of_tenant = caches.len() as u64 * cache_bytes;
        let of_all = tenants.len() as u64 * of_tenant;
        let via = Via::Static { class: "acme.Shop".into(), name: "TENANTS".into() };
        let map = add(None, label(via, "java.util.HashMap"), of_all);
        for key in tenants {
            let tenant = add(map, label(Via::ValueOf((*key).into()), "java.util.TreeMap"), of_tenant);
            for key in caches {
                add(tenant, label(Via::ValueOf((*key).into()), "acme.Cache"), cache_bytes);
            }
        }
        PlacesOfDump::new(places)
    }

    fn growth(old: &PlacesOfDump, new: &PlacesOfDump, pattern: Option<&str>) -> Measurement {
        let measured = |dump: &PlacesOfDump| {
            Measurement::new(0, dump.places.reachable_bytes)
                .with(MeasureDetails::Places(std::sync::Arc::new(dump.clone())))
        };
        let rule = Rule {
            name: String::new(),
            severity: Severity::Error,
            measure: Measure::new(
                &DEFINITION,
                Some(format!("place {}", pattern.unwrap_or_default()).trim().to_owned()),
            ),
            limits: RuleLimits::Number(Range::Max(0)),
            is_optional: false,
        };
        BaselineComparison::default().growth(&rule, &measured(old), &measured(new))
    }

    #[test]
    fn a_place_is_found_with_keys_and_without() {
        let (old, new) = (dump(&["a", "b"], &["x", "y"], 100), dump(&["c", "d", "e"], &["x", "y"], 100));
        let aligned = AlignedPlaces::new(&[&old.places, &new.places]);
        let texts: Vec<String> =
            (0u32..).zip(&aligned.parents).map(|(place, _)| aligned.text(place)).collect();
        // The tenants of the two dumps have no key in common, but the caches do.
        let cache = "static TENANTS of acme.Shop -> HashMap -> TreeMap -> {x} -> Cache";
        assert!(texts.iter().any(|text| text == cache), "{texts:?}");
        for text in &texts {
            assert!(!matches!(new.retained_size(text).found, MeasureDetails::NoMatch { .. }), "{text}");
        }
        assert_eq!(new.retained_size(cache).amount, 300);
        let with_all = "static TENANTS of acme.Shop -> HashMap -> {c} -> TreeMap -> {x} -> Cache";
        assert_eq!([new.retained_size(with_all).amount, old.retained_size(with_all).amount], [100, 0]);
        assert_eq!(
            new.retained_size("static TENANTS of acme.Shop -> HashMap -> TreeMap -> Cache").amount,
            600
        );
        assert!(matches!(new.retained_size("* -> {z} -> Cache").found, MeasureDetails::NoMatch { .. }));
        assert_eq!(growth(&old, &new, Some(cache)).amount, 100);
        assert_eq!(growth(&old, &new, Some(with_all)).amount, 100);
        assert_eq!(growth(&new, &old, Some(cache)).amount, -100);
        let [none, gone] = ["* -> Nothing", with_all].map(|pattern| growth(&new, &old, Some(pattern)).found);
        assert!(matches!(none, MeasureDetails::NoMatch { .. }) && matches!(gone, MeasureDetails::Nothing));
    }

    #[test]
    fn any_place_is_the_one_that_grew_most() {
        let (old, new) = (dump(&["a"], &["x", "y", "z"], 100), dump(&["a"], &["x", "y", "z"], 5000));
        let growth = |old, new| growth(old, new, None);
        let Measurement { amount, found, .. } = growth(&old, &new);
        assert_eq!(amount, 3 * 4900);
        let MeasureDetails::Grown { place, cause: Some((cause, bytes)) } = found else { panic!("{found:?}") };
        assert!(place.ends_with("TreeMap") && cause.starts_with(&place) && bytes == 4900, "{place} {cause}");
        let shrunk = growth(&new, &old);
        assert!(shrunk.amount == 0 && matches!(shrunk.found, MeasureDetails::Nothing));
    }

    #[test]
    fn what_is_left_out_of_either_dump_is_told() {
        let (whole, mut cut) = (dump(&["a"], &["x"], 1), dump(&["a"], &["x"], 1));
        cut.places.is_cut = true;
        for pattern in [None, Some("*")] {
            assert_eq!(growth(&whole, &whole, pattern).left_out, LeftOut::Nothing);
            assert_eq!(growth(&whole, &cut, pattern).left_out, LeftOut::Places);
            assert_eq!(growth(&cut, &whole, pattern).left_out, LeftOut::Places);
        }
        assert_eq!(cut.retained_size("*").left_out, LeftOut::Places);
    }

    #[test]
    fn the_class_that_grew_is_told_and_not_the_largest() {
        let bytes = |all: &[(&str, u64)]| -> FxHashMap<String, u64> {
            all.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect()
        };
        let Ok(pattern) = "acme.*".parse();
        let old = bytes(&[("acme.Large", 9000), ("acme.Small", 10), ("acme.F$$Lambda/0x1", 800)]);
        let new =
            bytes(&[("acme.Large", 9001), ("acme.Small", 500), ("acme.F$$Lambda/0x2", 801), ("b.B", 9999)]);
        let MeasureDetails::Most { name, amount, of } = most_grown_class(&pattern, &old, &new) else {
            panic!()
        };
        assert_eq!((&*name, amount, of), ("acme.Small", 490, 3));
    }
}
