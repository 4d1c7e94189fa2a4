//! Recovery of a dump: all complete remaining records, in one well-formed file.
//!
//! JDK 22 and later write the objects into segment files, FILE.p0 and so on, and the header and the names into FILE; then they
//! append each segment to FILE and remove it. A JVM that is killed leaves FILE without the names that it had not flushed, and
//! segments that end anywhere; or, if it was killed while merging, FILE with the start of a segment that still exists. Older
//! JVMs write one file, which ends anywhere.
//!
//! * `source` opens the files; `segments` finds their overlaps, and missing segments.
//! * `shapes` reads the classes; `names` and `arrays` name classes without a name record.
//! * `write` writes the dump.

mod arrays;
mod names;
mod segments;
mod shapes;
mod source;
mod write;

use std::collections::BTreeSet;
use std::path::PathBuf;

use hprof_index::model::problem::{Account, Problem, ProblemKind, Severity};
use hprof_index::remains::{self, ClassPreview, DumpPart, HeapRemains, SubRecordCounts};
use hprof_index::storage::human_bytes::group_digits;
use hprof_index::storage::id_map::IdSet;
use hprof_index::storage::memory::NoMemory;
use hprof_index::{Error, Progress};
use hprof_parser::Header;
use hprof_values::ObjectId;

use hprof_model::dump::doctor::{self, Extent, Finding, RetainedSizes, Subject};
use names::NewNames;
use segments::RecordKeys;
use shapes::{ClassShape, DumpClasses};
use source::SourceKind;

pub use source::RecoverSource;

/// Error of recovering a dump.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// A file cannot be read.
    #[error(transparent)]
    Dump(#[from] Error),
    /// Two files have a header, so they are two dumps.
    #[error("{} and {} are two dumps: each has a header; recover them one at a time", .0.display(), .1.display())]
    TwoDumps(PathBuf, PathBuf),
    /// A segment belongs to another dump.
    #[error("{} is complete, so {} is a segment of another dump; omit one of them", .0.display(), .1.display())]
    NotAPart(PathBuf, PathBuf),
}

/// A finding about one file, or about all files together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoverFinding {
    /// File; `None` if the finding concerns all files together.
    pub file: Option<PathBuf>,
    /// Finding.
    pub finding: Finding,
}

impl RecoverFinding {
    fn is_damage(&self) -> bool {
        self.finding.severity == Severity::Damage
    }
}

/// Counts of what was recovered and what is missing.
#[derive(Debug, Clone)]
pub struct RecoverReport {
    /// Findings, in the order of the files; the last ones concern all files together.
    pub findings: Vec<RecoverFinding>,
    /// Amounts read from all files together.
    pub extent: Extent,
    /// Counts of saved sub-records.
    pub saved: SubRecordCounts,
    /// Number of classes whose names are lost, which are named after their fields.
    pub unnamed_classes: u64,
    /// Number of classes whose names were taken from another dump.
    pub classes_named: u64,
    /// Files of the same dump that were not given.
    pub not_given: Vec<PathBuf>,
}

impl RecoverReport {
    /// Returns `true` if part of the dump is missing.
    pub fn is_damaged(&self) -> bool {
        self.findings.iter().any(RecoverFinding::is_damage)
    }
}

/// A dump that is ready to be written.
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

/// Number of bytes after which HotSpot flushes the file to which it writes names.
const FLUSHED_BYTES: usize = 1 << 20;
/// Maximum number of threads that are written as roots.
const MAX_THREADS: usize = 1 << 20;

/// The files of one dump, in order; overlaps are removed.
struct DumpFiles<'s> {
    sources: Vec<&'s RecoverSource>,
    parts: Vec<DumpPart<'s>>,
    /// Heap dump records of each file.
    keys: Vec<RecordKeys>,
    header: Header,
    has_header: bool,
    /// `true` if a file is a segment, even if another file contains it.
    has_segments: bool,
    findings: Vec<RecoverFinding>,
    /// `true` if the file with the header contains part of a segment: the JVM had begun to merge.
    is_merging: bool,
    /// Numbers of the segments, if all have one.
    numbers: BTreeSet<u32>,
    /// Files of the same dump that were not given.
    not_given: Vec<PathBuf>,
}

