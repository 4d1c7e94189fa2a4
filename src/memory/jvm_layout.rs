//! Addresses of the parts of a JVM, from the replies to `VM.info` (the same text as a crash report,
//! src/hotspot/share/utilities/vmError.cpp of the JDK), `GC.heap_info` and, since JDK 24, `System.map`.

use serde::{Deserialize, Serialize};

use crate::mappings::AddressRange;
use crate::numbers::{address, scaled_bytes};

/// Part of a JVM that has addresses of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Part {
    /// The Java heap.
    Heap,
    /// Archived classes (CDS).
    Archive,
    /// Class space: classes with compressed pointers.
    ClassSpace,
    /// Compiled code.
    Code,
    /// Bitmaps and card tables of the garbage collector.
    Collector,
}

/// Addresses of the parts of a JVM.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JvmLayout {
    /// Ranges of addresses, by part. Ranges of different parts do not overlap.
    pub ranges: Vec<(AddressRange, Part)>,
    /// Committed bytes of the heap, from `GC.heap_info`.
    pub heap_committed_bytes: Option<u64>,
    /// Committed bytes of metaspace and class space together, from `GC.heap_info` (up to JDK 24).
    pub metaspace_committed_bytes: Option<u64>,
    /// Committed bytes of the metaspace without the class space, from `VM.info`.
    pub metadata_committed_bytes: Option<u64>,
    /// Committed bytes of the class space.
    pub class_space_committed_bytes: Option<u64>,
    /// Used bytes of the code cache.
    pub code_used_bytes: Option<u64>,
    /// Ranges that the JVM says contain memory of the collector, beside other memory if the kernel has merged mappings.
    pub collector_ranges: Vec<AddressRange>,
}

/// Maximum number of ranges. A heap has at most three, and a code cache as many.
const MAX_RANGES: usize = 64;
/// Maximum number of ranges of `System.map`.
pub(crate) const MAX_LABELLED: usize = 10_000;

impl JvmLayout {
    /// Adds the addresses in the reply to `VM.info`.
    ///
    /// ```text
    /// Heap address: 0x00000000e0000000, size: 512 MB, Compressed Oops mode: 32-bit
    /// CDS archive(s) mapped at: [0x00007fd277000000-0x00007fd277bc7000-0x00007fd277bc7000), size 12349440, ...
    /// Compressed class space mapped at: 0x00007fd278000000-0x00007fd2b8000000, reserved size: 1073741824
    /// Card table byte_map: [0x00007fd2f0228000,0x00007fd2f0328000] _byte_map_base: 0x00007fd2efb28000
    ///  Prev Bits: [0x00007fd2d4400000, 0x00007fd2d4c00000)
    /// CodeHeap 'profiled nmethods': size=120032Kb used=34Kb max_used=34Kb free=119998Kb
    ///  bounds [0x00007fd2dcec7000, 0x00007fd2dd137000, 0x00007fd2e4400000]
    /// ```
    pub fn add_vm_info(&mut self, text: &str) {
        for line in text.lines() {
            let line = line.trim();
            if let Some(rest) = line.strip_prefix("Heap address:") {
                if let Some(range) = heap_address(rest) {
                    self.add(range, Part::Heap);
                }
            } else if let Some(rest) = line.strip_prefix("CDS archive(s) mapped at:") {
                self.add_bounds(rest, Part::Archive);
            } else if let Some(rest) = line.strip_prefix("Compressed class space mapped at:") {
                self.add_bounds(rest, Part::ClassSpace);
            } else if let Some(rest) = line.strip_prefix("Card table byte_map:") {
                self.add_bounds(rest.split("_byte_map_base").next().unwrap_or_default(), Part::Collector);
            } else if let Some((_, rest)) = line.split_once("Bits: ").filter(|(name, _)| name.len() < 8) {
                self.add_bounds(rest, Part::Collector);
            } else if let Some(rest) = line.strip_prefix("bounds ") {
                self.add_bounds(rest, Part::Code);
            } else if let Some(rest) = line.strip_prefix("Non-class space:") {
                self.metadata_committed_bytes = committed_space(rest);
            } else if let Some(rest) =
                line.strip_prefix("Class space:").filter(|rest| rest.contains(" reserved, "))
            {
                self.class_space_committed_bytes = committed_space(rest);
            } else if line.starts_with("CodeHeap '") || line.starts_with("CodeCache: size=") {
                let used = line.split_once(" used=").and_then(|(_, rest)| rest.split(' ').next());
                if let Some(used) = used.and_then(scaled_bytes) {
                    self.code_used_bytes = Some(self.code_used_bytes.unwrap_or(0).saturating_add(used));
                }
            }
        }
    }

