//! Class histograms of running JVMs, taken by diagnostic commands.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hprof_capture::machine::{CommandReply, Machine};
use hprof_query::recordings::class_histograms::{self, HistogramFacts};

use super::via::ViaArgs;
use super::{CountedObjects, HistogramSource, TakenHistogram};
use crate::cli::shared::class_histogram::CountedHistogram;
use crate::cli::shared::durations::duration;
use crate::cli::shared::user_files::opener;

/// Options for a process in the place of a file.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Target")]
pub(crate) struct ProcessArgs {
    #[command(flatten)]
    via: ViaArgs,

    /// Give up if the JVM does not answer for TIME, such as 90s or 10m; after 30 s, a message says what the command waits for
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
}

/// A JVM, on this machine or on that of `--via`.
struct RunningJvm<'m> {
    machine: &'m mut dyn Machine,
    pid: u32,
    /// Name in the answer.
    path: String,
    limit: Option<Duration>,
    heap_max_bytes: Option<u64>,
}

impl ProcessArgs {
    /// Returns an error if options for processes were given without a process.
    pub(crate) fn check_unused(&self) -> anyhow::Result<()> {
        for (option, is_given) in
            [("--via", self.via.command().is_some()), ("--timeout", self.timeout.is_some())]
        {
            anyhow::ensure!(
                !is_given,
                "{option} is for a running JVM: give its process ID, or omit {option}"
            );
        }
        Ok(())
    }

    /// Connects to the machine of a JVM, and runs `work` with the JVM.
    pub(crate) fn with_jvm(
        &self,
        pid: u32,
        work: &mut dyn FnMut(&mut dyn HistogramSource) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let opener = opener();
        let (mut machine, _) = self.via.connect(&opener, self.timeout)?;
        let heap_max_bytes = machine.find(pid)?.heap_max_bytes;
        let path = match self.via.command() {
            Some(command) => format!("{command}: {pid}"),
            None => pid.to_string(),
        };
        work(&mut RunningJvm { machine: machine.as_mut(), pid, path, limit: self.timeout, heap_max_bytes })
    }
}

impl HistogramSource for RunningJvm<'_> {
    fn take(&mut self, objects: CountedObjects) -> anyhow::Result<TakenHistogram> {
        let command = match objects {
            CountedObjects::All => "GC.class_histogram -all",
            CountedObjects::Reachable => "GC.class_histogram",
        };
        let CommandReply { text, standstill } = self.machine.jcmd(self.pid, command, self.limit)?;
        let facts = HistogramFacts {
            process: Some(self.pid.into()),
            created_ms: now_ms(),
            heap_max_bytes: self.heap_max_bytes,
            is_collected: Some(objects == CountedObjects::Reachable),
        };
        let histogram = class_histograms::of_reply(&text, facts).ok_or_else(|| {
            anyhow::anyhow!("process {} replied to `{command}` without a class histogram", self.pid)
        })?;
        let counted = CountedHistogram::of_process(histogram, self.path.clone());
        Ok(TakenHistogram { counted, text, standstill })
    }
}

fn now_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}
