//! Finding objects by ID without an index: only the chunks whose ID range contains the target are
//! searched.
//!
//! For the few objects that a summary needs: class loaders, the JVM's system properties.

use crate::storage::id_map::{IdMap, IdSet};
use rayon::prelude::*;

use hprof_parser::heap::{HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use hprof_values::{BasicType, ObjectId, be_ids};

use crate::model::array_contents::DumpContents;
use crate::model::summary::{ClassIds, Summary};
use crate::objects::strings::{StringFields, StringPart};

use super::tallies::ChunkIds;
use crate::records::chunks::Plan;
use crate::records::source::DumpBytes;

/// Search for objects by ID, without an index.
pub(crate) struct Lookup<'a> {
    pub(crate) source: &'a DumpBytes<'a>,
    pub(crate) plan: &'a Plan,
    pub(crate) chunks: &'a [ChunkIds],
    /// Maximum number of bytes that one search reads.
    pub(crate) budget: u64,
}

/// An object that was found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FoundObject<'a> {
    Instance { class: ObjectId, fields: &'a [u8] },
    Objects { elements: &'a [u8] },
    Primitives { element: BasicType, elements: &'a [u8] },
}

impl<'a> Lookup<'a> {
    /// Finds the existing objects with these IDs, within the budget.
    pub(crate) fn find(&self, ids: &IdSet<ObjectId>) -> IdMap<ObjectId, FoundObject<'a>> {
        let mut sorted: Vec<ObjectId> = ids.iter().copied().filter(|id| !id.is_null()).collect();
        sorted.sort_unstable();
        let mut bytes = 0;
        let candidates: Vec<&ChunkIds> = (self.chunks.iter())
            .filter(|ids| {
                let at = sorted.partition_point(|id| id.0 < ids.lowest);
                sorted.get(at).is_some_and(|id| id.0 <= ids.highest)
            })
            .take_while(|ids| {
                bytes += (ids.chunk.end - ids.chunk.start) as u64;
                bytes <= self.budget
            })
            .collect();
        let parts: Vec<Vec<(ObjectId, FoundObject<'a>)>> = (candidates.par_iter())
            .map(|ids| {
                let mut finder = ObjectFinder { ids: &sorted, found: Vec::new() };
                self.plan.walk(self.source, &ids.chunk, &mut finder, |_| {});
                finder.found
            })
            .collect();
        parts.into_iter().flatten().collect()
    }

    /// Finds the object with this ID.
    pub(crate) fn find_one(&self, id: ObjectId) -> Option<FoundObject<'a>> {
        self.find(&IdSet::from_iter([id])).remove(&id)
    }

    /// Returns the texts of java.lang.Strings, each truncated to a maximum number of characters.
    pub(crate) fn strings(
        &self,
        summary: &Summary,
        classes: &ClassIds,
        ids: &IdSet<ObjectId>,
        max_chars: usize,
    ) -> IdMap<ObjectId, String> {
        let places: Vec<(ObjectId, ObjectId, StringPart)> = (self.find(ids).into_iter())
            .filter_map(|(string, found)| {
                let FoundObject::Instance { class, fields } = found else {
                    return None;
                };
                let places = StringFields::for_class(summary, *classes.get(&class)?)?;
                let (array, part) = places.read(fields, summary.id_size())?;
                Some((string, array, part))
            })
            .collect();
        let arrays = self.find(&places.iter().map(|(_, array, _)| *array).collect());
        let missing = summary.missing_contents();
        if missing.contents() == DumpContents::Removed {
            return IdMap::default();
        }
        (places.into_iter())
            .filter_map(|(string, array, part)| {
                let FoundObject::Primitives { element, elements } = arrays.get(&array)? else {
                    return None;
                };
                let units = part.characters_left(*element, elements, missing)?.units().take(max_chars);
                let text = char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER));
                Some((string, text.collect()))
            })
            .collect()
    }

    /// Returns the IDs in the elements of an object array.
    pub(crate) fn ids_in(&self, elements: &'a [u8]) -> impl Iterator<Item = ObjectId> + use<'a> {
        be_ids(elements, self.source.header.id_size)
    }
}

/// Visitor that stores the objects with the given IDs.
struct ObjectFinder<'s, 'a> {
    /// IDs of the objects to find, ascending.
    ids: &'s [ObjectId],
    found: Vec<(ObjectId, FoundObject<'a>)>,
}

impl<'a> ObjectFinder<'_, 'a> {
    fn check(&mut self, id: ObjectId, found: impl FnOnce() -> FoundObject<'a>) {
        if self.ids.binary_search(&id).is_ok() {
            self.found.push((id, found()));
        }
    }
}

impl<'a> HeapVisitor<'a> for ObjectFinder<'_, 'a> {
    fn instance(&mut self, record: Instance<'a>) {
        self.check(record.id, || FoundObject::Instance { class: record.class, fields: record.fields });
    }
    fn object_array(&mut self, record: ObjectArray<'a>) {
        self.check(record.id, || FoundObject::Objects { elements: record.elements });
    }
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        let elements = record.elements.unwrap_or_default();
        self.check(record.id, || FoundObject::Primitives { element: record.element, elements });
    }
}
