//! STATED SIZES: the sizes of single objects.

use std::io::{self, Write};

use hprof_format::binary::{STATED_SIZES_MAGIC, record_head, tag};

/// Maximum number of rows in a record: `redact` reads small records as a whole.
const MAX_ROWS: usize = 1 << 16;
/// Rows that are encoded at a time.
const ROWS: usize = 4096;

/// Sizes that a heap dump's text states for single objects.
#[derive(Debug, Default)]
pub(super) struct StatedSizes {
    /// Object IDs and sizes.
    pub(super) rows: Vec<(u64, u64)>,
}

impl StatedSizes {
    /// Sorts the rows by ID. Of rows with one ID, the last counts.
    pub(super) fn sort(&mut self) {
        self.rows.sort_by_key(|(id, _)| *id);
        self.rows.reverse();
        self.rows.dedup_by_key(|(id, _)| *id);
        self.rows.reverse();
    }

    /// Returns the size of the records in bytes.
    pub(super) fn record_bytes(&self) -> u64 {
        16 * self.rows.len() as u64 + 64
    }

    /// Writes the records of heap dump `number`, from 1; one without rows if there are none, because the record marks a dump
    /// whose sizes are stated.
    pub(super) fn write(&self, number: u32, out: &mut dyn Write) -> io::Result<()> {
        let mut parts = self.rows.chunks(MAX_ROWS);
        let mut next = Some(parts.next().unwrap_or_default());
        while let Some(rows) = next {
            let bytes = STATED_SIZES_MAGIC.len() + 4 + 16 * rows.len();
            out.write_all(&record_head(tag::STATED_SIZES, 0, u32::try_from(bytes).unwrap_or(u32::MAX)))?;
            out.write_all(STATED_SIZES_MAGIC)?;
            out.write_all(&number.to_be_bytes())?;
            let mut encoded = Vec::with_capacity(16 * ROWS);
            for rows in rows.chunks(ROWS) {
                encoded.clear();
                for (id, size) in rows {
                    encoded.extend_from_slice(&id.to_be_bytes());
                    encoded.extend_from_slice(&size.to_be_bytes());
                }
                out.write_all(&encoded)?;
            }
            next = parts.next();
        }
        Ok(())
    }
}
