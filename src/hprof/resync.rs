//! Resynchronisation: finding a sub-record boundary in the middle of a heap dump, by what its bytes look like.
//!
//! Used to divide one giant heap dump record into chunks for all cores, and to continue after a damaged region. A boundary
//! is only *guessed* here: whoever makes chunks checks that the chunk before ends exactly where the next one starts.

use super::class_dump::ClassDump;
use super::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use super::heap_tag;
use super::{IdSize, ObjectId, be_id};

/// What is known of the classes when a boundary is sought.
pub trait KnownClasses {
    /// Whether `id` is a class: `Some(Some(bytes))` if also the bytes of its instances' fields are known.
    fn class(&self, id: ObjectId) -> Option<Option<u64>>;
}

/// Objects that have to follow one another without a doubt before a boundary is believed.
const CONVINCED: usize = 24;
/// Bytes that may be walked over in one search, beside some for each byte that is searched.
const BUDGET: usize = 64 << 20;
/// Class dumps that may stand among the objects that convince.
const MAX_CLASSES: usize = 4;
/// Bytes of the largest class dump, about.
const MAX_CLASS: usize = 4 << 20;
/// Bytes that are looked at of another record.
const HEAD: usize = 32;
/// Sub-records of any kind that are looked at from one place; roots and classes convince nobody.
const PATIENCE: usize = 256;

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
        // The agent and Android dump classes among objects, but not many of them in a row.
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

/// The first offset in `from..to` at which sub-records seem to start; those may reach up to `limit`.
///
/// It has to be the start of an instance or of an array, followed by a run of objects of known classes and of the
/// right lengths, or by nothing but such objects up to `limit`.
pub fn find<K: KnownClasses>(
    bytes: &[u8],
    id_size: IdSize,
    from: usize,
    to: usize,
    limit: usize,
    known: &K,
) -> Option<usize> {
    let w = id_size.bytes();
    // Records that many starts lead to (class dumps of a megabyte) must not be walked over from each of them.
    let mut budget = BUDGET + 16 * to.saturating_sub(from);
    (from..to.min(bytes.len())).find(|&at| {
        // A cheap look first: the tag, and a class that is known.
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
