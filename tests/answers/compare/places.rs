//! Heaps made so that each rule of `docs/diff.md` decides.

use hprof_writer::{ClassId, ObjectId, Root, StackFrame, Type, Value};

use super::{change, json, place, rows};
use crate::waste::made::Shop;

/// The places that changed: labels below the array of what is kept, objects, bytes.
pub type Found = Vec<(Vec<String>, (u64, u64), (u64, u64))>;

/// Compares two heaps, all changes.
pub fn diff(old: Shop, new: Shop) -> Found {
    let (_, document) =
        json("diff", &[&old.dump(), &new.dump()], &["--group-by", "place", "--min-change", "1"]);
    let found = rows(&document).iter().map(|row| {
        let labels: Vec<String> = place(row).iter().map(|label| (*label).to_owned()).collect();
        let below =
            labels.strip_prefix(&["static keep of acme.Shop".to_owned(), "java.lang.Object[]".to_owned()]);
        (
            below.map(<[String]>::to_vec).unwrap_or(labels.clone()),
            change(row, "objects"),
            change(row, "retained_bytes"),
        )
    });
    found.collect()
}

pub fn labels(found: &Found) -> Vec<Vec<&str>> {
    found.iter().map(|(labels, ..)| labels.iter().map(String::as_str).collect()).collect()
}

/// A class of the program.
pub fn blob(shop: &mut Shop) -> ClassId {
    shop.class("acme.Blob", &[("data", Type::Object), ("other", Type::Object)])
}

/// Objects of a class of the program that hold a thousand bytes each.
pub fn blobs(shop: &mut Shop, class: ClassId, count: usize) -> Vec<ObjectId> {
    (0..count)
        .map(|_| {
            let data = shop.bytes(&[1; 1000]);
            shop.model.instance_with(class, &[("data", data.into())])
        })
        .collect()
}

#[test]
fn fields_are_told_apart_and_elements_are_not() {
    let make = |left: usize, right: usize| {
        let mut shop = Shop::new();
        let class = shop.class("acme.Pair", &[("left", Type::Object), ("right", Type::Object)]);
        let blob = blob(&mut shop);
        let (left, right) = (blobs(&mut shop, blob, left), blobs(&mut shop, blob, right));
        let (left, right) = (shop.list(&left, 64), shop.list(&right, 64));
        let pair = shop.model.instance_with(class, &[("left", left.into()), ("right", right.into())]);
        shop.keep(pair);
        shop
    };
    let found = diff(make(3, 20), make(9, 20));
    let expected = ["acme.Pair.left", "java.util.ArrayList", "acme.Blob.data", "byte[]"];
    assert_eq!(labels(&found), [expected]);
    assert_eq!((found[0].1, found[0].2), ((3, 9), (3 * 1016, 9 * 1016)));
    // Both grew: two places, not the pair that holds them.
    let found = diff(make(3, 3), make(9, 9));
    assert_eq!(found.len(), 2);
}

#[test]
fn the_unit_that_the_program_adds_comes_before_what_is_in_it() {
    let make = |sessions: usize, items: usize| {
        let mut shop = Shop::new();
        let class = shop.class("acme.Session", &[("items", Type::Object), ("data", Type::Object)]);
        let blob = blob(&mut shop);
        let sessions: Vec<ObjectId> = (0..sessions)
            .map(|_| {
                let items = blobs(&mut shop, blob, items);
                let items = shop.list(&items, 32);
                let data = shop.bytes(&[1; 100]);
                shop.model.instance_with(class, &[("items", items.into()), ("data", data.into())])
            })
            .collect();
        let sessions = shop.list(&sessions, 64);
        shop.keep(sessions);
        shop
    };
    let found = diff(make(5, 8), make(40, 8));
    assert_eq!(labels(&found), [["java.util.ArrayList", "acme.Session"]]);
    assert_eq!(found[0].1, (5, 40));
    // Few are holders, and where each has one part, the part has the same number.
    let inner =
        ["java.util.ArrayList", "acme.Session.items", "java.util.ArrayList", "acme.Blob.data", "byte[]"];
    for (old, new, objects) in [((2, 20), (8, 20), (40, 160)), ((5, 1), (40, 1), (5, 40))] {
        let found = diff(make(old.0, old.1), make(new.0, new.1));
        assert_eq!((labels(&found), found[0].1), (vec![inner.to_vec()], objects));
    }
}

