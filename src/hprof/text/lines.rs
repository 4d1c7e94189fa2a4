//! Lines of a text, one at a time, from a reader of any length.
//!
//! One buffer is reused. It grows for a line that does not fit, up to [`LONGEST`]; only the start of a
//! longer line is kept.

use std::io::{self, BufRead};

/// Maximum number of bytes of a line that are kept. The agent's own lines are shorter than 1024.
pub(crate) const LONGEST: usize = 1 << 20;
/// Number of bytes per read.
const BLOCK: usize = 1 << 17;

/// A reader of the lines of a text.
pub(crate) struct Lines<'r> {
    input: &'r mut dyn BufRead,
    block: Vec<u8>,
    /// Start of the bytes that were read but not yet returned as lines.
    start: usize,
    end: usize,
    /// Range of the current line.
    line: (usize, usize),
    is_cut: bool,
    number: u64,
    again: bool,
}

impl<'r> Lines<'r> {
    pub(crate) fn new(input: &'r mut dyn BufRead) -> Self {
        let block = vec![0; BLOCK];
        Self { input, block, start: 0, end: 0, line: (0, 0), is_cut: false, number: 0, again: false }
    }

    /// Advances to the next line; returns `false` at the end.
    pub(crate) fn advance(&mut self) -> io::Result<bool> {
        if std::mem::take(&mut self.again) {
            return Ok(true);
        }
        self.is_cut = false;
        let mut searched = self.start;
        loop {
            let fresh = self.block.get(searched..self.end).unwrap_or_default();
            if let Some(at) = newline(fresh) {
                self.take_line(searched + at, searched + at + 1);
                return Ok(true);
            }
            searched = self.end;
            if self.end - self.start >= LONGEST {
                self.is_cut = true;
                let (from, to) = (self.start, self.end);
                let found = self.skip_to_newline()?;
                self.line = (from, to);
                self.number += 1;
                self.start = found;
                return Ok(true);
            }
            if self.end == self.block.len() {
                self.make_room();
                searched = self.end;
            }
            if self.fill()? == 0 {
                let is_there = self.end > self.start;
                if is_there {
                    self.take_line(self.end, self.end);
                }
                return Ok(is_there);
            }
        }
    }

    fn take_line(&mut self, end: usize, next: usize) {
        self.line = (self.start, end);
        self.start = next;
        self.number += 1;
    }

    /// Moves unread bytes to the start of the buffer, and enlarges it if that is not enough.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.block.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        } else {
            let longer = (self.block.len() * 2).min(LONGEST);
            self.block.resize(longer, 0);
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        let room = self.block.get_mut(self.end..).unwrap_or_default();
        loop {
            match self.input.read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(read) => {
                    self.end += read;
                    return Ok(read);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Discards the rest of a line that is too long. The buffer is full and contains the line's start, so it is not changed.
    fn skip_to_newline(&mut self) -> io::Result<usize> {
        loop {
            let (used, found) = {
                let ahead = match self.input.fill_buf() {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    other => other?,
                };
                match newline(ahead) {
                    Some(at) => (at + 1, true),
                    None => (ahead.len(), ahead.is_empty()),
                }
            };
            self.input.consume(used);
            if found {
                return Ok(self.end);
            }
        }
    }

    /// Returns the current line once more on the next call.
    pub(crate) fn repeat(&mut self) {
        self.again = true;
    }

    /// Returns the line without line ending and trailing spaces.
    pub(crate) fn line(&self) -> &[u8] {
        let (start, end) = self.line;
        let mut line = self.block.get(start..end).unwrap_or_default();
        while let [rest @ .., b'\r' | b' ' | b'\t'] = line {
            line = rest;
        }
        if self.number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line }
    }

    /// Returns `true` if the line is longer than the part that is kept.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the line number, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// Returns the position of the first newline.
#[inline]
fn newline(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut at = 0;
    let mut rest = bytes;
    // Eight bytes at a time: a newline byte becomes zero, and only for a zero does the borrow set the
    // upper bit.
    while let Some((word, behind)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*word) ^ (ONES * 0x0a);
        let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if zeros != 0 {
            return Some(at + (zeros.trailing_zeros() / 8) as usize);
        }
        at += 8;
        rest = behind;
    }
    rest.iter().position(|byte| *byte == b'\n').map(|found| at + found)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn lines(bytes: &[u8], block: usize) -> Vec<(u64, Vec<u8>, bool)> {
        let mut input = BufReader::with_capacity(block, bytes);
        let mut lines = Lines::new(&mut input);
        let mut out = Vec::new();
        while lines.advance().unwrap() {
            out.push((lines.number(), lines.line().to_vec(), lines.is_cut()));
        }
        out
    }

    #[test]
    fn lines_of_every_kind_of_end() {
        let text = b"\xef\xbb\xbfone\r\n\n\ttwo \t\r\nthree";
        for block in [1, 2, 7, 100] {
            let found = lines(text, block);
            let texts: Vec<&[u8]> = found.iter().map(|(_, line, _)| line.as_slice()).collect();
            assert_eq!(texts, [&b"one"[..], b"", b"\ttwo", b"three"]);
            assert_eq!(found.iter().map(|line| line.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
        }
        assert!(lines(b"", 8).is_empty());
        assert_eq!(lines(b"\n", 8).len(), 1);
    }

    #[test]
    fn a_line_of_any_length_is_cut_and_the_next_one_is_whole() {
        for long in [BLOCK - 1, BLOCK, BLOCK + 1, LONGEST - 1, LONGEST, LONGEST + 1, 5 * LONGEST + 3] {
            let mut text = b"before\n".to_vec();
            text.resize(text.len() + long, b'x');
            text.extend_from_slice(b"\nafter\n");
            let found = lines(&text, 1 << 16);
            let lengths: Vec<usize> = found.iter().map(|(_, line, _)| line.len()).collect();
            assert_eq!(lengths, [6, long.min(LONGEST), 5], "{long}");
            // A line that just fits may or may not count as truncated.
            assert_eq!(found[1].2, long > LONGEST || (found[1].2 && long == LONGEST), "{long}");
            assert_eq!((found[2].0, found[2].1.as_slice()), (3, &b"after"[..]));
        }
    }

    #[test]
    fn a_line_can_be_had_again() {
        let mut input = &b"a\nb\n"[..];
        let mut lines = Lines::new(&mut input);
        assert!(lines.advance().unwrap());
        lines.repeat();
        assert!(lines.advance().unwrap());
        assert_eq!((lines.line(), lines.number()), (&b"a"[..], 1));
        assert!(lines.advance().unwrap());
        assert_eq!((lines.line(), lines.number()), (&b"b"[..], 2));
        assert!(!lines.advance().unwrap());
    }

    #[test]
    fn newlines_are_found_at_every_place() {
        for length in 0..40 {
            for at in 0..length {
                let mut bytes = vec![0x8a; length];
                bytes[at] = b'\n';
                bytes[at + 1..].fill(b'\n');
                assert_eq!(newline(&bytes), Some(at));
            }
            assert_eq!(newline(&vec![0x0b; length]), None);
        }
    }
}
