//! Sentences that describe suspects, and short descriptions of the evidence.

use hprof_query::compare::places::library;
use hprof_query::leaks::contents::Reason;
use hprof_query::leaks::evidence::{Path, Paths};
use hprof_query::leaks::off_heap::OffHeapUse;
use hprof_query::leaks::{
    Cause, Conclusion, LargestFinding, LeakVerdict, Leaks, MapEntry, NamedElements, NamedObject, OtherHolder,
    Suspect, SuspectKind, SuspectSubject,
};
use hprof_query::paths::steps::RootView;
use hprof_query::threads::StackFrame;
use hprof_query::threads::frames::Frame;
use hprof_query::waste::estimate::WastedPart;
use hprof_report::number::{format_count, group_digits, human_bytes, percent, whole_percent};
use hprof_report::{escape, fit};
use hprof_values::names::is_of_jdk;

use crate::cli::shared::{containers, holder, paths};

use super::allocated;
use super::claim::{Claim, amount};
use super::loaders;
use super::parts::{NAMED_PARTS, elements, local_text, parts, place, pool};

/// Suffix if only soft references lead to what accumulates.
const BEHIND_SOFT: &str = " behind soft references, which the JVM may clear";
/// Reason why unreachable objects may be alive.
pub(crate) const LACKING_ROOTS: &str =
    "the dump contains no GC roots of stack frames, JNI globals and boot classes";
/// Maximum number of threads of a queue that a sentence names.
const NAMED_THREADS: usize = 3;

/// Maximum number of characters of a line, exceeded only by hostile names.
const LONGEST_LINE: usize = 1 << 12;

/// Shortens a line of text for people.
pub(crate) fn line(text: &str) -> String {
    fit::middle(text, LONGEST_LINE)
}

/// Returns the verdict on the heap in one line, the same in all results.
pub(crate) fn headline(leaks: &Leaks) -> String {
    let heap = format!("the reachable heap of {}", human_bytes(leaks.reachable_bytes));
    let share = |bytes: u64| percent(bytes, leaks.reachable_bytes);
    let holders: Vec<&Suspect> = leaks.large().collect();
    let garbage = leaks.garbage_bytes().map(|bytes| {
        let (part, used) = (percent(bytes, leaks.used_bytes), human_bytes(leaks.used_bytes));
        if leaks.lacks_roots {
            return format!("{part} of the {used} used is unreachable, but may be alive: {LACKING_ROOTS}");
        }
        format!("{part} of the {used} used is unreachable and will be collected")
    });
    let conclusion = match (leaks.conclusions.as_slice(), holders.as_slice()) {
        ([first, others @ ..], _) => {
            let what = claim(leaks, first).what;
            let count = format_count(leaks.conclusions.len() as u64, "leak suspect");
            let all = share(leaks.concluded_bytes);
            Some(match others {
                [] if leaks.is_outside(first) => format!("{count}, outside {heap}: {what}"),
                [] => format!("{count}, {all} of {heap}: {what}"),
                _ => {
                    // Each share follows the cause that it belongs to.
                    let told = conclusions_in_headline(leaks).map(|one| {
                        let Claim { what, bytes, .. } = claim(leaks, one);
                        bytes.map_or_else(|| what.clone(), |bytes| format!("{what} ({})", share(bytes)))
                    });
                    format!("{count} retain {all} of {heap}: {}", told.collect::<Vec<_>>().join("; "))
                }
            })
        }
        ([], [first, ..]) if first.verdict != LeakVerdict::Holder => {
            let (what, share) = (accumulation(first).what, share(first.explained_bytes()));
            let why = first.evidence.first().map(|why| format!("; {why}")).unwrap_or_default();
            Some(format!("No leak suspect: {what}: {share} of {heap}{why}"))
        }
        ([], [first, ..]) => {
            let retains = if first.kind == SuspectKind::Single { "retains" } else { "retain" };
            let (subject, share) = (subject(first), share(first.retained_bytes));
            let but = if leaks.largest_place_bytes > leaks.threshold_bytes {
                "and nothing accumulates there".to_owned()
            } else {
                format!(
                    "but no single place more than {}",
                    percent(leaks.threshold_bytes, leaks.reachable_bytes)
                )
            };
            Some(format!("No leak suspect: {subject} {retains} {share} of {heap}, {but}"))
        }
        // If there is garbage, the rest needs no mention.
        ([], []) if garbage.is_some() => None,
        ([], []) if leaks.reachable_bytes == 0 => {
            Some("No leak suspect: there are no reachable objects".to_owned())
        }
        ([], []) => Some(format!(
            "No leak suspect: nothing retains more than {} of {heap}",
            share(leaks.threshold_bytes)
        )),
    };
    let all: Vec<String> = garbage.into_iter().chain(conclusion).collect();
    line(&all.join("; "))
}

