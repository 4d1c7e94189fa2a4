//! Paths beyond what a thread's frame holds: dumps of programs that died while they filled the leaking map, and small heaps
//! whose paths are enumerated naively; and searches that give up.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hprof_cli::ObjectIndex;
use hprof_query::objects::selection::Selection;
use hprof_query::objects::strength::Exclusions;
use hprof_query::paths::merged::{self, MergeLimits};
use hprof_query::paths::{Budget, beyond_frames};
use hprof_values::RootKind;
use hprof_writer::{HeapModel, Jdk, ObjectId, Options, Root, StackFrame, Type};
use serde_json::Value;

use crate::kit::dump::{Dump, whole_dump};
use crate::kit::portion;
use crate::paths::{ALL, Opened, random, random_model, run};
use crate::raw::is_of_stack;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/leaks").join(name)
}

/// The object of a class that retains most.
fn largest(opened: &Opened, class: &str) -> ObjectIndex {
    let selection: Selection = class.parse().unwrap();
    let objects = selection.objects(&whole_dump(&opened.heap, &opened.graph));
    let tree = &opened.graph.tree;
    let retained = |object: &ObjectIndex| {
        tree.reachable_position(*object).map_or(0, |position| tree.retained_bytes(position))
    };
    objects.iter().map(ObjectIndex).max_by_key(retained).unwrap()
}

fn json(dump: &Dump, arguments: &[&str]) -> Value {
    let mut arguments = arguments.to_vec();
    arguments.extend(["-f", "json"]);
    serde_json::from_str(&run(dump, &arguments).1).unwrap()
}

/// Class and reference of the steps of a path.
fn steps(row: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let steps = row["steps"].as_array().unwrap().iter();
    steps.map(|step| (text(&step["class"]), text(&step["reference"]))).collect()
}

/// Checks the paths to the table of a leaking map, of which frames of a dying thread hold something: the JSON rows through
/// frames and through fields.
fn table_of_map(opened: &Opened, excluded: &[&str]) -> (Vec<Value>, Vec<Value>, String) {
    let table = largest(opened, "java.util.HashMap$Node[]");
    let id = opened.id(table);
    let text = format!("{id:#x}");
    let mut arguments = vec![text.as_str()];
    arguments.extend(excluded);
    let answer = json(&opened.dump, &arguments);
    let rows = answer["rows"].as_array().unwrap().clone();
    let (frames, fields): (Vec<Value>, Vec<Value>) =
        rows.into_iter().partition(|row| row["is_through_frame"].as_bool().unwrap());
    for row in &frames {
        assert_eq!(row["root"]["kinds"], serde_json::json!(["java frame"]));
    }
    // As far as a naive walk finds it, which knows no locals.
    if excluded.is_empty() {
        let distances = opened.raw.distances_from(|kind| !is_of_stack(kind), ALL);
        assert_eq!(steps(&fields[0]).len(), distances[&id] + 1);
    }
    let (code, table, notes) = run(&opened.dump, &arguments);
    assert_eq!(code, 0);
    (frames, fields, table + &notes)
}

fn open(name: &str) -> Opened {
    Opened::open(Dump::sample(&sample(name)))
}

