//! Address index: maps object IDs to dense object indices, in address order.
//!
//! One bit per alignment unit of the address space, in lines of 64 bytes: the first word of a line is the
//! number of objects before the line, the other seven words are 448 bits. A lookup touches one cache line.
//! Chunks of 1.75 MiB (at 8 bytes per bit) without objects are not stored.
//!
//! IDs that are too scattered for bits (hostile files; no known JVM) are stored as an ascending list.

use std::io;

use zerocopy::little_endian::U64;

use super::id_set::{AddressSet, CHUNK_LINES, CHUNK_WORDS, LINE_WORDS, Position};
use crate::graph::numbers::ObjectIndex;
use crate::storage::checked_column::{BLOCK_BYTES, CheckedColumn};
use crate::storage::column::IndexColumn;
use crate::storage::prefetch::prefetch;
use crate::storage::scratch::ScratchArena;
use hprof_values::ObjectId;

/// Error for more objects than an index can number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the heap dump contains {0} objects; at most 4294967294 can be indexed")]
pub struct TooManyObjects(pub u64);

/// Mapping of object IDs to object indices.
#[derive(Debug)]
pub struct AddressIndex {
    /// Addresses are multiples of `1 << shift`.
    pub(crate) shift: u32,
    /// Number of objects.
    pub(crate) objects: u32,
    /// Chunks of the address space that contain objects, ascending. Empty if `ids` is used.
    pub(crate) keys: IndexColumn<U64>,
    /// Lines of those chunks.
    pub(crate) lines: CheckedColumn<U64>,
    /// IDs, ascending, if they are stored as a list.
    pub(crate) ids: CheckedColumn<U64>,
    /// `true` if `keys` are consecutive numbers.
    contiguous: bool,
}

impl AddressIndex {
    /// Creates an index from its columns.
    pub(crate) fn new(
        shift: u32,
        objects: u32,
        keys: IndexColumn<U64>,
        lines: CheckedColumn<U64>,
        ids: CheckedColumn<U64>,
    ) -> Self {
        let span = keys.first().zip(keys.last()).map(|(first, last)| last.get().wrapping_sub(first.get()));
        let contiguous = span.is_some_and(|span| span == keys.len() as u64 - 1);
        Self { shift, objects, keys, lines, ids, contiguous }
    }

    /// Creates an index from a finished set, with the number of objects before each line.
    pub(crate) fn of_set(set: AddressSet, room: &ScratchArena) -> io::Result<Result<Self, TooManyObjects>> {
        let shift = set.shift();
        let chunks = set.into_chunks();
        let mut keys = Vec::with_capacity(chunks.len());
        let mut lines = room.array::<U64>(chunks.len() * CHUNK_WORDS)?;
        let mut places = lines.chunks_exact_mut(LINE_WORDS);
        let mut objects = 0u64;
        for (key, words) in chunks {
            keys.push(U64::new(key));
            for (line, [rank, bits @ ..]) in words
                .chunks_exact(LINE_WORDS)
                .zip(places.by_ref().filter_map(|place| place.first_chunk_mut::<LINE_WORDS>()))
            {
                *rank = objects.into();
                for (word, place) in line.iter().skip(1).zip(bits) {
                    objects += u64::from(word.count_ones());
                    *place = (*word).into();
                }
            }
        }
        Ok(checked_count(objects)
            .map(|objects| Self::new(shift, objects, keys.into(), lines.into(), CheckedColumn::default())))
    }

    /// Creates an index of ascending IDs.
    pub(crate) fn of_list(ids: &[u64], room: &ScratchArena) -> io::Result<Result<Self, TooManyObjects>> {
        let mut column = room.array::<U64>(ids.len())?;
        column.iter_mut().zip(ids).for_each(|(place, id)| *place = (*id).into());
        let objects = checked_count(ids.len() as u64);
        Ok(objects.map(|objects| {
            Self::new(0, objects, IndexColumn::default(), CheckedColumn::default(), column.into())
        }))
    }

    /// Reads and checks all columns; damage sets the mark of the file.
    pub(crate) fn check(&self) {
        self.lines.all();
        self.ids.all();
    }

    /// Returns the number of objects.
    pub fn objects(&self) -> u32 {
        self.objects
    }

    /// Returns the object index of an ID, if the dump contains the object.
    #[inline]
    pub fn index_of(&self, id: ObjectId) -> Option<ObjectIndex> {
        if !self.ids.is_empty() {
            return self.search(id.0).map(ObjectIndex);
        }
        let place = self.place(id.0)?;
        rank(self.lines.rows(place.start..place.start + LINE_WORDS)?, place.bit).map(ObjectIndex)
    }

