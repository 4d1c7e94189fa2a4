//! What holds most of a heap, in words that a person knows: a map in a field, and what is in it.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::storage::id_map::{IdMap, IdSet};
use hprof_index::{Heap, ObjectGraph};
use hprof_parser::{ObjectId, names};

use crate::classes::histogram::{self, HistogramGroupBy};
use crate::dominators::class_counts::{self, Counts};
use crate::dominators::listing;
use crate::dominators::preorder::Start;
use crate::objects::class_set::ClassSet;
use crate::objects::collections::{Collection, CollectionKind, Collections, Forms};
use crate::objects::label::Labels;
use crate::objects::reader::ObjectReader;
use crate::objects::reference_kind::ReferenceKind;
use crate::objects::reference_names::Edges;
use crate::sorting::SortRows;
use crate::threads::frames::Frame;
use crate::threads::groups::{LocalsOfClass, ThreadGroup};
use crate::threads::{ThreadQuery, Threads};

use super::suspects::is_drop;

/// Dominators that are followed down.
const MAX_STEPS: usize = 1000;
/// Objects that only roots dominate that are looked at. They come largest first.
const MAX_TOPS: usize = 50_000;
/// Objects that only roots dominate that are followed down.
const MAX_FOLLOWED: usize = 50;
/// Members of a group, at least.
const MIN_MEMBERS: u64 = 10;
/// Percent of the heap that a group has at least.
const MIN_OF_HEAP: u64 = 5;
/// Referrers that are asked how they hold an object.
const MAX_REFERRERS: usize = 64;
/// Elements of a collection that are looked at.
const MAX_ELEMENTS: usize = 1000;
/// The same, of the collection in which memory accumulates.
const MANY_ELEMENTS: usize = 1 << 16;
/// Collections that stand on each other.
const MAX_WRAPPERS: usize = 8;

/// What holds much of the heap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// The object; of a group the largest.
    pub object: ObjectId,
    /// Its class.
    pub class: Option<String>,
    /// A few words that tell it from others.
    pub label: Option<String>,
    /// Objects that the row is of: 1, those that one field of one class holds, or those of a class that only roots dominate.
    pub instances: u64,
    /// What would be freed.
    pub retained_bytes: u64,
    /// The field that holds it.
    pub field: Option<HolderField>,
    /// What it holds mostly.
    pub held: Option<Held>,
    /// The object whose paths tell why it is alive: the holder of something that is a local of a thread.
    pub kept_by: ObjectId,
    /// Whether it is a collection.
    pub is_collection: bool,
    /// Whether the row is of all objects of a class that only roots dominate.
    pub is_class: bool,
    /// Where the threads are that the row is of: those of one group of `threads --group`.
    pub threads: Option<InOnePlace>,
}

impl Holder {
    /// Adds another that the same field of the same class holds, if it is one. What both hold is of one class, or not told.
    pub(super) fn add(&mut self, other: &Self) -> bool {
        let is_same = self.field.is_some()
            && self.class == other.class
            && self.field.as_ref().map(HolderField::key) == other.field.as_ref().map(HolderField::key);
        if !is_same {
            return false;
        }
        self.instances += other.instances;
        self.retained_bytes = self.retained_bytes.saturating_add(other.retained_bytes);
        self.held = match (self.held.take(), &other.held) {
            (Some(held), Some(more)) if held.class == more.class => Some(Held {
                objects: held.objects.saturating_add(more.objects),
                is_mostly: held.is_mostly || more.is_mostly,
                is_exact: held.is_exact && more.is_exact,
                ..held
            }),
            _ => None,
        };
        true
    }
}

/// Threads that do the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InOnePlace {
    /// Their name, with `*` for the numbers in which they differ. `None` if they have none.
    pub name: Option<String>,
    /// The innermost method of their stack that is not the JDK's; of the JDK if there is no other.
    pub method: Option<String>,
    /// Whether only most of them are in it.
    pub is_mostly: bool,
    /// Whether they are virtual threads.
    pub is_virtual: bool,
}

/// Objects of a class that only roots dominate.
#[derive(Debug)]
struct ClassMembers {
    members: u64,
    /// What they retain together.
    sum: u64,
    /// The largest.
    first: TreePosition,
}

/// The field that holds an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderField {
    /// Its name.
    pub name: String,
    /// Whether it is static.
    pub is_static: bool,
    /// The class of the object that has it; of a static field the class itself.
    pub class: String,
    /// The object that has it; of a static field the class object.
    pub object: ObjectId,
}

