//! Tests on chunks made here.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use std::sync::Arc;

use crate::chunk::PART_EVENTS;
use crate::error::FlightErrorKind;
use crate::{Chunk, ChunkTables, ElementNumbers, Event, NumberField, Recording, Value};
use hprof_writer::flight::{FlightField, FlightType, FlightValues, FlightWriter, LONG, TEXT};

const FIRST: i64 = 10;
const SAMPLE: i64 = 20;

/// Returns a chunk with two samples: a number, a name that is a constant, and an array of pairs.
fn sample(compressed: bool) -> FlightWriter {
    let mut made = FlightWriter::new(compressed);
    let sample = |body: &mut FlightValues| {
        body.long(-7);
        body.raw(&[2]);
        body.long(77);
        body.int(2);
        for part in [1, 2] {
            body.long(part);
            body.text("part");
        }
        body.long(3);
        body.long(9);
    };
    made.event(SAMPLE, sample);
    // Constants can come after the events that refer to them, in several checkpoints.
    made.checkpoint(FIRST, &[(9, &|body| body.long(1)), (3, &|body| body.long(33))]);
    made.checkpoint(5, &[(77, &|body| body.text("first"))]);
    made.checkpoint(FIRST, &[(9, &|body| body.long(99))]);
    made.event(SAMPLE, sample);
    let pair = [("number", LONG), ("text", TEXT)];
    let fields = [
        ("number", LONG),
        ("name", TEXT),
        ("pairs", FlightField::array(11)),
        ("missing", FlightField::constant(404)),
        ("first", FlightField::constant(FIRST)),
    ];
    made.metadata(&[
        (FIRST, "First", &[("value", LONG)]),
        (11, "Pair", &pair),
        (SAMPLE, "jdk.Sample", &fields),
    ]);
    made
}

fn read(bytes: &[u8]) -> Chunk<'_> {
    let recording = Recording::new(bytes).unwrap();
    Chunk::read(bytes, &recording.chunks()[0]).unwrap()
}

#[test]
fn fields_of_events_and_constants_in_both_encodings() {
    for compressed in [true, false] {
        let bytes = sample(compressed).finish();
        let chunk = read(&bytes);
        let events: Vec<Event<'_>> = chunk.events().collect();
        assert_eq!((events.len(), chunk.problems.len()), (2, 0));
        let event = events[1].fields;
        assert_eq!(&*event.class().unwrap().name, "jdk.Sample");
        assert_eq!(event.integer("number"), Some(-7));
        assert_eq!(event.text("name", usize::MAX).unwrap(), "first");
        let pairs = event.array("pairs").unwrap();
        let numbers: Vec<i64> = pairs.records().filter_map(|pair| pair.integer("number")).collect();
        assert_eq!((pairs.len(), numbers), (2, vec![1, 2]));
        // Of an unknown type: the key is known, the constant is not.
        assert!(event.record("missing").is_none());
        assert_eq!(event.constant("missing").unwrap().key(), 3);
        // The last constant of a key counts.
        assert_eq!(event.record("first").unwrap().integer("value"), Some(99));
        assert!(event.get("none").is_none());
    }
}

