//! Heaps made for a test, with the JDK's collections. Everything is held by one object array, or by a field.

use hprof_writer::{ClassId, Elements, HeapModel, Jdk, ObjectId, Options, Root, Type, Value};

use crate::kit::dump::Dump;

use super::Waste;

/// A heap.
pub struct Shop {
    pub model: HeapModel,
    pub jdk: Jdk,
    /// `acme.Shop`, of which nothing is wasted: its static field `keep` holds an array of what the test keeps.
    shop: ClassId,
    pub kept: Vec<ObjectId>,
    pub hash_map: ClassId,
    pub node: ClassId,
    pub node_array: ClassId,
    pub tree_node: ClassId,
    pub hash_set: ClassId,
    pub array_list: ClassId,
    pub linked_list: ClassId,
    pub linked_node: ClassId,
    pub unmodifiable: ClassId,
    pub empty_list: ClassId,
    pub integer: ClassId,
    pub long: ClassId,
    pub builder: ClassId,
}

const NULL: ObjectId = ObjectId::NULL;

impl Shop {
    pub fn new() -> Self {
        use Type::{Byte, Float, Int, Long, Object};
        let mut model = HeapModel::default();
        let jdk = Jdk::add_to(&mut model);
        let top = Some(jdk.object);
        let map_fields = [
            ("keySet", Object),
            ("values", Object),
            ("table", Object),
            ("entrySet", Object),
            ("size", Int),
            ("modCount", Int),
            ("threshold", Int),
            ("loadFactor", Float),
        ];
        let hash_map = model.class("java.util.HashMap", top, &map_fields);
        let node_fields = [("hash", Int), ("key", Object), ("value", Object), ("next", Object)];
        let node = model.class("java.util.HashMap$Node", top, &node_fields);
        let node_array = model.array_class(node);
        let linked_entry = model.class(
            "java.util.LinkedHashMap$Entry",
            Some(node),
            &[("before", Object), ("after", Object)],
        );
        let tree_fields = [
            ("parent", Object),
            ("left", Object),
            ("right", Object),
            ("prev", Object),
            ("red", Type::Boolean),
        ];
        let tree_node = model.class("java.util.HashMap$TreeNode", Some(linked_entry), &tree_fields);
        let hash_set = model.class("java.util.HashSet", top, &[("map", Object)]);
        let abstract_list = model.class("java.util.AbstractList", top, &[("modCount", Int)]);
        let list_fields = [("elementData", Object), ("size", Int)];
        let array_list = model.class("java.util.ArrayList", Some(abstract_list), &list_fields);
        let linked_fields = [("size", Int), ("first", Object), ("last", Object)];
        let linked_list = model.class("java.util.LinkedList", Some(abstract_list), &linked_fields);
        let linked_node = model.class(
            "java.util.LinkedList$Node",
            top,
            &[("item", Object), ("next", Object), ("prev", Object)],
        );
        let unmodifiable = model.class("java.util.Collections$UnmodifiableCollection", top, &[("c", Object)]);
        let empty_list = model.class("java.util.Collections$EmptyList", Some(abstract_list), &[]);
        let number = model.class("java.lang.Number", top, &[]);
        let integer = model.class("java.lang.Integer", Some(number), &[("value", Int)]);
        let long = model.class("java.lang.Long", Some(number), &[("value", Long)]);
        let builder_fields = [("value", Object), ("coder", Byte), ("count", Int)];
        let abstract_builder = model.class("java.lang.AbstractStringBuilder", top, &builder_fields);
        let builder = model.class("java.lang.StringBuilder", Some(abstract_builder), &[]);
        let shop = model.class_with_statics("acme.Shop", top, &[], &[("keep", Value::Object(0))]);
        let kept = Vec::new();
        Self {
            model,
            jdk,
            shop,
            kept,
            hash_map,
            node,
            node_array,
            tree_node,
            hash_set,
            array_list,
            linked_list,
            linked_node,
            unmodifiable,
            empty_list,
            integer,
            long,
            builder,
        }
    }

    /// A class of the program with these fields.
    pub fn class(&mut self, name: &str, fields: &[(&str, Type)]) -> ClassId {
        self.model.class(name, Some(self.jdk.object), fields)
    }

