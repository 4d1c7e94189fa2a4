//! Classes that every JVM has, and objects that tests often need: strings and threads, as in JDK 21.

use super::basic::{Elements, Type, Value};
use super::class::{ClassId, ObjectId};
use super::model::HeapModel;

/// Classes of the Java library in a model.
#[derive(Debug, Clone)]
pub struct Jdk {
    /// `java.lang.Object`
    pub object: ClassId,
    /// `java.lang.Class`
    pub class: ClassId,
    /// `java.lang.String`
    pub string: ClassId,
    /// `java.lang.Object[]`
    pub object_array: ClassId,
    /// The classes of arrays of [`Type::PRIMITIVES`], in that order.
    pub prim_arrays: [ClassId; 8],
    /// `java.lang.Thread`
    pub thread: ClassId,
    /// `java.lang.Thread$FieldHolder`
    pub field_holder: ClassId,
    /// `java.lang.ThreadGroup`
    pub thread_group: ClassId,
    /// `java.lang.ref.Reference`
    pub reference: ClassId,
    /// `java.lang.ref.WeakReference`
    pub weak_reference: ClassId,
}

impl Jdk {
    /// Adds the classes to a model.
    pub fn add_to(model: &mut HeapModel) -> Self {
        use Type::{Boolean, Byte, Int, Long, Object};
        let object = model.class("java.lang.Object", None, &[]);
        let class = model.class("java.lang.Class", Some(object), &[("name", Object)]);
        let string_fields = [("value", Object), ("hash", Int), ("coder", Byte), ("hashIsZero", Boolean)];
        let string = model.class("java.lang.String", Some(object), &string_fields);
        let object_array = model.array_class(object);
        let prim_arrays =
            Type::PRIMITIVES.map(|ty| model.class(&format!("{}[]", ty.java_name()), Some(object), &[]));
        let thread_fields = [("eetop", Long), ("tid", Long), ("name", Object), ("holder", Object)];
        let thread = model.class("java.lang.Thread", Some(object), &thread_fields);
        let holder_fields =
            [("group", Object), ("priority", Int), ("daemon", Boolean), ("threadStatus", Int)];
        let field_holder = model.class("java.lang.Thread$FieldHolder", Some(object), &holder_fields);
        let group_fields = [("parent", Object), ("name", Object), ("maxPriority", Int), ("daemon", Boolean)];
        let thread_group = model.class("java.lang.ThreadGroup", Some(object), &group_fields);
        let reference_fields =
            [("referent", Object), ("queue", Object), ("next", Object), ("discovered", Object)];
        let reference = model.class("java.lang.ref.Reference", Some(object), &reference_fields);
        let weak_reference = model.class("java.lang.ref.WeakReference", Some(reference), &[]);
        Self {
            object,
            class,
            string,
            object_array,
            prim_arrays,
            thread,
            field_holder,
            thread_group,
            reference,
            weak_reference,
        }
    }

    /// Adds a string and its `byte[]`: Latin-1, or UTF-16 in little-endian order.
    pub fn string(&self, model: &mut HeapModel, text: &str) -> ObjectId {
        let latin: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
        let coder = Value::Byte(i8::from(latin.is_none()));
        let bytes = latin.unwrap_or_else(|| text.encode_utf16().flat_map(u16::to_le_bytes).collect());
        let value = model.prim_array(Elements::of_bytes(&bytes));
        model.instance_with(self.string, &[("value", value.into()), ("coder", coder)])
    }

    /// Adds a runnable thread with its name and its holder. It has no group, and is not a root.
    pub fn thread(&self, model: &mut HeapModel, name: &str, daemon: bool, priority: i32) -> ObjectId {
        self.thread_of(model, self.thread, name, daemon, priority)
    }

    /// Adds a thread of a subclass.
    pub fn thread_of(
        &self,
        model: &mut HeapModel,
        class: ClassId,
        name: &str,
        daemon: bool,
        priority: i32,
    ) -> ObjectId {
        let name = self.string(model, name);
        let state =
            [("priority", priority.into()), ("daemon", daemon.into()), ("threadStatus", Value::Int(5))];
        let holder = model.instance_with(self.field_holder, &state);
        model.instance_with(class, &[("name", name.into()), ("holder", holder.into())])
    }

    /// Adds a `WeakReference`.
    pub fn weak(&self, model: &mut HeapModel, referent: ObjectId) -> ObjectId {
        model.instance_with(self.weak_reference, &[("referent", referent.into())])
    }
}
