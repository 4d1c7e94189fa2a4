//! Names of a query -> classes, fields and objects of the dump.

use std::collections::HashSet;

use regex::{Regex, RegexBuilder};
use roaring::RoaringBitmap;

use crate::hprof::names::java_class_name;
use crate::index::summary::ClassNumber;
use crate::query::near;

use super::code::{Aggregated, Code, Field, Found, Kind, Step};
use super::error::Wrong;
use super::evaluate::Evaluator;
use super::names::{self, Called};
use super::tree::{Expression, From, Node, Select, Source, Step as StepNode, Union, What};
use super::value::Value;

/// The memory that a regular expression may take.
const MAX_REGEX: usize = 4 << 20;

/// The objects that a FROM clause means.
#[derive(Debug)]
pub(super) enum Objects {
    /// Those of these classes, by class number.
    Classes(Vec<bool>),
    /// These.
    Set(RoaringBitmap),
}

/// Answers the queries inside a query.
pub(super) trait Ask {
    /// The objects that a query gives.
    fn objects(&self, query: &Union) -> Result<RoaringBitmap, Wrong>;
    /// The objects and values that a query gives.
    fn found(&self, query: &Union) -> Result<Found, Wrong>;
}

fn regex(pattern: &str, at: usize) -> Result<Regex, Wrong> {
    let whole = format!(r"\A(?:{pattern})\z");
    RegexBuilder::new(&whole).size_limit(MAX_REGEX).build().map_err(|error| {
        let said = error.to_string();
        let last = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Wrong::new(at, format!("`{pattern}` is no regular expression: {last}"))
    })
}

