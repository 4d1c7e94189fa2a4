//! Largest holders of a heap in familiar terms, such as a map in a field and its contents.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use hprof_index::Dump;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;
use hprof_index::storage::id_map::{IdMap, IdSet};
use hprof_values::{ObjectId, names};

use crate::containers::class_behind;
use hprof_base::sorting::SortRows;
use hprof_model::dominators::class_counts::{self, Counts};
use hprof_model::dominators::preorder::Start;
use hprof_model::histogram::listing;
use hprof_model::histogram::{self, HistogramGroupBy};
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::collections::{Collection, CollectionKind, Collections, Forms};
use hprof_model::objects::label::Labels;
use hprof_model::objects::reference_kind::ReferenceKind;
use hprof_model::objects::reference_names::Edges;
use hprof_model::threads::frames::Frame;
use hprof_model::threads::groups::{LocalsOfClass, ThreadGroup};
use hprof_model::threads::{ThreadQuery, Threads};

use super::suspects::is_drop;

/// Maximum number of steps down the dominator tree.
const MAX_STEPS: usize = 1000;
/// Maximum number of objects dominated only by roots that are examined, largest first.
const MAX_TOPS: usize = 50_000;
/// Maximum number of objects dominated only by roots that are followed down.
const MAX_FOLLOWED: usize = 50;
/// Minimum number of members of a group.
const MIN_MEMBERS: u64 = 10;
/// Minimum retained size of a group, in percent of the heap.
const MIN_OF_HEAP: u64 = 5;
/// Maximum number of referrers that are examined to find the field that holds an object.
const MAX_REFERRERS: usize = 64;
/// Maximum number of elements of a collection examined.
const MAX_ELEMENTS: usize = 1000;
/// Maximum number of elements examined of the collection in which memory accumulates.
const MANY_ELEMENTS: usize = 1 << 16;
/// Maximum number of nested wrappers of a collection.
const MAX_WRAPPERS: usize = 8;

/// A holder of a large part of the heap.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Holder {
    /// Object ID of the holder; of several objects, the largest one.
    #[serde(with = "hprof_base::kept::object_id")]
    pub object: ObjectId,
    /// Class of the object.
    pub class: Option<String>,
    /// Short text that identifies the object.
    pub label: Option<String>,
    /// Number of objects that the holder represents: 1, or the objects held by one field of one class, or the objects of a
    /// class that only roots dominate.
    pub instances: u64,
    /// Retained size of the objects in bytes.
    pub retained_bytes: u64,
    /// Field that holds the object.
    pub field: Option<HolderField>,
    /// Main contents of the holder.
    pub held: Option<HolderContents>,
    /// Object whose paths explain why the holder is alive: the object itself, or its referrer if it is a GC root, such as a
    /// local of a thread.
    #[serde(with = "hprof_base::kept::object_id")]
    pub kept_by: ObjectId,
    /// `true` if the object is a collection.
    pub is_collection: bool,
    /// `true` if the holder represents all objects of a class that only roots dominate.
    pub is_class: bool,
    /// Common name and method of the threads, if the holder represents threads: one group of `threads --group`.
    pub threads: Option<InOnePlace>,
}

impl Holder {
    /// Merges another holder if the same field of the same class holds both. Returns whether it was merged. The contents are
    /// kept only if both have the same class.
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
            (Some(held), Some(more)) if held.class == more.class => Some(HolderContents {
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

/// Method that several threads run, and their common name.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct InOnePlace {
    /// Name of the threads, with `*` for the numbers in which they differ. `None` if they have no names.
    pub name: Option<String>,
    /// Innermost non-JDK method of their stack, or else the innermost method.
    pub method: Option<String>,
    /// `true` if only most of the threads are in the method.
    pub is_mostly: bool,
    /// `true` if the threads are virtual.
    pub is_virtual: bool,
    /// `true` if none of the threads was started.
    pub is_unstarted: bool,
}

/// Objects of a class that only roots dominate.
#[derive(Debug)]
struct ClassMembers {
    members: u64,
    /// Sum of the retained sizes in bytes.
    sum: u64,
    /// Position of the largest object.
    first: TreePosition,
}

/// Field that holds an object.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HolderField {
    /// Name of the field.
    pub name: String,
    /// `true` for a static field.
    pub is_static: bool,
    /// Class of the object that has the field; for a static field, the class that declares it.
    pub class: String,
    /// Object that has the field; for a static field, the class object.
    #[serde(with = "hprof_base::kept::object_id")]
    pub object: ObjectId,
}

impl HolderField {
    /// Returns class and name, which several objects can share.
    fn key(&self) -> (&str, &str) {
        (&self.name, &self.class)
    }
}

/// Main contents of a holder.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HolderContents {
    /// Number of objects.
    pub objects: u64,
    /// Class of the objects.
    pub class: String,
    /// `true` if `objects` counts all contents, and only most of them are of `class`.
    pub is_mostly: bool,
    /// `true` if all contents were examined.
    pub is_exact: bool,
    /// `true` if the objects are referents of soft references, one for each.
    pub is_soft: bool,
}

