//! Collections: which are empty, sparse, of one element, or collide, and what goes with them.

use hprof_writer::{ObjectId, Type, Value};

use super::made::Shop;

const NULL: ObjectId = ObjectId::NULL;

/// Objects that differ, so that they are no waste themselves.
fn objects(shop: &mut Shop, count: usize) -> Vec<ObjectId> {
    (0..count).map(|_| shop.model.instance_with(shop.jdk.object, &[])).collect()
}

#[test]
fn empty_collections_go_with_what_is_theirs_alone() {
    let mut shop = Shop::new();
    let cart = shop.class("acme.Cart", &[("items", Type::Object)]);
    // With a table, without, on an array that all empty lists share, and a set on a map.
    let node = shop.node;
    let with_table = shop.map(&[], 16, 1, node);
    let without = shop.map(&[], 0, 1, node);
    let shared = shop.array(&[]);
    shop.keep(shared);
    let lists = [shop.list_on(shared, 0), shop.list_on(shared, 0)];
    let inner = shop.map(&[], 8, 1, node);
    let set = shop.model.instance_with(shop.hash_set, &[("map", inner.into())]);
    for empty in [with_table, without, lists[0], lists[1], set] {
        shop.in_field(cart, "items", empty);
    }
    let (map, list) = (shop.size(shop.hash_map), shop.size(shop.array_list));
    let table = |length| shop.array_size(Type::Object, length);
    let bytes = [map + table(16), map, 2 * list, shop.size(shop.hash_set) + map + table(8)];
    let waste = shop.waste();
    let total = bytes.iter().sum();
    assert_eq!(waste.sum("empty_collections"), (5, total));
    assert_eq!(waste.part("empty_collections", "with a table"), (2, bytes[0] + bytes[3]));
    assert_eq!(waste.part("empty_collections", "without a table"), (3, bytes[1] + bytes[2]));
    assert_eq!(waste.field("empty_collections", "acme.Cart.items"), (5, total));
}

#[test]
fn wrappers_around_nothing() {
    let mut shop = Shop::new();
    let empty = shop.model.instance_with(shop.empty_list, &[]);
    shop.keep(empty);
    let wrap = |shop: &mut Shop, inner: ObjectId| {
        let wrapper = shop.model.instance_with(shop.unmodifiable, &[("c", inner.into())]);
        shop.keep(wrapper)
    };
    // Of a shared one only the wrapper goes; one of its own goes with it; one of another is counted by itself.
    wrap(&mut shop, empty);
    let own = shop.list(&[], 10);
    wrap(&mut shop, own);
    let others = shop.list(&[], 10);
    shop.keep(others);
    wrap(&mut shop, others);
    let full = objects(&mut shop, 2);
    let full = shop.list(&full, 2);
    wrap(&mut shop, full);
    let (wrapper, list) =
        (shop.size(shop.unmodifiable), shop.size(shop.array_list) + shop.array_size(Type::Object, 10));
    assert_eq!(shop.waste().sum("empty_collections"), (4, 3 * wrapper + 2 * list));
}

#[test]
fn a_view_of_an_empty_map_is_no_collection_of_its_own() {
    let mut shop = Shop::new();
    let view = shop.class("java.util.HashMap$EntrySet", &[("this$0", Type::Object)]);
    let node = shop.node;
    let map = shop.map(&[], 0, 1, node);
    let view_of_map = shop.model.instance_with(view, &[("this$0", map.into())]);
    shop.model.set_field(map, "entrySet", view_of_map);
    shop.keep(map);
    let bytes = shop.size(shop.hash_map) + shop.size(view);
    let waste = shop.waste();
    assert_eq!(waste.sum("empty_collections"), (1, bytes));
    assert_eq!(waste.part("empty_collections", "without a table"), (1, bytes));
}

#[test]
fn of_collections_of_one_element_all_but_that_goes() {
    let mut shop = Shop::new();
    let node = shop.node;
    let elements = objects(&mut shop, 8);
    let list = shop.list(&elements[..1], 10);
    let map = shop.map(&[[elements[1], elements[2]]], 16, 1, node);
    let inner = shop.map(&[[elements[3], elements[3]]], 16, 1, node);
    let set = shop.model.instance_with(shop.hash_set, &[("map", inner.into())]);
    let linked = shop.linked(&elements[4..5]);
    // Objects shared by key and value stay with them.
    let pair = shop.class("acme.Pair", &[("common", Type::Object)]);
    let common = shop.bytes(&[1, 2, 3, 4]);
    let [key, value] = [0, 1].map(|_| shop.model.instance_with(pair, &[("common", common.into())]));
    let with_common = shop.map(&[[key, value]], 2, 1, node);
    // Its table is shared with another.
    let shared = shop.array(&[elements[5], NULL, NULL]);
    shop.keep(shared);
    let on_shared = shop.list_on(shared, 1);
    for one in [list, map, set, linked, with_common, on_shared] {
        shop.keep(one);
    }
    let size = |class| shop.size(class);
    let table = |length| shop.array_size(Type::Object, length);
    let of_map = size(shop.hash_map) + size(shop.node);
    let total = size(shop.array_list)
        + table(10)
        + of_map
        + table(16)
        + of_map
        + table(16)
        + size(shop.hash_set)
        + size(shop.linked_list)
        + size(shop.linked_node)
        + of_map
        + table(2);
    let waste = shop.waste();
    assert_eq!(waste.sum("single_element_collections"), (5, total));
    assert_eq!(waste.part("single_element_collections", "java.util.HashSet").0, 1);
}

