//! `threads` against the JVM's own thread dumps of the same processes, and on dumps that nobody would call honest.

use std::collections::BTreeMap;
use std::process::Output;
use std::time::{Duration, Instant};

use crate::kit::dump::{Dump, whole_dump};
use crate::kit::texts::sample_path as sample;
use hprof_query::threads::{JavaThread, ThreadOrder, ThreadQuery, ThreadReport, ThreadState, Threads};
use hprof_writer::{ClassDump, DumpWriter, Elements, HeapWriter, IdSize, Root, Type, Value, Version};

/// Dumps with a thread dump of the same process beside them, and how many frames that has.
const SAMPLES: &[(&str, usize)] = &[
    ("jdk8.hprof.zst", 79),
    ("jdk11.hprof.zst", 16),
    ("jdk17.hprof.zst", 83),
    ("jdk17-all.hprof.zst", 83),
    ("jdk17-nocoops.hprof.zst", 83),
    ("jdk17-gz.hprof.gz", 16),
    ("jdk17-zgc.hprof.zst", 16),
    ("jdk21-nocoops-noccp.hprof.zst", 26),
    ("jdk25.hprof.zst", 119),
    ("jdk25-compact.hprof.zst", 119),
    ("jdk25-align16-compact.hprof.zst", 25),
    ("jdk25-zgc-compact.hprof.zst", 25),
];

/// A hundred times what these take on a slow machine.
const BARK: Duration = Duration::from_secs(60);

fn run(dump: &Dump, arguments: &[&str]) -> Output {
    dump.run(&[&["threads"], arguments].concat())
}

