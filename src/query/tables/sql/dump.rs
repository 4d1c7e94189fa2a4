//! An opened dump and its tables, as one value that SQLite can own.

use hprof_index::Dump;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::path_text;
use crate::{
    About, Batch, ColumnNames, ColumnSet, Definition, NoClass, Table, TableChunk, TableQuery, Tables,
};
use hprof_analyses::frameworks::Frameworks;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::{Heap, ObjectGraph};
use hprof_model::objects::collections::{Collections, Forms};
use hprof_model::objects::condition::path::{FieldPath, StepPlaces};
use hprof_model::objects::hiding::{self, HIDDEN};
use hprof_model::objects::label::Labels;
use hprof_model::objects::reader::Bits;
use hprof_model::paths::steps::View;
use hprof_model::strings::TextKey;
use hprof_recordings::profile::flight::FlightFile;
use hprof_values::{BasicType, ObjectId};

/// A dump to query: the input of [`SqlDump::new`].
#[derive(Debug, Clone)]
pub struct SqlSource {
    /// Name of the SQL schema of its tables.
    pub schema: String,
    /// Opened heap dump.
    pub heap: Arc<Heap>,
    /// Graph of the dump.
    pub graph: Arc<ObjectGraph>,
    /// Rules about frameworks.
    pub frameworks: Frameworks,
    /// Flight Recorder recording given in addition to the dump.
    pub recording: Option<Arc<FlightFile>>,
}

/// An opened dump and its tables. Tables borrow from the dump, and SQLite owns its values for an arbitrary time, so
/// both are one value.
pub struct SqlDump(DumpCell);

self_cell::self_cell!(
    /// A dump, and the state that borrows from it.
    struct DumpCell {
        owner: SqlSource,

        #[not_covariant]
        dependent: DumpState,
    }
);

impl fmt::Debug for SqlDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dump").field(&self.schema()).finish()
    }
}

/// A path of fields as written, with the locations of the fields.
type KnownPath = (String, Arc<(FieldPath, StepPlaces)>);

/// State that borrows from the dump, created on demand.
struct DumpState<'a> {
    tables: Tables<'a>,
    of_classes: Mutex<Vec<Arc<dyn Table + 'a>>>,
    labels: OnceLock<Labels<'a>>,
    view: OnceLock<View<'a>>,
    forms: OnceLock<Arc<Forms>>,
    /// Paths of fields used so far, with the locations of the fields.
    paths: Mutex<Vec<KnownPath>>,
}

/// Maximum total number of steps of all cached paths: a query has a few, and each has a location for every class.
const MAX_KEPT: usize = 128;
/// Maximum number of steps of a path of fields.
const MAX_STEPS: usize = 32;
/// Maximum length of a path of fields in bytes.
const MAX_PATH: usize = 4096;
/// Maximum number of characters of a text.
const MAX_TEXT: usize = 1 << 20;

/// A table of a dump, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableNumber {
    /// A table that every dump has.
    Fixed(usize),
    /// A table of a single class.
    OfClass(usize),
}

/// Result of an SQL function of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FunctionValue {
    Nothing,
    Integer(i64),
    Real(f64),
    Text(String),
}

impl From<Option<String>> for FunctionValue {
    fn from(text: Option<String>) -> Self {
        text.map_or(Self::Nothing, Self::Text)
    }
}

impl SqlDump {
    /// Opens the tables of a dump.
    ///
    /// # Errors
    /// If the dump's bytes cannot be read.
    pub fn new(source: SqlSource) -> Result<Self, hprof_index::Error> {
        let cell = DumpCell::try_new(source, |source| {
            let dump = Dump::new(&source.heap, &source.graph)?;
            let about = About {
                name: source.schema.clone(),
                labels: Vec::new(),
                recording: source.recording.clone(),
                // Texts can be read in addition to their hashes.
                text_key: TextKey::default(),
            };
            Ok::<_, hprof_index::Error>(DumpState {
                tables: Tables::with_frameworks(&dump, about, source.frameworks.clone()),
                of_classes: Mutex::new(Vec::new()),
                labels: OnceLock::new(),
                view: OnceLock::new(),
                forms: OnceLock::new(),
                paths: Mutex::new(Vec::new()),
            })
        })?;
        Ok(Self(cell))
    }

    /// Returns the schema of the tables.
    pub fn schema(&self) -> &str {
        &self.0.borrow_owner().schema
    }

