//! Keys of map values, for maps with few entries.
//!
//! The keys of a small map that retains much may be names (of caches, regions, tenants), while the keys of a large map are
//! data. Which keys are shown is decided once the places of all dumps are known ([`super::telling`]).

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use hprof_base::sorting::SortRows;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::collections::{CollectionKind, Collections, Forms};
use hprof_model::objects::label::Labels;
use hprof_model::objects::reader::{Bits, ObjectReader};

use super::labels::{Pool, Via};

/// Maximum number of entries of a map whose keys are read, and of keys that may be shown at a place.
pub(super) const MAX_KEYS: usize = 64;
/// Maximum number of maps examined, largest retained size first.
const MAX_MAPS: usize = 1 << 14;
/// Maximum number of slots of a map's table.
const MAX_SLOTS: usize = 1 << 12;
/// Maximum number of characters of a key.
const MAX_CHARS: usize = 64;
/// Minimum retained size of a map whose keys are read, as a fraction of the reachable bytes (1/`PART`).
const PART: u64 = 10_000;

/// Returns the smallest retained size of a map whose keys are read, for a heap with this many reachable bytes.
pub(super) fn min_keyed_bytes(reachable_bytes: u64) -> u64 {
    (reachable_bytes / PART).max(1)
}

/// Returns, for the values of small maps that retain at least `least` bytes, the number of their [`Via`], by object. If `large`
/// is given, only maps in it are read.
pub(super) fn keys(
    objects: &ObjectReader<'_>,
    forms: Arc<Forms>,
    labels: &Labels<'_>,
    least: u64,
    large: Option<&[TreePosition]>,
    vias: &mut Pool<Via>,
) -> FxHashMap<u32, u32> {
    let (summary, graph) = (objects.summary, objects.graph);
    let is_map = |class: &ClassNumber| {
        forms.of_class(*class).is_some_and(|of| of.kind == CollectionKind::Map && of.wraps.is_none())
    };
    let maps: Vec<ObjectIndex> = match large {
        None => {
            let classes = summary.numbered_classes().map(|(class, _)| class).filter(is_map);
            ClassSet::from_classes(summary, &classes.collect::<Vec<_>>()).all_objects(graph)
        }
        Some(large) => {
            let objects = large.iter().filter_map(|position| graph.tree.object_at(*position));
            objects
                .filter(|object| graph.objects.class(*object).is_some_and(|class| is_map(&class)))
                .collect()
        }
    };
    let mut large: Vec<(u64, ObjectIndex)> = maps
        .into_par_iter()
        .filter_map(|map| Some((graph.tree.retained_bytes_of(map)?, map)))
        .filter(|(bytes, _)| *bytes >= least)
        .collect();
    large.sort_rows_by_key(|(bytes, map)| (std::cmp::Reverse(*bytes), *map));
    let collections = Collections::with(objects, forms.clone());
    let mut found = FxHashMap::default();
    for (_, map) in large.into_iter().take(MAX_MAPS) {
        let Some(collection) = collections.collection(map) else { continue };
        let is_small =
            collections.count(&collection).is_some_and(|count| (1..=MAX_KEYS as u64).contains(&count));
        // Without a limit, maps that share one long empty table would be read forever.
        if !is_small || collections.slots(&collection).is_some_and(|slots| slots > MAX_SLOTS) {
            continue;
        }
        for entry in collections.entries(&collection).take(MAX_KEYS) {
            let value = entry.value.reference().and_then(|id| graph.objects.addresses.index_of(id));
            let key = entry.key.and_then(|key| text(objects, labels, key));
            if let (Some(value), Some(key)) = (value, key) {
                found.entry(value.0).or_insert_with(|| vias.number(Via::ValueOf(key.into())));
            }
        }
    }
    found
}

/// Returns a key as text, if it is a String, a number or an enum constant.
pub(super) fn text(objects: &ObjectReader<'_>, labels: &Labels<'_>, key: Bits) -> Option<String> {
    let Some(key) = key.reference() else {
        return key.integer().map(|number| number.to_string());
    };
    let key = objects.graph.objects.addresses.index_of(key)?;
    let class = objects.graph.objects.class(key)?;
    let table = objects.summary.class_table();
    let is_named = |name: &str| {
        let name_of = |class| objects.summary.class(class).map(|row| objects.summary.class_name(row));
        table.upwards(class).take(3).any(|class| name_of(class) == Some(name))
    };
    if !["java.lang.String", "java.lang.Number", "java.lang.Enum", "java.lang.Character"]
        .into_iter()
        .any(is_named)
    {
        return None;
    }
    let text = labels.unmasked_label(key)?;
    Some(match text.char_indices().nth(MAX_CHARS) {
        None => text,
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    })
}
