//! Suggested next commands, with names and IDs from the dump.

use crate::cli::shared::commands::{Commands, NextCommand, is_typed, matches_itself};
use hprof_query::leaks::holders::Holder;
use hprof_query::leaks::loaders::MANY_LOADERS;
use hprof_query::overview::Overview;

/// Maximum number of suggested commands.
const STEPS: usize = 3;

/// Returns the commands to run after an overview, most useful first.
pub(super) fn steps(overview: &Overview, suspects: usize, commands: &Commands<'_>) -> Vec<NextCommand> {
    let mut all: Vec<(&str, Vec<String>, String)> = Vec::new();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    if suspects > 0 {
        let what = if suspects == 1 { "the suspect, with evidence" } else { "the suspects, with evidence" };
        all.push(("leaks", Vec::new(), what.to_owned()));
    }
    if let Some(thread) = &overview.out_of_memory {
        let id = format!("{:#x}", thread.object);
        let name = thread.name.as_deref().filter(|name| is_typed(name)).unwrap_or(&id);
        all.push((
            "threads",
            words(&["--thread", name, "--stack", "--locals"]),
            "what the thread was doing".to_owned(),
        ));
    }
    let (_, garbage) = overview.unreachable;
    if garbage > overview.reachable.1 {
        all.push(("histo", words(&["--unreachable"]), "unreachable objects by class".to_owned()));
    }
    if overview.found.largest.iter().any(|holder| holder.threads.is_some()) {
        all.push((
            "threads",
            words(&["--group", "--locals"]),
            "objects retained by threads, merged".to_owned(),
        ));
    }
    let waste = || ("waste", Vec::new(), "wasted memory by field".to_owned());
    let waste = || overview.is_much_wasted().then(waste);
    // Accumulation points come first.
    all.extend(waste().filter(|_| suspects == 0));
    // Threads keep themselves alive, so paths to them explain nothing.
    if let Some(first) = overview.found.largest.first().filter(|first| first.threads.is_none()) {
        all.push(("paths-to-root", words(&[&target(first)]), "what keeps it alive".to_owned()));
        if let Some((_, loaders)) =
            overview.found.odd.most_defined.as_ref().filter(|(_, loaders)| *loaders >= MANY_LOADERS as u64)
        {
            all.push(("loaders", words(&["--duplicates"]), format!("the {loaders} class loaders")));
        }
        let id = format!("{:#x}", first.object);
        if first.is_collection {
            all.push(("show", words(&[&id]), "its contents".to_owned()));
        } else {
            all.push(("dominators", words(&["--of", &id, "--depth", "3"]), "its contents".to_owned()));
        }
    }
    all.extend(waste().filter(|_| suspects > 0));
    if overview.found.largest.is_empty() {
        all.push(("summary", Vec::new(), "what was recorded".to_owned()));
    } else {
        all.push(("dominators", Vec::new(), "other big objects".to_owned()));
    }
    all.push(("info", Vec::new(), "all facts about the dump".to_owned()));
    all.truncate(STEPS);
    all.into_iter().map(|(command, arguments, why)| commands.step(command, arguments, &why)).collect()
}

/// Returns the argument that selects the object for a path search.
fn target(holder: &Holder) -> String {
    match &holder.class {
        Some(class) if holder.is_class && matches_itself(class) => class.clone(),
        _ => format!("{:#x}", holder.kept_by),
    }
}
