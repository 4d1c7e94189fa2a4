//! Number of credentials found by one rule or by all rules.

use std::io;

use super::{DumpData, MeasureDetails, Measurement};
use crate::check::{Measure, MeasureKind, OfRequirement, RuleError, Unit};
use crate::secrets::{self, SecretQuery, SecretRules};
use hprof_base::naming::suggestions;

pub(super) const DEFINITION: MeasureKind = MeasureKind {
    name: "secrets",
    unit: Unit::Count,
    of: OfRequirement::Optional("the ID of a rule about secrets, for example \"jwt\""),
    check,
    subject,
    measure,
    ..MeasureKind::BASE
};

fn check(of: &str, quoted: &str, _: bool) -> Result<(), RuleError> {
    let rules = SecretRules::builtin();
    let ids: Vec<&str> = rules.rules().map(|rule| rule.id.as_str()).collect();
    if ids.contains(&of) {
        return Ok(());
    }
    let hint = suggestions::did_you_mean_one_of(of, &ids, 3, "docs/secrets.md lists all rules, for example");
    Err(RuleError::Of(format!("unknown credential rule `{quoted}`; {hint}")))
}

fn subject(measure: &Measure) -> String {
    measure
        .of
        .as_ref()
        .map_or_else(|| "credentials".to_owned(), |rule| format!("credentials found by rule {rule}"))
}

/// Counts the rows of `hprof-cli secrets`, including credentials in unreachable objects: a dump that is shared contains those
/// as well.
fn measure(data: &mut DumpData<'_>, measure: &Measure) -> io::Result<Measurement> {
    let dump = data.dump()?;
    let found = match &data.secrets {
        Some(found) => found,
        None => {
            let (rules, query) = (SecretRules::builtin(), SecretQuery::new(false));
            data.secrets.insert(secrets::secrets(dump, &rules, query))
        }
    };
    let rows = found.rows.iter().filter(|row| measure.of.as_ref().is_none_or(|id| *id == row.id));
    let ids: Vec<&str> = rows.map(|row| row.id.as_str()).collect();
    // Rows are sorted by rule: of several rules with the most rows, the first.
    let most = ids.chunk_by(|a, b| a == b).rev().max_by_key(|same| same.len());
    let measured = Measurement::new(ids.len() as u64, 0);
    let of = ids.chunk_by(|a, b| a == b).count() as u64;
    Ok(match most.and_then(|same| Some((same.first()?, same.len()))) {
        Some((id, amount)) if of > 1 => {
            measured.with(MeasureDetails::Most { name: (*id).to_owned(), amount: amount as u64, of })
        }
        _ => measured,
    })
}
