//! Bounds of containers: numeric fields near a container whose names indicate its maximum size.

use hprof_base::share::is_share;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::objects::fields::{self, FieldSlot, Fields};
use hprof_index::storage::human_bytes::group_digits;
use hprof_values::BasicType;
use hprof_values::names::is_of_jdk;

use crate::containers::simple_name;
use crate::leaks::Suspect;
use hprof_model::objects::bound_names::is_bound;

use super::LeakJudge;

/// Words in class names of containers whose elements wait to be taken, or are lent.
const WAITING: [&str; 5] = ["Queue", "Deque", "Ring", "Pool", "Mailbox"];
/// Maximum number of objects around a container that are examined.
const MAX_NEAR: usize = 6;
/// Maximum length of a class name that is examined.
const MAX_NAME: usize = 256;
/// Maximum number of fields of a class that are examined.
const MAX_FIELDS: usize = 256;
/// Maximum ratio of a bound to the number of elements; a larger number is not a bound.
const MOST_PER_ELEMENT: u64 = 100;
/// Minimum percentage of a bound for a queue to be full.
const FULL_PERCENT: u64 = 90;
/// Minimum bound of a pool for it to count as full: in a smaller one, all objects were returned.
const MIN_FULL_POOL: u64 = 50;
/// Maximum percentage of a bound that a cache may temporarily reach.
const OVER_PERCENT: u64 = 105;

/// A number in a field that bounds the elements of a container.
pub(super) struct ElementBound {
    /// Maximum number of elements.
    value: u64,
    field: String,
    /// Class of the object with the field.
    class: String,
    /// `true` if the elements wait to be taken or returned, as in a queue or a pool.
    pub(super) is_of_waiting: bool,
}

impl ElementBound {
    /// Returns whether this number of elements fills the container to its bound.
    pub(super) fn is_full(&self, elements: u64) -> bool {
        let is_small_pool = self.value < MIN_FULL_POOL && self.class.contains("Pool");
        !is_small_pool && is_share(elements, self.value, FULL_PERCENT)
    }

    /// Describes how much of the bound a number of elements uses.
    pub(super) fn text(&self, elements: u64) -> String {
        let class: String = self.class.chars().take(MAX_NAME).collect();
        format!(
            "{} of at most {} ({} of {class})",
            group_digits(elements),
            group_digits(self.value),
            self.field
        )
    }
}

impl LeakJudge<'_, '_> {
    /// Returns the bound of the elements of a suspect, from the nearest object with a suitable field.
    pub(super) fn bound(&self, suspect: &Suspect, elements: u64) -> Option<ElementBound> {
        let id = suspect.container.as_ref().map_or(suspect.base.object, |container| container.object);
        let object = self.object(id)?;
        let own = [Some(object), self.objects.reference(object, "this$0")];
        let own: Vec<ObjectIndex> = own.into_iter().flatten().collect();
        // For objects dominated only by roots, the path from the root is known.
        let steps = suspect.paths.iter().flat_map(|paths| paths.path.steps.iter().rev());
        let mut near: Vec<ObjectIndex> =
            steps.filter_map(|step| self.object(step.id)).take(MAX_NEAR).collect();
        let tree = &self.graph.tree;
        let position = tree.reachable_position(object);
        let above =
            std::iter::successors(position, |position| tree.dominator(*position)).skip(1).take(MAX_NEAR);
        near.extend(above.filter_map(|position| tree.object_at(position)));
        let of_own = own.iter().find_map(|object| self.bound_of(*object, elements, true));
        of_own.or_else(|| near.into_iter().find_map(|object| self.bound_of(object, elements, false)))
    }

    /// Returns the bound in the fields of an object; `is_own` is `true` for the container itself.
    fn bound_of(&self, object: ObjectIndex, elements: u64, is_own: bool) -> Option<ElementBound> {
        let summary = self.objects.summary;
        let class = self.graph.objects.class(object)?;
        let name = summary.class_name(summary.class(class)?);
        // The numbers of a thread, a loader or an executor do not bound its contents.
        let is_of_runtime = self.runtime.iter().any(|one| one == name) || name.contains("Executor");
        if self.graph.class_of_class_object(object).is_some() || is_of_runtime {
            return None;
        }
        let values = self.objects.fields(object)?;
        let is_of_waiting = is_of_waiting(name);
        let bounds = integers(summary, class).filter(|field| is_bound(field)).filter_map(|field| {
            let value = u64::try_from(values.integer(field)?).ok()?;
            let is_large = elements.saturating_mul(100) <= value.saturating_mul(OVER_PERCENT);
            let is_likely = value <= elements.saturating_mul(MOST_PER_ELEMENT);
            // A server's number of threads or connections does not bound its queue.
            let is_of_server = !is_own && ["ool", "onnections"].iter().any(|word| field.contains(word));
            // Neither does the number of elements at which a table of this length grows.
            let is_bound = value > 0
                && is_large
                && is_likely
                && !is_of_server
                && (is_of_waiting || !self.has_table_of(&values, value));
            is_bound.then(|| ElementBound {
                value,
                field: field.to_owned(),
                class: name.to_owned(),
                is_of_waiting,
            })
        });
        bounds.min_by_key(|bound| bound.value)
    }

    /// Returns whether a field of an object, in a class outside the JDK, has a table with one to four times `number` slots:
    /// tables are not filled entirely, and some alternate keys and values.
    fn has_table_of(&self, values: &Fields<'_>, number: u64) -> bool {
        let summary = self.objects.summary;
        let slots = fields::slots(summary, values.class()).take(MAX_FIELDS);
        let own = slots.filter(|slot| {
            let class = summary.class(slot.class).map_or("", |row| summary.class_name(row));
            slot.kind == BasicType::Object && !is_of_jdk(class)
        });
        let length = |slot: FieldSlot<'_>| {
            let array = self.object(values.reference(slot.name)?)?;
            Some(u64::from(self.objects.record(array)?.length()?))
        };
        own.filter_map(length).any(|length| (number..=number.saturating_mul(4)).contains(&length))
    }
}

fn integers(summary: &Summary, class: ClassNumber) -> impl Iterator<Item = &str> {
    let slots = fields::slots(summary, class).take(MAX_FIELDS);
    slots.filter(|slot| matches!(slot.kind, BasicType::Int | BasicType::Long)).map(|slot| slot.name)
}

fn is_of_waiting(class: &str) -> bool {
    let simple = simple_name(class);
    WAITING.iter().any(|word| simple.contains(word))
}
