//! Suspects within holders: on heaps where one object holds nearly everything.

use hprof_writer::{ClassId, ObjectId};
use serde_json::Value;

use super::made::Heaped;
use super::{Leaks, id, number, text};

/// Retained size of a part.
const MUCH: u64 = 400_000;

/// A server in a static field, whose fields are these.
fn server(heap: &mut Heaped, parts: &[ObjectId]) {
    let class = heap.class("app.Server", parts.len());
    let server = heap.instance(class, parts);
    heap.holder("app.Main", "SERVER", server);
}

/// An `Object[]` with this many objects of a class.
fn items(heap: &mut Heaped, class: ClassId, count: u64) -> ObjectId {
    let all = heap.many(class, count, MUCH);
    heap.array(&all)
}

/// Objects with bytes of which no two are equal.
fn distinct(heap: &mut Heaped, class: ClassId, count: u32) -> ObjectId {
    let all: Vec<ObjectId> = (0..count)
        .map(|number| {
            let length = u32::try_from(MUCH / u64::from(count)).unwrap();
            let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + number) as u8).collect();
            let bytes = heap.model.prim_array(hprof_writer::Elements::of_bytes(&bytes));
            heap.instance(class, &[bytes])
        })
        .collect();
    heap.array(&all)
}

fn rules(rows: &[Value]) -> Vec<(&str, &str, u64)> {
    rows.iter().map(|row| (text(&row["rule"]), text(&row["verdict"]), number(&row["objects"]))).collect()
}

#[test]
fn each_store_of_a_holder_is_a_suspect() {
    let mut heap = Heaped::new();
    let (order, user) = (heap.class("app.Order", 1), heap.class("app.User", 1));
    let orders = distinct(&mut heap, order, 100);
    let users = distinct(&mut heap, user, 50);
    let few = items(&mut heap, order, 3);
    server(&mut heap, &[users, few, orders]);
    let leaks = Leaks::of(&heap.dump());
    assert_eq!(rules(&leaks.rows), [("mat", "holder", 1)]);
    // The few are a third of the heap, but three objects accumulate nothing.
    assert_eq!(rules(&leaks.below), [("below", "accumulation", 1); 2]);
    let stored = |row: &Value| (id(&row["object"]), text(&row["reason"]["class"]).to_owned());
    let found: Vec<_> = leaks.below.iter().map(stored).collect();
    assert_eq!(found, [(orders.0, "app.Order".to_owned()), (users.0, "app.User".to_owned())]);
    assert_eq!(leaks.code, 0);
}

#[test]
fn what_many_like_objects_store_is_one_suspect_with_the_sum() {
    let mut heap = Heaped::new();
    let (result, row) = (heap.class("app.Result", 1), heap.class("app.Row", 1));
    let results: Vec<ObjectId> = (0..10)
        .map(|_| {
            let rows = items(&mut heap, row, 40);
            heap.instance(result, &[rows])
        })
        .collect();
    // None of the ten is a tenth of the heap.
    let running = heap.array(&results);
    let other = heap.bytes(MUCH * 8);
    server(&mut heap, &[running, other]);
    let leaks = Leaks::of(&heap.dump());
    assert_eq!(rules(&leaks.rows), [("mat", "holder", 1)]);
    let [store] = leaks.below.as_slice() else { panic!("{:#?}", leaks.below) };
    assert_eq!((number(&store["objects"]), text(&store["kind"])), (10, "group"));
    assert_eq!((text(&store["reason"]["class"]), number(&store["reason"]["objects"])), ("app.Row", 400));
    // Compressed references.
    let array = 16 + 40 * 4;
    assert_eq!(number(&store["retained_bytes"]), 10 * (MUCH / 40 / 8 * 8 * 40 + array));
}

/// Nodes of one class: `links` of them, each of which holds the next `below_each`, with equal parts of `bytes`. Returns the first.
fn nodes(heap: &mut Heaped, class: ClassId, links: usize, below_each: usize, bytes: u64) -> ObjectId {
    let mut all: Vec<ObjectId> = Vec::new();
    for number in 0..links {
        let held = heap.bytes(bytes / links as u64 / 8 * 8);
        let new = heap.instance(class, &[ObjectId::NULL, ObjectId::NULL, held]);
        if let Some(before) = number.checked_sub(1) {
            heap.set(all[before / below_each], &format!("field{}", before % below_each), new);
        }
        all.push(new);
    }
    all[0]
}