#[test]
fn a_map_that_a_dying_thread_fills_is_held_by_its_field_and_kinds_of_roots_can_be_excluded() {
    let opened = open("s5.hprof.zst");
    let (frames, fields, table) = table_of_map(&opened, &[]);
    assert_eq!((frames.len(), fields.len()), (2, 1));
    assert_eq!(steps(&frames[0]).len(), 1);
    let pair = |class: &str, reference: &str| (class.to_owned(), reference.to_owned());
    let found = steps(&fields[0]);
    assert_eq!((found[0].0.as_str(), found[1].0.as_str()), ("java.lang.Thread", "orders.ImportJob"));
    assert!(found[1].1.contains("target"), "{found:?}");
    assert_eq!(
        found[2..],
        [
            pair("orders.OrderIndex", "index"),
            pair("java.util.HashMap", "byNumber"),
            pair("java.util.HashMap$Node[]", "table"),
        ]
    );
    assert!(table.contains("also held by: field table of java.util.HashMap 0x"), "{table}");
    assert!(table.contains("field byNumber of orders.OrderIndex 0x"), "{table}");
    assert!(
        table.contains("path 3, through fields: thread object of thread \"order-import-3\"\n"),
        "{table}"
    );
    assert!(
        table.contains("(excluded: weak, soft, phantom or finalizer references)")
            && !table.contains("GC roots"),
        "{table}"
    );
    // The last step through fields is what the frames hold.
    let last = fields[0]["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(last["frame_roots"][0]["thread_name"], "order-import-3");
    assert_eq!(frames[0]["steps"][0]["frame_roots"], serde_json::json!([]));
    assert!(
        table.contains(", also a local of thread \"order-import-3\" (java.util.HashMap.putVal)\n"),
        "{table}"
    );
    // One path, and the one that is added.
    let (frames, fields, _) = table_of_map(&opened, &["--paths", "1", "--all-references"]);
    assert_eq!((frames.len(), fields.len()), (1, 1));
    // Excluded kinds of roots start no path.
    let (frames, fields, table) = table_of_map(&opened, &["--exclude-roots", "java-frame"]);
    assert_eq!((frames.len(), fields.len()), (0, 1));
    assert!(table.contains("references, and GC roots of kind java frame)"), "{table}");
    // No longer held by itself, the thread is held by its group.
    let (frames, fields, _) = table_of_map(&opened, &["--exclude-roots", "java-frame,thread-object"]);
    assert_eq!(frames.len(), 0);
    let found = steps(&fields[0]);
    assert_eq!(fields[0]["root"]["kinds"], serde_json::json!(["JNI global"]));
    assert!(found.iter().any(|(class, _)| class == "orders.OrderIndex"), "{found:?}");
    assert!(found.len() > 6, "{found:?}");
}

#[test]
fn a_map_that_a_dying_thread_fills_is_held_by_its_static_field() {
    let (frames, fields, table) = table_of_map(&open("s5-static.hprof.zst"), &[]);
    assert_eq!(frames.len(), 1);
    for row in &fields {
        let found = steps(row);
        let held = ("java.util.HashMap".to_owned(), "BY_NUMBER".to_owned());
        assert_eq!(found[found.len() - 2], held);
        let class = &row["steps"][found.len() - 3];
        assert_eq!(
            (&class["class"], &class["label"]),
            (&"java.lang.Class".into(), &"orders.StaticIndex".into())
        );
    }
    assert!(!fields.is_empty());
    assert!(table.contains("also held by: static field BY_NUMBER of class orders.StaticIndex 0x"), "{table}");
}

#[test]
fn merged_paths_start_in_frames_only_if_nothing_else_leads_there() {
    for (name, class, held, reference, all) in [
        ("s5.hprof.zst", "orders.Order", "java.util.HashMap", "byNumber", 55_418),
        ("s5-static.hprof.zst", "orders.StaticIndex$Receipt", "java.util.HashMap", "BY_NUMBER", 32_329),
    ] {
        let dump = Dump::sample(&sample(name));
        let answer = json(&dump, &[class, "--depth", "5"]);
        let rows = answer["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["reference"] == reference).unwrap();
        assert_eq!((&row["class"], &row["objects"]), (&held.into(), &(all - 1).into()), "{name}");
        // The one that was being put in.
        assert_eq!(answer["total"]["only_frame_objects"], 1);
        assert_eq!(answer["total"]["with_path"], all);
        let local = rows.iter().filter(|row| row["root"]["kinds"] == serde_json::json!(["java frame"]));
        assert_eq!(local.map(|row| row["objects"].as_u64().unwrap()).sum::<u64>(), 1);
        let (_, table, notes) = run(&dump, &[class]);
        assert!(table.contains(&format!("{reference}: {held}")), "{table}");
        assert!(notes.contains("are referenced only by stack frames"), "{notes}");
    }
}

#[test]
fn an_object_on_merged_paths_says_that_it_is_also_a_local() {
    let dump = Dump::sample(&sample("s5.hprof.zst"));
    let (class, depth) = ("orders.Order", ["--depth", "5"]);
    let answer = json(&dump, &[&[class], &depth[..]].concat());
    let rows = answer["rows"].as_array().unwrap();
    let (_, table, _) = run(&dump, &[class]);
    // The table of the map is a local of the thread that fills it: the line says so, only below its top.
    let in_text = "java.util.HashMap$Node[] 0x";
    let line = table.lines().find(|line| line.contains(in_text)).unwrap();
    assert!(
        line.contains(", also a local of thread \"") && line.ends_with(" (java.util.HashMap.putVal)"),
        "{line}"
    );
    let array = rows.iter().find(|row| row["class"] == "java.util.HashMap$Node[]").unwrap();
    let holding = &array["frame_roots"][0];
    assert_eq!(
        (&holding["kinds"], &holding["held_by_frame"]["method"]),
        (&serde_json::json!(["java frame"]), &"putVal".into())
    );
    assert!(holding["thread_name"].is_string() && array["frame_roots"].as_array().unwrap().len() == 1);
    let is_top = |row: &&Value| row["parent"].is_null();
    assert!(rows.iter().filter(is_top).all(|row| row["frame_roots"] == serde_json::json!([])));
    let top = table.lines().find(|line| line.contains("─ ")).unwrap();
    assert!(!top.contains("also a local"), "{top}");
    let (_, csv, _) = run(&dump, &[&[class, "-f", "csv"], &depth[..]].concat());
    assert!(csv.contains("in java.util.HashMap.putVal(HashMap.java:"), "{csv}");
}

/// Small heaps with more roots, many of them locals, of threads that are known or not.
fn with_locals(seed: u64) -> (HeapModel, Vec<ObjectId>) {
    let (mut model, objects) = random_model(seed);
    let mut random = random(seed);
    for _ in 0..random(5) {
        let object = objects[random(objects.len())];
        let root = match random(6) {
            0 => Root::JniGlobal { reference: 2 },
            1 => Root::JniLocal { thread: 1, frame: -1 },
            2 => Root::NativeStack { thread: 1 },
            3 => Root::JavaFrame { thread: 77, frame: -1 },
            _ => Root::JavaFrame { thread: 1, frame: 0 },
        };
        model.root(object, root);
    }
    (model, objects)
}

const EXCLUDED_ROOTS: &[&[RootKind]] = &[
    &[],
    &[RootKind::JavaFrame],
    &[RootKind::ThreadObject],
    &[RootKind::StickyClass, RootKind::NativeStack],
    &[RootKind::JniGlobal, RootKind::JniLocal, RootKind::StickyClass, RootKind::ThreadObject],
];

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn paths_of_small_heaps_are_those_of_a_naive_search() {
    let (mut added, mut beyond, mut none) = (0, 0, 0);
    for seed in 0..150 {
        let (model, objects) = with_locals(seed);
        let opened = Opened::of(&model);
        let view = opened.view();
        for (object, kinds) in
            objects.iter().flat_map(|object| EXCLUDED_ROOTS.iter().map(move |of| (object, of)))
        {
            let wanted = |kind: RootKind| !kinds.contains(&kind);
            let all = opened.raw.starts(wanted);
            let fields = opened.raw.starts(|kind| wanted(kind) && !is_of_stack(kind));
            for (excluded, names) in [(Exclusions::all_but_strong(), ALL), (Exclusions::NONE, &[] as &[&str])]
            {
                let paths =
                    |starts: &BTreeSet<u64>, names| opened.raw.all_paths_from(starts, object.0, names);
                let mut nearest = paths(&all, names);
                let only_excluded = nearest.is_empty() && !paths(&all, &[]).is_empty();
                let names = if only_excluded { &[] } else { names };
                if only_excluded {
                    nearest = paths(&all, names);
                }
                let through_fields = paths(&fields, names);
                let mut expected: BTreeSet<(usize, Vec<u64>)> = BTreeSet::new();
                expected.extend(nearest.iter().chain(&through_fields).map(|path| (path.len(), path.clone())));
                let expected: Vec<Vec<u64>> = expected.into_iter().map(|(_, path)| path).collect();
                for most in [1, 2, 3, 1000] {
                    let excluded = excluded.without_roots(kinds.iter().copied());
                    let found = beyond_frames::paths(&view.edges, opened.index(*object), most, excluded);
                    let context = format!("seed {seed}, {:x}, {kinds:?}, {names:?}, {most}", object.0);
                    assert_eq!(found.only_excluded, only_excluded, "{context}");
                    let ids: Vec<Vec<u64>> = (found.paths.iter())
                        .map(|path| path.objects.iter().map(|object| opened.id(*object)).collect())
                        .collect();
                    for (path, ids) in found.paths.iter().zip(&ids) {
                        assert!(expected.contains(ids), "{context}: {ids:x?}");
                        assert_eq!(path.through_frame, !fields.contains(&ids[0]), "{context}");
                    }
                    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{context}");
                    let mut lengths: Vec<usize> = expected.iter().take(most).map(Vec::len).collect();
                    let got: Vec<usize> = ids.iter().map(Vec::len).collect();
                    if got.len() > lengths.len() {
                        assert!(found.paths[..most].iter().all(|path| path.through_frame), "{context}");
                        lengths.push(through_fields[0].len());
                        added += 1;
                    }
                    assert_eq!(got, lengths, "{context}");
                    let has_fields = found.paths.iter().any(|path| !path.through_frame);
                    assert_eq!(has_fields, !through_fields.is_empty(), "{context}");
                    assert_eq!(found.only_frames(), through_fields.is_empty() && !expected.is_empty());
                    // If exactly that many are found, there may be more.
                    if most == 1000 {
                        assert!(found.are_all, "{context}");
                    } else if found.are_all {
                        assert_eq!(ids.len(), expected.len(), "{context}");
                    }
                    beyond += usize::from(expected.len() > nearest.len());
                    none += usize::from(expected.is_empty());
                }
            }
        }
    }
    assert!(added > 50 && beyond > 50 && none > 50, "{added} {beyond} {none}");
}

#[test]
fn merged_paths_of_small_heaps_are_those_of_naive_walks() {
    let (mut only_frames, mut left_out) = (0, 0);
    for seed in 0..150 {
        let (model, _) = with_locals(seed);
        let opened = Opened::of(&model);
        let view = opened.view();
        let selection: Selection = "Node".parse().unwrap();
        let sought = selection.objects(&whole_dump(&opened.heap, &opened.graph));
        let ids: BTreeSet<u64> = sought.iter().map(|object| opened.id(ObjectIndex(object))).collect();
        for kinds in EXCLUDED_ROOTS {
            let excluded = Exclusions::all_but_strong().without_roots(kinds.iter().copied());
            let merged = merged::merge_paths(&view.edges, &sought, excluded, MergeLimits::default()).unwrap();
            let wanted = |kind: RootKind| !kinds.contains(&kind);
            let of = |names| {
                let depths = opened.raw.depths(wanted, names);
                ids.iter().filter(|id| depths.contains_key(id)).count() as u64
            };
            let followed_all = of(ALL) == 0 && of(&[]) > 0;
            let names = if followed_all { &[] } else { ALL };
            assert_eq!((merged.followed_all, merged.found), (followed_all, of(names)), "seed {seed}");
            let depths = opened.raw.depths(wanted, names);
            let fields = opened.raw.distances_from(|kind| wanted(kind) && !is_of_stack(kind), names);
            for node in &merged.nodes {
                let id = opened.id(node.object);
                assert_eq!(depths[&id], node.depth as usize, "seed {seed}: {id:x}");
            }
            let local = ids.iter().filter(|id| depths.contains_key(id) && !fields.contains_key(id)).count();
            assert_eq!(merged.only_frames, local as u64, "seed {seed}");
            only_frames += local;
            left_out += usize::from(merged.found == 0 && merged.unreachable < merged.sought);
        }
    }
    assert!(only_frames > 50 && left_out > 5, "{only_frames} {left_out}");
}

#[test]
fn chains_of_equal_steps_are_one_line_of_a_table() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let node =
        model.class("a.Map$Node", Some(jdk.object), &[("next", Type::Object), ("value", Type::Object)]);
    let sought = jdk.string(&mut model, "sought");
    let mut next = model.instance_with(node, &[("value", sought.into())]);
    for _ in 0..1400 {
        next = model.instance_with(node, &[("next", next.into())]);
    }
    let holder = model.class("a.Holder", Some(jdk.object), &[("first", Type::Object)]);
    let holder = model.instance_with(holder, &[("first", next.into())]);
    let thread = jdk.thread(&mut model, "worker", false, 5);
    let trace = model.trace(4, &[StackFrame::new(node, "run", "Map.java", 3)]);
    model.root(thread, Root::ThreadObject { thread: 4, trace });
    model.root(holder, Root::JavaFrame { thread: 4, frame: 0 });
    model.root(jdk.object, Root::StickyClass);
    let dump = Dump::of(&model.write(&Options::hotspot()).bytes());

    let id = format!("{:#x}", sought.0);
    let (_, table, notes) = run(&dump, &[&id]);
    assert!(table.contains("… 1,400 x Map$Node.next\n"), "{table}");
    assert!(table.contains("first") && table.contains("value"), "{table}");
    // The path, the titles, the holder, the first node, the chain, the String.
    assert_eq!(table.lines().count(), 6, "{table}");
    assert!(notes.contains(&format!("only stack frames reference {id}: no path to it goes through fields")));
    assert_eq!(steps(&json(&dump, &[&id])["rows"][0]).len(), 1403);

    let (_, table, _) = run(&dump, &["java.lang.String", "--top", "0"]);
    assert!(table.contains("… 1,400 x Map$Node.next\n"), "{table}");
    let json = json(&dump, &["java.lang.String"]);
    let next = json["rows"].as_array().unwrap().iter().filter(|row| row["reference"] == "next").count();
    assert_eq!(next, 1400);
}

#[test]
fn a_search_gives_up_at_the_same_place_in_every_run() {
    let opened = Opened::open(Dump::sample(&sample("s1.hprof.zst")));
    let view = opened.view();
    let search = |object: u32, budget: u64| {
        let mut budget = Budget::new(budget);
        let found = beyond_frames::paths_within(
            &view.edges,
            ObjectIndex(object),
            3,
            Exclusions::all_but_strong(),
            &mut budget,
        );
        (found, budget.is_spent())
    };
    let (mut spent, mut partly) = (0, 0);
    for object in (0..opened.graph.objects.len()).step_by(1009 * portion::step()) {
        let whole = beyond_frames::paths(&view.edges, ObjectIndex(object), 3, Exclusions::all_but_strong());
        let mut gave_up_before = true;
        for bits in 0..24 {
            let (found, gave_up) = search(object, 1 << bits);
            assert_eq!(search(object, 1 << bits), (found.clone(), gave_up));
            // More is never less.
            assert!(gave_up_before || !gave_up, "{object}: {bits}");
            gave_up_before = gave_up;
            if !gave_up {
                assert_eq!(found, whole, "{object}: {bits}");
                break;
            }
            spent += 1;
            assert!(!found.are_all);
            if let Some(path) = found.paths.first() {
                partly += 1;
                assert_eq!(path.objects.len(), whole.paths[0].objects.len(), "{object}: {bits}");
            }
            for path in &found.paths {
                opened.check(&view, &path.objects, if found.only_excluded { &[] } else { ALL });
            }
        }
    }
    assert!(spent > 20 && partly > 0, "{spent} gave up, {partly} of them with paths");
    // The command says so.
    let id = format!("{:#x}", opened.id(ObjectIndex(opened.graph.objects.len() / 2)));
    let output = opened.dump.run(&["paths-to-root", &id, "--budget", "1", "--format", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&document["targets"][0]["is_given_up"], output.status.code()), (&true.into(), Some(1)));
    assert_eq!(document["targets"][0]["found"], "given_up");
    let said = String::from_utf8(opened.dump.run(&["paths-to-root", &id, "--budget", "1"]).stderr).unwrap();
    assert!(said.contains("stopped after 1 referrer") && said.contains("--budget"), "{said}");
}
