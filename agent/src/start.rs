//! Start of the agent: evaluates options, requests capabilities, and opens the output.

use std::io::Write;

use crate::agent::{self, Agent};
use crate::commands::{Command, DumpContents};
use crate::jvm::{Argument, Capability, Event, Events, Jni, Jvmti};
use crate::messages::{self, complain, write_message};
use crate::options::{self, AgentRequest, Cpu, Options, USAGE};
use crate::output::Output;
use crate::output::sink::Sink;
use crate::state::AgentState;
use crate::tags::Ids;

/// Result of starting the agent, or of a command to a running one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The agent runs, or the command was carried out.
    Runs,
    /// The agent reports an error to the JVM.
    Refuses,
    /// The JVM ends with this exit code before it runs anything.
    Exit(i32),
}

/// Starts the agent as [`start`] does, and stores its messages in the system property [`hprof_format::AGENT_ANSWER`], in which
/// `hprof-cli agent load` and `jcmd` find them. The JVM itself passes only a number to the process that loads the agent into a
/// running JVM.
pub fn start_with_answer(jvmti: Jvmti, text: &str, jni: Option<&Jni<'_>>) -> Start {
    let Some(jni) = jni else { return start(jvmti, text, None) };
    let (start, said) = messages::listen(|| start(jvmti, text, Some(jni)));
    jni.frame(8, |jni| {
        let class = jni.find_class(c"java/lang/System")?;
        let arguments = [jni.string(hprof_format::AGENT_ANSWER)?, jni.string(&said.join("\n"))?];
        let arguments = arguments.map(|argument| Argument::Object(Some(argument)));
        let signature = c"(Ljava/lang/String;Ljava/lang/String;)Ljava/lang/String;";
        jni.call_static(class, c"setProperty", signature, &arguments).map(|_| ())
    });
    start
}

/// Starts the agent. `jni` is `Some` if the JVM is already running.
fn start(jvmti: Jvmti, text: &str, jni: Option<&Jni<'_>>) -> Start {
    let asked = match options::parse(text) {
        Ok(asked) => asked,
        Err(error) => {
            complain(&error);
            return Start::Refuses;
        }
    };
    let last = agent::get();
    let running = last.filter(|agent| !agent.has_ended());
    match (asked, running, jni) {
        (AgentRequest::Help, _, None) => {
            let _ = writeln!(std::io::stdout(), "{USAGE}");
            Start::Exit(0)
        }
        (AgentRequest::Help, _, Some(_)) => {
            write_message(USAGE);
            Start::Runs
        }
        (AgentRequest::Dump, Some(agent), Some(_)) => {
            done(agent.ask(Command::Dump(DumpContents::all(&agent.options))))
        }
        (AgentRequest::Stop, Some(agent), Some(_)) => done(agent.ask(Command::Stop)),
        (AgentRequest::Dump | AgentRequest::Stop, ..) => {
            complain(match last {
                Some(_) => {
                    "no recording is running in this JVM: it was stopped; use other options to start a new one"
                }
                None => "no recording is running in this JVM: dump and stop require one",
            });
            Start::Refuses
        }
        (AgentRequest::Record(_), Some(_), _) => {
            complain(
                "a recording is already running in this JVM: write it with dump, or end it with stop to start another",
            );
            Start::Refuses
        }
        (AgentRequest::Record(options), None, _) => {
            let ids = match (last, jni) {
                (Some(last), Some(jni)) => match last.retire(jni, 0) {
                    Ok(()) => last.ids.successor(),
                    Err(error) => {
                        complain(&format!("{error}; try again later"));
                        return Start::Refuses;
                    }
                },
                _ => Ids::default(),
            };
            let start = record(jvmti, *options, ids, jni);
            if start != Start::Runs {
                jvmti.relinquish_capabilities();
            }
            start
        }
    }
}

/// Converts the result of a command: for its requester, an incomplete command is an error.
fn done(done: bool) -> Start {
    if done { Start::Runs } else { Start::Refuses }
}

