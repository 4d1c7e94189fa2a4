//! `check`: checks dumps against the rules of a file. One file per step: [`rules`] reads the rules, [`dumps`] measures the
//! dumps, [`rows`] creates the result, [`reports`] writes it as files for CI servers.

mod dumps;
mod init;
mod limits;
mod reports;
mod rows;
mod rules;
mod words;

use std::path::{Path, PathBuf};

use crate::cli::is_closed_pipe;
use crate::cli::prelude::*;
use crate::cli::shared::frameworks::FrameworksArgs;
use crate::cli::shared::messages;
use crate::cli::shared::several::{DumpOutcome, SeveralInput};
use hprof_query::check::{Rule, Severity, Status};
use hprof_query::frameworks::Frameworks;
use hprof_report::json::DumpHeader;
use hprof_report::number::format_count;

use dumps::{CheckSubject, CheckedState};
use reports::Reports;
use rows::{Baseline, Damage, DumpCount, RuleRow};
use rules::Rules;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli check --init heap.hprof -o heap-rules.toml
  hprof-cli check heap.hprof --rules heap-rules.toml
  hprof-cli check new.hprof --rules heap-rules.toml --baseline old.hprof
  hprof-cli check *.hprof --rules heap-rules.toml --junit check.xml --sarif check.sarif";

/// Check dumps against rules, for CI pipelines
///
/// The rules file (TOML) lists measures and their limits: size of the heap, retained sizes and instances of classes,
/// class loaders, leak suspects, waste, growth against a baseline. `--init` writes one from a dump, with an example of
/// each; docs/check.md describes it. The check fails if a dump violates a rule of severity `error`; it also fails if a
/// dump is damaged, unless --allow-damaged is given. The exit code is 2 if rules are invalid or a dump cannot be read,
/// else 1 if a rule failed, else 3 if a dump is damaged, else 0.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    input: SeveralInput,

    /// File with the rules, in TOML
    #[arg(
        long,
        value_name = "FILE",
        value_hint = clap::ValueHint::FilePath,
        required_unless_present = "init",
        help_heading = "Input"
    )]
    rules: Option<PathBuf>,

    /// Compare with this older dump to measure growth [default: `baseline` in the rules file]
    #[arg(long, value_name = "OLD", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    baseline: Option<PathBuf>,

    #[command(flatten)]
    frameworks: FrameworksArgs,

    /// Do not fail if a dump is damaged; check what could be read
    #[arg(long, help_heading = "Filter")]
    allow_damaged: bool,

    /// Write JUnit XML to FILE
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    junit: Option<PathBuf>,

    /// Write SARIF 2.1.0 to FILE
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    sarif: Option<PathBuf>,

    /// Write a commented rules file with limits that the dump passes with a margin
    #[arg(
        long,
        conflicts_with_all = ["rules", "baseline", "allow_damaged", "junit", "sarif", "more", "format"],
        help_heading = "Output"
    )]
    init: bool,

    /// Write to FILE; with --init [default: stdout]
    #[arg(short, long = "output", value_name = "FILE", value_hint = clap::ValueHint::FilePath, requires = "init", help_heading = "Output")]
    out: Option<PathBuf>,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(cx: &RunContext, args: &CheckArgs) -> anyhow::Result<Outcome> {
    let inputs = args.input.inputs();
    // clap requires one.
    let Some(first) = inputs.first() else { return Ok(Outcome::Fine) };
    let Some(path) = args.rules.as_deref() else { return init::run(cx, first, args.out.as_deref()) };
    let rules = rules::read(cx, path)?;
    let old = baseline_path(cx, args, &rules)?;
    // Includes a baseline that no rule needs: nobody intends to overwrite it.
    let baselines = [&args.baseline, &rules.baseline].into_iter().flatten().map(PathBuf::as_path);
    let read: Vec<&Path> = inputs.iter().map(Input::path).chain([path]).chain(baselines).collect();
    // Created before a long read, so that an error is reported at once.
    let reports = Reports::create(args.junit.as_deref(), args.sarif.as_deref(), &read)?;
    let damage = if args.allow_damaged { Damage::IsAllowed } else { Damage::Fails };
    let frameworks = args.frameworks.rules(cx)?;
    let mut run = CheckRun { rules, frameworks, baseline: None, subjects: Vec::new(), errors: Vec::new() };
    let baseline = run.measure_baseline(cx, old.map(|old| first.with_dump(&old)), damage);
    for input in &inputs {
        run.check(cx, input, &baseline, damage);
    }
    let written = reports.write(&run);
    run.errors.extend(written.err());
    match show(cx, args, &run) {
        // The check must not pass because nobody reads its output.
        Err(error) if !is_closed_pipe(&error) => Err(error),
        _ => finish(cx, run),
    }
}

