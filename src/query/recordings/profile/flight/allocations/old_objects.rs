//! Sampled objects that were alive when the recording was written: `jdk.OldObjectSample`.

use std::sync::Arc;

use hprof_jfr::Record;
use hprof_jfr::values::Constant;

use super::super::constants::ConstantMap;
use super::super::names::{ConstantNames, MAX_NAME};

/// Maximum number of links of a chain. The JVM writes at most 200, and the number of links it skipped.
const MAX_LINKS: usize = 256;
/// Name of the class of class objects.
const CLASS: &str = "java.lang.Class";
/// Prefix of the description of a class object.
const CLASS_NAME: &str = "Class Name: ";

/// A sampled object that was alive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OldObject {
    /// Class of the object.
    pub class: Arc<str>,
    /// Number of elements, if the object is an array.
    pub elements: Option<u64>,
    /// Index of the stack in which the object was allocated.
    pub(super) stack: u32,
    /// Chain of references from the object to the root; empty if the recording was written without chains.
    pub chain: Vec<ChainLink>,
}

/// Link of a reference chain: a reference to the previous object of the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChainLink {
    /// Class of the referring object; if it is a class object, the class that it represents.
    pub class: Arc<str>,
    /// Name of the referring field; `None` for an element of an array.
    pub field: Option<Arc<str>>,
}

impl OldObject {
    /// Returns the index of the stack in which the object was allocated, for [`super::Allocations::stack`].
    pub fn stack(&self) -> u32 {
        self.stack
    }
}

/// Reader of the old objects of a chunk. Chains share constants, so each constant is read only once.
#[derive(Debug)]
pub(super) struct OldObjects<'c> {
    /// Remaining bytes for texts of chains.
    left: usize,
    objects: ConstantMap<Object<'c>>,
    references: ConstantMap<Reference<'c>>,
    fields: ConstantMap<Option<Arc<str>>>,
}

/// Constant that describes an object in a chain.
#[derive(Debug, Clone, Default)]
struct Object<'c> {
    /// Class of the object; `None` if the class has no name.
    class: Option<Arc<str>>,
    /// Class that the object represents, if it is a class object.
    represented: Option<Arc<str>>,
    referrer: Option<Constant<'c>>,
}

/// Constant that describes a reference in a chain.
#[derive(Debug, Clone, Default)]
struct Reference<'c> {
    holder: Option<Constant<'c>>,
    field: Option<Arc<str>>,
}

impl<'c> OldObjects<'c> {
    /// Creates a reader that decodes at most `max_bytes` of texts.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            left: max_bytes,
            objects: ConstantMap::default(),
            references: ConstantMap::default(),
            fields: ConstantMap::default(),
        }
    }

    /// Reads an old object from the fields of an event.
    pub(super) fn read(
        &mut self,
        fields: &Record<'c>,
        stack: u32,
        names: &mut ConstantNames,
    ) -> Option<OldObject> {
        let object = fields.constant("object")?;
        let class = self.object(object, names).class?;
        let elements = fields.integer("arrayElements").and_then(|count| u64::try_from(count).ok());
        let elements = elements.filter(|_| class.ends_with("[]"));
        Some(OldObject { class, elements, stack, chain: self.chain(object, names) })
    }

    fn chain(&mut self, object: Constant<'c>, names: &mut ConstantNames) -> Vec<ChainLink> {
        let mut links = Vec::new();
        let mut at = object;
        while links.len() < MAX_LINKS && self.left > 0 {
            let Some(referrer) = self.object(at, names).referrer else { break };
            let Reference { holder: Some(holder), field } = self.reference(referrer) else { break };
            let Object { class, represented, .. } = self.object(holder, names);
            let class = represented.or(class).unwrap_or_default();
            let texts = class.len() + field.as_ref().map_or(0, |field| field.len());
            if !self.take(texts + size_of::<ChainLink>()) {
                break;
            }
            links.push(ChainLink { class, field });
            at = holder;
        }
        links
    }

    fn object(&mut self, object: Constant<'c>, names: &mut ConstantNames) -> Object<'c> {
        if let Some(known) = self.objects.get(&object) {
            return known.clone();
        }
        let found = object.record().map(|record| {
            let class = record.constant("type").and_then(|class| names.class(class));
            let is_class = class.as_deref() == Some(CLASS);
            let represented = if is_class { self.represented_class(&record) } else { None };
            Object { class, represented, referrer: record.constant("referrer") }
        });
        let found = found.unwrap_or_default();
        self.objects.insert(&object, found.clone());
        found
    }

    /// Returns the class that a class object represents.
    fn represented_class(&mut self, object: &Record<'_>) -> Option<Arc<str>> {
        let description = object.string("description").filter(|_| self.left > 0)?;
        // Objects can share one long text: it is decoded only if it can be a name, and charged even if it is damaged.
        description.decode(CLASS_NAME.len()).filter(|start| start == CLASS_NAME)?;
        let max_bytes = CLASS_NAME.len() + MAX_NAME;
        let description =
            self.take(description.stated_len().min(max_bytes)).then(|| description.decode(max_bytes))??;
        let name = description.strip_prefix(CLASS_NAME)?.trim();
        Some(hprof_values::names::java_class_name(name).into())
    }

    fn reference(&mut self, reference: Constant<'c>) -> Reference<'c> {
        if let Some(known) = self.references.get(&reference) {
            return known.clone();
        }
        let found = reference.record().map(|record| Reference {
            holder: record.constant("object"),
            field: record.constant("field").and_then(|field| self.field(field)),
        });
        let found = found.unwrap_or_default();
        self.references.insert(&reference, found.clone());
        found
    }

    fn field(&mut self, field: Constant<'c>) -> Option<Arc<str>> {
        if let Some(known) = self.fields.get(&field) {
            return known.clone();
        }
        let name = field.record().filter(|_| self.left > 0).and_then(|field| field.string("name"));
        let name = name.filter(|name| self.take(name.stated_len().min(MAX_NAME)));
        let name = name.and_then(|name| name.decode(MAX_NAME)).map(Into::into);
        self.fields.insert(&field, name.clone());
        name
    }

    /// Subtracts `bytes` from the remaining bytes. If fewer remain, sets them to 0 and returns `false`.
    fn take(&mut self, bytes: usize) -> bool {
        let rest = self.left.checked_sub(bytes);
        self.left = rest.unwrap_or(0);
        rest.is_some()
    }
}
