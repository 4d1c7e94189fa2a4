//! Objects that only GC roots dominate: threads and roots, which are known by what they are; and objects that are a root only
//! while a method runs, which are taken to the object that holds them beside.

use rustc_hash::FxHashMap;

use crate::hprof::RootKind;
use crate::index::graph::numbers::ObjectIndex;
use crate::index::{Heap, ObjectGraph};
use crate::query::compare::names;
use crate::query::dominators::holder;
use crate::query::objects::class_set::ClassSet;
use crate::query::objects::label::Labels;
use crate::query::objects::reference_kind::ReferenceKind;
use crate::query::objects::reference_names::Edges;

use super::labels::{Pool, Via};

/// Threads that are known by their names.
const MAX_THREADS: usize = 1 << 16;
/// Objects that are held by a stack too and taken for being held by a field.
const MAX_ADOPTED: usize = 1 << 10;

/// A reference to an object that is adopted.
#[derive(Debug, Clone)]
pub(super) enum ReferenceOf {
    Field(String, String),
    Static(String),
    Element,
}

/// How threads and roots are held: by object, the number of its [`Via`].
pub(super) fn special(
    heap: &Heap,
    graph: &ObjectGraph,
    labels: &Labels<'_>,
    vias: &mut Pool<Via>,
) -> FxHashMap<u32, u32> {
    let threads = ClassSet::of_name_and_below(heap.summary(), "java.lang.Thread").all_objects(graph);
    let mut special: FxHashMap<u32, u32> = FxHashMap::default();
    for root in graph.roots.rows.iter().filter(|root| !is_passing(root.kind)) {
        if graph.class_of_class_object(root.object).is_none() {
            special.entry(root.object.0).or_insert_with(|| vias.number(Via::Root(root.kind.name())));
        }
    }
    for thread in threads.into_iter().take(MAX_THREADS) {
        if let Some(name) = labels.label(thread) {
            special.insert(thread.0, vias.number(Via::Thread(names::masked(&name).into())));
        }
    }
    special
}

/// Whether a root is one only while a method runs.
fn is_passing(kind: RootKind) -> bool {
    use RootKind::{JavaFrame, JniLocal, JniMonitor, MonitorUsed, NativeStack, ThreadBlock};
    matches!(kind, JavaFrame | JniLocal | JniMonitor | MonitorUsed | NativeStack | ThreadBlock)
}

/// Large objects that only roots dominate, though beside the stacks of threads a single object holds them: object, holder,
/// and how that holds it.
pub(super) fn adopted(edges: &Edges<'_>, least: u64) -> FxHashMap<u32, (ObjectIndex, ReferenceOf)> {
    let (graph, tree) = (edges.graph, &edges.graph.tree);
    let mut adopted = FxHashMap::default();
    // The children of the root are sorted by what they retain.
    for position in
        tree.top().take_while(|position| tree.retained_bytes(*position) >= least).take(MAX_ADOPTED)
    {
        let Some(object) = tree.object_at(position) else { continue };
        let is_root = edges.roots.of_object(object).any(|root| !is_passing(root.kind));
        if is_root || graph.class_of_class_object(object).is_some() {
            continue;
        }
        let outside =
            |holder: ObjectIndex| tree.position(holder).is_none_or(|at| !tree.dominates(position, at));
        let Some((holder, kind)) = holder::holder(edges, object, outside) else { continue };
        let kind = match kind {
            ReferenceKind::Field { name, class } => ReferenceOf::Field(name.to_owned(), class.to_owned()),
            ReferenceKind::Static(name) => ReferenceOf::Static(name.to_owned()),
            ReferenceKind::Slot(_) => ReferenceOf::Element,
            _ => continue,
        };
        adopted.insert(object.0, (holder, kind));
    }
    adopted
}
