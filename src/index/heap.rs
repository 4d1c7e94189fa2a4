//! Opening a dump: from its index, or by reading it and leaving an index behind.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::hprof::input::{Compression, Mapped, OpenError};
use crate::hprof::sniff::{self, Looks};
use crate::hprof::{FormatError, FormatErrorKind, Header};

use super::address::{AddressIndex, TooManyObjects};
use super::build::{self, Ids, NoSuchHeapDump, Source};
use super::object_graph::ObjectGraph;
use super::objects::{self, Objects};
use super::progress::Progress;
use super::store::Stage;
use super::store::format::{Key, StageFile, Unusable};
use super::store::identity::Identity;
use super::store::place::{self, Places};
use super::summary::Summary;
use super::unpack::{find_unpacked, read_unpacked, unpack};
use super::{objects_file, summary_file};

/// What a process says that waits for the lock.
const WAITING: &str = "waiting for another process that reads this dump";

/// Why a dump cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file is no dump.
    #[error("{}: {error}", path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// What it looks like.
        looks: Looks,
        /// What is wrong.
        error: FormatError,
    },
    /// The file is compressed, and what is in it is no dump.
    #[error("{}: {} of something that is not a heap dump: {}", path.display(), compression.name(), looks.describe())]
    NotInside {
        /// Which file.
        path: PathBuf,
        /// How it is compressed.
        compression: Compression,
        /// What is in it.
        looks: Looks,
    },
    /// The heap dump asked for is not in the file.
    #[error("{}: {error}", path.display())]
    NoSuchHeapDump {
        /// Which file.
        path: PathBuf,
        /// Which heap dump.
        error: NoSuchHeapDump,
    },
    /// The file changed while it was read.
    #[error("{}: the file changed while it was read", .0.display())]
    Changed(PathBuf),
    /// A compressed dump could not be unpacked.
    #[error("cannot unpack {} into {}: {error}", path.display(), into.display())]
    Unpack {
        /// Which file.
        path: PathBuf,
        /// Into which directory.
        into: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The index cannot be written.
    #[error("cannot write the index {}: {error}", dir.display())]
    WriteIndex {
        /// Where.
        dir: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// More objects than can be indexed.
    #[error("{}: {error}", path.display())]
    TooManyObjects {
        /// Which file.
        path: PathBuf,
        /// How many.
        error: TooManyObjects,
    },
}

impl Error {
    /// What to do next, in one line.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::Open(OpenError::Directory(_)) => "give the dump's file, not the directory that holds it",
            Self::Open(OpenError::NotAFile(_)) => {
                "save the dump to a file first: it is mapped, and read more than once"
            }
            Self::Open(OpenError::Io { error, .. }) => match error.kind() {
                io::ErrorKind::NotFound => "check the path",
                io::ErrorKind::PermissionDenied => {
                    "JVMs write dumps that only their own user may read: run as that user, or chmod the file"
                }
                _ => return None,
            },
            Self::Format { looks, error, .. } => match error.kind() {
                FormatErrorKind::Empty => {
                    "the JVM has not written it yet, or its disk was full: make the dump again"
                }
                FormatErrorKind::HeaderCut | FormatErrorKind::IdSize(_) => {
                    "the file is cut or damaged at its start: copy it or make it again"
                }
                _ => looks.advice(),
            },
            Self::NotInside { looks, .. } => looks.advice(),
            Self::NoSuchHeapDump { .. } => "leave out --dump to read the last one",
            Self::Changed(_) => "wait until the JVM has finished writing the dump, then run this again",
            Self::Unpack { .. } => "give a directory with enough space by --index-dir, or unpack it yourself",
            Self::WriteIndex { .. } => "give a directory that you may write to by --index-dir",
            Self::TooManyObjects { .. } => "histo and info work on it; commands that need an index do not",
        })
    }
}

/// How to open a dump.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where indexes lie, if not beside the dump.
    pub index_dir: Option<PathBuf>,
    /// Which of several heap dumps, from 1; the last by default.
    pub heap_dump: Option<u32>,
}

/// A dump, and what is known of it.
#[derive(Debug)]
pub struct Heap {
    /// The file as it was given.
    dump: Mapped,
    compression: Option<Compression>,
    identity: Identity,
    options: Options,
    places: Places,
    summary: Summary,
    /// Whether the summary was built by this process.
    fresh: bool,
    /// The unpacked bytes of a compressed dump, once they are needed.
    unpacked: OnceLock<Mapped>,
    notes: Mutex<Vec<String>>,
}

