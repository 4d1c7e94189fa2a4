//! `histo`, `diff` and `trend` of running JVMs, against what `jcmd` prints and what the programs do.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kit::{Waiting, class_histogram, each_jdk, not_run};
use crate::process;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str]) -> (Output, String) {
    let output = process::finish(command(arguments).spawn().unwrap());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    (output, said)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Names in the rows of an answer.
fn classes(answer: &Value) -> Vec<&str> {
    answer["rows"].as_array().unwrap().iter().map(|row| row["class"].as_str().unwrap()).collect()
}

/// The name of a class in the form of `jcmd`.
fn jvm_name(class: &str) -> String {
    let element = class.trim_end_matches("[]");
    let dimensions = (class.len() - element.len()) / 2;
    let primitives = [
        ("boolean", "Z"),
        ("byte", "B"),
        ("char", "C"),
        ("short", "S"),
        ("int", "I"),
        ("long", "J"),
        ("float", "F"),
        ("double", "D"),
    ];
    match primitives.iter().find(|(name, _)| *name == element) {
        _ if dimensions == 0 => class.to_owned(),
        Some((_, letter)) => "[".repeat(dimensions) + letter,
        None => format!("{}L{element};", "[".repeat(dimensions)),
    }
}

#[test]
fn a_process_has_the_counts_that_jcmd_prints() {
    each_jdk("histograms of processes", |jdk| {
        if jdk.tool("jcmd").is_none() {
            return not_run("histograms of processes", "no jcmd");
        }
        let java = jdk.bare().jvm(&["-XX:+UsePerfData"]).start(&["HeapZoo", "1", "120000"]);
        java.wait_for("READY");
        let pid = java.pid().to_string();
        // The first command loads the classes that commands need.
        jdk.jcmd(java.pid(), &["GC.class_histogram", "-all"]);
        for (option, words) in
            [(None, &["GC.class_histogram", "-all"][..]), (Some("--live"), &["GC.class_histogram"])]
        {
            let arguments: Vec<&str> =
                ["histo", &pid, "--format", "json"].into_iter().chain(option).collect();
            let (output, said) = run(&arguments);
            assert!(output.status.success(), "{said}");
            assert!(said.contains("stood still for"), "{said}");
            assert_eq!(said.contains("collected garbage first"), option.is_some(), "{said}");
            let mut found = BTreeMap::<String, (u64, u64)>::new();
            let answer = json(&output);
            for row in answer["rows"].as_array().unwrap() {
                let class = found.entry(jvm_name(row["class"].as_str().unwrap())).or_default();
                class.0 += row["instances"].as_u64().unwrap();
                class.1 += row["shallow_bytes"].as_u64().unwrap();
            }
            let expected = class_histogram(&jdk.jcmd(java.pid(), words));
            // Attaching allocates in the JVM: a few objects of few classes.
            let differ: Vec<_> =
                expected.iter().filter(|(class, counts)| found.get(*class) != Some(counts)).collect();
            assert!(expected.len() > 400 && found.len().abs_diff(expected.len()) < 5, "{differ:?}");
            assert!(differ.len() < expected.len() / 20, "{differ:?}");
            let is_own = |class: &str| class.starts_with("HeapZoo");
            assert!(!differ.iter().any(|(class, _)| is_own(class)), "{differ:?}");
        }
    });
}

/// Runs rounds of a second of a program that is running; returns the answer and what was said.
fn rounds(java: &Waiting, options: &[&str]) -> (Output, String) {
    let pid = java.pid().to_string();
    let all = [&["trend", &pid, "--every", "1s", "--format", "json"], options].concat();
    run(&all)
}

#[test]
fn the_class_that_leaks_is_named_and_no_other() {
    each_jdk("rounds", |jdk| {
        let java = jdk.bare().jvm(&["-XX:+UseG1GC", "-Xmx200m"]).start(&["Growing", "true"]);
        java.wait_for("READY");
        let file = java.path("rounds.txt");
        for options in [&["--live"][..], &["--output", file.to_str().unwrap()]] {
            let (output, said) = rounds(&java, &[&["--for", "5s"], options].concat());
            let answer = json(&output);
            assert_eq!(classes(&answer), ["Growing$Leaked"], "{said}{answer}");
            let rate = answer["rows"][0]["bytes_per_hour"].as_f64().unwrap() / 3600.0;
            // 10,000 objects of 64 bytes a second.
            assert!((450_000.0..850_000.0).contains(&rate), "{rate}");
            let hours = answer["hours_until_full"].as_f64().unwrap();
            assert!((0.0..0.2).contains(&hours), "{hours}");
            assert!(said.contains("round: 5: ") && said.contains("growing: Growing$Leaked +"), "{said}");
        }
        // The file says the same.
        let (output, said) = run(&["trend", file.to_str().unwrap(), "--format", "json"]);
        assert_eq!(classes(&json(&output)), ["Growing$Leaked"], "{said}");
        let (output, _) = run(&["diff", file.to_str().unwrap(), &java.pid().to_string(), "--format", "json"]);
        assert!(classes(&json(&output)).contains(&"Growing$Leaked"));
    });
}

#[test]
fn nothing_is_named_where_nothing_leaks() {
    each_jdk("rounds without a leak", |jdk| {
        for program in [&["Growing", "false"][..], &["Wait"]] {
            let java = jdk.bare().jvm(&["-Xmx200m"]).start(program);
            java.wait_for("READY");
            let (output, said) = rounds(&java, &["--for", "5s"]);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(
                classes(&json(&output)).is_empty() && said.contains("nothing grew in every round"),
                "{said}"
            );
        }
    });
}

#[test]
fn rounds_end_with_the_process_and_with_a_signal() {
    each_jdk("rounds that end", |jdk| {
        let java = jdk.bare().start(&["Wait"]);
        java.wait_for("READY");
        let pid = java.pid().to_string();
        let file = java.path("rounds.txt");
        let words =
            ["trend", &pid, "--every", "200ms", "--output", file.to_str().unwrap(), "--format", "json"];
        let by_signal = command(&words).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(2));
        let id = rustix::process::Pid::from_raw(i32::try_from(by_signal.id()).unwrap()).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        let output = process::finish(by_signal);
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(json(&output)["dumps"].as_array().unwrap().len() >= 2);
        is_private(&file);
        // An existing file is not replaced.
        let (output, said) = run(&words);
        assert!(output.status.code() == Some(2) && said.contains("--force"), "{said}");
        let rounds = command(&["trend", &pid, "--every", "200ms", "--format", "json"]).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(2));
        java.end();
        let start = Instant::now();
        let output = process::finish(rounds);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(start.elapsed() < Duration::from_secs(60));
        assert!(output.status.code() == Some(1) && said.contains("the rounds end here"), "{said}");
        assert!(json(&output)["dumps"].as_array().unwrap().len() >= 2, "{said}");
    });
}

fn is_private(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}