#[test]
fn numbers_of_one_walk_are_those_read_one_by_one() {
    use NumberField::{Integer, Key};
    const NAMES: [&str; 7] = ["number", "text", "pairs", "pair", "keys", "key", "last"];
    for (compressed, is_valid) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut made = FlightWriter::new(compressed);
        made.event(SAMPLE, |body| {
            body.long(-7);
            // A text that is not valid is skipped.
            body.raw(&[3]);
            body.int(2);
            body.raw(if is_valid { b"ab" } else { b"a\xff" });
            body.int(2);
            for part in [1, 1 << 60, 3] {
                body.long(part);
                body.text("part");
            }
            body.int(3);
            [5, -6, 7, 8, 9].into_iter().for_each(|key| body.long(key));
        });
        let fields = [
            ("number", LONG),
            ("text", TEXT),
            ("pairs", FlightField::array(11)),
            ("pair", FlightField::value(11)),
            ("keys", FlightField { is_array: true, ..FlightField::constant(404) }),
            ("key", FlightField::constant(404)),
            ("last", LONG),
        ];
        made.metadata(&[(11, "Pair", &[("number", LONG), ("text", TEXT)]), (SAMPLE, "jdk.Sample", &fields)]);
        let whole = made.finish();
        let event_end = read(&whole).events().next().unwrap().fields.place.reader().end();
        // Every byte is damaged once, the lengths of arrays and texts among them.
        for damaged in std::iter::once(None).chain((70..event_end).map(Some)) {
            let mut bytes = whole.clone();
            if let Some(at) = damaged {
                bytes[at] ^= 0x5f;
            }
            let chunk = read(&bytes);
            let Some(Event { class, fields: event, .. }) = chunk.events().next() else { continue };
            let one = |field: &NumberField<'_>| match *field {
                Integer(name) => event.integer(name),
                Key(name) => event.constant(name).map(|constant| constant.key()),
            };
            for first in NAMES {
                for second in NAMES {
                    // In any order, one of them twice, one of another kind, and none.
                    let wanted =
                        [Key(second), Integer(first), Key("none"), Integer(second), Key(first), Key(second)];
                    let together = event.numbers(&chunk.numbers(class, wanted));
                    assert_eq!(
                        together.to_vec(),
                        wanted.iter().map(one).collect::<Vec<_>>(),
                        "{damaged:?} {wanted:?}"
                    );
                }
            }
            for array in [event.array("pairs"), event.array("keys")].into_iter().flatten() {
                for count in [1, usize::MAX] {
                    let fields = array.fields([Key("text"), Integer("number")]);
                    let mut together = Vec::new();
                    array.for_each_element(&fields, count, |numbers| together.push(numbers));
                    // An element with a damaged end is omitted.
                    let apart = array.records().map(|record| [None, record.integer("number")]).take(count);
                    assert_eq!(together, apart.collect::<Vec<_>>(), "{damaged:?}");
                }
            }
        }
        let chunk = read(&whole);
        let Event { class, fields: event, .. } = chunk.events().next().unwrap();
        let fields = chunk.numbers(class, [Integer("last"), Key("key"), Integer("number"), Integer("text")]);
        let numbers = event.numbers(&fields);
        assert_eq!(numbers, [Some(9), Some(8), Some(-7), None]);
        assert_eq!(fields.constant(&chunk, 1, numbers[1]).map(|constant| constant.key()), Some(8));
        // A value of another type has no numbers.
        assert_eq!(event.numbers(&chunk.numbers(class - 1, [Integer("number")])), [None]);
    }
}

#[test]
fn a_part_of_a_chunk_is_read_without_the_parts_before_it() {
    let mut made = FlightWriter::new(true);
    let count = 2 * PART_EVENTS as i64 + 100;
    for number in 0..count {
        made.event(SAMPLE, |body| body.long(number));
    }
    made.metadata(&[(SAMPLE, "jdk.Sample", &[("number", LONG)])]);
    let mut bytes = made.finish();
    let span = Recording::new(&bytes).unwrap().chunks()[0];
    let tables = Arc::new(ChunkTables::read(&bytes, &span).unwrap());
    let parts = crate::chunk::parts(&bytes, &span);
    let numbers = |bytes: &[u8], part: &std::ops::Range<usize>| {
        let chunk = Chunk::from_tables(bytes, &span, tables.clone());
        let events = chunk.events_in(part.clone());
        events.map(|event| event.fields.integer("number").unwrap()).collect::<Vec<i64>>()
    };
    let events = PART_EVENTS as i64;
    let expected = [0..events, events..2 * events, 2 * events..count].map(Iterator::collect::<Vec<i64>>);
    assert_eq!(parts.iter().map(|part| numbers(&bytes, part)).collect::<Vec<_>>(), expected);
    bytes[68..parts[1].start].fill(0);
    assert_eq!(numbers(&bytes, &parts[0]), []);
    assert_eq!(parts[1..].iter().map(|part| numbers(&bytes, part)).collect::<Vec<_>>(), expected[1..]);
    assert_eq!(crate::chunk::parts(&FlightWriter::new(true).finish(), &span), []);
}

