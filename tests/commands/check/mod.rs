//! `check`: each kind of rule has a dump that passes it and one that violates it; exit codes.

mod places;
mod reports;
mod rules_files;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use hprof_writer::{HeapModel, Jdk, Options, Root, damage};
use serde_json::Value as Json;

use crate::kit::process::{Folder, stderr};

/// 40 plugins, each with a class loader of its own and an array of 100,000 + 2,500 * i bytes.
const PLUGINS: &str = "samples/leaks/s3.hprof.zst";
const IDLE: &str = "samples/jdk/jdk11.hprof.zst";
/// Clears a screen, turns text around, and ends what XML, JSON and TOML begin.
const EVIL: &str = "a<b>&\"']]>\u{1b}[2J\u{202e}\u{0}\u{fffe}\n{0} [x](y)";

impl Folder {
    /// Returns a command's JSON and its exit code.
    fn told(&self, arguments: &[&str]) -> (Json, i32) {
        let output = self.run(&[arguments, &["--format", "json"]].concat());
        let code = output.status.code().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (
            serde_json::from_slice(&output.stdout)
                .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {said}")),
            code,
        )
    }

    fn check(&self, rules: &str, arguments: &[&str]) -> (Json, i32) {
        let rules = self.write("rules.toml", rules);
        self.told(&[&["check", "--rules", &rules], arguments].concat())
    }
}

fn rows(json: &Json) -> &[Json] {
    json["rows"].as_array().unwrap()
}

/// `passed` by rule.
fn passed(json: &Json) -> BTreeMap<String, bool> {
    let one = |row: &Json| (row["rule"].as_str().unwrap().to_owned(), row["is_passed"].as_bool().unwrap());
    rows(json).iter().map(one).collect()
}

/// A dump of `count` instances of a class, held by an array.
fn dump_of(class: &str, count: usize) -> Vec<u8> {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let named = model.class(class, Some(jdk.object), &[]);
    let array_class = model.array_class(named);
    let instances: Vec<_> = (0..count).map(|_| model.instance(named, &[])).collect();
    let array = model.object_array(array_class, &instances);
    model.root(array, Root::Unknown);
    model.write(&Options::hotspot()).bytes().to_vec()
}

fn rule(name: &str, lines: &str) -> String {
    format!("[[rule]]\nname = \"{name}\"\n{lines}\n")
}

