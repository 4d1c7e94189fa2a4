//! A dump that is being opened: its file, its bytes, the directories of its index, and its summary.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::dump_form::DumpForm;
use super::error::Error;
use super::options::Options;
use super::summary_file;
use super::unpack::{find_unpacked, unpack};
use crate::model::summary::Summary;
use crate::objects::gc_roots::Roots;
use crate::records::error::ScanError;
use crate::records::source::DumpBytes;
use crate::scan::build_summary::{self, BuiltSummary};
use crate::scan::sample;
use crate::storage::allowance::Allowance;
use crate::storage::memory;
use crate::storage::private_dir::is_distrust;
use crate::storage::store::Stage;
use crate::storage::store::directory::{IndexDirectories, IndexDirectory, not_used};
use crate::storage::store::format::{FileKey, StageFile, Unusable};
use crate::storage::store::identity::Identity;
use crate::storage::store::lock::Lock;
use hprof_input::file::{Compression, MappedFile, TextFile};
use hprof_input::progress::Progress;
use hprof_parser::sniff::{self, FileKind};
use hprof_parser::{FormatError, Header};

/// Message of a process that waits for the lock.
const WAITING: &str = "waiting for another process that is reading this dump";

/// Returns the dump and heap dump that the stage's file must belong to.
fn key(identity: Identity, options: &Options, stage: Stage) -> FileKey {
    // All heap dumps of a file are unpacked together.
    let heap_dump = match (stage, options.heap_dump) {
        (Stage::Unpacked, _) | (_, None) => 0,
        // No heap dump has that number, so no file of it may match.
        (_, Some(0)) => u32::MAX,
        (_, Some(number)) => number,
    };
    FileKey { stage, identity, heap_dump }
}

/// Time at which the checksums of an index are verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verification {
    /// On opening, header and section table of each file; blocks when they are read.
    WhenRead,
    /// On opening, everything, because damage was found.
    OnOpen,
}

/// A directory that no index can be written to, with the reason.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", dir.display())]
pub(crate) struct NotWritable {
    /// Not always the first directory: a later one may have held the lock.
    dir: PathBuf,
    error: std::io::Error,
}

impl NotWritable {
    fn new(dir: &Path, error: std::io::Error) -> Self {
        Self { dir: dir.to_owned(), error }
    }
}

impl From<NotWritable> for Error {
    fn from(NotWritable { dir, error }: NotWritable) -> Self {
        Self::WriteIndex { dir, error }
    }
}

/// A dump that is being opened.
#[derive(Debug)]
pub(crate) struct Opening {
    /// Path as given.
    pub(crate) dump: MappedFile,
    pub(crate) form: DumpForm,
    identity: Identity,
    pub(crate) options: Options,
    pub(crate) directories: IndexDirectories,
    /// Unpacked bytes of a compressed dump, once they are needed, with the error that ended them early.
    unpacked: OnceLock<(MappedFile, Option<String>)>,
    verification: Verification,
    pub(crate) notes: Mutex<Vec<String>>,
    /// Unpacked copy that was created and remains: path and bytes.
    pub(crate) kept_copy: OnceLock<(PathBuf, u64)>,
}

impl Opening {
    /// Opens the file, detects its format, and reads the summary if there is one.
    pub(crate) fn start(
        path: &Path,
        options: &Options,
        verification: Verification,
    ) -> Result<(Self, Option<Summary>), Error> {
        let dump = MappedFile::open(path)?;
        let bytes = dump.bytes();
        let form = match (TextFile::from_map(&dump), Compression::detect(bytes)) {
            (Some(text), _) => DumpForm::Text(text),
            (None, None) => {
                Header::parse(bytes).map_err(|error| format_error(path, bytes, error))?;
                DumpForm::Plain
            }
            // The contents of an archive are known once it is unpacked.
            (None, Some(compression)) if compression.is_archive() => DumpForm::Compressed(compression),
            (None, Some(compression)) => {
                let (start, error) = compression.peek(bytes, 4096);
                let looks = sniff::sniff(&start);
                if looks != FileKind::Hprof {
                    let looks = if start.is_empty() { None } else { Some(looks) };
                    return Err(Error::NotInside { path: path.to_owned(), compression, looks, error });
                }
                DumpForm::Compressed(compression)
            }
        };
        let opening = Self {
            identity: Identity::from_dump(&dump),
            directories: IndexDirectories::for_dump(path, options.index_dir.as_deref()),
            options: options.clone(),
            unpacked: OnceLock::new(),
            verification,
            notes: Mutex::default(),
            kept_copy: OnceLock::new(),
            dump,
            form,
        };
        let summary = opening.read(Stage::Summary, summary_file::read);
        Ok((opening, summary))
    }

