//! Windows of the characters of texts, in all encodings in which bytes can contain text.
//!
//! Characters are UTF-16 units. A text yields the same windows in Latin-1, UTF-8 and UTF-16 in both byte orders.

use std::ops::Range;
use std::sync::LazyLock;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Minimum number of characters of a text that counts as unredacted: shorter ones can be equal by chance.
pub(super) const WINDOW: usize = 16;
/// Maximum size of a window in bytes: three for a character in UTF-8.
pub(super) const WINDOW_BYTES: usize = 3 * WINDOW;
/// Number of characters of a gram: a window contains [`GRAMS`] of them, and the smallest hash is its fingerprint.
const GRAM: usize = 9;
/// Number of grams of a window.
const GRAMS: usize = WINDOW - GRAM + 1;
/// Minimum number of characters of a window that differ from the preceding one: windows with fewer, such as lines of one
/// character, are common.
const CHANGES: usize = 4;

/// Encodings in which texts are searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encodings {
    /// UTF-16, high byte first, from the first byte on.
    Char,
    /// One byte per character, or UTF-8.
    Narrow,
    /// All encodings: `Char` and `Narrow`, and UTF-16 in both orders from any byte on.
    All,
}

/// Bit set of the UTF-16 units that are characters of texts.
static TEXT: LazyLock<Box<[u64]>> = LazyLock::new(|| {
    let mut bits = vec![0_u64; 1 << 10];
    for unit in 0..=u16::MAX {
        let is_text = match unit {
            0x20..0x7f | 0x09 | 0x0a | 0x0d | 0xa0..=0xff => true,
            // Surrogates, punctuation and symbols.
            0xd800..0xe000 | 0x2010..0x2028 | 0x2030..0x205f | 0x20a0..0x2c00 | 0x3000..0x3040 => true,
            0xff00..0xfff0 | 0xfe00..0xfe10 => true,
            _ => {
                let letter = char::from_u32(unit.into()).filter(|_| unit > 0xff);
                // Combining marks, between the letters of scripts that use them.
                letter.is_some_and(|letter| {
                    letter.is_alphanumeric() || matches!(unit, 0x300..0x370 | 0x590..0xe80)
                })
            }
        };
        if let Some(word) = bits.get_mut(usize::from(unit) / 64) {
            *word |= u64::from(is_text) << (unit % 64);
        }
    }
    bits.into()
});

fn is_text(table: &[u64], unit: u16) -> bool {
    table.get(usize::from(unit) / 64).is_some_and(|word| word >> (unit % 64) & 1 == 1)
}

fn is_ascii_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r')
}

/// Calls `visit` with each run of at least `least` characters in these encodings.
pub(super) fn runs(bytes: &[u8], encodings: Encodings, least: usize, visit: &mut dyn FnMut(&[u16])) {
    if bytes.len() < least {
        return;
    }
    let table: &[u64] = &TEXT;
    let mut run = Run { table, least, units: Vec::new(), visit };
    let in_order = |bytes: &[u8], order: fn([u8; 2]) -> u16, run: &mut Run<'_>| {
        let units: &[[u8; 2]] = bytes.as_chunks().0;
        run.visit_runs(units, |unit| order(*unit));
    };
    if encodings == Encodings::Char {
        return in_order(bytes, u16::from_be_bytes, &mut run);
    }
    run.visit_runs(bytes, |byte| u16::from(*byte));
    utf8(table, bytes, &mut run);
    if encodings == Encodings::All {
        for range in wide_ranges(bytes) {
            for start in [0, 1] {
                let bytes = bytes.get(range.start + start..range.end).unwrap_or_default();
                in_order(bytes, u16::from_le_bytes, &mut run);
                in_order(bytes, u16::from_be_bytes, &mut run);
            }
        }
    }
}

/// A run of characters that is being collected.
struct Run<'v> {
    table: &'v [u64],
    least: usize,
    units: Vec<u16>,
    visit: &'v mut dyn FnMut(&[u16]),
}

impl Run<'_> {
    /// Passes on the runs in `from`. Outside of runs, only some elements are read: the search starts at the end of the shortest
    /// possible run.
    #[inline(always)]
    fn visit_runs<T>(&mut self, from: &[T], unit: impl Fn(&T) -> u16) {
        let (table, mut start) = (self.table, 0);
        let is_text = |value: &T| is_text(table, unit(value));
        while let Some(shortest) = from.get(start..start + self.least) {
            if let Some(at) = shortest.iter().rposition(|value| !is_text(value)) {
                start += at + 1;
                continue;
            }
            let rest = from.get(start..).unwrap_or_default();
            let length = rest.iter().position(|value| !is_text(value)).unwrap_or(rest.len());
            self.units.extend(rest.iter().take(length).map(&unit));
            self.end();
            start += length + 1;
        }
    }

    fn end(&mut self) {
        if self.units.len() >= self.least {
            (self.visit)(&self.units);
        }
        self.units.clear();
    }
}

