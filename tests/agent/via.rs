//! `jvms` and `dump` with `--via`: commands that run a program here stand in for those that run one elsewhere. Containers,
//! and places that have next to nothing, are in docs/capture/via.py, which needs root.

use std::path::PathBuf;
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

/// Files of helpers where shells put them.
fn helpers() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.to_string_lossy().contains("/.hprof-cli-helper-")).collect()
}

#[test]
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
            assert!(said.contains("over the connection; the program's threads stood still for"), "{said}");
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
fn an_interrupted_dump_leaves_nothing_there() {
    each_jdk("--via interrupted", |jdk| {
        let java = jdk.bare().start(&["HeapZoo", "8", "120000"]);
        java.wait_for("READY");
        for milliseconds in [20, 60, 150, 400, 800] {
            let path = java.path("interrupted.hprof");
            let arguments =
                ["dump", &*java.pid().to_string(), "--yes", "--no-overview", "-o", path.to_str().unwrap()];
            let mut child = via(COMMANDS[0], &arguments).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(milliseconds));
            child.kill().unwrap();
            child.wait().unwrap();
            // It may have been complete.
            let _ = std::fs::remove_file(&path);
            nothing_is_left(&java);
        }
        let start = Instant::now();
        while !helpers().is_empty() {
            assert!(start.elapsed() < Duration::from_secs(20), "{:?}", helpers());
            std::thread::sleep(Duration::from_millis(50));
        }
        // It still accepts commands.
        let (output, said) = finish(via(COMMANDS[0], &["dump", &java.pid().to_string(), "--dry-run"]));
        assert!(output.status.success(), "{said}");
    });
}

#[test]
fn what_answers_otherwise_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let version = concat!(env!("CARGO_PKG_VERSION"), "-1");
    for (name, script, says) in [
        ("old", "echo; echo $2-hello 0.0.1-1; cat".to_owned(), "is not of version"),
        ("zeros", format!("echo $2-hello {version}; cat /dev/zero"), "is damaged"),
        ("text", format!("echo $2-hello {version}; echo {{}}; cat"), "is damaged"),
        (
            "long",
            format!("echo $2-hello {version}; printf '\\000\\377\\377\\377\\377'; yes"),
            "unknown kind or length",
        ),
        ("ends", format!("echo $2-hello {version}; exit 3"), "ended before it had answered (exit status: 3)"),
        ("speaks", "yes".to_owned(), "does not answer like a shell"),
        ("fails", "printf 'bad\\033[31m\\n' >&2; exit 4".to_owned(), "via: bad\\u001b[31m"),
    ] {
        let program = dir.path().join(name);
        std::fs::write(&program, script).unwrap();
        let (output, said) = finish(via("sh", &["jvms", "--via-program", program.to_str().unwrap()]));
        assert!(output.status.code() == Some(2) && said.contains(says), "{name}: {said}");
        assert!(output.stdout.is_empty() && !said.contains('\u{1b}'), "{name}: {said}");
    }
    for (command, says) in [
        ("true", "does not answer like a shell"),
        ("exit 7;", "ended before the helper was there (exit status: 7)"),
        ("cat >/dev/null;", "does not answer like a shell"),
        ("/no/such/program", "ended before the helper was there (exit status: 127)"),
        (" ", "is empty"),
    ] {
        let (output, said) = finish(via(command, &["jvms"]));
        assert!(output.status.code() == Some(2) && said.contains(says), "{command}: {said}");
    }
    let mut none = via("env", &["jvms"]);
    none.env("HPROF_CLI_HELPER", "/dev/null/helper");
    let (output, said) = finish(none);
    assert!(output.status.code() == Some(2) && said.contains("which $HPROF_CLI_HELPER names"), "{said}");
}

#[test]
fn a_place_that_cannot_take_a_helper_is_told() {
    let dir = tempfile::tempdir().unwrap();
    // A shell that sees these answers of `uname` only.
    std::fs::write(dir.path().join("uname"), "#!/bin/sh\necho riscv64\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.path().join("uname"), mode).unwrap();
    let command = format!("env PATH={}:/usr/bin:/bin", dir.path().display());
    let (output, said) = finish(via(&command, &["jvms"]));
    assert!(output.status.code() == Some(2) && said.contains("the machine there is riscv64"), "{said}");
    assert!(helpers().is_empty());
}
