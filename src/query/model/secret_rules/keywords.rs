//! Search for many keywords at once: the first three bytes at each position are looked up in a bitmap, which stays in the
//! nearest cache. Keywords are compared only where their bit is set.

use rustc_hash::FxHashMap;

/// Number of bits of the bitmap: its size is 8 KiB.
const BITS: u32 = 16;
/// Number of bytes that are looked up.
const GRAM: usize = 3;
/// Bit by which letters differ in case, in each byte; other bytes that become equal by it are distinguished later.
const FOLD: u32 = 0x0020_2020;
/// Bits of the lower three bytes.
const THREE: u32 = 0x00ff_ffff;
/// Number of positions in eight bytes from which three bytes can be read.
const STEP: usize = 6;

/// Keywords of two bytes or more, which match in either case.
#[derive(Debug)]
pub(super) struct KeywordSet {
    keywords: Vec<Vec<u8>>,
    bitmap: Box<[u64]>,
    /// Indices of keywords, by their first three bytes.
    of_gram: FxHashMap<u32, Vec<u32>>,
}

/// Returns three bytes as a number, without their case.
#[inline(always)]
fn gram(bytes: [u8; GRAM]) -> u32 {
    let [first, second, third] = bytes;
    u32::from_le_bytes([first, second, third, 0]) | FOLD
}

/// Returns the location of the bit for three bytes: index of a word of the bitmap, and the bit in it.
#[inline(always)]
fn bit(gram: u32) -> (usize, u64) {
    let hash = gram.wrapping_mul(0x9e37_79b1) >> (u32::BITS - BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

impl KeywordSet {
    pub(super) fn new(keywords: Vec<Vec<u8>>) -> Self {
        let mut set = Self {
            bitmap: vec![0; (1 << BITS) / 64].into_boxed_slice(),
            of_gram: FxHashMap::default(),
            keywords: Vec::new(),
        };
        for (number, keyword) in (0u32..).zip(&keywords) {
            match keyword.as_slice() {
                [first, second, third, ..] => set.add(number, [*first, *second, *third]),
                // Any byte may follow.
                [first, second] => (0..=u8::MAX).for_each(|third| set.add(number, [*first, *second, third])),
                _ => {}
            }
        }
        Self { keywords, ..set }
    }

    fn add(&mut self, number: u32, bytes: [u8; GRAM]) {
        let gram = gram(bytes);
        let (word, mask) = bit(gram);
        if let Some(word) = self.bitmap.get_mut(word) {
            *word |= mask;
        }
        let of_gram = self.of_gram.entry(gram).or_default();
        if of_gram.last() != Some(&number) {
            of_gram.push(number);
        }
    }

    /// Calls `found` with the number and the start of each keyword, by start, including overlapping ones. A keyword of two
    /// bytes at the very end is not found.
    #[inline]
    pub(super) fn for_each_match(&self, text: &[u8], mut found: impl FnMut(usize, usize)) {
        let mut candidate = |start: usize, gram: u32| {
            let (word, mask) = bit(gram);
            if self.bitmap.get(word).is_some_and(|word| word & mask != 0) {
                self.compare(text.get(start..).unwrap_or_default(), gram, |number| found(number, start));
            }
        };
        let mut start = 0;
        // Several positions by one load.
        while let Some(eight) = text.get(start..).and_then(<[u8]>::first_chunk) {
            let eight = u64::from_le_bytes(*eight);
            for step in 0..STEP {
                #[expect(clippy::cast_possible_truncation, reason = "the upper bytes are of later positions")]
                let three = (eight >> (u8::BITS as usize * step)) as u32 & THREE;
                candidate(start + step, three | FOLD);
            }
            start += STEP;
        }
        for (at, bytes) in text.get(start..).unwrap_or_default().windows(GRAM).enumerate() {
            candidate(start + at, bytes.try_into().map_or(0, gram));
        }
    }

    fn compare(&self, text: &[u8], gram: u32, mut found: impl FnMut(usize)) {
        for number in self.of_gram.get(&gram).into_iter().flatten() {
            let number = *number as usize;
            let Some(keyword) = self.keywords.get(number) else { continue };
            if text.get(..keyword.len()).is_some_and(|text| text.eq_ignore_ascii_case(keyword)) {
                found(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_found_in_either_case_and_overlapping() {
        let keywords = ["pass", "password", "sw", "wor", "a\0b", "_x_"];
        let set = KeywordSet::new(keywords.iter().map(|keyword| keyword.as_bytes().to_vec()).collect());
        let found = |text: &str| {
            let mut all = Vec::new();
            set.for_each_match(text.as_bytes(), |number, start| all.push((keywords[number], start)));
            all
        };
        assert_eq!(found("my PassWord"), [("pass", 3), ("password", 3), ("sw", 6), ("wor", 7)]);
        assert_eq!(found("A\0b _X_ sw? sw"), [("a\0b", 0), ("_x_", 4), ("sw", 8)]);
        // Bytes that differ in the bit of the case, but are not letters.
        assert_eq!(found("\u{7f}x\u{7f} a b p"), []);
        assert_eq!(found(""), []);
    }

    #[test]
    fn the_same_as_a_search_for_each() {
        let keywords: Vec<Vec<u8>> =
            ["ab", "abc", "bca", "cab", "b\0c", "c-a"].map(|text| text.as_bytes().to_vec()).into();
        let set = KeywordSet::new(keywords.clone());
        let mut state = 1u32;
        let text: Vec<u8> = (0..5000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *b"aAbBcC\0-".get((state >> 24) as usize % 8).unwrap_or(&0)
            })
            .collect();
        let mut found = Vec::new();
        set.for_each_match(&text, |number, start| found.push((start, number)));
        let mut expected = Vec::new();
        for start in 0..text.len() - 2 {
            for (number, keyword) in keywords.iter().enumerate() {
                let here = text.get(start..start + keyword.len());
                if here.is_some_and(|here| here.eq_ignore_ascii_case(keyword)) {
                    expected.push((start, number));
                }
            }
        }
        found.sort_unstable();
        assert_eq!(found, expected);
    }
}
