//! Merges the sums of all chunks into a profile.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use hprof_format::percent::{percent, two_decimals};
use rustc_hash::FxHashMap;

use hprof_index::storage::human_bytes::group_digits;
use hprof_jfr::{ChunkSpan, FlightError};
use hprof_values::TraceSerial;

use super::super::events::{
    AllocationEvent, MonitorEvent, SampleEvent, SiteEvent, current_name, state, state_word,
};
use super::super::traces::StoredFrames;
use super::chunk_sums::{ChunkSums, StateNumber, ThreadChange};
use super::heap::Collecting;
use super::mallocs::OpenMallocs;
use super::memory_over_time::MemorySums;
use super::site_sums::{SiteSums, Sum};
use super::stacks::Stack;
use super::{EventCount, FlightFacts, FlightReport, SampleState, WaitTotal, Want, rounded_ms};
use crate::profile::{
    Origin, Profile, Samples, Site, Sites, StartedThread, ThreadEvent, TimeRow, Times, Traces, date_of_nanos,
};
use hprof_base::sorting::SortRows;

/// Maximum number of starts and ends of threads in a recording.
const MAX_THREADS: usize = 1 << 22;

/// Name in place of a class for native memory.
const NATIVE_MEMORY: &str = "<native memory>";

/// Merged sums of the chunks so far. Where the file chooses the keys, the hash is seeded.
#[derive(Debug, Default)]
pub(super) struct MergedChunks {
    pub(super) facts: FlightFacts,
    version: (u16, u16),
    traces: Traces,
    /// Indexes into `stored` by list of frame numbers.
    lists: HashMap<Box<[u32]>, u32>,
    /// Buffer for the list of frame numbers that is looked up.
    numbers: Vec<u32>,
    /// Distinct lists of frames.
    stored: Vec<StoredFrames>,
    /// Serial number of the trace without a thread, by index of the list of frames; [`TraceSerial::NONE`] if there is none.
    of_all_threads: Vec<TraceSerial>,
    /// Serial numbers of the traces with a thread, by thread and index of the list of frames.
    by_thread: HashMap<(u32, u32), TraceSerial>,
    classes: Vec<Arc<str>>,
    class_numbers: HashMap<Arc<str>, u32>,
    /// Samples by trace serial number and state, for each type of sample event.
    samples: [FxHashMap<(TraceSerial, StateNumber), u64>; SampleEvent::ALL.len()],
    /// Names of the states of sampled threads, by number from 1.
    states: Vec<Arc<str>>,
    /// Allocations by trace serial number and class, for each type of allocation event.
    allocations: [SiteSums; AllocationEvent::ALL.len()],
    waits: [SiteSums; 3],
    threads: Vec<StartedThread>,
    thread_events: Vec<ThreadEvent>,
    /// Indexes into `threads` by thread serial number.
    started: HashMap<u32, usize>,
    stack_threads: HashMap<u32, Arc<str>>,
    left_out_threads: u64,
    counts: HashMap<Arc<str>, (u64, u64)>,
    heap: Collecting,
    memory: MemorySums,
    mallocs: OpenMallocs,
}

impl MergedChunks {
    /// Creates sums for the chunks of a recording, before any of them is added.
    pub(super) fn new(chunks: &[ChunkSpan]) -> Self {
        Self { mallocs: OpenMallocs::new(chunks), ..Self::default() }
    }

