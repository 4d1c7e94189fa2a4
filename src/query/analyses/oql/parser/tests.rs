#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::oql::tree::{Expression, ItemOrder, ListFunction};

fn wrong(text: &str) -> (usize, String) {
    let wrong = parse(text).expect_err(text);
    (wrong.at, wrong.text)
}

#[test]
fn what_mats_manual_shows_parses() {
    for query in [
        "SELECT * FROM java.lang.String",
        r#"SELECT * FROM "java\.lang\..*""#,
        "SELECT * FROM 0x2b7468c8,0x2b74aee0",
        "SELECT * FROM OBJECTS 20815, 20814",
        "SELECT * FROM ( SELECT * FROM java.lang.Class c WHERE c implements org.eclipse.mat.snapshot.model.IClass )",
        "SELECT * FROM ${snapshot}.getClasses()",
        r#"SELECT * FROM ${snapshot}.getClassesByName("java.lang.ref.Reference", true)"#,
        "SELECT * FROM INSTANCEOF java.lang.ref.Reference",
        "SELECT toString(s) AS Value, s.@usedHeapSize AS \"Shallow Size\" FROM java.lang.String s",
        "SELECT AS RETAINED SET * FROM java.lang.String",
        "SELECT OBJECTS dominators(s) FROM java.lang.String s",
        "SELECT DISTINCT OBJECTS classof(s) FROM java.lang.String s",
        "SELECT * FROM java.lang.String s WHERE s.value NOT IN dominators(s)",
        "SELECT * FROM java.lang.String s WHERE ( s.count > 1000 ) = true",
        "SELECT * FROM java.lang.String s WHERE dominators(s).size() = 0",
        "SELECT * FROM java.lang.String s WHERE s.@GCRootInfo != null",
        "SELECT s.getValueAt(2) FROM int[] s WHERE (s.@length > 2)",
        "SELECT OBJECTS s.@referenceArray.get(2) FROM java.lang.Object[] s WHERE (s.@length > 2)",
        "SELECT OBJECTS s.getReferenceArray(2,1) FROM java.lang.Object[] s",
        "SELECT * FROM a.A UNION (SELECT * FROM a.B) UNION (SELECT * FROM a.C)",
        "select s from [C s where s.length > 10 && s.length != 12 || !(s == null)",
        "select s from instanceof java.lang.String s where s.count>100;",
        "SELECT @length, count FROM [Ljava.lang.String; WHERE @length < 1MB ORDER BY @length DESC, count LIMIT 5",
        "SELECT classof(s).@name, count(*), sum(s.x) FROM \".*\" s GROUP BY classof(s).@name ORDER BY count(*) desc",
        "SELECT x.order, x.group, x.limit FROM a.objects.B x",
    ] {
        if let Err(wrong) = parse(query) {
            panic!("{query}: {wrong:?}");
        }
    }
}

#[test]
fn operators_bind_as_in_mat() {
    let both = |a: &str, b: &str| {
        let strip = |text: &str| {
            let query = format!("SELECT * FROM x.Y s WHERE {text}");
            format!("{:?}", parse(&query).unwrap().selects[0].condition)
        };
        let without_places = |text: String| {
            text.split(' ')
                .filter(|part| {
                    !part.ends_with(',') || !part.trim_end_matches(',').bytes().all(|b| b.is_ascii_digit())
                })
                .collect::<String>()
        };
        assert_eq!(without_places(strip(a)), without_places(strip(b)), "{a}");
    };
    both("s.a = 1 or s.b = 2 and s.c = 3", "s.a = 1 or (s.b = 2 and s.c = 3)");
    both("s.a > 1 = true", "(s.a > 1) = true");
    both("s.a + 2 * 3 > 4", "(s.a + (2 * 3)) > 4");
    both("not s.a = 1 and s.b = 2", "(not (s.a = 1)) and s.b = 2");
}

