//! What the places whose text is a pattern retain together: `static SESSIONS of *`.

use crate::check::{MeasureKind, Of, Unit, check_nothing};

/// The measure.
pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "place",
    unit: Unit::Bytes,
    of: Of::Required(
        "a place as `hprof-cli diff --group-by place` shows it, `*` for anything, for example \"static SESSIONS of *\"",
    ),
    scope: None,
    is_in_summary: false,
    needs_baseline: false,
    has_min: true,
    check: check_nothing,
    subject: |measure| format!("retained size of the place {}", measure.text()),
    measure: |dump, measure| Ok(dump.places()?.retained(measure.text())),
};
