//! Tables of pages: where their rows lead, and how they are saved.

use hprof_writer::{HeapModel, Jdk, ObjectId, Options, Root, Type, Value};

use crate::html;
use crate::server::Server;
use crate::web_driver::{self, Browser, By};

/// A browser's window, in pixels, and the screens that pages are made for.
const WIDTHS: [u32; 2] = [1400, 500];

#[test]
fn a_table_is_saved_as_the_command_writes_it() {
    let server = Server::of("leaks/s1.hprof");
    let client = server.client();
    client.ready("/1/overview");
    for (target, command) in [
        ("/1/histo.csv?pattern=shop.**", &["histo", "shop.**"][..]),
        ("/1/histo.csv?top=3", &["histo", "--top", "3"]),
        ("/1/waste.csv?kind=duplicate_strings", &["waste", "--kind", "duplicate-strings"]),
        ("/1/waste.csv?kind=duplicate-strings", &["waste", "--kind", "duplicate-strings"]),
        ("/1/waste.csv?group-by=package", &["waste", "--group-by", "package"]),
        ("/1/threads.csv?thread=main", &["threads", "--thread", "main"]),
        (
            "/1/dominators.csv?group-by=class-tree&top=3",
            &["dominators", "--group-by", "class-tree", "--top", "3"],
        ),
        ("/1/dominators.csv?of=0xfc2f1518", &["dominators", "--of", "0xfc2f1518"]),
        ("/1/threads.csv?group=1", &["threads", "--group"]),
        ("/1/leaks.csv", &["leaks"]),
        // Text that a spreadsheet would take for a formula.
        (
            "/1/oql.csv?q=SELECT+toString(%22%3D1%2B1%22)+FROM+OBJECTS+0xfc2f1518",
            &["oql", "SELECT toString(\"=1+1\") FROM OBJECTS 0xfc2f1518"],
        ),
    ] {
        let response = client.ready(target);
        let expected = server.command(&[command, &["--format", "csv", "-q"]].concat());
        assert_eq!(response.status, 200, "{target}: {}", response.text());
        assert_eq!(response.text(), String::from_utf8(expected).unwrap(), "{target}");
    }
    assert!(
        client
            .ready("/1/oql.csv?q=SELECT+toString(%22%3D1%2B1%22)+FROM+OBJECTS+0xfc2f1518")
            .text()
            .contains("'=1+1")
    );
    // Each table of a page of several has its own.
    let page = client.ready("/1/object/0xfc2f1518").text();
    let tags = html::tags(&page);
    let links: Vec<&str> = tags.iter().filter_map(|tag| tag.attribute("href")).collect();
    for wanted in [
        "/1/paths.csv?paths=3&budget=20000&of=0xfc2f1518",
        "/1/histo.csv?retained-by=0xfc2f1518",
        "/1/refs.csv?incoming=1&of=0xfc2f1518",
        "/1/object/0xfc2f1518.csv",
    ] {
        assert!(links.contains(&wanted), "{wanted}: {links:?}");
    }
}

#[test]
fn fields_that_waste_and_groups_of_threads_are_links() {
    let server = Server::of("leaks/s1.hprof");
    let client = server.client();
    let waste = client.ready("/1/waste").text();
    for href in ["/1/waste?kind=duplicate-strings", "/1/class/shop.Product"] {
        assert!(waste.contains(&format!("href=\"{href}\"")), "{href}: {waste}");
    }
    let fields = client.ready("/1/waste?kind=duplicate_strings").text();
    assert!(fields.contains("href=\"/1/class/shop.Product\""), "{fields}");
    let groups = client.ready("/1/threads?group=1").text();
    let tags = html::tags(&groups);
    let found = tags.iter().find(|tag| tag.attribute("href").is_some() && tag.text == "main").unwrap();
    let threads = client.ready(found.attribute("href").unwrap()).text();
    assert!(threads.contains("shop.S1StaticCache.main"), "{threads}");
}

