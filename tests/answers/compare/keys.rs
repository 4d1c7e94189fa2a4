//! Keys of maps: which are shown by themselves, and which values are merged into one place, in `diff`, `trend` and
//! `check`.

use hprof_writer::{ClassId, ObjectId, Type, Value};

use super::places::{blob, blobs, diff, labels};
use super::{json, place, rows, run};
use crate::waste::made::Shop;

/// A map with lists of blobs.
const LIST: [&str; 3] = ["java.util.ArrayList", "acme.Blob.data", "byte[]"];

/// Returns the labels from a map in a field on: with a key if it is shown, then those of the lists.
fn below<'a>(map: &'a str, key: &'a [&'a str]) -> Vec<&'a str> {
    [&["acme.Regions.map", map], key, &LIST].concat()
}

/// An object that holds a map.
fn keep_in_field(shop: &mut Shop, map: ObjectId) {
    let class = shop.class("acme.Regions", &[("map", Type::Object), ("other", Type::Object)]);
    let regions = shop.model.instance_with(class, &[("map", map.into())]);
    shop.keep(regions);
}

/// A HashMap of lists of blobs, by keys that `key` makes.
fn map_of<K>(
    shop: &mut Shop,
    names: &[(K, usize)],
    mut key: impl FnMut(&mut Shop, &K) -> ObjectId,
) -> ObjectId {
    let blob = blob(shop);
    let mut entries = Vec::new();
    for (name, count) in names {
        let key = key(shop, name);
        let blobs = blobs(shop, blob, *count);
        entries.push([key, shop.list(&blobs, *count)]);
    }
    let node = shop.node;
    shop.map(&entries, names.len(), 1, node)
}

fn regions<S: AsRef<str>>(names: &[(S, usize)]) -> Shop {
    let mut shop = Shop::new();
    let map = map_of(&mut shop, names, |shop, name| shop.string(name.as_ref()));
    keep_in_field(&mut shop, map);
    shop
}

/// Creates sessions with IDs in this range, with `messages` messages each.
fn sessions(ids: std::ops::Range<usize>, messages: usize) -> Vec<(String, usize)> {
    ids.map(|id| (format!("s{id}"), messages)).collect()
}

/// Asserts that one place explains the growth: by this key, or by none.
#[track_caller]
fn one(old: Shop, new: Shop, key: &[&str], objects: (u64, u64)) {
    let found = diff(old, new);
    assert_eq!((labels(&found), found[0].1), (vec![below("java.util.HashMap", key)], objects));
    assert_eq!(found[0].2, (objects.0 * 1016, objects.1 * 1016));
}

#[test]
fn keys_of_small_maps_are_names() {
    one(
        regions(&[("users", 10), ("orders", 10), ("carts", 10)]),
        regions(&[("users", 10), ("orders", 40), ("carts", 10)]),
        &["{orders}"],
        (10, 40),
    );
}

#[test]
fn each_of_a_handful_of_names_is_told() {
    let caches = |sizes: [usize; 6]| {
        let names = ["users", "orders", "carts", "prices", "stock", "taxes"];
        regions(&names.into_iter().zip(sizes).collect::<Vec<_>>())
    };
    one(caches([10; 6]), caches([10, 10, 10, 40, 10, 10]), &["{prices}"], (10, 40));
    let found = diff(caches([10; 6]), caches([40; 6]));
    assert_eq!(found.len(), 6);
    assert!(labels(&found).iter().all(|labels| labels[2].starts_with('{')), "{found:?}");
}

#[test]
fn sessions_by_id_are_one_place() {
    // The same ones, whose histories grow.
    one(regions(&sessions(0..60, 3)), regions(&sessions(0..60, 9)), &[], (180, 540));
    // A handful of them.
    one(regions(&sessions(0..6, 3)), regions(&sessions(0..6, 9)), &[], (18, 54));
    // Twice as many.
    one(regions(&sessions(0..60, 3)), regions(&sessions(0..120, 5)), &[], (180, 600));
    // Old ones leave, new ones come.
    one(regions(&sessions(0..40, 3)), regions(&sessions(40..84, 5)), &[], (120, 220));
    one(regions(&sessions(0..40, 3)), regions(&sessions(15..60, 5)), &[], (120, 225));
}

