//! Keyed permutations: of the sequences of values whose classes are given, and of the values of a class.
//!
//! Every step adds, at each position, a number that depends on the other positions only, modulo the size of the
//! position's class. Who has the key can subtract it again, whatever the function is that makes the numbers: two
//! sequences never become one, short ones included. That the function is pseudorandom makes them unpredictable.

use hprof_parser::BasicType;

use super::prf::{Absorb, Key, Prf, STREAM_BYTES, Stream};
use super::symbol::{Class, Symbol, class_of};

/// Number of rounds of a Feistel network of sequences, and of small values.
const ROUNDS: u64 = 8;
/// Number of rounds of a Feistel network of values with many bits.
const FEW_ROUNDS: u64 = 6;
/// Number of bits of such values.
const MANY_BITS: u32 = 24;
/// Maximum number of values that pass a Feistel network of two halves.
const SHORT: usize = 32;
/// Number of values of the first part of longer sequences: the nonce of the rest.
const NONCE: usize = 16;

/// Permutations for one key.
#[derive(Debug, Clone)]
pub(super) struct Cipher {
    key: Key,
    sequences: Prf,
    values: Prf,
    patterns: Prf,
}

impl Cipher {
    pub(super) fn new(key: Key) -> Self {
        let (sequences, values, patterns) = (key.prf(1), key.prf(2), key.prf(3));
        Self { key, sequences, values, patterns }
    }

    /// Starts a tweak: what else the permutation of a sequence depends on.
    pub(super) fn tweak(&self) -> Absorb {
        self.patterns.start()
    }

    /// Replaces the sequence by its image. No value may be alone in its class.
    #[inline(always)]
    pub(super) fn sequence<S: Symbol>(&self, kind: BasicType, tweak: [u64; 2], values: &mut [S]) {
        let mut start = self.sequences.start();
        start.word(tweak[0]);
        start.word(tweak[1]);
        if let [value] = values {
            let class = class_of(kind, value.bits());
            *value = S::of_bits(self.value(class, tweak[0], value.bits()));
        } else if values.len() <= SHORT {
            let (left, right) = values.split_at_mut(values.len() / 2);
            for round in 0..ROUNDS / 2 {
                add(kind, function(start, 2 * round, right), left);
                add(kind, function(start, 2 * round + 1, left), right);
            }
        } else if let Some((nonce, rest)) = values.split_at_mut_checked(NONCE) {
            add(kind, function(start, ROUNDS, rest), nonce);
            let mut squeeze = function(start, ROUNDS + 1, nonce);
            let stream = Stream::new(&self.key, [squeeze.next(), squeeze.next()]);
            add_stream(kind, stream, rest);
            add(kind, function(start, ROUNDS + 2, rest), nonce);
        }
    }

    /// Returns the image of a value, which is in the same class.
    pub(super) fn value(&self, class: Class, tweak: u64, value: u64) -> u64 {
        if class.is_fixed() {
            return value;
        }
        let bits = 64 - (class.radix - 1).leading_zeros();
        let (low, high) = (bits / 2, bits - bits / 2);
        let mask = |bits: u32| (1_u64 << bits) - 1;
        let mut start = self.values.start();
        // Radixes of a type differ in the upper bits, tweaks are small.
        start.word(class.radix ^ tweak.rotate_right(16));
        let rounds = if bits < MANY_BITS { ROUNDS } else { FEW_ROUNDS };
        let mut place = class.place(value);
        // A permutation of a power of two, of which the radix is more than half: it is applied until the place is
        // one of the class.
        loop {
            let (mut left, mut right) = (place >> low, place & mask(low));
            for round in 0..rounds / 2 {
                let function = |round: u64, half: u64| {
                    let mut state = start;
                    state.word(half ^ (round << 56));
                    state.finish().next()
                };
                left ^= function(2 * round, right) & mask(high);
                right ^= function(2 * round + 1, left) & mask(low);
            }
            place = left << low | right;
            if place < class.radix {
                return class.value(place);
            }
        }
    }
}

/// Returns pseudorandom words for a round and values.
#[inline(always)]
fn function<S: Symbol>(start: Absorb, round: u64, values: &[S]) -> super::prf::Squeeze {
    let mut state = start;
    state.word(round);
    absorb(&mut state, values);
    state.finish()
}

/// Adds values to the input of a function. Their number must be known from the tweak.
#[inline(always)]
pub(super) fn absorb<S: Symbol>(state: &mut Absorb, values: &[S]) {
    let word = |chunk: &[S]| {
        let join = |word: u64, value: &S| word << S::SHIFT | value.bits();
        chunk.iter().fold(0, join)
    };
    let chunks = values.chunks_exact(8 / S::BYTES);
    let rest = chunks.remainder();
    for chunk in chunks {
        state.word(word(chunk));
    }
    if !rest.is_empty() {
        state.word(word(rest));
    }
}

/// Adds pseudorandom numbers to values.
#[inline(always)]
fn add<S: Symbol>(kind: BasicType, mut squeeze: super::prf::Squeeze, values: &mut [S]) {
    for chunk in values.chunks_mut(S::PER_WORD) {
        let mut fraction = squeeze.next();
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

/// Adds a key stream to values.
#[inline(always)]
fn add_stream<S: Symbol>(kind: BasicType, mut stream: Stream, values: &mut [S]) {
    let mut noise = [0; STREAM_BYTES];
    for chunk in values.chunks_mut(STREAM_BYTES / S::NOISE) {
        stream.fill(&mut noise);
        for (value, noise) in chunk.iter_mut().zip(noise.chunks_exact(S::NOISE)) {
            let class = class_of(kind, value.bits());
            *value = S::of_bits(class.advance(value.bits(), S::digit(noise, class.radix)));
        }
    }
}
