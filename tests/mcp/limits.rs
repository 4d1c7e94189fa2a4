//! What calls may not: name other files, outlive the server or their time, answer at any length, show values by mistake.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::driver::{Client, Era, HttpServer};
use crate::planted::{Planted, planted};
use crate::tools::calls;

/// A query that ends by itself after two minutes.
const ENDLESS: &str =
    "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";

fn server(place: &Planted, words: &[&str]) -> Command {
    let mut command = place.program();
    command.arg("mcp").args(words);
    command
}

fn text(result: &Json) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

/// Runs the program with this input, and returns its output.
fn fed(mut command: Command, input: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may refuse before it reads.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn evidence_compares_the_dumps_that_were_compared() {
    let place = planted();
    let (old, new) = (place.path("old/heap.hprof"), place.path("new/heap.hprof"));
    for path in [&old, &new] {
        fs::create_dir_all(Path::new(path).parent().unwrap()).unwrap();
        fs::copy(&place.dump, path).unwrap();
    }
    let mut client = Client::start(server(&place, &[&old, &new]), Era::Handshake);
    let shell = |result: Json| result["structuredContent"]["shell_command"].as_str().unwrap().to_owned();
    let told = shell(client.call("diff", json!({"old": "d1", "new": "d2", "top": 3})));
    assert_eq!(told, format!("hprof-cli diff --top=3 --group-by=place {old} {new}"));
    // As they were given: relative to where the server was started.
    let mut command = server(&place, &["old/heap.hprof", "new/heap.hprof"]);
    command.current_dir(place.path(""));
    let mut client = Client::start(command, Era::Handshake);
    let told = shell(client.call("diff", json!({"old": "d2", "new": "d1"})));
    assert!(told.ends_with("new/heap.hprof old/heap.hprof"), "{told}");
    // A name that looks like an option.
    fs::copy(&place.dump, place.path("-x.hprof")).unwrap();
    let mut client = Client::start(server(&place, &[&place.path("-x.hprof")]), Era::Handshake);
    let told = shell(client.call("histogram", json!({"dump": "d1", "top": 1})));
    assert_eq!(told, "hprof-cli histo --top=1 ./-x.hprof");
}

#[test]
fn no_answer_says_where_the_dump_is_or_which_files_exist() {
    let place = planted();
    let there = place.path("there.txt");
    fs::write(&there, "x").unwrap();
    let dump = place.dump.to_str().unwrap();
    let mut client = Client::start(server(&place, &[dump, dump]), Era::Stateless);
    let directory = place.path("");
    let mut all = calls(&place.objects[0]);
    all.push(("object", json!({"dump": "d1", "object": "0x12345"})));
    for (tool, arguments) in all {
        let result = client.call(tool, arguments.clone()).to_string();
        assert!(!result.contains(&directory), "{tool} {arguments}: {result}");
    }
    let read = client.ask("resources/read", json!({"uri": "hprof://dump/d1"})).to_string();
    assert!(read.contains("planted.hprof") && !read.contains(&directory), "{read}");
    let mut answers = |path: &str| -> Vec<String> {
        [
            ("find", json!({"dump": "d1", "what": "class", "pattern": path})),
            ("histogram", json!({"dump": "d1", "class": path})),
            ("paths", json!({"dump": "d1", "object": path})),
            ("dominators", json!({"dump": "d1", "of": path})),
            ("object", json!({"dump": "d1", "object": path})),
        ]
        .map(|(tool, arguments)| client.call(tool, arguments).to_string().replace(path, "PATH"))
        .to_vec()
    };
    assert_eq!(answers(&there), answers(&place.path("none.txt")));
    assert_eq!(answers("there.txt"), answers("nones.txt"));
}

#[cfg(target_os = "linux")]
fn children_of(parent: u32) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let status = |path: std::path::PathBuf| fs::read_to_string(path.join("status")).unwrap_or_default();
    let of = format!("PPid:\t{parent}\n");
    let found = all.filter(|entry| status(entry.path()).contains(&of));
    found.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn no_process_outlives_the_server() {
    let place = planted();
    let mut client = Client::start(server(&place, &[place.dump.to_str().unwrap()]), Era::Handshake);
    client.begin("tools/call", json!({"name": "sql", "arguments": {"dump": "d1", "query": ENDLESS}}));
    let start = Instant::now();
    let children = loop {
        let found = children_of(client.pid());
        if !found.is_empty() {
            break found;
        }
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(50));
    };
    // Killed, so that it cannot end them.
    drop(client);
    let start = Instant::now();
    let runs = |id: &String| {
        fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains("recursive"))
    };
    while children.iter().any(runs) {
        assert!(start.elapsed() < Duration::from_secs(60), "{children:?} are left");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_call_ends_with_its_time() {
    let place = planted();
    let dump = place.dump.to_str().unwrap();
    let arguments = json!({"dump": "d1", "query": ENDLESS});
    let start = Instant::now();
    let mut client = Client::start(server(&place, &[dump, "--question-time=3s"]), Era::Handshake);
    let result = client.call("sql", arguments.clone());
    assert!(result["isError"] == true && text(&result).contains("longer than 3 s"), "{result}");
    let mut serve = place.program();
    serve.args(["serve", dump, "--question-time=3s"]);
    let server = HttpServer::start(serve);
    let params = json!({"name": "sql", "arguments": arguments});
    let (_, answer) = server.ask(Era::Handshake, &Era::Handshake.request(&json!(1), "tools/call", params));
    assert!(answer.contains("longer than 3 s"), "{answer}");
    assert!(start.elapsed() < Duration::from_secs(90));
}

#[test]
fn a_failure_is_an_error() {
    let place = planted();
    let mut client = Client::start(server(&place, &[place.dump.to_str().unwrap()]), Era::Handshake);
    for (tool, arguments) in [
        ("object", json!({"dump": "d1", "object": "0x1"})),
        ("object", json!({"dump": "d1", "object": "com.none.Such"})),
        ("sql", json!({"dump": "d1", "query": "select nothing from nowhere"})),
        ("oql", json!({"dump": "d1", "query": "select s.value.length( from java.lang.String s"})),
        ("sql", json!({"dump": "d1", "query": "select abs(-9223372036854775807 - 1)"})),
    ] {
        let result = client.call(tool, arguments.clone());
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
    }
    // To find nothing is an answer.
    let result = client.call("find", json!({"dump": "d1", "what": "class", "pattern": "com.none.*"}));
    assert_eq!(result["isError"], false, "{result}");
}

#[test]
fn errors_and_resources_are_short() {
    let place = planted();
    let mut client = Client::start(server(&place, &[place.dump.to_str().unwrap()]), Era::Handshake);
    let long = "\u{1}y".repeat(30_000);
    for (method, params) in [
        ("tools/call", json!({"name": long})),
        ("tools/call", json!({"name": "leaks", "arguments": {long.as_str(): 1}})),
        ("tools/call", json!({"name": "leaks", "arguments": {"dump": long}})),
        ("tools/call", json!({"name": "leaks", "arguments": {"dump": "z".repeat(31_000)}})),
        ("resources/read", json!({"uri": long})),
        ("prompts/get", json!({"name": long})),
        (long.as_str(), json!({})),
    ] {
        let size = client.ask(method, params).to_string().len();
        assert!(size <= 4096, "{size}");
    }
    client.send(&json!({"jsonrpc": "2.0", "id": "i".repeat(2000), "method": "ping"}));
    let answer = client.hear();
    assert!(answer["id"].is_null() && answer["error"]["code"] == -32600, "{answer}");
    // A document comes in parts, which are the whole.
    for (name, file) in
        [("names", "json-schema.md"), ("tables", "json-schema.md"), ("mat", "mat.md"), ("waste", "waste.md")]
    {
        let whole =
            fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(file)).unwrap();
        let (mut uri, mut read) = (format!("hprof://docs/{name}"), String::new());
        loop {
            let answer = client.ask("resources/read", json!({"uri": uri}));
            assert!(answer.to_string().len() <= 16 << 10, "{uri}: {}", answer.to_string().len());
            let text = answer["result"]["contents"][0]["text"].as_str().unwrap();
            let Some((part, next)) = text.split_once("\nThe rest: resource ") else {
                read.push_str(text);
                break;
            };
            read.push_str(part);
            uri = next.trim().to_owned();
        }
        assert!(read == whole, "{name}");
    }
    let answer = client.ask("resources/read", json!({"uri": "hprof://docs/names?part=9999"}));
    assert!(answer["error"].is_object(), "{answer}");
}