#[test]
fn a_map_without_keys_is_told_with_all_that_it_grew_by() {
    // Sessions with two lists that grow, and the list of the third field that does not.
    let make = |messages: usize, files: usize| {
        let mut shop = Shop::new();
        let fields = ["history", "uploads", "friends"].map(|name| (name, Type::Object));
        let session = shop.class("acme.Session", &fields);
        let blob = blob(&mut shop);
        let mut entries = Vec::new();
        for id in 0..60 {
            let key = shop.string(&format!("s{id}"));
            let lists = [messages, files, 2].map(|count| {
                let blobs = blobs(&mut shop, blob, count);
                shop.list(&blobs, 16)
            });
            let values =
                [("history", lists[0].into()), ("uploads", lists[1].into()), ("friends", lists[2].into())];
            entries.push([key, shop.model.instance_with(session, &values)]);
        }
        let node = shop.node;
        let map = shop.map(&entries, 64, 1, node);
        keep_in_field(&mut shop, map);
        shop.dump()
    };
    let (old, new) = (make(2, 1), make(9, 4));
    let (_, document) = json("diff", &[&old, &new], &["--group-by", "place"]);
    let told: Vec<_> = rows(&document)
        .iter()
        .map(|row| (row["text"].as_str().unwrap(), &row["map_retained_bytes_delta"]))
        .collect();
    let map = "static keep of acme.Shop -> Object[] -> Regions.map -> HashMap";
    let place = |field: &str| format!("{map} -> Session.{field} -> ArrayList -> Blob.data -> byte[]");
    // Blobs of 24 bytes with their arrays: the lists have room for all.
    let whole = &serde_json::json!(60 * 10 * (1016 + 24));
    assert_eq!(told, [(place("history").as_str(), whole), (place("uploads").as_str(), whole)]);
    assert!(rows(&document).iter().all(|row| row["map"] == map), "{document:#}");
    let text = String::from_utf8(run("diff", &[&old, &new], &["--group-by", "place"]).stdout).unwrap();
    assert_eq!(text.matches(&format!("of +624,000 in {map}\n")).count(), 2, "{text}");
    // Growth that no place explains counts too: each row is a part of the map's growth, the line above is the sum.
    let delta = |row: &serde_json::Value| row["retained_bytes_delta"].as_f64().unwrap();
    let share = |row: &serde_json::Value| row["growth_percent"].as_f64().unwrap();
    assert_eq!(document["total"]["all_grown_bytes"], 624_000);
    assert!(rows(&document).iter().all(|row| (share(row) - delta(row) / 6_240.0).abs() < 0.01));
    let explained = rows(&document).iter().map(delta).sum::<f64>() / 6_240.0;
    assert!(explained < 99.0);
    assert!(text.contains(&format!("; places that explain {explained:.1}% of the growth:\n")), "{text}");

    // Keys that are shown: no row is a part of a map.
    let caches = |orders: usize| regions(&[("users", 10), ("orders", orders), ("carts", 10)]).dump();
    let (_, document) = json("diff", &[&caches(10), &caches(40)], &["--group-by", "place"]);
    assert!(rows(&document).iter().all(|row| row["map"].is_null()), "{document:#}");
}

#[test]
fn keys_that_come_and_go_are_data() {
    one(
        regions(&[("a", 10), ("b", 10), ("c", 10)]),
        regions(&[("d", 10), ("e", 10), ("f", 10), ("g", 10), ("h", 10), ("i", 10)]),
        &[],
        (30, 60),
    );
}

#[test]
fn a_map_is_told_alike_in_both_dumps() {
    let few = [("users", 10), ("orders", 10), ("carts", 10), ("prices", 10), ("stock", 10)];
    let many: Vec<(String, usize)> = (0..500).map(|id| (names(id), 1)).collect();
    one(regions(&few), regions(&many), &[], (50, 500));
    one(regions(&many), regions(&few), &[], (500, 50));
}

