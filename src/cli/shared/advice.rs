//! Advice about errors. Lower layers describe the problem; only this module names options, commands and other programs.

use std::borrow::Cow;
use std::io;

use hprof_index::Error;
use hprof_index::model::problem::ProblemKind;
use hprof_index::storage::memory::Limit;
use hprof_input::file::OpenError;
use hprof_input::packed::Compression;
use hprof_input::text_dump::TextDumpError;
use hprof_input::text_events::NoSuchRun;
use hprof_parser::FormatErrorKind;
use hprof_parser::sniff::FileKind;
use hprof_query::dump::doctor::Subject;
use hprof_query::oql::QueryError;
use hprof_query::recordings::profile::text::TextError;
#[cfg(feature = "sql")]
use hprof_query::sql::{ErrorKind, SqlError};

use super::not_recorded::NotRecorded;

/// Advice if there is too little memory to unpack a file.
const NO_MEMORY_TO_UNPACK: &str =
    "raise the limit of memory, for example: ulimit -v unlimited; or unpack it yourself";

/// Returns one line of advice about an error.
pub(crate) fn for_error(error: &anyhow::Error) -> Option<Cow<'static, str>> {
    if let Some(error) = error.downcast_ref::<Error>() {
        return of_dump(error).map(Cow::Borrowed);
    }
    if let Some(error) = error.downcast_ref::<NotRecorded>() {
        return Some(error.advice().unwrap_or_else(|| looks_advice(error.looks())).into());
    }
    #[cfg(target_os = "linux")]
    if let Some(error) = error.downcast_ref::<hprof_capture::Error>() {
        return super::jvm_advice::for_error(error).map(Cow::Owned);
    }
    #[cfg(feature = "sql")]
    if let Some(error) = error.downcast_ref::<SqlError>() {
        return match error.kind {
            ErrorKind::Time => Some(
                "raise the limit, for example with --time-limit 10min, or remove it with --time-limit 0"
                    .into(),
            ),
            ErrorKind::Memory => Some("raise the memory budget with --memory SIZE".into()),
            _ => None,
        };
    }
    if let Some(error) = error.downcast_ref::<QueryError>() {
        if error.is_memory {
            return Some("raise the memory budget with --memory SIZE".into());
        }
        return Some(match error.unknown_function? {
            "alloctrace" => "`hprof-cli sites` shows where objects were allocated".into(),
            _ => return None,
        });
    }
    let runs = match (error.downcast_ref(), error.downcast_ref()) {
        (Some(TextError::NoSuchRun(NoSuchRun { runs, .. })), _)
        | (_, Some(TextDumpError::NoSuchRun(NoSuchRun { runs, .. }))) => *runs,
        _ => return None,
    };
    (runs > 1).then(|| format!("select one with --run 1 to {runs}").into())
}

/// Returns the name of a memory limit: the option that sets it, or its name in the system.
pub(crate) const fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Given => "--memory",
        _ => limit.name(),
    }
}