fn stdout(output: &Output) -> String {
    assert!(output.status.code() != Some(2), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(dump: &Dump, arguments: &[&str]) -> serde_json::Value {
    let mut arguments = arguments.to_vec();
    arguments.extend(["--format", "json"]);
    serde_json::from_str(&stdout(&run(dump, &arguments))).unwrap()
}

/// A thread as a thread dump states it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Stated {
    id: String,
    daemon: bool,
    priority: String,
    tid: String,
    state: String,
    /// Class, method, and source with line.
    frames: Vec<(String, String, String)>,
}

/// The Java threads of a thread dump by name. What it says of modules, and of the addresses of hidden classes, is left
/// out: JVMs write the latter differently here and there.
fn parse(text: &str) -> BTreeMap<String, Stated> {
    let mut threads = BTreeMap::new();
    for block in text.split("\n\n") {
        let mut lines = block.lines().skip_while(|line| !line.starts_with('"'));
        // Threads of the JVM itself have no number.
        let Some((name, rest)) = lines.next().and_then(|line| line.split_once("\" #")) else { continue };
        let word = |key: &str| {
            let word = rest.split_whitespace().find_map(|word| word.strip_prefix(key));
            word.unwrap_or_else(|| panic!("{key} in {rest}")).to_owned()
        };
        let mut thread = Stated {
            id: rest.split_whitespace().next().unwrap().to_owned(),
            daemon: rest.split_whitespace().any(|word| word == "daemon"),
            priority: word("prio="),
            tid: word("tid="),
            ..Stated::default()
        };
        for line in lines {
            if let Some(state) = line.strip_prefix("   java.lang.Thread.State: ") {
                thread.state = state.to_owned();
            } else if let Some(frame) = line.strip_prefix("\tat ") {
                let (method, source) = frame.strip_suffix(')').unwrap().split_once('(').unwrap();
                let (class, method) = method.rsplit_once('.').unwrap();
                let class = class.split(['/', '+']).next().unwrap();
                let source = source.rsplit('/').next().unwrap();
                thread.frames.push((class.to_owned(), method.to_owned(), source.to_owned()));
            }
        }
        threads.insert(name.trim_start_matches('"').to_owned(), thread);
    }
    threads
}

#[test]
fn thread_dumps_are_those_of_the_jvm() {
    for (name, frames) in SAMPLES {
        let dump = Dump::sample(&sample(&format!("jdk/{name}")));
        let text = name.split('.').next().unwrap();
        let truth = parse(&std::fs::read_to_string(sample(&format!("jdk/{text}.threads.txt"))).unwrap());
        let mut ours = parse(&stdout(&run(&dump, &["--format", "text"])));
        // Virtual threads, which jcmd Thread.print leaves out: those of the zoo have no name.
        ours.remove("");
        assert_eq!(truth.values().map(|thread| thread.frames.len()).sum::<usize>(), *frames, "{name}");
        assert_eq!(ours.keys().collect::<Vec<_>>(), truth.keys().collect::<Vec<_>>(), "{name}");
        for (thread, stated) in &truth {
            assert_eq!(&ours[thread], stated, "{name}: {thread}");
        }
    }
}

#[test]
fn json_says_what_the_thread_dump_says() {
    for name in ["jdk8.hprof.zst", "jdk17.hprof.zst", "jdk25.hprof.zst", "jdk25-compact.hprof.zst"] {
        let dump = Dump::sample(&sample(&format!("jdk/{name}")));
        let ours = parse(&stdout(&run(&dump, &["--format", "text"])));
        let json = json(&dump, &[]);
        let rows = json["rows"].as_array().unwrap();
        for row in rows.iter().filter(|row| row["is_virtual"] == false) {
            let stated = &ours[row["name"].as_str().unwrap()];
            let waiting = row["waiting"].as_str().map(|waiting| format!(" ({waiting})")).unwrap_or_default();
            let seen = Stated {
                id: row["thread_id"].to_string(),
                daemon: row["is_daemon"].as_bool().unwrap(),
                priority: row["priority"].to_string(),
                tid: stated.tid.clone(),
                state: format!("{}{waiting}", row["state"].as_str().unwrap()),
                frames: row["frames"].as_array().unwrap().iter().map(json_frame).collect(),
            };
            assert_eq!(&seen, stated, "{name}");
            let group = if row["priority"] == 5 && row["name"] != "VirtualThread-unblocker" {
                ["main", "CarrierThreads"].as_slice()
            } else {
                &["system", "InnocuousThreadGroup"]
            };
            assert!(group.contains(&row["thread_group"].as_str().unwrap()), "{name}: {row}");
        }
        let virtual_threads: Vec<_> = rows.iter().filter(|row| row["is_virtual"] == true).collect();
        assert_eq!(json["virtual_threads"], virtual_threads.len(), "{name}");
        assert_eq!(virtual_threads.len(), if name.starts_with("jdk25") { 20 } else { 0 }, "{name}");
        for row in virtual_threads {
            assert_eq!(row["state"], "TIMED_WAITING", "{row}");
            assert_eq!(row["waiting"], "parking", "{row}");
            assert_eq!(
                (&row["is_daemon"], &row["thread_group"]),
                (&true.into(), &"VirtualThreads".into()),
                "{row}"
            );
            assert_eq!(row["carrier"], serde_json::Value::Null, "{row}");
            let frames: Vec<_> = row["frames"].as_array().unwrap().iter().map(json_frame).collect();
            assert!(frames.len() > 10, "{row}");
            let sleep = ("HeapZoo".to_owned(), "sleep".to_owned(), "HeapZoo.java:72".to_owned());
            assert!(frames.contains(&sleep), "{row}");
            assert!(row["retained_bytes"].as_u64().unwrap() > 1234, "{row}");
        }
    }
}

fn json_frame(frame: &serde_json::Value) -> (String, String, String) {
    let class = frame["class"].as_str().unwrap();
    let source =
        match (frame["is_native"].as_bool().unwrap(), frame["source"].as_str(), frame["line"].as_u64()) {
            (true, ..) => "Native Method".to_owned(),
            (false, Some(source), Some(line)) => format!("{source}:{line}"),
            (false, Some(source), None) => source.to_owned(),
            (false, None, _) => "Unknown Source".to_owned(),
        };
    let class = class.split(['/', '+']).next().unwrap();
    (class.to_owned(), frame["method"].as_str().unwrap().to_owned(), source)
}

#[test]
fn locals_are_in_their_frames() {
    for name in ["jdk8.hprof.zst", "jdk17.hprof.zst", "jdk25.hprof.zst", "jdk25-compact.hprof.zst"] {
        let dump = Dump::sample(&sample(&format!("jdk/{name}")));
        let json = json(&dump, &["--thread", "local-owner"]);
        assert_eq!(json["rows"].as_array().unwrap().len(), 1, "{name}");
        let row = &json["rows"][0];
        let holds = |frame: &serde_json::Value, bytes: std::ops::Range<u64>| {
            frame["locals"].as_array().unwrap().iter().any(|local| {
                local["class"] == "byte[]"
                    && local["kind"] == "java frame"
                    && local["retained_bytes"].as_u64().is_some_and(|retained| bytes.contains(&retained))
            })
        };
        let frames = row["frames"].as_array().unwrap();
        let of: Vec<_> = frames.iter().filter(|frame| holds(frame, 54_321..54_400)).collect();
        assert_eq!(of.len(), 1, "{name}: {row}");
        assert_eq!(of[0]["method"], "lambda$main$5", "{name}");
        // And 20,000 in a ThreadLocal.
        assert!(row["retained_bytes"].as_u64().unwrap() > 54_321 + 20_000, "{name}");
        let table = stdout(&run(&dump, &["--thread", "local-owner", "--locals"]));
        assert!(table.contains("java frame  byte[] 0x"), "{table}");
        let hidden = stdout(&run(&dump, &["--thread", "local-owner", "--stack", "--depth", "2"]));
        assert_eq!(hidden.lines().count(), 5, "{hidden}");
        let text = stdout(&run(&dump, &["--thread", "local-owner", "--format", "text", "--locals"]));
        assert!(text.contains("(a byte[])") && parse(&text).len() == 1, "{text}");
    }
}

#[test]
fn threads_are_chosen_and_sorted() {
    let dump = Dump::sample(&sample("jdk/jdk25.hprof.zst"));
    let names = |arguments: &[&str]| -> Vec<String> {
        let rows = json(&dump, arguments);
        let name = |row: &serde_json::Value| row["name"].as_str().unwrap().to_owned();
        rows["rows"].as_array().unwrap().iter().map(name).collect()
    };
    assert_eq!(names(&["--state", "blocked"]), ["blocked \"quoted\""]);
    assert_eq!(names(&["--virtual"]), vec![""; 20]);
    assert!(names(&["--platform", "--sort", "name"]).is_sorted());
    assert_eq!(names(&["--top", "1"]), ["local-owner"]);
    assert_eq!(names(&["--thread", "ForkJoinPool-*-worker-*"]).len(), 2);
    let none = run(&dump, &["--thread", "MAIN"]);
    assert_eq!(none.status.code(), Some(1), "{none:?}");
    assert!(String::from_utf8_lossy(&none.stderr).contains("did you mean main"), "{none:?}");
    for wrong in [["--sort", "serial"], ["--state", "asleep"], ["--run", "1"]] {
        assert_eq!(run(&dump, &wrong).status.code(), Some(2), "{wrong:?}");
    }
    let text = stdout(&run(&dump, &["--format", "text"]));
    assert!(
        text.starts_with("2026-11-21 01:56:44\nFull thread dump OpenJDK 64-Bit Server VM (25.0.3"),
        "{text}"
    );
    assert!(
        text.contains("\t- parking to wait for  <0x00000000f0315f40> (a java.util.concurrent.ForkJoinPool)")
    );
    assert!(text.ends_with("RUNNABLE\n\n"), "{text}");
    let dump = Dump::sample(&sample("agent/cpu-times.txt"));
    let report = run(&dump, &[]);
    assert_eq!(report.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&report.stderr).contains("--started"), "{report:?}");
    assert_eq!(run(&dump, &["--started", "--format", "text"]).status.code(), Some(2));
}

