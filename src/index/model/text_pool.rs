//! A pool of distinct texts, identified by number.

use rustc_hash::FxHashMap;

use super::tables::TextRow;

/// Collector of distinct texts, which get consecutive numbers.
#[derive(Debug, Default)]
pub(crate) struct TextPool {
    numbers: FxHashMap<String, u32>,
    pub(crate) ends: Vec<TextRow>,
    pub(crate) bytes: Vec<u8>,
}

impl TextPool {
    /// Returns the number of a text, which is added if it is new.
    ///
    /// A pool holds up to 4 GiB; texts beyond that become the empty text 0. (Names of that size would need a
    /// dump that consists of little else.)
    pub(crate) fn add(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let Ok(end) = u32::try_from(self.bytes.len() + text.len()) else {
            return 0;
        };
        // At most one text per byte, plus the empty one.
        let number = u32::try_from(self.ends.len()).unwrap_or(0);
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(TextRow { end: end.into() });
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// Returns the text with this number; empty if it does not exist.
pub(crate) fn text<'a>(ends: &[TextRow], bytes: &'a [u8], number: u32) -> &'a str {
    std::str::from_utf8(raw_text(ends, bytes, number)).unwrap_or("")
}

/// Returns the bytes of the text with this number, for comparisons: cheaper than validating UTF-8.
pub(crate) fn raw_text<'a>(ends: &[TextRow], bytes: &'a [u8], number: u32) -> &'a [u8] {
    let number = number as usize;
    let start = number.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |row| row.end.get());
    let end = ends.get(number).map_or(start, |row| row.end.get());
    bytes.get(start as usize..end as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_by_number() {
        let mut pool = TextPool::default();
        let numbers: Vec<u32> = ["a", "", "bc", "a"].iter().map(|text| pool.add(text)).collect();
        assert_eq!(numbers, [0, 1, 2, 0]);
        for (number, expected) in [(0, "a"), (1, ""), (2, "bc"), (3, ""), (u32::MAX, "")] {
            assert_eq!(text(&pool.ends, &pool.bytes, number), expected);
        }
    }
}
