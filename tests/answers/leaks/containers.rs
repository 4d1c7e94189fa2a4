//! Containers of any make, their elements and the suspects that they are.

use hprof_writer::{ClassId, ObjectId, Type, Value as Field};
use serde_json::Value;

use super::made::Heaped;
use super::{Leaks, text};
use crate::compare;

/// Bytes of each element.
const EACH: u64 = 1 << 12;

/// Elements of some classes below `app.Event`, which take turns.
fn events(heap: &mut Heaped, names: &[&str], count: usize) -> Vec<ObjectId> {
    let event = heap.class("app.Event", 1);
    let classes: Vec<ClassId> = names.iter().map(|name| heap.class_below(name, event, 0)).collect();
    let element = |number: usize| {
        let bytes = heap.bytes(EACH);
        heap.instance(classes[number % classes.len()], &[bytes])
    };
    (0..count).map(element).collect()
}

/// Objects of a class, each with bytes.
fn items(heap: &mut Heaped, class: &str, count: usize) -> Vec<ObjectId> {
    let class = heap.class(class, 1);
    let element = |_| {
        let bytes = heap.bytes(EACH);
        heap.instance(class, &[bytes])
    };
    (0..count).map(element).collect()
}

fn instance(
    heap: &mut Heaped,
    class: ClassId,
    fields: &[(&str, ObjectId)],
    numbers: &[(&str, i32)],
) -> ObjectId {
    let references = fields.iter().map(|(name, value)| (*name, Field::from(*value)));
    let numbers = numbers.iter().map(|(name, number)| (*name, Field::Int(*number)));
    let all: Vec<(&str, Field)> = references.chain(numbers).collect();
    heap.model.instance_with(class, &all)
}

fn class(heap: &mut Heaped, name: &str, references: &[&str], numbers: &[&str]) -> ClassId {
    let references = references.iter().map(|name| (*name, Type::Object));
    let fields: Vec<(&str, Type)> = references.chain(numbers.iter().map(|name| (*name, Type::Int))).collect();
    heap.model.class(name, Some(heap.jdk.object), &fields)
}

/// The row whose container has this many elements.
fn row(heap: &mut Heaped, elements: usize) -> Value {
    let leaks = Leaks::of(&heap.dump());
    let mut rows = leaks.rows.into_iter().chain(leaks.below);
    rows.find(|row| row["elements"] == elements).unwrap_or_else(|| panic!("no container of {elements}"))
}

fn class_of(row: &Value, key: &str) -> String {
    text(&row[key][0]["class"]).to_owned()
}

#[test]
fn elements_of_several_classes_are_one_accumulation() {
    let mut heap = Heaped::new();
    let elements = events(&mut heap, &["app.Login", "app.Logout", "app.Order", "app.Click"], 100);
    let array = heap.array(&elements);
    heap.holder("app.Audit", "EVENTS", array);
    let row = row(&mut heap, 100);
    assert_eq!((text(&row["verdict"]), text(&row["mat_verdict"])), ("accumulation", "holder"), "{row}");
    assert_eq!(row["is_exact"], true);
    let sentence = text(&row["sentence"]);
    let told = "holds 100 x app.Event (app.Click 25, app.Login 25, app.Logout 25, app.Order 25)";
    assert!(sentence.contains(told), "{sentence}");
    let classes = row["element_classes"].as_array().unwrap();
    assert_eq!(classes.len(), 4);
    let bytes: u64 = classes.iter().map(|class| class["retained_bytes"].as_u64().unwrap()).sum();
    assert!(bytes >= 100 * EACH && bytes <= row["retained_bytes"].as_u64().unwrap(), "{row}");
}

#[test]
fn one_or_a_few_of_each_class_are_a_registry() {
    let mut heap = Heaped::new();
    let names: Vec<String> = (0..40).map(|number| format!("app.Service{number}")).collect();
    let services: Vec<ObjectId> = names.iter().flat_map(|name| items(&mut heap, name, 3)).collect();
    let array = heap.array(&services);
    heap.holder("app.Registry", "ALL", array);
    let leaks = Leaks::of(&heap.dump());
    let all = leaks.rows.iter().chain(&leaks.below);
    assert!(all.clone().all(|row| row["verdict"] != "accumulation"), "{:?}", all.collect::<Vec<_>>());
}

