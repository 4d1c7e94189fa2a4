//! `secrets` of many values: of one kind, and of one array.

use serde_json::Value as Json;

use hprof_writer::{HeapModel, Jdk, Layout, ObjectId, Options, Root, Type, Value};

use crate::kit::process::{Folder, stderr};

/// A heap in which an array of the class `holder` has these objects, after others.
fn dump(holder: &str, make: impl Fn(&mut HeapModel, &Jdk) -> Vec<ObjectId>) -> Vec<u8> {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut model);
    let held = make(&mut model, &jdk);
    let array = model.object_array(jdk.object_array, &held);
    let class = model.class(holder, Some(jdk.object), &[("table", Type::Object)]);
    let map = model.instance(class, &[array.into()]);
    model.root(map, Root::JniGlobal { reference: 1 });
    model.root_boot_classes();
    model.write(&Options::hotspot()).bytes().to_vec()
}

fn answer(folder: &Folder, dump: &str, more: &[&str]) -> String {
    let output = folder.run(&[&["secrets", dump], more].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Each key has the value that follows it, in an array that is read once.
#[test]
fn keys_and_values_in_one_array_belong_together() {
    const KEYS: usize = 3000;
    let bytes = dump("java.util.ImmutableCollections$MapN", |model, jdk| {
        let pair = |number: usize| [format!("db{number}.password"), format!("s3cr3t-{number:05}")];
        (0..KEYS).flat_map(pair).map(|text| jdk.string(model, &text)).collect()
    });
    let folder = Folder::new();
    let dump = folder.write("map.hprof", bytes);
    let json: Json =
        serde_json::from_str(&answer(&folder, &dump, &["--format", "json", "-q", "--show-values"])).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let mut values: Vec<&str> = rows.iter().map(|row| row["value"].as_str().unwrap()).collect();
    values.sort_unstable();
    let expected: Vec<String> = (0..KEYS).map(|number| format!("s3cr3t-{number:05}")).collect();
    assert_eq!(values, expected);
    assert!(rows.iter().all(|row| row["rule"] == "named-value"));
}

#[test]
fn many_of_a_kind_are_one_row_of_a_table() {
    let bytes = dump("com.acme.Sessions", |model, jdk| {
        let fields = [("id", Type::Object), ("password", Type::Object)];
        let session = model.class("com.acme.Session", Some(jdk.object), &fields);
        let other = model.class("com.acme.Other", Some(jdk.object), &fields);
        let mut made = |class, number: usize| {
            let value = jdk.string(model, &format!("hollunder-{number:04}-q7"));
            model.instance(class, &[Value::Object(0), value.into()])
        };
        let all: Vec<ObjectId> = (0..1234).map(|number| made(session, number)).collect();
        [all, (5000..5020).map(|number| made(other, number)).collect()].concat()
    });
    let folder = Folder::new();
    let dump = folder.write("sessions.hprof", bytes);
    for format in ["table", "markdown"] {
        let shown = answer(&folder, &dump, &["--top", "0", "--format", format]);
        assert_eq!(shown.matches("com.acme.Session.password").count(), 1, "{shown}");
        assert_eq!(shown.matches("com.acme.Other.password").count(), 20, "{shown}");
        assert!(shown.contains("and 1,233 more"), "{shown}");
    }
    let shown = answer(&folder, &dump, &["--top", "0"]);
    assert!(shown.contains("1,254 credentials by 1 rule; 1,233 rows"), "{shown}");
    let all = answer(&folder, &dump, &["--top", "0", "--all"]);
    assert_eq!(all.matches("com.acme.Session.password").count(), 1234);
    // JSON has each, as far as `--top` allows, and their number.
    for (more, rows) in [(&[][..], 1254), (&["--top", "7"][..], 7)] {
        let answer = answer(&folder, &dump, &[&["--format", "json", "-q"], more].concat());
        let json: Json = serde_json::from_str(&answer).unwrap();
        assert_eq!(json["rows"].as_array().unwrap().len(), rows);
        assert_eq!(json["total"]["rows"], 1254);
    }
}
