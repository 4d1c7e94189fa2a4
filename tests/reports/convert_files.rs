//! `convert` as a process: threads, sections, files, pipes, full disks, damage, dates.

use std::process::Stdio;

use crate::kit::process::{Folder, stderr};
use crate::kit::texts::{code, sample_path};
use hprof_writer::{
    AllocSite, AllocSites, DumpWriter, HeapWriter, IdSize, Options, StartThread, Value, Version, damage,
    examples,
};

const SAMPLE: &str = "samples/jdk/jdk11.hprof.zst";
const AGENT: &str = "samples/agent/all-cpu.hprof.zst";

fn zoo() -> Vec<u8> {
    examples::zoo().write(&Options::hotspot()).bytes()
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let place = Folder::new();
    for sample in
        ["jdk/jdk8.hprof.zst", "public/android-leak_service_binder.hprof.zst", "agent/all-cpu.hprof.zst"]
    {
        let dump = sample_path(sample);
        let dump = dump.to_str().unwrap();
        let one = place.convert(dump, &["--threads", "1"]);
        for threads in ["2", "7"] {
            let more = place.convert(dump, &["--threads", threads]);
            assert!(more == one, "{sample}: {threads} threads write another text");
        }
    }
}

/// A text in its sections: the head, and what begins with each of these words.
fn cut(text: &str) -> Vec<&str> {
    let mut places: Vec<usize> =
        ["\nTHREAD START (", "\nTRACE 3", "\nHEAP DUMP BEGIN", "\nSITES BEGIN", "\nCPU SAMPLES BEGIN"]
            .iter()
            .map(|word| text.find(word).map_or(text.len(), |at| at + 1))
            .collect();
    places.insert(0, 0);
    places.push(text.len());
    places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

#[test]
fn each_section_alone_is_as_it_is_among_the_others() {
    let place = Folder::new();
    let all = place.convert(AGENT, &[]);
    let parts = cut(&all);
    assert!(parts.iter().all(|part| part.len() > 200), "the sample has all sections");
    let names = ["threads", "traces", "heap", "sites", "cpu"];
    for (name, part) in names.iter().zip(&parts[1..]) {
        let alone = place.convert(AGENT, &["--sections", name]);
        assert!(alone == format!("{}{part}", parts[0]), "{name}");
    }
    assert!(place.convert(AGENT, &["--sections", "cpu,threads"]) == [parts[0], parts[1], parts[5]].concat());
    assert!(
        place.convert(AGENT, &["--sections", "sites", "--sections", "cpu,sites"])
            == [parts[0], parts[4], parts[5]].concat()
    );
    assert!(place.convert(AGENT, &["--sections", &names.join(",")]) == all);
    assert_eq!(code(&place.run(&["convert", AGENT, "--sections", "nothing"])), 2);
    // A section that the dump does not have is left out.
    let alone = place.convert(SAMPLE, &["--sections", "cpu,threads"]);
    assert!(alone.ends_with("\n--------\n\n"));
}

#[test]
fn a_file_holds_what_stdout_shows() {
    let place = Folder::new();
    let out = place.text("out.txt");
    let output = place.run(&["convert", AGENT, "-o", &out, "--quiet"]);
    assert_eq!((code(&output), output.stdout.len(), stderr(&output).as_str()), (0, 0, ""));
    assert!(std::fs::read_to_string(&out).unwrap() == place.convert(AGENT, &[]));
    // It replaces the existing file.
    let output = place.run(&["convert", SAMPLE, "-o", &out, "--sections", "traces"]);
    assert_eq!(code(&output), 0);
    assert!(std::fs::read_to_string(&out).unwrap() == place.convert(SAMPLE, &["--sections", "traces"]));
}

#[test]
fn a_note_says_that_sites_were_counted() {
    let place = Folder::new();
    let note = "the dump contains no allocation sites";
    assert!(stderr(&place.run(&["convert", SAMPLE])).contains(note));
    assert!(!stderr(&place.run(&["convert", SAMPLE, "--quiet"])).contains(note));
    assert!(!stderr(&place.run(&["convert", SAMPLE, "--sections", "heap"])).contains(note));
    assert!(!stderr(&place.run(&["convert", AGENT])).contains(note));
}

#[test]
fn a_pipe_that_nobody_reads_ends_it_quietly() {
    let place = Folder::new();
    for arguments in
        [&["convert", SAMPLE, "--quiet"][..], &["convert", AGENT, "--quiet", "--sections", "traces"]]
    {
        let mut child =
            place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
    }
    // One that is closed after some of the heap dump.
    let mut child = place
        .command(&["convert", SAMPLE, "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut stdout, &mut [0; 100_000]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_behind_stdout_is_an_error() {
    let place = Folder::new();
    for arguments in [&["convert", SAMPLE][..], &["convert", AGENT, "--sections", "cpu"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = place.command(arguments).stdout(full).output().unwrap();
        assert_eq!(code(&output), 2);
        assert!(stderr(&output).contains("No space left"), "{}", stderr(&output));
    }
}

/// A file may not become larger than some kilobytes: the same to a program as a disk that is full.
#[test]
#[cfg(unix)]
fn a_full_disk_leaves_nothing_and_what_was_there() {
    let place = Folder::new();
    // The index exists already: it is not the file that does not fit.
    place.convert(SAMPLE, &["--sections", "traces"]);
    let dir = place.path("texts");
    std::fs::create_dir(&dir).unwrap();
    let out = dir.join("out.txt");
    let run = |threads: &str| {
        let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_hprof-cli"), "convert", SAMPLE, "-o"]);
        command.arg(&out).args(["--threads", threads]).env("HPROF_CLI_INDEX_DIR", place.path("index"));
        command.output().unwrap()
    };
    let files =
        || -> Vec<_> { std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect() };
    for threads in ["1", "3"] {
        let output = run(threads);
        let error = stderr(&output);
        assert_eq!(code(&output), 2, "{error}");
        assert!(error.contains("cannot write ") && error.contains("out.txt"), "{error}");
        assert!(files().is_empty(), "{:?}", files());
    }
    std::fs::write(&out, "what was there").unwrap();
    assert_eq!(code(&run("2")), 2);
    assert_eq!(
        (files(), std::fs::read_to_string(&out).unwrap().as_str()),
        (vec!["out.txt".into()], "what was there")
    );
}

#[test]
fn a_file_that_cannot_be_written_is_known_before_the_dump_is_read() {
    let place = Folder::new();
    let dump = place.write("heap.hprof", zoo());
    for out in [place.text("missing/out.txt"), place.text("")] {
        let output = place.run(&["convert", &dump, "-o", &out]);
        assert_eq!(code(&output), 2);
        assert!(stderr(&output).contains("cannot write ") && output.stdout.is_empty(), "{}", stderr(&output));
        assert!(!place.path("index").exists(), "the dump was read");
    }
    // One that can be written, and a dump that cannot be read: nothing appears.
    let out = place.text("out.txt");
    for dump in [place.text("no.hprof"), place.write("bad.hprof", b"JAVA PROFILE 9.9\0")] {
        assert_eq!(code(&place.run(&["convert", &dump, "-o", &out])), 2);
        assert!(!place.path("out.txt").exists());
    }
    assert!(std::fs::read_dir(place.path("")).unwrap().count() <= 3, "something is left over");
}

/// A text becomes a binary dump, not another text.
#[test]
fn a_text_is_converted_to_a_binary_dump() {
    let place = Folder::new();
    let own = place.write("own.txt", place.convert(AGENT, &[]).as_bytes());
    for text in ["samples/agent/monitor.txt", "samples/agent/sites.txt.zst", &own] {
        let output = place.run(&["convert", text, "-o", &place.text("out.hprof")]);
        assert_eq!((code(&output), output.stdout.len()), (0, 0), "{}", stderr(&output));
        let bytes = std::fs::read(place.path("out.hprof")).unwrap();
        assert!(bytes.starts_with(b"JAVA PROFILE 1.0.2\0"));
        let output = place.run(&["convert", text, "--sections", "sites"]);
        assert_eq!((code(&output), output.stdout.len()), (2, 0));
        assert!(stderr(&output).contains("omit them"), "{}", stderr(&output));
    }
}

/// Times of records are microseconds after the time of the head.
#[test]
fn dates_are_those_of_the_records_in_utc() {
    let mut heap = HeapWriter::new(IdSize::Four);
    heap.class_dump(&hprof_writer::ClassDump { id: 0x1000, ..hprof_writer::ClassDump::default() });
    heap.instance(0x2000, 1, 0x1000, &[]);
    // 2024-02-29 23:59:58.900 UTC
    let mut out = DumpWriter::new(Version::V1_0_1, IdSize::Four).created_ms(1_709_251_198_900);
    out.string(1, "a.B");
    out.load_class(1, 0x1000, 1, 1);
    out.time_us(100_000).heap_dump(&heap);
    out.time_us(2_100_000)
        .alloc_sites(&AllocSites { sites: vec![AllocSite::default()], ..AllocSites::default() });
    out.time_us(1_200_000).cpu_samples(1, &[(1, 1)]);
    out.time_us(u32::MAX).cpu_samples(1, &[(1, 1)]);
    let place = Folder::new();
    let text = place.convert(&place.write("dump.hprof", out.finish().bytes()), &[]);
    for line in [
        "JAVA PROFILE 1.0.1, created Thu Feb 29 23:59:58 2024\n\n",
        "HEAP DUMP BEGIN (2 objects, 48 bytes) Thu Feb 29 23:59:59 2024\n",
        "SITES BEGIN (ordered by live bytes) Fri Mar  1 00:00:01 2024\n",
        "CPU SAMPLES BEGIN (total = 2) Fri Mar  1 01:11:33 2024\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    assert!(text.contains("Times are in UTC"));
    // A head without a time, as some writers leave it: the beginning of time, not today.
    let none = DumpWriter::new(Version::V1_0_2, IdSize::Eight).finish().bytes();
    let text = place
        .convert(&place.write("none.hprof", [none, zoo()[31..].to_vec()].concat()), &["--sections", "heap"]);
    assert!(text.starts_with("JAVA PROFILE 1.0.1, created Thu Jan  1 00:00:00 1970\n\n"), "{text}");
}

/// THREAD lines come as they happened.
#[test]
fn threads_start_and_end_in_the_order_of_the_file() {
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight).created_ms(1);
    for (id, text) in [(1, "main"), (2, "a \"quoted\"\nname"), (3, "system")] {
        out.string(id, text);
    }
    let start = |thread, name| StartThread {
        thread,
        object: 0x10 + u64::from(thread),
        name,
        group: 3,
        ..StartThread::default()
    };
    out.start_thread(&start(1, 1));
    out.start_thread(&start(2, 2));
    out.end_thread(1);
    out.heap_segment(&HeapWriter::new(IdSize::Eight));
    // The number again, for another thread.
    out.start_thread(&start(1, 99));
    out.heap_dump_end();
    out.end_thread(2);
    out.end_thread(1);
    let place = Folder::new();
    let dump = place.write("dump.hprof", out.finish().bytes());
    let text = place.convert(&dump, &["--sections", "threads"]);
    let (_, found) = text.split_once("--------\n\n").unwrap();
    let expected = [
        "THREAD START (obj=11, id = 1, name=\"main\", group=\"system\")",
        "THREAD START (obj=12, id = 2, name=\"a \"quoted\"\\nname\", group=\"system\")",
        "THREAD END (id = 1)",
        "THREAD START (obj=11, id = 1, name=\"\", group=\"system\")",
        "THREAD END (id = 2)",
        "THREAD END (id = 1)",
    ];
    assert_eq!(found.lines().collect::<Vec<_>>(), expected);
}

/// Objects by kind that `histo` counts: class objects, and all others.
fn counted(place: &Folder, dump: &str) -> (u64, u64) {
    let output = place.run(&["histo", dump, "--top", "0", "--format", "json"]);
    assert_eq!(code(&output), 3);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["rows"].as_array().unwrap().iter().fold((0, 0), |sum, row| {
        let instances = row["instances"].as_u64().unwrap();
        if row["class"] == "java.lang.Class" {
            (sum.0 + instances, sum.1)
        } else {
            (sum.0, sum.1 + instances)
        }
    })
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn behind_damage_it_goes_on_as_everything_else_does() {
    let place = Folder::new();
    // 6 MB in one record, or in segments of 2 MB.
    let mut model = examples::zoo();
    let class = model.class("a.Node", None, &[("next", hprof_writer::Type::Object)]);
    let objects: Vec<_> = (0..250_000).map(|_| model.instance(class, &[Value::NULL])).collect();
    for segment_bytes in [None, Some(2 << 20)] {
        let options = Options { segment_bytes, ..Options::hotspot() };
        let written = model.write(&options);
        let whole = written.bytes();
        for (damaged, lost) in [(&[125_000][..], 1), (&[60_000, 60_001, 200_000], 3), (&[], 0)] {
            let mut bytes = whole.clone();
            for object in damaged {
                // An unknown tag where an object begins.
                let at = usize::try_from(written.object_at(objects[*object].0).unwrap()).unwrap();
                bytes = damage::with_byte(&bytes, at, 0x77);
            }
            if damaged.is_empty() {
                bytes = damage::cut(&whole, whole.len() * 2 / 3);
            }
            let dump = place.write("dump.hprof", &bytes);
            for threads in ["1", "4"] {
                let output = place.run(&["convert", &dump, "--threads", threads]);
                assert_eq!(code(&output), 3, "{}", stderr(&output));
                assert!(stderr(&output).contains("warning: "), "{}", stderr(&output));
                let text = String::from_utf8(output.stdout).unwrap();
                let lines = |word: &str| text.matches(word).count() as u64;
                let found = (lines("\nCLS "), lines("\nOBJ ") + lines("\nARR "));
                assert_eq!(found, counted(&place, &dump), "{segment_bytes:?} {damaged:?}");
                if lost > 0 {
                    assert_eq!(lines("class=a.Node@"), 250_000 - lost);
                    assert!(text.ends_with("SITES END\n") && text.contains("\nHEAP DUMP END\n"));
                }
            }
            std::fs::remove_dir_all(place.path("index")).unwrap();
        }
    }
}

/// The output for a file with a missing end is a prefix of the whole output.
#[test]
fn a_dump_that_is_cut_gives_what_is_there() {
    let place = Folder::new();
    let whole = zoo();
    let full = place.convert(&place.write("whole.hprof", &whole), &["--sections", "heap"]);
    let dump = place.write("cut.hprof", damage::cut(&whole, whole.len() - 60));
    let output = place.run(&["convert", &dump, "--sections", "heap", "-o", &place.text("out.txt")]);
    assert_eq!(code(&output), 3);
    let text = std::fs::read_to_string(place.path("out.txt")).unwrap();
    let lines = |text: &str| -> Vec<String> {
        let heap = text.split_once("HEAP DUMP BEGIN").unwrap().1;
        let heap = heap.split_once("HEAP DUMP END").unwrap().0;
        heap.lines().skip(1).map(str::to_owned).collect()
    };
    let (found, all) = (lines(&text), lines(&full));
    assert!(found.len() > 30 && found.len() < all.len() && all.starts_with(&found), "{found:#?}");
}
