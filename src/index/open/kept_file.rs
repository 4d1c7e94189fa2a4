//! The stages `places` and `overview` on disk: an answer that the queries keep, in bytes that only they understand.

use std::io;

use zerocopy::little_endian::U64;

use crate::storage::store::format::{StageFile, StageWriter, Unusable};

/// Number of sections.
pub(crate) const SECTIONS: u32 = 2;

/// Writes both sections: the key of the question, and the answer.
pub(crate) fn write<W: io::Write + io::Seek>(
    key: u64,
    answer: &[u8],
    writer: &mut StageWriter<W>,
) -> io::Result<()> {
    writer.rows::<U64>(1, &[key.into()])?;
    writer.rows::<u8>(2, answer)
}

/// Reads the answer, if it is to the question with this key.
pub(crate) fn read(file: &StageFile, key: u64) -> Result<Option<Vec<u8>>, Unusable> {
    let known = file.column::<U64>(1)?.first().ok_or(Unusable::Damaged)?.get();
    if known == key { file.column::<u8>(2).map(|answer| Some(answer.to_vec())) } else { Ok(None) }
}
