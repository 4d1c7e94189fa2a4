//! Containers of the program whose elements lead to the objects that a thread or a library's container holds, such as 400
//! requests in a map, each with a reader that other objects reference as well. By the dominator tree the map holds nothing, but
//! it is the part that the program's developers can change.

use std::cell::Cell;
use std::collections::VecDeque;

use hprof_base::share::is_share;
use rustc_hash::FxHashSet;

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;
use hprof_index::storage::human_bytes::group_digits;
use hprof_values::ObjectId;
use hprof_values::names::is_of_jdk;

use crate::compare::places::library;
use crate::containers::Container;
use hprof_model::dominators::retained_of_set::{StronglyRetained, tops_of_positions};
use hprof_model::objects::strength::Exclusions;

use super::below::{Store, Suspects, container_reason};
use super::contents::{self, Reason};
use super::heap_places::HeapPlaces;
use super::positions::{common_bytes, is_within, retained_bytes};
use super::reader::{EvidenceReader, is_launcher};
use super::{LeakVerdict, Suspect, SuspectKind, SuspectRule, SuspectSubject};

/// Minimum number of elements of a container that explains other objects.
const MIN_ELEMENTS: u64 = 10;
/// Maximum difference between the number of elements and the number of the objects that they lead to, in percent of the latter.
const MAX_DIFFERENCE: u64 = 10;
/// Maximum number of elements from which references are followed.
const MAX_STARTS: usize = 64;
/// Maximum number of elements that are read to select those from which references are followed.
const MAX_READ: u64 = 1 << 20;
/// Minimum percentage of the elements that lead to different objects.
const MIN_LEADING: u64 = 90;
/// Maximum number of references from an element to the object that it leads to.
const MAX_STEPS: u32 = 6;
/// Maximum number of objects that are visited for an element.
const MAX_VISITED: usize = 512;
/// Maximum number of references of an object that are followed.
const MAX_REFERENCES: usize = 1 << 10;
/// Maximum number of references that are examined for all suspects of a heap.
const MAX_LOOKED_AT_REFERENCES: u64 = 1 << 23;
/// Maximum number of objects per element for the objects to be parts of the elements.
const FEW_PARTS: u64 = 10;
/// Maximum number of containers that are examined for objects of one class.
const MAX_LOOKED_AT: usize = 16;
/// Maximum number of objects that are visited to find the objects that a container retains.
const MAX_WALKED: u32 = 1 << 26;

/// A container that a suspect names instead of another holder.
struct PreferredContainer {
    container: Container,
    object: ObjectIndex,
    /// Evidence for naming the container.
    evidence: String,
}

/// Search for containers of the program.
struct ProgramContainerSearch<'r, 'a> {
    reader: &'r EvidenceReader<'a>,
    places: &'r HeapPlaces,
    /// Number of references that may still be examined.
    left: Cell<u64>,
}

/// Objects whose memory a container should explain.
struct ExplainedObjects<'s> {
    class: &'s str,
    objects: u64,
    retained_bytes: u64,
    /// Positions of the objects or of their dominators, ascending; none dominates another.
    tops: &'s [TreePosition],
}

impl<'r, 'a> ProgramContainerSearch<'r, 'a> {
    fn new(reader: &'r EvidenceReader<'a>, places: &'r HeapPlaces) -> Self {
        Self { reader, places, left: Cell::new(MAX_LOOKED_AT_REFERENCES) }
    }

