//! Labels: short texts that identify an object within its class.
//!
//! A thread has its name, a string its text, a class object the class, a file its path. [`super::meaning`] reads the
//! meaning of objects; a label is the start of it. A collection has its number of elements, and what belongs to a
//! ThreadLocal the static field that holds that. A label is cheap: it reads the object's record and follows at most a
//! few references, and it is short, whatever the dump contains.

use std::sync::{Arc, OnceLock};

use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_index::storage::human_bytes::group_digits;
use hprof_index::storage::id_map::IdMap;
use hprof_values::{BasicType, ObjectId};

use super::class_set::ClassSet;
use super::collections::{CollectionKind, Collections, Forms};
use super::meaning::Meanings;
use super::reader::ObjectReader;

/// Maximum number of characters of a label; a longer one ends with an ellipsis.
pub const MAX_CHARS: usize = 120;

/// Maximum number of characters of a label that is not truncated to [`MAX_CHARS`].
const MAX_WHOLE: usize = 1 << 16;

/// Entry that a thread stores for a ThreadLocal: key and value.
pub const THREAD_LOCAL_ENTRY: &str = "java.lang.ThreadLocal$ThreadLocalMap$Entry";

/// Class of the keys of such entries, which may be instances of a subclass.
const THREAD_LOCAL: &str = "java.lang.ThreadLocal";

/// Labels of the objects of a heap.
#[derive(Debug)]
pub struct Labels<'a> {
    meanings: Meanings<'a>,
    objects: ObjectReader<'a>,
    forms: Arc<Forms>,
    /// ThreadLocals, and the static fields that hold them: class and name.
    thread_locals: OnceLock<IdMap<ObjectId, (ClassNumber, &'a str)>>,
    is_thread_local: ClassSet,
    /// `true` if contents of objects are hidden.
    hides_values: bool,
}

impl<'a> Labels<'a> {
    /// Creates a reader of labels of objects.
    pub fn new(dump: &Dump<'a>) -> Self {
        let summary = dump.summary;
        let objects = dump.objects;
        Self {
            meanings: Meanings::new(dump),
            objects,
            forms: Forms::for_summary(summary),
            thread_locals: OnceLock::new(),
            is_thread_local: ClassSet::of_name_and_below(summary, THREAD_LOCAL),
            hides_values: dump.heap.hides_values(),
        }
    }

    /// Returns the label of an object, if it has one. Not escaped.
    pub fn label(&self, object: ObjectIndex) -> Option<String> {
        if self.tells_nothing_of(object) {
            self.fallback_label(object).map(shortened)
        } else {
            self.unmasked_label(object)
        }
    }

    /// Returns the label of an object for comparison rather than display, even if values are hidden.
    pub fn unmasked_label(&self, object: ObjectIndex) -> Option<String> {
        self.meanings.short(object, MAX_CHARS).or_else(|| Some(shortened(self.fallback_label(object)?)))
    }

    /// Returns the label of an object, not truncated to a short text. Still bounded.
    pub fn full_label(&self, object: ObjectIndex) -> Option<String> {
        let is_told = !self.tells_nothing_of(object);
        let meaning = is_told.then(|| self.meanings.meaning(object, MAX_WHOLE)).flatten();
        meaning.map(|meaning| meaning.text).or_else(|| self.fallback_label(object))
    }

    /// Returns the reader of the meanings of objects.
    pub(crate) fn meanings(&self) -> &Meanings<'a> {
        &self.meanings
    }

    /// Returns whether texts read from the dump are hidden.
    pub(crate) fn hides_values(&self) -> bool {
        self.hides_values
    }

    /// Returns whether the value of an object is hidden. The name of a class is not a value.
    fn tells_nothing_of(&self, object: ObjectIndex) -> bool {
        self.hides_values && self.objects.graph.class_of_class_object(object).is_none()
    }

    /// Returns a label for an object without a meaning of its own.
    fn fallback_label(&self, object: ObjectIndex) -> Option<String> {
        let class = self.objects.graph.objects.class(object)?;
        if self.is_thread_local.contains(class) {
            return self.of_thread_local(self.objects.graph.objects.addresses.id_of(object)?);
        }
        if let Some(holder) = self.flat_holder(object) {
            return Some(holder);
        }
        let row = self.objects.summary.class(class)?;
        if self.objects.summary.is_named(row, THREAD_LOCAL_ENTRY) {
            return self.of_thread_local(self.objects.field(object, "referent")?.reference()?);
        }
        let collections = Collections::with(&self.objects, self.forms.clone());
        let collection =
            collections.collection(object).filter(|collection| collection.kind != CollectionKind::Holder)?;
        Some(format!("size={}", group_digits(collections.count(&collection)?)))
    }

    /// Describes the object that a flattened object is part of.
    fn flat_holder(&self, object: ObjectIndex) -> Option<String> {
        let graph = self.objects.graph;
        if !self.objects.summary.is_flat(graph.objects.addresses.id_of(object)?) {
            return None;
        }
        // Its only referrer dominates it.
        let position = graph.tree.reachable_position(object)?;
        let holder = graph.tree.object_at(graph.tree.dominator(position)?)?;
        let class = self.objects.summary.class(graph.objects.class(holder)?)?;
        let id = graph.objects.addresses.id_of(holder)?;
        Some(format!("flattened in {} {id:#x}", self.objects.summary.class_name(class)))
    }

    fn of_thread_local(&self, id: ObjectId) -> Option<String> {
        self.static_of_thread_local(id).map(|field| format!("of {field}"))
    }

    /// Returns the static field that holds a ThreadLocal: `gateway.RequestParser.SCRATCH`.
    pub fn static_of_thread_local(&self, id: ObjectId) -> Option<String> {
        let summary = self.objects.summary;
        let (class, field) = self.thread_locals.get_or_init(|| self.find_thread_locals()).get(&id)?;
        Some(format!("{}.{field}", summary.class_name(summary.class(*class)?)))
    }

    /// Reads the static fields of all classes. If several hold the same ThreadLocal, the first is used.
    fn find_thread_locals(&self) -> IdMap<ObjectId, (ClassNumber, &'a str)> {
        let (summary, objects) = (self.objects.summary, &self.objects.graph.objects);
        let mut found = IdMap::default();
        for (number, class) in summary.numbered_classes() {
            for (name, kind, value) in summary.statics(class) {
                let id = ObjectId(value);
                if kind != BasicType::Object || id.is_null() {
                    continue;
                }
                let class = objects.addresses.index_of(id).and_then(|object| objects.class(object));
                if class.is_some_and(|class| self.is_thread_local.contains(class)) {
                    found.entry(id).or_insert((number, name));
                }
            }
        }
        found
    }
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        None => text,
        Some(_) => text.chars().take(MAX_CHARS - 1).chain(['…']).collect(),
    }
}
