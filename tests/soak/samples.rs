//! The samples, unpacked, and where they can be cut.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::kit::mutate::walk::Map;
use crate::run::Expected;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A binary dump.
    Dump,
    /// A text report.
    Text,
    /// A compressed dump, as it is.
    Packed,
}

/// A sample. Its bytes lie in a file, not here: what this process has in memory counts for those that it starts, until
/// they are programs of their own.
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) file: PathBuf,
    pub(crate) len: usize,
    /// Ends of top-level records, and the header's length.
    ends: Vec<usize>,
    header: usize,
    /// From where on its heap dump is known to have an end, which is its last record; the recordings of the agent that
    /// come before may be all there is.
    ends_from: Option<usize>,
    /// Ids of objects, by the end of their records.
    objects: Vec<(usize, u64)>,
}

/// All samples, unpacked into `dir`; the same order each time.
pub(crate) fn all(dir_of_all: &Path) -> Vec<Sample> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let mut all = Vec::new();
    for dir in ["agent", "jdk", "public"] {
        let mut files: Vec<_> =
            fs::read_dir(samples.join(dir)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        // A reader of the README has tried the program on a sample: its index is a directory beside it.
        for file in files.into_iter().filter(|file| file.is_file()) {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            let packed = fs::read(&file).unwrap();
            if let Some(name) = name.strip_suffix(".zst") {
                all.push(Sample::new(
                    dir_of_all,
                    format!("{dir}/{name}"),
                    zstd::decode_all(&packed[..]).unwrap(),
                ));
            } else if let Some(plain) = name.strip_suffix(".gz") {
                let mut bytes = Vec::new();
                flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
                all.push(Sample::new(dir_of_all, format!("{dir}/{plain}"), bytes));
                all.push(Sample::new(dir_of_all, format!("{dir}/{name}"), packed));
            } else if dir == "agent" {
                all.push(Sample::new(dir_of_all, format!("{dir}/{name}"), packed));
            }
        }
    }
    all
}

impl Sample {
    fn new(dir: &Path, name: String, bytes: Vec<u8>) -> Self {
        let kind = if bytes.starts_with(&[0x1F, 0x8B]) {
            Kind::Packed
        } else if Map::of(&bytes).is_some() {
            Kind::Dump
        } else {
            Kind::Text
        };
        let file = dir.join(name.replace('/', "-"));
        fs::write(&file, &bytes).unwrap();
        let len = bytes.len();
        let mut sample =
            Self { name, kind, file, len, ends: Vec::new(), header: 0, ends_from: None, objects: Vec::new() };
        if let Some(map) = sample.map(&bytes) {
            sample.header = map.header;
            let has_end = map.records.last().is_some_and(|last| last.tag == 0x2C);
            let is_recording =
                map.records.iter().any(|spot| matches!(spot.tag, 0x06 | 0x07 | 0x0A | 0x0B | 0x0D | 0x0E));
            let heap = map.records.iter().find(|spot| matches!(spot.tag, 0x0C | 0x1C));
            sample.ends_from =
                heap.filter(|_| has_end).map(|heap| if is_recording { heap.at + 1 } else { 0 });
            sample.ends = map.records.iter().map(|spot| spot.end).collect();
            // Some thousands are enough to choose from.
            let every = (map.inner.len() / 5000).max(1);
            sample.objects = map.objects(&bytes).step_by(every).collect();
        }
        sample
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(&self.file).unwrap()
    }

    /// Returns the positions of its records; computed anew each time, as the map is large.
    pub(crate) fn map(&self, bytes: &[u8]) -> Option<Map> {
        if self.kind == Kind::Dump { Map::of(bytes) } else { None }
    }

    /// Returns the starts of top-level records, and the end; in texts, the starts of lines.
    pub(crate) fn boundaries(&self) -> Vec<usize> {
        match self.kind {
            Kind::Dump => [self.header].into_iter().chain(self.ends.iter().copied()).collect(),
            Kind::Text => {
                let bytes = self.bytes();
                let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
                ends.map(|(at, _)| at + 1).collect()
            }
            Kind::Packed => Vec::new(),
        }
    }

    /// Returns the ends of records in heap dumps.
    pub(crate) fn inner_boundaries(&self) -> Vec<usize> {
        self.map(&self.bytes()).map_or_else(Vec::new, |map| map.inner.iter().map(|spot| spot.end).collect())
    }

    /// An object whose record ends before a place, or the first.
    pub(crate) fn object_before(&self, place: usize) -> u64 {
        let before = self.objects.partition_point(|(end, _)| *end <= place);
        // Any of them, the same each time.
        let chosen = if before == 0 { 0 } else { place.wrapping_mul(2_654_435_761) % before };
        self.objects.get(chosen).map_or(0x1000, |(_, id)| *id)
    }

    /// Returns the expected outcome for the first `cut` bytes.
    pub(crate) fn expected(&self, cut: usize) -> Expected {
        match self.kind {
            Kind::Dump if cut < self.header => Expected::Refused,
            Kind::Dump if self.ends_from.is_some_and(|from| (from..self.len).contains(&cut)) => {
                Expected::Damaged
            }
            // Between two records nobody can see that there were more, but for a missing end.
            Kind::Dump if cut > self.header && self.ends.binary_search(&cut).is_err() => Expected::Damaged,
            Kind::Dump | Kind::Text | Kind::Packed => Expected::Any,
        }
    }
}
