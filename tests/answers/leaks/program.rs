//! Containers of the program that explain what a library or a thread holds.

use hprof_writer::{ObjectId, Root};
use serde_json::Value;

use super::made::Heaped;
use super::text;

const ROWS: usize = 200;

/// The row of the judgement with most bytes, and the headline.
fn largest(heap: &mut Heaped) -> (Value, String) {
    let answer = heap.dump().run(&["leaks", "--format", "json"]);
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let rows = answer["rows"].as_array().unwrap().iter().filter(|row| row["rule"] != "mat");
    let row = rows.max_by_key(|row| row["retained_bytes"].as_u64());
    (row.cloned().unwrap_or_default(), text(&answer["headline"]).to_owned())
}

/// A pool of a library whose rows are reachable through the handles in a list of `handles`, too. The program's list is that of
/// a class in `package`.
fn pool_and_job(package: &str, handles: usize) -> Heaped {
    let mut heap = Heaped::new();
    let [row, handle] = ["lib.db.Row", "lib.db.Handle"].map(|name| heap.class(name, 1));
    let rows: Vec<ObjectId> = (0..ROWS)
        .map(|_| {
            let bytes = heap.bytes(1 << 12);
            heap.instance(row, &[bytes])
        })
        .collect();
    let handles: Vec<ObjectId> =
        (0..handles).map(|number| heap.instance(handle, &[rows[number % ROWS]])).collect();
    let array = heap.array(&rows);
    heap.holder("lib.db.Pool", "ROWS", array);
    let open = heap.list(&handles);
    heap.holder(&format!("{package}.ReportJob"), "OPEN", open);
    let main = heap.class("app.jobs.Main", 0);
    let thread = heap.main_thread(main);
    heap.roots.push(thread.0);
    heap
}

#[test]
fn the_program_s_own_container_is_named_instead_of_a_library_s() {
    let (row, headline) = largest(&mut pool_and_job("app.jobs", ROWS));
    assert!(headline.contains("ArrayList app.jobs.ReportJob.OPEN holds 200 x lib.db.Handle"), "{headline}");
    assert_eq!((&row["verdict"], &row["elements"]), (&"accumulation".into(), &ROWS.into()));
    let evidence: Vec<&str> = row["evidence"].as_array().unwrap().iter().map(text).collect();
    assert!(evidence.contains(&"each of its elements holds one lib.db.Row"), "{evidence:?}");
    // Handles of another library, two for each row, and for half of the rows.
    for (package, handles) in [("lib.db", ROWS), ("app.jobs", ROWS * 2), ("app.jobs", ROWS / 2)] {
        let (_, headline) = largest(&mut pool_and_job(package, handles));
        assert!(headline.contains("Pool.ROWS holds 200 x lib.db.Row"), "{headline}");
        assert_eq!(headline.contains("OPEN holds"), handles < ROWS, "{headline}");
    }
}

#[test]
fn what_weak_references_share_is_the_list_s_that_holds_it() {
    let mut heap = Heaped::new();
    let [reader, searcher, registry] =
        ["lib.Reader", "lib.Searcher", "app.Registry"].map(|name| heap.class(name, 1));
    let jdk = heap.jdk.clone();
    let readers: Vec<ObjectId> = (0..ROWS)
        .map(|_| {
            let bytes = heap.bytes(1 << 12);
            heap.instance(reader, &[bytes])
        })
        .collect();
    let searchers: Vec<ObjectId> = readers.iter().map(|reader| heap.instance(searcher, &[*reader])).collect();
    let known: Vec<ObjectId> = readers.iter().map(|reader| jdk.weak(&mut heap.model, *reader)).collect();
    let (known, open) = (heap.array(&known), heap.list(&searchers));
    let main = heap.class("app.Main", 0);
    let thread = heap.main_thread(main);
    // By the dominator tree a field of the thread holds all of it.
    let shared = heap.class("app.Shared", 2);
    let registry = heap.instance(registry, &[open]);
    let shared = heap.instance(shared, &[registry, known]);
    heap.model.root(shared, Root::JavaFrame { thread: 1, frame: 0 });
    heap.roots.push(thread.0);
    let (row, headline) = largest(&mut heap);
    let expected = "ArrayList field0 of app.Registry holds 200 x lib.Searcher";
    assert!(headline.contains(expected), "{headline}");
    // Readers with their arrays, searchers and the list, without the weak references.
    let bytes = row["retained_bytes"].as_u64().unwrap();
    assert!((200 * (4096 + 16)..200 * (4096 + 90)).contains(&bytes), "{bytes}");
}

#[test]
fn objects_below_the_elements_of_a_collection_are_its_own() {
    // Two parts of each of 300 entries are held elsewhere, too.
    let mut heap = Heaped::new();
    let [part, entry] = [("lib.Part", 1), ("lib.Entry", 1)].map(|(name, fields)| heap.class(name, fields));
    let mut parts = Vec::new();
    let entries: Vec<ObjectId> = (0..300)
        .map(|_| {
            let own: Vec<ObjectId> = (0..2)
                .map(|_| {
                    let bytes = heap.bytes(1 << 11);
                    heap.instance(part, &[bytes])
                })
                .collect();
            parts.extend(own.iter().copied());
            let own = heap.array(&own);
            heap.instance(entry, &[own])
        })
        .collect();
    let list = heap.list(&entries);
    heap.holder("lib.Store", "ENTRIES", list);
    // The other way to the parts is longer.
    let cleaner = heap.class("lib.Cleaner", 1);
    let parts = heap.array(&parts);
    let cleaner = (0..8).fold(parts, |held, _| heap.instance(cleaner, &[held]));
    heap.root(cleaner);
    let (row, headline) = largest(&mut heap);
    assert!(headline.contains("ArrayList lib.Store.ENTRIES holds 300 x lib.Entry"), "{headline}");
    assert_eq!((&row["verdict"], &row["elements"]), (&"accumulation".into(), &300.into()));
}