/// Maximum number of causes that the headline names.
const NAMED_CAUSES: usize = 3;
/// Divisor of the heap: a further cause is named if it retains at least this part.
const PART_OF_CAUSE: u64 = 10;

/// Returns the conclusions that the headline names: the first, and up to two more that retain a tenth of the heap.
pub(crate) fn conclusions_in_headline(leaks: &Leaks) -> impl Iterator<Item = &Conclusion> {
    let is_large = |one: &Conclusion| one.retained_bytes >= leaks.reachable_bytes / PART_OF_CAUSE;
    let named = leaks.conclusions.iter().enumerate().take(NAMED_CAUSES);
    named.filter(move |(at, one)| *at == 0 || is_large(one)).map(|(_, one)| one)
}

/// Describes a conclusion in a sentence.
pub(crate) fn conclusion(leaks: &Leaks, one: &Conclusion) -> String {
    format!("{}.", claim(leaks, one).text(leaks))
}

/// Describes a conclusion in a sentence, followed by a sentence about its allocation if there is a recording.
pub(crate) fn with_allocation(leaks: &Leaks, one: &Conclusion) -> String {
    let suspect = match one.cause {
        Cause::Suspect(at) => leaks.suspects.get(at),
        Cause::Loaders { .. } => None,
    };
    let allocated = suspect.and_then(allocated::sentence);
    std::iter::once(conclusion(leaks, one)).chain(allocated).collect::<Vec<_>>().join(" ")
}

fn claim(leaks: &Leaks, one: &Conclusion) -> Claim {
    let claim = match &one.cause {
        Cause::Suspect(at) => leaks.suspects.get(*at).map(accumulation),
        Cause::Loaders { group, .. } => leaks.loaders.get(*group).map(loaders::claim),
    };
    let tables = one.side_tables.iter().filter_map(|at| place(leaks.suspects.get(*at)?));
    let tables: Vec<String> = tables.collect();
    let claim = claim.map(|claim| match tables.as_slice() {
        [] => claim,
        tables => Claim {
            what: format!("{}, with {} about these classes", claim.what, tables.join(" and ")),
            bytes: Some(one.retained_bytes),
            ..claim
        },
    });
    claim.unwrap_or_else(|| Claim { what: String::new(), joint: "", bytes: Some(one.retained_bytes) })
}

/// Returns whether the biggest object is a leak suspect.
pub(crate) fn is_suspect(leaks: &Leaks) -> bool {
    matches!(leaks.largest(), Some(LargestFinding::Conclusion(_)))
}

/// Describes the biggest object, without a full stop. If the object is not a leak suspect, the text begins by saying so, and
/// refers to the conclusions.
pub(crate) fn describe_largest(leaks: &Leaks) -> String {
    match leaks.largest() {
        Some(LargestFinding::Conclusion(one)) => claim(leaks, one).text(leaks),
        Some(LargestFinding::Holder(row)) => {
            let held = first_sentence(leaks, row);
            let held = held.strip_suffix('.').unwrap_or(&held);
            match leaks.conclusions.first() {
                Some(one) => {
                    let suspect = claim(leaks, one).text(leaks);
                    format!("nothing accumulates there: {held}; leak suspect: {suspect}")
                }
                None => format!("no leak suspect, as nothing accumulates there: {held}"),
            }
        }
        Some(LargestFinding::NoSuspect(holder)) => format!(
            "no leak suspect, as nothing retains more than {} of the reachable heap: {}",
            percent(leaks.threshold_bytes, leaks.reachable_bytes),
            holder::text(holder, [false, false])
        ),
        None => headline(leaks),
    }
}

