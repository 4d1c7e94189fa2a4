//! OQL: what queries answer on a dump whose program is known: `samples/java/HeapZoo.java`, run with a scale of 1.

use super::place::{JDK17, Place};

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
    // The retained set of one object has as many bytes as its retained size.
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
