//! Any bytes as a text report (`java.hprof.txt`).

use super::Place;
use super::answers::Sum;
use hprof_input::file::TextFile;
use hprof_parser::text::{TextEvent, TextReader};
use hprof_query::recordings::profile::text::{TextReport, read, resolve_loaders, show};
use hprof_query::recordings::stacks;
use hprof_query::recordings::text_histogram::histogram;
use hprof_report::stacks::folded;

/// Number of runs of a file that are read one by one.
const RUNS: u32 = 4;

/// Reads bytes as lines of a text report; and, if they look like one, as a file: its profile, histogram and objects.
pub fn text(bytes: &[u8]) {
    lines(bytes);
    let place = Place::new(bytes);
    let path = place.file();
    let Ok(Some((file, report))) = read(&path, None) else { return };
    let runs = report.runs;
    let last = ask(&file, report);
    for run in 1..=runs.min(RUNS) {
        let Ok(Some((file, report))) = read(&path, Some(run)) else {
            panic!("run {run} of {runs} is not there");
        };
        let sum = ask(&file, report);
        assert!(run < runs || sum == last, "the last run is what is read if none is asked for");
    }
    assert!(read(&path, Some(runs.saturating_add(1))).is_err() && read(&path, Some(0)).is_err());
}

/// Events and their line numbers.
fn lines(bytes: &[u8]) {
    let most = bytes.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    let mut input = bytes;
    let mut reader = TextReader::new(&mut input);
    let mut last = 0;
    while let Ok(Some((line, event))) = reader.next_event() {
        // The end of a file can be an event of its own.
        assert!(line >= last && line <= most + 1, "line {line} behind {last} of {most}");
        last = line;
        if let TextEvent::Malformed { expected, .. } = event {
            assert!(!expected.is_empty());
        }
    }
}

/// All that is said of a run.
fn ask(file: &TextFile, mut report: TextReport) -> u64 {
    let mut sum = Sum::of_truth();
    let found = resolve_loaders(file, &mut report);
    assert!(found.is_ok(), "the file was read a moment ago");
    assert!(report.malformed.len() as u64 <= report.not_understood);
    sum.add(&(&report.profile, &report.heap, report.run));
    for of in stacks::available_weights(&report.profile) {
        if let Ok(stacks) = stacks::stacks(&report.profile, &stacks::StackQuery::new(of)) {
            folded::write(&mut sum, &stacks).expect("a hash takes everything");
        }
    }
    let Some(heap) = &report.heap else { return sum.end() };
    sum.add(&histogram(heap, &Default::default()));
    let objects = heap
        .classes
        .iter()
        .filter_map(|class| class.class_object)
        .chain([0, 0x5000_1f93].map(hprof_values::ObjectId));
    for object in objects.take(4) {
        let question = show::TextObjectQuery { object, elements: 0..20, incoming: true };
        let answer = show::show(file, report.run, &question);
        assert!(answer.is_ok(), "the file was read a moment ago");
        sum.add(&answer.ok());
    }
    sum.end()
}
