//! Retained size of all places whose text matches a pattern: `static SESSIONS of *`.

use crate::check::{MeasureKind, OfRequirement, Unit};

pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "place",
    unit: Unit::Bytes,
    of: OfRequirement::Required(
        "a place as shown by `hprof-cli diff --group-by place`, in which `*` matches anything, for example \"static SESSIONS of *\"",
    ),
    subject: |measure| format!("retained size of place {}", measure.text()),
    measure: |dump, measure| Ok(dump.places()?.retained_size(measure.text())),
    ..MeasureKind::BASE
};
