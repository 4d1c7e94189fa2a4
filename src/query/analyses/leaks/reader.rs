//! Reading of the evidence for a suspect from its objects.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use hprof_index::Dump;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::ClassKind;
use hprof_values::names;

use super::contents::{self, MergedTree, Reason};
use super::evidence::{self, Evidence, Paths};
use super::holders::{Holder, HolderSearch, InOnePlace};
use super::thread_locals::ThreadLocals;
use super::{
    LeakEvidence, LeakVerdict, MapEntry, NamedObject, OtherHolder, Suspect, SuspectCandidate, SuspectKind,
    SuspectRule, SuspectSubject, TOLD_MEMBERS, allocation,
};
use crate::compare::places::library;
use crate::frameworks::FrameworkDescription;
use hprof_base::naming::stable_names::{fold_numbers, in_common};
use hprof_base::sorting::SortRows;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::collections::CollectionKind;
use hprof_model::paths::steps::View;
use hprof_model::threads::Threads;
use hprof_model::threads::frames::Frame;

/// Maximum number of threads of a group whose stacks are examined.
const MAX_STACKS: usize = 10_000;
/// Packages of launchers, which start other programs and run additional threads of their own.
const LAUNCHERS: [&str; 6] = [
    "org.apache.catalina.",
    "org.apache.coyote.",
    "org.apache.tomcat.",
    "org.eclipse.jetty.",
    "org.springframework.boot.loader.",
    "org.codehaus.plexus.",
];
/// Classes of virtual threads.
const VIRTUAL_THREADS: [&str; 2] = ["java.lang.VirtualThread", "java.lang.ThreadBuilders$BoundVirtualThread"];

/// Returns whether a class is of a launcher.
pub(super) fn is_launcher(class: &str) -> bool {
    LAUNCHERS.iter().any(|launcher| class.starts_with(launcher))
}

/// Reader of the evidence for the suspects of a dump.
pub(super) struct EvidenceReader<'a> {
    pub(super) dump: Dump<'a>,
    pub(super) evidence: Evidence<'a>,
    pub(super) holders: HolderSearch<'a>,
    thread_locals: ThreadLocals<'a>,
    threads: ClassSet,
    loaders: ClassSet,
    pub(super) all_threads: Threads<'a>,
    /// Prefix of the names of the program's classes: the package of the class in which the thread `main` starts, unless that
    /// class only launches the program.
    pub(super) program: Option<String>,
    extent: LeakEvidence,
}

impl<'a> EvidenceReader<'a> {
    pub(super) fn new(dump: &Dump<'a>, view: View<'a>, extent: LeakEvidence) -> Self {
        let summary = dump.summary;
        let all_threads = Threads::new(dump);
        let starts = all_threads.first_own_classes();
        let programs = starts.iter().map(|class| library(class).to_owned()).collect();
        Self {
            dump: *dump,
            evidence: Evidence::new(dump, view, programs),
            holders: HolderSearch::new(dump),
            thread_locals: ThreadLocals::new(dump),
            threads: ClassSet::of_name_and_below(summary, "java.lang.Thread"),
            loaders: ClassSet::of_name_and_below(summary, "java.lang.ClassLoader"),
            program: all_threads
                .main_class()
                .filter(|class| !is_launcher(class))
                .map(|class| library(&class).to_owned()),
            all_threads,
            extent,
        }
    }

    pub(super) fn suspect_object(&self, class: Option<ClassNumber>) -> SuspectSubject {
        match class {
            Some(class) if Some(class) == self.dump.summary.java_lang_class() => SuspectSubject::Class,
            Some(class) if self.threads.contains(class) => SuspectSubject::Thread,
            Some(class) if self.loaders.contains(class) => SuspectSubject::ClassLoader,
            _ => SuspectSubject::Instance,
        }
    }

