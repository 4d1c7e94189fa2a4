//! Collections of zero or one element, and linked lists: the objects freed with them.
//!
//! A set backed by a map, and a wrapper that alone holds a collection, form one collection with it: the outermost
//! counts.

use std::io;

use rayon::prelude::*;

use super::WasteSearch;
use super::findings::{Findings, NO_OBJECT, Saving, Sinks, StoredSinks};
use super::instances::{Loose, UNKNOWN, Wrapper};
use super::kind::{Finds, Frees, Hooks};
use super::kinds::{colliding_maps::Trees, linked_lists};
use super::plan::{Plan, Plans};
use crate::objects::collections::Collections;
use crate::objects::collections::usage::Usage;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::storage::scratch::Array;

/// Maximum number of objects of a collection with at most one element: table, nodes, views, a lock. One with more
/// states a wrong size.
pub(super) const MAX_OBJECTS: u32 = 64;
/// Maximum depth of nested wrappers.
const MAX_WRAPPERS: usize = 32;

/// Candidates.
pub(super) struct Few {
    /// Collections found in instances.
    pub(super) loose: Vec<Array<Loose>>,
    /// Wrappers with the collection in each.
    pub(super) wrappers: Vec<Array<Wrapper>>,
    /// Collections found in arrays.
    pub(super) tables: Vec<Array<Loose>>,
    /// Lists of one element that have nothing but an array.
    pub(super) plain: Vec<Array<Saving>>,
}

/// A collection of few elements.
pub(super) struct FewElements {
    pub(super) object: ObjectIndex,
    /// More than one only for linked lists.
    pub(super) elements: u32,
    /// For a list that has nothing but an array: size of the array in bytes, the list, the array.
    pub(super) plain: Option<Saving>,
}

impl Few {
    /// Examines them, and replaces collections in the findings by the outermost ones.
    pub(super) fn find(
        self,
        look: &CollectionLook<'_, '_>,
        hooks: &Hooks,
        found: &mut [Findings],
    ) -> io::Result<()> {
        fn visit<T>(
            some: &[T],
            one: impl Fn(&T) -> Option<FewElements>,
            look: &CollectionLook<'_, '_>,
            hooks: &Hooks,
        ) -> io::Result<StoredSinks> {
            let mut sinks = Sinks::default();
            for collection in some.iter().filter_map(one) {
                sinks.visit(&hooks.collections, |hook, sink| hook(look, &collection, sink));
            }
            sinks.into_room(&look.search.room)
        }
        let lists = self.loose.into_par_iter().chain(self.tables);
        let lists = lists.map(|lists| visit(&lists, |loose| look.collection(*loose), look, hooks));
        let plain = self.plain.into_par_iter();
        let plain = plain.map(|plain| visit(&plain, |list| Some(FewElements::plain(*list)), look, hooks));
        let wrappers = self.wrappers.into_par_iter();
        let wrappers = wrappers.map(|wrappers| visit(&wrappers, |one| look.wrapper(one), look, hooks));
        let all: Vec<StoredSinks> = lists.chain(plain).chain(wrappers).collect::<io::Result<_>>()?;
        all.into_iter().for_each(|sinks| sinks.add_to(found));
        for findings in found {
            let is_of_collections = matches!(findings.kind.finds, Finds::Tables(_) | Finds::Collections(_));
            if is_of_collections && findings.kind.frees == Frees::Part {
                look.outermost_of(findings);
            }
        }
        Ok(())
    }
}

impl FewElements {
    fn plain(list: Saving) -> Self {
        Self { object: ObjectIndex(list.object), elements: 1, plain: Some(list) }
    }
}

/// Data about collections.
pub(super) struct CollectionLook<'v, 'a> {
    pub(super) search: &'v WasteSearch<'a>,
    pub(super) plans: &'v Plans,
    pub(super) collections: Collections<'v, 'a>,
    /// Sizes of a LinkedList, its node and an ArrayList.
    pub(super) linked: Option<[u64; 3]>,
    pub(super) trees: Trees,
}

impl<'v, 'a> CollectionLook<'v, 'a> {
    pub(super) fn new(search: &'v WasteSearch<'a>, plans: &'v Plans) -> Self {
        Self {
            search,
            plans,
            collections: Collections::with(&search.objects, search.forms.clone()),
            linked: linked_lists::sizes(search),
            trees: Trees::new(search),
        }
    }

    pub(super) fn usage(&self, object: ObjectIndex) -> Option<&'v Usage> {
        match self.plans.of(self.search.class(object)) {
            Plan::Collection(usage) => Some(usage),
            _ => None,
        }
    }

    /// Returns the object in a wrapper.
    fn wrapped(&self, wrapper: ObjectIndex) -> Option<ObjectIndex> {
        let wraps = self.usage(wrapper)?.wraps?;
        let objects = &self.search.objects;
        objects.object(objects.value_at(objects.instance(wrapper)?, wraps)?)
    }

    /// Returns the outermost wrapper that alone holds a collection.
    pub(super) fn outermost(&self, collection: ObjectIndex) -> ObjectIndex {
        let mut outer = collection;
        for _ in 0..MAX_WRAPPERS {
            match self.search.dominator(outer).filter(|above| self.wrapped(*above) == Some(outer)) {
                Some(above) => outer = above,
                None => break,
            }
        }
        outer
    }

    fn collection(&self, Loose { object, elements }: Loose) -> Option<FewElements> {
        let object = ObjectIndex(object);
        let elements = match elements {
            UNKNOWN => self.collections.at_most_one(object)?,
            elements => elements,
        };
        Some(FewElements { object, elements, plain: None })
    }

    /// Examines a wrapper that does not own its content: otherwise the collection in it counts.
    fn wrapper(&self, wrapper: &Wrapper) -> Option<FewElements> {
        let [object, inner] = [wrapper.object, wrapper.inner].map(ObjectIndex);
        let is_counted = self.usage(inner).is_some_and(|usage| usage.is_counted);
        if is_counted && self.search.is_dominated_by(inner, object) {
            return None;
        }
        let mut base = inner;
        for _ in 0..MAX_WRAPPERS {
            match self.wrapped(base) {
                Some(inner) => base = inner,
                None => break,
            }
        }
        let is_empty = self.collections.at_most_one(base) == Some(0);
        is_empty.then_some(FewElements { object, elements: 0, plain: None })
    }

    /// Replaces collections in the findings by the outermost ones that hold them.
    fn outermost_of(&self, findings: &mut Findings) {
        let lists = findings.savings.par_iter_mut();
        lists.for_each(|savings| {
            for saving in savings.iter_mut() {
                // The object that gets smaller stays the same.
                saving.other = if saving.other == NO_OBJECT { saving.object } else { saving.other };
                saving.object = self.outermost(ObjectIndex(saving.object)).0;
            }
        });
    }
}
