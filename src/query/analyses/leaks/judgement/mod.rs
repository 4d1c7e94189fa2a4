//! Judgement of accumulations: decides whether one is a leak, as the program's developers would.
//!
//! A dump does not contain which fields are final, how old an object is, or the bounds that code enforces. A verdict is based
//! on other evidence: numbers near a container whose names indicate its maximum, running threads, owners that are all classes
//! of the JDK, and the limit of the heap. docs/mat.md lists the rules, in the order in which they apply.

mod bound;
mod heap_limit;
mod progress;

use hprof_base::share::is_share;
use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::Summary;
use hprof_index::objects::reader::ObjectReader;
use hprof_index::storage::human_bytes::{HumanBytes, group_digits};
use hprof_values::ObjectId;
use hprof_values::names::is_of_jdk;

use crate::compare::places::library;
use crate::containers::{ContainerFamily, is_primitive};
use crate::frameworks::FrameworkVerdict;
use hprof_model::objects::class_set::ClassSet;

use super::contents::Reason;
use super::evidence::class_of;
use super::reader::EvidenceReader;
use super::{LeakVerdict, Suspect, SuspectSubject};

pub(crate) use heap_limit::heap_limit;

/// Evidence text for an accumulation without any other evidence.
pub const NO_BOUND: &str = "no size limit was found in nearby fields";
/// Fraction of the heap limit, as 1/N, below which a heap has no leaks, unless it ran out of memory.
const LITTLE_OF_LIMIT: u64 = 200;
/// Maximum retained size in bytes of a container that belongs to the platform because only the JVM and its libraries own it.
/// Idle programs on JDK 11 to 25 have at most 1.2 MiB in one, the texts of the class data archive.
const OF_PLATFORM: u64 = 2 << 20;
/// Maximum retained size of a container of the JDK's tools and internal classes, in bytes: an idle JShell has an
/// index of all classes, of 8.5 MiB.
const OF_INSIDE: u64 = 16 << 20;
/// Prefixes of the packages of the JDK's tools and internal classes.
const INSIDE: [&str; 3] = ["jdk.", "sun.", "com.sun."];
/// Maximum number of JAR directories (exclusive) that belong to the platform: their contents depend on the program's
/// files, not on its work.
const MANY_JARS: u64 = 1000;
/// Classes of the platform's tables of JAR files.
const TABLES_OF_PLATFORM: [&str; 2] = ["java.util.zip.ZipFile$Source", "java.util.jar.JarFile"];
/// Tables of constants of the JDK that are loaded gradually and have a fixed maximum.
const CONSTANTS_OF_PLATFORM: [&str; 1] = ["java.time.zone.TzdbZoneRulesProvider"];
/// Maximum number of elements of a registry (exclusive), if each consists of many objects.
const FEW_ELEMENTS: u64 = 200;
/// Maximum number of elements of a registry (exclusive) in a collection of the program's own.
const FEW_OF_PROGRAM: u64 = 50;
/// Minimum number of elements for the common size of the collections in a container to count as their bound.
const MIN_BOUND_OF_EACH: u64 = 100;
/// Minimum number of elements of queues for their common size to count as a bound; and minimum number of collections.
const MIN_BOUND_OF_QUEUES: u64 = 10;
/// Maximum number of bounded queues in a container that does not grow.
const MAX_BOUNDED_QUEUES: u64 = 10_000;
/// Minimum percentage of the collections that have as many elements as the largest.
const MIN_FULL_COLLECTIONS: u64 = 90;
/// Minimum number of objects per element for the elements to be more than records.
const MANY_OBJECTS: u64 = 64;
/// Maximum part of the heap that a table of constants retains, as 1/N.
const PART_OF_TABLE: u64 = 2;

/// Judge of the leak suspects of a heap.
pub(super) struct LeakJudge<'r, 'a> {
    graph: &'a ObjectGraph,
    objects: ObjectReader<'a>,
    reader: &'r EvidenceReader<'a>,
    /// Names of the classes of class loaders, threads and activities.
    runtime: Vec<String>,
    is_out_of_memory: bool,
    /// Limit of the heap in bytes, if the heap uses very little of it.
    little_of: Option<u64>,
}