impl HolderField {
    /// What the fields of several objects have in common.
    fn key(&self) -> (&str, &str) {
        (&self.name, &self.class)
    }
}

/// What something holds mostly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// How many objects.
    pub objects: u64,
    /// Their class.
    pub class: String,
    /// Whether the number is of all that is held, and only most of that is of this class.
    pub is_mostly: bool,
    /// Whether all that is held was looked at.
    pub is_exact: bool,
    /// Whether each is behind a soft reference of its own.
    pub is_soft: bool,
}

/// Returns whether a method is not the JDK's.
pub(super) fn is_own(frame: &Frame) -> bool {
    frame.class.as_deref().is_some_and(|class| !names::is_of_jdk(class))
}

/// Finds what holds much.
#[derive(Debug)]
pub(crate) struct Holders<'a> {
    summary: &'a Summary,
    graph: &'a ObjectGraph,
    objects: ObjectReader<'a>,
    forms: Arc<Forms>,
    edges: Edges<'a>,
    labels: Labels<'a>,
    /// SoftReference and its subclasses.
    soft: ClassSet,
}

impl<'a> Holders<'a> {
    pub(crate) fn new(heap: &'a Heap, graph: &'a ObjectGraph, bytes: &'a [u8]) -> Self {
        let summary = heap.summary();
        let objects = ObjectReader::new(summary, graph, bytes);
        Self {
            summary,
            graph,
            objects,
            forms: Arc::new(Forms::new(&objects)),
            edges: Edges::new(summary, graph, bytes),
            labels: Labels::new(heap, graph, bytes),
            soft: ClassSet::of_name_and_below(summary, "java.lang.ref.SoftReference"),
        }
    }

    /// Returns whether the objects of the classes of a name are soft references.
    pub(super) fn is_soft(&self, class: &str) -> bool {
        self.soft.classes().any(|soft| self.name_of(soft) == class)
    }

    /// The classes outside the JDK of which many objects that only roots dominate hold much together.
    fn groups(&self) -> IdMap<ClassNumber, ClassMembers> {
        let tree = &self.graph.tree;
        let least = tree.reachable_bytes() / 100 * MIN_OF_HEAP;
        let class_of = |position: TreePosition| self.graph.objects.class(tree.object_at(position)?);
        let rows = listing::group(self.summary, self.graph, &[Start::Roots], HistogramGroupBy::Class);
        let large = rows.into_iter().map(|row| row.group).filter(|row| {
            row.instances >= MIN_MEMBERS
                && row.retained_bytes.is_some_and(|bytes| bytes >= least)
                && !names::is_of_jdk(&row.name)
        });
        let group = |row: histogram::HistogramRow| {
            let class = self.graph.objects.addresses.index_of(row.class_object?)?;
            let class = self.graph.class_of_class_object(class)?;
            // They come largest first.
            let first = tree.top().find(|position| class_of(*position) == Some(class))?;
            let (sum, most) = (row.retained_bytes?, tree.retained_bytes(first));
            (most < sum / 2).then_some((class, ClassMembers { members: row.instances, sum, first }))
        };
        large.filter_map(group).collect()
    }

    /// Many threads that do the same and hold much together, each dominated by roots only; with their positions.
    fn thread_groups(&self, threads: &Threads<'_>) -> Vec<(Holder, Vec<TreePosition>)> {
        let tree = &self.graph.tree;
        let least = tree.reachable_bytes() / 100 * MIN_OF_HEAP;
        // Stacks and names are read only if it is worth it.
        let all = threads.all().into_iter().filter_map(|thread| self.at_top(thread));
        let (count, sum) = all.fold((0u64, 0u64), |(count, sum), position| {
            (count + 1, sum.saturating_add(tree.retained_bytes(position)))
        });
        if count < MIN_MEMBERS || sum < least {
            return Vec::new();
        }
        let groups = threads.groups(&ThreadQuery {
            has_locals: true,
            top: Some(MAX_FOLLOWED),
            ..ThreadQuery::default()
        });
        let large = groups.rows.iter().take_while(|group| group.retained_bytes >= least);
        let row = |group: &ThreadGroup| {
            let objects = group.objects.iter().filter_map(|id| self.graph.objects.addresses.index_of(*id));
            let mut members: Vec<TreePosition> = objects.filter_map(|object| self.at_top(object)).collect();
            members.sort_unstable_by_key(|position| (Reverse(tree.retained_bytes(*position)), *position));
            let bytes = || members.iter().map(|position| tree.retained_bytes(*position));
            let (first, sum) = (*members.first()?, bytes().fold(0, u64::saturating_add));
            let are_many = members.len() as u64 >= MIN_MEMBERS && bytes().next()? < sum / 2;
            if !are_many || sum < least {
                return None;
            }
            let frame = group.frames.iter().find(|frame| is_own(frame)).or(group.frames.first());
            let place = InOnePlace {
                name: group.name.clone().filter(|name| !name.is_empty()),
                method: frame.map(Frame::qualified_method),
                is_mostly: false,
                is_virtual: group.virtual_threads == group.threads,
            };
            let holder = Holder {
                instances: members.len() as u64,
                retained_bytes: sum,
                threads: Some(place),
                held: self.held_by_stacks(&group.locals, sum),
                ..self.named(tree.object_at(first)?)
            };
            Some((holder, members))
        };
        large.filter_map(row).collect()
    }

