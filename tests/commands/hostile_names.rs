//! Names and texts made to be misread: control characters, terminal escapes, bidirectional marks, formulas. They
//! occur wherever a dump can contain a text, and every command shows them, in every format. The list of forbidden
//! output is repeated here, independent of the program.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use hprof_writer::{
    DumpWriter, Elements, HeapModel, IdSize, Jdk, Layout, ObjectId, Options, Root, StackFrame, Type, Value,
    Version,
};

use crate::kit::evil::made;

/// Clears a screen, turns text around, rings, and looks like a formula. U+009B is what terminals take for ESC [.
const EVIL: &str = "=evil\u{1b}[2J\u{202e}\u{7}\u{9b}1m\u{2066}\u{feff}\u{e0041}\r";
/// Its form in an answer.
const SHOWN: &str = "=evil\\u001b[2J\\u202e\\u0007\\u009b1m\\u2066\\ufeff\\udb40\\udc41\\r";

/// Returns whether a terminal, editor or browser would not display it literally.
fn is_harmful(c: char) -> bool {
    let code = u32::from(c);
    // C0 and C1 controls and DEL; the bidirectional ones of UAX 9; tags, of which texts can be made that nobody sees.
    code < 0x20 && c != '\n'
        || (0x7F..=0x9F).contains(&code)
        || (0x202A..=0x202E).contains(&code)
        || (0x2066..=0x2069).contains(&code)
        || (0xE0000..=0xE007F).contains(&code)
        || matches!(code, 0x200E | 0x200F | 0x061C | 0x2028 | 0x2029 | 0xFEFF)
}

fn run(index: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    command.args(arguments).env("HPROF_CLI_INDEX_DIR", index).env("XDG_CACHE_HOME", index);
    command.output().unwrap()
}

/// Returns the output as text, after checking that it is harmless.
fn harmless(output: &Output, what: &str) -> String {
    for (stream, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let text = std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("{what}: {stream}: {error}"));
        // `convert` writes the agent's columns, which tabs divide.
        let bad = text.chars().position(|c| is_harmful(c) && !(c == '\t' && what.starts_with("convert")));
        assert!(
            bad.is_none(),
            "{what}: {stream}: {:?}",
            text.chars().skip(bad.unwrap().saturating_sub(30)).take(60)
        );
    }
    assert!(output.status.code().is_some_and(|code| code <= 3), "{what}: {:?}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// No cell that a spreadsheet would compute: RFC 4180 read by hand.
fn check_cells(csv: &str, what: &str) {
    let (mut cell, mut quoted, mut cells) = (String::new(), false, Vec::new());
    for c in csv.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' | '\n' if !quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    for cell in cells {
        let is_number = cell.parse::<f64>().is_ok();
        let starts = cell.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']);
        assert!(is_number || !starts, "{what}: the cell {cell:?}");
    }
}

