//! Recovery of a dump: all whole records of what is left of it, in one well-formed file.
//!
//! JDK 22 and later write the objects into segment files, FILE.p0 and so on, and the header and the names into
//! FILE; then they append each segment to FILE and remove it. A JVM that is killed leaves FILE without the names
//! that it had not flushed, and segments that end anywhere; or, while it merges, FILE with the start of a segment
//! that is still there. Older JVMs write one file, which ends anywhere.
//!
//! * `source` opens the files and finds what they have in common.
//! * `shapes` reads the classes; `names` and `arrays` name those that no record names.
//! * `write` writes the dump.

mod arrays;
mod names;
mod shapes;
mod source;
mod write;

use std::path::PathBuf;

use hprof_index::model::problem::{Account, Problem, ProblemKind, Severity};
use hprof_index::remains::{self, ClassPreview, DumpPart, HeapRemains, SubRecordCounts};
use hprof_index::storage::id_map::IdSet;
use hprof_index::storage::memory::NoMemory;
use hprof_index::{Error, Progress};
use hprof_parser::{Header, ObjectId};

use super::doctor::{self, Extent, Finding, RetainedSizes, Subject};
use names::NewNames;
use shapes::{ClassShape, DumpClasses};
use source::SourceKind;

pub use source::{RecoverSource, segments_beside};

/// Error of recovering a dump.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// A file cannot be read.
    #[error(transparent)]
    Dump(#[from] Error),
    /// Two files have a header: they are two dumps.
    #[error("{} and {} are two dumps: each has a header", .0.display(), .1.display())]
    TwoDumps(PathBuf, PathBuf),
    /// A segment belongs to another dump.
    #[error("{} is complete: {} is a segment of another dump", .0.display(), .1.display())]
    NotAPart(PathBuf, PathBuf),
}

/// A finding, and the file that it is about; `None` if it is about all files together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoverFinding {
    /// File.
    pub file: Option<PathBuf>,
    /// Finding.
    pub finding: Finding,
}

/// Contents of the recovered dump, and what is missing.
#[derive(Debug, Clone)]
pub struct RecoverReport {
    /// Findings, in the order of the files; the last ones are about all files together.
    pub findings: Vec<RecoverFinding>,
    /// Amounts read of all files together.
    pub extent: Extent,
    /// Counts of saved sub-records.
    pub saved: SubRecordCounts,
    /// Number of classes whose names are lost: they are named by their fields.
    pub unnamed_classes: u64,
    /// Number of classes that are named by another dump.
    pub classes_named: u64,
}

impl RecoverReport {
    /// Returns `true` if part of the dump is missing.
    pub fn is_damaged(&self) -> bool {
        self.findings.iter().any(|found| found.finding.severity == Severity::Damage)
    }
}

/// A dump to be written.
#[derive(Debug)]
pub struct Recovery<'s> {
    sources: Vec<&'s RecoverSource>,
    parts: Vec<DumpPart<'s>>,
    heaps: Vec<HeapRemains>,
    header: Header,
    names: NewNames,
    /// Threads that are written as roots because the files contain none.
    threads: Vec<ObjectId>,
    report: RecoverReport,
}

/// Number of bytes between two flushes of the file to which HotSpot writes names, except the last.
const FLUSHED_BYTES: usize = 1 << 20;
/// Maximum number of threads that are written as roots.
const MAX_THREADS: usize = 1 << 20;

/// The files of one dump, in order, without what one has in common with another.
struct Parts<'s> {
    sources: Vec<&'s RecoverSource>,
    parts: Vec<DumpPart<'s>>,
    header: Header,
    has_header: bool,
    /// `true` if a file is a segment, also if another file contains it.
    has_segments: bool,
    findings: Vec<RecoverFinding>,
    /// `true` if a segment was found in another file too.
    is_merging: bool,
}

