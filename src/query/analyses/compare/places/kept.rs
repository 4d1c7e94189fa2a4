//! Places of large objects, stored in the index, since finding them requires a pass over the whole dominator tree.

use hprof_index::storage::store::Stage;
use hprof_index::{DumpGraph, ObjectGraph};

use crate::frameworks::Frameworks;
use hprof_base::kept::StoredResult;

use super::DumpPlaces;

/// Version of the stored form and its computation, incremented with every change of places or labels.
const VERSION: u8 = 2;

/// Stored places of large objects in the index of a heap, for one set of rules.
pub(super) struct StoredPlaces<'h> {
    graph: &'h ObjectGraph,
    answer: StoredResult<'h>,
}

impl<'h> StoredPlaces<'h> {
    pub(super) fn new(dump: &DumpGraph<'h>, frameworks: &Frameworks, least: u64) -> Self {
        let structures = crate::containers::VERSION.to_le_bytes();
        let depends_on =
            [&frameworks.hash().to_le_bytes()[..], &least.to_le_bytes(), &structures, &[VERSION]].concat();
        Self { graph: dump.graph, answer: StoredResult::new(dump, Stage::Places, &depends_on) }
    }

    /// Returns the stored places.
    pub(super) fn read(&self) -> Option<DumpPlaces> {
        self.answer.read().filter(|places| self.is_valid(places))
    }

    /// Returns whether all numbers in stored places are in range.
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

    /// Writes places to the index.
    pub(super) fn write(&self, places: &DumpPlaces) {
        self.answer.write(places);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use hprof_index::graph::numbers::TreePosition;
    use hprof_index::{Dump, Heap, Options as HeapOptions, Quiet};
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
        let rules = Frameworks::builtin();
        let dump = Dump::new(&heap, &graph).unwrap();
        let right = DumpPlaces::of_large(&dump, &rules, 1).unwrap();
        let kept = StoredPlaces::new(&dump, &rules, 1);
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
        kept.answer.write_bytes(b"{\"places\": [");
        assert_eq!(kept.read(), None);
    }
}
