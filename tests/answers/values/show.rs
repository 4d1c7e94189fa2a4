//! `show`: objects and classes, ranges, bytes and text, long values.

use std::process::{Command, Output};

use crate::kit::dump::Dump;
use hprof_writer::{Elements, HeapModel, Jdk, ObjectId, Options, Root, Type, Value};

fn show(dump: &Dump, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    command.arg("show").arg(&dump.path).args(arguments).arg("-q");
    command.arg("--index-dir").arg(dump.path.parent().unwrap().join("indexes")).output().unwrap()
}

fn code_and_texts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_command_shows_classes_ranges_bytes_and_values() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let bytes = model.prim_array(Elements::of_bytes("Grüße, heap!\n\x1b[0m".as_bytes()));
    let longs = model.prim_array(Elements::Long(vec![1, -1, i64::MIN]));
    let text = jdk.string(&mut model, &"long ".repeat(300_000));
    let class =
        model.class("com.acme.Cache", Some(jdk.object), &[("size", Type::Int), ("name", Type::Object)]);
    let other = model.class("com.acme.other.Cache", Some(jdk.object), &[]);
    let cache = model.instance(class, &[Value::Int(1), text.into()]);
    let loose = model.instance(class, &[Value::Int(1), Value::Object(0)]);
    for object in [bytes, longs, cache] {
        model.root(object, Root::Unknown);
    }
    let dump = Dump::written(&model.write(&Options::hotspot()));
    let json = |arguments: &[&str]| {
        let (code, out, error) = code_and_texts(&show(&dump, &[arguments, &["--format", "json"]].concat()));
        (code, serde_json::from_str::<serde_json::Value>(&out).unwrap(), error)
    };
    let id = |object: ObjectId| format!("{:#x}", object.0);

    // A range behind the id, as by the option.
    for arguments in
        [vec![format!("{}[1..2]", id(longs))], vec![id(longs), "--range".to_owned(), "1..2".to_owned()]]
    {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let fields = json(&arguments).1["rows"][0]["fields"].clone();
        assert_eq!((fields[0]["name"].as_str(), fields[0]["value"].as_i64()), (Some("[1]"), Some(-1)));
        assert_eq!(fields.as_array().unwrap().len(), 1);
    }
    let both = show(&dump, &[&format!("{}[1]", id(longs)), "--range", "1..2"]);
    assert_eq!(both.status.code(), Some(2));

    // Bytes and text.
    let row = json(&[&id(longs), "--as", "hex"]).1["rows"][0].clone();
    assert_eq!(row["data"], "0000000000000001ffffffffffffffff8000000000000000");
    assert_eq!((&row["data_form"], row["fields"].as_array().unwrap().len()), (&"hex".into(), 0));
    let row = json(&[&id(bytes), "--as", "text"]).1["rows"][0].clone();
    assert_eq!(row["data"], "Grüße, heap!\n\u{1b}[0m");
    assert_eq!(row["data_form"], "utf-8");
    let (_, table, _) = code_and_texts(&show(&dump, &[&id(bytes), "--as", "text"]));
    assert!(table.contains("\nGrüße, heap!\n\\u001b[0m\n"), "{table}");
    let (_, table, _) = code_and_texts(&show(&dump, &[&id(bytes), "--as", "hex"]));
    let lines = "00000000  47 72 c3 bc c3 9f 65 2c  20 68 65 61 70 21 0a 1b  |Gr....e, heap!..|
