//! Any bytes as a dump.

use super::answers::{Sum, of_graph, of_summary};
use super::{Place, with_threads};
use hprof_index::model::problem::Severity;
use hprof_index::{Error, Heap, Quiet};
use hprof_parser::sniff::sniff;
use hprof_query::recover::{RecoverSource, Recovery};

/// Reads bytes as a dump, plain or compressed: whole, with its graph, with one thread and with two, and again from the
/// index. All say the same.
pub fn reader(bytes: &[u8]) {
    sniff(bytes);
    let place = Place::new(bytes);
    let first = with_threads(false, || summary(&place, "one"));
    let second = with_threads(true, || summary(&place, "two"));
    assert_eq!(first, second, "one thread and two read different summaries");
    let graph = with_threads(true, || whole(&place, "two"));
    let other = with_threads(false, || whole(&place, "one"));
    assert_eq!(graph, other, "one thread and two make different graphs");
    assert_eq!(first.is_some(), graph.is_some(), "opens with its graph or without it, not both");
    let again = with_threads(false, || whole(&place, "one"));
    assert_eq!(again, other, "another answer from the index");
    with_threads(true, || recovered(&place));
}

/// Recovers what is left of the bytes as a dump or as a segment: that is a dump without damage, and the files of a
/// dump can be given twice.
fn recovered(place: &Place) {
    let open = || RecoverSource::open(&place.file(), &place.index_dir("."), &Quiet);
    let Ok(source) = open() else { return };
    let sources = [source];
    let Ok(recovery) = Recovery::read(&sources, open().ok().as_ref(), &Quiet) else { return };
    let mut out = Vec::new();
    let written = recovery.write(&mut out, &Quiet).expect("memory takes bytes");
    assert_eq!(written, out.len() as u64);
    let saved = Place::new(&out);
    let heap = Heap::open(&saved.file(), &saved.options("index"), &Quiet).expect("it has a header");
    let damage = heap.summary().problems().into_iter().find(|problem| problem.severity == Severity::Damage);
    assert!(damage.is_none(), "a recovered dump is damaged: {damage:?}");
}

fn check(error: &Error) {
    assert!(!error.to_string().is_empty());
}

/// Computes all answers that need no graph.
fn summary(place: &Place, name: &str) -> Option<u64> {
    match Heap::open(&place.file(), &place.options(name), &Quiet) {
        Ok(heap) => {
            let mut sum = Sum::of_truth();
            of_summary(&heap, &mut sum);
            Some(sum.end())
        }
        Err(error) => {
            check(&error);
            None
        }
    }
}

/// Computes all answers about objects.
fn whole(place: &Place, name: &str) -> Option<u64> {
    match Heap::open_graph(&place.file(), &place.options(name), &Quiet) {
        Ok((heap, graph)) => {
            let mut sum = Sum::of_truth();
            of_graph(&heap, &graph, &mut sum);
            assert!(!graph.is_damaged(), "an index that is damaged right after it was built");
            Some(sum.end())
        }
        Err(error) => {
            check(&error);
            None
        }
    }
}
