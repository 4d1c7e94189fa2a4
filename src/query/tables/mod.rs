//! A dump as tables: rows and columns for SQL, and for engines that read files.
//!
//! A [`Table`] declares its columns once ([`definition`]) and makes its rows column by column, a [`Batch`] at a time, from
//! chunks that do not depend on one another. SQL reads the chunks that a lookup leaves, one after another; an export reads
//! all of them with all threads. [`Tables`] has the tables of a dump.

mod arrays;
pub mod batch;
mod classes;
mod context;
pub mod definition;
mod fields;
mod names;
mod object_chunks;
mod objects;
mod of_class;
mod of_classes;
mod refs;
mod roots;
mod small;
mod strings;
mod tree_rows;

use std::io;
use std::ops::Range;
use std::sync::Arc;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::storage::scratch::Array;
use hprof_index::{Heap, ObjectGraph};
use hprof_parser::ObjectId;

use small::threads::{self, Of, ThreadTable};
use small::{dumps, loaders, places, recorded, suspects, waste};

pub use batch::{Batch, Cell, NO_NAME, Values};
pub use context::{About, Context};
pub use definition::{Column, Definition, Kind, Wanted};
pub use names::{NameList, Names};
pub use of_class::NoClass;

/// A table of a dump.
pub trait Table: Send + Sync {
    /// Its columns.
    fn definition(&self) -> &Definition;

    /// About how many rows it has.
    fn rows(&self) -> u64;

    /// What it finds without reading all rows.
    fn lookups(&self) -> Vec<Lookup> {
        Vec::new()
    }

    /// The columns by which it can sort its rows, ascending, for less than a sort of all rows takes.
    fn orders(&self) -> Vec<usize> {
        Vec::new()
    }

    /// The different values that a column of names begins with.
    fn names(&self, column: usize) -> Names {
        let _ = column;
        Names::default()
    }

    /// The chunks of the rows that are asked for, in the order of rows. Of a lookup rows may be among them that do not match.
    ///
    /// # Errors
    /// If what the table is made of cannot be read.
    fn chunks(&self, question: &Question) -> io::Result<Vec<Chunk>>;

    /// Makes what reads these columns of most rows faster, as long as it is kept; nothing if that is not worth its time and
    /// memory, or if `stop` says so meanwhile. It takes all cores: not for a thread that reads a chunk.
    fn prepare(&self, wanted: Wanted, stop: &(dyn Fn() -> bool + Sync)) -> Option<Prepared> {
        let _ = (wanted, stop);
        None
    }

    /// Adds the rows of a chunk to a batch that [`Table::batch`] made for the same columns.
    ///
    /// # Errors
    /// As [`Table::chunks`].
    fn read(&self, chunk: &Chunk, wanted: Wanted, batch: &mut Batch) -> io::Result<()>;

    /// A batch without rows.
    fn batch(&self, wanted: Wanted) -> Batch {
        Batch::new(&self.definition().columns, wanted, |column| self.names(column))
    }
}

/// What [`Table::prepare`] made.
#[derive(Debug, Clone)]
pub struct Prepared(#[allow(dead_code)] Arc<tree_rows::TreeRows>);

/// What a table finds without reading all rows: rows whose value in a column is one that is given, or no less.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lookup {
    /// The column.
    pub column: usize,
    /// How its values are compared.
    pub operator: Operator,
    /// About how many rows there are of one value.
    pub rows: f64,
}

/// How a value is compared with the one that is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// It is the same.
    Equal,
    /// It is the same or larger.
    AtLeast,
}

/// Which rows are asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// All, in the order of the table.
    All,
    /// All, in ascending order of a column: one of [`Table::orders`].
    OrderedBy(usize),
    /// Those of a lookup: its column and how, and the value.
    Of(usize, Operator, Key),
}

/// A value that is looked up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// A whole number or an object ID.
    Integer(i64),
    /// A text.
    Text(String),
}

/// Rows of a table that are read at once. What it stands for is known to its table.
#[derive(Debug, Clone)]
pub enum Chunk {
    /// Rows of a list.
    Rows(Range<usize>),
    /// Some objects that follow one another.
    Objects(Range<ObjectIndex>),
    /// Some objects.
    Listed(List, Range<usize>),
    /// What some objects have to do with one.
    With(ObjectId, List, Range<usize>),
    /// The same of some objects that follow one another.
    ObjectsWith(ObjectId, Range<ObjectIndex>),
    /// Some elements of an array of references.
    Elements(ObjectIndex, Range<u32>),
}

impl Chunk {
    /// Rows, or what there is of which rows may be made.
    #[cfg(feature = "sql")]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Rows(range) | Self::Listed(_, range) | Self::With(_, _, range) => range.len(),
            Self::Objects(range) | Self::ObjectsWith(_, range) => range.end.at() - range.start.at(),
            Self::Elements(_, range) => range.len(),
        }
    }
}

/// A list of objects.
#[derive(Debug, Clone)]
pub struct List(Items);

#[derive(Debug, Clone)]
enum Items {
    /// A few.
    Few(Arc<[ObjectIndex]>),
    /// As many as there are: in a scratch arena.
    Sorted(Arc<Array<u32>>),
}

