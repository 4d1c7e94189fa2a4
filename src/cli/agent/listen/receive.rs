//! The connection of one agent: received bytes are written to a file as they arrive, and parsed record by record or
//! line by line.

use std::io::{self, BufRead, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use hprof_parser::sniff::{FileKind, sniff};
use hprof_parser::stream::{PartKind, ReceivedPart, StreamScanner};
use hprof_parser::text::event::{Ranking, TextEvent};
use hprof_parser::text::{END_OF_FILE, TextReader};
use hprof_parser::{FormatErrorKind, Header};
use hprof_report::number::human_bytes;
use hprof_values::IdSize;

use super::files::{Files, Partial, RecordingExtent, RecordingForm};
use super::room::{Room, Shortage};

/// Event for the server thread.
pub(super) enum ListenEvent {
    /// An agent connected.
    Accepted(TcpStream, SocketAddr),
    /// A recording started.
    Began { agent: u32, ids: Option<IdSize>, path: PathBuf },
    /// A part of the recording is complete.
    Received { agent: u32, text: String },
    /// A connection ended.
    Ended { agent: u32, ended: ConnectionOutcome },
    /// A line was read from stdin; `None` if it is too long.
    Line(Option<String>),
    /// A signal to end was received.
    End,
}

/// Number of bytes read from a socket at once.
const BLOCK: usize = 1 << 16;
/// Maximum number of bytes needed to recognize the format.
const HEAD: usize = 1200;
/// Maximum number of reported parts of one recording.
const TOLD: usize = 200;
/// Maximum number of events of one connection: its parts, its start and its end.
pub(super) const MAX_EVENTS: usize = TOLD + 2;

/// Source of an agent's bytes: a socket, or a substitute.
pub(super) trait Stream: Read {
    /// Closes the connection in both directions.
    fn close(&self);
}

impl Stream for TcpStream {
    fn close(&self) {
        // An error means that the agent has closed it already.
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// The connection to an agent, before its recording is received.
pub(super) struct AgentConnection<S> {
    pub(super) agent: u32,
    pub(super) peer: SocketAddr,
    pub(super) stream: S,
    pub(super) events: SyncSender<ListenEvent>,
    pub(super) files: Arc<Files>,
    pub(super) max_bytes: u64,
    /// `true` if this program closed the connection.
    pub(super) closed: Arc<AtomicBool>,
}

/// Outcome of a connection to an agent.
#[derive(Debug)]
pub(super) enum ConnectionOutcome {
    /// No bytes were received.
    Nothing,
    /// The bytes are not a recording.
    Refused(String),
    /// No file could be created.
    Failed(String),
    /// A file was written.
    Recorded(Recording),
}

/// A recording, as a row of the result.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) agent: u32,
    pub(super) peer: String,
    pub(super) file: PathBuf,
    pub(super) form: RecordingForm,
    pub(super) bytes: u64,
    /// Number of complete records of a binary recording.
    pub(super) records: Option<u64>,
    pub(super) state: RecordingState,
}

/// State of a recording: complete, or the reason why it is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RecordingState {
    Complete,
    Truncated(String),
    Damaged(String),
}

/// Reason for the end of the input.
#[derive(Debug)]
enum Stop {
    /// The agent closed the connection.
    Closed,
    Lost(io::Error),
    Limit(u64),
    Disk(io::Error),
    Room(Shortage),
    Closing,
}

impl Stop {
    /// Returns the reason why the recording is incomplete regardless of its content, if any.
    fn reason(&self) -> Option<String> {
        Some(match self {
            Self::Closed => return None,
            Self::Lost(error) => format!("the connection was lost: {error}"),
            Self::Limit(bytes) => {
                format!("the recording reached the limit of --max-bytes: {}", human_bytes(*bytes))
            }
            Self::Disk(error) => format!("cannot write the file: {error}"),
            Self::Room(shortage) => shortage.to_string(),
            Self::Closing => {
                "`hprof-cli listen` closed the connection because it was stopped, or to accept another agent"
                    .to_owned()
            }
        })
    }
}

/// Format recognized from the first bytes.
enum Start {
    /// More bytes are needed to recognize the format.
    Open,
    Is(RecordingForm, Option<IdSize>),
    Refused(String),
}

/// Receives until the connection ends, and sends the outcome to the server.
pub(super) fn receive<S: Stream>(mut connection: AgentConnection<S>) {
    let ended = connection.receive();
    connection.stream.close();
    let _ = connection.events.send(ListenEvent::Ended { agent: connection.agent, ended });
}

impl<S: Stream> AgentConnection<S> {
    fn receive(&mut self) -> ConnectionOutcome {
        // Without a timeout: an agent that buffers, or has no header to send, may be silent until its program ends.
        let mut head = Vec::new();
        let (form, ids) = loop {
            let mut block = [0; HEAD];
            let read = read(&mut self.stream, &mut block).unwrap_or(0);
            head.extend_from_slice(block.get(..read).unwrap_or_default());
            match start(&head, read == 0) {
                Start::Open => {}
                Start::Is(form, ids) => break (form, ids),
                Start::Refused(_) if head.is_empty() => return ConnectionOutcome::Nothing,
                Start::Refused(why) => return ConnectionOutcome::Refused(why),
            }
        };
        let partial = match self.files.create(form) {
            Ok(partial) => partial,
            Err(error) => return ConnectionOutcome::Failed(error.to_string()),
        };
        self.tell(ListenEvent::Began { agent: self.agent, ids, path: partial.path.clone() });
        let mut tee = Tee {
            stream: &mut self.stream,
            partial,
            left: self.max_bytes,
            closed: &self.closed,
            room: self.files.room(),
            bytes: 0,
            last: 0,
            stop: None,
            block: vec![0; BLOCK].into(),
            ready: 0..0,
        };
        tee.keep(&head);
        let told = PartReporter { agent: self.agent, events: &self.events, count: 0 };
        let (records, open) = match form {
            RecordingForm::Binary => {
                let (records, open) = binary(&mut tee, told);
                (Some(records), open)
            }
            RecordingForm::Text => (None, text(&mut tee, told)),
        };
        let Tee { partial, bytes, stop, .. } = tee;
        let state = match (stop.as_ref().and_then(Stop::reason), open) {
            (None, ReceivedCompleteness::Whole) => RecordingState::Complete,
            (None, ReceivedCompleteness::Cut(why)) => RecordingState::Truncated(why),
            (Some(why), ReceivedCompleteness::Whole) => {
                RecordingState::Truncated(format!("{why} (after {bytes} bytes)"))
            }
            (Some(why), ReceivedCompleteness::Cut(cut)) => RecordingState::Truncated(format!("{why}; {cut}")),
            (_, ReceivedCompleteness::Unknown(why)) => RecordingState::Damaged(why),
        };
        let extent =
            if state == RecordingState::Complete { RecordingExtent::Whole } else { RecordingExtent::Part };
        let written = partial.path.clone();
        let (file, state) = match partial.publish(extent) {
            Ok(file) => (file, state),
            Err(error) => (written, RecordingState::Truncated(format!("cannot rename the file: {error}"))),
        };
        ConnectionOutcome::Recorded(Recording {
            agent: self.agent,
            peer: self.peer.to_string(),
            file,
            form,
            bytes,
            records,
            state,
        })
    }

    fn tell(&self, event: ListenEvent) {
        // Nobody receives events only when the process is ending.
        let _ = self.events.send(event);
    }
}

fn read(stream: &mut dyn Read, block: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(block) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Determines the format from the first bytes; `is_end` means that no more will follow.
fn start(head: &[u8], is_end: bool) -> Start {
    const NAME: &[u8] = b"JAVA PROFILE 1.0";
    let needs_more = !is_end && head.len() < HEAD;
    let refused = |looks: FileKind| Start::Refused(looks.describe());
    if let Some(version) = head.strip_prefix(NAME) {
        // The binary format needs its header, which states the size of IDs; the text format ends its version with a
        // comma.
        return match sniff(head) {
            FileKind::Hprof => match Header::parse(head) {
                Ok(header) => Start::Is(RecordingForm::Binary, Some(header.id_size)),
                Err(error) if needs_more && *error.kind() == FormatErrorKind::HeaderCut => Start::Open,
                Err(error) => Start::Refused(error.to_string()),
            },
            FileKind::HprofText => Start::Is(RecordingForm::Text, None),
            _ if needs_more && version.iter().all(|byte| matches!(byte, b'.' | b'0'..=b'9')) => Start::Open,
            looks => refused(looks),
        };
    }
    if needs_more && NAME.starts_with(head) {
        return Start::Open;
    }
    // The first line of any other text determines its format, as when a file is read: white space may precede it, and
    // the table of `cpu=old` has no header.
    let text = head.trim_ascii_start();
    let has_first_line = text.contains(&b'\n');
    let may_be_text =
        |looks| matches!(looks, FileKind::HprofText | FileKind::Text) || text.len() < head.len();
    match sniff(head) {
        FileKind::HprofText if has_first_line => Start::Is(RecordingForm::Text, None),
        looks if needs_more && !has_first_line && may_be_text(looks) => Start::Open,
        looks => refused(looks),
    }
}

/// A reader of the agent's bytes that first writes them to the file.
struct Tee<'a> {
    stream: &'a mut dyn Read,
    partial: Partial,
    /// Number of bytes that may still be written to the file.
    left: u64,
    closed: &'a AtomicBool,
    room: &'a Room,
    /// Number of bytes in the file.
    bytes: u64,
    /// Last byte of the file.
    last: u8,
    stop: Option<Stop>,
    block: Box<[u8]>,
    /// Range of the block that was not consumed yet.
    ready: std::ops::Range<usize>,
}

impl Tee<'_> {
    /// Writes the bytes that were read to recognize the format; they are read again by the parser.
    fn keep(&mut self, head: &[u8]) {
        if let Some(place) = self.block.get_mut(..head.len()) {
            place.copy_from_slice(head);
            self.store(head.len());
        }
    }

    /// Reads the next bytes from the socket.
    fn fill(&mut self) {
        match read(self.stream, &mut self.block) {
            Ok(count @ 1..) => self.store(count),
            _ if self.closed.load(Ordering::SeqCst) => self.stop = Some(Stop::Closing),
            Ok(0) => self.stop = Some(Stop::Closed),
            Err(error) => self.stop = Some(Stop::Lost(error)),
        }
    }

    /// Writes the first bytes of the block to the file.
    fn store(&mut self, count: usize) {
        let allowed = usize::try_from(self.left).unwrap_or(usize::MAX).min(count);
        let mut written = 0;
        while let Some(rest) = self.block.get(written..allowed).filter(|rest| !rest.is_empty()) {
            match self.partial.file.write(rest) {
                Ok(0) => self.stop = Some(Stop::Disk(io::ErrorKind::WriteZero.into())),
                Ok(more) => {
                    written += more;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => self.stop = Some(Stop::Disk(error)),
            }
            break;
        }
        self.bytes += written as u64;
        if let Err(shortage) = self.room.written(written as u64) {
            self.stop = Some(Stop::Room(shortage));
        }
        self.left = self.left.saturating_sub(written as u64);
        if let Some(last) = written.checked_sub(1).and_then(|last| self.block.get(last)) {
            self.last = *last;
        }
        if allowed < count && self.stop.is_none() {
            self.stop = Some(Stop::Limit(self.bytes));
        }
        self.ready = 0..written;
    }
}

impl Read for Tee<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Tee<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.ready.is_empty() && self.stop.is_none() {
            self.fill();
        }
        Ok(self.block.get(self.ready.clone()).unwrap_or_default())
    }

    fn consume(&mut self, count: usize) {
        self.ready.start = self.ready.end.min(self.ready.start + count);
    }
}

