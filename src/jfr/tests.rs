//! Tests on chunks made here.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use crate::error::FlightErrorKind;
use crate::{Chunk, Event, Recording, Value};

/// Type of a field: ID, and whether it is a constant or an array.
#[derive(Clone, Copy)]
struct Kind(i64, bool, bool);

const LONG: Kind = Kind(4, false, false);
const TEXT: Kind = Kind(5, false, false);
const FIRST: i64 = 10;
const SAMPLE: i64 = 20;

/// A type: ID, name, fields.
type Type<'t> = (i64, &'t str, &'t [(&'t str, Kind)]);

/// Writes a constant.
type Constant<'c> = &'c dyn Fn(&mut Bytes);

/// Bytes in one of the two encodings of integers.
struct Bytes {
    bytes: Vec<u8>,
    compressed: bool,
}

impl Bytes {
    fn number(&mut self, value: i64, width: usize) {
        if !self.compressed {
            self.bytes.extend_from_slice(&value.to_be_bytes()[8 - width..]);
            return;
        }
        let mut left = value.cast_unsigned();
        for _ in 0..8 {
            if left < 0x80 {
                break;
            }
            self.bytes.push(left.to_le_bytes()[0] | 0x80);
            left >>= 7;
        }
        self.bytes.push(left.to_le_bytes()[0]);
    }

    fn int(&mut self, value: i64) {
        self.number(value, 4);
    }

    fn long(&mut self, value: i64) {
        self.number(value, 8);
    }

