//! `reachables`: the objects that an object leads to.

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_values::BasicType;
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use crate::oql::error::OqlError;
use crate::oql::evaluate::Evaluator;
use crate::oql::value::ExpressionValue;

/// Names of fields that are not followed, by class number.
type ExcludedFields = FxHashMap<u32, Vec<Box<str>>>;

impl Evaluator<'_, '_> {
    /// Returns the objects that are reachable from an object, through its class as well, as in jhat; without the object.
    /// `excluded` is a list of fields that are not followed: `java.net.URL.handler,java.io.File.path`.
    pub(super) fn reachables(
        &self,
        of: ObjectIndex,
        excluded: Option<&ExpressionValue>,
        at: usize,
    ) -> ExpressionValue {
        let excluded = match self.excluded_fields(excluded, at) {
            Ok(excluded) => excluded,
            Err(error) => {
                self.kept.record(error);
                return ExpressionValue::Null;
            }
        };
        let graph = self.dump.graph;
        let mut found = RoaringBitmap::new();
        found.insert(of.0);
        let mut level = found.clone();
        while !level.is_empty() {
            let mut next = RoaringBitmap::new();
            let mut read = level.len();
            for object in level.iter().map(ObjectIndex) {
                if let Some(class) = graph.class_object_of(object)
                    && found.insert(class.0)
                {
                    next.insert(class.0);
                }
                let mut visit = |target: ObjectIndex| {
                    read += 1;
                    if found.insert(target.0) {
                        next.insert(target.0);
                    }
                };
                match self.skipped_fields(object, &excluded) {
                    None => graph.references(object).for_each(&mut visit),
                    Some(names) => self.references_except(object, names).into_iter().for_each(&mut visit),
                }
            }
            if !self.read_items(read, at) {
                return ExpressionValue::Null;
            }
            level = next;
        }
        found.remove(of.0);
        ExpressionValue::Objects(std::sync::Arc::new(found))
    }

    /// Reads a list of fields to exclude.
    fn excluded_fields(
        &self,
        excluded: Option<&ExpressionValue>,
        at: usize,
    ) -> Result<ExcludedFields, OqlError> {
        let mut fields = ExcludedFields::default();
        let text = excluded.and_then(|value| self.text(value)).unwrap_or_default();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let Some((class, field)) = name.rsplit_once('.') else {
                return Err(OqlError::new(at, "reachables() excludes fields as \"java.net.URL.handler\""));
            };
            let classes = self.classes_named(class, at)?;
            self.read_items(self.dump.summary.classes().len() as u64 / 64 + 1, at);
            let has = |class: &ClassNumber| {
                let row = self.dump.summary.class(*class);
                row.is_some_and(|row| self.dump.summary.fields(row).any(|(known, _)| known == field))
            };
            if !classes.iter().any(has) {
                let name = crate::oql::builtins::cut(name);
                return Err(OqlError::unknown(at, format!("no field {name} in the dump")));
            }
            for class in classes {
                fields.entry(class.0).or_default().push(field.into());
            }
        }
        Ok(fields)
    }

    /// Returns whether an object has a field to exclude, as the classes that declare them.
    fn skipped_fields<'e>(
        &self,
        object: ObjectIndex,
        excluded: &'e ExcludedFields,
    ) -> Option<&'e ExcludedFields> {
        if excluded.is_empty() {
            return None;
        }
        let class = self.dump.graph.objects.class(object)?;
        let mut upwards = self.dump.summary.class_table().upwards(class);
        upwards.any(|class| excluded.contains_key(&class.0)).then_some(excluded)
    }

    /// Returns the targets of an instance's fields that are not excluded.
    fn references_except(&self, object: ObjectIndex, excluded: &ExcludedFields) -> Vec<ObjectIndex> {
        let Some(class) = self.dump.graph.objects.class(object) else { return Vec::new() };
        let Some(bytes) = self.dump.objects.instance(object) else { return Vec::new() };
        let targets = self.dump.objects.slots(class).filter_map(|slot| {
            let names = excluded.get(&slot.class.0);
            if slot.kind != BasicType::Object
                || names.is_some_and(|names| names.iter().any(|name| **name == *slot.name))
            {
                return None;
            }
            self.dump.objects.object(self.dump.objects.value(bytes, &slot)?)
        });
        targets.collect()
    }
}
