//! `check`: whether dumps keep to the rules of a file. One file a step: [`rules`] are read, [`dumps`] measured, [`rows`]
//! made and shown, [`reports`] written.

mod dumps;
mod init;
mod limits;
mod reports;
mod rows;
mod rules;
mod words;

use std::path::{Path, PathBuf};

use crate::cli::shared::args::{Input, Output};
use crate::cli::shared::messages;
use crate::cli::shared::session::Source;
use crate::cli::shared::several::{OneDump, SeveralInput};
use crate::cli::{Outcome, is_closed_pipe};
use hprof_query::check::{Rule, Severity, Status};
use hprof_query::dictionary::names;
use hprof_report::Format;
use hprof_report::answer::{Answer, Declared, NoRows, Section};
use hprof_report::column::{Column, Columns};
use hprof_report::json::Dump;
use hprof_report::number::{counted, grouped};

use dumps::{State, Subject};
use reports::Reports;
use rows::{Baseline, Damage, Dumps, Row};
use rules::{Rules, WrongRules};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli check --init heap.hprof -o heap-rules.toml
  hprof-cli check heap.hprof --rules heap-rules.toml
  hprof-cli check new.hprof --rules heap-rules.toml --baseline old.hprof
  hprof-cli check *.hprof --rules heap-rules.toml --junit check.xml --sarif check.sarif";

/// Check dumps against rules, for pipelines
///
/// The rules file (TOML) says what is measured and which limits it has: bytes of the heap, what classes
/// retain, their instances, class loaders, leak suspects, waste, growth against a baseline. `--init` writes
/// one from a dump, with an example of each; docs/check.md describes it. A rule of severity `error` that a
/// dump does not keep to fails the check; so does a damaged dump unless --allow-damaged is given. The exit
/// code is 2 if rules are wrong or a dump cannot be read, else 1 if a rule failed, else 3 if a dump is
/// damaged, else 0.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "hprof-cli check [OPTIONS] --rules <FILE> <DUMP>...\n       hprof-cli check --init [-o <FILE>] <DUMP>"
)]
pub(crate) struct Args {
    #[command(flatten)]
    input: SeveralInput,

    /// The rules file
    #[arg(
        long,
        value_name = "FILE",
        value_hint = clap::ValueHint::FilePath,
        required_unless_present = "init",
        help_heading = "Input"
    )]
    rules: Option<PathBuf>,

    /// Compare with this older dump: growth is measured against it [default: `baseline` of the rules file]
    #[arg(long, value_name = "OLD", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    baseline: Option<PathBuf>,

    /// Do not fail because a dump is damaged: check what could be read
    #[arg(long, help_heading = "Filter")]
    allow_damaged: bool,

    /// Write JUnit XML to FILE
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    junit: Option<PathBuf>,

    /// Write SARIF 2.1.0 to FILE
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    sarif: Option<PathBuf>,

    /// Write a commented rules file whose limits the dump keeps to, with some room
    #[arg(
        long,
        conflicts_with_all = ["rules", "baseline", "allow_damaged", "junit", "sarif", "more", "format"],
        help_heading = "Output"
    )]
    init: bool,

    /// Write to FILE: the rules file of --init [default: stdout]
    #[arg(short, long = "output", value_name = "FILE", value_hint = clap::ValueHint::FilePath, requires = "init", help_heading = "Output")]
    out: Option<PathBuf>,

    #[command(flatten)]
    output: Output<true>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let inputs = args.input.inputs();
    // There is one: it is required.
    let Some(first) = inputs.first() else { return Ok(Outcome::Fine) };
    let Some(path) = args.rules.as_deref() else { return init::run(first, args.out.as_deref()) };
    let rules = match rules::read(path) {
        Ok(rules) => rules,
        Err(error) => return Err(said(error)),
    };
    let old = baseline_path(args, &rules)?;
    // Also a baseline that no rule needs: nobody means to replace it.
    let baselines = [&args.baseline, &rules.baseline].into_iter().flatten().map(PathBuf::as_path);
    let read: Vec<&Path> = inputs.iter().map(Input::path).chain([path]).chain(baselines).collect();
    // Before a long read: a file that cannot be written is known at once.
    let reports = Reports::create(args.junit.as_deref(), args.sarif.as_deref(), &read)?;
    let damage = if args.allow_damaged { Damage::IsAllowed } else { Damage::Fails };
    let mut run = Run { rules, baseline: None, subjects: Vec::new(), errors: Vec::new() };
    let baseline = run.measure_baseline(old.map(|old| first.of(&old)), damage);
    for input in &inputs {
        run.check(input, &baseline, damage);
    }
    let written = reports.write(&run);
    run.errors.extend(written.err());
    match show(args, &run) {
        // A gate does not open because nobody reads what it says.
        Err(error) if !is_closed_pipe(&error) => Err(error),
        _ => finish(run),
    }
}