#[test]
fn each_kind_passes_at_its_limit_and_fails_below() {
    let place = Folder::new();
    let figure = |arguments: &[&str], pointer: &str| {
        let (json, _) = place.told(arguments);
        json.pointer(pointer).and_then(Json::as_u64).unwrap_or_else(|| panic!("{arguments:?}: {pointer}"))
    };
    let of =
        |dump: &str, command: &str, pattern: &str, pointer: &str| figure(&[command, dump, pattern], pointer);
    let live = |dump: &str, pattern: &str, key: &str| {
        figure(&["histo", dump, pattern, "--live"], &format!("/total/{key}"))
    };
    let heap = |dump: &str| live(dump, "**", "shallow_bytes");
    let duplicates = figure(&["waste", PLUGINS, "--kind", "duplicate-classes"], "/rows/0/objects");
    // The rule, and what another command says of the same.
    let kinds = [
        ("measure = \"heap\"", Some(heap(PLUGINS))),
        ("measure = \"heap\"\nobjects = \"all\"", Some(of(PLUGINS, "histo", "**", "/total/shallow_bytes"))),
        (
            "measure = \"retained\"\nof = \"container.**\"",
            Some(of(PLUGINS, "retained", "container.**", "/total/retained_bytes")),
        ),
        (
            "measure = \"shallow\"\nof = \"byte[]\"",
            Some(of(PLUGINS, "histo", "byte[]", "/total/shallow_bytes")),
        ),
        (
            "measure = \"instances\"\nof = \"String\"\nobjects = \"reachable\"",
            Some(live(PLUGINS, "String", "instances")),
        ),
        (
            "measure = \"instances\"\nof = \"byte[]\"\nobjects = \"unreachable\"",
            Some(of(PLUGINS, "histo", "byte[]", "/total/instances") - live(PLUGINS, "byte[]", "instances")),
        ),
        ("measure = \"loaders\"\nof = \"container.WebappLoader\"", Some(40)),
        ("measure = \"duplicate_classes\"\nof = \"container.**\"", Some(39)),
        ("measure = \"duplicate_classes\"", Some(duplicates)),
        ("measure = \"suspects\"", Some(figure(&["leaks", PLUGINS], "/conclusions/0/retained_bytes"))),
        (
            "measure = \"waste\"\nof = \"duplicate_strings\"",
            Some(figure(&["waste", PLUGINS, "--kind", "duplicate-strings"], "/rows/0/wasted_bytes")),
        ),
        ("measure = \"waste\"", Some(figure(&["waste", PLUGINS], "/total/wasted_bytes"))),
        ("measure = \"place\"\nof = \"static cache of container.Plugin*\"", None),
        ("measure = \"growth\"\nof = \"heap\"", Some(heap(PLUGINS) - heap(IDLE))),
        (
            "measure = \"growth\"\nof = \"class byte[]\"",
            Some(live(PLUGINS, "byte[]", "shallow_bytes") - live(IDLE, "byte[]", "shallow_bytes")),
        ),
        (
            "measure = \"growth\"\nof = \"retained byte[]\"",
            Some(
                of(PLUGINS, "retained", "byte[]", "/total/retained_bytes")
                    - of(IDLE, "retained", "byte[]", "/total/retained_bytes"),
            ),
        ),
        ("measure = \"growth\"\nof = \"place\"", None),
        ("measure = \"growth\"\nof = \"place static cache of container.Plugin*\"", None),
    ];
    let rules = |limit: &dyn Fn(usize) -> String| -> String {
        let one =
            |(at, (lines, _)): (usize, &(&str, _))| rule(&at.to_string(), &format!("{lines}\n{}", limit(at)));
        kinds.iter().enumerate().map(one).collect()
    };
    let check = |limit: &dyn Fn(usize) -> String| place.check(&rules(limit), &[PLUGINS, "--baseline", IDLE]);
    let (json, code) = check(&|_| "max = 4_000_000_000".to_owned());
    assert_eq!(code, 0, "{json:#}");
    let values: Vec<u64> = rows(&json).iter().map(|row| row["value"].as_u64().unwrap()).collect();
    for ((lines, expected), value) in kinds.iter().zip(&values) {
        assert!(*value > 0, "{lines}");
        assert!(expected.is_none_or(|expected| expected == *value), "{lines}: {expected:?}, {value}");
    }
    // The arrays of the plugins, and what little else they have.
    let arrays: u64 = (0..40).map(|number| 100_000 + 2_500 * number).sum();
    for at in [12, 17] {
        assert!((arrays..arrays + (1 << 19)).contains(&values[at]), "{at}: {}", values[at]);
    }
    // A place contains what explains its growth.
    let explained = figure(&["diff", IDLE, PLUGINS, "--group-by", "place"], "/rows/0/retained_bytes_delta");
    assert!((explained..=values[13]).contains(&values[16]), "{values:?}");
    let all = |json: &Json, expected: bool| {
        for (row, (lines, _)) in rows(json).iter().zip(&kinds) {
            assert_eq!(row["is_passed"].as_bool(), Some(expected), "{lines}: {row:#}");
        }
    };
    let (json, code) = check(&|at| {
        format!("max = {}\nmin = {}", values[at], if at == 9 { 0 } else { values[at] })
            .replace("\nmin = 0", "")
    });
    assert_eq!(code, 0, "{json:#}");
    all(&json, true);
    let (json, code) = check(&|at| format!("max = {}", values[at] - 1));
    assert_eq!(code, 1);
    all(&json, false);
    let (json, code) = check(&|at| if at == 9 { "max = 0" } else { "min = 4_000_000_000" }.to_owned());
    assert_eq!(code, 1);
    all(&json, false);
}

#[test]
fn parts_are_of_the_heap_and_suspects_those_of_leaks() {
    let place = Folder::new();
    let rules = [
        rule("suspects", "measure = \"suspects\"\nmax = \"20 percent\""),
        rule("all", "measure = \"suspects\"\nmax = \"100 %\""),
        rule("arrays", "measure = \"retained\"\nof = \"byte[]\"\nmax = \"0.5 %\"\nseverity = \"warning\""),
        rule(
            "none",
            "measure = \"instances\"\nof = \"com.acme.Sesion\"\nobjects = \"reachable\"\nmax = 0\noptional = true",
        ),
    ];
    let (json, code) = place.check(&rules.concat(), &[PLUGINS]);
    assert_eq!(code, 1);
    let passed = passed(&json);
    assert_eq!(["suspects", "all", "arrays", "none"].map(|name| passed[name]), [false, true, false, true]);
    let value = rows(&json)[0]["value"].as_f64().unwrap();
    let (leaks, _) = place.told(&["leaks", PLUGINS]);
    let share = |key: &str| leaks.pointer(key).and_then(Json::as_f64).unwrap();
    let expected = share("/conclusions/0/retained_bytes") * 100.0 / share("/total/reachable_bytes");
    assert!((value - expected).abs() < 1e-6, "{value} {expected}");
    assert_eq!(rows(&json)[0]["unit"], "percent");
    assert_eq!(rows(&json)[3]["is_matched"], false);
    // Without the error, a warning is no failure.
    assert_eq!(place.check(&rules[1..].concat(), &[PLUGINS]).1, 0);
}

