//! Commands over the socket that output goes to ("HPROF Agent", Socket Connection and Communication).

use std::net::TcpStream;

use hprof_format::commands::{self, Command as Sent, Control, Incoming};

use crate::agent::{Agent, Command, complain, get};
use crate::dumps::What;
use crate::jvm::{Argument, Jni};
use crate::record::lock;

/// Reads commands on a thread of its own, if output goes to a socket.
pub fn listen(agent: &Agent) {
    let Some(stream) = lock(&agent.output).as_ref().and_then(|output| output.sink.stream()) else { return };
    let started = std::thread::Builder::new().name("HPROF commands".to_owned()).spawn(move || {
        if let Some(agent) = get() {
            read(agent, stream);
        }
    });
    if let Err(error) = started {
        complain(&format!("cannot start a thread for commands: {error}"));
    }
}

/// Until the other end closes, or says that it sends no more.
fn read(agent: &Agent, mut stream: TcpStream) {
    loop {
        match commands::read(&mut stream) {
            Ok(Some(Incoming::Request(request))) if request.command == Sent::Eof => return,
            Ok(Some(Incoming::Request(request))) => act(agent, request.command),
            Ok(Some(Incoming::Wrong(wrong))) => complain(&format!("a command is ignored: {wrong}")),
            Ok(None) => return,
            Err(error) => {
                // The JVM ends, or the other end is gone.
                if error.kind() == std::io::ErrorKind::InvalidData {
                    complain(&format!("commands are not read any more: {error}"));
                }
                return;
            }
        }
    }
}

fn act(agent: &Agent, command: Sent) {
    let nothing = What::DEFINITIONS;
    match command {
        // Not implemented by the old agent either; a heap dump and SITES collect garbage themselves.
        Sent::ForceGc | Sent::Eof => {}
        Sent::DumpHeap => agent.send(Command::Dump(What { heap: true, ..nothing })),
        Sent::AllocSites { cutoff, .. } => {
            agent.send(Command::Dump(What { sites: Some(f64::from(cutoff)), ..nothing }));
        }
        Sent::HeapSummary => agent.send(Command::Dump(What { summary: true, ..nothing })),
        Sent::Exit => agent.send(Command::Exit),
        Sent::DumpTraces => agent.send(Command::Dump(nothing)),
        Sent::CpuSamples { cutoff } => {
            agent.send(Command::Dump(What { samples: Some(f64::from(cutoff)), ..nothing }));
        }
        Sent::Control(control) => {
            match control {
                Control::AllocTracesOn => agent.record_sites(true),
                Control::AllocTracesOff => agent.record_sites(false),
                // The thread is not looked at: all are sampled, or none.
                Control::CpuSamplingOn { .. } => pause(agent, false),
                Control::CpuSamplingOff { .. } => pause(agent, true),
                Control::ClearCpuSamples => {
                    if let Some(samples) = &agent.samples {
                        samples.clear();
                    }
                }
                Control::Depth(depth) => agent.set_depth(usize::from(depth)),
            }
            agent.send(Command::Dump(What { settings: true, ..nothing }));
        }
    }
}

fn pause(agent: &Agent, paused: bool) {
    if let Some(samples) = &agent.samples {
        samples.pause(paused);
    }
}

/// Ends the JVM, as `System.exit(0)`: it dies as it would without the agent.
pub fn exit(jni: &Jni<'_>) {
    let ended = jni.frame(4, |jni| {
        let class = jni.find_class(c"java/lang/System")?;
        jni.call_static_void(class, c"exit", c"(I)V", &[Argument::Int(0)]).then_some(())
    });
    if ended.flatten().is_none() {
        complain("the JVM could not be ended");
    }
}
