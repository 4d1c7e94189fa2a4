//! Tests on recordings made by the tests' own writer.
#![allow(clippy::unwrap_used)]

use hprof_jfr::Chunk;
use hprof_writer::flight::{FlightWriter, every_kind};

use super::*;
use crate::profile::Origin;

fn read_as(bytes: &[u8], want: Want) -> FlightReport {
    read(&Recording::new(bytes).unwrap(), None, want)
}

fn all() -> Want {
    Want { sites: true, ..Want::default() }
}

/// Returns the methods of a trace with their lines.
fn frames(report: &FlightReport, serial: hprof_values::TraceSerial) -> Vec<String> {
    let traces = &report.profile.traces;
    traces.get(serial).map_or(Vec::new(), |trace| traces.frames(trace).map(ToString::to_string).collect())
}

#[test]
fn samples_are_those_by_cpu_time_if_there_are_any() {
    for is_compressed in [true, false] {
        let bytes = every_kind(is_compressed).finish();
        let samples = |samples| read_as(&bytes, Want { samples, ..all() }).profile.samples.unwrap();
        // One of the two samples has no stack.
        let by_time = samples(None);
        assert_eq!((by_time.event, by_time.total), (Some(SampleEvent::CpuTime), 2));
        assert_eq!(by_time.rows.iter().filter(|(trace, _)| trace.0 == 0).count(), 1);
        let report = read_as(&bytes, Want { samples: Some(SampleEvent::Execution), ..all() });
        let rows = report.profile.samples.as_ref().unwrap().rows.clone();
        let counts: Vec<u64> = rows.iter().map(|(_, samples)| *samples).collect();
        assert_eq!(counts, [2, 1]);
        assert_eq!(frames(&report, rows[0].0), ["a.B.run(line 12)", "a.B.main(line 5)"]);
        assert_eq!(frames(&report, rows[1].0), ["a.B.main(Native Method)"]);
        assert_eq!(samples(Some(SampleEvent::Native)).total, 1);
    }
}

#[test]
fn buffers_count_only_without_samples() {
    let bytes = every_kind(true).finish();
    let sites = read_as(&bytes, all()).profile.sites.unwrap();
    assert_eq!((sites.origin, sites.rows.len(), sites.by_allocation), (Origin::Sampled, 1, true));
    let site = &sites.rows[0];
    assert_eq!((&*site.class, site.allocated_bytes, site.samples), ("byte[]", 1500, 2));
    assert!((site.self_percent - 100.0).abs() < 1e-9);
    // Renames the type of samples.
    let at = bytes.windows(26).position(|window| window == b"jdk.ObjectAllocationSample").unwrap();
    let mut without = bytes.clone();
    without[at] = b'x';
    let sites = read_as(&without, all()).profile.sites.unwrap();
    assert_eq!((sites.rows[0].allocated_bytes, sites.rows[0].samples), (4096 + 70_000, 2));
}

#[test]
fn waits_are_those_to_enter_monitors_unless_others_are_wanted() {
    let bytes = every_kind(true).finish();
    for (monitors, event) in [
        (None, MonitorEvent::Enter),
        (Some(MonitorEvent::Wait), MonitorEvent::Wait),
        (Some(MonitorEvent::Park), MonitorEvent::Park),
    ] {
        let times = read_as(&bytes, Want { monitors, ..all() }).profile.contention.unwrap();
        assert_eq!((times.event, times.total_ms, times.rows.len()), (Some(event), 25, 1));
        let row = &times.rows[0];
        assert_eq!((row.count, row.nanos, row.name.as_deref()), (1, Some(25_000_000), Some("a.B")));
    }
}

#[test]
fn threads_and_facts() {
    let bytes = every_kind(true).finish();
    let report = read_as(&bytes, Want::default());
    let [thread] = &report.profile.threads[..] else { panic!("{:?}", report.profile.threads) };
    assert_eq!((thread.serial, &*thread.name, thread.ended), (9, "worker", true));
    assert_eq!((&*thread.group, thread.parent_group.as_deref()), ("main", Some("system")));
    assert_eq!(report.profile.created.as_deref(), Some("1970-01-01T00:00:01.000Z"));
    let facts = &report.facts;
    assert_eq!((facts.chunks, facts.unfinished_chunks, facts.problem_count), (1, 0, 0));
    let jvm = facts.jvm.as_ref().unwrap();
    assert_eq!((&*jvm.command, jvm.pid), ("a.B 7", Some(4711)));
    assert_eq!((facts.events_of("jdk.ExecutionSample"), facts.events_of("none")), (3, 0));
}

