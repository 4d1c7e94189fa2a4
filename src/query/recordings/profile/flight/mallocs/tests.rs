//! Tests against a program that keeps all events in one list.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use hprof_jfr::Recording;
use hprof_writer::flight_native::{NativeEvent, native_memory};
use hprof_writer::hostile_keys::is_seeded;

use super::*;
use crate::profile::flight::{FlightReport, SiteEvent, Want, read};

const METHODS: [&str; 3] = ["one", "two", "three"];

/// Number and bytes of what was not freed, by method.
type Unfreed = BTreeMap<String, (u64, u64)>;

fn report(bytes: &[u8], want: Want) -> FlightReport {
    read(&Recording::new(bytes).unwrap(), None, Want { sites: true, traces: true, ..want })
}

fn unfreed_by_method(bytes: &[u8]) -> (Unfreed, UnfreedMemory) {
    let report = report(bytes, Want { site_event: Some(SiteEvent::UnfreedMemory), ..Want::default() });
    let mut found = Unfreed::new();
    for site in report.profile.sites.iter().flat_map(|sites| &sites.rows) {
        let method = report.profile.traces.method(site.trace).unwrap();
        assert_eq!(found.insert(method, (site.samples, site.allocated_bytes)), None);
    }
    assert_eq!((report.facts.problem_count, report.other_sites), (0, Vec::new()));
    (found, report.unfreed.unwrap())
}

/// Replays events in the order of chunks and time, one after the other.
fn replay(chunks: &[Vec<NativeEvent>]) -> (Unfreed, UnfreedMemory) {
    let all = || chunks.iter().flatten();
    let mut facts = UnfreedMemory::default();
    let mut open: BTreeMap<i64, (i64, i64, i64)> = BTreeMap::new();
    for chunk in chunks {
        let mut events = chunk.clone();
        events.sort_by_key(|event| event.ticks);
        for event in events {
            if let Some((bytes, method)) = event.malloc {
                facts.mallocs += 1;
                let before = open.insert(event.address, (event.ticks, bytes, method));
                facts.lost_frees += u64::from(before.is_some());
            } else {
                facts.frees += 1;
                facts.unmatched_frees += u64::from(open.remove(&event.address).is_none());
            }
        }
    }
    let [first, last] = [all().map(|event| event.ticks).min(), all().map(|event| event.ticks).max()];
    let nanos = |ticks: i64| 1_000_000_000 + (ticks - 100) * 1_000_000;
    if let (Some(first), Some(last)) = (first, last) {
        let until = nanos(first) + (nanos(last) - nanos(first)) / 10 * 9;
        (facts.counted_until_nanos, facts.last_nanos) = (Some(until), Some(nanos(last)));
    }
    let mut found = Unfreed::new();
    for (ticks, bytes, method) in open.into_values() {
        let bytes = u64::try_from(bytes).unwrap();
        if nanos(ticks) > facts.counted_until_nanos.unwrap() {
            (facts.young_mallocs, facts.young_bytes) = (facts.young_mallocs + 1, facts.young_bytes + bytes);
            continue;
        }
        let method = METHODS[usize::try_from(method - 1).unwrap()];
        let sum = found.entry(format!("a.B.{method}")).or_default();
        *sum = (sum.0 + 1, sum.1 + bytes);
    }
    (found, facts)
}

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((self.0 >> 33) % most).unwrap()
    }

    /// Returns events from a time on, in no order. Few addresses are used again and again; some frees are lost, others have no
    /// malloc, and some events have the same time.
    fn events(&mut self, start: i64, addresses: u64) -> Vec<NativeEvent> {
        let count = self.below(200);
        let event = |_| NativeEvent {
            ticks: start + self.below(100),
            address: 0x7f00_0000_1000 + 16 * self.below(addresses),
            malloc: (self.below(2) == 0).then(|| (1 + self.below(1 << 20), 1 + self.below(3))),
        };
        (0..count).map(event).collect()
    }
}

fn file(chunks: &[Vec<NativeEvent>]) -> Vec<Vec<u8>> {
    let chunk = |(at, events): (i64, &Vec<NativeEvent>)| native_memory(100 * (at + 1), &METHODS, events);
    (0..).zip(chunks).map(chunk).collect()
}

