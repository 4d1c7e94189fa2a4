//! FROM: names and addresses -> objects of the dump, or rows of a table.

use roaring::RoaringBitmap;

use crate::classes::suggestions;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_parser::ObjectId;
use hprof_parser::names::java_class_name;

use super::code::Table;
use super::error::Wrong;
use super::evaluate::{Evaluator, Row};
use super::names::cut;
use super::resolve::{Names, Resolver, mats_pattern, regex};
use super::selected::{Ask, Objects};
use super::tree::{From, Select, Source};
use super::value::Value;

/// Rows of a table, which are kept in memory.
pub(super) const MAX_ROWS: usize = 10_000_000;

impl Evaluator<'_, '_> {
    /// The objects that a FROM clause means.
    pub(super) fn source(&self, select: &Select, ask: &dyn Ask) -> Result<Objects, Wrong> {
        let from = &select.from;
        let classes = match &from.source {
            Source::Class(name) => self.classes_named(name, from.at)?,
            Source::Pattern(pattern) => {
                let regex = regex(&mats_pattern(pattern), from.at)?;
                let names = self.summary.numbered_classes();
                let found: Vec<ClassNumber> = names
                    .filter(|(_, class)| regex.is_match(self.summary.class_name(class)))
                    .map(|(number, _)| number)
                    .collect();
                if found.is_empty() {
                    return Err(Wrong::unknown(
                        from.at,
                        format!("no class has a name that matches \"{}\"", cut(pattern)),
                    ));
                }
                found
            }
            Source::Addresses(ids) => {
                let objects = ids.iter().map(|id| {
                    self.graph.objects.addresses.index_of(*id).map(|object| object.0).ok_or_else(|| {
                        let nearest: Vec<String> = suggestions::object_ids(self.graph, *id)
                            .iter()
                            .map(|id| format!("{id:#x}"))
                            .collect();
                        let hint = if nearest.is_empty() {
                            String::new()
                        } else {
                            format!("; the nearest objects are {}", nearest.join(", "))
                        };
                        Wrong::unknown(from.at, format!("there is no object {id:#x} in the dump{hint}"))
                    })
                });
                return self.as_objects(from, objects.collect::<Result<_, _>>()?);
            }
            Source::Indices(indices) => {
                let objects = indices.iter().map(|index| {
                    u32::try_from(*index).ok().filter(|index| *index < self.graph.objects.len()).ok_or_else(
                        || {
                            Wrong::unknown(
                                from.at,
                                format!(
                                    "there is no object with @objectId {index}; addresses are written 0x..."
                                ),
                            )
                        },
                    )
                });
                return self.as_objects(from, objects.collect::<Result<_, _>>()?);
            }
            Source::Query(query) => {
                return match ask.rows(query)? {
                    Objects::Set(set) if self.bound.is_some_and(|most| set.len() > most as u64) => {
                        Err(too_many(from.at))
                    }
                    Objects::Set(set) if self.bound.is_some() => {
                        Ok(table_of(set.iter().map(|object| Value::Object(ObjectIndex(object))).collect()))
                    }
                    Objects::Set(set) => self.as_objects(from, set),
                    rows => Ok(rows),
                };
            }
            Source::AllClasses => {
                return self.as_objects(from, self.graph.objects.class_objects().clone());
            }
            Source::ClassesByName(name, with_subclasses) => {
                let found = self.classes_named(name, from.at)?;
                let found = if *with_subclasses { self.with_subclasses(&found) } else { self.marks(&found) };
                return self.as_objects(from, self.class_objects(&found));
            }
            Source::Value(node) => {
                let mut resolver = Resolver::new(self, select, Names::Nothing, ask);
                let code = resolver.code(node)?;
                let value = self.value(&code, &Row::new(u32::MAX, &[], None));
                return self.of_value(select, value);
            }
        };
        let found = if from.with_subclasses { self.with_subclasses(&classes) } else { self.marks(&classes) };
        Ok(if from.is_objects { Objects::Set(self.class_objects(&found)) } else { Objects::Classes(found) })
    }

    /// Objects as they are, or those of the classes that they are the class objects of.
    fn as_objects(&self, from: &From, objects: RoaringBitmap) -> Result<Objects, Wrong> {
        let of_class = objects.intersection_len(self.graph.objects.class_objects());
        // What is no class cannot be meant as one.
        if from.is_objects || objects.is_empty() || (of_class == 0 && matches!(from.source, Source::Query(_)))
        {
            return Ok(Objects::Set(objects));
        }
        if of_class < objects.len() {
            let text = "not all of these are classes: FROM OBJECTS takes them as objects";
            return Err(Wrong::new(from.at, text));
        }
        let classes: Vec<ClassNumber> =
            objects.iter().filter_map(|object| self.class_of(ObjectIndex(object))).collect();
        Ok(Objects::Classes(if from.with_subclasses {
            self.with_subclasses(&classes)
        } else {
            self.marks(&classes)
        }))
    }