impl<'s> Recovery<'s> {
    /// Reads the files of a dump. If given, `other` is another dump of the same program, from which names are taken.
    ///
    /// # Errors
    /// [`RecoverError`].
    pub fn read(
        sources: &'s [RecoverSource],
        other: Option<&RecoverSource>,
        progress: &dyn Progress,
    ) -> Result<Self, RecoverError> {
        let given = sources;
        let DumpFiles {
            sources,
            parts,
            header,
            has_header,
            has_segments,
            mut findings,
            is_merging,
            numbers,
            not_given,
            ..
        } = DumpFiles::from_sources(given)?;
        let total = given.iter().map(|source| source.bytes().len() as u64).sum();
        progress.begin("reading the files", total);
        let heaps = read_heaps(&sources, &parts, progress);
        progress.end();
        let ours = DumpClasses::new(&parts, &heaps);
        let names = match other {
            None => names::new_names(&ours, None),
            Some(other) => {
                let DumpFiles { sources, parts, .. } = DumpFiles::from_sources(std::slice::from_ref(other))?;
                progress.begin("reading names", other.bytes().len() as u64);
                let heaps = read_heaps(&sources, &parts, progress);
                progress.end();
                names::new_names(&ours, Some(&DumpClasses::new(&parts, &heaps)))
            }
        };
        for (number, (part, heap)) in parts.iter().zip(&heaps).enumerate() {
            let Some(source) = sources.get(number) else { continue };
            let problems = source.packed_error().map(Problem::of_packed).into_iter();
            // A segment has no end record, nor does a dump whose segments were not merged.
            let is_normal =
                |kind| has_segments && matches!(kind, ProblemKind::NoEnd | ProblemKind::NoHeapDump);
            let of_part = part.problems().iter().filter(|problem| !is_normal(problem.kind));
            let problems = problems.chain(of_part.chain(&heap.problems).cloned());
            let found = doctor::findings_of(problems, part.bytes().len() as u64);
            let file = Some(source.path().to_owned());
            findings.extend(found.into_iter().map(|finding| RecoverFinding { file: file.clone(), finding }));
        }
        let all = |findings: &mut Vec<RecoverFinding>, severity, subject, text| {
            let finding = Finding::new(severity, subject, text);
            findings.push(RecoverFinding { file: None, finding });
        };
        let mut saved = SubRecordCounts::default();
        heaps.iter().for_each(|heap| saved.add(&heap.counts));
        let missing = if not_given.is_empty() {
            segments::gap(&numbers, has_header && !is_merging)
        } else {
            Some(of_not_given(&not_given))
        };
        let mut is_incomplete = !has_header || missing.is_some();
        let is_segment_missing = missing.is_some();
        if let Some(text) = missing {
            all(&mut findings, Severity::Damage, Subject::SegmentsIncomplete, text);
        }
        if has_segments {
            let head = parts.first().filter(|_| has_header);
            match head.map(|head| is_merging || is_flushed(head)) {
                Some(true) if is_segment_missing => {}
                Some(true) => {
                    let text = "the JVM was killed while it merged the segments".to_owned();
                    all(&mut findings, Severity::Note, Subject::SegmentsMerged, text);
                }
                state => {
                    is_incomplete = true;
                    let text = match state {
                        Some(_) => "the JVM was killed before it had written all segments",
                        None => "the file with the header and the names of the dump is missing",
                    };
                    all(&mut findings, Severity::Damage, Subject::SegmentsIncomplete, text.to_owned());
                }
            }
        }
        if names.by_shape > 0 {
            let text = match names.by_shape {
                1 => "1 class has no name in the files; it is named unnamed.ClassN and keeps its fields"
                    .to_owned(),
                count => format!(
                    "{} classes have no name in the files; each is named unnamed.ClassN and keeps its fields",
                    group_digits(count)
                ),
            };
            // The names of a dump from which nothing else is missing were never written.
            let is_part = is_incomplete || findings.iter().any(RecoverFinding::is_damage);
            let severity = if is_part { Severity::Damage } else { Severity::Note };
            all(&mut findings, severity, Subject::ClassesByShape, text);
        }
        let ours = ours.shapes;
        let account = account(&parts, &heaps, &ours, has_segments, is_incomplete);
        let threads = threads(&parts, &heaps, &ours, &names, &saved, account.heap_damaged);
        if !threads.is_empty() {
            let objects = match threads.len() {
                1 => "1 Thread object counts as a GC root".to_owned(),
                count => format!("{} Thread objects count as GC roots", group_digits(count as u64)),
            };
            let text = format!("the dump is incomplete and contains no thread roots: {objects}");
            all(&mut findings, Severity::Note, Subject::Problem(ProblemKind::ThreadsAssumed), text);
        }
        let extent = Extent { account, missing: None, retained: RetainedSizes::from_account(&account) };
        let (unnamed_classes, classes_named) = (names.by_shape, names.by_other);
        let report = RecoverReport { findings, extent, saved, unnamed_classes, classes_named, not_given };
        Ok(Self { sources, parts, heaps, header, names, threads, report })
    }

    /// Returns the counts of what was recovered and what is missing.
    pub fn report(&self) -> &RecoverReport {
        &self.report
    }
}

/// Reads the heap dump records of all files.
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

