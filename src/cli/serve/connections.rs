//! Accepting connections: limits on their number, timeouts, and closing the most idle ones.
//!
//! Uses hyper directly, as `axum::serve` has neither a timeout for headers nor a limit of connections.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use super::handler::Handler;
use super::patience::TimeoutStream;
use crate::cli::shared::context::lock;

/// Maximum time for a client to send the head of the first or next request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Maximum size of the head of a request in bytes.
const HEAD_BYTES: usize = 64 << 10;
/// Maximum number of header fields.
const HEAD_FIELDS: usize = 100;
/// Maximum number of connections. Beyond it, the connection that was idle longest is closed.
const MAX_CONNECTIONS: usize = 256;

/// An open connection.
struct Connection {
    task: AbortHandle,
    /// Number of requests in progress.
    busy: Arc<AtomicUsize>,
}

/// Accepts connections until the server has been idle for `idle_exit`.
pub(super) async fn serve(
    listener: TcpListener,
    handler: Handler,
    idle_exit: Option<Duration>,
) -> anyhow::Result<()> {
    let clock = Instant::now();
    let last = Arc::new(AtomicU64::new(0));
    let open: Arc<Mutex<VecDeque<Connection>>> = Arc::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = idle(idle_exit, clock, &last, &open) => return Ok(()),
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            // Out of file descriptors, or the client is gone: others may still connect.
            Err(_) => {
                make_room(&open, MAX_CONNECTIONS / 2);
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        make_room(&open, MAX_CONNECTIONS - 1);
        let busy = Arc::new(AtomicUsize::new(0));
        let (counted, seen) = (busy.clone(), last.clone());
        let router = handler.router();
        let service = tower_service_fn(router, counted, move || {
            seen.store(u64::try_from(clock.elapsed().as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        });
        let task = tokio::spawn(async move {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .max_buf_size(HEAD_BYTES)
                .max_headers(HEAD_FIELDS)
                .keep_alive(true)
                .serve_connection(TokioIo::new(TimeoutStream::new(stream)), service);
            // An error of one client does not concern others.
            let _ = connection.await;
        });
        lock(&open).push_back(Connection { task: task.abort_handle(), busy });
    }
}

/// Wraps the router for hyper and counts active requests.
fn tower_service_fn(
    router: axum::Router,
    busy: Arc<AtomicUsize>,
    seen: impl Fn() + Clone + Send + 'static,
) -> impl hyper::service::Service<
    hyper::Request<hyper::body::Incoming>,
    Response = axum::response::Response,
    Error = std::convert::Infallible,
    Future: Send,
> {
    let service = TowerToHyperService::new(router);
    hyper::service::service_fn(move |request| {
        let (counted, seen) = (Busy::new(&busy), seen.clone());
        let answer = hyper::service::Service::call(&service, request);
        async move {
            let answer = answer.await;
            // Rejected requests do not keep the server alive.
            if answer.as_ref().is_ok_and(|answer| answer.status() != hyper::StatusCode::FORBIDDEN) {
                seen();
            }
            drop(counted);
            answer
        }
    })
}

/// Guard that counts a request as active until it is completed or dropped.
struct Busy(Arc<AtomicUsize>);

impl Busy {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Closes connections until at most `most` are open: first the oldest without an active request, then the oldest.
fn make_room(open: &Mutex<VecDeque<Connection>>, most: usize) {
    let mut open = lock(open);
    open.retain(|connection| !connection.task.is_finished());
    while open.len() > most {
        let idle = open.iter().position(|connection| connection.busy.load(Ordering::Relaxed) == 0);
        if let Some(connection) = open.remove(idle.unwrap_or(0)) {
            connection.task.abort();
        }
    }
}

/// Completes after no request was active for `patience`; without `patience`, never.
async fn idle(
    patience: Option<Duration>,
    clock: Instant,
    last: &AtomicU64,
    open: &Mutex<VecDeque<Connection>>,
) {
    let Some(patience) = patience else { return std::future::pending().await };
    loop {
        let since = clock.elapsed().saturating_sub(Duration::from_millis(last.load(Ordering::Relaxed)));
        let is_busy = lock(open).iter().any(|connection| connection.busy.load(Ordering::Relaxed) > 0);
        if since >= patience && !is_busy {
            return;
        }
        let next = if is_busy { Duration::from_secs(1) } else { patience.saturating_sub(since) };
        tokio::time::sleep(next.max(Duration::from_millis(50))).await;
    }
}
