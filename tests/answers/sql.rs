//! SQL against what the other commands say: the same counts, sizes, references, roots, threads and texts; lookups against
//! scans.

use std::collections::BTreeMap;

use hprof_writer::{HeapModel, Jdk, Options, Root};
use serde_json::Value;

use crate::kit::dump::Dump;
use crate::kit::process::{Place, stderr};
use crate::kit::texts::sample_path;
use crate::kit::{portion, samples};

/// Samples of several JVMs, with and without compressed references.
const SAMPLES: [&str; 4] =
    ["jdk/jdk17.hprof.zst", "jdk/jdk17-nocoops.hprof.zst", "jdk/jdk11.hprof.zst", "jdk/jdk17-zgc.hprof.zst"];

fn place(sample: &str) -> Place {
    let dump = std::fs::canonicalize(sample_path(sample)).unwrap();
    Place::sharing(samples::indexes(&dump), &dump)
}

fn rows(place: &Place, arguments: &[&str]) -> Vec<Value> {
    let mut all = arguments.to_vec();
    all.extend(["--format", "json", "--quiet"]);
    let document: Value = serde_json::from_str(&place.answer(&all)).unwrap();
    document["rows"].as_array().unwrap().clone()
}

fn sql(place: &Place, query: &str) -> Vec<Value> {
    let output = place.run(&["sql", query, "--format", "json", "--quiet"]);
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{query}: {}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    document["rows"].as_array().cloned().unwrap_or_default()
}

/// Some columns of rows, sorted.
fn sorted(rows: &[Value], columns: &[&str]) -> Vec<String> {
    let row =
        |row: &Value| columns.iter().map(|column| row[*column].to_string()).collect::<Vec<_>>().join(" ");
    let mut all: Vec<String> = rows.iter().map(row).collect();
    all.sort_unstable();
    all
}

