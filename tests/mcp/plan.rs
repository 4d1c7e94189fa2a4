//! A scripted assistant: a fixed plan that follows only what answers say finds what was planted in the samples, within five
//! calls and 40 KiB. docs/mcp/assistant.py is the same for any dump.

use std::process::Command;

use serde_json::{Value as Json, json};

use crate::driver::{Client, Era};

const CALLS: usize = 5;
const BYTES: usize = 40 << 10;

/// An assistant that counts.
struct Assistant {
    client: Client,
    calls: usize,
    bytes: usize,
    said: String,
}

impl Assistant {
    fn of(dir: &tempfile::TempDir, dumps: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
        command.arg("mcp").args(dumps.iter().map(|name| format!("samples/leaks/{name}.hprof.zst")));
        command.env("HPROF_CLI_INDEX_DIR", dir.path());
        Self { client: Client::start(command, Era::Stateless), calls: 0, bytes: 0, said: String::new() }
    }

    fn call(&mut self, tool: &str, arguments: Json) -> Json {
        let mut result = self.client.call(tool, arguments);
        self.calls += 1;
        self.bytes += result.to_string().len();
        assert_eq!(result["isError"], false, "{result}");
        self.said += result["content"][0]["text"].as_str().unwrap();
        result["structuredContent"].take()
    }

    fn ends(self, expected: &[&str]) {
        assert!(self.calls <= CALLS && self.bytes <= BYTES, "{} calls, {} bytes", self.calls, self.bytes);
        for text in expected {
            assert!(self.said.contains(text), "{text}: {}", self.said);
        }
    }
}

#[test]
fn the_culprits_are_found() {
    let dir = tempfile::tempdir().unwrap();
    for (name, expected) in [
        ("s1", &["shop.ProductService.CACHE", "9,000 x shop.Product", "static CACHE"][..]),
        ("s3", &["container.EventBus.listeners", "container.WebappLoader", "container.Plugin"]),
        ("s4", &["queue of ingest.Pipeline", "ingest.Event", "60,000"]),
        ("s5", &["byNumber of orders.OrderIndex", "ran out of memory", "orders.Order"]),
    ] {
        let mut assistant = Assistant::of(&dir, &[name]);
        let dumps = assistant.call("dumps", json!({}));
        let dump = &dumps["rows"][0]["handle"];
        let leaks = assistant.call("leaks", json!({"dump": dump}));
        let first = &leaks["rows"][0];
        let point = &first["accumulation_point"]["object"];
        assistant.call("paths", json!({"dump": dump, "object": point, "top": 1}));
        assistant.call("dominators", json!({"dump": dump, "of": first["object"], "top": 5}));
        assistant.ends(expected);
    }
}

#[test]
fn what_grew_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut assistant = Assistant::of(&dir, &["s7-t1", "s7-t3"]);
    let dumps = assistant.call("dumps", json!({}));
    let (old, new) = (&dumps["rows"][0]["handle"], &dumps["rows"][1]["handle"]);
    assistant.call("diff", json!({"old": old, "new": new, "top": 8}));
    assistant.call("diff", json!({"old": old, "new": new, "top": 8, "group_by": "class"}));
    assistant.ends(&["SessionRegistry.sessions", "+8,000", "LateReport", "gone", "growth.Session"]);
}
