//! The options of the HPROF agent on a command line of Java: `-agentlib:hprof=heap=sites,depth=10`.

use std::ffi::OsString;
use std::path::Path;

use super::own_options::has_option;
use crate::cli::shared::commands::quoted;

/// Prefixes of the options that load the agent.
const PREFIXES: &[&str] = &["-agentlib:hprof=", "-Xrunhprof:"];

/// Returns the line that runs a program with our agent instead, if a word loads the HPROF agent.
pub(super) fn run_line(words: &[OsString]) -> Option<String> {
    let options = words.iter().find_map(|word| {
        let word = word.to_str()?;
        PREFIXES.iter().find_map(|prefix| word.strip_prefix(prefix))
    })?;
    if options == "help" {
        return Some("agent".to_owned());
    }
    let (mut line, mut others) = (String::from("run"), Vec::new());
    for option in options.split(',') {
        match option.split_once('=') {
            Some((name @ ("heap" | "cpu" | "depth" | "format"), value))
                if has_option("run", &format!("--{name}")) =>
            {
                line.push_str(&format!(" --{name} {}", quoted(value)));
            }
            Some(("file", value)) => line.push_str(&format!(" -o {}", quoted(value))),
            _ => others.push(option),
        }
    }
    if !others.is_empty() {
        line.push_str(&format!(" --options {}", quoted(&others.join(","))));
    }
    let is_agent =
        |word: &&OsString| PREFIXES.iter().any(|prefix| word.to_string_lossy().starts_with(prefix));
    let is_java = |word: &&OsString| Path::new(word).file_name().is_some_and(|name| name == "java");
    let java = words.first().filter(is_java);
    let program = words.iter().skip(usize::from(java.is_some())).filter(|word| !is_agent(word)).map(quoted);
    let program: Vec<String> = program.collect();
    let program = if program.is_empty() { "-jar APP.jar".to_owned() } else { program.join(" ") };
    Some(format!("{line} -- {} {program}", java.map_or("java".to_owned(), quoted)))
}
