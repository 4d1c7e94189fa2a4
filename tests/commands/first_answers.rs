//! Commands that a new user types first: an answer covers what it seems to cover, and an empty one says why.
//!
//! Each line of a table is a command, its exit code, and what stdout and stderr must contain.

use std::path::Path;

use hprof_writer::{Elements, HeapModel, Jdk, Options, Root, StackFrame, Type, damage};

use crate::kit::process::{self, Place, stderr};
use crate::kit::samples;

/// A command without the dump, its exit code, what stdout contains, what stderr contains.
struct Case {
    command: &'static [&'static str],
    code: i32,
    stdout: &'static [&'static str],
    stderr: &'static [&'static str],
}

const fn case(
    command: &'static [&'static str],
    code: i32,
    stdout: &'static [&'static str],
    stderr: &'static [&'static str],
) -> Case {
    Case { command, code, stdout, stderr }
}

/// Runs each command on the dump of `place`.
fn check(place: &Place, cases: &[Case]) {
    for case in cases {
        let output = place.run(case.command);
        let (out, err) = (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output));
        let said = format!("{:?}\n--- stdout\n{out}\n--- stderr\n{err}", case.command);
        assert_eq!(output.status.code(), Some(case.code), "{said}");
        for part in case.stdout {
            assert!(out.contains(part), "stdout lacks {part:?}: {said}");
        }
        for part in case.stderr {
            assert!(err.contains(part), "stderr lacks {part:?}: {said}");
        }
        // An empty answer must look the same with --quiet.
        let quiet = place.run(&[case.command, &["-q"]].concat());
        let err = stderr(&quiet);
        assert!(!err.contains("hprof-cli: note"), "{:?} -q\n{err}", case.command);
        assert_eq!(quiet.status.code(), Some(case.code), "{:?} -q", case.command);
    }
}

/// Creates a heap with nested classes, a text with quotes, a thread with a stack, and 400 KB of unreachable objects.
fn shop() -> Vec<u8> {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let cache = model.class("shop.CacheLeak", Some(jdk.object), &[]);
    let invoice = model.class("shop.CacheLeak$Invoice", Some(jdk.object), &[]);
    let line = model.class("shop.CacheLeak$Invoice$Line", Some(jdk.object), &[]);
    let objects = [cache, invoice, line].map(|class| model.instance(class, &[]));
    let text = jdk.string(&mut model, "say \"hi\"");
    let thread = jdk.thread(&mut model, "order-worker", true, 5);
    let trace = model.trace(7, &[StackFrame::new(cache, "put", "CacheLeak.java", 12)]);
    for object in objects {
        model.root(object, Root::StickyClass);
    }
    model.root(text, Root::JavaFrame { thread: 7, frame: 0 });
    model.root(thread, Root::ThreadObject { thread: 7, trace });
    for _ in 0..4 {
        model.prim_array(Elements::of_bytes(&[1; 100_000]));
    }
    model.write(&Options::hotspot()).bytes()
}

/// A sample as it is, with its index elsewhere.
fn sample(name: &str) -> Place {
    let dump = Path::new("samples").join(name);
    Place::sharing(samples::indexes(&dump), &dump)
}

#[test]
fn commands_that_cover_reachable_objects_say_what_is_not_reachable() {
    let place = Place::new("shop.hprof", &shop());
    const ROWS: &[&str] =
        &["are unreachable, and not included in this answer: `hprof-cli histo", "--unreachable` shows"];
    const SIZES: &[&str] = &["are unreachable, and not part of any retained size: `hprof-cli histo", "(9"];
    check(
        &place,
        &[
            case(&["dominators"], 0, &[], ROWS),
            case(&["dominators", "--group-by", "class"], 0, &[], ROWS),
            case(&["dominators", "--all", "--format", "csv"], 0, &[], ROWS),
            case(&["dominators", "--all", "--format", "json"], 0, &["\"unreachable_bytes\": 400"], ROWS),
            case(&["histo", "--live"], 0, &[], ROWS),
            case(&["histo", "--retained"], 0, &[], SIZES),
            case(&["retained", "Invoice"], 0, &[], SIZES),
            case(&["instances", "Invoice", "--live"], 0, &[], ROWS),
            case(&["roots"], 0, &[], ROWS),
            case(&["loaders"], 0, &[], ROWS),
            case(&["strings", "--live"], 0, &[], ROWS),
            case(&["threads"], 0, &[], SIZES),
            case(&["histo", "--live", "--format", "json"], 0, &["\"unreachable_bytes\": 400"], ROWS),
        ],
    );
    // All objects are covered here.
    for arguments in [&["histo"][..], &["histo", "--unreachable"], &["instances", "Invoice"], &["strings"]] {
        let output = place.run(arguments);
        assert!(!stderr(&output).contains("unreachable"), "{arguments:?} {}", stderr(&output));
    }
    let all = json(&place, &["histo"]);
    let live = json(&place, &["histo", "--live"]);
    let bytes = |answer: &serde_json::Value| answer["total"]["shallow_bytes"].as_u64().unwrap();
    assert_eq!(live["dump"]["unreachable_bytes"], bytes(&all) - bytes(&live));
    assert_eq!(all["dump"]["unreachable_bytes"], serde_json::Value::Null);
}

