//! Allocation site of accumulated objects: their most frequent trace. Dumps of the hprof agent have traces, HotSpot's
//! own have none.

use rustc_hash::FxHashMap;

use hprof_base::sorting::SortRows;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::objects::reader::ObjectRecord;
use hprof_index::{Dump, DumpGraph};
use hprof_model::threads::frames::{Frame, Frames};
use hprof_values::{TraceSerial, names};

use super::contents::ContentsLevel;

/// Maximum number of objects whose traces are read. They are evenly distributed, since each is in a different part of the dump.
const MAX_READ: usize = 10_000;
/// Maximum number of frames.
const MAX_FRAMES: usize = 64;

/// Allocation site of the accumulated objects of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocation {
    /// Class of the objects.
    pub class: String,
    /// Number of objects examined.
    pub objects: u64,
    /// Number of examined objects that have the trace.
    pub of_trace: u64,
    /// Serial number of the most frequent trace.
    pub trace: TraceSerial,
    /// Frames of the trace, innermost first.
    pub frames: Vec<Frame>,
}

impl Allocation {
    /// Returns the innermost frame outside the JDK, or else the innermost frame.
    pub fn frame(&self) -> Option<&Frame> {
        self.frames.iter().find(|frame| frame.is_own()).or(self.frames.first())
    }
}

/// Finds the allocation site of the accumulated objects of one class: the application class with most objects, or else the last
/// class. `None` if no object has a trace with frames.
pub(super) fn find(dump: &Dump<'_>, tops: &[TreePosition], levels: &[ContentsLevel]) -> Option<Allocation> {
    // HotSpot gives all objects the trace 1, which does not exist.
    if dump.summary.facts().max_trace.get() <= 1 {
        return None;
    }
    let mut of = levels.iter().filter(|level| !level.is_class_object);
    let own = |level: &&ContentsLevel| !names::is_of_jdk(&level.class) && !level.class.ends_with("[]");
    let most = of.clone().filter(own).max_by_key(|level| level.objects);
    let class = most.or_else(|| of.next_back())?.class.clone();
    let objects = dump.objects;
    let mut traces: FxHashMap<TraceSerial, u64> = FxHashMap::default();
    let read = spread(dump, tops, &class);
    for object in &read {
        if let Some(record) =
            objects.record(*object).filter(|record| !matches!(record, ObjectRecord::Class(_)))
        {
            *traces.entry(record.trace()).or_default() += 1;
        }
    }
    let frames = Frames::new(dump);
    // The first trace, if several are equal.
    let mut ranked: Vec<_> = traces.into_iter().collect();
    ranked.sort_rows_by_key(|(trace, objects)| (u64::MAX - objects, trace.0));
    ranked.into_iter().find_map(|(trace, of_trace)| {
        let frames: Vec<_> =
            frames.of_trace(trace).take(MAX_FRAMES).filter_map(|id| frames.frame(id)).collect();
        let objects = read.len() as u64;
        (!frames.is_empty()).then(|| Allocation { class: class.clone(), objects, of_trace, trace, frames })
    })
}

/// Returns up to [`MAX_READ`] objects of a class that `tops` dominate, evenly distributed.
fn spread(dump: &DumpGraph<'_>, tops: &[TreePosition], class: &str) -> Vec<ObjectIndex> {
    let wanted: Vec<_> = (dump.summary.numbered_classes())
        .filter(|(_, row)| dump.summary.class_name(row) == class)
        .map(|(number, _)| number)
        .collect();
    let mut found = Vec::new();
    let (mut stride, mut next) = (1, 0u64);
    for top in tops {
        for position in top.0..dump.graph.tree.end(*top).0 {
            let Some(object) = dump.graph.tree.object_at(TreePosition(position)) else { continue };
            if !dump.graph.objects.class(object).is_some_and(|class| wanted.contains(&class)) {
                continue;
            }
            if next.is_multiple_of(stride) {
                found.push(object);
            }
            next += 1;
            if found.len() >= 2 * MAX_READ {
                // Drops every other object, now and from here on.
                let mut keep = false;
                found.retain(|_| {
                    keep = !keep;
                    keep
                });
                stride *= 2;
            }
        }
    }
    let step = found.len().div_ceil(MAX_READ).max(1);
    found.into_iter().step_by(step).collect()
}
