//! GC roots and what they retain.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::graph::tree::Tree;
use hprof_index::model::summary::ClassNumber;
use hprof_index::objects::gc_roots::GcRoot;
use hprof_values::{ObjectId, RootKind};

use crate::dominators::retained_of_set::retained_by_tree;
use crate::objects::label::Labels;
use crate::objects::selection::ThreadPattern;
use crate::threads::frames::Frames;
use hprof_base::sorting::SortRows;

/// Query for GC roots.
#[derive(Debug, Clone, Default)]
pub struct RootQuery {
    /// Kinds of roots; all if empty.
    pub kinds: Vec<RootKind>,
    /// Pattern of threads.
    pub thread: Option<ThreadPattern>,
    /// Maximum number of rows; all by default.
    pub top: Option<usize>,
}

/// Thread of a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootThread {
    /// Object ID.
    pub id: ObjectId,
    /// Name, if the dump has it.
    pub name: Option<String>,
}

/// An object that is a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootRow {
    /// Object ID.
    pub id: ObjectId,
    /// Class, if it is in the dump.
    pub class: Option<ClassNumber>,
    /// Short description that distinguishes it from others of its class.
    pub label: Option<String>,
    /// Kind of root.
    pub kind: RootKind,
    /// `true` if the root is assumed: a class of the boot loader, where there are no sticky classes.
    pub is_assumed: bool,
    /// Thread, if the root has one and it is known.
    pub thread: Option<RootThread>,
    /// Serial number of the thread, for the kinds that have one.
    pub thread_serial: Option<u32>,
    /// Frame number in the thread's stack trace.
    pub frame: Option<u32>,
    /// Frame in words, if the dump contains it.
    pub location: Option<String>,
    /// Number of times that the dump contains this root.
    pub times: u64,
    /// Shallow size in bytes.
    pub shallow_bytes: u64,
    /// Retained size in bytes.
    pub retained_bytes: u64,
}

/// All roots of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindRow {
    /// Kind of root.
    pub kind: RootKind,
    /// Number of roots.
    pub roots: u64,
    /// Number of objects: an object can be a root more than once.
    pub objects: u64,
    /// Bytes retained by the objects, by the dominator tree: an object that another one dominates does not count again.
    pub retained_bytes: u64,
}

/// GC roots that match a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RootReport {
    /// Kinds, most retained bytes first.
    pub kinds: Vec<KindRow>,
    /// Roots, most retained bytes first, at most `top`.
    pub rows: Vec<RootRow>,
    /// Number of rows before `top` was applied.
    pub total: u64,
}

/// Returns the roots that match a query, and what they retain.
pub fn roots(
    graph: &ObjectGraph,
    labels: &Labels<'_>,
    frames: &Frames<'_>,
    question: &RootQuery,
) -> RootReport {
    let tree = &graph.tree;
    let id = |object: ObjectIndex| graph.objects.addresses.id_of(object).unwrap_or_default();
    let mut names: FxHashMap<ObjectIndex, RootThread> = FxHashMap::default();
    let mut is_of_thread = |root: &GcRoot| match (&question.thread, root.thread) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wanted), Some(thread)) => {
            let thread = names
                .entry(thread)
                .or_insert_with(|| RootThread { id: id(thread), name: labels.label(thread) });
            wanted.matches(thread.id, thread.name.as_deref())
        }
    };
    let mut roots: Vec<GcRoot> = (graph.roots.rows.iter().copied())
        .filter(|root| question.kinds.is_empty() || question.kinds.contains(&root.kind))
        .filter(|root| is_of_thread(root))
        .collect();
    roots.sort_rows_by_key(key);
    let kinds = kinds(tree, &roots);
    let mut counted: Vec<(u64, GcRoot, u64)> = (roots.chunk_by(|a, b| key(a) == key(b)))
        .filter_map(|same| {
            let root = *same.first()?;
            let position = tree.reachable_position(root.object);
            Some((position.map_or(0, |position| tree.retained_bytes(position)), root, same.len() as u64))
        })
        .collect();
    // Stable sort: rows that retain the same stay in their order.
    counted.sort_rows_by_key(|(bytes, ..)| Reverse(*bytes));
    let total = counted.len() as u64;
    let rows = (counted.into_iter().take(question.top.unwrap_or(usize::MAX)))
        .map(|(retained_bytes, root, times)| RootRow {
            id: id(root.object),
            class: graph.objects.class(root.object),
            label: labels.label(root.object),
            kind: root.kind,
            is_assumed: root.is_assumed,
            thread: root.thread.map(|thread| {
                let known = names.get(&thread).cloned();
                known.unwrap_or_else(|| RootThread { id: id(thread), name: labels.label(thread) })
            }),
            thread_serial: root.thread_serial,
            frame: root.frame,
            location: frames.of_root(&graph.roots, &root).map(|frame| frame.to_string()),
            times,
            shallow_bytes: tree.position(root.object).map_or(0, |position| tree.shallow_bytes(position)),
            retained_bytes,
        })
        .collect();
    RootReport { kinds, rows, total }
}

/// Sums up all roots by kind.
pub fn by_kind(graph: &ObjectGraph) -> Vec<KindRow> {
    let mut roots = graph.roots.rows.clone();
    roots.sort_rows_by_key(key);
    kinds(&graph.tree, &roots)
}

/// Returns the identity of a root: roots with equal keys are the same.
fn key(root: &GcRoot) -> (RootKind, ObjectIndex, Option<u32>, Option<u32>, bool) {
    (root.kind, root.object, root.thread_serial, root.frame, root.is_assumed)
}

/// Sums up roots by kind; `roots` are sorted by kind and object.
fn kinds(tree: &Tree, roots: &[GcRoot]) -> Vec<KindRow> {
    let mut kinds: Vec<KindRow> = (roots.chunk_by(|a, b| a.kind == b.kind))
        .filter_map(|same| {
            let kind = same.first()?.kind;
            let mut objects: Vec<ObjectIndex> = same.iter().map(|root| root.object).collect();
            objects.dedup();
            let retained_bytes = retained_by_tree(tree, objects.iter().copied());
            Some(KindRow { kind, roots: same.len() as u64, objects: objects.len() as u64, retained_bytes })
        })
        .collect();
    kinds.sort_rows_by_key(|row| Reverse(row.retained_bytes));
    kinds
}
