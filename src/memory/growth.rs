//! What grew from one ledger to the next.

use crate::ledger::{Ledger, MemoryKind};

/// Change of one kind of memory; `kind` is `None` for unexplained memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindChange {
    /// Kind of memory.
    pub kind: Option<MemoryKind>,
    /// Change of its resident bytes.
    pub bytes: i64,
}

/// Returns the changes of resident bytes by kind, largest first, without kinds that did not change.
pub fn changes(before: &Ledger, after: &Ledger) -> Vec<KindChange> {
    let resident =
        |ledger: &Ledger, kind: MemoryKind| ledger.row(kind).and_then(|row| row.resident_bytes).unwrap_or(0);
    let unexplained = KindChange {
        kind: None,
        bytes: difference(before.unexplained_bytes.unwrap_or(0), after.unexplained_bytes.unwrap_or(0)),
    };
    let of_kinds = MemoryKind::ALL.iter().map(|kind| KindChange {
        kind: Some(*kind),
        bytes: difference(resident(before, *kind), resident(after, *kind)),
    });
    let mut all: Vec<KindChange> = of_kinds.chain([unexplained]).filter(|change| change.bytes != 0).collect();
    all.sort_by_key(|change| (std::cmp::Reverse(change.bytes.unsigned_abs()), change.kind));
    all
}

/// Returns the difference of two sizes.
pub fn difference(before: u64, after: u64) -> i64 {
    after.cast_signed().saturating_sub(before.cast_signed())
}
