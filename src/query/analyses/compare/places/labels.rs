//! Distinct labels of places. A label consists of the reference that holds an object, and the object's class.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::frameworks::Naming;
use hprof_base::naming::stable_names;
use hprof_index::model::summary::{ClassNumber, Summary};

use super::held_by::ReferenceFields;

/// The reference by which an object is held.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Via {
    /// The dominator does not refer to the object directly, or refers to it by an element of an array or of a collection that
    /// is not a map.
    Unknown,
    /// A field.
    Field {
        /// Class that declares the field.
        class: Arc<str>,
        /// Name of the field.
        name: Arc<str>,
    },
    /// A static field.
    Static {
        /// Class that declares the field.
        class: Arc<str>,
        /// Name of the field.
        name: Arc<str>,
    },
    /// The object is a key of a map.
    Key,
    /// The object is a value of a map.
    Value,
    /// The object is the value of this key of a map.
    ValueOf(Arc<str>),
    /// The object is an entry that its framework knows by this name, such as a bean.
    Entry(Arc<str>),
    /// The object is held by the stack of a thread.
    Stack,
    /// The object is a GC root of this kind, and no single object holds it.
    Root(Arc<str>),
    /// The object is a thread with this name, with `*` for digits.
    Thread(Arc<str>),
}

/// A label of a place.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlaceLabel {
    /// Reference by which the objects are held.
    pub via: Via,
    /// Class of the objects; for a class object, the represented class. `None` if the class is not in the dump.
    pub class: Option<Arc<str>>,
    /// `true` if the objects are class objects.
    pub is_class_object: bool,
    /// Name by which users of a framework know the objects.
    pub called: Option<Arc<str>>,
    /// Meaning of that name.
    pub naming: Naming,
    /// `true` if the framework's rule has a sentence about the objects.
    pub has_sentence: bool,
}

impl Via {
    /// Returns `false` if the reference is a field of a class outside the JDK.
    pub(super) fn is_of_jdk(&self) -> bool {
        match self {
            Self::Field { class, .. } | Self::Static { class, .. } => hprof_values::names::is_of_jdk(class),
            _ => true,
        }
    }
}

impl PlaceLabel {
    /// Returns whether the label names only JDK classes. Such labels recur in any program.
    pub(super) fn is_of_jdk(&self) -> bool {
        self.via.is_of_jdk() && self.class.as_deref().is_some_and(hprof_values::names::is_of_jdk)
    }
}

/// Distinct values, each with a number.
#[derive(Debug)]
pub(super) struct Pool<T> {
    numbers: FxHashMap<T, u32>,
    pub(super) all: Vec<T>,
}

impl<T: Clone + Eq + std::hash::Hash> Pool<T> {
    pub(super) fn new() -> Self {
        Self { numbers: FxHashMap::default(), all: Vec::new() }
    }

    /// Returns the number of a value, adding the value if it is new.
    pub(super) fn number(&mut self, thing: T) -> u32 {
        if let Some(number) = self.numbers.get(&thing) {
            return *number;
        }
        // There are fewer than a dump has classes and fields, both of which fit u32.
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push(thing.clone());
        self.numbers.insert(thing, number);
        number
    }
}

/// A name that a framework's rule gives to objects of a class.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CalledName {
    /// Number of the class name.
    pub(super) class: u32,
    pub(super) name: Arc<str>,
    pub(super) naming: Naming,
    pub(super) has_sentence: bool,
}

/// Numbers of class names and of the references that hold a dump's objects.
pub(super) struct LabelNumbers {
    pub(super) vias: Pool<Via>,
    /// Class names without parts that vary between runs.
    pub(super) classes: Pool<Arc<str>>,
    /// Names that framework rules give to objects.
    pub(super) called: Pool<CalledName>,
    /// By class number: number of its name.
    pub(super) of_class: Vec<u32>,
    /// By class number: start of its fields in `fields`.
    first_field: Vec<u32>,
    /// Numbers of the instance fields of all classes.
    fields: Vec<u32>,
    /// By class number: start of its static fields in `statics`.
    first_static: Vec<u32>,
    statics: Vec<u32>,
}

