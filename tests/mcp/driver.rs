//! A client in both eras of the protocol: over the pipes of a process, and over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value as Json, json};

/// Longer than any answer takes on any machine.
const PATIENCE: Duration = Duration::from_secs(240);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// With `initialize`.
    Handshake,
    /// Each request names its version.
    Stateless,
}

impl Era {
    pub const BOTH: [Self; 2] = [Self::Handshake, Self::Stateless];

    /// Returns a request.
    pub fn request(self, id: &Json, method: &str, mut params: Json) -> Json {
        if self == Self::Stateless {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }
}

/// A process that is spoken to.
pub struct Client {
    child: Child,
    pub stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    era: Era,
    next: u64,
}

impl Client {
    pub fn start(mut command: Command, era: Era) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        let mut client = Self { child, stdin, lines, era, next: 1 };
        match era {
            Era::Handshake => {
                let about = json!({"name": "test", "version": "1"});
                let params =
                    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about});
                let answer = client.ask("initialize", params);
                assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
                client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
            }
            Era::Stateless => {
                let answer = client.ask("server/discover", json!({}));
                assert_eq!(answer["result"]["supportedVersions"], json!(["2026-07-28"]), "{answer}");
            }
        }
        client
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&mut self, message: &Json) {
        self.send_line(message.to_string().as_bytes());
    }

    pub fn send_line(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(&[line, b"\n"].concat()).and_then(|()| stdin.flush()).unwrap();
    }

    /// Returns the next message of the server.
    pub fn hear(&mut self) -> Json {
        let line = self.hear_line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    pub fn hear_line(&mut self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("the server answers")
    }

    /// Returns a message that is there already.
    pub fn hear_now(&mut self, wait: Duration) -> Option<Json> {
        self.lines.recv_timeout(wait).ok().map(|line| serde_json::from_str(&line).unwrap())
    }

    /// Sends a request, and returns its ID.
    pub fn begin(&mut self, method: &str, params: Json) -> Json {
        let id = json!(self.next);
        self.next += 1;
        let request = self.era.request(&id, method, params);
        self.send(&request);
        id
    }

    /// Sends a request, and returns the answer.
    pub fn ask(&mut self, method: &str, params: Json) -> Json {
        let id = self.begin(method, params);
        let answer = self.hear();
        assert_eq!(answer["id"], id, "{answer}");
        if self.era == Era::Stateless && answer.get("result").is_some() {
            assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        }
        answer
    }

    /// Calls a tool, and returns its result.
    pub fn call(&mut self, tool: &str, arguments: Json) -> Json {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer["result"].is_object(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// Closes stdin, and returns the exit code and stderr.
    pub fn end(mut self) -> (Option<i32>, String) {
        drop(self.stdin.take());
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server over HTTP.
pub struct HttpServer {
    child: Child,
    pub port: u16,
    pub token: String,
}

impl HttpServer {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let (port, token) =
            url.trim().strip_prefix("http://127.0.0.1:").unwrap().split_once("/?token=").unwrap();
        Self { child, port: port.parse().unwrap(), token: token.to_owned() }
    }

    /// Sends a document, and returns status and body.
    pub fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head =
            format!("{method} /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        (status, if is_chunked { unchunked(body) } else { body.to_owned() })
    }

    /// Sends a request with the headers that it needs.
    pub fn ask(&self, era: Era, request: &Json) -> (u16, String) {
        let host = format!("127.0.0.1:{}", self.port);
        let bearer = format!("Bearer {}", self.token);
        let method = request["method"].as_str().unwrap_or_default();
        let name =
            request["params"]["name"].as_str().or(request["params"]["uri"].as_str()).unwrap_or_default();
        let mut headers = vec![
            ("Host", host.as_str()),
            ("Authorization", &bearer),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        if era == Era::Stateless {
            headers.extend([
                ("MCP-Protocol-Version", "2026-07-28"),
                ("Mcp-Method", method),
                ("Mcp-Name", name),
            ]);
        }
        self.send("POST", &headers, &request.to_string())
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole += &rest[..length];
        body = rest.get(length + 2..).unwrap_or_default();
    }
    whole
}
