//! Mapping of the contents of primitive arrays. Images depend on the key, the type of the elements, their number and their
//! values, but not on the holder of the array. Equal arrays have equal images, and different ones different images.
//!
//! Let D be all arrays of a type and length whose elements have the same classes, position by position. `cipher` is a
//! permutation of D. Some arrays must not change (kept texts), and arrays of one repeated value must be mapped to such arrays,
//! for which there is another permutation. An array whose image would be one of these is permuted again until it is not: that
//! is a permutation of the other arrays of D.

use hprof_values::BasicType;

use super::bytes::BLOCK;
use super::cipher::{Cipher, SHORT, absorb};
use super::kept::KeptValues;
use super::symbol::{Symbol, class_of, class_of_box};
use hprof_base::keyed::Key;

/// Treatment of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    /// Not changed: all elements are zero, or all are `true`.
    Nothing,
    /// Not changed: a kept text.
    Kept,
    /// One repeated value, replaced by another one.
    Repeated,
    /// Mapped by the permutation.
    Mapped,
}

/// State of mapping an array block by block.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockChain {
    /// Number of elements of the array.
    length: u64,
    /// Derived from the previous blocks; 0 for the first block.
    before: u64,
    is_single: bool,
    /// Number derived from the object if the image depends on it, otherwise 0.
    holder: u64,
}

impl BlockChain {
    pub(super) fn new(length: u64, bytes: u64) -> Self {
        Self { length, before: 0, is_single: bytes <= BLOCK as u64, holder: 0 }
    }

    /// Makes the image depend on an object, by the number from [`ContentMapping::holder`].
    pub(super) fn of_holder(self, holder: u64) -> Self {
        Self { before: holder, holder, ..self }
    }
}

/// Mapping of contents and numbers.
#[derive(Debug)]
pub(super) struct ContentMapping {
    cipher: Cipher,
}

/// Tweak of the values of arrays of one repeated value.
const REPEATED: u64 = 1 << 8;
/// Tweak of the values of boxes.
const BOXED: u64 = 3 << 8;
/// Tweak of cached hashes.
const HASH: u64 = 4 << 8;
/// Tweak of the offsets of fields.
const FIELD: u64 = 5 << 8;
/// Tweak of the numbers of objects.
const HOLDER: u64 = 6 << 8;

impl ContentMapping {
    pub(super) fn new(key: Key) -> Self {
        Self { cipher: Cipher::new(key) }
    }

    /// Returns the offset of a field, from the hash of its name: the image of a number differs between fields, so a known image
    /// in one field reveals nothing about others.
    pub(super) fn offset(&self, field: u64) -> u64 {
        let mut offset = self.cipher.tweak();
        offset.word(FIELD);
        offset.word(field);
        offset.finish().next_word()
    }

    /// Returns a number for an object, on which the image of its contents may depend.
    pub(super) fn holder(&self, id: u64) -> u64 {
        let mut state = self.cipher.tweak();
        state.word(HOLDER);
        state.word(id);
        state.finish().next_word()
    }

    /// Returns the image of the value of a field.
    #[inline(always)]
    pub(super) fn number(&self, kind: BasicType, bits: u64, offset: u64) -> u64 {
        if kind == BasicType::Boolean {
            return u64::from(bits != 0);
        }
        let class = class_of(kind, bits);
        self.cipher.number(class, kind, class.advance(bits, offset % class.radix))
    }

    /// Returns the image of a cached hash: the same in all fields, unless it depends on the object (`holder` is not 0).
    pub(super) fn hash(&self, kind: BasicType, bits: u64, holder: u64) -> u64 {
        self.cipher.value(class_of(kind, bits), (HASH | u64::from(kind.code())) ^ holder, bits)
    }

    /// Returns the image of the value of a box.
    pub(super) fn box_value(&self, kind: BasicType, bits: u64, holder: u64) -> u64 {
        if kind == BasicType::Boolean {
            return u64::from(bits != 0);
        }
        self.cipher.value(class_of_box(kind, bits), (BOXED | u64::from(kind.code())) ^ holder, bits)
    }

    /// Replaces the elements of an array, or of its next block, by their image.
    pub(super) fn array(
        &self,
        kept: &KeptValues,
        kind: BasicType,
        chain: &mut BlockChain,
        data: &mut [u8],
    ) -> Treatment {
        match kind {
            BasicType::Boolean => self.booleans(chain, data),
            BasicType::Byte => self.elements::<u8>(kept, BasicType::Byte, chain, data),
            BasicType::Char => self.elements::<u16>(kept, BasicType::Char, chain, data),
            BasicType::Short => self.elements::<u16>(kept, BasicType::Short, chain, data),
            BasicType::Float => self.elements::<u32>(kept, BasicType::Float, chain, data),
            BasicType::Int => self.elements::<u32>(kept, BasicType::Int, chain, data),
            BasicType::Double => self.elements::<u64>(kept, BasicType::Double, chain, data),
            BasicType::Long | BasicType::Object => self.elements::<u64>(kept, BasicType::Long, chain, data),
        }
    }

    /// Replaces zeros and ones by others. Arrays of one repeated value do not change, since there is no other value.
    fn booleans(&self, chain: &mut BlockChain, data: &mut [u8]) -> Treatment {
        // A byte may have any other value.
        data.iter_mut().for_each(|value| *value = u8::from(*value != 0));
        let before = chain.before;
        self.go_on(chain, data);
        if is_all_same(data) {
            return Treatment::Nothing;
        }
        let mut tweak = self.cipher.tweak();
        tweak.word(chain.length);
        tweak.word(before);
        let tweak = tweak.finish().next_word();
        loop {
            self.cipher.booleans(tweak, data);
            if !is_all_same(data) {
                return Treatment::Mapped;
            }
        }
    }

