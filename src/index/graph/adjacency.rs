//! Compressed adjacency lists: for each node an ascending list of other nodes.
//!
//! Lists are gap-coded: the first target is stored as its signed distance from the node itself (zigzag), each
//! further target as its distance from the previous one minus one; all as LEB128, 7 bits per byte. References
//! in a heap mostly lead to neighbors, so most take one or two bytes. The scheme is that of WebGraph without
//! its reference copying (P. Boldi, S. Vigna: The WebGraph Framework I: Compression Techniques, WWW 2004).
//!
//! The lists of 16 nodes form a group: 16 bytes with the length of each list in bytes, followed by the lists.
//! A list of 255 bytes or more has length 255 there and starts with its real length in five bytes. A group of
//! empty lists takes no bytes. A table stores the offset of each group, so a lookup touches one entry and one
//! or two neighboring cache lines.

use std::ops::Range;

use zerocopy::little_endian::U64;

use super::numbers::{NONE, ObjectIndex};
use crate::storage::checked_column::CheckedColumn;
use crate::storage::prefetch::prefetch;

/// Number of objects in a group.
pub const GROUP: u32 = 16;
pub(super) const GROUP_BYTES: usize = GROUP as usize;
/// Length byte that marks a long list.
const LONG: u8 = 255;
/// Size of the length field of a long list, in bytes.
const LONG_BYTES: usize = 5;

/// Adjacency lists, in memory or in an index file.
#[derive(Debug, Default)]
pub struct AdjacencyLists {
    /// Offsets of the groups in `bytes`, followed by the length of `bytes`.
    pub(crate) groups: CheckedColumn<U64>,
    pub(crate) bytes: CheckedColumn<u8>,
    pub(crate) objects: u32,
    pub(crate) edges: u64,
}

impl AdjacencyLists {
    /// Returns the number of nodes.
    pub fn len(&self) -> u32 {
        self.objects
    }

    /// Returns `true` if there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.objects == 0
    }

    /// Returns the number of edges: targets in all lists together.
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// Returns the list of an object, ascending; empty for an object that does not exist.
    pub fn list(&self, object: ObjectIndex) -> Targets<'_> {
        self.list_bytes(object.0).map_or_else(Targets::empty, |row| Targets::new(row, object.0, self.objects))
    }

    fn list_bytes(&self, object: u32) -> Option<&[u8]> {
        let group = (object / GROUP) as usize;
        let [start, end] = self.groups.rows(group..group.checked_add(2)?)? else { return None };
        let (start, end) = (usize::try_from(start.get()).ok()?, usize::try_from(end.get()).ok()?);
        if object >= self.objects || start == end {
            return None;
        }
        let head: &[u8; GROUP_BYTES] =
            self.bytes.rows(start..start.checked_add(GROUP_BYTES)?)?.first_chunk()?;
        let mut at = start + GROUP_BYTES;
        let within = (object % GROUP) as usize;
        for length in head.get(..within)? {
            at = self.span(at, *length)?.end;
        }
        let row = self.span(at, *head.get(within)?)?;
        if row.end > end { None } else { self.bytes.rows(row) }
    }

    /// Returns the range of a list that starts at `at`, including its length field.
    #[inline]
    fn span(&self, at: usize, length: u8) -> Option<Range<usize>> {
        if length < LONG {
            return Some(at..at.checked_add(usize::from(length))?);
        }
        let start = at.checked_add(LONG_BYTES)?;
        Some(start..start.checked_add(long_length(self.bytes.rows(at..start)?))?)
    }

    /// Returns a view of all lists, after checking all bytes.
    pub fn view(&self) -> AdjacencyView<'_> {
        AdjacencyView { groups: self.groups.all(), bytes: self.bytes.all(), objects: self.objects }
    }
}

fn long_length(bytes: &[u8]) -> usize {
    let length =
        bytes.iter().take(LONG_BYTES).rev().fold(0u64, |length, byte| (length << 8) | u64::from(*byte));
    usize::try_from(length).unwrap_or(usize::MAX)
}

/// View of [`AdjacencyLists`] as plain slices, for traversals of the whole graph.
#[derive(Debug, Clone, Copy)]
pub struct AdjacencyView<'a> {
    groups: &'a [U64],
    bytes: &'a [u8],
    objects: u32,
}

impl<'a> AdjacencyView<'a> {
    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> u32 {
        self.objects
    }

