//! Retained size of all places whose text matches a pattern: `static SESSIONS of *`.

use crate::check::{MeasureKind, Of, Unit};

pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "place",
    unit: Unit::Bytes,
    of: Of::Required(
        "a place as `hprof-cli diff --group-by place` shows it, `*` for anything, for example \"static SESSIONS of *\"",
    ),
    subject: |measure| format!("retained size of the place {}", measure.text()),
    measure: |dump, measure| Ok(dump.places()?.retained(measure.text())),
    ..MeasureKind::BASE
};
