//! `serve`: shows dumps as pages in a browser.
//!
//! This process listens and decides about access ([`access`]) and about the order of questions, which are requests for pages
//! ([`questions`], [`turns`]); it never reads a dump. Separate processes build the pages ([`worker`]): the same program, which
//! keeps dumps open between questions. So a question can be cancelled at once, has an enforced memory limit, and cannot break
//! the server.

mod access;
mod assistants;
mod browser;
mod connections;
mod handler;
mod outstanding;
mod patience;
mod plain;
mod questions;
mod turns;
mod worker;
mod workers;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use crate::cli::Outcome;
use crate::cli::mcp::CallLimits;
use crate::cli::memory::ProcessArg;
use crate::cli::pages::site::Site;
use crate::cli::shared::args::{IndexDir, index_dir_word};
use crate::cli::shared::beside_recording::RecordingArg;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::durations::{QuestionTime, duration};
use crate::cli::shared::frameworks::FrameworksArgs;
use crate::cli::shared::hiding;
use crate::cli::shared::worker::is_worker;
use hprof_query::objects::condition::size;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli serve heap.hprof
  hprof-cli serve heap.hprof --baseline yesterday.hprof --open
  hprof-cli serve *.hprof --port 7000 --idle-exit 30m
  hprof-cli serve heap.hprof --share

From another machine, without opening the server to the network:
  ssh -L 7000:127.0.0.1:7000 HOST hprof-cli serve heap.hprof --port 7000";

/// Show dumps as pages in a browser
///
/// Listens on 127.0.0.1 and prints the address, which contains a token that grants access. Every page is also available
/// as JSON: the same path with .json. Pages load no external resources, and only the index is ever written. While the
/// index is built, pages show the progress. Ctrl-C stops the server.
#[derive(Debug, clap::Args)]
#[command(arg = hiding::no_values())]
pub(crate) struct ServeArgs {
    /// Heap dumps and recordings of the HPROF agent
    #[arg(value_name = "DUMP", required = true, help_heading = "Input")]
    dumps: Vec<PathBuf>,

    /// Compare with this older dump
    #[arg(long, value_name = "OLD", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    baseline: Option<PathBuf>,

    #[command(flatten)]
    index: IndexDir,

    #[command(flatten)]
    frameworks: FrameworksArgs,

    #[command(flatten)]
    recording: RecordingArg,

    #[command(flatten)]
    process: ProcessArg,

    /// Port to listen on; 0 for a free one
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Server")]
    port: u16,

    /// Address to listen on; any address other than loopback requires --allow-remote
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST),
        help_heading = "Server"
    )]
    address: IpAddr,

    /// Allow connections from other machines: anyone with the token can read the whole heap, and it is sent
    /// unencrypted
    #[arg(long, help_heading = "Server")]
    allow_remote: bool,

    /// Host name by which clients reach the server, in addition to localhost; with --allow-remote
    #[arg(long, value_name = "NAME", requires = "allow_remote", help_heading = "Server")]
    host: Vec<String>,

    /// Open the address in a browser
    #[arg(long, help_heading = "Server")]
    open: bool,

    /// Print a second address to send to someone else: a link that works once, through a tunnel
    #[arg(long, help_heading = "Server")]
    share: bool,

    /// Exit after this long without requests, for example 30m
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Server")]
    idle_exit: Option<Duration>,

    #[command(flatten)]
    question_time: QuestionTime,

    /// Cancel a query that needs more memory than this [default: a quarter of the machine's memory]
    #[arg(long, value_name = "SIZE", value_parser = size::parse, help_heading = "Limits")]
    question_memory: Option<u64>,

    /// Maximum number of long queries that run at once; others wait
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64), help_heading = "Limits")]
    questions: u16,
}

impl ServeArgs {
    fn site(&self, hides_values: bool) -> Site {
        let index_dir = self.index.path().into_iter().map(index_dir_word);
        let site = Site::new(self.dumps.clone(), self.baseline.clone(), index_dir.collect());
        let recording = self.recording.path().map(Path::to_owned);
        let process = self.process.path().map(Path::to_owned);
        Site { frameworks: self.frameworks.words(), recording, process, hides_values, ..site }
    }
}

pub(crate) fn run(cx: &RunContext, args: &ServeArgs) -> anyhow::Result<Outcome> {
    let site = args.site(cx.hides_values);
    let frameworks = args.frameworks.rules(cx)?;
    if is_worker() {
        return worker::run(cx, &site, frameworks);
    }
    for path in args.dumps.iter().chain(&args.baseline) {
        std::fs::metadata(path).with_context(|| format!("cannot open {}", path.display()))?;
    }
    args.recording.check()?;
    args.process.check()?;
    anyhow::ensure!(
        args.address.is_loopback() || args.allow_remote,
        "{} can be reached from other machines, and the heap may contain secrets; use `ssh -L`, or add --allow-remote",
        args.address
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(serve(cx, args, site))
}

async fn serve(cx: &RunContext, args: &ServeArgs, site: Site) -> anyhow::Result<Outcome> {
    let address = SocketAddr::new(args.address, args.port);
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}; --port 0 selects a free port"))?;
    let address = listener.local_addr()?;
    let access =
        access::Access::new(args.allow_remote, [args.host.clone(), vec![args.address.to_string()]].concat())?;
    let url = format!("http://{address}/?token={}", access.token());
    let limits = questions::QuestionLimits {
        time: args.question_time.time,
        memory: args.question_memory.unwrap_or_else(workers::share_of_memory),
        long: args.questions.into(),
    };
    let questions = questions::QueryService::start(site, limits);
    println(&url);
    if args.share {
        println(&format!("http://{address}/?token={}", access.token_once(true)?));
    }
    help(cx, address, args);
    if args.open {
        browser::open(cx, &format!("http://{address}/?token={}", access.token_once(false)?));
    }
    let limits = CallLimits { time: limits.time, memory: Some(limits.memory), is_background: true };
    let dumps = args.baseline.iter().chain(&args.dumps);
    let assistants = assistants::Assistants::new(dumps, &args.index, limits)?;
    let handler = handler::Handler::new(access, questions, assistants);
    connections::serve(listener, handler, args.idle_exit).await?;
    Ok(Outcome::Fine)
}

/// Prints a line to stdout and flushes it.
fn println(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    // Stdout may be closed.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn help(cx: &RunContext, address: SocketAddr, args: &ServeArgs) {
    let port = address.port();
    if args.allow_remote {
        cx.emit(
            "warning",
            "anyone with this address can read the whole heap, from other machines too; it is sent unencrypted",
        );
    } else {
        cx.emit(
            "note",
            &format!("from another machine: ssh -L {port}:127.0.0.1:{port} HOST, then open the same address"),
        );
    }
    if args.share {
        let tunnel = if args.allow_remote { "" } else { ", who needs the same tunnel" };
        cx.emit("note", &format!("the second address is for someone else{tunnel}; it works once"));
    }
    cx.emit("note", "Ctrl-C stops the server");
}
