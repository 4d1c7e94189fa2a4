//! `monitors --dumps`: the state of threads and monitors at a moment.

use std::io::Write;

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::{Value, json};

use crate::query::classes::pattern;
use crate::query::recordings::profile::{Monitor, MonitorDump, Profile, StartedThread};
use crate::query::recordings::traces;
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, Style};
use crate::report::{Format, csv, json::object_id};

use super::{Args, left_out};
use crate::cli::shared::args;
use crate::cli::shared::object;
use crate::cli::shared::output;
use crate::cli::shared::recording::Recorded;

/// Dumps that a table shows when nothing is said.
const USUAL_TOP: usize = 30;
/// Threads that a cell of a table lists.
const LISTED: usize = 6;

/// Shows MONITOR DUMPs. Whether there is one.
pub(crate) fn show(recorded: &Recorded, args: &Args) -> anyhow::Result<bool> {
    let (format, profile) = (args.output.format(), &recorded.profile);
    let top = args::top(args.top, format, USUAL_TOP).unwrap_or(usize::MAX);
    let all = &profile.monitor_dumps;
    let dumps = all.get(..top).unwrap_or(all);
    let view = View { profile, threads: traces::started_threads(profile), args };
    let mut out = output::stdout();
    match format {
        Format::Table => {
            let style = output::style(&args.output);
            for (number, dump) in (1..).zip(dumps) {
                view.table(&mut out, number, dump, style)?;
            }
            output::left_out(&mut out, dumps.len(), all.len() as u64, "dumps")?;
        }
        Format::Csv => {
            let rows = (1..).zip(dumps).flat_map(|(number, dump)| view.lines(number, dump));
            csv::write_flat(&mut out, LineOut::COLUMNS, rows)?;
        }
        Format::Json => {
            let rows = (1..).zip(dumps).map(|(number, dump)| view.row(number, dump));
            let more = json!({
                "matching": { "rows": all.len() },
                "left_out": left_out(dumps.len(), all.len() as u64),
            });
            recorded.json(&mut out, "monitors", Streamed::new(rows), more)?;
        }
    }
    output::finish(out)?;
    Ok(!dumps.is_empty())
}

struct View<'a> {
    profile: &'a Profile,
    threads: FxHashMap<u32, &'a StartedThread>,
    args: &'a Args,
}

/// A line of CSV: a thread or a monitor.
#[derive(Serialize)]
struct LineOut {
    dump: u64,
    kind: &'static str,
    thread: Option<u32>,
    thread_name: Option<String>,
    state: Option<String>,
    trace: Option<u32>,
    monitor: Option<String>,
    id: Option<String>,
    entry_count: Option<u32>,
    waiting_to_enter: Option<String>,
    waiting_to_be_notified: Option<String>,
}

impl LineOut {
    const COLUMNS: &[&str] = &[
        "dump",
        "kind",
        "thread",
        "thread_name",
        "state",
        "trace",
        "monitor",
        "id",
        "entry_count",
        "waiting_to_enter",
        "waiting_to_be_notified",
    ];
}

/// What a monitor belongs to.
fn kind(monitor: &Monitor) -> &'static str {
    if monitor.raw { "raw monitor" } else { "monitor" }
}

