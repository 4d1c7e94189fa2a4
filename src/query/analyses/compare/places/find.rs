//! Search for the places of a dump, or of a part of it.

use std::io;

use rustc_hash::FxHashMap;

use crate::containers::Containers;
use crate::frameworks::Frameworks;
use hprof_index::Dump;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::tables::NONE;
use hprof_model::dominators::class_pass;
use hprof_model::objects::collections::Forms;
use hprof_model::objects::label::Labels;
use hprof_model::objects::reference_names::Edges;

use super::DumpPlaces;
use super::adopted::{adopted_objects, special};
use super::held_by::{HeldBy, HoldingReferences, ReferenceFields};
use super::keyed;
use super::labels::LabelNumbers;
use super::large;
use super::named::{BeforePass, NamedObjects, find_named_objects};
use super::nodes::{PrefetchedObject, VisitedBytes};
use super::structures::structures;
use super::subtree::{self, References};
use super::traits::traits;
use super::tree::PlaceBuilder;

/// Part of a heap whose places are found.
#[derive(Debug, Clone, Copy)]
pub(super) enum Extent<'e> {
    /// The entire heap.
    All,
    /// Objects with at least this retained size, and the objects that they immediately dominate.
    Large(u64),
    /// The objects at these positions, and all objects that they dominate.
    Below(&'e [TreePosition]),
}

/// Returns the places of an extent of a dump.
pub(super) fn places(
    dump: &Dump<'_>,
    extent: Extent<'_>,
    frameworks: Option<&Frameworks>,
) -> io::Result<DumpPlaces> {
    let summary = dump.summary;
    let objects = dump.objects;
    let slots = ReferenceFields::new(summary);
    let references = References::new(&objects, &slots);
    let holders =
        if matches!(extent, Extent::All) { Some(HoldingReferences::new(&objects, &slots)?) } else { None };
    let held_by = |dominator: Option<ObjectIndex>, object: ObjectIndex| match (&holders, dominator) {
        (Some(holders), _) => holders.held_by(object),
        (None, Some(dominator)) => references.held_by(dominator, object),
        (None, None) => HeldBy::Unknown,
    };
    let forms = Forms::for_summary(objects.summary);
    let mut numbers = LabelNumbers::new(summary, &slots);
    let least = keyed::min_keyed_bytes(dump.graph.tree.reachable_bytes());
    let labels = Labels::new(dump);
    let large = match extent {
        Extent::Large(least) => Some(large::large_objects(&dump.graph.tree, least)),
        Extent::All | Extent::Below(_) => None,
    };
    let mut keys = keyed::keys(&objects, forms.clone(), &labels, least, large.as_deref(), &mut numbers.vias);
    let special = special(dump, &labels, &mut numbers.vias);
    let edges = Edges::new(dump);
    let mut adopted = adopted_objects(&edges);
    let mut traits = traits(summary, &forms);
    let named = frameworks.map_or_else(NamedObjects::default, |frameworks| {
        let known =
            BeforePass { numbers: &mut numbers, keys: &mut keys, adopted: &mut adopted, traits: &mut traits };
        find_named_objects(dump, frameworks, (&forms, &labels), least, known)
    });
    let mut builder = PlaceBuilder {
        summary,
        java_lang_class: summary.java_lang_class().map_or(NONE, |class| class.0),
        graph: dump.graph,
        traits,
        slots: &slots,
        held_by: &held_by,
        numbers,
        keys,
        special,
        adopted,
        named,
        nodes: Vec::new(),
        known: FxHashMap::default(),
        open: Vec::new(),
        bytes: 0,
        moved: 0,
        level: 0,
        before: Vec::new(),
        adoptions: Vec::new(),
        is_cut: false,
    };
    let mut members = Vec::new();
    match extent {
        Extent::All => {
            let look_up = |object: ObjectIndex, class| PrefetchedObject {
                object: object.0,
                class,
                by: held_by(None, object),
            };
            class_pass::pass(dump.graph, dump.graph.tree.positions(), look_up, |_, depth, found, bytes| {
                builder.object(depth, found, VisitedBytes::from_shallow(bytes));
            });
        }
        Extent::Large(least) => {
            members = large::walk(&mut builder, &references, least);
        }
        Extent::Below(tops) => subtree::walk(&mut builder, &references, tops),
    }
    builder.close(0);
    let structures = structures(&Containers::find(dump)?);
    Ok(DumpPlaces { hides_values: dump.heap.hides_values(), members, structures, ..builder.finish() })
}