#[test]
fn equal_stacks_of_several_chunks_are_one_trace() {
    let one = every_kind(true).finish();
    // The second one has other integers, the third is unfinished.
    let bytes = [one.clone(), every_kind(false).finish(), every_kind(true).unfinished()].concat();
    let (single, report) = (read_as(&one, all()), read_as(&bytes, all()));
    assert_eq!((report.facts.chunks, report.facts.unfinished_chunks), (3, 1));
    assert_eq!(report.profile.traces, single.profile.traces);
    let total = |report: &FlightReport| report.profile.samples.as_ref().unwrap().total;
    assert_eq!(total(&report), 3 * total(&single));
    assert_eq!(report.profile.threads.len(), 3);
}

#[test]
fn stacks_by_thread_are_separate() {
    let bytes = every_kind(true).finish();
    let report = read_as(&bytes, Want { threads: true, ..all() });
    let of_thread = |serial| report.profile.traces.iter().filter(|trace| trace.thread == serial).count();
    // The stack in which a thread is started does not belong to an event of the thread itself.
    assert_eq!((of_thread(9), of_thread(0)), (2, 1));
    assert_eq!(report.profile.threads.len(), 1);
}

#[test]
fn a_recording_without_events() {
    let mut writer = FlightWriter::new(true);
    writer.metadata(&[]);
    let report = read_as(&writer.finish(), all());
    let profile = &report.profile;
    assert!(profile.samples.is_none() && profile.sites.is_none() && profile.contention.is_none());
    let report = read_as(&FlightWriter::new(true).finish(), all());
    assert_eq!(report.facts.problem_count, 1);
}

#[test]
fn stacks_that_are_not_in_the_chunk_are_lost() {
    let mut whole = every_kind(true).finish();
    // The second sample's key, at the end of the event: `every_kind` has two samples of stack 1, then one of stack 2.
    let sample: [u8; 3] = [101, 1, 2];
    let at = whole.windows(3).position(|window| window == sample).unwrap();
    whole[at + 2] = 99;
    let report = read_as(&whole, Want { samples: Some(SampleEvent::Execution), ..all() });
    assert_eq!((report.facts.lost_stacks, report.facts.problem_count), (1, 1));
    assert_eq!(report.facts.problems, ["events whose stacks are missing from the chunk: 1 (at offset 0x0)"]);
    assert_eq!(report.profile.samples.unwrap().total, 3);
    // The JVM had not yet written it.
    let mut unfinished = whole;
    unfinished[8..16].fill(0);
    let report = read_as(&unfinished, all());
    assert_eq!((report.facts.lost_stacks, report.facts.problem_count), (1, 0));
}

#[test]
fn threads_share_the_frames_of_a_stack() {
    let bytes = every_kind(true).finish();
    let by_thread = read_as(&bytes, Want { threads: true, ..all() });
    let of_main = |trace: &&crate::profile::Trace| by_thread.profile.traces.numbers(trace).len() == 2;
    let traces: Vec<_> = by_thread.profile.traces.iter().filter(of_main).collect();
    // Samples of thread 9 have the same stack as its start.
    let starts: Vec<_> =
        traces.iter().map(|trace| by_thread.profile.traces.numbers(trace).as_ptr()).collect();
    assert_eq!((starts.len(), starts[0]), (2, starts[1]));
}

#[test]
fn types_that_are_not_described_are_one_row() {
    let mut writer = FlightWriter::new(true);
    (500..600).for_each(|type_id| writer.event(type_id, |body| body.long(1)));
    writer.metadata(&[]);
    let events = read_as(&writer.finish(), all()).facts.events;
    let counts: Vec<(&str, u64)> = events.iter().map(|count| (&*count.name, count.events)).collect();
    assert_eq!(counts, [("(types not described)", 100), ("jdk.Metadata", 1)]);
}