/// Search for the largest holders.
#[derive(Debug)]
pub(crate) struct HolderSearch<'a> {
    dump: Dump<'a>,
    forms: Arc<Forms>,
    edges: Edges<'a>,
    labels: Labels<'a>,
    /// `SoftReference` and its subclasses.
    soft: ClassSet,
}

impl<'a> HolderSearch<'a> {
    pub(crate) fn new(dump: &Dump<'a>) -> Self {
        let summary = dump.summary;
        Self {
            dump: *dump,
            forms: Forms::for_summary(summary),
            edges: Edges::new(dump),
            labels: Labels::new(dump),
            soft: ClassSet::of_name_and_below(summary, "java.lang.ref.SoftReference"),
        }
    }

    /// Returns whether objects of the class with this name are soft references.
    pub(super) fn is_soft(&self, class: &str) -> bool {
        self.soft.classes().any(|soft| self.name_of(soft) == class)
    }

    /// Returns the classes outside the JDK with many objects that only roots dominate and that together retain much.
    fn groups(&self) -> IdMap<ClassNumber, ClassMembers> {
        let tree = &self.dump.graph.tree;
        let least = tree.reachable_bytes() / 100 * MIN_OF_HEAP;
        let class_of = |position: TreePosition| self.dump.graph.objects.class(tree.object_at(position)?);
        let rows = listing::group(&self.dump, &[Start::Roots], HistogramGroupBy::Class);
        let large = rows.into_iter().map(|row| row.group).filter(|row| {
            row.instances >= MIN_MEMBERS
                && row.retained_bytes.is_some_and(|bytes| bytes >= least)
                && !names::is_of_jdk(&row.name)
        });
        let group = |row: histogram::HistogramRow| {
            let class = self.dump.graph.objects.addresses.index_of(row.class_object?)?;
            let class = self.dump.graph.class_of_class_object(class)?;
            // Positions are ordered by size, largest first.
            let first = tree.top().find(|position| class_of(*position) == Some(class))?;
            let (sum, most) = (row.retained_bytes?, tree.retained_bytes(first));
            (most < sum / 2).then_some((class, ClassMembers { members: row.instances, sum, first }))
        };
        large.filter_map(group).collect()
    }

