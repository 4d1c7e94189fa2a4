//! Tests of the reader of rules files.

use super::*;

fn errors<T: std::fmt::Debug>(text: &str, read_root: impl FnOnce(&TomlTable<'_>) -> T) -> Vec<String> {
    read(text, "F", read_root).expect_err(text).lines
}

#[test]
fn all_errors_are_listed_in_the_order_of_the_file() {
    let text = "\"é\" = 1\n[[a.b]]\nn = -1\nt = 3\ns = [1, \"x\", true]\nb = 0\nk = \"bad\"\n[c]\n[[d]]\n";
    let found = errors(text, |root| {
        root.check_keys(&["a", "c", "d"]);
        assert!(root.tables("c").is_empty() && root.table("d").is_none());
        for table in root.table("a").iter().flat_map(|table| table.tables("b")) {
            table.check_keys(&["n", "t", "s", "b", "k"]);
            assert!(table.required_text("name", "write name = \"x\"").is_none());
            assert_eq!((table.keyword("k", &[("good", 1)]), table.boolean("b")), (None, None));
            assert_eq!((table.texts("s").len(), table.text("t").is_none()), (1, true));
            assert_eq!(table.number("n"), None);
        }
    });
    assert_eq!(
        found,
        [
            "F:1:1: unknown key `é`; the valid keys of the file are a, c, d",
            "F:2:1: [[a.b]] has no `name`; write name = \"x\"",
            "F:3:5: `n` is -1; expected a number of 0 or more",
            "F:4:5: `t` is of type integer; expected a string in quotes",
            "F:5:6: `s` is of type integer; expected strings in quotes",
            "F:5:14: `s` is of type boolean; expected strings in quotes",
            "F:6:5: `b` is of type integer; expected true or false",
            "F:7:5: unknown k `bad`; expected one of good",
            "F:8:1: `c` is of type table; expected tables, each after [[c]]",
            "F:9:1: `d` is of type array; expected a table: [d]",
        ]
    );
}

#[test]
fn the_number_of_errors_shown_is_limited() {
    let keys = |count: usize| (0..count).map(|key| format!("k{key} = 1\n")).collect::<String>();
    let found = |count| errors(&keys(count), |root| root.check_keys(&[]));
    assert_eq!(found(20).len(), 20);
    assert!(found(20)[19].starts_with("F:20:1: unknown key `k19`"), "{:?}", found(20));
    assert_eq!(found(21)[20], "1 more error in F");
    assert_eq!(found(1000)[20], "980 more errors in F");
}

#[test]
fn errors_of_the_parser_are_listed_by_line() {
    let found = errors("a = x y\nb = \"B\"\nc = 5 MiB\nb = 1\n", |_| panic!("this is not TOML"));
    let at: Vec<_> = found.iter().map(|line| line.split(": ").next().unwrap_or_default()).collect();
    assert_eq!(at, ["F:1:5", "F:3:5", "F:4:1"], "{found:#?}");
    assert!(found.iter().all(|line| line.contains(": not valid TOML: ")), "{found:#?}");
    let found = errors(&" ".repeat(MAX_BYTES + 1), |_| panic!("this is too long"));
    assert_eq!(found, ["F:1:1: the file is larger than 1 MiB"]);
}

#[test]
fn errors_within_texts_have_their_column() {
    let text = "a = \"xyz\"\nb = \"\\u0041yz\"\n";
    let found = errors(text, |root| {
        for (key, value) in root.entries() {
            value.expect(key.text).report_within(2, "here");
        }
    });
    assert_eq!(found, ["F:1:8: here", "F:2:5: here"]);
}
