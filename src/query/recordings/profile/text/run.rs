//! One run of a text report: converts events into a profile.

use super::heap::HeapCounter;
use super::rankings::Tables;
use super::{TextHeap, display_names};
use crate::profile::{
    Call, Frame, Method, Monitor, MonitorDump, Origin, Profile, Site, Sites, StartedThread, Wait, WaitKind,
};
use hprof_index::storage::id_map::IdMap;
use hprof_parser::text::event::{self, Ranking, TextEvent};
use hprof_values::TraceSerial;

/// State of a run that is being read.
#[derive(Debug, Default)]
pub(super) struct ProfileRun {
    profile: Profile,
    /// Index of the last thread with each serial number.
    threads: IdMap<u32, usize>,
    /// Trace that is being read.
    trace: Option<TextTrace>,
    heap: Option<HeapCounter>,
    ranking: Option<Ranking>,
    samples: Tables,
    times: Tables,
    contention: Tables,
}

#[derive(Debug)]
struct TextTrace {
    serial: TraceSerial,
    thread: u32,
    phase: Option<String>,
    frames: Vec<Frame>,
}

impl ProfileRun {
    /// Adds the event of a line to the profile.
    #[inline]
    pub(super) fn take(&mut self, event: TextEvent<'_>) {
        // Most lines of most files are of these kinds.
        match (&event, &mut self.heap) {
            (TextEvent::Field { .. } | TextEvent::Element { .. } | TextEvent::Nothing, _) => {}
            (TextEvent::Object(object), Some(heap)) => heap.object(object),
            (TextEvent::Array(array), Some(heap)) => heap.array(array),
            _ => self.take_other(event),
        }
    }

    fn take_other(&mut self, event: TextEvent<'_>) {
        match event {
            TextEvent::Frame(frame) => {
                if let Some(trace) = &mut self.trace {
                    trace.frames.push(self::frame(&frame));
                }
                return;
            }
            TextEvent::Header { format, created } => {
                self.profile.format = display_names::text(format);
                self.profile.created = created.and_then(display_names::date);
            }
            TextEvent::ThreadStart { object, serial, name, group } => {
                self.threads.insert(serial, self.profile.threads.len());
                self.profile.threads.push(StartedThread {
                    serial,
                    object,
                    name: display_names::text(name).into(),
                    group: display_names::text(group).into(),
                    ..StartedThread::default()
                });
                // Another thread of the JVM wrote this line: the trace continues after it.
                return;
            }
            TextEvent::ThreadEnd { serial } => {
                let thread = self.threads.get(&serial).and_then(|at| self.profile.threads.get_mut(*at));
                if let Some(thread) = thread {
                    thread.ended = true;
                }
                return;
            }
            TextEvent::Wait(wait) => {
                self.profile.waits.push(self::wait(&wait));
                return;
            }
            // The reader accounts for the lost line.
            TextEvent::Malformed { .. } => return,
            TextEvent::Trace { serial, thread, phase } => {
                self.end_trace();
                let phase = phase.map(display_names::text);
                self.trace = Some(TextTrace { serial, thread, phase, frames: Vec::new() });
                return;
            }
            TextEvent::HeapBegin { objects, bytes, date } => {
                self.heap = Some(HeapCounter::new(objects, bytes, display_names::date(date)));
            }
            TextEvent::Root(_) => self.in_heap(HeapCounter::root),
            TextEvent::Class { object, name, trace } => self.in_heap(|heap| heap.class(object, name, trace)),
            TextEvent::ClassReference { what, object } => {
                self.in_heap(|heap| heap.class_reference(what, object))
            }
            TextEvent::SitesBegin { by_allocation, date } => {
                self.profile.sites = Some(Sites {
                    origin: Origin::Recorded,
                    rows: Vec::new(),
                    total: None,
                    event: None,
                    by_allocation,
                    date: display_names::date(date),
                });
            }
            TextEvent::Site(site) => {
                if let Some(sites) = &mut self.profile.sites {
                    sites.rows.push(self::site(&site));
                }
            }
            TextEvent::RankingBegin { ranking, total, date } => {
                self.ranking = Some(ranking);
                self.tables(ranking).begin(total, date);
            }
            TextEvent::Row(row) => {
                if let Some(ranking) = self.ranking {
                    self.tables(ranking).row(ranking, &row);
                }
            }
            TextEvent::MonitorDumpBegin => self.profile.monitor_dumps.push(MonitorDump::default()),
            TextEvent::ThreadState { thread, trace, status } => {
                if let Some(dump) = self.profile.monitor_dumps.last_mut() {
                    dump.threads.push((thread, trace, display_names::text(status)));
                }
            }
            TextEvent::Monitor { name, unowned: _ } => {
                if let Some(dump) = self.profile.monitor_dumps.last_mut() {
                    let (id, raw) = (name.id, name.raw);
                    dump.monitors.push(Monitor {
                        name: display_names::monitor(&name),
                        id,
                        raw,
                        ..Monitor::default()
                    });
                }
            }
            TextEvent::Owner { thread, entries } => {
                if let Some(monitor) = self.monitor() {
                    monitor.owner = Some((thread, entries));
                }
            }
            TextEvent::WaitingToEnter(threads) => {
                if let Some(monitor) = self.monitor() {
                    monitor.waiting_to_enter.extend(threads);
                }
            }
            TextEvent::WaitingToBeNotified(threads) => {
                if let Some(monitor) = self.monitor() {
                    monitor.waiting_to_be_notified.extend(threads);
                }
            }
            TextEvent::Call { count, callee, caller, time } => self.profile.calls.push(Call {
                count,
                callee: callee.map(|callee| self::method(&callee)),
                caller: caller.map(|caller| self::method(&caller)),
                time_ms: time,
            }),
            TextEvent::Nothing
            | TextEvent::Object(_)
            | TextEvent::Array(_)
            | TextEvent::Field { .. }
            | TextEvent::Element { .. }
            | TextEvent::HeapEnd
            | TextEvent::SitesEnd
            | TextEvent::RankingEnd(_)
            | TextEvent::MonitorDumpEnd
            | TextEvent::CallsBegin => {}
        }
        self.end_trace();
    }

