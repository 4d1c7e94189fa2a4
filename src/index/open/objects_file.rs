//! The stage `objects` on disk.

use std::io;

use roaring::RoaringBitmap;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::objects::address_index::AddressIndex;
use crate::objects::object_table::{BLOCK, ObjectTable, RecordPlaces};
use crate::storage::store::format::{StageFile, StageWriter, Unusable};

/// Number of sections.
pub(crate) const SECTIONS: u32 = 8;

/// Scalar values of the stage `objects`.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ObjectFacts {
    /// Number of objects.
    objects: U32,
    /// Exponent of the alignment: addresses are multiples of `1 << shift`.
    shift: u8,
    /// Size of a class number in bytes.
    class_bytes: u8,
    /// Size of an offset in bytes.
    offset_bytes: u8,
    /// Always 0.
    reserved: u8,
}

/// Writes all sections of the stage `objects`.
pub(crate) fn write<W: io::Write + io::Seek>(
    objects: &ObjectTable,
    writer: &mut StageWriter<W>,
) -> io::Result<()> {
    let ObjectTable { addresses, classes, class_bytes, places, class_objects } = objects;
    let facts = ObjectFacts {
        objects: addresses.objects.into(),
        shift: u8::try_from(addresses.shift).unwrap_or(0),
        class_bytes: *class_bytes,
        offset_bytes: places.offset_bytes,
        reserved: 0,
    };
    let mut roaring = Vec::with_capacity(class_objects.serialized_size());
    class_objects.serialize_into(&mut roaring)?;
    writer.rows(1, &[facts])?;
    writer.rows::<U64>(2, &addresses.keys)?;
    writer.rows::<U64>(3, addresses.lines.all())?;
    writer.rows::<U64>(4, addresses.ids.all())?;
    writer.rows::<u8>(5, classes.all())?;
    writer.rows::<U64>(6, places.blocks.all())?;
    writer.rows::<u8>(7, places.offsets.all())?;
    writer.rows::<u8>(8, &roaring)
}

/// Reads all sections; small ones are checked now, large ones as they are read.
pub(crate) fn read(file: &StageFile) -> Result<ObjectTable, Unusable> {
    let facts = *file.column::<ObjectFacts>(1)?.first().ok_or(Unusable::Damaged)?;
    let roaring = file.column::<u8>(8)?;
    let widths_fit = (1..=4).contains(&facts.class_bytes) && (1..=8).contains(&facts.offset_bytes);
    if !widths_fit || facts.shift >= 64 {
        return Err(Unusable::Damaged);
    }
    let count = facts.objects.get() as usize;
    let addresses = AddressIndex::new(
        u32::from(facts.shift),
        facts.objects.get(),
        file.column(2)?,
        file.checked_column(3)?,
        file.checked_column(4)?,
    );
    let objects = ObjectTable {
        addresses,
        classes: file.checked_column(5)?,
        class_bytes: facts.class_bytes,
        places: RecordPlaces {
            blocks: file.checked_column(6)?,
            offsets: file.checked_column(7)?,
            offset_bytes: facts.offset_bytes,
        },
        class_objects: RoaringBitmap::deserialize_from(&*roaring).map_err(|_| Unusable::Damaged)?,
    };
    let ids = objects.addresses.ids.len();
    let fits = objects.classes.len() == count.saturating_mul(usize::from(facts.class_bytes))
        && objects.places.blocks.len() == count.div_ceil(BLOCK as usize)
        && (ids == 0 || ids == count);
    if fits { Ok(objects) } else { Err(Unusable::Damaged) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::storage::scratch::ScratchArena;
    use crate::storage::store::Stage;
    use crate::storage::store::format::FileKey;
    use crate::storage::store::identity::Identity;
    use hprof_input::file::MappedFile;

    #[test]
    fn columns_are_as_long_as_there_are_objects() {
        let arena = ScratchArena::new(std::env::temp_dir(), 1 << 20);
        let is_read = |ids: usize, classes: usize, blocks: usize| {
            let objects = ObjectTable {
                addresses: AddressIndex::of_list(&(1..).take(ids).collect::<Vec<_>>(), &arena)
                    .unwrap()
                    .unwrap(),
                classes: vec![0; classes].into(),
                class_bytes: 2,
                places: RecordPlaces { blocks: vec![U64::new(0); blocks].into(), ..RecordPlaces::default() },
                class_objects: RoaringBitmap::new(),
            };
            let objects =
                ObjectTable { places: RecordPlaces { offset_bytes: 1, ..objects.places }, ..objects };
            let identity = Identity { len: 1, modified_ns: 2, hash: 3 };
            let key = FileKey { stage: Stage::Objects, identity, heap_dump: 0 };
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("objects");
            let mut writer = StageWriter::new(std::fs::File::create(&path).unwrap(), SECTIONS).unwrap();
            write(&objects, &mut writer).unwrap();
            writer.finish(&key).unwrap();
            let file = StageFile::open(MappedFile::open(&path).unwrap(), &key).unwrap();
            read(&file).is_ok()
        };
        assert!(is_read(0, 0, 0) && is_read(1, 2, 1) && is_read(64, 128, 1) && is_read(65, 130, 2));
        assert!(!is_read(65, 128, 2) && !is_read(65, 130, 1) && !is_read(64, 130, 1) && !is_read(1, 2, 2));
    }
}