    /// The position of an object that only roots dominate.
    fn at_top(&self, object: ObjectIndex) -> Option<TreePosition> {
        let tree = &self.graph.tree;
        tree.reachable_position(object).filter(|position| tree.dominator(*position).is_none())
    }

    /// What the stacks of threads hold that retains much of what the threads do: objects of a class that is not the JDK's,
    /// if there are.
    fn held_by_stacks(&self, locals: &[LocalsOfClass], retained_bytes: u64) -> Option<Held> {
        let name = |held: &LocalsOfClass| held.class.map_or("", |class| self.name_of(class));
        let most = locals.iter().take_while(|held| held.retained_bytes > retained_bytes / 4);
        let own = most.clone().find(|held| {
            let name = name(held);
            !names::is_of_jdk(name) && !name.ends_with("[]") && !name.is_empty()
        });
        let held = own.or_else(|| most.clone().next())?;
        let class = name(held).to_owned();
        let all = Held { objects: held.objects, class, is_exact: true, ..Held::default() };
        (!all.class.is_empty()).then_some(all)
    }

    /// What holds most, `count` rows, largest first. Rows that the same field of the same class holds are one, and many
    /// `threads` that do the same.
    pub(crate) fn largest(&self, count: usize, threads: &Threads<'_>) -> Vec<Holder> {
        let tree = &self.graph.tree;
        let of_threads = self.thread_groups(threads);
        let members: IdSet<TreePosition> =
            of_threads.iter().flat_map(|(_, members)| members.iter().copied()).collect();
        let class = |position: TreePosition| {
            tree.object_at(position).and_then(|object| self.graph.objects.class(object))
        };
        // Threads of a class of their own count once.
        let of_members: FxHashSet<ClassNumber> =
            members.iter().filter_map(|position| class(*position)).collect();
        let mut groups = self.groups();
        groups.retain(|class, _| !of_members.contains(class));
        let mut rows: Vec<(Holder, TreePosition)> = (groups.values())
            .map(|group| {
                let first = self.named(tree.object_at(group.first).unwrap_or_default());
                let row =
                    Holder { instances: group.members, is_class: true, retained_bytes: group.sum, ..first };
                (row, group.first)
            })
            .collect();
        let is_single = |class: &Option<ClassNumber>| class.is_none_or(|class| !groups.contains_key(&class));
        let of_threads = of_threads.into_iter().filter_map(|(row, members)| Some((row, *members.first()?)));
        rows.extend(of_threads);
        let singles = tree.top().take(MAX_TOPS).filter(|position| !members.contains(position));
        let singles = singles.filter(|position| is_single(&class(*position)));
        for position in singles.take(MAX_FOLLOWED) {
            let Some((row, base)) = self.holder(position) else { continue };
            if !rows.iter_mut().any(|(known, _)| known.add(&row)) {
                rows.push((row, base));
            }
        }
        rows.sort_rows_by_key(|(row, _)| Reverse(row.retained_bytes));
        rows.truncate(count);
        rows.into_iter().map(|(row, base)| self.with_held(row, || self.held_below(base))).collect()
    }

    /// A row with what it holds mostly: of a collection elements, else `below`.
    fn with_held(&self, row: Holder, below: impl Fn() -> Option<Held>) -> Holder {
        if row.threads.is_some() {
            return row;
        }
        let shown = self.graph.objects.addresses.index_of(row.object).filter(|_| !row.is_class);
        let held = shown.and_then(|object| self.held_by_collection(object, MAX_ELEMENTS));
        Holder { held: held.or_else(|| below().filter(|_| !row.is_class)), ..row }
    }

