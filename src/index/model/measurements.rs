//! Measurements of a scan that determine sizes: number of objects of each class, array lengths, and distances
//! between neighboring objects.
//!
//! These are facts of the dump. [`crate::layout::object_layout`] and [`crate::layout::sizes`] compute sizes from them, so
//! that another layout (`--layout`) needs no other scan.

use hprof_values::BasicType;

/// The smallest distance from an object of one class or array kind to the next object in address order.
///
/// Object IDs of HotSpot are addresses, so a distance is an upper bound of the object's size, and in a
/// compacted heap the smallest one is the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distance {
    /// Smallest distance in bytes; [`u32::MAX`] if none was measured.
    pub min: u32,
    /// Number of times the smallest distance occurs.
    pub hits: u32,
    /// Number of measured distances.
    pub seen: u32,
}

impl Default for Distance {
    fn default() -> Self {
        Self { min: u32::MAX, hits: 0, seen: 0 }
    }
}

impl Distance {
    /// Adds a distance.
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

    /// Adds the distances of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.seen = self.seen.saturating_add(other.seen);
        match other.min.cmp(&self.min) {
            std::cmp::Ordering::Less => (self.min, self.hits) = (other.min, other.hits),
            std::cmp::Ordering::Equal => self.hits = self.hits.saturating_add(other.hits),
            std::cmp::Ordering::Greater => {}
        }
    }
}

/// Number of counters of array lengths: lengths are counted modulo this, so that padding can be summed up for
/// any alignment up to 256 bytes.
pub const PRIMITIVE_LENGTHS: usize = 256;
/// Number of counters for object arrays, whose elements are at least 4 bytes.
pub const OBJECT_LENGTHS: usize = 64;
/// Length below which distances are stored for each length.
pub const SHORT: usize = 256;

/// Lengths of all arrays of one class or element type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lengths<const N: usize> {
    /// Total number of elements.
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
    /// Adds an array of this length.
    #[inline(always)]
    pub(crate) fn see(&mut self, length: u32) {
        self.elements += u64::from(length);
        if let Some(count) = self.by_length.get_mut(length as usize % N) {
            *count += 1;
        }
    }

    /// Removes an array of this length.
    pub(crate) fn forget(&mut self, length: u32) {
        self.elements = self.elements.saturating_sub(u64::from(length));
        if let Some(count) = self.by_length.get_mut(length as usize % N) {
            *count = count.saturating_sub(1);
        }
    }

    /// Adds the lengths of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.elements += other.elements;
        for (count, more) in self.by_length.iter_mut().zip(&other.by_length) {
            *count += more;
        }
    }

    /// Returns the number of arrays.
    pub fn count(&self) -> u64 {
        self.by_length.iter().sum()
    }
}

/// Number of array kinds: references first, then the primitives in the order of [`BasicType::PRIMITIVES`].
pub const ARRAY_KINDS: usize = 9;

/// Returns the number of the array kind of an element type; 0 for references.
#[inline]
pub fn array_kind(element: BasicType) -> usize {
    BasicType::PRIMITIVES.iter().position(|kind| *kind == element).map_or(0, |at| at + 1)
}

/// Returns the element type of an array kind.
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
    /// Adds the distance from an array of this kind and length to the next object.
    #[inline(always)]
    pub(crate) fn record(&mut self, kind: usize, length: u32, bytes: u64) {
        if (length as usize) < SHORT
            && let Some(distance) = self.distances.get_mut(kind * SHORT + length as usize)
        {
            distance.see(bytes);
        }
    }

    /// Adds the distances of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (distance, more) in self.distances.iter_mut().zip(&other.distances) {
            distance.merge(more);
        }
    }

    /// Returns the distances, by kind and length.
    pub(crate) fn distances(&self) -> &[Distance] {
        &self.distances
    }
}

/// Instances of `jdk.internal.vm.StackChunk` with the same stack size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackChunks {
    /// Stack size in words: the field `size`.
    pub words: u32,
    /// Number of instances.
    pub instances: u64,
    /// Distances of these instances.
    pub distance: Distance,
}
