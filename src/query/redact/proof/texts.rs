//! Search for texts of a dump in the redacted one.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::layout::sizes::Sizes;
use hprof_index::remains::DumpPart;
use hprof_parser::Header;
use hprof_parser::record::{BodyReader, Record as TopRecord, tag};
use hprof_values::BasicType;

use super::super::bytes::BLOCK;
use super::super::filter::array_of;
use super::super::kept::KeptValues;
use super::super::plan::Plan;
use super::ProofRow;
use super::pairs::{fold, readers};
use super::windows::{Encodings, WINDOW, WINDOW_BYTES, Window, fingerprints, hash_of, runs};
use hprof_base::parallel;
use hprof_index::Dump;
use hprof_model::histogram::{HistogramQuery, histogram};
use hprof_model::objects::reader::ObjectRecord;

/// Minimum number of equal characters at the same position of the same object for a text to count as unredacted.
pub(super) const SAME_PLACE: usize = 6;
/// Number of characters at either end of a window that must belong to a name for the window to count as part of it: bytes next
/// to a name may look like letters.
const OF_NAME: usize = 12;
/// Average number of consecutive windows with the same fingerprint.
const PER_FINGERPRINT: u64 = 4;
/// Bits of a filter per fingerprint.
const BITS: u64 = 8;
/// Minimum (inclusive) and maximum (exclusive) size of a filter, as powers of two.
const FILTER_BITS: Range<u32> = 10..31;
/// Maximum number of fingerprints in one search.
const MAX_FINGERPRINTS: u64 = (1 << (FILTER_BITS.end - 1)) / BITS;
/// Maximum number of windows that are compared exactly at once, not counting windows of names.
const MAX_WINDOWS: usize = 2 << 20;
/// Maximum number of parts into which windows are divided.
const MAX_PARTS: u64 = 1 << 12;
/// Number of objects per parallel task.
const CHUNK: u32 = 1 << 16;
/// Number of bytes per parallel task.
const BYTES: usize = 4 << 20;

/// Searches for unchanged characters at the same position of the same array.
pub(super) fn unchanged_text(kept: &KeptValues, a: &Dump<'_>, b: &Dump<'_>) -> ProofRow {
    let counts = fold(
        &readers(a, b),
        || (0_u64, 0_u64),
        |(found, allowed), _, one, other| {
            let (ObjectRecord::PrimitiveArray(one), ObjectRecord::PrimitiveArray(other)) = (one, other)
            else {
                return;
            };
            let (Some(x), Some(y)) = (one.elements, other.elements) else { return };
            let size = match one.element {
                BasicType::Byte => 1,
                BasicType::Char => 2,
                _ => return,
            };
            // Blocks of a large array are mapped one by one.
            let is_repeated =
                |x: &[u8]| x.chunks(size).all(|value| value == x.get(..size).unwrap_or_default());
            let runs = x.chunks(BLOCK).zip(y.chunks(BLOCK)).filter(|(x, y)| has_run(x, y, size));
            let (mut is_found, mut is_allowed) = (false, false);
            runs.for_each(|(x, _)| *(if is_repeated(x) { &mut is_allowed } else { &mut is_found }) = true);
            if is_found && !kept.contains(one.element, x) {
                *found += 1;
            } else {
                *allowed += u64::from(is_found || is_allowed);
            }
        },
    );
    let differences = counts.iter().map(|(found, _)| found).sum();
    ProofRow {
        allowed: counts.iter().map(|(_, allowed)| allowed).sum(),
        reason: Some("names that are not replaced, and arrays of one repeated value"),
        ..ProofRow::new("texts_at_the_same_place", differences)
    }
}

/// Returns `true` if two arrays have the same characters, not zero, at enough consecutive positions.
fn has_run(x: &[u8], y: &[u8], size: usize) -> bool {
    let mut run = 0;
    x.chunks_exact(size).zip(y.chunks_exact(size)).any(|(x, y)| {
        let is_zero = x.iter().all(|byte| *byte == 0);
        // Half of the bytes of a text in UTF-16 are zeros.
        run = if x != y { 0 } else { run + usize::from(!is_zero) };
        run >= SAME_PLACE
    })
}