fn json(place: &Place, arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&place.answer(&[arguments, &["--format", "json"]].concat())).unwrap()
}

#[test]
fn unreachable_bytes_are_those_of_eclipse_mat() {
    let place = sample("public/netbeans-heap_dump.hprof.zst");
    let answer = json(&place, &["dominators", "--top", "1"]);
    let oracle = std::fs::read_to_string("samples/oracle/netbeans-heap_dump/summary.txt").unwrap();
    let of_mat = oracle.lines().find_map(|line| line.strip_prefix("unreachable_bytes\t")).unwrap();
    let (ours, of_mat) =
        (answer["dump"]["unreachable_bytes"].as_u64().unwrap(), of_mat.parse::<u64>().unwrap());
    // MAT counts static fields only of a class object.
    assert!(ours.abs_diff(of_mat) * 200 < of_mat, "{ours} {of_mat}");
    check(&place, &[case(&["dominators"], 0, &[], &["2.2 MiB of 2.5 MiB (89"])]);
    // Little is not worth a note.
    let quiet = sample("jdk/jdk17.hprof.zst").run(&["dominators"]);
    assert!(!stderr(&quiet).contains("unreachable"), "{}", stderr(&quiet));
}

/// The percentages of a table, in the order of rows; the last is that of the line of totals.
fn percentages(place: &Place, arguments: &[&str]) -> Vec<f64> {
    let table = place.answer(&[arguments, &["-q"]].concat());
    let shares = table.split_whitespace().filter_map(|word| word.strip_suffix('%')?.parse().ok());
    shares.collect()
}

#[test]
fn percentages_are_of_the_heap() {
    let place = Place::new("shop.hprof", &shop());
    let share = |arguments: &[&str], of: &[&str]| {
        let part = json(&place, arguments)["total"]["shallow_bytes"].as_u64().unwrap();
        let whole = json(&place, of)["total"]["shallow_bytes"].as_u64().unwrap();
        part as f64 * 100.0 / whole as f64
    };
    for (arguments, of) in [
        (&["histo", "java.lang.*"][..], &["histo"][..]),
        (&["histo", "byte[]"], &["histo"]),
        (&["histo", "byte[]", "--unreachable"], &["histo"]),
        (&["histo", "java.lang.*", "--live"], &["histo", "--live"]),
    ] {
        let shares = percentages(&place, arguments);
        let (total, rows) = shares.split_last().unwrap();
        let expected = share(arguments, of);
        assert!((total - expected).abs() < 0.06, "{arguments:?}: {total}, expected {expected}");
        assert!((rows.iter().sum::<f64>() - expected).abs() < 0.5, "{arguments:?}: {shares:?}");
        assert!(expected < 99.9, "{arguments:?} is not of the heap");
    }
    // Of a text report too.
    let text = sample("agent/dump.txt.zst");
    let whole = json(&text, &["histo"])["total"]["shallow_bytes"].as_u64().unwrap() as f64;
    let part = json(&text, &["histo", "String"])["total"]["shallow_bytes"].as_u64().unwrap() as f64;
    let shares = percentages(&text, &["histo", "String"]);
    assert!((shares.last().unwrap() - part * 100.0 / whole).abs() < 0.06, "{shares:?}");
}

