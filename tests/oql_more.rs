//! OQL: where its meaning is MAT's and Java's, and how its clauses work together. What the queries are to answer is what
//! `samples/java/HeapZoo.java` does, run with a scale of 1.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "oql/place.rs"]
mod place;
mod support;

use place::{JDK17, Place};
use support::{ClassDump, DumpWriter, Elements, HeapWriter, IdSize, Type, Version};

/// A session retains 11 objects: itself, its id and the bytes of that, its buffer, the map with its table and two
/// entries, the user's name with its bytes, and the locale, whose bytes are the literal's.
const RETAINED: &[(&str, &[&str])] = &[
    ("SELECT AS RETAINED SET count(*) FROM HeapZoo$Session s", &["22000"]),
    ("SELECT AS RETAINED SET count(*) FROM HeapZoo$Session s WHERE s.id = \"session-7\"", &["11"]),
    // The items are of what is retained; other objects than sessions have no id.
    (
        "SELECT count(*), count(z.n) FROM (SELECT AS RETAINED SET toString(s.id) AS n FROM HeapZoo$Session s) z",
        &["22000,2000"],
    ),
    (
        "SELECT AS RETAINED SET classof(s).@name AS c, count(*) FROM HeapZoo$Session s WHERE s.id LIKE \"session-[0-4]\" GROUP BY c ORDER BY c",
        &[
            "HeapZoo$Session,5",
            "byte[],15",
            "java.lang.String,15",
            "java.util.HashMap,5",
            "java.util.HashMap$Node,10",
            "java.util.HashMap$Node[],5",
        ],
    ),
    (
        "SELECT AS RETAINED SET DISTINCT classof(s).@name AS c FROM HeapZoo$Color s ORDER BY c LIMIT 1",
        &["HeapZoo$Color"],
    ),
    ("SELECT count(*) FROM OBJECTS (SELECT AS RETAINED SET * FROM HeapZoo$Session LIMIT 7)", &["7"]),
    (
        "SELECT count(*) FROM byte[] b WHERE b.@length = 512 AND b IN (SELECT AS RETAINED SET * FROM HeapZoo$Session)",
        &["2000"],
    ),
];

/// LIMIT and DISTINCT, alone and in queries inside others.
const LIMITS: &[(&str, &[&str])] = &[
    (
        "SELECT count(*) FROM OBJECTS (SELECT * FROM HeapZoo$Color LIMIT 1 UNION (SELECT * FROM HeapZoo$D))",
        &["501"],
    ),
    (
        "SELECT count(*) FROM INSTANCEOF HeapZoo$A a WHERE a IN (SELECT * FROM HeapZoo$C LIMIT 2 UNION (SELECT * FROM HeapZoo$D) UNION (SELECT * FROM HeapZoo$B LIMIT 3))",
        &["505"],
    ),
    (
        // There are 1000 links with each, and they lie one behind the other.
        "SELECT count(*) FROM (SELECT DISTINCT * FROM (SELECT (l.v / 1000).intValue() AS n FROM HeapZoo$Link l) LIMIT 3)",
        &["3"],
    ),
    (
        "SELECT DISTINCT z FROM (SELECT d.p.ordinal AS n FROM HeapZoo$D d) z ORDER BY z DESC LIMIT 2",
        &["2", "1"],
    ),
    ("SELECT count(*) FROM (SELECT DISTINCT l.v AS v FROM HeapZoo$Link l LIMIT 1234)", &["1234"]),
];

/// Class names and texts as patterns. There are 500 of each of A, B, C and D.
const PATTERNS: &[(&str, &[&str])] = &[
    ("SELECT count(*) FROM \"HeapZoo$[A-D]\" a", &["2000"]),
    ("SELECT count(*) FROM \"HeapZoo\\$[A-D]\" a", &["2000"]),
    ("SELECT count(*) FROM \"HeapZoo$A$\" a", &["500"]),
    ("SELECT count(*) FROM \"java.lang.String[][][]\" a", &["1"]),
    ("SELECT count(*) FROM \"java.lang.String(\\[\\])+[][]\" a", &["1"]),
    ("SELECT count(*) FROM INSTANCEOF HeapZoo$A a WHERE classof(a).@name LIKE \"HeapZoo$[AB]\"", &["1000"]),
    (
        "SELECT count(*) FROM INSTANCEOF HeapZoo$A a WHERE classof(a).@name NOT LIKE \"HeapZoo$[ABC]\"",
        &["500"],
    ),
    // As Java's String.matches: `$` is the end.
    ("SELECT count(*) FROM HeapZoo$A a WHERE classof(a).@name.matches(\"HeapZoo$A\")", &["0"]),
    ("SELECT count(*) FROM HeapZoo$A a WHERE classof(a).@name.matches(\"HeapZoo\\$A\")", &["500"]),
];

