//! Storage of the index, in memory and on disk. Nothing here depends on dumps, objects or graphs; the
//! only imports are from [`hprof_input`], which maps files.
//!
//! * [`store`] is the directory beside the dump, and the format of its files: sections with checksums.
//! * `column` and [`checked_column`] are columns of rows: in memory, or sections of a mapped file. Bytes
//!   of a file are used only after their checksum was verified.
//! * `bit_packed` packs columns of small numbers.
//! * `scratch` provides large arrays for building, within the memory budget that [`memory`] determines;
//!   beyond it, in files. `scratch_table` has what grows in it.
//! * `private_dir` provides directories that nobody else can change, because an index is trusted.
//! * `open_dir` is how all files are created, renamed and removed: in a directory that stays open.
//! * `trusted_path` resolves paths up to the first directory that other users can change.
//! * `allowance` limits tables whose length the file determines.
//! * `temporary_files` are removed however the process ends. `free_space` queries the disk.
//! * `id_map` and `prefetch` are tools for large tables.

pub(crate) mod allowance;
pub(crate) mod bit_packed;
pub mod checked_column;
pub(crate) mod column;
pub mod free_space;
pub mod human_bytes;
pub mod id_map;
pub mod memory;
#[cfg_attr(not(unix), allow(dead_code))]
pub mod open_dir;
mod pages;
pub mod prefetch;
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) mod private_dir;
pub mod scratch;
pub mod scratch_table;
pub mod store;
#[cfg_attr(not(unix), allow(dead_code))]
pub mod temporary_files;
#[cfg(unix)]
pub mod trusted_path;