    /// Adds the facts in the reply to `GC.heap_info`.
    pub fn add_heap_info(&mut self, text: &str) {
        let mut heap: Vec<AddressRange> = Vec::new();
        let mut is_epsilon = false;
        for line in text.lines() {
            let words = line.trim();
            let committed = after(words, "committed ").or_else(|| after(words, "capacity "));
            if words.starts_with("Metaspace") {
                self.metaspace_committed_bytes = committed;
            } else if words.starts_with("class space") {
                self.class_space_committed_bytes = committed;
            } else if is_generation(words) {
                heap.extend(bounds(words));
                // JDK 8 to 21: `total` is what is committed, but for ZGC, which has `capacity`; Shenandoah has a line of its own.
                let bytes = after(words, "committed ")
                    .or_else(|| after(words, "capacity "))
                    .or_else(|| after(words, "total "));
                if let Some(bytes) = bytes {
                    self.heap_committed_bytes =
                        Some(self.heap_committed_bytes.unwrap_or(0).saturating_add(bytes));
                }
            } else if words.starts_with("Epsilon Heap") {
                is_epsilon = true;
            } else if let Some(rest) = words.strip_prefix("space ").filter(|_| is_epsilon && heap.is_empty())
            {
                // ` space 524288K,   1% used [0x..., 0x..., 0x...)`
                heap.extend(bounds(rest));
                self.heap_committed_bytes = after(words, "space ");
            } else if words.contains(" committed, ") && words.contains(" max, ") {
                self.heap_committed_bytes = before(words, " committed, ");
            } else if words.starts_with("Reserved region:") || words.starts_with("- [0x") {
                heap.extend(bounds(words));
            }
        }
        // The generations of a heap lie next to each other.
        let start = heap.iter().map(|range| range.start).min();
        let end = heap.iter().map(|range| range.end).max();
        if let Some(range) = start.zip(end).and_then(|(start, end)| AddressRange::new(start, end)) {
            self.add(range, Part::Heap);
        }
    }

    /// Adds the ranges that `System.map` labels as memory of the collector:
    ///
    /// ```text
    /// 0x00007f1d3a81e000-0x00007f1d3a91e000  1048576 rw-p  143360  0 4K  com  CARDTBL  -
    /// ```
    pub fn add_system_map(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let range = words.next().and_then(|range| {
                let (start, end) = range.split_once('-')?;
                AddressRange::new(address(start.strip_prefix("0x")?)?, address(end)?)
            });
            let mut labels = words.flat_map(|word| word.split(','));
            let is_collectors = labels.any(|label| matches!(label, "GC" | "CARDTBL"));
            if let Some(range) = range.filter(|_| is_collectors && self.collector_ranges.len() < MAX_LABELLED)
            {
                self.collector_ranges.push(range);
            }
        }
    }

    /// Adds a range, unless it overlaps one that is there.
    pub fn add(&mut self, range: AddressRange, part: Part) {
        let overlaps = self.ranges.iter().any(|(other, _)| other.intersection(range).is_some());
        if !overlaps && self.ranges.len() < MAX_RANGES {
            self.ranges.push((range, part));
        }
    }

    fn add_bounds(&mut self, text: &str, part: Part) {
        if let Some(range) = bounds(text) {
            self.add(range, part);
        }
    }

    /// Returns the bytes of the addresses of a part; `None` if they are unknown.
    pub fn bytes(&self, part: Part) -> Option<u64> {
        let mut ranges = self.ranges.iter().filter(|(_, of)| *of == part).peekable();
        ranges.peek()?;
        Some(crate::mappings::sum(ranges.map(|(range, _)| range.bytes())))
    }
}

