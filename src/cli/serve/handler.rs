//! Request handling: access control, pages, responses.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State as Extracted};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::any;
use maud::{DOCTYPE, Markup, html};

use super::access::{Access, DenyReason, Verdict};
use super::assistants::{self, Assistants};
use super::plain::plain;
use super::questions::{AskOutcome, Index, Job, JobState, QueryService, QuestionKey, TaskProgress};
use crate::cli::pages::ask::Failure;
use crate::cli::pages::frame::{self, Page};
use crate::cli::pages::request::ReplyForm;
use crate::cli::pages::site::AvailableData;
use crate::cli::pages::{self, Reply, assets};
use hprof_report::escape;
use hprof_report::number::{group_digits, percent};

/// Time after which a page with progress is shown, which reloads itself.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Seconds until the page with progress reloads.
const AGAIN: &str = "1";
/// Pages that do not need the object graph.
const OF_SUMMARY: &[&str] =
    &["histo", "info", "doctor", "sites", "traces", "cpu", "cputime", "monitors", "flamegraph", "recording"];

/// Content security policy: only resources of this server may be executed, shown or connected to.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Handler for HTTP requests.
#[derive(Debug, Clone)]
pub(super) struct Handler(Arc<Inner>);

/// State shared by the clones of the handler.
#[derive(Debug)]
struct Inner {
    access: Access,
    questions: Arc<QueryService>,
    assistants: Assistants,
}

impl Handler {
    /// Creates a handler for these questions and messages of assistants.
    pub(super) fn new(access: Access, questions: Arc<QueryService>, assistants: Assistants) -> Self {
        Self(Arc::new(Inner { access, questions, assistants }))
    }

    /// Returns the handler as an axum service.
    pub(super) fn router(&self) -> axum::Router {
        axum::Router::new().fallback(any(handle)).with_state(self.clone())
    }
}

