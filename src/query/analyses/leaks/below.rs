//! Accumulations within holders. If a bean factory, a server object or a thread holds nearly everything, each store below it
//! that retains more than the threshold is a suspect, at any depth.
//!
//! Stores are places that explain the heap ([`HeapPlaces`]), so many similar objects with the same kind of contents (for
//! example, ten results with their rows) are one suspect with the total size.

use std::cmp::Reverse;

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;
use hprof_index::{Dump, ObjectGraph};
use hprof_values::names::is_of_jdk;

use crate::compare::places::{ExplainedPlace, library};
use crate::containers::Container;
use crate::frameworks::FrameworkDescription;

use super::containers;
use super::contents::{self, ContentsLevel, Reason};
use super::fixed_buffers;
use super::heap_places::{FrameworkLeak, HeapPlaces};
use super::holders::Holder;
use super::nodes::{self, NodeForm};
use super::other_holders::{common_holder, other_holders};
use super::positions::{accumulated_at, common_bytes, retained_bytes};
use super::reader::EvidenceReader;
use super::{
    LeakVerdict, NamedElements, Suspect, SuspectCandidate, SuspectKind, SuspectRule, SuspectSubject,
};

/// Maximum number of other holders of a suspect that are reported.
const MAX_OTHER_HOLDERS: usize = 4;
/// Maximum number of children of an accumulation point that are compared with the objects that a rule's sentence
/// explains.
const MAX_CHILDREN: usize = 1 << 16;

/// One or several objects that store many similar elements, with their description.
pub(super) struct Store {
    /// Positions of the objects, ascending; no object dominates another.
    pub(super) positions: Vec<TreePosition>,
    /// The object that retains the most, or that a framework's rule describes.
    pub(super) object: TreePosition,
    /// Number of objects at the place; can exceed the number of positions.
    pub(super) objects: u64,
    /// Retained size of all objects.
    pub(super) retained_bytes: u64,
    /// Form of accumulation; `None` if the store is only content.
    pub(super) reason: Option<Reason>,
    /// `true` if the objects are heads of chains or trees that consist of the elements.
    pub(super) are_heads: bool,
    /// Short description of the place, if it contains a name from the program.
    pub(super) named: Option<String>,
    /// The elements, if they share a name.
    pub(super) elements: Option<NamedElements>,
    pub(super) description: Option<FrameworkDescription>,
    /// Container to which the store corresponds.
    pub(super) container: Option<Container>,
    /// Largest object whose retained size a rule's sentence explains, other than the described one.
    pub(super) largest: Option<TreePosition>,
}

impl Store {
    /// Creates the store of explained places; `None` if the places merely consist of many objects, or if they neither store
    /// similar elements nor are content.
    pub(super) fn new(graph: &ObjectGraph, places: &HeapPlaces, one: &ExplainedPlace) -> Option<Self> {
        let (tree, aligned) = (&graph.tree, &places.heap.aligned);
        let positions = places.heap.members(one);
        let object = largest(tree, &positions)?;
        let near = || places.description_near(graph, *positions.first().filter(|_| positions.len() == 1)?);
        let of_set = || places.description_of_set(tree, &positions);
        let description = places.description(graph, one).or_else(near).or_else(of_set).cloned();
        let title = aligned.title(one.place);
        let mut store = Self {
            object,
            objects: one.objects,
            retained_bytes: one.retained_bytes,
            reason: None,
            are_heads: false,
            named: Some(title.text),
            elements: None,
            description,
            container: None,
            largest: None,
            positions,
        };
        let Some(elements) = one.elements else {
            return Some(store)
                .filter(|store| store.description.as_ref().is_some_and(FrameworkDescription::is_content));
        };
        let name = places.heap.name_of_elements(&elements).map(str::to_owned);
        let is_said = store.description.as_ref().is_some_and(|known| known.text.is_some());
        let nodes = match elements.heads {
            0 => None,
            heads => nodes::form(graph, &store.positions, heads, store.retained_bytes),
        };
        let is_told = elements.place != one.place || nodes.is_some() || name.is_some();
        if !is_told || !elements.is_of_one_kind && !is_said {
            return None;
        }
        // Only those of the named class.
        let is_part = name.is_some() || elements.is_mostly;
        let objects = if is_part { aligned.figures(0, elements.place).objects } else { elements.objects };
        let class = aligned.label(elements.place).class.as_deref().unwrap_or_default().to_owned();
        if nodes.is_some() {
            (store.objects, store.are_heads) = (elements.heads, true);
        }
        store.reason = Some(match nodes {
            Some(NodeForm::Chains) => {
                Reason::Chain { class, chains: elements.heads, objects, is_whole: true }
            }
            _ => Reason::Children { class, objects, retained_bytes: elements.retained_bytes },
        });
        store.elements = name.map(|name| NamedElements { name, objects });
        Some(store)
    }

