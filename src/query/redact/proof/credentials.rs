//! Credentials: those found in the dump must not occur in the redacted one.

use rustc_hash::FxHashSet;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_values::ObjectId;

use super::super::kept::KeptValues;
use super::pairs::readers;
use super::{ProofAnalyses, ProofRow};
use hprof_index::Dump;
use hprof_model::objects::reader::ObjectReader;

/// Minimum number of characters of a compared value: shorter ones can be equal by chance.
const SHORTEST: u64 = 4;
/// Maximum number of characters of a text that are compared.
const MAX_CHARACTERS: usize = 1 << 14;

/// Searches both dumps for credentials.
pub(super) fn compare(
    kept: &KeptValues,
    analyses: &dyn ProofAnalyses,
    a: &Dump<'_>,
    b: &Dump<'_>,
) -> ProofRow {
    let [before, after] = [a, b].map(|dump| analyses.credentials(dump));
    let [one, other] = readers(a, b);
    let is_long = |length: u64| length >= SHORTEST;
    let (mut found, mut allowed) = (FxHashSet::default(), FxHashSet::default());
    let mut add = |object: ObjectId, is_kept: bool| {
        (if is_kept { &mut allowed } else { &mut found }).insert(object);
    };
    // The same text in the same object, even if it is no longer recognized as a credential in the redacted dump.
    for row in before.iter().filter(|row| is_long(row.length)) {
        let text = CredentialContents::read(&one, row.object);
        if text.is_some() && text == CredentialContents::read(&other, row.object) {
            add(row.object, text.is_some_and(|text| text.stays(kept)));
        }
    }
    // The same value elsewhere.
    let known: FxHashSet<u64> = before.iter().filter(|row| is_long(row.length)).map(|row| row.hash).collect();
    for row in &after {
        if is_long(row.length) && known.contains(&row.hash) {
            add(
                row.object,
                CredentialContents::read(&other, row.object).is_some_and(|text| text.stays(kept)),
            );
        } else if row.is_by_text {
            // A text that looks like a credential, but was not one in the dump.
            add(row.object, true);
        }
    }
    allowed.retain(|object| !found.contains(object));
    ProofRow {
        allowed: allowed.len() as u64,
        reason: Some("in texts that are not replaced, or in new texts that look like a credential by chance"),
        ..ProofRow::new("secrets", found.len() as u64)
    }
}

/// Contents of an object that has a credential: a text, or the elements of an array.
#[derive(Debug, PartialEq, Eq)]
enum CredentialContents<'a> {
    Text(String),
    Array(hprof_values::BasicType, &'a [u8]),
}

impl<'a> CredentialContents<'a> {
    fn read(reader: &ObjectReader<'a>, object: ObjectId) -> Option<Self> {
        let object: ObjectIndex = reader.graph.objects.addresses.index_of(object)?;
        if let Some((kind, data)) = reader.primitives(object) {
            return Some(Self::Array(kind, data));
        }
        Some(Self::Text(reader.string(object)?.text(MAX_CHARACTERS)))
    }

    fn stays(&self, kept: &KeptValues) -> bool {
        match self {
            Self::Text(text) => kept.contains_text(text),
            Self::Array(kind, data) => kept.contains(*kind, data),
        }
    }
}
