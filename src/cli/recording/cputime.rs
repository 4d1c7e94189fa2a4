//! `cputime`: CPU times and calls that the agent measured.

use crate::cli::prelude::*;
use crate::cli::shared::args;
use crate::cli::shared::recording::{RecordedInput, RecordedProfile};
use crate::cli::shared::stack::{FrameFilter, StackedOutput};
use hprof_query::recordings::cputime::{self, CallQuery, CallRow, TimeOrder, TimeQuery};
use hprof_query::recordings::profile::binary::Want;
use hprof_query::recordings::profile::{Method, Profile};

use super::columns::{self, RecordingSummary};
use super::times::{self, TimeKind};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli cputime java.hprof.txt
  hprof-cli cputime java.hprof.txt --sort count --top 10
  hprof-cli cputime java.hprof.txt --method 'com.acme.**' --stack
  hprof-cli cputime java.prof --calls --sort time";

/// Values of `--sort`.
const SORT: &[Keyword<TimeOrder>] = &[
    ("time", TimeOrder::Time, "Most time first"),
    ("count", TimeOrder::Count, "Most calls first"),
    ("trace", TimeOrder::Trace, "By trace serial number; not with --calls"),
    ("method", TimeOrder::Method, "By method name, or callee with --calls"),
];

/// List method CPU times and calls
///
/// Reads the text reports of the HPROF agent: CPU TIME (ms) with cpu=times, or calls by caller and callee with cpu=old.
/// CPU TIME states only percentages, from which the milliseconds of each row are estimated. With --calls, --class and
/// --method match the caller or the callee. For sampled CPU time, use `cpu`.
#[derive(Debug, clap::Args)]
pub(crate) struct CputimeArgs {
    #[command(flatten)]
    input: RecordedInput,

    #[command(flatten)]
    frames: FrameFilter,

    /// Omit rows below this fraction of the total, for example 0.0001
    #[arg(long, value_name = "RATIO", default_value = "0", value_parser = args::ratio, help_heading = "Filter")]
    cutoff: f64,

    /// Show the calls recorded with cpu=old (the default if the file contains nothing else)
    #[arg(long, conflicts_with_all = ["stack", "depth"], help_heading = "Output")]
    calls: bool,

    /// Sort order [default: file order]
    #[arg(long, value_name = "KEY", value_parser = keys(SORT), help_heading = "Output")]
    sort: Option<TimeOrder>,

    #[command(flatten)]
    shown: StackedOutput,
}

pub(crate) fn run(cx: &RunContext, args: &CputimeArgs) -> anyhow::Result<Outcome> {
    let recorded = args.input.open(cx, Want { sites: false, traces: true, ..Want::default() })?;
    let profile = &recorded.profile;
    let are_calls = args.calls || (profile.times.is_none() && !profile.calls.is_empty());
    if are_calls && args.sort == Some(TimeOrder::Trace) {
        anyhow::bail!("--sort trace cannot be used for calls (cpu=old), which have no traces; omit it");
    }
    if if are_calls { profile.calls.is_empty() } else { profile.times.is_none() } {
        note(cx, profile, args);
    }
    let filter = args.frames.filter();
    let top = args.shown.top.rows(args.shown.output.format());
    if are_calls {
        let question = CallQuery { filter, cutoff: args.cutoff, sort_by: args.sort, top };
        return show_calls(cx, &recorded, args, &question);
    }
    let question = TimeQuery { filter, names: Vec::new(), cutoff: args.cutoff, sort_by: args.sort, top };
    times::show(cx, &args.input, &recorded, TimeKind::CpuTime, &question, &args.shown)
}

/// Prints a note that the file has no CPU times, and what it contains instead.
fn note(cx: &RunContext, profile: &Profile, args: &CputimeArgs) {
    let missing = if args.calls { "no calls: the HPROF agent records them with cpu=old" } else { NO_TIME };
    let instead = match (args.calls && profile.times.is_some(), profile.samples.is_some()) {
        (true, _) => "the file contains CPU TIME: omit --calls",
        (false, true) => "the file contains CPU SAMPLES: `hprof-cli cpu` shows them",
        (false, false) => "",
    };
    args.input.note(cx, missing);
    args.input.hint(cx, instead);
}