    /// Returns the levels in which the store accumulates: objects of a class, and their elements.
    pub(super) fn levels(&self, class: &str) -> Vec<ContentsLevel> {
        let own = ContentsLevel {
            class: class.to_owned(),
            objects: self.objects,
            chain: 1,
            retained_bytes: self.retained_bytes,
            ..ContentsLevel::default()
        };
        match &self.reason {
            Some(Reason::Children { class, objects, retained_bytes }) => {
                let (class, retained_bytes) = (class.clone(), *retained_bytes);
                vec![
                    own,
                    ContentsLevel {
                        class,
                        objects: *objects,
                        chain: 1,
                        retained_bytes,
                        ..ContentsLevel::default()
                    },
                ]
            }
            _ => vec![own],
        }
    }

    /// Creates the store of a container.
    pub(super) fn of_container(
        graph: &ObjectGraph,
        places: &HeapPlaces,
        container: &Container,
    ) -> Option<Self> {
        let object = graph.objects.addresses.index_of(container.object);
        let object = object.and_then(|object| graph.tree.reachable_position(object))?;
        let alone = |position: &TreePosition| {
            (container.tops.len() == 1).then(|| places.description_near(graph, *position)).flatten()
        };
        let description = graph.tree.object_at(object).and_then(|object| places.description_of(object));
        Some(Self {
            object,
            positions: container.tops.clone(),
            objects: 1,
            retained_bytes: container.retained_bytes,
            reason: Some(container_reason(container)),
            are_heads: false,
            named: None,
            elements: None,
            description: description.or_else(|| container.tops.first().and_then(alone)).cloned(),
            container: Some(container.clone()),
            largest: None,
        })
    }

    /// Creates the store for a leak that a framework's rule reports.
    pub(super) fn of_rule(reader: &EvidenceReader<'_>, leak: &FrameworkLeak<'_>) -> Option<Self> {
        let tree = &reader.dump.graph.tree;
        let own = tree.reachable_position(leak.object);
        let others: Vec<TreePosition> =
            leak.positions.iter().copied().filter(|position| Some(*position) != own).collect();
        let largest = largest(tree, &others).or(own)?;
        let class = reader.class_at(largest);
        let alike = leak.positions.iter().filter(|position| reader.class_at(**position) == class);
        Some(Self {
            object: own.unwrap_or(largest),
            positions: leak.positions.clone(),
            objects: 1,
            retained_bytes: leak.retained_bytes,
            reason: Some(Reason::Children {
                class: class.to_owned(),
                objects: alike.count() as u64,
                retained_bytes: leak.retained_bytes,
            }),
            are_heads: false,
            named: leak.description.called.clone(),
            elements: None,
            description: Some(leak.description.clone()),
            container: None,
            largest: own.map(|_| largest).filter(|largest| Some(*largest) != own),
        })
    }
}

fn largest(tree: &Tree, positions: &[TreePosition]) -> Option<TreePosition> {
    positions.iter().copied().max_by_key(|position| (tree.retained_bytes(*position), Reverse(*position)))
}

/// Suspects found so far, and the objects that the accumulations among them explain.
#[derive(Default)]
pub(super) struct Suspects {
    pub(super) rows: Vec<Suspect>,
    /// Positions of each suspect's objects.
    pub(super) positions: Vec<Vec<TreePosition>>,
    /// By place that explains the heap: number of the suspect that explains the place's objects.
    pub(super) of_places: Vec<Option<usize>>,
    /// Numbers of suspects that are not holders, with the positions that they explain.
    explained: Vec<(usize, Vec<TreePosition>)>,
}

impl Suspects {
    /// Returns the positions that each suspect explains, except for holders.
    pub(super) fn explained_positions(&self) -> impl Iterator<Item = &Vec<TreePosition>> {
        self.explained.iter().map(|(_, positions)| positions)
    }

    /// Adds a suspect found by MAT's rules.
    pub(super) fn push(&mut self, row: Suspect, positions: Vec<TreePosition>) {
        self.rows.push(row);
        self.positions.push(positions);
    }

