//! Hidden values: no command that reads a dump shows one, in any format, nor answers a question about one.

use std::process::Output;

use crate::planted::{Planted, found_in, planted};

/// Commands that show nothing of a dump, and why.
const SHOW_NOTHING: &[(&str, &str)] = &[
    ("agent", "tells where a file is"),
    ("browse", "answers by the other commands, in a terminal"),
    ("completions", "writes a shell script"),
    ("convert", "writes values, and is refused"),
    ("dump", "takes a dump of a JVM"),
    ("help", "prints help"),
    ("jvms", "lists processes"),
    ("listen", "receives recordings"),
    ("man", "writes roff"),
    ("mcp", "answers by the other commands: its tests are in this folder"),
    ("recover", "writes values, and is refused"),
    ("run", "starts a program"),
    ("serve", "answers by the other commands: see `pages`"),
];

/// Returns the names of all commands, as the program lists them.
fn commands(place: &Planted) -> Vec<String> {
    let help = String::from_utf8(place.program().arg("--help").output().unwrap().stdout).unwrap();
    let lines = help.lines().skip_while(|line| !line.starts_with("Usage:"));
    let lines = lines.take_while(|line| !line.starts_with("Options:"));
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// Returns the ways in which a command is called; none if it is not known here.
fn calls(place: &Planted, command: &str) -> Vec<Vec<String>> {
    let dump = place.dump.to_str().unwrap();
    let of = |words: &[&str]| -> Vec<String> { words.iter().map(|word| (*word).to_owned()).collect() };
    let objects = || place.objects.iter().chain([&place.class]).map(String::as_str);
    let each = |more: &[&str]| -> Vec<Vec<String>> {
        objects().map(|object| of(&[&[dump, object], more].concat())).collect()
    };
    let one = |more: &[&str]| of(&[&[dump], more].concat());
    let out = |name: &str| place.path(name);
    match command {
        "overview" | "info" | "doctor" | "summary" | "monitors" | "cputime" | "sites" => vec![one(&[])],
        "cpu" => vec![one(&[]), one(&["--sort", "method"])],
        "leaks" => vec![one(&[])],
        "histo" => vec![one(&[]), one(&["--retained"]), one(&["--group-by", "loader"])],
        "dominators" => {
            vec![one(&[]), one(&["--depth", "9"]), one(&["--all"]), one(&["--group-by", "loader"])]
        }
        "places" => vec![one(&[]), one(&["--depth", "9", "--top", "0"])],
        "retained" | "refs" => each(&[]),
        "paths-to-root" => [each(&[]), vec![one(&["java.lang.String"]), one(&["com.acme.Config"])]].concat(),
        "loaders" => vec![one(&[]), one(&["--duplicates"])],
        "threads" => vec![
            one(&["--stack", "--locals"]),
            one(&["--group"]),
            one(&["--group", "--locals"]),
            one(&["--started"]),
        ],
        "strings" => {
            vec![one(&["--top", "0"]), one(&["--duplicates"]), one(&["--sort", "length", "--max-chars", "0"])]
        }
        "waste" => vec![one(&[]), one(&["--group-by", "loader"])],
        "report" => vec![one(&[])],
        "diff" => {
            let keys =
                "class package loader superclass place roots threads properties strings waste sites cpu";
            keys.split(' ').map(|key| of(&[dump, dump, "--group-by", key, "--top", "0"])).collect()
        }
        "trend" => vec![of(&[dump, dump, dump])],
        "check" => {
            let rules = out("rules.toml");
            let rule =
                |measure: &str| format!("[[rule]]\nname = \"{measure}\"\nmeasure = \"{measure}\"\nmax = 0\n");
            std::fs::write(&rules, ["secrets", "waste", "suspects"].map(rule).concat()).unwrap();
            vec![one(&["--rules", &rules]), one(&["--init"])]
        }
        "secrets" => vec![one(&[])],
        "export" => vec![of(&[dump, "--output-dir", &out("lake"), "--format", "csv"])],
        "show" => [each(&["--incoming"]), each(&[]), vec![one(&["com.acme.Config"])]].concat(),
        "instances" => vec![one(&["java.lang.**", "com.acme.**", "java.util.**", "byte[]", "char[]"])],
        "roots" | "traces" => vec![one(&[])],
        "classes" => vec![one(&[]), one(&["--tree"])],
        "oql" => {
            let queries = [
                "select * from java.lang.String s",
                "select toString(s), s.@displayName, s.value, s.value.@valueArray, s.toString().length() from java.lang.String s",
                "select s.@classSpecificName, s.@GCRootInfo, s from instanceof java.lang.Object s",
                "select c.number, c.port, c.rate, c.letter, c.text, c.map, c.box, c.box.value, c.bytes[0], c.chars, c.@fields from com.acme.Config c",
                "select c.getField('port'), c.getField('number').value, c.text.concat('x'), c.text.toUpperCase() from com.acme.Config c",
                "select c.@class.@staticFields, classof(c).LIMIT, classof(c).BIG from com.acme.Config c",
                "select t.name, t.@displayName, toString(t) from java.lang.Thread t",
                "select a.@valueArray, toString(a) from int[] a",
                "select e.key, e.value, e.@key, e.@value, toString(e.key) from java.util.HashMap$Node e",
                "select m[0], m[1], m.table[0], m.get(0) from java.util.HashMap m",
                "select max(c.number), sum(c.port), min(toString(c.text)) from com.acme.Config c",
                "select l.value, toString(l), l.intValue() from java.lang.Long l",
                "select e.detailMessage, toString(e) from java.lang.IllegalStateException e",
                "select toHex(c.number) from com.acme.Config c",
            ];
            queries.iter().map(|query| one(&[query])).collect()
        }
        "sql" => {
            let tables = String::from_utf8(
                place.run(&["sql", dump, "select name from sqlite_schema", "--format", "csv"], true).stdout,
            );
            let tables = tables.unwrap();
            let tables: Vec<&str> = tables.lines().skip(1).collect();
            assert!(tables.len() > 15, "{tables:?}");
            let mut queries: Vec<String> =
                tables.iter().map(|table| format!("select * from \"{table}\"")).collect();
            queries.extend(
                [
                    "select * from \"com.acme.Config\"",
                    "select * from \"java.lang.Long\"",
                    "select * from \"java.lang.Thread\"",
                    "select * from \"java.lang.String+\"",
                    "select * from \"java.util.HashMap$Node\"",
                    "select text(object), path(object), size(object), value(object, 'value'), value(object, 'text'), \
                     value(object, 'number'), value(object, 'port'), value(object, 'box.value'), value(object, 'name') from objects",
                    "select hex(text), substr(text, 3, 20), lower(text), json_quote(text), unicode(text) from strings",
                    "select group_concat(text, '') from strings",
                ]
                .map(str::to_owned),
            );
            queries.iter().map(|query| one(&[query])).collect()
        }
        "flamegraph" => vec![one(&["--by-thread"]), one(&[])],
        "memory" => vec![one(&[])],
        "redact" => vec![one(&["-o", &out("redacted.hprof"), "--force"])],
        "index" => vec![one(&["--verify"]), one(&[])],
        _ => Vec::new(),
    }
}

/// Returns the formats of a command, as its error lists them; one that is not given if there are none.
fn formats(place: &Planted, command: &str) -> Vec<Option<String>> {
    let dump = place.dump.to_str().unwrap();
    let error = place.run(&[command, dump, "--format=none-of-them"], true);
    let said = String::from_utf8_lossy(&error.stderr).into_owned();
    let listed = said.split("[possible values: ").nth(1).and_then(|rest| rest.split(']').next());
    match listed {
        Some(listed) if command != "export" => listed.split(", ").map(|word| Some(word.to_owned())).collect(),
        _ => vec![None],
    }
}

fn said(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn no_command_shows_a_hidden_value() {
    let place = planted();
    let (mut answers, mut shown) = (0, 0);
    let (mut leaks, mut refused) = (Vec::new(), Vec::new());
    for command in commands(&place) {
        let calls = calls(&place, &command);
        if SHOW_NOTHING.iter().any(|(known, _)| *known == command) {
            continue;
        }
        assert!(
            !calls.is_empty(),
            "{command}: say here how it is called, or that it shows nothing of a dump"
        );
        for format in formats(&place, &command) {
            for call in &calls {
                let mut words = vec![command.as_str()];
                words.extend(call.iter().map(String::as_str));
                let format = format.as_ref().map(|format| format!("--format={format}"));
                words.extend(format.as_deref());
                let output = place.run(&words, true);
                let text = said(&output);
                assert!(output.status.code().is_some() && !text.contains("panicked"), "{words:?}: {text}");
                // Some options are not for all formats.
                if output.status.code() == Some(2) && !text.contains("--format ") {
                    refused.push(format!("{words:?}: {text}"));
                }
                let found = found_in(&text);
                if !found.is_empty() {
                    let line = text.lines().find(|line| !found_in(line).is_empty()).unwrap_or_default();
                    leaks.push(format!(
                        "{words:?}: {found:?}: {}",
                        line.chars().take(200).collect::<String>()
                    ));
                }
                answers += 1;
                // The heap's values are there to be shown.
                if answers % 7 == 0 && !found_in(&said(&place.run(&words, false))).is_empty() {
                    shown += 1;
                }
            }
        }
    }
    assert!(refused.is_empty(), "{}\n{}", refused.join("\n"), leaks.join("\n"));
    assert!(leaks.is_empty(), "{} of {answers}:\n{}", leaks.len(), leaks.join("\n"));
    assert!(answers > 300 && shown > 15, "{answers} {shown}");
    // The files of an export.
    let mut files = vec![std::path::PathBuf::from(place.path("lake"))];
    let mut read = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(found_in(&text).is_empty(), "{path:?}: {:?}", found_in(&text));
            read += 1;
        }
    }
    assert!(read > 15, "{read} files");
}

