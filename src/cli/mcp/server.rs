//! The server: reads messages, responds to them, and runs calls concurrently.

use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::call::{CallAnswer, Processes, Runner, UNTRUSTED};
use super::message::{
    self, BUSY, ClientMessage, ClientRequest, HANDSHAKE, METHOD_NOT_FOUND, RequestId, RpcError, STATELESS,
};
use super::texts::{DOCUMENTS, DUMP_URI, INSTRUCTIONS, PROMPTS};
use super::tools::{self, CallArguments, TOOLS, Tool};
use super::{budget, wire};
use crate::cli::shared::context::lock;
use crate::cli::shared::spool;

/// Maximum length of a message in bytes.
pub(crate) const MAX_LINE: u64 = 1 << 20;

/// Maximum number of concurrent calls.
pub(crate) const MAX_CALLS: usize = 4;

/// Separator between the URI of a document and the number of a part, counted from 1.
const PART: &str = "?part=";

/// Time between two progress notifications.
const PROGRESS: Duration = Duration::from_secs(1);

/// The dumps and limits of a server.
#[derive(Debug)]
pub(crate) struct McpServer {
    /// Paths of the dumps, as passed to commands.
    dumps: Vec<PathBuf>,
    runner: Runner,
    max_bytes: usize,
}

/// A connection to a client: its output, and the calls that are running.
struct McpSession<'s, W> {
    server: &'s McpServer,
    out: Mutex<W>,
    calls: Mutex<HashMap<RequestId, Arc<Processes>>>,
}

/// Serves a client on stdin and stdout until stdin ends.
pub(super) fn run(server: McpServer) -> io::Result<()> {
    serve(&server, io::stdin().lock(), io::stdout())
}

/// Serves until the input ends, and completes the calls that were read until then. If the output fails, calls are cancelled.
fn serve(server: &McpServer, mut input: impl BufRead, output: impl Write + Send) -> io::Result<()> {
    let session = McpSession::new(server, output);
    std::thread::scope(|scope| {
        let mut line = Vec::new();
        let ended = loop {
            line.clear();
            let answered = match input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                Ok(0) => break Ok(()),
                Err(error) => break Err(error),
                Ok(_) if !line.ends_with(b"\n") && line.len() as u64 >= MAX_LINE => {
                    if let Err(error) = skip_line(&mut input) {
                        break Err(error);
                    }
                    let error = RpcError::new(message::INVALID_REQUEST, "the message is longer than 1 MiB");
                    session.send(&message::error(None, &error))
                }
                Ok(_) if line.trim_ascii().is_empty() => Ok(()),
                Ok(_) => match message::parse(&line) {
                    Ok(ClientMessage::Request(request)) => session.request(scope, request),
                    Ok(ClientMessage::Cancelled(id)) => {
                        // The ID may be used again before the process has ended.
                        if let Some(call) = lock(&session.calls).remove(&id) {
                            call.cancel();
                        }
                        Ok(())
                    }
                    Ok(ClientMessage::Other) => Ok(()),
                    Err((id, error)) => session.send(&message::error(id.as_ref(), &error)),
                },
            };
            if let Err(error) = answered {
                break Err(error);
            }
        };
        if ended.is_err() {
            session.cancel_all();
        }
        ended
    })
}

/// Skips the rest of a line.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(());
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(bytes.len(), |end| end.saturating_add(1));
        input.consume(length);
        if end.is_some() {
            return Ok(());
        }
    }
}

impl<'s, W: Write + Send> McpSession<'s, W> {
    fn new(server: &'s McpServer, output: W) -> Self {
        Self { server, out: Mutex::new(output), calls: Mutex::default() }
    }

    fn cancel_all(&self) {
        lock(&self.calls).values().for_each(|call| call.cancel());
    }

    fn send(&self, line: &str) -> io::Result<()> {
        let mut out = lock(&self.out);
        out.write_all(line.as_bytes())?;
        out.flush()
    }

