//! Structures: the nodes and arrays of a container outside the JDK are at the place of the container, like the parts of a JDK
//! collection.
//!
//! The classes of nodes and arrays are found in each dump from its references (`containers`), and apply by name: a map of ten
//! entries, which is too small for a row of its own, has the same places as one of ten thousand. Dumps that are compared share
//! the structures of all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use hprof_values::names;

use crate::containers::{ContainerFamily, Containers, is_key_field};
use hprof_base::naming::stable_names;

use super::labels::{PlaceLabel, Via};

/// Classes of the nodes and arrays that the objects of one class own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlaceStructure {
    /// Class of the objects that represent the container.
    header: Arc<str>,
    /// `true` if the container is a map.
    is_map: bool,
    /// Classes of the nodes and arrays.
    parts: Vec<Arc<str>>,
}

/// Returns the structures of the containers of a dump, in the order of their names.
pub(super) fn structures(containers: &Containers) -> Vec<PlaceStructure> {
    let mut all: BTreeMap<Arc<str>, PlaceStructure> = BTreeMap::new();
    // The parts of JDK collections are recognized without this (`traits`).
    let of_programs = containers.all.iter().filter(|one| !names::is_of_jdk(&one.class));
    for one in of_programs.filter(|one| !one.parts.is_empty()) {
        let header: Arc<str> = stable_names::stem(&one.class).into();
        let structure = all.entry(header.clone()).or_insert_with(|| PlaceStructure {
            header,
            is_map: false,
            parts: Vec::new(),
        });
        structure.is_map |= one.family == ContainerFamily::Map;
        structure.parts.extend(one.parts.iter().map(|part| Arc::from(stable_names::stem(part))));
        structure.parts.sort_unstable();
        structure.parts.dedup();
    }
    all.into_values().collect()
}

/// Structures of all compared dumps, by the class of their headers.
#[derive(Default)]
pub(super) struct PlaceStructures<'a> {
    numbers: FxHashMap<&'a str, u32>,
    all: Vec<(bool, FxHashSet<&'a str>)>,
}

/// Membership of a place in a structure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StructureMembership {
    /// Number of the structure to which the objects at the place belong.
    structure: Option<u32>,
    /// `true` if the objects are nodes or arrays of the structure.
    pub(super) is_part: bool,
}

impl<'a> PlaceStructures<'a> {
    pub(super) fn from_dumps(dumps: impl Iterator<Item = &'a [PlaceStructure]>) -> Self {
        let mut found = Self::default();
        for structure in dumps.flatten() {
            let next = u32::try_from(found.all.len()).unwrap_or(u32::MAX);
            let number = *found.numbers.entry(&structure.header).or_insert(next);
            if number == next {
                found.all.push((false, FxHashSet::default()));
            }
            if let Some((is_map, parts)) = found.all.get_mut(number as usize) {
                *is_map |= structure.is_map;
                parts.extend(structure.parts.iter().map(|part| &**part));
            }
        }
        found
    }

    /// Returns the membership of a place, given the membership of the place above it.
    pub(super) fn membership(&self, above: StructureMembership, label: &PlaceLabel) -> StructureMembership {
        let Some(class) = label.class.as_deref().filter(|_| !label.is_class_object) else {
            return StructureMembership::default();
        };
        let of_above = above.structure.and_then(|number| self.all.get(number as usize));
        // An object named by a framework's rule has its own place.
        if label.called.is_none() && of_above.is_some_and(|(_, parts)| parts.contains(class)) {
            return StructureMembership { is_part: true, ..above };
        }
        StructureMembership { structure: self.numbers.get(class).copied(), is_part: false }
    }

    /// Returns the label of an object that a part of a structure holds, without the field of the part.
    pub(super) fn label_below(&self, above: StructureMembership, label: &PlaceLabel) -> PlaceLabel {
        let is_map =
            above.structure.and_then(|number| self.all.get(number as usize)).is_some_and(|(is, _)| *is);
        let via = match &label.via {
            Via::Field { name, .. } if is_map && is_key_field(name) => Via::Key,
            Via::Field { .. } | Via::Unknown if is_map => Via::Value,
            Via::Field { .. } => Via::Unknown,
            other => other.clone(),
        };
        PlaceLabel { via, ..label.clone() }
    }
}
