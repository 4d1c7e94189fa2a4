//! Bytes of the heap.

use super::Measurement;
use crate::check::{MeasureKind, Unit};
use hprof_model::histogram::Scope;

pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "heap",
    unit: Unit::Bytes,
    scope: Some(Scope::Reachable),
    is_in_summary: true,
    subject: |measure| measure.heap().to_owned(),
    measure: |dump, measure| Ok(Measurement::new(dump.shallow_bytes(measure.scope)?, dump.all_bytes())),
    ..MeasureKind::BASE
};
