//! Reads Java heap dumps (HPROF), fast and exactly: the library behind the command line `hprof-cli`.
//!
//! A dump is read once, on all cores. The result is stored in an index next to it, with which the dump opens at once later.
//! A dump may be compressed, damaged, or larger than memory.
//!
//! | question | where |
//! |---|---|
//! | Open a dump; what is in it, and what is wrong with it? | [`Heap`], [`Summary`], [`open`], [`model`] |
//! | How large are objects? | [`sizes`] |
//! | Which classes take how much? | [`histogram`] |
//! | Which objects retain how much? | [`dominators`] |
//! | What keeps an object alive? | [`paths`] |
//! | What is in an object? | [`objects`] |
//! | What was each thread doing, and what does its stack reference? | [`threads`] |
//! | Everything else | [`oql`], the query language of Eclipse MAT |
//!
//! The ten classes whose objects take the most memory:
//!
//! ```no_run
//! use hprof_cli::histogram::{HistogramQuery, histogram};
//! use hprof_cli::sizes::Sizes;
//! use hprof_cli::{Heap, Options, Quiet};
//!
//! # fn main() -> Result<(), hprof_cli::Error> {
//! let heap = Heap::open("heap.hprof".as_ref(), &Options::default(), &Quiet)?;
//! let sizes = Sizes::new(heap.summary(), None);
//! let question = HistogramQuery { top: Some(10), ..HistogramQuery::default() };
//! for row in histogram(heap.summary(), &sizes, &question).rows {
//!     println!("{:>12} {:>14} {}", row.instances, row.shallow_bytes, row.name);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Numbers
//!
//! Each kind of number has its own type. An [`ObjectId`] identifies an object in the dump: in HotSpot's dumps it is the
//! address. An [`ObjectIndex`] is the number of an object in the index, in ascending order of IDs; a [`TreePosition`] is its
//! position in the preorder of the dominator tree. A [`ClassNumber`] identifies a class, a [`TraceSerial`] a stack trace. All
//! of them belong to one dump. Sets of objects ([`dominators::RoaringBitmap`]) contain object indices. Sizes are in bytes.
//!
//! # Features
//!
//! * `cli` (by default): the command line, and all crates that only the command line needs. Programs that use the library turn
//!   it off with `default-features = false`.
//! * `serve` and `sql` (by default), `parquet`: the commands of these names, and the format of `export`.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

#[cfg(feature = "cli")]
mod cli;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub use cli::fuzzing;
#[cfg(feature = "cli")]
pub use cli::{advice, run};
pub use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
pub use hprof_index::model::summary::{ClassNumber, Summary};
pub use hprof_index::{Dump, Error, Heap, ObjectGraph, Options};
pub use hprof_input::progress::{Progress, Quiet};
pub use hprof_values::{ObjectId, TraceSerial};

/// Opening a dump: compression, index, required resources, and errors.
///
/// ```no_run
/// use hprof_cli::{Heap, Options, Quiet};
///
/// # fn main() -> Result<(), hprof_cli::Error> {
/// // Nothing is written beside the dump.
/// let options = Options { index_dir: Some("/var/cache/heaps".into()), ..Options::default() };
/// let estimate = Heap::estimate("heap.hprof".as_ref(), &options, &Quiet)?;
/// if estimate.fits() {
///     let (heap, graph) = Heap::open_graph("heap.hprof".as_ref(), &options, &Quiet)?;
///     println!("{} objects, {} reachable", graph.objects.len(), graph.tree.reachable());
///     for problem in heap.summary().problems() {
///         println!("{}: {}", problem.kind.name(), problem.text);
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub mod open {
    pub use hprof_index::NoSuchHeapDump;
    pub use hprof_index::objects::address_index::TooManyObjects;
    pub use hprof_index::open::error::NoRoom;
    pub use hprof_index::open::estimate::{Estimate, NoDisk};
    pub use hprof_index::open::heap::{StageReport, StageState};
    pub use hprof_index::storage::memory::{Available, Limit, NoMemory};
    pub use hprof_index::storage::store::Stage;
    pub use hprof_input::file::OpenError;
    pub use hprof_input::packed::{Compression, Members, Size};
    pub use hprof_parser::sniff::FileKind;
    pub use hprof_parser::{FormatError, FormatErrorKind};
}

/// Summary of a dump without its individual objects: classes, records, problems.
///
/// ```no_run
/// use hprof_cli::{Heap, Options, Quiet};
///
/// # fn main() -> Result<(), hprof_cli::Error> {
/// let heap = Heap::open("heap.hprof".as_ref(), &Options::default(), &Quiet)?;
/// let summary = heap.summary();
/// for (number, class) in summary.numbered_classes() {
///     println!("{} {} {}", number.0, summary.class_name(class), class.objects);
///     for (name, kind) in summary.fields(class) {
///         println!("  {} {name}", kind.java_name());
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub mod model {
    pub use hprof_index::MissingObjects;
    pub use hprof_index::model::class_table::ClassTable;
    pub use hprof_index::model::problem::{Account, Problem, ProblemKind, Severity};
    pub use hprof_index::model::tables::{
        ClassKind, ClassRow, DistanceRow, FactsRow, HeapDumpRow, LoadRow, LoaderRow, PlaceRow, RootRow,
        SegmentRow, StackChunkRow, ThreadRow,
    };
    pub use hprof_parser::Version;
    pub use hprof_values::{BasicType, IdSize, RootKind};
}

