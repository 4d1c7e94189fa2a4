//! Collections of zero or one element, and linked lists: the objects that are freed with them.
//!
//! A set backed by a map, and a wrapper that alone holds a collection, form one collection with it, whose outermost object
//! counts.

use std::io;

use rayon::prelude::*;

use super::collection_look::{CollectionLook, FewElements};
use super::findings::{Findings, Saving, Sinks, StoredFindings};
use super::instances::{LooseCollection, Wrapper};
use super::kind::{Hooks, WasteEffect, WasteFinder};
use super::kinds::KINDS;
use hprof_index::storage::scratch::Array;

/// Candidates for collections with few elements.
pub(super) struct SparseCandidates {
    /// Collections found in instances.
    pub(super) loose: Vec<Array<LooseCollection>>,
    /// Wrappers with the collection in each.
    pub(super) wrappers: Vec<Array<Wrapper>>,
    /// Collections found in arrays.
    pub(super) tables: Vec<Array<LooseCollection>>,
    /// Lists of one element that consist only of an array.
    pub(super) plain: Vec<Array<Saving>>,
}

impl SparseCandidates {
    /// Examines the candidates, and replaces collections in the findings by their outermost wrappers.
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
        ) -> io::Result<StoredFindings> {
            let mut sinks = Sinks::new(KINDS.len());
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
        let all: Vec<StoredFindings> = lists.chain(plain).chain(wrappers).collect::<io::Result<_>>()?;
        all.into_iter().for_each(|sinks| sinks.add_to(found));
        for (kind, findings) in KINDS.iter().zip(found) {
            let is_of_collections =
                matches!(kind.finds, WasteFinder::Tables(_) | WasteFinder::Collections(_));
            if is_of_collections && kind.frees == WasteEffect::Part {
                look.outermost_of(findings);
            }
        }
        Ok(())
    }
}
