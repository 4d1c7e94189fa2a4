//! Comparison of the results of analyses, object by object.

use std::collections::BTreeMap;
use std::io;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::layout::sizes::Sizes;

use super::super::{ClassRenames, Plan, RedactOptions};
use super::{ProofAnalyses, ProofRow, SHARED_ARRAYS, has_shared_arrays, pairs};
use hprof_index::Dump;
use hprof_model::histogram::{HistogramQuery, HistogramRow, histogram};
use hprof_model::objects::collections::Collections;
use hprof_model::threads::frames::Frame;
use hprof_model::threads::{ThreadQuery, ThreadRow, Threads};

/// Kinds of waste that are based on equal contents, in addition to duplicate Strings.
const OF_EQUALITY: [&str; 2] = ["duplicate_arrays", "constant_fields"];

/// Compares all analyses.
pub(super) fn compare(
    plan: &Plan,
    options: &RedactOptions,
    analyses: &dyn ProofAnalyses,
    a: &Dump<'_>,
    b: &Dump<'_>,
) -> io::Result<Vec<ProofRow>> {
    // Names of classes of the dump are compared by their new names.
    let (old, new) = (ComparedNames(Some(plan.renames())), ComparedNames(None));
    let mut rows = vec![ProofRow::new("histogram", differences(&classes(a, old), &classes(b, new)))];
    let of_objects = objects(a, b);
    let names =
        ["objects", "references", "reachable_objects", "dominators", "retained_sizes", "collection_sizes"];
    rows.extend(names.iter().zip(of_objects).map(|(what, count)| ProofRow::new(what, count)));
    rows.push(ProofRow::new("gc_roots", differences(&roots(a), &roots(b))));
    let of_threads = |dump, names| threads(dump, names, options.strict_numbers);
    rows.push(ProofRow::new("threads", differences(&of_threads(a, old), &of_threads(b, new))));
    let suspects = |dump, names: ComparedNames<'_>| analyses.suspects(dump, &|name| names.class(name));
    let found = differences(&suspects(a, old)?, &suspects(b, new)?);
    rows.push(ProofRow::new("leak_suspects", found));
    let (one, two) = (analyses.waste(a)?, analyses.waste(b)?);
    let mut waste = ProofRow::new("waste", differences(&one, &two));
    let (is_broken, is_shared) = (options.break_equality, has_shared_arrays(a));
    if waste.differences > 0 && (is_broken || is_shared || options.zero || options.strict_numbers) {
        let is_other = |row: &&String| {
            let kind = row.split(' ').next().unwrap_or_default();
            let is_of_strings = (is_broken || is_shared) && kind == "duplicate_strings";
            let is_of_zeros = (options.zero || options.strict_numbers) && kind == "constant_fields";
            !(is_of_strings || is_of_zeros || is_broken && OF_EQUALITY.contains(&kind))
        };
        let others = |rows: &[String]| rows.iter().filter(is_other).cloned().collect::<Vec<_>>();
        let others = differences(&others(&one), &others(&two));
        waste.allowed = waste.differences - others;
        waste.differences = others;
        waste.reason = Some(match (is_broken, options.zero, options.strict_numbers) {
            (true, ..) => "equal contents become different, as requested",
            (false, true, _) => "all numbers of a field become 0, as requested",
            (false, false, true) => "all booleans of a field become false, as requested",
            (false, false, false) => SHARED_ARRAYS,
        });
    }
    rows.push(waste);
    Ok(rows)
}

/// Renamed classes by whose new names the results are compared; `None` for the redacted dump.
#[derive(Clone, Copy)]
struct ComparedNames<'p>(Option<&'p ClassRenames>);

impl ComparedNames<'_> {
    fn class(self, name: &str) -> String {
        self.0.and_then(|renames| renames.class(name)).unwrap_or_else(|| name.to_owned())
    }

    fn frame(self, frame: &mut Frame) {
        let Some(renames) = self.0 else { return };
        // A symbol may be the name of a method and of a source file.
        let text = |text: &str| renames.source(text).or_else(|| renames.member(text));
        let replace = |old: &mut Option<_>, new: Option<String>| {
            if let Some(new) = new {
                *old = Some(new.into());
            }
        };
        let class = frame.class.as_deref().and_then(|name| renames.class(name));
        replace(&mut frame.class, class);
        for part in [&mut frame.method, &mut frame.source] {
            let new = part.as_deref().and_then(text);
            replace(part, new);
        }
    }
}

