//! A dump in a temporary directory, and all answers of the library about it as text.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hprof_cli::{ObjectIndex, TreePosition};
use hprof_index::layout::measured;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::Summary;
use hprof_index::objects::object_table::ObjectTable;
use hprof_index::{Error, Heap, ObjectGraph, Options, Quiet};
use hprof_values::{BasicType, IdSize};
use tempfile::TempDir;

use crate::kit::samples;
use hprof_writer::Written;

/// A dump in a temporary directory, with its index in another directory; or a sample, with its shared index.
pub struct Dump {
    dir: TempDir,
    indexes: PathBuf,
    /// The dump's file.
    pub path: PathBuf,
    /// Number of the heap dump to read, if given.
    pub heap_dump: Option<u32>,
}

impl Dump {
    /// Creates a dump with these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let dump = Self::at(None);
        fs::write(&dump.path, bytes).expect("the temporary directory takes a file");
        dump
    }

    /// Creates a dump from the writer's output, sparse if it has holes.
    pub fn written(written: &Written) -> Self {
        let dump = Self::at(None);
        written.write_file(&dump.path).expect("the temporary directory takes a file");
        dump
    }

    /// Creates a dump from an existing file, or at a new path; the index is temporary.
    pub fn at(path: Option<&Path>) -> Self {
        let dir = tempfile::tempdir().expect("there is a temporary directory");
        let path = path.map_or_else(|| dir.path().join("dump.hprof"), Path::to_owned);
        Self { indexes: dir.path().join("indexes"), dir, path, heap_dump: None }
    }

    /// Creates a dump from a sample whose index is shared: for queries, which do not change an index.
    pub fn sample(path: &Path) -> Self {
        Self { indexes: samples::indexes(path).to_owned(), ..Self::at(Some(path)) }
    }

    /// Replaces the file's bytes.
    pub fn replace(&self, bytes: &[u8]) {
        fs::write(&self.path, bytes).expect("the file can be written again");
    }

    /// Returns options with the directory of the index.
    pub fn options(&self) -> Options {
        Options {
            index_dir: Some(self.indexes.clone()),
            heap_dump: self.heap_dump,
            memory_bytes: None,
            hide_values: false,
        }
    }

    /// Returns the path of this dump's index, which must exist and not be shared.
    pub fn index(&self) -> PathBuf {
        assert!(self.indexes.starts_with(self.dir.path()), "others use this index");
        let mut entries = fs::read_dir(&self.indexes).expect("an index was written");
        entries.next().expect("an index was written").expect("it can be listed").path()
    }

    /// Removes the index.
    pub fn forget_index(&self) {
        assert!(self.indexes.starts_with(self.dir.path()), "others use this index");
        // Without an index there is nothing to remove.
        let _ = fs::remove_dir_all(&self.indexes);
    }

    pub fn try_open(&self) -> Result<Heap, Error> {
        Heap::open(&self.path, &self.options(), &Quiet)
    }

    pub fn try_open_graph(&self) -> Result<(Heap, ObjectGraph), Error> {
        Heap::open_graph(&self.path, &self.options(), &Quiet)
    }

    pub fn open(&self) -> Heap {
        self.try_open().expect("the dump opens")
    }

    pub fn open_graph(&self) -> (Heap, ObjectGraph) {
        self.try_open_graph().expect("the dump opens")
    }

    /// Runs the program: `arguments` are a command and its options; the dump is inserted after the command.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program runs")
    }

    /// Returns the command of [`Dump::run`].
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
        command.arg(arguments[0]).arg(&self.path).args(&arguments[1..]);
        command.env("HPROF_CLI_INDEX_DIR", &self.indexes);
        command
    }
}

/// Returns a dump that was opened with its graph, as queries take it.
pub fn whole_dump<'a>(heap: &'a Heap, graph: &'a ObjectGraph) -> hprof_index::Dump<'a> {
    hprof_index::Dump::new(heap, graph).expect("the dump's bytes")
}

/// Returns the unpacked bytes of a dump.
pub fn bytes(heap: &Heap) -> &[u8] {
    heap.bytes(&Quiet).expect("the bytes are there")
}

