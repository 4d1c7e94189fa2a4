//! Growth: figures of a dump against those of a baseline.

use rustc_hash::FxHashMap;

use super::measure::growth::Growing;
use super::places::{NamedPlaces, PlacesOfDump};
use super::{Found, LeftOut, Measured, Rule};
use crate::classes::pattern::ClassPattern;
use crate::compare::places::{Aligned, explained, least_of};
use crate::compare::{Change, names};

/// Growth of one dump against one baseline. What several rules need is computed once.
#[derive(Debug, Default)]
pub struct Comparison {
    /// The places of both.
    named: Option<NamedPlaces>,
}

impl Comparison {
    /// By how much a figure is more than in the baseline; percentages are of the baseline's heap. Figures are of this rule,
    /// and always of the same two dumps.
    pub fn growth(&mut self, rule: &Rule, baseline: &Measured, measured: &Measured) -> Measured {
        match (Growing::of(rule.measure.text()), &baseline.found, &measured.found) {
            (Some(Growing::Place(pattern)), Found::Places(old), Found::Places(new)) => {
                let growth = match pattern {
                    Some(pattern) => self.of_places(old, new, pattern),
                    None => self.of_any_place(old, new),
                };
                Measured { left_out: old.left_out().max(new.left_out()), ..growth }
            }
            (Some(Growing::Classes(pattern)), old, Found::Classes(new)) => {
                let none = FxHashMap::default();
                let old = if let Found::Classes(old) = old { old } else { &none };
                difference(baseline, measured).with(most_grown_class(&pattern, old, new))
            }
            // There were some.
            (_, old, Found::NoMatch { .. }) if !matches!(old, Found::NoMatch { .. }) => {
                difference(baseline, measured)
            }
            (_, _, found) => difference(baseline, measured).with(found.clone()),
        }
    }

    /// The places of both dumps as one tree.
    fn named(&mut self, old: &PlacesOfDump, new: &PlacesOfDump) -> &NamedPlaces {
        self.named.get_or_insert_with(|| NamedPlaces::new(&[&old.places, &new.places]))
    }

    /// Of the places of a pattern.
    fn of_places(&mut self, old: &PlacesOfDump, new: &PlacesOfDump, pattern: &str) -> Measured {
        let [before, after] = [old, new].map(|dump| dump.retained(pattern));
        let is_unmatched = |measured: &Measured| matches!(measured.found, Found::NoMatch { .. });
        if is_unmatched(&before) && is_unmatched(&after) {
            return difference(&before, &after).with(after.found);
        }
        let mut grown = self.named(old, new).matching(pattern, Aligned::delta);
        grown.retain(|one| one.amount > 0);
        let of = grown.len() as u64;
        // The first of equal ones.
        let found = match grown.into_iter().rev().max_by_key(|one| one.amount) {
            Some(most) => Found::Most { name: most.name, amount: most.amount.unsigned_abs(), of },
            None => Found::Nothing,
        };
        difference(&before, &after).with(found)
    }

    /// Of the place that grew most; 0 if none grew.
    fn of_any_place(&mut self, old: &PlacesOfDump, new: &PlacesOfDump) -> Measured {
        let aligned = &self.named(old, new).telling;
        let grown =
            aligned.places().map(|place| (aligned.delta(place), place)).filter(|(delta, _)| *delta > 0);
        let whole = old.places.reachable_bytes;
        // The last of equal ones: the deepest, if one contains the other.
        let Some((amount, place)) = grown.max_by_key(|(delta, _)| *delta) else {
            return Measured::new(0, whole);
        };
        let explained = explained(aligned, least_of(&[whole, new.places.reachable_bytes]));
        let explains = |one: &u32| *one != place && aligned.path(*one).contains(&place);
        let cause = explained.into_iter().find(|one| explains(one) && aligned.delta(*one) > 0);
        let cause = cause.map(|cause| (aligned.text(cause), aligned.delta(cause).unsigned_abs()));
        let found = Found::Grown { place: aligned.text(place), cause };
        Measured { amount, ..Measured::new(0, whole) }.with(found)
    }
}

/// The difference of two figures, and nothing of what was found.
fn difference(baseline: &Measured, measured: &Measured) -> Measured {
    let amount = measured.amount.saturating_sub(baseline.amount);
    Measured { amount, whole: baseline.whole, found: Found::Nothing, left_out: LeftOut::Nothing }
}