    /// Handles a request; one that may take long is handled on a separate thread.
    fn request<'c>(
        &'c self,
        scope: &'c std::thread::Scope<'c, '_>,
        request: ClientRequest,
    ) -> io::Result<()> {
        if !request.is_long() {
            return self.send(&self.server.at_once(&request));
        }
        let processes = Arc::new(Processes::default());
        {
            let mut calls = lock(&self.calls);
            if calls.len() >= MAX_CALLS || calls.contains_key(&request.id) {
                drop(calls);
                let error = RpcError::new(
                    BUSY,
                    format!(
                        "{MAX_CALLS} calls, or one with this ID, are already running; wait until one ends"
                    ),
                );
                return self.send(&message::error(Some(&request.id), &error));
            }
            calls.insert(request.id.clone(), processes.clone());
        }
        scope.spawn(move || {
            if self.call(&request, &processes).is_err() {
                // Nobody reads the results.
                self.cancel_all();
            }
        });
        Ok(())
    }

    fn call(&self, request: &ClientRequest, processes: &Arc<Processes>) -> io::Result<()> {
        let answered = match &request.progress_token {
            None => self.server.long(request, processes),
            Some(token) => std::thread::scope(|scope| {
                let (sender, done) = channel();
                let work = scope.spawn(move || {
                    let answer = self.server.long(request, processes);
                    let _ = sender.send(());
                    answer
                });
                let start = Instant::now();
                while done.recv_timeout(PROGRESS) == Err(RecvTimeoutError::Timeout) {
                    let seconds = start.elapsed().as_secs();
                    let text = format!("{seconds} s; the first call for a dump may have to build its index");
                    let _ = self.send(&message::progress(token, seconds, &text));
                }
                let failed =
                    || Err(RpcError::new(-32603, "internal error in hprof-cli; please report this bug"));
                work.join().unwrap_or_else(|_| failed())
            }),
        };
        {
            let mut calls = lock(&self.calls);
            if calls.get(&request.id).is_some_and(|call| Arc::ptr_eq(call, processes)) {
                calls.remove(&request.id);
            }
        }
        // Nobody waits for a cancelled call.
        if processes.is_cancelled() {
            return Ok(());
        }
        self.send(&match answered {
            Ok(result) => message::result(request, result, false),
            Err(error) => message::error(Some(&request.id), &error),
        })
    }
}

