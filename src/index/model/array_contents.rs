//! Contents of primitive arrays that were removed when a dump was written or redacted, inferred from what is left: no record
//! states it.
//!
//! A redactor overwrites all elements with one value. SapMachine's limit for dumps keeps the first elements of each array and
//! writes zeros for the rest, with one limit for byte[] and char[] and another for all other types.

use hprof_values::{BasicType, IdSize};
use zerocopy::little_endian::U64;

use super::measurements::{Lengths, PRIMITIVE_LENGTHS};
use super::tables::{FillRow, LENGTH_BITS, NEAR};

/// Size of an examined part of a long array, in bytes.
const WINDOW: usize = 4096;
/// Number of examined parts of a long array. An array of up to this many windows is examined as a whole.
const WINDOWS: usize = 16;

/// How far the arrays of one element type are filled.
///
/// If all elements beyond a limit are zero, the limit is the longest filled part of an array, and many arrays of different
/// lengths are filled exactly to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArrayFill {
    /// Number of elements of the longest filled part: up to the last element that is not zero.
    longest: u32,
    /// Arrays that are filled up to `longest`, and up to one to three elements before it, with at least as many zeros after it.
    /// The last element within a limit may be zero, as the upper byte of a character is.
    near: [CutArrays; NEAR],
    /// Number of arrays that end with zeros and were longer than all filled parts before them, by the logarithm of their
    /// length.
    zero_ends: [u64; LENGTH_BITS],
    /// The value of all elements of all arrays.
    value: ElementValue,
}

/// Arrays that are filled up to one element.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct CutArrays {
    count: u64,
    /// Lengths modulo 64, as a set.
    lengths: u64,
}

/// The value of all elements of all arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElementValue {
    /// There was no element.
    None,
    /// All elements consist of these bytes.
    One([u8; 8]),
    /// Elements differ.
    Many,
}

impl Default for ArrayFill {
    fn default() -> Self {
        Self {
            longest: 0,
            near: [CutArrays::default(); NEAR],
            zero_ends: [0; LENGTH_BITS],
            value: ElementValue::None,
        }
    }
}

impl ArrayFill {
    /// Adds an array of `length` elements. Costs two comparisons unless it is longer than all filled parts so far.
    #[inline(always)]
    pub(crate) fn see(&mut self, element: BasicType, length: u32, elements: &[u8]) {
        if self.value != ElementValue::Many {
            self.compare_values(element, elements);
        }
        if length > self.longest {
            self.examine(element, length, elements);
        }
    }

    /// Compares all elements with the value of those before.
    #[cold]
    fn compare_values(&mut self, element: BasicType, elements: &[u8]) {
        let width = width(element);
        let Some(first) = elements.get(..width) else { return };
        let mut value = [0; 8];
        for (to, from) in value.iter_mut().zip(first) {
            *to = *from;
        }
        // All elements are equal if each equals the next.
        let are_equal = elements.get(width..) == elements.get(..elements.len() - width);
        self.value = match self.value {
            ElementValue::None if are_equal => ElementValue::One(value),
            ElementValue::One(known) if are_equal && known == value => self.value,
            _ => ElementValue::Many,
        };
    }

    /// Determines how far an array that is longer than all filled parts so far is filled.
    #[inline(never)]
    fn examine(&mut self, element: BasicType, length: u32, elements: &[u8]) {
        let filled = filled_bytes(elements).div_ceil(width(element));
        let filled = u32::try_from(filled).unwrap_or(u32::MAX).min(length);
        self.raise(filled);
        if filled == length {
            return;
        }
        if let Some(count) = self.zero_ends.get_mut(log2(length)) {
            *count += 1;
        }
        // An array that is little longer is examined or not, depending on the order.
        let before = (self.longest - filled) as usize;
        if let Some(cut) = self.near.get_mut(before).filter(|_| (length - filled) as usize >= NEAR) {
            cut.count += 1;
            cut.lengths |= 1 << (length % 64);
        }
    }

