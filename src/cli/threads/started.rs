//! `threads --started`: the threads that were started while a profiler ran.

use std::io::Write;

use serde::Serialize;
use serde_json::json;

use crate::query::recordings::profile::StartedThread;
use crate::query::recordings::profile::binary::Want;
use crate::query::recordings::started_threads::{self, Answer, Question};
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, Style};
use crate::report::{Format, csv, json::object_id};

use crate::cli::Outcome;
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::output;
use crate::cli::shared::recording::RecordedInput;
use crate::cli::shared::session::Source;

pub(crate) fn run(
    input: &RecordedInput,
    question: &Question,
    format: Format,
    style: Style,
) -> anyhow::Result<Outcome> {
    let recorded = input.open(Want::default())?;
    if recorded.profile.threads.is_empty() {
        input.note("the file does not say which threads were started: only the HPROF agent records it");
    }
    let answer = started_threads::threads(&recorded.profile.threads, question);
    let mut out = output::stdout();
    match format {
        Format::Table => table(&mut out, &answer, style)?,
        Format::Csv => {
            let rows = answer.rows.iter().map(|thread| RowOut::new(thread, object::cell));
            csv::write_flat(&mut out, RowOut::COLUMNS, rows)?;
        }
        Format::Json => {
            let rows = answer.rows.iter().map(|thread| RowOut::new(thread, str::to_owned));
            let left_out = answer.matching.saturating_sub(answer.rows.len() as u64);
            let more = json!({ "matching": { "rows": answer.matching }, "left_out": left_out });
            recorded.json(&mut out, "threads", Streamed::new(rows), more)?;
        }
    }
    output::finish(out)?;
    Ok(recorded.outcome(!answer.rows.is_empty()))
}

#[derive(Serialize)]
struct RowOut {
    thread: u32,
    object: String,
    name: String,
    group: String,
    parent_group: Option<String>,
    trace: Option<u32>,
    ended: bool,
}

impl RowOut {
    const COLUMNS: &[&str] = &["thread", "object", "name", "group", "parent_group", "trace", "ended"];

    fn new(thread: &StartedThread, text: AsText) -> Self {
        Self {
            thread: thread.serial,
            object: object_id(thread.object),
            name: text(&thread.name),
            group: text(&thread.group),
            parent_group: thread.parent_group.as_deref().map(text),
            trace: trace(thread),
            ended: thread.ended,
        }
    }
}

/// The trace where a thread was started, if it is known.
fn trace(thread: &StartedThread) -> Option<u32> {
    Some(thread.trace).filter(|trace| *trace != 0)
}

fn table(out: &mut dyn Write, answer: &Answer<'_>, style: Style) -> anyhow::Result<()> {
    let mut table = Builder::new(&[
        ("thread", Align::Right),
        ("object", Align::Left),
        ("trace", Align::Right),
        ("ended", Align::Left),
        ("group", Align::Left),
        ("name", Align::Left),
    ]);
    for thread in &answer.rows {
        let group = match &thread.parent_group {
            Some(parent) => format!("{} in {parent}", thread.group),
            None => thread.group.clone(),
        };
        table.row([
            thread.serial.to_string(),
            object_id(thread.object),
            trace(thread).map(|trace| trace.to_string()).unwrap_or_default(),
            if thread.ended { "yes" } else { "no" }.to_owned(),
            group,
            thread.name.clone(),
        ]);
    }
    table.write(out, style)?;
    Ok(output::left_out(out, answer.rows.len(), answer.matching, "threads")?)
}
