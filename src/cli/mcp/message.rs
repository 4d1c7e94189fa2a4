//! Messages of the protocol: JSON-RPC 2.0, one per line, for versions with and without a handshake.
//!
//! Until 2025-11-25 a client begins with `initialize`. Since 2026-07-28 there is no session: each request names its version in
//! `_meta`, and each result states that it is complete, and for how long it may be cached.

use serde_json::{Map, Value, json};

use super::budget;
use super::wire::json_text;

/// Versions of the protocol that begin with a handshake, oldest first.
pub(crate) const HANDSHAKE: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The version of the protocol without a handshake.
pub(crate) const STATELESS: &str = "2026-07-28";

/// Key of `_meta` that contains the version of the protocol.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// Error code of JSON-RPC: the message is not valid JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;
/// Error code of JSON-RPC: the message is not a valid request.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// Error code of JSON-RPC: the method does not exist.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// Error code of JSON-RPC: the parameters are invalid.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// Error code of the protocol: the version is not supported.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;
#[cfg(feature = "serve")]
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// Error code of this server: it is already running its maximum number of calls.
pub(crate) const BUSY: i64 = -32000;

/// Maximum length of an error message as JSON: it may quote the request.
pub(super) const MAX_ERROR: usize = 3 << 10;

/// Maximum length of a request's ID as JSON.
const MAX_ID: usize = 1 << 10;

/// An error response of the protocol: code and message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Box<Value>>,
}

impl RpcError {
    /// Creates an error with a code and a message.
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: budget::fit_text(&message.into(), MAX_ERROR), data: None }
    }

    /// Creates an error about invalid parameters.
    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }
}

/// ID of a request: a string or an integer, of at most [`MAX_ID`] bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RequestId(String);

impl RequestId {
    fn from_value(value: &Value) -> Option<Self> {
        let is_id = value.is_string() || value.is_i64() || value.is_u64();
        Some(value.to_string()).filter(|text| is_id && text.len() <= MAX_ID).map(Self)
    }

    /// Returns the ID as it was sent.
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or(Value::Null)
    }
}

/// A message from a client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ClientMessage {
    Request(ClientRequest),
    /// The client no longer waits for the result of a request.
    Cancelled(RequestId),
    /// A notification or response that needs no action.
    Other,
}

/// A request from a client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClientRequest {
    pub(crate) id: RequestId,
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
    pub(crate) is_stateless: bool,
    /// Token that identifies the request in progress notifications.
    pub(crate) progress_token: Option<Value>,
}

impl ClientRequest {
    /// Returns whether the request may take long.
    pub(crate) fn is_long(&self) -> bool {
        matches!(self.method.as_str(), "tools/call" | "resources/read")
    }

    /// Returns the name or URI that the request is about, which HTTP clients repeat in a header.
    #[cfg(feature = "serve")]
    pub(crate) fn name(&self) -> Option<&str> {
        let key = if self.method == "resources/read" { "uri" } else { "name" };
        let has_name = matches!(self.method.as_str(), "tools/call" | "prompts/get" | "resources/read");
        self.params.get(key).filter(|_| has_name).and_then(Value::as_str)
    }
}

/// Parses a message. An error contains the ID of the request, if the ID can be read.
pub(crate) fn parse(line: &[u8]) -> Result<ClientMessage, (Option<RequestId>, RpcError)> {
    let null = |code, message: &str| (None, RpcError::new(code, message));
    let value: Value =
        serde_json::from_slice(line).map_err(|error| null(PARSE_ERROR, &format!("not JSON: {error}")))?;
    let Value::Object(mut message) = value else {
        return Err(null(INVALID_REQUEST, "a message must be an object; batches are not supported"));
    };
    let id = message.get("id").and_then(RequestId::from_value);
    let known = id.clone();
    let wrong = |message: &str| (known.clone(), RpcError::new(INVALID_REQUEST, message));
    if message.get("jsonrpc") != Some(&Value::from("2.0")) {
        return Err(wrong("`jsonrpc` must be \"2.0\""));
    }
    let Some(method) = message.get("method") else {
        let is_answer = message.contains_key("result") || message.contains_key("error");
        return if is_answer { Ok(ClientMessage::Other) } else { Err(wrong("`method` is missing")) };
    };
    let Some(method) = method.as_str().map(str::to_owned) else {
        return Err(wrong("`method` must be a string"));
    };
    let params = match message.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err((known, RpcError::invalid_params("`params` must be an object"))),
    };
    let Some(id) = id else {
        if message.contains_key("id") {
            return Err(wrong("`id` must be a string or an integer of at most 1 KiB"));
        }
        let cancelled = params.get("requestId").filter(|_| method == "notifications/cancelled");
        return Ok(cancelled
            .and_then(RequestId::from_value)
            .map_or(ClientMessage::Other, ClientMessage::Cancelled));
    };
    let meta = params.get("_meta").and_then(Value::as_object);
    let version = meta.and_then(|meta| meta.get(VERSION_KEY));
    if let Some(version) = version {
        let fail = |error| Err((Some(id.clone()), error));
        if !meta.is_some_and(|meta| meta.contains_key(CAPABILITIES_KEY)) {
            return fail(RpcError::invalid_params(format!("`_meta` lacks {CAPABILITIES_KEY}")));
        }
        match version.as_str() {
            None => return fail(RpcError::invalid_params(format!("{VERSION_KEY} must be a string"))),
            Some(STATELESS) => {}
            Some(other) => {
                let data = json!({"supported": [STATELESS], "requested": budget::fit_text(other, MAX_ERROR)});
                let error = RpcError::new(UNSUPPORTED_VERSION, "unsupported protocol version");
                return fail(RpcError { data: Some(Box::new(data)), ..error });
            }
        }
    }
    let is_token =
        |token: &&Value| (token.is_string() || token.is_number()) && token.to_string().len() <= MAX_ID;
    let progress_token = meta.and_then(|meta| meta.get("progressToken")).filter(is_token).cloned();
    let is_stateless = version.is_some();
    Ok(ClientMessage::Request(ClientRequest { id, method, params, is_stateless, progress_token }))
}

