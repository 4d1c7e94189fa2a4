//! Proof of a redaction: the dump and the redacted one are analysed and compared, and texts are searched for.
//!
//! * `structure` compares the results of the analyses object by object.
//! * `texts` searches for texts of the dump in the redacted one.

mod structure;
mod texts;

use std::io;

use hprof_index::{Heap, ObjectGraph, Progress};

use super::RedactOptions;
use super::kept::KeptTexts;
use super::plan::Plan;

/// Result of one comparison or search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofRow {
    /// What was compared or searched for.
    pub what: &'static str,
    /// Number of differences, or of texts that were found.
    pub differences: u64,
    /// Number of texts that were found and may stay.
    pub allowed: u64,
    /// Why these may stay.
    pub reason: Option<&'static str>,
}

impl ProofRow {
    fn compared(what: &'static str, differences: u64) -> Self {
        Self { what, differences, allowed: 0, reason: None }
    }

    /// Returns `true` if nothing differs, and nothing was found that must not be there.
    pub fn is_equal(&self) -> bool {
        self.differences == 0
    }
}

/// An opened dump.
#[derive(Debug, Clone, Copy)]
pub struct ProofDump<'a> {
    /// Dump.
    pub heap: &'a Heap,
    /// Its graph.
    pub graph: &'a ObjectGraph,
    /// Its bytes, unpacked.
    pub bytes: &'a [u8],
}

/// Compares a dump with the redacted one.
///
/// # Errors
/// If neither memory nor disk has space for a few numbers per object.
pub fn prove(
    plan: &Plan,
    kept: &KeptTexts,
    options: &RedactOptions,
    original: ProofDump<'_>,
    redacted: ProofDump<'_>,
    progress: &dyn Progress,
) -> io::Result<Vec<ProofRow>> {
    progress.begin("comparing the analyses", 0);
    let mut rows = structure::compare(options, original, redacted)?;
    progress.begin("searching for texts", 0);
    rows.push(texts::same_place(kept, original, redacted));
    rows.push(texts::anywhere(plan, kept, original, redacted));
    progress.end();
    Ok(rows)
}
