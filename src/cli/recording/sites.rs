//! `sites`: where objects were allocated.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

use crate::query::classes::pattern::{ClassPattern, MethodPattern};
use crate::query::recordings::profile::binary::Want;
use crate::query::recordings::profile::{Origin, Profile, Site, Sites};
use crate::query::recordings::sites::{self, Answer, Question, Row, SortBy};
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, grouped};
use crate::report::{Format, csv};

use crate::cli::Outcome;
use crate::cli::shared::args::{self, Output};
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::output;
use crate::cli::shared::recording::{Recorded, RecordedInput};
use crate::cli::shared::session::Source;
use crate::cli::shared::stack::{self, FrameOut, StackArgs};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli sites java.hprof
  hprof-cli sites java.hprof.txt --stack --depth 5 --top 10
  hprof-cli sites java.hprof 'byte[]' --method 'com.acme.**' --sort allocated
  hprof-cli sites java.hprof --format json | jq '.rows[0]'";

/// Rows of a table when nothing is said.
const USUAL_TOP: usize = 30;

/// Allocation sites: classes and the stack traces that allocated their objects
///
/// Of what the HPROF agent recorded (ALLOC SITES, or SITES of a text). Of dumps without it the objects in the heap dump
/// are counted by class and trace; then what was allocated and freed before is not known.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: RecordedInput,

    /// Only sites of classes that match one of these: `java.util.HashMap$Node`, `byte[]`, `com.acme.**`, `*Cache`
    #[arg(value_name = "PATTERN", help_heading = "Filter")]
    patterns: Vec<ClassPattern>,

    /// Only sites with a frame of a method that matches one of these: `com.acme.Main.run`, `HashMap.put*`, `com.acme.**`
    #[arg(long, value_name = "PATTERN", help_heading = "Filter")]
    method: Vec<MethodPattern>,

    /// Only sites with these traces, by serial number
    #[arg(long, value_name = "N,...", value_delimiter = ',', help_heading = "Filter")]
    trace: Vec<u32>,

    /// Leave out sites whose live bytes are below this part of all live bytes, as the agent does with 0.0001
    #[arg(long, value_name = "RATIO", default_value = "0", value_parser = args::ratio, help_heading = "Filter")]
    cutoff: f64,

    /// Order of the rows [default: as in the file, which is by live bytes]
    #[arg(long, value_name = "KEY", help_heading = "Output")]
    sort: Option<SortArg>,

    /// Only the first N rows; 0 for all [default: 30 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    #[command(flatten)]
    stack: StackArgs,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortArg {
    /// Most live bytes first
    Live,
    /// Most live instances first
    LiveInstances,
    /// Most allocated bytes first
    Allocated,
    /// Most allocated instances first
    AllocatedInstances,
    /// By name of the class
    Class,
    /// By serial number of the trace
    Trace,
}

