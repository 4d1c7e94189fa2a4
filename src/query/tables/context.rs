//! What the tables of a dump are made of.

use std::sync::{Arc, OnceLock};

use super::batch::Names;
use crate::hprof::ObjectId;
use crate::index::graph::numbers::ObjectIndex;
use crate::index::layout::sizes::Sizes;
use crate::index::model::summary::{ClassNumber, Summary};
use crate::index::{Heap, ObjectGraph};
use crate::query::objects::reader::Objects;
use crate::query::objects::reference_names::Edges;

/// A dump, and what several tables ask of it.
#[derive(Debug)]
pub struct Context<'a> {
    /// The dump.
    pub heap: &'a Heap,
    /// What is known of classes.
    pub summary: &'a Summary,
    /// The graph.
    pub graph: &'a ObjectGraph,
    /// The dump's bytes.
    pub bytes: &'a [u8],
    /// Reads objects.
    pub objects: Objects<'a>,
    /// What sizes are.
    pub sizes: Sizes,
    /// The names of all classes, by class number.
    pub class_names: Names,
    /// What the dump is called, and the labels that it was given.
    pub about: About,
    edges: OnceLock<Edges<'a>>,
}

/// What a dump is called among others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Labels that the user gave it: name and value.
    pub labels: Vec<(String, String)>,
}

impl<'a> Context<'a> {
    /// Of an opened dump; `bytes` are the dump's ([`Heap::bytes`]).
    pub fn new(heap: &'a Heap, graph: &'a ObjectGraph, bytes: &'a [u8], about: About) -> Self {
        let summary = heap.summary();
        let names = summary.classes().iter().map(|class| summary.class_name(class).to_owned());
        Self {
            heap,
            summary,
            graph,
            bytes,
            objects: Objects::new(summary, graph, bytes),
            sizes: Sizes::new(summary, None),
            class_names: Arc::new(names.collect()),
            about,
            edges: OnceLock::new(),
        }
    }

    /// What references mean.
    pub fn edges(&self) -> &Edges<'a> {
        self.edges.get_or_init(|| Edges::new(self.summary, self.graph, self.bytes))
    }

    /// The ID of an object.
    pub fn id(&self, object: ObjectIndex) -> Option<ObjectId> {
        self.graph.objects.addresses.id_of(object)
    }

    /// The object of an ID, as it stands in a table.
    pub fn object(&self, id: i64) -> Option<ObjectIndex> {
        self.graph.objects.addresses.index_of(ObjectId(id.cast_unsigned()))
    }

    /// The ID of the class object of a class, which is the class's ID.
    pub fn class_id(&self, class: ClassNumber) -> Option<ObjectId> {
        let id = ObjectId::from(self.summary.class(class)?.id);
        (!id.is_null()).then_some(id)
    }
}
