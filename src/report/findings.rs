//! What a finding about a dump means for the answers, and what to do about it: the words of `doctor`.

use crate::index::model::problem::ProblemKind;
use crate::query::dump::doctor::{RetainedSizes, Subject};

/// What a finding means for the answers.
pub const fn means(subject: Subject) -> &'static str {
    match subject {
        Subject::Problem(kind) => problem_means(kind),
        Subject::MissingObjects => {
            "the objects that refer to them are there; what only the missing ones held counts as unreachable"
        }
        Subject::MissingRoots => "what only those objects held counts as unreachable",
        Subject::BootClassesAssumed => {
            "reachable and retained sizes are right as far as all classes of the boot loader are held by the JVM, as they are in HotSpot"
        }
        Subject::SeveralHeapDumps => {
            "each is a heap of its own, made at another time; they are never mixed, and the last one is read unless another is asked for"
        }
        Subject::LinesNotUnderstood => "they are left out; everything else of the text is used",
        Subject::SeveralRuns => {
            "each is a recording of its own; the last one is read unless another is asked for"
        }
    }
}

const fn problem_means(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::CutSubRecord => "the last object of the file is not whole, and left out",
        ProblemKind::FileCut => {
            "everything before the cut is used; what stood behind it is missing from all counts and sizes"
        }
        ProblemKind::PackedCut => {
            "what could be unpacked is used; what is damaged reads as zeros or is missing from all counts and sizes"
        }
        ProblemKind::UnknownRecord | ProblemKind::BadRecord => {
            "what cannot be read is left out and reading goes on behind it; names, threads or traces that stood there are missing"
        }
        ProblemKind::UnknownSubRecord | ProblemKind::BadSubRecord => {
            "the bytes are left out and reading goes on at the next object that can be found, or at the next segment; objects and roots that stood there are missing"
        }
        ProblemKind::LostEnd => {
            "the length of the heap dump record is not right; objects are read as far as they can be found, records behind it may be missing"
        }
        ProblemKind::TextMode => {
            "bytes were changed all over the file: numbers in it are wrong, and nothing that is read can be believed"
        }
        ProblemKind::MorePlaces => "each such place is counted, and the first are listed",
        ProblemKind::NoEnd => {
            "what is there is used; objects and GC roots that would have followed are missing from all counts and sizes"
        }
        ProblemKind::NoHeapDump => "there are names and classes, and no objects",
        ProblemKind::LengthWrapped => {
            "nothing: it is how the JVM writes such records, and it was read in full"
        }
        ProblemKind::LengthOpen => {
            "the writer could not go back to fill in the length; if it was interrupted, the end of the heap is missing"
        }
        ProblemKind::EmptySegments => "nothing: there is nothing in them",
        ProblemKind::RepeatedObjects => {
            "an object counts once, as its last record says; a class object before all others"
        }
        ProblemKind::RepeatedClasses => "a class counts once, as its first record says",
        ProblemKind::MissingClasses => {
            "the objects are counted; their fields, what they refer to and their sizes are not known"
        }
        ProblemKind::UnnamedClasses => "they are shown by the ids of their class objects",
        ProblemKind::OddInstances => "fields are read as far as the bytes go; sizes are those of the class",
        ProblemKind::CutArrays => {
            "HotSpot writes no more of an array than fits its record: elements may be missing, and what they hold"
        }
        ProblemKind::ThreadsAssumed => {
            "what threads hold in their fields is reachable; what they hold on their stacks only is not"
        }
    }
}

/// What to do about a finding.
pub const fn advice(subject: Subject) -> &'static str {
    match subject {
        Subject::Problem(kind) => problem_advice(kind),
        Subject::MissingObjects => {
            "if the dump is damaged this is what was lost; if it is whole the JVM has left them out, and nothing can be done"
        }
        Subject::MissingRoots | Subject::BootClassesAssumed => "nothing",
        Subject::SeveralHeapDumps => "--heap-dump N reads another",
        Subject::LinesNotUnderstood => {
            "look at the line in the text: was it edited, wrapped, or written by two processes at once?"
        }
        Subject::SeveralRuns => "--run N reads another",
    }
}

const fn problem_advice(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::FileCut | ProblemKind::CutSubRecord | ProblemKind::NoEnd | ProblemKind::NoHeapDump => {
            "compare the length with the original's and copy it again; if that is cut too, the disk was full or the JVM was killed while it wrote: make the dump again where there is room (-XX:HeapDumpPath, or `jcmd PID GC.heap_dump -gz=1`, which writes a tenth to a third of the bytes)"
        }
        ProblemKind::PackedCut => "copy the compressed file again, or compress the dump again",
        ProblemKind::UnknownRecord
        | ProblemKind::BadRecord
        | ProblemKind::UnknownSubRecord
        | ProblemKind::BadSubRecord
        | ProblemKind::LostEnd
        | ProblemKind::MorePlaces => {
            "compare checksums with the original and copy the file again; if the original is the same, make the dump again"
        }
        ProblemKind::TextMode => {
            "copy the original again in binary mode (scp, rsync, FTP's `binary`), not through a mail or an editor"
        }
        ProblemKind::LengthOpen => "if figures look too small, make the dump again and let the JVM finish",
        ProblemKind::CutArrays => "nothing: no JVM dumps such arrays whole",
        ProblemKind::ThreadsAssumed => "as for the cut: with the whole dump the real roots are used",
        ProblemKind::MissingClasses | ProblemKind::OddInstances | ProblemKind::RepeatedObjects => {
            "if a program other than a JVM wrote the dump, tell its authors; a JVM's dump that says so is damaged: copy or make it again"
        }
        ProblemKind::LengthWrapped
        | ProblemKind::EmptySegments
        | ProblemKind::RepeatedClasses
        | ProblemKind::UnnamedClasses => "nothing",
    }
}

/// How far retained sizes can be believed, in words.
pub const fn retained(sizes: RetainedSizes) -> &'static str {
    match sizes {
        RetainedSizes::Exact => "exact: all that was dumped is there",
        RetainedSizes::LowerBounds => "lower bounds: elements of primitive arrays are missing",
        RetainedSizes::OfWhatIsThere => {
            "of what is there: lower bounds for what held lost objects, too high for what shared an object with a lost one"
        }
    }
}
