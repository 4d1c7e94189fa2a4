//! `sites`: allocation sites.

use crate::cli::prelude::*;
use crate::cli::shared::recording::{RecordedFile, RecordedInput, RecordedProfile, WITH_FLIGHT};
use crate::cli::shared::stack::{StackArgs, StackedOutput};
use crate::cli::shared::{args, facts};
use hprof_query::naming::pattern::{ClassPattern, MethodPattern};
use hprof_query::recordings::profile::binary::Want;
use hprof_query::recordings::profile::flight::SiteEvent;
use hprof_query::recordings::profile::flight::mallocs::UnfreedMemory;
use hprof_query::recordings::profile::{Origin, Sites, Traces};
use hprof_query::recordings::sites::{self, RankedSite, SiteOrder, SiteQuery, Totals};
use hprof_query::recordings::stack_filter::StackFilter;
use hprof_report::number::format_count;
use hprof_values::TraceSerial;

use super::columns::{self, RecordingSummary};
use super::no_match;
use super::site_events::{self, EVENT};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli sites java.hprof
  hprof-cli sites java.hprof.txt --stack --depth 5 --top 10
  hprof-cli sites java.hprof 'byte[]' --method 'com.acme.**' --sort allocated
  hprof-cli sites recording.jfr --event malloc --stack
  hprof-cli sites java.hprof --format json | jq '.rows[0]'";

/// Values of `--sort`.
const SORT: &[Keyword<SiteOrder>] = &[
    ("live", SiteOrder::Live, "Most live bytes first"),
    ("live-instances", SiteOrder::LiveInstances, "Most live instances first"),
    ("allocated", SiteOrder::Allocated, "Most allocated bytes first"),
    ("allocated-instances", SiteOrder::AllocatedInstances, "Most allocated instances first"),
    ("class", SiteOrder::Class, "By class name"),
    ("trace", SiteOrder::Trace, "By trace serial number"),
];

/// List allocation sites
///
/// An allocation site is a class and the stack trace that allocated its instances. Reads the sites that
/// the HPROF agent recorded (ALLOC SITES, or SITES in a text report). In a dump without them, counts
/// the objects of the heap dump by class and trace; freed objects are then unknown. In a recording of
/// Flight Recorder, allocated bytes are estimated from samples; which objects are alive is unknown. Of
/// async-profiler's recordings of native memory, `--event malloc` counts what was not freed.
#[derive(Debug, clap::Args)]
#[command(mut_arg("dump", |dump| dump.index(1).help(WITH_FLIGHT)))]
pub(crate) struct SitesArgs {
    #[command(flatten)]
    input: RecordedInput,

    /// Events to count in a recording of Flight Recorder [default: the first that it contains of sample, tlab,
    /// live-object, malloc-total]
    #[arg(long, value_name = "KIND", value_parser = keys(EVENT), help_heading = "Input")]
    event: Option<SiteEvent>,

    /// Only sites of classes that match PATTERN, for example `java.util.HashMap$Node`, `byte[]`, `com.acme.**`
    #[arg(index = 2, value_name = "PATTERN", help_heading = "Filter")]
    patterns: Vec<ClassPattern>,

    /// Only traces with a frame of a method that matches PATTERN, for example `HashMap.put*`, `run`
    #[arg(long, value_name = "PATTERN", help_heading = "Filter")]
    method: Vec<MethodPattern>,

    /// Only traces with these serial numbers
    #[arg(long, value_name = "N,...", value_delimiter = ',', help_heading = "Filter")]
    trace: Vec<u32>,

    /// Omit rows below this fraction of the total, in both live and allocated bytes, for example 0.0001
    #[arg(long, value_name = "RATIO", default_value = "0", value_parser = args::ratio, help_heading = "Filter")]
    cutoff: f64,

    /// Sort order [default: file order, which is by live bytes; for samples, by allocated bytes]
    #[arg(long, value_name = "KEY", value_parser = keys(SORT), help_heading = "Output")]
    sort: Option<SiteOrder>,

    #[command(flatten)]
    shown: StackedOutput,
}

