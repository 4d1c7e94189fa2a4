//! Tags of the sub-records of a heap dump, other than roots.

/// CLASS DUMP.
pub const CLASS: u8 = 0x20;
/// INSTANCE DUMP.
pub const INSTANCE: u8 = 0x21;
/// OBJECT ARRAY DUMP.
pub const OBJECT_ARRAY: u8 = 0x22;
/// PRIMITIVE ARRAY DUMP.
pub const PRIMITIVE_ARRAY: u8 = 0x23;
/// Android's PRIMITIVE ARRAY NODATA DUMP.
pub const PRIMITIVE_ARRAY_NODATA: u8 = 0xc3;
/// Android's HEAP DUMP INFO.
pub const HEAP_INFO: u8 = 0xfe;