#[test]
fn dumps_of_android_have_threads_without_states() {
    let dump = Dump::sample(&sample("public/android-leak_service_binder.hprof.zst"));
    let json = json(&dump, &["--thread", "main"]);
    let row = &json["rows"][0];
    assert_eq!((&row["name"], &row["priority"]), (&"main".into(), &5.into()));
    assert_eq!((&row["is_daemon"], &row["thread_group"]), (&false.into(), &"main".into()));
    assert_eq!(row["state"], serde_json::Value::Null);
}

/// The string ids of names.
const NAMES: &[&str] = &[
    "java/lang/Object",
    "java/lang/Thread",
    "name",
    "holder",
    "com/acme/Worker",
    "java/lang/Thread$FieldHolder",
    "java/lang/VirtualThread",
    "carrierThread",
    "state",
];
const OBJECT: u64 = 0x10;
const THREAD: u64 = 0x20;

fn name(text: &str) -> u64 {
    let at = NAMES.iter().position(|name| *name == text).unwrap();
    u64::try_from(at).unwrap() + 1
}

/// A dump with the classes Object and Thread.
fn dump_of(head: impl FnOnce(&mut DumpWriter), fill: impl FnOnce(&mut HeapWriter)) -> Vec<u8> {
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    for text in NAMES {
        out.string(name(text), text);
    }
    out.load_class(1, OBJECT, 0, name("java/lang/Object"));
    out.load_class(2, THREAD, 0, name("java/lang/Thread"));
    head(&mut out);
    let mut heap = HeapWriter::new(IdSize::Eight);
    heap.class_dump(&ClassDump { id: OBJECT, ..ClassDump::default() });
    let fields = [(name("name"), Type::Object), (name("holder"), Type::Object)];
    heap.class_dump(&ClassDump { id: THREAD, superclass: OBJECT, fields: &fields, ..ClassDump::default() });
    fill(&mut heap);
    out.heap_segment(&heap);
    out.heap_dump_end();
    out.into_bytes()
}

