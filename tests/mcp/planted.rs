//! A heap in which every kind of value is one that can be recognized in an answer.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use hprof_writer::{
    DumpWriter, Elements, HeapModel, IdSize, Jdk, Layout, ObjectId, Options, Root, StackFrame, StartThread,
    Type, Value, Version,
};

/// Part of each text.
pub const TEXT: &str = "zqMarker";
/// Whole numbers.
pub const LONG: i64 = 739_104_211_739_104;
pub const INT: i32 = 739_104_217;
pub const DOUBLE: f64 = 7_391.042_171_5;

/// The dump in a directory of its own, with its index.
pub struct Planted {
    dir: tempfile::TempDir,
    pub dump: PathBuf,
    /// Objects: of the class, a String, a `byte[]`, a `char[]`, an `int[]`, a map, a thread, a box.
    pub objects: Vec<String>,
    /// Class object of the class.
    pub class: String,
}

/// Returns the forms in which the values would be seen.
pub fn markers() -> Vec<String> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let wide: Vec<u8> = TEXT.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let mut all = vec![TEXT.to_lowercase(), hex(TEXT.as_bytes()), hex(&wide)];
    all.extend([LONG.to_string(), INT.to_string(), format!("{LONG:x}"), format!("{INT:x}")]);
    all.push("7391.0421".to_owned());
    all
}

/// Returns the markers that a text contains, however its numbers are grouped.
pub fn found_in(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let plain: String = lower.chars().filter(|c| !matches!(c, ',' | ' ' | '_' | '\n' | '[' | ']')).collect();
    let has = |marker: &String| lower.contains(marker.as_str()) || plain.contains(marker.as_str());
    markers().into_iter().filter(has).collect()
}