/// Returns the full description of a suspect.
pub(super) fn sentence(leaks: &Leaks, suspect: &Suspect) -> String {
    if let Some(group) = suspect.loader_group.and_then(|group| leaks.loaders.get(group)) {
        return format!("{}.", loaders::claim(group).text(leaks));
    }
    std::iter::once(first_sentence(leaks, suspect))
        .chain(further_sentences(leaks, suspect))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the title of the evidence for a suspect: conclusions are numbered as in the headline, other suspects by their own
/// numbers.
pub(super) fn title(leaks: &Leaks, at: usize) -> String {
    let is_it = |one: &Conclusion| one.suspect() == at;
    match (leaks.conclusions.iter().position(is_it), leaks.suspects.get(at).map(|row| row.verdict)) {
        (Some(number), _) => suspect_title(number),
        (None, Some(LeakVerdict::Holder)) => format!("Holder {}", at + 1),
        (None, Some(LeakVerdict::Content)) => format!("Content {}", at + 1),
        (None, Some(LeakVerdict::InProgress)) => format!("In progress {}", at + 1),
        (None, Some(LeakVerdict::Waste)) => format!("Waste {}", at + 1),
        (None, Some(LeakVerdict::Platform)) => format!("Platform {}", at + 1),
        (None, _) => format!("Row {}", at + 1),
    }
}

/// Returns the title of a conclusion.
pub(super) fn suspect_title(number: usize) -> String {
    format!("Suspect {}", number + 1)
}

/// Returns the first sentence about a suspect: what accumulates, where, and how much.
pub(crate) fn first_sentence(leaks: &Leaks, suspect: &Suspect) -> String {
    if suspect.verdict == LeakVerdict::Holder {
        let amount = amount(leaks, suspect.retained_bytes);
        let retains = if suspect.kind == SuspectKind::Single { "retains" } else { "retain" };
        let subject = capital(&subject(suspect));
        if suspect.parts.is_empty() {
            let only = if suspect.kind == SuspectKind::Single { "only itself" } else { "only themselves" };
            return format!("{subject} {retains} {only}: {amount}.");
        }
        let rest = if suspect.parts.len() > NAMED_PARTS { " and others" } else { "" };
        return format!("{subject} {retains} {amount}: {}{rest}.", parts(leaks, suspect));
    }
    format!("{}.", accumulation(suspect).text(leaks))
}

/// Describes another holder of what accumulates.
pub(super) fn other_holder(other: &OtherHolder) -> String {
    other.called.clone().unwrap_or_else(|| holder::text(&other.holder, [false, false]))
}

/// Describes what accumulates, and where.
fn accumulation(suspect: &Suspect) -> Claim {
    if let Some(OffHeapUse { buffers, field, limit_bytes }) = &suspect.off_heap {
        let holder = field.as_ref().map_or_else(String::new, |field| format!("{field} holds "));
        let most = limit_bytes.map(|limit| format!(", of at most {}", human_bytes(limit)));
        let what = format!(
            "{holder}{} of {} outside the heap{}",
            format_count(buffers.buffers, "direct buffer"),
            human_bytes(buffers.bytes),
            most.unwrap_or_default()
        );
        return Claim { what, joint: "", bytes: None };
    }
    let is_of_threads = matches!(suspect.reason, Some(Reason::Threads { .. }));
    let local = suspect.main_thread_local();
    let joint = if is_of_threads && local.is_none() { " retain " } else { ": " };
    let what = match local {
        Some(local) => {
            let of_one = suspect.container.as_ref().filter(|_| local.values == 1);
            let contents = of_one.map(|container| containers::elements(container, false));
            let text = local_text(local, pool(suspect, local.threads), contents);
            match rule_sentence(suspect) {
                Some(said) => format!("{text}: {said}"),
                None => text,
            }
        }
        None => what_accumulates(suspect),
    };
    let what = if suspect.is_behind_soft { what + BEHIND_SOFT } else { what };
    let what = match &suspect.wasted {
        Some(WastedPart { kind, bytes, of_bytes }) => {
            format!("{what}, of which {} waste about {}", kind.name, whole_percent(*bytes, *of_bytes))
        }
        None => what,
    };
    let what = match suspect.also_held_by.first() {
        Some(other) => format!("{what}, also held by {}", other_holder(other)),
        None => what,
    };
    Claim { what, joint, bytes: Some(suspect.explained_bytes()) }
}

/// Describes what accumulates, and where, without the amount.
pub(crate) fn describe_accumulation(suspect: &Suspect) -> String {
    accumulation(suspect).what
}

/// Returns whether [`describe_accumulation`] contains more than the place: the text of a framework's rule, or a description
/// of elements, threads or class loaders.
pub(crate) fn says_more(suspect: &Suspect) -> bool {
    let is_said = suspect.framework.as_ref().is_some_and(|known| known.text.is_some());
    is_said
        || suspect.elements.is_some()
        || matches!(suspect.reason, Some(Reason::Threads { .. } | Reason::Loaders { .. }))
}

/// Returns the sentence that a framework's rule has for the suspect, if any.
fn rule_sentence(suspect: &Suspect) -> Option<&str> {
    suspect.framework.as_ref().and_then(|known| known.text.as_deref()).filter(|said| !said.is_empty())
}

fn what_accumulates(suspect: &Suspect) -> String {
    let said = rule_sentence(suspect);
    if let Some(NamedElements { name, objects }) = &suspect.elements {
        let said = said.map(|said| format!(", {said}")).unwrap_or_default();
        return match &suspect.reason {
            // With the name of their pool.
            Some(Reason::Threads { place, threads, .. }) => {
                format!("{} {}{said}", group_digits(*threads), holder::threads(place, false))
            }
            _ => format!("{} {name}{said}", group_digits(*objects)),
        };
    }
    if let (Some(named), Some(said)) = (&suspect.named, said) {
        // The sentence of the rule already describes classes of the framework itself.
        let known = [
            suspect.base.class.as_deref().unwrap_or_default(),
            suspect.framework.as_ref().map_or("", |known| known.class.as_str()),
        ];
        let container = suspect.container.as_ref().filter(|one| !one.are_nodes);
        let is_own = |class: &&str| {
            suspect.verdict == LeakVerdict::Accumulation
                && known.iter().all(|known| library(class) != library(known))
                && !is_of_jdk(class)
        };
        let classes = container.into_iter().flat_map(|one| {
            one.keys.first().map(|key| key.class.as_str()).into_iter().chain(one.element_class.as_deref())
        });
        let classes: Vec<&str> = classes
            .filter(is_own)
            .map(|class| holder::simple(class, true))
            .filter(|class| !said.contains(class.rsplit('$').next().unwrap_or(class)))
            .collect();
        let of = if classes.is_empty() { String::new() } else { format!(", of {}", classes.join(" and ")) };
        return format!("{named}: {said}{of}");
    }
    match &suspect.reason {
        Some(Reason::Loaders { class, loader_class, loaders, .. }) => {
            let loaders = group_digits(*loaders);
            let what = match loader_class {
                Some(loader) if loader == class => format!("{loaders} class loaders of class {class}"),
                Some(loader) => {
                    format!("{loaders} class loaders ({loader}), each with its own class {class}")
                }
                None => format!("{loaders} class loaders, each with its own class {class}"),
            };
            let comma = if loader_class.as_ref() == Some(class) { "" } else { "," };
            match place(suspect) {
                Some(place) => format!("{what}{comma} are held by {place}"),
                None => format!("{what}{comma} are reachable"),
            }
        }
        Some(Reason::Threads { place, threads, .. }) => {
            let what = format!("{} {}", group_digits(*threads), holder::threads(place, false));
            match self::place(suspect).filter(|_| place.is_unstarted) {
                Some(place) => format!("{what}, in {place}"),
                None => what,
            }
        }
        Some(Reason::Buffer { class }) => {
            let of = suspect.point.as_ref().map_or(0, |point| point.retained_bytes);
            if let Some(MapEntry { key, map, thread }) = &suspect.entry {
                let thread = thread.as_ref().map(|name| format!(" of thread {}", escape::quoted(name)));
                let map = holder::text(map, [false, false]) + &thread.unwrap_or_default();
                return format!("{} in {map} holds one {class} of {}", escape::quoted(key), human_bytes(of));
            }
            let place = suspect.place.as_ref();
            let is_itself = place.is_some_and(|place| place.class.as_ref() == Some(class));
            let held = match place.and_then(|place| place.field.as_ref()).filter(|_| is_itself) {
                Some(field) if field.is_static => Some(format!(" in static {}.{}", field.class, field.name)),
                Some(field) => Some(format!(" in {} of {}", field.name, field.class)),
                None => self::place(suspect).map(|place| format!(" in {place}")),
            };
            format!("One {class} of {}{}", human_bytes(of), held.unwrap_or_default())
        }
        Some(Reason::Chain { class, chains, objects, is_whole })
            if suspect.explained_container().is_none_or(|container| container.are_nodes) =>
        {
            let least = if *is_whole { "" } else { "at least " };
            let links = format!("{least}{} x {}", group_digits(*objects), holder::simple(class, false));
            let links = match chains {
                1 => format!("a chain of {links}"),
                _ => format!("{links} in {} chains", group_digits(*chains)),
            };
            let are_nodes = suspect.explained_container().is_some_and(|container| container.are_nodes);
            let elements = elements(suspect).filter(|_| !are_nodes);
            let elements = elements.map(|text| format!(", with {text}")).unwrap_or_default();
            let holder = place(suspect).unwrap_or_else(|| subject(suspect));
            format!("{holder} holds {links}{elements}")
        }
        _ => {
            let is_one = suspect.kind == SuspectKind::Single || suspect.named.is_some();
            let holds = if is_one || suspect.is_by_mat() { "holds" } else { "hold" };
            match (place(suspect), elements(suspect)) {
                (Some(place), Some(elements)) => format!("{place} {holds} {elements}"),
                (Some(place), None) => place,
                (None, Some(elements)) => format!("{elements} are reachable from several places"),
                (None, None) => subject(suspect),
            }
        }
    }
}

/// Returns further sentences about a suspect.
fn further_sentences(leaks: &Leaks, suspect: &Suspect) -> Vec<String> {
    let mut all = Vec::new();
    let is_group = suspect.kind == SuspectKind::Group;
    if suspect.verdict == LeakVerdict::Accumulation && !is_group {
        all.extend(match suspect.what {
            SuspectSubject::Thread => Some(thread(suspect)),
            SuspectSubject::Class | SuspectSubject::ClassLoader => keeps_alive(suspect),
            SuspectSubject::Instance => None,
        });
    }
    if suspect.verdict == LeakVerdict::Accumulation
        && !is_group
        && suspect.accumulated_bytes < suspect.retained_bytes
    {
        let above = share_above(leaks, suspect);
        all.extend(above);
    }
    let is_told = |frame: &&Frame| match &suspect.reason {
        Some(Reason::Threads { place, .. }) => place.method != Some(frame.qualified_method()),
        _ => true,
    };
    if let (SuspectSubject::Thread, Some(frame)) = (suspect.what, suspect.frame.as_ref().filter(is_told)) {
        let which = if is_group { "The largest of them".to_owned() } else { capital(&subject(suspect)) };
        all.push(format!("{which} is in {}.", frame.qualified_method()));
    }
    if suspect.is_oom_thread && suspect.verdict == LeakVerdict::Holder && !is_group {
        all.push("It ran out of memory.".to_owned());
    }
    if is_group && suspect.is_by_mat() {
        all.push(format!(
            "No single object keeps these {} x {} alive: each is held in several places, or by a GC root.",
            group_digits(suspect.objects),
            suspect.group_class.as_deref().unwrap_or_default()
        ));
        if suspect.is_oom_thread {
            all.push("The thread that ran out of memory is among them.".to_owned());
        }
    }
    if let Some(paths) = &suspect.paths {
        if paths.is_soft {
            all.push(
                "Only soft references keep it alive: the JVM frees it before it throws an OutOfMemoryError."
                    .to_owned(),
            );
        } else if suspect.is_behind_soft {
            all.push(
                "Soft references hold it: the JVM clears them before it throws an OutOfMemoryError."
                    .to_owned(),
            );
        } else if paths.is_weak {
            all.push("Only weak, phantom or finalizer references keep it alive.".to_owned());
        }
        if suspect.verdict == LeakVerdict::Accumulation && suspect.what != SuspectSubject::Thread {
            all.extend(frame(paths));
        }
        if suspect.verdict == LeakVerdict::Accumulation && !is_group {
            all.extend(threads(suspect, paths));
        }
    }
    all.extend(queue(suspect));
    all.extend(allocated::sentence(suspect));
    all
}

/// Describes how a suspect class or class loader keeps alive what accumulates: by a static field, if the path
/// contains one.
fn keeps_alive(suspect: &Suspect) -> Option<String> {
    let subject = subject(suspect);
    let paths = suspect.paths.as_ref()?;
    let steps = &paths.path.steps;
    let start = steps.iter().position(|step| step.id == suspect.object.object)?;
    let below = steps.iter().enumerate().skip(start + 1);
    let Some((at, held)) = below.rev().find(|(_, step)| step.is_static) else {
        let owner = paths.owner.as_ref()?;
        return Some(format!("{} keeps it alive, by {} of {}.", capital(&subject), owner.field, owner.class));
    };
    let field = held.reference.as_deref()?;
    let class = at.checked_sub(1).and_then(|holder| steps.get(holder)).and_then(|step| step.label.as_deref());
    Some(match (suspect.what, class) {
        (SuspectSubject::ClassLoader, Some(class)) => {
            format!("Static field {field} of class {class} keeps it alive, as long as {subject} does.")
        }
        _ => format!("Static field {field} of {subject} keeps it alive."),
    })
}

/// Returns a sentence about the retained size of the suspect, if it is clearly more than what accumulates.
fn share_above(leaks: &Leaks, suspect: &Suspect) -> Option<String> {
    let beside = suspect.retained_bytes.saturating_sub(suspect.accumulated_bytes);
    (beside > suspect.retained_bytes / 20).then(|| {
        format!("{} above it retains {}.", capital(&subject(suspect)), amount(leaks, suspect.retained_bytes))
    })
}

/// Describes the threads from whose fields the suspect is reachable, unless the suspect is a thread.
fn threads(suspect: &Suspect, paths: &Paths) -> Option<String> {
    let root = paths
        .path
        .root
        .thread
        .as_ref()
        .filter(|_| !paths.only_frames && suspect.what != SuspectSubject::Thread);
    let root = root.and_then(|thread| thread.name.as_ref());
    let names: Vec<String> =
        root.into_iter().chain(&paths.other_threads).map(|name| escape::quoted(name)).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(format!("It is reachable through fields of thread {one}.")),
        [some @ .., last] => {
            Some(format!("It is reachable through fields of threads {} and {last}.", some.join(", ")))
        }
    }
}