    /// Adds the suspects within holders that retain more than `threshold` bytes, with descriptions of the suspects or their
    /// elements by frameworks' rules.
    pub(super) fn add_below(
        &mut self,
        graph: &ObjectGraph,
        reader: &EvidenceReader<'_>,
        places: &HeapPlaces,
        threshold: u64,
    ) {
        let leaks = places.leaks(graph, threshold);
        let leaks = leaks.iter().filter_map(|leak| Store::of_rule(reader, leak));
        for store in leaks {
            self.add(graph, reader, SuspectRule::Framework, store);
        }
        for one in &places.explained.places {
            let is_large = one.retained_bytes > threshold;
            let store = if is_large { Store::new(graph, places, one) } else { None };
            // A holder by MAT's rules is not a suspect by ours.
            let store = store.filter(|store| store.objects > 1 || !self.is_holder(graph, store.object));
            let at = match store {
                Some(store) => self.add(graph, reader, SuspectRule::Below, store),
                None => match self.relation(&graph.tree, &places.heap.members(one)) {
                    SuspectRelation::Same(at) => Some(at),
                    SuspectRelation::No | SuspectRelation::Part => None,
                },
            };
            self.of_places.push(at);
        }
        for container in containers::accumulating(places, threshold) {
            let Some(store) = Store::of_container(graph, places, container) else { continue };
            if !self.is_known_container(graph, container) {
                self.add(graph, reader, SuspectRule::Below, store);
            }
        }
        self.find_containers(graph, reader, places);
        self.find_other_holders(graph, reader, places);
    }

    /// Returns whether one of the suspects explains most of a container's retained size.
    fn is_known_container(&self, graph: &ObjectGraph, container: &Container) -> bool {
        let bytes = container.retained_bytes;
        self.explained
            .iter()
            .any(|(_, own)| contents::is_most(common_bytes(&graph.tree, &container.tops, own), bytes))
    }

    /// Finds the containers of the suspects that have none. A holder of a container with elements of several classes is an
    /// accumulation that MAT's rules miss.
    pub(super) fn find_containers(
        &mut self,
        graph: &ObjectGraph,
        reader: &EvidenceReader<'_>,
        places: &HeapPlaces,
    ) {
        for (row, positions) in
            self.rows.iter_mut().zip(&self.positions).filter(|(row, _)| row.container.is_none())
        {
            let own = accumulated_at(graph, row, positions);
            let Some(found) = containers::explaining(graph, places, &own) else { continue };
            let object = graph.objects.addresses.index_of(found.object);
            let place = object.map(|object| reader.holders.place(object, false));
            let is_elsewhere = row.place.as_ref().is_none_or(|known| known.object != found.object);
            // The field of the program above the container, rather than above one of its nodes.
            if let Some(paths) = &mut row.paths
                && let Some(of_container) =
                    object.filter(|_| is_elsewhere).and_then(|object| reader.evidence.paths(object))
            {
                (paths.owner, paths.user) = (of_container.owner, of_container.user);
            }
            row.set_container(found, place);
        }
    }

    /// Adds descriptions by frameworks' rules to the suspects found by MAT's rules.
    pub(super) fn describe(&mut self, dump: &Dump<'_>, reader: &EvidenceReader<'_>, places: &HeapPlaces) {
        let position = |id| dump.graph.tree.reachable_position(dump.graph.objects.addresses.index_of(id)?);
        for (at, (row, positions)) in self.rows.iter_mut().zip(&self.positions).enumerate() {
            let near = |id| places.description_near(dump.graph, position(id)?);
            if matches!(row.reason, Some(Reason::Threads { .. }))
                && let Some(local) = row.main_thread_local()
            {
                let buffers = fixed_buffers::describe(dump, &places.frameworks, local);
                row.describe(buffers.as_ref());
            }
            let of_children = || {
                let class = match &row.reason {
                    Some(Reason::Children { class, .. }) if row.container.is_none() => class,
                    _ => return None,
                };
                let children = dump.graph.tree.children(position(row.base.object)?).take(MAX_CHILDREN);
                let alike = children.filter(|child| reader.class_at(*child) == class);
                let mut alike: Vec<TreePosition> = alike.collect();
                alike.sort_unstable();
                places.description_of_set(&dump.graph.tree, &alike)
            };
            let of_container = || {
                let container = row.container.as_ref()?;
                places.description_of(dump.graph.objects.addresses.index_of(container.object)?)
            };
            let description = match row.kind {
                SuspectKind::Group => {
                    places.description_of_set(&dump.graph.tree, positions).or_else(of_container)
                }
                SuspectKind::Single => {
                    of_children().or_else(|| near(row.base.object)).or_else(|| near(row.object.object))
                }
            };
            row.describe(description);
            if row.verdict != LeakVerdict::Holder {
                self.explained.push((at, accumulated_at(dump.graph, row, positions)));
            }
        }
    }