#[test]
fn errors_point_at_their_place() {
    assert_eq!(wrong(""), (0, "expected SELECT, found the end of the input".to_owned()));
    assert_eq!(wrong("SELECT * FRM x").0, 9);
    assert_eq!(
        wrong("SELECT * FROM x WHERE a ="),
        (25, "expected a field, a number, a string or a function, found the end of the input".to_owned())
    );
    assert_eq!(wrong("SELECT * FROM x s WHERE s.a LIKE 5").0, 33);
    assert_eq!(wrong("SELECT foo(s) FROM x s").0, 7);
    assert_eq!(wrong("SELECT * FROM x LIMIT y").0, 22);
    assert_eq!(wrong("SELECT * FROM x s WHERE (s.a = 1").0, 32);
    assert_eq!(wrong("SELECT * FROM WHERE").0, 14);
    assert_eq!(wrong("SELECT s @length FROM x s").0, 9);
    // `ORDER BY objects` would begin with a keyword.
    assert_eq!(wrong("SELECT count(*) AS objects FROM x").0, 19);
}

#[test]
fn deep_nesting_is_an_error_and_long_lists_are_none() {
    for (open, close) in [("(", ")"), ("toString(", ")"), ("a[", "]"), ("1 IN (", ")"), ("s.f(", ")")] {
        let deep = format!(
            "SELECT {}1{} FROM x",
            open.repeat(100_000 / open.len()),
            close.repeat(100_000 / open.len())
        );
        assert!(wrong(&deep).1.contains("nested"), "{open}");
    }
    let nested = format!("{}SELECT * FROM x{}", "SELECT * FROM (".repeat(1000), ")".repeat(1000));
    assert!(wrong(&nested).1.contains("nested"));
    let unions = format!("SELECT * FROM x{}", " UNION (SELECT * FROM x)".repeat(1000));
    assert_eq!(parse(&unions).unwrap().selects.len(), 1001);
    for long in ["1 = 1 and ", "1 = 1 or ", "not ", "- ", "1 + "] {
        let query = format!("SELECT * FROM x s WHERE {}a", long.repeat(50_000 / long.len()));
        assert!(parse(&query).is_ok(), "{long}");
    }
    let path = |steps: usize| format!("SELECT a{} FROM x", ".b".repeat(steps));
    assert!(parse(&path(1000)).is_ok() && wrong(&path(1001)).1.contains("at most 1000 steps"));
    let columns = |count: usize| format!("SELECT {} FROM x", vec!["a"; count].join(","));
    assert!(parse(&columns(1000)).is_ok() && wrong(&columns(1001)).1.contains("at most 1000 columns"));
}

#[test]
fn what_newer_manuals_show_parses() {
    for query in [
        "SELECT s[1:3][1] FROM int[] s",
        "SELECT s[(1 - s.@length):(3 - s.@length)][1] FROM int[] s",
        "SELECT v, v.@objectId FROM OBJECTS ${snapshot}.getObject(123) v",
        "SELECT s.@GCRoots.subList(1,3).get(1) FROM OBJECTS ${snapshot} s",
        "SELECT * FROM OBJECTS (1 + ${snapshot}.GCRoots.length)",
        "SELECT \"ABC\"+s FROM OBJECTS (123) s",
        "SELECT * FROM ${snapshot}.getClasses().get(2)",
        "select * from objects instanceof (select * from objects java.util.AbstractMap)",
        "select * from instanceof ${snapshot}.getClassesByName(\"java.util.AbstractMap\", false)",
        "SELECT v, v.i.value FROM OBJECTS ( SELECT i FROM java.lang.String i UNION ( SELECT i FROM java.lang.Integer i ) ) v",
        "SELECT z.\"Retained Heap\" FROM OBJECTS (SELECT s.@retainedHeapSize AS \"Retained Heap\" FROM x.Y s) z",
        "SELECT e.getKey() AS key FROM OBJECTS ${h}[0:-1] e",
        "SELECT eval((SELECT s FROM x.Y s))[0].value FROM OBJECTS (null)",
        "SELECT s FROM x.Y s WHERE s.n > (SELECT max(t.n) FROM x.Y t)",
    ] {
        if let Err(wrong) = parse(query) {
            panic!("{query}: {wrong:?}");
        }
    }
}

#[test]
fn functions_are_texts_functions_and_arrows() {
    let applied = |function: &str| {
        let query = format!("select map(x, {function}) from a.B x");
        let select = parse(&query).unwrap().selects.swap_remove(0);
        match select.items.unwrap().swap_remove(0).node.expression {
            Expression::List(ListFunction::Map, _, Some(applied)) => applied,
            other => panic!("{other:?}"),
        }
    };
    for function in ["'it.a'", "\"it.a;\"", "it => it.a", "(it) => it.a", "function (it) { return it.a; }"] {
        let found = applied(function);
        assert!(matches!(found.body.expression, Expression::Path(..)), "{function}");
        assert_eq!((found.slots, found.compared), (1, None), "{function}");
    }
    assert_eq!(applied("'index + array.length'").slots, 0b110);
    assert!(parse("select filter(a, b => map(b.c, c => c.d + b.e)) from x.Y a").is_ok());
}

