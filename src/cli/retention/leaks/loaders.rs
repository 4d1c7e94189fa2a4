//! Descriptions of the class loaders of an application: number, reasons why they are alive, retained size.

use hprof_query::leaks::loader_holders::{LoaderHolder, LoaderHolderKind};
use hprof_query::leaks::loaders::LoaderGroup;
use hprof_query::leaks::{Cause, Conclusion, Leaks};
use hprof_report::answer::Section;
use hprof_report::escape;
use hprof_report::number::group_digits;

use crate::cli::retention::paths_to_root::objects;
use crate::cli::shared::paths;

use super::claim::{Claim, amount};

/// Maximum number of kinds of holders per group whose paths are shown.
const SHOWN_HOLDERS: usize = 6;
/// Maximum number of holders of a kind that a sentence names.
const NAMED: usize = 3;

/// Returns the noun for a holder of the given kind, in the singular and plural.
const fn words_of(kind: LoaderHolderKind) -> [&'static str; 2] {
    match kind {
        LoaderHolderKind::Thread => ["a thread", "threads"],
        LoaderHolderKind::ThreadLocal => ["a ThreadLocal", "ThreadLocals"],
        LoaderHolderKind::ShutdownHook => ["a shutdown hook", "shutdown hooks"],
        LoaderHolderKind::Timer => ["a timer", "timers"],
        LoaderHolderKind::MBean => ["an MBean", "MBeans"],
        LoaderHolderKind::JdbcDriver => ["a JDBC driver", "JDBC drivers"],
        LoaderHolderKind::Logger => ["a logger", "loggers"],
        LoaderHolderKind::ResourceBundle => ["a resource bundle", "resource bundles"],
        LoaderHolderKind::BeanInfo => ["a cache of bean information", "caches of bean information"],
        LoaderHolderKind::RmiObject => ["an exported RMI object", "exported RMI objects"],
        LoaderHolderKind::SecurityProvider => ["a security provider", "security providers"],
        LoaderHolderKind::Cleaner => ["a cleaner", "cleaners"],
        LoaderHolderKind::ProtectionDomain => ["a protection domain", "protection domains"],
        LoaderHolderKind::StaticField => ["a static field", "static fields"],
        LoaderHolderKind::Root => ["a GC root", "GC roots"],
    }
}

/// Returns the usual term for a holder of a class loader of the given kind.
pub(super) const fn keeper(kind: LoaderHolderKind) -> &'static str {
    let [one, _] = words_of(kind);
    one
}

/// Describes the holders of one kind, with their names: `threads "a" and "b"`, `a ThreadLocal of thread "a"`, `an MBean
/// (com.acme:type=Stats)`.
pub(super) fn holder_text(holder: &LoaderHolder) -> String {
    let [one, many] = words_of(holder.kind);
    let what = if holder.loaders == 1 { one } else { many };
    let (is_thread, count) = (is_of_thread(holder.kind), holder.name_count);
    let name = |name: &String| if is_thread { escape::quoted(name) } else { name.clone() };
    let names: Vec<String> = holder.names.iter().map(name).collect();
    let text = name_list(&names, count);
    let thread = if count == 1 { "thread" } else { "threads" };
    match holder.kind {
        _ if names.is_empty() => what.to_owned(),
        LoaderHolderKind::Thread => format!("{thread} {text}"),
        LoaderHolderKind::ThreadLocal => format!("{what} of {thread} {text}"),
        LoaderHolderKind::StaticField if count == 1 => format!("static field {text}"),
        LoaderHolderKind::StaticField => format!("{many} {text}"),
        _ => format!("{what} ({text})"),
    }
}

const fn is_of_thread(kind: LoaderHolderKind) -> bool {
    matches!(kind, LoaderHolderKind::Thread | LoaderHolderKind::ThreadLocal)
}

/// Describes the holders of the loaders in a group, with the number of loaders that each kind of holder keeps alive if there
/// are several. `None` if no path is known.
fn holders(group: &LoaderGroup) -> Option<String> {
    match group.holders.as_slice() {
        [] => None,
        [one] if one.loaders == group.loaders => Some(format!(" by {}", holder_text(one))),
        several => {
            let texts =
                several.iter().map(|one| format!("{} by {}", group_digits(one.loaders), holder_text(one)));
            Some(format!(": {}", texts.collect::<Vec<_>>().join(", ")))
        }
    }
}

/// Formats a list of `count` names; `first` are those that are named.
fn name_list(first: &[String], count: u64) -> String {
    let named = first.get(..NAMED).unwrap_or(first);
    let others = count.saturating_sub(named.len() as u64);
    match (named, others) {
        (named, 1..) => format!("{} and {} more", named.join(", "), group_digits(others)),
        ([some @ .., last], 0) if !some.is_empty() => format!("{} and {last}", some.join(", ")),
        (named, 0) => named.join(", "),
    }
}

