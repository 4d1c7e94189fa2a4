//! What is said of the heap beside the suspects, in sentences.

use hprof_parser::RootKind;
use hprof_query::classes::loader_sets::Why;
use hprof_query::leaks::Leaks;
use hprof_query::leaks::heap_facts::{HeapFacts, LoaderGroup, MANY_FINALIZABLE, MUCH_GARBAGE, MUCH_OFF_HEAP};
use hprof_query::leaks::off_heap::OffHeap;
use hprof_query::paths::steps::Step;
use hprof_report::escape;
use hprof_report::number::{counted, grouped, human_bytes, percent};

use super::{Told, words};

/// A thread that retains less than the heap divided by this is not why memory ran out: 1 percent.
const LITTLE_OF_HEAP: u64 = 100;

/// What is said of the heap beside the suspects.
pub(super) fn lines(told: &Told) -> Vec<String> {
    let Told { leaks, facts, unreachable, .. } = told;
    let mut all = Vec::new();
    all.extend(out_of_memory(leaks, facts));
    all.extend(facts.loaders.iter().map(|group| loaders(leaks, group)));
    all.extend(finalizer(facts));
    all.extend(off_heap(&facts.off_heap));
    let (bytes, of) = *unreachable;
    if bytes > 0 && bytes >= of / 100 * MUCH_GARBAGE {
        let why = if told.is_damaged {
            "the dump is damaged, and objects whose GC roots are missing count as unreachable, leaks too"
        } else {
            "garbage that was not collected yet, or a dump made without a collection; a leak is reachable"
        };
        all.push(format!(
            "{} of the heap is unreachable ({}): {why}.",
            percent(bytes, of),
            human_bytes(bytes)
        ));
    }
    all
}

/// The thread that ran out of memory, where no suspect is it.
fn out_of_memory(leaks: &Leaks, facts: &HeapFacts) -> Option<String> {
    let thread = facts.out_of_memory.as_ref()?;
    if leaks.suspects.iter().any(|suspect| suspect.is_oom_thread) {
        return None;
    }
    let bytes = thread.retained_bytes.unwrap_or(0);
    let verdict = if bytes < leaks.reachable_bytes / LITTLE_OF_HEAP {
        format!("retains only {}: that is where it happened, not why", human_bytes(bytes))
    } else {
        format!("retains {}", words::amount(leaks, bytes))
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

/// What keeps a class loader alive, in the words of those who look for it, by the classes on the path to it.
pub(super) fn keeper(why: &Why) -> &'static str {
    const KEEPERS: &[(&str, &str)] = &[
        ("java.lang.ThreadLocal$ThreadLocalMap$Entry", "a ThreadLocal"),
        ("java.lang.ApplicationShutdownHooks", "a shutdown hook"),
        ("java.sql.DriverManager", "a JDBC driver"),
        ("java.sql.DriverInfo", "a JDBC driver"),
        ("java.util.Timer", "a timer"),
        ("java.util.ResourceBundle", "a resource bundle"),
        ("java.beans.Introspector", "a cache of bean information"),
        ("java.util.logging.LogManager", "a logger"),
        ("javax.management.MBeanServer", "an MBean"),
        ("java.security.ProtectionDomain", "a protection domain"),
    ];
    let names = || why.steps.iter().flat_map(|step| [step.class.as_deref(), step.label.as_deref()]).flatten();
    let known = KEEPERS.iter().find(|(class, _)| {
        names()
            .any(|name| name == *class || name.strip_prefix(class).is_some_and(|rest| rest.starts_with('$')))
    });
    let is_context = |step: &Step| step.reference.as_deref() == Some("contextClassLoader");
    let is_of_thread = why.start == 0 && why.root.kinds.contains(&RootKind::ThreadObject);
    match known {
        Some((_, keeper)) => keeper,
        None if why.steps.iter().any(is_context) => "the context class loader of a thread",
        None if is_of_thread => "a thread",
        None if why.steps.get(why.start).is_some_and(|step| step.is_static) => "a static field",
        None => "a GC root",
    }
}

fn loaders(leaks: &Leaks, group: &LoaderGroup) -> String {
    let of = group.class.as_ref().map(|class| format!(" ({class})")).unwrap_or_default();
    let defines = group.defines.as_deref().unwrap_or("the same classes");
    format!(
        "{} class loaders{of} define {defines}{}: with their classes and instances they retain {}.",
        grouped(group.loaders),
        match group.classes {
            0 | 1 => String::new(),
            2 => " and 1 other class".to_owned(),
            more => format!(" and {} other classes", grouped(more - 1)),
        },
        words::amount(leaks, group.retained_bytes),
    )
}

fn finalizer(facts: &HeapFacts) -> Option<String> {
    let waiting = facts.finalizer_queue.filter(|waiting| *waiting >= MANY_FINALIZABLE)?;
    let frame = facts
        .finalizer_frame
        .as_ref()
        .map(|frame| format!("; its thread is in {}", frame.qualified_method()));
    Some(format!("{} wait for the finalizer{}.", counted(waiting, "object"), frame.unwrap_or_default()))
}

fn off_heap(off_heap: &OffHeap) -> Option<String> {
    let OffHeap { direct, mapped, owners, reserved_bytes, limit_bytes } = off_heap;
    if direct.bytes.saturating_add(mapped.bytes) < MUCH_OFF_HEAP {
        return None;
    }
    let mut parts = Vec::new();
    if direct.bytes > 0 {
        parts.push(format!(
            "{} of direct memory in {}",
            human_bytes(direct.bytes),
            counted(direct.buffers, "buffer")
        ));
    }
    if mapped.bytes > 0 {
        parts.push(format!(
            "{} of mapped files in {}",
            human_bytes(mapped.bytes),
            counted(mapped.buffers, "buffer")
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
