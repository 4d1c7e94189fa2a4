//! Loaders of generated classes, one loader for each class or a few: the JDK's accessors for reflective calls, scripts,
//! expressions, statements of a database, proxies. Single ones are of no interest, so lists have one row for all loaders of a
//! class.

use rustc_hash::FxHashMap;

use hprof_index::model::summary::Summary;
use hprof_values::ObjectId;

const ACCESSOR_LOADERS: [&str; 2] =
    ["jdk.internal.reflect.DelegatingClassLoader", "sun.reflect.DelegatingClassLoader"];
/// Loaders of the JVM and of the application, which live as long as the process.
const PERMANENT: &[&str] = &[
    "jdk.internal.loader.ClassLoaders$AppClassLoader",
    "jdk.internal.loader.ClassLoaders$PlatformClassLoader",
    "jdk.internal.loader.ClassLoaders$BootClassLoader",
    "sun.misc.Launcher$AppClassLoader",
    "sun.misc.Launcher$ExtClassLoader",
    "java.lang.BootClassLoader",
    "dalvik.system.PathClassLoader",
];

/// Returns whether a loader lives as long as the process: the boot, platform and application loaders do.
pub fn is_permanent(summary: &Summary, loader: ObjectId) -> bool {
    loader.is_null() || summary.loader_class(loader).is_some_and(|class| PERMANENT.contains(&class))
}

/// Minimum number of loaders of one class that share a row in lists.
const MANY_GENERATED: usize = 100;
/// Maximum number of classes that a loader of generated classes defines: a script and its lambdas, a class and its proxy.
const MAX_CLASSES: u64 = 4;

/// Returns whether loaders of this class define accessors.
pub(super) fn is_accessor_loader(class: &str) -> bool {
    ACCESSOR_LOADERS.contains(&class)
}

/// Loaders of generated classes, by the class of the loaders.
#[derive(Debug)]
pub struct GeneratedLoaders<'a> {
    by_class: FxHashMap<&'a str, GeneratedClasses>,
    /// Number of classes that each loader of generated classes defines.
    classes: FxHashMap<ObjectId, u64>,
    summary: &'a Summary,
}

/// Loaders of generated classes that are instances of one class.
#[derive(Debug, Clone, Copy)]
struct GeneratedClasses {
    first: ObjectId,
    loaders: usize,
    classes: u64,
}

impl<'a> GeneratedLoaders<'a> {
    /// Finds the loaders of generated classes.
    pub fn new(summary: &'a Summary) -> Self {
        let mut classes: FxHashMap<ObjectId, u64> = FxHashMap::default();
        for class in summary.classes().iter().filter(|class| class.is_dumped()) {
            *classes.entry(class.loader.into()).or_default() += 1;
        }
        let mut by_class: FxHashMap<&str, GeneratedClasses> = FxHashMap::default();
        classes.retain(|loader, classes| {
            let Some(class) = summary.loader_class(*loader).filter(|_| !is_permanent(summary, *loader))
            else {
                return false;
            };
            let is_one = is_accessor_loader(class) || *classes <= MAX_CLASSES;
            if is_one {
                let of_class = by_class.entry(key(class)).or_insert(GeneratedClasses {
                    first: *loader,
                    loaders: 0,
                    classes: 0,
                });
                of_class.first = of_class.first.min(*loader);
                of_class.loaders += 1;
                of_class.classes += *classes;
            }
            is_one
        });
        by_class.retain(|class, of_class| is_accessor_loader(class) || of_class.loaders >= MANY_GENERATED);
        Self { by_class, classes, summary }
    }

    /// Returns the class whose loaders share a row, given the class of a loader and the number of classes that it defines.
    pub(super) fn class_of(&self, class: &str, classes: u64) -> Option<&'a str> {
        let (known, _) = self.by_class.get_key_value(key(class))?;
        (is_accessor_loader(known) || classes <= MAX_CLASSES).then_some(*known)
    }

    /// Returns the ID of the row in which a loader is listed: the ID of the first loader of the row.
    pub(crate) fn row_id(&self, loader: ObjectId) -> ObjectId {
        let class = self.classes.get(&loader).and_then(|_| self.summary.loader_class(loader));
        class.and_then(|class| self.by_class.get(key(class))).map_or(loader, |of_class| of_class.first)
    }

    /// Returns the class with most loaders, except accessor loaders: its name, the number of loaders, and the number of classes
    /// that they define.
    pub fn largest(&self) -> Option<(&'a str, u64, u64)> {
        let own = self.by_class.iter().filter(|(class, _)| !is_accessor_loader(class));
        let rows = own.map(|(class, of)| (*class, of.loaders as u64, of.classes));
        rows.max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(a.0)))
    }
}

/// Returns the class under which loaders of a class are counted: one for accessors of any JDK.
fn key(class: &str) -> &str {
    if is_accessor_loader(class) { ACCESSOR_LOADERS[0] } else { class }
}
