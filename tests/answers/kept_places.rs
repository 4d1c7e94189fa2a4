//! Places of large objects are found once, and then read from the index: the same, whoever asks. And counts that reuse
//! earlier ones are those of a pass.

use std::fs;
use std::time::SystemTime;

use hprof_cli::TreePosition;
use hprof_index::{Heap, Quiet};
use hprof_query::compare::places::DumpPlaces;
use hprof_query::dominators::class_counts;
use hprof_query::dominators::counted_ranges::CountedRanges;
use hprof_query::frameworks::Frameworks;
use proptest::prelude::*;

use crate::kit::dump::{Dump, whole_dump};
use crate::kit::texts::sample_path as sample;

const SAMPLES: &[&str] =
    &["jdk/jdk17.hprof.zst", "public/maven-jdk8.hprof.zst", "jdk/jdk25-compact.hprof.zst"];

fn places(dump: &Dump, rules: &Frameworks, least: u64) -> (DumpPlaces, Vec<String>) {
    let (heap, graph) = dump.open_graph();
    let places = DumpPlaces::of_large(&whole_dump(&heap, &graph), rules, least).unwrap();
    assert!(!places.places.is_empty() && !places.labels.is_empty());
    (places, heap.notes())
}

fn written(dump: &Dump) -> SystemTime {
    fs::metadata(dump.index().join("places")).unwrap().modified().unwrap()
}

#[test]
fn places_are_found_once() {
    let rules = Frameworks::builtin();
    for name in SAMPLES {
        let dump = Dump::at(Some(&sample(name)));
        let (found, _) = places(&dump, &rules, 10_000);
        let at = written(&dump);
        assert_eq!(places(&dump, &rules, 10_000).0, found, "{name}");
        assert_eq!(written(&dump), at, "{name}: they were found again");
        // Another question, and then the first again.
        let (others, _) = places(&dump, &rules, 50_000);
        assert_ne!(others, found, "{name}");
        assert!(written(&dump) > at, "{name}: the answer to another question was kept");
        assert_eq!(places(&dump, &rules, 10_000).0, found, "{name}");
        // A damaged file is found and replaced.
        let file = dump.index().join("places");
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, &bytes).unwrap();
        let (again, notes) = places(&dump, &rules, 10_000);
        assert_eq!(again, found, "{name}");
        assert!(notes.iter().any(|note| note.ends_with("rebuilding it")), "{name}: {notes:?}");
        assert_eq!(places(&dump, &rules, 10_000), (found, Vec::new()), "{name}");
    }
}

#[test]
fn rules_decide_which_answer_is_read() {
    let dump = Dump::at(Some(&sample("jdk/jdk17.hprof.zst")));
    let rules = Frameworks::builtin();
    let own = "framework = \"Own\"\n[[class]]\nname = \"java.util.ArrayList\"\ncalled = \"store {elements}\"\n[class.facts]\nelements = \"this.size\"\n";
    let own = rules.clone().with(own, "own.toml").unwrap();
    let is_called = |places: &DumpPlaces| {
        let called = |label: &hprof_query::compare::places::PlaceLabel| label.called.clone();
        places.labels.iter().filter_map(called).any(|called| called.starts_with("store "))
    };
    assert!(!is_called(&places(&dump, &rules, 1_000).0));
    assert!(is_called(&places(&dump, &own, 1_000).0));
    assert!(!is_called(&places(&dump, &rules, 1_000).0));
}

#[test]
fn hidden_values_are_neither_kept_nor_read() {
    let dump = Dump::at(Some(&sample("jdk/jdk17.hprof.zst")));
    let rules = Frameworks::builtin();
    let hidden = || {
        let options = hprof_index::Options { hide_values: true, ..dump.options() };
        let (heap, graph) = Heap::open_graph(&dump.path, &options, &Quiet).unwrap();
        DumpPlaces::of_large(&whole_dump(&heap, &graph), &rules, 1_000).unwrap()
    };
    let first = hidden();
    assert!(first.hides_values);
    assert!(!dump.index().join("places").exists());
    let (shown, _) = places(&dump, &rules, 1_000);
    assert!(!shown.hides_values && dump.index().join("places").exists());
    assert_eq!(hidden(), first);
}

#[test]
fn an_answer_does_not_wait_for_a_process_that_builds() {
    let dump = Dump::at(Some(&sample("jdk/jdk17.hprof.zst")));
    let (heap, graph) = dump.open_graph();
    let lock = fs::File::open(dump.index().join("lock")).unwrap();
    lock.lock().unwrap();
    let _bytes = heap.bytes(&Quiet).unwrap();
    let rules = Frameworks::builtin();
    let found = DumpPlaces::of_large(&whole_dump(&heap, &graph), &rules, 1_000).unwrap();
    assert!(!found.places.is_empty() && !dump.index().join("places").exists());
    drop(lock);
    assert_eq!(DumpPlaces::of_large(&whole_dump(&heap, &graph), &rules, 1_000).unwrap(), found);
    assert!(dump.index().join("places").exists());
}

#[test]
fn index_keeps_what_leaks_reads() {
    let dump = Dump::at(Some(&sample("jdk/jdk17.hprof.zst")));
    assert_eq!(dump.run(&["index"]).status.code(), Some(0));
    let at = written(&dump);
    let kept = dump.run(&["leaks", "--format", "json"]);
    assert_eq!(written(&dump), at);
    dump.forget_index();
    assert_eq!(dump.run(&["leaks", "--format", "json"]).stdout, kept.stdout);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn counts_that_reuse_others_are_those_of_a_pass(ranges in prop::collection::vec((0.0..1.0f64, 0.0..1.0f64), 12)) {
        let dump = Dump::at(Some(&sample("jdk/jdk17.hprof.zst")));
        let (heap, graph) = dump.open_graph();
        let classes = heap.summary().classes().len();
        let counted = CountedRanges::new(&graph, classes);
        let all = f64::from(graph.tree.reachable());
        prop_assert!(all > 100_000.0);
        for (a, b) in ranges {
            let (start, end) = (a.min(b) * all, a.max(b) * all);
            let range = TreePosition(start as u32)..TreePosition(end as u32);
            let expected = class_counts::count(&graph, range.clone(), classes);
            prop_assert_eq!(counted.count(range.clone()), expected.clone());
            prop_assert_eq!(counted.count(range), expected);
        }
    }
}
