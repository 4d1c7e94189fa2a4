//! OQL: what queries answer on a dump whose program is known: `samples/java/HeapZoo.java`, run with a scale of 1.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "oql/place.rs"]
mod place;

use place::{JDK17, Place};

/// Queries and the rows they give, from what the program does; scalars where rows hold addresses.
const QUERIES: &[(&str, &[&str])] = &[
    // Fields of every type.
    ("SELECT d.l, d.d, d.i, d.z, d.f FROM HeapZoo$D d WHERE d.l = 499", &["499,249.5,0,false,0.0"]),
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.l >= 100 AND d.l < 200", &["100"]),
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.d = 0.5", &["1"]),
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.d > 100", &["299"]),
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.l = 7.0 OR d.l = 8L OR d.l = 0x9", &["3"]),
    ("SELECT count(*) FROM HeapZoo$D d WHERE NOT d.l > 9", &["10"]),
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.l * 2 + 1 = 21 - 2 * 3", &["1"]),
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.l = d.d * 2", &["500"]),
    // No boolean of the zoo is set.
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.z", &["0"]),
    ("SELECT count(*) FROM HeapZoo$D WHERE l < 5", &["5"]),
    ("SELECT count(*) FROM HeapZoo$D d WHERE (d.l > 489) = true", &["10"]),
    ("SELECT count(*) FROM HeapZoo$D d WHERE -d.l = -5", &["1"]),
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.o != null AND d.p != null", &["500"]),
    ("SELECT count(*) FROM HeapZoo$C c WHERE c.o = null", &["500"]),
    // Classes and subclasses: A, B, C and D extend one another, and there are 500 of each.
    ("SELECT count(*) FROM HeapZoo$A a", &["500"]),
    ("SELECT count(*) FROM INSTANCEOF HeapZoo$A a", &["2000"]),
    ("select count(*) from instanceof HeapZoo$B b", &["1500"]),
    ("SELECT count(*) FROM \"HeapZoo\\$[A-D]\"", &["2000"]),
    ("SELECT count(*) FROM INSTANCEOF HeapZoo$A a WHERE a instanceof HeapZoo$C", &["1000"]),
    ("SELECT count(*) FROM INSTANCEOF HeapZoo$A a WHERE a.l = 3", &["1"]),
    // 1 of the program, and 5 of other loaders.
    ("SELECT count(*) FROM OBJECTS HeapZoo$Empty", &["6"]),
    ("SELECT count(*) FROM HeapZoo$Empty", &["505"]),
    ("SELECT count(*) FROM HeapZoo$Empty UNION (SELECT count(*) FROM HeapZoo$Color)", &["505", "3"]),
    // Paths, elements, statics.
    ("SELECT h.SESSION_CACHE.baseCount FROM OBJECTS HeapZoo h", &["2000"]),
    ("SELECT h.shared.@length, h.shared[3], h.shared[0].r.@length FROM OBJECTS HeapZoo h", &["4,,2"]),
    (
        "SELECT h.chain.v, h.chain.next.v, h.chain.next.next.next.v FROM OBJECTS HeapZoo h",
        &["99999,99998,99996"],
    ),
    ("SELECT toString(h.shared[0].r[0].r.r) FROM OBJECTS HeapZoo h", &["diamond bottom"]),
    (
        "SELECT h.shared[0].r[0].r = h.shared[0].r[1].r, h.shared[1].r.r = h.shared[1] FROM OBJECTS HeapZoo h",
        &["true,true"],
    ),
    (
        "SELECT c.name.toString(), c.ordinal FROM HeapZoo$Color c ORDER BY c.ordinal",
        &["RED,0", "GREEN,1", "BLUE,2"],
    ),
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.p.name.toString() = \"RED\"", &["167"]),
    ("SELECT count(*) FROM HeapZoo$D d WHERE d.p.name = \"BLUE\"", &["166"]),
    // Arrays.
    (
        "SELECT a.@length, a[0], a[2], a.@valueArray.get(0) FROM double[] a WHERE a[1] = 4.9e-324",
        &["3,3.141592653589793,-0.0,3.141592653589793"],
    ),
    ("SELECT a[0], a[1], a[2] FROM float[] a WHERE a[0] = 1.5", &["1.5,NaN,-Infinity"]),
    ("SELECT a[0], a[1] FROM byte[] a WHERE a.@length = 2 AND a[0] = -128 AND a[1] = 127", &["-128,127"]),
    ("SELECT a.getValueAt(0) FROM short[] a WHERE a.@length = 1", &["-32768"]),
    (
        "SELECT a[0], a[1] FROM long[] a WHERE a.length = 2 AND a[0] < 0 AND a[1] > 9e18",
        &["-9223372036854775808,9223372036854775807"],
    ),
    ("SELECT count(*) FROM byte[] b WHERE b.@length = 1MB", &["1"]),
    ("SELECT count(*) FROM byte[] b WHERE b.@usedHeapSize > 1MB", &["1"]),
    ("SELECT count(*) FROM byte[] b WHERE b.@length = 54321", &["1"]),
    ("SELECT a[0] FROM [I a WHERE a.@length = 1 AND a[0] = -2147483648", &["-2147483648"]),
    ("SELECT count(*) FROM int[][] a WHERE a.@length = 10 AND a[0] = null", &["1"]),
    ("SELECT count(*) FROM java.lang.String[][][] a", &["1"]),
    ("SELECT count(*) FROM java.lang.Object[] a WHERE a.@length = 1 AND a[0] = a", &["1"]),
    ("SELECT a.@referenceArray.size() FROM HeapZoo$Color[] a WHERE a[1] = null", &["2"]),
    // Texts.
    (
        "SELECT count(*) FROM java.lang.String s WHERE toString(s) LIKE \"duplicate string number \\d\"",
        &["1000"],
    ),
    ("SELECT count(*) FROM java.lang.String s WHERE toString(s) LIKE \"duplicate\"", &["0"]),
    ("SELECT toString(s) FROM java.lang.String s WHERE toString(s) LIKE \"Gr..e\"", &["Grüße"]),
    ("SELECT toString(s).length() FROM java.lang.String s WHERE toString(s) LIKE \"emoji .*\"", &["13"]),
    ("SELECT count(*) FROM HeapZoo$Session s WHERE s.id.toString().startsWith(\"session-19\")", &["111"]),
    (
        "SELECT count(*) FROM HeapZoo$Session s WHERE s.id IN (\"session-0\", \"session-1999\", \"session-2000\")",
        &["2"],
    ),
    ("SELECT count(*) FROM HeapZoo$Session s WHERE s.id NOT LIKE \"session-1.*\"", &["889"]),
    (
        "SELECT t.daemon, toString(t.name) FROM INSTANCEOF java.lang.Thread t WHERE toString(t.name) LIKE \".*quoted.*\"",
        &["true,\"blocked \"\"quoted\"\"\""],
    ),
    // Functions over the graph.
    ("SELECT DISTINCT toString(classof(s)) FROM HeapZoo$Session s", &["HeapZoo$Session"]),
    (
        "SELECT DISTINCT classof(o).@name FROM OBJECTS (SELECT OBJECTS outbounds(d) FROM HeapZoo$D d) o WHERE NOT o implements org.eclipse.mat.snapshot.model.IClass ORDER BY classof(o).@name",
        &["HeapZoo$Color", "java.util.ArrayList"],
    ),
    (
        "SELECT count(*) FROM OBJECTS (SELECT OBJECTS s.buffer FROM HeapZoo$Session s) b WHERE b.@length = 512",
        &["2000"],
    ),
    ("SELECT count(*) FROM HeapZoo$Session s WHERE s.buffer IN dominators(s)", &["2000"]),
    (
        "SELECT count(*) FROM byte[] b WHERE b.@length = 512 AND dominatorof(b) instanceof HeapZoo$Session",
        &["2000"],
    ),
    ("SELECT count(*) FROM byte[] b WHERE b IN (SELECT OBJECTS s.buffer FROM HeapZoo$Session s)", &["2000"]),
    ("SELECT count(*) FROM HeapZoo$Session s WHERE inbounds(s).size() = 1", &["2000"]),
    ("SELECT count(*) FROM HeapZoo$Session s WHERE s.@GCRootInfo = null", &["2000"]),
    (
        "SELECT toHex(255), toHex(-1), toString(1.5), 7 / 2, 7.0 / 2, 1 / 0 FROM OBJECTS HeapZoo",
        &["0xff,0xffffffffffffffff,1.5,3.5,3.5,Infinity"],
    ),
    (
        "SELECT c.@superClass.@name, c.@superClass.@superClass.@name FROM OBJECTS HeapZoo$C c",
        &["HeapZoo$B,HeapZoo$A"],
    ),
    // Groups, order, limits.
    (
        "SELECT min(l.v), max(l.v), sum(l.v), avg(l.v), count(l.next) FROM HeapZoo$Link l",
        &["0,99999,4999950000,49999.5,99999"],
    ),
    (
        "SELECT classof(a).@name AS c, count(*) AS n FROM INSTANCEOF HeapZoo$A a GROUP BY c ORDER BY c DESC LIMIT 2",
        &["HeapZoo$D,500", "HeapZoo$C,500"],
    ),
    (
        "SELECT d.p.name.toString(), count(*) FROM HeapZoo$D d GROUP BY d.p.name.toString() ORDER BY count(*), d.p.name.toString() DESC",
        &["BLUE,166", "RED,167", "GREEN,167"],
    ),
    ("SELECT l.v FROM HeapZoo$Link l ORDER BY l.v DESC LIMIT 3", &["99999", "99998", "99997"]),
    ("SELECT count(*) FROM OBJECTS (SELECT * FROM HeapZoo$Link LIMIT 17)", &["17"]),
    ("SELECT max(l.v) FROM OBJECTS (SELECT * FROM HeapZoo$Link l ORDER BY l.v LIMIT 10) l", &["9"]),
    ("SELECT sum(d.l) FROM HeapZoo$D d WHERE d.l > 1000", &["\"\""]),
];

