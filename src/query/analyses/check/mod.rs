//! Rules for a heap: measures, limits, and verdicts.
//!
//! A rule is data, independent of where and in what syntax it was written. [`measure()`] computes the figures of one
//! dump for all rules at once; [`Rule::judge`] compares a figure with the limits. Growth is measured in the baseline
//! and in the dump, and [`BaselineComparison`] computes the difference: only one dump has to be open at a time.

mod growth;
mod limits;
mod measure;
mod places;

pub use growth::BaselineComparison;
pub use limits::{Limit, LimitKind, Percent, Range, RuleLimits};
use measure::DumpData;
pub use measure::{LeftOut, MEASURES, MeasureDetails, MeasuredDump, Measurement, NamedKind, measure};
pub use places::PlacesOfDump;

use hprof_base::naming::pattern::ClassPattern;
use hprof_model::histogram::Scope;

/// Effect of a failed rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum Severity {
    /// The check fails.
    #[default]
    Error,
    /// Reported as a warning.
    Warning,
    /// Reported as a note.
    Note,
}

impl Severity {
    /// All severities.
    pub const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Note];

    /// Returns the name in rules and in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Quantity that a rule measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// Kind of measure.
    pub kind: &'static MeasureKind,
    /// Subject of the measure: the `of` of the rule.
    pub of: Option<String>,
    /// Objects that are measured.
    pub scope: Scope,
}

/// Definition of a measure. Each measure has its own file in `measure`; measures are compared by name.
#[derive(Debug)]
pub struct MeasureKind {
    /// Name in rules and in output.
    pub name: &'static str,
    /// Unit of the figures.
    pub unit: Unit,
    /// Meaning of `of` in rules.
    pub of: OfRequirement,
    /// Objects that are measured by default; `None` if rules cannot have `objects`, and reachable objects are measured.
    pub scope: Option<Scope>,
    /// `true` if the summary of the dump is enough when all objects are measured.
    is_in_summary: bool,
    /// `true` if the measure compares with a baseline.
    pub needs_baseline: bool,
    /// `true` if rules can have a lower limit.
    pub has_min: bool,
    /// Checks a rule: its `of` and how messages quote it, and whether the rule has `objects`.
    pub check: fn(&str, &str, bool) -> Result<(), RuleError>,
    /// Describes what is measured, in words.
    pub subject: fn(&Measure) -> String,
    measure: fn(&mut DumpData<'_>, &Measure) -> std::io::Result<Measurement>,
}

/// Meaning of `of` in the rules of a measure.
#[derive(Debug, Clone, Copy)]
pub enum OfRequirement {
    /// It is not allowed.
    Nothing,
    /// It is optional.
    Optional(&'static str),
    /// It is required.
    Required(&'static str),
}

/// Error in a rule.
#[derive(Debug)]
pub enum RuleError {
    /// The rule's `of` is wrong; contains the message.
    Of(String),
    /// The rule must not have `objects`.
    Objects(&'static str),
}

impl OfRequirement {
    /// Returns a description of the expected value.
    pub const fn expected_value(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Optional(what) | Self::Required(what) => what,
        }
    }
}

/// Expected `of` of measures of classes.
const CLASS_PATTERN: &str = "a pattern of class names, for example \"com.acme.**Cache\"";

impl MeasureKind {
    /// Default values of the fields.
    const BASE: Self = Self {
        name: "",
        unit: Unit::Bytes,
        of: OfRequirement::Nothing,
        scope: None,
        is_in_summary: false,
        needs_baseline: false,
        has_min: true,
        check: |_, _, _| Ok(()),
        subject: |measure| measure.kind.name.to_owned(),
        measure: |_, _| Ok(Measurement::new(0, 0)),
    };
}

impl PartialEq for MeasureKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for MeasureKind {}

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Size in bytes.
    Bytes,
    /// Number of things.
    Count,
}

/// Part of a dump that has to be open to measure a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequiredData {
    /// The summary of the dump.
    Summary,
    /// The graph of all objects.
    Graph,
}

impl Measure {
    /// Creates the measure of a rule without `objects`.
    pub fn new(kind: &'static MeasureKind, of: Option<String>) -> Self {
        Self { kind, of, scope: kind.scope.unwrap_or(Scope::Reachable) }
    }

    /// Returns the part of the dump that has to be open.
    pub fn required_data(&self) -> RequiredData {
        if self.kind.is_in_summary && self.scope == Scope::All {
            RequiredData::Summary
        } else {
            RequiredData::Graph
        }
    }

    fn text(&self) -> &str {
        self.of.as_deref().unwrap_or_default()
    }

    fn of_pattern(&self) -> Option<ClassPattern> {
        self.of.is_some().then(|| self.pattern())
    }

    fn pattern(&self) -> ClassPattern {
        // Every text is a pattern.
        let Ok(pattern) = self.text().parse();
        pattern
    }

    /// Returns the noun phrase for the measured heap in messages.
    const fn heap(&self) -> &'static str {
        match self.scope {
            Scope::All => "the heap",
            Scope::Reachable => "the reachable heap",
            Scope::Unreachable => "unreachable objects",
        }
    }

    /// Returns the adjective for the measured objects in messages, followed by a space.
    const fn objects(&self) -> &'static str {
        match self.scope {
            Scope::All => "",
            Scope::Reachable => "reachable ",
            Scope::Unreachable => "unreachable ",
        }
    }
}

/// A rule of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Name of the rule.
    pub name: String,
    /// Severity if the rule fails.
    pub severity: Severity,
    /// Measured quantity.
    pub measure: Measure,
    /// Allowed range.
    pub limits: RuleLimits,
    /// `true` if the rule passes although no class or place has the requested name. Otherwise it fails, since a misspelled name
    /// would make the rule useless.
    pub is_optional: bool,
}

/// Outcome of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The figure is within the limits.
    Passed,
    /// The figure is outside the limits, or nothing has the requested name.
    Failed,
    /// The rule cannot be evaluated.
    Wrong,
}

/// Verdict on the figure that a rule measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleVerdict {
    /// Outcome.
    pub status: Status,
    /// Violated limit; if the rule passed, its upper limit, or else its lower limit.
    pub limit: Limit,
    /// `true` if the rule failed only because nothing has the requested name.
    pub fails_by_name: bool,
}

impl RuleVerdict {
    /// Returns whether the figure itself violates a limit, rather than only a name being missing.
    pub fn exceeds_limit(&self) -> bool {
        self.status == Status::Failed && !self.fails_by_name
    }
}

impl Rule {
    /// Compares a figure with the limits.
    pub fn judge(&self, measured: &Measurement) -> RuleVerdict {
        let (limit, is_kept) = self.limits.judge(measured.amount, measured.whole);
        let is_missing = !self.is_optional && matches!(measured.found, MeasureDetails::NoMatch { .. });
        let status = if is_kept && !is_missing { Status::Passed } else { Status::Failed };
        RuleVerdict { status, limit, fails_by_name: is_kept && is_missing }
    }
}
