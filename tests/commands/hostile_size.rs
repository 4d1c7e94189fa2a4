//! Small files that claim much, and large ones that hold little: a million threads, names of hundreds of megabytes and of
//! four gigabytes. Each command ends, with the memory that a dump of that kind may take, or less.
//!
//! No time is measured: what would be quadratic does not end before the watchdog barks.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::kit::portion;
use crate::kit::process;
use hprof_writer::{
    ClassDump, DumpWriter, Elements, HeapWriter, IdSize, Root, StartThread, Type, Value, Version,
};

/// A hundred times what these take on a slow machine, in a debug build.
const BARK: Duration = Duration::from_secs(120);
/// Bytes of an answer that are looked at.
const LOOKED_AT: u64 = 64 << 20;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("dump.hprof")
    }

    /// Runs a command with a limit of `kib` KiB of address space; returns its exit code and answer.
    fn run(&self, kib: u64, command: &str, more: &[&str]) -> (i32, String) {
        let mut shell = process::in_addresses(kib, command, &self.file(), more);
        let child = shell.arg("--index-dir").arg(self.0.path().join("index")).spawn().unwrap();
        let (output, behind) = process::finish_within(child, BARK, LOOKED_AT);
        let (status, said) = (output.status, process::stderr(&output));
        assert!(behind == 0, "{command} {more:?}: {behind} bytes beyond {LOOKED_AT}");
        assert!(said.len() < 100_000, "{command} {more:?}: {} bytes on stderr", said.len());
        let code = status.code().unwrap_or_else(|| panic!("{command} {more:?}: {status}: {said}"));
        assert!(
            (0..=3).contains(&code) && !said.contains("panicked"),
            "{command} {more:?}: {status}: {said}"
        );
        (code, String::from_utf8(output.stdout).unwrap())
    }
}

const THREADS: u32 = 1_000_000;

/// Writes START THREAD, a stack trace, a thread object and two roots for each of `threads` threads.
fn many_threads(path: &Path, threads: u32) {
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    for (id, text) in
        (1..).zip(["java/lang/Object", "java/lang/Thread", "worker", "run", "Worker.java", "tid"])
    {
        out.string(id, text);
    }
    out.load_class(1, 0x1000, 0, 1);
    out.load_class(2, 0x2000, 0, 2);
    out.frame(0x10, 4, 3, 5, 2, 77);
    let object = |thread: u32| 0x10_0000_0000 + u64::from(thread) * 16;
    for thread in 1..=threads {
        out.trace(thread, thread, &[0x10]);
        let start =
            StartThread { thread, object: object(thread), trace: thread, name: 3, group: 3, parent_group: 3 };
        out.start_thread(&start);
    }
    let mut heap = HeapWriter::new(IdSize::Eight);
    heap.class_dump(&ClassDump { id: 0x1000, ..ClassDump::default() });
    let fields = [(6, Type::Long)];
    heap.class_dump(&ClassDump {
        id: 0x2000,
        superclass: 0x1000,
        fields: &fields,
        instance_size: 8,
        ..ClassDump::default()
    });
    for thread in 1..=threads {
        heap.instance(object(thread), 0, 0x2000, &[Value::Long(i64::from(thread))]);
        heap.root(object(thread), Root::ThreadObject { thread, trace: thread });
        heap.root(object(threads + 1 - thread), Root::JavaFrame { thread, frame: 0 });
    }
    out.heap_segment(&heap);
    out.heap_dump_end();
    out.finish().write_file(path).unwrap();
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_million_threads_are_listed_counted_and_found() {
    let place = Place::new();
    many_threads(&place.file(), THREADS);
    // The file has 190 MB, the index about as much: mapped, they count.
    let most = 2 << 20;
    let (code, info) = place.run(most, "info", &["--format", "json"]);
    assert_eq!(code, 0);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["rows"][0]["gc_roots"]["thread object"], THREADS);
    let (code, threads) = place.run(most, "threads", &["--top", "3", "--format", "json"]);
    let threads: serde_json::Value = serde_json::from_str(&threads).unwrap();
    assert_eq!((code, threads["rows"].as_array().unwrap().len()), (0, 3));
    assert_eq!(threads["rows"][0]["frames"][0]["method"], "run");
    for (command, more) in portion::some(&[
        ("threads", &[][..]),
        ("threads", &["--started", "--top", "3"]),
        ("roots", &["--top", "5"]),
        ("paths-to-root", &["0x1000000010"]),
        ("show", &["0x1000000010"]),
        ("leaks", &[]),
        ("leaks", &["--threshold", "1", "--format", "json"]),
        ("leaks", &["--format", "markdown"]),
        ("waste", &[]),
        ("waste", &["--format", "json"]),
    ]) {
        let (code, answer) = place.run(most, command, more);
        assert!(matches!(code, 0 | 1) && answer.len() < 10_000, "{command}: {code}: {} bytes", answer.len());
    }
}