/// Membership, null and conditions.
const CONDITIONS: &[(&str, &[&str])] = &[
    // An element of a list, which is the byte 127.
    (
        "SELECT l.v FROM HeapZoo$Link l WHERE l.v IN (SELECT a[0:-1] FROM byte[] a WHERE a.@length = 2 AND a[0] = -128 AND a[1] = 127)",
        &["127"],
    ),
    // A text and a String, both ways around; with and without OBJECTS.
    (
        "SELECT count(*) FROM HeapZoo$Session s WHERE s.id.toString() IN (SELECT t.id FROM HeapZoo$Session t WHERE t.id LIKE \"session-1.\")",
        &["10"],
    ),
    (
        "SELECT count(*) FROM HeapZoo$Session s WHERE s.id.toString() IN (SELECT OBJECTS t.id FROM HeapZoo$Session t WHERE t.id LIKE \"session-1.\")",
        &["10"],
    ),
    (
        "SELECT count(*) FROM HeapZoo$Session s WHERE s.id NOT IN (SELECT t.id.toString() FROM HeapZoo$Session t WHERE t.id LIKE \"session-1.\")",
        &["1990"],
    ),
    // An address, and an index.
    (
        "SELECT toString(s.id) FROM HeapZoo$Session s WHERE s.@objectAddress IN (SELECT * FROM HeapZoo$Session t WHERE t.id = \"session-5\")",
        &["session-5"],
    ),
    (
        "SELECT toString(s.id) FROM HeapZoo$Session s WHERE s.@objectId IN (SELECT t FROM HeapZoo$Session t WHERE t.id = \"session-5\")",
        &["session-5"],
    ),
    // A list that is the same for all rows. No session is a root, and live threads are.
    ("SELECT count(*) FROM HeapZoo$Session s WHERE s IN ${snapshot}.@GCRoots", &["0"]),
    (
        "SELECT toString(t.name) FROM INSTANCEOF java.lang.Thread t WHERE t IN ${snapshot}.@GCRoots AND t.name LIKE \"deep-stack|local-owner\" ORDER BY toString(t.name)",
        &["deep-stack", "local-owner"],
    ),
    // The field o of the 500 C is null.
    ("SELECT count(*) FROM HeapZoo$C c WHERE c.o IN (1, null)", &["0"]),
    ("SELECT count(*) FROM HeapZoo$C c WHERE c.o NOT IN (1, 2)", &["0"]),
    ("SELECT count(*) FROM HeapZoo$C c WHERE c.o NOT IN (1, 2, 3, 4, 5, 6, 7, 8, 9)", &["0"]),
    ("SELECT count(*) FROM HeapZoo$C c WHERE c.o NOT IN (SELECT * FROM HeapZoo$Color)", &["0"]),
    ("SELECT count(*) FROM HeapZoo$C c WHERE c.o NOT IN dominators(c)", &["0"]),
    ("SELECT count(*) FROM HeapZoo$C c WHERE c.o LIKE \".*\" OR c.o NOT LIKE \"x\"", &["0"]),
    ("SELECT count(*) FROM HeapZoo$C c WHERE NOT (c.o IN (1, 2))", &["500"]),
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.o NOT IN (1, 2)", &["500"]),
    // Numbers that are not 0, and what is not null, are true.
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.l AND true", &["499"]),
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.d OR false", &["499"]),
    ("SELECT count(*) FROM INSTANCEOF HeapZoo$C c WHERE c.o", &["500"]),
    // However long the list is.
    (
        "SELECT 1e18 IN (1000000000000000000, 1), 1e18 IN (1,2,3,4,5,6,7,8,9,1000000000000000000), 9223372036854775807 IN (1,2,3,4,5,6,7,8,9,9.223372036854775808e18) FROM OBJECTS HeapZoo",
        &["true,true,false"],
    ),
];

