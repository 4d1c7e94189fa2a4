//! Native memory that was not freed, and the memory of a process over time. Right values are of async-profiler's own converter and
//! of the JDK's `jfr print` (samples/README.md).

use hprof_writer::flight_native::{NativeEvent, native_memory};
use serde_json::Value;

use crate::kit::process::{Folder, stderr};

const NATIVE: &str = "samples/flight/native-memory.jfr.zst";
const MEMORY: &str = "samples/flight/jdk25-memory.jfr.zst";

/// Returns the path of a sample from any folder.
fn path(name: &str) -> String {
    std::fs::canonicalize(name).unwrap().to_str().unwrap().to_owned()
}

#[test]
fn what_was_not_freed_is_what_async_profiler_says() {
    let (folder, native) = (Folder::new(), path(NATIVE));
    let sites = folder.json(&["sites", &native, "--event", "malloc", "--top", "0"]);
    assert_eq!(sites["matching"]["allocated_bytes"], 40_280_261);
    let rows = sites["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["samples"].as_u64().unwrap()).sum::<u64>(), 1636);
    // Its 327 stacks have no lines, which make 371 of them.
    assert_eq!(rows.len(), 371);
    assert_eq!(sites["event"], "profiler.Malloc, profiler.Free");
    assert!(rows.iter().all(|row| !row["method"].as_str().unwrap().ends_with("malloc_hook")));
    let facts = &sites["unfreed_memory"];
    assert_eq!((&facts["mallocs"], &facts["frees"]), (&10_483.into(), &8603.into()));
    assert_eq!(facts["tail_percent"], 10.0);
    let folded = folder.stdout(&["flamegraph", &native, "--event", "malloc", "--format", "folded"]);
    let folded = String::from_utf8(folded).unwrap();
    let weights = folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    assert_eq!((weights.clone().count(), weights.sum::<u64>()), (327, 40_280_261));
    // Without a selection all mallocs count, and the other is named.
    for arguments in [&["sites", &native][..], &["sites", &native, "--event", "malloc-total"]] {
        let all = folder.json(arguments);
        assert_eq!(all["event"], "profiler.Malloc");
        assert!(all["unfreed_memory"].is_null());
        assert!(all["matching"]["allocated_bytes"].as_u64().unwrap() > 200_000_000);
        assert!(stderr(&folder.run(arguments)).contains("--event malloc counts only"), "{arguments:?}");
    }
}

/// Returns a malloc.
fn malloc(ticks: i64, address: i64, bytes: i64) -> NativeEvent {
    NativeEvent { ticks, address, malloc: Some((bytes, 1)) }
}

#[test]
fn notes_say_what_is_left_out() {
    let folder = Folder::new();
    let free = |ticks, address| NativeEvent { ticks, address, malloc: None };
    let events = [
        malloc(100, 1, 1000),
        malloc(110, 1, 2000),
        malloc(120, 2, 500),
        free(130, 2),
        free(140, 3),
        malloc(1100, 4, 4000),
    ];
    let file = folder.write("native.jfr", native_memory(100, &["take"], &events));
    let output = folder.run(&["sites", &file, "--event", "malloc"]);
    let said = stderr(&output);
    for text in [
        "2.0 KiB in 1 of 4 mallocs were not freed (2 frees)",
        "the last 10 percent of the recording, after 1970-01-01T00:00:01.900Z, are too young to count: 1 malloc of 3.9 KiB",
        "1 malloc reused an address without a free in between",
        "1 free without a malloc",
    ] {
        assert!(said.contains(text), "{text}: {said}");
    }
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("not freed") && table.contains("<native memory> in a.B.take"), "{table}");
    assert_eq!(table.matches("2,000").count(), 2, "the row and the total: {table}");
    let facts = &folder.json(&["sites", &file, "--event", "malloc"])["unfreed_memory"];
    let number = |key: &str| facts[key].as_u64().unwrap();
    let counts = ["lost_frees", "unmatched_frees", "young_mallocs", "young_bytes"].map(number);
    assert_eq!(counts, [1, 1, 1, 4000]);
    assert_eq!(facts["counted_until"], "1970-01-01T00:00:01.900Z");
    assert_eq!(facts["last_event_time"], "1970-01-01T00:00:02.000Z");
    // All that was not freed is too young; and a recording without frees.
    let young = [malloc(100, 1, 1), free(101, 1), malloc(200, 2, 8)];
    let young = folder.write("young.jfr", native_memory(100, &["take"], &young));
    let output = folder.run(&["sites", &young, "--event", "malloc"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("too young to count: 1 malloc of 8 B"), "{}", stderr(&output));
    let nofree = folder.write("nofree.jfr", native_memory(100, &["take"], &[malloc(100, 1, 7)]));
    let said = stderr(&folder.run(&["flamegraph", &nofree, "--event", "malloc", "--format", "folded"]));
    assert!(said.contains("contains no frees"), "{said}");
}

#[test]
fn events_are_selected_only_where_there_are_such() {
    let folder = Folder::new();
    let failed = |arguments: &[&str], text: &str| {
        let output = folder.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(text), "{}", stderr(&output));
    };
    let sites = path("samples/agent/sites.hprof.zst");
    for command in ["sites", "flamegraph"] {
        let file =
            if command == "sites" { &["sites", &sites][..] } else { &["flamegraph", &sites, "-o", "x.svg"] };
        failed(
            &[file, &["--event", "malloc"]].concat(),
            "--event applies only to recordings of Flight Recorder",
        );
    }
    let native = path(NATIVE);
    failed(
        &["flamegraph", &native, "--data", "cpu", "--event", "malloc", "-o", "x.svg"],
        "use it with --data allocated",
    );
    let output = folder.run(&["sites", &native, "--event", "tlab"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no jdk.ObjectAllocationInNewTLAB"), "{}", stderr(&output));
}

/// Returns the value of a figure.
fn figure<'a>(memory: &'a Value, name: &str, category: Option<&str>) -> &'a Value {
    let is_meant = |of: &&Value| of["figure"] == name && of["category"].as_str() == category;
    memory.as_array().unwrap().iter().find(is_meant).unwrap_or_else(|| panic!("{name} in {memory}"))
}
#[test]
fn memory_over_time_is_what_the_jdk_prints() {
    let (folder, file) = (Folder::new(), path(MEMORY));
    let summary = folder.json(&["summary", &file]);
    let memory = &summary["rows"][0]["memory_over_time"];
    assert_eq!(memory.as_array().unwrap().len(), 80);
    let non_methods = Some("CodeHeap 'non-nmethods'");
    // First, last and highest value, and growth per hour.
    for (name, category, values, growth) in [
        ("resident_set", None, [82_436_096, 131_915_776, 131_915_776], 35_606_822_866.0),
        ("native_committed", None, [195_123_100, 236_313_783, 236_313_783], 31_238_845_009.0),
        ("native_committed_by_category", Some("Java Heap"), [134_217_728; 3], 0.0),
        (
            "native_committed_by_category",
            Some("Other"),
            [7_374_848, 56_657_920, 56_657_920],
            35_360_456_770.0,
        ),
        ("direct_used", None, [7_340_032, 56_623_104, 56_623_104], 35_364_701_838.0),
        ("code_cache_used", non_methods, [1_279_872, 1_280_640, 1_280_640], 393_656.0),
        ("threads", None, [9, 14, 14], 3588.0),
    ] {
        let found = figure(memory, name, category);
        let value = |key: &str| found[key].as_u64().unwrap();
        assert_eq!(["first_value", "last_value", "highest_value"].map(value), values, "{found}");
        let difference: f64 = found["growth_per_hour"].as_f64().unwrap() - growth;
        assert!(difference.abs() <= growth / 1000.0 + 1.0, "{found}");
        assert_eq!(value("samples"), 6);
    }
    let resident = figure(memory, "resident_set", None);
    assert_eq!(resident["first_time"], "2026-11-30T20:41:21.529Z");
    assert_eq!(resident["last_time"], "2026-11-30T20:41:26.544Z");
    assert_eq!((&resident["unit"], &resident["event"]), (&"bytes".into(), &"jdk.ResidentSetSize".into()));
    let text = String::from_utf8(folder.stdout(&["summary", &file])).unwrap();
    assert!(
        text.contains("78.6 MiB at first, 125.8 MiB at last, at most 125.8 MiB, +33.2 GiB per hour"),
        "{text}"
    );
    assert!(text.contains("9 at first, 14 at last, at most 14, +3,588 per hour"), "{text}");
}
