//! The JVM's own account of its memory: `jcmd PID VM.native_memory` (Native Memory Tracking, src/hotspot/share/nmt/
//! memReporter.cpp of the JDK), summary or detail, in any scale.

use serde::{Deserialize, Serialize};

use crate::mappings::AddressRange;
use crate::mappings::sum;
use crate::numbers::{address, bytes, scaled_bytes};

/// Memory of one category of Native Memory Tracking.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Category {
    /// Name, such as `Java Heap`.
    pub name: String,
    /// Bytes that the JVM may use.
    pub committed_bytes: u64,
    /// Part of the committed bytes from `malloc`, without arenas.
    pub malloc_bytes: u64,
    /// Most bytes from `malloc` so far (JDK 17.0.9 and later).
    pub malloc_peak_bytes: u64,
    /// Number of allocations by `malloc`.
    pub allocations: u64,
    /// Part of the committed bytes in arenas. Their memory is from `malloc`, too.
    pub arena_bytes: u64,
    /// Part of the reserved bytes from `mmap`.
    pub mmap_reserved_bytes: u64,
    /// Part of the committed bytes from `mmap`.
    pub mmap_committed_bytes: u64,
    /// Committed bytes of thread stacks.
    pub stack_committed_bytes: u64,
    /// Number of threads, or of classes.
    pub items: u64,
    /// Of `Class`: committed bytes of the metaspace without the class space.
    pub metadata_bytes: Option<u64>,
    /// Of `Class`: committed bytes of the class space.
    pub class_space_bytes: Option<u64>,
}

/// The reply to `VM.native_memory`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeMemory {
    /// Bytes from `malloc` of all categories, with arenas and the headers of the tracking.
    pub malloc_bytes: u64,
    /// Categories in the order of the text.
    pub categories: Vec<Category>,
    /// Reserved ranges of addresses with the names of their categories; only in a detail report.
    pub ranges: Vec<(AddressRange, String)>,
}

/// Maximum number of ranges that are read: there is one for each thread.
const MAX_RANGES: usize = 1 << 20;
/// Maximum number of categories that are read. JDK 25 has 30.
const MAX_CATEGORIES: usize = 1000;

/// Category of memory that is only counted by the tracking itself.
const TRACKING: &str = "Native Memory Tracking";
/// Category of the chunks of arenas that no arena uses.
const ARENA_CHUNKS: &str = "Arena Chunk";
/// Lines of `Class` that head the committed bytes of a part.
const CLASS_PARTS: [&str; 2] = ["(  Metadata:", "(  Class space:"];