impl Evaluator<'_> {
    /// The objects that a FROM clause means.
    pub(super) fn source(&self, from: &From, ask: &dyn Ask) -> Result<Objects, Wrong> {
        let classes = match &from.source {
            Source::Class(name) => self.classes_named(name, from.at)?,
            Source::Pattern(pattern) => {
                let regex = regex(pattern, from.at)?;
                let names = self.summary.numbered_classes();
                let found: Vec<ClassNumber> = names
                    .filter(|(_, class)| regex.is_match(self.summary.class_name(class)))
                    .map(|(number, _)| number)
                    .collect();
                if found.is_empty() {
                    return Err(Wrong::unknown(
                        from.at,
                        format!("no class has a name that matches \"{pattern}\""),
                    ));
                }
                found
            }
            Source::Addresses(ids) => {
                let objects = ids.iter().map(|id| {
                    self.graph.objects.addresses.index_of(*id).ok_or_else(|| {
                        let near: Vec<String> =
                            near::object_ids(self.graph, *id).iter().map(|id| format!("{id:#x}")).collect();
                        let hint = if near.is_empty() {
                            String::new()
                        } else {
                            format!("; near it are {}", near.join(", "))
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
            Source::Query(query) => return self.as_objects(from, ask.objects(query)?),
            Source::AllClasses => return Ok(Objects::Set(self.graph.objects.class_objects().clone())),
            Source::ClassesByName(name, with_subclasses) => {
                let found = self.classes_named(name, from.at)?;
                let found = if *with_subclasses { self.with_subclasses(&found) } else { self.marks(&found) };
                return Ok(Objects::Set(self.class_objects(&found)));
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
        let classes: Vec<ClassNumber> = objects.iter().filter_map(|object| self.class_of(object)).collect();
        Ok(Objects::Classes(if from.with_subclasses {
            self.with_subclasses(&classes)
        } else {
            self.marks(&classes)
        }))
    }

    fn classes_named(&self, text: &str, at: usize) -> Result<Vec<ClassNumber>, Wrong> {
        let name = java_class_name(text);
        let classes = self.summary.numbered_classes();
        let found: Vec<ClassNumber> = classes
            .filter(|(_, class)| self.summary.class_name(class) == name)
            .map(|(number, _)| number)
            .collect();
        if found.is_empty() {
            let near = near::class_names(self.summary, &name);
            let hint =
                if near.is_empty() { String::new() } else { format!("; there are {}", near.join(", ")) };
            return Err(Wrong::unknown(at, format!("there is no class {name} in the dump{hint}")));
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
    fn with_subclasses(&self, classes: &[ClassNumber]) -> Vec<bool> {
        self.inherit(self.marks(classes))
    }

    /// Marks the classes that are marked, or below one that is.
    fn inherit(&self, marks: Vec<bool>) -> Vec<bool> {
        let mut known: Vec<Option<bool>> = marks.iter().map(|mark| mark.then_some(true)).collect();
        let mut chain = Vec::new();
        for (number, _) in self.summary.numbered_classes() {
            let mut found = false;
            let mut next = Some(number);
            while let Some(class) = next {
                let Some(place) = known.get_mut(class.0 as usize) else { break };
                if let Some(known) = *place {
                    found = known;
                    break;
                }
                // Also ends a circle of superclasses.
                *place = Some(false);
                chain.push(class);
                next = self.summary.class(class).and_then(|class| self.summary.super_class(class));
            }
            for class in chain.drain(..) {
                if let Some(place) = known.get_mut(class.0 as usize) {
                    *place = Some(found);
                }
            }
        }
        known.into_iter().map(|known| known == Some(true)).collect()
    }

    fn class_objects(&self, marks: &[bool]) -> RoaringBitmap {
        let numbers = (0u32..).zip(marks).filter(|(_, mark)| **mark).map(|(number, _)| ClassNumber(number));
        numbers.filter_map(|class| self.graph.class_object(class)).collect()
    }

    /// By class number: whether there are rows of the class.
    pub(super) fn row_classes(&self, source: &Objects) -> Vec<bool> {
        match source {
            Objects::Classes(classes) => classes.clone(),
            Objects::Set(set) => {
                let mut marks = vec![false; self.summary.classes().len()];
                for class in set.iter().filter_map(|object| self.graph.objects.class(object)) {
                    if let Some(mark) = marks.get_mut(class.0 as usize) {
                        *mark = true;
                    }
                }
                marks
            }
        }
    }
}

/// Resolves the expressions of one SELECT.
pub(super) struct Resolver<'r, 'a> {
    pub(super) evaluator: &'r Evaluator<'a>,
    pub(super) select: &'r Select,
    /// By class number: whether rows are of the class. `None` if names were checked before.
    pub(super) classes: Option<&'r [bool]>,
    pub(super) ask: &'r dyn Ask,
    /// The aggregates that were met.
    pub(super) aggregates: Vec<Aggregated<'a>>,
}

impl<'a> Resolver<'_, 'a> {
    fn boxed(&mut self, node: &Node) -> Result<Box<Code<'a>>, Wrong> {
        Ok(Box::new(self.code(node)?))
    }

    fn codes(&mut self, nodes: &[Node]) -> Result<Vec<Code<'a>>, Wrong> {
        nodes.iter().map(|node| self.code(node)).collect()
    }

    /// An expression with its names resolved.
    pub(super) fn code(&mut self, node: &Node) -> Result<Code<'a>, Wrong> {
        Ok(match &node.expression {
            Expression::Null => Code::Value(Value::Null),
            Expression::Boolean(value) => Code::Value(Value::Boolean(*value)),
            Expression::Whole(value) => Code::Value(Value::Whole(*value)),
            Expression::Fraction(value) => Code::Value(Value::Double(*value)),
            Expression::Char(unit) => Code::Value(Value::Char(*unit)),
            Expression::Text(text) => Code::Value(Value::Text(text.as_str().into())),
            Expression::Row => Code::Row,
            Expression::Name(name) if self.is_alias(name) => Code::Row,
            Expression::Name(name) => {
                Code::Path(Box::new(Code::Row), vec![Step::Field(self.row_field(name, node.start)?)])
            }
            Expression::Path(base, steps) => return self.path(base, steps),
            Expression::Call(function, argument) => Code::Call(*function, self.boxed(argument)?),
            Expression::Aggregate(what, of) => {
                let of = of.as_ref().map(|of| self.code(of)).transpose()?;
                self.aggregates.push(Aggregated { what: *what, of });
                Code::Aggregate(self.aggregates.len() - 1)
            }
            Expression::Not(of) => Code::Not(self.boxed(of)?),
            Expression::Negate(of) => Code::Negate(self.boxed(of)?),
            Expression::All(of) => Code::All(self.codes(of)?),
            Expression::Any(of) => Code::Any(self.codes(of)?),
            Expression::Compare(left, comparison, right) => {
                Code::Compare(self.boxed(left)?, *comparison, self.boxed(right)?)
            }
            Expression::Arithmetic(first, more) => {
                let first = self.boxed(first)?;
                let more = more.iter().map(|(operator, node)| Ok((*operator, self.code(node)?)));
                Code::Arithmetic(first, more.collect::<Result<_, Wrong>>()?)
            }
            Expression::Like(of, pattern, is_negated) => Code::Like(
                self.boxed(of)?,
                regex(pattern, node.end.saturating_sub(pattern.len() + 2))?,
                *is_negated,
            ),
            Expression::In(of, values, is_negated) => {
                Code::In(self.boxed(of)?, self.codes(values)?, *is_negated)
            }
            Expression::InQuery(of, query, is_negated) => {
                let found = self.ask.found(query)?;
                Code::InFound(self.boxed(of)?, found, *is_negated)
            }
            Expression::Is(of, class, at) => Code::Is(self.boxed(of)?, self.kind(class, *at)?),
        })
    }

    fn is_alias(&self, name: &str) -> bool {
        self.select.from.alias.as_deref() == Some(name)
    }

    fn path(&mut self, base: &Node, steps: &[StepNode]) -> Result<Code<'a>, Wrong> {
        // A field of the row in front is one more step.
        let (base, mut codes) = match self.code(base)? {
            Code::Path(base, codes) => (base, codes),
            code => (Box::new(code), Vec::new()),
        };
        for step in steps {
            let of_row = codes.is_empty() && matches!(*base, Code::Row);
            codes.push(match &step.what {
                What::Field(name) if of_row => Step::Field(self.row_field(name, step.at)?),
                What::Field(name) => Step::Field(self.field(name)),
                What::Attribute(name) => Step::Attribute(names::attribute(name, step.at)?),
                What::Element(index) => Step::Element(self.code(index)?),
                What::Method(name, arguments) => match names::method(name, arguments.len(), step.at)? {
                    Called::Attribute(attribute) => Step::Attribute(attribute),
                    Called::Method(method) => Step::Method(method, self.codes(arguments)?),
                },
            });
        }
        Ok(Code::Path(base, codes))
    }

    fn field(&self, name: &str) -> Field<'a> {
        let classes = self.evaluator.summary.classes().len();
        Field { name: name.into(), slots: std::iter::repeat_with(Default::default).take(classes).collect() }
    }

    /// A field of the row itself: one that no row can have is a mistake.
    fn row_field(&self, name: &str, at: usize) -> Result<Field<'a>, Wrong> {
        let Some(classes) = self.classes else { return Ok(self.field(name)) };
        let summary = self.evaluator.summary;
        let of_class_objects = summary
            .java_lang_class()
            .is_some_and(|class| classes.get(class.0 as usize).copied().unwrap_or(false));
        let is_array = |number: ClassNumber| {
            summary
                .class(number)
                .is_some_and(|class| class.kind() != crate::index::tables::ClassKind::Instance)
        };
        let rows = || (0u32..).zip(classes).filter(|(_, row)| **row).map(|(number, _)| ClassNumber(number));
        // Static fields are looked up as they come.
        if of_class_objects || rows().next().is_none() || (name == "length" && rows().any(is_array)) {
            return Ok(self.field(name));
        }
        let declares: Vec<bool> = summary
            .classes()
            .iter()
            .map(|class| summary.fields(class).any(|(field, _)| field == name))
            .collect();
        let has = self.evaluator.inherit(declares);
        if rows().any(|class| has.get(class.0 as usize).copied().unwrap_or(false)) {
            return Ok(self.field(name));
        }
        // Names of fields of the first rows' classes: all of a long chain are too many.
        let mut fields = Vec::new();
        let mut next = rows().next();
        for _ in 0..64 {
            let Some(class) = next.and_then(|class| summary.class(class)) else { break };
            fields.extend(summary.fields(class).map(|(field, _)| field).take(1000));
            next = summary.super_class(class);
        }
        let near = near::names_like(name, fields.iter().copied());
        let offered: Vec<&str> = if near.is_empty() { fields.into_iter().take(12).collect() } else { near };
        let class = rows()
            .next()
            .and_then(|class| summary.class(class))
            .map_or("", |class| summary.class_name(class));
        let alias = self.select.from.alias.as_deref();
        let what = match alias {
            None => format!("{class} has no field {name}"),
            Some(alias) => format!("{class} has no field {name} (the alias is {alias})"),
        };
        let hint =
            if offered.is_empty() { String::new() } else { format!("; it has {}", offered.join(", ")) };
        Err(Wrong::new(at, what + &hint))
    }

    fn kind(&self, class: &str, at: usize) -> Result<Kind, Wrong> {
        // What MAT's own objects are.
        if let Some(model) = class.strip_prefix("org.eclipse.mat.snapshot.model.") {
            return Ok(match model {
                "IClass" => Kind::ClassObject,
                "IInstance" => Kind::Instance,
                "IArray" => Kind::Array,
                "IObjectArray" => Kind::ObjectArray,
                "IPrimitiveArray" => Kind::PrimitiveArray,
                "IObject" => Kind::Any,
                _ => {
                    let text = "of MAT's model there are IObject, IClass, IInstance, IArray, IObjectArray, IPrimitiveArray";
                    return Err(Wrong::new(at, text));
                }
            });
        }
        let classes = self.evaluator.classes_named(class, at)?;
        let marks = self.evaluator.with_subclasses(&classes);
        let numbers = (0u32..).zip(marks).filter(|(_, mark)| *mark).map(|(number, _)| ClassNumber(number));
        Ok(Kind::Classes(numbers.collect::<HashSet<_>>()))
    }
}
