//! The table of a class: its instances, and what their fields hold.

use std::io;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::object_chunks;
use super::of_classes::{Columns, OfClasses};
use super::{
    Batch, Column, ColumnType, Context, Definition, Lookup, Operator, Prepared, Table, TableChunk,
    TableQuery, Wanted,
};
use crate::classes::suggestions;
use crate::dictionary::names;
use crate::objects::class_set::ClassSet;
use crate::objects::reader::{Bits, FieldPlace, Record};
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::ClassKind;
use hprof_parser::{BasicType, ObjectId};

/// What is behind the name of a class for the table of its instances and those of its subclasses.
const SUBCLASSES: char = '+';
/// What is between the name of a class and the ID of its class object, where several have the name.
const AT: &str = "@0x";
/// Columns before those of fields.
const ID: usize = 0;
const CLASS: usize = 1;
const SHALLOW: usize = 2;
const RETAINED: usize = 3;
const LENGTH: usize = 4;
const COLUMNS: Columns =
    Columns { id: ID, class: CLASS, length: LENGTH, shallow_bytes: SHALLOW, retained_bytes: RETAINED };
const FIELDS: usize = 5;
/// Fields that have columns: SQL has no more than 2,000, and no class that a person wrote has as many.
const MAX_COLUMNS: usize = 1000;

/// Names of tables that a message lists.
const MAX_NAMED: usize = 5;

/// A row an instance of a class.
pub(super) struct OfClass<'a> {
    objects: OfClasses<'a>,
    definition: Definition,
    /// Where instances of the class itself have the field of each column.
    base: Vec<FieldPlace>,
    /// Ascending by class: where its instances have them.
    places: Vec<(ClassNumber, Where)>,
}

/// Where the instances of a class have the fields of the columns.
enum Where {
    /// Where the base has them, behind so many bytes of fields of its own: a subclass, of which there may be many.
    Behind(u64),
    /// By column.
    Listed(Vec<Option<FieldPlace>>),
}

/// Why there is no table of a class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoClass {
    /// No class has the name.
    #[error("no class has the name {name}{}", hint(like))]
    Unknown {
        /// The name.
        name: String,
        /// Names that are like it.
        like: Vec<String>,
    },
    /// SQL does not tell names apart that differ in case only.
    #[error("the names of several classes differ from {name} in case only: {}", by_id.join(", "))]
    Case {
        /// The name.
        name: String,
        /// The names of their tables.
        by_id: Vec<String>,
    },
}

/// Names that are like the one that is not there.
fn hint(like: &[String]) -> String {
    if like.is_empty() { String::new() } else { format!("; {}", suggestions::did_you_mean(like)) }
}

impl<'a> OfClass<'a> {
    /// The table of this name: `com.acme.Session`, `com.acme.Session+` with the instances of subclasses,
    /// `com.acme.Session@0x7c0012a8` of one of several classes of a name, by the ID of its class object; in any case, if
    /// `any_case`.
    ///
    /// # Errors
    /// [`NoClass`].
    pub(super) fn new(context: Arc<Context<'a>>, name: &str, any_case: bool) -> Result<Self, NoClass> {
        let (base, subclasses) = match name.strip_suffix(SUBCLASSES) {
            Some(base) => (base, true),
            None => (name, false),
        };
        let classes = find(&context, name, base, any_case)?;
        let first = classes.first().copied().unwrap_or(ClassNumber(0));
        let mut set = vec![false; context.summary.classes().len()];
        for class in &classes {
            if let Some(place) = set.get_mut(class.0 as usize) {
                *place = true;
            }
        }
        if subclasses {
            context.summary.class_table().add_subclasses(&mut set);
        }
        let all: Vec<ClassNumber> =
            (0u32..).zip(&set).filter(|(_, is_in)| **is_in).map(|(class, _)| ClassNumber(class)).collect();
        let (columns, wanted) = columns(&context, first);
        let table = context.summary.class_table();
        let places = all.iter().map(|class| {
            // Of several classes of a name each has subclasses, and fields, of its own.
            let place = if classes.len() == 1 || *class == first {
                Where::Behind(table.bytes(*class).saturating_sub(table.bytes(first)))
            } else {
                Where::Listed(places(&context, *class, &wanted))
            };
            (*class, place)
        });
        let places = places.collect();
        let of_base = context.objects.slots(first).take(wanted.len()).map(|slot| slot.place).collect();
        let definition = Definition {
            name: name.to_owned().into(),
            meaning: format!("An instance of {base}{}", if subclasses { " or of a subclass" } else { "" })
                .into(),
            order: "by object".into(),
            columns,
        };
        let classes = ClassSet::of(context.summary, &all);
        Ok(Self { objects: OfClasses { context, classes }, definition, base: of_base, places })
    }