    /// Reads the evidence for a candidate.
    pub(super) fn suspect(&self, candidate: SuspectCandidate) -> Suspect {
        let tree = &self.dump.graph.tree;
        let SuspectCandidate {
            kind,
            class,
            positions,
            retained_bytes,
            shallow_bytes,
            point,
            chain,
            common,
            store,
        } = candidate;
        let what = self.suspect_object(class);
        let first = positions.first().copied().unwrap_or_default();
        let object = tree.object_at(first).unwrap_or_default();
        let point_position = point.and_then(|point| tree.reachable_position(point));
        // Base of the evidence: the accumulation point, the chain that leads there, or the group itself.
        let base = chain.map(|chain| chain.first).or(point_position);
        let base = base.map(|base| self.top_of_nodes(base));
        let tops: Vec<TreePosition> = match (&store, kind) {
            (Some(store), _) => store.positions.clone(),
            (None, SuspectKind::Single) => vec![base.unwrap_or(first)],
            (None, SuspectKind::Group) => positions.clone(),
        };
        let base_position = tops.first().copied().unwrap_or(first);
        // Uses the kinds of children if there is no chain. The tree below is examined only where memory accumulates:
        // that takes a pass over all of it.
        let kinds = || contents::child_kinds(&self.dump, &tops);
        let (mut below, mut children) = (None, Vec::new());
        let reason = match (&store, kind, chain) {
            (Some(store), ..) => store.reason.clone(),
            (None, SuspectKind::Group, _) => {
                self.reason_of_group(what, class, &positions, retained_bytes, point.is_some())
            }
            (None, SuspectKind::Single, Some(chain)) => {
                let found = MergedTree::new(&self.dump, &tops);
                let class =
                    tree.object_at(chain.first).and_then(|object| self.dump.graph.objects.class(object));
                let reason = class.and_then(|class| found.chain(self.class_name(class), chain.links.into()));
                below = Some(found);
                reason
            }
            (None, SuspectKind::Single, None) => {
                children = kinds();
                let class =
                    tree.object_at(base_position).and_then(|object| self.dump.graph.objects.class(object));
                if children.first().is_some_and(|kind| kind.is_of(class)) {
                    let found = MergedTree::new(&self.dump, &tops);
                    children = found.kinds();
                    below = Some(found);
                }
                let tree = below.as_ref().and_then(MergedTree::tree);
                tree.or_else(|| contents::reason(&self.dump, base_position, &children))
            }
        };
        let reason = match (reason, kind) {
            (Some(reason), SuspectKind::Single) => Some(self.with_place_of_threads(reason, base_position)),
            (reason, _) => reason,
        };
        if reason.is_none() && children.is_empty() {
            children = kinds();
        }
        // The elements of a place are known without a pass over the tree, except for objects attached to nodes.
        let is_known = store.as_ref().is_some_and(|store| !store.are_heads);
        if reason.is_some() && below.is_none() && !is_known {
            below = Some(MergedTree::new(&self.dump, &tops));
        }
        let mut accumulated = match (&store, below) {
            (_, Some(below)) => below.accumulating_levels(),
            (Some(store), None) => store.levels(self.class_at(store.object)),
            (None, None) => Vec::new(),
        };
        for level in &mut accumulated {
            level.is_soft = !level.is_class_object && self.holders.is_soft(&level.class);
        }
        let shown = match kind {
            SuspectKind::Single => base.and_then(|position| tree.object_at(position)).or(Some(object)),
            SuspectKind::Group => point,
        };
        let mut place = shown.map(|object| self.holders.place(object, store.is_none()));
        if let (Some(place), Some(store)) = (&mut place, &store) {
            place.instances = store.objects;
            place.held = place.held.take().filter(|_| store.objects == 1);
        }
        let is_oom = |position: &TreePosition| {
            let object = tree.object_at(*position);
            object.is_some_and(|object| self.all_threads.is_out_of_memory(object))
        };
        let members = match kind {
            SuspectKind::Single => Vec::new(),
            SuspectKind::Group => self.named_all(store.as_ref().map_or(&positions, |store| &store.positions)),
        };
        let thread_locals =
            if what == SuspectSubject::Thread { self.thread_locals.uses_of(&positions) } else { Vec::new() };
        let paths = match &common {
            Some(common) if !common.objects.is_empty() => {
                let mut paths = self.evidence.along(&common.objects, common.is_weak);
                // The common path of the members may end before the soft reference.
                if common.is_weak && !paths.is_soft {
                    paths.is_soft = self.evidence.paths(object).is_some_and(|paths| paths.is_soft);
                }
                Some(paths)
            }
            _ => {
                // A ThreadLocal under which most threads hold memory is more specific than a thread.
                let local = thread_locals.first().filter(|local| local.keys == 1);
                let local = local.filter(|local| local.is_most_of(retained_bytes));
                let value = local.and_then(|local| local.largest);
                value.or(shown).or(Some(object)).and_then(|object| self.evidence.paths(object))
            }
        };
        // The path to a framework's object continues to the object that it holds.
        let largest = store.as_ref().and_then(|store| store.largest);
        let largest = largest.and_then(|position| tree.object_at(position));
        let paths = match (paths, largest) {
            (Some(paths), Some(largest)) => Some(self.evidence.extend_paths(paths, largest)),
            (paths, _) => paths,
        };
        let is_buffer = matches!(reason, Some(Reason::Buffer { .. }));
        let entry = paths.as_ref().filter(|_| is_buffer).and_then(|paths| self.entry(paths));
        let accumulated_bytes = match kind {
            SuspectKind::Single if store.is_none() => tree.retained_bytes(base_position),
            _ => retained_bytes,
        };
        // There are soft references on the path, or most of the memory is below soft references.
        let is_below =
            accumulated.iter().any(|level| level.is_soft && level.retained_bytes > accumulated_bytes / 2);
        let is_behind_soft = is_below || paths.as_ref().is_some_and(|paths| paths.is_soft);
        let verdict = match reason {
            None => LeakVerdict::Holder,
            Some(_) if is_behind_soft => LeakVerdict::Content,
            Some(_) => LeakVerdict::Accumulation,
        };
        let (parts, contents) = match (verdict, kind) {
            (LeakVerdict::Holder, SuspectKind::Single) => {
                self.evidence.parts(&self.holders, base_position, &children)
            }
            (LeakVerdict::Holder, SuspectKind::Group) => (evidence::kinds(&children), None),
            _ => (Vec::new(), None),
        };
        Suspect {
            rule: if store.is_some() { SuspectRule::Below } else { SuspectRule::Mat },
            of_mat: None,
            framework: None,
            named: None,
            also_held_by: Vec::new(),
            elements: store.as_ref().and_then(|store| store.elements.clone()),
            kind,
            what,
            verdict,
            object: self.evidence.named_object(object),
            objects: store.as_ref().map_or(positions.len() as u64, |store| store.objects),
            shallow_bytes,
            retained_bytes,
            members,
            group_class: class
                .filter(|_| kind == SuspectKind::Group)
                .map(|class| self.class_name(class).to_owned()),
            loader: self.evidence.loader(object),
            point: point.map(|point| self.evidence.named_object(point)),
            base: self.evidence.named_object(shown.unwrap_or(object)),
            collection: place.as_ref().and_then(|place| self.evidence.collection(place)),
            parts,
            accumulated_bytes,
            allocation: allocation::find(&self.dump, &tops, &accumulated),
            allocated_in: None,
            accumulated,
            contents: match (contents, self.extent) {
                (Some(contents), _) => contents,
                (None, LeakEvidence::All) => self.evidence.contents(&tops),
                (None, LeakEvidence::Sentences) => Vec::new(),
            },
            entry,
            thread_locals,
            frame: if what == SuspectSubject::Thread { self.frame(object) } else { None },
            is_oom_thread: what == SuspectSubject::Thread && positions.iter().any(is_oom),
            reason,
            place,
            paths,
            is_behind_soft,
            evidence: Vec::new(),
            off_heap: None,
            loader_group: None,
            mat_verdict: store.is_none().then_some(verdict),
            container: store.and_then(|store| store.container),
            wasted: None,
            covers: Vec::new(),
            related: Vec::new(),
        }
    }

