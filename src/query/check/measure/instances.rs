//! The objects of some classes.

use crate::check::{CLASS_PATTERN, MeasureKind, Of, Unit, check_nothing};
use crate::classes::histogram::Scope;

/// The measure.
pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "instances",
    unit: Unit::Count,
    of: Of::Required(CLASS_PATTERN),
    scope: Some(Scope::All),
    is_in_summary: true,
    needs_baseline: false,
    has_min: true,
    check: check_nothing,
    subject: |measure| format!("{}instances of {}", measure.objects(), measure.text()),
    measure: |dump, measure| dump.of_classes(&measure.pattern(), measure.scope, |counts| counts.objects),
};