#[test]
fn orders_are_read_from_comparisons() {
    let order = |function: &str| {
        let query = format!("select sort(x, {function}) from a.B x");
        let select = parse(&query)?.selects.swap_remove(0);
        match select.items.unwrap().swap_remove(0).node.expression {
            Expression::List(ListFunction::Sort, _, Some(applied)) => Ok(applied.compared),
            other => panic!("{other:?}"),
        }
    };
    let [difference, condition] =
        [true, false].map(|is_difference| move |rises| Ok(Some(ItemOrder { rises, is_difference })));
    assert_eq!(order("'lhs.a - rhs.a'"), difference(true));
    assert_eq!(order("'rhs.a.b - lhs.a.b'"), difference(false));
    assert_eq!(order("'lhs.a < rhs.a'"), condition(false));
    assert_eq!(order("'rhs.a < lhs.a'"), condition(true));
    assert_eq!(order("(p, q) => sizeof(q) - sizeof(p)"), difference(false));
    assert_eq!(order("'lhs.n.compareTo(rhs.n)'"), difference(true));
    assert_eq!(order("'it.a'"), Ok(None));
    for wrong in ["'lhs.a - rhs.b'", "'lhs.a - 1'", "'lhs.a + rhs.a'", "'lhs.a - rhs.a - lhs.b'", "'lhs.a'"] {
        assert!(order(wrong).is_err_and(|wrong: OqlError| wrong.text.contains("no order")), "{wrong}");
    }
}

#[test]
fn statements_are_errors_at_their_place() {
    let place = |text: &str| wrong(text).0;
    assert_eq!(place("select map(x, function (a) { var b = a; return b; }) from x.Y x"), 29);
    assert_eq!(place("select map(x, function (a) { return a; a }) from x.Y x"), 39);
    assert_eq!(place("select map(x, 'it.a b') from x.Y x"), 20);
    assert_eq!(place("select map(x) from x.Y x"), 12);
    assert_eq!(place("select function (a) { return a; } from x.Y x"), 7);
    assert!(wrong("select s.a.match(/x/).match(/y/) from x.Y s").1.contains("operator"));
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("/x/(", ")"), ("map([1], a => ", ")"), ("1 ? 2 : ", "")]
    {
        let deep = format!("select {}1{}", open.repeat(1000), close.repeat(1000));
        assert!(wrong(&deep).1.contains("nested"), "{open}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_tokens_make_it_panic(words in proptest::collection::vec(0usize..WORDS.len(), 0..60)) {
        let text: Vec<&str> = words.iter().filter_map(|word| WORDS.get(*word).copied()).collect();
        let _ = parse(&text.join(" "));
        let _ = parse(&format!("SELECT {}", text.concat()));
        let _ = parse(&format!("SELECT * FROM x s WHERE {}", text.join(" ")));
    }
}

const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "UNION",
    "(",
    ")",
    "[",
    "]",
    "*",
    ",",
    ".",
    "@",
    "s",
    "x.Y",
    "AS",
    "RETAINED",
    "SET",
    "OBJECTS",
    "DISTINCT",
    "INSTANCEOF",
    "LIKE",
    "NOT",
    "IN",
    "AND",
    "OR",
    "\"a\"",
    "'b'",
    "1",
    "0x1",
    "1.5",
    "1MB",
    "=",
    "!=",
    "<",
    "-",
    "+",
    "/",
    "toString(",
    "count(",
    "GROUP BY",
    "ORDER BY",
    "DESC",
    "LIMIT",
    "null",
    "true",
    "implements",
    "${snapshot}",
    ".getClasses()",
    ";",
    "é",
    "map(",
    "sort(",
    "heap.objects(",
    "heap.forEachClass(",
    "'it.a - 1'",
    "'lhs.a - rhs.a'",
    "it",
    "it =>",
    "(a, b) =>",
    "function (x) {",
    "return",
    "print(",
    "{",
    "}",
    "{a:",
    "?",
    ":",
    "/x/",
    "/x/i.test(",
    ".match(/x/)",
];
