//! A single member of a gzip file: header, deflate stream, trailer.

use flate2::{Crc, Decompress, FlushDecompress, Status};

/// First bytes of every member: the magic number, and deflate, the only method.
pub(super) const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// Flags that no version of the format defines.
const RESERVED: u8 = 0xe0;
/// Maximum length of a name or a comment in bytes: file names have 255, and data that only looks like a header may have
/// no terminator.
const LONGEST: usize = 4096;
/// Length of checksum and length after the stream.
const TRAILER: usize = 8;

/// Result of reading a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// A complete header of this length in bytes.
    Whole(usize),
    /// A truncated header.
    Cut,
    /// No header.
    None,
}

/// Reads the header at the start of `bytes`.
pub(super) fn head(bytes: &[u8]) -> Head {
    let there = bytes.len().min(MAGIC.len());
    if bytes.get(..there) != MAGIC.get(..there) {
        return Head::None;
    }
    let Some(flags) = bytes.get(3).copied() else { return Head::Cut };
    if flags & RESERVED != 0 {
        return Head::None;
    }
    let mut is_cut = true;
    let mut read = || -> Option<usize> {
        let mut at = 10;
        if flags & 4 != 0 {
            let extra = bytes.get(at..)?.first_chunk().map(|len| u16::from_le_bytes(*len))?;
            at += 2 + usize::from(extra);
        }
        // Name and comment.
        for flag in [8, 16] {
            if flags & flag != 0 {
                let rest = bytes.get(at..)?;
                is_cut = rest.len() < LONGEST;
                at += memchr::memchr(0, rest.get(..LONGEST).unwrap_or(rest))? + 1;
                is_cut = true;
            }
        }
        if flags & 2 != 0 {
            at += 2;
        }
        (at <= bytes.len()).then_some(at)
    };
    match read() {
        Some(len) => Head::Whole(len),
        None if is_cut => Head::Cut,
        None => Head::None,
    }
}

/// Reason why unpacking a member stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The member ends with a valid checksum; the next one starts there.
    End,
    /// The buffer is full.
    Full,
    /// The file is truncated within the member.
    Cut,
    /// The data is invalid.
    Bad(&'static str),
}

/// Unpacker of members, one after another.
pub(super) struct Inflater {
    raw: Decompress,
    crc: Crc,
}

impl Inflater {
    pub(super) fn new() -> Self {
        Self { raw: Decompress::new(false), crc: Crc::new() }
    }

    /// Prepares for a new member.
    pub(super) fn reset(&mut self) {
        self.raw.reset(false);
        self.crc.reset();
    }

    /// Unpacks more of a member whose header was read: from `at` on into `out` from `filled` on; advances both.
    pub(super) fn run(&mut self, packed: &[u8], at: &mut usize, out: &mut [u8], filled: &mut usize) -> Stop {
        loop {
            let (was_in, was_out) = (self.raw.total_in(), self.raw.total_out());
            let (Some(rest), Some(room)) = (packed.get(*at..), out.get_mut(*filled..)) else {
                return Stop::Cut;
            };
            let (no_rest, no_room) = (rest.is_empty(), room.is_empty());
            let status = self.raw.decompress(rest, room, FlushDecompress::None);
            let moved = |now: u64, was: u64| usize::try_from(now.saturating_sub(was)).unwrap_or(usize::MAX);
            let (took, made) = (moved(self.raw.total_in(), was_in), moved(self.raw.total_out(), was_out));
            self.crc.update(room.get(..made).unwrap_or_default());
            *at = at.saturating_add(took);
            *filled = filled.saturating_add(made);
            match status {
                Err(_) => return Stop::Bad("its data is not valid gzip"),
                Ok(Status::StreamEnd) => return self.trailer(packed, at),
                Ok(Status::Ok | Status::BufError) if took == 0 && made == 0 => {
                    return match (no_room, no_rest) {
                        (true, _) => Stop::Full,
                        (false, true) => Stop::Cut,
                        (false, false) => Stop::Bad("its data is incomplete"),
                    };
                }
                Ok(_) => {}
            }
        }
    }

    fn trailer(&self, packed: &[u8], at: &mut usize) -> Stop {
        let Some(trailer) = packed.get(*at..).and_then(<[u8]>::first_chunk::<TRAILER>) else {
            return Stop::Cut;
        };
        let [c0, c1, c2, c3, ..] = *trailer;
        *at += TRAILER;
        // The length after it adds nothing if the checksum is right.
        if u32::from_le_bytes([c0, c1, c2, c3]) == self.crc.sum() {
            Stop::End
        } else {
            Stop::Bad("its checksum is wrong")
        }
    }
}

/// Returns the length that the trailer before `at` states, modulo 4 GiB.
pub(super) fn length_before(packed: &[u8], at: usize) -> Option<u32> {
    packed.get(at.checked_sub(4)?..)?.first_chunk().map(|len| u32::from_le_bytes(*len))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn headers_with_all_fields_are_read() {
        let mut header = vec![0x1f, 0x8b, 8, 0x1e, 0, 0, 0, 0, 0, 3, 2, 0, 7, 7];
        header.extend_from_slice(b"name\0HPROF BLOCKSIZE=1048576\0\x12\x34");
        assert_eq!(head(&header), Head::Whole(header.len()));
        for cut in 0..header.len() {
            assert_eq!(head(&header[..cut]), Head::Cut, "{cut}");
        }
        assert_eq!(head(&[0x1f, 0x8b, 8, 0x20, 0, 0, 0, 0, 0, 3]), Head::None);
        assert_eq!(head(&[0x1f, 0x8b, 7]), Head::None);
    }

    #[test]
    fn a_name_is_looked_for_so_far_only() {
        for flags in [8, 16] {
            let mut header = vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3];
            header.resize(10 + LONGEST - 1, b'n');
            assert_eq!(head(&header), Head::Cut);
            header.push(b'n');
            assert_eq!(head(&header), Head::None);
            header.push(0);
            assert_eq!(head(&header), Head::None);
            header.remove(10);
            assert_eq!(head(&header), Head::Whole(10 + LONGEST));
        }
    }
}
