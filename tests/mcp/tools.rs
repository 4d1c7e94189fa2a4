//! Every tool, in both eras, by pipes and by HTTP.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::driver::{Client, Era, HttpServer};
use crate::planted::{Planted, found_in, planted};

/// Names of all tools.
pub const NAMES: [&str; 14] = [
    "dumps",
    "overview",
    "leaks",
    "process_memory",
    "waste",
    "histogram",
    "dominators",
    "paths",
    "object",
    "threads",
    "diff",
    "sql",
    "oql",
    "find",
];

fn command(place: &Planted, more: &[&str]) -> Command {
    let mut command = place.program();
    let dump = place.dump.to_str().unwrap();
    command.args(["mcp", dump, dump]).args(more);
    command
}

/// Returns a call of each tool, and variants of it.
pub fn calls(object: &str) -> Vec<(&'static str, Json)> {
    let d = "d1";
    vec![
        ("dumps", json!({})),
        ("overview", json!({"dump": d})),
        ("leaks", json!({"dump": d})),
        ("process_memory", json!({"dump": d})),
        ("waste", json!({"dump": d, "top": 5})),
        ("waste", json!({"dump": d, "group_by": "class"})),
        ("histogram", json!({"dump": d, "retained": true, "class": "java.**"})),
        ("histogram", json!({"dump": d, "group_by": "package"})),
        ("dominators", json!({"dump": d})),
        ("dominators", json!({"dump": d, "of": object})),
        ("paths", json!({"dump": d, "object": object})),
        ("paths", json!({"dump": d, "object": "java.lang.String"})),
        ("object", json!({"dump": d, "object": object, "referrers": true})),
        ("object", json!({"dump": d, "object": "com.acme.Config"})),
        ("threads", json!({"dump": d, "locals": true})),
        ("threads", json!({"dump": d, "group": true})),
        ("diff", json!({"old": "d1", "new": "d2"})),
        ("diff", json!({"old": "d1", "new": "d2", "group_by": "class"})),
        ("sql", json!({"dump": d, "query": "select class, instances from classes"})),
        ("sql", json!({"dump": d, "query": "select * from strings"})),
        ("oql", json!({"dump": d, "query": "select s from java.lang.String s"})),
        ("find", json!({"dump": d, "what": "class", "pattern": "java.**"})),
    ]
}

#[test]
fn every_tool_answers_in_both_eras() {
    let place = planted();
    for era in Era::BOTH {
        let mut client = Client::start(command(&place, &[]), era);
        let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
        let names: Vec<&str> =
            tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, NAMES);
        for tool in tools.as_array().unwrap() {
            assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
            assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
            assert!(!tool.to_string().contains("planted"), "{tool}");
        }
        let mut seen = Vec::new();
        for (tool, arguments) in calls(&place.objects[0]) {
            let result = client.call(tool, arguments.clone());
            assert_eq!(result["isError"], false, "{tool} {arguments}: {result}");
            let structured = &result["structuredContent"];
            assert!(structured["rows"].is_array(), "{tool}: {result}");
            let shell = structured["shell_command"].as_str().unwrap();
            assert!(shell.starts_with("hprof-cli "), "{tool}: {shell}");
            assert!(result.to_string().len() <= 16 << 10, "{tool}: {}", result.to_string().len());
            assert!(found_in(&result.to_string()).is_empty(), "{tool} {arguments}: {result}");
            if tool != "dumps" {
                assert!(
                    structured["dump"].is_object() || structured["dumps"].is_array() || tool == "diff",
                    "{tool}: {result}"
                );
                same_as_in_a_shell(&place, shell, &result);
            }
            seen.push(tool);
        }
        assert!(NAMES.iter().all(|name| seen.contains(name)));
        for uri in ["hprof://dump/d1", "hprof://docs/tables", "hprof://docs/names"] {
            let read = client.ask("resources/read", json!({"uri": uri}));
            assert!(read["result"]["contents"][0]["text"].as_str().unwrap().len() > 100, "{read}");
        }
        for (prompt, arguments) in [
            ("why_out_of_memory", json!({"dump": "d1"})),
            ("what_grew", json!({"old": "d1", "new": "d2"})),
            ("what_can_be_saved", json!({"dump": "d2"})),
        ] {
            let got = client.ask("prompts/get", json!({"name": prompt, "arguments": arguments}));
            assert!(got["result"]["messages"][0]["content"]["text"].is_string(), "{got}");
        }
        let (code, said) = client.end();
        assert_eq!((code, said.as_str()), (Some(0), ""));
    }
}