pub(crate) fn run(cx: &RunContext, args: &SitesArgs) -> anyhow::Result<Outcome> {
    let want = Want { sites: true, traces: true, site_event: args.event, ..Want::default() };
    let mut recorded = args.input.open(cx, want)?;
    site_events::ensure_flight(&recorded, args.event)?;
    args.input.count_sites(cx, &mut recorded)?;
    let (sites, traces) = (recorded.profile.sites.as_ref(), &recorded.profile.traces);
    let question = SiteQuery {
        classes: args.patterns.clone(),
        methods: args.method.clone(),
        traces: args.trace.iter().copied().map(TraceSerial).collect(),
        cutoff: args.cutoff,
        sort_by: args.sort,
        top: args.shown.top.rows(args.shown.output.format()),
    };
    let sites::SiteReport { rows, matching } =
        sites.map(|sites| sites::sites(sites, traces, &question)).unwrap_or_default();
    notes(cx, &recorded, args);
    let summary = RecordingSummary {
        matching: matching.rows,
        shown: rows.len(),
        of: (sites, matching, site_events::unfreed_memory(&recorded)),
    };
    let mut answer = Answer::new(columns(traces, &args.shown.stack, sites), rows)
        .with_summary(&summary_columns(), &summary)
        .matching(matching.rows, "sites")
        .if_empty(NoRows::Nothing);
    if sites.is_some() {
        answer = answer.total([
            ("live", group_digits(matching.live_bytes)),
            ("objects", group_digits(matching.live_instances)),
            (sampled_titles(sites)[0], group_digits(matching.allocated_bytes)),
            ("objects", group_digits(matching.allocated_instances)),
            (sampled_titles(sites)[1], group_digits(matching.samples)),
            (NAME, "total".to_owned()),
        ]);
    }
    let answer = args.shown.stack.add_stacks(answer, traces, |row: &RankedSite| row.site.trace);
    let rows = recorded.show(cx, "sites", &args.shown.output, answer)?;
    if let (Some(sites), 0) = (sites, matching.rows) {
        nothing(cx, args, sites, traces);
    }
    Ok(recorded.outcome(rows > 0))
}

/// Prints a note that no site matches.
fn nothing(cx: &RunContext, args: &SitesArgs, sites: &Sites, traces: &Traces) {
    let filter = StackFilter { methods: args.method.clone(), ..StackFilter::default() };
    no_match::note(cx, &args.input, "allocation site", &filter, traces);
    no_match::classes(cx, &args.input, &args.patterns, || sites.rows.iter().map(|site| &*site.class));
}

fn notes(cx: &RunContext, recorded: &RecordedProfile, args: &SitesArgs) {
    match recorded.profile.sites.as_ref().map(|sites| sites.origin) {
        Some(Origin::Recorded) => {}
        Some(Origin::Sampled) => {
            let samples = recorded.profile.sites.iter().flat_map(|sites| &sites.rows).map(|site| site.samples);
            let samples = format_count(samples.sum(), "sample");
            let about = match recorded.profile.sites.as_ref().and_then(|sites| sites.event) {
                Some(SiteEvent::LiveObjects) => {
                    let text = format!("bytes of objects that were alive at the end are estimated from {samples}");
                    return args.input.note(cx, &text);
                }
                Some(SiteEvent::UnfreedMemory) => return site_events::notes(cx, &args.input, recorded),
                Some(SiteEvent::NativeMemory) => "allocated bytes of native memory, including freed ones,",
                _ => "allocated bytes",
            };
            args.input.note(cx, &format!("{about} are estimated from {samples}; live objects are unknown"));
            if site_events::has_frees(recorded) {
                args.input.hint(cx, "--event malloc counts only native memory that was not freed");
            }
        }
        Some(Origin::Objects) if !has_traces(recorded.profile.sites.as_ref()) => args.input.note(
            cx,
            "the dump has no allocation traces: its objects are counted by class only; `run` and Flight Recorder record \
             traces",
        ),
        Some(Origin::Objects) => args.input.note(
            cx,
            "no allocation sites were recorded; they are counted from the objects in the dump, so allocated equals \
             live",
        ),
        None if matches!(recorded.file, RecordedFile::Flight { .. }) => {
            site_events::notes(cx, &args.input, recorded);
            let (what, why) = (site_events::event_name(args.event), recorded.why_none());
            if site_events::unfreed_memory(recorded).is_none_or(|facts| facts.mallocs == 0) {
                args.input.note(cx, &format!("no {what}: {why}"));
            }
        }
        None => args.input.note(cx, "no allocation sites: the HPROF agent records them with heap=sites or heap=all"),
    }
}

/// Title of the name column.
const NAME: &str = "class and method";

fn columns<'a>(traces: &'a Traces, stack: &StackArgs, of: Option<&Sites>) -> Columns<'a, RankedSite> {
    let mut columns = facts::own_columns(RankedSite::facts());
    columns.extend(stack.column(traces, |row: &RankedSite| row.site.trace));
    Columns::new(columns).table(table_columns(of))
}

/// Returns whether a site has a stack trace. HotSpot assigns trace 1, which is empty, to all objects.
fn has_traces(sites: Option<&Sites>) -> bool {
    sites.is_some_and(|sites| sites.rows.iter().any(|site| site.trace.0 > 1))
}

