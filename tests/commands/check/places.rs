//! Rules on places and growth, and what is said of those that match nothing.

use hprof_writer::{Elements, HeapModel, Jdk, Options, Root, Type};

use super::*;

/// A dump of a `HashMap` in a static field, with a session of 1,000 bytes by each key.
fn map_of(keys: &[&str]) -> Vec<u8> {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let top = Some(jdk.object);
    let fields =
        [("hash", Type::Int), ("key", Type::Object), ("value", Type::Object), ("next", Type::Object)];
    let node = model.class("java.util.HashMap$Node", top, &fields);
    let table = model.array_class(node);
    let map = model.class("java.util.HashMap", top, &[("table", Type::Object), ("size", Type::Int)]);
    let session = model.class("acme.Session", top, &[("data", Type::Object)]);
    let nodes: Vec<_> = keys
        .iter()
        .map(|key| {
            let data = model.prim_array(Elements::of_bytes(&[1; 1000]));
            let session = model.instance_with(session, &[("data", data.into())]);
            let key = jdk.string(&mut model, key);
            model.instance_with(node, &[("key", key.into()), ("value", session.into())])
        })
        .collect();
    let table = model.object_array(table, &nodes);
    let size = i32::try_from(keys.len()).unwrap();
    let map = model.instance_with(map, &[("table", table.into()), ("size", size.into())]);
    let shop = model.class_with_statics("acme.Shop", top, &[], &[("SESSIONS", map.into())]);
    model.root(shop, Root::StickyClass);
    model.write(&Options::hotspot()).bytes().to_vec()
}

#[test]
fn a_place_that_diff_shows_is_one_of_the_dump() {
    let place = Folder::new();
    let old = place.write("old.hprof", map_of(&["a", "b"]));
    let new = place.write("new.hprof", map_of(&["c", "d", "e", "f"]));
    let (diff, _) = place.told(&["diff", &old, &new, "--group-by", "place", "--min-change", "1"]);
    let row = rows(&diff).iter().find(|row| row["text"].as_str().unwrap().contains("SESSIONS")).unwrap();
    let text = row["text"].as_str().unwrap();
    // None of the keys is in both.
    assert!(!text.contains('{'), "{text}");
    let check = |of: &str| {
        let rules = rule("place", &format!("measure = \"place\"\nof = \"{of}\"\nmax = 1"))
            + &rule("growth", &format!("measure = \"growth\"\nof = \"place {of}\"\nmax = 1"));
        let (json, code) = place.check(&rules, &[&new, "--baseline", &old]);
        assert_eq!(code, 1, "{json:#}");
        [0, 1].map(|at| rows(&json)[at]["value"].as_u64().unwrap())
    };
    let of_row = |key: &str| row[key].as_u64().unwrap();
    assert_eq!(check(text), ["retained_bytes_new", "retained_bytes_delta"].map(of_row), "{text}");
    // With its key it is one of four.
    let one = check("static SESSIONS of acme.Shop -> HashMap -> {d} -> Session");
    let all = check("static SESSIONS of acme.Shop -> HashMap -> Session");
    assert_eq!((one[0] * 4, one[1] * 4), (all[0], all[0]));
}

#[test]
fn growth_of_any_place_is_all_that_it_grew_by() {
    let place = Folder::new();
    let old = place.write("old.hprof", dump_of("com.acme.Session", 100));
    let new = place.write("new.hprof", dump_of("com.acme.Session", 1000));
    let growth =
        |lines: &str| rule(&format!("{}", lines.len()), &format!("measure = \"growth\"\nof = {lines}"));
    let (json, _) = place.check(&growth("\"heap\"\nmax = 0"), &[&new, "--baseline", &old]);
    // Sessions, and the array that holds them.
    let all = rows(&json)[0]["value"].as_u64().unwrap();
    assert!(all > 900 * 16, "{all}");
    for (limits, expected) in [
        (format!("max = {all}"), 0),
        (format!("min = {all}"), 0),
        (format!("max = {}", all - 1), 1),
        (format!("min = {}", all + 1), 1),
    ] {
        let rules = growth(&format!("\"place\"\n{limits}"));
        let (json, code) = place.check(&rules, &[&new, "--baseline", &old]);
        assert_eq!((code, rows(&json)[0]["value"].as_u64()), (expected, Some(all)), "{limits}: {json:#}");
        let message = rows(&json)[0]["message"].as_str().unwrap();
        assert!(message.contains("; most of it in ") && message.contains("-> Session, +"), "{message}");
    }
}

