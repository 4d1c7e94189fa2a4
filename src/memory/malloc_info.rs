//! The account of glibc's `malloc`, from the reply to `System.native_heap_info` (JDK 21 and later; `malloc_info(3)`).

use serde::{Deserialize, Serialize};

use crate::numbers::bytes;

/// Memory of glibc's `malloc`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MallocInfo {
    /// Bytes of free chunks, resident or not.
    pub free_bytes: u64,
    /// Bytes of chunks in use.
    pub used_bytes: u64,
}

impl MallocInfo {
    /// Parses the totals at the end of the reply; `None` if there are none.
    ///
    /// ```text
    /// <total type="fast" count="401" size="38272"/>
    /// <total type="rest" count="2093" size="31643645"/>
    /// <total type="mmap" count="7" size="2060288"/>
    /// <system type="current" size="48816128"/>
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        // Those of single arenas come first.
        let totals = text.rsplit_once("</heap>").map_or(text, |(_, totals)| totals);
        let size = |start: &str| {
            let line = totals.lines().map(str::trim).find(|line| line.starts_with(start))?;
            let rest = line.split_once("size=\"")?.1;
            bytes(rest.split('"').next()?)
        };
        let (fast, rest) = (size("<total type=\"fast\"")?, size("<total type=\"rest\"")?);
        let (mapped, arenas) = (size("<total type=\"mmap\"")?, size("<system type=\"current\"")?);
        let free_bytes = fast.saturating_add(rest);
        Some(Self { free_bytes, used_bytes: arenas.saturating_sub(free_bytes).saturating_add(mapped) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_of_all_arenas_count() {
        let text = "<malloc version=\"1\">\n<heap nr=\"0\">\n<total type=\"fast\" count=\"2\" size=\"64\"/>\n</heap>\n\
            <total type=\"fast\" count=\"4\" size=\"100\"/>\n<total type=\"rest\" count=\"2\" size=\"900\"/>\n\
            <total type=\"mmap\" count=\"7\" size=\"5000\"/>\n<system type=\"current\" size=\"4000\"/>\n</malloc>";
        assert_eq!(MallocInfo::parse(text), Some(MallocInfo { free_bytes: 1000, used_bytes: 8000 }));
        for end in 0..text.len() - 20 {
            assert_eq!(MallocInfo::parse(&text[..end]).filter(|info| info.used_bytes > 8000), None);
        }
        assert_eq!(MallocInfo::parse("Unknown diagnostic command"), None);
    }
}