#[test]
fn selected_events_are_those_of_the_types() {
    for (count, is_finished) in [(0, true), (4, true), (5, true), (20, true), (20, false)] {
        let mut made = FlightWriter::new(true);
        for number in 0..count {
            made.event(SAMPLE, |body| body.long(number));
            made.event(SAMPLE + 1, |body| body.long(-1));
        }
        let types = [(SAMPLE, "jdk.Sample", &[("number", LONG)][..]), (SAMPLE + 1, "jdk.Other", &[])];
        made.metadata(&types);
        let bytes = if is_finished { made.finish() } else { made.unfinished() };
        let span = Recording::new(&bytes).unwrap().chunks()[0];
        let chunk = Chunk::read_selecting(&bytes, &span, |class| &*class.name == "jdk.Sample").unwrap();
        let selected: Vec<_> = chunk.selected_events().collect();
        let numbers: Vec<i64> = selected.iter().filter_map(|event| event.fields.integer("number")).collect();
        assert_eq!(numbers, (0..count).collect::<Vec<_>>());
        let starts = chunk.events().filter(|event| event.class == 4).map(|event| event.start);
        assert!(starts.eq(selected.iter().map(|event| event.start)));
        // Their headers were read once, unless there are many, or the types were not known.
        assert_eq!(chunk.selected.places.len(), if is_finished { numbers.len().min(4) } else { 0 });
        assert_eq!(chunk.selected.rest == usize::MAX, is_finished && count <= 4);
        assert_eq!(Chunk::read(&bytes, &span).unwrap().selected_events().count(), 0);
    }
}

#[test]
fn elements_with_equal_bytes_have_one_number() {
    use NumberField::{Integer, Key};
    let mut made = FlightWriter::new(true);
    // Integers of all lengths, and so many different ones that some share an entry of the table.
    let longs = [1, 300, 20_000, 1 << 40, -1];
    let mut seed = 1u32;
    let elements: Vec<[i64; 3]> = (0..5_000)
        .map(|at| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let long = |shift: u32| longs[(seed >> shift) as usize % longs.len()];
            if at % 2 == 0 { [24, 16, 28].map(long) } else { [at % 127, at / 127, at % 90] }
        })
        .collect();
    for _ in 0..2 {
        made.event(SAMPLE, |body| {
            body.int(elements.len() as i64);
            elements.iter().flatten().for_each(|number| body.long(*number));
        });
    }
    let element = [("a", LONG), ("b", FlightField::constant(404)), ("c", LONG)];
    made.metadata(&[(11, "E", &element), (SAMPLE, "jdk.Sample", &[("array", FlightField::array(11))])]);
    let bytes = made.finish();
    let chunk = read(&bytes);
    let mut known = ElementNumbers::default();
    let mut asked: Vec<[Option<i64>; 2]> = Vec::new();
    for event in chunk.events() {
        for count in [7, usize::MAX] {
            let array = event.fields.array("array").unwrap();
            let fields = array.fields([Integer("c"), Key("b")]);
            let (mut one_by_one, mut together) = (Vec::new(), Vec::new());
            array.for_each_element(&fields, count, |numbers| one_by_one.push(numbers));
            let number = |numbers| {
                asked.push(numbers);
                asked.len() as u32 - 1
            };
            array.each_numbered(&fields, count, &mut known, number, |number| together.push(number));
            let together: Vec<_> = together.into_iter().map(|number| asked[number as usize]).collect();
            assert_eq!(together, one_by_one, "{count}");
        }
    }
    // Those of at most eight bytes are in the table the second time, most of them.
    assert!((5_000..9_000).contains(&asked.len()), "{}", asked.len());
}