#[test]
fn a_list_of_nodes_is_one_place() {
    let make = |count: usize| {
        let mut shop = Shop::new();
        let class = shop.class("acme.Node", &[("next", Type::Object), ("data", Type::Object)]);
        let mut next = ObjectId::NULL;
        for _ in 0..count {
            let data = shop.bytes(&[1; 100]);
            next = shop.model.instance_with(class, &[("next", next.into()), ("data", data.into())]);
        }
        shop.keep(next);
        shop
    };
    let found = diff(make(3), make(300));
    assert_eq!(labels(&found), [["acme.Node.data", "byte[]"]]);
    assert_eq!((found[0].1, found[0].2), ((3, 300), (3 * 120, 300 * 120)));
}

#[test]
fn elements_in_elements_are_one_place() {
    let make = |levels: usize| {
        let mut shop = Shop::new();
        let class = shop.class("acme.Element", &[("children", Type::Object), ("data", Type::Object)]);
        let mut inner = Vec::new();
        for _ in 0..levels {
            let children = shop.list(&inner, 2);
            let data = shop.bytes(&[1; 1000]);
            let fields = [("children", children.into()), ("data", data.into())];
            inner = vec![shop.model.instance_with(class, &fields)];
        }
        shop.keep(inner[0]);
        shop
    };
    let found = diff(make(2), make(40));
    // The whole of them: each element has a part of its own.
    let element = found.iter().find(|(labels, ..)| labels.contains(&"acme.Element.data".to_owned()));
    let (labels, objects, bytes) = element.unwrap_or_else(|| panic!("{found:?}"));
    assert!(labels.len() <= 5, "{labels:?}");
    assert_eq!((*objects, *bytes), ((2, 40), (2 * 1016, 40 * 1016)));
}

#[test]
fn what_a_running_method_holds_stays_where_it_is() {
    let make = |count: usize, is_held: bool| {
        let mut shop = Shop::new();
        let class = shop.class("acme.Cache", &[("list", Type::Object), ("other", Type::Object)]);
        let blob = blob(&mut shop);
        let blobs = blobs(&mut shop, blob, count);
        let list = shop.list(&blobs, 64);
        let cache = shop.model.instance_with(class, &[("list", list.into())]);
        shop.keep(cache);
        let thread_class = shop.class("java.lang.Thread", &[("name", Type::Object)]);
        let name = shop.string("worker-7");
        let thread = shop.model.instance_with(thread_class, &[("name", name.into())]);
        let frames = [StackFrame::new(class, "fill", "Cache.java", 7)];
        let trace = shop.model.trace(1, &frames);
        shop.model.root(thread, Root::ThreadObject { thread: 1, trace });
        if is_held {
            shop.model.root(list, Root::JavaFrame { thread: 1, frame: 0 });
        }
        shop
    };
    for (before, after) in [(false, true), (true, false), (true, true)] {
        let found = diff(make(10, before), make(40, after));
        let expected = ["acme.Cache.list", "java.util.ArrayList", "acme.Blob.data", "byte[]"];
        assert_eq!((labels(&found), found[0].1), (vec![expected.to_vec()], (10, 40)), "{before} {after}");
    }
}