#[test]
fn what_is_in_the_lists_of_a_list_is_counted() {
    let mut heap = Heaped::new();
    let orders = items(&mut heap, "app.Order", 900);
    let lists: Vec<ObjectId> = orders.chunks(3).map(|some| heap.list(some)).collect();
    let by_customer = heap.list(&lists);
    heap.holder("app.Orders", "BY_CUSTOMER", by_customer);
    let row = row(&mut heap, 300);
    assert_eq!(
        (&row["nested_elements"], text(&row["nested_class"])),
        (&Value::from(900), "app.Order"),
        "{row}"
    );
    let sentence = text(&row["sentence"]);
    assert!(sentence.contains("holds 300 x ArrayList with 900 x app.Order"), "{sentence}");
}

#[test]
fn lists_that_are_held_elsewhere_are_counted_and_arrays_of_lists_are_not_elements() {
    let mut heap = Heaped::new();
    let orders = items(&mut heap, "app.Order", 900);
    let lists: Vec<ObjectId> = orders.chunks(3).map(|some| heap.list(some)).collect();
    let by_customer = heap.list(&lists);
    let last = heap.array(&lists[..100]);
    heap.holder("app.Orders", "BY_CUSTOMER", by_customer);
    heap.holder("app.Latest", "LAST", last);
    let row = row(&mut heap, 300);
    assert_eq!(
        (&row["nested_elements"], &row["is_nested_exact"]),
        (&Value::from(900), &Value::from(true)),
        "{row}"
    );

    // The table of a list of arrays is no element.
    let mut heap = Heaped::new();
    let orders = items(&mut heap, "app.Order", 300);
    let rows: Vec<ObjectId> = orders.chunks(1).map(|some| heap.array(some)).collect();
    let all = heap.list(&rows);
    heap.holder("app.Result", "ROWS", all);
    let leaks = Leaks::of(&heap.dump());
    let rows = leaks.rows.iter().chain(&leaks.below).filter(|row| row["elements"] == 300);
    assert!(rows.clone().count() > 0 && rows.clone().all(|row| row["nested_elements"].is_null()));
}

/// A list of objects of these classes, each with a list of its own with 100 elements and more of a class of `elements`.
fn parts(heap: &mut Heaped, classes: &[String], elements: &[String]) {
    let parts: Vec<ObjectId> = (classes.iter().zip(elements.iter().cycle()).enumerate())
        .map(|(number, (name, element))| {
            let class = class(heap, name, &["content"], &["hits"]);
            let held = items(heap, element, 100 + number);
            let list = heap.list(&held);
            instance(heap, class, &[("content", list)], &[])
        })
        .collect();
    let all = heap.list(&parts);
    heap.holder("app.Store", "PARTS", all);
}

#[test]
fn shards_are_one_accumulation() {
    let mut heap = Heaped::new();
    parts(&mut heap, &vec!["app.Shard".to_owned(); 16], &["app.Order".to_owned()]);
    let row = row(&mut heap, 16);
    assert_eq!(
        (&row["nested_elements"], text(&row["verdict"])),
        (&Value::from(1720), "accumulation"),
        "{row}"
    );
    let sentence = text(&row["sentence"]);
    assert!(sentence.contains("holds 16 x app.Shard with 1,720 x app.Order"), "{sentence}");
}

#[test]
fn lists_of_different_things_are_the_parts_of_a_program() {
    let mut heap = Heaped::new();
    let names = |start: &str| (0..16).map(|number| format!("app.{start}{number}")).collect::<Vec<String>>();
    parts(&mut heap, &vec!["app.Repository".to_owned(); 16], &names("Entity"));
    let leaks = Leaks::of(&heap.dump());
    let all = || leaks.rows.iter().chain(&leaks.below);
    assert!(all().all(|row| row["verdict"] != "accumulation"), "{:?}", all().collect::<Vec<_>>());
    assert!(all().all(|row| row["nested_elements"].is_null()));
}