    /// Adds what the fields of an object hold.
    fn add_fields(
        &self,
        class: Option<ClassNumber>,
        record: Option<Record<'_>>,
        wanted: Wanted,
        batch: &mut Batch,
    ) {
        let summary = self.objects.context.summary;
        let bytes = match record {
            Some(Record::Instance(instance)) => instance.fields,
            _ => &[],
        };
        let places =
            class.and_then(|class| self.places.binary_search_by_key(&class, |(class, _)| *class).ok());
        let places = places.and_then(|at| self.places.get(at)).map(|(_, places)| places);
        let place = |field: usize| match places? {
            Where::Behind(own) => self.base.get(field)?.behind(*own),
            Where::Listed(places) => places.get(field).copied().flatten(),
        };
        for (column, declared) in self.definition.columns.iter().enumerate().skip(FIELDS) {
            if !wanted.has(column) {
                continue;
            }
            let value = place(column - FIELDS).and_then(|place| place.value(bytes, summary.id_size()));
            let values = batch.column(column);
            match declared.kind {
                ColumnType::Id => values.id(value.and_then(Bits::reference)),
                ColumnType::Boolean => values.boolean(value.map(|value| value.bits != 0)),
                ColumnType::Real => values.real(value.map(|value| match value.kind {
                    BasicType::Float => value.as_float().into(),
                    _ => f64::from_bits(value.bits),
                })),
                ColumnType::Text | ColumnType::Name => {
                    let mut buffer = [0; 4];
                    values.text(value.map(|value| &*value.as_character().encode_utf8(&mut buffer)));
                }
                ColumnType::Integer => values.integer(value.and_then(Bits::integer)),
            }
        }
    }
}

/// The classes that are meant, by number.
fn find(context: &Context<'_>, name: &str, base: &str, any_case: bool) -> Result<Vec<ClassNumber>, NoClass> {
    let summary = context.summary;
    let name_of = |class: &ClassNumber| context.class_names.get(class.0 as usize);
    // Those of the name, and those whose names differ from it in case.
    let named = |name: &str| -> (Vec<ClassNumber>, Vec<ClassNumber>) {
        let all = summary.numbered_classes().map(|(number, _)| number);
        all.filter(|class| name_of(class).is_some_and(|other| other.eq_ignore_ascii_case(name)))
            .partition(|class| name_of(class) == Some(name))
    };
    if let Some(at) = base.to_ascii_lowercase().rfind(AT)
        && let (Some(of), Some(id)) = (base.get(..at), base.get(at + AT.len()..))
        && let Ok(id) = u64::from_str_radix(id, 16)
    {
        let (mut found, alike) = named(of);
        if any_case {
            found.extend(alike);
        }
        found.retain(|class| context.class_id(*class) == Some(ObjectId(id)));
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let (found, alike) = named(base);
    let is_one = |classes: &[ClassNumber]| {
        classes.iter().all(|class| name_of(class) == classes.first().and_then(name_of))
    };
    match (found.is_empty(), alike.is_empty()) {
        (false, true) => Ok(found),
        // The one that the name can mean.
        (true, false) if any_case && is_one(&alike) => Ok(alike),
        (true, is_alone) if is_alone || !any_case => {
            let like = suggestions::class_names(summary, base).into_iter().map(str::to_owned).collect();
            Err(NoClass::Unknown { name: name.to_owned(), like })
        }
        // SQL does not tell them apart, so neither has the plain name.
        _ => {
            let table = |class: &ClassNumber| {
                let name = context.class_names.get(class.0 as usize)?;
                Some(format!("\"{name}{AT}{:x}\"", context.class_id(*class)?.0))
            };
            let by_id = found.iter().chain(&alike).take(MAX_NAMED).filter_map(table).collect();
            Err(NoClass::Case { name: name.to_owned(), by_id })
        }
    }
}

/// A field that a column shows: its name and type.
type Wants<'a> = (&'a str, BasicType);

