//! `export`: what lies where and when, and that files say what the tables say, read by other readers than ours.

// Skipped tests are reported.
#![allow(clippy::print_stderr)]

use crate::kit::dump::whole_dump;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
#[cfg(feature = "parquet")]
use std::process::Command;
use std::process::Output;

use hprof_cli::{Heap, Options, Quiet};
use hprof_query::tables::{About, Cell, ColumnSet, ColumnType, Table, TableQuery, Tables};
use hprof_writer::{HeapModel, Jdk, Layout, Root, Type, Value, damage};
use serde_json::Value as Json;

use crate::kit::process::{Folder, sample};

/// A name that leads elsewhere, and that terminals, engines and shells would misread.
const EVIL: &str = "../../evil\u{1b}[2J\u{202e}'\"; DROP TABLE x=%2F,\n";

/// Text of a String in [`tiny`].
const SECRET: &str = "hunter2 is secret";

impl Folder {
    fn sample(&self, name: &str) -> String {
        self.write(&format!("{}.hprof", name.rsplit('/').next().unwrap()), sample(name))
    }

    /// Exports to the directory `to`, and returns the exit code and what was said.
    fn export(&self, to: &str, format: &str, arguments: &[&str]) -> (i32, Output) {
        let to = self.text(to);
        let output = self.run(&[&["export", "--output-dir", &to, "--format", format], arguments].concat());
        (output.status.code().unwrap(), output)
    }

    /// Returns all files below a directory with their contents.
    fn files(&self, dir: &str) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut dirs = vec![self.path(dir)];
        while let Some(next) = dirs.pop() {
            for entry in fs::read_dir(&next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    dirs.push(path);
                } else {
                    let name = path.strip_prefix(self.path(dir)).unwrap().to_str().unwrap().to_owned();
                    files.insert(name, fs::read(&path).unwrap());
                }
            }
        }
        files
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The formats that this program has.
fn formats() -> &'static [&'static str] {
    if cfg!(feature = "parquet") { &["csv", "ndjson", "parquet"] } else { &["csv", "ndjson"] }
}

/// Ten objects of a class.
fn tiny(class: &str) -> Vec<u8> {
    let mut heap = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut heap);
    let fields = [(class, Type::Object), ("count", Type::Int), ("ratio", Type::Double)];
    let session = heap.class(class, Some(jdk.object), &fields);
    for reference in 1..=10 {
        let text = jdk.string(&mut heap, SECRET);
        let ratio = [f64::NAN, 0.1, f64::NEG_INFINITY, -0.0][reference as usize % 4];
        let one = heap.instance(session, &[Value::Object(text.0), Value::Int(-1), Value::Double(ratio)]);
        heap.root(one, Root::JniGlobal { reference });
    }
    heap.write(&hprof_writer::Options::default()).bytes().to_vec()
}

#[test]
fn a_partition_is_whole_replaced_and_the_same_bytes_again() {
    let place = Folder::new();
    let dump = place.sample("jdk/jdk11");
    for format in formats() {
        let (code, output) = place.export(format, format, &[&dump, "--report", "json", "--label", "a=b=c"]);
        assert_eq!(code, 0, "{}", said(&output));
        let answer: Json = serde_json::from_slice(&output.stdout).unwrap();
        let files = place.files(format);
        assert_eq!(files["_SUCCESS"], b"");
        let rows = answer["rows"].as_array().unwrap();
        let mut expected = 1;
        for row in rows {
            let (table, parts) = (row["table"].as_str().unwrap(), row["files"].as_u64().unwrap());
            let name = |part| format!("{table}/dump=jdk11/part-{part}.{format}");
            let bytes: u64 = (0..parts).map(|part| files[&name(part)].len() as u64).sum();
            assert_eq!((bytes, row["dump"].as_str()), (row["file_bytes"].as_u64().unwrap(), Some("jdk11")));
            expected += parts;
        }
        // Nothing else exists, not even hidden files.
        assert_eq!(files.len() as u64, expected);
        let stale = place.path(&format!("{format}/objects/dump=jdk11/part-9.{format}"));
        fs::write(&stale, "stale").unwrap();
        let (code, _) = place.export(format, format, &[&dump, "--threads", "1", "--label", "a=b=c"]);
        assert_eq!(code, 0);
        assert!(place.files(format) == files, "{format}: not the same bytes");
    }
}

