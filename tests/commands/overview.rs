//! `hprof-cli DUMP`: the planted leaks are on one screen, and the commands that it names lead to them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use hprof_writer::{Elements, HeapModel, Jdk, ObjectId, Options, Root, StackFrame, Type, Value};

use crate::kit::process;

/// A sample in a directory of its own, under a name as people have it.
struct Screen {
    dir: tempfile::TempDir,
    name: String,
}

impl Screen {
    fn new(sample: &str) -> Self {
        Self::of(Path::new(sample).file_name().unwrap().to_str().unwrap(), &process::sample(sample))
    }

    fn of(name: &str, bytes: &[u8]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let name = format!("{name}.hprof");
        fs::write(dir.path().join(&name), bytes).unwrap();
        Self { dir, name }
    }

    /// A command line, as a shell reads it.
    fn shell(&self, line: &str) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_hprof-cli"));
        let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(self.dir.path()).env("PATH", path);
        command.env_remove("HPROF_CLI_INDEX_DIR").env("XDG_CACHE_HOME", self.dir.path().join("cache"));
        command.stdin(Stdio::null()).output().unwrap()
    }

    fn answer(&self, line: &str) -> String {
        let output = self.shell(line);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn overview(&self) -> String {
        let text = self.answer(&format!("hprof-cli {}", self.name));
        assert!(text.lines().count() <= 24, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.is_ascii(), "{text}");
        text
    }

    fn row(&self) -> serde_json::Value {
        let text = self.answer(&format!("hprof-cli {} --format json", self.name));
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["command"], "overview");
        assert_eq!(document["rows"].as_array().unwrap().len(), 1);
        document["rows"][0].clone()
    }
}

/// The commands that a screen names.
fn commands(screen: &str) -> Vec<&str> {
    let lines = screen.lines().skip_while(|line| *line != "Next").skip(1);
    let commands: Vec<&str> =
        lines.map(|line| line.trim().split("  ").next().unwrap()).filter(|line| !line.is_empty()).collect();
    assert_eq!(commands.len(), 3, "{screen}");
    assert!(commands.iter().all(|command| command.starts_with("hprof-cli ")), "{screen}");
    commands
}

/// Checks for texts on the screen, and in the answers of its commands.
#[track_caller]
fn is_found(sample: &str, on_screen: &[&str], in_answers: &[&str]) -> Screen {
    let screen = Screen::new(sample);
    let text = screen.overview();
    for planted in on_screen {
        assert!(text.contains(planted), "{planted} in\n{text}");
    }
    let answers: String = commands(&text).iter().map(|command| screen.answer(command)).collect();
    for planted in in_answers {
        assert!(answers.contains(planted), "{planted} in\n{answers}");
    }
    screen
}

#[test]
fn a_static_cache() {
    let screen = is_found(
        "leaks/s1",
        &[
            "shop.S1StaticCache on OpenJDK 17.0.15",
            "ConcurrentHashMap shop.ProductService.CACHE: 9,000 x Product",
        ],
        &["static CACHE", "class shop.ProductService", "shop.Product 0x"],
    );
    let row = screen.row();
    assert_eq!(row["out_of_memory"], serde_json::Value::Null);
    let largest = &row["largest"][0];
    assert_eq!(largest["held_class"], "shop.Product");
    assert_eq!(largest["held_objects"], 9000);
    assert_eq!(largest["holder_class"], "shop.ProductService");
    assert_eq!(largest["is_static"], true);
    assert_eq!(largest["field"], "CACHE");
}

#[test]
fn loaders_that_are_kept() {
    is_found(
        "leaks/s3",
        &[
            "40 class loaders define container.Plugin",
            "40 class loaders (container.WebappLoader), each with its own\n",
            " class ...Plugin, are held by ArrayList ...EventBus.listeners\n",
            "43 class loaders",
        ],
        &["static listeners", "class container.EventBus", "container.WebappLoader"],
    );
}

#[test]
fn a_queue_without_a_bound() {
    is_found(
        "leaks/s4",
        &["LinkedBlockingQueue queue of Pipeline: 60,000 x Event"],
        &["ingest.Pipeline", "queue", "size=60,000", "ingest.Event 0x"],
    );
}