/// Returns the number of entries that are in only one of two lists.
fn differences<T: Ord>(a: &[T], b: &[T]) -> u64 {
    let mut counts: BTreeMap<&T, i64> = BTreeMap::new();
    a.iter().for_each(|one| *counts.entry(one).or_default() += 1);
    b.iter().for_each(|one| *counts.entry(one).or_default() -= 1);
    counts.values().map(|count| count.unsigned_abs()).sum()
}

fn classes(dump: &Dump<'_>, names: ComparedNames<'_>) -> Vec<String> {
    let summary = dump.summary;
    let sizes = Sizes::new(summary, None);
    let rows = histogram(summary, &sizes, &HistogramQuery::default()).rows;
    let row = |row: &HistogramRow| {
        let loader = row.loader.as_ref().map(|loader| loader.id);
        let name = names.class(&row.name);
        format!("{name:?} {loader:?} {:?} {} {}", row.class_object, row.instances, row.shallow_bytes)
    };
    rows.iter().map(row).collect()
}

/// Returns the number of objects that differ in each property: ID or class, references, reachability, dominator, retained size,
/// size of the collection.
fn objects(a: &Dump<'_>, b: &Dump<'_>) -> [u64; 6] {
    let (count, other) = (a.graph.objects.len(), b.graph.objects.len());
    let (readers, collections);
    readers = pairs::readers(a, b);
    collections = readers.each_ref().map(Collections::new);
    let [one, two] = &collections;
    let counts = pairs::by_chunk(&readers, |objects| {
        let mut counts = [0; 6];
        for object in objects.map(ObjectIndex) {
            let of = |dump: &Dump<'_>, collections: &Collections<'_, '_>| {
                let tree = &dump.graph.tree;
                let position = tree.reachable_position(object);
                let class = dump.graph.objects.class(object).and_then(|class| dump.summary.class(class));
                let dominator = position.and_then(|position| tree.dominator(position));
                let collection = collections.collection(object);
                (
                    (dump.graph.objects.addresses.id_of(object), class.map(|class| class.id)),
                    position.is_some(),
                    dominator.and_then(|dominator| tree.object_at(dominator)),
                    tree.retained_bytes_of(object),
                    collection.map(|one| (one.kind, one.size, collections.count(&one))),
                )
            };
            let (x, y) = (of(a, one), of(b, two));
            let references = a.graph.references(object).eq(b.graph.references(object));
            let equal = [x.0 == y.0, references, x.1 == y.1, x.2 == y.2, x.3 == y.3, x.4 == y.4];
            counts.iter_mut().zip(equal).for_each(|(count, equal)| *count += u64::from(!equal));
        }
        counts
    });
    let mut sums = [u64::from(count.abs_diff(other)); 6];
    counts.iter().flat_map(|counts| counts.iter().enumerate()).for_each(|(at, count)| {
        if let Some(sum) = sums.get_mut(at) {
            *sum += count;
        }
    });
    sums
}

fn roots(dump: &Dump<'_>) -> Vec<String> {
    dump.summary.roots().iter().map(|root| format!("{root:?}")).collect()
}

/// Returns the threads with states and stacks, without names. If `is_strict`, numbers that only make results more precise are
/// omitted, since they are mapped.
fn threads(dump: &Dump<'_>, names: ComparedNames<'_>, is_strict: bool) -> Vec<String> {
    let threads = Threads::new(dump);
    let report = threads.find(&ThreadQuery::default());
    let row = |row: &ThreadRow| {
        let mut thread = threads.thread(row);
        (thread.name, thread.group) = (None, None);
        if is_strict {
            (thread.thread_id, thread.priority, thread.native_address) = (None, None, None);
        }
        let frames = thread.frames.iter_mut();
        let locals = frames.flat_map(|frame| {
            // `--lines` removes line numbers.
            frame.frame.line = 0;
            names.frame(&mut frame.frame);
            &mut frame.locals
        });
        locals.chain(&mut thread.locals).for_each(|local| local.label = None);
        format!("{thread:?}")
    };
    report.rows.iter().map(row).collect()
}