#[test]
fn queries_on_the_zoo() {
    let place = Place::new();
    place.check(JDK17, QUERIES);
}

#[test]
fn objects_are_rows_with_sizes_in_address_order() {
    let place = Place::new();
    let output = place.run(JDK17, &["SELECT * FROM HeapZoo$Session LIMIT 30", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &document["total"]["rows"]), (30, &30.into()));
    assert!(rows.iter().all(|row| row["class"] == "HeapZoo$Session" && row["shallow_bytes"] == 32));
    let ids: Vec<u64> = rows
        .iter()
        .map(|row| u64::from_str_radix(&row["object"].as_str().unwrap()[2..], 16).unwrap())
        .collect();
    assert!(ids.is_sorted());
    // What one object retains is a set of as many bytes.
    let query = format!(
        "SELECT sum(x.@usedHeapSize) FROM OBJECTS (SELECT AS RETAINED SET * FROM OBJECTS {:#x}) x",
        ids[0]
    );
    assert_eq!(place.rows(JDK17, &query), [rows[0]["retained_bytes"].to_string()]);
}

#[test]
fn what_is_retained_together_is_a_set() {
    let place = Place::new();
    let together = place.rows(
        JDK17,
        "SELECT sum(x.@usedHeapSize) FROM OBJECTS (SELECT AS RETAINED SET * FROM HeapZoo$Session) x",
    );
    let mut retained = place.cli("retained", JDK17);
    let output = retained.args(["HeapZoo$Session", "--format", "json"]).output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(together, [document["total"]["retained_bytes"].to_string()]);
}

