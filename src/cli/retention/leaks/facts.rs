//! Sentences about facts of the heap other than the suspects.

use hprof_query::heap_facts::{HeapFacts, MANY_FINALIZABLE, MUCH_GARBAGE, MUCH_OFF_HEAP};
use hprof_query::leaks::Leaks;
use hprof_query::leaks::off_heap::OffHeap;
use hprof_report::escape;
use hprof_report::number::{format_count, human_bytes, percent};

use super::words::LACKING_ROOTS;
use super::{LeaksReport, claim, loaders, words};

/// Divisor of the heap: a thread that retains less than this part (1 percent) is not the reason that memory ran out.
const LITTLE_OF_HEAP: u64 = 100;

/// Returns sentences about facts of the heap other than the suspects.
pub(super) fn lines(told: &LeaksReport) -> Vec<String> {
    let LeaksReport { leaks, facts, unreachable, recording, .. } = told;
    let mut all = Vec::new();
    all.extend(out_of_memory(leaks, facts));
    all.extend(loaders::other_groups(leaks));
    all.extend(finalizer(facts));
    all.extend(off_heap(&leaks.off_heap));
    all.extend(recording.as_ref().and_then(|recording| Some(recording.heap_line()? + ".")));
    let (bytes, of) = *unreachable;
    if bytes > 0 && bytes >= of / 100 * MUCH_GARBAGE {
        let why = if told.is_damaged {
            "the dump is damaged, and objects whose GC roots are missing count as unreachable, even if they are a \
             leak"
                .to_owned()
        } else if leaks.lacks_roots {
            format!(
                "{LACKING_ROOTS}; objects that only these hold count as unreachable, even if they are a leak"
            )
        } else if told.has_filler {
            "garbage that has not been collected yet, or filler of unused memory, not a leak: leaked objects are reachable"
                .to_owned()
        } else {
            "garbage that has not been collected yet, not a leak: leaked objects are reachable".to_owned()
        };
        all.push(format!(
            "{} of the heap is unreachable ({}): {why}.",
            percent(bytes, of),
            human_bytes(bytes)
        ));
    }
    all
}

/// Describes the thread that ran out of memory, unless it is a suspect.
fn out_of_memory(leaks: &Leaks, facts: &HeapFacts) -> Option<String> {
    let thread = facts.out_of_memory.as_ref()?;
    if leaks.suspects.iter().any(|suspect| suspect.is_oom_thread) {
        return None;
    }
    let bytes = thread.retained_bytes.unwrap_or(0);
    let verdict = if bytes < leaks.reachable_bytes / LITTLE_OF_HEAP {
        format!("retains only {}: that is where it happened, not why", human_bytes(bytes))
    } else {
        format!("retains {}", claim::amount(leaks, bytes))
    };
    let name = thread.name.clone().unwrap_or_else(|| format!("{:#x}", thread.object));
    let frame = words::own_frames(&thread.frames)
        .first()
        .map(|frame| format!(" in {}", frame.frame.qualified_method()));
    Some(format!(
        "Thread {} ran out of memory{}, and {verdict}.",
        escape::quoted(&name),
        frame.unwrap_or_default()
    ))
}

fn finalizer(facts: &HeapFacts) -> Option<String> {
    let waiting = facts.finalizer_queue.filter(|waiting| *waiting >= MANY_FINALIZABLE)?;
    let frame = facts
        .finalizer_frame
        .as_ref()
        .map(|frame| format!("; its thread is in {}", frame.qualified_method()));
    Some(format!("{} wait for the finalizer{}.", format_count(waiting, "object"), frame.unwrap_or_default()))
}

fn off_heap(off_heap: &OffHeap) -> Option<String> {
    let OffHeap { direct, mapped, owners, reserved_bytes, limit_bytes, .. } = off_heap;
    if direct.bytes.saturating_add(mapped.bytes) < MUCH_OFF_HEAP {
        return None;
    }
    let mut parts = Vec::new();
    if direct.bytes > 0 {
        parts.push(format!(
            "{} of direct memory in {}",
            human_bytes(direct.bytes),
            format_count(direct.buffers, "buffer")
        ));
    }
    if mapped.bytes > 0 {
        parts.push(format!(
            "{} of mapped files in {}",
            human_bytes(mapped.bytes),
            format_count(mapped.buffers, "buffer")
        ));
    }
    let owner = owners.first().and_then(|owner| {
        let field = owner.field.as_ref()?;
        Some(format!("; {} of it below {field}", human_bytes(owner.buffers.bytes)))
    });
    let reserved = match (reserved_bytes, limit_bytes) {
        (Some(reserved), Some(limit)) => {
            format!(
                "; the JVM counts {} as reserved, of at most {}",
                human_bytes(*reserved),
                human_bytes(*limit)
            )
        }
        _ => String::new(),
    };
    Some(format!("Outside the heap: {}{}{reserved}.", parts.join(", "), owner.unwrap_or_default()))
}
