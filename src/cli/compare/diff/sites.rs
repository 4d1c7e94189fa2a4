//! `diff --group-by sites`: allocation sites of two recordings.

use crate::cli::compare::pair::{ChangeColumns, Old};
use crate::cli::prelude::*;
use crate::cli::shared::recording::{RecordedInput, RecordedProfile, same_sites};
use crate::cli::shared::stack::StackArgs;
use hprof_query::change::Change;
use hprof_query::dictionary::{ColumnKey, Name};
use hprof_query::histogram;
use hprof_query::recordings::compare::{self, ChangeOrder, SiteRow};
use hprof_query::recordings::profile::binary::Want;
use hprof_query::recordings::profile::flight::SiteEvent;
use hprof_query::recordings::profile::{Origin, Traces};
use hprof_report::number::format_signed;

use super::DiffArgs;
use super::kind::DiffKind;
use super::recorded::{self, Recordings};
use super::shown::{self, Counts};

/// Definition of the kind `sites`.
pub(super) const DEFINITION: DiffKind = DiffKind {
    name: "sites",
    summary: "Allocation sites of recordings, by class and stack",
    about: "A row is an allocation site: a class and the frames of a stack trace. Sites of one class with the same \
            frames are one row, whatever their serial numbers. The agent omits small sites (`cutoff`): a site that is \
            new or gone may have been too small in the other file. Most growth of live bytes comes first.",
    unit: "sites",
    options: &["PATTERN", "--sort", "--stack"],
    compare: run,
    rows: || columns(&Traces::default(), &StackArgs::ALL, [None; 2]).fields(),
    summary_fields: || Columns::new(summary_columns()).fields(),
};

fn run(cx: &RunContext, args: &DiffArgs) -> anyhow::Result<Outcome> {
    let mut source = recorded::open(args, |input| open(cx, input))?;
    same_sites(&mut source.old, &mut source.new)?;
    let origins = notes(cx, args, &source);
    anyhow::ensure!(
        origins.iter().filter(|origin| **origin == Some(Origin::Sampled)).count() != 1,
        "cannot compare the files: one is a recording of Flight Recorder, whose bytes are estimated from samples; the \
         other counts objects"
    );
    let sort_by = match args.sort {
        Some(histogram::HistogramOrder::Instances) => ChangeOrder::LiveInstances,
        Some(histogram::HistogramOrder::Name) => ChangeOrder::Class,
        // Sites have no retained size.
        None | Some(histogram::HistogramOrder::Bytes | histogram::HistogramOrder::Retained) => {
            ChangeOrder::LiveBytes
        }
    };
    let (old, new) = (&source.old.profile, &source.new.profile);
    let compared = compare::sites(old, new, &args.patterns, sort_by);
    let counts = Counts::from_statuses(compared.rows.iter().map(|row| row.status));
    let summary = SitesDiffSummary::new(&source, origins, &compared.rows, counts.changed);
    let change =
        |change: Option<Change>| change.map(|change| format_signed(change.delta())).unwrap_or_default();
    let sites =
        || [old, new].into_iter().flat_map(|profile| profile.sites.iter().flat_map(|sites| &sites.rows));
    let names = || sites().map(|site| &*site.class);
    recorded::show(cx, args, &source, counts, names, |format| {
        let shown = shown::rows(args, format, &compared.rows, |row| row.status);
        let answer = Answer::new(columns(&compared.stacks, &args.stack, origins), shown)
            .with_summary(&Columns::new(summary_columns()), &summary)
            .total([
                ("live +/-", change(Some(summary.live_bytes))),
                ("objects +/-", change(Some(summary.live_instances))),
                ("allocated +/-", change(summary.allocated_bytes)),
                (NAME, "total".to_owned()),
            ]);
        args.stack.add_stacks(answer, &compared.stacks, |row: &&SiteRow| row.stack)
    })
}

/// Opens a file that contains allocation sites, or objects from which they can be counted.
fn open(cx: &RunContext, input: &RecordedInput) -> anyhow::Result<RecordedProfile> {
    let mut recorded = input.open(cx, Want { sites: true, traces: true, ..Want::default() })?;
    input.count_sites(cx, &mut recorded)?;
    anyhow::ensure!(
        recorded.profile.sites.is_some(),
        "{} contains no allocation sites and no objects: the HPROF agent records sites with heap=sites or heap=all, Flight Recorder with settings=profile",
        recorded.header().path
    );
    Ok(recorded)
}

/// Origin of the sites in the old and in the new file.
type Origins = [Option<Origin>; 2];

/// Prints notes about data that is not recorded, and returns the origins of the sites.
fn notes(cx: &RunContext, args: &DiffArgs, source: &Recordings) -> Origins {
    let origin = |recorded: &RecordedProfile| recorded.profile.sites.as_ref().map(|sites| sites.origin);
    let origins = [&source.old, &source.new].map(origin);
    match origins {
        [Some(Origin::Objects), Some(Origin::Objects)] => recorded::note(
            cx,
            args,
            "neither file contains allocation sites: they are counted from the objects in the dumps, so allocated \
             equals live",
        ),
        [Some(Origin::Objects), _] => note_of_one(cx, args, &source.old),
        [_, Some(Origin::Objects)] => note_of_one(cx, args, &source.new),
        _ => {}
    }
    origins
}

fn note_of_one(cx: &RunContext, args: &DiffArgs, recorded: &RecordedProfile) {
    let path = recorded.header().path;
    recorded::note(
        cx,
        args,
        &format!(
            "{path} contains no allocation sites: they are counted from the objects in the dump, and only live bytes \
             and objects are compared"
        ),
    );
}