/// Returns advice about a dump that cannot be opened or whose index cannot be built.
pub(crate) fn of_dump(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::Open(OpenError::Directory(_)) => "name the dump file in that directory",
        Error::Open(OpenError::NotAFile(_)) => {
            "save the dump to a file first: it is memory-mapped and read more than once"
        }
        Error::Open(OpenError::Io { error, .. }) => match error.kind() {
            io::ErrorKind::NotFound => "check the path",
            // Limit of address space: mapping a file takes as much as the length of the file.
            io::ErrorKind::OutOfMemory => {
                "the file is memory-mapped, which needs as much address space as the file is long: raise the limit, \
                 for example: ulimit -v unlimited"
            }
            io::ErrorKind::PermissionDenied => {
                "JVMs write dumps that only their own user may read: run as that user, or chmod the file"
            }
            _ => return None,
        },
        Error::Format { looks, error, .. } => match error.kind() {
            FormatErrorKind::Empty => "the JVM has not written it yet, or the disk was full: make a new dump",
            FormatErrorKind::HeaderCut | FormatErrorKind::IdSize(_) => {
                "the file is truncated or damaged at its start: copy it again or make a new dump"
            }
            _ => looks_advice(*looks),
        },
        Error::NotInside { error: Some(error), .. } if error.kind() == io::ErrorKind::Unsupported => {
            "unpack it with zstd -d --long=31, or compress it with a smaller window: zstd --long FILE"
        }
        Error::NotInside { error: Some(error), .. } if error.kind() == io::ErrorKind::OutOfMemory => {
            NO_MEMORY_TO_UNPACK
        }
        Error::Unpack { error, .. } if error.kind() == io::ErrorKind::OutOfMemory => NO_MEMORY_TO_UNPACK,
        Error::NotInside { looks: Some(looks), .. } => looks_advice(*looks),
        Error::NotInside { error: Some(_), .. } => {
            "the file is truncated or damaged at its start: copy it again or make a new dump"
        }
        Error::NotInside { .. } => "the file to compress was missing, or the disk was full: make a new dump",
        Error::NoSuchHeapDump { .. } => "omit --heap-dump to read the last one",
        Error::Changed(_) | Error::Growing(_) => {
            "wait until the JVM has finished writing the dump, then run this again"
        }
        Error::Unpack { .. } => {
            "name a directory with enough space with --index-dir DIR, or unpack it yourself"
        }
        Error::Spool { .. } => {
            "name a directory with enough space with --index-dir DIR, or save the dump to a file first"
        }
        Error::NoRoom { .. } => {
            "name a directory on a disk with more space with --index-dir DIR, or unpack it yourself"
        }
        Error::Members { members, compression: Compression::Zip, .. } if members.dump_count > 1 => {
            "extract one of them: unzip -p ARCHIVE NAME > FILE"
        }
        Error::Members { members, .. } if members.dump_count > 1 => {
            "extract one of them: tar -xOf ARCHIVE NAME > FILE"
        }
        Error::Members { compression: Compression::Zip, .. } => {
            "list its files: unzip -l ARCHIVE; extract one: unzip -p ARCHIVE NAME > FILE"
        }
        Error::Members { .. } => {
            "list its files: tar -tvf ARCHIVE; extract one: tar -xOf ARCHIVE NAME > FILE"
        }
        Error::WriteIndex { .. } if error.is_distrust() => {
            "name another directory with --index-dir, or change the owner or mode of this one"
        }
        Error::WriteIndex { error, .. } => match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                "free space there, or name another directory with --index-dir"
            }
            io::ErrorKind::OutOfMemory => {
                "free some memory, or raise the limits (ulimit -v, ulimit -d); `hprof-cli index --estimate` shows \
                 what it needs"
            }
            io::ErrorKind::TimedOut => "end that process, or name another directory with --index-dir",
            _ => "name a writable directory with --index-dir",
        },
        Error::RemoveIndex { error, .. } => match error.kind() {
            io::ErrorKind::TimedOut => "end that process, then run this again",
            _ => "run this as a user who may write there, or remove the directory yourself",
        },
        Error::NoMemory { error, .. } => match error.available.limit {
            Limit::Given => "raise --memory, or read with fewer threads: --threads 1",
            Limit::Data => "raise the limit, for example: ulimit -d unlimited; or try --threads 1",
            Limit::Addresses => {
                "raise the limit, for example: ulimit -v unlimited; memory-mapped files count towards it"
            }
            Limit::Free | Limit::Group => {
                "free some memory, use --threads 1, or set --memory SIZE if more is available"
            }
        },
        Error::NoDisk { .. } => "name a directory on a disk with more space with --index-dir DIR",
        Error::TooManyObjects { .. } => "histo and info can read it; commands that need an index cannot",
    })
}

/// Returns advice about a file that is not a heap dump, by its apparent kind.
const fn looks_advice(looks: FileKind) -> &'static str {
    match looks {
        FileKind::ClassHistogram => {
            "histo, diff and trend read class histograms; for all else, make a heap dump: jcmd PID GC.heap_dump FILE"
        }
        FileKind::HprofText => {
            "this is a text report: make a dump of it with `hprof-cli convert FILE -o FILE.hprof`"
        }
        FileKind::MangledHprof => "copy the dump again in binary mode",
        FileKind::Html => "download the dump again, and read this HTML page for the error of the server",
        FileKind::Elf => "make a heap dump of a core with: jhsdb jmap --binaryheap --core CORE --exe JAVA",
        FileKind::Phd => "hprof-cli reads only HPROF; Eclipse MAT with DTFJ reads PHD",
        FileKind::Jfr => {
            "this is a recording of Flight Recorder: cpu, sites, monitors, traces, threads --started, summary, flamegraph, \
             diff --group-by cpu and sites, and convert read it"
        }
        FileKind::Tar | FileKind::Zip | FileKind::Bzip2 | FileKind::Xz => {
            "unpack it first; gzip, Zstandard, and a tar or zip archive of one dump are read directly"
        }
        FileKind::Zeros => "the disk may have been full when the dump was written: make a new one",
        FileKind::Text => {
            "name a heap dump, which is binary, or a text report of the HPROF agent (java.hprof.txt)"
        }
        _ => "make one with: jcmd PID GC.heap_dump FILE",
    }
}

