//! Places of large objects, kept in the index: finding them reads the whole dominator tree.

use hprof_index::{Heap, ObjectGraph};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::frameworks::Frameworks;

use super::DumpPlaces;

/// Version of the computation and of the stored form, incremented with every change of places or labels.
const VERSION: u8 = 1;
/// Maximum length of an answer that is kept.
const MAX_BYTES: usize = 64 << 20;

/// Places of large objects by one set of rules, in the index of a heap.
pub(super) struct KeptPlaces<'h> {
    heap: &'h Heap,
    graph: &'h ObjectGraph,
    key: u64,
}

impl<'h> KeptPlaces<'h> {
    pub(super) fn new(heap: &'h Heap, graph: &'h ObjectGraph, frameworks: &Frameworks, least: u64) -> Self {
        let program = env!("CARGO_PKG_VERSION").as_bytes();
        let depends_on =
            [&frameworks.hash().to_le_bytes(), &least.to_le_bytes(), program, &[VERSION]].concat();
        Self { heap, graph, key: xxh3_64_with_seed(&depends_on, 0) }
    }

    /// Returns the kept places. Names in them are values of objects: if those are hidden, none are read.
    pub(super) fn read(&self) -> Option<DumpPlaces> {
        if self.heap.hides_values() {
            return None;
        }
        let places: DumpPlaces = serde_json::from_slice(&self.heap.kept_places(self.key)?).ok()?;
        self.is_valid(&places).then_some(places)
    }

    /// Returns whether all numbers are in range.
    fn is_valid(&self, places: &DumpPlaces) -> bool {
        let tree = &self.graph.tree;
        let labels = places.labels.len();
        places.reachable_bytes == tree.reachable_bytes()
            && places.reachable_objects == u64::from(tree.reachable())
            && places.members.len() <= places.places.len()
            && places.members.iter().flatten().all(|position| position.0 < tree.reachable())
            && (0..).zip(&places.places).all(|(number, place)| {
                place.parent.is_none_or(|parent| parent < number) && (place.label as usize) < labels
            })
    }

    /// Keeps places, unless values are hidden in them or they were found with a damaged index.
    pub(super) fn write(&self, places: &DumpPlaces) {
        if self.heap.hides_values() || self.graph.is_damaged() {
            return;
        }
        let answer = serde_json::to_vec(places).unwrap_or_default();
        if (1..=MAX_BYTES).contains(&answer.len()) {
            self.heap.keep_places(self.key, &answer);
        }
    }
}

/// Object IDs as numbers.
pub(super) mod object_id {
    use hprof_parser::ObjectId;
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
    pub(in super::super) fn serialize<S: Serializer>(object: &ObjectId, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(object.0)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectId, D::Error> {
        u64::deserialize(from).map(ObjectId)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use hprof_index::graph::numbers::TreePosition;
    use hprof_index::{Options as HeapOptions, Quiet};
    use hprof_writer::{HeapModel, Jdk, Options, Root};

    #[test]
    fn numbers_out_of_range_are_not_read() {
        let mut model = HeapModel::default();
        let jdk = Jdk::add_to(&mut model);
        for text in ["a", "b"] {
            let string = jdk.string(&mut model, text);
            model.root(string, Root::JniGlobal { reference: 0x7f00 });
        }
        model.root_boot_classes();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("heap.hprof");
        model.write(&Options::hotspot()).write_file(&path).unwrap();
        let options = HeapOptions { index_dir: Some(dir.path().join("index")), ..HeapOptions::default() };
        let (heap, graph) = Heap::open_graph(&path, &options, &Quiet).unwrap();
        let rules = Frameworks::bundled();
        let right = DumpPlaces::of_large(&heap, &graph, heap.bytes(&Quiet).unwrap(), &rules, 1).unwrap();
        let kept = KeptPlaces::new(&heap, &graph, &rules, 1);
        assert_eq!(kept.read().as_ref(), Some(&right));
        let labels = u32::try_from(right.labels.len()).unwrap();
        let wrong: [fn(&mut DumpPlaces, u32); 6] = [
            |places, _| places.places[1].parent = Some(1),
            |places, labels| places.places[0].label = labels,
            |places, _| places.members.push(vec![TreePosition(1 << 20)]),
            |places, _| places.members.resize(places.places.len() + 1, Vec::new()),
            |places, _| places.reachable_bytes += 1,
            |places, _| places.reachable_objects += 1,
        ];
        for change in wrong {
            let mut places = right.clone();
            change(&mut places, labels);
            kept.write(&places);
            assert_eq!(kept.read(), None);
        }
        kept.write(&right);
        assert_eq!(kept.read(), Some(right));
        heap.keep_places(kept.key, b"{\"places\": [");
        assert_eq!(kept.read(), None);
    }
}
