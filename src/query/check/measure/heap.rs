//! Bytes of the heap.

use super::Measured;
use crate::check::{MeasureKind, Of, Unit, check_nothing};
use crate::classes::histogram::Scope;

/// The measure.
pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "heap",
    unit: Unit::Bytes,
    of: Of::Nothing,
    scope: Some(Scope::Reachable),
    is_in_summary: true,
    needs_baseline: false,
    has_min: true,
    check: check_nothing,
    subject: |measure| measure.heap().to_owned(),
    measure: |dump, measure| Ok(Measured::new(dump.bytes(measure.scope)?, dump.all_bytes())),
};