    /// Finds other holders of the accumulated objects. Objects that the program is meant to hold are not a leak if another
    /// object holds them as well.
    fn find_other_holders(&mut self, graph: &ObjectGraph, reader: &EvidenceReader<'_>, places: &HeapPlaces) {
        let position = |object| graph.tree.reachable_position(object);
        let of_id = |id| position(graph.objects.addresses.index_of(id)?);
        let accumulates = |(row, _): &(&mut Suspect, &Vec<TreePosition>)| {
            row.verdict == LeakVerdict::Accumulation && row.what != SuspectSubject::Thread
        };
        for (row, positions) in self.rows.iter_mut().zip(&self.positions).filter(accumulates) {
            let known: Vec<TreePosition> =
                [row.base.object, row.object.object].into_iter().filter_map(of_id).collect();
            let others = other_holders(&reader.evidence.view.edges, positions, &known);
            let near = |object: ObjectIndex| places.description_near(graph, position(object)?);
            row.describe(others.iter().filter_map(|other| near(*other)).find(|known| known.is_content()));
            for other in others {
                let other = reader.other_holder(near(other), other);
                let is_own = other.called.is_some() && other.called == row.named;
                if !is_own && row.also_held_by.len() < MAX_OTHER_HOLDERS && !row.also_held_by.contains(&other)
                {
                    row.also_held_by.push(other);
                }
            }
            if row.rule == SuspectRule::Framework && row.also_held_by.is_empty() {
                // The objects that a sentence explains are the framework's; the program may hold them through more of these.
                let mut libraries: Vec<&str> =
                    positions.iter().map(|position| library(reader.class_at(*position))).collect();
                libraries.extend(row.object.class.as_deref().map(library));
                libraries.sort_unstable();
                libraries.dedup();
                let is_of_program = |object| {
                    let field = reader.other_holder(None, object).holder.field;
                    field.is_some_and(|field| {
                        !is_of_jdk(&field.class) && !libraries.contains(&library(&field.class))
                    })
                };
                let found = common_holder(&reader.evidence.view.edges, positions, &known, &is_of_program);
                row.also_held_by.extend(found.map(|object| reader.other_holder(None, object)));
            }
        }
    }

    /// Returns whether an object contains little more than the accumulation point of a holder.
    fn is_holder(&self, graph: &ObjectGraph, object: TreePosition) -> bool {
        self.rows.iter().any(|row| {
            let base = graph.objects.addresses.index_of(row.base.object);
            let base = base.and_then(|base| graph.tree.reachable_position(base));
            row.verdict == LeakVerdict::Holder
                && row.kind == SuspectKind::Single
                && base.is_some_and(|base| {
                    let bytes = |position| graph.tree.retained_bytes(position);
                    graph.tree.dominates(object, base) && contents::is_most(bytes(base), bytes(object))
                })
        })
    }

    /// Adds a suspect for a store, or adds the store's description to the suspect that explains the same objects. Returns the
    /// number of the suspect.
    pub(super) fn add(
        &mut self,
        graph: &ObjectGraph,
        reader: &EvidenceReader<'_>,
        rule: SuspectRule,
        store: Store,
    ) -> Option<usize> {
        // Heads that are already suspects need no suspect for all of them.
        if store.are_heads && self.are_explained(&graph.tree, &store.positions) {
            return None;
        }
        match self.relation(&graph.tree, &store.positions) {
            SuspectRelation::No => {
                let positions = store.positions.clone();
                let (named, description) = (store.named.clone(), store.description.clone());
                let row = reader.suspect(within_holder(graph, store));
                let covers = self.covered_holders(&graph.tree, &positions);
                let mut row = Suspect { rule, named, covers, ..row };
                row.describe(description.as_ref());
                let at = self.rows.len();
                if row.verdict != LeakVerdict::Holder {
                    self.explained.push((at, positions.clone()));
                }
                self.push(row, positions);
                Some(at)
            }
            SuspectRelation::Same(at) => {
                let row = self.rows.get_mut(at)?;
                row.elements = row.elements.take().or(store.elements);
                row.describe(store.description.as_ref());
                Some(at)
            }
            SuspectRelation::Part => None,
        }
    }