#[test]
fn what_was_not_freed_is_what_a_replay_finds() {
    let (mut numbers, mut seen) = (Numbers(1), UnfreedMemory::default());
    for case in 0..300u64 {
        let count = 1 + case % 5;
        let addresses = [1, 3, 40, 1000][usize::try_from(case % 4).unwrap()];
        let chunks: Vec<_> =
            (0..count).map(|at| numbers.events(100 * (i64::try_from(at).unwrap() + 1), addresses)).collect();
        let mut parts = file(&chunks);
        let expected = replay(&chunks);
        assert_eq!(unfreed_by_method(&parts.concat()), expected, "case {case}");
        // The order of the chunks in the file does not matter, as each states its time.
        parts.reverse();
        assert_eq!(unfreed_by_method(&parts.concat()), expected, "case {case}, reversed");
        seen.lost_frees += expected.1.lost_frees;
        seen.unmatched_frees += expected.1.unmatched_frees;
        seen.young_mallocs += expected.1.young_mallocs;
    }
    assert!(seen.lost_frees > 1000 && seen.unmatched_frees > 1000 && seen.young_mallocs > 100, "{seen:?}");
}

fn malloc(ticks: i64, address: i64, bytes: i64) -> NativeEvent {
    NativeEvent { ticks, address, malloc: Some((bytes, 1)) }
}

fn free(ticks: i64, address: i64) -> NativeEvent {
    NativeEvent { ticks, address, malloc: None }
}

#[test]
fn pairs_lie_across_chunks_and_buffers() {
    // The free was written by another thread, before the malloc.
    let first = [free(130, 1), malloc(110, 1, 10), malloc(120, 2, 20), malloc(125, 3, 30)];
    // A free of the first chunk's malloc; an address whose free was lost; a free of older memory.
    let second = [free(210, 2), malloc(220, 3, 300), free(230, 9), malloc(1110, 4, 4)];
    let bytes = [native_memory(100, &METHODS, &first), native_memory(200, &METHODS, &second)].concat();
    let (found, facts) = unfreed_by_method(&bytes);
    assert_eq!(found, Unfreed::from([("a.B.one".to_owned(), (1, 300))]));
    let expected = UnfreedMemory {
        mallocs: 5,
        frees: 3,
        unmatched_frees: 1,
        lost_frees: 1,
        young_mallocs: 1,
        young_bytes: 4,
        counted_until_nanos: Some(1_910_000_000),
        last_nanos: Some(2_010_000_000),
    };
    assert_eq!(facts, expected);
}

#[test]
fn what_is_allocated_at_the_end_of_the_counted_time_counts() {
    let bytes = |ticks| native_memory(100, &METHODS, &[free(100, 1), malloc(ticks, 2, 8), free(200, 1)]);
    assert_eq!(unfreed_by_method(&bytes(190)).0.len(), 1);
    assert_eq!(
        (unfreed_by_method(&bytes(191)).0.len(), unfreed_by_method(&bytes(191)).1.young_bytes),
        (0, 8)
    );
    let (found, facts) = unfreed_by_method(&native_memory(100, &METHODS, &[]));
    assert_eq!((found.len(), facts), (0, UnfreedMemory::default()));
    // A single moment has no end.
    assert_eq!(unfreed_by_method(&native_memory(100, &METHODS, &[malloc(100, 2, 8)])).0.len(), 1);
}

#[test]
fn all_mallocs_are_counted_unless_others_are_wanted() {
    let events = [malloc(100, 1, 10), malloc(101, 2, 20), free(102, 1), malloc(150, 3, 40)];
    let bytes = native_memory(100, &METHODS, &events);
    for site_event in [None, Some(SiteEvent::NativeMemory)] {
        let report = report(&bytes, Want { site_event, ..Want::default() });
        let total = report.profile.sites.unwrap().total.unwrap();
        assert_eq!((total.allocated_bytes, total.samples), (70, 3));
        assert_eq!(report.unfreed, None);
    }
    let none = report(&bytes, Want { site_event: Some(SiteEvent::Samples), ..Want::default() });
    assert_eq!(none.profile.sites, None);
}

/// The file chooses the addresses: without a seed it could choose those that collide.
#[test]
fn the_hash_of_addresses_has_a_seed() {
    assert!(is_seeded(&OpenMallocs::default().open));
}
