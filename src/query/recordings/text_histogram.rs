//! The class histogram of a text report's HEAP DUMP.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_values::ObjectId;

use crate::profile::text::{TextClass, TextHeap};
use hprof_model::histogram::{self, Histogram, HistogramGroupBy, HistogramQuery, HistogramRow, Loader};

/// Counts objects by class, package or loader, as [`hprof_model::histogram::histogram`] does for a binary dump.
pub fn histogram(heap: &TextHeap, question: &HistogramQuery) -> Histogram {
    let mut rows: Vec<HistogramRow> = Vec::new();
    let mut known: FxHashMap<(Arc<str>, Option<ObjectId>), usize> = FxHashMap::default();
    let classes = heap.classes.iter().filter(|class| class.instances > 0);
    for class in classes.filter(|class| question.is_meant(&class.name, class.class_object)) {
        let row = match question.group_by {
            HistogramGroupBy::Class => HistogramRow {
                name: class.name.as_str().into(),
                loader: loader(class),
                // Only a class with a CLS line has a class object in the text.
                class_object: class.class_object.filter(|_| class.loader.is_some()),
                ..HistogramRow::default()
            },
            HistogramGroupBy::Package => {
                HistogramRow { name: histogram::package_label(&class.name).into(), ..HistogramRow::default() }
            }
            HistogramGroupBy::Loader => HistogramRow { loader: loader(class), ..HistogramRow::default() },
        };
        let at = match question.group_by {
            HistogramGroupBy::Class => rows.len(),
            HistogramGroupBy::Package | HistogramGroupBy::Loader => {
                let key = (row.name.clone(), row.loader.as_ref().map(|loader| loader.id));
                *known.entry(key).or_insert(rows.len())
            }
        };
        if at == rows.len() {
            rows.push(HistogramRow { group: at, ..row });
        }
        if let Some(row) = rows.get_mut(at) {
            row.classes += 1;
            row.instances = row.instances.saturating_add(class.instances);
            row.shallow_bytes = row.shallow_bytes.saturating_add(class.shallow_bytes);
        }
    }
    let all = heap.classes.iter().filter(|class| class.instances > 0);
    let heap_bytes = all.fold(0u64, |sum, class| sum.saturating_add(class.shallow_bytes));
    histogram::finish(rows, question, heap_bytes)
}

fn loader(class: &TextClass) -> Option<Loader> {
    class.loader.map(|id| Loader { id, class: class.loader_class.as_deref().map(Arc::from) })
}
