//! Division of a heap dump into chunks for all cores.
//!
//! Segments of current JVMs are 1 MiB: each is a chunk. A giant record (JDK 8 and older, up to many GiB)
//! is divided at boundaries that look like sub-records ([`resync`]). Such a boundary is a guess until the
//! preceding chunk is seen to end exactly at it; if one does not, [`exactly`] divides again by walking
//! over every sub-record.

use rayon::prelude::*;

use hprof_parser::heap::{self, HeapVisitor};
use hprof_parser::resync::{self, KnownClasses};
use hprof_parser::{FormatError, FormatErrorKind};
use hprof_values::IdSize;

use super::preview::Preview;
use super::source::DumpBytes;
use super::top_level::HeapDump;
use crate::model::problem::{Problem, ProblemKind};
use crate::storage::human_bytes::plural;

/// Maximum number of listed damaged regions of a heap dump.
pub(crate) const MAX_PROBLEMS: usize = 50;

/// A range of sub-records that one thread scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordChunk {
    /// Offset of the first sub-record.
    pub(crate) start: usize,
    /// Expected end offset of the last sub-record.
    pub(crate) end: usize,
    /// End of the record that contains the chunk (exclusive): sub-records cannot extend beyond it.
    pub(crate) limit: usize,
}

/// A damaged region: bytes that a walk could not read.
#[derive(Debug)]
pub(crate) struct Skip {
    /// Error at its start.
    pub(crate) error: FormatError,
    /// Start offset.
    pub(crate) from: usize,
    /// Offset at which the walk continued.
    pub(crate) to: usize,
    /// `true` if an object was found there; otherwise it is the end of the chunk.
    pub(crate) found: bool,
}

impl Skip {
    /// Returns the problem that is reported for the damaged region.
    pub(crate) fn problem(&self, bytes: &[u8]) -> Problem {
        let (kind, what) = match self.error.kind() {
            FormatErrorKind::RecordCut { .. } if !self.found && self.to == bytes.len() => {
                (ProblemKind::CutSubRecord, format!("sub-record {} is truncated", tag_at(bytes, self.from)))
            }
            FormatErrorKind::UnknownSubRecord(tag) => {
                (ProblemKind::UnknownSubRecord, format!("unknown heap sub-record {tag:#04x}"))
            }
            FormatErrorKind::BasicType { found, tag } => {
                (ProblemKind::BadSubRecord, format!("unknown basic type {found} in sub-record {tag:#04x}"))
            }
            _ => (
                ProblemKind::BadSubRecord,
                format!("sub-record {} extends beyond the end of its record", tag_at(bytes, self.from)),
            ),
        };
        let to = if self.found { "the next object found" } else { "the end of the record" };
        let skipped = self.to - self.from;
        let text = format!("{what}; skipped {skipped} {}, to {to}", plural(skipped as u64, "byte", "bytes"));
        Problem::damage(kind, text, Some(self.from as u64)).skipping(skipped)
    }
}

fn tag_at(bytes: &[u8], at: usize) -> String {
    bytes.get(at).map_or_else(|| "?".to_owned(), |tag| format!("{tag:#04x}"))
}

/// Returns the problem that is reported if there are more damaged regions than are listed.
pub(crate) fn more_regions(count: u64) -> Problem {
    let text = format!("{count} damaged regions in the heap dump; only the first {MAX_PROBLEMS} are listed");
    Problem::damage(ProblemKind::MorePlaces, text, None)
}