/// Returns the titles of the columns of allocated bytes and of samples.
fn sampled_titles(of: Option<&Sites>) -> [&'static str; 2] {
    let is_unfreed = of.is_some_and(|sites| sites.event == Some(SiteEvent::UnfreedMemory));
    if is_unfreed { ["not freed", "mallocs"] } else { ["allocated", "samples"] }
}

fn table_columns<'a>(of: Option<&Sites>) -> Vec<TableColumn<'a, RankedSite>> {
    // Counted over objects, allocated equals live: the columns would repeat each other.
    let counted = of.filter(|sites| sites.origin == Origin::Objects);
    let is_sampled = of.is_some_and(|sites| sites.origin == Origin::Sampled);
    let has_traces = counted.is_none() || has_traces(counted);
    let mut shown = vec![columns::rank_in_table(|row: &RankedSite| row.rank)];
    shown.extend(columns::percents_in_table(
        |row: &RankedSite| row.self_percent,
        |row| row.accumulated_percent,
    ));
    if !is_sampled {
        shown.push(TableColumn::new(names::LIVE_BYTES, "live"));
        shown.push(TableColumn::new(names::LIVE_INSTANCES, "objects"));
    }
    if counted.is_none() {
        let [bytes, count] = sampled_titles(of);
        shown.push(TableColumn::new(names::ALLOCATED_BYTES, bytes).fit(Fit::Secondary { priority: 3 }));
        shown.push(if is_sampled {
            TableColumn::new(names::SAMPLES, count)
        } else {
            TableColumn::new(names::ALLOCATED_INSTANCES, "objects").fit(Fit::Secondary { priority: 2 })
        });
    }
    if has_traces {
        shown.push(columns::trace_in_table(|row: &RankedSite| row.site.trace));
    }
    shown.push(TableColumn::new(names::CLASS, NAME).fit(Fit::Shorten { priority: 0 }).cell(
        |row: &RankedSite| {
            let method = row.method.as_ref().map(|method| format!(" in {method}")).unwrap_or_default();
            format!("{}{method}", row.site.class)
        },
    ));
    shown
}

/// The sites of the file, the totals of the matching sites, and what is known about memory that was not freed.
type SiteTotals<'a> = (Option<&'a Sites>, Totals, Option<&'a UnfreedMemory>);

fn summary_columns<'a>() -> Columns<'a, RecordingSummary<SiteTotals<'a>>> {
    let mut columns = vec![
        columns::stated_totals(|summary: &RecordingSummary<SiteTotals<'a>>| {
            let total = summary.of.0.and_then(|sites| sites.total.as_ref());
            total.map(|total| sites::totals(std::iter::once(total)))
        }),
        columns::matching(),
    ];
    columns.extend(columns::allocation_columns(
        Some(names::MATCHING),
        |summary: &RecordingSummary<SiteTotals<'a>>| summary.of.1,
    ));
    columns.extend([
        columns::left_out(),
        Column::new(names::ORIGIN, |summary: &RecordingSummary<SiteTotals<'a>>| {
            summary.of.0.map(|sites| sites.origin.name()).into()
        })
        .or_null(nulls::NO_SITES),
        Column::new(names::ORDERED_BY, |summary: &RecordingSummary<SiteTotals<'a>>| {
            let by = |sites: &Sites| if sites.by_allocation { "allocated_bytes" } else { "live_bytes" };
            summary.of.0.map(by).into()
        })
        .or_null(nulls::NO_SITES),
        Column::new(names::EVENT, |summary: &RecordingSummary<SiteTotals<'a>>| {
            summary.of.0.and_then(|sites| sites.event).map(SiteEvent::name).into()
        })
        .or_null(nulls::ONLY_FLIGHT_RECORDER),
        Column::record(
            names::UNFREED_MEMORY,
            site_events::unfreed_columns(),
            |summary: &RecordingSummary<SiteTotals<'a>>| summary.of.2,
        )
        .or_null("without `--event malloc`"),
        columns::date(|of: &SiteTotals<'a>| of.0.and_then(|sites| sites.date.as_deref())),
    ]);
    Columns::new(columns)
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "sites",
        variant: "",
        about: "A row is an allocation site: a class and a stack trace. Rows are in the order of the file, which is \
                by live bytes unless `ordered_by` says otherwise. In recordings of Flight Recorder, sizes are \
                estimated from samples. HotSpot dumps have no traces: their `trace` is 0 or 1.",
        rows: columns(&Traces::default(), &StackArgs::ALL, None).fields(),
        summary: summary_columns().fields(),
    }]
}
