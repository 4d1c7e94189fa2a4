//! OQL: what newer versions of Eclipse MAT and jhat offer, and queries and dumps that are hostile. What the queries are
//! to answer is what `samples/java/HeapZoo.java` does, run with a scale of 1.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "oql/place.rs"]
mod place;
mod support;

use std::io::Write;
use std::process::Stdio;

use place::{JDK17, Place};
use support::{ClassDump, DumpWriter, HeapWriter, IdSize, Type, Value, Version};

const AGENT: &str = "samples/agent/all.hprof.zst";
const ANDROID: &str = "samples/public/android-leak_service_binder.hprof.zst";

/// The list `keep` gets 5 objects 500 times; a TreeMap maps k0 to k4 to j * 1000 + i; a LinkedList holds 1, 2, 3.
const NEWER: &[(&str, &[&str])] = &[
    // Parts of arrays: both ends are in it, negative ones are counted from the end, outside there is nothing.
    (
        "SELECT a[1:1].size(), a[0:-1].size(), a[-2:-1].size(), a[1:99].size(), a[7:9].size(), a[2:1].size() FROM double[] a WHERE a[1] = 4.9e-324",
        &["1,3,2,2,0,0"],
    ),
    (
        "SELECT a[0:-1][1:2][1], a[-3:-1][0], a[-1:-1].get(0), a[9:9][0], a[-1] FROM double[] a WHERE a[1] = 4.9e-324",
        &["-0.0,3.141592653589793,-0.0,,"],
    ),
    (
        "SELECT a[0:1] FROM long[] a WHERE a.length = 2 AND a[0] < 0",
        &["-9223372036854775808 9223372036854775807"],
    ),
    ("SELECT a[(1 - a.@length):(2 - a.@length)].size() FROM double[] a WHERE a[1] = 4.9e-324", &["2"]),
    (
        "SELECT a.getValueArray(1, 2).size(), a.getValueArray(0, 1)[0] FROM byte[] a WHERE a.@length = 2 AND a[0] = -128 AND a[1] = 127",
        &["1,-128"],
    ),
    ("SELECT h.shared[0:1][1].r.r = h.shared[1], h.shared[0:-1].size() FROM OBJECTS HeapZoo h", &["true,4"]),
    (
        "SELECT count(*) FROM OBJECTS (SELECT OBJECTS a[0:-1] FROM HeapZoo$Color[] a WHERE a[1] = null)",
        &["1"],
    ),
    // Elements of collections.
    (
        "SELECT h.keep[0:4].size(), h.keep[1] instanceof HeapZoo$C, h.keep[0].l FROM OBJECTS HeapZoo h",
        &["5,true,0"],
    ),
    (
        "SELECT count(*) FROM OBJECTS (SELECT OBJECTS h.keep[0:2499] FROM OBJECTS HeapZoo h) o WHERE o instanceof HeapZoo$A",
        &["2000"],
    ),
    (
        "SELECT toString(e.getKey()), e.value.value FROM OBJECTS (SELECT t[0:-1] AS entry FROM java.util.TreeMap t WHERE t.root.value.value = 1042) e",
        &["k0,42", "k1,1042", "k2,2042", "k3,3042", "k4,4042"],
    ),
    ("SELECT count(*) FROM java.util.LinkedList l WHERE l[0:-1].size() = 3 AND l[2].value = 3", &["300"]),
    ("SELECT h.SESSION_CACHE[0:-1].size() FROM OBJECTS HeapZoo h", &["2000"]),
    // Queries with columns are selected from.
    (
        "SELECT z.name, z.\"the ordinal\", z.get(\"the ordinal\") FROM OBJECTS (SELECT c.name.toString() AS name, c.ordinal AS \"the ordinal\" FROM HeapZoo$Color c) z WHERE z.\"the ordinal\" > 0",
        &["GREEN,1,1", "BLUE,2,2"],
    ),
    (
        "SELECT n, o FROM (SELECT c.name.toString() AS n, c.ordinal AS o FROM HeapZoo$Color c) ORDER BY o DESC LIMIT 2",
        &["BLUE,2", "GREEN,1"],
    ),
    ("SELECT * FROM (SELECT d.l AS a, d.d AS b FROM HeapZoo$D d) z WHERE z.a = 9", &["9,4.5"]),
    ("SELECT sum(z.a), count(*) FROM (SELECT d.l AS a, d.d AS b FROM HeapZoo$D d) z WHERE z.b < 2", &["6,4"]),
    (
        "SELECT max(z.n), min(z.n) FROM (SELECT d.p.ordinal AS c, count(*) AS n FROM HeapZoo$D d GROUP BY c) z",
        &["167,166"],
    ),
    (
        "SELECT z.c.name.toString() FROM (SELECT DISTINCT d.p AS c FROM HeapZoo$D d ORDER BY d.p.ordinal) z",
        &["RED", "GREEN", "BLUE"],
    ),
    (
        "SELECT l FROM OBJECTS (SELECT d.l AS l FROM HeapZoo$D d WHERE d.l < 2 UNION (SELECT v.v FROM HeapZoo$Link v WHERE v.v = 7)) ORDER BY l",
        &["0", "1", "7"],
    ),
    (
        "SELECT b.@length, count(*) FROM OBJECTS (SELECT s.buffer FROM HeapZoo$Session s) b GROUP BY b.@length",
        &["512,2000"],
    ),
    // Queries in expressions.
    (
        "SELECT d.l FROM HeapZoo$D d WHERE d.l > (SELECT max(e.l) - 3 FROM HeapZoo$D e)",
        &["497", "498", "499"],
    ),
    ("SELECT (SELECT count(*) FROM HeapZoo$Color) + 1 FROM OBJECTS HeapZoo", &["4"]),
    (
        "SELECT (SELECT * FROM HeapZoo$Color c).size(), (SELECT * FROM HeapZoo$D d WHERE d.l = -1) = null FROM OBJECTS HeapZoo",
        &["3,true"],
    ),
    (
        "SELECT eval((SELECT c.ordinal FROM HeapZoo$Color c WHERE c.ordinal = 2)) * 2 FROM OBJECTS HeapZoo",
        &["4"],
    ),
    (
        "SELECT count(*) FROM HeapZoo$D d WHERE d.l IN (SELECT v.v FROM HeapZoo$Link v WHERE v.v < 10)",
        &["10"],
    ),
    // FROM OBJECTS takes any value.
    ("SELECT \"ABC\"+s, eval(123).intValue() FROM OBJECTS (123) s", &["ABC123,123"]),
    ("SELECT * FROM OBJECTS (\"text\") s", &["text"]),
    ("SELECT count(*) FROM OBJECTS (null)", &["0"]),
    ("SELECT s FROM OBJECTS (1.5 + 1) s", &["2.5"]),
    ("SELECT count(*) FROM OBJECTS 0,1,1,2", &["3"]),
    (
        "SELECT 'c', \"String\", 1, 1234567890123456789L, 1.5F, true, false, null FROM OBJECTS 0",
        &["c,String,1,1234567890123456789,1.5,true,false,"],
    ),
    // The dump itself.
    (
        "SELECT s.@snapshotInfo.@identifierSize, s.getObject(5).@objectId, s.isClass(s.getClasses()[0]), s.isArray(s.getClasses()[0]) FROM OBJECTS ${snapshot} s",
        &["8,5,true,false"],
    ),
    // 72 bytes for 3 of them, says the JVM's histogram.
    (
        "SELECT DISTINCT c.@snapshot.getHeapSize(c.@objectId), c.@usedHeapSize FROM HeapZoo$Color c",
        &["24,24"],
    ),
    ("SELECT count(*) FROM ${snapshot}.getClassesByName(\"HeapZoo$A\", true)", &["2000"]),
    ("SELECT count(*) FROM OBJECTS ${snapshot}.getClassesByName(\"HeapZoo$A\", true)", &["4"]),
    ("SELECT count(*) FROM INSTANCEOF ${snapshot}.getClassesByName(\"HeapZoo$B\", false)", &["1500"]),
    ("SELECT count(*) FROM OBJECTS ${snapshot}.@GCRoots[0:1]", &["2"]),
    ("SELECT count(*) FROM INSTANCEOF \"HeapZoo\\$B\"", &["1500"]),
    // Fields as objects; in the order of the record, the class's own first.
    (
        "SELECT a.@fields.size(), a.@fields[0].@name, a.@fields[0].@type, a.@fields[0] FROM HeapZoo$A a LIMIT 1",
        &["1,b,byte,byte b: 0"],
    ),
    (
        "SELECT d.getField(\"l\").getValue(), d.getField(\"l\").getName(), d.getField(\"nope\") FROM HeapZoo$D d WHERE d.l = 7",
        &["7,l,"],
    ),
    (
        "SELECT DISTINCT d.resolveValue(\"p.name\").toString() FROM HeapZoo$D d ORDER BY d.p.ordinal",
        &["RED", "GREEN", "BLUE"],
    ),
    (
        "SELECT a.@subclasses.size(), a.@heapSizePerInstance, a.hasSuperClass(), a.@numberOfObjects FROM OBJECTS HeapZoo$A a",
        &["3,16,true,500"],
    ),
    // Java's methods.
    (
        "SELECT s.id.toString().replace(\"session\", \"S\").concat(\"!\").lastIndexOf(\"1\"), s.id.indexOf('1'), s.id.indexOf(49), s.id.length(), s.id.compareTo(\"session\") FROM HeapZoo$Session s WHERE s.id = \"session-11\"",
        &["3,8,8,10,1"],
    ),
    ("SELECT count(*) FROM java.lang.String s WHERE s.matches(\"duplicate string number [0-4]\")", &["500"]),
    ("SELECT eval(7.9).intValue(), eval(7).doubleValue() FROM OBJECTS HeapZoo", &["7,7.0"]),
    (
        "SELECT h.keep.contains(h.keep), h.shared[1:1].contains(h.shared[1]), h.shared.isEmpty() FROM OBJECTS HeapZoo h",
        &["false,true,false"],
    ),
    // Long lists.
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.l IN (1,2,3,4,5,6,7,8,9,'a',-1,1000)", &["10"]),
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.l NOT IN (1,2,3,4,5,6,7,8,9,10,-1,1000)", &["490"]),
    (
        "SELECT count(*) FROM HeapZoo$Session s WHERE s.id IN (\"session-1\",\"session-2\",\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\")",
        &["2"],
    ),
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.d IN (0,1,2,3,4,5,6,7,8,9)", &["10"]),
    // jhat's functions.
    (
        "select sizeof(s), rsizeof(s) = s.@retainedHeapSize, objectid(s) = s.@objectAddress, root(s), referrers(s).size() from HeapZoo$Session s where s.id = \"session-5\"",
        &["32,true,true,,1"],
    ),
    // The first of each, in address order.
    (
        "SELECT DISTINCT d.p.ordinal, d.z FROM HeapZoo$D d ORDER BY d.p.ordinal",
        &["0,false", "1,false", "2,false"],
    ),
    ("SELECT count(*) FROM (SELECT DISTINCT l.v AS v FROM HeapZoo$Link l)", &["100000"]),
];