#[test]
fn exit_codes_come_in_their_order() {
    let place = Folder::new();
    let bytes = dump_of("com.acme.Session", 50);
    let fine = place.write("fine.hprof", &bytes);
    let damaged = place.write("damaged.hprof", damage::cut(&bytes, bytes.len() - 200));
    let no_dump = place.write("no.hprof", rule("a", "measure = \"heap\"\nmax = 1"));
    let none = place.path("none.hprof").to_str().unwrap().to_owned();
    let ok = rule("sessions", "measure = \"instances\"\nof = \"Session\"\nmax = 50");
    let few = rule("sessions", "measure = \"instances\"\nof = \"Session\"\nmax = 5");
    let wrong = rule("sessions", "measure = \"instances\"\nof = \"Sesion\"\nmax = 5");
    let code = |rules: &str, arguments: &[&str]| place.check(rules, arguments).1;
    assert_eq!(code(&ok, &[&fine]), 0);
    assert_eq!(code(&few, &[&fine]), 1);
    assert_eq!(code(&few.replace("max", "severity = \"note\"\nmax"), &[&fine]), 0);
    assert_eq!(code(&ok, &[&damaged]), 1);
    assert_eq!(code(&ok, &[&fine, &damaged, "--allow-damaged"]), 3);
    assert_eq!(code(&few, &[&damaged, &fine, "--allow-damaged"]), 1);
    assert_eq!(code(&ok, &[&no_dump, &damaged, "--allow-damaged"]), 2);
    assert_eq!(code(&few, &[&none, &fine]), 2);
    // A name that matches nothing in the dump fails, unless the rule is optional.
    assert_eq!(code(&wrong, &[&fine]), 1);
    let (json, _) = place.check(&wrong, &[&fine]);
    let row = &rows(&json)[0];
    assert_eq!(
        (&row["status"], &row["is_matched"], &row["value"]),
        (&"failed".into(), &false.into(), &0.into())
    );
    let message = row["message"].as_str().unwrap();
    assert!(message.contains("no class matches Sesion") && message.contains("optional = true"), "{message}");
    assert_eq!(code(&(wrong.clone() + "optional = true\n"), &[&fine]), 0);
    assert_eq!(code(&format!("optional = true\n{wrong}"), &[&fine]), 0);
    assert_eq!(code(&format!("optional = true\n{wrong}optional = false\n"), &[&fine]), 1);
    // What could be read was checked nevertheless.
    let (json, _) = place.check(&few, &[&none, &fine, &no_dump, &damaged]);
    let seen: Vec<(&str, &str)> = rows(&json)
        .iter()
        .map(|row| (row["rule"].as_str().unwrap(), row["status"].as_str().unwrap()))
        .collect();
    assert_eq!(seen[..3], [("unreadable", "error"), ("sessions", "failed"), ("unreadable", "error")]);
    assert_eq!(seen[3], ("damaged", "failed"));
    assert_eq!(json["total"]["errors"], 2);
    let reads: Vec<bool> =
        json["dumps"].as_array().unwrap().iter().map(|dump| dump["is_readable"].as_bool().unwrap()).collect();
    assert_eq!(reads, [false, true, false, true]);
    // A baseline that cannot be read takes only the rules that need it.
    let growth = ok.clone() + &rule("growth", "measure = \"growth\"\nof = \"heap\"\nmax = \"5 %\"");
    let (json, code) = place.check(&growth, &[&fine, "--baseline", &none]);
    assert_eq!(code, 2);
    assert_eq!(
        passed(&json),
        BTreeMap::from(
            [("growth", false), ("sessions", true), ("unreadable", false)]
                .map(|(name, passed)| (name.to_owned(), passed))
        )
    );
    let (json, code) = place.check(&growth, &[&fine, "--baseline", &damaged]);
    assert_eq!((code, passed(&json)["damaged"]), (1, false));
}

#[test]
fn a_loader_that_is_not_there_fails() {
    let place = Folder::new();
    let loaders =
        |of: &str, max: u32| rule("a", &format!("measure = \"loaders\"\nof = \"{of}\"\nmax = {max}"));
    for (of, max, expected) in [
        ("container.WebappLoader", 40, 0),
        ("container.WebappLoader", 39, 1),
        // A class loader without instances counts nevertheless.
        ("java.lang.ClassLoader", 0, 0),
        ("String", 0, 1),
        ("container.Plugin*", 0, 1),
    ] {
        let (json, code) = place.check(&loaders(of, max), &[PLUGINS]);
        assert_eq!(code, expected, "{of}: {json:#}");
    }
}

