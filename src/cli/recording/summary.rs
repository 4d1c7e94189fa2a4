//! `summary`: what a profiler recorded, in figures.

use std::io::Write;

use serde_json::{Value, json};

use crate::index::Heap;
use crate::query::classes::histogram::objects_by_kind;
use crate::query::recordings::profile::binary::Want;
use crate::query::recordings::profile::text::TextReport;
use crate::query::recordings::sites::Totals;
use crate::query::recordings::summary::{self, SiteCount};
use crate::report::table::{Align, Builder, grouped};
use crate::report::{Format, csv};

use crate::cli::Outcome;
use crate::cli::shared::args::Output;
use crate::cli::shared::output;
use crate::cli::shared::recording::{Recorded, RecordedFile, RecordedInput};
use crate::cli::shared::session::Source;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli summary java.hprof
  hprof-cli summary java.hprof.txt --run 1
  hprof-cli summary java.hprof --format json | jq '.rows[0].heap_summaries'";

/// What the HPROF agent recorded: HEAP SUMMARY, CONTROL SETTINGS, and how much there is of everything
///
/// `info` says what a heap dump is and holds; this is of what the agent adds to it, and of texts.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: RecordedInput,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let opened = args.input.open(Want { sites: true, traces: false })?;
    let facts = Facts::new(&opened);
    let mut out = output::stdout();
    match args.output.format() {
        Format::Table => table(&mut out, &opened, &facts, args)?,
        Format::Csv => csv::write_nested(&mut out, [row(&opened, &facts)])?,
        Format::Json => opened.json(&mut out, "summary", [row(&opened, &facts)], json!({}))?,
    }
    output::finish(out)?;
    Ok(opened.outcome(true))
}

/// Figures, wherever they come from.
struct Facts {
    recorded: summary::Recorded,
    heap: Option<HeapFacts>,
    /// The run that was read, and runs in the file: of texts.
    runs: Option<(u32, u32)>,
    not_understood: u64,
}

/// What the HEAP DUMP counts up to.
struct HeapFacts {
    objects: u64,
    /// As the first line of a text's HEAP DUMP states them.
    stated: Option<(Option<u64>, Option<u64>)>,
    /// Class objects.
    classes: u64,
    roots: u64,
}

impl Facts {
    fn new(opened: &Recorded) -> Self {
        let mut recorded = summary::recorded(&opened.profile);
        match &opened.file {
            RecordedFile::Binary(heap) => {
                // The traces themselves are not read for this.
                recorded.traces = heap.summary().traces().len() as u64;
                recorded.frames = heap.summary().frames().len() as u64;
                Self { recorded, heap: binary_heap(heap), runs: None, not_understood: 0 }
            }
            RecordedFile::Text { report, .. } => Self {
                recorded,
                heap: text_heap(report),
                runs: Some((report.run, report.runs)),
                not_understood: report.not_understood,
            },
        }
    }
}

fn binary_heap(heap: &Heap) -> Option<HeapFacts> {
    let summary = heap.summary();
    if summary.facts().heap_dumps.get() == 0 {
        return None;
    }
    let objects @ [_, _, _, classes] = objects_by_kind(summary);
    Some(HeapFacts {
        objects: objects.iter().sum(),
        stated: None,
        classes,
        roots: summary.roots().len() as u64,
    })
}

fn text_heap(report: &TextReport) -> Option<HeapFacts> {
    let heap = report.heap.as_ref()?;
    Some(HeapFacts {
        objects: heap.class_objects.saturating_add(heap.instances).saturating_add(heap.arrays),
        stated: Some((heap.stated_objects, heap.stated_bytes)),
        classes: heap.class_objects,
        roots: heap.roots,
    })
}

/// Bits of CONTROL SETTINGS.
const ALLOCATION_TRACES: u32 = 1;
const CPU_SAMPLING: u32 = 2;

fn row(opened: &Recorded, facts: &Facts) -> Value {
    let (profile, recorded) = (&opened.profile, &facts.recorded);
    let summaries: Vec<Value> = (profile.heap_summaries.iter())
        .map(|summary| {
            json!({
                "live_bytes": summary.live_bytes,
                "live_instances": summary.live_instances,
                "allocated_bytes": summary.allocated_bytes,
                "allocated_instances": summary.allocated_instances,
            })
        })
        .collect();
    let settings: Vec<Value> = (profile.settings.iter())
        .map(|settings| {
            json!({
                "allocation_traces": settings.flags & ALLOCATION_TRACES != 0,
                "cpu_sampling": settings.flags & CPU_SAMPLING != 0,
                "depth": settings.depth,
            })
        })
        .collect();
    let figures = |sums: &Totals| {
        json!({
            "live_bytes": sums.live_bytes,
            "live_instances": sums.live_instances,
            "allocated_bytes": sums.allocated_bytes,
            "allocated_instances": sums.allocated_instances,
        })
    };
    json!({
        "created": profile.created,
        "format": Some(profile.format.as_str()).filter(|format| !format.is_empty()),
        "run": facts.runs.map(|(run, _)| run),
        "runs": facts.runs.map(|(_, runs)| runs),
        "heap_summaries": summaries,
        "control_settings": settings,
        "traces": recorded.traces,
        "frames": recorded.frames,
        "threads_started": recorded.threads_started,
        "threads_ended": recorded.threads_ended,
        "sites": recorded.sites.map(|sites| json!({
            "rows": sites.listed.rows,
            "listed": figures(&sites.listed),
            "total": sites.stated.as_ref().map(figures),
        })),
        "cpu_samples": recorded.samples.map(|(total, rows)| json!({ "rows": rows, "samples": total })),
        "cpu_time": recorded.cpu_time.map(|(total, rows)| json!({ "rows": rows, "total_ms": total })),
        "calls": recorded.calls,
        "contention": recorded.contention.map(|(total, rows)| json!({ "rows": rows, "total_ms": total })),
        "monitor_dumps": recorded.monitor_dumps,
        "waits": recorded.waits,
        "heap_dump": facts.heap.as_ref().map(|heap| json!({
            "objects": heap.objects,
            "classes": heap.classes,
            "roots": heap.roots,
            "stated_objects": heap.stated.and_then(|(objects, _)| objects),
            "stated_bytes": heap.stated.and_then(|(_, bytes)| bytes),
        })),
        "lines_not_understood": facts.not_understood,
    })
}

