//! Opening a dump: from its index, or by reading it and leaving an index behind.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use super::adjacency_file;
use super::error::Error;
use super::estimate::{self, Estimate};
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

/// A dump, and what is known of it.
#[derive(Debug)]
pub struct Heap {
    file: Opening,
    summary: Summary,
    /// Whether the summary was built by this process.
    fresh: bool,
}

impl Heap {
    /// Opens a dump: reads its summary from the index, or reads the dump and writes the summary.
    ///
    /// # Errors
    /// [`Error`]: the file is not there, is no dump, or changes while it is read. An index that cannot be written is no
    /// error but a note.
    pub fn open(path: &Path, options: &Options, progress: &dyn Progress) -> Result<Self, Error> {
        let (file, known) = Opening::start(path, options, Verification::WhenRead)?;
        let (summary, fresh) = match known {
            Some(summary) => (summary, false),
            None => file.build_summary(progress)?,
        };
        Ok(Self { file, summary: summary.hiding_values(options.hide_values), fresh })
    }

    /// Opens a dump with its graph: every stage is taken from the index, or built and left there. Where no index can be
    /// kept it is built in a temporary directory, which is removed when the `Heap` is dropped.
    ///
    /// Before an answer is given, look whether [`ObjectGraph::is_damaged`]; if so, call [`Heap::open_graph_checked`] and
    /// ask again.
    ///
    /// # Errors
    /// As [`Heap::open`]; also [`Error::WriteIndex`] and [`Error::TooManyObjects`].
    pub fn open_graph(
        path: &Path,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<(Self, ObjectGraph), Error> {
        Self::open_graph_for(Purpose::Answer, Verification::WhenRead, path, options, progress)
    }

    /// As [`Heap::open_graph`], after all of the index was read and checked: what is damaged is built again.
    ///
    /// # Errors
    /// As [`Heap::open_graph`].
    pub fn open_graph_checked(
        path: &Path,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<(Self, ObjectGraph), Error> {
        Self::open_graph_for(Purpose::Answer, Verification::OnOpen, path, options, progress)
    }

    /// Builds what is missing of a dump's index, to be kept.
    ///
    /// # Errors
    /// As [`Heap::open_graph`]; [`Error::WriteIndex`] also where an index cannot be kept.
    pub fn build_index(path: &Path, options: &Options, progress: &dyn Progress) -> Result<Self, Error> {
        Self::open_graph_for(Purpose::Index, Verification::WhenRead, path, options, progress)
            .map(|(heap, _)| heap)
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
            (Some(summary), Some(stages)) => (summary, stages, false),
            (known, _) => stages::build(&file, known, purpose, progress)?,
        };
        file.check_roots(&summary)?;
        let graph = stages.into_graph(&file, &summary);
        Ok((Self { file, summary: summary.hiding_values(options.hide_values), fresh }, graph))
    }

    /// Whether what objects hold is not told ([`Options::hide_values`]). What is computed does not depend on it: it is read
    /// where a label, a name or a key becomes a part of an answer.
    pub fn hides_values(&self) -> bool {
        self.summary.hides_values()
    }

    /// Looks whether somebody has written to the dump since it was opened: an answer that was read from it meanwhile is
    /// one of neither dump. One that was replaced by another file, or removed, was read as it was.
    ///
    /// # Errors
    /// [`Error::Changed`].
    pub fn check_unwritten(&self) -> Result<(), Error> {
        if self.file.dump.was_written() { Err(Error::Changed(self.path().to_owned())) } else { Ok(()) }
    }

    /// What building the index of a dump will take. Reads some of the dump and writes nothing; but a compressed dump is
    /// unpacked first.
    ///
    /// # Errors
    /// As [`Heap::open`].
    pub fn estimate(path: &Path, options: &Options, progress: &dyn Progress) -> Result<Estimate, Error> {
        let (file, known) = Opening::start(path, options, Verification::WhenRead)?;
        let is_built = Stages::read(&file).is_some() && file.is_unpacked();
        let (bytes, sampled) = file.objects_about(known.is_none(), progress)?;
        let dir = file.directories.first_usable();
        // The nearest directory that is there already.
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

    /// How many objects are reachable, and their shallow bytes, if the index tells: dominators were built.
    pub fn reachable(&self) -> Option<(u64, u64)> {
        self.file.read(Stage::Dominators, tree_file::read_reachable)
    }

    /// References to objects that are not in the dump, if the index tells: references were read.
    pub fn missing_objects(&self) -> Option<MissingObjects> {
        self.file.read(Stage::References, adjacency_file::read_missing)
    }

    /// What is known of the dump without looking at single objects.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The file as it was given.
    pub fn path(&self) -> &Path {
        self.file.dump.path()
    }

    /// Length of the file as it was given.
    pub fn file_bytes(&self) -> u64 {
        self.file.dump.stamp().len
    }

    /// How the file is compressed.
    pub fn compression(&self) -> Option<Compression> {
        self.file.compression
    }

    /// Whether the summary was built by this process, not read from an index.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// What the user should know about index and file, apart from the answer.
    pub fn notes(&self) -> Vec<String> {
        self.file.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The unpacked copy that this process made and that stays: its path, its bytes.
    pub fn kept_copy(&self) -> Option<(&Path, u64)> {
        self.file.kept_copy.get().map(|(path, bytes)| (path.as_path(), *bytes))
    }

    /// The bytes of the dump, unpacked if it is compressed.
    ///
    /// # Errors
    /// [`Error::Unpack`].
    pub fn bytes(&self, progress: &dyn Progress) -> Result<&[u8], Error> {
        self.file.bytes(progress)
    }

    /// The files of the index: stage, path, bytes, and what is wrong with it if something is.
    ///
    /// Reads and checks all of each file if it is `thorough`, else only what opening looks at.
    ///
    /// # Errors
    /// As [`Heap::open`].
    pub fn verify_index(path: &Path, options: &Options, thorough: bool) -> Result<Vec<StageReport>, Error> {
        let (opening, _) = Opening::start(path, options, Verification::WhenRead)?;
        let mut reports = Vec::new();
        for stage in Stage::ALL {
            let key = opening.key(stage);
            if stage == Stage::Unpacked && opening.compression.is_none() {
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
            // A good one is what commands use, wherever it lies.
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

    /// Removes the index of a dump, wherever it lies: the directories, and the bytes freed in each.
    ///
    /// The dump itself need not exist any more.
    ///
    /// # Errors
    /// [`Error::RemoveIndex`] if something cannot be removed.
    pub fn remove_index(path: &Path, options: &Options) -> Result<Vec<(PathBuf, u64)>, Error> {
        let directories = IndexDirectories::of(path, options.index_dir.as_deref());
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

    /// Directories in which the index of a dump could lie that are neither read nor written, nor is anything removed from
    /// them: others could have put anything there. A line for each says why.
    pub fn refused_directories(path: &Path, options: &Options) -> Vec<String> {
        let directories = IndexDirectories::of(path, options.index_dir.as_deref());
        let line = |(dir, why): (&Path, _)| directory::not_used(dir, &why);
        directories.refused().map(line).collect()
    }
}

/// How many objects there are.
fn count(summary: &Summary) -> u64 {
    summary.classes().iter().map(|class| class.objects.get()).sum::<u64>()
        + summary.facts().class_objects.get()
}

/// Checks a stage.
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
    pub state: StageState,
}

/// Whether a stage's file can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StageState {
    /// It is there and right.
    Good,
    /// It is not there.
    Missing,
    /// It belongs to another dump, or the dump has changed.
    Stale,
    /// It was not made by this version, or is no index file.
    Foreign,
    /// It is cut, or a checksum is wrong.
    Damaged,
}
