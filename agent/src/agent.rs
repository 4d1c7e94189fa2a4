//! State of a recording, and the handling of the JVM's events and of commands.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use hprof_format::commands::{Command as Sent, Control};

use crate::commands::{Command, CommandReply, DumpContents, SitesRequest};
use crate::jvm::{Event, Events, Handler, Jni, Latest, Ref};
use crate::messages::{self, complain};
use crate::options::Cpu;
use crate::output::Output;
use crate::record::monitors::{self, Waiting};
use crate::record::samples::{SampledThreads, Samples};
use crate::record::sites;
use crate::record::times::Times;
use crate::record::traces;
use crate::record::{self, lock};
use crate::state::AgentState;
use crate::tags::Tag;
use crate::tracker::is_wanted;

static AGENT: Latest<Agent> = Latest::empty();

/// Returns the agent of the last recording, if there was one.
#[inline]
pub fn get() -> Option<&'static Agent> {
    AGENT.get()
}

thread_local! {
    /// `true` on the agent's own threads, whose allocations are not counted for the program. Where such threads have references
    /// to all classes, `-Xcheck:jni` counts these in a nested event, for which it expects 32.
    static OWN: Cell<bool> = const { Cell::new(false) };
}

/// Reason why commands for CPU samples have no effect.
const NO_SAMPLES: &str = "the agent was started without cpu=samples";

/// Type of the event that reported an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeenBy {
    /// `SampledObjectAlloc`.
    Sampler,
    /// `VMObjectAlloc`.
    Jvm,
}

/// State of a recording: everything that handlers of events need.
#[derive(Debug)]
pub struct Agent {
    /// State shared by all parts of the agent.
    pub state: AgentState,
    /// CPU samples, if they are recorded.
    pub samples: Option<Samples>,
    /// Time in methods, if it is recorded.
    pub times: Option<Times>,
    /// Output, used by one dump at a time.
    pub output: Mutex<Output>,
    /// Path of the first dump that the JVM writes itself.
    pub file: OnceLock<Option<std::path::PathBuf>>,
    ended: AtomicBool,
    commands: Sender<Command>,
    receiver: Mutex<Option<Receiver<Command>>>,
    /// Number of running threads of the agent.
    pub running: AtomicUsize,
    /// Number of threads that are handling events which may tag objects.
    pub in_events: AtomicUsize,
    /// `true` when no more events are handled.
    pub closed: AtomicBool,
    /// `true` after the recorded data was cleared.
    pub retired: Mutex<bool>,
    attached: bool,
}

impl Deref for Agent {
    type Target = AgentState;

    fn deref(&self) -> &AgentState {
        &self.state
    }
}

