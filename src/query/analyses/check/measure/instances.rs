//! Number of objects of the matching classes.

use crate::check::{CLASS_PATTERN, MeasureKind, OfRequirement, Unit};
use hprof_model::histogram::Scope;

pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "instances",
    unit: Unit::Count,
    of: OfRequirement::Required(CLASS_PATTERN),
    scope: Some(Scope::All),
    is_in_summary: true,
    subject: |measure| format!("{}instances of {}", measure.objects(), measure.text()),
    measure: |dump, measure| dump.of_classes(&measure.pattern(), measure.scope, |counts| counts.objects),
    ..MeasureKind::BASE
};
