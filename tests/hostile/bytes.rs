//! Dumps that nobody wrote: every byte changed, cut everywhere, counts that lie. Opening one gives an answer or an error,
//! soon, with little memory, and the same answer each time.

// To count allocations.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout as AllocLayout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use crate::kit::dump::{self, Dump, bytes, digest, digest_graph, whole_dump};
use crate::kit::portion;
use hprof_index::Error;
use hprof_input::file::Compression;
use hprof_parser::mutf8;
use hprof_parser::sniff::sniff;
use hprof_query::frameworks::Frameworks;
use hprof_query::heap_facts;
use hprof_query::leaks::heap_places::HeapPlaces;
use hprof_query::leaks::{self, LeakEvidence};
use hprof_query::waste::{self, FieldGroupBy};
use hprof_values::names;
use hprof_writer::{
    DumpWriter, Elements, HeapModel, HeapTag, HeapWriter, IdSize, Jdk, Layout, Options, Order, Place, Root,
    StackFrame, StatedLength, Type, Value, Version, damage, examples, modified_utf8,
};
use proptest::prelude::*;

/// Remembers the largest allocation, and adds up those of a thread.
struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    LARGEST.fetch_max(bytes, Ordering::Relaxed);
    // None while the thread ends.
    let _ = ALLOCATED.try_with(|all| all.set(all.get().saturating_add(bytes)));
}

/// Returns the sum of the allocations of the current thread so far.
pub fn allocated() -> usize {
    ALLOCATED.get()
}

