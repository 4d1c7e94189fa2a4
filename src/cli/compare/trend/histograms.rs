//! `trend` over class histograms: of files, of running JVMs, and dumps among them.

use crate::cli::jvm::{CountedObjects, process_id};
use crate::cli::prelude::*;
use crate::cli::shared::class_histogram::{self, CountedHistogram, needs_objects};
use crate::cli::shared::durations::long_time;
use crate::cli::shared::several::DumpOutcome;
use hprof_index::layout::sizes::Sizes;
use hprof_query::compare::Growth;
use hprof_query::compare::classes::{ClassCensus, ClassDiffGrouping, ComparedNames, ComparedQuery};
use hprof_query::compare::rounds::{self, MIN_ROUNDS, Round, RoundsOrigin, RoundsTrend, RoundsVerdict};
use hprof_query::compare::trend::{TrendFilter, TrendRow};
use hprof_report::number::format_count;
use std::time::Duration;

use super::{LastDump, TrendArgs, TrendDumps, TrendGroupBy, TrendResult};

/// A file argument that is not a recording.
pub(super) enum TrendMember {
    Process(Input, u32),
    Counted(Vec<CountedHistogram>),
    Dump(Input),
}

impl TrendMember {
    /// Returns what a file argument is. Class histograms in files are read.
    pub(super) fn new(cx: &RunContext, input: Input) -> anyhow::Result<Self> {
        Ok(match class_histogram::read_all(cx, &input)? {
            Some(counted) => Self::Counted(counted),
            None => Self::Dump(input),
        })
    }

    /// Returns the process, if a file argument is a process ID.
    pub(super) fn process(cx: &RunContext, input: &Input) -> anyhow::Result<Option<Self>> {
        Ok(process_id(cx, input)?.map(|pid| Self::Process(input.clone(), pid)))
    }

    /// Returns the process or file if it has only counts of classes.
    pub(super) fn counts_of(&self) -> Option<String> {
        match self {
            Self::Process(_, pid) => Some(pid.to_string()),
            Self::Counted(counted) => counted.first().map(|counted| counted.path().to_owned()),
            Self::Dump(_) => None,
        }
    }
}

/// The question to each histogram.
pub(super) struct RoundsQuery {
    shown: ComparedQuery,
    /// The question about all classes, if only some are shown.
    all: Option<ComparedQuery>,
    pub(super) group_by: ClassDiffGrouping,
}

impl RoundsQuery {
    /// Returns the question of the arguments; fails if class histograms cannot answer it.
    pub(super) fn new(args: &TrendArgs, path: &str) -> anyhow::Result<Self> {
        let group_by = match args.group_by {
            None => ClassDiffGrouping::Class,
            Some(TrendGroupBy::Classes(by @ (ClassDiffGrouping::Class | ClassDiffGrouping::Package))) => by,
            Some(TrendGroupBy::Place) => return Err(needs_objects("--group-by place", path)),
            Some(TrendGroupBy::Classes(_)) => return Err(needs_objects("--group-by loader", path)),
        };
        let question = |patterns| ComparedQuery { group_by, patterns, names: ComparedNames::Histograms };
        let all = (!args.patterns.is_empty()).then(|| question(Vec::new()));
        Ok(Self { shown: question(args.patterns.clone()), all, group_by })
    }

    /// Counts the classes of a histogram, and describes it.
    pub(super) fn counted_round(&self, counted: CountedHistogram) -> CountedRound {
        CountedRound {
            outcome: DumpOutcome::from_source(&counted, counted.histogram.facts.created_ms),
            round: self.round(&counted),
            dump: LastDump::Histogram(Box::new(counted.without_classes())),
        }
    }

    /// Counts the classes of a histogram.
    fn round(&self, counted: &CountedHistogram) -> Round {
        let facts = &counted.histogram.facts;
        let census = |question| ClassCensus::of_text(&counted.histogram.heap, question);
        Round {
            census: census(&self.shown),
            all: self.all.as_ref().map(census),
            created_ms: facts.created_ms,
            is_collected: facts.is_collected == Some(true),
            heap_max_bytes: facts.heap_max_bytes,
        }
    }
}

/// Counts of a histogram or dump, and its description.
pub(super) struct CountedRound {
    pub(super) outcome: DumpOutcome,
    pub(super) round: Round,
    pub(super) dump: LastDump,
}

/// Facts about the rounds for headline and JSON.
pub(super) struct RoundsSummary {
    pub(super) verdict: RoundsVerdict,
    pub(super) heap_max_bytes: Option<u64>,
    pub(super) hours_until_full: Option<f64>,
    fast_rows: u64,
    is_collected: bool,
}

