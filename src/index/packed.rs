//! Columns of small numbers, each in as many bits as the largest needs.

use zerocopy::little_endian::U64;

use super::lazy::Lazy;

/// A column of numbers of `width` bits each, at most 32.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    /// The bits, lowest first; one word more than needed, so that two neighbours can always be read.
    words: Lazy<U64>,
    width: u32,
}

/// Bits that hold every number below `count`.
pub(crate) fn width(count: u32) -> u32 {
    (32 - count.saturating_sub(1).leading_zeros()).max(1)
}

/// Words that hold `count` numbers of `width` bits.
fn words(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(64) + 1
}

impl Packed {
    pub(crate) fn new(words: Lazy<U64>, width: u32) -> Option<Self> {
        (1..=32).contains(&width).then_some(Self { words, width })
    }

    /// The number at a row.
    #[inline]
    pub(crate) fn get(&self, row: u32) -> Option<u32> {
        let bit = u64::from(row) * u64::from(self.width);
        let word = usize::try_from(bit / 64).ok()?;
        let [low, high] = self.words.rows(word..word.checked_add(2)?)? else { return None };
        Some(extract([low.get(), high.get()], bit, self.width))
    }

    /// The numbers of some rows, in order.
    pub(crate) fn range(&self, rows: std::ops::Range<u32>) -> impl Iterator<Item = u32> + '_ {
        rows.map_while(|row| self.get(row))
    }
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn extract([low, high]: [u64; 2], bit: u64, width: u32) -> u32 {
    let both = u128::from(low) | (u128::from(high) << 64);
    ((both >> (bit % 64)) as u64 & ((1u64 << width) - 1)) as u32
}

/// Packs numbers into words, in parts that end at whole words: 64 numbers fill `width` of them.
pub(crate) fn pack(numbers: &[u32], width: u32) -> Vec<U64> {
    let mut out = Vec::with_capacity(words(numbers.len(), width));
    let (mut word, mut filled) = (0u64, 0u32);
    for number in numbers {
        let number = u64::from(*number);
        word |= number << filled;
        filled += width;
        if filled >= 64 {
            out.push(U64::new(word));
            filled -= 64;
            word = if filled == 0 { 0 } else { number >> (width - filled) };
        }
    }
    if filled > 0 {
        out.push(U64::new(word));
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_width_come_back() {
        for width in 1..=32 {
            let mask = u32::MAX >> (32 - width);
            let numbers: Vec<u32> = (0..500u32).map(|i| i.wrapping_mul(2_654_435_761) & mask).collect();
            let mut words = pack(&numbers[..256], width);
            words.extend(pack(&numbers[256..], width));
            words.push(U64::new(0));
            let packed = Packed::new(words.into(), width).unwrap();
            assert_eq!(packed.range(0..500).collect::<Vec<_>>(), numbers, "width {width}");
        }
    }

    #[test]
    fn widths() {
        assert_eq!([0, 1, 2, 3, 256, 257, u32::MAX].map(width), [1, 1, 1, 2, 8, 9, 32]);
    }
}
