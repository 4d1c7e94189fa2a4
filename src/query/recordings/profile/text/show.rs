//! A single object of a text report's HEAP DUMP.

use std::ops::Range;

use super::{TextError, display_names};
use hprof_base::naming::suggestions;
use hprof_index::storage::id_map::IdMap;
use hprof_input::file::TextFile;
use hprof_input::text_events::visit_events;
use hprof_model::show::{
    self, ObjectKind, ReferencedObject, Referrer, RootShown, ShownObject, ShownPart, ShownValue,
};
use hprof_parser::text::TextEvent;
use hprof_parser::text::event::{ClassReference, TextRoot};
use hprof_values::{BasicType, ObjectId};

/// Query for one object of a text report.
#[derive(Debug, Clone)]
pub struct TextObjectQuery {
    /// Object ID.
    pub object: ObjectId,
    /// Range of array elements to return.
    pub elements: Range<u64>,
    /// `true` to search for referrers.
    pub incoming: bool,
}

/// Description of one object of a text report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextObjectReport {
    /// Object, if found. A text contains no primitive values, and no null references.
    pub shown: Option<ShownObject>,
    /// Elements of the object, if it is an array.
    pub elements: Vec<ShownPart>,
    /// Referrers, if requested, in the order of the file.
    pub referrers: Vec<Referrer>,
    /// IDs closest to the requested one, ascending, if the object was not found.
    pub nearest: Vec<ObjectId>,
}

/// Finds an object in the HEAP DUMP of a run.
///
/// # Errors
/// If the file cannot be read.
pub fn show(file: &TextFile, run: u32, question: &TextObjectQuery) -> Result<TextObjectReport, TextError> {
    let mut search = TextObjectSearch::new(question);
    visit_events(file, |number, _, event| {
        if number == run {
            search.take(event);
        }
    })?;
    let TextObjectSearch { mut answer, .. } = search;
    if answer.shown.is_none() {
        return Ok(answer);
    }
    answer.nearest.clear();
    describe(file, run, &mut answer)?;
    Ok(answer)
}

/// Object whose lines are being read.
#[derive(Debug, Default)]
struct CurrentObject {
    object: ObjectId,
    class: Vec<u8>,
    kind: ObjectKind,
}

struct TextObjectSearch<'q> {
    question: &'q TextObjectQuery,
    answer: TextObjectReport,
    current: Option<CurrentObject>,
    roots: Vec<RootShown>,
}

impl<'q> TextObjectSearch<'q> {
    fn new(question: &'q TextObjectQuery) -> Self {
        Self { question, answer: TextObjectReport::default(), current: None, roots: Vec::new() }
    }

    fn take(&mut self, event: TextEvent<'_>) {
        match event {
            // Only the last HEAP DUMP counts.
            TextEvent::HeapBegin { .. } => *self = Self::new(self.question),
            TextEvent::HeapEnd => self.current = None,
            // The following lines belong to an unknown object.
            TextEvent::Malformed { text: [b'O' | b'A' | b'C', ..], .. } => self.current = None,
            TextEvent::Root(root) if root.object == self.question.object => self.root(&root),
            TextEvent::Object(object) => {
                if let Some(shown) = self.begin(object.object, object.class, ObjectKind::Instance) {
                    shown.class = Some(display_names::class(object.class));
                    shown.class_object = object.class_object;
                    shown.shallow_bytes = Some(object.size);
                    shown.trace = object.trace;
                }
            }
            TextEvent::Array(array) => {
                if let Some(shown) = self.begin(array.object, array.class, ObjectKind::ObjectArray) {
                    let class = array_class(array.class);
                    if is_primitive(&class) {
                        shown.kind = ObjectKind::PrimitiveArray;
                    }
                    shown.class = Some(class);
                    shown.class_object = array.class_object.filter(|_| array.class.ends_with(b"]"));
                    shown.shallow_bytes = Some(array.size);
                    shown.trace = array.trace;
                    shown.length = Some(array.length);
                }
            }
            TextEvent::Class { object, name, trace } => {
                if let Some(shown) = self.begin(object, name, ObjectKind::ClassObject) {
                    shown.class = Some(CLASS.to_owned());
                    shown.label = Some(display_names::class(name));
                    shown.trace = trace;
                }
            }
            TextEvent::Field { name, object } => self.reference(object, || display_names::text(name)),
            TextEvent::ClassReference { what, object } => self.reference(object, || match what {
                ClassReference::Super => show::SUPER.to_owned(),
                ClassReference::Loader => show::LOADER.to_owned(),
                ClassReference::Signers => show::SIGNERS.to_owned(),
                ClassReference::Domain => show::DOMAIN.to_owned(),
                ClassReference::Static(name) => display_names::text(name),
                ClassReference::Constant(index) => show::constant_name(index),
            }),
            TextEvent::Element { index, object } => {
                let wanted = self.question.elements.contains(&index);
                if self.is_at_object() && wanted {
                    self.answer.elements.push(part(format!("[{index}]"), object));
                }
                if self.is_referrer(object) {
                    self.referrer(format!("[{index}]"));
                }
            }
            _ => {}
        }
    }

