//! Rules of the user about frameworks, in all pages that name places.

use hprof_writer::{Elements, HeapModel, Jdk, ObjectId, Options, Type};

use crate::kit::process::Place;
use crate::server::Server;

const RULES: &str = r#"
framework = "Acme"
[[class]]
name = "com.acme.Queue"
called = "queue of orders"
[[class.says]]
text = "with items"
"#;

#[test]
fn pages_have_the_words_of_a_users_rule() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let item = model.class("com.acme.Item", Some(jdk.object), &[("body", Type::Object)]);
    let items: Vec<ObjectId> = (0..50)
        .map(|_| {
            let body = model.prim_array(Elements::Zeros(Type::Byte, 8_000));
            model.instance_with(item, &[("body", body.into())])
        })
        .collect();
    let items = model.object_array(jdk.object_array, &items);
    let class = model.class("com.acme.Queue", Some(jdk.object), &[("items", Type::Object)]);
    let queue = model.instance_with(class, &[("items", items.into())]);
    model.class_with_statics("com.acme.Server", Some(jdk.object), &[], &[("QUEUE", queue.into())]);
    model.root_boot_classes();
    let bytes = model.write(&Options::hotspot()).bytes();
    let place = Place::new("a.hprof", &bytes);
    std::fs::write(place.path("acme.toml"), RULES).unwrap();
    let rules = place.path("acme.toml");
    let options: [&[&str]; 2] = [&[], &["--frameworks", rules.to_str().unwrap()]];
    for options in options {
        let server = Server::start("a.hprof", &bytes, options);
        let client = server.client();
        for (page, words) in [
            ("/1/overview", "queue of orders: with items"),
            ("/1/leaks", "queue of orders: with items"),
            ("/1/treemap", "queue of orders"),
        ] {
            let text = client.ready(page).text();
            assert_eq!(text.contains(words), !options.is_empty(), "{page} {options:?}: {text}");
        }
    }
}
