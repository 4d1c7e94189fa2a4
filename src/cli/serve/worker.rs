//! A process that answers questions, one after the other: lines of JSON come in on stdin, lines of JSON and pages go out on
//! stdout.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::cli::Outcome;
use crate::cli::pages::ask::Failure;
use crate::cli::pages::site::Site;
use crate::cli::pages::{self, Reply};
use crate::cli::shared::args::Input;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::context::locked;
use crate::cli::shared::spool::{self, Copied};
use hprof_index::Progress;
use hprof_input::file::TextFile;

/// The variable that makes `serve` a worker.
pub(super) const VARIABLE: &str = "HPROF_CLI_WORKER";

/// What it is of a worker for long questions.
pub(super) const LONG: &str = "long";

/// The number of the baseline; dumps are numbered from 1.
pub(super) const BASELINE: usize = 0;

/// What a worker is asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Question {
    /// Nothing yet: which dumps are copies of pipes. Comes first, if there are some.
    Copies(Vec<Copied>),
    /// To make a page, or its JSON.
    Page { target: String, is_json: bool },
    /// To build what is missing of the index of a dump, by its number.
    Open(usize),
}

/// What a worker says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Said {
    /// How far it is: the stage, and bytes or objects done and to do.
    Progress { stage: String, done: u64, total: u64 },
    /// The summary is there: pages that need no more are ready.
    Summary,
    /// An index is complete; or why it cannot be.
    Opened(Option<String>),
    /// A reply: so many bytes follow.
    Reply { status: u16, content_type: String, location: Option<String>, bytes: usize },
}

/// Progress is told that often at most.
const RATE: Duration = Duration::from_millis(100);

/// Says something to the server. If that is gone, there is nothing left to do.
fn say(said: &Said, body: &[u8]) {
    let mut out = io::stdout().lock();
    let line = serde_json::to_string(said).unwrap_or_default();
    let written = writeln!(out, "{line}").and_then(|()| out.write_all(body)).and_then(|()| out.flush());
    if written.is_err() {
        std::process::exit(0);
    }
}

/// Tells the server how far it is.
#[derive(Default)]
struct Teller(Mutex<Told>);

#[derive(Default)]
struct Told {
    stage: String,
    done: u64,
    total: u64,
    last: Option<Instant>,
}

impl Teller {
    fn with(&self, change: impl FnOnce(&mut Told) -> bool) {
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

/// Answers until stdin ends.
pub(super) fn run(site: &Site, memory: Option<u64>) -> anyhow::Result<Outcome> {
    if let Some(bytes) = memory {
        limit(bytes);
    }
    if std::env::var_os(VARIABLE).is_some_and(|kind| kind == LONG) {
        step_back();
    }
    let cx = RunContext::shell().keeping_dumps(Some(Arc::new(Teller::default())), false);
    let questions = read()?;
    while let Ok(line) = questions.recv() {
        match serde_json::from_str(&line)? {
            Question::Copies(copies) => spool::take_over(copies),
            Question::Page { target, is_json } => answer(&cx, site, &target, is_json),
            Question::Open(number) => {
                let failed = open(&cx, site, number).err().map(|error| format!("{error:#}"));
                say(&Said::Opened(failed), &[]);
            }
        }
    }
    Ok(Outcome::Fine)
}

/// Reads questions on a thread of its own: when the server is gone, so is this process, whatever it is doing.
fn read() -> io::Result<Receiver<String>> {
    let (sender, receiver) = channel();
    std::thread::Builder::new().spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
        std::process::exit(0);
    })?;
    Ok(receiver)
}

/// Limits what this process may allocate. Maps of files do not count.
fn limit(bytes: u64) {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let maximum = getrlimit(Resource::Data).maximum;
        let bytes = maximum.map_or(bytes, |maximum| maximum.min(bytes));
        // Where it cannot be limited the question has the memory of the machine.
        let _ = setrlimit(Resource::Data, Rlimit { current: Some(bytes), maximum });
    }
    #[cfg(not(unix))]
    let _ = bytes;
}

/// Lets other processes have the processors first.
fn step_back() {
    #[cfg(unix)]
    {
        // Where it cannot, all are equal.
        let _ = rustix::process::nice(10);
    }
}

fn answer(cx: &RunContext, site: &Site, target: &str, is_json: bool) {
    let made = std::panic::catch_unwind(|| pages::reply(cx, site, target, is_json));
    let reply = made.unwrap_or_else(|_| {
        let failure = Failure::new("this question ended in a bug of hprof-cli");
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

/// Builds what is missing of an index: first the summary, since some pages need no more.
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
        input.with_graph(cx, |_, _| Ok(()))?;
    }
    Ok(())
}
