//! Any bytes as a file of the index.

use std::fs;
use std::path::PathBuf;

use xxhash_rust::xxh3::xxh3_64;

use super::answers::{Sum, of_graph, of_summary};
use super::{DUMP, Place, with_threads};
use hprof_index::open::heap::StageState;
use hprof_index::storage::checked_column::BLOCK_BYTES;
use hprof_index::storage::store::Stage;
use hprof_index::{Heap, Quiet};

// The layout of a file's head, as docs/index-format.md has it.
const HEADER: usize = 72;
const STAGE: usize = 12;
const LENGTH: usize = 16;
const IDENTITY: std::ops::Range<usize> = 24..52;
const SECTIONS: usize = 52;
const TABLE_HASH: usize = 56;
const HEADER_HASH: usize = 64;
const ROW: usize = 32;

/// Puts bytes into the place of a file of the index of a small dump, twice, and opens the dump.
///
/// As they are: then what the dump says must be right, or the index is known to be damaged. And with all lengths and
/// checksums set right, so that what reads the sections sees them: then there has to be an answer.
pub fn index(bytes: &[u8]) {
    let stages = [Stage::Summary, Stage::Objects, Stage::References, Stage::Referrers, Stage::Dominators];
    let number = bytes.get(STAGE).copied().unwrap_or(0);
    let stage = stages.iter().find(|stage| **stage as u32 == u32::from(number)).unwrap_or(&Stage::Summary);
    RIGHT.with(|right| replaced(right, *stage, bytes));
}

/// The dump, its index, and what it says: made once, as most of the time would go into that.
struct Right {
    place: Place,
    dir: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
    sum: u64,
}

thread_local! {
    static RIGHT: Right = {
        let place = Place::new(DUMP);
        let (sum, is_damaged) = with_threads(false, || open(&place)).expect("the dump opens");
        assert!(!is_damaged, "an index that is damaged right after it was built");
        let dir = place.index("index");
        let entries = fs::read_dir(&dir).expect("an index was written").flatten();
        let files = entries.map(|entry| entry.path()).map(|file| {
            let bytes = fs::read(&file).expect("the stage was written");
            (file, bytes)
        });
        let files = files.collect();
        Right { place, dir, files, sum }
    };
}

impl Right {
    /// Writes the index as it was.
    fn restore(&self) {
        // Whatever the last input left there.
        fs::remove_dir_all(&self.dir).expect("the index can be removed");
        fs::create_dir(&self.dir).expect("the temporary directory takes a directory");
        for (file, bytes) in &self.files {
            fs::write(file, bytes).expect("the temporary directory takes a file");
        }
    }
}

fn replaced(right: &Right, stage: Stage, bytes: &[u8]) {
    right.restore();
    let place = &right.place;
    let file = right.dir.join(stage.name());
    let mut good = fs::read(&file).expect("the stage was written");

    fs::write(&file, bytes).expect("the temporary directory takes a file");
    let found = with_threads(false, || open(place));
    assert!(
        found.is_some_and(|(sum, is_damaged)| is_damaged || sum == right.sum),
        "a wrong answer, and no mark"
    );

    seal(&mut good, bytes);
    fs::write(&file, &good).expect("the temporary directory takes a file");
    let reports = Heap::verify_index(&place.file(), &place.options("index"), true);
    let report = reports.ok().and_then(|reports| reports.into_iter().find(|report| report.stage == stage));
    let sealed = report.map(|report| report.state);
    assert!(
        matches!(sealed, Some(StageState::Good | StageState::Damaged | StageState::Foreign)),
        "{sealed:?}"
    );
    // The message cannot be predicted, but there must be one.
    assert!(with_threads(false, || open(place)).is_some(), "an index that stands in the way");
}

/// Opens the dump and asks everything; `None` if it does not open.
fn open(place: &Place) -> Option<(u64, bool)> {
    let (heap, graph) = Heap::open_graph(&place.file(), &place.options("index"), &Quiet).ok()?;
    let mut sum = Sum::of_lies();
    of_summary(&heap, &mut sum);
    of_graph(&heap, &graph, &mut sum);
    Some((sum.end(), graph.is_damaged()))
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..at.saturating_add(8)).and_then(|bytes| bytes.try_into().ok());
    u64::from_le_bytes(bytes.unwrap_or_default())
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at.saturating_add(value.len())) {
        place.copy_from_slice(value);
    }
}

/// Makes `file` what `bytes` would be as a file of the same dump and stage, with all checksums right.
fn seal(file: &mut Vec<u8>, bytes: &[u8]) {
    let head: Vec<u8> = file.iter().copied().take(HEADER).collect();
    file.clear();
    file.extend_from_slice(bytes);
    file.resize(bytes.len().max(HEADER), 0);
    // Magic, version and stage; and whose it is.
    put(file, 0, head.get(..LENGTH).unwrap_or_default());
    put(file, IDENTITY.start, head.get(IDENTITY).unwrap_or_default());
    let length = file.len() as u64;
    put(file, LENGTH, &length.to_le_bytes());
    let table = file.get(HEADER..).unwrap_or_default();
    let sections = (number(file, SECTIONS) & 0xFF).min(64).min((table.len() / ROW) as u64);
    let [count, ..] = sections.to_le_bytes();
    put(file, SECTIONS, &[count, 0, 0, 0]);
    let sections = usize::try_from(sections).unwrap_or(0);
    for row in (0..sections).map(|section| HEADER + section * ROW) {
        let (start, len) = (number(file, row + 8), number(file, row + 16));
        let range = usize::try_from(start).ok().zip(usize::try_from(len).ok());
        let Some((start, end)) = range.and_then(|(start, len)| Some((start, start.checked_add(len)?))) else {
            continue;
        };
        // The head is hashed last: a section that reaches into it would change what it is hashed from.
        let Some(section) = file.get(start..end).filter(|_| start >= HEADER + sections * ROW) else {
            continue;
        };
        let hashes: Vec<u8> =
            section.chunks(BLOCK_BYTES).flat_map(|block| xxh3_64(block).to_le_bytes()).collect();
        put(file, end, &hashes);
        put(file, row + 24, &xxh3_64(&hashes).to_le_bytes());
    }
    let table = file.get(HEADER..HEADER + sections * ROW).map_or(0, xxh3_64);
    put(file, TABLE_HASH, &table.to_le_bytes());
    let header = file.get(..HEADER_HASH).map_or(0, xxh3_64);
    put(file, HEADER_HASH, &header.to_le_bytes());
}