    /// Adds the sums of the next chunk.
    pub(super) fn add(&mut self, span: &ChunkSpan, sums: Result<ChunkSums, FlightError>) {
        let (header, facts) = (&span.header, &mut self.facts);
        if facts.chunks == 0 {
            (self.version, facts.start_nanos) = (header.version, header.start_nanos);
        }
        facts.chunks += 1;
        facts.unfinished_chunks += u64::from(header.is_in_flight());
        facts.end_nanos = facts.end_nanos.max(header.start_nanos.saturating_add(header.duration_nanos));
        facts.duration_nanos = facts.duration_nanos.saturating_add(header.duration_nanos);
        let sums = match sums {
            Ok(sums) => sums,
            Err(error) => return facts.problem(error),
        };
        sums.problems.iter().for_each(|problem| facts.problem(problem));
        facts.lost_stacks += sums.lost_stacks;
        facts.lost_samples = facts.lost_samples.saturating_add(sums.lost_samples);
        self.left_out_threads += sums.left_out_threads;
        facts.jvm = sums.jvm.or(facts.jvm.take());
        for count in sums.counts {
            let sum = self.counts.entry(count.name).or_default();
            *sum = (sum.0 + count.events, sum.1 + count.bytes);
        }
        let (frames, lists) = (sums.stacks.frames, sums.stacks.lists);
        let frames: Vec<u32> = frames.into_iter().map(|frame| self.traces.intern(frame)).collect();
        let lists: Vec<u32> = lists.iter().map(|list| self.list(list, &frames)).collect();
        let mut serials = Vec::with_capacity(sums.stacks.stacks.len());
        for stack in sums.stacks.stacks {
            let list = lists.get(stack.list as usize).copied().unwrap_or(u32::MAX);
            serials.push(self.trace(&stack, list));
        }
        let serial = |stack: u32| serials.get(stack as usize).copied().unwrap_or(TraceSerial::NONE);
        let mut classes = Vec::with_capacity(sums.classes.len());
        for class in sums.classes {
            classes.push(*self.class_numbers.entry(class).or_insert_with_key(|class| {
                self.classes.push(Arc::clone(class));
                u32::try_from(self.classes.len() - 1).unwrap_or(u32::MAX)
            }));
        }
        let states: Vec<StateNumber> =
            sums.states.iter().map(|name| number_of(&mut self.states, name)).collect();
        for (all, of_chunk) in self.samples.iter_mut().zip(sums.samples) {
            for ((stack, state), samples) in of_chunk {
                let state = usize::from(state).checked_sub(1).and_then(|at| states.get(at)).copied();
                let sum = all.entry((serial(stack), state.unwrap_or(0))).or_default();
                *sum = sum.saturating_add(samples);
            }
        }
        let allocations = self.allocations.iter_mut().zip(sums.allocations);
        for (all, of_chunk) in allocations.chain(self.waits.iter_mut().zip(sums.waits)) {
            for (stack, class, sum) in of_chunk.iter() {
                let class = classes.get(class as usize).copied().unwrap_or(u32::MAX);
                all.add(serial(stack).0, class, *sum);
            }
        }
        self.stack_threads.extend(sums.stack_threads);
        self.heap.add_all(sums.heap);
        self.memory.add_all(sums.memory);
        self.mallocs.add(header.start_nanos, sums.mallocs, serial);
        for change in sums.threads {
            let trace = serial(change.stack);
            self.thread(change, trace);
        }
    }

    /// Returns the serial number of a trace with a list of frames.
    fn trace(&mut self, stack: &Stack, list: u32) -> TraceSerial {
        let of_all_threads = match stack.thread {
            0 => self.of_all_threads.get_mut(list as usize),
            _ => None,
        };
        let known = match &of_all_threads {
            Some(serial) => **serial,
            None => self.by_thread.get(&(stack.thread, list)).copied().unwrap_or(TraceSerial::NONE),
        };
        if known != TraceSerial::NONE {
            return known;
        }
        let serial = TraceSerial(u32::try_from(self.traces.len() + 1).unwrap_or(u32::MAX));
        match of_all_threads {
            Some(place) => *place = serial,
            None => _ = self.by_thread.insert((stack.thread, list), serial),
        }
        let none = StoredFrames::default();
        self.traces.add_stored(serial, stack.thread, self.stored.get(list as usize).unwrap_or(&none));
        self.facts.truncated_stacks += u64::from(stack.is_truncated);
        serial
    }

    /// Returns the index of a list of frames. `frames` maps the chunk's frame numbers to merged ones.
    fn list(&mut self, list: &[u32], frames: &[u32]) -> u32 {
        let numbers = list.iter().filter_map(|frame| frames.get(*frame as usize).copied());
        self.numbers.clear();
        self.numbers.extend(numbers);
        if let Some(known) = self.lists.get(&*self.numbers) {
            return *known;
        }
        let number = u32::try_from(self.stored.len()).unwrap_or(u32::MAX);
        self.stored.push(self.traces.store(self.numbers.iter().copied()));
        self.of_all_threads.push(TraceSerial::NONE);
        self.lists.insert(self.numbers.as_slice().into(), number);
        number
    }

