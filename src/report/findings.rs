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
            "the objects that refer to them are in the dump; objects reachable only through the missing \
             ones count as unreachable"
        }
        Subject::MissingRoots => "objects reachable only through the missing ones count as unreachable",
        Subject::BootClassesAssumed => {
            "reachable and retained sizes are correct if the JVM, like HotSpot, never unloads classes of \
             the boot loader"
        }
        Subject::RootsLacking => "objects that only these roots hold count as unreachable, and may be alive",
        Subject::ContentsMissing => {
            "texts and credentials are unknown beyond what is left; waste in contents is looked for only in arrays that \
             are complete"
        }
        Subject::FlattenedObjects => {
            "a flattened object has a size of 0 and one referrer; the JVM does not dump how it lays out the holders"
        }
        Subject::SeveralHeapDumps => {
            "each is a separate heap, dumped at a different time; only one is read, by default the last"
        }
        Subject::LinesNotUnderstood => "they are skipped; the rest of the text is read",
        Subject::SeveralRuns => "each is a separate recording; the last one is read by default",
        Subject::EmptyFile => "data that the JVM had not written yet is missing",
        Subject::SegmentsIncomplete => {
            "all complete records of the files are saved; objects in other segments, objects that the JVM \
             had not written yet, and the names and stack traces that it writes last may be missing"
        }
        Subject::SegmentsMerged => {
            "nothing is missing if these are all segments of the dump: the JVM merges them only after it \
             has written all of them"
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
            "all data that could be unpacked was read; damaged regions were replaced with zeros or are \
             missing from all counts and sizes"
        }
        ProblemKind::UnsupportedRecord => {
            "nothing of the heap dump is missing: the records are complete, but the specification does not define them"
        }
        ProblemKind::WrongLength => "nothing is missing: the record was read up to the next one",
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
            "bytes were changed throughout the file: numbers in it are wrong, and no result can be trusted"
        }
        ProblemKind::MorePlaces => "all damaged regions are counted; only the first are listed",
        ProblemKind::NoEnd => {
            "everything in the file was read; objects and GC roots that would have followed are missing from all counts and sizes"
        }
        ProblemKind::NoHeapDump => "the file contains names and classes, but no objects",
        ProblemKind::LengthWrapped => {
            "nothing: JVMs write records of more than 4 GiB this way, and the record was read in full"
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
        ProblemKind::UnnamedClasses => "the IDs of their class objects are shown instead of names",
        ProblemKind::OddInstances => {
            "fields are read as far as there are bytes for them; sizes are taken from the class"
        }
        ProblemKind::CutArrays => {
            "HotSpot truncates arrays that do not fit into a record: elements and the objects that they \
             refer to may be missing"
        }
        ProblemKind::ThreadsAssumed => {
            "objects that fields of threads refer to count as reachable; objects that only thread stacks \
             refer to do not"
        }
    }
}

/// Returns a phrase that says how accurate retained sizes are.
pub const fn retained_accuracy(sizes: RetainedSizes) -> &'static str {
    match sizes {
        RetainedSizes::Exact => "exact: everything that was dumped was read",
        RetainedSizes::LowerBounds => "lower bounds: elements of primitive arrays are missing",
        RetainedSizes::OfStatedRoots => "lower bounds: kinds of GC roots are missing",
        RetainedSizes::OfWhatIsThere => {
            "lower bounds for objects that retained missing objects; too large for objects that shared \
             other objects with missing ones"
        }
    }
}
