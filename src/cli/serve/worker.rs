//! A process that answers questions one after the other: JSON lines arrive on stdin, JSON lines and pages leave on
//! stdout.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::cli::Outcome;
use crate::cli::pages::ask::Failure;
use crate::cli::pages::site::Site;
use crate::cli::pages::{self, Reply};
use crate::cli::shared::args::Input;
use crate::cli::shared::child::{self, WORKER};
use crate::cli::shared::context::RunContext;
use crate::cli::shared::context::locked;
use crate::cli::shared::spool::{self, Copied};
use hprof_index::Progress;
use hprof_input::file::TextFile;
use hprof_query::frameworks::Frameworks;

/// Value of [`WORKER`] for a worker that answers long questions.
pub(super) const LONG: &str = "long";

/// Number of the baseline; dumps are numbered from 1.
pub(super) const BASELINE: usize = 0;

/// Message to a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum WorkerRequest {
    /// The dumps that are copies of pipes. Sent first, if there are any.
    Copies(Vec<Copied>),
    /// Builds a page or its JSON.
    Page { target: String, is_json: bool },
    /// Builds the missing parts of the index of a dump, by its number.
    Open(usize),
}

/// Message from a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Said {
    /// Progress: the stage, and bytes or objects done and in total.
    Progress { stage: String, done: u64, total: u64 },
    /// The summary is complete: pages that need no more are ready.
    Summary,
    /// An index is complete, or the reason why it cannot be built.
    Opened(Option<String>),
    /// A reply, followed by its bytes.
    Reply { status: u16, content_type: String, location: Option<String>, bytes: usize },
}

/// Minimum time between two progress messages.
const RATE: Duration = Duration::from_millis(100);

/// Sends a message to the server. If the server is gone, the worker ends.
fn say(said: &Said, body: &[u8]) {
    let mut out = io::stdout().lock();
    let line = serde_json::to_string(said).unwrap_or_default();
    let written = writeln!(out, "{line}").and_then(|()| out.write_all(body)).and_then(|()| out.flush());
    if written.is_err() {
        std::process::exit(0);
    }
}

/// Sends progress to the server.
#[derive(Default)]
struct Teller(Mutex<ProgressTold>);

#[derive(Default)]
struct ProgressTold {
    stage: String,
    done: u64,
    total: u64,
    last: Option<Instant>,
}

impl Teller {
    fn with(&self, change: impl FnOnce(&mut ProgressTold) -> bool) {
        let mut told = locked(&self.0);
        let is_new = change(&mut told);
        if is_new || told.last.is_none_or(|last| last.elapsed() >= RATE) {
            told.last = Some(Instant::now());
            say(&Said::Progress { stage: told.stage.clone(), done: told.done, total: told.total }, &[]);
        }
    }
}

impl Progress for Teller {
    fn begin(&self, stage: &str, total: u64) {
        self.with(|told| {
            let is_new = told.stage != stage;
            (told.stage, told.done, told.total) = (stage.to_owned(), 0, total);
            is_new
        });
    }

    fn advance(&self, bytes: u64) {
        self.with(|told| {
            told.done = told.done.saturating_add(bytes);
            false
        });
    }

    fn end(&self) {}
}

/// Answers questions until stdin ends.
pub(super) fn run(
    cx: &RunContext,
    site: &Site,
    memory: Option<u64>,
    frameworks: Frameworks,
) -> anyhow::Result<Outcome> {
    if let Some(bytes) = memory {
        child::limit(bytes);
    }
    if std::env::var_os(WORKER).is_some_and(|kind| kind == LONG) {
        child::step_back();
    }
    let cx = cx.keeping_dumps(Some(Arc::new(Teller::default())), cx.hides_values);
    let cx = cx.with_frameworks(frameworks);
    let questions = read()?;
    while let Ok(line) = questions.recv() {
        match serde_json::from_str(&line)? {
            WorkerRequest::Copies(copies) => spool::take_over(copies),
            WorkerRequest::Page { target, is_json } => answer(&cx, site, &target, is_json),
            WorkerRequest::Open(number) => {
                let failed = open(&cx, site, number).err().map(|error| format!("{error:#}"));
                say(&Said::Opened(failed), &[]);
            }
        }
    }
    Ok(Outcome::Fine)
}

/// Reads questions on a separate thread.
fn read() -> io::Result<Receiver<String>> {
    let (sender, receiver) = channel();
    child::end_with_stdin(move |line| sender.send(line).is_ok())?;
    Ok(receiver)
}

fn answer(cx: &RunContext, site: &Site, target: &str, is_json: bool) {
    let made = std::panic::catch_unwind(|| pages::reply(cx, site, target, is_json));
    let reply = made.unwrap_or_else(|_| {
        let failure = Failure::new("hprof-cli failed on this question; this is a bug");
        Reply::json_error(500, &failure)
    });
    let said = Said::Reply {
        status: reply.status,
        content_type: reply.content_type.to_owned(),
        location: reply.location,
        bytes: reply.body.len(),
    };
    say(&said, &reply.body);
}

/// Builds the missing parts of an index: the summary first, as some pages need no more.
fn open(cx: &RunContext, site: &Site, number: usize) -> anyhow::Result<()> {
    let dump = if number == BASELINE { site.baseline.as_deref() } else { site.dump(number) };
    let Some(dump) = dump else { anyhow::bail!("there is no dump {number}") };
    if TextFile::open(dump).map_err(hprof_index::Error::from)?.is_some() {
        return Ok(());
    }
    let input = Input::of_words(dump, &site.options)?;
    let heap = input.open_quietly(cx)?;
    say(&Said::Summary, &[]);
    if heap.summary().facts().heap_dumps.get() > 0 {
        input.with_graph(cx, |_| Ok(()))?;
    }
    Ok(())
}
