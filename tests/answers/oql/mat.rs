//! OQL: what newer versions of Eclipse MAT and jhat offer, and queries and dumps that are hostile. What the queries are
//! to answer is what `samples/java/HeapZoo.java` does, run with a scale of 1.

use std::io::Write;
use std::process::Stdio;

use super::place::{JDK17, Place};
use hprof_writer::{ClassDump, DumpWriter, HeapWriter, IdSize, Type, Value, Version};

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
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn long_queries_end() {
    let place = Place::new();
    let file = place.path("query.oql");
    let numbers: Vec<String> = (0..100_000).map(|number| number.to_string()).collect();
    let fields: Vec<String> = (0..1000).map(|number| format!("d.f{number} = 1")).collect();
    let patterns: Vec<String> =
        (0..1000).map(|number| format!("toString(d) LIKE \"a{{1,500}}{number}\"")).collect();
    let condition = |text: &str| format!("SELECT count(*) FROM HeapZoo$D d WHERE {text}");
    for (query, code, said) in [
        (format!("SELECT {} FROM x", "(".repeat(1_000_000)), 2, "nested more than 48 levels deep"),
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
        (format!("SELECT * FROM {}", "a".repeat(1_000_000)), 1, "no class aaaa"),
        ("x".repeat(2_000_000), 2, "longer than 1 MiB"),
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
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
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
