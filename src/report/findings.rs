//! Texts about a dump's findings, as shown by `doctor`.

use std::borrow::Cow;

use hprof_index::model::problem::ProblemKind;
use hprof_query::dump::doctor::{Finding, RetainedSizes, Subject};

/// Returns a sentence about the consequence of a finding.
pub fn finding_consequence(finding: &Finding) -> Cow<'static, str> {
    match finding.read_until {
        Some(offset) => {
            format!("everything before offset {offset:#x} was read; everything after it is missing").into()
        }
        None => subject_means(finding.subject).into(),
    }
}

const fn subject_means(subject: Subject) -> &'static str {
    match subject {
        Subject::Problem(kind) => problem_means(kind),
        Subject::MissingObjects => {
            "the referrers are in the dump; objects that only the missing ones referred to count as unreachable"
        }
        Subject::MissingRoots => "objects that only those referred to count as unreachable",
        Subject::BootClassesAssumed => {
            "reachable and retained sizes are right if the JVM keeps all classes of the boot loader, as HotSpot does"
        }
        Subject::SeveralHeapDumps => {
            "each is a separate heap, dumped at another time; they are never mixed, and the last one is read by default"
        }
        Subject::LinesNotUnderstood => "they are skipped; the rest of the text is read",
        Subject::SeveralRuns => "each is a separate recording; the last one is read by default",
        Subject::EmptyFile => "what the JVM had not written yet is missing",
        Subject::SegmentsIncomplete => {
            "all complete records of the files are saved; objects in other segments, objects that the JVM had not written yet, and the names and stack traces that it writes last, may be missing"
        }
        Subject::SegmentsMerged => {
            "nothing is missing if these are all of its segments: the JVM merges them after it has written all of them"
        }
        Subject::Overlap => "it is saved once",
        Subject::ClassesByShape => {
            "their objects and fields are saved; commands that look for well-known classes, such as `strings` and `threads`, do not find them"
        }
    }
}

const fn problem_means(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::CutSubRecord => "the last object of the file is incomplete and was skipped",
        ProblemKind::FileCut => "everything after the end of the file is missing",
        ProblemKind::PackedCut => {
            "what could be unpacked is read; damaged regions read as zeros or are missing from all counts and sizes"
        }
        ProblemKind::UnknownRecord | ProblemKind::BadRecord => {
            "damaged regions are skipped and reading continues after them; names, threads or traces in them are missing"
        }
        ProblemKind::UnknownSubRecord | ProblemKind::BadSubRecord => {
            "damaged regions are skipped and reading continues at the next object that can be found, or at the next segment; objects and roots in them are missing"
        }
        ProblemKind::LostEnd => {
            "the length of the heap dump record is wrong; objects are read as far as they can be found, and records after it may be missing"
        }
        ProblemKind::TextMode => {
            "bytes were changed throughout the file: numbers in it are wrong, and no answer can be trusted"
        }
        ProblemKind::MorePlaces => "all damaged regions are counted; only the first are listed",
        ProblemKind::NoEnd => {
            "everything in the file was read; objects and GC roots that would have followed are missing from all counts and sizes"
        }
        ProblemKind::NoHeapDump => "the file contains names and classes, but no objects",
        ProblemKind::LengthWrapped => {
            "nothing: the JVM writes such records this way, and it was read in full"
        }
        ProblemKind::LengthOpen => {
            "the writer did not fill in the length; if it was interrupted, the end of the heap is missing"
        }
        ProblemKind::EmptySegments => "nothing: they contain no data",
        ProblemKind::RepeatedObjects => {
            "each object counts once: its last record is read, and a class object takes precedence over other objects"
        }
        ProblemKind::RepeatedClasses => "each class counts once: its first record is read",
        ProblemKind::MissingClasses => {
            "the objects are counted; their fields, references and sizes are unknown"
        }
        ProblemKind::UnnamedClasses => "they are shown by the IDs of their class objects",
        ProblemKind::OddInstances => "fields are read as far as the bytes go; sizes are those of the class",
        ProblemKind::CutArrays => {
            "HotSpot truncates arrays that do not fit into a record: elements, and what they refer to, may be missing"
        }
        ProblemKind::ThreadsAssumed => {
            "objects that fields of threads refer to are reachable; objects that only their stacks refer to are not"
        }
    }
}

/// Returns a phrase that says how accurate retained sizes are.
pub const fn retained_accuracy(sizes: RetainedSizes) -> &'static str {
    match sizes {
        RetainedSizes::Exact => "exact: everything that was dumped was read",
        RetainedSizes::LowerBounds => "lower bounds: elements of primitive arrays are missing",
        RetainedSizes::OfWhatIsThere => {
            "lower bounds for objects that retained a missing one; too large for objects that shared one with a missing one"
        }
    }
}
