//! The stage `objects` on disk.

use std::io;

use roaring::RoaringBitmap;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::address::AddressIndex;
use super::objects::{Objects, Places};
use super::store::format::{StageFile, StageWriter, Unusable};

/// Number of sections.
pub(crate) const SECTIONS: u32 = 8;

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ObjectFacts {
    /// Number of objects.
    objects: U32,
    /// Addresses are multiples of one shifted left by this.
    shift: u8,
    /// Bytes of a class number.
    class_bytes: u8,
    /// Bytes of an offset.
    offset_bytes: u8,
    /// 0.
    reserved: u8,
}

/// Writes all sections.
pub(crate) fn write<W: io::Write + io::Seek>(
    objects: &Objects,
    writer: &mut StageWriter<W>,
) -> io::Result<()> {
    let Objects { addresses, classes, class_bytes, places, class_objects } = objects;
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

/// Reads all sections; the small ones are checked, the large ones as they are read.
pub(crate) fn read(file: &StageFile) -> Result<Objects, Unusable> {
    let facts = *file.column::<ObjectFacts>(1)?.first().ok_or(Unusable::Damaged)?;
    let roaring = file.column::<u8>(8)?;
    let widths_fit = (1..=8).contains(&facts.class_bytes) && (1..=8).contains(&facts.offset_bytes);
    if !widths_fit || facts.shift >= 64 {
        return Err(Unusable::Damaged);
    }
    let addresses = AddressIndex::new(
        u32::from(facts.shift),
        facts.objects.get(),
        file.column(2)?,
        file.lazy(3)?,
        file.lazy(4)?,
    );
    Ok(Objects {
        addresses,
        classes: file.lazy(5)?,
        class_bytes: facts.class_bytes,
        places: Places { blocks: file.lazy(6)?, offsets: file.lazy(7)?, offset_bytes: facts.offset_bytes },
        class_objects: RoaringBitmap::deserialize_from(&*roaring).map_err(|_| Unusable::Damaged)?,
    })
}