impl NativeMemory {
    /// Parses the reply; `None` if it is not one, for example because tracking is not enabled.
    ///
    /// ```text
    /// Total: reserved=2404205147, committed=755573339
    ///        malloc: 276648539 #8723
    /// -                     Class (reserved=1056958KB, committed=5694KB)
    ///                             (classes #839)
    ///                             (malloc=190KB #1382) (peak=200KB #1400)
    ///                             (arena=19KB #34)
    ///                             (mmap: reserved=1056768KB, committed=5504KB)
    ///                             (  Class space:)
    ///                             (    reserved=1048576KB, committed=640KB)
    /// [0x00007f0000000000 - 0x00007f0040000000] reserved 1048576KB for Class from
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let mut found = Self::default();
        let (mut malloc_total, mut has_total) = (None, false);
        let mut current: Option<Category> = None;
        let mut part = None;
        for line in text.lines() {
            let words = line.trim();
            if words.starts_with("Total:") {
                // Differences (`summary.diff`) end a number with a sign, and are no account: all of them are 0.
                has_total = true;
            } else if let Some(rest) = words.strip_prefix("malloc:").filter(|_| current.is_none()) {
                // `16921KB #79904, peak=43917KB #23883`; since JDK 17.
                malloc_total = rest.split_whitespace().next().and_then(scaled_bytes);
            } else if let Some((name, rest)) = category(words) {
                found.add(current.take());
                let committed_bytes = value(rest, "committed=").unwrap_or(0);
                current = Some(Category { name: name.to_owned(), committed_bytes, ..Category::default() });
                part = None;
            } else if words.starts_with('[') {
                if let Some(range) = reserved_range(words).filter(|_| found.ranges.len() < MAX_RANGES) {
                    found.ranges.push(range);
                }
            } else if words.starts_with("Virtual memory map") || words.starts_with("Details") {
                found.add(current.take());
            } else if let Some(category) = &mut current {
                category.read(words, &mut part);
            }
        }
        found.add(current);
        found.malloc_bytes = malloc_total.unwrap_or_else(|| {
            let tracking = found.category(TRACKING);
            let headers = tracking.map_or(0, |row| row.committed_bytes.saturating_sub(row.malloc_bytes));
            let of_rows = found.categories.iter().map(|row| row.malloc_bytes.saturating_add(row.arena_bytes));
            sum(of_rows).saturating_add(headers)
        });
        (has_total && !found.categories.is_empty()).then_some(found)
    }

    fn add(&mut self, category: Option<Category>) {
        if self.categories.len() < MAX_CATEGORIES {
            self.categories.extend(category);
        }
    }

    /// Returns a category by its name.
    pub fn category(&self, name: &str) -> Option<&Category> {
        self.categories.iter().find(|category| category.name == name)
    }

    /// Returns the committed bytes from `mmap` of a category.
    pub fn mmap_committed_bytes(&self, name: &str) -> Option<u64> {
        self.category(name).map(|category| category.mmap_committed_bytes)
    }

    /// Returns the committed bytes of the metaspace without the class space: a category of its own since JDK 16.
    pub fn metadata_bytes(&self) -> Option<u64> {
        self.mmap_committed_bytes("Metaspace").or_else(|| self.category("Class")?.metadata_bytes)
    }

    /// Returns the committed bytes of the class space.
    pub fn class_space_bytes(&self) -> Option<u64> {
        let class = self.category("Class")?;
        Some(class.class_space_bytes.unwrap_or(class.mmap_committed_bytes))
    }

    /// Returns the category of memory that the JDK's libraries allocate: direct buffers and `Unsafe.allocateMemory`. It is
    /// `Other` since JDK 11, `Internal` before.
    fn library(&self) -> Option<&Category> {
        self.category("Other").or_else(|| self.category("Internal"))
    }

    /// Returns the bytes from `malloc` that the JDK's libraries allocate.
    pub fn library_malloc_bytes(&self) -> u64 {
        self.library().map_or(0, |category| category.malloc_bytes)
    }

    /// Returns the bytes that glibc needs beyond what was allocated.
    pub fn malloc_overhead_bytes(&self) -> u64 {
        // A chunk has a header of 8 bytes and a length that is a multiple of 16.
        const CHUNK: u64 = 16;
        sum(self.categories.iter().map(|row| row.allocations)).saturating_mul(CHUNK)
    }

    /// Returns the name of the category with most bytes from `malloc`, besides those that libraries allocate.
    pub fn largest_malloc(&self) -> Option<&str> {
        let library = self.library().map(|row| row.name.as_str());
        let others = self.categories.iter().filter(|row| Some(row.name.as_str()) != library);
        let bytes = |row: &&Category| row.malloc_bytes.saturating_add(row.arena_bytes);
        others.filter(|row| bytes(row) > 0).max_by_key(bytes).map(|row| row.name.as_str())
    }

    /// Returns the bytes of the JVM's arenas, such as those of the compilers, that were freed since they had most. `malloc` keeps
    /// them, as they were allocated in pieces of at most 32 KiB; large pieces are returned to the system when they are freed.
    pub fn freed_bytes(&self) -> u64 {
        // The peak counts all chunks, the current bytes only those that no arena uses.
        let used = sum(self.categories.iter().map(|row| row.arena_bytes));
        self.category(ARENA_CHUNKS)
            .map_or(0, |row| row.malloc_peak_bytes.saturating_sub(row.malloc_bytes).saturating_sub(used))
    }
}

impl Category {
    /// Reads a line below the first one of a category. `part` is the part of `Class` that the line before headed.
    fn read(&mut self, words: &str, part: &mut Option<&'static str>) {
        if let Some(rest) = words.strip_prefix("(malloc=") {
            self.malloc_bytes = number(rest).unwrap_or(0);
            self.malloc_peak_bytes = value(rest, "(peak=").unwrap_or(self.malloc_bytes);
            let now = rest.split(')').next().unwrap_or_default();
            self.allocations = now.split_once('#').and_then(|(_, rest)| count(rest)).unwrap_or(0);
        } else if let Some(rest) = words.strip_prefix("(arena=") {
            self.arena_bytes = number(rest).unwrap_or(0);
        } else if words.starts_with("(mmap:") {
            self.mmap_reserved_bytes = value(words, "reserved=").unwrap_or(0);
            self.mmap_committed_bytes = value(words, "committed=").unwrap_or(0);
        } else if words.starts_with("(stack:") {
            self.stack_committed_bytes = value(words, "committed=").unwrap_or(0);
        } else if let Some(rest) =
            ["(thread #", "(threads #", "(classes #"].iter().find_map(|start| words.strip_prefix(start))
        {
            self.items = count(rest).unwrap_or(0);
        } else if let Some(head) = CLASS_PARTS.iter().find(|head| words.starts_with(**head)) {
            *part = Some(*head);
        } else if words.starts_with("(    reserved=")
            && let Some(head) = part.take()
        {
            let committed = value(words, "committed=");
            match head == CLASS_PARTS[0] {
                true => self.metadata_bytes = committed,
                false => self.class_space_bytes = committed,
            }
        }
    }
}

/// Returns the number of bytes at the start of a text.
fn number(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(text.len());
    scaled_bytes(text.get(..end)?)
}

/// Returns the count at the start of a text.
fn count(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    bytes(text.get(..end)?)
}

