//! Comparison of classes, packages, class loaders or superclasses.
//!
//! A [`ClassCensus`] has the counts and sizes of one dump by key; two are matched by key. Counts and shallow sizes come from
//! the summary alone; reachable objects and retained sizes need the graph.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_base::naming::pattern::{ClassPattern, any_matches};
use hprof_base::sorting::SortRows;
use hprof_index::DumpGraph;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::model::tables::{ClassRow, NONE};
use hprof_model::dominators::class_counts::Counts;
use hprof_model::dominators::retained_of_class;
use hprof_model::histogram::{self, HistogramOrder, Scope, With};
use hprof_recordings::profile::text::TextHeap;
use hprof_values::ObjectId;

use hprof_base::change::{Change, Status};
use hprof_base::naming::stable_names;

/// Maximum number of superclasses of a class that are compared with it.
const MAX_SUPERCLASSES: usize = 64;

/// Grouping of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClassDiffGrouping {
    /// Classes with the same name and the same loader. Names are compared in the form that is equal in all dumps
    /// (`stable_names`).
    #[default]
    Class,
    /// All classes of a package; arrays belong to their elements' package.
    Package,
    /// All classes of the loaders with the same name.
    Loader,
    /// A class that has subclasses, with all its subclasses: such rows can contain one another.
    Superclass,
}

/// Key of a compared row, the same in every dump.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComparedKey {
    /// Name of the class or the package; empty for loaders.
    pub name: Arc<str>,
    /// Name of the loader; `None` for packages, and for classes whose class object is not in the dump.
    pub loader: Option<Arc<str>>,
}

/// Counts and sizes of the classes with the same key in one dump.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ComparedFigures {
    /// Number of classes with objects.
    pub classes: u64,
    /// Number of class loaders of the classes.
    pub loaders: u64,
    /// Number of objects.
    pub instances: u64,
    /// Shallow size of the objects.
    pub shallow_bytes: u64,
    /// Retained size of the reachable objects, if requested.
    pub retained_bytes: Option<u64>,
}

/// Grouping and filter applied to each dump.
#[derive(Debug, Clone, Default)]
pub struct ComparedQuery {
    /// Grouping of the rows.
    pub group_by: ClassDiffGrouping,
    /// Patterns of class names; all classes match if there are none.
    pub patterns: Vec<ClassPattern>,
    /// Handling of what class histograms lack.
    pub names: ComparedNames,
}

/// Names by which classes are matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ComparedNames {
    /// Names of dumps and text reports, with class loaders.
    #[default]
    Dumps,
    /// Names that class histograms have, too: without class loaders, and with one name for the fillers with which JVMs cover
    /// unused memory.
    Histograms,
}

/// Names of fillers in class histograms. Dumps have them as `FILLER`.
const FILLERS: [&str; 3] =
    ["jdk.internal.vm.FillerArray[]", "jdk.internal.vm.FillerElement[]", "jdk.internal.vm.FillerObject"];
const FILLER: &str = "int[]";

impl ComparedQuery {
    /// Returns the name of a class that is compared.
    fn name_of<'n>(&self, name: &'n str) -> &'n str {
        if self.names == ComparedNames::Histograms && FILLERS.contains(&name) { FILLER } else { name }
    }

    /// Returns whether all classes of a name are one: how many there are in a class histogram differs from run to run.
    fn counts_names(&self) -> bool {
        (self.names, self.group_by) == (ComparedNames::Histograms, ClassDiffGrouping::Class)
    }

    /// Returns the loader of a class that is compared.
    fn loader_of(&self, loader: impl FnOnce() -> Option<Arc<str>>) -> Option<Arc<str>> {
        match self.names {
            ComparedNames::Dumps => loader(),
            ComparedNames::Histograms => None,
        }
    }
}

