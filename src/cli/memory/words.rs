//! The conclusion of a ledger in words: the first sentence, advice, and the totals.

use hprof_memory::Ledger;
use hprof_memory::advice::{self, Advice, UNEXPLAINED_PERCENT, is_share};
use hprof_memory::cgroup::Cgroup;
use hprof_memory::ledger::{LedgerRow, MemoryKind};
use hprof_report::number::format_count;

use crate::cli::prelude::*;
use crate::cli::shared::heap_columns;

use super::MemorySource;

/// Unexplained memory in a list of kinds.
pub(super) const UNEXPLAINED: &str = "that nothing names";
/// Minimum share of a kind for the first sentence, in percent.
const TOLD_PERCENT: u64 = 5;
/// Maximum number of kinds in the first sentence.
const TOLD: usize = 4;

/// Returns the name of a kind for people.
pub(super) fn kind(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Heap => "heap",
        MemoryKind::DirectBuffers => "direct buffers",
        MemoryKind::Unsafe => "Unsafe memory",
        MemoryKind::Metaspace => "metaspace",
        MemoryKind::ClassSpace => "class space",
        MemoryKind::Archive => "class archive (CDS)",
        MemoryKind::CodeCache => "code cache",
        MemoryKind::ThreadStacks => "thread stacks",
        MemoryKind::Collector => "structures of the collector",
        MemoryKind::Malloc => "malloc of the JVM",
        MemoryKind::MallocFree => "free memory that malloc keeps",
        MemoryKind::MappedFiles => "mapped files",
        MemoryKind::Modules => "JDK modules",
        MemoryKind::Libraries => "libraries",
        MemoryKind::SharedMemory => "shared memory",
    }
}

/// Returns the first sentence, and the lines of advice below it.
pub(super) fn lines(source: &MemorySource) -> Vec<String> {
    let mut lines = vec![sentence(source)];
    lines.extend(advice_lines(source));
    lines
}

/// Returns the advice in words.
pub(super) fn advice_lines(source: &MemorySource) -> Vec<String> {
    {
        let all = advice::advice(&source.ledger, source.sources());
        all.iter().map(|advice| advice_text(*advice, source.saved.pid.is_some())).collect()
    }
}

/// Returns the first sentence.
pub(super) fn sentence(source: &MemorySource) -> String {
    let ledger = &source.ledger;
    let Some(process) = ledger.process_bytes else {
        return match source.dump_bytes {
            Some(heap) => dump_sentence(source, heap),
            None => recording_sentence(source),
        };
    };
    let limited = source.sources().cgroup.as_ref().filter(|group| group.limit_bytes.is_some());
    let head = match limited.and_then(|group| group.current_bytes.zip(group.limit_bytes)) {
        Some((current, limit)) => format!("{} of {}", human_bytes(current), human_bytes(limit)),
        None => format!("{} resident", human_bytes(process)),
    };
    let mut parts = parts(ledger);
    if let Some(bytes) = source.hugetlb_bytes().filter(|bytes| *bytes > 0) {
        parts.push(format!("beside it {} in huge pages (hugetlbfs)", human_bytes(bytes)));
    }
    if let Some(group) = limited {
        parts.extend(group_parts(group, ledger));
    }
    format!("{head}: {}", parts.join(", "))
}

/// Returns the largest kinds of a ledger in words.
pub(super) fn largest(ledger: &Ledger) -> String {
    parts(ledger).join(", ")
}

fn parts(ledger: &Ledger) -> Vec<String> {
    let process = ledger.process_bytes.unwrap_or(0);
    let is_told = |bytes: u64, percent: u64| is_share(bytes, process, percent);
    let mut told: Vec<(u64, String)> = ledger
        .rows
        .iter()
        .filter_map(|row| Some((row.resident_bytes?, row)))
        .filter(|(bytes, _)| is_told(*bytes, TOLD_PERCENT))
        .take(TOLD)
        .map(|(bytes, row)| (bytes, row_text(bytes, row)))
        .collect();
    let unexplained = ledger.unexplained_bytes.unwrap_or(0);
    if is_told(unexplained, UNEXPLAINED_PERCENT) {
        let at = told.iter().position(|(bytes, _)| *bytes < unexplained).unwrap_or(told.len());
        told.insert(at, (unexplained, format!("{} {UNEXPLAINED}", human_bytes(unexplained))));
    }
    if told.is_empty() {
        return vec!["no kind of memory is a large part".to_owned()];
    }
    told.into_iter().map(|(_, text)| text).collect()
}