#[test]
fn events_that_stand_for_the_same_are_kept() {
    let report = read_as(&every_kind(true).finish(), all());
    let events: Vec<_> = report.other_samples.iter().map(|samples| samples.event.unwrap()).collect();
    assert_eq!(events, [SampleEvent::Execution]);
    assert_eq!(report.profile.sites.unwrap().event, Some(SiteEvent::Samples));
    let sites: Vec<_> =
        report.other_sites.iter().map(|sites| (sites.event.unwrap(), sites.rows.len())).collect();
    assert_eq!(sites, [(SiteEvent::Buffers, 1)]);
}

#[test]
fn the_heap_after_a_collection() {
    let heap = read_as(&every_kind(true).finish(), Want::default()).heap;
    let [collection] = &heap.collections[..] else { panic!("{heap:?}") };
    assert_eq!(
        *collection,
        heap::Collection {
            nanos: 1_007_000_000,
            gc_id: 5,
            before_bytes: Some(900),
            used_bytes: 300,
            committed_bytes: 1024,
            metaspace_bytes: Some(77),
            is_full: true,
        }
    );
    assert_eq!(heap.memory_limit_bytes, Some(4096));
    assert_eq!(heap.trend().unwrap().verdict, heap_trend::HeapVerdict::TooFew);
}

#[test]
fn events_one_by_one() {
    let bytes = every_kind(true).finish();
    let recording = Recording::new(&bytes).unwrap();
    let chunk = Chunk::read(&bytes, &recording.chunks()[0]).unwrap();
    let events = |starts: std::ops::Range<usize>| {
        let mut found = Vec::new();
        let visit = |row: rows::EventRow<'_>| {
            found.push((
                row.event.value.to_owned(),
                row.thread.map(|name| name.value.to_owned()),
                row.top.map(|top| top.value.to_string()),
                row.class.map(|name| name.value.to_owned()),
                row.bytes,
                row.duration_nanos,
            ));
        };
        rows::visit(&chunk, starts, visit);
        found
    };
    let all = events(0..usize::MAX);
    let is = |at: usize, event: &str, class: Option<&str>, bytes, duration| {
        let (worker, top) = (Some("worker".to_owned()), Some("a.B.run(line 12)".to_owned()));
        assert_eq!(all[at], (event.to_owned(), worker, top, class.map(str::to_owned), bytes, duration));
    };
    is(0, "jdk.ExecutionSample", None, None, None);
    is(6, "jdk.ObjectAllocationSample", Some("byte[]"), Some(1000), None);
    is(10, "jdk.JavaMonitorEnter", Some("a.B"), None, Some(25_000_000));
    let middle = chunk.events().nth(10).unwrap().start;
    let parts = [events(0..middle), events(middle..usize::MAX)].concat();
    assert!(parts == all && all.len() == 21, "{}", all.len());
}

#[test]
fn only_samples_of_allocations_have_a_weight() {
    let bytes = every_kind(true).finish();
    let mut weights = Vec::new();
    let visit =
        |row: rows::EventRow<'_>| weights.extend(row.bytes.map(|bytes| (row.event.value.to_owned(), bytes)));
    let chunk = Chunk::read(&bytes, &Recording::new(&bytes).unwrap().chunks()[0]).unwrap();
    rows::visit(&chunk, 0..usize::MAX, visit);
    let weights: Vec<(&str, u64)> = weights.iter().map(|(event, bytes)| (&**event, *bytes)).collect();
    assert_eq!(
        weights,
        [
            ("jdk.ObjectAllocationSample", 1000),
            ("jdk.ObjectAllocationSample", 500),
            ("jdk.ObjectAllocationInNewTLAB", 4096),
            ("jdk.ObjectAllocationOutsideTLAB", 70_000),
        ]
    );
}

