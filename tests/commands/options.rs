//! Options and arguments that mean the same in every command: object IDs with and without `0x`, classes for objects.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use hprof_writer::{
    ClassDump, DumpWriter, Elements, HeapModel, HeapWriter, IdSize, Jdk, Options, Root, Type, Value, Version,
};

use crate::kit::dump::Dump;

struct Sample {
    dump: Dump,
    /// A map, and its class object.
    ids: [String; 2],
    /// An array of bytes.
    array: String,
}

/// A dump with a class whose name could be an object ID.
fn sample() -> Sample {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let map = model.class("java.util.HashMap", Some(jdk.object), &[("size", Type::Int)]);
    let decade = model.class("com.acme.decade20", Some(jdk.object), &[]);
    let object = model.instance(map, &[Value::Int(3)]);
    let other = model.instance(decade, &[]);
    let array = model.prim_array(Elements::of_bytes(b"abcdefg"));
    for object in [object, other, array] {
        model.root(object, Root::Unknown);
    }
    let written = model.write(&Options::hotspot());
    let dump = Dump::written(&written);
    let (heap, _) = dump.open_graph();
    let summary = heap.summary();
    let class =
        summary.classes().iter().find(|class| summary.class_name(class) == "java.util.HashMap").unwrap();
    let ids = [object.0, class.id.get()].map(|id| format!("{id:#x}"));
    Sample { dump, ids, array: format!("{:#x}", array.0) }
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn ids_are_written_with_0x_or_without() {
    let Sample { dump, ids: [object, class], .. } = sample();
    // An object of this ID begins with a letter or a digit; both are long.
    for command in ["retained", "paths-to-root", "refs", "show", "instances", "histo"] {
        for id in [&object, &class] {
            // A histogram is of classes; objects of the map refer to nothing of theirs.
            if command == "histo" && *id == object {
                continue;
            }
            let bare = id.trim_start_matches("0x");
            let rows = |id: &str| {
                let output = dump.run(&[command, id, "--format", "csv"]);
                // As it was given.
                stdout(&output).to_lowercase().replace("0x", "").replace(bare, "")
            };
            assert_eq!(rows(bare), rows(id), "{command} {id}");
            assert_eq!(rows(&bare.to_uppercase()), rows(id), "{command} {id}");
        }
    }
    let of_object = stdout(&dump.run(&["instances", &object, "--format", "csv"]));
    let of_class = stdout(&dump.run(&["instances", "java.util.HashMap", "--format", "csv"]));
    assert_eq!(of_object, of_class, "the objects of the class of an object");
    assert_eq!(of_object.lines().count(), 2);
    let of_class = stdout(&dump.run(&["histo", &class, "--format", "csv"]));
    assert_eq!(of_class, stdout(&dump.run(&["histo", "java.util.HashMap", "--format", "csv"])));
    let output = dump.run(&["histo", &object]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is not a class object"), "{}", stderr(&output));
}

#[test]
fn a_class_whose_name_could_be_an_id_is_meant() {
    let Sample { dump, .. } = sample();
    for command in ["retained", "instances", "histo", "show", "refs", "paths-to-root"] {
        let output = dump.run(&[command, "decade20", "--format", "json"]);
        let text = stdout(&output);
        assert!(text.contains("com.acme.decade20") || command == "retained", "{command}: {text}");
        if command == "retained" {
            assert!(text.contains("\"objects\": 1"), "{text}");
        }
        let output = dump.run(&[command, "0xdecade20"]);
        assert_eq!(output.status.code(), Some(1), "{command}: {}", stderr(&output));
        let output = dump.run(&[command, "decade21"]);
        assert_eq!(output.status.code(), Some(1), "{command}: {}", stderr(&output));
    }
}

#[test]
fn classes_are_named_by_ids() {
    let Sample { dump, ids: [object, class], .. } = sample();
    for with in [&["--format", "csv"][..], &["--tree", "--format", "csv"]] {
        let rows = |id: &str| stdout(&dump.run(&[&["classes", id], with].concat()));
        let named = rows("java.util.HashMap");
        assert_eq!(named.lines().count(), 2, "{named}");
        assert_eq!(rows(&object), named, "the class of an object");
        assert_eq!(rows(&class), named, "the class that a class object represents");
        // A pattern beside it counts as well.
        let both = stdout(&dump.run(&[&["classes", &object, "com.acme.decade20"], with].concat()));
        assert_eq!(both.lines().count(), 3, "{both}");
    }
    for with in [&[][..], &["--tree"]] {
        let output = dump.run(&[&["classes", "0x7"], with].concat());
        let said = stderr(&output);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{said}");
        assert!(
            said.contains("no object 0x7 in ") && said.contains("; the nearest objects are 0x"),
            "{said}"
        );
        assert!(!said.contains("matches"), "{said}");
    }
}

#[test]
fn options_without_effect_say_so() {
    let Sample { dump, ids: [object, _], .. } = sample();
    let top = "note: --top is for classes";
    let depth = "note: --depth is for classes";
    let paths = "note: --paths is for objects";
    for (to, options, notes) in [
        (object.as_str(), &["--paths", "2"][..], &[][..]),
        (&object, &["--top", "2"], &[top]),
        (&object, &["--top", "2", "--depth", "3"], &[top, depth]),
        ("java.util.HashMap", &["--top", "2", "--depth", "3"], &[]),
        ("java.util.HashMap", &["--paths", "3"], &[paths]),
    ] {
        let said = stderr(&dump.run(&[&["paths-to-root", to], options].concat()));
        for note in [top, depth, paths] {
            assert_eq!(said.contains(note), notes.contains(&note), "{to} {options:?}: {said}");
        }
        let quiet = stderr(&dump.run(&[&["paths-to-root", to, "--quiet"], options].concat()));
        assert_eq!(quiet, "");
    }
}

#[test]
fn a_range_may_be_one_element() {
    let Sample { dump, array, .. } = sample();
    let one = stdout(&dump.run(&["show", &array, "--range", "5", "--format", "csv"]));
    assert_eq!(one, stdout(&dump.run(&["show", &format!("{array}[5]"), "--format", "csv"])));
    assert_eq!(one.lines().count(), 2);
    assert!(one.contains("102"), "the sixth byte is an f: {one}");
}

#[test]
fn sorting_by_retained_bytes_shows_them() {
    let Sample { dump, .. } = sample();
    let sorted = stdout(&dump.run(&["histo", "--sort", "retained", "--format", "csv"]));
    assert_eq!(sorted, stdout(&dump.run(&["histo", "--retained", "--format", "csv"])));
    for with in [&["--unreachable"][..], &["--layout", "header=16"], &["--heap", "app"]] {
        let output = dump.run(&[&["histo", "--sort", "retained"], with].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("--sort retained"), "{}", stderr(&output));
    }
}

/// A dump with a list of numbers, and one of different objects, of which only the first accumulates.
fn list_and_parts(with_list: bool) -> Vec<u8> {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let order = model.class("shop.Order", Some(jdk.object), &[("number", Type::Long)]);
    let mut parts: Vec<_> = (0..5).map(|_| model.prim_array(Elements::of_bytes(&[1; 2000]))).collect();
    if with_list {
        let orders: Vec<_> = (0..5000).map(|_| model.instance(order, &[Value::Long(1)])).collect();
        parts.push(model.object_array(jdk.object_array, &orders));
    }
    for part in parts {
        model.root(part, Root::StickyClass);
    }
    model.write(&Options::hotspot()).bytes()
}

#[test]
fn leaks_ends_by_what_it_found() {
    let formats = ["table", "json", "csv", "markdown"];
    let code = |dump: &Dump, more: &[&str]| dump.run(&[&["leaks"], more].concat()).status.code();
    let (list, parts) = (Dump::of(&list_and_parts(true)), Dump::of(&list_and_parts(false)));
    for format in formats {
        assert_eq!(code(&list, &["--format", format]), Some(0), "{format}: there is a list");
        assert_eq!(
            code(&parts, &["--threshold", "50", "--format", format]),
            Some(1),
            "{format}: there is none"
        );
        assert_eq!(code(&parts, &["--threshold", "100", "--format", format]), Some(1), "{format}");
    }
    for more in [
        &["--threshold", "0"][..],
        &["--threshold", "101"],
        &["--threshold", "256"],
        &["--threshold", "-1"],
        &["--threshold", "5%"],
        &["--threshold", ""],
        &["--threshold"],
        &["--format", "html"],
        &["--top", "3"],
        &["java.lang.String"],
    ] {
        let output = list.run(&[&["leaks"], more].concat());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{more:?}");
        assert!(stderr(&output).contains("hprof-cli: error: "), "{more:?}: {}", stderr(&output));
    }
    assert_eq!(code(&Dump::of(b"no dump"), &[]), Some(2));
    // A dump whose second half is missing: whatever is found in it.
    for bytes in [list_and_parts(true), list_and_parts(false)] {
        let cut = Dump::of(&bytes[..bytes.len() / 2]);
        for format in formats {
            let output = cut.run(&["leaks", "--format", format]);
            assert_eq!(output.status.code(), Some(3), "{format}");
            assert!(stderr(&output).contains("hprof-cli: warning: "), "{format}: {}", stderr(&output));
            assert!(!stderr(&cut.run(&["leaks", "--format", format, "-q"])).contains("note: "), "{format}");
        }
    }
}

#[test]
fn a_threshold_is_a_share_of_the_reachable_bytes() {
    let dump = Dump::of(&list_and_parts(true));
    let rows = |threshold: &str| {
        let output = dump.run(&["leaks", "--threshold", threshold, "--format", "json"]);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let all = document["total"]["reachable_bytes"].as_u64().unwrap();
        let percent: u64 = threshold.parse().unwrap();
        assert_eq!(document["total"]["threshold_bytes"], all * percent / 100);
        let rows = document["rows"].as_array().unwrap().clone();
        let least = rows.iter().map(|row| row["retained_bytes"].as_u64().unwrap()).min();
        assert!(least.is_none_or(|least| least > all * percent / 100), "{threshold}: {rows:?}");
        rows.len()
    };
    let counts = ["1", "10", "50", "90", "100"].map(rows);
    assert!(counts.is_sorted_by(|a, b| a >= b) && counts[1] == 2 && counts[4] == 0, "{counts:?}");
}

#[test]
fn quiet_twice_is_quiet() {
    let Sample { dump, .. } = sample();
    let once = dump.run(&["histo", "-q", "no.such.Class"]);
    let twice = dump.run(&["histo", "-q", "-q", "no.such.Class"]);
    assert_eq!((once.status.code(), &once.stdout), (twice.status.code(), &twice.stdout));
    assert_eq!(stderr(&twice), "");
    assert_eq!(dump.run(&["histo", "-qq", "--quiet"]).status.code(), Some(0));
}

/// The man page of a command, or of the program.
fn man(command: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_hprof-cli")).arg("man").args(command).output().unwrap();
    stdout(&output)
}

fn commands() -> Vec<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_hprof-cli")).arg("man").output().unwrap();
    let text = stdout(&help);
    let names = text.lines().filter_map(|line| line.strip_prefix("hprof\\-cli\\-")?.strip_suffix("(1)"));
    names.map(|name| name.replace("\\-", "-")).collect()
}

#[test]
fn man_pages_have_the_sections_that_are_looked_for() {
    let commands = commands();
    assert!(commands.len() > 20 && commands.iter().any(|command| command == "paths-to-root"), "{commands:?}");
    for command in &commands {
        let page = man(&[command]);
        let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
        let expected = [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "OPTIONS",
            "EXIT STATUS",
            "ENVIRONMENT",
            "FILES",
            "EXAMPLES",
            "SEE ALSO",
        ];
        let mut rest = sections.iter().map(|section| section.trim_matches('"'));
        let missing: &[&str] = match command.as_str() {
            "completions" | "man" => &["ENVIRONMENT", "FILES"],
            // They read no dumps, or each only once, so they have no index.
            "agent" | "run" | "listen" | "jvms" | "dump" | "recover" | "redact" => &["FILES"],
            _ => &[],
        };
        for section in expected.into_iter().filter(|name| !missing.contains(name)) {
            let is_there = rest.any(|there| there == section);
            assert!(is_there, "{command}: {section} is not there, or not in its place: {sections:?}");
        }
        let is_heading = |line: &str| ["Examples:", "Exit codes:"].contains(&line.trim());
        assert!(!page.lines().any(is_heading), "{command}: {page}");
    }
    let page = man(&["histo"]);
    assert!(
        page.contains("[\\fB\\-\\-top\\fR\\ \\fIN\\fR]"),
        "options of the synopsis have their values: {page}"
    );
    let title = page.lines().find(|line| line.starts_with(".TH")).unwrap();
    assert!(title.contains(concat!("hprof\\-cli ", env!("CARGO_PKG_VERSION"))), "{title}");
    let date = title.split('"').find(|part| part.len() == 10 && part.matches('-').count() == 2);
    assert!(date.is_some(), "a date: {title}");
    for variable in ["HPROF_CLI_INDEX_DIR", "HPROF_CLI_MEMORY", "NO_COLOR", "XDG_CACHE_HOME"] {
        assert!(page.contains(&format!("\\fB{variable}\\fR")), "{variable}");
    }
    assert!(man(&[]).contains(".SH \"EXIT STATUS\""));
}

#[test]
fn man_pages_are_without_faults() {
    let lint = |page: &str| -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.1");
        std::fs::write(&path, page).unwrap();
        let mut mandoc = Command::new("mandoc");
        mandoc.args(["-T", "lint", "-W", "warning"]).arg(&path).stdin(Stdio::null());
        let output = mandoc.output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output))
    };
    for command in commands() {
        match lint(&man(&[&command])) {
            None => {
                let _ = writeln!(std::io::stderr(), "mandoc is not installed");
                return;
            }
            Some(said) => assert_eq!(said, "", "{command}"),
        }
    }
}