/// A heap in which one object keeps more than a page looks through at once.
fn large() -> Vec<u8> {
    let mut heap = HeapModel::default();
    let object = Jdk::add_to(&mut heap).object;
    let long = "com.acme.warehouse.inventory.reservations.".to_owned() + &"Reservation".repeat(5);
    let item = heap.class(&long, Some(object), &[("key", Type::Int), ("shared", Type::Object)]);
    let array = heap.array_class(item);
    let holder =
        heap.class("com.acme.Holder", Some(object), &[("items", Type::Object), ("more", Type::Object)]);
    let shared = heap.instance(object, &[]);
    let items: Vec<ObjectId> =
        (0..200_001).map(|key| heap.instance(item, &[Value::Int(key), Value::from(shared)])).collect();
    let all = heap.object_array(array, &items);
    let more = heap.object_array(array, &[]);
    let holder = heap.instance(holder, &[Value::from(all), Value::from(more)]);
    heap.root(holder, Root::Unknown);
    heap.write(&Options::hotspot()).bytes().to_vec()
}

#[test]
fn a_search_for_paths_gives_up_and_can_go_on() {
    let server = Server::start("large.hprof", &large(), &[]);
    let client = server.client();
    // An object that all items refer to.
    let items = client.ready("/1/instances?class=com.acme.Holder&top=1").text();
    let holder = items.split("/1/object/").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let all = client.ready(&format!("/1/object/{holder}.json")).json();
    let array = all["rows"][0]["fields"][0]["object"].as_str().unwrap().to_owned();
    let first = client.ready(&format!("/1/object/{array}.json")).json();
    let item = first["rows"][0]["fields"][0]["object"].as_str().unwrap().to_owned();
    let fields = client.ready(&format!("/1/object/{item}.json")).json();
    let shared = fields["rows"][0]["fields"][1]["object"].as_str().unwrap().to_owned();
    let page = client.ready(&format!("/1/object/{shared}")).text();
    assert!(page.contains("The search stopped before"), "{page}");
    let tags = html::tags(&page);
    let on = tags.iter().find(|tag| tag.text == "Search longer" && tag.name == "a").unwrap();
    let found = client.ready(on.attribute("href").unwrap());
    assert!(found.status == 200 && found.text().contains("com.acme.Holder"), "{}", found.text());
    // With few objects to read, nothing gives up.
    assert!(!client.ready(&format!("/1/object/{item}")).text().contains("stopped before"));
}

#[test]
fn names_are_in_sight_on_all_screens() {
    let Some(found) = web_driver::find("names_are_in_sight_on_all_screens") else { return };
    let server = Server::start("large.hprof", &large(), &[]);
    let client = server.client();
    let holders = client.ready("/1/dominators").text();
    let holder = holders.split("/1/object/").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let browser = Browser::start(found, true);
    browser.open(&server.url);
    browser.wait_for_path(|path| path == "/1/overview");
    for page in [format!("object/{holder}"), format!("dominators?of={holder}"), "histo".to_owned()] {
        client.ready(&format!("/1/{page}"));
        for width in WIDTHS {
            browser.resize(width, 1000);
            browser.open(&format!("{}/1/{page}", server.origin()));
            let cut = browser.run(
                "return [...document.querySelectorAll('.scroll')].filter(table => table.scrollWidth > table.clientWidth + 1) \
                 .map(table => table.innerText)",
            );
            assert_eq!(cut, serde_json::json!([]), "{page} at {width}");
            let bars = browser.run("return Math.max(0, ...[...document.querySelectorAll('tr')].map(row => row.querySelectorAll('meter').length))");
            assert!(bars.as_u64() <= Some(1), "{page}: {bars} bars a row");
        }
    }
}

#[test]
fn instances_that_take_a_moment_come_by_themselves() {
    let Some(found) = web_driver::find("instances_that_take_a_moment_come_by_themselves") else { return };
    let server = Server::start("large.hprof", &large(), &[]);
    let histo = server.client().ready("/1/histo").text();
    let class = histo.split("/1/class/0x").find(|part| part.contains("Reservation")).unwrap();
    let page = format!("/1/class/0x{}", class.split('"').next().unwrap());
    // Without a script it is a link.
    let plain = server.client().ready(&page).text();
    let tags = html::tags(&plain);
    let link = tags.iter().find(|tag| tag.text == "Those that retain most").unwrap();
    assert_eq!(server.client().ready(link.attribute("href").unwrap()).status, 200);
    let browser = Browser::start(found, true);
    browser.open(&server.url);
    browser.wait_for_path(|path| path == "/1/overview");
    browser.open(&format!("{}{page}", server.origin()));
    browser.one(By::Css("section [aria-label=Instances] td a[href^='/1/object/']"));
}