    fn thread(&mut self, change: ThreadChange, trace: TraceSerial) {
        let (serial, is_full) = (change.thread.serial, self.thread_events.len() >= MAX_THREADS);
        if is_full {
            self.left_out_threads += 1;
            return;
        }
        if change.is_end {
            self.thread_events.push(ThreadEvent::End(serial));
            if let Some(thread) = self.started.get(&serial).and_then(|at| self.threads.get_mut(*at)) {
                thread.ended = true;
            }
            return;
        }
        self.thread_events.push(ThreadEvent::Start);
        self.started.insert(serial, self.threads.len());
        self.threads.push(StartedThread {
            serial,
            trace,
            name: Arc::clone(&change.thread.name),
            group: Arc::clone(&change.thread.group.name),
            parent_group: change.thread.group.parent.clone(),
            ..StartedThread::default()
        });
    }

    /// Returns the requested report.
    pub(super) fn finish(mut self, want: Want) -> FlightReport {
        let counts = std::mem::take(&mut self.counts).into_iter();
        let counts = counts.map(|(name, (events, bytes))| EventCount { name, events, bytes });
        self.facts.events = counts.collect();
        self.facts.events.sort_rows_by(|a, b| b.events.cmp(&a.events).then_with(|| a.name.cmp(&b.name)));
        let heap = std::mem::take(&mut self.heap).finish();
        heap.problem().into_iter().for_each(|problem| self.facts.problem(problem));
        let memory = std::mem::take(&mut self.memory).finish();
        memory.problem().into_iter().for_each(|problem| self.facts.problem(problem));
        if self.left_out_threads > 0 {
            let left_out = group_digits(self.left_out_threads);
            self.facts.problem(format!("too many starts and ends of threads: {left_out} were skipped"));
        }
        let (major, minor) = self.version;
        self.facts.sample_states = self.sample_states(&want.states);
        self.facts.waits = self.wait_totals();
        let mut samples = self.samples(want.samples);
        let contention = self.contention(want.monitors);
        let unfreed = want.site_event.filter(|event| *event == SiteEvent::UnfreedMemory);
        let unfreed = unfreed.map(|_| std::mem::take(&mut self.mallocs).finish());
        let mut sites: VecDeque<Sites> = match (want.site_event, &unfreed) {
            _ if !want.sites => VecDeque::new(),
            (_, Some((_, sums))) => self.sites_of(SiteEvent::UnfreedMemory, sums).into_iter().collect(),
            (Some(event), None) => self.sites(event).into_iter().collect(),
            (None, None) => SiteEvent::PREFERRED.into_iter().filter_map(|event| self.sites(event)).collect(),
        };
        if want.threads {
            let mut others: Vec<(u32, Arc<str>)> = self.stack_threads.into_iter().collect();
            others.sort_unstable();
            let is_other = |(serial, _): &(u32, Arc<str>)| !self.started.contains_key(serial);
            let threads = others.into_iter().filter(is_other);
            let threads = threads.map(|(serial, name)| StartedThread { serial, name, ..Default::default() });
            self.threads.extend(threads);
        }
        let profile = Profile {
            format: format!("Flight Recorder {major}.{minor}"),
            created: date_of_nanos(self.facts.start_nanos),
            threads: self.threads,
            traces: self.traces,
            samples: samples.pop_front(),
            contention,
            sites: sites.pop_front(),
            ..Profile::default()
        };
        FlightReport {
            profile,
            facts: self.facts,
            thread_events: self.thread_events,
            other_samples: samples.into(),
            other_sites: sites.into(),
            heap,
            memory,
            unfreed: unfreed.map(|(facts, _)| facts),
        }
    }

    /// Returns the number of samples by type and state, and which of them are counted: those in `wanted` states if it is not
    /// empty.
    fn sample_states(&self, wanted: &[String]) -> Vec<SampleState> {
        // JDK 9 and 10, whose names of types no other profiler writes.
        let is_of_jdk = self.facts.events.iter().any(|count| current_name(&count.name) != *count.name);
        let mut all = Vec::new();
        for event in SampleEvent::ALL {
            let mut sums: BTreeMap<StateNumber, u64> = BTreeMap::new();
            for ((_, state), samples) in self.kind(&self.samples, event as usize) {
                let sum = sums.entry(*state).or_default();
                *sum = sum.saturating_add(*samples);
            }
            let name =
                |state: &StateNumber| usize::from(*state).checked_sub(1).and_then(|at| self.states.get(at));
            let names: Vec<&str> = sums.keys().filter_map(name).map(|name| state_word(name)).collect();
            let counted = CountedStates::new(event, if is_of_jdk { &[] } else { &names }, wanted);
            all.extend(sums.iter().map(|(state, samples)| SampleState {
                event,
                number: *state,
                state: name(state).cloned(),
                samples: *samples,
                is_counted: counted.contains(name(state).map(|name| state_word(name))),
                is_wall_clock: counted == CountedStates::Runnable,
            }));
        }
        all
    }