#[test]
fn a_few_others_are_told_as_a_number() {
    let mut heap = Heaped::new();
    let elements = [items(&mut heap, "app.Order", 190), items(&mut heap, "app.Mark", 10)].concat();
    let list = heap.list(&elements);
    heap.holder("app.Orders", "ALL", list);
    let row = row(&mut heap, 200);
    assert!(text(&row["sentence"]).contains("holds 190 x app.Order and 10 others"), "{row}");
}

/// A list of this many nodes, with both ends in its header.
fn backlog(heap: &mut Heaped, count: usize) {
    let elements = items(heap, "app.Message", count);
    let header = class(heap, "app.Backlog", &["newest", "oldest"], &["size"]);
    let node = class(heap, "app.Slip", &["younger", "older", "content"], &[]);
    let nodes: Vec<ObjectId> =
        elements.iter().map(|element| instance(heap, node, &[("content", *element)], &[])).collect();
    for pair in nodes.windows(2) {
        heap.set(pair[0], "younger", pair[1]);
        heap.set(pair[1], "older", pair[0]);
    }
    let ends = [("newest", nodes[count - 1]), ("oldest", nodes[0])];
    let size = i32::try_from(count).unwrap();
    let list = instance(heap, header, &ends, &[("size", size)]);
    heap.holder("app.Desk", "LETTERS", list);
}

#[test]
fn a_list_of_its_own_nodes_with_a_header() {
    // With both ends in the header, it dominates each node: no node holds another.
    let mut heap = Heaped::new();
    backlog(&mut heap, 60);
    let row = row(&mut heap, 60);
    assert_eq!(class_of(&row, "element_classes"), "app.Message", "{row}");
    assert!(text(&row["sentence"]).contains("app.Backlog app.Desk.LETTERS holds 60 x app.Message"), "{row}");
}

#[test]
fn nodes_are_at_the_place_of_their_container_in_each_dump() {
    // The first list is too small to be a container: its nodes are known from the second dump.
    let dumps = [5, 60].map(|count| {
        let mut heap = Heaped::new();
        backlog(&mut heap, count);
        heap.dump()
    });
    let (_, diff) = compare::json("diff", &[&dumps[0], &dumps[1]], &["--group-by", "place"]);
    let grown = &compare::rows(&diff)[0];
    let place = ["static LETTERS of app.Desk", "app.Backlog", "app.Message.field0", "byte[]"];
    assert_eq!(
        (compare::place(grown), compare::change(grown, "objects")),
        (place.to_vec(), (5, 60)),
        "{diff}"
    );
    let places = compare::json("places", &[&dumps[1]], &["--min", "0"]).1;
    let rows = compare::rows(&places);
    assert!(rows.iter().all(|row| row["class"] != "app.Slip" || row["is_class_object"] == true));
    let own: u64 = rows.iter().map(|row| row["own_bytes"].as_u64().unwrap()).sum();
    assert_eq!(own, places["reachable"]["shallow_bytes"].as_u64().unwrap());
    let list = rows.iter().find(|row| row["class"] == "app.Backlog").unwrap();
    assert_eq!((&list["container"], &list["elements"]), (&Value::from("chain"), &Value::from(60)), "{list}");
    let sql = "SELECT container, elements FROM places WHERE class = 'app.Backlog'";
    let (_, answer) = compare::json("sql", &[&dumps[1]], &[sql]);
    assert_eq!(answer["rows"][0]["elements"], 60, "{answer}");
}