/// Else nothing below proves anything.
#[test]
fn what_is_looked_for_would_be_found() {
    // Of `=evil`, `[2J`, `1m` nothing is harmful by itself.
    assert_eq!(EVIL.chars().filter(|c| is_harmful(*c)).count(), 8);
    assert!(!SHOWN.contains(is_harmful));
    for cell in ["=1+1", "\"=1,1\"", "x,@y", "1\n+x", "－2x"] {
        assert!(std::panic::catch_unwind(|| check_cells(&format!("{cell}\n"), "a cell")).is_err(), "{cell}");
    }
    check_cells("-1,+2.5,a=b,'=1,\"x,=y\"\n", "harmless cells");
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn no_command_lets_them_out_in_any_format() {
    let made = made(EVIL);
    let dump = made.dump.to_str().unwrap();
    let index = made.dir.path().join("index");
    let [class, instance, text, thread] =
        [made.class.0, made.instance.0, made.text.0, made.thread.0].map(|id| format!("{id:#x}"));
    // A dump that contains none of it, so that tables show all.
    let other = made.dir.path().join("other.hprof");
    fs::write(&other, DumpWriter::new(Version::V1_0_2, IdSize::Eight).into_bytes()).unwrap();
    let other = other.to_str().unwrap();
    let query = format!("SELECT o AS \"{EVIL}\", toString(s) FROM java.lang.String s");
    // With whether the name has to be there, as it is shown.
    let commands: &[(&str, &[&str], bool)] = &[
        ("info", &[], false),
        ("diff", &[other, "--top", "0"], true),
        ("diff", &[other, "--group-by", "superclass", "--retained", "--top", "0"], false),
        ("diff", &[other, "--group-by", "place", "--min-change", "1", "--top", "0"], true),
        ("trend", &[other, other, "--order", "given", "--all", "--min-change", "1", "--top", "0"], true),
        ("trend", &[other, other, "--group-by", "class", "--all", "--min-change", "1", "--top", "0"], true),
        ("diff", &[other, "--group-by", "roots"], false),
        ("diff", &[other, "--group-by", "threads"], true),
        ("diff", &[other, "--group-by", "properties"], false),
        ("diff", &[other, "--group-by", "strings"], true),
        ("diff", &[other, "--group-by", "waste"], false),
        ("histo", &["--top", "0"], true),
        ("histo", &["--group-by", "loader"], true),
        ("histo", &["--group-by", "package"], false),
        ("dominators", &["--top", "0"], true),
        ("dominators", &["--all"], true),
        ("leaks", &[], true),
        ("leaks", &["--threshold", "1"], true),
        ("waste", &["--top", "0"], false),
        ("waste", &["--group-by", "class", "--kind", "duplicate-strings"], false),
        ("retained", &[&instance], false),
        ("roots", &["--top", "0"], true),
        ("paths-to-root", &[&text], true),
        ("paths-to-root", &["java.lang.String"], true),
        ("show", &[&class], true),
        ("show", &[&instance], true),
        ("show", &[&text], false),
        ("show", &[&thread], false),
        ("show", &[EVIL], true),
        ("instances", &["java.lang.String"], true),
        ("instances", &[EVIL], true),
        ("refs", &[&instance], true),
        ("refs", &[&text, "--incoming"], true),
        ("classes", &["--top", "0"], true),
        ("classes", &["--tree", "--depth", "0"], true),
        ("loaders", &[], true),
        ("strings", &[], true),
        ("strings", &["--duplicates"], true),
        ("threads", &[], true),
        ("threads", &["--started"], true),
        ("sites", &[], true),
        ("traces", &[], true),
        ("cpu", &[], true),
        ("cputime", &[], false),
        ("monitors", &[], false),
        ("summary", &[], false),
        ("diff", &[OTHER, "--group-by", "sites", "--top", "0"], true),
        ("diff", &[OTHER, "--group-by", "cpu", "--top", "0", "--stack"], true),
        ("oql", &["SELECT s, toString(s) FROM java.lang.String s"], true),
        ("oql", &["SELECT * FROM OBJECTS java.lang.String"], false),
        ("oql", &[&query], false),
        // The object does not exist: the message quotes the argument.
        ("show", &["x\u{1b}[2J\u{202e}"], false),
        ("instances", &["x\u{1b}[2J\u{202e}"], false),
        ("histo", &["--class", "x\u{1b}[2J\u{202e}"], false),
        ("show", &["=evil"], false),
    ];
    for (command, more, is_shown) in commands {
        for format in ["table", "csv", "json"] {
            let arguments = [&[*command, dump][..], more, &["--format", format]].concat();
            let what = format!("{command} {more:?} {format}");
            let output = run(&index, &arguments);
            let out = harmless(&output, &what);
            // Some answers are for programs only.
            if *is_shown && !(more.contains(&"--all") && format == "table") {
                // JSON writes one backslash; a text within JSON within CSV has its own.
                let shown = if format == "csv" { SHOWN.trim_start_matches('=') } else { SHOWN };
                let flat = out.replace("\\\\", "\\");
                assert!(flat.contains(shown), "{what}: {out}{}", String::from_utf8_lossy(&output.stderr));
            }
            match format {
                "csv" => check_cells(&out, &what),
                "json" if !out.is_empty() => {
                    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
                    // A program gets the very name.
                    assert!(!is_shown || document.to_string().contains("evil"), "{what}");
                    if command == &"histo" && more.contains(&"--top") {
                        let rows = document["rows"].as_array().unwrap();
                        assert!(rows.iter().any(|row| row["class"] == EVIL), "{what}");
                    }
                }
                _ => {}
            }
        }
    }
}

/// A recording of another program.
const OTHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/agent/all-cpu.hprof.zst");

#[test]
fn pictures_and_texts_for_other_programs_are_harmless() {
    let made = made(EVIL);
    let dump = made.dump.to_str().unwrap();
    let index = made.dir.path().join("index");
    let commands: &[(&str, &[&str])] = &[
        ("convert", &[]),
        ("flamegraph", &["--format", "svg", "--lines", "--by-thread"]),
        ("flamegraph", &["--format", "folded", "--lines", "--by-thread"]),
        ("flamegraph", &["--format", "speedscope", "--lines", "--by-thread"]),
        ("flamegraph", &["--data", "live", "--format", "svg", "--title", EVIL]),
        ("flamegraph", &["--data", "allocated", "--format", "folded"]),
        ("flamegraph", &["--baseline", dump, "--format", "svg", "--lines", "--by-thread"]),
        ("flamegraph", &["--baseline", OTHER, "--format", "folded", "--lines", "--by-thread"]),
    ];
    for (command, more) in commands {
        let what = format!("{command} {more:?}");
        let output = run(&index, &[&[*command, dump][..], more].concat());
        let out = harmless(&output, &what);
        let flat = out.replace("\\\\", "\\");
        assert!(output.status.success() && flat.contains("evil\\u001b[2J\\u202e"), "{what}: {out}");
    }
}

/// Names that Markdown, HTML or a spreadsheet in Markdown would take for something else. A name that stands at the start of a
/// line would be a list, a quote, a heading or code there.
const MARKUP: &[&str] = &[
    EVIL,
    "<img src=x onerror=alert(1)>",
    "[a](javascript:b)",
    "![a](http://b)",
    "| x | y |",
    "a\n\n# b\n- c",
    "a\r\n<script>b</script>",
    "`a` ``b`` c`",
    "a`<b>c</b>",
    "```\nb",
    "~~~\nb",
    "*a* **b** _c_ __d__ ~~e~~",
    "\\",
    "a\\`<b>`",
    "&lt;b&gt; &#60;",
    "# a",
    "- a",
    "+ a",
    "---",
    "***",
    "> a",
    "1. a",
    "12) a",
    "    a",
    "\u{a0}\u{3000}    a",
    "$a$ $$b$$",
    "[a]: http://b",
    "[^a] [[b]]",
    ": a",
];

/// Checks that CommonMark and GitHub's Markdown interpret nothing in a text except what the command writes itself.
fn check_markdown(text: &str, what: &str) {
    let mut is_stack = false;
    for line in text.lines() {
        is_stack |= line.starts_with("## Thread ") && line.ends_with(" ran out of memory");
        // Four spaces make code, in which nothing has a meaning.
        if line.is_empty() || is_stack && line.starts_with("    ") {
            continue;
        }
        let starts = ["# ", "## ", "- ", "1. "];
        let rest = starts.iter().find_map(|start| line.strip_prefix(start)).unwrap_or(line);
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_number = number.len() < rest.len() && (number.starts_with(". ") || number.starts_with(") "));
        assert!(!is_number && !rest.starts_with(['-', '+', ' ', '\t']), "{what}: {line:?}");
        let mut chars = rest.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' => assert!(chars.next().is_some_and(|c| c.is_ascii_punctuation()), "{what}: {line:?}"),
                // As many as open code end it; what has more or fewer in a row is in it.
                '`' => {
                    let fence = 1 + std::iter::from_fn(|| chars.next_if_eq(&'`')).count();
                    loop {
                        let next = chars.next();
                        assert!(next.is_some(), "{what}: code without an end: {line:?}");
                        if next == Some('`')
                            && 1 + std::iter::from_fn(|| chars.next_if_eq(&'`')).count() == fence
                        {
                            break;
                        }
                    }
                }
                c => assert!(!"*_{}[]<>#|~!&$".contains(c), "{what}: {c:?} in {line:?}"),
            }
        }
    }
}

