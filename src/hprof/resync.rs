//! Resynchronization: finding a sub-record boundary in the middle of a heap dump from the appearance of
//! its bytes.
//!
//! Used to divide a giant heap dump record into chunks for all cores, and to continue after a damaged
//! region. A boundary is only a *guess* here: code that makes chunks checks that the preceding chunk ends
//! exactly where the next one starts.

use super::class_dump::ClassDump;
use super::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use super::heap_tag;
use super::{IdSize, ObjectId, be_id};

/// Class data for the search for a boundary.
pub trait KnownClasses {
    /// Returns `Some` if `id` is a class: `Some(Some(bytes))` if the size of its instances' fields is
    /// known too.
    fn class(&self, id: ObjectId) -> Option<Option<u64>>;
}

/// Number of consecutive, unambiguous objects that confirm a boundary.
const CONVINCED: usize = 24;
/// Number of bytes that one search may read, in addition to 16 for each byte that is searched.
const BUDGET: usize = 64 << 20;
/// Maximum number of class dumps among the objects that confirm a boundary.
const MAX_CLASSES: usize = 4;
/// Approximate size of the largest class dump in bytes.
const MAX_CLASS: usize = 4 << 20;
/// Number of bytes read of any other record.
const HEAD: usize = 32;
/// Maximum number of sub-records of any kind read from one position; roots and classes confirm nothing.
const PATIENCE: usize = 256;

/// Visitor that counts the objects that confirm a boundary.
struct Judge<'k, K> {
    known: &'k K,
    good: usize,
    seen: usize,
    classes: usize,
    bad: bool,
}

impl<'a, K: KnownClasses> HeapVisitor<'a> for Judge<'_, K> {
    fn instance(&mut self, record: Instance<'a>) {
        match self.known.class(record.class) {
            Some(Some(bytes)) => self.judge(bytes == record.fields.len() as u64),
            Some(None) => self.judge(true),
            None => self.judge(false),
        }
        self.bad |= record.id.is_null();
    }
    fn object_array(&mut self, record: ObjectArray<'a>) {
        self.judge(!record.id.is_null() && self.known.class(record.class).is_some());
    }
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        self.judge(!record.id.is_null());
    }
    fn class(&mut self, _: ClassDump<'a>) {
        // The agent and Android dump classes among objects, but only a few in a row.
        self.classes += 1;
        self.bad |= self.classes > MAX_CLASSES;
    }
    fn go_on(&mut self) -> bool {
        self.seen += 1;
        !self.bad && self.good < CONVINCED && self.seen <= PATIENCE
    }
}

impl<K> Judge<'_, K> {
    fn judge(&mut self, good: bool) {
        self.good += usize::from(good);
        self.bad |= !good;
    }
}

/// Returns the first offset in `from..to` at which sub-records seem to start; these may extend up to
/// `limit`.
///
/// It is the start of an instance or of an array, followed by a run of objects of known classes and of
/// the right lengths, or only by such objects up to `limit`.
pub fn find<K: KnownClasses>(
    bytes: &[u8],
    id_size: IdSize,
    from: usize,
    to: usize,
    limit: usize,
    known: &K,
) -> Option<usize> {
    let w = id_size.bytes();
    // Records to which many candidate offsets lead (class dumps of 1 MiB) must not be read again from each of them.
    let mut budget = BUDGET + 16 * to.saturating_sub(from);
    (from..to.min(bytes.len())).find(|&at| {
        // A cheap check first: the tag, and a known class.
        let Some(record) = bytes.get(at..) else {
            return false;
        };
        let likely = match record.first() {
            Some(&heap_tag::INSTANCE) => {
                be_id(record, 5 + w, id_size).is_some_and(|id| known.class(ObjectId(id)).is_some())
            }
            Some(&heap_tag::OBJECT_ARRAY) => {
                be_id(record, 9 + w, id_size).is_some_and(|id| known.class(ObjectId(id)).is_some())
            }
            Some(&heap_tag::PRIMITIVE_ARRAY) => matches!(record.get(9 + w), Some(4..=11)),
            _ => false,
        };
        if !likely || budget == 0 {
            return false;
        }
        let mut judge = Judge { known, good: 0, seen: 0, classes: 0, bad: false };
        let walked = heap::walk(bytes, id_size, at, limit, limit, &mut judge);
        let class_is_next = bytes.get(walked.next) == Some(&heap_tag::CLASS);
        let ahead = if class_is_next { MAX_CLASS.min(limit.saturating_sub(walked.next)) } else { HEAD };
        budget = budget.saturating_sub(walked.next - at + ahead);
        !judge.bad
            && judge.good > 0
            && (judge.good >= CONVINCED || (walked.error.is_none() && walked.next == limit))
    })
}