/// Names without numbers.
fn names(id: usize) -> String {
    let letter = |number: usize| char::from(b'a' + u8::try_from(number % 26).unwrap());
    [letter(id / 676), letter(id / 26), letter(id)].into_iter().collect()
}

#[test]
fn one_of_many_that_grows_is_told_and_the_others_are_one() {
    let mut grown = sessions(0..60, 4);
    grown[17].1 = 60;
    one(regions(&sessions(0..60, 4)), regions(&grown), &["{s17}"], (4, 60));
    let mut others: Vec<(String, usize)> = sessions(0..60, 5);
    others[17].1 = 400;
    let found = diff(regions(&sessions(0..60, 4)), regions(&others));
    let map = "java.util.HashMap";
    assert_eq!(labels(&found), [below(map, &["{s17}"]), below(map, &[])]);
    assert_eq!([found[0].1, found[1].1], [(4, 400), (59 * 4, 59 * 5)]);
}

#[test]
fn numbers_and_uuids_are_no_names_and_enum_constants_are() {
    let numbered = |sizes: &[usize]| {
        let mut shop = Shop::new();
        let numbers: Vec<(i32, usize)> = (0..).zip(sizes.iter().copied()).collect();
        let integer = shop.integer;
        let map = map_of(&mut shop, &numbers, |shop, number| {
            shop.model.instance_with(integer, &[("value", (*number).into())])
        });
        keep_in_field(&mut shop, map);
        shop
    };
    one(numbered(&[5; 6]), numbered(&[20; 6]), &[], (30, 120));
    one(numbered(&[5; 6]), numbered(&[5, 5, 5, 20, 5, 5]), &["{3}"], (5, 20));

    let uuid =
        |number: u64| format!("{:08x}-4f89-41d3-9a0c-{:012x}", number * 0x1357_9bdf, number * 77_777_777);
    let tenants = |size: usize| regions(&(1..6).map(|number| (uuid(number), size)).collect::<Vec<_>>());
    one(tenants(5), tenants(20), &[], (25, 100));

    let constants = |sizes: [usize; 3]| {
        let mut shop = Shop::new();
        let top = Some(shop.jdk.object);
        let of_all =
            shop.model.class("java.lang.Enum", top, &[("name", Type::Object), ("ordinal", Type::Int)]);
        let region = shop.model.class("acme.Region", Some(of_all), &[]);
        let named: Vec<(&str, usize)> = ["NORTH", "SOUTH", "WEST"].into_iter().zip(sizes).collect();
        let map = map_of(&mut shop, &named, |shop, name| {
            let name = shop.string(name);
            shop.model.instance_with(region, &[("name", name.into())])
        });
        keep_in_field(&mut shop, map);
        shop
    };
    one(constants([5; 3]), constants([5, 30, 5]), &["{SOUTH}"], (5, 30));
}

/// Tenants from one number to another, each with a map of caches by name.
fn tenants(ids: std::ops::Range<usize>, caches: &[(&str, usize)]) -> Shop {
    let mut shop = Shop::new();
    let mut entries = Vec::new();
    for id in ids {
        let key = shop.string(&format!("tenant{id}"));
        entries.push([key, map_of(&mut shop, caches, |shop, name| shop.string(name))]);
    }
    let node = shop.node;
    let map = shop.map(&entries, 64, 1, node);
    keep_in_field(&mut shop, map);
    shop
}

#[test]
fn maps_in_a_map_are_one_place_whose_keys_may_tell() {
    let found = diff(
        tenants(0..20, &[("users", 2), ("orders", 2), ("carts", 2)]),
        tenants(0..20, &[("users", 2), ("orders", 8), ("carts", 2)]),
    );
    let map = "java.util.HashMap";
    let expected = [&["acme.Regions.map", map, map, "{orders}"], &LIST[..]].concat();
    assert_eq!((labels(&found), found[0].1), (vec![expected], (40, 160)));
}