    /// Returns the last entry of a map on a path.
    fn entry(&self, paths: &Paths) -> Option<MapEntry> {
        if self.evidence.view.hides_values() {
            return None;
        }
        let objects = &self.dump.objects;
        let steps = paths.path.steps.iter().map(|step| self.dump.graph.objects.addresses.index_of(step.id));
        let steps: Vec<ObjectIndex> = steps.collect::<Option<_>>()?;
        let collections = self.evidence.collections();
        let keyed = steps.iter().enumerate().rev();
        let (at, node, key) =
            keyed.into_iter().find_map(|(at, step)| Some((at, *step, objects.reference(*step, "key")?)))?;
        let value = ["value", "val"].into_iter().find_map(|field| objects.reference(node, field));
        let is_map = |step: &&ObjectIndex| {
            collections.collection(**step).is_some_and(|of| of.kind == CollectionKind::Map)
        };
        let map = steps.get(..at)?.iter().rev().find(is_map)?;
        if value.as_ref() != steps.get(at + 1) {
            return None;
        }
        let root = &paths.path.root;
        Some(MapEntry {
            key: self.evidence.view.content(key)?,
            map: Holder { held: None, ..self.holders.place(*map, false) },
            thread: root.frame.as_ref().and_then(|_| root.thread.as_ref()?.name.clone()),
        })
    }