impl RoundsSummary {
    /// Returns the name of the verdict in output.
    pub(super) fn verdict(&self) -> &'static str {
        match self.verdict {
            RoundsVerdict::Judged if self.fast_rows > 0 => "too_fast",
            RoundsVerdict::Judged => "judged",
            RoundsVerdict::TooFew => "too_few",
            RoundsVerdict::NoCollection => "no_collection",
        }
    }

    /// Returns the conclusion in one line; `hours` is the time from the first round to the last.
    pub(super) fn conclusion(&self, rows: &[TrendRow], hours: Option<f64>) -> String {
        let growing: Vec<&TrendRow> =
            rows.iter().filter(|row| row.growth == Some(Growth::EveryStep)).collect();
        match self.verdict {
            RoundsVerdict::NoCollection => {
                return "no conclusion: no garbage was collected in this time, so that garbage cannot be told from growth"
                    .to_owned();
            }
            RoundsVerdict::TooFew if growing.is_empty() => {
                return format!(
                    "no conclusion: growth is told from garbage and chance by {MIN_ROUNDS} class histograms or more"
                );
            }
            _ => {}
        }
        let bytes = growing.iter().fold(0i64, |sum, row| sum.saturating_add(row.delta()));
        let mut text = match growing.len() {
            0 if self.fast_rows > 0 => {
                return format!(
                    "no conclusion: what grew in every round ({}) grew so fast that it may be garbage of the old generation",
                    format_count(self.fast_rows, "row")
                );
            }
            0 => return "nothing grew in every round beyond its ups and downs".to_owned(),
            1 => "1 row grew in every round".to_owned(),
            count => format!("{} rows grew in every round", group_digits(count as u64)),
        };
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        if let Some(hours) = hours {
            // The conversion saturates.
            let per_minute = (bytes as f64 / hours / 60.0).round().max(0.0) as u64;
            text += &format!(", in all by {} per minute", human_bytes(per_minute));
        }
        if let (Some(hours), Some(max)) = (self.hours_until_full, self.heap_max_bytes) {
            let time = Duration::try_from_secs_f64(hours * 3600.0).unwrap_or(Duration::MAX);
            text +=
                &format!("; at this rate, the heap of {} is full in {}", human_bytes(max), long_time(time));
        }
        text
    }

    /// Returns a note about the reliability of the conclusion, if there is something to do.
    pub(super) fn advice(&self, has_rows: bool) -> Option<&'static str> {
        match self.verdict {
            RoundsVerdict::NoCollection => Some(
                "a JVM that does not collect needs more time, or --live, with which it collects before each round",
            ),
            RoundsVerdict::TooFew if has_rows => Some(
                "with less than 5 class histograms, garbage and classes that come and go can look like growth",
            ),
            RoundsVerdict::Judged if self.fast_rows > 0 && !has_rows => Some(
                "with --live, only reachable objects are counted, so that garbage does not look like growth",
            ),
            RoundsVerdict::Judged if has_rows && !self.is_collected => Some(
                "garbage that was not collected yet is counted, too; --live counts only reachable objects",
            ),
            _ => None,
        }
    }
}

/// Computes the growth over rounds; `all` describes them, `last` is the newest histogram or dump.
pub(super) fn result(
    args: &TrendArgs,
    group_by: ClassDiffGrouping,
    counted: &[&Round],
    origin: RoundsOrigin,
    (all, last): (Vec<DumpOutcome>, LastDump),
) -> TrendResult {
    let which = if args.all { TrendFilter::All } else { TrendFilter::Growing };
    let RoundsTrend { rows, least, verdict, fast_rows, hours_until_full } =
        rounds::rounds(counted, origin, which, args.min_change);
    let summary = RoundsSummary {
        verdict,
        heap_max_bytes: counted.last().and_then(|round| round.heap_max_bytes),
        hours_until_full,
        fast_rows,
        is_collected: counted.iter().all(|round| round.is_collected),
    };
    let is_damaged = all.iter().any(|one| one.damaged == Some(true));
    TrendResult {
        source: TrendDumps { all, last, is_damaged },
        rows,
        least,
        group_by: TrendGroupBy::Classes(group_by),
        rounds: Some(summary),
    }
}

/// Compares class histograms, and dumps among them.
pub(super) fn compare(
    cx: &RunContext,
    args: &TrendArgs,
    members: Vec<TrendMember>,
) -> anyhow::Result<TrendResult> {
    let path = members.iter().find_map(TrendMember::counts_of).unwrap_or_default();
    let query = RoundsQuery::new(args, &path)?;
    let is_series =
        |member: &TrendMember| matches!(member, TrendMember::Counted(counted) if counted.len() > 1);
    let origin = if members.iter().any(is_series) { RoundsOrigin::Series } else { RoundsOrigin::Chosen };
    anyhow::ensure!(
        members.iter().all(|member| matches!(member, TrendMember::Process(..))) || !args.series.live,
        "--live is for running JVMs; omit it, or name only process IDs"
    );
    let mut found = Vec::new();
    for member in members {
        match member {
            TrendMember::Process(input, pid) => {
                let objects = CountedObjects::new(args.series.live);
                found.push(query.counted_round(args.process.count(cx, &input, pid, objects)?));
            }
            TrendMember::Counted(counted) => {
                found.extend(counted.into_iter().map(|counted| query.counted_round(counted)));
            }
            TrendMember::Dump(input) => {
                let heap = input.open(cx)?;
                let created_ms = heap.summary().facts().created_ms.get();
                let sizes = Sizes::new(heap.summary(), None);
                let census = |question| ClassCensus::new(heap.summary(), &sizes, question);
                let (shown, all) = (census(&query.shown), query.all.as_ref().map(census));
                let round = Round { census: shown, all, created_ms, ..Round::default() };
                let outcome = DumpOutcome::from_source(&heap, created_ms);
                found.push(CountedRound { outcome, round, dump: LastDump::Heap(heap) });
            }
        }
    }
    anyhow::ensure!(
        found.len() > 2,
        "trend compares three or more class histograms or dumps, and {} were given; `hprof-cli diff` compares two",
        found.len()
    );
    super::sort_by_time(cx, args, &mut found, |found| found.outcome.created_ms);
    let (mut all, mut counted, mut last) = (Vec::new(), Vec::new(), None);
    for CountedRound { outcome, round, dump } in found {
        all.push(outcome);
        counted.push(round);
        last = Some(dump);
    }
    let last = last.ok_or_else(|| anyhow::anyhow!("no dump was given"))?;
    Ok(result(args, query.group_by, &counted.iter().collect::<Vec<_>>(), origin, (all, last)))
}
