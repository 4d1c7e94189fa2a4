//! Opening a dump: from its index, or by reading the dump and writing an index.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use super::adjacency_file;
use super::dump_form::DumpForm;
use super::error::Error;
use super::estimate::{self, Estimate};
use super::kept_file;
use super::opening::{Opening, Verification};
use super::options::Options;
use super::stages::{self, Purpose, Stages};
use super::tree_file;
use super::unpack::read_unpacked;
use crate::model::dangling::MissingObjects;
use crate::model::summary::Summary;
use crate::objects::object_graph::ObjectGraph;
use crate::storage::free_space::free_bytes;
use crate::storage::memory;
use crate::storage::private_dir::PrivateDir;
use crate::storage::store::Stage;
use crate::storage::store::directory::{self, IndexDirectories};
use crate::storage::store::format::{StageFile, Unusable};
use hprof_input::file::Compression;
use hprof_input::progress::Progress;

/// A dump with its summary.
#[derive(Debug)]
pub struct Heap {
    file: Opening,
    summary: Summary,
    /// `true` if the summary was built by this process.
    fresh: bool,
}

impl Heap {
    /// Opens a dump: reads its summary from the index, or reads the dump and writes the summary.
    ///
    /// # Errors
    /// [`Error`]: the file does not exist, is not a dump, or changes while it is read. An index that
    /// cannot be written is reported as a note, not as an error.
    pub fn open(path: &Path, options: &Options, progress: &dyn Progress) -> Result<Self, Error> {
        let (file, known) = Opening::start(path, options, Verification::WhenRead)?;
        let (summary, fresh) = match known {
            Some(summary) => (summary, false),
            None => file.build_summary(progress)?,
        };
        Ok(Self { file, summary: summary.hiding_values(options.hide_values), fresh })
    }