#[test]
fn newer_features_on_the_zoo() {
    let place = Place::new();
    place.check(JDK17, NEWER);
}

#[test]
fn the_same_on_other_jvms() {
    let place = Place::new();
    let queries: &[(&str, &[&str])] = &[
        (
            "SELECT count(*) FROM HeapZoo$D d WHERE d.l IN (SELECT v.v FROM HeapZoo$Link v WHERE v.v < 10)",
            &["10"],
        ),
        ("SELECT h.keep[0:4].size(), h.SESSION_CACHE[0:-1].size() FROM OBJECTS HeapZoo h", &["5,2000"]),
        (
            "SELECT toString(e.key), e.value.value FROM OBJECTS (SELECT t[0:-1] AS e FROM java.util.TreeMap t WHERE t.root.value.value = 1007) e",
            &["k0,7", "k1,1007", "k2,2007", "k3,3007", "k4,4007"],
        ),
        (
            "SELECT z.a, count(*) FROM (SELECT d.p.name.toString() AS a FROM HeapZoo$D d) z GROUP BY z.a ORDER BY z.a",
            &["BLUE,166", "GREEN,167", "RED,167"],
        ),
    ];
    for dump in ["samples/jdk/jdk8.hprof.zst", "samples/jdk/jdk25-compact.hprof.zst"] {
        place.check(dump, queries);
    }
}

