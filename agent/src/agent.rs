//! The agent: events of the JVM, and what is done at them.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::dumps::What;
use crate::jvm::{Capability, Event, Events, Jni, Jvmti, Ref, VirtualThreadOf};
use crate::options::{self, Asked, Cpu, Options, USAGE};
use crate::output::Output;
use crate::output::sink::Sink;
use crate::record::classes::Classes;
use crate::record::lock;
use crate::record::monitors::{self, Monitors, Waiting};
use crate::record::samples::Samples;
use crate::record::sites::{self, Sampling, Sites};
use crate::record::threads::Threads;
use crate::record::times::Times;
use crate::record::traces::{self, Traces};
use crate::tags::{Epoch, Ids, Tag};

static AGENT: OnceLock<Agent> = OnceLock::new();

/// The agent, if it runs.
#[inline]
pub fn get() -> Option<&'static Agent> {
    AGENT.get()
}

/// A message, on stderr: stdout is the program's.
pub fn say(message: &str) {
    // A closed stderr is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{message}");
}

/// A message about something that went wrong.
pub fn complain(message: &str) {
    say(&format!("HPROF: {message}"));
}

/// What becomes of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// It runs.
    Runs,
    /// The JVM is told of an error.
    Refuses,
    /// The JVM ends before it runs anything.
    Exit(i32),
}

/// What the agent's own thread is asked for.
#[derive(Debug)]
pub enum Command {
    /// To write.
    Dump(What),
    /// To write, then to record no more.
    Stop,
    /// One of the others, and to tell when it is done.
    Told(Box<Command>, Sender<()>),
    /// To collect garbage.
    Collect,
    /// To write, and end the JVM.
    Exit,
    /// The JVM ends.
    End,
}

/// Which event told of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeenBy {
    /// `SampledObjectAlloc`.
    Sampler,
    /// `VMObjectAlloc`.
    Jvm,
}

/// What is recorded, and how.
#[derive(Debug)]
pub struct Agent {
    /// JVM TI.
    pub jvmti: Jvmti,
    /// The options.
    pub options: Options,
    /// IDs of objects.
    pub ids: Ids,
    /// Classes.
    pub classes: Classes,
    /// Threads.
    pub threads: Threads,
    /// Traces.
    pub traces: Traces,
    /// Allocation sites.
    pub sites: Sites,
    /// How allocations are sampled.
    pub sampling: Sampling,
    /// CPU samples.
    pub samples: Option<Samples>,
    /// Time in methods.
    pub times: Option<Times>,
    /// Contention.
    pub monitors: Monitors,
    /// Finds virtual threads.
    pub virtual_threads: Option<VirtualThreadOf>,
    /// Whether the JVM tells the processor time of threads.
    pub has_cpu_time: bool,
    /// Where it is written.
    pub output: Mutex<Option<Output>>,
    /// The file of the first dump that the JVM writes.
    pub file: OnceLock<Option<std::path::PathBuf>>,
    /// One dump at a time.
    pub dumping: Mutex<()>,
    /// Of the last heap dump.
    pub epoch: Mutex<Epoch>,
    depth: AtomicUsize,
    recording: AtomicBool,
    ended: AtomicBool,
    /// `VMDeath` came.
    dying: AtomicBool,
    /// Garbage collections that started, and that the agent asked for and that ended.
    collections: AtomicUsize,
    collected: AtomicUsize,
    commands: Mutex<Option<Sender<Command>>>,
    receiver: Mutex<Option<Receiver<Command>>>,
    /// The agent's threads that run.
    running: AtomicUsize,
    attached: bool,
}

/// Starts the agent. `jni` is there if the JVM runs already.
pub fn start(jvmti: Jvmti, text: &str, jni: Option<&Jni<'_>>) -> Start {
    let asked = match options::parse(text) {
        Ok(asked) => asked,
        Err(error) => {
            complain(&error);
            return Start::Refuses;
        }
    };
    let running = get();
    match (asked, running, jni) {
        (Asked::Help, _, None) => {
            let _ = writeln!(std::io::stdout(), "{USAGE}");
            Start::Exit(0)
        }
        (Asked::Help, _, Some(_)) => {
            say(USAGE);
            Start::Runs
        }
        (Asked::Dump, Some(agent), Some(_)) => {
            agent.ask(Command::Dump(What::all(agent)));
            Start::Runs
        }
        (Asked::Stop, Some(agent), Some(_)) => {
            agent.ask(Command::Stop);
            Start::Runs
        }
        (Asked::Dump | Asked::Stop, ..) => {
            complain("dump and stop are for an agent that runs");
            Start::Refuses
        }
        (Asked::Record(_), Some(_), _) => {
            complain("the agent runs in this JVM already: dump and stop are what it can be told");
            Start::Refuses
        }
        (Asked::Record(options), None, _) => record(jvmti, *options, jni),
    }
}

