//! Descriptions of the place (path of fields) of a suspect, of what accumulates there, and of the parts of a holder.

use hprof_query::leaks::contents::{ContentsLevel, Reason};
use hprof_query::leaks::evidence::{Owner, RetainedPart};
use hprof_query::leaks::holders::Holder;
use hprof_query::leaks::thread_locals::ThreadLocalUse;
use hprof_query::leaks::{Leaks, Suspect, SuspectKind};
use hprof_report::escape;
use hprof_report::number::{format_count, group_digits, percent};
use hprof_values::names;

use crate::cli::shared::{containers, holder};

/// Class of the objects that the JVM creates for objects with a finalizer.
const FINALIZER: &str = "java.lang.ref.Finalizer";
/// Maximum number of parts of a holder that a sentence names.
pub(super) const NAMED_PARTS: usize = 3;

/// Describes the place of a suspect: the collection and the field that references it, and the application's field above it if
/// that field belongs to the JDK.
pub(super) fn place(suspect: &Suspect) -> Option<String> {
    if let Some(named) = &suspect.named {
        return Some(named.clone());
    }
    let place = suspect.place.as_ref()?;
    let bare = Holder { held: None, ..place.clone() };
    if place.class.as_deref() == Some(FINALIZER) {
        return Some(format!("{FINALIZER}, the list of objects whose finalizer has not run,"));
    }
    let owner = suspect.paths.as_ref().and_then(|paths| paths.owner.as_ref());
    let is_told = place.field.as_ref().is_some_and(|field| !names::is_of_jdk(&field.class));
    let user = suspect.paths.as_ref().and_then(|paths| paths.user.as_ref());
    let user = user.map(describe_owner);
    let text = match owner.filter(|_| !is_told) {
        Some(owner) => {
            let text = holder::text(&Holder { field: None, ..bare }, [false, false]);
            text + &describe_owner(owner)
        }
        None if place.field.is_none()
            && !bare.is_class
            && place.class.as_deref() != Some("java.lang.Class") =>
        {
            format!("{} {:#x}", holder::text(&bare, [false, false]), place.object)
        }
        None => holder::text(&bare, [false, false]),
    };
    Some(text + &user.unwrap_or_default())
}

/// Describes a field of the program from which something is reachable: ` below static CACHE of app.Service`.
fn describe_owner(owner: &Owner) -> String {
    let of = if owner.is_static { "static " } else { "" };
    format!(" below {of}{} of {}", owner.field, owner.class)
}

/// Describes what accumulates: `55,417 x orders.Order`.
pub(super) fn elements(suspect: &Suspect) -> Option<String> {
    if let Some(container) = suspect.explained_container() {
        return Some(containers::elements(container, false));
    }
    if !suspect.is_by_mat() {
        return match &suspect.reason {
            Some(Reason::Children { class, objects, .. }) => {
                Some(format!("{} x {class}", group_digits(*objects)))
            }
            _ => None,
        };
    }
    if let (SuspectKind::Group, Some(class)) = (suspect.kind, &suspect.group_class) {
        return Some(format!("{} x {class}", group_digits(suspect.objects)));
    }
    // If a collection was only sampled, its element class is a guess: the tree must contain the class too.
    let held = suspect.place.as_ref().and_then(|place| place.held.as_ref());
    let is_known = |class: &str| suspect.accumulated.iter().any(|level| level.class == class);
    if let Some(held) = held.filter(|held| held.is_exact || is_known(&held.class)) {
        return Some(match held.is_mostly {
            true => format!("{} elements, mostly {}", group_digits(held.objects), held.class),
            false => format!("{} x {}", group_digits(held.objects), held.class),
        });
    }
    let below = suspect.accumulated.iter().skip(usize::from(suspect.kind == SuspectKind::Single));
    let levels = || below.clone().filter(|level| !level.is_soft);
    let own = levels().find(|level| !names::is_of_jdk(&level.class) && !level.class.ends_with("[]"));
    own.or_else(|| levels().next()).or(suspect.accumulated.first()).map(level)
}