#[test]
fn more_leads_on() {
    let place = planted();
    let mut client = Client::start(server(&place, &[place.dump.to_str().unwrap()]), Era::Handshake);
    for arguments in [json!({"dump": "d1", "top": 3}), json!({"dump": "d1", "top": 3, "max_bytes": 16384})] {
        let result = client.call("histogram", arguments.clone());
        assert_eq!(result["structuredContent"]["more"]["arguments"]["top"], 15, "{arguments}: {result}");
    }
    let mut arguments = json!({
        "dump": "d1", "top": 1000,
        "query": "with recursive n(i) as (select 1 union all select i + 1 from n where i < 900) \
                  select i, printf('%.*c', 3000, 'x') as long from n",
    });
    for _ in 0..10 {
        let result = client.call("sql", arguments.clone());
        let more = &result["structuredContent"]["more"]["arguments"];
        if more.is_null() {
            assert_eq!(arguments["max_bytes"], 1 << 20, "{arguments}");
            return;
        }
        assert_ne!(*more, arguments);
        arguments = more.clone();
    }
    panic!("{arguments}");
}

#[test]
fn hiding_does_not_fail_open() {
    let place = planted();
    let dump = place.dump.to_str().unwrap();
    let run = |words: &[&str], value: &str| {
        place.program().args(words).env("HPROF_CLI_HIDES_VALUES", value).output().unwrap()
    };
    for value in ["1", "true", "yes"] {
        let strings = run(&["strings", dump], value);
        assert!(!String::from_utf8_lossy(&strings.stdout).contains("zqMarker"), "{value}");
        let server = run(&["mcp", dump, "--values"], value);
        assert_eq!(server.status.code(), Some(2), "{value}: {server:?}");
    }
    assert!(String::from_utf8_lossy(&run(&["strings", dump], "").stdout).contains("zqMarker"));
}