#[test]
fn sorted_and_distinct_rows_are_the_same_however_many_are_asked_for() {
    let place = Place::new();
    // The chain's numbers are 0 to 99,999, each once; the 65,536 objects of a part are not all of one.
    let all = place.rows(JDK17, "SELECT l.v FROM HeapZoo$Link l ORDER BY l.v");
    assert!(all.iter().enumerate().all(|(at, row)| *row == at.to_string()) && all.len() == 100_000);
    let first = place.rows(JDK17, "SELECT l.v FROM HeapZoo$Link l ORDER BY l.v LIMIT 1000");
    assert_eq!(first, all[..1000]);
    let mut distinct = place.rows(JDK17, "SELECT DISTINCT (l.v / 2).intValue(), 1 FROM HeapZoo$Link l");
    assert_eq!(distinct.len(), 50_000);
    // The first of each in address order.
    let limited = place.rows(JDK17, "SELECT DISTINCT (l.v / 2).intValue(), 1 FROM HeapZoo$Link l LIMIT 777");
    assert_eq!(limited, distinct[..777]);
    let order = place.rows(JDK17, "SELECT DISTINCT (l.v / 2).intValue(), 1 FROM HeapZoo$Link l ORDER BY l.v");
    distinct.sort_unstable_by_key(|row| row.split(',').next().unwrap().parse::<u32>().unwrap());
    assert_eq!(order, distinct);
}

