//! `jvms` and `dump` with JVMs: what is in a dump against the JVM's own histogram, and what is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::kit::{Jdk, Waiting, ask, class_histogram, cli, each_jdk, not_run};
use crate::process;

/// Collectors, as every JDK from 11 on has them.
const COLLECTORS: [&str; 3] = ["G1", "Serial", "Parallel"];

fn dump(pid: u32, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    command.arg("dump").arg(pid.to_string()).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn finish(mut command: Command) -> (Output, String) {
    let output = process::finish(command.spawn().unwrap());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

/// Takes a dump, which has to be a good one.
fn dumped(java: &Waiting, name: &str, arguments: &[&str]) -> std::path::PathBuf {
    let path = java.path(name);
    let to = ["--yes", "--no-overview", "--output", path.to_str().unwrap()];
    let (output, said) = finish(dump(java.pid(), &[&to, arguments].concat()));
    assert!(output.status.success(), "{arguments:?}: {said}");
    assert!(said.contains("were paused for"), "{said}");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    nothing_is_left(java);
    path
}

/// Fails to take a dump; returns what was said.
fn refused(java: &Waiting) -> String {
    let path = java.path("refused.hprof");
    let (output, said) = finish(dump(java.pid(), &["--yes", "--output", path.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(!path.exists());
    nothing_is_left(java);
    said
}

/// Waits until nothing of a dump is left where the JVM is: a process that was killed has a guard, which takes a moment.
pub fn nothing_is_left(java: &Waiting) {
    let own = std::fs::metadata(format!("/proc/{}", java.pid())).unwrap().uid();
    let start = Instant::now();
    loop {
        let places = [java.path(""), std::env::temp_dir()];
        let entries = places.iter().flat_map(|place| std::fs::read_dir(place).unwrap()).flatten();
        let left: Vec<_> = entries
            .filter(|entry| entry.metadata().is_ok_and(|there| there.uid() == own))
            .map(|entry| entry.path())
            .filter(|path| {
                let name = path.file_name().unwrap().to_string_lossy();
                // Other tests dump other JVMs to /tmp.
                let is_here = path.parent() == Some(&java.path(""));
                name == *format!(".attach_pid{}", java.pid()) || is_here && name.starts_with(".hprof-cli")
            })
            .collect();
        if left.is_empty() {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn histogram(dump: &Path) -> BTreeMap<String, (u64, u64)> {
    let rows = ask("histo", dump, &["--top", "0"]);
    let mut classes = BTreeMap::<String, (u64, u64)>::new();
    for row in rows["rows"].as_array().unwrap() {
        let class = classes.entry(row["class"].as_str().unwrap().to_owned()).or_default();
        class.0 += row["instances"].as_u64().unwrap();
        class.1 += row["shallow_bytes"].as_u64().unwrap();
    }
    classes
}

/// The program's own classes, as the JVM counts them at this moment.
pub fn own_classes(jdk: &Jdk, java: &Waiting) -> BTreeMap<String, (u64, u64)> {
    let mut classes = class_histogram(&jdk.jcmd(java.pid(), &["GC.class_histogram"]));
    // Names of hidden classes differ.
    classes.retain(|class, _| class.starts_with("HeapZoo") && !class.contains("$$Lambda"));
    assert!(classes.len() >= 10, "{classes:?}");
    classes
}

#[test]
fn dumps_have_what_the_jvm_counts() {
    each_jdk("captured dumps", |jdk| {
        if jdk.tool("jcmd").is_none() {
            return not_run("captured dumps", "no jcmd");
        }
        for collector in COLLECTORS {
            let options = [&*format!("-XX:+Use{collector}GC"), "-XX:+UsePerfData"];
            let java = jdk.bare().jvm(&options).start(&["HeapZoo", "1", "120000"]);
            java.wait_for("READY");
            let expected = own_classes(jdk, &java);
            for (name, arguments) in [("live.hprof", &[][..]), ("all.hprof.zst", &["--zstd", "--all"])] {
                let path = dumped(&java, name, arguments);
                cli("doctor", &path, &[]);
                let found = histogram(&path);
                let found: BTreeMap<_, _> = expected
                    .keys()
                    .map(|class| (class.clone(), found.get(class).copied().unwrap_or_default()))
                    .collect();
                assert_eq!(found, expected, "{collector} {name} on {}", jdk.release);
            }
            let rows = cli("jvms", "--format=json".as_ref(), &[]);
            let rows: serde_json::Value = serde_json::from_slice(&rows.stdout).unwrap();
            let row = rows["rows"].as_array().unwrap().iter().find(|row| row["pid"] == java.pid());
            let row = row.unwrap_or_else(|| panic!("{rows}"));
            assert_eq!(
                (&row["main_class"], &row["collector"]),
                (&"HeapZoo".into(), &collector.into()),
                "{row}"
            );
            // 400 MiB, rounded up to what the collector can use.
            let max = row["heap_max_bytes"].as_u64().unwrap() >> 20;
            assert!((380..=400).contains(&max) && row["heap_used_bytes"].as_u64() > Some(1 << 20), "{row}");
        }
    });
}

#[test]
fn a_dump_goes_to_stdout() {
    each_jdk("a dump to stdout", |jdk| {
        let java = jdk.bare().start(&["Wait"]);
        java.wait_for("READY");
        let (output, said) = finish(dump(java.pid(), &["--yes", "--output", "-"]));
        assert!(output.status.success(), "{said}");
        // This JVM publishes nothing.
        assert!(said.contains("at most"), "{said}");
        let path = java.path("stdout.hprof");
        std::fs::write(&path, output.stdout).unwrap();
        cli("doctor", &path, &[]);
        // What exists stays; without a terminal, nobody can be asked.
        let existing = path.to_str().unwrap();
        let (output, said) = finish(dump(java.pid(), &["--yes", "--output", existing]));
        assert!(output.status.code() == Some(2) && said.contains("already exists"), "{said}");
        let (output, said) = finish(dump(java.pid(), &["--force", "--output", existing]));
        assert!(output.status.code() == Some(2) && said.contains("--yes"), "{said}");
        let (output, said) = finish(dump(java.pid(), &["--dry-run", "--format", "json"]));
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(plan["rows"][0]["dump_estimate_bytes"].as_u64() > Some(1 << 20), "{said} {plan}");
        cli("doctor", &path, &[]);
        nothing_is_left(&java);
    });
}

#[test]
fn values_are_replaced_on_the_way() {
    each_jdk("dump --redact", |jdk| {
        const SECRET: &str = "hunter2-of-customer-4711";
        if jdk.tool("jcmd").is_none() {
            return not_run("dump --redact", "no jcmd");
        }
        let option = format!("-Dacme.secret={SECRET}");
        let java = jdk.bare().jvm(&[&option]).start(&["HeapZoo", "1", "120000"]);
        java.wait_for("READY");
        let holds =
            |path: &Path| memchr::memmem::find(&std::fs::read(path).unwrap(), SECRET.as_bytes()).is_some();
        assert!(holds(&dumped(&java, "plain.hprof", &[])));
        let expected = own_classes(jdk, &java);
        let path = dumped(&java, "redacted.hprof", &["--redact"]);
        assert!(!holds(&path));
        cli("doctor", &path, &[]);
        let found = histogram(&path);
        for (class, counted) in &expected {
            assert_eq!(found.get(class), Some(counted), "{class} on {}", jdk.release);
        }
        let manifest = std::fs::read_to_string(java.path("redacted.hprof.manifest.json")).unwrap();
        assert!(manifest.contains("arrays_mapped"), "{manifest}");
        let packed = dumped(&java, "redacted.hprof.zst", &["--redact", "--zstd"]);
        cli("doctor", &packed, &[]);
        assert!(!holds(&packed));
        // To stdout, and the plan says so.
        let (output, said) = finish(dump(java.pid(), &["--yes", "--redact", "--output", "-"]));
        assert!(output.status.success() && said.contains("values were redacted"), "{said}");
        assert!(memchr::memmem::find(&output.stdout, SECRET.as_bytes()).is_none());
        let (output, said) = finish(dump(java.pid(), &["--dry-run", "--redact", "--format", "json"]));
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&plan["rows"][0]["is_redacted"], &plan["rows"][0]["transfer"] != "file"),
            (&true.into(), true),
            "{said}"
        );
    });
}

#[test]
fn a_jvm_that_accepts_no_commands_is_left_alone() {
    each_jdk("no commands", |jdk| {
        for option in ["-XX:+UsePerfData", "-XX:-UsePerfData"] {
            let java = jdk.bare().jvm(&["-XX:+DisableAttachMechanism", option]).start(&["Wait"]);
            java.wait_for("READY");
            let said = refused(&java);
            assert!(said.contains("-XX:+DisableAttachMechanism"), "{said}");
            let (status, _, said) = java.end();
            // A signal would have made it print its threads.
            assert!(
                status.success() && !said.iter().any(|line| line.contains("Full thread dump")),
                "{said:?}"
            );
        }
        let java = jdk.bare().start(&["Wait"]);
        java.wait_for("READY");
        java.signal(Signal::STOP);
        let said = refused(&java);
        assert!(said.contains("is stopped") && said.contains("kill -CONT"), "{said}");
        java.signal(Signal::CONT);
        dumped(&java, "goes-on.hprof", &[]);
        // It opens its socket at once, and would be ended by a signal.
        let java = jdk.bare().jvm(&["-Xrs"]).start(&["Wait"]);
        java.wait_for("READY");
        dumped(&java, "no-signal.hprof", &[]);
        std::fs::remove_file(format!("/tmp/.java_pid{}", java.pid())).unwrap();
        let said = refused(&java);
        assert!(said.contains("does not handle SIGQUIT"), "{said}");
        assert!(java.end().0.success());
    });
}

/// Returns the names of directories of dumps in these places.
fn directories(places: &[PathBuf]) -> BTreeSet<PathBuf> {
    let entries = places.iter().flat_map(|place| std::fs::read_dir(place).unwrap()).flatten();
    let is_one = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(".hprof-cli-dump-");
    entries.map(|entry| entry.path()).filter(is_one).collect()
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_killed_dump_leaves_nothing_and_the_jvm_goes_on() {
    each_jdk("killed dumps", |jdk| {
        let java = jdk.bare().start(&["HeapZoo", "1", "120000"]);
        java.wait_for("READY");
        // Where the JVM writes: beside the file, or to its /tmp.
        let places = [java.path(""), PathBuf::from("/tmp")];
        for (signal, arguments) in [
            (Signal::KILL, &[][..]),
            (Signal::INT, &[]),
            (Signal::KILL, &["--gzip"]),
            (Signal::TERM, &["--zstd"]),
        ] {
            let mut met = 0;
            // The last ones as soon as the directory exists.
            let waits = [0, 20, 40, 60, 100, 200, 400].map(|wait| Some(Duration::from_millis(wait)));
            for (at, wait) in waits.into_iter().chain([None; 3]).enumerate() {
                let path = java.path(&format!("killed-{at}-{}.hprof", signal.as_raw()));
                let to = ["--yes", "--no-overview", "--force", "--output", path.to_str().unwrap()];
                let mut child = dump(java.pid(), &[&to, arguments].concat()).spawn().unwrap();
                let (start, before) = (Instant::now(), directories(&places));
                // Other tests dump other JVMs to /tmp: all that appear meanwhile have to go.
                let mut mine = BTreeSet::new();
                while child.try_wait().unwrap().is_none() {
                    mine = directories(&places).difference(&before).cloned().collect();
                    let is_met = !mine.is_empty();
                    if wait.map_or(is_met, |wait| start.elapsed() >= wait) {
                        met += u32::from(is_met);
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                let pid = rustix::process::Pid::from_child(&child);
                let _ = rustix::process::kill_process(pid, signal);
                let mut said = String::new();
                child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                child.wait().unwrap();
                nothing_is_left(&java);
                let end = Instant::now();
                while mine.iter().any(|directory| directory.exists()) {
                    assert!(end.elapsed() < Duration::from_secs(30), "{mine:?} {signal:?} {arguments:?}");
                    std::thread::sleep(Duration::from_millis(20));
                }
                if path.exists() {
                    cli("doctor", &path, &[]);
                }
            }
            assert!(met > 0, "no kill met a directory: {signal:?} {arguments:?}");
            dumped(&java, &format!("after-{}-{}.hprof", signal.as_raw(), arguments.len()), &[]);
        }
    });
}