#[test]
fn rows_are_as_many_as_info_says() {
    let place = Folder::new();
    let dump = place.sample("jdk/jdk11");
    let info: Json = serde_json::from_slice(&place.run(&["info", &dump, "--format", "json"]).stdout).unwrap();
    let (_, output) = place.export("out", "csv", &[&dump, "--report", "json", "--tables", "objects"]);
    let answer: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["rows"][0]["rows"], info["rows"][0]["objects"]["total"]);
    let text = fs::read_to_string(place.path("out/objects/dump=jdk11/part-0.csv")).unwrap();
    assert_eq!(text.lines().count() as u64 - 1, answer["rows"][0]["rows"].as_u64().unwrap());
}

/// A value of a table, as CSV and NDJSON have to give it back.
#[derive(Debug, PartialEq)]
enum Read {
    Null,
    Integer(i64),
    Real(f64),
    Boolean(bool),
    Text(String),
}

fn cell(cell: Cell<'_>, kind: ColumnType) -> Read {
    match cell {
        Cell::Null => Read::Null,
        Cell::Integer(value) if kind == ColumnType::Boolean => Read::Boolean(value != 0),
        Cell::Integer(value) => Read::Integer(value),
        Cell::Real(value) => Read::Real(value),
        Cell::Text(text) => Read::Text(text.to_owned()),
    }
}

fn of_csv(text: &str, is_quoted: bool, kind: ColumnType) -> Read {
    match kind {
        _ if text.is_empty() && !is_quoted => Read::Null,
        ColumnType::Integer | ColumnType::Id => Read::Integer(text.parse().unwrap()),
        ColumnType::Real => Read::Real(text.parse().unwrap()),
        ColumnType::Boolean => Read::Boolean(text.parse().unwrap()),
        ColumnType::Text | ColumnType::Name => Read::Text(text.to_owned()),
    }
}

fn of_json(value: &Json, kind: ColumnType) -> Read {
    match (value, kind) {
        (Json::Null, _) => Read::Null,
        (Json::Number(number), ColumnType::Real) => Read::Real(number.as_f64().unwrap()),
        (Json::Number(number), _) => Read::Integer(number.as_i64().unwrap()),
        (Json::Bool(value), _) => Read::Boolean(*value),
        (Json::String(text), ColumnType::Real) => Read::Real(text.parse().unwrap()),
        (Json::String(text), _) => Read::Text(text.clone()),
        _ => panic!("{value}"),
    }
}

/// Parses RFC 4180 by hand: the csv crate does not distinguish quoted cells.
fn csv_rows(text: &str) -> Vec<Vec<(String, bool)>> {
    let (mut rows, mut row, mut cell, mut quoted, mut inside) =
        (Vec::new(), Vec::new(), String::new(), false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if inside && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => (inside, quoted) = (!inside, true),
            ',' | '\n' if !inside => {
                row.push((std::mem::take(&mut cell), std::mem::take(&mut quoted)));
                if c == '\n' {
                    rows.push(std::mem::take(&mut row));
                }
            }
            c => cell.push(c),
        }
    }
    rows
}

fn expected(table: &dyn Table) -> Vec<Vec<Read>> {
    let columns = &table.definition().columns;
    let (mut rows, mut batch) = (Vec::new(), table.batch(ColumnSet::ALL));
    for chunk in table.chunks(&TableQuery::All).unwrap() {
        batch.clear();
        table.read(&chunk, ColumnSet::ALL, &mut batch).unwrap();
        let row = |row| {
            columns.iter().enumerate().map(|(at, column)| cell(batch.cell(row, at), column.kind)).collect()
        };
        rows.extend((0..batch.rows).map(row));
    }
    rows
}

/// Equal, where what is not a number equals itself.
fn assert_same(read: &[Vec<Read>], expected: &[Vec<Read>], what: &str) {
    assert_eq!(read.len(), expected.len(), "{what}");
    for (read, expected) in read.iter().zip(expected) {
        assert_eq!(format!("{read:?}"), format!("{expected:?}"), "{what}");
    }
}

