//! The thread that manages all agents: it accepts them, sends them commands and reports events.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use crate::cli::shared::context::RunContext;
use hprof_format::commands::{Command, Control, IdBytes, Request};
use hprof_report::number::human_bytes;
use hprof_values::IdSize;

use super::files::Files;
use super::receive::{self, AgentConnection, ConnectionOutcome, ListenEvent, Recording, RecordingState};
use super::words::{self, TypedLine};

/// Maximum number of connected agents.
pub(super) const MAX_AGENTS: usize = 64;
/// Maximum number of recordings in one run: each is a row of the result.
const MAX_RECORDINGS: usize = 10_000;
/// Maximum number of reported connections without a recording; more are only counted.
const MAX_TOLD: u64 = 20;
/// Maximum time that an agent that does not read may delay a command.
const SEND_TIME: Duration = Duration::from_secs(2);
/// Maximum time to wait for the agents' files at the end.
const END_TIME: Duration = Duration::from_secs(10);
/// Pause if no connection can be accepted, for example for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A connected agent.
struct Agent {
    peer: SocketAddr,
    stream: TcpStream,
    ids: Option<IdSize>,
    /// Path of the recording while it is being written.
    path: Option<PathBuf>,
    /// Serial number of the last command; `None` if no more commands can be sent.
    serial: Option<u32>,
    /// `true` if this program closed the connection.
    closed: Arc<AtomicBool>,
}

impl Agent {
    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

/// Options of the server, from the command line.
pub(super) struct Options {
    /// Commands to send to each agent, and the delay after it connected.
    pub(super) send: Vec<Command>,
    pub(super) after: Duration,
    pub(super) max_bytes: u64,
    pub(super) once: bool,
}

/// State of the server: its agents, and the recordings so far.
pub(super) struct Server<'c> {
    cx: &'c RunContext,
    options: Options,
    files: Arc<Files>,
    events: SyncSender<ListenEvent>,
    agents: BTreeMap<u32, Agent>,
    /// Agents that wait for the commands of `--send`, ordered by time.
    due: Vec<(Instant, u32)>,
    connections: u32,
    recordings: Vec<Recording>,
    /// Number of connections without a recording.
    refused: u64,
}

impl<'c> Server<'c> {
    pub(super) fn new(
        cx: &'c RunContext,
        options: Options,
        files: Files,
        events: SyncSender<ListenEvent>,
    ) -> Self {
        Self {
            cx,
            options,
            files: Arc::new(files),
            events,
            agents: BTreeMap::new(),
            due: Vec::new(),
            connections: 0,
            recordings: Vec::new(),
            refused: 0,
        }
    }

    /// Runs until the server ends; returns the recordings, ordered by agent.
    pub(super) fn run(mut self, happened: &Receiver<ListenEvent>) -> Vec<Recording> {
        loop {
            let now = Instant::now();
            let event = match self.due.first() {
                None => happened.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((due, _)) => happened.recv_timeout(due.saturating_duration_since(now)),
            };
            match event {
                Ok(ListenEvent::End) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(event) => self.happen(event),
                Err(RecvTimeoutError::Timeout) => self.send_due(),
            }
            // An agent that has sent nothing yet may send everything at its end.
            if self.options.once && !self.recordings.is_empty() && self.agents.is_empty() {
                break;
            }
        }
        self.end(happened);
        self.recordings.sort_by_key(|recording| recording.agent);
        self.recordings
    }

