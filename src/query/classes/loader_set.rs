//! A set of class loaders that define the same classes, and which loaders live as long as the process.

use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_parser::ObjectId;

use crate::dominators::retained_of_many_sets::SetRetained;

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

/// Loaders that define classes of the same names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoaderSet {
    /// Loaders by ascending ID. That is mostly oldest first, since IDs are addresses and some collectors preserve the
    /// order of objects.
    pub loaders: Vec<ObjectId>,
    /// Classes of the first loader, by name, without array classes.
    pub classes: Vec<ClassNumber>,
    /// Number of objects of the classes of all these loaders.
    pub instances: u64,
    /// Shallow size of those objects.
    pub shallow_bytes: u64,
    /// Size retained together by all loaders, their classes and instances.
    pub retained: SetRetained,
}
