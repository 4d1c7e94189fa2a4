//! What a scan measures of sizes: how many objects there are of each class, how long the arrays are, and how far
//! objects lie from their neighbours.
//!
//! These are facts of the dump. What sizes follow from them is decided in [`super::object_layout`] and [`super::sizes`], so
//! that another layout (`--layout`) needs no other scan.

use hprof_parser::BasicType;

/// The smallest distance seen from an object of some kind to the next object in address order.
///
/// Object ids of HotSpot are addresses, so a distance bounds the object's size from above, and in a compacted heap the
/// smallest one is the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distance {
    /// The smallest distance in bytes; [`u32::MAX`] if none was seen.
    pub min: u32,
    /// How often that smallest one was seen.
    pub hits: u32,
    /// Distances seen.
    pub seen: u32,
}

impl Default for Distance {
    fn default() -> Self {
        Self { min: u32::MAX, hits: 0, seen: 0 }
    }
}

impl Distance {
    /// Takes in one more distance.
    #[inline(always)]
    pub(crate) fn see(&mut self, bytes: u64) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX - 1);
        self.seen = self.seen.saturating_add(1);
        if bytes < self.min {
            self.min = bytes;
            self.hits = 1;
        } else if bytes == self.min {
            self.hits = self.hits.saturating_add(1);
        }
    }

    /// Takes in all that another has seen.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.seen = self.seen.saturating_add(other.seen);
        match other.min.cmp(&self.min) {
            std::cmp::Ordering::Less => (self.min, self.hits) = (other.min, other.hits),
            std::cmp::Ordering::Equal => self.hits = self.hits.saturating_add(other.hits),
            std::cmp::Ordering::Greater => {}
        }
    }
}

/// Array lengths are counted modulo this, so that padding can be summed up for any alignment up to 256 bytes.
pub const PRIMITIVE_LENGTHS: usize = 256;
/// The same for object arrays, whose elements are at least 4 bytes.
pub const OBJECT_LENGTHS: usize = 64;
/// Distances are kept for each length below this.
pub const SHORT: usize = 256;

/// All arrays of some element type: how many, how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lengths<const N: usize> {
    /// Number of elements of all arrays together.
    pub elements: u64,
    /// Number of arrays by length modulo `N`.
    pub by_length: [u64; N],
}

impl<const N: usize> Default for Lengths<N> {
    fn default() -> Self {
        Self { elements: 0, by_length: [0; N] }
    }
}

impl<const N: usize> Lengths<N> {
    #[inline(always)]
    pub(crate) fn see(&mut self, length: u32) {
        self.elements += u64::from(length);
        if let Some(count) = self.by_length.get_mut(length as usize % N) {
            *count += 1;
        }
    }

    pub(crate) fn forget(&mut self, length: u32) {
        self.elements = self.elements.saturating_sub(u64::from(length));
        if let Some(count) = self.by_length.get_mut(length as usize % N) {
            *count = count.saturating_sub(1);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.elements += other.elements;
        for (count, more) in self.by_length.iter_mut().zip(&other.by_length) {
            *count += more;
        }
    }

    /// Number of arrays.
    pub fn count(&self) -> u64 {
        self.by_length.iter().sum()
    }
}

/// Kinds of arrays by element: references first, then the primitives in the order of [`BasicType::PRIMITIVES`].
pub const ARRAY_KINDS: usize = 9;

/// The number of an array kind, 0 for references.
#[inline]
pub fn array_kind(element: BasicType) -> usize {
    BasicType::PRIMITIVES.iter().position(|kind| *kind == element).map_or(0, |at| at + 1)
}

/// The element type of an array kind.
pub fn element_of_kind(kind: usize) -> BasicType {
    kind.checked_sub(1).and_then(|at| BasicType::PRIMITIVES.get(at)).copied().unwrap_or(BasicType::Object)
}

/// Distances of short arrays, by kind and length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortArrays {
    distances: Vec<Distance>,
}

impl Default for ShortArrays {
    fn default() -> Self {
        Self { distances: vec![Distance::default(); ARRAY_KINDS * SHORT] }
    }
}

impl ShortArrays {
    #[inline(always)]
    pub(crate) fn see(&mut self, kind: usize, length: u32, bytes: u64) {
        if (length as usize) < SHORT
            && let Some(distance) = self.distances.get_mut(kind * SHORT + length as usize)
        {
            distance.see(bytes);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (distance, more) in self.distances.iter_mut().zip(&other.distances) {
            distance.merge(more);
        }
    }

    pub(crate) fn distances(&self) -> &[Distance] {
        &self.distances
    }
}

/// The instances of `jdk.internal.vm.StackChunk` with the same stack size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackChunks {
    /// Stack size in words: the field `size`.
    pub words: u32,
    /// Number of instances.
    pub instances: u64,
    /// Their distances.
    pub distance: Distance,
}