/// State of the parser at the end of the input: what is missing, if anything.
enum ReceivedCompleteness {
    Whole,
    Cut(String),
    /// The input is not a recording from some point on; the text describes the problem.
    Unknown(String),
}

/// Reports the complete parts of a recording to the server.
struct PartReporter<'a> {
    agent: u32,
    events: &'a SyncSender<ListenEvent>,
    count: usize,
}

impl PartReporter<'_> {
    fn part(&mut self, text: String) {
        self.count += 1;
        if self.count <= TOLD {
            let _ = self.events.send(ListenEvent::Received { agent: self.agent, text });
        }
    }
}

/// Parses the records of a binary recording. Returns their number and the state at the end.
fn binary(tee: &mut Tee<'_>, mut told: PartReporter<'_>) -> (u64, ReceivedCompleteness) {
    let mut scanner = StreamScanner::new();
    let mut unknown = None;
    let mut seen = |part: ReceivedPart| {
        told.part(match part.kind {
            PartKind::HeapSummary => part.kind.name().to_owned(),
            kind => format!("{} of {}", kind.name(), human_bytes(part.bytes)),
        });
    };
    // Reading never fails: an error ends the input.
    while let Ok(bytes) = tee.fill_buf()
        && !bytes.is_empty()
    {
        let count = bytes.len();
        if unknown.is_none() {
            unknown = scanner.feed(bytes, &mut seen).err();
        }
        tee.consume(count);
    }
    let open = match (unknown, scanner.end()) {
        (Some(error), _) => ReceivedCompleteness::Unknown(error.to_string()),
        (None, Err(error)) => ReceivedCompleteness::Cut(error.to_string()),
        (None, Ok(())) => ReceivedCompleteness::Whole,
    };
    (scanner.records(), open)
}

