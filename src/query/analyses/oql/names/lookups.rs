//! Names that no value has: errors, which are known once rows are evaluated.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use hprof_base::naming::suggestions;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::{ClassNumber, Summary};

use super::properties::PROPERTIES;
use crate::oql::OqlResult;
use crate::oql::builtins::cut;
use crate::oql::code::{FieldLookup, FieldStep};
use crate::oql::error::OqlError;
use crate::oql::evaluate::Evaluator;
use crate::oql::value::{ExpressionValue, List};

/// Maximum number of names that a message lists if none is similar to the requested one.
pub(super) const LISTED: usize = 12;

/// Number of rows of which the values are computed while a name was found nowhere and is missing from some value.
const MAX_SETTLED: usize = 1 << 16;
/// Number of rows of which the values are computed while a name was not looked up, since values before it were null.
const MAX_UNSEEN: usize = 64;

impl FieldLookup {
    /// Records whether a value has the name.
    pub(in crate::oql) fn record(&self, value: &ExpressionValue, is_found: bool) {
        if self.is_found.load(Ordering::Relaxed) {
            return;
        }
        if is_found {
            self.is_found.store(true, Ordering::Relaxed);
        } else if self.missed.get().is_none() {
            let _ = self.missed.set(value.clone());
        }
    }
}

impl Evaluator<'_, '_> {
    /// Starts to record the lookups of a name at an offset of the query.
    pub(in crate::oql) fn lookup(&self, name: &str, at: usize) -> Arc<FieldLookup> {
        let (is_found, missed) = (AtomicBool::new(false), OnceLock::new());
        let lookup = Arc::new(FieldLookup { at, name: name.into(), is_found, missed });
        self.lookups.lock().unwrap_or_else(PoisonError::into_inner).push(lookup.clone());
        lookup
    }

    /// Records whether a value has the name of a step, and returns what was found.
    pub(in crate::oql) fn record_lookup(
        &self,
        step: &FieldStep,
        value: &ExpressionValue,
        found: Option<ExpressionValue>,
    ) -> ExpressionValue {
        if let Some(lookup) = &step.found {
            lookup.record(value, found.is_some());
        }
        found.unwrap_or(ExpressionValue::Null)
    }

    /// Checks that every name in a query was found in at least one value, if it was looked up at all: in the conditions,
    /// which were evaluated for all rows, and in the values of the first rows.
    ///
    /// # Errors
    /// If a name is unknown, or if the query failed.
    pub(in crate::oql) fn settle(&self, answer: &OqlResult) -> Result<(), OqlError> {
        let lookups = self.lookups.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_found = |lookup: &Arc<FieldLookup>| lookup.is_found.load(Ordering::Relaxed);
        let is_missed = |lookup: &Arc<FieldLookup>| !is_found(lookup) && lookup.missed.get().is_some();
        for part in answer.parts.iter().filter(|part| part.items.is_some()) {
            let mut rows = part.values(self);
            for number in 0..MAX_SETTLED {
                let is_settled = lookups.iter().all(is_found)
                    || (number >= MAX_UNSEEN && !lookups.iter().any(is_missed))
                    || self.kept.is_failed();
                if is_settled || rows.next().is_none() {
                    break;
                }
            }
        }
        self.kept.check()?;
        match lookups.iter().find(|lookup| is_missed(lookup)) {
            None => Ok(()),
            Some(lookup) => Err(self.unknown_name(lookup)),
        }
    }

    fn unknown_name(&self, lookup: &FieldLookup) -> OqlError {
        let name = cut(&lookup.name);
        let missed = lookup.missed.get().unwrap_or(&ExpressionValue::Null);
        if name == "get()" {
            let text =
                format!("get() reads arrays, lists, collections and maps, not {}", self.kind_name(missed));
            return OqlError::new(lookup.at, text);
        }
        let text = match missed {
            ExpressionValue::Object(object) => match self.class_of(*object) {
                Some(class) => self.unknown_static(class, &name),
                None => {
                    let class = self.dump.graph.objects.class(*object);
                    let hint = class.map(|class| fields_hint(self.dump.summary, class, &name));
                    format!("{} has no field {name}{}", self.kind_name(missed), hint.unwrap_or_default())
                }
            },
            ExpressionValue::List(List::Statics, of) => match self.class_of(*of) {
                Some(class) => self.unknown_static(class, &name),
                None => format!("no static field {name}"),
            },
            ExpressionValue::Record(record) => {
                let names: Vec<&str> = record.names.iter().map(|name| &**name).collect();
                let hint = suggestions::did_you_mean_one_of(&name, &names, LISTED, "its names are");
                format!("{{...}} has no {name}; {hint}")
            }
            value if value.is_listed() => {
                format!("a list has no field {name}; read it from each item, as in map(list, 'it.{name}')")
            }
            value => format!("{} has no field {name}", self.kind_name(value)),
        };
        OqlError::new(lookup.at, text)
    }

    /// Returns what a value is, for messages.
    pub(in crate::oql) fn kind_name(&self, value: &ExpressionValue) -> String {
        match value {
            ExpressionValue::Object(object) => cut(self.class_name(*object).unwrap_or("an object")),
            ExpressionValue::Text(_) | ExpressionValue::Char(_) => "a text".to_owned(),
            ExpressionValue::Boolean(_) => "a boolean".to_owned(),
            ExpressionValue::Entry(_) => "an entry of a map (key, value)".to_owned(),
            ExpressionValue::Record(_) => "a record".to_owned(),
            ExpressionValue::Missing(_) => "an object that is not in the dump".to_owned(),
            ExpressionValue::Snapshot | ExpressionValue::SnapshotInfo => "${snapshot}".to_owned(),
            value if value.is_listed() => "a list".to_owned(),
            _ => "a number".to_owned(),
        }
    }

    fn unknown_static(&self, class: ClassNumber, name: &str) -> String {
        let summary = self.dump.summary;
        let Some(row) = summary.class(class) else { return format!("no static field {name}") };
        let names: Vec<&str> = summary.statics(row).map(|(name, ..)| name).take(1000).collect();
        let hint = match names.is_empty() {
            true => format!("the properties of classes are {}", PROPERTIES.join(", ")),
            false => suggestions::did_you_mean_one_of(name, &names, LISTED, "its static fields are"),
        };
        let class = cut(summary.class_name(row));
        format!("class {class} has neither a static field nor a property {name}; {hint}")
    }
}

/// Returns the names of a class's fields that are like a name, or the first ones.
pub(super) fn fields_hint(summary: &Summary, class: ClassNumber, name: &str) -> String {
    // A long chain of superclasses has too many.
    let mut fields = Vec::new();
    let upwards = summary.class_table().upwards(class);
    for class in upwards.take(64).filter_map(|class| summary.class(class)) {
        fields.extend(summary.fields(class).map(|(field, _)| field).take(1000));
    }
    if fields.is_empty() {
        return String::new();
    }
    format!("; {}", suggestions::did_you_mean_one_of(name, &fields, LISTED, "its fields are"))
}

/// Returns the index of an object, if the value is one.
pub(in crate::oql) fn object(value: &ExpressionValue) -> Option<ObjectIndex> {
    if let ExpressionValue::Object(object) = value { Some(*object) } else { None }
}