/// A run, as far as it got.
struct Run {
    rules: Rules,
    /// The baseline, if a rule needs it; its only row says that it is damaged.
    baseline: Option<Looked>,
    subjects: Vec<Looked>,
    /// What makes the exit code 2.
    errors: Vec<anyhow::Error>,
}

/// A dump that was looked at.
struct Looked {
    dump: Dump<'static>,
    one: OneDump,
    is_read: bool,
    rows: Vec<Row>,
}

impl Run {
    fn measure_baseline(&mut self, input: Option<Input>, damage: Damage) -> Baseline {
        let Some(input) = input else { return Baseline::None };
        let growing: Vec<&Rule> =
            self.rules.rules.iter().filter(|rule| rule.measure.kind.needs_baseline).collect();
        let subject = Subject::measure(&input, &growing);
        let mut rows: Vec<Row> = Row::damaged(&subject, damage).into_iter().collect();
        let (dump, one, is_read, baseline) = match subject.state {
            State::Read { measured, dump, one, .. } => (dump, one, true, Baseline::Measured(measured)),
            State::Unreadable(error) => {
                rows.push(Row::unreadable(&subject.path, &error));
                let why = format!("the baseline cannot be read: {error:#}");
                self.errors.push(error);
                let path = input.path();
                (dumps::only_path(path), OneDump::unread(path), false, Baseline::Unreadable(why))
            }
        };
        self.baseline = Some(Looked { dump, one, is_read, rows });
        baseline
    }

    fn check(&mut self, input: &Input, baseline: &Baseline, damage: Damage) {
        let rules: Vec<&Rule> = self.rules.rules.iter().collect();
        let subject = Subject::measure(input, &rules);
        let rows = Row::of(&subject, &self.rules, baseline, damage);
        let (dump, one, is_read) = match subject.state {
            State::Read { dump, one, .. } => (dump, one, true),
            State::Unreadable(error) => {
                self.errors.push(error);
                (dumps::only_path(input.path()), OneDump::unread(input.path()), false)
            }
        };
        self.subjects.push(Looked { dump, one, is_read, rows });
    }

    /// The baseline, then the dumps.
    fn looked(&self) -> impl Iterator<Item = &Looked> {
        self.baseline.iter().chain(&self.subjects)
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.looked().flat_map(|looked| &looked.rows)
    }

    fn count(&self, is_one: impl Fn(&Row) -> bool) -> u64 {
        self.rows().filter(|row| is_one(row)).count() as u64
    }
}

/// What JSON says of the dump: all if there is one.
struct Shown<'a>(&'a Run);

impl Source for Shown<'_> {
    fn dump(&self) -> Dump<'_> {
        match self.0.subjects.as_slice() {
            [one] => one.dump.clone(),
            [first, ..] => Dump { path: first.dump.path.clone(), ..Dump::default() },
            [] => Dump::default(),
        }
    }

    fn is_damaged(&self) -> bool {
        self.0.rows().any(|row| row.rule == rules::DAMAGED)
    }
}

/// Says what is wrong with the rules, all but the last, which is how the run ends.
fn said(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<WrongRules>() {
        Ok(WrongRules(mut all)) => {
            let last = all.pop().unwrap_or_default();
            all.iter().for_each(|one| messages::line("error", one));
            anyhow::Error::msg(last)
        }
        Err(other) => other,
    }
}

/// The baseline, if a rule needs it.
fn baseline_path(args: &Args, rules: &Rules) -> anyhow::Result<Option<PathBuf>> {
    let given = args.baseline.as_ref().or(rules.baseline.as_ref()).cloned();
    let needs = rules.rules.iter().zip(&rules.lines).find(|(rule, _)| rule.measure.kind.needs_baseline);
    match (needs, given) {
        (Some((rule, line)), None) => anyhow::bail!(
            "{}:{line}: rule `{}` compares with a baseline, and there is none; add --baseline OLD, or baseline = \"old.hprof\" at the top of the file",
            rules.path.display(),
            rule.name
        ),
        (None, Some(_)) => {
            if args.baseline.is_some() && !args.input.quiet() {
                messages::line("note", "no rule measures growth: --baseline is not read");
            }
            Ok(None)
        }
        (_, given) => Ok(given),
    }
}

