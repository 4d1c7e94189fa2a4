//! Properties of classes that are determined before the pass over the dominator tree: which classes are collections, and which
//! are parts of a collection.

use rustc_hash::FxHashSet;

use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::model::tables::ClassKind;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::collections::{CollectionKind, Forms};
use hprof_values::names;

/// Role of an object for the objects that it dominates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// An ordinary object.
    Plain,
    /// A collection that consists of several objects.
    Collection,
    /// A collection that wraps the collection in this field.
    Wrapper(&'static str),
    /// Part of a collection.
    Part,
    /// The class object of a class.
    Class(ClassNumber),
    /// Too deep, or beyond the limit of places. The object counts at the place above, like everything below it.
    Beyond,
}

/// Properties of a class that determine the places of its instances.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClassTraits {
    pub(super) role: Role,
    /// Kind of collection, if the class is one.
    pub(super) kind: Option<CollectionKind>,
    /// `true` if its instances are part of the collection that holds them: the class is nested in a collection's class,
    /// or is an array of such a class.
    pub(super) is_part: bool,
    /// `true` if the class is an array of references.
    pub(super) is_array: bool,
    pub(super) is_of_jdk: bool,
    pub(super) is_thread: bool,
    /// `true` if a framework's rules state that the instances are only parts of other objects.
    pub(super) is_passed: bool,
    /// `true` for arrays, and for references and atomic holders of the JDK.
    pub(super) is_plumbing: bool,
}

/// Properties of a class that is not in the dump.
pub(super) const NO_TRAIT: ClassTraits = ClassTraits {
    role: Role::Plain,
    kind: None,
    is_part: false,
    is_array: false,
    is_of_jdk: false,
    is_thread: false,
    is_passed: false,
    is_plumbing: false,
};

/// Returns the properties of all classes, by class number.
pub(super) fn traits(summary: &Summary, forms: &Forms) -> Vec<ClassTraits> {
    let known = summary.numbered_classes().filter(|(number, _)| {
        forms.of_class(*number).is_some_and(|of| of.is_known_itself && of.kind != CollectionKind::Holder)
    });
    let known: FxHashSet<&str> = known.map(|(_, class)| summary.class_name(class)).collect();
    let longest = known.iter().map(|name| name.len()).max().unwrap_or(0);
    let threads = ClassSet::of_name_and_below(summary, "java.lang.Thread");
    let of = |(number, class)| {
        let name = summary.class_name(class);
        let element = name.trim_end_matches("[]");
        let mut outer = element.match_indices('$').map(|(at, _)| at).take_while(|at| *at <= longest);
        let nested = outer.any(|at| element.get(..at).is_some_and(|outer| known.contains(outer)));
        let form = forms.of_class(number).filter(|form| form.kind != CollectionKind::Holder);
        ClassTraits {
            role: match form {
                None => Role::Plain,
                Some(form) => form.wraps.map_or(Role::Collection, Role::Wrapper),
            },
            kind: form.map(|form| form.kind),
            is_part: nested,
            is_array: class.kind() == ClassKind::ObjectArray,
            is_of_jdk: names::is_of_jdk(name),
            is_thread: threads.contains(number),
            is_passed: false,
            is_plumbing: name.ends_with("[]")
                || ["java.util.concurrent.atomic.", "java.lang.ref."]
                    .iter()
                    .any(|start| name.starts_with(start)),
        }
    };
    summary.numbered_classes().map(of).collect()
}