    /// Begins the lines of an object; if it is the requested object, returns it without fields.
    fn begin(&mut self, object: ObjectId, class: &[u8], kind: ObjectKind) -> Option<&mut ShownObject> {
        self.note_nearest(object);
        let current = self.current.get_or_insert_default();
        (current.object, current.kind) = (object, kind);
        if self.question.incoming {
            current.class.clear();
            current.class.extend_from_slice(class);
        }
        if object != self.question.object {
            return None;
        }
        // Of several objects with the same ID, the last one counts.
        self.answer.elements.clear();
        let roots = self.roots.clone();
        Some(self.answer.shown.insert(ShownObject { object, kind, roots, ..ShownObject::default() }))
    }

    fn is_at_object(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.object == self.question.object)
    }

    fn is_referrer(&self, to: ObjectId) -> bool {
        self.question.incoming && to == self.question.object
    }

    fn reference(&mut self, to: ObjectId, name: impl Fn() -> String) {
        if self.is_at_object()
            && let Some(shown) = &mut self.answer.shown
        {
            shown.fields.push(part(name(), to));
        }
        if self.is_referrer(to) {
            self.referrer(name());
        }
    }

    fn referrer(&mut self, reference: String) {
        let Some(CurrentObject { object, class, kind }) = &self.current else { return };
        let (class, label) = match kind {
            ObjectKind::ClassObject => (CLASS.to_owned(), Some(display_names::class(class))),
            ObjectKind::ObjectArray | ObjectKind::PrimitiveArray => (array_class(class), None),
            ObjectKind::Instance => (display_names::class(class), None),
        };
        // An object may refer to the requested one several times.
        if let Some(last) = self.answer.referrers.last_mut()
            && last.object == *object
            && let Some(before) = &mut last.reference
        {
            // Limits the text: a long array may contain nothing else.
            if before.len() < 200 {
                before.push_str(", ");
                before.push_str(&reference);
            } else if !before.ends_with(MORE) {
                before.push_str(MORE);
            }
            return;
        }
        let class = Some(class);
        self.answer.referrers.push(Referrer { object: *object, class, label, reference: Some(reference) });
    }

    fn root(&mut self, root: &TextRoot<'_>) {
        let root = RootShown {
            kind: root.kind,
            thread: root.thread.map(|thread| thread.to_string()),
            frame: root.frame.filter(|frame| *frame >= 0).map(|frame| frame.to_string()),
        };
        // The agent writes roots first, but the format does not require it.
        if let Some(shown) = &mut self.answer.shown {
            shown.roots.push(root.clone());
        }
        self.roots.push(root);
    }

    /// Adds an ID to the closest IDs, if it is one of them.
    fn note_nearest(&mut self, id: ObjectId) {
        let wanted = self.question.object;
        let nearest = &mut self.answer.nearest;
        let most = suggestions::IDS as usize;
        let at = nearest.partition_point(|other| *other < id);
        let (below, above) =
            nearest.split_at_checked(nearest.partition_point(|other| *other < wanted)).unwrap_or_default();
        let is_nearer = if id < wanted {
            below.len() < most || below.first().is_some_and(|least| id > *least)
        } else {
            above.len() < most || above.last().is_some_and(|most| id < *most)
        };
        if !is_nearer || nearest.get(at) == Some(&id) {
            return;
        }
        let (below, above) = (below.len(), above.len());
        nearest.insert(at, id);
        if id < wanted && below == most {
            nearest.remove(0);
        } else if id >= wanted && above == most {
            nearest.pop();
        }
    }
}

const MORE: &str = ", ...";
const CLASS: &str = "java.lang.Class";

fn part(name: String, object: ObjectId) -> ShownPart {
    let value = ShownValue::Reference(Some(ReferencedObject { object, class: None, label: None }));
    ShownPart { name, class: None, kind: BasicType::Object, value }
}

/// Returns the class of an array from its line, which contains the array class or, in older files, the element class.
fn array_class(name: &[u8]) -> String {
    let class = display_names::class(name);
    if name.ends_with(b"]") { class } else { class + "[]" }
}

fn is_primitive(array: &str) -> bool {
    let element = array.strip_suffix("[]").unwrap_or(array);
    BasicType::PRIMITIVES.iter().any(|kind| kind.java_name() == element)
}

/// Reads the file again to find the classes of the referenced objects.
fn describe(file: &TextFile, run: u32, answer: &mut TextObjectReport) -> Result<(), TextError> {
    let fields = answer.shown.iter_mut().flat_map(|shown| &mut shown.fields);
    let mut wanted: IdMap<ObjectId, (Option<String>, Option<String>)> = IdMap::default();
    let mut referred: Vec<&mut ReferencedObject> = Vec::new();
    for part in fields.chain(&mut answer.elements) {
        if let ShownValue::Reference(Some(object)) = &mut part.value {
            wanted.entry(object.object).or_default();
            referred.push(object);
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    visit_events(file, |number, _, event| {
        if number != run {
            return;
        }
        match event {
            TextEvent::Object(object) => {
                if let Some(known) = wanted.get_mut(&object.object) {
                    known.0 = Some(display_names::class(object.class));
                }
            }
            TextEvent::Array(array) => {
                if let Some(known) = wanted.get_mut(&array.object) {
                    known.0 = Some(array_class(array.class));
                }
            }
            TextEvent::Class { object, name, .. } => {
                if let Some(known) = wanted.get_mut(&object) {
                    *known = (Some(CLASS.to_owned()), Some(display_names::class(name)));
                }
            }
            _ => {}
        }
    })?;
    for object in referred {
        let found = wanted.get(&object.object).cloned().unwrap_or_default();
        (object.class, object.label) = found;
    }
    Ok(())
}
