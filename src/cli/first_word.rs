//! The first word of a command line if it is not a command: a dump, a typo, or a command of another tool.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use hprof_query::naming::suggestions;

use super::shared::commands::quoted;

/// Command that is run for a dump without a command.
const OVERVIEW: &str = "overview";

/// Commands of jhat, jmap, jcmd, Eclipse MAT, VisualVM and others, with the equivalent command of this program. The typed
/// word is compared without leading hyphens, in lower case, with `-` and `.` as `_`.
const HABITS: &[(&[&str], &str)] = &[
    (&["heap", "open", "load", "jhat", "hat", "top_components"], "overview DUMP"),
    (
        &[
            "wasted",
            "collections_grouped_by_size",
            "collection_fill_ratio",
            "array_fill_ratio",
            "map_collision_ratio",
            "group_by_value",
            "waste_in_char_arrays",
            "duplicates",
        ],
        "waste DUMP",
    ),
    (&["leak_suspects", "suspects", "leak", "leakhunter", "find_leaks"], "leaks DUMP"),
    (&["heap_dump_overview", "system_overview", "report", "analyze", "analyse", "parse"], "overview DUMP"),
    (
        &[
            "histogram",
            "class_histogram",
            "gc_class_histogram",
            "jmap",
            "classhisto",
            "count",
            "stat",
            "stats",
        ],
        "histo DUMP",
    ),
    (&["unreachable", "unreachable_objects", "garbage"], "histo DUMP --unreachable"),
    (
        &[
            "dominator_tree",
            "dominator",
            "tree",
            "top",
            "top_consumers",
            "biggest_objects",
            "immediate_dominators",
        ],
        "dominators DUMP",
    ),
    (&["retained_set", "show_retained_set", "customized_retained_set", "size"], "retained DUMP CLASS"),
    (
        &["path", "path2gc", "path_to_gc_roots", "gc_path", "why", "merge_shortest_paths", "shortest_paths"],
        "paths-to-root DUMP 0x1234",
    ),
    (&["gc_roots", "gcroots", "root"], "roots DUMP"),
    (&["thread", "thread_overview", "thread_dump", "thread_print", "jstack", "stack"], "threads DUMP"),
    (&["stacks", "locals", "thread_stack", "thread_details"], "threads DUMP --stack --locals"),
    (&["class_loaders", "classloaders", "class_loader_explorer", "classloader_stats"], "loaders DUMP"),
    (&["duplicate_classes"], "loaders DUMP --duplicates"),
    (&["duplicate_strings", "group_by_value", "dup_strings"], "strings DUMP --duplicates"),
    (&["find_strings", "grep", "search"], "strings DUMP"),
    (&["select", "sql", "query"], "oql DUMP 'SELECT * FROM java.lang.String'"),
    (&["inspect", "object", "print", "cat", "dump_object"], "show DUMP 0x1234"),
    (&["list_objects", "objects", "list"], "instances DUMP CLASS"),
    (&["references", "outbound", "with_outgoing_references"], "refs DUMP 0x1234"),
    (&["inbound", "referrers", "with_incoming_references", "incoming"], "refs DUMP 0x1234 --incoming"),
    (&["properties", "sysprops", "system_properties", "vm_flags", "header"], "info DUMP"),
    (&["validate", "verify"], "doctor DUMP"),
    (&["anonymize", "sanitize", "scrub", "mask", "strip"], "redact DUMP -o OUT"),
    (&["repair", "restore", "salvage", "merge"], "recover FILE... -o OUT"),
    (&["flame", "flame_graph", "flamegraphs"], "flamegraph DUMP"),
    (
        &[
            "compare",
            "delta",
            "delta_histogram",
            "compare_tables",
            "leakhunter2",
            "find_leaks2",
            "baseline",
            "growth",
        ],
        "diff OLD NEW",
    ),
    (&["history", "series", "timeline", "object_growth"], "trend DUMP DUMP DUMP"),
    (&["completion"], "completions bash"),
];

/// Error: the first word is not a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoCommand {
    /// The word as typed.
    pub(super) word: String,
    /// Suggestion what to type instead; empty if there is none.
    pub(super) hint: String,
}

