//! The official clients, where they are installed; elsewhere these tests say NOT RUN and pass.
//!
//! ```sh
//! python3 -m venv venv && venv/bin/pip install mcp==2.3.*      # HPROF_CLI_MCP_PYTHON=venv/bin/python
//! npm i node@22 @modelcontextprotocol/inspector@2.12.0         # HPROF_CLI_MCP_INSPECTOR=node_modules/.bin/mcp-inspector
//! ```

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;

use crate::planted::{Planted, found_in, planted};
use crate::tools::{NAMES, calls};

fn find(variable: &str, name: &str, test: &str, why: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let given = std::env::var_os(variable).map(PathBuf::from);
    let found =
        given.or_else(|| std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.is_file()));
    if found.is_none() {
        not_run(test, why);
    }
    found
}

fn not_run(test: &str, why: &str) {
    // Not by a macro: what passes would not be shown.
    std::io::stderr().write_all(format!("NOT RUN: {test}: {why}\n").as_bytes()).unwrap();
}

const SCRIPT: &str = r#"
import asyncio, json, sys
from mcp import Client
from mcp.client.stdio import StdioServerParameters
mode, program, index, dump, calls = sys.argv[1:]
async def main():
    server = StdioServerParameters(command=program, args=["mcp", "--index-dir", index, dump, dump])
    async with Client(server, mode=mode) as client:
        print(json.dumps([tool.name for tool in (await client.list_tools()).tools]))
        for tool, arguments in json.loads(calls):
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, (tool, result)
            print(json.dumps([tool, result.structured_content["command"], result.content[0].text]))
        assert len((await client.list_prompts()).prompts) == 3
        for resource in (await client.list_resources()).resources:
            assert (await client.read_resource(resource.uri)).contents[0].text
asyncio.run(main())
"#;

#[test]
fn the_python_client_lists_and_calls_every_tool() {
    let test = "the_python_client_lists_and_calls_every_tool";
    let why = "pip install mcp==2.3.*, and HPROF_CLI_MCP_PYTHON names that Python";
    let Some(python) = find("HPROF_CLI_MCP_PYTHON", "python3", test, why) else { return };
    let has_client = Command::new(&python).args(["-c", "from mcp import Client"]).output();
    if !has_client.is_ok_and(|output| output.status.success()) {
        return not_run(test, why);
    }
    let place = planted();
    let calls = serde_json::to_string(&calls(&place.objects[0])).unwrap();
    for mode in ["auto", "legacy"] {
        let (dump, index) = (place.dump.to_str().unwrap(), place.path("index"));
        let words = ["-c", SCRIPT, mode, env!("CARGO_BIN_EXE_hprof-cli"), &index, dump, &calls];
        let output = Command::new(&python).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{mode}: {said}{}", String::from_utf8_lossy(&output.stderr));
        let names: Vec<String> = serde_json::from_str(said.lines().next().unwrap()).unwrap();
        assert_eq!(names, NAMES, "{mode}");
        assert!(found_in(&said).is_empty(), "{mode}: {said}");
    }
}

/// Runs the inspector, and returns its answer.
fn inspect(program: &Path, place: &Planted, era: &str, more: &[&str]) -> Json {
    let mut command = Command::new(program);
    command.args(["--cli", "--protocol-era", era, env!("CARGO_BIN_EXE_hprof-cli"), "mcp", "--index-dir"]);
    command
        .args([&place.path("index"), place.dump.to_str().unwrap(), place.dump.to_str().unwrap()])
        .args(more);
    // Its own Node is beside it.
    let path = std::env::var("PATH").unwrap_or_default();
    let beside = program.parent().map(Path::to_owned).unwrap_or_default();
    let output = command.env("PATH", format!("{}:{path}", beside.display())).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{error}: {more:?}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

#[test]
fn the_inspector_lists_and_calls_every_tool() {
    let test = "the_inspector_lists_and_calls_every_tool";
    let why = "npm i node@22 @modelcontextprotocol/inspector@2.12.0, and HPROF_CLI_MCP_INSPECTOR names its mcp-inspector";
    let Some(program) = find("HPROF_CLI_MCP_INSPECTOR", "mcp-inspector", test, why) else { return };
    let place = planted();
    for era in ["modern", "legacy"] {
        let listed = inspect(&program, &place, era, &["--method", "tools/list"]);
        let names: Vec<&str> =
            listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, NAMES, "{era}");
        let mut seen: Vec<&str> = Vec::new();
        for (tool, arguments) in calls(&place.objects[0]) {
            // It takes a second to start: each tool once.
            if seen.contains(&tool) {
                continue;
            }
            seen.push(tool);
            let mut words = vec![
                "--method".to_owned(),
                "tools/call".to_owned(),
                "--tool-name".to_owned(),
                tool.to_owned(),
            ];
            for (name, value) in arguments.as_object().unwrap() {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                words.extend(["--tool-arg".to_owned(), format!("{name}={value}")]);
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let result = inspect(&program, &place, era, &words);
            assert_ne!(result["isError"], true, "{era} {tool}: {result}");
            assert!(result["structuredContent"]["rows"].is_array(), "{era} {tool}: {result}");
        }
        assert_eq!(seen.len(), NAMES.len());
    }
}
