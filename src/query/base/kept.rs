//! Query results stored in the index of a heap because computing them takes a pass over all of it.

use hprof_index::storage::store::Stage;
use hprof_index::{DumpGraph, Heap, ObjectGraph};
use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A query result about a heap, stored in its index.
#[derive(Debug)]
pub struct StoredResult<'h> {
    heap: &'h Heap,
    graph: &'h ObjectGraph,
    stage: Stage,
    key: u64,
}

impl<'h> StoredResult<'h> {
    /// Creates a handle of a query result, which depends on the dump, the version of this program, and `depends_on`.
    pub fn new(dump: &DumpGraph<'h>, stage: Stage, depends_on: &[u8]) -> Self {
        let all = [depends_on, env!("CARGO_PKG_VERSION").as_bytes()].concat();
        Self { heap: dump.heap, graph: dump.graph, stage, key: xxh3_64_with_seed(&all, 0) }
    }

    /// Returns the result, if it is stored. It may contain values of objects: `None` if values are hidden.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        if self.heap.hides_values() {
            return None;
        }
        serde_json::from_slice(&self.heap.stored_result(self.stage, self.key)?).ok()
    }

    /// Stores a result, unless values are hidden or the index is damaged.
    pub fn write<T: Serialize>(&self, answer: &T) {
        if self.heap.hides_values() || self.graph.is_damaged() {
            return;
        }
        let answer = serde_json::to_vec(answer).unwrap_or_default();
        if !answer.is_empty() {
            self.write_bytes(&answer);
        }
    }

    /// Stores a result as bytes.
    pub fn write_bytes(&self, answer: &[u8]) {
        self.heap.store_result(self.stage, self.key, answer);
    }
}

/// Object IDs as numbers.
pub mod object_id {
    use hprof_values::ObjectId;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes an object ID as a number.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
    pub fn serialize<S: Serializer>(object: &ObjectId, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(object.0)
    }

    /// Reads an object ID that was written as a number.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectId, D::Error> {
        u64::deserialize(from).map(ObjectId)
    }
}