#[test]
fn a_closed_pipe_does_not_open_the_gate() {
    let place = Folder::new();
    let bytes = dump_of("com.acme.Session", 50);
    let fine = place.write("fine.hprof", &bytes);
    let damaged = place.write("damaged.hprof", damage::cut(&bytes, bytes.len() - 200));
    let none = place.path("none.hprof").to_str().unwrap().to_owned();
    let at_most = |count: u32| {
        let lines = format!("measure = \"instances\"\nof = \"Session\"\nmax = {count}");
        place.write(&format!("{count}.toml"), rule("sessions", &lines))
    };
    let (few, enough) = (at_most(5), at_most(50));
    let run = |arguments: &[&str]| {
        // Its reader is closed before it writes.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
        command.args(["check", "-q"]).args(arguments).env("HPROF_CLI_INDEX_DIR", place.path("index"));
        let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
        (output.status.code(), stderr(&output))
    };
    for format in ["table", "json", "csv"] {
        let code = |rules: &str, dumps: &[&str]| {
            run(&[&["--format", format, "--rules", rules], dumps].concat()).0.unwrap()
        };
        assert_eq!(code(&few, &[&fine]), 1);
        assert_eq!(code(&few, &[&fine, &none]), 2);
        assert_eq!(code(&enough, &[&damaged, "--allow-damaged"]), 3);
        assert_eq!(code(&enough, &[&fine]), 0);
    }
    // A report that nobody reads is one that cannot be written.
    if Path::new("/dev/stdout").exists() {
        for option in ["--junit", "--sarif"] {
            let (code, said) = run(&[&fine, "--rules", &enough, option, "/dev/stdout"]);
            assert!(code == Some(2) && said.contains("cannot write"), "{option}: {code:?} {said}");
        }
    }
}

#[test]
fn a_baseline_is_where_the_rules_say() {
    let place = Folder::new();
    fs::create_dir(place.path("ci")).unwrap();
    place.write("ci/old.hprof", dump_of("com.acme.Session", 100));
    let new = place.write("new.hprof", dump_of("com.acme.Session", 103));
    let rules = format!(
        "baseline = \"old.hprof\"\n{}",
        rule("g", "measure = \"growth\"\nof = \"class Session\"\nobjects = \"all\"\nmax = 47")
    );
    let rules = place.write("ci/rules.toml", rules);
    let (json, code) = place.told(&["check", &new, "--rules", &rules]);
    assert_eq!(code, 1, "{json:#}");
    assert_eq!(rows(&json)[0]["value"], 48);
    assert_eq!(rows(&json)[0]["line"], 2);
    // Shrinking is negative growth.
    let (json, code) = place.told(&[
        "check",
        place.path("ci/old.hprof").to_str().unwrap(),
        "--rules",
        &rules,
        "--baseline",
        &new,
    ]);
    assert_eq!((code, rows(&json)[0]["value"].as_i64()), (0, Some(-48)));
    let output = place.run(&[
        "check",
        &new,
        "--rules",
        &place.write("r.toml", rule("g", "measure = \"growth\"\nof = \"place\"\nmax = 1")),
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("r.toml:1: rule `g` compares with a baseline"), "{}", stderr(&output));
}

#[test]
fn counts_of_all_objects_need_no_graph() {
    let place = Folder::new();
    let dump = place.write("a.hprof", dump_of("com.acme.Session", 3));
    let rules = rule("a", "measure = \"instances\"\nof = \"Session\"\nmax = 3")
        + &rule("b", "measure = \"shallow\"\nof = \"Session\"\nmax = \"50 %\"")
        + &rule("c", "measure = \"heap\"\nobjects = \"all\"\nmin = 48");
    let (json, code) = place.check(&rules, &[&dump]);
    assert_eq!(code, 0, "{json:#}");
    assert_eq!(json["dump"]["unreachable_bytes"], Json::Null);
    let stages: Vec<String> = fs::read_dir(place.path("index"))
        .unwrap()
        .flat_map(|entry| fs::read_dir(entry.unwrap().path()).unwrap())
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(stages.iter().any(|name| name.contains("summary")), "{stages:?}");
    assert!(!stages.iter().any(|name| name.contains("dominators")), "{stages:?}");
}

/// Returns whether a terminal or browser would not display it literally.
fn is_harmful(c: char) -> bool {
    c.is_control() && c != '\n' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