impl<'r, 'a> LeakJudge<'r, 'a> {
    pub(super) fn new(summary: &Summary, reader: &'r EvidenceReader<'a>) -> Self {
        let graph = reader.dump.graph;
        let is_out_of_memory = reader.all_threads.out_of_memory(0).is_some();
        let is_little = |limit: &u64| {
            graph.tree.reachable_bytes().saturating_mul(LITTLE_OF_LIMIT) < *limit && !is_out_of_memory
        };
        let little_of = heap_limit(summary).filter(is_little);
        let mut runtime = Vec::new();
        for name in ["java.lang.ClassLoader", "java.lang.Thread", "android.app.Activity"] {
            let classes = ClassSet::of_name_and_below(summary, name);
            let rows = classes.classes().filter_map(|class| summary.class(class));
            runtime.extend(rows.map(|row| summary.class_name(row).to_owned()));
        }
        Self { graph, objects: reader.dump.objects, reader, runtime, is_out_of_memory, little_of }
    }

    /// Sets the verdict and the evidence of a suspect in which memory accumulates, given the positions of its objects.
    pub(super) fn judge(&self, suspect: &mut Suspect, positions: &[TreePosition]) {
        // A leak by a framework's rule is always a leak.
        if suspect.framework.as_ref().is_some_and(|known| known.verdict == Some(FrameworkVerdict::Leak)) {
            suspect.evidence.push("a framework rule reports it".to_owned());
            return;
        }
        let found = self
            .judge_bounded(suspect)
            .or_else(|| self.in_progress(suspect, positions))
            .or_else(|| self.judge_full_collections(suspect))
            .or_else(|| self.of_platform(suspect))
            .or_else(|| self.table(suspect))
            .or_else(|| self.registry(suspect, positions))
            .or_else(|| wasteful(suspect))
            .or_else(|| self.little());
        let (verdict, evidence) = found.unwrap_or((LeakVerdict::Accumulation, NO_BOUND.to_owned()));
        suspect.verdict = verdict;
        suspect.evidence.insert(0, evidence);
    }

    /// Judges a bounded container: a cache within its bound is content; a queue or pool that is filled to its bound is not.
    fn judge_bounded(&self, suspect: &Suspect) -> Option<(LeakVerdict, String)> {
        // A rule's sentence about it is more informative than numbers near it.
        if suspect.framework.as_ref().is_some_and(|known| known.text.is_some()) {
            return None;
        }
        let (elements, _) = elements_of(suspect)?;
        // The bound may be for the elements of all parts of a collection.
        let all = suspect.container.as_ref().map_or(elements, |container| container.all_elements());
        let of = |elements| Some((self.bound(suspect, elements)?, elements));
        let (found, elements) = of(elements).or_else(|| of(all).filter(|_| all != elements))?;
        let is_full = found.is_of_waiting && found.is_full(elements);
        let verdict = if is_full { LeakVerdict::Accumulation } else { LeakVerdict::Content };
        Some((verdict, found.text(elements)))
    }

    /// Judges work in progress: memory held only by the stack of a running thread, unless that thread ran out of
    /// memory.
    fn in_progress(&self, suspect: &Suspect, positions: &[TreePosition]) -> Option<(LeakVerdict, String)> {
        let threads = self.holding_threads(suspect, positions);
        let works: Vec<String> = threads.iter().filter_map(|thread| self.progress(*thread)).collect();
        let is_most = works.len() * 10 >= threads.len() * 8;
        let evidence = match works.as_slice() {
            [] => return None,
            [one] => one.clone(),
            _ => format!("{} of the {} threads whose stacks hold it are running", works.len(), threads.len()),
        };
        is_most.then_some((LeakVerdict::InProgress, evidence))
    }

    /// Judges collections in a container of which nearly all have as many elements as the largest, such as the last 200
    /// positions of each bus. Queues that wait for threads are not meant to be full. There must be fewer lists than elements in
    /// each: otherwise the lists are pages of something that grows.
    fn judge_full_collections(&self, suspect: &Suspect) -> Option<(LeakVerdict, String)> {
        let nested = suspect.container.as_ref()?.nested.as_ref()?;
        if self.is_out_of_memory || nested.are_arrays || nested.are_blocking {
            return None;
        }
        let (least, most) = if nested.are_queues {
            (MIN_BOUND_OF_QUEUES, MAX_BOUNDED_QUEUES)
        } else {
            (MIN_BOUND_OF_EACH, nested.largest)
        };
        let evidence = format!(
            "{} of {} collections in it have {} elements, and none has more",
            group_digits(nested.of_largest),
            group_digits(nested.collections),
            group_digits(nested.largest)
        );
        let are_full = is_share(nested.of_largest, nested.collections, MIN_FULL_COLLECTIONS);
        let is_bound = nested.largest >= least && (MIN_BOUND_OF_QUEUES..=most).contains(&nested.collections);
        (is_bound && are_full).then_some((LeakVerdict::Content, evidence))
    }

