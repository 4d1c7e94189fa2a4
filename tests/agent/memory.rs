//! `memory` with JVMs: planted memory is in its row, and the rows sum to what the kernel counts.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::capture::finish;
use crate::kit::{Jdk, Waiting, each_jdk};

/// MiB of direct buffers, and of the mapped file.
const MIB: u64 = 64;
/// Number of threads.
const THREADS: u64 = 50;

fn memory(target: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    command.arg("memory").arg(target).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the document about a process or file.
fn document(target: &str, arguments: &[&str]) -> Value {
    let (output, said) = finish(memory(target, &[arguments, &["--format", "json"]].concat()));
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the row of a kind of memory.
fn row<'d>(document: &'d Value, kind: &str) -> &'d Value {
    let mut rows = document["rows"].as_array().unwrap().iter();
    rows.find(|row| row["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {document}"))
}

fn resident(document: &Value, kind: &str) -> u64 {
    row(document, kind)["resident_bytes"].as_u64().unwrap()
}

/// Checks that a number is within five percent of what was planted.
fn is_near(found: u64, planted: u64, what: &str) {
    assert!(found.abs_diff(planted) * 20 <= planted, "{what}: {found} for {planted}");
}

/// Checks that the rows and the unexplained rest sum to the process, and that the process is what the kernel counts.
fn adds_up(document: &Value, pid: u32) {
    let rows = document["rows"].as_array().unwrap().iter();
    let sum: u64 = rows.map(|row| row["resident_bytes"].as_u64().unwrap()).sum();
    let process = document["process_bytes"].as_u64().unwrap();
    assert_eq!(sum + document["unexplained_bytes"].as_u64().unwrap(), process, "{document}");
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    let pss: u64 = pss.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    // Between the two, the JVM answers, and other processes share its files.
    assert!(process.abs_diff(pss << 10) < 16 << 20, "{process} {pss}");
}

fn start(jdk: &Jdk, options: &[&str]) -> Waiting {
    let (mib, threads) = (MIB.to_string(), THREADS.to_string());
    let java = jdk.bare().jvm(options).start(&["Planted", &mib, &threads]);
    java.wait_for("READY");
    java
}

#[test]
fn planted_memory_is_in_its_row() {
    each_jdk("the ledger of a process", |jdk| {
        let collectors: &[&str] =
            if jdk.release >= 17 { &["-XX:+UseG1GC", "-XX:+UseZGC"] } else { &["-XX:+UseSerialGC"] };
        for collector in collectors {
            let java = start(jdk, &[collector, "-XX:NativeMemoryTracking=summary"]);
            let pid = java.pid().to_string();
            let found = document(&pid, &[]);
            adds_up(&found, java.pid());
            assert_eq!(found["is_tracking"], true);
            is_near(resident(&found, "direct_buffers"), MIB << 20, collector);
            is_near(resident(&found, "mapped_files"), MIB << 20, collector);
            assert!(row(&found, "thread_stacks")["count"].as_u64().unwrap() >= THREADS);
            let (unexplained, process) =
                (found["unexplained_bytes"].as_u64().unwrap(), found["process_bytes"].as_u64().unwrap());
            assert!(
                unexplained * 20 <= process,
                "{collector} on {}: {unexplained} of {process}",
                jdk.release
            );
            let sentence = found["sentence"].as_str().unwrap();
            assert!(sentence.contains("direct buffers") && sentence.contains("mapped files"), "{sentence}");
            // Hidden values change what is shown, not what is computed.
            let hidden = document(&pid, &["--no-values"]);
            is_near(resident(&hidden, "mapped_files"), MIB << 20, "hidden");
            assert_eq!(row(&hidden, "mapped_files")["holder"], Value::Null);
            assert!(row(&found, "mapped_files")["holder"].as_str().unwrap().ends_with("planted.dat"));
        }
    });
}

#[test]
fn a_dump_says_who_holds_buffers() {
    each_jdk("the ledger with a dump", |jdk| {
        let java = start(jdk, &[]);
        let pid = java.pid().to_string();
        let found = document(&pid, &[]);
        adds_up(&found, java.pid());
        assert_eq!(found["is_tracking"], false);
        assert!(found["unexplained_bytes"].as_u64().unwrap() >= MIB << 20);
        let advice = found["advice_lines"].to_string();
        assert!(advice.contains("-XX:NativeMemoryTracking=summary") && advice.contains("--dump"), "{advice}");
        let dump = java.path("heap.hprof");
        let dump = dump.to_str().unwrap();
        let mut taking = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
        taking.args(["dump", &pid, "--yes", "--no-overview", "--output", dump]).stderr(Stdio::piped());
        let (output, said) = finish(taking);
        assert!(output.status.success(), "{said}");
        let found = document(&pid, &["--dump", dump]);
        adds_up(&found, java.pid());
        is_near(resident(&found, "direct_buffers"), MIB << 20, "with a dump");
        assert_eq!(row(&found, "direct_buffers")["holder"], "Planted.pool");
        assert_eq!(row(&found, "mapped_files")["holder"], "Planted.mapped");
        // A saved file says the same later, alone and beside the dump.
        let saved = java.path("process.json");
        let saved = saved.to_str().unwrap();
        let live = document(&pid, &["--save", saved]);
        assert_eq!(std::fs::metadata(saved).unwrap().permissions().mode() & 0o777, 0o600);
        let later = document(saved, &[]);
        for key in ["rows", "process_bytes", "unexplained_bytes", "sentence", "cgroup", "pid"] {
            assert_eq!(live[key], later[key], "{key}");
        }
        let beside = document(dump, &["--process", saved]);
        assert_eq!(row(&beside, "direct_buffers")["holder"], "Planted.pool");
        assert_eq!(beside["process_bytes"], live["process_bytes"]);
        // Of the dump alone.
        let alone = document(dump, &[]);
        assert_eq!(alone["process_bytes"], Value::Null);
        is_near(row(&alone, "direct_buffers")["committed_bytes"].as_u64().unwrap(), MIB << 20, "the dump");
    });
}

#[test]
fn rounds_show_what_grew_until_the_process_ends() {
    each_jdk("rounds of the ledger", |jdk| {
        let java = start(jdk, &[]);
        let pid = java.pid().to_string();
        let (output, said) = finish(memory(&pid, &["--watch", "1s", "--for", "2s"]));
        assert!(output.status.success(), "{said}");
        let lines = String::from_utf8(output.stdout).unwrap();
        // A title, a line each second, the sum.
        assert!((4..=6).contains(&lines.lines().count()), "{lines}");
        assert!(lines.lines().last().unwrap().contains(" in "), "{lines}");
        let watching = memory(&pid, &["--watch", "1s", "--for", "1m"]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1500));
        java.signal(rustix::process::Signal::KILL);
        let output = watching.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.contains("has ended"), "{said}");
    });
}