    /// Returns a container of the program with about as many elements as there are `objects`, each of which leads to one of
    /// these. Containers of the library `but` are excluded.
    fn leading_to(&self, objects: &ExplainedObjects<'_>, but: &str) -> Option<&'r Container> {
        let is_alike = |one: &&Container| {
            one.elements >= MIN_ELEMENTS
                && one.elements.abs_diff(objects.objects).saturating_mul(100)
                    <= objects.objects.saturating_mul(MAX_DIFFERENCE)
        };
        let alike = self.places.containers.all.iter().filter(is_alike);
        let mut of_program = alike.filter(|one| self.is_of_program(one, but)).take(MAX_LOOKED_AT);
        of_program.find(|one| self.leads(one, objects))
    }

    /// Returns the container to name instead of the holder of a suspect's objects, if there is one.
    fn find_preferred(&self, row: &Suspect, tops: &[TreePosition]) -> Option<PreferredContainer> {
        let addresses = &self.reader.dump.graph.objects.addresses;
        let (class, objects, retained_bytes) = match (&row.reason, &row.group_class) {
            (Some(Reason::Children { class, objects, retained_bytes }), _) => {
                (class, *objects, *retained_bytes)
            }
            (Some(Reason::Members), Some(class)) => (class, row.objects, row.accumulated_bytes),
            _ => return None,
        };
        let owner = row.paths.as_ref().and_then(|paths| paths.owner.as_ref());
        let owner = owner.map_or("", |owner| library(&owner.class));
        let explained = ExplainedObjects { class, objects, retained_bytes, tops };
        if let Some(container) = self.leading_to(&explained, owner) {
            let object = addresses.index_of(container.object)?;
            let evidence = format!("each of its elements holds one {class}");
            let container = Container { is_shared: false, ..container.clone() };
            return Some(PreferredContainer { container, object, evidence });
        }
        // Each element has one of these, or a few.
        let place = row.place.as_ref().filter(|_| row.reason == Some(Reason::Members))?;
        let container = self.places.containers.of_object(place.object)?;
        let object = addresses.index_of(container.object)?;
        let are_many = is_share(objects, container.elements, MIN_LEADING);
        let are_parts = are_many && objects <= container.elements.saturating_mul(FEW_PARTS);
        let evidence = format!("it holds {} x {class}, directly or indirectly", group_digits(objects));
        // Its elements may be wrappers of the library around these objects.
        let are_wrapped = objects == container.elements && !is_of_jdk(class);
        let element_class = if are_wrapped { Some(class.clone()) } else { container.element_class.clone() };
        let container = Container { is_shared: false, element_class, ..container.clone() };
        are_parts.then_some(PreferredContainer { container, object, evidence })
    }

    /// Returns whether a field of a class of the program holds a container. Classes of the library `but` do not belong to the
    /// program.
    fn is_of_program(&self, container: &Container, but: &str) -> bool {
        let object = self.reader.dump.graph.objects.addresses.index_of(container.object);
        let field = object.and_then(|object| self.reader.holders.place(object, false).field);
        field.is_some_and(|field| library(&field.class) != but && self.reader.is_of_program(&field.class))
    }

    /// Returns whether most of the elements each lead to a different one of the objects by strong references, and the objects
    /// reached have at least half of the average size.
    fn leads(&self, container: &Container, objects: &ExplainedObjects<'_>) -> bool {
        let (graph, tree) = (self.reader.dump.graph, &self.reader.dump.graph.tree);
        let is_below = |object: ObjectIndex| {
            let position = tree.reachable_position(object);
            position.is_some_and(|position| is_within(tree, position, objects.tops))
        };
        let is_of_class = |object: ObjectIndex| {
            graph.objects.class(object).is_some_and(|own| self.reader.class_name(own) == objects.class)
        };
        let starts = self.elements(container);
        let mut found = FxHashSet::default();
        for start in &starts {
            let is_meant = |object| !found.contains(&object) && is_of_class(object) && is_below(object);
            let nearest = self.nearest(*start, &is_meant);
            found.extend(nearest);
        }
        let bytes = found.iter().filter_map(|object| tree.retained_bytes_of(*object));
        let bytes = bytes.fold(0, u64::saturating_add);
        let is_as_large = u128::from(bytes) * u128::from(objects.objects) * 2
            >= u128::from(objects.retained_bytes) * found.len() as u128;
        !starts.is_empty() && is_share(found.len() as u64, starts.len() as u64, MIN_LEADING) && is_as_large
    }

    /// Returns a sample of the elements of a JDK collection, evenly distributed.
    fn elements(&self, container: &Container) -> Vec<ObjectIndex> {
        let addresses = &self.reader.dump.graph.objects.addresses;
        let collections = self.reader.evidence.collections();
        let collection =
            addresses.index_of(container.object).and_then(|object| collections.collection(object));
        let Some(collection) = collection.filter(|_| container.elements <= MAX_READ) else {
            return Vec::new();
        };
        let apart = usize::try_from(container.elements).unwrap_or(usize::MAX).div_ceil(MAX_STARTS).max(1);
        let entries = collections.entries(&collection).step_by(apart).take(MAX_STARTS);
        entries.filter_map(|entry| addresses.index_of(entry.value.reference()?)).collect()
    }

    /// Returns the nearest object for which `is_meant` is true and that is reachable by strong references.
    fn nearest(&self, start: ObjectIndex, is_meant: &dyn Fn(ObjectIndex) -> bool) -> Option<ObjectIndex> {
        let graph = self.reader.dump.graph;
        let edges = &self.reader.evidence.view.edges;
        let mut visited = FxHashSet::from_iter([start]);
        let mut queue = VecDeque::from([(start, 0)]);
        while let Some((object, steps)) = queue.pop_front() {
            if is_meant(object) {
                return Some(object);
            }
            if steps == MAX_STEPS {
                continue;
            }
            for next in graph.references(object).take(MAX_REFERENCES) {
                if visited.len() >= MAX_VISITED || self.left.get() == 0 {
                    break;
                }
                self.left.set(self.left.get() - 1);
                // Loaders, classes and threads lead everywhere.
                let is_passed = !visited.contains(&next)
                    && self.reader.suspect_object(graph.objects.class(next)) == SuspectSubject::Instance
                    && edges.is_followed(object, next, Exclusions::all_but_strong());
                if is_passed {
                    visited.insert(next);
                    queue.push_back((next, steps + 1));
                }
            }
        }
        None
    }
}

impl EvidenceReader<'_> {
    /// Returns whether a class is known to belong to the program: the class in which `main` starts does, or that of
    /// another thread if `main` has ended or only launches the program.
    pub(super) fn is_of_program(&self, class: &str) -> bool {
        let of = library(class);
        let is_of_threads =
            || !is_launcher(class) && self.evidence.programs.iter().any(|program| program == of);
        !is_of_jdk(class) && self.program.as_ref().map_or_else(is_of_threads, |program| program == of)
    }
}

