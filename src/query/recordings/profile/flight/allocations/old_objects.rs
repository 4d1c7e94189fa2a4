//! Sampled objects that were alive when the recording was written: `jdk.OldObjectSample`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_jfr::Record;
use hprof_jfr::values::{Constant, ConstantId};

use super::super::names::{MAX_NAME, Names};

/// Maximum number of links of a chain. The JVM writes at most 200, and how many it skipped.
const MAX_LINKS: usize = 256;
/// Start of the description of a class object.
const CLASS_NAME: &str = "Class Name: ";

/// A sampled object that was alive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OldObject {
    /// Class.
    pub class: Arc<str>,
    /// Number of elements of an array.
    pub elements: Option<u64>,
    /// Index of the stack in which it was allocated.
    pub(super) stack: u32,
    /// Chain of references from the object to the root; empty if the recording was written without chains.
    pub chain: Vec<ChainLink>,
}

/// A reference to the object before, by another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChainLink {
    /// Class of the other object; of a class object, the class that it represents.
    pub class: Arc<str>,
    /// Field; `None` for an element of an array.
    pub field: Option<Arc<str>>,
}

impl OldObject {
    /// Returns the index of the stack in which it was allocated; for [`super::Allocations::stack`].
    pub fn stack(&self) -> u32 {
        self.stack
    }
}

/// Reader of the old objects of a chunk. Their chains share constants, each of which is read once.
#[derive(Debug)]
pub(super) struct OldObjects<'c> {
    /// Bytes that texts of chains may still take.
    left: usize,
    objects: FxHashMap<ConstantId, Object<'c>>,
    references: FxHashMap<ConstantId, Reference<'c>>,
    fields: FxHashMap<ConstantId, Option<Arc<str>>>,
}

/// Object in a chain.
#[derive(Debug, Clone, Default)]
struct Object<'c> {
    /// Class; of a class object, the class that it represents.
    class: Arc<str>,
    referrer: Option<Constant<'c>>,
}

/// Reference in a chain.
#[derive(Debug, Clone, Default)]
struct Reference<'c> {
    holder: Option<Constant<'c>>,
    field: Option<Arc<str>>,
}

impl<'c> OldObjects<'c> {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            left: max_bytes,
            objects: FxHashMap::default(),
            references: FxHashMap::default(),
            fields: FxHashMap::default(),
        }
    }

    /// Reads the fields of an event.
    pub(super) fn read(&mut self, fields: &Record<'c>, stack: u32, names: &mut Names) -> Option<OldObject> {
        let object = fields.constant("object")?;
        let class = object.record()?.constant("type").and_then(|class| names.class(class))?;
        let elements = fields.integer("arrayElements").and_then(|count| u64::try_from(count).ok());
        let elements = elements.filter(|_| class.ends_with("[]"));
        Some(OldObject { class, elements, stack, chain: self.chain(object, names) })
    }

    fn chain(&mut self, object: Constant<'c>, names: &mut Names) -> Vec<ChainLink> {
        let mut links = Vec::new();
        let mut at = object;
        while links.len() < MAX_LINKS && self.left > 0 {
            let Some(referrer) = self.object(at, names).referrer else { break };
            let Reference { holder: Some(holder), field } = self.reference(referrer) else { break };
            let class = self.object(holder, names).class;
            let texts = class.len() + field.as_ref().map_or(0, |field| field.len());
            if !self.take(texts + size_of::<ChainLink>()) {
                break;
            }
            links.push(ChainLink { class, field });
            at = holder;
        }
        links
    }

    fn object(&mut self, object: Constant<'c>, names: &mut Names) -> Object<'c> {
        if let Some(known) = self.objects.get(&object.id()) {
            return known.clone();
        }
        let found = object.record().map(|record| {
            let class = record.constant("type").and_then(|class| names.class(class)).unwrap_or_default();
            let description = record.text("description", CLASS_NAME.len() + MAX_NAME).unwrap_or_default();
            let represented = description.strip_prefix(CLASS_NAME).map(str::trim);
            let class = match represented.filter(|_| &*class == "java.lang.Class") {
                Some(name) if self.take(name.len()) => hprof_parser::names::java_class_name(name).into(),
                _ => class,
            };
            Object { class, referrer: record.constant("referrer") }
        });
        let found = found.unwrap_or_default();
        self.objects.insert(object.id(), found.clone());
        found
    }

    fn reference(&mut self, reference: Constant<'c>) -> Reference<'c> {
        if let Some(known) = self.references.get(&reference.id()) {
            return known.clone();
        }
        let found = reference.record().map(|record| Reference {
            holder: record.constant("object"),
            field: record.constant("field").and_then(|field| self.field(field)),
        });
        let found = found.unwrap_or_default();
        self.references.insert(reference.id(), found.clone());
        found
    }

    fn field(&mut self, field: Constant<'c>) -> Option<Arc<str>> {
        if let Some(known) = self.fields.get(&field.id()) {
            return known.clone();
        }
        let name = field.record().filter(|_| self.left > 0).and_then(|field| field.text("name", MAX_NAME));
        let name = name.filter(|name| self.take(name.len())).map(Into::into);
        self.fields.insert(field.id(), name.clone());
        name
    }

    /// Takes so many bytes of what is left; returns whether there are as many. If not, nothing is left.
    fn take(&mut self, bytes: usize) -> bool {
        let rest = self.left.checked_sub(bytes);
        self.left = rest.unwrap_or(0);
        rest.is_some()
    }
}