    fn end_trace(&mut self) {
        if let Some(TextTrace { serial, thread, phase, frames }) = self.trace.take() {
            self.profile.traces.add(serial, thread, phase, frames);
        }
    }

    fn in_heap(&mut self, take: impl FnOnce(&mut HeapCounter)) {
        if let Some(heap) = &mut self.heap {
            take(heap);
        }
    }

    fn tables(&mut self, ranking: Ranking) -> &mut Tables {
        match ranking {
            Ranking::Samples => &mut self.samples,
            Ranking::Times => &mut self.times,
            Ranking::Contention => &mut self.contention,
        }
    }

    fn monitor(&mut self) -> Option<&mut Monitor> {
        self.profile.monitor_dumps.last_mut()?.monitors.last_mut()
    }

    /// Returns the profile of the run, and its HEAP DUMP.
    pub(super) fn finish(mut self) -> (Profile, Option<TextHeap>) {
        self.end_trace();
        self.profile.samples = self.samples.samples();
        self.profile.times = self.times.times();
        self.profile.contention = self.contention.times();
        let counted = self.heap.map(HeapCounter::finish);
        let (heap, sites) = counted.map_or((None, None), |(heap, sites)| (Some(heap), sites));
        if self.profile.sites.is_none() {
            self.profile.sites = sites;
        }
        (self.profile, heap)
    }
}

fn frame(frame: &event::TextFrame<'_>) -> Frame {
    Frame {
        // Written by `convert`, and by the agent for an unknown class.
        class: (!matches!(frame.class, b"Unknown_class" | b"<Unknown Class>"))
            .then(|| display_names::class(frame.class).into()),
        method: (frame.method != b"<Unknown Method>").then(|| display_names::text(frame.method).into()),
        source: frame.source.map(|source| display_names::text(source).into()),
        line: frame.line,
    }
}

fn site(site: &event::AllocationSite<'_>) -> Site {
    Site {
        class: display_names::class(site.class).into(),
        trace: site.trace,
        live_bytes: site.live_bytes,
        live_instances: site.live_instances,
        allocated_bytes: site.allocated_bytes,
        allocated_instances: site.allocated_instances,
        samples: 0,
        self_percent: site.self_percent,
        accumulated_percent: site.accumulated_percent,
    }
}

fn wait(wait: &event::MonitorWait<'_>) -> Wait {
    Wait {
        kind: match wait.kind {
            event::WaitKind::Wait => WaitKind::Wait,
            event::WaitKind::Waited => WaitKind::Waited,
            event::WaitKind::Sleep => WaitKind::Sleep,
            event::WaitKind::Exit => WaitKind::Exit,
        },
        monitor: wait.monitor.as_ref().map(display_names::monitor),
        time: wait.time,
        thread: wait.thread,
    }
}

fn method(method: &event::MethodSignature<'_>) -> Method {
    Method {
        class: display_names::class(method.class),
        name: display_names::text(method.name),
        signature: display_names::text(method.signature),
    }
}
