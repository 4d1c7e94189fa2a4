//! What decides whether an accumulation is a leak: bounds beside it, running threads, owners, and the limit of the heap.

use hprof_writer::{ClassId, ObjectId, Root, StackFrame, Type, Value as Field};
use serde_json::Value;

use super::made::Heaped;
use super::{Leaks, text};

/// Bytes of each element.
const EACH: u64 = 1 << 12;

fn items(heap: &mut Heaped, count: usize) -> Vec<ObjectId> {
    let class = heap.class("app.Item", 1);
    let element = |_| {
        let bytes = heap.bytes(EACH);
        heap.instance(class, &[bytes])
    };
    (0..count).map(element).collect()
}

/// An object with an array of elements, and a number.
fn counted(heap: &mut Heaped, class: &str, array: ObjectId, field: &str, number: i32) -> ObjectId {
    let fields = [("items", Type::Object), ("size", Type::Int), (field, Type::Int)];
    let class: ClassId = heap.model.class(class, Some(heap.jdk.object), &fields);
    let values = [("items", Field::from(array)), ("size", Field::Int(1)), (field, Field::Int(number))];
    heap.model.instance_with(class, &values)
}

/// The verdict on a container of `count` elements in an array of `length`, and its evidence.
fn judged(class: &str, field: &str, number: i32, count: usize, length: usize) -> (String, String, i32) {
    let mut heap = Heaped::new();
    let mut elements = items(&mut heap, count);
    elements.resize(length, ObjectId::NULL);
    let array = heap.array(&elements);
    let store = counted(&mut heap, class, array, field, number);
    heap.holder("app.Service", "STORE", store);
    verdict(&mut heap)
}

/// The verdict on what is largest, its evidence, and the exit code.
fn verdict(heap: &mut Heaped) -> (String, String, i32) {
    let leaks = Leaks::of(&heap.dump());
    let all = leaks.rows.iter().chain(&leaks.below);
    let row = all.filter(|row| row["verdict"] != "holder").max_by_key(|row| row["retained_bytes"].as_u64());
    let row = row.unwrap_or_else(|| panic!("{:#?}", leaks.rows));
    let evidence = row["evidence"][0].as_str().unwrap_or_default();
    (text(&row["verdict"]).to_owned(), evidence.to_owned(), leaks.code)
}

#[test]
fn a_cache_within_its_bound_is_content() {
    for field in ["maxSize", "maximumSize", "limit", "maxEntries", "val$maxEntries"] {
        let (verdict, evidence, code) = judged("app.Cache", field, 300, 300, 2048);
        assert_eq!((verdict.as_str(), code), ("content", 1), "{field}");
        assert_eq!(evidence, format!("300 of at most 300 ({field} of app.Cache)"));
    }
    // No bound at all, a number about something else, and one that was exceeded long ago.
    for (field, number) in [
        ("maxSize", 0),
        ("maxSize", -1),
        ("maxSize", i32::MAX),
        ("maxRetries", 300),
        ("count", 300),
        ("maxSize", 200),
    ] {
        let (verdict, _, code) = judged("app.Cache", field, number, 300, 2048);
        assert_eq!((verdict.as_str(), code), ("accumulation", 0), "{field} {number}");
    }
}

#[test]
fn a_queue_that_is_filled_to_its_bound_is_none() {
    let of = |count| judged("app.WorkQueue", "capacity", 100, count, 100);
    let (verdict, evidence, code) = of(95);
    assert_eq!((verdict.as_str(), code), ("accumulation", 0));
    assert_eq!(evidence, "95 of at most 100 (capacity of app.WorkQueue)");
    assert_eq!((of(50).0.as_str(), of(50).2), ("content", 1));
}

#[test]
fn the_length_of_a_table_that_grows_is_no_bound() {
    for (field, number) in [("capacity", 128), ("maxSize", 96), ("capacity", 120)] {
        let (verdict, _, code) = judged("app.Bag", field, number, 96, 128);
        assert_eq!((verdict.as_str(), code), ("accumulation", 0), "{field} {number}");
    }
}

#[test]
fn an_array_of_a_static_field_that_is_mostly_waste_is_no_leak() {
    let mut heap = Heaped::new();
    // All bytes are zero.
    let elements = items(&mut heap, 300);
    let halves = [&elements[..150], &elements[150..]].map(|half| heap.array(half));
    let fields = [("FIRST", halves[0].into()), ("SECOND", halves[1].into())];
    heap.model.class_with_statics("app.Service", Some(heap.jdk.object), &[], &fields);
    let (verdict, evidence, code) = verdict(&mut heap);
    assert_eq!((verdict.as_str(), code), ("waste", 1), "{evidence}");
    assert!(evidence.ends_with("which cannot grow and is mostly waste (constant_arrays)"), "{evidence}");
}

#[test]
fn a_few_objects_of_many_parts_are_a_program() {
    let of = |parts: usize| {
        let mut heap = Heaped::new();
        let (model, part) = (heap.class("app.Model", 1), heap.class("app.Part", 1));
        let models: Vec<ObjectId> = (0..20)
            .map(|_| {
                let parts: Vec<ObjectId> = (0..parts)
                    .map(|_| {
                        let bytes = heap.bytes(EACH);
                        heap.instance(part, &[bytes])
                    })
                    .collect();
                let parts = heap.array(&parts);
                heap.instance(model, &[parts])
            })
            .collect();
        let array = heap.array(&models);
        let store = counted(&mut heap, "app.Models", array, "version", 1);
        heap.holder("app.Service", "MODELS", store);
        let dump = heap.dump();
        let output = dump.run(&["leaks", "--format", "json"]);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = answer["rows"].as_array().unwrap().clone();
        rows.into_iter()
            .find(|row| row["elements"] == 20 && row["rule"] != "mat")
            .map(|row| row["verdict"].clone())
    };
    assert_eq!(of(100), Some(Value::from("content")));
    assert_eq!(of(2), Some(Value::from("accumulation")));
}