/// Creates a heap with two arrays; optionally with as much garbage.
fn two_arrays(with_garbage: bool) -> Place {
    let mut model = HeapModel::default();
    Jdk::add_to(&mut model);
    let big = model.prim_array(Elements::of_bytes(&[1; 30_000]));
    let small = model.prim_array(Elements::of_bits(Type::Int, &[1; 1_000]));
    model.root(big, Root::StickyClass);
    model.root(small, Root::StickyClass);
    model.root_boot_classes();
    if with_garbage {
        model.prim_array(Elements::of_bits(Type::Char, &[1; 20_000]));
    }
    Place::new("arrays.hprof", &model.write(&Options::hotspot()).bytes())
}

/// An object that refers to nothing retains its own size: so `instances` and `histo` say the same share of it.
#[test]
fn percentages_of_instances_are_those_of_histo() {
    let share = |place: &Place, arguments: &[&str]| percentages(place, arguments)[0];
    let (clean, garbage) = (two_arrays(false), two_arrays(true));
    for class in ["byte[]", "int[]"] {
        let live = share(&garbage, &["histo", class, "--live"]);
        assert!(live > 5.0, "{class} {live}");
        // Unreachable objects are not part of the heap here.
        for arguments in [
            &["instances", class, "--live"][..],
            &["instances", class],
            &["dominators", "--of", class],
            &["retained", class],
        ] {
            assert_eq!(share(&garbage, arguments), live, "{arguments:?}");
        }
        for arguments in [["histo", class], ["instances", class]] {
            assert_eq!(share(&clean, &arguments), live, "{arguments:?}");
        }
    }
}

#[test]
fn a_simple_name_finds_nested_classes() {
    let place = Place::new("shop.hprof", &shop());
    const INVOICE: &[&str] = &["shop.CacheLeak$Invoice\n"];
    check(
        &place,
        &[
            case(&["histo", "Invoice"], 0, INVOICE, &[]),
            case(&["histo", "CacheLeak.Invoice"], 0, INVOICE, &[]),
            case(&["histo", "shop.CacheLeak.Invoice"], 0, INVOICE, &[]),
            case(&["histo", "CacheLeak$Invoice"], 0, INVOICE, &[]),
            case(&["histo", "Invoice.Line"], 0, &["shop.CacheLeak$Invoice$Line\n"], &[]),
            case(&["instances", "Invoice"], 0, INVOICE, &[]),
            case(&["retained", "CacheLeak.Invoice"], 0, &["1"], &[]),
            case(&["show", "CacheLeak.Invoice"], 0, &["shop.CacheLeak$Invoice"], &[]),
            case(&["refs", "Line"], 0, &["shop.CacheLeak$Invoice$Line"], &[]),
            case(&["classes", "Invoice"], 0, &["shop.CacheLeak$Invoice extends"], &[]),
            case(&["sites", "Invoice"], 0, &["shop.CacheLeak$Invoice"], &[]),
            case(&["traces", "--class", "CacheLeak"], 0, &["shop.CacheLeak.put"], &[]),
        ],
    );
}

#[test]
fn nothing_found_says_so_and_what_may_be_meant() {
    let place = Place::new("shop.hprof", &shop());
    let other: &'static str = Box::leak(place.path("b.hprof").to_str().unwrap().to_owned().into());
    std::fs::write(other, shop()).unwrap();
    const INVOICE: &[&str] = &["no class", "Invoise", "did you mean shop.CacheLeak$Invoice?"];
    let cases = [
        case(&["histo", "Invoise"], 1, &[], INVOICE),
        case(&["histo", "Invoise", "String"], 0, &[], INVOICE),
        case(&["histo", "Invoise", "--live"], 1, &[], INVOICE),
        case(&["histo", "WeakReference"], 1, &[], &["no object of the matching classes"]),
        case(
            &["histo", "Invoice", "--unreachable"],
            1,
            &[],
            &["no unreachable object of the matching classes"],
        ),
        case(&["classes", "Invoise"], 1, &[], INVOICE),
        case(&["instances", "Invoise"], 1, &[], INVOICE),
        case(&["retained", "Invoise"], 1, &[], INVOICE),
        case(&["sites", "Invoise"], 1, &[], INVOICE),
        case(
            &["sites", "--method", "nope"],
            1,
            &[],
            &["no allocation site matches", "no method matches nope"],
        ),
        case(&["sites", "--trace", "77"], 1, &[], &["no allocation site matches"]),
        case(&["traces", "--method", "CacheLeak.putt"], 1, &[], &["did you mean shop.CacheLeak.put?"]),
        case(&["traces", "--class", "CacheLek"], 1, &[], &["did you mean shop.CacheLeak?"]),
        case(
            &["traces", "--thread", "ordre-worker"],
            1,
            &[],
            &["none of the 1 threads", "did you mean order-worker?"],
        ),
        case(&["roots", "--thread", "nope"], 1, &[], &["none of the 1 threads match"]),
        case(&["roots", "--thread", "ordre-worker"], 1, &[], &["did you mean order-worker?"]),
        case(&["roots", "--kind", "debugger"], 1, &[], &["the dump contains no root of these kinds"]),
        case(
            &["roots", "--thread", "order", "--kind", "jni-global"],
            1,
            &[],
            &["no root of these kinds of a matching thread"],
        ),
        case(&["strings", "--pattern", "nope"], 1, &[], &["no String matches"]),
        case(&["strings", "--duplicates"], 1, &[], &["no String has duplicates"]),
        case(&["threads", "--thread", "nope"], 1, &[], &["none of the 1 threads match"]),
        case(&["dominators", "--min-retained", "1GiB"], 1, &[], &["no object retains 1.0 GiB or more"]),
    ];
    check(&place, &cases);
    const FILE: &[&str] = &["b.hprof is a file: ", "takes one dump, then class patterns"];
    check(
        &place,
        &[
            Case { command: Box::leak(Box::new(["histo", other])), code: 1, stdout: &[], stderr: FILE },
            Case { command: Box::leak(Box::new(["classes", other])), code: 1, stdout: &[], stderr: FILE },
            Case {
                command: Box::leak(Box::new(["instances", other])),
                code: 1,
                stdout: &[],
                stderr: &["b.hprof is a file: the command takes one dump"],
            },
        ],
    );
}

