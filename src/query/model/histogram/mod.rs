//! The class histogram: number of objects and shallow size of each class.

pub mod hierarchy;
pub mod listing;

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_index::graph::numbers::TreePosition;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::model::tables::{ClassKind, ClassRow, NONE};
use hprof_index::{DumpGraph, ObjectGraph};
use hprof_values::{ObjectId, names};

use crate::dominators::class_counts::{self, Counts};
use crate::dominators::retained_of_class;
use crate::generated_loaders::GeneratedLoaders;
use crate::objects::object_set::Bits;
use hprof_base::naming::pattern::{ClassPattern, any_matches};
use hprof_base::sorting::SortRows;

/// Grouping of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HistogramGroupBy {
    /// A class; classes of the same name from several loaders have a row each.
    #[default]
    Class,
    /// All classes of a package; arrays belong to their elements' package.
    Package,
    /// All classes of a loader.
    Loader,
}

/// Order of the rows of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HistogramOrder {
    /// Most bytes first.
    #[default]
    Bytes,
    /// Most instances first.
    Instances,
    /// Most retained bytes first.
    Retained,
    /// Ascending by name.
    Name,
}

/// Filters, grouping and order of a histogram.
#[derive(Debug, Clone, Default)]
pub struct HistogramQuery {
    /// Patterns of class names; all classes match if there is neither a pattern nor a class object.
    pub patterns: Vec<ClassPattern>,
    /// Class objects whose classes match.
    pub class_objects: Vec<ObjectId>,
    /// Grouping of the rows.
    pub group_by: HistogramGroupBy,
    /// Order of the rows.
    pub sort_by: HistogramOrder,
    /// Number of rows returned; all by default.
    pub top: Option<usize>,
}

impl HistogramQuery {
    /// Returns whether a class of this name and class object is selected.
    pub fn is_meant(&self, name: &str, class_object: Option<ObjectId>) -> bool {
        if self.class_objects.is_empty() {
            return any_matches(&self.patterns, name);
        }
        class_object.is_some_and(|id| self.class_objects.contains(&id))
            || self.patterns.iter().any(|pattern| pattern.matches(name))
    }
}

/// A class loader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loader {
    /// Object ID; 0 is the boot loader.
    pub id: ObjectId,
    /// Name of the loader's class, if the loader is in the dump.
    pub class: Option<Arc<str>>,
}

/// A row of the histogram.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistogramRow {
    /// Index of the row's group.
    pub group: usize,
    /// Name of the class in Java source form, or of the package; empty if grouped by loader. Rows share the string: all
    /// classes of a hostile dump can have the same name of 64 KB.
    pub name: Arc<str>,
    /// Class loader; `None` if grouped by package, and for classes whose class object is not in the dump.
    pub loader: Option<Loader>,
    /// Object ID of the class object, if the row represents one class that has one.
    pub class_object: Option<ObjectId>,
    /// Number of classes in the row.
    pub classes: u64,
    /// Number of objects.
    pub instances: u64,
    /// Shallow size of the objects.
    pub shallow_bytes: u64,
    /// Retained size of the objects, if requested.
    pub retained_bytes: Option<u64>,
}

/// Totals over the rows of a histogram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistogramTotals {
    /// Number of rows.
    pub rows: u64,
    /// Number of objects.
    pub instances: u64,
    /// Shallow size of the objects.
    pub shallow_bytes: u64,
}

/// A class histogram: rows and totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    /// Rows within `top`, in the requested order.
    pub rows: Vec<HistogramRow>,
    /// Totals over all rows, including those beyond `top`.
    pub total: HistogramTotals,
    /// Size of all objects, or of all reachable ones if only those are counted, regardless of patterns.
    pub heap_bytes: u64,
}

/// Returns the number of objects of a class: those dumped as such, and for java.lang.Class all class objects as well.
pub fn instances(summary: &Summary, number: ClassNumber, class: &ClassRow) -> u64 {
    let class_objects =
        if summary.java_lang_class() == Some(number) { summary.facts().class_objects.get() } else { 0 };
    class.objects.get() + class_objects
}

/// Objects that a histogram counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Scope {
    /// All objects of the dump.
    #[default]
    All,
    /// Reachable objects.
    Reachable,
    /// Unreachable objects.
    Unreachable,
}

/// Measures of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum With {
    /// Instances and shallow sizes only.
    #[default]
    Counts,
    /// Instances, shallow and retained sizes.
    Retained,
}

/// Returns the size of all objects of the dump.
pub fn all_bytes(summary: &Summary, sizes: &Sizes) -> u64 {
    summary.numbered_classes().fold(0, |sum, (number, _)| sum.saturating_add(sizes.total(number)))
}

/// Returns the size that percentages are relative to.
fn heap_bytes(dump: &DumpGraph<'_>, sizes: &Sizes, scope: Scope) -> u64 {
    match scope {
        Scope::Reachable => dump.graph.tree.reachable_bytes(),
        Scope::All | Scope::Unreachable => all_bytes(dump.summary, sizes),
    }
}