#[test]
fn sparse_is_what_needs_at_most_half_of_its_table() {
    let mut shop = Shop::new();
    let node = shop.node;
    let elements = objects(&mut shop, 40);
    // Lists: elements and slots. Maps: 6 entries fit into 8 buckets, 7 need 16.
    for (count, slots) in [(5, 10), (6, 10), (2, 100), (0, 100)] {
        let list = shop.list(&elements[..count], slots);
        shop.keep(list);
    }
    for (count, buckets) in [(6, 16), (7, 16), (3, 64)] {
        let entries: Vec<[ObjectId; 2]> = elements[..count].iter().map(|element| [*element; 2]).collect();
        let map = shop.map(&entries, buckets, 1, node);
        shop.keep(map);
    }
    let table = |length| shop.array_size(Type::Object, length);
    let lists = table(10) - table(5) + table(100) - table(2);
    let maps = table(16) - table(8) + table(64) - table(4);
    let waste = shop.waste();
    assert_eq!(waste.sum("sparse_collections"), (4, lists + maps));
    assert_eq!(waste.part("sparse_collections", "java.util.ArrayList"), (2, lists));
    let parts = waste.row("sparse_collections").unwrap()["parts"].as_array().unwrap();
    let ratio =
        |class: &str| parts.iter().find(|part| part["what"] == class).unwrap()["ratio"].as_f64().unwrap();
    assert!((ratio("java.util.ArrayList") - 7.0 / 110.0).abs() < 1e-4);
    assert!((ratio("java.util.HashMap") - 9.0 / 80.0).abs() < 1e-4);
}

#[test]
fn maps_collide_if_most_entries_stand_behind_others() {
    let mut shop = Shop::new();
    let (node, tree_node) = (shop.node, shop.tree_node);
    let elements = objects(&mut shop, 40);
    let entries: Vec<[ObjectId; 2]> = elements.iter().map(|element| [*element; 2]).collect();
    // Half of them collide, more do, few entries do, and a tree.
    for (count, chain, node) in [(16, 2, node), (18, 3, node), (6, 6, node), (30, 15, tree_node)] {
        let map = shop.map(&entries[..count], 32, chain, node);
        shop.keep(map);
    }
    let more = 30 * (shop.size(shop.tree_node) - shop.size(shop.node));
    let waste = shop.waste();
    assert_eq!(waste.sum("colliding_maps"), (2, more));
    let ratio = waste.row("colliding_maps").unwrap()["parts"][0]["ratio"].as_f64().unwrap();
    assert!((ratio - (12.0 + 28.0) / 48.0).abs() < 1e-4, "{ratio}");
}

#[test]
fn linked_lists_take_more_than_array_lists() {
    let mut shop = Shop::new();
    let elements = objects(&mut shop, 10);
    let list = shop.linked(&elements);
    shop.keep(list);
    // It says that it has more than it holds.
    let lies = shop.linked(&elements[..3]);
    shop.model.set_field(lies, "size", Value::Int(i32::MAX));
    shop.keep(lies);
    let take = |count: u32| {
        let now = shop.size(shop.linked_list) + u64::from(count) * shop.size(shop.linked_node);
        now - shop.size(shop.array_list) - shop.array_size(Type::Object, count)
    };
    let bytes = take(10) + take(3);
    assert_eq!(shop.waste().sum("linked_lists"), (2, bytes));
}

#[test]
fn what_a_subclass_of_the_program_holds_is_its_own() {
    let mut shop = Shop::new();
    let cache = shop.model.class("acme.Cache", Some(shop.hash_map), &[("limit", Type::Int)]);
    let cache = shop.model.instance_with(cache, &[]);
    shop.keep(cache);
    // Its table is nevertheless a table.
    let cache = shop.model.class("acme.Lru", Some(shop.hash_map), &[("max", Type::Int)]);
    let table = shop.model.object_array(shop.node_array, &[NULL, NULL]);
    let cache = shop.model.instance_with(cache, &[("table", table.into())]);
    shop.keep(cache);
    // A collection in a field of its superclass is not in a field of the program.
    let lists = shop.class("acme.Lists", &[("all", Type::Object)]);
    let list = shop.list(&[], 4);
    let inner = shop.array(&[list, list]);
    let nested = shop.list_on(inner, 2);
    shop.in_field(lists, "all", nested);
    let bytes = shop.size(shop.array_list) + shop.array_size(Type::Object, 4);
    let waste = shop.waste();
    assert_eq!(waste.sum("empty_arrays"), (0, 0));
    assert_eq!(waste.fields("empty_collections"), [(Some("acme.Lists.all".to_owned()), (1, bytes))]);
}
