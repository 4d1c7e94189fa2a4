//! Resolution of FROM: names and addresses to objects of the dump, or rows of a table.

use roaring::RoaringBitmap;

use hprof_base::naming::suggestions;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::ClassKind;
use hprof_values::ObjectId;
use hprof_values::names::java_class_name;

use super::builtins::cut;
use super::code::ValueTable;
use super::error::OqlError;
use super::evaluate::{EvaluatedRow, Evaluator};
use super::names::regex_text::{mats_pattern, regex};
use super::names::resolve::{NameScope, Resolver};
use super::selected::{Objects, SubqueryEvaluator};
use super::tree::{From, Select, SelectSource};
use super::value::ExpressionValue;

/// Maximum number of rows of a table, which are stored in memory.
pub(super) const MAX_ROWS: usize = 10_000_000;

impl Evaluator<'_, '_> {
    /// Resolves a FROM clause.
    pub(super) fn resolve_from(
        &self,
        select: &Select,
        ask: &dyn SubqueryEvaluator,
    ) -> Result<Objects, OqlError> {
        let from = &select.from;
        let classes = match &from.source {
            SelectSource::Class(name) => {
                let classes = self.classes_named(name, from.at)?;
                if from.with_subclasses && !from.is_objects {
                    self.check_interface(&classes, from.at)?;
                }
                classes
            }
            SelectSource::Pattern(pattern) => {
                let regex = regex(&mats_pattern(pattern), from.at)?;
                let names = self.dump.summary.numbered_classes();
                let found: Vec<ClassNumber> = names
                    .filter(|(_, class)| regex.is_match(self.dump.summary.class_name(class)))
                    .map(|(number, _)| number)
                    .collect();
                if found.is_empty() {
                    return Err(OqlError::unknown(
                        from.at,
                        format!("no class in the dump matches \"{}\"", cut(pattern)),
                    ));
                }
                found
            }
            SelectSource::Addresses(ids) => {
                let objects = ids.iter().map(|id| {
                    self.dump.graph.objects.addresses.index_of(*id).map(|object| object.0).ok_or_else(|| {
                        let nearest: Vec<String> = suggestions::object_ids(self.dump.graph, *id)
                            .iter()
                            .map(|id| format!("{id:#x}"))
                            .collect();
                        let hint = if nearest.is_empty() {
                            String::new()
                        } else {
                            format!("; the nearest objects are {}", nearest.join(", "))
                        };
                        OqlError::unknown(from.at, format!("no object {id:#x} in the dump{hint}"))
                    })
                });
                return self.as_objects(from, objects.collect::<Result<_, _>>()?);
            }
            SelectSource::Indices(indices) => {
                let objects = indices.iter().map(|index| {
                    u32::try_from(*index)
                        .ok()
                        .filter(|index| *index < self.dump.graph.objects.len())
                        .ok_or_else(|| {
                            OqlError::unknown(
                                from.at,
                                format!("no object has @objectId {index}; object IDs begin with 0x"),
                            )
                        })
                });
                return self.as_objects(from, objects.collect::<Result<_, _>>()?);
            }
            SelectSource::Query(query) => {
                return match ask.rows(query)? {
                    Objects::Set(set) if self.bound.is_some_and(|most| set.len() > most as u64) => {
                        Err(too_many(from.at))
                    }
                    Objects::Set(set) if self.bound.is_some() => Ok(table_of(
                        set.iter().map(|object| ExpressionValue::Object(ObjectIndex(object))).collect(),
                    )),
                    Objects::Set(set) => self.as_objects(from, set),
                    rows => Ok(rows),
                };
            }
            // The rows are values, not objects of a source.
            SelectSource::Expressions(_) => return Ok(table_of(Vec::new())),
            SelectSource::AllClasses => {
                return self.as_objects(from, self.dump.graph.objects.class_objects().clone());
            }
            SelectSource::ClassesByName(name, with_subclasses) => {
                let found = self.classes_named(name, from.at)?;
                let found = if *with_subclasses { self.with_subclasses(&found) } else { self.marks(&found) };
                return self.as_objects(from, self.class_objects(&found));
            }
            SelectSource::Value(node) => {
                let mut resolver = Resolver::new(self, select, NameScope::Nothing, ask);
                let code = resolver.code(node)?;
                let value = self.value(&code, &EvaluatedRow::new(u32::MAX, &[], None));
                return self.of_value(select, value);
            }
        };
        let found = if from.with_subclasses { self.with_subclasses(&classes) } else { self.marks(&classes) };
        Ok(if from.is_objects { Objects::Set(self.class_objects(&found)) } else { Objects::Classes(found) })
    }

