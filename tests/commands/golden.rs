//! Golden outputs: every command on the samples, as a user sees them in a pipe, and the examples of README.md and
//! docs/usage.md.
//!
//! The cases are `tests/cmd/*.trycmd` and these. After a wanted change: `TRYCMD=overwrite cargo test --test commands
//! golden`, then read the diff line by line. Each command, and each grouping, is there as JSON once, with all its keys; what is
//! different in another file or with another option is asked for by key, here.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::kit::samples;

#[test]
fn answers_are_as_recorded() {
    // The first reading of a compressed dump prints a note, and `info` shows more once dominators exist: all that is done
    // before, so that no case depends on another.
    let indexes: Vec<&Path> = sample_dumps().iter().map(|sample| samples::indexes(sample)).collect();
    let data = tempfile::tempdir().unwrap();
    trycmd::TestCases::new()
        .env("HPROF_CLI_INDEX_DIR", indexes[0].to_str().unwrap())
        .env("XDG_DATA_HOME", data.path().to_str().unwrap())
        .case("tests/cmd/*.trycmd")
        .case("README.md")
        .case("docs/usage.md")
        .run();
}

fn sample_dumps() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["jdk", "agent", "leaks", "public"] {
        let folder = Path::new("samples").join(folder);
        for entry in std::fs::read_dir(&folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            // Dumps that were used with the program have an index beside them.
            if name.contains(".hprof") && !name.ends_with(".index") {
                found.push(folder.join(name));
            }
        }
    }
    assert!(found.len() > 15, "{found:?}");
    found
}

/// Returns the exit code and the JSON of a command on a sample.
fn answer(command: &[&str]) -> (Option<i32>, Value) {
    let mut shell = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    shell.args(command).args(["--format", "json", "--quiet"]);
    let output = shell.env("HPROF_CLI_INDEX_DIR", samples::indexes(Path::new(command[1]))).output().unwrap();
    let answer = serde_json::from_slice(&output.stdout);
    (output.status.code(), answer.unwrap_or_else(|error| panic!("{command:?}: {error}: {output:?}")))
}

/// Checks the exit code of a command on a sample, and values of its JSON, by JSON pointer.
fn check_keys(command: &[&str], code: i32, expected: &[(&str, Value)]) {
    let (found, answer) = answer(command);
    assert_eq!(found, Some(code), "{command:?}: {answer:#}");
    for (key, value) in expected {
        assert_eq!(answer.pointer(key), Some(value), "{command:?}: {key}");
    }
}