impl<'a> View<'a> {
    fn name(&self, serial: u32) -> Option<&'a str> {
        self.threads.get(&serial).map(|thread| thread.name.as_str())
    }

    fn monitors(&self, dump: &'a MonitorDump) -> impl Iterator<Item = &'a Monitor> {
        dump.monitors.iter().filter(|monitor| pattern::any_matches(&self.args.monitor, &monitor.name))
    }

    fn row(&self, number: u64, dump: &'a MonitorDump) -> Value {
        let threads = dump.threads.iter().map(|(thread, trace, state)| {
            let mut row = json!({
                "thread": thread,
                "thread_name": self.name(*thread),
                "state": state,
                "trace": trace,
            });
            if let (Some(stack), Some(row)) =
                (self.args.stack.of(&self.profile.traces, *trace), row.as_object_mut())
            {
                row.insert("frames".to_owned(), json!(stack.json()));
            }
            row
        });
        let waiters =
            |threads: &[u32]| -> Vec<Option<u32>> { threads.iter().map(|serial| known(*serial)).collect() };
        let monitors = self.monitors(dump).map(|monitor| {
            json!({
                "monitor": monitor.name,
                "id": monitor.id.map(object_id),
                "raw": monitor.raw,
                "owner": monitor.owner.map(|(thread, _)| thread),
                "owner_name": monitor.owner.and_then(|(thread, _)| self.name(thread)),
                "entry_count": monitor.owner.map(|(_, count)| count),
                "waiting_to_enter": waiters(&monitor.waiting_to_enter),
                "waiting_to_be_notified": waiters(&monitor.waiting_to_be_notified),
            })
        });
        json!({
            "dump": number,
            "threads": threads.collect::<Vec<_>>(),
            "monitors": monitors.collect::<Vec<_>>(),
        })
    }

    fn lines(&self, number: u64, dump: &'a MonitorDump) -> Vec<LineOut> {
        let name = |serial: u32| self.name(serial).map(object::cell);
        let threads = dump.threads.iter().map(|(thread, trace, state)| LineOut {
            dump: number,
            kind: "thread",
            thread: Some(*thread),
            thread_name: name(*thread),
            state: Some(object::cell(state)),
            trace: Some(*trace),
            monitor: None,
            id: None,
            entry_count: None,
            waiting_to_enter: None,
            waiting_to_be_notified: None,
        });
        let waiters = |threads: &[u32]| {
            let threads: Vec<Option<u32>> = threads.iter().map(|serial| known(*serial)).collect();
            json!(threads).to_string()
        };
        let monitors = self.monitors(dump).map(|monitor| LineOut {
            dump: number,
            kind: kind(monitor),
            thread: monitor.owner.map(|(thread, _)| thread),
            thread_name: monitor.owner.and_then(|(thread, _)| name(thread)),
            state: None,
            trace: None,
            monitor: Some(object::cell(&monitor.name)),
            id: monitor.id.map(object_id),
            entry_count: monitor.owner.map(|(_, count)| count),
            waiting_to_enter: Some(waiters(&monitor.waiting_to_enter)),
            waiting_to_be_notified: Some(waiters(&monitor.waiting_to_be_notified)),
        });
        threads.chain(monitors).collect()
    }

    fn table(
        &self,
        out: &mut dyn Write,
        number: u64,
        dump: &'a MonitorDump,
        style: Style,
    ) -> anyhow::Result<()> {
        if number > 1 {
            writeln!(out)?;
        }
        writeln!(out, "MONITOR DUMP {number}")?;
        let mut threads = Builder::new(&[
            ("thread", Align::Right),
            ("state", Align::Left),
            ("trace", Align::Right),
            ("name", Align::Left),
        ]);
        for (thread, trace, state) in &dump.threads {
            let name = self.name(*thread).unwrap_or_default();
            threads.row([&thread.to_string(), state, &trace.to_string(), name]);
        }
        let serials = dump.threads.iter().map(|(_, trace, _)| *trace);
        self.args.stack.table(out, threads, style, &self.profile.traces, serials)?;
        let mut monitors = Builder::new(&[
            ("id", Align::Left),
            ("owner", Align::Right),
            ("entered", Align::Right),
            ("waiting to enter", Align::Left),
            ("to be notified", Align::Left),
            ("monitor", Align::Left),
        ]);
        let mut any = false;
        for monitor in self.monitors(dump) {
            any = true;
            let raw = if monitor.raw { "raw " } else { "" };
            monitors.row([
                monitor.id.map(object_id).unwrap_or_default(),
                monitor.owner.map(|(thread, _)| thread.to_string()).unwrap_or_default(),
                monitor.owner.map(|(_, count)| count.to_string()).unwrap_or_default(),
                listed(&monitor.waiting_to_enter),
                listed(&monitor.waiting_to_be_notified),
                format!("{raw}{}", monitor.name),
            ]);
        }
        if any {
            writeln!(out)?;
            monitors.write(out, style)?;
        }
        Ok(())
    }
}

/// The serial number of a thread, if the agent knew it.
fn known(serial: u32) -> Option<u32> {
    Some(serial).filter(|serial| *serial != 0)
}

/// Threads in a cell of a table.
fn listed(threads: &[u32]) -> String {
    let name = |serial: &u32| known(*serial).map_or_else(|| "?".to_owned(), |serial| serial.to_string());
    let mut names: Vec<String> = threads.iter().take(LISTED).map(name).collect();
    if threads.len() > LISTED {
        names.push(format!("… {} more", threads.len() - LISTED));
    }
    names.join(" ")
}