/// Returns a count of what a kind of memory consists of: `20 threads`.
pub(super) fn count_text(kind: MemoryKind, count: u64) -> String {
    match kind {
        MemoryKind::ThreadStacks => format_count(count, "thread"),
        MemoryKind::Metaspace if count != 1 => format!("{} classes", group_digits(count)),
        MemoryKind::Metaspace => "1 class".to_owned(),
        _ => format_count(count, "file"),
    }
}

fn row_text(bytes: u64, row: &LedgerRow) -> String {
    let name = match row.kind {
        // Without a dump, nothing tells these from each other.
        MemoryKind::DirectBuffers if row.source == "NMT" => "direct buffers or Unsafe memory",
        other => kind(other),
    };
    let detail = match (&row.holder, row.count, row.kind) {
        (Some(file), count, MemoryKind::MappedFiles) if file.contains('/') => {
            let name = file.rsplit('/').next().unwrap_or(file);
            match count {
                Some(2..) => format!(" ({}, the largest {name})", format_count(count.unwrap_or(0), "file")),
                _ => format!(" ({name})"),
            }
        }
        (Some(holder), _, MemoryKind::Malloc) => format!(" (most: {holder})"),
        (Some(holder), ..) => format!(" (held by {holder})"),
        (None, Some(count), kind) => format!(" ({})", count_text(kind, count)),
        (None, None, _) => String::new(),
    };
    format!("{} {name}{detail}", human_bytes(bytes))
}

/// Returns what a control group counts beside the process.
fn group_parts(group: &Cgroup, ledger: &Ledger) -> Vec<String> {
    let current = group.current_bytes.unwrap_or(0);
    let is_told = |bytes: &u64| is_share(*bytes, current, TOLD_PERCENT);
    let mut parts = Vec::new();
    if let Some(others) = ledger.other_processes_bytes(group).filter(is_told) {
        parts.push(format!("{} in other processes of the control group", human_bytes(others)));
    }
    if let Some(kernel) = group.kernel_bytes.filter(is_told) {
        parts.push(format!("{} kernel memory", human_bytes(kernel)));
    }
    if let Some(cache) = ledger.other_cache_bytes(group).filter(is_told) {
        let reclaimable = group.reclaimable_bytes.unwrap_or(0).min(cache);
        parts.push(format!(
            "{} other page cache ({} of it can be reclaimed)",
            human_bytes(cache),
            human_bytes(reclaimable)
        ));
    }
    parts
}

/// Returns the sentence about a dump without its process; `heap` is the size of its reachable objects.
fn dump_sentence(source: &MemorySource, heap: u64) -> String {
    let heap = format!("{} of reachable objects in the heap", human_bytes(heap));
    let rows = source.ledger.rows.iter().filter_map(|row| {
        let bytes = row.committed_bytes.filter(|bytes| *bytes > 0)?;
        Some(row_text(bytes, row))
    });
    let threads = source.sources().threads.map(|threads| format_count(threads, "thread"));
    let parts: Vec<String> = std::iter::once(heap).chain(rows).chain(threads).collect();
    format!("{}; a dump says nothing about the rest of the process", parts.join(", "))
}

/// Returns the sentence about a recording without its process.
fn recording_sentence(source: &MemorySource) -> String {
    let figures = source.over_time().map(heap_columns::figure_lines).unwrap_or_default();
    match figures.first() {
        Some((label, text)) => format!("{label}: {text}"),
        None => "the recording has no events about the memory of the process: jdk.ResidentSetSize and \
                 jdk.NativeMemoryUsage are of JDK 20 and later"
            .to_owned(),
    }
}