/// The rules, the checked dumps and the errors of a run of `check`.
struct CheckRun {
    rules: Rules,
    /// Rules about frameworks.
    frameworks: Frameworks,
    /// The baseline, if a rule needs it. It has at most one row, which reports damage.
    baseline: Option<CheckedDump>,
    subjects: Vec<CheckedDump>,
    /// Errors that cause exit code 2.
    errors: Vec<anyhow::Error>,
}

/// A checked dump and its rows.
struct CheckedDump {
    dump: DumpHeader<'static>,
    one: DumpOutcome,
    is_read: bool,
    rows: Vec<RuleRow>,
}

impl CheckRun {
    fn measure_baseline(&mut self, cx: &RunContext, input: Option<Input>, damage: Damage) -> Baseline {
        let Some(input) = input else { return Baseline::None };
        let growing: Vec<&Rule> =
            self.rules.rules.iter().filter(|rule| rule.measure.kind.needs_baseline).collect();
        let subject = CheckSubject::measure(cx, &input, &growing, &self.frameworks);
        let mut rows: Vec<RuleRow> = RuleRow::for_damage(&subject, damage).into_iter().collect();
        let (dump, one, is_read, baseline) = match subject.state {
            CheckedState::Read { measured, dump, one, .. } => (dump, one, true, Baseline::Measured(measured)),
            CheckedState::Unreadable(error) => {
                rows.push(RuleRow::unreadable(&subject.path, &error));
                let why = format!("the baseline cannot be read: {error:#}");
                self.errors.push(error);
                let path = input.path();
                (dumps::only_path(path), DumpOutcome::unread(path), false, Baseline::Unreadable(why))
            }
        };
        self.baseline = Some(CheckedDump { dump, one, is_read, rows });
        baseline
    }

    fn check(&mut self, cx: &RunContext, input: &Input, baseline: &Baseline, damage: Damage) {
        let rules: Vec<&Rule> = self.rules.rules.iter().collect();
        let subject = CheckSubject::measure(cx, input, &rules, &self.frameworks);
        let rows = RuleRow::for_dump(&subject, &self.rules, baseline, damage);
        let (dump, one, is_read) = match subject.state {
            CheckedState::Read { dump, one, .. } => (dump, one, true),
            CheckedState::Unreadable(error) => {
                self.errors.push(error);
                (dumps::only_path(input.path()), DumpOutcome::unread(input.path()), false)
            }
        };
        self.subjects.push(CheckedDump { dump, one, is_read, rows });
    }

    /// Returns the baseline, then the dumps.
    fn checked_dumps(&self) -> impl Iterator<Item = &CheckedDump> {
        self.baseline.iter().chain(&self.subjects)
    }

    fn rows(&self) -> impl Iterator<Item = &RuleRow> {
        self.checked_dumps().flat_map(|looked| &looked.rows)
    }

    fn count(&self, is_one: impl Fn(&RuleRow) -> bool) -> u64 {
        self.rows().filter(|row| is_one(row)).count() as u64
    }
}

/// The `dump` key of a JSON document: all properties if there is only one dump.
struct CheckSource<'a>(&'a CheckRun);

impl AnswerSource for CheckSource<'_> {
    fn header(&self) -> DumpHeader<'_> {
        match self.0.subjects.as_slice() {
            [one] => one.dump.clone(),
            [first, ..] => DumpHeader { path: first.dump.path.clone(), ..DumpHeader::default() },
            [] => DumpHeader::default(),
        }
    }

    fn is_damaged(&self) -> bool {
        self.0.rows().any(|row| row.rule == rules::DAMAGED)
    }
}

/// Returns the path of the baseline, if a rule needs it.
fn baseline_path(cx: &RunContext, args: &CheckArgs, rules: &Rules) -> anyhow::Result<Option<PathBuf>> {
    let given = args.baseline.as_ref().or(rules.baseline.as_ref()).cloned();
    let needs = rules.rules.iter().zip(&rules.lines).find(|(rule, _)| rule.measure.kind.needs_baseline);
    match (needs, given) {
        (Some((rule, line)), None) => anyhow::bail!(
            "{}:{line}: rule `{}` compares with a baseline, but none is given; add --baseline OLD, or baseline = \"old.hprof\" at the top of the file",
            rules.path.display(),
            rule.name
        ),
        (None, Some(_)) => {
            if args.baseline.is_some() && !args.input.quiet() {
                cx.emit("note", "no rule measures growth: --baseline is not read");
            }
            Ok(None)
        }
        (_, given) => Ok(given),
    }
}

