//! The small tables of a dump say what the commands say that they are made of.

use hprof_query::compare::places::{Aligned, DumpPlaces};
use hprof_query::tables::{About, Cell, ColumnType, Table, TableQuery, Tables, Wanted};
use serde_json::{Value, json};

use crate::kit::dump::{Dump, bytes};
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
        let mut batch = table.batch(Wanted::ALL);
        table.read(&chunk, Wanted::ALL, &mut batch).unwrap();
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
    let rows = rows(table);
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

/// Calls with the tables of each dump.
fn each(names: &[&str], test: impl Fn(&str, &Dump, &Tables<'_>)) {
    for name in names {
        let dump = Dump::at(Some(&sample_path(name)));
        let (heap, graph) = dump.open_graph();
        let about = About { name: "d".into(), labels: vec![("service".into(), "cart".into())] };
        test(name, &dump, &Tables::new(&heap, &graph, bytes(&heap), about));
    }
}

#[test]
fn threads_with_their_frames_and_locals() {
    each(&HEAPS, |name, dump, tables| {
        let answer = told(dump, &["threads", "--sort", "address", "--top", "0"]);
        let counted: Vec<Value> = answer.iter().map(with_counts).collect();
        let threads = same(name, tables.find("threads").unwrap(), &counted, &[], &["trace"]);
        assert!(threads > 0, "{name}");
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
        let places = DumpPlaces::new(context.heap, context.graph, context.bytes).unwrap();
        let places = Aligned::with_all_keys(&[places]);
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
        let is_agents = AGENT_BINARIES.contains(&name);
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
        assert!(!frames.is_empty(), "{name}");
        same(name, tables.find("traces").unwrap(), &frames, &[], &["is_native", "thread_serial"]);
    });
}

#[test]
fn what_a_dump_is() {
    let damaged = std::fs::read(sample_path("jdk/jdk17.hprof.zst")).unwrap();
    let damaged = zstd::decode_all(&*damaged).unwrap();
    let damaged = Dump::of(&damaged[..damaged.len() * 2 / 3]);
    let (heap, graph) = damaged.open_graph();
    let tables = Tables::new(&heap, &graph, bytes(&heap), About::default());
    let row = &rows(tables.find("dumps").unwrap())[0];
    assert_eq!((&row["is_damaged"], &row["file"]), (&json!(true), &json!("dump.hprof")));
    assert!(row["damage_count"].as_u64() > Some(0), "{row}");
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
        assert_eq!(row["is_damaged"], json!(false), "{name}");
        let properties = rows(tables.find("properties").unwrap());
        let stated = info[0]["jvm"]["properties"].as_object().cloned().unwrap_or_default();
        let found =
            properties.iter().map(|row| (row["name"].as_str().unwrap().to_owned(), row["value"].clone()));
        assert_eq!(found.collect::<serde_json::Map<_, _>>(), stated, "{name}");
        assert_eq!(rows(tables.find("labels").unwrap()), [json!({ "name": "service", "value": "cart" })]);
    });
}
