//! `/mcp`: the protocol of [`crate::cli::mcp`] over HTTP, for clients that connect to a running server.
//!
//! Each request is independent, in all versions of the protocol: there are no sessions, and any number of clients. Values are
//! always hidden. The response to a call whose client requests progress is a stream of events, any other is one document; a
//! client that closes the connection cancels its call.

use std::convert::Infallible;
use std::io::{self, Write};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, Response, StatusCode, header};
use axum::response::IntoResponse;
use hyper::body::Frame;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::plain::plain;
use crate::cli::mcp::message::{self, ClientRequest, RpcError};
use crate::cli::mcp::{
    self, CallLimits, ClientMessage, MAX_BYTES, MAX_CALLS, MAX_LINE, McpServer, Processes,
};
use crate::cli::pages::JSON;
use crate::cli::shared::args::IndexDir;

/// Path of the endpoint.
pub(super) const PATH: &str = "/mcp";

/// Maximum time for a client to send a message.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Handler for messages of assistants.
#[derive(Debug)]
pub(super) struct Assistants {
    server: Arc<McpServer>,
    calls: Arc<Semaphore>,
}

impl Assistants {
    /// Creates a handler for calls about these dumps.
    pub(super) fn new<'d>(
        dumps: impl Iterator<Item = &'d PathBuf> + Clone,
        index: &IndexDir,
        limits: CallLimits,
    ) -> anyhow::Result<Self> {
        let server = Arc::new(mcp::server(dumps, index, false, MAX_BYTES, limits)?);
        Ok(Self { server, calls: Arc::new(Semaphore::new(MAX_CALLS)) })
    }

    /// Responds to a request that contains a message.
    pub(super) async fn answer(&self, request: Request) -> Response<Body> {
        if *request.method() != Method::POST {
            let allow = [(header::ALLOW, "POST")];
            return (allow, plain(StatusCode::METHOD_NOT_ALLOWED, "405: send messages with POST"))
                .into_response();
        }
        let (head, body) = request.into_parts();
        let kind = text(&head.headers, &header::CONTENT_TYPE).split(';').next().unwrap_or_default();
        if !kind.trim().eq_ignore_ascii_case("application/json") {
            return plain(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "415: a message must have the content type application/json",
            );
        }
        let most = usize::try_from(MAX_LINE).unwrap_or(usize::MAX);
        let Ok(read) = tokio::time::timeout(BODY_TIME, to_bytes(body, most)).await else {
            return plain(StatusCode::REQUEST_TIMEOUT, "408: the message did not arrive in time");
        };
        let Ok(body) = read else {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "413: the message is longer than 1 MiB");
        };
        match message::parse(&body) {
            Err((id, error)) => document(StatusCode::BAD_REQUEST, message::error(id.as_ref(), &error)),
            Ok(ClientMessage::Request(request)) => self.request(&head.headers, request).await,
            // A client without a session cancels by closing the connection.
            Ok(ClientMessage::Cancelled(_) | ClientMessage::Other) => StatusCode::ACCEPTED.into_response(),
        }
    }

    async fn request(&self, headers: &HeaderMap, request: ClientRequest) -> Response<Body> {
        if let Err(error) = agree(headers, &request) {
            return document(StatusCode::BAD_REQUEST, message::error(Some(&request.id), &error));
        }
        if !request.is_long() {
            let line = self.server.at_once(&request);
            return document(status(&request, &line), line);
        }
        let Ok(turn) = self.calls.clone().try_acquire_owned() else {
            let error = RpcError::new(
                message::BUSY,
                format!("{MAX_CALLS} calls are already running; try again later"),
            );
            return document(StatusCode::SERVICE_UNAVAILABLE, message::error(Some(&request.id), &error));
        };
        let processes = Arc::new(Processes::default());
        let cancels = CancelOnDrop(processes.clone());
        let (sender, mut lines) = unbounded_channel();
        let has_progress = request.progress_token.is_some();
        let (server, asked) = (self.server.clone(), request.clone());
        tokio::task::spawn_blocking(move || {
            server.in_time(&asked, &processes, LineSender(sender));
            drop(turn);
        });
        if has_progress {
            let events = Body::new(Events { lines, _cancels: cancels });
            return ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response();
        }
        let line = lines.recv().await;
        drop(cancels);
        match line {
            Some(line) => document(status(&request, &line), line),
            None => plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                "500: internal error in hprof-cli; please report this bug",
            ),
        }
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Checks that the headers match the message: intermediaries may have read only the headers.
fn agree(headers: &HeaderMap, request: &ClientRequest) -> Result<(), RpcError> {
    let given = |name| text(headers, &HeaderName::from_static(name));
    let version = given("mcp-protocol-version");
    if !request.is_stateless {
        return match version {
            "" => Ok(()),
            version if message::HANDSHAKE.contains(&version) => Ok(()),
            _ => Err(RpcError::new(message::INVALID_REQUEST, "unsupported MCP-Protocol-Version")),
        };
    }
    let differs =
        |name: &str| RpcError::new(message::HEADER_MISMATCH, format!("{name} differs from the message"));
    if version != message::STATELESS {
        return Err(differs("MCP-Protocol-Version"));
    }
    if given("mcp-method") != request.method {
        return Err(differs("Mcp-Method"));
    }
    // Names of tools, prompts and resources are ASCII, which no client encodes.
    match request.name() {
        Some(name) if name != given("mcp-name") => Err(differs("Mcp-Name")),
        _ => Ok(()),
    }
}

/// Returns the HTTP status of a response: only versions of the protocol without a handshake use error statuses.
fn status(request: &ClientRequest, line: &str) -> StatusCode {
    if !request.is_stateless {
        return StatusCode::OK;
    }
    let answer: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
    let code = answer.get("error").and_then(|error| error.get("code")).and_then(serde_json::Value::as_i64);
    match code {
        Some(message::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(message::INVALID_REQUEST | message::INVALID_PARAMS | message::UNSUPPORTED_VERSION) => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}

fn document(status: StatusCode, line: String) -> Response<Body> {
    (status, [(header::CONTENT_TYPE, JSON)], line).into_response()
}

/// Guard that ends the processes of a call, when its client has disconnected or the call is completed.
struct CancelOnDrop(Arc<Processes>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// A writer that sends each line to the client.
struct LineSender(UnboundedSender<String>);

impl Write for LineSender {
    /// Sends the bytes: each write is a complete line.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(bytes).into_owned();
        self.0.send(line).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// HTTP body that sends lines as events.
struct Events {
    lines: UnboundedReceiver<String>,
    _cancels: CancelOnDrop,
}

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let event =
            |line: String| Frame::data(Bytes::from(format!("event: message\ndata: {}\n\n", line.trim_end())));
        self.lines.poll_recv(context).map(|line| line.map(|line| Ok(event(line))))
    }
}
