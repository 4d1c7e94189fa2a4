//! What became of each rule for each dump: rows, and how they are shown.

use super::dumps::{State, Subject};
use super::rules::{DAMAGED, Rules, UNREADABLE};
use super::words;
use hprof_query::check::{Comparison, Found, Measured, Rule, Severity, Status};
use hprof_query::dictionary::names;
use hprof_report::column::{Align, Column, Columns, Fit};
use hprof_report::value::Value;

/// A rule and a dump.
pub(super) struct Row {
    /// The rule's name.
    pub(super) rule: String,
    /// Its number; `None` of what is not in the rules file.
    pub(super) number: Option<usize>,
    pub(super) severity: Severity,
    /// What is measured, in one word.
    pub(super) kind: &'static str,
    pub(super) dump: String,
    pub(super) status: Status,
    pub(super) value: Value<'static>,
    pub(super) limit: Value<'static>,
    pub(super) bound: Option<&'static str>,
    pub(super) unit: Option<&'static str>,
    /// The figure and its limit, for people.
    shown: [String; 2],
    pub(super) message: String,
    /// `true` if nothing has the name that the rule asks for.
    pub(super) is_unmatched: bool,
    /// Where the rule is.
    pub(super) line: Option<u64>,
}

/// The baseline, as far as rules need it.
pub(super) enum Baseline {
    /// No rule does.
    None,
    /// A figure for each rule that does, in their order.
    Measured(Vec<Measured>),
    /// It cannot be read, and why.
    Unreadable(String),
}

/// Whether damage is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    Fails,
    IsAllowed,
}

impl Row {
    /// Of a dump: damage first, then the rules in their order.
    pub(super) fn of(subject: &Subject, rules: &Rules, baseline: &Baseline, damage: Damage) -> Vec<Self> {
        let measured = match &subject.state {
            State::Read { measured, .. } => measured,
            State::Unreadable(error) => return vec![Self::unreadable(&subject.path, error)],
        };
        let mut rows: Vec<Self> = Self::damaged(subject, damage).into_iter().collect();
        let mut before = match baseline {
            Baseline::Measured(measured) => measured.iter(),
            _ => [].iter(),
        };
        let mut comparison = Comparison::default();
        for (number, (rule, measured)) in rules.rules.iter().zip(measured).enumerate() {
            let measured = match (rule.measure.kind.needs_baseline, baseline) {
                (false, _) => Ok(measured.clone()),
                (true, Baseline::Unreadable(why)) => Err(why.clone()),
                (true, _) => match before.next() {
                    Some(before) => Ok(comparison.growth(rule, before, measured)),
                    None => Err("there is no baseline".to_owned()),
                },
            };
            let line = rules.lines.get(number).copied();
            rows.push(Self::judged(rule, number, line, &subject.path, measured));
        }
        rows
    }

    /// That a dump is damaged, if it is.
    pub(super) fn damaged(subject: &Subject, damage: Damage) -> Option<Self> {
        let text = format!("part of the dump is missing or unreadable: {}", subject.damage()?);
        Some(match damage {
            Damage::Fails => Self::without_figure(DAMAGED, &subject.path, Status::Failed, text),
            Damage::IsAllowed => {
                let text = format!("{text}; allowed by --allow-damaged");
                Self::without_figure(DAMAGED, &subject.path, Status::Passed, text)
            }
        })
    }

    /// That a dump cannot be read.
    pub(super) fn unreadable(path: &str, error: &anyhow::Error) -> Self {
        Self::without_figure(UNREADABLE, path, Status::Wrong, format!("{error:#}"))
    }

    /// What a row is about that is not in the rules file.
    pub(super) fn about(&self) -> String {
        match self.kind {
            DAMAGED => "dumps are whole".to_owned(),
            _ => "dumps can be read".to_owned(),
        }
    }

    fn without_figure(rule: &'static str, dump: &str, status: Status, message: String) -> Self {
        Self {
            rule: rule.to_owned(),
            number: None,
            severity: Severity::Error,
            kind: rule,
            dump: dump.to_owned(),
            status,
            value: Value::Null,
            limit: Value::Null,
            bound: None,
            unit: None,
            shown: [String::new(), String::new()],
            message,
            is_unmatched: false,
            line: None,
        }
    }