    /// Returns the samples of the requested type; if none is requested, the samples of all alternative types, the preferred
    /// type first.
    fn samples(&self, wanted: Option<SampleEvent>) -> VecDeque<Samples> {
        match wanted {
            Some(event) => self.samples_of(event).into_iter().collect(),
            None => SampleEvent::PREFERRED.into_iter().filter_map(|event| self.samples_of(event)).collect(),
        }
    }

    /// Returns the samples of a type in counted states; `None` if there are none.
    fn samples_of(&self, event: SampleEvent) -> Option<Samples> {
        let states = self.facts.sample_states.iter().filter(|state| state.event == event && state.is_counted);
        let counted: Vec<&SampleState> = states.collect();
        let is_counted = |number: StateNumber| counted.iter().any(|state| state.number == number);
        let mut sums: FxHashMap<TraceSerial, u64> = FxHashMap::default();
        for ((trace, state), samples) in self.kind(&self.samples, event as usize) {
            if is_counted(*state) {
                let sum = sums.entry(*trace).or_default();
                *sum = sum.saturating_add(*samples);
            }
        }
        if sums.is_empty() {
            return None;
        }
        let mut rows: Vec<(TraceSerial, u64)> = sums.into_iter().collect();
        rows.sort_rows_by_key(|(trace, samples)| (Reverse(*samples), *trace));
        let total = rows.iter().fold(0u64, |sum, (_, samples)| sum.saturating_add(*samples));
        let is_wall_clock = counted.iter().any(|state| state.is_wall_clock);
        Some(Samples {
            total,
            rows,
            date: self.end_date(),
            event: Some(event),
            is_wall_clock,
            ..Samples::default()
        })
    }

    /// Returns the end of the recording as a date.
    fn end_date(&self) -> Option<String> {
        date_of_nanos(self.facts.end_nanos)
    }

    fn kind<'m, T, const N: usize>(&self, of: &'m [T; N], kind: usize) -> &'m T {
        of.get(kind).unwrap_or(&of[0])
    }

    fn wait_totals(&self) -> Vec<WaitTotal> {
        let total = |event: MonitorEvent| {
            let sums = self.kind(&self.waits, event as usize);
            let (rows, nanos) = sums
                .iter()
                .fold((0u64, 0u64), |(rows, nanos), (.., sum)| (rows + 1, nanos.saturating_add(sum.amount)));
            WaitTotal { event, nanos, rows }
        };
        MonitorEvent::ALL.into_iter().map(total).filter(|waits| waits.rows > 0).collect()
    }

    /// Returns waits of the requested type; by default of the first type that occurs.
    fn contention(&self, wanted: Option<MonitorEvent>) -> Option<Times> {
        let found = |event: &MonitorEvent| !self.kind(&self.waits, *event as usize).is_empty();
        let event = wanted.or_else(|| MonitorEvent::ALL.into_iter().find(found)).filter(found)?;
        let mut rows: Vec<(TraceSerial, Arc<str>, Sum)> = (self.kind(&self.waits, event as usize).iter())
            .map(|(trace, class, sum)| (TraceSerial(trace), self.class(class), *sum))
            .collect();
        rows.sort_rows_by(|a, b| {
            let key = |row: &(TraceSerial, Arc<str>, Sum)| (Reverse(row.2.amount), row.0);
            key(a).cmp(&key(b)).then_with(|| a.1.cmp(&b.1))
        });
        let all = rows.iter().fold(0u64, |all, (.., sum)| all.saturating_add(sum.amount));
        let mut accumulated = 0.0;
        let rows = rows.into_iter().map(|(trace, class, sum)| {
            let part = percent(sum.amount, all);
            accumulated += part;
            TimeRow {
                trace,
                count: sum.events,
                self_percent: two_decimals(part),
                accumulated_percent: two_decimals(accumulated),
                name: Some(class.to_string()).filter(|name| !name.is_empty()),
                nanos: Some(sum.amount),
            }
        });
        let rows = rows.collect();
        Some(Times { total_ms: rounded_ms(all), rows, date: self.end_date(), event: Some(event) })
    }

    fn class(&self, number: u32) -> Arc<str> {
        self.classes.get(number as usize).cloned().unwrap_or_default()
    }

    /// Returns allocation sites from events of this kind, if there are any such events.
    fn sites(&self, event: SiteEvent) -> Option<Sites> {
        let kinds = event.events().iter().map(|event| self.kind(&self.allocations, *event as usize));
        let mut sums = SiteSums::default();
        for (trace, class, sum) in kinds.flat_map(SiteSums::iter) {
            // Native memory has no class.
            let class = if event.is_native() { u32::MAX } else { class };
            sums.add(trace, class, *sum);
        }
        self.sites_of(event, &sums)
    }

    /// Returns allocation sites with these sums, if there are any.
    fn sites_of(&self, event: SiteEvent, sums: &SiteSums) -> Option<Sites> {
        if sums.is_empty() {
            return None;
        }
        let site = |(trace, class, sum): (u32, u32, &Sum)| Site {
            class: if event.is_native() { NATIVE_MEMORY.into() } else { self.class(class) },
            trace: TraceSerial(trace),
            allocated_bytes: sum.amount,
            samples: sum.events,
            ..Site::default()
        };
        let mut rows: Vec<Site> = sums.iter().map(site).collect();
        rows.sort_rows_by(|a, b| {
            let key = |site: &Site| (Reverse(site.allocated_bytes), site.trace);
            key(a).cmp(&key(b)).then_with(|| a.class.cmp(&b.class))
        });
        let total = rows.iter().fold(Site::default(), |sum, site| Site {
            allocated_bytes: sum.allocated_bytes.saturating_add(site.allocated_bytes),
            samples: sum.samples + site.samples,
            ..sum
        });
        let mut sites = Sites {
            origin: Origin::Sampled,
            rows,
            total: Some(total),
            event: Some(event),
            by_allocation: true,
            date: self.end_date(),
        };
        sites.fill_percentages();
        Some(sites)
    }
}

