//! Descriptions of class loaders of one application: number, reasons why they are alive, retained size.

use std::collections::BTreeSet;

use hprof_parser::RootKind;
use hprof_query::classes::loader_sets::Why;
use hprof_query::leaks::loaders::LoaderGroup;
use hprof_query::leaks::{Cause, Conclusion, Leaks};
use hprof_query::paths::steps::ObjectStep;
use hprof_report::answer::Section;
use hprof_report::escape;
use hprof_report::number::grouped;

use crate::cli::retention::paths_to_root::objects;
use crate::cli::shared::paths;

use super::claim::{Claim, amount};

/// Maximum number of loaders per group whose paths are shown.
const SHOWN_LOADERS: usize = 2;
/// Maximum number of reasons, and of threads for one of them, that a sentence names.
const NAMED: usize = 3;

/// A reason why a class loader is alive.
struct Keeper {
    /// Text for one loader.
    one: &'static str,
    /// Text for several.
    many: &'static str,
}

const THREAD_LOCAL: Keeper = Keeper { one: "a ThreadLocal", many: "ThreadLocals" };
/// The context class loader of a thread, which may be named.
const CONTEXT: Keeper =
    Keeper { one: "the context class loader of a thread", many: "the context class loaders of threads" };
const THREAD: Keeper = Keeper { one: "a thread", many: "threads" };
const STATIC_FIELD: Keeper = Keeper { one: "a static field", many: "static fields" };
const ROOT: Keeper = Keeper { one: "a GC root", many: "GC roots" };

/// Reasons by a class on the path.
const KEEPERS: &[(&str, Keeper)] = &[
    ("java.lang.ThreadLocal$ThreadLocalMap$Entry", THREAD_LOCAL),
    ("java.lang.ApplicationShutdownHooks", Keeper { one: "a shutdown hook", many: "shutdown hooks" }),
    ("java.sql.DriverManager", Keeper { one: "a JDBC driver", many: "JDBC drivers" }),
    ("java.sql.DriverInfo", Keeper { one: "a JDBC driver", many: "JDBC drivers" }),
    ("java.util.Timer", Keeper { one: "a timer", many: "timers" }),
    ("java.util.ResourceBundle", Keeper { one: "a resource bundle", many: "resource bundles" }),
    (
        "java.beans.Introspector",
        Keeper { one: "a cache of bean information", many: "caches of bean information" },
    ),
    ("java.util.logging.LogManager", Keeper { one: "a logger", many: "loggers" }),
    ("javax.management.MBeanServer", Keeper { one: "an MBean", many: "MBeans" }),
    ("java.security.ProtectionDomain", Keeper { one: "a protection domain", many: "protection domains" }),
];

/// Returns the usual term for the reason why a class loader is alive, determined by the classes on the path to it.
pub(super) fn keeper(why: &Why) -> &'static str {
    keeper_of(why).one
}

fn keeper_of(why: &Why) -> &'static Keeper {
    let names = || why.steps.iter().flat_map(|step| [step.class.as_deref(), step.label.as_deref()]).flatten();
    let known = KEEPERS.iter().find(|(class, _)| {
        names()
            .any(|name| name == *class || name.strip_prefix(class).is_some_and(|rest| rest.starts_with('$')))
    });
    let is_context = |step: &ObjectStep| step.reference.as_deref() == Some("contextClassLoader");
    let is_of_thread = why.start == 0 && why.root.kinds.contains(&RootKind::ThreadObject);
    match known {
        Some((_, keeper)) => keeper,
        None if why.steps.iter().any(is_context) => &CONTEXT,
        None if is_of_thread => &THREAD,
        None if why.steps.get(why.start).is_some_and(|step| step.is_static) => &STATIC_FIELD,
        None => &ROOT,
    }
}

/// Describes the reasons why the loaders of a group are alive: `ThreadLocals of threads "a" and "b" and a JDBC
/// driver`. `None` if no path is known.
fn keepers(group: &LoaderGroup) -> Option<String> {
    let mut found: Vec<(&Keeper, usize, BTreeSet<&str>)> = Vec::new();
    for (_, why) in &group.paths {
        let keeper = keeper_of(why);
        let at = found.iter().position(|(known, ..)| known.one == keeper.one).unwrap_or_else(|| {
            found.push((keeper, 0, BTreeSet::new()));
            found.len() - 1
        });
        let Some((_, count, threads)) = found.get_mut(at) else { continue };
        *count += 1;
        threads.extend(why.root.thread.as_ref().and_then(|thread| thread.name.as_deref()));
    }
    // The sort is stable: reasons with the same count stay in the order of the loaders.
    found.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
    let texts: Vec<String> =
        found.iter().map(|(keeper, count, threads)| keeper.text(*count, threads)).collect();
    (!texts.is_empty()).then(|| some(&texts))
}

