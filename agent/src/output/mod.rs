//! Output of recorded data. Definitions (strings, classes, frames, traces, threads) are written once, before references to
//! them.

mod monitor_dump;
pub mod sections;
pub mod sink;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hprof_format::binary::{self, Records};
use hprof_format::{date, text};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::names;
use crate::options::Format;
use crate::record::sites::{SiteCounts, SiteKey};
use crate::record::threads::ThreadEvent;
use crate::record::traces::{FIRST_SERIAL, TraceFrame};
use crate::state::AgentState;
use sink::Sink;

/// Output with the definitions that were written to it.
#[derive(Debug)]
pub struct Output {
    /// Destination of the output.
    pub sink: Sink,
    format: Format,
    started: SystemTime,
    written: WrittenDefinitions,
    /// Sites at the time when they were last written, if commands can request those that changed since.
    sites: FxHashMap<SiteKey, SiteCounts>,
}

/// Definitions that were written, so that each is written only once.
#[derive(Debug, Default)]
struct WrittenDefinitions {
    /// Lower limit (exclusive) of the agent's IDs for strings and frames, and for objects: 0, or a range that the JVM does not
    /// use.
    base: u64,
    /// Classes in the JVM's dump, if this output appends to one.
    jvm: Option<JvmClasses>,
    strings: FxHashMap<String, u64>,
    /// Number of written classes, in the order of their serial numbers.
    classes: usize,
    unloaded: FxHashSet<u32>,
    frames: FxHashSet<u32>,
    /// Number of the first trace that was not written yet.
    traces: u32,
}

/// Serial numbers of the classes in a dump that the JVM wrote.
#[derive(Debug, Default)]
pub struct JvmClasses {
    /// Serial numbers by class name. Of several classes with one name, the first counts.
    pub by_name: FxHashMap<String, u32>,
    /// Highest serial number in the JVM's dump.
    pub last: u32,
    /// Serial numbers in the JVM's dump by the agent's serial numbers.
    ours: FxHashMap<u32, u32>,
}

/// Lower limit of the agent's IDs in dumps that the JVM began, in which HotSpot's IDs are user-space addresses.
const BEHIND_JVM: u64 = 1 << 62;

/// Number of buffered bytes at which they are written.
const BUFFER: usize = 1 << 18;

/// Returns the serial number of the trace with this number.
pub fn serial(trace: u32) -> u32 {
    FIRST_SERIAL.saturating_add(trace)
}

impl Output {
    /// Creates an output and writes the header of its format.
    pub fn new(mut sink: Sink, format: Format, calls_only: bool) -> Self {
        let started = SystemTime::now();
        let since = started.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut head = Vec::new();
        match format {
            // The table of `cpu=old` has no header.
            Format::Text if calls_only => {}
            Format::Text => {
                let date = date::ctime(since.as_secs());
                let _ = text::head(&mut head, &date, EXPLANATION);
            }
            Format::Binary => {
                binary::header(&mut head, u64::try_from(since.as_millis()).unwrap_or(0));
            }
        }
        sink.write(&head);
        Self { sink, format, started, written: WrittenDefinitions::default(), sites: FxHashMap::default() }
    }

    /// Creates an output that appends to a dump of the JVM. `started` is the time in the dump's header.
    pub fn after_jvm_dump(sink: Sink, started: SystemTime, jvm: JvmClasses) -> Self {
        let written =
            WrittenDefinitions { base: BEHIND_JVM, jvm: Some(jvm), ..WrittenDefinitions::default() };
        Self { sink, format: Format::Binary, started, written, sites: FxHashMap::default() }
    }

    /// Closes the output, and forgets the written definitions.
    pub fn close(&mut self) {
        self.sink.close();
        self.written = WrittenDefinitions::default();
        self.sites = FxHashMap::default();
    }

    /// Returns `true` if the output appends to a dump of the JVM.
    pub fn appends_to_jvm_dump(&self) -> bool {
        self.written.jvm.is_some()
    }

