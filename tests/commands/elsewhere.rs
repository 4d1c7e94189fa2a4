//! Files of other producers: redactors, the serviceability agent, profilers that write recordings. What each shows right is in
//! samples/README.md.

use std::fs;

use crate::kit::mutate::walk::Map;
use crate::kit::process::{Folder, sample, stderr};

/// Copies a file of `samples/reports` into a folder; returns its path.
fn copy(folder: &Folder, name: &str) -> String {
    folder.write(name, fs::read(format!("samples/reports/{name}")).unwrap())
}

/// Returns the number of CPU samples that are counted, and whether they are wall-clock samples.
fn cpu(folder: &Folder, arguments: &[&str]) -> (u64, bool) {
    let json = folder.json(&[&["cpu"], arguments].concat());
    (json["total"]["samples"].as_u64().unwrap(), json["is_wall_clock"].as_bool().unwrap())
}

#[test]
fn sleeping_threads_are_no_cpu_samples() {
    let folder = Folder::new();
    let wall = copy(&folder, "wall.jfr");
    assert_eq!(cpu(&folder, &[&wall]), (25, true));
    assert_eq!(cpu(&folder, &[&wall, "--state", "STATE_SLEEPING"]), (75, false));
    assert_eq!(cpu(&folder, &[&wall, "--state", "runnable,sleeping"]), (100, false));
    let said = stderr(&folder.run(&["cpu", &wall]));
    assert!(said.contains("25 in STATE_RUNNABLE; not counted: 75 in STATE_SLEEPING"), "{said}");
    let wrong = folder.run(&["cpu", &wall, "--state", "parked"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("STATE_RUNNABLE (25)"), "{}", stderr(&wrong));
    // Others count the same.
    let summary = folder.json(&["summary", &wall]);
    assert_eq!(summary["rows"][0]["cpu_samples"]["samples"], 25, "{summary}");
    let text = String::from_utf8(folder.stdout(&["convert", &wall, "--sections", "cpu"])).unwrap();
    assert!(text.contains("CPU SAMPLES BEGIN (total = 25)"), "{text}");
    // What they leave out is said.
    for arguments in
        [&["convert", &wall, "--sections", "cpu"][..], &["flamegraph", &wall, "--format", "folded"]]
    {
        let said = stderr(&folder.run(arguments));
        assert!(said.contains("not counted: 75 in STATE_SLEEPING"), "{said}");
    }
    let text = String::from_utf8(folder.stdout(&["summary", &wall])).unwrap();
    assert!(text.contains("75 jdk.ExecutionSample in STATE_SLEEPING"), "{text}");
    // The innermost frames: of one event for many samples, too.
    let four = copy(&folder, "wall4.jfr");
    assert_eq!(cpu(&folder, &[&four]), (25, true));
    assert_eq!(cpu(&folder, &[&four, "--state", "sleeping"]).0, 3750);
}

#[test]
fn events_of_other_producers_are_read() {
    let folder = Folder::new();
    let jdk9 = copy(&folder, "jdk9.jfr");
    assert_eq!(cpu(&folder, &[&jdk9]), (100, false));
    assert_eq!(folder.json(&["sites", &jdk9])["matching"]["allocated_bytes"], 1_048_576);
    assert_eq!(folder.json(&["threads", "--started", &jdk9])["rows"].as_array().unwrap().len(), 1);
    assert_eq!(cpu(&folder, &[&copy(&folder, "datadog.jfr")]), (25, true));
    let malloc = copy(&folder, "malloc.jfr");
    let sites = folder.json(&["sites", &malloc]);
    assert_eq!(sites["matching"]["allocated_bytes"], 6400, "{sites}");
    assert_eq!(sites["rows"][0]["class"], "<native memory>", "{sites}");
    // Why there is nothing is only said if it is known.
    let said = stderr(&folder.run(&["cpu", &malloc]));
    assert!(said.contains("it contains 100 profiler.Malloc") && !said.contains("short"), "{said}");
}

#[test]
fn waits_are_no_contention() {
    let folder = Folder::new();
    let summary = folder.json(&["summary", &copy(&folder, "waits.jfr")]);
    let row = &summary["rows"][0];
    assert!(row["contention"].is_null() && row["parks"].is_null(), "{row}");
    assert_eq!(row["monitor_waits"]["total_ms"], 5000, "{row}");
}

#[test]
fn an_event_of_size_zero_loses_only_itself() {
    let folder = Folder::new();
    let zero = copy(&folder, "zero.jfr");
    let output = folder.run(&["cpu", &zero, "--format", "json"]);
    assert_eq!(output.status.code(), Some(3));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let states = json["sample_states"].as_array().unwrap();
    assert_eq!(states.iter().map(|state| state["samples"].as_u64().unwrap()).sum::<u64>(), 99, "{json}");
    assert!(stderr(&output).contains("skipped 12 bytes with at least 1 event"), "{}", stderr(&output));
}

#[test]
fn a_class_histogram_is_read_whatever_its_name() {
    let folder = Folder::new();
    let histogram = copy(&folder, "histogram.hprof");
    let answer = folder.json(&["histo", &histogram]);
    assert_eq!(answer["rows"][0]["class"], "byte[]", "{answer}");
    assert_eq!(answer["rows"][0]["shallow_bytes"], 381_056, "{answer}");
    let output = folder.run(&["overview", &histogram]);
    let said = stderr(&output);
    assert!(output.status.code() == Some(2) && said.contains("jcmd PID GC.heap_dump FILE"), "{said}");
}

#[test]
fn a_wrong_length_with_which_nothing_is_lost_is_a_note() {
    let folder = Folder::new();
    for name in ["perfetto5764-overshoot.hprof", "vvm237-unpatched-middle.hprof"] {
        let doctor = folder.json(&["doctor", &copy(&folder, name)]);
        assert_eq!(doctor["verdict"], "odd", "{name}: {doctor}");
        assert_eq!(doctor["dump"]["is_damaged"], false, "{name}: {doctor}");
        assert_eq!(doctor["rows"][0]["kind"], "wrong_length", "{name}: {doctor}");
    }
}

/// hprof-analyzer marks what it redacted with a record of its own.
#[test]
fn a_complete_record_of_an_unknown_tag_is_a_note() {
    let folder = Folder::new();
    let dump = fs::read("samples/reports/perfetto5764-overshoot.hprof").unwrap();
    let marker = [&[0xde, 0, 0, 0, 0, 0, 0, 0, 14][..], b"HPROF-REDACT\x01\0"].concat();
    let head = 31;
    for at in [head, dump.len()] {
        let marked = [&dump[..at], &marker, &dump[at..]].concat();
        let doctor = folder.json(&["doctor", &folder.write("marked.hprof", marked)]);
        assert_eq!((&doctor["dump"]["is_damaged"], &doctor["verdict"]), (&false.into(), &"odd".into()));
        let rows = doctor["rows"].as_array().unwrap();
        let note = rows.iter().find(|row| row["kind"] == "unsupported_record").unwrap();
        assert_eq!(note["text"], "1 record with the unknown tag 0xde, 14 bytes; skipped");
    }
}

#[test]
fn roots_that_the_serviceability_agent_does_not_write_are_missed() {
    let folder = Folder::new();
    let dump = copy(&folder, "jhsdb.hprof.zst");
    assert_eq!(folder.json(&["info", &dump])["rows"][0]["writer"], "serviceability_agent");
    assert_eq!(folder.json(&["doctor", &dump])["account"]["retained_sizes"], "lower_bounds");
    let leaks = String::from_utf8(folder.run(&["leaks", &dump]).stdout).unwrap();
    assert!(leaks.contains("may be alive") && !leaks.contains("will be collected"), "{leaks}");
    let threads = folder.json(&["threads", "--stack", &dump]);
    let stack = |name: &str| {
        let thread = threads["rows"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        let frames = thread["frames"].as_array().unwrap().iter();
        frames.map(|frame| frame["method"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(stack("main").last().unwrap(), "main", "{threads}");
    assert!(stack("session-keeper").iter().any(|method| method.starts_with("lambda$main")), "{threads}");
    assert!(stack("C2 CompilerThread0").is_empty(), "{threads}");
}

/// Returns a dump in which `write` overwrites the elements of each primitive array, given its type code and the size of an
/// element.
fn overwritten(dump: &[u8], write: impl Fn(u8, usize, &mut [u8])) -> Vec<u8> {
    let map = Map::of(dump).unwrap();
    let mut copy = dump.to_vec();
    for array in map.inner.iter().filter(|spot| spot.tag == 0x23) {
        let start = array.at + 1 + map.id_bytes + 9;
        let kind = dump[start - 1];
        let width = match kind {
            4 | 8 => 1,
            5 | 9 => 2,
            6 | 10 => 4,
            _ => 8,
        };
        write(kind, width, &mut copy[start..array.end]);
    }
    copy
}

/// Returns a dump with the first elements of its arrays, as SapMachine's limits write it.
fn limited(dump: &[u8], text: usize, other: usize) -> Vec<u8> {
    overwritten(dump, |kind, width, elements| {
        let limit = if matches!(kind, 5 | 8) { text } else { other };
        let left = elements.len().min(limit * width);
        elements[left..].fill(0);
    })
}

#[test]
fn contents_that_were_removed_are_no_waste() {
    let folder = Folder::new();
    for name in ["jdk17", "jdk25-compact"] {
        let dump = sample(&format!("jdk/{name}"));
        let marks = overwritten(&dump, |kind, _, elements| match kind {
            8 => elements.fill(b'?'),
            5 => elements.chunks_exact_mut(2).for_each(|unit| unit.copy_from_slice(&[0, b'?'])),
            _ => elements.fill(0),
        });
        let forms = [
            ("whole", dump.clone(), "complete", ""),
            (
                "zeros",
                overwritten(&dump, |_, _, elements| elements.fill(0)),
                "removed",
                "all primitive arrays",
            ),
            ("marks", marks, "removed", "all primitive arrays"),
            (
                "limit",
                limited(&dump, 120, 8),
                "limited",
                "the first 120 elements of each byte[] and char[], and the first 8 of each other",
            ),
            (
                "short",
                limited(&dump, 16, usize::MAX / 8),
                "limited",
                "the first 16 elements of each byte[] and char[]",
            ),
        ];
        let path = |form: &str| folder.text(&format!("{name}-{form}.hprof"));
        for (form, bytes, contents, text) in &forms {
            let file = path(form);
            fs::write(&file, bytes).unwrap();
            assert_eq!(folder.json(&["info", &file])["rows"][0]["contents"], *contents, "{name} {form}");
            let found = folder.json(&["doctor", &file])["rows"].to_string();
            assert_eq!(found.contains("contents_missing"), *contents != "complete", "{found}");
            assert!(found.contains(text), "{found}");
            let said = stderr(&folder.run(&["overview", &file]));
            assert!(said.contains(text), "{said}");
        }
        // Nothing is concluded from what is not there.
        let wasted = |form: &str, kind: &str| {
            let rows = folder.json(&["waste", &path(form)])["rows"].as_array().unwrap().clone();
            rows.iter().find(|row| row["kind"] == kind).map_or(0, |row| row["wasted_bytes"].as_u64().unwrap())
        };
        for kind in ["duplicate_strings", "duplicate_arrays", "constant_arrays", "unused_array_ends"] {
            assert!(wasted("whole", kind) > 0, "{kind}");
            // Empty texts are equal, and builders state how much of their array they use.
            let most = if kind == "unused_array_ends" { wasted("whole", kind) } else { 500 };
            assert!(wasted("zeros", kind).max(wasted("marks", kind)) <= most, "{kind}");
            assert!(wasted("limit", kind) <= wasted("whole", kind), "{kind}");
        }
        assert!(wasted("limit", "duplicate_strings") > 0);
        let names = |form: &str| folder.json(&["threads", &path(form)])["rows"].clone();
        for row in names("zeros").as_array().unwrap() {
            // Virtual threads have no name.
            assert!(row["name"] == "(contents removed)" || row["name"] == "", "{row}");
        }
        assert_eq!(names("limit"), names("whole"));
        // A name beyond the limit is cut.
        let short: Vec<_> =
            names("short").as_array().unwrap().iter().map(|row| row["name"].clone()).collect();
        for (whole, short) in names("whole").as_array().unwrap().iter().zip(short) {
            let whole = whole["name"].as_str().unwrap();
            assert_eq!(short, whole.chars().take(16).collect::<String>(), "{whole}");
        }
        let strings = folder.json(&["strings", &path("marks"), "--top", "5"]);
        assert!(strings["total"]["unreadable"].as_u64() > Some(1000), "{}", strings["total"]);
        assert_eq!(strings["total"]["distinct"], 1, "only the empty text is known");
        let said = stderr(&folder.run(&["strings", &path("limit")]));
        assert!(said.contains("first 120 elements"), "{said}");
        let length = "SELECT max(length) AS longest FROM strings";
        let longest = |form: &str| folder.json(&["sql", &path(form), length])["rows"][0]["longest"].clone();
        assert_eq!(longest("marks"), longest("whole"));
    }
}

/// Sizes and referrers that the writer of the dumps computed by hand.
#[test]
fn flattened_objects_are_part_of_their_holders() {
    let folder = Folder::new();
    let truth: serde_json::Value =
        serde_json::from_slice(&fs::read("samples/reports/flat/truth.json").unwrap()).unwrap();
    for (name, truth) in truth.as_object().unwrap() {
        let dump = folder.write(&format!("{name}.hprof"), sample(&format!("reports/flat/{name}")));
        let found = folder.json(&["doctor", &dump])["rows"].to_string();
        let flat = truth["flat_objects"].as_u64().unwrap();
        let objects = if flat == 1 { "object is" } else { "objects are" };
        let text = format!("{flat} value {objects} flattened into");
        assert_eq!(found.contains(&text), flat > 0, "{name}: {found}");
        assert_eq!(found.contains("flattened"), flat > 0, "{name}: {found}");
        let is_within = |object: &serde_json::Value, key: &str| {
            let shown = &folder.json(&["show", &dump, object[0].as_str().unwrap()])["rows"][0];
            let bytes = shown[key].as_u64().unwrap();
            let range = object[1].as_u64().unwrap()..=object[2].as_u64().unwrap();
            assert!(range.contains(&bytes), "{name}: {key} of {object} is {bytes}");
        };
        truth["holders"].as_array().unwrap().iter().for_each(|holder| is_within(holder, "shallow_bytes"));
        truth["retained"].as_array().unwrap().iter().for_each(|object| is_within(object, "retained_bytes"));
        for pair in truth["samples"].as_array().unwrap() {
            let id = format!("{:#x}", pair[1].as_u64().unwrap());
            let shown = &folder.json(&["show", &dump, &id])["rows"][0];
            assert_eq!(shown["shallow_bytes"], 0, "{name}: {shown}");
            let referrers = folder.json(&["refs", &dump, &id, "--incoming"]);
            assert_eq!(referrers["rows"][0]["object"], pair[0], "{name}: {referrers}");
        }
        // All sums are one number.
        let histogram = folder.json(&["histo", &dump, "--top", "0"]);
        let info = &folder.json(&["info", &dump])["rows"][0];
        let rows = histogram["rows"].as_array().unwrap();
        let bytes: u64 = rows.iter().map(|row| row["shallow_bytes"].as_u64().unwrap()).sum();
        assert_eq!(info["shallow_bytes"], bytes, "{name}");
        let sum = folder.json(&["sql", &dump, "SELECT sum(shallow_bytes) AS bytes FROM objects"]);
        assert_eq!(sum["rows"][0]["bytes"], bytes, "{name}");
    }
    let dump = folder.path("03-nested.hprof");
    let dump = dump.to_str().unwrap();
    let shown = &folder.json(&["show", dump, "0x2c"])["rows"][0];
    assert_eq!(shown["label"], "flattened in Line 0x2a");
    let path = String::from_utf8(folder.stdout(&["paths-to-root", dump, "0x2c"])).unwrap();
    assert!(path.contains("Line 0x2a \"flattened in Rect 0xf00015f0\""), "{path}");
}

#[test]
fn reachable_objects_are_counted_by_class() {
    let folder = Folder::new();
    let dump = folder.write("list.hprof", sample("reports/flat/10-retained"));
    let thread = folder.json(&["instances", &dump, "java.lang.Thread"])["rows"][0]["object"].clone();
    let thread = thread.as_str().unwrap();
    let reachable = folder.json(&["refs", &dump, thread, "--reachable"]);
    let rows = reachable["rows"].as_array().unwrap();
    let sum = |key: &str| rows.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(reachable["reachable_objects"], sum("objects"));
    assert_eq!(reachable["reachable_bytes"], sum("shallow_bytes"));
    // By a walk along the references that SQL shows.
    let walk = format!(
        "WITH RECURSIVE found(id) AS (SELECT object FROM objects WHERE object = {thread} UNION \
         SELECT target FROM refs JOIN found ON referrer = id) \
         SELECT count(*) AS objects, sum(shallow_bytes) AS bytes FROM found JOIN objects ON object = id"
    );
    let walked = folder.json(&["sql", &dump, &walk])["rows"][0].clone();
    assert_eq!(
        (&walked["objects"], &walked["bytes"]),
        (&reachable["reachable_objects"], &reachable["reachable_bytes"])
    );
    assert!(sum("objects") > 10, "{reachable}");
}

#[test]
fn filler_is_no_waste() {
    let folder = Folder::new();
    let dump = folder.write("jdk25.hprof", sample("jdk/jdk25"));
    let unreachable = folder.run(&["histo", &dump, "--unreachable", "--format", "json", "--top", "0"]);
    let text = stderr(&unreachable);
    let json: serde_json::Value = serde_json::from_slice(&unreachable.stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let ints = rows.iter().find(|row| row["class"] == "int[]").unwrap();
    let count = ints["instances"].as_u64().unwrap();
    assert!(count > 100 && text.contains("unreachable int[]"), "{text}");
    let sum = |key: &str| rows.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
    let waste = folder.json(&["waste", &dump, "--kind", "unreachable"]);
    let row = &waste["rows"][0];
    assert_eq!(row["objects"], sum("instances") - count, "{row}");
    assert_eq!(row["wasted_bytes"], sum("shallow_bytes") - ints["shallow_bytes"].as_u64().unwrap(), "{row}");
    // Older JVMs dump no filler as int[].
    let dump = folder.write("jdk17-all.hprof", sample("jdk/jdk17-all"));
    assert!(!stderr(&folder.run(&["histo", &dump, "--unreachable"])).contains("filler"));
}

/// The agents of JDK 1.2 to 1.4 (JVMPI) give arrays the class of their elements, in sites and in heap dumps, or none.
#[test]
fn arrays_that_state_the_class_of_their_elements() {
    let folder = Folder::new();
    let truth = fs::read("samples/reports/jvmpi/truth.json").unwrap();
    let truth: serde_json::Value = serde_json::from_slice(&truth).unwrap();
    for (name, of) in truth.as_object().unwrap() {
        let dump = format!("samples/reports/jvmpi/{name}.hprof");
        if let Some(wanted) = of["sites"].as_array() {
            let json = folder.json(&["sites", &dump, "--top", "0"]);
            let columns =
                ["class", "trace", "live_bytes", "live_instances", "allocated_bytes", "allocated_instances"];
            let row = |row: &serde_json::Value| columns.map(|column| row[column].clone());
            let mut found: Vec<String> =
                json["rows"].as_array().unwrap().iter().map(|of| format!("{:?}", row(of))).collect();
            let mut wanted: Vec<String> = wanted
                .iter()
                .map(|of| format!("{:?}", [0, 1, 2, 3, 4, 5].map(|at| of[at].clone())))
                .collect();
            found.sort();
            wanted.sort();
            assert_eq!(found, wanted, "{name}");
        }
        let Some(wanted) = of["instances"].as_object() else { continue };
        let histo = folder.json(&["histo", &dump, "--top", "0"]);
        let rows = histo["rows"].as_array().unwrap();
        for row in rows.iter().filter(|row| row["class"] != "java.lang.Class") {
            let class = row["class"].as_str().unwrap();
            assert_eq!(wanted.get(class), Some(&row["instances"]), "{name}: {class}");
        }
        assert_eq!(rows.len(), wanted.len() + 1, "{name}");
        // The graph has the same classes and sizes.
        let sum = folder.json(&[
            "sql",
            &dump,
            "SELECT count(*) AS objects, sum(shallow_bytes) AS bytes FROM objects",
        ]);
        let bytes: u64 = rows.iter().map(|row| row["shallow_bytes"].as_u64().unwrap()).sum();
        assert_eq!(sum["rows"][0]["bytes"], bytes, "{name}");
        let of_class = "SELECT count(*) AS objects FROM objects WHERE class = 'java.lang.String[]'";
        let arrays = folder.json(&["sql", &dump, of_class]);
        assert_eq!(arrays["rows"][0]["objects"], wanted["java.lang.String[]"], "{name}");
    }
}
