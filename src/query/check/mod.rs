//! Rules for a heap: what is measured, what its limits are, and whether a dump keeps to them.
//!
//! A rule is data: where it was written, and how, is no matter here. [`measure()`] takes the figures of one dump, all rules at
//! once; [`Rule::judge`] compares a figure with the limits. Growth is measured in the baseline and in the dump, and
//! [`Comparison`] has the difference: only one dump has to be open at a time.

mod growth;
mod limits;
mod measure;
mod places;

pub use growth::Comparison;
pub use limits::{Bound, Limit, Limits, Percent, Range};
use measure::Dump;
pub use measure::{Found, LeftOut, MEASURES, Measured, Named, Opened, measure};
pub use places::PlacesOfDump;

use crate::classes::histogram::Scope;
use crate::classes::pattern::ClassPattern;

/// How bad it is if a rule fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum Severity {
    /// The check fails.
    #[default]
    Error,
    /// It is shown.
    Warning,
    /// It is told.
    Note,
}

impl Severity {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Note];

    /// The name in rules and in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// What a rule measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// The measure.
    pub kind: &'static MeasureKind,
    /// What it is of, as the rule says it.
    pub of: Option<String>,
    /// The objects that count.
    pub scope: Scope,
}

/// A measure: its definition, in its own file of `measure`. Measures are compared by name.
#[derive(Debug)]
pub struct MeasureKind {
    /// The name in rules and in output.
    pub name: &'static str,
    /// What its figures are.
    pub unit: Unit,
    /// What `of` is in rules.
    pub of: Of,
    /// The objects that count if a rule does not say; `None` if a rule cannot say, and reachable ones count.
    pub scope: Option<Scope>,
    /// Whether the summary of the dump is enough if all objects count.
    is_in_summary: bool,
    /// Whether it compares with a baseline.
    pub needs_baseline: bool,
    /// Whether rules can have a lower limit.
    pub has_min: bool,
    /// Says what is wrong with a rule, by `of`, `of` as messages quote it, and whether the rule has `objects`.
    pub check: fn(&str, &str, bool) -> Result<(), RuleError>,
    /// What is measured, in words.
    pub subject: fn(&Measure) -> String,
    measure: fn(&mut Dump<'_>, &Measure) -> std::io::Result<Measured>,
}

/// What `of` is in the rules of a measure, in words.
#[derive(Debug, Clone, Copy)]
pub enum Of {
    /// There is none.
    Nothing,
    /// It can be omitted.
    Optional(&'static str),
    /// It cannot be omitted.
    Required(&'static str),
}

/// What is wrong with a rule.
#[derive(Debug)]
pub enum RuleError {
    /// Its `of`.
    Of(String),
    /// That it has `objects`.
    Objects(&'static str),
}

impl Of {
    /// What is expected.
    pub const fn expected(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Optional(what) | Self::Required(what) => what,
        }
    }
}

/// The `of` of measures of classes.
const CLASS_PATTERN: &str = "a pattern of class names, for example \"com.acme.**Cache\"";

impl MeasureKind {
    /// What most measures have in common.
    const BASE: Self = Self {
        name: "",
        unit: Unit::Bytes,
        of: Of::Nothing,
        scope: None,
        is_in_summary: false,
        needs_baseline: false,
        has_min: true,
        check: |_, _, _| Ok(()),
        subject: |measure| measure.kind.name.to_owned(),
        measure: |_, _| Ok(Measured::new(0, 0)),
    };
}

impl PartialEq for MeasureKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for MeasureKind {}

/// What figures are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Sizes.
    Bytes,
    /// Numbers of things.
    Count,
}

/// What has to be open to measure something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// The summary of the dump.
    Summary,
    /// The graph of all objects.
    Graph,
}

impl Measure {
    /// What a rule measures that says nothing about objects.
    pub fn new(kind: &'static MeasureKind, of: Option<String>) -> Self {
        Self { kind, of, scope: kind.scope.unwrap_or(Scope::Reachable) }
    }

    /// What has to be open for it.
    pub fn needs(&self) -> Needs {
        if self.kind.is_in_summary && self.scope == Scope::All { Needs::Summary } else { Needs::Graph }
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

    /// The heap, in words.
    const fn heap(&self) -> &'static str {
        match self.scope {
            Scope::All => "the heap",
            Scope::Reachable => "the reachable heap",
            Scope::Unreachable => "unreachable objects",
        }
    }

    /// Which objects count, before what they are.
    const fn objects(&self) -> &'static str {
        match self.scope {
            Scope::All => "",
            Scope::Reachable => "reachable ",
            Scope::Unreachable => "unreachable ",
        }
    }
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// How bad it is if it fails.
    pub severity: Severity,
    /// What is measured.
    pub measure: Measure,
    /// What is allowed.
    pub limits: Limits,
    /// Whether nothing in a dump needs to have the name that it asks for. Else the rule fails then: who misspells a name would
    /// have a gate that is always open.
    pub is_optional: bool,
}

/// What became of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The figure is within the limits.
    Passed,
    /// It is not, or nothing has the name that is asked for.
    Failed,
    /// It cannot be told.
    Wrong,
}

/// What a rule says of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it is allowed.
    pub status: Status,
    /// The limit that it exceeds or does not reach; of an allowed one `max`, if there is one.
    pub limit: Limit,
    /// Whether it is not allowed only because nothing has the name that was asked for.
    pub fails_by_name: bool,
}

impl Verdict {
    /// Returns whether the figure itself is not allowed, not only a name that nothing has.
    pub fn exceeds_limit(&self) -> bool {
        self.status == Status::Failed && !self.fails_by_name
    }
}

impl Rule {
    /// Compares a figure with the limits.
    pub fn judge(&self, measured: &Measured) -> Verdict {
        let (limit, is_kept) = self.limits.judge(measured.amount, measured.whole);
        let is_missing = !self.is_optional && matches!(measured.found, Found::NoMatch { .. });
        let status = if is_kept && !is_missing { Status::Passed } else { Status::Failed };
        Verdict { status, limit, fails_by_name: is_kept && is_missing }
    }
}