#[test]
fn types_in_types_have_few_steps() {
    // Each has twice as many as the one in it, and then many that contain the largest.
    let names: Vec<String> = (0..200).map(|number| format!("T{number}")).collect();
    let inner = |number: i64| if number < 12 { 101 + number } else { 100 };
    let fields: Vec<_> = (0..200).map(|number| [("a", FlightField::value(inner(number))); 2]).collect();
    let mut types: Vec<FlightType<'_>> =
        (100..).zip(&names).zip(&fields).map(|((id, name), fields)| (id, &**name, &fields[..])).collect();
    types[12].2 = &[("number", LONG)];
    types[13..].iter_mut().for_each(|of| of.2 = &of.2[..1]);
    let mut made = FlightWriter::new(true);
    made.metadata(&types);
    let bytes = made.finish();
    let fields: usize = types.iter().map(|(.., fields)| fields.len()).sum();
    let steps = read(&bytes).plans.step_count();
    assert!((4_096..=2 * 4_096 + 16 * fields).contains(&steps), "{steps} steps of {fields} fields");
}

#[test]
fn times_are_counted_from_the_start_of_the_chunk() {
    let bytes = sample(true).finish();
    let chunk = read(&bytes);
    assert_eq!((chunk.nanos(100), chunk.nanos(1_100)), (1_000_000_000, 2_000_000_000));
    assert_eq!(chunk.duration_nanos(5), 5_000_000);
    assert_eq!(chunk.duration_nanos(i64::MAX), i64::MAX);
}

#[test]
fn a_chunk_without_its_length_ends_with_the_last_whole_event() {
    let whole = sample(true).finish();
    let bytes = sample(true).unfinished();
    let recording = Recording::new(&bytes).unwrap();
    assert_eq!((recording.problems().len(), recording.chunks()[0].end), (0, bytes.len()));
    assert!(recording.chunks()[0].header.is_in_flight() && !recording.chunks()[0].is_whole);
    assert_eq!(read(&bytes).events().count(), 2);
    // Followed by another one, and truncated within an event.
    let bytes = [&bytes[..], &whole, &whole[..whole.len() - 1]].concat();
    let recording = Recording::new(&bytes).unwrap();
    let ends: Vec<usize> = recording.chunks().iter().map(|span| span.end - span.start).collect();
    assert_eq!(ends[..2], [whole.len(); 2]);
    let problem = recording.problems()[0];
    assert_eq!(problem.kind, FlightErrorKind::EventTruncated);
    assert_eq!(problem.offset as usize, 2 * whole.len() + ends[2]);
    let error = Chunk::read(&bytes, &recording.chunks()[2]).unwrap_err();
    assert_eq!(error.kind, FlightErrorKind::NoMetadata);
}

#[test]
fn a_finished_chunk_cut_after_an_event_is_damaged() {
    let mut made = sample(true);
    let cut = made.position();
    made.event(SAMPLE, |body| body.long(1));
    let whole = made.finish();
    let problems = |bytes: &[u8]| {
        let recording = Recording::new(bytes).unwrap();
        recording.problems().iter().map(|problem| (problem.kind, problem.offset)).collect::<Vec<_>>()
    };
    let expected = [(FlightErrorKind::EventTruncated, cut as u64)];
    assert_eq!(problems(&whole), []);
    assert_eq!(problems(&whole[..cut]), expected);
    assert_eq!(problems(&[&whole[..cut], &whole].concat()), expected);
}

#[test]
fn a_torn_chunk_leaves_the_one_after_it_whole() {
    for (first, compressed) in
        [(sample(true).finish(), true), (sample(true).unfinished(), true), (sample(false).finish(), false)]
    {
        let whole = sample(compressed).finish();
        // Within the header, within an event, and in the last one.
        for cut in [40, 69, 75, whole.len() / 2, whole.len() - 1] {
            let bytes = [&first[..cut], &whole].concat();
            let recording = Recording::new(&bytes).unwrap();
            let last = recording.chunks().last().unwrap();
            assert_eq!((last.start, last.end, last.is_whole), (cut, bytes.len(), true), "{cut}");
            assert_eq!(recording.problems().len(), 1, "{cut}");
            assert_eq!(Chunk::read(&bytes, last).unwrap().events().count(), 2);
        }
    }
}