#[test]
fn digits_are_decimal_and_0x_is_hexadecimal() {
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    out.string(1, "java/lang/Object");
    out.load_class(1, 0x1000, 0, 1);
    let mut heap = HeapWriter::new(IdSize::Eight);
    heap.class_dump(&ClassDump { id: 0x1000, ..ClassDump::default() });
    // The digits of the second, read as hexadecimal ones, are those of no other object; those of the first are.
    let (first, other) = (4_229_857_528_u64, 0x1234_5678);
    for id in [first, other] {
        heap.instance(id, 0, 0x1000, &[]);
        heap.root(id, Root::Unknown);
    }
    out.heap_segment(&heap);
    out.heap_dump_end();
    let dump = Dump::of(&out.into_bytes());
    let shown = |id: &str| {
        let output = dump.run(&["show", id, "--format", "json"]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (json["rows"][0]["object"].as_str().map(str::to_owned), String::from_utf8(output.stderr).unwrap())
    };
    // As an export and OQL print it, and as all else does.
    for id in ["4229857528", "0xfc1e80f8", "fc1e80f8"] {
        assert_eq!(shown(id).0.as_deref(), Some("0xfc1e80f8"), "{id}");
    }
    let (object, said) = shown("12345678");
    assert_eq!(object, None);
    assert!(said.contains("12345678 was read as decimal: 0x12345678 is an object"), "{said}");
    assert!(shown("12345679").1.contains("the nearest objects are 0x"));
}

/// Names of files that a shell, Markdown, a command line or a text could take for something else.
#[cfg(unix)]
const NAMES: &[&[u8]] = &[
    b"caf\xe9 of 'prod'.hprof",
    b"app.prod.eu-west-1.hprof",
    b"two\nlines.hprof",
    "\u{202e}x.hprof".as_bytes(),
    b"a`;echo PWNED;`.hprof",
    b"``a$(echo PWNED)```",
    b"-x.hprof",
];

/// A directory in which commands are run, with indexes in it.
#[cfg(unix)]
struct Shell {
    folder: tempfile::TempDir,
}

#[cfg(unix)]
impl Shell {
    fn environment(&self, mut command: Command, index: Option<&str>) -> Output {
        command.current_dir(self.folder.path()).env_remove("HPROF_CLI_INDEX_DIR");
        command.envs(index.map(|index| ("HPROF_CLI_INDEX_DIR", index)));
        command.output().unwrap()
    }

    /// Returns a command's answer about a file here.
    fn ask(&self, name: &[u8], words: &[&std::ffi::OsStr], index: Option<&str>) -> String {
        use std::os::unix::ffi::OsStrExt as _;
        let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
        command.args(words).arg("--").arg(std::ffi::OsStr::from_bytes(name));
        let output = self.environment(command, index);
        assert_eq!(output.status.code(), Some(0), "{name:?} {words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command line that was printed: it finds the dump, and does nothing else.
    fn check(&self, line: &str, index: Option<&str>) {
        let mut bash = Command::new("bash");
        bash.args(["-c", &format!("hprof-cli() {{ {} \"$@\"; }}; {line}", env!("CARGO_BIN_EXE_hprof-cli"))]);
        let output = self.environment(bash, index);
        assert!(output.status.code().unwrap() < 2, "{line}: {}", stderr(&output));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.lines().all(|line| line != "PWNED"), "{line}: {said}");
    }
}

/// The text of a line of Markdown that is a code span.
#[cfg(unix)]
fn code_span(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('`');
    let fence = &line[text.len()..];
    let (text, behind) = text.split_at(text.rfind(fence).filter(|_| !fence.is_empty())?);
    let text = if behind == fence { text } else { return None };
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    assert_ne!(longest, fence.len(), "it ends before: {line}");
    Some(text.strip_prefix(' ').and_then(|text| text.strip_suffix(' ')).unwrap_or(text))
}

/// The commands to type next can be typed, whatever the file is called, and it is shown whole.
#[cfg(unix)]
#[test]
fn files_of_any_name_are_named_so_that_a_shell_finds_them() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let bytes = std::fs::read(&sample().dump.path).unwrap();
    let shell = Shell { folder: tempfile::tempdir().unwrap() };
    let index = Some("index");
    for name in NAMES {
        std::fs::write(shell.folder.path().join(OsStr::from_bytes(name)), &bytes).unwrap();
        let text = shell.ask(name, &["overview".as_ref()], index);
        let next = text.split_once("\nNext\n").unwrap().1.replace("\\\n    ", "");
        let line = next.lines().find(|line| line.trim().starts_with("hprof-cli")).unwrap();
        // The text after two spaces is the reason.
        shell.check(line.trim().split("  ").next().unwrap(), index);
        if name.starts_with(b"app") {
            assert!(text.starts_with("app.prod.eu-west-1.hprof: "), "{text}");
        }
        // A report asks commands of its own, and names them.
        let report = ["report", "--format", "markdown", "-q", "--sections", "overview,histogram,properties"];
        let text = shell.ask(name, &report.map(OsStr::new), index);
        assert!(text.starts_with("# Heap report of"));
        let lines: Vec<&str> = text.lines().filter_map(code_span).collect();
        assert_eq!(lines.len(), 3, "{text}");
        lines.iter().for_each(|line| shell.check(line, index));
    }
}

/// A directory for indexes that is no text is the one that a report uses, and names.
#[cfg(unix)]
#[test]
fn a_report_uses_the_directory_for_indexes_that_was_given() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let shell = Shell { folder: tempfile::tempdir().unwrap() };
    std::fs::write(shell.folder.path().join("a.hprof"), std::fs::read(&sample().dump.path).unwrap()).unwrap();
    let index = OsStr::from_bytes(b"ix\xe9 a");
    let report = ["report", "--format", "markdown", "-q", "--sections", "histogram,treemap", "--index-dir"];
    let words = [&report.map(OsStr::new)[..], &[index]].concat();
    let text = shell.ask(b"a.hprof", &words, None);
    let lines: Vec<&str> = text.lines().filter_map(code_span).collect();
    assert!(matches!(lines[..], [line] if line.ends_with(" $'--index-dir=ix\\351 a'")), "{lines:?}");
    shell.check(lines[0], None);
    // A picture opens the dump by itself.
    shell.ask(
        b"a.hprof",
        &words
            .iter()
            .map(|word| if *word == "markdown" { "html".as_ref() } else { *word })
            .collect::<Vec<_>>(),
        None,
    );
    let mut there: Vec<_> =
        std::fs::read_dir(shell.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    there.sort();
    assert_eq!(there, [OsStr::new("a.hprof"), index]);
}
