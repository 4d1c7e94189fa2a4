//! Answers on a terminal: no line is too wide, truncation keeps what is most informative, and colors are few. All
//! through a pseudo-terminal, since lines in a pipe are never truncated.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

use hprof_cli::histogram::ClassPattern;
use serde_json::Value;
use unicode_width::UnicodeWidthChar;

use crate::kit::texts::sample_path as sample;
use crate::kit::{portion, terminal};

/// `{O}` is an object, `{S}` a String, `{A}` an array, `{L}` a loader, `{C}` the longest name of a class; `_` a space in a
/// query. The first is the dump alone. Left out is what other programs read and is no table: `threads --format text`, `leaks
/// --format markdown`, `convert`, `flamegraph`.
const COMMANDS: &[&str] = &[
    "",
    "overview",
    "histo --retained",
    "histo --group-by package",
    "histo --group-by loader --retained",
    "dominators --depth 4",
    "dominators --depth 40 --top 2",
    "dominators --group-by class",
    "dominators --group-by class-tree",
    "dominators --of {O} --depth 3",
    "dominators --of {C}",
    "leaks",
    "leaks --threshold 1",
    "waste",
    "waste --group-by loader",
    "waste --kind duplicate-strings",
    "waste --kind sparse-collections --group-by class",
    "retained {C} java.lang.String",
    "roots",
    "roots --top 300",
    "paths-to-root {C}",
    "paths-to-root java.lang.String --top 10",
    "paths-to-root {O} --paths 5 --all-references",
    "show {O} --incoming",
    "show {S} --incoming",
    "show {A}",
    "show {C}",
    "show {L}",
    "instances {C}",
    "instances java.lang.Thread",
    "instances java.lang.Class",
    "instances java.lang.String",
    "instances java.lang.String --sort value",
    "instances java.lang.Thread --sort holder.priority",
    "refs {O}",
    "refs {S} --incoming",
    "refs {O} --group-by class",
    "refs {C}",
    "classes",
    "classes --tree --depth 0 --top 0",
    "loaders",
    "loaders --duplicates",
    "loaders --duplicates --details",
    "oql select_*_from_java.lang.Class",
    "oql select_s,_s.@retainedHeapSize,_s.value_from_java.lang.String_s",
    "oql select_t,_t.@displayName,_t.@clazz.@name,_t.name,_t.@objectId,_t.@usedHeapSize,_t_from_java.lang.Thread_t",
    "oql select_nonsense_from_a.long.name.of.a.class.that.is.not.there_where_it_is_wrong_(",
    "strings --top 300",
    "strings --live",
    "strings --duplicates",
    "sites --stack",
    "traces",
    "cpu --stack",
    "cpu --group-by method",
    "cputime",
    "monitors",
    "monitors --waits",
    "threads --group",
    "threads --stack --locals",
    "threads --started",
    "summary",
    "info",
    "doctor",
    "index",
    "index --estimate",
    "index --verify",
    "show 0x12345",
    "histo NoSuchClass",
];

/// Directory of the indexes of all tests.
static INDEXES: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

fn command(arguments: &[String]) -> Command {
    // One for all: the ignored test compares versions.
    let program =
        std::env::var_os("WIDTHS_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_hprof-cli").into());
    let mut command = Command::new(program);
    command.args(arguments).env("HPROF_CLI_INDEX_DIR", INDEXES.path());
    command.env("TERM", "xterm").env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// Returns a command's output on a terminal with `columns` columns.
fn on_terminal(command: Command, columns: u16) -> String {
    typed(command, columns, "", &[])
}

