//! Tests that recordings whose keys would collide in unseeded hash tables are read about as fast as others.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use hprof_writer::flight::{FlightConstant, FlightField, FlightValues, FlightWriter, LONG, TEXT};
use hprof_writer::hostile_keys::colliding_keys;

use hprof_jfr::Recording;

use super::allocation_sites::all_sites;
use super::profile::binary::Want;
use super::profile::flight::{self, allocations};
use super::stacks::{StackQuery, StackWeight, stacks};

/// Number of keys in each recording.
const KEYS: usize = 130_000;
/// Maximum time to read a recording in all ways. A table in which all keys collide needs 8 * 10^9 comparisons, which takes much
/// longer.
const MAX_TIME: Duration = Duration::from_secs(10);

const CLASS: i64 = 31;
const TRACE: i64 = 35;

/// Returns a recording of allocations, given by class, stack and shallow size. The frames of a stack are given by their lines.
fn recording(
    classes: &[(i64, &str)],
    stacks: &[[i64; 2]],
    events: impl Iterator<Item = [i64; 3]>,
) -> Vec<u8> {
    let mut made = FlightWriter::new(true);
    let text = |text: String| move |body: &mut FlightValues| body.text(&text);
    made.checkpoint(30, &[(1, &text("run".to_owned()))]);
    let names: Vec<_> = classes.iter().map(|(key, name)| (*key, text((*name).to_owned()))).collect();
    let names: Vec<(i64, FlightConstant<'_>)> = names.iter().map(|(key, name)| (*key, name as _)).collect();
    made.checkpoint(CLASS, &names);
    made.checkpoint(32, &[(1, &|body| [classes[0].0, 1].into_iter().for_each(|key| body.long(key)))]);
    let frames = |[line, caller]: [i64; 2]| {
        move |body: &mut FlightValues| {
            body.int(2);
            [1, line, 1, caller].into_iter().for_each(|value| body.long(value));
        }
    };
    let traces: Vec<_> = (1..).zip(stacks.iter().copied().map(frames)).collect();
    let traces: Vec<(i64, FlightConstant<'_>)> =
        traces.iter().map(|(key, trace)| (*key, trace as _)).collect();
    made.checkpoint(TRACE, &traces);
    for [class, stack, size] in events {
        made.event(43, |body| [101, class, stack, size].into_iter().for_each(|value| body.long(value)));
    }
    let constant = FlightField::constant;
    made.metadata(&[
        (30, "jdk.types.Symbol", &[("string", TEXT)]),
        (CLASS, "java.lang.Class", &[("name", TEXT)]),
        (32, "jdk.types.Method", &[("type", constant(CLASS)), ("name", constant(30))]),
        (34, "jdk.types.StackFrame", &[("method", constant(32)), ("lineNumber", LONG)]),
        (TRACE, "jdk.types.StackTrace", &[("frames", FlightField::array(34))]),
        (
            43,
            "jdk.ObjectAllocationOutsideTLAB",
            &[
                ("startTime", LONG),
                ("objectClass", constant(CLASS)),
                ("stackTrace", constant(TRACE)),
                ("allocationSize", LONG),
            ],
        ),
    ]);
    made.finish()
}

/// Reads a recording in all ways, and returns the number of allocations at its sites.
fn read_every_way(bytes: &[u8]) -> u64 {
    let recording = Recording::new(bytes).unwrap();
    let want = Want { sites: true, threads: true, ..Want::default() };
    let profile = flight::read(&recording, None, want).profile;
    stacks(&profile, &StackQuery::new(StackWeight::Allocated)).unwrap();
    let found = allocations::read(&recording);
    all_sites(&found).flat_map(|(_, sites)| sites).map(|site| site.sum.samples).sum()
}

#[test]
fn keys_that_collide_are_read_as_fast_as_others() {
    let keys: Vec<i64> = colliding_keys().filter(|key| *key > 0).take(KEYS).collect();
    let classes: Vec<(i64, &str)> = keys.iter().map(|key| (*key, "a/B")).collect();
    let of_class = keys.iter().map(|key| [*key, 1, 16]);
    // A row has 16 sizes at most, and all stacks are of one site.
    let stacks: Vec<[i64; 2]> = (0..10_000).map(|caller| [1, caller]).collect();
    let of_size = keys.iter().zip(0..).map(|(size, at): (_, i64)| [1, at / 10 + 1, *size]);
    let mut types = FlightWriter::new(true);
    keys.iter().for_each(|key| types.event(*key, |body| body.long(101)));
    types.metadata(&[]);
    for (what, bytes, found) in [
        ("types", types.finish(), 0),
        ("classes", recording(&classes, &[[1, 1]], of_class), KEYS as u64),
        ("sizes", recording(&[(1, "[B")], &stacks, of_size), KEYS as u64),
    ] {
        let start = Instant::now();
        assert_eq!(read_every_way(&bytes), found, "{what}");
        let time = start.elapsed();
        assert!(time <= MAX_TIME, "{what}: {time:?}");
    }
}
