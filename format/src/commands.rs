//! Commands to an HPROF agent over the socket on which it sends its recording: encoding and decoding.
//!
//! Source: the HPROF agent's documentation, "Socket Connection and Communication". A command is `u1` tag,
//! `u4` serial number, `u4` length of the body, body; all big-endian. The agent sends no responses:
//! requested data appears as records (or text) in the recording.
//!
//! This file depends only on the standard library: both ends use it.

use std::fmt;
use std::io::{self, Read};

/// Size of a command without its body, in bytes.
pub const HEAD: usize = 9;

/// Size of the longest body that a reader skips to reach the next command. A longer one is treated as
/// invalid.
pub const MAX_BODY: u32 = 1 << 16;

mod tag {
    pub(super) const FORCE_GC: u8 = 0x01;
    pub(super) const DUMP_HEAP: u8 = 0x02;
    pub(super) const ALLOC_SITES: u8 = 0x03;
    pub(super) const HEAP_SUMMARY: u8 = 0x04;
    pub(super) const EXIT: u8 = 0x05;
    pub(super) const DUMP_TRACES: u8 = 0x06;
    pub(super) const CPU_SAMPLES: u8 = 0x07;
    pub(super) const CONTROL: u8 = 0x08;
    pub(super) const EOF: u8 = 0xff;
}

/// A command to an agent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Command {
    /// FORCE GC (0x01): "not implemented" in the agent of JDK 5 to 8.
    ForceGc,
    /// DUMP HEAP (0x02).
    DumpHeap,
    /// ALLOC SITES (0x03).
    AllocSites {
        /// Selection and order of the sites.
        flags: SiteFlags,
        /// Minimum share of the sites to write: 0 to 1.
        cutoff: f32,
    },
    /// HEAP SUMMARY (0x04).
    HeapSummary,
    /// EXIT THE VM (0x05).
    Exit,
    /// DUMP TRACES (0x06): write the traces that were not written before.
    DumpTraces,
    /// CPU SAMPLES (0x07).
    CpuSamples {
        /// Minimum share of the traces to write: 0 to 1.
        cutoff: f32,
    },
    /// CONTROL (0x08).
    Control(Control),
    /// EOF (0xFF): no more commands. The recording continues.
    Eof,
}

/// Flags of ALLOC SITES, both of the command and of the record that answers it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SiteFlags(pub u16);

impl SiteFlags {
    /// Only sites that changed since they were last written.
    pub const INCREMENTAL: Self = Self(0x1);
    /// Sites are sorted by allocated bytes; otherwise by live bytes. The specification says "vs. line", by
    /// mistake.
    pub const BY_ALLOCATION: Self = Self(0x2);
    /// Garbage is collected first.
    pub const FORCE_GC: Self = Self(0x4);

    /// Returns `true` if all flags of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns these flags and those of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the flags that the specification defines.
    #[must_use]
    pub const fn known_flags(self) -> Self {
        Self(self.0 & Self::INCREMENTAL.with(Self::BY_ALLOCATION).with(Self::FORCE_GC).0)
    }
}

/// Sub-options of CONTROL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// 0x1: enable allocation traces.
    AllocTracesOn,
    /// 0x2: disable allocation traces.
    AllocTracesOff,
    /// 0x3: enable sampling of a thread.
    CpuSamplingOn {
        /// Object ID of the thread; 0 for all.
        thread: u64,
    },
    /// 0x4: disable sampling of a thread.
    CpuSamplingOff {
        /// Object ID of the thread; 0 for all.
        thread: u64,
    },
    /// 0x5: discard the samples taken so far.
    ClearCpuSamples,
    /// 0x6: set the depth of future traces. The agent of JDK 8 does not read the argument, and interprets
    /// it as the next command.
    Depth(u16),
}

/// Size of an object ID in a command, which equals that in the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdBytes {
    /// Size used by the agent of JDK 5 to 8, including in 64-bit JVMs.
    Four,
    /// Size used in dumps of 64-bit JVMs.
    Eight,
}

/// A command with its serial number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// Serial number, chosen by the sender.
    pub serial: u32,
    /// The command.
    pub command: Command,
}

/// Result of reading a command.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Incoming {
    /// A valid command.
    Request(Request),
    /// An invalid command. Its body was skipped, and the next one can be read.
    Wrong(CommandError),
}

/// An invalid command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandError {
    /// Tag.
    pub tag: u8,
    /// Serial number.
    pub serial: u32,
    /// Length of the body in bytes.
    pub length: u32,
    /// Reason why it is invalid.
    pub why: CommandErrorKind,
}

