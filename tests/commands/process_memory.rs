//! `memory` with files: saved accounts of processes, right and wrong ones. Tests with JVMs are in tests/agent/memory.rs.

use std::fs;

use serde_json::Value;

use crate::kit::process::{Folder, stderr};
use crate::kit::random::Random;

/// Copies a file of `samples/process` into a folder; returns its path.
fn copy(folder: &Folder, name: &str) -> String {
    folder.write(name, fs::read(format!("samples/process/{name}")).unwrap())
}

/// Checks that the rows and the unexplained rest sum to the process; returns the sum.
fn sum(document: &Value) -> u64 {
    let rows = document["rows"].as_array().unwrap().iter();
    let sum: u64 = rows.map(|row| row["resident_bytes"].as_u64().unwrap()).sum();
    let sum = sum + document["unexplained_bytes"].as_u64().unwrap();
    assert_eq!(document["process_bytes"], sum, "{document}");
    sum
}

fn resident(document: &Value, kind: &str) -> u64 {
    let mut rows = document["rows"].as_array().unwrap().iter();
    rows.find(|row| row["kind"] == kind).map_or(0, |row| row["resident_bytes"].as_u64().unwrap())
}

/// Adds up a key of `smaps`.
fn key(smaps: &str, name: &str) -> u64 {
    let lines = smaps.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    lines.map(|value| value.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10).sum()
}

#[test]
fn copies_of_the_kernels_and_the_jvms_account_add_up() {
    let folder = Folder::new();
    // 24 MiB of direct buffers, 12 MiB of compressors, 16 MiB in the heap, 20 threads with 9.7 MiB of stacks.
    let (smaps, nmt) = (copy(&folder, "mix-jdk17-g1.smaps"), copy(&folder, "mix-jdk17-g1.nmt"));
    let found = folder.json(&["memory", &smaps, "--nmt", &nmt]);
    assert_eq!(sum(&found), key(&fs::read_to_string("samples/process/mix-jdk17-g1.smaps").unwrap(), "Pss"));
    let is_near =
        |found: u64, planted: u64| assert!(found.abs_diff(planted) * 20 <= planted, "{found} {planted}");
    is_near(resident(&found, "direct_buffers"), 25_165_824);
    is_near(resident(&found, "thread_stacks"), 10_158_080 + 600_000);
    // The compressors are not counted by the JVM. Queues of G1 are (5 MiB), and were not written to: they are taken for
    // resident.
    let unexplained = found["unexplained_bytes"].as_u64().unwrap();
    assert!((8 << 20..14 << 20).contains(&unexplained), "{found}");
    // Without the JVM's account, nothing names malloc.
    let less = folder.json(&["memory", &smaps]);
    assert_eq!(sum(&less), sum(&found));
    assert_eq!(resident(&less, "direct_buffers"), 0);
    // A healthy program of another collector: nothing is unexplained, no advice.
    let (smaps, nmt) = (copy(&folder, "hello-jdk25-z.smaps"), copy(&folder, "hello-jdk25-z.nmt"));
    let found = folder.json(&["memory", &smaps, "--nmt", &nmt]);
    let process = sum(&found);
    assert!(found["unexplained_bytes"].as_u64().unwrap() * 100 <= process * 3, "{found}");
    assert_eq!(found["advice_lines"], Value::Array(Vec::new()));
}