async fn handle(Extracted(handler): Extracted<Handler>, request: Request) -> Response<Body> {
    let mut response = handler.0.answer(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    // Contents of the heap must not be stored on disk; the program's own files may be cached for the session.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

impl Inner {
    async fn answer(&self, request: Request) -> Response<Body> {
        let uri = request.uri();
        let (path, query) = (uri.path(), uri.query().unwrap_or_default());
        if path == assistants::PATH {
            return match self.access.judge_program(request.headers()) {
                Verdict::In => self.assistants.answer(request).await,
                Verdict::Out(why) => plain(StatusCode::FORBIDDEN, &format!("403: {}", why.text())),
                Verdict::Exchange { .. } => plain(StatusCode::FORBIDDEN, "403"),
            };
        }
        let token = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "token");
        let token = token.as_ref().filter(|_| path == "/").map(|(_, token)| &**token);
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let token = token.filter(|_| request.method() == Method::GET);
        match self.access.judge(request.headers(), token) {
            Verdict::Out(why) if is_first(request.headers(), "text/html", "application/json") => {
                (StatusCode::FORBIDDEN, [(header::CONTENT_TYPE, pages::HTML)], outside(why).into_string())
                    .into_response()
            }
            Verdict::Out(why) => plain(StatusCode::FORBIDDEN, &format!("403: {}", why.text())),
            Verdict::Exchange { is_from_elsewhere } => {
                let cookie = (header::SET_COOKIE, self.access.set_cookie());
                if is_from_elsewhere {
                    // The cookie is not sent after a navigation from another site, but after one from this page.
                    let again = (header::REFRESH, "0; url=/".to_owned());
                    let content_type = (header::CONTENT_TYPE, pages::HTML.to_owned());
                    return ([cookie, again, content_type], entry_page().into_string()).into_response();
                }
                (StatusCode::SEE_OTHER, [cookie, (header::LOCATION, "/".to_owned())]).into_response()
            }
            Verdict::In => match *request.method() {
                Method::POST if path == "/cancel" => self.cancel(query),
                Method::GET | Method::HEAD => {
                    let wants_json = wants_json(request.headers());
                    let target = target.to_owned();
                    self.page(path, &target, wants_json).await
                }
                _ => plain(StatusCode::METHOD_NOT_ALLOWED, "405: pages support only GET"),
            },
        }
    }

    /// Cancels a question and redirects to the home page; 404 if it has been answered already.
    fn cancel(&self, query: &str) -> Response<Body> {
        let number = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "question");
        let number = number.and_then(|(_, number)| number.parse().ok());
        match number.filter(|number| self.questions.cancel(*number)) {
            Some(_) => (StatusCode::SEE_OTHER, [(header::LOCATION, "/")]).into_response(),
            None => plain(StatusCode::NOT_FOUND, "404: this query has already been answered"),
        }
    }

    async fn page(&self, path: &str, target: &str, wants_json: bool) -> Response<Body> {
        if let Some((content, content_type)) = assets::file(path) {
            let headers =
                [(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "private, max-age=3600")];
            return (headers, content).into_response();
        }
        if path == "/" {
            return self.home();
        }
        let mut parts = path.split('/').skip(1);
        let number: usize = parts.next().and_then(|number| number.parse().ok()).unwrap_or_default();
        let page = parts.next().unwrap_or_default();
        let is_json = wants_json || path.ends_with(".json");
        let (page, _) = ReplyForm::of_path(page);
        let Some(index) = self.questions.index(number) else {
            return sent(&pages::nothing(&self.questions.site, 1, wants_json));
        };
        if let Some(what) = self.questions.replaced_file(number) {
            let error =
                format!("the {what} was replaced or modified after the server started; restart the server");
            return sent(&self.failure_reply(number, &error, is_json));
        }
        match index {
            Index::Failed(error) => return sent(&self.failure_reply(number, &error, is_json)),
            Index::Summary(_) if OF_SUMMARY.contains(&page) && !pages::is_long(target) => {}
            Index::Building(_) | Index::Summary(_) => {
                self.questions.index_changes(number, PATIENCE).await;
                match self.questions.index(number) {
                    Some(Index::Ready) | None => {}
                    Some(Index::Failed(error)) => return sent(&self.failure_reply(number, &error, is_json)),
                    Some(index) => return self.building(number, &index, is_json),
                }
            }
            Index::Ready => {}
        }
        self.answer_question(number, QuestionKey { target: target.to_owned(), is_json }).await
    }

    /// Returns the first page: the page of the only dump, or a list of dumps.
    fn home(&self) -> Response<Body> {
        let count = self.questions.site.dumps.len();
        if count == 1 {
            return (StatusCode::SEE_OTHER, [(header::LOCATION, "/1/")]).into_response();
        }
        let states = (1..=count).filter_map(|number| self.questions.index(number));
        let states = states.map(|index| match index {
            Index::Building(stage) | Index::Summary(stage) => format!("indexing: {}", words(&stage)),
            Index::Ready => "ready".to_owned(),
            Index::Failed(error) => error,
        });
        sent(&pages::dumps(&self.questions.site, &states.collect::<Vec<_>>()))
    }

    async fn answer_question(&self, number: usize, key: QuestionKey) -> Response<Body> {
        let is_json = key.is_json;
        let file = file_name(key.path());
        // Programs and downloads wait; people see progress.
        let waits = is_json || ReplyForm::of_path(key.path()).1 != ReplyForm::Page;
        let sent = |reply: &Reply| as_download(sent(reply), reply, &file);
        let job = match self.questions.ask(key) {
            AskOutcome::Answer(reply) => return sent(&self.readable(number, &reply, is_json)),
            AskOutcome::Full => {
                let mut response = plain(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "503: too many queries at the same time, or too many answers that clients have not read",
                );
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(AGAIN));
                return response;
            }
            AskOutcome::Job(job) => job,
        };
        let deadline = if waits { None } else { Some(tokio::time::Instant::now() + PATIENCE) };
        let mut state = job.state.clone();
        let begin = tokio::time::Instant::now();
        loop {
            // A disconnected client is not always noticed: no request waits longer than a question may take.
            if begin.elapsed() > self.questions.time() {
                return plain(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "503: the time limit was reached while the query was queued or running",
                );
            }
            job.touch();
            let next = Duration::from_secs(1);
            let next = deadline.map_or(next, |deadline| {
                next.min(deadline.saturating_duration_since(tokio::time::Instant::now()))
            });
            let done =
                tokio::time::timeout(next, state.wait_for(|state| matches!(state, JobState::Done(_)))).await;
            match done {
                Ok(Ok(done)) => {
                    if let JobState::Done(reply) = &*done {
                        return sent(&self.readable(number, reply, is_json));
                    }
                }
                Ok(Err(_)) => {
                    return plain(
                        StatusCode::INTERNAL_SERVER_ERROR,
                        "500: internal error: the query was lost",
                    );
                }
                Err(_) if deadline.is_some_and(|deadline| deadline <= tokio::time::Instant::now()) => {
                    return self.waiting(number, &job);
                }
                Err(_) => {}
            }
        }
    }

    /// Converts a reply to a page if it is the JSON reason for cancelling a question, and the client wants a page.
    fn readable(&self, number: usize, reply: &Reply, is_json: bool) -> Reply {
        if is_json || reply.content_type != pages::JSON {
            return reply.clone();
        }
        let failure: serde_json::Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let of = |key: &str| failure.get(key).and_then(|text| text.as_str()).map(str::to_owned);
        let failure = Failure { hint: of("hint"), ..Failure::new(of("error").unwrap_or_default()) };
        let mut page = Page::for_failure("", "No answer", &failure, &self.questions.site.links(number));
        page.status = reply.status;
        self.document(number, &page)
    }

    fn document(&self, number: usize, page: &Page) -> Reply {
        let has = AvailableData::UNKNOWN;
        let markup = frame::document(&self.questions.site, number, has, page);
        Reply {
            status: page.status,
            content_type: pages::HTML,
            body: Arc::new(markup.into_string().into_bytes()),
            location: None,
        }
    }

    fn failure_reply(&self, number: usize, error: &str, is_json: bool) -> Reply {
        let failure = Failure::new(error);
        if is_json {
            return Reply::json_error(500, &failure);
        }
        let mut page =
            Page::for_failure("", "This dump cannot be opened", &failure, &self.questions.site.links(number));
        page.status = 500;
        self.document(number, &page)
    }

    /// Returns a page about a question whose reply is not ready; the page reloads itself.
    fn waiting(&self, number: usize, job: &Job) -> Response<Body> {
        let stage = match &*job.state.borrow() {
            JobState::Waiting => {
                TaskProgress { name: "waiting for other queries".to_owned(), ..TaskProgress::default() }
            }
            JobState::Running(stage) => stage.clone(),
            JobState::Done(_) => TaskProgress::default(),
        };
        let seconds = job.since.elapsed().as_secs();
        let body = html! {
            (progress(&stage))
            p { "For " (seconds) " s. The page appears when it is ready." }
            form method="post" action={ "/cancel?question=" (job.number) } { button { "Cancel" } }
        };
        self.refresh_page(number, "Working on it", body)
    }

    /// Returns the page of a dump whose index is being built.
    fn building(&self, number: usize, index: &Index, is_json: bool) -> Response<Body> {
        let (stage, has_summary) = match index {
            Index::Building(stage) => (stage, false),
            Index::Summary(stage) => (stage, true),
            Index::Ready | Index::Failed(_) => return plain(StatusCode::SEE_OTHER, ""),
        };
        if is_json {
            let document = serde_json::json!({
                "state": "indexing", "stage": stage.name, "done": stage.done, "total": stage.total,
            });
            let mut response = (
                StatusCode::SERVICE_UNAVAILABLE,
                [(header::CONTENT_TYPE, pages::JSON)],
                format!("{document}\n"),
            )
                .into_response();
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(AGAIN));
            return response;
        }
        let body = html! {
            (progress(stage))
            p { "The index is built once; the page appears when it is ready." }
            @if has_summary {
                p { "Already available: "
                    a href={ "/" (number) "/histo" } { "Histogram" } " · "
                    a href={ "/" (number) "/info" } { "Info" } " · "
                    a href={ "/" (number) "/doctor" } { "Doctor" }
                }
            }
        };
        self.refresh_page(number, "Indexing the dump", body)
    }

    fn refresh_page(&self, number: usize, title: &str, body: Markup) -> Response<Body> {
        let page = Page { status: 202, ..Page::new("", title, body) };
        let mut response = sent(&self.document(number, &page));
        let headers = response.headers_mut();
        headers.insert(header::REFRESH, HeaderValue::from_static(AGAIN));
        // Its form is sent with an Origin header, which `no-referrer` would set to null.
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
        response
    }
}

