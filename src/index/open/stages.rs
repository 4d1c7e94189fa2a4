//! The stages of the graph: read from the index, or built.
//!
//! Each stage is written as soon as it is built, and mapped for reading, so that its memory is free for
//! the next. Referrers are built while one thread searches for dominators.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::error::Error;
use super::estimate::{self, NoDisk};
use super::opening::Opening;
use super::{adjacency_file, objects_file, summary_file, tree_file};
use crate::graph::adjacency::AdjacencyLists;
use crate::graph::graph_view::{GraphView, Labels};
use crate::graph::order::Weights;
use crate::graph::transpose::EDGE_BYTES;
use crate::graph::tree::Tree;
use crate::graph::{dominators, referrers};
use crate::layout::sizes::Sizes;
use crate::model::summary::Summary;
use crate::objects::address_index::{AddressIndex, TooManyObjects};
use crate::objects::class_objects::ClassObjects;
use crate::objects::describer::Describe;
use crate::objects::gc_roots::Roots;
use crate::objects::object_graph::ObjectGraph;
use crate::objects::object_table::ObjectTable;
use crate::objects::placing;
use crate::objects::reference_model::ObjectDescriptions;
use crate::records::source::DumpBytes;
use crate::scan::scan_dump::CollectedIds;
use crate::storage::free_space::free_bytes;
use crate::storage::memory::{self, NoMemory};
use crate::storage::scratch::ScratchArena;
use crate::storage::store::Stage;
use crate::storage::store::directory::{self, IndexDirectory};
use crate::storage::store::format::{StageFile, Unusable};
use hprof_input::file::OpenError;
use hprof_input::progress::Progress;

/// Maximum number of passes over the references when transposing them.
const MAX_PASSES: u64 = 4;

/// A stage, and the mark that is set when it is damaged.
type MarkedStage<T> = (T, Arc<AtomicBool>);

/// All stages of a graph.
pub(crate) struct Stages {
    objects: MarkedStage<ObjectTable>,
    references: MarkedStage<AdjacencyLists>,
    referrers: MarkedStage<AdjacencyLists>,
    tree: MarkedStage<Tree>,
}

fn read_marked<T>(
    read: impl Fn(&StageFile) -> Result<T, Unusable>,
) -> impl Fn(&StageFile) -> Result<MarkedStage<T>, Unusable> {
    move |file| Ok((read(file)?, file.damage()))
}

/// Reads a stage like [`read_marked`] after checking the whole file: damage in a stage would persist in the stages built from
/// it.
fn read_verified<T>(
    read: impl Fn(&StageFile) -> Result<T, Unusable>,
) -> impl Fn(&StageFile) -> Result<MarkedStage<T>, Unusable> {
    let read = read_marked(read);
    move |file| file.verify().and_then(|()| read(file))
}

/// Reads adjacency lists if their number matches.
fn rows(objects: u32) -> impl Fn(&StageFile) -> Result<AdjacencyLists, Unusable> {
    move |file| adjacency_file::read(file).and_then(|rows| fits(rows.len() == objects, rows))
}

/// Reads the tree if its number of objects matches.
fn tree(objects: u32) -> impl Fn(&StageFile) -> Result<Tree, Unusable> {
    move |file| tree_file::read(file).and_then(|tree| fits(tree.objects() == objects, tree))
}

fn fits<T>(fits: bool, stage: T) -> Result<T, Unusable> {
    if fits { Ok(stage) } else { Err(Unusable::Damaged) }
}

impl Stages {
    /// Reads all stages if all of them exist.
    pub(crate) fn read(file: &Opening) -> Option<Self> {
        let objects = file.read(Stage::Objects, read_marked(objects_file::read))?;
        let count = objects.0.len();
        Some(Self {
            references: file.read(Stage::References, read_marked(rows(count)))?,
            referrers: file.read(Stage::Referrers, read_marked(rows(count)))?,
            tree: file.read(Stage::Dominators, read_marked(tree(count)))?,
            objects,
        })
    }

