//! Lists: elements of arrays and collections, references, fields. They are read while they are taken.

use crate::objects::collections::{Collections, Kind};
use crate::objects::reader::{Bits, Record};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_parser::ObjectId;
use hprof_parser::{BasicType, be_value};

use super::evaluate::Evaluator;
use super::value::{List, Slice, Value};

impl<'a> Evaluator<'_, 'a> {
    pub(super) fn length(&self, object: ObjectIndex) -> Value {
        match self.objects.record(object) {
            Some(Record::ObjectArray(array)) => Value::Whole(array.length.into()),
            Some(Record::PrimitiveArray(array)) => Value::Whole(array.length.into()),
            _ => Value::Null,
        }
    }

    /// The list that a value is; of an array its elements, of a collection what it holds.
    fn as_list(&self, value: &Value) -> Option<(List, ObjectIndex)> {
        match value {
            Value::List(list, of) => Some((*list, *of)),
            Value::Object(object) if self.length(*object) != Value::Null => Some((List::Elements, *object)),
            Value::Object(object) => {
                let collection = self.collections().collection(*object)?;
                (collection.kind != Kind::Holder).then_some((List::Entries, *object))
            }
            _ => None,
        }
    }

    pub(super) fn is_list(&self, value: &Value) -> bool {
        matches!(value, Value::Slice(_) | Value::Many(_)) || self.as_list(value).is_some()
    }

    fn collections(&self) -> &Collections<'_, 'a> {
        self.collections.get_or_init(|| Collections::new(self.objects))
    }

    /// Contents of a collection: elements; for maps, keys and values.
    fn entries(&self, object: ObjectIndex) -> impl Iterator<Item = Value> + '_ {
        let collections = self.collections();
        let entries = collections.collection(object).map(|collection| collections.entries(&collection));
        entries.into_iter().flatten().map(|entry| {
            let value = self.of_bits(entry.value);
            entry.key.map_or(value.clone(), |key| Value::Entry(Box::new((self.of_bits(key), value))))
        })
    }

    fn subclasses(&self, object: ObjectIndex) -> Vec<ObjectIndex> {
        let Some(class) = self.class_of(object) else { return Vec::new() };
        let marks = self.with_subclasses(&[class]);
        let classes = self.class_objects(&marks);
        classes.iter().map(ObjectIndex).filter(|found| *found != object).collect()
    }

    /// Returns the items of a list; `None` if the value is not one.
    pub(super) fn items_of(&self, value: &Value) -> Option<Box<dyn Iterator<Item = Value> + '_>> {
        Some(match value {
            Value::Many(values) => {
                let values = values.clone();
                Box::new((0..values.len()).filter_map(move |at| values.get(at).cloned()))
            }
            Value::Slice(slice) => self.slice_items((**slice).clone()),
            value => {
                let (list, of) = self.as_list(value)?;
                self.list(list, of)
            }
        })
    }

    pub(super) fn slice_items(&self, slice: Slice) -> Box<dyn Iterator<Item = Value> + '_> {
        let skipped = usize::try_from(slice.start).unwrap_or(usize::MAX);
        let count = usize::try_from(slice.end.saturating_sub(slice.start)).unwrap_or(usize::MAX);
        Box::new(self.list_from(slice.list, slice.of, skipped).take(count))
    }

    /// Returns the length of a list.
    pub(super) fn count(&self, value: &Value) -> Option<u64> {
        let count = match value {
            Value::Slice(slice) => return Some(slice.end.saturating_sub(slice.start)),
            Value::Many(values) => values.len(),
            value => match self.as_list(value)? {
                (List::Elements, of) => return u64::try_from(self.length(of).whole()?).ok(),
                (List::Outbounds, of) => {
                    self.graph.references(of).count() + usize::from(self.graph.class_object_of(of).is_some())
                }
                (List::Inbounds, of) => self.graph.referrers(of).count(),
                (List::Roots, _) => self.root_objects().len(),
                (List::Entries, of) if self.bound.is_some() => {
                    let collections = self.collections();
                    let stated = collections.collection(of).and_then(|found| collections.count(&found));
                    return stated.or_else(|| self.counted(List::Entries, of));
                }
                (list, of) => return self.counted(list, of),
            },
        };
        u64::try_from(count).ok()
    }

    /// The length of a list by its elements; `None` if there are more than are evaluated.
    fn counted(&self, list: List, of: ObjectIndex) -> Option<u64> {
        let count = match self.bound {
            None => self.list(list, of).count(),
            Some(most) => Some(self.list(list, of).take(most + 1).count()).filter(|count| *count <= most)?,
        };
        u64::try_from(count).ok()
    }

    pub(super) fn size(&self, value: &Value) -> Value {
        let count = self.count(value).and_then(|count| i64::try_from(count).ok());
        count.map_or(Value::Null, Value::Whole)
    }

    pub(super) fn element(&self, value: &Value, index: Option<i64>) -> Option<Value> {
        let index = usize::try_from(index?).ok()?;
        match value {
            Value::Many(values) => values.get(index).cloned(),
            Value::Slice(slice) => {
                let at = slice.start.checked_add(u64::try_from(index).ok()?).filter(|at| *at < slice.end)?;
                self.nth(slice.list, slice.of, usize::try_from(at).ok()?)
            }
            value => {
                let (list, of) = self.as_list(value)?;
                self.nth(list, of, index)
            }
        }
    }

    fn nth(&self, list: List, of: ObjectIndex, index: usize) -> Option<Value> {
        self.list_from(list, of, index).next()
    }

    /// `[first:last]`, both in it; negative ones are counted from the end.
    pub(super) fn slice(&self, value: &Value, first: Option<i64>, last: Option<i64>) -> Option<Value> {
        let count = i64::try_from(self.count(value)?).ok()?;
        let from_end = |at: i64| if at < 0 { at.saturating_add(count) } else { at };
        self.part(value, from_end(first?).max(0), from_end(last?).saturating_add(1))
    }

    /// From one element to the one before another, as far as there are any.
    pub(super) fn part(&self, value: &Value, start: i64, end: i64) -> Option<Value> {
        let count = self.count(value)?;
        let start = u64::try_from(start).ok()?.min(count);
        let end = u64::try_from(end).unwrap_or(0).clamp(start, count);
        Some(match value {
            Value::Many(values) => {
                let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
                Value::Many(values.get(range)?.into())
            }
            Value::Slice(slice) => Value::Slice(Box::new(Slice {
                start: slice.start.checked_add(start)?,
                end: slice.start.checked_add(end)?,
                ..**slice
            })),
            value => {
                let (list, of) = self.as_list(value)?;
                Value::Slice(Box::new(Slice { list, of, start, end }))
            }
        })
    }

    fn read(&self, element: &[u8], kind: BasicType) -> Option<Value> {
        let bits = be_value(element, 0, kind, self.summary.id_size())?;
        Some(match kind {
            BasicType::Object => self.of_id(ObjectId(bits)),
            kind => self.of_bits(Bits { kind, bits }),
        })
    }

    /// The type and the bytes of an array's elements.
    fn elements(&self, array: ObjectIndex) -> Option<(BasicType, &'a [u8])> {
        match self.objects.record(array)? {
            Record::ObjectArray(array) => Some((BasicType::Object, array.elements)),
            Record::PrimitiveArray(array) => Some((array.element, array.elements.unwrap_or_default())),
            _ => None,
        }
    }

    /// Contents of a list after its first elements.
    fn list_from(&self, list: List, of: ObjectIndex, skipped: usize) -> Box<dyn Iterator<Item = Value> + '_> {
        if list != List::Elements {
            return Box::new(self.list(list, of).skip(skipped));
        }
        let Some((kind, elements)) = self.elements(of) else { return Box::new(std::iter::empty()) };
        let width = kind.dump_bytes(self.summary.id_size()).max(1);
        let rest = skipped.checked_mul(width).and_then(|start| elements.get(start..)).unwrap_or_default();
        Box::new(rest.chunks_exact(width).filter_map(move |element| self.read(element, kind)))
    }

    /// Contents of a list, read lazily.
    pub(super) fn list(&self, list: List, of: ObjectIndex) -> Box<dyn Iterator<Item = Value> + '_> {
        match list {
            List::Elements => self.list_from(list, of, 0),
            List::Outbounds => {
                let class = self.graph.class_object_of(of);
                Box::new(class.into_iter().chain(self.graph.references(of)).map(Value::Object))
            }
            List::Entries => Box::new(self.entries(of)),
            List::Fields => {
                let class = self.graph.objects.class(of);
                let count = class.map_or(0, |class| self.objects.slots(class).count());
                Box::new((0u32..).take(count).map(move |number| Value::Field(of, number)))
            }
            List::Statics => {
                let class = self.class_of(of).and_then(|class| self.summary.class(class));
                let count = class.map_or(0, |class| self.summary.statics(class).count());
                Box::new((0u32..).take(count).map(move |number| Value::Static(of, number)))
            }
            List::Subclasses => Box::new(self.subclasses(of).into_iter().map(Value::Object)),
            List::Classes => {
                Box::new(self.graph.objects.class_objects().iter().map(ObjectIndex).map(Value::Object))
            }
            List::Roots => Box::new(self.root_objects().iter().copied().map(Value::Object)),
            List::Inbounds => Box::new(self.graph.referrers(of).map(Value::Object)),
            List::Locals => Box::new(self.locals(of).into_iter().map(Value::Object)),
            List::Dominated => {
                let tree = &self.graph.tree;
                let children = tree.reachable_position(of).map(|at| tree.children(at)).into_iter().flatten();
                Box::new(children.filter_map(|at| tree.object_at(at)).map(Value::Object))
            }
        }
    }
}
