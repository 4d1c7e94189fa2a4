//! The worker of `serve`: it handles questions one after the other; dumps stay open between them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cli::pages::ask::Failure;
use crate::cli::pages::site::Site;
use crate::cli::pages::{self, Reply};
use crate::cli::prelude::*;
use crate::cli::shared::worker::{self, ProgressReporter};
use hprof_input::file::TextFile;
use hprof_query::frameworks::Frameworks;

/// Number of the baseline; dumps are numbered from 1.
pub(super) const BASELINE: usize = 0;

/// Message to a worker: a question, or a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum PageQuestion {
    /// Builds a page or its JSON.
    Page { target: String, is_json: bool },
    /// Builds the missing parts of the index of a dump, by its number.
    Open(usize),
}

/// Message from a worker to the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PageMessage {
    /// The summary is complete: pages that do not need the graph can be built.
    Summary,
    /// An index is complete, or cannot be built for this reason.
    Opened(Option<String>),
    /// Head of a reply, whose body follows the message.
    Reply { status: u16, content_type: String, location: Option<String> },
}

/// Handles questions until stdin ends.
pub(super) fn run(cx: &RunContext, site: &Site, frameworks: Frameworks) -> anyhow::Result<Outcome> {
    let cx = cx.keeping_dumps(Some(Arc::new(ProgressReporter::default())), cx.hides_values);
    let cx = cx.with_frameworks(frameworks);
    let questions = worker::questions()?;
    while let Ok(line) = questions.recv() {
        match serde_json::from_str(&line)? {
            PageQuestion::Page { target, is_json } => answer(&cx, site, &target, is_json),
            PageQuestion::Open(number) => {
                let failed = open(&cx, site, number).err().map(|error| format!("{error:#}"));
                worker::send(PageMessage::Opened(failed), &[]);
            }
        }
    }
    Ok(Outcome::Fine)
}

fn answer(cx: &RunContext, site: &Site, target: &str, is_json: bool) {
    let made = std::panic::catch_unwind(|| pages::reply(cx, site, target, is_json));
    let Reply { status, content_type, body, location } = made.unwrap_or_else(|_| {
        let failure = Failure::new("internal error in hprof-cli; please report this bug");
        Reply::json_error(500, &failure)
    });
    worker::send(PageMessage::Reply { status, content_type: content_type.to_owned(), location }, &body);
}

/// Builds the missing parts of an index: the summary first, as it is sufficient for some pages.
fn open(cx: &RunContext, site: &Site, number: usize) -> anyhow::Result<()> {
    let dump = if number == BASELINE { site.baseline.as_deref() } else { site.dump(number) };
    let Some(dump) = dump else { anyhow::bail!("no dump {number}") };
    if TextFile::open(dump).map_err(hprof_index::Error::from)?.is_some() {
        return Ok(());
    }
    let input = Input::of_words(dump, &site.options)?;
    let heap = input.open_quietly(cx)?;
    worker::send(PageMessage::Summary, &[]);
    if heap.summary().facts().heap_dumps.get() > 0 {
        input.with_graph(cx, |_| Ok(()))?;
    }
    Ok(())
}
