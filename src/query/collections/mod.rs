//! What collections hold: elements and entries of the JDK's lists, sets, maps and queues, and of Android's.
//!
//! Collections are read by the fields of the classes that implement them, from JDK 6 to 25. A class that extends a known
//! one is read like it. Elements come lazily, in the order in which the collection itself would give them, or in that of
//! its table.

mod iterate;
mod known;

use rustc_hash::FxHashMap;

use crate::hprof::BasicType;
use crate::index::summary::ClassNumber;

use super::objects::{Bits, Objects};
use known::{Form, KNOWN, OLDER};

/// What a collection is to whoever looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Elements with places: lists, queues, arrays inside of wrappers.
    List,
    /// Elements without places.
    Set,
    /// Keys and values.
    Map,
    /// One value, or none: Optional, atomic and other references.
    Holder,
}

impl Kind {
    /// The name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Set => "set",
            Self::Map => "map",
            Self::Holder => "holder",
        }
    }
}

/// An element, or an entry of a map. Values are references, null among them, but for holders of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The key, in maps.
    pub key: Option<Bits>,
    /// The element, or the value.
    pub value: Bits,
}

/// A collection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Collection {
    /// What it is.
    pub kind: Kind,
    /// How many elements it says it has, if it says so.
    pub size: Option<u64>,
    form: Form,
    object: u32,
    /// Whether its elements are the keys of the map that it stands on.
    keys_only: bool,
}

/// Collections that stand on another one: wrappers of wrappers are rare, and a cycle of them has no end.
const MAX_WRAPPERS: usize = 32;

/// Knows the collections of a dump.
#[derive(Debug)]
pub struct Collections<'o, 'a> {
    objects: &'o Objects<'a>,
    /// By class number: how instances are read.
    forms: Vec<Option<(Kind, Form)>>,
}

impl<'o, 'a> Collections<'o, 'a> {
    /// The collections among these objects.
    pub fn new(objects: &'o Objects<'a>) -> Self {
        let summary = objects.summary;
        let mut by_name: FxHashMap<&str, Vec<(Kind, Form)>> = FxHashMap::default();
        for (name, kind, form) in KNOWN.iter().chain(OLDER) {
            by_name.entry(name).or_default().push((*kind, *form));
        }
        let own = summary.numbered_classes().map(|(number, class)| {
            let forms = by_name.get(summary.class_name(class))?;
            let has = |name| objects.slot(number, name).is_some();
            forms.iter().find(|(_, form)| form.needs().is_none_or(has)).copied()
        });
        let own: Vec<Option<(Kind, Form)>> = own.collect();
        // A class is read like its nearest superclass that is known.
        let mut forms: Vec<Option<Option<(Kind, Form)>>> = vec![None; own.len()];
        let mut chain = Vec::new();
        for (number, _) in summary.numbered_classes() {
            let mut class = Some(number);
            let mut found = None;
            while let Some(number) = class.map(|class| class.0 as usize) {
                match forms.get_mut(number) {
                    None => break,
                    Some(Some(known)) => {
                        found = *known;
                        break;
                    }
                    // A class that is met again on the same way is its own superclass.
                    Some(place) => *place = Some(None),
                }
                chain.push(number);
                found = own.get(number).copied().flatten();
                if found.is_some() {
                    break;
                }
                let row = u32::try_from(number).ok().and_then(|number| summary.class(ClassNumber(number)));
                class = row.and_then(|row| summary.super_class(row));
            }
            for number in chain.drain(..) {
                if let Some(place) = forms.get_mut(number) {
                    *place = Some(found);
                }
            }
        }
        Self { objects, forms: forms.into_iter().map(Option::flatten).collect() }
    }

    /// The collection that an object is, if it is one.
    pub fn collection(&self, object: u32) -> Option<Collection> {
        let (kind, mut form) = self.form(object)?;
        let (mut object, mut keys_only) = (object, false);
        for _ in 0..MAX_WRAPPERS {
            let (field, keys) = match form {
                Form::Wraps(field) => (field, false),
                Form::KeysOf(field) => (field, true),
                _ => {
                    let size = self.size(object, form);
                    return Some(Collection { kind, size, form, object, keys_only });
                }
            };
            keys_only |= keys;
            object = self.objects.reference(object, field)?;
            form = self.form(object).map(|(_, form)| form)?;
        }
        None
    }

    fn form(&self, object: u32) -> Option<(Kind, Form)> {
        let class = self.objects.graph.objects.class(object)?;
        self.forms.get(class.0 as usize).copied().flatten()
    }

    /// How many elements a collection says it has.
    fn size(&self, object: u32, form: Form) -> Option<u64> {
        let number = |name| u64::try_from(self.objects.field(object, name)?.integer()?).ok();
        match form {
            Form::Array { size: Some(size), .. }
            | Form::Linked { size, .. }
            | Form::Buckets { size: Some(size), .. }
            | Form::Pairs { size: Some(size), .. }
            | Form::Tree { size, .. } => number(size),
            Form::Chained => number("size"),
            // A ConcurrentHashMap counts in several places.
            Form::Buckets { size: None, .. } => {
                let cells = self.objects.field(object, "counterCells");
                let cells = iterate::ids(self.objects, cells).filter_map(|id| {
                    let cell = self.objects.graph.objects.addresses.index_of(id)?;
                    self.objects.field(cell, "value")?.integer()
                });
                let base = self.objects.field(object, "baseCount")?.integer()?;
                u64::try_from(cells.fold(base, i64::saturating_add)).ok()
            }
            _ => None,
        }
    }

    /// What it holds, made while it is taken.
    pub fn entries(&self, collection: &Collection) -> impl Iterator<Item = Entry> + use<'o, 'a> {
        let keys_only = collection.keys_only;
        let entries = iterate::entries(self.objects, collection.object, collection.form);
        entries.map(move |entry| match (keys_only, entry.key) {
            (true, Some(key)) => Entry { key: None, value: key },
            _ => entry,
        })
    }
}

/// Null.
const NULL: Bits = Bits { kind: BasicType::Object, bits: 0 };