/// Describes a suspect thread.
fn thread(suspect: &Suspect) -> String {
    let name = subject(suspect);
    let oom = if suspect.is_oom_thread { ", which ran out of memory," } else { "" };
    let Some(paths) = &suspect.paths else { return format!("{name}{oom} retains it.") };
    let own_id = |path: &Path| path.root.id == suspect.object.object;
    if paths.only_frames {
        return format!(
            "Only stack frames of {name}{oom} reference it; the innermost is {}.",
            frame_name(&paths.path)
        );
    }
    if let Some(local) = &paths.local {
        return format!(
            "{}{oom} references it only from a local variable in {}.",
            capital(&name),
            frame_of(local)
        );
    }
    if own_id(&paths.path) {
        let owner = paths.owner.as_ref().map(|owner| format!(" {} of {}", owner.field, owner.class));
        let by = owner.map_or_else(|| " its own fields".to_owned(), |owner| format!(" field{owner}"));
        let also = match &paths.through_frame {
            Some(path) => format!(", and by a local variable in {}", frame_name(path)),
            None => String::new(),
        };
        return format!("{}{oom} keeps it alive by{by}{also}.", capital(&name));
    }
    format!(
        "{}{oom} references it only from a local variable in {}.",
        capital(&name),
        frame_name(&paths.path)
    )
}