    /// Returns the location of the bit of an ID, if a chunk exists for it.
    #[inline(always)]
    fn place(&self, id: u64) -> Option<LinePlace> {
        if id & ((1 << self.shift) - 1) != 0 {
            return None;
        }
        let position = Position::new(id, self.shift);
        let chunk = if self.contiguous {
            usize::try_from(position.key.checked_sub(self.keys.first()?.get())?).ok()?
        } else {
            self.keys.binary_search_by_key(&position.key, |key| key.get()).ok()?
        };
        let start = chunk.checked_mul(CHUNK_WORDS)?.checked_add(position.line)?;
        Some(LinePlace { start, bit: position.bit })
    }

    /// Returns a finder for looking up many IDs. Checks the whole index first.
    pub fn finder(&self) -> AddressFinder<'_> {
        AddressFinder { index: self, lines: self.lines.all() }
    }

    /// Returns an iterator-like reader of the IDs of many objects. Checks the whole index first.
    pub fn ids(&self) -> IdReader<'_> {
        IdReader { index: self, lines: self.lines.all(), line: 0 }
    }

    /// Returns the position of an ID in the list of IDs.
    fn search(&self, id: u64) -> Option<u32> {
        let (mut low, mut high) = (0, self.ids.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.ids.get(middle)?.get().cmp(&id) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return u32::try_from(middle).ok(),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Returns the ID of an object index.
    pub fn id_of(&self, object: ObjectIndex) -> Option<ObjectId> {
        let index = object.0;
        if index >= self.objects {
            return None;
        }
        if !self.ids.is_empty() {
            return self.ids.get(object.at()).map(|id| (*id).into());
        }
        let line = self.line_of(index);
        self.id_in(line, self.lines.rows(line * LINE_WORDS..(line + 1) * LINE_WORDS)?, index)
    }

    /// Returns the line of an object index.
    ///
    /// Each line that is read may be in another block of the file, which is read and checked, so the search
    /// reads as few lines as possible. Interpolation search (Y. Perl, A. Itai, H. Avni: "Interpolation search -
    /// a log log n search", 1978); every second guess aims beyond the wanted line, so that it is soon enclosed.
    fn line_of(&self, index: u32) -> usize {
        let index = u64::from(index);
        let before = |line: usize| self.lines.get(line * LINE_WORDS).map_or(u64::MAX, |rank| rank.get());
        // Two lines with the number of objects before each: the last line known to start at or before the
        // object, and the first one after it.
        let (mut low, mut high) = ((0, 0), (self.lines.len() / LINE_WORDS, u64::from(self.objects)));
        let (mut guesses, mut is_low) = (0, true);
        while low.0 + 1 < high.0 {
            let lines = high.0 - low.0;
            let step = if guesses < MAX_GUESSES && lines > NEAR {
                guesses += 1;
                let share = (lines as u64).saturating_mul(index - low.1) / (high.1 - low.1).max(1);
                let about = usize::try_from(share).unwrap_or(lines).min(lines);
                match (guesses % 2, is_low) {
                    (1, _) => about,
                    // If the previous guess was too low, the next one is biased upwards, and vice versa.
                    (_, true) => about + about / 4 + NEAR / 2,
                    (_, false) => about.saturating_sub((lines - about) / 4 + NEAR / 2),
                }
            } else {
                lines / 2
            };
            let line = low.0 + step.clamp(1, lines - 1);
            let rank = before(line);
            is_low = rank <= index;
            if is_low { low = (line, rank) } else { high = (line, rank) }
        }
        low.0
    }

    /// Returns the ID of the object with this index, whose bit is in the line.
    fn id_in(&self, line: usize, words: &[U64], index: u32) -> Option<ObjectId> {
        let [before, words @ ..]: &[U64; LINE_WORDS] = words.first_chunk()?;
        let mut left = u64::from(index).checked_sub(before.get())?;
        for (word, bits) in (0u64..).zip(words) {
            let bits = bits.get();
            if left < u64::from(bits.count_ones()) {
                let bit = u64::from(select(bits, left));
                let chunk = line as u64 / CHUNK_LINES;
                let key = self.keys.get(usize::try_from(chunk).ok()?)?.get();
                let line = key.checked_mul(CHUNK_LINES)?.checked_add(line as u64 % CHUNK_LINES)?;
                let granule = line.checked_mul(super::id_set::LINE_BITS)?.checked_add(word * 64 + bit)?;
                return granule.checked_mul(1 << self.shift).map(ObjectId);
            }
            left -= u64::from(bits.count_ones());
        }
        None
    }
}

/// Number of lines in about one block.
const NEAR: usize = BLOCK_BYTES / (LINE_WORDS * 8);
/// Number of guesses before the search continues by bisection.
const MAX_GUESSES: u32 = 6;

/// Returns the last of the given lines that starts at or before an object index, or the first line if none does.
#[inline]
fn last_line(lines: std::ops::Range<usize>, index: u32, before: impl Fn(usize) -> u64) -> usize {
    let (mut low, mut high) = (lines.start, lines.end);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if before(middle) <= u64::from(index) { low = middle } else { high = middle }
    }
    low
}

