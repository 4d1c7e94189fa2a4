//! Recordings of Flight Recorder that nobody wrote: an answer or an error, soon, with little memory, and the same answer
//! whatever the number of threads.

use std::time::Instant;

use hprof_jfr::{Chunk, Recording};
use hprof_query::recordings::profile::binary::Want;
use hprof_query::recordings::profile::flight;
use hprof_query::recordings::stacks;
use hprof_writer::flight::every_kind;

use crate::bytes::{MOST_BYTES, MOST_TIME, Watch, largest_allocation};
use crate::kit::mutate::{Numbers, setting};
use crate::kit::portion;

/// Bytes at the start of each chunk that are its header.
const HEADER: usize = 68;

/// Reads a recording in every way.
fn survive(bytes: &[u8], what: &dyn Fn() -> String) -> bool {
    let watch = Watch::begin(what());
    let start = Instant::now();
    let Ok(recording) = Recording::new(bytes) else { return false };
    let want = Want { sites: true, traces: true, threads: true, ..Want::default() };
    let report = flight::read(&recording, None, want);
    let again = flight::read(&recording, None, want);
    assert_eq!(report.profile, again.profile, "{}", what());
    assert_eq!(report.facts, again.facts, "{}", what());
    assert_eq!(report.heap, again.heap, "{}", what());
    let _ = report.heap.trend();
    for span in recording.chunks() {
        let Ok(chunk) = Chunk::read(bytes, span) else { continue };
        let (mut all, mut in_parts) = (0, 0);
        flight::rows::visit(&chunk, 0..usize::MAX, |_| all += 1);
        for part in hprof_jfr::chunk::parts(bytes, span) {
            flight::rows::visit(&chunk, part, |_| in_parts += 1);
        }
        assert_eq!(all, in_parts, "{}", what());
    }
    for of in stacks::held(&report.profile) {
        let _ = stacks::stacks(&report.profile, &stacks::StackQuery::new(of));
    }
    assert!(start.elapsed() < MOST_TIME, "{}: {:?}", what(), start.elapsed());
    assert!(largest_allocation() < MOST_BYTES, "{}: {} bytes at once", what(), largest_allocation());
    drop(watch);
    true
}

/// Changes some bytes, most of them where they tell something; or cuts, repeats and removes parts.
fn mutate(base: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for _ in 0..=numbers.below(4) {
        let length = bytes.len();
        let at = if numbers.below(4) == 0 { numbers.below(HEADER) } else { numbers.below(length) };
        match numbers.below(10) {
            0 => bytes.truncate(at),
            1 => {
                let part = bytes.get(at..(at + numbers.below(200)).min(length)).unwrap_or_default().to_vec();
                let to = numbers.below(length);
                drop(bytes.splice(to..to, part));
            }
            2 => drop(bytes.drain(at.min(length)..(at + numbers.below(50)).min(length))),
            3 => {
                // A number of nine bytes, or the largest of 32 bits.
                let number: &[u8] =
                    if numbers.below(2) == 0 { &[0xff; 9] } else { &[0xff, 0xff, 0xff, 0xff, 0x07] };
                let end = (at + number.len()).min(length);
                if let Some(place) = bytes.get_mut(at..end) {
                    place.copy_from_slice(&number[..place.len()]);
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = numbers.below(256) as u8;
                }
            }
        }
    }
    bytes
}

fn sample(name: &str) -> Vec<u8> {
    zstd::decode_all(&std::fs::read(format!("samples/flight/{name}.jfr.zst")).unwrap()[..]).unwrap()
}

#[test]
fn changed_recordings() {
    let [one, other] = [true, false].map(|compressed| every_kind(compressed).finish());
    let several = [&one[..], &other, &every_kind(true).unfinished()].concat();
    let seed = setting("HPROF_CLI_SOAK_SEED", 20_261_126);
    let cases = setting("HPROF_CLI_SOAK_CASES", portion::cases(20_000));
    // Real ones are a hundred times as large.
    let real = [sample("jdk17"), sample("jdk25-unfinished")];
    let mut read = 0;
    for case in 0..cases {
        let mut numbers = Numbers::new(seed ^ case.wrapping_mul(0xA24B_AED4_963E_E407));
        let base = match case % 20 {
            0 => &real[0],
            1 => &real[1],
            2..8 => &one,
            8..14 => &other,
            _ => &several,
        };
        let changed = mutate(base, &mut numbers);
        read += u64::from(survive(&changed, &|| format!("seed {seed}, case {case}")));
    }
    assert!(read > cases / 3, "most are still recordings: {read} of {cases}");
}

#[test]
fn recordings_cut_anywhere_and_with_each_byte_changed() {
    for compressed in [true, false] {
        let whole = every_kind(compressed).finish();
        for end in (0..whole.len()).step_by(portion::step()) {
            survive(&whole[..end], &|| format!("cut at {end}"));
        }
        for at in (0..whole.len()).step_by(portion::step()) {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                survive(&changed, &|| format!("{value:#x} at {at}"));
            }
        }
    }
}