    /// Raises the longest filled part.
    fn raise(&mut self, filled: u32) {
        let by = filled.saturating_sub(self.longest) as usize;
        self.longest = self.longest.max(filled);
        self.near.rotate_right(by.min(NEAR) % NEAR);
        self.near.iter_mut().take(by).for_each(|cut| *cut = CutArrays::default());
    }

    /// Adds the arrays of `other`: of the same type, or of another if limits are the same for both.
    pub(crate) fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        self.raise(other.longest);
        other.raise(self.longest);
        for (cut, more) in self.near.iter_mut().zip(other.near) {
            cut.count = cut.count.saturating_add(more.count);
            cut.lengths |= more.lengths;
        }
        for (count, more) in self.zero_ends.iter_mut().zip(other.zero_ends) {
            *count = count.saturating_add(more);
        }
        self.value = match (self.value, other.value) {
            (ElementValue::None, value) | (value, ElementValue::None) => value,
            (one, two) if one == two => one,
            _ => ElementValue::Many,
        };
    }

    /// Returns the number of arrays that are certainly longer than the longest filled part, and the number of elements that they
    /// have beyond it: lower bounds.
    fn longer(&self) -> (u64, u64) {
        let (mut arrays, mut elements) = (0, 0u64);
        // In the range of the longest filled part itself, arrays may be shorter than it.
        let above = (0u32..).zip(self.zero_ends).filter(|(log, _)| 1 << log > self.longest);
        for (log, count) in above {
            let shortest = 1u64 << log;
            arrays = u64::saturating_add(arrays, count);
            let beyond = shortest - u64::from(self.longest);
            elements = elements.saturating_add(u64::saturating_mul(count, beyond));
        }
        (arrays, elements)
    }

    /// Returns the limit at which the arrays seem to be cut, in elements, if at least `filled_to_limit` of them are filled
    /// to it.
    fn limit(&self, filled_to_limit: u64) -> Option<u32> {
        let (arrays, elements) = self.longer();
        let lengths = self.near.iter().fold(0, |all, cut| all | cut.lengths);
        let is_cut = arrays >= MIN_ARRAYS
            && elements >= MIN_LOST
            && self.near.iter().fold(0, |sum: u64, cut| sum.saturating_add(cut.count)) >= filled_to_limit
            && u64::from(lengths.count_ones()) >= filled_to_limit.min(MIN_LENGTHS);
        is_cut.then_some(self.longest)
    }
}

impl From<&ArrayFill> for FillRow {
    fn from(fill: &ArrayFill) -> Self {
        Self {
            longest: fill.longest.into(),
            near_counts: fill.near.map(|cut| cut.count.into()),
            near_lengths: fill.near.map(|cut| cut.lengths.into()),
            has_one_value: u8::from(matches!(fill.value, ElementValue::One(_))),
            // Which shorter arrays were examined depends on the order of the threads.
            zero_ends: std::array::from_fn(|log| {
                let is_longer = 1 << log > fill.longest;
                fill.zero_ends.get(log).copied().filter(|_| is_longer).unwrap_or(0).into()
            }),
        }
    }
}

impl From<&FillRow> for ArrayFill {
    fn from(row: &FillRow) -> Self {
        let is_one = row.has_one_value != 0;
        Self {
            longest: row.longest.get(),
            near: std::array::from_fn(|before| {
                let number = |all: &[U64; NEAR]| all.get(before).map_or(0, |number| number.get());
                CutArrays { count: number(&row.near_counts), lengths: number(&row.near_lengths) }
            }),
            zero_ends: row.zero_ends.map(U64::get),
            // Which value it is decides nothing.
            value: if is_one { ElementValue::One([0; 8]) } else { ElementValue::Many },
        }
    }
}

/// Returns the size of an element in bytes.
fn width(element: BasicType) -> usize {
    element.dump_bytes(IdSize::Eight).max(1)
}

/// Returns the logarithm of a length to base 2, rounded down; 0 for 0.
fn log2(length: u32) -> usize {
    length.checked_ilog2().unwrap_or(0) as usize
}