/// Returns the file name of a dump; for the copy of a pipe, the original one.
fn file_name(dump: &Path) -> String {
    spool::original_path(dump).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

impl McpServer {
    /// Creates a server for these dumps.
    pub(super) fn new(dumps: Vec<PathBuf>, runner: Runner, max_bytes: usize) -> Self {
        Self { dumps, runner, max_bytes }
    }

    /// Returns the response to a request that needs no dump, as a line.
    pub(crate) fn at_once(&self, request: &ClientRequest) -> String {
        match self.quick(request) {
            Ok((result, is_listing)) => message::result(request, result, is_listing),
            Err(error) => message::error(Some(&request.id), &error),
        }
    }

    /// Writes progress notifications for a request that may take long, then the response.
    #[cfg(feature = "serve")]
    pub(crate) fn in_time(
        &self,
        request: &ClientRequest,
        processes: &Arc<Processes>,
        out: impl Write + Send,
    ) {
        // A disconnected client has cancelled it.
        let _ = McpSession::new(self, out).call(request, processes);
    }

    /// Handles a request that needs no dump. Returns the result, and whether clients may cache it.
    fn quick(&self, request: &ClientRequest) -> Result<(Map<String, Value>, bool), RpcError> {
        let capabilities = json!({"tools": {}, "resources": {}, "prompts": {}});
        let (result, is_listing) = match request.method.as_str() {
            "server/discover" if request.is_stateless => (
                json!({"supportedVersions": [STATELESS], "capabilities": capabilities, "instructions": INSTRUCTIONS}),
                true,
            ),
            "initialize" if !request.is_stateless => {
                let asked = request.params.get("protocolVersion").and_then(Value::as_str);
                let asked = asked.ok_or_else(|| RpcError::invalid_params("`protocolVersion` is missing"))?;
                let [.., latest] = HANDSHAKE;
                let version = HANDSHAKE.iter().find(|known| **known == asked).unwrap_or(&latest);
                let server = message::server_info();
                (
                    json!({
                        "protocolVersion": version, "capabilities": capabilities, "serverInfo": server,
                        "instructions": INSTRUCTIONS,
                    }),
                    false,
                )
            }
            "ping" if !request.is_stateless => (json!({}), false),
            "tools/list" => {
                let tools: Vec<Value> = TOOLS.iter().map(Tool::declaration).collect();
                (json!({"tools": tools}), true)
            }
            "prompts/list" => {
                let prompts: Vec<Value> = PROMPTS.iter().map(|prompt| prompt.declaration()).collect();
                (json!({"prompts": prompts}), true)
            }
            "prompts/get" => (self.prompt(&request.params)?.into(), false),
            "resources/list" => (json!({"resources": self.resources()}), true),
            "resources/templates/list" => (json!({"resourceTemplates": []}), true),
            other => return Err(RpcError::new(METHOD_NOT_FOUND, format!("unknown method {other}"))),
        };
        Ok((object(result), is_listing))
    }

    /// Handles a request that may take long.
    fn long(&self, request: &ClientRequest, processes: &Processes) -> Result<Map<String, Value>, RpcError> {
        match request.method.as_str() {
            "tools/call" => Ok(self.tool(&request.params, processes)?.into_object()),
            _ => self.resource(&request.params, processes, request.is_stateless),
        }
    }

    fn handles(&self) -> impl Iterator<Item = (String, &Path)> {
        (1..).zip(&self.dumps).map(|(number, path): (usize, _)| (format!("d{number}"), path.as_path()))
    }

    fn dump(&self, handle: &str) -> Result<&Path, String> {
        let found = self.handles().find(|(known, _)| known == handle).map(|(_, path)| path);
        found.ok_or_else(|| {
            let known: Vec<String> = self.handles().map(|(handle, _)| handle).collect();
            format!("no dump `{handle}`; dumps are {}", known.join(", "))
        })
    }

    fn tool(&self, params: &Map<String, Value>, processes: &Processes) -> Result<CallAnswer, RpcError> {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let names = || TOOLS.iter().map(|tool| tool.name).collect::<Vec<_>>().join(", ");
        let tool = Tool::find(name)
            .ok_or_else(|| RpcError::invalid_params(format!("no tool `{name}`; tools are {}", names())))?;
        let none = Map::new();
        let arguments = match params.get("arguments") {
            None | Some(Value::Null) => &none,
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(RpcError::invalid_params("`arguments` must be an object")),
        };
        // Errors in arguments are reported to the model, which can correct its call.
        let checked = match tool.check(arguments) {
            Ok(checked) => checked,
            Err(why) => return Ok(CallAnswer::error(why)),
        };
        let max_bytes = self.max_bytes(checked);
        if tool.name == "dumps" {
            return Ok(self.list(processes, max_bytes));
        }
        let words = tools::command(tool, checked, self.runner.shows_values, |handle| self.dump(handle));
        Ok(match words {
            Ok(words) => {
                let more = |answer: &Map<String, Value>, is_cut: bool| {
                    let rows = answer.get("rows").and_then(Value::as_array).map_or(0, Vec::len);
                    tool.next_call(arguments, rows, is_cut.then_some(max_bytes))
                };
                self.runner.answer(processes, &words, max_bytes, more)
            }
            Err(why) => CallAnswer::error(why),
        })
    }

    fn max_bytes(&self, arguments: CallArguments<'_>) -> usize {
        let asked = arguments.count("max_bytes").and_then(|count| usize::try_from(count).ok());
        asked.unwrap_or(self.max_bytes)
    }

    /// Returns the list of dumps as the result of a call.
    fn list(&self, processes: &Processes, max_bytes: usize) -> CallAnswer {
        let mut text = String::new();
        let rows: Vec<Value> = self
            .handles()
            .map(|(handle, path)| {
                let name = file_name(path);
                let mut row = object(json!({"handle": handle, "file": name}));
                match self.facts(path, processes) {
                    Ok(mut facts) => {
                        let dump = facts.remove("dump").map(object).unwrap_or_default();
                        row.extend(dump.into_iter().filter(|(key, _)| key != "path"));
                    }
                    Err(why) => {
                        row.insert("error".to_owned(), why.into());
                    }
                }
                text.push_str(&format!("{handle}  {name}\n"));
                row.into()
            })
            .collect();
        // The commands that show the same in a shell.
        let shell = self.dumps.iter().map(|path| Runner::shell_line(&["info".into(), path.into()]));
        let shell = shell.collect::<Vec<_>>().join("; ");
        let mut answer = object(json!({
            "command": "dumps", "rows": rows, "shell_command": shell, "untrusted": UNTRUSTED,
        }));
        let text = budget::fit_text(&text, max_bytes / 4);
        budget::cut(&mut answer, max_bytes.saturating_sub(budget::escaped_length(&text)).saturating_sub(256));
        CallAnswer { text, structured: Some(answer), is_error: false }
    }

    fn facts(&self, path: &Path, processes: &Processes) -> Result<Map<String, Value>, String> {
        self.runner.json(processes, &["info".into(), "--".into(), path.into()])
    }

    fn prompt(&self, params: &Map<String, Value>) -> Result<Map<String, Value>, RpcError> {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let prompt = PROMPTS.iter().find(|prompt| prompt.name == name);
        let prompt = prompt.ok_or_else(|| RpcError::invalid_params(format!("no prompt `{name}`")))?;
        let argument = |name: &str| {
            let handle = params.get("arguments")?.get(name)?.as_str()?;
            self.dump(handle).ok().map(|_| handle.to_owned())
        };
        prompt.fill(argument).map(object).ok_or_else(|| {
            RpcError::invalid_params("an argument is missing, or is not the handle of a dump, such as d1")
        })
    }

    fn resources(&self) -> Vec<Value> {
        let dumps = self.handles().map(|(handle, path)| {
            let name = file_name(path);
            json!({
                "uri": format!("{DUMP_URI}{handle}"), "name": handle, "title": format!("Facts about {name}"),
                "mimeType": "application/json",
            })
        });
        let documents = DOCUMENTS.iter().map(|(uri, name, description, _)| {
            json!({"uri": uri, "name": name, "description": description, "mimeType": "text/markdown"})
        });
        dumps.chain(documents).collect()
    }

    fn resource(
        &self,
        params: &Map<String, Value>,
        processes: &Processes,
        is_stateless: bool,
    ) -> Result<Map<String, Value>, RpcError> {
        let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default();
        let unknown = || RpcError::invalid_params(format!("no resource {uri}"));
        let (whole, part) = match uri.split_once(PART) {
            Some((whole, part)) => (whole, part.parse().map_err(|_| unknown())?),
            None => (uri, 1),
        };
        let document = DOCUMENTS.iter().find(|(known, ..)| *known == whole);
        let most = self.max_bytes.saturating_sub(1024);
        let (kind, text) = match (document, uri.strip_prefix(DUMP_URI)) {
            (Some((.., text)), _) => {
                let (text, has_more) = budget::part(text, part, most).ok_or_else(unknown)?;
                let next = part.saturating_add(1);
                let more = has_more.then(|| format!("\nThe rest: resource {whole}{PART}{next}\n"));
                ("text/markdown", text.to_owned() + &more.unwrap_or_default())
            }
            (None, Some(handle)) => {
                let path = self.dump(handle).map_err(RpcError::invalid_params)?;
                let mut facts = self.facts(path, processes).map_err(RpcError::invalid_params)?;
                // Escaping makes it longer as a text in JSON.
                let mut bytes = most;
                while budget::escaped_length(&wire::json_text(&facts)) > most && bytes > 512 {
                    bytes = bytes / 4 * 3;
                    budget::cut(&mut facts, bytes);
                }
                ("application/json", wire::json_text(&facts))
            }
            (None, None) => return Err(unknown()),
        };
        let mut result = object(json!({"contents": [{"uri": uri, "mimeType": kind, "text": text}]}));
        if is_stateless {
            result.insert("ttlMs".to_owned(), 60_000.into());
            result.insert("cacheScope".to_owned(), "private".into());
        }
        Ok(result)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cli::mcp::CallLimits;

    /// Serves these lines without a dump, and returns the responses.
    fn serve_lines(input: &str) -> Vec<Value> {
        let limits = CallLimits { time: Duration::from_secs(60), memory: None, is_background: false };
        let runner = Runner {
            program: "/nonexistent".into(),
            index_dir: None,
            directory: None,
            shows_values: false,
            limits,
        };
        let server = McpServer { dumps: vec!["/dumps/a.hprof".into()], runner, max_bytes: 16 << 10 };
        let mut out = Vec::new();
        serve(&server, input.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn both_eras_are_answered() {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let answers = serve_lines(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-06-18"}}}}
{{"jsonrpc":"2.0","id":2,"method":"initialize","params":{{"protocolVersion":"1999"}}}}
{{"jsonrpc":"2.0","method":"notifications/initialized"}}

{{"jsonrpc":"2.0","id":"x","method":"ping"}}
{{"jsonrpc":"2.0","id":3,"method":"tools/list"}}
{{"jsonrpc":"2.0","id":4,"method":"server/discover","params":{{{meta}}}}}
{{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{{{meta}}}}}
{{"jsonrpc":"2.0","id":6,"method":"server/discover"}}
{{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{{"name":"why_out_of_memory","arguments":{{"dump":"d1"}}}}}}
{{"jsonrpc":"2.0","id":8,"method":"prompts/get","params":{{"name":"why_out_of_memory","arguments":{{"dump":"ignore all"}}}}}}
"#
        ));
        let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
        assert_eq!(
            ids,
            [
                &json!(1),
                &json!(2),
                &json!("x"),
                &json!(3),
                &json!(4),
                &json!(5),
                &json!(6),
                &json!(7),
                &json!(8)
            ]
        );
        assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(answers[1]["result"]["protocolVersion"], "2025-11-25");
        assert_eq!(answers[2]["result"], json!({}));
        assert_eq!(answers[3]["result"]["tools"].as_array().unwrap().len(), TOOLS.len());
        assert!(answers[3]["result"].get("resultType").is_none());
        assert_eq!(answers[4]["result"]["supportedVersions"], json!([STATELESS]));
        assert_eq!(answers[5]["result"]["resultType"], "complete");
        assert_eq!(answers[6]["error"]["code"], METHOD_NOT_FOUND);
        assert!(answers[7]["result"]["messages"][0]["content"]["text"].as_str().unwrap().contains("dump d1"));
        assert_eq!(answers[8]["error"]["code"], message::INVALID_PARAMS);
    }

    #[test]
    fn a_message_that_is_too_long_is_skipped() {
        let long = format!("\"{}\"\n", "x".repeat(3 << 20));
        let answers = serve_lines(&format!("{long}{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}\n"));
        assert_eq!(answers.len(), 2);
        assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&Value::Null, &json!(1)));
    }
}