impl Agent {
    /// Makes this agent the JVM's current one. The previous agent must have retired.
    pub fn install(state: AgentState, output: Output, attached: bool) -> &'static Self {
        record::next_recording();
        let (sender, receiver) = channel();
        let cpu = state.options.cpu;
        let new_times =
            || Times::new(state.options.depth, |name, boot| is_wanted(&state.options.filter, name, boot));
        let agent = Self {
            samples: (cpu == Some(Cpu::Samples)).then(Samples::default),
            times: cpu.filter(|cpu| cpu.is_timed()).map(|_| new_times()),
            output: Mutex::new(output),
            file: OnceLock::new(),
            ended: AtomicBool::new(false),
            commands: sender,
            receiver: Mutex::new(Some(receiver)),
            running: AtomicUsize::new(0),
            in_events: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            retired: Mutex::new(false),
            attached,
            state,
        };
        AGENT.set(agent)
    }

    /// Returns `true` if the recording was stopped.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Sends a command to the agent's control thread.
    pub fn send(&self, command: Command) {
        // A thread that has ended does not need the command.
        let _ = self.commands.send(command);
    }

    /// Sends a command as [`Self::send`] does, and waits until it is completed, so that a user who loads the agent for this
    /// purpose then finds the file. Repeats the command's messages. Returns whether it was carried out completely. The wait is
    /// limited, because it delays other requests of `jcmd`.
    pub fn ask(&self, command: Command) -> bool {
        const PATIENCE: Duration = Duration::from_secs(600);
        let (done, told) = channel();
        self.send(Command::Told(Box::new(command), done));
        match told.recv_timeout(PATIENCE) {
            Ok(answer) => {
                messages::add_messages(answer.said);
                answer.done
            }
            Err(RecvTimeoutError::Timeout) => {
                let seconds = PATIENCE.as_secs();
                complain(&format!(
                    "the command has not finished after {seconds} s; the JVM's stderr will report its completion"
                ));
                false
            }
            Err(RecvTimeoutError::Disconnected) => {
                complain("the recording ended before the command was carried out");
                false
            }
        }
    }

    /// Starts to record the program when the JVM is initialized.
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
                self.threads.register_running(self.jvmti, jni, &self.ids, thread);
                jni.delete(thread);
            }
            self.run(jni, "HPROF control", |agent, jni| agent.control(&jni));
            // The collector is needed even if nothing of the heap is recorded, because a command may request a dump.
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
            // The commands belong to this recording: a later one has its own socket, or none.
            let agent = get();
            crate::control::listen(stream, move |command| {
                if let Some(agent) = agent {
                    agent.act(command);
                }
            });
        }
        for event in events {
            // Missing capabilities were already reported.
            let _ = self.jvmti.enable(event);
        }
        if self.options.sites {
            // At a garbage collection, threads return their allocation buffers (TLABs); allocations in the new buffers are
            // sampled.
            let _ = self.jvmti.collect_garbage();
        }
    }

    /// Starts a thread of the agent; returns whether it was started.
    fn run(&self, jni: &Jni<'_>, name: &str, run: fn(&'static Agent, Jni<'_>)) -> bool {
        let thread = || {
            let class = jni.find_class(c"java/lang/Thread")?;
            let name = jni.string(name)?;
            jni.new_object(class, c"(Ljava/lang/String;)V", &[crate::jvm::Argument::Object(Some(name))])
        };
        let agent = get();
        self.running.fetch_add(1, Ordering::AcqRel);
        let started = thread().is_some_and(|thread| {
            let run = Box::new(move |jni: Jni<'_>| {
                if let Some(agent) = agent {
                    OWN.set(true);
                    // The number is decremented even after a panic.
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

    /// Handles a command from the socket.
    fn act(&self, command: Sent) {
        let nothing = DumpContents::default();
        let what = match command {
            // Not implemented by the old agent either; a heap dump and SITES collect garbage themselves.
            Sent::ForceGc | Sent::Eof => return,
            Sent::DumpHeap => DumpContents { heap: true, ..nothing },
            Sent::AllocSites { flags, cutoff } => {
                let sites = SitesRequest { flags, cutoff: f64::from(cutoff) };
                DumpContents { sites: Some(sites), ..nothing }
            }
            Sent::HeapSummary => DumpContents { summary: true, ..nothing },
            Sent::Exit => return self.send(Command::Exit),
            Sent::DumpTraces => nothing,
            Sent::CpuSamples { .. } if self.samples.is_none() => {
                return complain(&format!("CPU SAMPLES ignored: {NO_SAMPLES}"));
            }
            Sent::CpuSamples { cutoff } => DumpContents { samples: Some(f64::from(cutoff)), ..nothing },
            Sent::Control(control) => {
                if let Err(reason) = self.change_settings(control) {
                    complain(&format!("CONTROL {:#x} ignored: {reason}", control.option()));
                }
                DumpContents { settings: true, ..nothing }
            }
        };
        self.send(Command::Dump(what));
    }

    /// Changes settings of the recording.
    ///
    /// # Errors
    /// The reason why the change has no effect. The protocol has no reply that could state it.
    fn change_settings(&self, control: Control) -> Result<(), String> {
        let samples = || self.samples.as_ref().ok_or_else(|| NO_SAMPLES.to_owned());
        match control {
            Control::AllocTracesOn | Control::AllocTracesOff if !self.options.sites => {
                return Err("the agent was started without heap=sites and heap=all".to_owned());
            }
            Control::AllocTracesOn => self.record_sites(true),
            Control::AllocTracesOff => self.record_sites(false),
            Control::CpuSamplingOn { thread } => samples()?.resume(self.thread_to_sample(thread)?),
            Control::CpuSamplingOff { thread } => samples()?.pause(self.thread_to_sample(thread)?),
            Control::ClearCpuSamples => samples()?.clear(),
            Control::Depth(depth) => self.set_depth(usize::from(depth)),
        }
        Ok(())
    }

    /// Returns the threads that a command for CPU sampling selects by an object ID.
    fn thread_to_sample(&self, id: u64) -> Result<SampledThreads, String> {
        match id {
            0 => Ok(SampledThreads::All),
            id if self.threads.get(id).is_some() => Ok(SampledThreads::One(id)),
            id => Err(format!("no running thread has the object ID {id:#x}")),
        }
    }

    /// Runs the agent's control thread, which handles one command after another.
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

    /// Handles a command on the control thread. Returns `false` if no more commands can follow.
    fn obey(&self, jni: &Jni<'_>, command: Command) -> bool {
        let (command, asker) = match command {
            Command::Told(command, asker) => (*command, Some(asker)),
            command => (command, None),
        };
        let stops = matches!(command, Command::Stop);
        let ((done, more), said) = messages::listen(|| self.carry_out(jni, command));
        // Done before the requester of a stop is notified, as the requester may start the next recording at once.
        let retired = if stops && !more { self.retire(jni, 1) } else { Ok(()) };
        if let Err(error) = retired {
            complain(&error);
        }
        if let Some(asker) = asker {
            // The requester may have stopped waiting.
            let _ = asker.send(CommandReply { done, said });
        }
        more
    }

    /// Carries out a command. Returns whether it was carried out completely, and whether more commands can follow.
    fn carry_out(&self, jni: &Jni<'_>, command: Command) -> (bool, bool) {
        match command {
            // The handler of `VMDeath` writes the last dump, which includes requests that were not started.
            Command::Dump(_) | Command::Stop if self.collector.is_ending() => {
                messages::add_messages(["HPROF: the JVM is shutting down".to_owned()]);
                (false, true)
            }
            Command::Dump(what) => (self.dump(jni, what), true),
            Command::Stop => {
                self.stop_events();
                let done = self.dump(jni, DumpContents::all(&self.options));
                self.end();
                (done, false)
            }
            Command::Exit => {
                // This thread sends `VMDeath`, whose handler waits for all other threads of the agent.
                self.running.fetch_sub(1, Ordering::AcqRel);
                crate::control::exit(jni);
                self.running.fetch_add(1, Ordering::AcqRel);
                (true, true)
            }
            Command::Told(..) => (false, true),
            Command::End => (true, false),
        }
    }

    /// Marks the recording as ended, and closes the output.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.close();
    }

    fn close(&self) {
        lock(&self.output).close();
    }

    #[inline]
    fn record_allocation(
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
            // The sampler's event already reported the object. Its tag is lost, because `Object.clone` resets the header, and
            // JDK 21 and later find tags by the identity hash code in the header.
            let again = seen_by == SeenBy::Jvm && sites::take_sampled() == Some((hash, class, size));
            if seen_by == SeenBy::Jvm && !again && self.sampling.is_estimate() {
                // The object was not sampled.
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
                    SeenBy::Sampler => sites::record_sampled((hash, class, size)),
                    SeenBy::Jvm => sites::counted_by_jvm(),
                }
            }
            // The object may be a class or thread that already has an ID.
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
        /// Maximum time for the agent's threads to end; they are between two calls of the JVM.
        const PATIENCE: Duration = Duration::from_secs(2);
        self.collector.jvm_ends();
        self.stop_events();
        if !self.ended.swap(true, Ordering::AcqRel) {
            let what = if self.options.dump_on_exit {
                DumpContents::all(&self.options)
            } else {
                DumpContents::default()
            };
            self.dump(jni, what);
            self.close();
        }
        self.send(Command::End);
        self.collector.end();
        for event in [Event::CollectionStart, Event::CollectionFinish] {
            self.jvmti.disable(event);
        }
        let start = Instant::now();
        // A collector that waits forever is not waited for.
        let stuck = usize::from(self.collector.is_stuck());
        while self.running.load(Ordering::Acquire) > stuck && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn thread_start(&self, jni: &Jni<'_>, thread: Ref<'_>) {
        let Some(_event) = self.enter() else { return };
        self.threads.register_running(self.jvmti, jni, &self.ids, thread);
    }

    fn thread_end(&self, _: &Jni<'_>, thread: Ref<'_>) {
        let Some(_event) = self.enter() else { return };
        let ended = self.threads.remove_ended(self.jvmti, thread);
        if let (Some(ended), Some(samples)) = (ended, &self.samples) {
            samples.forget(ended.id);
        }
    }

    fn data_dump_request(&self) {
        self.send(Command::Dump(DumpContents::all(&self.options)));
    }

    #[inline]
    fn sampled_object_alloc(&self, jni: &Jni<'_>, object: Ref<'_>, class: Ref<'_>, size: u64) {
        if !self.records_sites() || OWN.get() {
            return;
        }
        let Some(_event) = self.enter() else { return };
        if sites::may_be_counted()
            && let Ok(tag) = self.jvmti.tag(object)
            && Tag(tag).trace() != 0
        {
            sites::was_counted();
            return;
        }
        self.record_allocation(jni, object, (class, size), Tag::default(), SeenBy::Sampler);
    }

    fn vm_object_alloc(&self, jni: &Jni<'_>, object: Ref<'_>, class: Ref<'_>, size: u64) {
        // With sampling, this matters only for objects that were just sampled.
        if !self.records_sites() || (self.sampling.is_estimate() && !sites::has_sampled()) {
            return;
        }
        let Some(_event) = self.enter().filter(|_| !OWN.get()) else { return };
        let tag = Tag(self.jvmti.tag(object).unwrap_or(0));
        if tag.trace() == 0 {
            self.record_allocation(jni, object, (class, size), tag, SeenBy::Jvm);
        } else {
            let _ = sites::take_sampled();
        }
    }

    fn contended_enter(&self, jni: &Jni<'_>, thread: Ref<'_>, object: Ref<'_>) {
        // A virtual thread may continue on another carrier, where the wait is unknown.
        let Some(_event) = self.enter().filter(|_| !jni.is_virtual(thread)) else { return };
        monitors::wait(self.waiting(jni, object));
        self.monitors.begin_wait(jni, self.threads.serial(self.jvmti, thread), object);
    }

    fn contended_entered(&self, jni: &Jni<'_>, thread: Ref<'_>, _: Ref<'_>) {
        let Some(_event) = self.enter().filter(|_| !jni.is_virtual(thread)) else { return };
        self.monitors.finish_wait(jni, self.threads.serial(self.jvmti, thread));
        if let Some(waiting) = monitors::end_wait() {
            self.monitors.add_contention(waiting);
        }
    }

    fn monitor_wait(&self, jni: &Jni<'_>, thread: Ref<'_>, object: Ref<'_>, timeout: i64) {
        let Some(_event) = self.enter().filter(|_| !jni.is_virtual(thread)) else { return };
        let signature = self.signature_of(jni, object);
        let serial = self.threads.serial(self.jvmti, thread);
        self.monitors.line(hprof_format::text::Wait::Wait(&signature, timeout), serial);
        self.monitors.begin_wait(jni, serial, object);
        monitors::wait(Waiting { since: Instant::now(), trace: 0, signature });
    }

    fn monitor_waited(&self, jni: &Jni<'_>, thread: Ref<'_>, object: Ref<'_>) {
        let Some(_event) = self.enter().filter(|_| !jni.is_virtual(thread)) else { return };
        let waited = monitors::end_wait().map_or(0, |waiting| waiting.since.elapsed().as_millis());
        let signature = self.signature_of(jni, object);
        let serial = self.threads.serial(self.jvmti, thread);
        self.monitors.finish_wait(jni, serial);
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
        self.collector.begin_pause();
    }

    fn collection_finished(&self) {
        self.collector.end_pause();
    }
}