/// A table of all rows takes no more memory than one of some: it is written while it is made.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn all_rows_of_a_table_need_little_memory() {
    let place = Place::new();
    many_threads(&place.file(), THREADS / 5);
    let mut first = place.run(700_000, "roots", &["--top", "0"]);
    assert_eq!(first.0, 0);
    // Titles, two roots for each thread, a line for each kind, a line of totals and such.
    let rows = first.1.lines().count();
    assert!((400_000..400_100).contains(&rows), "{rows}");
    for (command, more) in [
        ("threads", &["--top", "0"][..]),
        ("instances", &["java.lang.Thread", "--top", "0"]),
        #[cfg(feature = "sql")]
        ("sql", &["SELECT * FROM roots", "--top", "0"]),
        ("oql", &["SELECT * FROM java.lang.Thread", "--top", "0"]),
    ] {
        first = place.run(700_000, command, more);
        let rows = first.1.lines().count();
        assert!(first.0 == 0 && rows > 200_000, "{command}: {}, {rows} lines", first.0);
    }
}

#[test]
fn many_threads_are_compared() {
    let place = Place::new();
    many_threads(&place.file(), THREADS / 10);
    let file = place.file();
    let itself = file.to_str().unwrap();
    for by in ["threads", "roots", "strings"] {
        let (code, answer) = place.run(800_000, "diff", &[itself, "--group-by", by, "--format", "json"]);
        assert!(code == 1 && answer.len() < 10_000, "{by}: {code}: {} bytes", answer.len());
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let rows = answer["rows"].as_array().unwrap();
        assert_eq!(answer["total"]["rows"], 0, "{by}");
        match by {
            // None has a name.
            "threads" => assert_eq!((rows.len(), &rows[0]["threads_new"]), (1, &(THREADS / 10).into())),
            "roots" => assert_eq!(rows.len(), 3),
            _ => assert_eq!(rows.len(), 0),
        }
    }
}

/// A dump with a class, a field and a method of a name of `length` bytes, of which there need not be all in the file.
fn long_name(path: &Path, stated: u32, there: u64) {
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    out.string(2, "java/lang/Object");
    out.load_class(1, 0x1000, 0, 1);
    out.load_class(2, 0x2000, 0, 2);
    out.frame(0x10, 1, 1, 1, 1, 77);
    out.trace(1, 1, &[0x10]);
    let mut heap = HeapWriter::new(IdSize::Eight);
    let fields = [(1, Type::Int)];
    heap.class_dump(&ClassDump { id: 0x2000, ..ClassDump::default() });
    heap.class_dump(&ClassDump {
        id: 0x1000,
        superclass: 0x2000,
        fields: &fields,
        instance_size: 4,
        ..ClassDump::default()
    });
    for object in 0..3 {
        heap.instance(0x9000 + object * 16, 1, 0x1000, &[Value::Int(7)]);
        heap.root(0x9000 + object * 16, Root::StickyClass);
    }
    out.heap_segment(&heap);
    out.heap_dump_end();
    let rest = out.into_bytes();
    let header = rest.iter().position(|byte| *byte == 0).unwrap() + 13;
    let mut file = File::create(path).unwrap();
    file.write_all(&rest[..header]).unwrap();
    // STRING IN UTF8: the tag, a time, the length, the id; then what a hole in the file reads as.
    file.write_all(&[1, 0, 0, 0, 0]).unwrap();
    file.write_all(&stated.to_be_bytes()).unwrap();
    file.write_all(&1u64.to_be_bytes()).unwrap();
    let end = header as u64 + 17 + there;
    file.set_len(end).unwrap();
    if u64::from(stated) == there + 8 {
        file.seek(SeekFrom::Start(end)).unwrap();
        file.write_all(&rest[header..]).unwrap();
    }
}