/// Reader of the IDs of objects in ascending order: each is in the line of the previous object or shortly after
/// it.
#[derive(Debug, Clone)]
pub struct IdReader<'a> {
    index: &'a AddressIndex,
    lines: &'a [U64],
    /// Line of the previous object.
    line: usize,
}

impl IdReader<'_> {
    /// Returns the ID of an object, which must not precede the previous one.
    #[inline]
    pub fn next(&mut self, object: ObjectIndex) -> Option<ObjectId> {
        if !self.index.ids.is_empty() || object.0 >= self.index.objects {
            return self.index.id_of(object);
        }
        let before = |line: usize| self.lines.get(line * LINE_WORDS).map_or(u64::MAX, |rank| rank.get());
        // Exponential search: steps that double until one is too far (J. L. Bentley, A. C.-C. Yao: An almost optimal
        // algorithm for unbounded searching, 1976).
        let mut step = 1;
        while before(self.line + step) <= u64::from(object.0) {
            step *= 2;
        }
        self.line = last_line(self.line + step / 2..self.line + step, object.0, before);
        self.index.id_in(self.line, self.lines.get(self.line * LINE_WORDS..)?, object.0)
    }
}

/// Location of a bit in a line.
#[derive(Debug, Clone, Copy)]
struct LinePlace {
    /// First word of the line.
    start: usize,
    bit: u32,
}

/// Returns the number of set bits before a set bit, including those before its line.
#[inline(always)]
fn rank(line: &[U64], bit: u32) -> Option<u32> {
    let [before, bits @ ..]: &[U64; LINE_WORDS] = line.first_chunk()?;
    let (word, mask) = ((bit / 64) as usize, 1u64 << (bit % 64));
    let own = bits.get(word)?.get();
    if own & mask == 0 {
        return None;
    }
    let full: u32 = bits.iter().take(word).map(|bits| bits.get().count_ones()).sum();
    let rank = before.get().saturating_add(u64::from(full + (own & (mask - 1)).count_ones()));
    u32::try_from(rank).ok()
}

/// Looks up many IDs, with prefetching, as each lookup waits for memory.
#[derive(Debug, Clone, Copy)]
pub struct AddressFinder<'a> {
    index: &'a AddressIndex,
    lines: &'a [U64],
}

/// Distance in IDs at which lines are prefetched.
const AHEAD: usize = 16;

impl AddressFinder<'_> {
    /// Calls `found` with the object index of each ID, in order.
    #[inline]
    pub fn find(&self, ids: &[ObjectId], mut found: impl FnMut(Option<ObjectIndex>)) {
        if !self.index.ids.is_empty() {
            ids.iter().for_each(|id| found(self.index.search(id.0).map(ObjectIndex)));
            return;
        }
        let mut ahead = [None; AHEAD];
        let ask = |id: Option<&ObjectId>| {
            let place = id.and_then(|id| self.index.place(id.0));
            if let Some(place) = place {
                prefetch(self.lines, place.start);
            }
            place
        };
        for (slot, id) in ahead.iter_mut().zip(ids) {
            *slot = ask(Some(id));
        }
        for at in 0..ids.len() {
            let Some(slot) = ahead.get_mut(at % AHEAD) else { return };
            let place = std::mem::replace(slot, ask(ids.get(at + AHEAD)));
            found(place.and_then(|place| {
                rank(self.lines.get(place.start..place.start + LINE_WORDS)?, place.bit).map(ObjectIndex)
            }));
        }
    }
}

fn checked_count(objects: u64) -> Result<u32, TooManyObjects> {
    u32::try_from(objects).ok().filter(|objects| *objects < u32::MAX).ok_or(TooManyObjects(objects))
}

