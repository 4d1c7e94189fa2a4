//! Table of a class: its instances and the values of their fields.

use std::io;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::object_chunks;
use super::of_classes::{Columns, OfClasses};
use super::{
    Batch, Column, ColumnSet, ColumnType, Definition, Lookup, Operator, PreparedData, Table, TableChunk,
    TableContext, TableQuery,
};
use hprof_base::dictionary::{names, nulls};
use hprof_base::naming::suggestions;
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::ClassKind;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::hiding;
use hprof_model::objects::reader::{Bits, FieldPlace, FieldSlot, ObjectRecord};
use hprof_values::{BasicType, ObjectId};

/// Suffix of a class name for the table of the instances of the class and its subclasses.
const SUBCLASSES: char = '+';
/// Separator between a class name and the ID of the class object, which distinguishes classes of the same name.
const AT: &str = "@0x";
/// Number of the column `id`, which precedes the columns of fields.
const ID: usize = 0;
const CLASS: usize = 1;
const SHALLOW: usize = 2;
const RETAINED: usize = 3;
const LENGTH: usize = 4;
const COLUMNS: Columns =
    Columns { id: ID, class: CLASS, length: LENGTH, shallow_bytes: SHALLOW, retained_bytes: RETAINED };
const FIELDS: usize = 5;
/// Maximum number of fields with columns: SQL allows 2,000, and handwritten classes have fewer.
const MAX_COLUMNS: usize = 1000;

/// Maximum number of table names in a message.
const MAX_NAMED: usize = 5;

/// Table with a row for each instance of a class.
pub(super) struct OfClass<'a> {
    objects: OfClasses<'a>,
    definition: Definition,
    /// By field column: `true` if its values are hidden.
    hidden: Vec<bool>,
    /// Locations of the fields in instances of the class itself, by column.
    base: Vec<FieldPlace>,
    /// Locations of the fields in instances of each class, ascending by class number.
    places: Vec<(ClassNumber, ColumnPlaces)>,
}

/// Locations of the fields of a table's columns in instances of one class.
enum ColumnPlaces {
    /// As in the base class, after this number of bytes of own fields; used for subclasses, of which there may be many.
    Behind(u64),
    /// Locations by column.
    Listed(Vec<Option<FieldPlace>>),
}

/// Reason why there is no table of a class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoClass {
    /// No class has this name.
    #[error("no class named {name}{}", hint(like))]
    Unknown {
        /// Name.
        name: String,
        /// Similar names.
        like: Vec<String>,
    },
    /// Several names differ only in case, which SQL ignores.
    #[error("several class names differ from {name} only in case: {}", by_id.join(", "))]
    Case {
        /// Name.
        name: String,
        /// Names of their tables.
        by_id: Vec<String>,
    },
}

/// Returns a hint with suggestions for an unknown class name.
fn hint(like: &[String]) -> String {
    if like.is_empty() { String::new() } else { format!("; {}", suggestions::did_you_mean(like)) }
}

