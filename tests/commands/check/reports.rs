//! Reports for CI servers and code hosts.

use quick_xml::events::Event;

use super::*;

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