/// Logs of documents, of which each has a number of nodes, how many each of these holds, and bytes: the suspect within the
/// holder, with its number of objects, how and in how many chains it accumulates, and the nodes.
fn logs(logs: &[(usize, usize, u64)]) -> Option<(u64, String, Option<u64>, u64)> {
    let mut heap = Heaped::new();
    let (document, node) = (heap.class("app.Document", 1), heap.class("app.Node", 3));
    let documents: Vec<ObjectId> = (logs.iter())
        .map(|(links, below_each, bytes)| {
            let first = nodes(&mut heap, node, *links, *below_each, *bytes);
            heap.instance(document, &[first])
        })
        .collect();
    let open = heap.array(&documents);
    heap.holder("app.Main", "OPEN", open);
    let leaks = Leaks::of(&heap.dump());
    let row = leaks.below.iter().find(|row| row["reason"]["class"] == "app.Node")?;
    let (reason, said) = (&row["reason"], text(&row["sentence"]));
    let objects = number(&reason["objects"]);
    assert!(said.contains(&format!("holds {objects} x app.Node")) || said.contains("a chain of"), "{said}");
    assert_eq!(said.contains(" in 2 chains"), reason["chains"] == 2, "{said}");
    let levels: Vec<&str> =
        row["accumulated"].as_array().unwrap().iter().map(|level| text(&level["class"])).collect();
    assert_eq!(levels, ["app.Node", "byte[]"], "nodes are one level");
    Some((number(&row["objects"]), text(&reason["how"]).to_owned(), reason["chains"].as_u64(), objects))
}

/// Undo logs, or trees, of several documents: nodes of one class, each log in a field of a document.
#[test]
fn nodes_of_several_chains_or_trees_are_one_suspect() {
    let chain = |heads: u64, nodes| Some((heads, "chain".to_owned(), Some(heads), nodes));
    let trees = |heads: u64, nodes| Some((heads, "children".to_owned(), None, nodes));
    let half = MUCH;
    assert_eq!(logs(&[(40, 1, half), (40, 1, half)]), chain(2, 80));
    assert_eq!(logs(&[(40, 1, half), (60, 1, half), (50, 1, half)]), chain(3, 150));
    assert_eq!(logs(&[(40, 2, half), (40, 2, half)]), trees(2, 80));
    assert_eq!(logs(&[(40, 1, half), (40, 2, half)]), trees(2, 80));
    assert_eq!(logs(&[(9, 1, half), (9, 1, half)]), None);
    // A long chain of small nodes does not make the others one.
    let single = (1, 1, 4 * half);
    assert_eq!(logs(&[(200, 1, half / 10), single, single]), None);
    // Most of the memory is in chains, but not each log is one.
    let long = (100, 1, 4 * half);
    assert_eq!(logs(&[long, long, (1, 1, half), (1, 1, half)]), trees(4, 202));
}

#[test]
fn one_cause_is_one_suspect() {
    let mut heap = Heaped::new();
    let order = heap.class("app.Order", 1);
    let orders = items(&mut heap, order, 100);
    heap.holder("app.Main", "ORDERS", orders);
    let leaks = Leaks::of(&heap.dump());
    assert_eq!(rules(&leaks.rows), [("mat", "accumulation", 1)]);
    assert_eq!(rules(&leaks.below), []);
}

#[test]
fn another_holder_of_the_same_objects_is_named() {
    let mut heap = Heaped::new();
    let (mail, queue, index) =
        (heap.class("app.Mail", 1), heap.class("app.Queue", 1), heap.class("app.Index", 1));
    let mails = heap.many(mail, 100, MUCH);
    let (queued, indexed) = (heap.array(&mails), heap.array(&mails));
    let (queue, index) = (heap.instance(queue, &[queued]), heap.instance(index, &[indexed]));
    heap.holder("app.Sender", "QUEUE", queue);
    heap.holder("app.Search", "INDEX", index);
    let row = Leaks::one(&heap.dump());
    assert_eq!((text(&row["kind"]), text(&row["class"])), ("group", "app.Mail"));
    let others: Vec<&str> = row["also_held_by"].as_array().unwrap().iter().map(text).collect();
    // One of them is the accumulation point, the other one is named.
    let own = id(&row["accumulation_point"]["object"]);
    let other = if own == indexed.0 { "app.Queue" } else { "app.Index" };
    assert!(matches!(others.as_slice(), [one] if one.contains(other)), "{own:#x} {others:?}");
    assert!(text(&row["sentence"]).contains("also held by"), "{row}");
}