    /// The rows that a value makes: the objects in it, or a row for each value.
    fn of_value(&self, select: &Select, value: Value) -> Result<Objects, Wrong> {
        let from = &select.from;
        let max = self.bound.unwrap_or(MAX_ROWS);
        let values: Vec<Value> = match &value {
            Value::Null => Vec::new(),
            Value::List(..) | Value::Slice(_) | Value::Many(_) => {
                let items = self.items_of(&value).into_iter().flatten();
                // MAT leaves nulls out as well.
                let values: Vec<Value> = items.filter(|item| *item != Value::Null).take(max + 1).collect();
                if values.len() > max {
                    return Err(too_many(from.at));
                }
                values
            }
            _ => vec![value],
        };
        // A pass over a set of objects costs as much as the heap is large; few rows are better a table.
        if self.bound.is_some() {
            return Ok(table_of(values));
        }
        // Numbers are objects if objects are asked for, and classes if classes are.
        let by_number = !from.is_objects || select.items.is_none() || select.is_objects;
        let object = |value: &Value| match value {
            Value::Object(object) => Some(object.0),
            Value::Whole(number) if by_number => self.object_of_number(*number).map(|object| object.0),
            _ => None,
        };
        let objects: RoaringBitmap = values.iter().map_while(object).collect();
        if values.iter().all(|value| object(value).is_some()) {
            return self.as_objects(from, objects);
        }
        if !from.is_objects {
            let text = "this is selected from, and not all of it are classes: FROM OBJECTS takes it as it is";
            return Err(Wrong::new(from.at, text));
        }
        Ok(table_of(values))
    }

    /// The object at an address, or with an index.
    pub(super) fn object_of_number(&self, number: i64) -> Option<ObjectIndex> {
        let at = self.graph.objects.addresses.index_of(ObjectId(number.cast_unsigned()));
        let index = || u32::try_from(number).ok().filter(|index| *index < self.graph.objects.len());
        at.or_else(|| index().map(ObjectIndex))
    }

    pub(super) fn classes_named(&self, text: &str, at: usize) -> Result<Vec<ClassNumber>, Wrong> {
        let name = java_class_name(text);
        let classes = self.summary.numbered_classes();
        let found: Vec<ClassNumber> = classes
            .filter(|(_, class)| self.summary.is_named(class, &name))
            .map(|(number, _)| number)
            .collect();
        if found.is_empty() {
            let like = suggestions::class_names(self.summary, &name);
            let hint = if like.is_empty() {
                String::new()
            } else {
                format!("; {}", suggestions::did_you_mean(&like))
            };
            return Err(Wrong::unknown(at, format!("there is no class {} in the dump{hint}", cut(&name))));
        }
        Ok(found)
    }

    fn marks(&self, classes: &[ClassNumber]) -> Vec<bool> {
        let mut marks = vec![false; self.summary.classes().len()];
        for class in classes {
            if let Some(mark) = marks.get_mut(class.0 as usize) {
                *mark = true;
            }
        }
        marks
    }

    /// These classes and all below them.
    pub(super) fn with_subclasses(&self, classes: &[ClassNumber]) -> Vec<bool> {
        self.inherit(self.marks(classes))
    }

    /// Marks the classes that are marked, or below one that is.
    pub(super) fn inherit(&self, mut marks: Vec<bool>) -> Vec<bool> {
        self.summary.class_table().add_subclasses(&mut marks);
        marks
    }

    pub(super) fn class_objects(&self, marks: &[bool]) -> RoaringBitmap {
        let numbers = (0u32..).zip(marks).filter(|(_, mark)| **mark).map(|(number, _)| ClassNumber(number));
        numbers.filter_map(|class| Some(self.graph.class_object(class)?.0)).collect()
    }

    /// By class number: whether there are rows of the class.
    pub(super) fn row_classes(&self, source: &Objects) -> Vec<bool> {
        match source {
            Objects::Classes(classes) => classes.clone(),
            Objects::Rows(..) => Vec::new(),
            Objects::Set(set) => {
                let mut marks = vec![false; self.summary.classes().len()];
                for class in set.iter().filter_map(|object| self.graph.objects.class(ObjectIndex(object))) {
                    if let Some(mark) = marks.get_mut(class.0 as usize) {
                        *mark = true;
                    }
                }
                marks
            }
        }
    }
}

/// A row for each value.
fn table_of(values: Vec<Value>) -> Objects {
    Table { columns: None, rows: values.into_iter().map(|value| Box::from([value])).collect() }.into()
}

pub(super) fn too_many(at: usize) -> Wrong {
    let text = format!("more than {MAX_ROWS} rows of columns cannot be selected from: add WHERE or LIMIT");
    Wrong::new(at, text)
}