#[test]
fn chunks_after_garbage_are_found() {
    let whole = sample(true).finish();
    let bytes = [&whole[..], &[0; 100], &whole].concat();
    let recording = Recording::new(&bytes).unwrap();
    let starts: Vec<usize> = recording.chunks().iter().map(|span| span.start).collect();
    assert_eq!(starts, [0, whole.len() + 100]);
    assert_eq!(recording.problems()[0].kind, FlightErrorKind::NotAnEvent);
    assert_eq!(recording.problems()[0].offset as usize, whole.len());
}

#[test]
fn what_is_no_recording() {
    let kind = |bytes: &[u8]| Recording::new(bytes).unwrap_err().kind;
    assert_eq!(kind(b""), FlightErrorKind::NotARecording);
    assert_eq!(kind(b"JAVA PROFILE 1.0.2"), FlightErrorKind::NotARecording);
    assert_eq!(kind(b"FLR\0\0\x02"), FlightErrorKind::HeaderTruncated);
    assert_eq!(kind(b"FLR\0\0\0\0\x09"), FlightErrorKind::Version { major: 0, minor: 9 });
}

#[test]
fn types_that_contain_themselves_are_not_read() {
    let mut made = FlightWriter::new(true);
    made.event(SAMPLE, |body| body.long(1));
    made.event(SAMPLE + 1, |body| body.long(5));
    made.event(SAMPLE + 2, |body| (0..100).for_each(|_| body.int(1)));
    made.metadata(&[
        (FIRST, "A", &[("b", FlightField::value(FIRST + 1))]),
        (FIRST + 1, "B", &[("a", FlightField::value(FIRST))]),
        (SAMPLE, "jdk.Circle", &[("a", FlightField::value(FIRST))]),
        (SAMPLE + 1, "jdk.Fine", &[("number", LONG)]),
        (SAMPLE + 2, "jdk.Deep", &[("deep", FlightField::array(SAMPLE + 2)), ("number", LONG)]),
    ]);
    let bytes = made.finish();
    let chunk = read(&bytes);
    let names: Vec<&str> = chunk.events().map(|event| &*event.fields.class().unwrap().name).collect();
    assert_eq!(names, ["jdk.Fine", "jdk.Deep"]);
    let deep = chunk.events().last().unwrap().fields;
    assert_eq!(deep.value(1).unwrap_err().kind, FlightErrorKind::TooDeep);
}

#[test]
fn types_that_double_are_bounded() {
    let names: Vec<String> = (0..40).map(|number| format!("T{number}")).collect();
    let twice = |number: i64| [("a", FlightField::value(101 + number)); 2];
    let fields: Vec<[(&str, FlightField); 2]> = (0..40).map(twice).collect();
    let all: Vec<FlightType<'_>> =
        (100..).zip(&names).zip(&fields).map(|((id, name), fields)| (id, &**name, &fields[..])).collect();
    let mut made = FlightWriter::new(true);
    made.event(100, |body| (0..50).for_each(|_| body.long(1)));
    made.metadata(&[&all[..], &[(140, "Leaf", &[("number", LONG)])]].concat());
    let bytes = made.finish();
    assert_eq!(read(&bytes).events().count(), 0);
}

#[test]
fn arrays_of_values_without_fields_are_empty() {
    let mut made = FlightWriter::new(true);
    made.event(SAMPLE, |body| {
        body.int(1_000);
        body.raw(&[0; 1_000]);
    });
    made.metadata(&[
        (FIRST, "Empty", &[]),
        (SAMPLE, "jdk.Sample", &[("empty", FlightField::array(FIRST)), ("number", LONG)]),
    ]);
    let bytes = made.finish();
    let chunk = read(&bytes);
    let event = chunk.events().next().unwrap().fields;
    assert!(event.array("empty").unwrap().is_empty());
    assert!(matches!(event.get("number"), Some(Value::Integer(0))));
}

