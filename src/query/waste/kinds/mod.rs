//! The kinds of waste, one file each.

pub(super) mod boxed_numbers;
pub(super) mod colliding_maps;
mod constant_arrays;
pub(super) mod constant_fields;
mod duplicate_arrays;
pub(super) mod duplicate_classes;
mod duplicate_strings;
mod empty_arrays;
mod empty_collections;
mod finalizable;
pub(super) mod linked_lists;
mod single_element_arrays;
mod single_element_collections;
mod sparse_collections;
mod unreachable;
mod unused_array_ends;
mod zero_length_arrays;

use super::kind::WasteKind;

/// All kinds, in the order in which they are added up.
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