/// A dump in which all that `leaks` names has this name: what accumulates and where, a holder, threads, loaders, a buffer
/// outside of the heap, a thread that ran out of memory.
fn suspects(name: &str) -> HeapModel {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut model);
    let object = Some(jdk.object);
    let error = model.class("java.lang.OutOfMemoryError", object, &[]);
    let element = model.class(&format!("{name}Element"), object, &[(name, Type::Object), ("n", Type::Long)]);
    let worker = model.class(name, Some(jdk.thread), &[(name, Type::Object)]);
    let buffer = model.class("java.nio.MappedByteBuffer", object, &[("capacity", Type::Int)]);
    let direct = model.class("java.nio.DirectByteBuffer", Some(buffer), &[]);
    let loader_class = model.class("java.lang.ClassLoader", object, &[]);
    let own_loader = model.class(&format!("{name}Loader"), Some(loader_class), &[(name, Type::Object)]);

    let array = model.array_class(element);
    let many = |model: &mut HeapModel, count: usize| {
        let elements: Vec<ObjectId> =
            (0..count).map(|_| model.instance(element, &[Value::Object(0), Value::Long(1)])).collect();
        model.object_array(array, &elements)
    };
    let (first, second, third) = (many(&mut model, 1000), many(&mut model, 300), many(&mut model, 300));
    let statics = [(name, Value::Object(first.0))];
    let cache = model.class_with_statics(&format!("{name}Cache"), object, &[], &statics);
    model.root(cache, Root::StickyClass);
    let fourth = many(&mut model, 500);
    let statics = [(name, Value::Object(fourth.0))];
    let other = model.class_with_statics(&format!("{name}Other"), object, &[], &statics);
    model.root(other, Root::StickyClass);
    let off_heap = model.instance_with(direct, &[("capacity", Value::Int(1 << 30))]);
    let holder = model.class(
        &format!("{name}Holder"),
        object,
        &[(name, Type::Object), ("b", Type::Object), ("c", Type::Object)],
    );
    let holder =
        model.instance_with(holder, &[(name, second.into()), ("b", third.into()), ("c", off_heap.into())]);
    model.root(holder, Root::JniGlobal { reference: 1 });
    // A group, of which most have a path in common.
    let members: Vec<ObjectId> = (0..200).map(|_| model.instance(own_loader, &[Value::Object(0)])).collect();
    for member in members.iter().take(10) {
        let kept = model.prim_array(Elements::of_bytes(&[1; 500]));
        let class =
            model.class_with_statics(&format!("{name}App"), object, &[], &[(name, Value::Object(kept.0))]);
        model.class_mut(class).loader = member.0;
        let app = model.instance(class, &[]);
        model.set_field(*member, name, app);
    }
    for reference in 2..4 {
        let array = model.object_array(jdk.object_array, &members);
        model.root(array, Root::JniGlobal { reference });
    }
    for number in 1..=20 {
        let text = jdk.string(&mut model, &format!("{name}{number}"));
        let kept = many(&mut model, 100);
        let thread = model.instance_with(worker, &[("name", text.into()), (name, kept.into())]);
        let frames = [StackFrame::new(error, "<init>", name, 7), StackFrame::new(cache, name, name, 7)];
        let trace = model.trace(number, if number == 1 { &frames } else { &frames[1..] });
        model.root(thread, Root::ThreadObject { thread: number, trace });
        model.root(first, Root::JavaFrame { thread: number, frame: 0 });
    }
    model
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn no_markup_comes_out_of_a_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut kinds = std::collections::BTreeSet::new();
    for (number, name) in MARKUP.iter().enumerate() {
        // The path is hostile as well; a directory is none of its names.
        let file = dir.path().join(format!("{}.hprof", name.replace('/', "")));
        suspects(name).write(&Options::hotspot()).write_file(&file).unwrap();
        let (file, index) = (file.to_str().unwrap(), dir.path().join(format!("index{number}")));
        for threshold in ["1", "10", "90"] {
            let arguments = ["leaks", file, "--threshold", threshold];
            let what = format!("{name:?} at {threshold}");
            let markdown =
                harmless(&run(&index, &[&arguments[..], &["--format", "markdown"]].concat()), &what);
            check_markdown(&markdown, &what);
            assert!(markdown.contains("\n## Also\n"), "{what}: {markdown}");
            assert!(markdown.contains("ran out of memory\n"), "{what}: {markdown}");
            let csv = harmless(&run(&index, &[&arguments[..], &["--format", "csv"]].concat()), &what);
            check_cells(&csv, &what);
            harmless(&run(&index, &arguments), &what);
            let json = harmless(&run(&index, &[&arguments[..], &["--format", "json"]].concat()), &what);
            let document: serde_json::Value = serde_json::from_str(&json).unwrap();
            for row in document["rows"].as_array().unwrap() {
                let verdict = if row["verdict"].is_null() { &row["mat_verdict"] } else { &row["verdict"] };
                kinds.insert(format!("{} {verdict} {}", row["kind"], row["what"]).replace('"', ""));
            }
            assert!(document["off_heap"]["direct_bytes"] == 1 << 30, "{what}: {json}");
            // With a bracket before it, it is the name of an array's class.
            let has_loaders = !document["loader_groups"].as_array().unwrap().is_empty();
            assert!(has_loaders || name.starts_with('['), "{what}: {json}");
        }
    }
    // Else nothing above proves much.
    for kind in [
        "single accumulation class",
        "single accumulation instance",
        "single holder instance",
        "group accumulation thread",
        "group accumulation class_loader",
    ] {
        assert!(kinds.contains(kind), "{kind} in {kinds:?}");
    }
}