/// Returns advice in words. `is_process` is `true` if a JVM was asked, now or when a file was saved.
fn advice_text(advice: Advice, is_process: bool) -> String {
    match advice {
        Advice::LimitReached { kills } => format!(
            "the kernel ended {} of this control group because memory ran out",
            if kills == 1 { "a process".to_owned() } else { format!("{} processes", group_digits(kills)) }
        ),
        Advice::TrackingOff { unexplained_bytes, .. } if !is_process => format!(
            "to see what the unexplained {} are, give the JVM's account with --nmt FILE (`jcmd PID VM.native_memory`)",
            human_bytes(unexplained_bytes)
        ),
        Advice::TrackingOff { unexplained_bytes, malloc_bytes } => {
            let malloc = malloc_bytes.map(|bytes| format!(" (malloc has {} in use)", human_bytes(bytes)));
            format!(
                "Native Memory Tracking is off, and 10 % or more are unexplained: to see what these {}{} are, start the JVM \
                 with -XX:NativeMemoryTracking=summary (it costs 5 to 10 % of speed); --dump FILE names direct buffers now",
                human_bytes(unexplained_bytes),
                malloc.unwrap_or_default()
            )
        }
        Advice::HoldersUnknown { .. } => {
            "--dump FILE tells direct buffers, here 10 % or more, from Unsafe memory, and says who holds them; \
             `hprof-cli dump PID` takes a dump"
                .to_owned()
        }
        Advice::OutsideOfJvm { unexplained_bytes } => format!(
            "{}, 10 % or more of the process, are not counted by the JVM: malloc of native libraries (JNI, compression, image \
             codecs), or free parts of malloc, which `hprof-cli memory PID --trim` returns",
            human_bytes(unexplained_bytes)
        ),
        Advice::MallocFree { bytes } => format!(
            "glibc's malloc keeps {} that the program has freed, 10 % or more of the process: `hprof-cli memory PID --trim` \
             returns it to the system, MALLOC_ARENA_MAX=2 limits it",
            human_bytes(bytes)
        ),
        Advice::Arenas { arenas, bytes } => format!(
            "{} of glibc's malloc {} {}, 10 % or more of the process: MALLOC_ARENA_MAX=2 limits them, `hprof-cli memory PID \
             --trim` returns what is free",
            format_count(arenas, "arena"),
            if arenas == 1 { "has" } else { "have" },
            human_bytes(bytes)
        ),
        Advice::DirectLimit { bytes, limit_bytes } => format!(
            "direct buffers have {} and may grow to {}, the maximum heap size, as -XX:MaxDirectMemorySize is not set",
            human_bytes(bytes),
            human_bytes(limit_bytes)
        ),
        Advice::Stacks { threads, bytes } => format!(
            "{} have {} of stacks, 10 % or more of the process: fewer threads, virtual threads, or a smaller -Xss",
            format_count(threads, "thread"),
            human_bytes(bytes)
        ),
        Advice::CodeCache { used_bytes, limit_bytes } => format!(
            "the code cache has {} of {}, 90 % or more: the JVM stops compiling when it is full; -XX:ReservedCodeCacheSize \
             enlarges it",
            human_bytes(used_bytes),
            human_bytes(limit_bytes)
        ),
        Advice::HeapBeyondLimit { heap_bytes, other_bytes, limit_bytes } => format!(
            "the heap may grow to {}, and the rest of the process has {} that cannot be dropped: more than the limit of {}",
            human_bytes(heap_bytes),
            human_bytes(other_bytes),
            human_bytes(limit_bytes)
        ),
    }
}

/// Returns the lines below the table: the sums of process and control group.
pub(super) fn totals(source: &MemorySource) -> Vec<String> {
    let (ledger, sources) = (&source.ledger, source.sources());
    let mut lines = Vec::new();
    if let Some(process) = ledger.process_bytes {
        let unexplained = ledger.unexplained_bytes.unwrap_or(0);
        lines.push(format!("unexplained  {} ({})", human_bytes(unexplained), percent(unexplained, process)));
        let mut line = format!("process      {} resident (PSS)", human_bytes(process));
        let more = [
            ("peak", sources.peak_bytes),
            ("in swap", source.swap_bytes().filter(|bytes| *bytes > 0)),
            ("in huge pages (hugetlbfs), not part of it", source.hugetlb_bytes().filter(|bytes| *bytes > 0)),
        ];
        for (name, bytes) in more {
            line.extend(bytes.map(|bytes| format!(", {name} {}", human_bytes(bytes))));
        }
        lines.push(line);
    }
    for (label, text) in source.over_time().map(heap_columns::figure_lines).unwrap_or_default() {
        lines.push(format!("over time    {label}: {text}"));
    }
    if let Some(group) = &sources.cgroup {
        let parts = [
            ("anonymous", group.anon_bytes),
            ("page cache", group.file_bytes),
            ("kernel", group.kernel_bytes),
            ("peak", group.peak_bytes),
            ("limit", group.limit_bytes),
        ];
        let mut line = format!("cgroup       {}", human_bytes(group.current_bytes.unwrap_or(0)));
        for (name, bytes) in parts {
            line.extend(bytes.map(|bytes| format!(", {name} {}", human_bytes(bytes))));
        }
        lines.push(line);
    }
    lines
}
