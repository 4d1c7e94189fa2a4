//! Recordings of Flight Recorder that nobody wrote: an answer or an error, soon, with little memory, and the same answer
//! whatever the number of threads.

use std::time::Instant;

use hprof_jfr::{Chunk, Recording};
use hprof_query::recordings::profile::binary::Want;
use hprof_query::recordings::profile::flight::{self, SiteEvent};
use hprof_query::recordings::stacks;
use hprof_writer::flight::{
    BOOLEAN, FlightConstant, FlightField, FlightType, FlightValues, FlightWriter, LONG, TEXT, every_kind,
};
use hprof_writer::flight_native::{NativeEvent, native_memory};

use crate::bytes::{MOST_BYTES, MOST_TIME, Watch, allocated, largest_allocation};
use crate::kit::mutate::{Numbers, setting};
use crate::kit::portion;

/// Bytes at the start of each chunk that are its header.
const HEADER: usize = 68;

/// Reads a recording in every way.
fn survive(bytes: &[u8], what: &dyn Fn() -> String) -> bool {
    let watch = Watch::begin(what());
    let start = Instant::now();
    let Ok(recording) = Recording::new(bytes) else { return false };
    let want = Want { sites: true, traces: true, threads: true, ..Want::default() };
    let report = flight::read(&recording, None, want.clone());
    let again = flight::read(&recording, None, want.clone());
    assert_eq!(report.profile, again.profile, "{}", what());
    assert_eq!(report.facts, again.facts, "{}", what());
    assert_eq!(report.heap, again.heap, "{}", what());
    assert_eq!(report.memory, again.memory, "{}", what());
    let unfreed = Want { site_event: Some(SiteEvent::UnfreedMemory), ..want };
    let [once, twice] = [(); 2].map(|()| flight::read(&recording, None, unfreed.clone()));
    assert_eq!(once.profile.sites, twice.profile.sites, "{}", what());
    assert_eq!(once.unfreed, twice.unfreed, "{}", what());
    let _ = report.heap.trend();
    let _ = flight::allocations::read(&recording);
    for span in recording.chunks() {
        let Ok(chunk) = Chunk::read(bytes, span) else { continue };
        let (mut all, mut in_parts) = (0, 0);
        flight::rows::visit(&chunk, 0..usize::MAX, |_| all += 1);
        for part in hprof_jfr::chunk::parts(bytes, span) {
            flight::rows::visit(&chunk, part, |_| in_parts += 1);
        }
        assert_eq!(all, in_parts, "{}", what());
    }
    for of in stacks::available_weights(&report.profile) {
        let _ = stacks::stacks(&report.profile, &stacks::StackQuery::new(of));
    }
    assert!(start.elapsed() < MOST_TIME, "{}: {:?}", what(), start.elapsed());
    assert!(largest_allocation() < MOST_BYTES, "{}: {} bytes at once", what(), largest_allocation());
    drop(watch);
    true
}

/// Changes some bytes, most of them where they tell something; or cuts, repeats and removes parts.
fn mutate(base: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for _ in 0..=numbers.below(4) {
        let length = bytes.len();
        let at = if numbers.below(4) == 0 { numbers.below(HEADER) } else { numbers.below(length) };
        match numbers.below(10) {
            0 => bytes.truncate(at),
            1 => {
                let part = bytes.get(at..(at + numbers.below(200)).min(length)).unwrap_or_default().to_vec();
                let to = numbers.below(length);
                drop(bytes.splice(to..to, part));
            }
            2 => drop(bytes.drain(at.min(length)..(at + numbers.below(50)).min(length))),
            3 => {
                // A number of nine bytes, or the largest of 32 bits.
                let number: &[u8] =
                    if numbers.below(2) == 0 { &[0xff; 9] } else { &[0xff, 0xff, 0xff, 0xff, 0x07] };
                let end = (at + number.len()).min(length);
                if let Some(place) = bytes.get_mut(at..end) {
                    place.copy_from_slice(&number[..place.len()]);
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = numbers.below(256) as u8;
                }
            }
        }
    }
    bytes
}

