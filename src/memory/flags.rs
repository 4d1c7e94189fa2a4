//! Limits in the reply to `VM.flags -all`.

use serde::{Deserialize, Serialize};

use crate::numbers::bytes;

/// Limits of a JVM for its memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryFlags {
    /// Maximum size of the heap.
    pub heap_bytes: Option<u64>,
    /// Maximum size of the metaspace; `None` if it has no limit.
    pub metaspace_bytes: Option<u64>,
    /// Size of the class space.
    pub class_space_bytes: Option<u64>,
    /// Size of the code cache.
    pub code_cache_bytes: Option<u64>,
    /// Maximum size of direct buffers, if it was set.
    pub direct_bytes: Option<u64>,
    /// Size of the stack of a Java thread.
    pub stack_bytes: Option<u64>,
}

impl MemoryFlags {
    /// Parses the reply:
    ///
    /// ```text
    ///    size_t MaxHeapSize            = 536870912          {product} {command line}
    /// ```
    pub fn parse(text: &str) -> Self {
        let mut found = Self::default();
        let mut has_compressed_classes = None;
        for line in text.lines() {
            let Some((before, after)) = line.split_once('=') else { continue };
            let (Some(name), Some(value)) = (
                before.trim_end_matches(':').split_whitespace().next_back(),
                after.split_whitespace().next(),
            ) else {
                continue;
            };
            if name == "UseCompressedClassPointers" {
                has_compressed_classes = Some(value == "true");
            }
            let Some(number) = bytes(value).filter(|number| *number > 0) else { continue };
            match name {
                "MaxHeapSize" => found.heap_bytes = Some(number),
                "MaxMetaspaceSize" => found.metaspace_bytes = Some(number),
                "CompressedClassSpaceSize" => found.class_space_bytes = Some(number),
                "ReservedCodeCacheSize" => found.code_cache_bytes = Some(number),
                "MaxDirectMemorySize" => found.direct_bytes = Some(number),
                "ThreadStackSize" => found.stack_bytes = number.checked_mul(1 << 10),
                _ => {}
            }
        }
        if has_compressed_classes == Some(false) {
            found.class_space_bytes = None;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        let text = "4711:\n[Global flags]\n   size_t MaxHeapSize    = 536870912    {product} {command line}\n\
            uintx MaxMetaspaceSize                         := 18446744073709535232    {product} {default}\n\
            intx ThreadStackSize = 1024 {pd product} {default}\n uint64_t MaxDirectMemorySize = 0 {product} {default}\nx = y\n=\n";
        let found = MemoryFlags::parse(text);
        assert_eq!((found.heap_bytes, found.stack_bytes), (Some(512 << 20), Some(1 << 20)));
        assert_eq!((found.metaspace_bytes, found.direct_bytes), (None, None));
    }
}