fn table(out: &mut dyn Write, opened: &Recorded, facts: &Facts, args: &Args) -> anyhow::Result<()> {
    let (profile, recorded) = (&opened.profile, &facts.recorded);
    let mut table = Builder::new(&[("", Align::Left), ("", Align::Left)]);
    let mut line = |key: &str, value: String| table.row([key, &value]);
    let format = if profile.format.is_empty() { "not stated" } else { &profile.format };
    line("format", format.to_owned());
    line("created", profile.created.clone().unwrap_or_else(|| "not stated".to_owned()));
    if let Some((run, runs)) = facts.runs
        && runs > 1
    {
        line("run", format!("{run} of {runs}"));
    }
    for summary in &profile.heap_summaries {
        let live = (u64::from(summary.live_bytes), u64::from(summary.live_instances));
        line("HEAP SUMMARY", format!("live {}", bytes(live)));
        line("", format!("allocated {}", bytes((summary.allocated_bytes, summary.allocated_instances))));
    }
    for settings in &profile.settings {
        let on = |bit: u32| if settings.flags & bit != 0 { "on" } else { "off" };
        line(
            "CONTROL SETTINGS",
            format!(
                "allocation traces {}, CPU sampling {}, depth {}",
                on(ALLOCATION_TRACES),
                on(CPU_SAMPLING),
                settings.depth
            ),
        );
    }
    line("traces", format!("{}, of {} frames", grouped(recorded.traces), grouped(recorded.frames)));
    let (started, ended) = (grouped(recorded.threads_started), grouped(recorded.threads_ended));
    line("threads", format!("{started} started, {ended} of them ended"));
    match &recorded.sites {
        None => line("sites", "none".to_owned()),
        Some(sites) => site_lines(sites, &mut line),
    }
    line("CPU samples", counted(recorded.samples.map(|(all, rows)| (grouped(all), rows)), "traces"));
    line("CPU time", counted(recorded.cpu_time.map(milliseconds), "traces"));
    line("calls", number(recorded.calls));
    line("contention", counted(recorded.contention.map(milliseconds), "traces"));
    line("monitor dumps", number(recorded.monitor_dumps));
    line("waits", number(recorded.waits));
    match &facts.heap {
        None => line("heap dump", "none".to_owned()),
        Some(heap) => {
            line(
                "heap dump",
                format!(
                    "{} objects, {} of them classes, {} roots",
                    grouped(heap.objects),
                    grouped(heap.classes),
                    grouped(heap.roots)
                ),
            );
            if let Some((Some(objects), bytes)) = heap.stated {
                let bytes = bytes.map(|bytes| format!(", {} bytes", grouped(bytes))).unwrap_or_default();
                line("  stated", format!("{} objects{bytes}", grouped(objects)));
            }
        }
    }
    if facts.not_understood > 0 {
        line("not understood", format!("{} lines", grouped(facts.not_understood)));
    }
    Ok(table.write(out, output::style(&args.output))?)
}

/// Bytes and objects in words.
fn bytes((bytes, objects): (u64, u64)) -> String {
    format!("{} bytes in {} objects", grouped(bytes), grouped(objects))
}

fn site_lines(sites: &SiteCount, line: &mut dyn FnMut(&str, String)) {
    let live = |sums: &Totals| bytes((sums.live_bytes, sums.live_instances));
    let allocated = |sums: &Totals| bytes((sums.allocated_bytes, sums.allocated_instances));
    line("sites", grouped(sites.listed.rows));
    line("  live", live(&sites.listed));
    line("  allocated", allocated(&sites.listed));
    if let Some(stated) = &sites.stated {
        line("of all sites", format!("live {}", live(stated)));
        line("", format!("allocated {}", allocated(stated)));
    }
}

fn milliseconds((total, rows): (i64, u64)) -> (String, u64) {
    (u64::try_from(total).map_or_else(|_| format!("{total} ms"), |ms| format!("{} ms", grouped(ms))), rows)
}

fn counted(of: Option<(String, u64)>, what: &str) -> String {
    of.map_or_else(|| "none".to_owned(), |(total, rows)| format!("{total} in {} {what}", grouped(rows)))
}

fn number(count: u64) -> String {
    if count == 0 { "none".to_owned() } else { grouped(count) }
}
