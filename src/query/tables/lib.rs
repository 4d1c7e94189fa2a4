//! Tables of a dump: rows and columns for SQL, and for engines that read files.
//!
//! A [`Table`] declares its columns once ([`definition`]) and produces its rows column by column, a [`Batch`] at a
//! time, from independent chunks. SQL reads the chunks of a lookup one after another; an export reads all of them
//! with all threads. [`Tables`] contains the tables of a dump.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod arrays;
pub mod batch;
mod classes;
mod column_names;
mod context;
pub mod definition;
mod fact_columns;
mod fields;
mod jfr_events;
mod object_chunks;
mod objects;
mod of_class;
mod of_classes;
mod refs;
mod roots;
mod small;
#[cfg(feature = "sql")]
pub mod sql;
mod strings;
mod tree_rows;

use std::io;
use std::ops::Range;
use std::sync::Arc;

use hprof_analyses::frameworks::Frameworks;
use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::storage::scratch::Array;
use hprof_values::ObjectId;

use small::threads::{self, ThreadTable, ThreadTableKind};
use small::{allocation_sites, dumps, loaders, places, recorded, suspects, waste};

pub use batch::{Batch, Cell, NO_NAME, Values};
pub use column_names::{ColumnNames, NameList};
pub use context::{About, TableContext};
pub use definition::{Column, ColumnSet, ColumnType, Definition};
pub use of_class::NoClass;

/// A table of a dump.
pub trait Table: Send + Sync {
    /// Returns the columns.
    fn definition(&self) -> &Definition;

    /// Returns the approximate number of rows.
    fn rows(&self) -> u64;

    /// Returns the lookups that the table supports without reading all rows.
    fn lookups(&self) -> Vec<Lookup> {
        Vec::new()
    }

    /// Returns the columns by which the table can sort its rows, ascending, faster than a sort of all rows.
    fn orders(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Returns the initial distinct values of a column of names.
    fn names(&self, column: usize) -> ColumnNames {
        let _ = column;
        ColumnNames::default()
    }

    /// Returns the chunks of the queried rows, in the order of rows. The chunks of a lookup may contain rows that do not match.
    ///
    /// # Errors
    /// If the underlying data cannot be read.
    fn chunks(&self, question: &TableQuery) -> io::Result<Vec<TableChunk>>;

    /// Prepares data that speeds up reading these columns of most rows while the data exists; `None` if it is not worth the
    /// time and memory, or if `stop` returns true. Uses all cores: must not be called by a thread that reads a chunk.
    fn prepare(&self, wanted: ColumnSet, stop: &(dyn Fn() -> bool + Sync)) -> Option<PreparedData> {
        let _ = (wanted, stop);
        None
    }

    /// Adds the rows of a chunk to a batch that [`Table::batch`] created for the same columns.
    ///
    /// # Errors
    /// If the underlying data cannot be read.
    fn read(&self, chunk: &TableChunk, wanted: ColumnSet, batch: &mut Batch) -> io::Result<()>;

    /// Creates a batch without rows.
    fn batch(&self, wanted: ColumnSet) -> Batch {
        Batch::new(&self.definition().columns, wanted, |column| self.names(column))
    }
}

/// Data prepared by [`Table::prepare`].
#[derive(Debug, Clone)]
pub struct PreparedData(#[allow(dead_code)] Arc<tree_rows::TreeRows>);

/// A lookup that needs no pass over all rows: rows whose value in a column equals a key, or is at least as large.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lookup {
    /// Column number.
    pub column: usize,
    /// Comparison of the values with the key.
    pub operator: Operator,
    /// Approximate number of rows of one value.
    pub rows: f64,
}

/// Comparison of a value with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// Equal.
    Equal,
    /// Equal or larger.
    AtLeast,
}

/// Query of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum TableQuery {
    /// All rows, in the order of the table.
    All,
    /// All rows, in ascending order of a column: one of [`Table::orders`].
    OrderedBy(usize),
    /// Rows of a lookup in a column: column number, operator and key.
    Of(usize, Operator, LookupKey),
}

