//! `redact --classes`: the names of classes are searched for in the bytes of the redacted dump, and read from the mapping.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value as Json;

use hprof_writer::{Elements, HeapModel, Jdk, Layout, Options, Root, StackFrame, Type, Value};

use crate::kit::process::{Folder, finish, stderr};
use crate::kit::texts::code;

/// Parts of the names of renamed classes; `Thing` is part of one that stays too.
const NAMES: [&str; 8] =
    ["com.acme", "com/acme", "com$acme", "Order", "Item", "Payment", "Missing", "Scheduler"];

fn heap() -> HeapModel {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut model);
    let object = Some(jdk.object);
    let order = model.class("com.acme.order.Order", object, &[("item", Type::Object), ("count", Type::Int)]);
    let item = model.class("com.acme.order.Order$Item", object, &[("next", Type::Object)]);
    let local = model.class("com.acme.order.Order$1Local", object, &[]);
    let lambda = model.class("com.acme.order.Order$$Lambda", object, &[]);
    model.class_mut(lambda).stored_name =
        Some(b"com/acme/order/Order$$Lambda$14/0x0000000801002a08".to_vec());
    let payment = model.class("com.acme.pay.Payment", object, &[("order", Type::Object)]);
    // Two loaders, one name.
    let again = model.class("com.acme.pay.Payment", object, &[("order", Type::Object)]);
    let loader = model.instance(jdk.object, &[]);
    model.class_mut(again).loader = loader.0;
    let thread_class = model.class("com.acme.pay.Scheduler", Some(jdk.thread), &[]);
    let other = model.class_with_statics(
        "org.other.Thing",
        object,
        &[("payments", Type::Object)],
        &[("$SwitchMap$com$acme$order$Order$Item", Value::Int(5))],
    );
    let orders = model.array_class(order);
    let payments = model.array_class(payment);
    let grid = model.array_class(payments);
    let mut held = Vec::new();
    for text in [
        "com.acme.order.Order",
        "com/acme/pay/Payment",
        "[Lcom.acme.order.Order;",
        "Order.java",
        "org.other.Thing",
        "org/other/Thing",
        "Thing.java",
        "c1.C1",
    ] {
        held.push(jdk.string(&mut model, text));
    }
    held.push(model.prim_array(Elements::of_chars("com.acme.order.Order$Item")));
    for _ in 0..30 {
        let item = model.instance(item, &[Value::Object(0)]);
        let order = model.instance(order, &[item.into(), Value::Int(77)]);
        held.push(model.instance(payment, &[order.into()]));
        held.push(model.object_array(orders, &[order]));
    }
    held.push(model.instance(again, &[Value::Object(0)]));
    held.push(model.instance(local, &[]));
    held.push(model.instance(lambda, &[]));
    let row = model.object_array(payments, &[]);
    held.push(model.object_array(grid, &[row]));
    let all = model.object_array(jdk.object_array, &held);
    let thing = model.instance(other, &[all.into()]);
    let thread = jdk.thread_of(&mut model, thread_class, "com.acme.pay.Payment-worker", false, 5);
    let frames = [
        StackFrame {
            signature: "(Lcom/acme/order/Order;[Lcom/acme/Missing;I)Lorg/other/Thing;".to_owned(),
            ..StackFrame::new(order, "accept", "Order.java", 42)
        },
        StackFrame::new(item, "weigh", "Order.java", 7),
        StackFrame::new(payment, "pay", "PaymentsOfAll.kt", 8),
        StackFrame::new(other, "run", "Thing.java", 9),
    ];
    let serial = model.trace(1, &frames);
    model.root(thread, Root::ThreadObject { thread: 1, trace: serial });
    model.root(thing, Root::JavaFrame { thread: 1, frame: 0 });
    model.root_boot_classes();
    model
}

