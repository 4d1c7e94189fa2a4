//! `--recording`: lines that allocated what accumulates, from a recording of Flight Recorder.

use std::fs;

use hprof_writer::flight::full_collections;
use hprof_writer::flight_leak::{LeakRecording, SampledLine};
use hprof_writer::{Elements, HeapModel, Jdk, ObjectId, Options, Root, Type, Value};
use serde_json::Value as Json;

use crate::kit::process::{Place, stderr};

/// A dump of `docs/jfr/Leaking.java`: a static field of `Leaking$Ledger` holds orders of 64 bytes; and the directory of the
/// recorder of process 1790. It was made when the recordings made here end.
fn ledger(orders: usize) -> Vec<u8> {
    ledger_of(orders, 2_000)
}

/// The same, made so many milliseconds after 1970.
fn ledger_of(orders: usize, created_ms: u64) -> Vec<u8> {
    ledger_with(orders, created_ms, 1790, None)
}

/// The same, of another process, in which a recording was started so many milliseconds after 1970.
fn ledger_with(orders: usize, created_ms: u64, pid: i64, started_ms: Option<i64>) -> Vec<u8> {
    let (model, ..) = ledger_model(orders, pid, started_ms);
    model.write(&Options { created_ms, ..Options::hotspot() }).bytes()
}

/// Its objects, and the table of orders.
fn ledger_model(orders: usize, pid: i64, started_ms: Option<i64>) -> (HeapModel, Jdk, ObjectId) {
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
    let text = jdk.string(&mut model, &format!("/tmp/2026_11_26_13_13_15_{pid}"));
    let path = model.instance_with(path, &[("path", Value::from(text))]);
    let repository = model.instance_with(repository, &[("repository", Value::from(path))]);
    model.root(repository, Root::JniGlobal { reference: 1 });
    if let Some(started) = started_ms {
        let instant = [("seconds", Type::Long), ("nanos", Type::Int)];
        let instant = model.class("java.time.Instant", Some(jdk.object), &instant);
        let recording = [("startTime", Type::Object)];
        let recording = model.class("jdk.jfr.internal.PlatformRecording", Some(jdk.object), &recording);
        let nanos = i32::try_from(started % 1000 * 1_000_000 + 999).unwrap();
        let instant = model.instance(instant, &[Value::Long(started / 1000), Value::Int(nanos)]);
        let recording = model.instance_with(recording, &[("startTime", Value::from(instant))]);
        model.root(recording, Root::JniGlobal { reference: 2 });
    }
    (model, jdk, table)
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
    caller: None,
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
    let sentence = "Leaking$Order is allocated in Leaking$Intake.accept(line 33): 16.7% of its 1.4 MiB of sampled \
                    allocations (30 of 180 samples); 12 of 12 sampled objects that stayed alive are from there, 12 of \
                    them held by the same field.";
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
    assert!(page.contains("12 of 12 sampled objects") && page.contains("of sampled allocations"), "{page}");
}

/// Which sampled objects count, of a dump and a recording without chains of references.
fn counted(dump: &[u8], class: &str, elements: i64) -> (u64, String) {
    let (lines, jvm) = ([SampledLine { old_objects: 12, ..LEAK }, GARBAGE], ("Leaking map 60", 1790));
    let recording =
        LeakRecording { class, elements, chain: &[], lines: &lines, jvm, ..LeakRecording::default() };
    let place = Place::new("dump.hprof", dump);
    let path = place.path("recording.jfr");
    fs::write(&path, recording.write().finish()).unwrap();
    let of = document(&place, "leaks", path.to_str().unwrap())["rows"][0]["recorded_allocation"].clone();
    (of["old_objects"].as_u64().unwrap(), of["sure"].as_str().unwrap().to_owned())
}

