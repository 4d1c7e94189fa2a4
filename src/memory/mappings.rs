//! The mappings of a process, from `/proc/PID/smaps` (Linux: Documentation/filesystems/proc.rst).

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::numbers::{address, kib};

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressRange {
    /// First address.
    pub start: u64,
    /// Address after the last one.
    pub end: u64,
}

impl AddressRange {
    /// Returns the range from `start` to `end`; `None` if it is empty.
    pub fn new(start: u64, end: u64) -> Option<Self> {
        (start < end).then_some(Self { start, end })
    }

    /// Returns the length in bytes.
    pub fn bytes(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Returns whether an address is in the range.
    pub fn contains(self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Returns the common part of two ranges.
    pub fn intersection(self, other: Self) -> Option<Self> {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }
}

/// Access that a mapping permits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// `true` if it can be read.
    pub is_readable: bool,
    /// `true` if it can be written to.
    pub is_writable: bool,
    /// `true` if it can be executed.
    pub is_executable: bool,
    /// `true` if it is shared with other processes.
    pub is_shared: bool,
}

impl Access {
    fn parse(letters: &str) -> Self {
        let has = |letter| letters.contains(letter);
        Self { is_readable: has('r'), is_writable: has('w'), is_executable: has('x'), is_shared: has('s') }
    }

    /// Returns whether no access is permitted: the addresses are only reserved.
    pub fn is_none(self) -> bool {
        !(self.is_readable || self.is_writable || self.is_executable)
    }
}

/// A mapping, and how much of it is in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// Addresses.
    pub range: AddressRange,
    /// Access.
    pub access: Access,
    /// Path of the file, or a name of the kernel in brackets; `None` for anonymous memory.
    pub path: Option<String>,
    /// Resident bytes.
    pub resident_bytes: u64,
    /// Resident bytes, each page divided by the number of its mappings (PSS).
    pub proportional_bytes: u64,
    /// Bytes in swap, each page divided by the number of its mappings.
    pub swapped_bytes: u64,
    /// Bytes of huge pages of hugetlbfs, which are not resident bytes.
    pub hugetlb_bytes: u64,
}

impl Mapping {
    /// Returns whether the mapping is anonymous memory that a program may use for anything.
    pub fn is_anonymous(&self) -> bool {
        // The kernel names the heap of `brk`; glibc and others name theirs by `prctl`.
        self.path
            .as_deref()
            .is_none_or(|path| path == "[heap]" || path.starts_with("[anon:") || path == "[anon]")
    }

    /// Returns the path of the file without the mark of a removed file; `None` if there is no file.
    pub fn file(&self) -> Option<&str> {
        let path = self.path.as_deref().filter(|path| path.starts_with('/'))?;
        Some(path.strip_suffix(" (deleted)").unwrap_or(path))
    }
}

/// The mappings of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mappings {
    /// Mappings in order of their addresses. None overlaps another.
    pub all: Vec<Mapping>,
    /// Number of lines that could not be parsed, and of mappings that overlap another one.
    pub malformed_lines: u64,
}

/// Maximum length of a path that is kept, in bytes: PATH_MAX of Linux.
const MAX_PATH: usize = 4096;

impl Mappings {
    /// Parses the contents of `smaps`.
    pub fn parse(text: &[u8]) -> Self {
        let mut found = Self::default();
        let mut current: Option<Mapping> = None;
        for line in text.split(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
            if line.is_empty() {
                continue;
            }
            let first = line.split_whitespace().next().unwrap_or_default();
            if let Some(name) = first.strip_suffix(':') {
                let value = line.get(first.len()..).unwrap_or_default();
                match (&mut current, name) {
                    (Some(mapping), "Rss") => found.read(&mut mapping.resident_bytes, value),
                    (Some(mapping), "Pss") => found.read(&mut mapping.proportional_bytes, value),
                    (Some(mapping), "SwapPss") => found.read(&mut mapping.swapped_bytes, value),
                    (Some(mapping), "Private_Hugetlb" | "Shared_Hugetlb") => {
                        let mut bytes = 0;
                        found.read(&mut bytes, value);
                        mapping.hugetlb_bytes = mapping.hugetlb_bytes.saturating_add(bytes);
                    }
                    (Some(_), _) => {}
                    (None, _) => found.malformed_lines += 1,
                }
                continue;
            }
            found.all.extend(current.take());
            match head(&line) {
                Some(mapping) => current = Some(mapping),
                None => found.malformed_lines += 1,
            }
        }
        found.all.extend(current);
        found.sort();
        found
    }