    fn text(&mut self, text: &str) {
        self.bytes.push(3);
        self.int(i64::try_from(text.len()).unwrap());
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

/// A chunk that is being written.
struct Made {
    bytes: Vec<u8>,
    compressed: bool,
}

impl Made {
    fn new(compressed: bool) -> Self {
        let mut bytes = b"FLR\0\0\x02\0\x01".to_vec();
        bytes.resize(68, 0);
        bytes[32..40].copy_from_slice(&1_000_000_000i64.to_be_bytes());
        bytes[48..56].copy_from_slice(&100i64.to_be_bytes());
        bytes[56..64].copy_from_slice(&1_000i64.to_be_bytes());
        bytes[67] = compressed.into();
        Self { bytes, compressed }
    }

    fn event(&mut self, type_id: i64, fields: impl FnOnce(&mut Bytes)) {
        let mut body = Bytes { bytes: Vec::new(), compressed: self.compressed };
        body.long(type_id);
        fields(&mut body);
        let length = body.bytes.len() + 4;
        let size = u32::try_from(length).unwrap();
        if self.compressed {
            // Four bytes whatever the size.
            let part = |at: u32| (size >> (7 * at)).to_le_bytes()[0] & 0x7f;
            self.bytes.extend([part(0) | 0x80, part(1) | 0x80, part(2) | 0x80, part(3)]);
        } else {
            self.bytes.extend(size.to_be_bytes());
        }
        self.bytes.extend(body.bytes);
    }

    fn metadata(&mut self, types: &[Type<'_>]) {
        let mut strings: Vec<String> = Vec::new();
        let mut tree = Bytes { bytes: Vec::new(), compressed: self.compressed };
        let mut string = |tree: &mut Bytes, text: &str| {
            let known = strings.iter().position(|string| string == text);
            let index = known.unwrap_or_else(|| {
                strings.push(text.to_owned());
                strings.len() - 1
            });
            tree.int(i64::try_from(index).unwrap());
        };
        let count = |number: usize| i64::try_from(number).unwrap();
        string(&mut tree, "root");
        tree.int(0);
        tree.int(count(types.len()));
        for (id, name, fields) in types {
            string(&mut tree, "class");
            tree.int(2);
            for (key, value) in [("id", id.to_string()), ("name", (*name).to_owned())] {
                string(&mut tree, key);
                string(&mut tree, &value);
            }
            tree.int(count(fields.len()));
            for (name, Kind(of, is_constant, is_array)) in *fields {
                string(&mut tree, "field");
                tree.int(4);
                let dimension = if *is_array { "1" } else { "0" };
                for (key, value) in [
                    ("name", *name),
                    ("class", &of.to_string()),
                    ("constantPool", &is_constant.to_string()),
                    ("dimension", dimension),
                ] {
                    string(&mut tree, key);
                    string(&mut tree, value);
                }
                tree.int(0);
            }
        }
        self.event(0, |body| {
            (0..3).for_each(|_| body.long(1));
            body.int(count(strings.len()));
            strings.iter().for_each(|string| body.text(string));
            body.bytes.extend_from_slice(&tree.bytes);
        });
    }

    /// Adds a checkpoint with constants of one type.
    fn checkpoint(&mut self, type_id: i64, constants: &[(i64, Constant<'_>)]) {
        self.event(1, |body| {
            (0..3).for_each(|_| body.long(0));
            body.bytes.push(0);
            body.int(1);
            body.long(type_id);
            body.int(i64::try_from(constants.len()).unwrap());
            for (key, value) in constants {
                body.long(*key);
                value(body);
            }
        });
    }

    fn finish(mut self) -> Vec<u8> {
        let length = i64::try_from(self.bytes.len()).unwrap();
        self.bytes[8..16].copy_from_slice(&length.to_be_bytes());
        self.bytes
    }
}

const PRIMITIVES: [Type<'static>; 2] = [(4, "long", &[]), (5, "java.lang.String", &[])];

fn types<'t>(of: &[Type<'t>]) -> Vec<Type<'t>> {
    PRIMITIVES.into_iter().chain(of.iter().copied()).collect()
}

/// A chunk with two samples: a number, a name that is a constant, and an array of pairs.
fn sample(compressed: bool) -> Made {
    let mut made = Made::new(compressed);
    let sample = |body: &mut Bytes| {
        body.long(-7);
        body.bytes.push(2);
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
        ("pairs", Kind(11, false, true)),
        ("missing", Kind(404, true, false)),
        ("first", Kind(FIRST, true, false)),
    ];
    made.metadata(&types(&[
        (FIRST, "First", &[("value", LONG)]),
        (11, "Pair", &pair),
        (SAMPLE, "jdk.Sample", &fields),
    ]));
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
        assert_eq!(event.class().unwrap().name, "jdk.Sample");
        assert_eq!(event.integer("number"), Some(-7));
        assert_eq!(event.text("name").unwrap(), "first");
        let pairs = event.array("pairs").unwrap();
        let numbers: Vec<i64> = pairs.records().filter_map(|pair| pair.integer("number")).collect();
        assert_eq!((pairs.len(), numbers), (2, vec![1, 2]));
        // Of an unknown type: the key is known, the constant is not.
        assert!(event.record("missing").is_none());
        assert_eq!(event.constant("missing").unwrap().key, 3);
        // The last constant of a key counts.
        assert_eq!(event.record("first").unwrap().integer("value"), Some(99));
        assert!(event.get("none").is_none());
    }
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
    let bytes = sample(true).bytes;
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
    let mut made = Made::new(true);
    made.event(SAMPLE, |body| body.long(1));
    made.event(SAMPLE + 1, |body| body.long(5));
    made.event(SAMPLE + 2, |body| (0..100).for_each(|_| body.int(1)));
    made.metadata(&types(&[
        (FIRST, "A", &[("b", Kind(FIRST + 1, false, false))]),
        (FIRST + 1, "B", &[("a", Kind(FIRST, false, false))]),
        (SAMPLE, "jdk.Circle", &[("a", Kind(FIRST, false, false))]),
        (SAMPLE + 1, "jdk.Fine", &[("number", LONG)]),
        (SAMPLE + 2, "jdk.Deep", &[("deep", Kind(SAMPLE + 2, false, true)), ("number", LONG)]),
    ]));
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
    let fields: Vec<[(&str, Kind); 2]> = (0..40)
        .map(|number| [("a", Kind(101 + number, false, false)); 2].map(|(_, kind)| ("a", kind)))
        .collect();
    let all: Vec<Type<'_>> =
        (100..).zip(&names).zip(&fields).map(|((id, name), fields)| (id, &**name, &fields[..])).collect();
    let mut made = Made::new(true);
    made.event(100, |body| (0..50).for_each(|_| body.long(1)));
    made.metadata(&types(&[&all[..], &[(140, "Leaf", &[("number", LONG)])]].concat()));
    let bytes = made.finish();
    assert_eq!(read(&bytes).events().count(), 0);
}

#[test]
fn arrays_of_values_without_fields_are_empty() {
    let mut made = Made::new(true);
    made.event(SAMPLE, |body| {
        body.int(1_000);
        body.bytes.extend([0; 1_000]);
    });
    made.metadata(&types(&[
        (FIRST, "Empty", &[]),
        (SAMPLE, "jdk.Sample", &[("empty", Kind(FIRST, false, true)), ("number", LONG)]),
    ]));
    let bytes = made.finish();
    let chunk = read(&bytes);
    let event = chunk.events().next().unwrap().fields;
    assert!(event.array("empty").unwrap().is_empty());
    assert!(matches!(event.get("number"), Some(Value::Integer(0))));
}

#[test]
fn a_damaged_checkpoint_is_a_problem_at_its_offset() {
    let mut made = Made::new(true);
    let offset = made.bytes.len();
    made.checkpoint(404, &[(1, &|body| body.long(1))]);
    made.checkpoint(FIRST, &[(1, &|body| body.long(1))]);
    made.metadata(&types(&[(FIRST, "First", &[("value", LONG)])]));
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
