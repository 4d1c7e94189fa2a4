//! Bit-packed columns of small numbers, by frame of reference: the 64 numbers of a frame are stored as differences to the
//! smallest of them, in as many bits as the largest difference needs (J. Goldstein, R. Ramakrishnan, U. Shaft: Compressing
//! Relations and Indexes, ICDE 1998; without the exceptions of PFOR).
//!
//! Values that are close in a heap are similar: positions and object indices of a list are consecutive,
//! sizes are equal. A frame whose numbers are all equal takes no bits. Any number is read in constant
//! time.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::checked_column::CheckedColumn;

/// Numbers in a frame. A frame of numbers of `width` bits takes `width` words.
pub(crate) const FRAME_LEN: usize = FRAME_ROWS as usize;
const FRAME_ROWS: u32 = 64;

/// Row of a frame: the base of its numbers, and the location of their bits.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct FrameRow {
    /// Smallest number.
    base: U32,
    /// Index of the frame's first word, 40 bits.
    start: [u8; 5],
    /// Number of bits of a number's difference to the base.
    width: u8,
}

/// A bit-packed column of numbers.
#[derive(Debug, Default)]
pub(crate) struct BitPackedColumn {
    pub(crate) frames: CheckedColumn<FrameRow>,
    /// Bits, lowest first.
    pub(crate) words: CheckedColumn<U64>,
}

impl BitPackedColumn {
    /// Reads and checks the whole column.
    pub(crate) fn check(&self) {
        self.frames.all();
        self.words.all();
    }

    /// Returns the number at a row.
    #[inline]
    pub(crate) fn get(&self, row: u32) -> Option<u32> {
        let frame = *self.frames.get(row as usize / FRAME_LEN)?;
        Some(frame.base.get().wrapping_add(self.difference(frame, row as usize % FRAME_LEN)?))
    }

    /// Prefetches the frame of a row, which has the offset of its bits.
    #[inline]
    pub(crate) fn prefetch(&self, row: u32) {
        self.frames.prefetch(row as usize / FRAME_LEN);
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    fn difference(&self, frame: FrameRow, within: usize) -> Option<u32> {
        let width = u32::from(frame.width.min(32));
        if width == 0 {
            return Some(0);
        }
        let [a, b, c, d, e] = frame.start;
        let start = usize::try_from(u64::from_le_bytes([a, b, c, d, e, 0, 0, 0])).ok()?;
        // Below 64 times 32.
        let bit = within as u32 * width;
        let first = start.checked_add((bit / 64) as usize)?;
        let low = self.words.get(first)?.get() >> (bit % 64);
        let mask = (1u64 << width) - 1;
        if bit % 64 + width <= 64 {
            return Some((low & mask) as u32);
        }
        let high = self.words.get(first.checked_add(1)?)?.get() << (64 - bit % 64);
        Some(((low | high) & mask) as u32)
    }

    /// Returns the numbers of a range of rows, in order.
    #[inline]
    pub(crate) fn range(&self, rows: std::ops::Range<u32>) -> BitPackedNumbers<'_> {
        BitPackedNumbers {
            column: self,
            next: rows.start,
            end: rows.end,
            numbers: [0; FRAME_LEN],
            frame: None,
        }
    }

    /// Calls `visit` with each row of a range and its number, in order. Faster than [`Self::range`] where that is not inlined
    /// completely.
    #[inline]
    pub(crate) fn visit(&self, rows: std::ops::Range<u32>, mut visit: impl FnMut(u32, u32)) {
        let mut numbers = [0; FRAME_LEN];
        for frame in rows.start / FRAME_ROWS..rows.end.div_ceil(FRAME_ROWS) {
            if self.decode(frame, &mut numbers).is_none() {
                return;
            }
            let first = frame.saturating_mul(FRAME_ROWS);
            let here = rows.start.max(first)..rows.end.min(first.saturating_add(FRAME_ROWS));
            let within = (here.start - first) as usize..here.end.saturating_sub(first) as usize;
            for (row, number) in here.zip(numbers.get(within).unwrap_or_default()) {
                visit(row, *number);
            }
        }
    }

    /// Returns all numbers of a frame; those after the last row are unspecified.
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn decode(&self, number: u32, out: &mut [u32; FRAME_LEN]) -> Option<()> {
        let frame = *self.frames.get(number as usize)?;
        let (base, width) = (frame.base.get(), u32::from(frame.width.min(32)));
        if width == 0 {
            out.fill(base);
            return Some(());
        }
        let [a, b, c, d, e] = frame.start;
        let start = usize::try_from(u64::from_le_bytes([a, b, c, d, e, 0, 0, 0])).ok()?;
        let words = self.words.rows(start..start.checked_add(width as usize)?)?;
        let mask = (1u64 << width) - 1;
        let mut words = words.iter().map(|word| word.get());
        let (mut word, mut left) = (0u64, 0);
        for out in out {
            let number = if left >= width {
                let number = word & mask;
                (word, left) = (word >> width, left - width);
                number
            } else {
                let next = words.next().unwrap_or(0);
                let number = (word | next << left) & mask;
                let used = width - left;
                (word, left) = (next.checked_shr(used).unwrap_or(0), 64 - used);
                number
            };
            *out = base.wrapping_add(number as u32);
        }
        Some(())
    }
}

