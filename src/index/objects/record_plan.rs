//! Facts about records that follow from an object's class: size, and offsets of references.

use crate::model::measurements::array_kind;
use hprof_parser::heap::{Instance, ObjectArray, PrimitiveArray};
use hprof_values::{BasicType, ObjectId, be_u32};

use crate::layout::fit;
use crate::layout::sizes::Sizes;
use crate::model::summary::{ClassNumber, Summary};
use crate::model::tables::ClassRow;
use crate::storage::id_map::IdMap;

/// Offsets of references in the instances of a class, and their size.
#[derive(Debug)]
pub struct ClassPlan {
    /// Class number.
    pub class: ClassNumber,
    /// Offsets of the reference fields that the class itself declares, in the bytes of its own fields.
    pub references: Vec<u32>,
    /// Size of the fields that the class itself declares, in bytes; superclass fields follow.
    bytes: usize,
    /// Nearest superclass that declares fields. Inherited members are not listed again: for a chain of a
    /// hundred thousand superclasses the lists would grow with the square of its length.
    above: Option<ClassNumber>,
    /// Size of an instance, unless sizes vary.
    pub size: u64,
    /// Offset of the field that states the number of additional words, for instances of varying size.
    pub words: Option<usize>,
}

impl ClassPlan {
    fn new(summary: &Summary, sizes: &Sizes, number: ClassNumber, class: &ClassRow) -> Self {
        let (mut references, mut words, mut bytes) = (Vec::new(), None, 0);
        let varies = fit::is_of_varying_size(summary, class);
        for (name, kind) in summary.fields(class) {
            if kind == BasicType::Object {
                references.push(u32::try_from(bytes).unwrap_or(u32::MAX));
            } else if varies && words.is_none() && kind == BasicType::Int && name == "size" {
                words = Some(bytes);
            }
            bytes += kind.dump_bytes(summary.id_size());
        }
        let above = summary.class_table().superclass_with_fields(number);
        Self { class: number, references, bytes, above, size: sizes.instance(number).0, words }
    }
}

/// Plans for the objects of all classes of a dump.
pub struct RecordPlans<'a> {
    summary: &'a Summary,
    sizes: &'a Sizes,
    numbers: IdMap<ObjectId, ClassNumber>,
    /// Array classes by the ID that arrays state, where it is that of their elements' class.
    element_arrays: IdMap<ObjectId, ClassNumber>,
    /// Plans by class number.
    classes: Vec<ClassPlan>,
    /// Class numbers of primitive arrays, in the order of [`BasicType::PRIMITIVES`].
    primitive: [Option<ClassNumber>; 8],
    is_from_text: bool,
}

impl<'a> RecordPlans<'a> {
    /// Creates the plans for the objects of a dump.
    pub fn new(summary: &'a Summary, sizes: &'a Sizes) -> Self {
        let primitive = summary.primitive_array_classes();
        let plan = |(number, class)| ClassPlan::new(summary, sizes, number, class);
        let mut classes: Vec<ClassPlan> = summary.numbered_classes().map(plan).collect();
        // Only one class is like this. If a malformed file has several, the first counts.
        let varying = classes.iter_mut().filter(|plan| plan.words.is_some());
        varying.skip(1).for_each(|plan| plan.words = None);
        let is_from_text = summary.is_from_text();
        let element_arrays = summary.element_array_classes();
        let numbers = summary.class_ids();
        Self { summary, sizes, numbers, element_arrays, classes, primitive, is_from_text }
    }

    /// Returns the class with this class object.
    #[inline]
    pub fn class(&self, id: ObjectId) -> Option<ClassNumber> {
        self.numbers.get(&id).copied()
    }

    /// Returns the class of an array of references that states this class: its own, or that of its elements.
    #[inline]
    pub fn array_class(&self, id: ObjectId) -> Option<ClassNumber> {
        if self.element_arrays.is_empty() { self.class(id) } else { self.element_array_class(id) }
    }

    #[cold]
    fn element_array_class(&self, id: ObjectId) -> Option<ClassNumber> {
        self.element_arrays.get(&id).copied().or_else(|| self.class(id))
    }

    /// Returns whether arrays state the classes of their elements.
    pub(super) fn has_element_arrays(&self) -> bool {
        !self.element_arrays.is_empty()
    }

    /// Returns the class of arrays of a primitive type.
    #[inline]
    pub fn primitive(&self, element: BasicType) -> Option<ClassNumber> {
        self.primitive.get(array_kind(element).checked_sub(1)?).copied().flatten()
    }

    /// Returns the plan for the instances of a class.
    #[inline]
    pub fn plan(&self, class: ClassNumber) -> Option<&ClassPlan> {
        self.classes.get(class.0 as usize)
    }

    /// Returns the plan of an instance's class, then those of its superclasses that declare fields,
    /// upwards; each with the bytes from its own fields on. Each consumes some of the bytes, so a long
    /// chain of superclasses ends with them.
    #[inline]
    pub fn levels<'s, 'f>(
        &'s self,
        plan: &'s ClassPlan,
        fields: &'f [u8],
    ) -> impl Iterator<Item = (&'s ClassPlan, &'f [u8])> {
        std::iter::successors(Some((plan, fields)), |(plan, fields)| {
            let rest = fields.get(plan.bytes..).unwrap_or_default();
            let above = plan.above.filter(|_| !rest.is_empty())?;
            Some((self.plan(above)?, rest))
        })
    }

    /// Returns `true` if all instances of a class have the same size.
    pub fn has_one_size(&self, plan: &ClassPlan) -> bool {
        plan.words.is_none() && !self.is_from_text
    }

    /// Returns the shallow size of an instance.
    #[inline]
    pub fn instance(&self, plan: &ClassPlan, record: &Instance<'_>) -> u64 {
        match plan.words {
            _ if self.is_from_text => self.summary.stated_size(record.id).unwrap_or(plan.size),
            Some(at) => self.sizes.stack_chunk(be_u32(record.fields, at).unwrap_or(0)),
            None => plan.size,
        }
    }

    /// Returns the shallow size of an array of references.
    #[inline]
    pub fn object_array(&self, record: &ObjectArray<'_>) -> u64 {
        self.array(record.id, BasicType::Object, record.length)
    }

    /// Returns the shallow size of an array of primitives.
    #[inline]
    pub fn primitive_array(&self, record: &PrimitiveArray<'_>) -> u64 {
        self.array(record.id, record.element, record.length)
    }

    #[inline]
    fn array(&self, id: ObjectId, element: BasicType, length: u32) -> u64 {
        if self.is_from_text {
            return self.summary.stated_size(id).unwrap_or(0);
        }
        self.sizes.layout().array_size(element, length.into())
    }

    /// Returns `true` if the CLASS DUMP at this offset is the one that is used: classes can be dumped
    /// more than once.
    pub fn is_counted(&self, class: ClassNumber, offset: usize) -> bool {
        self.summary.class(class).is_some_and(|row| row.offset.get() == offset as u64)
    }
}