#[test]
fn dumps_with_identifiers_of_four_bytes() {
    let place = Place::new();
    // Of the agent: what samples/java/Plain.java makes; of Android: Strings with offset and count.
    let queries: &[(&str, &[&str])] = &[
        ("SELECT s.@snapshotInfo.@identifierSize FROM OBJECTS ${snapshot} s", &["4"]),
        (
            "SELECT count(*) FROM OBJECTS (SELECT * FROM java.lang.String s LIMIT 3) s WHERE s.length() = toString(s).length()",
            &["3"],
        ),
    ];
    for dump in [AGENT, ANDROID] {
        place.check(dump, queries);
    }
    // 500 chains of 10 in a map, 0 behind 1 behind 2 and so on up to 9.
    place.check(
        AGENT,
        &[
            ("SELECT count(*), sum(n.v) FROM Plain$Node n", &["5000,22500"]),
            ("SELECT p.m[0:-1].size() FROM OBJECTS Plain p", &["500"]),
            (
                "SELECT DISTINCT e.value.v, e.value.next.next.v FROM OBJECTS (SELECT p.m[0:-1] AS e FROM OBJECTS Plain p) e",
                &["9,7"],
            ),
        ],
    );
    // Android's own ArrayList: what it says it holds is what it holds.
    place.check(
        ANDROID,
        &[
            ("SELECT count(*) FROM java.util.ArrayList k WHERE k[0:-1].size() != k.size", &["0"]),
            (
                "SELECT k[0:-1].size() = k.size, k[0] = k.array[0] FROM java.util.ArrayList k WHERE k.size = 7 LIMIT 1",
                &["true,true"],
            ),
        ],
    );
}

