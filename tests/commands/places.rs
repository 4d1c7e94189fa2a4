//! `places`: where in the program the heap is held.

use serde_json::Value;

use crate::kit::process::{Place, sample, stderr};

fn document(place: &Place, words: &[&str]) -> Value {
    let output = place.run(&[&["places"], words, &["--format", "json", "--quiet"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn sum(rows: &[Value], key: &str) -> u64 {
    rows.iter().map(|row| row[key].as_u64().unwrap()).sum()
}

#[test]
fn own_bytes_add_up_to_the_reachable_heap() {
    for name in ["leaks/s1", "leaks/s3", "leaks/s4", "leaks/s5", "leaks/s7-t3"] {
        let place = Place::new("dump.hprof", &sample(name));
        let document = document(&place, &["--min", "0"]);
        let rows = document["rows"].as_array().unwrap();
        let reachable = document["reachable"]["shallow_bytes"].as_u64().unwrap();
        assert_eq!(sum(rows, "own_bytes"), reachable, "{name}");
        assert!(rows.iter().all(|row| row["retained_bytes"].as_u64() <= Some(reachable)), "{name}");
        // The rows of a tree in preorder: each is at most one level below the one before.
        let depths: Vec<u64> = rows.iter().map(|row| row["depth"].as_u64().unwrap()).collect();
        assert!(depths.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{name}");
    }
}

#[test]
fn below_an_object_are_the_places_of_what_it_retains() {
    let place = Place::new("dump.hprof", &sample("leaks/s1"));
    let all = document(&place, &["--min", "0"]);
    let rows = all["rows"].as_array().unwrap();
    let single = rows.iter().find(|row| row["object"].is_string() && row["depth"] == 2).unwrap();
    let object = single["object"].as_str().unwrap();
    let below = document(&place, &["--of", object, "--min", "0"]);
    let below = below["rows"].as_array().unwrap();
    assert_eq!(sum(below, "own_bytes"), below[0]["retained_bytes"].as_u64().unwrap());
    assert_eq!(below[0]["object"], single["object"]);
}

#[test]
fn depth_and_minimum_leave_rows_out() {
    let place = Place::new("dump.hprof", &sample("leaks/s1"));
    let rows = |words: &[&str]| document(&place, words)["rows"].as_array().unwrap().clone();
    let all = rows(&[]);
    let top = rows(&["--depth", "1"]);
    let expected: Vec<Value> = all.iter().filter(|row| row["depth"] == 1).cloned().collect();
    assert_eq!(top, expected);
    assert!(rows(&["--min", "10%"]).len() < all.len());
    let output = place.run(&["places", "--min", "101%"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("percentages are from 0% to 100%"), "{}", stderr(&output));
}

/// The places of `overview` are disjoint, and each is one of `places`, with the same figures.
#[test]
fn the_places_of_the_overview_are_among_all() {
    for name in ["leaks/s1", "leaks/s3", "leaks/s4", "leaks/s5", "leaks/s7-t3", "jdk/jdk17", "jdk/jdk8"] {
        let place = Place::new("dump.hprof", &sample(name));
        let all = document(&place, &["--min", "0"]);
        let reachable = all["reachable"]["shallow_bytes"].as_u64().unwrap();
        let output = place.run(&["overview", "--format", "json", "--quiet"]);
        let overview: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = overview["rows"][0]["places"].as_array().unwrap();
        assert!(!rows.is_empty() && sum(rows, "retained_bytes") <= reachable, "{name}");
        for row in rows {
            let same = |key: &str, other: &Value| row[key] == other[key];
            let found = all["rows"].as_array().unwrap().iter().find(|other| same("place", other));
            let found = found.unwrap_or_else(|| panic!("{name}: {row}"));
            // What small objects dominate is theirs, class objects too, which `places` has at the top.
            let bytes = |row: &Value| row["retained_bytes"].as_u64().unwrap();
            let are_small = row["own_bytes"].is_null();
            assert!(
                bytes(row) == bytes(found) || are_small && bytes(row) > bytes(found),
                "{name}: {row} {found}"
            );
            assert!(same("objects", found) && same("class", found) && same("depth", found), "{row} {found}");
            assert!(row["own_bytes"].is_null() || same("own_bytes", found), "{name}: {row} {found}");
            // None contains another.
            let path = row["place"].as_str().unwrap();
            let below = |other: &&Value| other["place"].as_str().unwrap().starts_with(&format!("{path} -> "));
            assert_eq!(rows.iter().find(below), None, "{name}");
        }
    }
}

/// Whatever runs at the same time, and whoever wrote the index.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn the_overview_is_the_same_in_each_run() {
    for name in ["leaks/s5", "jdk/jdk17"] {
        let answers: Vec<Vec<u8>> = ["1", "2", "7"]
            .iter()
            .map(|threads| {
                let place = Place::new("dump.hprof", &sample(name));
                let run = |command: &str| {
                    let mut command = place.command(&[command, "--format", "json", "-q"]);
                    command.env("RAYON_NUM_THREADS", threads).output().unwrap().stdout
                };
                let answer = String::from_utf8([run("overview"), run("leaks")].concat()).unwrap();
                // But for the directory, which is a new one each time.
                answer.replace(place.path("").to_str().unwrap(), "").into_bytes()
            })
            .collect();
        assert!(!answers[0].is_empty());
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{name}");
    }
}
