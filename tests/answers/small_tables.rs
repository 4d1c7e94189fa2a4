//! The tables of a dump say what the commands say about the same things: of whole dumps, and of damaged ones.

use std::collections::BTreeMap;

use hprof_query::compare::places::{AlignedPlaces, DumpPlaces};
use hprof_query::tables::{About, Cell, ColumnSet, ColumnType, Table, TableQuery, Tables};
use serde_json::{Value, json};

use crate::kit::dump::{Dump, bytes, whole_dump};
use crate::kit::portion;
use crate::kit::texts::{AGENT_BINARIES, sample_path};

/// Dumps of JVMs: with thread stacks, suspects, several class loaders, waste; one of Android.
const HEAPS: [&str; 7] = [
    "jdk/jdk8.hprof.zst",
    "jdk/jdk17.hprof.zst",
    "jdk/jdk25-compact.hprof.zst",
    "leaks/s1.hprof.zst",
    "leaks/s4.hprof.zst",
    "leaks/s5.hprof.zst",
    "public/android-leak_service_binder.hprof.zst",
];

/// Columns of `dumps` that `info` does not have: what the dump is called, and what a fleet asks for.
const ALONE: [&str; 10] = [
    "name",
    "file",
    "created_ms",
    "jvm_name",
    "jvm_version",
    "jvm_vendor",
    "is_damaged",
    "damage_count",
    "skipped_bytes",
    "labels",
];

/// A thread of an answer with its numbers of frames and locals.
fn with_counts(thread: &Value) -> Value {
    let mut thread = thread.clone();
    let frames = thread["frames"].as_array().unwrap();
    let of_frames: usize = frames.iter().map(|frame| frame["locals"].as_array().unwrap().len()).sum();
    let locals = of_frames + thread["locals"].as_array().unwrap().len();
    (thread["frame_count"], thread["local_count"]) = (json!(frames.len()), json!(locals));
    thread
}

/// All rows of a table as JSON; IDs as commands write them.
fn rows(table: &dyn Table) -> Vec<Value> {
    let columns = &table.definition().columns;
    let mut all = Vec::new();
    for chunk in table.chunks(&TableQuery::All).unwrap() {
        let mut batch = table.batch(ColumnSet::ALL);
        table.read(&chunk, ColumnSet::ALL, &mut batch).unwrap();
        for row in 0..batch.rows {
            let cell = |(at, column): (usize, &hprof_query::tables::Column)| {
                let value = match batch.cell(row, at) {
                    Cell::Null => Value::Null,
                    Cell::Integer(id) if column.kind == ColumnType::Id => {
                        json!(format!("{:#x}", id.cast_unsigned()))
                    }
                    Cell::Integer(value) if column.kind == ColumnType::Boolean => json!(value != 0),
                    Cell::Integer(value) => json!(value),
                    Cell::Real(value) => json!(value),
                    Cell::Text(text) => json!(text),
                };
                assert!(!value.is_null() || column.null.is_some(), "{} is never null", column.name);
                (column.name.to_string(), value)
            };
            all.push(Value::Object(columns.iter().enumerate().map(cell).collect()));
        }
    }
    all
}