    /// Reads a number of bytes.
    fn read(&mut self, to: &mut u64, value: &str) {
        match kib(value.trim_start()) {
            Some(bytes) => *to = bytes,
            None => self.malformed_lines += 1,
        }
    }

    /// Returns whether the mapping at an index is of a program or a library.
    pub fn is_program(&self, at: usize) -> bool {
        let Some(mapping) = self.all.get(at) else { return false };
        let Some(file) = mapping.file() else { return false };
        let name = file.rsplit('/').next().unwrap_or_default();
        if mapping.access.is_executable || name.ends_with(".so") || name.contains(".so.") {
            return true;
        }
        // Mappings are sorted, so those of a program lie next to each other.
        let near = at.saturating_sub(4)..at.saturating_add(5).min(self.all.len());
        let mut near = self.all.get(near).into_iter().flatten();
        near.any(|other| other.access.is_executable && other.file() == Some(file))
    }

    /// Replaces the paths of files by numbers. What a ledger computes of the mappings stays the same.
    pub fn hide_paths(&mut self) {
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let hidden: Vec<Option<String>> = (0..self.all.len())
            .map(|at| {
                let file = self.all.get(at)?.file()?;
                // Of these, only the kind of file system or the use by the JVM is known.
                const KINDS: [&str; 5] = ["/memfd:java_heap", "/memfd:", "/SYSV", "/dev/shm/", "/dev/zero"];
                if let Some(kind) = KINDS.iter().find(|kind| file.starts_with(**kind)) {
                    return Some((*kind).to_owned());
                }
                let next = numbers.len() + 1;
                let number = *numbers.entry(file.to_owned()).or_insert(next);
                Some(match file {
                    _ if file.ends_with("/lib/modules") => "/lib/modules".to_owned(),
                    _ if file.ends_with(".jsa") => format!("/{number}.jsa"),
                    _ if self.is_program(at) => format!("/{number}.so"),
                    _ => format!("/{number}"),
                })
            })
            .collect();
        for (mapping, hidden) in self.all.iter_mut().zip(hidden) {
            if hidden.is_some() {
                mapping.path = hidden;
            } else if mapping.path.as_deref().is_some_and(|path| path.starts_with("[anon")) {
                // Named by the program.
                mapping.path = Some("[anon]".to_owned());
            }
        }
    }

    /// Sorts the mappings, and omits those that overlap another one or have more resident bytes than addresses: such a file
    /// is not of a kernel.
    pub fn sort(&mut self) {
        let before = self.all.len();
        self.all.sort_by_key(|mapping| (mapping.range.start, mapping.range.end));
        let mut end = 0;
        self.all.retain(|mapping| {
            let is_after = mapping.range.start >= end && mapping.is_possible();
            if is_after {
                end = mapping.range.end;
            }
            is_after
        });
        self.malformed_lines += (before - self.all.len()) as u64;
    }

    /// Returns the mapping directly before the one at an index, if there is no gap between them.
    pub fn before(&self, at: usize) -> Option<&Mapping> {
        let (mapping, previous) = (self.all.get(at)?, self.all.get(at.checked_sub(1)?)?);
        (previous.range.end == mapping.range.start).then_some(previous)
    }

    /// Returns the mapping directly after the one at an index, if there is no gap between them.
    pub fn after(&self, at: usize) -> Option<&Mapping> {
        let (mapping, next) = (self.all.get(at)?, self.all.get(at.checked_add(1)?)?);
        (mapping.range.end == next.range.start).then_some(next)
    }

    /// Returns the resident bytes of the process, each page divided by the number of its mappings (PSS).
    pub fn proportional_bytes(&self) -> u64 {
        sum(self.all.iter().map(|mapping| mapping.proportional_bytes))
    }

    /// Returns the bytes in swap.
    pub fn swapped_bytes(&self) -> u64 {
        sum(self.all.iter().map(|mapping| mapping.swapped_bytes))
    }

    /// Returns the bytes of huge pages of hugetlbfs.
    pub fn hugetlb_bytes(&self) -> u64 {
        sum(self.all.iter().map(|mapping| mapping.hugetlb_bytes))
    }
}

impl Mapping {
    fn is_possible(&self) -> bool {
        let bytes = self.range.bytes();
        [self.resident_bytes, self.proportional_bytes, self.swapped_bytes, self.hugetlb_bytes]
            .iter()
            .all(|part| *part <= bytes)
            && self.proportional_bytes <= self.resident_bytes
    }
}

