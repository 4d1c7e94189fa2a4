//! OQL: where its meaning is MAT's and Java's, and how its clauses work together. What the queries are to answer is what
//! `samples/java/HeapZoo.java` does, run with a scale of 1.

use super::place::{JDK17, Place};
use hprof_writer::{ClassDump, DumpWriter, Elements, HeapWriter, IdSize, Type, Version};

#[test]
fn a_limit_is_of_its_own_select_and_of_distinct_rows() {
    let place = Place::new();
    let document = place.json("SELECT * FROM HeapZoo$Color LIMIT 1 UNION (SELECT * FROM HeapZoo$D)");
    assert_eq!((document["rows"].as_array().unwrap().len(), &document["total"]["rows"]), (501, &501.into()));
}

#[test]
fn numbers_are_written_and_divided_as_in_mat() {
    let place = Place::new();
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
    // Each is in a sort column: if both were evaluated, the innermost would be evaluated 4096 times.
    let mut query = "SELECT max(d.l) FROM HeapZoo$D d".to_owned();
    for _ in 0..12 {
        query = format!("SELECT max(c.ordinal + ({query})) AS m FROM HeapZoo$Color c GROUP BY 1 ORDER BY m");
    }
    // 499, and 2 more on each level.
    assert_eq!(place.rows(JDK17, &query), ["523"]);
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
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
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