const NO_TIME: &str = "no CPU TIME: the HPROF agent records it with cpu=times, in text reports only";

/// Shows the calls recorded with `cpu=old`.
fn show_calls(
    cx: &RunContext,
    recorded: &RecordedProfile,
    args: &CputimeArgs,
    question: &CallQuery,
) -> anyhow::Result<Outcome> {
    let cputime::TimeReport { rows, matching } = cputime::calls(&recorded.profile.calls, question);
    let summary = RecordingSummary { matching, shown: rows.len(), of: () };
    let answer = Answer::new(call_columns(), rows)
        .with_summary(&call_summary_columns(), &summary)
        .matching(matching, "calls")
        .if_empty(NoRows::Nothing);
    let rows = recorded.show(cx, "cputime", &args.shown.output, answer)?;
    if matching == 0 && !recorded.profile.calls.is_empty() {
        args.input.note(cx, "no call matches");
    }
    Ok(recorded.outcome(rows > 0))
}

/// Formats a method with its class: `com.acme.Main.run`.
fn qualified_name(method: &Method) -> String {
    if method.class.is_empty() { method.name.clone() } else { format!("{}.{}", method.class, method.name) }
}

/// Formats a method for a table; a missing one gets a placeholder.
fn name(method: Option<&Method>) -> String {
    method.map_or_else(|| "<unknown>".to_owned(), qualified_name)
}

/// Function that returns the caller or the callee of a call.
type MethodOf<'a> = fn(&CallRow<'a>) -> Option<&'a Method>;

fn call_columns<'a>() -> Columns<'a, CallRow<'a>> {
    let unknown = "the agent did not know it";
    let methods: [(_, _, MethodOf<'a>); 2] = [
        (names::CALLEE, names::CALLEE_SIGNATURE, |row| row.call.callee.as_ref()),
        (names::CALLER, names::CALLER_SIGNATURE, |row| row.call.caller.as_ref()),
    ];
    let called = methods.map(|(name, _, method)| {
        Column::new(name, move |row: &CallRow<'a>| method(row).map(qualified_name).into()).or_null(unknown)
    });
    let signatures = methods.map(|(_, name, method)| {
        Column::new(name, move |row: &CallRow<'a>| method(row).map(|method| method.signature.as_str()).into())
            .or_null(unknown)
    });
    let mut columns = vec![
        Column::new(names::RANK, |row: &CallRow<'a>| row.rank.into()),
        Column::new(names::COUNT, |row: &CallRow<'a>| row.call.count.into()),
        Column::new(names::TIME_MS, |row: &CallRow<'a>| row.call.time_ms.into()),
    ];
    columns.extend(called.into_iter().chain(signatures));
    Columns::new(columns).table([
        columns::rank_in_table(|row: &CallRow<'a>| row.rank),
        TableColumn::new(names::COUNT, "count"),
        TableColumn::new(names::TIME_MS, "ms"),
        TableColumn::table_only("callee, and its caller", Align::Left, |row: &CallRow<'a>| {
            format!("{} by {}", name(row.call.callee.as_ref()), name(row.call.caller.as_ref()))
        })
        .fit(Fit::Shorten { priority: 0 }),
    ])
}

fn call_summary_columns() -> Columns<'static, RecordingSummary<()>> {
    Columns::new([
        Column::new(names::TOTAL, |_| Value::Null).or_null("always"),
        columns::matching(),
        columns::left_out(),
        columns::date(|()| None),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![
        times::row_schema(TimeKind::CpuTime),
        ResultSchema {
            command: "cputime",
            variant: "`--calls`",
            about: "Calls recorded with `cpu=old`; the default if the file contains nothing else. A row is a pair of \
                    methods, one of which called the other.",
            rows: call_columns().fields(),
            summary: call_summary_columns().fields(),
        },
    ]
}