/// Sizes of objects: the layout of the JVM that wrote the dump, detected from the distances between objects, or given.
///
/// ```no_run
/// use hprof_cli::sizes::{LayoutOverride, Sizes};
/// use hprof_cli::{Heap, Options, Quiet};
///
/// # fn main() -> Result<(), hprof_cli::Error> {
/// let heap = Heap::open("heap.hprof".as_ref(), &Options::default(), &Quiet)?;
/// // As if references took 8 bytes.
/// let given = LayoutOverride { reference_bytes: Some(8), ..LayoutOverride::default() };
/// let sizes = Sizes::new(heap.summary(), Some(&given));
/// for (number, class) in heap.summary().numbered_classes() {
///     let (bytes, _) = sizes.instance(number);
///     println!("{bytes} {}", heap.summary().class_name(class));
/// }
/// # Ok(())
/// # }
/// ```
pub mod sizes {
    pub use hprof_index::layout::fit::{Evidence, FittedLayout, LayoutSource};
    pub use hprof_index::layout::object_layout::{Layout, LayoutOverride, Packing};
    pub use hprof_index::layout::sizes::{SizeSource, Sizes};
}

/// The histogram: instances, shallow and retained sizes by class, loader or package.
///
/// ```no_run
/// use hprof_cli::histogram::{HistogramGroupBy, HistogramQuery, Scope, With, histogram_of};
/// use hprof_cli::{Dump, Heap, Options, Quiet};
///
/// # fn main() -> Result<(), hprof_cli::Error> {
/// let (heap, graph) = Heap::open_graph("heap.hprof".as_ref(), &Options::default(), &Quiet)?;
/// let dump = Dump::new(&heap, &graph)?;
/// let question = HistogramQuery { group_by: HistogramGroupBy::Package, ..HistogramQuery::default() };
/// let answer = histogram_of(&dump, &question, Scope::Reachable, With::Retained);
/// for row in answer.rows {
///     println!("{:>14} {}", row.retained_bytes.unwrap_or_default(), row.name);
/// }
/// # Ok(())
/// # }
/// ```
pub mod histogram {
    pub use hprof_query::histogram::{
        Histogram, HistogramGroupBy, HistogramOrder, HistogramQuery, HistogramRow, HistogramTotals, Loader,
        Scope, With, histogram, histogram_of,
    };
    pub use hprof_query::naming::pattern::ClassPattern;
}

/// The dominator tree: retained sizes of objects and sets of objects.
///
/// ```no_run
/// use hprof_cli::dominators::{ListingQuery, Start, list, row};
/// use hprof_cli::objects::Labels;
/// use hprof_cli::{Dump, Heap, Options, Quiet};
///
/// # fn main() -> Result<(), hprof_cli::Error> {
/// let (heap, graph) = Heap::open_graph("heap.hprof".as_ref(), &Options::default(), &Quiet)?;
/// let dump = Dump::new(&heap, &graph)?;
/// let labels = Labels::new(&dump);
/// let question = ListingQuery { start: Start::Roots, levels: 2, top: Some(10), min_retained_bytes: 1 << 20 };
/// for place in list(&graph.tree, &question).positions {
///     let Some(row) = row(&graph, &labels, place) else { continue };
///     println!("{:>14} {:#x} {}", row.retained_bytes, row.id, row.label.unwrap_or_default());
/// }
/// # Ok(())
/// # }
/// ```
pub mod dominators {
    pub use hprof_index::graph::tree::{ByPosition, Children, Tree};
    pub use hprof_query::dominators::preorder::Start;
    pub use hprof_query::dominators::retained_of_set::{RetainedTotals, retained, retained_set};
    pub use hprof_query::histogram::listing::{
        DominatedGroupRow, Listing, ListingQuery, ListingRow, group, list, row,
    };
    pub use roaring::RoaringBitmap;
}