/// Reason why a command is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandErrorKind {
    /// There is no command with this tag.
    Tag,
    /// The length of the body does not match the command.
    Length,
    /// CONTROL has no such sub-option.
    Option(u16),
    /// The cutoff is not a number from 0 to 1.
    Cutoff,
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tag, serial, length, why } = self;
        match why {
            CommandErrorKind::Tag => write!(f, "unknown command {tag:#04x}")?,
            CommandErrorKind::Length => {
                write!(f, "command {tag:#04x} has an invalid length of {length} bytes")?
            }
            CommandErrorKind::Option(option) => {
                write!(f, "command {tag:#04x} has the unknown sub-option {option:#x}")?
            }
            CommandErrorKind::Cutoff => {
                write!(f, "command {tag:#04x} has a cutoff outside the range from 0 to 1")?
            }
        }
        write!(f, " (serial number {serial})")
    }
}

impl Request {
    /// Returns the bytes of the command; `None` if the object ID of a thread does not fit into `ids`.
    pub fn encode(&self, ids: IdBytes) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        let mut cutoff_body = |flags: SiteFlags, cutoff: f32| {
            body.extend(flags.0.to_be_bytes());
            body.extend(cutoff.to_be_bytes());
        };
        let tag = match self.command {
            Command::ForceGc => tag::FORCE_GC,
            Command::DumpHeap => tag::DUMP_HEAP,
            Command::AllocSites { flags, cutoff } => {
                cutoff_body(flags, cutoff);
                tag::ALLOC_SITES
            }
            Command::HeapSummary => tag::HEAP_SUMMARY,
            Command::Exit => tag::EXIT,
            Command::DumpTraces => tag::DUMP_TRACES,
            Command::CpuSamples { cutoff } => {
                cutoff_body(SiteFlags::default(), cutoff);
                tag::CPU_SAMPLES
            }
            Command::Control(control) => {
                control.encode(ids, &mut body)?;
                tag::CONTROL
            }
            Command::Eof => tag::EOF,
        };
        let mut bytes = vec![tag];
        bytes.extend(self.serial.to_be_bytes());
        bytes.extend(u32::try_from(body.len()).ok()?.to_be_bytes());
        bytes.append(&mut body);
        Some(bytes)
    }
}

impl Control {
    /// Returns the number of the sub-option.
    pub const fn option(self) -> u16 {
        match self {
            Self::AllocTracesOn => 1,
            Self::AllocTracesOff => 2,
            Self::CpuSamplingOn { .. } => 3,
            Self::CpuSamplingOff { .. } => 4,
            Self::ClearCpuSamples => 5,
            Self::Depth(_) => 6,
        }
    }

    fn encode(self, ids: IdBytes, body: &mut Vec<u8>) -> Option<()> {
        body.extend(self.option().to_be_bytes());
        match self {
            Self::CpuSamplingOn { thread } | Self::CpuSamplingOff { thread } => match ids {
                IdBytes::Four => body.extend(u32::try_from(thread).ok()?.to_be_bytes()),
                IdBytes::Eight => body.extend(thread.to_be_bytes()),
            },
            Self::Depth(depth) => body.extend(depth.to_be_bytes()),
            _ => {}
        }
        Some(())
    }

    /// Parses CONTROL. The length of the body determines the length of an ID.
    fn decode(body: &[u8]) -> Result<Self, CommandErrorKind> {
        let (option, argument) = body.split_first_chunk().ok_or(CommandErrorKind::Length)?;
        let option = u16::from_be_bytes(*option);
        let thread = || match argument.len() {
            4 => argument.first_chunk().map(|id| u64::from(u32::from_be_bytes(*id))),
            8 => argument.first_chunk().map(|id| u64::from_be_bytes(*id)),
            _ => None,
        };
        let plain = |control| argument.is_empty().then_some(control);
        let control = match option {
            1 => plain(Self::AllocTracesOn),
            2 => plain(Self::AllocTracesOff),
            3 => thread().map(|thread| Self::CpuSamplingOn { thread }),
            4 => thread().map(|thread| Self::CpuSamplingOff { thread }),
            5 => plain(Self::ClearCpuSamples),
            6 => <[u8; 2]>::try_from(argument).ok().map(|depth| Self::Depth(u16::from_be_bytes(depth))),
            _ => return Err(CommandErrorKind::Option(option)),
        };
        control.ok_or(CommandErrorKind::Length)
    }
}