/// Returns the capabilities that the options need, each with the consequence if the JVM lacks it.
fn needed_capabilities(options: &Options, attached: bool) -> Vec<(Capability, &'static str)> {
    let mut needed = vec![
        (Capability::TagObjects, "nothing can be recorded"),
        (Capability::LineNumbers, "traces have no line numbers"),
        (Capability::SourceFileName, "traces have no source files"),
    ];
    if options.sites {
        needed.push((
            Capability::SampledObjectAlloc,
            "another agent or profiler samples allocations: none are recorded, and SITES contains only live objects",
        ));
        needed.push((Capability::VmObjectAlloc, "objects that the JVM allocates itself have no trace"));
    }
    if options.heap_dump || options.sites || options.net.is_some() {
        needed.push((
            Capability::CollectionEvents,
            "the last dump may wait for a garbage collection that never finishes",
        ));
    }
    if options.heap_dump || options.net.is_some() {
        needed.push((Capability::Suspend, "threads are not suspended between the walks of a heap dump"));
    }
    if options.cpu == Some(Cpu::Samples) {
        needed.push((Capability::ThreadCpuTime, "runnable threads are sampled, whether they run or not"));
    }
    if options.cpu.is_some_and(Cpu::is_timed) {
        needed.push((Capability::ClassHook, "no methods are measured"));
    }
    if options.monitors {
        needed.push((Capability::Monitors, "no contention is recorded"));
        needed.push((Capability::MonitorInfo, "MONITOR DUMP contains no monitors"));
        needed.push((
            Capability::MonitorsOfThreads,
            "MONITOR DUMP contains only monitors for which threads began to wait during the recording",
        ));
    }
    if !attached {
        needed.push((Capability::VirtualThreads, ""));
    }
    needed
}

fn record(jvmti: Jvmti, options: Options, ids: Ids, jni: Option<&Jni<'_>>) -> Start {
    let attached = jni.is_some();
    let needed = needed_capabilities(&options, attached);
    let wanted: Vec<_> = needed.iter().map(|(capability, _)| *capability).collect();
    let given = jvmti.add_capabilities(&wanted);
    for (capability, lost) in &needed {
        if given.contains(capability) || lost.is_empty() {
            continue;
        }
        complain(&format!("the JVM does not provide the capability {capability:?}: {lost}"));
        if *capability == Capability::TagObjects {
            return Start::Refuses;
        }
    }
    if attached && options.cpu.is_some_and(Cpu::is_timed) {
        complain("only methods of classes that are loaded from now on are measured");
    }
    if options.sites && given.contains(&Capability::SampledObjectAlloc) {
        // Set before the first thread is created, because each thread counts the bytes to its next sample from its start, and a
        // running thread adopts the interval only when its current one is over.
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
    let name = sink.name();
    let has = |capability| given.contains(&capability);
    let virtual_threads =
        if has(Capability::VirtualThreads) { jvmti.virtual_thread_function() } else { None };
    let (format, cpu) = (options.format, options.cpu);
    let mut output = Output::new(sink, format, cpu == Some(Cpu::Old));
    let state = AgentState::new(jvmti, options, ids, virtual_threads, has(Capability::ThreadCpuTime));
    // Written first, as in the old agent. If a JVM ends before it has a thread, nothing else distinguishes the file from the
    // start of a heap dump.
    output.control_settings(&state, cpu == Some(Cpu::Samples));
    let agent = Agent::install(state, output, attached);
    let enabled = jvmti.register(agent).and_then(|()| {
        for event in [Event::VmStart, Event::VmInit, Event::VmDeath] {
            jvmti.enable(event)?;
        }
        if has(Capability::ClassHook) {
            jvmti.enable(Event::ClassFileLoad)?;
        }
        if has(Capability::SampledObjectAlloc) {
            // The JVM sends these events from `VMInit` on.
            jvmti.enable(Event::SampledObjectAlloc)?;
        }
        Ok(())
    });
    if let Err(error) = enabled {
        complain(&format!("cannot enable events: {error}"));
        agent.stop_events();
        agent.end();
        return Start::Refuses;
    }
    if let Some(jni) = jni {
        agent.live(jni);
        messages::add_messages([format!("Recording to {name}")]);
    }
    Start::Runs
}

/// Opens the file or socket specified by the options.
fn sink(options: &Options) -> Result<Sink, String> {
    if let Some((host, port)) = &options.net {
        return Sink::socket(host, *port);
    }
    let default = if options.format == options::Format::Text { "java.hprof.txt" } else { "java.hprof" };
    let path = options.file.clone().unwrap_or_else(|| default.into());
    // The program may change its working directory.
    let path = std::path::absolute(&path).unwrap_or(path);
    Sink::file(path, options.force)
}