#[test]
fn maps_of_which_some_are_too_small_to_be_read_are_one_place() {
    // In a large heap, keys of maps below a ten-thousandth of it are not read.
    let make = |large: usize| {
        let mut shop = Shop::new();
        let ballast = shop.bytes(&vec![1; 28_000_000]);
        shop.keep(ballast);
        let mut maps = Vec::new();
        for number in 0..60 {
            let size = |count: usize| if number < large { count * 10 } else { count };
            let caches = [("users", size(1)), ("orders", size(1))];
            maps.push(map_of(&mut shop, &caches, |shop, name| shop.string(name)));
        }
        let maps = shop.list(&maps, 64);
        shop.keep(maps);
        shop
    };
    let found = diff(make(10), make(40));
    let list = "java.util.ArrayList";
    assert_eq!(labels(&found), [[&[list, "java.util.HashMap"], &LIST[..]].concat()], "{found:?}");
    assert_eq!(found[0].1, (10 * 20 + 50 * 2, 40 * 20 + 20 * 2));
}

/// Directories in directories, each with a map of those in it by name, and some with a blob.
fn directories(blobs_below: usize) -> Shop {
    let mut shop = Shop::new();
    let class = shop.class("acme.Directory", &[("entries", Type::Object), ("list", Type::Object)]);
    let blob = blob(&mut shop);
    // One that retains most, so that each map's keys are read but are not informative.
    let mut directory = ObjectId::NULL;
    for level in 0..6 {
        let mut entries = Vec::new();
        for number in 0..12 {
            let key = shop.string(&format!("d{level}-{number}"));
            let blobs = blobs(&mut shop, blob, blobs_below);
            let list = shop.list(&blobs, blobs_below);
            let inner = if number == 0 { directory } else { ObjectId::NULL };
            let node = shop.node;
            let map = if inner == ObjectId::NULL {
                inner
            } else {
                let key = shop.string("inner1");
                shop.map(&[[key, inner]], 1, 1, node)
            };
            let values = [("entries", map.into()), ("list", list.into())];
            entries.push([key, shop.model.instance_with(class, &values)]);
        }
        let node = shop.node;
        let map = shop.map(&entries, 16, 1, node);
        directory = shop.model.instance_with(class, &[("entries", map.into())]);
    }
    shop.keep(directory);
    shop
}

#[test]
fn maps_nested_in_their_like_are_one_place_when_no_key_tells() {
    let found = diff(directories(3), directories(9));
    // Of all levels, once.
    let all: u64 = found.iter().map(|(_, objects, _)| objects.1 - objects.0).sum();
    let bytes: u64 = found.iter().map(|(.., bytes)| bytes.1 - bytes.0).sum();
    assert_eq!((all, bytes), (6 * 12 * 6, 6 * 12 * 6 * 1016), "{found:?}");
    assert!(found.len() < 4, "{found:?}");
}

/// Adds a file: with files and folders in it, by uninformative names, or with blobs.
fn file(shop: &mut Shop, names: &mut std::ops::RangeFrom<u32>, depth: u32, blobs_in: usize) -> ObjectId {
    let fields = ["subs", "folders", "leaves"].map(|field| (field, Type::Object));
    let class = shop.class("acme.File", &fields);
    if depth == 0 {
        let blob = blob(shop);
        let held = blobs(shop, blob, blobs_in);
        let leaves = shop.list(&held, blobs_in);
        return shop.model.instance_with(class, &[("leaves", leaves.into())]);
    }
    let subs: Vec<ObjectId> = (0..10).map(|_| file(shop, names, depth - 1, blobs_in)).collect();
    let folders: Vec<ObjectId> = (0..2).map(|_| folder(shop, names, depth - 1, 2, blobs_in)).collect();
    let (subs, folders) = (map_by_name(shop, names, &subs), map_by_name(shop, names, &folders));
    shop.model.instance_with(class, &[("subs", subs.into()), ("folders", folders.into())])
}

