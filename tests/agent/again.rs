//! A JVM that is recorded more than once, and what `hprof-cli agent load` answers.

use std::process::{Command, Stdio};

use crate::grammar::{Writer, check};
use crate::kit::{Jdk, Waiting, ask, cli, each_jdk, library};
use crate::process;
use crate::report::{Count, Report};

/// `hprof-cli agent load`: whether it worked, and what it said.
fn load(pid: u32, options: &str) -> Result<String, String> {
    let mut load = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    load.args(["agent", "load", &pid.to_string(), options]).env("HPROF_CLI_AGENT", library());
    let child = load.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (output, _) = process::finish_within(child, crate::kit::AT_ALL, u64::MAX);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.code() {
        Some(0) => Ok(text(&output.stdout)),
        code => Err(format!("{code:?}: {}{}", text(&output.stdout), text(&output.stderr))),
    }
}

/// It has to be refused, for this reason.
fn refused(java: &Waiting, options: &str, reason: &str) {
    let answer = load(java.pid(), options);
    let said = answer.as_ref().expect_err(options);
    assert!(said.starts_with("Some(2)") && said.contains(reason), "{options}: {said}");
}

/// The answer is in the system property where `jcmd` finds it, too.
fn property(jdk: &Jdk, java: &Waiting) -> Option<String> {
    jdk.tool("jcmd")?;
    let properties = jdk.jcmd(java.pid(), &["VM.system_properties"]);
    properties.lines().find_map(|line| line.strip_prefix("hprof.agent.answer=")).map(str::to_owned)
}

/// A recording of these options, into a file of this name.
fn record(java: &Waiting, options: &str, name: &str) {
    let out = java.path(name);
    let answer = load(java.pid(), &format!("{options},file={}", out.display())).unwrap();
    assert!(answer.ends_with(&format!("Recording to {}\n", out.display())), "{answer}");
    // A thread that runs goes on to the sample that it had before, which is half a megabyte away, more or less.
    java.tell("warm");
}

fn stop(java: &Waiting, name: &str) {
    let answer = load(java.pid(), "stop").unwrap();
    assert!(answer.contains(&format!("done: {}", java.path(name).display())), "{answer}");
}

/// Calls of `Timed.run` in one more recording.
fn timed(java: &Waiting, options: &str, name: &str) -> u64 {
    record(java, &format!("cpu=times,cutoff=0,{options}"), name);
    java.tell("timed");
    stop(java, name);
    Report::read(&std::fs::read_to_string(java.path(name)).unwrap()).calls("Again$Timed.run")
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_jvm_is_recorded_more_than_once() {
    each_jdk("again", |jdk| {
        for from_start in [true, false] {
            let run = if from_start { jdk.run("heap=sites,cutoff=0,depth=8") } else { jdk.bare() };
            let java = run.jvm(&["-XX:+EnableDynamicAgentLoading"]).start(&["Again"]);
            java.wait_for("READY");
            if !from_start {
                refused(&java, "dump", "no recording is running in this JVM");
                refused(&java, "file=/nowhere/at/all", "/nowhere/at/all");
                refused(&java, "heap=some", "heap=some");
                record(&java, "heap=sites,cutoff=0,depth=8", "out");
            }
            java.tell("first");
            refused(&java, "cpu=samples", "a recording is already running in this JVM");
            stop(&java, "out");
            let text = std::fs::read(java.path("out")).unwrap();
            check(&text, Writer::Agent).unwrap();
            let report = Report::read(&String::from_utf8(text.clone()).unwrap());
            assert_eq!(report.of_method("Again$Leaf", "Again", "first"), [Count::of(1000, 16); 2]);

            // Nothing is recorded now, and nothing to be written.
            for word in ["dump", "stop"] {
                refused(&java, word, "it was stopped");
            }
            let told = property(jdk, &java);
            assert!(told.is_none_or(|told| told.contains("it was stopped")));
            java.tell("first");

            // What was recorded before is older than this recording.
            record(&java, "heap=all,cutoff=0,depth=8,format=b", "second");
            java.tell("second");
            stop(&java, "second");
            let second = java.path("second");
            cli("doctor", &second, &[]);
            let mut rows: Vec<_> = ask("sites", &second, &["--top", "0"])["rows"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|row| row["class"] == "Again$Leaf")
                .map(|row| (row["live_instances"].as_u64(), row["method"].as_str().map(str::to_owned)))
                .collect();
            rows.sort_unstable();
            assert_eq!(rows, [(Some(500), Some("Again.second".to_owned())), (Some(2000), None)]);
            let histogram = ask("histo", &second, &["Again$Leaf"]);
            assert_eq!(histogram["rows"][0]["instances"], 2500, "{histogram}");

            // Methods stay rewritten; they count for each recording by itself, if it wants them.
            assert_eq!(timed(&java, "depth=4", "third"), 10);
            assert_eq!(timed(&java, "depth=4", "fourth"), 10);
            assert_eq!(timed(&java, "filter=no.such", "fifth"), 0);
            let (status, dir, said) = java.end();
            assert!(status.success(), "{said:#?}");
            assert_eq!(std::fs::read(dir.path().join("out")).unwrap(), text);
        }
    });
}

/// Version 1 of the protocol has arguments of 1,024 bytes at most.
#[test]
fn long_options_are_for_jdk_24_and_later() {
    each_jdk("long options", |jdk| {
        let java = jdk.bare().jvm(&["-XX:+EnableDynamicAgentLoading"]).start(&["Wait"]);
        java.wait_for("READY");
        let options = format!("heap=some{}", "e".repeat(1500));
        refused(&java, &options, if jdk.release < 24 { "at most 1024 bytes" } else { "heap=some" });
    });
}

/// The signal that a JVM opens its socket at would end it.
#[test]
fn what_is_no_jvm_is_left_alone() {
    let mut sleep = Command::new("sleep").arg("600").spawn().unwrap();
    let said = load(sleep.id(), "dump").unwrap_err();
    let runs = sleep.try_wait().unwrap().is_none();
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    assert!(said.contains("is not a JVM") && runs, "{said}");
    let said = load(u32::MAX, "dump").unwrap_err();
    assert!(said.contains("there is no process"), "{said}");
}