/// Sampled objects without a chain may be those that others hold, unless the suspect has at least 80 percent of them.
#[test]
fn sampled_objects_decide_if_the_suspect_has_most_objects_of_the_class() {
    for (elsewhere, is_decided) in [(0, true), (500, true), (501, false), (4_000, false)] {
        let mut model = HeapModel::default();
        let jdk = Jdk::add_to(&mut model);
        let order = model.class("Leaking$Order", Some(jdk.object), &[("id", Type::Long)]);
        let array = model.array_class(order);
        let orders: Vec<_> = (0..2_000).map(|_| model.instance(order, &[Value::Long(1)])).collect();
        let table = model.object_array(array, &orders);
        let statics = [("OPEN", table.into())];
        let class = model.class_with_statics("Leaking$Ledger", Some(jdk.object), &[], &statics);
        model.root(class, Root::StickyClass);
        for reference in 0..elsewhere {
            let order = model.instance(order, &[Value::Long(1)]);
            model.root(order, Root::JniGlobal { reference });
        }
        let dump = model.write(&Options { created_ms: 2_000, ..Options::hotspot() }).bytes();
        let (old_objects, sure) = counted(&dump, "Leaking$Order", 0);
        assert_eq!((old_objects, sure == "old_objects"), (12, is_decided), "{elsewhere}: {sure}");
    }
}

/// Sampled arrays count if they are as long as those that are alive, where these have few lengths.
#[test]
fn sampled_arrays_count_if_they_are_as_long_as_those_alive() {
    let dump = |lengths: &mut dyn Iterator<Item = usize>| {
        let mut model = HeapModel::default();
        let jdk = Jdk::add_to(&mut model);
        let class = model.array_class(jdk.object);
        let arrays: Vec<_> =
            lengths.map(|length| model.prim_array(Elements::Byte(vec![1; length]))).collect();
        let table = model.object_array(class, &arrays);
        let statics = [("OPEN", table.into())];
        let class = model.class_with_statics("Leaking$Ledger", Some(jdk.object), &[], &statics);
        model.root(class, Root::StickyClass);
        model.write(&Options { created_ms: 2_000, ..Options::hotspot() }).bytes()
    };
    let one = dump(&mut (0..2_000).map(|_| 300));
    assert_eq!([300, 301].map(|elements| counted(&one, "[B", elements).0), [12, 0]);
    // Of 16 lengths, each is typical; of 17, none is, so any length counts.
    for (lengths, other) in [(16, 0), (17, 12)] {
        let some = dump(&mut (0..2_000).map(|at| 300 + at % lengths));
        assert_eq!([300, 315, 5].map(|elements| counted(&some, "[B", elements).0), [12, 12, other]);
    }
    // Lengths of 10,000 arrays are read, not of the first ones only.
    let many = dump(&mut (0..20_000).map(|at| if at < 15_000 { 30 } else { 60 }));
    assert_eq!([30, 60, 90].map(|elements| counted(&many, "[B", elements).0), [12, 12, 0]);
}

#[test]
fn too_few_samples_name_no_line() {
    for (samples, status, text) in [
        (
            19,
            "too_few",
            "The recording contains 19 allocation samples of Leaking$Order, too few to identify a line.",
        ),
        (0, "none", "The recording contains no allocation samples of Leaking$Order."),
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
    let text = "the recording is of another process than the dump, so its lines may not apply to these objects: its \
                process ID is 7, that of the dump is 1790";
    assert!(stderr(&output).contains(text), "{}", stderr(&output));
    let document: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["recording"]["same_process"], "no");
    assert!(document["recording"]["warnings"][0].as_str().unwrap().ends_with(text));
    for words in [&["overview"][..], &["report", "--sections", "suspects"]] {
        let output = place.run(&[words, &["--recording", &path]].concat());
        assert!(stderr(&output).contains(text), "{words:?}: {}", stderr(&output));
    }
}