/// Runs the command of an answer in a shell: its rows are those of the answer, as far as these were not cut.
fn same_as_in_a_shell(place: &Planted, shell: &str, result: &Json) {
    let structured = &result["structuredContent"];
    let program = env!("CARGO_BIN_EXE_hprof-cli");
    let typed = shell.replacen("hprof-cli", &format!("'{program}'"), 1);
    let line = format!("{typed} --format=json");
    // Options are not after the end of options.
    let run = |line: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(place.dump.parent().unwrap()).env("HPROF_CLI_HIDES_VALUES", "1");
        shell.env("HPROF_CLI_INDEX_DIR", place.path("index")).output().unwrap()
    };
    let output = run(&line);
    let whole: Json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {line}: {}", String::from_utf8_lossy(&output.stderr)));
    let rows = structured["rows"].as_array().unwrap();
    let all = whole["rows"].as_array().unwrap();
    let is_cut = structured.get("omitted").is_some();
    assert!(rows.len() == all.len() || (is_cut && rows.len() <= all.len()), "{line}");
    for (row, of) in rows.iter().zip(all) {
        // Commands in answers name the dump as it was given.
        let plain = |row: &Json| row.to_string().replace(&place.path(""), "");
        assert!(plain(row) == plain(of) || is_cut, "{line}: {row} {of}");
    }
    // The text is the table, as far as it goes.
    let table = String::from_utf8(run(&typed).stdout).unwrap().replace(&place.path(""), "");
    let text = result["content"][0]["text"].as_str().unwrap().replace(&place.path(""), "");
    let head: Vec<&str> = table.lines().take(6).collect();
    // Without rows there may be no table, nor if two dumps are equal.
    assert!(!head.is_empty() || all.is_empty() || typed.contains(" diff "), "{typed}");
    assert!(text.contains(&head.join("\n")), "{typed}:\n{text}\n{table}");
}

#[test]
fn rows_of_leaks_are_those_of_the_command() {
    let place = planted();
    let mut client = Client::start(command(&place, &["--values"]), Era::Stateless);
    let result = client.call("leaks", json!({"dump": "d1", "max_bytes": 1 << 20}));
    let output = place.run(&["leaks", place.dump.to_str().unwrap(), "--format", "json"], false);
    let told: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["structuredContent"]["rows"], told["rows"]);
    // With values, they are shown, and found.
    let found = client.call("find", json!({"dump": "d1", "what": "text", "pattern": "zqMarker-t"}));
    assert!(!found_in(&found.to_string()).is_empty(), "{found}");
}

/// A table has fewer rows than JSON: elements of an array, and classes that are the same in both dumps.
#[test]
fn tables_are_those_of_the_command_where_json_has_more() {
    let place = planted();
    let dump = place.dump.to_str().unwrap();
    let mut client = Client::start(command(&place, &["--values"]), Era::Stateless);
    let array = place.objects[2].as_str();
    for (tool, arguments, typed) in [
        (
            "object",
            json!({"dump": "d1", "object": array, "referrers": true}),
            vec!["show", dump, array, "--incoming"],
        ),
        ("diff", json!({"old": "d1", "new": "d2", "group_by": "class"}), vec!["diff", dump, dump]),
    ] {
        let mut arguments = arguments;
        arguments["max_bytes"] = (1 << 20).into();
        let result = client.call(tool, arguments);
        let table = String::from_utf8(place.run(&typed, false).stdout).unwrap();
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.ends_with(&format!("\n\n{table}")), "{text}\n{table}");
        let rows = result["structuredContent"]["rows"].as_array().unwrap();
        let has_more = match tool {
            "object" => rows[0]["fields"].as_array().unwrap().len() > 20 && table.contains("the first 20 of"),
            _ => rows.iter().any(|row| row["status"] == "same") && !table.contains("java.lang.String"),
        };
        assert!(has_more, "{result}\n{table}");
    }
}

