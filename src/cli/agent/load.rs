//! `agent load`: loads the agent into a running JVM and prints the JVM's response.

use crate::cli::Outcome;
use crate::cli::shared::context::RunContext;

use super::library;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli agent load 4711 heap=sites,sample=524288,depth=16,file=/home/app/sites.txt
  hprof-cli agent load 4711 dump
  hprof-cli agent load 4711 stop";

/// Load the agent into a running JVM, or control it there
///
/// Prints the agent's reply, or the reason if it refuses; `jcmd` prints only a number. `dump` writes what was recorded
/// so far; `stop` does the same and ends the recording, after which another one can be started. The JVM must run as the
/// same user, unless this command runs as root. Relative file names are resolved in the JVM's working directory.
#[derive(Debug, clap::Args)]
pub(crate) struct LoadArgs {
    /// Process ID of the JVM
    #[arg(value_name = "PID")]
    pid: u32,

    /// Options of the agent, as listed by `hprof-cli agent`: KEY=VALUE,...; or dump, stop, help
    #[arg(value_name = "OPTIONS", required = true)]
    options: Vec<String>,
}

pub(crate) fn run(cx: &RunContext, args: &LoadArgs) -> anyhow::Result<Outcome> {
    load(cx, args.pid, &args.options.join(","))
}

#[cfg(target_os = "linux")]
fn load(cx: &RunContext, pid: u32, options: &str) -> anyhow::Result<Outcome> {
    use std::io::Write;

    use anyhow::{Context, bail, ensure};
    use hprof_capture::attach::{self, Jvm, TO_ANSWER};
    use hprof_report::escape;

    use crate::cli::shared::output;
    use crate::cli::shared::user_files::opener;

    let library = library::find()?;
    let opener = opener();
    let jvm = Jvm::find(pid, &opener)?;
    ensure!(
        jvm.sees_file(&library)?,
        "process {pid} runs in another file system, which does not contain {0}; copy the library to the same path \
         there, as the user of the process",
        library.display()
    );
    let library = library
        .to_str()
        .context("the path of the agent library is not valid UTF-8, which the JVM requires")?;
    let reply = jvm.ask("load", &[library, "true", options], Some(TO_ANSWER))?;
    let Some(code) = return_code(&reply.text).filter(|_| reply.code == 0) else {
        bail!("process {pid} did not load the agent: {}", reply.text.trim());
    };
    let said = jvm.ask("properties", &[], Some(TO_ANSWER))?;
    let said = attach::property(&said.text, hprof_format::AGENT_ANSWER).unwrap_or_default();
    if code != 0 {
        let reasons: Vec<_> = said.lines().map(|line| line.strip_prefix("HPROF: ").unwrap_or(line)).collect();
        match reasons[..] {
            [] => {
                bail!("the agent in process {pid} refused ({code}); the JVM printed the reason to its stderr")
            }
            _ => bail!("the agent in process {pid} refused: {}", reasons.join("; ")),
        }
    }
    let mut out = cx.writer();
    for line in said.lines() {
        writeln!(out, "{}", escape::text(line))?;
    }
    output::finish(out)?;
    Ok(Outcome::Fine)
}

/// Extracts the agent's return code from the JVM's response.
#[cfg(target_os = "linux")]
fn return_code(text: &str) -> Option<i32> {
    text.lines().find_map(|line| line.trim().strip_prefix("return code: "))?.trim().parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn load(_: u32, options: &str) -> anyhow::Result<Outcome> {
    anyhow::bail!(
        "`agent load` requires Linux; elsewhere, run: {}",
        library::jcmd(&library::find()?, options)
    )
}
