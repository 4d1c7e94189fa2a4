//! Attributes: properties of MAT's objects in addition to the fields of the heap.

use std::sync::Arc;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::ClassKind;
use hprof_model::dump::info::{DumpInfo, info};
use hprof_model::objects::hiding;
use hprof_model::objects::reader::{Bits, ObjectRecord};
use hprof_model::objects::root_index::RootIndex;
use hprof_values::RootKind;

use crate::oql::builtins::{Attribute, Info};
use crate::oql::evaluate::Evaluator;
use crate::oql::value::{ExpressionValue, List};

impl<'a> Evaluator<'_, 'a> {
    /// Returns the index of the roots.
    pub(in crate::oql) fn roots(&self) -> &RootIndex<'a> {
        self.roots.get_or_init(|| RootIndex::new(self.dump.graph))
    }

    /// Returns the objects that are roots, ascending, without duplicates.
    pub(in crate::oql) fn root_objects(&self) -> &Arc<[ObjectIndex]> {
        self.root_objects.get_or_init(|| self.roots().objects().into())
    }

    /// Returns the value of an attribute.
    pub(in crate::oql) fn attribute(&self, value: &ExpressionValue, attribute: Attribute) -> ExpressionValue {
        let object = match (value, attribute) {
            (ExpressionValue::Object(object), _) => *object,
            (ExpressionValue::Text(text), Attribute::Length | Attribute::Size) => {
                return i64::try_from(text.encode_utf16().count())
                    .map_or(ExpressionValue::Null, ExpressionValue::Whole);
            }
            (ExpressionValue::Entry(entry), Attribute::Key) => return entry.0.clone(),
            (ExpressionValue::Entry(entry), Attribute::Value) => return entry.1.clone(),
            (ExpressionValue::Field(..) | ExpressionValue::Static(..), _) => {
                return self.field_attribute(value, attribute);
            }
            (ExpressionValue::Snapshot | ExpressionValue::SnapshotInfo, attribute) => {
                return self.info(attribute);
            }
            (ExpressionValue::Missing(id), Attribute::ObjectAddress) => {
                return ExpressionValue::Whole(id.0.cast_signed());
            }
            (value, Attribute::Length | Attribute::Size) => return self.size(value),
            _ => return ExpressionValue::Null,
        };
        let tree = &self.dump.graph.tree;
        let bytes = |bytes: Option<u64>| {
            bytes
                .and_then(|bytes| i64::try_from(bytes).ok())
                .map_or(ExpressionValue::Null, ExpressionValue::Whole)
        };
        let text = |text: Option<String>| {
            text.map_or(ExpressionValue::Null, |text| ExpressionValue::Text(text.into()))
        };
        match attribute {
            Attribute::ObjectId => ExpressionValue::Whole(object.0.into()),
            Attribute::ObjectAddress => self.address(object),
            Attribute::UsedHeapSize => bytes(tree.position(object).map(|at| tree.shallow_bytes(at))),
            Attribute::RetainedHeapSize => {
                bytes(tree.reachable_position(object).map(|at| tree.retained_bytes(at)))
            }
            Attribute::TechnicalName => text(self.technical_name(object)),
            Attribute::DisplayName => {
                let says = self.object_text(object).filter(|_| self.class_of(object).is_none());
                let says = says.map(|says| format!(" {says}")).unwrap_or_default();
                text(self.technical_name(object).map(|name| name + &says))
            }
            Attribute::ClassSpecificName => text(self.object_text(object)),
            Attribute::Class => {
                self.dump.graph.class_object_of(object).map_or(ExpressionValue::Null, ExpressionValue::Object)
            }
            Attribute::Length if self.is_text(value) => {
                let text = self.dump.objects.string(object).map(|text| text.len());
                text.and_then(|len| i64::try_from(len).ok())
                    .map_or(ExpressionValue::Null, ExpressionValue::Whole)
            }
            Attribute::Length => self.length(object),
            Attribute::Elements => {
                if self.length(object) == ExpressionValue::Null {
                    ExpressionValue::Null
                } else {
                    ExpressionValue::List(List::Elements, object)
                }
            }
            Attribute::Outbounds => ExpressionValue::List(List::Outbounds, object),
            Attribute::Inbounds => ExpressionValue::List(List::Inbounds, object),
            Attribute::Roots => {
                let kinds: Vec<&str> = self.roots().kinds(object).into_iter().map(RootKind::name).collect();
                text((!kinds.is_empty()).then(|| kinds.join(", ")))
            }
            // Number of elements of a collection.
            Attribute::Size => self.size(value),
            Attribute::Fields => match self.dump.objects.record(object) {
                Some(ObjectRecord::Instance(_)) => ExpressionValue::List(List::Fields, object),
                _ => ExpressionValue::Null,
            },
            Attribute::Snapshot => ExpressionValue::Snapshot,
            // Key or value of an entry, as in MAT's collections of a snapshot.
            Attribute::Key | Attribute::Value => self.entry_part(object, attribute),
            _ => self.class_attribute(object, attribute),
        }
    }

    /// Returns the class that a class object represents.
    pub(in crate::oql) fn class_of(&self, object: ObjectIndex) -> Option<ClassNumber> {
        self.dump.graph.class_of_class_object(object)
    }

    pub(in crate::oql) fn class_attribute(
        &self,
        object: ObjectIndex,
        attribute: Attribute,
    ) -> ExpressionValue {
        let Some(number) = self.class_of(object) else { return ExpressionValue::Null };
        let Some(class) = self.dump.summary.class(number) else { return ExpressionValue::Null };
        let superclass = || self.dump.summary.class_table().superclass(number);
        let above = || superclass().and_then(|above| self.dump.graph.class_object(above));
        let object_of =
            |object: Option<ObjectIndex>| object.map_or(ExpressionValue::Null, ExpressionValue::Object);
        let index_of = |object: Option<ObjectIndex>| {
            object.map_or(ExpressionValue::Null, |object| ExpressionValue::Whole(object.0.into()))
        };
        let loader = || self.of_id(class.loader.into());
        match attribute {
            Attribute::StaticFields => ExpressionValue::List(List::Statics, object),
            Attribute::Subclasses => ExpressionValue::List(List::Subclasses, object),
            Attribute::Superclasses => {
                let above = self.dump.summary.class_table().upwards(number).skip(1).take(1 << 16);
                let objects = above.filter_map(|class| self.dump.graph.class_object(class));
                ExpressionValue::from_values(objects.map(ExpressionValue::Object).collect())
            }
            Attribute::HeapSizePerInstance => {
                let bytes = (class.kind() == ClassKind::Instance).then(|| self.sizes().instance(number).0);
                bytes
                    .and_then(|bytes| i64::try_from(bytes).ok())
                    .map_or(ExpressionValue::Null, ExpressionValue::Whole)
            }
            Attribute::Name => ExpressionValue::Text(self.dump.summary.class_name(class).into()),
            Attribute::Loader => loader(),
            Attribute::LoaderId => match loader() {
                ExpressionValue::Object(object) => ExpressionValue::Whole(object.0.into()),
                _ => ExpressionValue::Null,
            },
            Attribute::LoaderAddress => ExpressionValue::Whole(class.loader.get().cast_signed()),
            Attribute::SuperClass => object_of(above()),
            Attribute::SuperClassId => index_of(above()),
            Attribute::SuperClassAddress => {
                above().map_or(ExpressionValue::Null, |object| self.address(object))
            }
            Attribute::HasSuperClass => ExpressionValue::Boolean(superclass().is_some()),
            Attribute::NumberOfObjects => {
                i64::try_from(class.objects.get()).map_or(ExpressionValue::Null, ExpressionValue::Whole)
            }
            Attribute::IsArray => ExpressionValue::Boolean(class.kind() != ClassKind::Instance),
            _ => ExpressionValue::Null,
        }
    }

    pub(in crate::oql) fn technical_name(&self, object: ObjectIndex) -> Option<String> {
        let id = self.dump.graph.objects.addresses.id_of(object)?;
        Some(match self.class_of(object).and_then(|class| self.dump.summary.class(class)) {
            Some(class) => format!("class {} @ {id:#x}", self.dump.summary.class_name(class)),
            None => format!("{} @ {id:#x}", self.class_name(object).unwrap_or("<unknown class>")),
        })
    }

    /// Returns the key or the value of an object that is an entry of a map, like MAT's getKey() and getValue().
    fn entry_part(&self, object: ObjectIndex, attribute: Attribute) -> ExpressionValue {
        let names: &[&str] = match attribute {
            Attribute::Key => &["key", "referent", "k"],
            _ => &["value", "val", "v"],
        };
        let found = names.iter().find_map(|name| self.dump.objects.field(object, name));
        found.map_or(ExpressionValue::Null, |bits| self.field_value(bits, || false))
    }

    /// Returns name, type and value of a field value.
    pub(in crate::oql) fn field_of(
        &self,
        value: &ExpressionValue,
    ) -> Option<(&'a str, &'static str, ExpressionValue)> {
        match value {
            ExpressionValue::Field(object, number) => {
                let class = self.dump.graph.objects.class(*object)?;
                let slot = self.dump.objects.slots(class).nth(*number as usize)?;
                let bits = self.dump.objects.value(self.dump.objects.instance(*object)?, &slot);
                Some((
                    slot.name,
                    slot.kind.java_name(),
                    bits.map_or(ExpressionValue::Null, |bits| {
                        self.field_value(bits, || hiding::is_slot_shown(self.dump.summary, class, &slot))
                    }),
                ))
            }
            ExpressionValue::Static(object, number) => {
                let of = self.class_of(*object)?;
                let (name, kind, bits) =
                    self.dump.summary.statics(self.dump.summary.class(of)?).nth(*number as usize)?;
                let is_shown = || hiding::is_shown(self.dump.summary, of, name, kind);
                Some((name, kind.java_name(), self.field_value(Bits { kind, bits }, is_shown)))
            }
            _ => None,
        }
    }

    pub(in crate::oql) fn field_attribute(
        &self,
        value: &ExpressionValue,
        attribute: Attribute,
    ) -> ExpressionValue {
        let Some((name, kind, value)) = self.field_of(value) else { return ExpressionValue::Null };
        match attribute {
            Attribute::Name => ExpressionValue::Text(name.into()),
            Attribute::Type => ExpressionValue::Text(kind.into()),
            Attribute::Value => value,
            _ => ExpressionValue::Null,
        }
    }

    /// Formats a field value as text: `int hash: 0`.
    pub(in crate::oql) fn field_text(&self, field: &ExpressionValue) -> Option<String> {
        let (name, kind, value) = self.field_of(field)?;
        let said = match &value {
            ExpressionValue::Null => "null".to_owned(),
            ExpressionValue::Missing(id) => format!("{id:#x}"),
            ExpressionValue::Object(object) => {
                self.string(*object).or_else(|| self.technical_name(*object)).unwrap_or_default()
            }
            value => self.text(value).unwrap_or_default(),
        };
        Some(format!("{kind} {name}: {said}"))
    }

    /// Returns an attribute of the dump as a whole.
    fn info(&self, attribute: Attribute) -> ExpressionValue {
        let whole = |number: u64| i64::try_from(number).map_or(ExpressionValue::Null, ExpressionValue::Whole);
        let count =
            |number: usize| i64::try_from(number).map_or(ExpressionValue::Null, ExpressionValue::Whole);
        let facts = self.dump.summary.facts();
        let what = match attribute {
            Attribute::Info(what) => what,
            Attribute::Roots => Info::Roots,
            Attribute::NumberOfObjects => Info::NumberOfObjects,
            Attribute::UsedHeapSize => Info::UsedHeapSize,
            Attribute::Snapshot => return ExpressionValue::Snapshot,
            _ => return ExpressionValue::Null,
        };
        match what {
            Info::All => ExpressionValue::SnapshotInfo,
            Info::Path => ExpressionValue::Text(self.dump.heap.path().display().to_string().into()),
            Info::CreationDate => match facts.created_ms.get() {
                0 => ExpressionValue::Null,
                created => whole(created),
            },
            Info::IdentifierSize => ExpressionValue::Whole(facts.id_bytes.into()),
            Info::Jvm => {
                self.facts().jvm().map_or(ExpressionValue::Null, |jvm| ExpressionValue::Text(jvm.into()))
            }
            Info::UsedHeapSize => whole(self.facts().shallow_bytes),
            Info::NumberOfObjects => ExpressionValue::Whole(self.dump.graph.objects.len().into()),
            Info::NumberOfClasses => whole(self.dump.graph.objects.class_objects().len()),
            Info::NumberOfClassLoaders => count(self.dump.summary.loaders().len()),
            Info::NumberOfRoots => count(self.root_objects().len()),
            Info::Classes => ExpressionValue::List(List::Classes, ObjectIndex(0)),
            Info::Roots => ExpressionValue::List(List::Roots, ObjectIndex(0)),
        }
    }

    /// Returns facts about the dump, computed once.
    fn facts(&self) -> &DumpInfo {
        self.info.get_or_init(|| info(self.dump.heap, self.sizes()))
    }

    /// Returns the sizes of objects.
    pub(in crate::oql) fn sizes(&self) -> &Sizes {
        self.sizes.get_or_init(|| Sizes::new(self.dump.summary, None))
    }
}