#[test]
fn answers_keep_to_their_bytes() {
    let place = planted();
    let mut client = Client::start(command(&place, &["--values"]), Era::Handshake);
    for bytes in [4096, 5000, 8000, 16 << 10, 60_000] {
        for (tool, mut arguments) in calls(&place.objects[0]) {
            arguments["max_bytes"] = bytes.into();
            if tool != "dumps" && tool != "leaks" && tool != "overview" && tool != "object" {
                arguments["top"] = 1000.into();
            }
            let result = client.call(tool, arguments);
            let size = result.to_string().len();
            assert!(size <= bytes, "{tool}: {size} of {bytes}");
        }
        let long = "x".repeat(30_000);
        for (tool, arguments) in [
            (
                "sql",
                json!({"dump": "d1", "query": format!("select '{long}' as a, class from classes"), "max_bytes": bytes}),
            ),
            ("sql", json!({"dump": "d1", "query": format!("select {long}"), "max_bytes": bytes})),
            ("find", json!({"dump": "d1", "what": "class", "pattern": long, "max_bytes": bytes})),
        ] {
            let size = client.call(tool, arguments).to_string().len();
            assert!(size <= bytes, "{tool}: {size} of {bytes}");
        }
    }
    // Less than what has to fit is refused, not exceeded, in each tool.
    for bytes in [1, 300, 4095] {
        for (tool, mut arguments) in calls(&place.objects[0]) {
            arguments["max_bytes"] = bytes.into();
            let result = client.call(tool, arguments);
            let text = result["content"][0]["text"].as_str().unwrap();
            let says = "`max_bytes` must be an integer from 4096 to 1048576";
            assert!(result["isError"] == true && text.contains(says), "{tool}, {bytes}: {result}");
        }
    }
    let list = client.ask("tools/list", json!({}));
    for tool in list["result"]["tools"].as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["properties"]["max_bytes"]["minimum"], 4096, "{tool}");
    }
    // What was cut is told, with the call that gives it.
    let cut = client
        .call("sql", json!({"dump": "d1", "query": "select * from objects", "top": 1000, "max_bytes": 4096}));
    let content = &cut["structuredContent"];
    assert!(content["omitted"][0]["omitted"].as_u64().unwrap() > 1, "{cut}");
    let more = content["more"]["arguments"].clone();
    assert!(more["max_bytes"].as_u64().unwrap() > 4096, "{cut}");
    let next = client.call("sql", more);
    let rows = |result: &Json| result["structuredContent"]["rows"].as_array().unwrap().len();
    assert!(rows(&next) > rows(&cut), "{next}");
}

#[test]
fn wrong_calls_are_errors_that_name_the_right_ones() {
    let place = planted();
    for era in Era::BOTH {
        let mut client = Client::start(command(&place, &[]), era);
        for (tool, arguments, says) in [
            (
                "histogram",
                json!({"dump": "d1", "limit": 3}),
                "its arguments are dump, top, class, group_by, retained, max_bytes",
            ),
            ("leaks", json!({"dump": "/etc/passwd"}), "dumps are d1, d2"),
            ("leaks", json!({}), "needs the argument `dump`"),
            ("find", json!({"dump": "d1", "what": "text", "pattern": "a"}), "--values"),
            ("threads", json!({"dump": "d1", "thread": "zq"}), "--values"),
            ("sql", json!({"dump": "d1", "query": "attach '/etc/passwd' as x"}), ""),
            ("sql", json!({"dump": "d1", "query": "drop table objects"}), ""),
            ("sql", json!({"dump": "d1", "query": "select readfile('/etc/passwd')"}), ""),
            ("oql", json!({"dump": "d1", "query": "select from"}), "OQL"),
            ("object", json!({"dump": "d1", "object": "--help"}), ""),
            ("object", json!({"dump": "d1", "object": "@/etc/passwd"}), ""),
        ] {
            let result = client.call(tool, arguments.clone());
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(!text.contains("root:"), "{text}");
            assert!(text.contains(says), "{tool} {arguments}: {text}");
            assert!(result["isError"] == true || says.is_empty(), "{tool} {arguments}: {text}");
        }
        for (method, params) in [
            ("tools/call", json!({"name": "shell", "arguments": {}})),
            ("tools/call", json!({"name": "leaks", "arguments": [1]})),
            ("resources/read", json!({"uri": "file:///etc/passwd"})),
            ("resources/read", json!({"uri": "hprof://dump/../d1"})),
            ("prompts/get", json!({"name": "x"})),
            ("nothing", json!({})),
        ] {
            let answer = client.ask(method, params);
            assert!(answer["error"]["code"].is_i64(), "{answer}");
        }
    }
}

