//! Problems of a dump, and the reliability of results from it.

use hprof_index::model::array_contents::MissingContents;
use hprof_index::model::problem::{Account, Problem, ProblemKind, Severity};
use hprof_index::storage::human_bytes::plural;
use hprof_index::{Heap, MissingObjects, ObjectGraph};

use hprof_base::sorting::SortRows;

/// Reliability of retained sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RetainedSizes {
    /// Everything that the JVM dumped was read: sizes are exact according to the model.
    Exact,
    /// Only elements of primitive arrays are missing, which reference nothing: the true sizes are the same or larger.
    LowerBounds,
    /// Kinds of roots are missing ([`Summary::lacks_roots`](hprof_index::model::summary::Summary::lacks_roots)): objects that
    /// only these hold count as unreachable.
    #[serde(rename = "lower_bounds")]
    OfStatedRoots,
    /// Objects, references or roots are missing. An object that retained a lost one has a larger true size: a lower
    /// bound. An object that shares another with a lost one has a smaller true size.
    OfWhatIsThere,
}

impl RetainedSizes {
    /// Returns the reliability for what was read. Dangling references alone do not count: JVMs omit some of their own
    /// objects.
    pub fn from_account(account: &Account) -> Self {
        let lost = account.heap_damaged
            || account.objects_without_class > 0
            || account.odd_instances > 0
            || account.cut_object_arrays > 0;
        match (lost, account.cut_primitive_arrays) {
            (true, _) => Self::OfWhatIsThere,
            (false, 1..) => Self::LowerBounds,
            (false, 0) => Self::Exact,
        }
    }
}

/// Subject of a [`Finding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A problem found while reading.
    Problem(ProblemKind),
    /// Objects refer to objects that are not in the dump.
    MissingObjects,
    /// Roots refer to objects that are not in the dump.
    MissingRoots,
    /// The dump contains no sticky class roots.
    BootClassesAssumed,
    /// The dump contains threads, but no other kinds of roots.
    RootsLacking,
    /// Contents of primitive arrays were removed ([`MissingContents`]).
    ContentsMissing,
    /// Objects are flattened in others ([`Summary::is_flat`](hprof_index::model::summary::Summary::is_flat)).
    FlattenedObjects,
    /// The file holds several heap dumps.
    SeveralHeapDumps,
    /// Lines of a text report that could not be understood.
    LinesNotUnderstood,
    /// A text report holds several runs.
    SeveralRuns,
    /// A file of a dump to recover is empty.
    EmptyFile,
    /// The JVM was killed before all segments of a dump were written.
    SegmentsIncomplete,
    /// Segments of a dump that the JVM had not merged.
    SegmentsMerged,
    /// Parts of files that other files contain too.
    Overlap,
    /// Classes that no record names, which are named by their fields.
    ClassesByShape,
}

impl Subject {
    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Problem(kind) => kind.name(),
            Self::MissingObjects => "missing_objects",
            Self::MissingRoots => "missing_roots",
            Self::BootClassesAssumed => "boot_classes_assumed",
            Self::RootsLacking => "roots_lacking",
            Self::ContentsMissing => "contents_missing",
            Self::FlattenedObjects => "flattened_objects",
            Self::SeveralHeapDumps => "several_heap_dumps",
            Self::LinesNotUnderstood => "lines_not_understood",
            Self::SeveralRuns => "several_runs",
            Self::EmptyFile => "empty_file",
            Self::SegmentsIncomplete => "segments_incomplete",
            Self::SegmentsMerged => "segments_merged",
            Self::Overlap => "overlap",
            Self::ClassesByShape => "classes_by_shape",
        }
    }
}

/// A fact about a file that a user should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Severity of the finding.
    pub severity: Severity,
    /// Subject of the finding.
    pub subject: Subject,
    /// Text of the finding, or of the first one if several are merged.
    pub text: String,
    /// Number of merged findings.
    pub count: u64,
    /// Offset of the first one in the (unpacked) file.
    pub offset: Option<u64>,
    /// Total number of skipped bytes.
    pub skipped_bytes: u64,
    /// Offset up to which a truncated file was read.
    pub read_until: Option<u64>,
}

