//! Retained size of the reachable objects of the matching classes together.

use crate::check::{CLASS_PATTERN, MeasureKind, OfRequirement, Unit};

pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "retained",
    unit: Unit::Bytes,
    of: OfRequirement::Required(CLASS_PATTERN),
    subject: |measure| format!("retained size of {}", measure.text()),
    measure: |dump, measure| dump.retained_size(&measure.pattern()),
    ..MeasureKind::BASE
};
