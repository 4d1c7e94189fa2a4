//! How the index is stored, in memory and on disk. Nothing here knows of dumps, objects or graphs; imports are of
//! [`hprof_input`], which maps files, and of nothing else in the index.
//!
//! * [`store`] is the directory beside the dump, and the format of its files: sections with checksums.
//! * `column` and [`checked_column`] are columns of rows: in memory, or sections of a mapped file. Bytes of a file are
//!   used only after their checksum was found right.
//! * `bit_packed` packs columns of small numbers.
//! * `scratch` has large arrays for building, within the memory budget that [`memory`] finds; beyond, in files.
//! * `private_dir` are directories that nobody else can change: an index is believed.
//! * `allowance` is asked by tables that grow as the file says.
//! * `temporary_files` are removed however the process ends. `free_space` asks the disk.
//! * `id_map` and `prefetch` are tools for large tables.

pub(crate) mod allowance;
pub(crate) mod bit_packed;
pub mod checked_column;
pub(crate) mod column;
pub mod free_space;
pub mod human_bytes;
pub mod id_map;
pub mod memory;
mod pages;
pub mod prefetch;
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) mod private_dir;
pub mod scratch;
pub mod store;
#[cfg_attr(not(unix), allow(dead_code))]
pub mod temporary_files;
