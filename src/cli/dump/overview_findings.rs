//! Findings of `overview` from passes over the heap; the index stores them for later runs.

use std::sync::OnceLock;

use hprof_index::Dump;
use hprof_index::storage::store::Stage;
use hprof_query::frameworks::Frameworks;
use hprof_query::kept::StoredResult;
use hprof_query::leaks::heap_places::HeapPlaces;
use hprof_query::leaks::{self, Cause, Conclusion, DEFAULT_THRESHOLD, LeakEvidence, Leaks};
use hprof_query::overview::HeapFindings;
use serde::{Deserialize, Serialize};

use crate::cli::retention::leaks::words;

use super::explained::ExplainedPlaces;

/// Version of the stored findings, to be increased with each change of the findings, their rules or the sentences.
const VERSION: u32 = 3;

/// Findings of passes over the heap, and the sentences about them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OverviewFindings {
    pub(super) findings: HeapFindings,
    pub(super) places: ExplainedPlaces,
    /// Verdict on the heap in one line.
    pub(super) headline: String,
    /// Accumulation points, one sentence each.
    pub(super) suspects: Vec<String>,
    /// Sentences about suspects that neither the headline nor the table of places describes.
    pub(super) untold: Vec<String>,
}

impl OverviewFindings {
    /// Returns the findings that the index stores. If there are none, finds and stores them.
    pub(super) fn new(dump: &Dump<'_>, frameworks: &Frameworks) -> anyhow::Result<Self> {
        let depends_on = this_build().map(|build| [&frameworks.hash().to_le_bytes()[..], &build].concat());
        let kept = depends_on.map(|all| StoredResult::new(dump, Stage::Overview, &all));
        let found: Option<Self> = kept.as_ref().and_then(StoredResult::read);
        if let Some(found) = found.filter(|found| found.places.is_valid(dump.graph)) {
            return Ok(found);
        }
        let found = Self::find(dump, frameworks, |_| ())?.0;
        kept.iter().for_each(|kept| kept.write(&found));
        Ok(found)
    }

    /// Computes the findings after `add` has added data to the suspects; returns the result of `add` as well.
    pub(super) fn find<T>(
        dump: &Dump<'_>,
        frameworks: &Frameworks,
        add: impl FnOnce(&mut Leaks) -> T,
    ) -> anyhow::Result<(Self, T)> {
        let places = HeapPlaces::new(dump, frameworks, DEFAULT_THRESHOLD)?;
        let mut leaks = leaks::leaks(dump, DEFAULT_THRESHOLD, &places, LeakEvidence::Sentences)?;
        let added = add(&mut leaks);
        let is_told = |(_, conclusion): &(usize, &Conclusion)| {
            words::conclusions_in_headline(&leaks).any(|told| told == *conclusion)
                || matches!(conclusion.cause, Cause::Suspect(at) if leaks.suspect_of_place.contains(&Some(at)))
        };
        let untold = leaks.conclusions.iter().enumerate().filter(|one| !is_told(one));
        let found = Self {
            findings: HeapFindings::find(dump)?,
            places: ExplainedPlaces::new(dump.graph, &places, &leaks),
            headline: words::headline(&leaks),
            suspects: leaks.conclusions.iter().map(|one| words::with_allocation(&leaks, one)).collect(),
            untold: untold.map(|(_, one)| words::conclusion(&leaks, one)).collect(),
        };
        Ok((found, added))
    }
}

/// Returns a fingerprint of this build of the program, as any change may change a sentence: [`VERSION`], and the size and
/// modification time of the executable at the first call. Builds with equal sizes and times differ only by [`VERSION`].
fn this_build() -> Option<Vec<u8>> {
    static BUILD: OnceLock<Option<(u64, u128)>> = OnceLock::new();
    let (len, modified) = (*BUILD.get_or_init(|| {
        let file = std::env::current_exe().and_then(std::fs::metadata).ok()?;
        let modified = file.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some((file.len(), modified.as_nanos()))
    }))?;
    Some([&VERSION.to_le_bytes()[..], &len.to_le_bytes(), &modified.to_le_bytes()].concat())
}