    /// Creates the graph from the stages.
    pub(crate) fn into_graph(self, file: &Opening, summary: &Summary) -> ObjectGraph {
        let Self { objects, references, referrers, tree } = self;
        let damage = vec![objects.1, references.1, referrers.1, tree.1];
        let dir =
            file.directories.existing().next().map_or_else(std::env::temp_dir, |dir| dir.path().to_owned());
        let scratch = (dir, file.options.memory_bytes);
        ObjectGraph::new(summary, objects.0, [references.0, referrers.0], tree.0, damage, scratch)
    }
}

/// Purpose of building the stages of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A permanent index.
    Index,
    /// Data for one query. If no index can be written, it is removed when the process ends.
    Answer,
}

/// Builds the missing stages, including the summary unless it is `known`. Returns whether the summary was
/// built now.
pub(crate) fn build(
    file: &Opening,
    known: Option<Summary>,
    purpose: Purpose,
    progress: &dyn Progress,
) -> Result<(Summary, Stages, bool), Error> {
    let (directory, _lock) = match purpose {
        Purpose::Index => file.directory(progress),
        Purpose::Answer => file.any_directory(progress),
    }?;
    let builder = StageBuilder { file, directory: &directory, progress };
    let source = file.source(Some(&directory), progress)?;
    // Another process may have built some of them while this one waited.
    let summary = known.or_else(|| file.read(Stage::Summary, summary_file::read));
    let objects = file.read(Stage::Objects, read_verified(objects_file::read));
    let count = objects.as_ref().map(|(objects, _)| objects.len());
    let references = count.and_then(|count| file.read(Stage::References, read_verified(rows(count))));
    let (base, work, fresh) = match (summary, objects, references) {
        (Some(summary), Some(objects), Some(references)) => {
            let arena = builder.arena(u64::from(objects.0.len()), 0)?;
            ((summary, objects, references), (arena, None), false)
        }
        found => {
            // It is built again.
            drop(found);
            let (base, arena, weights) = builder.base(&source)?;
            (base, (arena, Some(weights)), true)
        }
    };
    let (summary, objects, references) = base;
    let (referrers, tree) = builder.ends(&source, &summary, &objects.0, &references.0, work)?;
    file.check_unchanged()?;
    Ok((summary, Stages { objects, references, referrers, tree }, fresh))
}

/// Builder of stages, for use while the lock is held.
struct StageBuilder<'a> {
    file: &'a Opening,
    directory: &'a IndexDirectory,
    progress: &'a dyn Progress,
}

type Base = (Summary, MarkedStage<ObjectTable>, MarkedStage<AdjacencyLists>);

