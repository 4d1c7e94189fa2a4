//! `trend PID`: class histograms of a running JVM, one every round.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::cli::jvm::{CountedObjects, TakenHistogram};
use crate::cli::prelude::*;
use crate::cli::shared::class_histogram::ThinnedItems;
use crate::cli::shared::durations::{duration, seconds};
use crate::cli::shared::end_request::EndRequest;
use crate::cli::shared::output::file::{OutFile, OverwritePolicy};
use hprof_query::compare::rounds::{self, Round, RoundsOrigin};
use hprof_query::compare::trend::{TrendFilter, TrendRow};
use hprof_report::number::signed_bytes;

use super::histograms::{self, RoundsQuery};
use super::{LastDump, TrendArgs, TrendResult};
use crate::cli::shared::several::DumpOutcome;

/// Time between rounds if none is given.
const DEFAULT_EVERY: Duration = Duration::from_secs(60);

/// Maximum number of growing classes that the line of a round names.
const SHOWN: usize = 3;

/// Options for the rounds of a running JVM.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Target")]
pub(super) struct SeriesArgs {
    /// Time from one round to the next [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    every: Option<Duration>,

    /// Time after which the rounds end [default: until Ctrl-C, or the process ends]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    period: Option<Duration>,

    /// Only reachable objects of a running JVM, which collects garbage before each round
    #[arg(long, help_heading = "Filter")]
    pub(super) live: bool,

    /// Write to FILE: the rounds, which `trend`, `histo` and `diff` read again
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    output: Option<PathBuf>,

    /// Replace an existing file
    #[arg(long, requires = "output", help_heading = "Output")]
    force: bool,
}

impl SeriesArgs {
    /// Returns an error if options for the rounds of one process were given without it.
    pub(super) fn check_unused(&self) -> anyhow::Result<()> {
        let given = [
            ("--every", self.every.is_some()),
            ("--for", self.period.is_some()),
            ("--output", self.output.is_some()),
        ];
        for (option, is_given) in given {
            anyhow::ensure!(
                !is_given,
                "{option} is for the rounds of one running JVM: give its process ID alone"
            );
        }
        Ok(())
    }

    fn every(&self) -> Duration {
        self.every.unwrap_or(DEFAULT_EVERY)
    }

    /// Returns the time to wait for the next round; `None` if the rounds end before it. A round that took longer than the time
    /// between rounds delays the next ones.
    fn until_next(&self, elapsed: Duration) -> Option<Duration> {
        let every = self.every();
        let since_round = elapsed.as_nanos() % every.as_nanos().max(1);
        let time = every.saturating_sub(Duration::from_nanos(u64::try_from(since_round).unwrap_or(u64::MAX)));
        let is_last = self.period.is_some_and(|period| elapsed.saturating_add(time) > period);
        (!is_last).then_some(time)
    }
}

/// The rounds that were taken.
pub(super) struct Series {
    pub(super) result: TrendResult,
    /// Error if the file of the rounds could not be written.
    pub(super) end: Option<anyhow::Error>,
}

/// File of the rounds.
struct RoundsFile {
    file: OutFile,
    path: PathBuf,
}

impl RoundsFile {
    fn create(path: &Path, policy: OverwritePolicy) -> anyhow::Result<Self> {
        Ok(Self { file: OutFile::create_private(path, &[], policy)?, path: path.to_owned() })
    }

