//! Keyed permutations: of the sequences of values with given classes, and of the values of a class.
//!
//! Every step adds to each position a number that depends only on the other positions, modulo the size of the
//! position's class. With the key it can be subtracted again, whatever the function that computes the numbers: two
//! sequences never get the same image, not even short ones. Since the function is pseudorandom, images are
//! unpredictable.

use hprof_values::BasicType;

use super::bytes;
use super::symbol::{Class, Symbol, class_of};
use super::tables::Tables;
use hprof_base::keyed::{Absorb, Key, Prf, STREAM_BYTES, Squeeze, Stream};

/// Maximum number of rounds of a Feistel network.
pub(super) const ROUNDS: usize = 8;
/// Number of rounds of a Feistel network of values with many bits.
const FEW_ROUNDS: usize = 6;
/// Minimum number of bits of a half for [`FEW_ROUNDS`].
const MANY_BITS: u32 = 24;
/// Maximum number of values that are permuted by a Feistel network of two halves.
pub(super) const SHORT: usize = 32;
/// Number of values of the first part of longer sequences: the nonce for the rest.
const NONCE: usize = 16;

/// Permutations for one key.
#[derive(Debug)]
pub(super) struct Cipher {
    key: Key,
    values: Prf,
    patterns: Prf,
    sequences: Prf,
    /// States of `sequences` for short arrays of bytes, by number of bytes and round.
    bytes: Box<[[Absorb; ROUNDS]]>,
    tables: Tables,
}

/// Returns the number of rounds for two halves of at least this many bits each. The more bits a half has, the fewer texts of a
/// dump have the same half, for which the function returns the same number.
fn rounds(bits_of_half: usize) -> usize {
    match bits_of_half {
        0..21 => ROUNDS,
        21..42 => FEW_ROUNDS,
        _ => 4,
    }
}

impl Cipher {
    pub(super) fn new(key: Key) -> Self {
        let (sequences, values, patterns) = (key.prf(1), key.prf(2), key.prf(3));
        let bytes = (0..=SHORT).map(|count| {
            let mut round = 0;
            [(); ROUNDS].map(|()| {
                round += 1;
                start(sequences, BasicType::Byte, count, round - 1)
            })
        });
        Self { tables: Tables::new(&key), bytes: bytes.collect(), key, values, patterns, sequences }
    }

    /// Starts a tweak: additional input of the permutation of a sequence.
    pub(super) fn tweak(&self) -> Absorb {
        self.patterns.start()
    }

    /// Replaces an array of bytes, none of which is 0, by its image, if it is short; otherwise returns `false`.
    #[inline(always)]
    pub(super) fn short_bytes(&self, values: &mut [u8]) -> bool {
        let Some(starts) = self.bytes.get(values.len()) else { return false };
        let starts = starts.get(..rounds(u8::MIN_BITS * (values.len() / 2))).unwrap_or_default();
        bytes::permute(starts, values);
        true
    }

    /// Replaces the sequence by its image. No value may be alone in its class. The image depends on the type and the
    /// number of values, and on `tweak` if there is one.
    #[inline(always)]
    pub(super) fn sequence<S: Symbol>(&self, kind: BasicType, tweak: Option<u64>, values: &mut [S]) {
        let count = values.len();
        if let [value] = values {
            let class = class_of(kind, value.bits());
            *value = S::of_bits(self.value(class, tweak.unwrap_or_default(), value.bits()));
            return;
        }
        // Number and position of the words that follow follow from these.
        let start = |round: usize| {
            let mut state = start(self.sequences, kind, count, round);
            tweak.into_iter().for_each(|tweak| state.word(tweak));
            state
        };
        if count <= SHORT {
            let (left, right) = values.split_at_mut(count / 2);
            for round in (0..rounds(S::MIN_BITS * (count / 2))).step_by(2) {
                add(kind, function(start(round), right), left);
                add(kind, function(start(round + 1), left), right);
            }
        } else if let Some((nonce, rest)) = values.split_at_mut_checked(NONCE) {
            add(kind, function(start(0), rest), nonce);
            let mut squeeze = function(start(1), nonce);
            let stream = Stream::new(&self.key, [squeeze.next_word(), squeeze.next_word()]);
            add_stream(kind, stream, rest);
            add(kind, function(start(2), rest), nonce);
        }
    }

    /// Replaces a sequence of zeros and ones by its image.
    pub(super) fn booleans(&self, tweak: u64, values: &mut [u8]) {
        let count = values.len();
        let start = |round: usize| {
            let mut state = start(self.sequences, BasicType::Boolean, count, round);
            state.word(tweak);
            state
        };
        let (left, right) = values.split_at_mut(count / 2);
        for round in (0..rounds(left.len())).step_by(2) {
            add_bits(function(start(round), right), left);
            add_bits(function(start(round + 1), left), right);
        }
    }