    /// Returns the dump and heap dump that the stage's file must belong to.
    pub(crate) fn key(&self, stage: Stage) -> FileKey {
        key(self.identity, &self.options, stage)
    }

    /// Returns `true` if the dump needs no unpacking, or was unpacked. Checks the length only: the bytes
    /// are checked when they are used.
    pub(crate) fn is_unpacked(&self) -> bool {
        self.form.is_plain() || self.directories.read(&self.key(Stage::Unpacked), find_unpacked).0.is_some()
    }

    /// Adds a note for the user.
    pub(crate) fn note(&self, note: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Reads a stage from the index, if a valid file exists.
    pub(crate) fn read<T>(
        &self,
        stage: Stage,
        read: impl Fn(&StageFile) -> Result<T, Unusable>,
    ) -> Option<T> {
        let (found, notes) = self.directories.read(&self.key(stage), |file, _| {
            if self.verification == Verification::OnOpen {
                file.verify()?;
            }
            read(file)
        });
        notes.into_iter().for_each(|note| self.note(note));
        found
    }

    /// Returns the bytes of the dump: unpacked if it is compressed, converted if it is a text.
    pub(crate) fn bytes(&self, progress: &dyn Progress) -> Result<&[u8], Error> {
        if !self.form.is_plain() && self.unpacked.get().is_none() {
            let locked = self.directories.writable().ok().and_then(|directory| {
                directory.exposure().into_iter().for_each(|exposure| self.note(exposure.to_string()));
                let locked = lock(directory, progress);
                locked.map_err(|error| self.note(format!("the unpacked copy is not saved: {error}"))).ok()
            });
            return self.unpacked_bytes(locked.as_ref().map(|(directory, _)| directory), progress);
        }
        self.unpacked_bytes(None, progress)
    }

    /// Returns the bytes of the dump like [`Opening::bytes`]. The lock of `directory` must be held.
    fn unpacked_bytes(
        &self,
        directory: Option<&IndexDirectory>,
        progress: &dyn Progress,
    ) -> Result<&[u8], Error> {
        if self.form.is_plain() {
            return Ok(self.dump.bytes());
        }
        if self.unpacked.get().is_none() {
            let key = self.key(Stage::Unpacked);
            let found = unpack(&self.dump, &self.form, &key, &self.directories, directory, progress)?;
            if found.kept && directory.is_some_and(|directory| directory.is_kept) {
                let _ = self.kept_copy.set((found.map.path().to_owned(), found.map.stamp().len));
            }
            found.note.into_iter().for_each(|note| self.note(note));
            let _ = self.unpacked.set((found.map, found.error));
        }
        Ok(self.unpacked.get().map_or(&[], |(map, _)| map.bytes()))
    }

    /// Returns the dump to be read. The lock of `directory` must be held.
    pub(crate) fn source(
        &self,
        directory: Option<&IndexDirectory>,
        progress: &dyn Progress,
    ) -> Result<DumpBytes<'_>, Error> {
        let bytes = self.unpacked_bytes(directory, progress)?;
        let unpacked = self.unpacked.get();
        unpacked.map_or(&self.dump, |(map, _)| map).will_scan();
        let header = Header::parse(bytes).map_err(|error| format_error(self.dump.path(), bytes, error))?;
        let packed_error = unpacked.and_then(|(_, error)| error.as_deref());
        let memory = memory::available(self.options.memory_bytes);
        Ok(DumpBytes { bytes, header, compression: self.form.compression(), memory, packed_error })
    }

    /// Returns the size of the unpacked dump, and an estimate of its number of objects if requested.
    pub(crate) fn objects_about(&self, ask: bool, progress: &dyn Progress) -> Result<(u64, u64), Error> {
        if !ask && self.form.is_plain() {
            return Ok((self.dump.bytes().len() as u64, 0));
        }
        self.bytes(progress)?;
        let source = self.source(None, progress)?;
        let objects = if ask {
            sample::objects(&source, self.options.heap_dump).map_err(|error| self.scan_error(error))?
        } else {
            0
        };
        Ok((source.bytes.len() as u64, objects))
    }

    fn scan_error(&self, error: ScanError) -> Error {
        let path = self.dump.path().to_owned();
        match error {
            ScanError::NoSuchHeapDump(error) => Error::NoSuchHeapDump { path, error },
            ScanError::NoMemory(error) => Error::NoMemory { path, error },
        }
    }