    /// Calls `visit` with each node of a group and its list. `group` is the index of the group.
    #[inline(always)]
    pub fn group(&self, group: u32, mut visit: impl FnMut(u32, Targets<'a>)) {
        let first = group * GROUP;
        let count = GROUP.min(self.objects.saturating_sub(first));
        self.lists_of(group, |within, row| {
            if within < count {
                visit(first + within, Targets::new(row, first + within, self.objects));
            }
        });
    }

    /// Returns the bytes of the lists of a group, with their lengths.
    #[inline(always)]
    fn bytes_of(&self, group: u32) -> &'a [u8] {
        // The offsets in a mapped file are within it. A missing group is read as one of empty lists.
        let bytes = match self.groups.get(group as usize..group as usize + 2) {
            Some([start, end]) => usize::try_from(start.get()).ok().zip(usize::try_from(end.get()).ok()),
            _ => None,
        };
        bytes.and_then(|(start, end)| self.bytes.get(start..end)).unwrap_or_default()
    }

    /// Calls `visit` with the position in the group and the bytes of each list: always 16 times, whatever the
    /// file contains.
    #[inline(always)]
    fn lists_of(&self, group: u32, mut visit: impl FnMut(u32, &'a [u8])) {
        let Some((head, mut rest)) = self.bytes_of(group).split_first_chunk::<GROUP_BYTES>() else {
            (0..GROUP).for_each(|within| visit(within, &[]));
            return;
        };
        for (within, length) in (0u32..).zip(head) {
            let mut length = usize::from(*length);
            if length == usize::from(LONG) {
                length = long_length(rest);
                rest = rest.get(LONG_BYTES..).unwrap_or_default();
            }
            let (row, after) = rest.split_at_checked(length).unwrap_or_default();
            rest = after;
            visit(within, row);
        }
    }

    /// Returns the targets of an object, ascending.
    #[inline]
    pub fn list(&self, object: u32) -> Targets<'a> {
        let Some((head, mut rest)) = self.bytes_of(object / GROUP).split_first_chunk::<GROUP_BYTES>() else {
            return Targets::empty();
        };
        let mut row: &[u8] = &[];
        for length in head.iter().take((object % GROUP) as usize + 1) {
            let mut length = usize::from(*length);
            if length == usize::from(LONG) {
                length = long_length(rest);
                rest = rest.get(LONG_BYTES..).unwrap_or_default();
            }
            (row, rest) = rest.split_at_checked(length).unwrap_or_default();
        }
        Targets::new(row, object, self.objects)
    }

    /// Prefetches the table entry of an object's list.
    #[inline(always)]
    pub fn prefetch_place(&self, object: u32) {
        prefetch(self.groups, (object / GROUP) as usize);
    }

    /// Prefetches an object's list; its table entry should already be in the cache.
    #[inline(always)]
    pub fn prefetch_list(&self, object: u32) {
        if let Some(start) = self.groups.get((object / GROUP) as usize) {
            prefetch(self.bytes, usize::try_from(start.get()).unwrap_or(usize::MAX));
        }
    }
}

/// Iterator over the targets in a list, ascending.
#[derive(Debug, Clone)]
pub struct Targets<'a> {
    bytes: &'a [u8],
    /// The object itself before the first target; then the smallest possible next target.
    base: u32,
    objects: u32,
    started: bool,
}

impl<'a> Targets<'a> {
    #[inline(always)]
    fn new(bytes: &'a [u8], object: u32, objects: u32) -> Self {
        Self { bytes, base: object, objects, started: false }
    }

    fn empty() -> Self {
        Self { bytes: &[], base: 0, objects: 0, started: false }
    }

    /// Returns the target if the list contains exactly one.
    #[inline]
    pub fn single_target(mut self) -> Option<u32> {
        let first = self.next()?;
        self.bytes.is_empty().then_some(first.0)
    }
}

impl Iterator for Targets<'_> {
    type Item = ObjectIndex;

    #[inline(always)]
    fn next(&mut self) -> Option<ObjectIndex> {
        let (&first, mut rest) = self.bytes.split_first()?;
        let mut number = u64::from(first & 0x7f);
        if first >= 0x80 {
            let mut shift = 7;
            loop {
                let (&byte, after) = rest.split_first()?;
                rest = after;
                number |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 || shift > 35 {
                    break;
                }
            }
        }
        self.bytes = rest;
        // Computed in 64 bits: a distance beyond the last object must not wrap around to the first.
        let target = if self.started {
            u64::from(self.base) + number
        } else {
            self.started = true;
            u64::from(self.base).wrapping_add_signed(unzigzag(number))
        };
        let target = u32::try_from(target).ok().filter(|target| *target < self.objects)?;
        self.base = target + 1;
        Some(ObjectIndex(target))
    }
}

#[allow(clippy::cast_sign_loss, clippy::cast_possible_wrap)]
fn zigzag(distance: i64) -> u64 {
    ((distance << 1) ^ (distance >> 63)) as u64
}

