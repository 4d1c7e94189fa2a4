//! The stage `summary` on disk: each table is a section.

use std::io;

use crate::model::summary::{Summary, Tables};
use crate::storage::store::format::{StageFile, StageWriter, Unusable};

/// Lists the tables with their section numbers, once for both writing and reading.
macro_rules! sections {
    ($($id:literal $table:ident,)*) => {
        /// Number of sections.
        pub(crate) const SECTIONS: u32 = { let mut count = 0; $(let _ = $id; count += 1;)* count };

        /// Writes all tables of a summary.
        pub(crate) fn write<W: io::Write + io::Seek>(
            summary: &Summary,
            writer: &mut StageWriter<W>,
        ) -> io::Result<()> {
            $(writer.rows($id, &summary.tables().$table)?;)*
            Ok(())
        }

        /// Reads all tables and checks their checksums.
        pub(crate) fn read(file: &StageFile) -> Result<Summary, Unusable> {
            let tables = Tables { $($table: file.column($id)?,)* };
            Summary::new(tables).ok_or(Unusable::Damaged)
        }
    };
}

sections! {
    1 facts,
    2 classes,
    3 fields,
    4 statics,
    5 text_ends,
    6 text_bytes,
    7 object_lengths,
    8 elements,
    9 primitive_lengths,
    10 short_arrays,
    11 class_distances,
    12 stack_chunks,
    13 roots,
    14 strings,
    15 frames,
    16 traces,
    17 loads,
    18 threads,
    19 segments,
    20 records,
    21 loaders,
    22 properties,
    23 heaps,
    24 problems,
    25 account,
    26 heap_dumps,
    27 fills,
    28 flat_classes,
    29 flat_fields,
    30 flat_arrays,
    31 stated_sizes,
    32 stated_totals,
    33 element_arrays,
}