/// The shortest paths from the GC roots to an object.
///
/// ```no_run
/// use hprof_cli::paths::{Exclusions, View, paths};
/// use hprof_cli::{Dump, Heap, ObjectId, Options, Quiet};
///
/// # fn main() -> Result<(), hprof_cli::Error> {
/// let (heap, graph) = Heap::open_graph("heap.hprof".as_ref(), &Options::default(), &Quiet)?;
/// let dump = Dump::new(&heap, &graph)?;
/// let view = View::new(&dump);
/// if let Some(object) = graph.objects.addresses.index_of(ObjectId(0x7_1a00_0018)) {
///     for path in paths(&view.edges, object, 3, Exclusions::all_but_strong()).paths {
///         for step in view.steps(&path, 0..path.len()) {
///             println!("{} {}", step.reference.unwrap_or_default(), step.class.unwrap_or_default());
///         }
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub mod paths {
    pub use hprof_query::objects::reference_kind::ReferenceKind;
    pub use hprof_query::objects::reference_names::{Edges, Holding};
    pub use hprof_query::objects::root_index::RootIndex;
    pub use hprof_query::objects::strength::{Exclusions, Strength, Strengths};
    pub use hprof_query::paths::beyond_frames;
    pub use hprof_query::paths::shortest::{ShortestPaths, paths};
    pub use hprof_query::paths::steps::{ObjectStep, RootView, StepThread, View};
}

/// Reading objects: IDs and classes, references, fields, elements, strings.
///
/// ```no_run
/// use hprof_cli::objects::Labels;
/// use hprof_cli::{Dump, Heap, ObjectId, Options, Quiet};
///
/// # fn main() -> Result<(), hprof_cli::Error> {
/// let (heap, graph) = Heap::open_graph("heap.hprof".as_ref(), &Options::default(), &Quiet)?;
/// let dump = Dump::new(&heap, &graph)?;
/// let (objects, labels) = (dump.objects, Labels::new(&dump));
/// if let Some(object) = graph.objects.addresses.index_of(ObjectId(0x7_1a00_0018)) {
///     println!("{}", labels.label(object).unwrap_or_default());
///     if let Some(fields) = objects.fields(object) {
///         for slot in objects.slots(fields.class()) {
///             let value = objects.value(fields.bytes(), &slot).and_then(|value| value.integer());
///             println!("{} {} = {value:?}", slot.kind.java_name(), slot.name);
///         }
///     }
///     for target in graph.references(object) {
///         println!("{:#x}", graph.objects.addresses.id_of(target).unwrap_or_default());
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub mod objects {
    pub use hprof_index::graph::adjacency::{AdjacencyLists, Targets};
    pub use hprof_index::objects::address_index::AddressIndex;
    pub use hprof_index::objects::fields::Fields;
    pub use hprof_index::objects::gc_roots::{GcRoot, Roots};
    pub use hprof_index::objects::object_table::ObjectTable;
    pub use hprof_index::objects::reader::{
        Bits, Characters, ClassObject, FieldPlace, FieldSlot, Instance, ObjectArray, ObjectReader,
        ObjectRecord, ObjectVisitor, PrimitiveArray,
    };
    pub use hprof_query::objects::label::Labels;
}

/// The threads of a dump: states, stacks and local variables.
///
/// ```no_run
/// use hprof_cli::threads::{ThreadQuery, Threads};
/// use hprof_cli::{Dump, Heap, Options, Quiet};
///
/// # fn main() -> Result<(), hprof_cli::Error> {
/// let (heap, graph) = Heap::open_graph("heap.hprof".as_ref(), &Options::default(), &Quiet)?;
/// let dump = Dump::new(&heap, &graph)?;
/// let threads = Threads::new(&dump);
/// for row in threads.find(&ThreadQuery::default()).rows {
///     let thread = threads.thread(&row);
///     println!("{}", thread.name.unwrap_or_default());
///     for frame in &thread.frames {
///         println!("  {}", frame.frame);
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub mod threads {
    pub use hprof_query::naming::object_id::NoObjectId;
    pub use hprof_query::objects::selection::ThreadPattern;
    pub use hprof_query::threads::frames::Frame;
    pub use hprof_query::threads::{
        JavaThread, Local, Object, StackFrame, ThreadActivity, ThreadKind, ThreadOrder, ThreadQuery,
        ThreadReport, ThreadRow, ThreadScope, ThreadState, Threads, Wait,
    };
}

/// OQL: the query language of Eclipse MAT.
///
/// ```no_run
/// use hprof_cli::oql::{Evaluator, OqlRow, Query};
/// use hprof_cli::{Dump, Heap, Options, Quiet};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (heap, graph) = Heap::open_graph("heap.hprof".as_ref(), &Options::default(), &Quiet)?;
/// let dump = Dump::new(&heap, &graph)?;
/// let evaluator = Evaluator::new(&dump);
/// let query: Query = "SELECT s.value.@length FROM java.lang.String s".parse()?;
/// let answer = evaluator.run(&query, Some(10))?;
/// for row in answer.rows(&evaluator).take(10) {
///     match row {
///         OqlRow::Object(object) => println!("{:#x}", object.object),
///         OqlRow::Cells(cells) => println!("{cells:?}"),
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub mod oql {
    pub use hprof_query::oql::{Evaluator, ObjectRow, OqlResult, OqlRow, OqlValue, Query, QueryError};
}