/// Source of the JSON keys in addition to the rows.
struct SitesDiffSummary {
    old: Old,
    origins: Origins,
    event: Option<SiteEvent>,
    changed: u64,
    live_bytes: Change,
    live_instances: Change,
    allocated_bytes: Option<Change>,
    allocated_instances: Option<Change>,
}

impl SitesDiffSummary {
    fn new(source: &Recordings, origins: Origins, rows: &[SiteRow], changed: u64) -> Self {
        let sum = |of: fn(&SiteRow) -> Change| rows.iter().map(of).fold(Change::default(), Change::plus);
        let [old, new] = origins;
        let allocated = |of: fn(&SiteRow) -> Change| (old == new).then(|| sum(of));
        Self {
            old: Old::from_source(&source.old),
            origins,
            event: source.new.profile.sites.as_ref().and_then(|sites| sites.event),
            changed,
            live_bytes: sum(|row| row.live_bytes),
            live_instances: sum(|row| row.live_instances),
            allocated_bytes: allocated(|row| row.allocated_bytes.unwrap_or_default()),
            allocated_instances: allocated(|row| row.allocated_instances.unwrap_or_default()),
        }
    }
}

/// Title of the name column.
const NAME: &str = "class and method";

/// Condition under which allocated bytes and instances are missing.
const NOT_RECORDED: &str = "one of the files contains no allocation sites: its freed objects are unknown";

fn columns<'a>(stacks: &'a Traces, stack: &StackArgs, origins: Origins) -> Columns<'a, &'a SiteRow> {
    let method = |row: &SiteRow| stacks.method(row.stack);
    let mut columns = vec![
        Column::new(names::CLASS, |row: &&SiteRow| Value::from(&*row.class)),
        Column::new(names::METHOD, move |row: &&SiteRow| method(row).into()).or_null(nulls::NO_FRAME),
        stack.frames(stacks, |row: &&SiteRow| row.stack),
        shown::status(|row: &&SiteRow| row.status),
    ];
    let live = ChangeColumns::new(names::LIVE_BYTES, |row: &&SiteRow| Some(row.live_bytes));
    let instances = ChangeColumns::new(names::LIVE_INSTANCES, |row: &&SiteRow| Some(row.live_instances));
    let allocated = ChangeColumns::new(names::ALLOCATED_BYTES, |row: &&SiteRow| row.allocated_bytes)
        .or_null(NOT_RECORDED);
    let allocated_instances =
        ChangeColumns::new(names::ALLOCATED_INSTANCES, |row: &&SiteRow| row.allocated_instances)
            .or_null(NOT_RECORDED);
    let figures = [&live, &instances, &allocated, &allocated_instances];
    columns.extend(figures.into_iter().flat_map(ChangeColumns::columns));
    // Counted from objects, allocated equals live: the columns would repeat each other.
    let is_recorded = origins == [Some(Origin::Recorded); 2];
    // For samples, only allocated bytes are known.
    let is_sampled = origins == [Some(Origin::Sampled); 2];
    let mut shown = Vec::new();
    if !is_sampled {
        shown.extend(live.in_table(["live +/-", "live"]));
        shown.extend(instances.in_table(["objects +/-", "objects"]));
    }
    if is_recorded || is_sampled {
        let allocated = allocated.in_table(["allocated +/-", "allocated"]);
        shown.extend(allocated.map(|column| column.fit(Fit::Secondary { priority: 0 })));
    }
    shown.extend([
        shown::status_in_table(|row: &&SiteRow| row.status),
        TableColumn::new(names::CLASS, NAME).fit(Fit::Shorten { priority: 0 }).cell(move |row: &&SiteRow| {
            let method = method(row).map(|method| format!(" in {method}")).unwrap_or_default();
            format!("{}{method}", row.class)
        }),
    ]);
    Columns::new(columns).table(shown)
}

fn summary_columns<'c>() -> Vec<Column<'c, SitesDiffSummary>> {
    let mut columns = Vec::from(Old::columns(|summary: &SitesDiffSummary| &summary.old));
    columns.extend([
        origin(names::OLD.dot(names::ORIGIN), |[old, _]| old),
        origin(names::ORIGIN, |[_, new]| new),
        Column::new(names::TOTAL.dot(names::ROWS), |summary: &SitesDiffSummary| summary.changed.into()),
    ]);
    let total = |name: Name, of| ChangeColumns::new(names::TOTAL.dot(name), of);
    let totals = [
        total(names::LIVE_BYTES, |summary: &SitesDiffSummary| Some(summary.live_bytes)),
        total(names::LIVE_INSTANCES, |summary| Some(summary.live_instances)),
        total(names::ALLOCATED_BYTES, |summary| summary.allocated_bytes).or_null(NOT_RECORDED),
        total(names::ALLOCATED_INSTANCES, |summary| summary.allocated_instances).or_null(NOT_RECORDED),
    ];
    columns.extend(totals.iter().flat_map(ChangeColumns::columns));
    columns.push(
        Column::new(names::EVENT, |summary: &SitesDiffSummary| summary.event.map(SiteEvent::name).into())
            .or_null(nulls::ONLY_FLIGHT_RECORDERS),
    );
    columns
}

fn origin<'c>(key: impl Into<ColumnKey>, of: fn(Origins) -> Option<Origin>) -> Column<'c, SitesDiffSummary> {
    Column::new(key, move |summary: &SitesDiffSummary| of(summary.origins).map(Origin::name).into())
        .or_null(nulls::NO_SITES)
}
