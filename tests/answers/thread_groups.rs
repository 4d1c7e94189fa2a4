//! `threads --group` against the threads themselves, grouped by hand, and the mark of the thread that ran out of memory.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value as Json;

use crate::kit::dump::Dump;

fn run(dump: &Dump, arguments: &[&str]) -> String {
    let output = dump.run(&[&["threads"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(dump: &Dump, arguments: &[&str]) -> Json {
    serde_json::from_str(&run(dump, &[arguments, &["--format", "json"]].concat())).unwrap()
}

/// A frame without what it holds.
fn frame(frame: &Json) -> String {
    ["class", "method", "source", "line", "native"].map(|key| frame[key].to_string()).join(" ")
}

fn frames(row: &Json) -> Vec<String> {
    row["frames"].as_array().unwrap().iter().map(frame).collect()
}

#[test]
fn groups_are_the_threads_added_up() {
    for sample in ["jdk/jdk8", "jdk/jdk17", "jdk/jdk25", "leaks/s4", "leaks/s5", "public/maven-jdk8"] {
        let dump = Dump::at(Some(&Path::new("samples").join(format!("{sample}.hprof.zst"))));
        let threads = json(&dump, &[]);
        // Names, and bytes of the threads, by pool and stack.
        let mut expected = BTreeMap::<(Option<String>, Vec<String>), Vec<(String, u64)>>::new();
        for row in threads["rows"].as_array().unwrap() {
            let name = row["name"].as_str();
            let pool = name.map(|name| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned());
            let bytes = row["retained_bytes"].as_u64().unwrap_or(0);
            let group = expected.entry((pool, frames(row))).or_default();
            group.push((name.unwrap_or_default().to_owned(), bytes));
        }
        let groups = json(&dump, &["--group"]);
        let rows = groups["rows"].as_array().unwrap();
        assert_eq!(rows.len(), expected.len(), "{sample}");
        let mut total = 0;
        for row in rows {
            let name = row["name"].as_str();
            let pool = name.map(|name| {
                name.trim_end_matches('*').trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()
            });
            let members = &expected[&(pool, frames(row))];
            assert_eq!(row["threads"], members.len(), "{sample}: {name:?}");
            assert_eq!(row["objects"].as_array().unwrap().len(), members.len());
            // No thread of these dumps dominates another.
            assert_eq!(row["retained_bytes"], members.iter().map(|(_, bytes)| bytes).sum::<u64>());
            let is_one_name = members.iter().all(|(other, _)| *other == members[0].0);
            assert_eq!(name.is_some_and(|name| name.ends_with('*')), !is_one_name, "{sample}: {name:?}");
            total += members.len() as u64;
        }
        assert_eq!(groups["matching"]["threads"], total);
        assert_eq!(groups["matching"]["threads"], threads["matching"]["rows"]);
        let bytes: Vec<u64> = rows.iter().map(|row| row["retained_bytes"].as_u64().unwrap()).collect();
        assert!(bytes.is_sorted_by(|a, b| a >= b), "{sample}");
    }
}

#[test]
fn a_pool_is_one_row() {
    // Carriers of virtual threads.
    let dump = Dump::at(Some(Path::new("samples/jdk/jdk25.hprof.zst")));
    let groups = json(&dump, &["--group"]);
    let pools = groups["rows"].as_array().unwrap().iter().filter(|row| row["threads"].as_u64() > Some(1));
    assert!(pools.count() > 0, "{groups}");
    let table = run(&dump, &["--group", "--depth", "1"]);
    assert!(table.contains("retained  threads  state"), "{table}");
}

#[test]
fn a_group_is_found_by_one_of_its_threads() {
    let dump = Dump::at(Some(Path::new("samples/jdk/jdk25.hprof.zst")));
    let groups = json(&dump, &["--group"]);
    for row in groups["rows"].as_array().unwrap() {
        let objects: Vec<&str> =
            row["objects"].as_array().unwrap().iter().map(|object| object.as_str().unwrap()).collect();
        let threads = json(&dump, &["--group-of", objects.last().unwrap(), "--sort", "address"]);
        let found: Vec<&str> =
            threads["rows"].as_array().unwrap().iter().map(|row| row["object"].as_str().unwrap()).collect();
        assert_eq!(found, objects);
    }
    // No thread, no group.
    let none = dump.run(&["threads", "--group-of", "0x1"]);
    assert_eq!((none.status.code(), none.stdout.is_empty()), (Some(1), true), "{none:?}");
}

#[test]
fn the_thread_that_ran_out_of_memory_is_marked() {
    for (sample, culprit) in [
        ("leaks/s5", Some("order-import-3")),
        ("leaks/s5-static", Some("receipt-import")),
        ("leaks/s4", None),
        ("jdk/jdk17", None),
    ] {
        let dump = Dump::at(Some(&Path::new("samples").join(format!("{sample}.hprof.zst"))));
        let marked: Vec<String> = json(&dump, &[])["rows"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["out_of_memory"].as_bool().unwrap())
            .map(|row| row["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(marked, culprit.into_iter().collect::<Vec<_>>(), "{sample}");
        for arguments in [&[][..], &["--group"]] {
            let table = run(&dump, arguments);
            let lines = table.lines().filter(|line| line.ends_with("OutOfMemoryError"));
            assert_eq!(lines.count(), usize::from(culprit.is_some()), "{sample}: {table}");
        }
    }
}