/// Returns the statement about the loaders in a group and their holders.
pub(super) fn claim(group: &LoaderGroup) -> Claim {
    let of = group.class.as_ref().map(|class| format!(" ({class})")).unwrap_or_default();
    let loaders = group_digits(group.loaders);
    let subject = match (&group.application, group.are_closed) {
        (Some(application), true) => format!("{loaders} class loaders of stopped {application}{of}"),
        (_, are_closed) => {
            let closed = if are_closed { "closed " } else { "" };
            let own = group.defines.as_ref().map_or_else(|| "classes".to_owned(), |of| format!("class {of}"));
            format!("{loaders} {closed}class loaders{of}, each with its own {own},")
        }
    };
    let what = match holders(group) {
        Some(by) => format!("{subject} are kept alive{by}"),
        None => format!("{subject} are reachable"),
    };
    Claim { what, joint: ": ", bytes: Some(group.retained_bytes) }
}

/// Describes the groups that are not conclusions.
pub(super) fn other_groups(leaks: &Leaks) -> impl Iterator<Item = String> {
    let groups = leaks.loaders.iter().enumerate();
    groups.filter(|(at, _)| !is_concluded(leaks, *at)).map(|(_, group)| fact(leaks, group))
}

fn is_concluded(leaks: &Leaks, at: usize) -> bool {
    let is_it = |one: &Conclusion| matches!(one.cause, Cause::Loaders { group, .. } if group == at);
    leaks.conclusions.iter().any(is_it)
}

fn fact(leaks: &Leaks, group: &LoaderGroup) -> String {
    let of = group.class.as_ref().map(|class| format!(" ({class})")).unwrap_or_default();
    let defines = group.defines.as_deref().unwrap_or("the same classes");
    format!(
        "{} class loaders{of} define {defines}{}: with their classes and instances they retain {}.",
        group_digits(group.loaders),
        match group.classes {
            0 | 1 => String::new(),
            2 => " and 1 other class".to_owned(),
            more => format!(" and {} other classes", group_digits(more - 1)),
        },
        amount(leaks, group.retained_bytes),
    )
}

/// Returns the paths to the loaders in groups that are not conclusions.
pub(super) fn other_paths(leaks: &Leaks) -> Vec<Section> {
    let groups = leaks.loaders.iter().enumerate();
    groups.filter(|(at, _)| !is_concluded(leaks, *at)).flat_map(|(_, group)| paths_of(group)).collect()
}

/// Shows why the class loaders in a group are alive: one path for each kind of holder.
pub(super) fn paths_of(group: &LoaderGroup) -> Vec<Section> {
    let mut all = Vec::new();
    for holder in group.holders.iter().take(SHOWN_HOLDERS) {
        let Some((loader, why)) = &holder.example else { continue };
        let root = paths::describe_root(&why.root);
        let from = why.steps.get(why.start..).unwrap_or_default();
        let left_out = match why.left_out {
            (more, behind) if behind >= why.start => (more, behind - why.start),
            _ => (0, 0),
        };
        let keeper = keeper(holder.kind);
        let of = format!("{} of {}", group_digits(holder.loaders), group_digits(group.loaders));
        all.push(Section::Line(format!(
            "  {of}: class loader {loader:#x} is kept alive by {keeper} ({root})"
        )));
        all.push(objects::table_of(from, left_out));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_named_once() {
        let text = |kind, loaders, names: &[&str], name_count| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            holder_text(&LoaderHolder { kind, loaders, names, name_count, example: None })
        };
        for (found, expected) in [
            (text(LoaderHolderKind::Thread, 1, &["a"], 1), "thread \"a\""),
            (text(LoaderHolderKind::Thread, 3, &["a", "b"], 2), "threads \"a\" and \"b\""),
            (text(LoaderHolderKind::Thread, 2, &["a"], 1), "thread \"a\""),
            (text(LoaderHolderKind::Thread, 1, &[], 0), "a thread"),
            (
                text(LoaderHolderKind::ThreadLocal, 2, &["a", "b"], 2),
                "ThreadLocals of threads \"a\" and \"b\"",
            ),
            (text(LoaderHolderKind::MBean, 1, &["a:type=B"], 1), "an MBean (a:type=B)"),
            (
                text(LoaderHolderKind::ShutdownHook, 5, &["A", "B", "C", "D"], 5),
                "shutdown hooks (A, B, C and 2 more)",
            ),
            (text(LoaderHolderKind::StaticField, 2, &["a.B.c"], 1), "static field a.B.c"),
            (text(LoaderHolderKind::StaticField, 2, &["a.B.c", "a.D.e"], 2), "static fields a.B.c and a.D.e"),
        ] {
            assert_eq!(found, expected);
        }
    }
}
