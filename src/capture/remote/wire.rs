//! Frames of a connection, with checksums. A frame contains a message or bytes of a dump.
//!
//! ```text
//! kind      u8       0 a message, 1 bytes of a dump
//! length    u32 LE   of the contents
//! checksum  u64 LE   XXH3 of kind and length, continued over the contents
//! contents
//! ```

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::Xxh3;

use crate::attach::MAX_ANSWER;

/// Maximum length of a message in bytes. The longest ones are replies of JVMs ([`MAX_ANSWER`]) and files about them, whose line
/// ends are escaped.
const MAX_MESSAGE: usize = 2 * MAX_ANSWER;

/// Maximum number of bytes of a dump in a frame.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// Length in bytes of a frame's header, which precedes the contents.
const HEADER: usize = 13;

/// Contents of a frame.
#[derive(Debug)]
pub(super) enum Frame<'b, M> {
    Message(M),
    Bytes(&'b [u8]),
}

fn checksum(head: &[u8], contents: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(head);
    hash.update(contents);
    hash.digest()
}

fn write(out: &mut impl Write, kind: u8, contents: &[u8]) -> io::Result<()> {
    let length = u32::try_from(contents.len()).map_err(io::Error::other)?;
    let mut header = Vec::with_capacity(HEADER);
    header.push(kind);
    header.extend(length.to_le_bytes());
    header.extend(checksum(&header, contents).to_le_bytes());
    out.write_all(&header)?;
    out.write_all(contents)?;
    out.flush()
}

/// Writes a frame with a message.
pub(super) fn write_message(out: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let contents = serde_json::to_vec(message)?;
    if contents.len() > MAX_MESSAGE {
        return Err(io::Error::other("a message is too long"));
    }
    write(out, 0, &contents)
}

/// Writes frames with the bytes of a dump.
pub(super) fn write_bytes(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    bytes.chunks(MAX_BYTES).try_for_each(|bytes| write(out, 1, bytes))
}

/// Reads the next frame. `contents` is the buffer for its contents.
///
/// # Errors
///
/// `UnexpectedEof` if there are no more frames, `InvalidData` if the frame is damaged.
pub(super) fn read<'b, M: DeserializeOwned>(
    from: &mut impl Read,
    contents: &'b mut Vec<u8>,
) -> io::Result<Frame<'b, M>> {
    let damaged = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut header = [0; HEADER];
    from.read_exact(&mut header)?;
    let (head, expected) = header.split_at(5);
    let mut number = [0; 8];
    number.copy_from_slice(expected);
    let [kind, length @ ..] = head else { return Err(damaged("a frame has no header")) };
    let length = length.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte));
    let max = if *kind == 0 { MAX_MESSAGE } else { MAX_BYTES };
    if *kind > 1 || length > max {
        return Err(damaged("a frame has an unknown kind or length"));
    }
    contents.resize(length, 0);
    from.read_exact(contents)?;
    if checksum(head, contents) != u64::from_le_bytes(number) {
        return Err(damaged("the checksum of a frame is wrong"));
    }
    if *kind == 1 {
        return Ok(Frame::Bytes(contents));
    }
    let message = serde_json::from_slice(contents);
    Ok(Frame::Message(message.map_err(|_| damaged("a message is malformed"))?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn frames() -> Vec<u8> {
        let mut out = Vec::new();
        write_message(&mut out, &"message").unwrap();
        write_bytes(&mut out, &vec![7; MAX_BYTES + 1]).unwrap();
        out
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        let frames = frames();
        let (mut from, mut contents) = (frames.as_slice(), Vec::new());
        assert!(
            matches!(read::<String>(&mut from, &mut contents), Ok(Frame::Message(text)) if text == "message")
        );
        for length in [MAX_BYTES, 1] {
            let frame = read::<String>(&mut from, &mut contents);
            assert!(matches!(frame, Ok(Frame::Bytes(bytes)) if *bytes == vec![7; length]));
        }
        let end = read::<String>(&mut from, &mut contents).unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn every_changed_byte_and_every_truncation_is_noticed() {
        let whole = frames();
        let message = 0..HEADER + 9;
        for at in message.chain([HEADER + 9, HEADER + 30, whole.len() - 1]) {
            let mut changed = whole.clone();
            changed[at] ^= 0x40;
            let (mut from, mut contents) = (changed.as_slice(), Vec::new());
            let read = (0..3).try_for_each(|_| read::<String>(&mut from, &mut contents).map(drop));
            assert!(read.is_err(), "{at}");
            assert!(contents.capacity() <= MAX_MESSAGE, "{at}");
        }
        for length in [0, 1, HEADER, HEADER + 8, whole.len() - 1] {
            let (mut from, mut contents) = (&whole[..length], Vec::new());
            let read = (0..3).try_for_each(|_| read::<String>(&mut from, &mut contents).map(drop));
            assert!(read.is_err(), "{length}");
        }
    }
}
