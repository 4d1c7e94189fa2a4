//! There and back: what the commands say of the text that `convert` wrote is what they say of the binary.

use crate::kit::process::{Folder, stderr};
use crate::kit::strategies;
use crate::kit::texts::{AGENT_BINARIES, OTHER_BINARIES, code, sample_path};
use hprof_writer::{HeapModel, IdSize, Options, Root, StackFrame, Type, Version, examples};
use proptest::prelude::*;
use serde_json::Value as Json;

/// The rows of a command's answer, and what it says of all of them; exit code 1 is an answer without rows.
fn answer(place: &Folder, command: &[&str], file: &str) -> Json {
    let arguments =
        [&[command[0], file], &command[1..], &["--top", "0", "--format", "json", "--quiet"]].concat();
    let output = place.run(&arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_ne!(code(&output), 2, "{arguments:?}: {stderr}");
    if output.stdout.is_empty() {
        return Json::Null;
    }
    let mut json: Json = serde_json::from_slice(&output.stdout).unwrap();
    let answer = json.as_object_mut().unwrap();
    // Of the file itself, and dates: a text has no milliseconds.
    answer.remove("dump").unwrap();
    answer.remove("date");
    if command[0] == "sites" {
        // A text does not state them, and it is a record whoever counted.
        answer.remove("total").unwrap();
        answer.remove("origin").unwrap();
    }
    json
}

/// Compares answers row by row.
fn same(what: &str, text: &Json, binary: &Json) {
    let rows = |answer: &Json| answer["rows"].as_array().cloned().unwrap_or_default();
    for (number, (text, binary)) in rows(text).iter().zip(&rows(binary)).enumerate() {
        assert_eq!(text, binary, "{what}: row {number}");
    }
    assert_eq!(rows(text).len(), rows(binary).len(), "{what}");
    assert_eq!(text, binary, "{what}");
}

const COMMANDS: [&[&str]; 4] = [&["sites"], &["traces"], &["cpu"], &["histo"]];

/// Compares all answers; returns how many rows each has.
fn both(place: &Folder, what: &str, binary: &str) -> [usize; 4] {
    COMMANDS.map(|command| rows(place, what, binary, command))
}

fn rows(place: &Folder, what: &str, binary: &str, command: &[&str]) -> usize {
    let text = place.text("text.txt");
    let output = place.run(&["convert", binary, "-o", &text, "--quiet"]);
    assert_ne!(code(&output), 2, "{what}: {}", stderr(&output));
    let has_heap = std::fs::read_to_string(&text).unwrap().contains("\nHEAP DUMP BEGIN ");
    if command[0] == "histo" && !has_heap {
        return 0;
    }
    let found = answer(place, command, &text);
    let wanted = answer(place, command, binary);
    same(&format!("{what}: {}", command.join(" ")), &found, &wanted);
    found["rows"].as_array().map_or(0, Vec::len)
}

#[test]
fn the_agents_binaries() {
    let place = Folder::new();
    let mut all = Vec::new();
    for name in AGENT_BINARIES {
        all.push(both(&place, name, sample_path(name).to_str().unwrap()));
    }
    assert_eq!(all[0], [687, 719, 13, 214]);
    assert_eq!(all[2], [0, 20, 20, 0]);
    assert_eq!(all[3], [704, 607, 0, 0]);
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn dumps_of_hotspot_and_android() {
    let place = Folder::new();
    for name in OTHER_BINARIES {
        let rows = both(&place, name, sample_path(name).to_str().unwrap());
        assert!(rows[0] > 100 && rows[1] > 0 && rows[2] == 0 && rows[3] > 100, "{name}: {rows:?}");
    }
}

#[test]
fn every_kind_of_record() {
    let place = Folder::new();
    for version in Version::ALL {
        for id_size in IdSize::ALL {
            let what = format!("{version:?} {id_size:?}");
            let dump = place.write(&format!("{what}.hprof"), examples::every_kind(version, id_size).bytes());
            // Its class has both instances and arrays, which a text cannot express: a histogram would differ.
            for command in &COMMANDS[..3] {
                assert_eq!(rows(&place, &what, &dump, command), 1, "{what}: {command:?}");
            }
        }
    }
    let dump = place.write("zoo.hprof", examples::zoo().write(&Options::hotspot()).bytes());
    assert!(both(&place, "zoo", &dump)[3] > 5);
}

/// Names that look like what stands around them in a text.
#[test]
fn names_that_look_like_fields() {
    let mut model = HeapModel::default();
    let object = model.class("java.lang.Object", None, &[]);
    model.class("java.lang.Class", Some(object), &[]);
    let names = [
        "a@b",
        "a@1f)",
        "(sz=8, trace=1, class=x@1)",
        "x, trace=7)",
        "q, nelems=3",
        "a b",
        "ü€",
        "a\\b",
        "@",
        ")",
    ];
    let fields = [("[0]", Type::Object), ("super", Type::Object), ("static x", Type::Object)];
    let classes = names.map(|name| model.class(name, Some(object), &fields));
    for (number, class) in (0u32..).zip(classes) {
        let frames = ["m", "m(x", "m:1", "<init>", "m n", "(", "a)"]
            .map(|method| StackFrame::new(class, method, "A b.java", number.cast_signed() - 3));
        let trace = model.trace(number, &frames);
        let first = model.traced(trace).instance_with(class, &[]);
        model
            .traced(trace)
            .instance_with(class, &["[0]", "super", "static x"].map(|name| (name, first.into())));
        let array = model.array_class(class);
        model.object_array(array, &[first, first]);
        model.class_mut(class).statics = vec![("a, b".to_owned(), first.into())];
        model.root(first, Root::StickyClass);
        model.root(class, Root::StickyClass);
    }
    let place = Folder::new();
    let dump = place.write("dump.hprof", model.write(&Options::hotspot()).bytes());
    assert_eq!(both(&place, "names", &dump), [10 + 10 + 1, 10, 0, 10 + 10 + 1]);
}

proptest! {
    #![proptest_config(crate::kit::strategies::property(25))]

    #[test]
    fn generated_dumps(arb in strategies::dump()) {
        let place = Folder::new();
        let dump = place.write("dump.hprof", arb.write().0.bytes());
        both(&place, "a generated dump", &dump);
    }
}