/// Twenty lists with so many elements each, the last with fewer.
fn of_lists(each: usize, last: usize) -> (String, String, i32) {
    let mut heap = Heaped::new();
    let lists: Vec<ObjectId> = (0..20)
        .map(|number| {
            let elements = items(&mut heap, if number == 19 { last } else { each });
            heap.list(&elements)
        })
        .collect();
    let all = heap.list(&lists);
    heap.holder("app.Tracks", "BY_BUS", all);
    verdict(&mut heap)
}

#[test]
fn lists_that_are_all_full_are_bounded() {
    let (verdict, evidence, code) = of_lists(100, 90);
    assert_eq!((verdict.as_str(), code), ("content", 1), "{evidence}");
    assert_eq!(evidence, "19 of 20 collections in it have 100 elements, and none has more");
    // One has more, and records with as many parts each.
    for (each, last) in [(100, 101), (12, 12)] {
        assert_eq!(of_lists(each, last).0, "accumulation", "{each}, {last}");
    }
}

#[test]
fn many_full_lists_are_the_pages_of_what_grows() {
    let mut heap = Heaped::new();
    let class = heap.class("app.Row", 0);
    let pages: Vec<ObjectId> = (0..300)
        .map(|_| {
            let rows: Vec<ObjectId> = (0..100).map(|_| heap.instance(class, &[])).collect();
            heap.list(&rows)
        })
        .collect();
    let all = heap.list(&pages);
    heap.holder("app.Export", "PAGES", all);
    assert_eq!(verdict(&mut heap).0, "accumulation");
}

#[test]
fn a_bound_of_lists_is_none_of_what_is_in_them() {
    let of = |bound: i32| {
        let mut heap = Heaped::new();
        let lists: Vec<ObjectId> = (0..150)
            .map(|number| {
                let elements = items(&mut heap, 5 + number % 7);
                heap.list(&elements)
            })
            .collect();
        let all = heap.list(&lists);
        let fields = [("lists", Type::Object), ("maxEntries", Type::Int)];
        let class = heap.model.class("app.Cache", Some(heap.jdk.object), &fields);
        let values = [("lists", Field::from(all)), ("maxEntries", Field::Int(bound))];
        let cache = heap.model.instance_with(class, &values);
        heap.holder("app.Service", "CACHE", cache);
        verdict(&mut heap)
    };
    let (verdict, evidence, _) = of(150);
    assert_eq!(verdict, "content", "{evidence}");
    assert_eq!(evidence, "150 of at most 150 (maxEntries of app.Cache)");
    assert_eq!(of(20).0, "accumulation");
}

#[test]
fn many_large_objects_in_a_collection_of_the_program_are_no_parts_of_it() {
    let of = |count: usize| {
        let mut heap = Heaped::new();
        // Nothing that would be counted as elements.
        let (job, part) = (heap.class("app.jobs.Job", 70), heap.class("app.jobs.Row", 1));
        let jobs: Vec<ObjectId> = (0..count)
            .map(|_| {
                let rows = heap.many(part, 70, EACH * 4);
                heap.instance(job, &rows)
            })
            .collect();
        let list = heap.list(&jobs);
        let holder = heap.holder("app.jobs.Registry", "JOBS", list);
        heap.main_thread(holder);
        verdict(&mut heap).0
    };
    assert_eq!((of(30).as_str(), of(60).as_str()), ("content", "accumulation"));
}

#[test]
fn what_only_the_jdk_leads_to_is_its_own() {
    let of = |class: &str| {
        let mut heap = Heaped::new();
        let jdk = heap.jdk.clone();
        let texts: Vec<ObjectId> =
            (0..3000).map(|number| jdk.string(&mut heap.model, &format!("interned text {number}"))).collect();
        let array = heap.array(&texts);
        if class.is_empty() {
            heap.model.root(array, Root::JniGlobal { reference: 0x7f08 });
        } else {
            heap.holder(class, "TEXTS", array);
        }
        verdict(&mut heap)
    };
    let (verdict, evidence, code) = of("");
    assert_eq!((verdict.as_str(), code), ("platform", 1), "{evidence}");
    assert_eq!(of("jdk.internal.Texts").0, "platform");
    assert_eq!(of("app.Texts").0, "accumulation");
}

#[test]
fn work_on_the_stack_of_a_running_thread_is_in_progress() {
    // Runnable and alive; waiting, parked and alive.
    for (status, expected) in [(5, "in_progress"), (0x291, "accumulation")] {
        let mut heap = Heaped::new();
        let elements = items(&mut heap, 100);
        let list = heap.array(&elements);
        let store = counted(&mut heap, "app.Report", list, "page", 1);
        let jdk = heap.jdk.clone();
        let state = heap.model.instance_with(jdk.field_holder, &[("threadStatus", Field::Int(status))]);
        let name = jdk.string(&mut heap.model, "worker");
        let fields = [("name", Field::from(name)), ("holder", Field::from(state))];
        let thread = heap.model.instance_with(jdk.thread, &fields);
        let main = heap.class("app.Main", 0);
        let trace = heap.model.trace(1, &[StackFrame::new(main, "run", "Main.java", 10)]);
        heap.model.root(thread, Root::ThreadObject { thread: 1, trace });
        heap.model.root(store, Root::JavaFrame { thread: 1, frame: 0 });
        let (verdict, evidence, code) = verdict(&mut heap);
        assert_eq!((verdict.as_str(), code), (expected, i32::from(expected != "accumulation")), "{evidence}");
    }
}