#[test]
fn nothing_found_in_a_recording_says_so() {
    let of = |name: &str, cases: &[Case]| check(&sample(name), cases);
    of(
        "agent/cpu-samples.txt",
        &[
            case(
                &["cpu", "--class", "Strin"],
                1,
                &[],
                &["no sample matches", "did you mean java.lang.String?"],
            ),
            case(&["cpu", "--method", "nope", "--group-by", "class"], 1, &[], &["no method matches nope"]),
            case(&["traces", "--method", "nope"], 1, &[], &["no trace matches", "no method matches nope"]),
            case(
                &["cputime"],
                1,
                &[],
                &["note: no CPU TIME", "hint: the file contains CPU SAMPLES: `hprof-cli cpu` shows them"],
            ),
            case(&["flamegraph", "--class", "Strin", "--format", "folded"], 1, &[], &[]),
        ],
    );
    of("agent/cpu-times.txt", &[case(&["cputime", "--method", "nope"], 1, &[], &["no row matches", "nope"])]);
    of("agent/cpu-old.txt.zst", &[case(&["cputime", "--method", "nope"], 1, &[], &["no call matches"])]);
    of("agent/monitor.txt", &[case(&["monitors", "--monitor", "NO"], 1, &[], &["no class matches NO"])]);
    of("agent/sites.txt.zst", &[case(&["sites", "Strin"], 1, &[], &["did you mean java.lang.String"])]);
    of("agent/dump.txt.zst", &[case(&["histo", "Strin"], 1, &[], &["did you mean java.lang.String"])]);
    of(
        "agent/all.hprof.zst",
        &[
            case(&["threads", "--started", "--thread", "mian"], 1, &[], &["did you mean main?"]),
            case(&["traces", "--thread", "mian"], 1, &[], &["did you mean main?"]),
        ],
    );
}

#[test]
fn an_index_out_of_range_says_the_length() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let array = model.object_array(jdk.object_array, &[]);
    let bytes = model.prim_array(Elements::of_bytes(&[1; 5]));
    model.root(array, Root::StickyClass);
    model.root(bytes, Root::StickyClass);
    let place = Place::new("arrays.hprof", &model.write(&Options::hotspot()).bytes());
    for (object, index, code, says) in [
        (bytes.0, "[99999]", 1, "index 99,999 is out of range: "),
        (bytes.0, "[5..]", 1, "has 5 elements; indices start at 0"),
        (bytes.0, "[4]", 0, ""),
        (array.0, "[0]", 1, "has 0 elements"),
    ] {
        let target = format!("{object:#x}{index}");
        for format in ["table", "json"] {
            let output = place.run(&["show", &target, "--format", format]);
            assert_eq!(output.status.code(), Some(code), "{target} {}", stderr(&output));
            assert!(stderr(&output).contains(says), "{target}: {}", stderr(&output));
        }
    }
}