#[test]
fn csv_and_ndjson_give_back_every_row_of_every_table() {
    let place = Folder::new();
    let dump = place.sample("jdk/jdk11");
    let class = "java.lang.Thread";
    // The key of tables that are not exported: zeros.
    let key = place.text("zeros.key");
    fs::write(&key, [0; 32]).unwrap();
    for (tables, name) in [(Vec::new(), "all"), (vec!["--tables", class], "class")] {
        for format in ["csv", "ndjson"] {
            let arguments =
                [&[&*dump, "--strings", "text", "--name", "d", "--label", "k=v,\"w\""], &*tables].concat();
            let arguments = [&arguments[..], &["--hash-key", &key]].concat();
            let (code, output) = place.export(&format!("{name}-{format}"), format, &arguments);
            assert_eq!(code, 0, "{}", said(&output));
        }
    }
    let options = Options { index_dir: Some(place.path("index")), ..Options::default() };
    let (heap, graph) = Heap::open_graph(Path::new(&dump), &options, &Quiet).unwrap();
    let about = About {
        name: "d".to_owned(),
        labels: vec![("k".to_owned(), "v,\"w\"".to_owned())],
        ..About::default()
    };
    let tables = Tables::new(&whole_dump(&heap, &graph), about);
    let of_class = tables.of_class(class).unwrap();
    let all = tables.all().map(|table| ("all", table as &dyn Table)).chain([("class", &*of_class)]);
    for (name, table) in all {
        let definition = table.definition();
        let expected = expected(table);
        let read = |format: &str| {
            let path = format!("{name}-{format}/{}/dump=d/part-0.{format}", definition.name);
            fs::read_to_string(place.path(&path)).unwrap()
        };
        let mut rows = csv_rows(&read("csv"));
        let titles: Vec<String> = rows.remove(0).into_iter().map(|(title, _)| title).collect();
        assert!(
            titles.iter().eq(definition.columns.iter().map(|column| &*column.name)),
            "{}",
            definition.name
        );
        let rows: Vec<Vec<Read>> = rows
            .iter()
            .map(|row| {
                row.iter()
                    .zip(&definition.columns)
                    .map(|((text, quoted), column)| of_csv(text, *quoted, column.kind))
                    .collect()
            })
            .collect();
        assert_same(&rows, &expected, &definition.name);
        let rows: Vec<Vec<Read>> = read("ndjson")
            .lines()
            .map(|line| {
                let row: Json = serde_json::from_str(line).unwrap();
                definition.columns.iter().map(|column| of_json(&row[&*column.name], column.kind)).collect()
            })
            .collect();
        assert_same(&rows, &expected, &definition.name);
    }
}

#[test]
fn secrets_are_written_only_when_they_are_asked_for() {
    let place = Folder::new();
    let dump = place.write("heap.hprof", tiny("com.acme.Session"));
    for (strings, has_text, has_hash) in [("none", false, false), ("hash", false, true), ("text", true, true)]
    {
        assert_eq!(place.export(strings, "ndjson", &[&dump, "--strings", strings]).0, 0);
        let files = place.files(strings);
        let text = std::str::from_utf8(&files["strings/dump=heap/part-0.ndjson"]).unwrap();
        let rows: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows.iter().any(|row| !row["text"].is_null()), has_text);
        assert_eq!(rows.iter().any(|row| !row["hash"].is_null()), has_hash);
        // Not in any table.
        let tells = files.values().any(|file| String::from_utf8_lossy(file).contains(SECRET));
        assert_eq!(tells, has_text, "{strings}");
    }
}

/// Hashes of texts, in order.
fn hashes(place: &Folder, to: &str) -> Vec<i64> {
    let files = place.files(to);
    let text = std::str::from_utf8(&files["strings/dump=heap/part-0.ndjson"]).unwrap();
    text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()["hash"].as_i64().unwrap()).collect()
}