/// The capabilities that the options need, and what is lost without each.
fn needed(options: &Options, attached: bool) -> Vec<(Capability, &'static str)> {
    let mut needed = vec![
        (Capability::TagObjects, "nothing can be recorded"),
        (Capability::LineNumbers, "traces have no line numbers"),
        (Capability::SourceFileName, "traces have no source files"),
    ];
    if options.sites {
        needed.push((
            Capability::SampledObjectAlloc,
            "another agent or profiler samples allocations: no allocations are seen, SITES has only live objects",
        ));
        needed.push((Capability::VmObjectAlloc, "objects that the JVM allocates itself have no trace"));
    }
    if options.heap_dump || options.sites {
        needed.push((Capability::CollectionEvents, "garbage is not collected before the last dump"));
    }
    if options.heap_dump {
        needed.push((Capability::Suspend, "threads run on between the walks of a heap dump"));
    }
    if options.cpu == Some(Cpu::Samples) {
        needed.push((Capability::ThreadCpuTime, "runnable threads are sampled, whether they run or not"));
    }
    if options.cpu.is_some_and(Cpu::is_timed) {
        needed.push((Capability::ClassHook, "no method is measured"));
    }
    if options.monitors {
        needed.push((Capability::Monitors, "no contention is seen"));
        needed.push((Capability::MonitorInfo, "MONITOR DUMP has no monitors"));
    }
    if !attached {
        needed.push((Capability::VirtualThreads, ""));
    }
    needed
}

fn record(jvmti: Jvmti, options: Options, jni: Option<&Jni<'_>>) -> Start {
    let attached = jni.is_some();
    let needed = needed(&options, attached);
    let wanted: Vec<_> = needed.iter().map(|(capability, _)| *capability).collect();
    let given = jvmti.add_capabilities(&wanted);
    for (capability, lost) in &needed {
        if given.contains(capability) || lost.is_empty() {
            continue;
        }
        complain(&format!("the JVM does not give {capability:?}: {lost}"));
        if *capability == Capability::TagObjects {
            return Start::Refuses;
        }
    }
    if attached && options.cpu.is_some_and(Cpu::is_timed) {
        complain("only methods of classes that are loaded from now on are measured");
    }
    if options.sites && given.contains(&Capability::SampledObjectAlloc) {
        // Before the first thread is made: each thread counts the bytes to its next sample from its start, and a thread that
        // has started takes up the interval only when its present one is over.
        let interval = i32::try_from(options.sample).unwrap_or(i32::MAX);
        if let Err(error) = jvmti.set_sampling_interval(interval) {
            complain(&format!("cannot set the sampling interval: {error}"));
        }
    }
    let sink = match sink(&options) {
        Ok(sink) => sink,
        Err(error) => {
            complain(&error);
            return Start::Refuses;
        }
    };
    let has = |capability| given.contains(&capability);
    let virtual_threads =
        if has(Capability::VirtualThreads) { jvmti.virtual_thread_function() } else { None };
    let (sender, receiver) = channel();
    let agent = Agent {
        jvmti,
        ids: Ids::default(),
        classes: Classes::default(),
        threads: Threads::default(),
        traces: Traces::new(options.lines),
        sites: Sites::default(),
        sampling: Sampling::every(options.sample),
        samples: (options.cpu == Some(Cpu::Samples)).then(Samples::default),
        times: options.cpu.filter(|cpu| cpu.is_timed()).map(|_| Times::new(options.depth)),
        monitors: Monitors::default(),
        virtual_threads,
        has_cpu_time: has(Capability::ThreadCpuTime),
        output: Mutex::new(Some(Output::new(sink, options.format, options.cpu == Some(Cpu::Old)))),
        file: OnceLock::new(),
        dumping: Mutex::default(),
        epoch: Mutex::default(),
        depth: AtomicUsize::new(options.depth),
        recording: AtomicBool::new(options.sites),
        ended: AtomicBool::new(false),
        dying: AtomicBool::new(false),
        collections: AtomicUsize::new(0),
        collected: AtomicUsize::new(0),
        commands: Mutex::new(Some(sender)),
        receiver: Mutex::new(Some(receiver)),
        running: AtomicUsize::new(0),
        attached,
        options,
    };
    if AGENT.set(agent).is_err() {
        return Start::Refuses;
    }
    let Some(agent) = get() else { return Start::Refuses };
    let enabled = jvmti.register().and_then(|()| {
        for event in [Event::VmStart, Event::VmInit, Event::VmDeath] {
            jvmti.enable(event)?;
        }
        if has(Capability::ClassHook) {
            jvmti.enable(Event::ClassFileLoad)?;
        }
        if has(Capability::SampledObjectAlloc) {
            // It comes from `VMInit` on.
            jvmti.enable(Event::SampledObjectAlloc)?;
        }
        Ok(())
    });
    if let Err(error) = enabled {
        complain(&format!("cannot turn on events: {error}"));
        return Start::Refuses;
    }
    if let Some(jni) = jni {
        agent.live(jni);
    }
    Start::Runs
}