fn folder(
    shop: &mut Shop,
    names: &mut std::ops::RangeFrom<u32>,
    depth: u32,
    files: u32,
    blobs_in: usize,
) -> ObjectId {
    let class = shop.class("acme.Folder", &[("files", Type::Object), ("other", Type::Object)]);
    let files: Vec<ObjectId> = (0..files).map(|_| file(shop, names, depth, blobs_in)).collect();
    let files = map_by_name(shop, names, &files);
    shop.model.instance_with(class, &[("files", files.into())])
}

fn map_by_name(shop: &mut Shop, names: &mut std::ops::RangeFrom<u32>, held: &[ObjectId]) -> ObjectId {
    let entry = |value: &ObjectId| [shop.string(&format!("n{}", names.next().unwrap())), *value];
    let entries: Vec<[ObjectId; 2]> = held.iter().map(entry).collect();
    let node = shop.node;
    shop.map(&entries, 16, 1, node)
}

/// Files in files, and folders of files in them: what is nested in one is cut when the other is divided again.
#[test]
fn maps_nested_in_two_ways_lose_nothing() {
    let make = |blobs_in: usize| {
        let mut shop = Shop::new();
        let mut names = 0..;
        let folders: Vec<ObjectId> =
            (0..10).map(|_| folder(&mut shop, &mut names, 1, 10, blobs_in)).collect();
        let map = map_by_name(&mut shop, &mut names, &folders);
        keep_in_field(&mut shop, map);
        shop
    };
    let found = diff(make(1), make(3));
    // 100 files, each with 10 files and 2 folders of 2 files.
    let objects: u64 = found.iter().map(|(_, objects, _)| objects.1 - objects.0).sum();
    let bytes: u64 = found.iter().map(|(.., bytes)| bytes.1 - bytes.0).sum();
    assert_eq!((objects, bytes), (100 * 14 * 2, 100 * 14 * 2 * 1016), "{found:?}");
    assert!(found.iter().all(|(labels, ..)| labels.ends_with(&LIST.map(str::to_owned))), "{found:?}");
}

/// A map of classes as the JDK has them, whose nodes are in a table or below a root.
fn other_map(name: &str, names: &[(String, usize)]) -> Shop {
    let mut shop = Shop::new();
    let top = Some(shop.jdk.object);
    let above = shop.model.class("java.util.AbstractMap", top, &[]);
    let blob = blob(&mut shop);
    let is_tree = name == "java.util.TreeMap";
    let (node_name, value_name, next_name) = match is_tree {
        true => ("java.util.TreeMap$Entry", "value", "left"),
        false => ("java.util.concurrent.ConcurrentHashMap$Node", "val", "next"),
    };
    let mut fields = vec![("key", Type::Object), (value_name, Type::Object), (next_name, Type::Object)];
    if is_tree {
        fields.extend([("right", Type::Object), ("parent", Type::Object)]);
    }
    let node: ClassId = shop.model.class(node_name, top, &fields);
    let mut first = ObjectId::NULL;
    for (key, count) in names {
        let key = shop.string(key);
        let blobs = blobs(&mut shop, blob, *count);
        let list = shop.list(&blobs, *count);
        let values: [(&str, Value); 3] =
            [("key", key.into()), (value_name, list.into()), (next_name, first.into())];
        first = shop.model.instance_with(node, &values);
    }
    let map = if is_tree {
        let class = shop.model.class(name, Some(above), &[("root", Type::Object), ("size", Type::Int)]);
        let size = i32::try_from(names.len()).unwrap();
        shop.model.instance_with(class, &[("root", first.into()), ("size", size.into())])
    } else {
        let fields = [("table", Type::Object), ("baseCount", Type::Long)];
        let class = shop.model.class(name, Some(above), &fields);
        let array = shop.model.array_class(node);
        let table = shop.model.object_array(array, &[first, ObjectId::NULL]);
        let size = i64::try_from(names.len()).unwrap();
        shop.model.instance_with(class, &[("table", table.into()), ("baseCount", Value::Long(size))])
    };
    keep_in_field(&mut shop, map);
    shop
}

