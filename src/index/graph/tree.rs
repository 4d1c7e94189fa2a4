//! The dominator tree as stored: objects in preorder, siblings by retained size.
//!
//! A *position* is a number from 0: reachable objects in preorder of the dominator tree, largest subtrees
//! first, then the unreachable ones by object index. Hence the objects that an object dominates are a range
//! of positions that starts with the object itself, its retained size is the sum of shallow sizes over that
//! range, and its children follow it, largest first.
//!
//! The shape is stored as one number per position: the number of subtrees that end right after it. Depths at
//! each 64th position and minimum depths of 64, 4096 and 262,144 positions locate ends and parents in a few
//! steps. Shallow sizes are one number per position, in units of the alignment; numbers that do not fit into
//! a byte are in a list of their own. All columns are bit-packed (`storage::bit_packed`). Prefix sums are
//! stored at each 64th position.
//!
//! That is a sequence of balanced parentheses, the closing ones as counts, with a range-min tree over depths
//! (G. Navarro, K. Sadakane: Fully Functional Static and Dynamic Succinct Trees, ACM Transactions on
//! Algorithms 10(3), 2014).

use std::ops::Range;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::numbers::{ObjectIndex, TreePosition};
use crate::storage::bit_packed::{BitPackedColumn, BitPackedNumbers};
use crate::storage::checked_column::CheckedColumn;

/// Number of positions in a block.
pub(crate) const BLOCK: u32 = 64;
/// Byte that marks a number stored in the separate list.
pub(crate) const APART: u8 = 255;

/// Row of a block of positions: sums and depths.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct BlockRow {
    /// Shallow bytes of all objects before the block.
    pub(crate) bytes: U64,
    /// Depth of the first object, from 0.
    pub(crate) depth: U32,
    /// Smallest depth in the block.
    pub(crate) least: U32,
}

/// Row of the separate list of numbers that do not fit into a byte.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct ApartRow {
    /// Position of the number.
    pub(crate) position: U32,
    /// The number itself.
    pub(crate) number: U64,
}

/// The dominator tree.
#[derive(Debug, Default)]
pub struct Tree {
    /// Number of reachable objects.
    pub(crate) reachable: u32,
    /// Number of all objects.
    pub(crate) objects: u32,
    /// Size of a unit of shallow size, in bytes.
    pub(crate) unit: u64,
    /// Object index by position.
    pub(crate) order: BitPackedColumn,
    /// Position by object index.
    pub(crate) positions: BitPackedColumn,
    /// Number of subtrees that end after a position, by position.
    pub(crate) ends: BitPackedColumn,
    pub(crate) ends_apart: CheckedColumn<ApartRow>,
    /// Shallow size in units, by position.
    pub(crate) sizes: BitPackedColumn,
    pub(crate) sizes_apart: CheckedColumn<ApartRow>,
    /// Rows by block, with one more row for the end.
    pub(crate) blocks: CheckedColumn<BlockRow>,
    /// Minimum depths of 64 blocks, and of 4096.
    pub(crate) least: [CheckedColumn<U32>; 2],
}

impl Tree {
    /// Reads and checks all columns; damage sets the mark of the file.
    pub(crate) fn check(&self) {
        for column in [&self.order, &self.positions, &self.ends, &self.sizes] {
            column.check();
        }
        self.ends_apart.all();
        self.sizes_apart.all();
        self.blocks.all();
        for least in &self.least {
            least.all();
        }
    }

    /// Returns the number of reachable objects, which is also the end of their positions.
    pub fn reachable(&self) -> u32 {
        self.reachable
    }

    /// Returns the positions of all reachable objects.
    pub fn positions(&self) -> Range<TreePosition> {
        TreePosition(0)..TreePosition(self.reachable)
    }

    /// Returns the number of all objects.
    pub fn objects(&self) -> u32 {
        self.objects
    }

    /// Returns the total shallow size of all reachable objects, in bytes.
    pub fn reachable_bytes(&self) -> u64 {
        self.bytes_before(TreePosition(self.reachable))
    }

    /// Returns the position of an object.
    pub fn position(&self, object: ObjectIndex) -> Option<TreePosition> {
        if object.0 < self.objects { self.positions.get(object.0).map(TreePosition) } else { None }
    }

