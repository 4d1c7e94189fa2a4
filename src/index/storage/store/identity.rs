//! Identity of the dump to which an index belongs.

use xxhash_rust::xxh3::Xxh3;

use hprof_input::file::MappedFile;

/// Identity of a dump, determined without reading all of it: size, modification time, and a hash of
/// samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Size on disk in bytes.
    pub(crate) len: u64,
    /// Modification time in nanoseconds since 1970, truncated to 64 bits.
    pub(crate) modified_ns: u64,
    /// Hash of the samples.
    pub(crate) hash: u64,
}

/// Number of samples, the first at the start, the last at the end.
const SAMPLES: usize = 16;
/// Size of a sample in bytes.
const SAMPLE: usize = 4096;

impl Identity {
    /// Returns the identity of a dump: reads 64 KiB of it.
    pub(crate) fn from_dump(dump: &MappedFile) -> Self {
        let bytes = dump.bytes();
        let mut hash = Xxh3::new();
        let last = bytes.len().saturating_sub(SAMPLE);
        for sample in 0..SAMPLES {
            let at = last / (SAMPLES - 1) * sample;
            let at = if sample == SAMPLES - 1 { last } else { at };
            hash.update(bytes.get(at..bytes.len().min(at + SAMPLE)).unwrap_or_default());
        }
        let stamp = dump.stamp();
        // Times that agree in 64 bits of nanoseconds are 584 years apart.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let modified_ns = stamp.modified_ns as u64;
        Self { len: stamp.len, modified_ns, hash: hash.digest() }
    }
}