#[test]
fn other_maps_have_keys_too() {
    for map in ["java.util.TreeMap", "java.util.concurrent.ConcurrentHashMap"] {
        let caches = |orders: usize| {
            let names = [("users", 5), ("orders", orders), ("carts", 5)];
            other_map(map, &names.map(|(name, count)| (name.to_owned(), count)))
        };
        let found = diff(caches(5), caches(30));
        assert_eq!((labels(&found), found[0].1), (vec![below(map, &["{orders}"])], (5, 30)));
        let found = diff(other_map(map, &sessions(0..60, 2)), other_map(map, &sessions(0..60, 7)));
        assert_eq!((labels(&found), found[0].1), (vec![below(map, &[])], (120, 420)));
    }
}

#[test]
fn sessions_that_grow_in_every_step_are_one_row() {
    let dumps = [2, 5, 9].map(|messages| regions(&sessions(0..60, messages)).dump());
    let (code, document) = json("trend", &dumps.each_ref(), &["--order", "given"]);
    let found: Vec<_> =
        rows(&document).iter().map(|row| (place(row)[2..].to_vec(), &row["objects_by_dump"])).collect();
    let objects = serde_json::json!([120, 300, 540]);
    assert_eq!((code, found), (0, vec![(below("java.util.HashMap", &[]), &objects)]));
}

#[test]
fn the_table_of_a_dump_has_all_keys_below_one_path() {
    // A key that is informative in one dump is not in the next: tables of several dumps are joined by path.
    let mut uneven = sessions(0..60, 2);
    uneven[17].1 = 500;
    for sessions in [sessions(0..60, 2), uneven] {
        let query = "SELECT place_text, count(*) AS places, sum(objects) AS objects FROM places \
                     WHERE place_text LIKE '%Regions%ArrayList' GROUP BY place_text";
        let (_, document) = json("sql", &[&regions(&sessions).dump()], &[query]);
        let path = "static keep of acme.Shop -> Object[] -> Regions.map -> HashMap -> {*} -> ArrayList";
        assert_eq!(
            document["rows"],
            serde_json::json!([{"place_text": path, "places": 60, "objects": 60}]),
            "{document:#}"
        );
    }
}

#[test]
fn a_rule_finds_a_place_by_its_key_and_without() {
    let (old, new) = (regions(&sessions(0..60, 3)).dump(), regions(&sessions(0..60, 9)).dump());
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.toml");
    let path = "*Regions.map -> HashMap";
    let of = |name: &str, measure: &str, key: &str| {
        format!("[[rule]]\nname = \"{name}\"\nmeasure = \"{measure}\"\nmax = 0\nof = \"{key}\"\n")
    };
    let text = [
        of("all", "place", &format!("{path} -> ArrayList")),
        of("one", "place", &format!("{path} -> {{s7}} -> ArrayList")),
        of("growth", "growth", &format!("place {path} -> ArrayList")),
        of("growth of one", "growth", &format!("place {path} -> {{s7}} -> ArrayList")),
    ];
    std::fs::write(&rules, text.concat()).unwrap();
    let arguments = ["--rules", rules.to_str().unwrap(), "--baseline", old.path.to_str().unwrap()];
    let (code, document) = json("check", &[&new], &arguments);
    let find = |name: &str| rows(&document).iter().find(|row| row["rule"] == name).unwrap();
    let value = |name: &str| find(name)["value"].as_u64().unwrap();
    assert_eq!((code, value("all")), (1, 60 * value("one")));
    assert_eq!(value("growth"), 60 * value("growth of one"));
    // Blobs of 24 bytes, with an array each, and their slots in the list.
    assert_eq!(value("growth of one"), 6 * (1016 + 24 + 4), "{document:#}");
    // One place, as `diff` shows it: not sixty of which one has most.
    let message = find("all")["message"].as_str().unwrap();
    assert!(!message.contains("{s"), "{message}");

    // A part of a place: those that have it are found with all keys.
    std::fs::write(&rules, of("none", "place", "*HashMap -> {s7}")).unwrap();
    let (code, document) = json("check", &[&new], &arguments);
    let message = rows(&document)[0]["message"].as_str().unwrap();
    assert!(code == 1 && message.contains("{s7} -> ArrayList"), "{message}");
}