/// Splits the first line of a category into its name and the rest.
fn category(words: &str) -> Option<(&str, &str)> {
    let (name, rest) = words.strip_prefix('-')?.split_once('(')?;
    rest.starts_with("reserved=").then_some((name.trim(), rest))
}

/// Returns the number of bytes after a word.
fn value(text: &str, word: &str) -> Option<u64> {
    number(text.split_once(word)?.1)
}

/// Parses `[0x.. - 0x..] reserved 1048576KB for Class from`.
fn reserved_range(words: &str) -> Option<(AddressRange, String)> {
    let (range, rest) = words.strip_prefix('[')?.split_once(']')?;
    let (start, end) = range.split_once('-')?;
    let range = AddressRange::new(address(start.trim())?, address(end.trim())?)?;
    let (what, name) = rest.split_once(" for ")?;
    let name = name.strip_suffix(" from").unwrap_or(name).trim();
    what.trim_start().starts_with("reserved").then(|| (range, name.to_owned()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TEXT: &str = "2639:\n\nNative Memory Tracking:\n\n(Omitting categories weighting less than 1KB)\n\n\
        Total: reserved=2404205147, committed=755573339\n       malloc: 276648539 #8723\n       mmap:   reserved=2127556608, committed=478924800\n\n\
        -                 Java Heap (reserved=536870912, committed=398458880)\n                            (mmap: reserved=536870912, committed=398458880) \n \n\
        -                    Thread (reserved=126184440, committed=11889656)\n                            (threads #120)\n                            (stack: reserved=125829120, committed=11534336)\n\
                                     (malloc=213288 tag=Thread #725) (peak=222472 #729) \n\
        -                     Other (reserved=256MB, committed=256MB)\n                            (malloc=262144KB #64) (at peak) \n\
        Virtual memory map:\n\n[0x00000000e0000000 - 0x0000000100000000] reserved 524288KB for Java Heap from\n    [0x00007f] x\n\
        \t[0x00000000e0000000 - 0x00000000f7a00000] committed 387072KB from\n";

    #[test]
    fn categories_have_their_parts() {
        let found = NativeMemory::parse(TEXT).unwrap();
        assert_eq!(found.malloc_bytes, 276_648_539);
        assert_eq!(found.library_malloc_bytes(), 256 << 20);
        let threads = found.category("Thread").unwrap();
        assert_eq!(
            (threads.items, threads.stack_committed_bytes, threads.malloc_bytes),
            (120, 11_534_336, 213_288)
        );
        assert_eq!(found.mmap_committed_bytes("Java Heap"), Some(398_458_880));
        let [(range, name)] = &found.ranges[..] else { panic!("{:?}", found.ranges) };
        assert_eq!((range.bytes(), name.as_str()), (512 << 20, "Java Heap"));
    }

    #[test]
    fn jdk_11_has_parts_of_class_and_no_total() {
        let text = "Total: reserved=7770369KB, committed=68089KB\n-    Class (reserved=1056958KB, committed=5694KB)\n  (classes #839)\n\
            (malloc=190KB #1382) \n(mmap: reserved=1056768KB, committed=5504KB) \n(  Metadata:   )\n(    reserved=8192KB, committed=4864KB)\n\
            (    used=4664KB)\n(  Class space:)\n(    reserved=1048576KB, committed=640KB)\n-  Compiler (reserved=2KB, committed=2KB)\n\
            (malloc=1KB #1)\n(arena=133KB #5)\n- Native Memory Tracking (reserved=9KB, committed=9KB)\n(malloc=4KB #2)\n(tracking overhead=5KB)\n\
            - Arena Chunk (reserved=10KB, committed=10KB)\n(malloc=10KB) (peak=200KB #2)\n";
        let found = NativeMemory::parse(text).unwrap();
        assert_eq!((found.metadata_bytes(), found.class_space_bytes()), (Some(4864 << 10), Some(640 << 10)));
        assert_eq!(found.malloc_bytes, (190 + 1 + 133 + 4 + 5 + 10) << 10);
        assert_eq!(found.malloc_overhead_bytes(), 1385 * 16);
        assert_eq!(found.freed_bytes(), (200 - 10 - 133) << 10);
    }

    #[test]
    fn what_is_no_account_is_refused() {
        for text in
            ["", "Native memory tracking is not enabled", "Total: reserved=1, committed=1", "\0\u{ff}"]
        {
            assert_eq!(NativeMemory::parse(text), None, "{text}");
        }
    }

    #[test]
    fn no_cut_of_a_reply_is_an_error() {
        for end in 0..TEXT.len() {
            let _ = NativeMemory::parse(&TEXT[..end]);
        }
        let huge = "Total: reserved=18446744073709551615KB, committed=-1\n- X (reserved=1, committed=99999999999999999999)\n";
        assert_eq!(NativeMemory::parse(huge).unwrap().categories[0].committed_bytes, 0);
    }
}