fn thread(heap: &mut HeapWriter, id: u64) {
    heap.instance(id, 0, THREAD, &[Value::Object(id), Value::Object(id)]);
}

/// Finds and reads all threads within the time that is left to it.
fn ends(
    name: &str,
    bytes_of: Vec<u8>,
    check: impl FnOnce(ThreadReport, &mut dyn Iterator<Item = JavaThread>) + Send + 'static,
) {
    let (done, wait) = std::sync::mpsc::channel();
    let start = Instant::now();
    let work = std::thread::spawn(move || {
        let dump = Dump::of(&bytes_of);
        let (heap, graph) = dump.open_graph();
        let threads = Threads::new(&whole_dump(&heap, &graph));
        for sort_by in [ThreadOrder::Name, ThreadOrder::State, ThreadOrder::Retained] {
            threads.find(&ThreadQuery {
                sort_by,
                name: "no such name".parse().ok(),
                ..ThreadQuery::default()
            });
        }
        let answer = threads.find(&ThreadQuery { sort_by: ThreadOrder::Address, ..ThreadQuery::default() });
        let rows = answer.rows.clone();
        check(answer, &mut rows.iter().map(|row| threads.thread(row)));
        let _ = done.send(());
    });
    if wait.recv_timeout(BARK) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
        panic!("{name}: no end after {:?}", start.elapsed());
    }
    work.join().unwrap();
}