/// Searches for texts anywhere in the redacted file.
///
/// Two filters reduce the windows to compare: one with the fingerprints of the dump, and one with those that the redacted dump
/// has as well. If there are more than fit into the filters or the memory for windows, they are searched in parts, one after
/// another: the result is exact, unless a failure ends the search.
pub(super) fn anywhere(plan: &Plan, kept: &KeptValues, a: &Dump<'_>, b: &Dump<'_>) -> ProofRow {
    let amount = characters(a) / PER_FINGERPRINT;
    anywhere_in_parts(plan, kept, (a, b), amount / MAX_FINGERPRINTS + 1, amount, MAX_WINDOWS)
}

/// Searches for texts as [`anywhere`] does, with the given number of parts, of fingerprints in all parts, and of windows at
/// once.
pub(super) fn anywhere_in_parts(
    plan: &Plan,
    kept: &KeptValues,
    (a, b): (&Dump<'_>, &Dump<'_>),
    parts: u64,
    amount: u64,
    max_windows: usize,
) -> ProofRow {
    let search = TextSearch { kept, names: names(plan, kept), a, b, max_windows };
    let (mut differences, mut allowed) = (0, 0);
    for part in 0..parts {
        let of_part = |print: u64| print.rotate_left(17) % parts == part;
        let (found, names) = search.part(&of_part, amount / parts);
        differences += found;
        allowed += names;
        if differences > 0 {
            break;
        }
    }
    let reason = Some("parts of names that are not replaced");
    ProofRow { allowed, reason, ..ProofRow::new("texts_anywhere", differences) }
}

/// Returns the number of characters in the arrays of a dump, approximately.
fn characters(dump: &Dump<'_>) -> u64 {
    let summary = dump.summary;
    let rows = histogram(summary, &Sizes::new(summary, None), &HistogramQuery::default()).rows;
    let texts = rows.iter().filter(|row| matches!(row.name.as_ref(), "byte[]" | "char[]"));
    texts.map(|row| row.shallow_bytes).sum()
}

/// Returns the hashes of all parts of kept names.
fn names(plan: &Plan, kept: &KeptValues) -> FxHashSet<u64> {
    let mut names = FxHashSet::default();
    let mut add = |text: &[u8]| {
        runs(text, Encodings::Narrow, OF_NAME, &mut |run| {
            names.extend(run.windows(OF_NAME).map(hash_of));
        });
    };
    plan.texts.iter().for_each(|(text, _)| add(text));
    kept.visit(&mut add);
    names
}

/// Search for texts of the dump in the redacted one.
struct TextSearch<'s> {
    kept: &'s KeptValues,
    names: FxHashSet<u64>,
    a: &'s Dump<'s>,
    b: &'s Dump<'s>,
    max_windows: usize,
}

/// Windows of the dump that may be in the redacted one, by hash: `true` if the window is part of a name, and `true` once it was
/// found.
type Windows = FxHashMap<u128, (bool, AtomicBool)>;