    /// Returns the image of a value; it is in the same class.
    pub(super) fn value(&self, class: Class, tweak: u64, value: u64) -> u64 {
        if class.is_fixed() {
            return value;
        }
        let bits = 64 - (class.radix - 1).leading_zeros();
        let (low, high) = (bits / 2, bits - bits / 2);
        let mask = |bits: u32| (1_u64 << bits) - 1;
        let mut start = self.values.start();
        start.word(class.radix);
        start.word(tweak);
        let rounds = if bits < MANY_BITS { ROUNDS } else { FEW_ROUNDS };
        let mut place = class.index_of(value);
        // A permutation of a power of two, of which the radix is more than half: it is applied until the result is an
        // index of the class.
        loop {
            let (mut left, mut right) = (place >> low, place & mask(low));
            for round in (0..rounds as u64).step_by(2) {
                let function = |round: u64, half: u64| {
                    let mut state = start;
                    state.word(half ^ (round << 56));
                    state.finish().next_word()
                };
                left ^= function(round, right) & mask(high);
                right ^= function(round + 1, left) & mask(low);
            }
            place = left << low | right;
            if place < class.radix {
                return class.value(place);
            }
        }
    }

    /// Returns the image of a number in a field.
    #[inline(always)]
    pub(super) fn number(&self, class: Class, kind: BasicType, value: u64) -> u64 {
        if Tables::has(class) {
            self.tables.value(class, kind, value)
        } else {
            self.value(class, NUMBER | u64::from(kind.code()), value)
        }
    }
}

/// Tweak for numbers in fields.
const NUMBER: u64 = 2 << 8;

/// Starts the function of a round for sequences of a type and length.
#[inline(always)]
fn start(sequences: Prf, kind: BasicType, count: usize, round: usize) -> Absorb {
    let mut state = sequences.start();
    state.word((count as u64) << 16 | (round as u64) << 8 | u64::from(kind.code()));
    state
}

/// Returns pseudorandom words for values.
#[inline(always)]
fn function<S: Symbol>(mut state: Absorb, values: &[S]) -> Squeeze {
    absorb(&mut state, values);
    state.finish()
}

/// Adds values to the input of a function. Their number must be known from the tweak.
#[inline(always)]
pub(super) fn absorb<S: Symbol>(state: &mut Absorb, values: &[S]) {
    let chunks = values.chunks_exact(8 / S::BYTES);
    let rest = chunks.remainder();
    for chunk in chunks {
        state.word(S::join(chunk));
    }
    if !rest.is_empty() {
        state.word(S::join(rest));
    }
}

/// Adds pseudorandom numbers to values.
#[inline(always)]
fn add<S: Symbol>(kind: BasicType, mut squeeze: Squeeze, values: &mut [S]) {
    if S::BYTES == 1 && kind == BasicType::Byte {
        return values.chunks_mut(8).for_each(|chunk| bytes::add_to(squeeze.next_word(), chunk));
    }
    for chunk in values.chunks_mut(S::PER_WORD) {
        let mut fraction = squeeze.next_word();
        for value in chunk {
            let class = class_of(kind, value.bits());
            let product = u128::from(fraction) * u128::from(class.radix);
            #[allow(clippy::cast_possible_truncation)] // The halves of the product.
            let (digit, rest) = ((product >> 64) as u64, product as u64);
            *value = S::of_bits(class.advance(value.bits(), digit));
            fraction = rest;
        }
    }
}

/// Adds pseudorandom bits to zeros and ones.
fn add_bits(mut squeeze: Squeeze, values: &mut [u8]) {
    for chunk in values.chunks_mut(64) {
        let mut bits = squeeze.next_word();
        for value in chunk {
            *value ^= u8::from(bits & 1 == 1);
            bits >>= 1;
        }
    }
}

/// Adds a key stream to values.
#[inline(always)]
fn add_stream<S: Symbol>(kind: BasicType, mut stream: Stream, values: &mut [S]) {
    let mut noise = [0; STREAM_BYTES];
    for chunk in values.chunks_mut(STREAM_BYTES / S::NOISE) {
        stream.fill(&mut noise);
        if S::BYTES == 1 && kind == BasicType::Byte {
            for (value, noise) in chunk.iter_mut().zip(noise.as_chunks().0) {
                *value = S::of_bits(bytes::advance(value.bits(), u16::from_le_bytes(*noise)).into());
            }
            continue;
        }
        let values = chunk.iter_mut().zip(noise.chunks_exact(S::NOISE));
        for (value, noise) in values {
            let class = class_of(kind, value.bits());
            *value = S::of_bits(class.advance(value.bits(), S::digit(noise, class.radix)));
        }
    }
}