/// Describes the stack frame that references the suspect: as the only holder, or in addition to fields.
fn frame(paths: &Paths) -> Option<String> {
    if paths.only_frames {
        return Some(format!("Only stack frames reference it: {}.", paths::describe_root(&paths.path.root)));
    }
    let path = paths.through_frame.as_ref()?;
    Some(format!("A stack frame also references it: {}.", paths::describe_root(&path.root)))
}

fn frame_name(path: &Path) -> String {
    frame_of(&path.root)
}

fn frame_of(root: &RootView) -> String {
    root.frame.as_ref().map_or_else(|| "an unknown frame".to_owned(), |frame| frame.qualified_method())
}

/// Describes the queue that contains what accumulates: its size, limit and threads.
fn queue(suspect: &Suspect) -> Option<String> {
    let queue = suspect.collection.as_ref().filter(|queue| queue.is_queue)?;
    let limit = match (queue.limit, queue.size) {
        (Some(limit), Some(size)) => {
            format!("The queue has {} of at most {} elements", group_digits(size), group_digits(limit))
        }
        (None, Some(size)) => format!("The queue has {} elements and no limit", group_digits(size)),
        (Some(limit), None) => format!("The queue is limited to {} elements", group_digits(limit)),
        (None, None) => "The queue has no limit".to_owned(),
    };
    let names = queue.threads.iter().take(NAMED_THREADS).map(|thread| {
        let name = escape::quoted(&thread.name);
        match &thread.frame {
            Some(frame) => format!("{name} in {}", frame.split('(').next().unwrap_or(frame)),
            None => name,
        }
    });
    let names: Vec<String> = names.collect();
    let more = queue.all_threads.saturating_sub(names.len() as u64);
    let more = if more > 0 { format!(" and {} more", group_digits(more)) } else { String::new() };
    Some(match names.as_slice() {
        [] if queue.are_frames_known => format!("{limit}; no stack frame references the queue itself."),
        [] => format!("{limit}."),
        [one] => format!("{limit}; a stack frame references the queue: thread {one}{more}."),
        several => {
            format!("{limit}; stack frames reference the queue: threads {}{more}.", several.join(", "))
        }
    })
}