impl StageBuilder<'_> {
    fn write_error(&self, error: io::Error) -> Error {
        Error::WriteIndex { dir: self.directory.path().to_owned(), error }
    }

    /// Returns the reason why an existing file of a stage cannot be mapped, if any.
    fn why_unmapped(&self, stage: Stage) -> Option<io::Error> {
        match self.directory.map(&directory::file_name(&self.file.key(stage))) {
            Err(OpenError::Io { error, .. }) => Some(error),
            _ => None,
        }
    }

    /// Reads back a file that was just written.
    fn read_back<T>(
        &self,
        stage: Stage,
        read: impl Fn(&StageFile) -> Result<T, Unusable>,
    ) -> Result<MarkedStage<T>, Error> {
        let unreadable = || {
            let what = format!("the file '{}' cannot be read after it was written", stage.name());
            self.write_error(match self.why_unmapped(stage) {
                Some(why) => io::Error::new(why.kind(), format!("{what}: {why}")),
                None => io::Error::other(what),
            })
        };
        self.file.read(stage, read_marked(read)).ok_or_else(unreadable)
    }

    /// Refuses a build that cannot succeed in the available memory after what is already taken; returns
    /// the memory for arrays.
    fn memory(&self, objects: u64) -> Result<u64, Error> {
        let best = estimate::arrays(objects);
        let Some(available) = memory::available(self.file.options.memory_bytes) else { return Ok(best) };
        // Once objects are counted, the working memory of threads is already taken.
        let needed_bytes =
            if objects == 0 { memory::working_memory(1) } else { estimate::small_columns(objects) };
        if available.bytes < needed_bytes && available.is_hard_limit() {
            let path = self.file.dump.path().to_owned();
            return Err(Error::NoMemory { path, error: NoMemory { needed_bytes, available } });
        }
        let working_memory = memory::working_memory(rayon::current_num_threads());
        Ok(available
            .bytes
            .saturating_sub(working_memory.saturating_add(estimate::small_columns(objects)))
            .min(best))
    }

    /// Creates a scratch arena for this number of objects. Refuses builds that cannot succeed for lack of
    /// memory or disk space.
    fn arena(&self, objects: u64, ids_bytes: u64) -> Result<ScratchArena, Error> {
        let memory = self.memory(objects)?;
        let dir = self.directory.path().to_owned();
        let index = if ids_bytes > 0 { estimate::index_at_least(objects, ids_bytes) } else { 0 };
        // Index and arrays take address space even in files.
        let needed_addresses = estimate::addresses(objects, ids_bytes);
        if ids_bytes > 0
            && let Some(available) = memory::addresses()
            && available.bytes < needed_addresses
        {
            let path = self.file.dump.path().to_owned();
            let error = NoMemory { needed_bytes: needed_addresses, available };
            return Err(Error::NoMemory { path, error });
        }
        let needed_bytes = index.saturating_add(estimate::scratch(objects, memory).0);
        if let Some((free_bytes, _)) = free_bytes(&dir)
            && free_bytes < needed_bytes
        {
            return Err(Error::NoDisk { dir, error: NoDisk { needed_bytes, free_bytes } });
        }
        Ok(ScratchArena::new(dir, memory))
    }

    /// Builds summary, objects and references.
    fn base(&self, source: &DumpBytes<'_>) -> Result<(Base, ScratchArena, Weights), Error> {
        let Self { file, directory, progress } = *self;
        self.memory(0)?;
        let built = file.scan(source, true, progress)?;
        let path = file.dump.path();
        let too_many = |error| Error::TooManyObjects { path: path.to_owned(), error };
        let (objects, ids_bytes) = match &built.ids {
            CollectedIds::Set(set) => (set.len(), set.bytes()),
            CollectedIds::List(ids) => (ids.len() as u64, ids.len() as u64 * 8),
            CollectedIds::Unknown => (0, 0),
        };
        if objects >= u64::from(u32::MAX) {
            return Err(too_many(TooManyObjects(objects)));
        }
        let arena = self.arena(objects, ids_bytes)?;
        progress.begin("numbering objects", 0);
        let addresses = match built.ids {
            CollectedIds::Set(set) => AddressIndex::of_set(set, &arena),
            CollectedIds::List(ids) => AddressIndex::of_list(&ids, &arena),
            CollectedIds::Unknown => AddressIndex::of_list(&[], &arena),
        };
        let addresses = addresses.map_err(|error| self.write_error(error))?.map_err(too_many)?;
        let summary = built.summary;
        file.check_roots(&summary)?;
        let sizes = Sizes::new(&summary, None);
        let locals = Roots::new(&summary, &addresses).locals();
        let class_objects = placing::class_objects(&summary, &addresses);
        let describe = Describe {
            room: &arena,
            source,
            summary: &summary,
            sizes: &sizes,
            addresses: &addresses,
            classes: &class_objects,
            locals: &locals,
        };
        let mut described = None;
        let written = directory.write(&file.key(Stage::References), adjacency_file::SECTIONS, |writer| {
            adjacency_file::write(&arena, addresses.objects(), writer, |rows| {
                let (made, places) = describe.place(&built.plan, &mut |part| rows.append(&part), progress)?;
                rows.missing = made.missing;
                described = Some((made, places));
                Ok(())
            })
        });
        written.map_err(|error| self.write_error(error))?;
        let Some((ObjectDescriptions { classes, class_bytes, weights, .. }, places)) = described else {
            return Err(self.write_error(io::Error::other("internal error: no object was described")));
        };
        file.check_unchanged()?;
        progress.begin("writing the object table", 0);
        let class_objects = placing::indices(&class_objects);
        let objects = ObjectTable { addresses, classes: classes.into(), class_bytes, places, class_objects };
        file.write_summary(directory, &summary)
            .and_then(|()| {
                directory.write(&file.key(Stage::Objects), objects_file::SECTIONS, |writer| {
                    objects_file::write(&objects, writer)
                })
            })
            .map_err(|error| self.write_error(error))?;
        drop(objects);
        progress.end();
        let objects = self.read_back(Stage::Objects, objects_file::read)?;
        let references = self.read_back(Stage::References, adjacency_file::read)?;
        Ok(((summary, objects, references), arena, weights))
    }

    /// Builds referrers and dominators, whichever are missing.
    fn ends(
        &self,
        source: &DumpBytes<'_>,
        summary: &Summary,
        objects: &ObjectTable,
        references: &AdjacencyLists,
        (arena, weights): (ScratchArena, Option<Weights>),
    ) -> Result<(MarkedStage<AdjacencyLists>, MarkedStage<Tree>), Error> {
        let Self { file, directory, progress } = *self;
        let referrers = file.read(Stage::Referrers, read_verified(rows(objects.len())));
        let tree = file.read(Stage::Dominators, read_marked(tree(objects.len())));
        let tree = match (referrers, tree) {
            (Some(referrers), Some(tree)) => return Ok((referrers, tree)),
            (None, Some(tree)) => {
                let referrers = self.referrers(&arena, references, arena.remaining_bytes())?;
                return Ok((referrers, tree));
            }
            (referrers, None) => referrers,
        };
        let weights = match weights {
            Some(weights) => weights,
            None => self.weights(&arena, source, summary, objects)?,
        };
        file.check_roots(summary)?;
        let roots = Roots::new(summary, &objects.addresses).objects();
        let roots: Vec<u32> = roots.into_iter().map(|root| root.0).collect();
        let class_objects = ClassObjects::new(summary, &objects.addresses);
        let targets = class_objects.by_class();
        let labels = Labels { column: objects.classes.all(), width: objects.class_bytes, targets };
        let graph = GraphView { lists: references.view(), labels: &labels, roots: &roots };
        let (order, referrers) = dominators::dominators(
            &arena,
            &graph,
            weights.view(),
            |memory| match tree {
                Some(referrers) => Ok(referrers),
                None => self.referrers(&arena, references, memory),
            },
            |made| made.as_ref().ok().map(|(rows, _)| rows.view()),
            progress,
        )
        .map_err(|error| self.write_error(error))?;
        let referrers = referrers?;
        let Some(order) = order else {
            return Err(self.write_error(io::Error::other("internal error: no dominator tree was computed")));
        };
        progress.begin("writing dominators", 0);
        directory
            .write(&file.key(Stage::Dominators), tree_file::SECTIONS, |writer| {
                tree_file::write(&arena, &order, weights.view(), writer)
            })
            .map_err(|error| self.write_error(error))?;
        progress.end();
        Ok((referrers, self.read_back(Stage::Dominators, tree_file::read)?))
    }

    /// Transposes the references in about `memory` bytes.
    fn referrers(
        &self,
        arena: &ScratchArena,
        references: &AdjacencyLists,
        memory: u64,
    ) -> Result<MarkedStage<AdjacencyLists>, Error> {
        let Self { file, directory, progress } = *self;
        progress.report_parallel("transposing references", false);
        let written = directory.write(&file.key(Stage::Referrers), adjacency_file::SECTIONS, |writer| {
            adjacency_file::write(arena, references.len(), writer, |rows| {
                let (view, edges) = (references.view(), references.edges());
                // Each pass reads all edges again; beyond the available memory, arrays may as well be in
                // files.
                let memory = memory.max(edges.saturating_mul(EDGE_BYTES) / MAX_PASSES + 1);
                referrers::transpose_lists(arena, view, edges, memory, |part| rows.append(&part))
            })
        });
        progress.report_parallel("transposing references", true);
        written.map_err(|error| self.write_error(error))?;
        self.read_back(Stage::Referrers, adjacency_file::read)
    }

    /// Reads the weights of all objects from the dump again.
    fn weights(
        &self,
        arena: &ScratchArena,
        source: &DumpBytes<'_>,
        summary: &Summary,
        objects: &ObjectTable,
    ) -> Result<Weights, Error> {
        let sizes = Sizes::new(summary, None);
        let describe = Describe {
            room: arena,
            source,
            summary,
            sizes: &sizes,
            addresses: &objects.addresses,
            classes: &[],
            locals: &[],
        };
        let described = describe.of_places(&objects.places, None, self.progress);
        Ok(described.map_err(|error| self.write_error(error))?.weights)
    }
}