    /// Returns the outermost of the nodes of a tree or list that dominate one another down to `position`, since a subtree that
    /// retains most of a tree is meaningless to a reader. Objects that reference others of their class without being nodes,
    /// such as loaders and threads, are not skipped.
    fn top_of_nodes(&self, position: TreePosition) -> TreePosition {
        let (tree, objects) = (&self.dump.graph.tree, &self.dump.graph.objects);
        let class = |position| tree.object_at(position).and_then(|object| objects.class(object));
        let own = class(position);
        let is_instance = own
            .and_then(|own| self.dump.summary.class(own))
            .is_some_and(|row| row.kind() == ClassKind::Instance);
        if !is_instance || self.suspect_object(own) != SuspectSubject::Instance {
            return position;
        }
        let above = std::iter::successors(Some(position), |at| {
            tree.dominator(*at).filter(|above| class(*above) == own)
        });
        above.last().unwrap_or(position)
    }

    /// Returns the innermost non-JDK frame of a thread.
    fn frame(&self, thread: ObjectIndex) -> Option<Frame> {
        self.all_threads.own_frame(thread)
    }

    /// Describes another holder of the accumulated objects; `known` is the holder's description by a framework's rule.
    pub(super) fn other_holder(
        &self,
        known: Option<&FrameworkDescription>,
        object: ObjectIndex,
    ) -> OtherHolder {
        if let Some(called) = known.and_then(|known| known.called.clone()) {
            return OtherHolder { called: Some(called), holder: Holder::default() };
        }
        let tree = &self.dump.graph.tree;
        let top = tree.reachable_position(object).map(|position| self.top_of_nodes(position));
        let object = top.and_then(|position| tree.object_at(position)).unwrap_or(object);
        OtherHolder { called: None, holder: Holder { held: None, ..self.holders.place(object, false) } }
    }

    /// Returns the members of a group that retain the most.
    pub(super) fn named_all(&self, positions: &[TreePosition]) -> Vec<NamedObject> {
        let mut positions = positions.to_vec();
        positions.sort_rows_by_key(|position| {
            (Reverse(self.dump.graph.tree.retained_bytes(*position)), *position)
        });
        let objects = positions
            .iter()
            .take(TOLD_MEMBERS)
            .filter_map(|position| self.dump.graph.tree.object_at(*position));
        objects.map(|object| self.evidence.named_object(object)).collect()
    }