#[test]
fn a_call_is_cancelled_and_tells_its_progress() {
    let place = planted();
    let mut client = Client::start(command(&place, &[]), Era::Handshake);
    // It ends by itself after two minutes.
    let endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
    let params = json!({
        "name": "sql", "arguments": {"dump": "d1", "query": endless}, "_meta": {"progressToken": "p"},
    });
    let start = Instant::now();
    let id = client.begin("tools/call", params);
    let told = client.hear();
    assert_eq!(told["method"], "notifications/progress", "{told}");
    assert_eq!(told["params"]["progressToken"], "p");
    // Others are answered beside it.
    let mut answered = json!(null);
    let other = client.begin("tools/call", json!({"name": "dumps", "arguments": {}}));
    while answered["id"] != other {
        answered = client.hear();
    }
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    let pong = client.begin("ping", json!({}));
    while answered["id"] != pong {
        answered = client.hear();
        assert_ne!(answered["id"], id);
    }
    // No answer comes, and no process is left: the server ends at once.
    while let Some(message) = client.hear_now(Duration::from_millis(1500)) {
        assert_ne!(message["id"], id, "{message}");
    }
    let (code, _) = client.end();
    assert_eq!(code, Some(0));
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn over_http_two_clients_are_answered_at_once() {
    let place = planted();
    let mut serve = place.program();
    serve.args(["serve", place.dump.to_str().unwrap()]);
    let server = HttpServer::start(serve);
    let about = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let (status, answer) =
        server.ask(Era::Handshake, &Era::Handshake.request(&json!(1), "initialize", about));
    let answer: Json = serde_json::from_str(&answer).unwrap();
    assert_eq!((status, &answer["result"]["protocolVersion"]), (200, &json!("2025-11-25")), "{answer}");
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(server.ask(Era::Handshake, &note), (202, String::new()));
    std::thread::scope(|scope| {
        for era in Era::BOTH {
            let (server, place) = (&server, &place);
            scope.spawn(move || {
                let calls = calls(&place.objects[0]).into_iter().filter(|(tool, _)| *tool != "diff");
                // Both use the same IDs.
                for (number, (tool, arguments)) in calls.enumerate() {
                    let params = json!({"name": tool, "arguments": arguments});
                    let request = era.request(&json!(number), "tools/call", params);
                    let (status, answer) = server.ask(era, &request);
                    let answer: Json = serde_json::from_str(&answer).unwrap();
                    assert_eq!((status, &answer["id"]), (200, &json!(number)), "{answer}");
                    assert_eq!(answer["result"]["isError"], false, "{tool}: {answer}");
                    let command = answer["result"]["structuredContent"]["command"].as_str().unwrap();
                    assert!(!command.is_empty() && found_in(&answer.to_string()).is_empty(), "{answer}");
                }
            });
        }
    });
    // Progress comes as events, the answer last.
    let slow = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 9000000) select count(*) from n";
    let params = json!({
        "name": "sql", "arguments": {"dump": "d1", "query": slow}, "_meta": {"progressToken": 7},
    });
    let (status, events) =
        server.ask(Era::Stateless, &Era::Stateless.request(&json!("e"), "tools/call", params));
    let lines: Vec<&str> = events.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let last: Json = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!((status, &last["id"]), (200, &json!("e")), "{events}");
}

#[test]
fn over_http_only_those_who_may_are_answered() {
    let place = planted();
    let mut serve = place.program();
    serve.args(["serve", place.dump.to_str().unwrap()]);
    let server = HttpServer::start(serve);
    let host = format!("127.0.0.1:{}", server.port);
    let bearer = format!("Bearer {}", server.token);
    let body = Era::Handshake.request(&json!(1), "ping", json!({})).to_string();
    let of = |host, authorization, more: &[(&'static str, &'static str)]| {
        let mut headers =
            vec![("Host", host), ("Authorization", authorization), ("Content-Type", "application/json")];
        headers.extend(more);
        server.send("POST", &headers, &body).0
    };
    assert_eq!(of(&host, &bearer, &[]), 200);
    let lower = format!("bearer {}", server.token);
    for kind in ["Application/JSON", "application/json ; charset=utf-8", "application/json;charset=utf-8"] {
        let headers = [("Host", host.as_str()), ("Authorization", &lower), ("Content-Type", kind)];
        assert_eq!(server.send("POST", &headers, &body).0, 200, "{kind}");
    }
    for (host, authorization, more) in [
        (host.as_str(), "Bearer 0", &[][..]),
        (&host, "", &[]),
        ("evil.example", &bearer, &[]),
        (&host, &bearer, &[("Origin", "http://evil.example")]),
        (&host, &bearer, &[("Origin", "null")]),
        (&host, &bearer, &[("Sec-Fetch-Site", "cross-site")]),
    ] {
        assert_eq!(of(host, authorization, more), 403, "{host} {more:?}");
    }
    let all = [("Host", host.as_str()), ("Authorization", &bearer)];
    assert_eq!(server.send("GET", &all, "").0, 405);
    assert_eq!(server.send("DELETE", &all, "").0, 405);
    assert_eq!(server.send("POST", &all, &body).0, 415);
    let json = [all[0], all[1], ("Content-Type", "application/json")];
    assert_eq!(server.send("POST", &json, "{").0, 400);
    assert_eq!(server.send("POST", &json, &"x".repeat(2 << 20)).0, 413);
    assert_eq!(
        server.send("POST", &[json[0], json[1], json[2], ("MCP-Protocol-Version", "1999")], &body).0,
        400
    );
    // Headers that differ from the message.
    let request = Era::Stateless.request(&json!(1), "tools/list", json!({})).to_string();
    for (version, method) in [("", "tools/list"), ("2025-11-25", "tools/list"), ("2026-07-28", "tools/call")]
    {
        let more = [("MCP-Protocol-Version", version), ("Mcp-Method", method)];
        let (status, answer) = server.send("POST", &[&json[..], &more].concat(), &request);
        assert!(status == 400 && answer.contains("-32020"), "{status} {answer}");
    }
}