impl Finding {
    /// Creates a finding without evidence.
    pub fn new(severity: Severity, subject: Subject, text: String) -> Self {
        Self { severity, subject, text, count: 1, offset: None, skipped_bytes: 0, read_until: None }
    }

    /// Creates the finding for lines of a text report that could not be understood.
    pub fn of_lines(count: u64, first: String) -> Self {
        Self { count, ..Self::new(Severity::Damage, Subject::LinesNotUnderstood, first) }
    }

    /// Creates the finding for several runs in a text report.
    pub fn of_runs(runs: u32, read: u32) -> Self {
        let text = format!("the file contains {runs} runs; run {read} was read");
        Self::new(Severity::Note, Subject::SeveralRuns, text)
    }
}

/// Description of a dump that lacks kinds of roots.
pub const ROOTS_LACKING: &str = "the dump contains no GC roots of stack frames, JNI globals and boot classes, as `jhsdb jmap` \
     writes it: reachable objects and retained sizes are lower bounds";

/// Describes the contents that a dump lacks; `None` if it is complete.
pub fn describe_missing(missing: MissingContents) -> Option<String> {
    let elements = |limit: u32| plural(u64::from(limit), "element", "elements");
    Some(match (missing.text_limit, missing.number_limit) {
        (None, None) => return None,
        (Some(0), Some(0)) => "the contents of all primitive arrays were removed from the dump".to_owned(),
        (Some(0), None) => "the contents of byte[] and char[] were removed from the dump".to_owned(),
        (Some(0), Some(limit)) => format!(
            "the contents of byte[] and char[] were removed from the dump, and those of other primitive arrays \
             beyond {limit} {}",
            elements(limit)
        ),
        (None, Some(0)) => {
            "the contents of primitive arrays other than byte[] and char[] were removed from the dump"
                .to_owned()
        }
        (Some(text), Some(0)) => format!(
            "the dump contains only the first {text} {} of each byte[] and char[], and no contents of other primitive arrays",
            elements(text)
        ),
        (Some(limit), None) => {
            format!("the dump contains only the first {limit} {} of each byte[] and char[]", elements(limit))
        }
        (Some(text), Some(other)) => format!(
            "the dump contains only the first {text} {} of each byte[] and char[], and the first {other} of each \
             other primitive array",
            elements(text)
        ),
        (None, Some(limit)) => format!(
            "the dump contains only the first {limit} {} of each primitive array other than byte[] and char[]",
            elements(limit)
        ),
    })
}

/// Completeness of a dump.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Totals of read, skipped and damaged data.
    pub account: Account,
    /// References to objects that are not in the dump, if they were counted.
    pub missing: Option<MissingObjects>,
    /// Reliability of retained sizes.
    pub retained: RetainedSizes,
}

impl Extent {
    /// Returns the completeness of a dump, from its summary and its index.
    pub fn from_heap(heap: &Heap) -> Self {
        let account = heap.summary().account();
        let retained = match RetainedSizes::from_account(&account) {
            RetainedSizes::OfWhatIsThere => RetainedSizes::OfWhatIsThere,
            _ if heap.summary().lacks_roots() => RetainedSizes::OfStatedRoots,
            retained => retained,
        };
        Self { account, missing: heap.missing_objects(), retained }
    }
}

/// Diagnosis of a dump: completeness and findings.
#[derive(Debug, Clone)]
pub struct Diagnosis {
    /// Completeness of the dump.
    pub extent: Extent,
    /// Findings, damage first; similar ones are merged.
    pub findings: Vec<Finding>,
}