#[test]
fn a_map_that_dies_in_put() {
    let screen = is_found(
        "leaks/s5",
        &[
            "OutOfMemoryError",
            "Thread \"order-import-3\" ran out of memory in",
            "  orders.OrderIndex.register(S5OutOfMemory.java:24)",
            "HashMap byNumber of OrderIndex: 55,417 x Order",
        ],
        &["java.lang.OutOfMemoryError.<init>", "orders.ImportJob", "orders.OrderIndex", "index"],
    );
    let row = screen.row();
    assert_eq!(row["out_of_memory"]["name"], "order-import-3");
    assert_eq!(row["out_of_memory"]["stack"][0], "java.util.HashMap.newNode(HashMap.java:1901)");
}

#[test]
fn a_static_map_that_dies() {
    is_found(
        "leaks/s5-static",
        &[
            "OutOfMemoryError",
            "Thread \"receipt-import\"",
            "HashMap orders.StaticIndex.BY_NUMBER: 32,328 x\n",
            " StaticIndex$Receipt\n",
        ],
        &["java.lang.OutOfMemoryError.<init>", "BY_NUMBER", "class orders.StaticIndex"],
    );
}

#[test]
fn a_heap_of_everything() {
    let screen = is_found(
        "jdk/jdk17",
        &[
            "HeapZoo on OpenJDK 17.0.15",
            "HeapZoo.SESSION_CACHE holds 2,000 x HeapZoo$Session",
            "ConcurrentHashMap HeapZoo.SESSION_CACHE: 2,000 x ...$Session\n",
        ],
        &[],
    );
    let flags = fs::read_to_string("samples/jdk/jdk17.flags.txt").unwrap();
    let limit = flags.split("-XX:MaxHeapSize=").nth(1).unwrap().split_whitespace().next().unwrap();
    let row = screen.row();
    assert_eq!(row["heap_limit_bytes"].to_string(), limit);
    // Answers of other commands.
    let info: serde_json::Value =
        serde_json::from_str(&screen.answer("hprof-cli info jdk17.hprof --format json")).unwrap();
    assert_eq!(row["reachable"], info["rows"][0]["reachable"]);
    let total = |of: &str| row["reachable"][of].as_u64().unwrap() + row["unreachable"][of].as_u64().unwrap();
    assert_eq!(total("objects"), info["rows"][0]["objects"]["total"]);
    assert_eq!(total("shallow_bytes"), info["rows"][0]["shallow_bytes"]);
    assert_eq!(row["out_of_memory"], serde_json::Value::Null);
    // HeapZoo's one direct buffer; the JDK's file of classes, which is mapped, is none.
    assert_eq!(row["direct_memory"]["capacity_bytes"], 4096);
    let csv = screen.answer("hprof-cli overview jdk17.hprof --format csv");
    assert!(csv.lines().count() == 2 && !csv.contains('{'), "{csv}");
}

/// A cache in a field of its manager; a task of its own refers to it too, from a lower or a higher address. The program
/// has a direct buffer.
fn cache(is_task_first: bool) -> Vec<u8> {
    use Type::Object;
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let task_class = model.class("lib.CleanupTask", Some(jdk.object), &[("this$0", Object)]);
    let handle_class = model.class("lib.Handle", Some(jdk.object), &[("this$0", Object)]);
    let manager_class = model.class("lib.Manager", Some(jdk.object), &[("cache", Object)]);
    let fields = [("data", Object), ("more", Object), ("task", Object)];
    let cache_class = model.class("lib.Cache", Some(jdk.object), &fields);
    let pair =
        |model: &mut HeapModel| [task_class, handle_class].map(|class| model.instance(class, &[Value::NULL]));
    let early = is_task_first.then(|| pair(&mut model));
    let manager = model.instance(manager_class, &[Value::NULL]);
    let [task, handle] = early.unwrap_or_else(|| pair(&mut model));
    let [data, more] = [(); 2].map(|()| {
        let arrays: Vec<ObjectId> =
            (0..50).map(|_| model.prim_array(Elements::of_bytes(&[1; 30_000]))).collect();
        model.object_array(jdk.object_array, &arrays)
    });
    let cache = model.instance(cache_class, &[data.into(), more.into(), task.into()]);
    for (object, field) in [(task, "this$0"), (handle, "this$0"), (manager, "cache")] {
        model.set_field(object, field, cache);
    }
    let all = model.object_array(jdk.object_array, &[manager, handle]);
    model.root(all, Root::JniGlobal { reference: 0 });
    let buffer = model.class("java.nio.Buffer", Some(jdk.object), &[("capacity", Type::Int)]);
    let mapped = model.class("java.nio.MappedByteBuffer", Some(buffer), &[("fd", Object)]);
    let direct = model.class("java.nio.DirectByteBuffer", Some(mapped), &[("att", Object)]);
    let direct = model.instance_with(direct, &[("capacity", Value::Int(2 << 20))]);
    model.root(direct, Root::JniGlobal { reference: 1 });
    model.root_boot_classes();
    model.write(&Options::hotspot()).bytes()
}

