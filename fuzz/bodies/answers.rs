//! All that the library says of a dump, as one number to compare.

use std::fmt::{self, Write};
use std::io;

use xxhash_rust::xxh3::Xxh3;

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;
use hprof_index::layout::sizes::Sizes;
use hprof_index::{Dump, Heap, ObjectGraph, Quiet};
use hprof_query::dominators::preorder::Start;
use hprof_query::dominators::retained_of_set::retained;
use hprof_query::dump::info;
use hprof_query::frameworks::Frameworks;
use hprof_query::heap_facts;
use hprof_query::histogram::hierarchy;
use hprof_query::histogram::histogram;
use hprof_query::histogram::listing;
use hprof_query::leaks::heap_places::HeapPlaces;
use hprof_query::leaks::{self, LeakEvidence, LeakVerdict, SuspectKind, SuspectRule};
use hprof_query::loaders;
use hprof_query::objects::label::Labels;
use hprof_query::objects::reference_names::Edges;
use hprof_query::objects::strength::Exclusions;
use hprof_query::paths::root_report;
use hprof_query::paths::shortest::paths;
use hprof_query::paths::steps::View;
use hprof_query::recordings::profile::binary;
use hprof_query::recordings::stacks;
use hprof_query::refs::{Direction, ReferenceLister};
use hprof_query::show::Shower;
use hprof_query::strings;
use hprof_query::threads::Threads;
use hprof_query::threads::frames::Frames;
use hprof_query::waste::{self, FieldGroupBy};
use hprof_report::hprof_text::{ReportHeap, ReportInput, Sections};
use hprof_report::stacks::{folded, thread_dump};

/// Objects that are looked at one by one, from each end of the heap.
const LOOKED_AT: u32 = 48;
/// Rows of one object that are taken.
const ROWS: usize = 100;
/// References of one object that are taken.
const MOST_EDGES: usize = 1 << 16;

/// A hash of what is written to it.
pub(super) struct Sum {
    hash: Box<Xxh3>,
    /// Whether answers must be consistent: not those from a corrupted index.
    is_true: bool,
}

impl Sum {
    pub(super) fn of_truth() -> Self {
        Self { hash: Box::default(), is_true: true }
    }

    pub(super) fn of_lies() -> Self {
        Self { hash: Box::default(), is_true: false }
    }

    /// Checks an invariant of all consistent answers.
    fn check(&self, holds: bool, what: &str) {
        assert!(holds || !self.is_true, "{what}");
    }

    pub(super) fn add(&mut self, value: &impl fmt::Debug) {
        write!(self, "{value:?};").expect("a hash takes everything");
    }

    pub(super) fn end(self) -> u64 {
        self.hash.digest()
    }
}

impl Write for Sum {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.hash.update(text.as_bytes());
        Ok(())
    }
}

impl io::Write for Sum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hash.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Computes all answers that need no single objects.
pub(super) fn of_summary(heap: &Heap, sum: &mut Sum) {
    let summary = heap.summary();
    let sizes = Sizes::new(summary, None);
    let end = heap.bytes(&Quiet).map_or(0, <[u8]>::len) as u64;
    for problem in summary.problems() {
        sum.check(problem.offset.is_none_or(|offset| offset <= end), "a problem behind the end");
        sum.check(!problem.to_string().is_empty(), "a problem without words");
        sum.add(&problem);
    }
    let segments = summary.segments();
    let fit = |start: u64, last: u64| start <= last && last <= end;
    let all_fit = segments.iter().all(|segment| fit(segment.start.get(), segment.end.get()));
    sum.check(all_fit, "a segment behind the end");
    sum.add(&(summary.facts(), summary.roots(), summary.root_counts(), segments, &sizes.fit));
    for (number, class) in summary.numbered_classes() {
        let fields: Vec<_> = summary.fields(class).collect();
        let statics: Vec<_> = summary.statics(class).collect();
        let size = (sizes.instance(number), sizes.class_object(number), sizes.total(number));
        sum.add(&(summary.class_name(class), class, fields, statics, size));
    }
    let rows = histogram(summary, &sizes, &Default::default());
    let (instances, bytes) = rows.rows.iter().fold((0u64, 0u64), |(instances, bytes), row| {
        (instances.saturating_add(row.instances), bytes.saturating_add(row.shallow_bytes))
    });
    let total = (rows.total.instances, rows.total.shallow_bytes);
    sum.check((instances, bytes) == total, "rows of the histogram do not add up");
    sum.add(&rows);
    sum.add(&info::info(heap, &sizes));
    sum.add(&hierarchy::list(summary, &Default::default()));
    sum.add(&hierarchy::tree(summary, &Default::default()));
    profile(heap, &sizes, sum);
}