#[test]
fn only_who_has_the_key_can_confirm_a_text() {
    let place = Folder::new();
    let dump = place.write("heap.hprof", tiny("com.acme.Session"));
    let strings = ["--tables", "strings"];
    // The first export makes a key, the second uses it.
    for to in ["one", "two"] {
        assert_eq!(place.export(to, "ndjson", &[&[dump.as_str()], &strings[..]].concat()).0, 0);
    }
    let own = place.path("data/hprof-cli/export.key");
    assert_eq!(fs::read(&own).unwrap().len(), 32);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let first = hashes(&place, "one");
    assert!(!first.is_empty() && first == hashes(&place, "two"));
    // Another key, also one that others have, gives other hashes.
    let (other, zeros) = (place.text("other.key"), place.write("zeros.key", [0; 32]));
    for (to, key) in [("three", &other), ("four", &zeros), ("five", &other)] {
        let arguments = [&[dump.as_str(), "--hash-key", key], &strings[..]].concat();
        assert_eq!(place.export(to, "ndjson", &arguments).0, 0);
    }
    let [third, fourth, fifth] = ["three", "four", "five"].map(|to| hashes(&place, to));
    assert!(third != first && fourth != first && third != fourth && third == fifth);
    let unkeyed = xxhash_rust::xxh3::xxh3_64(SECRET.as_bytes()).cast_signed();
    assert!([&first, &third, &fourth].iter().all(|hashes| !hashes.contains(&unkeyed)));
    // Never in the lake, through no link, and not where there are no hashes.
    let (code, output) = place.export("six", "ndjson", &[&dump, "--hash-key", &place.text("six/key")]);
    assert!(code == 2 && said(&output).contains("--hash-key"), "{}", said(&output));
    assert!(!place.path("six/key").exists());
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(place.path("nowhere"), place.path("link.key")).unwrap();
        let (code, output) = place.export("seven", "ndjson", &[&dump, "--hash-key", &place.text("link.key")]);
        assert!(code == 2 && said(&output).contains("symbolic link"), "{}", said(&output));
        assert!(!place.path("nowhere").exists());
    }
    fs::remove_file(&own).unwrap();
    for options in [&["--strings", "none"][..], &["--no-values"], &["--tables", "classes"]] {
        assert_eq!(place.export("eight", "ndjson", &[&[dump.as_str()], options].concat()).0, 0);
        assert!(!own.exists(), "{options:?}");
    }
}

#[test]
fn a_broken_dump_does_not_stop_the_others() {
    let place = Folder::new();
    let good = place.write("a.hprof", tiny("com.acme.Session"));
    let broken = place.write("broken.hprof", b"this is no dump");
    let also_good = place.write("b.hprof", tiny("com.acme.Session"));
    let (code, _) = place.export("out", "csv", &[&good]);
    assert_eq!((code, place.path("out/_SUCCESS").exists()), (0, true));
    let (code, output) = place.export("out", "csv", &[&good, &broken, &also_good, "--report", "json"]);
    assert_eq!(code, 2, "{}", said(&output));
    assert!(
        said(&output).contains("broken.hprof") && said(&output).contains("1 of 3 dumps"),
        "{}",
        said(&output)
    );
    let answer: Json = serde_json::from_slice(&output.stdout).unwrap();
    let errors: Vec<bool> =
        answer["dumps"].as_array().unwrap().iter().map(|dump| dump["error"].is_string()).collect();
    assert_eq!(errors, [false, true, false]);
    let files = place.files("out");
    assert!(!files.contains_key("_SUCCESS"));
    assert!(
        files.contains_key("objects/dump=a/part-0.csv") && files.contains_key("objects/dump=b/part-0.csv")
    );
    assert!(!files.keys().any(|name| name.contains("broken")));
    // Alone it is an error, and of a damaged one there are tables.
    let (code, output) = place.export("alone", "csv", &[&broken]);
    assert_eq!((code, output.stdout.len()), (2, 0));
    let whole = tiny("com.acme.Session");
    let cut = place.write("cut.hprof", damage::cut(&whole, whole.len() - 20));
    let (code, output) = place.export("cut", "csv", &[&cut]);
    assert_eq!((code, place.path("cut/_SUCCESS").exists()), (3, true), "{}", said(&output));
}

#[test]
fn names_lead_nowhere_else() {
    let place = Folder::new();
    let dump = place.write("x.hprof", tiny(EVIL));
    for format in formats() {
        let label = format!("k={EVIL}");
        let to = format!("deep/deeper/{format}");
        let (code, output) = place.export(&to, format, &[&dump, "--name", EVIL, "--label", &label]);
        assert_eq!(code, 0, "{}", said(&output));
        assert!(!said(&output).contains('\u{1b}') && !output.stdout.contains(&0x1b));
        let name = "dump=%2E.%2F..%2Fevil%1B%5B2J%E2%80%AE%27%22%3B%20DROP%20TABLE%20x%3D%252F%2C%0A";
        let objects = place.path(&format!("{to}/objects/{name}/part-0.{format}"));
        assert!(objects.is_file(), "{:?}", place.files(&to).keys());
    }
    let (code, output) = place.export("wrong", "csv", &[&dump, "--tables", "objcts"]);
    assert!(code == 2 && said(&output).contains("objects"), "{}", said(&output));
    assert_eq!(place.export("wrong", "csv", &[&dump, "--label", "a"]).0, 2);
    assert_eq!(place.export("wrong", "csv", &[&dump, "--label", "a=1", "--label", "a=2"]).0, 2);
}