/// Returns whether a line of `GC.heap_info` is about the heap or a generation of it, not about a part of a generation.
fn is_generation(words: &str) -> bool {
    const NAMES: [&str; 10] = [
        "garbage-first heap",
        "def new generation",
        "par new generation",
        "tenured generation",
        "concurrent mark-sweep generation",
        "DefNew",
        "Tenured",
        "PSYoungGen",
        "ParOldGen",
        "ZHeap",
    ];
    NAMES.iter().any(|name| words.starts_with(name))
}

/// Returns the size after a word: `committed 389120K`.
fn after(text: &str, word: &str) -> Option<u64> {
    let rest = text.split_once(word)?.1;
    scaled_bytes(rest.split([' ', ',']).find(|word| !word.is_empty())?)
}

/// Returns the size before a word: `100M committed, `.
fn before(text: &str, word: &str) -> Option<u64> {
    scaled_bytes(text.split_once(word)?.0.rsplit([' ', ',']).next()?)
}

/// Returns the committed bytes in ` 64.00 MB reserved, 63.38 MB ( 99%) committed, 1 nodes.`
fn committed_space(text: &str) -> Option<u64> {
    let committed = text.split_once(" reserved, ")?.1.split_once(" committed")?.0;
    let mut words = committed.split_whitespace();
    let (number, unit) = (words.next()?, words.next()?);
    let unit: u64 = match unit {
        "bytes" => 1,
        "KB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        _ => return None,
    };
    // Two digits after the point.
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let hundredths: u64 = format!("{part:0<2}").get(..2)?.parse().ok()?;
    let whole: u64 = whole.parse().ok().filter(|whole| *whole < 1 << 20)?;
    Some(whole * unit + hundredths * unit / 100)
}

/// Returns the range from the lowest to the highest of the addresses in a text: `[0x1, 0x2, 0x3)`, `0x1-0x2`.
fn bounds(text: &str) -> Option<AddressRange> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let addresses: Vec<u64> = words.filter(|word| word.starts_with("0x")).filter_map(address).collect();
    AddressRange::new(*addresses.iter().min()?, *addresses.iter().max()?)
}