/// Returns the number of bytes up to the last one that is not zero. Of a long array only its end and some samples are
/// examined, so that the result may be too low.
fn filled_bytes(elements: &[u8]) -> usize {
    if elements.len() <= WINDOW * WINDOWS {
        return elements.len() - zeros_at_end(elements);
    }
    for number in (1..=WINDOWS).rev() {
        let end = elements.len() / WINDOWS * number;
        // The last window ends where the array ends.
        let end = if number == WINDOWS { elements.len() } else { end };
        let window = elements.get(end - WINDOW..end).unwrap_or_default();
        let zeros = zeros_at_end(window);
        if zeros < window.len() {
            return end - zeros;
        }
    }
    // Most arrays that are filled partly are filled at their start.
    let start = elements.get(..elements.len() / WINDOWS).unwrap_or_default();
    start.len() - zeros_at_end(start)
}

/// Returns the number of zero bytes at the end.
pub fn zeros_at_end(bytes: &[u8]) -> usize {
    const ZEROS: [u8; 256] = [0; 256];
    let mut rest = bytes;
    while let Some((before, _)) = rest.split_last_chunk::<256>().filter(|(_, last)| **last == ZEROS) {
        rest = before;
    }
    let used = rest.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    bytes.len() - used
}

/// Smallest number of arrays beyond a limit.
const MIN_ARRAYS: u64 = 20;
/// Smallest number of elements beyond a limit.
const MIN_LOST: u64 = 512;
/// Number of arrays of different lengths that must be filled to a limit for text; for the other types, if text is limited too.
/// Arrays that a program fills partly do not end at one element, have one length, or are not the longest.
const FILLED_TO_LIMIT: u64 = 3;
/// Number of arrays of other types that must be filled to a limit if text is complete.
const FILLED_TO_LIMIT_ALONE: u64 = 20;
/// Number of different lengths (modulo 64) of arrays that are filled to a limit.
const MIN_LENGTHS: u64 = 8;
/// Smallest number of elements of all texts of a dump whose contents may be removed.
const MIN_ELEMENTS: u64 = 256;

/// What is left of the contents of primitive arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpContents {
    /// Everything, as far as can be seen.
    Complete,
    /// The first elements of each array.
    Limited,
    /// Nothing of texts.
    Removed,
}

impl DumpContents {
    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Limited => "limited",
            Self::Removed => "removed",
        }
    }
}

/// Contents of primitive arrays that a dump lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MissingContents {
    /// Number of elements of byte[] and char[] that are left; `None` if all are.
    pub text_limit: Option<u32>,
    /// Number of elements of the other types that are left; `None` if all are.
    pub number_limit: Option<u32>,
}

/// Arrays of the types that one limit applies to.
#[derive(Debug)]
struct ArrayGroup {
    fill: ArrayFill,
    /// Number of arrays that are not empty, except some.
    arrays: u64,
    elements: u64,
    /// `true` if the arrays of each type have one value.
    is_uniform: bool,
}

impl Default for ArrayGroup {
    fn default() -> Self {
        Self { fill: ArrayFill::default(), arrays: 0, elements: 0, is_uniform: true }
    }
}

impl ArrayGroup {
    /// Adds the arrays of a type.
    fn add(&mut self, fill: &ArrayFill, lengths: &Lengths<PRIMITIVE_LENGTHS>) {
        self.fill.merge(fill);
        // Lengths are counted modulo 256: arrays of 256 elements cannot be told from empty ones.
        let counts = lengths.by_length.iter().skip(1);
        self.arrays = counts.fold(self.arrays, |sum, count| sum.saturating_add(*count));
        self.elements = self.elements.saturating_add(lengths.elements);
        self.is_uniform &= lengths.elements == 0 || matches!(fill.value, ElementValue::One(_));
    }
}

/// Returns `true` for the types of characters, which have a limit of their own.
fn is_text(element: BasicType) -> bool {
    matches!(element, BasicType::Byte | BasicType::Char)
}

impl MissingContents {
    /// All contents are missing.
    pub(crate) const REMOVED: Self = Self { text_limit: Some(0), number_limit: Some(0) };