#[test]
fn markup_that_is_looked_for_would_be_found() {
    for line in [
        "a <b> c", "- [a](b)", "## *a*", "a | b", "- a`b", "a ``b` c", "a `b`` c", "- - a", "1. 1. a", "---",
        "+ a", "> a", "    a", "- &lt;", "a\n    b", "$a$", "\\q", "12) a",
    ] {
        assert!(std::panic::catch_unwind(|| check_markdown(line, "a line")).is_err(), "{line:?}");
    }
    check_markdown("# a\n\n- b: \\<c\\>\n1. `<d>`: e, 1.2\n``<f>`<g>``\n", "harmless lines");
}

/// A text report with the same names, and its answers.
#[test]
fn text_reports_that_hold_them() {
    let dir = tempfile::tempdir().unwrap();
    let name = EVIL.trim_end_matches('\r');
    let text = format!(
        "JAVA PROFILE 1.0.1, created Thu Aug 29 16:41:59 2002\n\n\
         THREAD START (obj=11199050, id = 1, name=\"{name}\", group=\"{name}\")\n\
         TRACE 5: (thread=1)\n\t{name}.{name}({name}:1188)\n\
         {name}\n\
         SITES BEGIN (ordered by live bytes) Tue Feb 06 10:54:46 2007\n\
         \x20         percent          live          alloc'ed  stack class\n\
         \x20rank   self  accum     bytes objs     bytes  objs trace name\n\
         \x20   1 44.73% 44.73%      1161516   14191  1161516  14191     5 {name}\n\
         SITES END\n\
         CPU SAMPLES BEGIN (total = 3) Tue Feb 06 10:54:46 2007\n\
         rank   self  accum   count trace method\n\
         \x20  1 100.00% 100.00%       3     5 {name}.{name}\n\
         CPU SAMPLES END\n"
    );
    let file = dir.path().join("java.hprof.txt");
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let mut shown = 0;
    for (command, more) in [
        ("summary", &[][..]),
        ("threads", &[]),
        ("traces", &[]),
        ("sites", &[]),
        ("cpu", &[]),
        ("histo", &[]),
        ("monitors", &[]),
        ("flamegraph", &["--format", "folded"][..]),
        ("flamegraph", &["--format", "svg"]),
        ("info", &[]),
        ("dominators", &[]),
        ("classes", &[]),
        ("overview", &[]),
    ] {
        for format in ["table", "csv", "json"] {
            let with_format = [more, &["--format", format]].concat();
            let more = if command == "flamegraph" { more } else { &with_format };
            let output = run(dir.path(), &[&[command, file][..], more].concat());
            let what = format!("{command} {more:?} of a text");
            let out = harmless(&output, &what);
            shown += usize::from(out.contains("evil\\u001b[2J\\u202e"));
            if more.contains(&"csv") {
                check_cells(&out, &what);
            }
        }
    }
    assert!(shown >= 15, "{shown}");
}