/// Describes the suspect: `thread "main"`, `class waste.S6Waste`, `12 x java.lang.Thread`.
pub(super) fn subject(suspect: &Suspect) -> String {
    if let (SuspectKind::Group, Some(class)) = (suspect.kind, &suspect.group_class) {
        return format!("{} x {class}", group_digits(suspect.objects));
    }
    object_name(&suspect.object, suspect.what)
}

/// Describes an object by its kind or class, and its label or ID.
fn object_name(named: &NamedObject, what: SuspectSubject) -> String {
    let class = named.class.as_deref().unwrap_or("<unknown class>");
    let label = named.label.as_ref().map(|label| format!(" {}", escape::quoted(label)));
    match what {
        SuspectSubject::Thread => match label {
            Some(label) => format!("thread{label}"),
            None => format!("thread {:#x}", named.object),
        },
        SuspectSubject::Class => format!("class {class}"),
        SuspectSubject::ClassLoader => {
            format!("class loader {}{}", class, label.unwrap_or_else(|| format!(" {:#x}", named.object)))
        }
        SuspectSubject::Instance => format!("{class} {:#x}", named.object),
    }
}

/// Describes an object briefly, for a line of evidence.
pub(super) fn describe_object(object: &NamedObject) -> String {
    let class = object.class.as_deref().unwrap_or("<unknown class>");
    let kind = if object.is_class_object { "class " } else { "" };
    format!("{kind}{class} {:#x}, {}", object.object, human_bytes(object.retained_bytes))
}

/// Capitalizes the start of a sentence, except class names.
fn capital(text: &str) -> String {
    let is_word = ["thread ", "class "].iter().any(|word| text.starts_with(word));
    let mut chars = text.chars();
    match chars.next().filter(|_| is_word) {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => text.to_owned(),
    }
}

/// Returns the frames below the constructors of the error.
pub(crate) fn own_frames(frames: &[StackFrame]) -> &[StackFrame] {
    let is_error = |frame: &&StackFrame| frame.frame.class.as_deref() == Some("java.lang.OutOfMemoryError");
    frames.get(frames.iter().take_while(is_error).count()..).unwrap_or_default()
}