pub fn planted() -> Planted {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut model);
    let text = |model: &mut HeapModel, name: &str| jdk.string(model, &format!("{TEXT}-{name}"));
    let statics = [("LIMIT", Value::Int(INT)), ("BIG", Value::Long(LONG))];
    let fields = [
        ("text", Type::Object),
        ("bytes", Type::Object),
        ("chars", Type::Object),
        ("number", Type::Long),
        ("port", Type::Int),
        ("rate", Type::Double),
        ("map", Type::Object),
        ("box", Type::Object),
        ("letter", Type::Char),
    ];
    let class = model.class_with_statics("com.acme.Config", Some(jdk.object), &fields, &statics);
    let boxed = model.class("java.lang.Long", Some(jdk.object), &[("value", Type::Long)]);
    let decimal = model.class(
        "java.math.BigInteger",
        Some(jdk.object),
        &[("signum", Type::Int), ("mag", Type::Object), ("lowestSetBitPlusTwo", Type::Int)],
    );
    let node = model.class(
        "java.util.HashMap$Node",
        Some(jdk.object),
        &[("hash", Type::Int), ("key", Type::Object), ("value", Type::Object), ("next", Type::Object)],
    );
    let nodes = model.array_class(node);
    let map = model.class(
        "java.util.HashMap",
        Some(jdk.object),
        &[("table", Type::Object), ("size", Type::Int), ("loadFactor", Type::Float)],
    );
    let failure = model.class(
        "java.lang.IllegalStateException",
        Some(jdk.object),
        &[("detailMessage", Type::Object), ("cause", Type::Object), ("backtrace", Type::Object)],
    );
    let file = model.class("java.io.File", Some(jdk.object), &[("path", Type::Object)]);
    let loader_class = model.class(
        "java.lang.ClassLoader",
        Some(jdk.object),
        &[("name", Type::Object), ("parent", Type::Object)],
    );
    let properties = model.class("java.util.Properties", Some(map), &[("map", Type::Object)]);

    let string = text(&mut model, "text");
    let more: Vec<ObjectId> = (0..40).map(|_| text(&mut model, "copies")).collect();
    let bytes = model.prim_array(Elements::of_bytes(format!("{TEXT}-bytes password={TEXT}9x!").as_bytes()));
    let units: Vec<u16> = format!("{TEXT}-chars").encode_utf16().collect();
    let chars = model.prim_array(Elements::Char(units));
    let ints = model.prim_array(Elements::Int(vec![INT; 4]));
    let number = model.instance_with(boxed, &[("value", Value::Long(LONG))]);
    let big = model.instance_with(decimal, &[("signum", Value::Int(1)), ("mag", ints.into())]);
    let entries: Vec<ObjectId> = [("password", "value"), ("key", "other")]
        .into_iter()
        .map(|(key, value)| {
            let (key, value) = (text(&mut model, key), text(&mut model, value));
            model.instance_with(
                node,
                &[("hash", Value::Int(INT)), ("key", key.into()), ("value", value.into())],
            )
        })
        .collect();
    let table = model.object_array(nodes, &entries);
    let map = model.instance_with(map, &[("table", table.into()), ("size", Value::Int(2))]);
    let all = model.object_array(jdk.object_array, &more);
    let message = text(&mut model, "message");
    let failed =
        model.instance_with(failure, &[("detailMessage", message.into()), ("backtrace", all.into())]);
    let path = text(&mut model, "path");
    let path = model.instance_with(file, &[("path", path.into())]);
    let loader_name = text(&mut model, "loader");
    let loader = model.instance_with(loader_class, &[("name", loader_name.into())]);
    model.class_mut(class).loader = loader.0;
    let props = model.instance_with(properties, &[("map", map.into())]);
    let config = model.instance_with(
        class,
        &[
            ("text", string.into()),
            ("bytes", bytes.into()),
            ("chars", chars.into()),
            ("number", Value::Long(LONG)),
            ("port", Value::Int(INT)),
            ("rate", Value::Double(DOUBLE)),
            ("map", map.into()),
            ("box", number.into()),
            ("letter", Value::Char(u16::from(b'z'))),
        ],
    );
    let thread = jdk.thread(&mut model, &format!("{TEXT}-thread-{INT}"), false, 5);
    let group_name = text(&mut model, "group");
    let group = model.instance_with(jdk.thread_group, &[("name", group_name.into())]);
    let trace = model.trace(1, &[StackFrame::new(class, "run", "Config.java", 7)]);
    model.root(thread, Root::ThreadObject { thread: 1, trace });
    for object in [config, failed, path, props, big, group] {
        model.root(object, Root::JavaFrame { thread: 1, frame: 0 });
    }
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    out.string(0x7_0001, &format!("{TEXT}-recorded"));
    let (name, group, parent_group) = (0x7_0001, 0x7_0001, 0x7_0001);
    out.start_thread(&StartThread { thread: 1, object: thread.0, trace, name, group, parent_group });
    model.write_into(&mut out, &Options::hotspot());
    out.cpu_samples(3, &[(3, trace)]);

    let dir = tempfile::tempdir().unwrap();
    let dump = dir.path().join("planted.hprof");
    fs::write(&dump, out.into_bytes()).unwrap();
    let objects =
        [config, string, bytes, chars, ints, map, thread, number, failed, path, loader, props, big, all];
    let objects = objects.map(|object| format!("{:#x}", object.0)).to_vec();
    let class = format!("{:#x}", ObjectId::from(class).0);
    Planted { dir, dump, objects, class }
}

impl Planted {
    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// Returns the program with its index directory in this place.
    pub fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
        command.env("HPROF_CLI_INDEX_DIR", self.path("index")).stdin(Stdio::null());
        command
    }

    /// Runs a command with values hidden, or shown.
    pub fn run(&self, arguments: &[&str], hides: bool) -> Output {
        self.program()
            .args(arguments)
            .env("HPROF_CLI_HIDES_VALUES", if hides { "1" } else { "0" })
            .output()
            .unwrap()
    }
}
