//! An open dump, as queries see it.

use std::ops::Deref;

use crate::model::summary::Summary;
use crate::objects::object_graph::ObjectGraph;
use crate::objects::reader::ObjectReader;
use crate::open::error::Error;
use crate::open::heap::Heap;
use crate::records::stack_records::StackRecords;
use hprof_input::progress::{Progress, Quiet};

/// An open dump with its graph, without the bytes of its records: the argument of queries that read no records. A query that
/// needs only the summary takes [`Heap`] or [`Summary`].
#[derive(Debug, Clone, Copy)]
pub struct DumpGraph<'a> {
    /// Opened dump, with access to the query results stored in its index.
    pub heap: &'a Heap,
    /// Data about the dump that needs no access to single objects.
    pub summary: &'a Summary,
    /// Objects and references.
    pub graph: &'a ObjectGraph,
}

/// An open dump with its graph and its bytes: the argument of queries that read records.
#[derive(Debug, Clone, Copy)]
pub struct Dump<'a> {
    base: DumpGraph<'a>,
    /// Reader of the contents of objects.
    pub objects: ObjectReader<'a>,
}

impl<'a> DumpGraph<'a> {
    /// Creates the view of a dump that was opened with its graph.
    pub fn new(heap: &'a Heap, graph: &'a ObjectGraph) -> Self {
        Self { heap, summary: heap.summary(), graph }
    }

    /// Returns a view with the records. The unpacked copy of a compressed dump is read once to verify it, and created again if
    /// it is damaged.
    ///
    /// # Errors
    /// [`Error::Unpack`].
    pub fn with_records(&self, progress: &dyn Progress) -> Result<Dump<'a>, Error> {
        let objects = ObjectReader::new(self.summary, self.graph, self.heap.bytes(progress)?);
        Ok(Dump { base: *self, objects })
    }
}

impl<'a> Dump<'a> {
    /// Creates the view of a dump that was opened with its graph ([`DumpGraph::with_records`]).
    ///
    /// # Errors
    /// [`Error::Unpack`].
    pub fn new(heap: &'a Heap, graph: &'a ObjectGraph) -> Result<Self, Error> {
        DumpGraph::new(heap, graph).with_records(&Quiet)
    }

    /// Returns a reader of stack traces.
    pub fn stack_records(&self) -> StackRecords<'a> {
        StackRecords::new(self.summary, self.bytes())
    }

    /// Returns the bytes of the dump, unpacked.
    pub fn bytes(&self) -> &'a [u8] {
        self.objects.bytes()
    }
}

/// Gives access to everything that needs no records.
impl<'a> Deref for Dump<'a> {
    type Target = DumpGraph<'a>;

    fn deref(&self) -> &DumpGraph<'a> {
        &self.base
    }
}
