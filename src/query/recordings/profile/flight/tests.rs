//! Tests on recordings made by the tests' own writer.
#![allow(clippy::unwrap_used)]

use hprof_writer::flight::{FlightWriter, every_kind};

use super::*;
use crate::recordings::profile::Origin;

fn read_as(bytes: &[u8], want: Want) -> FlightReport {
    read(&Recording::new(bytes).unwrap(), None, want)
}

fn all() -> Want {
    Want { sites: true, ..Want::default() }
}

/// Methods with lines of a trace.
fn frames(report: &FlightReport, serial: hprof_parser::TraceSerial) -> Vec<String> {
    let traces = &report.profile.traces;
    traces.get(serial).map_or(Vec::new(), |trace| traces.frames(trace).map(ToString::to_string).collect())
}

#[test]
fn samples_are_those_by_cpu_time_if_there_are_any() {
    for is_compressed in [true, false] {
        let bytes = every_kind(is_compressed).finish();
        let samples = |samples| read_as(&bytes, Want { samples, ..all() }).profile.samples.unwrap();
        // One of the two has no stack.
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
    // The type of samples has another name.
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
    // Threads are started in a stack that is no event of the thread itself.
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