/// The class whose objects grew most, if several did.
fn most_grown_class(
    pattern: &ClassPattern,
    old: &FxHashMap<String, u64>,
    new: &FxHashMap<String, u64>,
) -> Found {
    // Generated classes have other numbers in other runs.
    let mut by_stem: FxHashMap<std::borrow::Cow<'_, str>, Change> = FxHashMap::default();
    for (name, bytes) in old.iter().filter(|(name, _)| pattern.matches(name)) {
        let change = by_stem.entry(names::stem(name)).or_default();
        change.old = change.old.saturating_add(*bytes);
    }
    for (name, bytes) in new.iter().filter(|(name, _)| pattern.matches(name)) {
        let change = by_stem.entry(names::stem(name)).or_default();
        change.new = change.new.saturating_add(*bytes);
    }
    let grown = || by_stem.iter().filter(|(_, change)| change.delta() > 0);
    let of = grown().count() as u64;
    // The first by name of equal ones.
    let most = grown().max_by(|a, b| a.1.delta().cmp(&b.1.delta()).then_with(|| b.0.cmp(a.0)));
    match most {
        Some((name, change)) if by_stem.len() > 1 => {
            Found::Most { name: name.to_string(), amount: change.delta().unsigned_abs(), of }
        }
        _ => Found::Nothing,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::check::measure::growth::DEFINITION;
    use crate::check::{Limits, Measure, Range, Severity};
    use crate::compare::places::{Label, Place, Places, Via};
    use hprof_parser::ObjectId;

    fn label(via: Via, class: &str) -> Label {
        Label { via, class: Some(class.into()), is_class_object: false }
    }

    /// A map in a static field, with a tenant for each key, and a map in each of these with a cache for each key.
    fn dump(tenants: &[&str], caches: &[&str], cache_bytes: u64) -> PlacesOfDump {
        let mut places = Places { reachable_bytes: 1_000_000, reachable_objects: 1, ..Places::default() };
        let mut add = |parent, label, retained_bytes| {
            let number = u32::try_from(places.labels.len()).unwrap();
            places.labels.push(label);
            let (objects, example) = (1, ObjectId(1));
            places.places.push(Place {
                parent,
                label: number,
                objects,
                retained_bytes,
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

    fn growth(old: &PlacesOfDump, new: &PlacesOfDump, pattern: Option<&str>) -> Measured {
        let measured = |dump: &PlacesOfDump| {
            Measured::new(0, dump.places.reachable_bytes)
                .with(Found::Places(std::sync::Arc::new(dump.clone())))
        };
        let rule = Rule {
            name: String::new(),
            severity: Severity::Error,
            measure: Measure::new(
                &DEFINITION,
                Some(format!("place {}", pattern.unwrap_or_default()).trim().to_owned()),
            ),
            limits: Limits::Number(Range::Max(0)),
            is_optional: false,
        };
        Comparison::default().growth(&rule, &measured(old), &measured(new))
    }

    #[test]
    fn a_place_is_found_with_keys_and_without() {
        let (old, new) = (dump(&["a", "b"], &["x", "y"], 100), dump(&["c", "d", "e"], &["x", "y"], 100));
        let aligned = Aligned::new(&[&old.places, &new.places]);
        let texts: Vec<String> =
            (0u32..).zip(&aligned.parents).map(|(place, _)| aligned.text(place)).collect();
        // The tenants of the two dumps have no key in common, the caches have.
        let cache = "static TENANTS of acme.Shop -> HashMap -> TreeMap -> {x} -> Cache";
        assert!(texts.iter().any(|text| text == cache), "{texts:?}");
        for text in &texts {
            assert!(!matches!(new.retained(text).found, Found::NoMatch { .. }), "{text}");
        }
        assert_eq!(new.retained(cache).amount, 300);
        let with_all = "static TENANTS of acme.Shop -> HashMap -> {c} -> TreeMap -> {x} -> Cache";
        assert_eq!([new.retained(with_all).amount, old.retained(with_all).amount], [100, 0]);
        assert_eq!(new.retained("static TENANTS of acme.Shop -> HashMap -> TreeMap -> Cache").amount, 600);
        assert!(matches!(new.retained("* -> {z} -> Cache").found, Found::NoMatch { .. }));
        assert_eq!(growth(&old, &new, Some(cache)).amount, 100);
        assert_eq!(growth(&old, &new, Some(with_all)).amount, 100);
        assert_eq!(growth(&new, &old, Some(cache)).amount, -100);
        let [none, gone] = ["* -> Nothing", with_all].map(|pattern| growth(&new, &old, Some(pattern)).found);
        assert!(matches!(none, Found::NoMatch { .. }) && matches!(gone, Found::Nothing));
    }

    #[test]
    fn any_place_is_the_one_that_grew_most() {
        let (old, new) = (dump(&["a"], &["x", "y", "z"], 100), dump(&["a"], &["x", "y", "z"], 5000));
        let growth = |old, new| growth(old, new, None);
        let Measured { amount, found, .. } = growth(&old, &new);
        assert_eq!(amount, 3 * 4900);
        let Found::Grown { place, cause: Some((cause, bytes)) } = found else { panic!("{found:?}") };
        assert!(place.ends_with("TreeMap") && cause.starts_with(&place) && bytes == 4900, "{place} {cause}");
        let shrunk = growth(&new, &old);
        assert!(shrunk.amount == 0 && matches!(shrunk.found, Found::Nothing));
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
        assert_eq!(cut.retained("*").left_out, LeftOut::Places);
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
        let Found::Most { name, amount, of } = most_grown_class(&pattern, &old, &new) else { panic!() };
        assert_eq!((&*name, amount, of), ("acme.Small", 490, 3));
    }
}
