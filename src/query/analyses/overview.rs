//! Overview of a dump: its origin, the largest holders, the thread that ran out of memory, and anything unusual.
//!
//! The largest dominators are followed down to where the memory accumulates, like leak suspects of Eclipse MAT to their
//! accumulation points: from a class loader through its classes to the map in a static field. Nothing in the overview takes
//! longer than a histogram of reachable objects: waste in a large heap is estimated from a sample.

use std::io;

use hprof_base::share::is_share;
use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::layout::sizes::Sizes;
use hprof_index::storage::id_map::IdSet;
use hprof_values::RootKind;
use serde::{Deserialize, Serialize};

use crate::leaks::heap_limit;
use crate::leaks::holders::{Holder, HolderSearch};
use crate::leaks::off_heap::{self, Buffers};
use crate::waste::estimate::{Estimate, estimate};
use hprof_model::dump::info::{self, DumpInfo};
use hprof_model::generated_loaders::GeneratedLoaders;
use hprof_model::heap_facts::finalizer_queue;
use hprof_model::histogram;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::reader::ObjectReader;
use hprof_model::threads::{JavaThread, Threads};

/// Number of loaders of generated classes from which on it is unusual.
const MANY_GENERATED: u64 = 1000;
/// Number of rows for the largest holders.
const LARGEST: usize = 5;

/// Overview of a dump.
#[derive(Debug, Clone)]
pub struct Overview {
    /// General facts about the dump.
    pub info: DumpInfo,
    /// Number of reachable objects, and their bytes.
    pub reachable: (u64, u64),
    /// Number of unreachable objects, and their bytes.
    pub unreachable: (u64, u64),
    /// Maximum heap size of the JVM, if the dump contains it.
    pub heap_limit: Option<u64>,
    /// Number of threads that were running.
    pub threads: u64,
    /// Number of class loaders, without the boot loader.
    pub class_loaders: u64,
    /// Thread that ran out of memory, with its innermost frames.
    pub out_of_memory: Option<JavaThread>,
    /// Findings of passes over the heap.
    pub found: HeapFindings,
}

/// Findings that require passes over the heap. The other facts of an overview are read from the index.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapFindings {
    /// Largest holders, by retained size.
    pub largest: Vec<Holder>,
    /// Figures that are suspicious if they are high.
    pub odd: UnusualFigures,
    /// Estimate of the waste.
    pub waste: Estimate,
}

/// Minimum percentage of the reachable heap that must be wasted for waste to be reported.
pub const MUCH_WASTE: u64 = 20;

impl Overview {
    /// Returns whether the waste is large enough to be reported.
    pub fn is_much_wasted(&self) -> bool {
        let Estimate { reachable_wasted_bytes: wasted, all_bytes, .. } = self.found.waste;
        wasted > 0 && is_share(wasted, all_bytes, MUCH_WASTE)
    }
}

/// Figures that are suspicious if they are high.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusualFigures {
    /// Number of objects that wait for the finalizer; `None` if the dump does not contain the queue.
    pub finalizer_queue: Option<u64>,
    /// Direct ByteBuffers and their off-heap bytes, without views of other buffers and without mapped files.
    pub direct: Buffers,
    /// Number of class names that several loaders define.
    pub duplicate_classes: u64,
    /// Class name that most loaders define, and the number of those loaders.
    pub most_defined: Option<(String, u64)>,
    /// For each class of loaders that define generated classes: its name, the number of loaders, and the number of their
    /// classes. Empty if there are few such loaders.
    pub generated: Vec<(String, u64, u64)>,
}

impl HeapFindings {
    /// Computes the findings by passes over the heap.
    ///
    /// # Errors
    /// The errors of [`estimate`].
    pub fn find(dump: &Dump<'_>) -> io::Result<Self> {
        Ok(Self {
            largest: HolderSearch::new(dump).largest(LARGEST, &Threads::new(dump)),
            odd: odd(&dump.objects),
            waste: estimate(dump)?,
        })
    }
}

/// Creates the overview of a dump from the findings of passes over its heap, with `depth` frames of the thread that
/// ran out of memory.
pub fn overview(dump: &Dump<'_>, depth: usize, found: HeapFindings) -> Overview {
    let summary = dump.summary;
    let info = info::info(dump.heap, &Sizes::new(summary, None));
    let reachable = (u64::from(dump.graph.tree.reachable()), dump.graph.tree.reachable_bytes());
    let objects: u64 = info.objects.iter().sum();
    let threads = Threads::new(dump);
    let roots = dump.graph.roots.rows.iter().filter(|root| root.kind == RootKind::ThreadObject);
    let running: IdSet<ObjectIndex> = roots.map(|root| root.object).collect();
    let loaders = ClassSet::of_name_and_below(summary, "java.lang.ClassLoader");
    let of_class = |class| summary.class(class).map_or(0, |row| histogram::instances(summary, class, row));
    Overview {
        reachable,
        unreachable: (objects.saturating_sub(reachable.0), info.shallow_bytes.saturating_sub(reachable.1)),
        heap_limit: heap_limit(summary).filter(|limit| *limit >= info.shallow_bytes / 100 * 98),
        threads: running.len() as u64,
        class_loaders: loaders.classes().map(of_class).sum(),
        out_of_memory: threads.out_of_memory(depth).map(|row| threads.thread(&row)),
        found,
        info,
    }
}

fn odd(objects: &ObjectReader<'_>) -> UnusualFigures {
    let mut odd = UnusualFigures {
        finalizer_queue: finalizer_queue(objects),
        direct: off_heap::direct(objects),
        ..UnusualFigures::default()
    };
    let summary = objects.summary;
    let generated = GeneratedLoaders::new(summary);
    let most = generated.largest().filter(|(_, loaders, _)| *loaders >= MANY_GENERATED);
    odd.generated.extend(most.map(|(class, loaders, classes)| (class.to_owned(), loaders, classes)));
    let dumped = summary.classes().iter().filter(|class| class.is_dumped());
    let mut classes: Vec<(&str, u64)> = dumped
        .map(|class| (summary.class_name(class), class.loader.get()))
        .filter(|(name, _)| !name.ends_with("[]"))
        .collect();
    classes.sort_unstable();
    classes.dedup();
    for same_name in classes.chunk_by(|(a, _), (b, _)| a == b).filter(|same| same.len() > 1) {
        odd.duplicate_classes += 1;
        let loaders = same_name.len() as u64;
        if let Some((name, _)) = same_name.first()
            && odd.most_defined.as_ref().is_none_or(|(_, most)| *most < loaders)
        {
            odd.most_defined = Some(((*name).to_owned(), loaders));
        }
    }
    odd
}