/// Computes a histogram of all objects of the dump.
pub fn histogram(summary: &Summary, sizes: &Sizes, question: &HistogramQuery) -> Histogram {
    let groups = ClassGroups::for_query(summary, question);
    let rows = groups.count(summary, |number, class| total_counts(summary, sizes, number, class));
    finish(rows, question, all_bytes(summary, sizes))
}

/// Computes a histogram that needs the graph: of a subset of the objects, or with retained sizes.
///
/// The retained size of a row is the joint one of its reachable objects, by the dominator tree: an object that several
/// of them dominate counts once. Sizes are those of the fitted layout.
pub fn histogram_of(dump: &DumpGraph<'_>, question: &HistogramQuery, scope: Scope, with: With) -> Histogram {
    let groups = ClassGroups::for_query(dump.summary, question);
    let sizes = Sizes::new(dump.summary, None);
    let heap_bytes = heap_bytes(dump, &sizes, scope);
    let mut rows = match scope {
        Scope::All => {
            groups.count(dump.summary, |number, class| total_counts(dump.summary, &sizes, number, class))
        }
        Scope::Reachable | Scope::Unreachable => {
            let counts = counts(dump, scope);
            groups.count(dump.summary, |number, _| counts.get(number.0 as usize).copied().unwrap_or_default())
        }
    };
    if with == With::Retained {
        let retained = retained_of_class::retained(dump.graph, &groups.of_class, groups.rows.len());
        for row in &mut rows {
            row.retained_bytes = retained.get(row.group).copied();
        }
    }
    finish(rows, question, heap_bytes)
}

/// Returns the number and size of the objects of each class, by class number.
pub fn counts(dump: &DumpGraph<'_>, scope: Scope) -> Vec<Counts> {
    class_counts::count(dump.graph, positions(dump.graph, scope), dump.summary.classes().len())
}

/// Returns the positions of the counted objects in the dominator tree.
fn positions(graph: &ObjectGraph, scope: Scope) -> Range<TreePosition> {
    let (reachable, end) = (graph.tree.positions(), TreePosition(graph.tree.objects()));
    match scope {
        Scope::All => reachable.start..end,
        Scope::Reachable => reachable,
        Scope::Unreachable => reachable.end..end,
    }
}

/// Computes a histogram of the objects of a set that are in `scope`.
pub fn histogram_within(
    dump: &DumpGraph<'_>,
    question: &HistogramQuery,
    scope: Scope,
    objects: &Bits,
) -> Histogram {
    let is_in = |object| objects.contains(object);
    let counts =
        class_counts::count_if(dump.graph, positions(dump.graph, scope), dump.summary.classes().len(), is_in);
    let figures =
        |number: ClassNumber, _: &ClassRow| counts.get(number.0 as usize).copied().unwrap_or_default();
    let heap_bytes = heap_bytes(dump, &Sizes::new(dump.summary, None), scope);
    finish(ClassGroups::for_query(dump.summary, question).count(dump.summary, figures), question, heap_bytes)
}

/// Computes a histogram of the retained set of an object, the object included: everything below it in the dominator
/// tree. Percentages are relative to its size.
pub fn histogram_below(dump: &DumpGraph<'_>, question: &HistogramQuery, top: TreePosition) -> Histogram {
    let counts = class_counts::count(dump.graph, top..dump.graph.tree.end(top), dump.summary.classes().len());
    let figures =
        |number: ClassNumber, _: &ClassRow| counts.get(number.0 as usize).copied().unwrap_or_default();
    finish(
        ClassGroups::for_query(dump.summary, question).count(dump.summary, figures),
        question,
        dump.graph.tree.retained_bytes(top),
    )
}

/// Returns the number and size of the objects of a class, reachable or not.
pub fn total_counts(summary: &Summary, sizes: &Sizes, number: ClassNumber, class: &ClassRow) -> Counts {
    Counts { objects: instances(summary, number, class), shallow_bytes: sizes.total(number) }
}

/// Sorts the rows, computes totals and applies `top`.
pub fn finish(mut rows: Vec<HistogramRow>, question: &HistogramQuery, heap_bytes: u64) -> Histogram {
    let key = |row: &HistogramRow| {
        (row.name.clone(), row.loader.as_ref().map(|loader| loader.id), row.class_object)
    };
    match question.sort_by {
        HistogramOrder::Bytes => rows.sort_rows_by_cached_key(|row| (Reverse(row.shallow_bytes), key(row))),
        HistogramOrder::Instances => rows.sort_rows_by_cached_key(|row| (Reverse(row.instances), key(row))),
        HistogramOrder::Retained => {
            rows.sort_rows_by_cached_key(|row| (Reverse(row.retained_bytes), key(row)))
        }
        HistogramOrder::Name => rows.sort_rows_by_cached_key(key),
    }
    let total = HistogramTotals {
        rows: rows.len() as u64,
        instances: rows.iter().fold(0, |sum, row| sum.saturating_add(row.instances)),
        shallow_bytes: rows.iter().fold(0, |sum, row| sum.saturating_add(row.shallow_bytes)),
    };
    rows.truncate(question.top.unwrap_or(usize::MAX));
    Histogram { rows, total, heap_bytes }
}

