//! Class histograms in files: what `jmap -histo` and `jcmd PID GC.class_histogram` printed, whole, damaged and hostile, alone
//! and among dumps.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::kit::process::{Folder, stderr};

/// Samples with a dump and a histogram of the same process.
const SAMPLES: [&str; 5] = ["jdk8", "jdk11", "jdk17", "jdk21-nocoops-noccp", "jdk25"];

fn sample(name: &str) -> String {
    fs::read_to_string(format!("samples/jdk/{name}.class_histogram.txt")).unwrap()
}

/// The counts of a row of an answer.
fn counts(row: &Value) -> (u64, u64) {
    (row["instances"].as_u64().unwrap(), row["shallow_bytes"].as_u64().unwrap())
}

/// Names in the rows of an answer.
fn classes(answer: &Value) -> Vec<&str> {
    answer["rows"].as_array().unwrap().iter().map(|row| row["class"].as_str().unwrap()).collect()
}

/// A complete histogram of these classes.
fn text(classes: &[(&str, u64, u64)]) -> String {
    let mut text = " num     #instances         #bytes  class name (module)\n------\n".to_owned();
    for (number, (class, instances, bytes)) in (1..).zip(classes) {
        text += &format!("{number:4}: {instances:13}  {bytes:13}  {class}\n");
    }
    let sum = |of: fn(&(&str, u64, u64)) -> u64| classes.iter().map(of).fold(0, u64::saturating_add);
    text + &format!("Total {:13}  {:13}\n", sum(|class| class.1), sum(|class| class.2))
}

#[test]
fn a_saved_histogram_has_the_counts_that_it_lists() {
    let folder = Folder::new();
    for name in SAMPLES {
        let saved = sample(name);
        let answer = folder.json(&["histo", &folder.write(name, &saved)]);
        let rows = answer["rows"].as_array().unwrap();
        // Read by columns: number, instances, bytes, name.
        let lines: Vec<Vec<&str>> = saved
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|words| words.len() >= 4 && words[0].trim_end_matches(':').parse::<u32>().is_ok())
            .collect();
        assert!(lines.len() > 200 && rows.len() == lines.len(), "{name}: {} rows", rows.len());
        let (mut found, mut expected) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        for row in rows {
            let class = row["class"].as_str().unwrap();
            assert!(!class.contains('@') && !class.starts_with('['), "{name}: {class}");
            if !class.contains("[]") {
                found.entry(class.to_owned()).or_default().push(counts(row));
            }
        }
        for words in lines.iter().filter(|words| !words[3].starts_with('[')) {
            let counts = (words[1].parse().unwrap(), words[2].parse().unwrap());
            // As in dumps of JDK 8, where a number follows the slash.
            let name = if name == "jdk8" { words[3].replace('/', ".") } else { words[3].to_owned() };
            expected.entry(name).or_default().push(counts);
        }
        found.values_mut().chain(expected.values_mut()).for_each(|counts| counts.sort_unstable());
        let differ: Vec<_> =
            expected.iter().filter(|(class, counts)| found.get(*class) != Some(counts)).collect();
        assert!(differ.is_empty() && found.len() == expected.len(), "{name}: {differ:?}");
        let bytes = rows.iter().find(|row| row["class"] == "byte[]").unwrap();
        let line = lines.iter().find(|words| words[3] == "[B").unwrap();
        assert_eq!(counts(bytes), (line[1].parse().unwrap(), line[2].parse().unwrap()), "{name}");
        assert_eq!(answer["dump"]["is_damaged"], false, "{name}");
    }
}

#[test]
fn a_dump_and_the_histogram_of_its_process_differ_in_little() {
    let folder = Folder::new();
    for name in SAMPLES {
        let dump = format!("samples/jdk/{name}.hprof.zst");
        let saved = folder.write(name, sample(name));
        let answer = folder.json(&["diff", &dump, &saved]);
        let rows = answer["rows"].as_array().unwrap();
        assert!(rows.len() > 200 && rows.iter().all(|row| row["loader"].is_null()), "{name}");
        let same = rows.iter().filter(|row| row["status"] == "same").count();
        assert!(same * 100 >= rows.len() * 95, "{name}: {same} of {}", rows.len());
        let packages = folder.json(&["diff", &dump, &saved, "--group-by", "package"]);
        assert!(packages["rows"].as_array().unwrap().len() > 20, "{name}");
    }
}