#[test]
fn what_holds_a_cache_does_not_depend_on_addresses() {
    for is_task_first in [false, true] {
        let screen = Screen::of("cache", &cache(is_task_first));
        let text = screen.overview();
        let largest = screen.row()["largest"][0].clone();
        assert_eq!(
            (&largest["holder_class"], &largest["field"]),
            (&"lib.Manager".into(), &"cache".into()),
            "{text}"
        );
        // A buffer of 2 MiB is in any program.
        assert!(!text.contains("direct memory"), "{text}");
        assert_eq!(screen.row()["direct_memory"]["capacity_bytes"], 2 << 20);
    }
}

/// Objects that wait for the finalizer, direct memory, a class of several loaders, more garbage than live objects.
fn oddities() -> Vec<u8> {
    use Type::{Int, Long, Object};
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let mut live: Vec<ObjectId> = Vec::new();

    let queue_fields = [("head", Object), ("queueLength", Long)];
    let queue_class = model.class("java.lang.ref.ReferenceQueue", Some(jdk.object), &queue_fields);
    let queue = model.instance_with(queue_class, &[("queueLength", Value::Long(1_250))]);
    let statics = [("queue", Value::from(queue))];
    let finalizer = model.class_with_statics("java.lang.ref.Finalizer", Some(jdk.reference), &[], &statics);
    live.push(finalizer.into());
    let buffer = model.class("java.nio.Buffer", Some(jdk.object), &[("capacity", Int), ("address", Long)]);
    let mapped = model.class("java.nio.MappedByteBuffer", Some(buffer), &[("fd", Object)]);
    let direct = model.class("java.nio.DirectByteBuffer", Some(mapped), &[("att", Object)]);
    let capacity = |mib: i32| ("capacity", Value::Int(mib << 20));
    for mib in [1, 2, 4] {
        live.push(model.instance_with(direct, &[capacity(mib)]));
    }
    // A view, and a file: neither has memory of its own.
    let view = [capacity(4), ("att", live[live.len() - 1].into())];
    live.push(model.instance_with(direct, &view));
    let file = jdk.string(&mut model, "a file descriptor");
    live.push(model.instance_with(direct, &[capacity(8), ("fd", file.into())]));

    let class_loader = model.class("java.lang.ClassLoader", Some(jdk.object), &[("parent", Object)]);
    let loader_class = model.class("app.WebappLoader", Some(class_loader), &[]);
    // Another class of two loaders: fewer, and so not the one that is named.
    for (name, count) in [("app.Service", 5), ("app.Another", 2)] {
        for _ in 0..count {
            let loader = model.instance(loader_class, &[Value::NULL]);
            let class = model.class(name, Some(jdk.object), &[]);
            model.class_mut(class).loader = loader.0;
            live.push(model.instance(class, &[]));
        }
    }
    let all = model.object_array(jdk.object_array, &live);
    model.root(all, Root::JniGlobal { reference: 0 });
    model.root_boot_classes();
    for _ in 0..30 {
        model.prim_array(Elements::of_bytes(&[1; 10_000]));
    }
    model.write(&Options::hotspot()).bytes()
}