#[test]
fn sql_says_what_other_commands_say() {
    for sample in portion::samples(&SAMPLES) {
        let place = place(sample);
        let histo = rows(&place, &["histo"]);
        let columns = ["class", "instances", "shallow_bytes"];
        let classes = sql(
            &place,
            "SELECT class, sum(instances) AS instances, sum(shallow_bytes) AS shallow_bytes FROM classes
             GROUP BY class, loader_object HAVING sum(instances) > 0",
        );
        assert_eq!(sorted(&classes, &columns), sorted(&histo, &columns), "{sample}");
        let mut by_class: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for row in &histo {
            let sums = by_class.entry(row["class"].to_string()).or_default();
            sums.0 += row["instances"].as_u64().unwrap();
            sums.1 += row["shallow_bytes"].as_u64().unwrap();
        }
        let objects =
            sql(&place, "SELECT class, count(*) AS n, sum(shallow_bytes) AS s FROM objects GROUP BY 1");
        let found: BTreeMap<String, (u64, u64)> = (objects.iter())
            .map(|row| (row["class"].to_string(), (row["n"].as_u64().unwrap(), row["s"].as_u64().unwrap())))
            .collect();
        assert_eq!(found, by_class, "{sample}");

        let dominators = rows(&place, &["dominators", "--all"]);
        let columns = ["object", "class", "shallow_bytes", "retained_bytes"];
        let tree = sql(
            &place,
            "SELECT object, class, shallow_bytes, retained_bytes FROM objects WHERE is_reachable",
        );
        assert_eq!(sorted(&tree, &columns), sorted(&dominators, &columns), "{sample}");

        let info = &rows(&place, &["info"])[0];
        let counts = sql(
            &place,
            "SELECT count(*) AS n, sum(is_reachable) AS r, sum(kind = 'class') AS c FROM objects",
        );
        assert_eq!(counts[0]["n"], info["objects"]["total"], "{sample}");
        assert_eq!(counts[0]["r"], info["reachable"]["objects"], "{sample}");
        assert_eq!(counts[0]["c"], info["objects"]["classes"], "{sample}");

        let threads = sorted(&rows(&place, &["threads"]), &["object", "name"]);
        let found = sorted(
            &sql(&place, "SELECT object, name FROM threads WHERE object IS NOT NULL"),
            &["object", "name"],
        );
        assert_eq!(found, threads, "{sample}");

        let duplicates = rows(&place, &["strings", "--duplicates", "--top", "0"]);
        let mut counts: Vec<u64> = duplicates.iter().filter_map(|row| row["strings"].as_u64()).collect();
        counts.sort_unstable();
        let found = sql(&place, "SELECT count(*) AS n FROM strings GROUP BY text HAVING n > 1 ORDER BY n");
        let found: Vec<u64> = found.iter().map(|row| row["n"].as_u64().unwrap()).collect();
        if !counts.is_empty() {
            assert_eq!(found, counts, "{sample}");
        }
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn references_are_those_of_refs_both_ways() {
    let place = place("jdk/jdk17.hprof.zst");
    // Every so many objects: the same ones each time.
    let picked = sql(
        &place,
        "SELECT object FROM (SELECT object, row_number() OVER (ORDER BY object) AS at FROM objects) WHERE at % 701 = 7",
    );
    assert!(picked.len() > 20);
    for row in picked.iter().take(portion::cases(60).try_into().unwrap()) {
        let id = row["object"].as_str().unwrap();
        let query = format!("SELECT DISTINCT target AS object FROM refs WHERE referrer = {id}");
        let out = rows(&place, &["refs", id]);
        let mut targets = sorted(&out, &["object"]);
        targets.dedup();
        assert_eq!(sorted(&sql(&place, &query), &["object"]), targets, "{id}");
        // A lookup finds what a scan finds.
        for (lookup, scan) in [("referrer", "referrer + 0"), ("target", "target + 0")] {
            let all = |column: &str| {
                let query =
                    format!("SELECT referrer, reference, target, kind FROM refs WHERE {column} = {id}");
                sorted(&sql(&place, &query), &["referrer", "field", "target", "kind"])
            };
            assert_eq!(all(lookup), all(scan), "{id} {lookup}");
        }
    }
}

#[test]
fn rows_that_two_lookups_find_are_there_once() {
    let place = place("jdk/jdk17.hprof.zst");
    let one = |query: &str| sql(&place, query)[0]["n"].as_u64().unwrap();
    let id =
        sql(&place, "SELECT target FROM refs GROUP BY target + 0 HAVING count(*) > 3 ORDER BY 1 LIMIT 1");
    let id = id[0]["target"].as_str().unwrap();
    for (lookups, scan) in [
        (format!("referrer = {id} OR target = {id}"), format!("referrer + 0 = {id} OR target + 0 = {id}")),
        (format!("target = {id} OR target = {id} + 0"), format!("target + 0 = {id}")),
    ] {
        let count = |condition: &str| one(&format!("SELECT count(*) AS n FROM refs WHERE {condition}"));
        assert_eq!(count(&lookups), count(&scan), "{lookups}");
    }
    let both = "SELECT count(*) AS n FROM objects WHERE class = 'java.lang.String' OR retained_bytes >= 1000";
    let scan = "SELECT count(*) AS n FROM objects WHERE class || '' = 'java.lang.String' OR retained_bytes + 0 >= 1000";
    assert_eq!(one(both), one(scan));
    let outer = "SELECT count(*) AS n FROM (SELECT object FROM objects WHERE class = 'java.lang.Thread') a
                 FULL JOIN threads t ON t.object = a.object";
    assert_eq!(one(outer), one("SELECT count(*) AS n FROM threads"));
}

#[test]
fn values_are_compared_by_the_type_of_the_column() {
    let place = place("jdk/jdk17.hprof.zst");
    let count = |condition: &str| {
        sql(&place, &format!("SELECT count(*) AS n FROM objects WHERE {condition}"))[0]["n"].as_u64().unwrap()
    };
    let first = sql(&place, "SELECT object, object + 0 AS number FROM objects LIMIT 1");
    let number = first[0]["number"].as_i64().unwrap();
    assert_eq!(count(&format!("object = '{number}'")), 1);
    assert_eq!(count(&format!("object = {number}.0")), 1);
    assert_eq!(count("object = 'x'"), 0);
    assert_eq!(count("object = NULL"), 0);
    let strings = count("class = 'java.lang.String'");
    assert!(strings > 0);
    assert_eq!(count("class = 'JAVA.LANG.STRING' COLLATE NOCASE"), strings);
    assert_eq!(count("class IN ('java.lang.String', 'java.lang.String', 'none')"), strings);
    assert_eq!(count("class GLOB 'java.lang.String'"), strings);
    assert_eq!(count("class GLOB 'j.l.String'"), 0);
    assert_eq!(count("'10.20.3' GLOB '1.2.3'"), 0);
    assert_eq!(count("class LIKE 'JAVA.LANG.STRING'"), strings);
    assert_eq!(count("retained_bytes > 1000"), count("retained_bytes + 0 > 1000"));
}

#[test]
fn a_class_is_a_table() {
    let place = place("jdk/jdk17.hprof.zst");
    let found = sql(
        &place,
        "SELECT object, text(object) AS t, hash FROM \"java.lang.String\" ORDER BY object LIMIT 50",
    );
    assert_eq!(found.len(), 50);
    let same = sql(
        &place,
        "SELECT object, text(object) AS t, value(object, 'hash') AS hash FROM objects WHERE class = 'java.lang.String' ORDER BY object LIMIT 50",
    );
    assert_eq!(found, same);
    let arrays = sql(&place, "SELECT count(*) AS n, sum(length) AS l FROM \"byte[]\"");
    let same = sql(&place, "SELECT count(*) AS n, sum(length) AS l FROM arrays WHERE class = 'byte[]'");
    assert_eq!(arrays, same);
    assert_eq!(
        sql(&place, "SELECT count(*) AS n FROM main.\"java.lang.Thread\""),
        sql(&place, "SELECT count(*) AS n FROM objects WHERE class = 'java.lang.Thread'")
    );
}

#[test]
fn functions_say_what_commands_say() {
    let place = place("jdk/jdk17.hprof.zst");
    let main = sql(
        &place,
        "SELECT object, text(object) AS name, class_of(object) AS class FROM \"java.lang.Thread\" WHERE text(name) = 'main'",
    );
    assert_eq!(
        (main[0]["name"].as_str(), main[0]["class"].as_str()),
        (Some("main"), Some("java.lang.Thread"))
    );
    let held = sql(
        &place,
        "SELECT count(*) AS n, sum(dominates(dominator, object)) AS d FROM objects WHERE dominator IS NOT NULL",
    );
    assert_eq!(held[0]["n"], held[0]["d"]);
    let sizes = sql(&place, "SELECT count(*) AS n FROM arrays WHERE size(object) IS NOT length");
    assert_eq!(sizes[0]["n"], 0);
    let path = sql(
        &place,
        "SELECT path(object) AS p FROM objects WHERE is_reachable AND class = 'java.lang.String' LIMIT 20",
    );
    assert!(path.iter().all(|row| row["p"].as_str().unwrap().contains(": ")));
    assert_eq!(
        sql(&place, "SELECT text(1) AS a, path(NULL) AS b, size(0) AS c")[0],
        serde_json::json!({"a": null, "b": null, "c": null})
    );
    let query = "SELECT 'a!' LIKE 'a!' ESCAPE '!' AS a, 1.0 LIKE '1.0' AS b, 1e300 LIKE '1.0e+300' AS c";
    assert_eq!(sql(&place, query)[0], serde_json::json!({"a": 0, "b": 1, "c": 1}));
}

#[test]
fn two_dumps_are_asked_at_once() {
    let place = place("jdk/jdk17.hprof.zst");
    let other = std::fs::canonicalize(sample_path("jdk/jdk11.hprof.zst")).unwrap();
    let attach = format!("old={}", other.display());
    let query = "SELECT (SELECT count(*) FROM objects) AS new, (SELECT count(*) FROM old.objects) AS old,
                 (SELECT text(object, 'old') FROM old.\"java.lang.Thread\" LIMIT 1) IS NOT NULL AS named";
    let output = place.run(&["sql", query, "--attach", &attach, "--format", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let info = |dump: &std::path::Path| rows(&Place::of(dump), &["info"])[0]["objects"]["total"].clone();
    assert_eq!(document["rows"][0]["new"], info(&place.dump));
    assert_eq!(document["rows"][0]["old"], info(&other));
    assert_eq!(document["rows"][0]["named"], 1);
    assert_eq!(document["attached"][0]["name"], "old");
    // A schema that is called as a package: a class of the first dump is made, and still is not what is meant.
    let attach = format!("java={}", other.display());
    let both =
        "SELECT (SELECT count(*) FROM java.objects) AS old, count(*) > 0 AS new FROM \"java.lang.Thread\"";
    let output = place.run(&["sql", both, "--attach", &attach, "--format", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&document["rows"][0]["old"], &document["rows"][0]["new"]), (&info(&other), &Value::from(1)));
    let output = place.run(&["sql", "SELECT * FROM java.\"lang.Thread\"", "--attach", &attach]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("no table or class named lang.Thread"), "{}", stderr(&output));
}

#[test]
fn a_name_without_a_schema_means_the_first_dump() {
    let place = place("jdk/jdk17.hprof.zst");
    let other = std::fs::canonicalize(sample_path("jdk/jdk11.hprof.zst")).unwrap();
    let attach = format!("old={}", other.display());
    let ask = |query: &str| place.run(&["sql", query, "--attach", &attach, "--format", "json"]);
    let row = |query: &str| {
        let output = ask(query);
        let document: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        document["rows"][0].clone()
    };
    let counts =
        row("SELECT n.instances AS new, o.instances AS old FROM classes n JOIN old.classes o USING (class)
                      WHERE class = 'java.util.HashMap'");
    assert_ne!(counts["new"], counts["old"]);
    // Whichever SQLite asks for first.
    let (new, old) =
        ("SELECT count(*) FROM \"java.util.HashMap\"", "SELECT count(*) FROM old.\"java.util.HashMap\"");
    assert_eq!(row(&format!("SELECT ({old}) AS old, ({new}) AS new")), counts);
    assert_eq!(row(&format!("SELECT ({new}) AS new, ({old}) AS old")), counts);
    let gone = row("SELECT class FROM old.classes o WHERE instances > 0 AND class LIKE 'java.%'
                    AND NOT EXISTS (SELECT 1 FROM classes n WHERE n.class = o.class) LIMIT 1");
    let name = gone["class"].as_str().unwrap();
    assert!(row(&format!("SELECT count(*) AS n FROM old.\"{name}\""))["n"].as_i64().unwrap() > 0);
    for query in [
        format!("SELECT (SELECT count(*) FROM old.\"{name}\"), (SELECT count(*) FROM \"{name}\")"),
        format!("SELECT n.* FROM old.\"{name}\" o JOIN \"{name}\" n USING (object)"),
        format!("SELECT count(*) FROM \"{name}\""),
    ] {
        let output = ask(&query);
        assert_eq!(output.status.code(), Some(1), "{query}: {}", stderr(&output));
        assert!(stderr(&output).contains(&format!("no table or class named {name}")), "{}", stderr(&output));
    }
}

/// A dump of instances of these classes.
fn of_classes(classes: &[(&str, usize)]) -> Dump {
    let mut model = HeapModel::default();
    Jdk::add_to(&mut model);
    for (name, count) in classes {
        let class = model.class(name, None, &[]);
        for _ in 0..*count {
            let object = model.instance(class, &[]);
            model.root(object, Root::Unknown);
        }
    }
    Dump::written(&model.write(&Options::hotspot()))
}

#[test]
fn names_of_two_dumps_that_differ_in_case_only_are_one() {
    let new = of_classes(&[("com.Foo", 3), ("com.Two", 1), ("com.TWO", 2), ("com.Same", 4)]);
    let old = of_classes(&[("com.foo", 5), ("com.two", 6), ("com.same", 7), ("com.Gone", 8)]);
    let attach = format!("old={}", old.path.display());
    let ask = |tables: &[&str]| {
        let counts: Vec<String> =
            tables.iter().map(|table| format!("(SELECT count(*) FROM {table})")).collect();
        let query = format!("SELECT {}", counts.join(", "));
        let output = new.run(&["sql", &query, "--attach", &attach, "--format", "csv", "--quiet"]);
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        text.lines().nth(1).map(str::to_owned).ok_or_else(|| stderr(&output))
    };
    for (name, other, count) in [("com.Foo", "com.foo", "3,5"), ("com.Same", "com.same", "4,7")] {
        for (here, there) in [(name, name), (name, other), (other, name), (other, other)] {
            let (main, plain) = (format!("main.\"{here}\""), format!("\"{here}\""));
            let old = format!("old.\"{there}\"");
            let turned = count.split(',').rev().collect::<Vec<_>>().join(",");
            assert_eq!(ask(&[&main, &old]).as_deref(), Ok(count));
            assert_eq!(ask(&[&plain, &old]).as_deref(), Ok(count));
            assert_eq!(ask(&[&old, &main]).as_deref(), Ok(&*turned));
            assert_eq!(ask(&[&old, &plain]).as_deref(), Ok(&*turned));
        }
    }
    assert_eq!(ask(&["old.\"com.two\""]).as_deref(), Ok("6"));
    for plain in ["\"com.two\"", "\"com.Two\""] {
        for tables in [[plain, "old.\"com.two\""], ["old.\"com.two\"", plain]] {
            let said = ask(&tables).unwrap_err();
            assert!(said.contains("is ambiguous: several names differ only in case"), "{tables:?}: {said}");
        }
    }
    assert_eq!(ask(&["\"com.FOO+\"", "old.\"com.Foo+\""]).as_deref(), Ok("3,5"));
    let id = |dump: &Dump, name: &str| {
        let query = format!("SELECT class_object AS id FROM classes WHERE class = '{name}'");
        let output = dump.run(&["sql", &query, "--format", "csv", "--quiet"]);
        String::from_utf8(output.stdout).unwrap().lines().nth(1).unwrap().to_owned()
    };
    // The ID decides between those that differ in case; here they have the same in both dumps.
    let (upper, lower) = (id(&new, "com.Foo"), id(&old, "com.foo"));
    assert_eq!(upper, lower);
    let (main, there) = (format!("main.\"com.Foo@{upper}\""), format!("old.\"com.foo@{lower}\""));
    assert_eq!(ask(&[&main, &there]).as_deref(), Ok("3,5"));
    assert_eq!(ask(&[&there, &main]).as_deref(), Ok("5,3"));
    let two = format!("\"com.two@{}\"", id(&new, "com.TWO"));
    assert_eq!(ask(&[&two]).as_deref(), Ok("2"));
    let said = ask(&["old.\"com.Gone\"", "\"com.gone\""]).unwrap_err().to_lowercase();
    assert!(said.contains("no table or class named com.gone"), "{said}");
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn tables_are_there_however_they_are_named() {
    let place = place("jdk/jdk17.hprof.zst");
    let all = sql(&place, "SELECT name FROM sqlite_schema ORDER BY rowid");
    let all: Vec<&str> = all.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert!(all.starts_with(&["classes", "objects", "refs"]), "{all:?}");
    for name in &all {
        let columns = sql(&place, &format!("PRAGMA table_info({name})"));
        let upper = name.to_uppercase();
        let row = sql(&place, &format!("SELECT count(*) AS n FROM pragma_table_info('{name}')"));
        assert_eq!(row[0]["n"], columns.len(), "{name}");
        let row =
            sql(&place, &format!("SELECT * FROM [{upper}] UNION ALL SELECT * FROM main.`{name}` LIMIT 1"));
        assert!(row.first().is_none_or(|row| row.as_object().unwrap().len() == columns.len()), "{name}");
    }
}
