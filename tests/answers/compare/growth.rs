//! Three moments of `samples/leaks/src/S7Growth.java`.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use super::{change, json, moment, place, rows, run};
use crate::kit::dump::Dump;
use crate::kit::texts::sample_path;

/// Number of sessions at each moment (`samples/leaks/s7.truth.txt`).
const SESSIONS: [u64; 4] = [0, 2000, 6000, 10_000];
const BUFFERS: [u64; 4] = [0, 100, 300, 50];
const PAIRS: [(usize, usize); 3] = [(1, 2), (2, 3), (1, 3)];

/// Objects and bytes by class, as `GC.class_histogram` says right after the dump.
fn of_jvm(number: usize) -> BTreeMap<String, (i64, i64)> {
    let text = fs::read_to_string(sample_path(&format!("leaks/s7-t{number}.class_histogram.txt"))).unwrap();
    let mut classes = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [number, objects, bytes, class, ..] = words[..]
            && number.ends_with(':')
        {
            let sum: &mut (i64, i64) =
                classes.entry(hprof_values::names::java_class_name(class)).or_default();
            *sum = (sum.0 + objects.parse::<i64>().unwrap(), sum.1 + bytes.parse::<i64>().unwrap());
        }
    }
    assert!(classes.len() > 200);
    classes
}

#[test]
fn classes_grow_by_what_the_jvm_says() {
    for (old, new) in PAIRS {
        let (code, document) = json("diff", &[&moment(old as u32), &moment(new as u32)], &[]);
        assert_eq!(code, 0);
        let mut found: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for row in rows(&document) {
            let sum = found.entry(row["class"].as_str().unwrap().to_owned()).or_default();
            let delta = |key: &str| row[key].as_i64().unwrap();
            *sum = (sum.0 + delta("instances_delta"), sum.1 + delta("shallow_bytes_delta"));
        }
        let (before, after) = (of_jvm(old), of_jvm(new));
        let mut differ = Vec::new();
        for class in before.keys().chain(after.keys().filter(|class| !before.contains_key(*class))) {
            let none = (0, 0);
            let (a, b) = (before.get(class).unwrap_or(&none), after.get(class).unwrap_or(&none));
            // Generated classes have other names in other moments.
            let name = hprof_query::naming::stable_names::stem(class).into_owned();
            if found.get(&name).copied().unwrap_or_default() != (b.0 - a.0, b.1 - a.1) {
                differ.push(class.as_str());
            }
        }
        // The histogram comes after the dump: by then a cleaner has run.
        assert_eq!(differ, ["jdk.internal.ref.CleanerImpl$PhantomCleanableRef"], "t{old} to t{new}");
    }
}

#[test]
fn the_planted_growth_is_the_first_place() {
    for (old, new) in PAIRS {
        let (code, document) =
            json("diff", &[&moment(old as u32), &moment(new as u32)], &["--group-by", "place"]);
        assert_eq!(code, 0);
        let first = &rows(&document)[0];
        assert_eq!(
            place(first)[..2],
            ["static REGISTRY of growth.S7Growth", "growth.SessionRegistry.sessions"]
        );
        assert!(first["text"].as_str().unwrap().contains("Session.attributes"), "{first}");
        assert_eq!(change(first, "objects"), (SESSIONS[old], SESSIONS[new]));
        let find =
            |text: &str| rows(&document).iter().find(|row| row["text"].as_str().unwrap().contains(text));
        assert_eq!(find("CACHE"), None, "it does not change");
        let pool = find("static POOL of").expect("the pool changes");
        assert_eq!(change(pool, "objects"), (BUFFERS[old], BUFFERS[new]));
        let warmup = find("WarmupTask");
        if old == 1 {
            let row = warmup.expect("the tasks are gone");
            assert_eq!((row["status"].as_str(), change(row, "objects")), (Some("gone"), (800, 0)));
        } else {
            assert_eq!(warmup, None);
        }
        let reports = find("LateReport");
        if new == 3 {
            let row = reports.expect("reports are new");
            assert_eq!((row["status"].as_str(), change(row, "objects")), (Some("new"), (0, 500)));
        } else {
            assert_eq!(reports, None);
        }
        shares(&document);
    }
}

/// `share` is by all growth, of which the heap has lost what shrank; places do not contain one another.
fn shares(document: &Value) {
    let delta = |row: &Value| row["retained_bytes_delta"].as_i64().unwrap();
    let grown: i64 = rows(document).iter().map(delta).filter(|delta| *delta > 0).sum();
    assert_eq!(document["total"]["grown_bytes"].as_i64(), Some(grown));
    let shrunk: i64 = rows(document).iter().map(delta).filter(|delta| *delta < 0).sum();
    let all = grown.max(document["total"]["reachable_bytes_delta"].as_i64().unwrap() - shrunk);
    assert_eq!(document["total"]["all_grown_bytes"].as_i64(), Some(all));
    for row in rows(document) {
        let share = 100.0 * delta(row) as f64 / all as f64;
        assert!((row["growth_percent"].as_f64().unwrap() - share).abs() < 0.01, "{row}");
        let others = rows(document).iter().filter(|other| *other != row);
        assert!(others.into_iter().all(|other| !place(other).starts_with(&place(row))), "{row}");
    }
    assert!(rows(document).is_sorted_by_key(|row| -delta(row)));
}

