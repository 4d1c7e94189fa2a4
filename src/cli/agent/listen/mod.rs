//! `listen`: the receiving end of an agent's socket.
//!
//! One file per task: [`server`] manages the agents, [`mod@receive`] has a thread for each of them, [`files`] names
//! their recordings, [`room`] keeps the disk from filling up, [`words`] parses commands. [`stand_in`] receives
//! without a socket.

mod files;
mod receive;
mod room;
mod server;
mod stand_in;
mod words;

use std::io::{self, BufRead, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use anyhow::Context;

use crate::cli::prelude::*;
use crate::cli::shared::signals;
use hprof_format::commands::Command;
use hprof_index::storage::free_space::free_bytes;
use hprof_index::storage::open_dir::OpenDir;
use hprof_query::objects::condition::size;
use hprof_report::json::DumpHeader;

use files::Files;
use receive::{ListenEvent, Recording, RecordingState};
use room::Room;
use server::Server;

pub use stand_in::ReceivedRecording;
pub(crate) use stand_in::{is_command, receive};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli listen --output-dir recordings
  hprof-cli run --net localhost:7100 --format b -- java -jar app.jar
  hprof-cli listen --once --send heap,sites --after 30s
  echo heap | hprof-cli listen --once";

/// Receive recordings from HPROF agents and send them commands
///
/// Agents started with `net=HOST:PORT`, including those of JDK 5 to 8, send their recordings. Each is saved as it
/// arrives, to NAME-1.hprof, NAME-1.hprof.txt and so on; the file name contains .partial while it is written, and .cut
/// if the recording is incomplete. Lines on stdin are commands to agents: heap, sites, samples, exit and others; `help`
/// lists them. Ctrl-C stops the command; received recordings are kept and listed. The exit code is 3 if a recording is
/// incomplete, and 1 if none was received.
#[derive(Debug, clap::Args)]
pub(crate) struct ListenArgs {
    /// Port to listen on; 0 for a free one
    #[arg(long, value_name = "N", default_value_t = 7100, help_heading = "Server")]
    port: u16,

    /// Address to listen on; any address other than loopback requires --allow-remote
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST),
        help_heading = "Server"
    )]
    address: IpAddr,

    /// Allow connections from other machines: anyone who can reach the port can send recordings, unencrypted
    #[arg(long, help_heading = "Server")]
    allow_remote: bool,

    /// Exit when the last connected agent disconnects
    #[arg(long, help_heading = "Server")]
    once: bool,

    /// Commands to send to each agent, as on stdin
    #[arg(long, value_name = "COMMAND,...", value_delimiter = ',', value_parser = command, help_heading = "Commands")]
    send: Vec<Command>,

    /// Time to wait after an agent connects before sending the commands, for example 30s
    #[arg(
        long,
        value_name = "TIME",
        value_parser = duration,
        default_value = "0s",
        requires = "send",
        help_heading = "Commands"
    )]
    after: Duration,

    /// Write to this directory, one file per recording
    #[arg(
        long,
        value_name = "DIR",
        value_hint = clap::ValueHint::DirPath,
        default_value = ".",
        help_heading = "Output"
    )]
    output_dir: PathBuf,

    /// Name of the recordings; a number is appended
    #[arg(long, value_name = "NAME", value_parser = name, default_value = "recording", help_heading = "Output")]
    name: String,

    /// Maximum size of a recording; the connection is closed if an agent sends more, or would fill the disk
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "128GiB", help_heading = "Output")]
    max_bytes: u64,

    #[command(flatten)]
    output: Output,
}

fn command(text: &str) -> Result<Command, String> {
    words::command(&text.split_whitespace().collect::<Vec<_>>())
}

/// Parses a duration, such as `90s` or `30m`; `0s` is valid.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a valid duration; valid examples are 90s, 30m and 2h");
    let duration: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(duration).ok().filter(|duration| *duration <= LONGEST).ok_or_else(wrong)
}

/// Maximum duration; longer ones overflow clocks.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Parses the base name of the recordings' files.
fn name(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && !text.starts_with('.') && !text.contains(['/', '\\', '\0']);
    is_name.then(|| text.to_owned()).ok_or_else(|| {
        format!("`{text}` is not a file name; --name takes a name without a directory or a leading dot")
    })
}

/// Maximum length of a line on stdin in bytes.
const LONGEST_LINE: u64 = 1 << 12;
/// Maximum number of queued events; senders of more have to wait.
const WAITING: usize = 64;