#[test]
fn errors_name_the_place_and_what_is_near() {
    let place = Place::new();
    for (query, code, said) in [
        ("SELECT * FORM x", 2, "column 10: expected FROM, found `FORM`"),
        (
            "SELECT * FROM java.lang.Sting",
            1,
            "column 15: there is no class java.lang.Sting in the dump; there are java.lang.String",
        ),
        (
            "SELECT s.idd FROM HeapZoo$Session s",
            2,
            "column 10: HeapZoo$Session has no field idd (the alias is s); it has id",
        ),
        ("SELECT * FROM HeapZoo$D d WHERE d.@usedheapsize > 1", 2, "there are @usedHeapSize"),
        ("SELECT * FROM HeapZoo$D d WHERE toString(d) LIKE \"(\"", 2, "is no regular expression"),
        ("SELECT * FROM 0x1", 1, "there is no object 0x1 in the dump"),
        ("SELECT d.l, count(*) FROM HeapZoo$D d", 2, "column 8: not the same for all rows of a group"),
        ("SELECT * FROM HeapZoo$D UNION (SELECT d.l FROM HeapZoo$D d)", 2, "all parts of a UNION"),
    ] {
        let output = place.run(JDK17, &[query]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{query}: {stderr}");
        assert!(stderr.contains(said), "{query}: {stderr}");
    }
}

#[test]
fn old_and_compact_strings_say_the_same() {
    let place = Place::new();
    for dump in ["samples/jdk/jdk8.hprof.zst", "samples/jdk/jdk25-compact.hprof.zst"] {
        let query = "SELECT toString(s) FROM java.lang.String s WHERE toString(s) LIKE \"Gr..e|日本.*|emoji.*\" ORDER BY toString(s)";
        assert_eq!(place.rows(dump, query), ["Grüße", "emoji 😀 pair", "日本語テキスト"], "{dump}");
    }
}

#[test]
fn examples_of_the_reference_run() {
    let place = Place::new();
    let text = std::fs::read_to_string("docs/oql.md").unwrap();
    let mut examples = 0;
    for block in text.split("```sql\n").skip(1) {
        for query in
            block.split("```").next().unwrap().split(';').map(str::trim).filter(|query| !query.is_empty())
        {
            let output = place.run(JDK17, &[query]);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{query}: {stderr}");
            examples += 1;
        }
    }
    assert!(examples >= 20, "{examples}");
}