fn forms() -> [(&'static str, Options); 4] {
    [
        ("hotspot", Options { segment_bytes: Some(900), ..Options::hotspot() }),
        ("jdk6", Options::jdk6()),
        ("agent", Options::agent()),
        ("android", Options::android()),
    ]
}

fn has(bytes: &[u8], text: &str) -> bool {
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    [text.as_bytes(), &little, &big].iter().any(|text| memchr::memmem::find(bytes, text).is_some())
}

fn redact(folder: &Folder, arguments: &[&str], expected: i32) -> String {
    let output = folder.run(&[&["redact"], arguments].concat());
    let said = format!("{}{}", stderr(&output), String::from_utf8_lossy(&output.stdout));
    assert_eq!(code(&output), expected, "{arguments:?}: {said}");
    said
}

fn read(folder: &Folder, name: &str) -> Json {
    serde_json::from_slice(&fs::read(folder.path(name)).unwrap()).unwrap()
}

#[test]
fn renamed_classes_are_nowhere_and_everything_else_is_the_same() {
    for (name, options) in forms() {
        let folder = Folder::new();
        let bytes = heap().write(&options).bytes();
        for text in NAMES {
            assert!(has(&bytes, text) || text == "com/acme", "{name}: {text}");
        }
        let (input, out) = (folder.write("in.hprof", &bytes), folder.text("out.hprof"));
        let classes = ["--classes", "com.acme.**", "--prove", "--format", "json"];
        redact(&folder, &[&[input.as_str(), "-o", out.as_str()][..], &classes].concat(), 0);
        let redacted = fs::read(&out).unwrap();
        for text in NAMES {
            assert!(!has(&redacted, text), "{name}: {text}");
        }
        for text in ["org.other.Thing", "Thing.java", "accept", "weigh", "payments"] {
            assert!(has(&redacted, text), "{name}: {text}");
        }

        let mapping = read(&folder, "out.hprof.classes.json");
        let classes = mapping["classes"].as_object().unwrap();
        let new = |old: &str| {
            let found: Vec<&String> =
                classes.iter().filter(|(_, value)| *value == old).map(|(new, _)| new).collect();
            assert_eq!(found.len(), 1, "{name}: {old} in {mapping}");
            found[0].as_str()
        };
        let order = new("com.acme.order.Order");
        assert!(new("com.acme.order.Order$Item").starts_with(&format!("{order}$C")));
        assert!(new("com.acme.order.Order$1Local").starts_with(&format!("{order}$1C")));
        if name == "hotspot" || name == "jdk6" {
            let lambda = "com.acme.order.Order$$Lambda$14/0x0000000801002a08";
            assert_eq!(new(lambda), format!("{order}$$Lambda$14/0x0000000801002a08"));
        }
        assert_ne!(new("com.acme.pay.Payment").split('.').next(), order.split('.').next());
        new("com.acme.Missing");
        assert_eq!(mapping["patterns"], serde_json::json!(["com.acme.**"]));

        // Sizes and numbers by class, under the new names.
        let rows = |path: &str| -> Vec<(String, Json)> {
            let json = folder.json(&["histo", path, "--top", "0"]);
            let rows = json["rows"].as_array().unwrap().iter();
            rows.map(|row| (row["class"].as_str().unwrap().to_owned(), row["instances"].clone())).collect()
        };
        let renamed = |class: &str| {
            let element = class.trim_end_matches("[]");
            let found = classes.iter().find(|(_, old)| *old == element);
            found.map_or(class.to_owned(), |(new, _)| class.replace(element, new))
        };
        let mut expected: Vec<_> =
            rows(&input).into_iter().map(|(class, count)| (renamed(&class), count)).collect();
        let mut found = rows(&out);
        expected.sort_by_key(|row| format!("{row:?}"));
        found.sort_by_key(|row| format!("{row:?}"));
        assert_eq!(found, expected, "{name}");
        assert!(found.iter().any(|(class, _)| class == &format!("{order}[]")), "{name}: {found:?}");

        let threads = folder.json(&["threads", &out]);
        let frames = threads["rows"][0]["frames"].as_array().unwrap();
        let simple = order.rsplit('.').next().unwrap();
        assert_eq!(frames[0]["class"], order, "{threads}");
        assert_eq!(frames[0]["source"], format!("{simple}.java"), "{threads}");
        assert_eq!(frames[1]["source"], format!("{simple}.java"));
        let payment = new("com.acme.pay.Payment").rsplit('.').next().unwrap().to_owned();
        assert_eq!(frames[2]["source"], format!("{payment}.kt"));
        assert_eq!(frames[3]["source"], "Thing.java");

        let manifest = fs::read_to_string(folder.path("out.hprof.manifest.json")).unwrap();
        assert!(NAMES.iter().all(|text| !manifest.contains(text)), "{manifest}");
        let manifest = read(&folder, "out.hprof.manifest.json");
        assert_eq!(manifest["counts"]["classes_renamed"], classes.len(), "{manifest}");
        assert_eq!(manifest["output"]["unpacked_bytes"], redacted.len());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(folder.path("out.hprof.classes.json")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }

        // The same options are needed to compare, and the names are found again from the dump.
        redact(&folder, &["--check", &input, &out, "--classes", "com.acme.**"], 0);
        let said = redact(&folder, &["--check", &input, &out], 1);
        assert!(said.contains("histogram"), "{name}: {said}");
        assert_eq!(code(&folder.run(&["doctor", &out])), code(&folder.run(&["doctor", &input])), "{name}");
    }
}

#[test]
fn a_pipe_gives_the_same_bytes_as_a_file() {
    for (name, options) in forms() {
        let folder = Folder::new();
        let bytes = heap().write(&options).bytes();
        let (input, key) = (folder.write("in.hprof", &bytes), folder.text("key"));
        let (out, piped) = (folder.text("out.hprof"), folder.text("piped.hprof"));
        let options = ["--key", &key, "--thread-names", "--classes", "com.acme.**"];
        redact(&folder, &[&[input.as_str(), "-o", &out][..], &options].concat(), 0);
        let mut command = folder.command(&[&["redact", "-", "-o", &piped][..], &options].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let output = finish(child);
        assert_eq!(code(&output), 0, "{name}: {}", stderr(&output));
        assert!(fs::read(&out).unwrap() == fs::read(&piped).unwrap(), "{name}");
        assert_eq!(read(&folder, "out.hprof.classes.json"), read(&folder, "piped.hprof.classes.json"));
    }
}

#[test]
fn a_pattern_that_matches_nothing_leaves_no_file() {
    let folder = Folder::new();
    let bytes = heap().write(&Options::hotspot()).bytes();
    let (input, out) = (folder.write("in.hprof", &bytes), folder.text("out.hprof"));
    let names = ["out.hprof", "out.hprof.manifest.json", "out.hprof.classes.json"];
    let exist = || names.map(|name| folder.path(name).exists());
    for more in [&["-q"][..], &["--prove", "-q"], &["--format", "json"]] {
        let options = ["-o", &out, "--classes", "com.acme.*", "--classes", "net.**"];
        let said = redact(&folder, &[&[input.as_str()], &options[..], more].concat(), 1);
        assert!(said.contains("warning: --classes net.**: no class of the dump matches"), "{said}");
        assert!(said.contains("out.hprof was not written") && !said.contains("mapping in"), "{said}");
        assert_eq!(exist(), [false; 3], "{said}");
    }
    let said = redact(&folder, &[&input, "-o", &out, "--classes", "com.acme.*"], 0);
    assert!(said.contains("mapping in"), "{said}");
    // A star ends at a dot: only the class of the signature is in that package.
    let mapping = read(&folder, "out.hprof.classes.json");
    assert_eq!(mapping["classes"], serde_json::json!({ "c1.C1": "com.acme.Missing" }));

    // An existing mapping is not replaced.
    let remove = |name: &str| fs::remove_file(folder.path(name)).unwrap();
    names[..2].iter().for_each(|name| remove(name));
    for classes in [&["--classes", "Payment"][..], &[]] {
        let said = redact(&folder, &[&[input.as_str(), "-o", &out], classes].concat(), 2);
        assert!(said.contains("out.hprof.classes.json") && said.contains("exists"), "{said}");
        assert_eq!(exist(), [false, false, true]);
    }
    let classes = ["--classes", "Payment", "--classes", "Order", "--keep", "something*", "--force"];
    redact(&folder, &[&[input.as_str(), "-o", &out][..], &classes].concat(), 0);
    let redacted = fs::read(&out).unwrap();
    assert!(!has(&redacted, "Payment") && !has(&redacted, "Order") && has(&redacted, "Scheduler"));
    let options = &read(&folder, names[1])["options"];
    assert_eq!((&options["keep"], &options["keep_patterns"]), (&Json::Null, &1.into()), "{options}");
    redact(&folder, &["--check", &input, &out, "--classes", "Payment", "--classes", "Order"], 0);

    // That of another dump does not remain.
    redact(&folder, &[&input, "-o", &out, "--force"], 0);
    assert_eq!(exist(), [true, true, false]);
}

/// Names of classes, members and texts that contain the name of a renamed class.
#[test]
fn names_in_other_names_are_renamed() {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut model);
    let object = Some(jdk.object);
    let renamed = [
        "com.acme.Order",
        "com.acme.Order$Foo",
        // Hashes that look like new names.
        "com.acme.Order$$Lambda$C3",
        "com.acme.Order$$Lambda$C4",
        "com.acme.Order$$Lambda$C5",
        "com.acme.Order$$EnhancerBySpringCGLIB$$deadbeef",
        "com.acme.Orde\u{301}",
        // The last part is no address.
        "com.acme.77",
        "com.acme.0x12",
        // In other packages.
        "org.apache.openjpa.enhance.com$acme$Order$pcsubclass",
        "net.bytebuddy.renamed.com.acme.Order$ByteBuddy$abc",
        "groovy.runtime.metaclass.com.acme.OrderMetaClass",
        "org.omg.stub.com.acme._Order_Stub",
    ];
    let stays = ["com.other.Order", "c1.Z", "com.acmes.Thing"];
    let classes: Vec<_> = renamed
        .iter()
        .chain(&stays)
        .map(|name| model.class(name, object, &[("next", Type::Object)]))
        .collect();
    let members = [
        "array$$Lcom$acme$Order",
        "class$com$acme$Order",
        "com_acme_Order_cache",
        "$SwitchMap$com$acme$Order$Foo",
    ];
    let members = members.map(|name| (name, Value::Int(5)));
    model.class_with_statics("com.other.Holder", object, &[], &members);
    let mut held: Vec<_> = classes.iter().map(|class| model.instance(*class, &[Value::Object(0)])).collect();
    for text in [
        "/com/acme/Order",
        "[Lcom.acme.Order;",
        "com.acme.Order",
        "beans.com.acme.Order",
        "com$acme$Order-1",
        "Lcom/acme/Order;",
        "/com/acme/Order.class",
        "com_acme_Order",
        "something else",
    ] {
        held.push(jdk.string(&mut model, &format!("kept {text}")));
        held.push(jdk.string(&mut model, &format!("{text} kept")));
    }
    let holder = model.object_array(jdk.object_array, &held);
    let thread = jdk.thread(&mut model, "RMI /com/acme/Order", false, 5);
    let signature = |text: &str, frame| StackFrame { signature: text.to_owned(), ..frame };
    let frames = [
        signature(
            "(Lc2/C1;)V",
            StackFrame::new(classes[0], "ajc$before$com_acme_Order$1$abc", "Order.java", 5),
        ),
        signature("()Lcom/acme/Order;", StackFrame::new(classes[5], "run", "<generated>", 2)),
        StackFrame::new(classes[6], "run", "<generated>", 3),
        StackFrame::new(classes[13], "run", "<generated>", 4),
    ];
    let serial = model.trace(1, &frames);
    model.root(thread, Root::ThreadObject { thread: 1, trace: serial });
    model.root(holder, Root::JavaFrame { thread: 1, frame: 0 });
    model.root_boot_classes();
    for (name, options) in forms() {
        let folder = Folder::new();
        let bytes = model.write(&options).bytes();
        let (input, out) = (folder.write("in.hprof", &bytes), folder.text("out.hprof"));
        let more = ["--classes", "com.acme.**", "--prove", "--keep", "kept*", "--keep", "*kept"];
        redact(&folder, &[&[input.as_str(), "-o", &out][..], &more].concat(), 0);
        let redacted = fs::read(&out).unwrap();
        for separator in [".", "/", "$", "_"] {
            let text = format!("com{separator}acme{separator}");
            assert!(!has(&redacted, &text), "{name}: {text}");
        }
        for text in ["kept something else", "<generated>", "com.acmes", "c1.Z", "MetaClass", "_cache"] {
            assert!(has(&redacted, text) || has(&redacted, &text.replace('.', "/")), "{name}: {text}");
        }
        // Different classes get different names.
        let mapping = read(&folder, "out.hprof.classes.json");
        let classes = mapping["classes"].as_object().unwrap();
        assert_eq!(classes.len(), renamed.len(), "{name}: {mapping}");
        assert!(classes.keys().all(|new| !new.starts_with("c1.") && !new.starts_with("c2.")), "{mapping}");
        let json = folder.json(&["histo", &out, "--top", "0"]);
        let rows: Vec<_> = json["rows"].as_array().unwrap().iter().collect();
        for new in classes.keys() {
            let class = rows.iter().filter(|row| row["class"] == new.as_str());
            assert_eq!(class.count(), 1, "{name}: {new} in {json}");
        }
    }
}

/// New names do not meet names that are there.
#[test]
fn names_that_exist_are_not_given_again() {
    let folder = Folder::new();
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut model);
    for name in ["c1.C1", "C2", "com.acme.A", "Main", "Other"] {
        let class = model.class(name, Some(jdk.object), &[]);
        let object = model.instance(class, &[]);
        model.root(object, Root::JniGlobal { reference: 1 });
    }
    let bytes = model.write(&Options::hotspot()).bytes();
    let (input, out) = (folder.write("in.hprof", &bytes), folder.text("out.hprof"));
    let options = ["--classes", "com.**", "--classes", "Main", "--prove"];
    redact(&folder, &[&[input.as_str(), "-o", &out][..], &options].concat(), 0);
    let mapping = read(&folder, "out.hprof.classes.json");
    assert_eq!(mapping["classes"], serde_json::json!({ "c2.C1": "com.acme.A", "C3": "Main" }));
}