/// Returns the rows of a command's answer.
fn told(dump: &Dump, arguments: &[&str]) -> Vec<Value> {
    let output = dump.run(&[arguments, &["--format", "json"]].concat());
    assert_ne!(output.status.code(), Some(2), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["rows"].as_array().unwrap().clone()
}

/// Compares all columns of a table with the keys of the same names in an answer's rows. `elsewhere` are columns whose values
/// the answer has in a nested record: `column=JSON pointer without its first slash`; `alone` those that it does not have.
#[track_caller]
fn same(name: &str, table: &dyn Table, answer: &[Value], elsewhere: &[&str], alone: &[&str]) -> usize {
    same_rows(name, table, &rows(table), answer, elsewhere, alone)
}

/// Some columns of a row, to sort and compare by.
fn key(row: &Value, columns: &[&str]) -> Vec<String> {
    columns.iter().map(|column| row[*column].to_string()).collect()
}

/// Some columns of rows, sorted.
fn sorted(rows: &[Value], columns: &[&str]) -> Vec<Vec<String>> {
    let mut keys: Vec<_> = rows.iter().map(|row| key(row, columns)).collect();
    keys.sort();
    keys
}

/// Like [`same`], for a table in another order than the answer.
#[track_caller]
fn same_sorted(name: &str, table: &dyn Table, mut answer: Vec<Value>, by: &[&str], alone: &[&str]) -> usize {
    let mut rows = rows(table);
    rows.sort_by_cached_key(|row| key(row, by));
    answer.sort_by_cached_key(|row| key(row, by));
    same_rows(name, table, &rows, &answer, &[], alone)
}

#[track_caller]
fn same_rows(
    name: &str,
    table: &dyn Table,
    rows: &[Value],
    answer: &[Value],
    elsewhere: &[&str],
    alone: &[&str],
) -> usize {
    let definition = table.definition();
    assert_eq!(rows.len(), answer.len(), "{name}: rows of {}", definition.name);
    let columns = definition.columns.iter().map(|column| column.name.as_ref());
    for column in columns.filter(|column| !alone.contains(column)) {
        let place = elsewhere.iter().find_map(|place| place.strip_prefix(column)?.strip_prefix('='));
        let pointer = format!("/{}", place.unwrap_or(column));
        for (found, expected) in rows.iter().zip(answer) {
            let expected = expected.pointer(&pointer);
            let is_known = expected.is_some() || place.is_some();
            assert!(is_known, "{name}: the answer has no {column} of {}", definition.name);
            assert_eq!(
                &found[column],
                expected.unwrap_or(&Value::Null),
                "{name}: {column} of {}",
                definition.name
            );
        }
    }
    rows.len()
}

/// Eighths of a file after which a cut-off one ends: among the classes, among the objects, close to the end.
const CUTS: [usize; 3] = [1, 4, 7];

/// Calls with the tables of each dump, and of the first and the last one cut off.
fn each(names: &[&str], test: impl Fn(&str, &Dump, &Tables<'_>)) {
    let test = |name: &str, dump: &Dump| {
        let (heap, graph) = dump.open_graph();
        let about =
            About { name: "d".into(), labels: vec![("service".into(), "cart".into())], ..About::default() };
        test(name, dump, &Tables::new(&whole_dump(&heap, &graph), about));
    };
    for name in names {
        test(name, &Dump::sample(&sample_path(name)));
    }
    for name in [names.first(), names.last()].into_iter().flatten() {
        let whole = bytes(&Dump::sample(&sample_path(name)).open()).to_vec();
        for eighths in CUTS {
            let cut = &whole[..whole.len() * eighths / 8];
            test(&format!("{eighths}/8 of {name}"), &Dump::of(cut));
        }
    }
}

/// Returns whether a name given by [`each`] is of a cut-off dump.
fn is_cut(name: &str) -> bool {
    name.contains("/8 of ")
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn roots_classes_objects_and_strings() {
    each(&portion::samples(&HEAPS), |name, dump, tables| {
        let mut roots = Vec::new();
        for root in told(dump, &["roots", "--top", "0"]) {
            let times = root["times"].as_u64().unwrap();
            roots.extend((0..times).map(|_| root.clone()));
        }
        let by = ["object", "kind", "thread", "frame_number", "is_assumed"];
        same_sorted(name, tables.find("roots").unwrap(), roots, &by, &[]);

        let table = tables.find("classes").unwrap();
        let by = ["class_object", "class", "instances", "shallow_bytes"];
        let alone = ["loader_object", "superclass_object", "class_number", "loader_class", "package"];
        let mut classes = told(dump, &["classes", "--top", "0"]);
        same_sorted(name, table, classes.clone(), &by, &alone);
        // What the command says in words.
        let mut of_table = rows(table);
        let text = |row: &Value, column: &str| row[column].as_str().map(str::to_owned);
        let mut names = BTreeMap::new();
        for row in &of_table {
            if let Some(id) = text(row, "class_object") {
                names.insert(id, text(row, "class"));
            }
        }
        of_table.sort_by_cached_key(|row| key(row, &by));
        classes.sort_by_cached_key(|row| key(row, &by));
        for (row, class) in of_table.iter().zip(&classes) {
            let loader = match (text(row, "loader_object"), text(row, "loader_class")) {
                _ if row["class_object"].is_null() => None,
                (None, _) => Some("<boot loader>".to_owned()),
                (Some(id), None) => Some(id),
                (Some(id), Some(class)) => Some(format!("{class} @ {id}")),
            };
            assert_eq!(text(class, "loader"), loader, "{name}: {row}");
            if let Some(superclass) = text(row, "superclass_object") {
                assert_eq!(text(class, "superclass"), names[&superclass], "{name}: {row}");
            }
        }
        let mut packages: BTreeMap<Option<String>, [u64; 2]> = BTreeMap::new();
        for row in of_table.iter().filter(|row| row["instances"] != 0) {
            let sums = packages.entry(text(row, "package")).or_default();
            sums[0] += row["instances"].as_u64().unwrap();
            sums[1] += row["shallow_bytes"].as_u64().unwrap();
        }
        let counted = told(dump, &["histo", "--group-by", "package"]);
        let of_package = |row: &Value| {
            let sums = ["instances", "shallow_bytes"].map(|column| row[column].as_u64().unwrap());
            (text(row, "package"), sums)
        };
        assert_eq!(packages, counted.iter().map(of_package).collect(), "{name}");

        // The histogram has those of the classes that have objects.
        let columns = ["class", "class_object", "loader_object", "instances", "shallow_bytes"];
        of_table.retain(|row| row["instances"] != 0);
        let counted = told(dump, &["histo", "--top", "0"]);
        assert_eq!(sorted(&of_table, &columns), sorted(&counted, &columns), "{name}");

        let columns = ["object", "class", "shallow_bytes", "retained_bytes", "dominator"];
        let mut tree = told(dump, &["dominators", "--all"]);
        for row in tree.iter_mut().filter(|row| row["dominator"] == "root") {
            row["dominator"] = Value::Null;
        }
        let mut reachable = rows(tables.find("objects").unwrap());
        reachable.retain(|row| row["is_reachable"] == true);
        assert_eq!(sorted(&reachable, &columns), sorted(&tree, &columns), "{name}");
        let columns = ["object", "class", "shallow_bytes", "retained_bytes"];
        let instances = told(dump, &["instances", "**", "--top", "0"]);
        let objects = rows(tables.find("objects").unwrap());
        assert_eq!(sorted(&objects, &columns), sorted(&instances, &columns), "{name}");

        // The command counts strings that cannot be read, and does not list them.
        let mut strings = rows(tables.find("strings").unwrap());
        strings.retain(|row| !row["text"].is_null());
        let mut listed = told(dump, &["strings", "--top", "0"]);
        for row in &mut listed {
            row["text"] = row["label"].clone();
        }
        let columns = ["object", "text", "length"];
        assert_eq!(sorted(&strings, &columns), sorted(&listed, &columns), "{name}");
    });
}

#[test]
fn threads_with_their_frames_and_locals() {
    each(&HEAPS, |name, dump, tables| {
        let answer = told(dump, &["threads", "--sort", "address", "--top", "0"]);
        let counted: Vec<Value> = answer.iter().map(with_counts).collect();
        let threads = same(name, tables.find("threads").unwrap(), &counted, &[], &["trace"]);
        assert!(threads > 0 || is_cut(name), "{name}");
        let (mut frames, mut locals) = (Vec::new(), Vec::new());
        for thread in &answer {
            let id = &thread["object"];
            let with = |local: &Value, frame: Value| {
                let mut local = local.clone();
                (local["thread"], local["frame_number"]) = (id.clone(), frame);
                local
            };
            for (number, frame) in thread["frames"].as_array().unwrap().iter().enumerate() {
                let mut row = frame.clone();
                (row["thread"], row["frame_number"]) = (id.clone(), json!(number));
                row["local_count"] = json!(frame["locals"].as_array().unwrap().len());
                locals.extend(
                    frame["locals"].as_array().unwrap().iter().map(|local| with(local, json!(number))),
                );
                frames.push(row);
            }
            locals.extend(thread["locals"].as_array().unwrap().iter().map(|local| with(local, Value::Null)));
        }
        same(name, tables.find("frames").unwrap(), &frames, &[], &["is_native"]);
        same(name, tables.find("locals").unwrap(), &locals, &[], &[]);
        let of_threads = rows(tables.find("threads").unwrap());
        let sum = |column: &str| of_threads.iter().map(|row| row[column].as_u64().unwrap()).sum::<u64>();
        assert_eq!(
            (sum("frame_count"), sum("local_count")),
            (frames.len() as u64, locals.len() as u64),
            "{name}"
        );
    });
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn loaders_suspects_waste_and_places() {
    each(&portion::samples(&HEAPS), |name, dump, tables| {
        let loaders = told(dump, &["loaders", "--top", "0"]);
        same(name, tables.find("loaders").unwrap(), &loaders, &[], &[]);
        let mut suspects = told(dump, &["leaks"]);
        for (at, suspect) in suspects.iter_mut().enumerate() {
            suspect["rank"] = json!(at + 1);
        }
        same(
            name,
            tables.find("suspects").unwrap(),
            &suspects,
            &[
                "accumulation_point_object=accumulation_point/object",
                "accumulation_point_class=accumulation_point/class",
                "how=reason/how",
                "owner_class=owner/class",
                "owner_field=owner/field",
                "is_owner_static=owner/is_static",
                "content_class=content_classes/0/class",
            ],
            &["allocation_site"],
        );
        let mut waste = Vec::new();
        for kind in told(dump, &["waste", "--top", "0"]) {
            for field in kind["fields"].as_array().unwrap() {
                let mut row = field.clone();
                row["kind"] = kind.clone();
                waste.push(row);
            }
            if kind["fields"].as_array().unwrap().is_empty() {
                let (count, bytes) = (&kind["objects"], &kind["wasted_bytes"]);
                waste.push(json!({
                    "kind": kind, "field": null, "is_static": false, "objects": count, "wasted_bytes": bytes,
                }));
            }
        }
        same(
            name,
            tables.find("waste").unwrap(),
            &waste,
            &[
                "kind=kind/kind",
                "kind_objects=kind/objects",
                "kind_wasted_bytes=kind/wasted_bytes",
                "kind_added_bytes=kind/added_bytes",
            ],
            &["class"],
        );
        let context = tables.context();
        let places = DumpPlaces::new(&whole_dump(context.dump.heap, context.dump.graph)).unwrap();
        let places = AlignedPlaces::with_all_keys(&[places.without_structures()]);
        let table = rows(tables.find("places").unwrap());
        assert_eq!(table.len(), places.places().count(), "{name}");
        for (place, row) in places.places().zip(&table) {
            let (text, figures) = (places.text(place), places.figures(0, place));
            let keys = row["keys"].as_str().map(|keys| serde_json::from_str::<Vec<String>>(keys).unwrap());
            let parts: Vec<&str> = row["place_text"].as_str().unwrap().split("{*}").collect();
            let keys = keys.unwrap_or_default();
            assert!(parts.len() > keys.len(), "{name}: {row}");
            let keys = keys.iter().map(|key| format!("{{{key}}}")).chain([String::new()]);
            assert_eq!(
                parts.iter().zip(keys).map(|(part, key)| format!("{part}{key}")).collect::<String>(),
                text,
                "{name}"
            );
            assert_eq!(row["objects"], json!(figures.objects), "{name}: {text}");
            assert_eq!(row["retained_bytes"], json!(figures.retained_bytes), "{name}: {text}");
            assert_eq!(row["depth"], json!(places.path(place).len()), "{name}: {text}");
        }
    });
}

#[test]
fn recordings() {
    each(&[&AGENT_BINARIES[..], &["jdk/jdk17.hprof.zst"]].concat(), |name, dump, tables| {
        let is_agents = AGENT_BINARIES.iter().any(|agents| name.ends_with(agents));
        let mut sites = told(dump, &["sites", "--top", "0"]);
        if !is_agents {
            // Counted over objects that have no traces.
            sites.clear();
        }
        same(name, tables.find("sites").unwrap(), &sites, &[], &["origin"]);
        let samples = told(dump, &["cpu", "--top", "0"]);
        same(name, tables.find("samples").unwrap(), &samples, &[], &[]);
        let mut frames = Vec::new();
        for trace in told(dump, &["traces", "--top", "0"]) {
            let of_trace = trace["frames"].as_array().unwrap();
            for (number, frame) in of_trace.iter().enumerate() {
                let mut row = frame.clone();
                (row["trace"], row["frame_number"]) = (trace["trace"].clone(), json!(number));
                frames.push(row);
            }
            if of_trace.is_empty() {
                let mut row = json!({ "trace": trace["trace"] });
                for key in ["frame_number", "class", "method", "source", "line"] {
                    row[key] = Value::Null;
                }
                frames.push(row);
            }
        }
        assert!(!frames.is_empty() || is_cut(name), "{name}");
        same(name, tables.find("traces").unwrap(), &frames, &[], &["is_native", "thread_serial"]);
    });
}

#[test]
fn what_a_dump_is() {
    each(&HEAPS, |name, dump, tables| {
        let mut info = told(dump, &["info"]);
        info[0]["problem_count"] = json!(info[0]["problems"].as_array().unwrap().len());
        let roots = info[0]["gc_roots"].as_object().unwrap().values().map(|count| count.as_u64().unwrap());
        info[0]["root_count"] = json!(roots.sum::<u64>());
        let table = tables.find("dumps").unwrap();
        same(
            name,
            table,
            &info,
            &[
                "jvm_text=jvm/name",
                "objects=objects/total",
                "instances=objects/instances",
                "object_arrays=objects/object_arrays",
                "primitive_arrays=objects/primitive_arrays",
                "class_objects=objects/classes",
                "reachable_objects=reachable/objects",
                "reachable_bytes=reachable/shallow_bytes",
                "reference_bytes=layout/reference_bytes",
                "header_bytes=layout/header_bytes",
                "alignment_bytes=layout/alignment_bytes",
            ],
            &ALONE,
        );
        let row = &rows(table)[0];
        assert_eq!((&row["name"], &row["labels"]), (&json!("d"), &json!(r#"{"service":"cart"}"#)));
        assert_eq!(row["is_damaged"], json!(is_cut(name)), "{name}");
        assert_eq!(row["damage_count"] != json!(0), is_cut(name), "{name}");
        assert_eq!(row["file"] == "dump.hprof", is_cut(name), "{name}");
        let properties = rows(tables.find("properties").unwrap());
        let stated = info[0]["jvm"]["properties"].as_object().cloned().unwrap_or_default();
        let found =
            properties.iter().map(|row| (row["name"].as_str().unwrap().to_owned(), row["value"].clone()));
        assert_eq!(found.collect::<serde_json::Map<_, _>>(), stated, "{name}");
        assert_eq!(rows(tables.find("labels").unwrap()), [json!({ "name": "service", "value": "cart" })]);
    });
}