/// States of sampled threads whose samples are counted.
#[derive(Debug, PartialEq, Eq)]
enum CountedStates<'w> {
    All,
    /// Samples of async-profiler's CPU engine: the recording may contain wall-clock samples beside them.
    Default,
    /// Running threads among wall-clock samples.
    Runnable,
    Wanted(&'w [String]),
}

impl<'w> CountedStates<'w> {
    /// Returns the counted states among those of an event type: the `wanted` ones if there are any.
    fn new(event: SampleEvent, states: &[&str], wanted: &'w [String]) -> Self {
        let has = |state| states.contains(&state);
        match event {
            _ if !wanted.is_empty() => Self::Wanted(wanted),
            SampleEvent::Native | SampleEvent::CpuTime => Self::All,
            _ if has(state::DEFAULT) => Self::Default,
            // The JDK samples running threads only.
            _ if event == SampleEvent::WallClock || has(state::SLEEPING) => Self::Runnable,
            _ => Self::All,
        }
    }

    fn contains(&self, name: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Default => name == Some(state::DEFAULT),
            Self::Runnable => name == Some(state::RUNNABLE),
            Self::Wanted(wanted) => {
                name.is_some_and(|name| wanted.iter().any(|wanted| state_word(wanted) == name))
            }
        }
    }
}

/// Returns the number of a state, from 1; 0 if there are too many, of which the others have no names.
fn number_of(states: &mut Vec<Arc<str>>, name: &Arc<str>) -> StateNumber {
    let known = states.iter().position(|known| known == name);
    let at = known.or_else(|| {
        let is_free = states.len() < usize::from(StateNumber::MAX);
        is_free.then(|| states.push(Arc::clone(name))).map(|()| states.len() - 1)
    });
    at.and_then(|at| StateNumber::try_from(at + 1).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hprof_writer::hostile_keys::is_seeded;

    /// The file chooses the keys: without a seed it could choose keys that collide.
    #[test]
    fn hashes_are_seeded() {
        let MergedChunks { lists, by_thread, class_numbers, .. } = MergedChunks::default();
        assert!(is_seeded(&lists) && is_seeded(&by_thread) && is_seeded(&class_numbers));
        let MergedChunks { started, stack_threads, counts, .. } = MergedChunks::default();
        assert!(is_seeded(&started) && is_seeded(&stack_threads) && is_seeded(&counts));
        assert!(is_seeded(&ChunkSums::default().stack_threads));
    }
}
