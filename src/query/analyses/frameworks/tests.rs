//! Tests of the bundled rules files, and of errors in rules files of users.

use super::{FrameworkVerdict, Frameworks};
use hprof_model::framework_rules::bundled::BUNDLED;

#[test]
fn every_bundled_file_is_read() {
    for (name, text) in BUNDLED {
        let rules = Frameworks::default().with(text, name).unwrap_or_else(|wrong| panic!("{wrong}"));
        let about = rules.summaries().first().expect("what it says of itself");
        assert!(
            !about.versions.is_empty() && !about.source.is_empty(),
            "{name} says what it was written from"
        );
        assert!(!text.contains('\t'), "{name} has tabs");
    }
    let classes: usize = Frameworks::builtin().summaries().iter().map(|about| about.rules.len()).sum();
    assert_eq!(classes, Frameworks::builtin().rules.len());
    assert_eq!(Frameworks::builtin().summaries().len(), BUNDLED.len());
}

#[test]
fn rules_are_read_in_order() {
    let text = "framework = \"F\"\n[[class]]\nname = [\"a.B\", \"a.C\"]\nfields = [\"x\"]\ncalled = \"b[ {second}]\"\n\
                entries = \"x.y\"\nnamed_entries = \"bean\"\n[class.facts]\nsecond = \"this.x\"\nfirst = \"second.@size + 1\"\n\
                [[class.says]]\nwhen = \"first > 2\"\ntext = \"{first}\"\nverdict = \"leak\"\nretains = \"this.x[0:-1]\"\n";
    let rules = Frameworks::builtin().with(text, "own.toml").expect("rules");
    let [b, c, ..] = rules.rules.as_slice() else { panic!("rules") };
    assert_eq!((&*b.class, &*c.class), ("a.B", "a.C"), "a user's rules come first");
    assert_eq!(b.facts.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["second", "first"]);
    assert!(b.is_always_described() && b.named_entries.as_deref() == Some("bean") && b.entries.is_some());
    assert_eq!(b.says.first().and_then(|says| says.verdict), Some(FrameworkVerdict::Leak));
}

#[test]
fn errors_name_line_and_column() {
    for (text, expected) in [
        ("framework = \"F\"\n[[class]]\nnam = \"a\"", "own.toml:3:1: unknown key `nam`; did you mean name"),
        ("framework = ", "own.toml:1:13: not valid TOML: "),
        ("[[class]]\nname = \"a\"", "own.toml:1:1: the file has no `framework`"),
        ("framework = \"F\"\n[[class]]\n", "own.toml:2:1: [[class]] has no `name`"),
        ("framework = \"F\"", "own.toml:1:1: there are no rules"),
        ("framework = \"F\"\n[[class]]\nname = 5", "own.toml:3:8: `name` is of type integer"),
        (
            "framework = \"F\"\n[[class]]\nname = \"a\"\n[class.facts]\nx = \"this.\"",
            "own.toml:5:11: expected the name",
        ),
        (
            "framework = \"F\"\n[[class]]\nname = \"a\"\n[class.facts]\nx = \"y\"",
            "own.toml:5:6: unknown name y",
        ),
        (
            "framework = \"F\"\n[[class]]\nname = \"a\"\n[class.facts]\nx = \"z\"\nz = \"1\"",
            "own.toml:5:6: unknown name z",
        ),
        (
            "framework = \"F\"\n[[class]]\nname = \"a\"\n[class.facts]\nThis = \"1\"",
            "own.toml:5:1: invalid name of a fact",
        ),
        (
            "framework = \"F\"\n[[class]]\nname = \"a\"\n[class.facts]\nx = \"(SELECT count(*) FROM java.lang.String s)\"",
            "own.toml:5:28: rules can select only from values",
        ),
        (
            "framework = \"F\"\n[[class]]\nname = \"a\"\n[class.facts]\nx = \"(SELECT y FROM OBJECTS (this.a) e)\"",
            "own.toml:5:14: unknown name y",
        ),
        (
            "framework = \"F\"\n[[class]]\nname = \"a\"\n[class.facts]\nx = \"count(this)\"",
            "own.toml:5:6: aggregates",
        ),
        ("framework = \"F\"\n[[class]]\nname = \"a\"\ncalled = \"a {b}\"", "own.toml:4:14: unknown fact `b`"),
        (
            "framework = \"F\"\n[[class]]\nname = \"a\"\nentries = \"a[0]\"",
            "own.toml:4:11: `entries` must be a path",
        ),
        (
            "framework = \"F\"\n[[class]]\nname = \"a\"\n[[class.says]]\n",
            "own.toml:4:1: [[class.says]] has no `text`",
        ),
        (
            "framework = \"F\"\n[[class]]\nname = \"a\"\n[[class.says]]\ntext = \"t\"\nverdict = \"bad\"",
            "own.toml:6:11: unknown verdict `bad`; expected one of leak, content, healthy",
        ),
    ] {
        let wrong = Frameworks::default().with(text, "own.toml").expect_err(text).to_string();
        assert!(wrong.lines().any(|line| line.starts_with(expected)), "{text}\n{wrong}\n{expected}");
    }
}

#[test]
fn all_errors_of_a_file_are_reported() {
    let text = "framework = \"F\"\n[[class]]\nname = [\"a.B\", \"a.C\"]\ncalld = \"b\"\nentries = \"x.y\"\n\
                [class.facts]\nfirst = \"this.\"\nsecond = \"first + 1\"\n[[class.says]]\ntext = \"{third}\"\n\
                [memory]\npooled = [\"pool\"]\n";
    let error = Frameworks::default().with(text, "own.toml").expect_err(text);
    let at: Vec<_> = error.lines.iter().map(|line| line.split(": ").next().unwrap_or_default()).collect();
    assert_eq!(at, ["own.toml:4:1", "own.toml:7:15", "own.toml:10:10", "own.toml:12:11"], "{error}");
}
