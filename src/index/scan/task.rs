//! Input of a scan: the dump, its chunks, and the mode for IDs.

use std::sync::atomic::AtomicUsize;

use hprof_values::{IdSize, ObjectId};

use crate::objects::id_set::AddressSet;
use crate::records::chunks::RecordChunk;
use crate::records::preview::Preview;
use crate::storage::allowance::Allowance;
use hprof_input::progress::Progress;

/// Mode in which a scan verifies that IDs are unique, and measures distances between them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mode<'s> {
    /// IDs ascend in long runs: the next record is the next object.
    Ordered,
    /// IDs ascend in long runs, and all IDs are added to a set for later use.
    Collect(&'s AddressSet),
    /// IDs are unordered: they are added to a set; distances are measured in a second pass.
    Unordered(&'s AddressSet),
    /// The second pass.
    Measure(&'s AddressSet),
    /// IDs ascend in long runs, and all IDs are added to a list for later use.
    OrderedList,
    /// No bit set can contain the IDs: they are added to a list. Nothing is measured.
    List,
}

/// Input of a scan.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) bytes: &'a [u8],
    /// Memory for tables.
    pub(crate) allowance: &'a Allowance,
    pub(crate) id_size: IdSize,
    pub(crate) chunks: &'a [RecordChunk],
    /// `true` if the chunks were divided by walking over sub-records: there is no more reliable way.
    pub(crate) exact: bool,
    /// Number of class objects passed between two objects, in the whole scan.
    pub(crate) passed: &'a AtomicUsize,
    pub(crate) known: &'a Preview,
    /// IDs of class objects, ascending: those between objects in address order.
    pub(crate) class_ids: &'a [u64],
    /// ID of the class `jdk.internal.vm.StackChunk`, whose instances vary in size.
    pub(crate) stack_chunk: Option<ObjectId>,
    /// Highest ID of a flattened object; 0 if there are none, or it is not known yet.
    pub(crate) last_flat: u64,
    pub(crate) progress: &'a dyn Progress,
}

/// Returns the class objects that are strictly between two addresses.
pub(crate) fn classes_between(class_ids: &[u64], low: u64, high: u64) -> &[u64] {
    let from = class_ids.partition_point(|id| *id <= low);
    let to = class_ids.partition_point(|id| *id < high);
    class_ids.get(from..to).unwrap_or_default()
}
