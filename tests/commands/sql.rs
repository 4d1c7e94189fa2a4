//! `sql` as a process: what is refused or bounded, exit codes, places of errors, formats, and the shell.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::kit::process::{Place, stderr};
use crate::kit::samples;
use crate::kit::terminal;
use crate::kit::texts::sample_path;

fn place() -> Place {
    let dump = std::fs::canonicalize(sample_path("jdk/jdk17.hprof.zst")).unwrap();
    Place::sharing(samples::indexes(&dump), &dump)
}

#[test]
fn what_is_not_reading_is_refused() {
    let place = place();
    for query in [
        "ATTACH '/tmp/evil.db' AS x",
        "ATTACH ':memory:' AS x",
        "DETACH main",
        "CREATE TABLE x(a)",
        "CREATE TEMP TABLE x(a)",
        "CREATE VIEW x AS SELECT 1",
        "CREATE VIRTUAL TABLE x USING dump0(fixed 0)",
        "CREATE VIRTUAL TABLE x USING fts5(a)",
        "DROP TABLE objects",
        "DELETE FROM objects",
        "UPDATE objects SET object = 1",
        "INSERT INTO objects VALUES (1)",
        "PRAGMA writable_schema=1",
        "PRAGMA temp_store_directory='/tmp'",
        "PRAGMA hard_heap_limit=1",
        "VACUUM",
        "VACUUM INTO '/tmp/evil.db'",
        "BEGIN",
        "ANALYZE",
        "REINDEX",
        "SELECT load_extension('evil')",
        "SELECT writefile('/tmp/evil', 'x')",
        "SELECT readfile('/etc/passwd')",
        "SELECT fts3_tokenizer('a')",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE objects",
        "",
        " -- nothing",
        "SELECT ?1",
        "SELECT :a",
        "SELECT '\u{0}'",
    ] {
        let output = if query.contains('\0') {
            let file = place.path("query.sql");
            std::fs::write(&file, query).unwrap();
            place.run(&["sql", "--file", file.to_str().unwrap()])
        } else {
            place.run(&["sql", query])
        };
        assert_eq!(output.status.code(), Some(2), "{query}: {}", stderr(&output));
        assert!(stderr(&output).contains("error: "), "{query}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{query}");
    }
    assert!(!std::path::Path::new("/tmp/evil.db").exists());
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn what_takes_too_much_is_bounded() {
    let place = place();
    place.answer(&["sql", "SELECT 1"]);
    let deep = format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000));
    let sums = format!("SELECT {}1", "1+".repeat(5000));
    let unions = vec!["SELECT 1"; 2000].join(" UNION ALL ");
    let like = format!("SELECT 'a' LIKE '{}'", "%a".repeat(4000));
    let glob = format!("SELECT 'a' GLOB '{}'", "*a".repeat(4000));
    for query in [
        "SELECT zeroblob(1e12)",
        "SELECT zeroblob(1000000000000)",
        "SELECT length(printf('%.*c', 1000000000, 'x'))",
        "SELECT hex(zeroblob(60000000))",
        "WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT count(*) FROM a",
        "WITH RECURSIVE a(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM a) SELECT max(length(x)) FROM a",
        "SELECT count(*) FROM objects a, objects b, objects c, objects d",
        "SELECT instr(hex(zeroblob(15000000)), hex(zeroblob(7000000)) || 'b')",
        &deep,
        &sums,
        &unions,
        &like,
        &glob,
    ] {
        let start = Instant::now();
        let output = place.run(&["sql", query, "--time-limit", "2s"]);
        let text: String = query.chars().take(80).collect();
        assert_eq!(output.status.code(), Some(2), "{text}: {}", stderr(&output));
        assert!(start.elapsed() < Duration::from_secs(60), "{text}: {:?}", start.elapsed());
        assert!(!stderr(&output).contains("panicked"), "{text}: {}", stderr(&output));
    }
    // Many patterns on a long text.
    let query = format!("SELECT printf('%.*c', 100000, 'a') LIKE '{}b' AS l", "%a".repeat(400));
    assert!(place.answer(&["sql", &query, "--format", "csv"]).ends_with("0\n"));
    // A path of many fields.
    let path = "replace(hex(zeroblob(400000)), '00', 'a.') || 'a'";
    let query = format!("SELECT value(object, {path}) IS NULL AS n FROM objects LIMIT 1");
    assert!(place.answer(&["sql", &query, "--format", "csv"]).ends_with("1\n"));
}

#[test]
fn names_may_be_anything() {
    let place = place();
    for name in [
        "a\"\"b",
        "'; DROP TABLE objects; --",
        "\u{202e}x",
        "sqlite_master2",
        "a.b.c",
        "old.x",
        "[",
        "\u{1b}[31m",
    ] {
        let output = place.run(&["sql", &format!("SELECT * FROM \"{name}\"")]);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{name}: {}", stderr(&output));
        assert!(!stderr(&output).contains(['\u{202e}', '\u{1b}']), "{name}");
    }
}