/// Checks that the rows of two answers have the same keys, in the same order.
fn check_same_keys(command: &[&str], other: &[&str]) {
    let keys = |command: &[&str]| -> Vec<String> {
        answer(command).1["rows"][0].as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(keys(command), keys(other), "{command:?} {other:?}");
}

/// A layout that the user gives, and what speaks against it.
#[test]
fn a_given_layout_is_shown_with_its_evidence() {
    let evidence = json!({
        "classes": 234, "classes_exact": 67, "classes_refuting": 167,
        "arrays": 437, "arrays_exact": 364, "arrays_refuting": 73,
    });
    check_keys(
        &["info", "samples/jdk/jdk11.hprof.zst", "--layout", "reference=8"],
        0,
        &[
            ("/rows/0/layout/reference_bytes", json!(8)),
            ("/rows/0/layout/header_bytes", json!(12)),
            ("/rows/0/layout/layout_source", json!("given")),
            ("/rows/0/layout/is_size_stated", json!(false)),
            ("/rows/0/layout/evidence", evidence),
            ("/rows/0/layout/text", json!("reference=8,header=12,array-base=16,alignment=8,packing=classic")),
            (
                "/rows/0/layout/classes_by_size_source",
                json!({ "model": 234, "confirmed": 0, "observed": 0, "stated": 0 }),
            ),
            ("/rows/0/shallow_bytes", json!(768_944)),
            ("/rows/0/jvm/properties/java.version", json!("11.0.13")),
            ("/rows/0/objects/total", json!(12_607)),
            ("/rows/0/reachable", json!({ "objects": 12_418, "shallow_bytes": 616_688 })),
            (
                "/rows/0/gc_roots",
                json!({ "JNI global": 40, "java frame": 17, "sticky class": 527, "thread object": 7 }),
            ),
            ("/rows/0/records/strings", json!(16_163)),
            ("/rows/0/account/read_bytes", json!(1_704_411)),
            ("/rows/0/account/retained_sizes", json!("exact")),
        ],
    );
}

#[test]
fn an_answer_without_suspects_has_all_totals() {
    let off_heap = json!({
        "direct_buffers": 1, "direct_bytes": 4096, "mapped_buffers": 0, "mapped_bytes": 0,
        "reserved_bytes": 4096, "limit_bytes": 268_435_456,
        "owners": [{ "field": "HeapZoo$D.o", "buffers": 1, "capacity_bytes": 4096 }],
    });
    let total = json!({ "reachable_bytes": 7_885_776, "threshold_bytes": 7_491_487, "accumulations": 0 });
    let headline = "No leak suspect: nothing retains more than 95.0% of the reachable heap of 7.5 MiB";
    check_keys(
        &["leaks", "samples/jdk/jdk17.hprof.zst", "--threshold", "95"],
        1,
        &[
            ("/rows", json!([])),
            ("/total", total),
            ("/headline", json!(headline)),
            ("/conclusions", json!([])),
            ("/loader_groups", json!([])),
            ("/finalizer_queue", json!(0)),
            ("/off_heap", off_heap),
            ("/unreachable_bytes", json!(33_296)),
            ("/recording", Value::Null),
            ("/facts", json!([])),
        ],
    );
}

/// Objects of a text report have no sizes that are computed, and no class with fields.
#[test]
fn a_text_report_answers_with_the_keys_of_a_dump() {
    const DUMP: &str = "samples/agent/dump.txt.zst";
    let dump = json!({
        "path": DUMP, "file_bytes": 78_263, "format": "JAVA PROFILE 1.0.1", "id_bytes": null,
        "created": "2026-11-21T01:58:24", "heap_dump": null, "is_damaged": false, "unreachable_bytes": null,
    });
    let field = json!({
        "name": "[0]", "class": null, "type": "Object", "value": "sun.launcher.LauncherHelper", "object": "0x500001af",
    });
    check_keys(
        &["show", DUMP, "0x500001b1"],
        0,
        &[
            ("/dump", dump.clone()),
            ("/rows/0/object", json!("0x500001b1")),
            ("/rows/0/class", json!("sun.launcher.LauncherHelper[]")),
            ("/rows/0/kind", json!("object_array")),
            ("/rows/0/shallow_bytes", json!(24)),
            ("/rows/0/retained_bytes", Value::Null),
            ("/rows/0/trace", json!(300_043)),
            ("/rows/0/length", json!(1)),
            ("/rows/0/class_object", json!("0x500001b0")),
            ("/rows/0/roots", json!([])),
            ("/rows/0/fields", json!([field])),
            ("/rows/0/value", Value::Null),
            ("/rows/0/dominator", Value::Null),
            ("/rows/0/loader", Value::Null),
        ],
    );
    let counts = json!({
        "objects": 11_217, "classes": 495, "root_count": 1339, "stated_objects": 8080, "stated_bytes": 561_520,
    });
    check_keys(
        &["summary", DUMP],
        0,
        &[
            ("/dump", dump),
            ("/rows/0/run", json!(1)),
            ("/rows/0/runs", json!(1)),
            ("/rows/0/heap_summaries", json!([])),
            ("/rows/0/traces", json!(462)),
            ("/rows/0/frame_count", json!(619)),
            ("/rows/0/threads_started", json!(4)),
            ("/rows/0/threads_ended", json!(4)),
            ("/rows/0/sites", Value::Null),
            ("/rows/0/cpu_samples", Value::Null),
            ("/rows/0/calls", json!(0)),
            ("/rows/0/contention", Value::Null),
            ("/rows/0/heap_dump_counts", counts),
            ("/rows/0/flight", Value::Null),
            ("/rows/0/lines_not_understood", json!(0)),
        ],
    );
    check_same_keys(&["show", DUMP, "0x500001b1"], &["show", "samples/jdk/jdk17.hprof.zst", "0xf03e7160"]);
    check_same_keys(&["summary", DUMP], &["summary", "samples/jdk/jdk17.hprof.zst"]);
}

/// Recordings of Flight Recorder name their event, and what they do not count is null.
#[test]
fn a_recording_answers_with_the_keys_of_a_report() {
    let row = json!({
        "rank": 1, "trace": 8, "samples": 50, "self_percent": 70.42, "accumulated_percent": 70.42, "method": "Flight.main",
    });
    check_keys(
        &["cpu", "samples/flight/jdk25-cputime.jfr.zst", "--top", "1"],
        0,
        &[
            ("/dump/format", json!("Flight Recorder 2.1")),
            ("/dump/heap_dump", Value::Null),
            ("/rows", json!([row])),
            ("/total/samples", json!(71)),
            ("/matching", json!({ "rows": 5, "samples": 71 })),
            ("/left_out", json!(4)),
            ("/event", json!("jdk.CPUTimeSample")),
            ("/lost_samples", json!(0)),
            ("/date", json!("2026-11-26T09:02:42.687Z")),
        ],
    );
    let bytes = |allocated: u64| {
        json!({
            "live_bytes": null, "live_instances": null, "allocated_bytes": allocated, "allocated_instances": null,
        })
    };
    let mut matching = bytes(1_064_880);
    matching["rows"] = json!(1);
    let row = json!({
        "rank": 3, "class": "Flight$Order", "trace": 5, "live_bytes": null, "live_instances": null,
        "allocated_bytes": 1_064_880, "allocated_instances": null, "self_percent": 0.86,
        "accumulated_percent": 98.92, "method": "Flight.orders", "samples": 3,
    });
    check_keys(
        &["sites", "samples/flight/jdk17-tlab.jfr.zst", "Flight$Order"],
        0,
        &[
            ("/rows", json!([row])),
            ("/total", bytes(124_318_096)),
            ("/matching", matching),
            ("/left_out", json!(0)),
            ("/origin", json!("sampled")),
            ("/ordered_by", json!("allocated_bytes")),
            ("/event", json!("jdk.ObjectAllocationInNewTLAB, jdk.ObjectAllocationOutsideTLAB")),
            ("/date", json!("2026-11-26T09:02:40.445Z")),
        ],
    );
}