impl TextSearch<'_> {
    /// Returns `true` if an array or a symbol with this text is kept.
    fn stays(&self, kind: Option<BasicType>, text: &[u8]) -> bool {
        match kind {
            Some(kind) => self.kept.contains(kind, text),
            None => {
                let (kind, data) = array_of(text);
                self.kept.contains(kind, &data)
            }
        }
    }

    /// Searches for texts whose fingerprints `of_part` selects. Returns the number of windows that are in the redacted dump but
    /// must not be, and the number of those that are allowed.
    fn part(&self, of_part: &(dyn Fn(u64) -> bool + Sync), amount: u64) -> (u64, u64) {
        let (before, both) = (BloomFilter::new(amount), BloomFilter::new(amount));
        visit_texts(self.a, &|kind, text| {
            prints_of(text, encodings(kind), &mut |print, _, _| {
                if of_part(print) {
                    before.add(print);
                }
            });
        });
        self.visit_redacted(&|print, _, _| {
            if of_part(print) && before.contains(print) {
                both.add(print);
            }
        });
        drop(before);
        let mut parts = 1;
        loop {
            let (mut found, mut allowed) = (0, 0);
            let is_complete = (0..parts).all(|part| {
                let (windows, is_complete) = self.windows(&both, of_part, part, parts);
                let (some, may) = self.count_found(&both, windows);
                found += some;
                allowed += may;
                is_complete
            });
            if is_complete || found > 0 {
                return (found, allowed);
            }
            parts *= 8;
            if parts > MAX_PARTS {
                // The rest was not searched, so this counts as a failure.
                return (1, allowed);
            }
        }
    }

    /// Returns the windows of the dump whose fingerprints are in the filter, for one of `parts` parts, and whether these are
    /// all windows of the part.
    fn windows(
        &self,
        both: &BloomFilter,
        of_part: &(dyn Fn(u64) -> bool + Sync),
        part: u64,
        parts: u64,
    ) -> (Windows, bool) {
        // The windows of names are not limited: their number is limited by the names of classes.
        let windows = Mutex::new((Windows::default(), 0_usize));
        let is_full = AtomicBool::new(false);
        visit_texts(self.a, &|kind, text| {
            let mut local: Vec<(u128, bool)> = Vec::new();
            prints_of(text, encodings(kind), &mut |print, run, at| {
                if of_part(print)
                    && both.contains(print)
                    && let Some(window) = Window::at(run, at)
                {
                    let identity = window.identity();
                    #[allow(clippy::cast_possible_truncation)] // A hash.
                    if (identity >> 64) as u64 % parts == part {
                        let is_name = window.ends::<OF_NAME>().iter().any(|end| self.names.contains(end));
                        local.push((identity, is_name));
                    }
                }
            });
            if local.is_empty() || self.stays(kind, text) {
                return;
            }
            let mut windows = lock(&windows);
            let (all, others) = &mut *windows;
            for (identity, is_name) in local {
                if !is_name && *others >= self.max_windows {
                    is_full.store(true, Ordering::Relaxed);
                } else if all.insert(identity, (is_name, AtomicBool::new(false))).is_none() {
                    *others += usize::from(!is_name);
                }
            }
        });
        let (windows, _) = windows.into_inner().unwrap_or_else(PoisonError::into_inner);
        (windows, !is_full.into_inner())
    }

    /// Returns the number of windows that are in the redacted dump but must not be, and the number of those that are allowed.
    fn count_found(&self, both: &BloomFilter, mut windows: Windows) -> (u64, u64) {
        if windows.is_empty() {
            return (0, 0);
        }
        let mark = |print: u64, run: &[u16], at: usize| {
            if both.contains(print)
                && let Some(window) = Window::at(run, at)
                && let Some((_, is_found)) = windows.get(&window.identity())
            {
                is_found.store(true, Ordering::Relaxed);
            }
        };
        self.visit_redacted(&mark);
        windows.retain(|_, (_, is_found)| *is_found.get_mut());
        let all = windows.len() as u64;
        windows.retain(|_, (is_name, is_found)| {
            is_found.store(false, Ordering::Relaxed);
            !*is_name
        });
        if !windows.is_empty() {
            // They may be parts of a kept text.
            visit_texts(self.a, &|kind, text| {
                let mut is_kept = None;
                prints_of(text, encodings(kind), &mut |print, run, at| {
                    let found = both.contains(print).then(|| Window::at(run, at)).flatten();
                    let found = found.and_then(|window| windows.get(&window.identity()));
                    let contains = || self.stays(kind, text);
                    if let Some((_, is_allowed)) = found.filter(|_| *is_kept.get_or_insert_with(contains)) {
                        is_allowed.store(true, Ordering::Relaxed);
                    }
                });
            });
            windows.retain(|_, (_, is_allowed)| !*is_allowed.get_mut());
        }
        let found = windows.len() as u64;
        (found, all - found)
    }

    /// Calls `visit` with the windows of the redacted dump: fingerprint, run and position.
    fn visit_redacted(&self, visit: &(dyn Fn(u64, &[u16], usize) + Sync)) {
        let bytes = self.b.bytes();
        let starts: Vec<usize> = (0..bytes.len()).step_by(BYTES).collect();
        parallel::for_each(&starts, |start| {
            // Overlapping, so that no window is split.
            let end = start.saturating_add(BYTES + WINDOW_BYTES + 1).min(bytes.len());
            let bytes = bytes.get(start..end).unwrap_or_default();
            prints_of(bytes, Encodings::All, &mut |print, run, at| visit(print, run, at));
        });
    }
}