impl<'s> Recovery<'s> {
    /// Reads the files of a dump; `other` is another dump of the same program, for names.
    ///
    /// # Errors
    /// [`RecoverError`].
    pub fn read(
        sources: &'s [RecoverSource],
        other: Option<&RecoverSource>,
        progress: &dyn Progress,
    ) -> Result<Self, RecoverError> {
        let Parts { sources, parts, header, has_header, has_segments, mut findings, is_merging } =
            Parts::of(sources)?;
        let total = sources.iter().map(|source| source.bytes().len() as u64).sum();
        progress.begin("reading the files", total);
        let heaps = read_heaps(&sources, &parts, progress);
        progress.end();
        let ours = DumpClasses::of(&parts, &heaps);
        let names = match other {
            None => names::new_names(&ours, None),
            Some(other) => {
                let Parts { sources, parts, .. } = Parts::of(std::slice::from_ref(other))?;
                progress.begin("reading names", other.bytes().len() as u64);
                let heaps = read_heaps(&sources, &parts, progress);
                progress.end();
                names::new_names(&ours, Some(&DumpClasses::of(&parts, &heaps)))
            }
        };
        for (number, (part, heap)) in parts.iter().zip(&heaps).enumerate() {
            let Some(source) = sources.get(number) else { continue };
            let problems = source.packed_error().map(Problem::of_packed).into_iter();
            // A segment has no end record, and a dump whose segments were not merged neither.
            let is_normal =
                |kind| has_segments && matches!(kind, ProblemKind::NoEnd | ProblemKind::NoHeapDump);
            let of_part = part.problems().iter().filter(|problem| !is_normal(problem.kind));
            let problems = problems.chain(of_part.chain(&heap.problems).cloned());
            let found = doctor::findings_of(problems, part.bytes().len() as u64);
            let file = Some(source.path().to_owned());
            findings.extend(found.into_iter().map(|finding| RecoverFinding { file: file.clone(), finding }));
        }
        let mut all = |severity, subject, text| {
            let finding = Finding::new(severity, subject, text);
            findings.push(RecoverFinding { file: None, finding });
        };
        let mut saved = SubRecordCounts::default();
        heaps.iter().for_each(|heap| saved.add(&heap.counts));
        let mut is_incomplete = !has_header;
        if has_segments {
            let head = parts.first().filter(|_| has_header);
            match head.map(|head| is_merging || is_flushed(head)) {
                Some(true) => {
                    let text = "the JVM was killed while it merged the segments".to_owned();
                    all(Severity::Note, Subject::SegmentsMerged, text);
                }
                state => {
                    is_incomplete = true;
                    let text = match state {
                        Some(_) => "the JVM was killed before it had written all segments",
                        None => "no file has the header of the dump, which is in the file with its names",
                    };
                    all(Severity::Damage, Subject::SegmentsIncomplete, text.to_owned());
                }
            }
        }
        if names.by_shape > 0 {
            let text = format!(
                "{} classes have no name in the files; each is named unnamed.ClassN with its fields",
                names.by_shape
            );
            all(Severity::Damage, Subject::ClassesByShape, text);
        }
        let ours = ours.shapes;
        let account = account(&parts, &heaps, &ours, has_segments, is_incomplete || names.by_shape > 0);
        let threads = threads(&parts, &heaps, &ours, &names, &saved, account.heap_damaged);
        if !threads.is_empty() {
            let text = format!(
                "part of the dump is missing and it lists no threads; treating its {} Thread objects as roots",
                threads.len()
            );
            all(Severity::Note, Subject::Problem(ProblemKind::ThreadsAssumed), text);
        }
        let extent = Extent { account, missing: None, retained: RetainedSizes::of(&account) };
        let (unnamed_classes, classes_named) = (names.by_shape, names.by_other);
        let report = RecoverReport { findings, extent, saved, unnamed_classes, classes_named };
        Ok(Self { sources, parts, heaps, header, names, threads, report })
    }

    /// Returns what was saved and what is missing.
    pub fn report(&self) -> &RecoverReport {
        &self.report
    }
}

