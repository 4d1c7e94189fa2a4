//! What to ask next: commands with the names and IDs of a dump in them.

use std::path::Path;

use crate::query::dump::holders::Holder;
use crate::query::dump::overview::Overview;
use crate::report::escape;

/// Commands that are offered.
const STEPS: usize = 3;
/// Loaders that define a class of one name before that looks odd, and is a question.
pub(super) const MANY_LOADERS: u64 = 3;
/// Longer names are not typed.
const LONGEST_NAME: usize = 40;

/// A command to type next.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// The command line.
    pub(super) command: String,
    /// The words of it: they are not broken.
    words: Vec<String>,
    /// What it answers.
    pub(super) why: String,
}

/// What to ask after an overview; most to the point first.
pub(super) fn steps(overview: &Overview, dump: &Path, heap_dump: Option<u32>) -> Vec<Step> {
    let mut all: Vec<(&str, Vec<String>, String)> = Vec::new();
    let words = |words: &[&str]| words.iter().map(|word| quoted(word)).collect::<Vec<String>>();
    if let Some(thread) = &overview.out_of_memory {
        let id = format!("{:#x}", thread.object);
        let name = thread.name.as_deref().filter(|name| is_typed(name)).unwrap_or(&id);
        all.push((
            "threads",
            words(&["--name", name, "--stack", "--locals"]),
            "what it was doing".to_owned(),
        ));
    }
    let (_, garbage) = overview.unreachable;
    if garbage > overview.reachable.1 {
        all.push(("histo", words(&["--unreachable"]), "what the garbage is".to_owned()));
    }
    if let Some(first) = overview.largest.first() {
        all.push(("paths-to-root", words(&[&target(first)]), "what keeps it alive".to_owned()));
        if let Some((_, loaders)) =
            overview.odd.most_defined.as_ref().filter(|(_, loaders)| *loaders >= MANY_LOADERS)
        {
            all.push(("loaders", words(&["--duplicates"]), format!("the {loaders} class loaders")));
        }
        let id = format!("{:#x}", first.object);
        if first.is_collection {
            all.push(("show", words(&[&id]), "what is in it".to_owned()));
        } else {
            all.push(("dominators", words(&["--of", &id, "--depth", "3"]), "what is in it".to_owned()));
        }
        all.push(("dominators", Vec::new(), "what else holds much".to_owned()));
    } else {
        all.push(("summary", Vec::new(), "what was recorded".to_owned()));
    }
    all.push(("info", Vec::new(), "all that is known of the dump".to_owned()));
    all.truncate(STEPS);
    let step = |(command, arguments, why): (&str, Vec<String>, String)| {
        let mut words = vec!["hprof-cli".to_owned(), command.to_owned(), quoted(&dump.to_string_lossy())];
        words.extend(arguments);
        words.extend(heap_dump.iter().flat_map(|number| ["--heap-dump".to_owned(), number.to_string()]));
        Step { command: words.join(" "), words, why }
    };
    all.into_iter().map(step).collect()
}

/// What paths lead to.
fn target(holder: &Holder) -> String {
    match &holder.class {
        Some(class) if holder.is_class && !class.contains(escape::is_harmful) => class.clone(),
        _ => format!("{:#x}", holder.kept_by),
    }
}

/// The commands as lines, of which none is cut: long ones go on after a backslash.
pub(super) fn lines(steps: &[Step], width: usize) -> Vec<String> {
    let length = |step: &Step| 2 + step.command.chars().count();
    let fits = |step: &&Step| length(step) + 2 + step.why.chars().count() <= width;
    let column = steps.iter().filter(fits).map(length).max().unwrap_or(0);
    let mut lines = vec![String::new(), "Next".to_owned()];
    for step in steps {
        let command = format!("  {}", step.command);
        if column + 2 + step.why.chars().count() <= width && fits(&step) {
            lines.push(format!("{command:column$}  {}", step.why));
        } else if length(step) <= width {
            lines.push(command);
        } else {
            let mut line = " ".to_owned();
            for word in &step.words {
                if line.trim().is_empty() || line.chars().count() + word.chars().count() + 3 <= width {
                    line.push_str(&format!(" {word}"));
                } else {
                    lines.push(format!("{line} \\"));
                    line = format!("    {word}");
                }
            }
            lines.push(line);
        }
    }
    lines
}

/// Whether a name can be typed, and means itself as a pattern.
fn is_typed(name: &str) -> bool {
    let is_plain = |c: char| c == ' ' || c.is_ascii_graphic() && !matches!(c, '\'' | '*' | '\\' | '"' | '!');
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.chars().all(is_plain)
        && !name.starts_with(['-', '0'])
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