/// Returns advice about a finding.
pub(crate) const fn finding(subject: Subject) -> &'static str {
    match subject {
        Subject::Problem(kind) => problem_advice(kind),
        Subject::MissingObjects => {
            "if the dump is damaged, they were lost with other data; if it is complete, the JVM omitted them, and \
             they cannot be recovered"
        }
        Subject::MissingRoots | Subject::BootClassesAssumed | Subject::FlattenedObjects => "nothing",
        Subject::RootsLacking => {
            "if the process still runs, make a dump with `jcmd PID GC.heap_dump FILE`, which contains them"
        }
        Subject::ContentsMissing => {
            "for questions about texts, use the original of a redacted dump, or make one without a limit for arrays"
        }
        Subject::SeveralHeapDumps => "--heap-dump N reads another",
        Subject::LinesNotUnderstood => {
            "look at the line in the text: was it edited, wrapped, or written by two processes at once?"
        }
        Subject::SeveralRuns => "--run N reads another",
        Subject::EmptyFile | Subject::SegmentsMerged | Subject::Overlap => "nothing",
        Subject::SegmentsIncomplete => {
            "name all files of the dump; if some are lost and the program still runs somewhere, make a new dump"
        }
        Subject::ClassesByShape => {
            "--names OTHER.hprof takes the names of classes from another dump of the same program"
        }
    }
}

const fn problem_advice(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::FileCut | ProblemKind::CutSubRecord | ProblemKind::NoEnd | ProblemKind::NoHeapDump => {
            "compare the length with the original's and copy it again; if the original is truncated too, the disk was full or the JVM was killed while writing: make a new dump where there is enough space (-XX:HeapDumpPath, or `jcmd PID GC.heap_dump -gz=1`, which writes a tenth to a third of the bytes)"
        }
        ProblemKind::PackedCut => "copy the compressed file again, or compress the dump again",
        ProblemKind::UnknownRecord
        | ProblemKind::BadRecord
        | ProblemKind::UnknownSubRecord
        | ProblemKind::BadSubRecord
        | ProblemKind::LostEnd
        | ProblemKind::MorePlaces => {
            "compare checksums with the original and copy the file again; if the original is the same, make a new dump"
        }
        ProblemKind::TextMode => {
            "copy the original again in binary mode (scp, rsync, FTP's `binary`), not by mail or through an editor"
        }
        ProblemKind::UnsupportedRecord | ProblemKind::WrongLength => "nothing",
        ProblemKind::LengthOpen => {
            "if counts or sizes look too small, make a new dump and let the JVM finish"
        }
        ProblemKind::CutArrays => "nothing: no JVM dumps such arrays in full",
        ProblemKind::ThreadsAssumed => {
            "copy the file again or make a new dump: a complete dump names its threads"
        }
        ProblemKind::MissingClasses | ProblemKind::OddInstances | ProblemKind::RepeatedObjects => {
            "if a program other than a JVM wrote the dump, report it to its authors; a JVM's dump with this finding is damaged: copy it again or make a new one"
        }
        ProblemKind::LengthWrapped
        | ProblemKind::EmptySegments
        | ProblemKind::RepeatedClasses
        | ProblemKind::UnnamedClasses => "nothing",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_lower_layers_become_advice() {
        let query = "SELECT allocTrace(s) FROM a s".parse::<hprof_query::oql::Query>();
        let errors = [
            (query.map(|_| ()).unwrap_err().into(), Some("hprof-cli sites")),
            (TextError::NoSuchRun(NoSuchRun { asked: 9, runs: 3 }).into(), Some("--run 1 to 3")),
            (TextError::NoSuchRun(NoSuchRun { asked: 9, runs: 1 }).into(), None),
            (TextDumpError::NoSuchRun(NoSuchRun { asked: 9, runs: 3 }).into(), Some("--run 1 to 3")),
            (Error::Changed("a".into()).into(), Some("run this again")),
            (anyhow::anyhow!("else"), None),
        ];
        for (error, expected) in errors {
            let error: anyhow::Error = error;
            let found = for_error(&error.context("in context"));
            assert!(found.is_some() == expected.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }
}