    /// Judges memory that the JVM and its libraries have in an idle program as well.
    fn of_platform(&self, suspect: &Suspect) -> Option<(LeakVerdict, String)> {
        let bases = [&suspect.base, &suspect.object].map(|one| one.class.as_deref().unwrap_or_default());
        let of_place = suspect.place.as_ref().and_then(|place| place.field.as_ref());
        let is_table = |class: &str| TABLES_OF_PLATFORM.contains(&class);
        let is_of_jars =
            bases.into_iter().any(is_table) || of_place.is_some_and(|field| is_table(&field.class));
        // Thousands of open files are a leak.
        if is_of_jars && suspect.explained_bytes() <= OF_INSIDE && suspect.objects < MANY_JARS {
            return Some((LeakVerdict::Platform, "directories of the program's JAR files".to_owned()));
        }
        let is_constant = |class: &str| CONSTANTS_OF_PLATFORM.contains(&class);
        if of_place.is_some_and(|field| is_constant(&field.class)) {
            return Some((LeakVerdict::Platform, "a constant table of the JDK".to_owned()));
        }
        if self.is_of_program(suspect) {
            return None;
        }
        let evidence = "only JDK classes hold it, and it is no larger than in an idle program";
        let is_inside =
            of_place.is_some_and(|field| INSIDE.iter().any(|start| field.class.starts_with(start)));
        let most = if is_inside { OF_INSIDE } else { OF_PLATFORM };
        (suspect.explained_bytes() <= most).then(|| (LeakVerdict::Platform, evidence.to_owned()))
    }

    /// Judges tables of constants: numbers in a static field, unless they are most of the heap; and a library's dictionary of
    /// numbers.
    fn table(&self, suspect: &Suspect) -> Option<(LeakVerdict, String)> {
        if let Some(text) = self.dictionary(suspect) {
            return Some((LeakVerdict::Content, text));
        }
        let Some(Reason::Buffer { class }) = &suspect.reason else { return None };
        let field = suspect.place.as_ref()?.field.as_ref().filter(|field| field.is_static)?;
        let is_itself = suspect.place.as_ref()?.class.as_ref() == Some(class);
        let is_small =
            suspect.accumulated_bytes <= self.graph.tree.reachable_bytes() / PART_OF_TABLE && is_itself;
        let evidence = format!("an array of numbers in static field {} of {}", field.name, field.class);
        is_small.then_some((LeakVerdict::Content, evidence))
    }

    /// Describes a container of arrays of numbers reached from a static field of a library.
    fn dictionary(&self, suspect: &Suspect) -> Option<String> {
        let class = elements_of(suspect)?.1.strip_suffix("[]")?;
        if !is_primitive(class) || matches!(class, "byte" | "boolean") {
            return None;
        }
        let paths = suspect.paths.as_ref()?;
        let owner = paths.owner.as_ref().filter(|_| paths.user.is_none())?;
        let is_static = paths.path.steps.iter().any(|step| step.is_static);
        let programs = &self.reader.evidence.programs;
        let is_of_library = !programs.iter().any(|program| program == library(&owner.class));
        // Without a thread in `main`, the program is not known.
        (is_static && is_of_library && self.reader.program.is_some())
            .then(|| format!("arrays of numbers held by {}, a class of a library", owner.class))
    }