    /// Closes all connections and waits until their files have final names.
    fn end(&mut self, happened: &Receiver<ListenEvent>) {
        self.agents.values().for_each(Agent::close);
        let until = Instant::now() + END_TIME;
        while !self.agents.is_empty()
            && let Ok(event) = happened.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            if matches!(
                event,
                ListenEvent::Began { .. } | ListenEvent::Received { .. } | ListenEvent::Ended { .. }
            ) {
                self.happen(event);
            }
        }
        for agent in self.agents.values() {
            if let Some(path) = &agent.path {
                let text = format!(
                    "{} was not renamed: its agent did not close the connection in time",
                    path.display()
                );
                self.cx.emit("warning", &text);
            }
        }
        let untold = self.refused.saturating_sub(MAX_TOLD);
        if untold > 0 {
            self.cx.emit("note", &format!("{untold} more connections sent no recording"));
        }
    }

    fn happen(&mut self, event: ListenEvent) {
        match event {
            ListenEvent::Accepted(stream, peer) => self.accept(stream, peer),
            ListenEvent::Began { agent, ids, path } => {
                self.cx.emit("note", &format!("agent {agent}: receiving into {}", path.display()));
                if let Some(agent) = self.agents.get_mut(&agent) {
                    agent.ids = ids;
                    agent.path = Some(path);
                }
            }
            ListenEvent::Received { agent, text } => {
                self.cx.emit("note", &format!("agent {agent}: {text} received"));
            }
            ListenEvent::Ended { agent, ended } => self.finish_connection(agent, ended),
            ListenEvent::Line(Some(line)) => self.handle_line(&line),
            ListenEvent::Line(None) => self.cx.emit("warning", "ignored a line on stdin: it is too long"),
            ListenEvent::End => {}
        }
    }

    fn accept(&mut self, stream: TcpStream, peer: SocketAddr) {
        let refused = if self.recordings.len() + self.agents.len() >= MAX_RECORDINGS {
            Some((MAX_RECORDINGS, "recordings were received"))
        } else {
            (!self.make_room()).then_some((MAX_AGENTS, "agents are connected"))
        };
        if let Some((most, what)) = refused {
            self.refuse(&format!("refused the connection from {peer}: {most} {what}, which is the limit"));
            return;
        }
        let _ = stream.set_nodelay(true);
        let _ = stream.set_write_timeout(Some(SEND_TIME));
        self.connections += 1;
        let agent = self.connections;
        let closed = Arc::<AtomicBool>::default();
        let start = || -> std::io::Result<TcpStream> {
            let connection = AgentConnection {
                agent,
                peer,
                stream: stream.try_clone()?,
                events: self.events.clone(),
                files: self.files.clone(),
                max_bytes: self.options.max_bytes,
                closed: closed.clone(),
            };
            let thread = std::thread::Builder::new().name(format!("agent {agent}"));
            thread.spawn(move || receive::receive(connection))?;
            Ok(stream)
        };
        match start() {
            Err(error) => self.refuse(&format!("refused the connection from {peer}: {error}")),
            Ok(stream) => {
                self.cx.emit("note", &format!("agent {agent} connected from {peer}"));
                let state = Agent { peer, stream, ids: None, path: None, serial: Some(0), closed };
                self.agents.insert(agent, state);
                if !self.options.send.is_empty() {
                    self.due.push((Instant::now() + self.options.after, agent));
                }
            }
        }
    }

    /// Returns whether another agent can be accepted. If there are too many, closes the oldest connection without a
    /// recording. Otherwise such connections remain open: an agent may have nothing to send before its program ends.
    fn make_room(&self) -> bool {
        if self.agents.values().filter(|agent| !agent.is_closed()).count() < MAX_AGENTS {
            return true;
        }
        let silent = self.agents.values().find(|agent| agent.path.is_none() && !agent.is_closed());
        silent.inspect(|agent| agent.close()).is_some()
    }

    /// Reports a connection without a recording.
    fn refuse(&mut self, text: &str) {
        self.refused += 1;
        if self.refused <= MAX_TOLD {
            self.cx.emit("warning", text);
        }
    }

    fn finish_connection(&mut self, number: u32, ended: ConnectionOutcome) {
        let agent = self.agents.remove(&number);
        let peer = agent.as_ref().map(|agent| agent.peer.to_string()).unwrap_or_default();
        let is_closed = agent.is_some_and(|agent| agent.is_closed());
        self.due.retain(|(_, agent)| *agent != number);
        match ended {
            ConnectionOutcome::Nothing | ConnectionOutcome::Refused(_) if is_closed => {
                self.refuse(&format!(
                    "closed the connection of agent {number} ({peer}) before it sent a recording"
                ));
            }
            ConnectionOutcome::Nothing => self.refuse(&format!("agent {number} ({peer}) sent nothing")),
            ConnectionOutcome::Refused(why) => {
                self.refuse(&format!("refused agent {number} ({peer}): {why}"))
            }
            ConnectionOutcome::Failed(why) => {
                self.refuse(&format!("refused agent {number} ({peer}): cannot create a file: {why}"));
            }
            ConnectionOutcome::Recorded(recording) => {
                let file = recording.file.display();
                match &recording.state {
                    RecordingState::Complete => {
                        let size = human_bytes(recording.bytes);
                        self.cx.emit("note", &format!("agent {number} ended: {file}, {size}"));
                    }
                    RecordingState::Truncated(why) => {
                        self.cx.emit("warning", &format!("agent {number} ended: {file} is truncated: {why}"));
                    }
                    RecordingState::Damaged(why) => {
                        self.cx.emit("warning", &format!("agent {number} ended: {file} is damaged: {why}"));
                    }
                }
                self.recordings.push(recording);
            }
        }
    }

    /// Sends the commands that are due.
    fn send_due(&mut self) {
        let now = Instant::now();
        // They are in the order in which agents connected, and the delay is the same for all.
        let count = self.due.iter().take_while(|(due, _)| *due <= now).count();
        let agents: Vec<u32> = self.due.drain(..count).map(|(_, agent)| agent).collect();
        let commands = self.options.send.clone();
        for agent in agents {
            commands.iter().for_each(|command| self.send(agent, *command));
        }
    }

    fn handle_line(&mut self, line: &str) {
        match words::parse(line) {
            Ok(TypedLine::Empty) => {}
            Ok(TypedLine::Help) => words::HELP.lines().for_each(|line| self.cx.emit("help", line)),
            Ok(TypedLine::List) => self.list(),
            Ok(TypedLine::Command { agent: Some(agent), command }) => self.send(agent, command),
            Ok(TypedLine::Command { agent: None, command }) => {
                let all: Vec<u32> = self.agents.keys().copied().collect();
                if all.is_empty() {
                    self.cx.emit("warning", "no agent is connected");
                }
                all.into_iter().for_each(|agent| self.send(agent, command));
            }
            Err(why) => self.cx.emit("warning", &why),
        }
    }

    fn list(&self) {
        if self.agents.is_empty() {
            self.cx.emit("note", "no agent is connected");
        }
        for (number, agent) in &self.agents {
            let path =
                agent.path.as_ref().map_or("nothing received yet".into(), |path| path.to_string_lossy());
            self.cx.emit("note", &format!("agent {number}: {}, {path}", agent.peer));
        }
    }

    fn send(&mut self, number: u32, command: Command) {
        let wrong = |text: &str| self.cx.emit("warning", &format!("agent {number}: {text}"));
        let Some(agent) = self.agents.get_mut(&number) else { return wrong("not connected") };
        let Some(serial) = agent.serial.and_then(|serial| serial.checked_add(1)) else {
            return wrong("it accepts no more commands");
        };
        if matches!(command, Command::Control(Control::Depth(_))) && agent.ids != Some(IdSize::Eight) {
            // The command would end the JVM.
            return wrong(
                "`control depth` was not sent: agents of JDK 5 to 8 misread it as another command and exit",
            );
        }
        // All agents of JDK 5 to 8 have 4-byte IDs; others derive the size from the length.
        let ids = if agent.ids == Some(IdSize::Eight) { IdBytes::Eight } else { IdBytes::Four };
        let Some(bytes) = (Request { serial, command }).encode(ids) else {
            return wrong("the object ID does not fit: this agent uses 4-byte IDs");
        };
        agent.serial = (command != Command::Eof).then_some(serial);
        if let Err(error) = agent.stream.write_all(&bytes) {
            // Part of it may have been sent: later commands would be misread.
            agent.serial = None;
            wrong(&format!("cannot send the command: {error}"));
        }
    }
}

/// Accepts connections until the server ends.
pub(super) fn accept(listener: &TcpListener, events: &SyncSender<ListenEvent>) {
    loop {
        match listener.accept() {
            Ok((stream, peer)) => {
                if events.send(ListenEvent::Accepted(stream, peer)).is_err() {
                    return;
                }
            }
            Err(_) => std::thread::sleep(ACCEPT_PAUSE),
        }
    }
}