    /// Opens a dump with its graph: each stage is read from the index, or built and written to it. If no
    /// index can be written, it is built in a temporary directory, which is removed when the `Heap` is
    /// dropped.
    ///
    /// Before using a result, check [`ObjectGraph::is_damaged`]; if it is `true`, call
    /// [`Heap::open_graph_checked`] and compute the result again.
    ///
    /// # Errors
    /// Errors of [`Heap::open`], [`Error::WriteIndex`] and [`Error::TooManyObjects`].
    pub fn open_graph(
        path: &Path,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<(Self, ObjectGraph), Error> {
        Self::open_graph_for(Purpose::Answer, Verification::WhenRead, path, options, progress)
    }

    /// Opens a dump with its graph like [`Heap::open_graph`], but reads and checks the whole index first: damaged stages are
    /// built again.
    ///
    /// # Errors
    /// Errors of [`Heap::open_graph`].
    pub fn open_graph_checked(
        path: &Path,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<(Self, ObjectGraph), Error> {
        Self::open_graph_for(Purpose::Answer, Verification::OnOpen, path, options, progress)
    }

    /// Builds the missing stages of a dump's permanent index, except stored query results ([`Heap::store_result`]).
    ///
    /// # Errors
    /// Errors of [`Heap::open_graph`], and [`Error::WriteIndex`] if no permanent index can be written.
    pub fn build_index(
        path: &Path,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<(Self, ObjectGraph), Error> {
        Self::open_graph_for(Purpose::Index, Verification::WhenRead, path, options, progress)
    }

    fn open_graph_for(
        purpose: Purpose,
        verification: Verification,
        path: &Path,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<(Self, ObjectGraph), Error> {
        let (file, known) = Opening::start(path, options, verification)?;
        let stages = Stages::read(&file).filter(|_| file.is_unpacked());
        let (summary, stages, fresh) = match (known, stages) {
            (Some(summary), Some(stages)) => {
                file.directories.sweep_idle();
                (summary, stages, false)
            }
            (known, _) => stages::build(&file, known, purpose, progress)?,
        };
        file.check_roots(&summary)?;
        let graph = stages.into_graph(&file, &summary);
        Ok((Self { file, summary: summary.hiding_values(options.hide_values), fresh }, graph))
    }

    /// Returns `true` if values of objects are hidden ([`Options::hide_values`]). Computations do not
    /// depend on it; it is checked where a label, a name or a key becomes part of a result.
    pub fn hides_values(&self) -> bool {
        self.summary.hides_values()
    }

    /// Checks whether the dump has been written to since it was opened: a result read from it meanwhile
    /// belongs to neither version. A dump that was replaced by another file, or removed, is still read as
    /// it was.
    ///
    /// # Errors
    /// [`Error::Changed`] or [`Error::Growing`].
    pub fn check_unwritten(&self) -> Result<(), Error> {
        if self.file.dump.was_written() { Err(Error::from_change(&self.file.dump)) } else { Ok(()) }
    }

    /// Estimates the resources for building the index of a dump. Reads part of the dump and writes
    /// nothing, except that a compressed dump is unpacked first.
    ///
    /// # Errors
    /// Errors of [`Heap::open`].
    pub fn estimate(path: &Path, options: &Options, progress: &dyn Progress) -> Result<Estimate, Error> {
        let (file, known) = Opening::start(path, options, Verification::WhenRead)?;
        let is_built = Stages::read(&file).is_some() && file.is_unpacked();
        let (bytes, sampled) = file.objects_about(known.is_none(), progress)?;
        let dir = file.directories.first_usable();
        // The nearest directory that already exists.
        let there = dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("."));
        let facts = estimate::DumpFacts {
            objects: known.as_ref().map_or(sampled, count),
            objects_exact: known.is_some(),
            dump_bytes: bytes,
            memory_available: memory::available(options.memory_bytes),
            disk_free_bytes: free_bytes(there).map(|(free, _)| free),
            dir: dir.to_owned(),
            is_built,
        };
        Ok(Estimate::new(facts))
    }

    /// Returns the number of reachable objects and their shallow bytes, if the index contains them:
    /// dominators were built.
    pub fn reachable(&self) -> Option<(u64, u64)> {
        self.file.read(Stage::Dominators, tree_file::read_reachable)
    }

    /// Returns the counts of dangling references, if the index contains them: references were read.
    pub fn missing_objects(&self) -> Option<MissingObjects> {
        self.file.read(Stage::References, adjacency_file::read_missing)
    }

    /// Returns the query result that [`Heap::store_result`] wrote to the index under this key.
    pub fn stored_result(&self, stage: Stage, key: u64) -> Option<Vec<u8>> {
        self.file.read(stage, |file| kept_file::read(file, key)).flatten()
    }

    /// Writes a query result to the index, replacing the last one of its stage ([`Stage::is_stored_result`]), if there is an index
    /// that can be written to and that no other process works on. The key stands for everything that the result depends on
    /// except the dump.
    pub fn store_result(&self, stage: Stage, key: u64, answer: &[u8]) {
        let Some((directory, _lock)) = self.file.directories.idle() else { return };
        if stage.is_stored_result() && self.file.check_unchanged().is_ok() {
            // Without it, the result is computed again.
            let _ = directory.write(&self.file.key(stage), kept_file::SECTIONS, |writer| {
                kept_file::write(key, answer, writer)
            });
        }
    }

    /// Returns the data about the dump that needs no access to single objects.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Returns the path of the dump as given.
    pub fn path(&self) -> &Path {
        self.file.dump.path()
    }

    /// Returns the size of the file as given, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file.dump.stamp().len
    }

    /// Returns the compression of the file, if it is compressed.
    pub fn compression(&self) -> Option<Compression> {
        self.file.form.compression()
    }

    /// Returns `true` if the file is a text report, of which a dump was made.
    pub fn is_text(&self) -> bool {
        matches!(self.file.form, DumpForm::Text(_))
    }

    /// Returns `true` if the summary was built by this process, not read from an index.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Returns the notes for the user about the index and the file.
    pub fn notes(&self) -> Vec<String> {
        self.file.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the unpacked copy that this process created and that remains: path and bytes.
    pub fn kept_copy(&self) -> Option<(&Path, u64)> {
        self.file.kept_copy.get().map(|(path, bytes)| (path.as_path(), *bytes))
    }

    /// Returns the bytes of the dump, unpacked if it is compressed.
    ///
    /// # Errors
    /// [`Error::Unpack`].
    pub fn bytes(&self, progress: &dyn Progress) -> Result<&[u8], Error> {
        self.file.bytes(progress)
    }

    /// Returns the files of the index: stage, path, size, and the defect if there is one.
    ///
    /// If `thorough`, reads and checks each file completely; otherwise only the parts that are checked on
    /// opening.
    ///
    /// # Errors
    /// Errors of [`Heap::open`].
    pub fn verify_index(path: &Path, options: &Options, thorough: bool) -> Result<Vec<StageReport>, Error> {
        let (opening, _) = Opening::start(path, options, Verification::WhenRead)?;
        let mut reports = Vec::new();
        for stage in Stage::ALL {
            let key = opening.key(stage);
            if stage == Stage::Unpacked && opening.form.is_plain() {
                continue;
            }
            let name = directory::file_name(&key);
            let report = |dir: PrivateDir| {
                let bytes = dir.len_of(&name).ok()?;
                let data =
                    if stage == Stage::Unpacked { dir.len_of(directory::UNPACKED_DATA).ok() } else { None };
                Some(StageReport {
                    stage,
                    bytes: bytes.saturating_add(data.unwrap_or(0)),
                    state: check(&opening, stage, &dir, &name, thorough),
                    file: dir.path().join(&name),
                })
            };
            let mut found: Vec<StageReport> = opening.directories.existing().filter_map(report).collect();
            // A missing query result is not reported: commands compute it again.
            if stage.is_stored_result() && found.is_empty() {
                continue;
            }
            // A valid file is the one that commands use, wherever it is.
            found.sort_by_key(|report| report.state != StageState::Good);
            reports.push(found.into_iter().next().unwrap_or_else(|| StageReport {
                stage,
                file: opening.directories.first_usable().join(&name),
                bytes: 0,
                state: StageState::Missing,
            }));
        }
        Ok(reports)
    }

    /// Removes the index of a dump from all possible directories; returns them with the bytes freed in
    /// each.
    ///
    /// The dump itself need not exist.
    ///
    /// # Errors
    /// [`Error::RemoveIndex`] if a file cannot be removed.
    pub fn remove_index(path: &Path, options: &Options) -> Result<Vec<(PathBuf, u64)>, Error> {
        let directories = IndexDirectories::for_dump(path, options.index_dir.as_deref());
        let mut removed = Vec::new();
        let mut failed = None;
        for dir in directories.existing() {
            let path = dir.path().to_owned();
            match directory::remove(&dir) {
                Ok(freed) => removed.push((path, freed)),
                Err(error) => failed = failed.or(Some(Error::RemoveIndex { dir: path, error })),
            }
        }
        failed.map_or(Ok(removed), Err)
    }

    /// Returns the possible index directories that are neither read nor written, and from which nothing
    /// is removed, because others could have put anything there. Each line states the reason.
    pub fn refused_directories(path: &Path, options: &Options) -> Vec<String> {
        let directories = IndexDirectories::for_dump(path, options.index_dir.as_deref());
        let line = |(dir, why): (&Path, _)| directory::not_used(dir, &why);
        directories.untrusted_dirs().map(line).collect()
    }
}

/// Returns the number of objects in a dump, including class objects.
fn count(summary: &Summary) -> u64 {
    summary.classes().iter().map(|class| class.objects.get()).sum::<u64>()
        + summary.facts().class_objects.get()
}

/// Checks the file of a stage in a directory.
fn check(opening: &Opening, stage: Stage, dir: &PrivateDir, name: &str, thorough: bool) -> StageState {
    let opened = dir.map(name).map_err(|_| Unusable::Damaged);
    let checked = opened.and_then(|map| StageFile::open(map, &opening.key(stage))).and_then(|file| {
        if !thorough {
            return Ok(());
        }
        file.verify()?;
        if stage == Stage::Unpacked { read_unpacked(&file, dir).map(drop) } else { Ok(()) }
    });
    match checked {
        Ok(()) => StageState::Good,
        Err(Unusable::Stale) => StageState::Stale,
        Err(Unusable::Foreign) => StageState::Foreign,
        Err(Unusable::Damaged) => StageState::Damaged,
    }
}

/// Result of [`Heap::verify_index`] for one stage.
#[derive(Debug, Clone)]
pub struct StageReport {
    /// Stage.
    pub stage: Stage,
    /// Path of its file.
    pub file: PathBuf,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// State of the file.
    pub state: StageState,
}

/// State of a stage's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StageState {
    /// Exists and is valid.
    Good,
    /// Does not exist.
    Missing,
    /// Belongs to another dump, or the dump has changed.
    Stale,
    /// Written by another version, or not an index file.
    Foreign,
    /// Truncated, or a checksum does not match.
    Damaged,
}
