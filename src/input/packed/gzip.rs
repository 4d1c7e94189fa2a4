//! gzip as one stream, of one or many members, with padding after them.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

/// A reader that can be taken out of a decoder and put back.
struct ReaderSlot<R>(Option<BufReader<R>>);

impl<R: Read> Read for ReaderSlot<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.as_mut().map_or(Ok(0), |reader| reader.read(buffer))
    }
}

impl<R: Read> BufRead for ReaderSlot<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.0.as_mut().map_or(Ok(&[]), BufRead::fill_buf)
    }

    fn consume(&mut self, bytes: usize) {
        if let Some(reader) = &mut self.0 {
            reader.consume(bytes);
        }
    }
}

/// Reader that unpacks all members; zeros after the last one are padding, which gzip itself also skips.
pub(super) struct GzipReader<R> {
    decoder: GzDecoder<ReaderSlot<R>>,
    /// `true` after the end or a failure: nothing more follows.
    done: bool,
}

impl<R: Read> GzipReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self { decoder: GzDecoder::new(ReaderSlot(Some(BufReader::new(input)))), done: false }
    }

    /// Returns whether another member follows the one that ended.
    fn goes_on(&mut self) -> io::Result<bool> {
        let slot = self.decoder.get_mut();
        let mut is_padded = false;
        loop {
            let rest = match slot.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                rest => rest?,
            };
            let Some(first) = rest.first() else { return Ok(false) };
            if *first != 0 {
                break;
            }
            is_padded = true;
            let zeros = rest.iter().take_while(|byte| **byte == 0).count();
            slot.consume(zeros);
        }
        if is_padded {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the data after the zero padding is not gzip",
            ));
        }
        let rest = ReaderSlot(slot.0.take());
        drop(self.decoder.reset(rest));
        Ok(true)
    }

    fn step(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.decoder.read(buffer)?;
            if read > 0 || !self.goes_on()? {
                return Ok(read);
            }
        }
    }
}

impl<R: Read> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.done || buffer.is_empty() {
            return Ok(0);
        }
        let read = self.step(buffer);
        self.done = match &read {
            Ok(read) => *read == 0,
            Err(error) => error.kind() != io::ErrorKind::Interrupted,
        };
        read
    }
}