impl<'s> DumpFiles<'s> {
    fn from_sources(all: &'s [RecoverSource]) -> Result<Self, RecoverError> {
        let (mut findings, mut segments, mut empty) = (Vec::new(), Vec::new(), Vec::new());
        let mut head: Option<(&RecoverSource, Header)> = None;
        for source in all {
            match source.kind()? {
                SourceKind::Dump(header) => {
                    if let Some((other, _)) = head {
                        return Err(RecoverError::TwoDumps(
                            other.path().to_owned(),
                            source.path().to_owned(),
                        ));
                    }
                    head = Some((source, header));
                }
                SourceKind::Segment => segments.push(source),
                SourceKind::Empty => {
                    empty.push(source);
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
            keys: Vec::new(),
            header,
            has_header: head.is_some(),
            has_segments: !segments.is_empty(),
            findings,
            is_merging: false,
            numbers: segments::numbers(&segments, &empty),
            not_given: Vec::new(),
        };
        if let Some((source, header)) = head {
            let part = DumpPart::read(source.bytes(), header).map_err(no_memory(source))?;
            parts.is_merging = part.has_heap_dump();
            parts.push(source, part);
        }
        // Segment files next to a complete dump belong to another one.
        if !parts.is_complete() {
            parts.not_given = segments::not_given(all, head.map(|(source, _)| source));
        }
        for source in segments {
            parts.add(source)?;
        }
        Ok(parts)
    }

    /// Adds a segment, unless another file contains all of it. If another file contains the start of the segment, that part is
    /// removed from the other file.
    fn add(&mut self, source: &'s RecoverSource) -> Result<(), RecoverError> {
        let bytes = source.bytes();
        let header = Header { len: 0, ..self.header };
        let segment = DumpPart::read(bytes, header).map_err(no_memory(source))?;
        let keys = RecordKeys::from_part(&segment);
        let mut is_new = true;
        for number in 0..self.parts.len() {
            let (Some(part), Some(of)) = (self.parts.get(number), self.sources.get(number)) else { continue };
            let Some(records) = self.keys.get(number) else { continue };
            let offset = segments::overlap((part.bytes(), records), (bytes, &keys));
            let Some(offset) = offset else { continue };
            self.is_merging |= self.has_header && number == 0;
            let common = (part.bytes().len() - offset).min(bytes.len());
            let text = format!(
                "{} from offset {offset:#x} on are the same as the start of {}",
                bytes_text(common),
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
            if let (Some(part), Some(keys)) = (self.parts.get_mut(number), self.keys.get_mut(number)) {
                (*keys, *part) = (RecordKeys::from_part(&shorter), shorter);
            }
        }
        // The end is written after all segments are merged.
        if let Some(head) = self.sources.first().filter(|_| is_new && self.is_complete()) {
            return Err(RecoverError::NotAPart(head.path().to_owned(), source.path().to_owned()));
        }
        if is_new {
            self.push(source, segment);
        }
        Ok(())
    }

    fn push(&mut self, source: &'s RecoverSource, part: DumpPart<'s>) {
        self.sources.push(source);
        self.keys.push(RecordKeys::from_part(&part));
        self.parts.push(part);
    }

    /// Returns `true` if the file with the header has the end record.
    fn is_complete(&self) -> bool {
        self.has_header && self.parts.first().is_some_and(DumpPart::has_end)
    }
}

/// Describes the files that were not given.
fn of_not_given(files: &[PathBuf]) -> String {
    let first = files.first().map_or_else(String::new, |path| path.display().to_string());
    match files.len() {
        1 => format!("{first} is part of the same dump and was not given"),
        2 => format!("{first} and 1 more file are parts of the same dump and were not given"),
        count => format!(
            "{first} and {} more files are parts of the same dump and were not given",
            group_digits(count as u64 - 1)
        ),
    }
}

fn bytes_text(count: usize) -> String {
    if count == 1 { "1 byte".to_owned() } else { format!("{} bytes", group_digits(count as u64)) }
}

fn no_memory(source: &RecoverSource) -> impl Fn(NoMemory) -> RecoverError {
    let path = source.path().to_owned();
    move |error| Error::NoMemory { path: path.clone(), error }.into()
}

/// Adds up the amounts read from all parts.
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
        // A segment's length cannot be known from its end.
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
    // As in a scan: known from records, or from objects.
    let loaded = parts.iter().flat_map(DumpPart::class_loads).map(|load| load.id);
    let mut undumped: IdSet<ObjectId> =
        loaded.chain(heaps.iter().flat_map(|heap| &heap.array_classes).copied()).collect();
    for (class, count) in heaps.iter().flat_map(|heap| &heap.of_unknown_classes) {
        undumped.insert(*class);
        if !dumped.contains(class) {
            account.objects_without_class += count;
        }
    }
    undumped.retain(|class| !class.is_null() && !dumped.contains(class));
    if parts.iter().any(DumpPart::has_heap_dump) {
        account.undumped_classes = undumped.len() as u64;
    }
    account.heap_damaged |= is_incomplete;
    if is_incomplete {
        account.expected_bytes = None;
    }
    account
}

/// Returns the objects that are written as roots: those of `java.lang.Thread` and its subclasses, if part of the dump
/// is missing and it contains no thread. Before JDK 22, HotSpot wrote threads last.
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
    // Each round finds the subclasses of those found; chains of superclasses can be long, but not those of threads.
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

/// Maximum depth of subclasses of `java.lang.Thread`.
const MAX_THREAD_CLASSES: usize = 64;
