//! Segments: their overlaps with other files, and missing ones.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hprof_index::model::problem::ProblemKind;
use hprof_index::remains::DumpPart;
use hprof_index::storage::human_bytes::group_digits;
use hprof_parser::record::Record;

use super::source::{RecoverSource, segments_beside};

/// Number of bytes compared first for each record.
const SAMPLE: usize = 256;

/// Keys of the heap dump records of a file, for finding records that are in another file as well.
pub(super) struct RecordKeys {
    /// Offset and hash of each complete record.
    keys: Vec<(usize, u64)>,
    /// Offset of the truncated record at the end; the length of the file if it ends between two records.
    tail: usize,
}

impl RecordKeys {
    /// Computes the keys of a file.
    pub(super) fn from_part(part: &DumpPart<'_>) -> Self {
        let bytes = part.bytes();
        let cut = part.problems().iter().find(|problem| problem.kind == ProblemKind::FileCut);
        let tail = cut.and_then(|cut| usize::try_from(cut.offset?).ok()).unwrap_or(bytes.len());
        let hash = |offset: usize| {
            let end = Record::at(bytes, offset).and_then(|record| usize::try_from(record.end()).ok());
            let end = end.unwrap_or(offset).min(offset.saturating_add(SAMPLE)).min(bytes.len());
            xxhash_rust::xxh3::xxh3_64(bytes.get(offset..end).unwrap_or_default())
        };
        let records = part.heap_records().take_while(|offset| *offset < tail);
        Self { keys: records.map(|offset| (offset, hash(offset))).collect(), tail }
    }

    fn hash(&self, number: usize) -> Option<u64> {
        self.keys.get(number).map(|(_, hash)| *hash)
    }

    /// Returns the offset of a record, or the end of the last one if there is no such record.
    fn offset(&self, number: usize) -> usize {
        self.keys.get(number).map_or(self.tail, |(offset, _)| *offset)
    }

    /// Returns, for each prefix of the records, the length of its longest proper border (Knuth, Morris, Pratt).
    fn borders(&self) -> Vec<usize> {
        let mut borders = vec![0; self.keys.len() + 1];
        let mut matched = 0;
        for number in 1..self.keys.len() {
            matched = self.next_match(&borders, matched, self.hash(number));
            if let Some(border) = borders.get_mut(number + 1) {
                *border = matched;
            }
        }
        borders
    }

    /// Returns the number of matched records at the start after the record `hash`, if `matched` were matched before
    /// it.
    fn next_match(&self, borders: &[usize], mut matched: usize, hash: Option<u64>) -> usize {
        while matched > 0 && self.hash(matched) != hash {
            matched = border(borders, matched);
        }
        if self.hash(matched) == hash { matched + 1 } else { 0 }
    }
}

fn border(borders: &[usize], matched: usize) -> usize {
    borders.get(matched).copied().unwrap_or(0)
}

/// Returns the offset in `bytes` from which on they equal the start of `segment`, or at which they contain all of `segment`.
/// Takes time proportional to the numbers of records, and compares all bytes once.
pub(super) fn overlap(
    (bytes, records): (&[u8], &RecordKeys),
    (segment, start): (&[u8], &RecordKeys),
) -> Option<usize> {
    let offset = first_alike((bytes, records), (segment, start))?.checked_sub(start.offset(0))?;
    let there = bytes.get(offset..)?;
    let common = there.len().min(segment.len());
    (common > 0 && there.get(..common) == segment.get(..common)).then_some(offset)
}

/// Finds the offset of an overlap by hashes of records (Knuth, Morris, Pratt).
fn first_alike(
    (bytes, records): (&[u8], &RecordKeys),
    (segment, start): (&[u8], &RecordKeys),
) -> Option<usize> {
    let alike = |offset: usize, in_segment: usize| {
        let (ours, theirs) =
            (bytes.get(offset..).unwrap_or_default(), segment.get(in_segment..).unwrap_or_default());
        let common = ours.len().min(theirs.len()).min(SAMPLE);
        ours.get(..common) == theirs.get(..common)
    };
    let (all, count) = (start.keys.len(), records.keys.len());
    let borders = start.borders();
    let mut matched = 0;
    for number in 0..=count {
        if matched == all {
            let from = records.offset(number - matched);
            if from < bytes.len() && alike(records.offset(number), start.tail) {
                return Some(from);
            }
            matched = border(&borders, matched);
        }
        if number < count {
            matched = start.next_match(&borders, matched, records.hash(number));
        }
    }
    // The file ends in the segment, possibly in the header of a record.
    loop {
        let from = records.offset(count - matched);
        if from < bytes.len() && alike(records.tail, start.offset(matched)) {
            return Some(from);
        }
        if matched == 0 {
            return None;
        }
        matched = border(&borders, matched);
    }
}

/// Returns the files of the same dump that were not given.
pub(super) fn not_given(sources: &[RecoverSource], head: Option<&RecoverSource>) -> Vec<PathBuf> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut seen: BTreeSet<PathBuf> = sources.iter().map(|source| real(source.path())).collect();
    let heads: Vec<PathBuf> = match head {
        Some(head) => vec![head.path().to_owned()],
        None => sources.iter().filter_map(RecoverSource::head_path).collect(),
    };
    let mut found = Vec::new();
    for path in heads {
        let own = Some(path.clone()).filter(|path| head.is_none() && path.is_file());
        let beside = own.into_iter().chain(segments_beside(&path));
        found.extend(beside.filter(|path| seen.insert(real(path))));
    }
    found
}

/// Describes the segments that are missing between those with these numbers, or before them.
pub(super) fn gap(numbers: &BTreeSet<u32>, are_all_left: bool) -> Option<String> {
    let (first, last) = (*numbers.first()?, *numbers.last()?);
    let from = if are_all_left { 0 } else { first };
    let one = (from..last).find(|number| !numbers.contains(number))?;
    Some(match u64::from(last - from) + 1 - numbers.len() as u64 {
        1 => format!("segment .p{one} is missing"),
        count => format!("{} segments are missing; the first is .p{one}", group_digits(count)),
    })
}

/// Returns the numbers of segments by their names; empty if a name has no number. Empty files may be segments.
pub(super) fn numbers(segments: &[&RecoverSource], empty: &[&RecoverSource]) -> BTreeSet<u32> {
    let numbers: Option<BTreeSet<u32>> = segments.iter().map(|source| source.segment_number()).collect();
    let Some(mut numbers) = numbers else { return BTreeSet::new() };
    numbers.extend(empty.iter().filter_map(|source| source.segment_number()));
    numbers
}