/// Returns the address of an instance.
fn at(number: u32) -> u64 {
    0x1_0000 + u64::from(number) * 32
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_million_roots_whose_traces_lead_nowhere() {
    let one = dump_of(
        |_| {},
        |heap| {
            thread(heap, at(0));
            for serial in 0..1_000_000 {
                heap.root(at(0), Root::ThreadObject { thread: serial, trace: serial });
            }
        },
    );
    ends("one object", one, |answer, threads| {
        assert_eq!((answer.threads, answer.matching), (1, 1));
        let thread = threads.next().unwrap();
        assert_eq!((thread.name, thread.frames.len()), (None, 0));
    });
    let many = dump_of(
        |_| {},
        |heap| {
            for number in 0..300_000 {
                thread(heap, at(number));
                heap.root(at(number), Root::ThreadObject { thread: 7, trace: 9 });
                heap.root(at(0), Root::JavaFrame { thread: 7, frame: i32::MAX });
            }
        },
    );
    ends("one serial", many, |answer, threads| {
        assert_eq!(answer.threads, 300_000);
        // Locals belong to one of them, and an object is named once.
        assert_eq!(threads.map(|thread| thread.locals.len()).sum::<usize>(), 1);
    });
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_long_name_that_all_threads_have() {
    const THREADS: u32 = 400_000;
    const NAME: u64 = 0x100;
    // Up to here names are whole.
    const SHORT: usize = 120;
    let made = dump_of(
        |_| {},
        |heap| {
            heap.prim_array(NAME, 0, &Elements::of_chars(&"y".repeat(4096)));
            for number in 0..THREADS {
                heap.instance(at(number), 0, THREAD, &[Value::Object(NAME), Value::Object(0)]);
            }
            heap.root(at(0), Root::StickyClass);
        },
    );
    let dump = Dump::of(&made);
    dump.open_graph();
    let timed = |arguments: &[&str]| {
        let start = Instant::now();
        let output = run(&dump, arguments);
        // Seconds where it took many of them.
        assert!(start.elapsed() < Duration::from_secs(10), "{arguments:?}: {:?}", start.elapsed());
        output
    };
    let none = timed(&["--thread", "zzz"]);
    assert_eq!((none.status.code(), stdout(&none)), (Some(1), String::new()));
    assert!(String::from_utf8_lossy(&none.stderr).contains("none of the 400,000 threads match"), "{none:?}");
    let near = timed(&["--thread", "YYYY"]);
    assert!(String::from_utf8_lossy(&near.stderr).contains("did you mean yyyy"), "{near:?}");
    let first = stdout(&timed(&["--sort", "name", "--top", "1", "--format", "csv"]));
    assert!(first.contains("0x10000,") && first.contains(&"y".repeat(4096)), "{first}");
    assert_eq!(stdout(&timed(&["--thread", "yy*y", "--top", "2"])).lines().count(), 4);

    let room = (1 << 22) + made.len();
    ends("shared name", made, move |answer, threads| {
        assert_eq!(answer.matching, u64::from(THREADS));
        let lengths: Vec<usize> = threads.map(|thread| thread.name.unwrap().len()).collect();
        let whole = room / 4096;
        assert!(lengths[..whole].iter().all(|length| *length == 4096), "{:?}", &lengths[..whole]);
        assert!(lengths[whole..].iter().all(|length| *length == SHORT));
        assert_eq!(lengths.len(), THREADS as usize);
    });
}

#[test]
fn a_long_trace_that_all_threads_name() {
    const THREADS: u32 = 50_000;
    let frames: Vec<u64> = (0..u64::from(THREADS)).collect();
    let shared = dump_of(
        |out| {
            // No name is anywhere, and most frames neither.
            out.frame(5, 0x777, 0x777, 0x777, 0x777, i32::MIN);
            out.trace(9, 7, &frames);
        },
        |heap| {
            for number in 0..THREADS {
                thread(heap, at(number));
                heap.root(at(number), Root::ThreadObject { thread: number, trace: 9 });
                heap.root(at(number), Root::JavaFrame { thread: number, frame: 5 });
            }
        },
    );
    ends("shared trace", shared, |_, threads| {
        let (mut shown, mut all) = (0, 0);
        for (number, thread) in threads.enumerate() {
            assert!(number > 0 || (thread.frames.len() == 50_000 && thread.frames[5].locals.len() == 1));
            assert!(
                thread.frames.iter().all(|frame| frame.frame.to_string().starts_with("<unknown method>("))
            );
            shown += thread.frames.len();
            all += thread.frames.len() as u64 + thread.frames_left_out;
        }
        assert_eq!((shown, all), (50_000 + (1 << 20), 50_000 * 50_000));
    });
}

#[test]
fn classes_of_threads_in_a_long_chain_or_a_circle() {
    const CLASSES: u32 = 40_000;
    let class = |number: u32| 0x1000_0000 + u64::from(number) * 32;
    for circle in [false, true] {
        let chain = dump_of(
            |out| {
                for number in 0..CLASSES {
                    out.load_class(10 + number, class(number), 0, name("com/acme/Worker"));
                }
            },
            |heap| {
                for number in 0..CLASSES {
                    let above = if circle { class((number + 1) % CLASSES) } else { class(number + 1) };
                    let superclass = if !circle && number + 1 == CLASSES { THREAD } else { above };
                    heap.class_dump(&ClassDump { id: class(number), superclass, ..ClassDump::default() });
                    let fields = [Value::Object(at(number)), Value::Object(0)];
                    heap.instance(at(number), 0, class(number), &fields);
                }
            },
        );
        ends("chain", chain, move |answer, threads| {
            assert_eq!(answer.threads, if circle { 0 } else { 40_000 });
            for thread in threads {
                assert!(thread.name.is_none() && thread.doing.state.is_none());
            }
        });
    }
}

#[test]
fn virtual_threads_that_carry_themselves() {
    const VIRTUAL: u64 = 0x30;
    const HOLDER: u64 = 0x40;
    let dump = dump_of(
        |out| {
            out.load_class(3, VIRTUAL, 0, name("java/lang/VirtualThread"));
            out.load_class(4, HOLDER, 0, name("java/lang/Thread$FieldHolder"));
        },
        |heap| {
            let statics = [(name("state"), Value::Int(3)), (name("carrierThread"), Value::Int(3))];
            let fields = [(name("carrierThread"), Type::Object), (name("state"), Type::Int)];
            heap.class_dump(&ClassDump {
                id: VIRTUAL,
                superclass: THREAD,
                statics: &statics,
                fields: &fields,
                ..ClassDump::default()
            });
            heap.class_dump(&ClassDump { id: HOLDER, superclass: HOLDER, ..ClassDump::default() });
            let id = Value::Object(at(0));
            heap.instance(at(0), 0, VIRTUAL, &[id, Value::Int(3), id, Value::Object(at(1))]);
            heap.instance(at(1), 0, HOLDER, &[]);
            // Too short for its class.
            heap.instance_stating(at(2), 0, VIRTUAL, 3, &[1, 2, 3]);
        },
    );
    ends("virtual", dump, |answer, threads| {
        assert_eq!((answer.threads, answer.virtual_threads), (2, 2));
        let thread = threads.next().unwrap();
        assert_eq!(
            (thread.carrier, thread.doing.state),
            (Some(hprof_cli::ObjectId(at(0))), None::<ThreadState>)
        );
        assert_eq!((thread.is_daemon, thread.priority), (Some(true), Some(5)));
        assert_eq!(threads.next().unwrap().name, None);
    });
}
