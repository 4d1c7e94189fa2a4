//! GC roots by object and by thread.

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::objects::gc_roots::GcRoot;
use hprof_values::RootKind;

use crate::objects::object_set::Bits;

/// Index of the roots by object and by thread.
///
/// A local variable of a thread is a root here even if it counts as a reference of the thread ([`GcRoot::is_local`]), so that
/// queries can show the frame that holds it.
#[derive(Debug)]
pub struct RootIndex<'a> {
    rows: &'a [GcRoot],
    /// Object and row, ascending.
    by_object: Vec<(ObjectIndex, u32)>,
    /// Thread and row of roots that count as references of their thread, ascending.
    by_thread: Vec<(ObjectIndex, u32)>,
    /// Threads and the objects on their stacks, ascending.
    locals: Vec<(ObjectIndex, ObjectIndex)>,
    bits: Bits,
}

impl<'a> RootIndex<'a> {
    /// Indexes all roots.
    pub fn new(graph: &'a ObjectGraph) -> Self {
        let rows = graph.roots.rows.as_slice();
        let mut bits = Bits::new(graph.objects.len());
        let mut by_object: Vec<(ObjectIndex, u32)> =
            (0u32..).zip(rows).map(|(row, root)| (root.object, row)).collect();
        by_object.sort_unstable();
        for (object, _) in &by_object {
            bits.insert(*object);
        }
        let locals = (0u32..).zip(rows).filter(|(_, root)| root.is_local);
        let mut by_thread: Vec<(ObjectIndex, u32)> =
            locals.filter_map(|(row, root)| Some((root.thread?, row))).collect();
        by_thread.sort_unstable();
        Self { rows, by_object, by_thread, locals: graph.roots.locals(), bits }
    }

    /// Returns whether an object is a root.
    #[inline]
    pub fn contains(&self, object: ObjectIndex) -> bool {
        self.bits.contains(object)
    }

    /// Returns the roots of an object, in the order of the file.
    pub fn of_object(&self, object: ObjectIndex) -> impl Iterator<Item = &'a GcRoot> + '_ {
        self.range(&self.by_object, object)
    }

    /// Returns the roots that count as references of a thread, in the order of the file.
    pub fn locals_of(&self, thread: ObjectIndex) -> impl Iterator<Item = &'a GcRoot> + '_ {
        self.range(&self.by_thread, thread)
    }

    /// Returns whether a thread's stack holds an object, so that the thread refers to it.
    #[inline]
    pub fn is_local_of(&self, thread: ObjectIndex, object: ObjectIndex) -> bool {
        // Threads are roots, and so are the objects on their stacks.
        self.contains(object) && self.contains(thread) && self.locals.binary_search(&(thread, object)).is_ok()
    }

    /// Returns the threads with a matching root, ascending, without duplicates.
    pub fn threads_of(&self, wanted: impl Fn(&GcRoot) -> bool) -> Vec<ObjectIndex> {
        self.keys(&self.by_thread, wanted)
    }

    /// Returns the row numbers of an object's roots, ascending.
    pub fn numbers_of_object(&self, object: ObjectIndex) -> impl Iterator<Item = usize> + '_ {
        numbers(&self.by_object, object)
    }

    fn range<'s>(
        &'s self,
        pairs: &'s [(ObjectIndex, u32)],
        key: ObjectIndex,
    ) -> impl Iterator<Item = &'a GcRoot> + 's {
        numbers(pairs, key).filter_map(|row| self.rows.get(row))
    }

    /// Returns the objects that are roots, ascending, without duplicates.
    pub fn objects(&self) -> Vec<ObjectIndex> {
        self.objects_of(|_| true)
    }

    /// Returns the objects with a matching root, ascending, without duplicates.
    pub fn objects_of(&self, wanted: impl Fn(&GcRoot) -> bool) -> Vec<ObjectIndex> {
        self.keys(&self.by_object, wanted)
    }

    fn keys(&self, pairs: &[(ObjectIndex, u32)], wanted: impl Fn(&GcRoot) -> bool) -> Vec<ObjectIndex> {
        let is_wanted = |row: u32| self.rows.get(row as usize).is_some_and(&wanted);
        let found = pairs.iter().filter(|(_, row)| is_wanted(*row));
        let mut keys: Vec<ObjectIndex> = found.map(|(key, _)| *key).collect();
        keys.dedup();
        keys
    }

    /// Returns the kinds of an object's roots, without duplicates, in the order of the file.
    pub fn kinds(&self, object: ObjectIndex) -> Vec<RootKind> {
        let mut kinds = Vec::new();
        for root in self.of_object(object) {
            if !kinds.contains(&root.kind) {
                kinds.push(root.kind);
            }
        }
        kinds
    }
}

/// Returns the rows that are paired with a key, ascending.
fn numbers(pairs: &[(ObjectIndex, u32)], key: ObjectIndex) -> impl Iterator<Item = usize> + '_ {
    let start = pairs.partition_point(|(other, _)| *other < key);
    let rows = pairs.get(start..).unwrap_or_default().iter().take_while(move |(other, _)| *other == key);
    rows.map(|(_, row)| *row as usize)
}