/// For a ticket: a table, whose cells have what stands below a row on a terminal.
#[test]
fn comparisons_are_markdown_too() {
    let moments = [1, 2, 3].map(moment);
    let dumps: Vec<&Dump> = moments.iter().collect();
    let markdown = |command: &str, dumps: &[&Dump], more: &[&str]| {
        let output = run(command, dumps, &[more, &["--format", "markdown"]].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let place = "static REGISTRY of growth.S7Growth -\\> SessionRegistry.sessions -\\> HashMap";
    let trend = markdown("trend", &dumps, &[]);
    assert!(trend.starts_with("3 dumps, ") && trend.contains("\n\n| grows | growth | per hour |"), "{trend}");
    assert!(trend.contains(place) && trend.contains("\n| --- | ---: | ---: |"), "{trend}");
    let diff = markdown("diff", &dumps[..2], &["--group-by", "place"]);
    assert!(diff.starts_with("reachable heap ") && diff.contains("<br>of +"), "{diff}");
    assert!(markdown("diff", &dumps[..2], &["--top", "2"]).contains("\n| ---: "));
    // A ticket says so if there is nothing to say.
    let nothing: [(&str, &[usize], &str, &str); 4] = [
        ("diff", &[0, 0], "class", "nothing has changed\n"),
        ("diff", &[0, 0], "threads", "nothing has changed\n"),
        ("diff", &[0, 0], "place", "\n\nno place has changed by "),
        ("trend", &[2, 1, 0], "place", "\n\nnothing grew at every step, "),
    ];
    for (command, at, by, said) in nothing {
        let more = ["--group-by", by, "--format", "markdown"];
        let more =
            if command == "trend" { [&more[..], &["--order", "given"]].concat() } else { more.to_vec() };
        let dumps: Vec<&Dump> = at.iter().map(|at| dumps[*at]).collect();
        let output = run(command, &dumps, &more);
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.code() == Some(1) && told.contains(said), "{command} {by}: {told}");
        assert!(told.starts_with(said) || said.starts_with('\n'), "{command} {by}: {told}");
    }
    // Each row has as many cells as there are titles.
    for line in trend.lines().chain(diff.lines()).filter(|line| line.starts_with('|')) {
        assert!(line.ends_with(" |"), "{line}");
    }
}

#[test]
fn only_the_registry_grows_in_every_step() {
    // Given in another order than that of their times.
    let dumps = [moment(3), moment(1), moment(2)];
    let dumps: Vec<_> = dumps.iter().collect();
    let (code, document) = json("trend", &dumps, &[]);
    assert_eq!((code, rows(&document).len()), (0, 1));
    let row = &rows(&document)[0];
    assert_eq!(place(row)[..2], ["static REGISTRY of growth.S7Growth", "growth.SessionRegistry.sessions"]);
    assert_eq!(row["grows"], "every_step");
    assert_eq!(row["objects_by_dump"], serde_json::json!(SESSIONS[1..]));
    let names: Vec<&str> =
        document["dumps"].as_array().unwrap().iter().map(|dump| dump["path"].as_str().unwrap()).collect();
    assert!(names[0].contains("s7-t1") && names[2].contains("s7-t3"), "{names:?}");

    let (_, document) = json("trend", &dumps, &["--all"]);
    let pool = rows(&document).iter().find(|row| row["text"].as_str().unwrap().contains("POOL")).unwrap();
    assert_eq!(
        (&pool["grows"], &pool["objects_by_dump"]),
        (&"varies".into(), &serde_json::json!(BUFFERS[1..]))
    );

    // As given, sessions become fewer in one step.
    let (_, document) = json("trend", &dumps, &["--order", "given"]);
    let text = |row: &Value| row["text"].as_str().unwrap().to_owned();
    assert!(rows(&document).iter().all(|row| !text(row).contains("REGISTRY")), "{document}");

    let (_, document) = json("trend", &dumps, &["--group-by", "class", "--class", "growth.**"]);
    let rows: Vec<_> = rows(&document).iter().map(|row| (&row["class"], &row["grows"])).collect();
    assert_eq!(rows, [(&"growth.Session".into(), &"every_step".into())]);
}

#[test]
fn a_dump_does_not_differ_from_itself() {
    for by in ["class", "package", "loader", "superclass", "place"] {
        let (code, document) = json("diff", &[&moment(1), &moment(1)], &["--group-by", by]);
        let changed = rows(&document).iter().filter(|row| row["status"] != "same").count();
        assert_eq!((code, changed), (1, 0), "{by}");
    }
}

#[test]
#[ignore = "needs python3, and takes minutes"]
fn an_independent_reading_says_the_same() {
    for (old, new) in [("leaks/s7-t1", "leaks/s7-t3"), ("leaks/s3", "leaks/s4"), ("jdk/jdk17", "jdk/jdk25")] {
        let dir = tempfile::tempdir().unwrap();
        let unpacked = [("old", old), ("new", new)].map(|(side, name)| {
            let packed = fs::File::open(sample_path(&format!("{name}.hprof.zst"))).unwrap();
            let path = dir.path().join(format!("{side}.hprof"));
            fs::write(&path, zstd::decode_all(packed).unwrap()).unwrap();
            path
        });
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/diff/check.py");
        let mut check = std::process::Command::new("python3");
        check
            .arg(script)
            .arg("--index-dir")
            .arg(dir.path())
            .arg(env!("CARGO_BIN_EXE_hprof-cli"))
            .args(unpacked);
        let output = check.output().unwrap();
        assert!(output.status.success(), "{old} {new}: {}", String::from_utf8_lossy(&output.stdout));
    }
}