/// Returns a line with the result of a request. If `is_listing` is set, clients without a session may cache it for a minute.
pub(super) fn result(request: &ClientRequest, mut result: Map<String, Value>, is_listing: bool) -> String {
    if request.is_stateless {
        result.insert("resultType".to_owned(), "complete".into());
        if is_listing {
            result.insert("ttlMs".to_owned(), 60_000.into());
            result.insert("cacheScope".to_owned(), "private".into());
        }
        result.insert("_meta".to_owned(), json!({SERVER_KEY: server_info()}));
    }
    line(&json!({"jsonrpc": "2.0", "id": request.id.value(), "result": result}))
}

/// Returns a line with an error.
pub(crate) fn error(id: Option<&RequestId>, error: &RpcError) -> String {
    let id = id.map_or(Value::Null, RequestId::value);
    let mut object = json!({"code": error.code, "message": error.message});
    if let (Some(data), Some(object)) = (&error.data, object.as_object_mut()) {
        object.insert("data".to_owned(), Value::clone(data));
    }
    line(&json!({"jsonrpc": "2.0", "id": id, "error": object}))
}

/// Returns a line with the progress of a request.
pub(super) fn progress(token: &Value, seconds: u64, text: &str) -> String {
    let params = json!({"progressToken": token, "progress": seconds, "message": text});
    line(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
}

/// Returns the name and version of this program.
pub(super) fn server_info() -> Value {
    json!({"name": "hprof-cli", "title": "hprof-cli: Java heap dumps", "version": env!("CARGO_PKG_VERSION")})
}

fn line(message: &Value) -> String {
    json_text(message) + "\n"
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse_line(text: &str) -> Result<ClientMessage, (Value, i64)> {
        let id = |id: Option<RequestId>| id.map_or(Value::Null, |id| id.value());
        parse(text.as_bytes()).map_err(|(known, error)| (id(known), error.code))
    }

    #[test]
    fn errors_have_the_id_of_their_request() {
        for (text, id, code) in [
            ("", Value::Null, PARSE_ERROR),
            ("{", Value::Null, PARSE_ERROR),
            ("[]", Value::Null, INVALID_REQUEST),
            ("\"x\"", Value::Null, INVALID_REQUEST),
            (r#"{"id":7,"method":"ping"}"#, 7.into(), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":"a"}"#, "a".into(), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Value::Null, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Value::Null, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, Value::Null, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":2}"#, 1.into(), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, 1.into(), INVALID_PARAMS),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
                1.into(),
                INVALID_PARAMS,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2030-01-01",
                "io.modelcontextprotocol/clientCapabilities":{}}}}"#,
                1.into(),
                UNSUPPORTED_VERSION,
            ),
        ] {
            assert_eq!(parse_line(text), Err((id, code)), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(parse_line(&deep), Err((Value::Null, PARSE_ERROR)));
    }

    #[test]
    fn ids_come_back_as_they_were_sent() {
        for id in ["\"a\\u0000\\\"b\"", "0", "-1", "18446744073709551615", "\"1\""] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            let Ok(ClientMessage::Request(request)) = parse_line(&text) else { panic!("{text}") };
            assert_eq!(request.id.value(), serde_json::from_str::<Value>(id).unwrap());
            assert!(!request.is_stateless);
        }
        assert_ne!(RequestId::from_value(&"1".into()), RequestId::from_value(&1.into()));
    }

    #[test]
    fn a_line_controls_nothing() {
        let hostile = json!({"a\u{202e}": "\u{1b}[2J\u{9b}\u{2066}\n\u{7f}\u{e0001}é"});
        let line = line(&hostile);
        assert!(line.trim_end().chars().all(|c| c == 'é' || (' '..='~').contains(&c)), "{line}");
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), hostile);
    }

    #[test]
    fn notifications_and_answers_need_no_answer() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, ClientMessage::Other),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, ClientMessage::Other),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#,
                ClientMessage::Cancelled(RequestId::from_value(&3.into()).unwrap()),
            ),
        ] {
            assert_eq!(parse_line(text), Ok(expected), "{text}");
        }
    }
}