/// Returns the command line with a command: `overview` is inserted if there is only a dump. `commands` are the names of
/// all commands.
pub(super) fn with_command(
    mut arguments: Vec<OsString>,
    commands: &[&str],
) -> Result<Vec<OsString>, NoCommand> {
    let is_command = |word: &OsStr| commands.iter().any(|name| word == *name) || word == "help";
    let Some(first) = arguments.get(1) else { return Ok(arguments) };
    if is_command(first) {
        return Ok(arguments);
    }
    let word = first.to_string_lossy().into_owned();
    let is_file = |word: &OsString| Path::new(word).is_file();
    let is_dump = if word == "-" {
        true
    } else if word.starts_with('-') {
        // Options without a command.
        let mut rest = arguments.iter().skip(2);
        rest.clone().any(is_file) && !rest.any(|word| is_command(word)) && habit(&word).is_none()
    } else {
        let path = Path::new(first);
        path.is_file() || habit(&word).is_none() && (path.exists() || word.contains(['/', '.']))
    };
    if is_dump {
        // `hprof-cli DUMP leaks`
        if let Some(command) = arguments.get(2).filter(|word| is_command(word) && !is_file(word)) {
            let behind = arguments.iter().skip(3).map(OsString::as_os_str);
            let all = [command.as_os_str(), first.as_os_str()].into_iter().chain(behind);
            let line: Vec<String> = all.map(quoted).collect();
            let hint = format!("the command comes first: hprof-cli {}", line.join(" "));
            return Err(NoCommand { word, hint });
        }
        arguments.insert(1, OVERVIEW.into());
        return Ok(arguments);
    }
    let hint = match (habit(&word), word.starts_with('-')) {
        (Some(meant), _) => format!("try `hprof-cli {meant}`"),
        // The parser handles --help and --version.
        (None, true) => return Ok(arguments),
        (None, false) => match suggestions::names_like(&word, commands.iter().copied()).as_slice() {
            [] => "`hprof-cli --help` lists all commands".to_owned(),
            like => suggestions::did_you_mean(like),
        },
    };
    Err(NoCommand { word, hint })
}

/// Returns the equivalent of another tool's command.
fn habit(word: &str) -> Option<&'static str> {
    let word = word.trim_start_matches('-').to_lowercase().replace(['-', '.'], "_");
    // `jmap -histo:live`
    let word = word.split([':', '=']).next().unwrap_or_default();
    let word = if word == "histo" { "histogram" } else { word };
    HABITS.iter().find(|(words, _)| words.contains(&word)).map(|(_, meant)| *meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &[&str]) -> Result<Vec<OsString>, NoCommand> {
        with_command(line.iter().map(OsString::from).collect(), crate::cli::NAMES)
    }

    #[test]
    fn no_habit_leads_to_a_command_that_is_not_there() {
        for (words, meant) in HABITS {
            let line = format!("hprof-cli {}", meant.split('\'').next().unwrap_or_default());
            let mut line: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            line.extend(meant.split('\'').nth(1).map(str::to_owned));
            let parsed = crate::cli::command().try_get_matches_from(line);
            assert!(parsed.is_ok(), "{words:?}: {meant}: {:?}", parsed.err());
        }
    }

    #[test]
    fn a_dump_alone_is_looked_at() {
        let dump = "samples/leaks/s1.hprof.zst";
        let overview: Vec<OsString> = ["hprof-cli", "overview", dump].iter().map(OsString::from).collect();
        assert_eq!(completed(&["hprof-cli", dump]), Ok(overview));
        for line in [&["hprof-cli", "nothing.hprof"][..], &["hprof-cli", "--format", "json", dump]] {
            assert!(completed(line).is_ok_and(|line| line.get(1).is_some_and(|word| word == OVERVIEW)));
        }
        for line in [&["hprof-cli", "histo", dump][..], &["hprof-cli", "--help"], &["hprof-cli"]] {
            assert!(completed(line).is_ok_and(|completed| completed.len() == line.len()));
        }
    }

    #[test]
    fn what_is_no_command_is_pointed_to_one() {
        for (word, hint) in [
            ("hist", "did you mean histo?"),
            ("domiantors", "did you mean dominators?"),
            ("heap", "try `hprof-cli overview DUMP`"),
            ("dominator_tree", "try `hprof-cli dominators DUMP`"),
            ("-histo", "try `hprof-cli histo DUMP`"),
            ("-histo:live", "try `hprof-cli histo DUMP`"),
            ("leak_suspects", "try `hprof-cli leaks DUMP`"),
            ("suspects", "try `hprof-cli leaks DUMP`"),
            ("GC.class_histogram", "try `hprof-cli histo DUMP`"),
            ("xyzzy", "`hprof-cli --help` lists all commands"),
        ] {
            let none = NoCommand { word: word.to_owned(), hint: hint.to_owned() };
            assert_eq!(completed(&["hprof-cli", word, "a.hprof"]), Err(none), "{word}");
        }
        let hint = "the command comes first: hprof-cli leaks a.hprof --format json".to_owned();
        let none = NoCommand { word: "a.hprof".to_owned(), hint };
        assert_eq!(completed(&["hprof-cli", "a.hprof", "leaks", "--format", "json"]), Err(none));
    }
}