/// Numbers as Java writes them, and what aggregates are of.
const NUMBERS: &[(&str, &[&str])] = &[
    (
        "SELECT 1.0, -0.0, 1e300, -1.0 / 0, 0.0 / 0, 1.0e7, 0.001, toString(1e21) FROM OBJECTS HeapZoo",
        &["1.0,-0.0,1.0E300,-Infinity,NaN,1.0E7,0.001,1.0E21"],
    ),
    (
        "SELECT 7 / 2, 6 / 2, 1 / 0, -1 / 0, 7 / 2 * 2 FROM OBJECTS HeapZoo",
        &["3.5,3.0,Infinity,-Infinity,7.0"],
    ),
    (
        "SELECT -9223372036854775808, -9223372036854775808 + 1 FROM OBJECTS HeapZoo",
        &["-9223372036854775808,-9223372036854775807"],
    ),
    ("SELECT a[0] = -9223372036854775808 FROM long[] a WHERE a.length = 2 AND a[0] < 0", &["true"]),
    ("SELECT a[a.@length / 2] FROM byte[] a WHERE a.@length = 2 AND a[0] = -128 AND a[1] = 127", &["127"]),
    // Java's Integer.toHexString and Long.toHexString.
    ("SELECT toHex(a[0]) FROM int[] a WHERE a.@length = 1 AND a[0] = -2147483648", &["0x80000000"]),
    ("SELECT toHex(a[0]) FROM long[] a WHERE a.length = 2 AND a[0] < 0", &["0x8000000000000000"]),
    // A String is no number.
    ("SELECT sum(s.id), avg(s.id), count(s.id) FROM HeapZoo$Session s", &[",,2000"]),
    ("SELECT toString(min(s.id)), toString(max(s.id)) FROM HeapZoo$Session s", &["session-0,session-999"]),
    (
        "SELECT sum(z.x), avg(z.x), count(z.x) FROM (SELECT d.l AS x FROM HeapZoo$D d WHERE d.l IN (2, 4) UNION (SELECT s.id FROM HeapZoo$Session s WHERE s.id = \"session-1\")) z",
        &["6,3.0,3"],
    ),
];

#[test]
fn retained_sets_are_of_what_was_found_and_the_items_of_them() {
    Place::new().check(JDK17, RETAINED);
}

#[test]
fn a_limit_is_of_its_own_select_and_of_distinct_rows() {
    let place = Place::new();
    place.check(JDK17, LIMITS);
    let document = place.json("SELECT * FROM HeapZoo$Color LIMIT 1 UNION (SELECT * FROM HeapZoo$D)");
    assert_eq!((document["rows"].as_array().unwrap().len(), &document["total"]["rows"]), (501, &501.into()));
}

#[test]
fn patterns_are_those_of_mat() {
    Place::new().check(JDK17, PATTERNS);
}

#[test]
fn conditions_are_those_of_mat() {
    Place::new().check(JDK17, CONDITIONS);
}

#[test]
fn numbers_are_written_and_divided_as_in_mat() {
    let place = Place::new();
    place.check(JDK17, NUMBERS);
    let document = place.json("SELECT 1 / 0 AS a, -1.5 AS b, d.f AS c FROM HeapZoo$D d LIMIT 1");
    assert_eq!(document["rows"][0], serde_json::json!({ "a": "Infinity", "b": -1.5, "c": 0.0 }));
}

#[test]
fn an_object_is_a_row_once() {
    let place = Place::new();
    for (query, total) in [
        ("SELECT DISTINCT OBJECTS d.p FROM HeapZoo$D d ORDER BY d.l", None),
        ("SELECT * FROM HeapZoo$Color c ORDER BY c.ordinal UNION (SELECT * FROM HeapZoo$Color)", Some(3)),
        (
            "SELECT * FROM HeapZoo$Color UNION (SELECT DISTINCT OBJECTS d.p FROM HeapZoo$D d ORDER BY d.l)",
            None,
        ),
    ] {
        let document = place.json(query);
        assert_eq!(document["rows"].as_array().unwrap().len(), 3, "{query}");
        assert_eq!(document["total"]["rows"].as_u64(), total, "{query}");
    }
}

#[test]
fn queries_inside_others_are_asked_once() {
    let place = Place::new();
    // Each is in a column that is sorted by: asked for both, the innermost would be asked 4096 times.
    let mut query = "SELECT max(d.l) FROM HeapZoo$D d".to_owned();
    for _ in 0..12 {
        query = format!("SELECT max(c.ordinal + ({query})) AS m FROM HeapZoo$Color c GROUP BY 1 ORDER BY m");
    }
    // 499, and 2 more on each level.
    assert_eq!(place.rows(JDK17, &query), ["523"]);
}