    /// Returns the given objects, or the instances of the classes that they represent, as FROM specifies.
    fn as_objects(&self, from: &From, objects: RoaringBitmap) -> Result<Objects, OqlError> {
        let of_class = objects.intersection_len(self.dump.graph.objects.class_objects());
        // An object that is not a class object cannot represent a class.
        if from.is_objects
            || objects.is_empty()
            || (of_class == 0 && matches!(from.source, SelectSource::Query(_)))
        {
            return Ok(Objects::Set(objects));
        }
        if of_class < objects.len() {
            let text = "not all of these objects are class objects; use FROM OBJECTS to select the objects themselves";
            return Err(OqlError::new(from.at, text));
        }
        let classes: Vec<ClassNumber> =
            objects.iter().filter_map(|object| self.class_of(ObjectIndex(object))).collect();
        Ok(Objects::Classes(if from.with_subclasses {
            self.with_subclasses(&classes)
        } else {
            self.marks(&classes)
        }))
    }

    /// Returns the rows for a value: the objects in it, or a table with one row per value.
    fn of_value(&self, select: &Select, value: ExpressionValue) -> Result<Objects, OqlError> {
        let from = &select.from;
        let max = self.bound.unwrap_or(MAX_ROWS);
        let values: Vec<ExpressionValue> = match &value {
            ExpressionValue::Null => Vec::new(),
            value if value.is_listed() => {
                let items = self.items_of(value).into_iter().flatten();
                // MAT omits nulls as well.
                let mut values: Vec<ExpressionValue> = Vec::new();
                for item in items.filter(|item| *item != ExpressionValue::Null).take(max + 1) {
                    // Each value becomes a row, and a growing vector temporarily exists twice.
                    self.keep(from.at, 3 * item.bytes() + 16)?;
                    values.push(item);
                }
                if values.len() > max {
                    return Err(too_many(from.at));
                }
                values
            }
            _ => vec![value.clone()],
        };
        // A pass over a set of objects takes time proportional to the heap: for few rows a table is faster.
        if self.bound.is_some() {
            return Ok(table_of(values));
        }
        // Numbers are objects if objects are selected, and classes if classes are.
        let by_number = !from.is_objects || select.items.is_none() || select.is_objects;
        let object = |value: &ExpressionValue| match value {
            ExpressionValue::Object(object) => Some(object.0),
            ExpressionValue::Whole(number) if by_number => {
                self.object_of_number(*number).map(|object| object.0)
            }
            _ => None,
        };
        let objects: RoaringBitmap = values.iter().map_while(object).collect();
        if values.iter().all(|value| object(value).is_some()) {
            return self.as_objects(from, objects);
        }
        if !from.is_objects {
            let text =
                "not all of these values are class objects; use FROM OBJECTS to select the values themselves";
            return Err(OqlError::new(from.at, text));
        }
        Ok(table_of(values))
    }

    /// Returns the object at an address, or with an object index.
    pub(super) fn object_of_number(&self, number: i64) -> Option<ObjectIndex> {
        let at = self.dump.graph.objects.addresses.index_of(ObjectId(number.cast_unsigned()));
        let index = || u32::try_from(number).ok().filter(|index| *index < self.dump.graph.objects.len());
        at.or_else(|| index().map(ObjectIndex))
    }

