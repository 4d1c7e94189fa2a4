//! Running JVMs in the place of a file: which argument is a process ID, and class histograms of the process.

#[cfg(target_os = "linux")]
mod running;
#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(target_os = "linux")]
pub(crate) mod via;

use std::time::Duration;

use crate::cli::shared::args::Input;
use crate::cli::shared::class_histogram::CountedHistogram;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::durations::seconds;
use crate::cli::shared::worker::is_worker;

#[cfg(target_os = "linux")]
pub(crate) use running::ProcessArgs;
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::ProcessArgs;

/// Objects that a JVM counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedObjects {
    /// All objects, including garbage that was not collected yet.
    All,
    /// Reachable objects: the JVM collects garbage first.
    Reachable,
}

impl CountedObjects {
    /// Returns the objects according to `--live`.
    pub(crate) fn new(is_live: bool) -> Self {
        if is_live { Self::Reachable } else { Self::All }
    }
}

/// A class histogram of a running JVM.
pub(crate) struct TakenHistogram {
    pub(crate) counted: CountedHistogram,
    /// Reply of the JVM.
    pub(crate) text: String,
    /// Time for which the program's threads stood still; `None` if unknown.
    pub(crate) standstill: Option<Duration>,
}

impl TakenHistogram {
    /// Returns a note about what it cost.
    pub(crate) fn cost(&self) -> String {
        let stood_still = match self.standstill {
            Some(time) => format!("the program's threads stood still for {}", seconds(time)),
            None => "how long the program's threads stood still is unknown, as the JVM publishes no counters"
                .to_owned(),
        };
        match self.counted.histogram.facts.is_collected {
            Some(true) => format!("the JVM collected garbage first: {stood_still}"),
            _ => format!(
                "{stood_still}; garbage that was not collected yet is counted, too (--live: only reachable objects)"
            ),
        }
    }
}

/// A running JVM that takes class histograms.
pub(crate) trait HistogramSource {
    /// Takes a histogram.
    fn take(&mut self, objects: CountedObjects) -> anyhow::Result<TakenHistogram>;
}

/// Returns the process ID, if the file argument is one: digits that are not the name of a file.
pub(crate) fn process_id(cx: &RunContext, input: &Input) -> anyhow::Result<Option<u32>> {
    let path = input.path();
    let digits = path.to_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let Some(pid) = digits.and_then(|digits| digits.parse().ok()) else { return Ok(None) };
    if path.exists() {
        if !input.quiet {
            cx.emit("note", &format!("{pid} is a file, which is read, not the process with this ID"));
        }
        return Ok(None);
    }
    // Pages, terminals and assistants show files that were chosen in a shell.
    anyhow::ensure!(
        cx.is_shell() && !is_worker(),
        "{pid} is not a file, and processes cannot be inspected here; use a shell"
    );
    Ok(Some(pid))
}

impl ProcessArgs {
    /// Takes one class histogram of a JVM, and prints a note about what it cost.
    pub(crate) fn count(
        &self,
        cx: &RunContext,
        input: &Input,
        pid: u32,
        objects: CountedObjects,
    ) -> anyhow::Result<CountedHistogram> {
        anyhow::ensure!(
            input.heap_dump().is_none(),
            "{pid} is a process, which contains no heap dumps; omit --heap-dump"
        );
        let mut taken = None;
        self.with_jvm(pid, &mut |jvm| {
            taken = Some(jvm.take(objects)?);
            Ok(())
        })?;
        let taken = taken.ok_or_else(|| anyhow::anyhow!("the JVM was not asked"))?;
        if !input.quiet {
            cx.emit("note", &format!("{pid}: {}", taken.cost()));
        }
        Ok(taken.counted)
    }
}
