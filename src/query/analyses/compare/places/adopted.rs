//! Objects dominated only by GC roots: threads and roots, which are identified by kind or name; and objects that are
//! roots only while a method runs, which are moved to the object that also references them.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use hprof_base::naming::stable_names;
use hprof_index::DumpGraph;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_model::dominators::holder_field;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::label::Labels;
use hprof_model::objects::reference_kind::ReferenceKind;
use hprof_model::objects::reference_names::Edges;
use hprof_values::RootKind;

use super::labels::{Pool, Via};

/// Maximum number of threads that are identified by name.
const MAX_THREADS: usize = 1 << 16;
/// Maximum number of objects on stacks examined, largest retained size first.
const MAX_ADOPTED: usize = 1 << 14;

/// Returns the number of the [`Via`] of each thread and root, by object.
pub(super) fn special(
    dump: &DumpGraph<'_>,
    labels: &Labels<'_>,
    vias: &mut Pool<Via>,
) -> FxHashMap<u32, u32> {
    let mut special: FxHashMap<u32, u32> = FxHashMap::default();
    let is_thread = ClassSet::of_name_and_below(dump.summary, "java.lang.Thread");
    for root in dump.graph.roots.rows.iter().filter(|root| !is_passing(root.kind)) {
        let class = dump.graph.objects.class(root.object);
        let is_known_otherwise = dump.graph.class_of_class_object(root.object).is_some()
            || class.is_some_and(|class| is_thread.contains(class));
        if !is_known_otherwise {
            special.entry(root.object.0).or_insert_with(|| vias.number(Via::Root(root.kind.name().into())));
        }
    }
    for thread in is_thread.all_objects(dump.graph).into_iter().take(MAX_THREADS) {
        // Virtual threads usually have no name.
        if let Some(name) = labels.unmasked_label(thread).filter(|name| !name.is_empty()) {
            special.insert(thread.0, vias.number(Via::Thread(stable_names::fold_numbers(&name).into())));
        }
    }
    special
}

/// Returns whether roots of this kind exist only while a method runs.
fn is_passing(kind: RootKind) -> bool {
    use RootKind::{JavaFrame, JniLocal, JniMonitor, MonitorUsed, NativeStack, ThreadBlock};
    matches!(kind, JavaFrame | JniLocal | JniMonitor | MonitorUsed | NativeStack | ThreadBlock)
}

/// Returns objects that are referenced by thread stacks and, apart from threads, by a single object: for each, that holder and
/// the kind of reference. Their places depend neither on the methods that run, nor on the objects for which a thread waits
/// (`Thread.parkBlocker`).
pub(super) fn adopted_objects<'a>(edges: &Edges<'a>) -> FxHashMap<u32, (ObjectIndex, ReferenceKind<'a>)> {
    let (graph, tree) = (edges.dump.graph, &edges.dump.graph.tree);
    let is_thread = ClassSet::of_name_and_below(edges.dump.summary, "java.lang.Thread");
    let on_stacks = graph.roots.rows.iter().filter(|root| is_passing(root.kind));
    let mut objects: Vec<ObjectIndex> = on_stacks.map(|root| root.object).collect();
    objects.sort_unstable();
    objects.dedup();
    let mut largest: Vec<(Reverse<u64>, ObjectIndex)> = objects
        .into_iter()
        .filter(|object| {
            let is_other_root = edges.roots.of_object(*object).any(|root| !is_passing(root.kind));
            !is_other_root && graph.class_of_class_object(*object).is_none()
        })
        .filter_map(|object| Some((Reverse(tree.retained_bytes_of(object)?), object)))
        .collect();
    largest.sort_unstable();
    let mut adopted = FxHashMap::default();
    for (_, object) in largest.into_iter().take(MAX_ADOPTED) {
        let Some(position) = tree.reachable_position(object) else { continue };
        let counts = |holder: ObjectIndex| {
            let is_inside = tree.position(holder).is_some_and(|at| tree.dominates(position, at));
            !is_inside && !graph.objects.class(holder).is_some_and(|class| is_thread.contains(class))
        };
        if let Some((holder, kind)) = holder_field::holder(edges, object, counts)
            && matches!(kind, ReferenceKind::Field { .. } | ReferenceKind::Static(_) | ReferenceKind::Slot(_))
        {
            adopted.insert(object.0, (holder, kind));
        }
    }
    adopted
}
