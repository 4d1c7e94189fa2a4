//! Functions of jhat's `heap`: classes, objects, roots, objects that wait for finalization, paths from roots.

use rustc_hash::FxHashSet;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_model::heap_facts::finalizers;
use hprof_model::objects::reference_names::Edges;
use hprof_model::objects::strength::Exclusions;
use hprof_model::paths::Budget;
use hprof_model::paths::shortest;
use hprof_values::ObjectId;
use hprof_values::names::java_class_name;

use crate::oql::error::OqlError;
use crate::oql::evaluate::Evaluator;
use crate::oql::names::lookups::object;
use crate::oql::selected::Objects;
use crate::oql::tree::HeapFunction;
use crate::oql::value::{ExpressionValue, List};

/// Maximum number of paths from roots to an object.
const MAX_PATHS: usize = 10;
/// Number of objects or classes that count as one item when they are only searched.
const SKIPPED: u64 = 64;
/// Number of referrers that a search for paths visits at most.
const PATH_REFERRERS: u64 = 1 << 22;

impl<'a> Evaluator<'_, 'a> {
    /// Returns the value of a function of `heap`. `at` is its offset in the query.
    pub(in crate::oql) fn heap(
        &self,
        function: HeapFunction,
        arguments: &[ExpressionValue],
        at: usize,
    ) -> ExpressionValue {
        let first = arguments.first().unwrap_or(&ExpressionValue::Null);
        let second = arguments.get(1);
        let list = |list| ExpressionValue::List(list, ObjectIndex(0));
        match function {
            HeapFunction::Classes => list(List::Classes),
            HeapFunction::Roots => list(List::Roots),
            HeapFunction::FindClass => {
                self.read_items(self.dump.summary.classes().len() as u64 / SKIPPED + 1, at);
                self.class_value(first)
            }
            HeapFunction::FindObject => self.object_value(first),
            HeapFunction::Finalizables => Self::object_list(self.finalizables()),
            HeapFunction::Objects => match self.class_marks(arguments, at) {
                Ok(marks) => {
                    let found = self.matching(&Objects::Classes(marks), None, None);
                    self.read_items(u64::from(self.dump.graph.objects.len()) / SKIPPED + 1, at);
                    ExpressionValue::Objects(std::sync::Arc::new(found))
                }
                Err(error) => {
                    self.kept.record(error);
                    ExpressionValue::Null
                }
            },
            HeapFunction::LivePaths => match object(first) {
                Some(of) => self.live_paths(of, at),
                None => ExpressionValue::Null,
            },
            HeapFunction::Reachables => match object(first) {
                Some(of) => self.reachables(of, second, at),
                None => ExpressionValue::Null,
            },
            HeapFunction::Refers => {
                ExpressionValue::Boolean(match (object(first), second.and_then(object)) {
                    (Some(from), Some(to)) => {
                        let class = self.dump.graph.class_object_of(from);
                        class == Some(to) || self.dump.graph.references(from).any(|found| found == to)
                    }
                    _ => false,
                })
            }
        }
    }

    /// Returns the class object with a name or an ID; null if there is none.
    fn class_value(&self, wanted: &ExpressionValue) -> ExpressionValue {
        if object(wanted).is_some_and(|object| self.class_of(object).is_some()) {
            return wanted.clone();
        }
        let text = self.text(wanted).unwrap_or_default();
        let name = java_class_name(&text);
        let mut classes = self.dump.summary.numbered_classes();
        let found = classes.find(|(_, class)| self.dump.summary.is_named(class, &name));
        let found = found.and_then(|(class, _)| self.dump.graph.class_object(class));
        // An ID of a class object is allowed in place of a name.
        let by_id = || {
            let found = object(&self.object_value(wanted));
            found.filter(|object| self.class_of(*object).is_some())
        };
        found.or_else(by_id).map_or(ExpressionValue::Null, ExpressionValue::Object)
    }

    /// Returns the object with an ID, which is a number or a text; null if there is none.
    fn object_value(&self, wanted: &ExpressionValue) -> ExpressionValue {
        let id = match wanted {
            ExpressionValue::Object(_) => return wanted.clone(),
            ExpressionValue::Text(text) => {
                match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                    Some(digits) => u64::from_str_radix(digits, 16).ok(),
                    None => text.parse().ok(),
                }
            }
            value => value.integer().map(i64::cast_unsigned),
        };
        let found = id.and_then(|id| self.dump.graph.objects.addresses.index_of(ObjectId(id)));
        found.map_or(ExpressionValue::Null, ExpressionValue::Object)
    }

    /// Returns the marks of the classes whose objects are meant, by class number.
    fn class_marks(&self, arguments: &[ExpressionValue], at: usize) -> Result<Vec<bool>, OqlError> {
        let object_class = ExpressionValue::Text("java.lang.Object".into());
        let classes: Vec<ClassNumber> = match arguments.first().unwrap_or(&object_class) {
            ExpressionValue::Text(name) => self.classes_named(name, at)?,
            value => match object(value).and_then(|object| self.class_of(object)) {
                Some(class) => vec![class],
                None => {
                    let text =
                        "heap.objects() takes the name of a class, or a class; this class is not in the dump";
                    return Err(OqlError::unknown(at, text));
                }
            },
        };
        if arguments.get(1).is_some_and(|with_subclasses| !with_subclasses.is_true()) {
            return Ok(self.marks(&classes));
        }
        self.check_interface(&classes, at)?;
        Ok(self.with_subclasses(&classes))
    }

    /// Returns the objects that wait for `finalize`.
    fn finalizables(&self) -> Vec<ObjectIndex> {
        let objects = &self.dump.objects;
        let Some(reference) = self.dump.summary.boot_class("java.lang.ref.Reference") else {
            return Vec::new();
        };
        // A Finalizer has a `next` of its own, for objects that do not wait.
        let field = |object, name| objects.object(objects.field_of(object, reference, name)?);
        let mut next = finalizers(objects).and_then(|queue| objects.reference(queue, "head"));
        let (mut waiting, mut seen) = (Vec::new(), FxHashSet::default());
        // The last one refers to itself.
        while let Some(finalizer) = next.filter(|finalizer| seen.insert(finalizer.0)) {
            waiting.extend(field(finalizer, "referent"));
            next = field(finalizer, "next");
        }
        waiting
    }

    /// Returns the shortest paths from roots to an object, each as a list of objects.
    fn live_paths(&self, of: ObjectIndex, at: usize) -> ExpressionValue {
        let edges = self.edges.get_or_init(|| Edges::new(self.dump));
        let mut budget = Budget::new(PATH_REFERRERS);
        let found = shortest::paths_within(edges, of, MAX_PATHS, Exclusions::all_but_strong(), &mut budget);
        self.read_items(PATH_REFERRERS.saturating_sub(budget.remaining_referrers()) + 1024, at);
        let path = |path: Vec<ObjectIndex>| {
            ExpressionValue::from_values(path.into_iter().map(ExpressionValue::Object).collect())
        };
        ExpressionValue::from_values(found.paths.into_iter().map(path).collect())
    }
}
