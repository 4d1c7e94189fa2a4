//! The stages `places`, `overview` and `containers` on disk: stored query results, in bytes that only the queries interpret.

use std::io;

use zerocopy::little_endian::U64;

use crate::storage::store::format::{StageFile, StageWriter, Unusable};

/// Maximum length of a query result in bytes: a longer one is neither written nor read.
const MAX_ANSWER: usize = 64 << 20;

/// Number of sections.
pub(crate) const SECTIONS: u32 = 2;

/// Writes both sections: the key of the query result, and the result.
pub(crate) fn write<W: io::Write + io::Seek>(
    key: u64,
    answer: &[u8],
    writer: &mut StageWriter<W>,
) -> io::Result<()> {
    if answer.len() > MAX_ANSWER {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    writer.rows::<U64>(1, &[key.into()])?;
    writer.rows::<u8>(2, answer)
}

/// Reads the query result, if it has this key.
pub(crate) fn read(file: &StageFile, key: u64) -> Result<Option<Vec<u8>>, Unusable> {
    let known = file.column::<U64>(1)?.first().ok_or(Unusable::Damaged)?.get();
    if known != key {
        return Ok(None);
    }
    let answer = file.column::<u8>(2)?;
    if answer.len() > MAX_ANSWER { Err(Unusable::Damaged) } else { Ok(Some(answer.to_vec())) }
}
