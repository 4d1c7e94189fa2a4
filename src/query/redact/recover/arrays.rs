//! Classes of arrays, by the fields that refer to them.
//!
//! All classes of arrays have the same structure. If all arrays referenced by a field have one class in each of two
//! dumps of a program, it is the same class: the table of `java.util.HashMap` is an array of its nodes in both. A few
//! values of each field are examined.

use std::collections::BTreeSet;

use hprof_index::remains::{self, ReferenceSample};
use hprof_index::storage::id_map::{IdMap, IdSet};
use hprof_values::{BasicType, IdSize, ObjectId};

use super::shapes::{ClassShape, DumpClasses};

/// Maximum number of field values that are examined in a dump.
const MAX_SAMPLES: usize = 1 << 20;

/// A reference field of a class: class number in this dump, and number of the field; static fields come after instance fields.
type FieldKey = (usize, usize);

/// Adds pairs of array classes to `pairs`: by class number in this dump, the number of the same class in the other dump.
pub(super) fn add_arrays(
    ours: &DumpClasses<'_, '_>,
    theirs: &DumpClasses<'_, '_>,
    pairs: &mut [Option<usize>],
) {
    let is_open = |(class, pair): (&ClassShape<'_>, &Option<usize>)| class.is_array && pair.is_none();
    if !ours.shapes.iter().zip(pairs.iter()).any(is_open) {
        return;
    }
    let known: Vec<(usize, usize)> =
        pairs.iter().enumerate().filter_map(|(our, their)| Some((our, (*their)?))).collect();
    let our_fields = array_classes(ours, known.iter().map(|(our, _)| (*our, *our)));
    let their_fields = array_classes(theirs, known.iter().map(|(our, their)| (*our, *their)));
    let number = |dump: &DumpClasses<'_, '_>| -> IdMap<ObjectId, usize> {
        dump.shapes.iter().enumerate().map(|(number, shape)| (shape.id, number)).collect()
    };
    let (our_numbers, their_numbers) = (number(ours), number(theirs));
    let taken: BTreeSet<usize> = known.iter().map(|(_, their)| *their).collect();
    // All candidates for a class in either dump.
    let mut candidates: IdMap<usize, BTreeSet<usize>> = IdMap::default();
    let mut of_theirs: IdMap<usize, BTreeSet<usize>> = IdMap::default();
    for (field, our) in &our_fields {
        let (Some(our), Some(their)) = (single_value(our), their_fields.get(field).and_then(single_value))
        else {
            continue;
        };
        let (Some(our), Some(their)) = (our_numbers.get(&our), their_numbers.get(&their)) else { continue };
        candidates.entry(*our).or_default().insert(*their);
        of_theirs.entry(*their).or_default().insert(*our);
    }
    for (our, their) in &candidates {
        let Some(their) = single_value(their).filter(|their| !taken.contains(their)) else { continue };
        let is_array = |shape: &ClassShape<'_>| shape.name.is_some_and(|name| name.starts_with(b"["));
        let is_free =
            pairs.get(*our) == Some(&None) && of_theirs.get(&their).is_some_and(|ours| ours.len() == 1);
        if is_free
            && theirs.shapes.get(their).is_some_and(is_array)
            && let Some(pair) = pairs.get_mut(*our)
        {
            *pair = Some(their);
        }
    }
}

fn single_value<T: Copy + Ord>(set: &BTreeSet<T>) -> Option<T> {
    set.first().copied().filter(|_| set.len() == 1)
}

/// Returns the classes of the arrays that fields refer to. `classes` contains, for each key, the class and its number in the
/// dump.
fn array_classes(
    dump: &DumpClasses<'_, '_>,
    classes: impl Iterator<Item = (usize, usize)>,
) -> std::collections::HashMap<FieldKey, BTreeSet<ObjectId>> {
    let Some(id_size) = dump.parts.first().map(|part| part.header().id_size) else {
        return Default::default();
    };
    let mut offsets: IdMap<ObjectId, Vec<usize>> = IdMap::default();
    let mut keys = std::collections::HashMap::new();
    let mut samples: Vec<(FieldKey, ObjectId)> = Vec::new();
    for (key, number) in classes {
        let Some(shape) = dump.shapes.get(number) else { continue };
        for (field, offset) in reference_offsets(shape, id_size) {
            offsets.entry(shape.id).or_default().push(offset);
            keys.insert((shape.id, offset), (key, field));
        }
        let statics = (shape.fields.len()..).zip(&shape.statics);
        let references = statics.filter(|(_, field)| field.kind == BasicType::Object && field.value != 0);
        samples.extend(references.map(|(field, of)| ((key, field), ObjectId(of.value))));
    }
    for (part, heap) in dump.parts.iter().zip(dump.heaps) {
        let found = remains::reference_samples(part, &heap.segments, &offsets);
        let key = |sample: &ReferenceSample| keys.get(&(sample.class, sample.offset)).copied();
        samples.extend(found.iter().filter_map(|sample| Some((key(sample)?, sample.target))));
        samples.truncate(MAX_SAMPLES);
    }
    let targets: IdSet<ObjectId> = samples.iter().map(|(_, target)| *target).collect();
    let found = dump.parts.iter().zip(dump.heaps);
    let found = found.flat_map(|(part, heap)| remains::classes_of_arrays(part, &heap.segments, &targets));
    let classes: IdMap<ObjectId, ObjectId> = found.collect();
    let mut by_field: std::collections::HashMap<FieldKey, BTreeSet<ObjectId>> = Default::default();
    for (key, target) in samples {
        if let Some(class) = classes.get(&target) {
            by_field.entry(key).or_default().insert(*class);
        }
    }
    by_field
}

/// Returns number and offset of each reference field that a class declares, within the values of its instances.
fn reference_offsets(shape: &ClassShape<'_>, id_size: IdSize) -> Vec<(usize, usize)> {
    let mut at = 0;
    let mut found = Vec::new();
    for (number, field) in shape.fields.iter().enumerate() {
        if field.kind == BasicType::Object {
            found.push((number, at));
        }
        at += field.kind.dump_bytes(id_size);
    }
    found
}