    /// Scans the dump and builds its summary.
    pub(crate) fn scan(
        &self,
        source: &DumpBytes<'_>,
        collect_ids: bool,
        progress: &dyn Progress,
    ) -> Result<BuiltSummary, Error> {
        build_summary::build(source, self.options.heap_dump, collect_ids, progress)
            .map_err(|error| self.scan_error(error))
    }

    /// Refuses a dump with so many roots that their tables exceed the available memory.
    pub(crate) fn check_roots(&self, summary: &Summary) -> Result<(), Error> {
        let bytes = Roots::bytes(summary);
        let allowance = Allowance::new(memory::available(self.options.memory_bytes));
        allowance.take(bytes).map_err(|error| self.scan_error(error.into()))
    }

    /// Returns an error if the dump has changed.
    pub(crate) fn check_unchanged(&self) -> Result<(), Error> {
        if self.dump.is_unchanged() { Ok(()) } else { Err(Error::from_change(&self.dump)) }
    }

    /// Locks a directory that can be written to. Adds a note if it is not the first one.
    pub(crate) fn directory(&self, progress: &dyn Progress) -> Result<(IndexDirectory, Lock), NotWritable> {
        let first = self.directories.first();
        let mut directory = self.directories.writable().map_err(|error| NotWritable::new(first, error))?;
        let passed_over = directory.passed_over.take();
        let distrust = passed_over.as_ref().filter(|why| is_distrust(why));
        let distrust = distrust.map(|why| not_used(first, why));
        let exposure = directory.exposure();
        let locked = lock(directory, progress);
        if let (Ok(_), Some(exposure)) = (&locked, exposure) {
            self.note(exposure.to_string());
        }
        match (&locked, distrust) {
            (Ok((directory, _)), Some(distrust)) => {
                self.note(format!("{distrust}; the index is in {}", directory.path().display()));
            }
            (Ok((directory, _)), None) if passed_over.is_some() => {
                let place = directory.path().display();
                self.note(format!("the index is in {place}: the directory of the dump is not writable"));
            }
            (Err(_), Some(distrust)) => self.note(distrust),
            _ => {}
        }
        locked
    }

    /// Locks a directory like [`Opening::directory`]; if none can be written to, creates one that is removed when this process
    /// ends.
    pub(crate) fn any_directory(
        &self,
        progress: &dyn Progress,
    ) -> Result<(IndexDirectory, Lock), NotWritable> {
        self.directory(progress).or_else(|error| {
            let temporary = self.directories.temporary().ok();
            let Some((directory, lock)) = temporary.and_then(|directory| lock(directory, progress).ok())
            else {
                return Err(error);
            };
            let place = directory.path().display();
            self.note(format!(
                "the index is not saved: {error}; it is built in {place} and removed afterwards"
            ));
            Ok((directory, lock))
        })
    }

    /// Reads the dump and writes its summary. Returns `true` with it if it was built now.
    pub(crate) fn build_summary(&self, progress: &dyn Progress) -> Result<(Summary, bool), Error> {
        let no_index = |error: NotWritable| self.note(format!("the index is not saved: {error}"));
        let locked = self.directory(progress).map_err(no_index).ok();
        let directory = locked.as_ref().map(|(directory, _)| directory);
        // Another process may have built it while this one waited.
        if let Some(summary) = self.read(Stage::Summary, summary_file::read) {
            return Ok((summary, false));
        }
        let source = self.source(directory, progress)?;
        let summary = self.scan(&source, false, progress)?.summary;
        self.check_unchanged()?;
        if let Some(directory) = directory {
            let written = self.write_summary(directory, &summary);
            written.unwrap_or_else(|error| no_index(NotWritable::new(directory.path(), error)));
        }
        Ok((summary, true))
    }

    /// Writes the summary to the index.
    pub(crate) fn write_summary(&self, directory: &IndexDirectory, summary: &Summary) -> std::io::Result<()> {
        directory.write(&self.key(Stage::Summary), summary_file::SECTIONS, |writer| {
            summary_file::write(summary, writer)
        })
    }
}

/// Locks an open directory of the index, with a message while another process holds the lock.
fn lock(
    mut directory: IndexDirectory,
    progress: &dyn Progress,
) -> Result<(IndexDirectory, Lock), NotWritable> {
    match directory.lock(|| progress.wait(WAITING)) {
        Ok(lock) => Ok((directory, lock)),
        Err(error) => Err(NotWritable::new(directory.path(), error)),
    }
}

fn format_error(path: &Path, bytes: &[u8], error: FormatError) -> Error {
    Error::Format { path: path.to_owned(), looks: sniff::sniff(bytes), error }
}