/// Passes on runs of UTF-8 or modified UTF-8 with at least one multi-byte character: other runs were passed on as single bytes.
fn utf8(table: &[u64], bytes: &[u8], run: &mut Run<'_>) {
    if !bytes.iter().any(|byte| *byte >= 0xc2) {
        return;
    }
    let (mut rest, mut is_longer) = (bytes, false);
    while let Some((byte, after)) = rest.split_first() {
        if is_ascii_text(*byte) {
            run.units.push(u16::from(*byte));
            rest = after;
            continue;
        }
        let character = if *byte < 0xc2 { None } else { decode_character(rest) };
        let is_part = |units: &[Option<u16>; 2]| units.iter().flatten().all(|unit| is_text(table, *unit));
        if let Some((units, length)) = character.filter(|(units, _)| is_part(units)) {
            run.units.extend(units.into_iter().flatten());
            is_longer = true;
            rest = rest.get(length..).unwrap_or_default();
        } else {
            finish(run, is_longer);
            is_longer = false;
            rest = after;
        }
    }
    finish(run, is_longer);
}

fn finish(run: &mut Run<'_>, is_longer: bool) {
    if is_longer {
        run.end();
    }
    run.units.clear();
}

/// Returns the UTF-16 units of a multi-byte character, and its length in bytes.
fn decode_character(bytes: &[u8]) -> Option<([Option<u16>; 2], usize)> {
    let more =
        |at: usize| bytes.get(at).filter(|byte| **byte & 0xc0 == 0x80).map(|byte| u32::from(byte & 0x3f));
    let first = u32::from(*bytes.first()?);
    let unit = |unit: u32| u16::try_from(unit).ok();
    match first {
        0xc2..0xe0 => Some(([unit((first & 0x1f) << 6 | more(1)?), None], 2)),
        0xe0..0xf0 => Some(([unit((first & 0xf) << 12 | more(1)? << 6 | more(2)?), None], 3)),
        0xf0..0xf5 => {
            let code = (first & 7) << 18 | more(1)? << 12 | more(2)? << 6 | more(3)?;
            let code = code.checked_sub(0x1_0000)?;
            Some(([unit(0xd800 + (code >> 10)), unit(0xdc00 + (code & 0x3ff))], 4))
        }
        _ => None,
    }
}

/// Returns the parts of bytes in which UTF-16 is searched for: everything except long runs of ASCII, whose windows
/// are searched as single bytes.
fn wide_ranges(bytes: &[u8]) -> Vec<Range<usize>> {
    const WIDE: usize = 2 * WINDOW;
    let mut ranges = Vec::new();
    let (mut start, mut run) = (0, 0);
    let mut end_of_run = |run: usize, end: usize, ranges: &mut Vec<Range<usize>>| {
        // The first and the last window contain one other byte.
        if end - run >= 2 * WIDE {
            let before = start..run + WIDE - 1;
            if run > 0 {
                ranges.push(before);
            }
            start = end - (WIDE - 1);
        }
    };
    for (at, byte) in bytes.iter().enumerate() {
        if !is_ascii_text(*byte) {
            end_of_run(run, at, &mut ranges);
            run = at + 1;
        }
    }
    end_of_run(run, bytes.len(), &mut ranges);
    let is_ascii_to_the_end = bytes.len() - run >= 2 * WIDE;
    if !is_ascii_to_the_end && bytes.len() >= start + WIDE {
        ranges.push(start..bytes.len());
    }
    ranges
}

/// A window of characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window<'u>(pub(super) &'u [u16; WINDOW]);

impl<'u> Window<'u> {
    /// Returns the window at a position of a run; `None` if it has too few changes of characters, or at least half of it is
    /// ASCII read as UTF-16.
    pub(super) fn at(run: &'u [u16], at: usize) -> Option<Self> {
        let units: &[u16; WINDOW] = run.get(at..at + WINDOW)?.try_into().ok()?;
        let is_ascii = |unit: &u16| unit.to_le_bytes().iter().all(|byte| is_ascii_text(*byte));
        if units.windows(WINDOW / 2).any(|half| half.iter().all(is_ascii)) {
            return None;
        }
        let changes = units.windows(2).filter(|pair| pair.first() != pair.last()).count();
        (changes >= CHANGES).then_some(Self(units))
    }

    /// Returns a hash that identifies the window.
    pub(super) fn identity(self) -> u128 {
        xxh3_128(&bytes_of(self.0))
    }

    /// Returns the hashes of the first and of the last `N` characters.
    pub(super) fn ends<const N: usize>(self) -> [u64; 2] {
        let (first, last) = (self.0.first_chunk::<N>(), self.0.last_chunk::<N>());
        [first, last].map(|part| part.map_or(0, |part| hash_of(part)))
    }
}

/// Returns the hash of characters.
pub(super) fn hash_of(units: &[u16]) -> u64 {
    xxh3_64(&bytes_of(units))
}

fn bytes_of(units: &[u16]) -> Vec<u8> {
    units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
}

/// Multiplier of the rolling hash of a gram.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Power of the multiplier for the character that leaves a gram.
#[allow(clippy::cast_possible_truncation)] // Nine.
const LEAVING: u64 = FACTOR.wrapping_pow(GRAM as u32);