/// Calls `visit` with the windows of a text: fingerprint, run and position.
fn prints_of(text: &[u8], encodings: Encodings, visit: &mut dyn FnMut(u64, &[u16], usize)) {
    runs(text, encodings, WINDOW, &mut |run| fingerprints(run, &mut |print, at| visit(print, run, at)));
}

/// Returns the encodings of the text in an array, or in a symbol.
fn encodings(kind: Option<BasicType>) -> Encodings {
    match kind {
        Some(BasicType::Char) => Encodings::Char,
        Some(_) => Encodings::All,
        None => Encodings::Narrow,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `visit` with the contents of all arrays of bytes and characters, and with all symbols.
fn visit_texts(dump: &Dump<'_>, visit: &(dyn Fn(Option<BasicType>, &[u8]) + Sync)) {
    let (summary, objects) = (dump.summary, &dump.graph.objects);
    let reader = dump.objects;
    let count = objects.len();
    let chunks: Vec<u32> = (0..count).step_by(CHUNK as usize).collect();
    parallel::for_each(&chunks, |start| {
        for object in (start..start.saturating_add(CHUNK).min(count)).map(ObjectIndex) {
            if let Some((kind @ (BasicType::Byte | BasicType::Char), data)) = reader.primitives(object) {
                visit(Some(kind), data);
            }
        }
    });
    let bytes = dump.bytes();
    let bodies = BodyReader::new(bytes, summary.id_size());
    let part = Header::parse(bytes).ok().and_then(|header| DumpPart::read(bytes, header).ok());
    for records in part.iter().flat_map(DumpPart::records) {
        let mut at = records.start;
        while let Some(record) = TopRecord::at(bytes, at).filter(|_| at < records.end) {
            if record.tag == tag::STRING
                && let Ok((_, text)) = bodies.string(&record)
            {
                visit(None, text);
            }
            at = usize::try_from(record.end()).unwrap_or(usize::MAX);
        }
    }
}

/// A Bloom filter.
struct BloomFilter {
    words: Vec<AtomicU64>,
    /// Number of bits, as a power of two.
    bits: u32,
}

impl BloomFilter {
    /// Creates a filter for a number of fingerprints.
    fn new(amount: u64) -> Self {
        let bits = (amount * BITS).max(1).ilog2() + 1;
        let bits = bits.clamp(FILTER_BITS.start, FILTER_BITS.end - 1);
        Self { words: (0..1_usize << (bits - 6)).map(|_| AtomicU64::new(0)).collect(), bits }
    }

    /// Returns the index of the word and the bits within it, for each of three hashes of a fingerprint.
    fn places(&self, print: u64) -> [(usize, u64); 3] {
        let one = print.wrapping_mul(0xd6e8_feb8_6659_fd93);
        [one, one.rotate_left(21) ^ print, one.rotate_left(42).wrapping_add(print)].map(|hash| {
            let bit = usize::try_from(hash >> (64 - self.bits)).unwrap_or(0);
            (bit / 64, 1 << (bit % 64))
        })
    }

    fn add(&self, print: u64) {
        for (word, bit) in self.places(print) {
            if let Some(word) = self.words.get(word).filter(|word| word.load(Ordering::Relaxed) & bit == 0) {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    fn contains(&self, print: u64) -> bool {
        let has = |(word, bit): (usize, u64)| {
            self.words.get(word).is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0)
        };
        self.places(print).into_iter().all(has)
    }
}