pub(crate) fn run(cx: &RunContext, args: &ListenArgs) -> anyhow::Result<Outcome> {
    anyhow::ensure!(
        args.address.is_loopback() || args.allow_remote,
        "{} can be reached from other machines without authentication; use `ssh -R`, or add --allow-remote",
        args.address
    );
    let dir = OpenDir::create_all(&args.output_dir, 0o777)
        .with_context(|| format!("cannot create {}", args.output_dir.display()))?;
    let address = SocketAddr::new(args.address, args.port);
    let listener = TcpListener::bind(address)
        .with_context(|| format!("cannot listen on {address}; --port 0 selects a free port"))?;
    let address = listener.local_addr()?;
    let (events, happened) = sync_channel(WAITING);
    let (accepted, typed, signalled) = (events.clone(), events.clone(), events.clone());
    signals::instead(move || {
        let _ = signalled.send(ListenEvent::End);
    });
    let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
    thread("accept").spawn(move || server::accept(&listener, &accepted))?;
    thread("stdin").spawn(move || read_lines(&typed))?;
    if !args.address.is_loopback() {
        let text = "other machines can connect without authentication, and recordings, which contain the program's \
                    memory, are sent unencrypted";
        cx.emit("warning", text);
    }
    cx.emit("note", &format!("listening on {address}; start agents with net={address}"));
    let options = server::Options {
        send: args.send.clone(),
        after: args.after,
        max_bytes: args.max_bytes,
        once: args.once,
    };
    let files = Files::new(dir, &args.name, Room::new(&args.output_dir, free_bytes));
    let recordings = Server::new(cx, options, files, events).run(&happened);
    show(cx, args, recordings)
}

/// Reads commands from stdin until it ends. Agents continue to send after that.
fn read_lines(typed: &SyncSender<ListenEvent>) {
    let mut input = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        match input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Err(_) | Ok(0) => return,
            Ok(_) => {}
        }
        let is_whole = line.ends_with(b"\n") || (line.len() as u64) < LONGEST_LINE;
        if !is_whole && !skip_line(&mut input) {
            return;
        }
        let line = is_whole.then(|| String::from_utf8_lossy(&line).into_owned());
        if typed.send(ListenEvent::Line(line)).is_err() {
            return;
        }
    }
}

/// Skips the rest of a line. Returns `false` if the input failed.
fn skip_line(input: &mut impl BufRead) -> bool {
    loop {
        let Ok(bytes) = input.fill_buf() else { return false };
        let (count, is_end) = match memchr::memchr(b'\n', bytes) {
            Some(at) => (at + 1, true),
            None => (bytes.len(), bytes.is_empty()),
        };
        input.consume(count);
        if is_end {
            return true;
        }
    }
}

/// The directory of the recordings, as the source file of the result.
struct Directory<'a>(&'a Path, bool);

impl AnswerSource for Directory<'_> {
    fn header(&self) -> DumpHeader<'_> {
        DumpHeader { path: self.0.to_string_lossy(), is_damaged: Some(self.1), ..DumpHeader::default() }
    }

    fn is_damaged(&self) -> bool {
        self.1
    }
}

fn show(cx: &RunContext, args: &ListenArgs, recordings: Vec<Recording>) -> anyhow::Result<Outcome> {
    let is_damaged = recordings.iter().any(|recording| recording.state != RecordingState::Complete);
    let is_there = !recordings.is_empty();
    let directory = Directory(&args.output_dir, is_damaged);
    let answer =
        Answer::new(columns(), recordings).if_empty(NoRows::Line("no recording was received".into()));
    directory.show(cx, "listen", &args.output, answer)?;
    Ok(directory.outcome(is_there))
}

fn columns() -> Columns<'static, Recording> {
    Columns::new([
        Column::new(names::CONNECTION, |row: &Recording| u64::from(row.agent).into()).header("agent"),
        Column::new(names::PEER, |row: &Recording| Value::from(&row.peer)).header("from"),
        Column::new(names::FORMAT, |row: &Recording| row.form.name().into()).header("format"),
        Column::new(names::FILE_BYTES, |row: &Recording| row.bytes.into()).header("bytes"),
        Column::new(names::RECORD_COUNT, |row: &Recording| row.records.into())
            .or_null("a text recording")
            .header("records"),
        Column::new(names::STATE, |row: &Recording| {
            match row.state {
                RecordingState::Complete => "complete",
                RecordingState::Truncated(_) => "truncated",
                RecordingState::Damaged(_) => "damaged",
            }
            .into()
        })
        .header("state"),
        Column::new(names::FILE, |row: &Recording| row.file.to_string_lossy().into_owned().into())
            .header("file")
            .fit(Fit::Wrap),
        Column::new(names::INCOMPLETE_REASON, |row: &Recording| match &row.state {
            RecordingState::Complete => Value::Null,
            RecordingState::Truncated(why) | RecordingState::Damaged(why) => Value::from(why),
        })
        .or_null("the recording is complete")
        .header("reason")
        .fit(Fit::Wrap),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "listen",
        variant: "",
        about: "A row is a recording, in the order in which agents connected. `dump.path` is the directory; \
                `dump.is_damaged` is true if a recording is incomplete.",
        rows: columns().fields(),
        summary: Vec::new(),
    }]
}
