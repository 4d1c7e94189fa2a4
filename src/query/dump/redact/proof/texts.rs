//! Search for texts of a dump in the redacted one.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hprof_index::graph::numbers::ObjectIndex;
use hprof_parser::record::{BodyReader, Record, is_known, tag};
use hprof_parser::{BasicType, Header};

use super::super::kept::KeptTexts;
use super::super::plan::Plan;
use super::{ProofDump, ProofRow};
use crate::objects::reader::ObjectReader;
use crate::parallel;

/// Number of characters at the same place of the same object that are a text which survived.
const SAME_PLACE: usize = 6;
/// Number of characters anywhere that are a text which survived: shorter ones meet by chance.
const WINDOW: usize = 16;
/// Number of characters of a fingerprint: each window contains `WINDOW - GRAM + 1` of them, the smallest of which is
/// compared.
const GRAM: usize = 9;
/// Number of characters at either end of a window that are of a name, if the window is part of it: what is beside a
/// name may look like a letter.
const OF_NAME: usize = 12;
/// Bits of the filter of fingerprints, as a power of two.
const FILTER_BITS: u32 = 29;
/// Maximum number of windows that are compared exactly.
const MAX_CANDIDATES: usize = 4 << 20;
/// Objects or bytes per task of a thread.
const CHUNK: u32 = 1 << 16;
const BYTES: usize = 4 << 20;

/// Searches for characters at the same place of the same array.
pub(super) fn same_place(kept: &KeptTexts, a: ProofDump<'_>, b: ProofDump<'_>) -> ProofRow {
    let [one, two] = [a, b].map(|dump| ObjectReader::new(dump.heap.summary(), dump.graph, dump.bytes));
    let count = a.graph.objects.len();
    let chunks: Vec<u32> = (0..count).step_by(CHUNK as usize).collect();
    let counts = parallel::map(&chunks, |start| {
        let (mut found, mut allowed) = (0_u64, 0_u64);
        for object in (start..start.saturating_add(CHUNK).min(count)).map(ObjectIndex) {
            let Some((kind @ (BasicType::Byte | BasicType::Char), x)) = one.primitives(object) else {
                continue;
            };
            let Some((_, y)) = two.primitives(object) else { continue };
            let size = if kind == BasicType::Byte { 1 } else { 2 };
            if !has_run(x, y, size) {
                continue;
            }
            let is_repeated = x.chunks(size).all(|value| value == x.get(..size).unwrap_or_default());
            if is_repeated || kept.contains(kind, x) { allowed += 1 } else { found += 1 }
        }
        (found, allowed)
    });
    ProofRow {
        what: "texts_at_the_same_place",
        differences: counts.iter().map(|(found, _)| found).sum(),
        allowed: counts.iter().map(|(_, allowed)| allowed).sum(),
        reason: Some("names that stay, and arrays of one repeated value"),
    }
}

/// Returns `true` if two arrays have the same characters, not zero, at enough places in a row.
fn has_run(x: &[u8], y: &[u8], size: usize) -> bool {
    let mut run = 0;
    x.chunks_exact(size).zip(y.chunks_exact(size)).any(|(x, y)| {
        let is_zero = x.iter().all(|byte| *byte == 0);
        // Zeros are half of a text in UTF-16.
        run = if x != y { 0 } else { run + usize::from(!is_zero) };
        run >= SAME_PLACE
    })
}