    /// Calls `visit` with the positions of a range of objects, in order.
    pub fn visit_positions(&self, objects: Range<ObjectIndex>, mut visit: impl FnMut(TreePosition)) {
        let objects = objects.start.0..objects.end.0.min(self.objects);
        self.positions.visit(objects, |_, position| visit(TreePosition(position)));
    }

    /// Calls `visit` with the positions of the given objects, in order. Efficient for many objects in ascending order.
    pub fn positions_of(
        &self,
        objects: impl IntoIterator<Item = ObjectIndex>,
        mut visit: impl FnMut(ObjectIndex, TreePosition),
    ) {
        let (mut positions, mut known) = ([0; BLOCK as usize], None);
        for object in objects {
            let block = object.0 / BLOCK;
            if known != Some(block) {
                known = self.positions.decode(block, &mut positions).map(|()| block);
            }
            let position = positions.get((object.0 % BLOCK) as usize);
            if let (Some(position), Some(_), true) = (position, known, object.0 < self.objects) {
                visit(object, TreePosition(*position));
            }
        }
    }

    /// Returns the position of a reachable object; `None` for an unreachable one.
    pub fn reachable_position(&self, object: ObjectIndex) -> Option<TreePosition> {
        self.position(object).filter(|position| position.0 < self.reachable)
    }

    /// Prefetches the position of an object, if its offset is known without reading.
    #[inline]
    pub fn prefetch_position(&self, object: ObjectIndex) {
        self.positions.prefetch(object.0);
    }

    /// Prefetches the data from which the end and the size at a position are computed.
    #[inline]
    pub fn prefetch(&self, position: TreePosition) {
        self.ends.prefetch(position.0);
        self.sizes.prefetch(position.0);
    }

    /// Returns the object at a position.
    pub fn object_at(&self, position: TreePosition) -> Option<ObjectIndex> {
        if position.0 < self.objects { self.order.get(position.0).map(ObjectIndex) } else { None }
    }

