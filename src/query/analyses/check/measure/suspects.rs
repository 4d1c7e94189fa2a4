//! Retained size of the largest leak suspect.

use std::io;
use std::sync::Arc;

use super::{DumpData, MeasureDetails, Measurement};
use crate::check::{Measure, MeasureKind, Unit};
use crate::leaks::heap_places::HeapPlaces;
use crate::leaks::{self, DEFAULT_THRESHOLD, LeakEvidence};

pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "suspects",
    unit: Unit::Bytes,
    has_min: false,
    subject: |_| "largest leak suspect".to_owned(),
    measure,
    ..MeasureKind::BASE
};

/// Runs `leaks` without options, whatever the limit is: the threshold decides which objects are suspects.
fn measure(data: &mut DumpData<'_>, _: &Measure) -> io::Result<Measurement> {
    let dump = data.dump()?;
    let places = HeapPlaces::new(dump, data.frameworks, DEFAULT_THRESHOLD)?;
    let leaks = leaks::leaks(dump, DEFAULT_THRESHOLD, &places, LeakEvidence::Sentences)?;
    let amount = leaks.largest().map_or(0, |largest| largest.retained_bytes());
    Ok(Measurement::new(amount, leaks.reachable_bytes).with(MeasureDetails::Suspects(Arc::new(leaks))))
}