    /// Returns the serial number in this file for the class with a serial number of the agent.
    pub fn class_serial(&self, serial: u32) -> u32 {
        match &self.written.jvm {
            Some(jvm) => jvm.ours.get(&serial).copied().unwrap_or(0),
            None => serial,
        }
    }

    /// Returns the format of the output.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the current date in the form of text reports, in UTC as in the output of `convert`.
    pub fn date(&self) -> String {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        date::ctime(since.as_secs())
    }

    /// Returns the microseconds since the time in the header, modulo 2^32 as in the format.
    pub fn micros(&self) -> u32 {
        let since = SystemTime::now().duration_since(self.started).unwrap_or(Duration::ZERO);
        u32::try_from(since.as_micros() & u128::from(u32::MAX)).unwrap_or(0)
    }

    /// Returns the ID of a string; writes the string if it is new.
    pub fn string(&mut self, out: &mut Vec<u8>, text: &str) -> u64 {
        if let Some(id) = self.written.strings.get(text) {
            return *id;
        }
        let id = self.written.base + self.written.strings.len() as u64 + 1;
        self.written.strings.insert(text.to_owned(), id);
        // Names of the JVM contain no NUL and no lone surrogates here, so UTF-8 is valid modified UTF-8.
        Records::new(out, self.micros()).string(id, text.as_bytes());
        id
    }

    /// Writes the buffered bytes if there are more than `at`.
    fn flush(&mut self, out: &mut Vec<u8>, at: usize) {
        if out.len() > at {
            self.sink.write(out);
            out.clear();
        }
    }

    /// Writes all new definitions.
    pub fn definitions(&mut self, state: &AgentState) {
        let mut out = Vec::new();
        self.classes(state, &mut out);
        self.threads(state, &mut out);
        let traces = state.traces.since(self.written.traces);
        for trace in traces {
            let number = self.written.traces;
            self.written.traces += 1;
            self.trace(&mut out, serial(number), trace.thread, &trace.places);
            self.flush(&mut out, BUFFER);
        }
        self.flush(&mut out, 0);
    }

    /// Writes new classes, to which frames refer by serial number.
    fn classes(&mut self, state: &AgentState, out: &mut Vec<u8>) {
        if self.format == Format::Text {
            return;
        }
        let all = state.classes.all();
        for class in all.iter().skip(self.written.classes) {
            let name = names::internal_class(&class.signature);
            let serial = match &mut self.written.jvm {
                None => class.serial,
                Some(jvm) => {
                    let known = jvm.by_name.get(&name).copied();
                    let serial = known.unwrap_or_else(|| {
                        jvm.last = jvm.last.saturating_add(1);
                        jvm.last
                    });
                    jvm.ours.insert(class.serial, serial);
                    if known.is_some() {
                        continue;
                    }
                    serial
                }
            };
            let name = self.string(out, &name);
            let id = self.written.base | class.id;
            Records::new(out, self.micros()).load_class(serial, id, FIRST_SERIAL, name);
            self.flush(out, BUFFER);
        }
        self.written.classes = all.len();
    }

    /// Writes UNLOAD CLASS records for written classes that are no longer loaded.
    pub fn unloaded_classes(&mut self, state: &AgentState, loaded: &FxHashSet<u64>) {
        if self.format == Format::Text || self.written.jvm.is_some() {
            return;
        }
        let mut out = Vec::new();
        for class in state.classes.all().iter().take(self.written.classes) {
            if !loaded.contains(&class.id) && self.written.unloaded.insert(class.serial) {
                Records::new(&mut out, self.micros()).unload_class(class.serial);
            }
        }
        self.flush(&mut out, 0);
    }

