//! Wasted bytes: of one kind, or of all together.

use std::io;

use super::{DumpData, Measurement, NO_GRAPH};
use crate::check::{Measure, MeasureKind, OfRequirement, Rule, RuleError, Unit};
use crate::waste::{self, FieldGroupBy, KINDS, WasteKind};
use hprof_base::naming::suggestions;

pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "waste",
    unit: Unit::Bytes,
    of: OfRequirement::Optional("a kind of waste, for example \"duplicate_strings\""),
    check,
    subject,
    measure,
    ..MeasureKind::BASE
};

fn check(of: &str, quoted: &str, _: bool) -> Result<(), RuleError> {
    if WasteKind::from_name(of).is_some() {
        return Ok(());
    }
    let names = KINDS.map(|kind| kind.name);
    let hint = suggestions::did_you_mean_one_of(of, &names, names.len(), "expected one of");
    Err(RuleError::Of(format!("unknown kind of waste `{quoted}`; {hint}")))
}

fn subject(measure: &Measure) -> String {
    measure.of.as_ref().map_or_else(|| "wasted bytes".to_owned(), |kind| format!("bytes wasted by {kind}"))
}

/// Computes all kinds of waste that rules need.
pub(super) fn prepare(data: &mut DumpData<'_>, rules: &[&Rule]) -> io::Result<()> {
    let mut asked =
        rules.iter().map(|rule| &rule.measure).filter(|measure| *measure.kind == DEFINITION).peekable();
    if asked.peek().is_none() {
        return Ok(());
    }
    let dump = data.dump()?;
    // `None`, a rule without a kind, needs all kinds.
    let kinds: Option<Vec<&WasteKind>> =
        asked.map(|measure| WasteKind::from_name(measure.of.as_ref()?)).collect();
    let question =
        waste::WasteQuery { kinds: kinds.unwrap_or_default(), group_by: FieldGroupBy::Field, examples: 0 };
    data.waste = Some(waste::waste(dump, &question)?);
    Ok(())
}

fn measure(data: &mut DumpData<'_>, measure: &Measure) -> io::Result<Measurement> {
    let Some(waste) = &data.waste else { return Err(io::Error::other(NO_GRAPH)) };
    let amount = match &measure.of {
        None => waste.wasted_bytes,
        Some(kind) => waste.rows.iter().find(|row| row.kind.name == kind).map_or(0, |row| row.wasted_bytes),
    };
    Ok(Measurement::new(amount, waste.reachable_bytes))
}
