//! The two numbers of an object, as distinct types so that they are not mixed up.
//!
//! The algorithms of this folder use `u32` for node numbers: they have arrays by node, by core node and by
//! position, and compute one from the other. Their results are accessible through these types only.

use std::ops::Range;

/// Marker for no node.
pub const NONE: u32 = u32::MAX;

/// Dense number of an object in the index, from 0, in ascending order of object IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectIndex(pub u32);

/// Position of an object in the dominator tree's preorder, from 0. Siblings are in descending order of
/// retained size; unreachable objects come after all reachable ones.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
pub struct TreePosition(pub u32);

macro_rules! number {
    ($($name:ident)*) => { $(
        impl $name {
            /// Returns the numbers of a range, ascending.
            pub fn range(range: Range<Self>) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + Clone {
                (range.start.0..range.end.0).map(Self)
            }

            /// Splits a range into chunks of at most `size`.
            pub fn chunks(range: Range<Self>, size: u32) -> Vec<Range<Self>> {
                let chunks = chunks(range.start.0..range.end.0, size).into_iter();
                chunks.map(|chunk| Self(chunk.start)..Self(chunk.end)).collect()
            }

            /// Returns the number as an array index.
            #[inline]
            pub fn at(self) -> usize {
                self.0 as usize
            }
        }
    )* };
}

number!(ObjectIndex TreePosition);

/// Splits a range into chunks of at most `size`.
pub fn chunks(range: Range<u32>, size: u32) -> Vec<Range<u32>> {
    let size = size.max(1);
    let starts = range.clone().step_by(size as usize);
    starts.map(|start| start..start.saturating_add(size).min(range.end)).collect()
}
