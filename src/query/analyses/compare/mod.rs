//! Comparison of two or more dumps, by names that mean the same in each of them.
//!
//! Object IDs, object indices and class numbers mean nothing in another dump. The data to compare is extracted from each
//! dump separately, as plain data under names ([`classes`], [`places`]), and then matched: only one dump has to be open at a
//! time. Texts are not copied: [`strings`] compares them in place, in both dumps.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use hprof_model::strings::contents;

pub mod classes;
mod growth;
pub mod places;
pub mod properties;
pub mod root_counts;
pub mod rounds;
pub mod strings;
pub mod threads;
pub mod trend;
pub mod waste;

pub use growth::Growth;
pub use hprof_base::change::{Change, Status};

/// Returns a random seed for hashes by which two dumps are compared.
pub fn random_seed() -> u64 {
    contents::random_seed()
}

/// Joins the maps of an old and a new dump by key, in no particular order.
fn join_by_key<'m, K: Eq + Hash, V, S: BuildHasher>(
    old: &'m HashMap<K, V, S>,
    new: &'m HashMap<K, V, S>,
) -> impl Iterator<Item = (&'m K, Option<&'m V>, Option<&'m V>)> {
    let in_new = new.iter().map(|(key, after)| (key, old.get(key), Some(after)));
    let only_old = old.iter().filter(|(key, _)| !new.contains_key(*key));
    in_new.chain(only_old.map(|(key, before)| (key, Some(before), None)))
}
