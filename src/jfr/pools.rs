//! Constants that events refer to.

use rustc_hash::FxHashMap;

use crate::error::{FlightError, FlightErrorKind};
use crate::events::EventHeader;
use crate::metadata::Metadata;
use crate::plan::Plans;
use crate::reader::Reader;

/// Offsets of the constants of a chunk, by type and key. They are read when they are asked for.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    /// By index of the type: keys with offsets, ascending.
    of_class: FxHashMap<usize, Vec<(i64, usize)>>,
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
        let mut pools = Self::default();
        for event in checkpoints {
            if let Err(error) = pools.checkpoint(reader.at(event.fields).until(event.end), types) {
                problem(error);
            }
        }
        for constants in pools.of_class.values_mut() {
            // Of constants with one key, the last one in the file counts.
            constants.reverse();
            constants.sort_by_key(|(key, _)| *key);
            constants.dedup_by_key(|(key, _)| *key);
            constants.shrink_to_fit();
        }
        pools
    }

    fn checkpoint(
        &mut self,
        mut reader: Reader<'_>,
        (metadata, plans): (&Metadata, &Plans),
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
            let constants = self.of_class.entry(class).or_default();
            for _ in 0..reader.count()? {
                let key = reader.long()?;
                constants.push((key, reader.position()));
                plans.skip(class, &mut reader)?;
            }
        }
        Ok(())
    }

    /// Returns the offset of a constant.
    pub(crate) fn offset(&self, class: usize, key: i64) -> Option<usize> {
        let constants = self.of_class.get(&class)?;
        let found = constants.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        constants.get(found).map(|(_, offset)| *offset)
    }
}
