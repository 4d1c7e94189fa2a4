//! `--recording`: lines that allocated what accumulates, from a recording of Flight Recorder.

use std::fs;

use hprof_writer::flight_leak::{LeakRecording, SampledLine};
use hprof_writer::{HeapModel, Jdk, Options, Root, Type, Value};
use serde_json::Value as Json;

use crate::kit::process::{Place, stderr};

/// A dump of `docs/jfr/Leaking.java`: a static field of `Leaking$Ledger` holds orders of 64 bytes; and the directory of the
/// recorder of process 1790.
fn ledger(orders: usize) -> Vec<u8> {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let fields = ["id", "price", "quantity", "created", "changed", "account"].map(|name| (name, Type::Long));
    let order = model.class("Leaking$Order", Some(jdk.object), &fields);
    let array = model.array_class(order);
    let orders: Vec<_> = (0..orders).map(|_| model.instance(order, &[Value::Long(1); 6])).collect();
    let table = model.object_array(array, &orders);
    let class = model.class_with_statics("Leaking$Ledger", Some(jdk.object), &[], &[("OPEN", table.into())]);
    model.root(class, Root::StickyClass);
    let path =
        model.class("jdk.jfr.internal.SecuritySupport$SafePath", Some(jdk.object), &[("path", Type::Object)]);
    let repository = [("repository", Type::Object)];
    let repository = model.class("jdk.jfr.internal.Repository", Some(jdk.object), &repository);
    let text = jdk.string(&mut model, "/tmp/2026_11_26_13_13_15_1790");
    let path = model.instance_with(path, &[("path", Value::from(text))]);
    let repository = model.instance_with(repository, &[("repository", Value::from(path))]);
    model.root(repository, Root::JniGlobal { reference: 1 });
    model.write(&Options::hotspot()).bytes()
}

/// A place with the dump and a recording.
fn place(orders: usize, recording: &[u8]) -> (Place, String) {
    let place = Place::new("dump.hprof", &ledger(orders));
    let path = place.path("recording.jfr");
    fs::write(&path, recording).unwrap();
    (place, path.to_str().unwrap().to_owned())
}

fn document(place: &Place, command: &str, recording: &str) -> Json {
    serde_json::from_str(&place.answer(&[command, "--recording", recording, "--format", "json"])).unwrap()
}

const LEAK: SampledLine<'_> = SampledLine {
    class: "Leaking$Intake",
    method: "accept",
    line: 33,
    samples: 30,
    weight: 8192,
    old_objects: 0,
};
const GARBAGE: SampledLine<'_> =
    SampledLine { class: "Leaking$Pricing", method: "quote", line: 40, samples: 150, ..LEAK };

fn recording(lines: &[SampledLine<'_>], pid: i64) -> Vec<u8> {
    let chain = &[("[Leaking$Order;", None), ("static Leaking$Ledger", Some("OPEN"))];
    let jvm = ("Leaking map 60", pid);
    LeakRecording { class: "Leaking$Order", chain, lines, jvm, ..LeakRecording::default() }.write().finish()
}

/// The line that leaks is first, though another makes five times as much garbage of the class.
#[test]
fn a_recording_of_a_jvm_names_the_line_that_leaks() {
    let packed = fs::read("samples/flight/jdk17-leak.jfr.zst").unwrap();
    for is_packed in [true, false] {
        let bytes = if is_packed { packed.clone() } else { zstd::decode_all(&packed[..]).unwrap() };
        let (place, path) = place(13_742, &bytes);
        let document = document(&place, "leaks", &path);
        let row = &document["rows"][0];
        let lines = row["allocated_in"].as_array().unwrap();
        let frames: Vec<&str> = lines.iter().map(|line| line["frame"].as_str().unwrap()).collect();
        assert_eq!(frames, ["Leaking$Intake.accept(line 33)", "Leaking$Pricing.quote(line 40)"]);
        let samples: Vec<u64> = lines.iter().map(|line| line["samples"].as_u64().unwrap()).collect();
        assert_eq!(samples, [27, 99]);
        let percents: f64 = lines.iter().map(|line| line["percent"].as_f64().unwrap()).sum();
        assert!((percents - 100.0).abs() < 0.02, "{percents}");
        let weights = |line: &Json| -> u64 {
            line["weight_by_part"].as_array().unwrap().iter().map(|part| part.as_u64().unwrap()).sum()
        };
        assert!(lines.iter().all(|line| weights(line) == line["weight_bytes"].as_u64().unwrap()));
        let of = &row["recorded_allocation"];
        assert_eq!((of["status"].as_str(), of["sure"].as_str()), (Some("found"), Some("live_bytes")));
        assert_eq!(of["event"].as_str(), Some("jdk.ObjectAllocationSample"));
        let sentence = row["sentence"].as_str().unwrap();
        assert!(
            sentence.contains("Leaking$Order is probably allocated in Leaking$Intake.accept(line 33): "),
            "{sentence}"
        );
    }
}

#[test]
fn the_sentence_is_the_same_everywhere() {
    let lines = [SampledLine { old_objects: 12, ..LEAK }, GARBAGE];
    let (place, path) = place(1000, &recording(&lines, 1790));
    let leaks = document(&place, "leaks", &path);
    assert_eq!(leaks["rows"][0]["recorded_allocation"]["sure"], "held_alike");
    assert_eq!(leaks["recording"]["same_process"], "yes");
    assert_eq!(leaks["recording"]["warnings"], serde_json::json!([]));
    let sentence = "Leaking$Order is allocated in Leaking$Intake.accept(line 33): 16.7% of its 1.4 MiB in the recording (30 of \
                    180 samples); 12 of 12 sampled objects that stayed alive are from there, 12 of them held by the same field.";
    assert!(leaks["rows"][0]["sentence"].as_str().unwrap().ends_with(sentence), "{leaks}");
    let overview = document(&place, "overview", &path);
    assert_eq!(overview["rows"][0]["allocated_in"], leaks["rows"][0]["allocated_in"]);
    assert!(overview["rows"][0]["suspects"][0].as_str().unwrap().ends_with(sentence), "{overview}");
    let plain = |text: String| text.replace('\\', "").split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        &["leaks"][..],
        &["leaks", "--format", "markdown"],
        &["overview"],
        &["report", "--format", "markdown", "--sections", "suspects"],
    ] {
        let text = plain(place.answer(&[words, &["--recording", &path]].concat()));
        assert!(text.contains(sentence), "{words:?}: {text}");
    }
    let csv = place.answer(&["leaks", "--recording", &path, "--format", "csv"]);
    assert!(csv.contains("Leaking$Intake.accept(line 33); Leaking$Pricing.quote(line 40)"), "{csv}");
    let page = place.answer(&["report", "--recording", &path, "--sections", "suspects"]);
    assert!(page.contains("12 of 12 sampled objects") && page.contains("in the recording"), "{page}");
}

