//! Tags of objects: 64 bits that the JVM stores for an object.
//!
//! | bits | contents |
//! |---|---|
//! | 0..40 | the object's ID in dumps, divided by 8; 0: none yet |
//! | 40..42 | the heap dump in which it was last reported, modulo 3, from 1; 0: none |
//! | 42..63 | the number of the trace where it was allocated; 0: it is older than the agent |
//! | 63 | a class object whose class is known (others can have an ID too, from a walk), or a thread that has ended |
//!
//! IDs are similar to addresses: each is larger than the previous one by the size of the object, so that the distance between
//! two IDs is the size of an object, as in HotSpot's dumps.

use std::sync::atomic::{AtomicU64, Ordering};

const ID_BITS: u32 = 40;
const EPOCH_BITS: u32 = 2;
const ID_MASK: u64 = (1 << ID_BITS) - 1;
const TRACE_SHIFT: u32 = ID_BITS + EPOCH_BITS;
const KNOWN: u64 = 1 << 63;
/// Highest number of a trace in a tag.
pub const MAX_TRACE: u32 = (1 << (63 - TRACE_SHIFT)) - 1;

/// Tag of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Tag(pub i64);

/// Heap dump in which an object was last reported: 1, 2 or 3; 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Epoch(u8);

impl Epoch {
    /// Returns the epoch that follows this one.
    pub fn next(self) -> Self {
        Self(self.0 % 3 + 1)
    }
}

impl Tag {
    fn bits(self) -> u64 {
        self.0.cast_unsigned()
    }

    /// Returns the ID of the object; 0 for none.
    pub fn id(self) -> u64 {
        (self.bits() & ID_MASK) << 3
    }

    /// Returns the number of the trace in which the object was allocated.
    pub fn trace(self) -> u32 {
        // The number has 21 bits.
        u32::try_from(self.bits() >> TRACE_SHIFT & u64::from(MAX_TRACE)).unwrap_or(0)
    }

    /// Returns the epoch of the last dump that reported the object.
    pub fn epoch(self) -> Epoch {
        Epoch(u8::try_from(self.bits() >> ID_BITS & 3).unwrap_or(0))
    }

    /// Returns this tag with another ID.
    pub fn with_id(self, id: u64) -> Self {
        Self((self.bits() & !ID_MASK | id >> 3 & ID_MASK).cast_signed())
    }

    /// Returns this tag with another epoch.
    pub fn with_epoch(self, epoch: Epoch) -> Self {
        Self((self.bits() & !(3 << ID_BITS) | u64::from(epoch.0) << ID_BITS).cast_signed())
    }

    /// Returns `true` for the class object of a registered class, or for an ended thread.
    pub fn is_known(self) -> bool {
        self.bits() & KNOWN != 0
    }

    /// Returns this tag with the known bit set.
    pub fn with_known(self) -> Self {
        Self((self.bits() | KNOWN).cast_signed())
    }

    /// Returns this tag with another trace number.
    pub fn with_trace(self, trace: u32) -> Self {
        let others = KNOWN | ((1 << TRACE_SHIFT) - 1);
        Self((self.bits() & others | u64::from(trace.min(MAX_TRACE)) << TRACE_SHIFT).cast_signed())
    }
}

/// Generator of object IDs.
#[derive(Debug)]
pub struct Ids(AtomicU64);

impl Default for Ids {
    fn default() -> Self {
        Self(AtomicU64::new(Self::FIRST))
    }
}

impl Ids {
    /// Returns a generator that continues after this one. The next recording needs it, as ended threads may still have tags
    /// with IDs of this one.
    pub fn successor(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }

    /// Restarts the IDs from the first one. No object may have an ID any more.
    pub fn restart(&self) {
        self.0.store(Self::FIRST, Ordering::Relaxed);
    }

    /// First ID: the size of a page, so that no object has ID 0.
    const FIRST: u64 = 0x1000;

    /// Returns the ID for an object of this size in bytes. After 8 TiB of objects, IDs restart and are then ambiguous.
    pub fn next(&self, size: u64) -> u64 {
        self.0.fetch_add(size.next_multiple_of(8).max(8), Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_touch_each_other() {
        let epoch = Epoch::default().next().next();
        let tag = Tag::default().with_trace(MAX_TRACE).with_id(0x7_ffff_fff8).with_epoch(epoch);
        assert_eq!((tag.id(), tag.trace(), tag.epoch()), (0x7_ffff_fff8, MAX_TRACE, epoch));
        assert!(!tag.is_known());
        let tag = tag.with_known();
        assert_eq!((tag.id(), tag.trace(), tag.epoch()), (0x7_ffff_fff8, MAX_TRACE, epoch));
        let tag = tag.with_trace(1).with_epoch(Epoch::default());
        assert_eq!((tag.id(), tag.trace(), tag.epoch()), (0x7_ffff_fff8, 1, Epoch::default()));
        assert!(tag.is_known());
        assert_eq!(Tag::default().with_trace(1).with_id(((1 << 40) - 1) << 3).id(), ((1u64 << 40) - 1) << 3);
    }

    #[test]
    fn epochs_go_round_without_none() {
        let first = Epoch::default().next();
        assert_ne!(first, Epoch::default());
        assert_eq!(first.next().next().next(), first);
    }

    #[test]
    fn ids_grow_by_sizes() {
        let ids = Ids::default();
        let (a, b, c) = (ids.next(24), ids.next(17), ids.next(0));
        assert_eq!((b - a, c - b), (24, 24));
    }
}