#[test]
fn a_failed_growth_rule_names_what_grew() {
    let place = Folder::new();
    let dump = |sessions: usize, users: usize| {
        let mut model = HeapModel::default();
        let jdk = Jdk::add_to(&mut model);
        for (class, count) in [("com.acme.Session", sessions), ("com.acme.User", users)] {
            let class = model.class(class, Some(jdk.object), &[]);
            for _ in 0..count {
                let one = model.instance(class, &[]);
                model.root(one, Root::Unknown);
            }
        }
        model.write(&Options::hotspot()).bytes().to_vec()
    };
    let (old, new) = (place.write("old.hprof", dump(900, 10)), place.write("new.hprof", dump(901, 60)));
    let rules = rule("g", "measure = \"growth\"\nof = \"class com.acme.*\"\nmax = 1");
    let (json, _) = place.check(&rules, &[&new, "--baseline", &old]);
    let message = rows(&json)[0]["message"].as_str().unwrap();
    assert!(message.ends_with("largest of 2: com.acme.User, +800 B"), "{message}");
}

#[test]
fn places_that_are_not_told_apart_are_told() {
    let place = Folder::new();
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let mut last = model.instance(jdk.object, &[]);
    for depth in 0..100 {
        let class =
            model.class(&format!("Deep{}", name_of(depth)), Some(jdk.object), &[("next", Type::Object)]);
        last = model.instance_with(class, &[("next", last.into())]);
    }
    model.root(last, Root::Unknown);
    let deep = place.write("deep.hprof", model.write(&Options::hotspot()).bytes());
    let flat = place.write("flat.hprof", dump_of("A", 1));
    let rules = rule("place", "measure = \"place\"\nof = \"*\"\nmax = \"1 GiB\"")
        + &rule("growth", "measure = \"growth\"\nof = \"place\"\nmax = \"1 GiB\"");
    for (dump, baseline, expected) in
        [(&deep, &flat, [true; 2]), (&flat, &deep, [false, true]), (&flat, &flat, [false; 2])]
    {
        let (json, code) = place.check(&rules, &[dump, "--baseline", baseline]);
        assert_eq!(code, 0);
        let is_told = |row: &Json| row["message"].as_str().unwrap().contains("too many distinct places");
        assert_eq!(rows(&json).iter().map(is_told).collect::<Vec<_>>(), expected, "{json:#}");
    }
}

/// A name for a number, without digits: numbers in names of classes do not count.
fn name_of(number: usize) -> String {
    format!("{number}").bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

/// `optional = true` is advised where it would let the rule pass, and nowhere else.
#[test]
fn optional_is_advised_only_where_it_helps() {
    let place = Folder::new();
    let missing = |name: &str, more: &str| {
        rule(name, &format!("measure = \"instances\"\nof = \"com.nope.Absent\"\n{more}"))
    };
    let rules = [
        missing("helps", "max = 5"),
        missing("too few", "min = 1"),
        missing("optional", "min = 1\noptional = true"),
        missing("passes", "max = 5\noptional = true"),
    ];
    let (json, code) = place.check(&rules.concat(), &[PLUGINS]);
    assert_eq!(code, 1);
    let advised: Vec<(bool, bool)> = rows(&json)
        .iter()
        .map(|row| {
            let message = row["message"].as_str().unwrap();
            (row["is_passed"].as_bool().unwrap(), message.contains("optional = true"))
        })
        .collect();
    assert_eq!(advised, [(false, true), (false, false), (false, false), (true, false)]);
}