/// Returns the number of objects of all classes of a name; of `java.lang.Class`, including all class objects.
pub fn count(summary: &Summary, name: &str) -> u64 {
    let named = summary.classes().iter().filter(|class| summary.class_name(class) == name);
    let objects: u64 = named.map(|class| class.objects.get()).sum();
    objects + if name == "java.lang.Class" { summary.facts().class_objects.get() } else { 0 }
}

/// Returns all problems, one per line.
pub fn problems(summary: &Summary) -> String {
    summary.problems().iter().map(|problem| format!("{problem}\n")).collect()
}

/// Returns everything in a summary, and the sizes that follow from it, as text to compare.
pub fn digest(summary: &Summary) -> String {
    let mut out = format!("{:?} {:?}\n", summary.facts(), summary.id_size());
    let sizes = Sizes::new(summary, None);
    writeln!(out, "{:?}", sizes.fit).expect("strings take text");
    for (number, class) in summary.numbered_classes() {
        let fields: Vec<_> = summary.fields(class).collect();
        let statics: Vec<_> = summary.statics(class).collect();
        let size = (sizes.instance(number), sizes.class_object(number), sizes.total(number));
        let name = summary.class_name(class);
        writeln!(out, "{name} {class:?} {fields:?} {statics:?} {size:?}").expect("strings take text");
    }
    let lengths: Vec<_> = BasicType::PRIMITIVES.iter().map(|kind| summary.primitive_lengths(*kind)).collect();
    let parts = [
        format!("{:?}", measured::object_lengths(summary)),
        format!("{lengths:?}"),
        format!("{:?}", measured::short_arrays(summary).collect::<Vec<_>>()),
        format!("{:?}", summary.class_distances().collect::<Vec<_>>()),
        format!("{:?}", summary.stack_chunks()),
        format!("{:?} {:?}", summary.roots(), summary.root_counts()),
        format!("{:?} {:?} {:?}", summary.record_counts(), summary.frames(), summary.traces()),
        format!("{:?} {:?}", summary.segments(), summary.loaders()),
        format!("{:?}", summary.properties().collect::<Vec<_>>()),
        format!("{:?}", summary.heaps().collect::<Vec<_>>()),
        format!("{:?}", (0..=255).map(|tag| summary.record_count(tag)).collect::<Vec<_>>()),
        problems(summary),
    ];
    out + &parts.join("\n")
}

/// Returns everything in the stage `objects`, as text to compare.
fn digest_objects(objects: &ObjectTable, bytes: &[u8], id_size: IdSize) -> String {
    let mut out = format!("{} {:?}\n", objects.len(), objects.class_objects());
    for index in ObjectIndex::range(objects.indices()) {
        let id = objects.addresses.id_of(index);
        let offset = objects.offset(bytes, id_size, index);
        writeln!(out, "{id:x?} {:?} {offset:?}", objects.class(index)).expect("strings take text");
    }
    out
}

/// Returns everything in the index about single objects, as text to compare.
pub fn digest_graph(graph: &ObjectGraph, bytes: &[u8], id_size: IdSize) -> String {
    let mut out = digest_objects(&graph.objects, bytes, id_size);
    let tree = &graph.tree;
    for index in ObjectIndex::range(graph.objects.indices()) {
        let rows = (graph.references(index).collect::<Vec<_>>(), graph.referrers(index).collect::<Vec<_>>());
        let (at, class) = (tree.position(index), graph.class_object_of(index));
        writeln!(out, "{rows:?} {at:?} {class:?}").expect("strings take text");
    }
    for at in (0..tree.objects()).map(TreePosition) {
        let shallow = (tree.shallow_bytes(at), tree.bytes_before(at));
        writeln!(out, "{:?} {shallow:?}", tree.object_at(at)).expect("strings take text");
    }
    for at in TreePosition::range(tree.positions()) {
        let place = (tree.dominator(at), tree.end(at), tree.depth(at), tree.retained_bytes(at));
        writeln!(out, "{place:?}").expect("strings take text");
    }
    let edges = (graph.references.edges(), graph.referrers.edges());
    let reachable = (tree.objects(), tree.reachable(), tree.reachable_bytes());
    writeln!(out, "{edges:?} {reachable:?} {:?}", graph.roots).expect("strings take text");
    out
}

/// Calls `run` in a pool of `threads` threads.
pub fn with_threads<R: Send>(threads: usize, run: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("threads can be started").install(run)
}
