//! `index --estimate`: what building an index takes, and whether there is so much.

use std::io::IsTerminal;

use serde::Serialize;

use crate::index::open::estimate::Estimate;
use crate::index::{Heap, Options};
use crate::report::table::{Align, Builder, grouped};
use crate::report::{Format, csv, escape, json};

use crate::cli::Outcome;
use crate::cli::shared::args::{Input, Output};
use crate::cli::shared::messages;
use crate::cli::shared::output;
use crate::cli::shared::progress_bar::Bar;

/// Work that takes longer is announced.
const LONG_MS: u64 = 10_000;

#[derive(Serialize)]
struct Out {
    fits: bool,
    built: bool,
    objects: u64,
    objects_exact: bool,
    dump_bytes: u64,
    threads: usize,
    time_least_ms: u64,
    time_most_ms: u64,
    memory_least_bytes: u64,
    memory_best_bytes: u64,
    memory_available_bytes: Option<u64>,
    memory_limit: Option<String>,
    index_least_bytes: u64,
    index_most_bytes: u64,
    scratch_least_bytes: u64,
    scratch_most_bytes: u64,
    disk_free_bytes: Option<u64>,
    index_dir: String,
}

const COLUMNS: [&str; 18] = [
    "fits",
    "built",
    "objects",
    "objects_exact",
    "dump_bytes",
    "threads",
    "time_least_ms",
    "time_most_ms",
    "memory_least_bytes",
    "memory_best_bytes",
    "memory_available_bytes",
    "memory_limit",
    "index_least_bytes",
    "index_most_bytes",
    "scratch_least_bytes",
    "scratch_most_bytes",
    "disk_free_bytes",
    "index_dir",
];

fn ask(input: &Input, options: &Options) -> anyhow::Result<Estimate> {
    let bar = Bar::new(input.quiet);
    Ok(input.with_threads(|| Heap::estimate(input.path(), options, &bar))??)
}

/// Shows the estimate.
pub(crate) fn run(input: &Input, shown: &Output, options: &Options) -> anyhow::Result<Outcome> {
    let estimate = ask(input, options)?;
    let row = Out {
        fits: estimate.fits(),
        built: estimate.is_built,
        objects: estimate.objects,
        objects_exact: estimate.objects_exact,
        dump_bytes: estimate.dump_bytes,
        threads: estimate.threads,
        time_least_ms: estimate.time_ms.0,
        time_most_ms: estimate.time_ms.1,
        memory_least_bytes: estimate.memory_bytes.0,
        memory_best_bytes: estimate.memory_bytes.1,
        memory_available_bytes: estimate.memory_available.map(|there| there.bytes),
        memory_limit: estimate.memory_available.map(|there| there.limit.to_string()),
        index_least_bytes: estimate.index_bytes.0,
        index_most_bytes: estimate.index_bytes.1,
        scratch_least_bytes: estimate.scratch_bytes.0,
        scratch_most_bytes: estimate.scratch_bytes.1,
        disk_free_bytes: estimate.disk_free_bytes,
        index_dir: estimate.dir.to_string_lossy().into_owned(),
    };
    let mut out = output::stdout();
    match shown.format() {
        Format::Json => {
            let path = input.path().to_string_lossy();
            let file_bytes = std::fs::metadata(input.path()).ok().map(|metadata| metadata.len());
            let dump = json::Dump { path, file_bytes, ..json::Dump::default() };
            json::write(&mut out, "index", &dump, [&row], serde_json::json!({}))?;
        }
        Format::Csv => {
            let row = Out { index_dir: escape::cell(&row.index_dir).into_owned(), ..row };
            csv::write_flat(&mut out, &COLUMNS, [row])?;
        }
        Format::Table => {
            let columns = [
                ("", Align::Left),
                ("at least", Align::Right),
                ("up to", Align::Right),
                ("there is", Align::Right),
                ("", Align::Left),
            ];
            let mut table = Builder::new(&columns);
            let unknown = || "?".to_owned();
            let seconds = |ms: u64| format!("{}.{} s", ms / 1000, ms % 1000 / 100);
            let about = if row.objects_exact { "" } else { "about " };
            let found = format!("{about}{} objects, {} threads", grouped(row.objects), row.threads);
            table.row(["time", &seconds(row.time_least_ms), &seconds(row.time_most_ms), "", &found]);
            let there = row.memory_available_bytes.map_or_else(unknown, grouped);
            let limit = row.memory_limit.as_deref().unwrap_or_default();
            let (least, best) = (grouped(row.memory_least_bytes), grouped(row.memory_best_bytes));
            table.row(["memory, bytes", &least, &best, &there, limit]);
            let free = row.disk_free_bytes.map_or_else(unknown, grouped);
            let (least, most) = (grouped(row.index_least_bytes), grouped(row.index_most_bytes));
            table.row(["index, bytes", &least, &most, &free, &row.index_dir]);
            let (least, most) = (grouped(row.scratch_least_bytes), grouped(row.scratch_most_bytes));
            table.row(["scratch files, bytes", &least, &most, "", "there too, while it is built"]);
            table.write(&mut out, output::style(shown))?;
        }
    }
    output::finish(out)?;
    if estimate.is_built && !input.quiet {
        messages::line("note", "the index is there already: nothing is to be built");
    }
    Ok(if estimate.fits() { Outcome::Fine } else { Outcome::No })
}

/// Says on a terminal what a long build will take. What is wrong is said by the build itself.
pub(crate) fn note(input: &Input, options: &Options) {
    if input.quiet || !std::io::stderr().is_terminal() {
        return;
    }
    let Ok(estimate) = ask(input, options) else { return };
    let (least, most) = estimate.time_ms;
    if estimate.is_built || most < LONG_MS {
        return;
    }
    let disk = estimate.index_bytes.1.saturating_add(estimate.scratch_bytes.1);
    let text = format!(
        "about {} objects: {} to {} s, up to {} MB of memory and {} MB on the disk",
        grouped(estimate.objects),
        least / 1000,
        most / 1000,
        estimate.memory_available.map_or(u64::MAX, |there| there.bytes).min(estimate.memory_bytes.1)
            / 1_000_000,
        disk / 1_000_000
    );
    messages::line("note", &text);
}