    /// Infers what is missing.
    ///
    /// `fills` and `lengths` are in the order of [`BasicType::PRIMITIVES`]. `strings` is the number of java.lang.Strings: a
    /// dump without any may contain no text.
    pub(crate) fn infer(
        fills: &[ArrayFill],
        lengths: impl Fn(BasicType) -> Lengths<PRIMITIVE_LENGTHS>,
        strings: u64,
    ) -> Self {
        let [mut text, mut numbers] = [ArrayGroup::default(), ArrayGroup::default()];
        for (element, fill) in BasicType::PRIMITIVES.into_iter().zip(fills) {
            let group = if is_text(element) { &mut text } else { &mut numbers };
            group.add(fill, &lengths(element));
        }
        let is_removed = text.is_uniform
            && text.arrays >= MIN_ARRAYS
            && text.elements >= MIN_ELEMENTS
            && strings >= MIN_ARRAYS;
        let text_limit = if is_removed { Some(0) } else { text.fill.limit(FILLED_TO_LIMIT) };
        let number_limit = match text_limit {
            Some(_) if numbers.fill.longest == 0 => (numbers.arrays >= MIN_ARRAYS).then_some(0),
            Some(_) => numbers.fill.limit(FILLED_TO_LIMIT),
            None => numbers.fill.limit(FILLED_TO_LIMIT_ALONE),
        };
        Self { text_limit, number_limit }
    }

    /// Returns what is left as a whole.
    pub fn contents(&self) -> DumpContents {
        match (self.text_limit, self.number_limit) {
            (Some(0), _) => DumpContents::Removed,
            (None, None) => DumpContents::Complete,
            _ => DumpContents::Limited,
        }
    }

    /// Returns the number of elements that are left of an array of this type; `None` if all are.
    pub fn limit(&self, element: BasicType) -> Option<u32> {
        if is_text(element) { self.text_limit } else { self.number_limit }
    }

    /// Returns `true` if elements of an array of this type and length are missing.
    #[inline]
    pub fn has_lost(&self, element: BasicType, length: u32) -> bool {
        self.limit(element).is_some_and(|limit| length > limit)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::cast_possible_truncation)]
mod tests {
    use super::*;
    use crate::model::measurements::array_kind;

