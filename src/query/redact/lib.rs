//! Redaction of a dump: its structure is kept, its values are replaced.
//!
//! * `symbol` and `cipher` are the keyed permutations, with the functions of [`hprof_base::keyed`]; `contents` maps arrays and
//!   numbers with them.
//! * `kept` are the kept texts, `objects::hiding::fields` the kept numbers, with a reason for each.
//! * `renames` gives classes other names, if requested.
//! * `plan` reads the data needed for the mapping: the fields of classes, and the names. `heap_texts` reads the names of
//!   threads and the properties from a file.
//! * `proof` compares a dump with the redacted one.
//! * `stream` reads the records in one pass; `filter` and `values` write the redacted ones.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod bytes;
mod cipher;
mod contents;
mod counters;
mod counts;
mod families;
mod filter;
mod heap_texts;
mod kept;
mod plan;
pub mod proof;
pub mod recover;
mod renames;
mod stream;
mod symbol;
mod tables;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::cast_possible_truncation)]
mod tests;
mod values;

use std::io::{self, Read, Write};
use std::sync::Arc;

use contents::ContentMapping;
use counters::KeptCounters;
use filter::Filter;
use values::Mapping;

use hprof_base::keyed::Key;
use hprof_base::naming::pattern::ClassPattern;

pub use counts::RedactCounts;
pub use hprof_model::objects::hiding::fields::finer_answers;
pub use kept::{KeptReason, KeptValues, TextPatterns};
pub use plan::Plan;
pub use renames::ClassRenames;
pub use stream::{DumpBytes, StreamEnd};

/// Options of a redaction.
#[derive(Debug, Clone, Default)]
pub struct RedactOptions {
    /// Texts that are kept.
    pub keep: TextPatterns,
    /// `true` if names of threads and thread groups are replaced.
    pub thread_names: bool,
    /// `true` if line numbers of frames are removed.
    pub lines: bool,
    /// `true` if values of counters are replaced.
    pub strict_numbers: bool,
    /// `true` if numbers are replaced by 0.
    pub zero: bool,
    /// `true` if equal contents of different objects are mapped differently.
    pub break_equality: bool,
    /// Patterns of classes that are renamed.
    pub classes: Vec<ClassPattern>,
}

/// Result of a redaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedactReport {
    /// Counts of the redaction.
    pub counts: RedactCounts,
    /// End of the input, and damage in it.
    pub end: StreamEnd,
    /// Number of bytes written.
    pub written: u64,
    /// New names of classes.
    pub renames: Arc<ClassRenames>,
}

impl RedactReport {
    /// Returns `true` if part of the input was not copied.
    pub fn is_damaged(&self) -> bool {
        self.end.lost_from.is_some()
            || self.end.damaged_records > 0
            || self.counts.damaged_regions > 0
            || self.counts.unknown_instances > 0
    }
}

/// Number of bytes at the start of a pipe from which the plan is read: they contain the classes, unless the writer puts them
/// among the objects.
pub const HELD_BACK: u64 = 64 << 20;

/// Returns the kept texts that are known from the plan.
pub fn kept_values(plan: &Plan, options: &RedactOptions) -> KeptValues {
    let mut kept = KeptValues::new(options.keep.clone(), plan.renames.clone());
    plan.add_names(&mut kept, options.thread_names);
    kept
}

/// Returns the kept texts that are known from the plan, and those of a file: names of threads, properties and counters. `bytes`
/// is the dump.
pub fn kept_values_of_file(plan: &Plan, options: &RedactOptions, bytes: &[u8]) -> KeptValues {
    let mut kept = kept_values(plan, options);
    heap_texts::add(&mut kept, plan, options, bytes);
    kept.counters = KeptCounters::of_dump(plan, bytes);
    kept
}

/// Reads a dump from `from` and writes the redacted dump to `to`. Memory is bounded: except for `plan` and `kept`, it does not
/// depend on the size of the dump.
///
/// # Errors
/// Errors of reading `from` and writing `to`; [`io::ErrorKind::InvalidData`] if `from` is not a dump.
pub fn redact(
    plan: &Plan,
    kept: &KeptValues,
    options: &RedactOptions,
    key: Key,
    from: DumpBytes<'_>,
    to: &mut dyn Write,
    advance: &dyn Fn(u64),
) -> io::Result<RedactReport> {
    let mapping = Mapping::new(plan, kept, options, ContentMapping::new(key));
    write(Filter::new(mapping, to, advance), from)
}

/// Writes the output of a filter.
fn write(mut filter: Filter<'_>, from: DumpBytes<'_>) -> io::Result<RedactReport> {
    let end = stream::read_records(from, &mut filter)?;
    filter.out.flush()?;
    let renames = filter.mapping.plan.renames.clone();
    Ok(RedactReport { counts: filter.counts, end, written: filter.written, renames })
}

/// Redacts a dump that can be read only once. Records up to [`HELD_BACK`] bytes are held back for the plan. Names of threads
/// and all properties are mapped, and so are counters that precede their holders.
///
/// # Errors
/// The errors of [`redact`].
pub fn redact_pipe(
    options: &RedactOptions,
    key: Key,
    from: &mut dyn Read,
    to: &mut dyn Write,
    advance: &dyn Fn(u64),
) -> io::Result<RedactReport> {
    let mut start = Vec::new();
    from.take(HELD_BACK).read_to_end(&mut start)?;
    let plan = Plan::read(DumpBytes::Stream(&mut start.as_slice()), &options.classes)?;
    let options = RedactOptions { thread_names: true, ..options.clone() };
    let mut kept = kept_values(&plan, &options);
    kept.counters = KeptCounters::of_dump(&plan, &start);
    // The holder of a counter may come long after it.
    kept.counters.has_more = true;
    let mapping = Mapping::new(&plan, &kept, &options, ContentMapping::new(key));
    let filter = Filter { finds_counters: true, ..Filter::new(mapping, to, advance) };
    let mut from = start.as_slice().chain(from);
    write(filter, DumpBytes::Stream(&mut from))
}
