//! Growth below a place that does not show it, as something else there shrinks or moves.

use hprof_writer::Type;

use super::places::{blob, blobs, diff, labels};
use super::{json, place, rows};
use crate::waste::made::Shop;

/// A server with lists of blobs in two fields, and an array of bytes of its own.
fn server(live: usize, archived: usize, bytes: usize) -> Shop {
    let mut shop = Shop::new();
    let fields = [("live", Type::Object), ("archive", Type::Object), ("own", Type::Object)];
    let class = shop.class("acme.Server", &fields);
    let blob = blob(&mut shop);
    let mut list = |count: usize| {
        let blobs = blobs(&mut shop, blob, count);
        shop.list(&blobs, 1024)
    };
    let (live, archive) = (list(live), list(archived));
    let own = shop.bytes(&vec![1; bytes]);
    let values = [("live", live.into()), ("archive", archive.into()), ("own", own.into())];
    let server = shop.model.instance_with(class, &values);
    shop.keep(server);
    shop
}

const LIVE: [&str; 4] = ["acme.Server.live", "java.util.ArrayList", "acme.Blob.data", "byte[]"];
const ARCHIVE: [&str; 4] = ["acme.Server.archive", "java.util.ArrayList", "acme.Blob.data", "byte[]"];

#[test]
fn growth_and_shrinkage_of_the_same_size_are_both_told() {
    let found = diff(server(100, 500, 8), server(500, 100, 8));
    assert_eq!(labels(&found), [LIVE, ARCHIVE]);
    assert_eq!([found[0].1, found[1].1], [(100, 500), (500, 100)]);
    // The server shrank a little, or grew a little.
    for archived in [90, 110] {
        let found = diff(server(100, 500, 8), server(500, archived, 8));
        assert_eq!(labels(&found), [LIVE, ARCHIVE], "{archived}");
    }
    // No other place shows it.
    let found = diff(server(100, 500, 8), server(101, 100, 8));
    assert_eq!(labels(&found)[1], ARCHIVE, "{found:?}");
}

#[test]
fn what_a_place_grew_by_is_not_hidden_by_less_below_it() {
    // Objects that nothing but the class of the holder explains: each element has a class of its own.
    let make = |spread: usize, shrunk: usize| {
        let mut shop = Shop::new();
        let mut elements = Vec::new();
        for number in 0..100 {
            let class =
                shop.class(&format!("acme.Kind{number}"), &[("data", Type::Object), ("x", Type::Object)]);
            let data = shop.bytes(&vec![1; spread]);
            elements.push(shop.model.instance_with(class, &[("data", data.into())]));
        }
        let blob = blob(&mut shop);
        elements.extend(blobs(&mut shop, blob, shrunk));
        let list = shop.list(&elements, 1024);
        shop.keep(list);
        shop.dump()
    };
    let (old, new) = (make(1000, 200), make(9000, 100));
    let (_, document) = json("diff", &[&old, &new], &["--group-by", "place", "--min-change", "20000"]);
    let found: Vec<_> = rows(&document).iter().map(place).collect();
    assert_eq!(found, [["static keep of acme.Shop", "java.lang.Object[]", "java.util.ArrayList"]]);
}

/// The places below the array of what is kept that grow, and how, over dumps in this order.
fn trend(shops: impl IntoIterator<Item = Shop>, more: &[&str]) -> Vec<(Vec<String>, String)> {
    let dumps: Vec<_> = shops.into_iter().map(Shop::dump).collect();
    let dumps: Vec<_> = dumps.iter().collect();
    let (_, document) = json("trend", &dumps, &[&["--order", "given"], more].concat());
    let row = |row: &serde_json::Value| {
        let labels = place(row)[2..].iter().map(|label| (*label).to_owned()).collect();
        (labels, row["grows"].as_str().unwrap().to_owned())
    };
    rows(&document).iter().map(row).collect()
}

#[test]
fn what_grows_in_every_step_is_found_below_a_holder_that_hardly_changes() {
    let every_step = || vec![(LIVE.map(str::to_owned).to_vec(), "every_step".to_owned())];
    // The holder stays the same, shrinks a little or grows a little in every step.
    for step in [0, 10, 20] {
        let moments = [0, 1, 2].map(|at| server(100 + 200 * at, 500 - 210 * at + step * at, 8));
        assert_eq!(trend(moments, &[]), every_step(), "{step}");
    }
}

#[test]
fn what_moves_to_and_fro_below_a_place_that_grows_is_not_told() {
    // Generations take turns; only both together grow in every step.
    let moments = [(100, 500), (700, 100), (300, 700)].map(|(live, archived)| server(live, archived, 8));
    assert_eq!(trend(moments, &[]), [(vec!["acme.Server".to_owned()], "every_step".to_owned())]);
}

#[test]
fn parts_that_grow_in_every_step_are_found_below_what_rises_and_falls() {
    let make = |sessions: usize, size: usize, other: usize| {
        let mut shop = Shop::new();
        let fields = [("a", Type::Object), ("b", Type::Object), ("c", Type::Object)];
        let class = shop.class("acme.Session", &fields);
        let mut all = Vec::new();
        for _ in 0..sessions {
            let parts = [size, size, other].map(|size| shop.bytes(&vec![1; size / sessions]));
            let values = ["a", "b", "c"].into_iter().zip(parts.map(hprof_writer::Value::from));
            all.push(shop.model.instance_with(class, &values.collect::<Vec<_>>()));
        }
        let list = shop.list(&all, 64);
        shop.keep(list);
        shop
    };
    let moments = [make(10, 200_000, 100_000), make(30, 700_000, 3_000_000), make(20, 1_200_000, 100_000)];
    let found = trend(moments, &[]);
    let found: Vec<(&str, &str)> =
        found.iter().map(|(labels, grows)| (&**labels.iter().rev().nth(1).unwrap(), &**grows)).collect();
    assert_eq!(found, [("acme.Session.a", "every_step"), ("acme.Session.b", "every_step")]);
}