#[test]
fn a_wrapper_and_what_it_wraps_are_one_place() {
    let make = |count: usize| {
        let mut shop = Shop::new();
        let blob = blob(&mut shop);
        let blobs = blobs(&mut shop, blob, count);
        let list = shop.list(&blobs, 64);
        let wrapper = shop.model.instance_with(shop.unmodifiable, &[("c", list.into())]);
        let class = shop.class("acme.Holder", &[("all", Type::Object), ("other", Type::Object)]);
        shop.in_field(class, "all", wrapper);
        shop
    };
    let found = diff(make(5), make(50));
    let wrapper = "java.util.Collections$UnmodifiableCollection";
    assert_eq!(labels(&found), [["acme.Holder.all", wrapper, "acme.Blob.data", "byte[]"]]);
}

#[test]
fn a_value_of_a_registry_stays_in_its_static_field() {
    // One of its values is a static field too: neither the field nor the map holds it alone.
    let make = |count: usize| {
        let mut shop = Shop::new();
        let blob = blob(&mut shop);
        let values = blobs(&mut shop, blob, count);
        let mut entries = Vec::new();
        for (number, value) in values.iter().enumerate() {
            entries.push([shop.string(&format!("name{number}")), *value]);
        }
        let node = shop.node;
        let map = shop.map(&entries, 256, 1, node);
        let statics = [("DEFAULT", Value::Object(values[0].0)), ("ALL", Value::Object(map.0))];
        let kind = shop.model.class_with_statics("acme.Kind", Some(shop.jdk.object), &[], &statics);
        shop.model.root(kind, Root::StickyClass);
        shop
    };
    let found = diff(make(3), make(70));
    // Keys of a map with many entries are data.
    let expected = ["static ALL of acme.Kind", "java.util.HashMap", "acme.Blob.data", "byte[]"];
    assert_eq!((labels(&found), found[0].1), (vec![expected.to_vec()], (2, 69)));
}

#[test]
fn class_objects_of_one_name_below_one_another_count_each() {
    let make = |bytes: usize| {
        let mut shop = Shop::new();
        let loader = shop.class("acme.Loader", &[("plugin", Type::Object), ("other", Type::Object)]);
        let top = Some(shop.jdk.object);
        let (outer, inner) = (shop.bytes(&vec![1; bytes]), shop.bytes(&vec![2; bytes]));
        let none = Value::Object(0);
        let inner =
            shop.model.class_with_statics("acme.Plugin", top, &[], &[("data", inner.into()), ("next", none)]);
        let holder = shop.model.instance_with(loader, &[("plugin", Value::Object(ObjectId::from(inner).0))]);
        let statics = [("data", outer.into()), ("next", holder.into())];
        let outer = shop.model.class_with_statics("acme.Plugin", top, &[], &statics);
        shop.model.root(outer, Root::StickyClass);
        shop
    };
    let found = diff(make(1000), make(5000));
    assert_eq!(labels(&found), [["static data of acme.Plugin", "byte[]"]]);
    assert_eq!((found[0].1, found[0].2), ((2, 2), (2 * 1016, 2 * 5016)));
}

#[test]
fn what_is_nested_in_what_a_method_holds_counts_once() {
    let make = |count: usize, is_held: bool| {
        let mut shop = Shop::new();
        let class = shop.class("acme.Dir", &[("entries", Type::Object), ("data", Type::Object)]);
        let dir = |shop: &mut Shop, inner: &[ObjectId]| {
            let (entries, data) = (shop.list(inner, 8), shop.bytes(&[1; 1000]));
            let fields = [("entries", entries.into()), ("data", data.into())];
            (shop.model.instance_with(class, &fields), entries)
        };
        let leaves: Vec<ObjectId> = (0..count).map(|_| dir(&mut shop, &[]).0).collect();
        let (root, entries) = dir(&mut shop, &leaves);
        shop.keep(root);
        if is_held {
            // A loop over it.
            shop.model.root(entries, Root::MonitorUsed);
        }
        shop
    };
    assert_eq!(diff(make(5, false), make(5, true)), []);
    let found = diff(make(5, false), make(8, true));
    let data = found.iter().find(|(labels, ..)| labels.contains(&"acme.Dir.data".to_owned())).unwrap();
    assert_eq!((data.1, data.2), ((6, 9), (6 * 1016, 9 * 1016)));
}
