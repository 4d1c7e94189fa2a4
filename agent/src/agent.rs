//! The agent: events of the JVM, and what is done at them.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use hprof_format::commands::{Command as Sent, Control};

use crate::commands::{Command, What};
use crate::jvm::{Event, Events, Handler, Jni, Ref};
use crate::messages::complain;
use crate::options::Cpu;
use crate::output::Output;
use crate::record::lock;
use crate::record::monitors::{self, Waiting};
use crate::record::samples::Samples;
use crate::record::sites;
use crate::record::times::Times;
use crate::record::traces;
use crate::state::State;
use crate::tags::Tag;

static AGENT: OnceLock<Agent> = OnceLock::new();

/// The agent, if it runs.
#[inline]
pub fn get() -> Option<&'static Agent> {
    AGENT.get()
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
    /// What the parts of it share.
    pub state: State,
    /// CPU samples.
    pub samples: Option<Samples>,
    /// Time in methods.
    pub times: Option<Times>,
    /// Where it is written: by one dump at a time.
    pub output: Mutex<Output>,
    /// The file of the first dump that the JVM writes.
    pub file: OnceLock<Option<std::path::PathBuf>>,
    ended: AtomicBool,
    commands: Sender<Command>,
    receiver: Mutex<Option<Receiver<Command>>>,
    /// The agent's threads that run.
    running: AtomicUsize,
    attached: bool,
}

impl Deref for Agent {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl Agent {
    /// The agent of this JVM; `None` if there is one already.
    pub fn install(state: State, output: Output, attached: bool) -> Option<&'static Self> {
        let (sender, receiver) = channel();
        let cpu = state.options.cpu;
        let agent = Self {
            samples: (cpu == Some(Cpu::Samples)).then(Samples::default),
            times: cpu.filter(|cpu| cpu.is_timed()).map(|_| Times::new(state.options.depth)),
            output: Mutex::new(output),
            file: OnceLock::new(),
            ended: AtomicBool::new(false),
            commands: sender,
            receiver: Mutex::new(Some(receiver)),
            running: AtomicUsize::new(0),
            attached,
            state,
        };
        AGENT.set(agent).ok()?;
        get()
    }

    /// Asks the agent's own thread.
    pub fn send(&self, command: Command) {
        // A thread that ended needs no command.
        let _ = self.commands.send(command);
    }

    /// As [`Self::send`], and waits until it is done: who loaded the agent again then finds the file. Not for ever: other
    /// requests of `jcmd` wait meanwhile.
    pub fn ask(&self, command: Command) {
        const PATIENCE: Duration = Duration::from_secs(600);
        let (done, told) = channel();
        self.send(Command::Told(Box::new(command), done));
        let _ = told.recv_timeout(PATIENCE);
    }