#[test]
fn a_cache_of_soft_references_is_content() {
    let mut heap = Heaped::new();
    let item = heap.class("app.Item", 1);
    let soft = heap.class_below("java.lang.ref.SoftReference", heap.jdk.reference, 0);
    let references: Vec<ObjectId> = heap
        .many(item, 20, MUCH)
        .into_iter()
        .map(|held| {
            let reference = heap.model.instance_with(soft, &[]);
            heap.set_referent(reference, held);
            reference
        })
        .collect();
    let cache = heap.array(&references);
    heap.holder("app.Main", "CACHE", cache);
    let leaks = Leaks::of(&heap.dump());
    assert_eq!(rules(&leaks.rows), [("mat", "content", 1)]);
    assert_eq!(leaks.code, 1);
}

/// A pool of a library whose connections the program holds through objects of that library.
const POOL: &str = r#"
framework = "Lib"
[[class]]
name = "lib.pool.Pool"
fields = ["field0"]
called = "pool"
[[class.says]]
text = "all in use"
verdict = "leak"
retains = "(SELECT OBJECTS e.field0 FROM OBJECTS (this.field0[0:-1]) e)"
"#;

#[test]
fn a_leak_of_a_framework_names_the_programs_holder_and_what_it_holds() {
    let mut heap = Heaped::new();
    let [pool, entry, proxy] =
        ["lib.pool.Pool", "lib.pool.Entry", "lib.pool.Proxy"].map(|name| heap.class(name, 1));
    let connection = heap.class("lib.driver.Connection", 1);
    let (export, service) = (heap.class("app.Export", 1), heap.class("app.ExportService", 1));
    let connections = heap.many(connection, 10, MUCH * 4);
    let [entries, exports] = [false, true].map(|is_of_program| {
        let all: Vec<ObjectId> = (connections.iter())
            .map(|connection| match is_of_program {
                false => heap.instance(entry, &[*connection]),
                true => {
                    let proxy = heap.instance(proxy, &[*connection]);
                    heap.instance(export, &[proxy])
                }
            })
            .collect();
        heap.array(&all)
    });
    let pool = heap.instance(pool, &[entries]);
    heap.root(pool);
    let service = heap.instance(service, &[exports]);
    heap.root(service);
    let dump = heap.dump();
    let rules = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(rules.path(), POOL).unwrap();
    let run = |format: &str| {
        let rules = rules.path().to_str().unwrap();
        dump.run(&["leaks", "--frameworks", rules, "--format", format]).stdout
    };
    let answer: Value = serde_json::from_slice(&run("json")).unwrap();
    let [holder, leak] = answer["rows"].as_array().unwrap().as_slice() else { panic!("{answer:#}") };
    assert_eq!((text(&holder["mat_verdict"]), text(&leak["rule"])), ("holder", "framework"));
    let others: Vec<&str> = leak["also_held_by"].as_array().unwrap().iter().map(text).collect();
    assert!(matches!(others.as_slice(), [one] if one.contains("field0 of app.ExportService")), "{others:?}");
    // The path continues to a connection.
    let path: Vec<u64> = leak["path"].as_array().unwrap().iter().map(|step| id(&step["object"])).collect();
    let [from, entries_of, _, to] = path[..] else { panic!("{path:x?}") };
    assert_eq!((from, entries_of), (pool.0, entries.0));
    assert!(connections.iter().any(|connection| connection.0 == to), "{path:x?}");
    // Each names the other.
    let said = String::from_utf8(run("table")).unwrap();
    assert!(
        said.contains("  explains: Holder 1\n") && said.contains("  explained by: Suspect 1\n"),
        "{said}"
    );
}

#[test]
fn a_store_that_is_mostly_waste_is_told_so() {
    let mut heap = Heaped::new();
    let (order, row) = (heap.class("app.Order", 1), heap.class("app.Row", 1));
    let zeros = items(&mut heap, order, 100);
    let used = distinct(&mut heap, row, 100);
    server(&mut heap, &[zeros, used]);
    let leaks = Leaks::of(&heap.dump());
    let said: Vec<bool> = (leaks.below.iter())
        .map(|row| text(&row["sentence"]).contains("app.Order, of which constant_arrays waste about 9"))
        .collect();
    assert_eq!(said, [false, true], "{:#?}", leaks.below);
    assert!(!text(&leaks.below[0]["sentence"]).contains("waste"), "{:#?}", leaks.below);
}
