//! Every text passes the strict grammar of the old agent's format, and every binary the readers of hprof-cli.

use crate::grammar::{Counted, Writer, check};
use crate::kit::{Jdk, ask, cli, each_jdk};
use crate::report::Report;

fn checked(jdk: &Jdk, options: &str, jvm: &[&str], program: &[&str]) -> (Counted, String) {
    let done = jdk.run(options).jvm(jvm).ok(program);
    let text = done.text();
    let counted = check(text.as_bytes(), Writer::Agent).unwrap_or_else(|error| {
        panic!("{options} {program:?} on {}: {error}", jdk.release);
    });
    (counted, text)
}

#[test]
fn texts_are_as_the_grammar_says() {
    each_jdk("texts", |jdk| {
        let (counted, _) = checked(jdk, "heap=sites", &[], &["Plain"]);
        assert!(counted.sites > 50 && counted.sections == ["SITES"], "{counted:?}");
        let (counted, _) = checked(jdk, "heap=dump", &[], &["Plain"]);
        assert!(counted.sections == ["HEAP DUMP"] && counted.instances > 5000, "{counted:?}");
        assert!(counted.classes > 400 && counted.roots > 100 && counted.references > 10_000, "{counted:?}");
        let (counted, _) = checked(jdk, "heap=all", &[], &["Plain"]);
        assert_eq!(counted.sections, ["HEAP DUMP", "SITES"]);
        let (counted, _) = checked(jdk, "cpu=samples,interval=1", &[], &["Busy"]);
        assert!(counted.sections == ["CPU SAMPLES"] && counted.samples >= 3, "{counted:?}");
        let (counted, _) = checked(jdk, "cpu=times", &[], &["Plain"]);
        assert!(counted.sections == ["CPU TIME (ms)"] && counted.times >= 3, "{counted:?}");
        let (counted, text) = checked(jdk, "cpu=old", &[], &["Plain"]);
        assert!(counted.calls >= 3 && text.contains("Plain.fib(I)I Plain.fib(I)I"), "{counted:?} {text}");
        let (counted, _) = checked(jdk, "monitor=y", &[], &["Plain"]);
        assert!(
            counted.sections == ["MONITOR DUMP", "MONITOR TIME"] && counted.contended == 1,
            "{counted:?}"
        );
    });
}

#[test]
fn all_together_are_as_the_grammar_says() {
    each_jdk("all together", |jdk| {
        for more in ["", ",thread=y", ",lineno=n,depth=1", ",thread=y,lineno=n,depth=0", ",depth=64"] {
            let options = format!("heap=all,cpu=samples,interval=1,monitor=y,cutoff=0{more}");
            let (counted, _) = checked(jdk, &options, &[], &["Odd"]);
            assert!(counted.sections.starts_with(&["MONITOR DUMP"]), "{counted:?}");
            assert!(counted.sections.ends_with(&["HEAP DUMP", "SITES", "CPU SAMPLES"]), "{counted:?}");
            assert!(counted.started > 15 && counted.sites > 50, "{counted:?}");
        }
        let (counted, _) = checked(jdk, "cpu=times,monitor=y,heap=sites,thread=y", &["-Xint"], &["Odd"]);
        assert!(counted.waits >= 2 && counted.times > 0 && counted.sites > 0, "{counted:?}");
        let (counted, text) = checked(jdk, "cpu=old", &["-Xint"], &["Odd"]);
        assert!(counted.calls > 3 && text.contains("メソッド"), "{counted:?}");
    });
}

/// Names that are not in the way of a reader are what they are; the reader of texts finds all of them.
#[test]
fn odd_names_are_read_back() {
    each_jdk("odd names", |jdk| {
        let done = jdk.run("heap=sites,cutoff=0,depth=8").ok(&["Odd"]);
        let rows = ask("sites", &done.out(), &["--top", "0"]);
        let rows = rows["rows"].as_array().unwrap();
        for class in ["Odd$Grüße", "Odd$日本"] {
            let row = rows.iter().find(|row| row["class"] == class).unwrap_or_else(|| panic!("{rows:#?}"));
            assert_eq!(row["live_instances"], 11);
        }
        let report = Report::read(&done.text());
        assert!(
            report.traces.values().flat_map(|trace| &trace.frames).any(|frame| frame.method == "メソッド")
        );
    });
}

/// Rows of the program's classes: class, live and allocated objects and bytes, and the innermost frame.
fn rows(file: &std::path::Path) -> Vec<(String, [u64; 4])> {
    let rows = ask("sites", file, &["--top", "0"]);
    let number =
        |row: &serde_json::Value, key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row}"));
    let keys = ["live_instances", "live_bytes", "allocated_instances", "allocated_bytes"];
    let mut rows: Vec<_> = (rows["rows"].as_array().unwrap().iter())
        .filter(|row| {
            row["class"].as_str().unwrap().starts_with("Known$")
                && !row["class"].as_str().unwrap().contains("Lambda")
        })
        .map(|row| (row["class"].as_str().unwrap().to_owned(), keys.map(|key| number(row, key))))
        .collect();
    rows.sort();
    rows
}

#[test]
fn binaries_and_texts_say_the_same() {
    each_jdk("binaries", |jdk| {
        let options = "heap=all,cpu=samples,interval=1,cutoff=0,depth=8";
        let run = |format: &str| {
            jdk.run(&format!("{options},format={format}")).jvm(&["-Xint"]).ok(&["Known", "300"])
        };
        let (text, binary) = (run("a"), run("b"));
        let of_text = rows(&text.out());
        assert_eq!(of_text, rows(&binary.out()));
        assert!(of_text.len() >= 10, "{of_text:?}");
        let out = binary.out();
        for command in ["sites", "cpu", "traces", "summary", "info", "histo", "doctor"] {
            let output = cli(command, &out, &[]);
            assert!(!output.stdout.is_empty() || !output.stderr.is_empty(), "{command}");
        }
        let histo = ask("histo", &out, &["--top", "0"]);
        let small = histo["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["class"] == "Known$Small")
            .cloned()
            .unwrap();
        assert_eq!((small["instances"].as_u64(), small["shallow_bytes"].as_u64()), (Some(600), Some(9600)));
        // `convert` turns it into a text again, with the same sites.
        let converted = binary.dir.path().join("converted.txt");
        cli("convert", &out, &["-o", converted.to_str().unwrap()]);
        let counted = check(&std::fs::read(&converted).unwrap(), Writer::Convert).unwrap();
        assert!(counted.sections.contains(&"HEAP DUMP") && counted.sites > 100, "{counted:?}");
        assert_eq!(rows(&converted), of_text);
    });
}