    /// From now on the program is recorded.
    pub fn live(&self, jni: &Jni<'_>) {
        if self.attached
            && let Some(times) = &self.times
        {
            crate::tracker::install(times, jni, self.attached);
        }
        let mut events = vec![
            Event::ThreadStart,
            Event::ThreadEnd,
            Event::DataDumpRequest,
            Event::CollectionStart,
            Event::CollectionFinish,
        ];
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
            // Also where nothing of the heap is recorded: a command may ask for it.
            if !self.run(jni, "HPROF collector", |agent, _| agent.collector.run(agent.jvmti)) {
                self.collector.end();
            }
            if self.samples.is_some() {
                self.run(jni, "HPROF CPU sampler", |agent, jni| {
                    if let Some(samples) = &agent.samples {
                        samples.run(agent, &jni);
                    }
                });
            }
        });
        let stream = lock(&self.output).sink.stream();
        if let Some(stream) = stream {
            crate::control::listen(stream, |command| {
                if let Some(agent) = get() {
                    agent.act(command);
                }
            });
        }
        for event in events {
            // What the JVM has no capability for was said.
            let _ = self.jvmti.enable(event);
        }
        if self.options.sites {
            // At a collection threads give up the buffers that they allocate in (TLABs); in the next ones they are sampled.
            let _ = self.jvmti.collect_garbage();
        }
    }

    /// Starts a thread of the agent; says whether it did.
    fn run(&self, jni: &Jni<'_>, name: &str, run: fn(&'static Agent, Jni<'_>)) -> bool {
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
        started
    }

    /// Does what came over the socket.
    fn act(&self, command: Sent) {
        let nothing = What::default();
        let what = match command {
            // Not implemented by the old agent either; a heap dump and SITES collect garbage themselves.
            Sent::ForceGc | Sent::Eof => return,
            Sent::DumpHeap => What { heap: true, ..nothing },
            Sent::AllocSites { cutoff, .. } => What { sites: Some(f64::from(cutoff)), ..nothing },
            Sent::HeapSummary => What { summary: true, ..nothing },
            Sent::Exit => return self.send(Command::Exit),
            Sent::DumpTraces => nothing,
            Sent::CpuSamples { cutoff } => What { samples: Some(f64::from(cutoff)), ..nothing },
            Sent::Control(control) => {
                match (control, &self.samples) {
                    (Control::AllocTracesOn, _) => self.record_sites(true),
                    (Control::AllocTracesOff, _) => self.record_sites(false),
                    // The thread is not looked at: all are sampled, or none.
                    (Control::CpuSamplingOn { .. }, Some(samples)) => samples.pause(false),
                    (Control::CpuSamplingOff { .. }, Some(samples)) => samples.pause(true),
                    (Control::ClearCpuSamples, Some(samples)) => samples.clear(),
                    (Control::Depth(depth), _) => self.set_depth(usize::from(depth)),
                    _ => {}
                }
                What { settings: true, ..nothing }
            }
        };
        self.send(Command::Dump(what));
    }

    /// The agent's own thread: one command after another.
    fn control(&self, jni: &Jni<'_>) {
        let Some(receiver) = lock(&self.receiver).take() else { return };
        if self.attached
            && let Some(times) = &self.times
        {
            crate::tracker::wait_until_found(times, jni);
        }
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
            // The last dump is that of `VMDeath`; what was asked for before and not begun is in it.
            Command::Dump(_) | Command::Stop if self.collector.is_ending() => {}
            Command::Dump(_) | Command::Stop if self.ended.load(Ordering::Acquire) => {
                complain("the recording was stopped: there is no more to write");
            }
            Command::Dump(what) => self.dump(jni, what),
            Command::Stop => {
                self.stop_events();
                self.dump(jni, What::all(&self.options));
                self.ended.store(true, Ordering::Release);
                self.close();
            }
            Command::Exit => {
                // `VMDeath` comes on this thread, and waits for all others of the agent.
                self.running.fetch_sub(1, Ordering::AcqRel);
                crate::control::exit(jni);
                self.running.fetch_add(1, Ordering::AcqRel);
            }
            Command::End => return false,
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
            Event::ThreadStart,
            Event::ThreadEnd,
        ] {
            self.jvmti.disable(event);
        }
        self.end_recording();
        if let Some(times) = &self.times {
            times.ready.store(false, Ordering::Release);
        }
        if let Some(samples) = &self.samples {
            samples.stop();
        }
    }

    fn close(&self) {
        lock(&self.output).sink.close();
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

    fn waiting(&self, jni: &Jni<'_>, object: Ref<'_>) -> Waiting {
        let thread = self.this_thread(jni);
        let mut frames = Vec::new();
        let trace = match self.jvmti.stack(None, &mut frames, self.depth()) {
            Ok(()) => self.number(jni, thread, &frames),
            Err(_) => 0,
        };
        Waiting { since: Instant::now(), trace, signature: self.signature_of(jni, object) }
    }
}

impl Handler for Agent {
    fn vm_start(&self, jni: &Jni<'_>) {
        if let Some(times) = &self.times {
            crate::tracker::install(times, jni, self.attached);
        }
    }

