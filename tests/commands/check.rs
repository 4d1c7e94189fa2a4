//! `check`: each kind of rule has a dump that keeps to it and one that does not; exit codes; rules files and dumps that are
//! made to be misread; reports.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use hprof_writer::{Elements, HeapModel, Jdk, Options, Root, Type, damage};
use quick_xml::events::Event;
use serde_json::Value as Json;

use crate::kit::process::{Folder, stderr};

/// 40 plugins, each with a class loader of its own and an array of 100,000 + 2,500 * i bytes.
const PLUGINS: &str = "samples/leaks/s3.hprof.zst";
const IDLE: &str = "samples/jdk/jdk11.hprof.zst";
/// Clears a screen, turns text around, and ends what XML, JSON and TOML begin.
const EVIL: &str = "a<b>&\"']]>\u{1b}[2J\u{202e}\u{0}\u{fffe}\n{0} [x](y)";

impl Folder {
    /// What a command says in JSON, and how it ended.
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
    let one = |row: &Json| (row["rule"].as_str().unwrap().to_owned(), row["passed"].as_bool().unwrap());
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
    let duplicates = figure(&["waste", PLUGINS, "--kind", "duplicate-classes"], "/rows/0/count");
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
        ("measure = \"suspects\"", Some(figure(&["leaks", PLUGINS], "/rows/0/retained_bytes"))),
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
            assert_eq!(row["passed"].as_bool(), Some(expected), "{lines}: {row:#}");
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
fn parts_are_of_the_heap_and_suspects_come_together() {
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
    let (leaks, _) = place.told(&["leaks", PLUGINS, "--threshold", "20"]);
    let share = |key: &str| leaks.pointer(key).and_then(Json::as_f64).unwrap();
    let expected = share("/rows/0/retained_bytes") * 100.0 / share("/total/reachable_bytes");
    assert!((value - expected).abs() < 1e-6, "{value} {expected}");
    assert_eq!(rows(&json)[0]["unit"], "percent");
    assert_eq!(rows(&json)[3]["matched"], false);
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
    // What has no name of the dump fails, unless it may be missing.
    assert_eq!(code(&wrong, &[&fine]), 1);
    let (json, _) = place.check(&wrong, &[&fine]);
    let row = &rows(&json)[0];
    assert_eq!(
        (&row["status"], &row["matched"], &row["value"]),
        (&"failed".into(), &false.into(), &0.into())
    );
    let message = row["message"].as_str().unwrap();
    assert!(message.contains("no class matches Sesion") && message.contains("optional = true"), "{message}");
    assert_eq!(code(&(wrong.clone() + "optional = true\n"), &[&fine]), 0);
    assert_eq!(code(&format!("optional = true\n{wrong}"), &[&fine]), 0);
    assert_eq!(code(&format!("optional = true\n{wrong}optional = false\n"), &[&fine]), 1);
    // What could be read was checked all the same.
    let (json, _) = place.check(&few, &[&none, &fine, &no_dump, &damaged]);
    let seen: Vec<(&str, &str)> = rows(&json)
        .iter()
        .map(|row| (row["rule"].as_str().unwrap(), row["status"].as_str().unwrap()))
        .collect();
    assert_eq!(seen[..3], [("unreadable", "error"), ("sessions", "failed"), ("unreadable", "error")]);
    assert_eq!(seen[3], ("damaged", "failed"));
    assert_eq!(json["total"]["errors"], 2);
    let reads: Vec<bool> =
        json["dumps"].as_array().unwrap().iter().map(|dump| dump["read"].as_bool().unwrap()).collect();
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
        // A class loader of which there is no instance is one all the same.
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
        // Its reader is gone before it writes.
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
    // Shrinking is growth below zero.
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

/// A dump of a `HashMap` in a static field, with a session of 1,000 bytes by each key.
fn map_of(keys: &[&str]) -> Vec<u8> {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let top = Some(jdk.object);
    let fields =
        [("hash", Type::Int), ("key", Type::Object), ("value", Type::Object), ("next", Type::Object)];
    let node = model.class("java.util.HashMap$Node", top, &fields);
    let table = model.array_class(node);
    let map = model.class("java.util.HashMap", top, &[("table", Type::Object), ("size", Type::Int)]);
    let session = model.class("acme.Session", top, &[("data", Type::Object)]);
    let nodes: Vec<_> = keys
        .iter()
        .map(|key| {
            let data = model.prim_array(Elements::of_bytes(&[1; 1000]));
            let session = model.instance_with(session, &[("data", data.into())]);
            let key = jdk.string(&mut model, key);
            model.instance_with(node, &[("key", key.into()), ("value", session.into())])
        })
        .collect();
    let table = model.object_array(table, &nodes);
    let size = i32::try_from(keys.len()).unwrap();
    let map = model.instance_with(map, &[("table", table.into()), ("size", size.into())]);
    let shop = model.class_with_statics("acme.Shop", top, &[], &[("SESSIONS", map.into())]);
    model.root(shop, Root::StickyClass);
    model.write(&Options::hotspot()).bytes().to_vec()
}

#[test]
fn a_place_that_diff_shows_is_one_of_the_dump() {
    let place = Folder::new();
    let old = place.write("old.hprof", map_of(&["a", "b"]));
    let new = place.write("new.hprof", map_of(&["c", "d", "e", "f"]));
    let (diff, _) = place.told(&["diff", &old, &new, "--group-by", "place", "--min-change", "1"]);
    let row = rows(&diff).iter().find(|row| row["text"].as_str().unwrap().contains("SESSIONS")).unwrap();
    let text = row["text"].as_str().unwrap();
    // None of the keys is in both.
    assert!(!text.contains('{'), "{text}");
    let check = |of: &str| {
        let rules = rule("place", &format!("measure = \"place\"\nof = \"{of}\"\nmax = 1"))
            + &rule("growth", &format!("measure = \"growth\"\nof = \"place {of}\"\nmax = 1"));
        let (json, code) = place.check(&rules, &[&new, "--baseline", &old]);
        assert_eq!(code, 1, "{json:#}");
        [0, 1].map(|at| rows(&json)[at]["value"].as_u64().unwrap())
    };
    let of_row = |key: &str| row[key].as_u64().unwrap();
    assert_eq!(check(text), ["retained_bytes_new", "retained_bytes_delta"].map(of_row), "{text}");
    // With its key it is one of four.
    let one = check("static SESSIONS of acme.Shop -> HashMap -> {d} -> Session");
    let all = check("static SESSIONS of acme.Shop -> HashMap -> Session");
    assert_eq!((one[0] * 4, one[1] * 4), (all[0], all[0]));
}

#[test]
fn growth_of_any_place_is_all_that_it_grew_by() {
    let place = Folder::new();
    let old = place.write("old.hprof", dump_of("com.acme.Session", 100));
    let new = place.write("new.hprof", dump_of("com.acme.Session", 1000));
    let growth =
        |lines: &str| rule(&format!("{}", lines.len()), &format!("measure = \"growth\"\nof = {lines}"));
    let (json, _) = place.check(&growth("\"heap\"\nmax = 0"), &[&new, "--baseline", &old]);
    // Sessions, and the array that holds them.
    let all = rows(&json)[0]["value"].as_u64().unwrap();
    assert!(all > 900 * 16, "{all}");
    for (limits, expected) in [
        (format!("max = {all}"), 0),
        (format!("min = {all}"), 0),
        (format!("max = {}", all - 1), 1),
        (format!("min = {}", all + 1), 1),
    ] {
        let rules = growth(&format!("\"place\"\n{limits}"));
        let (json, code) = place.check(&rules, &[&new, "--baseline", &old]);
        assert_eq!((code, rows(&json)[0]["value"].as_u64()), (expected, Some(all)), "{limits}: {json:#}");
        let message = rows(&json)[0]["message"].as_str().unwrap();
        assert!(message.contains("; most by ") && message.contains("-> Session, +"), "{message}");
    }
}

#[test]
fn a_failed_growth_rule_names_what_grew() {
    let place = Folder::new();
    let dump = |sessions: usize, users: usize| {
        let mut model = HeapModel::default();
        let jdk = Jdk::add_to(&mut model);
        for (class, count) in [("com.acme.Session", sessions), ("com.acme.User", users)] {
            let class = model.class(class, Some(jdk.object), &[]);
            for _ in 0..count {
                let one = model.instance(class, &[]);
                model.root(one, Root::Unknown);
            }
        }
        model.write(&Options::hotspot()).bytes().to_vec()
    };
    let (old, new) = (place.write("old.hprof", dump(900, 10)), place.write("new.hprof", dump(901, 60)));
    let rules = rule("g", "measure = \"growth\"\nof = \"class com.acme.*\"\nmax = 1");
    let (json, _) = place.check(&rules, &[&new, "--baseline", &old]);
    let message = rows(&json)[0]["message"].as_str().unwrap();
    assert!(message.ends_with("most of 2: com.acme.User, +800 B"), "{message}");
}

#[test]
fn places_that_are_not_told_apart_are_told() {
    let place = Folder::new();
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let mut last = model.instance(jdk.object, &[]);
    for depth in 0..100 {
        let class =
            model.class(&format!("Deep{}", name_of(depth)), Some(jdk.object), &[("next", Type::Object)]);
        last = model.instance_with(class, &[("next", last.into())]);
    }
    model.root(last, Root::Unknown);
    let deep = place.write("deep.hprof", model.write(&Options::hotspot()).bytes());
    let flat = place.write("flat.hprof", dump_of("A", 1));
    let rules = rule("place", "measure = \"place\"\nof = \"*\"\nmax = \"1 GiB\"")
        + &rule("growth", "measure = \"growth\"\nof = \"place\"\nmax = \"1 GiB\"");
    for (dump, baseline, expected) in
        [(&deep, &flat, [true; 2]), (&flat, &deep, [false, true]), (&flat, &flat, [false; 2])]
    {
        let (json, code) = place.check(&rules, &[dump, "--baseline", baseline]);
        assert_eq!(code, 0);
        let is_told = |row: &Json| row["message"].as_str().unwrap().contains("too many distinct places");
        assert_eq!(rows(&json).iter().map(is_told).collect::<Vec<_>>(), expected, "{json:#}");
    }
}

/// A name for a number, without digits: numbers in names of classes do not count.
fn name_of(number: usize) -> String {
    format!("{number}").bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
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

#[test]
fn wrong_rules_are_named_with_line_and_column() {
    let place = Folder::new();
    let dump = place.write("a.hprof", dump_of("com.acme.Session", 3));
    let heap = "[[rule]]\nname = \"a\"\nmeasure = \"heap\"\n";
    let long = "x".repeat(201);
    let cases: [(String, &str); 27] = [
        (String::new(), ":1:1: there are no rules"),
        ("baseline = \"x\"\n".to_owned(), ":1:1: there are no rules"),
        ("rule = 3\n".to_owned(), ":1:8: `rule` is one integer; expected tables"),
        ("rule = []\n".to_owned(), ":1:8: there are no rules"),
        ("rule = [1]\n".to_owned(), ":1:8: `rule` is an array of other things"),
        ("[rule]\nname = 1\n".to_owned(), ":1:1: `rule` is one table"),
        (format!("{heap}maxi = 3\n"), ":4:1: unknown key `maxi`; did you mean max"),
        (format!("rules = 1\n{heap}max = 3\n"), ":1:1: unknown key `rules`; did you mean rule?"),
        (format!("{heap}max = -1\n"), ":4:7: `max` is -1; expected a size"),
        (format!("{heap}max = 1.5\n"), ":4:7: `max` is of type float"),
        (format!("{heap}max = \"5 MiBs\"\n"), ":4:7: `max` is `5 MiBs`; expected a size like"),
        (format!("{heap}max = \"five %\"\n"), ":4:7: `max` is `five %`"),
        (format!("{heap}max = \"-5 %\"\n"), ":4:7: `max` is `-5 %`"),
        (format!("{heap}max = 99999999999999999999\n"), ":4:7: `max` is 99999999999999999999"),
        (format!("{heap}max = 1\nmin = 2\n"), ":4:7: `min` is more than `max`"),
        (format!("{heap}max = 1\nmin = \"2 %\"\n"), ":4:7: one limit is a part in percent"),
        (format!("{heap}\n"), ":1:1: the rule has no limit; write max or min"),
        (format!("{heap}max = 1\nof = \"x\"\n"), ":5:6: `of` cannot be used for heap"),
        (
            format!("{heap}max = 1\nobjects = \"some\"\n"),
            ":5:11: there is no objects `some`; expected one of all, reachable, unreachable",
        ),
        (
            format!("{heap}max = 1\nseverity = \"errror\"\n"),
            ":5:12: there is no severity `errror`; did you mean error?",
        ),
        (format!("{heap}max = 1\noptional = \"yes\"\n"), ":5:12: `optional` is of type string"),
        (format!("{heap}max = 1\n{heap}max = 2\n"), ":6:8: there is a rule `a` in line 1 already"),
        ("[[rule]]\nmeasure = \"heap\"\nmax = 1\n".to_owned(), ":1:1: the rule has no `name`"),
        (rule("damaged", "measure = \"heap\"\nmax = 1"), ":2:8: `damaged` is what reports call"),
        (rule(&long, "measure = \"heap\"\nmax = 1"), ":2:8: `name` is 201 bytes long"),
        (
            rule("a", "measure = \"instances\"\nof = \"A\"\nmax = \"1 MiB\""),
            ":5:7: `max` is `1 MiB`; expected a number of 0 or more",
        ),
        (
            rule("a", "measure = \"growth\"\nof = \"clas A\"\nmax = 1"),
            ":4:6: `clas A` is nothing whose growth is known",
        ),
    ];
    for (text, expected) in cases {
        let rules = place.write("rules.toml", &text);
        let output = place.run(&["check", &dump, "--rules", &rules]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}: {said}");
        assert!(said.contains(&format!("rules.toml{expected}")), "{text}\n{expected}\n{said}");
        assert!(output.stdout.is_empty(), "{text}");
    }
    // All of them at once.
    let rules = place.write("rules.toml", format!("{heap}maxi = 3\n{heap}max = \"x\"\n"));
    let said = stderr(&place.run(&["check", &dump, "--rules", &rules]));
    assert_eq!(said.lines().filter(|line| line.contains(": error: ")).count(), 3, "{said}");
}

#[test]
fn hostile_rules_files_end_with_an_error() {
    let place = Folder::new();
    let bytes = dump_of("com.acme.Session", 3);
    let dump = place.write("a.hprof", &bytes);
    let heap = rule("a", "measure = \"heap\"\nmax = 1");
    let many: String =
        (0..2000).map(|number| rule(&number.to_string(), "measure = \"heap\"\nmax = 1")).collect();
    let long = "x".repeat(900_000);
    let growth = |of: &str| rule("a", &format!("measure = \"growth\"\nof = \"{of}\"\nmax = 1")).into_bytes();
    let cases: [(&str, Vec<u8>, &str); 24] = [
        ("key", format!("{long} = 1").into_bytes(), "unknown key `xxx"),
        ("keys of rules", format!("{heap}{long} = 1").into_bytes(), "unknown key `xxx"),
        ("two keys", format!("{0} = 1\n{0} = 2", &long[..400_000]).into_bytes(), "this is not TOML"),
        ("max", format!("{}\nmax = \"{long}\"", heap.replace("max = 1", "")).into_bytes(), "`max` is `xxx"),
        ("digits", heap.replace("= 1", &format!("= {}", "9".repeat(900_000))).into_bytes(), "`max` is 999"),
        ("hex", heap.replace("= 1", &format!("= 0x{}", "f".repeat(900_000))).into_bytes(), "`max` is fff"),
        (
            "ID",
            heap.replace("= 1", &format!("= \"0x{}\"", "f".repeat(900_000))).into_bytes(),
            "`max` is `0xfff",
        ),
        ("measure", heap.replace("heap", &long).into_bytes(), "there is no measure `xxx"),
        ("severity", format!("{heap}severity = \"{long}\"").into_bytes(), "there is no severity `xxx"),
        ("name", rule(&long, "measure = \"heap\"\nmax = 1").into_bytes(), "`name` is 900000 bytes long"),
        (
            "of",
            growth(&format!("place {}", "*a".repeat(400_000))),
            "`of` is 800006 bytes long; expected at most 1000",
        ),
        ("growing", growth(&"x".repeat(999)), "xxx…` is nothing whose growth is known"),
        (
            "waste",
            rule("a", &format!("measure = \"waste\"\nof = \"{}\"\nmax = 1", &long[..999])).into_bytes(),
            "there is no kind of waste `xxx",
        ),
        (
            "baseline",
            format!("baseline = \"{long}\"\n{heap}").into_bytes(),
            "`baseline` is 900000 bytes long",
        ),
        ("dump", bytes.clone(), "is not a rules file: it is a heap dump"),
        ("huge", format!("{heap}# {}", "x".repeat(2 << 20)).into_bytes(), "larger than 1 MiB"),
        ("deep", format!("a = {}", "[".repeat(400_000)).into_bytes(), "this is not TOML"),
        ("dots", format!("{} = 1", vec!["a"; 100_000].join(".")).into_bytes(), "rules.toml:1:"),
        ("tables", "[a]\n".repeat(100_000).into_bytes(), "rules.toml:"),
        ("many", many.into_bytes(), "2000 rules are too many"),
        ("latin", b"# \xe9\n".to_vec(), "rules.toml:1:3: this is not UTF-8"),
        ("zeros", vec![0; 1000], "is not a rules file: it starts with zeros only"),
        ("nul", b"[[rule]]\nname = \"a\0b\"\n".to_vec(), "this is not TOML"),
        ("zstd", fs::read(IDLE).unwrap(), "looks like Zstandard"),
    ];
    for (name, text, expected) in cases {
        let rules = place.write("rules.toml", &text);
        let output = place.run(&["check", &dump, "--rules", &rules]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains(expected) && said.len() < 4000, "{name}: {said}");
    }
    for path in [place.path(""), place.path("none.toml")] {
        assert_eq!(place.run(&["check", &dump, "--rules", path.to_str().unwrap()]).status.code(), Some(2));
    }
    // Odd names are names.
    let odd = rule("\u{1F9EA} ünïcode \\u0000\\u202E", "measure = \"heap\"\nmin = 1");
    let (json, code) = place.check(&odd, &[&dump]);
    assert_eq!((code, rows(&json).len()), (0, 1));
}

/// Whether a terminal or a browser would do something else with it than show it.
fn is_harmful(c: char) -> bool {
    c.is_control() && c != '\n' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[test]
fn reports_hold_hostile_names_harmlessly() {
    let place = Folder::new();
    let dump = place.write("a \u{202e}<&>.hprof", dump_of(EVIL, 9));
    let none = place.path("none").to_str().unwrap().to_owned();
    let toml =
        EVIL.replace('"', "\\\"").replace('\u{1b}', "\\u001b").replace('\0', "\\u0000").replace('\n', "\\n");
    let rules: String = ["error", "warning", "note"]
        .iter()
        .map(|severity| {
            rule(
                &format!("{severity} {toml}"),
                &format!("measure = \"instances\"\nof = \"a*\"\nmax = 2\nseverity = \"{severity}\""),
            )
        })
        .collect();
    let rules = place.write("rules \u{e9}%.toml", rules);
    let (junit, sarif) = (place.path("junit.xml"), place.path("check.sarif"));
    let arguments = [
        "check",
        &dump,
        &none,
        "--rules",
        &rules,
        "--junit",
        junit.to_str().unwrap(),
        "--sarif",
        sarif.to_str().unwrap(),
    ];
    for format in ["table", "json", "csv"] {
        let output = place.run(&[&arguments[..], &["--format", format]].concat());
        assert_eq!(output.status.code(), Some(2));
        for stream in [&output.stdout, &output.stderr] {
            let text = std::str::from_utf8(stream).unwrap();
            assert!(!text.contains(is_harmful), "{format}: {text:?}");
        }
    }
    let text = fs::read_to_string(&junit).unwrap();
    assert!(!text.contains(is_harmful) && !text.contains('\u{fffe}'), "{text:?}");
    let mut reader = quick_xml::Reader::from_str(&text);
    let mut tags: BTreeMap<String, usize> = BTreeMap::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) | Event::Empty(tag) => {
                for attribute in tag.attributes() {
                    attribute.unwrap();
                }
                *tags.entry(String::from_utf8(tag.name().as_ref().to_vec()).unwrap()).or_default() += 1;
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let count = |tag: &str| tags.get(tag).copied().unwrap_or_default();
    assert_eq!(
        ["testsuite", "testcase", "failure", "skipped", "error"].map(count),
        [2, 4, 1, 2, 1],
        "{text}"
    );

    let text = fs::read_to_string(&sarif).unwrap();
    assert!(!text.contains(is_harmful), "{text:?}");
    let json: Json = serde_json::from_str(&text).unwrap();
    let run = &json["runs"][0];
    let results = run["results"].as_array().unwrap();
    let levels: Vec<&str> = results.iter().map(|one| one["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["error", "warning", "note", "error"]);
    for (result, line) in results.iter().zip([1, 7, 13, 1]) {
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["region"]["startLine"], line);
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        assert!(uri.is_ascii() && uri.ends_with("rules%20%C3%A9%25.toml"), "{uri}");
        let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
    }
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
}

#[test]
fn reports_replace_nothing_that_is_read() {
    let place = Folder::new();
    let dump = place.write("a.hprof", dump_of("A", 1));
    let rules = place.write("rules.toml", rule("a", "measure = \"heap\"\nmax = 1"));
    let before = fs::read(&dump).unwrap();
    // Baselines that no rule needs.
    let old = place.write("old.hprof", &before);
    let named = place.write("named.hprof", &before);
    let rules = place
        .write("rules.toml", format!("baseline = \"named.hprof\"\n{}", fs::read_to_string(&rules).unwrap()));
    for path in [&dump, &rules, &old, &named] {
        for option in ["--junit", "--sarif"] {
            let output = place.run(&["check", &dump, "--rules", &rules, "--baseline", &old, option, path]);
            assert_eq!(output.status.code(), Some(2));
            assert!(stderr(&output).contains("it is an input file"), "{}", stderr(&output));
        }
    }
    assert_eq!(fs::read(&dump).unwrap(), before);
    assert_eq!([&old, &named].map(|path| fs::read(path).unwrap() == before), [true; 2]);
    let same = place.path("out").to_str().unwrap().to_owned();
    for other in [same.clone(), place.path("index/../out").to_str().unwrap().to_owned()] {
        fs::create_dir_all(place.path("index")).unwrap();
        let output = place.run(&["check", &dump, "--rules", &rules, "--junit", &same, "--sarif", &other]);
        assert_eq!(output.status.code(), Some(2), "{other}");
        assert!(stderr(&output).contains("name the same file"), "{}", stderr(&output));
        assert!(!Path::new(&same).exists());
    }
    // Relative to where the check runs, as hosts have it.
    let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    command.current_dir(place.path("")).args([
        "check",
        "a.hprof",
        "--rules",
        "./rules.toml",
        "--sarif",
        "s.json",
    ]);
    assert_eq!(command.output().unwrap().status.code(), Some(1));
    let json: Json = serde_json::from_slice(&fs::read(place.path("s.json")).unwrap()).unwrap();
    let uri = "/runs/0/results/0/locations/0/physicalLocation/artifactLocation/uri";
    assert_eq!(json.pointer(uri), Some(&Json::from("rules.toml")));
}

#[test]
fn what_init_writes_passes_on_the_same_dump() {
    let place = Folder::new();
    let evil = place.write("evil.hprof", dump_of(EVIL, 9));
    let empty = place.write("one.hprof", dump_of("A", 0));
    let deep = place.write("deep.hprof", dump_of("com.acme.Session$$Lambda/0x12", 700));
    // With what a rule's name says before it, too long for one.
    let long = place.write("long.hprof", dump_of(&format!("com.acme.{}", "x".repeat(186)), 700));
    for dump in [PLUGINS, IDLE, &evil, &empty, &deep, &long] {
        let output = place.run(&["check", "--init", dump]);
        assert_eq!(output.status.code(), Some(0), "{dump}: {}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains(is_harmful), "{text:?}");
        let (json, code) = place.check(&text, &[dump]);
        assert_eq!(code, 0, "{dump}: {json:#}\n{text}");
        assert!(rows(&json).len() >= 8, "{text}");
        // What is commented out is right too.
        let (head, growth) = text.split_once("# Growth against").unwrap();
        let growth = growth.split_once("# [[rule]]").unwrap().1.replace("\n# ", "\n");
        let text = format!("{head}\n[[rule]]{growth}");
        let (json, code) = place.check(&text, &[dump, "--baseline", dump]);
        assert_eq!((code, passed(&json)["no place grows"]), (0, true), "{text}");
    }
    let file = place.path("made.toml").to_str().unwrap().to_owned();
    assert_eq!(place.run(&["check", "--init", IDLE, "-o", &file]).status.code(), Some(0));
    assert_eq!(place.run(&["check", IDLE, "--rules", &file]).status.code(), Some(0));
    let output = place.run(&["check", "--init", &evil, "-o", &evil]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    // Rules that somebody has worked on stay.
    let rules = place.write("mine.toml", rule("a", "measure = \"heap\"\nmax = 1"));
    let before = fs::read(&rules).unwrap();
    let output = place.run(&["check", "--init", IDLE, "-o", &rules]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("mine.toml already exists; use another name"), "{}", stderr(&output));
    assert_eq!(fs::read(&rules).unwrap(), before);
    assert_eq!(place.run(&["check", "--init", IDLE, "--format", "json"]).status.code(), Some(2));
}

/// `optional = true` is advised where it would let the rule pass, and nowhere else.
#[test]
fn optional_is_advised_only_where_it_helps() {
    let place = Folder::new();
    let missing = |name: &str, more: &str| {
        rule(name, &format!("measure = \"instances\"\nof = \"com.nope.Absent\"\n{more}"))
    };
    let rules = [
        missing("helps", "max = 5"),
        missing("too few", "min = 1"),
        missing("optional", "min = 1\noptional = true"),
        missing("passes", "max = 5\noptional = true"),
    ];
    let (json, code) = place.check(&rules.concat(), &[PLUGINS]);
    assert_eq!(code, 1);
    let advised: Vec<(bool, bool)> = rows(&json)
        .iter()
        .map(|row| {
            let message = row["message"].as_str().unwrap();
            (row["passed"].as_bool().unwrap(), message.contains("optional = true"))
        })
        .collect();
    assert_eq!(advised, [(false, true), (false, false), (false, false), (true, false)]);
}