impl SortArg {
    fn key(self) -> SortBy {
        match self {
            Self::Live => SortBy::Live,
            Self::LiveInstances => SortBy::LiveInstances,
            Self::Allocated => SortBy::Allocated,
            Self::AllocatedInstances => SortBy::AllocatedInstances,
            Self::Class => SortBy::Class,
            Self::Trace => SortBy::Trace,
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let format = args.output.format();
    let mut recorded = args.input.open(Want { sites: true, traces: true })?;
    args.input.count_sites(&mut recorded)?;
    let profile = &recorded.profile;
    let question = Question {
        classes: args.patterns.clone(),
        methods: args.method.clone(),
        traces: args.trace.clone(),
        cutoff: args.cutoff,
        sort_by: args.sort.map(SortArg::key),
        top: args::top(args.top, format, USUAL_TOP),
    };
    let answer = profile.sites.as_ref().map(|sites| sites::sites(sites, &profile.traces, &question));
    notes(&recorded, args);
    let answer = answer.unwrap_or_default();
    let mut out = output::stdout();
    match format {
        Format::Table => table(&mut out, profile, &answer, args)?,
        Format::Csv => {
            let columns = args.stack.columns(RowOut::<String>::COLUMNS);
            let frames =
                |row: &Row<'_>| args.stack.of(&profile.traces, row.site.trace).map(|stack| stack.cell());
            let rows = answer.rows.iter().map(|row| RowOut::new(row, object::cell, frames(row)));
            csv::write_flat(&mut out, &columns, rows)?;
        }
        Format::Json => {
            let frames =
                |row: &Row<'_>| args.stack.of(&profile.traces, row.site.trace).map(|stack| stack.json());
            let rows = (answer.rows.iter())
                .map(|row| RowOut::<Vec<FrameOut<'_>>>::new(row, str::to_owned, frames(row)));
            recorded.json(&mut out, "sites", Streamed::new(rows), more(profile.sites.as_ref(), &answer))?;
        }
    }
    output::finish(out)?;
    Ok(recorded.outcome(!answer.rows.is_empty()))
}

fn notes(recorded: &Recorded, args: &Args) {
    match recorded.profile.sites.as_ref().map(|sites| sites.origin) {
        Some(Origin::Recorded) => {}
        Some(Origin::Objects) => args.input.note(
            "no allocation sites were recorded; these are counted over the objects that the dump holds, allocated = live",
        ),
        None => args.input.note("no allocation sites: the HPROF agent records them with heap=sites or heap=all"),
    }
}

/// What JSON has beside the rows.
fn more(sites: Option<&Sites>, answer: &Answer<'_>) -> serde_json::Value {
    let matching = &answer.matching;
    let total = sites.and_then(|sites| sites.total.as_ref()).map(|total| {
        json!({
            "live_bytes": total.live_bytes,
            "live_instances": total.live_instances,
            "allocated_bytes": total.allocated_bytes,
            "allocated_instances": total.allocated_instances,
        })
    });
    json!({
        "total": total,
        "matching": {
            "rows": matching.rows,
            "live_bytes": matching.live_bytes,
            "live_instances": matching.live_instances,
            "allocated_bytes": matching.allocated_bytes,
            "allocated_instances": matching.allocated_instances,
        },
        "left_out": matching.rows.saturating_sub(answer.rows.len() as u64),
        "origin": sites.map(|sites| match sites.origin {
            Origin::Recorded => "recorded",
            Origin::Objects => "objects",
        }),
        "ordered_by": sites.map(|sites| if sites.by_allocation { "allocated_bytes" } else { "live_bytes" }),
        "date": sites.and_then(|sites| sites.date.as_deref()),
    })
}

#[derive(Serialize)]
struct RowOut<F> {
    rank: u64,
    class: String,
    trace: u32,
    live_bytes: u64,
    live_instances: u64,
    allocated_bytes: u64,
    allocated_instances: u64,
    self_percent: f64,
    accumulated_percent: f64,
    method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<F>,
}

impl<F> RowOut<F> {
    const COLUMNS: &[&str] = &[
        "rank",
        "class",
        "trace",
        "live_bytes",
        "live_instances",
        "allocated_bytes",
        "allocated_instances",
        "self_percent",
        "accumulated_percent",
        "method",
        "frames",
    ];

    fn new(row: &Row<'_>, text: AsText, frames: Option<F>) -> Self {
        let site = row.site;
        Self {
            rank: row.rank,
            class: text(&site.class),
            trace: site.trace,
            live_bytes: site.live_bytes,
            live_instances: site.live_instances,
            allocated_bytes: site.allocated_bytes,
            allocated_instances: site.allocated_instances,
            self_percent: site.self_percent,
            accumulated_percent: site.accumulated_percent,
            method: row.method.as_deref().map(text),
            frames,
        }
    }
}

fn table(out: &mut dyn Write, profile: &Profile, answer: &Answer<'_>, args: &Args) -> anyhow::Result<()> {
    // Over objects allocated is live: the columns would say the same twice.
    let is_counted = profile.sites.as_ref().is_some_and(|sites| sites.origin == Origin::Objects);
    let mut columns = vec![
        ("rank", Align::Right),
        ("self", Align::Right),
        ("accum", Align::Right),
        ("live", Align::Right),
        ("objects", Align::Right),
    ];
    if !is_counted {
        columns.extend([("allocated", Align::Right), ("objects", Align::Right)]);
    }
    columns.extend([("trace", Align::Right), ("class and method", Align::Left)]);
    let mut table = Builder::new(&columns);
    let figures = |live: (u64, u64), allocated: (u64, u64)| {
        let mut cells = vec![grouped(live.0), grouped(live.1)];
        if !is_counted {
            cells.extend([grouped(allocated.0), grouped(allocated.1)]);
        }
        cells
    };
    for row in &answer.rows {
        let site: &Site = row.site;
        let mut cells = vec![
            row.rank.to_string(),
            stack::percent(site.self_percent),
            stack::percent(site.accumulated_percent),
        ];
        cells.extend(figures(
            (site.live_bytes, site.live_instances),
            (site.allocated_bytes, site.allocated_instances),
        ));
        let method = row.method.as_ref().map(|method| format!(" in {method}")).unwrap_or_default();
        cells.extend([site.trace.to_string(), format!("{}{method}", site.class)]);
        table.row(cells);
    }
    if profile.sites.is_some() {
        let sum = &answer.matching;
        let mut cells = vec![String::new(); 3];
        cells.extend(figures(
            (sum.live_bytes, sum.live_instances),
            (sum.allocated_bytes, sum.allocated_instances),
        ));
        cells.extend([String::new(), "total".to_owned()]);
        table.total(cells);
    }
    let serials = answer.rows.iter().map(|row| row.site.trace);
    args.stack.table(out, table, output::style(&args.output), &profile.traces, serials)?;
    Ok(output::left_out(out, answer.rows.len(), answer.matching.rows, "sites")?)
}