/// A value to look up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LookupKey {
    /// An integer or an object ID.
    Integer(i64),
    /// A text.
    Text(String),
}

/// Rows of a table that are read at once. Only the table can interpret it.
#[derive(Debug, Clone)]
pub enum TableChunk {
    /// Rows of a list.
    Rows(Range<usize>),
    /// Consecutive objects.
    Objects(Range<ObjectIndex>),
    /// Range of a list of objects.
    Listed(List, Range<usize>),
    /// References between one object and a range of a list of objects.
    With(ObjectId, List, Range<usize>),
    /// References between one object and a range of consecutive objects.
    ObjectsWith(ObjectId, Range<ObjectIndex>),
    /// Elements of an array of references.
    Elements(ObjectIndex, Range<u32>),
}

impl TableChunk {
    /// Returns the number of rows, or of the items that may become rows.
    #[cfg(feature = "sql")]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Rows(range) | Self::Listed(_, range) | Self::With(_, _, range) => range.len(),
            Self::Objects(range) | Self::ObjectsWith(_, range) => range.end.at() - range.start.at(),
            Self::Elements(_, range) => range.len(),
        }
    }
}

/// A shared list of objects.
#[derive(Debug, Clone)]
pub struct List(Items);

/// Storage of a [`List`].
#[derive(Debug, Clone)]
enum Items {
    /// A small number of objects.
    Few(Arc<[ObjectIndex]>),
    /// Up to all objects, in a scratch arena.
    Sorted(Arc<Array<u32>>),
}

/// Object indices of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Indices<'l> {
    Few(&'l [ObjectIndex]),
    Sorted(&'l [u32]),
}

impl Indices<'_> {
    /// Returns the number of objects.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Few(objects) => objects.len(),
            Self::Sorted(objects) => objects.len(),
        }
    }
}

impl List {
    /// Creates a list of these objects.
    pub(crate) fn from_objects(objects: Vec<ObjectIndex>) -> Self {
        Self(Items::Few(objects.into()))
    }

    /// Creates a list from an array of object indices, in the order of the array.
    fn from_sorted(objects: Array<u32>) -> Self {
        Self(Items::Sorted(Arc::new(objects)))
    }

    /// Returns the object indices of the list.
    pub(crate) fn get(&self) -> Indices<'_> {
        match &self.0 {
            Items::Few(objects) => Indices::Few(objects),
            Items::Sorted(objects) => Indices::Sorted(objects),
        }
    }

    /// Returns the objects in a range of the list.
    pub(crate) fn part(&self, range: Range<usize>) -> impl Iterator<Item = ObjectIndex> + '_ {
        let (few, sorted): (&[ObjectIndex], &[u32]) = match self.get() {
            Indices::Few(objects) => (objects.get(range).unwrap_or_default(), &[]),
            Indices::Sorted(objects) => (&[], objects.get(range).unwrap_or_default()),
        };
        few.iter().copied().chain(sorted.iter().copied().map(ObjectIndex))
    }
}

/// A kind of table: the function that returns its definition, and how it produces its rows.
type TableKind = (fn() -> Definition, TableRows);

/// How a table produces its rows.
enum TableRows {
    /// In chunks.
    InChunks(for<'a> fn(Arc<TableContext<'a>>) -> Box<dyn Table + 'a>),
    /// All at once when the first is read.
    AtOnce(small::MakeRows),
}
use TableRows::{AtOnce, InChunks};