fn show(cx: &RunContext, args: &CheckArgs, run: &CheckRun) -> anyhow::Result<()> {
    let dumps = if run.checked_dumps().filter(|looked| !looked.rows.is_empty()).count() > 1 {
        DumpCount::Several
    } else {
        DumpCount::One
    };
    let mut rows: Vec<&RuleRow> = run.rows().collect();
    let is_table = args.output.format() == Format::Table;
    if is_table {
        rows.sort_by_key(|row| row.rank());
    }
    let told: Vec<String> =
        rows.iter().filter(|row| row.needs_message()).map(|row| sentence(row, dumps)).collect();
    let mut answer = Answer::new(rows::columns(dumps), rows)
        .with_summary(&summary_columns(), &run)
        .if_empty(NoRows::Nothing);
    if is_table {
        answer = answer.with_section_below(Section::Line(String::new()));
        for text in told {
            answer = answer.with_section_below(Section::Line(text));
        }
        answer = answer.with_section_below(Section::Line(summary(run)));
    }
    CheckSource(run).show(cx, "check", &args.output, answer)?;
    Ok(())
}

/// Describes a row in a sentence.
fn sentence(row: &RuleRow, dumps: DumpCount) -> String {
    let dump = match dumps {
        DumpCount::One => String::new(),
        DumpCount::Several => format!(" ({})", row.dump),
    };
    format!("{}: {}{dump}: {}", row.result(), row.rule, row.message)
}

fn summary(run: &CheckRun) -> String {
    let rules = format_count(run.rules.rules.len() as u64, "rule");
    let dumps = format_count(run.subjects.len() as u64, "dump");
    let parts = [
        (run.count(|row| row.status == Status::Wrong), "errors"),
        (run.count(RuleRow::fails), "failed"),
        (run.count(|row| row.status == Status::Failed && row.severity == Severity::Warning), "warnings"),
        (run.count(|row| row.status == Status::Failed && row.severity == Severity::Note), "notes"),
        (run.count(|row| row.status == Status::Passed), "passed"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| match (count, what.strip_suffix('s')) {
            (1, Some(one)) => format!("1 {one}"),
            _ => format!("{} {what}", group_digits(*count)),
        })
        .collect();
    format!("{rules}, {dumps}: {}", parts.join(", "))
}

/// Ends the run. Invalid rules and unreadable dumps take precedence over a failed rule, and a failed rule over allowed damage.
fn finish(cx: &RunContext, run: CheckRun) -> anyhow::Result<Outcome> {
    let has_failed = run.rows().any(RuleRow::fails);
    let is_damaged = CheckSource(&run).is_damaged();
    let mut errors = run.errors;
    if let Some(last) = errors.pop() {
        errors.iter().for_each(|error| messages::error(cx, error));
        return Err(last);
    }
    Ok(match (has_failed, is_damaged) {
        (true, _) => Outcome::No,
        (false, true) => Outcome::Damaged,
        (false, false) => Outcome::Fine,
    })
}

fn summary_columns<'a>() -> Columns<'a, &'a CheckRun> {
    let is_read = Column::new(names::IS_READABLE, |looked: &CheckedDump| looked.is_read.into());
    let looked =
        Columns::new(DumpOutcome::columns(|looked: &CheckedDump| &looked.one).into_iter().chain([is_read]));
    Columns::new([
        Column::new(names::RULES, |run: &&CheckRun| run.rules.path.to_string_lossy().into_owned().into()),
        Column::new(names::BASELINE, |run: &&CheckRun| {
            run.baseline.as_ref().map(|looked| &*looked.dump.path).into()
        })
        .or_null("no rule measures growth"),
        Column::records(names::DUMPS, looked, |run: &&CheckRun| &run.subjects),
        Column::new(names::TOTAL.dot(names::ROWS), |run: &&CheckRun| run.count(|_| true).into()),
        Column::new(names::TOTAL.dot(names::PASSED), |run: &&CheckRun| {
            run.count(|row| row.status == Status::Passed).into()
        }),
        Column::new(names::TOTAL.dot(names::FAILED), |run: &&CheckRun| {
            run.count(|row| row.status == Status::Failed).into()
        }),
        Column::new(names::TOTAL.dot(names::ERRORS), |run: &&CheckRun| {
            run.count(|row| row.status == Status::Wrong).into()
        }),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "check",
        variant: "",
        about: "A row is a rule and a dump: dumps in the order given, rules in that of the file; [check.md](check.md) describes \
                it. A damaged dump has a row `damaged`, one that cannot be read only a row `unreadable`. Of several dumps, \
                `dump` has only the path of the first; `dumps` has all. The exit code is 2 if `total.errors` is not 0, \
                else 1 if a row of severity `error` failed, else 3 if a dump is damaged.",
        rows: rows::columns(DumpCount::One).fields(),
        summary: summary_columns().fields(),
    }]
}
