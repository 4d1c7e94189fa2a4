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
pub use limits::{Bound, Limit, Percent, Range, RuleLimits};
pub use measure::{LeftOut, MeasureDetails, Measured, MeasuredDump, NamedKind, measure};
pub use places::PlacesOfDump;

use crate::classes::histogram::Scope;
use crate::classes::pattern::ClassPattern;
use crate::waste::WasteKind;

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
pub enum Measure {
    /// Bytes of the heap.
    Heap(Scope),
    /// What the reachable objects of some classes retain together.
    Retained(ClassPattern),
    /// What the objects of some classes take.
    Shallow(ClassPattern, Scope),
    /// The objects of some classes.
    Instances(ClassPattern, Scope),
    /// Class loaders but the boot loader: all, or those whose class or name matches.
    Loaders(Option<ClassPattern>, Scope),
    /// Definitions of classes beyond the first of each name, by reachable class objects.
    DuplicateClasses(Option<ClassPattern>),
    /// What the largest leak suspect retains.
    Suspects,
    /// What is wasted: by one kind, or by all together.
    Waste(Option<WasteKind>),
    /// What the places whose text is a pattern retain together: `static SESSIONS of *`.
    Place(String),
    /// By how much something is more than in the baseline.
    Growth(Growing),
}

/// What grows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Growing {
    /// Bytes of the heap.
    Heap(Scope),
    /// What the objects of some classes take.
    Classes(ClassPattern, Scope),
    /// What the reachable objects of some classes retain together.
    Retained(ClassPattern),
    /// What the places of a pattern retain together; without one, the place that grew most.
    Place(Option<String>),
}

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
    /// The name in rules and in output.
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

    /// What its figures are.
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

    /// What has to be open for it.
    pub const fn needs(&self) -> Needs {
        match self {
            Self::Heap(Scope::All)
            | Self::Shallow(_, Scope::All)
            | Self::Instances(_, Scope::All)
            | Self::Growth(Growing::Heap(Scope::All) | Growing::Classes(_, Scope::All)) => Needs::Summary,
            _ => Needs::Graph,
        }
    }

    /// Whether it compares with a baseline.
    pub const fn needs_baseline(&self) -> bool {
        matches!(self, Self::Growth(_))
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
    pub limits: RuleLimits,
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
        let is_missing = !self.is_optional && matches!(measured.found, MeasureDetails::NoMatch { .. });
        let status = if is_kept && !is_missing { Status::Passed } else { Status::Failed };
        Verdict { status, limit, fails_by_name: is_kept && is_missing }
    }
}