/// Describes a level of the objects that accumulate.
fn level(level: &ContentsLevel) -> String {
    let kind = if level.is_class_object { "class " } else { "" };
    match level.objects {
        1 => format!("{kind}{}", holder::simple(&level.class, false)),
        many => format!("{} x {kind}{}", group_digits(many), holder::simple(&level.class, false)),
    }
}

/// Describes what accumulates, from the accumulation point down: `HashMap$Node[] -> 55,417 x HashMap$Node`.
pub(super) fn accumulation_text(suspect: &Suspect) -> String {
    suspect.accumulated.iter().map(level).collect::<Vec<_>>().join(" -> ")
}

/// Describes the largest parts that a holder retains.
pub(super) fn parts(leaks: &Leaks, suspect: &Suspect) -> String {
    let named = suspect.parts.iter().take(NAMED_PARTS);
    let text = |part: &RetainedPart| {
        format!("{} ({})", part_text(part), percent(part.retained_bytes, leaks.reachable_bytes))
    };
    named.map(text).collect::<Vec<_>>().join(", ")
}

/// Describes a part that a holder retains.
pub(super) fn part_text(part: &RetainedPart) -> String {
    let kind = if part.is_class_object { "class " } else { "" };
    match (&part.place, part.objects) {
        (Some(place), _) => holder::text(place, [false, false]),
        (_, 1) => format!("{kind}{}", holder::simple(&part.class, false)),
        (_, many) => format!("{} x {kind}{}", group_digits(many), holder::simple(&part.class, false)),
    }
}

/// Returns the name of the suspect's thread pool, if the pool has `wanted` threads.
pub(super) fn pool(suspect: &Suspect, wanted: u64) -> Option<&str> {
    match &suspect.reason {
        Some(Reason::Threads { place, threads, .. }) if *threads == wanted => place.name.as_deref(),
        _ => None,
    }
}

/// Describes a ThreadLocal: `ThreadLocal gateway.RequestParser.SCRATCH keeps a gateway.ParserScratch in each of 6
/// threads`. `contents` are the elements of its only value.
pub(super) fn local_text(local: &ThreadLocalUse, pool: Option<&str>, contents: Option<String>) -> String {
    let threads = if local.threads == 1 { "thread" } else { "threads" };
    if local.key.is_null() {
        let class = local.value_class.as_ref().map(|class| format!(", mostly {class},")).unwrap_or_default();
        return format!(
            "{} values{class} of ThreadLocals that were collected are kept by {} {threads}",
            group_digits(local.values),
            group_digits(local.threads)
        );
    }
    let name = match &local.field {
        Some(field) => format!("ThreadLocal {field}"),
        None => format!("ThreadLocal {:#x}", local.key),
    };
    let kept = local.value_class.as_deref().unwrap_or("values");
    let pool = pool.map(|pool| format!(" {}", escape::quoted(pool))).unwrap_or_default();
    if let (2.., Some(field)) = (local.keys, &local.field) {
        let (keys, values, threads) =
            (group_digits(local.keys), group_digits(local.values), format_count(local.threads, "thread"));
        return format!("{keys} ThreadLocals {field} keep {values} x {kept} in {threads}{pool}");
    }
    let value = local.value_class.as_deref().map_or("a value".to_owned(), |class| format!("one {class}"));
    let value = value + &contents.map(|text| format!(" of {text}")).unwrap_or_default();
    match local.threads {
        1 => format!("{name} keeps {value} in a thread{pool}"),
        many => {
            let all = match (local.elements, &local.element_class) {
                (Some(elements), Some(class)) => {
                    format!(", with {} x {class} in all", group_digits(elements))
                }
                (Some(elements @ 1..), None) => {
                    format!(", with {} in all", format_count(elements, "element"))
                }
                _ => String::new(),
            };
            format!("{name} keeps {value} in each of {} {threads}{pool}{all}", group_digits(many))
        }
    }
}