#[test]
fn what_looks_odd() {
    let screen = Screen::of("odd", &oddities());
    let text = screen.overview();
    let row = screen.row();
    let bytes = |of: &str| row[of]["shallow_bytes"].as_u64().unwrap();
    let garbage = bytes("unreachable");
    assert!(garbage > bytes("reachable"), "{row}");
    assert_eq!(row["unreachable"]["objects"], 30);
    let percent = garbage as f64 * 100.0 / (garbage + bytes("reachable")) as f64;
    let odd = [
        &format!("{percent:.1}% of the heap is unreachable"),
        "1,250 objects wait for the finalizer",
        "5 class loaders define app.Service",
        "7.0 MiB of direct memory in 3 buffers",
    ];
    assert_eq!(row["odd"], serde_json::json!(odd));
    // They may take several lines.
    let said = text.split_once("Anomalies: ").unwrap().1.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.starts_with(&odd.join("; ")), "{text}");
    assert!(text.contains(" in 30 objects unreachable\n"), "{text}");
    assert!(text.contains(", 7 class loaders\n"), "{text}");
    assert_eq!(row["finalizer_queue"], 1_250);
    assert_eq!(row["direct_memory"], serde_json::json!({ "buffers": 3, "capacity_bytes": 7 << 20 }));
    let duplicates = serde_json::json!({ "names": 2, "class": "app.Service", "loaders": 5 });
    assert_eq!(row["duplicate_classes"], duplicates);
    // The commands that it names work here too.
    for command in commands(&text) {
        screen.answer(command);
    }
}

