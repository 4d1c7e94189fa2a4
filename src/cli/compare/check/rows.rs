//! Result rows: one per rule and dump.

use super::dumps::{CheckSubject, CheckedState};
use super::rules::{DAMAGED, Rules, UNREADABLE};
use super::words;
use crate::cli::prelude::*;
use hprof_query::check::{BaselineComparison, MeasureDetails, Measurement, Rule, Severity, Status};

/// The result of a rule for a dump.
pub(super) struct RuleRow {
    /// Name of the rule.
    pub(super) rule: String,
    /// Number of the rule; `None` if the row is not about a rule of the file.
    pub(super) number: Option<usize>,
    pub(super) severity: Severity,
    /// Measure, in one word.
    pub(super) kind: &'static str,
    pub(super) dump: String,
    pub(super) status: Status,
    pub(super) value: Value<'static>,
    pub(super) limit: Value<'static>,
    pub(super) bound: Option<&'static str>,
    pub(super) unit: Option<&'static str>,
    /// The value and its limit, formatted for people.
    shown: [String; 2],
    pub(super) message: String,
    /// `true` if nothing matches the name in the rule.
    pub(super) is_unmatched: bool,
    /// Line number of the rule in the rules file.
    pub(super) line: Option<u64>,
}

/// State of the baseline.
pub(super) enum Baseline {
    /// No rule needs the baseline.
    None,
    /// Measured values of the rules that need the baseline, in the order of the rules.
    Measured(Vec<Measurement>),
    /// The baseline cannot be read; the text is the reason.
    Unreadable(String),
}

/// Effect of damage on the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    Fails,
    IsAllowed,
}

impl RuleRow {
    /// Returns the rows of a dump: damage first, then the rules in the order of the file.
    pub(super) fn for_dump(
        subject: &CheckSubject,
        rules: &Rules,
        baseline: &Baseline,
        damage: Damage,
    ) -> Vec<Self> {
        let measured = match &subject.state {
            CheckedState::Read { measured, .. } => measured,
            CheckedState::Unreadable(error) => return vec![Self::unreadable(&subject.path, error)],
        };
        let mut rows: Vec<Self> = Self::for_damage(subject, damage).into_iter().collect();
        let mut before = match baseline {
            Baseline::Measured(measured) => measured.iter(),
            _ => [].iter(),
        };
        let mut comparison = BaselineComparison::default();
        for (number, (rule, measured)) in rules.rules.iter().zip(measured).enumerate() {
            let measured = match (rule.measure.kind.needs_baseline, baseline) {
                (false, _) => Ok(measured.clone()),
                (true, Baseline::Unreadable(why)) => Err(why.clone()),
                (true, _) => match before.next() {
                    Some(before) => Ok(comparison.growth(rule, before, measured)),
                    None => Err("no baseline could be read".to_owned()),
                },
            };
            let line = rules.lines.get(number).copied();
            rows.push(Self::for_rule(rule, number, line, &subject.path, measured));
        }
        rows
    }

    /// Returns a row if the dump is damaged.
    pub(super) fn for_damage(subject: &CheckSubject, damage: Damage) -> Option<Self> {
        let text = format!("part of the dump is missing or unreadable: {}", subject.damage()?);
        Some(match damage {
            Damage::Fails => Self::without_figure(DAMAGED, &subject.path, Status::Failed, text),
            Damage::IsAllowed => {
                let text = format!("{text}; allowed by --allow-damaged");
                Self::without_figure(DAMAGED, &subject.path, Status::Passed, text)
            }
        })
    }

    /// Returns a row for a dump that cannot be read.
    pub(super) fn unreadable(path: &str, error: &anyhow::Error) -> Self {
        Self::without_figure(UNREADABLE, path, Status::Wrong, format!("{error:#}"))
    }

    /// Returns the subject of a row that is not about a rule of the file.
    pub(super) fn subject_text(&self) -> String {
        match self.kind {
            DAMAGED => "dumps are complete".to_owned(),
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

    fn for_rule(
        rule: &Rule,
        number: usize,
        line: Option<u64>,
        dump: &str,
        measured: Result<Measurement, String>,
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
            is_unmatched: matches!(measured.found, MeasureDetails::NoMatch { .. }),
            ..Self::without_figure("", dump, verdict.status, words::message(rule, &measured, &verdict))
        })
    }

    /// Returns whether this row makes the check fail.
    pub(super) fn fails(&self) -> bool {
        self.status == Status::Failed && self.severity == Severity::Error
    }

    /// Returns whether a table shows a sentence for this row in addition to its values.
    pub(super) fn needs_message(&self) -> bool {
        self.status != Status::Passed || self.number.is_none() || self.is_unmatched
    }

    /// Returns one word for people, in capitals for failures.
    pub(super) fn result(&self) -> &'static str {
        match (self.status, self.severity) {
            (Status::Passed, _) => "passed",
            (Status::Wrong, _) => "ERROR",
            (Status::Failed, Severity::Error) => "FAILED",
            (Status::Failed, Severity::Warning) => "warning",
            (Status::Failed, Severity::Note) => "note",
        }
    }

    /// Returns the sort key: the worst result first.
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

/// Number of dumps that a table is about: one or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DumpCount {
    One,
    Several,
}

pub(super) fn columns<'a>(dumps: DumpCount) -> Columns<'a, &'a RuleRow> {
    let not_measured = "nothing was measured";
    let columns = Columns::new([
        Column::new(names::RULE, |row: &&RuleRow| (&*row.rule).into()),
        Column::new(names::SEVERITY, |row: &&RuleRow| row.severity.name().into()),
        Column::new(names::DUMP, |row: &&RuleRow| (&*row.dump).into()),
        Column::new(names::IS_PASSED, |row: &&RuleRow| (row.status == Status::Passed).into()),
        Column::new(names::STATUS, |row: &&RuleRow| row.status_name().into()),
        Column::new(names::VALUE, |row: &&RuleRow| row.value.clone()).or_null(not_measured),
        Column::new(names::LIMIT, |row: &&RuleRow| row.limit.clone()).or_null(not_measured),
        Column::new(names::BOUND, |row: &&RuleRow| row.bound.into()).or_null(not_measured),
        Column::new(names::UNIT, |row: &&RuleRow| row.unit.into()).or_null(not_measured),
        Column::new(names::IS_MATCHED, |row: &&RuleRow| (!row.is_unmatched).into()),
        Column::new(names::MESSAGE, |row: &&RuleRow| (&*row.message).into()),
        Column::new(names::LINE, |row: &&RuleRow| row.line.into()).or_null("not in the rules file"),
    ]);
    let mut shown = vec![
        TableColumn::table_only("result", Align::Left, |row: &&RuleRow| row.result().to_owned()),
        TableColumn::new(names::RULE, "rule").fit(Fit::Shorten { priority: 1 }),
        TableColumn::new(names::VALUE, "value").cell(|row: &&RuleRow| row.shown[0].clone()),
        TableColumn::new(names::LIMIT, "limit").cell(|row: &&RuleRow| row.shown[1].clone()),
    ];
    if dumps == DumpCount::Several {
        shown.push(TableColumn::new(names::DUMP, "dump").fit(Fit::Middle { priority: 0 }));
    }
    columns.table(shown)
}
