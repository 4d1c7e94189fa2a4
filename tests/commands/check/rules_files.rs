//! Rules files that are wrong or made to be misread, and those that `--init` writes.

use super::*;

#[test]
fn wrong_rules_are_named_with_line_and_column() {
    let place = Folder::new();
    let dump = place.write("a.hprof", dump_of("com.acme.Session", 3));
    let heap = "[[rule]]\nname = \"a\"\nmeasure = \"heap\"\n";
    let long = "x".repeat(201);
    let cases: [(String, &str); 27] = [
        (String::new(), ":1:1: there are no rules"),
        ("baseline = \"x\"\n".to_owned(), ":1:1: there are no rules"),
        ("rule = 3\n".to_owned(), ":1:8: `rule` is of type integer; expected tables"),
        ("rule = []\n".to_owned(), ":1:8: there are no rules"),
        ("rule = [1]\n".to_owned(), ":1:9: `rule` is of type integer; expected tables, each after [[rule]]"),
        ("[rule]\nname = 1\n".to_owned(), ":1:1: `rule` is of type table; expected tables"),
        (format!("{heap}maxi = 3\n"), ":4:1: unknown key `maxi`; did you mean max"),
        (format!("rules = 1\n{heap}max = 3\n"), ":1:1: unknown key `rules`; did you mean rule?"),
        (format!("{heap}max = -1\n"), ":4:7: `max` is -1; expected a size"),
        (format!("{heap}max = 1.5\n"), ":4:7: `max` is of type float"),
        (format!("{heap}max = \"5 MiBs\"\n"), ":4:7: `max` is `5 MiBs`; expected a size like"),
        (format!("{heap}max = \"five %\"\n"), ":4:7: `max` is `five %`"),
        (format!("{heap}max = \"-5 %\"\n"), ":4:7: `max` is `-5 %`"),
        (format!("{heap}max = 99999999999999999999\n"), ":4:7: `max` is 99999999999999999999"),
        (format!("{heap}max = 1\nmin = 2\n"), ":4:7: `min` is greater than `max`"),
        (format!("{heap}max = 1\nmin = \"2 %\"\n"), ":4:7: one limit is a percentage"),
        (format!("{heap}\n"), ":1:1: the rule has no limit; write max or min"),
        (format!("{heap}max = 1\nof = \"x\"\n"), ":5:6: `of` cannot be used for heap"),
        (
            format!("{heap}max = 1\nobjects = \"some\"\n"),
            ":5:11: unknown objects `some`; expected one of all, reachable, unreachable",
        ),
        (
            format!("{heap}max = 1\nseverity = \"errror\"\n"),
            ":5:12: unknown severity `errror`; did you mean error?",
        ),
        (format!("{heap}max = 1\noptional = \"yes\"\n"), ":5:12: `optional` is of type string"),
        (format!("{heap}max = 1\n{heap}max = 2\n"), ":6:8: rule `a` already exists in line 1"),
        ("[[rule]]\nmeasure = \"heap\"\nmax = 1\n".to_owned(), ":1:1: [[rule]] has no `name`"),
        (rule("damaged", "measure = \"heap\"\nmax = 1"), ":2:8: `damaged` is a reserved name"),
        (rule(&long, "measure = \"heap\"\nmax = 1"), ":2:8: `name` is 201 bytes long"),
        (
            rule("a", "measure = \"instances\"\nof = \"A\"\nmax = \"1 MiB\""),
            ":5:7: `max` is `1 MiB`; expected a number of 0 or more",
        ),
        (
            rule("a", "measure = \"growth\"\nof = \"clas A\"\nmax = 1"),
            ":4:6: the growth of `clas A` cannot be measured",
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
    assert_eq!(said.lines().filter(|line| line.contains(": error: ")).count(), 4, "{said}");
    assert!(said.contains("rules.toml:6:8: rule `a` already exists in line 1"), "{said}");
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
        ("two keys", format!("{0} = 1\n{0} = 2", &long[..400_000]).into_bytes(), "not valid TOML"),
        ("max", format!("{}\nmax = \"{long}\"", heap.replace("max = 1", "")).into_bytes(), "`max` is `xxx"),
        ("digits", heap.replace("= 1", &format!("= {}", "9".repeat(900_000))).into_bytes(), "`max` is 999"),
        ("hex", heap.replace("= 1", &format!("= 0x{}", "f".repeat(900_000))).into_bytes(), "`max` is fff"),
        (
            "ID",
            heap.replace("= 1", &format!("= \"0x{}\"", "f".repeat(900_000))).into_bytes(),
            "`max` is `0xfff",
        ),
        ("measure", heap.replace("heap", &long).into_bytes(), "unknown measure `xxx"),
        ("severity", format!("{heap}severity = \"{long}\"").into_bytes(), "unknown severity `xxx"),
        ("name", rule(&long, "measure = \"heap\"\nmax = 1").into_bytes(), "`name` is 900000 bytes long"),
        (
            "of",
            growth(&format!("place {}", "*a".repeat(400_000))),
            "`of` is 800006 bytes long; expected at most 1000",
        ),
        ("growing", growth(&"x".repeat(999)), "xxx…` cannot be measured"),
        (
            "waste",
            rule("a", &format!("measure = \"waste\"\nof = \"{}\"\nmax = 1", &long[..999])).into_bytes(),
            "unknown kind of waste `xxx",
        ),
        (
            "baseline",
            format!("baseline = \"{long}\"\n{heap}").into_bytes(),
            "`baseline` is 900000 bytes long",
        ),
        ("dump", bytes.clone(), "is not a rules file: it is a heap dump"),
        ("huge", format!("{heap}# {}", "x".repeat(2 << 20)).into_bytes(), "larger than 1 MiB"),
        ("deep", format!("a = {}", "[".repeat(400_000)).into_bytes(), "not valid TOML"),
        ("dots", format!("{} = 1", vec!["a"; 100_000].join(".")).into_bytes(), "rules.toml:1:"),
        ("tables", "[a]\n".repeat(100_000).into_bytes(), "rules.toml:"),
        ("many", many.into_bytes(), "too many rules (2000)"),
        ("latin", b"# \xe9\n".to_vec(), "rules.toml:1:3: not UTF-8"),
        ("zeros", vec![0; 1000], "is not a rules file: its first bytes are all zero"),
        ("nul", b"[[rule]]\nname = \"a\0b\"\n".to_vec(), "not valid TOML"),
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
        // The commented-out part is valid, too.
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
    assert!(stderr(&output).contains("mine.toml already exists; remove it"), "{}", stderr(&output));
    assert_eq!(fs::read(&rules).unwrap(), before);
    assert_eq!(place.run(&["check", "--init", IDLE, "--format", "json"]).status.code(), Some(2));
}