impl Heap {
    /// Opens a dump: reads its summary from the index, or reads the dump and writes the summary.
    ///
    /// # Errors
    /// [`Error`]: the file is not there, is no dump, or changes while it is read. An index that cannot be written is no
    /// error but a note.
    pub fn open(path: &Path, options: &Options, progress: &dyn Progress) -> Result<Self, Error> {
        let (opening, known) = Opening::start(path, options)?;
        match known {
            Some(summary) => Ok(opening.into_heap(summary, false, OnceLock::new())),
            None => Ok(opening.build(false, progress)?.0),
        }
    }

    /// Opens a dump and builds every stage of its index that is not there.
    ///
    /// # Errors
    /// As [`Heap::open`]; also [`Error::WriteIndex`] and [`Error::TooManyObjects`].
    pub fn open_indexed(
        path: &Path,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<(Self, Objects), Error> {
        let (opening, known) = Opening::start(path, options)?;
        let read = opening.read(Stage::Objects, objects_file::read);
        match (known, read) {
            (Some(summary), Some(objects)) if opening.is_unpacked() => {
                Ok((opening.into_heap(summary, false, OnceLock::new()), objects))
            }
            _ => {
                let (heap, objects) = opening.build(true, progress)?;
                match objects {
                    Some(objects) => Ok((heap, objects)),
                    None => Err(Error::Changed(path.to_owned())),
                }
            }
        }
    }

    /// Opens a dump with its graph: every stage is taken from the index, or built and left there.
    ///
    /// Before an answer is given, look whether [`ObjectGraph::is_damaged`]; if so, call
    /// [`Heap::remove_index`] and open again.
    ///
    /// # Errors
    /// As [`Heap::open_indexed`].
    pub fn open_graph(
        path: &Path,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<(Self, ObjectGraph), Error> {
        let (heap, objects) = Self::open_indexed(path, options, progress)?;
        let graph = ObjectGraph::new(&heap.summary, objects, Default::default(), Default::default(), Vec::new());
        Ok((heap, graph))
    }

    /// What is known of the dump without looking at single objects.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The file as it was given.
    pub fn path(&self) -> &Path {
        self.dump.path()
    }

    /// Length of the file as it was given.
    pub fn file_bytes(&self) -> u64 {
        self.dump.stamp().len
    }

    /// How the file is compressed.
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Whether the summary was built by this process, not read from an index.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// What the user should know about index and file, apart from the answer.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The bytes of the dump, unpacked if it is compressed.
    ///
    /// # Errors
    /// [`Error::Unpack`].
    pub fn bytes(&self, progress: &dyn Progress) -> Result<&[u8], Error> {
        let Some(compression) = self.compression else {
            return Ok(self.dump.bytes());
        };
        if self.unpacked.get().is_none() {
            let place = self.places.writable().ok();
            let _lock = place.as_ref().map(|place| place.lock(|| progress.begin(WAITING, 0)));
            let key = key(self.identity, &self.options, Stage::Unpacked);
            let unpacked = unpack(&self.dump, compression, &key, &self.places, place.as_ref(), progress)?;
            let _ = self.unpacked.set(unpacked.map);
        }
        Ok(self.unpacked.get().map_or(&[], Mapped::bytes))
    }

    /// The files of the index: stage, path, bytes, and what is wrong with it if something is.
    ///
    /// Reads and checks all of each file.
    pub fn verify_index(path: &Path, options: &Options) -> Result<Vec<StageReport>, Error> {
        let (opening, _) = Opening::start(path, options)?;
        let mut reports = Vec::new();
        for stage in Stage::ALL {
            let key = opening.key(stage);
            if stage == Stage::Unpacked && opening.compression.is_none() {
                continue;
            }
            let files = opening.places.existing().map(|dir| (dir, dir.join(place::file_name(&key))));
            let mut found: Vec<StageReport> = (files.filter(|(_, file)| file.exists()))
                .map(|(dir, file)| StageReport {
                    stage,
                    bytes: stage_bytes(stage, dir, &file),
                    state: check(&opening, stage, dir, &file),
                    file,
                })
                .collect();
            // A good one is what commands use, wherever it lies.
            found.sort_by_key(|report| report.state != State::Good);
            reports.push(found.into_iter().next().unwrap_or_else(|| StageReport {
                stage,
                file: opening.places.first().join(place::file_name(&key)),
                bytes: 0,
                state: State::Missing,
            }));
        }
        Ok(reports)
    }

    /// Removes the index of a dump, wherever it lies: the directories, and the bytes freed in each.
    ///
    /// The dump itself need not exist any more.
    ///
    /// # Errors
    /// [`Error::WriteIndex`] if something cannot be removed.
    pub fn remove_index(path: &Path, options: &Options) -> Result<Vec<(PathBuf, u64)>, Error> {
        let places = Places::of(path, options.index_dir.as_deref());
        let mut removed = Vec::new();
        let mut failed = None;
        for dir in places.existing() {
            match place::remove(dir) {
                Ok(freed) => removed.push((dir.to_owned(), freed)),
                Err(error) => failed = failed.or(Some(Error::WriteIndex { dir: dir.to_owned(), error })),
            }
        }
        failed.map_or(Ok(removed), Err)
    }
}

/// What the stage's file has to belong to.
fn key(identity: Identity, options: &Options, stage: Stage) -> Key {
    // All heap dumps of a file are unpacked at once.
    let heap_dump = match (stage, options.heap_dump) {
        (Stage::Unpacked, _) | (_, None) => 0,
        // There is none of that number, so no file of it may be found.
        (_, Some(0)) => u32::MAX,
        (_, Some(number)) => number,
    };
    Key { stage, identity, heap_dump }
}

/// Bytes that a stage takes on disk.
fn stage_bytes(stage: Stage, dir: &Path, file: &Path) -> u64 {
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let data = if stage == Stage::Unpacked { bytes(&dir.join(place::UNPACKED_DATA)) } else { 0 };
    bytes(file).saturating_add(data)
}

/// Checks all of a stage.
fn check(opening: &Opening, stage: Stage, dir: &Path, file: &Path) -> State {
    let opened = Mapped::open(file).map_err(|_| Unusable::Damaged);
    let checked = opened.and_then(|map| StageFile::open(map, &opening.key(stage))).and_then(|file| {
        file.verify()?;
        if stage == Stage::Unpacked { read_unpacked(&file, dir).map(drop) } else { Ok(()) }
    });
    match checked {
        Ok(()) => State::Good,
        Err(Unusable::Stale) => State::Stale,
        Err(Unusable::Foreign) => State::Foreign,
        Err(Unusable::Damaged) => State::Damaged,
    }
}

/// What [`Heap::verify_index`] found of one stage.
#[derive(Debug, Clone)]
pub struct StageReport {
    /// Which stage.
    pub stage: Stage,
    /// Its file.
    pub file: PathBuf,
    /// Length of the file.
    pub bytes: u64,
    /// Whether it can be used.
    pub state: State,
}

/// Whether a stage's file can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is there and right.
    Good,
    /// It is not there.
    Missing,
    /// It belongs to another dump, or the dump has changed.
    Stale,
    /// It is no index file of this version.
    Foreign,
    /// It is cut, or a checksum is wrong.
    Damaged,
}

/// A dump that is being opened.
struct Opening {
    dump: Mapped,
    compression: Option<Compression>,
    identity: Identity,
    options: Options,
    places: Places,
    notes: Mutex<Vec<String>>,
}

impl Opening {
    /// Opens the file, finds out what it is, and reads the summary if there is one.
    fn start(path: &Path, options: &Options) -> Result<(Self, Option<Summary>), Error> {
        let dump = Mapped::open(path)?;
        let bytes = dump.bytes();
        let compression = Compression::of(bytes);
        match compression {
            None => drop(Header::parse(bytes).map_err(|error| format_error(path, bytes, error))?),
            Some(compression) => {
                let looks = sniff::sniff(&compression.peek(bytes, 4096));
                if looks != Looks::Hprof {
                    return Err(Error::NotInside { path: path.to_owned(), compression, looks });
                }
            }
        }
        let opening = Self {
            identity: Identity::of(&dump),
            places: Places::of(path, options.index_dir.as_deref()),
            options: options.clone(),
            notes: Mutex::default(),
            dump,
            compression,
        };
        let summary = opening.read(Stage::Summary, summary_file::read);
        Ok((opening, summary))
    }