#[test]
fn names_that_differ_from_run_to_run_are_one() {
    let folder = Folder::new();
    let old = folder.write(
        "old",
        text(&[
            ("java.lang.String (java.base@17.0.15)", 10, 240),
            ("a.Plugin", 1, 16),
            ("a.Plugin", 2, 32),
            ("a.B$$Lambda$14/0x0000000801002a08", 3, 48),
            ("[Ljdk.internal.vm.FillerElement; (java.base@25.0.1)", 2, 1000),
            ("jdk.internal.vm.FillerObject (java.base@25.0.1)", 1, 8),
            ("[I (java.base@17.0.15)", 3, 100),
        ]),
    );
    let new = folder.write(
        "new",
        text(&[
            ("java.lang.String (java.base@21.0.8)", 10, 240),
            ("a.Plugin", 3, 48),
            ("a.B$$Lambda/0x00007f0001002a08", 3, 48),
            ("[I", 6, 1108),
        ]),
    );
    let output = folder.run(&["diff", &old, &new]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    let output = folder.run(&["diff", &old, &new, "--format", "json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(classes(&answer).len(), 4, "{answer}");
}

#[test]
fn what_needs_objects_is_refused_with_a_reason() {
    let folder = Folder::new();
    let saved = folder.write("saved", sample("jdk17"));
    let other = folder.write("other", sample("jdk11"));
    let dump = "samples/jdk/jdk17.hprof.zst";
    for arguments in [
        &["histo", &saved, "--retained"][..],
        &["histo", &saved, "--live"],
        &["histo", &saved, "--group-by", "loader"],
        &["diff", &saved, dump, "--retained"],
        &["diff", dump, &saved, "--group-by", "loader"],
        &["diff", &saved, &other, "--group-by", "place"],
        &["trend", &saved, &other, dump, "--group-by", "place"],
        &["leaks", &saved],
        &["dominators", &saved],
        &["sites", &saved],
        &["info", &saved],
    ] {
        let output = folder.run(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(
            said.contains("class histogram") && said.contains("counts and bytes by class"),
            "{arguments:?}: {said}"
        );
    }
    let said = stderr(&folder.run(&["leaks", &saved]));
    assert!(said.contains("histo, diff and trend read class histograms"), "{said}");
    // Which objects the file counts is not known.
    let said = stderr(&folder.run(&["histo", &saved, "0x7c00012a8"]));
    assert!(said.contains("contains no object IDs"), "{said}");
}

#[test]
fn a_damaged_histogram_is_read_as_far_as_it_goes() {
    let folder = Folder::new();
    let whole = sample("jdk17");
    for part in 0..24 {
        let end = whole.len() * part / 24;
        let output = folder.run(&["histo", &folder.write("cut", &whole[..end])]);
        // Less than a heading is no histogram.
        assert_eq!(output.status.code(), Some(if part == 0 { 2 } else { 3 }), "{part}: {}", stderr(&output));
        assert!(part == 0 || stderr(&output).contains("it is truncated"), "{}", stderr(&output));
    }
    // Rows are missing in the middle.
    let rows: Vec<&str> = whole.lines().collect();
    let gap = [&rows[..100], &rows[101..]].concat().join("\n");
    let output = folder.run(&["histo", &folder.write("gap", gap)]);
    assert!(
        output.status.code() == Some(3) && stderr(&output).contains("rows are missing"),
        "{}",
        stderr(&output)
    );
    // Other lines among them are skipped.
    let mixed =
        rows.iter().map(|row| format!("{row}\r\n[GC (Allocation Failure) 12M->3M]\r\n")).collect::<String>();
    let output = folder.run(&["histo", &folder.write("mixed", mixed), "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("are not part of a class histogram"), "{}", stderr(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(classes(&answer).len() > 400);
}

#[test]
fn hostile_histograms_do_no_harm() {
    let folder = Folder::new();
    let name = "a.\u{1b}[31mRed\u{7}\u{9b}";
    let evil = text(&[(name, u64::MAX, u64::MAX), ("a.B", u64::MAX, u64::MAX), (&"x".repeat(100_000), 1, 1)]);
    let evil = folder.write("evil", evil);
    let rounds = folder.write("rounds", format!("{0}{0}{0}", fs::read_to_string(&evil).unwrap()));
    let small = folder.write("small", text(&[("a.B", 1, 16)]));
    for format in ["table", "json", "csv", "markdown"] {
        for arguments in [
            &["histo", &evil][..],
            &["histo", &evil, "--group-by", "package"],
            &["diff", &evil, &small],
            &["diff", &small, &evil],
            &["trend", &rounds, "--all"],
        ] {
            let output = folder.run(&[arguments, &["--format", format]].concat());
            let shown = [&output.stdout[..], &output.stderr].concat();
            assert!(
                !shown.contains(&0x1b) && !shown.contains(&7),
                "{arguments:?}: {}",
                String::from_utf8_lossy(&shown)
            );
        }
    }
    let answer = folder.json(&["histo", &evil]);
    assert_eq!(answer["total"]["instances"].as_u64(), Some(u64::MAX));
    for bytes in [
        &b" num #instances #bytes\n"[..],
        b" num #instances #bytes\n1: 1 1 \xff\xfe\0\n",
        b"1: 1 1 A\n2: 2 2 B\n",
    ] {
        let output = folder.run(&["histo", &folder.write("bytes", bytes)]);
        assert!(matches!(output.status.code(), Some(2 | 3)), "{}", stderr(&output));
    }
}

#[test]
fn a_file_is_preferred_to_a_process_of_its_name() {
    let folder = Folder::new();
    let pid = std::process::id().to_string();
    folder.write(&pid, text(&[("a.B", 1, 16)]));
    let run = |pid: &str| {
        let mut command = folder.command(&["histo", pid]);
        command.current_dir(folder.path("")).stdin(Stdio::null()).output().unwrap()
    };
    let output = run(&pid);
    let said = stderr(&output);
    assert!(output.status.success() && said.contains("is a file, which is read, not the process"), "{said}");
    // No process has so large an ID.
    let output = run("4194304");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let output = folder.run(&["histo", &folder.text(&pid), "--via", "true"]);
    assert!(output.status.code() == Some(2) && stderr(&output).contains("--via is for a running JVM"));
}

#[test]
fn a_process_is_not_inspected_for_others() {
    let folder = Folder::new();
    let pid = std::process::id().to_string();
    for arguments in [&["histo", &pid, "--via", "touch made"][..], &["diff", &pid, &pid], &["trend", &pid]] {
        let mut command = folder.command(arguments);
        // A worker lives as long as its input.
        command.env(
            "HPROF_CLI_WORKER",
            r#"{"memory":null,"is_background":false,"takes_questions":false,"copies":[]}"#,
        );
        command.current_dir(folder.path("")).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = child.wait_with_output().unwrap();
        drop(input);
        let said = stderr(&output);
        assert!(
            output.status.code() == Some(2) && said.contains("processes cannot be inspected here"),
            "{said}"
        );
    }
    assert!(!folder.path("made").exists());
}

/// A file of rounds, ten seconds apart, with the bytes of classes.
fn rounds(classes: &[(&str, &[u64])]) -> String {
    let rounds = classes[0].1.len();
    let round = |at: usize| {
        let classes: Vec<(&str, u64, u64)> =
            classes.iter().map(|(class, bytes)| (*class, bytes[at] / 16, bytes[at])).collect();
        format!(
            "# class histogram pid=4711 time=2026-11-30T20:08:{:02}.000Z heap_max_bytes=1073741824 objects=all\n4711:\n{}\n",
            10 * at,
            text(&classes)
        )
    };
    (0..rounds).map(round).collect()
}

#[test]
fn rounds_in_a_file_name_what_grows() {
    let folder = Folder::new();
    const MIB: u64 = 1 << 20;
    let noise = &[190 * MIB, 20 * MIB, 120 * MIB, 80 * MIB, 200 * MIB];
    let leak = &[4_000_000, 4_180_000, 4_340_000, 4_520_000, 4_690_000];
    let file = folder.write("rounds.txt", rounds(&[("a.Leak", leak), ("[B", noise)]));
    let answer = folder.json(&["trend", &file]);
    assert_eq!(classes(&answer), ["a.Leak"]);
    assert_eq!(answer["rounds_verdict"], "judged");
    assert_eq!(answer["rows"][0]["values_by_dump"].as_array().unwrap().len(), 5);
    let hours = answer["hours_until_full"].as_f64().unwrap();
    assert!((13.0..17.0).contains(&hours), "{hours}");
    let table = String::from_utf8(folder.stdout(&["trend", &file])).unwrap();
    assert!(
        table.contains("1 row grew in every round") && table.contains("the heap of 1.0 GiB is full in"),
        "{table}"
    );
    // One round of it, and the last one.
    let answer = folder.json(&["histo", &file, "--run", "2"]);
    assert_eq!(answer["rows"][0]["shallow_bytes"], 20 * MIB);
    assert_eq!(folder.json(&["histo", &file])["rows"][0]["shallow_bytes"], 200 * MIB);
    let said = stderr(&folder.run(&["histo", &file, "--run", "6"]));
    assert!(said.contains("--run 1 to 5"), "{said}");
    // All noise, and all garbage.
    let healthy =
        folder.write("healthy", rounds(&[("[B", noise), ("a.B", &[MIB, 3 * MIB, 2 * MIB, MIB, 2 * MIB])]));
    assert_eq!(folder.run(&["trend", &healthy]).status.code(), Some(1));
    let garbage =
        folder.write("garbage", rounds(&[("[B", leak), ("a.B", &[MIB, 2 * MIB, 3 * MIB, 4 * MIB, 5 * MIB])]));
    let output = folder.run(&["trend", &garbage]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("no garbage was collected"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn histograms_and_dumps_are_compared_in_one_trend() {
    let folder = Folder::new();
    let first = folder.write("first", text(&[("java.lang.String", 1000, 24_000)]));
    let second = folder.write("second", text(&[("java.lang.String", 2000, 48_000)]));
    let dump = "samples/jdk/jdk17.hprof.zst";
    let answer = folder.json(&["trend", &first, &second, dump]);
    assert!(classes(&answer).contains(&"java.lang.String"), "{answer}");
    assert_eq!(answer["rounds_verdict"], "too_few");
    let output = folder.run(&["trend", &first, &second]);
    assert!(output.status.code() == Some(2) && stderr(&output).contains("`hprof-cli diff` compares two"));
}
