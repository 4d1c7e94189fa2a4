//! `memory PID`: the memory of a running process.

use std::time::Duration;

use hprof_capture::VmKind;

use crate::cli::capture::dump::find;
use crate::cli::prelude::*;
use crate::cli::shared::user_files::opener;
use crate::cli::shared::worker::is_worker;

use super::process::LiveProcess;
use super::saved::{self, SavedMemory};
use super::{MemoryArgs, MemorySource, watch};

/// Maximum time for the reply to a diagnostic command, unless `--timeout` sets another.
const TO_ANSWER: Duration = Duration::from_secs(60);

pub(super) fn run(cx: &RunContext, args: &MemoryArgs) -> anyhow::Result<Outcome> {
    anyhow::ensure!(
        cx.is_shell() && !is_worker(),
        "{}: no such file; running JVMs can be read from a shell only",
        args.input.path().display()
    );
    let opener = opener();
    let (mut machine, place) = args.via.connect(&opener, args.timeout)?;
    let target = args.input.path().to_string_lossy();
    let pid = find(&target, machine.as_mut())?;
    let row = machine.find(pid)?;
    let mut process = LiveProcess {
        machine: machine.as_mut(),
        pid,
        answers: row.kind == VmKind::HotSpot,
        limit: Some(args.timeout.unwrap_or(TO_ANSWER)),
        notes: Vec::new(),
    };
    if args.trim {
        let reply = process.machine.jcmd(pid, "System.trim_native_heap", process.limit)?;
        // `Trim native heap: RSS+Swap: 87M->40M (-47M)`
        let lines = reply.text.lines().map(str::trim).filter(|line| line.contains("Trim"));
        lines.for_each(|line| cx.emit("note", line));
    }
    let mut sources = process.sources(args.nmt.is_none())?;
    if !args.input.quiet {
        process.notes.iter().for_each(|note| cx.emit("note", note));
    }
    if let Some(nmt) = &args.nmt {
        sources.native_memory = Some(saved::native_memory(nmt)?);
    }
    if let (true, Some(mappings)) = (cx.hides_values, &mut sources.mappings) {
        mappings.hide_paths();
    }
    if let Some(interval) = args.watch {
        return watch::run(cx, args, &mut process, sources, interval);
    }
    let mut source = MemorySource::new(place.name().to_owned());
    source.saved = SavedMemory::new(pid, row.main_class, sources);
    source.add_files(cx, args)?;
    drop(machine);
    if let Some(path) = &args.save {
        source.saved.write(path, &args.inputs(), args.force)?;
    }
    source.show(cx, args)
}
