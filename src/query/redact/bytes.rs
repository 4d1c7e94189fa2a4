//! Operations on short sequences of bytes, such as the arrays of most Strings, eight bytes at a time.

use super::symbol::Symbol;
use hprof_base::keyed::{Absorb, Squeeze};

/// Maximum length of a block in bytes. Longer arrays are mapped block by block; the image of a block depends on the
/// previous ones.
pub(super) const BLOCK: usize = 8 << 20;

/// One in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The lower 7 bits of each byte.
const LOW: u64 = 0x7f * ONES;

/// Adds to each byte the number in the same byte of `noise`, modulo the size of the byte's class: 1 to 127, or 128 to 255.
/// Bytes that are 0 must have 0 in `used`, others 0xff.
#[inline(always)]
fn add(bytes: u64, noise: u64, used: u64) -> u64 {
    let high = bytes & !LOW;
    let is_low = (high >> 7 ^ ONES) & used;
    // Indices in the class plus up to 127: no byte overflows.
    let sum = (bytes & LOW) - is_low + (noise & LOW & used);
    // 1 where the sum is not less than the size: 127 or 128.
    let is_over = (sum + is_low) >> 7 & ONES;
    let place = sum + (is_over & is_low) - (is_over << 7);
    (place + is_low) | high
}

/// Adds noise to at most 8 bytes.
#[inline(always)]
pub(super) fn add_to<S: Symbol>(noise: u64, values: &mut [S]) {
    let word = values.iter().rfold(0, |word, value| word << 8 | value.bits());
    let mut word = add(word, noise, byte_mask(values.len()));
    for value in values {
        *value = S::of_bits(word & 0xff);
        word >>= 8;
    }
}

/// Returns a byte plus a number below the size of its class, derived from `noise`.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // Bytes, and the upper half of a product.
pub(super) fn advance(byte: u64, noise: u16) -> u8 {
    let byte = byte as u16;
    let high = byte >> 7;
    let (size, end) = (127 + high, 128 << high);
    let digit = ((u32::from(noise) * u32::from(size)) >> 16) as u16;
    let sum = byte + digit;
    (if sum >= end { sum - size } else { sum }) as u8
}

/// Returns 0xff in each of the first `count` bytes.
#[inline(always)]
fn byte_mask(count: usize) -> u64 {
    if count >= 8 { u64::MAX } else { (1 << (8 * count)) - 1 }
}

/// One half of a sequence: at most 16 bytes, padded with zeros.
#[derive(Clone, Copy)]
struct SequenceHalf {
    words: [u64; 2],
    used: [u64; 2],
}

impl SequenceHalf {
    #[inline(always)]
    fn new(values: &[u8]) -> Self {
        let (first, second) = values.split_at(values.len().min(8));
        let word = |values: &[u8]| match values.first_chunk() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => values.iter().rfold(0, |word, value| word << 8 | u64::from(*value)),
        };
        Self { words: [word(first), word(second)], used: [byte_mask(first.len()), byte_mask(second.len())] }
    }

    #[inline(always)]
    fn put(self, values: &mut [u8]) {
        for (mut word, values) in self.words.into_iter().zip(values.chunks_mut(8)) {
            if let Some(bytes) = values.first_chunk_mut() {
                *bytes = word.to_le_bytes();
                continue;
            }
            for value in values {
                *value = word.to_le_bytes()[0];
                word >>= 8;
            }
        }
    }

    /// Adds the pseudorandom function of the other half.
    #[inline(always)]
    fn add(&mut self, mut state: Absorb, other: &Self) {
        state.word(other.words[0]);
        if other.used[1] != 0 {
            state.word(other.words[1]);
        }
        let mut squeeze: Squeeze = state.finish();
        self.words[0] = add(self.words[0], squeeze.next_word(), self.used[0]);
        if self.used[1] != 0 {
            self.words[1] = add(self.words[1], squeeze.next_word(), self.used[1]);
        }
    }
}

/// Replaces at most 32 bytes, none of which is 0, by their image: a Feistel network with one round for each element of
/// `starts`.
pub(super) fn permute(starts: &[Absorb], values: &mut [u8]) {
    let (left, right) = values.split_at_mut(values.len() / 2);
    let mut halves = (SequenceHalf::new(left), SequenceHalf::new(right));
    for [even, odd] in starts.as_chunks().0 {
        halves.0.add(*even, &halves.1);
        halves.1.add(*odd, &halves.0);
    }
    halves.0.put(left);
    halves.1.put(right);
}