impl<'a> OfClass<'a> {
    /// Creates the table of this name: `com.acme.Session`, `com.acme.Session+` with the instances of subclasses, or
    /// `com.acme.Session@0x7c0012a8` for one of several classes of a name, by the ID of its class object. If `any_case` is set,
    /// the case of the class name is ignored.
    ///
    /// # Errors
    /// [`NoClass`].
    pub(super) fn new(context: Arc<TableContext<'a>>, name: &str, any_case: bool) -> Result<Self, NoClass> {
        let (base, subclasses) = match name.strip_suffix(SUBCLASSES) {
            Some(base) => (base, true),
            None => (name, false),
        };
        let classes = find(&context, name, base, any_case)?;
        let first = classes.first().copied().unwrap_or(ClassNumber(0));
        let mut set = vec![false; context.dump.summary.classes().len()];
        for class in &classes {
            if let Some(place) = set.get_mut(class.0 as usize) {
                *place = true;
            }
        }
        if subclasses {
            context.dump.summary.class_table().add_subclasses(&mut set);
        }
        let all: Vec<ClassNumber> =
            (0u32..).zip(&set).filter(|(_, is_in)| **is_in).map(|(class, _)| ClassNumber(class)).collect();
        let (columns, wanted) = columns(&context, first);
        let hides = |slot: &FieldSlot<'_>| {
            context.dump.summary.hides_values() && !hiding::is_slot_shown(context.dump.summary, first, slot)
        };
        let hidden = context.dump.objects.slots(first).take(wanted.len()).map(|slot| hides(&slot)).collect();
        let table = context.dump.summary.class_table();
        let places = all.iter().map(|class| {
            // Each of several classes of a name has its own subclasses and fields.
            let place = if classes.len() == 1 || *class == first {
                ColumnPlaces::Behind(table.bytes(*class).saturating_sub(table.bytes(first)))
            } else {
                ColumnPlaces::Listed(places(&context, *class, &wanted))
            };
            (*class, place)
        });
        let places = places.collect();
        let of_base = context.dump.objects.slots(first).take(wanted.len()).map(|slot| slot.place).collect();
        let definition = Definition {
            name: name.to_owned().into(),
            meaning: format!("An instance of {base}{}", if subclasses { " or of a subclass" } else { "" })
                .into(),
            order: "by object ID".into(),
            columns,
        };
        let classes = ClassSet::from_classes(context.dump.summary, &all);
        Ok(Self { objects: OfClasses { context, classes }, definition, hidden, base: of_base, places })
    }

    /// Adds the values of an object's fields.
    fn add_fields(
        &self,
        class: Option<ClassNumber>,
        record: Option<ObjectRecord<'_>>,
        wanted: ColumnSet,
        batch: &mut Batch,
    ) {
        let summary = self.objects.context.dump.summary;
        let bytes = match record {
            Some(ObjectRecord::Instance(instance)) => instance.fields,
            _ => &[],
        };
        let places =
            class.and_then(|class| self.places.binary_search_by_key(&class, |(class, _)| *class).ok());
        let places = places.and_then(|at| self.places.get(at)).map(|(_, places)| places);
        let place = |field: usize| match places? {
            ColumnPlaces::Behind(own) => self.base.get(field)?.offset_by(*own),
            ColumnPlaces::Listed(places) => places.get(field).copied().flatten(),
        };
        for (column, declared) in self.definition.columns.iter().enumerate().skip(FIELDS) {
            if !wanted.has(column) {
                continue;
            }
            let is_hidden = self.hidden.get(column - FIELDS).copied().unwrap_or(true);
            let place = place(column - FIELDS).filter(|_| !is_hidden);
            let value = place.and_then(|place| place.value(bytes, summary.id_size()));
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

/// Returns the numbers of the matching classes.
fn find(
    context: &TableContext<'_>,
    name: &str,
    base: &str,
    any_case: bool,
) -> Result<Vec<ClassNumber>, NoClass> {
    let summary = context.dump.summary;
    let name_of = |class: &ClassNumber| context.class_names.get(class.0 as usize);
    // Classes of the name, and those whose names differ in case.
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
        // The only class to which the name can refer.
        (true, false) if any_case && is_one(&alike) => Ok(alike),
        (true, is_alone) if is_alone || !any_case => {
            let like = suggestions::class_names(summary, base).into_iter().map(str::to_owned).collect();
            Err(NoClass::Unknown { name: name.to_owned(), like })
        }
        // SQL does not distinguish them, so the plain name is ambiguous.
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

/// Name and type of the field of a column.
type Wants<'a> = (&'a str, BasicType);

/// Returns the columns of a class, and the fields of the field columns: common columns, the fields of the class, then those of
/// its superclasses. A name that equals an earlier column's name, ignoring case, gets a number as a suffix.
fn columns<'a>(context: &TableContext<'a>, class: ClassNumber) -> (Vec<Column>, Vec<Wants<'a>>) {
    let mut columns = vec![
        Column::new(names::OBJECT),
        Column::new(names::CLASS).few(),
        Column::new(names::SHALLOW_BYTES),
        Column::new(names::RETAINED_BYTES).or_null(nulls::UNREACHABLE),
        Column::new(names::LENGTH).or_null("it is not an array"),
    ];
    let mut taken: FxHashSet<String> = columns.iter().map(|column| column.name.to_lowercase()).collect();
    let mut wants = Vec::new();
    let is_instance =
        context.dump.summary.class(class).is_some_and(|class| class.kind() == ClassKind::Instance);
    let slots = context.dump.objects.slots(class).take(if is_instance { MAX_COLUMNS } else { 0 });
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
            .or_null("the object's record does not contain the field, or values are hidden");
        let column = if slot.kind == BasicType::Object { column } else { column.secret() };
        columns.push(column);
        wants.push((slot.name, slot.kind));
    }
    (columns, wants)
}

/// Returns the locations of the columns' fields in instances of another class of the same name, matched by field name and type.
/// If a field is shadowed, the first one is used.
fn places(context: &TableContext<'_>, class: ClassNumber, wants: &[Wants<'_>]) -> Vec<Option<FieldPlace>> {
    let mut known = FxHashMap::default();
    for slot in context.dump.objects.slots(class).take(MAX_COLUMNS) {
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
            _ => object_chunks::all_objects(&self.objects.context),
        })
    }

    fn prepare(&self, wanted: ColumnSet, stop: &(dyn Fn() -> bool + Sync)) -> Option<PreparedData> {
        self.objects.prepare(&COLUMNS, wanted, stop)
    }

    fn read(&self, chunk: &TableChunk, wanted: ColumnSet, batch: &mut Batch) -> io::Result<()> {
        self.objects.add_rows(&COLUMNS, chunk, wanted, batch, |batch, class, record| {
            self.add_fields(class, record, wanted, batch);
        });
        Ok(())
    }
}