/// A text report, too, has names of threads.
#[test]
fn no_name_of_a_thread_in_a_text_report_is_shown() {
    let place = planted();
    let text = place.path("java.hprof.txt");
    let made = place.run(&["convert", place.dump.to_str().unwrap(), "--output", &text], false);
    assert!(made.status.success(), "{}", said(&made));
    assert!(!found_in(&std::fs::read_to_string(&text).unwrap()).is_empty());
    for command in ["traces", "cpu", "summary", "flamegraph", "threads", "sites", "monitors", "report"] {
        for format in formats(&place, command) {
            let format = format!("--format={}", format.unwrap());
            let mut words = vec![command, &text, &format];
            words.extend((command == "threads").then_some("--started"));
            words.extend((command == "flamegraph").then_some("--by-thread"));
            let output = place.run(&words, true);
            assert!(found_in(&said(&output)).is_empty(), "{words:?}: {}", said(&output));
        }
    }
}

#[test]
fn no_condition_reads_a_hidden_value() {
    let place = planted();
    let dump = place.dump.to_str().unwrap();
    for words in [
        &["strings", dump, "--pattern", "zqMarker"][..],
        &["strings", dump, "--sort", "text"],
        &["instances", dump, "com.acme.Config", "--where", "port > 5"],
        &["instances", dump, "com.acme.Config", "--sort", "port"],
        &["threads", dump, "--thread", "zqMarker"],
        &["roots", dump, "--thread", "zqMarker"],
        &["traces", dump, "--thread", "zqMarker"],
        &["secrets", dump, "--show-values"],
        &["show", dump, &place.objects[2], "--as", "hex"],
        &["export", dump, "--output-dir", &place.path("texts"), "--strings", "text"],
        &["convert", dump],
        &["recover", dump, "-o", &place.path("recovered.hprof")],
    ] {
        let output = place.run(words, true);
        let text = said(&output);
        assert!(output.status.code() == Some(2) && text.contains("which are hidden"), "{words:?}: {text}");
        assert_ne!(place.run(words, false).status.code(), Some(2), "{words:?}");
    }
    // Queries see masks: guesses that are right and guesses that are wrong have the same answer.
    let same = |command: &str, right: &str, wrong: &str| {
        let rows = |query: &str, hides| {
            let output = place.run(&[command, dump, query, "--format", "csv"], hides);
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert_eq!(rows(right, true), rows(wrong, true), "{command} {right}");
        assert_ne!(rows(right, false), rows(wrong, false), "{command} {right}");
    };
    for (right, wrong) in [
        ("text like 'zqMarker%'", "text like 'zxMarker%'"),
        ("text glob 'zqM*'", "text glob 'zxM*'"),
        ("text = 'zqMarker-text'", "text = 'zqMarker-tex_'"),
        ("text < 'zr'", "text < 'zp'"),
        ("instr(text, 'zqM') > 0", "instr(text, 'zxM') > 0"),
    ] {
        let query = |condition: &str| format!("select count(*) from strings where {condition}");
        same("sql", &query(right), &query(wrong));
    }
    for (right, wrong) in [
        ("port = 739104217", "port = 739104218"),
        ("number > 5", "number < 5"),
        ("value(object, 'port') = 739104217", "value(object, 'port') = 1"),
        ("text(text) like 'zqMark%'", "text(text) like 'zxMark%'"),
        ("letter = 'z'", "letter = 'y'"),
    ] {
        let query = |condition: &str| format!("select count(*) from \"com.acme.Config\" where {condition}");
        same("sql", &query(right), &query(wrong));
    }
    for (right, wrong) in [
        ("c.port = 739104217", "c.port = 739104218"),
        ("c.number > 5", "c.number < 5"),
        ("c.letter = 'z'", "c.letter = 'y'"),
        ("c.text = \"zqMarker-text\"", "c.text = \"zqMarker-tex_\""),
        ("toString(c.text) LIKE \"zqM.*\"", "toString(c.text) LIKE \"zxM.*\""),
        ("c.text.startsWith(\"zqM\")", "c.text.startsWith(\"zxM\")"),
        ("c.bytes[0] = 122", "c.bytes[0] = 121"),
        ("c.box.value > 5", "c.box.value < 5"),
        (
            "c.text IN (select s from java.lang.String s where toString(s) = \"zqMarker-text\")",
            "c.text IN (select s from java.lang.String s where toString(s) = \"x\")",
        ),
    ] {
        let query =
            |condition: &str| format!("select c.@objectAddress from com.acme.Config c where {condition}");
        same("oql", &query(right), &query(wrong));
    }
    // Sizes are counts.
    let output = place
        .run(&["oql", dump, "select m from java.util.HashMap m where m.size = 2", "--format", "csv"], true);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2, "{}", said(&output));
}

#[test]
fn the_option_is_the_same_as_the_environment() {
    let place = planted();
    let dump = place.dump.to_str().unwrap();
    for words in [
        &["sql", dump, "select * from strings"][..],
        &["oql", dump, "select toString(s) from java.lang.String s"],
        &["report", dump, "--format", "json", "--quiet"],
    ] {
        let option = place.run(&[words, &["--no-values"]].concat(), false);
        assert!(
            found_in(&said(&option)).is_empty() && option.status.success(),
            "{words:?}: {}",
            said(&option)
        );
        assert!(!found_in(&said(&place.run(words, false))).is_empty(), "{words:?}");
    }
}
