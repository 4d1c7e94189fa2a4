//! What a scan is given: the dump, its chunks, and how ids are taken in.

use std::sync::atomic::AtomicUsize;

use hprof_parser::{IdSize, ObjectId};

use crate::objects::id_set::AddressSet;
use crate::records::chunks::RecordChunk;
use crate::records::preview::Preview;
use crate::storage::allowance::Allowance;
use hprof_input::progress::Progress;

/// How a scan learns that ids are unique, and how it measures distances between them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mode<'s> {
    /// Ids ascend in long runs: the next record is the next object.
    Ordered,
    /// As [`Mode::Ordered`], and all ids go into a set that is wanted later.
    Collect(&'s AddressSet),
    /// Ids jump about: they go into a set; distances are measured in a second pass.
    Unordered(&'s AddressSet),
    /// The second pass.
    Measure(&'s AddressSet),
    /// As [`Mode::Ordered`], and all ids go into a list that is wanted later.
    OrderedList,
    /// Ids fit no set of bits: a list is kept. Nothing is measured.
    List,
}

/// What a scan is given.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) bytes: &'a [u8],
    /// What tables may take.
    pub(crate) allowance: &'a Allowance,
    pub(crate) id_size: IdSize,
    pub(crate) chunks: &'a [RecordChunk],
    /// Whether the chunks were cut by hopping: then there is no better way to cut them.
    pub(crate) exact: bool,
    /// Class objects that objects were found to lie around, in the whole scan.
    pub(crate) passed: &'a AtomicUsize,
    pub(crate) known: &'a Preview,
    /// Ids of class objects, ascending: those that stand between objects in address order.
    pub(crate) class_ids: &'a [u64],
    /// The class `jdk.internal.vm.StackChunk`, whose instances vary in size.
    pub(crate) stack_chunk: Option<ObjectId>,
    pub(crate) progress: &'a dyn Progress,
}

/// The class objects that lie strictly between two addresses.
pub(crate) fn classes_between(class_ids: &[u64], low: u64, high: u64) -> &[u64] {
    let from = class_ids.partition_point(|id| *id <= low);
    let to = class_ids.partition_point(|id| *id < high);
    class_ids.get(from..to).unwrap_or_default()
}