#[test]
fn a_table_of_entries_none_of_which_has_a_next_one() {
    let mut heap = Heaped::new();
    let elements = items(&mut heap, "app.Customer", 50);
    let header = class(&mut heap, "app.Index", &["buckets"], &["count"]);
    let entry = class(&mut heap, "app.Cell", &["term", "meaning", "more"], &["hash"]);
    let jdk = heap.jdk.clone();
    let cell = |(number, element): (usize, &ObjectId)| {
        let key = jdk.string(&mut heap.model, &format!("customer {number}"));
        instance(&mut heap, entry, &[("term", key), ("meaning", *element)], &[("hash", 7)])
    };
    let cells: Vec<ObjectId> = elements.iter().enumerate().map(cell).collect();
    let array = heap.array(&cells);
    let map = instance(&mut heap, header, &[("buckets", array)], &[("count", 50)]);
    heap.holder("app.Shop", "BY_NAME", map);
    let row = row(&mut heap, 50);
    assert_eq!(text(&row["container"]), "map", "{row}");
    assert_eq!(
        (class_of(&row, "element_classes"), class_of(&row, "keys")),
        ("app.Customer".into(), "java.lang.String".into())
    );
}

#[test]
fn nodes_with_values_of_their_own_are_the_elements() {
    let mut heap = Heaped::new();
    let node = class(&mut heap, "app.Ticket", &["following", "title", "body"], &["price", "seat"]);
    let jdk = heap.jdk.clone();
    let mut next = ObjectId::NULL;
    for number in 0..40 {
        let title = jdk.string(&mut heap.model, &format!("ticket {number}"));
        let body = heap.bytes(EACH);
        let fields = [("following", next), ("title", title), ("body", body)];
        next = instance(&mut heap, node, &fields, &[("price", 3), ("seat", number)]);
    }
    heap.holder("app.Sale", "OPEN", next);
    let row = row(&mut heap, 40);
    assert_eq!(
        (text(&row["container"]), class_of(&row, "element_classes")),
        ("chain", "app.Ticket".into()),
        "{row}"
    );
}

#[test]
fn each_cause_of_a_tenth_is_in_the_headline_and_counts_once() {
    let mut heap = Heaped::new();
    for (name, count) in [("Audit", 60), ("Ledger", 40), ("Trail", 30), ("Rest", 20)] {
        let elements = items(&mut heap, &format!("app.Of{name}"), count);
        let array = heap.array(&elements);
        heap.holder(&format!("app.{name}"), "ALL", array);
    }
    let dump = heap.dump();
    let answer: Value = serde_json::from_slice(&dump.run(&["leaks", "--format", "json"]).stdout).unwrap();
    let headline = text(&answer["headline"]);
    for (holder, count) in [("Audit", 60), ("Ledger", 40), ("Trail", 30)] {
        assert!(headline.contains(&format!("app.{holder}.ALL holds {count} x app.Of{holder}")), "{headline}");
    }
    assert!(headline.starts_with("4 leak suspects retain ") && !headline.contains("app.Rest"), "{headline}");
    let overview: Value =
        serde_json::from_slice(&dump.run(&["overview", "--format", "json"]).stdout).unwrap();
    assert_eq!(overview["headline"], answer["headline"]);
    let sum: u64 = answer["conclusions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["retained_bytes"].as_u64().unwrap())
        .sum();
    let share = sum as f64 * 100.0 / answer["total"]["reachable_bytes"].as_f64().unwrap();
    assert!(headline.contains(&format!("retain {share:.1}% of")), "{headline}: {share}");
}

#[test]
fn a_place_has_the_container_of_its_object() {
    let mut heap = Heaped::new();
    let elements = events(&mut heap, &["app.Login", "app.Logout"], 80);
    let array = heap.array(&elements);
    heap.holder("app.Audit", "EVENTS", array);
    let dump = heap.dump();
    let answer: Value = serde_json::from_slice(&dump.run(&["places", "--format", "json"]).stdout).unwrap();
    let rows = answer["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["elements"] == 80).unwrap_or_else(|| panic!("{answer}"));
    assert_eq!((text(&row["container"]), row["element_classes"].as_array().unwrap().len()), ("array", 2));
    let overview = String::from_utf8(dump.run(&["overview"]).stdout).unwrap();
    let shown = overview.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("EVENTS: 80 x Event (Login 40, Logout 40)"), "{overview}");
}