    /// Returns the classes with this name.
    ///
    /// # Errors
    /// If there are none.
    pub(super) fn classes_named(&self, text: &str, at: usize) -> Result<Vec<ClassNumber>, OqlError> {
        let name = java_class_name(text);
        let classes = self.dump.summary.numbered_classes();
        let found: Vec<ClassNumber> = classes
            .filter(|(_, class)| self.dump.summary.is_named(class, &name))
            .map(|(number, _)| number)
            .collect();
        if found.is_empty() {
            let like = suggestions::class_names(self.dump.summary, &name);
            let hint = if like.is_empty() {
                String::new()
            } else {
                format!("; {}", suggestions::did_you_mean(&like))
            };
            return Err(OqlError::unknown(at, format!("no class {} in the dump{hint}", cut(&name))));
        }
        Ok(found)
    }

    /// Returns an error if classes look like interfaces, of which nothing in a dump is an instance.
    ///
    /// # Errors
    /// If they have no instances, no subclasses and no fields, and are below java.lang.Object.
    pub(super) fn check_interface(&self, classes: &[ClassNumber], at: usize) -> Result<(), OqlError> {
        let summary = self.dump.summary;
        let is_object = |class: ClassNumber| {
            summary.class(class).is_some_and(|row| summary.is_named(row, "java.lang.Object"))
        };
        let looks = |class: &ClassNumber| {
            summary.class(*class).is_some_and(|row| {
                row.kind() == ClassKind::Instance
                    && row.objects.get() == 0
                    && summary.fields(row).next().is_none()
                    && !is_object(*class)
                    && summary.class_table().superclass(*class).is_none_or(is_object)
            })
        };
        let count = self.with_subclasses(classes).iter().filter(|mark| **mark).count();
        if count > classes.len() || !classes.iter().all(looks) {
            return Ok(());
        }
        let name =
            classes.first().and_then(|class| summary.class(*class)).map_or("", |row| summary.class_name(row));
        let text = format!(
            "{} has neither instances nor subclasses; if it is an interface: dumps do not record which classes implement it, \
             so name a class, or a pattern in quotes",
            cut(name)
        );
        Err(OqlError::unknown(at, text))
    }

    pub(super) fn marks(&self, classes: &[ClassNumber]) -> Vec<bool> {
        let mut marks = vec![false; self.dump.summary.classes().len()];
        for class in classes {
            if let Some(mark) = marks.get_mut(class.0 as usize) {
                *mark = true;
            }
        }
        marks
    }

    /// Returns these classes and all their subclasses.
    pub(super) fn with_subclasses(&self, classes: &[ClassNumber]) -> Vec<bool> {
        self.inherit(self.marks(classes))
    }

    /// Extends the marks to all subclasses of marked ones.
    pub(super) fn inherit(&self, mut marks: Vec<bool>) -> Vec<bool> {
        self.dump.summary.class_table().add_subclasses(&mut marks);
        marks
    }

    /// Returns the class objects of the marked classes.
    pub(super) fn class_objects(&self, marks: &[bool]) -> RoaringBitmap {
        let numbers = (0u32..).zip(marks).filter(|(_, mark)| **mark).map(|(number, _)| ClassNumber(number));
        numbers.filter_map(|class| Some(self.dump.graph.class_object(class)?.0)).collect()
    }

    /// Returns, by class number, whether a row can be of the class.
    pub(super) fn row_classes(&self, source: &Objects) -> Vec<bool> {
        match source {
            Objects::Classes(classes) => classes.clone(),
            Objects::Rows(..) => Vec::new(),
            Objects::Set(set) => {
                let mut marks = vec![false; self.dump.summary.classes().len()];
                for class in
                    set.iter().filter_map(|object| self.dump.graph.objects.class(ObjectIndex(object)))
                {
                    if let Some(mark) = marks.get_mut(class.0 as usize) {
                        *mark = true;
                    }
                }
                marks
            }
        }
    }
}

/// Creates a table with a row for each value.
fn table_of(values: Vec<ExpressionValue>) -> Objects {
    ValueTable { columns: None, rows: values.into_iter().map(|value| Box::from([value])).collect() }.into()
}

/// Returns the error for a table with too many rows.
pub(super) fn too_many(at: usize) -> OqlError {
    let text = format!("FROM accepts at most {MAX_ROWS} rows with columns; add WHERE or LIMIT");
    OqlError::new(at, text)
}