/// The object indices of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Indices<'l> {
    Few(&'l [ObjectIndex]),
    Sorted(&'l [u32]),
}

impl Indices<'_> {
    /// How many there are.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Few(objects) => objects.len(),
            Self::Sorted(objects) => objects.len(),
        }
    }
}

impl List {
    /// These objects.
    pub(crate) fn of(objects: Vec<ObjectIndex>) -> Self {
        Self(Items::Few(objects.into()))
    }

    /// All objects, in an order.
    fn sorted(objects: Array<u32>) -> Self {
        Self(Items::Sorted(Arc::new(objects)))
    }

    /// All of it.
    pub(crate) fn get(&self) -> Indices<'_> {
        match &self.0 {
            Items::Few(objects) => Indices::Few(objects),
            Items::Sorted(objects) => Indices::Sorted(objects),
        }
    }

    /// A part of it.
    pub(crate) fn part(&self, range: Range<usize>) -> impl Iterator<Item = ObjectIndex> + '_ {
        let (few, sorted): (&[ObjectIndex], &[u32]) = match self.get() {
            Indices::Few(objects) => (objects.get(range).unwrap_or_default(), &[]),
            Indices::Sorted(objects) => (&[], objects.get(range).unwrap_or_default()),
        };
        few.iter().copied().chain(sorted.iter().copied().map(ObjectIndex))
    }
}

/// A table: its definition, and its rows.
type TableKind = (fn() -> Definition, TableRows);

/// How a table makes its rows.
enum TableRows {
    /// In chunks.
    InChunks(for<'a> fn(Arc<Context<'a>>) -> Box<dyn Table + 'a>),
    /// All of them when the first is read.
    AtOnce(small::Make),
}
use TableRows::{AtOnce, InChunks};

/// All tables, but those of single classes, in the order in which they are listed.
const TABLES: [TableKind; 20] = [
    (classes::definition, InChunks(|context| Box::new(classes::Classes::new(context)))),
    (objects::definition, InChunks(|context| Box::new(objects::Objects::new(context)))),
    (refs::definition, InChunks(|context| Box::new(refs::Refs::new(context)))),
    (roots::definition, InChunks(|context| Box::new(roots::Roots::new(context)))),
    (strings::definition, InChunks(|context| Box::new(strings::Strings::new(context)))),
    (arrays::definition, InChunks(|context| Box::new(arrays::Arrays::new(context)))),
    (fields::definition, InChunks(|context| Box::new(fields::Fields::new(context)))),
    (|| threads::definition(Of::Threads), InChunks(|context| ThreadTable::open(context, Of::Threads))),
    (|| threads::definition(Of::Frames), InChunks(|context| ThreadTable::open(context, Of::Frames))),
    (|| threads::definition(Of::Locals), InChunks(|context| ThreadTable::open(context, Of::Locals))),
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

/// The tables of a dump.
pub struct Tables<'a> {
    context: Arc<Context<'a>>,
    all: Vec<Box<dyn Table + 'a>>,
}

impl<'a> Tables<'a> {
    /// Of an opened dump; `bytes` are the dump's ([`Heap::bytes`]).
    pub fn new(heap: &'a Heap, graph: &'a ObjectGraph, bytes: &'a [u8], about: About) -> Self {
        let context = Arc::new(Context::new(heap, graph, bytes, about));
        let open = |(definition, rows): &TableKind| match rows {
            InChunks(open) => open(context.clone()),
            AtOnce(make) => small::open(&context, definition(), *make),
        };
        let all = TABLES.iter().map(open).collect();
        Self { context, all }
    }

    /// What they are made of.
    pub fn context(&self) -> &Context<'a> {
        &self.context
    }

    /// All of them, but those of single classes.
    pub fn all(&self) -> impl Iterator<Item = &(dyn Table + 'a)> {
        self.all.iter().map(|table| &**table)
    }

    /// The table of this name.
    pub fn find(&self, name: &str) -> Option<&(dyn Table + 'a)> {
        self.all().find(|table| table.definition().name == name)
    }

    /// The table of a class: `com.acme.Session`; `com.acme.Session+` with the instances of subclasses;
    /// `com.acme.Session@0x7c0012a8`, by the ID of its class object, of one of several classes of the name.
    ///
    /// # Errors
    /// If there is none.
    pub fn of_class(&self, name: &str) -> Result<Box<dyn Table + 'a>, NoClass> {
        Ok(Box::new(of_class::OfClass::new(self.context.clone(), name, false)?))
    }

    /// The same, by a name that is written as SQL allows it: case does not tell names apart.
    ///
    /// # Errors
    /// If there is none.
    pub fn of_class_in_any_case(&self, name: &str) -> Result<Box<dyn Table + 'a>, NoClass> {
        Ok(Box::new(of_class::OfClass::new(self.context.clone(), name, true)?))
    }
}

/// What all tables have, but those of single classes.
pub fn definitions() -> Vec<Definition> {
    TABLES.iter().map(|(definition, _)| definition()).collect()
}