#[test]
fn a_damaged_checkpoint_is_a_problem_at_its_offset() {
    let mut made = FlightWriter::new(true);
    let offset = made.position();
    made.checkpoint(404, &[(1, &|body| body.long(1))]);
    made.checkpoint(FIRST, &[(1, &|body| body.long(1))]);
    made.metadata(&[(FIRST, "First", &[("value", LONG)])]);
    let bytes = made.finish();
    let chunk = read(&bytes);
    assert_eq!(chunk.problems.len(), 1);
    assert_eq!(chunk.problems[0].kind, FlightErrorKind::UnknownType(404));
    assert!((offset..offset + 20).contains(&(chunk.problems[0].offset as usize)));
    assert_eq!(
        chunk.counts.iter().map(|count| (count.type_id, count.events)).collect::<Vec<_>>(),
        [(0, 1), (1, 2)]
    );
}

/// Returns a chunk with three samples, and the offsets of events: two samples, the constants and the types.
fn stated() -> (Vec<u8>, [usize; 4]) {
    let mut made = FlightWriter::new(true);
    let sample = |body: &mut FlightValues| (0..2).for_each(|_| body.long(7));
    let first = made.position();
    made.event(SAMPLE, sample);
    let second = made.position();
    made.event(SAMPLE, sample);
    let checkpoint = made.position();
    made.checkpoint(FIRST, &[(7, &|body| body.long(33))]);
    made.event(SAMPLE, sample);
    let metadata = made.position();
    let fields = [("number", LONG), ("first", FlightField::constant(FIRST))];
    made.metadata(&[(FIRST, "First", &[("value", LONG)]), (SAMPLE, "jdk.Sample", &fields)]);
    let bytes = made.finish();
    (bytes, [first, second, checkpoint, metadata])
}

#[test]
fn events_after_damage_are_found_where_the_header_says() {
    let (whole, [first, second, _, metadata]) = stated();
    let events = |bytes: &[u8]| {
        let recording = Recording::new(bytes).unwrap();
        let chunk = Chunk::read(bytes, &recording.chunks()[0]).unwrap();
        let values = chunk.events().map(|event| event.fields.record("first")?.integer("value"));
        let values: Vec<Option<i64>> = values.collect();
        (values, chunk.problems.iter().map(|problem| problem.offset as usize).collect::<Vec<_>>())
    };
    assert_eq!(events(&whole), (vec![Some(33); 3], vec![]));
    // Up to the checkpoint, events are lost.
    for (damaged, found) in [(first, 1), (second, 2)] {
        let mut bytes = whole.clone();
        bytes[damaged] = 0;
        bytes[damaged + 1] = 0;
        assert_eq!(events(&bytes), (vec![Some(33); found], vec![damaged]));
        // Without the checkpoint, only the types are found.
        bytes[16..24].fill(0xff);
        assert_eq!(events(&bytes), (vec![None; found - 1], vec![damaged]));
        // A wrong header is of no use.
        bytes[24..32].copy_from_slice(&(metadata as i64 - 1).to_be_bytes());
        let recording = Recording::new(&bytes).unwrap();
        let error = Chunk::read(&bytes, &recording.chunks()[0]).unwrap_err();
        assert_eq!(error.kind, FlightErrorKind::NoMetadata);
    }
}

#[test]
fn an_event_that_extends_into_a_stated_one_is_damaged() {
    let (whole, [first, second, checkpoint, metadata]) = stated();
    let end = whole.len();
    // Into constants, over them to the start of another event, into types, and over all to the end.
    for (damaged, to, found) in [
        (first, checkpoint + 2, 1),
        (second, metadata, 2),
        (second, metadata - 1, 2),
        (first, metadata + 9, 1),
        (first, end, 1),
        // Constants are lost, but neither events nor types.
        (checkpoint, metadata + 9, 2),
    ] {
        let mut bytes = whole.clone();
        let size = to - damaged;
        bytes[damaged..damaged + 4].copy_from_slice(&[
            (size & 0x7f) as u8 | 0x80,
            (size >> 7 & 0x7f) as u8 | 0x80,
            (size >> 14 & 0x7f) as u8 | 0x80,
            (size >> 21) as u8,
        ]);
        let chunk = read(&bytes);
        let problems: Vec<_> = chunk.problems.iter().map(|problem| (problem.kind, problem.offset)).collect();
        assert_eq!(problems, [(FlightErrorKind::EventOverlaps, damaged as u64)], "{damaged} to {to}");
        let is_known = damaged != checkpoint;
        let values = chunk.events().map(|event| event.fields.record("first")?.integer("value"));
        assert_eq!(values.collect::<Vec<_>>(), vec![is_known.then_some(33); found], "{damaged} to {to}");
    }
}

