//! An open dump, as queries see it.

use crate::model::summary::Summary;
use crate::objects::object_graph::ObjectGraph;
use crate::objects::reader::ObjectReader;
use crate::open::error::Error;
use crate::open::heap::Heap;
use hprof_input::progress::Quiet;

/// An open dump with its graph: the one argument of queries that look at objects. A question that the summary answers takes
/// [`Heap`] or [`Summary`].
#[derive(Debug, Clone, Copy)]
pub struct Dump<'a> {
    /// The file, and answers kept in its index.
    pub heap: &'a Heap,
    /// Classes and other records.
    pub summary: &'a Summary,
    /// Objects and references.
    pub graph: &'a ObjectGraph,
    /// What objects contain.
    pub objects: ObjectReader<'a>,
}

impl<'a> Dump<'a> {
    /// Creates the view of a dump that was opened with its graph.
    ///
    /// # Errors
    /// [`Error::Unpack`].
    pub fn new(heap: &'a Heap, graph: &'a ObjectGraph) -> Result<Self, Error> {
        let summary = heap.summary();
        // With a graph, a compressed dump has been unpacked: there is no progress.
        let objects = ObjectReader::new(summary, graph, heap.bytes(&Quiet)?);
        Ok(Self { heap, summary, graph, objects })
    }

    /// Returns the bytes of the dump, unpacked.
    pub fn bytes(&self) -> &'a [u8] {
        self.objects.bytes()
    }
}
