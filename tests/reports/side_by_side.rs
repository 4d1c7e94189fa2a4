//! Excerpts of the agent's own texts, and of what `convert` writes for a binary of the same program, to be read side by
//! side: `tests/data/side_by_side`. Figures differ between two runs of a program; all else may not.
//!
//! `TRYCMD=overwrite cargo test --test reports side_by_side` writes them anew.

use crate::kit::process::Folder;
use crate::kit::texts::sample;

/// Lines to show: from the first one with this text, this many.
type Rule = (&'static str, &'static str, usize);

/// Name, the agent's text, the binary, what is shown of both.
const PAIRS: [(&str, &str, &str, &[Rule]); 3] = [
    (
        "sites",
        "agent/sites.txt.zst",
        "agent/sites.hprof.zst",
        &[
            ("THREAD START", "", 3),
            ("THREAD END", "", 1),
            ("TRACE 300000:", "", 2),
            ("TRACE 300030:", "", 5),
            ("SITES BEGIN", "", 12),
            ("SITES END", "", 1),
        ],
    ),
    (
        "heap",
        "agent/dump.txt.zst",
        "agent/all.hprof.zst",
        &[
            ("HEAP DUMP BEGIN", "", 1),
            ("ROOT ", "(kind=<thread>", 1),
            ("ROOT ", "(kind=<thread block>", 1),
            ("ROOT ", "(kind=<Java stack>", 1),
            ("ROOT ", "(kind=<JNI global ref>, id=a,", 1),
            ("ROOT ", "(kind=<busy monitor>", 1),
            ("ROOT ", "(kind=<system class>, name=java.lang.Object)", 1),
            ("ROOT ", "(kind=<unknown>", 1),
            ("CLS ", "(name=Plain,", 5),
            ("CLS ", "(name=java.lang.Integer,", 8),
            ("OBJ ", "class=Plain$Node@", 1),
            ("OBJ ", "class=java.util.HashMap$Node@", 3),
            ("OBJ ", "class=java.lang.Thread@", 1),
            ("ARR ", "elem type=java.util.HashMap$Node[]@", 2),
            ("ARR ", "elem type=char[])", 1),
            ("HEAP DUMP END", "", 1),
        ],
    ),
    (
        "cpu",
        "agent/busy-cpu-samples.txt",
        "agent/busy-cpu-samples.hprof.zst",
        &[
            ("THREAD START", "", 2),
            ("TRACE 300084:", "", 3),
            ("CPU SAMPLES BEGIN", "", 5),
            ("CPU SAMPLES END", "", 1),
        ],
    ),
];

fn excerpt(text: &str, rules: &[Rule]) -> String {
    let (_, body) = text.split_once("\n--------\n\n").unwrap();
    let mut out = String::new();
    for (start, words, count) in rules {
        let first = body.lines().position(|line| line.starts_with(start) && line.contains(words));
        let first = first.unwrap_or_else(|| panic!("there is no {start} {words}"));
        for line in body.lines().skip(first).take(*count) {
            out += &format!("{line}\n");
        }
    }
    out
}

/// Normalizes what may differ: IDs as `@`, numbers without fixed width as `#`, others digit by digit, dates by their
/// length.
fn layout(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        let hex = rest.len() - rest.trim_start_matches(is_hex).len();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let taken = if hex == 8 && rest.starts_with("500") {
            out.push('@');
            hex
        } else if digits > 0 && (out.ends_with(['=', ':', '(', '[']) || out.ends_with("objects, ")) {
            out.push('#');
            digits
        } else {
            out.push(if c.is_ascii_digit() { '0' } else { c });
            c.len_utf8()
        };
        rest = &rest[taken..];
    }
    out
}

#[test]
fn excerpts_are_as_they_were_read() {
    let place = Folder::new();
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/side_by_side");
    let overwrite = std::env::var("TRYCMD").is_ok_and(|value| value == "overwrite");
    for (name, text, binary, rules) in PAIRS {
        let texts = [String::from_utf8(sample(text)).unwrap(), place.convert_sample(binary)];
        for (writer, text) in ["agent", "convert"].into_iter().zip(texts) {
            let path = dir.join(format!("{name}.{writer}.txt"));
            let found = excerpt(&text, rules);
            if overwrite {
                std::fs::write(&path, found).unwrap();
            } else {
                assert_eq!(found, std::fs::read_to_string(&path).unwrap(), "{}", path.display());
            }
        }
    }
}

#[test]
fn excerpts_differ_in_figures_only() {
    for (name, ..) in PAIRS {
        let read = |writer: &str| {
            let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/side_by_side");
            std::fs::read_to_string(dir.join(format!("{name}.{writer}.txt"))).unwrap()
        };
        let (agent, convert) = (read("agent"), read("convert"));
        assert!(agent.lines().count() >= 10 && agent != convert);
        for (agent, convert) in agent.lines().zip(convert.lines()) {
            assert_eq!(layout(agent), layout(convert), "{name}:\n{agent}\n{convert}");
        }
        assert_eq!(agent.lines().count(), convert.lines().count());
    }
}