#[test]
fn errors_have_a_place_a_hint_and_a_code() {
    let place = place();
    for (query, code, says) in [
        ("SELECT *\nFORM objects", 2, "near \"FORM\": syntax error"),
        ("SELECT clas FROM objects", 1, "did you mean class"),
        ("SELECT * FROM object", 1, "did you mean objects"),
        ("SELECT * FROM \"java.lang.Sting\"", 1, "\"java.lang.String\""),
        ("SELECT * FROM com.acme.Session", 2, "double quotes"),
        ("SELECT nosuch(1)", 2, "no such function"),
        ("SELECT 1 WHERE 0", 1, "no rows"),
        ("SELECT text('x')", 2, "expected an object ID: a number"),
        ("SELECT text(1, 'old')", 2, "must be the name of an attached dump"),
        ("SELECT count(*) FROM objects a, objects b, objects c", 2, "--time-limit"),
    ] {
        let output = place.run(&["sql", query, "--time-limit", "1s"]);
        assert_eq!(output.status.code(), Some(code), "{query}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{query}: {}", stderr(&output));
    }
    let said = stderr(&place.run(&["sql", "SELECT object,\n\tnone FROM objects"]));
    assert!(said.contains("note:  none FROM objects\nhprof-cli: note:  ^\n"), "{said}");
}

#[test]
fn answers_are_shown_by_the_types_of_columns() {
    let place = place();
    let query = "SELECT object, is_reachable, 1.5 AS r, NULL AS n, x'0aff' AS b, 'a,b' AS t, 1 AS t, 2 AS t, object + 0 > 0 AS p
                 FROM (SELECT * FROM objects) WHERE class = 'java.lang.String' AND is_reachable ORDER BY object LIMIT 1";
    let json: serde_json::Value =
        serde_json::from_str(&place.answer(&["sql", query, "--format", "json"])).unwrap();
    let row = json["rows"][0].as_object().unwrap();
    let names: Vec<&str> = row.keys().map(String::as_str).collect();
    assert_eq!(names, ["object", "is_reachable", "r", "n", "b", "t", "t_2", "t_3", "p"]);
    let id = row["object"].as_str().unwrap();
    assert!(id.starts_with("0x"));
    assert_eq!(
        (&row["is_reachable"], &row["r"], &row["n"]),
        (&true.into(), &1.5.into(), &serde_json::Value::Null)
    );
    assert_eq!((&row["b"], &row["p"]), (&"0aff".into(), &1.into()));
    let csv = place.answer(&["sql", query, "--format", "csv"]);
    assert_eq!(csv, format!("object,is_reachable,r,n,b,t,t_2,t_3,p\n{id},true,1.5,,0aff,\"a,b\",1,2,1\n"));
    let table = place.answer(&["sql", query]);
    assert!(table.contains(id) && table.contains("yes"), "{table}");
}

#[test]
fn queries_come_from_files_and_from_stdin() {
    let place = place();
    let file = place.path("query.sql");
    std::fs::write(&file, "SELECT 41 + 1 AS a -- it\n").unwrap();
    assert_eq!(place.answer(&["sql", "--file", file.to_str().unwrap(), "--format", "csv"]), "a\n42\n");
    let mut child =
        place.command(&["sql", "--format", "csv"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"SELECT 43 AS a;").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"a\n43\n");
}

#[test]
fn the_shell_answers_on_a_terminal() {
    let place = place();
    place.answer(&["sql", "SELECT 1"]);
    let (mut master, slave) = terminal::open(80, 24);
    let mut command = place.command(&["sql"]);
    command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
    command.env("TERM", "xterm").env("XDG_STATE_HOME", place.path("state"));
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut input = master.try_clone().unwrap();
    let typing = std::thread::spawn(move || {
        for line in [
            "SELECT 40 +\r",
            "2 AS answer;\r",
            ".tables\r",
            ".schema threads\r",
            ".timing off\r",
            "SELECT * FROM nowhere;\r",
            "SELECT count(*) AS n FROM \"java.lang.Thr\t;\r",
            ".quit\r",
        ] {
            std::thread::sleep(Duration::from_millis(700));
            input.write_all(line.as_bytes()).unwrap();
        }
    });
    let (mut all, mut bytes) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = master.read(&mut bytes) {
        all.extend_from_slice(&bytes[..length]);
    }
    typing.join().unwrap();
    assert!(child.wait().unwrap().success());
    let said = String::from_utf8_lossy(&all);
    for expected in ["answer", "42", "objects", "no table or class named nowhere", "state"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let history = std::fs::read_to_string(place.path("state/hprof-cli/sql_history")).unwrap();
    assert!(history.contains("2 AS answer"), "{history}");
}