/// Examines a dump, including missing objects if a graph is given.
pub fn doctor(heap: &Heap, graph: Option<&ObjectGraph>) -> Diagnosis {
    let summary = heap.summary();
    let extent = Extent::from_heap(heap);
    let mut findings = findings_of(summary.problems(), extent.account.file_bytes);
    let mut note = |count: u64, subject: Subject, text: String| {
        if count > 0 {
            findings.push(Finding::new(Severity::Note, subject, text));
        }
    };
    if let Some(missing) = extent.missing {
        let at_least = if missing.more { "at least " } else { "" };
        let text = format!(
            "dangling references: {}; missing objects: {at_least}{}",
            missing.references, missing.objects
        );
        note(missing.references, Subject::MissingObjects, text);
    }
    if let Some(graph) = graph {
        let roots = &graph.roots;
        let text = format!("GC roots whose object is not in the dump: {}", roots.missing_objects);
        note(roots.missing_objects, Subject::MissingRoots, text);
        let text = "the dump contains no sticky class roots: all classes of the boot loader count as roots"
            .to_owned();
        note(u64::from(roots.boot_classes_assumed), Subject::BootClassesAssumed, text);
    }
    note(u64::from(summary.lacks_roots()), Subject::RootsLacking, ROOTS_LACKING.to_owned());
    let text = describe_missing(summary.missing_contents());
    note(u64::from(text.is_some()), Subject::ContentsMissing, text.unwrap_or_default());
    let flat: u64 = summary.flat_objects().map(|(_, objects)| objects).sum();
    let text = format!(
        "{flat} value {} flattened into the objects and arrays that refer to them, whose sizes are estimated",
        plural(flat, "object is", "objects are")
    );
    note(flat, Subject::FlattenedObjects, text);
    let (there, read) = (summary.facts().heap_dumps.get(), summary.facts().heap_dump.get());
    let text = format!("the file contains {there} heap dumps; heap dump {read} was read");
    note(u64::from(there > 1), Subject::SeveralHeapDumps, text);
    findings.sort_rows_by_key(|finding| std::cmp::Reverse(finding.severity));
    Diagnosis { extent, findings }
}

/// Returns findings for the problems of a file of this length; similar ones are merged.
pub fn findings_of(problems: impl IntoIterator<Item = Problem>, file_bytes: u64) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for problem in problems {
        let subject = Subject::Problem(problem.kind);
        match findings.iter_mut().find(|finding| finding.subject == subject) {
            Some(finding) => {
                finding.count += 1;
                finding.skipped_bytes += problem.skipped_bytes;
            }
            None => findings.push(Finding {
                offset: problem.offset,
                skipped_bytes: problem.skipped_bytes,
                ..Finding::new(problem.severity, subject, problem.text)
            }),
        }
    }
    // A truncated file ends in its last record, whose start cannot be read either.
    let until = findings.iter().filter(|finding| is_truncation(finding) && finding.skipped_bytes > 0);
    let until = until.filter_map(|finding| finding.offset).min().unwrap_or(file_bytes);
    let file_cut =
        findings.iter_mut().find(|finding| finding.subject == Subject::Problem(ProblemKind::FileCut));
    if let Some(finding) = file_cut {
        finding.read_until = Some(until);
    }
    findings
}

fn is_truncation(finding: &Finding) -> bool {
    matches!(finding.subject, Subject::Problem(ProblemKind::FileCut | ProblemKind::CutSubRecord))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retained_sizes_are_judged_by_what_is_lost() {
        let whole = Account::default();
        assert_eq!(RetainedSizes::from_account(&whole), RetainedSizes::Exact);
        let cut = Account { cut_primitive_arrays: 1, ..whole };
        assert_eq!(RetainedSizes::from_account(&cut), RetainedSizes::LowerBounds);
        let parts = [
            Account { heap_damaged: true, ..cut },
            Account { cut_object_arrays: 1, ..cut },
            Account { objects_without_class: 1, ..whole },
            Account { odd_instances: 1, ..whole },
        ];
        assert_eq!(
            parts.map(|account| RetainedSizes::from_account(&account)),
            [RetainedSizes::OfWhatIsThere; 4]
        );
    }
}