/// The same of a command that asks for lines by a prompt.
fn typed(mut command: Command, columns: u16, prompt: &str, lines: &[&str]) -> String {
    let (mut master, slave) = terminal::open(columns, 50);
    if !lines.is_empty() {
        command.stdin(slave.try_clone().unwrap());
    }
    let mut child = command.stdout(slave.try_clone().unwrap()).stderr(slave).spawn().unwrap();
    // The command holds the other end too.
    drop(command);
    let (mut all, mut bytes, mut lines) = (Vec::new(), [0; 1 << 16], lines.iter());
    // At the end there is an error: nobody has the other end any more.
    while let Ok(length @ 1..) = master.read(&mut bytes) {
        all.extend_from_slice(&bytes[..length]);
        if bytes[..length].windows(prompt.len().max(1)).any(|part| part == prompt.as_bytes()) {
            // Ctrl-D behind the last.
            let line = lines.next().map_or("\u{4}".to_owned(), |line| format!("{line}\r"));
            master.write_all(line.as_bytes()).unwrap();
        }
    }
    child.wait().unwrap();
    String::from_utf8(all).unwrap()
}

/// The lines that a terminal shows, without escape sequences.
fn shown(text: &str) -> Vec<String> {
    let line = |line: &str| {
        // A progress bar draws over itself.
        let mut rest = line.trim_end_matches('\r').rsplit('\r').next().unwrap();
        let mut out = String::new();
        while let Some((before, after)) = rest.split_once("\u{1b}[") {
            out.push_str(before);
            rest = after.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, after)| after);
        }
        out + rest
    };
    text.split('\n').map(line).collect()
}

