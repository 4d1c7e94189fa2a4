//! `threads --locks`, against `Thread.print` of the same process, and `paths-to-root` without fields.

use std::collections::BTreeSet;

use crate::kit::process::{Folder, stderr};
use serde_json::Value as Json;

const DUMP: &str = "samples/reports/jdk17-locks.hprof.zst";

fn rows(folder: &Folder) -> Vec<Json> {
    folder.json(&["threads", DUMP, "--locks"])["rows"].as_array().unwrap().clone()
}

/// The owner and the waiting threads of a lock, by name.
fn threads(lock: &Json) -> (Option<&str>, BTreeSet<&str>) {
    let waiters = lock["waiters"].as_array().unwrap();
    (
        lock["lock_owner"]["name"].as_str(),
        waiters.iter().map(|thread| thread["name"].as_str().unwrap()).collect(),
    )
}

/// The pairs of threads of `Thread.print` of which one waits for what the other holds.
fn printed_deadlocks() -> BTreeSet<(String, String)> {
    let text = std::fs::read_to_string("samples/reports/jdk17-locks.threads.txt").unwrap();
    let mut waiting = String::new();
    let mut pairs = BTreeSet::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('"').and_then(|rest| rest.strip_suffix("\":")) {
            waiting = name.to_owned();
        } else if let Some(owner) = line.strip_prefix("  which is held by \"") {
            pairs.insert((waiting.clone(), owner.trim_end_matches('"').to_owned()));
        }
    }
    pairs
}

#[test]
fn deadlocks_are_those_that_the_jvm_finds() {
    let folder = Folder::new();
    let rows = rows(&folder);
    let deadlocked: Vec<&Json> = rows.iter().take_while(|lock| !lock["deadlock"].is_null()).collect();
    let mut pairs = BTreeSet::new();
    for lock in &deadlocked {
        let (owner, waiters) = threads(lock);
        for waiter in waiters.iter().filter(|name| name.starts_with("dead-")) {
            pairs.insert(((*waiter).to_owned(), owner.unwrap().to_owned()));
        }
    }
    let wanted = printed_deadlocks();
    assert_eq!(wanted.len(), 4, "{wanted:?}");
    assert_eq!(pairs, wanted);
    // Those of monitors are inferred.
    for lock in deadlocked {
        assert_eq!(lock["is_inferred"], lock["lock_kind"] == "monitor", "{lock}");
    }
    assert!(rows.iter().skip(4).all(|lock| lock["deadlock"].is_null()));
}

#[test]
fn owners_and_waiting_threads() {
    let folder = Folder::new();
    let rows = rows(&folder);
    let of_field = |field: &str| {
        let mut found = rows.iter().filter(|lock| lock["lock_field"] == field);
        let lock = found.next().unwrap_or_else(|| panic!("{field}"));
        assert!(found.next().is_none(), "{field}");
        (lock["lock_kind"].as_str().unwrap(), threads(lock))
    };
    let waits = BTreeSet::from(["waits-0", "waits-1", "waits-2"]);
    assert_eq!(of_field("Locks.BUSY"), ("synchronizer", (Some("owner"), waits)));
    assert_eq!(of_field("Locks.RW"), ("synchronizer", (Some("writer"), BTreeSet::from(["reader"]))));
    assert_eq!(of_field("java.util.concurrent.Semaphore.sync").1, (None, BTreeSet::from(["sem"])));
    assert_eq!(of_field("java.util.concurrent.CountDownLatch.sync").1, (None, BTreeSet::from(["latch"])));
    assert_eq!(of_field("Locks.Q"), ("notification", (None, BTreeSet::from(["waiter-q"]))));
    let condition = rows.iter().find(|lock| lock["lock_kind"] == "condition").unwrap();
    assert_eq!(threads(condition), (None, BTreeSet::from(["cond"])));
    let instance = rows.iter().find(|lock| lock["class"] == "Locks").unwrap();
    let blocked = BTreeSet::from(["inst-blocked", "inst-blocked-2"]);
    assert_eq!(threads(instance), (Some("inst-owner"), blocked));
    // The monitor of a static method is on no stack.
    let json = folder.json(&["threads", DUMP, "--locks"]);
    assert_eq!((&json["deadlocks"], &json["unknown_waits"]), (&2.into(), &1.into()));
    let said = stderr(&folder.run(&["threads", DUMP, "--locks"]));
    assert!(said.contains("inferred from the objects") && said.contains("of 1 BLOCKED thread"), "{said}");
}

#[test]
fn paths_avoid_excluded_fields() {
    let folder = Folder::new();
    let path = |more: &[&str]| {
        let arguments =
            [&["paths-to-root", DUMP, "java.util.concurrent.locks.ReentrantReadWriteLock"], more].concat();
        let output = folder.run(&[&arguments[..], &["--format", "json"]].concat());
        let json: Json = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let steps = json["rows"].as_array().cloned().unwrap_or_default();
        let references: Vec<String> =
            steps.iter().filter_map(|step| step["reference"].as_str().map(str::to_owned)).collect();
        (output.status.code(), references, stderr(&output))
    };
    let (code, references, _) = path(&[]);
    assert!(code == Some(0) && references.iter().any(|name| name == "RW"), "{references:?}");
    let (code, references, said) = path(&["--exclude-field", "Locks.RW"]);
    assert!(!references.iter().any(|name| name == "RW"), "{references:?}");
    // A thread on whose stack the lock is, or nothing, is left.
    assert!(code == Some(0) || said.contains("Locks.RW"), "{said}");
    let list = folder.write(
        "fields.txt",
        "# of the program\nLocks.RW\n\njava.util.concurrent.locks.ReentrantReadWriteLock.writerLock\n",
    );
    let (_, references, _) = path(&["--exclude-file", &list]);
    assert!(!references.iter().any(|name| name == "RW" || name == "writerLock"), "{references:?}");
    // Names that no field has.
    for (field, text) in [
        ("Locks.RWW", "Locks has no field RWW with a reference; did you mean RW?"),
        ("Lock.RW", "the dump has no class Lock; did you mean Locks"),
        ("RW", "expected CLASS.FIELD"),
    ] {
        let (code, _, said) = path(&["--exclude-field", field]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(text), "{field}: {said}");
    }
    let wrong = folder.write("wrong.txt", "Locks.RW\nnothing\nLocks RW\n");
    let (code, _, said) = path(&["--exclude-file", &wrong]);
    assert_eq!(code, Some(2));
    assert!(said.contains("line 2:") && said.contains("line 3:"), "{said}");
}