impl Command {
    fn decode(tag: u8, body: &[u8]) -> Result<Self, CommandErrorKind> {
        let plain = |command| if body.is_empty() { Ok(command) } else { Err(CommandErrorKind::Length) };
        match tag {
            tag::FORCE_GC => plain(Self::ForceGc),
            tag::DUMP_HEAP => plain(Self::DumpHeap),
            tag::ALLOC_SITES => cutoff(body).map(|(flags, cutoff)| Self::AllocSites { flags, cutoff }),
            tag::HEAP_SUMMARY => plain(Self::HeapSummary),
            tag::EXIT => plain(Self::Exit),
            tag::DUMP_TRACES => plain(Self::DumpTraces),
            tag::CPU_SAMPLES => cutoff(body).map(|(_, cutoff)| Self::CpuSamples { cutoff }),
            tag::CONTROL => Control::decode(body).map(Self::Control),
            tag::EOF => plain(Self::Eof),
            _ => Err(CommandErrorKind::Tag),
        }
    }
}

/// Parses the body of ALLOC SITES and CPU SAMPLES.
fn cutoff(body: &[u8]) -> Result<(SiteFlags, f32), CommandErrorKind> {
    let [flags_high, flags_low, ratio @ ..] = body else { return Err(CommandErrorKind::Length) };
    let ratio = f32::from_be_bytes(ratio.try_into().map_err(|_| CommandErrorKind::Length)?);
    if (0.0..=1.0).contains(&ratio) {
        Ok((SiteFlags(u16::from_be_bytes([*flags_high, *flags_low])), ratio))
    } else {
        Err(CommandErrorKind::Cutoff)
    }
}