fn show(args: &Args, run: &Run) -> anyhow::Result<()> {
    let dumps = if run.looked().filter(|looked| !looked.rows.is_empty()).count() > 1 {
        Dumps::Several
    } else {
        Dumps::One
    };
    let mut rows: Vec<&Row> = run.rows().collect();
    let is_table = args.output.format() == Format::Table;
    if is_table {
        rows.sort_by_key(|row| row.rank());
    }
    let told: Vec<String> = rows.iter().filter(|row| row.is_told()).map(|row| sentence(row, dumps)).collect();
    let mut answer =
        Answer::new(rows::columns(dumps), rows).beside(&beside(), &run).without_rows(NoRows::Nothing);
    if is_table {
        answer = answer.under(Section::Line(String::new()));
        for text in told {
            answer = answer.under(Section::Line(text));
        }
        answer = answer.under(Section::Line(summary(run)));
    }
    Shown(run).show("check", &args.output, answer)?;
    Ok(())
}

/// What has to be said of a row.
fn sentence(row: &Row, dumps: Dumps) -> String {
    let dump = match dumps {
        Dumps::One => String::new(),
        Dumps::Several => format!(" ({})", row.dump),
    };
    format!("{}: {}{dump}: {}", row.result(), row.rule, row.message)
}

fn summary(run: &Run) -> String {
    let rules = counted(run.rules.rules.len() as u64, "rule");
    let dumps = counted(run.subjects.len() as u64, "dump");
    let parts = [
        (run.count(|row| row.status == Status::Wrong), "errors"),
        (run.count(Row::fails), "failed"),
        (run.count(|row| row.status == Status::Failed && row.severity == Severity::Warning), "warnings"),
        (run.count(|row| row.status == Status::Failed && row.severity == Severity::Note), "notes"),
        (run.count(|row| row.status == Status::Passed), "passed"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| match (count, what.strip_suffix('s')) {
            (1, Some(one)) => format!("1 {one}"),
            _ => format!("{} {what}", grouped(*count)),
        })
        .collect();
    format!("{rules}, {dumps}: {}", parts.join(", "))
}

/// Ends the run: wrong rules and unreadable dumps count more than a failed rule, and that more than allowed damage.
fn finish(run: Run) -> anyhow::Result<Outcome> {
    let has_failed = run.rows().any(Row::fails);
    let is_damaged = Shown(&run).is_damaged();
    let mut errors = run.errors;
    if let Some(last) = errors.pop() {
        errors.iter().for_each(messages::error);
        return Err(last);
    }
    Ok(match (has_failed, is_damaged) {
        (true, _) => Outcome::No,
        (false, true) => Outcome::Damaged,
        (false, false) => Outcome::Fine,
    })
}

fn beside<'a>() -> Columns<'a, &'a Run> {
    let is_read = Column::of(names::IS_READABLE, |looked: &Looked| looked.is_read.into());
    let looked = Columns::new(OneDump::columns(|looked: &Looked| &looked.one).into_iter().chain([is_read]));
    Columns::new([
        Column::of(names::RULES, |run: &&Run| run.rules.path.to_string_lossy().into_owned().into()),
        Column::of(names::BASELINE, |run: &&Run| {
            run.baseline.as_ref().map(|looked| &*looked.dump.path).into()
        })
        .or_null("no rule measures growth"),
        Column::records(names::DUMPS, looked, |run: &&Run| &run.subjects),
        Column::of(names::TOTAL.dot(names::ROWS), |run: &&Run| run.count(|_| true).into()),
        Column::of(names::TOTAL.dot(names::PASSED), |run: &&Run| {
            run.count(|row| row.status == Status::Passed).into()
        }),
        Column::of(names::TOTAL.dot(names::FAILED), |run: &&Run| {
            run.count(|row| row.status == Status::Failed).into()
        }),
        Column::of(names::TOTAL.dot(names::ERRORS), |run: &&Run| {
            run.count(|row| row.status == Status::Wrong).into()
        }),
    ])
}

pub(crate) fn declared() -> Vec<Declared> {
    vec![Declared {
        command: "check",
        variant: "",
        about: "A row is a rule and a dump: dumps in the order given, rules in that of the file; [check.md](check.md) describes \
                it. A damaged dump has a row `damaged`, one that cannot be read only a row `unreadable`. Of several dumps, \
                `dump` has only the path of the first; `dumps` has all. The exit code is 2 if `total.errors` is not 0, \
                else 1 if a row of severity `error` failed, else 3 if a dump is damaged.",
        rows: rows::columns(Dumps::One).fields(),
        beside: beside().fields(),
    }]
}
