//! `jvms` and `dump` with `--via`: commands that run a program here stand in for those that run one elsewhere. Containers,
//! and places that have next to nothing, are in docs/capture/via.py, which needs root.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::capture::{finish, histogram, nothing_is_left, own_classes};
use crate::kit::{cli, each_jdk, helper, not_run};

fn via(command: &str, arguments: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    program.env("HPROF_CLI_HELPER", helper()).args(arguments).args(["--via", command]);
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    program
}

/// Commands that run a program: one that passes on words, and one that joins them for another shell, as `ssh` does.
const COMMANDS: [&str; 2] = ["env FAR=away", "sh -c 'exec sh -c \"$*\"' ssh"];

/// Returns a command that runs a program here, with helpers in a directory of its own.
fn here(dir: &Path) -> String {
    format!("env TMPDIR={}", dir.display())
}

/// Waits until no file of a directory has this start.
fn gone(dir: &Path, start: &str) {
    let began = Instant::now();
    let names = || {
        let entries = std::fs::read_dir(dir).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(start)).collect::<Vec<_>>()
    };
    // In /tmp, other tests dump other JVMs: what they create disappears, too.
    let first = names();
    while names().iter().any(|name| first.contains(name)) {
        // Longer than it takes on any machine.
        assert!(began.elapsed() < Duration::from_secs(300), "{:?}", names());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_dump_of_another_place_has_what_the_jvm_counts() {
    each_jdk("--via", |jdk| {
        if jdk.tool("jcmd").is_none() {
            return not_run("--via", "no jcmd");
        }
        let java = jdk.bare().jvm(&["-XX:+UsePerfData"]).start(&["HeapZoo", "1", "120000"]);
        java.wait_for("READY");
        let expected = own_classes(jdk, &java);
        for (command, name, options) in [
            (COMMANDS[0], "plain.hprof", &[][..]),
            (COMMANDS[1], "all.hprof.zst", &["--zstd", "--all"]),
            (COMMANDS[0], "live.hprof.gz", &["--gzip"]),
        ] {
            let path = java.path(name);
            let arguments = ["dump", &*java.pid().to_string(), "--yes", "--no-overview", "--output"];
            let arguments = [&arguments, &[path.to_str().unwrap()][..], options].concat();
            let (output, said) = finish(via(command, &arguments));
            assert!(output.status.success(), "{said}");
            assert!(said.contains("over the connection; the program's threads were paused for"), "{said}");
            cli("doctor", &path, &[]);
            let found = histogram(&path);
            for (class, counted) in &expected {
                assert_eq!(found.get(class), Some(counted), "{class} in {name} on {}", jdk.release);
            }
            nothing_is_left(&java);
        }
        let (output, said) = finish(via(COMMANDS[1], &["jvms", "--format", "json"]));
        let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(rows["dump"]["path"], COMMANDS[1], "{said}");
        let is_there = |row: &serde_json::Value| row["pid"] == java.pid() && row["main_class"] == "HeapZoo";
        assert!(rows["rows"].as_array().unwrap().iter().any(is_there), "{rows}");
        // What fails there is told as if it had failed here.
        let taken = java.path("plain.hprof");
        let (output, said) = finish(via(
            COMMANDS[0],
            &["dump", &java.pid().to_string(), "--yes", "-o", taken.to_str().unwrap()],
        ));
        assert!(output.status.code() == Some(2) && said.contains("--force replaces it"), "{said}");
        let (output, said) = finish(via(COMMANDS[0], &["dump", "999999999"]));
        assert!(output.status.code() == Some(2) && said.contains("there is no process 999999999"), "{said}");
    });
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn an_interrupted_dump_leaves_nothing_there() {
    each_jdk("--via interrupted", |jdk| {
        let java = jdk.bare().start(&["HeapZoo", "8", "120000"]);
        java.wait_for("READY");
        let dir = tempfile::tempdir().unwrap();
        let arguments = |path: &Path| {
            let pid = java.pid().to_string();
            ["dump", &pid, "--yes", "--no-overview", "-o", path.to_str().unwrap()].map(str::to_owned)
        };
        for milliseconds in [20, 60, 150, 400, 800] {
            let path = java.path("interrupted.hprof");
            let arguments = arguments(&path);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let mut child = via(&here(dir.path()), &arguments).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(milliseconds));
            child.kill().unwrap();
            child.wait().unwrap();
            // It may have been complete.
            let _ = std::fs::remove_file(&path);
            nothing_is_left(&java);
            gone(dir.path(), ".hprof-cli-helper-");
            gone(&std::env::temp_dir(), ".hprof-cli-dump-");
        }
        // It still accepts commands.
        let (output, said) = finish(via(COMMANDS[0], &["dump", &java.pid().to_string(), "--dry-run"]));
        assert!(output.status.success(), "{said}");
    });
}

/// Returns a frame of a helper: src/capture/remote/wire.rs.
fn frame(kind: u8, contents: &[u8]) -> Vec<u8> {
    let mut head = vec![kind];
    head.extend(u32::try_from(contents.len()).unwrap().to_le_bytes());
    let sum = xxhash_rust::xxh3::xxh3_64(&[&head, contents].concat());
    [&head, &sum.to_le_bytes()[..], contents].concat()
}

/// Answers of a helper to `dump 7 --yes`, up to the dump itself.
fn before_the_dump(way: &str) -> Vec<u8> {
    let row = r#"{"pid":7,"namespace_pid":7,"user":"u","kind":"HotSpot","main_class":"M\u001b[2J","java_version":"17",
        "collector":null,"heap_used_bytes":null,"heap_max_bytes":null,"uptime":null,"container":null,"has_counters":false}"#;
    let plan = format!(
        r#"{{"row":{row},"release":17,"way":"{way}","is_live":true,"compression":"Zstd","heap_used_bytes":1,"dump_bytes":1,
        "place":"/tmp","inner":"/tmp","needed_bytes":0,"free_bytes":null,"tight":null,"is_segmented":false,
        "standstill":{{"secs":1,"nanos":0}},"bytes_per_second":1}}"#
    );
    [frame(0, format!(r#"{{"Row":{row}}}"#).as_bytes()), frame(0, format!(r#"{{"Plan":{plan}}}"#).as_bytes())]
        .concat()
}

fn taken(dump_bytes: u64, sent_bytes: u64) -> Vec<u8> {
    let text = format!(
        r#"{{"Taken":{{"dumped":{{"dump_bytes":{dump_bytes},"standstill":{{"secs":1,"nanos":0}},"sent_bytes":null,
        "is_measured":true}},"sent_bytes":{sent_bytes}}}}}"#
    );
    frame(0, text.as_bytes())
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_hostile_helper_gives_no_dump() {
    let dir = tempfile::tempdir().unwrap();
    let dump = zstd::encode_all(&b"JAVA PROFILE"[..], 1).unwrap();
    let (whole, half) = (dump.len() as u64, &dump[..dump.len() / 2]);
    let began = frame(0, br#"{"Began":{"stage":"\u001b]0;title\u0007","bytes":9}}"#);
    let fifo = before_the_dump("Fifo");
    for (name, answers, options, says) in [
        // First one that is right: without it, the others would fail for any reason.
        ("right", [&fifo[..], &began, &frame(1, &dump), &taken(12, whole)].concat(), &[][..], "wrote"),
        ("zstd", [&fifo[..], &frame(1, &dump), &taken(12, whole)].concat(), &["--zstd"], "wrote"),
        (
            "less",
            [&fifo[..], &frame(1, &dump), &taken(13, whole)].concat(),
            &[],
            "wrote 13 bytes, but 12 bytes were received",
        ),
        (
            "more",
            [&fifo[..], &frame(1, &dump), &taken(11, whole)].concat(),
            &["--zstd"],
            "wrote 11 bytes, but 12 bytes were received",
        ),
        (
            "half",
            [&fifo[..], &frame(1, half), &taken(12, half.len() as u64)].concat(),
            &["--zstd"],
            "were received",
        ),
        ("lost", [&fifo[..], &frame(1, half), &taken(12, whole)].concat(), &[], "were received"),
        (
            "junk",
            [&fifo[..], &frame(1, b"not zstd"), &taken(u64::MAX, 8)].concat(),
            &["--zstd"],
            "is damaged",
        ),
        ("text", [&fifo[..], &frame(1, b"not zstd"), &taken(8, 8)].concat(), &[], "is damaged"),
        ("ends", [&fifo[..], &frame(1, half)].concat(), &["--gzip"], "ended before the helper finished"),
        ("other", [&fifo[..], &frame(0, br#""Fine""#)].concat(), &[], "the reply to another request"),
        ("beside", before_the_dump("Beside"), &[], "the reply to another request"),
        ("told", frame(0, br#"{"Failed":{"Stopped":{"pid":7}}}"#), &[], "resume it there with kill -CONT 7"),
    ] {
        let (answers_file, program) = (dir.path().join("answers"), dir.path().join("helper"));
        std::fs::write(&answers_file, answers).unwrap();
        let version = concat!(env!("CARGO_PKG_VERSION"), "-2");
        // It reads requests: one that ended would break the connection before its answers are read.
        let last = if name == "ends" { "sleep 1" } else { "cat >/dev/null" };
        let script = format!("echo $2-hello {version}; cat {}; {last}", answers_file.display());
        std::fs::write(&program, script).unwrap();
        let out = dir.path().join("out.hprof");
        let arguments = ["dump", "7", "--yes", "--no-overview", "-o", out.to_str().unwrap()];
        let arguments = [&arguments, &["--via-program", program.to_str().unwrap()][..], options].concat();
        let (output, said) = finish(via("sh", &arguments));
        assert!(said.contains(says) && !said.contains(['\u{1b}', '\u{7}']), "{name}: {said}");
        let is_whole = ["right", "zstd"].contains(&name);
        assert_eq!(output.status.code(), Some(if is_whole { 0 } else { 2 }), "{name}: {said}");
        assert_eq!(out.exists(), is_whole, "{name}: {said}");
        let _ = std::fs::remove_file(&out);
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn what_answers_otherwise_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let version = concat!(env!("CARGO_PKG_VERSION"), "-2");
    for (name, script, says) in [
        ("old", "echo; echo $2-hello 0.0.1-1; cat".to_owned(), "does not have version"),
        ("zeros", format!("echo $2-hello {version}; cat /dev/zero"), "is damaged"),
        ("text", format!("echo $2-hello {version}; echo {{}}; cat"), "is damaged"),
        (
            "long",
            format!("echo $2-hello {version}; printf '\\000\\377\\377\\377\\377'; yes"),
            "unknown kind or length",
        ),
        (
            "ends",
            format!("echo $2-hello {version}; exit 3"),
            "ended before the helper finished (exit status: 3)",
        ),
        ("speaks", "yes".to_owned(), "does not start a shell, or uses a terminal"),
        ("fails", "printf 'bad\\033[31m\\n' >&2; exit 4".to_owned(), "via: bad\\u001b[31m"),
    ] {
        let program = dir.path().join(name);
        std::fs::write(&program, script).unwrap();
        let (output, said) = finish(via("sh", &["jvms", "--via-program", program.to_str().unwrap()]));
        assert!(output.status.code() == Some(2) && said.contains(says), "{name}: {said}");
        assert!(output.stdout.is_empty() && !said.contains('\u{1b}'), "{name}: {said}");
    }
    // Nobody is waited for for ever, however much is said.
    for (command, says) in [
        ("exec sleep 60;", "did not start a helper within 1 s"),
        ("while printf x; do sleep 0.01; done;", "did not start a helper within 1 s"),
        ("yes | tr -d '\\n';", "does not start a shell, or uses a terminal"),
    ] {
        let (output, said) = finish(via(command, &["dump", "1", "--timeout", "1s"]));
        assert!(output.status.code() == Some(2) && said.contains(says), "{command}: {said}");
    }
    for (command, says) in [
        ("true", "does not start a shell, or uses a terminal"),
        ("exit 7;", "ended before the helper started (exit status: 7)"),
        ("/no/such/program", "ended before the helper started (exit status: 127)"),
        (" ", "is empty"),
    ] {
        let (output, said) = finish(via(command, &["jvms"]));
        assert!(output.status.code() == Some(2) && said.contains(says), "{command}: {said}");
    }
    let mut none = via("env", &["jvms"]);
    none.env("HPROF_CLI_HELPER", "/dev/null/helper");
    let (output, said) = finish(none);
    assert!(
        output.status.code() == Some(2) && said.contains("$HPROF_CLI_HELPER is set to /dev/null/helper"),
        "{said}"
    );
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_place_that_cannot_take_a_helper_is_told() {
    let (dir, tools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tool = |name: &str, script: &str| {
        let path = tools.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
    };
    let command = format!("{} PATH={}:/usr/bin:/bin", here(dir.path()), tools.path().display());
    tool("uname", "echo riscv64");
    let (output, said) = finish(via(&command, &["jvms"]));
    assert!(output.status.code() == Some(2) && said.contains("the machine there is riscv64"), "{said}");
    std::fs::remove_file(tools.path().join("uname")).unwrap();
    // What does not become a program cannot be started; the next directory is tried.
    tool(
        "chmod",
        "case $(readlink $2) in */tmp/.hprof*) chmod=x;; esac; [ -z \"$chmod\" ] || exec /bin/chmod \"$@\"",
    );
    if dir.path().parent() == Some(Path::new("/tmp")) {
        let (output, said) = finish(via(&command, &["jvms", "--format", "json"]));
        // 1 if no JVM runs there.
        assert!(output.status.code() != Some(2) && said.contains("Permission denied"), "{said}");
    }
    // Without `rm`, it removes its own file.
    tool("rm", "exit 1");
    tool("chmod", "exec /bin/chmod \"$@\"");
    let (output, said) = finish(via(&command, &["jvms"]));
    assert!(output.status.code() != Some(2), "{said}");
    std::fs::remove_file(tools.path().join("rm")).unwrap();
    tool("cat", "case $# in 0) exit 1;; esac; exec /bin/cat \"$@\"");
    let (output, said) = finish(via(&command, &["jvms"]));
    assert!(output.status.code() == Some(2) && said.contains("no usable directory for the helper"), "{said}");
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn class_histograms_of_another_place_are_those_of_here() {
    each_jdk("histograms by --via", |jdk| {
        let java = jdk.bare().jvm(&["-XX:+UsePerfData"]).start(&["HeapZoo", "1", "120000"]);
        java.wait_for("READY");
        let pid = java.pid().to_string();
        let own = |program: Command| {
            let (output, said) = finish(program);
            assert!(output.status.success() && said.contains("stood still for"), "{said}");
            let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let rows = answer["rows"].as_array().unwrap().clone();
            rows.into_iter()
                .filter(|row| row["class"].as_str().unwrap().starts_with("HeapZoo"))
                .collect::<Vec<_>>()
        };
        let words = ["histo", &pid, "--format", "json"];
        let mut local = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
        local.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let expected = own(local);
        assert!(expected.len() >= 10, "{expected:?}");
        for command in COMMANDS {
            assert_eq!(own(via(command, &words)), expected, "{command}");
        }
        let (output, said) = finish(via(COMMANDS[0], &["trend", &pid, "--every", "300ms", "--for", "1s"]));
        assert!(output.status.code() == Some(1) && said.contains("round: 4: "), "{said}");
    });
}
