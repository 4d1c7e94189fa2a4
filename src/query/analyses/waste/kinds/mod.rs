//! The kinds of waste, one file each.

mod boxed_numbers;
mod colliding_maps;
mod constant_arrays;
mod constant_fields;
mod duplicate_arrays;
pub(super) mod duplicate_classes;
mod duplicate_strings;
mod empty_arrays;
mod empty_collections;
mod finalizable;
mod linked_lists;
mod single_element_arrays;
mod single_element_collections;
mod sparse_collections;
mod unreachable;
mod unused_array_ends;
mod zero_length_arrays;

use super::kind::{Hooks, WasteFinder, WasteKind};

/// All kinds of waste, in the order in which totals are computed.
pub const KINDS: [&WasteKind; 17] = [
    &duplicate_strings::DEFINITION,
    &duplicate_arrays::DEFINITION,
    &constant_arrays::DEFINITION,
    &unused_array_ends::DEFINITION,
    &empty_collections::DEFINITION,
    &single_element_collections::DEFINITION,
    &sparse_collections::DEFINITION,
    &colliding_maps::DEFINITION,
    &linked_lists::DEFINITION,
    &zero_length_arrays::DEFINITION,
    &empty_arrays::DEFINITION,
    &single_element_arrays::DEFINITION,
    &boxed_numbers::DEFINITION,
    &constant_fields::DEFINITION,
    &finalizable::DEFINITION,
    &duplicate_classes::DEFINITION,
    &unreachable::DEFINITION,
];

impl WasteKind {
    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<&'static Self> {
        KINDS.into_iter().find(|kind| kind.name == name)
    }

    /// Returns the position in [`KINDS`].
    fn rank(&self) -> usize {
        KINDS.iter().take_while(|kind| kind.name != self.name).count()
    }
}

impl Ord for WasteKind {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for WasteKind {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Hooks {
    pub(super) fn new() -> Self {
        let mut hooks = Self::default();
        for (rank, kind) in KINDS.iter().enumerate() {
            match kind.finds {
                WasteFinder::PrimitiveArrays(look) => hooks.primitive_arrays.push((rank, look)),
                WasteFinder::ReferenceArrays(look) => hooks.reference_arrays.push((rank, look)),
                WasteFinder::Tables(look) => hooks.tables.push((rank, look)),
                WasteFinder::Collections(look) => hooks.collections.push((rank, look)),
                WasteFinder::AfterPasses(_) => {}
            }
        }
        hooks
    }
}