/// In a container, each JVM can be process 1.
#[test]
fn a_small_process_id_proves_nothing_unless_the_recorder_started_at_the_same_time() {
    let (place, path) = place(1000, &recording(&[LEAK], 1));
    let doubt = "cannot confirm that the recording is of the dumped process: process ID 1 matches, but a process in \
                 another container can have the same";
    for (started_ms, same, warnings) in
        [(None, "unknown", 1), (Some(1_233), "unknown", 1), (Some(1_234), "yes", 0)]
    {
        fs::write(place.path("dump.hprof"), ledger_with(1000, 2_000, 1, started_ms)).unwrap();
        let output = place.run(&["leaks", "--recording", &path, "--format", "json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let compared = &serde_json::from_slice::<Json>(&output.stdout).unwrap()["recording"];
        assert_eq!(compared["same_process"], same, "{started_ms:?}");
        assert_eq!(compared["warnings"].as_array().unwrap().len(), warnings, "{started_ms:?}");
        assert_eq!(stderr(&output).contains(doubt), warnings == 1, "{}", stderr(&output));
    }
}

#[test]
fn what_is_no_recording_is_refused() {
    let (place, path) = place(10, b"no recording");
    for words in [
        &["leaks"][..],
        &["overview"],
        &["report"],
        &["report", "--format", "markdown"],
        &["report", "--format", "json"],
        &["serve", "--idle-exit", "1s"],
    ] {
        let output = place.run(&[words, &["--recording", &path]].concat());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{words:?}");
        assert!(stderr(&output).contains("is not a recording of Flight Recorder"), "{}", stderr(&output));
        let output = place.run(&[words, &["--recording", "missing.jfr"]].concat());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{words:?}");
        assert!(stderr(&output).contains("missing.jfr"), "{}", stderr(&output));
    }
}

/// A damaged recording gives what could be read, or an error; it never ends the program otherwise.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn damaged_recordings() {
    let whole = recording(&[SampledLine { old_objects: 3, ..LEAK }], 1790);
    let (place, path) = place(1000, &whole);
    for at in (0..whole.len()).step_by(whole.len() / 24) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        for bytes in [&damaged[..], &whole[..at]] {
            fs::write(&path, bytes).unwrap();
            let output = place.run(&["leaks", "--recording", &path, "--format", "json"]);
            assert!(matches!(output.status.code(), Some(0 | 2 | 3)), "{at}: {}", stderr(&output));
        }
    }
}

/// Damage to the recording is damage to the answer.
#[test]
fn a_damaged_recording_sets_the_exit_code() {
    let whole = recording(&[LEAK], 1790);
    let truncated = &whole[..whole.len() / 2];
    let (place, path) = place(1000, &[&whole, truncated].concat());
    let text = "Leaking$Order is allocated in Leaking$Intake.accept(line 33)";
    for words in [
        &["leaks"][..],
        &["leaks", "--format", "markdown"],
        &["overview"],
        &["report", "--format", "markdown", "--sections", "suspects"],
    ] {
        let output = place.run(&[words, &["--recording", &path]].concat());
        assert_eq!(output.status.code(), Some(3), "{words:?}: {}", stderr(&output));
        let shown = String::from_utf8(output.stdout).unwrap().replace('\\', "");
        assert!(shown.split_whitespace().collect::<Vec<_>>().join(" ").contains(text), "{words:?}: {shown}");
    }
    let query = "SELECT samples FROM allocation_sites";
    let output = place.run(&["sql", "--recording", &path, "--format", "csv", query]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().collect::<Vec<_>>(), ["samples", "30"]);
    // Its types are at the end, so nothing is left.
    fs::write(&path, truncated).unwrap();
    let output = place.run(&["leaks", "--recording", &path]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let shown = String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let text = "The recording, as far as it could be read, contains no allocation samples of Leaking$Order.";
    assert!(shown.contains(text), "{shown}");
}

/// What `sites` calls damage is damage for `leaks`, too.
#[test]
fn a_lost_stack_is_damage() {
    let mut made = LeakRecording { lines: &[LEAK], ..LeakRecording::default() }.write();
    made.event(43, |body| [105, 99, 1, 8192].into_iter().for_each(|value| body.long(value)));
    let bytes = made.finish();
    let (place, path) = place(1000, &bytes);
    let sites = Place::new("recording.jfr", &bytes);
    let text = "events whose stacks are missing from the chunk: 1 (at offset 0x0)";
    let runs = [sites.run(&["sites"]), place.run(&["leaks", "--recording", &path])];
    for output in runs {
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).contains(text), "{}", stderr(&output));
    }
}

#[test]
fn allocation_sites_are_a_table() {
    let (place, path) = place(1000, &recording(&[LEAK, GARBAGE], 1790));
    let query = "SELECT s.*, c.instances FROM allocation_sites s JOIN classes c USING (class)";
    let rows = place.answer(&["sql", "--recording", &path, "--format", "csv", query]);
    let lines: Vec<&str> = rows.lines().collect();
    assert_eq!(
        lines,
        [
            "class,frame,samples,weight_bytes,rate,instances",
            "Leaking$Order,Leaking$Pricing.quote(line 40),150,1228800,end,1000",
            "Leaking$Order,Leaking$Intake.accept(line 33),30,245760,end,1000",
        ]
    );
    let output = place.run(&["sql", query]);
    assert_eq!(output.status.code(), Some(1), "without a recording there is no such table");
}

