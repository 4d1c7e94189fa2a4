//! Allocation sites counted over the objects of a heap dump, for dumps without ALLOC SITES.

use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};

use super::{Origin, Site, Sites};
use hprof_base::sorting::SortRows;
use hprof_index::Progress;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::objects::record_plan::RecordPlans;
use hprof_index::scan::file_order::{Classes, OrderedChunks};
use hprof_index::storage::id_map::IdMap;
use hprof_model::histogram;
use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use hprof_values::TraceSerial;

/// Counts the objects of each class and trace; `None` if there are no objects.
///
/// If all objects state the same trace, as HotSpot writes them, the class histogram suffices and no objects are read.
pub(super) fn count(
    summary: &Summary,
    sizes: &Sizes,
    bytes: &[u8],
    progress: &dyn Progress,
) -> Option<Sites> {
    let facts = summary.facts();
    let (lowest, highest) = (TraceSerial::from(facts.min_trace), TraceSerial::from(facts.max_trace));
    let mut rows: Vec<Site> = if lowest == highest {
        one_trace(summary, sizes, highest)
    } else if lowest < highest {
        several_traces(summary, sizes, bytes, progress)
    } else {
        Vec::new()
    };
    if rows.is_empty() {
        return None;
    }
    rows.sort_rows_by(|a, b| {
        (Reverse(a.live_bytes), &a.class, a.trace, a.live_instances).cmp(&(
            Reverse(b.live_bytes),
            &b.class,
            b.trace,
            b.live_instances,
        ))
    });
    let mut total = Site::default();
    for site in &rows {
        total.live_bytes = total.live_bytes.saturating_add(site.live_bytes);
        total.live_instances = total.live_instances.saturating_add(site.live_instances);
    }
    (total.allocated_bytes, total.allocated_instances) = (total.live_bytes, total.live_instances);
    let date = super::rfc3339(facts.created_ms.get(), facts.time_us.get());
    let mut sites =
        Sites { origin: Origin::Objects, rows, total: Some(total), event: None, by_allocation: false, date };
    sites.fill_percentages();
    Some(sites)
}

fn site(
    summary: &Summary,
    class: Option<ClassNumber>,
    trace: TraceSerial,
    instances: u64,
    bytes: u64,
) -> Site {
    let name = class.and_then(|class| summary.class(class)).map(|class| summary.class_name(class));
    Site {
        class: name.unwrap_or(UNKNOWN_CLASS).into(),
        trace,
        live_bytes: bytes,
        live_instances: instances,
        allocated_bytes: bytes,
        allocated_instances: instances,
        ..Site::default()
    }
}

const UNKNOWN_CLASS: &str = "<unknown class>";

fn one_trace(summary: &Summary, sizes: &Sizes, trace: TraceSerial) -> Vec<Site> {
    (summary.numbered_classes())
        .map(|(number, class)| (number, histogram::instances(summary, number, class)))
        .filter(|(_, instances)| *instances > 0)
        .map(|(number, instances)| site(summary, Some(number), trace, instances, sizes.total(number)))
        .collect()
}

fn several_traces(summary: &Summary, sizes: &Sizes, bytes: &[u8], progress: &dyn Progress) -> Vec<Site> {
    let (classes, plans) = (Classes::new(summary), RecordPlans::new(summary, sizes));
    let chunks = OrderedChunks::new(bytes, summary, &classes);
    let walk = chunks.walker();
    progress.begin("counting allocation sites", chunks.bytes());
    let (chunks, counted) = (Mutex::new(chunks), Mutex::new(Counts::default()));
    rayon::broadcast(|_| {
        let mut counter = Counter { summary, sizes, plans: &plans, counts: Counts::default(), skip: false };
        loop {
            let chunk = chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(chunk) = chunk else { break };
            // A long array is split into several chunks; only the first chunk counts as an object.
            counter.skip = chunk.elements.as_ref().is_some_and(|elements| elements.start > 0);
            walk.chunk(&chunk, &mut counter);
            progress.advance(chunk.bytes());
        }
        let mut all = counted.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, (instances, bytes)) in counter.counts {
            let sum = all.entry(key).or_default();
            *sum = (sum.0 + instances, sum.1 + bytes);
        }
    });
    progress.end();
    let counted = counted.into_inner().unwrap_or_else(PoisonError::into_inner);
    let class = |number| Some(ClassNumber(number)).filter(|number| summary.class(*number).is_some());
    let rows = counted.into_iter();
    rows.map(|((number, trace), (instances, bytes))| site(summary, class(number), trace, instances, bytes))
        .collect()
}

/// Objects and bytes by class and trace; the class is a class number, or the highest number for none.
type Counts = IdMap<(u32, TraceSerial), (u64, u64)>;

struct Counter<'a> {
    summary: &'a Summary,
    sizes: &'a Sizes,
    plans: &'a RecordPlans<'a>,
    counts: Counts,
    skip: bool,
}

impl Counter<'_> {
    fn count(&mut self, class: Option<ClassNumber>, trace: TraceSerial, bytes: u64) {
        if self.skip {
            return;
        }
        let sum = self.counts.entry((class.map_or(u32::MAX, |class| class.0), trace)).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add(bytes));
    }
}

impl<'a> HeapVisitor<'a> for Counter<'_> {
    fn instance(&mut self, record: Instance<'a>) {
        let class = self.plans.class(record.class);
        let plan = class.and_then(|class| self.plans.plan(class));
        let bytes = plan.map_or(0, |plan| self.plans.instance(plan, &record));
        self.count(class, record.trace, bytes);
    }
    fn object_array(&mut self, record: ObjectArray<'a>) {
        let bytes = self.plans.object_array(&record);
        self.count(self.plans.array_class(record.class), record.trace, bytes);
    }
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        let bytes = self.plans.primitive_array(&record);
        self.count(self.plans.primitive(record.element), record.trace, bytes);
    }
    fn class(&mut self, record: ClassDump<'a>) {
        let Some(class) = self.plans.class(record.id) else { return };
        if self.plans.is_counted(class, record.offset) {
            let bytes = self.sizes.class_object(class);
            self.count(self.summary.java_lang_class(), record.trace, bytes);
        }
    }
}