/// Returns the position of the `nth` set bit, from 0.
fn select(bits: u64, nth: u64) -> u32 {
    (0..nth).fold(bits, |bits, _| bits & bits.wrapping_sub(1)).trailing_zeros()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::storage::allowance::Allowance;

    fn room() -> ScratchArena {
        ScratchArena::new(std::env::temp_dir(), 1 << 30)
    }

    fn ids() -> Vec<u64> {
        let mut state = 7u64;
        let mut ids: Vec<u64> = (0..3000u64)
            .map(|i| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (0x6_0000_0000 + (i / 500) * (40 << 20) + ((state >> 40) % (1 << 20))) & !7
            })
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    #[test]
    fn bits_and_list_number_ids_in_address_order() {
        let ids = ids();
        for shift in [0, 3] {
            let set = AddressSet::new(shift, 1 << 30);
            let mut cursor = set.cursor();
            for id in ids.iter().rev() {
                cursor.insert(*id, &mut Vec::new(), &Allowance::new(None)).unwrap();
            }
            cursor.flush(&mut Vec::new(), &Allowance::new(None)).unwrap();
            drop(cursor);
            check(&AddressIndex::of_set(set, &room()).unwrap().unwrap(), &ids);
        }
        check(&AddressIndex::of_list(&ids, &room()).unwrap().unwrap(), &ids);
    }

    fn check(index: &AddressIndex, ids: &[u64]) {
        assert_eq!(index.objects() as usize, ids.len());
        for (number, id) in (0u32..).zip(ids) {
            assert_eq!(index.index_of(ObjectId(*id)), Some(ObjectIndex(number)));
            assert_eq!(index.id_of(ObjectIndex(number)), Some(ObjectId(*id)));
            assert_eq!(index.index_of(ObjectId(id + 1)), None);
        }
        for outside in [0, 8, u64::MAX, !7, 1 << 62] {
            assert_eq!(index.index_of(ObjectId(outside)), None);
        }
        assert_eq!(index.id_of(ObjectIndex(index.objects())), None);
        for step in [1, 2, 7, 100, 1 << 20] {
            let (mut said, all) = (index.ids(), (0u32..).zip(ids).step_by(step));
            all.for_each(|(number, id)| assert_eq!(said.next(ObjectIndex(number)), Some(ObjectId(*id))));
            assert_eq!(said.next(ObjectIndex(index.objects())), None);
        }
    }

    /// Objects that are dense on one side and sparse on the other: a guess of a position is wrong.
    #[test]
    fn lines_are_found_where_objects_lie_unevenly() {
        let dense = (0..50_000u64).map(|i| i * 8);
        let sparse = (0..60u64).map(|i| (i + 1) << 21);
        let [after, before] = [(0, 1 << 28), (1 << 28, 0)].map(|(first, second)| {
            let mut ids: Vec<u64> = dense.clone().map(|id| id + first + 8).collect();
            ids.extend(sparse.clone().map(|id| id + second));
            ids.sort_unstable();
            ids
        });
        for ids in [after, before] {
            let set = AddressSet::new(3, 1 << 30);
            let mut cursor = set.cursor();
            ids.iter().for_each(|id| cursor.insert(*id, &mut Vec::new(), &Allowance::new(None)).unwrap());
            cursor.flush(&mut Vec::new(), &Allowance::new(None)).unwrap();
            drop(cursor);
            let index = AddressIndex::of_set(set, &room()).unwrap().unwrap();
            assert!(index.lines.len() / LINE_WORDS > 10 * NEAR);
            for (number, id) in (0u32..).zip(&ids) {
                assert_eq!(index.id_of(ObjectIndex(number)), Some(ObjectId(*id)));
            }
        }
    }

    #[test]
    fn more_objects_than_numbers_are_refused() {
        // 2^32 - 2 objects: the last number that 32 bits hold means none.
        assert_eq!(checked_count(4_294_967_294), Ok(4_294_967_294));
        for many in [4_294_967_295, 4_294_967_296, u64::MAX] {
            let error = checked_count(many).unwrap_err();
            assert_eq!(error, TooManyObjects(many));
            let text = error.to_string();
            assert!(text.contains(&many.to_string()) && text.contains("at most 4294967294"), "{text}");
        }
    }

    #[test]
    fn an_empty_index_finds_nothing() {
        let index = AddressIndex::of_set(AddressSet::new(3, 0), &room()).unwrap().unwrap();
        assert_eq!(
            (index.objects(), index.index_of(ObjectId(8)), index.id_of(ObjectIndex(0))),
            (0, None, None)
        );
    }
}