/// Parses ` 0x00000000e0000000, size: 512 MB, ...`.
fn heap_address(text: &str) -> Option<AddressRange> {
    let (start, rest) = text.trim().split_once(',')?;
    let size = rest.split_once("size:")?.1.split(',').next()?.replace(' ', "");
    let start = address(start)?;
    AddressRange::new(start, start.checked_add(scaled_bytes(&size)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "Heap address: 0x00000000e0000000, size: 512 MB, Compressed Oops mode: 32-bit\n\
        CDS archive(s) mapped at: [0x00007fd277000000-0x00007fd277bc7000-0x00007fd277bc7000), size 12349440, SharedBaseAddress: 0x00007fd277000000\n\
        Compressed class space mapped at: 0x00007fd278000000-0x00007fd2b8000000, reserved size: 1073741824\n\
        Narrow klass base: 0x00007fd277000000, Narrow klass shift: 0\n\
        Card table byte_map: [0x00007fd2f0228000,0x00007fd2f0328000] _byte_map_base: 0x00007fd2efb28000\n\
         Prev Bits: [0x00007fd2d4400000, 0x00007fd2d4c00000)\n Next Bits: [0x00007fd2d4c00000, 0x00007fd2d5400000)\n\
        CodeHeap 'non-nmethods': size=5692Kb used=1078Kb max_used=1091Kb free=4613Kb\n bounds [0x00007fd2dcec7000, 0x00007fd2dd137000, 0x00007fd2e4400000]\n";

    #[test]
    fn parts_have_their_addresses() {
        let mut layout = JvmLayout::default();
        layout.add_vm_info(INFO);
        assert_eq!(layout.bytes(Part::Heap), Some(512 << 20));
        assert_eq!(layout.bytes(Part::Archive), Some(0xbc_7000));
        assert_eq!(layout.bytes(Part::ClassSpace), Some(1 << 30));
        assert_eq!(layout.bytes(Part::Collector), Some((16 << 20) + (1 << 20)));
        assert_eq!(layout.code_used_bytes, Some(1078 << 10));
        for end in 0..INFO.len() {
            JvmLayout::default().add_vm_info(&INFO[..end]);
        }
    }

    #[test]
    fn metaspace_is_in_the_info_of_the_vm() {
        let mut layout = JvmLayout::default();
        layout.add_vm_info(
            "Virtual space:\n  Non-class space:       64.00 MB reserved,      63.50 MB ( 99%) committed,  1 nodes.\n\
                   Class space:        1.00 GB reserved,     128.00 KB ( <1%) committed,  1 nodes.\n       Class space:  x\n",
        );
        assert_eq!(layout.metadata_committed_bytes, Some((63 << 20) + (1 << 19)));
        assert_eq!(layout.class_space_committed_bytes, Some(128 << 10));
    }

    #[test]
    fn every_collector_says_how_much_is_committed() {
        for (text, committed, bytes) in [
            (
                " garbage-first heap   total 389120K, used 1K [0x00000000e0000000, 0x0000000100000000)\n Metaspace       used 144K, committed 384K, reserved 1114112K\n  class space    used 4K, committed 128K, reserved 1048576K\n",
                389_120 << 10,
                512 << 20,
            ),
            (
                "garbage-first heap   total reserved 524288K, committed 389120K, used 2K [0x00000000e0000000, 0x0000000100000000)\n",
                389_120 << 10,
                512 << 20,
            ),
            (
                " PSYoungGen      total 100K, used 1K [0x00000000f5580000, 0x0000000100000000, 0x0000000100000000)\n  eden space 97280K, 11% used [0x00000000f5580000,0x00000000f6043150,0x00000000fb480000)\n ParOldGen       total 200K, used 7K [0x00000000e0000000, 0x00000000efc00000, 0x00000000f5580000)\n",
                300 << 10,
                512 << 20,
            ),
            (
                " ZHeap           used 118M, capacity 378M, max capacity 512M\n Metaspace used 1K, committed 3K\n",
                378 << 20,
                0,
            ),
            (
                "Shenandoah Heap\n 512M max, 512M soft max, 100M committed, 7M used\n 1024 x 512 K regions\nReserved region:\n - [0x00000000e0000000, 0x0000000100000000) \n",
                100 << 20,
                512 << 20,
            ),
        ] {
            let mut layout = JvmLayout::default();
            layout.add_heap_info(text);
            assert_eq!(layout.heap_committed_bytes, Some(committed), "{text}");
            assert_eq!(layout.bytes(Part::Heap).unwrap_or(0), bytes, "{text}");
        }
    }

    #[test]
    fn only_memory_of_the_collector_is_taken_from_the_system_map() {
        let mut layout = JvmLayout::default();
        layout.add_system_map(
            "from to vsize\n0x00007f1d3a81e000-0x00007f1d3a91e000 1048576 rw-p 143360 0 4K com CARDTBL -\n\
             0x00007f1d3a91e000-0x00007f1d3aa1e000 1048576 rw-p 143360 0 4K com STACK-1-GC -\n0x1-0x9 8 rw-p 1 0 4K com META,GC -\n",
        );
        assert_eq!(layout.collector_ranges.len(), 2);
    }
}