    /// Returns the objects of a range of positions.
    #[inline]
    pub fn objects_at(&self, positions: Range<TreePosition>) -> impl Iterator<Item = ObjectIndex> + '_ {
        self.order.range(positions.start.0..positions.end.0.min(self.objects)).map(ObjectIndex)
    }

    /// Calls `visit` with the objects of a range of positions, in order.
    #[inline]
    pub fn visit_objects(&self, positions: Range<TreePosition>, mut visit: impl FnMut(ObjectIndex)) {
        let positions = positions.start.0..positions.end.0.min(self.objects);
        self.order.visit(positions, |_, object| visit(ObjectIndex(object)));
    }

    /// Calls `visit` with the shallow sizes of a range of positions, in order.
    #[inline]
    pub fn visit_sizes(&self, positions: Range<TreePosition>, mut visit: impl FnMut(u64)) {
        let positions = positions.start.0..positions.end.0.min(self.objects);
        self.sizes.visit(positions, |position, size| {
            visit(expand_number(size, &self.sizes_apart, position).saturating_mul(self.unit));
        });
    }

    /// Returns the number of subtrees that end right after a position of a reachable object.
    pub fn ends_after(&self, position: TreePosition) -> u64 {
        number(&self.ends, &self.ends_apart, position.0)
    }

    /// Returns the number of subtrees that end right after each position of a range of reachable objects.
    #[inline]
    pub fn ends(&self, positions: Range<TreePosition>) -> ByPosition<'_> {
        self.ends_at(positions.start.0..positions.end.0)
    }

    #[inline]
    fn ends_at(&self, positions: Range<u32>) -> ByPosition<'_> {
        let positions = positions.start..positions.end.min(self.reachable);
        ByPosition { next: positions.start, numbers: self.ends.range(positions), listed: &self.ends_apart }
    }

    /// Returns the shallow sizes of a range of positions.
    #[inline]
    pub fn shallow_sizes(&self, positions: Range<TreePosition>) -> impl Iterator<Item = u64> + '_ {
        let positions = positions.start.0..positions.end.0.min(self.objects);
        let first = positions.start;
        let sizes =
            ByPosition { next: first, numbers: self.sizes.range(positions), listed: &self.sizes_apart };
        sizes.map(|units| units.saturating_mul(self.unit))
    }

    /// Calls `visit` with each position of a range of reachable objects, the number of subtrees that end
    /// after it, and its shallow size: what [`Self::ends`] and [`Self::shallow_sizes`] return, in half the
    /// time.
    pub fn visit(&self, positions: Range<TreePosition>, mut visit: impl FnMut(TreePosition, u64, u64)) {
        let (start, end) = (positions.start.0, positions.end.0.min(self.reachable));
        let (mut ends, mut sizes) = ([0; BLOCK as usize], [0; BLOCK as usize]);
        for block in start / BLOCK..end.div_ceil(BLOCK) {
            if self.ends.decode(block, &mut ends).and(self.sizes.decode(block, &mut sizes)).is_none() {
                return;
            }
            for (position, (ends, size)) in (block.saturating_mul(BLOCK)..end).zip(ends.iter().zip(&sizes)) {
                if position < start {
                    continue;
                }
                let count = expand_number(*ends, &self.ends_apart, position);
                visit(
                    TreePosition(position),
                    count,
                    expand_number(*size, &self.sizes_apart, position).saturating_mul(self.unit),
                );
            }
        }
    }

    /// Returns the shallow size at a position.
    pub fn shallow_bytes(&self, position: TreePosition) -> u64 {
        number(&self.sizes, &self.sizes_apart, position.0).saturating_mul(self.unit)
    }

    /// Returns the sum of the shallow sizes of all objects before a position.
    pub fn bytes_before(&self, position: TreePosition) -> u64 {
        let Some(block) = self.blocks.get((position.0 / BLOCK) as usize) else { return 0 };
        let before = self.shallow_sizes(TreePosition(position.0 - position.0 % BLOCK)..position);
        before.fold(block.bytes.get(), u64::saturating_add)
    }

    /// Returns the retained size of a reachable object.
    pub fn retained_bytes(&self, position: TreePosition) -> u64 {
        self.bytes_before(self.end(position)).saturating_sub(self.bytes_before(position))
    }

    /// Returns the retained size of an object; `None` if it is not reachable.
    pub fn retained_bytes_of(&self, object: ObjectIndex) -> Option<u64> {
        self.reachable_position(object).map(|position| self.retained_bytes(position))
    }

    /// Returns the number of objects that an object retains, including itself.
    pub fn retained_objects(&self, position: TreePosition) -> u32 {
        self.end(position).0.saturating_sub(position.0)
    }

    /// Returns the depth of a reachable object; objects that only the virtual root dominates have depth 0.
    pub fn depth(&self, position: TreePosition) -> u32 {
        self.depths(position.0 / BLOCK).nth((position.0 % BLOCK) as usize).unwrap_or(0)
    }

    /// Returns the depths of the positions in a block, in order.
    fn depths(&self, block: u32) -> impl Iterator<Item = u32> + '_ {
        let first = block.saturating_mul(BLOCK);
        let mut depth = self.blocks.get(block as usize).map_or(0, |block| block.depth.get());
        self.ends_at(first..first.saturating_add(BLOCK)).map(move |ends| {
            let here = depth;
            let ends = u32::try_from(ends).unwrap_or(u32::MAX);
            depth = depth.saturating_add(1).saturating_sub(ends);
            here
        })
    }

    /// Returns the end (exclusive) of the positions that a reachable object dominates.
    pub fn end(&self, position: TreePosition) -> TreePosition {
        // Most objects dominate nothing, as a single number shows.
        if self.ends_after(position) > 0 {
            return TreePosition(position.0.saturating_add(1));
        }
        let position = position.0;
        let block = position / BLOCK;
        let mut depths = self.depths(block).skip((position % BLOCK) as usize);
        let depth = depths.next().unwrap_or(0);
        if let Some(steps) = depths.position(|other| other <= depth) {
            return TreePosition((position + 1).saturating_add(u32::try_from(steps).unwrap_or(u32::MAX)));
        }
        let Some(block) = self.next_block(block + 1, depth) else {
            return TreePosition(self.reachable);
        };
        let steps = self.depths(block).position(|other| other <= depth).unwrap_or(0);
        TreePosition(block.saturating_mul(BLOCK).saturating_add(u32::try_from(steps).unwrap_or(0)))
    }

    /// Returns the dominator of a reachable object; `None` for objects that only the virtual root dominates.
    pub fn dominator(&self, position: TreePosition) -> Option<TreePosition> {
        self.last_before(position, self.depth(position).checked_sub(1)?)
    }

    /// Returns the object of a depth that dominates a reachable object; the object itself if it is not deeper.
    pub fn dominator_at(&self, position: TreePosition, depth: u32) -> TreePosition {
        let above = if self.depth(position) <= depth { None } else { self.last_before(position, depth) };
        above.unwrap_or(position)
    }

    /// Returns the deepest object that dominates two reachable objects, or is one of them; `None` if only the virtual root
    /// dominates both.
    pub fn common_dominator(&self, a: TreePosition, b: TreePosition) -> Option<TreePosition> {
        let is_common = |depth: u32| self.dominator_at(a, depth) == self.dominator_at(b, depth);
        // Depths at which both have the same dominator; below the depth of one of them they differ, unless it dominates the
        // other.
        let (mut same, mut other) = (0, self.depth(a).min(self.depth(b)) + 1);
        while same < other {
            let middle = same + (other - same) / 2;
            if is_common(middle) { same = middle + 1 } else { other = middle }
        }
        same.checked_sub(1).map(|depth| self.dominator_at(a, depth))
    }

    /// Returns the last object before a position whose depth is at most `depth`.
    fn last_before(&self, position: TreePosition, depth: u32) -> Option<TreePosition> {
        let last = |block: u32, count: usize| {
            let steps =
                self.depths(block).take(count).enumerate().filter(|(_, other)| *other <= depth).last();
            let (steps, _) = steps?;
            Some(TreePosition(block.saturating_mul(BLOCK).saturating_add(u32::try_from(steps).ok()?)))
        };
        let block = position.0 / BLOCK;
        last(block, (position.0 % BLOCK) as usize)
            .or_else(|| last(self.block_before(block, depth)?, BLOCK as usize))
    }

    #[inline(always)]
    fn block_least(&self, level: usize, at: u32) -> Option<u32> {
        match level {
            0 => self.blocks.get(at as usize).map(|block| block.least.get()),
            _ => self.least.get(level - 1)?.get(at as usize).map(|least| least.get()),
        }
    }

    fn blocks_of(&self, level: usize) -> u32 {
        (0..=level).fold(self.reachable, |count, _| count.div_ceil(BLOCK))
    }

    /// Returns the first block, from `block` on, with a depth of at most `depth`.
    fn next_block(&self, block: u32, depth: u32) -> Option<u32> {
        let fits = |level: usize, at: u32| self.block_least(level, at).is_some_and(|least| least <= depth);
        let (mut level, mut at) = (0, block);
        let mut found = loop {
            let count = self.blocks_of(level);
            let stop = if level == 2 { count } else { at.next_multiple_of(BLOCK).min(count) };
            if let Some(found) = (at..stop).find(|at| fits(level, *at)) {
                break found;
            }
            if level == 2 || stop >= count {
                return None;
            }
            at = stop / BLOCK;
            level += 1;
        };
        while level > 0 {
            level -= 1;
            let start = found.saturating_mul(BLOCK);
            let stop = start.saturating_add(BLOCK).min(self.blocks_of(level));
            found = (start..stop).find(|at| fits(level, *at))?;
        }
        Some(found)
    }

    /// Returns the last block before `block` with a depth of at most `depth`.
    fn block_before(&self, block: u32, depth: u32) -> Option<u32> {
        let fits = |level: usize, at: u32| self.block_least(level, at).is_some_and(|least| least <= depth);
        let (mut level, mut end) = (0, block);
        let mut found = loop {
            let start = if level == 2 { 0 } else { end - end % BLOCK };
            if let Some(found) = (start..end).rev().find(|at| fits(level, *at)) {
                break found;
            }
            if start == 0 {
                return None;
            }
            end = start / BLOCK;
            level += 1;
        };
        while level > 0 {
            level -= 1;
            let start = found.saturating_mul(BLOCK);
            let stop = start.saturating_add(BLOCK).min(self.blocks_of(level));
            found = (start..stop).rev().find(|at| fits(level, *at))?;
        }
        Some(found)
    }

    /// Returns the number of positions of a range whose depth is at most `depth`. Blocks that are deeper are not read.
    pub fn count_to_depth(&self, positions: Range<TreePosition>, depth: u32) -> u32 {
        let (start, end) = (positions.start.0, positions.end.0.min(self.reachable));
        let (mut count, mut from, stop) = (0, start / BLOCK, end.div_ceil(BLOCK));
        while from < stop
            && let Some(block) = self.next_block(from, depth).filter(|block| *block < stop)
        {
            count += self.count_in_block(block, start..end, depth);
            from = block + 1;
        }
        count
    }

    fn count_in_block(&self, block: u32, positions: Range<u32>, depth: u32) -> u32 {
        let mut ends = [0; BLOCK as usize];
        let Some(row) = self.blocks.get(block as usize) else { return 0 };
        if self.ends.decode(block, &mut ends).is_none() {
            return 0;
        }
        let (mut here, mut count) = (row.depth.get(), 0);
        for (position, ends) in (block.saturating_mul(BLOCK)..positions.end).zip(ends) {
            count += u32::from(position >= positions.start && here <= depth);
            let ends = u32::try_from(expand_number(ends, &self.ends_apart, position)).unwrap_or(u32::MAX);
            here = here.saturating_add(1).saturating_sub(ends);
        }
        count
    }

    /// Returns the objects that an object immediately dominates, by position, largest first.
    pub fn children(&self, position: TreePosition) -> Children<'_> {
        Children { tree: self, next: TreePosition(position.0.saturating_add(1)), end: self.end(position) }
    }

    /// Returns the objects that only the virtual root dominates, by position, largest first.
    pub fn top(&self) -> Children<'_> {
        Children { tree: self, next: TreePosition(0), end: TreePosition(self.reachable) }
    }

    /// Returns `true` if `ancestor` dominates the object at `position` or is that object.
    pub fn dominates(&self, ancestor: TreePosition, position: TreePosition) -> bool {
        (ancestor..self.end(ancestor)).contains(&position)
    }
}