/// Iterator over consecutive numbers of a column.
#[derive(Debug, Clone)]
pub(crate) struct BitPackedNumbers<'a> {
    column: &'a BitPackedColumn,
    next: u32,
    end: u32,
    numbers: [u32; FRAME_LEN],
    /// Decoded frame.
    frame: Option<u32>,
}

impl Iterator for BitPackedNumbers<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.next >= self.end {
            return None;
        }
        let frame = self.next / 64;
        if self.frame != Some(frame) {
            self.column.decode(frame, &mut self.numbers)?;
            self.frame = Some(frame);
        }
        let number = self.numbers.get(self.next as usize % FRAME_LEN).copied();
        self.next += 1;
        number
    }
}

/// Packer for consecutive frames of a column.
#[derive(Debug, Default)]
pub(crate) struct BitPacker {
    frames: Vec<FrameRow>,
    pub(crate) words: Vec<U64>,
}

impl BitPacker {
    /// Packs numbers into frames; all frames but the last are full.
    pub(crate) fn pack<T: Copy + Into<u32>>(numbers: &[T]) -> Self {
        // Most columns take less than half the size of their numbers.
        let mut packer = Self {
            frames: Vec::with_capacity(numbers.len().div_ceil(FRAME_LEN)),
            words: Vec::with_capacity(numbers.len() / 4),
        };
        for frame in numbers.chunks(FRAME_LEN) {
            let all = || frame.iter().map(|number| -> u32 { (*number).into() });
            let (least, most) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
            let width = 32 - (most - least).leading_zeros();
            packer.push_row(least, width);
            if width == 0 {
                continue;
            }
            // A frame takes as many words as a number takes bits. One more receives the bits that are
            // shifted out of the last word.
            let (mut words, mut at, mut filled) = ([0u64; u32::BITS as usize + 1], 0, 0);
            for number in all() {
                let number = u64::from(number - least);
                if let Some([word, next]) = words.get_mut(at..at + 2) {
                    *word |= number << filled;
                    filled += width;
                    if filled >= 64 {
                        filled -= 64;
                        at += 1;
                        *next = number >> (width - filled);
                    }
                }
            }
            packer.words.extend(words.iter().take(width as usize).map(|word| U64::new(*word)));
        }
        packer
    }

    fn push_row(&mut self, base: u32, width: u32) {
        let [a, b, c, d, e, ..] = (self.words.len() as u64).to_le_bytes();
        let width = u8::try_from(width).unwrap_or(32);
        self.frames.push(FrameRow { base: base.into(), start: [a, b, c, d, e], width });
    }

    /// Returns the frames of this chunk, given that its words follow `before` others.
    pub(crate) fn frames_after(&self, before: u64) -> impl Iterator<Item = FrameRow> + '_ {
        self.frames.iter().map(move |frame| {
            let [a, b, c, d, e] = frame.start;
            let start = u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]) + before;
            let [a, b, c, d, e, ..] = start.to_le_bytes();
            FrameRow { start: [a, b, c, d, e], ..*frame }
        })
    }
}

/// Returns a column made in memory.
#[cfg(test)]
pub(crate) fn packed_column<T: Copy + Into<u32>>(numbers: &[T]) -> BitPackedColumn {
    let packer = BitPacker::pack(numbers);
    BitPackedColumn { frames: packer.frames.into(), words: packer.words.into() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_width_come_back() {
        for width in 0..=32u32 {
            for count in [0, 1, 63, 64, 65, 500] {
                let mask = u32::MAX.checked_shr(32 - width).unwrap_or(0);
                let numbers: Vec<u32> =
                    (0..count).map(|i: u32| i.wrapping_mul(2_654_435_761) & mask).collect();
                let column = packed_column(&numbers);
                let rows = u32::try_from(numbers.len()).unwrap();
                assert_eq!(column.range(0..rows).collect::<Vec<_>>(), numbers, "width {width}");
                let single: Vec<u32> = (0..rows).map(|row| column.get(row).unwrap()).collect();
                assert_eq!(single, numbers, "width {width}");
                assert_eq!(column.get(rows.next_multiple_of(64)), None);
            }
        }
    }

    #[test]
    fn neighbours_take_few_bits_and_equals_none() {
        let numbers: Vec<u32> = (0..6400).map(|i| 1_000_000 + i).collect();
        assert_eq!(BitPacker::pack(&numbers).words.len(), 600);
        assert_eq!(BitPacker::pack(&vec![7u8; 6400]).words.len(), 0);
    }

    #[test]
    fn parts_are_put_together() {
        let numbers: Vec<u32> = (0..1000u32).map(|i| i * i % 777).collect();
        let (one, other) = (BitPacker::pack(&numbers[..640]), BitPacker::pack(&numbers[640..]));
        let frames: Vec<FrameRow> =
            one.frames_after(0).chain(other.frames_after(one.words.len() as u64)).collect();
        let words = [one.words, other.words].concat();
        let column = BitPackedColumn { frames: frames.into(), words: words.into() };
        assert_eq!(column.range(0..1000).collect::<Vec<_>>(), numbers);
    }
}