    /// Keeps an object alive.
    pub fn keep(&mut self, object: ObjectId) -> ObjectId {
        self.kept.push(object);
        object
    }

    /// An instance of a class with one field, which refers to an object.
    pub fn in_field(&mut self, class: ClassId, field: &str, object: ObjectId) -> ObjectId {
        let holder = self.model.instance_with(class, &[(field, object.into())]);
        self.keep(holder)
    }

    /// A String of its own array.
    pub fn string(&mut self, text: &str) -> ObjectId {
        self.jdk.string(&mut self.model, text)
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> ObjectId {
        self.model.prim_array(Elements::of_bytes(bytes))
    }

    pub fn array(&mut self, elements: &[ObjectId]) -> ObjectId {
        self.model.object_array(self.jdk.object_array, elements)
    }

    /// Adds an ArrayList with an array of `capacity` slots.
    pub fn list(&mut self, elements: &[ObjectId], capacity: usize) -> ObjectId {
        let mut slots = elements.to_vec();
        slots.resize(capacity, NULL);
        let array = self.array(&slots);
        self.list_on(array, elements.len())
    }

    /// An ArrayList on an array.
    pub fn list_on(&mut self, array: ObjectId, size: usize) -> ObjectId {
        let size = i32::try_from(size).unwrap();
        self.model.instance_with(self.array_list, &[("elementData", array.into()), ("size", size.into())])
    }

    /// Adds a HashMap with a table of `buckets` buckets, all entries in the first ones, `chain` in each.
    pub fn map(
        &mut self,
        entries: &[[ObjectId; 2]],
        buckets: usize,
        chain: usize,
        node: ClassId,
    ) -> ObjectId {
        let mut table = vec![NULL; buckets];
        for (bucket, entries) in entries.chunks(chain).enumerate() {
            for [key, value] in entries {
                let fields: [(&str, Value); 3] =
                    [("key", (*key).into()), ("value", (*value).into()), ("next", table[bucket].into())];
                table[bucket] = self.model.instance_with(node, &fields);
            }
        }
        let table = if buckets == 0 { NULL } else { self.model.object_array(self.node_array, &table) };
        let size = i32::try_from(entries.len()).unwrap();
        let fields: [(&str, Value); 3] =
            [("table", table.into()), ("size", size.into()), ("loadFactor", Value::Float(0.75))];
        self.model.instance_with(self.hash_map, &fields)
    }

    /// A LinkedList.
    pub fn linked(&mut self, items: &[ObjectId]) -> ObjectId {
        let mut first = NULL;
        let mut last = NULL;
        for item in items.iter().rev() {
            let node = self
                .model
                .instance_with(self.linked_node, &[("item", (*item).into()), ("next", first.into())]);
            if first != NULL {
                self.model.set_field(first, "prev", node);
            } else {
                last = node;
            }
            first = node;
        }
        let size = i32::try_from(items.len()).unwrap();
        let fields: [(&str, Value); 3] =
            [("size", size.into()), ("first", first.into()), ("last", last.into())];
        self.model.instance_with(self.linked_list, &fields)
    }

    /// Returns the size of an instance of a class.
    pub fn size(&self, class: ClassId) -> u64 {
        self.model.instance_bytes(class)
    }

    /// Returns the size of an array.
    pub fn array_size(&self, element: Type, length: u32) -> u64 {
        self.model.layout().array_bytes(element, length)
    }

    /// The dump.
    pub fn dump(mut self) -> Dump {
        // Objects of different types: no kind of waste.
        let pad = self.model.instance_with(self.jdk.object, &[]);
        self.kept.extend([pad, pad]);
        let kept = std::mem::take(&mut self.kept);
        let keep = self.array(&kept);
        self.model.class_mut(self.shop).statics[0].1 = keep.into();
        self.model.root_boot_classes();
        self.model.root(self.shop, Root::StickyClass);
        Dump::written(&self.model.write(&Options::hotspot()))
    }

    /// Returns the answer of `waste`.
    pub fn waste(self) -> Waste {
        Waste::of(&self.dump())
    }
}