/// Reads the heap dumps of all parts.
fn read_heaps(
    sources: &[&RecoverSource],
    parts: &[DumpPart<'_>],
    progress: &dyn Progress,
) -> Vec<HeapRemains> {
    let Some(preview) = ClassPreview::read(parts) else { return Vec::new() };
    let read = |(part, source): (&DumpPart<'_>, &&RecoverSource)| {
        let heap = remains::read_heap(part, &preview, progress);
        source.give_back(0..part.bytes().len());
        heap
    };
    parts.iter().zip(sources).map(read).collect()
}

/// Returns `true` if the JVM has flushed all names, which it does when all segments are written.
fn is_flushed(head: &DumpPart<'_>) -> bool {
    let is_whole = head.problems().iter().all(|problem| {
        problem.severity == Severity::Note
            || matches!(problem.kind, ProblemKind::NoEnd | ProblemKind::NoHeapDump)
    });
    is_whole && head.has_traces() && !head.bytes().len().is_multiple_of(FLUSHED_BYTES)
}

impl<'s> Parts<'s> {
    fn of(all: &'s [RecoverSource]) -> Result<Self, RecoverError> {
        let (mut findings, mut segments) = (Vec::new(), Vec::new());
        let mut head: Option<(&RecoverSource, Header)> = None;
        for source in all {
            match source.kind()? {
                SourceKind::Dump(_) if let Some((other, _)) = head => {
                    return Err(RecoverError::TwoDumps(other.path().to_owned(), source.path().to_owned()));
                }
                SourceKind::Dump(header) => head = Some((source, header)),
                SourceKind::Segment => segments.push(source),
                SourceKind::Empty => {
                    let finding =
                        Finding::new(Severity::Damage, Subject::EmptyFile, "the file is empty".into());
                    findings.push(RecoverFinding { file: Some(source.path().to_owned()), finding });
                }
            }
        }
        segments.sort_by_key(|source| source.segment_number());
        let first = segments.first().map_or(&[][..], |source| source.bytes());
        let header = head.map_or_else(|| source::missing_header(first), |(_, header)| header);
        let mut parts = Self {
            sources: Vec::new(),
            parts: Vec::new(),
            header,
            has_header: head.is_some(),
            has_segments: !segments.is_empty(),
            findings,
            is_merging: false,
        };
        if let Some((source, header)) = head {
            let part = DumpPart::read(source.bytes(), header).map_err(no_memory(source))?;
            parts.is_merging = part.has_heap_dump();
            parts.sources.push(source);
            parts.parts.push(part);
        }
        for source in segments {
            parts.add(source)?;
        }
        Ok(parts)
    }

    /// Adds a segment, unless it is in another file. What another file has of its start is left to it.
    fn add(&mut self, source: &'s RecoverSource) -> Result<(), RecoverError> {
        let bytes = source.bytes();
        let mut is_new = true;
        for number in 0..self.parts.len() {
            let (Some(part), Some(of)) = (self.parts.get(number), self.sources.get(number)) else { continue };
            let Some(offset) = source::overlap(part.bytes(), part.heap_records(), bytes) else { continue };
            let common = (part.bytes().len() - offset).min(bytes.len());
            let text = format!(
                "{common} bytes from offset {offset:#x} are also the start of {}",
                source.path().display()
            );
            let finding = Finding::new(Severity::Note, Subject::Overlap, text);
            self.findings.push(RecoverFinding { file: Some(of.path().to_owned()), finding });
            if common == bytes.len() {
                is_new = false;
                continue;
            }
            let before = part.bytes().get(..offset).unwrap_or_default();
            let shorter = DumpPart::read(before, *part.header()).map_err(no_memory(of))?;
            if let Some(part) = self.parts.get_mut(number) {
                *part = shorter;
            }
        }
        // The end is written after all segments are merged.
        let is_complete = self.has_header && self.parts.first().is_some_and(DumpPart::has_end);
        if let Some(head) = self.sources.first().filter(|_| is_new && is_complete) {
            return Err(RecoverError::NotAPart(head.path().to_owned(), source.path().to_owned()));
        }
        if is_new {
            let header = Header { len: 0, ..self.header };
            self.parts.push(DumpPart::read(bytes, header).map_err(no_memory(source))?);
            self.sources.push(source);
        }
        Ok(())
    }
}

fn no_memory(source: &RecoverSource) -> impl Fn(NoMemory) -> RecoverError {
    let path = source.path().to_owned();
    move |error| Error::NoMemory { path: path.clone(), error }.into()
}

/// Adds up what was read of all parts.
fn account(
    parts: &[DumpPart<'_>],
    heaps: &[HeapRemains],
    classes: &[ClassShape<'_>],
    has_segments: bool,
    is_incomplete: bool,
) -> Account {
    let mut account = Account { expected_bytes: Some(0), ..Account::default() };
    for (part, heap) in parts.iter().zip(heaps) {
        let len = part.bytes().len() as u64;
        account.file_bytes += len;
        // The end of a segment says nothing about its length.
        let is_known = has_segments
            && !part.has_end()
            && part.problems().iter().all(|one| one.kind != ProblemKind::FileCut);
        let expected = if is_known { Some(len) } else { part.expected_bytes() };
        account.expected_bytes = account.expected_bytes.zip(expected).map(|(sum, expected)| sum + expected);
        account.skipped_bytes += part.skipped_bytes() + heap.skipped_bytes;
        account.lost_records += part.lost_records();
        account.lost_places += heap.damaged_regions;
        account.empty_segments += part.empty_segments();
        account.odd_instances += heap.odd_instances;
        account.heap_damaged |= heap.damaged_regions > 0 || (!has_segments && part.is_heap_damaged());
    }
    let dumped: IdSet<ObjectId> = classes.iter().map(|class| class.id).collect();
    let mut undumped: IdSet<ObjectId> = IdSet::default();
    for (class, count) in heaps.iter().flat_map(|heap| &heap.of_unknown_classes) {
        if !dumped.contains(class) {
            undumped.insert(*class);
            account.objects_without_class += count;
        }
    }
    account.undumped_classes = undumped.len() as u64;
    account.heap_damaged |= is_incomplete;
    if is_incomplete {
        account.expected_bytes = None;
    }
    account
}

/// Returns the objects that are written as roots: those of `java.lang.Thread` and its subclasses, if part of the
/// dump is missing and it contains no thread. HotSpot wrote threads last before JDK 22.
fn threads(
    parts: &[DumpPart<'_>],
    heaps: &[HeapRemains],
    classes: &[ClassShape<'_>],
    names: &NewNames,
    saved: &SubRecordCounts,
    is_damaged: bool,
) -> Vec<ObjectId> {
    const THREAD: &[u8] = b"java/lang/Thread";
    if saved.thread_roots > 0 || !is_damaged {
        return Vec::new();
    }
    let new = names.classes.iter().filter(|(_, name)| name == THREAD).map(|(id, _)| *id);
    let there = classes.iter().filter(|class| class.name == Some(THREAD)).map(|class| class.id);
    let mut threads: IdSet<ObjectId> = there.chain(new).collect();
    // Each round finds the subclasses of those found; a chain of classes can be long, but not one of threads.
    for _ in 0..MAX_THREAD_CLASSES {
        let below = classes.iter().filter(|class| threads.contains(&class.super_id)).map(|class| class.id);
        let below: Vec<ObjectId> = below.filter(|class| !threads.contains(class)).collect();
        if below.is_empty() {
            break;
        }
        threads.extend(below);
    }
    if threads.is_empty() {
        return Vec::new();
    }
    let of_parts = parts.iter().zip(heaps);
    let found =
        of_parts.flat_map(|(part, heap)| remains::instances_of(part, &heap.segments, &threads, MAX_THREADS));
    let mut seen: IdSet<ObjectId> = IdSet::default();
    found.filter(|id| seen.insert(*id)).take(MAX_THREADS).collect()
}

/// Maximum number of classes above one another below `java.lang.Thread`.
const MAX_THREAD_CLASSES: usize = 64;