/// Without the limit, it could be read up to the end of the chunk, however small its checkpoint is.
#[test]
fn a_constant_that_exceeds_its_checkpoint_is_none() {
    let mut made = FlightWriter::new(true);
    made.checkpoint(
        5,
        &[(1, &|body| body.text("whole")), (2, &|body| body.raw(&[3, 100])), (3, &|body| body.text("after"))],
    );
    made.event(SAMPLE, |body| (1..=3).for_each(|key| body.long(key)));
    made.event(SAMPLE, |body| body.raw(&[b'x'; 200]));
    let names = ["a", "b", "c"].map(|name| (name, FlightField::constant(5)));
    made.metadata(&[(SAMPLE, "jdk.Sample", &names)]);
    let bytes = made.finish();
    let chunk = read(&bytes);
    let event = chunk.events().next().unwrap().fields;
    let found = ["a", "b", "c"].map(|name| event.text(name, 1));
    assert_eq!(found.map(|text| text.map(String::from)), [Some("w".to_owned()), None, None]);
    assert_eq!(
        ["a", "b", "c"].map(|name| event.constant(name).unwrap().number().is_some()),
        [true, false, false]
    );
    assert_eq!(chunk.problems.len(), 1);
}

/// Any number of values can refer to one long text.
#[test]
fn what_is_cut_off_of_a_constant_is_not_skipped() {
    const UNITS: usize = 100;
    let mut made = FlightWriter::new(true);
    made.metadata(&[(SAMPLE, "jdk.Sample", &[("name", FlightField::constant(5))])]);
    made.event(SAMPLE, |body| body.long(1));
    made.checkpoint(
        5,
        &[(1, &|body| [&[4, UNITS as u8][..], &[b'a'; UNITS]].iter().for_each(|of| body.raw(of)))],
    );
    let bytes = made.finish();
    let span = Recording::new(&bytes).unwrap().chunks()[0];
    let tables = Arc::clone(Chunk::read(&bytes, &span).unwrap().tables());
    // From the third unit on, the bytes end no integer: skipping them fails.
    let mut changed = bytes.clone();
    changed[bytes.len() - UNITS + 2..].fill(0xff);
    let chunk = Chunk::from_tables(&changed, &span, tables);
    let name = |max_bytes| chunk.events().next().unwrap().fields.text("name", max_bytes).map(String::from);
    assert_eq!(name(2).as_deref(), Some("aa"));
    assert_eq!(name(UNITS), None);
}

/// Frames of the JVM are not constants. Each of many keys could refer to one long value.
#[test]
fn elements_that_are_keys_are_left_out() {
    let mut made = FlightWriter::new(true);
    made.checkpoint(FIRST, &[(1, &|body| body.long(33))]);
    made.event(SAMPLE, |body| [3, 1, 1, 1].into_iter().for_each(|number| body.long(number)));
    let keys = FlightField { is_array: true, ..FlightField::constant(FIRST) };
    made.metadata(&[(FIRST, "First", &[("value", LONG)]), (SAMPLE, "jdk.Sample", &[("keys", keys)])]);
    let bytes = made.finish();
    let chunk = read(&bytes);
    let array = chunk.events().next().unwrap().fields.array("keys").unwrap();
    assert_eq!((array.len(), array.records().count()), (3, 3));
    let fields = array.fields([NumberField::Integer("value")]);
    let mut visits = 0;
    array.for_each_element(&fields, usize::MAX, |_| visits += 1);
    array.each_numbered(&fields, usize::MAX, &mut ElementNumbers::default(), |_| 0, |_| visits += 1);
    assert_eq!(visits, 0);
}