    fn threads(&mut self, state: &AgentState, out: &mut Vec<u8>) {
        let happened = state.threads.take_events();
        if self.written.jvm.is_some() {
            // JVM TI does not provide the addresses by which the JVM's dump identifies thread objects.
            return;
        }
        for happened in happened {
            match (self.format, happened) {
                (Format::Text, ThreadEvent::Start(thread)) => {
                    // Readers of the agent's output parse a name up to the next quotation mark.
                    let name = thread.info.name.replace('"', "'");
                    let group = thread.info.group.replace('"', "'");
                    let start = text::ThreadStart {
                        object: thread.id,
                        serial: thread.serial,
                        name: &name,
                        group: &group,
                    };
                    let _ = text::thread_start(out, &start);
                }
                (Format::Text, ThreadEvent::End(serial)) => {
                    let _ = text::thread_end(out, serial);
                }
                (Format::Binary, ThreadEvent::Start(thread)) => {
                    let name = self.string(out, &thread.info.name);
                    let group = self.string(out, &thread.info.group);
                    let parent_group = self.string(out, &thread.info.parent_group);
                    let (serial, object) = (thread.serial, thread.id);
                    let start = binary::StartThread {
                        serial,
                        object,
                        trace: FIRST_SERIAL,
                        name,
                        group,
                        parent_group,
                    };
                    Records::new(out, self.micros()).start_thread(&start);
                }
                (Format::Binary, ThreadEvent::End(serial)) => {
                    Records::new(out, self.micros()).end_thread(serial);
                }
            }
        }
    }

    fn trace(&mut self, out: &mut Vec<u8>, serial: u32, thread: u32, places: &[TraceFrame]) {
        match self.format {
            Format::Text => {
                let _ = text::trace(out, serial, thread, places.iter().map(frame));
            }
            Format::Binary => {
                let base = self.written.base;
                let frames: Vec<_> = places.iter().map(|place| base + u64::from(place.number)).collect();
                for place in places {
                    if self.written.frames.insert(place.number) {
                        self.frame(out, place);
                    }
                }
                Records::new(out, self.micros()).trace(serial, thread, &frames);
            }
        }
    }

    fn frame(&mut self, out: &mut Vec<u8>, place: &TraceFrame) {
        let method = place.method.as_deref();
        let name = self.string(out, method.map_or(text::UNKNOWN_METHOD, |method| &method.name));
        let signature = self.string(out, method.map_or("", |method| &method.signature));
        let source = match method.and_then(|method| method.source.as_deref()) {
            Some(source) => self.string(out, source),
            None => 0,
        };
        let class = method
            .and_then(|method| method.class.as_ref())
            .map_or(0, |class| self.class_serial(class.serial));
        let frame = binary::Frame {
            id: self.written.base + u64::from(place.number),
            method: name,
            signature,
            source,
            class,
            line: place.line,
        };
        Records::new(out, self.micros()).frame(&frame);
    }
}

/// Converts a frame to the form of text reports.
pub fn frame(place: &TraceFrame) -> text::FrameLine<'_> {
    match &place.method {
        Some(method) => text::FrameLine {
            class: Some(&method.class_name),
            method: Some(&method.name),
            source: method.source.as_deref(),
            line: place.line,
        },
        None => text::FrameLine { line: -1, ..text::FrameLine::default() },
    }
}

const EXPLANATION: &str = "\
Written by the agent of hprof-cli, in the text format of the HPROF agent.
Times are in UTC. Object ids are hexadecimal, all other numbers decimal.

THREAD START, THREAD END
    A thread with its object id (obj), its serial number (id), its name and its
    group.

TRACE
    A call stack, innermost frame first. Trace 300000 is empty: it stands for
    objects that are older than the agent.

HEAP DUMP
    GC roots (ROOT), classes (CLS), instances (OBJ) and arrays (ARR): object id,
    size in bytes as the JVM states it (sz), trace of the allocation, and every
    reference that is not null.

SITES
    Classes and the traces where their objects were allocated: bytes and objects
    that are alive after a garbage collection, and that were ever allocated.
    Objects that the compiler proved to be unnecessary were not allocated.
    A command may request only sites that changed, or no garbage collection.

CPU SAMPLES
    How often each trace was found: once for every interval of processor time
    that its thread used, where the JVM could stop the thread.

CPU TIME (ms)
    Calls of each trace, and the time in it without its callees.

MONITOR TIME, MONITOR DUMP
    Time lost waiting to enter monitors; who owns and who waits for them.
";