/// Number of [`Via::Unknown`].
pub(super) const UNKNOWN: u32 = 0;
/// Number of [`Via::Key`].
pub(super) const KEY: u32 = 1;
/// Number of [`Via::Stack`].
pub(super) const STACK: u32 = 2;
/// Number of [`Via::Value`].
pub(super) const VALUE: u32 = 3;

impl LabelNumbers {
    pub(super) fn new(summary: &Summary, slots: &ReferenceFields<'_>) -> Self {
        let mut vias = Pool::new();
        for via in [Via::Unknown, Via::Key, Via::Stack, Via::Value] {
            vias.number(via);
        }
        let mut classes: Pool<Arc<str>> = Pool::new();
        let mut stems = stable_names::Stems::default();
        let of_class: Vec<u32> = summary
            .classes()
            .iter()
            .map(|class| classes.number(stems.stem(summary.class_name(class))))
            .collect();
        let mut fields_of = FieldIndex {
            vias: &mut vias,
            classes: &classes,
            of_class: &of_class,
            known: FxHashMap::default(),
        };
        let (mut first_field, mut fields, mut first_static, mut statics) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let place = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        for (number, class) in summary.numbered_classes() {
            first_field.push(place(fields.len()));
            fields.extend(
                slots.slots_of(number).iter().map(|slot| fields_of.number(slot.class, slot.name, Is::Field)),
            );
            first_static.push(place(statics.len()));
            statics
                .extend(summary.statics(class).map(|(name, ..)| fields_of.number(number, name, Is::Static)));
        }
        Self { vias, classes, called: Pool::new(), of_class, first_field, fields, first_static, statics }
    }

    /// Returns the number of an instance field of a class, by the index of the field.
    #[inline]
    pub(super) fn field(&self, class: ClassNumber, field: u32) -> u32 {
        find(&self.first_field, &self.fields, class, field)
    }

    /// Returns the number of a static field of a class.
    #[inline]
    pub(super) fn static_field(&self, class: ClassNumber, field: u32) -> u32 {
        find(&self.first_static, &self.statics, class, field)
    }
}

/// Kind of field in the key of [`FieldIndex`]: instance or static.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Is {
    Field,
    Static,
}

/// Numbers of fields by class name and field name. The text of each name is read once, since all fields of a hostile dump can
/// have the same name of 64 KB.
struct FieldIndex<'n> {
    vias: &'n mut Pool<Via>,
    classes: &'n Pool<Arc<str>>,
    of_class: &'n [u32],
    /// Numbers by class name, address of the field name, and kind of field.
    known: FxHashMap<(u32, *const u8, usize, Is), u32>,
}

impl FieldIndex<'_> {
    fn number(&mut self, class: ClassNumber, name: &str, is: Is) -> u32 {
        let Some(class) = self.of_class.get(class.0 as usize).copied() else { return UNKNOWN };
        let key = (class, name.as_ptr(), name.len(), is);
        if let Some(number) = self.known.get(&key) {
            return *number;
        }
        let Some(class_name) = self.classes.all.get(class as usize).cloned() else { return UNKNOWN };
        let name = Arc::from(name);
        let number = self.vias.number(match is {
            Is::Field => Via::Field { class: class_name, name },
            Is::Static => Via::Static { class: class_name, name },
        });
        self.known.insert(key, number);
        number
    }
}

fn find(first: &[u32], all: &[u32], class: ClassNumber, field: u32) -> u32 {
    let start = first.get(class.0 as usize).copied().unwrap_or(u32::MAX) as usize;
    all.get(start.saturating_add(field as usize)).copied().unwrap_or(UNKNOWN)
}
