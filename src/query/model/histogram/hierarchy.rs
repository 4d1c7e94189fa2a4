//! Lists of classes, and trees of classes and their subclasses.

use std::cmp::Reverse;

use hprof_index::layout::sizes::Sizes;
use hprof_index::model::class_table::ClassTable;
use hprof_index::model::summary::{ClassNumber, Summary};

use crate::histogram;
use hprof_base::naming::pattern::ClassPattern;
use hprof_base::sorting::SortRows;

/// Order of a list of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClassOrder {
    /// Most instances first.
    #[default]
    Instances,
    /// Most instances first, including those of subclasses.
    Total,
    /// Most bytes first.
    Shallow,
    /// Most direct subclasses first.
    Subclasses,
    /// Ascending by name.
    Name,
}

/// Filters, order and limits of a list or tree of classes.
#[derive(Debug, Clone, Default)]
pub struct HierarchyQuery {
    /// Patterns of class names; all classes match if there is no pattern and nothing is `named`.
    pub patterns: Vec<ClassPattern>,
    /// Additional classes to select, whatever their names.
    pub named: Option<Vec<ClassNumber>>,
    /// Order of a list.
    pub sort_by: ClassOrder,
    /// Number of classes in a list, or of subclasses of each class in a tree; all by default.
    pub top: Option<usize>,
    /// Levels of a tree; all by default.
    pub levels: Option<u32>,
}

impl HierarchyQuery {
    fn is_of_all(&self) -> bool {
        self.patterns.is_empty() && self.named.is_none()
    }

    /// Returns whether the class is selected.
    fn means(&self, class: ClassNumber, name: &str) -> bool {
        self.is_of_all()
            || self.named.as_ref().is_some_and(|named| named.contains(&class))
            || self.patterns.iter().any(|pattern| pattern.matches(name))
    }
}

/// A class in a list or tree of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HierarchyRow {
    /// Number of the class.
    pub class: ClassNumber,
    /// Number of its objects; for java.lang.Class, of all class objects.
    pub instances: u64,
    /// Shallow size of the instances.
    pub shallow_bytes: u64,
    /// Number of direct subclasses.
    pub subclasses: u64,
    /// Number of objects of this class and of all its subclasses.
    pub total_instances: u64,
    /// Shallow size of the objects of this class and of all its subclasses.
    pub total_shallow_bytes: u64,
    /// Number of levels below the root of its tree; 0 in a list.
    pub depth: u32,
}

/// A list or a tree of classes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hierarchy {
    /// Rows within `top` and `levels`.
    pub rows: Vec<HierarchyRow>,
    /// Number of classes before `top` and `levels` are applied.
    pub total: u64,
}

/// Counts and sizes of all classes, by class number.
struct ClassFigures<'a> {
    summary: &'a Summary,
    table: &'a ClassTable,
    sizes: Sizes,
    total_instances: Vec<u64>,
    total_bytes: Vec<u64>,
}

impl<'a> ClassFigures<'a> {
    fn new(summary: &'a Summary) -> Self {
        let (table, sizes) = (summary.class_table(), Sizes::new(summary, None));
        let classes = || summary.numbered_classes();
        let own = |(number, class)| histogram::instances(summary, number, class);
        let total_instances = table.totals(classes().map(own).collect());
        let total_bytes = table.totals(classes().map(|(number, _)| sizes.total(number)).collect());
        Self { summary, table, sizes, total_instances, total_bytes }
    }

    fn row(&self, class: ClassNumber, depth: u32) -> Option<HierarchyRow> {
        let row = self.summary.class(class)?;
        let at = class.0 as usize;
        Some(HierarchyRow {
            class,
            instances: histogram::instances(self.summary, class, row),
            shallow_bytes: self.sizes.total(class),
            subclasses: self.table.subclasses(class).len() as u64,
            total_instances: self.total_instances.get(at).copied().unwrap_or(0),
            total_shallow_bytes: self.total_bytes.get(at).copied().unwrap_or(0),
            depth,
        })
    }

    fn total(&self, class: ClassNumber) -> u64 {
        self.total_instances.get(class.0 as usize).copied().unwrap_or(0)
    }

    fn name(&self, class: ClassNumber) -> &'a str {
        self.summary.class(class).map_or("", |class| self.summary.class_name(class))
    }

    /// Sorts siblings in the order of a tree.
    fn sorted(&self, mut classes: Vec<ClassNumber>) -> Vec<ClassNumber> {
        classes.sort_rows_by_cached_key(|class| (Reverse(self.total(*class)), self.name(*class), *class));
        classes
    }
}

/// Returns whether a class is shown: it is dumped or has objects.
pub fn is_shown(summary: &Summary, class: ClassNumber) -> bool {
    summary.class(class).is_some_and(|row| row.is_dumped() || histogram::instances(summary, class, row) > 0)
}

/// Returns the list of the selected classes.
pub fn list(summary: &Summary, question: &HierarchyQuery) -> Hierarchy {
    let figures = ClassFigures::new(summary);
    let mut rows: Vec<HierarchyRow> = (summary.numbered_classes())
        .filter(|(number, _)| is_shown(summary, *number))
        .filter(|(number, class)| question.means(*number, summary.class_name(class)))
        .filter_map(|(number, _)| figures.row(number, 0))
        .collect();
    let figure = |row: &HierarchyRow| match question.sort_by {
        ClassOrder::Instances => row.instances,
        ClassOrder::Total => row.total_instances,
        ClassOrder::Shallow => row.shallow_bytes,
        ClassOrder::Subclasses => row.subclasses,
        ClassOrder::Name => 0,
    };
    rows.sort_rows_by_cached_key(|row| (Reverse(figure(row)), figures.name(row.class), row.class));
    let total = rows.len() as u64;
    rows.truncate(question.top.unwrap_or(usize::MAX));
    Hierarchy { rows, total }
}

/// Returns the tree of classes: below the classes that match, or else below the classes without a superclass
/// (java.lang.Object, and any other that has objects). Subclasses with most instances come first.
pub fn tree(summary: &Summary, question: &HierarchyQuery) -> Hierarchy {
    let figures = ClassFigures::new(summary);
    let table = figures.table;
    let mut answer = Hierarchy::default();
    let mut starts = Vec::new();
    // By class number: `true` for a start and the classes below one.
    let mut inside = vec![false; summary.classes().len()];
    for class in table.top_down() {
        let parent = table.superclass(class);
        let is_below = parent.and_then(|parent| inside.get(parent.0 as usize)).copied().unwrap_or(false);
        let is_start = !is_below
            && is_shown(summary, class)
            && if question.is_of_all() {
                parent.is_none() && figures.total(class) > 0
            } else {
                question.means(class, figures.name(class))
            };
        if is_start {
            starts.push(class);
        }
        if let (true, Some(inside)) = (is_start || is_below, inside.get_mut(class.0 as usize)) {
            *inside = true;
            answer.total += 1;
        }
    }
    let most = question.top.unwrap_or(usize::MAX);
    let mut siblings = figures.sorted(starts);
    siblings.truncate(most);
    let mut levels = vec![siblings.into_iter()];
    while let Some(siblings) = levels.last_mut() {
        let Some(class) = siblings.next() else {
            levels.pop();
            continue;
        };
        let depth = u32::try_from(levels.len().saturating_sub(1)).unwrap_or(u32::MAX);
        answer.rows.extend(figures.row(class, depth));
        if question.levels.is_none_or(|levels| depth + 1 < levels) {
            let mut below = figures.sorted(table.subclasses(class).collect());
            below.truncate(most);
            levels.push(below.into_iter());
        }
    }
    answer
}