#[test]
fn files_that_lie_are_read_as_far_as_they_are_possible() {
    let folder = Folder::new();
    let smaps = fs::read("samples/process/mix-jdk17-g1.smaps").unwrap();
    let nmt = fs::read("samples/process/mix-jdk17-g1.nmt").unwrap();
    let nmt_path = folder.write("right.nmt", &nmt);
    let mut random = Random(63);
    let check = |smaps: &[u8], nmt: &str| {
        let path = folder.write("lies.smaps", smaps);
        let output = folder.run(&["memory", &path, "--nmt", nmt, "--format", "json"]);
        match output.status.code() {
            Some(0 | 1 | 3) => {
                sum(&serde_json::from_slice(&output.stdout).unwrap());
            }
            code => {
                assert_eq!(code, Some(2), "{}", stderr(&output));
                assert!(
                    stderr(&output).len() < 2000 && !stderr(&output).contains("panicked"),
                    "{}",
                    stderr(&output)
                );
            }
        }
    };
    // Cut anywhere, and with bytes changed.
    for _ in 0..40 {
        let mut bytes = smaps.clone();
        bytes.truncate(random.below(bytes.len()));
        check(&bytes, &nmt_path);
        let mut bytes = smaps.clone();
        for _ in 0..50 {
            let at = random.below(bytes.len());
            bytes[at] = u8::try_from(random.below(256)).unwrap();
        }
        check(&bytes, &nmt_path);
        let mut bytes = nmt.clone();
        for _ in 0..20 {
            let at = random.below(bytes.len());
            bytes[at] = b"0123456789KMG-=# \n"[random.below(18)];
        }
        check(&smaps, &folder.write("lies.nmt", &bytes));
    }
    // Numbers that no process has; ranges that overlap, or lie backwards.
    let lies = "7f0000000000-7f0000100000 rw-p 00000000 00:00 0\nRss: 18446744073709551615 kB\nPss: 99999999999999999999 kB\n\
        7f0000080000-7f0000200000 rw-p 00000000 00:00 0\nRss: 100 kB\nPss: 100 kB\n\
        7f0000000000-0 rw-p 00000000 00:00 0\n0-ffffffffffffffff rw-p 00000000 00:00 0\nPss: -5 kB\n";
    check(lies.as_bytes(), &nmt_path);
    let total = "Total: reserved=18446744073709551615KB, committed=1\n- Java Heap (reserved=18446744073709551615, committed=9)\n";
    check(&smaps, &folder.write("huge.nmt", format!("{total} (mmap: reserved=144115188075855872, committed=144115188075855872)\n- Other (reserved=1, committed=1)\n (malloc=144115188075855872 #1)\n- A (reserved=1, committed=1)\n (malloc=144115188075855872 #18446744073709551615)\n")));
}

#[test]
fn names_of_files_are_escaped_and_hidden() {
    let folder = Folder::new();
    let smaps = "7f0000000000-7f0010000000 rw-s 00000000 fe:00 12    /data/\u{1b}[31msecret\\012x\nRss: 200000 kB\nPss: 200000 kB\n";
    let path = folder.write("names.smaps", smaps);
    let shown = String::from_utf8(folder.stdout(&["memory", &path])).unwrap();
    assert!(shown.contains("secret") && !shown.contains('\u{1b}'), "{shown}");
    for format in ["table", "json", "csv"] {
        let hidden =
            String::from_utf8(folder.stdout(&["memory", &path, "--no-values", "--format", format])).unwrap();
        assert!(!hidden.contains("secret"), "{hidden}");
        assert!(hidden.contains("mapped") && !hidden.is_empty(), "{hidden}");
    }
}

#[test]
fn what_is_no_account_is_said() {
    let folder = Folder::new();
    let smaps = copy(&folder, "hello-jdk25-z.smaps");
    let maps = folder.write("maps", "7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n");
    let text = folder.write("text", "Native memory tracking is not enabled\n");
    let damaged = folder.write("saved.json", "{\"hprof_cli_memory\":1,\"pid\":");
    let newer = folder
        .write("newer.json", "{\"hprof_cli_memory\":99,\"pid\":null,\"main_class\":null,\"sources\":{}}");
    for (arguments, said) in [
        (&["memory", &maps][..], "Pss:"),
        (&["memory", &smaps, "--nmt", &text], "VM.native_memory"),
        (&["memory", &damaged], "damaged"),
        (&["memory", &newer], "version"),
        (&["memory", &smaps, "--watch", "1s"], "needs a running JVM"),
        (&["memory", &smaps, "--process", &smaps], "is not a dump"),
        (&["memory", "no-such-file-or-process"], "no running JVM"),
    ] {
        let output = folder.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
    }
}