/// Counts and sizes of the classes of one dump, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassCensus {
    /// Counts and sizes by key, only for keys that have objects.
    pub rows: FxHashMap<ComparedKey, ComparedFigures>,
    /// Counts and sizes of all selected classes together.
    pub total: ComparedFigures,
    /// `true` if there are retained sizes.
    pub has_retained: bool,
}

/// A row of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassChange {
    /// Key of the compared classes.
    pub key: ComparedKey,
    /// Status of the row: new, gone, changed or the same.
    pub status: Status,
    /// Number of classes.
    pub classes: Change,
    /// Number of class loaders.
    pub loaders: Change,
    /// Number of objects.
    pub instances: Change,
    /// Shallow size of the objects.
    pub shallow_bytes: Change,
    /// Retained size of the objects, if requested.
    pub retained_bytes: Option<Change>,
}

impl ClassCensus {
    /// Counts all objects of a dump.
    pub fn new(summary: &Summary, sizes: &Sizes, question: &ComparedQuery) -> Self {
        KeyedClasses::new(summary, question)
            .census(summary, |number, class| histogram::total_counts(summary, sizes, number, class))
    }

    /// Counts the objects of `scope` with the fitted layout, and their retained sizes if requested.
    pub fn of_graph(dump: &DumpGraph<'_>, question: &ComparedQuery, scope: Scope, with: With) -> Self {
        let groups = KeyedClasses::new(dump.summary, question);
        let mut census = match scope {
            Scope::All => {
                let sizes = Sizes::new(dump.summary, None);
                groups.census(dump.summary, |number, class| {
                    histogram::total_counts(dump.summary, &sizes, number, class)
                })
            }
            Scope::Reachable | Scope::Unreachable => {
                let counts = histogram::counts(dump, scope);
                groups.census(dump.summary, |number, _| {
                    counts.get(number.0 as usize).copied().unwrap_or_default()
                })
            }
        };
        if with == With::Retained {
            census.has_retained = true;
            let retained = groups.retained_sizes(dump);
            for (key, retained) in groups.keys.iter().zip(retained) {
                if let Some(figures) = census.rows.get_mut(key) {
                    figures.retained_bytes = Some(retained);
                }
            }
        }
        census
    }

    /// Counts the objects in the HEAP DUMP section of a text report.
    pub fn of_text(heap: &TextHeap, question: &ComparedQuery) -> Self {
        let mut census = Self::default();
        let classes = heap.classes.iter().filter(|class| class.instances > 0);
        for class in classes.filter(|class| any_matches(&question.patterns, question.name_of(&class.name))) {
            let name = question.name_of(&class.name);
            let loader = || {
                let id = class.loader?;
                let class = class.loader_class.as_deref().unwrap_or(stable_names::UNKNOWN_LOADER);
                Some(if id.is_null() {
                    stable_names::BOOT_LOADER.into()
                } else {
                    stable_names::stem(class).into()
                })
            };
            let key = match question.group_by {
                ClassDiffGrouping::Package => {
                    ComparedKey { name: histogram::package_label(name).into(), loader: None }
                }
                ClassDiffGrouping::Loader => ComparedKey { name: "".into(), loader: loader() },
                // A text does not name the superclasses of all its classes.
                ClassDiffGrouping::Class | ClassDiffGrouping::Superclass => {
                    let loader = question.loader_of(loader);
                    ComparedKey { name: stable_names::stem(name).into(), loader }
                }
            };
            census.add(key, class.instances, class.shallow_bytes);
        }
        if question.counts_names() {
            census.count_names();
        }
        census
    }

    /// Counts all classes of a name as one.
    fn count_names(&mut self) {
        self.rows.values_mut().for_each(|figures| figures.classes = 1);
    }

    fn add(&mut self, key: ComparedKey, instances: u64, shallow_bytes: u64) {
        for figures in [self.rows.entry(key).or_default(), &mut self.total] {
            figures.classes += 1;
            figures.instances = figures.instances.saturating_add(instances);
            figures.shallow_bytes = figures.shallow_bytes.saturating_add(shallow_bytes);
        }
    }