/// Calls `visit` with the fingerprint of each window of a run, and the position of the window: the smallest hash of
/// its parts (winnowing, Schleimer et al. 2003). Equal windows have the same fingerprint.
pub(super) fn fingerprints(run: &[u16], visit: &mut dyn FnMut(u64, usize)) {
    let mut hash = 0_u64;
    // The hashes of the last grams, by their positions.
    let mut last = [u64::MAX; GRAMS];
    let mut least = (u64::MAX, 0);
    for (at, unit) in run.iter().enumerate() {
        let leaving = at.checked_sub(GRAM).and_then(|at| run.get(at)).map_or(0, |unit| u64::from(*unit) + 1);
        hash = hash.wrapping_mul(FACTOR).wrapping_add(u64::from(*unit) + 1);
        hash = hash.wrapping_sub(leaving.wrapping_mul(LEAVING));
        let Some(gram) = (at + 1).checked_sub(GRAM) else { continue };
        let mixed = (hash ^ hash >> 29).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mixed = mixed ^ mixed >> 32;
        if let Some(place) = last.get_mut(gram % GRAMS) {
            *place = mixed;
        }
        if mixed <= least.0 {
            least = (mixed, gram);
        } else if gram >= least.1 + GRAMS {
            let grams =
                (gram + 1 - GRAMS..=gram).map(|gram| (last.get(gram % GRAMS).copied().unwrap_or(0), gram));
            // The last one of equal hashes, which remains in the window longest.
            least = grams.min_by_key(|(hash, gram)| (*hash, usize::MAX - gram)).unwrap_or(least);
        }
        if let Some(window) = (at + 1).checked_sub(WINDOW) {
            visit(least.0, window);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    #[test]
    fn equal_windows_have_equal_fingerprints() {
        let text =
            units("the quick brown fox jumps over the lazy dog, again and again: ёжик и 日本語のテキスト");
        let prints = |run: &[u16]| {
            let mut prints = Vec::new();
            fingerprints(run, &mut |print, at| {
                assert_eq!(at, prints.len());
                prints.push(print);
            });
            prints
        };
        let all = prints(&text);
        assert_eq!(all.len(), text.len() - WINDOW + 1);
        for (at, window) in text.windows(WINDOW).enumerate() {
            assert_eq!(prints(window), [all[at]]);
            assert_eq!(prints(&[&units("<<<<"), window, &units(">>>>>")].concat())[4], all[at]);
        }
    }

    #[test]
    fn runs_are_found_in_all_encodings() {
        for text in [
            "jdbc:postgresql://db/prod?password=x",
            "съешь ещё этих мягких булок, пароль 4711",
            "パスワードは秘密です、誰にも言わないでください",
            "Größenübersicht für Bäckerei Süß & Söhne",
            "emoji 😀😁😂 and more 𝒳𝒴𝒵 of them",
        ] {
            let expected = units(text);
            let utf8 = text.as_bytes().to_vec();
            let java: Vec<u8> = expected.iter().flat_map(|unit| encoded(*unit)).collect();
            let little: Vec<u8> = expected.iter().flat_map(|unit| unit.to_le_bytes()).collect();
            let big: Vec<u8> = expected.iter().flat_map(|unit| unit.to_be_bytes()).collect();
            let latin: Option<Vec<u8>> = expected.iter().map(|unit| u8::try_from(*unit).ok()).collect();
            let all = [Some(utf8), Some(java), Some(little), Some(big), latin];
            for (form, bytes) in all.iter().flatten().enumerate() {
                for (before, after) in [
                    (&b""[..], &b""[..]),
                    (b"\x01\x02", b"\xff"),
                    (b"\x00", b"\x00\x00\x00"),
                    (b"\xc3\x01", b"\xe3\x81"),
                    (&[b'a'; 200], &[b'z'; 200]),
                    (&[b'a'; 201], &[b'z'; 201]),
                ] {
                    let mut found = false;
                    let bytes = [before, bytes, after].concat();
                    runs(&bytes, Encodings::All, WINDOW, &mut |run| {
                        found |= run.windows(expected.len()).any(|part| part == expected);
                    });
                    assert!(found, "{text} {form} {before:?}");
                }
            }
        }
    }

    /// Encodes a UTF-16 unit in modified UTF-8.
    #[allow(clippy::cast_possible_truncation)]
    fn encoded(unit: u16) -> Vec<u8> {
        let last = 0x80 | (unit & 0x3f) as u8;
        match unit {
            1..0x80 => vec![unit as u8],
            0 | 0x80..0x800 => vec![0xc0 | (unit >> 6) as u8, last],
            _ => vec![0xe0 | (unit >> 12) as u8, 0x80 | (unit >> 6 & 0x3f) as u8, last],
        }
    }

    #[test]
    fn lines_of_one_character_are_no_texts() {
        let is_text = |text: &str| Window::at(&units(text), 0).is_some();
        assert!(
            !is_text("湩潶敫䈮畯摮敍桴摯慈摮敬匤数楣獥") && is_text("パスワードは秘密です、誰にも言わない")
        );
        assert!(is_text("a text of letter") && !is_text("----------------") && !is_text("---------------#"));
    }
}