#[test]
fn errors_say_what_to_write_instead() {
    let place = Place::new();
    for (query, said) in [
        (
            "SELECT z.c, z.nope FROM (SELECT d.l AS c, d.d AS e FROM HeapZoo$D d) z",
            "column 15: there is no column nope; there are c, e",
        ),
        (
            "SELECT z FROM (SELECT d.l AS c, d.d AS e FROM HeapZoo$D d) z",
            "column 8: rows have several columns here: write z.\"c\", z.\"e\"",
        ),
        ("select toHtml(s) from HeapZoo$Session s", "write toString(x)"),
        ("select filter(s) from HeapZoo$Session s", "JavaScript"),
        ("select reachables(s) from HeapZoo$Session s", "AS RETAINED SET"),
        ("select heap.objects(1) from HeapZoo$Session s", "jhat's `heap` is JavaScript"),
        ("SELECT s FROM (123 + \"\") s", "FROM OBJECTS takes it as it is"),
        ("SELECT * FROM OBJECTS (x)", "there is no row here"),
        ("SELECT (SELECT d.l, d.d FROM HeapZoo$D d) FROM HeapZoo$Color", "one column, not several"),
        ("SELECT s.frobnicate() FROM HeapZoo$Session s", "there is no method frobnicate()"),
        ("SELECT * FROM HeapZoo$D d WHERE toString(d) LIKE \"(((a{1000}){1000}){1000})\"", "size limit"),
    ] {
        let output = place.run(JDK17, &[query]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{query}: {stderr}");
        assert!(stderr.contains(said), "{query}: {stderr}");
    }
}

#[test]
fn the_pointer_stands_below_its_place_behind_wide_characters_and_tabs() {
    let place = Place::new();
    let output = place.run(JDK17, &["SELECT\t\"日本\u{1}\" + FORM x"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = stderr.lines().collect();
    // `日本` takes four cells, the control character is written with an escape.
    assert!(lines[0].contains("日本\\u0001"), "{stderr}");
    let cells = unicode_width::UnicodeWidthStr::width(&lines[0][..lines[0].find(" x").unwrap() + 1]);
    assert_eq!(lines[1].find('^').unwrap(), cells, "{stderr}");
}

#[test]
fn queries_from_files_and_stdin() {
    let place = Place::new();
    let file = place.path("query.oql");
    let query = "/* the sessions\n of the cache */\nSELECT count(*) // all\nFROM HeapZoo$Session s\n\nWHERE s.id LIKE \"session-.*\";\n";
    std::fs::write(&file, query).unwrap();
    let output = place.run(JDK17, &["--file", file.to_str().unwrap(), "--format", "csv"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "count(*)\n2000\n");
    let mut child = place.command(JDK17);
    let child = child.args(["--file", "-", "--format", "csv"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().unwrap();
    child.stdin.take().unwrap().write_all(query.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap(), "count(*)\n2000\n");
    // An end is behind the last word.
    std::fs::write(&file, "SELECT *\n\n").unwrap();
    let output = place.run(JDK17, &["--file", file.to_str().unwrap()]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("line 1, column 9: expected FROM"));
    // Two lines above the mistake.
    std::fs::write(&file, "// one\n// two\nSELECT *\nFORM x").unwrap();
    let output = place.run(JDK17, &["--file", file.to_str().unwrap()]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("line 4, column 1: expected FROM"));
}

#[test]
fn entries_of_maps_in_every_format() {
    let place = Place::new();
    let query = "SELECT t[0:0] AS first FROM java.util.TreeMap t WHERE t.root.value.value = 1042";
    let json = place.run(JDK17, &[query, "--format", "json"]);
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let first = &document["rows"][0]["first"];
    assert_eq!((&first["size"], &first["first"][0]["key"]["label"]), (&1.into(), &"k0".into()));
    assert_eq!(first["first"][0]["value"]["label"], "42");
    let table = place.run(JDK17, &[query]);
    let text = String::from_utf8(table.stdout).unwrap();
    assert!(text.contains("k0") && text.contains("42"), "{text}");
}

#[test]
fn long_queries_end() {
    let place = Place::new();
    let file = place.path("query.oql");
    let numbers: Vec<String> = (0..100_000).map(|number| number.to_string()).collect();
    let fields: Vec<String> = (0..1000).map(|number| format!("d.f{number} = 1")).collect();
    let patterns: Vec<String> =
        (0..1000).map(|number| format!("toString(d) LIKE \"a{{1,500}}{number}\"")).collect();
    let condition = |text: &str| format!("SELECT count(*) FROM HeapZoo$D d WHERE {text}");
    for (query, code, said) in [
        (format!("SELECT {} FROM x", "(".repeat(1_000_000)), 2, "nested more than 48 deep"),
        (condition(&format!("d{} = null", ".p".repeat(200_000))), 2, "at most 1000 steps"),
        (condition(&format!("{}d.z", "not ".repeat(200_000))), 0, "count(*)\n0\n"),
        (condition(&format!("{}d.z", "d.z or ".repeat(100_000))), 0, "count(*)\n0\n"),
        (condition(&format!("d.l IN ({})", numbers.join(","))), 0, "count(*)\n500\n"),
        (format!("SELECT count(*) FROM OBJECTS {}", numbers.join(",")), 0, "count(*)\n100000\n"),
        (
            format!("SELECT count(*) FROM OBJECTS HeapZoo d WHERE {}", fields.join(" or ")),
            2,
            "256 different fields",
        ),
        (condition(&patterns.join(" or ")), 2, "256 regular expressions"),
        (format!("SELECT {} FROM HeapZoo$D", numbers.join(",")), 2, "at most 1000 columns"),
        (format!("SELECT * FROM {}", "a".repeat(1_000_000)), 1, "there is no class aaaa"),
        ("x".repeat(2_000_000), 2, "longer than a megabyte"),
    ] {
        std::fs::write(&file, &query).unwrap();
        let output = place.run(JDK17, &["--file", file.to_str().unwrap(), "--format", "csv"]);
        let start: String = query.chars().take(60).collect();
        assert_eq!(output.status.code(), Some(code), "{start}");
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(text.contains(said) && text.len() < 2000, "{start}: {text}");
    }
}

/// Classes that each declare a field `A`, one below the other, or in a circle; an instance of each.
fn chain(classes: u64, is_circle: bool) -> Vec<u8> {
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    out.string(1, "A");
    out.string(2, "top");
    let ids = (1..=classes).map(|at| at * 16);
    for (serial, id) in (1u32..).zip(ids.clone()) {
        out.load_class(serial, id, 0, 1);
    }
    let mut heap = HeapWriter::new(IdSize::Eight);
    for id in ids {
        let is_top = id == classes * 16;
        let superclass = match (is_top, is_circle) {
            (true, true) => 16,
            (true, false) => 0,
            (false, _) => id + 16,
        };
        let name = if is_top { 2 } else { 1 };
        heap.class_dump(&ClassDump { id, superclass, fields: &[(name, Type::Byte)], ..ClassDump::default() });
        // All but the last two say less than their classes have.
        let values: &[Value] =
            if id + 16 == classes * 16 { &[Value::Byte(1), Value::Byte(7)] } else { &[Value::Byte(1)] };
        heap.instance(0x100_0000 + id, 0, id, values);
    }
    out.heap_segment(&heap);
    out.heap_dump_end();
    out.into_bytes()
}

#[test]
fn fields_of_a_long_chain_of_classes_take_linear_time_and_memory() {
    const CLASSES: u64 = 40_000;
    let place = Place::new();
    for is_circle in [false, true] {
        let dump = place.path(&format!("chain-{is_circle}.hprof"));
        std::fs::write(&dump, chain(CLASSES, is_circle)).unwrap();
        let dump = dump.to_str().unwrap();
        // The nearest `A` is the class's own, in the first byte; of those above `top` only one has a byte for it.
        if !is_circle {
            let own = (CLASSES - 1).to_string();
            place.check(dump, &[("SELECT count(*) FROM INSTANCEOF A x WHERE x.A = 1", &[&own])]);
            place.check(dump, &[("SELECT count(*) FROM INSTANCEOF A x WHERE x.top = 7", &["1"])]);
        }
        let rows = place.rows(dump, "SELECT count(*) FROM INSTANCEOF A x WHERE x.top = 1");
        assert_eq!(rows, ["1"]);
    }
}
