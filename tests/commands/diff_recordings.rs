//! `diff --group-by sites`, `cpu`, `cputime` and `flamegraph --baseline`: what two recordings of the agent say, against what
//! `sites`, `cpu`, `cputime` and `flamegraph` say of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::kit::process::{Place, stderr};

/// A file of the agent.
fn agent(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/agent").join(name)
}

fn diff(old: &Path, new: &Path, more: &[&str]) -> Output {
    let arguments = [&["diff", new.to_str().unwrap()][..], more].concat();
    Place::of(old).run(&arguments)
}

fn parsed(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

/// Returns a command's answer about one file.
fn said(command: &str, file: &Path) -> Value {
    parsed(&Place::of(file).run(&[command, "--stack", "--format", "json"]))
}

fn rows(document: &Value) -> &[Value] {
    document["rows"].as_array().unwrap()
}

/// Returns frames as shown; native methods have no line, and text reports name no source for them.
fn frames(row: &Value) -> String {
    let frame = |frame: &Value| {
        let place = if frame["is_native"] == true {
            "native".to_owned()
        } else {
            format!("{}:{}", frame["source"], frame["line"])
        };
        format!("{}.{} {place}", frame["class"], frame["method"])
    };
    row["frames"].as_array().unwrap().iter().map(frame).collect::<Vec<_>>().join(" < ")
}

/// A class without the serial number that it is known by where a binary file does not name it.
fn class(row: &Value) -> String {
    let class = row["class"].as_str().unwrap();
    if !class.starts_with("<unknown ") {
        return class.to_owned();
    }
    class.replace(|c: char| c.is_ascii_digit(), "").replace(" >", ">")
}

/// Sums of figures by key.
fn sums<const N: usize>(
    document: &Value,
    key: impl Fn(&Value) -> String,
    figures: [&str; N],
) -> BTreeMap<String, [u64; N]> {
    let mut sums: BTreeMap<String, [u64; N]> = BTreeMap::new();
    for row in rows(document) {
        let sum = sums.entry(key(row)).or_insert([0; N]);
        for (sum, figure) in sum.iter_mut().zip(figures) {
            *sum += row[figure].as_u64().unwrap();
        }
    }
    sums
}

/// Checks that each row has the figures of both files, and that each key of either is one row.
fn assert_figures<const N: usize>(
    compared: &Value,
    key: impl Fn(&Value) -> String,
    figures: [&str; N],
    [old, new]: [&BTreeMap<String, [u64; N]>; 2],
) {
    let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
    keys.sort();
    keys.dedup();
    let mut found: Vec<String> = rows(compared).iter().map(&key).collect();
    found.sort();
    assert!(found.iter().eq(keys), "other rows");
    for row in rows(compared) {
        let key = key(row);
        let of = |sums: &BTreeMap<String, [u64; N]>| sums.get(&key).copied();
        let (before, after) = (of(old), of(new));
        let expected = match (before, after) {
            (None, _) => "new",
            (_, None) => "gone",
            (before, after) if before == after => "same",
            _ => "changed",
        };
        assert_eq!(row["status"], expected, "{row}");
        for (at, figure) in figures.iter().enumerate() {
            let (before, after) = (before.map_or(0, |of| of[at]), after.map_or(0, |of| of[at]));
            assert_eq!(row[format!("{figure}_old")], before, "{figure} of {row}");
            assert_eq!(row[format!("{figure}_new")], after, "{figure} of {row}");
            assert_eq!(row[format!("{figure}_delta")], after as i64 - before as i64, "{figure} of {row}");
        }
    }
}

const SITES: [&str; 4] = ["live_bytes", "live_instances", "allocated_bytes", "allocated_instances"];

fn site(row: &Value) -> String {
    format!("{} in {}", class(row), frames(row))
}

#[test]
fn sites_are_the_sites_of_both_files() {
    for (old, new) in [
        ("sites.hprof.zst", "sites.txt.zst"),
        ("sites.txt.zst", "sites.hprof.zst"),
        ("all.hprof.zst", "all-cpu.hprof.zst"),
        ("nolineno.txt.zst", "all-threads.txt.zst"),
    ] {
        let (old, new) = (agent(old), agent(new));
        let output = diff(&old, &new, &["--group-by", "sites", "--format", "json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let compared = parsed(&output);
        let [before, after] = [&old, &new].map(|file| sums(&said("sites", file), site, SITES));
        assert_figures(&compared, site, SITES, [&before, &after]);
        assert!(before.len() > 100 && after.len() > 100);
        let deltas =
            |row: &Value| [&row["live_bytes_delta"], &row["allocated_bytes_delta"]].map(Value::as_i64);
        assert!(rows(&compared).iter().map(deltas).rev().is_sorted());
        for (at, figure) in SITES.iter().enumerate() {
            let sum = |of: &BTreeMap<String, [u64; 4]>| of.values().map(|sums| sums[at]).sum::<u64>();
            assert_eq!(compared["total"][format!("{figure}_old")], sum(&before));
            assert_eq!(compared["total"][format!("{figure}_new")], sum(&after));
        }
        let changed = rows(&compared).iter().filter(|row| row["status"] != "same").count();
        assert_eq!(compared["total"]["rows"], changed);
    }
}

#[test]
fn the_same_program_has_the_same_sites_whatever_their_serial_numbers() {
    // Two runs of a nearly deterministic program: if traces were matched by serial numbers, most rows would differ.
    let compared = parsed(&diff(
        &agent("sites.hprof.zst"),
        &agent("sites.txt.zst"),
        &["--group-by", "sites", "--format", "json"],
    ));
    let same = rows(&compared).iter().filter(|row| row["status"] == "same").count();
    assert!(same * 10 > rows(&compared).len() * 9, "{same} of {}", rows(&compared).len());
    let serials = |name: &str| -> BTreeMap<String, u64> {
        let document = said("sites", &agent(name));
        rows(&document).iter().map(|row| (site(row), row["trace"].as_u64().unwrap())).collect()
    };
    let (old, new) = (serials("sites.hprof.zst"), serials("sites.txt.zst"));
    let moved = old.iter().filter(|(site, serial)| new.get(*site).is_some_and(|new| new != *serial)).count();
    assert!(moved > 0, "this pair shows nothing");
}

#[test]
fn patterns_and_sorting_of_sites() {
    let (old, new) = (agent("all.hprof.zst"), agent("all-cpu.hprof.zst"));
    let ask = |more: &[&str]| {
        let fixed = ["--group-by", "sites", "--format", "json"];
        parsed(&diff(&old, &new, &[&fixed[..], more].concat()))
    };
    let all = ask(&[]);
    let found = ask(&["java.util.**"]);
    let of_util = |row: &&Value| row["class"].as_str().unwrap().starts_with("java.util.");
    assert!(!rows(&found).is_empty() && rows(&found).len() < rows(&all).len());
    assert!(rows(&found).iter().eq(rows(&all).iter().filter(of_util)));
    let by_instances = ask(&["--sort", "instances"]);
    let instances = |row: &Value| row["live_instances_delta"].as_i64();
    assert!(rows(&by_instances).iter().map(instances).rev().is_sorted());
    let short = ask(&["--stack", "--depth", "1", "--top", "3"]);
    assert_eq!(rows(&short).len(), 3);
    assert!(rows(&short).iter().all(|row| row["frames"].as_array().unwrap().len() <= 1));
    let output = diff(&old, &new, &["no.such.Class", "--group-by", "sites"]);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true));
    assert!(stderr(&output).contains("no class matches no.such.Class"), "{}", stderr(&output));
}

#[test]
fn samples_are_the_samples_of_both_files() {
    for (old, new) in [
        ("busy-cpu-samples.hprof.zst", "busy-cpu-samples.txt"),
        ("busy-cpu-samples.hprof.zst", "cpu-samples.txt"),
        ("cpu-samples.txt", "all-cpu.hprof.zst"),
    ] {
        let (old, new) = (agent(old), agent(new));
        let output = diff(&old, &new, &["--group-by", "cpu", "--format", "json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let compared = parsed(&output);
        let documents = [said("cpu", &old), said("cpu", &new)];
        let [before, after] = documents.each_ref().map(|one| sums(one, frames, ["samples"]));
        let totals = documents.each_ref().map(|one| one["total"]["samples"].as_u64().unwrap());
        // Rows with as many samples differ if the runs do; these do.
        assert_ne!(totals[0], totals[1]);
        for row in rows(&compared) {
            let key = frames(row);
            let part = |of: &BTreeMap<String, [u64; 1]>, total: u64| {
                of.get(&key).map_or(0.0, |[samples]| *samples as f64 * 100.0 / total as f64)
            };
            let (old, new) = (part(&before, totals[0]), part(&after, totals[1]));
            let is = |key: &str, expected: f64| {
                let found = row[key].as_f64().unwrap();
                assert!((found - expected).abs() < 0.0101, "{key}: {found}, not {expected}, of {row}");
            };
            is("self_percent_old", old);
            is("self_percent_new", new);
            is("self_percent_delta", new - old);
            assert_eq!(row["samples_old"], before.get(&key).map_or(0, |[samples]| *samples));
            assert_eq!(row["samples_new"], after.get(&key).map_or(0, |[samples]| *samples));
            let status = match (before.contains_key(&key), after.contains_key(&key)) {
                (false, true) => "new",
                (true, false) => "gone",
                _ => "changed",
            };
            assert_eq!(row["status"], status);
        }
        let mut keys: Vec<String> = before.into_keys().chain(after.into_keys()).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(rows(&compared).len(), keys.len());
        let delta = |row: &Value| row["self_percent_delta"].as_f64().unwrap();
        assert!(rows(&compared).iter().map(delta).rev().is_sorted());
        assert_eq!(compared["total"]["samples_old"], totals[0]);
        assert_eq!(compared["total"]["samples_new"], totals[1]);
    }
}

#[test]
fn a_recording_and_itself_are_the_same() {
    for (file, by) in [
        ("sites.hprof.zst", "sites"),
        ("sites.txt.zst", "sites"),
        ("dump.txt.zst", "sites"),
        ("busy-cpu-samples.hprof.zst", "cpu"),
        ("cpu-samples.txt", "cpu"),
        ("cpu-times.txt", "cputime"),
    ] {
        let file = agent(file);
        let output = diff(&file, &file, &["--group-by", by]);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true), "{file:?}");
        assert!(stderr(&output).contains("note: nothing has changed"), "{}", stderr(&output));
        let output = diff(&file, &file, &["--group-by", by, "--format", "json", "-q"]);
        assert!(!rows(&parsed(&output)).is_empty());
        assert!(rows(&parsed(&output)).iter().all(|row| row["status"] == "same"));
        assert_eq!((output.status.code(), stderr(&output)), (Some(1), String::new()));
    }
}

#[test]
fn a_binary_file_and_its_text_are_the_same() {
    let place = Place::of(&agent("all-cpu.hprof.zst"));
    let text = place.path("all-cpu.txt");
    place.answer(&["convert", "-o", text.to_str().unwrap()]);
    for by in ["sites", "cpu"] {
        let output = place.run(&["diff", text.to_str().unwrap(), "--group-by", by]);
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn times_are_the_times_of_both_files() {
    // The only file with CPU TIME, and the same with other figures.
    let place = Place::of(&agent("cpu-times.txt"));
    let text = std::fs::read_to_string(&place.dump).unwrap();
    let (start, table) = text.split_once("CPU TIME (ms) BEGIN").unwrap();
    let first = table.lines().find(|line| line.trim_start().starts_with("1 ")).unwrap();
    let cells: Vec<&str> = first.split_whitespace().collect();
    let [rank, percent, accumulated, count, trace, method] = cells[..] else { panic!("{first}") };
    let other = format!("{rank} 1.00% {accumulated} 77 {trace} {method}");
    let changed = place.path("changed.txt");
    std::fs::write(&changed, format!("{start}CPU TIME (ms) BEGIN{}", table.replace(first, &other))).unwrap();
    let output = place.run(&["diff", changed.to_str().unwrap(), "--group-by", "cputime", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let document = parsed(&output);
    let row = rows(&document).iter().find(|row| row["status"] != "same").unwrap();
    let percent: f64 = percent.trim_end_matches('%').parse().unwrap();
    assert_eq!(row["method"], method);
    assert_eq!((&row["self_percent_old"], &row["self_percent_new"]), (&percent.into(), &1.0.into()));
    assert_eq!((row["count_old"].to_string(), row["count_new"].as_u64()), (count.to_owned(), Some(77)));
    assert_eq!(document["total"]["rows"], 1);
    // Shrinking rows come last.
    assert_eq!(rows(&document).last(), Some(row));
}

#[test]
fn what_cannot_be_compared_is_said() {
    let (sites, cpu, times) = (agent("sites.txt.zst"), agent("cpu-samples.txt"), agent("cpu-times.txt"));
    let cases: [(&Path, &Path, &[&str], &str); 12] = [
        (&sites, &cpu, &["--group-by", "sites"], "contains no allocation sites and no objects"),
        (&cpu, &sites, &["--group-by", "cpu"], "the HPROF agent records them with cpu=samples"),
        (&cpu, &times, &["--group-by", "cpu"], "contains CPU TIME, which --group-by cputime compares"),
        (&times, &cpu, &["--group-by", "cputime"], "contains CPU SAMPLES, which --group-by cpu compares"),
        (&times, &agent("cpu-old.txt.zst"), &["--group-by", "cputime"], "`hprof-cli cputime` shows"),
        (
            &sites,
            &sites,
            &["--group-by", "sites", "--live"],
            "--live cannot be used with --group-by sites; omit it",
        ),
        (
            &sites,
            &sites,
            &["--group-by", "sites", "--retained"],
            "--retained cannot be used with --group-by sites",
        ),
        (
            &sites,
            &sites,
            &["--group-by", "sites", "--sort", "retained"],
            "--sort retained cannot be used with --group-by sites",
        ),
        (&cpu, &cpu, &["--group-by", "cpu", "--sort", "bytes"], "--sort cannot be used with --group-by cpu"),
        (&cpu, &cpu, &["--group-by", "cpu", "--live"], "--live cannot be used with --group-by cpu"),
        (
            &times,
            &times,
            &["--group-by", "cputime", "--retained"],
            "--retained cannot be used with --group-by cputime",
        ),
        (&sites, &sites, &["--stack"], "--stack cannot be used with --group-by class"),
    ];
    for (old, new, more, message) in cases {
        let output = diff(old, new, more);
        assert_eq!(output.status.code(), Some(2), "{old:?} {new:?} {more:?}");
        assert!(stderr(&output).contains(message), "{more:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn only_live_objects_are_compared_with_counted_ones() {
    let output =
        diff(&agent("sites.txt.zst"), &agent("dump.txt.zst"), &["--group-by", "sites", "--format", "json"]);
    assert!(stderr(&output).contains("dump.txt.zst contains no allocation sites"), "{}", stderr(&output));
    let document = parsed(&output);
    assert_eq!((&document["old"]["origin"], &document["origin"]), (&"recorded".into(), &"objects".into()));
    assert!(rows(&document).iter().all(|row| row["allocated_bytes_delta"].is_null()));
    assert!(document["total"]["allocated_bytes_old"].is_null());
    let [before, after] = ["sites.txt.zst", "dump.txt.zst"]
        .map(|name| sums(&said("sites", &agent(name)), site, ["live_bytes", "live_instances"]));
    assert_figures(&document, site, ["live_bytes", "live_instances"], [&before, &after]);
}

/// The weights of folded lines by stack, without serial numbers of classes.
fn folded<const N: usize>(lines: &[u8]) -> BTreeMap<String, [u64; N]> {
    let mut all = BTreeMap::new();
    for line in std::str::from_utf8(lines).unwrap().lines() {
        let mut stack = line;
        let mut weights = [0; N];
        for weight in weights.iter_mut().rev() {
            let (rest, number) = stack.rsplit_once(' ').unwrap();
            (stack, *weight) = (rest, number.parse().unwrap());
        }
        let row = serde_json::json!({ "class": stack.rsplit(';').next().unwrap() });
        let unnumbered = match stack.rsplit_once(";<unknown ") {
            Some((callers, _)) => format!("{callers};{}", class(&row)),
            None => stack.to_owned(),
        };
        let sum = all.entry(unnumbered).or_insert([0; N]);
        for (sum, weight) in sum.iter_mut().zip(weights) {
            *sum += weight;
        }
    }
    all
}

#[test]
fn folded_differences_are_the_stacks_of_both_files() {
    for (old, new, of) in [
        ("busy-cpu-samples.hprof.zst", "busy-cpu-samples.txt", "cpu"),
        ("all.hprof.zst", "sites.txt.zst", "allocated"),
        ("sites.txt.zst", "dump.txt.zst", "live"),
    ] {
        let (old, new) = (agent(old), agent(new));
        let one = |file: &Path| -> BTreeMap<String, [u64; 1]> {
            folded(&Place::of(file).run(&["flamegraph", "--data", of, "--format", "folded"]).stdout)
        };
        let (before, after) = (one(&old), one(&new));
        let baseline = old.to_str().unwrap();
        let arguments = ["flamegraph", "--baseline", baseline, "--data", of, "--format", "folded"];
        let output = Place::of(&new).run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let found: BTreeMap<String, [u64; 2]> = folded(&output.stdout);
        let mut expected: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for (at, side) in [before, after].into_iter().enumerate() {
            for (stack, [weight]) in side {
                expected.entry(stack).or_default()[at] += weight;
            }
        }
        assert!(expected.values().any(|[old, new]| old != new));
        assert_eq!(found, expected, "{of}");
    }
}

#[test]
fn a_difference_is_drawn_and_what_is_not_in_it_is_said() {
    let (old, new) = (agent("busy-cpu-samples.hprof.zst"), agent("busy-cpu-samples.txt"));
    let place = Place::of(&new);
    let (baseline, svg) = (old.to_str().unwrap(), place.path("difference.svg"));
    let output = place.run(&["flamegraph", "--baseline", baseline, "-o", svg.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let picture = std::fs::read_to_string(&svg).unwrap();
    let [before, after] = [&old, &new].map(|file| said("cpu", file)["total"]["samples"].as_u64().unwrap());
    assert!(picture.contains(&format!("{before} samples scaled to {after}")));
    assert!(picture.contains("compared with busy-cpu-samples.hprof.zst"));
    assert!(picture.contains("fill=\"rgb(100,100,255)\"") || picture.contains("fill=\"rgb(255,100,100)\""));
    let output = place.run(&["flamegraph", "--baseline", new.to_str().unwrap(), "-o", svg.to_str().unwrap()]);
    assert!(!stderr(&output).contains("of the baseline"), "{}", stderr(&output));
    // Nothing has changed: all frames are white.
    let same = std::fs::read_to_string(&svg).unwrap();
    let filled = |rgb: &str| same.matches(&format!("fill=\"rgb({rgb}")).count();
    // Black is used for text.
    assert_eq!(filled(""), filled("250,250,250)") + filled("0,0,0)"));
    assert!(filled("250,250,250)") > 10);
}

#[test]
fn baselines_that_cannot_be_compared_are_refused() {
    let (cpu, sites) = (agent("cpu-samples.txt"), agent("sites.txt.zst"));
    let place = Place::of(&cpu);
    let cases: [(&Path, &[&str], i32, &str); 5] = [
        (&cpu, &["--format", "speedscope"], 2, "speedscope cannot show a difference"),
        (&cpu, &["--colors", "hot"], 2, "cannot be used with"),
        (&sites, &[], 1, "the files have no kind of data in common"),
        (&sites, &["--data", "cpu", "--format", "folded"], 1, "sites.txt.zst contains no CPU samples"),
        (Path::new("no/such/file"), &[], 2, "no/such/file"),
    ];
    for (baseline, more, code, message) in cases {
        let first = ["flamegraph", "--baseline", baseline.to_str().unwrap()];
        let output = place.run(&[&first[..], more].concat());
        assert_eq!(output.status.code(), Some(code), "{more:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{more:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
    // Neither file is replaced.
    let copy = place.path("old.txt");
    std::fs::copy(&cpu, &copy).unwrap();
    let copy = copy.to_str().unwrap();
    let output = place.run(&["flamegraph", "--baseline", copy, "-o", copy]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("it is an input file"), "{}", stderr(&output));
}
