//! Retained size of the reachable objects of some classes together.

use crate::check::{CLASS_PATTERN, MeasureKind, Of, Unit};

pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "retained",
    unit: Unit::Bytes,
    of: Of::Required(CLASS_PATTERN),
    subject: |measure| format!("retained size of {}", measure.text()),
    measure: |dump, measure| dump.retained(&measure.pattern()),
    ..MeasureKind::BASE
};