/// Computes the recording, and writes it as text.
fn profile(heap: &Heap, sizes: &Sizes, sum: &mut Sum) {
    let want = binary::Want { sites: true, traces: true, ..Default::default() };
    let (Ok(bytes), Ok(mut profile)) = (heap.bytes(&Quiet), binary::read(heap, want, &Quiet)) else { return };
    sum.add(&profile);
    profile.sites = profile.sites.or(binary::sites_of_objects(heap, sizes, &Quiet).ok().flatten());
    for of in stacks::available_weights(&profile) {
        if let Ok(stacks) = stacks::stacks(&profile, &stacks::StackQuery::new(of)) {
            folded::write(sum, &stacks).expect("a hash takes everything");
        }
    }
    let Ok(thread_events) = binary::thread_events(heap, &Quiet) else { return };
    let of_heap = ReportHeap { summary: heap.summary(), bytes, sizes };
    let report = ReportInput { heap: Some(of_heap), profile: &profile, thread_events: &thread_events };
    let sections = Sections { threads: true, traces: true, heap: true, sites: true, cpu: true };
    report.write(sum, sections, &Quiet).expect("a hash takes everything");
}

/// Objects to look at: the first and the last.
fn some(objects: u32) -> impl Iterator<Item = u32> {
    let first = objects.min(LOOKED_AT);
    (0..first).chain(objects.saturating_sub(LOOKED_AT).max(first)..objects)
}

/// Computes all answers about single objects.
pub(super) fn of_graph(heap: &Heap, graph: &ObjectGraph, sum: &mut Sum) {
    let Ok(dump) = Dump::new(heap, graph) else { return };
    let (dump, summary, tree) = (&dump, heap.summary(), &graph.tree);
    check_tree(tree, sum);
    objects(dump, sum);
    let labels = Labels::new(dump);
    let top = listing::ListingQuery { start: Start::Roots, levels: 3, top: Some(10), min_retained_bytes: 0 };
    let listing = listing::list(tree, &top);
    let listed = listing.positions.iter().filter_map(|place| listing::row(graph, &labels, *place));
    listed.for_each(|row| sum.add(&row));
    sum.add(&root_report::roots(graph, &labels, &Frames::new(dump), &Default::default()));
    sum.add(&loaders::loaders(&dump.objects, &labels, loaders::LoaderOrder::default()));
    sum.add(&loaders::duplicates(dump, &labels));
    let all = (0..graph.objects.len()).collect();
    let kept = retained(graph, &all);
    sum.check(kept.retained_bytes == tree.reachable_bytes(), "all objects do not retain what is reachable");
    texts(dump, sum);
    let threads = Threads::new(dump);
    for row in threads.find(&Default::default()).rows.iter().take(ROWS) {
        let thread = threads.thread(row);
        sum.add(&thread);
        let written = thread_dump::thread(sum, summary, &thread, thread_dump::Locals::Shown);
        written.expect("a hash takes everything");
    }
    suspects(dump, sum);
    wasted(dump, sum);
    look(dump, sum);
}

/// Computes waste and checks its invariants.
fn wasted(dump: &Dump<'_>, sum: &mut Sum) {
    for group_by in [FieldGroupBy::Field, FieldGroupBy::Loader] {
        let question = waste::WasteQuery { kinds: Vec::new(), group_by, examples: 5 };
        // No place for a file to work in says nothing of the dump.
        let Ok(found) = waste::waste(dump, &question) else { continue };
        sum.check(found.wasted_bytes <= found.all_bytes, "more is wasted than is there");
        for row in &found.rows {
            sum.check(row.added_bytes <= row.wasted_bytes, "a kind that adds more than it frees");
            sum.check(row.wasted_bytes <= found.all_bytes, "a kind that frees more than is there");
            let of_fields = row.fields.iter().fold(0u64, |sum, field| sum.saturating_add(field.wasted_bytes));
            let has_fields = row.kind.is_of_reachable();
            sum.check(!has_fields || of_fields == row.wasted_bytes, "fields that do not add up");
            sum.add(&(row.kind, row.count, row.wasted_bytes, row.added_bytes));
            sum.add(&(&row.fields, &row.parts, &row.examples));
        }
    }
}

/// Places that explain the heap, and what must hold of them.
fn explained(graph: &ObjectGraph, places: &HeapPlaces, sum: &mut Sum) {
    let mut all = 0u64;
    for one in &places.explained.places {
        all = all.saturating_add(one.retained_bytes);
        sum.add(&(places.text(graph, one), one.objects, one.retained_bytes));
    }
    sum.check(all <= graph.tree.reachable_bytes(), "places that explain more than there is");
}

/// Leak suspects, and what must hold of them.
fn suspects(dump: &Dump<'_>, sum: &mut Sum) {
    for percent in [1, 10, 100] {
        // No place for a file to work in says nothing of the dump.
        let Ok(places) = HeapPlaces::new(dump, &Frameworks::builtin(), percent) else {
            continue;
        };
        let Ok(found) = leaks::leaks(dump, percent, &places, LeakEvidence::All) else {
            continue;
        };
        explained(dump.graph, &places, sum);
        let mut last = u64::MAX;
        for suspect in &found.suspects {
            let retained = suspect.retained_bytes;
            sum.check(retained > found.threshold_bytes, "a suspect that retains less than the threshold");
            sum.check(suspect.rule != SuspectRule::Mat || retained <= last, "suspects that do not descend");
            sum.check(suspect.accumulated_bytes <= retained, "more accumulates than is retained");
            sum.check(suspect.shallow_bytes <= retained, "less is retained than is there");
            sum.check(
                (suspect.kind == SuspectKind::Single) == suspect.group_class.is_none(),
                "a group without a class",
            );
            let has_reason = suspect.reason.is_some();
            sum.check(
                suspect.verdict != LeakVerdict::Accumulation || has_reason,
                "a verdict without a reason",
            );
            sum.check(suspect.verdict != LeakVerdict::Holder || !has_reason, "a reason for nothing");
            let others = 0..found.suspects.len();
            sum.check(suspect.related.iter().all(|at| others.contains(at)), "related to no suspect");
            last = retained;
        }
        sum.check(percent < 100 || found.suspects.is_empty(), "more than all is retained");
        sum.add(&found);
    }
    sum.add(&heap_facts::facts(dump));
}