/// Parses the lines of a text recording. Returns the state at the end.
fn text(tee: &mut Tee<'_>, mut told: PartReporter<'_>) -> ReceivedCompleteness {
    let mut open = None;
    let mut reader = TextReader::new(&mut *tee);
    while let Ok(Some((_, event))) = reader.next_event() {
        open = match event {
            TextEvent::Malformed { expected, text: END_OF_FILE } => Some(expected),
            _ => None,
        };
        let part = match event {
            TextEvent::HeapEnd => "HEAP DUMP",
            TextEvent::SitesEnd => "SITES",
            TextEvent::RankingEnd(Ranking::Samples) => "CPU SAMPLES",
            TextEvent::RankingEnd(Ranking::Times) => "CPU TIME",
            TextEvent::RankingEnd(Ranking::Contention) => "MONITOR TIME",
            TextEvent::MonitorDumpEnd => "MONITOR DUMP",
            _ => continue,
        };
        told.part(part.to_owned());
    }
    match open {
        Some(expected) => ReceivedCompleteness::Cut(format!("the text ends before {expected}")),
        None if tee.last != b'\n' => {
            ReceivedCompleteness::Cut("the text ends in the middle of a line".to_owned())
        }
        None => ReceivedCompleteness::Whole,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::TcpListener;
    use std::path::Path;
    use std::sync::mpsc::sync_channel;

    use hprof_index::storage::open_dir::OpenDir;

    use super::*;

    const HEADER: &[u8; 31] = b"JAVA PROFILE 1.0.2\0\0\0\0\x08\0\0\0\0\0\0\0\x01";

    /// Receives these bytes from an agent and returns the outcome; `free` is the free space at the first and second check.
    fn receive_bytes(dir: &Path, bytes: &[u8], free: [u64; 2]) -> ConnectionOutcome {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut agent = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, peer) = listener.accept().unwrap();
        let (events, _received) = sync_channel(64);
        let looks = std::sync::atomic::AtomicUsize::new(0);
        let free = move |_: &Path| {
            let look = looks.fetch_add(1, Ordering::Relaxed);
            free.get(look).map(|free| (*free, 1 << 40))
        };
        let files = Arc::new(Files::new(OpenDir::open(dir).unwrap(), "a", Room::new(dir, free)));
        let mut connection = AgentConnection {
            agent: 1,
            peer,
            stream,
            events,
            files,
            max_bytes: u64::MAX,
            closed: Arc::default(),
        };
        std::thread::scope(move |scope| {
            // This fails when the connection is closed before everything is received.
            scope.spawn(move || agent.write_all(bytes));
            let ended = connection.receive();
            drop(connection);
            ended
        })
    }

    #[test]
    fn a_full_disk_gets_no_recording_however_small() {
        let dir = tempfile::tempdir().unwrap();
        let ConnectionOutcome::Failed(why) = receive_bytes(dir.path(), HEADER, [100 << 20, 100 << 20]) else {
            panic!("recorded")
        };
        assert!(why.contains("100.0 MiB"), "{why}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_recording_ends_when_the_disk_is_full() {
        let dir = tempfile::tempdir().unwrap();
        // A string longer than what is written between two checks of free space.
        let string = [&HEADER[..], b"\x01\0\0\0\0\x10\0\0\0", &[b'a'; 1 << 25]].concat();
        let ConnectionOutcome::Recorded(recording) = receive_bytes(dir.path(), &string, [1 << 30, 100 << 20])
        else {
            panic!("not recorded")
        };
        let RecordingState::Truncated(why) = &recording.state else { panic!("{:?}", recording.state) };
        assert!(why.contains("100.0 MiB"), "{why}");
        assert!(recording.bytes < 1 << 25, "{}", recording.bytes);
        assert_eq!(recording.file.file_name().unwrap(), "a-1.cut.hprof");
    }

    #[test]
    fn what_comes_is_known_as_soon_as_it_can_be() {
        let said = |bytes: &[u8], is_end| match start(bytes, is_end) {
            Start::Open => "open",
            Start::Is(RecordingForm::Binary, Some(IdSize::Four)) => "binary, 4",
            Start::Is(RecordingForm::Binary, _) => "binary",
            Start::Is(RecordingForm::Text, _) => "text",
            Start::Refused(_) => "refused",
        };
        let header = b"JAVA PROFILE 1.0.2\0\0\0\0\x04\0\0\0\0\0\0\0\x01";
        for cut in 1..header.len() {
            assert_eq!(said(&header[..cut], false), "open", "{cut}");
            assert_eq!(said(&header[..cut], true), "refused", "{cut}");
        }
        assert_eq!(said(header, false), "binary, 4");
        assert_eq!(said(b"JAVA PROFILE 1.0.1, created", false), "text");
        assert_eq!(said(b"count callee caller ti", false), "open");
        assert_eq!(said(b"count callee caller time\n", false), "text");
        assert_eq!(said(b"\n", false), "open");
        assert_eq!(said(b" \x0c", false), "open");
        assert_eq!(said(b" \x0cJAVA PROFILE 1.0.1", false), "open");
        assert_eq!(said(b" \x0cJAVA PROFILE 1.0.1, created\n", false), "text");
        assert_eq!(said(b"\n\0", false), "open");
        assert_eq!(said(b"\n\0\n", false), "refused");
        assert_eq!(said(b"\nJAVA PROFILE 1.0.1, c\xfcreated\n", false), "refused");
        assert_eq!(said(&[b"\n", &header[..]].concat(), true), "refused");
        assert_eq!(said(b"\r\n\nJAVA PROFILE 1.0.1, cre", false), "open");
        assert_eq!(said(b"\r\n\nJAVA PROFILE 1.0.1, created\n", false), "text");
        assert_eq!(said(b"\nGET / HTTP/1.1\r\n", false), "refused");
        assert_eq!(said(b"GET / HTTP/1.1\r\n", false), "refused");
        assert_eq!(said(b"\x16\x03\x01\x02\0", false), "refused");
        assert_eq!(said(b"JAVA PROFILE 1.0.2\0\0\0\0\x05\0", false), "refused");
        assert_eq!(said(&[b'a'; HEAD], false), "refused");
        assert_eq!(said(b"JAVA PROFILE 1.0;", false), "refused");
    }
}