    /// Judges registries: a few objects that each retain many others, such as repositories, connections or models. They are
    /// parts of a program.
    fn registry(&self, suspect: &Suspect, positions: &[TreePosition]) -> Option<(LeakVerdict, String)> {
        let (elements, tops) = match (&suspect.container, &suspect.reason) {
            // Shards of one collection are not parts of a program.
            (Some(container), _) => (container.all_elements(), container.tops.as_slice()),
            (None, Some(Reason::Children { objects, .. })) => (*objects, positions),
            // They may be below the elements of a collection.
            (None, Some(Reason::Members)) => {
                let of_place = suspect.collection.as_ref().and_then(|of| of.size);
                let of_place = of_place.filter(|size| suspect.objects / MANY_OBJECTS < *size);
                (of_place.unwrap_or(suspect.objects).min(suspect.objects), positions)
            }
            _ => return None,
        };
        // Objects held only by stacks are not parts of the program.
        if suspect.paths.as_ref().is_some_and(|paths| paths.only_frames) {
            return None;
        }
        // Each object of these classes is too many, and so is any if memory ran out.
        let class = elements_of(suspect).map_or("", |(_, class)| class);
        let is_exempt = self.is_out_of_memory || self.runtime.iter().any(|one| one == class);
        let are_runtime = matches!(suspect.reason, Some(Reason::Threads { .. } | Reason::Loaders { .. }));
        if are_runtime || is_exempt || elements == 0 {
            return None;
        }
        let tree = &self.graph.tree;
        let objects = tops.iter().map(|top| u64::from(tree.end(*top).0 - top.0));
        let each = objects.sum::<u64>() / elements;
        let evidence = format!("only {elements} elements, with {} objects each", group_digits(each));
        let field = suspect.place.as_ref().and_then(|place| place.field.as_ref());
        let is_own =
            suspect.container.is_some() && field.is_some_and(|field| self.reader.is_of_program(&field.class));
        let few = if is_own { FEW_OF_PROGRAM } else { FEW_ELEMENTS };
        (elements < few && each >= MANY_OBJECTS).then_some((LeakVerdict::Content, evidence))
    }

    fn little(&self) -> Option<(LeakVerdict, String)> {
        let limit = self.little_of?;
        let evidence = format!(
            "the heap uses less than 1/{LITTLE_OF_LIMIT} of its maximum size of {}",
            HumanBytes(limit)
        );
        Some((LeakVerdict::Content, evidence))
    }

    /// Returns whether a class outside the JDK is on the path to a suspect, or among its elements.
    fn is_of_program(&self, suspect: &Suspect) -> bool {
        let is_own = |class: &str| {
            let element = class.trim_end_matches("[]");
            !is_of_jdk(element) && !is_primitive(element)
        };
        let Some(paths) = &suspect.paths else { return true };
        let of_path = paths.path.steps.iter().filter_map(class_of).any(is_own);
        let frames =
            [paths.path.root.frame.as_ref(), paths.local.as_ref().and_then(|local| local.frame.as_ref())];
        let of_frame = frames.into_iter().flatten().any(|frame| frame.is_own());
        let of_elements = match (&suspect.container, &suspect.reason) {
            (Some(container), _) => {
                container.element_classes.iter().chain(&container.keys).any(|row| is_own(&row.class))
            }
            (None, Some(Reason::Children { class, .. } | Reason::Chain { class, .. })) => is_own(class),
            _ => false,
        };
        let of_object = match suspect.what {
            SuspectSubject::Class => suspect.object.class.as_deref().is_some_and(is_own),
            SuspectSubject::ClassLoader | SuspectSubject::Thread => true,
            SuspectSubject::Instance => false,
        };
        paths.owner.is_some() || of_path || of_frame || of_elements || of_object
    }

    fn object(&self, id: ObjectId) -> Option<ObjectIndex> {
        self.graph.objects.addresses.index_of(id)
    }
}

/// Returns the number and the class of the elements of a suspect.
fn elements_of(suspect: &Suspect) -> Option<(u64, &str)> {
    match (&suspect.container, &suspect.reason) {
        (Some(container), _) => {
            Some((container.elements, container.element_class.as_deref().unwrap_or_default()))
        }
        (None, Some(Reason::Children { class, objects, .. } | Reason::Chain { class, objects, .. })) => {
            Some((*objects, class))
        }
        _ => None,
    }
}

/// Judges an array that is mostly waste and does not grow, so that the waste is its only problem.
fn wasteful(suspect: &Suspect) -> Option<(LeakVerdict, String)> {
    let container = suspect.container.as_ref().filter(|one| one.family == ContainerFamily::Array)?;
    // Custom lists replace their arrays by longer ones.
    suspect.place.as_ref()?.field.as_ref().filter(|field| field.is_static)?;
    let wasted = suspect.wasted.as_ref()?;
    let evidence = format!(
        "{} of {} elements, which cannot grow and is mostly waste ({})",
        container.class,
        group_digits(container.elements),
        wasted.kind.name
    );
    Some((LeakVerdict::Waste, evidence))
}
