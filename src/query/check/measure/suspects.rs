//! What the largest leak suspect retains.

use std::io;
use std::sync::Arc;

use super::{Dump, Found, Measured};
use crate::check::{Measure, MeasureKind, Unit};
use crate::leaks;

pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "suspects",
    unit: Unit::Bytes,
    has_min: false,
    subject: |_| "largest leak suspect".to_owned(),
    measure,
    ..MeasureKind::BASE
};

/// What `leaks` says without options, whatever the limit is: what is a suspect depends on the threshold.
fn measure(dump: &mut Dump<'_>, _: &Measure) -> io::Result<Measured> {
    let (graph, bytes) = dump.graph()?;
    let leaks = leaks::leaks(dump.heap, graph, bytes, leaks::DEFAULT_THRESHOLD.into())?;
    let amount = leaks.largest().map_or(0, |largest| largest.retained_bytes());
    Ok(Measured::new(amount, leaks.reachable_bytes).with(Found::Suspects(Arc::new(leaks))))
}
