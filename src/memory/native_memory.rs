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
    /// Bytes of addresses that the JVM has reserved.
    pub reserved_bytes: u64,
    /// Bytes that the JVM may use.
    pub committed_bytes: u64,
    /// Part of the committed bytes from `malloc`. Arenas are part of the category `Arena Chunk`, too, and are not added here.
    pub malloc_bytes: u64,
    /// Most bytes from `malloc` so far (JDK 17.0.9 and later).
    pub malloc_peak_bytes: u64,
    /// Part of the reserved bytes from `mmap`.
    pub mmap_reserved_bytes: u64,
    /// Part of the committed bytes from `mmap`.
    pub mmap_committed_bytes: u64,
    /// Committed bytes of thread stacks.
    pub stack_committed_bytes: u64,
    /// Number of threads, or of classes.
    pub items: u64,
}

/// The reply to `VM.native_memory`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeMemory {
    /// Reserved bytes of all categories, if the text states them.
    pub reserved_bytes: Option<u64>,
    /// Committed bytes of all categories, if the text states them.
    pub committed_bytes: Option<u64>,
    /// Bytes from `malloc` of all categories.
    pub malloc_bytes: u64,
    /// Number of allocations, if the text states it.
    pub allocations: u64,
    /// Categories in the order of the text.
    pub categories: Vec<Category>,
    /// Reserved ranges of addresses with the names of their categories; only in a detail report.
    pub ranges: Vec<(AddressRange, String)>,
}

/// Maximum number of categories and ranges that are read: JDK 25 has 30 categories, and a range for each thread.
const MAX_RANGES: usize = 1 << 20;
const MAX_CATEGORIES: usize = 1000;

impl NativeMemory {
    /// Parses the reply; `None` if it is not one, for example because tracking is not enabled.
    ///
    /// ```text
    /// Total: reserved=2404205147, committed=755573339
    ///        malloc: 276648539 #8723
    /// -                    Thread (reserved=126184440, committed=11889656)
    ///                             (thread #120)
    ///                             (stack: reserved=125829120, committed=11534336)
    ///                             (malloc=213288 #725) (peak=222472 #729)
    ///                             (mmap: reserved=8192, committed=8192)
    /// [0x00007f0000000000 - 0x00007f0040000000] reserved 1048576KB for Class from
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let mut found = Self::default();
        let (mut malloc_total, mut has_total) = (None, false);
        let mut current: Option<Category> = None;
        for line in text.lines() {
            let words = line.trim();
            if let Some(rest) = words.strip_prefix("Total:") {
                // Differences (`summary.diff`) end a number with a sign: they are no account.
                has_total = true;
                found.reserved_bytes = value(rest, "reserved=");
                found.committed_bytes = value(rest, "committed=");
            } else if let Some(rest) = words.strip_prefix("malloc:").filter(|_| current.is_none()) {
                // `16921KB #79904, peak=43917KB #23883`
                let mut words = rest.split([' ', ',']).filter(|word| !word.is_empty());
                malloc_total = words.next().and_then(scaled_bytes);
                let count = words.next().and_then(|word| word.strip_prefix('#'));
                found.allocations = count.and_then(bytes).unwrap_or(0);
            } else if let Some((name, rest)) = category(words) {
                found.add(current.take());
                current = Some(Category {
                    name: name.to_owned(),
                    reserved_bytes: value(rest, "reserved=").unwrap_or(0),
                    committed_bytes: value(rest, "committed=").unwrap_or(0),
                    ..Category::default()
                });
            } else if words.starts_with('[') {
                if let Some(range) = reserved(words).filter(|_| found.ranges.len() < MAX_RANGES) {
                    found.ranges.push(range);
                }
            } else if words.starts_with("Virtual memory map") || words.starts_with("Details") {
                found.add(current.take());
            } else if let Some(category) = &mut current {
                category.read(words);
            }
        }
        found.add(current);
        let of_categories = found.categories.iter().map(|category| category.malloc_bytes);
        // JDK 17 and later state the sum; arenas are part of it once.
        found.malloc_bytes = malloc_total.unwrap_or_else(|| sum(of_categories));
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

