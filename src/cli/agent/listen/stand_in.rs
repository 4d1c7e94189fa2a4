//! A substitute for the socket of an agent: the given blocks of bytes arrive one by one.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use hprof_index::storage::open_dir::OpenDir;

use super::files::{Files, RecordingForm};
use super::receive::{self, AgentConnection, ConnectionOutcome, ListenEvent, Stream};
use super::room::Room;
use super::{RecordingState, words};

/// A substitute for a socket: the blocks that have not arrived yet.
struct Blocks(VecDeque<Vec<u8>>);

impl Read for Blocks {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(block) = self.0.front_mut() else { return Ok(0) };
        let count = block.as_slice().read(into)?;
        block.drain(..count);
        if block.is_empty() {
            self.0.pop_front();
        }
        Ok(count)
    }
}

impl Stream for Blocks {
    fn close(&self) {}
}

/// A received recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedRecording {
    /// Path of the file that contains the recording.
    pub file: PathBuf,
    /// `true` if the recording is binary.
    pub is_binary: bool,
    /// Number of bytes in the file.
    pub bytes: u64,
    /// Number of complete records of a binary recording.
    pub records: Option<u64>,
    /// Reason why the recording is incomplete; `None` if it is complete.
    pub wrong: Option<String>,
    /// Descriptions of the recording's parts, as they were reported.
    pub parts: Vec<String>,
}

/// Receives at most `max_bytes` from an agent into a file in `dir`.
///
/// # Errors
///
/// The reason why nothing was recorded.
pub(crate) fn receive(dir: &Path, blocks: Vec<Vec<u8>>, max_bytes: u64) -> Result<ReceivedRecording, String> {
    // A read of no bytes means the end of a connection, so no block may be empty.
    let blocks = blocks.into_iter().filter(|block| !block.is_empty()).collect();
    let (events, happened) = sync_channel(receive::MAX_EVENTS);
    let open = OpenDir::open(dir).map_err(|error| error.to_string())?;
    receive::receive(AgentConnection {
        agent: 1,
        peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        stream: Blocks(blocks),
        events,
        files: Arc::new(Files::new(open, "recording", Room::new(dir, |_| None))),
        max_bytes,
        closed: Arc::default(),
    });
    let mut parts = Vec::new();
    for event in happened {
        match event {
            ListenEvent::Received { text, .. } => parts.push(text),
            ListenEvent::Ended { ended: ConnectionOutcome::Nothing, .. } => {
                return Err("nothing came".to_owned());
            }
            ListenEvent::Ended {
                ended: ConnectionOutcome::Refused(why) | ConnectionOutcome::Failed(why),
                ..
            } => return Err(why),
            ListenEvent::Ended { ended: ConnectionOutcome::Recorded(recording), .. } => {
                let wrong = match recording.state {
                    RecordingState::Complete => None,
                    RecordingState::Truncated(why) | RecordingState::Damaged(why) => Some(why),
                };
                return Ok(ReceivedRecording {
                    file: recording.file,
                    is_binary: recording.form == RecordingForm::Binary,
                    bytes: recording.bytes,
                    records: recording.records,
                    wrong,
                    parts,
                });
            }
            _ => {}
        }
    }
    Err("the connection did not end".to_owned())
}

/// Returns whether a line on stdin is a command for agents.
///
/// # Errors
///
/// The reason why the command is not valid.
pub(crate) fn is_command(line: &str) -> Result<bool, String> {
    words::parse(line).map(|line| matches!(line, words::TypedLine::Command { .. }))
}