/// Adds up numbers of bytes.
pub(crate) fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// Parses the first line of a mapping: `START-END rwxp OFFSET DEVICE INODE PATH`.
fn head(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        rest = rest.trim_start_matches(' ');
        let end = rest.find(' ').unwrap_or(rest.len());
        let (word, after) = rest.split_at_checked(end)?;
        rest = after;
        Some(word).filter(|word| !word.is_empty())
    };
    let (start, end) = word()?.split_once('-')?;
    let range = AddressRange::new(address(start)?, address(end)?)?;
    let access = Access::parse(word()?);
    let (_offset, _device, inode) = (word()?, word()?, word()?);
    inode.parse::<u64>().ok()?;
    let path = rest.trim_start_matches(' ');
    let end = path.char_indices().map(|(at, _)| at).find(|at| *at >= MAX_PATH).unwrap_or(path.len());
    let path = path.get(..end).filter(|path| !path.is_empty()).map(str::to_owned);
    Some(Mapping {
        range,
        access,
        path,
        resident_bytes: 0,
        proportional_bytes: 0,
        swapped_bytes: 0,
        hugetlb_bytes: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "7f0000000000-7f0000100000 rw-p 00000000 00:00 0 \nSize:               1024 kB\nRss:                  12 kB\n\
        Pss:                  12 kB\nSwapPss:               4 kB\nVmFlags: rd wr mr\n\
        7f0000100000-7f0000200000 r-xp 00001000 fe:00 12                         /a b/lib x.so (deleted)\nRss: 8 kB\nPss: 2 kB\n";

    #[test]
    fn mappings_have_their_bytes() {
        let found = Mappings::parse(TEXT.as_bytes());
        assert_eq!((found.all.len(), found.malformed_lines), (2, 0));
        assert_eq!((found.proportional_bytes(), found.swapped_bytes()), (14 << 10, 4 << 10));
        assert!(found.all[0].is_anonymous() && found.all[1].access.is_executable);
        assert_eq!(found.all[1].file(), Some("/a b/lib x.so"));
        assert_eq!(found.before(1), Some(&found.all[0]));
    }

    #[test]
    fn a_file_that_lies_is_read_as_far_as_it_is_possible() {
        let lies = "7f0000000000-7f0000001000 rw-p 0 00:00 0\nRss: 99999999999999999999 kB\nPss: 1 kB\n\
            7f0000000800-7f0000002000 rw-p 0 00:00 0\nRss: 1 kB\nPss: 1 kB\n\
            7f0000005000-7f0000006000 rw-p 0 00:00 0\nRss: 400 kB\nPss: 400 kB\n\
            9-3 rw-p 0 00:00 0\nx\n7f0000009000-7f000000a000 rw-p 0 00:00 0 [heap]\nRss: 4 kB\nPss: 4 kB";
        let found = Mappings::parse(lies.as_bytes());
        assert_eq!(found.proportional_bytes(), (1 << 10) + (4 << 10));
        assert!(found.malformed_lines >= 4, "{found:?}");
    }

    #[test]
    fn hidden_paths_change_no_kind() {
        let text = "1000-2000 r--p 0 00:00 1 /opt/secret/bin/java\n2000-3000 r-xp 0 00:00 1 /opt/secret/bin/java\n\
            3000-4000 rw-p 0 00:00 2 /secret/a\n5000-6000 rw-p 0 00:00 3 /secret/b\n7000-8000 rw-s 0 00:00 3 /memfd:secret (deleted)\n\
            9000-a000 rw-p 0 00:00 0 [anon:secret]\n";
        let shown = Mappings::parse(text.as_bytes());
        let mut hidden = shown.clone();
        hidden.hide_paths();
        let paths: Vec<&str> = hidden.all.iter().filter_map(|mapping| mapping.path.as_deref()).collect();
        assert_eq!(paths, ["/1.so", "/1.so", "/2", "/3", "/memfd:", "[anon]"]);
        for at in 0..shown.all.len() {
            assert_eq!(shown.is_program(at), hidden.is_program(at), "{at}");
        }
    }

    #[test]
    fn no_cut_of_a_file_is_an_error() {
        for end in 0..TEXT.len() {
            let found = Mappings::parse(&TEXT.as_bytes()[..end]);
            assert!(found.all.len() <= 2 && found.proportional_bytes() <= 14 << 10, "{end}");
        }
    }
}