    /// Returns the bytes from `malloc` in the category of memory that the JDK's libraries allocate: direct buffers and
    /// `Unsafe.allocateMemory`. It is `Other` since JDK 11, `Internal` before.
    pub fn library_malloc_bytes(&self) -> u64 {
        let category = self.category("Other").or_else(|| self.category("Internal"));
        category.map_or(0, |category| category.malloc_bytes)
    }
}

impl NativeMemory {
    /// Returns the bytes that `malloc` needs beyond what was allocated: headers of the tracking, as stated, and those of glibc.
    pub fn malloc_overhead_bytes(&self) -> u64 {
        // A chunk has a header of 8 bytes and a length that is a multiple of 16.
        const CHUNK: u64 = 16;
        let tracking = self.category("Native Memory Tracking");
        let headers = tracking.map_or(0, |row| row.committed_bytes.saturating_sub(row.malloc_bytes));
        headers.saturating_add(self.allocations.saturating_mul(CHUNK))
    }

    /// Returns the name of the category with most bytes from `malloc`, besides those that libraries allocate.
    pub fn largest_malloc(&self) -> Option<&str> {
        let library = if self.category("Other").is_some() { "Other" } else { "Internal" };
        let others = self.categories.iter().filter(|row| row.name != library && row.malloc_bytes > 0);
        others.max_by_key(|row| row.malloc_bytes).map(|row| row.name.as_str())
    }

    /// Returns the bytes of the JVM's arenas that were freed since they had most, such as those of the compilers. `malloc` keeps
    /// them, as they were allocated in pieces of at most 32 KiB; larger pieces are returned to the system when they are freed.
    pub fn freed_bytes(&self) -> u64 {
        self.category("Arena Chunk").map_or(0, |row| row.malloc_peak_bytes.saturating_sub(row.malloc_bytes))
    }
}

impl Category {
    /// Reads a line below the first one of a category.
    fn read(&mut self, words: &str) {
        if let Some(rest) = words.strip_prefix("(malloc=") {
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
            self.malloc_bytes = rest.get(..end).and_then(scaled_bytes).unwrap_or(0);
            self.malloc_peak_bytes = value(rest, "(peak=").unwrap_or(self.malloc_bytes);
        } else if words.starts_with("(mmap:") {
            self.mmap_reserved_bytes = value(words, "reserved=").unwrap_or(0);
            self.mmap_committed_bytes = value(words, "committed=").unwrap_or(0);
        } else if words.starts_with("(stack:") {
            self.stack_committed_bytes = value(words, "committed=").unwrap_or(0);
        } else if let Some(rest) =
            ["(thread #", "(threads #", "(classes #"].iter().find_map(|start| words.strip_prefix(start))
        {
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            self.items = rest.get(..end).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        }
    }
}

/// Splits the first line of a category into its name and the rest.
fn category(words: &str) -> Option<(&str, &str)> {
    let (name, rest) = words.strip_prefix('-')?.split_once('(')?;
    rest.starts_with("reserved=").then_some((name.trim(), rest))
}

/// Returns the number after a word.
fn value(text: &str, word: &str) -> Option<u64> {
    let rest = text.split_once(word)?.1;
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
    scaled_bytes(rest.get(..end)?)
}

/// Parses `[0x.. - 0x..] reserved 1048576KB for Class from`.
fn reserved(words: &str) -> Option<(AddressRange, String)> {
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
        assert_eq!((found.malloc_bytes, found.committed_bytes), (276_648_539, Some(755_573_339)));
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
        let found = NativeMemory::parse(huge).unwrap();
        assert_eq!((found.reserved_bytes, found.committed_bytes), (None, None));
        assert_eq!(found.categories[0].committed_bytes, 0);
    }
}