#[test]
fn a_mistyped_command_is_pointed_to_the_one_that_is_there() {
    let screen = Screen::new("leaks/s1");
    for (line, hint) in [
        ("hprof-cli hist s1.hprof", "did you mean histo?"),
        ("hprof-cli dominator_tree s1.hprof", "hint: hprof-cli dominators "),
        ("hprof-cli suspects s1.hprof", "hint: hprof-cli leaks "),
        ("hprof-cli leak_suspects s1.hprof", "hint: hprof-cli leaks "),
        ("hprof-cli leak s1.hprof", "leaks"),
    ] {
        let output = screen.shell(line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(said.contains("unknown command") && said.contains(hint), "{line}: {said}");
    }
}

#[test]
fn the_directory_of_the_index_is_repeated() {
    let screen = Screen::new("leaks/s1");
    for option in ["--index-dir elsewhere", "--index-dir 'else where'"] {
        let text = screen.answer(&format!("hprof-cli {} {option}", screen.name));
        let next = text.split("Next\n").nth(1).unwrap();
        assert_eq!(next.matches(option).count(), 3, "{text}");
    }
    // The commands use the same environment.
    let text = screen.answer(&format!("HPROF_CLI_INDEX_DIR=elsewhere hprof-cli {}", screen.name));
    assert!(!text.contains("elsewhere"), "{text}");
    assert!(!screen.dir.path().join(format!("{}.index", screen.name)).exists());
}

#[test]
fn long_paths_are_not_cut() {
    let screen = Screen::new("leaks/s5");
    let long = format!("{}/{}", "a-directory-with-a-long-name".repeat(2), "and another 'one'");
    fs::create_dir_all(screen.dir.path().join(&long)).unwrap();
    let path = format!("{long}/{}", screen.name);
    fs::rename(screen.dir.path().join(&screen.name), screen.dir.path().join(&path)).unwrap();
    let text = screen.answer(&format!("hprof-cli \"{path}\""));
    let next = text.split("Next\n").nth(1).unwrap();
    assert!(next.contains("\\\n"), "{text}");
    // All three, as they stand there.
    assert_eq!(next.matches("hprof-cli").count(), 3, "{text}");
    let commands = next.replace("\\\n", "");
    for command in commands.lines().filter(|line| !line.trim().is_empty()) {
        screen.answer(command.trim());
    }
}

/// Creates threads whose stacks hold most of the heap, and whose texts are all the same.
fn many_threads(count: u32) -> Vec<u8> {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let request = model.class("vt.RequestContext", Some(jdk.object), &[("body", Type::Object)]);
    let server = model.class("vt.Server", Some(jdk.object), &[]);
    for number in 1..=count {
        let thread = jdk.thread(&mut model, &format!("request-{number}"), false, 5);
        let body = jdk.string(&mut model, &"the same text ".repeat(40));
        let held = model.instance(request, &[body.into()]);
        let frames = [
            StackFrame::new(jdk.object, "wait", "Object.java", -3),
            StackFrame::new(server, "handle", "Server.java", 12),
        ];
        let trace = model.trace(number, &frames);
        model.root(thread, Root::ThreadObject { thread: number, trace });
        model.root(held, Root::JavaFrame { thread: number, frame: 1 });
    }
    model.root_boot_classes();
    model.write(&Options::hotspot()).bytes()
}

#[test]
fn many_threads_are_one_row_and_waste_is_told() {
    let screen = Screen::of("threads", &many_threads(500));
    let text = screen.overview();
    assert!(text.contains("500 threads \"request-*\" in "), "{text}");
    let row = screen.row();
    let first = &row["largest"][0];
    assert_eq!((&first["instances"], &first["threads_method"]), (&500.into(), &"vt.Server.handle".into()));
    assert_eq!(
        (&first["threads_name"], &first["held_class"]),
        (&"request-*".into(), &"vt.RequestContext".into())
    );
    assert!(
        first["retained_bytes"].as_u64().unwrap() * 10
            > row["reachable"]["shallow_bytes"].as_u64().unwrap() * 9
    );
    // The same figures as in the commands that it suggests.
    let line = text.lines().find(|line| line.contains("wasted")).unwrap();
    let waste = screen.answer(&format!("hprof-cli waste {} --format json", screen.name));
    let waste: serde_json::Value = serde_json::from_str(&waste).unwrap();
    assert_eq!(row["waste"]["is_exact"], true);
    assert_eq!(row["waste"]["wasted_bytes"], waste["total"]["wasted_bytes"]);
    assert_eq!(row["waste"]["kind"], "duplicate_strings");
    assert_eq!(row["waste"]["kind_bytes"], waste["rows"][0]["wasted_bytes"]);
    assert!(line.contains(" on duplicate_strings") && !line.contains("about"), "{line}");
    let next = text.split("Next\n").nth(1).unwrap();
    assert!(next.contains("threads threads.hprof --group --locals"), "{text}");
    assert!(next.contains("waste threads.hprof"), "{text}");
    let group = screen.answer(&format!("hprof-cli threads {} --group --locals", screen.name));
    assert!(group.contains(" 500 x vt.RequestContext in vt.Server.handle"), "{group}");
}

/// Threads of a class of their own are in one row, of the group or of the class: each byte is reported once.
#[test]
fn threads_of_a_class_of_their_own_count_once() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let worker = model.class("acme.Worker", Some(jdk.thread), &[("buffer", Type::Object)]);
    let frames = |method| [StackFrame::new(worker, method, "Worker.java", 5)];
    for number in 1..=51 {
        let (name, method, bytes) = match number {
            51 => ("boss".to_owned(), "lead", 1_000_000),
            _ => (format!("worker-{number}"), "work", 200_000),
        };
        let thread = jdk.thread_of(&mut model, worker, &name, false, 5);
        let buffer = model.prim_array(Elements::Zeros(Type::Byte, bytes));
        model.set_field(thread, "buffer", buffer);
        let trace = model.trace(number, &frames(method));
        model.root(thread, Root::ThreadObject { thread: number, trace });
    }
    model.root_boot_classes();
    let screen = Screen::of("workers", &model.write(&Options::hotspot()).bytes());
    let row = screen.row();
    let largest = row["largest"].as_array().unwrap();
    let bytes = |row: &serde_json::Value| row["retained_bytes"].as_u64().unwrap();
    let sum: u64 = largest.iter().map(bytes).sum();
    assert!(sum <= row["reachable"]["shallow_bytes"].as_u64().unwrap(), "{largest:#?}");
    assert_eq!((&largest[0]["instances"], &largest[0]["threads_name"]), (&50.into(), &"worker-*".into()));
    assert!((1_000_000..1_010_000).contains(&bytes(&largest[1])), "{largest:#?}");
}
