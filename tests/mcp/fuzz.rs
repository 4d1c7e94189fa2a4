//! Malformed messages: each is answered with its own ID or none, nothing panics, and memory is bounded.

use std::collections::HashSet;
use std::io::Write;
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::driver::{Client, Era};
use crate::planted::planted;
use crate::random::Random;

/// Number of messages.
const MESSAGES: u64 = 100_000;

impl Random {
    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// Returns a value of any type.
    fn value(&mut self, depth: usize) -> Json {
        match self.below(if depth == 0 { 6 } else { 8 }) {
            0 => Json::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(self.below(1000)),
            3 => json!(1.5e300),
            4 => json!("x".repeat(self.below(40))),
            5 => json!(self.one(&[
                "d1",
                "d9",
                "\u{0}",
                "\u{202e}",
                "--help",
                "file:///etc/passwd",
                "2026-07-28",
                ""
            ])),
            6 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let keys =
                    ["dump", "query", "top", "name", "arguments", "uri", "_meta", "progressToken", "é"];
                (0..self.below(4))
                    .map(|_| (self.one(&keys).to_owned(), self.value(depth - 1)))
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            }
        }
    }
}

const METHODS: [&str; 14] = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/read",
    "prompts/get",
    "prompts/list",
    "server/discover",
    "notifications/cancelled",
    "notifications/initialized",
    "resources/templates/list",
    "",
    "x\u{0}y",
];

/// Returns a message that is wrong in some way, and its ID if an answer has to have it.
fn malformed(random: &mut Random, id: u64) -> (Vec<u8>, Option<Json>) {
    let era = Era::BOTH[random.below(2)];
    let tools = ["leaks", "sql", "dumps?", "find", "object", "shell"];
    let params = match random.below(4) {
        0 => json!({}),
        // Tools of known names and arguments of wrong types: none of these starts a process.
        1 => json!({"name": random.one(&tools), "arguments": {"dump": random.value(1), "wrong": 1}}),
        2 => json!({"name": random.value(0), "uri": random.value(0), "requestId": random.value(0)}),
        _ => match random.value(2) {
            Json::Object(map) => map.into(),
            _ => json!({"_meta": random.value(2)}),
        },
    };
    let mut message = era.request(&json!(id), random.one(&METHODS), json!({}));
    let meta = message["params"]["_meta"].take();
    message["params"] = params;
    if era == Era::Stateless && random.below(3) > 0 && message["params"]["_meta"].is_null() {
        message["params"]["_meta"] = meta;
    }
    match random.below(12) {
        0 => message["jsonrpc"] = random.value(1),
        1 => message["method"] = random.value(1),
        2 => message["params"] = random.value(3),
        3 => {
            message.as_object_mut().unwrap().remove("method");
        }
        4 => message["extra"] = random.value(3),
        _ => {}
    }
    let text = message.to_string().into_bytes();
    match random.below(16) {
        // Cut, two in one line, bytes that are no text, deep, not an object.
        0 => (text[..random.below(text.len())].to_vec(), None),
        1 => ([&text[..], &text].concat(), None),
        2 => {
            let mut text = text;
            let at = random.below(text.len());
            text[at] = 0xff;
            (text, None)
        }
        3 => ("[".repeat(200 + random.below(2000)).into_bytes(), None),
        4 => (json!([message]).to_string().into_bytes(), None),
        5 => (random.value(3).to_string().into_bytes(), None),
        6 => {
            message["id"] = random.value(1);
            (message.to_string().into_bytes(), None)
        }
        _ => (text, Some(json!(id))),
    }
}

fn memory_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn malformed_messages_are_answered_by_their_id_or_none() {
    let place = planted();
    let mut command = place.program();
    command.args(["mcp", place.dump.to_str().unwrap()]);
    let mut client = Client::start(command, Era::Stateless);
    let mut stdin = client.stdin.take().unwrap();
    let before = memory_kib(client.pid());
    let (sent, ids) = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        // IDs that no malformed ID can equal.
        for id in 1_000_000..1_000_000 + MESSAGES {
            let (mut line, mut known) = malformed(&mut random, id);
            line.retain(|byte| *byte != b'\n');
            if id % 20_000 == 0 {
                // Larger than any message may be: its ID is not read.
                known = None;
                line = [b"{\"x\":\"".to_vec(), vec![b'a'; 3 << 20], line].concat();
            }
            line.push(b'\n');
            stdin.write_all(&line).unwrap();
            sent.send(known).unwrap();
        }
        stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"ping\"}\n").unwrap();
        stdin
    });
    let (mut answered, mut unnamed) = (HashSet::new(), 0u64);
    loop {
        let answer = client.hear();
        assert_eq!(answer["jsonrpc"], "2.0");
        if answer["id"] == "last" {
            break;
        }
        match answer["id"].as_u64().filter(|id| *id >= 1_000_000) {
            Some(id) => assert!(id < 1_000_000 + MESSAGES && answered.insert(id), "{answer}"),
            None => unnamed += 1,
        }
        if let Some(code) = answer["error"]["code"].as_i64() {
            assert!([-32700, -32600, -32601, -32602, -32022, -32000].contains(&code), "{answer}");
        }
    }
    // Calls that ran beside them.
    while let Some(answer) = client.hear_now(Duration::from_millis(1500)) {
        if let Some(id) = answer["id"].as_u64() {
            answered.insert(id);
        }
    }
    client.stdin = Some(writer.join().unwrap());
    let expected: HashSet<u64> = ids.iter().flatten().filter_map(|id| id.as_u64()).collect();
    // Notifications have no answer; a message with an ID has one.
    let missing = expected.difference(&answered).count();
    assert_eq!(missing, 0, "{} answered, {unnamed} without ID", answered.len());
    if let (Some(before), Some(after)) = (before, memory_kib(client.pid())) {
        assert!(after < before + (64 << 10), "{before} KiB, then {after} KiB");
    }
    // It still works.
    let dumps = client.call("dumps", json!({}));
    assert_eq!(dumps["structuredContent"]["rows"][0]["handle"], "d1");
    let (code, said) = client.end();
    assert_eq!((code, said.as_str()), (Some(0), ""));
}