/// The path of a dump is as hostile as its contents: somebody sent it.
#[cfg(unix)]
#[test]
fn paths_that_hold_them() {
    let made = made(EVIL);
    let hostile = made.dir.path().join(format!("{EVIL}.hprof"));
    fs::copy(&made.dump, &hostile).unwrap();
    let cut = made.dir.path().join(format!("cut{EVIL}.hprof"));
    let bytes = fs::read(&made.dump).unwrap();
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let no_dump = made.dir.path().join(format!("text{EVIL}"));
    fs::write(&no_dump, "not a dump").unwrap();
    let missing = made.dir.path().join(format!("missing{EVIL}"));
    let index = made.dir.path().join("index");
    for path in [&hostile, &cut, &no_dump, &missing] {
        let path = path.to_str().unwrap();
        for arguments in [
            &["info", path][..],
            &["info", path, "--format", "json"],
            &["info", path, "--format", "csv"],
            &["histo", path],
            &["dominators", path],
            &["leaks", path],
            &["waste", path],
            &["leaks", path, "--format", "markdown"],
            &["threads", path],
            &["show", path, "0x1"],
            &["oql", path, "SELECT * FORM x"],
            &["index", path],
            &["index", path, "--verify"],
            &["index", path, "--verify", "--format", "json"],
            &["index", path, "--remove"],
            &["convert", path, "-o", "/no/such\u{1b}[2J/directory"],
            &["flamegraph", path],
        ] {
            let output = run(&index, arguments);
            harmless(&output, &format!("{arguments:?}").replace("[\"convert", "convert"));
        }
    }
}
