//! Labels: a few words that tell an object from others of its class.
//!
//! A thread has its name, a string its text, a class object the class, a file its path. What objects mean is known to
//! [`super::meaning`]; a label is the start of it. It is cheap: it looks at the object's record and follows at most a few
//! references, and it is short, whatever the dump holds.

use crate::index::graph::numbers::ObjectIndex;
use crate::index::{Heap, ObjectGraph};

use super::meaning::Meanings;

/// Characters of a label; what is longer ends with an ellipsis.
pub const MAX_CHARS: usize = 120;

/// Characters of a label that is to be whole.
const MAX_WHOLE: usize = 1 << 16;

/// Labels of the objects of a heap.
#[derive(Debug)]
pub struct Labels<'a> {
    meanings: Meanings<'a>,
}

impl<'a> Labels<'a> {
    /// Labels of the objects of `graph`; `bytes` are the dump's ([`Heap::bytes`]).
    pub fn new(heap: &'a Heap, graph: &'a ObjectGraph, bytes: &'a [u8]) -> Self {
        Self { meanings: Meanings::new(heap.summary(), graph, bytes) }
    }

    /// The label of an object, if it has one. Not escaped.
    pub fn label(&self, object: ObjectIndex) -> Option<String> {
        self.meanings.short(object, MAX_CHARS)
    }

    /// The same, but not cut to a few words. Bounded all the same.
    pub fn whole(&self, object: ObjectIndex) -> Option<String> {
        self.meanings.meaning(object, MAX_WHOLE).map(|meaning| meaning.text)
    }
}