    fn vm_init(&self, jni: &Jni<'_>, _: Ref<'_>) {
        self.live(jni);
    }

    fn vm_death(&self, jni: &Jni<'_>) {
        /// How long the agent's threads may take to end: they are between two calls of the JVM.
        const PATIENCE: Duration = Duration::from_secs(2);
        self.collector.jvm_ends();
        self.stop_events();
        if !self.ended.swap(true, Ordering::AcqRel) {
            let what = if self.options.dump_on_exit { What::all(&self.options) } else { What::default() };
            self.dump(jni, what);
            self.close();
        }
        self.send(Command::End);
        self.collector.end();
        for event in [Event::CollectionStart, Event::CollectionFinish] {
            self.jvmti.disable(event);
        }
        let start = Instant::now();
        // A collector that waits for ever is not waited for.
        let stuck = usize::from(self.collector.is_stuck());
        while self.running.load(Ordering::Acquire) > stuck && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn thread_start(&self, jni: &Jni<'_>, thread: Ref<'_>) {
        self.threads.started(self.jvmti, jni, &self.ids, thread);
    }

    fn thread_end(&self, _: &Jni<'_>, thread: Ref<'_>) {
        self.threads.ended(self.jvmti, thread);
    }

    fn data_dump_request(&self) {
        self.send(Command::Dump(What::all(&self.options)));
    }

    #[inline]
    fn sampled_object_alloc(&self, jni: &Jni<'_>, object: Ref<'_>, class: Ref<'_>, size: u64) {
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

    fn vm_object_alloc(&self, jni: &Jni<'_>, object: Ref<'_>, class: Ref<'_>, size: u64) {
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

    fn contended_enter(&self, jni: &Jni<'_>, thread: Ref<'_>, object: Ref<'_>) {
        // It may go on on another carrier, where nobody knows of the wait.
        if jni.is_virtual(thread) {
            return;
        }
        monitors::wait(self.waiting(jni, object));
    }

    fn contended_entered(&self, jni: &Jni<'_>, thread: Ref<'_>, _: Ref<'_>) {
        if jni.is_virtual(thread) {
            return;
        }
        if let Some(waiting) = monitors::waited() {
            self.monitors.entered(waiting);
        }
    }

    fn monitor_wait(&self, jni: &Jni<'_>, thread: Ref<'_>, object: Ref<'_>, timeout: i64) {
        if jni.is_virtual(thread) {
            return;
        }
        let signature = self.signature_of(jni, object);
        let serial = self.threads.serial(self.jvmti, thread);
        self.monitors.line(hprof_format::text::Wait::Wait(&signature, timeout), serial);
        monitors::wait(Waiting { since: Instant::now(), trace: 0, signature });
    }

    fn monitor_waited(&self, jni: &Jni<'_>, thread: Ref<'_>, object: Ref<'_>) {
        if jni.is_virtual(thread) {
            return;
        }
        let waited = monitors::waited().map_or(0, |waiting| waiting.since.elapsed().as_millis());
        let signature = self.signature_of(jni, object);
        let serial = self.threads.serial(self.jvmti, thread);
        let waited = i64::try_from(waited).unwrap_or(i64::MAX);
        self.monitors.line(hprof_format::text::Wait::Waited(&signature, waited), serial);
    }

    fn class_file(&self, name: &[u8], boot: bool, bytes: &[u8]) -> Option<Vec<u8>> {
        let times = self.times.as_ref()?;
        crate::tracker::instrument(&self.options, times, name, boot, bytes)
    }

    #[inline]
    fn method_entered(&self, method: i32) {
        if let Some(times) = &self.times {
            times.enter(method.cast_unsigned());
        }
    }

    #[inline]
    fn method_left(&self, method: i32) {
        if let Some(times) = &self.times {
            times.exit(method.cast_unsigned());
        }
    }

    fn collection_started(&self) {
        self.collector.started();
    }

    fn collection_finished(&self) {
        self.collector.finished();
    }
}
