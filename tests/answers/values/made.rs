//! Heaps of objects of well-known classes, made field by field.

use hprof_index::{Heap, ObjectGraph};
use hprof_query::objects::collections::{CollectionKind, Collections};
use hprof_query::objects::label::{Labels, MAX_CHARS};
use hprof_query::objects::meaning::Meanings;

use crate::kit::dump::{Dump, whole_dump};
use hprof_writer::{ClassId, Elements, HeapModel, Jdk, ObjectId, Options, Root, Type, Value};

/// A heap that is being made.
pub struct Made {
    pub model: HeapModel,
    pub jdk: Jdk,
    /// Objects, and what they mean.
    pub expected: Vec<(ObjectId, Option<String>)>,
}

impl Made {
    pub fn new() -> Self {
        let mut model = HeapModel::default();
        let jdk = Jdk::add_to(&mut model);
        Self { model, jdk, expected: Vec::new() }
    }

    pub fn class(&mut self, name: &str, fields: &[(&str, Type)]) -> ClassId {
        self.model.class(name, Some(self.jdk.object), fields)
    }

    pub fn below(&mut self, name: &str, above: ClassId, fields: &[(&str, Type)]) -> ClassId {
        self.model.class(name, Some(above), fields)
    }

    pub fn string(&mut self, text: &str) -> ObjectId {
        self.jdk.string(&mut self.model, text)
    }

    pub fn object(&mut self, class: ClassId, values: &[Value]) -> ObjectId {
        self.model.instance(class, values)
    }

    /// An object that means this.
    pub fn means(&mut self, class: ClassId, values: &[Value], text: &str) -> ObjectId {
        let object = self.object(class, values);
        self.is(object, text)
    }

    pub fn is(&mut self, object: ObjectId, text: &str) -> ObjectId {
        self.expected.push((object, Some(text.to_owned())));
        object
    }

    pub fn is_nothing(&mut self, object: ObjectId) {
        self.expected.push((object, None));
    }

    pub fn ints(&mut self, ints: &[u32]) -> ObjectId {
        self.model.prim_array(Elements::Int(ints.iter().map(|int| int.cast_signed()).collect()))
    }

    pub fn dump(&mut self) -> Dump {
        let objects: Vec<ObjectId> = self.expected.iter().map(|(object, _)| *object).collect();
        for object in objects {
            self.model.root(object, Root::Unknown);
        }
        Dump::written(&self.model.write(&Options::hotspot()))
    }

    pub fn check(mut self) {
        let dump = self.dump();
        let (heap, graph) = dump.open_graph();
        let meanings = Meanings::new(&whole_dump(&heap, &graph));
        let labels = Labels::new(&whole_dump(&heap, &graph));
        for (object, expected) in &self.expected {
            let index = graph.objects.addresses.index_of(hprof_cli::ObjectId(object.0)).unwrap();
            let class = graph.objects.class(index).and_then(|class| heap.summary().class(class)).unwrap();
            let name = heap.summary().class_name(class);
            let found = meanings.meaning(index, 1 << 20).map(|meaning| meaning.text);
            assert_eq!(&found, expected, "{name}");
            // A label is a prefix of it.
            if let (Some(label), Some(expected)) = (labels.label(index), expected)
                && !expected.starts_with("0x")
                && expected.chars().count() <= MAX_CHARS
            {
                assert_eq!(&label, expected, "{name}");
            }
        }
    }
}

pub fn long(value: i64) -> Value {
    Value::Long(value)
}

pub fn int(value: i32) -> Value {
    Value::Int(value)
}

/// The objects of a dump, and what each holds: numbers as they are, Strings and boxes by their text.
pub fn contents(
    heap: &Heap,
    graph: &ObjectGraph,
    object: ObjectId,
) -> Option<(CollectionKind, Option<u64>, Vec<String>)> {
    let objects = whole_dump(heap, graph).objects;
    let labels = Labels::new(&whole_dump(heap, graph));
    let collections = Collections::new(&objects);
    let found = collections.collection(graph.objects.addresses.index_of(hprof_cli::ObjectId(object.0))?)?;
    let text = |value: hprof_query::objects::reader::Bits| match (value.integer(), value.bits) {
        (Some(number), _) => number.to_string(),
        (None, 0) => "null".to_owned(),
        _ => objects.object(value).and_then(|object| labels.label(object)).unwrap_or_else(|| "?".to_owned()),
    };
    let entries = collections.entries(&found).take(1000).map(|entry| match entry.key {
        Some(key) => format!("{}={}", text(key), text(entry.value)),
        None => text(entry.value),
    });
    Some((found.kind, found.size, entries.collect()))
}
