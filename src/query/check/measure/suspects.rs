//! What the largest leak suspect retains.

use std::io;
use std::sync::Arc;

use super::{Dump, Found, Measured};
use crate::check::{Measure, MeasureKind, Of, Unit, check_nothing};
use crate::leaks;

/// The measure.
pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "suspects",
    unit: Unit::Bytes,
    of: Of::Nothing,
    scope: None,
    is_in_summary: false,
    needs_baseline: false,
    has_min: false,
    check: check_nothing,
    subject: |_| "largest leak suspect".to_owned(),
    measure,
};

/// What `leaks` says without options, whatever the limit is: what is a suspect depends on the threshold.
fn measure(dump: &mut Dump<'_>, _: &Measure) -> io::Result<Measured> {
    let (graph, bytes) = dump.graph()?;
    let leaks = leaks::leaks(dump.heap, graph, bytes, leaks::DEFAULT_THRESHOLD.into())?;
    let amount = leaks.largest().map_or(0, |largest| largest.retained_bytes());
    Ok(Measured::new(amount, leaks.reachable_bytes).with(Found::Suspects(Arc::new(leaks))))
}