// SAFETY: All is left to the system's allocator.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: AllocLayout) -> *mut u8 {
        count(layout.size());
        // SAFETY: As the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: AllocLayout) -> *mut u8 {
        count(layout.size());
        // SAFETY: As the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: AllocLayout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: As the caller promises.
        unsafe { System.realloc(block, layout, size) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: AllocLayout) {
        // SAFETY: As the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// No single allocation may be larger, whatever a dump of some kilobytes says.
pub const MOST_BYTES: usize = 16 << 20;
/// No dump of some kilobytes may take longer, even on a busy machine.
pub const MOST_TIME: Duration = Duration::from_secs(20);

/// Returns the size of the largest allocation so far.
pub fn largest_allocation() -> usize {
    LARGEST.load(Ordering::Relaxed)
}

/// Dumps that were opened.
static OPENED: AtomicUsize = AtomicUsize::new(0);

/// The file being opened, and since when.
static WATCHED: Mutex<BTreeMap<usize, (Instant, String)>> = Mutex::new(BTreeMap::new());

/// Ends the process with a message if it lives too long: what hangs cannot be stopped otherwise.
pub struct Watch(usize);

impl Watch {
    pub fn begin(what: String) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        static WATCHER: Once = Once::new();
        WATCHER.call_once(|| drop(std::thread::spawn(Self::look)));
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        WATCHED.lock().unwrap().insert(number, (Instant::now(), what));
        Self(number)
    }

    fn look() {
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let watched = WATCHED.lock().unwrap();
            if let Some((_, what)) = watched.values().find(|(since, _)| since.elapsed() > MOST_TIME) {
                // Not by a macro: the test's output is captured.
                let text = format!("still not opened after {MOST_TIME:?}: {what}\n");
                std::io::stderr().write_all(text.as_bytes()).unwrap();
                std::process::exit(101);
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Ok(mut watched) = WATCHED.lock() {
            watched.remove(&self.0);
        }
    }
}

/// Opens what stands in `dump` now, in every way, and says how it went.
fn survive(dump: &Dump, mutated: &[u8], what: &dyn Fn() -> String) -> bool {
    dump.replace(mutated);
    let watch = Watch::begin(what());
    let opened = dump.try_open();
    let answer = match &opened {
        Ok(heap) => Some(digest(heap.summary())),
        Err(error) => {
            assert!(
                !error.to_string().is_empty()
                    && hprof_cli::advice(error).is_none_or(|advice| !advice.is_empty())
            );
            None
        }
    };
    let indexed = dump.try_open_graph();
    match (&answer, &indexed) {
        (Some(answer), Ok((heap, graph))) => {
            let id_size = heap.summary().id_size();
            let again = digest(heap.summary());
            let differ = answer.lines().zip(again.lines()).find(|(one, other)| one != other);
            assert!(*answer == again, "{}: two answers: {differ:#?}", what());
            let all = digest_graph(graph, bytes(heap), id_size);
            // A disk without room says nothing of the dump.
            let places = HeapPlaces::new(&whole_dump(heap, graph), &Frameworks::builtin(), 1);
            let _ = places
                .and_then(|places| leaks::leaks(&whole_dump(heap, graph), 1, &places, LeakEvidence::All));
            heap_facts::facts(&whole_dump(heap, graph));
            let question =
                waste::WasteQuery { kinds: Vec::new(), group_by: FieldGroupBy::Field, examples: 3 };
            let _ = waste::waste(&whole_dump(heap, graph), &question);
            assert!(!graph.is_damaged(), "{}", what());
            // Reading an index back is tested elsewhere: now and then is enough here.
            if OPENED.fetch_add(1, Ordering::Relaxed).is_multiple_of(8) {
                let (heap, graph) = dump.open_graph();
                assert!(!heap.is_fresh(), "{}", what());
                assert!(digest(heap.summary()) == again, "{}: another answer from the index", what());
                assert!(digest_graph(&graph, bytes(&heap), id_size) == all, "{}: another graph", what());
            }
        }
        (None, Err(_)) => {}
        _ => panic!("{}: one opens, the other does not: {:?} {:?}", what(), opened.err(), indexed.err()),
    }
    drop(watch);
    let largest = LARGEST.swap(0, Ordering::Relaxed);
    assert!(largest <= MOST_BYTES, "{}: {largest} bytes at once", what());
    answer.is_some()
}

/// A heap with one of everything, as small as can be.
fn tiny() -> HeapModel {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let object = model.class("java.lang.Object", None, &[]);
    model.class("java.lang.Class", Some(object), &[]);
    let pair = model.class_with_statics(
        "P",
        Some(object),
        &[("a", Type::Object), ("n", Type::Short)],
        &[("s", Value::Int(7))],
    );
    let pairs = model.array_class(pair);
    let first = model.instance_with(pair, &[("n", Value::Short(3))]);
    let second = model.instance_with(pair, &[("a", first.into())]);
    model.object_array(pairs, &[first, second]);
    model.prim_array(Elements::of_bytes(b"abc"));
    let trace = model.trace(1, &[StackFrame::new(pair, "m", "P.java", 1)]);
    model.root(second, Root::ThreadObject { thread: 1, trace });
    model.root(first, Root::JavaFrame { thread: 1, frame: 0 });
    model
}

/// Two forms of it: small identifiers in one HEAP DUMP, large ones in segments followed by the strings.
fn tiny_dumps() -> [Vec<u8>; 2] {
    let segments = Options { segment_bytes: Some(100), strings: Place::Last, ..Options::hotspot() };
    [tiny().write(&Options::agent()).bytes(), tiny().write(&segments).bytes()]
}

fn every_position(dump: &Dump, base: &[u8], change: impl Fn(usize) -> Vec<(String, Vec<u8>)>) {
    let (mut opened, mut positions) = (0, 0);
    for at in (0..base.len()).step_by(portion::step()) {
        positions += 1;
        for (how, mutated) in change(at) {
            if mutated != base {
                opened += usize::from(survive(dump, &mutated, &|| format!("{how} at {at:#x}")));
            }
        }
    }
    // Most mutations leave a header that can be read.
    assert!(opened * 2 > positions, "{opened} of {positions} opened");
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn every_byte_of_a_tiny_dump_can_be_any() {
    for base in tiny_dumps() {
        every_position(&Dump::of(&[]), &base, |at| {
            let values = [0, 0xFF, base[at] ^ 0x80, base[at] ^ 1];
            values.map(|value| (format!("{value:#04x}"), damage::with_byte(&base, at, value))).to_vec()
        });
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn bytes_of_a_tiny_dump_can_go_and_come() {
    for base in tiny_dumps() {
        every_position(&Dump::of(&[]), &base, |at| {
            let with = |part: &[u8], rest: usize| [&base[..at], part, &base[rest..]].concat();
            vec![
                ("one byte less".to_owned(), with(&[], at + 1)),
                ("a record's tag more".to_owned(), with(&[0x1C], at)),
            ]
        });
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn any_count_of_a_tiny_dump_can_be_huge() {
    for base in tiny_dumps() {
        every_position(&Dump::of(&[]), &base[..base.len() - 3], |at| {
            let numbers = [u32::MAX, 0x7FFF_FFFF];
            numbers.map(|number| (format!("{number:#x}"), damage::with_u4(&base, at, number))).to_vec()
        });
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_tiny_dump_can_be_cut_anywhere() {
    for base in tiny_dumps() {
        let dump = Dump::of(&[]);
        let header = base.iter().position(|byte| *byte == 0).unwrap() + 13;
        for len in (0..base.len()).step_by(portion::step()) {
            let opens = survive(&dump, &damage::cut(&base, len), &|| format!("cut to {len}"));
            assert_eq!(opens, len >= header, "cut to {len}");
        }
    }
}

#[test]
fn a_header_alone_is_a_dump_that_ends_before_its_heap() {
    for version in Version::ALL {
        for id_size in IdSize::ALL {
            let dump = Dump::of(&DumpWriter::new(version, id_size).into_bytes());
            let (heap, graph) = dump.open_graph();
            let summary = heap.summary();
            assert!(graph.objects.is_empty() && graph.tree.objects() == 0);
            assert!(summary.classes().is_empty() && summary.roots().is_empty());
            assert_eq!((summary.facts().heap_dumps.get(), summary.facts().heap_dump.get()), (0, 0));
            let all = dump::problems(summary);
            assert!(summary.is_damaged() && all.contains("before a heap dump begins"), "{all}");
        }
    }
}

#[test]
fn headers_that_are_none() {
    let with = |name: &str, size: u32| [name.as_bytes(), &size.to_be_bytes(), &[0; 8]].concat();
    for (bytes, words) in [
        (Vec::new(), "empty"),
        (with("JAVA PROFILE 1.0.2\0", 0), "invalid object ID size: 0 bytes"),
        (with("JAVA PROFILE 1.0.2\0", 16), "invalid object ID size: 16 bytes"),
        (with("JAVA PROFILE 1.0.2\0", u32::MAX), "invalid object ID size: 4294967295 bytes"),
        (with("JAVA PROFILE 1.0.4\0", 8), "version"),
        (with("JAVA PROFILE 2.0\0", 8), "not a heap dump"),
        (with("java profile 1.0.2\0", 8), "not a heap dump"),
        (b"JAVA PROFILE 1.0.2".to_vec(), "header is truncated"),
        (b"JAVA PROFILE 1.0.2\0\0\0".to_vec(), "header is truncated"),
    ] {
        let dump = Dump::of(&bytes);
        let error = dump.try_open().unwrap_err();
        assert!(
            matches!(error, Error::Format { .. }) && error.to_string().contains(words),
            "{error}: {words}"
        );
        assert!(error.to_string().contains("dump.hprof"), "{error}");
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn counts_that_lie_allocate_nothing() {
    for id_size in IdSize::ALL {
        let bodies: [&dyn Fn(&mut HeapWriter); 6] = [
            &|heap| {
                heap.instance_stating(0x2000, 0, 0x1000, u32::MAX, &[1, 2, 3]);
            },
            &|heap| {
                heap.object_array_stating(0x2000, 0, 0x1000, u32::MAX, &[0x2000]);
            },
            &|heap| {
                heap.prim_array_stating(0x2000, 0, u32::MAX, 11, &[0; 16]);
            },
            &|heap| {
                heap.prim_array_stating(0x2000, 0, 3, 12, &[0; 16]);
            },
            &|heap| {
                heap.prim_array_stating(0x2000, 0, 3, 2, &[0; 16]);
            },
            &|heap| {
                heap.prim_array(0x2000, 0, &Elements::NoData(Type::Long, u32::MAX));
            },
        ];
        for (number, body) in bodies.into_iter().enumerate() {
            let mut heap = HeapWriter::new(id_size);
            heap.root(0x2000, Root::StickyClass);
            body(&mut heap);
            for tag in [HeapTag::Dump, HeapTag::Segment] {
                for stated in [StatedLength::Real, StatedLength::Zero, StatedLength::Exactly(u32::MAX)] {
                    let mut out = DumpWriter::new(Version::V1_0_2, id_size);
                    out.heap_record(tag, stated, &heap);
                    out.heap_dump_end();
                    survive(&Dump::of(&[]), &out.into_bytes(), &|| format!("{number} {tag:?} {stated:?}"));
                }
            }
        }
        // Tables that count more than they hold.
        for tag in 0..=0xFF {
            let mut out = DumpWriter::new(Version::V1_0_2, id_size);
            out.raw_record(tag, 0, 40, &[0xFF; 40]);
            out.raw_record(tag, u32::MAX, u32::MAX, &[0xFF; 40]);
            survive(&Dump::of(&[]), &out.into_bytes(), &|| format!("record {tag:#04x}"));
        }
    }
}

/// Ids of every kind, alone: nothing, one, all bits, far apart.
#[test]
fn ids_can_be_any() {
    for ids in [[0, 0], [1, 2], [u64::MAX, u64::MAX - 1], [0, u64::MAX], [8, 1 << 63], [u64::MAX - 7, 8]] {
        let mut heap = HeapWriter::new(IdSize::Eight);
        for id in ids {
            heap.instance(id, 0, id, &[Value::Object(id)]);
            heap.root(id, Root::Unknown);
            heap.class_dump(&hprof_writer::ClassDump {
                id,
                superclass: id,
                loader: id,
                ..Default::default()
            });
            heap.prim_array(id, 0, &Elements::of_bytes(&[1]));
        }
        let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
        out.heap_segment(&heap);
        out.heap_dump_end();
        survive(&Dump::of(&[]), &out.into_bytes(), &|| format!("{ids:x?}"));
    }
}

/// A class above itself, and two above each other.
#[test]
fn superclasses_can_go_in_circles() {
    let mut model = tiny();
    let ids: Vec<_> = model.classes().iter().map(|class| class.id).collect();
    let mut heap = HeapWriter::new(IdSize::Eight);
    for (class, above) in [(0, 1), (1, 0), (2, 2)] {
        let (id, superclass) = (ids[class].0, ids[above].0);
        let fields = [(0x4560_0000, Type::Long)];
        heap.class_dump(&hprof_writer::ClassDump { id, superclass, fields: &fields, ..Default::default() });
        heap.instance(id + 0x1_0000, 0, id, &[Value::Long(1)]);
    }
    model.root(ids[0], Root::StickyClass);
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    out.heap_segment(&heap);
    out.heap_dump_end();
    assert!(survive(&Dump::of(&[]), &out.into_bytes(), &|| "circles".to_owned()));
}

/// One change to a dump.
#[derive(Debug, Clone)]
enum Edit {
    Set(usize, u8),
    SetFour(usize, u32),
    Insert(usize, Vec<u8>),
    Delete(usize, usize),
    Copy(usize, usize, usize),
    Cut(usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = || any::<usize>();
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, value)| Edit::Set(at, value)),
        2 => (at(), prop_oneof![any::<u32>(), 0..300u32]).prop_map(|(at, value)| Edit::SetFour(at, value)),
        1 => (at(), prop::collection::vec(any::<u8>(), 1..20)).prop_map(|(at, part)| Edit::Insert(at, part)),
        1 => (at(), 1..60usize).prop_map(|(at, len)| Edit::Delete(at, len)),
        1 => (at(), at(), 1..400usize).prop_map(|(from, to, len)| Edit::Copy(from, to, len)),
        1 => at().prop_map(Edit::Cut),
    ]
}

fn apply(base: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut out = base.to_vec();
    for edit in edits {
        // The header is damaged elsewhere: more can be seen after it.
        let place = |at: usize| 31 + at % (out.len() - 40).max(1);
        match edit {
            Edit::Set(at, value) => out = damage::with_byte(&out, place(*at), *value),
            Edit::SetFour(at, value) => out = damage::with_u4(&out, place(*at), *value),
            Edit::Insert(at, part) => {
                let at = place(*at);
                out.splice(at..at, part.iter().copied());
            }
            Edit::Delete(at, len) => {
                let at = place(*at);
                out.drain(at..(at + len).min(out.len()));
            }
            Edit::Copy(from, to, len) => {
                let (from, to) = (place(*from), place(*to));
                let part = out[from..(from + len).min(out.len())].to_vec();
                out.splice(to..to, part);
            }
            Edit::Cut(at) => out = damage::cut(&out, place(*at)),
        }
        out.resize(out.len().max(50), 0);
    }
    out
}

/// The first bytes of a sample, unpacked.
fn sample(name: &str, len: u64) -> Vec<u8> {
    let packed = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)).unwrap();
    Compression::Zstd.peek(&packed, len).0
}

/// A larger heap with many objects in order, so that runs, blocks of 64 and pieces all occur.
fn many_objects() -> HeapModel {
    let mut model = examples::zoo();
    let object = model.classes()[0].id;
    let pair = model.class("t.Pair", Some(object), &[("left", Type::Object), ("n", Type::Int)]);
    for number in 0..300 {
        let left = model.prim_array(Elements::of_bytes(&vec![1; number % 7]));
        model.instance_with(pair, &[("left", left.into())]);
    }
    model
}

fn bases() -> Vec<Vec<u8>> {
    let shuffled = Options { order: Order::Shuffled(3), segment_bytes: Some(500), ..Options::hotspot() };
    let mut bases = vec![
        many_objects().write(&Options::agent()).bytes(),
        many_objects().write(&shuffled).bytes(),
        many_objects().write(&Options::android()).bytes(),
        sample("public/visualvm-small_heap.hprof.zst", 150_000),
        sample("public/android-leak_service_binder.hprof.zst", 100_000),
    ];
    let heap = sample("public/netbeans-heap_dump.hprof.zst", 300_000);
    bases.push([&heap[..31], &heap[150_000..]].concat());
    for id_size in IdSize::ALL {
        bases.push(examples::every_kind(Version::V1_0_3, id_size).bytes());
    }
    bases
}

proptest! {
    #![proptest_config(crate::kit::strategies::property(30))]

    #[test]
    fn larger_dumps_can_be_changed_anywhere(edits in prop::collection::vec(edit(), 1..6)) {
        static BASES: std::sync::LazyLock<Vec<Vec<u8>>> = std::sync::LazyLock::new(bases);
        let dump = Dump::of(&[]);
        for (number, base) in BASES.iter().enumerate() {
            survive(&dump, &apply(base, &edits), &|| format!("base {number}, {edits:?}"));
        }
    }
}

proptest! {
    #![proptest_config(crate::kit::strategies::property(300))]

    #[test]
    fn any_bytes_are_no_dump_or_one(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        sniff(&bytes);
        let header = |id_size| [b"JAVA PROFILE 1.0.2\0\0\0\0".as_slice(), &[id_size], &[0; 8], &bytes].concat();
        let dump = Dump::of(&[]);
        for all in [bytes.clone(), header(4), header(8)] {
            survive(&dump, &all, &|| format!("{all:x?}"));
        }
    }

    #[test]
    fn any_bytes_have_a_text(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let text = mutf8::decode(&bytes);
        names::package(&names::java_class_name(&text));
    }

    #[test]
    fn any_text_has_a_class_name(text in "\\PC{0,20}", array in "\\[{0,3}L?") {
        for name in [format!("{array}{text};"), format!("{array}{text}"), format!("{text}/0x{text}")] {
            let shown = names::java_class_name(&name);
            prop_assert!(names::package(&shown).len() <= shown.len());
        }
    }

    #[test]
    fn text_of_a_jvm_is_read_as_it_was(text in any::<String>()) {
        prop_assume!(!text.contains('\\'));
        let written = modified_utf8(&text);
        prop_assert_eq!(mutf8::decode(&written), text.as_str());
        prop_assert_eq!(mutf8::decode(text.as_bytes()), text.as_str());
    }
}

/// Real text around a `Jdk` model, so that the lookups of threads, loaders and properties see broken strings too.
#[test]
fn broken_strings_are_shown_escaped() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let broken = model.class("x.Broken", Some(jdk.object), &[]);
    model.class_mut(broken).stored_name = Some(b"x/Br\xFFken\xED\xA0\x80".to_vec());
    model.instance(broken, &[]);
    let heap = Dump::written(&model.write(&Options::hotspot())).open();
    assert_eq!(dump::count(heap.summary(), "x.Br\\xffken\\ud800"), 1);
}
