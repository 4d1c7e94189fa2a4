//! Shallow size of the objects of the matching classes.

use crate::check::{CLASS_PATTERN, MeasureKind, OfRequirement, Unit};
use hprof_model::histogram::Scope;

pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "shallow",
    unit: Unit::Bytes,
    of: OfRequirement::Required(CLASS_PATTERN),
    scope: Some(Scope::All),
    is_in_summary: true,
    subject: |measure| format!("shallow size of {}instances of {}", measure.objects(), measure.text()),
    measure: |dump, measure| {
        dump.of_classes(&measure.pattern(), measure.scope, |counts| counts.shallow_bytes)
    },
    ..MeasureKind::BASE
};