/// Returns the number at a position: its byte, or the number in `listed` if that does not fit into a byte.
fn number(bytes: &BitPackedColumn, listed: &CheckedColumn<ApartRow>, position: u32) -> u64 {
    bytes.get(position).map_or(0, |number| expand_number(number, listed, position))
}

/// Returns the number at a position, given its byte.
#[inline]
fn expand_number(number: u32, listed: &CheckedColumn<ApartRow>, position: u32) -> u64 {
    if number == u32::from(APART) { listed_number(listed, position) } else { u64::from(number) }
}

/// Returns the number of a position from the separate list.
#[cold]
fn listed_number(listed: &CheckedColumn<ApartRow>, position: u32) -> u64 {
    // Rows ascend by position.
    let (mut low, mut high) = (0, listed.len());
    while low < high {
        let middle = low + (high - low) / 2;
        match listed.get(middle) {
            Some(row) if row.position.get() < position => low = middle + 1,
            Some(_) => high = middle,
            None => return 0,
        }
    }
    listed.get(low).filter(|row| row.position.get() == position).map_or(0, |row| row.number.get())
}

/// Iterator over the numbers of consecutive positions.
#[derive(Debug, Clone)]
pub struct ByPosition<'a> {
    next: u32,
    numbers: BitPackedNumbers<'a>,
    listed: &'a CheckedColumn<ApartRow>,
}

impl Iterator for ByPosition<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let number = self.numbers.next()?;
        let position = self.next;
        self.next += 1;
        Some(expand_number(number, self.listed, position))
    }
}

/// Iterator over siblings, by position.
#[derive(Debug, Clone)]
pub struct Children<'a> {
    tree: &'a Tree,
    next: TreePosition,
    end: TreePosition,
}

impl Iterator for Children<'_> {
    type Item = TreePosition;

    fn next(&mut self) -> Option<TreePosition> {
        if self.next >= self.end {
            return None;
        }
        let here = self.next;
        // A damaged file must not cause an infinite loop.
        self.next = self.tree.end(here).max(TreePosition(here.0.saturating_add(1)));
        Some(here)
    }
}