    /// What the object at a position amounts to, and what that holds mostly. `counts` are of all that it dominates.
    pub(super) fn amounts_to(&self, position: TreePosition, counts: &[Counts]) -> Option<Holder> {
        let (row, base) = self.holder(position)?;
        // What it amounts to does not hold what is above it.
        let below = || if base == position { self.held_among(counts) } else { self.held_below(base) };
        Some(self.with_held(row, below))
    }

    /// What an object is known by: the collection that it is a part of, and the field that holds that.
    pub(super) fn place(&self, object: ObjectIndex) -> Holder {
        let (shown, field) = self.shown(object);
        let retained_bytes = self.graph.tree.retained_bytes_of(object).unwrap_or(0);
        let held = self.held_by_collection(shown, MANY_ELEMENTS);
        Holder { instances: 1, retained_bytes, field, held, ..self.named(shown) }
    }

    fn name_of(&self, class: ClassNumber) -> &'a str {
        self.summary.class(class).map_or("", |row| self.summary.class_name(row))
    }

    fn class_name(&self, object: ObjectIndex) -> &'a str {
        self.graph.objects.class(object).map_or("", |class| self.name_of(class))
    }

    fn id(&self, object: ObjectIndex) -> ObjectId {
        self.graph.objects.addresses.id_of(object).unwrap_or_default()
    }

    fn collection(&self, object: ObjectIndex) -> Option<Collection> {
        let collection = Collections::with(&self.objects, self.forms.clone()).collection(object)?;
        Some(collection).filter(|collection| collection.kind != CollectionKind::Holder)
    }

    /// What the object at a position amounts to, and the position of that.
    fn holder(&self, top: TreePosition) -> Option<(Holder, TreePosition)> {
        let tree = &self.graph.tree;
        let (mut base, mut here) = (top, top);
        for _ in 0..MAX_STEPS {
            let Some(next) = tree.children(here).next() else { break };
            if is_drop(tree.retained_bytes(next), tree.retained_bytes(base)) {
                break;
            }
            if !self.is_part(tree.object_at(base)?, tree.object_at(here)?, tree.object_at(next)?) {
                base = next;
            }
            here = next;
        }
        let object = tree.object_at(base)?;
        let (shown, field) = self.shown(object);
        let is_root = |id: ObjectId| {
            let object = self.graph.objects.addresses.index_of(id);
            object.is_some_and(|object| self.edges.roots.of_object(object).next().is_some())
        };
        let id = self.id(shown);
        let instance = field.as_ref().filter(|field| !field.is_static).map(|field| field.object);
        let kept_by = [Some(id), instance].into_iter().flatten().find(|id| !is_root(*id)).unwrap_or(id);
        let retained_bytes = tree.retained_bytes(base);
        Some((Holder { instances: 1, retained_bytes, field, kept_by, ..self.named(shown) }, base))
    }

    fn named(&self, object: ObjectIndex) -> Holder {
        let id = self.id(object);
        let class = Some(self.class_name(object).to_owned()).filter(|name| !name.is_empty());
        let is_collection = self.collection(object).is_some();
        Holder {
            object: id,
            class,
            label: self.labels.label(object),
            is_collection,
            kept_by: id,
            ..Holder::default()
        }
    }

    /// Whether an object is only a part of the one that is named: tables and nodes of collections, chains.
    fn is_part(&self, base: ObjectIndex, above: ObjectIndex, object: ObjectIndex) -> bool {
        let (name, base_name) = (self.class_name(object), self.class_name(base));
        let is_node = name.split_once('$').is_some_and(|(outer, _)| outer.starts_with("java.util."));
        let is_array = name.ends_with("[]");
        name == self.class_name(above) && name != "java.lang.Class"
            || (is_array || is_node) && (self.collection(base).is_some() || base_name.ends_with("[]"))
    }

    /// The object that is shown for another: the collection that has an array, the wrapper of a collection; and the field
    /// that holds it.
    fn shown(&self, object: ObjectIndex) -> (ObjectIndex, Option<HolderField>) {
        let mut shown = object;
        let mut field = self.field(shown);
        for _ in 0..MAX_WRAPPERS {
            let Some((holder, _)) = &field else { break };
            if self.collection(*holder).is_none() {
                break;
            }
            shown = *holder;
            field = self.field(shown);
        }
        (shown, field.map(|(_, field)| field))
    }

    /// The field that holds an object: a static one rather than another, one of the application rather than the JDK's.
    fn field(&self, object: ObjectIndex) -> Option<(ObjectIndex, HolderField)> {
        let name = self.class_name(object);
        let mut best: Option<(u8, ObjectIndex, HolderField)> = None;
        // Where many hold it, its dominator must not be missed.
        let tree = &self.graph.tree;
        let dominator = tree.reachable_position(object).and_then(|position| tree.dominator(position));
        let dominator = dominator.and_then(|position| tree.object_at(position));
        for from in self.graph.referrers(object).take(MAX_REFERRERS).chain(dominator) {
            if tree.reachable_position(from).is_none() {
                continue;
            }
            let from_name = self.class_name(from);
            // Arrays have no fields, and may be long.
            if from_name.ends_with("[]") {
                continue;
            }
            // A map's views and iterators hold it too.
            if from_name.strip_prefix(name).is_some_and(|rest| rest.starts_with('$')) {
                continue;
            }
            for meaning in &self.edges.holding(from, object).meanings {
                let (rank, field_name, class) = match meaning {
                    ReferenceKind::Static(field) => {
                        let class = self.graph.class_of_class_object(from).map(|class| self.name_of(class));
                        (0, *field, class.unwrap_or_default())
                    }
                    ReferenceKind::Field { name: "referent", .. } => continue,
                    ReferenceKind::Field { name, .. } => {
                        (1 + u8::from(names::is_of_jdk(from_name)), *name, from_name)
                    }
                    _ => continue,
                };
                if best.as_ref().is_none_or(|(known, ..)| rank < *known) {
                    let field = HolderField {
                        name: field_name.to_owned(),
                        is_static: rank == 0,
                        class: class.to_owned(),
                        object: self.id(from),
                    };
                    best = Some((rank, from, field));
                }
            }
        }
        best.map(|(_, from, field)| (from, field))
    }

    /// What a collection holds.
    fn held_by_collection(&self, object: ObjectIndex, most: usize) -> Option<Held> {
        let collection = self.collection(object)?;
        let collections = Collections::with(&self.objects, self.forms.clone());
        // Several loaders may define one class.
        let mut of_class = FxHashMap::<(&str, bool), u64>::default();
        let mut seen = 0u64;
        for entry in collections.entries(&collection).take(most) {
            let class = |value| self.objects.object(value).map(|object| self.class_behind(object));
            let class = class(entry.value).or_else(|| entry.key.and_then(class));
            *of_class.entry(class.unwrap_or_default()).or_default() += 1;
            seen += 1;
        }
        let most = of_class.into_iter().max_by_key(|(class, count)| (*count, Reverse(*class)));
        let ((class, is_soft), count) = most?;
        let objects = collections.count(&collection).unwrap_or(seen);
        (count * 2 > seen && !class.is_empty()).then_some(())?;
        let (is_mostly, is_exact) = (count < seen, seen >= objects);
        Some(Held { objects, class: class.to_owned(), is_mostly, is_exact, is_soft })
    }

    /// The class of an object; of a soft reference, of what it refers to, unless that was cleared.
    fn class_behind(&self, object: ObjectIndex) -> (&'a str, bool) {
        let is_soft = self.graph.objects.class(object).is_some_and(|class| self.soft.contains(class));
        let referent = || self.objects.object(self.objects.field(object, "referent")?);
        match is_soft.then(referent).flatten() {
            Some(referent) => (self.class_name(referent), true),
            None => (self.class_name(object), false),
        }
    }

    /// What an object dominates: most of an application's class, or the class that takes most.
    fn held_below(&self, position: TreePosition) -> Option<Held> {
        let tree = &self.graph.tree;
        let below = TreePosition(position.0.saturating_add(1))..tree.end(position);
        self.held_among(&class_counts::count(self.graph, below, self.summary.classes().len()))
    }

    fn held_among(&self, counts: &[Counts]) -> Option<Held> {
        let all: u64 = counts.iter().map(|count| count.objects).sum();
        let counted = || (0u32..).map(ClassNumber).zip(counts).filter(|(_, count)| count.objects > 0);
        let own = counted().filter(|(class, count)| {
            let name = self.name_of(*class);
            !names::is_of_jdk(name) && !name.ends_with("[]") && count.objects > all / 20
        });
        let own = own.max_by_key(|(class, count)| (count.objects, Reverse(*class)));
        let (class, count) =
            own.or_else(|| counted().max_by_key(|(class, count)| (count.shallow_bytes, Reverse(*class))))?;
        Some(Held {
            objects: count.objects,
            class: self.name_of(class).to_owned(),
            is_exact: true,
            ..Held::default()
        })
    }
}
