//! Constants that events refer to.

use crate::error::{FlightError, FlightErrorKind};
use crate::events::EventHeader;
use crate::metadata::Metadata;
use crate::plan::Plans;
use crate::reader::Reader;

/// Offsets of the constants of a chunk, by type and key. They are read on request.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    /// Constants, by index of the type.
    of_class: Vec<Pool>,
}

/// Offsets of the constants of a type.
#[derive(Debug)]
enum Pool {
    /// Keys of the JVM are numbered one after the other: offsets by key, from the first one; [`NONE`] for no constant.
    Table { first: i64, offsets: Vec<u32> },
    /// Keys with offsets, ascending.
    Sorted(Vec<(i64, usize)>),
}

/// No constant: a header is before all of them.
const NONE: u32 = 0;
/// Maximum length of a table, as a multiple of the number of constants.
const TABLE_OF_CONSTANT: usize = 8;

impl Pool {
    /// Creates a pool of constants, given in the order of the file.
    fn new(mut constants: Vec<(i64, usize)>) -> Self {
        // Of constants with one key, the last one in the file counts.
        let keys = constants.iter().map(|(key, _)| *key);
        let (first, last) =
            keys.fold((i64::MAX, i64::MIN), |(first, last), key| (first.min(key), last.max(key)));
        let length = usize::try_from(last.wrapping_sub(first)).ok().and_then(|last| last.checked_add(1));
        let max = constants.len().saturating_mul(TABLE_OF_CONSTANT);
        if let Some(length) = length.filter(|length| first <= last && *length <= max) {
            let mut offsets = vec![NONE; length];
            let all_fit = constants.iter().all(|(key, offset)| {
                let place = usize::try_from(key.wrapping_sub(first)).ok().and_then(|at| offsets.get_mut(at));
                let offset = u32::try_from(*offset).ok();
                place.zip(offset).map(|(place, offset)| *place = offset).is_some()
            });
            if all_fit {
                return Self::Table { first, offsets };
            }
        }
        constants.reverse();
        constants.sort_by_key(|(key, _)| *key);
        constants.dedup_by_key(|(key, _)| *key);
        constants.shrink_to_fit();
        Self::Sorted(constants)
    }

    /// Returns the number of a constant among the constants of its type.
    #[inline]
    fn number(&self, key: i64) -> Option<usize> {
        match self {
            Self::Table { first, offsets } => {
                let at = usize::try_from(key.wrapping_sub(*first)).ok()?;
                offsets.get(at).filter(|offset| **offset != NONE).map(|_| at)
            }
            Self::Sorted(constants) => constants.binary_search_by_key(&key, |(key, _)| *key).ok(),
        }
    }

    #[inline]
    fn offset(&self, number: usize) -> Option<usize> {
        match self {
            Self::Table { offsets, .. } => offsets.get(number).map(|offset| *offset as usize),
            Self::Sorted(constants) => constants.get(number).map(|(_, offset)| *offset),
        }
    }
}

impl Pools {
    /// Finds the constants in all checkpoints. Each also states the offset of the one before, which is not needed: all
    /// events of the chunk were visited.
    pub(crate) fn read(
        reader: Reader<'_>,
        checkpoints: &[EventHeader],
        types: (&Metadata, &Plans),
        mut problem: impl FnMut(FlightError),
    ) -> Self {
        let mut found = vec![Vec::new(); types.0.classes.len()];
        for event in checkpoints {
            if let Err(error) = checkpoint(reader.at(event.fields).until(event.end), types, &mut found) {
                problem(error);
            }
        }
        Self { of_class: found.into_iter().map(Pool::new).collect() }
    }

    /// Returns the number of a constant among the constants of its type: at most a small multiple of their count.
    #[inline]
    pub(crate) fn number(&self, class: usize, key: i64) -> Option<usize> {
        self.of_class.get(class)?.number(key)
    }

    /// Returns the first key of a type whose constants are in a table.
    pub(crate) fn first_key(&self, class: usize) -> Option<i64> {
        match self.of_class.get(class)? {
            Pool::Table { first, .. } => Some(*first),
            Pool::Sorted(_) => None,
        }
    }

    /// Returns the offset of a constant.
    #[inline]
    pub(crate) fn offset(&self, class: usize, key: i64) -> Option<usize> {
        let pool = self.of_class.get(class)?;
        pool.offset(pool.number(key)?)
    }
}

/// Finds the constants of a checkpoint: keys and offsets, by index of the type.
fn checkpoint(
    mut reader: Reader<'_>,
    (metadata, plans): (&Metadata, &Plans),
    found: &mut [Vec<(i64, usize)>],
) -> Result<(), FlightError> {
    // Start, duration, offset of the checkpoint before.
    for _ in 0..3 {
        reader.long()?;
    }
    // Kind of checkpoint.
    reader.u8()?;
    for _ in 0..reader.count()? {
        let at = reader;
        let type_id = reader.long()?;
        let class = metadata.index_of(type_id);
        let class = class.ok_or_else(|| at.error(FlightErrorKind::UnknownType(type_id)))?;
        let Some(constants) = found.get_mut(class) else { continue };
        for _ in 0..reader.count()? {
            let key = reader.long()?;
            let at = reader.position();
            plans.skip(class, &mut reader)?;
            // Only a constant that ends in its checkpoint: it is read without that limit later.
            constants.push((key, at));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_no_larger_than_a_multiple_of_the_constants() {
        for (keys, is_table) in [
            (&[][..], false),
            (&[262_143], true),
            (&[-5, 3], true),
            (&[1, 40], false),
            (&[i64::MIN, i64::MAX], false),
            (&[1 << 20, (1 << 20) + 15], true),
        ] {
            // The last one of a key counts.
            let constants = keys.iter().chain(keys).zip(100..).map(|(key, at)| (*key, at));
            let pool = Pool::new(constants.collect());
            let is = match &pool {
                Pool::Table { offsets, .. } => offsets.len() <= 2 * keys.len() * TABLE_OF_CONSTANT,
                Pool::Sorted(constants) => constants.len() == keys.len() && !is_table,
            };
            assert!(is && is_table == matches!(pool, Pool::Table { .. }), "{keys:?}: {pool:?}");
            let offsets: Vec<usize> = keys.iter().filter_map(|key| pool.offset(pool.number(*key)?)).collect();
            assert_eq!(offsets, (100 + keys.len()..).take(keys.len()).collect::<Vec<_>>(), "{keys:?}");
            for none in [0, -6, 2, 39, i64::MAX - 1] {
                assert_eq!(pool.number(none), None, "{keys:?}");
            }
        }
    }
}