#[allow(clippy::cast_possible_wrap)]
fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[inline]
fn push_leb128(out: &mut Vec<u8>, mut number: u64) {
    #[allow(clippy::cast_possible_truncation)]
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    #[allow(clippy::cast_possible_truncation)]
    out.push(number as u8);
}

/// Encodes consecutive lists. The first and the last group may be incomplete: [`super::stitcher`] joins them.
#[derive(Debug)]
pub(crate) struct Encoder {
    /// First object.
    first: u32,
    /// Bytes of the completed groups and of the current one.
    bytes: Vec<u8>,
    /// Length of each completed group, in bytes.
    groups: Vec<u64>,
    edges: u64,
    /// Next object.
    next: u32,
    /// Position of the current group's head in `bytes`.
    head: usize,
}

/// Encoded lists of consecutive nodes.
#[derive(Debug)]
pub(crate) struct EncodedLists {
    /// First node.
    pub(super) first: u32,
    /// End node (exclusive).
    pub(super) end: u32,
    pub(crate) bytes: Vec<u8>,
    /// Length of each group, in bytes.
    pub(crate) groups: Vec<u64>,
    pub(crate) edges: u64,
}

impl Encoder {
    /// Creates an encoder for the lists of consecutive nodes, from `first` on.
    pub(crate) fn new(first: u32, capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity);
        bytes.extend_from_slice(&[0; GROUP_BYTES]);
        Self { first, bytes, groups: Vec::new(), edges: 0, next: first, head: 0 }
    }

    /// Appends the list of the next node. Sorts `targets` and drops duplicates and [`NONE`].
    #[inline]
    pub(crate) fn push(&mut self, targets: &mut [u32]) {
        match *targets {
            [] | [NONE] => self.push_sorted(&[]),
            [_] => self.push_sorted(targets),
            [first, second] if first < second && second != NONE => self.push_sorted(targets),
            _ => {
                targets.sort_unstable();
                let end = targets.partition_point(|target| *target != NONE);
                self.push_ascending(targets.get_mut(..end).unwrap_or_default());
            }
        }
    }

    /// Appends the list of the next node, which must be ascending and without duplicates.
    #[inline]
    pub(crate) fn push_sorted(&mut self, targets: &[u32]) {
        let start = self.bytes.len();
        let within = (self.next % GROUP) as usize;
        if let Some((first, others)) = targets.split_first() {
            push_leb128(&mut self.bytes, zigzag(i64::from(*first) - i64::from(self.next)));
            let mut before = *first;
            for target in others {
                push_leb128(&mut self.bytes, u64::from(target - before - 1));
                before = *target;
            }
            let length = self.bytes.len() - start;
            if let Some(place) = self.bytes.get_mut(self.head + within) {
                *place = u8::try_from(length).unwrap_or(LONG);
            }
            if length >= usize::from(LONG) {
                let length = (length as u64).to_le_bytes();
                self.bytes.splice(start..start, length.into_iter().take(LONG_BYTES));
            }
            self.edges += targets.len() as u64;
        }
        self.next += 1;
        if within == GROUP_BYTES - 1 {
            self.end_group();
        }
    }

    /// Appends the list of the next node, which must be ascending; drops duplicates.
    pub(crate) fn push_ascending(&mut self, targets: &mut [u32]) {
        let mut kept = 0;
        for at in 0..targets.len() {
            if kept == 0 || targets[at] != targets[kept - 1] {
                targets[kept] = targets[at];
                kept += 1;
            }
        }
        self.push_sorted(&targets[..kept]);
    }

    fn end_group(&mut self) {
        let mut length = self.bytes.len() - self.head;
        if length == GROUP_BYTES {
            self.bytes.truncate(self.head);
            length = 0;
        }
        self.groups.push(length as u64);
        self.head = self.bytes.len();
        self.bytes.extend_from_slice(&[0; GROUP_BYTES]);
    }

    /// Returns the lists so far; the last group may be incomplete.
    pub(crate) fn finish(mut self) -> EncodedLists {
        if !self.next.is_multiple_of(GROUP) {
            self.end_group();
        }
        self.bytes.truncate(self.head);
        let Self { first, next: end, bytes, groups, edges, .. } = self;
        EncodedLists { first, end, bytes, groups, edges }
    }
}

