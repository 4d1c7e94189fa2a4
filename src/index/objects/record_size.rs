//! The class and the shallow size of an object, from its record.

use crate::hprof::{BasicType, ObjectId, be_u32};

use crate::index::layout::fit;
use crate::index::layout::sizes::Sizes;
use crate::index::model::summary::{ClassNumber, Summary};
use crate::index::model::tables::{ClassKind, ClassRow};
use crate::index::storage::id_map::IdMap;

/// Tells class and size of objects.
pub(crate) struct Shallow<'a> {
    summary: &'a Summary,
    pub(crate) sizes: &'a Sizes,
    numbers: IdMap<ObjectId, ClassNumber>,
    /// Class numbers of primitive arrays, in the order of [`BasicType::PRIMITIVES`].
    primitive: [Option<ClassNumber>; 8],
    /// The class whose instances vary in size, and where its instances hold by how many words.
    varying: Option<(ClassNumber, usize)>,
}

impl<'a> Shallow<'a> {
    /// For the objects of a dump.
    pub(crate) fn new(summary: &'a Summary, sizes: &'a Sizes) -> Self {
        let primitive = BasicType::PRIMITIVES.map(|element| {
            let mut classes = summary.numbered_classes();
            let of_kind = |class: &ClassRow| class.kind() == ClassKind::PrimitiveArray(element);
            classes.find(|(_, class)| of_kind(class) && class.objects.get() > 0).map(|(number, _)| number)
        });
        let mut varying = summary.numbered_classes();
        let varying = varying.find_map(|(number, class)| {
            let varies = fit::is_of_varying_size(summary.class_name(class));
            Some((number, size_field(summary, class)?)).filter(|_| varies)
        });
        Self { summary, sizes, numbers: summary.class_ids(), primitive, varying }
    }

    /// The class with this class object.
    pub(crate) fn class(&self, id: ObjectId) -> Option<ClassNumber> {
        self.numbers.get(&id).copied()
    }

    /// The class of arrays of a primitive type.
    pub(crate) fn primitive(&self, element: BasicType) -> Option<ClassNumber> {
        let at = BasicType::PRIMITIVES.iter().position(|kind| *kind == element)?;
        self.primitive.get(at).copied().flatten()
    }

    /// Where the instances of this class hold by how many words they are larger, if they vary in size.
    pub(crate) fn varying(&self, class: ClassNumber) -> Option<usize> {
        self.varying.filter(|(number, _)| *number == class).map(|(_, at)| at)
    }

    /// The size of an instance with these fields.
    pub(crate) fn instance(&self, class: ClassNumber, fields: &[u8]) -> u64 {
        match self.varying(class) {
            Some(at) => self.sizes.stack_chunk(be_u32(fields, at).unwrap_or(0)),
            None => self.sizes.instance(class).0,
        }
    }

    /// The size of an array.
    pub(crate) fn array(&self, element: BasicType, length: u32) -> u64 {
        let layout = self.sizes.layout();
        layout.align(layout.array_base(element) + u64::from(length) * layout.value_bytes(element))
    }

    /// Whether the CLASS DUMP at this offset is the one that counts: classes can be dumped again.
    pub(crate) fn is_counted(&self, class: ClassNumber, offset: usize) -> bool {
        self.summary.class(class).is_some_and(|row| row.offset.get() == offset as u64)
    }
}

/// Where an instance holds its class's own field `size`.
fn size_field(summary: &Summary, class: &ClassRow) -> Option<usize> {
    let mut at = 0;
    for (name, kind) in summary.fields(class) {
        if kind == BasicType::Int && name == "size" {
            return Some(at);
        }
        at += kind.dump_bytes(summary.id_size());
    }
    None
}