    /// Returns the definitions of the tables, except tables of single classes.
    pub fn definitions(&self) -> Vec<Definition> {
        self.0
            .with_dependent(|_, inside| inside.tables.all().map(|table| table.definition().clone()).collect())
    }

    /// Returns the tables that a query may refer to, by its text in lower case: names occur in it unescaped. A query
    /// that lists tables, such as one on sqlite_schema, refers to all.
    pub(super) fn tables_in(&self, query: &str) -> Vec<(TableNumber, String)> {
        let is_all = ["sqlite_", "pragma"].iter().any(|name| query.contains(name));
        self.0.with_dependent(|_, inside| {
            let named = inside.tables.all().enumerate().map(|(at, table)| (at, &*table.definition().name));
            let meant = named.filter(|(_, name)| is_all || query.contains(*name));
            meant.map(|(at, name)| (TableNumber::Fixed(at), name.to_owned())).collect()
        })
    }

    /// Returns the definition of the table of a class.
    pub fn definition_of_class(&self, name: &str) -> Option<Definition> {
        self.table(self.of_class(name).ok()?, |table| table.definition().clone())
    }

    /// Returns the names of the classes.
    pub fn class_names(&self) -> ColumnNames {
        self.0.with_dependent(|_, inside| inside.tables.context().class_names.clone())
    }

    /// Returns the table of a single class.
    ///
    /// # Errors
    /// If no class has this name.
    pub(super) fn of_class(&self, name: &str) -> Result<TableNumber, NoClass> {
        self.0.with_dependent(|_, inside| {
            let mut made = inside.of_classes.lock().unwrap_or_else(PoisonError::into_inner);
            // Tables created for another query of the shell are reused.
            let known = made.iter().position(|table| table.definition().name == name);
            let number = match known {
                Some(number) => number,
                None => {
                    made.push(Arc::from(inside.tables.of_class_in_any_case(name)?));
                    made.len() - 1
                }
            };
            Ok(TableNumber::OfClass(number))
        })
    }

    /// Calls a function with a table.
    pub(super) fn table<T>(&self, number: TableNumber, ask: impl FnOnce(&dyn Table) -> T) -> Option<T> {
        self.0.with_dependent(|_, inside| match number {
            TableNumber::Fixed(number) => {
                inside.tables.all().nth(number).map(|table| ask(table as &dyn Table))
            }
            TableNumber::OfClass(number) => {
                let made = inside.of_classes.lock().unwrap_or_else(PoisonError::into_inner);
                let table = made.get(number).cloned();
                // Releases the lock for other threads.
                drop(made);
                table.map(|table| ask(&*table))
            }
        })
    }