/// Returns adjacency lists in memory.
#[cfg(test)]
pub(crate) fn adjacency_of(rows: &[Vec<u32>]) -> AdjacencyLists {
    let mut encoder = Encoder::new(0, 0);
    for row in rows {
        encoder.push(&mut row.clone());
    }
    let encoded = encoder.finish();
    let mut at = 0;
    let mut groups = vec![U64::new(0)];
    for length in &encoded.groups {
        at += *length;
        groups.push(at.into());
    }
    let objects = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    AdjacencyLists { groups: groups.into(), bytes: encoded.bytes.into(), objects, edges: encoded.edges }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn nodes(targets: Targets<'_>) -> Vec<u32> {
        targets.map(|target| target.0).collect()
    }

    #[test]
    fn rows_come_back() {
        let mut state = 3u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let objects = 1000u32;
        let rows: Vec<Vec<u32>> = (0..objects)
            .map(|object| match random(10) {
                0..4 => Vec::new(),
                4 => (0..random(900)).map(|_| u32::try_from(random(1000)).unwrap()).collect(),
                5 => vec![object],
                6 => vec![0, objects - 1, 0],
                _ => (0..random(5)).map(|_| u32::try_from(random(1000)).unwrap()).collect(),
            })
            .collect();
        let encoded = adjacency_of(&rows);
        let view = encoded.view();
        let mut seen = vec![vec![objects]; rows.len()];
        for group in 0..objects.div_ceil(GROUP) {
            view.group(group, |object, targets| seen[object as usize] = nodes(targets));
        }
        for (object, row) in (0u32..).zip(rows) {
            let mut expected = row;
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(nodes(encoded.list(ObjectIndex(object))), expected, "object {object}");
            assert_eq!(nodes(view.list(object)), expected, "object {object}");
            assert_eq!(seen[object as usize], expected, "object {object}");
        }
        assert_eq!(encoded.list(ObjectIndex(objects)).count(), 0);
    }

    #[test]
    fn rows_ascend_whatever_the_bytes() {
        let mut numbers = 5u64;
        for objects in [1, 20, 1 << 20, u32::MAX - 1] {
            for _ in 0..2000 {
                let mut bytes: Vec<u8> = (0..200)
                    .map(|_| {
                        numbers = numbers.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        if numbers >> 62 == 0 { 0xff } else { numbers.to_le_bytes()[5] & 0x8f }
                    })
                    .collect();
                bytes[0] &= 0x7f;
                let row = nodes(Targets::new(&bytes, 0, objects));
                assert!(row.is_sorted_by(|a, b| a < b) && row.iter().all(|target| *target < objects));
            }
        }
        // 5, then 2^32 - 1 further.
        let round = [10, 0xfe, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(nodes(Targets::new(&round, 0, u32::MAX - 1)), [5]);
    }

    #[test]
    fn all_rows_of_a_group_are_visited_wherever_it_is_cut() {
        let rows: Vec<Vec<u32>> = (0..16).map(|row| vec![row; 1]).collect();
        let whole = adjacency_of(&rows);
        let bytes = whole.bytes.all();
        for length in 0..bytes.len() {
            let groups: Vec<U64> = vec![0.into(), (length as u64).into()];
            let bytes = bytes[..length].to_vec();
            let cut = AdjacencyLists { groups: groups.into(), bytes: bytes.into(), objects: 16, edges: 16 };
            let mut visited = 0;
            cut.view().group(0, |object, row| {
                assert!(
                    object == visited && row.clone().eq(cut.list(ObjectIndex(object))) && row.count() <= 1
                );
                visited += 1;
            });
            assert_eq!(visited, 16, "{length}");
        }
        let (mut visited, nothing) = (0, AdjacencyLists { objects: 16, ..AdjacencyLists::default() });
        nothing.view().group(0, |_, row| visited += 1 - row.count());
        assert_eq!(visited, 16);
    }

    #[test]
    fn far_and_long_rows_come_back() {
        let far = [0, 5, u32::MAX - 2];
        let mut encoder = Encoder::new(16, 0);
        encoder.push_sorted(&far);
        let long: Vec<u32> = (0..5000).map(|i| i * 800_000).collect();
        encoder.push_sorted(&long);
        encoder.push_sorted(&[]);
        encoder.push_sorted(&[1]);
        let encoded = encoder.finish();
        assert_eq!(encoded.edges, 5004);
        let groups = vec![U64::new(0), U64::new(0), U64::new(encoded.bytes.len() as u64)];
        let rows = AdjacencyLists {
            groups: groups.into(),
            bytes: encoded.bytes.into(),
            objects: u32::MAX - 1,
            edges: 0,
        };
        assert_eq!(nodes(rows.list(ObjectIndex(16))), far);
        assert_eq!(nodes(rows.list(ObjectIndex(17))), long);
        assert_eq!(rows.list(ObjectIndex(18)).count(), 0);
        assert_eq!(nodes(rows.list(ObjectIndex(19))), [1]);
    }
}