    /// Writes a round: a line with facts, and what `jcmd` would have printed.
    fn write(&mut self, pid: u32, taken: &TakenHistogram) -> anyhow::Result<()> {
        let facts = taken.counted.histogram.facts.line();
        let text = format!("{facts}\n{pid}:\n{}\n\n", taken.text.trim_end());
        self.file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// The rounds so far.
#[derive(Default)]
struct TakenRounds {
    rounds: ThinnedItems<Round>,
    outcomes: ThinnedItems<DumpOutcome>,
    /// Description of the last one.
    last: Option<LastDump>,
    count: u64,
    standstill: Option<Duration>,
}

/// Takes a class histogram every round, and prints a line for each.
pub(super) fn take(cx: &RunContext, args: &TrendArgs, input: &Input, pid: u32) -> anyhow::Result<Series> {
    let query = RoundsQuery::new(args, &pid.to_string())?;
    anyhow::ensure!(
        input.heap_dump().is_none(),
        "{pid} is a process, which contains no heap dumps; omit --heap-dump"
    );
    let policy = OverwritePolicy::new(args.series.force);
    let mut file = args.series.output.as_deref().map(|path| RoundsFile::create(path, policy)).transpose()?;
    let request = EndRequest::of_signals();
    let mut taken = TakenRounds { standstill: Some(Duration::ZERO), ..TakenRounds::default() };
    let mut unwritten = None;
    let ended = args.process.with_jvm(pid, &mut |jvm| {
        let started = Instant::now();
        loop {
            let histogram = jvm.take(CountedObjects::new(args.series.live))?;
            if let Some(Err(error)) = file.as_mut().map(|file| file.write(pid, &histogram)) {
                unwritten = Some(error);
                return Ok(());
            }
            add(cx, args, &query, &mut taken, histogram);
            let next = args.series.until_next(started.elapsed());
            if next.is_none_or(|time| request.wait(time)) {
                return Ok(());
            }
        }
    });
    if let Err(error) = ended {
        if taken.count == 0 {
            return Err(error);
        }
        // A command of --via receives Ctrl-C, too.
        if !request.is_requested() {
            cx.emit("warning", &format!("{error:#}; the rounds end here"));
        }
    }
    let written = file.filter(|_| unwritten.is_none()).map(|RoundsFile { file, .. }| file.commit());
    if !args.input.quiet() {
        cx.emit("note", &cost(taken.count, taken.standstill));
    }
    let last = taken.last.context("no round was taken")?;
    let all = taken.outcomes.into_items();
    let result =
        histograms::result(args, query.group_by, &taken.rounds.items(), RoundsOrigin::Series, (all, last));
    Ok(Series { result, end: unwritten.or(written.and_then(Result::err)) })
}

fn cost(count: u64, standstill: Option<Duration>) -> String {
    let rounds = match count {
        1 => "1 round".to_owned(),
        count => format!("{} rounds", group_digits(count)),
    };
    match standstill {
        Some(time) => format!("{rounds}: the program's threads stood still for {} in all", seconds(time)),
        None => format!("{rounds}; how long the program's threads stood still is unknown"),
    }
}

/// Adds a round, and prints its line.
fn add(
    cx: &RunContext,
    args: &TrendArgs,
    query: &RoundsQuery,
    taken: &mut TakenRounds,
    histogram: TakenHistogram,
) {
    taken.count = taken.count.saturating_add(1);
    taken.standstill = taken.standstill.zip(histogram.standstill).map(|(all, this)| all.saturating_add(this));
    let stood_still = histogram.standstill.map(|time| format!("; stood still {}", seconds(time)));
    let found = query.counted_round(histogram.counted);
    if !args.input.quiet() {
        let heap = human_bytes(found.round.heap_bytes());
        let grew = growth(args, &taken.rounds, &found.round);
        let line = format!("{}: {heap}{grew}{}", taken.count, stood_still.unwrap_or_default());
        cx.emit("round", &line);
    }
    taken.rounds.push(found.round);
    taken.outcomes.push(found.outcome);
    taken.last = Some(found.dump);
}

/// Describes what has grown since the first round: the growing classes, or else the one that grew most.
fn growth(args: &TrendArgs, before: &ThinnedItems<Round>, round: &Round) -> String {
    let mut all = before.items();
    all.push(round);
    let trend = rounds::rounds(&all, RoundsOrigin::Series, TrendFilter::Growing, args.min_change);
    let named = |row: &TrendRow| {
        let name = row.key.as_ref().map_or("", |key| &*key.name);
        format!("{name} {}", signed_bytes(row.delta()))
    };
    let growing: Vec<String> = trend.rows.iter().take(SHOWN).map(named).collect();
    let left_out = trend.rows.len().saturating_sub(SHOWN);
    match (&growing[..], all.first().and_then(|first| rounds::grew_most(first, round))) {
        ([], None) => String::new(),
        ([], Some((key, bytes))) => format!("; grew most: {} +{}", key.name, human_bytes(bytes)),
        (growing, _) if left_out == 0 => format!("; growing: {}", growing.join(", ")),
        (growing, _) => format!("; growing: {} and {left_out} more", growing.join(", ")),
    }
}
