//! A permutation of 31-bit numbers: `int` and `float` of one sign, most numbers of a dump.
//!
//! A Feistel network whose functions are tables of random numbers, derived from the key. A class is treated as a tweak that is
//! added to the input of each function.

use hprof_values::BasicType;

use super::symbol::Class;
use hprof_base::keyed::{Key, STREAM_BYTES, Stream};

/// Number of rounds.
const ROUNDS: usize = 6;
/// Number of values of a half. The lower half has one bit less.
const HALF: usize = 1 << 16;
/// Number of bits of the lower half.
const LOW: u32 = 15;
/// Number of tweaks: a type and a sign.
const TWEAKS: usize = 32;

/// Random tables for the functions of the rounds.
pub(super) struct Tables {
    functions: [Box<[u16; HALF]>; ROUNDS],
    tweaks: [[u16; ROUNDS]; TWEAKS],
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tables(..)")
    }
}

impl Tables {
    pub(super) fn new(key: &Key) -> Self {
        let mut prf = key.prf(4).start().finish();
        let mut stream = Stream::new(key, [prf.next_word(), prf.next_word()]);
        let mut noise = [0; STREAM_BYTES];
        let mut fill = |table: &mut [u16]| {
            for chunk in table.chunks_mut(STREAM_BYTES / 2) {
                stream.fill(&mut noise);
                let noise = noise.as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes));
                chunk.iter_mut().zip(noise).for_each(|(value, noise)| *value = noise);
            }
        };
        let functions = [(); ROUNDS].map(|()| {
            let mut table = Box::new([0; HALF]);
            fill(&mut *table);
            table
        });
        let mut tweaks = [[0; ROUNDS]; TWEAKS];
        tweaks.iter_mut().for_each(|tweaks| fill(tweaks));
        Self { functions, tweaks }
    }

    /// Returns `true` if indices of values of this class have 31 bits.
    #[inline(always)]
    pub(super) fn has(class: Class) -> bool {
        (1 << 30..=1 << 31).contains(&class.radix)
    }

    /// Returns the image of a value of the class.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // Masked, or less than 2^31.
    pub(super) fn value(&self, class: Class, kind: BasicType, value: u64) -> u64 {
        let number = usize::from(kind.code()) << 1 | (value >> 31 & 1) as usize;
        let tweaks = self.tweaks.get(number % TWEAKS).copied().unwrap_or_default();
        let mut place = class.index_of(value) as u32;
        // Applied until the result is an index of the class.
        loop {
            let (mut left, mut right) = ((place >> LOW) as u16, place as u16 & 0x7fff);
            for (functions, tweaks) in self.functions.as_chunks().0.iter().zip(tweaks.as_chunks().0) {
                let ([even, odd], [a, b]): (&[_; 2], &[_; 2]) = (functions, tweaks);
                left ^= at(even, right ^ a);
                right ^= at(odd, left ^ b) & 0x7fff;
            }
            place = u32::from(left) << LOW | u32::from(right);
            if u64::from(place) < class.radix {
                return class.value(place.into());
            }
        }
    }
}

/// Returns an entry of a table, which has one for each 16-bit number.
#[inline(always)]
#[allow(clippy::indexing_slicing)] // It has an entry for each number of 16 bits.
fn at(table: &[u16; HALF], place: u16) -> u16 {
    table[usize::from(place)]
}
