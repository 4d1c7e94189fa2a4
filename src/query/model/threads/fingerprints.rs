//! Fingerprints of stacks, comparable between dumps: hashes of class, method and line of all frames.
//!
//! Generated classes are hashed by the stem of their names ([`stem`]): the same lambda has another name in the next
//! run. Each frame and each trace is read once, regardless of how many threads name it.

use xxhash_rust::xxh3::Xxh3;

use hprof_base::naming::stable_names::stem;
use hprof_index::storage::id_map::IdMap;
use hprof_values::TraceSerial;

use super::frames::Frame;
use super::{ThreadRow, Threads};

/// Fingerprints of one dump.
#[derive(Debug)]
pub struct Fingerprints<'t, 'a> {
    threads: &'t Threads<'a>,
    /// Hash seed, the same for two dumps that are compared. The author of a dump cannot make stacks collide.
    seed: u64,
    /// Hashes by frame ID.
    of_frame: IdMap<u64, u128>,
    of_trace: IdMap<TraceSerial, Option<u128>>,
}

impl<'t, 'a> Fingerprints<'t, 'a> {
    /// Creates the fingerprints of these threads.
    pub fn new(threads: &'t Threads<'a>, seed: u64) -> Self {
        Self { threads, seed, of_frame: IdMap::default(), of_trace: IdMap::default() }
    }

    /// Returns the fingerprint of a thread's stack; `None` if the dump contains none of its frames.
    pub fn fingerprint(&mut self, row: &ThreadRow) -> Option<u128> {
        let trace = row.trace?;
        let Self { threads, seed, of_frame, of_trace } = self;
        *of_trace.entry(trace).or_insert_with(|| {
            let mut stack = Xxh3::with_seed(*seed);
            let mut is_empty = true;
            for id in threads.frames.of_trace(trace) {
                let frame = of_frame.entry(id).or_insert_with(|| {
                    of_frame_alone(&threads.frames.frame(id).unwrap_or(Frame::UNKNOWN), *seed)
                });
                stack.update(&frame.to_le_bytes());
                is_empty = false;
            }
            (!is_empty).then(|| stack.digest128())
        })
    }
}

/// Returns the hash of a frame. Names contain no byte 0xff, so it separates them.
fn of_frame_alone(frame: &Frame, seed: u64) -> u128 {
    let mut hash = Xxh3::with_seed(seed);
    for name in [frame.class.as_deref().map(stem), frame.method.as_deref().map(Into::into)] {
        hash.update(name.as_deref().unwrap_or_default().as_bytes());
        hash.update(&[0xff]);
    }
    // All unknown lines are equal.
    hash.update(&frame.line().unwrap_or(0).to_le_bytes());
    hash.digest128()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_class_method_and_line() {
        let hash = |class: &str, method: &str, line| {
            let frame = Frame {
                class: Some(class.into()),
                method: Some(method.into()),
                source: Some(format!("{line}.java").into()),
                line,
            };
            of_frame_alone(&frame, 7)
        };
        let lambda = hash("com.acme.Shop$$Lambda+0x0001", "run", -2);
        assert_eq!(lambda, hash("com.acme.Shop$$Lambda+0x0002", "run", -1));
        let frame = hash("a.B", "run", 5);
        for other in
            [hash("a.B", "run", 6), hash("a.C", "run", 5), hash("a.B", "ru", 5), hash("a.Br", "un", 5)]
        {
            assert_ne!(frame, other);
        }
    }
}