/// The file or socket that the options name.
fn sink(options: &Options) -> Result<Sink, String> {
    if let Some((host, port)) = &options.net {
        return Sink::socket(host, *port);
    }
    let default = if options.format == options::Format::Text { "java.hprof.txt" } else { "java.hprof" };
    let mut path = options.file.clone().unwrap_or_else(|| default.into());
    if !options.force && path.exists() {
        // As the old agent: the process ID makes it another name.
        let mut name = path.into_os_string();
        name.push(format!(".{}", std::process::id()));
        path = name.into();
    }
    // The program may change its directory.
    let path = std::path::absolute(&path).unwrap_or(path);
    Sink::file(path)
}

impl Agent {
    /// Frames of a trace.
    #[inline]
    pub fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    /// Changes it.
    pub fn set_depth(&self, depth: usize) {
        self.depth.store(depth.min(options::MAX_DEPTH), Ordering::Relaxed);
    }

    /// Whether allocations are recorded.
    pub fn records_sites(&self) -> bool {
        self.recording.load(Ordering::Relaxed)
    }

    /// Turns the recording of allocations on or off.
    pub fn record_sites(&self, on: bool) {
        self.recording.store(on && self.options.sites, Ordering::Relaxed);
    }

    /// Asks the agent's own thread.
    pub fn send(&self, command: Command) {
        if let Some(commands) = lock(&self.commands).as_ref() {
            // A thread that ended needs no command.
            let _ = commands.send(command);
        }
    }

    /// As [`Self::send`], and waits until it is done: who loaded the agent again then finds the file. Not for ever: other
    /// requests of `jcmd` wait meanwhile.
    fn ask(&self, command: Command) {
        const PATIENCE: Duration = Duration::from_secs(600);
        let (done, told) = channel();
        self.send(Command::Told(Box::new(command), done));
        let _ = told.recv_timeout(PATIENCE);
    }

    /// The JVM can run Java.
    pub fn vm_start(&self, jni: &Jni<'_>) {
        if let Some(times) = &self.times {
            crate::tracker::install(times, jni);
        }
    }

    /// The JVM is ready.
    pub fn vm_init(&self, jni: &Jni<'_>, _: Ref<'_>) {
        self.live(jni);
    }

    /// From now on the program is recorded.
    fn live(&self, jni: &Jni<'_>) {
        if self.attached
            && let Some(times) = &self.times
        {
            crate::tracker::install(times, jni);
        }
        let mut events = vec![Event::ThreadStart, Event::ThreadEnd, Event::DataDumpRequest];
        if self.options.sites || self.options.heap_dump {
            events.push(Event::CollectionStart);
        }
        if self.options.sites {
            events.push(Event::VmObjectAlloc);
        }
        if self.options.monitors {
            events.extend([
                Event::ContendedEnter,
                Event::ContendedEntered,
                Event::MonitorWait,
                Event::MonitorWaited,
            ]);
        }
        jni.frame(crate::jvm::MAX_REFERENCES, |jni| {
            for thread in self.jvmti.threads(jni).unwrap_or_default() {
                self.threads.started(self.jvmti, jni, &self.ids, thread);
                jni.delete(thread);
            }
            self.run(jni, "HPROF control", |agent, jni| agent.control(&jni));
            if self.samples.is_some() {
                self.run(jni, "HPROF CPU sampler", |agent, jni| {
                    if let Some(samples) = &agent.samples {
                        samples.run(agent, &jni);
                    }
                });
            }
        });
        crate::control::listen(self);
        for event in events {
            // What the JVM has no capability for was said.
            let _ = self.jvmti.enable(event);
        }
        if self.options.sites {
            // At a collection threads give up the buffers that they allocate in (TLABs); in the next ones they are sampled.
            let _ = self.jvmti.collect_garbage();
        }
    }