    /// Matches the classes of an old dump and a new one; largest growth first.
    pub fn compare(old: &Self, new: &Self, sort_by: HistogramOrder) -> Vec<ClassChange> {
        let has_retained = old.has_retained && new.has_retained;
        let mut rows: Vec<ClassChange> = super::join_by_key(&old.rows, &new.rows)
            .map(|(key, before, after)| ClassChange::new(key.clone(), (before, after), has_retained))
            .collect();
        rows.sort_rows_by(|a, b| {
            let by = |row: &ClassChange| match sort_by {
                HistogramOrder::Bytes => row.shallow_bytes.delta(),
                HistogramOrder::Instances => row.instances.delta(),
                HistogramOrder::Retained => row.retained_bytes.map_or(0, Change::delta),
                HistogramOrder::Name => 0,
            };
            let order = |row: &ClassChange| (Reverse(by(row)), Reverse(row.instances.delta()));
            order(a).cmp(&order(b)).then_with(|| a.key.cmp(&b.key))
        });
        rows
    }
}

impl ClassChange {
    fn new(
        key: ComparedKey,
        (old, new): (Option<&ComparedFigures>, Option<&ComparedFigures>),
        retained: bool,
    ) -> Self {
        let (before, after) = (old.copied().unwrap_or_default(), new.copied().unwrap_or_default());
        let change = |of: fn(&ComparedFigures) -> u64| Change { old: of(&before), new: of(&after) };
        let is_same = before == after;
        Self {
            key,
            status: Status::from_presence(old.is_some(), new.is_some(), is_same),
            classes: change(|figures| figures.classes),
            loaders: change(|figures| figures.loaders),
            instances: change(|figures| figures.instances),
            shallow_bytes: change(|figures| figures.shallow_bytes),
            retained_bytes: retained.then(|| change(|figures| figures.retained_bytes.unwrap_or(0))),
        }
    }
}

/// Index of the key of each class of a dump.
struct KeyedClasses {
    keys: Vec<ComparedKey>,
    /// By class number: index of its key, or [`NONE`].
    of_class: Vec<u32>,
    is_with_subclasses: bool,
    names: ComparedNames,
    counts_names: bool,
}

impl KeyedClasses {
    fn new(summary: &Summary, question: &ComparedQuery) -> Self {
        let mut groups = Self {
            keys: Vec::new(),
            of_class: Vec::with_capacity(summary.classes().len()),
            is_with_subclasses: question.group_by == ClassDiffGrouping::Superclass,
            names: question.names,
            counts_names: question.counts_names(),
        };
        let mut known: FxHashMap<ComparedKey, u32> = FxHashMap::default();
        let mut loaders: FxHashMap<ObjectId, Arc<str>> = FxHashMap::default();
        let mut stems = stable_names::Stems::default();
        for (number, class) in summary.numbered_classes() {
            let name = question.name_of(summary.class_name(class));
            let is_meant = any_matches(&question.patterns, name)
                && (!groups.is_with_subclasses || summary.class_table().subclasses(number).len() > 0);
            if !is_meant {
                groups.of_class.push(NONE);
                continue;
            }
            let mut loader = || {
                let id = ObjectId::from(class.loader);
                let loader = loaders.entry(id).or_insert_with(|| stable_names::loader(summary, id).into());
                class.is_dumped().then(|| loader.clone())
            };
            let key = match question.group_by {
                ClassDiffGrouping::Class | ClassDiffGrouping::Superclass => {
                    ComparedKey { name: stems.stem(name), loader: question.loader_of(loader) }
                }
                ClassDiffGrouping::Package => {
                    ComparedKey { name: histogram::package_label(name).into(), loader: None }
                }
                ClassDiffGrouping::Loader => ComparedKey { name: "".into(), loader: loader() },
            };
            // u32 can count all classes.
            let next = u32::try_from(groups.keys.len()).unwrap_or(NONE);
            let group = *known.entry(key.clone()).or_insert(next);
            if group == next {
                groups.keys.push(key);
            }
            groups.of_class.push(group);
        }
        groups
    }

