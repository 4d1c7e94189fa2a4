//! How the index is stored, in memory and on disk. Nothing here knows of dumps, objects or graphs; imports are of
//! [`crate::input`], which maps files, and of nothing else in the index.
//!
//! * [`store`] is the directory beside the dump, and the format of its files: sections with checksums.
//! * `column` and [`checked_column`] are columns of rows: in memory, or sections of a mapped file. Bytes of a file are
//!   used only after their checksum was found right.
//! * `bit_packed` packs columns of small numbers.
//! * `scratch` has large arrays for building, within the memory budget that [`memory`] finds; beyond, in files.
//! * `temporary_files` are removed however the process ends. `free_space` asks the disk.
//! * `id_map` and `prefetch` are tools for large tables.

pub(in crate::index) mod bit_packed;
pub mod checked_column;
pub(in crate::index) mod column;
pub(in crate::index) mod free_space;
pub mod human_bytes;
pub(crate) mod id_map;
pub mod memory;
mod pages;
pub(crate) mod prefetch;
pub(crate) mod scratch;
pub mod store;
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) mod temporary_files;
