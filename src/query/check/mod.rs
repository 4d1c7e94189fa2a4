//! Rules for a heap: measures, limits, and verdicts.
//!
//! A rule is data, independent of where and in what syntax it was written. [`measure()`] computes the figures of one
//! dump for all rules at once; [`Rule::judge`] compares a figure with the limits. Growth is measured in the baseline
//! and in the dump, and [`Comparison`] computes the difference: only one dump has to be open at a time.

mod growth;
mod limits;
mod measure;
mod places;

pub use growth::Comparison;
pub use limits::{Bound, Limit, Percent, Range, RuleLimits};
pub use measure::{LeftOut, MeasureDetails, Measured, MeasuredDump, NamedKind, measure};
pub use places::PlacesOfDump;

use crate::classes::histogram::Scope;
use crate::classes::pattern::ClassPattern;
use crate::waste::WasteKind;

/// Severity of a failed rule.
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
pub enum Measure {
    /// Bytes of the heap.
    Heap(Scope),
    /// Size retained together by the reachable objects of the matching classes.
    Retained(ClassPattern),
    /// Shallow size of the objects of the matching classes.
    Shallow(ClassPattern, Scope),
    /// Number of objects of the matching classes.
    Instances(ClassPattern, Scope),
    /// Class loaders except the boot loader: all, or those whose class or name matches.
    Loaders(Option<ClassPattern>, Scope),
    /// Class definitions beyond the first of each name, counted by reachable class objects.
    DuplicateClasses(Option<ClassPattern>),
    /// Retained size of the largest leak suspect.
    Suspects,
    /// Wasted bytes: of one kind, or of all kinds together.
    Waste(Option<WasteKind>),
    /// Size retained together by the places whose text matches a pattern: `static SESSIONS of *`.
    Place(String),
    /// Increase over the baseline.
    Growth(Growing),
}

/// Quantity whose growth is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Growing {
    /// Bytes of the heap.
    Heap(Scope),
    /// Shallow size of the objects of the matching classes.
    Classes(ClassPattern, Scope),
    /// Size retained together by the reachable objects of the matching classes.
    Retained(ClassPattern),
    /// Size retained together by the places that match a pattern; without a pattern, the place that grew most.
    Place(Option<String>),
}

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Size in bytes.
    Bytes,
    /// Number of things.
    Count,
}

/// Part of a dump that has to be open for a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// The summary of the dump.
    Summary,
    /// The graph of all objects.
    Graph,
}

impl Measure {
    /// Returns the name in rules and in output.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Heap(_) => "heap",
            Self::Retained(_) => "retained",
            Self::Shallow(..) => "shallow",
            Self::Instances(..) => "instances",
            Self::Loaders(..) => "loaders",
            Self::DuplicateClasses(_) => "duplicate_classes",
            Self::Suspects => "suspects",
            Self::Waste(_) => "waste",
            Self::Place(_) => "place",
            Self::Growth(_) => "growth",
        }
    }

    /// Returns the unit of the figures.
    pub const fn unit(&self) -> Unit {
        match self {
            Self::Heap(_)
            | Self::Retained(_)
            | Self::Shallow(..)
            | Self::Suspects
            | Self::Waste(_)
            | Self::Place(_)
            | Self::Growth(_) => Unit::Bytes,
            Self::Instances(..) | Self::Loaders(..) | Self::DuplicateClasses(_) => Unit::Count,
        }
    }

    /// Returns what has to be open.
    pub const fn needs(&self) -> Needs {
        match self {
            Self::Heap(Scope::All)
            | Self::Shallow(_, Scope::All)
            | Self::Instances(_, Scope::All)
            | Self::Growth(Growing::Heap(Scope::All) | Growing::Classes(_, Scope::All)) => Needs::Summary,
            _ => Needs::Graph,
        }
    }

    /// Returns whether the measure compares with a baseline.
    pub const fn needs_baseline(&self) -> bool {
        matches!(self, Self::Growth(_))
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
    /// `true` if the rule can pass although nothing in the dump has the requested name. Otherwise it fails: a
    /// misspelled name would be a gate that is always open.
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

/// Verdict of a rule on a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Outcome.
    pub status: Status,
    /// Limit that was violated; if the rule passed, `max` if there is one.
    pub limit: Limit,
    /// `true` if the rule failed only because nothing has the requested name.
    pub fails_by_name: bool,
}

impl Verdict {
    /// Returns whether the figure itself violates a limit, rather than only a name being missing.
    pub fn exceeds_limit(&self) -> bool {
        self.status == Status::Failed && !self.fails_by_name
    }
}

impl Rule {
    /// Compares a figure with the limits.
    pub fn judge(&self, measured: &Measured) -> Verdict {
        let (limit, is_kept) = self.limits.judge(measured.amount, measured.whole);
        let is_missing = !self.is_optional && matches!(measured.found, MeasureDetails::NoMatch { .. });
        let status = if is_kept && !is_missing { Status::Passed } else { Status::Failed };
        Verdict { status, limit, fails_by_name: is_kept && is_missing }
    }
}
