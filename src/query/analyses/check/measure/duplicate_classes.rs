//! Number of additional definitions of classes with the same name, by loaders of reachable class objects.

use std::io;

use super::{DumpData, MeasureDetails, Measurement};
use crate::check::{CLASS_PATTERN, Measure, MeasureKind, OfRequirement, Unit};
use crate::waste::is_made;
use hprof_model::loaders;
use hprof_model::objects::label::Labels;

pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "duplicate_classes",
    unit: Unit::Count,
    of: OfRequirement::Optional(CLASS_PATTERN),
    subject: |measure| format!("duplicate definitions of {}", measure.of.as_deref().unwrap_or("classes")),
    measure,
    ..MeasureKind::BASE
};

fn measure(data: &mut DumpData<'_>, measure: &Measure) -> io::Result<Measurement> {
    let pattern = measure.of_pattern();
    let pattern = pattern.as_ref();
    let dump = data.dump()?;
    let labels = Labels::new(dump);
    let all = loaders::duplicates(dump, &labels);
    let name = |one: &loaders::Duplicate| {
        data.summary.class(one.class).map_or("", |class| data.summary.class_name(class))
    };
    let (mut amount, mut names, mut most) = (0, 0, None);
    for same in all.chunk_by(|a, b| name(a) == name(b)) {
        let Some(name) = same.first().map(name) else { continue };
        let is_meant = pattern.is_none_or(|pattern| pattern.matches(name)) && !is_made(name);
        // Definitions with the same name are grouped by loader.
        let reachable: Vec<_> = same.iter().filter(|one| one.retained_bytes.is_some()).collect();
        let loaders = reachable.chunk_by(|a, b| a.loader == b.loader).count() as u64;
        let further = loaders.saturating_sub(1);
        if is_meant && further > 0 {
            amount += further;
            names += 1;
            if most.is_none_or(|(_, before)| before < further) {
                most = Some((name, further));
            }
        }
    }
    let found = match (most, pattern) {
        (Some((name, amount)), _) => MeasureDetails::Most { name: name.to_owned(), amount, of: names },
        (None, Some(pattern)) if data.matching(pattern).is_empty() => data.no_match(pattern),
        (None, _) => MeasureDetails::Nothing,
    };
    Ok(Measurement::new(amount, 0).with(found))
}
