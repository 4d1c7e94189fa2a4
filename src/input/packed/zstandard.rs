//! Zstandard, with a bound on the memory that a frame can claim.

use std::io::{self, BufReader, Read};

use zstd::stream::read::Decoder;
use zstd::zstd_safe;

/// Maximum window size that a frame may claim, as a power of two: the default limit of `zstd -d`, and the maximum that
/// `zstd --long` and `--ultra -22` write. A frame of a hundred bytes can claim 2 GiB.
const WINDOW_LOG: u32 = 27;

/// Error code of libzstd for a larger window, `ZSTD_error_frameParameter_windowTooLarge`.
const WINDOW_TOO_LARGE: usize = 0_usize.wrapping_sub(16);

/// Error code of libzstd for a failed allocation, `ZSTD_error_memory_allocation`.
const NO_MEMORY: usize = 0_usize.wrapping_sub(64);

/// Message for a window that is too large.
const TOO_LARGE: &str = "its window is larger than 128 MiB";

/// Reader that unpacks all frames.
pub(super) struct ZstdReader<'a, R: Read>(Decoder<'a, BufReader<R>>);

impl<R: Read> ZstdReader<'_, R> {
    pub(super) fn new(input: R) -> io::Result<Self> {
        // Nothing is read yet: only an allocation can fail.
        let decoder = Decoder::new(input);
        let mut decoder = decoder.map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error))?;
        decoder.window_log_max(WINDOW_LOG)?;
        Ok(Self(decoder))
    }
}

impl<R: Read> Read for ZstdReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| {
            // The error contains no error code.
            let text = error.to_string();
            if text == zstd_safe::get_error_name(WINDOW_TOO_LARGE) {
                io::Error::new(io::ErrorKind::Unsupported, TOO_LARGE)
            } else if text == zstd_safe::get_error_name(NO_MEMORY) {
                io::Error::new(io::ErrorKind::OutOfMemory, text)
            } else {
                error
            }
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::cast_possible_truncation)]
mod tests {
    use super::*;

    /// Returns a frame that claims a window of 2 to this power, of one block that is not compressed.
    fn frame(window_log: u8) -> Vec<u8> {
        let content = b"JAVA PROFILE 1.0.2";
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, (window_log - 10) << 3];
        frame.extend([(content.len() as u8) << 3 | 1, 0, 0]);
        frame.extend(content);
        frame
    }

    #[test]
    fn a_window_may_be_as_large_as_zstd_itself_allows() {
        let read = |packed: &[u8]| {
            let mut all = Vec::new();
            ZstdReader::new(packed).and_then(|mut reader| reader.read_to_end(&mut all)).map(|_| all)
        };
        assert_eq!(read(&frame(27)).unwrap(), b"JAVA PROFILE 1.0.2");
        for window_log in 28..=31 {
            let error = read(&frame(window_log)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}");
            assert!(error.to_string().contains("128 MiB"), "{error}");
        }
    }
}
