//! Addresses of the parts of a JVM for a ledger: those that the JVM states, and those that only their size tells.

use crate::jvm_layout::{JvmLayout, Part};
use crate::mappings::{AddressRange, Mappings};
use crate::sources::Sources;

/// Categories of Native Memory Tracking that are parts of the JVM.
const CATEGORIES: [(&str, Part); 5] = [
    ("Java Heap", Part::Heap),
    ("Shared class space", Part::Archive),
    ("Class", Part::ClassSpace),
    ("Code", Part::Code),
    ("GC", Part::Collector),
];

/// Categories that are one reserved range, which is found by its length.
const BY_LENGTH: [(&str, Part); 2] = [("Java Heap", Part::Heap), ("Class", Part::ClassSpace)];

/// Returns the addresses of the JVM's parts. What the JVM states comes first, then the ranges of a detail report of Native
/// Memory Tracking, then ranges without gaps whose length is that of a category.
pub(crate) fn effective_layout(sources: &Sources) -> JvmLayout {
    let mut layout = sources.layout.clone();
    let Some(nmt) = &sources.native_memory else { return layout };
    for (range, name) in &nmt.ranges {
        if let Some((_, part)) = CATEGORIES.iter().find(|(category, _)| category == name) {
            layout.add(*range, *part);
        }
    }
    let Some(mappings) = &sources.mappings else { return layout };
    for (name, part) in BY_LENGTH {
        let Some(category) = nmt.category(name) else { continue };
        let (reserved, committed) = (category.mmap_reserved_bytes, category.mmap_committed_bytes);
        if layout.bytes(part).is_none()
            && let Some(range) = range_of_length(mappings, reserved, committed)
        {
            layout.add(range, part);
        }
    }
    layout
}

/// Difference between the committed bytes of a part and the bytes of it that can be accessed: archived objects in the heap, and
/// what changed since the account was read.
const SLACK: u64 = 4 << 20;

/// Finds the first range of this length that mappings fill without gaps, beginning and ending with one, and of which about
/// `committed` bytes can be accessed.
fn range_of_length(mappings: &Mappings, length: u64, committed: u64) -> Option<AddressRange> {
    if length == 0 {
        return None;
    }
    // Accessible bytes before each mapping, and the first mapping of the run without gaps that each one is in.
    let (mut accessible, mut runs) = (vec![0u64], Vec::with_capacity(mappings.all.len()));
    for (at, mapping) in mappings.all.iter().enumerate() {
        let before = accessible.last().copied().unwrap_or(0);
        let own = if mapping.access.is_none() { 0 } else { mapping.range.bytes() };
        accessible.push(before.saturating_add(own));
        let run = mappings.before(at).and_then(|_| runs.last().copied());
        runs.push(run.unwrap_or(at));
    }
    let bytes_before = |at: usize| accessible.get(at).copied().unwrap_or(0);
    for (first, mapping) in mappings.all.iter().enumerate().filter(|(_, mapping)| mapping.is_anonymous()) {
        let start = mapping.range.start;
        let end = start.checked_add(length)?;
        let last = mappings.all.partition_point(|other| other.range.end < end);
        let ends_there = mappings.all.get(last).is_some_and(|last| last.range.end == end);
        let is_one_run = runs.get(last).is_some_and(|run| *run <= first);
        let bytes = bytes_before(last + 1).saturating_sub(bytes_before(first));
        if ends_there && is_one_run && bytes.abs_diff(committed) <= SLACK {
            return AddressRange::new(start, end);
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::native_memory::NativeMemory;

    #[test]
    fn a_heap_is_found_by_its_length() {
        let smaps = "c0000000-c0001000 rw-p 0 00:00 0\ne0000000-f7a00000 rw-p 0 00:00 0\nf7a00000-ffe00000 ---p 0 00:00 0\n\
            ffe00000-100000000 rw-p 0 00:00 0 /lib/server/classes.jsa\n7f0000000000-7f0000001000 rw-p 0 00:00 0\n";
        let nmt = "Total: reserved=1, committed=1\n- Java Heap (reserved=536870912, committed=1)\n (mmap: reserved=536870912, committed=398458880)\n";
        let mut sources = Sources {
            mappings: Some(Mappings::parse(smaps.as_bytes())),
            native_memory: NativeMemory::parse(nmt),
            ..Sources::default()
        };
        let found = effective_layout(&sources);
        assert_eq!(found.ranges, [(AddressRange { start: 0xe000_0000, end: 0x1_0000_0000 }, Part::Heap)]);
        // A gap: not one range.
        sources.mappings.as_mut().unwrap().all.remove(2);
        assert_eq!(effective_layout(&sources).ranges, []);
    }
}