    fn key(&self, stage: Stage) -> Key {
        key(self.identity, &self.options, stage)
    }

    /// Whether the dump needs no unpacking, or was unpacked. Looks at the length only: the bytes are checked by whoever
    /// takes them.
    fn is_unpacked(&self) -> bool {
        self.compression.is_none() || self.places.read(&self.key(Stage::Unpacked), find_unpacked).0.is_some()
    }

    fn note(&self, note: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Reads a stage from the index, if a good one is there.
    fn read<T>(&self, stage: Stage, read: impl Fn(&StageFile) -> Result<T, Unusable>) -> Option<T> {
        let (found, notes) = self.places.read(&self.key(stage), |file, _| read(file));
        notes.into_iter().for_each(|note| self.note(note));
        found
    }

    fn into_heap(self, summary: Summary, fresh: bool, unpacked: OnceLock<Mapped>) -> Heap {
        let Self { dump, compression, identity, options, places, notes } = self;
        Heap { dump, compression, identity, options, places, summary, fresh, unpacked, notes }
    }

    /// Reads the dump and writes the index: the summary, and the objects if they are asked for.
    fn build(self, objects: bool, progress: &dyn Progress) -> Result<(Heap, Option<Objects>), Error> {
        let place = match self.places.writable() {
            Ok(place) => Some(place),
            Err(error) if objects => {
                return Err(Error::WriteIndex { dir: self.places.first().to_owned(), error });
            }
            Err(error) => {
                let dir = self.places.first().display();
                self.note(format!("no index is kept: {dir}: {error}"));
                None
            }
        };
        if let Some(place) = place.as_ref().filter(|place| !place.is_first) {
            self.note(format!(
                "the index lies in {}: beside the dump is no place to write",
                place.dir.display()
            ));
        }
        let path = self.dump.path().to_owned();
        let _lock = place.as_ref().map(|place| place.lock(|| progress.begin(WAITING, 0)));
        // Another process may have built it while this one waited.
        let summary = self.read(Stage::Summary, summary_file::read);
        let built = if objects { self.read(Stage::Objects, objects_file::read) } else { None };
        if let (Some(_), true) = (&summary, !objects || (built.is_some() && self.is_unpacked())) {
            return Ok((self.into_heap_of(summary, false)?, built));
        }

        let unpacked = OnceLock::new();
        let mut cut = None;
        if let Some(compression) = self.compression {
            let key = self.key(Stage::Unpacked);
            let found = unpack(&self.dump, compression, &key, &self.places, place.as_ref(), progress)?;
            cut = found.error;
            if found.kept {
                let (kept, bytes) = (found.map.path().display(), found.map.stamp().len);
                self.note(format!(
                    "unpacked into {kept} ({bytes} bytes); `hprof-cli index --remove` frees that"
                ));
            }
            let _ = unpacked.set(found.map);
        }
        let dump = unpacked.get().unwrap_or(&self.dump);
        dump.will_scan();
        let bytes = dump.bytes();
        let header = Header::parse(bytes).map_err(|error| format_error(&path, bytes, error))?;
        let source = Source { bytes, header, compression: self.compression, packed_error: cut.as_deref() };
        let built = build::build(&source, self.options.heap_dump, objects, progress)
            .map_err(|error| Error::NoSuchHeapDump { path: path.clone(), error })?;
        let placed = if objects {
            let too_many = |error| Error::TooManyObjects { path: path.clone(), error };
            let addresses = match built.ids {
                Ids::Set(set) => AddressIndex::of_set(set),
                Ids::List(ids) => AddressIndex::of_list(ids),
                Ids::Unknown => AddressIndex::of_list(Vec::new()),
            };
            let addresses = addresses.map_err(too_many)?;
            Some(objects::build(&source, &built.summary, addresses, &built.plan, progress))
        } else {
            None
        };
        if !self.dump.is_unchanged() {
            return Err(Error::Changed(path));
        }
        if let Some(place) = &place {
            let written = place
                .write(&self.key(Stage::Summary), summary_file::SECTIONS, |writer| {
                    summary_file::write(&built.summary, writer)
                })
                .and_then(|()| match &placed {
                    Some(objects) => {
                        place.write(&self.key(Stage::Objects), objects_file::SECTIONS, |writer| {
                            objects_file::write(objects, writer)
                        })
                    }
                    None => Ok(()),
                });
            match written {
                Ok(()) => {}
                Err(error) if objects => {
                    return Err(Error::WriteIndex { dir: place.dir.clone(), error });
                }
                Err(error) => self.note(format!("no index is kept: {}: {error}", place.dir.display())),
            }
        }
        Ok((self.into_heap(built.summary, true, unpacked), placed))
    }

    fn into_heap_of(self, summary: Option<Summary>, fresh: bool) -> Result<Heap, Error> {
        match summary {
            Some(summary) => Ok(self.into_heap(summary, fresh, OnceLock::new())),
            None => Err(Error::Changed(self.dump.path().to_owned())),
        }
    }
}

fn format_error(path: &Path, bytes: &[u8], error: FormatError) -> Error {
    Error::Format { path: path.to_owned(), looks: sniff::sniff(bytes), error }
}