/// The columns of a class: what is known of each instance, then its fields, its own first, then those of superclasses. A
/// name that a column before it has, whatever the case, gets a number behind it.
fn columns<'a>(context: &Context<'a>, class: ClassNumber) -> (Vec<Column>, Vec<Wants<'a>>) {
    let mut columns = vec![
        Column::of(names::OBJECT),
        Column::of(names::CLASS).few(),
        Column::of(names::SHALLOW_BYTES),
        Column::of(names::RETAINED_BYTES).or_null("it is unreachable"),
        Column::of(names::LENGTH).or_null("it is no array"),
    ];
    let mut taken: FxHashSet<String> = columns.iter().map(|column| column.name.to_lowercase()).collect();
    let mut wants = Vec::new();
    let is_instance = context.summary.class(class).is_some_and(|class| class.kind() == ClassKind::Instance);
    let slots = context.objects.slots(class).take(if is_instance { MAX_COLUMNS } else { 0 });
    for slot in slots {
        let mut name = slot.name.to_owned();
        let mut number = 2;
        while !taken.insert(name.to_lowercase()) {
            name = format!("{}_{number}", slot.name);
            number += 1;
        }
        let kind = match slot.kind {
            BasicType::Object => ColumnType::Id,
            BasicType::Boolean => ColumnType::Boolean,
            BasicType::Float | BasicType::Double => ColumnType::Real,
            BasicType::Char => ColumnType::Text,
            _ => ColumnType::Integer,
        };
        let owner = context.class_names.get(slot.class.0 as usize).unwrap_or_default();
        let column = Column::field(name, kind, format!("field `{}` of {owner}", slot.name))
            .or_null("its record has none");
        let column = if slot.kind == BasicType::Object { column } else { column.secret() };
        columns.push(column);
        wants.push((slot.name, slot.kind));
    }
    (columns, wants)
}

/// Where the instances of another class of the name have the fields that columns show: by name and type, of shadowed ones the
/// first.
fn places(context: &Context<'_>, class: ClassNumber, wants: &[Wants<'_>]) -> Vec<Option<FieldPlace>> {
    let mut known = FxHashMap::default();
    for slot in context.objects.slots(class).take(MAX_COLUMNS) {
        known.entry((slot.name, slot.kind.code())).or_insert(slot.place);
    }
    wants.iter().map(|(name, kind)| known.get(&(*name, kind.code())).copied()).collect()
}

impl Table for OfClass<'_> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn rows(&self) -> u64 {
        self.objects.rows()
    }

    fn lookups(&self) -> Vec<Lookup> {
        vec![Lookup { column: ID, operator: Operator::Equal, rows: 1.0 }]
    }

    fn orders(&self) -> Vec<usize> {
        self.objects.orders(ID)
    }

    fn names(&self, column: usize) -> super::ColumnNames {
        if column == CLASS { self.objects.context.class_names.clone() } else { super::ColumnNames::default() }
    }

    fn chunks(&self, question: &TableQuery) -> io::Result<Vec<TableChunk>> {
        Ok(match question {
            TableQuery::Of(_, _, key) => object_chunks::of_id(&self.objects.context, key),
            _ => object_chunks::all(&self.objects.context),
        })
    }

    fn prepare(&self, wanted: Wanted, stop: &(dyn Fn() -> bool + Sync)) -> Option<Prepared> {
        self.objects.prepare(&COLUMNS, wanted, stop)
    }

    fn read(&self, chunk: &TableChunk, wanted: Wanted, batch: &mut Batch) -> io::Result<()> {
        self.objects.add_rows(&COLUMNS, chunk, wanted, batch, |batch, class, record| {
            self.add_fields(class, record, wanted, batch);
        });
        Ok(())
    }
}
