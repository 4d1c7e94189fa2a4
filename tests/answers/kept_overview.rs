//! What the overview finds in passes over the heap is found once, and then read from the index: the answer is the same.

use std::fs;
use std::time::SystemTime;

use crate::kit::dump::Dump;
use crate::kit::texts::sample_path as sample;

const SAMPLES: &[&str] =
    &["leaks/s1.hprof.zst", "leaks/s5.hprof.zst", "jdk/jdk17.hprof.zst", "public/maven-jdk8.hprof.zst"];

fn written(dump: &Dump) -> SystemTime {
    fs::metadata(dump.index().join("overview")).unwrap().modified().unwrap()
}

fn json(dump: &Dump) -> String {
    String::from_utf8(dump.run(&["overview", "--format", "json"]).stdout).unwrap()
}

#[test]
fn an_overview_from_the_index_is_the_same() {
    for name in SAMPLES {
        let dump = Dump::at(Some(&sample(name)));
        let (found, at) = (json(&dump), written(&dump));
        assert!(found.contains("\"headline\":"), "{name}: {found}");
        let table = dump.run(&["overview"]).stdout;
        assert_eq!((json(&dump), written(&dump)), (found.clone(), at), "{name}: it was found again");
        fs::remove_file(dump.index().join("overview")).unwrap();
        assert_eq!(dump.run(&["overview"]).stdout, table, "{name}");
        assert!(written(&dump) > at, "{name}");
        // Other commands find the same.
        let leaks = String::from_utf8(dump.run(&["leaks", "--format", "json"]).stdout).unwrap();
        let suspects = |text: &str| text.matches("shop.ProductService.CACHE").count();
        assert_eq!(suspects(&leaks) > 0, suspects(&found) > 0, "{name}");
    }
}

#[test]
fn a_damaged_or_foreign_answer_is_found_again() {
    let dump = Dump::at(Some(&sample("leaks/s1.hprof.zst")));
    let found = json(&dump);
    let file = dump.index().join("overview");
    let right = fs::read(&file).unwrap();
    for change in [right.len() - 3, right.len() / 2, 70] {
        let mut wrong = right.clone();
        wrong[change] ^= 1;
        fs::write(&file, &wrong).unwrap();
        assert_eq!(json(&dump), found, "byte {change}");
        assert_eq!(fs::read(&file).unwrap(), right, "byte {change}");
    }
    // That of another dump.
    let other = Dump::at(Some(&sample("leaks/s3.hprof.zst")));
    json(&other);
    fs::copy(other.index().join("overview"), &file).unwrap();
    assert_eq!(json(&dump), found);
}

#[test]
fn rules_have_answers_of_their_own() {
    let dump = Dump::at(Some(&sample("leaks/s1.hprof.zst")));
    let (found, at) = (json(&dump), written(&dump));
    let dir = tempfile::tempdir().unwrap();
    let rules = dir.path().join("own.toml");
    let own = "framework = \"Own\"\n[[class]]\nname = \"java.util.concurrent.ConcurrentHashMap\"\ncalled = \"own store\"\n";
    fs::write(&rules, own).unwrap();
    let with_rules = dump.run(&["overview", "--format", "json", "--frameworks", rules.to_str().unwrap()]);
    let with_rules = String::from_utf8(with_rules.stdout).unwrap();
    assert!(with_rules.contains("own store") && !found.contains("own store"), "{with_rules}");
    assert!(written(&dump) > at);
    assert_eq!(json(&dump), found);
}

/// Checks that an overview that is asked for in another way is not kept, and is the same where the usual one is kept.
fn is_neither_kept_nor_read(dump: &Dump, contains: &str, options: &[&str], hides_values: bool) {
    let other = || {
        let mut command = dump.command(&[&["overview", "--format", "json"], options].concat());
        let output =
            command.env("HPROF_CLI_HIDES_VALUES", if hides_values { "1" } else { "0" }).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap()
    };
    let first = other();
    assert!(first.contains(contains), "{first}");
    assert!(!dump.index().join("overview").exists());
    let (found, at) = (json(dump), written(dump));
    assert_ne!(found, first);
    assert_eq!((other(), written(dump)), (first, at));
}

#[test]
fn an_overview_with_a_recording_is_neither_kept_nor_read() {
    let dump = Dump::at(Some(&sample("leaks/s1.hprof.zst")));
    let recording = sample("flight/jdk17-leak.jfr.zst");
    let options = ["--recording", recording.to_str().unwrap()];
    is_neither_kept_nor_read(&dump, "\"recording\":", &options, false);
}

#[test]
fn an_overview_with_hidden_values_is_neither_kept_nor_read() {
    let dump = Dump::at(Some(&sample("leaks/s5.hprof.zst")));
    is_neither_kept_nor_read(&dump, "\"headline\":", &[], true);
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn an_overview_does_not_wait_for_a_process_that_builds() {
    let dump = Dump::at(Some(&sample("leaks/s1.hprof.zst")));
    let found = json(&dump);
    let file = dump.index().join("overview");
    fs::remove_file(&file).unwrap();
    let lock = fs::File::open(dump.index().join("lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(json(&dump), found);
    assert!(!file.exists());
    drop(lock);
    assert_eq!(json(&dump), found);
    assert!(file.exists());
}