    fn judged(
        rule: &Rule,
        number: usize,
        line: Option<u64>,
        dump: &str,
        measured: Result<Measured, String>,
    ) -> Self {
        let subject = (rule.measure.kind.subject)(&rule.measure);
        let named = |row: Self| Self {
            rule: rule.name.clone(),
            number: Some(number),
            severity: rule.severity,
            kind: rule.measure.kind.name,
            line,
            ..row
        };
        let measured = match measured {
            Ok(measured) => measured,
            Err(why) => {
                return named(Self::without_figure("", dump, Status::Wrong, format!("{subject}: {why}")));
            }
        };
        let verdict = rule.judge(&measured);
        named(Self {
            value: words::value(&measured, &verdict),
            limit: words::limit(verdict.limit),
            bound: Some(verdict.limit.bound().name()),
            unit: Some(words::unit(&rule.measure, verdict.limit)),
            shown: words::figures(&rule.measure, &measured, &verdict),
            is_unmatched: matches!(measured.found, Found::NoMatch { .. }),
            ..Self::without_figure("", dump, verdict.status, words::message(rule, &measured, &verdict))
        })
    }

    /// Returns whether the check fails with it.
    pub(super) fn fails(&self) -> bool {
        self.status == Status::Failed && self.severity == Severity::Error
    }

    /// Returns whether a table tells more of it than its figures.
    pub(super) fn is_told(&self) -> bool {
        self.status != Status::Passed || self.number.is_none() || self.is_unmatched
    }

    /// One word for people: what failed stands out.
    pub(super) fn result(&self) -> &'static str {
        match (self.status, self.severity) {
            (Status::Passed, _) => "passed",
            (Status::Wrong, _) => "ERROR",
            (Status::Failed, Severity::Error) => "FAILED",
            (Status::Failed, Severity::Warning) => "warning",
            (Status::Failed, Severity::Note) => "note",
        }
    }

    /// What is worst comes first.
    pub(super) fn rank(&self) -> u8 {
        match (self.status, self.severity) {
            (Status::Wrong, _) => 0,
            (Status::Failed, Severity::Error) => 1,
            (Status::Failed, Severity::Warning) => 2,
            (Status::Failed, Severity::Note) => 3,
            (Status::Passed, _) => 4,
        }
    }

    const fn status_name(&self) -> &'static str {
        match self.status {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Wrong => "error",
        }
    }
}

/// Which dumps a table names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dumps {
    One,
    Several,
}

pub(super) fn columns<'a>(dumps: Dumps) -> Columns<'a, &'a Row> {
    let dump = Column::of(names::DUMP, |row: &&Row| (&*row.dump).into());
    let dump = match dumps {
        Dumps::One => dump,
        Dumps::Several => dump.header("dump").place(4).fit(Fit::Middle { priority: 0 }),
    };
    let not_measured = "nothing was measured";
    Columns::new([
        Column::table("result", Align::Left, |row: &&Row| row.result().to_owned()).place(0),
        Column::of(names::RULE, |row: &&Row| (&*row.rule).into())
            .header("rule")
            .place(1)
            .fit(Fit::Shorten { priority: 1 }),
        Column::of(names::SEVERITY, |row: &&Row| row.severity.name().into()),
        dump,
        Column::of(names::IS_PASSED, |row: &&Row| (row.status == Status::Passed).into()),
        Column::of(names::STATUS, |row: &&Row| row.status_name().into()),
        Column::of(names::VALUE, |row: &&Row| row.value.clone())
            .or_null(not_measured)
            .header("value")
            .place(2)
            .cell(|row| row.shown[0].clone()),
        Column::of(names::LIMIT, |row: &&Row| row.limit.clone())
            .or_null(not_measured)
            .header("limit")
            .place(3)
            .cell(|row| row.shown[1].clone()),
        Column::of(names::BOUND, |row: &&Row| row.bound.into()).or_null(not_measured),
        Column::of(names::UNIT, |row: &&Row| row.unit.into()).or_null(not_measured),
        Column::of(names::IS_MATCHED, |row: &&Row| (!row.is_unmatched).into()),
        Column::of(names::MESSAGE, |row: &&Row| (&*row.message).into()),
        Column::of(names::LINE, |row: &&Row| row.line.into()).or_null("it is not in the rules file"),
    ])
}