/// Searches for texts anywhere in the redacted file.
pub(super) fn anywhere(plan: &Plan, kept: &KeptTexts, a: ProofDump<'_>, b: ProofDump<'_>) -> ProofRow {
    let filter = Filter::new();
    visit_texts(a, &|_, text| runs(text, &mut |run| fingerprints(run, &mut |print, _| filter.add(print))));
    // Windows of the redacted dump whose fingerprint may be one of those.
    let candidates: Mutex<HashSet<u128>> = Mutex::default();
    let starts: Vec<usize> = (0..b.bytes.len()).step_by(BYTES).collect();
    let overflow = AtomicU64::new(0);
    parallel::each(&starts, |start| {
        let mut local = HashSet::new();
        // Overlapping, so that no window is cut.
        let end = start.saturating_add(BYTES + 4 * WINDOW).min(b.bytes.len());
        runs(b.bytes.get(start..end).unwrap_or_default(), &mut |run| {
            fingerprints(run, &mut |print, around| {
                if filter.contains(print) {
                    local.extend(around.windows(WINDOW).filter_map(text_window));
                }
            });
        });
        let mut all = lock(&candidates);
        if all.len() < MAX_CANDIDATES {
            all.extend(local);
        } else {
            overflow.fetch_add(local.len() as u64, Ordering::Relaxed);
        }
    });
    let candidates = lock(&candidates);
    let (found, names): (Mutex<HashSet<u128>>, Mutex<HashSet<u128>>) = Default::default();
    visit_texts(a, &|kind, text| {
        let is_kept = kind.is_some_and(|kind| kept.contains(kind, text));
        runs(text, &mut |run| {
            let windows = run.windows(WINDOW).filter_map(text_window);
            let local: Vec<u128> = windows.filter(|window| candidates.contains(window)).collect();
            if !local.is_empty() {
                lock(if is_kept { &names } else { &found }).extend(local);
            }
        });
    });
    let (found, whole) = (lock(&found), lock(&names));
    let mut names: HashSet<[u8; OF_NAME]> = HashSet::new();
    let mut add = |text: &[u8]| {
        let parts = text.windows(OF_NAME).filter_map(|part| part.first_chunk().copied());
        names.extend(parts);
    };
    plan.texts.iter().for_each(|(text, _)| add(text));
    kept.visit(&mut add);
    let is_of_name = |window: &u128| {
        let bytes = window.to_le_bytes();
        let parts = [bytes.first_chunk(), bytes.last_chunk()];
        parts.into_iter().flatten().any(|part: &[u8; OF_NAME]| names.contains(part))
    };
    let allowed = found.iter().filter(|window| whole.contains(window) || is_of_name(window)).count() as u64;
    ProofRow {
        what: "texts_anywhere",
        differences: found.len() as u64 - allowed + overflow.into_inner(),
        allowed,
        reason: Some("parts of names that stay"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `visit` with the contents of all arrays of bytes and characters, and with all symbols.
fn visit_texts(dump: ProofDump<'_>, visit: &(dyn Fn(Option<BasicType>, &[u8]) + Sync)) {
    let (summary, objects) = (dump.heap.summary(), &dump.graph.objects);
    let reader = ObjectReader::new(summary, dump.graph, dump.bytes);
    let count = objects.len();
    let chunks: Vec<u32> = (0..count).step_by(CHUNK as usize).collect();
    parallel::each(&chunks, |start| {
        for object in (start..start.saturating_add(CHUNK).min(count)).map(ObjectIndex) {
            if let Some((kind @ (BasicType::Byte | BasicType::Char), data)) = reader.primitives(object) {
                visit(Some(kind), data);
            }
        }
    });
    // Symbols precede the objects; a damaged record ends them.
    let (bytes, id_size) = (dump.bytes, summary.id_size());
    let bodies = BodyReader::new(bytes, id_size);
    let mut at = Header::parse(bytes).map_or(bytes.len(), |header| header.len);
    while let Some(record) = Record::at(bytes, at).filter(|record| is_known(record.tag)) {
        if record.tag == tag::STRING
            && let Ok((_, text)) = bodies.string(&record)
        {
            visit(None, text);
        }
        at = usize::try_from(record.end()).unwrap_or(usize::MAX);
    }
}

/// Returns the characters of a window as a number; `None` if they are all the same.
fn text_window(window: &[u8]) -> Option<u128> {
    let bytes: [u8; WINDOW] = window.try_into().ok()?;
    let is_text = bytes.iter().any(|byte| *byte != bytes[0]) && bytes.iter().all(|byte| is_text(*byte));
    is_text.then(|| u128::from_le_bytes(bytes))
}

fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r')
}

/// Calls `visit` with each run of ASCII characters: consecutive bytes, and UTF-16 in both orders.
fn runs(bytes: &[u8], visit: &mut dyn FnMut(&[u8])) {
    for run in bytes.split(|byte| !is_text(*byte)).filter(|run| run.len() >= WINDOW) {
        visit(run);
    }
    // Every second byte is zero: the others, without regard to which is first.
    let mut run = Vec::new();
    let mut at = 0;
    while at + 1 < bytes.len() {
        let (Some(one), Some(zero)) = (bytes.get(at), bytes.get(at + 1)) else { break };
        if is_text(*one) && *zero == 0 {
            run.push(*one);
            at += 2;
            continue;
        }
        // The last character in big-endian order is followed by anything.
        if !run.is_empty() && is_text(*one) {
            run.push(*one);
        }
        if run.len() >= WINDOW {
            visit(&run);
        }
        run.clear();
        at += 1;
    }
    if let Some(last) = bytes.get(at).filter(|byte| is_text(**byte)) {
        run.push(*last);
    }
    if run.len() >= WINDOW {
        visit(&run);
    }
}

/// Calls `visit` with the fingerprints of a run, and the characters that have them: of each window, the smallest hash
/// of its parts (winnowing, Schleimer et al. 2003). Two equal windows have the same fingerprint.
fn fingerprints(run: &[u8], visit: &mut dyn FnMut(u64, &[u8])) {
    let hash = |gram: &[u8]| {
        gram.iter().fold(0_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
        })
    };
    let hashes: Vec<u64> = run.windows(GRAM).map(hash).collect();
    for (at, window) in hashes.windows(WINDOW - GRAM + 1).enumerate() {
        if let (Some(least), Some(text)) = (window.iter().min(), run.get(at..at + WINDOW)) {
            visit(*least, text);
        }
    }
}

/// A Bloom filter.
struct Filter(Vec<AtomicU64>);

impl Filter {
    fn new() -> Self {
        Self((0..1_usize << (FILTER_BITS - 6)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Returns the words and bits of a fingerprint.
    fn places(print: u64) -> [(usize, u64); 3] {
        let one = print.wrapping_mul(0xd6e8_feb8_6659_fd93);
        [one, one.rotate_left(21) ^ print, one.rotate_left(42).wrapping_add(print)].map(|hash| {
            let bit = usize::try_from(hash >> (64 - FILTER_BITS)).unwrap_or(0);
            (bit / 64, 1 << (bit % 64))
        })
    }

    fn add(&self, print: u64) {
        for (word, bit) in Self::places(print) {
            if let Some(word) = self.0.get(word).filter(|word| word.load(Ordering::Relaxed) & bit == 0) {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    fn contains(&self, print: u64) -> bool {
        let has = |(word, bit): (usize, u64)| {
            self.0.get(word).is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0)
        };
        Self::places(print).into_iter().all(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_windows_have_equal_fingerprints() {
        let text = b"the quick brown fox jumps over the lazy dog, again and again";
        let prints = |run: &[u8]| {
            let mut prints = Vec::new();
            fingerprints(run, &mut |print, _| prints.push(print));
            prints
        };
        let all = prints(text);
        for window in text.windows(WINDOW) {
            assert!(all.contains(&prints(&[b"<<<<", window, b">>>>>"].concat())[4]));
        }
    }

    #[test]
    fn runs_are_found_in_all_encodings() {
        let text = "jdbc:postgresql://db/prod?password=x";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [text.as_bytes(), &little, &big] {
            for (before, after) in [(&b""[..], &b""[..]), (b"\x01\x02", b"\xff"), (b"\x00", b"\x00\x00\x00")]
            {
                let mut found = Vec::new();
                runs(&[before, bytes, after].concat(), &mut |run| found.push(run.to_vec()));
                assert_eq!(found, [text.as_bytes()], "{bytes:?}");
            }
        }
    }
}