#[test]
fn calls_that_were_read_are_answered() {
    let place = planted();
    let dump = place.dump.to_str().unwrap();
    let call = |id: u32| {
        let params = json!({"name": "histogram", "arguments": {"dump": "d1"}});
        format!("{}\n", Era::Handshake.request(&json!(id), "tools/call", params))
    };
    let output = fed(server(&place, &[dump]), &(call(1) + &call(2)));
    let answers: Vec<Json> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(answers.iter().all(|answer| answer["result"]["isError"] == false), "{answers:?}");
    // Standard input has the protocol, not a dump.
    let output = fed(server(&place, &["-"]), &call(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("standard input"), "{said}");
    // An ID is free once its call is cancelled.
    let mut client = Client::start(server(&place, &[dump]), Era::Handshake);
    let params = json!({"name": "sql", "arguments": {"dump": "d1", "query": ENDLESS}});
    let id = client.begin("tools/call", params);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    client.send(&Era::Handshake.request(&id, "tools/call", json!({"name": "dumps"})));
    let answer = client.hear();
    assert!(answer["id"] == id && answer["result"]["isError"] == false, "{answer}");
}

#[test]
fn a_pipe_has_the_name_that_was_given() {
    let place = planted();
    let mut serve = place.program();
    serve.args(["serve", "-"]).stdin(fs::File::open(&place.dump).unwrap());
    let server = HttpServer::start(serve);
    let params = json!({"name": "overview", "arguments": {"dump": "d1"}});
    let (_, answer) = server.ask(Era::Handshake, &Era::Handshake.request(&json!(1), "tools/call", params));
    let answer: Json = serde_json::from_str(&answer).unwrap();
    let content = &answer["result"]["structuredContent"];
    assert_eq!(content["shell_command"], "hprof-cli overview -", "{answer}");
    assert_eq!(content["dump"]["path"], "-", "{answer}");
}
