//! Queries that keep something for each row, with little memory: the same answer as with much, within the budget.

use std::process::{Command, Output};

use hprof_writer::{HeapModel, Jdk, Layout, ObjectId, Options, Root, Type, Value};
use serde_json::Value as Json;

use crate::kit::dump::Dump;
use crate::kit::process::stderr;

/// Number of objects. What a query keeps of each would exceed [`DATA_KIB`] if it were not in files.
const OBJECTS: u32 = 700_000;
/// Memory budget of a run, and the limit of the kernel: what is taken beyond ends the process by a signal.
const BUDGET: &str = "60MB";
const DATA_KIB: u64 = 80_000;

/// Nodes with different keys, each with a String of which some are equal.
fn dump() -> Dump {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut model);
    let fields = [("key", Type::Int), ("other", Type::Double), ("text", Type::Object)];
    let node = model.class("Node", Some(jdk.object), &fields);
    let nodes = model.array_class(node);
    let texts: Vec<ObjectId> =
        (0..OBJECTS / 2).map(|at| jdk.string(&mut model, &format!("text {}", at % (OBJECTS / 3)))).collect();
    let all: Vec<ObjectId> = (0..OBJECTS)
        .map(|at| {
            // Odd, so that each number is another one.
            let key = at.wrapping_mul(2_654_435_761) / 4;
            let values = [
                Value::Int(key.cast_signed()),
                Value::Double(f64::from(at) / 8.0),
                texts[at as usize % texts.len()].into(),
            ];
            model.instance(node, &values)
        })
        .collect();
    let array = model.object_array(nodes, &all);
    model.root(array, Root::JniGlobal { reference: 1 });
    model.root_boot_classes();
    Dump::written(&model.write(&Options::hotspot()))
}

/// Runs a command under a limit of data in KiB.
fn run(dump: &Dump, index: &str, data_kib: u64, arguments: &[&str]) -> Output {
    let mut shell = Command::new("sh");
    let script = format!("ulimit -d {data_kib}; exec \"$@\"");
    shell.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_hprof-cli")]);
    let (command, more) = arguments.split_first().unwrap();
    shell.arg(command).arg(&dump.path).args(more).args(["--index-dir", index, "--threads", "2"]);
    shell.env_remove("HPROF_CLI_MEMORY").env("MALLOC_ARENA_MAX", "1").output().unwrap()
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn answers_are_the_same_within_the_budget() {
    let (dump, dir) = (dump(), tempfile::tempdir().unwrap());
    let index = dir.path().to_str().unwrap();
    assert_eq!(run(&dump, index, 2_000_000, &["index"]).status.code(), Some(0));
    for arguments in [
        &["oql", "SELECT DISTINCT n.key, n.other, n.text FROM Node n"][..],
        &["oql", "SELECT DISTINCT n.key FROM Node n ORDER BY n.key DESC", "--top", "0", "--format", "csv"],
        &["oql", "SELECT DISTINCT toString(n.text) FROM Node n", "--top", "0", "--format", "csv"],
        &["oql", "SELECT n.key, n.other FROM Node n ORDER BY n.other DESC", "--top", "0", "--format", "csv"],
        &["oql", "SELECT n.key FROM Node n ORDER BY n.text, n.key", "--top", "0", "--format", "csv"],
        &["oql", "SELECT n.key, count(*), sum(n.other), avg(n.other) FROM Node n GROUP BY n.key"],
        &[
            "oql",
            "SELECT n.text, count(*), sum(n.other) FROM Node n GROUP BY n.text ORDER BY count(*), sum(n.other)",
            "--top",
            "0",
            "--format",
            "csv",
        ],
        &["oql", "SELECT count(*) FROM Node n WHERE n.key IN (SELECT m.key FROM Node m WHERE m.other > 9.0)"],
        &["oql", "SELECT count(*) FROM Node n WHERE toString(n.text) IN (SELECT OBJECTS m.text FROM Node m)"],
        &["strings", "--top", "0", "--format", "csv"],
        &["strings", "--duplicates", "--sort", "text", "--top", "0", "--format", "csv"],
        &["strings", "--sort", "text", "--top", "7"],
        &["waste", "--format", "json"],
    ] {
        let much = run(&dump, index, 2_000_000, &[arguments, &["--memory", "2GB"]].concat());
        assert_eq!(much.status.code(), Some(0), "{arguments:?}: {}", stderr(&much));
        assert!(!much.stdout.is_empty());
        let little = run(&dump, index, DATA_KIB, &[arguments, &["--memory", BUDGET]].concat());
        assert_eq!(little.status.code(), Some(0), "{arguments:?}: {}: {}", little.status, stderr(&little));
        assert!(little.stdout == much.stdout, "{arguments:?}");
    }
}

/// Rows that other rows are selected from are in memory: a query that keeps too many is refused before it takes more.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn what_has_to_be_in_memory_is_refused_with_numbers() {
    let (dump, dir) = (dump(), tempfile::tempdir().unwrap());
    let index = dir.path().to_str().unwrap();
    assert_eq!(run(&dump, index, 2_000_000, &["index"]).status.code(), Some(0));
    for (query, says) in [
        (
            "SELECT r.a FROM (SELECT n.key AS a, n.other AS b, n.text AS c FROM Node n) r",
            "the rows of a nested query",
        ),
        (
            "SELECT n.key, max(toString(n.text)), min(n.other) FROM Node n GROUP BY n.key",
            "the values of min and max",
        ),
    ] {
        let refused = run(&dump, index, DATA_KIB, &["oql", query, "--memory", BUDGET]);
        let said = stderr(&refused);
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0), "{query}: {said}");
        let numbers = said.contains(says) && said.contains("do not fit into the rest of the memory budget (");
        assert!(
            numbers && said.contains("hint: raise the memory budget with --memory SIZE"),
            "{query}: {said}"
        );
        let much = run(&dump, index, 2_000_000, &["oql", query, "--memory", "2GB", "--format", "json"]);
        let json: Json = serde_json::from_slice(&much.stdout).unwrap();
        assert_eq!(json["total"]["rows"], OBJECTS, "{query}: {}", stderr(&much));
    }
}
