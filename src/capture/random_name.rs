//! Random file names that others cannot predict.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Returns a name that others cannot guess, beginning with `prefix`.
pub(crate) fn random_name(prefix: &str) -> String {
    let mut random = RandomState::new().build_hasher();
    random.write_u32(std::process::id());
    format!("{prefix}{:016x}", random.finish())
}