    /// Returns the numbers of the holders whose retained size the given objects mostly explain. The objects must be ascending,
    /// and none may dominate another.
    fn covered_holders(&self, tree: &Tree, positions: &[TreePosition]) -> Vec<usize> {
        let rows = self.rows.iter().zip(&self.positions).enumerate();
        let is_covered = |row: &Suspect, of: &[TreePosition]| {
            row.verdict == LeakVerdict::Holder
                && contents::is_most(common_bytes(tree, of, positions), row.retained_bytes)
        };
        rows.filter(|(_, (row, of))| is_covered(row, of)).map(|(at, _)| at).collect()
    }

    /// Returns whether the suspects found before explain most of the given objects together, but none of them does alone.
    fn are_explained(&self, tree: &Tree, positions: &[TreePosition]) -> bool {
        let common: Vec<u64> =
            self.explained.iter().map(|(_, of)| common_bytes(tree, positions, of)).collect();
        let own = retained_bytes(tree, positions);
        !common.iter().any(|one| contents::is_most(*one, own))
            && contents::is_most(common.into_iter().fold(0, u64::saturating_add), own)
    }

    /// Returns the relation of the given objects to the suspects found before. The objects must be ascending, and none may
    /// dominate another.
    fn relation(&self, tree: &Tree, positions: &[TreePosition]) -> SuspectRelation {
        let own = retained_bytes(tree, positions);
        for (at, explained) in &self.explained {
            let common = common_bytes(tree, positions, explained);
            if common > 0 && contents::is_most(common, own) {
                let is_same = contents::is_most(common, retained_bytes(tree, explained));
                return if is_same { SuspectRelation::Same(*at) } else { SuspectRelation::Part };
            }
        }
        SuspectRelation::No
    }
}

/// Relation of objects to the suspects found before.
enum SuspectRelation {
    /// No suspect explains most of the objects.
    No,
    /// The suspect with this number explains most of the objects, and little else.
    Same(usize),
    /// The objects are part of the objects that a suspect explains.
    Part,
}

impl Suspect {
    /// Sets the container to which the suspect corresponds, and its place. A single holder becomes an accumulation.
    fn set_container(&mut self, container: Container, place: Option<Holder>) {
        if self.verdict == LeakVerdict::Holder && self.kind == SuspectKind::Single {
            (self.verdict, self.reason) = (LeakVerdict::Accumulation, Some(container_reason(&container)));
            if self.is_behind_soft {
                self.verdict = LeakVerdict::Content;
            }
        }
        if self.rule == SuspectRule::Mat
            && matches!(self.reason, Some(Reason::Children { .. } | Reason::Chain { .. }))
        {
            self.place = place.or(self.place.take());
        }
        self.container = Some(container);
    }

    /// Adds the description by a framework's rule: the name, and whether it is content.
    fn describe(&mut self, description: Option<&FrameworkDescription>) {
        let Some(description) = description.filter(|_| self.framework.is_none()) else { return };
        if description.is_content() {
            self.verdict = LeakVerdict::Content;
        }
        // A factory has no sentence: the name of the bean is more informative.
        let called = description.called.clone();
        self.named = if description.text.is_some() {
            called.or(self.named.take())
        } else {
            self.named.take().or(called)
        };
        self.framework = Some(description.clone());
    }
}

/// Returns the form of accumulation of a container.
pub(super) fn container_reason(container: &Container) -> Reason {
    let objects = container.elements_of_class();
    let class = container.element_class.clone().unwrap_or_else(|| "java.lang.Object".to_owned());
    Reason::Children { class, objects, retained_bytes: container.retained_bytes }
}

/// Returns the suspect candidate for a store within a holder.
pub(super) fn within_holder(graph: &ObjectGraph, store: Store) -> SuspectCandidate {
    let shallow = store.positions.iter().map(|position| graph.tree.shallow_bytes(*position));
    let object = graph.tree.object_at(store.object);
    SuspectCandidate {
        kind: if store.objects > 1 { SuspectKind::Group } else { SuspectKind::Single },
        class: object.and_then(|object| graph.objects.class(object)),
        positions: vec![store.object],
        retained_bytes: store.retained_bytes,
        shallow_bytes: shallow.fold(0, u64::saturating_add),
        point: object,
        chain: None,
        common: None,
        store: Some(store),
    }
}