    /// Makes the image of the next block depend on this one.
    #[inline(always)]
    fn go_on(&self, chain: &mut BlockChain, data: &[u8]) {
        if !chain.is_single {
            let mut next = self.cipher.tweak();
            next.word(chain.before);
            absorb::<u8>(&mut next, data);
            // Never 0, which marks the first block.
            chain.before = next.finish().next_word() | 1;
        }
    }

    #[inline(always)]
    fn elements<S: Symbol>(
        &self,
        kept: &KeptValues,
        kind: BasicType,
        chain: &mut BlockChain,
        data: &mut [u8],
    ) -> Treatment {
        let BlockChain { is_single, length, before, holder } = *chain;
        self.go_on(chain, data);
        let Some(last) = data.iter().rposition(|byte| *byte != 0) else { return Treatment::Nothing };
        if is_single && kept.contains(kind, data) {
            return Treatment::Kept;
        }
        let is_kept = |data: &[u8]| is_single && kept.collides(kind, data);
        if let Some(value) = repeated_value::<S>(data) {
            let class = class_of(kind, value.bits());
            if class.is_fixed() {
                return Treatment::Nothing;
            }
            let mut value = value.bits();
            loop {
                value = self.cipher.value(
                    class,
                    (REPEATED | u64::from(kind.code()) | length << 16) ^ holder,
                    value,
                );
                data.chunks_exact_mut(S::BYTES).for_each(|element| S::of_bits(value).put(element));
                if !is_kept(data) {
                    return Treatment::Repeated;
                }
            }
        }
        let is_short = (2..=SHORT).contains(&data.len());
        if kind == BasicType::Byte && is_short && is_single && holder == 0 && !data.contains(&0) {
            // Most Strings are permuted in place.
            while self.cipher.short_bytes(data) {
                if !is_all_same(data) && !is_kept(data) {
                    return Treatment::Mapped;
                }
            }
        }
        let used = (last / S::BYTES + 1) * S::BYTES;
        let mut short = [S::ZERO; SHORT];
        let mut long = Vec::new();
        let (values, pattern) =
            self.gather::<S>(kind, data.get(..used).unwrap_or_default(), &mut short, &mut long);
        if values.is_empty() {
            return Treatment::Nothing;
        }
        let has_all = values.len() * S::BYTES == data.len();
        let tweak = (!has_all || !is_single || holder != 0).then(|| {
            let mut tweak = self.cipher.tweak();
            for word in [u64::from(kind.code()), length, values.len() as u64, pattern, before] {
                tweak.word(word);
            }
            tweak.finish().next_word()
        });
        loop {
            self.cipher.sequence(kind, tweak, values);
            if has_all && is_all_same(values) && values.len() > 1 {
                continue;
            }
            scatter(kind, values, data.get_mut(..used).unwrap_or_default());
            if !is_kept(data) {
                return Treatment::Mapped;
            }
        }
    }

    /// Returns the values that are not alone in their class, and a hash of the positions of the other values.
    #[inline(always)]
    fn gather<'v, S: Symbol>(
        &self,
        kind: BasicType,
        data: &[u8],
        short: &'v mut [S; SHORT],
        long: &'v mut Vec<S>,
    ) -> (&'v mut [S], u64) {
        let elements = || data.chunks_exact(S::BYTES).map(S::get);
        let is_fixed = |value: &S| class_of(kind, value.bits()).is_fixed();
        if !elements().any(|value| is_fixed(&value)) {
            if let Some(values) = short.get_mut(..data.len() / S::BYTES) {
                values.iter_mut().zip(elements()).for_each(|(value, element)| *value = element);
                return (values, 0);
            }
            long.extend(elements());
            return (long, 0);
        }
        // Written without branches: whether the next element is fixed cannot be predicted.
        long.resize(data.len() / S::BYTES, S::ZERO);
        let mut count = 0;
        let mut pattern = self.cipher.tweak();
        for chunk in data.chunks(S::BYTES * 64) {
            let mut bits = 0_u64;
            for value in chunk.chunks_exact(S::BYTES).map(S::get) {
                let is_fixed = is_fixed(&value);
                bits = bits << 1 | u64::from(is_fixed);
                if let Some(place) = long.get_mut(count) {
                    *place = value;
                }
                count += usize::from(!is_fixed);
            }
            pattern.word(bits);
        }
        long.truncate(count);
        (long, pattern.finish().next_word())
    }
}

#[inline(always)]
fn scatter<S: Symbol>(kind: BasicType, values: &[S], data: &mut [u8]) {
    if values.len() * S::BYTES == data.len() {
        data.chunks_exact_mut(S::BYTES).zip(values).for_each(|(element, value)| value.put(element));
        return;
    }
    let mut at = 0;
    for element in data.chunks_exact_mut(S::BYTES) {
        let before = S::get(element);
        let is_fixed = class_of(kind, before.bits()).is_fixed();
        let next = values.get(at).copied().unwrap_or(S::ZERO);
        (if is_fixed { before } else { next }).put(element);
        at += usize::from(!is_fixed);
    }
}

fn is_all_same<S: Symbol>(values: &[S]) -> bool {
    values.split_first().is_some_and(|(first, rest)| rest.iter().all(|value| value == first))
}

/// Returns the value of all elements if they are equal.
#[inline(always)]
fn repeated_value<S: Symbol>(data: &[u8]) -> Option<S> {
    let mut elements = data.chunks_exact(S::BYTES).map(S::get);
    let first = elements.next()?;
    elements.all(|value| value == first).then_some(first)
}
