//! Side tables of class loaders: maps whose keys are classes of the loaders, or the loaders themselves, such as a cache of data
//! about each class. They belong to the conclusion about the loaders, and are not a separate cause.

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;

use super::contents;
use super::loaders::Loaders;
use super::reader::EvidenceReader;
use super::{LeakVerdict, Suspect, SuspectKind, SuspectSubject};

/// Number of keys examined.
const SAMPLE: usize = 256;
/// Minimum number of keys for a map to be a side table.
const MANY: usize = 10;

/// Returns, for each suspect that is a side table, the number of the suspect about the class loaders whose classes are its
/// keys.
pub(super) fn side_tables(
    reader: &EvidenceReader<'_>,
    rows: &[Suspect],
    groups: &Loaders,
) -> Vec<Option<usize>> {
    let are_loaders = |row: &Suspect| {
        row.what == SuspectSubject::ClassLoader && row.own_verdict() == Some(LeakVerdict::Accumulation)
    };
    let loaders: Vec<(usize, &Suspect)> =
        rows.iter().enumerate().filter(|(_, row)| are_loaders(row)).collect();
    let of_row = |row: &Suspect| {
        if loaders.is_empty() || are_loaders(row) || row.own_verdict() != Some(LeakVerdict::Accumulation) {
            return None;
        }
        let keys = keys(reader, row)?;
        let is_of = |(_, of): &&(usize, &Suspect)| {
            let count = keys.iter().filter(|loader| is_one_of(reader, groups, **loader, of)).count();
            contents::is_most(count as u64, keys.len() as u64)
        };
        loaders.iter().find(is_of).map(|(at, _)| *at)
    };
    rows.iter().map(of_row).collect()
}

/// Returns the class loader of each key of a suspect's map; `None` for a key that is neither a loader nor a class that a loader
/// defines.
fn keys(reader: &EvidenceReader<'_>, row: &Suspect) -> Option<Vec<Option<ObjectIndex>>> {
    let map = row.collection.as_ref()?.object;
    let graph = reader.dump.graph;
    let collections = reader.evidence.collections();
    let collection = collections.collection(graph.objects.addresses.index_of(map)?)?;
    let keys: Vec<ObjectIndex> = collections
        .entries(&collection)
        .take(SAMPLE)
        .filter_map(|entry| graph.objects.addresses.index_of(entry.key?.reference()?))
        .collect();
    (keys.len() >= MANY).then(|| keys.into_iter().map(|key| reader.loader_of(key)).collect())
}

fn is_one_of(
    reader: &EvidenceReader<'_>,
    groups: &Loaders,
    loader: Option<ObjectIndex>,
    of: &Suspect,
) -> bool {
    let Some(loader) = loader else { return false };
    if let Some(group) = of.loader_group {
        let id = reader.dump.graph.objects.addresses.id_of(loader);
        let members = groups.get(group).map(|of| of.group.loaders.as_slice());
        return members.is_some_and(|members| id.is_some_and(|id| members.binary_search(&id).is_ok()));
    }
    match of.kind {
        SuspectKind::Single => reader.dump.graph.objects.addresses.index_of(of.object.object) == Some(loader),
        SuspectKind::Group => {
            let class: Option<ClassNumber> = reader.dump.graph.objects.class(loader);
            class.is_some_and(|class| of.group_class.as_deref() == Some(reader.class_name(class)))
        }
    }
}
