//! `--version --verbose`: facts about this build and machine, for a bug report.

use std::env::consts::{ARCH, OS};
use std::ffi::OsString;
use std::io::Write;

use clap::{Arg, ArgAction};

use hprof_index::storage::memory;
use hprof_report::escape;
use hprof_report::number::human_bytes;

use crate::cli::agent::library;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::output;

/// The commit of the source; `dist/build.sh` passes it to the compiler.
const COMMIT: Option<&str> = option_env!("HPROF_CLI_COMMIT");

/// Cargo features, and whether they are enabled.
const FEATURES: [(&str, bool); 3] = [
    ("serve", cfg!(feature = "serve")),
    ("sql", cfg!(feature = "sql")),
    ("parquet", cfg!(feature = "parquet")),
];

/// Position of an option in help: after `--help`.
const LAST: usize = 1000;

/// The option `--version`.
pub(crate) fn version() -> Arg {
    Arg::new("version")
        .short('V')
        .long("version")
        .help("Print version (with --verbose: facts for a bug report)")
        .action(ArgAction::Version)
        .display_order(LAST)
}

/// The option `--verbose`, which the help of `--version` names.
pub(crate) fn verbose() -> Arg {
    Arg::new("verbose").long("verbose").action(ArgAction::SetTrue).hide(true).requires("version")
}

/// Returns whether a command line consists of `--version` and `--verbose`, in any order. The parser stops at
/// `--version` and ignores everything after it.
pub(crate) fn is_verbose(arguments: &[OsString]) -> bool {
    let (mut version, mut verbose) = (false, false);
    for argument in arguments.iter().skip(1) {
        match argument.to_str() {
            Some("--version" | "-V") => version = true,
            Some("--verbose") => verbose = true,
            _ => return false,
        }
    }
    version && verbose
}

/// Prints the version and the facts about this build and this machine.
pub(crate) fn run(cx: &RunContext) -> anyhow::Result<()> {
    let mut out = cx.writer();
    writeln!(out, "hprof-cli {}", env!("CARGO_PKG_VERSION"))?;
    for (name, value) in facts() {
        writeln!(out, "{name}: {value}")?;
    }
    output::finish(out)
}

/// Returns the names and values to print, in this order.
fn facts() -> Vec<(&'static str, String)> {
    let features: Vec<&str> = FEATURES.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name).collect();
    let threads = std::thread::available_parallelism();
    let memory = memory::available(None);
    vec![
        ("commit", COMMIT.unwrap_or("unknown").to_owned()),
        ("features", if features.is_empty() { "none".to_owned() } else { features.join(", ") }),
        ("target", target()),
        ("debug assertions", if cfg!(debug_assertions) { "on" } else { "off" }.to_owned()),
        ("agent", agent()),
        ("system", system()),
        ("threads", threads.map_or_else(|_| "unknown".to_owned(), |threads| threads.to_string())),
        ("memory budget", memory.map_or_else(|| "unlimited".to_owned(), |memory| human_bytes(memory.bytes))),
    ]
}

/// Returns the processor, system and C library of the build target.
fn target() -> String {
    let environment = if cfg!(target_env = "gnu") {
        "-gnu"
    } else if cfg!(target_env = "musl") {
        "-musl"
    } else if cfg!(target_env = "msvc") {
        "-msvc"
    } else {
        ""
    };
    let details: Vec<&str> =
        [level(), cfg!(target_feature = "crt-static").then_some("static")].into_iter().flatten().collect();
    let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    format!("{ARCH}-{OS}{environment}{details}")
}

/// Returns the x86-64 level that the compiler could use.
fn level() -> Option<&'static str> {
    cfg!(target_arch = "x86_64").then_some(if cfg!(target_feature = "avx512vl") {
        "x86-64-v4"
    } else if cfg!(all(target_feature = "avx2", target_feature = "bmi2")) {
        "x86-64-v3"
    } else if cfg!(all(target_feature = "sse4.2", target_feature = "popcnt")) {
        "x86-64-v2"
    } else {
        "x86-64-v1"
    })
}

/// Returns the path of the agent's library.
fn agent() -> String {
    match (library::find(), library::env_path()) {
        (Ok(path), _) => escape::text(&path.to_string_lossy()).into_owned(),
        (Err(_), Some(path)) => {
            format!("not found, ${} is {}", library::VARIABLE, escape::text(&path.to_string_lossy()))
        }
        (Err(_), None) => "not found".to_owned(),
    }
}

/// Returns the system and, on Linux, the kernel release.
fn system() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{OS} {}", release.trim()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_both_options_and_nothing_else_ask_for_the_facts() {
        let asked = |line: &[&str]| is_verbose(&line.iter().map(OsString::from).collect::<Vec<_>>());
        for line in [["hprof-cli", "--version", "--verbose"], ["hprof-cli", "--verbose", "-V"]] {
            assert!(asked(&line), "{line:?}");
        }
        for line in [
            &["hprof-cli"][..],
            &["hprof-cli", "--version"],
            &["hprof-cli", "--verbose"],
            &["hprof-cli", "--version", "--verbose", "histo"],
        ] {
            assert!(!asked(line), "{line:?}");
        }
    }

    #[test]
    fn each_fact_is_one_line() {
        let facts = facts();
        assert!(facts.iter().all(|(_, value)| !value.is_empty() && !value.contains('\n')), "{facts:?}");
        assert!(facts.iter().any(|(name, value)| *name == "target" && value.starts_with(ARCH)), "{facts:?}");
    }
}
