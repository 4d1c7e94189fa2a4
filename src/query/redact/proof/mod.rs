//! Proof of a redaction: the dump and the redacted one are analysed and compared, and the redacted dump is searched for texts
//! of the dump.
//!
//! * `structure` compares the results of the analyses object by object.
//! * `equality` compares which contents are equal, `numbers` which values are unchanged.
//! * `texts` searches the redacted dump for texts of the dump, as `windows` of characters in all encodings.
//! * `credentials` searches both for credentials.
//! * `pairs` reads the records of both dumps; `chance` computes how many values are unchanged by chance.

mod chance;
mod credentials;
mod equality;
mod numbers;
mod pairs;
mod structure;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod texts;
mod windows;

use std::io;

use hprof_index::{Dump, Progress};
use hprof_values::ObjectId;

use super::RedactOptions;
use super::kept::KeptValues;
use super::plan::Plan;

/// Result of one comparison or search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofRow {
    /// Subject of the comparison or the search.
    pub what: &'static str,
    /// Number of differences, or of texts that were found.
    pub differences: u64,
    /// Number of texts that were found and are kept on purpose.
    pub allowed: u64,
    /// Reason for keeping them.
    pub reason: Option<&'static str>,
    /// Kept numbers, by class and field.
    pub kept: Vec<KeptNumbers>,
}

/// Numbers other than zero that are kept in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptNumbers {
    /// Name of the class that declares the field, in the redacted dump.
    pub class: String,
    /// Name of the field.
    pub field: String,
    /// `true` if the field is boolean.
    pub is_boolean: bool,
    /// Number of values.
    pub count: u64,
    /// Commands whose results need the values.
    pub commands: &'static str,
    /// Part of the results that needs the values.
    pub answer: String,
}

impl ProofRow {
    fn new(what: &'static str, differences: u64) -> Self {
        Self { what, differences, allowed: 0, reason: None, kept: Vec::new() }
    }

    /// Returns `true` if there are no differences, and no texts were found that are not allowed.
    pub fn is_equal(&self) -> bool {
        self.differences == 0
    }
}

/// Analyses whose results on both dumps are compared.
pub trait ProofAnalyses {
    /// Returns the leak suspects, one text each; `rename` returns the class name to compare for a class name.
    ///
    /// # Errors
    /// If neither memory nor disk has space for a few numbers per object.
    fn suspects(&self, dump: &Dump<'_>, rename: &dyn Fn(&str) -> String) -> io::Result<Vec<String>>;

    /// Returns the kinds of waste with their figures, a text for each that begins with the name of the kind.
    ///
    /// # Errors
    /// If neither memory nor disk has space for a few numbers per object.
    fn waste(&self, dump: &Dump<'_>) -> io::Result<Vec<String>>;

    /// Returns the credentials.
    fn credentials(&self, dump: &Dump<'_>) -> Vec<FoundCredential>;
}

/// A credential in a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundCredential {
    /// Object that has the text: a String, a builder or an array.
    pub object: ObjectId,
    /// Number of characters; for a key, of bytes.
    pub length: u64,
    /// Hash of the value.
    pub hash: u64,
    /// `true` if a rule about texts recognizes it, `false` if a rule about its holder does.
    pub is_by_text: bool,
}

/// Compares a dump with the redacted one.
///
/// # Errors
/// If neither memory nor disk has space for a few numbers per object.
pub fn prove(
    plan: &Plan,
    kept: &KeptValues,
    options: &RedactOptions,
    [original, redacted]: [&Dump<'_>; 2],
    analyses: &dyn ProofAnalyses,
    progress: &dyn Progress,
) -> io::Result<Vec<ProofRow>> {
    progress.begin("comparing the analyses", 0);
    let mut rows = structure::compare(plan, options, analyses, original, redacted)?;
    rows.push(equality::compare(options, original, redacted));
    rows.extend(numbers::compare(plan, options, kept, original, redacted));
    progress.begin("searching for texts", 0);
    rows.push(texts::unchanged_text(kept, original, redacted));
    rows.push(texts::anywhere(plan, kept, original, redacted));
    progress.begin("searching for credentials", 0);
    rows.push(credentials::compare(kept, analyses, original, redacted));
    progress.end();
    Ok(rows)
}

/// Reason for which Strings differ.
const SHARED_ARRAYS: &str = "Strings that share a char[] are no longer equal to Strings in other arrays";

/// Returns `true` if Strings can be parts of arrays, as up to JDK 6 and in Android up to 6.
fn has_shared_arrays(dump: &Dump<'_>) -> bool {
    let summary = dump.summary;
    let string = summary.boot_class("java.lang.String").and_then(|class| summary.class(class));
    string.is_some_and(|class| summary.fields(class).any(|(name, _)| name == "offset"))
}
