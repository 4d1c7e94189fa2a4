//! Growth since the baseline.

use std::io;

use super::{DumpData, MeasureDetails, Measurement};
use crate::check::{Measure, MeasureKind, OfRequirement, RuleError, Unit};
use hprof_base::naming::pattern::ClassPattern;
use hprof_model::histogram::Scope;

pub(in crate::check) const DEFINITION: MeasureKind = MeasureKind {
    name: "growth",
    unit: Unit::Bytes,
    of: OfRequirement::Required(OF),
    scope: Some(Scope::Reachable),
    is_in_summary: true,
    needs_baseline: true,
    check,
    subject,
    measure,
    ..MeasureKind::BASE
};

const OF: &str = "\"heap\", \"class PATTERN\", \"retained PATTERN\", \"place\" or \"place PATTERN\"";

/// Quantity whose growth a rule measures.
pub(in crate::check) enum Growing<'m> {
    /// Bytes of the heap.
    Heap,
    /// Shallow size of the objects of the matching classes.
    Classes(ClassPattern),
    /// Size retained together by the reachable objects of the matching classes.
    Retained(ClassPattern),
    /// Size retained together by the places that match a pattern; without a pattern, the place that grew most.
    Place(Option<&'m str>),
}

impl<'m> Growing<'m> {
    /// Parses the `of` of a growth rule. `None` if growth cannot be measured for it.
    pub(in crate::check) fn parse(text: &'m str) -> Option<Self> {
        let (what, pattern) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let pattern = pattern.trim();
        let Ok(classes) = pattern.parse();
        Some(match (what, pattern) {
            ("place", "") => Self::Place(None),
            ("place", pattern) => Self::Place(Some(pattern)),
            ("heap", "") => Self::Heap,
            ("class", pattern) if !pattern.is_empty() => Self::Classes(classes),
            ("retained", pattern) if !pattern.is_empty() => Self::Retained(classes),
            _ => return None,
        })
    }
}

fn check(of: &str, quoted: &str, has_objects: bool) -> Result<(), RuleError> {
    let what = of.split_whitespace().next();
    if has_objects && matches!(what, Some("retained" | "place")) {
        return Err(RuleError::Objects("`objects` cannot be used for retained sizes; omit it"));
    }
    let wrong = || RuleError::Of(format!("the growth of `{quoted}` cannot be measured; expected {OF}"));
    Growing::parse(of.trim()).map(|_| ()).ok_or_else(wrong)
}

fn subject(measure: &Measure) -> String {
    match Growing::parse(measure.text()) {
        None | Some(Growing::Heap) => format!("growth of {}", measure.heap()),
        Some(Growing::Place(None)) => "largest growth of any place".to_owned(),
        Some(Growing::Place(Some(pattern))) => format!("growth of place {pattern}"),
        Some(Growing::Classes(pattern)) => {
            format!("growth of the shallow size of {}instances of {}", measure.objects(), pattern.text())
        }
        Some(Growing::Retained(pattern)) => format!("growth of the retained size of {}", pattern.text()),
    }
}

fn measure(data: &mut DumpData<'_>, measure: &Measure) -> io::Result<Measurement> {
    match Growing::parse(measure.text()) {
        None | Some(Growing::Heap) => {
            Ok(Measurement::new(data.shallow_bytes(measure.scope)?, data.total_bytes(measure.scope)?))
        }
        Some(Growing::Place(_)) => {
            let places = data.places()?;
            Ok(Measurement::new(0, places.places.reachable_bytes).with(MeasureDetails::Places(places)))
        }
        Some(Growing::Classes(pattern)) => {
            let measured = data.of_classes(&pattern, measure.scope, |counts| counts.shallow_bytes)?;
            Ok(match measured.found {
                MeasureDetails::NoMatch { .. } => measured,
                _ => measured.with(MeasureDetails::Classes(data.class_bytes(measure.scope))),
            })
        }
        Some(Growing::Retained(pattern)) => data.retained_size(&pattern),
    }
}
