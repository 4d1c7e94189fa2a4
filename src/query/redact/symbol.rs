//! Elements of arrays, and the classes of values within which they are mapped. A value is mapped to a value of the same class.
//! Zero is alone in its class.

use hprof_values::BasicType;
use zerocopy::IntoBytes;

/// A class of values: one or two ranges, and their total size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class {
    /// Number of values.
    pub(super) radix: u64,
    /// Start of the first range of values.
    start: u64,
    /// Number of values of the first range.
    first: u64,
    /// Start of the second range of values.
    second: u64,
}

impl Class {
    const fn range(start: u64, end: u64) -> Self {
        Self::ranges(start..end, 0..0)
    }

    const fn ranges(a: std::ops::Range<u64>, b: std::ops::Range<u64>) -> Self {
        let first = a.end.wrapping_sub(a.start);
        Self { radix: first + (b.end - b.start), start: a.start, first, second: b.start }
    }

    /// Returns the index of a value in this class.
    #[inline(always)]
    pub(super) const fn index_of(self, value: u64) -> u64 {
        let at = value.wrapping_sub(self.start);
        if at < self.first { at } else { value.wrapping_sub(self.second).wrapping_add(self.first) }
    }

    /// Returns the value with an index.
    #[inline(always)]
    pub(super) const fn value(self, place: u64) -> u64 {
        if place < self.first {
            self.start.wrapping_add(place)
        } else {
            self.second.wrapping_add(place - self.first)
        }
    }

    /// Returns the value `by` indices further, wrapping around after the last.
    #[inline(always)]
    pub(super) const fn advance(self, value: u64, by: u64) -> u64 {
        let (place, rest) = (self.index_of(value), self.radix - by);
        self.value(if place >= rest { place - rest } else { place + by })
    }

    /// Returns `true` if the class has only one value.
    #[inline(always)]
    pub(super) const fn is_fixed(self) -> bool {
        self.radix == 1
    }
}

/// Returns the class of a value of this type.
#[inline(always)]
pub(super) const fn class_of(kind: BasicType, value: u64) -> Class {
    if value == 0 {
        return Class::range(0, 1);
    }
    match kind {
        // Values other than 0 and 1 are not booleans.
        BasicType::Boolean if value == 1 => Class::range(1, 2),
        BasicType::Boolean => Class::range(2, 256),
        BasicType::Byte if value < 0x80 => Class::range(1, 0x80),
        BasicType::Byte => Class::range(0x80, 0x100),
        // By the length in UTF-8; surrogates stay surrogates.
        BasicType::Char => match value {
            0..0x80 => Class::range(1, 0x80),
            0x80..0x100 => Class::range(0x80, 0x100),
            0x100..0x800 => Class::range(0x100, 0x800),
            0xd800..0xdc00 => Class::range(0xd800, 0xdc00),
            0xdc00..0xe000 => Class::range(0xdc00, 0xe000),
            _ => Class::ranges(0x800..0xd800, 0xe000..0x1_0000),
        },
        BasicType::Short if value < 0x8000 => Class::range(1, 0x8000),
        BasicType::Short => Class::range(0x8000, 0x1_0000),
        BasicType::Int if value < 0x8000_0000 => Class::range(1, 0x8000_0000),
        BasicType::Int => Class::range(0x8000_0000, 0x1_0000_0000),
        BasicType::Long if value < 1 << 63 => Class::range(1, 1 << 63),
        BasicType::Object | BasicType::Long => {
            Class { radix: 1 << 63, start: 1 << 63, first: 1 << 63, second: 0 }
        }
        BasicType::Float => floating(value, 0x7f80_0000, 1 << 31),
        BasicType::Double => floating(value, 0x7ff0_0000_0000_0000, 1 << 63),
    }
}