#[test]
fn dumps_of_one_name_do_not_replace_one_another() {
    let place = Folder::new();
    fs::create_dir(place.path("other")).unwrap();
    let (one, other) = (
        place.write("heap.hprof", tiny("com.acme.Session")),
        place.write("other/heap.hprof", tiny("com.acme.Session")),
    );
    assert_eq!(place.export("out", "csv", &[&one, &other]).0, 0);
    let files = place.files("out");
    assert!(
        ["heap", "heap-2"].iter().all(|name| files.contains_key(&format!("objects/dump={name}/part-0.csv")))
    );
    assert_eq!(place.export("out", "csv", &[&one, &other, "--name", "x"]).0, 2);
}

#[cfg(not(feature = "parquet"))]
#[test]
fn without_parquet_it_says_how_to_get_it() {
    let place = Folder::new();
    let dump = place.write("heap.hprof", tiny("com.acme.Session"));
    let to = place.text("out");
    let output = place.run(&["export", &dump, "--output-dir", &to, "--format", "parquet"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("--features parquet"), "{}", said(&output));
    assert!(!place.path("out").exists());
    // The default format is one that it can write.
    let output = place.run(&["export", &dump, "--output-dir", &to]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(place.path("out/classes/dump=heap/part-0.csv").exists());
}

/// The same tables as NDJSON, and read by pyarrow or DuckDB, which share no code with the writer.
#[cfg(feature = "parquet")]
#[test]
fn others_read_the_same_from_parquet_as_from_ndjson() {
    let place = Folder::new();
    let dumps = [place.sample("jdk/jdk11"), place.write("tiny.hprof", tiny("com.acme.Session"))];
    for format in ["parquet", "ndjson"] {
        let arguments = [dumps[0].as_str(), &dumps[1], "--strings", "text"];
        let (code, output) = place.export(format, format, &arguments);
        assert_eq!(code, 0, "{}", said(&output));
        let (code, output) = place.export(format, format, &[&dumps[0], "--tables", "java.lang.Thread"]);
        assert_eq!(code, 0, "{}", said(&output));
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/commands/read_parquet.py");
    let output =
        Command::new("python3").arg(script).args([place.path("parquet"), place.path("ndjson")]).output();
    let not_run = |why: &str| eprintln!("NOT RUN: others_read_the_same_from_parquet_as_from_ndjson: {why}");
    match output {
        Err(error) => not_run(&format!("python3: {error}")),
        Ok(output) if output.status.code() == Some(77) => {
            not_run("neither pyarrow nor duckdb is installed for python3")
        }
        Ok(output) => {
            assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), said(&output))
        }
    }
}

/// Objects of several traces, and no ALLOC SITES: sites are counted over the objects.
fn traced() -> Vec<u8> {
    let mut heap = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut heap);
    let traces: Vec<u32> = (0..50).map(|_| heap.trace(1, &[])).collect();
    for trace in traces.iter().cycle().take(20_000) {
        let one = heap.traced(*trace).instance(jdk.object, &[]);
        heap.root(one, Root::StickyClass);
    }
    heap.write(&hprof_writer::Options::default()).bytes().to_vec()
}

/// Tables of a recording are made by all threads, and the threads that write wait for one another.
#[test]
fn sites_are_counted_while_others_wait() {
    let place = Folder::new();
    let dumps = [place.write("traced.hprof", traced()), place.sample("agent/all")];
    for threads in ["1", "2", "5"] {
        let (code, output) = place.export("out", "csv", &[&dumps[0], &dumps[1], "--threads", threads]);
        assert_eq!(code, 0, "{}", said(&output));
        let sites = fs::read_to_string(place.path("out/sites/dump=all/part-0.csv")).unwrap();
        assert!(sites.lines().count() > 100, "{sites}");
        let sites = fs::read_to_string(place.path("out/sites/dump=traced/part-0.csv")).unwrap();
        let counted =
            |line: &&str| line.contains(",java.lang.Object,") && line.contains(",6400,400,6400,400,objects,");
        assert_eq!(sites.lines().filter(counted).count(), 50, "{sites}");
    }
}
