//! Counts of a redaction.

use std::collections::BTreeMap;

use super::contents::Treatment;
use super::kept::KeptReason;

/// Counts of arrays and values by treatment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedactCounts {
    /// Primitive arrays.
    pub arrays: u64,
    /// Arrays without values: zeros only.
    pub arrays_without_values: u64,
    /// Arrays that were mapped.
    pub arrays_mapped: u64,
    /// Arrays of one repeated value, which was mapped.
    pub arrays_repeated: u64,
    /// Arrays that are kept because they have a kept text.
    pub arrays_kept: BTreeMap<KeptReason, u64>,
    /// Numbers in fields, statics and constants that were mapped.
    pub numbers_mapped: u64,
    /// Numbers that are kept because analyses need them, and booleans.
    pub numbers_kept: u64,
    /// Cached hashes that were mapped.
    pub hashes_mapped: u64,
    /// Symbols that are names, which are kept.
    pub symbols_kept: u64,
    /// Symbols with names of renamed classes.
    pub symbols_renamed: u64,
    /// Symbols that were mapped.
    pub symbols_mapped: u64,
    /// Line numbers that were removed.
    pub lines_removed: u64,
    /// Instances that precede their classes in the dump: their fields were set to 0.
    pub unknown_instances: u64,
    /// Number of damaged regions that were not copied.
    pub damaged_regions: u64,
}

impl RedactCounts {
    /// Counts an array.
    pub(super) fn array(&mut self, treatment: Treatment, reason: Option<KeptReason>) {
        self.arrays += 1;
        match treatment {
            Treatment::Nothing => self.arrays_without_values += 1,
            Treatment::Mapped => self.arrays_mapped += 1,
            Treatment::Repeated => self.arrays_repeated += 1,
            Treatment::Kept => {
                if let Some(reason) = reason {
                    *self.arrays_kept.entry(reason).or_default() += 1;
                }
            }
        }
    }

    /// Adds the counts of another part of the dump.
    pub(super) fn add(&mut self, other: &Self) {
        self.arrays += other.arrays;
        self.arrays_without_values += other.arrays_without_values;
        self.arrays_mapped += other.arrays_mapped;
        self.arrays_repeated += other.arrays_repeated;
        for (reason, count) in &other.arrays_kept {
            *self.arrays_kept.entry(*reason).or_default() += count;
        }
        self.numbers_mapped += other.numbers_mapped;
        self.numbers_kept += other.numbers_kept;
        self.hashes_mapped += other.hashes_mapped;
        self.symbols_kept += other.symbols_kept;
        self.symbols_renamed += other.symbols_renamed;
        self.symbols_mapped += other.symbols_mapped;
        self.lines_removed += other.lines_removed;
        self.unknown_instances += other.unknown_instances;
        self.damaged_regions += other.damaged_regions;
    }
}