impl Keeper {
    /// Describes the reason for this number of loaders, with thread names if it involves threads.
    fn text(&self, loaders: usize, threads: &BTreeSet<&str>) -> String {
        let what = if loaders == 1 { self.one } else { self.many };
        let names: Vec<String> = threads.iter().map(|name| escape::quoted(name)).collect();
        let threads = match names.as_slice() {
            [] => return what.to_owned(),
            [one] => format!("thread {one}"),
            several => format!("threads {}", some(several)),
        };
        if self.one == THREAD.one {
            return threads;
        }
        // Thread names replace "a thread".
        let of = [" of a thread", " of threads"].into_iter().find_map(|end| what.strip_suffix(end));
        format!("{} of {threads}", of.unwrap_or(what))
    }
}

/// Formats a list, of which the first few are named.
fn some(all: &[String]) -> String {
    let (named, others) = all.split_at_checked(NAMED).unwrap_or((all, &[]));
    match (named, others) {
        ([], _) => String::new(),
        ([one], []) => one.clone(),
        ([some @ .., last], []) => format!("{} and {last}", some.join(", ")),
        (named, others) => {
            format!("{} and {} more", named.join(", "), grouped(others.len() as u64))
        }
    }
}

/// Returns the statement about loaders kept alive by several holders.
pub(super) fn claim(group: &LoaderGroup) -> Claim {
    let of = group.class.as_ref().map(|class| format!(" ({class})")).unwrap_or_default();
    let each = match &group.defines {
        Some(class) => format!("each with its own class {class}"),
        None => "each with its own classes".to_owned(),
    };
    let kept = keepers(group).map_or("are reachable".to_owned(), |by| format!("are kept alive by {by}"));
    let what = format!("{} class loaders{of}, {each}, {kept}", grouped(group.loaders));
    Claim { what, joint: ": ", bytes: Some(group.retained_bytes) }
}

/// Describes groups that are not conclusions.
pub(super) fn beside(leaks: &Leaks) -> impl Iterator<Item = String> {
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
        grouped(group.loaders),
        match group.classes {
            0 | 1 => String::new(),
            2 => " and 1 other class".to_owned(),
            more => format!(" and {} other classes", grouped(more - 1)),
        },
        amount(leaks, group.retained_bytes),
    )
}

/// Returns the paths of groups that are not conclusions.
pub(super) fn paths_beside(leaks: &Leaks) -> Vec<Section> {
    let groups = leaks.loaders.iter().enumerate();
    groups.filter(|(at, _)| !is_concluded(leaks, *at)).flat_map(|(_, group)| paths_of(group)).collect()
}

/// Shows why class loaders of one application are alive.
pub(super) fn paths_of(group: &LoaderGroup) -> Vec<Section> {
    let mut all = Vec::new();
    for (loader, why) in group.paths.iter().take(SHOWN_LOADERS) {
        let root = paths::describe_root(&why.root);
        let from = why.steps.get(why.start..).unwrap_or_default();
        let left_out = match why.left_out {
            (more, behind) if behind >= why.start => (more, behind - why.start),
            _ => (0, 0),
        };
        let keeper = keeper(why);
        all.push(Section::Line(format!("  class loader {loader:#x} is kept alive by {keeper} ({root})")));
        all.push(objects::table_of(from, left_out));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_named_once() {
        let text =
            |keeper: &Keeper, loaders, names: &[&str]| keeper.text(loaders, &names.iter().copied().collect());
        for (found, expected) in [
            (text(&CONTEXT, 1, &["a"]), "the context class loader of thread \"a\""),
            (text(&CONTEXT, 3, &["a", "b"]), "the context class loaders of threads \"a\" and \"b\""),
            (text(&CONTEXT, 2, &[]), "the context class loaders of threads"),
            (text(&THREAD_LOCAL, 2, &["a", "b"]), "ThreadLocals of threads \"a\" and \"b\""),
            (text(&THREAD, 1, &["a"]), "thread \"a\""),
            (text(&THREAD, 1, &[]), "a thread"),
            (text(&STATIC_FIELD, 2, &[]), "static fields"),
        ] {
            assert_eq!(found, expected);
        }
    }
}
