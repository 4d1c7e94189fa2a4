//! Random names, unknown to others until they are used.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Returns a name that cannot be guessed.
pub(crate) fn random_name(prefix: &str) -> String {
    let mut random = RandomState::new().build_hasher();
    random.write_u32(std::process::id());
    format!("{prefix}{:016x}", random.finish())
}