fn width(line: &str) -> usize {
    line.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// The rows of an answer in JSON.
fn rows(arguments: &[&str], dump: &Path) -> Vec<Value> {
    let mut all = words(arguments, dump);
    all.extend(["--format", "json", "--quiet"].map(str::to_owned));
    let output = command(&all).output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    json["rows"].as_array().cloned().unwrap_or_default()
}

/// A command and its dump.
fn words(arguments: &[&str], dump: &Path) -> Vec<String> {
    let dump = dump.to_str().unwrap().to_owned();
    let mut all: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
    all.insert(1, dump);
    all.retain(|word| !word.is_empty());
    all
}

/// The commands for a dump.
fn commands(dump: &Path) -> Vec<Vec<String>> {
    let first = |arguments: &[&str], key: &str| {
        rows(arguments, dump).iter().find_map(|row| row[key].as_str().map(str::to_owned))
    };
    let object = first(&["dominators", "--top", "3"], "object").unwrap_or_else(|| "0x1".to_owned());
    let or_object = |found: Option<String>| found.unwrap_or_else(|| object.clone());
    let string = or_object(first(&["instances", "java.lang.String", "--top", "1"], "object"));
    let array = or_object(first(&["instances", "java.lang.Object[]", "--top", "1"], "object"));
    let loader = or_object(first(&["loaders"], "object"));
    let names = rows(&["histo", "--top", "100"], dump);
    let names = names.iter().filter_map(|row| row["class"].as_str());
    let class = names.max_by_key(|name| name.len()).unwrap_or("java.lang.Thread").to_owned();
    let fill = |word: &str| {
        let places = [("{O}", &object), ("{S}", &string), ("{A}", &array), ("{L}", &loader), ("{C}", &class)];
        places.iter().fold(word.to_owned(), |word, (place, with)| word.replace(place, with))
    };
    let command = |text: &&str| {
        let query = |word: &str| if text.starts_with("oql") { word.replace('_', " ") } else { fill(word) };
        words(
            &text.split(' ').map(query).collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>(),
            dump,
        )
    };
    COMMANDS.iter().map(command).collect()
}

/// The lines that are wider than the terminal, by command, with how many there were in all.
fn too_wide(cases: &[(Vec<String>, u16)]) -> (BTreeMap<String, Vec<String>>, usize) {
    let (next, all, found) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || {
        while let Some((arguments, columns)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let text = on_terminal(command(arguments), *columns);
            assert!(
                !text.contains("unexpected argument") && !text.contains("panicked"),
                "{arguments:?}: {text}"
            );
            let lines = shown(&text);
            all.fetch_add(lines.len(), Ordering::Relaxed);
            let wide: Vec<String> =
                lines.into_iter().filter(|line| width(line) > usize::from(*columns)).collect();
            if !wide.is_empty() {
                found.lock().unwrap().insert(format!("{columns} columns: {}", arguments.join(" ")), wide);
            }
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    (found.into_inner().unwrap(), all.into_inner())
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut cases = Vec::new();
    for (name, widths) in [
        ("jdk/jdk17.hprof.zst", &[80, 120][..]),
        ("leaks/s3.hprof.zst", &[100]),
        ("leaks/s5.hprof.zst", &[200]),
        ("agent/all.hprof.zst", &[80]),
        ("agent/monitor.txt", &[80]),
    ] {
        for arguments in commands(&sample(name)) {
            cases.extend(widths.iter().map(|columns| (arguments.clone(), *columns)));
        }
    }
    let cases: Vec<_> = portion::some(&cases).cloned().collect();
    let (wide, _) = too_wide(&cases);
    assert!(wide.is_empty(), "{wide:#?}");
}

#[test]
fn no_line_of_a_path_over_a_frame_is_wider_than_the_terminal() {
    let dump = sample("leaks/s5.hprof.zst");
    // The table of the map that grows is a local of a thread, and in a field of the map.
    let table = "0xff78cfa0";
    let mut cases = Vec::new();
    for to in [table, "orders.Order"] {
        cases.extend([80, 100, 120, 200].map(|columns| (words(&["paths-to-root", to], &dump), columns)));
    }
    let cases: Vec<_> = portion::some(&cases).cloned().collect();
    let (wide, _) = too_wide(&cases);
    assert!(wide.is_empty(), "{wide:#?}");
    for (arguments, columns) in &cases {
        let text = shown(&on_terminal(command(arguments), *columns)).join("\n");
        let is_to_table = arguments.iter().any(|word| word == table);
        assert_eq!(text.contains("also held by:"), is_to_table, "{columns} columns:\n{text}");
        for name in ["ImportJob", "OrderIndex", "byNumber", "also a local"] {
            assert!(text.contains(name), "{arguments:?}, {columns} columns: {name} in\n{text}");
        }
    }
}

#[test]
fn the_first_screens_and_the_tables_of_the_shell_fit_80_columns() {
    let dump = sample("jdk/jdk17.hprof.zst");
    let (wide, lines) = too_wide(&[(Vec::new(), 80), (words(&[""], &dump), 80)]);
    assert!(wide.is_empty() && lines > 20, "{wide:#?}");
    let shell = command(&words(&["sql"], &dump));
    let asked = [".schema objects", ".schema", ".tables", ".help", ".schema java.lang.Thread"];
    let text = typed(shell, 80, "sql> ", &asked);
    assert!(text.contains("retained_bytes") && text.contains("functions:"), "{text}");
    let wide: Vec<String> = shown(&text).into_iter().filter(|line| width(line) > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
}

/// Packages, outer classes and ends become `…`: as a pattern, each name matches its class.
#[test]
fn names_of_narrow_tables_are_patterns() {
    let dump = sample("jdk/jdk17.hprof.zst");
    let names_at = |columns| -> Vec<String> {
        let histo = command(&words(&["histo", "--top", "0", "--quiet"], &dump));
        let is_row = |line: &String| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        let lines = shown(&on_terminal(histo, columns)).into_iter().filter(is_row);
        // The last row is the total.
        let mut names: Vec<String> =
            lines.filter_map(|line| Some(line.split(' ').next_back()?.to_owned())).collect();
        names.pop();
        names
    };
    let whole = names_at(400);
    assert!(whole.len() > 100 && !whole.iter().any(|name| name.contains('…')), "{whole:?}");
    for columns in [36, 44, 52, 80] {
        let names = names_at(columns);
        assert_eq!(names.len(), whole.len(), "{columns}");
        let is_wrong = |(name, class): &(&String, &String)| {
            let pattern: ClassPattern = name.parse().unwrap();
            !pattern.matches(class)
        };
        let wrong: Vec<_> = names.iter().zip(&whole).filter(is_wrong).collect();
        assert!(wrong.is_empty(), "{columns}: {wrong:#?}");
        let short: Vec<&str> = names.iter().filter(|name| name.contains('…')).map(String::as_str).collect();
        assert!(columns == 80 || short.len() > 20, "{columns}: {names:?}");
        let asked = [&["histo", "--top", "1"], &short[..]].concat();
        let output = command(&words(&asked, &dump)).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && !said.contains("no class matches"), "{columns}: {said}");
    }
}

/// The name of a file is not one of a class, whose packages can be dropped.
#[test]
fn the_name_of_a_file_loses_its_middle() {
    let dump = crate::kit::process::Folder::new();
    let path =
        dump.write("shop.prod.eu-west-1.hprof.zst", std::fs::read(sample("leaks/s1.hprof.zst")).unwrap());
    let rules = dump.write("rules.toml", "[[rule]]\nname = \"a\"\nmeasure = \"heap\"\nmax = \"1 GB\"\n");
    for arguments in [&["overview", &path][..], &["check", "--rules", &rules, &path, &path]] {
        let arguments: Vec<String> =
            [arguments, &["--quiet"]].concat().iter().map(ToString::to_string).collect();
        let lines = shown(&on_terminal(command(&arguments), 58));
        let line = lines.iter().find(|line| line.contains("hprof.zst")).unwrap();
        assert!(line.contains("-1.hprof.zst") && line.contains('…'), "{line}");
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn no_line_about_a_suspect_is_wider_than_the_terminal() {
    let mut cases = Vec::new();
    for name in ["s1", "s3", "s4", "s5", "s5-static"] {
        let dump = sample(&format!("leaks/{name}.hprof.zst"));
        for arguments in [&["leaks"][..], &["leaks", "--threshold", "1"], &["overview"]] {
            cases.extend([80, 100, 120, 200].map(|columns| (words(arguments, &dump), columns)));
        }
    }
    let (wide, _) = too_wide(&cases);
    assert!(wide.is_empty(), "{wide:#?}");
    for (arguments, columns) in &cases {
        let text = shown(&on_terminal(command(arguments), *columns)).join("\n");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("% of the reachable heap"), "{arguments:?}, {columns} columns:\n{text}");
        // Commands can be copied.
        assert!(text.contains("\nNext\n  hprof-cli "), "{arguments:?}, {columns} columns:\n{text}");
    }
}

#[test]
fn no_line_of_a_help_text_is_wider_than_the_terminal() {
    let help = command(&["--help".to_owned()]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let names = help.lines().filter_map(|line| line.strip_prefix("  ")?.split_once("  "));
    let is_name = |name: &&str| name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.contains(' ');
    let names: Vec<&str> = names.map(|(name, _)| name).filter(is_name).collect();
    for name in ["overview", "histo", "convert", "man"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    let mut cases = Vec::new();
    for option in ["-h", "--help"] {
        for columns in [80, 100, 120] {
            cases.push((vec![option.to_owned()], columns));
            cases.extend(names.iter().map(|name| (vec![(*name).to_owned(), option.to_owned()], columns)));
        }
    }
    let (wide, _) = too_wide(&cases);
    assert!(wide.is_empty(), "{wide:#?}");
}

#[test]
#[ignore = "takes minutes: all commands on all samples, at all widths"]
// The figures are what it is run for.
#[allow(clippy::print_stdout)]
fn no_line_of_any_sample_is_wider_than_the_terminal() {
    let mut samples = Vec::new();
    for folder in ["agent", "jdk", "leaks", "public"] {
        samples.extend(std::fs::read_dir(sample(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    let is_recording = |path: &PathBuf| {
        let name = path.to_str().unwrap();
        name.contains(".hprof.") || name.contains("/agent/") || name.ends_with(".txt.zst")
    };
    let mut cases = Vec::new();
    for path in samples.iter().filter(|path| is_recording(path)) {
        for arguments in commands(path) {
            cases.extend([80, 100, 120, 200].map(|columns| (arguments.clone(), columns)));
        }
    }
    let (wide, all) = too_wide(&cases);
    let count: usize = wide.values().map(Vec::len).sum();
    println!("{} answers, {all} lines, {count} too wide", cases.len());
    for columns in [80, 100, 120, 200] {
        let start = format!("{columns} columns:");
        let lines: usize =
            wide.iter().filter(|(key, _)| key.starts_with(&start)).map(|(_, lines)| lines.len()).sum();
        println!("{columns} columns: {lines} too wide");
    }
    assert_eq!(
        count,
        0,
        "{:#?}",
        wide.iter().map(|(key, lines)| (key, &lines[0])).take(50).collect::<Vec<_>>()
    );
}

#[test]
fn simple_class_names_are_whole() {
    for (name, question) in [
        ("jdk/jdk17.hprof.zst", "histo --top 30"),
        ("jdk/jdk17.hprof.zst", "histo --retained --top 30"),
        ("jdk/jdk17.hprof.zst", "dominators --depth 3 --top 5"),
        ("jdk/jdk17.hprof.zst", "classes --top 30"),
        ("jdk/jdk17.hprof.zst", "refs java.lang.Thread --incoming --top 20"),
        ("leaks/s3.hprof.zst", "loaders --top 30"),
        ("leaks/s3.hprof.zst", "loaders --duplicates --top 30"),
        ("leaks/s5.hprof.zst", "roots --top 20"),
        ("leaks/s5.hprof.zst", "instances *Map* --top 20"),
        ("agent/sites.hprof.zst", "sites --top 30"),
    ] {
        let arguments: Vec<&str> = question.split(' ').collect();
        let dump = sample(name);
        let text = shown(&on_terminal(command(&words(&arguments, &dump)), 80)).join("\n");
        let rows = rows(&arguments, &dump);
        assert!(!rows.is_empty(), "{question}");
        for row in rows {
            // Of a class object the table names the class that it represents, which may be a hidden one.
            let class = row["class"].as_str().filter(|class| *class != "java.lang.Class").unwrap_or_default();
            let simple = class.rsplit(['.', '$']).next().unwrap();
            assert!(text.contains(simple), "{question}: {class} in\n{text}");
        }
    }
}

#[test]
fn colours_are_few_and_on_terminals_only() {
    let dump = sample("jdk/jdk17.hprof.zst");
    let arguments = words(&["dominators"], &dump);
    let text = on_terminal(command(&arguments), 80);
    assert!(text.contains("\u{1b}[2m0x"), "IDs are dim: {text:?}");
    assert!(text.contains("\u{1b}[1m6,501,112\u{1b}[0m"), "retained sizes are bold: {text:?}");
    let has_none = |text: &str| assert!(!text.contains('\u{1b}'), "{text:?}");
    let mut plain = command(&arguments);
    plain.env("NO_COLOR", "1");
    has_none(&on_terminal(plain, 80));
    let mut plain = command(&arguments);
    plain.args(["--color", "never"]);
    has_none(&on_terminal(plain, 80));
    let piped = command(&arguments).output().unwrap();
    has_none(&String::from_utf8(piped.stdout).unwrap());
    let piped = String::from_utf8(command(&words(&["classes"], &dump)).output().unwrap().stdout).unwrap();
    assert!(piped.lines().any(|line| width(line) > 80), "a pipe gets all as wide as it is");

    // A truncated dump, and no dump.
    let dir = tempfile::tempdir().unwrap();
    let whole = zstd::decode_all(File::open(sample("agent/all.hprof.zst")).unwrap()).unwrap();
    let mut codes = Vec::new();
    for (bytes, start) in [
        (&whole[..whole.len() / 2], "\u{1b}[33mhprof-cli: warning: "),
        (&b"no dump"[..], "\u{1b}[31mhprof-cli: error: "),
    ] {
        let path = dir.path().join("cut.hprof");
        std::fs::write(&path, bytes).unwrap();
        let text = on_terminal(command(&words(&["histo"], &path)), 80);
        assert!(text.contains(start), "{text:?}");
        let colours = text.split("\u{1b}[").skip(1).filter_map(|code| code.split_once('m'));
        codes.extend(
            colours.map(|(code, _)| code.to_owned()).filter(|code| code.bytes().all(|c| c.is_ascii_digit())),
        );
    }
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes, ["0", "1", "31", "33"]);
}
