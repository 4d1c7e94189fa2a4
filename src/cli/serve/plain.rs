//! Responses in plain text.

use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use axum::response::IntoResponse;

/// Creates a response with a plain text as its body.
pub(super) fn plain(status: StatusCode, text: &str) -> Response<Body> {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{text}\n")).into_response()
}