    /// Starts a thread of the agent.
    fn run(&self, jni: &Jni<'_>, name: &str, run: fn(&'static Agent, Jni<'_>)) {
        let thread = || {
            let class = jni.find_class(c"java/lang/Thread")?;
            let name = jni.string(name)?;
            jni.new_object(class, c"(Ljava/lang/String;)V", &[crate::jvm::Argument::Object(Some(name))])
        };
        self.running.fetch_add(1, Ordering::AcqRel);
        let started = thread().is_some_and(|thread| {
            let run = Box::new(move |jni: Jni<'_>| {
                if let Some(agent) = get() {
                    // Counted down also if it panics.
                    struct Ends(&'static Agent);
                    impl Drop for Ends {
                        fn drop(&mut self) {
                            self.0.running.fetch_sub(1, Ordering::AcqRel);
                        }
                    }
                    let _ends = Ends(agent);
                    run(agent, jni);
                }
            });
            self.jvmti.run_agent_thread(thread, run).is_ok()
        });
        if !started {
            self.running.fetch_sub(1, Ordering::AcqRel);
            complain(&format!("cannot start the thread {name:?}"));
        }
    }

    /// The agent's own thread: one command after another.
    fn control(&self, jni: &Jni<'_>) {
        let Some(receiver) = lock(&self.receiver).take() else { return };
        while let Ok(command) = receiver.recv() {
            if !self.obey(jni, command) {
                return;
            }
        }
    }

    /// Does what a command says; says whether there may be more.
    fn obey(&self, jni: &Jni<'_>, command: Command) -> bool {
        match command {
            Command::Told(command, done) => {
                let more = self.obey(jni, *command);
                // Who asked may have lost patience.
                let _ = done.send(());
                return more;
            }
            Command::Dump(what) => self.dump(jni, what),
            Command::Stop => {
                self.stop_events();
                self.dump(jni, What::all(self));
                self.ended.store(true, Ordering::Release);
                self.close();
            }
            Command::Collect => {
                let _ = self.jvmti.collect_garbage();
                self.collected.fetch_add(1, Ordering::AcqRel);
            }
            Command::Exit => crate::control::exit(jni),
            Command::End => return false,
        }
        true
    }

    /// A garbage collection starts: nothing of the JVM may be called.
    pub fn collection_started(&self) {
        self.collections.fetch_add(1, Ordering::AcqRel);
    }

