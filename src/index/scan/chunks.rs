//! Cutting a heap dump into pieces for all cores.
//!
//! Segments of current JVMs are 1 MiB: each is a piece. A giant record (JDK 8 and older, up to many GiB) is cut at
//! boundaries found by their look. Such a boundary is a guess until the piece before is seen to end exactly on it; if
//! one does not, [`exactly`] cuts again by hopping over every sub-record.

use rayon::prelude::*;

use crate::hprof::heap::{self, HeapVisitor};
use crate::hprof::resync::{self, KnownClasses};
use crate::hprof::{FormatError, IdSize};

use super::preview::Prelude;
use super::top_level::HeapDump;

/// A range of sub-records that one thread scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Offset of the first sub-record.
    pub(crate) start: usize,
    /// Offset at which the last one has to end.
    pub(crate) end: usize,
    /// Offset just past the record that holds the piece: sub-records may not reach beyond.
    pub(crate) limit: usize,
}

/// Bytes that a walk could not read.
#[derive(Debug)]
pub(crate) struct Skip {
    /// Why.
    pub(crate) error: FormatError,
    /// Offset of the first.
    pub(crate) from: usize,
    /// Offset at which the walk went on.
    pub(crate) to: usize,
    /// Whether an object was found there; else it is the end of the piece.
    pub(crate) found: bool,
}

/// Walks a piece, going on behind damage at the next object that can be found. Calls `skipped` for what it leaves out.
/// Returns the offset at which it ended: the piece's end, if the piece was cut rightly.
pub(crate) fn walk<'a, K: KnownClasses, V: HeapVisitor<'a>>(
    bytes: &'a [u8],
    id_size: IdSize,
    known: &K,
    piece: &Piece,
    visitor: &mut V,
    mut skipped: impl FnMut(&mut V, Skip),
) -> usize {
    let mut at = piece.start;
    loop {
        let walked = heap::walk(bytes, id_size, at, piece.end, piece.limit, visitor);
        let Some(error) = walked.error else {
            return walked.next;
        };
        let from = walked.next;
        let found = resync::find(bytes, id_size, from + 1, piece.end, piece.limit, known);
        at = found.unwrap_or(piece.end);
        skipped(visitor, Skip { error, from, to: at, found: found.is_some() });
        if at >= piece.end {
            return at;
        }
    }
}

/// Segments above this are cut.
const GIANT: usize = 16 << 20;
/// Into pieces of about this size.
const PIECE: usize = 4 << 20;

/// Cuts by the look of sub-records.
pub(crate) fn guess(bytes: &[u8], id_size: IdSize, dump: &HeapDump, known: &Prelude) -> Vec<Piece> {
    cut(dump, |start, end| {
        let marks: Vec<usize> = (start + PIECE..end).step_by(PIECE).collect();
        marks
            .into_par_iter()
            .filter_map(|mark| resync::find(bytes, id_size, mark, (mark + PIECE).min(end), end, known))
            .collect()
    })
}

/// Cuts by hopping over every sub-record, one after another.
pub(crate) fn exactly(bytes: &[u8], id_size: IdSize, dump: &HeapDump) -> Vec<Piece> {
    struct Hop;
    impl HeapVisitor<'_> for Hop {}
    cut(dump, |start, end| {
        let mut boundaries = Vec::new();
        let mut at = start;
        loop {
            let walked = heap::walk(bytes, id_size, at, (at + PIECE).min(end), end, &mut Hop);
            at = walked.next;
            // Behind an error there is no boundary; the scan reports it.
            if walked.error.is_some() || at >= end {
                return boundaries;
            }
            boundaries.push(at);
        }
    })
}

/// Makes pieces: whole segments, and giant ones between the boundaries that `boundaries(start, end)` finds.
fn cut(dump: &HeapDump, boundaries: impl Fn(usize, usize) -> Vec<usize>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for segment in &dump.segments {
        let mut start = segment.start;
        let inner = if segment.end - start > GIANT { boundaries(start, segment.end) } else { Vec::new() };
        for end in inner.into_iter().chain([segment.end]) {
            pieces.push(Piece { start, end, limit: segment.end });
            start = end;
        }
    }
    pieces
}
