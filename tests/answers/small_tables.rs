//! The small tables of a dump say what the commands say that they are made of.

use hprof_query::compare::places::{Aligned, Places};
use hprof_query::tables::{About, Cell, Kind, Question, Table, Tables, Wanted};
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

/// All rows of a table as JSON; IDs as commands write them.
fn rows(table: &dyn Table) -> Vec<Value> {
    let columns = &table.definition().columns;
    let mut all = Vec::new();
    for chunk in table.chunks(&Question::All).unwrap() {
        let mut batch = table.batch(Wanted::ALL);
        table.read(&chunk, Wanted::ALL, &mut batch).unwrap();
        for row in 0..batch.rows {
            let cell = |(at, column): (usize, &hprof_query::tables::Column)| {
                let value = match batch.cell(row, at) {
                    Cell::Null => Value::Null,
                    Cell::Integer(id) if column.kind == Kind::Id => {
                        json!(format!("{:#x}", id.cast_unsigned()))
                    }
                    Cell::Integer(value) if column.kind == Kind::Boolean => json!(value != 0),
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

/// The rows of a command's answer.
fn told(dump: &Dump, arguments: &[&str]) -> Vec<Value> {
    let output = dump.run(&[arguments, &["--format", "json"]].concat());
    assert_ne!(output.status.code(), Some(2), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["rows"].as_array().unwrap().clone()
}

/// Some columns of rows: of a table by name, of an answer by what stands behind `=`, a JSON pointer without its first slash.
fn part(rows: &[Value], columns: &[&str], is_table: bool) -> Vec<Vec<Value>> {
    let pointer = |column: &&str| {
        let (table, answer) = column.split_once('=').unwrap_or((*column, *column));
        format!("/{}", if is_table { table } else { answer })
    };
    let cells = |row: &Value| -> Vec<Value> {
        columns.iter().map(|column| row.pointer(&pointer(column)).cloned().unwrap_or_default()).collect()
    };
    rows.iter().map(cells).collect()
}

#[track_caller]
fn same(name: &str, table: &dyn Table, answer: &[Value], columns: &[&str]) -> usize {
    let rows = rows(table);
    let (found, expected) = (part(&rows, columns, true), part(answer, columns, false));
    assert_eq!(found.len(), expected.len(), "{name}: rows of {}", table.definition().name);
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected, "{name}: {} {columns:?}", table.definition().name);
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
        let threads = same(
            name,
            tables.find("threads").unwrap(),
            &answer,
            &[
                "id=object",
                "name",
                "state",
                "waiting",
                "class",
                "thread_id=thread",
                "is_daemon=daemon",
                "priority",
                "thread_group=group",
                "is_virtual=virtual",
                "is_out_of_memory=out_of_memory",
                "blocker=blocker",
                "blocker_class",
                "carrier=carrier",
                "shallow_bytes",
                "retained_bytes",
            ],
        );
        assert!(threads > 0, "{name}");
        let (mut frames, mut locals) = (Vec::new(), Vec::new());
        for thread in &answer {
            let id = &thread["object"];
            let with = |local: &Value, frame: Value| {
                let mut local = local.clone();
                (local["thread"], local["frame"]) = (id.clone(), frame);
                local
            };
            for (number, frame) in thread["frames"].as_array().unwrap().iter().enumerate() {
                let mut row = frame.clone();
                (row["thread"], row["number"]) = (id.clone(), json!(number));
                locals.extend(
                    frame["locals"].as_array().unwrap().iter().map(|local| with(local, json!(number))),
                );
                frames.push(row);
            }
            locals.extend(thread["locals"].as_array().unwrap().iter().map(|local| with(local, Value::Null)));
        }
        let columns = ["thread=thread", "number", "class", "method", "source", "line"];
        same(name, tables.find("frames").unwrap(), &frames, &columns);
        let columns = ["thread=thread", "frame", "object=object", "class", "kind", "label", "retained_bytes"];
        same(name, tables.find("locals").unwrap(), &locals, &columns);
        let of_threads = rows(tables.find("threads").unwrap());
        let sum = |column: &str| of_threads.iter().map(|row| row[column].as_u64().unwrap()).sum::<u64>();
        assert_eq!((sum("frames"), sum("locals")), (frames.len() as u64, locals.len() as u64), "{name}");
    });
}

#[test]
fn loaders_suspects_waste_and_places() {
    each(&portion::samples(&HEAPS), |name, dump, tables| {
        let mut loaders = told(dump, &["loaders", "--top", "0"]);
        for loader in &mut loaders {
            for (column, is) in [("class", Value::Null), ("parent", json!("0x0"))] {
                if loader[column] == "<boot loader>" {
                    loader[column] = is;
                }
            }
        }
        same(
            name,
            tables.find("loaders").unwrap(),
            &loaders,
            &[
                "id=object",
                "class",
                "label",
                "parent=parent",
                "classes",
                "instances",
                "shallow_bytes",
                "retained_bytes",
                "retained_objects",
                "loader_group=group",
            ],
        );
        let mut suspects = told(dump, &["leaks"]);
        for (at, suspect) in suspects.iter_mut().enumerate() {
            suspect["rank"] = json!(at + 1);
        }
        same(
            name,
            tables.find("suspects").unwrap(),
            &suspects,
            &[
                "rank",
                "object=object",
                "class",
                "kind",
                "verdict",
                "what",
                "label",
                "objects",
                "shallow_bytes",
                "retained_bytes",
                "percent",
                "accumulation_point_object=accumulation_point/object",
                "accumulation_point_class=accumulation_point/class",
                "accumulated_bytes",
                "reason=reason/how",
                "owner_class=owner/class",
                "owner_field=owner/field",
                "is_owner_static=owner/static",
                "is_oom_thread=oom_thread",
                "content_class=contents/0/class",
                "allocated_class",
            ],
        );
        let mut waste = Vec::new();
        for kind in told(dump, &["waste", "--top", "0"]) {
            for field in kind["fields"].as_array().unwrap() {
                let mut row = field.clone();
                row["kind"] = kind.clone();
                waste.push(row);
            }
            if kind["fields"].as_array().unwrap().is_empty() {
                let (count, bytes) = (&kind["count"], &kind["wasted_bytes"]);
                waste.push(json!({ "kind": kind, "static": false, "count": count, "wasted_bytes": bytes }));
            }
        }
        same(
            name,
            tables.find("waste").unwrap(),
            &waste,
            &[
                "kind=kind/kind",
                "field",
                "is_static=static",
                "objects=count",
                "wasted_bytes",
                "kind_objects=kind/count",
                "kind_wasted_bytes=kind/wasted_bytes",
                "kind_added_bytes=kind/added_bytes",
            ],
        );
        let context = tables.context();
        let places = Places::new(context.heap, context.graph, context.bytes).unwrap();
        let places = Aligned::with_all_keys(&[places]);
        let table = rows(tables.find("places").unwrap());
        assert_eq!(table.len(), places.places().count(), "{name}");
        for (place, row) in places.places().zip(&table) {
            let (text, figures) = (places.text(place), places.figures(0, place));
            let keys = row["keys"].as_str().map(|keys| serde_json::from_str::<Vec<String>>(keys).unwrap());
            let parts: Vec<&str> = row["path"].as_str().unwrap().split("{*}").collect();
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
        same(
            name,
            tables.find("sites").unwrap(),
            &sites,
            &[
                "rank",
                "class",
                "trace",
                "live_bytes",
                "live_instances",
                "allocated_bytes",
                "allocated_instances",
                "method",
            ],
        );
        let samples = told(dump, &["cpu", "--top", "0"]);
        let columns = ["rank", "trace", "samples", "self_percent", "accumulated_percent", "method"];
        same(name, tables.find("samples").unwrap(), &samples, &columns);
        let mut frames = Vec::new();
        for trace in told(dump, &["traces", "--top", "0"]) {
            let of_trace = trace["frames"].as_array().unwrap();
            for (number, frame) in of_trace.iter().enumerate() {
                let mut row = frame.clone();
                (row["trace"], row["number"]) = (trace["trace"].clone(), json!(number));
                frames.push(row);
            }
            if of_trace.is_empty() {
                frames.push(json!({ "trace": trace["trace"] }));
            }
        }
        assert!(!frames.is_empty(), "{name}");
        let columns = ["trace", "number", "class", "method", "source", "line"];
        same(name, tables.find("traces").unwrap(), &frames, &columns);
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
    assert!(row["damages"].as_u64() > Some(0), "{row}");
    each(&HEAPS, |name, dump, tables| {
        let mut info = told(dump, &["info"]);
        info[0]["problem_count"] = json!(info[0]["problems"].as_array().unwrap().len());
        let roots = info[0]["gc_roots"].as_object().unwrap().values().map(|count| count.as_u64().unwrap());
        info[0]["roots"] = json!(roots.sum::<u64>());
        let table = tables.find("dumps").unwrap();
        same(
            name,
            table,
            &info,
            &[
                "format",
                "id_bytes",
                "created",
                "file_bytes",
                "dump_bytes",
                "compression",
                "jvm=jvm/name",
                "roots",
                "objects=objects/total",
                "instances=objects/instances",
                "object_arrays=objects/object_arrays",
                "primitive_arrays=objects/primitive_arrays",
                "class_objects=objects/classes",
                "shallow_bytes",
                "reachable_objects=reachable/objects",
                "reachable_bytes=reachable/shallow_bytes",
                "reference_bytes=layout/reference_bytes",
                "header_bytes=layout/header_bytes",
                "alignment_bytes=layout/alignment_bytes",
                "problems=problem_count",
            ],
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