/// Reads a chunk whose classes all have the same long text as their name.
#[test]
fn names_longer_than_their_chunk_are_damage() {
    use hprof_writer::flight::{FlightConstant, FlightField, LONG, TEXT};
    for (classes, is_damaged) in [(2, false), (300, true)] {
        let mut made = FlightWriter::new(true);
        let name = "n".repeat(10_000);
        made.checkpoint(5, &[(77, &|body| body.text(&name))]);
        let class: FlightConstant<'_> = &|body| {
            body.raw(&[2]);
            body.long(77);
        };
        let constants: Vec<_> = (1..=classes).map(|key| (key, class)).collect();
        made.checkpoint(31, &constants);
        for key in 1..=classes {
            made.event(43, |body| [101, key, 8].into_iter().for_each(|value| body.long(value)));
        }
        made.metadata(&[
            (31, "java.lang.Class", &[("name", TEXT)]),
            (
                43,
                "jdk.ObjectAllocationSample",
                &[("startTime", LONG), ("objectClass", FlightField::constant(31)), ("weight", LONG)],
            ),
        ]);
        let bytes = made.finish();
        let report = read_as(&bytes, all());
        let all_classes = usize::try_from(classes).unwrap();
        let read = (4 * bytes.len() / name.len()).min(all_classes);
        let problems: Vec<String> = match is_damaged {
            false => Vec::new(),
            true => vec![format!(
                "the names of classes, methods and threads are longer than the chunk: {} were skipped (at offset 0x0)",
                all_classes - read
            )],
        };
        assert_eq!(report.facts.problems, problems);
        let sites = report.profile.sites.unwrap();
        assert_eq!(sites.total.unwrap().samples, all_classes as u64);
        let allocations = super::allocations::read(&Recording::new(&bytes).unwrap());
        assert_eq!(allocations.problems, problems);
    }
}

#[test]
fn samples_that_the_jvm_lost_are_added_up() {
    use hprof_writer::flight::LONG;
    let chunk = |lost: &[i64]| {
        let mut made = FlightWriter::new(true);
        made.event(42, |body| body.long(101));
        lost.iter().for_each(|lost| {
            made.event(43, |body| [102, *lost].into_iter().for_each(|value| body.long(value)))
        });
        let types = [
            (42, "jdk.CPUTimeSample", &[("startTime", LONG)][..]),
            (43, "jdk.CPUTimeSamplesLost", &[("startTime", LONG), ("lostSamples", LONG)]),
        ];
        made.metadata(&types);
        made.finish()
    };
    let bytes = [chunk(&[3, 4]), chunk(&[-1]), chunk(&[5])].concat();
    let report = read_as(&bytes, all());
    assert_eq!((report.facts.lost_samples, report.profile.samples.unwrap().total), (12, 3));
}

/// The JVM numbers constants of each type from 1.
#[test]
fn constants_of_several_types_can_have_one_key() {
    use hprof_writer::flight::{FlightField, LONG, TEXT};
    let mut made = FlightWriter::new(true);
    for (type_id, name) in [(31, "a/B"), (32, "c/D")] {
        made.checkpoint(type_id, &[(1, &|body| body.text(name))]);
    }
    for (type_id, amount) in [(46, 25), (43, 8), (46, 25)] {
        made.event(type_id, |body| [101, 1, amount].into_iter().for_each(|value| body.long(value)));
    }
    let constant = FlightField::constant;
    made.metadata(&[
        (31, "java.lang.Class", &[("name", TEXT)]),
        (32, "java.lang.Class", &[("name", TEXT)]),
        (
            43,
            "jdk.ObjectAllocationSample",
            &[("startTime", LONG), ("objectClass", constant(32)), ("weight", LONG)],
        ),
        (
            46,
            "jdk.JavaMonitorEnter",
            &[("startTime", LONG), ("monitorClass", constant(31)), ("duration", LONG)],
        ),
    ]);
    let bytes = made.finish();
    let mut classes = Vec::new();
    let chunk = Chunk::read(&bytes, &Recording::new(&bytes).unwrap().chunks()[0]).unwrap();
    let visit =
        |row: rows::EventRow<'_>| classes.push(row.class.map(|class| (class.id, class.value.to_owned())));
    rows::visit(&chunk, 0..usize::MAX, visit);
    let [Some((first, monitor)), Some((second, allocated)), third] = &classes[..] else {
        panic!("{classes:?}")
    };
    assert_eq!((&**monitor, &**allocated, third), ("a.B", "c.D", &classes[0]));
    assert_ne!(first, second);
    let report = read_as(&bytes, all());
    assert_eq!(&*report.profile.sites.unwrap().rows[0].class, "c.D");
    assert_eq!(report.profile.contention.unwrap().rows[0].name.as_deref(), Some("a.B"));
}