/// Groups of classes: one for each class, package or loader.
#[derive(Debug, Clone)]
pub struct ClassGroups {
    /// By class number: index of the group of the class, or [`NONE`] if no pattern matches it.
    pub of_class: Vec<u32>,
    /// Groups, with all counts zero.
    pub rows: Vec<HistogramRow>,
}

impl ClassGroups {
    /// Groups the classes that match the patterns.
    pub fn new(summary: &Summary, group_by: HistogramGroupBy, patterns: &[ClassPattern]) -> Self {
        Self::with_filter(summary, group_by, |_, name| any_matches(patterns, name))
    }

    fn for_query(summary: &Summary, question: &HistogramQuery) -> Self {
        Self::with_filter(summary, question.group_by, |class, name| {
            question.is_meant(name, class.class_object())
        })
    }

    fn with_filter(
        summary: &Summary,
        group_by: HistogramGroupBy,
        is_meant: impl Fn(&ClassRow, &str) -> bool,
    ) -> Self {
        let mut groups = Self { of_class: Vec::with_capacity(summary.classes().len()), rows: Vec::new() };
        let mut known: FxHashMap<(Arc<str>, Option<ObjectId>), u32> = FxHashMap::default();
        let mut shared = SharedTexts::default();
        let generated = GeneratedLoaders::new(summary);
        for class in summary.classes() {
            let name = summary.class_name(class);
            if !is_meant(class, name) {
                groups.of_class.push(NONE);
                continue;
            }
            let mut loader = |id| class.is_dumped().then(|| loader(summary, id, &mut shared));
            let row = match group_by {
                HistogramGroupBy::Class => {
                    let class_object = class.class_object();
                    let loader = loader(class.loader.into());
                    HistogramRow { name: shared.text(name), loader, class_object, ..HistogramRow::default() }
                }
                HistogramGroupBy::Package => {
                    HistogramRow { name: package_label(name).into(), ..HistogramRow::default() }
                }
                HistogramGroupBy::Loader => {
                    let loader = loader(generated.row_id(class.loader.into()));
                    HistogramRow { loader, ..HistogramRow::default() }
                }
            };
            // u32 can count all classes.
            let next = u32::try_from(groups.rows.len()).unwrap_or(NONE);
            let group = match group_by {
                HistogramGroupBy::Class => next,
                HistogramGroupBy::Package | HistogramGroupBy::Loader => {
                    let key = (row.name.clone(), row.loader.as_ref().map(|loader| loader.id));
                    *known.entry(key).or_insert(next)
                }
            };
            if group == next {
                groups.rows.push(HistogramRow { group: next as usize, ..row });
            }
            groups.of_class.push(group);
        }
        groups
    }

    /// Returns the rows with the counts of their classes. Rows without objects are omitted.
    fn count(
        &self,
        summary: &Summary,
        figures: impl Fn(ClassNumber, &ClassRow) -> Counts,
    ) -> Vec<HistogramRow> {
        let mut rows = self.rows.clone();
        for ((number, class), group) in summary.numbered_classes().zip(&self.of_class) {
            let Counts { objects, shallow_bytes } = figures(number, class);
            if let Some(row) = rows.get_mut(*group as usize)
                && objects > 0
            {
                row.classes += 1;
                row.instances += objects;
                row.shallow_bytes = row.shallow_bytes.saturating_add(shallow_bytes);
            }
        }
        rows.retain(|row| row.instances > 0);
        rows
    }
}

/// Texts of a summary, copied without duplicates. The summary stores each text once, so that an address identifies a text.
#[derive(Default)]
struct SharedTexts(FxHashMap<(*const u8, usize), Arc<str>>);

impl SharedTexts {
    fn text(&mut self, text: &str) -> Arc<str> {
        self.0.entry((text.as_ptr(), text.len())).or_insert_with(|| text.into()).clone()
    }
}

fn loader(summary: &Summary, id: ObjectId, shared: &mut SharedTexts) -> Loader {
    Loader { id, class: summary.loader_class(id).map(|class| shared.text(class)) }
}

/// Returns the package of a class, or a placeholder if it has none.
pub fn package_label(class: &str) -> String {
    match names::package(class) {
        "" if is_primitive_array(class) => "<primitive arrays>".to_owned(),
        "" => "<unnamed package>".to_owned(),
        package => package.to_owned(),
    }
}

fn is_primitive_array(name: &str) -> bool {
    let element = name.trim_end_matches("[]");
    element != name && hprof_values::BasicType::PRIMITIVES.iter().any(|kind| kind.java_name() == element)
}

/// Returns the number of objects by kind: instances, object arrays, primitive arrays, class objects.
pub fn objects_by_kind(summary: &Summary) -> [u64; 4] {
    let [mut instances, mut object_arrays, mut primitive_arrays] = [0; 3];
    for class in summary.classes() {
        let count = match class.kind() {
            ClassKind::Instance => &mut instances,
            ClassKind::ObjectArray => &mut object_arrays,
            ClassKind::PrimitiveArray(_) => &mut primitive_arrays,
        };
        *count += class.objects.get();
    }
    [instances, object_arrays, primitive_arrays, summary.facts().class_objects.get()]
}
