//! How the index is stored: columns in memory and on disk, bit-packed columns, scratch arrays, the memory budget, and
//! the store of files beside the dump. Nothing here knows of dumps or objects.

pub(crate) mod bit_packed;
pub mod checked_column;
pub(crate) mod column;
pub(crate) mod free_space;
pub(crate) mod id_map;
pub mod memory;
pub(crate) mod prefetch;
pub(crate) mod scratch;
pub mod store;
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) mod temporary_files;
