//! Class loaders except the boot loader: all, or those whose class or name matches.

use std::io;

use super::{DumpData, MeasureDetails, Measurement, no_class};
use crate::check::{Measure, MeasureKind, OfRequirement, Unit};
use hprof_base::naming::suggestions;
use hprof_index::model::summary::ClassNumber;
use hprof_model::histogram::Scope;
use hprof_model::loaders::{self, LoaderOrder};
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::label::Labels;

pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "loaders",
    unit: Unit::Count,
    of: OfRequirement::Optional(
        "a pattern of class names or names of class loaders, for example \"com.acme.PluginLoader\"",
    ),
    scope: Some(Scope::Reachable),
    subject,
    measure,
    ..MeasureKind::BASE
};

fn subject(measure: &Measure) -> String {
    let loaders = format!("{}class loaders", measure.objects());
    if measure.of.is_some() { format!("{loaders} matching {}", measure.text()) } else { loaders }
}

fn measure(data: &mut DumpData<'_>, measure: &Measure) -> io::Result<Measurement> {
    let pattern = measure.of_pattern();
    let pattern = pattern.as_ref();
    let dump = data.dump()?;
    let rows = data
        .loaders
        .take()
        .unwrap_or_else(|| loaders::loaders(&dump.objects, &Labels::new(dump), LoaderOrder::default()));
    let class =
        |row: &loaders::ClassLoaderRow| Some(data.summary.class_name(data.summary.class(row.class?)?));
    let is_meant = |row: &&loaders::ClassLoaderRow| {
        let names = [class(row), row.label.as_deref()];
        pattern.is_none_or(|pattern| names.iter().flatten().any(|name| pattern.matches(name)))
    };
    let is_counted = |row: &&loaders::ClassLoaderRow| match measure.scope {
        Scope::All => true,
        Scope::Reachable => row.retained_bytes.is_some(),
        Scope::Unreachable => row.retained_bytes.is_none(),
    };
    let loaders = ClassSet::of_name_and_below(data.summary, "java.lang.ClassLoader");
    let is_loader = |class: ClassNumber| loaders.contains(class);
    let meant: Vec<&loaders::ClassLoaderRow> =
        rows.iter().filter(|row| !row.id.is_null()).filter(is_meant).collect();
    let count = meant.iter().copied().filter(is_counted).count() as u64;
    let found = match pattern {
        Some(pattern) if meant.is_empty() && !data.matching(pattern).into_iter().any(is_loader) => {
            let names = rows.iter().filter_map(class);
            no_class(pattern, suggestions::class_names_of(names, pattern.text()))
        }
        _ => MeasureDetails::Nothing,
    };
    data.loaders = Some(rows);
    Ok(Measurement::new(count, 0).with(found))
}