/// Reads the next command; `None` if no complete one is left. Blocks as long as a socket stays open
/// without data: timeouts are the caller's responsibility.
///
/// # Errors
/// If `from` cannot be read, and [`io::ErrorKind::InvalidData`] for a body of more than [`MAX_BODY`]
/// bytes: no command can be found after it.
pub fn read(from: &mut impl Read) -> io::Result<Option<Incoming>> {
    let mut head = [0; HEAD];
    let got = fill(from, &mut head)?;
    let [tag, s0, s1, s2, s3, l0, l1, l2, l3] = head;
    let serial = u32::from_be_bytes([s0, s1, s2, s3]);
    let length = u32::from_be_bytes([l0, l1, l2, l3]);
    if got < HEAD {
        // A sender that is done may send only the tag.
        let eof = Incoming::Request(Request { serial: 0, command: Command::Eof });
        return Ok((got == 1 && tag == tag::EOF).then_some(eof));
    }
    if length > MAX_BODY {
        let text = format!("command {tag:#04x} states a length of {length} bytes (at most {MAX_BODY})");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut body = vec![0; usize::try_from(length).unwrap_or_default()];
    if fill(from, &mut body)? < body.len() {
        return Ok(None);
    }
    Ok(Some(match Command::decode(tag, &body) {
        Ok(command) => Incoming::Request(Request { serial, command }),
        Err(why) => Incoming::Wrong(CommandError { tag, serial, length, why }),
    }))
}

/// Reads up to `into.len()` bytes, as many as there are.
fn fill(from: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut at = 0;
    while let Some(rest) = into.get_mut(at..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => break,
            Ok(count) => at += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(at)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns each command with its bytes by the specification.
    fn all_commands() -> Vec<(Command, IdBytes, &'static [u8])> {
        use IdBytes::{Eight, Four};
        let control = Command::Control;
        vec![
            (Command::ForceGc, Four, b"\x01\0\0\0\x07\0\0\0\0"),
            (Command::DumpHeap, Four, b"\x02\0\0\0\x07\0\0\0\0"),
            // 0.5 is 0x3f000000 (IEEE 754).
            (
                Command::AllocSites { flags: SiteFlags(6), cutoff: 0.5 },
                Four,
                b"\x03\0\0\0\x07\0\0\0\x06\0\x06\x3f\0\0\0",
            ),
            (Command::HeapSummary, Four, b"\x04\0\0\0\x07\0\0\0\0"),
            (Command::Exit, Eight, b"\x05\0\0\0\x07\0\0\0\0"),
            (Command::DumpTraces, Four, b"\x06\0\0\0\x07\0\0\0\0"),
            (Command::CpuSamples { cutoff: 1.0 }, Four, b"\x07\0\0\0\x07\0\0\0\x06\0\0\x3f\x80\0\0"),
            (control(Control::AllocTracesOn), Four, b"\x08\0\0\0\x07\0\0\0\x02\0\x01"),
            (control(Control::AllocTracesOff), Eight, b"\x08\0\0\0\x07\0\0\0\x02\0\x02"),
            (
                control(Control::CpuSamplingOn { thread: 0x0102_0304 }),
                Four,
                b"\x08\0\0\0\x07\0\0\0\x06\0\x03\x01\x02\x03\x04",
            ),
            (
                control(Control::CpuSamplingOff { thread: 0x01_0000_0002 }),
                Eight,
                b"\x08\0\0\0\x07\0\0\0\x0a\0\x04\0\0\0\x01\0\0\0\x02",
            ),
            (control(Control::ClearCpuSamples), Four, b"\x08\0\0\0\x07\0\0\0\x02\0\x05"),
            (control(Control::Depth(260)), Four, b"\x08\0\0\0\x07\0\0\0\x04\0\x06\x01\x04"),
            (Command::Eof, Four, b"\xff\0\0\0\x07\0\0\0\0"),
        ]
    }

    #[test]
    fn commands_are_the_bytes_of_the_specification_and_back() {
        let mut stream = Vec::new();
        for (command, ids, bytes) in all_commands() {
            let request = Request { serial: 7, command };
            assert_eq!(request.encode(ids).unwrap(), bytes, "{command:?}");
            stream.extend_from_slice(bytes);
        }
        let mut stream = stream.as_slice();
        for (command, ..) in all_commands() {
            let request = Incoming::Request(Request { serial: 7, command });
            assert_eq!(read(&mut stream).unwrap(), Some(request));
        }
        assert_eq!(read(&mut stream).unwrap(), None);
    }

    #[test]
    fn an_id_that_does_not_fit_is_not_sent() {
        let command = Command::Control(Control::CpuSamplingOn { thread: 1 << 32 });
        assert_eq!(Request { serial: 1, command }.encode(IdBytes::Four), None);
    }

    #[test]
    fn wrong_commands_are_skipped() {
        let wrong: [(&[u8], CommandErrorKind); 8] = [
            (b"\x09\0\0\0\x01\0\0\0\x03abc", CommandErrorKind::Tag),
            (b"\x02\0\0\0\x01\0\0\0\x01a", CommandErrorKind::Length),
            (b"\x03\0\0\0\x01\0\0\0\x04\0\0\0\0", CommandErrorKind::Length),
            (b"\x07\0\0\0\x01\0\0\0\x06\0\0\x7f\xc0\0\0", CommandErrorKind::Cutoff),
            (b"\x07\0\0\0\x01\0\0\0\x06\0\0\x40\0\0\0", CommandErrorKind::Cutoff),
            (b"\x08\0\0\0\x01\0\0\0\x01\0", CommandErrorKind::Length),
            (b"\x08\0\0\0\x01\0\0\0\x02\0\x07", CommandErrorKind::Option(7)),
            (b"\x08\0\0\0\x01\0\0\0\x05\0\x03\0\0\0", CommandErrorKind::Length),
        ];
        for (bytes, why) in wrong {
            let mut stream = [bytes, b"\x02\0\0\0\x02\0\0\0\0"].concat();
            stream.push(0xff);
            let mut stream = stream.as_slice();
            let Some(Incoming::Wrong(found)) = read(&mut stream).unwrap() else { panic!("{bytes:?}") };
            assert_eq!((found.why, found.tag, found.serial), (why, bytes[0], 1));
            assert!(found.to_string().contains("serial number 1"));
            let next = Request { serial: 2, command: Command::DumpHeap };
            assert_eq!(read(&mut stream).unwrap(), Some(Incoming::Request(next)));
            let eof = Request { serial: 0, command: Command::Eof };
            assert_eq!(read(&mut stream).unwrap(), Some(Incoming::Request(eof)), "the tag alone");
        }
    }

    #[test]
    fn what_is_cut_is_no_command_and_a_long_body_is_an_error() {
        for (command, ids, bytes) in all_commands() {
            for cut in 0..bytes.len() {
                let found = read(&mut bytes.get(..cut).unwrap()).unwrap();
                let is_eof = command == Command::Eof && cut == 1;
                assert_eq!(found.is_some(), is_eof, "{command:?} {ids:?} {cut}");
            }
        }
        let error = read(&mut b"\x02\0\0\0\x01\x7f\xff\xff\xff".as_slice()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