#[test]
fn a_recording_that_ended_long_before_the_dump_is_a_warning() {
    let bytes = recording(&[LEAK], 1790);
    let (place, path) = place(1000, &bytes);
    let text = "h before the dump was made";
    for (created_ms, hours) in [(2_000, None), (3_500_000, None), (3 * 3_600_000 + 60_000, Some("3"))] {
        fs::write(place.path("dump.hprof"), ledger_of(1000, created_ms)).unwrap();
        let output = place.run(&["leaks", "--recording", &path, "--format", "json"]);
        let said = stderr(&output);
        let document: Json = serde_json::from_slice(&output.stdout).unwrap();
        let warnings = document["recording"]["warnings"].as_array().unwrap().len();
        let Some(hours) = hours else {
            assert!(!said.contains(text) && warnings == 0, "{created_ms}: {said}");
            continue;
        };
        let whole = format!("the recording ended {hours} {text}, and does not contain later allocations");
        assert!(said.contains(&whole) && warnings == 1, "{created_ms}: {said}");
    }
}

#[test]
fn a_directory_for_indexes_is_made_for_packed_recordings() {
    let packed = zstd::encode_all(&recording(&[LEAK], 1790)[..], 1).unwrap();
    let (place, path) = place(1000, &packed);
    let sites = Place::new("recording.jfr.zst", &packed);
    let dir = sites.path("new/one");
    let output = sites.run(&["sites", "--index-dir", dir.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let dir = place.path("new/two");
    let output = place.run(&["leaks", "--recording", &path, "--index-dir", dir.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// Whether it is a leak or a spike, with the moment of the dump: the same figures and words in each answer.
#[test]
fn heap_over_time_is_told_beside_the_dump() {
    // A second after 1970, and every 10 ms.
    let rising: Vec<i64> = (0..40).map(|at| 100_000 + 10_000 * at).collect();
    let bytes = [full_collections(&rising, true).finish(), recording(&[LEAK], 1790)].concat();
    let (place, path) = place(1000, &bytes);
    // Between the collections 24 and 25.
    fs::write(place.path("dump.hprof"), ledger_of(1000, 1_245)).unwrap();
    let text = "the floor after 25 full collections rose from 156.2 KiB to 273.4 KiB, as is typical of a leak; the last \
                recorded collection before the dump, 5 ms earlier, left 332.0 KiB";
    let overview = document(&place, "overview", &path)["rows"][0]["recording"].clone();
    let leaks = document(&place, "leaks", &path)["recording"].clone();
    assert_eq!(overview, leaks);
    assert_eq!(leaks["heap_text"], text);
    let trend = &leaks["heap_trend"];
    assert_eq!((trend["trend"].as_str(), trend["is_full_only"].as_bool()), (Some("rising"), Some(true)));
    // Its last count is later.
    assert!(trend["most_grown"].is_null());
    let before = &leaks["collection_before_dump"];
    assert_eq!(
        (before["gc_id"].as_i64(), before["used_bytes"].as_i64(), before["time"].as_str()),
        (Some(24), Some(340_000), Some("1970-01-01T00:00:01.240Z"))
    );
    let floors = leaks["floor_over_time"].as_array().unwrap();
    let floors: Vec<i64> = floors.iter().map(|floor| floor["used_bytes"].as_i64().unwrap()).collect();
    assert_eq!(floors, rising);
    let plain = |text: String| text.replace('\\', "").split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        &["leaks"][..],
        &["leaks", "--format", "markdown"],
        &["overview"],
        &["report", "--format", "markdown", "--sections", "overview"],
    ] {
        let shown = plain(place.answer(&[words, &["--recording", &path]].concat()));
        assert!(
            shown.to_lowercase().contains(&format!("heap over time: {text}").to_lowercase()),
            "{words:?}: {shown}"
        );
    }
    let page = place.answer(&["report", "--recording", &path, "--sections", "overview"]);
    assert!(page.contains(text) && page.contains("<svg class=\"time\""), "{page}");
    // 40 bars, and a mark between the bars 24 and 25.
    let (_, svg) = page.split_once("<svg class=\"time\"").unwrap();
    let svg = svg.split_once("</svg>").unwrap().0;
    let places = |element: &str, attribute: &str| -> Vec<f64> {
        let elements = svg.split('<').filter(|tag| tag.starts_with(element));
        let value = |tag: &str| tag.split_once(attribute)?.1.split('"').next()?.parse().ok();
        elements.filter_map(value).collect()
    };
    let (bars, marks) = (places("rect ", " x=\""), places("line ", " x1=\""));
    assert_eq!((bars.len(), marks.len()), (40, 1), "{svg}");
    assert!(bars[24] < marks[0] && marks[0] < bars[25] + (bars[25] - bars[24]), "{svg}");
    assert!(svg.contains("<title>1970-01-01T00:00:01.390Z: 478.5 KiB</title>"), "{svg}");
}

/// The heap of another process, or one without collections, says nothing about this dump.
#[test]
fn the_heap_of_another_process_is_not_told() {
    let collections = full_collections(&[1; 20], false).finish();
    for bytes in [[collections, recording(&[LEAK], 7)].concat(), recording(&[LEAK], 1790)] {
        let (place, path) = place(1000, &bytes);
        let recording = document(&place, "overview", &path)["rows"][0]["recording"].clone();
        assert!(recording["heap_trend"].is_null() && recording["heap_text"].is_null(), "{recording}");
        assert_eq!(recording["floor_over_time"], serde_json::json!([]));
        for command in ["overview", "leaks"] {
            let shown = place.answer(&[command, "--recording", &path]);
            assert!(!shown.contains("Heap over time"), "{shown}");
        }
        let page = place.answer(&["report", "--recording", &path, "--sections", "overview"]);
        assert!(!page.contains("Heap over time") && !page.contains("<svg class=\"time\""));
    }
}

/// A chain leads to one root of several: that of a variable is known by the field of the application behind the variable.
#[test]
fn a_chain_to_a_variable_is_known_by_the_path_through_the_frame() {
    let sure = |chain: &[(&str, Option<&str>)]| {
        let (mut model, jdk, table) = ledger_model(1000, 1790, None);
        let class = model.class("Leaking$Connection", Some(jdk.object), &[("orders", Type::Object)]);
        let connection = model.instance_with(class, &[("orders", Value::from(table))]);
        let thread = model.class("java.lang.Thread", Some(jdk.object), &[]);
        let thread = model.instance_with(thread, &[]);
        let trace = model.trace(1, &[]);
        model.root(thread, Root::ThreadObject { thread: 1, trace });
        model.root(connection, Root::JavaFrame { thread: 1, frame: -1 });
        let dump = model.write(&Options { created_ms: 2_000, ..Options::hotspot() }).bytes();
        let place = Place::new("dump.hprof", &dump);
        let path = place.path("recording.jfr");
        let lines = &[SampledLine { old_objects: 12, ..LEAK }, GARBAGE];
        let jvm = ("Leaking map 60", 1790);
        let recording =
            LeakRecording { class: "Leaking$Order", chain, lines, jvm, ..LeakRecording::default() };
        fs::write(&path, recording.write().finish()).unwrap();
        let document = document(&place, "leaks", path.to_str().unwrap());
        let row = &document["rows"][0];
        (row["recorded_allocation"]["sure"].clone(), row["allocated_in"][0]["held_alike_objects"].clone())
    };
    let array = ("[Leaking$Order;", None);
    for (holder, is_alike) in [
        (("Leaking$Connection", Some("orders")), true),
        (("static Leaking$Ledger", Some("OPEN")), true),
        (("Leaking$Connection", Some("other")), false),
        (("Leaking$Other", Some("orders")), false),
    ] {
        let (sure, alike) = sure(&[array, holder]);
        assert_eq!(
            (sure == "held_alike", alike),
            (is_alike, (12 * u64::from(is_alike)).into()),
            "{holder:?}"
        );
    }
}

/// A line that both makes what stays and garbage is told with the caller that keeps it, though the other has more bytes.
#[test]
fn the_caller_of_what_stayed_alive_is_named() {
    let by = |method, samples, old_objects| SampledLine {
        caller: Some(("Leaking$Desk", method, 7)),
        samples,
        old_objects,
        ..LEAK
    };
    let told = |lines: &[SampledLine<'_>]| {
        let (place, path) = place(1000, &recording(lines, 1790));
        let row = document(&place, "leaks", &path)["rows"][0].clone();
        let sentence = row["sentence"].as_str().unwrap().to_owned();
        let caller = row["allocated_in"][0]["caller"].as_str();
        let called = caller.map_or(String::new(), |caller| format!(", called by {caller}: "));
        assert_eq!(caller.is_some(), sentence.contains(", called by "), "{sentence}");
        assert!(sentence.contains(&called), "{sentence}");
        (row["allocated_in"][0]["stack"][1].as_str().unwrap().to_owned(), sentence)
    };
    let (caller, sentence) = told(&[by("preview", 150, 0), by("book", 30, 12)]);
    assert_eq!(caller, "Leaking$Desk.book(line 7)");
    let text = "is allocated in Leaking$Intake.accept(line 33), called by Leaking$Desk.book(line 7): ";
    assert!(sentence.contains(text), "{sentence}");
    // Only one calls it; nothing stayed alive.
    for (lines, caller) in
        [(&[by("book", 30, 12)][..], "book"), (&[by("preview", 150, 0), by("book", 30, 0)], "preview")]
    {
        let (shown, sentence) = told(lines);
        assert_eq!(shown, format!("Leaking$Desk.{caller}(line 7)"));
        assert!(!sentence.contains("called by"), "{sentence}");
    }
    // As many are from one as from the other.
    let (_, sentence) = told(&[by("preview", 150, 7), by("book", 30, 7)]);
    assert!(!sentence.contains("called by"), "{sentence}");
}

/// What a recording covers that the JVM started with itself: all the time, also that before its start.
#[test]
fn a_recording_from_the_start_of_the_jvm_covers_it() {
    let whole = 1_000 * 64;
    for (options, recorded) in [
        ("-XX:StartFlightRecording=settings=profile", whole),
        ("-XX:StartFlightRecording=delay=1s", whole * 1_000 / 1_500),
        ("-Xmx1g", whole * 1_000 / 1_500),
    ] {
        let jvm = ("Leaking map 60", 1790);
        let recording = LeakRecording {
            class: "Leaking$Order",
            lines: &[LEAK],
            jvm,
            options,
            ..LeakRecording::default()
        };
        let recording = LeakRecording { jvm_started_ms: 500, ..recording };
        let mut bytes = recording.write().finish();
        // A second.
        bytes[40..48].copy_from_slice(&1_000_000_000i64.to_be_bytes());
        let (place, path) = place(1000, &bytes);
        let of = document(&place, "leaks", &path)["rows"][0]["recorded_allocation"].clone();
        assert_eq!(of["recorded_live_bytes"], recorded, "{options}: {of}");
    }
}

/// A dump collects the heap before it is written, in the millisecond that it states.
#[test]
fn the_collection_of_the_dump_is_before_it() {
    let mut collections = full_collections(&[50_000; 20], false).finish();
    // 8 ticks are a millisecond: a collection every 1.25 ms.
    collections[56..64].copy_from_slice(&8_000i64.to_be_bytes());
    let (place, path) = place(1000, &[collections, recording(&[LEAK], 1790)].concat());
    for (created_ms, gc_id) in [(1_011, 9), (1_012, 10), (1_013, 11)] {
        fs::write(place.path("dump.hprof"), ledger_of(1000, created_ms)).unwrap();
        let recording = document(&place, "leaks", &path)["recording"].clone();
        assert_eq!(recording["collection_before_dump"]["gc_id"], gc_id);
        assert_eq!(recording["heap_trend"]["collections"], gc_id + 1);
    }
}

/// The class that grew most is in the sentence, if all counts are before the dump.
#[test]
fn the_class_that_grew_most_is_told() {
    let rising: Vec<i64> = (0..40).map(|at| 100_000 + 10_000 * at).collect();
    let (place, path) =
        place(1000, &[full_collections(&rising, true).finish(), recording(&[LEAK], 1790)].concat());
    let recording = document(&place, "leaks", &path)["recording"].clone();
    let text = "; among the counted classes, a.B grew most, from 48.8 KiB to 239.3 KiB in 40 counts; ";
    assert!(recording["heap_text"].as_str().unwrap().contains(text), "{recording}");
    let grown = &recording["heap_trend"]["most_grown"];
    assert_eq!((grown["class"].as_str(), grown["last_bytes"].as_i64()), (Some("a.B"), Some(245_000)));
}
