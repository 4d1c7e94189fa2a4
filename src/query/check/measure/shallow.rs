//! What the objects of some classes take.

use crate::check::{CLASS_PATTERN, MeasureKind, Of, Unit, check_nothing};
use crate::classes::histogram::Scope;

/// The measure.
pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "shallow",
    unit: Unit::Bytes,
    of: Of::Required(CLASS_PATTERN),
    scope: Some(Scope::All),
    is_in_summary: true,
    needs_baseline: false,
    has_min: true,
    check: check_nothing,
    subject: |measure| format!("shallow size of {}instances of {}", measure.objects(), measure.text()),
    measure: |dump, measure| {
        dump.of_classes(&measure.pattern(), measure.scope, |counts| counts.shallow_bytes)
    },
};
