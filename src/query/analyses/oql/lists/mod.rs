//! Lists: elements of arrays and collections, references, fields. They are read lazily.

mod membership;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_model::objects::collections::{CollectionKind, Collections};
use hprof_model::objects::reader::{Bits, ObjectRecord};
use hprof_values::ObjectId;
use hprof_values::{BasicType, be_value};

use crate::oql::evaluate::Evaluator;
use crate::oql::value::{ExpressionValue, List, Record, Slice};
use roaring::RoaringBitmap;
use std::sync::Arc;

impl<'a> Evaluator<'_, 'a> {
    /// Returns the length of an array.
    pub(in crate::oql) fn length(&self, object: ObjectIndex) -> ExpressionValue {
        match self.dump.objects.record(object) {
            Some(ObjectRecord::ObjectArray(array)) => ExpressionValue::Whole(array.length.into()),
            Some(ObjectRecord::PrimitiveArray(array)) => ExpressionValue::Whole(array.length.into()),
            _ => ExpressionValue::Null,
        }
    }

    /// Returns the list that a value represents, and its object: the elements of an array, or the contents of a collection.
    fn as_list(&self, value: &ExpressionValue) -> Option<(List, ObjectIndex)> {
        match value {
            ExpressionValue::List(list, of) => Some((*list, *of)),
            ExpressionValue::Object(object) if self.length(*object) != ExpressionValue::Null => {
                Some((List::Elements, *object))
            }
            ExpressionValue::Object(object) => {
                let collection = self.collections().collection(*object)?;
                (collection.kind != CollectionKind::Holder).then_some((List::Entries, *object))
            }
            _ => None,
        }
    }

    /// Returns whether a value is a list.
    pub(in crate::oql) fn is_list(&self, value: &ExpressionValue) -> bool {
        value.is_listed() || self.as_list(value).is_some()
    }

    fn collections(&self) -> &Collections<'_, 'a> {
        self.collections.get_or_init(|| Collections::new(&self.dump.objects))
    }

    /// Returns whether the instances of a class are collections.
    pub(in crate::oql) fn is_collection(&self, class: ClassNumber) -> bool {
        let kind = self.collections().kind_of(class);
        kind.is_some_and(|kind| kind != CollectionKind::Holder)
    }

    /// Returns the contents of a collection: elements; for maps, keys and values.
    fn entries(&self, object: ObjectIndex) -> impl Iterator<Item = ExpressionValue> + '_ {
        let collections = self.collections();
        let entries = collections.collection(object).map(|collection| collections.entries(&collection));
        entries.into_iter().flatten().map(|entry| {
            let value = self.field_value(entry.value, || false);
            entry.key.map_or(value.clone(), |key| {
                ExpressionValue::Entry(Box::new((self.field_value(key, || false), value)))
            })
        })
    }

    /// Returns the instance fields that a class declares, as records.
    fn declared_fields(&self, object: ObjectIndex) -> impl Iterator<Item = ExpressionValue> + '_ {
        let class = self.class_of(object).and_then(|class| self.dump.summary.class(class));
        let fields = class.into_iter().flat_map(|class| self.dump.summary.fields(class));
        let names: Arc<[Box<str>]> = Arc::new(["name".into(), "signature".into()]);
        fields.map(move |(name, kind)| {
            let text = |text: &str| ExpressionValue::Text(text.into());
            let values = Box::from([text(name), text(kind.java_name())]);
            ExpressionValue::Record(Arc::new(Record { names: names.clone(), values }))
        })
    }

    fn subclasses(&self, object: ObjectIndex) -> Vec<ObjectIndex> {
        let Some(class) = self.class_of(object) else { return Vec::new() };
        let marks = self.with_subclasses(&[class]);
        let classes = self.class_objects(&marks);
        classes.iter().map(ObjectIndex).filter(|found| *found != object).collect()
    }

    /// Returns the items of a list; `None` if the value is not a list.
    pub(in crate::oql) fn items_of(
        &self,
        value: &ExpressionValue,
    ) -> Option<Box<dyn Iterator<Item = ExpressionValue> + '_>> {
        Some(match value {
            ExpressionValue::Many(values) => {
                let values = values.clone();
                Box::new((0..values.len()).filter_map(move |at| values.get(at).cloned()))
            }
            ExpressionValue::Slice(slice) => self.slice_items((**slice).clone()),
            ExpressionValue::Objects(set) => {
                Box::new(SetItems::new(set.clone()).map(ExpressionValue::Object))
            }
            value => {
                let (list, of) = self.as_list(value)?;
                self.list(list, of)
            }
        })
    }

    /// Returns the items of a slice.
    pub(in crate::oql) fn slice_items(&self, slice: Slice) -> Box<dyn Iterator<Item = ExpressionValue> + '_> {
        let skipped = usize::try_from(slice.start).unwrap_or(usize::MAX);
        let count = usize::try_from(slice.end.saturating_sub(slice.start)).unwrap_or(usize::MAX);
        Box::new(self.list_from(slice.list, slice.of, skipped).take(count))
    }

    /// Returns the length of a list.
    pub(in crate::oql) fn count(&self, value: &ExpressionValue) -> Option<u64> {
        let count = match value {
            ExpressionValue::Slice(slice) => return Some(slice.end.saturating_sub(slice.start)),
            ExpressionValue::Many(values) => values.len(),
            ExpressionValue::Objects(set) => return Some(set.len()),
            value => match self.as_list(value)? {
                (List::Elements, of) => return u64::try_from(self.length(of).integer()?).ok(),
                (List::Outbounds, of) => {
                    self.dump.graph.references(of).count()
                        + usize::from(self.dump.graph.class_object_of(of).is_some())
                }
                (List::Inbounds, of) => self.dump.graph.referrers(of).count(),
                (List::Roots, _) => self.root_objects().len(),
                (List::Entries, of) if self.bound.is_some() => {
                    let collections = self.collections();
                    let stated = collections.collection(of).and_then(|found| collections.count(&found));
                    return stated.or_else(|| self.count_elements(List::Entries, of));
                }
                (list, of) => return self.count_elements(list, of),
            },
        };
        u64::try_from(count).ok()
    }

    /// Counts the elements of a list; `None` if there are more than the limit.
    fn count_elements(&self, list: List, of: ObjectIndex) -> Option<u64> {
        let count = match self.bound {
            None => self.list(list, of).count(),
            Some(most) => Some(self.list(list, of).take(most + 1).count()).filter(|count| *count <= most)?,
        };
        u64::try_from(count).ok()
    }

    /// Returns the number of elements of a list as a value.
    pub(in crate::oql) fn size(&self, value: &ExpressionValue) -> ExpressionValue {
        let count = self.count(value).and_then(|count| i64::try_from(count).ok());
        count.map_or(ExpressionValue::Null, ExpressionValue::Whole)
    }

    /// Returns the element of a list at an index.
    pub(in crate::oql) fn element(
        &self,
        value: &ExpressionValue,
        index: Option<i64>,
    ) -> Option<ExpressionValue> {
        let index = usize::try_from(index?).ok()?;
        match value {
            ExpressionValue::Many(values) => values.get(index).cloned(),
            ExpressionValue::Objects(set) => set
                .select(u32::try_from(index).ok()?)
                .map(|object| ExpressionValue::Object(ObjectIndex(object))),
            ExpressionValue::Slice(slice) => {
                let at = slice.start.checked_add(u64::try_from(index).ok()?).filter(|at| *at < slice.end)?;
                self.nth(slice.list, slice.of, usize::try_from(at).ok()?)
            }
            value => {
                let (list, of) = self.as_list(value)?;
                self.nth(list, of, index)
            }
        }
    }

    fn nth(&self, list: List, of: ObjectIndex, index: usize) -> Option<ExpressionValue> {
        self.list_from(list, of, index).next()
    }

    /// Returns the elements `[first:last]`, both inclusive; negative indices are counted from the end.
    pub(in crate::oql) fn slice(
        &self,
        value: &ExpressionValue,
        first: Option<i64>,
        last: Option<i64>,
    ) -> Option<ExpressionValue> {
        let count = i64::try_from(self.count(value)?).ok()?;
        let from_end = |at: i64| if at < 0 { at.saturating_add(count) } else { at };
        self.part(value, from_end(first?).max(0), from_end(last?).saturating_add(1))
    }

    /// Returns the elements from `start` to `end` (exclusive) that exist.
    pub(in crate::oql) fn part(
        &self,
        value: &ExpressionValue,
        start: i64,
        end: i64,
    ) -> Option<ExpressionValue> {
        let count = self.count(value)?;
        let start = u64::try_from(start).ok()?.min(count);
        let end = u64::try_from(end).unwrap_or(0).clamp(start, count);
        Some(match value {
            ExpressionValue::Many(values) => {
                let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
                ExpressionValue::from_values(values.get(range)?.to_vec())
            }
            ExpressionValue::Objects(set) => {
                let skipped = usize::try_from(start).ok()?;
                let taken = usize::try_from(end.saturating_sub(start)).ok()?;
                ExpressionValue::Objects(Arc::new(set.iter().skip(skipped).take(taken).collect()))
            }
            ExpressionValue::Slice(slice) => ExpressionValue::Slice(Box::new(Slice {
                start: slice.start.checked_add(start)?,
                end: slice.start.checked_add(end)?,
                ..**slice
            })),
            value => {
                let (list, of) = self.as_list(value)?;
                ExpressionValue::Slice(Box::new(Slice { list, of, start, end }))
            }
        })
    }

    fn read(&self, element: &[u8], kind: BasicType) -> Option<ExpressionValue> {
        let bits = be_value(element, 0, kind, self.dump.summary.id_size())?;
        Some(match kind {
            BasicType::Object => self.of_id(ObjectId(bits)),
            kind => self.field_value(Bits { kind, bits }, || false),
        })
    }

    /// Returns the type and the bytes of an array's elements.
    fn elements(&self, array: ObjectIndex) -> Option<(BasicType, &'a [u8])> {
        match self.dump.objects.record(array)? {
            ObjectRecord::ObjectArray(array) => Some((BasicType::Object, array.elements)),
            ObjectRecord::PrimitiveArray(array) => Some((array.element, array.elements.unwrap_or_default())),
            _ => None,
        }
    }

    /// Returns the contents of a list without its first elements.
    fn list_from(
        &self,
        list: List,
        of: ObjectIndex,
        skipped: usize,
    ) -> Box<dyn Iterator<Item = ExpressionValue> + '_> {
        if list != List::Elements {
            return Box::new(self.list(list, of).skip(skipped));
        }
        let Some((kind, elements)) = self.elements(of) else { return Box::new(std::iter::empty()) };
        let width = kind.dump_bytes(self.dump.summary.id_size()).max(1);
        let rest = skipped.checked_mul(width).and_then(|start| elements.get(start..)).unwrap_or_default();
        Box::new(rest.chunks_exact(width).filter_map(move |element| self.read(element, kind)))
    }

    /// Returns the contents of a list, read lazily.
    pub(in crate::oql) fn list(
        &self,
        list: List,
        of: ObjectIndex,
    ) -> Box<dyn Iterator<Item = ExpressionValue> + '_> {
        match list {
            List::Elements => self.list_from(list, of, 0),
            List::Outbounds => {
                let class = self.dump.graph.class_object_of(of);
                Box::new(class.into_iter().chain(self.dump.graph.references(of)).map(ExpressionValue::Object))
            }
            List::Entries => Box::new(self.entries(of)),
            List::Fields => {
                let class = self.dump.graph.objects.class(of);
                let count = class.map_or(0, |class| self.dump.objects.slots(class).count());
                Box::new((0u32..).take(count).map(move |number| ExpressionValue::Field(of, number)))
            }
            List::Statics => {
                let class = self.class_of(of).and_then(|class| self.dump.summary.class(class));
                let count = class.map_or(0, |class| self.dump.summary.statics(class).count());
                Box::new((0u32..).take(count).map(move |number| ExpressionValue::Static(of, number)))
            }
            List::Declared => Box::new(self.declared_fields(of)),
            List::Subclasses => Box::new(self.subclasses(of).into_iter().map(ExpressionValue::Object)),
            List::Classes => Box::new(
                self.dump.graph.objects.class_objects().iter().map(ObjectIndex).map(ExpressionValue::Object),
            ),
            List::Roots => Box::new(self.root_objects().iter().copied().map(ExpressionValue::Object)),
            List::Inbounds => Box::new(self.dump.graph.referrers(of).map(ExpressionValue::Object)),
            List::Locals => Box::new(self.locals(of).into_iter().map(ExpressionValue::Object)),
            List::Dominated => {
                let tree = &self.dump.graph.tree;
                let children = tree.reachable_position(of).map(|at| tree.children(at)).into_iter().flatten();
                Box::new(children.filter_map(|at| tree.object_at(at)).map(ExpressionValue::Object))
            }
        }
    }
}

/// Objects of a set, in ascending order.
pub(in crate::oql) struct SetItems {
    set: Arc<RoaringBitmap>,
    /// Objects that were read from the set, last one first.
    read: Vec<u32>,
    /// Object from which to read on.
    next: Option<u32>,
}

impl SetItems {
    /// Number of objects that are read at once.
    const READ: usize = 1024;

    pub(in crate::oql) fn new(set: Arc<RoaringBitmap>) -> Self {
        Self { set, read: Vec::new(), next: Some(0) }
    }
}

impl Iterator for SetItems {
    type Item = ObjectIndex;

    fn next(&mut self) -> Option<ObjectIndex> {
        if self.read.is_empty() {
            let from = self.next?;
            self.read.extend(self.set.range(from..).take(Self::READ));
            self.next = self.read.last().and_then(|last| last.checked_add(1));
            self.read.reverse();
        }
        self.read.pop().map(ObjectIndex)
    }
}