fn sample(name: &str) -> Vec<u8> {
    zstd::decode_all(&std::fs::read(format!("samples/flight/{name}.jfr.zst")).unwrap()[..]).unwrap()
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn changed_recordings() {
    let [one, other] = [true, false].map(|compressed| every_kind(compressed).finish());
    let several = [&one[..], &other, &every_kind(true).unfinished()].concat();
    let event = |ticks: i64| NativeEvent {
        ticks,
        address: 16 * (ticks % 7),
        malloc: (ticks % 3 > 0).then_some((ticks, 1)),
    };
    let events: Vec<NativeEvent> = (100..140).map(event).collect();
    let native = [110, 100].map(|start| native_memory(start, &["run"], &events)).concat();
    let seed = setting("HPROF_CLI_SOAK_SEED", 20_261_126);
    let cases = setting("HPROF_CLI_SOAK_CASES", portion::cases(20_000));
    // Real ones are a hundred times as large.
    let real = [sample("jdk17"), sample("jdk25-unfinished")];
    let mut read = 0;
    for case in 0..cases {
        let mut numbers = Numbers::new(seed ^ case.wrapping_mul(0xA24B_AED4_963E_E407));
        let base = match case % 20 {
            0 => &real[0],
            1 => &real[1],
            2..8 => &one,
            8..14 => &other,
            14..17 => &native,
            _ => &several,
        };
        let changed = mutate(base, &mut numbers);
        read += u64::from(survive(&changed, &|| format!("seed {seed}, case {case}")));
    }
    assert!(read > cases / 3, "most are still recordings: {read} of {cases}");
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn recordings_cut_anywhere_and_with_each_byte_changed() {
    for compressed in [true, false] {
        let whole = every_kind(compressed).finish();
        for end in (0..whole.len()).step_by(portion::step()) {
            survive(&whole[..end], &|| format!("cut at {end}"));
        }
        for at in (0..whole.len()).step_by(portion::step()) {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                survive(&changed, &|| format!("{value:#x} at {at}"));
            }
        }
    }
}

/// Type of the strings that others refer to, and the string that all do.
const STRING: i64 = 5;
const LONG_TEXT: i64 = 77;
/// Number of values that refer to one.
const REFERENCES: i64 = 2_000;

/// A chunk with a text of 100,000 bytes.
fn with_long_text() -> FlightWriter {
    let mut made = FlightWriter::new(true);
    made.checkpoint(
        STRING,
        &[(LONG_TEXT, &|body| {
            // Latin-1: decoding it takes memory.
            body.raw(&[5]);
            body.int(100_000);
            body.raw(&[b'A'; 100_000]);
        })],
    );
    made
}

fn long_text(body: &mut FlightValues) {
    body.raw(&[2]);
    body.long(LONG_TEXT);
}

/// Events of a type, each with these numbers, and that of the event last.
fn numbered(made: &mut FlightWriter, type_id: i64, numbers: &[i64]) {
    for number in 1..=REFERENCES {
        made.event(type_id, |body| numbers.iter().chain([&number]).for_each(|value| body.long(*value)));
    }
}

/// Reads a recording in every way with the current thread alone, and returns the sum of all allocations.
fn allocated_by(pool: &rayon::ThreadPool, bytes: &[u8]) -> usize {
    let before = allocated();
    pool.install(|| {
        let recording = Recording::new(bytes).unwrap();
        let want = Want { sites: true, traces: true, threads: true, ..Want::default() };
        drop(flight::read(&recording, None, want));
        drop(flight::allocations::read(&recording));
        for span in recording.chunks() {
            let Ok(chunk) = Chunk::read(bytes, span) else { continue };
            flight::rows::visit(&chunk, 0..usize::MAX, |_| ());
        }
    });
    allocated() - before
}

/// What a few bytes of a file say takes little memory and time, however often it is referred to: bytes are counted, as time is
/// that of the machine.
#[test]
fn what_is_shared_is_read_once() {
    let constant = FlightField::constant;
    let thread = (37, "java.lang.Thread", &[("javaName", TEXT), ("javaThreadId", LONG)][..]);
    let mut made: Vec<(&str, Vec<u8>)> = Vec::new();
    let mut add = |what, mut chunk: FlightWriter, types: &[FlightType<'_>]| {
        chunk.metadata(types);
        made.push((what, chunk.finish()));
    };

    let mut chunk = with_long_text();
    let threads: Vec<_> = (1..=REFERENCES)
        .map(|id| {
            move |body: &mut FlightValues| {
                long_text(body);
                body.long(id);
            }
        })
        .collect();
    let threads: Vec<(i64, FlightConstant<'_>)> =
        (1..).zip(&threads).map(|(key, thread)| (key, thread as FlightConstant<'_>)).collect();
    chunk.checkpoint(37, &threads);
    let mut one_thread = chunk.clone();
    numbered(&mut chunk, 49, &[101]);
    let started = [("startTime", LONG), ("thread", constant(37))];
    add("threads with one name", chunk, &[thread, (49, "jdk.ThreadStart", &started)]);
    for _ in 0..REFERENCES {
        one_thread.event(49, |body| [101, 1].into_iter().for_each(|value| body.long(value)));
    }
    add("starts of one thread", one_thread, &[thread, (49, "jdk.ThreadStart", &started)]);

    let mut chunk = with_long_text();
    chunk.checkpoint(37, &threads[..2]);
    for number in 0..REFERENCES {
        chunk.event(40, |body| [101, 1 + number % 2].into_iter().for_each(|value| body.long(value)));
    }
    let sampled = [("startTime", LONG), ("sampledThread", constant(37))];
    add("samples of two threads in turn", chunk, &[thread, (40, "jdk.ExecutionSample", &sampled)]);

    // Descriptions of class objects: one text that is no name of a class, and one that begins as such.
    for (what, start) in
        [("class objects with one text", "A"), ("class objects with one name", "Class Name: ")]
    {
        let mut chunk = FlightWriter::new(true);
        let text = |body: &mut FlightValues| {
            body.raw(&[5]);
            body.int(100_000);
            body.raw(start.as_bytes());
            body.raw(&vec![b'A'; 100_000 - start.len()]);
        };
        chunk.checkpoint(STRING, &[(LONG_TEXT, &text), (1, &|body| body.text("java/lang/Class"))]);
        chunk.checkpoint(31, &[(1, &|body| body.raw(&[2, 1]))]);
        let object = |body: &mut FlightValues| {
            body.long(1);
            long_text(body);
        };
        let objects: Vec<(i64, FlightConstant<'_>)> =
            (1..=REFERENCES).map(|key| (key, &object as FlightConstant<'_>)).collect();
        chunk.checkpoint(60, &objects);
        numbered(&mut chunk, 70, &[]);
        let class = (31, "java.lang.Class", &[("name", TEXT)][..]);
        let object = [("type", constant(31)), ("description", TEXT)];
        let sampled = [("object", constant(60))];
        add(
            what,
            chunk,
            &[class, (60, "jdk.types.OldObject", &object), (70, "jdk.OldObjectSample", &sampled)],
        );
    }

    let mut chunk = with_long_text();
    chunk.checkpoint(38, &[(1, &long_text)]);
    numbered(&mut chunk, 53, &[101, 1, 7]);
    let when = (38, "jdk.types.GCWhen", &[("when", TEXT)][..]);
    let metaspace = [("startTime", LONG), ("when", constant(38)), ("metaspace", LONG), ("gcId", LONG)];
    add("collections with one word", chunk, &[when, (53, "jdk.MetaspaceSummary", &metaspace)]);

    let mut chunk = with_long_text();
    for _ in 0..REFERENCES {
        chunk.event(51, |body| (0..4).for_each(|_| long_text(body)));
    }
    let described = ["jvmName", "jvmVersion", "jvmArguments", "javaArguments"].map(|name| (name, TEXT));
    add("JVMs", chunk, &[(51, "jdk.JVMInformation", &described)]);

    let long = "n".repeat(100_000);
    let fields = vec![(&*long, LONG); REFERENCES as usize];
    add("fields with one name", FlightWriter::new(true), &[(20, "jdk.Sample", &fields)]);
    let types: Vec<FlightType<'_>> = (100..100 + REFERENCES).map(|id| (id, &*long, &[][..])).collect();
    let mut chunk = FlightWriter::new(true);
    (100..100 + REFERENCES).for_each(|id| chunk.event(id, |body| body.long(1)));
    add("types with one name", chunk, &types);

    // Many small chunks, each of which states large numbers.
    let mut many = |what, chunk: FlightWriter, types: &[FlightType<'_>]| {
        let mut chunk = chunk;
        chunk.metadata(types);
        made.push((what, chunk.finish().repeat(200)));
    };
    let mut chunk = FlightWriter::new(true);
    chunk.checkpoint(35, &[(262_143, &|body| body.raw(&[0, 0]))]);
    chunk.event(40, |body| [101, 262_143].into_iter().for_each(|value| body.long(value)));
    let trace = [("truncated", BOOLEAN), ("frames", FlightField::array(4))];
    let sampled = [("startTime", LONG), ("stackTrace", constant(35))];
    many("large keys", chunk, &[(35, "S", &trace), (40, "jdk.ExecutionSample", &sampled)]);
    let mut chunk = FlightWriter::new(true);
    chunk.event(4_095, |body| body.long(1));
    many("large types", chunk, &[]);
    let names: Vec<String> = (0..200).map(|number| format!("T{number}")).collect();
    let nested = |number: i64| [("a", FlightField::value(if number < 12 { 101 + number } else { 100 })); 2];
    let fields: Vec<_> = (0..200).map(nested).collect();
    let mut types: Vec<FlightType<'_>> =
        (100..).zip(&names).zip(&fields).map(|((id, name), fields)| (id, &**name, &fields[..])).collect();
    types[12].2 = &[("number", LONG)];
    for of in &mut types[13..] {
        of.2 = &of.2[..1];
    }
    many("values in values", FlightWriter::new(true), &types);

    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
    let all: Vec<_> =
        made.iter().map(|(what, bytes)| (*what, allocated_by(&pool, bytes), bytes.len())).collect();
    assert!(all.iter().all(|(_, allocated, bytes)| *allocated <= (1 << 20) + 256 * bytes), "{all:?}");
}