#[test]
fn a_thread_is_found_by_the_name_of_its_thread_object() {
    let place = Place::new("shop.hprof", &shop());
    check(
        &place,
        &[
            case(
                &["traces", "--thread", "order-*"],
                0,
                &["(thread 7 \"order-worker\")", "CacheLeak.put"],
                &[],
            ),
            case(&["traces", "--thread", "7"], 0, &["(thread 7)"], &[]),
        ],
    );
    // All threads that `threads` knows of a real dump.
    let jdk17 = sample("jdk/jdk17.hprof.zst");
    let threads = json(&jdk17, &["threads"]);
    let mut with_stacks = 0;
    for row in threads["rows"].as_array().unwrap() {
        let (name, id) = (row["name"].as_str().unwrap(), row["object"].as_str().unwrap());
        if row["frames"].as_array().unwrap().is_empty() {
            continue;
        }
        with_stacks += 1;
        for thread in [name, id] {
            let found = json(&jdk17, &["traces", "--thread", thread]);
            let rows = found["rows"].as_array().unwrap();
            let frames = |row: &serde_json::Value| row["frames"].as_array().unwrap().len();
            let of_thread = rows.iter().find(|found| found["thread_name"] == name).unwrap();
            assert_eq!(frames(of_thread), frames(row), "{thread}");
        }
    }
    assert!(with_stacks >= 2);
}

#[test]
fn doctor_claims_no_more_than_is_known_of_a_truncated_dump() {
    // A third of the records that the JVM would have written are missing, which cannot be detected.
    let whole = process::sample("jdk/jdk17");
    let place = Place::new("cut.hprof", &damage::cut(&whole, whole.len() * 68 / 100));
    let output = place.run(&["doctor"]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stdout).unwrap();
    let read = said.lines().find(|line| line.starts_with("read ")).unwrap();
    assert!(read.contains("of at least ") && read.contains(": at most "), "{read}");
    let share = read.split_once(": at most ").unwrap().1.split_once('%').unwrap().0;
    assert!(share.parse::<f64>().unwrap() >= 68.0, "{read}");
}

#[test]
fn a_binary_file_that_begins_with_a_brace_is_no_json() {
    let output = Place::new("brace.bin", b"{\0\x01\x02 no json \xff\xfe").run(&["info"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!stderr(&output).contains("JSON"), "{}", stderr(&output));
    let text = Place::new("text.json", b"{\"a\": \"Gr\xc3\xbc\xc3\x9fe\"}\n");
    assert!(stderr(&text.run(&["info"])).contains("it looks like JSON"));
}

#[test]
fn a_file_that_cannot_be_written_is_named_with_what_to_do() {
    let place = Place::new("shop.hprof", &shop());
    let file = place.path("none/such/out.txt");
    for command in [&["convert"][..], &["flamegraph", "--format", "folded", "--data", "live"]] {
        let output = place.run(&[command, &["-o", file.to_str().unwrap()]].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let directory = file.parent().unwrap().display();
        assert!(
            said.contains(&format!(
                "cannot write {}: the directory {directory} does not exist",
                file.display()
            )),
            "{said}"
        );
        assert!(said.contains("create it, or name another file") && !said.contains(".part"), "{said}");
    }
}

#[test]
fn quotes_in_quoted_texts_are_escaped() {
    let place = Place::new("shop.hprof", &shop());
    const TEXT: &[&str] = &[r#""say \"hi\"""#];
    check(
        &place,
        &[
            case(&["strings"], 0, TEXT, &[]),
            case(&["instances", "String"], 0, TEXT, &[]),
            case(&["roots", "--kind", "java-frame"], 0, TEXT, &[]),
            case(&["strings", "--format", "csv"], 0, &["\"say \"\"hi\"\"\""], &[]),
        ],
    );
}

#[test]
fn the_dummy_trace_of_hotspot_is_not_shown() {
    let place = Place::new("shop.hprof", &shop());
    for command in [&["show", "shop.CacheLeak"][..], &["sites"]] {
        let table = place.answer(command);
        assert!(!table.contains("trace"), "{command:?}\n{table}");
        let document = json(&place, command);
        assert!(document["rows"][0]["trace"].is_u64(), "programs get it: {command:?}");
    }
    // Those of the agent are traces.
    assert!(sample("agent/sites.hprof.zst").answer(&["sites"]).contains("trace"));
}