/// Describes progress in words.
fn words(stage: &TaskProgress) -> String {
    let name = if stage.name.is_empty() { "working" } else { &stage.name };
    let name = escape::text(name);
    if stage.total == 0 {
        name.into_owned()
    } else {
        format!("{name}, {}", percent(stage.done.min(stage.total), stage.total))
    }
}

fn progress(stage: &TaskProgress) -> Markup {
    html! {
        p role="status" { (words(stage)) }
        @if stage.total > 0 {
            progress max=(stage.total) value=(stage.done.min(stage.total)) aria-label="Progress" {
                (group_digits(stage.done)) " of " (group_digits(stage.total))
            }
        } @else {
            progress aria-label="Progress" {}
        }
    }
}

/// Returns the page for rejected clients. It contains nothing about the dump and loads nothing, as further requests would
/// be rejected as well.
fn outside(why: DenyReason) -> Markup {
    let (what, then) = match why {
        DenyReason::Host | DenyReason::NoHost => (
            "Unknown host name",
            "The server answers under 127.0.0.1 and localhost. From another machine: ssh -L PORT:127.0.0.1:PORT HOST, and open \
             the address that hprof-cli printed; other names must be given when it is started (--allow-remote, --host).",
        ),
        DenyReason::Site => (
            "Links on other sites are not accepted",
            "Copy the address into the address bar. hprof-cli serve --share prints an address that you can send to \
             someone else; it works once.",
        ),
        DenyReason::Token | DenyReason::Bearer => (
            "This address does not grant access",
            "Open the complete address that hprof-cli serve printed when it was started: it ends with ?token= and a \
             long number, which the address bar no longer shows. With --share it also prints an address for someone \
             else, which works once. If you have neither, start the server again.",
        ),
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            head { (frame::head(what, "hprof-cli")) }
            body { main { h1 { (what) } p { (then) } p { "403: " (why.text()) } } }
        }
    }
}

