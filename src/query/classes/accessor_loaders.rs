//! Loaders of accessors that the JDK generates for reflective calls, one loader for each accessor. They say nothing about
//! the program one by one, so lists have one row for all of them.

use hprof_index::model::summary::Summary;
use hprof_parser::ObjectId;

const ACCESSOR_LOADERS: [&str; 2] =
    ["jdk.internal.reflect.DelegatingClassLoader", "sun.reflect.DelegatingClassLoader"];

/// Returns whether loaders of this class define accessors.
pub(super) fn is_accessor_loader(class: &str) -> bool {
    ACCESSOR_LOADERS.contains(&class)
}

/// Returns the ID by which a loader is listed: that of the first loader of accessors for all of them.
pub(crate) fn listed_loaders(summary: &Summary) -> impl Fn(ObjectId) -> ObjectId {
    let dumped = summary.classes().iter().filter(|class| class.is_dumped());
    let loaders = dumped.map(|class| ObjectId::from(class.loader));
    let is_of_accessors = |loader: &ObjectId| summary.loader_class(*loader).is_some_and(is_accessor_loader);
    let mut of_accessors: Vec<ObjectId> = loaders.filter(is_of_accessors).collect();
    of_accessors.sort_unstable();
    move |loader| match (of_accessors.binary_search(&loader), of_accessors.first()) {
        (Ok(_), Some(first)) => *first,
        _ => loader,
    }
}