00000010  5b 30 6d                                          |[0m|
";
    assert!(table.contains(lines), "{table}");
    let (_, csv, _) =
        code_and_texts(&show(&dump, &[&id(bytes), "--as", "hex", "--range", "0..2", "-f", "csv"]));
    assert_eq!(csv, "data_form,data\nhex,4772\n");
    for wrong in [[id(longs), "text".to_owned()], [id(cache), "hex".to_owned()]] {
        let (code, _, error) = code_and_texts(&show(&dump, &[&wrong[0], "--as", &wrong[1]]));
        assert_eq!(code, 2, "{error}");
        assert!(error.contains("--as"), "{error}");
    }

    // A long text: its start for people, a megabyte for programs.
    let row = json(&[&id(text)]).1["rows"][0].clone();
    assert_eq!((row["value"].as_str().unwrap().len(), &row["is_value_truncated"]), (1 << 20, &true.into()));
    let (_, table, _) = code_and_texts(&show(&dump, &[&id(text)]));
    assert!(table.contains("the first 1,000 characters of the value") && table.len() < 3000, "{table}");

    // The dominator, and the loader.
    let row = json(&[&id(text)]).1["rows"][0].clone();
    assert_eq!((&row["dominator"], &row["dominator_class"]), (&id(cache).into(), &"com.acme.Cache".into()));
    assert_eq!((&row["loader"], &row["loader_object"]), (&"<boot loader>".into(), &serde_json::Value::Null));
    assert_eq!(json(&[&id(cache)]).1["rows"][0]["dominator"], "root");
    assert_eq!(json(&[&id(loose)]).1["rows"][0]["dominator"], serde_json::Value::Null);

    // Classes: by name, by pattern, not by what fits several or none.
    let (code, document, _) = json(&["com.acme.Cache"]);
    let describes = &document["rows"][0]["describes"];
    assert_eq!(
        (code, &describes["class"], &describes["instances"]),
        (0, &"com.acme.Cache".into(), &2.into())
    );
    assert_eq!(describes["superclass"], "java.lang.Object");
    assert_eq!(describes["fields"].as_array().unwrap().len(), 2);
    assert_eq!(describes["fields"][0]["type"], "int");
    assert_eq!(json(&["com.acme.*Cache"]).1["rows"][0]["object"], id(class.into()));
    let (code, document, error) = json(&["Cache"]);
    assert_eq!((code, document["rows"].as_array().unwrap().len()), (1, 0));
    assert_eq!(document["near"], serde_json::json!([id(class.into()), id(other.into())]));
    assert!(error.contains("2 classes") && error.contains("com.acme.other.Cache"), "{error}");
    let (code, document, error) = json(&["com.acme.Cach"]);
    assert_eq!((code, &document["near"][0]), (1, &"com.acme.Cache".into()));
    assert!(error.contains("no class com.acme.Cach"), "{error}");
}

#[test]
fn floats_are_as_java_prints_them_and_as_json_can_hold_them() {
    let mut model = HeapModel::default();
    Jdk::add_to(&mut model);
    let floats = model.prim_array(Elements::Float(vec![1.1, f32::NAN, f32::NEG_INFINITY, 1e10]));
    let doubles = model.prim_array(Elements::Double(vec![5e-324, -0.0, f64::INFINITY, 0.1]));
    for object in [floats, doubles] {
        model.root(object, Root::Unknown);
    }
    let dump = Dump::written(&model.write(&Options::hotspot()));
    let values = |object: ObjectId, format: &str| {
        code_and_texts(&show(&dump, &[&format!("{:#x}", object.0), "--format", format])).1
    };
    let column = |object, format| -> Vec<String> {
        let rows = values(object, format);
        let rows = rows.lines().filter(|line| line.starts_with('['));
        rows.map(|line| line.split_whitespace().last().unwrap().to_owned()).collect()
    };
    // Float.toString and Double.toString
    assert_eq!(column(floats, "table"), ["1.1", "NaN", "-Infinity", "1.0E10"]);
    assert_eq!(column(doubles, "table"), ["4.9E-324", "-0.0", "Infinity", "0.1"]);
    let json = |object| {
        let document: serde_json::Value = serde_json::from_str(&values(object, "json")).unwrap();
        document["rows"][0]["fields"].as_array().unwrap().iter().map(|field| field["value"].clone()).collect()
    };
    let found: Vec<serde_json::Value> = json(floats);
    assert_eq!(found, [serde_json::json!(1.1), "NaN".into(), "-Infinity".into(), serde_json::json!(1e10)]);
    let found: Vec<serde_json::Value> = json(doubles);
    assert_eq!(found[0].as_f64().map(f64::to_bits), Some(1));
    assert_eq!(found[1].as_f64().map(f64::to_bits), Some(1 << 63));
    assert_eq!(found[2..], ["Infinity".into(), serde_json::json!(0.1)]);
}