#[test]
fn a_name_that_claims_four_gigabytes_takes_none() {
    let place = Place::new();
    for stated in [u32::MAX, 0x8000_0000, 0x7FFF_FFFF, 0x1000_0000] {
        long_name(&place.file(), stated, 5000);
        for command in ["info", "histo", "dominators", "leaks", "convert", "threads", "summary"] {
            let (code, _) = place.run(600_000, command, &[]);
            assert_eq!(code, 3, "{command}: {stated:#x}");
        }
    }
}

/// Three hundred million NULs, each of which takes six characters to show.
#[test]
fn a_name_of_hundreds_of_megabytes_does_not_fill_the_memory_or_the_screen() {
    const LENGTH: u64 = 300_000_000;
    let place = Place::new();
    long_name(&place.file(), u32::try_from(LENGTH).unwrap() + 8, LENGTH);
    for (command, more) in [
        ("info", &[][..]),
        ("histo", &[]),
        ("histo", &["--format", "json"]),
        ("classes", &["--format", "csv"]),
        ("dominators", &["--all", "--format", "csv"]),
        ("leaks", &[]),
        ("leaks", &["--format", "json"]),
        ("leaks", &["--format", "markdown"]),
        ("waste", &[]),
        ("waste", &["--format", "json"]),
        ("show", &["0x9000"]),
        ("show", &["0x1000"]),
        ("instances", &["java.lang.Object", "--subclasses"]),
        ("traces", &[]),
        ("paths-to-root", &["0x9000"]),
        ("oql", &["SELECT o FROM INSTANCEOF java.lang.Object o"]),
    ] {
        // The dump is mapped, 300 MB of it.
        let (code, answer) = place.run(1_200_000, command, more);
        // A name is truncated at 64 KB, the maximum in a class file. Suspects are shown with all their evidence.
        let longest = if command == "leaks" { 16 << 20 } else { 4 << 20 };
        assert!(
            matches!(code, 0 | 1) && answer.len() < longest,
            "{command} {more:?}: {code}, {}",
            answer.len()
        );
    }
    let (code, _) = place.run(1_200_000, "convert", &[]);
    assert_eq!(code, 0);
}

/// Fifty thousand classes with one name of 64 KB, each with a loader of such a class: a megabyte in the file for each
/// three gigabytes of names in an answer. The name is stored once, and a table omits its middle.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_long_name_of_many_classes_is_kept_once() {
    // Each name once more would be more than there is.
    let (classes, most) = if portion::is_whole() { (50_000, 700_000) } else { (10_000, 400_000) };
    let place = Place::new();
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    out.string(1, &format!("com/acme/First{}Last", "x".repeat(65_000)));
    let class = |serial: u32| 0x10_0000 + u64::from(serial) * 64;
    for serial in 1..=classes {
        out.load_class(serial, class(serial), 0, 1);
    }
    let mut heap = HeapWriter::new(IdSize::Eight);
    for serial in 1..=classes {
        let loader = class(serial) + 32;
        heap.class_dump(&ClassDump { id: class(serial), loader, ..ClassDump::default() });
        heap.instance(loader, 0, class(serial), &[]);
        heap.root(loader, Root::StickyClass);
    }
    out.heap_segment(&heap);
    out.heap_dump_end();
    fs::write(place.file(), out.into_bytes()).unwrap();
    for (command, more) in portion::some(&[
        ("histo", &[][..]),
        ("histo", &["--sort", "class"]),
        ("histo", &["--group-by", "loader"]),
        ("histo", &["--group-by", "package"]),
        ("histo", &["--live", "--retained"]),
        ("dominators", &["--group-by", "class"]),
        ("leaks", &["--threshold", "1"]),
        ("leaks", &["--threshold", "1", "--format", "json"]),
        ("leaks", &["--threshold", "1", "--format", "markdown"]),
        ("waste", &[]),
        ("waste", &["--format", "json"]),
        ("info", &[]),
    ]) {
        let (code, answer) = place.run(most, command, more);
        assert!(
            matches!(code, 0 | 1) && answer.len() < 8 << 20,
            "{command} {more:?}: {code}, {} bytes",
            answer.len()
        );
    }
    // All rows: without the middle of the names.
    let (code, answer) = place.run(most + 200_000, "histo", &["--top", "0"]);
    assert_eq!((code, answer.lines().filter(|line| line.ends_with("xLast")).count()), (0, classes as usize));
    let mut names = answer.lines().filter(|line| line.ends_with("xLast"));
    assert!(names.all(|line| line.contains("com.acme.Firstx") && line.contains('…')));
}

