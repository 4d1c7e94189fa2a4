//! Any bytes as a recording of Flight Recorder.

use super::with_threads;
use hprof_jfr::{Chunk, Recording};
use hprof_query::recordings::profile::binary::Want;
use hprof_query::recordings::profile::flight::{self, SiteEvent};
use hprof_query::recordings::stacks;

/// Reads bytes as a recording, with one thread and with two, which say the same.
pub fn flight(bytes: &[u8]) {
    let Ok(recording) = Recording::new(bytes) else { return };
    let mut end = 0;
    for span in recording.chunks() {
        assert!(end <= span.start && span.start < span.end && span.end <= bytes.len(), "{span:?}");
        end = span.end;
    }
    assert!(recording.problems().iter().all(|problem| problem.offset <= bytes.len() as u64));
    let want = Want { sites: true, traces: true, threads: true, ..Want::default() };
    let read = || flight::read(&recording, None, want.clone());
    let [one, two] = [false, true].map(|two| with_threads(two, read));
    assert_eq!(one.profile, two.profile, "one thread and two read different profiles");
    assert_eq!(one.facts, two.facts);
    assert_eq!(one.heap, two.heap);
    assert_eq!(one.memory, two.memory);
    let unfreed = Want { site_event: Some(SiteEvent::UnfreedMemory), ..want.clone() };
    let [first, second] =
        [false, true].map(|two| with_threads(two, || flight::read(&recording, None, unfreed.clone())));
    assert_eq!(first.profile.sites, second.profile.sites);
    assert_eq!(first.unfreed, second.unfreed);
    assert!(one.heap.collections.is_empty() == one.heap.trend().is_none());
    for span in recording.chunks() {
        let Ok(chunk) = Chunk::read(bytes, span) else { continue };
        let (mut all, mut in_parts) = (0, 0);
        flight::rows::visit(&chunk, 0..usize::MAX, |row| {
            assert!(row.bytes.is_none_or(|bytes| i64::try_from(bytes).is_ok()));
            all += 1;
        });
        for part in hprof_jfr::chunk::parts(bytes, span) {
            flight::rows::visit(&chunk, part, |_| in_parts += 1);
        }
        assert_eq!(all, in_parts, "events of all parts");
    }
    for of in stacks::available_weights(&one.profile) {
        let _ = stacks::stacks(&one.profile, &stacks::StackQuery::new(of));
    }
}