    /// Collects garbage; says whether it did.
    ///
    /// When the JVM ends, HotSpot stops the threads of concurrent collectors (ZGC, Shenandoah) before it sends `VMDeath`:
    /// who asks for a collection then waits for ever. So another thread asks, and if none starts, none will.
    pub fn collect_garbage(&self) -> bool {
        /// Until a collection starts, all threads have to come to a safepoint.
        const PATIENCE: Duration = Duration::from_millis(500);
        if !self.dying.load(Ordering::Acquire) {
            return match self.jvmti.collect_garbage() {
                Ok(()) => true,
                Err(error) => {
                    complain(&format!("cannot collect garbage: {error}"));
                    false
                }
            };
        }
        let (before, collected) =
            (self.collections.load(Ordering::Acquire), self.collected.load(Ordering::Acquire));
        self.send(Command::Collect);
        let start = Instant::now();
        while self.collected.load(Ordering::Acquire) == collected {
            if self.collections.load(Ordering::Acquire) == before && start.elapsed() > PATIENCE {
                return false;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        true
    }

    fn stop_events(&self) {
        for event in [
            Event::SampledObjectAlloc,
            Event::VmObjectAlloc,
            Event::ContendedEnter,
            Event::ContendedEntered,
            Event::MonitorWait,
            Event::MonitorWaited,
            Event::DataDumpRequest,
            Event::ClassFileLoad,
        ] {
            self.jvmti.disable(event);
        }
        self.recording.store(false, Ordering::Relaxed);
        if let Some(samples) = &self.samples {
            samples.stop();
        }
    }

    fn close(&self) {
        if let Some(output) = lock(&self.output).as_mut() {
            output.sink.close();
        }
    }

    /// The JVM ends.
    pub fn vm_death(&self, jni: &Jni<'_>) {
        /// How long the agent's threads may take to end: they are between two calls of the JVM.
        const PATIENCE: Duration = Duration::from_secs(2);
        self.dying.store(true, Ordering::Release);
        self.stop_events();
        if !self.ended.swap(true, Ordering::AcqRel) {
            let what = if self.options.dump_on_exit { What::all(self) } else { What::DEFINITIONS };
            self.dump(jni, what);
            self.close();
        }
        self.send(Command::End);
        for event in [Event::ThreadStart, Event::ThreadEnd, Event::CollectionStart] {
            self.jvmti.disable(event);
        }
        let start = Instant::now();
        while self.running.load(Ordering::Acquire) > 0 && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A platform thread starts.
    pub fn thread_start(&self, jni: &Jni<'_>, thread: Ref<'_>) {
        self.threads.started(self.jvmti, jni, &self.ids, thread);
    }

    /// A platform thread ends.
    pub fn thread_end(&self, _: &Jni<'_>, thread: Ref<'_>) {
        self.threads.ended(self.jvmti, thread);
    }

    /// SIGQUIT.
    pub fn data_dump_request(&self) {
        self.send(Command::Dump(What::all(self)));
    }

    /// The number of the stack of this thread, or of another.
    fn number(&self, jni: &Jni<'_>, thread: u32, frames: &[crate::jvm::Frame]) -> u32 {
        let hash = traces::hash(thread, frames);
        self.traces.number(self.jvmti, jni, (&self.classes, &self.ids), thread, frames, hash)
    }

    /// The trace of a thread, in the depth of the options.
    pub fn trace_of(&self, jni: &Jni<'_>, thread: Ref<'_>, serial: u32) -> u32 {
        self.trace_of_depth(jni, thread, serial, self.depth())
    }

    /// The trace of a thread.
    pub fn trace_of_depth(&self, jni: &Jni<'_>, thread: Ref<'_>, serial: u32, depth: usize) -> u32 {
        let mut frames = Vec::new();
        match self.jvmti.stack(Some(thread), &mut frames, depth) {
            Ok(()) => self.number(jni, serial, &frames),
            Err(_) => 0,
        }
    }

    /// The ID of an object; it gets one if it has none.
    pub fn object_id(&self, object: Ref<'_>) -> Option<u64> {
        let tag = Tag(self.jvmti.tag(object).ok()?);
        if tag.id() != 0 {
            return Some(tag.id());
        }
        let id = self.ids.next(self.jvmti.object_size(object).ok()?);
        self.jvmti.set_tag(object, tag.with_id(id).0).ok()?;
        Some(id)
    }

    /// The serial number of this thread, if traces tell threads apart.
    fn this_thread(&self, jni: &Jni<'_>) -> u32 {
        if !self.options.threads {
            return 0;
        }
        let Ok(thread) = self.jvmti.current_thread(jni) else { return 0 };
        let serial = self.threads.serial(self.jvmti, thread);
        jni.delete(thread);
        serial
    }

    /// An allocation was sampled.
    #[inline]
    pub fn sampled_object_alloc(&self, jni: &Jni<'_>, object: Ref<'_>, class: Ref<'_>, size: u64) {
        if !self.records_sites() {
            return;
        }
        if sites::may_be_counted()
            && let Ok(tag) = self.jvmti.tag(object)
            && Tag(tag).trace() != 0
        {
            sites::was_counted();
            return;
        }
        self.allocated(jni, object, (class, size), Tag::default(), SeenBy::Sampler);
    }

    /// The JVM allocated an object itself. HotSpot sends a sampling event for some of these too.
    pub fn vm_object_alloc(&self, jni: &Jni<'_>, object: Ref<'_>, class: Ref<'_>, size: u64) {
        // With sampling it matters only for what was just sampled.
        if !self.records_sites() || (self.sampling.is_estimate() && !sites::has_sampled()) {
            return;
        }
        let tag = Tag(self.jvmti.tag(object).unwrap_or(0));
        if tag.trace() == 0 {
            self.allocated(jni, object, (class, size), tag, SeenBy::Jvm);
        } else {
            let _ = sites::take_sampled();
        }
    }

    #[inline]
    fn allocated(
        &self,
        jni: &Jni<'_>,
        object: Ref<'_>,
        (class, size): (Ref<'_>, u64),
        tag: Tag,
        seen_by: SeenBy,
    ) {
        let thread = self.this_thread(jni);
        sites::with_frames(|frames| {
            if self.jvmti.stack(None, frames, self.depth()).is_err() {
                return;
            }
            let Some(class) = self.classes.id_of(self.jvmti, &self.ids, class) else { return };
            let hash = traces::hash(thread, frames);
            // The sampler's event told of it before. Its tag is lost: `Object.clone` resets the header, and JDK 21 and later
            // find tags by the identity hash code that was there.
            let again = seen_by == SeenBy::Jvm && sites::take_sampled() == Some((hash, class, size));
            if seen_by == SeenBy::Jvm && !again && self.sampling.is_estimate() {
                // It was not sampled.
                return;
            }
            let site = sites::recent(hash, class, frames).unwrap_or_else(|| {
                let known = (&self.classes, &self.ids);
                let trace = self.traces.number(self.jvmti, jni, known, thread, frames, hash);
                let site = self.sites.site((class, trace));
                sites::remember(hash, class, frames, std::sync::Arc::clone(&site));
                site
            });
            if !again {
                site.add(self.sampling.weight(size));
                match seen_by {
                    SeenBy::Sampler => sites::sampled((hash, class, size)),
                    SeenBy::Jvm => sites::counted_by_jvm(),
                }
            }
            // A class or thread may have its ID already.
            let _ = self.jvmti.set_tag(object, tag.with_trace(site.trace).0);
        });
    }

    /// A thread waits to enter a monitor.
    pub fn contended_enter(&self, jni: &Jni<'_>, _: Ref<'_>, object: Ref<'_>) {
        monitors::wait(self.waiting(jni, object));
    }

    /// It entered.
    pub fn contended_entered(&self, _: &Jni<'_>, _: Ref<'_>, _: Ref<'_>) {
        if let Some(waiting) = monitors::waited() {
            self.monitors.entered(waiting);
        }
    }

    fn waiting(&self, jni: &Jni<'_>, object: Ref<'_>) -> Waiting {
        let thread = self.this_thread(jni);
        let mut frames = Vec::new();
        let trace = match self.jvmti.stack(None, &mut frames, self.depth()) {
            Ok(()) => self.number(jni, thread, &frames),
            Err(_) => 0,
        };
        Waiting { since: Instant::now(), trace, signature: self.signature_of(jni, object) }
    }

    fn signature_of(&self, jni: &Jni<'_>, object: Ref<'_>) -> String {
        let Some(class) = jni.class_of(object) else { return "Ljava/lang/Object;".to_owned() };
        let signature = self.jvmti.class_signature(class);
        jni.delete(class);
        signature.unwrap_or_else(|_| "Ljava/lang/Object;".to_owned())
    }

    /// A thread starts `Object.wait`.
    pub fn monitor_wait(&self, jni: &Jni<'_>, thread: Ref<'_>, object: Ref<'_>, timeout: i64) {
        let signature = self.signature_of(jni, object);
        let serial = self.threads.serial(self.jvmti, thread);
        self.monitors.line(hprof_format::text::Wait::Wait(&signature, timeout), serial);
        monitors::wait(Waiting { since: Instant::now(), trace: 0, signature });
    }

    /// It ended.
    pub fn monitor_waited(&self, jni: &Jni<'_>, thread: Ref<'_>, object: Ref<'_>) {
        let waited = monitors::waited().map_or(0, |waiting| waiting.since.elapsed().as_millis());
        let signature = self.signature_of(jni, object);
        let serial = self.threads.serial(self.jvmti, thread);
        let waited = i64::try_from(waited).unwrap_or(i64::MAX);
        self.monitors.line(hprof_format::text::Wait::Waited(&signature, waited), serial);
    }

    /// A class file is loaded: what it is replaced with.
    pub fn class_file(&self, name: &[u8], boot: bool, bytes: &[u8]) -> Option<Vec<u8>> {
        let times = self.times.as_ref()?;
        crate::tracker::instrument(self, times, name, boot, bytes)
    }

    /// A rewritten method was entered.
    #[inline]
    pub fn method_entered(&self, method: i32) {
        if let Some(times) = &self.times {
            times.enter(method.cast_unsigned());
        }
    }

    /// A rewritten method was left.
    #[inline]
    pub fn method_left(&self, method: i32) {
        if let Some(times) = &self.times {
            times.exit(method.cast_unsigned());
        }
    }
}
