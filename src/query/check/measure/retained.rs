//! What the reachable objects of some classes retain together.

use crate::check::{CLASS_PATTERN, MeasureKind, Of, Unit, check_nothing};

/// The measure.
pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "retained",
    unit: Unit::Bytes,
    of: Of::Required(CLASS_PATTERN),
    scope: None,
    is_in_summary: false,
    needs_baseline: false,
    has_min: true,
    check: check_nothing,
    subject: |measure| format!("retained size of {}", measure.text()),
    measure: |dump, measure| dump.retained(&measure.pattern()),
};