    /// Returns groups of many threads that run the same method and together retain much, with the positions of the threads.
    /// Only roots dominate the threads.
    fn thread_groups(&self, threads: &Threads<'_>) -> Vec<(Holder, Vec<TreePosition>)> {
        let tree = &self.dump.graph.tree;
        let least = tree.reachable_bytes() / 100 * MIN_OF_HEAP;
        // Stacks and names are read only if the threads retain enough.
        let all = threads.thread_objects().into_iter().filter_map(|thread| self.at_top(thread));
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
            let objects =
                group.objects.iter().filter_map(|id| self.dump.graph.objects.addresses.index_of(*id));
            let mut members: Vec<TreePosition> = objects.filter_map(|object| self.at_top(object)).collect();
            members.sort_unstable_by_key(|position| (Reverse(tree.retained_bytes(*position)), *position));
            let bytes = || members.iter().map(|position| tree.retained_bytes(*position));
            let (first, sum) = (*members.first()?, bytes().fold(0, u64::saturating_add));
            let are_many = members.len() as u64 >= MIN_MEMBERS && bytes().next()? < sum / 2;
            if !are_many || sum < least {
                return None;
            }
            let frame = group.frames.iter().find(|frame| frame.is_own()).or(group.frames.first());
            let place = InOnePlace {
                name: group.name.clone().filter(|name| !name.is_empty()),
                method: frame.map(Frame::qualified_method),
                is_mostly: false,
                is_virtual: group.virtual_threads == group.threads,
                is_unstarted: false,
            };
            let holder = Holder {
                instances: members.len() as u64,
                retained_bytes: sum,
                threads: Some(place),
                held: self.held_by_stacks(&group.locals, sum),
                ..self.named_holder(tree.object_at(first)?)
            };
            Some((holder, members))
        };
        large.filter_map(row).collect()
    }

    /// Returns the position of an object if only roots dominate the object.
    fn at_top(&self, object: ObjectIndex) -> Option<TreePosition> {
        let tree = &self.dump.graph.tree;
        tree.reachable_position(object).filter(|position| tree.dominator(*position).is_none())
    }

    /// Returns the objects on the stacks that retain most of the threads' retained size; of a class outside the JDK, if
    /// possible.
    fn held_by_stacks(&self, locals: &[LocalsOfClass], retained_bytes: u64) -> Option<HolderContents> {
        let name = |held: &LocalsOfClass| held.class.map_or("", |class| self.name_of(class));
        let most = locals.iter().take_while(|held| held.retained_bytes > retained_bytes / 4);
        let own = most.clone().find(|held| {
            let name = name(held);
            !names::is_of_jdk(name) && !name.ends_with("[]") && !name.is_empty()
        });
        let held = own.or_else(|| most.clone().next())?;
        let class = name(held).to_owned();
        let all =
            HolderContents { objects: held.objects, class, is_exact: true, ..HolderContents::default() };
        (!all.class.is_empty()).then_some(all)
    }

    /// Returns the `count` largest holders, largest first. Holders in the same field of the same class are merged, as are many
    /// `threads` that run the same method.
    pub(crate) fn largest(&self, count: usize, threads: &Threads<'_>) -> Vec<Holder> {
        let tree = &self.dump.graph.tree;
        let of_threads = self.thread_groups(threads);
        let members: IdSet<TreePosition> =
            of_threads.iter().flat_map(|(_, members)| members.iter().copied()).collect();
        let class = |position: TreePosition| {
            tree.object_at(position).and_then(|object| self.dump.graph.objects.class(object))
        };
        // Threads of an application class count once.
        let of_members: FxHashSet<ClassNumber> =
            members.iter().filter_map(|position| class(*position)).collect();
        let mut groups = self.groups();
        groups.retain(|class, _| !of_members.contains(class));
        let mut rows: Vec<(Holder, TreePosition)> = (groups.values())
            .map(|group| {
                let first = self.named_holder(tree.object_at(group.first).unwrap_or_default());
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

    /// Adds the main contents to a holder: the elements of a collection, or else the result of `below`.
    fn with_held(&self, row: Holder, below: impl Fn() -> Option<HolderContents>) -> Holder {
        if row.threads.is_some() {
            return row;
        }
        let shown = self.dump.graph.objects.addresses.index_of(row.object).filter(|_| !row.is_class);
        let held = shown.and_then(|object| self.held_by_collection(object, MAX_ELEMENTS));
        Holder { held: held.or_else(|| below().filter(|_| !row.is_class)), ..row }
    }

    /// Follows the object at a position down to its holder, and returns the holder with its main contents. `counts` cover all
    /// objects that the object dominates.
    pub(super) fn amounts_to(&self, position: TreePosition, counts: &[Counts]) -> Option<Holder> {
        let (row, base) = self.holder(position)?;
        // The holder found below does not contain the objects above it.
        let below = || if base == position { self.held_among(counts) } else { self.held_below(base) };
        Some(self.with_held(row, below))
    }

    /// Returns the recognizable place of an object: the collection that it is a part of, and the field that holds the
    /// collection. If `is_searched`, the classes of the collection's elements are determined.
    pub(super) fn place(&self, object: ObjectIndex, is_searched: bool) -> Holder {
        let (shown, field) = self.object_to_show(object);
        let retained_bytes = self.dump.graph.tree.retained_bytes_of(object).unwrap_or(0);
        let held = self.held_by_collection(shown, if is_searched { MANY_ELEMENTS } else { MAX_ELEMENTS });
        Holder { instances: 1, retained_bytes, field, held, ..self.named_holder(shown) }
    }

    fn name_of(&self, class: ClassNumber) -> &'a str {
        self.dump.summary.class(class).map_or("", |row| self.dump.summary.class_name(row))
    }

    fn class_name(&self, object: ObjectIndex) -> &'a str {
        self.dump.graph.objects.class(object).map_or("", |class| self.name_of(class))
    }

    fn id(&self, object: ObjectIndex) -> ObjectId {
        self.dump.graph.objects.addresses.id_of(object).unwrap_or_default()
    }

    fn collection(&self, object: ObjectIndex) -> Option<Collection> {
        let collection = Collections::with(&self.dump.objects, self.forms.clone()).collection(object)?;
        Some(collection).filter(|collection| collection.kind != CollectionKind::Holder)
    }

    /// Follows the object at a position down to its holder, and returns the holder and its position.
    fn holder(&self, top: TreePosition) -> Option<(Holder, TreePosition)> {
        let tree = &self.dump.graph.tree;
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
        let (shown, field) = self.object_to_show(object);
        let is_root = |id: ObjectId| {
            let object = self.dump.graph.objects.addresses.index_of(id);
            object.is_some_and(|object| self.edges.roots.of_object(object).next().is_some())
        };
        let id = self.id(shown);
        let instance = field.as_ref().filter(|field| !field.is_static).map(|field| field.object);
        let kept_by = [Some(id), instance].into_iter().flatten().find(|id| !is_root(*id)).unwrap_or(id);
        let retained_bytes = tree.retained_bytes(base);
        Some((Holder { instances: 1, retained_bytes, field, kept_by, ..self.named_holder(shown) }, base))
    }

    fn named_holder(&self, object: ObjectIndex) -> Holder {
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

    /// Returns whether an object is only a part of `base`: a table or node of a collection, or a link of a chain.
    fn is_part(&self, base: ObjectIndex, above: ObjectIndex, object: ObjectIndex) -> bool {
        let (name, base_name) = (self.class_name(object), self.class_name(base));
        let is_node = name.split_once('$').is_some_and(|(outer, _)| outer.starts_with("java.util."));
        let is_array = name.ends_with("[]");
        name == self.class_name(above) && name != "java.lang.Class"
            || (is_array || is_node) && (self.collection(base).is_some() || base_name.ends_with("[]"))
    }

    /// Returns the object to show in place of a part, and the field that holds it: the collection that has an array, or the
    /// wrapper of a collection.
    fn object_to_show(&self, object: ObjectIndex) -> (ObjectIndex, Option<HolderField>) {
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

    /// Returns the field that holds an object, preferring static fields, fields of the application to those of the JDK, and
    /// fields in source code to those of the compiler (`this$0`). Of equally suitable fields, returns the first by name, as
    /// addresses differ between dumps. Objects that the object itself keeps alive do not count as holders.
    fn field(&self, object: ObjectIndex) -> Option<(ObjectIndex, HolderField)> {
        let name = self.class_name(object);
        let mut best: Option<((u8, bool), ObjectIndex, HolderField)> = None;
        // If many objects hold it, its dominator must not be missed.
        let tree = &self.dump.graph.tree;
        let position = tree.reachable_position(object);
        let dominator = position.and_then(|position| tree.object_at(tree.dominator(position)?));
        let dominated = position.map_or(TreePosition(0)..TreePosition(0), |at| at..tree.end(at));
        for from in self.dump.graph.referrers(object).take(MAX_REFERRERS).chain(dominator) {
            if tree.reachable_position(from).is_none_or(|position| dominated.contains(&position)) {
                continue;
            }
            let from_name = self.class_name(from);
            // Arrays have no fields, and may be long.
            if from_name.ends_with("[]") {
                continue;
            }
            // A map's views and iterators also reference it.
            if from_name.strip_prefix(name).is_some_and(|rest| rest.starts_with('$')) {
                continue;
            }
            for meaning in &self.edges.holding(from, object).meanings {
                let (rank, field_name, class) = match meaning {
                    ReferenceKind::Static(field) => {
                        let class =
                            self.dump.graph.class_of_class_object(from).map(|class| self.name_of(class));
                        (0, *field, class.unwrap_or_default())
                    }
                    ReferenceKind::Field { name: "referent", .. } => continue,
                    ReferenceKind::Field { name, .. } => {
                        (1 + u8::from(names::is_of_jdk(from_name)), *name, from_name)
                    }
                    _ => continue,
                };
                let rank = (rank, field_name.contains('$'));
                let is_better = |(known_rank, _, known): &(_, _, HolderField)| {
                    (rank, class, field_name) < (*known_rank, &known.class, &known.name)
                };
                if best.as_ref().is_none_or(is_better) {
                    let field = HolderField {
                        name: field_name.to_owned(),
                        is_static: rank.0 == 0,
                        class: class.to_owned(),
                        object: self.id(from),
                    };
                    best = Some((rank, from, field));
                }
            }
        }
        best.map(|(_, from, field)| (from, field))
    }

    /// Returns the main contents of a collection.
    fn held_by_collection(&self, object: ObjectIndex, most: usize) -> Option<HolderContents> {
        let collection = self.collection(object)?;
        let collections = Collections::with(&self.dump.objects, self.forms.clone());
        // Several loaders may define a class of the same name.
        let mut of_class = FxHashMap::<(&str, bool), u64>::default();
        let mut seen = 0u64;
        for entry in collections.entries(&collection).take(most) {
            let class = |value| self.dump.objects.object(value).map(|object| self.class_behind(object));
            let class = class(entry.value).or_else(|| entry.key.and_then(class));
            *of_class.entry(class.unwrap_or_default()).or_default() += 1;
            seen += 1;
        }
        let most = of_class.into_iter().max_by_key(|(class, count)| (*count, Reverse(*class)));
        let ((class, is_soft), count) = most?;
        let objects = collections.count(&collection).unwrap_or(seen);
        (count * 2 > seen && !class.is_empty()).then_some(())?;
        let (is_mostly, is_exact) = (count < seen, seen >= objects);
        Some(HolderContents { objects, class: class.to_owned(), is_mostly, is_exact, is_soft })
    }

    /// Returns the class of an object, and `false`; for a soft reference whose referent was not cleared, the class of the
    /// referent, and `true`.
    fn class_behind(&self, object: ObjectIndex) -> (&'a str, bool) {
        let behind = class_behind(&self.dump.objects, &self.soft, object);
        let is_soft = behind != self.dump.graph.objects.class(object);
        (behind.map_or("", |class| self.name_of(class)), is_soft)
    }

    /// Returns the main contents that an object dominates: the largest application class if it has most of the size, or else
    /// the largest class.
    fn held_below(&self, position: TreePosition) -> Option<HolderContents> {
        let tree = &self.dump.graph.tree;
        let below = TreePosition(position.0.saturating_add(1))..tree.end(position);
        self.held_among(&class_counts::count(self.dump.graph, below, self.dump.summary.classes().len()))
    }

    fn held_among(&self, counts: &[Counts]) -> Option<HolderContents> {
        let all: u64 = counts.iter().map(|count| count.objects).sum();
        let counted = || (0u32..).map(ClassNumber).zip(counts).filter(|(_, count)| count.objects > 0);
        let own = counted().filter(|(class, count)| {
            let name = self.name_of(*class);
            !names::is_of_jdk(name) && !name.ends_with("[]") && count.objects > all / 20
        });
        let own = own.max_by_key(|(class, count)| (count.objects, Reverse(*class)));
        let (class, count) =
            own.or_else(|| counted().max_by_key(|(class, count)| (count.shallow_bytes, Reverse(*class))))?;
        Some(HolderContents {
            objects: count.objects,
            class: self.name_of(class).to_owned(),
            is_exact: true,
            ..HolderContents::default()
        })
    }
}