#[test]
fn too_few_samples_name_no_line() {
    for (samples, status, text) in [
        (19, "too_few", "The recording has 19 allocation samples of Leaking$Order, too few to name a line."),
        (0, "none", "The recording has no allocation sample of Leaking$Order."),
    ] {
        let (place, path) = place(1000, &recording(&[SampledLine { samples, ..LEAK }], 1790));
        let row = document(&place, "leaks", &path)["rows"][0].clone();
        assert_eq!(row["allocated_in"], serde_json::json!([]));
        assert_eq!(
            (row["recorded_allocation"]["status"].as_str(), row["recorded_allocation"]["sure"].is_null()),
            (Some(status), true)
        );
        assert!(row["sentence"].as_str().unwrap().ends_with(text), "{row}");
    }
    let (place, _) = place(1000, b"");
    let row = serde_json::from_str::<Json>(&place.answer(&["leaks", "--format", "json"])).unwrap()["rows"][0]
        .clone();
    assert!(row["recorded_allocation"].is_null() && row["allocated_in"] == serde_json::json!([]));
}

#[test]
fn a_recording_of_another_process_is_a_warning() {
    let (place, path) = place(1000, &recording(&[LEAK], 7));
    let output = place.run(&["leaks", "--recording", &path, "--format", "json"]);
    let text = "the recording is not of the dumped process, so its lines may be of other objects: its process ID is 7, the dump's 1790";
    assert!(stderr(&output).contains(text), "{}", stderr(&output));
    let document: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["recording"]["same_process"], "no");
    assert!(document["recording"]["warnings"][0].as_str().unwrap().ends_with(text));
    for words in [&["overview"][..], &["report", "--sections", "suspects"]] {
        let output = place.run(&[words, &["--recording", &path]].concat());
        assert!(stderr(&output).contains(text), "{words:?}: {}", stderr(&output));
    }
}

#[test]
fn what_is_no_recording_is_refused() {
    let (place, path) = place(10, b"no recording");
    for command in ["leaks", "overview"] {
        let output = place.run(&[command, "--recording", &path]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("is not a recording of Flight Recorder"), "{}", stderr(&output));
    }
    for command in ["leaks", "overview", "report"] {
        let output = place.run(&[command, "--recording", "missing.jfr"]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(stderr(&output).contains("missing.jfr"), "{}", stderr(&output));
    }
}

/// A damaged recording gives what could be read, or an error; it never ends the program otherwise.
#[test]
fn damaged_recordings() {
    let whole = recording(&[SampledLine { old_objects: 3, ..LEAK }], 1790);
    let (place, path) = place(1000, &whole);
    for at in (0..whole.len()).step_by(whole.len() / 24) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        for bytes in [&damaged[..], &whole[..at]] {
            fs::write(&path, bytes).unwrap();
            let output = place.run(&["leaks", "--recording", &path, "--format", "json"]);
            assert!(matches!(output.status.code(), Some(0 | 2)), "{at}: {}", stderr(&output));
        }
    }
}
