//! Any bytes as what an agent sends to `listen`.

use std::fs;

use super::Place;
use hprof_cli::fuzzing::{ReceivedRecording, receive};
use hprof_index::{Heap, Quiet};
use hprof_input::file::TextFile;
use hprof_parser::sniff::sniff;

/// Bytes of blocks in which it arrives.
const BLOCKS: [usize; 3] = [1, 7, 4096];
/// Inputs that are longer do not arrive byte by byte.
const MAX_BYTEWISE: usize = 20_000;

/// Receives bytes at once and in blocks: the same recordings, each in its file byte by byte; a complete one can be read.
pub fn listen(bytes: &[u8]) {
    let place = Place::new(&[]);
    let whole = received(&place, bytes, bytes.len().max(1), u64::MAX);
    for size in BLOCKS.into_iter().filter(|size| *size > 1 || bytes.len() <= MAX_BYTEWISE) {
        let blocks = received(&place, bytes, size, u64::MAX);
        // What is refused is refused as soon as it can be, by what is known of it then.
        let is_refused = blocks.is_err() && whole.is_err();
        assert!(is_refused || blocks == whole, "blocks of {size} bytes: {blocks:?}, all at once: {whole:?}");
    }
    // Half of it is allowed.
    let half = bytes.len() as u64 / 2;
    if let Ok(cut) = received(&place, bytes, 4096, half) {
        assert!(cut.bytes <= half && cut.wrong.is_some(), "{cut:?}");
    }
    let Ok(whole) = whole else { return };
    assert_eq!(whole.bytes, bytes.len() as u64);
    if whole.wrong.is_some() {
        return;
    }
    sniff(bytes);
    fs::write(place.file(), bytes).expect("the temporary directory takes a file");
    let is_text = TextFile::open(&place.file()).is_ok_and(|file| file.is_some());
    assert_eq!(is_text, !whole.is_binary, "another form when it is read");
    if whole.is_binary {
        let heap = Heap::open(&place.file(), &place.options("index"), &Quiet);
        assert!(heap.is_ok(), "a complete recording that does not open: {:?}", heap.err());
    }
}

/// Receives into a directory of its own, and checks the file.
fn received(place: &Place, bytes: &[u8], size: usize, max_bytes: u64) -> Result<ReceivedRecording, String> {
    let dir = tempfile::tempdir_in(place.dir.path()).expect("a temporary directory can be made");
    let blocks = bytes.chunks(size).map(<[u8]>::to_vec).collect();
    let mut received = receive(dir.path(), blocks, max_bytes)?;
    let written = fs::read(&received.file).expect("the recording has a file");
    assert_eq!(written.len() as u64, received.bytes, "another length than that of the file");
    assert!(bytes.starts_with(&written), "other bytes than those that were sent");
    assert_eq!(fs::read_dir(dir.path()).map(Iterator::count).ok(), Some(1), "another file");
    // Directories differ.
    received.file = received.file.file_name().map(Into::into).unwrap_or_default();
    Ok(received)
}