/// All tables except tables of single classes, in the order in which they are listed.
const TABLES: [TableKind; 20] = [
    (classes::definition, InChunks(|context| Box::new(classes::Classes::new(context)))),
    (objects::definition, InChunks(|context| Box::new(objects::Objects::new(context)))),
    (refs::definition, InChunks(|context| Box::new(refs::Refs::new(context)))),
    (roots::definition, InChunks(|context| Box::new(roots::Roots::new(context)))),
    (strings::definition, InChunks(|context| Box::new(strings::Strings::new(context)))),
    (arrays::definition, InChunks(|context| Box::new(arrays::Arrays::new(context)))),
    (fields::definition, InChunks(|context| Box::new(fields::Fields::new(context)))),
    (
        || threads::definition(ThreadTableKind::Threads),
        InChunks(|context| ThreadTable::open(context, ThreadTableKind::Threads)),
    ),
    (
        || threads::definition(ThreadTableKind::Frames),
        InChunks(|context| ThreadTable::open(context, ThreadTableKind::Frames)),
    ),
    (
        || threads::definition(ThreadTableKind::Locals),
        InChunks(|context| ThreadTable::open(context, ThreadTableKind::Locals)),
    ),
    (loaders::definition, AtOnce(loaders::make)),
    (recorded::sites, AtOnce(recorded::make_sites)),
    (recorded::samples, AtOnce(recorded::make_samples)),
    (recorded::traces, AtOnce(recorded::make_traces)),
    (dumps::properties, AtOnce(dumps::make_properties)),
    (dumps::labels, AtOnce(dumps::make_labels)),
    (dumps::definition, AtOnce(dumps::make)),
    (suspects::definition, AtOnce(suspects::make)),
    (places::definition, AtOnce(places::make)),
    (waste::definition, AtOnce(waste::make)),
];

/// All tables of a dump.
pub struct Tables<'a> {
    context: Arc<TableContext<'a>>,
    all: Vec<Box<dyn Table + 'a>>,
}

impl<'a> Tables<'a> {
    /// Creates the tables of a dump, with the built-in rules about frameworks.
    pub fn new(dump: &Dump<'a>, about: About) -> Self {
        Self::with_frameworks(dump, about, Frameworks::builtin())
    }

    /// Creates the tables of a dump, with the given rules about frameworks.
    pub fn with_frameworks(dump: &Dump<'a>, about: About, frameworks: Frameworks) -> Self {
        let recording = about.recording.clone();
        let context = Arc::new(TableContext::new(dump, about, frameworks));
        let open = |(definition, rows): &TableKind| match rows {
            InChunks(open) => open(context.clone()),
            AtOnce(make) => small::open(&context, definition(), *make),
        };
        let mut all: Vec<Box<dyn Table + 'a>> = TABLES.iter().map(open).collect();
        if let Some(file) = recording {
            all.push(Box::new(jfr_events::JfrEvents::new(context.clone(), file)));
            all.push(small::open(&context, allocation_sites::definition(), allocation_sites::make));
        }
        Self { context, all }
    }

    /// Returns the context of the tables.
    pub fn context(&self) -> &TableContext<'a> {
        &self.context
    }

    /// Returns all tables, except tables of single classes.
    pub fn all(&self) -> impl Iterator<Item = &(dyn Table + 'a)> {
        self.all.iter().map(|table| &**table)
    }

    /// Returns the table of this name.
    pub fn find(&self, name: &str) -> Option<&(dyn Table + 'a)> {
        self.all().find(|table| table.definition().name == name)
    }

    /// Returns the table of a class: `com.acme.Session`; `com.acme.Session+` with the instances of subclasses;
    /// `com.acme.Session@0x7c0012a8`, by the ID of its class object, for one of several classes of the name.
    ///
    /// # Errors
    /// If there is no such class.
    pub fn of_class(&self, name: &str) -> Result<Box<dyn Table + 'a>, NoClass> {
        Ok(Box::new(of_class::OfClass::new(self.context.clone(), name, false)?))
    }

    /// Returns the table of a class, by a name in any case, as SQL ignores case.
    ///
    /// # Errors
    /// If there is no such class.
    pub fn of_class_in_any_case(&self, name: &str) -> Result<Box<dyn Table + 'a>, NoClass> {
        Ok(Box::new(of_class::OfClass::new(self.context.clone(), name, true)?))
    }
}

/// Returns the definitions of all tables that every dump has, except tables of single classes.
pub fn definitions() -> Vec<Definition> {
    TABLES.iter().map(|(definition, _)| definition()).collect()
}

/// Returns the definitions of the tables that exist if a Flight Recorder recording is given in addition to the dump.
pub fn definitions_of_recordings() -> Vec<Definition> {
    vec![jfr_events::definition(), allocation_sites::definition()]
}