    fn group(&self, class: ClassNumber) -> Option<usize> {
        self.of_class
            .get(class.0 as usize)
            .copied()
            .filter(|group| *group != NONE)
            .map(|group| group as usize)
    }

    /// Sums the counts of classes by key.
    fn census(&self, summary: &Summary, figures: impl Fn(ClassNumber, &ClassRow) -> Counts) -> ClassCensus {
        let mut sums = vec![ComparedFigures::default(); self.keys.len()];
        let mut loaders: FxHashMap<usize, Vec<ObjectId>> = FxHashMap::default();
        let own: Vec<Counts> =
            summary.numbered_classes().map(|(number, class)| figures(number, class)).collect();
        let counts = if self.is_with_subclasses { with_subclasses(summary, &own) } else { own.clone() };
        let classes = if self.is_with_subclasses {
            summary.class_table().totals(own.iter().map(|own| u64::from(own.objects > 0)).collect())
        } else {
            own.iter().map(|own| u64::from(own.objects > 0)).collect()
        };
        let all = summary.numbered_classes().zip(counts).zip(classes);
        for (((number, class), Counts { objects, shallow_bytes }), classes) in all {
            let Some(group) = self.group(number).filter(|_| objects > 0) else { continue };
            // A superclass of the same name has already counted it.
            let mut above = summary.class_table().upwards(number).skip(1).take(MAX_SUPERCLASSES);
            if self.is_with_subclasses && above.any(|above| self.group(above) == Some(group)) {
                continue;
            }
            if let Some(sum) = sums.get_mut(group) {
                sum.classes = sum.classes.saturating_add(classes);
                sum.instances = sum.instances.saturating_add(objects);
                sum.shallow_bytes = sum.shallow_bytes.saturating_add(shallow_bytes);
                if class.is_dumped() && self.names == ComparedNames::Dumps {
                    loaders.entry(group).or_default().push(class.loader.into());
                }
            }
        }
        for (group, mut loaders) in loaders {
            loaders.sort_unstable();
            loaders.dedup();
            if let Some(sum) = sums.get_mut(group) {
                sum.loaders = loaders.len() as u64;
            }
        }
        let mut total = ComparedFigures::default();
        for (number, own) in (0u32..).zip(&own) {
            if self.is_with_subclasses || self.group(ClassNumber(number)).is_some() {
                total.classes += u64::from(own.objects > 0);
                total.instances = total.instances.saturating_add(own.objects);
                total.shallow_bytes = total.shallow_bytes.saturating_add(own.shallow_bytes);
            }
        }
        let rows = self.keys.iter().cloned().zip(sums).filter(|(_, sum)| sum.instances > 0).collect();
        let mut census = ClassCensus { rows, total, has_retained: false };
        if self.counts_names {
            census.count_names();
        }
        census
    }

    fn retained_sizes(&self, dump: &DumpGraph<'_>) -> Vec<u64> {
        if self.is_with_subclasses {
            retained_of_class::retained_with_subclasses(dump, &self.of_class, self.keys.len())
        } else {
            retained_of_class::retained(dump.graph, &self.of_class, self.keys.len())
        }
    }
}

/// Counts the objects of each class together with the objects of all its subclasses.
fn with_subclasses(summary: &Summary, own: &[Counts]) -> Vec<Counts> {
    let table = summary.class_table();
    let objects = table.totals(own.iter().map(|own| own.objects).collect());
    let bytes = table.totals(own.iter().map(|own| own.shallow_bytes).collect());
    objects.into_iter().zip(bytes).map(|(objects, shallow_bytes)| Counts { objects, shallow_bytes }).collect()
}