/// Objects that refer to themselves and to missing objects.
#[test]
fn traces_that_name_each_other_and_frames_that_are_not_there() {
    let place = Place::new();
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    // A string whose id is that of a class, a frame and a trace; frames that name themselves.
    out.string(0x1000, "a");
    out.load_class(1, 0x1000, 1, 0x1000);
    out.frame(0x1000, 0x1000, 0x1000, 0x1000, 1, i32::MAX);
    out.trace(1, 1, &[0x1000; 1000]);
    out.trace(2, u32::MAX, &[1, 2, 3]);
    out.raw_record(0x05, 0, 20, &[[0, 0, 0, 3], [0, 0, 0, 1], [0xFF; 4], [0; 4], [0; 4]].concat());
    let mut heap = HeapWriter::new(IdSize::Eight);
    let statics = [(0x1000, Value::Object(0x1000))];
    heap.class_dump(&ClassDump {
        id: 0x1000,
        superclass: 0x1000,
        loader: 0x1000,
        signers: 0x1000,
        domain: 0x1000,
        statics: &statics,
        ..ClassDump::default()
    });
    heap.object_array(0x2000, 1, 0x2000, &[0x2000; 100]);
    heap.instance(0x3000, 2, 0x3000, &[Value::Object(0x3000)]);
    heap.prim_array(0x4000, 3, &Elements::of_bytes(b"x"));
    for thread in 0..3 {
        heap.root(0x1000, Root::ThreadObject { thread, trace: thread + 1 });
        heap.root(0x2000, Root::JavaFrame { thread, frame: -1 });
        heap.root(0x3000, Root::JavaFrame { thread: thread + 7, frame: 0 });
    }
    out.heap_segment(&heap);
    out.heap_dump_end();
    fs::write(place.file(), out.into_bytes()).unwrap();
    let file = place.file();
    let itself = file.to_str().unwrap();
    for (command, more) in [
        ("info", &[][..]),
        ("diff", &[itself, "--group-by", "threads", "--format", "json"]),
        ("diff", &[itself, "--group-by", "strings", "--format", "json"]),
        ("diff", &[itself, "--group-by", "waste", "--format", "json"]),
        ("histo", &["--group-by", "loader"]),
        ("traces", &[]),
        ("sites", &[]),
        ("threads", &[]),
        ("loaders", &[]),
        ("classes", &["--tree", "--depth", "0"]),
        ("roots", &[]),
        ("dominators", &["--depth", "1000"]),
        ("leaks", &[]),
        ("leaks", &["--threshold", "1", "--format", "json"]),
        ("leaks", &["--threshold", "1", "--format", "markdown"]),
        ("waste", &[]),
        ("waste", &["--format", "json"]),
        ("paths-to-root", &["0x3000"]),
        ("show", &["0x1000"]),
        ("show", &["0x2000"]),
        ("convert", &[]),
    ] {
        let (_, answer) = place.run(600_000, command, more);
        assert!(answer.len() < 1 << 20, "{command}: {}", answer.len());
    }
}