    #[test]
    fn zeros_are_counted_from_the_end() {
        let mut bytes = vec![0; 1000];
        assert_eq!((zeros_at_end(&bytes), zeros_at_end(&[]), zeros_at_end(&[1])), (1000, 0, 0));
        for at in [0, 1, 743, 744, 745, 998, 999] {
            bytes.fill(0);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = 1;
            }
            assert_eq!(zeros_at_end(&bytes), 999 - at, "{at}");
        }
    }

    /// Returns bytes of this length, of which the first are filled.
    fn partly_filled(length: usize, filled: usize) -> Vec<u8> {
        (0..length).map(|at| if at < filled { (at % 7 + 1) as u8 } else { 0 }).collect()
    }

    /// Returns the contents that a dump with these byte[] and ints lacks, and many Strings.
    fn missing(bytes: &[Vec<u8>], ints: &[Vec<u8>]) -> MissingContents {
        let mut fills: [ArrayFill; 8] = Default::default();
        let mut lengths: [Lengths<PRIMITIVE_LENGTHS>; 8] = Default::default();
        let all = bytes.iter().map(|array| (BasicType::Byte, array, array.len()));
        for (element, array, length) in
            all.chain(ints.iter().map(|array| (BasicType::Int, array, array.len() / 4)))
        {
            let (at, length) = (array_kind(element) - 1, u32::try_from(length).unwrap());
            fills.get_mut(at).unwrap().see(element, length, array);
            lengths.get_mut(at).unwrap().see(length);
        }
        // What is written is what is read.
        let read: Vec<ArrayFill> = fills.iter().map(|fill| ArrayFill::from(&FillRow::from(fill))).collect();
        MissingContents::infer(&read, |element| lengths.get(array_kind(element) - 1).unwrap().clone(), 1000)
    }

    fn limits(text_limit: Option<u32>, number_limit: Option<u32>) -> MissingContents {
        MissingContents { text_limit, number_limit }
    }

    #[test]
    fn a_limit_is_where_arrays_of_many_lengths_end() {
        let texts: Vec<_> = (1..100).map(|at| partly_filled(at * 7, (at * 7).min(120))).collect();
        assert_eq!(missing(&texts, &[]), limits(Some(120), None));
        let ints: Vec<_> = (1..100).map(|at| partly_filled(at * 32, (at * 32).min(80))).collect();
        assert_eq!(missing(&texts, &ints), limits(Some(120), Some(20)));
        assert_eq!(missing(&texts, &ints).contents(), DumpContents::Limited);
        let cut = missing(&texts, &ints);
        assert!(cut.has_lost(BasicType::Byte, 121) && !cut.has_lost(BasicType::Char, 120));
        // Of the other types, 20 arrays must end at the limit if texts are complete.
        let whole: Vec<_> = (1..100).map(|at| partly_filled(at * 7, at * 7)).collect();
        assert_eq!(missing(&whole, &ints), limits(None, Some(20)));
        assert_eq!(missing(&whole, ints.get(..12).unwrap()), limits(None, None));
    }

    #[test]
    fn one_long_array_shows_that_there_is_no_limit() {
        let mut texts: Vec<_> = (1..100).map(|at| partly_filled(at * 7, (at * 7).min(120))).collect();
        texts.push(partly_filled(200_000, 199_990));
        assert_eq!(missing(&texts, &[]), limits(None, None));
    }

    #[test]
    fn buffers_of_one_length_are_no_limit() {
        let texts = (1..100).map(|at| partly_filled(at, at));
        // Half full, or empty.
        let buffers =
            (0..100).map(|_| partly_filled(8192, 4000)).chain((0..500).map(|_| partly_filled(65_536, 0)));
        assert_eq!(missing(&texts.chain(buffers).collect::<Vec<_>>(), &[]), limits(None, None));
    }

    #[test]
    fn one_value_everywhere_is_no_text() {
        let zeros: Vec<_> = (1..100).map(|at| vec![0; at]).collect();
        assert_eq!(missing(&zeros, &[]), limits(Some(0), None));
        assert_eq!(missing(&zeros, &[]).contents(), DumpContents::Removed);
        let mut marks: Vec<_> = (1..100).map(|at| vec![b'?'; at]).collect();
        let ints = vec![vec![0; 16]; 30];
        assert_eq!(missing(&marks, &ints), limits(Some(0), Some(0)));
        marks.push(b"text".to_vec());
        assert_eq!(missing(&marks, &ints), limits(None, None));
    }

    #[test]
    fn long_arrays_are_sampled() {
        let length = WINDOW * 100 + 3;
        assert_eq!(filled_bytes(&partly_filled(length, length)), length);
        assert_eq!(filled_bytes(&partly_filled(length, 0)), 0);
        assert_eq!(filled_bytes(&partly_filled(length, 10)), 10);
        // Between two windows: the result is too low.
        let half = filled_bytes(&partly_filled(length, length / 2 + 9000));
        assert!(half > length / 2 - WINDOW && half <= length / 2 + 9000, "{half}");
    }

    #[test]
    fn order_and_threads_do_not_matter() {
        let arrays: Vec<_> = (1..200).map(|at| partly_filled(at * 5, (at * 5).min(50))).collect();
        let row = |fill: &ArrayFill| ArrayFill::from(&FillRow::from(fill));
        let see = |arrays: &mut dyn Iterator<Item = &Vec<u8>>| {
            let mut fill = ArrayFill::default();
            arrays.for_each(|array| {
                fill.see(BasicType::Byte, u32::try_from(array.len()).unwrap(), array);
            });
            fill
        };
        let forward = see(&mut arrays.iter());
        let mut halves = see(&mut arrays.iter().skip(100));
        halves.merge(&see(&mut arrays.iter().take(100)));
        assert_eq!(row(&forward), row(&see(&mut arrays.iter().rev())));
        assert_eq!(row(&forward), row(&halves));
    }
}
