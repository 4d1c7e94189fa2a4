//! Tests on recordings made by the tests' own writer.
#![allow(clippy::unwrap_used)]

use hprof_writer::flight::{FlightField, FlightValues, FlightWriter, TEXT, every_kind, full_collections};
use hprof_writer::flight_leak::{LeakRecording, SampledLine, circular_chain, old_objects};
use hprof_writer::hostile_keys::is_seeded;

use super::super::chunk_sums::ChunkSums;
use super::super::class_counts::ClassCount;
use super::super::site_sums::SiteSums;
use super::*;

fn read_bytes(bytes: &[u8]) -> Allocations {
    read(&Recording::new(bytes).unwrap())
}

fn sums(found: &Allocations, class: &str) -> Vec<(Vec<String>, SampleSum)> {
    let stack = |stack: Vec<&Frame>| stack.into_iter().map(ToString::to_string).collect();
    found.of_class(class).map(|(frames, row)| (stack(frames), row.sum)).collect()
}

#[test]
fn samples_by_class_stack_and_time() {
    for is_compressed in [true, false] {
        let bytes = every_kind(is_compressed).finish();
        let found = read_bytes(&bytes);
        assert_eq!(found.event, Some(AllocationEvent::Sample));
        assert_eq!(found.classes().collect::<Vec<_>>(), ["byte[]"]);
        let rows = sums(&found, "byte[]");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].0, ["a.B.run(line 12)", "a.B.main(line 5)"]);
        assert_eq!(rows[0].1, SampleSum { samples: 2, bytes: 1500 });
        let (_, row) = found.of_class("byte[]").next().unwrap();
        assert_eq!(row.parts.iter().sum::<u64>(), 1500);
        assert_eq!(found.jvm.as_ref().unwrap().pid, Some(4711));
        assert_eq!((found.of_class("none").count(), found.left_out), (0, 0));
    }
}

#[test]
fn buffers_without_samples_state_sizes_of_arrays() {
    let mut bytes = every_kind(true).finish();
    let at = bytes.windows(26).position(|window| window == b"jdk.ObjectAllocationSample").unwrap();
    bytes[at] = b'x';
    let found = read_bytes(&bytes);
    assert_eq!(found.event, Some(AllocationEvent::InNewTlab));
    let (_, row) = found.of_class("byte[]").next().unwrap();
    assert_eq!(row.sum, SampleSum { samples: 2, bytes: 4096 + 70_000 });
    assert_eq!(row.sizes, [(70_000, SampleSum { samples: 1, bytes: 70_000 })]);
}

#[test]
fn equal_stacks_of_several_chunks_are_one_row() {
    let one = every_kind(true).finish();
    let bytes = [one.clone(), every_kind(false).finish(), one].concat();
    let rows = sums(&read_bytes(&bytes), "byte[]");
    assert_eq!((rows.len(), rows[0].1), (1, SampleSum { samples: 6, bytes: 4500 }));
}

#[test]
fn old_objects_with_chains() {
    let bytes = old_objects(3).finish();
    let found = read_bytes(&bytes);
    assert_eq!(found.old_objects.len(), 3);
    let old = &found.old_objects[0];
    assert_eq!((&*old.class, old.elements), ("byte[]", Some(1000)));
    let links: Vec<_> = old.chain.iter().map(|link| (&*link.class, link.field.as_deref())).collect();
    assert_eq!(links, [("java.lang.Object[]", None), ("a.B", Some("HELD"))]);
    let stack: Vec<String> = found.stack(old.stack()).into_iter().map(ToString::to_string).collect();
    assert_eq!(stack, ["a.B.run(line 12)"]);
    // Old objects of the last chunk that contains any.
    let bytes = [old_objects(5).finish(), old_objects(2).finish(), every_kind(true).finish()].concat();
    assert_eq!(read_bytes(&bytes).old_objects.len(), 2);
}

#[test]
fn a_chain_that_is_a_circle_ends() {
    let found = read_bytes(&circular_chain().finish());
    assert_eq!(found.old_objects.len(), 1);
    assert!(found.old_objects[0].chain.len() <= 256);
}

