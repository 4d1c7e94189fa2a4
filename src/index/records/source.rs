//! The dump that is scanned.

use crate::storage::memory::Available;
use hprof_input::file::Compression;
use hprof_parser::Header;

/// A dump to be read: its unpacked bytes.
#[derive(Clone, Copy)]
pub(crate) struct DumpBytes<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) header: Header,
    pub(crate) compression: Option<Compression>,
    /// Available memory, if there is a limit.
    pub(crate) memory: Option<Available>,
    /// Error that ended unpacking before the end of the compressed file, if any.
    pub(crate) packed_error: Option<&'a str>,
}
