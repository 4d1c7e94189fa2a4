//! `report`: one file, small enough to be sent, that loads nothing and, with --no-values, contains no secrets.

use std::collections::HashSet;

use serde_json::Value as Json;

use crate::kit::evil;
use crate::kit::process::{Place, sample};

/// Bytes of a report at most.
const MAX_BYTES: usize = 1 << 20;

fn report(place: &Place, more: &[&str]) -> (Option<i32>, String) {
    let output = place.run(&[&["report", "-q"], more].concat());
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// No address that a browser would load from, and nothing that runs.
fn check_alone(html: &str) {
    assert!(html.len() <= MAX_BYTES, "{}", html.len());
    for bad in [
        "<script",
        "src=",
        "@import",
        "url(",
        "<link",
        "<iframe",
        "<form",
        "href=\"http",
        "href=\"//",
        "style=",
        "onload",
    ] {
        assert!(!html.contains(bad), "{bad}");
    }
    assert!(html.contains("default-src 'none'"));
    let links = html.split("href=\"").skip(1);
    assert!(links.clone().count() > 0);
    links.for_each(|link| assert!(link.starts_with('#'), "{}", &link[..40.min(link.len())]));
}

#[test]
fn a_report_is_one_file_that_loads_nothing() {
    for name in ["leaks/s1", "leaks/s5", "jdk/jdk17", "jdk/jdk25-compact", "agent/all"] {
        let place = Place::new("a.hprof", &sample(name));
        let (code, html) = report(&place, &[]);
        assert_eq!(code, Some(0), "{name}");
        check_alone(&html);
        assert!(html.contains("may be secret"), "{name}");
        // Every section says which command shows it.
        let sections = html.matches("<section id=").count();
        assert!(
            sections >= 9 && html.matches("<code tabindex=\"0\">hprof-cli ").count() >= sections,
            "{name}"
        );
        assert!(!html.contains("{\"error\"") && !html.contains("class=\"failed\""), "{name}");
    }
}

#[test]
fn the_memory_of_the_process_is_a_section_where_it_is_given() {
    let place = Place::new("s1.hprof", &sample("leaks/s1"));
    let (_, html) = report(&place, &[]);
    assert!(!html.contains("id=\"memory\""));
    let process = std::fs::canonicalize("samples/process/mix-jdk17-g1.smaps").unwrap();
    let process = process.to_str().unwrap();
    let (code, html) = report(&place, &["--process", process]);
    assert_eq!(code, Some(0));
    check_alone(&html);
    assert!(html.contains("id=\"memory\"") && html.contains("thread stacks"));
    let (_, json) = report(&place, &["--process", process, "--sections", "memory", "--format", "json"]);
    let json: Json = serde_json::from_str(&json).unwrap();
    let document = &json["rows"][0]["document"];
    // The same as the command says.
    let words = ["--process", process, "--format", "json"];
    let alone: Json =
        serde_json::from_slice(&place.run(&[&["memory", "-q"], &words[..]].concat()).stdout).unwrap();
    for key in ["rows", "sentence", "process_bytes", "unexplained_bytes"] {
        assert_eq!(document[key], alone[key], "{key}");
    }
    let (code, _) = report(&place, &["--process", "samples/README.md"]);
    assert_eq!(code, Some(2));
}

#[test]
fn what_is_asked_for_is_in_it() {
    let place = Place::new("s1.hprof", &sample("leaks/s1"));
    let (_, html) = report(&place, &[]);
    for text in [
        "holds 9,000 x shop.Product",
        "<svg",
        "JNI global",
        "ProductService",
        "9,000 × Product",
        "duplicate_strings",
    ] {
        assert!(html.contains(text), "{text}");
    }
    let (_, some) = report(&place, &["--sections", "threads,histogram"]);
    assert!(
        some.contains("id=\"threads\"")
            && some.contains("id=\"histogram\"")
            && !some.contains("id=\"waste\"")
    );
    assert!(some.find("id=\"threads\"") < some.find("id=\"histogram\""));
    let (_, markdown) = report(&place, &["--format", "markdown"]);
    assert!(markdown.starts_with("# Heap report of `s1.hprof`") && markdown.contains("| ---: |"));
    assert!(markdown.contains("holds 9,000 x shop.Product"));
    let (_, json) = report(&place, &["--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (document["schema_version"].as_u64(), document["command"].as_str()),
        (Some(1), Some("report"))
    );
    let commands: Vec<&str> = document["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["document"]["command"].as_str().unwrap())
        .collect();
    assert!(
        ["overview", "leaks", "histo", "threads", "loaders", "waste", "strings", "info"]
            .iter()
            .all(|it| commands.contains(it))
    );
    std::fs::write(place.path("old.hprof"), sample("leaks/s5")).unwrap();
    let (code, html) = report(
        &place,
        &["--baseline", place.path("old.hprof").to_str().unwrap(), "--sections", "comparison"],
    );
    assert_eq!(code, Some(0));
    assert!(html.contains("static CACHE of shop.ProductService"));
}

#[test]
fn the_headline_is_that_of_leaks_and_costs_no_graph_of_its_own() {
    let bytes = sample("leaks/s1");
    let headline = |place: &Place, sections: &str| -> Json {
        let (code, text) = report(place, &["--format", "json", "--sections", sections]);
        assert_eq!(code, Some(0), "{sections}");
        serde_json::from_str::<Json>(&text).unwrap()["headline"].clone()
    };
    let place = Place::new("a.hprof", &bytes);
    let leaks: Json = serde_json::from_str(&place.answer(&["leaks", "-q", "--format", "json"])).unwrap();
    assert!(leaks["headline"].as_str().unwrap().contains("shop.Product"), "{}", leaks["headline"]);
    for sections in ["overview", "suspects", "waste", "properties,histogram"] {
        assert_eq!(headline(&place, sections), leaks["headline"], "{sections}");
        for format in ["html", "markdown"] {
            let (_, text) = report(&place, &["--format", format, "--sections", sections]);
            let [before, after] = if format == "html" { ["<h1>", "</h1>"] } else { ["**", "**\n"] };
            let title = text.split_once(before).unwrap().1.split_once(after).unwrap().0;
            // Its words: everything else may be escaped.
            let mut words = leaks["headline"].as_str().unwrap().split(|c: char| !c.is_alphanumeric());
            assert!(words.all(|word| title.contains(word)), "{format} {sections}: {title}");
        }
    }
    // Nothing is built that is only for the headline, so there is none, in a new place or beside an index.
    let new = Place::new("a.hprof", &bytes);
    for place in [&new, &place] {
        assert_eq!(headline(place, "properties"), Json::Null);
        let (_, html) = report(place, &["--sections", "properties"]);
        assert!(html.contains("<h1>Heap dump</h1>"));
        let (_, markdown) = report(place, &["--format", "markdown", "--sections", "properties"]);
        assert!(!markdown.contains("**"), "{markdown}");
    }
    let built = |place: &Place| -> Vec<String> {
        let files = std::fs::read_dir(place.index()).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let info = Place::new("a.hprof", &bytes);
    info.answer(&["info", "-q"]);
    assert_eq!(built(&new), built(&info));
    assert!(built(&place).iter().any(|name| name == "dominators"), "{:?}", built(&place));
}

/// Texts of the heap that are no names of the program.
fn secrets(place: &Place) -> Vec<String> {
    let output = place.run(&["strings", "-q", "--format", "json", "--min-length", "6", "--max-length", "60"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = String::from_utf8(place.run(&["classes", "-q", "--format", "csv"]).stdout).unwrap();
    let texts = document["rows"].as_array().unwrap().iter().filter_map(|row| row["label"].as_str());
    // A text with a blank, slash or digit and without a dot is not the name of a class, field or method.
    let texts = texts.filter(|text| {
        text.contains([' ', '/', '-']) && !text.contains(['.', '$', '(', ';']) && !names.contains(text)
    });
    // The JVM is not a secret, nor are words of the report itself.
    let jvm = ["OpenJDK", "mixed mode", "Debian"];
    let own = ["field", "Native Method)", "Unknown Source)", "Module"];
    let texts = texts.filter(|text| {
        !jvm.iter().any(|jvm| text.contains(jvm)) && !own.contains(&text.trim()) && text.trim().len() > 8
    });
    texts.map(str::to_owned).collect::<HashSet<_>>().into_iter().collect()
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn no_values_are_told_if_none_are_wanted() {
    for (name, known) in [
        ("leaks/s5", &["order-import-3", "user.dir", "file.encoding"][..]),
        ("leaks/s3", &["CLEANER", "user.dir"]),
        ("leaks/s4", &["event-producer", "event-consumer"]),
    ] {
        let place = Place::new("a.hprof", &sample(name));
        let secrets = secrets(&place);
        assert!(secrets.len() > 50, "{name}: {}", secrets.len());
        for format in ["html", "markdown", "json"] {
            let (code, hidden) = report(&place, &["--no-values", "--format", format]);
            assert_eq!(code, Some(0), "{name}");
            // The report's own words, independent of the dump.
            let own = |secret: &str| {
                format!(
                    "{}{}",
                    include_str!("../../src/cli/report/html.rs"),
                    include_str!("../../src/cli/pages/assets/style.css")
                )
                .contains(secret)
            };
            let found: Vec<&String> =
                secrets.iter().filter(|secret| hidden.contains(secret.as_str()) && !own(secret)).collect();
            assert!(found.is_empty(), "{name} {format}: {found:?}");
            for known in known {
                assert!(!hidden.contains(known), "{name} {format}: {known}");
            }
        }
        // Otherwise they are present.
        let (_, told) = report(&place, &[]);
        assert!(secrets.iter().any(|secret| told.contains(secret.as_str())), "{name}");
    }
}

/// Compares two documents: all figures must be equal, texts may be hidden. Returns the number of figures.
fn same_figures(at: &str, told: &Json, hidden: &Json) -> usize {
    match (told, hidden) {
        (Json::Object(told), Json::Object(hidden)) => {
            let keys = |of: &serde_json::Map<String, Json>| of.keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(told), keys(hidden), "{at}");
            // The set of properties is itself a value: those of the user are omitted.
            let all = told.iter().filter(|(key, _)| !["properties", "no_values"].contains(&key.as_str()));
            all.map(|(key, value)| same_figures(&format!("{at}/{key}"), value, &hidden[key])).sum()
        }
        // Names.
        (Json::Array(told), Json::Array(_)) if !told.is_empty() && told.iter().all(Json::is_string) => 0,
        (Json::Array(told), Json::Array(hidden)) => {
            assert_eq!(told.len(), hidden.len(), "{at}");
            let all = told.iter().zip(hidden).enumerate();
            all.map(|(number, (told, hidden))| same_figures(&format!("{at}/{number}"), told, hidden)).sum()
        }
        (Json::Number(_) | Json::Bool(_), _) => {
            assert_eq!(told, hidden, "{at}");
            1
        }
        // A hidden text.
        (Json::String(_), Json::String(_) | Json::Null) | (Json::Null, Json::Null) => 0,
        _ => panic!("{at}: {told} {hidden}"),
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn figures_are_the_same_with_values_hidden() {
    for name in ["leaks/s1", "leaks/s4", "leaks/s5", "jdk/jdk17", "agent/all"] {
        let place = Place::new("a.hprof", &sample(name));
        std::fs::write(place.path("old.hprof"), sample("leaks/s3")).unwrap();
        let old = place.path("old.hprof");
        let sections = "overview,suspects,dominators,histogram,comparison,threads,loaders,waste,properties";
        let all = |more: &[&str]| -> Json {
            let arguments = ["--format", "json", "--sections", sections, "--baseline", old.to_str().unwrap()];
            let (code, text) = report(&place, &[&arguments[..], more].concat());
            assert_eq!(code, Some(0), "{name}");
            serde_json::from_str(&text).unwrap()
        };
        let (told, hidden) = (all(&[]), all(&["--no-values"]));
        assert!(same_figures(name, &told, &hidden) > 500, "{name}");
        // Duplicates are found by what they hold.
        let waste = |document: &Json| -> u64 {
            let of = |row: &&Json| row["document"]["command"] == "waste";
            let waste = document["rows"].as_array().unwrap().iter().find(of).unwrap();
            let kinds = waste["document"]["rows"].as_array().unwrap();
            let strings = kinds.iter().find(|kind| kind["kind"] == "duplicate_strings").unwrap();
            strings["objects"].as_u64().unwrap()
        };
        assert_eq!(waste(&hidden), waste(&told), "{name}");
        assert!(waste(&hidden) > 0 || name == "agent/all", "{name}");
    }
}

#[test]
fn names_of_a_hostile_dump_are_text_and_leave_room() {
    let made = evil::made(&format!("</style><script>alert(1)</script>\u{202e}{}", "x".repeat(60_000)));
    let bytes = std::fs::read(&made.dump).unwrap();
    let place = Place::new("a.hprof", &bytes);
    for more in [&[][..], &["--no-values"]] {
        let (code, html) = report(&place, more);
        assert_eq!(code, Some(0));
        check_alone(&html);
        assert!(!html.contains('\u{202e}'));
    }
    let (_, markdown) = report(&place, &["--format", "markdown"]);
    assert!(!markdown.contains("<script>"));
    // JSON does not control a terminal either; a parser gets the same text.
    let (_, json) = report(&place, &["--format", "json"]);
    assert!(!json.contains('\u{202e}') && json.contains("\\u202e"));
}

#[test]
fn wrong_input_ends_with_what_to_do() {
    let place = Place::new("a.hprof", b"no dump");
    let output = place.run(&["report", "-o", "out.html"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!place.path("out.html").exists());
    assert!(!String::from_utf8(output.stderr).unwrap().is_empty());
    let output = place.run(&["report", "--sections", "nothing"]);
    assert_eq!(output.status.code(), Some(2));
    // The dump is never replaced.
    let place = Place::new("a.hprof", &sample("leaks/s1"));
    let dump = place.path("a.hprof");
    let output = place.run(&["report", "-o", dump.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read(dump).unwrap(), sample("leaks/s1"));
}

#[test]
fn recordings_and_old_dumps_have_reports_in_every_format() {
    for name in ["agent/all", "agent/sites"] {
        let place = Place::new("a.hprof", &sample(name));
        for format in ["html", "markdown", "json"] {
            let (code, text) = report(&place, &["--format", format]);
            assert!(code == Some(0) && text.len() > 500, "{name} {format}: {code:?}");
        }
    }
    let place = Place::new("a.txt", &std::fs::read("samples/agent/busy-cpu-samples.txt").unwrap());
    for format in ["html", "markdown", "json"] {
        let (code, text) = report(&place, &["--format", format]);
        assert!(code == Some(0) && text.contains("Busy.primes"), "{format}: {code:?}");
    }
    // There a name of a thread is an array.
    let place = Place::new("a.hprof", &sample("public/visualvm-small_heap"));
    let (_, told) = report(&place, &[]);
    assert!(told.contains("Attach Listener"));
    for format in ["html", "markdown", "json"] {
        let (code, hidden) = report(&place, &["--no-values", "--format", format]);
        assert!(
            code.is_some_and(|code| code != 2) && !hidden.contains("Attach Listener"),
            "{format}: {code:?}"
        );
    }
}

#[test]
fn a_damaged_dump_is_told_in_every_format() {
    let whole = sample("leaks/s1");
    let place = Place::new("a.hprof", &whole[..whole.len() * 6 / 10]);
    for format in ["html", "markdown", "json"] {
        let output = place.run(&["report", "--sections", "histogram", "--format", format]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(3), "{format}");
        assert!(text.contains("truncated"), "{format}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("truncated"), "{format}");
    }
    // Also if only the older dump is damaged.
    let good = Place::new("b.hprof", &whole);
    let (code, _) = report(&good, &["--baseline", place.dump.to_str().unwrap(), "--sections", "comparison"]);
    assert_eq!(code, Some(3));
}

#[test]
fn texts_are_not_to_be_had_without_values() {
    let place = Place::new("a.hprof", &sample("leaks/s5"));
    let (code, text) = report(&place, &["--no-values", "--sections", "strings"]);
    assert!(code == Some(2) && text.is_empty());
}