/// Events whose object has no class are not counted, but reading each takes time.
#[test]
fn events_about_old_objects_are_bounded() {
    for (without, found) in [(2047, 1), (2048, 0)] {
        let mut made = FlightWriter::new(true);
        made.checkpoint(31, &[(1, &|body| body.text("a/B"))]);
        let of = |class: i64| move |body: &mut FlightValues| body.long(class);
        made.checkpoint(60, &[(1, &of(0)), (2, &of(1))]);
        (0..without).for_each(|_| made.event(70, |body| body.long(1)));
        made.event(70, |body| body.long(2));
        made.metadata(&[
            (31, "java.lang.Class", &[("name", TEXT)]),
            (60, "jdk.types.OldObject", &[("type", FlightField::constant(31))]),
            (70, "jdk.OldObjectSample", &[("object", FlightField::constant(60))]),
        ]);
        let all = read_bytes(&made.finish());
        assert_eq!(all.old_objects.len(), found, "{without}");
        let not_read = all
            .problems
            .iter()
            .filter(|problem| problem.contains("about old objects: 1 were skipped"))
            .count();
        assert_eq!(not_read, 1 - found, "{:?}", all.problems);
    }
}

/// Null (as for a thread parked without a blocker) and constants missing from the chunk are one class for any number of events.
#[test]
fn classes_that_the_chunk_does_not_contain_are_one() {
    let mut made = FlightWriter::new(true);
    made.checkpoint(31, &[(1, &|body| body.text("a/B"))]);
    for class in [0, 7, 0, 8, 0] {
        made.event(40, |body| body.long(class));
    }
    made.metadata(&[
        (31, "java.lang.Class", &[("name", TEXT)]),
        (40, "jdk.ObjectAllocationSample", &[("objectClass", FlightField::constant(31))]),
    ]);
    let bytes = made.finish();
    let recording = Recording::new(&bytes).unwrap();
    let [span] = recording.chunks() else { panic!("{:?}", recording.chunks()) };
    let sums = ChunkSums::read(&recording, span, &super::super::Want::default()).unwrap();
    let sites: Vec<_> =
        sums.allocations.iter().flat_map(SiteSums::iter).map(|(.., sum)| sum.events).collect();
    assert_eq!((sums.classes.len(), &sites[..]), (1, &[5][..]));
    let found = ChunkAllocations::read(&bytes, span, (0, 1)).unwrap();
    let rows: Vec<_> = found.rows.iter().map(|(_, row)| row.sum.samples).collect();
    assert_eq!((found.classes.len(), &rows[..]), (1, &[5][..]));
}

/// Chains share their constants, so a small file can state many long texts.
#[test]
fn texts_of_chains_are_bounded() {
    let long = "x".repeat(60_000);
    let line = SampledLine {
        class: "a/B",
        method: "run",
        line: 12,
        samples: 0,
        weight: 0,
        old_objects: 3000,
        caller: None,
    };
    let chain = &[("a/B", Some(long.as_str()))];
    let bytes =
        LeakRecording { lines: &[line], chain, is_circle: true, ..LeakRecording::default() }.write().finish();
    let found = read_bytes(&bytes);
    let texts = found.old_objects.iter().flat_map(|old| &old.chain).flat_map(|link| &link.field);
    assert_eq!(found.old_objects.len(), 2048);
    assert!(texts.map(|text| text.len()).sum::<usize>() <= 1 << 23);
}

#[test]
fn a_recording_without_events() {
    let found = read_bytes(&FlightWriter::new(true).finish());
    assert_eq!((found.event, found.classes().count(), found.problems.len()), (None, 0, 1));
}

/// Allocations of a recording contain the same heap over time as the recording's report.
#[test]
fn heap_over_time_is_that_of_a_report() {
    let bytes = [every_kind(true).finish(), full_collections(&[64, 128, 192, 640], true).finish()].concat();
    let found = read_bytes(&bytes).heap;
    assert_eq!(found.collections.len(), 5);
    let [counted] = &found.classes[..] else { panic!("{:?}", found.classes) };
    let bytes_of = |count: ClassCount| (count.gc_id, count.nanos, count.instances, count.bytes);
    assert_eq!((&*counted.class, counted.counts), ("a.B", 4));
    assert_eq!(bytes_of(counted.first), (0, 1_000_000_000, 2, 32));
    assert_eq!(bytes_of(counted.last), (3, 1_030_000_000, 20, 320));
    let recording = Recording::new(&bytes).unwrap();
    assert_eq!(found, super::super::read(&recording, None, Default::default()).heap);
}

/// The file chooses the keys: without a seed it could choose keys that collide.
#[test]
fn hashes_are_seeded() {
    let MergedAllocations { frames, stacks, rows, class_numbers, .. } = MergedAllocations::default();
    assert!(is_seeded(&frames) && is_seeded(&stacks) && is_seeded(&rows) && is_seeded(&class_numbers));
}