    /// Returns the name of the class of the object at a position.
    pub(super) fn class_at(&self, position: TreePosition) -> &'a str {
        let object = self.dump.graph.tree.object_at(position);
        object
            .and_then(|object| self.dump.graph.objects.class(object))
            .map_or("", |class| self.class_name(class))
    }

    /// Returns the class loader that an object is; for a class object, the loader of the represented class.
    pub(super) fn loader_of(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        match self.dump.graph.class_of_class_object(object) {
            Some(class) => {
                let loader = self.dump.summary.class(class)?.loader;
                self.dump.graph.objects.addresses.index_of(loader.into())
            }
            None => Some(object).filter(|object| {
                self.dump.graph.objects.class(*object).is_some_and(|class| self.loaders.contains(class))
            }),
        }
    }

    pub(super) fn class_name(&self, class: ClassNumber) -> &'a str {
        self.dump.summary.class(class).map_or("", |row| self.dump.summary.class_name(row))
    }

    fn reason_of_group(
        &self,
        what: SuspectSubject,
        class: Option<ClassNumber>,
        positions: &[TreePosition],
        all: u64,
        has_point: bool,
    ) -> Option<Reason> {
        let tree = &self.dump.graph.tree;
        let retained = || positions.iter().map(|position| tree.retained_bytes(*position));
        let class_name = class.map_or("", |class| self.class_name(class));
        match what {
            SuspectSubject::Thread => {
                let is_virtual = VIRTUAL_THREADS.contains(&class_name);
                let (name, members) = match class_name {
                    "java.lang.Thread" => self.largest_pool(positions)?,
                    _ if is_virtual => self.largest_pool(positions)?,
                    // Threads of an application class belong together, whatever their names are.
                    _ => (None, positions.to_vec()),
                };
                let bytes = || members.iter().map(|position| tree.retained_bytes(*position));
                let sum = bytes().fold(0, u64::saturating_add);
                let are_many = contents::is_in_many(bytes(), all, true);
                (are_many && contents::is_most(sum, all)).then(|| {
                    let place = InOnePlace { name, is_virtual, ..self.method_of(&members) };
                    Reason::Threads { place, threads: members.len() as u64, retained_bytes: sum }
                })
            }
            SuspectSubject::ClassLoader => {
                contents::is_in_many(retained(), all, true).then(|| Reason::Loaders {
                    class: class_name.to_owned(),
                    loader_class: Some(class_name.to_owned()),
                    loaders: positions.len() as u64,
                    retained_bytes: all,
                })
            }
            // Different classes are parts of different kinds.
            SuspectSubject::Class => None,
            SuspectSubject::Instance => {
                let is_known = has_point || !names::is_of_jdk(class_name) && !class_name.ends_with("[]");
                (is_known && contents::is_in_many(retained(), all, false)).then_some(Reason::Members)
            }
        }
    }

    /// Returns the thread pool with the largest retained size: its name, with `*` for the numbers in which the names of its
    /// threads differ, and its threads, largest retained size first.
    fn largest_pool(&self, positions: &[TreePosition]) -> Option<(Option<String>, Vec<TreePosition>)> {
        let tree = &self.dump.graph.tree;
        let mut pools = FxHashMap::<String, (Option<String>, u64, Vec<TreePosition>)>::default();
        for position in positions {
            let object = tree.object_at(*position)?;
            let name = self.evidence.view.content(object).unwrap_or_default();
            let (in_all, bytes, members) = pools.entry(fold_numbers(&name)).or_default();
            *in_all = in_common(in_all.take(), Some(name));
            *bytes = bytes.saturating_add(tree.retained_bytes(*position));
            members.push(*position);
        }
        let largest = pools.into_iter().max_by_key(|(form, (_, bytes, _))| (*bytes, Reverse(form.clone())));
        let (_, (name, _, members)) = largest?;
        let name = name.unwrap_or_default();
        let is_told = !name.is_empty() && !self.evidence.view.hides_values();
        Some((Some(name).filter(|_| is_told), members))
    }

    /// Returns the method that most of the given threads run: their innermost frame outside the JDK. Many threads have few
    /// distinct stacks, so the threads with the largest retained size are enough.
    fn method_of(&self, threads: &[TreePosition]) -> InOnePlace {
        let asked = threads.iter().take(MAX_STACKS);
        let mut methods = FxHashMap::<Option<String>, usize>::default();
        for thread in asked.clone() {
            let frame = self.dump.graph.tree.object_at(*thread).and_then(|thread| self.frame(thread));
            *methods.entry(frame.as_ref().map(Frame::qualified_method)).or_default() += 1;
        }
        let most = methods.into_iter().max_by_key(|(method, count)| (*count, Reverse(method.clone())));
        let (method, count) = most.unwrap_or_default();
        let is_told = contents::is_most(count as u64, asked.len() as u64);
        let is_unstarted = |thread| self.all_threads.is_unstarted(thread);
        let mut objects = asked.map(|thread| self.dump.graph.tree.object_at(*thread));
        InOnePlace {
            method: method.filter(|_| is_told),
            is_mostly: count < threads.len(),
            is_unstarted: !threads.is_empty() && objects.all(|object| object.is_some_and(is_unstarted)),
            ..InOnePlace::default()
        }
    }

    /// Adds the common name and method to `reason`, if it is about threads that one object dominates.
    fn with_place_of_threads(&self, reason: Reason, above: TreePosition) -> Reason {
        let Reason::Threads { threads, retained_bytes, .. } = reason else { return reason };
        let tree = &self.dump.graph.tree;
        let is_thread = |position: &TreePosition| {
            let class = tree.object_at(*position).and_then(|object| self.dump.graph.objects.class(object));
            class.is_some_and(|class| self.threads.contains(class))
        };
        let members: Vec<TreePosition> = tree.children(above).filter(is_thread).take(MAX_STACKS).collect();
        let pool = self.largest_pool(&members);
        let pool = pool.filter(|(_, of)| contents::is_most(of.len() as u64, members.len() as u64));
        let name = pool.and_then(|(name, _)| name);
        let place = InOnePlace { name, ..self.method_of(&members) };
        Reason::Threads { place, threads, retained_bytes }
    }
}
