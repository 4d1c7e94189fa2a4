//! `threads --group` against the threads themselves, grouped by hand, and the mark of the thread that ran out of memory.

use std::collections::BTreeMap;
use std::path::Path;

use hprof_writer::{ClassId, HeapModel, Jdk, ObjectId, Options, Root, StackFrame, Type, Value};
use serde_json::Value as Json;

use crate::kit::dump::Dump;

fn run(dump: &Dump, arguments: &[&str]) -> String {
    let output = dump.run(&[&["threads"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(dump: &Dump, arguments: &[&str]) -> Json {
    serde_json::from_str(&run(dump, &[arguments, &["--format", "json"]].concat())).unwrap()
}

/// A frame without what it holds.
fn frame(frame: &Json) -> String {
    ["class", "method", "source", "line", "native"].map(|key| frame[key].to_string()).join(" ")
}

fn frames(row: &Json) -> Vec<String> {
    row["frames"].as_array().unwrap().iter().map(frame).collect()
}

/// A name with `*` for each number and each `*` in it.
fn form(name: &str) -> String {
    let mut form = String::new();
    for c in name.chars() {
        match c {
            '0'..='9' | '*' if form.ends_with('*') => {}
            '0'..='9' | '*' => form.push('*'),
            c => form.push(c),
        }
    }
    form
}

/// Returns the objects on the stacks of a group, as reported by `threads` without `--group`: by class, without the
/// threads themselves.
fn held(threads: &Json, group: &Json) -> BTreeMap<String, std::collections::BTreeSet<String>> {
    let members: Vec<&str> =
        group["thread_objects"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    let mut held = BTreeMap::<String, std::collections::BTreeSet<String>>::new();
    for thread in threads["rows"].as_array().unwrap() {
        let id = thread["object"].as_str().unwrap();
        if !members.contains(&id) {
            continue;
        }
        let frames = thread["frames"].as_array().unwrap().iter().chain([thread]);
        for local in frames.flat_map(|frame| frame["locals"].as_array().unwrap()) {
            if local["object"] != id {
                let object = local["object"].as_str().unwrap().to_owned();
                held.entry(local["class"].as_str().unwrap().to_owned()).or_default().insert(object);
            }
        }
    }
    held
}

#[test]
fn locals_of_a_group_are_those_of_its_threads() {
    for sample in ["jdk/jdk17", "jdk/jdk25", "leaks/s5"] {
        let dump = Dump::sample(&Path::new("samples").join(format!("{sample}.hprof.zst")));
        let (threads, groups) = (json(&dump, &[]), json(&dump, &["--group"]));
        let mut all = 0;
        for group in groups["rows"].as_array().unwrap() {
            let mut expected: Vec<(String, u64)> =
                held(&threads, group).into_iter().map(|(class, of)| (class, of.len() as u64)).collect();
            let rows = group["locals"].as_array().unwrap();
            let row =
                |row: &Json| (row["class"].as_str().unwrap().to_owned(), row["objects"].as_u64().unwrap());
            let mut found: Vec<(String, u64)> = rows.iter().map(row).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{sample}: {}", group["name"]);
            let bytes: Vec<u64> = rows.iter().map(|row| row["retained_bytes"].as_u64().unwrap()).collect();
            assert!(bytes.is_sorted_by(|a, b| a >= b), "{sample}");
            all += rows.len();
        }
        assert!(all > 5, "{sample}: {all}");
    }
}

/// Tasks whose names have three numbers, in one place but one of them; each holds a request.
fn tasks(count: u32) -> Vec<u8> {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let request = model.class("app.Request", Some(jdk.object), &[("body", Type::Object)]);
    let worker = model.class("app.Worker", Some(jdk.object), &[]);
    let kept: Vec<ObjectId> = (1..=count)
        .map(|number| {
            let name = format!("task {number}.0 in stage 2.0 (TID {})", 40 + number);
            let line = if number == count { 8 } else { 7 };
            let thread = jdk.thread(&mut model, &name, false, 5);
            let body = model.prim_array(hprof_writer::Elements::of_bytes(&[7; 2000]));
            let held = model.instance(request, &[body.into()]);
            let frames = [at(jdk.object, "wait", 1), at(worker, "handle", line), at(worker, "run", 3)];
            let trace = model.trace(number, &frames);
            model.root(thread, Root::ThreadObject { thread: number, trace });
            // In two frames, and the thread itself.
            model.root(held, Root::JavaFrame { thread: number, frame: 1 });
            model.root(held, Root::JavaFrame { thread: number, frame: 2 });
            model.root(thread, Root::JavaFrame { thread: number, frame: 2 });
            held
        })
        .collect();
    assert_eq!(model.values(kept[0]).map(<[Value]>::len), Some(1));
    model.root_boot_classes();
    model.write(&Options::hotspot()).bytes()
}

fn at(class: ClassId, method: &str, line: i32) -> StackFrame {
    StackFrame::new(class, method, "Worker.java", line)
}

#[test]
fn names_that_differ_in_several_numbers_are_one_group() {
    let dump = Dump::of(&tasks(30));
    let groups = json(&dump, &["--group"]);
    let rows = groups["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{groups}");
    assert_eq!((&rows[0]["threads"], &rows[1]["threads"]), (&29.into(), &1.into()));
    // Numbers that all have stay.
    assert_eq!(rows[0]["name"], "task *.0 in stage 2.0 (TID *)");
    assert_eq!(rows[1]["name"], "task 30.0 in stage 2.0 (TID 70)");
    let locals = rows[0]["locals"].as_array().unwrap();
    assert_eq!(locals.len(), 1, "{groups}");
    let one = &locals[0];
    assert_eq!((&one["class"], &one["objects"]), (&"app.Request".into(), &29.into()));
    assert_eq!(one["methods"], serde_json::json!(["app.Worker.handle", "app.Worker.run"]));
    let (shallow, retained) =
        (one["shallow_bytes"].as_u64().unwrap(), one["retained_bytes"].as_u64().unwrap());
    assert!(shallow < retained && retained >= 29 * 2000, "{one}");
    let table = run(&dump, &["--group", "--locals"]);
    assert!(table.contains(" 29 x app.Request in app.Worker.handle and 1 other method"), "{table}");
    // Without the option a table has frames only.
    assert!(!run(&dump, &["--group"]).contains("app.Request"));
}

#[test]
fn locals_are_of_the_frame_outside_the_jdk() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let (request, state) = (
        model.class("app.Request", Some(jdk.object), &[]),
        model.class("java.util.State", Some(jdk.object), &[]),
    );
    let worker = model.class("app.Worker", Some(jdk.object), &[]);
    for (number, name, inner) in [(1, "pool-1", "wait"), (2, "pool-2", "park"), (3, "other", "park")] {
        let thread = jdk.thread(&mut model, name, false, 5);
        let frames = [
            at(jdk.object, inner, 1),
            at(worker, "handle", 7),
            at(worker, "run", if number == 3 { 4 } else { 3 }),
            at(jdk.object, "start", 2),
        ];
        let trace = model.trace(number, &frames);
        model.root(thread, Root::ThreadObject { thread: number, trace });
        let (held, inner, outer) =
            (model.instance(request, &[]), model.instance(state, &[]), model.instance(state, &[]));
        for (object, frame) in [(inner, 0), (held, 2), (outer, 3)] {
            model.root(object, Root::JavaFrame { thread: number, frame });
        }
    }
    model.root_boot_classes();
    let dump = Dump::of(&model.write(&Options::hotspot()).bytes());
    // Three stacks without the option.
    let groups = json(&dump, &["--group"]);
    assert_eq!(groups["rows"].as_array().unwrap().len(), 3, "{groups}");
    let groups = json(&dump, &["--group", "--locals"]);
    let [row] = groups["rows"].as_array().unwrap().as_slice() else { panic!("{groups}") };
    assert_eq!((&row["threads"], &row["name"]), (&3.into(), &Json::Null));
    assert_eq!(row["frame"], "app.Worker.handle(Worker.java:7)");
    // Those that lead to it differ.
    let shared: Vec<&Json> = row["frames"].as_array().unwrap().iter().map(|frame| &frame["method"]).collect();
    assert_eq!(shared, ["handle"]);
    let locals = row["locals"].as_array().unwrap();
    assert_eq!(locals.len(), 1, "{row}");
    assert_eq!((&locals[0]["class"], &locals[0]["objects"]), (&"app.Request".into(), &3.into()));
    assert_eq!(locals[0]["methods"], serde_json::json!(["app.Worker.run"]));
    let table = run(&dump, &["--group", "--locals"]);
    assert!(table.contains("app.Worker.handle(Worker.java:7)\n"), "{table}");
    assert!(table.contains(" 3 x app.Request in app.Worker.run"), "{table}");
    assert!(!table.contains("java.util.State"), "{table}");
    // The threads of the row.
    let first = row["thread_objects"][0].as_str().unwrap();
    let threads = json(&dump, &["--group-of", first, "--locals"]);
    assert_eq!(threads["rows"].as_array().unwrap().len(), 3, "{threads}");
    let threads = json(&dump, &["--group-of", first]);
    assert_eq!(threads["rows"].as_array().unwrap().len(), 1, "{threads}");
}

#[test]
fn groups_are_the_threads_added_up() {
    for sample in ["jdk/jdk8", "jdk/jdk17", "jdk/jdk25", "leaks/s4", "leaks/s5", "public/maven-jdk8"] {
        let dump = Dump::sample(&Path::new("samples").join(format!("{sample}.hprof.zst")));
        let threads = json(&dump, &[]);
        // Names, and bytes of the threads, by pool and stack.
        let mut expected = BTreeMap::<(Option<String>, Vec<String>), Vec<(String, u64)>>::new();
        for row in threads["rows"].as_array().unwrap() {
            let name = row["name"].as_str();
            let pool = name.map(form);
            let bytes = row["retained_bytes"].as_u64().unwrap_or(0);
            let group = expected.entry((pool, frames(row))).or_default();
            group.push((name.unwrap_or_default().to_owned(), bytes));
        }
        let groups = json(&dump, &["--group"]);
        let rows = groups["rows"].as_array().unwrap();
        assert_eq!(rows.len(), expected.len(), "{sample}");
        let mut total = 0;
        for row in rows {
            let name = row["name"].as_str();
            let pool = name.map(form);
            let members = &expected[&(pool, frames(row))];
            assert_eq!(row["threads"], members.len(), "{sample}: {name:?}");
            assert_eq!(row["thread_objects"].as_array().unwrap().len(), members.len());
            // No thread of these dumps dominates another.
            assert_eq!(row["retained_bytes"], members.iter().map(|(_, bytes)| bytes).sum::<u64>());
            let is_one_name = members.iter().all(|(other, _)| *other == members[0].0);
            assert_eq!(name.is_some_and(|name| name.contains('*')), !is_one_name, "{sample}: {name:?}");
            total += members.len() as u64;
        }
        assert_eq!(groups["matching"]["threads"], total);
        assert_eq!(groups["matching"]["threads"], threads["matching"]["rows"]);
        let bytes: Vec<u64> = rows.iter().map(|row| row["retained_bytes"].as_u64().unwrap()).collect();
        assert!(bytes.is_sorted_by(|a, b| a >= b), "{sample}");
    }
}

#[test]
fn a_pool_is_one_row() {
    // Carriers of virtual threads.
    let dump = Dump::sample(Path::new("samples/jdk/jdk25.hprof.zst"));
    let groups = json(&dump, &["--group"]);
    let pools = groups["rows"].as_array().unwrap().iter().filter(|row| row["threads"].as_u64() > Some(1));
    assert!(pools.count() > 0, "{groups}");
    let table = run(&dump, &["--group", "--depth", "1"]);
    assert!(table.contains("retained  threads  state"), "{table}");
}

#[test]
fn a_group_is_found_by_one_of_its_threads() {
    let dump = Dump::sample(Path::new("samples/jdk/jdk25.hprof.zst"));
    let groups = json(&dump, &["--group"]);
    for row in groups["rows"].as_array().unwrap() {
        let objects: Vec<&str> =
            row["thread_objects"].as_array().unwrap().iter().map(|object| object.as_str().unwrap()).collect();
        let threads = json(&dump, &["--group-of", objects.last().unwrap(), "--sort", "address"]);
        let found: Vec<&str> =
            threads["rows"].as_array().unwrap().iter().map(|row| row["object"].as_str().unwrap()).collect();
        assert_eq!(found, objects);
    }
    // No thread, no group.
    let none = dump.run(&["threads", "--group-of", "0x1"]);
    assert_eq!((none.status.code(), none.stdout.is_empty()), (Some(1), true), "{none:?}");
}

#[test]
fn the_thread_that_ran_out_of_memory_is_marked() {
    for (sample, culprit) in [
        ("leaks/s5", Some("order-import-3")),
        ("leaks/s5-static", Some("receipt-import")),
        ("leaks/s4", None),
        ("jdk/jdk17", None),
    ] {
        let dump = Dump::sample(&Path::new("samples").join(format!("{sample}.hprof.zst")));
        let marked: Vec<String> = json(&dump, &[])["rows"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["is_out_of_memory"].as_bool().unwrap())
            .map(|row| row["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(marked, culprit.into_iter().collect::<Vec<_>>(), "{sample}");
        for arguments in [&[][..], &["--group"]] {
            let table = run(&dump, arguments);
            let lines = table.lines().filter(|line| line.ends_with("OutOfMemoryError"));
            assert_eq!(lines.count(), usize::from(culprit.is_some()), "{sample}: {table}");
        }
    }
}