impl Suspect {
    /// Returns whether the suspect is about a container, or names the container as another holder of its objects.
    fn names(&self, container: ObjectId) -> bool {
        self.container.as_ref().is_some_and(|own| own.object == container)
            || self.also_held_by.iter().any(|other| other.holder.object == container)
    }
}

impl Suspects {
    /// Adds suspects for the containers of the program that explain the parts of a holder, which is usually the thread that
    /// runs the program. Their sizes are what strong references from the containers retain.
    pub(super) fn add_program_containers(
        &mut self,
        graph: &ObjectGraph,
        reader: &EvidenceReader<'_>,
        places: &HeapPlaces,
        threshold: u64,
    ) {
        let search = ProgramContainerSearch::new(reader, places);
        let tree = &graph.tree;
        let mut tried: FxHashSet<ObjectId> = FxHashSet::default();
        let mut found: Vec<(usize, Container)> = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let above = self.positions.get(at).and_then(|positions| positions.first().copied());
            let Some(above) = above.filter(|above| tree.end(*above).0 - above.0 <= MAX_WALKED) else {
                continue;
            };
            if row.verdict != LeakVerdict::Holder || row.kind != SuspectKind::Single {
                continue;
            }
            for part in row.parts.iter().filter(|part| part.object.is_none() && !part.is_class_object) {
                let explained = ExplainedObjects {
                    class: &part.class,
                    objects: part.objects,
                    retained_bytes: part.retained_bytes,
                    tops: &[above],
                };
                let Some(container) = search.leading_to(&explained, "") else { continue };
                let object = graph.objects.addresses.index_of(container.object);
                let is_below = |object: &ObjectIndex| {
                    tree.reachable_position(*object).is_some_and(|own| tree.dominates(above, own))
                };
                let Some(object) = object.filter(is_below) else { continue };
                if !tried.insert(container.object) || self.rows.iter().any(|row| row.names(container.object))
                {
                    continue;
                }
                let freed = StronglyRetained::new(&reader.evidence.view.edges, above, object);
                // The parts may also be held elsewhere, or belong to another suspect.
                let is_cause = freed.bytes > threshold && contents::is_most(freed.bytes, part.retained_bytes);
                if is_cause && !self.is_explained(graph, &freed) {
                    let container =
                        Container { retained_bytes: freed.bytes, is_shared: false, ..container.clone() };
                    found.push((at, container));
                }
            }
        }
        for (holder, container) in found {
            let Some(store) = Store::of_container(graph, places, &container) else { continue };
            let rows = self.rows.len();
            let added = self.add(graph, reader, SuspectRule::Below, store).filter(|at| *at == rows);
            let held = self.rows.get(holder).map_or(0, |row| row.retained_bytes);
            if let Some(row) = added.and_then(|at| self.rows.get_mut(at)) {
                row.covers =
                    if contents::is_most(container.retained_bytes, held) { vec![holder] } else { Vec::new() };
                row.evidence.push("its size counts only strong references".to_owned());
            }
        }
    }

    /// Returns whether more than half of a suspect's memory would be freed together with a container.
    fn is_explained(&self, graph: &ObjectGraph, freed: &StronglyRetained) -> bool {
        let tree = &graph.tree;
        let is_freed =
            |position: &TreePosition| tree.object_at(*position).is_some_and(|object| freed.contains(object));
        self.explained_positions().any(|positions| {
            let common: Vec<TreePosition> = positions.iter().copied().filter(is_freed).collect();
            retained_bytes(tree, &common) > retained_bytes(tree, positions) / 2
        })
    }

    /// Replaces holders in libraries by the container of the program whose elements lead to the same objects, and replaces
    /// objects with several holders by the collection that contains them directly or indirectly. Suspects caused by the same
    /// container are merged.
    pub(super) fn prefer_containers(&mut self, reader: &EvidenceReader<'_>, places: &HeapPlaces) {
        let search = ProgramContainerSearch::new(reader, places);
        let mut known: Vec<(usize, ObjectId)> = Vec::new();
        let mut removed = Vec::new();
        let is_plain = |row: &Suspect| row.is_judged() && row.framework.is_none();
        for (at, row) in self.rows.iter_mut().enumerate().filter(|(_, row)| is_plain(row)) {
            let own = row.container.as_ref().map(|container| container.object);
            let tops = self.positions.get(at).map_or(&[] as &[_], Vec::as_slice);
            let found = search.find_preferred(row, tops);
            let object = found.as_ref().map(|found| found.container.object).or(own);
            if let Some((first, _)) = known.iter().find(|(_, known)| Some(*known) == object) {
                removed.push((at, *first));
                continue;
            }
            known.extend(object.map(|object| (at, object)));
            let Some(found) = found else { continue };
            row.place = Some(reader.holders.place(found.object, false));
            row.also_held_by.retain(|other| other.holder.object != found.container.object);
            row.collection = row.place.as_ref().and_then(|place| reader.evidence.collection(place));
            row.paths = reader.evidence.paths(found.object);
            row.base = reader.evidence.named_object(found.object);
            row.point = Some(row.base.clone());
            (row.named, row.elements) = (None, None);
            row.evidence = vec![found.evidence];
            let container = Container { retained_bytes: row.accumulated_bytes, ..found.container };
            row.reason = Some(container_reason(&container));
            row.container = Some(container);
        }
        self.merge(&reader.dump.graph.tree, &removed);
    }

    /// Merges rows into others; each pair contains the numbers of the removed and of the remaining row.
    fn merge(&mut self, tree: &Tree, removed: &[(usize, usize)]) {
        for (at, into) in removed.iter().rev() {
            let (row, positions) = (self.rows.remove(*at), self.positions.remove(*at));
            let (Some(first), Some(own)) = (self.rows.get_mut(*into), self.positions.get_mut(*into)) else {
                continue;
            };
            // By strong references, the first can retain more than its positions do.
            let beyond = first.accumulated_bytes.saturating_sub(retained_bytes(tree, own));
            let more = row.accumulated_bytes.saturating_sub(common_bytes(tree, &positions, own));
            let more = more.saturating_sub(beyond);
            first.wasted = None;
            first.covers.extend(row.covers);
            first.retained_bytes = first.retained_bytes.saturating_add(more);
            first.accumulated_bytes = first.accumulated_bytes.saturating_add(more);
            if let Some(container) = &mut first.container {
                container.retained_bytes = container.retained_bytes.saturating_add(more);
            }
            own.extend(positions);
            *own = tops_of_positions(tree, std::mem::take(own));
            for place in self.of_places.iter_mut().flatten() {
                match (*place).cmp(at) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal => *place = *into,
                    std::cmp::Ordering::Greater => *place -= 1,
                }
            }
        }
    }
}