/// Checks the invariants of a tree.
fn check_tree(tree: &Tree, sum: &Sum) {
    sum.check(tree.reachable() <= tree.objects(), "more is reachable than there is");
    let retained = tree.top().fold(0u64, |all, position| all.saturating_add(tree.retained_bytes(position)));
    sum.check(retained == tree.reachable_bytes(), "the tops of the tree do not retain what is reachable");
    for position in some(tree.reachable()).map(TreePosition) {
        let end = tree.end(position);
        sum.check(end > position && end <= tree.positions().end, "a part of the tree outside of it");
        let sizes = [tree.retained_bytes(position), tree.shallow_bytes(position)];
        sum.check(
            sizes.is_sorted_by(|retained, shallow| retained >= shallow),
            "less is retained than is there",
        );
        let depth = tree.depth(position);
        if let Some(dominator) = tree.dominator(position) {
            sum.check(dominator < position && tree.end(dominator) >= end, "a dominator that is not above");
            sum.check(depth.checked_sub(1) == Some(tree.depth(dominator)), "depths do not count up");
        }
    }
}

fn objects(dump: &Dump<'_>, sum: &mut Sum) {
    let (summary, graph, bytes) = (dump.summary, dump.graph, dump.bytes());
    let mut last = None;
    for object in ObjectIndex::range(graph.objects.indices()) {
        let id = graph.objects.addresses.id_of(object);
        sum.check(id.is_some() && last < id, "ids do not ascend");
        last = id;
        let offset = graph.objects.offset(bytes, summary.id_size(), object);
        sum.check(offset.is_none_or(|offset| offset < bytes.len() as u64), "a record behind the end");
        let rows = [graph.references(object), graph.referrers(object)].map(|row| {
            let row: Vec<ObjectIndex> = row.take(MOST_EDGES).collect();
            sum.check(row.iter().all(|target| target.0 < graph.objects.len()), "a reference to no object");
            row
        });
        let position = graph.tree.position(object);
        let back = position.and_then(|position| graph.tree.object_at(position));
        sum.check(back == Some(object), "an object that has no place of its own in the tree");
        sum.add(&(id, graph.objects.class(object), offset, rows, position));
    }
}

fn texts(dump: &Dump<'_>, sum: &mut Sum) {
    for (rows, sort_by) in [
        (strings::StringRows::Strings, strings::StringOrder::Text),
        (strings::StringRows::Duplicates, strings::StringOrder::Wasted),
    ] {
        let question = strings::StringQuery {
            pattern: None,
            lengths: 0..=u64::MAX,
            live: false,
            rows,
            sort_by,
            top: None,
        };
        let Ok(answer) = strings::strings(dump, &question) else {
            // No place for a file to work in says nothing of the dump.
            continue;
        };
        sum.add(&answer.totals);
        let reader = strings::StringReader::new(dump, &answer, (rows, 200));
        (0..answer.len().min(ROWS)).for_each(|number| sum.add(&reader.row(number)));
    }
}

/// Looks at single objects.
fn look(dump: &Dump<'_>, sum: &mut Sum) {
    let graph = dump.graph;
    let view = View::new(dump);
    let refs = ReferenceLister::new(&view);
    let shower = Shower::new(dump, View::new(dump));
    let edges = Edges::new(dump);
    for object in some(graph.objects.len()).map(ObjectIndex) {
        sum.add(&shower.show(object));
        sum.add(&shower.meaning(object, 200, 20));
        sum.add(&shower.data(object, 0, 100).and_then(|data| data.text()));
        sum.add(&shower.contents(object, 0, 20));
        shower.elements(object, 0, 20).for_each(|part| sum.add(&part));
        shower.referrers(object, 0).take(ROWS).for_each(|referrer| sum.add(&referrer));
        for direction in [Direction::Outgoing, Direction::Incoming] {
            refs.rows(object, direction).take(ROWS).for_each(|row| sum.add(&row));
            sum.add(&refs.count(object, direction));
        }
        let found = paths(&edges, object, 2, Exclusions::all_but_strong());
        let is_reachable = graph.tree.reachable_position(object).is_some();
        sum.check(
            found.paths.is_empty() != is_reachable,
            "what is reachable has a path, and nothing else has",
        );
        found.paths.iter().for_each(|path| sum.add(&view.steps(path, 0..path.len())));
    }
}
