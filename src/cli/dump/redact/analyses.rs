//! Analyses that `--prove` runs on the dump and the redacted one, to compare the results.

use std::io;

use hprof_index::Dump;
use hprof_query::frameworks::Frameworks;
use hprof_query::leaks::heap_places::HeapPlaces;
use hprof_query::leaks::{self, DEFAULT_THRESHOLD, LeakEvidence, NamedObject};
use hprof_query::redact::proof::{FoundCredential, ProofAnalyses};
use hprof_query::secrets::{SecretQuery, SecretRow, SecretRules, secrets};
use hprof_query::waste::{FieldGroupBy, WasteQuery, WasteRow, waste};

/// Runs the analyses of the commands `leaks`, `waste` and `secrets` for the proof.
pub(super) struct CommandAnalyses;

impl ProofAnalyses for CommandAnalyses {
    fn suspects(&self, dump: &Dump<'_>, rename: &dyn Fn(&str) -> String) -> io::Result<Vec<String>> {
        let places = HeapPlaces::new(dump, &Frameworks::builtin(), DEFAULT_THRESHOLD)?;
        let leaks = leaks::leaks(dump, DEFAULT_THRESHOLD, &places, LeakEvidence::Sentences)?;
        // Labels contain texts of the dump.
        let named = |object: &NamedObject| NamedObject {
            class: object.class.as_deref().map(rename),
            label: None,
            ..object.clone()
        };
        let suspect = |one: &leaks::Suspect| {
            let members: Vec<_> = one.members.iter().map(named).collect();
            let (point, object) = (one.point.as_ref().map(named), named(&one.object));
            format!(
                "{:?} {:?} {:?} {:?} {} {} {} {object:?} {members:?} {:?} {:?} {point:?} {}",
                one.rule,
                one.kind,
                one.what,
                one.verdict,
                one.objects,
                one.shallow_bytes,
                one.retained_bytes,
                one.group_class.as_deref().map(rename),
                one.loader,
                one.accumulated_bytes,
            )
        };
        Ok(leaks.suspects.iter().map(suspect).collect())
    }

    fn waste(&self, dump: &Dump<'_>) -> io::Result<Vec<String>> {
        let query = WasteQuery { kinds: Vec::new(), group_by: FieldGroupBy::Field, examples: 0 };
        let found = waste(dump, &query)?;
        let row = |row: &WasteRow| format!("{} {} {}", row.kind.name, row.count, row.wasted_bytes);
        Ok(found.rows.iter().map(row).collect())
    }

    fn credentials(&self, dump: &Dump<'_>) -> Vec<FoundCredential> {
        let rules = SecretRules::builtin();
        let found = secrets(dump, &rules, SecretQuery::new(false));
        let texts = rules.about_texts();
        let credential = |row: &SecretRow| FoundCredential {
            object: row.object,
            length: row.length,
            hash: row.hash,
            is_by_text: row.rule < texts,
        };
        found.rows.iter().map(credential).collect()
    }
}