/// Walks over a chunk, and continues after a damaged region at the next object found. Calls `skipped` for
/// each damaged region. Returns the offset at which it ended: the chunk's end, if its boundaries are
/// right.
pub(crate) fn walk<'a, K: KnownClasses, V: HeapVisitor<'a>>(
    bytes: &'a [u8],
    id_size: IdSize,
    known: &K,
    chunk: &RecordChunk,
    visitor: &mut V,
    mut skipped: impl FnMut(&mut V, Skip),
) -> usize {
    let mut at = chunk.start;
    loop {
        let walked = heap::walk(bytes, id_size, at, chunk.end, chunk.limit, visitor);
        let Some(error) = walked.error else {
            return walked.next;
        };
        let from = walked.next;
        let found = resync::find(bytes, id_size, from + 1, chunk.end, chunk.limit, known);
        at = found.unwrap_or(chunk.end);
        skipped(visitor, Skip { error, from, to: at, found: found.is_some() });
        if at >= chunk.end {
            return at;
        }
    }
}

/// Division of a heap dump, with the data that a walk needs.
pub(crate) struct Plan {
    pub(crate) chunks: Vec<RecordChunk>,
    pub(crate) preview: Preview,
    /// Runs that together contain each object except class objects once, in ascending order of IDs, if
    /// the scan found that the file has long runs.
    pub(crate) order: Option<Vec<AscendingRun>>,
}

/// A run: consecutive records in the file, possibly with sub-records of other kinds between them, whose
/// object IDs ascend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AscendingRun {
    /// First object ID.
    pub(crate) first: u64,
    /// Offset of the first record.
    pub(crate) start: usize,
    /// End of the last record (exclusive).
    pub(crate) end: usize,
}

impl Plan {
    /// Walks over a chunk, calling `skipped` for each damaged region.
    pub(crate) fn walk<'a, V: HeapVisitor<'a>>(
        &self,
        source: &DumpBytes<'a>,
        chunk: &RecordChunk,
        visitor: &mut V,
        mut skipped: impl FnMut(&mut V),
    ) {
        let DumpBytes { bytes, header, .. } = *source;
        walk(bytes, header.id_size, &self.preview, chunk, visitor, |visitor, _| skipped(visitor));
    }
}

/// Size above which segments are divided.
const GIANT: usize = 16 << 20;
/// Approximate size of the chunks.
const CHUNK_BYTES: usize = 4 << 20;

/// Divides a heap dump into chunks at bytes that look like sub-records.
pub(crate) fn guess(bytes: &[u8], id_size: IdSize, dump: &HeapDump, known: &Preview) -> Vec<RecordChunk> {
    cut(dump, |start, end| {
        let marks: Vec<usize> = (start + CHUNK_BYTES..end).step_by(CHUNK_BYTES).collect();
        marks
            .into_par_iter()
            .filter_map(|mark| resync::find(bytes, id_size, mark, (mark + CHUNK_BYTES).min(end), end, known))
            .collect()
    })
}

/// Divides a heap dump into chunks by walking over every sub-record in order.
pub(crate) fn exactly(bytes: &[u8], id_size: IdSize, dump: &HeapDump) -> Vec<RecordChunk> {
    /// Visitor that does nothing.
    struct Nothing;
    impl HeapVisitor<'_> for Nothing {}
    cut(dump, |start, end| {
        let mut boundaries = Vec::new();
        let mut at = start;
        loop {
            let walked = heap::walk(bytes, id_size, at, (at + CHUNK_BYTES).min(end), end, &mut Nothing);
            at = walked.next;
            // There are no boundaries after an error; the scan reports it.
            if walked.error.is_some() || at >= end {
                return boundaries;
            }
            boundaries.push(at);
        }
    })
}

/// Makes chunks: whole segments, and ranges of giant ones between the boundaries that `boundaries(start,
/// end)` finds.
fn cut(dump: &HeapDump, boundaries: impl Fn(usize, usize) -> Vec<usize>) -> Vec<RecordChunk> {
    let mut chunks = Vec::with_capacity(dump.segments.len());
    for segment in &dump.segments {
        let mut start = segment.start;
        let inner = if segment.end - start > GIANT { boundaries(start, segment.end) } else { Vec::new() };
        for end in inner.into_iter().chain([segment.end]) {
            chunks.push(RecordChunk { start, end, limit: segment.end });
            start = end;
        }
    }
    chunks
}