/// Returns the page that forwards a client admitted by a link on another site.
fn entry_page() -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { (frame::head("Signing in", "hprof-cli")) }
            body { main { h1 { "Signing in" } p { a href="/" { "Continue" } } } }
        }
    }
}

/// Returns the file name of a download, based on the name of its page.
fn file_name(path: &str) -> String {
    let page = path.split('/').nth(2).unwrap_or_default();
    let (page, _) = ReplyForm::of_path(page);
    let name: String = page.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    format!("{}.csv", if name.is_empty() { "answer" } else { &name })
}

/// Adds a header that makes a browser download the response, if it is CSV.
fn as_download(mut response: Response<Body>, reply: &Reply, file: &str) -> Response<Body> {
    if reply.content_type == pages::CSV
        && let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{file}\""))
    {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
    response
}

/// Returns whether a client prefers JSON to HTML, by the order in its Accept header.
fn wants_json(headers: &HeaderMap) -> bool {
    is_first(headers, "application/json", "text/html")
}

/// Returns whether the Accept header contains the type `wanted`, and `other` not before it.
fn is_first(headers: &HeaderMap, wanted: &str, other: &str) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let place = |wanted: &str| accept.split(',').position(|one| one.trim().split(';').next() == Some(wanted));
    match (place(wanted), place(other)) {
        (Some(wanted), Some(other)) => wanted < other,
        (wanted, _) => wanted.is_some(),
    }
}

/// The bytes of a reply as an HTTP body, which connections share without copying.
struct SharedBody(Arc<Vec<u8>>);

impl SharedBody {
    fn bytes(reply: &Reply) -> Bytes {
        Bytes::from_owner(Self(reply.body.clone()))
    }
}

impl AsRef<[u8]> for SharedBody {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn sent(reply: &Reply) -> Response<Body> {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response =
        (status, [(header::CONTENT_TYPE, reply.content_type)], Body::from(SharedBody::bytes(reply)))
            .into_response();
    if let Some(location) = &reply.location
        && let Ok(location) = HeaderValue::from_str(location)
    {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_names_first_is_wanted() {
        let of = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            wants_json(&headers)
        };
        assert!(of("application/json") && of("application/json;q=0.9, text/html"));
        assert!(!of("*/*") && !of("text/html,application/xhtml+xml,application/json;q=0.9"));
    }
}