/// Returns the class of a floating-point number: positive numbers, negative numbers, each infinity, negative zero, and NaN are
/// separate classes.
#[inline(always)]
const fn floating(value: u64, infinity: u64, sign: u64) -> Class {
    let magnitude = value & (sign - 1);
    let signed = value & sign;
    if magnitude == 0 || magnitude == infinity {
        Class { radix: 1, start: value, first: 1, second: 0 }
    } else if magnitude < infinity {
        Class { radix: infinity - 1, start: signed + 1, first: infinity - 1, second: 0 }
    } else {
        let first = sign - infinity - 1;
        Class { radix: first * 2, start: infinity + 1, first, second: sign + infinity + 1 }
    }
}

/// Returns the class of the value of a box: values in the JVM's cache of boxes, or other values.
pub(super) const fn class_of_box(kind: BasicType, value: u64) -> Class {
    let bits = match kind {
        BasicType::Short => 16,
        BasicType::Int => 32,
        BasicType::Long => 64,
        _ => return class_of(kind, value),
    };
    // Half of the numbers are negative.
    let half: u64 = 1 << (bits - 1);
    if value == 0 {
        class_of(kind, value)
    } else if value < 0x80 {
        Class::range(1, 0x80)
    } else if value < half {
        Class::range(0x80, half)
    } else if value - half < half - 0x80 {
        Class::range(half, half + (half - 0x80))
    } else {
        Class { radix: 0x80, start: half + (half - 0x80), first: 0x80, second: 0 }
    }
}

/// Array element of one size.
pub(super) trait Symbol: Copy + PartialEq {
    /// Size in bytes.
    const BYTES: usize;
    /// Size in bits, modulo 64.
    const SHIFT: u32;
    /// Minimum number of bits of the index of a value in its class.
    const MIN_BITS: usize;
    /// Zero.
    const ZERO: Self;
    /// Number of bytes of key stream per value.
    const NOISE: usize;
    /// Number of values for which 64 random bits are used.
    const PER_WORD: usize;

    fn get(bytes: &[u8]) -> Self;
    fn put(self, bytes: &mut [u8]);
    fn bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;
    /// Returns values of at most 64 bits together as one number.
    fn join(values: &[Self]) -> u64;
    /// Converts random bits to a number below `radix`.
    fn digit(noise: &[u8], radix: u64) -> u64;
}

macro_rules! symbol {
    ($type:ty, $noise:ty, $per_word:literal, $min_bits:literal) => {
        impl Symbol for $type {
            const BYTES: usize = size_of::<$type>();
            const SHIFT: u32 = <$type>::BITS % 64;
            const NOISE: usize = size_of::<$noise>();
            const PER_WORD: usize = $per_word;
            const MIN_BITS: usize = $min_bits;
            const ZERO: Self = 0;

            #[inline(always)]
            fn get(bytes: &[u8]) -> Self {
                bytes.first_chunk().map_or(0, |bytes| Self::from_be_bytes(*bytes))
            }

            #[inline(always)]
            fn put(self, bytes: &mut [u8]) {
                if let Some(bytes) = bytes.first_chunk_mut() {
                    *bytes = self.to_be_bytes();
                }
            }

            #[inline(always)]
            fn bits(self) -> u64 {
                self.into()
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation)] // The bits of a value.
            fn of_bits(bits: u64) -> Self {
                bits as Self
            }

            #[inline(always)]
            fn join(values: &[Self]) -> u64 {
                // The compiler does not turn a loop over eight bytes into one load.
                match values.as_bytes().first_chunk() {
                    Some(bytes) => u64::from_le_bytes(*bytes),
                    None => values.iter().rfold(0, |word, value| word << Self::SHIFT | u64::from(*value)),
                }
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation)] // Smaller than the radix.
            fn digit(noise: &[u8], radix: u64) -> u64 {
                let noise = noise.first_chunk().map_or(0, |noise| <$noise>::from_le_bytes(*noise));
                ((u128::from(noise) * u128::from(radix)) >> <$noise>::BITS) as u64
            }
        }
    };
}

symbol!(u8, u16, 7, 7);
symbol!(u16, u32, 3, 7);
symbol!(u32, u64, 1, 23);
symbol!(u64, u64, 1, 52);
