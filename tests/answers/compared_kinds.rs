//! `diff --group-by roots`, `threads`, `properties`, `strings` and `waste`: dumps made for it, and real ones against what the
//! commands that show these things say of each dump by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hprof_writer::{Elements, HeapModel, Jdk, Layout, Options, Root, StackFrame, Type};
use serde_json::{Value as Json, json};

use crate::kit::dump::Dump;

const KINDS: [&str; 5] = ["roots", "threads", "properties", "strings", "waste"];

/// Exit code, answer and notes of `diff OLD NEW`.
fn diff(old: &Dump, new: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = old.run(&[&["diff", new.to_str().unwrap()], arguments].concat());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// The same as JSON.
fn compared(old: &Dump, new: &Dump, by: &str) -> (i32, Json) {
    let (code, out, notes) = diff(old, &new.path, &["--group-by", by, "--format", "json"]);
    (code, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{by}: {error}: {out}{notes}")))
}

fn rows(answer: &Json) -> &[Json] {
    answer["rows"].as_array().unwrap()
}

/// Returns another command's answer about one dump.
fn said(dump: &Dump, arguments: &[&str]) -> Json {
    let output = dump.run(&[arguments, &["--format", "json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Old, new and difference of a row.
fn change(row: &Json, key: &str) -> [i64; 3] {
    ["old", "new", "delta"].map(|side| row[format!("{key}_{side}")].as_i64().unwrap())
}

fn expected(old: u64, new: u64) -> [i64; 3] {
    let (old, new) = (i64::try_from(old).unwrap(), i64::try_from(new).unwrap());
    [old, new, new - old]
}

fn sample(name: &str) -> Dump {
    Dump::sample(&Path::new("samples").join(name))
}

/// A heap whose objects lie elsewhere than those of another one, with Strings of these texts.
fn of_strings(base: u64, texts: &[(&str, usize)]) -> Dump {
    let mut model = HeapModel::with_base(Layout::COMPRESSED, base);
    let jdk = Jdk::add_to(&mut model);
    for (text, copies) in texts {
        for _ in 0..*copies {
            let string = jdk.string(&mut model, text);
            model.root(string, Root::JniGlobal { reference: 1 });
        }
    }
    model.root_boot_classes();
    Dump::written(&model.write(&Options::hotspot()))
}

#[test]
fn one_copy_before_is_one_copy() {
    let long = "long".repeat(100);
    let old = of_strings(
        0x7_0000_0000,
        &[("once", 1), ("gone", 2), ("日本語", 1), ("same", 3), ("alone", 1), ("fewer", 9), (&long, 2)],
    );
    let new = of_strings(
        0x9_0000_0000,
        &[
            ("same", 3),
            ("new", 2),
            ("once", 50),
            ("日本語", 3),
            ("alone", 1),
            ("one", 1),
            ("fewer", 1),
            (&long, 3),
        ],
    );
    let (code, answer) = compared(&old, &new, "strings");
    assert_eq!(code, 0);
    // A String of 24 bytes, and an array of 16 bytes and its characters, to whole 8 bytes.
    let each = |text: &str| {
        let width = if text.is_ascii() { 1 } else { 2 };
        24 + (16 + text.chars().count() as u64 * width).next_multiple_of(8)
    };
    let wanted = [
        ("once", "changed", 1, 50),
        (&long, "changed", 2, 3),
        // As much as the next one; its first copy comes first.
        ("new", "new", 0, 2),
        ("日本語", "changed", 1, 3),
        ("same", "same", 3, 3),
        ("gone", "gone", 2, 0),
        ("fewer", "changed", 9, 1),
    ];
    let told: Vec<&str> = rows(&answer).iter().map(|row| row["text"].as_str().unwrap()).collect();
    assert_eq!(told, wanted.map(|(text, ..)| text));
    for (row, (text, status, before, after)) in rows(&answer).iter().zip(wanted) {
        assert_eq!(row["status"], status, "{text}");
        assert_eq!(change(row, "strings"), expected(before, after), "{text}");
        assert_eq!(change(row, "total_bytes"), expected(before * each(text), after * each(text)), "{text}");
        assert_eq!((&row["length"], &row["is_truncated"]), (&json!(text.chars().count()), &json!(false)));
    }
    assert_eq!(answer["total"]["rows"], 6);
    assert_eq!(change(&answer["total"], "strings"), expected(19, 64));
    assert_eq!(change(&answer["total"], "distinct"), expected(7, 8));
    // In a table long texts are cut, and what is the same is left out.
    let (_, table, _) = diff(&old, &new.path, &["--group-by", "strings"]);
    assert!(table.contains("\"once\"") && table.contains("longlong…\""), "{table}");
    assert!(!table.contains("\"same\"") && !table.contains(&long), "{table}");
    let (_, table, _) = diff(&old, &new.path, &["--group-by", "strings", "--top", "2"]);
    assert!(table.contains("4 more rows") && !table.contains("日本語"), "{table}");
}

/// A thread: its name, and the class, method and line where it is.
type Made<'t> = (&'t str, Option<(&'t str, &'t str, i32)>);

/// A heap with these threads.
fn of_threads(base: u64, threads: &[Made<'_>]) -> Dump {
    let mut model = HeapModel::with_base(Layout::COMPRESSED, base);
    let jdk = Jdk::add_to(&mut model);
    for (serial, (name, place)) in (1u32..).zip(threads) {
        let thread = jdk.thread(&mut model, name, false, 5);
        let frames = place.map(|(class, method, line)| {
            let class = model.class(class, Some(jdk.object), &[("own", Type::Int)]);
            StackFrame::new(class, method, "Made.java", line)
        });
        let trace = model.trace(serial, frames.as_slice());
        model.root(thread, Root::ThreadObject { thread: serial, trace });
    }
    model.root_boot_classes();
    Dump::written(&model.write(&Options::hotspot()))
}

#[test]
fn threads_of_a_pool_are_one_row() {
    let idle = Some(("a.Pool", "take", 7));
    let old = of_threads(
        0x7_0000_0000,
        &[
            ("main", Some(("a.Main", "main", 10))),
            ("pool-1-thread-1", idle),
            ("pool-1-thread-2", idle),
            ("worker-3", Some(("a.Job$$Lambda$14/0x01", "run", 3))),
            ("reaper", idle),
            ("unknown", None),
        ],
    );
    let new = of_threads(
        0x9_0000_0000,
        &[
            ("unknown", None),
            ("pool-1-thread-4", idle),
            ("pool-1-thread-5", idle),
            ("pool-1-thread-6", idle),
            ("main", Some(("a.Main", "main", 11))),
            ("worker-7", Some(("a.Job$$Lambda$15/0x77", "run", 3))),
            ("timer-2", idle),
        ],
    );
    let (code, answer) = compared(&old, &new, "threads");
    assert_eq!(code, 0);
    let told: Vec<_> = (rows(&answer).iter())
        .map(|row| {
            json!([row["name"], row["status"], row["threads_old"], row["threads_new"], row["stack_status"]])
        })
        .collect();
    assert_eq!(
        told,
        [
            json!(["pool-1-thread-*", "changed", 2, 3, "same"]),
            json!(["timer-2", "new", 0, 1, null]),
            json!(["main", "changed", 1, 1, "other"]),
            json!(["unknown", "same", 1, 1, null]),
            json!(["worker-*", "same", 1, 1, "same"]),
            json!(["reaper", "gone", 1, 0, null]),
        ]
    );
    let (before, after) = (said(&old, &["threads"]), said(&new, &["threads"]));
    let retained = |answer: &Json, name: &str| {
        let named = rows(answer).iter().filter(|row| row["name"].as_str().unwrap().starts_with(name));
        named.map(|row| row["retained_bytes"].as_u64().unwrap()).sum::<u64>()
    };
    for (row, name) in rows(&answer).iter().zip(["pool-", "timer", "main", "unknown", "worker", "reaper"]) {
        let wanted = expected(retained(&before, name), retained(&after, name));
        assert_eq!(change(row, "retained_bytes"), wanted, "{name}");
    }
    assert_eq!(change(&answer["total"], "threads"), [6, 7, 1]);
}

#[test]
fn roots_and_waste_of_made_heaps() {
    let of = |base, globals: u64, arrays: usize| {
        let mut model = HeapModel::with_base(Layout::COMPRESSED, base);
        let jdk = Jdk::add_to(&mut model);
        for reference in 0..globals {
            let object = model.instance_with(jdk.object, &[]);
            model.root(object, Root::JniGlobal { reference });
            // The same object again.
            model.root(object, Root::JniGlobal { reference });
        }
        for _ in 0..arrays {
            let array = model.prim_array(Elements::of_bytes(&[1, 2, 3, 4, 5, 6, 7, 8]));
            model.root(array, Root::MonitorUsed);
        }
        model.root_boot_classes();
        Dump::written(&model.write(&Options::hotspot()))
    };
    let (old, new) = (of(0x7_0000_0000, 2, 2), of(0x9_0000_0000, 5, 10));
    let (code, answer) = compared(&old, &new, "roots");
    assert_eq!(code, 0);
    let row = |kind: &str| rows(&answer).iter().find(|row| row["kind"] == kind).unwrap();
    let globals = row("JNI global");
    assert_eq!((change(globals, "root_count"), change(globals, "objects")), ([4, 10, 6], [2, 5, 3]));
    // java.lang.Object takes 16 bytes.
    assert_eq!(change(globals, "retained_bytes"), [32, 80, 48]);
    assert_eq!(row("sticky class")["status"], "same");
    let (code, answer) = compared(&old, &new, "waste");
    assert_eq!(code, 0);
    let first = &rows(&answer)[0];
    assert_eq!((&first["kind"], &first["status"]), (&json!("duplicate_arrays"), &json!("changed")));
    // All arrays but one, of 24 bytes.
    assert_eq!((change(first, "objects"), change(first, "wasted_bytes")), ([1, 9, 8], [24, 216, 192]));
}

/// Pairs of real dumps: other programs, other JVMs, Android, the HPROF agent, no heap.
const PAIRS: [[&str; 2]; 5] = [
    ["jdk/jdk8.hprof.zst", "jdk/jdk11.hprof.zst"],
    ["jdk/jdk17.hprof.zst", "jdk/jdk25.hprof.zst"],
    ["agent/all.hprof.zst", "agent/all-cpu.hprof.zst"],
    ["public/android-leak_service_binder.hprof.zst", "leaks/s3.hprof.zst"],
    ["agent/sites.hprof.zst", "public/netbeans-heap_dump.hprof.zst"],
];

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn real_dumps_are_compared_as_each_is_shown() {
    for [old, new] in PAIRS {
        let (old, new) = (sample(old), sample(new));
        let what = format!("{} {}", old.path.display(), new.path.display());
        figures(&what, &old, &new, "roots", "kind", &["root_count", "objects", "retained_bytes"], &|dump| {
            said(dump, &["roots", "--top", "1"])["counts_by_kind"].as_array().unwrap().clone()
        });
        figures(&what, &old, &new, "waste", "kind", &["objects", "wasted_bytes"], &|dump| {
            rows(&said(dump, &["waste"])).to_vec()
        });
        properties(&what, &old, &new);
        strings(&what, &old, &new);
        threads(&what, &old, &new);
    }
}

/// Rows whose figures another command has by the same keys.
fn figures(
    what: &str,
    old: &Dump,
    new: &Dump,
    by: &str,
    key: &str,
    all: &[&str],
    of: &dyn Fn(&Dump) -> Vec<Json>,
) {
    let sides = [old, new].map(|dump| -> BTreeMap<String, Json> {
        of(dump).into_iter().map(|row| (row[key].as_str().unwrap().to_owned(), row)).collect()
    });
    let (_, answer) = compared(old, new, by);
    let keys: BTreeSet<&str> = rows(&answer).iter().map(|row| row[key].as_str().unwrap()).collect();
    let wanted: BTreeSet<&str> = sides.iter().flat_map(|side| side.keys().map(String::as_str)).collect();
    assert_eq!(keys, wanted, "{what} {by}");
    for row in rows(&answer) {
        let of_row = sides.each_ref().map(|side| side.get(row[key].as_str().unwrap()));
        for figure in all {
            let [before, after] = of_row.map(|side| side.map_or(0, |row| row[*figure].as_u64().unwrap()));
            assert_eq!(change(row, figure), expected(before, after), "{what} {by} {row}");
        }
    }
}

fn properties(what: &str, old: &Dump, new: &Dump) {
    let [before, after] =
        [old, new].map(|dump| said(dump, &["info"])["rows"][0]["jvm"]["properties"].clone());
    let (code, answer) = compared(old, new, "properties");
    let keys = |side: &Json| side.as_object().map(|side| side.keys().cloned().collect::<BTreeSet<_>>());
    let wanted = &keys(&before).unwrap_or_default() | &keys(&after).unwrap_or_default();
    let told: Vec<String> =
        rows(&answer).iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(told, wanted.into_iter().collect::<Vec<_>>(), "{what}");
    let mut changed = 0;
    for row in rows(&answer) {
        let key = row["name"].as_str().unwrap();
        assert_eq!((&row["value_old"], &row["value_new"]), (&before[key], &after[key]), "{what} {key}");
        changed += u64::from(before[key] != after[key]);
    }
    assert_eq!(answer["total"]["rows"], changed, "{what}");
    assert_eq!(code, i32::from(changed == 0), "{what}");
}

fn strings(what: &str, old: &Dump, new: &Dump) {
    let sides = [old, new].map(|dump| {
        let mut texts = BTreeMap::<String, (u64, u64)>::new();
        for row in rows(&said(dump, &["strings"])) {
            let of_text = texts.entry(row["label"].as_str().unwrap().to_owned()).or_default();
            *of_text = (of_text.0 + 1, of_text.1 + row["total_bytes"].as_u64().unwrap());
        }
        texts
    });
    let several = sides.iter().flat_map(|side| side.iter().filter(|(_, (count, _))| *count > 1));
    let several: BTreeSet<&str> = several.map(|(text, _)| text.as_str()).collect();
    let (_, answer) = compared(old, new, "strings");
    let told: BTreeSet<&str> = rows(&answer).iter().map(|row| row["text"].as_str().unwrap()).collect();
    assert_eq!(rows(&answer).len(), told.len(), "{what}");
    assert_eq!(told, several, "{what}");
    for row in rows(&answer) {
        let text = row["text"].as_str().unwrap();
        let [before, after] = sides.each_ref().map(|side| side.get(text).copied().unwrap_or_default());
        assert_eq!(change(row, "strings"), expected(before.0, after.0), "{what} {text}");
        assert_eq!(change(row, "total_bytes"), expected(before.1, after.1), "{what} {text}");
        let status = match (before.0, after.0) {
            (0, _) => "new",
            (_, 0) => "gone",
            _ if before == after => "same",
            _ => "changed",
        };
        assert_eq!(row["status"], status, "{what} {text}");
    }
    let order = |row: &Json| (-change(row, "total_bytes")[2], -change(row, "strings")[2]);
    assert!(rows(&answer).is_sorted_by_key(order), "{what}");
}

fn threads(what: &str, old: &Dump, new: &Dump) {
    // Names with `*` for all numbers, and all but the numbers that differ.
    let form = |name: &str| regex::Regex::new("[0-9]+").unwrap().replace_all(name, "*").into_owned();
    let sides = [old, new].map(|dump| {
        let mut forms = BTreeMap::<(String, bool), Vec<Json>>::new();
        for row in rows(&said(dump, &["threads"])) {
            let key = (form(row["name"].as_str().unwrap_or_default()), row["is_virtual"].as_bool().unwrap());
            forms.entry(key).or_default().push(row.clone());
        }
        forms
    });
    let (_, answer) = compared(old, new, "threads");
    let wanted: BTreeSet<_> = sides.iter().flat_map(BTreeMap::keys).collect();
    assert_eq!(rows(&answer).len(), wanted.len(), "{what}");
    for row in rows(&answer) {
        let name = row["name"].as_str().unwrap_or_default();
        let key = (form(name), row["is_virtual"].as_bool().unwrap());
        let of_row = sides.each_ref().map(|side| side.get(&key).cloned().unwrap_or_default());
        let [before, after] = of_row.each_ref().map(|side| side.len() as u64);
        assert_eq!(change(row, "threads"), expected(before, after), "{what} {name}");
        let names: BTreeSet<&str> = of_row.iter().flatten().filter_map(|row| row["name"].as_str()).collect();
        assert_eq!(name.contains('*'), names.len() > 1, "{what} {name}");
        assert!(names.len() > 1 || names.first().is_none_or(|only| *only == name), "{what} {name}");
        // No thread of these dumps dominates another.
        let retained = |side: &Vec<Json>| side.iter().filter_map(|row| row["retained_bytes"].as_u64()).sum();
        let [before, after] = of_row.each_ref().map(retained);
        assert_eq!(change(row, "retained_bytes"), expected(before, after), "{what} {name}");
        for (side, key) in of_row.iter().zip(["state_old", "state_new"]) {
            let states: BTreeSet<Option<&str>> = side.iter().map(|row| row["state"].as_str()).collect();
            let state = states.first().copied().flatten().filter(|_| states.len() == 1);
            assert_eq!(row[key].as_str(), state, "{what} {name}");
        }
        let frame = |frame: &Json| ["class", "method", "line"].map(|key| frame[key].to_string()).join(" ");
        let stacks = of_row.each_ref().map(|side| -> BTreeSet<Vec<String>> {
            let stacks = side.iter().map(|row| row["frames"].as_array().unwrap().iter().map(frame).collect());
            stacks.filter(|stack: &Vec<String>| !stack.is_empty()).collect()
        });
        let stack = match &stacks {
            [before, after] if before.is_empty() || after.is_empty() => Json::Null,
            // Names of generated classes are no part of these.
            [before, after] if before == after => json!("same"),
            _ => json!("other"),
        };
        assert_eq!(row["stack_status"], stack, "{what} {name}");
    }
}

#[test]
fn nothing_has_changed_against_itself() {
    for name in
        ["jdk/jdk17.hprof.zst", "public/android-leak_service_binder.hprof.zst", "agent/sites.hprof.zst"]
    {
        let dump = sample(name);
        for by in KINDS {
            let (code, answer) = compared(&dump, &dump, by);
            assert_eq!((code, &answer["total"]["rows"]), (1, &json!(0)), "{name} {by}");
            assert!(rows(&answer).iter().all(|row| row["status"] == "same"), "{name} {by}");
            let (code, table, notes) = diff(&dump, &dump.path, &["--group-by", by]);
            assert_eq!((code, table.as_str()), (1, ""), "{name} {by}");
            assert!(notes.contains("nothing has changed"), "{name} {by}: {notes}");
        }
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let dump = sample("jdk/jdk11.hprof.zst");
    let text = Path::new("samples/agent/all-threads.txt.zst");
    for by in KINDS {
        let (code, _, notes) = diff(&dump, text, &["--group-by", by]);
        assert!(code == 2 && notes.contains("is a text report"), "{by}: {notes}");
        for (more, named) in [
            (&["com.acme.**"][..], "PATTERN"),
            (&["--live"], "--live"),
            (&["--retained"], "--retained"),
            (&["--sort", "bytes"], "--sort"),
        ] {
            let (code, out, notes) = diff(&dump, &dump.path, &[&["--group-by", by], more].concat());
            assert!(code == 2 && out.is_empty() && notes.contains(named), "{by} {more:?}: {notes}");
        }
    }
}