#[test]
fn what_the_dump_says_is_said_of_each_row() {
    // As an independent reader counts them: objects that are roots, classes, and all objects.
    let roots = "SELECT s.@GCRoots.@length, s.@snapshotInfo.@numberOfGCRoots, s.@snapshotInfo.@numberOfObjects, s.@snapshotInfo.@numberOfClasses FROM OBJECTS ${snapshot} s";
    Place::new().check(
        JDK17,
        &[
            (roots, &["948,948,174112,996"]),
            (
                "SELECT count(*) FROM byte[] b WHERE b.@retainedHeapSize > ${snapshot}.@snapshotInfo.@usedHeapSize / 20",
                &["1"],
            ),
        ],
    );
}

#[test]
fn mistakes_are_named() {
    let place = Place::new();
    for (query, said) in [
        ("SELECT * FROM \"java.lang.Strin)|(g\"", "is no regular expression"),
        ("SELECT * FROM HeapZoo$D d WHERE d.l + 1", "column 33: WHERE takes what is true or false"),
        ("SELECT * FROM HeapZoo$D d WHERE 5", "column 33: WHERE takes what is true or false"),
        ("SELECT max(count(*)) FROM HeapZoo$D d", "column 12: an aggregate cannot be of another one"),
        ("SELECT AS RETAINED SET * FROM (SELECT d.l FROM HeapZoo$D d)", "AS RETAINED SET is of objects"),
        ("SELECT 9223372036854775808 FROM OBJECTS HeapZoo", "a number of up to 9223372036854775807"),
        // A blank in a text is a part of it.
        (
            "SELECT d.p.name = \"R ED\", count(*) FROM HeapZoo$D d GROUP BY d.p.name = \"RED\"",
            "column 8: not the same for all rows of a group",
        ),
    ] {
        let output = place.run(JDK17, &[query]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{query}: {stderr}");
        assert!(stderr.contains(said), "{query}: {stderr}");
    }
    // Blanks between words and comments are none.
    place.check(
        JDK17,
        &[("SELECT d . p/* of */.name.toString()=\"RED\" AS r, count(*) FROM HeapZoo$D d GROUP BY d.p.name.toString() = \"RED\" ORDER BY r", &[
            "false,333",
            "true,167",
        ])],
    );
}

/// Three classes at 0x10, 0x20 (with a name of 200 B) and 0x30, and a `char[]` of 300 x, a zero and a y.
fn long_text() -> Vec<u8> {
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    for (serial, (id, name)) in
        (1u32..).zip([(0x10, "java.lang.Object"), (0x20, &"B".repeat(200)), (0x30, "C")])
    {
        out.string(id + 1, name);
        out.load_class(serial, id, 0, id + 1);
    }
    let mut heap = HeapWriter::new(IdSize::Eight);
    for (id, superclass) in [(0x10, 0), (0x20, 0x10), (0x30, 0x20)] {
        heap.class_dump(&ClassDump {
            id,
            superclass,
            fields: &[(id + 1, Type::Byte)],
            ..ClassDump::default()
        });
    }
    let mut units = vec![u16::from(b'x'); 300];
    units.extend([0, u16::from(b'y')]);
    heap.prim_array(0x40, 0, &Elements::Char(units));
    out.heap_segment(&heap);
    out.heap_dump_end();
    out.into_bytes()
}

#[test]
fn texts_are_whole_and_addresses_those_of_the_dump() {
    let place = Place::new();
    let dump = place.path("text.hprof");
    std::fs::write(&dump, long_text()).unwrap();
    place.check(
        dump.to_str().unwrap(),
        &[
            ("SELECT toString(c).length(), c.@length FROM char[] c", &["302,302"]),
            ("SELECT count(*) FROM char[] c WHERE toString(c) LIKE \"x{300}\\x00y\"", &["1"]),
            (
                "SELECT s.mapIdToAddress(0), s.mapIdToAddress(3), s.mapAddressToId(0x20) FROM OBJECTS ${snapshot} s",
                &["16,64,1"],
            ),
            ("SELECT toHex(c), c.@objectId FROM char[] c", &["0x40,3"]),
            ("SELECT toString(b).length() FROM OBJECTS \"B+\" b", &["200"]),
        ],
    );
}