    /// Returns the chunks of a query of a table.
    pub(super) fn chunks(&self, number: TableNumber, question: &TableQuery) -> io::Result<Vec<TableChunk>> {
        self.table(number, |table| table.chunks(question)).unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Reads the rows of a chunk into a batch, replacing its rows.
    pub(super) fn read(
        &self,
        number: TableNumber,
        chunk: &TableChunk,
        wanted: ColumnSet,
        batch: &mut Batch,
    ) -> io::Result<()> {
        batch.clear();
        self.table(number, |table| table.read(chunk, wanted, batch)).unwrap_or(Ok(()))
    }

    /// Evaluates a function of the object with an ID; returns null if the object is not in the dump.
    fn of_object(
        &self,
        id: i64,
        ask: impl FnOnce(&DumpState<'_>, ObjectIndex) -> Option<FunctionValue>,
    ) -> FunctionValue {
        let told = self.0.with_dependent(|_, inside| {
            let object = inside.tables.context().object(id)?;
            ask(inside, object)
        });
        told.unwrap_or(FunctionValue::Nothing)
    }

    /// Evaluates `text(id)`: description of an object.
    pub(super) fn text(&self, id: i64) -> FunctionValue {
        self.of_object(id, |inside, object| {
            let context = inside.tables.context();
            if let Some(text) = context.dump.objects.string(object) {
                let hides = context.dump.heap.hides_values();
                return Some(FunctionValue::Text(hiding::text(&text, MAX_TEXT, hides)));
            }
            let labels = inside.labels.get_or_init(|| Labels::new(&context.dump));
            Some(labels.full_label(object).into())
        })
    }

    /// Evaluates `class_of(id)`: name of an object's class.
    pub(super) fn class_of(&self, id: i64) -> FunctionValue {
        self.of_object(id, |inside, object| {
            let context = inside.tables.context();
            let class = context.dump.graph.objects.class(object)?;
            context
                .dump
                .summary
                .class(class)
                .map(|class| FunctionValue::Text(context.dump.summary.class_name(class).to_owned()))
        })
    }

    /// Evaluates `size(id)`: number of elements of a collection or an array. Shown even if values are hidden, although the size
    /// of a collection is read from a field.
    pub(super) fn size(&self, id: i64) -> FunctionValue {
        self.of_object(id, |inside, object| {
            let objects = &inside.tables.context().dump.objects;
            let elements = match objects.record(object)?.length() {
                Some(length) => u64::from(length),
                None => {
                    let forms = inside.forms.get_or_init(|| Forms::for_summary(objects.summary));
                    let collections = Collections::with(objects, forms.clone());
                    collections.count(&collections.collection(object)?)?
                }
            };
            Some(FunctionValue::Integer(i64::try_from(elements).unwrap_or(i64::MAX)))
        })
    }

    /// Evaluates `dominates(a, b)`: `true` if all paths to `b` lead through `a`, or both are the same object. `None` if one of
    /// them is not in the dump or is unreachable.
    pub(super) fn dominates(&self, dominator: i64, dominated: i64) -> Option<bool> {
        self.0.with_dependent(|_, inside| {
            let context = inside.tables.context();
            let tree = &context.dump.graph.tree;
            let position = |id| tree.reachable_position(context.object(id)?);
            Some(tree.dominates(position(dominator)?, position(dominated)?))
        })
    }

    /// Evaluates `path(id)`: shortest path from a root to an object.
    pub(super) fn path(&self, id: i64) -> FunctionValue {
        self.of_object(id, |inside, object| {
            let context = inside.tables.context();
            let view = inside.view.get_or_init(|| View::new(&context.dump));
            path_text::format_path(view, object).map(FunctionValue::Text)
        })
    }

    /// Evaluates `value(id, 'a.b')`: value of a field, or of a field of the object to which it refers. Returns null for
    /// unreasonably long paths: each step takes memory for every class.
    pub(super) fn value(&self, id: i64, path: &str) -> FunctionValue {
        if path.len() > MAX_PATH || path.split('.').nth(MAX_STEPS).is_some() {
            return FunctionValue::Nothing;
        }
        self.of_object(id, |inside, object| {
            let context = inside.tables.context();
            let (objects, hides) = (&context.dump.objects, context.dump.heap.hides_values());
            let known = inside.path(path)?;
            let (fields, places) = &*known;
            let value = fields.value(objects, object, &objects.record(object)?, places)?;
            let Some(target) = objects.object(value) else {
                let is_hidden = hides && value.kind != BasicType::Object;
                return if is_hidden {
                    Some(FunctionValue::Text(HIDDEN.to_owned()))
                } else {
                    primitive(value)
                };
            };
            match objects.string(target) {
                Some(text) => Some(FunctionValue::Text(hiding::text(&text, MAX_TEXT, hides))),
                None => reference(value),
            }
        })
    }
}

impl DumpState<'_> {
    /// Returns a path of fields with the locations of the fields; `None` if the text is not a path.
    fn path(&self, text: &str) -> Option<Arc<(FieldPath, StepPlaces)>> {
        let mut known = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, path)) = known.iter().find(|(name, _)| name == text) {
            return Some(path.clone());
        }
        let path = FieldPath::new(text)?;
        let places = path.places(&self.tables.context().dump.objects);
        let made = Arc::new((path, places));
        let steps: usize = known.iter().map(|(_, path)| path.1.len()).sum();
        if steps.saturating_add(made.1.len()) > MAX_KEPT {
            known.clear();
        }
        known.push((text.to_owned(), made.clone()));
        Some(made)
    }
}

/// Converts a reference to SQL: the ID, even if the object is not in the dump.
fn reference(value: Bits) -> Option<FunctionValue> {
    value.reference().map(|ObjectId(id)| FunctionValue::Integer(id.cast_signed()))
}

/// Converts a primitive value to SQL; `None` for a reference.
fn primitive(value: Bits) -> Option<FunctionValue> {
    Some(match value.kind {
        BasicType::Object => return reference(value),
        BasicType::Boolean => FunctionValue::Integer(i64::from(value.bits & 0xff != 0)),
        BasicType::Char => FunctionValue::Text(value.as_character().into()),
        BasicType::Float => FunctionValue::Real(value.as_float().into()),
        BasicType::Double => FunctionValue::Real(f64::from_bits(value.bits)),
        BasicType::Byte | BasicType::Short | BasicType::Int | BasicType::Long => {
            FunctionValue::Integer(value.integer()?)
        }
    })
}
