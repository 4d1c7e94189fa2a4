//! The agent's library: its location, and how a JVM loads it.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};

use super::installed;
use crate::cli::shared::commands::quoted;

/// Environment variable with the path of the library.
pub(crate) const VARIABLE: &str = "HPROF_CLI_AGENT";

pub(super) use hprof_format::AGENT_USAGE as USAGE;

/// Finds the library: the one named by `$HPROF_CLI_AGENT`, or else the one installed or built with this program.
///
/// # Errors
///
/// If there is no library; the message says how to build it.
pub(crate) fn find() -> anyhow::Result<PathBuf> {
    let file = format!("{DLL_PREFIX}hprof_agent{DLL_SUFFIX}");
    let found = installed::files(VARIABLE, &[&file])?.into_iter().next();
    found.map_or_else(
        || {
            anyhow::bail!(
                "cannot find the agent library ({file}) next to {}; build both with `cargo build --release` in the \
                 repository, or set ${VARIABLE} to the path of the library",
                installed::program()?.display()
            )
        },
        Ok,
    )
}

/// Returns the path in `$HPROF_CLI_AGENT`.
pub(crate) fn env_path() -> Option<PathBuf> {
    installed::env_path(VARIABLE)
}

/// Returns the `java` argument that loads the library with these options; an empty string selects the agent's defaults.
pub(super) fn argument(library: &Path, options: &str) -> String {
    let library = library.to_string_lossy();
    if options.is_empty() {
        format!("-agentpath:{library}")
    } else {
        format!("-agentpath:{library}={options}")
    }
}

/// Quotes an argument for JAVA_TOOL_OPTIONS, which the JVM splits at unquoted spaces. Returns `None` if it contains
/// both kinds of quotes.
pub(super) fn tool_option(argument: &str) -> Option<String> {
    let has = |c: char| argument.contains(c);
    match (has('"'), has('\'')) {
        (false, false) if !argument.contains(char::is_whitespace) => Some(argument.to_owned()),
        (false, _) => Some(format!("\"{argument}\"")),
        (true, false) => Some(format!("'{argument}'")),
        (true, true) => None,
    }
}

/// Returns the `jcmd` command that loads the library into a running JVM.
pub(super) fn jcmd(library: &Path, options: &str) -> String {
    let library = quoted(&format!("\"{}\"", library.to_string_lossy()));
    format!("jcmd PID JVMTI.agent_load {library} '\"{options}\"'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_tools_are_quoted_as_the_jvm_reads_them() {
        for (argument, word) in [
            ("-agentpath:/a/b.so=heap=sites", Some("-agentpath:/a/b.so=heap=sites")),
            ("-agentpath:/a b.so", Some("\"-agentpath:/a b.so\"")),
            ("-agentpath:/a\"b.so", Some("'-agentpath:/a\"b.so'")),
            ("-agentpath:/it's.so", Some("\"-agentpath:/it's.so\"")),
            ("-agentpath:/a\"'b.so", None),
        ] {
            assert_eq!(tool_option(argument).as_deref(), word, "{argument}");
        }
    }

    #[test]
    fn the_options_fit_into_a_terminal_and_are_all_there() {
        assert!(USAGE.lines().all(|line| line.chars().count() <= 80));
        for option in [
            "heap", "dump", "cpu", "monitor", "format", "file", "net", "depth", "interval", "cutoff",
            "lineno", "thread", "doe", "msa", "force", "verbose", "sample", "filter",
        ] {
            assert_eq!(
                USAGE.lines().filter(|line| line.starts_with(&format!("{option}="))).count(),
                1 + usize::from(option == "filter"),
                "{option}"
            );
        }
    }
}
