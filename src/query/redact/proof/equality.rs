//! Equality of contents of arrays: equal contents must be equal in the redacted dump, and different contents different.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use hprof_index::graph::numbers::ObjectIndex;

use super::super::RedactOptions;
use super::pairs::{fold, readers};
use super::{ProofRow, SHARED_ARRAYS, has_shared_arrays};
use hprof_index::Dump;
use hprof_model::objects::reader::{ObjectReader, ObjectRecord};
use hprof_model::strings::contents::{hash, random_seed};

/// Maximum number of arrays whose hashes are in memory at once, at 16 bytes each.
const AT_ONCE: u64 = 1 << 24;

/// Hashes of the contents of an object before and after the redaction.
type Hashes = (u64, u64);

/// Compares the equality of the contents of all arrays, and of all Strings if these can share an array.
pub(super) fn compare(options: &RedactOptions, a: &Dump<'_>, b: &Dump<'_>) -> ProofRow {
    let readers = readers(a, b);
    let seed = random_seed();
    let arrays = violations(&readers, |_, _, one, other| match (one, other) {
        (ObjectRecord::PrimitiveArray(one), ObjectRecord::PrimitiveArray(other)) => {
            let seed = seed ^ u64::from(one.element.code());
            let of = |elements| xxh3_64_with_seed(elements, seed);
            Some((of(one.elements?), of(other.elements?)))
        }
        _ => None,
    });
    let row = ProofRow::new("equal_contents", arrays);
    if options.break_equality {
        let reason = "equal contents become different, as requested";
        return ProofRow { differences: 0, allowed: arrays, reason: Some(reason), ..row };
    }
    if !has_shared_arrays(a) {
        return row;
    }
    let strings = violations(&readers, |readers, object, _, _| {
        let [one, other] = readers.each_ref().map(|reader| reader.string(object));
        Some((hash(&one?, seed), hash(&other?, seed)))
    });
    ProofRow { allowed: strings, reason: Some(SHARED_ARRAYS), ..row }
}

/// Returns the number of contents that were replaced by several different ones, plus the number of redacted contents that
/// replace several different ones.
fn violations(
    readers: &[ObjectReader<'_>; 2],
    hashes: impl Fn(&[ObjectReader<'_>; 2], ObjectIndex, &ObjectRecord<'_>, &ObjectRecord<'_>) -> Option<Hashes>
    + Sync,
) -> u64 {
    let parts = u64::from(readers[0].graph.objects.len()) / AT_ONCE + 1;
    let collect = |part: u64, key: fn(Hashes) -> Hashes| {
        let some = fold(readers, Vec::new, |found, object, one, other| {
            let both = hashes(readers, object, one, other).map(key);
            found.extend(both.filter(|(of, _)| of % parts == part));
        });
        let mut all = some.concat();
        all.sort_unstable();
        all.dedup();
        all.chunk_by(|x, y| x.0 == y.0).filter(|images| images.len() > 1).count() as u64
    };
    (0..parts).map(|part| collect(part, |both| both) + collect(part, |(one, other)| (other, one))).sum()
}
